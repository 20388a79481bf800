"""Why DeBERTa divides by sqrt(3d): how far the sum of one, two or three products spreads.

d head size, T tokens. Queries, keys and position vectors are random: independent, mean 0,
variance 1 (He et al. 2020, equation 4; the scale of n terms as in its code).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from course_lib.teaching.page import Html, Live, check_one_of, table_html
from course_lib.teaching.playgrounds import playground, steps
from course_lib.teaching.style import BLUE, GREEN, VERMILION
from course_lib.teaching.svg import Scale, key_marks, line, picture, with_sign, words, x_axis

if TYPE_CHECKING:
    from torch import Tensor

HEAD_SIZES = (4, 8, 16, 32, 64, 128, 256)
TEXTS = 16  # drawn anew for each figure
LINES: dict[int, dict[str, Any]] = {
    1: {"ink": BLUE, "wide": 5.5},
    2: {"ink": GREEN, "dash": "9 5", "wide": 3},
    3: {"ink": VERMILION, "dash": "2 4", "wide": 3},
}
NAMES = {
    1: "1: content with content",
    2: "2: and content with position",
    3: "3: and position with content",
}
WIDTH, LEFT, TOP, PANEL, HEIGHT, GAP = 740, 34, 56, 320, 190, 46  # pixels
EDGE, BIN, HIGHEST = 6.0, 0.25, 0.52  # of the histograms


@dataclass(frozen=True)
class ScoreStatistics:
    """The scores of many random pairs under one number of terms, before any division."""

    head_size: int
    terms: int
    scores: Tensor  # (texts, T, T)

    def variance(self, scale: float) -> float:
        """Of the scores divided by `scale`."""
        return float((self.scores / scale).var())

    def entropy(self, scale: float) -> float:
        """Nats; the mean entropy of a softmax row over T keys, after the division."""
        logs = (self.scores / scale).log_softmax(-1)
        return float(-(logs.exp() * logs).sum(-1).mean())

    @property
    def scales(self) -> tuple[float, float]:
        """sqrt(d), and sqrt(n · d)."""
        return math.sqrt(self.head_size), math.sqrt(self.terms * self.head_size)


def score_statistics(
    head_size: int, terms: int = 3, *, tokens: int = 64, texts: int = TEXTS, seed: int = 0
) -> ScoreStatistics:
    """Scores of random vectors with one, two or three terms, drawn by `seed`; float64.

    terms: 1 content with content, 2 and content with position, 3 and position with content.
    The same seed gives the same vectors whatever the number of terms. Raises ValueError for other
    numbers of terms, a head size below 1, and less than 2 tokens or 1 text.
    """
    import torch

    from course_lib.kernels.disentangled import score_parts
    from course_lib.kernels.positions import position_rows

    if terms not in LINES or head_size < 1 or tokens < 2 or texts < 1:
        raise ValueError(
            f"head_size={head_size!r}, terms={terms!r}, tokens={tokens!r}, texts={texts!r} were "
            "given; expected a head size of at least 1, one to three terms, at least 2 tokens and "
            "1 text."
        )
    generator = torch.Generator().manual_seed(seed)

    def random_vectors(*shape: int) -> Tensor:
        return torch.randn(*shape, head_size, generator=generator, dtype=torch.float64)

    query, key = (random_vectors(1, texts, tokens) for _ in range(2))  # a head a text: (1, A, T, D)
    position_key, position_query = (
        random_vectors(texts, 2 * tokens) for _ in range(2)
    )  # (A, 2k, D)
    parts = score_parts(query, key, position_key, position_query, position_rows(tokens, tokens))
    included = [part[0] for part in parts[:terms] if part is not None]  # each (A, T, T)
    return ScoreStatistics(head_size, terms, torch.stack(included).sum(0))


@lru_cache(maxsize=16)
def _all_terms(head_size: int, tokens: int, seed: int) -> Mapping[int, ScoreStatistics]:
    return {n: score_statistics(head_size, n, tokens=tokens, seed=seed) for n in LINES}


def score_variance(head_size: int = 64, tokens: int = 64, seed: int = 0) -> Live:
    """How the scores spread with one, two and three terms, divided by sqrt(d) and by sqrt(n · d).

    Control: head_size (4 to 256). Raises ValueError for another head size and less than 2 tokens.
    """
    check_one_of(HEAD_SIZES, head_size=head_size)
    controls = {"head_size": steps("d: head size", head_size, HEAD_SIZES)}
    return playground(partial(score_variance_picture, tokens=tokens, seed=seed), controls)


def score_variance_picture(head_size: int = 64, tokens: int = 64, seed: int = 0) -> Html:
    """Two panels of histograms, a line a number of terms, above a table of variance and entropy."""
    measured = _all_terms(head_size, tokens, seed)
    sentences, (head, *rows) = _sentences(measured, tokens), _cells(measured)
    text = "\n".join([*(" ".join(row) for row in (head, *rows)), *sentences])
    swatches = [(line(0, 9, 26, 9, **LINES[n]), NAMES[n]) for n in LINES]
    parts = [words(4, 16, "terms", 13, "start", bold=True), key_marks(swatches, 54, 3, 26, 13)]
    parts += [part for which in (0, 1) for part in _panel(measured, which)]
    return picture(
        "score-variance", WIDTH, TOP + HEIGHT + 42, parts, sentences, text=text,
        below=table_html(head, rows),
    )  # fmt: skip


# ---------------------------------------------------------------- in words and numbers


def _cells(measured: Mapping[int, ScoreStatistics]) -> list[list[str]]:
    head = ["terms", "variance, ÷ √d", "entropy, ÷ √d", "variance, ÷ √(nd)", "entropy, ÷ √(nd)"]
    lines = [head]
    for n, one in measured.items():
        cells = [NAMES[n]]
        for scale in one.scales:
            cells += [f"{one.variance(scale):.2f}", f"{one.entropy(scale):.2f}"]
        lines.append(cells)
    return lines


def _sentences(measured: Mapping[int, ScoreStatistics], tokens: int) -> list[str]:
    three = measured[3]
    plain, scaled = three.scales
    d = three.head_size
    return [
        f"Head size d = {d}. Divided by √d, three terms have variance {three.variance(plain):.2f}, "
        f"one term {measured[1].variance(plain):.2f}: the variances of independent products "
        f"add up. Divided by √(3d), three terms have {three.variance(scaled):.2f}, "
        "and the three lines all but coincide.",
        f"The softmax over {tokens} keys then has {three.entropy(scaled):.2f} nats of entropy "
        f"instead of {three.entropy(plain):.2f}, of at most ln {tokens} = "
        f"{math.log(tokens):.2f}. The more the scores spread, the fewer keys it reads from.",
    ]


# ---------------------------------------------------------------- drawn


def histogram(values: Tensor) -> list[float]:
    """Densities in bins of 0.25 from −6 to 6; what lies beyond is in no bin."""
    import torch

    bins = round(2 * EDGE / BIN)
    counts = torch.histc(values.flatten(), bins, -EDGE, EDGE)
    return (counts / (values.numel() * BIN)).tolist()  # type: ignore[no-any-return]


def _panel(measured: Mapping[int, ScoreStatistics], which: int) -> list[str]:
    """The densities after one of the two divisions, at the middle of every bin."""
    left, bottom = LEFT + which * (PANEL + GAP), TOP + HEIGHT
    x, y = Scale(-EDGE, EDGE, left, left + PANEL), Scale(0, HIGHEST, bottom, TOP)
    title = ("divided by √d", "divided by √(nd), n terms")[which]
    lines = []
    for n, one in measured.items():
        densities = enumerate(histogram(one.scores / one.scales[which]))
        points = [p for k, d in densities for p in (x(BIN * (k + 0.5) - EDGE), y(d))]
        lines.append(line(*points, **LINES[n], kind=f"terms{n}"))
    ticks = {tick: with_sign(tick) for tick in range(-6, 7, 2)}
    return [
        words(left, TOP - 12, title, 13, "start", bold=True),
        x_axis(x, bottom, ticks, "score", top=TOP),
        *lines,
    ]
