"""Lecture 03's experiments: the course's checkpoint, and fine-tuning from it.

`03_checkpoint`: the pre-training run of data/recipes/course_bert.toml, and what its stored weights
reach. `03_tasks`: five tasks in real English, from four starts. `03_curves`: NLI and entities
against the number of training texts, in real English and in the micro-world. `03_documentation`
and `03_packages`: tasks with thousands of labels, see documentation_runs.py. `03_features`: frozen
vectors, layer by layer. `03_loss_line`: the loss along the line from start to end. `03_plateau`:
how long a small BERT stays at the words' frequencies. `03_reviews`: plain reviews beside the tricky
ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from statistics import mean
from time import process_time
from typing import Any

import torch
from torch import nn

from course_lib.encoder import Encoder
from course_lib.family.bert import bert
from course_lib.files import data_root
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.teaching.checkpoints import build_checkpoint
from course_lib.teaching.experiments import results_of
from course_lib.teaching.results import REPLAYED, in_words, kept, made_with
from course_lib.text import english
from course_lib.text.features import (
    QuestionSequences,
    TaggedSequences,
    Tokenizer,
    question_sequences,
    tagged_sequences,
    text_sequences,
)
from course_lib.text.world import MicroWorld
from course_lib.train import baselines
from course_lib.train.finetuning import (
    LOSSES,
    Task,
    answer_scores,
    best_answers,
    finetune,
    head_on,
    labelled_batches,
    null_threshold,
    task_score,
)
from course_lib.train.loop import fit
from course_lib.train.precision import choose_precision
from course_lib.train.pretrain import Pretraining, cut_sequences, set_up
from course_lib.train.pretrain_recipe import read_recipe
from course_lib.train.probing import all_states, linear_probe

from .documentation_runs import FILES, build_documentation
from .starts import (
    COURSE,
    MINILM,
    STARTS,
    encoder_of,
    pretrained,
    weights_of,
)
from .world_runs import WORLD, pair_sequences

LENGTH, QUESTION_LENGTH, STRIDE = 64, 128, 56
SEEDS = range(5)
CURVES = ("nli", "ner")  # the tasks of the learning curves
TASKS = ("sentiment", "spam", "nli", "pos", "ner", "qa")
PLAIN = "plain reviews"  # `sentiment` has tricky ones
LABELLED = {"sentiment": english.reviews, PLAIN: english.plain_reviews, "spam": english.messages}
# The best on the validation texts of two tasks, in the mean of three seeds (MiniLM, slow to train:
# one); `tuning` in 03_tasks has all that were tried. One was passed over, 3e-3, ahead by less than
# its seeds differ: with it a live run of page 03 (reviews, two threads) did not learn even its
# training texts. That run is not stored. Of the stored runs of this start none collapses on both
# tasks with 3e-3; with 1e-2 all do.
RATES = {COURSE: 1e-3, f"{COURSE}, random init": 3e-4, MINILM: 3e-4, f"{MINILM}, random init": 3e-4}
PASSED_OVER = {COURSE: 3e-3}
TUNING_SEEDS = {COURSE: range(3), f"{COURSE}, random init": range(3), MINILM: range(1)}
TRIED = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)


@dataclass(frozen=True)
class TuningRecipe:
    """One fine-tuning run. examples: how many training texts, drawn by the seed; 0 is all.

    frozen: the encoder stays as it is, and only the head learns."""

    start: str
    task: str
    steps: int = 120
    examples: int = 0
    batch_size: int = 16
    learning_rate: float = 3e-4
    frozen: bool = False


# ---------------------------------------------------------------- tasks


def read_task(name: str, split: str, tokenizer: Tokenizer) -> Task:
    """One of TASKS or PLAIN, of one split, in a tokenizer's pieces. Raises ValueError for another
    name."""
    if name in LABELLED:
        items = LABELLED[name](split)
        names = english.MESSAGE_KINDS if name == "spam" else english.SENTIMENTS
        texts, labels = [item.text for item in items], [item.label for item in items]
        return text_sequences(texts, labels, names, tokenizer, LENGTH)
    if name == "nli":
        return pair_sequences(english.nli_pairs(split), tokenizer)
    if name in ("pos", "ner"):
        kind = "pos" if name == "pos" else "entities"
        return tagged_sequences(english.tagged_sentences(split), kind, tokenizer, LENGTH)
    if name == "qa":
        return question_sequences(english.questions(split), tokenizer, QUESTION_LENGTH, STRIDE)
    raise ValueError(f"task {name!r} was given; expected one of {', '.join((*TASKS, PLAIN))}.")


@cache
def english_task(name: str, split: str, start: str) -> Task:
    return read_task(name, split, pretrained(start.removesuffix(", random init"))[1])


def some_of(task: Task, examples: int, seed: int) -> Task:
    """`examples` texts, drawn by the seed; all of them for 0. What a larger number draws begins
    with what a smaller one draws."""
    if not examples or examples >= len(task):
        return task
    generator = torch.Generator().manual_seed(seed)
    return task[torch.randperm(len(task), generator=generator)[:examples]]


# ---------------------------------------------------------------- one run


def one_run(recipe: TuningRecipe, seed: int, split: str = "test") -> dict[str, float]:
    """Fine-tune and score; finished runs are read from the cache."""

    settings = {"seed": seed, "split": split, "precision": choose_precision(), **asdict(recipe)}
    if recipe.start in (COURSE, MINILM):
        settings["weights"] = weights_of(recipe.start)
    return kept(
        f"03-{recipe.task}", settings, MicroWorld.load(), partial(_run, recipe, seed, split)
    )


def _run(recipe: TuningRecipe, seed: int, split: str) -> dict[str, float]:
    began = process_time()
    train, test = (english_task(recipe.task, s, recipe.start) for s in ("train", split))
    model = finetune(
        encoder_of(recipe.start, seed), some_of(train, recipe.examples, seed), steps=recipe.steps,
        batch_size=recipe.batch_size, learning_rate=recipe.learning_rate, frozen=recipe.frozen,
        seed=seed,
    )  # fmt: skip
    if recipe.task == PLAIN:
        tricky = english_task("sentiment", split, recipe.start)
        scores = {"score": task_score(model, test), "tricky": task_score(model, tricky)}
        return {**scores, "cpu_seconds": round(process_time() - began, 1)}
    if recipe.task != "qa":
        return {"score": task_score(model, test)}
    validation = english_task("qa", "validation", recipe.start)
    assert isinstance(validation, QuestionSequences) and isinstance(test, QuestionSequences)
    threshold = null_threshold(best_answers(model, validation), validation)
    answers = answer_scores(model, test, threshold)
    parts = {"with answer": answers.has_answer, "without": answers.no_answer}
    f1 = {name: part.f1 if part else 0.0 for name, part in parts.items()}
    return {"score": answers.f1, "exact": answers.exact, **f1}


# ---------------------------------------------------------------- the results


def tuning() -> dict[str, dict[str, list[float]]]:
    """start -> learning rate -> mean validation score of sentiment and entities, a number a seed:
    how RATES was chosen. MiniLM from random initialisation takes MiniLM's rate."""
    return {
        start: {f"{rate:g}": validation_scores(start, rate) for rate in TRIED}
        for start in STARTS[:3]
    }


