"""`12_serving`: one task, real text, and the ways to serve it: what each answers right.

The task is the section of a docstring's sentence (five classes). The model is the course's
checkpoint, fine-tuned; the same in other number formats; and smaller models, which learned from it
twice: from its masked-LM head on documentation, then on the task. Times are measured apart, by
`python -m course_lib.lectures.lecture_12.serving_runs`, on a machine that does nothing else:
`12_serving_times`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from statistics import fmean, median, quantiles
from typing import Any

import torch
from torch import Tensor

from course_lib.bench import serving
from course_lib.bench.measuring import machine, peak_bytes
from course_lib.bench.serving import Answer, Served
from course_lib.checkpoints import load, load_pretrained, save
from course_lib.checkpoints.convert import known
from course_lib.encoder import Encoder
from course_lib.family.bert import bert
from course_lib.family.distilbert import DistilBertConfig, distilbert_encoder, initialise_from
from course_lib.family.mobilebert import MobileBertConfig, mobilebert, mobilebert_encoder
from course_lib.files import cache_dir, data_root, write_atomic, write_manifest
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.early_exit import Exited
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.distillation import distilbert_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import REPLAYED, kept, outcome, stored
from course_lib.text.documentation import documentation_slice
from course_lib.text.packing import pack_documents
from course_lib.text.tasks import LabelledSequences
from course_lib.text.wordpiece import WordPiece, fast_wordpiece
from course_lib.text.world import MicroWorld
from course_lib.train.distilling import DistillationPair
from course_lib.train.finetuning import classifier_on, labelled_batches, model_inputs
from course_lib.train.flops import forward_flops
from course_lib.train.loop import fit

from .fast_runs import (
    GENERAL,
    MAIN,
    SECTION,
    backbone,
    leaving_at,
    texts_of,
    trained,
)  # fmt: skip
from .views.budget import Offer

PRECISION, SEEDS, LENGTH = "float32", range(3), 64
BASE, HALF, MOBILE, EARLY = "float32", "half the layers", "MobileBERT's shape", "early exit"
RANDOM_HALF, ONNX_INT8 = f"{HALF}, random start", "ONNX Runtime, int8"
SPEED = 0.3  # of the row that leaves early
BATCH = 32


@dataclass(frozen=True)
class ServedRecipe:
    """start: the encoder, course-bert or a smaller one that learned from it for `general` steps.
    way: how the fine-tuned model is run, of bench.serving.WAYS, or EARLY."""

    start: str = BASE
    way: str = BASE
    general: int = 1_000
    steps: int = 280
    learning_rate: float = 3e-4
    general_rate: float = 1e-3
    batch_size: int = 16


RECIPES = {
    **{way: ServedRecipe(way=way) for way in ("float32", "bfloat16", "int8", ONNX_INT8)},
    HALF: ServedRecipe(start=HALF),
    RANDOM_HALF: ServedRecipe(start=RANDOM_HALF),
    f"{HALF}, int8": ServedRecipe(start=HALF, way="int8"),
    MOBILE: ServedRecipe(start=MOBILE),
    EARLY: ServedRecipe(way=EARLY),
}


# ---------------------------------------------------------------- smaller encoders


def small_model(start: str, teacher: BertForMaskedLM) -> BertForMaskedLM:
    """Before it learns: half the layers begin as the teacher's or at random; MobileBERT's shape at
    random, half as wide again inside its blocks as BERT-base's is of it."""
    theirs = teacher.config
    torch.manual_seed(0)
    shared: dict[str, Any] = {
        "vocab_size": theirs.vocab_size, "hidden_size": theirs.hidden_size, "num_heads": 4,
        "max_positions": theirs.max_positions, "hidden_dropout": 0.0, "attention_dropout": 0.0,
        "initializer_range": 0.05,
    }  # fmt: skip
    if start != MOBILE:
        config = DistilBertConfig(
            **shared, num_layers=2, intermediate_size=theirs.intermediate_size
        )
        half = BertForMaskedLM(distilbert_encoder(config))
        return initialise_from(half, teacher) if start == HALF else half
    thin = MobileBertConfig(
        **shared, num_layers=8, embedding_size=64, bottleneck_size=64, intermediate_size=256
    )
    return BertForMaskedLM(mobilebert_encoder(thin, pooler=False))


@lru_cache(maxsize=1)
def documentation() -> tuple[PackedSequences, Any]:
    """English documentation in sequences of LENGTH, and the ids of special tokens."""
    tokenizer = load_pretrained(GENERAL).tokenizer
    assert isinstance(tokenizer, WordPiece)
    fast = fast_wordpiece(tokenizer)
    documents = [
        [e.ids for e in fast.encode_batch(list(d), add_special_tokens=False) if e.ids]
        for d in documentation_slice(20_000).sentences()
    ]
    return pack_documents([d for d in documents if d], tokenizer.special, LENGTH), tokenizer.special


