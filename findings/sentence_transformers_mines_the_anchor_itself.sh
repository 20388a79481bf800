#!/usr/bin/env bash
# sentence-transformers 6.2.0 (util.mine_hard_negatives) with pairs in both orders
#
# One would guess: a hard negative is another text than the anchor it is mined for.
# What happens: only the anchor's positives are left out of the candidates. Where a text is an anchor
# in one pair and a positive in another, as in pairs of duplicate questions given in both orders, or
# in chains of them, the corpus holds the anchor, and its cosine with itself, 1, is the highest: every
# anchor's first negative is the anchor. The table that `verbose` prints shows a mean negative score
# of 1.0000 and calls nothing wrong.
# Who is hurt: a triplet (a, b, a) asks the model to hold a text nearer to another one than to itself.
# With one negative each, every mined triplet is of this kind.
# absolute_margin=0 leaves the anchor out, and with it every candidate above the positive.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 datasets==5.2.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from sentence_transformers.util import mine_hard_negatives
from transformers import BertConfig, BertModel, BertTokenizerFast

PAIRS = [
    ("how do I learn to swim", "what is a good way to learn swimming"),
    ("why is the sky blue", "what gives the sky its color"),
    ("how long do I boil an egg", "what is the time to boil eggs"),
    ("where can I buy a used bike", "which shop sells bikes that are not new"),
]
words = sorted({word for pair in PAIRS for text in pair for word in text.lower().split()})
with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
torch.manual_seed(0)
config = BertConfig(
    vocab_size=len(words) + 5, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=64, max_position_embeddings=16,
)
BertModel(config).save_pretrained("encoder")
BertTokenizerFast("vocab.txt", model_max_length=16).save_pretrained("encoder")
model = SentenceTransformer(modules=[Transformer("encoder"), Pooling(32)])


def mined(pairs):
    columns = {"anchor": [a for a, _ in pairs], "positive": [b for _, b in pairs]}
    found = mine_hard_negatives(Dataset.from_dict(columns), model, num_negatives=1, verbose=False)
    same = sum(a == n for a, n in zip(found["anchor"], found["negative"], strict=True))
    return same, len(found)


one_way, both = mined(PAIRS), mined(PAIRS + [(b, a) for a, b in PAIRS])
print("pairs in one order:   the negative is the anchor itself in {} of {} triplets".format(*one_way))
print("pairs in both orders: the negative is the anchor itself in {} of {} triplets".format(*both))
if one_way != (0, 4) or both != (8, 8):
    print("not as described")
    sys.exit(1)
PY
