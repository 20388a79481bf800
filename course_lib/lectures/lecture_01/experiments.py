"""Lecture 01's experiments.

`01_elmo`: the pre-training of the micro-world's ELMo, as shipped. `01_static`: static vectors of
both kinds, of stories and of documentation. `01_senses`: words with two senses, and what vectors
of each kind know about them. `01_three_kinds`: three kinds of Transformer on three tasks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F

from course_lib.checkpoints import load_pretrained
from course_lib.checkpoints.elmo import load_elmo
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.elmo import Elmo
from course_lib.files import (
    cache_dir,
    data_path,
    data_root,
    sha256_of,
    write_atomic,
    write_manifest,
)
from course_lib.teaching import results
from course_lib.teaching.experiments import Experiment, results_of
from course_lib.teaching.results import REPLAYED, kept, made_with
from course_lib.teaching.shipped import ELMO, micro_elmo, micro_teacher, teacher_hash
from course_lib.text.documentation import installed_versions
from course_lib.text.static_vectors import StaticVectors
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld
from course_lib.train.loop import History, fit
from course_lib.train.pretrain import batches_of, set_up
from course_lib.train.pretrain_recipe import read_recipe

from .equal_flops import EQUAL_RUNS, finished
from .senses import (
    DOCUMENTATION,
    STATIC,
    Mention,
    Vectors,
    bag_of_words,
    bert_layers,
    documentation_mentions,
    documentation_sentences,
    elmo_layers,
    known_senses,
    static,
    static_context,
    tag_accuracy,
    tagged_words,
    topics_of_things,
    two_sense_words,
    world_mentions,
    world_sentences,
)
from .three_kinds import (
    LEFT,
    MEASURES,
    TASKS,
    KindRecipe,
    counted_gaps,
    heldout_examples,
    recipes,
    sentence_pairs,
    train,
    two_languages,
)

PRECISION = "float32"  # on every machine, so that results can be compared
SEEDS = range(3)
CURVE = 50  # steps whose losses become one point of a stored curve


# ---------------------------------------------------------------- three kinds of Transformer


def kind_recipes() -> dict[str, KindRecipe]:
    """Every kind on every task; gaps, three words a row, are given more steps."""
    long = recipes(KindRecipe(steps=1_200))
    return {name: long[name] if of.task == TASKS[0] else of for name, of in recipes().items()}


def kind_run(recipe: KindRecipe, seed: int) -> dict[str, Any]:
    """One kind on one task with one seed. Finished runs are read from the cache."""
    both = two_languages()

    def run() -> dict[str, Any]:
        begun = time.process_time()
        trained = train(recipe, seed=seed, both=both)
        seconds = round(time.process_time() - begun, 1)
        losses = trained.history.losses["total"]
        curve = [sum(losses[k : k + CURVE]) / CURVE for k in range(0, len(losses), CURVE)]
        return {
            "seed": seed, "parameters": count_parameters(trained.model),
            **trained.measure(heldout_examples(both, recipe.task)),
            "curve": [round(loss, 4) for loss in curve], "processor_seconds": seconds,
        }  # fmt: skip

    return kept("01-kinds", {"seed": seed, **asdict(recipe)}, both.world, run)


def at_other_rates() -> dict[str, dict[float, float]]:
    """What the first seed reaches on its task at half and at twice its rate, by name and rate."""
    reached: dict[str, dict[float, float]] = {}
    for name, recipe in kind_recipes().items():
        for rate in (recipe.learning_rate / 2, recipe.learning_rate * 2):
            run = kind_run(replace(recipe, learning_rate=rate), 0)
            reached.setdefault(name, {})[rate] = run[MEASURES[recipe.task]]
    return reached


def train_kind(recipe: KindRecipe, _: Any, **settings: Any) -> tuple[Any, History]:
    """`train`, as an Experiment calls it."""
    trained = train(recipe, **settings)
    return trained.model, trained.history


THREE_KINDS = Experiment(
    "01_three_kinds", kind_recipes(), SEEDS, two_languages, train_kind,
    run=lambda recipe, _, seed: kind_run(recipe, seed),
    replayed=kind_recipes()["encoder-decoder: translate"],
    more={
        "pairs": lambda both: len(sentence_pairs(both)), "words": lambda both: len(both.words),
        "left_only": LEFT, "counted": counted_gaps, "rates": lambda _: at_other_rates(),
    },
)  # fmt: skip
EXPERIMENTS = (THREE_KINDS, EQUAL_RUNS)


# ---------------------------------------------------------------- ELMo

RECIPES = {"world": "elmo_world.toml", "documentation": "elmo_documentation.toml"}


def pretrained_elmo(text: str) -> tuple[dict[str, Any], Path]:
    """What the run of this text's recipe (RECIPES) reported, and the file of its weights. A run
    that was stopped goes on; one that is finished is read."""
    recipe = read_recipe(data_path("recipes", RECIPES[text]))
    out = cache_dir("pretraining", recipe.name)
    return finished(recipe, out), out / "model.safetensors"


def replay_elmo() -> list[float]:
    """The first losses of the world's recipe."""
    recipe = read_recipe(data_path("recipes", RECIPES["world"]))
    ready, training = set_up(recipe), recipe.training
    first = training.learning_rate / (training.warmup * training.steps)  # the warm-up's slope
    history = fit(
        ready.model, ready.objective, batches_of(ready), steps=REPLAYED, warmup=1.0,
        learning_rate=first * REPLAYED, weight_decay=training.weight_decay,
        precision=PRECISION, seed=training.seed,
    )  # fmt: skip
    return history.losses["total"]