def learn_from(
    recipe: ServedRecipe, steps: int | None = None
) -> tuple[BertForMaskedLM, list[float]]:
    """The smaller model after `general` steps before the teacher's answers, and its losses."""
    teacher = load_pretrained(GENERAL).model
    assert isinstance(teacher, BertForMaskedLM)
    student, (sequences, special) = small_model(recipe.start, teacher), documentation()
    batches = pretraining_batches(sequences, special, batch_size=recipe.batch_size, seed=0)
    history = fit(
        DistillationPair(student, teacher), distilbert_loss(cosine=0.0), batches,
        steps=steps or recipe.general, learning_rate=recipe.general_rate, precision=PRECISION,
    )  # fmt: skip
    return student, history.losses["total"]


@lru_cache(maxsize=3)
def encoder_of(start: str) -> Encoder:
    """What is fine-tuned; a smaller one is trained once (seed 0), then read from the cache."""
    if start == BASE:
        return load_pretrained(GENERAL).encoder
    recipe = ServedRecipe(start=start)
    path = cache_dir("results") / f"12-serving-{start.replace(' ', '-')}.safetensors"
    about = {"start": start, "general": recipe.general, "rate": recipe.general_rate}

    def run() -> dict[str, Any]:
        student, losses = learn_from(recipe)
        return {"sha256": save(student, path), "loss": fmean(losses[-100:])}

    kept(f"12-serving-{start.replace(' ', '-')}", about, MicroWorld.load(), run, [path])
    model = load(path)
    assert isinstance(model, BertForMaskedLM)
    return model.encoder


# ---------------------------------------------------------------- on the task


@lru_cache(maxsize=8)
def classifier(start: str, seed: int) -> Any:
    """Fine-tuned on the sections: (B, T) -> logits."""
    recipe, task = ServedRecipe(start=start), texts_of(SECTION).train
    model = classifier_on(encoder_of(start), task.names, seed, plain_head=True)
    fit(
        model, classification_loss, labelled_batches(task, recipe.batch_size, seed),
        steps=recipe.steps, learning_rate=recipe.learning_rate, seed=seed, precision=PRECISION,
    )  # fmt: skip
    return model.eval()


def served(recipe: ServedRecipe, seed: int) -> Served:
    """The recipe's model, ready to answer."""
    if recipe.way != EARLY:
        return serving.WAYS[recipe.way](classifier(recipe.start, seed))
    model = trained(MAIN, seed).eval()

    def answer(ids: Tensor, mask: Tensor) -> Tensor:
        out: Exited = model.answer(ids, mask, speed=SPEED)
        return out.logits

    return Served(answer, serving.bytes_of(model))


@torch.no_grad()
def answers(answer: Answer, test: LabelledSequences, batch_size: int = BATCH) -> Tensor:
    """Logits of all texts: (N, C)."""
    parts = [test[start : start + batch_size] for start in range(0, len(test), batch_size)]
    return torch.cat([answer(*_given(part)) for part in parts])


def _given(part: LabelledSequences) -> tuple[Tensor, Tensor]:
    inputs = model_inputs(part)
    return inputs["input_ids"], inputs["attention_mask"]


def one_run(recipe: ServedRecipe, seed: int) -> dict[str, Any]:
    """Accuracy, bytes of the file, FLOPs of a text of the mean length."""

    def run() -> dict[str, Any]:
        test, ready = texts_of(SECTION).test, served(recipe, seed)
        right = answers(ready.answer, test).argmax(-1) == test.labels
        return {
            "seed": seed, "accuracy": right.double().mean().item(), "stored": ready.stored,
            "flops": flops_of(recipe, seed),
        }  # fmt: skip

    about = {"seed": seed, **asdict(recipe), "text": texts_of(SECTION).hash}
    return kept("12-serving", about, MicroWorld.load(), run)


def flops_of(recipe: ServedRecipe, seed: int) -> float:
    """Mean FLOPs of a test text at its own length, matrix products alone."""
    test = texts_of(SECTION).test
    if recipe.way == EARLY:
        return float(leaving_at(trained(MAIN, seed), test, SPEED)["flops"])
    encoder, family = known(encoder_of(recipe.start))
    lengths = test.sequences.attention_mask.sum(1).tolist()
    by_length = {
        n: forward_flops(lambda: family.encoder(encoder.config, False), n) for n in set(lengths)
    }
    return sum(by_length[n] for n in lengths) / len(lengths)


