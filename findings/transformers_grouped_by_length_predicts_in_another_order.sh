#!/usr/bin/env bash
# transformers 5.23.0 (Trainer, train_sampling_strategy="group_by_length"), with accelerate 1.15.0 and
# torch 2.13.0
#
# One would guess: train_sampling_strategy="group_by_length" is about training ("the sampler to use for
# the training dataloader", says its documentation); row i of trainer.predict(data) is example i of data.
# What happens: evaluate and predict draw by length, too: shuffled, then sorted within parts. Nothing
# puts the rows back. predictions and label_ids are in one and the same order, which is not that of the
# data and is given nowhere. So every figure of compute_metrics is right (here an accuracy of 1), and a file
# of texts with their predictions is wrong: of 60 texts, none gets its own logits, and 30 get the right
# class, which is chance. Without the setting all 60 get both.
# Who is hurt: whoever writes predictions beside texts (a submission, an error analysis, pseudo-labels,
# distillation, out-of-fold features), or gives them to a function that goes through the data beside them,
# as question answering does to turn start and end logits into answers. The metric, which is right, hides
# it. Pull request 33514 there brought it in 2024, to make evaluation faster (group_by_length=True of
# transformers 4); 48025 in 2026 made the order the same each time.
# What to do instead: predict with another Trainer that has TrainingArguments without the setting; or set
# trainer.args.train_sampling_strategy = "random" before predict. Compare label_ids with the data's labels.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 tokenizers==0.23.3 accelerate==1.15.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

WORDS = [f"word{i}" for i in range(30)]
open("vocab.txt", "w").write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
tokenizer = BertTokenizerFast("vocab.txt")
torch.manual_seed(0)
model = BertForSequenceClassification(BertConfig(
    vocab_size=35, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
    max_position_embeddings=32, initializer_range=0.5,
)).eval()  # fmt: skip
numbers = np.random.default_rng(0)
texts = [" ".join(numbers.choice(WORDS, size)) for size in numbers.integers(1, 25, 60)]
with torch.no_grad():
    logits = torch.cat([model(**tokenizer(text, return_tensors="pt")).logits for text in texts])
    shift = (logits[:, 1] - logits[:, 0]).median()  # half of the texts in each class
    model.classifier.bias[0] += shift
    logits[:, 0] += shift
# The labels are what the model says of each text alone: so it is always right.
classes = logits.argmax(1).numpy()
data = [{**tokenizer(text), "labels": int(label)} for text, label in zip(texts, classes)]


def predict(strategy, at_predict=None):
    """Accuracy by compute_metrics; texts with their own logits; texts with their own class."""
    args = TrainingArguments(
        "out", train_sampling_strategy=strategy, per_device_eval_batch_size=8, use_cpu=True,
        report_to="none", disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model, args, processing_class=tokenizer, data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
    )  # fmt: skip
    args.train_sampling_strategy = at_predict or strategy
    found = trainer.predict(data)
    own = (np.abs(found.predictions - logits.numpy()).max(1) < 1e-4).sum()
    right = (found.predictions.argmax(1) == classes).sum()
    return found.metrics["test_accuracy"], int(own), int(right)


seen = {name: predict(name) for name in ("random", "sequential", "group_by_length")}
seen["group_by_length, random at predict"] = predict("group_by_length", "random")
for name, (accuracy, own, right) in seen.items():
    print(f"{name:34}: accuracy by compute_metrics {accuracy:.2f}; rows that are the text's own: {own}",
          f"of 60; right classes: {right} of 60")  # fmt: skip

wrong = seen.pop("group_by_length")
if set(seen.values()) != {(1.0, 60, 60)}:
    sys.exit("not as described: the controls are not in order")
if wrong[0] != 1.0 or wrong[1] > 20 or wrong[2] > 45:
    sys.exit("not as described: the rows are those of the data")
PY