def build_elmo() -> dict[str, Any]:
    """What data/results/01_elmo.json holds: both runs, with the hashes of their weights. Those of
    the world's are stored in data/checkpoints, and shipped."""
    runs = {}
    for text in RECIPES:
        report, file = pretrained_elmo(text)
        if text == "world":
            write_atomic(data_root().joinpath(*ELMO), file.read_bytes())
        curve = [line for line in report["curve"] if line["step"] % 50 == 0]
        about = ("recipe", "text", "rows", "parameters", "reached", "precision", "threads")
        runs[text] = {
            **{k: report[k] for k in (*about, "versions")}, "sha256": sha256_of(file),
            "curve": curve,
            "replayed": next(line["total"] for line in report["curve"] if line["step"] == REPLAYED),
        }  # fmt: skip
    write_manifest(data_root())
    return {"runs": runs, "replay": replay_elmo(), **made_with(MicroWorld.load(), PRECISION)}


# ---------------------------------------------------------------- static vectors

SHOWN = {  # whose nearest neighbours are stored
    "world": (
        "bank",
        "crane",
        "ladder",
        "note",
        "seal",
        "spring",
        "trunk",
        "boat",
        "nurse",
        "happy",
    ),
    "documentation": (*DOCUMENTATION, "class", "seed", "python"),
}
NEIGHBOURS = 10


@cache
def tables(text: str) -> tuple[dict[str, StaticVectors], dict[str, float], int]:
    """Static vectors of both kinds of this text, the processor seconds of each, and how many words
    were read."""
    world = text == "world"
    sentences = world_sentences(MicroWorld.load()) if world else documentation_sentences()
    vectors, seconds = {}, {}
    for name, make in STATIC.items():
        begun = time.process_time()
        vectors[name] = make(sentences)
        seconds[name] = round(time.process_time() - begun, 1)
    return vectors, seconds, sum(map(len, sentences))


def neighbour_topics(vectors: StaticVectors, word: str) -> dict[str, int]:
    """To which topics the nearest neighbours of a word belong, of those that belong to one."""
    topics = _one_topic()
    near = [w for w, _ in vectors.neighbours(word, 60) if w in topics][:NEIGHBOURS]
    return dict(Counter(topics[w] for w in near))


