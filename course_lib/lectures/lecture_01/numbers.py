"""The measured numbers that sentences of lecture 01 repeat: counted, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from statistics import mean
from typing import Any

import torch

from course_lib.encoder import count_parameters
from course_lib.family.elmo import elmo
from course_lib.teaching.numbers import millions, percent
from course_lib.teaching.results import stored
from course_lib.teaching.shipped import micro_elmo

from .claims import accuracy, best_layer, kind_scores, tags
from .three_kinds import KINDS, LEFT


@cache
def _released() -> str:
    with torch.device("meta"):
        return millions(count_parameters(elmo()))


def _senses(text: str, name: str, layer: str) -> str:
    return percent(accuracy(text, name, layer))


def _best(text: str, name: str) -> str:
    return _senses(text, name, best_layer(text, name))


def _cosine(name: str, layer: str, which: str, text: str = "documentation") -> str:
    """Mean cosine of two vectors: "same" and "other" sense, "chance" for two words."""
    layers = stored("01_senses")["runs"][text]["vectors"][name]
    (found,) = [of for of in layers if of["layer"] == layer]
    return f"{found['cosine'][which]:.2f}"


def _mentions() -> int:
    counts = stored("01_senses")["runs"]["documentation"]["mentions"]
    return sum(map(sum, counts.values()))


def _table(name: str) -> dict[str, Any]:
    found: dict[str, Any] = stored("01_static")["runs"]["world"]["tables"][name]
    return found


def _kind(kind: str, task: str, measure: str) -> str:
    return percent(kind_scores(kind, task, measure))


def _kinds() -> dict[str, Callable[[], Any]]:
    """fill_…, possible_… and translated_… of each kind, and fill_left."""
    tasks = {"fill": ("fill gaps", "words"), "possible": ("continue", "possible"),
             "translated": ("translate", "whole")}  # fmt: skip
    names = dict(zip(KINDS, ("encoder", "decoder", "both"), strict=True))
    found: dict[str, Callable[[], Any]] = {
        f"{short}_{called}": partial(_kind, kind, task, measure)
        for short, (task, measure) in tasks.items()
        for kind, called in names.items()
    }
    return found | {"fill_left": lambda: _kind(LEFT, "fill gaps", "words")}


def _steps(name: str) -> int:
    steps: int = stored("01_three_kinds")["recipes"][name]["steps"]
    return steps


DOCS, WORLD = "documentation", "sentence"
NUMBERS: dict[str, Callable[[], Any]] = {
    "elmo_parameters": _released,
    "micro_elmo_parameters": lambda: count_parameters(micro_elmo()[0]),
    "same_topic": lambda: f"{_table('skip-gram')['same_topic']:.0%}",
    "spring_river": lambda: _table("skip-gram")["topics"]["spring"]["river"],
    "spring_workshop": lambda: _table("skip-gram")["topics"]["spring"]["workshop"],
    "mentions": _mentions,
    "static_senses": lambda: _senses(DOCS, "skip-gram", "word"),
    "bag_senses": lambda: _senses(DOCS, "bag of words", "bag"),
    "around_senses": lambda: _senses(DOCS, "mean of the neighbours' PPMI vectors", "context"),
    "elmo_0_senses": lambda: _senses(DOCS, "ELMo", "0"),
    "elmo_1_senses": lambda: _senses(DOCS, "ELMo", "1"),
    "elmo_2_senses": lambda: _senses(DOCS, "ELMo", "2"),
    "elmo_random_senses": lambda: _best(DOCS, "ELMo, random initialisation"),
    "bert_senses": lambda: _best(DOCS, "BERT"),
    "bert_random_senses": lambda: _best(DOCS, "BERT, random initialisation"),
    "minilm_senses": lambda: _best(DOCS, "MiniLM"),
    "world_bag": lambda: _senses(WORLD, "bag of words", "bag"),
    "world_elmo": lambda: _senses(WORLD, "ELMo", "2"),
    "world_forward": lambda: _senses(WORLD, "ELMo", "2 forward"),
    "world_backward": lambda: _senses(WORLD, "ELMo", "2 backward"),
    "world_bert": lambda: _senses(WORLD, "BERT", "4"),
    "elmo_same": lambda: _cosine("ELMo", "2", "same"),
    "elmo_other": lambda: _cosine("ELMo", "2", "other"),
    "elmo_chance": lambda: _cosine("ELMo", "2", "chance"),
    "bert_same": lambda: _cosine("BERT", "4", "same"),
    "bert_other": lambda: _cosine("BERT", "4", "other"),
    "bert_chance": lambda: _cosine("BERT", "4", "chance"),
    "tags_elmo_0": lambda: f"{mean(tags('0')):.1%}",
    "tags_elmo_1": lambda: f"{mean(tags('1')):.1%}",
    "tags_elmo_2": lambda: f"{mean(tags('2')):.1%}",
    "tags_bert": lambda: (
        f"{max(mean(of) for of in stored('01_senses')['tags']['BERT'].values()):.0%}"
    ),
    "gap_steps": lambda: _steps("encoder: fill gaps"),
    "kind_steps": lambda: _steps("encoder: translate"),
    **_kinds(),
}

TYPED = {
    "50%": "chance between two senses",
    "80%": "a cosine of the quiz, read as a fraction",
    "100": "the name M2M-100; counts of the quiz",
}
