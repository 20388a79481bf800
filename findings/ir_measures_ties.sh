#!/usr/bin/env bash
# ir_measures 0.4.3 (with pytrec-eval-terrier 0.5.11)
#
# One would guess: RR and RR@10 of a ranking of four documents are one number, whatever they are
# called, and equal scores are broken one way within a call.
# What happens: four documents of one score, of which one is relevant. By its name alone it gets
# RR 0.25 and RR@10 1.0, or RR 1.0 and RR@10 0.25, in one call: RR comes from another program than
# RR@10, and they break ties by names in opposite orders.
# Who is hurt: whoever evaluates scores with many ties (BM25 with few query words, binary or int8
# codes, vectors that have collapsed): ids in the order of relevance make a perfect or a bad MRR.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q ir_measures==0.4.3 pytrec-eval-terrier==0.5.11
"$tmp/venv/bin/python" - <<'PYTHON'
import sys

from ir_measures import RR, calc_aggregate

run = {"q": dict.fromkeys(["a", "b", "c", "d"], 1.0)}
seen = []
for relevant in ("a", "d"):
    figures = calc_aggregate([RR, RR @ 10], {"q": {relevant: 1}}, run)
    print(f"{relevant} is relevant:", {str(name): value for name, value in figures.items()})
    seen.append((figures[RR], figures[RR @ 10]))
print("the mean over all orders is", sum(1 / rank for rank in (1, 2, 3, 4)) / 4)
if any(plain == cut for plain, cut in seen):
    sys.exit("It behaves differently now: RR and RR@10 agree.")
PYTHON
