"""Exercise 05.2: count an ALBERT, whatever its layers share.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple

from torch import Tensor

from course_lib.config import published
from course_lib.family.albert import SHARING, AlbertConfig
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    find_suspect,
)

SEGMENTS = 2


class Sizes(NamedTuple):
    """What the answer is given, in this order."""

    V: int
    P: int
    E: int
    H: int
    F: int
    L: int
    sharing: str

    @property
    def attending(self) -> int:
        """How many halves that attend exist."""
        return 1 if self.sharing in ("all", "attention") else self.L

    @property
    def feeding(self) -> int:
        """How many halves that feed forward exist."""
        return 1 if self.sharing in ("all", "feed_forward") else self.L

    @property
    def attention(self) -> int:
        """Numbers in one half that attends, its LayerNorm included."""
        return 4 * (self.H * self.H + self.H) + 2 * self.H

    @property
    def feed_forward(self) -> int:
        """Numbers in one half that feeds forward, its LayerNorm included."""
        return (self.H * self.F + self.F) + (self.F * self.H + self.H) + 2 * self.H


def albert_parameters(V: int, P: int, E: int, H: int, F: int, L: int, sharing: str) -> int:
    """Parameters of ALBERT's encoder with its pooler, from the sizes alone (section 3.1)."""
    embeddings = (V + P + 2) * E + 2 * E  # three tables and a LayerNorm, all E wide
    projection = E * H + H
    attention = 4 * (H * H + H) + 2 * H  # with the LayerNorm that follows it
    feed_forward = (H * F + F) + (F * H + H) + 2 * H  # with the LayerNorm that follows it
    attending = 1 if sharing in ("all", "attention") else L
    feeding = 1 if sharing in ("all", "feed_forward") else L
    pooler = H * H + H
    return embeddings + projection + attending * attention + feeding * feed_forward + pooler


