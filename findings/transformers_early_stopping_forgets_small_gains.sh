#!/usr/bin/env bash
# transformers 5.23.0 (EarlyStoppingCallback with early_stopping_threshold), beside pytorch-lightning 2.6.6
# (EarlyStopping with min_delta), with accelerate 1.15.0 and torch 2.13.0
#
# One would guess: patience 3 and a threshold of 0.01 stop a run whose loss has not fallen by 0.01 for three
# evaluations, as in Lightning and Keras ("minimum change ... to qualify as an improvement"): three steps of
# 0.005 each are a fall of 0.015, so the run goes on.
# What happens: each evaluation is compared with the best before it, and that best is replaced by *every* better
# figure, however small the gain. So a single step must gain more than 0.01; small gains never add up. Below, a
# classifier's test loss falls at every evaluation, by 0.004 to 0.006 each. With an evaluation every 10 steps the
# run stops at the fourth, step 40: loss 0.54, accuracy 0.84. Lightning's rule with the same numbers goes on to
# step 500: loss 0.29, accuracy 0.90. With an evaluation every 40 steps the Trainer goes on to step 600, too: the
# more often one evaluates, the sooner the same run stops. Nothing is said; the last model is the best so far.
# (The documentation: "how much the specified metric must improve to satisfy early stopping conditions". It does
# not say since when. So it has been since pull request 8581 of 2020; issue 16620 there, closed, comes near it.)
# Who is hurt: whoever takes a threshold over from Lightning or Keras, or evaluates several times an epoch, with a
# small learning rate or in a long pre-training: it ends while the loss still falls, and looks converged. In a
# comparison of learning rates the slower ones are cut off first.
# What to do instead: early_stopping_threshold=0 (the default) with more patience; or a threshold for what is gained
# from one evaluation to the next, not over all that patience allows.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 accelerate==1.15.0 pytorch-lightning==2.6.6
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
from pytorch_lightning.callbacks import EarlyStopping
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    EarlyStoppingCallback,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

draw = torch.Generator().manual_seed(0)


def examples(size):
    """Texts of two classes; seven of ten words are from the half of the words that belongs to the class."""
    out = []
    for _ in range(size):
        label = int(torch.randint(2, (1,), generator=draw))
        other = (torch.rand(12, generator=draw) < 0.3).long()
        ids = 5 + torch.randint(50, (12,), generator=draw) + 50 * (label ^ other)
        ids[0] = 2
        out.append({"input_ids": ids, "labels": torch.tensor(label)})
    return out


train, test = examples(1024), examples(512)


def run(model, every, steps, rate, callbacks=()):
    """Step, loss and accuracy of each evaluation."""
    args = TrainingArguments(
        "out", max_steps=steps, per_device_train_batch_size=64, per_device_eval_batch_size=256,
        learning_rate=rate, lr_scheduler_type="constant", eval_strategy="steps", eval_steps=every,
        save_strategy="steps", save_steps=every, save_total_limit=1, load_best_model_at_end=True,
        logging_steps=10_000, report_to="none", disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    trainer = Trainer(
        model, args, train_dataset=train, eval_dataset=test, callbacks=list(callbacks),
        compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return [(entry["step"], entry["eval_loss"], entry["eval_accuracy"])
            for entry in trainer.state.log_history if "eval_loss" in entry]  # fmt: skip


def tuned(every, *callbacks):
    return run(BertForSequenceClassification.from_pretrained("start"), every, 600, 4e-5, callbacks)


torch.manual_seed(0)
start = BertForSequenceClassification(BertConfig(
    vocab_size=105, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=16, initializer_range=0.1,
))  # fmt: skip
run(start, 60, 60, 5e-4)
start.save_pretrained("start")

often = tuned(10, EarlyStoppingCallback(early_stopping_patience=3, early_stopping_threshold=0.01))
seldom = tuned(40, EarlyStoppingCallback(early_stopping_patience=3, early_stopping_threshold=0.01))
all_of_it = tuned(10)
rule = EarlyStopping("loss", patience=3, min_delta=0.01)
lightning = next((entry for entry in all_of_it if rule._evaluate_stopping_criteria(torch.tensor(entry[1]))[0]),
                 all_of_it[-1])  # fmt: skip
for name, entry in (("Trainer, evaluated every 10 steps", often[-1]), ("Trainer, evaluated every 40 steps", seldom[-1]),
                    ("Lightning's rule, every 10 steps", lightning), ("no early stopping", all_of_it[-1])):  # fmt: skip
    print(f"{name:34}: last step %3d, loss %.3f, accuracy %.3f" % entry)
print("losses before the Trainer stops:", *(f"{entry[1]:.3f}" for entry in often))

falls = [before[1] - after[1] for before, after in zip(often, often[1:])]
if often[-1][0] != 40 or not all(0 < fall < 0.01 for fall in falls) or sum(falls) < 0.01:
    sys.exit("not as described: small gains add up")
if min(seldom[-1][0], lightning[0]) < 200 or lightning[1] > often[-1][1] - 0.1:
    sys.exit("not as described: a control stops early, too")
PY
