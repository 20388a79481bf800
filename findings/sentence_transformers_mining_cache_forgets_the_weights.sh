#!/usr/bin/env bash
# sentence-transformers 6.2.0 (util.mine_hard_negatives) with cache_folder, before and after training
#
# One would guess: hard negatives that are mined with a trained model, in the same folder as those of
# the model before its training, are the trained model's; the cache holds what a model said.
# What happens: the cache's file name is a hash of the texts, the prompts and the *base model's name*.
# Training changes none of them, and for a model without such a name (trained from nothing, or loaded
# from a folder) it is "": two models of one's own share the file, too. The second call reads the
# first one's vectors, and all its negatives are the first one's. Nothing is said.
# Who is hurt: whoever mines, trains, and mines again, as ANCE does: every round trains on the
# negatives of the first. And whoever compares two encoders by what they mine.
# A folder for each round, or none, helps. (Issue 3870 of the project was the same with prompts.)
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 datasets==5.2.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import itertools
import random
import sys

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from sentence_transformers.util import mine_hard_negatives
from transformers import BertConfig, BertModel, BertTokenizerFast

WORDS = "red blue green small large old new house garden river bird horse apple stone".split()
with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
torch.manual_seed(0)
config = BertConfig(
    vocab_size=19, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=16, initializer_range=0.5,
)
BertModel(config).save_pretrained("encoder")
BertTokenizerFast("vocab.txt", model_max_length=16).save_pretrained("encoder")
model = SentenceTransformer(modules=[Transformer("encoder"), Pooling(32)])

random.seed(0)
texts = [" ".join(words) for words in random.sample([*itertools.permutations(WORDS, 3)], 80)]
pairs = Dataset.from_dict({"anchor": texts[:40], "positive": texts[40:]})


def mined(folder=None):
    found = mine_hard_negatives(pairs, model, num_negatives=1, cache_folder=folder, verbose=False)
    return found["negative"]


def alike(some, others):
    return sum(one == other for one, other in zip(some, others, strict=True))


before = mined("cache")
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(20):  # any training will do: here the vectors shall be long
    optimizer.zero_grad()
    model(model.preprocess(texts))["sentence_embedding"].square().mean().neg().backward()
    optimizer.step()
cached, afresh = mined("cache"), mined()
print(f"after training, without a cache: {alike(afresh, before)} of 40 negatives are the old ones")
print(f"after training, the same cache:  {alike(cached, before)} of 40 negatives are the old ones")
if alike(cached, before) != 40 or alike(afresh, before) > 30:
    print("not as described")
    sys.exit(1)
PY