def validation_scores(start: str, rate: float) -> list[float]:
    """What a learning rate reaches, on average of the two tasks that decide. One seed says little:
    two rates that were 6 points apart in seed 0 are 0.3 apart in the mean of three."""
    recipes = [TuningRecipe(start, task, learning_rate=rate) for task in ("sentiment", "ner")]
    return [
        mean(one_run(recipe, seed, "validation")["score"] for recipe in recipes)
        for seed in TUNING_SEEDS[start]
    ]


# Slow to train: MiniLM leaves out two tasks, its random initialisation all but the curves.
LEFT_OUT = {MINILM: ("spam", "qa"), f"{MINILM}, random init": ("sentiment", "spam", "pos", "qa")}


def seeds_of(start: str, task: str) -> range:
    """Five for the tasks of the learning curves, three for the others and for MiniLM's shape with
    random initialisation, which is slow to train."""
    return SEEDS if task in CURVES and start != STARTS[-1] else range(3)


def build_tasks() -> dict[str, Any]:
    """What data/results/03_tasks.json holds: every task from every start, all training texts."""
    runs: dict[str, Any] = {}
    for task in TASKS:
        for start in STARTS:
            if task in LEFT_OUT.get(start, ()):
                continue
            recipe = TuningRecipe(start, task, learning_rate=RATES[start])
            runs.setdefault(task, {})[start] = [
                one_run(recipe, seed) for seed in seeds_of(start, task)
            ]
    table = [list(row) for row in baselines.english_baselines()]
    return {**about(), "tuning": tuning(), "rates": RATES, "passed_over": passed_over(),
            "runs": runs, "baselines": table, "replay": replay()}  # fmt: skip


