#!/usr/bin/env bash
# torchmetrics 1.9.0 (BinaryAccuracy, BinaryAUROC, MultilabelF1Score and the like) with torch 2.13.0
#
# One would guess: logits may be given ("values outside [0,1] ... we consider the input to be logits and
# will auto apply sigmoid", says the documentation), and the figure is that of the data, in batches of 1, of
# 2 or of 64: a metric is there to be updated in parts.
# What happens: each update decides for itself. A part whose logits all happen to lie between 0 and 1 is
# taken for probabilities: a logit of 0.3, a probability of 0.57, becomes a probability of 0.3, so a "no",
# and stands below a logit of -0.8 of another part. Of one and the same 4000 logits the accuracy is 0.81 in
# parts of 64, 0.80 in parts of 2 and 0.78 one by one; the AUROC is 0.89, 0.88 and 0.84; the calibration error
# 0.08, 0.07 and 0.05, so better than it is. Given as probabilities, all are the same in all parts.
# Who is hurt: whoever evaluates with batches of one (long texts, little memory, a last batch of one), or a
# model that is still unsure (logits near 0, where the first figures of a training run are made): the figure
# depends on the batch size. Nothing is said. (Issues 1604, 2195 and 2329 there, open since 2023.)
# What to do instead: logits.sigmoid() (or softmax) before update.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 torchmetrics==1.9.0
cd "$tmp"
OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
from torchmetrics.classification import (
    BinaryAccuracy,
    BinaryAUROC,
    BinaryCalibrationError,
    MultilabelF1Score,
)

draw = torch.Generator().manual_seed(0)
labels = torch.randint(0, 2, (4000,), generator=draw)
logits = 0.9 * (2 * labels - 1) + torch.randn(4000, generator=draw)
METRICS = {
    "accuracy": BinaryAccuracy,
    "AUROC": BinaryAUROC,
    "calibration error": BinaryCalibrationError,
    "F1, two labels a text": lambda: MultilabelF1Score(num_labels=2, average="micro"),
}


def figure(name, values, size):
    """The metric of all values, given in parts of this size."""
    metric = METRICS[name]()
    shape = (-1, 2) if "two" in name else (-1,)
    for x, y in zip(values.view(shape).split(size), labels.view(shape).split(size)):
        metric.update(x, y)
    return metric.compute().item()


SIZES = (64, 2, 1)
for name in METRICS:
    given = [figure(name, logits, size) for size in SIZES]
    turned = [figure(name, logits.sigmoid(), size) for size in SIZES]
    print(f"{name:21} in parts of 64, 2, 1: logits", [round(v, 3) for v in given],
          "probabilities", [round(v, 3) for v in turned])  # fmt: skip
    if max(turned) - min(turned) > 1e-4 or abs(given[0] - turned[0]) > 1e-4:
        sys.exit("not as described: the probabilities are not the same in all parts")
    if abs(given[2] - turned[2]) < 0.01:
        sys.exit("not as described: one by one, the logits are right")
true = (logits > 0).eq(labels).float().mean().item()
print(f"right signs: {true:.3f}")
if abs(true - figure("accuracy", logits, 64)) > 1e-4:
    sys.exit("not as described: the accuracy in large parts is not the share of right signs")
PY
