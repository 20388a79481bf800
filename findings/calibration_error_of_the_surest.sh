#!/usr/bin/env bash
# torchmetrics 1.9.0 (with torch 2.13.0)
#
# One would guess: calibration_error with n_bins=10 sorts the probabilities into ten bins, the last
# from 0.9 to 1 with 1 included, as in the paper that it names (Guo et al. 2017: (0.9, 1.0]).
# What happens: a probability of exactly 1 stands in an eleventh bin of its own. A model that is
# right 96 times of 100 with a mean probability of 0.96, perfectly calibrated in the only bin it
# uses, gets an error of 0.08, because in half of the answers its softmax has reached 1.
# Who is hurt: whoever measures overconfident models. In float32 the softmax of two classes is
# exactly 1 from a difference of 18 on, in float16 and bfloat16 far earlier, so the same model has
# another calibration error in another precision, and another one than in the papers.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torchmetrics==1.9.0 torch==2.13.0
"$tmp/venv/bin/python" - <<'PYTHON'
import math
import sys

import torch
from torchmetrics.functional.classification import multiclass_calibration_error

sure, less_sure = 40.0, math.log(0.92 / 0.08)  # differences of two logits: P = 1 and P = 0.92
logits = torch.tensor([[0.0, sure]] * 50 + [[0.0, less_sure]] * 50)
labels = torch.tensor([1] * 46 + [0] * 4 + [1] * 50)


def by_definition(confidence, right, bins):
    """Guo et al. 2017, equation 3: bins (low, high]."""
    error = 0.0
    for n in range(bins):
        inside = (confidence > n / bins) & (confidence <= (n + 1) / bins)
        if inside.any():
            gap = (right[inside].double().mean() - confidence[inside].double().mean()).abs()
            error += gap.item() * inside.double().mean().item()
    return error


probabilities = logits.softmax(-1)
confidence, answer = probabilities.max(-1)
theirs = multiclass_calibration_error(probabilities, labels, num_classes=2, n_bins=10).item()
ours = by_definition(confidence, answer == labels, 10)
just_below = probabilities.clamp(max=1 - 1e-6)
moved = multiclass_calibration_error(just_below, labels, num_classes=2, n_bins=10).item()
print(f"{int((confidence == 1).sum())} of 100 probabilities are exactly 1")
print(f"torchmetrics, 10 bins                         {theirs:.4f}")
print(f"torchmetrics, 1 lowered by a millionth        {moved:.4f}")
print(f"the definition, ten bins (low, high]          {ours:.4f}")
if not (abs(theirs - 0.08) < 1e-3 and moved < 1e-3 and ours < 1e-3):
    sys.exit("It behaves differently now: expected 0.08, 0 and 0.")
PYTHON
