"""`15_scenes` and `15_clip`: what works once pictures do not run out.

A masked autoencoder (He et al. 2021): three patches of four are hidden, the encoder reads the
others alone, and a small decoder, thrown away afterwards, predicts the pixels of those hidden. Then
50 labels, beside random initialisation, each at the best of three learning rates on other pictures.
And CLIP (Radford et al. 2021) in small: a picture encoder and a text encoder learn which scene
belongs to which sentence.

Scenes are drawn anew at every step. B pictures, N patches, V of them visible, H hidden size."""

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
from course_lib.encoder import Encoder, Stack, initialise
from course_lib.family.gpt import PreNormBlock
from course_lib.family.vit import VitConfig, VitEncoder, vit_encoder
from course_lib.images import LabelledPictures, Pair, Scenes, cut_patches, scenes
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.masked_patches import hide_patches
from course_lib.objectives.sequences import Batch
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import REPLAYED, kept, stored
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import class_accuracy, labelled_batches
from course_lib.train.loop import Callback, fit

from .picture_runs import PRECISION, SEEDS, MeanVit, sample

FILE, PAIRS = "15_scenes", "15_clip"
SIZE, PATCH, RATE = 24, 4, 0.75
MEAN, SD = 0.17, 0.15  # of the scenes' pixels: what a model reads is standardised by them
FAR = 1_000  # seeds of the pictures drawn while training; those of labels are below
LABELS, TESTED, CANDIDATES = 50, 1_000, 500
RANDOM, MASKED = "random", "masked autoencoder"
LONGER = "random, five times the steps"  # at the middle rate


@dataclass(frozen=True)
class SceneRecipe:
    """start: RANDOM, or MASKED after `start_steps` of it. steps, learning_rate: with labels."""

    start: str = RANDOM
    learning_rate: float = 1e-3
    steps: int = 120
    start_steps: int = 1_200
    start_rate: float = 2e-3
    batch_size: int = 64
    hidden_size: int = 48
    num_layers: int = 2
    initializer_range: float = 0.2


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
RATES = (3e-4, 1e-3, 3e-3)
FIFTY = {
    f"{start}, {rate:g}": SceneRecipe(start, rate) for start in (RANDOM, MASKED) for rate in RATES
}
RECIPES: dict[str, Any] = {
    **FIFTY,
    LONGER: SceneRecipe(steps=600),
}


def settings(recipe: Any) -> dict[str, Any]:
    """What the encoders of a recipe are built with."""
    H = recipe.hidden_size
    return {
        "hidden_size": H, "num_layers": recipe.num_layers, "num_heads": 4,
        "intermediate_size": 4 * H, "initializer_range": recipe.initializer_range,
        "hidden_dropout": 0.0, "attention_dropout": 0.0,
    }  # fmt: skip


def standardised(images: Tensor) -> Tensor:
    """Pixels with mean 0 and standard deviation 1, as a model reads them."""
    return (images - MEAN) / SD


# ---------------------------------------------------------------- a masked autoencoder


class Reconstruction(NamedTuple):
    patches: Tensor  # (B, N, C·P·P)


class MaskedAutoencoder(nn.Module):
    """An encoder that reads visible patches alone, and a decoder of one layer that reads what it
    says of them, and a learned vector at each place that was hidden."""

    def __init__(self, encoder: VitEncoder) -> None:
        super().__init__()
        self.encoder, self.config = encoder, encoder.config
        H, tokens = self.config.hidden_size, self.config.max_positions
        self.mask_token = nn.Parameter(torch.zeros(1, 1, H))
        self.position = nn.Parameter(torch.zeros(tokens, H))
        self.decoder = Stack(replace(self.config, num_layers=1), block=PreNormBlock)
        self.norm = nn.LayerNorm(H)
        self.head = nn.Linear(H, self.config.num_channels * self.config.patch_size**2)
        for part in (self.decoder, self.head):
            part.apply(partial(initialise, sd=self.config.initializer_range))
        with torch.no_grad():  # begin where the encoder's positions begin
            self.position.copy_(encoder.embeddings.position_table())  # type: ignore[operator, union-attr]

    def forward(self, pixel_values: Tensor, visible: Tensor) -> Reconstruction:
        """pixel_values (B, C, S, S), visible (B, V): numbers of the patches that are read."""
        x = self.encoder.embeddings(pixel_values)
        cls, patches = x[:, :1], x[:, 1:]
        where = visible[..., None].expand(-1, -1, x.shape[2])  # (B, V, H)
        read = torch.cat([cls, patches.gather(1, where)], dim=1)
        read = self.encoder.norm(self.encoder.stack(read)[0][-1])
        every = self.mask_token.expand(patches.shape).scatter(1, where, read[:, 1:])
        states = self.decoder(torch.cat([read[:, :1], every], dim=1) + self.position)[0]
        return Reconstruction(self.head(self.norm(states[-1][:, 1:])))


def hidden_pixels_loss(outputs: Any, targets: Any) -> dict[str, Tensor]:
    """Mean squared error over the pixels of hidden patches."""
    apart = (outputs.patches - targets["patches"])[targets["hidden"]]
    return {"total": apart.square().mean()}


