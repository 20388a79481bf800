#!/usr/bin/env bash
# Package: bert-tensorflow 1.0.4 (Google's own BERT), bert.run_squad.write_predictions, run on
# tensorflow-cpu 2.21.0 through its v1 interface.
# One would guess: of a passage that is read in several overlapping windows, the answer is the span
# with the highest start + end logit of all windows.
# What happens: a span counts only in the one window in which its *first* token has most context (the
# larger minimum of tokens to its left and right); the same span may score higher in another window,
# and a better span that starts near a window's edge is never seen. Its last token may stand anywhere.
# Below, the best span of all windows is not the answer for many passages.
# Who is hurt: whoever compares EM and F1 of run_squad.py with those of a program that takes the best
# span of all windows, on passages longer than one window.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tensorflow-cpu==2.21.0 bert-tensorflow==1.0.4
cd "$tmp"
TF_CPP_MIN_LOG_LEVEL=3 "$tmp/venv/bin/python" - <<'PYTHON'
import json
import random
import sys
import types

import tensorflow.compat.v1 as tf

contrib = types.ModuleType("tensorflow.contrib")  # imported there, and not needed here
for name in ("layers", "tpu", "cluster_resolver", "data"):
    setattr(contrib, name, types.ModuleType(name))
sys.modules.update({"tensorflow": tf, "tensorflow.contrib": contrib})
tf.contrib = contrib
from bert import run_squad, tokenization

tf.logging.set_verbosity(tf.logging.ERROR)
tf.flags.FLAGS(["run", "--bert_config_file=-", "--vocab_file=-", "--output_dir=."])

LENGTH, STRIDE, LONGEST = 24, 5, 30
words = "the cat sat on mat dog ran fast blue sea".split()
with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
tokenizer, draw = tokenization.FullTokenizer("vocab.txt", True), random.Random(0)

examples = [
    run_squad.SquadExample(str(n), "the cat sat", [draw.choice(words) for _ in range(40)], "", -1, -1)
    for n in range(50)
]
windows = []
run_squad.convert_examples_to_features(
    examples, tokenizer, LENGTH, STRIDE, 64, False, windows.append
)
logits = [
    run_squad.RawResult(w.unique_id, *([draw.gauss(0, 1) for _ in range(LENGTH)] for _ in range(2)))
    for w in windows
]
run_squad.write_predictions(
    examples, windows, logits, 10_000, LONGEST, True, "answers.json", "n_best.json", "null.json"
)
with open("answers.json") as file:
    answers = json.load(file)

best = {}
for window, scores in zip(windows, logits):
    places = sorted(window.token_to_orig_map)  # the passage's tokens in this window
    for i in places:
        for j in (j for j in places if i <= j < i + LONGEST):
            score = scores.start_logits[i] + scores.end_logits[j]
            name = examples[window.example_index].qas_id
            if score > best.get(name, (-99.0, ""))[0]:
                best[name] = score, " ".join(window.tokens[i : j + 1])

different = sum(answers[name] != text for name, (_, text) in best.items())
print(f"{len(windows)} windows of {len(examples)} passages; the best span of all windows is not "
      f"the answer for {different} passages")
if not different:
    sys.exit("run_squad takes the best span of all windows: the finding does not hold any more")
PYTHON
