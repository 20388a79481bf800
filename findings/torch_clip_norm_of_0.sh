#!/usr/bin/env bash
# Package: torch 2.13.0 (torch.nn.utils.clip_grad_norm_), beside transformers 5.23.0's Trainer with
# accelerate 1.15.0.
# One would guess: a bound of 0 means no clipping, as max_grad_norm=0 means to the Trainer (and
# clip-norm 0.0 to fairseq, gradient_clipping 0.0 to DeepSpeed).
# What happens: torch's own function takes 0 at its word: every gradient becomes 0 and nothing is
# learnt but weight decay; -1 is taken, too, and turns every gradient round: the loss is climbed. Both
# without an error, and the norm that is returned looks as always.
# Who is hurt: whoever moves a recipe with "clip = 0" (RoBERTa's, for one) from such a program to a
# loop of his own.
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


def moved_by_trainer(bound):
    """The largest change of a weight in one step, without weight decay."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**shape))
    before = [weight.detach().clone() for weight in model.parameters()]
    arguments = TrainingArguments(
        "out", max_steps=1, max_grad_norm=bound, per_device_train_batch_size=8, use_cpu=True,
        report_to=[], save_strategy="no", disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=texts).train()
    return max(float((x - y).abs().max()) for x, y in zip(model.parameters(), before))


def clipped_by_torch(bound):
    """What becomes of the gradient (3, 4), and the norm that is returned."""
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    norm = torch.nn.utils.clip_grad_norm_([weight], bound)
    return weight.grad.tolist(), norm.item()


trained = moved_by_trainer(0.0)
print(f"Trainer, max_grad_norm=0: weights moved by up to {trained:.1e}")
found = {bound: clipped_by_torch(bound) for bound in (1.0, 0.0, -1.0)}
for bound, (gradient, norm) in found.items():
    print(f"torch, max_norm={bound:g}: the gradient (3, 4) becomes {gradient}, norm {norm:g}")
if not trained or any(found[0.0][0]) or not all(g < 0 for g in found[-1.0][0]):
    sys.exit("0 is no clipping in both now, or a negative bound is refused: no finding")
PYTHON
