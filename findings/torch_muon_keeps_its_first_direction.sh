#!/usr/bin/env bash
# torch 2.13.0, torch.optim.Muon
#
# One would guess: Muon takes only the direction of a gradient, so the loss times 0.001 (a mean instead of a
# sum, another unit of the target, a small weight in a sum of losses) trains alike, in bfloat16 as in
# float32, with Nesterov's momentum or plain.
# What happens: for bfloat16 weights and nesterov=False it does not. The momentum is made orthogonal in
# bfloat16, and a momentum that is bfloat16 already is not copied first but divided by its norm in place:
# after each step the stored momentum has norm 1. Where gradients are smaller than that, as they are once a
# model has learnt something, the next ones (5% of each is added) hardly change it, and Muon goes on in its
# old direction. Below the loss ends at 0.04 in float32 and at 20 in bfloat16 where it was scaled. No error,
# no NaN.
# Who is hurt: whoever trains pure bfloat16 weights with plain momentum: the loss stops falling long before
# that of float32, and looks like the limit of bfloat16. float32 weights under autocast are not touched.
# (Known to the project since August 2026, pull request 194664; in 2.13.0 it is as described.)
# What to do instead: nesterov=True, the default, or float32 weights.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy
cd "$tmp"
OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch


def train(dtype, nesterov, scale):
    """A linear map is learnt from examples; the loss of the last steps, and the momentum's norm."""
    torch.manual_seed(0)
    target = torch.randn(16, 32)
    weight = torch.nn.Parameter(torch.zeros(16, 32, dtype=dtype))
    muon = torch.optim.Muon([weight], lr=0.02, weight_decay=0.0, momentum=0.95, nesterov=nesterov)
    losses = []
    for _ in range(500):
        x = torch.randn(64, 32)
        error = x.to(dtype) @ weight.T - (x @ target.T).to(dtype)
        loss = scale * error.float().square().mean()
        muon.zero_grad()
        loss.backward()
        muon.step()
        losses.append(loss.item() / scale)
    norm = muon.state[weight]["momentum_buffer"].float().norm().item()
    return sum(losses[-20:]) / 20, norm, weight.grad.float().norm().item()


final = {}
for dtype in (torch.float32, torch.bfloat16):
    for nesterov in (True, False):
        for scale in (1.0, 0.001):
            loss, norm, gradient = train(dtype, nesterov, scale)
            final[dtype, nesterov, scale] = loss
            print(f"{str(dtype):15} nesterov={nesterov!s:5} loss times {scale}: at the end loss {loss:5.2f}, "
                  f"norm of the momentum {norm:.4f}, of the last gradient {gradient:.4f}")  # fmt: skip
broken = final.pop((torch.bfloat16, False, 0.001))
if broken < 5 or max(final.values()) > 1:
    print("not as described")
    sys.exit(1)
PY
