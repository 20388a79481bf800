"""Lecture 15's runs: what a ViT needs to read pictures.

Digits (8×8, patches of 2, so 17 tokens) and scenes (24×24, patches of 8, so 10 tokens). Beside the
ViT a small CNN, trained by the same loop, and a logistic regression on the pixels.

`15_positions`: with positions, without, and with patches shuffled. `15_pictures`: accuracy against
the number of labelled pictures. `15_masked`: pre-training on masked patches. `15_resolution`: the
same weights on larger pictures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.encoder import count_parameters
from course_lib.family.vit import (
    VitConfig,
    VitEncoder,
    VitForClassification,
    VitForMaskedPatches,
    resized,
    vit_encoder,
)
from course_lib.heads import ClassifierOutput
from course_lib.images import (
    SPLITS,
    LabelledPictures,
    cut_patches,
    digits,
    join_patches,
    scenes,
)
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.masked_patches import masked_patch_batches, masked_patch_loss
from course_lib.objectives.sequences import Batch
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import REPLAYED, kept
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import class_accuracy, head_on, labelled_batches
from course_lib.train.flops import step_flops
from course_lib.train.loop import Callback, Report, fit

PRECISION = "float32"
SEEDS = range(3)
DIGITS = "digits"
PLACE, THINGS = "scenes: which row", "scenes: a circle"
QUESTIONS = {  # of a scene's two things; only one of them asks where
    PLACE: lambda pair: pair[0].row,
    THINGS: lambda pair: "yes" if "circle" in (pair[0].shape, pair[1].shape) else "no",
}
PATCH = {DIGITS: 2, PLACE: 8, THINGS: 8}
KEPT, ONE, EACH = "as they are", "one permutation", "one a picture"  # orders of the patches
VIT, CNN, LOGISTIC = "ViT", "CNN", "logistic regression"
MEAN = "ViT, mean of patches"  # read by the classifier, instead of the class token
EVERY = 40  # steps between two looks at the test pictures
FEW, GENTLE = (50, 200), 5e-4
LARGER = 16  # pixels


@dataclass(frozen=True)
class PictureRecipe:
    """task: a key of PATCH. model: VIT, MEAN, CNN or LOGISTIC. order: of every picture's patches.
    labelled: pictures with labels, drawn by the seed, 0: all. shift: up to so many pixels a
    picture is moved whenever it is read.

    start: "random", or "masked patches", after pre-training on the pictures of `read`. equal_flops:
    the pre-training's FLOPs are spent on more steps with labels instead."""

    task: str = DIGITS
    model: str = VIT
    positions: str = "1d"
    order: str = KEPT
    labelled: int = 0
    shift: int = 0
    start: str = "random"
    read: str = DIGITS
    start_steps: int = 0
    equal_flops: bool = False
    steps: int = 400
    batch_size: int = 64
    learning_rate: float = 2e-3
    hidden_size: int = 32
    num_layers: int = 2
    num_heads: int = 2
    initializer_range: float = 0.1


@dataclass(frozen=True)
class LargerRecipe:
    """A ViT of 8×8 digits goes on with 16×16. start: "resized", positions interpolated by `how`;
    "new positions", drawn at random; or "random", all of it."""

    start: str = "resized"
    how: str = "bicubic"
    steps: int = 240
    learning_rate: float = 1e-3