def passed_over() -> dict[str, Any]:
    """Entities by the course's BERT at the rate that was ahead on the validation texts, by less
    than the seeds differ, and not taken: see PASSED_OVER."""
    recipe = TuningRecipe(COURSE, "ner", learning_rate=PASSED_OVER[COURSE])
    scores = [one_run(recipe, seed)["score"] for seed in SEEDS]
    return {"rate": recipe.learning_rate, "ner": scores}


SIZES = {"nli": (32, 96, 288), "ner": (24, 72, 220)}


def build_curves() -> dict[str, Any]:
    """What data/results/03_curves.json holds: task -> start -> number of texts -> scores."""
    curves: dict[str, Any] = {}
    for task, sizes in SIZES.items():
        for start in STARTS[:3]:
            for n in sizes:
                some = 0 if n == sizes[-1] else n  # the largest number is all there are
                recipe = TuningRecipe(start, task, examples=some, learning_rate=RATES[start])
                scores = [one_run(recipe, seed)["score"] for seed in SEEDS]
                curves.setdefault(task, {}).setdefault(start, {})[n] = scores
    train, test = (english.nli_pairs(split) for split in ("train", "test"))
    sentences = [english.tagged_sentences(split) for split in ("train", "test")]
    names = baselines.listed_names(*sentences)
    levels = {
        "nli": {"majority class": baselines.label_accuracy(train, test, "nothing"),
                "bag of words": baselines.label_accuracy(train, test, "words")},
        "ner": {"list of names": _entity_f1(sentences[1], names)},
    }  # fmt: skip
    return {**about(), "curves": curves, "baselines": levels}


PLAIN_SEEDS = {n: range(3) for n in (24, 48, 144)}  # number of texts -> seeds; 144 is all


def build_reviews() -> dict[str, Any]:
    """What data/results/03_reviews.json holds: start -> number of plain training reviews -> runs,
    each tested on plain reviews ("score") and on tricky ones; a bag of words on the same draws.
    MiniLM, slow to train, learns from all of them only. The rates are those of the tricky ones."""
    runs: dict[str, Any] = {}
    for start in STARTS[:3]:
        for n in PLAIN_SEEDS if start != MINILM else (144,):
            recipe = plain_recipe(start, n)
            runs.setdefault(start, {})[n] = [one_run(recipe, seed) for seed in PLAIN_SEEDS[n]]
    bag = {n: [bag_of_words(n, seed) for seed in seeds] for n, seeds in PLAIN_SEEDS.items()}
    seeds = {n: len(seeds) for n, seeds in PLAIN_SEEDS.items()}
    return {**about(), "rates": RATES, "seeds": seeds, "runs": runs, "bag": bag}


def plain_recipe(start: str, examples: int) -> TuningRecipe:
    return TuningRecipe(start, PLAIN, examples=examples, learning_rate=RATES[start])


def bag_of_words(examples: int, seed: int) -> dict[str, float]:
    """A bag of words trained on the plain reviews that `some_of` draws, tested as a run."""
    items = english.plain_reviews("train")
    generator = torch.Generator().manual_seed(seed)
    train = [items[n] for n in torch.randperm(len(items), generator=generator)[:examples].tolist()]
    plain, tricky = english.plain_reviews("test"), english.reviews("test")
    return {"score": baselines.label_accuracy(train, plain, "words"),
            "tricky": baselines.label_accuracy(train, tricky, "words")}  # fmt: skip


def _entity_f1(test: Sequence[english.TaggedSentence], predicted: Sequence[Sequence[str]]) -> float:
    from course_lib.train.span_metrics import span_scores

    return span_scores([sentence.entities for sentence in test], predicted).f1


