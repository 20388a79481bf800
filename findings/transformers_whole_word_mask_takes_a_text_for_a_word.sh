#!/usr/bin/env bash
# transformers 5.23.0 (DataCollatorForLanguageModeling, whole_word_mask=True) with tokenizers 0.23.3
#
# One would guess: it masks about 15% of the words, and the pieces of a word together, whatever the
# tokenizer. (DataCollatorForWholeWordMask, which it replaced, read BERT's "##" and warned of others.)
# What happens: a word begins where the offsets leave a gap to the token before, so at a space that no
# token covers. RoBERTa's and XLM-R's offsets leave the space out. DeBERTa-v2's keep it, and so do
# those of byte-level BPE under a template instead of RoBERTa's own post-processor, as many newer
# tokenizers have it: there is no gap, and the whole text is one word. 85% of the texts have nothing
# masked, 15% have every token masked.
# The mean is 15% as it should be, and nothing is said. Chinese in BERT goes the same way, a text
# without a space being one word, where Google's program masks its characters one by one.
# Who is hurt: whoever pre-trains or adapts such a model with whole words: it learns the frequency of
# tokens from texts of nothing but masks, and the loss stays high for no visible reason.
# What to do instead: look at one batch before training. Where offsets keep the space, move each start
# behind it first, or mask by word_ids() where the pre-tokenizer's words are meant.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 tokenizers==0.23.3
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import json
import sys

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import DataCollatorForLanguageModeling as Collator

TEXT = "the old river runs past a small house and the green garden where horses sleep under trees"
CHINESE = "我们在河边唱歌看花吃苹果骑马"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
NAMES = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>",
         "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}  # fmt: skip


def trained(model, pre_tokenizer, trainer):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator([TEXT] * 20, trainer)
    return tokenizer


def byte_level():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    return trained(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), trainer)


def roberta():
    model = json.loads(byte_level().to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    return transformers.RobertaTokenizer(vocab=model["vocab"], merges=merges)


def byte_level_with_template():
    tokenizer = byte_level()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **NAMES)


def unigram(kind):
    trainer = trainers.UnigramTrainer(
        vocab_size=60, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    tokenizer = trained(models.Unigram(), pre_tokenizers.Metaspace(), trainer)
    pieces = json.loads(tokenizer.to_str())["model"]["vocab"]
    return getattr(transformers, kind)(vocab=[tuple(piece) for piece in pieces], **NAMES)


def bert():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({*TEXT.split(), *CHINESE})]
    return transformers.BertTokenizer(vocab={word: number for number, word in enumerate(words)})


def masked(tokenizer, text, draws=1000):
    """Of `draws` copies of a text: the mean part masked, the parts with nothing and all masked."""
    encoded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    collator = Collator(tokenizer, whole_word_mask=True, mlm_probability=0.15, seed=0)
    labels = collator([dict(encoded) for _ in range(draws)])["labels"]
    part = (labels != -100).sum(1) / (len(encoded["input_ids"]) - 2)
    return part.mean().item(), (part == 0).float().mean().item(), (part == 1).float().mean().item()


cases = {
    "BERT": (bert(), TEXT),
    "RoBERTa": (roberta(), TEXT),
    "XLM-R": (unigram("XLMRobertaTokenizer"), TEXT),
    "DeBERTa-v2": (unigram("DebertaV2Tokenizer"), TEXT),
    "byte-level, template": (byte_level_with_template(), TEXT),
    "BERT, Chinese": (bert(), CHINESE),
}
seen = {name: masked(*case) for name, case in cases.items()}
for name, (mean, nothing, everything) in seen.items():
    print(f"{name:20} {mean:6.1%} of tokens masked; nothing in {nothing:5.1%} of the texts, all in {everything:5.1%}")
words, whole = [*seen.values()][:3], [*seen.values()][3:]
if any(everything > 0 or nothing > 0.2 for _, nothing, everything in words) or any(
    everything < 0.1 or nothing + everything < 0.9999 for _, nothing, everything in whole
):
    print("not as described")
    sys.exit(1)
PY
