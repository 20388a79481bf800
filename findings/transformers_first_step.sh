#!/usr/bin/env bash
# Package: transformers 5.23.0 (with torch 2.13.0 and accelerate 1.15.0), Trainer with warm-up.
# One would guess: with warmup_steps=1 the first step already trains, at a small rate or the full one.
# What happens: the schedule gives step number n of a warm-up the rate n / warmup_steps, counted from
# 0, so the first step has rate 0: its batch is read, its loss is logged, and no weight moves. A run
# of one step returns the very weights it began with; a warm-up of w steps has w - 1 that train.
# Who is hurt: short runs (few-shot fine-tuning, tests that "one step changes the model", a large
# accumulated batch of which there are ten in all): the first batch is thrown away.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 accelerate==1.15.0
cd "$tmp"
"$tmp/venv/bin/python" - <<'PYTHON' 2>/dev/null
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 32, "vocab_size": 50}  # fmt: skip
texts = [{"input_ids": [2, 5 + n % 2, 3], "labels": n % 2} for n in range(16)]


def moved(steps, warmup):
    """The largest change of a weight in a run of `steps` steps."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**shape))
    before = [weight.detach().clone() for weight in model.parameters()]
    arguments = TrainingArguments(
        "out", max_steps=steps, warmup_steps=warmup, per_device_train_batch_size=8,
        use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=texts).train()
    return max(float((x - y).abs().max()) for x, y in zip(model.parameters(), before))


found = {(steps, warmup): moved(steps, warmup) for steps, warmup in ((1, 0), (1, 1), (2, 1))}
for (steps, warmup), change in found.items():
    print(f"{steps} step(s), warm-up {warmup}: weights moved by up to {change:.1e}")
if found[1, 1] != 0 or not found[1, 0] or not found[2, 1]:
    sys.exit("the first step of a warm-up trains now: the finding does not hold any more")
PYTHON