MAIN = PictureRecipe()
ON_SCENES = PictureRecipe(task=PLACE, labelled=2_000, steps=300)
A_CIRCLE = replace(ON_SCENES, task=THINGS)
POSITIONS = {
    "1-D positions": MAIN,
    "2-D positions": replace(MAIN, positions="2d"),
    "no positions": replace(MAIN, positions="none"),
    "no positions, longer": replace(MAIN, positions="none", steps=4 * MAIN.steps),
    "ViT, one permutation": replace(MAIN, order=ONE),
    "ViT, one a picture": replace(MAIN, order=EACH),
    "CNN": replace(MAIN, model=CNN),
    "CNN, one permutation": replace(MAIN, model=CNN, order=ONE),
    "CNN, one a picture": replace(MAIN, model=CNN, order=EACH),
    "logistic regression": replace(MAIN, model=LOGISTIC),
    "logistic regression, one permutation": replace(MAIN, model=LOGISTIC, order=ONE),
    "logistic regression, one a picture": replace(MAIN, model=LOGISTIC, order=EACH),
    **{
        f"{question}, {name}": replace(recipe, positions=positions)
        for question, recipe in (("which row", ON_SCENES), ("a circle", A_CIRCLE))
        for name, positions in (("1-D", "1d"), ("2-D", "2d"), ("none", "none"))
    },
}
SIZES = (50, 200, 800, 0)
PICTURES = {
    **{
        f"{model}, {size or 'all'}": replace(MAIN, model=model, labelled=size)
        for model in (VIT, CNN, LOGISTIC) for size in SIZES
    },
    **{
        f"{model} shifted, {size or 'all'}": replace(
            MAIN, model=model, labelled=size, shift=1, steps=2 * MAIN.steps
        )
        for model in (VIT, CNN) for size in (200, 0)
    },
    **{
        f"{model} shifted, all, one permutation": replace(
            MAIN, model=model, order=ONE, shift=1, steps=2 * MAIN.steps
        )
        for model in (VIT, CNN)
    },
    **{
        f"{model}, {size or 'all'}, twice the steps": replace(
            MAIN, model=model, labelled=size, steps=2 * MAIN.steps
        )
        for model in (VIT, CNN) for size in (200, 0)
    },
    "ViT shifted, all, eight times the steps": replace(MAIN, shift=1, steps=8 * MAIN.steps),
    "ViT shifted, all, twice as wide": replace(
        MAIN, shift=1, steps=2 * MAIN.steps, hidden_size=64, num_heads=4
    ),
}  # fmt: skip
OTHER_RATES = (2.5e-4, 5e-4, 1e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2)
HIGHER = {VIT: (), CNN: (6.4e-2, 0.128)}  # until accuracy falls
PICTURES |= {
    f"{model}{size}, rate {rate:g}": replace(PICTURES[f"{model}{size}"], learning_rate=rate)
    for model in (VIT, CNN)
    for size in (", 50", ", 200", ", all", " shifted, all")
    for rate in (*OTHER_RATES, *HIGHER[model])
}
PRETRAINED = replace(MAIN, start="masked patches", start_steps=1_000)
MASKED = {
    **{f"random, {n}": replace(MAIN, labelled=n) for n in FEW},
    **{f"masked patches, {n}": replace(PRETRAINED, labelled=n) for n in FEW},
    **{f"equal FLOPs, {n}": replace(PRETRAINED, labelled=n, equal_flops=True) for n in FEW},
    "random, 50, a quarter of the rate": replace(MAIN, labelled=50, learning_rate=GENTLE),
    "masked patches, 50, a quarter of the rate": replace(
        PRETRAINED, labelled=50, learning_rate=GENTLE
    ),
    "random, 50, mean of patches": replace(MAIN, labelled=50, model=MEAN),
    "masked patches, 50, mean of patches": replace(PRETRAINED, labelled=50, model=MEAN),
}
RESOLUTION = {
    "bicubic": LargerRecipe(),
    "bilinear": LargerRecipe(how="bilinear"),
    "new positions": LargerRecipe(start="new positions"),
    "random initialisation": LargerRecipe(start="random", learning_rate=MAIN.learning_rate),
}


# ---------------------------------------------------------------- pictures


@lru_cache
def pictures_of(task: str) -> dict[str, LabelledPictures]:
    """The task's pictures: "train" to learn from, "test" to be tested on."""
    if task in QUESTIONS:
        made = {"train": scenes(2_000, 0), "test": scenes(1_000, 0, "test")}
        return {split: one.labelled(QUESTIONS[task]) for split, one in made.items()}
    return {split: digits(split) for split in SPLITS}


def sample(pictures: LabelledPictures, count: int, seed: int) -> LabelledPictures:
    """`count` of the pictures, drawn by the seed; all of them for 0."""
    order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(seed))
    return pictures[order[:count]] if count else pictures


