"""`11_switches`: details of BioBERT's and FinBERT's fine-tuning, each as a switch.

A loss over padding (after BioBERT's released NER code), on added words. Layer-wise rates and
gradual unfreezing (FinBERT's guards against forgetting), on chapters, with what is forgotten.
Weights by inverse frequency (FinBERT's), on chapters as they come. And good or bad news, on the
finance sentences: the course's checkpoint, MiniLM, both without pre-training."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from course_lib.checkpoints import load_pretrained
from course_lib.encoder import Encoder
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.classification import inverse_frequency, weighted_classification_loss
from course_lib.objectives.sequences import Batch
from course_lib.objectives.token_labels import padded_token_loss
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept
from course_lib.text.domains import domain
from course_lib.text.english import finance
from course_lib.text.features import TaggedSequences
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import (
    LOSSES,
    head_on,
    labelled_batches,
    predicted_classes,
    predicted_tags,
    shuffled,
    task_score,
)
from course_lib.train.layer_rates import both, gradual_unfreezing, layerwise_rates
from course_lib.train.loop import Scale, fit
from course_lib.train.task_metrics import macro_f1

from .tasks import LENGTH, TASKS, Texts, as_task, finance_news, short_sentences
from .ways import GENERAL, PRECISION, SEEDS
from .whole_words import words_right

WORDINGS = ("plain", "hedged")  # of the finance sentences


@dataclass(frozen=True)
class SwitchRecipe:
    """task: a name of tasks.py; scale, weights, padded: the switches; start: the encoder."""

    task: str
    scale: str = ""  # "layers", "unfreeze" or "both"
    weights: bool = False
    padded: int = 0  # the loss over all of so many positions
    start: str = GENERAL
    random: bool = False
    steps: int = 300
    learning_rate: float = 3e-4


SWITCHES = {
    "chapters": SwitchRecipe("chapters"),
    "chapters, layer-wise rates": SwitchRecipe("chapters", scale="layers"),
    "chapters, gradual unfreezing": SwitchRecipe("chapters", scale="unfreeze"),
    "chapters, both": SwitchRecipe("chapters", scale="both"),
    "chapters, a third of the rate": SwitchRecipe("chapters", learning_rate=1e-4),
    "natural chapters": SwitchRecipe("natural chapters"),
    "natural chapters, weights": SwitchRecipe("natural chapters", weights=True),
    "added words": SwitchRecipe("added words", steps=200),
    "added words, loss over 32 positions": SwitchRecipe("added words", padded=32, steps=200),
    "added words, loss over 128 positions": SwitchRecipe("added words", padded=128, steps=200),
    "finance": SwitchRecipe("finance"),
    "finance, random initialisation": SwitchRecipe("finance", random=True),
    "finance, MiniLM": SwitchRecipe("finance", start="all-MiniLM-L6-v2"),
    "finance, MiniLM's shape, random": SwitchRecipe(
        "finance", start="all-MiniLM-L6-v2", random=True
    ),
}  # fmt: skip


def scale_of(recipe: SwitchRecipe, layers: int) -> Scale | None:
    """The factor of the learning rate that a recipe asks for; a layer more is unfrozen with every
    tenth of the steps."""
    rates = layerwise_rates(layers)
    unfreeze = gradual_unfreezing(layers, recipe.steps // 10)
    scales = {"layers": rates, "unfreeze": unfreeze, "both": both(rates, unfreeze)}
    return scales[recipe.scale] if recipe.scale else None


def padded_batches(task: TaggedSequences, size: int, seed: int) -> Any:
    """Batches at their full length, as code with one fixed length has them."""
    which = shuffled(len(task), size, seed)

    def batches(step: int) -> Batch:
        part = task[which(step)]
        return Batch(part.sequences.inputs, {"token_labels": part.labels})

    return batches


def texts_of(recipe: SwitchRecipe, seed: int) -> Texts:
    """The task's texts."""
    return finance_news() if recipe.task == "finance" else TASKS[recipe.task](seed=seed)


