#!/usr/bin/env bash
# mlxtend 0.25.0, evaluate.mcnemar (scipy 1.17.1, numpy 2.4.6)
#
# One would guess: two classifiers that answer alike on every example differ by p = 1, or the test
# says that there is nothing to compare; and whoever is right as often as the other has p = 1, too.
# What happens: called as its examples call it, it gives p = 0.0 for two that are the same: the
# correction for continuity takes 1 off a difference of 0, and (0 - 1)^2 / 0 is infinite (numpy warns
# of a division, once). With 5 examples won and 5 lost it gives 0.75 instead of 1. exact=True is right.
# Who is hurt: whoever compares many models or checkpoints in a loop and keeps p < 0.05: a model beside
# itself, or two that have collapsed onto one class, come out as the most significant difference.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q mlxtend==0.25.0 scipy==1.17.1 numpy==2.4.6
cd "$tmp"
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import numpy as np
from mlxtend.evaluate import mcnemar, mcnemar_table

truth = np.zeros(100, int)
one, other = truth.copy(), truth.copy()
one[:15], other[10:25] = 1, 1  # wrong at 15 each, 5 of them shared
better = truth.copy()
better[:5] = 1
found = {}
for name, a, b in (("the same", one, one), ("10 won, 10 lost", one, other), ("10 won", one, better)):
    table = mcnemar_table(y_target=truth, y_model1=a, y_model2=b)
    found[name] = float(mcnemar(ary=table)[1]), float(mcnemar(ary=table, exact=True)[1])
    print(f"{name:16} p = {found[name][0]:.4f}, exact p = {found[name][1]:.4f}")
same, equal, apart = found.values()
if same != (0.0, 1.0) or not (equal[0] < 0.9 and equal[1] == 1) or not max(apart) < 0.01:
    print("not as described")
    sys.exit(1)
PY
