#!/usr/bin/env bash
# torch 2.13.0 (optim.swa_utils.AveragedModel with use_buffers=True), pytorch-lightning 2.6.6
# (EMAWeightAveraging) and transformers 5.23.0's BERT
#
# One would guess: the moving average of something that never changes is that thing. A BERT's table of
# position ids, 0, 1, 2 ..., is such a buffer; so averaging "parameters and buffers" can only add what a
# batch normalisation needs.
# What happens: the buffer holds whole numbers. Each update computes decay * 39 + (1 - decay) * 39 in
# float32, gets 38.999996, and cutting it off for int64 makes it 38, for good. With decay=0.9999, 99 of 512
# positions are one too small after the second update, with 0.9 (the value in torch's own example) 147, with
# 0.9995 160; with 0.999 or 0.99 none, so a trial with those shows nothing. Below, a tagger with 1.00
# accuracy has 0.84 in Lightning's validation. No warning.
# Who is hurt: torch's default is use_buffers=False; Lightning's callbacks WeightAveraging and
# EMAWeightAveraging have True as default. The validation that chooses the checkpoint, and the model after
# fit, read wrong positions, and the averaged weights look worse than they are. A checkpoint is right, as
# BERT's position ids are not in it; reading it again hides the cause. BERT, ELECTRA, ALBERT, DistilBERT,
# DeBERTa and CLIP read their position ids from such a buffer; RoBERTa counts them from the text and is not
# hit.
# What to do instead: use_buffers=False. An encoder without batch normalisation has nothing in its buffers
# to average, and torch then copies them as they are.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 pytorch-lightning==2.6.6
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import copy
import sys

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EMAWeightAveraging
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForTokenClassification

torch.manual_seed(0)
config = BertConfig(
    vocab_size=20, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=64, num_labels=2, max_position_embeddings=512, hidden_dropout_prob=0.0,
)  # fmt: skip
LENGTH = 128


def examples(count):
    """Tokens, and a tag that depends on the token and on its position: same parity or not."""
    ids = torch.randint(0, 20, (count, LENGTH))
    return [{"input_ids": row, "labels": (row + torch.arange(LENGTH)) % 2} for row in ids]


class Tagger(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.bert = BertForTokenClassification(config)
        self.rate = 3e-3

    def training_step(self, batch, _):
        return self.bert(**batch).loss

    def validation_step(self, batch, _):
        right = (self.bert(**batch).logits.argmax(-1) == batch["labels"]).float().mean()
        self.log("accuracy", right, batch_size=len(batch["labels"]))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.rate)


train, test = DataLoader(examples(2000), batch_size=32), DataLoader(examples(200), batch_size=50)


def fit(tagger, callbacks, **length):
    trainer = pl.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, callbacks=callbacks, **length,
    )  # fmt: skip
    trainer.fit(tagger, train, test)
    return trainer.callback_metrics["accuracy"].item()


def moved(model, original):
    key = "embeddings.position_ids"
    found = [dict(m.named_buffers()) for m in (model, original)]
    a, b = ([v for k, v in buffers.items() if k.endswith(key)][0] for buffers in found)
    return int((a != b).sum())


tagger = Tagger()
print(f"trained, without an average: accuracy {fit(tagger, [], max_epochs=12):.2f}")
tagger.rate = 1e-5
accuracy, wrong = {}, {}
for buffers in (True, False):
    own = copy.deepcopy(tagger)
    average = EMAWeightAveraging(decay=0.9999, use_buffers=buffers)
    accuracy[buffers] = fit(own, [average], max_epochs=1)
    wrong[buffers] = moved(own, tagger)
    print(f"trained on with EMAWeightAveraging(decay=0.9999, use_buffers={buffers}): accuracy in "
          f"validation {accuracy[buffers]:.2f}, positions that moved {wrong[buffers]} of 512")  # fmt: skip
in_file = any("position_ids" in key for key in tagger.state_dict())
default = EMAWeightAveraging(decay=0.9999)._use_buffers
print(f"the callback's default: use_buffers={default}; position ids in a checkpoint: {in_file}")
by_decay = {}
for decay in (0.9, 0.99, 0.999, 0.9995, 0.9999):
    bert = tagger.bert
    ema = AveragedModel(bert, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)
    for _ in range(3):
        ema.update_parameters(bert)  # nothing was trained in between
    by_decay[decay] = moved(ema, bert)
print("torch's AveragedModel(use_buffers=True) alone, positions moved by decay:", by_decay)
expected = {0.9: 147, 0.99: 0, 0.999: 0, 0.9995: 160, 0.9999: 99}
if not default or in_file or by_decay != expected or wrong != {True: 99, False: 0} or accuracy[True] > 0.9 or (
    accuracy[False] < 0.98
):
    print("not as described")
    sys.exit(1)
PY