def shuffled_patches(images: Tensor, size: int, order: str, seed: int = 0) -> Tensor:
    """Pictures (N, C, S, S) with their patches elsewhere: the same permutation for all (ONE), or
    another one for each (EACH)."""
    if order == KEPT:
        return images
    patches, draw = cut_patches(images, size), torch.Generator().manual_seed(seed)
    count = patches.shape[1]
    if order == ONE:
        where = torch.randperm(count, generator=draw).expand(len(images), -1)
    else:
        where = torch.rand(len(images), count, generator=draw).argsort(1)
    moved = patches.gather(1, where[..., None].expand(-1, -1, patches.shape[2]))
    return join_patches(moved, size, images.shape[2] // size)


def moved(images: Tensor, most: int, seed: int) -> Tensor:
    """Each picture moved by up to `most` pixels in both directions; what comes in is dark."""
    draw, size = torch.Generator().manual_seed(seed), images.shape[-1]
    padded = F.pad(images, (most,) * 4)
    down, right = torch.randint(0, 2 * most + 1, (2, len(images)), generator=draw)
    rows = (down[:, None] + torch.arange(size))[:, None, :, None]
    columns = (right[:, None] + torch.arange(size))[:, None, None, :]
    channels = torch.arange(images.shape[1])[None, :, None, None]
    return padded[torch.arange(len(images))[:, None, None, None], channels, rows, columns]


# ---------------------------------------------------------------- models


class SmallCnn(nn.Module):
    """Two convolutions of 3×3, one pooling by 2, a dense layer: (B, 1, 8, 8) -> logits."""

    def __init__(self, names: Sequence[str], channels: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(2 * channels * 16, len(names)),
        )  # fmt: skip

    def forward(self, pixel_values: Tensor) -> ClassifierOutput:
        return ClassifierOutput(self.layers(pixel_values))


class MeanVit(VitForClassification):
    """A ViT whose classifier reads the mean of the patches' vectors."""

    def forward(self, pixel_values: Tensor, **options: bool) -> ClassifierOutput:
        """As VitForClassification's."""
        out = self.encoder(pixel_values, **options)
        return ClassifierOutput(self.classifier(out.last_hidden_state[:, 1:].mean(1)))


def config_for(recipe: PictureRecipe) -> VitConfig:
    """The shape of the recipe's ViT."""
    channels, size = pictures_of(recipe.task)["train"].pixel_values.shape[1:3]
    H = recipe.hidden_size
    return VitConfig(
        hidden_size=H, num_layers=recipe.num_layers, num_heads=recipe.num_heads,
        intermediate_size=4 * H, initializer_range=recipe.initializer_range, image_size=size,
        patch_size=PATCH[recipe.task], num_channels=channels, positions=recipe.positions,
    )  # fmt: skip


def random_vit(recipe: PictureRecipe, seed: int) -> VitEncoder:
    """The recipe's encoder, randomly initialised."""
    torch.manual_seed(seed)
    return vit_encoder(config_for(recipe), pooler=False)


def settings(recipe: PictureRecipe, seed: int) -> dict[str, Any]:
    """What `fit` is told in every stage."""
    return {"learning_rate": recipe.learning_rate, "seed": seed, "precision": PRECISION}


@lru_cache(maxsize=8)
def pretrained(recipe: PictureRecipe, seed: int) -> VitEncoder:
    """The recipe's encoder after its pre-training; see `first_stage`."""
    encoder, read = random_vit(recipe, seed), pictures_of(recipe.read)["train"]
    batches = masked_patch_batches(
        read.pixel_values, PATCH[recipe.read], batch_size=recipe.batch_size, seed=seed
    )
    fit(
        VitForMaskedPatches(encoder), masked_patch_loss, batches, steps=recipe.start_steps,
        **settings(recipe, seed),
    )  # fmt: skip
    return encoder


def first_stage(recipe: PictureRecipe) -> PictureRecipe:
    """The recipe with all that comes after pre-training as in MAIN: those that differ in nothing
    else share an encoder."""
    after = {"task", "model", "labelled", "steps", "equal_flops", "learning_rate"}
    return replace(recipe, **{name: getattr(MAIN, name) for name in after})


def pretraining_in_steps(recipe: PictureRecipe) -> int:
    """Steps with labels that take as many FLOPs as the recipe's pre-training does."""
    encoder, read = random_vit(recipe, 0), pictures_of(recipe.read)["train"]
    images, size = read.pixel_values, recipe.batch_size
    masked = masked_patch_batches(images, PATCH[recipe.read], batch_size=size)
    labelled = labelled_batches(read, size)
    one = step_flops(VitForMaskedPatches(encoder), masked_patch_loss, masked(0))
    other = step_flops(head_on(encoder, read), classification_loss, labelled(0))
    return round(recipe.start_steps * one / other)


def start_of(recipe: PictureRecipe, names: Sequence[str], seed: int) -> nn.Module:
    """The recipe's model before it sees its labels."""
    if recipe.model == CNN:
        torch.manual_seed(seed)
        return SmallCnn(names)
    plain = recipe.start == "random" or recipe.equal_flops
    encoder = random_vit(recipe, seed) if plain else pretrained(first_stage(recipe), seed)
    model: Any = head_on(encoder, pictures_of(recipe.task)["train"], seed)
    if recipe.model == MEAN:
        model = MeanVit(model.encoder, names)
    return model


def sides(recipe: PictureRecipe, seed: int) -> tuple[LabelledPictures, LabelledPictures]:
    """The recipe's pictures, to learn from and to be tested on, its patches in their order. The one
    permutation is the same on both sides."""
    pictures = pictures_of(recipe.task)
    train, test = sample(pictures["train"], recipe.labelled, seed), pictures["test"]
    size, other = PATCH[recipe.task], 0 if recipe.order == ONE else 1_000
    return tuple(
        replace(side, pixel_values=shuffled_patches(side.pixel_values, size, recipe.order, at))
        for side, at in ((train, seed), (test, seed + other))
    )  # type: ignore[return-value]


def batches_of(train: LabelledPictures, recipe: PictureRecipe, seed: int) -> Callable[[int], Batch]:
    """Batches of labelled pictures. Where they are moved, their patches are shuffled after it."""
    batches = labelled_batches(train, min(recipe.batch_size, len(train)), seed)
    if not recipe.shift:
        return batches

    def shifted(step: int) -> Batch:
        inputs, targets = batches(step)
        images = moved(inputs["pixel_values"], recipe.shift, step)
        images = shuffled_patches(images, PATCH[recipe.task], recipe.order, seed)
        return Batch({"pixel_values": images}, targets)

    return shifted


def trained(
    recipe: PictureRecipe, seed: int, callbacks: Sequence[Callback] = ()
) -> tuple[Any, dict[str, list[float]]]:
    """The recipe's model, trained, and its losses."""
    train, _ = sides(replace(recipe, order=KEPT) if recipe.shift else recipe, seed)
    model = start_of(recipe, train.names, seed)
    steps = recipe.steps + (pretraining_in_steps(recipe) if recipe.equal_flops else 0)
    history = fit(
        model, classification_loss, batches_of(train, recipe, seed), steps=steps,
        callbacks=callbacks, **settings(recipe, seed),
    )  # fmt: skip
    return model, history.losses


def logistic_accuracy(train: LabelledPictures, test: LabelledPictures) -> float:
    """Of a logistic regression on the pixels."""
    from sklearn.linear_model import LogisticRegression

    classifier = LogisticRegression(max_iter=5_000, tol=1e-7)  # to the optimum
    classifier.fit(train.pixel_values.flatten(1).numpy(), train.labels.numpy())
    return float(classifier.score(test.pixel_values.flatten(1).numpy(), test.labels.numpy()))


# ---------------------------------------------------------------- measuring


class Watch:
    """A callback: accuracy on test pictures, [{"step", "accuracy"}], every EVERY steps or at those
    given."""

    def __init__(self, test: LabelledPictures, at: Sequence[int] = ()) -> None:
        self.test, self.at = test, at
        self.curve: list[dict[str, float]] = []

    def __call__(self, report: Report) -> None:
        if report.step in self.at or (not self.at and report.step % EVERY == 0):
            self.look(report.step, report.model)

    def look(self, step: int, model: Any) -> None:
        self.curve.append({"step": step, "accuracy": class_accuracy(model, self.test)})


def one_run(recipe: PictureRecipe, _: Any, seed: int) -> dict[str, Any]:
    """Train and measure. Finished runs are read from the cache."""

    def run() -> dict[str, Any]:
        began, (train, test) = time.process_time(), sides(recipe, seed)
        if recipe.model == LOGISTIC:
            return {"seed": seed, "accuracy": logistic_accuracy(train, test)}
        watch = Watch(test)
        model, losses = trained(recipe, seed, [watch])
        right = class_accuracy(model, test)
        return {
            "seed": seed, "accuracy": right, "train_accuracy": class_accuracy(model, train),
            "last_loss": sum(losses["total"][-EVERY:]) / EVERY, "steps": len(losses["total"]),
            "parameters": count_parameters(model), "curve": watch.curve,
            "cpu_seconds": round(time.process_time() - began, 1),
        }  # fmt: skip

    return kept("15-pictures", {"seed": seed, **asdict(recipe)}, MicroWorld.load(), run)


def enlarged(pictures: LabelledPictures, size: int = LARGER) -> LabelledPictures:
    """The pictures at `size` pixels, interpolated: larger, with nothing new in them."""
    images = F.interpolate(pictures.pixel_values, size=(size, size), mode="bilinear")
    return replace(pictures, pixel_values=images)


@lru_cache(maxsize=8)
def small_vit(seed: int) -> VitForClassification:
    """MAIN's model: the weights that go on with larger pictures."""
    model: VitForClassification = trained(MAIN, seed)[0]
    return model


def larger_start(recipe: LargerRecipe, seed: int) -> VitForClassification:
    """The model for 16×16 that a recipe begins with."""
    torch.manual_seed(seed)
    if recipe.start == "random":
        config = replace(config_for(MAIN), image_size=LARGER)
        return VitForClassification(vit_encoder(config, pooler=False), digits().names)
    small = small_vit(seed)
    encoder = copy(small.encoder)  # the same weights, another setting
    encoder.config = replace(encoder.config, resize=recipe.how)
    model = VitForClassification(resized(encoder, LARGER), small.names)
    model.classifier.load_state_dict(small.classifier.state_dict())
    if recipe.start == "new positions":
        table: Any = model.encoder.embeddings.position  # type: ignore[union-attr]
        nn.init.trunc_normal_(table, std=MAIN.initializer_range)
    return model


def larger_run(recipe: LargerRecipe, _: Any, seed: int) -> dict[str, Any]:
    """A model that goes on with 16×16: accuracy before any step, and on the way."""

    def run() -> dict[str, Any]:
        train, test = (enlarged(side) for side in sides(MAIN, seed))
        model = larger_start(recipe, seed)
        watch = Watch(test, at=(5, 10, 20, 40, 80, 160, recipe.steps))
        watch.look(0, model)
        fit(
            model, classification_loss, labelled_batches(train, MAIN.batch_size, seed),
            steps=recipe.steps, learning_rate=recipe.learning_rate, seed=seed,
            precision=PRECISION, callbacks=[watch],
        )  # fmt: skip
        first, last = watch.curve[0]["accuracy"], watch.curve[-1]["accuracy"]
        return {"seed": seed, "accuracy": last, "at_once": first, "curve": watch.curve}

    about = {"seed": seed, **asdict(recipe), "small": asdict(MAIN)}
    return kept("15-larger", about, MicroWorld.load(), run)


def replay(_: Any = None) -> list[float]:
    """The first losses of MAIN, seed 0."""
    return trained(replace(MAIN, steps=REPLAYED), 0)[1]["total"]


EXPERIMENTS = tuple(
    Experiment(name, recipes, SEEDS, run=run, losses=replay)
    for name, recipes, run in (
        ("15_positions", POSITIONS, one_run), ("15_pictures", PICTURES, one_run),
        ("15_masked", MASKED, one_run), ("15_resolution", RESOLUTION, larger_run),
    )
)  # fmt: skip
