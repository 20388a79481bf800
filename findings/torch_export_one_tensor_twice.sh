#!/usr/bin/env bash
# torch 2.13.0, torch.export.export and torch.onnx.export(dynamo=True), one example for two inputs
#
# One would guess: example inputs only show types and sizes, so that ones = torch.ones(1, 8) may be
# given for the ids and for the mask of an encoder: (ones, ones).
# What happens: the exported program takes both inputs and reads the last of them in both places. Ids
# are ignored, and the mask is looked up in the embedding table instead. Nothing is raised or warned
# of, and with the example itself, or any text whose ids equal its mask, the outputs are right. With
# (ones, ones.clone()) the program is right.
# Who is hurt: whoever exports an encoder with one dummy tensor for all of its inputs, as it is often
# written, and checks the file with the same dummy tensor: the served model answers every text of a
# length alike.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0
cd "$tmp"
OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import onnxruntime
import torch


class Mean(torch.nn.Module):
    """The mean of the real tokens' embeddings."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, ids, mask):
        return (self.table(ids) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


torch.manual_seed(0)
model = Mean().eval()
ids, mask = torch.tensor([[3, 4, 5, 6]]), torch.tensor([[1, 1, 1, 0]])
ones = torch.ones(1, 4, dtype=torch.long)
free = {1: torch.export.Dim.DYNAMIC}
wrong = {}
for name, example in {"one tensor twice": (ones, ones), "two tensors": (ones, ones.clone())}.items():
    program = torch.export.export(model, example, dynamic_shapes=(free, free)).module()
    torch.onnx.export(
        model, example, "mean.onnx", input_names=["ids", "mask"], dynamo=True, verbose=False,
        dynamic_shapes=(free, free),
    )
    session = onnxruntime.InferenceSession("mean.onnx", providers=["CPUExecutionProvider"])

    def in_onnx(ids, mask):
        return torch.tensor(session.run(None, {"ids": ids.numpy(), "mask": mask.numpy()})[0])

    with torch.no_grad():
        for tool, run in {"torch.export": program, "ONNX": in_onnx}.items():
            off = (run(ids, mask) - model(ids, mask)).abs().max().item()
            same = (run(ids, mask) - model(mask, mask)).abs().max().item() < 1e-6
            example_off = (run(ones, ones) - model(ones, ones)).abs().max().item()
            wrong[name, tool] = off > 0.1 and same and example_off < 1e-6
            print(f"{name}, {tool}: off by {off:.2g}; with the example by {example_off:.2g}", end="")
            print("; the mask is read for the ids" if same else "")
if list(wrong.values()) != [True, True, False, False]:
    print("not as described")
    sys.exit(1)
PY
