#!/usr/bin/env bash
# sentence-transformers 6.2.0 (RerankingEvaluator, CrossEncoderRerankingEvaluator), transformers
# 5.23.0, torch 2.13.0
#
# One would guess: a model that gives all documents one score is at chance in all three figures (the
# evaluators' nDCG is the mean over the orders of a tie, their MAP takes a tie as one group); and both
# evaluators agree.
# What happens: MRR counts the order in which the documents stand, and that is the positives first.
# RerankingEvaluator gives such a model MRR 1.0, beside an nDCG of 0.45. CrossEncoderRerankingEvaluator
# turns the order round and gives the same scores 0.1.
# Who is hurt: whoever chooses checkpoints by MRR: a bi-encoder that has collapsed onto one vector is
# the best there is. A cross-encoder whose sigmoid has reached 1.0 (in float32 from a logit of 17 on,
# in bfloat16 from 6 on) is put down, and a bi-encoder is not comparable with it.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0
cd "$tmp"
HF_HUB_OFFLINE=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator
from sentence_transformers.sentence_transformer.evaluation import RerankingEvaluator
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklm"]
samples = [{"query": "a", "positive": ["b"], "negative": list("defghijkl")}]

word_level = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
word_level.pre_tokenizer = pre_tokenizers.Whitespace()
table = torch.ones(len(words), 4).numpy()  # every text has one and the same vector
collapsed = SentenceTransformer(modules=[StaticEmbedding(word_level, embedding_weights=table)])

config = BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=1,
                    num_attention_heads=2, intermediate_size=32, num_labels=1)  # fmt: skip
classifier = BertForSequenceClassification(config)
torch.nn.init.constant_(classifier.classifier.bias, 20.0)  # sigmoid(20) is 1.0 in float32
classifier.save_pretrained("saturated")
BertTokenizer(vocab={w: i for i, w in enumerate(words)}).save_pretrained("saturated")
saturated = CrossEncoder("saturated", device="cpu")

figures = {}
for name, model, kind in (("bi-encoder", collapsed, RerankingEvaluator),
                          ("cross-encoder", saturated, CrossEncoderRerankingEvaluator)):
    result = kind(samples, at_k=10, show_progress_bar=False)(model)
    figures[name] = {m: round(float(v), 3) for key, v in result.items()
                     for m in ("mrr", "ndcg", "map") if m in key}  # fmt: skip
    print(f"{name}, ten documents of one score: {figures[name]}")
print("MRR, the mean over all orders:", round(sum(1 / rank for rank in range(1, 11)) / 10, 3))
mrr = [figure["mrr"] for figure in figures.values()]
if mrr != [1.0, 0.1] or len({figure["ndcg"] for figure in figures.values()}) != 1:
    print("not as described")
    sys.exit(1)
PY
