"""Serving: one classifier, answering in the ways that users choose from today.

Same weights, same mathematics up to rounding: what changes is the number format, the program that
runs the products, or what is left out because it is padding. Each way is a function that takes the
model and gives its `Served`; `ways()` names those that this machine can run, `missing()` says what
the others want. B batch, T tokens, C classes."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.checkpoints import export_onnx
from course_lib.checkpoints.exporting import missing_packages
from course_lib.family.bert import bert
from course_lib.family.distilbert import distilbert
from course_lib.heads import BertForClassification
from course_lib.train.finetuning import classifier_on

from .inputs import SPECIAL
from .measuring import Contender, Step, Table, forward_only

Answer = Callable[[Tensor, Tensor], Tensor]  # input_ids, attention_mask (B, T) -> logits (B, C)
CLASSES = 5


@dataclass(frozen=True)
class Served:
    """How a model answers, and how many bytes its file of weights has."""

    answer: Answer
    stored: int


def bytes_of(model: nn.Module) -> int:
    """Of the weights as they are, a tied matrix once."""
    return sum(p.numel() * p.element_size() for p in model.parameters())


def in_float32(model: nn.Module) -> Served:
    """The model as it is."""
    return Served(lambda ids, mask: model(ids, mask).logits, bytes_of(model))


def in_bfloat16(model: nn.Module) -> Served:
    """Weights and activations with 8 bits of exponent and 7 of fraction: half the bytes."""
    short = deepcopy(model).to(torch.bfloat16)
    return Served(lambda ids, mask: short(ids, mask).logits.float(), bytes_of(short))


def in_int8(model: nn.Module) -> Served:
    """Dense layers in integers from −128 to 127, one scale per matrix; inputs are rounded on
    arrival (torch's dynamic quantisation). Embedding matrices and norms stay float32."""
    from torch.ao.quantization import quantize_dynamic

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that this is to move to torchao
        small = quantize_dynamic(deepcopy(model).cpu(), {nn.Linear}, dtype=torch.qint8)
    rounded = sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Linear))
    return Served(lambda ids, mask: small(ids, mask).logits, bytes_of(model) - 3 * rounded)


def compiled(model: nn.Module) -> Served:
    """torch.compile: one graph, its small operations fused, written in C++ and compiled."""
    quick = torch.compile(model, dynamic=True)
    return Served(lambda ids, mask: quick(ids, mask).logits, bytes_of(model))


def without_padding(model: nn.Module) -> Served:
    """The real tokens as one list (lecture 14)."""
    return Served(lambda ids, mask: model(ids, mask, remove_padding=True).logits, bytes_of(model))


def in_onnx_runtime(model: Any, int8: bool = False) -> Served:
    """Exported by torch to the file format ONNX and run by ONNX Runtime, for any B and T. int8:
    matrix products with weights, and the embedding matrices, in integers (dynamic quantisation)."""
    import onnxruntime

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # as Windows may
        path = export_onnx(model, Path(folder, "model.onnx"))
        if int8:
            from onnxruntime.quantization import QuantType, quantize_dynamic

            path, whole = Path(folder, "int8.onnx"), path
            quantize_dynamic(whole, path, weight_type=QuantType.QInt8)
        stored, graph = path.stat().st_size, path.read_bytes()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    segments = len(session.get_inputs()) > 2  # all zero here, as the model takes them without

    def answer(ids: Tensor, mask: Tensor) -> Tensor:
        inputs = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        if segments:
            inputs["token_type_ids"] = torch.zeros_like(ids).numpy()
        return torch.from_numpy(session.run(["logits"], inputs)[0])

    return Served(answer, stored)


WAYS: dict[str, Callable[[nn.Module], Served]] = {
    "float32": in_float32,
    "bfloat16": in_bfloat16,
    "int8": in_int8,
    "padding removed": without_padding,
    "torch.compile": compiled,
    "ONNX Runtime": in_onnx_runtime,
    "ONNX Runtime, int8": partial(in_onnx_runtime, int8=True),
}


def missing() -> dict[str, str]:
    """The ways that cannot be run here, and what they want."""
    wants = {}
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        wants["torch.compile"] = "a C++ compiler"
    if lacking := missing_packages():
        command = f"pip install {' '.join(lacking)}"
        wants |= dict.fromkeys(("ONNX Runtime", "ONNX Runtime, int8"), command)
    return wants


def ways() -> dict[str, Callable[[nn.Module], Served]]:
    """Those that can be run here."""
    return {name: make for name, make in WAYS.items() if name not in missing()}


# ---------------------------------------------------------------- the bench's tables

SIZES = ((1, 32), (32, 128))  # a message; a full batch, half of it padding
PADDED = 0.5


def tables() -> list[Table]:
    """BERT-base's shape, a classifier on top, each way; then smaller shapes in float32."""
    return [table(batch, tokens) for batch, tokens in SIZES]


def table(batch: int, tokens: int) -> Table:
    """The first row is what the others are compared with."""
    what = f"Serving, BERT-base's shape, {batch}×{tokens} tokens"
    return Table(what, contenders(batch, tokens), turn=0.5)


def contenders(batch: int, tokens: int, **changes: Any) -> list[Contender]:
    """Every way to answer with one shape, then other shapes; changes: settings of all shapes.
    "Tokens" are those of the padded batch, in every row."""
    settings: dict[str, Any] = {"vocab_size": SPECIAL.vocab_size, **changes}
    base, half = partial(bert, "base", **settings), partial(distilbert, "base", **settings)
    rows = {name: partial(answering, base, make, batch, tokens) for name, make in ways().items()}
    rows["half the layers (DistilBERT)"] = partial(answering, half, in_float32, batch, tokens)
    rows["… in int8"] = partial(answering, half, in_int8, batch, tokens)
    return [Contender(name, make, batch * tokens) for name, make in rows.items()]


def answering(
    encoder: Callable[[], Any], make: Callable[[nn.Module], Served], batch: int, tokens: int
) -> Step:
    """Forward only, random weights. Texts of a batch have lengths evenly between 1 and T."""
    served = make(random_classifier(encoder()))
    ids = torch.randint(5, 1_000, (batch, tokens), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    if batch > 1:
        lengths = torch.linspace(1, tokens, batch).round().long()
        mask = (torch.arange(tokens) < lengths[:, None]).long()
    return forward_only(lambda: served.answer(ids, mask))


def random_classifier(encoder: Any) -> BertForClassification:
    """A classifier on this encoder, ready to answer."""
    return classifier_on(encoder, CLASSES).eval()
