#!/usr/bin/env bash
# Package: torch 2.13.0 (torch.nn.functional.scaled_dot_product_attention, fused, on a processor).
# One would guess: a row whose keys are all hidden by a mask of the smallest finite number is the mean
# of all values, and so its gradient is the mean's: 1/T of it to each value.
# What happens: forwards it is the mean. Backwards each value gets the whole gradient, T times as much
# as the same two products around a softmax give: the kernel computes the weights anew from the
# logarithm of their sum, and min + log(T) is min.
# Who is hurt: whoever's loss reads such rows. Local attention has them wherever padding is longer
# than half of the window, and the softmax over start positions (question answering) reads padding.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy
cd "$tmp"
"$tmp/venv/bin/python" - <<'PYTHON' 2>/dev/null
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
times = []
for tokens in (4, 32, 128):
    query, key, value = (torch.randn(1, 1, tokens, 8, requires_grad=True) for _ in range(3))
    hidden = torch.full((tokens, tokens), torch.finfo(torch.float32).min)
    fused = F.scaled_dot_product_attention(query, key, value, attn_mask=hidden)
    plain = (query @ key.mT / 8**0.5 + hidden).softmax(-1) @ value
    assert torch.allclose(fused, plain, atol=1e-6)
    upstream = torch.randn_like(value)
    one, other = (torch.autograd.grad(out, value, upstream)[0] for out in (fused, plain))
    times.append((one / other).mean().item())
    print(f"{tokens:4} tokens: forwards equal, the value's gradient {times[-1]:.1f} times the plain one")
if max(times) < 2:
    sys.exit("the gradient is the same both ways now: no finding")
PYTHON
