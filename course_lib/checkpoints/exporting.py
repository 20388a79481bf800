"""Models as ONNX, the exchange format that other programs run, compared with torch before the file
is there."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, replace
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.family.deberta import DebertaConfig
from course_lib.family.fastbert import FastBert
from course_lib.family.gpt import GptForNextToken
from course_lib.family.vit import VitConfig
from course_lib.files import as_path, naming, place_for

from .convert import known
from .families import FAMILIES
from .reading import CheckpointError
from .saved import as_stored

ALONE = (FastBert, GptForNextToken)  # models that transformers does not have, or not so


def export_onnx(model: nn.Module, path: str | Path, *, tolerance: float = 1e-4) -> Path:
    """Write a model as ONNX, in float32, batch and length left open; returns the path.

    model: what `save` takes, a FastBert or a GptForNextToken, on any device and in any mode. Its
    inputs are `input_ids`, `attention_mask` and, where there are two segments or languages,
    `token_type_ids`, each (batch, tokens) of int64; of a ViT `pixel_values`. Its outputs are all
    that the model gives, under transformers' names: `logits`, `start_logits` and `end_logits`,
    `last_hidden_state` and so on. The names of classes go along as metadata, `id2label`, in JSON.

    tolerance: what is written is run by ONNX Runtime at other sizes of batch and length, and may
    differ from torch by that part of the largest value (by it alone, where all are below 1).
    Raises ModuleNotFoundError, with the command that helps, where a package is missing, and
    CheckpointError for another model, for weights that are not finite numbers and for a difference
    above; TypeError for what is no path. Then nothing is written."""
    path = as_path(path, " The model comes first: export_onnx(model, path).")
    if missing := missing_packages():
        raise ModuleNotFoundError(
            f"{', '.join(missing)} is not installed, and ONNX needs it: "
            "pip install 'bert-family-course[onnx]'."
        )
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder; expected the file's name, as in model.onnx.")
    whole = _Whole(model)
    for name, value in whole.model.state_dict().items():
        as_stored(name, value)
    place_for(path)
    with naming(path), TemporaryDirectory(dir=path.parent, ignore_cleanup_errors=True) as folder:
        try:
            _write(whole, Path(folder, path.name))
            _compare(whole, Path(folder, path.name), tolerance)
        except CheckpointError:
            raise
        except Exception as error:  # torch's and ONNX Runtime's have many classes, and causes
            if isinstance(error, OSError) and error.errno:  # a full disk
                raise
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            raise CheckpointError(
                f"a {type(model).__name__} was given that ONNX cannot represent; nothing was "
                f"written: {str(cause).strip()}"
            ) from error
        for file in sorted(Path(folder).iterdir(), reverse=True):  # weights beyond 2 GB go first
            os.replace(file, path.parent / file.name)
    return path


def missing_packages() -> list[str]:
    """What `export_onnx` needs and is not installed: the extra [onnx]."""
    return [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]


class _Whole(nn.Module):
    """A copy of a model, in float32 on the CPU, with tensors only going in and out, by name."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        if not isinstance(model, ALONE):
            known(model)
        self.model = deepcopy(model).cpu().float().eval().requires_grad_(False)
        for part in self.model.modules():  # a path of GPUs alone may have been asked for by name
            if isinstance(config := getattr(part, "config", None), DebertaConfig):
                part.config = replace(config, kernels="auto")  # type: ignore[assignment]
        self.config: Any = model.config
        self.labels = getattr(model, "names", ())
        self.inputs = [name for name in signature(model.forward).parameters if self._reads(name)]
        family = next((f for f in FAMILIES.values() if f.config_class is type(self.config)), None)
        self.renamed = family.outputs if family else {}
        self.outputs = list(self.by_name(**self.drawn(2, 8)))

    def _reads(self, name: str) -> bool:
        if name == "token_type_ids":
            return self.config.type_vocab_size > 1
        return name in ("input_ids", "attention_mask", "pixel_values")

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.by_name(**dict(zip(self.inputs, inputs, strict=True))).values())

    def by_name(self, **inputs: Tensor) -> dict[str, Tensor]:
        result = self.model(**inputs)
        values = {field.name: getattr(result, field.name) for field in fields(result)}
        for number, value in enumerate(values.pop("exit_logits", ()), start=1):  # FastBERT's
            values |= {"logits": result.logits, f"exit_logits_{number}": value}
        return {
            self.renamed.get(name, name): value
            for name, value in values.items()
            if isinstance(value, Tensor)
        }

    def drawn(self, batch: int, tokens: int) -> dict[str, Tensor]:
        """Drawn inputs: texts of several lengths, padding behind them, the second half of each in
        the last segment."""
        draw, config = torch.Generator().manual_seed(batch), self.config
        if isinstance(config, VitConfig):
            size = (batch, config.num_channels, config.image_size, config.image_size)
            return {"pixel_values": torch.randn(size, generator=draw)}
        tokens = min(tokens, config.longest_text)
        lengths = torch.linspace(tokens, (tokens + 1) // 2, batch).long()[:, None]
        mask = (torch.arange(tokens) < lengths).long()
        ids = torch.randint(config.vocab_size, (batch, tokens), generator=draw)
        drawn = {
            "input_ids": torch.where(mask.bool(), ids, config.pad_token_id),
            "attention_mask": mask,
            "token_type_ids": (torch.arange(tokens) >= lengths // 2)
            * mask
            * (config.type_vocab_size - 1),
        }
        return {name: drawn[name] for name in self.inputs}


def _write(whole: _Whole, path: Path) -> None:
    axes = {0: torch.export.Dim("batch", min=1)}
    if "input_ids" in whole.inputs:
        axes[1] = torch.export.Dim("tokens", min=1, max=whole.config.longest_text)
    with _quiet():
        program = torch.onnx.export(
            whole, tuple(whole.drawn(2, 8).values()), dynamo=True, verbose=False,
            input_names=whole.inputs, output_names=whole.outputs,
            dynamic_shapes=((axes,) * len(whole.inputs),),
        )  # fmt: skip
    assert program is not None
    if whole.labels:
        names = json.dumps(dict(enumerate(whole.labels)), ensure_ascii=False)
        program.model.metadata_props["id2label"] = names
    program.save(str(path))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's words on packages that it could use, and on what it left as it is."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _compare(whole: _Whole, path: Path, tolerance: float) -> None:
    """Raise CheckpointError where ONNX Runtime gives other numbers than torch, at real tokens: in a
    local layer a padding's may mean nothing."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised, not printed as well
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    for inputs in (whole.drawn(1, 5), whole.drawn(3, 96)):
        values = session.run(whole.outputs, {name: x.numpy() for name, x in inputs.items()})
        mask = inputs.get("attention_mask", torch.ones(0)).bool()
        for (name, right), value in zip(whole.by_name(**inputs).items(), values, strict=True):
            real = mask if right.shape[:2] == mask.shape else ...
            apart = (torch.from_numpy(value) - right)[real].abs().max()
            largest = right[real].abs().max()
            if not apart <= tolerance * largest.clamp(min=1):
                raise CheckpointError(
                    f"ONNX Runtime's {name} differ from torch's by up to {apart:.1e} (the largest "
                    f"is {largest:.1e}), above the tolerance of {tolerance:g}: nothing was "
                    "written. A larger tolerance accepts it."
                )
