#!/usr/bin/env bash
# gliner 0.2.29 (GLiNER.predict_entities, an encoder whose tokenizer has a limit), with transformers
# 5.16.0 and torch 2.13.0
#
# One would guess: a text is read up to max_len words (384 by default), and a longer one is cut with a
# warning, "Sentence of length ... has been truncated". The labels take nothing from it: so a user reads
# the code in issue 378, and asks to have it documented.
# What happens: the labels stand in front of the text in one sequence, and the tokenizer cuts that at its
# own limit (model_max_length, 512 for BERT) from the end, without a warning: the more labels, the less
# text. Words that are cut off keep their place, with a vector of zeros, and are scored like others. Below,
# max_len is 100, the limit 128, and a text has 40 words. With 5 labels all are read. With 55 only 15 are:
# other words from 20 on leave all scores as they are, and all words there have the same score. With 70
# the whole text is cut off, and 7 of the labels, too: they are missing in the answers.
# Who is hurt: whoever asks for many types at once, or for long descriptions of them: entities late in the
# text are never found (or the type with the best score for zeros is found everywhere), and the same text
# with fewer labels is right. Tokenizers without a limit, as DeBERTa's often are, cut nothing.
# What to do instead: count the tokens of all labels, each with its marker, and of the text together, and
# split the labels over several calls where they do not fit.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q gliner==0.2.29 torch==2.13.0 transformers==5.16.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import random
import sys
import warnings

import torch
from gliner import GLiNER, GLiNERConfig
from transformers import BertConfig, BertModel, BertTokenizerFast

LABELS = [f"type{number}" for number in range(70)]
FILLERS = "the a of near and then we saw it was very old in at".split()
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LABELS, *FILLERS]
LIMIT, MAX_LEN, READ = 128, 100, 20

open("vocab.txt", "w").write("\n".join(PIECES))
BertTokenizerFast("vocab.txt", model_max_length=LIMIT).save_pretrained("encoder")
torch.manual_seed(0)
BertModel(BertConfig(
    vocab_size=len(PIECES), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=64, max_position_embeddings=LIMIT,
)).save_pretrained("encoder")  # fmt: skip
model = GLiNER.from_config(GLiNERConfig(
    model_name="encoder", hidden_size=32, max_width=1, num_rnn_layers=0, max_len=MAX_LEN,
)).eval()  # fmt: skip


def scores(words, labels):
    """{(word's number, label): score} of all words, and how many warnings of a truncation came."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.predict_entities(
            " ".join(words), labels, threshold=0.0, flat_ner=False, multi_label=True
        )
    starts, position = {}, 0
    for number, word in enumerate(words):
        starts[position] = number
        position += len(word) + 1
    told = sum("truncated" in str(warning.message) for warning in caught)
    return {(starts[e["start"]], e["label"]): e["score"] for e in found}, told


draw = random.Random(0)
words = draw.choices(FILLERS, k=40)
other = words[:READ] + [FILLERS[(FILLERS.index(word) + 3) % len(FILLERS)] for word in words[READ:]]
seen = {}
for count in (5, 20, 55, 70):
    (first, told), (second, _) = scores(words, LABELS[:count]), scores(other, LABELS[:count])
    largest = max(abs(first[key] - second[key]) for key in first)
    late = len({round(score, 6) for (number, label), score in first.items()
                if number >= READ and label == LABELS[0]})  # fmt: skip
    seen[count] = largest, late, len({label for _, label in first})
    print(f"{count} labels: with other words from {READ} on, scores differ by {largest:.6f};",
          f"{late} different scores of words {READ} to 39 for one label;",
          f"{seen[count][2]} labels in the answers; warnings {told}")  # fmt: skip
    if told:
        sys.exit("not as described: there is a warning")
_, told = scores(draw.choices(FILLERS, k=MAX_LEN + 1), LABELS[:5])
print(f"5 labels and a text of {MAX_LEN + 1} words: warnings {told}")

if told != 1 or min(seen[5][0], seen[20][0]) < 1e-4 or min(seen[5][1], seen[20][1]) < 5:
    sys.exit("not as described: a text with few labels is not read, or a long one is cut in silence")
if max(seen[55][0], seen[70][0]) > 1e-6 or seen[55][1] != 1 or seen[55][2] != 55 or seen[70][2] > 65:
    sys.exit("not as described: the text with many labels is read")
PY
