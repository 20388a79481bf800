#!/usr/bin/env bash
# sentence-transformers 6.2.0 (BatchSamplers.NO_DUPLICATES), datasets 5.2.0, transformers 5.23.0,
# accelerate 1.15.0, torch 2.13.0
#
# One would guess: no_duplicates spreads equal texts over the batches of an epoch; each pair is trained
# on once an epoch, in batches of the size that was asked for (the last one may be smaller).
# What happens: batches are filled greedily. Where 30% of the pairs have one text in common, 22 batches
# use up all others; then come a batch of 19 and 277 batches of *one* pair. Trainer counts an epoch as
# pairs / batch size, so it stops within them: 268 of 1,000 pairs, all of the common text, are not
# trained on in that epoch, and 9 of 32 steps are of one pair, whose in-batch loss is exactly 0 (the
# optimizer still moves by its momentum). With drop_last as many pairs are left out, and others come twice
# in batches of full size, with a warning; without it (the default) nothing is said.
# Who is hurt: whoever trains with in-batch negatives on questions that share answers, or claims that
# share a page. More than a quarter of the steps are lost, with their part of the schedule, and the
# logged loss falls for no good reason.
# What to do instead: dataloader_drop_last=True, and at most pairs / batch size copies of a text.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 \
  datasets==5.2.0 accelerate==1.15.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import contextlib
import os
import sys
from collections import Counter

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

PAIRS, BATCH = 1000, 32
vocabulary = {"unknown": 0, "yes": 1}
for number in range(PAIRS):
    vocabulary |= {f"q{number}": 2 * number + 2, f"a{number}": 2 * number + 3}


class Watched(MultipleNegativesRankingLoss):
    """The loss, which notes the questions and the loss of each batch."""

    def forward(self, features, labels):
        features = list(features)
        loss = super().forward(features, labels)
        self.seen.append((features[0]["input_ids"].tolist(), loss.item()))
        return loss


def epoch(common, drop_last=False):
    """Batches of an epoch in which `common` of every ten pairs have the same answer."""
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="unknown"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    torch.manual_seed(0)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu")
    answers = ["yes" if number % 10 < common else f"a{number}" for number in range(PAIRS)]
    pairs = Dataset.from_dict({"question": [f"q{n}" for n in range(PAIRS)], "answer": answers})
    loss = Watched(model)
    loss.seen = []
    arguments = SentenceTransformerTrainingArguments(
        output_dir="out", per_device_train_batch_size=BATCH, num_train_epochs=1, use_cpu=True,
        batch_sampler="no_duplicates", dataloader_drop_last=drop_last, disable_tqdm=True,
        report_to="none", save_strategy="no", logging_strategy="no",
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=pairs, loss=loss
    )
    with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent):
        trainer.train()
    return loss.seen


def told(name, seen):
    """Print an epoch; how many steps are of one pair, with a loss of 0, and how many pairs unseen."""
    sizes = Counter(len(ids) for ids, _ in seen)
    zero = sum(loss == 0 for _, loss in seen)
    unseen = PAIRS - len({number for ids, _ in seen for number in ids})
    print(f"{name}: steps by their pairs {dict(sizes)}; loss 0 in {zero}; not seen {unseen} of {PAIRS} pairs")
    return sizes[1], zero, unseen


none = told("all answers differ           ", epoch(0))
some = told("3 of 10 answers are the same ", epoch(3))
drop = told("the same, drop_last          ", epoch(3, drop_last=True))
if none != (0, 0, 0) or min(some) < 5 or some[2] < 200 or drop[:2] != (0, 0):
    print("not as described")
    sys.exit(1)
PY
