#!/usr/bin/env bash
# transformers 5.23.0 (Trainer, optim="schedule_free_adamw" or "schedule_free_sgd") with schedulefree 1.4.1,
# accelerate 1.15.0 and torch 2.13.0
#
# One would guess: warmup_steps=0.03 is a warm-up over 3% of the steps, "an integer or a float in [0, 1)",
# whatever the optimiser. It is what transformers 5 has in place of warmup_ratio.
# What happens: for every other optimiser the fraction becomes a number of steps. Schedule-free optimisers,
# which warm up by themselves, get 0.03 as it stands: the first step's rate is (0 + 1) / 0.03 times
# learning_rate, 33 times too large instead of 3% of it, and there is no warm-up. Below, a trained
# classifier's test loss goes from 0.28 to 1.84 in that one step, and its accuracy from 0.88 to 0.42; with
# warmup_steps=3 of 100 steps it stays. The learning rate in Trainer's log is learning_rate at every step.
# Who is hurt: whoever fine-tunes without a schedule (lr_scheduler_type="constant"), as these optimisers
# ask, and with a fraction: the pre-trained weights are shaken in the first step, the smaller the fraction
# the more. It looks like a rate that is too high, or an optimiser that does not suit. The default
# scheduler, "linear", hides it: its own first rate is 0, and then its decay is in force, too.
# schedule_free_radam takes no warm-up.
# What to do instead: give schedule-free optimisers whole warmup_steps.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 accelerate==1.15.0 schedulefree==1.4.1
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import copy
import sys

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback
from transformers import PrinterCallback, TrainingArguments

transformers.logging.set_verbosity_error()
config = BertConfig(
    vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=64, max_position_embeddings=32,
)  # fmt: skip
chance = torch.Generator().manual_seed(0)
ids = torch.randint(5, 60, (1024, 12), generator=chance)
labels = ((ids < 20).sum(1) > 3).long()  # four small numbers or more
noisy = torch.where(torch.rand(1024, generator=chance) < 0.1, 1 - labels, labels)
train = [{"input_ids": row, "labels": label} for row, label in zip(ids[:768], noisy[:768])]


def test(model):
    with torch.no_grad():
        result = model.eval()(input_ids=ids[768:], labels=labels[768:])
    right = (result.logits.argmax(-1) == labels[768:]).float().mean()
    return result.loss.item(), right.item()


class FirstStep(TrainerCallback):
    def on_optimizer_step(self, args, state, control, optimizer, **_):
        if state.global_step == 0:
            group = optimizer.param_groups[0]
            self.rate = group.get("scheduled_lr", group["lr"])

    def on_step_end(self, args, state, control, model, **_):
        if state.global_step == 1:
            self.loss, self.accuracy = test(model)


def run(model, optim, warmup, steps, rate, scheduler):
    first = FirstStep()
    arguments = TrainingArguments(
        "out", optim=optim, warmup_steps=warmup, max_steps=steps, learning_rate=rate,
        lr_scheduler_type=scheduler, per_device_train_batch_size=16, report_to=[], use_cpu=True,
        disable_tqdm=True, save_strategy="no", logging_strategy="no",
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=train, callbacks=[first])
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return first


torch.manual_seed(0)
start = BertForSequenceClassification(config)
run(start, "adamw_torch", 10, 300, 1e-3, "constant_with_warmup")
before = test(start)
print(f"a trained classifier: test loss {before[0]:.2f}, accuracy {before[1]:.2f}")
RATE, cases = 2e-4, {}
for optim, warmup, scheduler in (
    ("schedule_free_adamw", 0.03, "constant"),
    ("schedule_free_adamw", 3, "constant"),
    ("schedule_free_sgd", 0.03, "constant"),
    ("schedule_free_adamw", 0.03, "linear"),
    ("adamw_torch", 0.03, "constant_with_warmup"),
    ("adamw_torch", 3, "constant_with_warmup"),
):
    first = cases[optim, warmup, scheduler] = run(
        copy.deepcopy(start), optim, warmup, 100, RATE, scheduler
    )
    print(f"{optim:19} warmup_steps={warmup:<4} {scheduler:20}: first rate {first.rate / RATE:5.2f} times "
          f"learning_rate; after it loss {first.loss:.2f}, accuracy {first.accuracy:.2f}")  # fmt: skip
wrong, right, sgd, hidden, *plain = cases.values()
if not (
    abs(wrong.rate / RATE - 100 / 3) < 0.1
    and abs(sgd.rate / RATE - 100 / 3) < 0.1
    and abs(right.rate / RATE - 1 / 3) < 0.01
    and hidden.rate == plain[0].rate == plain[1].rate == 0
    and wrong.loss > before[0] + 0.5
    and abs(right.loss - before[0]) < 0.1
):
    print("not as described")
    sys.exit(1)
PY