def build_features() -> dict[str, Any]:
    """What data/results/03_features.json holds: a linear classifier on frozen vectors of each layer
    (BERT, Table 7, in miniature), and frozen against fine-tuned."""
    layers = {
        start: {task: frozen_scores(start, task) for task in ("sentiment", "ner")}
        for start in (COURSE, MINILM)
    }
    return {**about(), "layers": layers}


@torch.no_grad()
def frozen_scores(start: str, task: str) -> dict[str, float]:
    """Accuracy of a logistic regression on each layer's vectors, and on the last four side by side;
    of a text the mean of its tokens, of a word its first piece. Words: the tag, O included."""
    encoder, _ = pretrained(start)
    sets = [english_task(task, split, start) for split in ("train", "test")]
    vectors, labels = zip(*(_vectors(encoder, part) for part in sets), strict=True)
    H = encoder.config.hidden_size
    parts = {
        f"layer {layer}": slice(layer * H, (layer + 1) * H)
        for layer in range(vectors[0].shape[-1] // H)
    } | {"last four": slice(-4 * H, None)}
    (train, test), (true, truth) = vectors, labels
    return {
        name: linear_probe(train[:, part], true, test[:, part], truth)
        for name, part in parts.items()
    }


def _vectors(encoder: Encoder, task: Any) -> tuple[Any, Any]:
    states = all_states(encoder.eval(), task.sequences)
    if isinstance(task, TaggedSequences):
        labelled = task.labels != -100
        return states[labelled], task.labels[labelled]
    real = task.sequences.attention_mask[..., None]
    return (states * real).sum(dim=1) / real.sum(dim=1), task.labels


PLATEAU = {  # name -> (tokens a sequence, standard deviation of the initialisation)
    f"{length} tokens, sd {sd}": (length, sd) for length in (32, 128) for sd in (0.05, 0.02)
}
PLATEAU_STEPS, PLATEAU_TOKENS = 1_200, 4_096


def build_plateau() -> dict[str, Any]:
    """What data/results/03_plateau.json holds: the first steps of a small BERT on the documentation
    corpus, with short and long sequences, with small and larger initialisation; one seed."""
    ready = set_up(read_recipe(data_root() / "recipes" / "course_bert.toml"))
    runs = {}
    for name, (length, sd) in PLATEAU.items():
        settings = {"length": length, "sd": sd, "steps": PLATEAU_STEPS,
                    "corpus": ready.reading.about}  # fmt: skip
        runs[name] = kept("03-plateau", settings, MicroWorld.load(),
                          partial(plateau_run, ready, length, sd))  # fmt: skip
    return {"steps": PLATEAU_STEPS, "tokens_a_step": PLATEAU_TOKENS, "runs": runs,
            "unigram": unigram_loss(ready), "text": ready.reading.about,
            **made_with(MicroWorld.load())}  # fmt: skip


def plateau_run(ready: Pretraining, length: int, sd: float) -> dict[str, list[float]]:
    """Training losses of BERT-tiny, mean of each 20 steps."""
    torch.manual_seed(0)
    model = BertForMaskedLM(
        bert("tiny", vocab_size=ready.special.vocab_size, max_positions=128, initializer_range=sd,
             hidden_dropout=0.0, attention_dropout=0.0)
    )  # fmt: skip
    model.encoder.pooler = None
    sequences = cut_sequences(ready.train, length)
    batches = pretraining_batches(sequences, ready.special, batch_size=PLATEAU_TOKENS // length)
    history = fit(
        model, masked_lm_loss, batches, steps=PLATEAU_STEPS, learning_rate=2e-3, warmup=0.05,
        betas=(0.9, 0.98),
    )  # fmt: skip
    losses = history.losses["total"]
    every = [mean(losses[k : k + 20]) for k in range(0, len(losses), 20)]
    return {"loss": [round(loss, 4) for loss in every]}


def unigram_loss(ready: Pretraining) -> float:
    """The loss, in nats, of a model that knows how frequent each token is, and nothing else: the
    plateau's height."""
    counts = (
        ready.train.input_ids[ready.train.attention_mask.bool()]
        .bincount(minlength=ready.special.vocab_size)
        .double()
    )
    counts[list(ready.special.never_masked)] = 0
    share = counts[counts > 0] / counts.sum()
    return float(-(share * share.log()).sum())


ALPHAS = [round(-0.5 + 0.1 * k, 1) for k in range(21)]


def build_loss_line() -> dict[str, Any]:
    """What data/results/03_loss_line.json holds: the loss between start and end of fine-tuning and
    beyond both, from pre-trained weights and from random initialisation (after Hao et al. 2019)."""
    lines = {start: loss_line(start) for start in STARTS[:2]}
    return {**about(), "task": LINE_TASK, "lines": lines}


LINE_TASK = "ner"


def loss_line(start: str, seed: int = 0) -> dict[str, Any]:
    """Training loss and test score at start + α·(end − start), and the distance between the two:
    with another learning rate, α = 1 is another way."""
    train, test = (english_task(LINE_TASK, split, start) for split in ("train", "test"))
    encoder = encoder_of(start, seed)
    model = finetune(encoder, train, steps=120, learning_rate=RATES[start], seed=seed)
    end = {name: value.clone() for name, value in model.state_dict().items()}
    begin = head_on(encoder, train, seed).state_dict()
    way = sum(float((end[n] - begin[n]).double().square().sum()) for n in end) ** 0.5
    line: dict[str, Any] = {"distance": round(way, 3), "alpha": ALPHAS, "train_loss": [],
                             "test_score": []}  # fmt: skip
    for alpha in ALPHAS:
        model.load_state_dict({n: begin[n] + alpha * (end[n] - begin[n]) for n in end})
        line["train_loss"].append(whole_loss(model, train))
        line["test_score"].append(task_score(model, test))
    return line


def rise_beyond(line: Mapping[str, Any]) -> float:
    """How much the training loss of a `loss_line` grows from its end to half a way beyond, nats."""
    of = dict(zip(line["alpha"], line["train_loss"], strict=True))
    return of[1.5] - of[1.0]


@torch.no_grad()
def whole_loss(model: nn.Module, task: Task) -> float:
    """The task's loss over all its texts, in batches of 32, without dropout."""
    model.eval()
    batches = labelled_batches(task, 32)
    losses = [
        LOSSES[type(task)](model(**batch.inputs), batch.targets)["total"].item()
        for batch in map(batches, range(len(task) // 32))
    ]
    return mean(losses)


def replay() -> list[float]:
    """The first losses of the course's checkpoint on entities, seed 0, in float32."""
    train = english_task("ner", "train", COURSE)
    model = head_on(encoder_of(COURSE), train, 0)
    history = fit(
        model, LOSSES[type(train)], labelled_batches(train, 16), steps=REPLAYED,
        learning_rate=RATES[COURSE], precision="float32",
    )  # fmt: skip
    return history.losses["total"]


def about() -> dict[str, Any]:
    """What every file records beside its runs."""
    return {
        "recipe": asdict(TuningRecipe("", "")),
        "weights": {start: weights_of(start) for start in (COURSE, MINILM)},
        "seeds": len(SEEDS),
        **made_with(MicroWorld.load()),
    }


EXPERIMENTS = (WORLD,)
RESULTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "03_checkpoint": partial(build_checkpoint, "course-bert"),
    "03_tasks": build_tasks,
    "03_curves": build_curves,
    **{name: partial(build_documentation, tasks) for name, tasks in FILES.items()},
    "03_features": build_features,
    "03_loss_line": build_loss_line,
    "03_plateau": build_plateau,
    "03_reviews": build_reviews,
    **results_of(EXPERIMENTS),
}


def summary(results: Mapping[str, Any]) -> str:
    """A result in words."""
    if "reached" in results:
        return f"held-out: {json.dumps(results['reached'])}"
    if "unigram" in results:
        ends = {name: run["loss"][-1] for name, run in results["runs"].items()}
        return "\n".join(f"{name:22} {end:.2f}" for name, end in ends.items())
    if scores := results.get("runs") or results.get("curves"):
        return "\n".join(_each(scores))
    return json.dumps(results.get("layers") or results.get("lines"))


def _each(scores: Any, name: str = "") -> Iterator[str]:
    """A line for each list of scores, or of runs with scores, at whatever depth."""
    if isinstance(scores, Mapping):
        for part, inner in scores.items():
            yield from _each(inner, f"{name}{part:23}")
    else:
        values = [one["score"] if isinstance(one, Mapping) else one for one in scores]
        yield f"{name}{in_words(values)}"