def one_run(recipe: SwitchRecipe, seed: int) -> dict[str, Any]:
    """Fine-tune with the switch, and what came of it. Finished runs are read from the cache."""
    loaded = load_pretrained(recipe.start)

    def run() -> dict[str, Any]:
        texts, tokenizer = texts_of(recipe, seed), loaded.tokenizer
        assert tokenizer is not None
        length = recipe.padded or LENGTH[recipe.task.removeprefix("natural ")]
        train, test = (as_task(texts, side, tokenizer, length) for side in ("train", "test"))
        encoder = _randomly_initialised(loaded.encoder, seed) if recipe.random else loaded.encoder
        model = head_on(encoder, train, seed)
        loss, batches = LOSSES[type(train)], labelled_batches(train, 16, seed)
        if recipe.padded:
            assert isinstance(train, TaggedSequences)
            loss, batches = padded_token_loss, padded_batches(train, 16, seed)
        if recipe.weights:
            labels: Tensor = train.labels  # type: ignore[union-attr]
            loss = weighted_classification_loss(inverse_frequency(labels, len(texts.names)))
        fit(
            model, loss, batches, steps=recipe.steps, learning_rate=recipe.learning_rate, seed=seed,
            precision=PRECISION, scale=scale_of(recipe, encoder.config.num_layers),
        )  # fmt: skip
        scores = {"seed": seed, "score": task_score(model, test)}
        if isinstance(test, TaggedSequences):
            predicted = predicted_tags(model, test)  # type: ignore[arg-type]
            scores["said outside"] = sum(t == "O" for row in predicted for t in row) / sum(
                map(len, predicted)
            )
        else:
            names, classes = texts.names, predicted_classes(model, test)  # type: ignore[arg-type]
            true = [names[n] for n in test.labels.tolist()]  # type: ignore[union-attr]
            scores["macro F1"] = macro_f1(true, classes)
            scores |= _by_wording(texts, true, classes)
        if recipe.task == "chapters":
            scores["general"] = _still_known(model.encoder)
        return scores

    about = {"seed": seed, **asdict(recipe), "weights of": loaded.sha256,
             "text": "" if recipe.task == "finance" else domain("medicine").hash}  # fmt: skip
    return kept("11-switch", about, MicroWorld.load(), run)


def _by_wording(texts: Texts, true: list[str], predicted: list[str]) -> dict[str, float]:
    """Of finance sentences the accuracy of the plain and of the hedged, as their ids begin."""
    rows = list(zip(texts.test, true, predicted, strict=True))
    return {
        wording: mean(label == guess for item, label, guess in rows if wording in item.id)
        for wording in WORDINGS
        if any(wording in item.id for item, *_ in rows)
    }


def _randomly_initialised(encoder: Encoder, seed: int) -> Encoder:
    """The encoder's shape, randomly initialised."""
    torch.manual_seed(seed)
    return Encoder(encoder.config)


def _still_known(encoder: Encoder) -> float:
    """Hidden words of general text that the fine-tuned encoder finds with the head it once had."""
    loaded = load_pretrained(GENERAL)
    assert isinstance(loaded.model, BertForMaskedLM)
    model = deepcopy(loaded.model)
    model.encoder = encoder
    model.mlm.tie(encoder.embeddings.token)  # type: ignore[arg-type]
    return words_right(model, loaded.tokenizer, short_sentences("general"))  # type: ignore[arg-type]


def without_encoder(texts: Texts) -> dict[str, float]:
    """Of all texts, the plain and the hedged ones: what counting words finds."""
    from course_lib.train.baselines import label_accuracy

    halves = {w: [item for item in texts.test if w in item.id] for w in WORDINGS}
    parts = {"score": texts.test, **halves}
    return {what: label_accuracy(texts.train, test, "words") for what, test in parts.items()}


EXPERIMENTS = (
    Experiment(
        "11_switches",
        SWITCHES,
        SEEDS,
        run=lambda recipe, _, seed: one_run(recipe, seed),
        more={
            "sizes": lambda _: {
                name: [len(part) for part in texts_of(SWITCHES[name], 0)[:2]]
                for name in ("chapters", "natural chapters", "added words", "finance")
            },
            "finance": lambda _: {
                split: len(finance(split)) for split in ("train", "validation", "test")
            },
            "counting_words": lambda _: without_encoder(finance_news()),
        },
    ),
)
