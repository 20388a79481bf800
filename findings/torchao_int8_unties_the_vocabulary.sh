#!/usr/bin/env bash
# torchao 0.18.0 (quantize_ with Int8WeightOnlyConfig) on transformers 5.23.0's BertForMaskedLM
#
# One would guess: a model whose dense layers go from four bytes a weight to one gets smaller, most
# of all where one of these layers is the decoder over the whole vocabulary.
# What happens: that decoder shares its matrix with the token embeddings, which are no dense layer and
# stay float32. quantize_ gives the decoder an int8 copy of its own, so the matrix is stored twice, and
# the two are no longer tied. In the shape of BERT-tiny (2 layers, 128 wide, 30,522 pieces) the model
# grows from 17.7 to 20.5 MB; in that of BERT-mini (4 layers, 256 wide) it loses 4% instead of 75%.
# Nothing is said.
# Who is hurt: whoever makes a small encoder smaller for a phone or a browser, where the vocabulary is
# most of the model; and whoever goes on training it, with a decoder that no longer follows the
# embeddings.
# With a filter_fn that leaves the decoder out, BERT-tiny is smaller than before; so it is where
# transformers quantises while it loads (quantization_config), which leaves the decoder alone.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 torchao==0.18.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import io
import sys

import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_
from transformers import BertConfig, BertForMaskedLM


def megabytes(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)  # a tied matrix once
    return file.tell() / 1e6


def model_of(layers, width):
    torch.manual_seed(0)
    config = BertConfig(
        num_hidden_layers=layers, hidden_size=width, num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    return BertForMaskedLM(config).eval()


def tied(model):
    return model.cls.predictions.decoder.weight is model.bert.embeddings.word_embeddings.weight


def not_the_decoder(module, name):
    return isinstance(module, torch.nn.Linear) and not name.endswith("decoder")


sizes = {}
for layers, width in ((2, 128), (4, 256)):
    model = model_of(layers, width)
    before, was_tied = megabytes(model), tied(model)
    quantize_(model, Int8WeightOnlyConfig())
    kept = model_of(layers, width)
    quantize_(kept, Int8WeightOnlyConfig(), filter_fn=not_the_decoder)
    sizes[width] = before, megabytes(model), megabytes(kept)
    print(
        f"{layers} layers, {width} wide: {before:.1f} MB, tied: {was_tied}; after quantize_ "
        f"{sizes[width][1]:.1f} MB, tied: {tied(model)}; the decoder left out "
        f"{sizes[width][2]:.1f} MB, tied: {tied(kept)}"
    )
tiny, mini = sizes[128], sizes[256]
if tiny[1] < 1.1 * tiny[0] or mini[1] < 0.9 * mini[0] or tiny[2] >= tiny[0] or not tied(kept):
    print("not as described")
    sys.exit(1)
PY
