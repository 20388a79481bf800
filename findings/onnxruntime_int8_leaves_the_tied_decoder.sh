#!/usr/bin/env bash
# onnxruntime 1.32.0 (quantization.quantize_dynamic) on a BERT exported by torch 2.13.0 (dynamo=True)
#
# One would guess: dynamic quantisation turns every product with a weight matrix into an integer
# product, the largest first: a masked language model's decoder over the vocabulary.
# What happens: all but that one. The exporter stores the tied matrix once and puts a Transpose node
# between it and the decoder's MatMul; the quantiser only takes a MatMul whose weight is stored as it
# is used. The matrix is stored as int8 for the embeddings, and each call makes it float32 again,
# transposes it, and multiplies in float32. The file is a quarter as large, so all looks well.
# Who is hurt: whoever quantises a masked language model with a large vocabulary for speed: its largest
# product gains nothing and pays for the conversion.
# With quant_pre_process before it, which the quantiser's general warning recommends, the decoder is
# an integer product, too, and the tied matrix is stored twice.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 onnx==1.23.2 onnxscript==0.7.2 \
    onnxruntime==1.32.0 sympy
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys
from math import prod
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(0)
config = BertConfig(
    hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
    attn_implementation="eager",
)


class Logits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = BertForMaskedLM(config).eval()

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids, attention_mask=attention_mask).logits


ids = torch.randint(5, 1000, (2, 12))
free = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=512)}
torch.onnx.export(
    Logits(), (ids, torch.ones_like(ids)), "plain.onnx", dynamo=True, verbose=False,
    input_names=["input_ids", "attention_mask"], output_names=["logits"],
    dynamic_shapes=(free, free), external_data=False,
)


def float_products(file):
    """The weights, by size, that stand behind a float MatMul; through Transpose and Dequantize."""
    graph = onnx.load(file).graph
    stored = {tensor.name: prod(tensor.dims) for tensor in graph.initializer}
    made_by = {node.output[0]: node for node in graph.node}
    sizes = []
    for node in graph.node:
        if node.op_type == "MatMul":
            name = node.input[1]
            while name in made_by and made_by[name].op_type in ("Transpose", "DequantizeLinear"):
                name = made_by[name].input[0]
            sizes += [stored[name]] if name in stored else []
    return sorted(sizes, reverse=True)


quantize_dynamic("plain.onnx", "int8.onnx", weight_type=QuantType.QInt8)
quant_pre_process("plain.onnx", "prepared.onnx", skip_symbolic_shape=True)
quantize_dynamic("prepared.onnx", "prepared_int8.onnx", weight_type=QuantType.QInt8)
left = {}
for file in ("plain.onnx", "int8.onnx", "prepared_int8.onnx"):
    left[file] = float_products(file)
    size = Path(file).stat().st_size / 1e6
    print(f"{file:20} {size:4.1f} MB, float32 products with a weight matrix: {len(left[file])}", end="")
    print(f", the largest of {left[file][0]:,} weights" if left[file] else "")
if left["int8.onnx"] != [30_522 * 128] or left["prepared_int8.onnx"]:
    print("not as described")
    sys.exit(1)
PY
