#!/usr/bin/env bash
# torch 2.13.0, torch.onnx.export(dynamo=True), with onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0
#
# Guess: a length that a model computes from a symbolic size, such as -(-n // 4) * 4 (n rounded up to
# a multiple of 4), is the same number in the ONNX file as in torch.
# What happens: the floor division of a negative size becomes ONNX's Div, which cuts towards zero.
# -(-6 // 4) is 2 in Python and 1 in the file. Nothing is refused: torch.export is right, the export
# reports success, and the file gives tensors of other sizes, at the size it was traced with, too.
# Who is hurt: whoever rounds up by the usual idiom (blocks, windows, tables of positions) and exports.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0
cd "$tmp"
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys, warnings
import onnxruntime, torch

warnings.simplefilter("ignore")


class PadToFour(torch.nn.Module):
    def forward(self, x):
        longer = -(-x.shape[1] // 4) * 4
        return torch.nn.functional.pad(x, (0, longer - x.shape[1]))


model, x = PadToFour(), torch.randn(2, 6)
sizes = ({1: torch.export.Dim("tokens", min=1, max=99)},)
program = torch.export.export(model, (x,), dynamic_shapes=sizes)
torch.onnx.export(model, (x,), "model.onnx", dynamo=True, dynamic_shapes=sizes, verbose=False)
session = onnxruntime.InferenceSession("model.onnx")
name = session.get_inputs()[0].name
shapes = {}
for tokens in (5, 6, 8):
    x = torch.randn(2, tokens)
    right, exported = model(x).shape[1], program.module()(x).shape[1]
    shapes[tokens] = right, exported, session.run(None, {name: x.numpy()})[0].shape[1]
    print(f"{tokens} padded to a multiple of 4: torch {right}, torch.export {exported}, "
          f"ONNX Runtime {shapes[tokens][2]}")
if shapes != {5: (8, 8, 4), 6: (8, 8, 4), 8: (8, 8, 8)}:
    print("not as described: the file may round as torch does now")
    sys.exit(1)
PY