# What a forgotten or surplus part does to the count, as a function of the sizes.
SLIPS: dict[str, tuple[str, Callable[[Sizes], int]]] = {
    "not factorised": (
        "the embeddings are BERT's: tables and LayerNorm H wide, and no projection",
        lambda s: (s.V + s.P + SEGMENTS + 2) * (s.H - s.E) - s.E * s.H - s.H,
    ),
    "token table H wide": (
        "the token table was counted with V·H numbers; factorised, it has V·E",
        lambda s: s.V * (s.H - s.E),
    ),
    "positions H wide": (
        "the position table was counted H wide. In ALBERT all three tables are E wide, and the "
        "projection comes after their sum",
        lambda s: s.P * (s.H - s.E),
    ),
    "segments or LayerNorm H wide": (
        "there are 2·(H − E) too many: the segment table or the LayerNorm of the embeddings was "
        "counted H wide. Both stand before the projection and are E wide",
        lambda s: SEGMENTS * (s.H - s.E),
    ),
    "positions and segments H wide": (
        "the position and segment tables were counted H wide. In ALBERT all three tables are E "
        "wide, and the projection comes after their sum",
        lambda s: (s.P + SEGMENTS) * (s.H - s.E),
    ),
    "no embedding LayerNorm": (
        "2E are missing: the segment table (2 rows), or the LayerNorm of the embeddings (a gain "
        "and a bias)",
        lambda s: -2 * s.E,
    ),
    "no projection": (
        "the projection from E to H is missing: E·H weights and H biases",
        lambda s: -(s.E * s.H + s.H),
    ),
    "no projection bias": (
        "the projection's bias is missing: H numbers",
        lambda s: -s.H,
    ),
    "projection in every layer": (
        "the projection was counted once a layer; it stands once, after the embeddings",
        lambda s: (s.L - 1) * (s.E * s.H + s.H),
    ),
    "sharing ignored": (
        "the shared weights were counted L times. What layers share exists once",
        lambda s: (s.L - s.attending) * s.attention + (s.L - s.feeding) * s.feed_forward,
    ),
    "always shared": (
        "one block was counted where `sharing` leaves each layer weights of its own",
        lambda s: (1 - s.attending) * s.attention + (1 - s.feeding) * s.feed_forward,
    ),
    "halves mixed up": (
        "the wrong half is shared: \"attention\" shares the half that attends, \"feed_forward\" "
        "the other",
        lambda s: (s.feeding - s.attending) * (s.attention - s.feed_forward),
    ),
    "LayerNorms never shared": (
        "each layer was given LayerNorms of its own. A LayerNorm belongs to the half before it and "
        "is shared with it",
        lambda s: (2 * s.L - s.attending - s.feeding) * 2 * s.H,
    ),
    "LayerNorms always shared": (
        "both LayerNorms were counted once as soon as anything is shared. A LayerNorm belongs to "
        "the half before it; if that half is not shared, there are L of them",
        lambda s: 0 if s.sharing == "none" else (2 - s.attending - s.feeding) * 2 * s.H,
    ),
    "no block LayerNorms": (
        "the LayerNorms of the blocks are missing, 2H after each half, or as many biases: 4H are "
        "those of attention's four linear layers",
        lambda s: -(s.attending + s.feeding) * 2 * s.H,
    ),
    "no LayerNorms": (
        "the LayerNorms are missing: 2E after the embeddings, 2H after each half of a block",
        lambda s: -2 * s.E - (s.attending + s.feeding) * 2 * s.H,
    ),
    "half LayerNorms": (
        "each LayerNorm was counted with one number a unit; it has two, a gain and a bias",
        lambda s: -s.E - (s.attending + s.feeding) * s.H,
    ),
    "no biases": (
        "the biases of the linear layers are missing. Each has as many as it has outputs",
        lambda s: -(s.attending * 4 * s.H + s.feeding * (s.F + s.H) + 2 * s.H),
    ),
    "no block biases": (
        "the biases of the blocks' linear layers are missing. Each has as many as it has outputs",
        lambda s: -(s.attending * 4 * s.H + s.feeding * (s.F + s.H)),
    ),
    "no attention biases": (
        "the biases of query, key, value and output are missing: 4H",
        lambda s: -s.attending * 4 * s.H,
    ),
    "no feed-forward biases": (
        "the biases of the feed-forward layers are missing: F + H",
        lambda s: -s.feeding * (s.F + s.H),
    ),
    "no output projection": (
        "attention's output projection is missing: one more layer H to H",
        lambda s: -s.attending * (s.H * s.H + s.H),
    ),
    "one feed-forward matrix": (
        "the feed-forward half was given one matrix; it has two, H to F and back",
        lambda s: -s.feeding * s.H * s.F,
    ),
    "no pooler": (
        "the pooler is missing: one more linear layer, H to H, on [CLS]",
        lambda s: -(s.H * s.H + s.H),
    ),
    "no position table": ("the position table is missing: P·E", lambda s: -s.P * s.E),
    "no segment table": ("the segment table is missing: 2·E", lambda s: -SEGMENTS * s.E),
    "F is 4H": (
        "4H stands where F should",
        lambda s: s.feeding * (4 * s.H - s.F) * (2 * s.H + 1),
    ),
    "E is 128": (
        "128 stands where E should",
        lambda s: (128 - s.E) * (s.V + s.P + SEGMENTS + 2 + s.H),
    ),
    "MLM head counted": (
        "the masked-word head was counted; the exercise leaves the heads out",
        lambda s: s.H * s.E + s.E + 2 * s.E + s.V,
    ),
    "SOP head counted": (
        "the pair head was counted, 2H + 2; the exercise leaves the heads out",
        lambda s: 2 * s.H + 2,
    ),
}  # fmt: skip


def _suspects() -> list[Suspect]:
    """Every slip alone, then every two together."""
    alone = [(key,) for key in SLIPS]
    return [_suspect(keys) for keys in [*alone, *combinations(SLIPS, 2)]]


def _suspect(keys: tuple[str, ...]) -> Suspect:
    said = "; and ".join(SLIPS[key][0] for key in keys)
    slips = [SLIPS[key][1] for key in keys]

    def compute(*sizes: Any) -> int:
        return albert_parameters(*sizes) + sum(slip(Sizes(*sizes)) for slip in slips)

    return Suspect(" + ".join(keys), f"Compared with the right count, {said}.", compute)


