#!/usr/bin/env bash
# setfit 1.2.0 with sentence-transformers 6.2.0, TrainingArguments(max_length=...)
#
# One would guess: max_length cuts the texts that SetFit trains on ("the maximum token length", by
# its documentation; without it that of the sentence encoder holds), and so decides what long texts
# cost and what the classifier sees.
# What happens: with the usual head, a logistic regression, no line reads it. The encoder is tuned,
# the head is fitted and texts are classified at the encoder's own length: two trainings with
# max_length=4 and without end in the same weights to the bit, although all texts below are longer.
# (Only a differentiable head reads it, for the head's training alone.)
# Who is hurt: whoever sets it to make long texts affordable, or to see how much of a text is enough:
# the time stays, and the comparison compares nothing. model.model_body.max_seq_length does what is
# meant, in training and later.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 \
    setfit==1.2.0 datasets==5.2.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import random
import sys

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer
from setfit import SetFitModel, Trainer, TrainingArguments
from transformers import BertConfig, BertModel, BertTokenizerFast

FILLER, CLASSES = "the a very quite and or big small".split(), ["red", "dog", "runs"]
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FILLER, *CLASSES]
with open("vocab.txt", "w") as file:
    file.write("\n".join(pieces))
torch.manual_seed(0)
shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
BertModel(BertConfig(vocab_size=len(pieces), max_position_embeddings=32, **shape)).save_pretrained("bert")
BertTokenizerFast("vocab.txt").save_pretrained("bert")
SentenceTransformer(modules=[Transformer("bert"), Pooling(32)]).save("encoder")

draw = random.Random(0)
texts = [" ".join(draw.choices(FILLER, k=8)) + " " + CLASSES[n % 3] for n in range(24)]  # 11 tokens
data = Dataset.from_dict({"text": texts, "label": [n % 3 for n in range(24)]})


def trained(max_length=None, of_encoder=None):
    model = SetFitModel.from_pretrained("encoder")
    if of_encoder:
        model.model_body.max_seq_length = of_encoder
    args = TrainingArguments(output_dir="out", max_length=max_length, report_to="none")
    Trainer(model=model, args=args, train_dataset=data).train()
    return {**model.model_body.state_dict(), "head": torch.tensor(model.model_head.coef_)}


def apart(a, b):
    return max((a[name].double() - b[name].double()).abs().max().item() for name in a)


whole = trained()
by_argument, by_encoder = apart(whole, trained(max_length=4)), apart(whole, trained(of_encoder=4))
print(f"largest difference of a weight, max_length=4: {by_argument:g}; model_body.max_seq_length=4: {by_encoder:.2g}")
if by_argument != 0 or by_encoder < 0.01:
    print("not as described")
    sys.exit(1)
PY
