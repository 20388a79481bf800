#!/usr/bin/env bash
# numpy 2.4.6, pandas 3.1.1, polars 2.1.0 (beside scipy 1.17.1)
#
# One would guess: the correlation of two constant columns is 0/0, and nan everywhere.
# What happens: three times 0.2 beside three times 0.4 correlate by 1.0 in numpy.corrcoef, in
# pandas' Series.corr and in polars' corr, and beside three times 1.4 by -1.0: the mean of three
# 0.2 is rounded, and what is left of each number is the same rounding error. pandas'
# DataFrame.corr and scipy say nan of the same numbers. Whole numbers give nan everywhere, so that
# a trial with them shows nothing.
# Who is hurt: whoever correlates by groups (annotator, prompt, seed) where a rater or a collapsed
# model always gives the same number: such groups count as perfect agreement, or disagreement.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q numpy==2.4.6 pandas==3.1.1 polars==2.1.0 scipy==1.17.1
"$tmp/venv/bin/python" - <<'PYTHON'
import math
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
from scipy import stats

warnings.simplefilter("ignore")


def correlations(a, b):
    table, frame = pd.DataFrame({"a": a, "b": b}), pl.DataFrame({"a": a, "b": b})
    return {
        "numpy.corrcoef": np.corrcoef(a, b)[0, 1],
        "pandas Series.corr": table["a"].corr(table["b"]),
        "polars corr": frame.select(pl.corr("a", "b")).item(),
        "pandas DataFrame.corr": table.corr().loc["a", "b"],
        "scipy pearsonr": stats.pearsonr(a, b)[0],
    }


wrong = []
for a, b, expected in ((0.2, 0.4, 1.0), (0.2, 1.4, -1.0), (1.0, 2.0, math.nan)):
    print(f"three times {a} beside three times {b}")
    for number, (name, r) in enumerate(correlations([a] * 3, [b] * 3).items()):
        print(f"    {name:22} {r:5.2f}")
        described = expected if number < 3 else math.nan
        if not (math.isnan(r) and math.isnan(described) or abs(r - described) < 1e-6):
            wrong.append(f"{name} of {a} and {b}: {r}, not {described}")
if wrong:
    sys.exit("It behaves differently now: " + "; ".join(wrong))
PYTHON
