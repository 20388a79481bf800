"""Exercise 08.6: how many weights disentangled attention adds.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import torch

from course_lib.config import published
from course_lib.encoder import count_parameters
from course_lib.family.deberta import DebertaConfig, DebertaV2Config, deberta
from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import Answer, Check, Draw, Exercise, Suspect, call


class Sizes(NamedTuple):
    """What the answer is given, in this order."""

    L: int
    d: int
    k: int
    shared: bool

    @property
    def matrices(self) -> int:
        """How many matrices positions have to themselves, in all layers."""
        return 0 if self.shared else 2 * self.L


def extra_weights(L: int, d: int, k: int, shared: bool) -> int:
    """Weights of disentangled attention that BERT's blocks lack: 2Ld² + 2kd (appendix A.7)."""
    table = 2 * k * d  # one, for all layers
    matrices = 0 if shared else L * 2 * d * d  # a key and a query of positions in each layer
    return table + matrices


# ---------------------------------------------------------------- known wrong answers

# What a forgotten or surplus part does to the count.
SLIPS: dict[str, tuple[str, Callable[[Sizes], float]]] = {
    "table in every layer": (
        "the table of distances was counted once a layer. There is one, which all layers share",
        lambda s: (s.L - 1) * 2 * s.k * s.d,
    ),
    "table forgotten": (
        "the table of distances is missing: 2k rows of width d",
        lambda s: -2 * s.k * s.d,
    ),
    "nothing when shared": (
        "with shared projections nothing was counted. The table of distances is still there",
        lambda s: -2 * s.k * s.d * s.shared,
    ),
    "2k + 1 rows": (
        "the table was counted with 2k + 1 rows. It has 2k, numbered 0 to 2k − 1",
        lambda s: s.d,
    ),
    "k rows": (
        "the table was counted with k rows. It has 2k, about k for either direction",
        lambda s: -s.k * s.d,
    ),
    "two tables": (
        "two tables were counted. Keys and queries of positions are projected from the same one",
        lambda s: 2 * s.k * s.d,
    ),
    "a table of all pairs": (
        "the table was counted with a row for each pair of 2k tokens. A row belongs to a distance",
        lambda s: (2 * s.k * 2 * s.k - 2 * s.k) * s.d,
    ),
    "four matrices": (
        "four matrices a layer were counted. Positions have two, for keys and queries: they have "
        "no values, and the output projection is there already",
        lambda s: s.matrices * s.d * s.d,
    ),
    "five matrices": (
        "five matrices a layer were counted. Positions have two, for keys and queries; the words' "
        "own are BERT's",
        lambda s: 3 * s.matrices // 2 * s.d * s.d,
    ),
    "three matrices": (
        "three matrices a layer were counted. Positions have two, for keys and queries: nothing "
        "is gathered from them, so they have no values",
        lambda s: s.matrices // 2 * s.d * s.d,
    ),
    "one matrix": (
        "one matrix a layer was counted. There are two: one makes the positions' keys, one their "
        "queries",
        lambda s: -s.matrices // 2 * s.d * s.d,
    ),
    "matrices forgotten": (
        "the matrices for the positions' keys and queries are missing: two a layer, d × d",
        lambda s: -s.matrices * s.d * s.d,
    ),
    "one pair of matrices": (
        "the two matrices were counted once. Each layer has its own; only the table exists once",
        lambda s: -(s.matrices - 2) * s.d * s.d if s.matrices else 0,
    ),
    "shared ignored": (
        "`shared` has no effect. Shared projections are those of the words: no matrix is added",
        lambda s: 2 * s.L * s.d * s.d if s.shared else 0,
    ),
    "shared by the layers": (
        "with `shared` one pair of matrices was counted for all layers. Shared means: positions "
        "pass through the *words'* matrices, which are there already",
        lambda s: 2 * s.d * s.d if s.shared else 0,
    ),
    "one matrix when shared": (
        "with `shared` one matrix a layer was counted. Shared means: positions pass through the "
        "*words'* matrices, which are there already",
        lambda s: s.L * s.d * s.d if s.shared else 0,
    ),
    "shared the wrong way round": (
        "`shared` is read the wrong way round: shared matrices are not added",
        lambda s: 2 * s.L * s.d * s.d * (1 if s.shared else -1),
    ),
    "d not squared": (
        "the matrices were counted with d weights each. They are d × d",
        lambda s: s.matrices * (s.d - s.d * s.d),
    ),
    "matrices k wide": (
        "the matrices were counted as 2k × d. They lead from width d to width d, whatever the "
        "number of rows",
        lambda s: s.matrices * (2 * s.k * s.d - s.d * s.d),
    ),
    "biases counted": (
        "biases of both matrices were counted, d each; the exercise leaves them out",
        lambda s: s.matrices * s.d,
    ),
    "one bias counted": (
        "a bias a layer was counted, d numbers (the released code has one, of the positions' "
        "queries); the exercise leaves biases out",
        lambda s: s.matrices // 2 * s.d,
    ),
    "absolute positions taken off": (
        "BERT's table of absolute places was taken off, with 512 rows. Asked for is what is added, "
        "without balance",
        lambda s: -512 * s.d,
    ),
    "BERT's matrices counted": (
        "the words' own matrices were counted, four a layer. They are BERT's; asked for is what is "
        "added",
        lambda s: 4 * s.L * s.d * s.d,
    ),
}  # fmt: skip

