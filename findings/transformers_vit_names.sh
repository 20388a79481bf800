#!/usr/bin/env bash
# transformers 5.23.0, ViTForImageClassification, with torch 2.13.0
#
# Guess: the names in the model.safetensors that save_pretrained writes are those of the model's
# state_dict(), so that load_state_dict reads the file, as for BERT.
# What happens: today the model calls its weights vit.layers.0.attention.q_proj.weight, but the
# file keeps vit.encoder.layer.0.attention.attention.query.weight: names are changed on the way out
# and back. load_state_dict of one's own file fails, and a state_dict saved by hand is read by
# from_pretrained but by no other program that knows ViT's names (keras-hub 0.32.0 refuses it).
# Who is hurt: whoever saves or loads weights with safetensors directly, averages checkpoints, or
# selects parameters by names read from a file.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.23.0 safetensors==0.8.0
cd "$tmp"
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys
from safetensors.torch import load_file
from transformers import BertConfig, BertModel, ViTConfig, ViTForImageClassification

sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
sizes["intermediate_size"] = 32
models = {
    "BERT": BertModel(BertConfig(vocab_size=30, **sizes)),
    "ViT": ViTForImageClassification(ViTConfig(image_size=8, patch_size=4, **sizes)),
}
reads = {}
for name, model in models.items():
    model.save_pretrained(name)
    state = load_file(f"{name}/model.safetensors")
    try:
        model.load_state_dict(state)
        reads[name] = True
    except RuntimeError:
        reads[name] = False
        print("in the file:", next(n for n in state if "query.weight" in n))
        print("in the model:", next(n for n in model.state_dict() if "q_proj.weight" in n))
    print(f"{name}: load_state_dict reads what save_pretrained wrote: {reads[name]}")
if reads != {"BERT": True, "ViT": False}:
    print("not as described")
    sys.exit(1)
PY
