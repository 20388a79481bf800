"""Exercise 08.2: three scores, added and scaled. B texts, A heads, T tokens, D head size, R = 2k
rows of the table of distances.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
    expect_tensor,
)

from .rows import delta as row_of


class Given(NamedTuple):
    """What the answer is given, in this order."""

    query: Tensor  # (B, A, T, D)
    key: Tensor  # (B, A, T, D)
    position_key: Tensor  # (A, R, D)
    position_query: Tensor  # (A, R, D)
    delta: Tensor  # (T, T)


Cases = Callable[[Draw], list[Given]]
Term = Callable[[Given], Tensor]  # -> (B, A, T, T)


def scores(
    query: Tensor, key: Tensor, position_key: Tensor, position_query: Tensor, delta: Tensor
) -> Tensor:
    """(B, A, T, T), before the softmax: equation 4, its look-ups as in the released code."""
    shape = (*query.shape[:3], len(delta))  # (B, A, T, T)
    rows = delta.expand(shape)
    content = query @ key.transpose(-1, -2)
    # Every product with every row of the table, then each pair picks its own.
    to_position = (query @ position_key.transpose(-1, -2)).gather(-1, rows)
    by_key = (key @ position_query.transpose(-1, -2)).gather(-1, rows.transpose(-1, -2))
    to_content = by_key.transpose(-1, -2)  # (j, i) -> (i, j)
    return (content + to_position + to_content) / sqrt(3 * query.shape[-1])


# ---------------------------------------------------------------- known wrong answers


def _pairs(asking: str, table: str, side: str = "i", turned: bool = False) -> Term:
    """One term: the vector of token i or j with the row of i − j, or of j − i if turned."""

    def term(given: Given) -> Tensor:
        x, rows = getattr(given, asking), getattr(given, table)
        index = given.delta.T if turned else given.delta
        picked = rows[:, index]  # (A, T, T, D)
        form = "baid,aijd->baij" if side == "i" else "bajd,aijd->baij"
        return torch.einsum(form, x, picked)

    return term


def _word_word(given: Given) -> Tensor:
    return given.query @ given.key.transpose(-1, -2)


def _nothing(given: Given) -> Tensor:
    return torch.zeros_like(_word_word(given))


def _distance_distance(given: Given) -> Tensor:
    product = (given.position_query * given.position_key).sum(-1)  # (A, R)
    return product[:, given.delta].expand_as(_word_word(given))


RIGHT = (_word_word, _pairs("query", "position_key"), _pairs("key", "position_query", "j"))
ONE_TABLE = (
    "the query asks the rows of position_key, the key answers the rows of position_query. Each of "
    "the two terms has a table of its own"
)

# (key, what is said, the three terms in place of the right ones)
TERM_SLIPS: tuple[tuple[str, str, tuple[Term, ...]], ...] = (
    ("", "", RIGHT),
    (
        "the paper's δ(j, i)",
        "Your third term looks up δ(j, i). That is the paper's formula (equation 4). The code its "
        "authors released, whose weights exist, looks up δ(i, j) in both terms; so does this "
        "exercise.",
        (*RIGHT[:2], _pairs("key", "position_query", "j", turned=True)),
    ),
    (
        "both look-ups turned",
        "Both look-ups use δ(j, i). Entry (i, j) of the scores looks up delta[i, j].",
        (
            _word_word,
            _pairs("query", "position_key", turned=True),
            _pairs("key", "position_query", "j", turned=True),
        ),
    ),
    (
        "second term turned",
        "The second term looks up δ(j, i). Entry (i, j) of the scores looks up delta[i, j].",
        (_word_word, _pairs("query", "position_key", turned=True), RIGHT[2]),
    ),
    (
        "third term not turned back",
        "In your third term row i belongs to the key of token i. Its product was made key by key, "
        "so after the gather its axes are (j, i): swap the last two before you add.",
        (*RIGHT[:2], _pairs("key", "position_query")),
    ),
    (
        "third term not turned back",
        "In your third term row i belongs to the key of token i, looked up at δ(j, i). Its product "
        "was made key by key: gather with the table turned, (j, i), and turn the result back.",
        (*RIGHT[:2], _pairs("key", "position_query", turned=True)),
    ),
    (
        "third term from the queries",
        "Your third term multiplies the *query* of token i with the distance's query. A question "
        "needs an answer: it is the *key* of token j that the distance asks.",
        (*RIGHT[:2], _pairs("query", "position_query")),
    ),
    (
        "third term from the queries",
        "Your third term multiplies the query of token j with the distance's query. It is the "
        "*key* of token j that the distance asks.",
        (*RIGHT[:2], _pairs("query", "position_query", "j")),
    ),
    (
        "second term from the keys",
        "Your second term multiplies the *key* of token j with the distance's key. It is the "
        "*query* of token i that asks what the distance offers.",
        (_word_word, _pairs("key", "position_key", "j"), RIGHT[2]),
    ),
    (
        "second term from the keys",
        "Your second term multiplies the *key* of token i with the distance's key. The *query* of "
        "token i asks: it is the query that meets row δ(i, j) of position_key.",
        (_word_word, _pairs("key", "position_key"), RIGHT[2]),
    ),
    (
        "position_key for both",
        f"position_key is used in both terms: {ONE_TABLE}.",
        (*RIGHT[:2], _pairs("key", "position_key", "j")),
    ),
    (
        "position_query for both",
        f"position_query is used in both terms: {ONE_TABLE}.",
        (_word_word, _pairs("query", "position_query"), RIGHT[2]),
    ),
    (
        "tables exchanged",
        f"The two tables are exchanged: {ONE_TABLE}.",
        (_word_word, _pairs("query", "position_query"), _pairs("key", "position_key", "j")),
    ),
    (
        "distance with distance",
        "A fourth product was added, the distance's query with the distance's key. It says nothing "
        "about the words, and DeBERTa leaves it out.",
        (*RIGHT, _distance_distance),
    ),
    (
        "no word with word",
        "The product of the words, query with key, is missing.",
        (_nothing, *RIGHT[1:]),
    ),
    (
        "no word with distance",
        "The second term, the word's query with the distance's key, is missing.",
        (_word_word, _nothing, RIGHT[2]),
    ),
    (
        "no distance with word",
        "The third term, the distance's query with the word's key, is missing.",
        (_word_word, RIGHT[1], _nothing),
    ),
    (
        "minus",
        "The third term is subtracted; all three are added.",
        (*RIGHT[:2], lambda given: -RIGHT[2](given)),
    ),
)


def _sum(terms: list[Tensor]) -> Tensor:
    return torch.stack(terms).sum(0)


# (key, what is said, (terms, head size D, heads A) -> scores)
Join = Callable[[list[Tensor], int, int], Tensor]
JOINS: tuple[tuple[str, str, Join], ...] = (
    ("", "", lambda terms, D, A: _sum(terms) / sqrt(3 * D)),
    (
        "sqrt(d)",
        "The sum is divided by sqrt(d), as in BERT. Three products are added here, and their sum "
        "has three times the variance of one: divide by sqrt(3d).",
        lambda terms, D, A: _sum(terms) / sqrt(D),
    ),
    (
        "no scale",
        "The sum is not divided by anything: divide by sqrt(3d), d being the width of a head.",
        lambda terms, D, A: _sum(terms),
    ),
    (
        "3d without root",
        "The sum is divided by 3d. It is the square root of that.",
        lambda terms, D, A: _sum(terms) / (3 * D),
    ),
    (
        "times",
        "The sum is multiplied by sqrt(3d); divide by it.",
        lambda terms, D, A: _sum(terms) * sqrt(3 * D),
    ),
    (
        "3 sqrt(d)",
        "The sum is divided by 3 · sqrt(d), as if the terms were averaged. Variances add up, so "
        "the 3 stands under the root: sqrt(3d).",
        lambda terms, D, A: _sum(terms) / (3 * sqrt(D)),
    ),
    (
        "sqrt(2d)",
        "The sum is divided by sqrt(2d). Two terms have to do with distances, but three are added: "
        "sqrt(3d).",
        lambda terms, D, A: _sum(terms) / sqrt(2 * D),
    ),
    (
        "sqrt(4d)",
        "The sum is divided by sqrt(4d). Three terms are added: sqrt(3d).",
        lambda terms, D, A: _sum(terms) / sqrt(4 * D),
    ),
    (
        "d of the whole layer",
        "The d under the root is the width of all heads together. It is the width of one head, "
        "query.shape[-1].",
        lambda terms, D, A: _sum(terms) / sqrt(3 * D * A),
    ),
    (
        "only the words scaled",
        "Only the first term is divided. The sum of all three is divided by sqrt(3d).",
        lambda terms, D, A: terms[0] / sqrt(D) + _sum(terms[1:]),
    ),
    (
        "only the words scaled",
        "Only the first term is divided by sqrt(3d). The sum of all three is.",
        lambda terms, D, A: terms[0] / sqrt(3 * D) + _sum(terms[1:]),
    ),
    (
        "scaled differently",
        "The first term is divided by sqrt(d) and the others by sqrt(3d). Divide the sum of all "
        "three by sqrt(3d).",
        lambda terms, D, A: terms[0] / sqrt(D) + _sum(terms[1:]) / sqrt(3 * D),
    ),
    (
        "only the last scaled",
        "Only the last term is divided: a / b binds more tightly than a + b. Put the sum in "
        "parentheses.",
        lambda terms, D, A: _sum(terms[:-1]) + terms[-1] / sqrt(3 * D),
    ),
    (
        "softmax applied",
        "You return weights, after a softmax. Asked for are the scores before it.",
        lambda terms, D, A: (_sum(terms) / sqrt(3 * D)).softmax(-1),
    ),
    (
        "three softmaxes",
        "Each term went through a softmax of its own. 'Scores are computed separately' is half of "
        "it: they are *added*, and one softmax follows, which is not asked for here.",
        lambda terms, D, A: _sum([t.softmax(-1) for t in terms]),
    ),
    (
        "three softmaxes",
        "Each term was scaled and went through a softmax of its own. The three scores are *added*, "
        "and one softmax follows, which is not asked for here.",
        lambda terms, D, A: _sum([(t / sqrt(D)).softmax(-1) for t in terms]),
    ),
    (
        "turned",
        "Your scores have the asking token across and the answering one down. Entry (i, j) is the "
        "score of token i for token j.",
        lambda terms, D, A: (_sum(terms) / sqrt(3 * D)).transpose(-1, -2),
    ),
)


def _suspects() -> list[Suspect]:
    """One mistake first, then one of each kind together."""
    every = [_suspect(slip, join) for slip, join in product(TERM_SLIPS, JOINS)]
    named = [suspect for suspect in every if suspect.key]
    return sorted(named, key=lambda suspect: " + " in suspect.key)


def _suspect(slip: tuple[str, str, tuple[Term, ...]], join: tuple[str, str, Join]) -> Suspect:
    parts = [part for part in (slip, join) if part[0]]

    def compute(*inputs: Tensor) -> Tensor:
        given = Given(*inputs)
        _, A, _, D = given.query.shape
        return join[2]([term(given) for term in slip[2]], D, A)

    return Suspect(" + ".join(p[0] for p in parts), " ".join(p[1] for p in parts), compute)


SCORES_SUSPECTS = _suspects()


# ---------------------------------------------------------------- inputs


def _drawn(draw: Draw, words: bool = True, offers: bool = True, asks: bool = True) -> Given:
    """Without words the keys meet no query of a word, without offers or asks that table is zero."""
    B, A, T, D = 2, draw.python.choice((2, 4)), draw.integer(4, 6), draw.integer(3, 5)
    k = draw.integer(2, 3)
    query, key = draw.normal(B, A, T, D), draw.normal(B, A, T, D)
    tables = (draw.normal(A, 2 * k, D), draw.normal(A, 2 * k, D))
    if not words:  # the one half of the width asks, the other answers
        query[..., : D // 2] = 0
        key[..., D // 2 :] = 0
    return Given(query, key, tables[0] * offers, tables[1] * asks, row_of(T, k))


def _only_words(draw: Draw) -> list[Given]:
    return [_drawn(draw, offers=False, asks=False) for _ in range(2)]


def _with_offers(draw: Draw) -> list[Given]:
    return [_drawn(draw, words=False, asks=False), _drawn(draw, asks=False)]


def _with_asks(draw: Draw) -> list[Given]:
    return [_drawn(draw, words=False, offers=False), _drawn(draw, offers=False)]


def _everything(draw: Draw) -> list[Given]:
    return [_drawn(draw) for _ in range(3)]


# ---------------------------------------------------------------- stages


def _ask_scores(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case), case), scores(*case)
            if close(given, right):
                continue
            pools = [_everything(draw), cases(draw)]
            found = name_suspect(answer, case, pools, SCORES_SUSPECTS, _same)
            raise told(found, _example(case, given, right))

    return ask


def _example(case: Given, given: Tensor, right: Tensor) -> str:
    off = (given - right).abs().nan_to_num(1e9)
    b, a, i, j = (int(x) for x in (off == off.max()).nonzero()[0])
    terms = ", ".join(f"{float(term(case)[b, a, i, j]):.3f}" for term in RIGHT)
    return (
        f"For token i = {i} and token j = {j} (row {int(case.delta[i, j])}) the three products are "
        f"{terms}, and d = {case.query.shape[-1]}: you have {float(given[b, a, i, j]):.4f}; the "
        f"score is {float(right[b, a, i, j]):.4f}."
    )


def _read(x: Any, case: Given) -> Tensor:
    shape = (*case.query.shape[:3], len(case.delta))
    if (isinstance(x, (tuple, list)) and len(x) == 3) or _is_stack(x, shape):
        raise Mistake(
            "terms kept apart",
            "You return three scores a pair. Each is computed by itself, but attention needs one: "
            f"add them. Expected shape {shape}.",
        )
    return expect_tensor(x, shape, "one score for every pair of tokens, in every head").double()


def _is_stack(x: Any, shape: tuple[int, ...]) -> bool:
    found = tuple(x.shape) if isinstance(x, Tensor) else ()
    return found in ((3, *shape), (*shape, 3), (shape[0], 3, *shape[1:]))


def _same(mine: Any, theirs: Tensor, case: Any) -> bool:
    return close(_read(mine, case), theirs)


SCORES = Exercise(
    id="08.2",
    title="Three scores, one sum",
    purpose="disentangled attention before anyone shows you the code",
    difficulty=4,
    minutes=20,
    signature="my_scores(query, key, position_key, position_query, delta)",
    statement=(
        "`query` and `key` (B, A, T, D) belong to the words; `position_key` and `position_query` "
        "(A, R, D) to the R rows of the table of distances; `delta` (T, T) is that of exercise "
        "08.1. The score of token i for token j is a sum of three products:  \n"
        "*word with word*, the query of i with the key of j;  \n"
        "*word with distance*, the query of i with row δ(i, j) of `position_key`;  \n"
        "*distance with word*, row δ(i, j) of `position_query` with the key of j.  \n"
        "The row is that of δ(i, j) in both, as in the released code. Divide the sum by the square "
        "root of 3·D (also where a table happens to be zero), and return the scores, (B, A, T, T), "
        "before any softmax."
    ),
    hints=(
        "Word with word: query @ key.transpose(-1, -2), of shape (B, A, T, T).",
        "query @ position_key.transpose(-1, -2) is (B, A, T, R): every query with every row. "
        ".gather(-1, index) picks one row for each j; index must be (B, A, T, T): "
        "delta.expand(B, A, T, T).",
        "The third term begins with the keys: key @ position_query.transpose(-1, -2) has one line "
        "for each j. So what is picked goes by (j, i): the index is delta with its axes swapped, "
        "and what comes out is swapped back.",
        "Another way, slow and clear: position_query[:, delta] is (A, T, T, D), a vector for every "
        'pair; torch.einsum("bajd,aijd->baij", key, …) multiplies it with the key of j.',
        "(first + second + third) / math.sqrt(3 * query.shape[-1])",
    ),
    solution=scores,
    see=(
        "course_lib.kernels.disentangled.score_parts keeps the terms apart; score_scale counts"
    ),
    when_raised=(
        (
            r"Index tensor must have the same number of dimensions|Size does not match|"
            r"expanded size",
            "gather wants an index with as many axes as the tensor it picks from, and no longer "
            "than it: delta.expand(B, A, T, T) for one of shape (B, A, T, R).",
        ),
        (
            r"mat1 and mat2|size of tensor|must match|expected size|batch1|batch2",
            "Two shapes do not fit. For products of rows with rows swap the last two axes of the "
            "second: query @ position_key.transpose(-1, -2) is (B, A, T, R).",
        ),
        (
            r"out of bounds|out of range",
            "delta holds row numbers, 0 to R − 1: it picks along the axis of length R.",
        ),
    ),
    stages=(
        Check("words alone, both tables zero", _ask_scores(_only_words)),
        Check("words with distances", _ask_scores(_with_offers)),
        Check("distances with words", _ask_scores(_with_asks)),
        Check("all three", _ask_scores(_everything)),
    ),
)
