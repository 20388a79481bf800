#!/usr/bin/env bash
# keras-hub 0.32.0 (keras 3.15.1 on torch 2.13.0), Backbone.from_preset of a transformers 5.23.0 folder
#
# Guess: a RoBERTa that keras-hub reads without a word gives transformers' states.
# What happens: RoBERTa has one row of token types, which transformers adds to every token. keras-hub's
# converter does not read it (its converters for BERT, ALBERT and XLM-R do). In the released
# roberta-base that row is zero, so nobody sees it; in a model that transformers trained from random
# weights it is not, and all states are wrong.
# Who is hurt: whoever pre-trained a RoBERTa of their own and goes on in Keras.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.23.0 keras==3.15.1 keras-hub==0.32.0 safetensors==0.8.0
cd "$tmp"
KERAS_BACKEND=torch CUDA_VISIBLE_DEVICES="" "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys
import keras_hub, numpy as np, torch
from transformers import RobertaConfig, RobertaForMaskedLM

torch.manual_seed(0)
model = RobertaForMaskedLM(RobertaConfig(
    vocab_size=60, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=22, type_vocab_size=1, layer_norm_eps=1e-5, initializer_range=0.2,
)).eval()  # fmt: skip
ids = torch.tensor([[0, 10, 11, 12, 13, 2]])
row, apart = model.roberta.embeddings.token_type_embeddings.weight, {}
for kind in ("drawn", "zero"):
    if kind == "zero":
        torch.nn.init.zeros_(row)
    model.save_pretrained(kind)
    backbone = keras_hub.models.Backbone.from_preset(f"./{kind}")
    inputs = {"token_ids": ids.numpy(), "padding_mask": np.ones(ids.shape, "int32")}
    states = backbone.predict(inputs, verbose=0)
    with torch.no_grad():
        right = model.roberta(ids).last_hidden_state.numpy()
    apart[kind] = float(np.abs(states - right).max())
    print(f"row of token types {kind}: largest difference from transformers {apart[kind]:.1e}")
if not (apart["zero"] < 1e-3 and apart["drawn"] > 0.1):
    print("not as described")
    sys.exit(1)
PY
