"""The measured numbers that sentences of lecture 01 repeat: counted, or read from results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from statistics import mean
from typing import Any

import torch

from course_lib.encoder import count_parameters
from course_lib.family.elmo import ElmoConfig, elmo
from course_lib.teaching.numbers import millions, percent
from course_lib.teaching.results import stored
from course_lib.teaching.shipped import micro_elmo

from .claims import accuracy, best_layer, kind_scores, tags
from .senses import tagged_words
from .three_kinds import LEFT, SHOWN, STEPWISE


@cache
def elmo_parameters() -> str:
    with torch.device("meta"):
        return millions(count_parameters(elmo()))


def senses(text: str, name: str, layer: str) -> str:
    return percent(accuracy(text, name, layer))


def best(text: str, name: str) -> str:
    return senses(text, name, best_layer(text, name))


def cosine(name: str, layer: str, which: str, text: str = "documentation") -> str:
    """Mean cosine of two vectors: "same" and "other" sense, "chance" for two words."""
    layers = stored("01_senses")["runs"][text]["vectors"][name]
    (row,) = [of for of in layers if of["layer"] == layer]
    return f"{row['cosine'][which]:.2f}"


def most_frequent_tag() -> str:
    counts = Counter(word.sense for word in tagged_words())
    return percent([max(counts.values()) / counts.total()])


def times_flops(longer: bool = False) -> float:
    """Training FLOPs of course-bert over those of the documentation's ELMo, to two digits; longer:
    of the one that was trained for ten times the steps."""
    step, record = stored("01_equal")["flops_a_step"], stored("01_elmo")["runs"]["documentation"]
    steps = record["recipe"]["training"]["steps"] * (10 if longer else 1)
    ours = step["course-bert"] * stored("03_checkpoint")["recipe"]["training"]["steps"]
    return float(f"{ours / (step['ELMo'] * steps):.2g}")


@cache
def trained_longer(network: str, choose: Callable[..., Any] = min) -> list[dict[str, Any]]:
    """The layers of an ELMo or a BERT of 01_equal, at the rate with the lower held-out loss; choose
    = max: at the other."""
    record = stored("01_equal")
    runs = [
        record["runs"][name][0]
        for name, recipe in record["recipes"].items()
        if recipe["network"] == network
    ]
    layers: list[dict[str, Any]] = choose(runs, key=lambda run: run["heldout_loss"])["layers"]
    return layers


def best_longer(network: str, choose: Callable[..., Any] = min) -> str:
    """Sense accuracy of its best whole layer."""
    whole = (layer for layer in trained_longer(network, choose) if " " not in layer["layer"])
    return percent([max(mean(mean(w["probe"]) for w in of["words"].values()) for of in whole)])


def equal_steps(network: str) -> str:
    recipes = stored("01_equal")["recipes"].values()
    return f"{next(r['steps'] for r in recipes if r['network'] == network):,}"


def mentions() -> int:
    counts = stored("01_senses")["runs"]["documentation"]["mentions"]
    return sum(map(sum, counts.values()))


def table(name: str) -> dict[str, Any]:
    about: dict[str, Any] = stored("01_static")["runs"]["world"]["tables"][name]
    return about


def times_elmos(what: str) -> float:
    """The course's BERT over the ELMo of the documentation: "tokens" read, or "parameters"."""
    elmo_run, bert_run = stored("01_elmo")["runs"]["documentation"], stored("03_checkpoint")

    def measure(run: dict[str, Any]) -> int:
        training, length = run["recipe"]["training"], run["recipe"]["text"]["length"]
        short = training["short_steps"]
        read = short * training["short_length"] + (training["steps"] - short) * length
        count: int = run["parameters"] if what == "parameters" else read * training["batch_size"]
        return count

    return measure(bert_run) / measure(elmo_run)


def kind_score(kind: str, task: str, measure: str) -> str:
    return percent(kind_scores(kind, task, measure))


def at_rate(name: str, rate: float) -> str:
    """What the first seed reached at another learning rate."""
    return percent([stored("01_three_kinds")["rates"][name][str(rate)]])


def steps_of(name: str) -> int:
    steps: int = stored("01_three_kinds")["recipes"][name]["steps"]
    return steps


DOCS, WORLD = "documentation", "sentence"
TYPED = {
    "50%": "chance between two senses",
    "80%": "a cosine of the quiz, read as a fraction",
    "100": "the name M2M-100; counts of the quiz",
}