# Slips about one thing: an answer has one of each at most, so that no two contradict each other.
TOPICS = (
    {"table in every layer", "table forgotten", "2k + 1 rows", "k rows", "two tables"}
    | {"a table of all pairs"},
    {"five matrices", "four matrices", "three matrices", "one matrix", "matrices forgotten"}
    | {"one pair of matrices", "d not squared", "matrices k wide"},
    {"nothing when shared", "shared ignored", "shared by the layers", "one matrix when shared"}
    | {"shared the wrong way round"},
    {"biases counted", "one bias counted"},
)

# What stands for the number of weights.
UNITS: dict[str, tuple[str, float]] = {
    "millions": ("the number is in millions; give all its digits", 1e-6),
    "bytes": ("bytes were counted, four a weight; asked for are weights", 4.0),
}


def _suspects() -> list[Suspect]:
    """The plain ones first, then every two together."""
    alone = [(key,) for key in SLIPS]
    units = [
        Suspect(
            key,
            f"Compared with the right count, {said}.",
            lambda *sizes, factor=factor: factor * extra_weights(*sizes),
        )
        for key, (said, factor) in UNITS.items()
    ]
    return [
        *(_suspect(keys) for keys in alone),
        *units,
        *(
            _suspect(keys)
            for keys in combinations(SLIPS, 2)
            if not any(topic >= {*keys} for topic in TOPICS)
        ),
    ]


def _suspect(keys: tuple[str, ...]) -> Suspect:
    said = "; and ".join(SLIPS[key][0] for key in keys)
    slips = [SLIPS[key][1] for key in keys]

    def compute(*sizes: Any) -> float:
        return extra_weights(*sizes) + sum(slip(Sizes(*sizes)) for slip in slips)

    return Suspect(" + ".join(keys), f"Compared with the right count, {said}.", compute)


EXTRA_SUSPECTS = _suspects()


# ---------------------------------------------------------------- stages


def _drawn(draw: Draw, layers: int, shared: bool) -> Sizes:
    return Sizes(layers, draw.integer(11, 49), draw.integer(51, 99), shared)


def _several(draw: Draw) -> int:
    return draw.integer(3, 12)


def _everything(draw: Draw) -> list[Sizes]:
    return [_drawn(draw, _several(draw), shared) for shared in (False, True) * 3]


def _published(_draw: Draw) -> list[Sizes]:
    found = []
    for family, kind in (("deberta", DebertaConfig), ("deberta-v3", DebertaV2Config)):
        c = published(family, "base", kind)
        shared = isinstance(c, DebertaV2Config) and c.shared_projections
        found.append(Sizes(c.num_layers, c.hidden_size, c.span, shared))
    return found


def _ask_extra(cases: Callable[[Draw], list[Sizes]]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for sizes in cases(draw):
            given, right = _read(call(answer, *sizes)), extra_weights(*sizes)
            if given == right:
                continue
            pools = [_everything(draw), _own_only(draw), cases(draw)]
            found = name_suspect(answer, sizes, pools, EXTRA_SUSPECTS, _same)
            named = ", ".join(f"{name}={value}" for name, value in sizes._asdict().items())
            raise told(found, f"For {named} you have {given:,.12g}; it is {right:,}.")

    return ask


def _ask_published(answer: Answer, draw: Draw) -> str:
    """As any stage, and the answer to the question that the text ends with."""
    _ask_extra(_published)(answer, draw)
    first, second = (extra_weights(*sizes) for sizes in _published(draw))
    with torch.device("meta"):  # counts without filling a hundred million numbers
        whole = count_parameters(deberta("base"))
    return (
        f"DeBERTa-base: {first:,} of {whole:,}, a share of {first / whole:.1%}. DeBERTa-v3-base, "
        f"whose projections are shared, adds {second:,}."
    )


def _own_only(draw: Draw) -> list[Sizes]:
    return [_drawn(draw, _several(draw), False) for _ in range(4)]


def _read(x: Any) -> float:
    return one_number(x, "the number of weights that are added")


def _same(mine: Any, theirs: float, _case: Any) -> bool:
    return abs(_read(mine) - theirs) <= 1e-9 * max(1.0, abs(theirs))


EXTRA = Exercise(
    id="08.6",
    title="What the distances weigh",
    purpose="to see what sharing the projections saves",
    difficulty=2,
    minutes=8,
    signature="my_extra(L, d, k, shared)",
    statement=(
        "Disentangled attention adds weights to BERT's L blocks of width d: the table of "
        "distances, k rows to either side, and, unless `shared`, the matrices that make keys and "
        "queries of its rows. `shared` is True where positions pass through the words' own "
        "matrices. Return how many weights are *added* in all. Leave out biases and norms, and "
        "take nothing off for BERT's absolute places. When the last stage passes: what share of "
        "DeBERTa-base (138,601,728 parameters without heads) is it? The check tells you then."
    ),
    hints=(
        "Two groups: one table for the whole model, and matrices in each layer.",
        "The table has 2k rows, each d wide.",
        "A projection from width d to width d has d · d weights. Which of query, key and value do "
        "distances have?",
        "With L=2, d=4, k=3: own matrices 2 · 2 · 16 = 64 and the table 24, so 88; shared: 24.",
    ),
    solution=extra_weights,
    see=(
        "course_lib.family.deberta.FusedProjections has position_key and position_query, "
        "SeparateProjections can do without them"
    ),
    stages=(
        Check(
            "one layer, matrices of its own",
            _ask_extra(lambda draw: [_drawn(draw, 1, False) for _ in range(2)]),
        ),
        Check("several layers", _ask_extra(_own_only)),
        Check("shared projections", _ask_extra(_everything)),
        Check("DeBERTa-base and DeBERTa-v3-base", _ask_published),
    ),
)
