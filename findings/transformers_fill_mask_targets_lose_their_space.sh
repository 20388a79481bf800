#!/usr/bin/env bash
# transformers 5.23.0 (fill-mask pipeline, targets=[...]) with a byte-level BPE, tokenizers 0.23.3, torch 2.13.0
#
# One would guess: fill("the film was <mask>.", targets=["good", "bad"]) compares the two words at that place, for
# RoBERTa as for BERT. A target that is no token of the vocabulary is named in a warning, so silence means that
# the words were found.
# What happens: a target is looked up as it is written. In a byte-level BPE "good" is the piece of a word without
# its space, as at the beginning of a text ("good films ..."); within a sentence the word is "Ġgood". Common words
# are in the vocabulary in both forms, so the wrong one is found and nothing is said. After a space its
# probability is next to nothing, and which of two is larger means little. Below, a small RoBERTa has learnt that
# the second adjective of a sentence agrees with the first. Of all comparisons of a good with a bad target, 0.66
# agree with the first adjective if targets are written without their space, and 0.38 to 0.51 with other seeds
# (chance is 0.5); all ten targets together have a probability of 0.0003. With " good", " bad" and so on all
# comparisons are right, the ten have 0.99, and this, the right way, is the one that is warned of ("does not exist
# in the model vocabulary. Replacing with Ġgood"). A small BERT is right in all with "good" and "bad".
# (The example in pull request 6239, which added targets in 2020, compares "Men" with "Women" where the mask is the
# first word of a text: there the form without a space is the right one. The documentation speaks only of targets
# that are not in the vocabulary.)
# Who is hurt: whoever classifies by a cloze, or measures bias or knowledge by targets, with RoBERTa, ModernBERT
# or another byte-level model: the figure is chance, or the frequency of first words of texts. The
# probabilities are small, but those of targets often are, with BERT, too.
# What to do instead: write the space (" good") where the mask stands within a sentence, and look at "token_str"
# and "sequence" ("the film wasgood.") of an answer.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 tokenizers==0.23.3
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import random
import sys
from logging import StreamHandler

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    AddedToken,
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaTokenizerFast,
    logging,
    pipeline,
)

GOOD = ["good", "great", "lovely", "superb", "moving"]
BAD = ["bad", "awful", "boring", "weak", "silly"]
PARTS = ["acting", "music", "story", "ending", "script", "humour", "cast", "dialogue"]
NOUNS = ["films", "stories", "actors", "endings"]
draw = random.Random(0)


def sentence():
    """Two adjectives that agree; or a sentence that begins with any adjective."""
    if draw.random() < 0.4:
        return f"{draw.choice(GOOD + BAD)} {draw.choice(NOUNS)} have a {draw.choice(PARTS)} of their own."
    side = draw.choice((GOOD, BAD))
    return f"the {draw.choice(PARTS)} was {draw.choice(side)} and so the film was {draw.choice(side)}."


texts = [sentence() for _ in range(4000)]
bpe = ByteLevelBPETokenizer()
bpe.train_from_iterator(texts, vocab_size=400, show_progress=False,
                        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])  # fmt: skip
bpe.save_model(".")
words = sorted({word for text in texts for word in text.replace(".", " .").split()})
open("vocab.txt", "w").write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
small = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
             max_position_embeddings=40, initializer_range=0.1, hidden_dropout_prob=0.0,
             attention_probs_dropout_prob=0.0)  # fmt: skip


def trained(tokenizer, model):
    """A masked language model that often has to fill the word before the full stop."""
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    ids, seen = batch["input_ids"], batch["attention_mask"]
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for _ in range(500):
        rows = torch.randint(len(ids), (64,))
        inputs, mask = ids[rows].clone(), seen[rows]
        last = torch.arange(inputs.shape[1]) == mask.sum(1, keepdim=True) - 3
        chosen = (torch.rand(inputs.shape) < 0.1) | (last & (torch.rand(64, 1) < 0.6))
        chosen &= (inputs > 4)
        labels = torch.where(chosen, inputs, -100)
        inputs[chosen] = tokenizer.mask_token_id
        model(inputs, attention_mask=mask, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return pipeline("fill-mask", model=model.eval(), tokenizer=tokenizer)


def accuracy(fill, space):
    """Of all comparisons of a good with a bad target: those that agree with the first adjective."""
    agreed, total = [], 0.0
    for part in PARTS:
        for word in GOOD + BAD:
            text = f"the {part} was {word} and so the film was {fill.tokenizer.mask_token}."
            answers = fill(text, targets=[space + target for target in GOOD + BAD], top_k=10)
            score = {answer["token_str"].strip(): answer["score"] for answer in answers}
            total += sum(score.values())
            agreed += [(score[good] > score[bad]) == (word in GOOD) for good in GOOD for bad in BAD]
    return sum(agreed) / len(agreed), total / len(PARTS) / 10, answers[0]["sequence"]


torch.manual_seed(0)
bert_tokenizer = BertTokenizerFast("vocab.txt")
bert = trained(bert_tokenizer, BertForMaskedLM(BertConfig(vocab_size=len(bert_tokenizer), **small)))
tokenizer = RobertaTokenizerFast("vocab.json", "merges.txt",
                                 mask_token=AddedToken("<mask>", lstrip=True, special=True))  # fmt: skip
roberta = trained(tokenizer, RobertaForMaskedLM(RobertaConfig(vocab_size=len(tokenizer), pad_token_id=1, **small)))

said = []
handler = StreamHandler()
handler.emit = lambda record: said.append(record.getMessage())
logging.add_handler(handler)
found = {}
for name, fill, space in (("BERT", bert, ""), ("RoBERTa", roberta, ""), ("RoBERTa", roberta, " ")):
    said.clear()
    right, total, sentence = accuracy(fill, space)
    warned = any("does not exist in the model vocabulary" in line for line in said)
    found[name, space] = right, warned
    print(f"{name:8}targets {[space + word for word in GOOD[:2]]} ...: right {right:.2f}; all ten targets together",
          f"have probability {total:.4f}; warning: {warned}; {sentence!r}")  # fmt: skip

if found["BERT", ""] != (1.0, False) or found["RoBERTa", " "] != (1.0, True):
    sys.exit("not as described: the controls are not right everywhere")
if not 0.15 < found["RoBERTa", ""][0] < 0.85 or found["RoBERTa", ""][1]:
    sys.exit("not as described: targets without their space are compared rightly, or are warned of")
PY
