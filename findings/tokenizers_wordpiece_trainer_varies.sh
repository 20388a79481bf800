#!/usr/bin/env bash
# tokenizers 0.23.3, WordPieceTrainer (which BertWordPieceTokenizer.train uses, too)
#
# One would guess: the same text and settings give the same vocabulary, on one machine and in one
# version, as they do with BpeTrainer. Nothing is drawn at random.
# What happens: each process makes another one. Letters inside of words (##a) get their ids in the
# order of a hash table that is seeded anew in every process, and pairs that are equally frequent are
# settled by these ids. Of 1,000 pieces some 80 to 160 have another id, and a few pieces are others
# altogether. The size is the same, so nothing complains.
# Who is hurt: whoever trains the tokenizer again instead of saving it, or on each machine of a run:
# a checkpoint then reads the rows of other pieces. And whoever compares seeds of a recipe that begins
# with the vocabulary. Giving the letters as special_tokens, in order, makes it the same each time.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tokenizers==0.23.3
cat > "$tmp/train.py" <<'PY'
import argparse
import json
import sys
import unittest.case

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

settings = {"vocab_size": 1_000, "special_tokens": ["[UNK]"], "show_progress": False}
kinds = {
    "WordPiece": (models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(**settings)),
    "BPE": (models.BPE(unk_token="[UNK]"), trainers.BpeTrainer(**settings)),
}
text = []
for module in (argparse, json, unittest.case):
    with open(module.__file__, encoding="utf-8") as file:
        text += file.read().lower().splitlines()
result = {}
for name, (model, trainer) in kinds.items():
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(text, trainer)
    result[name] = tokenizer.get_vocab()
json.dump(result, sys.stdout)
PY
for run in 1 2 3; do "$tmp/venv/bin/python" "$tmp/train.py" > "$tmp/$run.json"; done
"$tmp/venv/bin/python" - "$tmp" <<'PY'
import json
import sys

runs = [json.load(open(f"{sys.argv[1]}/{run}.json")) for run in (1, 2, 3)]
moved = {}
for name in runs[0]:
    first = runs[0][name]
    others = [run[name] for run in runs[1:]]
    moved[name] = [sum(other.get(piece) != id for piece, id in first.items()) for other in others]
    gone = [len(first.keys() - other.keys()) for other in others]
    print(f"{name}: {len(first)} pieces; another id than in the first process: {moved[name]}; "
          f"not there at all: {gone}")
if not any(moved["WordPiece"]) or any(moved["BPE"]):
    raise SystemExit("tokenizers no longer behaves as described here")
PY
