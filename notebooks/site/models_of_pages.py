"""The models that the site's pages run, by name: what the course ships, and what a page trains."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from course_index import SEARCHER, WAY, index_for
from differences import as_changed, write_difference
from torch import Tensor, nn
from weights import as_written, write_model

from course_lib import Encoder, finetune, load_pretrained
from course_lib.family.vit import VitConfig, VitForClassification
from course_lib.files import sha256_of
from course_lib.heads import BertForTokenClassification
from course_lib.images import digits
from course_lib.lectures.lecture_03.documentation_runs import CODE, as_sequences
from course_lib.lectures.lecture_08 import experiments as position_runs
from course_lib.lectures.lecture_15 import picture_runs
from course_lib.lectures.lecture_17 import search as search_runs
from course_lib.lectures.lecture_17.numbers import runs_of
from course_lib.teaching.documentation_tasks import code_words
from course_lib.teaching.shipped import micro_electra
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import head_on

PARTS = ("query", "key", "value")
TRAINED = Path(__file__).resolve().parent.parent.parent / "build" / "trained"
DIGITS, CODE_TAGGER, DISTANCES = "digits-vit", "code-tagger", "stories-deberta"
TAGGER_STEPS, DISTANCE_STEPS, SEARCH_STEPS = 120, 400, search_runs.RECIPES[WAY].steps

BASES = {CODE_TAGGER: "course-bert", SEARCHER: "course-bert"}  # whose script a model's own needs


def model_of(name: str) -> tuple[Any, WordPiece]:
    """The model of this name and its tokenizer; one without words has an empty one."""
    if name in ("electra-generator", "electra-discriminator"):
        return getattr(micro_electra(), name.removeprefix("electra-")), MicroWorld.load().tokenizer
    if name == DIGITS:
        return OfPictures(digits_vit()), WordPiece.from_words([])
    if name == CODE_TAGGER:
        return code_tagger(), model_of(BASES[name])[1]
    if name == SEARCHER:
        return search_encoder(), model_of(BASES[name])[1]
    if name == DISTANCES:
        return OfDistances(stories_deberta()), MicroWorld.load().tokenizer
    shipped = load_pretrained(name)
    assert isinstance(shipped.tokenizer, WordPiece)
    return shipped.model, shipped.tokenizer


def write_named(name: str, folder: Path) -> None:
    """Write this model's script into the folder; a base's is another one (BASES)."""
    model, words = model_of(name)
    if base := BASES.get(name):
        more = {"index": index_for(*as_shipped(name))} if name == SEARCHER else {}
        write_difference(name, model, (base, model_of(base)[0]), folder, **more)
    else:
        write_model(name, model, words, folder)


def as_shipped(name: str) -> tuple[Any, WordPiece]:
    """The model with the weights that its script gives the page, and its tokenizer."""
    model, words = model_of(name)
    base = BASES.get(name)
    state = as_changed(model, model_of(base)[0]) if base else as_written(model)
    model.load_state_dict(state)
    return model.eval(), words


def digits_vit() -> VitForClassification:
    """Page 15's ViT of two layers, trained on its digits with seed 0: ten seconds or so."""
    recipe = picture_runs.MAIN
    fresh = partial(picture_runs.start_of, recipe, digits().names, seed=0)
    key = sha256_of(Path(picture_runs.__file__))
    return _kept(f"{DIGITS}-{key[:16]}", fresh, lambda: picture_runs.trained(recipe, 0)[0])


def code_tagger() -> BertForTokenClassification:
    """Page 03's tagger of code words, trained as there on the documentation of what is installed:
    half a minute of a quiet core."""
    marked, start = code_words(train=500, test=300, outside=300), load_pretrained("course-bert")
    task = as_sequences(CODE, marked.train, start.tokenizer)
    fresh = partial(head_on, start.encoder, task, 0)
    train = partial(
        finetune, start.encoder, task, steps=TAGGER_STEPS, learning_rate=3e-4, progress=False
    )
    return _kept(f"{CODE_TAGGER}-{marked.hash[:16]}-{TAGGER_STEPS}", fresh, train)


def search_encoder() -> Encoder:
    """Page 17's bi-encoder, trained as there with seed 0 on the documentation of what is installed:
    two minutes of a quiet core."""
    recipe = replace(search_runs.RECIPES[WAY], learning_rate=runs_of(WAY)[0]["rate"])
    fresh = partial(search_runs.model_of, recipe, 0)
    key = search_runs.read("train").hash
    name = f"{SEARCHER}-{key[:16]}-{SEARCH_STEPS}"
    return _kept(name, fresh, lambda: search_runs.train(recipe, 0, SEARCH_STEPS)[0]).encoder


def stories_deberta() -> Encoder:
    """The encoder of page 08's DeBERTa of two layers, trained as there with seed 0: a minute or
    two."""
    recipe, world = position_runs.FULL, MicroWorld.load()
    fresh = partial(position_runs.small_model, recipe, world, 0)

    def train() -> Any:
        stories = position_runs.prepare(world)
        return position_runs.train_positions(recipe, stories, steps=DISTANCE_STEPS)[0]

    key = sha256_of(Path(position_runs.__file__))
    return _kept(f"{DISTANCES}-{key[:16]}-{DISTANCE_STEPS}", fresh, train).encoder


def _kept(name: str, fresh: Callable[[], Any], train: Callable[[], Any]) -> Any:
    """The trained model, its weights kept in a file of this name and torch's version."""
    path = TRAINED / f"{name}-{torch.__version__}.pt"
    if path.exists():
        model = fresh()
        model.load_state_dict(torch.load(path, weights_only=True))
    else:
        model = train()
        path.parent.mkdir(parents=True, exist_ok=True)
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

    def load_state_dict(self, state: Mapping[str, Tensor]) -> Any:  # type: ignore[override]
        shapes = self.model.state_dict().items()
        mine = {name: state[_renamed(name)].view_as(weight) for name, weight in shapes}
        return self.model.load_state_dict(mine)


class OfDistances(nn.Module):
    """A DeBERTa of the first generation under the names that models/encoder.js has: query, key and
    value apart, as BERT has them."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.config = encoder, encoder.config
        self.heads = (self.config.num_heads, 3, -1)  # how the fused matrix has its rows

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Tensor]:  # type: ignore[override]
        result = {}
        for name, weight in self.encoder.state_dict().items():
            layer, _, part = name.rpartition("projections.")
            if part == "fused.weight":
                apart = weight.unflatten(0, self.heads).unbind(1)  # each (A, D, H)
                for which, rows in zip(PARTS, apart, strict=True):
                    result[f"{layer}{which}.weight"] = rows.flatten(0, 1)
            else:
                result[layer + part.replace("_bias", ".bias")] = weight
        return result

    def load_state_dict(self, state: Mapping[str, Tensor]) -> Any:  # type: ignore[override]
        mine = {}
        for name in self.encoder.state_dict():
            layer, _, part = name.rpartition("projections.")
            if part == "fused.weight":
                apart = (state[f"{layer}{which}.weight"] for which in PARTS)
                heads = [rows.unflatten(0, (self.heads[0], -1)) for rows in apart]  # each (A, D, H)
                mine[name] = torch.stack(heads, dim=1).flatten(0, 2)
            else:
                mine[name] = state[layer + part.replace("_bias", ".bias")]
        return self.encoder.load_state_dict(mine)


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
    first = {
        name: int((held_out.labels == k).nonzero()[0]) for k, name in enumerate(held_out.names)
    }
    pixels = (16 * held_out.pixel_values).round().int()
    return json.dumps({name: pixels[at].flatten().tolist() for name, at in first.items()})