def same_topic(vectors: StaticVectors) -> float:
    """How often the nearest thing of a thing has its topic; things with one topic only."""
    topics = _one_topic()
    only = [w for w in topics if w in vectors]
    units = F.normalize(torch.stack([vectors[w] for w in only]), dim=-1)
    nearest = (units @ units.T).fill_diagonal_(-1).argmax(dim=-1).tolist()
    return mean(topics[only[a]] == topics[only[b]] for a, b in enumerate(nearest))


def _one_topic() -> dict[str, str]:
    """The things of the world that belong to one topic, and this."""
    topics = topics_of_things(MicroWorld.load())
    return {word: of[0] for word, of in topics.items() if len(of) == 1}


def static_run(text: str) -> dict[str, Any]:
    """The tables of one text. A finished run is read from the cache."""

    def run() -> dict[str, Any]:
        made, seconds, read = tables(text)
        result: dict[str, Any] = {"words_read": read, "tables": {}}
        for name, vectors in made.items():
            words = [word for word in SHOWN[text] if word in vectors]
            about: dict[str, Any] = {
                "words": len(vectors.words), "processor_seconds": seconds[name],
                "neighbours": {w: [n for n, _ in vectors.neighbours(w, NEIGHBOURS)] for w in words},
            }  # fmt: skip
            if text == "world":
                about["same_topic"] = same_topic(vectors)
                two = [word for word in words if word in two_sense_words(MicroWorld.load())]
                about["topics"] = {word: neighbour_topics(vectors, word) for word in two}
            result["tables"][name] = about
        return result

    return kept("01-static", {"text": text, "words": SHOWN[text]}, MicroWorld.load(), run)


def build_static() -> dict[str, Any]:
    """What data/results/01_static.json holds."""
    return {
        "runs": {text: static_run(text) for text in SHOWN}, "packages": installed_versions(),
        **made_with(MicroWorld.load(), PRECISION),
    }  # fmt: skip


# ---------------------------------------------------------------- senses

TEXTS = ("sentence", "story", "documentation")  # the first two are of the world


@cache
def mentions_in(text: str) -> dict[str, list[Mention]]:
    """The mentions of two-sense words, those of TEXTS."""
    if text == "documentation":
        return documentation_mentions()
    return world_mentions(MicroWorld.load(), whole=text == "story")


def representations(text: str) -> dict[str, Callable[[], Vectors]]:
    """What is looked at in a text: name -> how its vectors are made."""
    source = "documentation" if text == "documentation" else "world"

    def table(name: str, make: Callable[[StaticVectors], Vectors]) -> Callable[[], Vectors]:
        return lambda: make(tables(source)[0][name])

    common: dict[str, Callable[[], Vectors]] = {
        "PPMI and SVD": table("PPMI and SVD", static),
        "skip-gram": table("skip-gram", static),
        "mean of the neighbours' PPMI vectors": table("PPMI and SVD", static_context),
        "bag of words": lambda: bag_of_words,
        "ELMo": lambda: elmo_layers(_elmo(source)),
        "ELMo, random initialisation": lambda: elmo_layers(_random_elmo(source)),
    }
    if source == "world":
        tokenizer = MicroWorld.load().tokenizer
        teacher = micro_teacher().encoder
        return common | {
            "BERT": lambda: bert_layers(teacher, tokenizer),
            "BERT, random initialisation": lambda: bert_layers(_random_bert(teacher), tokenizer),
        }
    return common | {
        "BERT": lambda: _pretrained("course-bert"),
        "BERT, random initialisation": lambda: _pretrained("course-bert", _random_bert),
        "MiniLM": lambda: _pretrained("minilm"),
    }


def _elmo(source: str) -> Elmo:
    """The world's is shipped; the documentation's is pre-trained where no run of it is kept."""
    if source == "world":
        return micro_elmo()[0].encoder
    return load_elmo(pretrained_elmo(source)[1])[0].encoder.requires_grad_(False).eval()


def _random_elmo(source: str) -> Elmo:
    torch.manual_seed(0)
    return Elmo(_elmo(source).config).eval()


def _random_bert(encoder: Encoder) -> Encoder:
    torch.manual_seed(0)
    return Encoder(encoder.config).eval()


