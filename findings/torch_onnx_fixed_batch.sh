#!/usr/bin/env bash
# torch 2.13.0, torch.onnx.export(dynamo=True), with onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0
#
# Guess: if a model's code makes a size constant that dynamic_shapes declares as open (here by
# len(x), which is a plain number), torch.onnx.export refuses as torch.export.export does
# ("Constraints violated").
# What happens: torch.export.export refuses; torch.onnx.export, with the same arguments, succeeds and
# writes a file whose batch is the example's, 2. It fails at the first other batch, where it is used.
# Who is hurt: whoever takes an export without an error for one with open sizes.
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


class FirstToken(torch.nn.Module):
    """A learnt vector before each text, as ViT's class token."""

    def __init__(self):
        super().__init__()
        self.cls = torch.nn.Parameter(torch.randn(1, 1, 4))

    def forward(self, x):
        return torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)


model, x = FirstToken(), torch.randn(2, 3, 4)
sizes = ({0: torch.export.Dim("batch", min=1)},)
try:
    torch.export.export(model, (x,), dynamic_shapes=sizes)
    refused = False
except Exception as error:
    refused = "Constraints violated" in str(error)
    print("torch.export.export:", str(error).splitlines()[0])
torch.onnx.export(model, (x,), "model.onnx", dynamo=True, dynamic_shapes=sizes, verbose=False)
batch = onnxruntime.InferenceSession("model.onnx").get_inputs()[0].shape[0]
print("torch.onnx.export: no error; the file's batch is", repr(batch))
if not refused or batch != 2:
    print("not as described")
    sys.exit(1)
PY