def _drawn(draw: Draw, layers: int, sharing: str) -> Sizes:
    E = draw.integer(3, 9)
    H = E + draw.integer(4, 17)
    return Sizes(
        draw.integer(60, 200), draw.integer(20, 50), E, H, draw.integer(101, 199), layers, sharing
    )


def _ask_count(layers: Sequence[int], kinds: Sequence[str]) -> Callable[[Answer, Draw], None]:
    """A stage on drawn sizes; a mistake is named on others with the same kinds of sharing.

    These have several layers: with one, a part of the block cannot be told from the pooler.
    """

    def ask(answer: Answer, draw: Draw) -> None:
        like = [_drawn(draw, n, kind) for n in (1, 2, 3, 5) for kind in kinds]
        for n in layers:
            for kind in kinds:
                _expect_count(answer, _drawn(draw, n, kind), like)

    return ask


def _ask_published(answer: Answer, draw: Draw) -> None:
    like = [_drawn(draw, n, kind) for n in (3, 5) for kind in SHARING]
    for size in ("base", "large", "xlarge", "xxlarge"):
        c = published("albert", size, AlbertConfig)
        F, L, P = c.intermediate_size, c.num_layers, c.max_positions
        sizes = Sizes(c.vocab_size, P, c.embedding_size, c.hidden_size, F, L, c.sharing)
        _expect_count(answer, sizes, like)


def _expect_count(answer: Answer, sizes: Sizes, like: Sequence[Sizes]) -> None:
    given, right = _number(call(answer, *sizes)), albert_parameters(*sizes)
    if given == right:
        return

    def same(mine: Any, theirs: Any, _case: Any) -> bool:
        return _number(mine) == theirs

    found = find_suspect(answer, like, _suspects(), same)
    named = ", ".join(f"{name}={value!r}" for name, value in sizes._asdict().items())
    gap = f"yours − right = {given - right:+,.0f}"
    said = f"For {named} you have {given:,.0f}; it is {right:,} ({gap})."
    raise Mistake(found.key if found else "", f"{found.message}\n{said}" if found else said)


def _number(x: Any) -> float:
    if isinstance(x, Tensor) and x.numel() == 1:
        x = x.item()
    if isinstance(x, bool) or not isinstance(x, Real):  # numpy's numbers are welcome
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r} ({type(x).__name__}); expected one whole number.",
        )
    return float(x)


COUNT = Exercise(
    id="05.2",
    title="Count an ALBERT",
    purpose="to see what each of the two savings saves",
    difficulty=3,
    minutes=15,
    signature="albert_parameters(V, P, E, H, F, L, sharing)",
    statement=(
        "Give the number of parameters of ALBERT's encoder with its pooler, from the sizes alone: "
        "V pieces, P positions, 2 segments, width E of the tables, width H of the L layers, F of "
        "the feed-forward part. Tables and their LayerNorm are E wide; one linear layer with a "
        'bias leads to H. `sharing` is `"all"` (one block for all layers), `"attention"` or '
        '`"feed_forward"` (that half once, the other in each layer) or `"none"`. The LayerNorm '
        "after a half belongs to that half. Leave out the heads. Build no model."
    ),
    hints=(
        "Four groups: the embeddings, the projection, the halves of the blocks, the pooler.",
        "A linear layer from m to n has m·n weights and n biases. A LayerNorm of width w has 2w "
        "numbers.",
        "Half one: four linear layers H to H and a LayerNorm. Half two: H to F, F to H and a "
        "LayerNorm. Each half exists once or L times, whatever the other does.",
        'With V=10, P=6, E=3, H=4, F=8, L=2 and "all": embeddings 60, projection 16, halves 88 and '
        '84, pooler 20: 268. With "attention" the second half exists twice: 352.',
    ),
    solution=albert_parameters,
    see="course_lib.encoder.count_parameters counts a model that has been built",
    stages=(
        Check("one layer", _ask_count([1], ["none"])),
        Check("several layers, nothing shared", _ask_count([2, 5], ["none"])),
        Check("everything shared", _ask_count([2, 5], ["all"])),
        Check("one half shared", _ask_count([2, 5], ["attention", "feed_forward"])),
        Check("ALBERT-base, -large, -xlarge and -xxlarge", _ask_published),
    ),
)
