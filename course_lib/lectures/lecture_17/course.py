"""`17_course`: the course's own pages, searched with the questions of its quizzes and for review,
which the index does not hold. The right page is known of every question; the right sections of
those in course.toml, whose labels were written by reading, before any ranking was seen.

A model reads a section in pieces, and its best piece counts. The weight of a mix with BM25 is
chosen on the questions for review; those of the quizzes are measured."""

from __future__ import annotations

import hashlib
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache, lru_cache, partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from course_lib.search import Section, course_sections, index_of
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.quizzes import question_keys, read_quiz, read_review
from course_lib.teaching.results import kept
from course_lib.teaching.rooms import lectures_with, room_file
from course_lib.text.documentation import plain
from course_lib.text.world import MicroWorld
from course_lib.train.calibration import bootstrap_interval
from course_lib.train.ranking_metrics import ranking_scores
from course_lib.train.searching import BM25, weighted_mix

from .numbers import runs_of
from .search import PIECE, RECIPES, SEEDS, WEIGHTS, Recipe, model_of, scores_between, train

ORDER, PIECES = "a random order", "BM25, piece by piece"
WAYS = {
    ORDER: Recipe("none", start=""),
    "BM25": RECIPES["BM25"],
    PIECES: Recipe("pieces", start=""),  # whether the mixes gain by pieces, and not by meaning
    **{name: RECIPES[name] for name in ("mean", "token table", "bi-encoder", "MiniLM")},
}
SETS = ("review", "quiz", "sections")  # of questions; the first chooses the weight of a mix
Judged = dict[str, dict[str, int]]  # {question: {page or section: 1}}


@lru_cache(maxsize=1)
def sections() -> tuple[Section, ...]:
    """Those of the pages beside the package."""
    return tuple(course_sections())


def texts_hash() -> str:
    """Of the sections and questions."""
    texts = [*map(repr, sections()), *judged("quiz"), *judged("review")]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@cache
def judged(which: str) -> Judged:
    """Questions and their right pages, of "quiz" or "review"; of "sections" their right sections,
    by number, as course.toml has them."""
    if which != "sections":
        entries: Any = read_quiz if which == "quiz" else read_review
        numbers = lectures_with("claims")
        return {plain(one.question): {n: 1} for n in numbers for one in entries(n)}
    right = {}
    for page, headings in labels().items():
        at = {one.heading: str(n) for n, one in enumerate(sections()) if one.page[:2] == page}
        for key, item in zip(question_keys(page), read_quiz(page), strict=True):
            if key in headings:
                right[plain(item.question)] = {at[heading]: 1 for heading in headings[key]}
    return right


def labels() -> dict[str, dict[str, list[str]]]:
    """page -> a question's key -> the headings of the sections that answer it."""
    return tomllib.loads(room_file("17", "course.toml").read_text("utf-8"))


def pieces() -> tuple[list[str], Tensor]:
    """The sections in pieces, each below its headings, and the section of each."""
    texts, of = [], []
    for number, one in enumerate(sections()):
        words = plain(one.text).split()
        for first in range(0, max(1, len(words)), PIECE):
            texts.append(f"{one.title}. {one.heading}. {' '.join(words[first : first + PIECE])}")
            of.append(number)
    return texts, torch.tensor(of)


@cache
def by_words(which: str) -> Tensor:
    """BM25's scores (questions, sections)."""
    return index_of(sections()).scores(list(judged(which)))


def by_pieces(score: Callable[[list[str], list[str]], Tensor]) -> dict[str, Tensor]:
    """Scores (questions, sections) of each set, those of the best pieces. score: of questions and
    pieces."""
    texts, of = pieces()
    scores = score([question for which in SETS for question in judged(which)], texts)
    best = torch.full((len(scores), len(sections())), -torch.inf)
    best = best.scatter_reduce(1, of.expand_as(scores), scores, "amax")
    return dict(zip(SETS, best.split([len(judged(which)) for which in SETS]), strict=True))


def measures(scores: Tensor, which: str) -> dict[str, Any]:
    """recall@1, recall@5 and each question's nDCG@10; a page has its best section's score."""
    right = judged(which)
    names = [str(n) if which == "sections" else one.page[:2] for n, one in enumerate(sections())]
    run: dict[str, dict[str, float]] = {}
    for question, of in zip(right, scores.tolist(), strict=True):
        run[question] = {}
        for name, score in sorted(zip(names, of, strict=True), key=lambda pair: pair[1]):
            run[question][name] = score  # the last one is the best
    ndcg = ranking_scores(run, right, k=10).ndcg
    recall = {f"recall@{k}": ranking_scores(run, right, k=k).means["recall"] for k in (1, 5)}
    return {**recall, "ndcg": ndcg}


def beside(measured: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """Measures with the mean nDCG, and how far it is from BM25's: mean and 95% interval over the
    questions."""
    gain = measured["ndcg"] - words["ndcg"]
    return {
        **measured, "ndcg": fmean(measured["ndcg"]),
        "gain": fmean(gain), "interval": bootstrap_interval(gain),
    }  # fmt: skip


def measured(recipe: Recipe, seed: int) -> dict[str, Any]:
    """A way of search, alone and mixed with BM25."""
    if recipe.start:
        model: Any = train(recipe, seed)[0] if recipe.steps else model_of(recipe, seed).eval()
        scores = by_pieces(partial(scores_between, model, recipe))
    elif recipe.way == "pieces":
        scores = by_pieces(lambda questions, texts: BM25(texts).scores(questions))
    else:
        scores = {which: by_words(which) * (recipe.way == "BM25") for which in SETS}

    def mean_ndcg(scores: Tensor) -> float:
        return fmean(measures(scores, "review")["ndcg"])

    dev, words = scores["review"], by_words("review")
    tried = {w: mean_ndcg(weighted_mix(words, dev, w)) for w in WEIGHTS}
    weight = max(tried, key=lambda w: tried[w])
    result: dict[str, Any] = {"weight": weight, "review": mean_ndcg(dev)}
    for which in SETS[1:]:
        alone, words = scores[which], by_words(which)
        ways = {"alone": alone, "mix": weighted_mix(words, alone, weight)}
        of_words = measures(words, which)
        result[which] = {way: beside(measures(x, which), of_words) for way, x in ways.items()}
    return result


def one_run(recipe: Recipe, material: None, seed: int) -> dict[str, Any]:
    """At the learning rate that `17_search` found best. Read from the cache if done before."""
    name = next(name for name, way in WAYS.items() if way == recipe)
    rate = runs_of(name)[0]["rate"] if recipe.steps else 0.0
    recipe = replace(recipe, learning_rate=rate)
    about = {"seed": seed, **asdict(recipe), "texts": texts_hash(), "piece": PIECE}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of questions without a known word: they count
        run = kept(
            f"17-course-{recipe.way}-{seed}", about, MicroWorld.load(),
            lambda: measured(recipe, seed),
        )  # fmt: skip
    return {"seed": seed, "rate": rate, **run}


COURSE = Experiment(
    "17_course",
    WAYS,
    {name: SEEDS if recipe.steps else (0,) for name, recipe in WAYS.items()},
    run=one_run,
    more={
        "texts": lambda _: {
            "hash": texts_hash(), "sections": len(sections()),
            **{which: len(judged(which)) for which in SETS},
        },
    },
)  # fmt: skip
