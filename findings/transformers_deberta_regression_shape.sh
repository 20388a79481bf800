#!/usr/bin/env bash
# transformers 5.23.0, DebertaForSequenceClassification and DebertaV2ForSequenceClassification,
# with torch 2.13.0
#
# Guess: labels add a loss to what a classifier returns, and leave its logits as they are: (batch, 1)
# with num_labels=1, as in BERT, RoBERTa, ELECTRA and the others.
# What happens: in both DeBERTas, with num_labels=1 and problem_type not set (the default), logits are
# (batch, 1) without labels and (batch,) with them. With problem_type="regression" they stay (batch, 1).
# Who is hurt: whoever reads predictions of a regression (STS-B) from the same call as the loss: what
# subtracts labels of (batch, 1), or takes column 0, broadcasts or fails for this member alone.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.23.0
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys
import torch
import transformers

ids, labels = torch.tensor([[1, 20, 21, 2], [1, 30, 31, 2]]), torch.tensor([[0.5], [1.5]])
size = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 64, "num_labels": 1}
shapes = {}
for name in ("Bert", "Electra", "Deberta", "DebertaV2"):
    for problem in (None, "regression"):
        config = getattr(transformers, f"{name}Config")(**size, problem_type=problem)
        model = getattr(transformers, f"{name}ForSequenceClassification")(config).eval()
        with torch.no_grad():
            pair = [tuple(model(ids, **more).logits.shape) for more in ({}, {"labels": labels})]
        shapes[name, problem] = pair
        print(f"{name}, problem_type={problem}: logits {pair[0]} without labels, {pair[1]} with")
usual, other = [(2, 1), (2, 1)], [(2, 1), (2,)]
right = {key: other if key[0].startswith("Deb") and key[1] is None else usual for key in shapes}
if shapes != right:
    print("not as described")
    sys.exit(1)
PY