def masked_scenes(recipe: SceneRecipe, seed: int, step: int) -> Batch:
    """New scenes, and which of their patches are visible."""
    images = standardised(scenes(recipe.batch_size, FAR * (seed + 1) + step).pixel_values)
    patches = cut_patches(images, PATCH)
    count = patches.shape[1]
    hidden = hide_patches(count, torch.arange(len(images)), rate=RATE, seed=FAR * seed + step)
    visible = (~hidden).nonzero()[:, 1].view(len(images), -1)
    return Batch(
        {"pixel_values": images, "visible": visible}, {"patches": patches, "hidden": hidden}
    )


def random_encoder(recipe: SceneRecipe, seed: int) -> VitEncoder:
    """A ViT for scenes, randomly initialised; positions of rows and columns, as large as a
    patch's vector."""
    torch.manual_seed(seed)
    config = VitConfig(
        image_size=SIZE, patch_size=PATCH, num_channels=3, positions="2d", **settings(recipe)
    )
    encoder = vit_encoder(config, pooler=False)
    for name in ("row", "column"):
        nn.init.normal_(getattr(encoder.embeddings, name))
    return encoder


def masked_start(recipe: SceneRecipe, seed: int, callbacks: Sequence[Callback] = ()) -> Any:
    """The autoencoder after its pre-training, and its losses."""
    model = MaskedAutoencoder(random_encoder(recipe, seed))
    history = fit(
        model, hidden_pixels_loss, partial(masked_scenes, recipe, seed), seed=seed,
        steps=recipe.start_steps, learning_rate=recipe.start_rate, precision=PRECISION,
        callbacks=callbacks,
    )  # fmt: skip
    return model, history.losses["total"]


@lru_cache(maxsize=3)
def pretrained(start: SceneRecipe, seed: int) -> tuple[dict[str, Tensor], float]:
    """The encoder's weights, and the last loss: what is left of the pixels' variance."""
    model, losses = masked_start(start, seed)
    return model.encoder.state_dict(), sum(losses[-50:]) / 50


# ---------------------------------------------------------------- fifty labels


@lru_cache
def asked_for_shape() -> tuple[LabelledPictures, ...]:
    """Scenes to learn from, to choose a rate by, and to be tested on; the class: what shape the
    first thing has."""
    made = (scenes(2_000, 0), scenes(TESTED, 1), scenes(TESTED, 0, "test"))
    asked = (one.labelled(lambda pair: pair[0].shape) for one in made)
    return tuple(replace(one, pixel_values=standardised(one.pixel_values)) for one in asked)


def fifty_run(recipe: SceneRecipe, seed: int) -> dict[str, Any]:
    """Fine-tune on LABELS scenes; a classifier on the mean of the patches."""
    began, (train, valid, test) = time.process_time(), asked_for_shape()
    train, encoder = sample(train, LABELS, seed), random_encoder(recipe, seed)
    result: dict[str, Any] = {"seed": seed}
    if recipe.start == MASKED:
        first = replace(
            recipe, learning_rate=SceneRecipe().learning_rate, steps=SceneRecipe().steps
        )
        state, result["left"] = pretrained(first, seed)
        encoder.load_state_dict(state)
    torch.manual_seed(seed)
    model = MeanVit(encoder, train.names)
    fit(
        model, classification_loss, labelled_batches(train, LABELS, seed), steps=recipe.steps,
        learning_rate=recipe.learning_rate, seed=seed, precision=PRECISION,
    )  # fmt: skip
    for name, side in (("accuracy", test), ("valid_accuracy", valid), ("train_accuracy", train)):
        result[name] = class_accuracy(model, side)
    return result | {"cpu_seconds": round(time.process_time() - began, 1)}


def best_rate(start: str, file: str = FILE) -> str:
    """The stored recipe of a start whose rate did best on the pictures for choosing; one that has
    a single rate as it is."""
    runs = stored(file)["runs"]
    if start in runs:
        return start
    names = [f"{start}, {rate:g}" for rate in RATES]
    return max(names, key=lambda name: sum(run["valid_accuracy"] for run in runs[name]))


# ---------------------------------------------------------------- CLIP


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
        vit = VitConfig(image_size=SIZE, patch_size=8, num_channels=3, **shape)
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
    """Of each picture its own sentence, of each sentence its own picture, among the batch's."""
    own = torch.arange(len(outputs.logits))
    ways = (outputs.logits, outputs.logits.T)
    return {"total": sum(F.cross_entropy(way, own) for way in ways) / 2}  # type: ignore[dict-item]


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


def one_run(recipe: Any, _: Any, seed: int) -> dict[str, Any]:
    """Train and measure. Finished runs are read from the cache."""
    run = clip_run if isinstance(recipe, ClipRecipe) else fifty_run
    about = {"seed": seed, **asdict(recipe)}
    return kept(FILE.replace("_", "-"), about, MicroWorld.load(), partial(run, recipe, seed))


def replay(_: Any = None) -> list[float]:
    """The first losses of the autoencoder, seed 0."""
    return list(masked_start(replace(SceneRecipe(MASKED), start_steps=REPLAYED), 0)[1])


def replay_clip(_: Any = None) -> list[float]:
    """The first losses of CLIP, seed 0, as if it were trained for so few steps."""
    return trained_clip(replace(CLIP, steps=REPLAYED), 0)[1]


EXPERIMENTS = (
    Experiment(FILE, RECIPES, SEEDS, run=one_run, losses=replay),
    Experiment(PAIRS, {"CLIP": CLIP}, SEEDS, run=one_run, losses=replay_clip),
)
