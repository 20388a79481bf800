"""The models that the site's pages run, by name: what the course ships, and what a page trains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib import load_pretrained
from course_lib.family.vit import VitConfig, VitForClassification
from course_lib.files import sha256_of
from course_lib.images import digits
from course_lib.lectures.lecture_15 import picture_runs
from course_lib.teaching.shipped import micro_electra
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld

TRAINED = Path(__file__).resolve().parent.parent.parent / "build" / "trained"
DIGITS = "digits-vit"


def model_of(name: str) -> tuple[Any, WordPiece]:
    """The model of this name and its tokenizer; one without words has an empty one."""
    if name in ("electra-generator", "electra-discriminator"):
        return getattr(micro_electra(), name.removeprefix("electra-")), MicroWorld.load().tokenizer
    if name == DIGITS:
        return OfPictures(digits_vit()), WordPiece.from_words([])
    shipped = load_pretrained(name)
    assert isinstance(shipped.tokenizer, WordPiece)
    return shipped.model, shipped.tokenizer


def digits_vit(folder: Path = TRAINED) -> VitForClassification:
    """Page 15's ViT of two layers, trained on its digits with seed 0: ten seconds or so. It is kept
    in the folder, and trained anew when its recipe or the code that runs it has changed."""
    recipe = picture_runs.MAIN
    model: Any = picture_runs.start_of(recipe, digits().names, seed=0)
    key = sha256_of(Path(picture_runs.__file__))[:16]
    path = folder / f"{DIGITS}-{key}-{torch.__version__}.pt"
    if path.exists():
        model.load_state_dict(torch.load(path, weights_only=True))
    else:
        model, _ = picture_runs.trained(recipe, seed=0)
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), path)
    return model.eval()


@dataclass(frozen=True)
class PictureConfig(VitConfig):
    """A ViT's shape with what models/encoder.js asks of a block: norms before its halves, and one
    after the last."""

    pre_norm: bool = True
    final_norm: bool = True


class OfPictures(nn.Module):
    """A ViT under the names and shapes that models/encoder.js has: patches through a matrix, the
    last norm as a part of the stack."""

    def __init__(self, model: VitForClassification) -> None:
        super().__init__()
        self.model = model
        shape = {f.name: getattr(model.config, f.name) for f in fields(VitConfig)}
        self.config = PictureConfig(**shape)

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Tensor]:  # type: ignore[override]
        weights = self.model.state_dict().items()
        return {_renamed(name): _as_matrix(weight) for name, weight in weights}

    def load_state_dict(self, state: Mapping[str, Tensor], *_: Any, **__: Any) -> Any:
        shapes = self.model.state_dict().items()
        mine = {name: state[_renamed(name)].view_as(weight) for name, weight in shapes}
        return self.model.load_state_dict(mine)


def _renamed(name: str) -> str:
    return name.replace("encoder.norm.", "encoder.stack.norm.")


def _as_matrix(weight: Tensor) -> Tensor:
    """A convolution's kernels (H, C, P, P) as rows (H, C·P·P); positions (1, T, H) as (T, H)."""
    if weight.dim() == 1:
        return weight
    return weight.flatten(1) if weight.dim() == 4 else weight.flatten(0, -2)


def digits_examples() -> str:
    """Ten held-out digits, one of each class, as JSON: {digit: 64 pixels from 0 to 16}."""
    held_out = digits("test")
    first = {name: int((held_out.labels == k).nonzero()[0]) for k, name in enumerate(held_out.names)}
    pixels = (16 * held_out.pixel_values).round().int()
    return json.dumps({name: pixels[at].flatten().tolist() for name, at in first.items()})
