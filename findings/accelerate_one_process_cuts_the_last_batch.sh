#!/usr/bin/env bash
# accelerate 1.15.0 (Accelerator.gather_for_metrics) on one process, with torch 2.13.0
#
# One would guess: gather_for_metrics "potentially drops duplicates in the last batch if on a distributed
# system". On one process there are no duplicates, so what goes in comes out, whatever its shape.
# What happens: in the last batch everything is cut to as many rows as that batch has *texts*, on one process,
# too. For one prediction a text that changes nothing. Predictions of a tagger or of a masked language model
# are often flattened first, to the tokens that count (predictions[labels != -100]). Of those the last batch
# keeps as many as it has texts: 36 of 956 with batches of 64 below, and with one batch of 128 for all 100 texts
# 100 of 1751, which are the first texts' only. The accuracy of all tokens is 0.79. Measured so it is 0.79,
# 0.80, 0.85 or 0.92 by the batch size (the short texts come first, and are easier). Predictions and labels are
# cut alike, so nothing is raised or warned of. Where the batch size divides the number of texts nothing is cut.
# Who is hurt: whoever evaluates tokens, masked positions, windows of long texts or the choices of a question
# in a loop of their own, prepared for several GPUs and run on one: the fewer texts, and the larger the batch,
# the less is measured. Two runs with different batch sizes are not comparable.
# (Pull request 1496 made it so in 2023, for Trainer's repeated loss; the documentation still says "if on a
# distributed system". transformers' issue 30357, closed, met it with boxes in images, and accelerate's pull
# request 2710, which answers it, says that nothing is adjusted outside of distributed runs. In 1.15.0 it is.)
# What to do instead: gather padded tensors with one row a text, and flatten after it.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 accelerate==1.15.0
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

TEXTS, LONGEST, CLASSES, PAD = 100, 32, 5, -100
draws = torch.Generator().manual_seed(0)
lengths = torch.randint(3, LONGEST, (TEXTS,), generator=draws).sort().values
counts = torch.arange(LONGEST) < lengths[:, None]
labels = torch.randint(0, CLASSES, (TEXTS, LONGEST), generator=draws)
# a tagger that errs more often in longer texts
wrong = torch.rand(TEXTS, LONGEST, generator=draws) < lengths[:, None] / 100
predictions = torch.where(wrong, (labels + 1) % CLASSES, labels)
labels = labels.masked_fill(~counts, PAD)

accelerator = Accelerator(cpu=True)
assert accelerator.num_processes == 1


def measured(batch_size, flatten_first):
    """How many tokens come out of gather_for_metrics, and their accuracy."""
    loader = DataLoader(TensorDataset(predictions, labels), batch_size=batch_size)
    loader = accelerator.prepare(loader)
    right = []
    for pred, gold in loader:
        if flatten_first:
            pred, gold = pred[gold != PAD], gold[gold != PAD]
        pred, gold = accelerator.gather_for_metrics((pred, gold))
        right.append((pred == gold)[gold != PAD])
    right = torch.cat(right)
    return len(right), round(right.float().mean().item(), 3)


sizes = (1, 16, 25, 64, 100, 128)
rows = {size: measured(size, flatten_first=False) for size in sizes}
flat = {size: measured(size, flatten_first=True) for size in sizes}
print(f"{TEXTS} texts, {int(counts.sum())} tokens, one process")
for size in sizes:
    print(f"batches of {size:3}: one row a text {rows[size]}, flattened first {flat[size]}")
whole = rows[1]
if set(rows.values()) != {whole} or any(flat[size] != whole for size in (1, 25, 100)) or (
    flat[128][0] != TEXTS or flat[64][0] >= whole[0] or flat[16][0] >= whole[0]
    or flat[128][1] < whole[1] + 0.1
):
    print("not as described")
    sys.exit(1)
PY
