#!/usr/bin/env bash
# transformers 5.23.0 (Trainer), with accelerate 1.15.0 and torch 2.13.0
#
# One would guess: 4 parts of 4 examples (gradient_accumulation_steps=4) give the loss and the
# gradient of one batch of 16: Trainer divides by the number of parts, or the model divides its
# loss by the count of labels that Trainer hands it (num_items_in_batch).
# What happens: for classifiers neither does. They take num_items_in_batch without using it, their loss
# is the mean of a part, and Trainer, which believes it used, adds the means: loss and gradient
# are 4 times too large. With label_smoothing_factor, where the loss is Trainer's own, they are right.
# Who is hurt: AdamW hides it, clipping does not: max_grad_norm=1 (the default) clips at a quarter of
# what it says, the more parts the earlier. SGD takes 4 times the rate. And the training loss that is
# logged is 4 times that of evaluation, which looks like a model that does not learn.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 accelerate==1.15.0
cd "$tmp"
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
import transformers
from transformers import Trainer, TrainerCallback, TrainingArguments

examples = [{"input_ids": [2, 5 + n, 3], "labels": n % 2} for n in range(16)]
shape = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 32, "pad_token_id": 0}  # fmt: skip


class Norm(TrainerCallback):
    def on_pre_optimizer_step(self, arguments, state, control, model=None, **more):
        grads = [weight.grad.norm() for weight in model.parameters() if weight.grad is not None]
        self.norm = torch.stack(grads).norm().item()


def step(name, parts, **more):
    """Loss and norm of the gradient of one step over the 16 examples; nothing is dropped out."""
    config = getattr(transformers, f"{name}Config")(**shape)
    for key in vars(config):
        if "dropout" in key and isinstance(getattr(config, key), float):
            setattr(config, key, 0.0)
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForSequenceClassification")(config)
    arguments = TrainingArguments(
        "out", max_steps=1, per_device_train_batch_size=16 // parts, max_grad_norm=0, use_cpu=True,
        gradient_accumulation_steps=parts, report_to=[], save_strategy="no", disable_tqdm=True,
        logging_strategy="no", **more,
    )  # fmt: skip
    norm = Norm()
    trainer = Trainer(model=model, args=arguments, train_dataset=examples, callbacks=[norm])
    return trainer.train().training_loss, norm.norm


times = {}
for name, more in (
    ("Bert", {}), ("Roberta", {}), ("DebertaV2", {}), ("ModernBert", {}),
    ("Bert", {"label_smoothing_factor": 0.1}),
):  # fmt: skip
    (loss, norm), (parts_loss, parts_norm) = step(name, 1, **more), step(name, 4, **more)
    times[name, len(more)] = parts_loss / loss, parts_norm / norm
    print(f"{name}{', label smoothing' if more else ''}: one batch of 16: loss {loss:.3f}; "
          f"4 parts: loss {parts_loss:.3f}, gradient {parts_norm / norm:.2f} times as long")
smoothed = times.pop(("Bert", 1))
if any(abs(x - 4) > 0.1 for pair in times.values() for x in pair) or abs(smoothed[1] - 1) > 0.01:
    print("not as described")
    sys.exit(1)
PY
