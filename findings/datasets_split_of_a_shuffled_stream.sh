#!/usr/bin/env bash
# datasets 5.2.0 (IterableDataset), with transformers 5.23.0's Trainer, accelerate 1.15.0, torch 2.13.0
#
# One would guess: shuffled = stream.shuffle(seed=0), then shuffled.take(n) for validation and
# shuffled.skip(n) for training are two parts without a common example, whatever happens to them; the
# seed is fixed, and the documentation says to shuffle before such a split.
# What happens: in the first pass they are. With each further one (set_epoch, which Trainer calls) the
# training part is shuffled anew *before* its first n examples are skipped, while the validation part
# stays. From the second pass on most of the validation examples are trained on.
# Who is hurt: whoever streams data for more than one pass: validation loss falls, early stopping
# waits, the best checkpoint is the one that learnt its test by heart. Split first, by content or
# before shuffle, and shuffle the training part alone.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 accelerate==1.15.0 datasets==5.2.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

EXAMPLES, HELD_OUT, PASSES = 200, 40, 3
rows = [{"input_ids": [2, 10 + n, 3], "labels": n % 2} for n in range(EXAMPLES)]
stream = Dataset.from_list(rows).to_iterable_dataset()


def trained_on(validation, training):
    """How many validation examples each pass of Trainer over the training part reads."""
    held_out = {row["input_ids"][1] for row in validation}
    seen = []

    class Spy(BertForSequenceClassification):
        def forward(self, input_ids=None, attention_mask=None, labels=None, **more):
            seen.extend(input_ids[:, 1].tolist())
            return super().forward(input_ids, attention_mask, labels=labels, **more)

    model = Spy(BertConfig(vocab_size=300, hidden_size=16, num_hidden_layers=1,
                           num_attention_heads=2, intermediate_size=32))  # fmt: skip
    size = EXAMPLES - HELD_OUT
    arguments = TrainingArguments(
        "out", max_steps=PASSES * size // 8, per_device_train_batch_size=8, use_cpu=True,
        report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=training).train()
    assert len(seen) == PASSES * size
    return [len(held_out & set(seen[n * size : (n + 1) * size])) for n in range(PASSES)]


shuffled = stream.shuffle(seed=0, buffer_size=EXAMPLES)
leaking = trained_on(shuffled.take(HELD_OUT), shuffled.skip(HELD_OUT))
split_first = trained_on(
    stream.take(HELD_OUT), stream.skip(HELD_OUT).shuffle(seed=0, buffer_size=EXAMPLES)
)
print(f"validation examples of {HELD_OUT} read in training, by pass")
print("    shuffle, then take and skip:", leaking)
print("    take and skip, then shuffle:", split_first)
if leaking[0] or min(leaking[1:]) < HELD_OUT / 2 or any(split_first):
    print("not as described")
    sys.exit(1)
PY
