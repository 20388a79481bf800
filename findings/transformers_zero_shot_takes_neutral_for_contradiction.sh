#!/usr/bin/env bash
# transformers 5.23.0 (zero-shot-classification pipeline, multi_label=True or one label), with torch 2.13.0
#
# One would guess: with multi_label=True the score of a label is "entailment score vs. the contradiction
# score", as the documentation says, whatever the order of the model's classes: the pipeline looks
# "entailment" up in the model's config by its name, and says that this is all it needs there.
# What happens: only entailment is looked up. Contradiction is class 0, or the last one where entailment is
# class 0. In three of the six orders of three classes that is *neutral*: all that begin with neutral, and
# (entailment, contradiction, neutral), JNLI's order. One model with its classes in another order gives 0.02
# instead of 0.95 for a label that the text does not settle, and 0.75 instead of 0.02 for a label that the
# text *denies*, since 0.015 beats a neutral of 0.005. The same with one candidate label, without
# multi_label. With several and multi_label=False contradiction is not used, and all orders agree. Nothing
# is said.
# Who is hurt: whoever trains an NLI model with classes in an order of their own and classifies texts with
# it: its NLI accuracy is right, zero-shot labels that a text denies come out as true, and thresholds
# found with one checkpoint do not hold for another.
# What to do instead: train or permute to (contradiction, neutral, entailment) or
# (entailment, neutral, contradiction).
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 tokenizers==0.23.3
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys
from itertools import permutations

import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast, pipeline

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] nobody played this example is sport food .".split()
SETTLED_NOT = {"entailment": 0.019, "neutral": 0.98, "contradiction": 0.001}
DENIED = {"entailment": 0.015, "neutral": 0.005, "contradiction": 0.98}
open("vocab.txt", "w").write("\n".join(PIECES))
tokenizer = BertTokenizerFast("vocab.txt")


def classifier(order, probabilities):
    """The pipeline with an NLI model that has these probabilities for every pair, its classes in order."""
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(PIECES), hidden_size=8, num_hidden_layers=0, num_attention_heads=1,
        id2label=dict(enumerate(order)), label2id={name: number for number, name in enumerate(order)},
    )).eval()  # fmt: skip
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor([probabilities[name] for name in order]).log())
    pair = tokenizer("nobody played", "this example is sport.", return_tensors="pt")
    answer = model(**pair).logits.softmax(-1)[0].tolist()
    assert all(abs(p - probabilities[name]) < 1e-3 for p, name in zip(answer, order))
    return pipeline("zero-shot-classification", model=model, tokenizer=tokenizer)


results = {}
for order in permutations(SETTLED_NOT):
    row = []
    for probabilities in (SETTLED_NOT, DENIED):
        classify = classifier(order, probabilities)
        several = classify("nobody played", ["sport", "food"], multi_label=True)["scores"][0]
        one = classify("nobody played", ["sport"])["scores"][0]
        assert abs(several - one) < 1e-4
        row.append(several)
    results[order] = row
    print(f"{', '.join(order):36}: not settled {row[0]:.3f}, denied {row[1]:.3f}")

meant = [p["entailment"] / (p["entailment"] + p["contradiction"]) for p in (SETTLED_NOT, DENIED)]
print(f"{'entailment against contradiction':36}: not settled {meant[0]:.3f}, denied {meant[1]:.3f}")
wrong = [o for o, row in results.items() if max(abs(a - b) for a, b in zip(row, meant)) > 0.5]
if sorted(wrong) != sorted(o for o in results if o[0] == "neutral" or o[1:] == ("contradiction", "neutral")):
    sys.exit("not as described: other orders are wrong, or none")
PY