def replay() -> list[float]:
    """First losses of the half before the teacher's answers."""
    return learn_from(ServedRecipe(start=HALF), REPLAYED)[1]


SERVED = Experiment(
    "12_serving",
    RECIPES,
    SEEDS,
    run=lambda recipe, _, seed: one_run(recipe, seed),
    losses=lambda _: replay(),
    more={"task": lambda _: {"test": len(texts_of(SECTION).test)}},
)


# ---------------------------------------------------------------- for the page


def offers() -> list[Offer]:
    """What a budget may choose from: stored accuracy, 95th percentile and size of every way."""
    accuracies = outcome(stored("12_serving"), "accuracy")
    return [
        Offer(name, fmean(accuracies.get(name, accuracies[BASE])), row["p95"], row["stored"])
        for name, row in stored("12_serving_times")["ways"].items()
    ]


def mobile_fraction(tokens: int = 128) -> str:
    """MobileBERT's FLOPs for a text as a fraction of BERT-base's, counted on shapes."""
    thin, base = (forward_flops(make, tokens) for make in (mobilebert, bert))
    return f"{thin / base:.0%}"


# ---------------------------------------------------------------- on the clock


def contenders() -> dict[str, Served]:
    """All recipes of seed 0 (RANDOM_HALF is as quick as HALF), and the base run in the other ways
    that this machine has."""
    left = {RANDOM_HALF, *serving.missing()}
    ways = {name: served(recipe, 0) for name, recipe in RECIPES.items() if name not in left}
    more = {n: make for n, make in serving.ways().items() if n not in RECIPES}
    return ways | {name: make(classifier(BASE, 0)) for name, make in more.items()}


def wall_times(
    ways: Mapping[str, Served], test: LabelledSequences, rounds: int = 5
) -> dict[str, dict[str, float]]:
    """Of each way: milliseconds of a text alone, median and 95th percentile over the texts, each
    the median of the rounds; texts a second in batches of BATCH as they come; and megabytes, of
    the file and, while a batch is answered, of weights and activations together.

    All take turns in every round. Times are of this machine, now."""
    alone = [_given(test[n : n + 1]) for n in range(len(test))]
    batches = [_given(test[n : n + BATCH]) for n in range(0, len(test), BATCH)]
    latencies: dict[str, list[list[float]]] = {name: [] for name in ways}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    with torch.inference_mode():
        for way in ways.values():  # warm up; what compiles does it here
            for inputs in (alone[0], alone[-1], batches[0], batches[-1]):
                way.answer(*inputs)
        for _ in range(rounds):
            for name, way in ways.items():
                latencies[name].append([_seconds(way, text) for text in alone])
                rates[name].append(len(test) / sum(_seconds(way, batch) for batch in batches))
    return {
        name: {
            **_spread(latencies[name]), "texts_a_second": median(rates[name]),
            "stored": ways[name].stored / 1e6, "memory": _memory(ways[name], batches[0]) / 1e6,
        }
        for name in ways
    }  # fmt: skip


def _seconds(way: Served, inputs: tuple[Tensor, Tensor]) -> float:
    began = time.perf_counter()
    way.answer(*inputs)
    return time.perf_counter() - began


def _spread(rounds: list[list[float]]) -> dict[str, float]:
    of_text = [1_000 * median(times) for times in zip(*rounds, strict=True)]
    return {"median": median(of_text), "p95": quantiles(of_text, n=20, method="inclusive")[-1]}


def _memory(way: Served, batch: tuple[Tensor, Tensor]) -> float:
    """Bytes of the weights, and the most that tensors made on the way hold at once. What other
    programs than torch hold for themselves, is not seen."""
    with torch.inference_mode():
        return way.stored + peak_bytes(lambda: way.answer(*batch))


def main() -> None:
    """Measure and store; on a machine that does nothing else."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the stored runs were made: their encoders are in the cache
    for start in (BASE, HALF, MOBILE):
        classifier(start, 0)
    backbone(MAIN, 0)
    torch.set_num_threads(threads)
    record: dict[str, Any] = {"machine": machine(), "batch": BATCH, "speed": SPEED}
    record["ways"] = wall_times(contenders(), texts_of(SECTION).test[:300])
    write_atomic(data_root() / "results" / "12_serving_times.json", json.dumps(record, indent=1))
    write_manifest(data_root())
    for name, row in record["ways"].items():
        print(f"{name:24}", "  ".join(f"{what} {value:8.2f}" for what, value in row.items()))


if __name__ == "__main__":
    main()