def _pretrained(name: str, turned: Callable[[Encoder], Encoder] = lambda same: same) -> Vectors:
    pretrained = load_pretrained(name)
    assert isinstance(pretrained.tokenizer, WordPiece)
    return bert_layers(turned(pretrained.encoder), pretrained.tokenizer)


def sense_run(text: str, name: str) -> dict[str, Any]:
    """Every layer of one representation in a text, and how many mentions of each sense there are.
    Finished runs are read from the cache."""
    settings = {"text": text, "vectors": name, "seeds": len(SEEDS)}
    settings["senses"] = asdict_senses() if text == "documentation" else ""
    settings["weights"] = sha256_of(data_path(*ELMO)) + teacher_hash()

    def run() -> dict[str, Any]:
        mentions = mentions_in(text)
        counts = {w: [sum(m.sense == k for m in of) for k in (0, 1)] for w, of in mentions.items()}
        layers = known_senses(mentions, representations(text)[name](), SEEDS)
        return {"mentions": counts, "layers": layers}

    return kept("01-senses", settings, MicroWorld.load(), run)


TAGGED = ("skip-gram", "ELMo", "ELMo, random initialisation", "BERT", "MiniLM")


def tag_run(name: str) -> dict[str, Any]:
    """Parts of speech, of the representations TAGGED. Finished runs are read from the cache."""

    def run() -> dict[str, Any]:
        words = tagged_words()
        if name == "skip-gram":
            table = tables("documentation")[0][name]
            words = [w for w in words if w.words[w.at] in table]
        return tag_accuracy(words, representations("documentation")[name](), SEEDS)

    return kept("01-tags", {"vectors": name, "seeds": len(SEEDS)}, MicroWorld.load(), run)


def asdict_senses() -> dict[str, Any]:
    """What is labelled how, for files."""
    return {word: [sense._asdict() for sense in pair] for word, pair in DOCUMENTATION.items()}


def replay_senses() -> list[dict[str, Any]]:
    """ELMo's layers on the sentences of fewer stories: what a test repeats."""
    mentions = world_mentions(MicroWorld.load(), 12_000)
    return known_senses(mentions, representations("sentence")["ELMo"](), SEEDS)


def build_senses() -> dict[str, Any]:
    """What data/results/01_senses.json holds. No text of the packages is stored."""
    compared = {}
    for text in TEXTS:
        runs = {name: sense_run(text, name) for name in representations(text)}
        mentions = next(iter(runs.values()))["mentions"]
        layers = {name: run["layers"] for name, run in runs.items()}
        compared[text] = {"mentions": mentions, "vectors": layers}
    weights = {
        "world, ELMo": sha256_of(data_path(*ELMO)),
        "world, BERT": teacher_hash(),
        "documentation, ELMo": sha256_of(pretrained_elmo("documentation")[1]),
    }
    return {
        "runs": compared, "tags": {name: tag_run(name) for name in TAGGED},
        "senses": {"documentation": asdict_senses(), "world": two_sense_words(MicroWorld.load())},
        "seeds": len(SEEDS), "weights": weights, "packages": installed_versions(),
        "replay": replay_senses(),
        **made_with(MicroWorld.load(), PRECISION),
    }  # fmt: skip


# ---------------------------------------------------------------- all of them


def summary(record: Mapping[str, Any]) -> str:
    """What a results file says, in words."""
    if "senses" in record:
        lines = [
            f"{text}, {name}, {layer['layer']}: " + ", ".join(
                f"{measure} {mean(mean(of[measure]) for of in layer['words'].values()):.1%}"
                for measure in ("probe", "neighbour")
            )
            for text, of in record["runs"].items()
            for name, layers in of["vectors"].items() for layer in layers
        ]  # fmt: skip
        return "\n".join(lines)
    if "recipes" in record:
        return results.summary(record, ("words", "whole", "possible"))
    return "\n".join(f"{name}: {list(of)}" for name, of in record["runs"].items())


RESULTS = {
    "01_elmo": build_elmo,
    "01_static": build_static,
    "01_senses": build_senses,
    **results_of(EXPERIMENTS),
}
