"""`15_clip`: CLIP in small (Radford et al. 2021). A picture encoder and a text encoder learn which
scene belongs to which sentence, from pairs alone. Scenes are drawn anew at every step.

B pairs, T tokens, H hidden size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.vit import VitConfig, vit_encoder
from course_lib.images import Pair, Scenes, scenes
from course_lib.objectives.contrastive import symmetric_cross_entropy
from course_lib.objectives.sequences import Batch
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import REPLAYED, kept
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld
from course_lib.train.loop import Callback, fit

from .picture_runs import PRECISION, SEEDS

FILE = "15_clip"
FAR = 1_000  # seeds of the training scenes begin here
CANDIDATES = 500


@dataclass(frozen=True)
class ClipRecipe:
    """Two encoders of one shape, and pairs of a scene and its sentence, `batch_size` a step."""

    steps: int = 900
    learning_rate: float = 2e-3
    batch_size: int = 64
    hidden_size: int = 64
    num_layers: int = 2
    initializer_range: float = 0.1


CLIP = ClipRecipe()
LIVE = ClipRecipe(steps=300)  # what a page trains while one reads


def settings(recipe: ClipRecipe) -> dict[str, Any]:
    """What the encoders of a recipe are built with."""
    H = recipe.hidden_size
    return {
        "hidden_size": H, "num_layers": recipe.num_layers, "num_heads": 4,
        "intermediate_size": 4 * H, "initializer_range": recipe.initializer_range,
        "hidden_dropout": 0.0, "attention_dropout": 0.0,
    }  # fmt: skip


@lru_cache(maxsize=1)
def tokenizer() -> WordPiece:
    """Every word of a scene's sentence is one token."""
    return WordPiece.from_words(sorted({w for s in scenes(500).sentences for w in s.split()}))


def encoded(sentences: Sequence[str]) -> Tensor:
    """(B, T): all sentences of scenes are equally long."""
    return torch.tensor([tokenizer().encode(sentence) for sentence in sentences])


class Similarities(NamedTuple):
    logits: Tensor  # (B pictures, B sentences)


class SmallClip(nn.Module):
    """A picture encoder and a text encoder; each makes one vector of length 1."""

    def __init__(self, recipe: ClipRecipe) -> None:
        super().__init__()
        H, shape = recipe.hidden_size, settings(recipe)
        vit = VitConfig(image_size=24, patch_size=8, num_channels=3, **shape)
        self.pictures = vit_encoder(vit, pooler=False)
        config = BertConfig(vocab_size=tokenizer().vocab_size, max_positions=32, **shape)
        self.texts, self.config = Encoder(config), config
        self.from_picture, self.from_text = (nn.Linear(H, H, bias=False) for _ in range(2))
        self.scale = nn.Parameter(torch.tensor(1 / 0.07).log())

    def vectors(self, pixel_values: Tensor, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        """(B, H) of the pictures and (B, H) of the sentences, read at the first token."""
        picture = self.from_picture(self.pictures(pixel_values).last_hidden_state[:, 0])
        text = self.from_text(self.texts(input_ids).last_hidden_state[:, 0])
        return F.normalize(picture, dim=-1), F.normalize(text, dim=-1)

    def forward(self, pixel_values: Tensor, input_ids: Tensor) -> Similarities:
        """Each picture's cosine similarity with each sentence, times a learned scale."""
        picture, text = self.vectors(pixel_values, input_ids)
        return Similarities(self.scale.exp() * picture @ text.T)


def contrastive_loss(outputs: Any, targets: Any) -> dict[str, Tensor]:
    """Each picture must find its own sentence in the batch, and each sentence its own picture."""
    return {"total": symmetric_cross_entropy(outputs.logits)}


def clip_inputs(made: Scenes) -> dict[str, Tensor]:
    """What a SmallClip reads."""
    return {"pixel_values": made.pixel_values, "input_ids": encoded(made.sentences)}


def clip_batch(recipe: ClipRecipe, seed: int, step: int) -> Batch:
    """New scenes and their sentences."""
    return Batch(clip_inputs(scenes(recipe.batch_size, FAR * (seed + 1) + step)), {})


def trained_clip(
    recipe: ClipRecipe, seed: int, callbacks: Sequence[Callback] = ()
) -> tuple[SmallClip, list[float]]:
    """A SmallClip, trained, and its losses."""
    torch.manual_seed(seed)
    model = SmallClip(recipe)
    history = fit(
        model, contrastive_loss, partial(clip_batch, recipe, seed), steps=recipe.steps,
        learning_rate=recipe.learning_rate, seed=seed, precision=PRECISION, callbacks=callbacks,
    )  # fmt: skip
    return model, history.losses["total"]


@lru_cache(maxsize=1)
def candidates() -> Scenes:
    """CANDIDATES unseen scenes, no two of which have the same sentence."""
    made = scenes(2 * CANDIDATES, 0, "test")
    seen: dict[str, int] = {}
    for number, sentence in enumerate(made.sentences):
        seen.setdefault(sentence, number)
    chosen = list(seen.values())[:CANDIDATES]
    return Scenes(made.pixel_values[chosen], tuple(made.things[number] for number in chosen))


@torch.no_grad()
def retrieved(model: SmallClip) -> dict[str, float]:
    """How often the first answer among the candidates is right, both ways, and how often the right
    sentence is among the first five; and how many words are wrong where it is not right."""
    made = candidates()
    logits = model.eval()(**clip_inputs(made)).logits
    own = torch.arange(len(logits))
    first, five = logits.argmax(1), logits.topk(5).indices
    apart = [wrong_words(made.things[n], made.things[m]) for n, m in enumerate(first.tolist())]
    return {
        "accuracy": (first == own).double().mean().item(),
        "picture_accuracy": (logits.argmax(0) == own).double().mean().item(),
        "five": (five == own[:, None]).any(1).double().mean().item(),
        "wrong_words": sum(apart) / max(1, sum(map(bool, apart))),
    }


def wrong_words(one: Pair, other: Pair) -> int:
    """By how many of their eight words two scenes differ."""
    return sum(a != b for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


def clip_run(recipe: ClipRecipe, seed: int) -> dict[str, Any]:
    began = time.process_time()
    model, losses = trained_clip(recipe, seed)
    seconds = round(time.process_time() - began, 1)
    return {"seed": seed, **retrieved(model), "last_loss": sum(losses[-50:]) / 50,
            "cpu_seconds": seconds}  # fmt: skip


def one_run(recipe: ClipRecipe, _: Any, seed: int) -> dict[str, Any]:
    """Train and measure. Finished runs are read from the cache."""
    about = {"seed": seed, **asdict(recipe)}
    return kept("15-clip", about, MicroWorld.load(), partial(clip_run, recipe, seed))


def replay(_: Any = None) -> list[float]:
    """The first losses of CLIP, seed 0, as if it were trained for so few steps."""
    return trained_clip(replace(CLIP, steps=REPLAYED), 0)[1]


EXPERIMENT = Experiment(FILE, {"CLIP": CLIP}, SEEDS, run=one_run, losses=replay)
