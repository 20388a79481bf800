#!/usr/bin/env bash
# keras-hub 0.32.0 (keras 3.15.1 on torch 2.13.0), Backbone.from_preset of a transformers 5.23.0 folder
#
# Guess: a BERT's config.json says its activation (hidden_act), so keras-hub takes that one, or refuses
# what it has not.
# What happens: hidden_act is not read. Every BERT gets the tanh form of GELU: one with GELU is off by
# some 1e-4, one with ReLU (hidden_act="relu") gives other states altogether, without a word.
# Who is hurt: whoever takes a BERT with another activation than GELU to Keras, and whoever compares
# digits.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.23.0 keras==3.15.1 keras-hub==0.32.0 safetensors==0.8.0
cd "$tmp"
KERAS_BACKEND=torch CUDA_VISIBLE_DEVICES="" "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys
import keras_hub, numpy as np, torch
from transformers import BertConfig, BertModel

ids, apart = torch.tensor([[2, 10, 11, 12, 13, 3]]), {}
for act in ("gelu_new", "gelu", "relu"):
    torch.manual_seed(0)
    model = BertModel(BertConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=20, initializer_range=0.2, hidden_act=act,
    )).eval()  # fmt: skip
    model.save_pretrained(act)
    backbone = keras_hub.models.Backbone.from_preset(f"./{act}")
    zeros = np.zeros(ids.shape, "int32")
    inputs = {"token_ids": ids.numpy(), "segment_ids": zeros, "padding_mask": zeros + 1}
    states = backbone.predict(inputs, verbose=0)["sequence_output"]
    with torch.no_grad():
        right = model(ids).last_hidden_state.numpy()
    apart[act] = float(np.abs(states - right).max())
    print(f"hidden_act={act}: largest difference from transformers {apart[act]:.1e}")
if not (apart["gelu_new"] < 1e-5 < apart["gelu"] < 1e-2 and apart["relu"] > 0.05):
    print("not as described")
    sys.exit(1)
PY
