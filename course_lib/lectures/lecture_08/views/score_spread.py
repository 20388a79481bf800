"""Why DeBERTa divides by sqrt(3d): how far the sum of one, two or three products spreads.

d head size, T tokens. Queries, keys and position vectors are random: independent, mean 0,
variance 1 (He et al. 2020, equation 4; the scale of n terms as in its code).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from course_lib.teaching.page import Html, Live, card, paragraphs, svg_drawing, svg_image, table_row
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, GREEN, VERMILION

if TYPE_CHECKING:
    from torch import Tensor

HEAD_SIZES = (4, 8, 16, 32, 64, 128, 256)
TEXTS = 16  # drawn anew for each figure
LINES = {1: (BLUE, "", 5.5), 2: (GREEN, "9 5", 3.0), 3: (VERMILION, "2 4", 3.0)}
NAMES = {
    1: "1: content with content",
    2: "2: and content with position",
    3: "3: and position with content",
}
WIDE, LEFT, TOP, PANEL, HIGH, GAP = 740, 34, 56, 320, 190, 46  # pixels
EDGE, BIN = 6.0, 0.25  # of the histograms


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
    import ipywidgets as w

    if head_size not in HEAD_SIZES:
        listed = ", ".join(map(str, HEAD_SIZES))
        raise ValueError(f"head_size={head_size!r} was given; expected one of {listed}.")
    static = score_variance_picture(head_size, tokens, seed, as_image=True)
    options = [(f"{size}", size) for size in HEAD_SIZES]
    controls = {
        "head_size": w.SelectionSlider(options=options, value=head_size, description="d: head size")
    }

    def draw(head_size: int) -> str:
        return score_variance_picture(head_size, tokens, seed).html

    return playground(draw, controls, static)


def score_variance_picture(
    head_size: int = 64, tokens: int = 64, seed: int = 0, *, as_image: bool = False
) -> Html:
    """Two panels of histograms, a line a number of terms, above a table of variance and entropy.

    as_image: for a page without a kernel (see page.svg_image).
    """
    measured = _all_terms(head_size, tokens, seed)
    said = _said(measured, tokens)
    drawing = score_variance_drawing(head_size, tokens, seed)
    drawing = svg_image(drawing, " ".join(said)) if as_image else drawing
    html = card(drawing + _table(measured) + paragraphs(said), "score-variance", 780)
    return Html(html, "\n".join([*(" ".join(line) for line in _cells(measured)), *said]))


def score_variance_drawing(head_size: int = 64, tokens: int = 64, seed: int = 0) -> str:
    """The two panels alone, as an SVG."""
    measured = _all_terms(head_size, tokens, seed)
    panels = "".join(_panel(measured, which) for which in (0, 1))
    label = " ".join(_said(measured, tokens))
    return svg_drawing(WIDE, TOP + HIGH + 42, _key() + panels, label)


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


def _table(measured: Mapping[int, ScoreStatistics]) -> str:
    head, *lines = _cells(measured)
    sides = ["left", *["right"] * 4]
    rows = table_row("th", head, sides) + "".join(table_row("td", line, sides) for line in lines)
    return f'<table style="border-collapse:collapse;margin:4px 0 0;background:#fff">{rows}</table>'


def _said(measured: Mapping[int, ScoreStatistics], tokens: int) -> list[str]:
    three = measured[3]
    plain, scaled = three.scales
    d = three.head_size
    return [
        f"Head size d = {d}. Divided by √d, three terms have variance {three.variance(plain):.2f}, "
        f"one term {measured[1].variance(plain):.2f}: products that know nothing of one another "
        f"add their variances. Divided by √(3d), three terms have {three.variance(scaled):.2f}, "
        "and the three lines all but coincide.",
        f"The softmax over {tokens} keys then has {three.entropy(scaled):.2f} nats of entropy "
        f"instead of {three.entropy(plain):.2f}, of at most ln {tokens} = "
        f"{math.log(tokens):.2f}: the further apart the scores, the fewer keys it gathers from.",
    ]


# ---------------------------------------------------------------- drawn


def histogram(values: Tensor) -> list[float]:
    """Densities in bins of 0.25 from −6 to 6; what lies beyond is in no bin."""
    import torch

    bins = round(2 * EDGE / BIN)
    counts = torch.histc(values.flatten(), bins, -EDGE, EDGE)
    return (counts / (values.numel() * BIN)).tolist()  # type: ignore[no-any-return]


def _panel(measured: Mapping[int, ScoreStatistics], which: int) -> str:
    """The densities after one of the two divisions."""
    x0, bottom = LEFT + which * (PANEL + GAP), TOP + HIGH
    title = ("divided by √d", "divided by √(nd), n terms")[which]

    def across(value: float) -> float:
        return x0 + PANEL * (value + EDGE) / (2 * EDGE)

    parts = [
        f'<text x="{x0}" y="{TOP - 12}" font-weight="700">{title}</text>'
        f'<path d="M{x0} {bottom}H{x0 + PANEL}" stroke="#1a1a1a"/>'
        f'<text x="{x0 + PANEL / 2}" y="{bottom + 38}" text-anchor="middle">score</text>'
    ]
    for tick in (-6, -4, -2, 0, 2, 4, 6):
        parts.append(
            f'<path d="M{across(tick):.1f} {TOP}V{bottom + 4}" stroke="#e4e4e4"/>'
            f'<text x="{across(tick):.1f}" y="{bottom + 20}" text-anchor="middle">'
            f"{str(tick).replace('-', '−')}</text>"
        )
    for n, one in measured.items():
        parts.append(_line(n, histogram(one.scores / one.scales[which]), x0, bottom))
    return "".join(parts)


def _line(n: int, densities: Sequence[float], x0: float, bottom: float) -> str:
    """A density at the middle of every bin; the top of the panel is 0.52."""
    ink, dashes, wide = LINES[n]
    points = " ".join(
        f"{x0 + PANEL * (i + 0.5) / len(densities):.1f},{bottom - HIGH * density / 0.52:.1f}"
        for i, density in enumerate(densities)
    )
    look = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<polyline class="terms{n}" points="{points}" fill="none" stroke="{ink}" '
        f'stroke-width="{wide}"{look}/>'
    )


def _key() -> str:
    """A line of each kind with its number of terms, above both panels."""
    parts, x = ['<text x="4" y="16" font-weight="600">terms</text>'], 62
    for n, (ink, dashes, wide) in LINES.items():
        look = f' stroke-dasharray="{dashes}"' if dashes else ""
        parts.append(
            f'<path d="M{x} 12H{x + 34}" stroke="{ink}" stroke-width="{wide}"{look}/>'
            f'<text x="{x + 42}" y="16">{NAMES[n]}</text>'
        )
        x += 64 + round(6.1 * len(NAMES[n]))
    return "".join(parts)
