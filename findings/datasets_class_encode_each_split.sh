#!/usr/bin/env bash
# datasets 5.2.0, DatasetDict.class_encode_column
#
# One would guess: called on a DatasetDict, it numbers the names of a label column once, and all
# splits use these numbers, as all of them stay one data set.
# What happens: each split is numbered by itself, by the names that it happens to hold. A test set in
# which one class does not occur numbers the others from 0: below, "neutral" is 2 in training and 1
# in the test set, which is "entailment" in training.
# Who is hurt: whoever evaluates on a smaller split, a rare class or one language: the scores of a
# good model are those of a bad one. Only where the two are joined (concatenate_datasets) is there an
# error. cast_column with a ClassLabel of all names numbers them alike.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q datasets==5.2.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

from datasets import ClassLabel, Dataset, DatasetDict

names = {"train": ["contradiction", "entailment", "neutral"], "test": ["entailment", "neutral"]}
data = DatasetDict({split: Dataset.from_dict({"label": names[split]}) for split in names})


def numbers(encoded):
    return {split: dict(zip(names[split], encoded[split]["label"][:])) for split in names}


each = numbers(data.class_encode_column("label"))
once = numbers(data.cast_column("label", ClassLabel(names=names["train"])))
for name, found in (("class_encode_column", each), ("cast_column(ClassLabel)", once)):
    print(f"{name}: train {found['train']}, test {found['test']}")
train, test = each["train"], each["test"]
if test["neutral"] != train["entailment"] or once["test"]["neutral"] != train["neutral"]:
    print("not as described")
    sys.exit(1)
PY
