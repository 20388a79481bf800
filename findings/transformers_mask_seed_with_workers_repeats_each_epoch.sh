#!/usr/bin/env bash
# transformers 5.23.0 (DataCollatorForLanguageModeling(seed=...) with dataloader_num_workers), with datasets 5.2.0,
# accelerate 1.15.0, tokenizers 0.23.3 and torch 2.13.0
#
# One would guess: the collator masks dynamically, each text anew in each epoch, and its seed makes the run
# repeatable ("the seed to use for the random number generator for masking"). Loading in worker processes is a
# matter of speed.
# What happens: workers are started anew for each epoch (dataloader_persistent_workers is off by default), each
# with a copy of the collator as it stood in the main process, where its generator was never made. So each epoch
# begins with the same generator again, seed + number of the worker, and batch k of every epoch gets the very same
# masks. Where the texts come in one order (train_sampling_strategy="sequential"), that is static masking: below,
# in 20 epochs each text has 1 mask instead of 19, and 14% of the tokens are ever selected instead of 95%. The
# training loss is 0.87 instead of 3.7, and looks like success; under new masks the loss is 5.2 instead of 3.6.
# A stream in 4 shards that is not shuffled has 4 masks a text. Shuffled data get other texts' masks, so that a
# text has 16.6, and nothing is lost. Without a seed, without workers, or with persistent ones, masks are new in
# each epoch. Nothing is said. (A collator without a seed is right with workers, since torch's own generator gets
# a new seed in each epoch's workers. Pull request 36497, which brought the seed in 2025, thought of several
# workers, not of several epochs. Lightning's issue 20412 has the same of image augmentation.)
# Who is hurt: whoever sets the seed for a repeatable pre-training run and then adds workers for speed, with a
# stream or with data in an order of their own: static masking without knowing it, and a comparison of static with
# dynamic masking that compares nothing.
# What to do instead: dataloader_persistent_workers=True, or no seed in the collator (set_seed fixes it), or
# shuffle. Compare the masks of a text in two epochs before a long run.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 tokenizers==0.23.3 accelerate==1.15.0 datasets==5.2.0
cd "$tmp"
cat > show.py <<'PY'
import sys

import torch
from datasets import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    DataCollatorForLanguageModeling,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

TEXTS, EPOCHS = 64, 20


class Collator(DataCollatorForLanguageModeling):
    """The collator, and which text each row is: its first token says so."""

    def torch_call(self, examples):
        rows = [example["input_ids"][1] for example in examples]
        return {**super().torch_call(examples), "rows": torch.tensor(rows)}


class Model(BertForMaskedLM):
    """BERT that notes which places of which text it was asked for."""

    def forward(self, rows=None, labels=None, **inputs):
        if self.training:
            for row, label in zip(rows.tolist(), labels):
                self.asked.setdefault(row, []).append(tuple((label != -100).tolist()))
        return super().forward(labels=labels, **inputs)


def run(seed, workers, order="sequential", persistent=False):
    """Train; return masks a text, the part of tokens ever selected, and two losses."""
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=128, max_position_embeddings=40)  # fmt: skip
    model = Model(config)
    model.asked = {}
    args = TrainingArguments(
        "out", max_steps=EPOCHS * TEXTS // 8, per_device_train_batch_size=8, learning_rate=3e-3,
        lr_scheduler_type="constant", dataloader_num_workers=workers, dataloader_persistent_workers=persistent,
        remove_unused_columns=False, save_strategy="no", logging_steps=TEXTS // 8, report_to="none",
        train_sampling_strategy="random" if order == "stream" else order, disable_tqdm=True, use_cpu=True, seed=0,
    )  # fmt: skip
    rows = data.to_iterable_dataset(num_shards=4) if order == "stream" else data
    trainer = Trainer(model, args, train_dataset=rows, data_collator=Collator(tokenizer, seed=seed))
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    masks = sum(len(set(asked)) for asked in model.asked.values()) / TEXTS
    ever = torch.stack([torch.tensor(asked).any(0) for asked in model.asked.values()])[:, 1:-1].float().mean()
    model.eval()
    torch.manual_seed(1)
    fresh = DataCollatorForLanguageModeling(tokenizer)
    with torch.no_grad():
        loss = sum(model(**fresh([dict(row) for row in data])).loss.item() for _ in range(10)) / 10
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry][-1]
    return masks, float(ever), logged, loss


words = [f"w{i}" for i in range(TEXTS + 40)]
open("vocab.txt", "w").write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
tokenizer = BertTokenizerFast("vocab.txt")
draw = torch.Generator().manual_seed(0)
data = Dataset.from_list([
    {"input_ids": [2, 5 + i, *(torch.randint(5 + TEXTS, 45 + TEXTS, (16,), generator=draw).tolist()), 3]}
    for i in range(TEXTS)
])  # fmt: skip
seen = {}
for case in (
    (None, 0, "sequential", False), (None, 2, "sequential", False), (0, 0, "sequential", False),
    (0, 2, "sequential", False), (0, 2, "sequential", True), (0, 2, "stream", False), (0, 2, "random", False),
):  # fmt: skip
    masks, ever, logged, loss = seen[case] = run(*case)
    seed, workers, order, persistent = case
    print(f"seed {seed!s:5}workers {workers} {order:11}persistent {persistent!s:6}",
          f"masks a text in {EPOCHS} epochs {masks:5.2f}; tokens ever selected {ever:.2f};",
          f"training loss {logged:.2f}, with new masks {loss:.2f}", flush=True)  # fmt: skip

static = seen[0, 2, "sequential", False]
if any(seen[case][0] < 15 for case in seen if case[0] is None or case[1] == 0 or case[3]):
    sys.exit("not as described: a control does not mask dynamically")
if static[0] != 1.0 or not 1 < seen[0, 2, "stream", False][0] < 8:
    sys.exit("not as described: with seed and workers the masks are new in each epoch")
if static[3] < seen[0, 0, "sequential", False][3] + 0.5:
    sys.exit("not as described: the static masks do no harm")
PY
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" show.py 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
