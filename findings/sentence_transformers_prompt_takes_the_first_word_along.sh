#!/usr/bin/env bash
# sentence-transformers 6.2.0 (Pooling with include_prompt=False, as INSTRUCTOR has it), with transformers
# 5.23.0, tokenizers 0.23.3 and torch 2.13.0
#
# One would guess: include_prompt=False leaves the prompt's tokens out of the mean, and all tokens of the
# text are in it ("prompt tokens are excluded from pooling"), whatever the tokenizer.
# What happens: the prompt's length is that of the prompt tokenized alone. The usual prompts end in a space
# ("query: "). In a byte-level BPE, which RoBERTa, ModernBERT, Qwen and Llama have, that space is a token
# of its own at the end of the prompt, but the beginning of the first word in front of a text. So one token
# more is cut away: the first of every text. A mean over word vectors (no layers, below) is the same for
# "cat sleeps" and "dog sleeps", and for "cat" and "dog", of which only </s> is left. Through layers the first
# word is felt by its neighbours only: in a small untrained ModernBERT the cosines are 0.999998, and 0.76 and
# 0.55 where the words count. In BERT's WordPiece, which drops the space, all is as one would guess.
# Who is hurt: whoever trains or uses a ModernBERT or RoBERTa sentence encoder with prompts and
# set_pooling_include_prompt(False), as the documentation on training with prompts offers: short queries,
# whose first word is often the one that counts, most of all. Nothing is said, in training and in use alike,
# so the scores are a little worse and no two paths differ.
# What to do instead: give the prompt without its last space and begin each text with it (below: all is
# right then), or leave the prompt in (the default).
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 sentence-transformers==6.2.0 transformers==5.23.0 \
  tokenizers==0.23.3
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizerFast,
    ModernBertConfig,
    ModernBertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizerFast,
)

torch.manual_seed(0)
SIZES = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
# BERT: WordPiece; the mean of embeddings only.
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "query", ":", "cat", "dog", "sleeps"]
open("vocab.txt", "w").write("\n".join(words))
BertTokenizerFast("vocab.txt").save_pretrained("bert")
BertModel(BertConfig(vocab_size=10, num_hidden_layers=0, **SIZES)).save_pretrained("bert")
# RoBERTa: byte-level BPE, the same model.
bpe = ByteLevelBPETokenizer()
bpe.train_from_iterator(
    ["query: cat sleeps", "query: dog sleeps"], vocab_size=400, min_frequency=1, special_tokens=SPECIAL
)
bpe.save_model(".")
RobertaTokenizerFast("vocab.json", "merges.txt").save_pretrained("roberta")
RobertaModel(
    RobertaConfig(vocab_size=400, num_hidden_layers=0, pad_token_id=1, **SIZES)
).save_pretrained("roberta")
# ModernBERT with two layers and the same tokens.
RobertaTokenizerFast("vocab.json", "merges.txt").backend_tokenizer.save("tokenizer.json")
PreTrainedTokenizerFast(
    tokenizer_file="tokenizer.json", pad_token="<pad>", cls_token="<s>", sep_token="</s>",
    model_input_names=["input_ids", "attention_mask"],
).save_pretrained("modernbert")
ModernBertModel(ModernBertConfig(
    vocab_size=400, num_hidden_layers=2, pad_token_id=1, cls_token_id=0, sep_token_id=2, bos_token_id=0,
    eos_token_id=2, attn_implementation="eager", **SIZES,
)).save_pretrained("modernbert")  # fmt: skip


def likeness(folder, prompt, include_prompt=False):
    """Cosine of "cat sleeps" and "dog sleeps", and of "cat" and "dog", behind the prompt "query: "."""
    model = SentenceTransformer(
        modules=[Transformer(folder), Pooling(32, "mean", include_prompt=include_prompt)], device="cpu"
    )
    space = "" if prompt.endswith(" ") else " "
    texts = [space + text for text in ("cat sleeps", "dog sleeps", "cat", "dog")]
    a, b, c, d = torch.tensor(model.encode(texts, prompt=prompt))
    return [torch.cosine_similarity(x, y, dim=0).item() for x, y in ((a, b), (c, d))]


def pooled(folder, prompt, text):
    """How many tokens at the end of the states have the pooled vector as their mean; the tokens."""
    module = Transformer(folder)
    model = SentenceTransformer(modules=[module, Pooling(32, "mean", include_prompt=False)], device="cpu")
    vector = torch.tensor(model.encode(text, prompt=prompt))
    tokens = module.tokenizer(prompt + text, return_tensors="pt")
    with torch.no_grad():
        states = module.auto_model(**tokens).last_hidden_state[0]
    count = [n for n in range(1, len(states) + 1) if torch.allclose(states[-n:].mean(0), vector, atol=1e-5)]
    return count, module.tokenizer.convert_ids_to_tokens(tokens["input_ids"][0].tolist())


seen = {(folder, prompt): likeness(folder, prompt) for folder in ("bert", "roberta", "modernbert")
        for prompt in ("query: ", "query:")}  # fmt: skip
for (folder, prompt), (two, one) in seen.items():
    print(f'{folder:10} prompt "{prompt}"'.ljust(28), f"cosine of two words {two:.6f}, of one word {one:.6f}")
parts = {}
for folder in ("bert", "roberta", "modernbert"):
    parts[folder], tokens = pooled(folder, "query: ", "cat sleeps")
    print(f"{folder:10} pooled: the last {parts[folder]} of", " ".join(tokens))
print("roberta, prompt left in:", [round(x, 4) for x in likeness("roberta", "query: ", True)])

if parts != {"bert": [3], "roberta": [2], "modernbert": [2]}:
    sys.exit("not as described: all tokens of the text are pooled, or BERT's are not")
if min(seen["roberta", "query: "]) < 0.999999 or max(likeness("roberta", "query: ", True)) > 0.999:
    sys.exit("not as described: the first word counts in RoBERTa, or not with the prompt left in")
if max(max(seen[folder, "query:"]) for folder in ("bert", "roberta")) > 0.999:
    sys.exit("not as described: without the space the first word does not count")
if max(seen["bert", "query: "]) > 0.999:
    sys.exit("not as described: BERT's first word does not count")
PY
