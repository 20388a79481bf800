#!/usr/bin/env bash
# Package: torch 2.13.0, torch.nn.utils.clip_grad_norm_.
# One would guess: gradients whose entries are all finite are shortened to max_norm, whatever their
# number format; and where the norm is too large for it, an error, or at least a number that is none.
# What happens: the norm of float16 gradients is itself a float16, whose largest number is 65,504. A
# million entries of 100 have the norm 100,000: it becomes infinite, 1 / infinity is 0, and every
# gradient becomes exactly 0. No error; the same gradients in bfloat16 or float32 are clipped.
# Who is hurt: whoever trains a model loaded in float16 (many checkpoints say so in config.json), or
# multiplies the loss to keep float16 gradients from vanishing and clips before dividing: the steps
# with the largest gradients train nothing but weight decay and momentum. error_if_nonfinite=True
# turns it into an error.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0
cd "$tmp"
"$tmp/venv/bin/python" - <<'PYTHON' 2>/dev/null
import sys

import torch

found = {}
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    weights = [torch.nn.Parameter(torch.zeros(10_000, dtype=dtype)) for _ in range(100)]
    for weight in weights:
        weight.grad = torch.full_like(weight, 100.0)  # all finite; a norm of 100,000
    norm = torch.nn.utils.clip_grad_norm_(weights, max_norm=1.0)
    left = torch.stack([weight.grad.float().norm() for weight in weights]).norm()
    print(f"{dtype}: norm {norm.item():,.0f}, after clipping to 1: {left.item():.3f}")
    found[dtype] = left.item()

if found.pop(torch.float16) != 0 or not all(0.9 < norm < 1.1 for norm in found.values()):
    sys.exit("float16 gradients of a large norm are clipped like others now, or fail: no finding")
PYTHON
