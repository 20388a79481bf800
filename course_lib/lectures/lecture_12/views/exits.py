"""Where texts leave: the uncertainty of each layer's exit, and the first that is low enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from math import log

from course_lib.teaching.page import Html, Live, card, paragraphs
from course_lib.teaching.playgrounds import choice, playground, slider
from course_lib.teaching.style import cividis, ink_on

Exits = Sequence[Sequence[float]]  # probabilities of the classes, at the exit of each layer
RULES = ("entropy", "probability")
CELL = (
    "display:inline-block;width:58px;padding:3px 0;margin:1px;text-align:center;"
    "font:13px monospace;box-sizing:border-box;"
)
SAME = {  # by hand: equally likely best answers, other rests
    "0.6, 0.4, 0": [(0.6, 0.4, 0.0)],
    "0.6, 0.2, 0.2": [(0.6, 0.2, 0.2)],
}


def uncertainty(probabilities: Sequence[float]) -> float:
    """Entropy as a fraction of the largest there can be: 0 sure, 1 no idea."""
    return -sum(p * log(p) for p in probabilities if p > 0) / log(len(probabilities))


def left_at(exits: Exits, speed: float, rule: str = "entropy") -> int:
    """The layer, from 1, whose answer is taken: the first with uncertainty ≤ speed, or with the
    best probability ≥ 1 − speed; the last where none is.

    Raises ValueError for another rule."""
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} was given; expected {' or '.join(map(repr, RULES))}.")
    for layer, probabilities in enumerate(exits, start=1):
        if _doubt(probabilities, rule) <= speed:
            return layer
    return len(exits)


def exits_view(texts: Mapping[str, Exits], speed: float = 0.3) -> Live:
    """Texts, a row each, and their way through the layers. Controls: speed, rule."""
    controls = {
        "speed": slider("speed", speed, 0, 1, 0.05),
        "rule": choice("leave by", "entropy", RULES),
    }
    return playground(partial(exits_picture, texts), controls)


def exits_picture(texts: Mapping[str, Exits], speed: float = 0.3, rule: str = "entropy") -> Html:
    """Cells of uncertainty (or of 1 − the best probability); a thick frame where the text leaves,
    dashed behind it. Raises ValueError for no texts, and as `left_at` does."""
    if not texts:
        raise ValueError("No texts were given; expected at least one with its exits.")
    rows, lines, layers = [], [], []
    for name, exits in texts.items():
        leaves = left_at(exits, speed, rule)
        layers.append(leaves)
        cells = "".join(
            _cell(_doubt(p, rule), at == leaves, at > leaves) for at, p in enumerate(exits, 1)
        )
        rows.append(f'<div style="margin:4px 0"><div>{escape(name)}</div>{cells}</div>')
        lines.append(f"{name}: leaves at layer {leaves} of {len(exits)}")
    mean = sum(layers) / len(layers)
    sum_up = f"speed {speed:.2f}: {mean:.1f} of {len(next(iter(texts.values())))} layers on average"
    what = "uncertainty" if rule == "entropy" else "1 − the largest probability"
    legend = f"Each cell: {what} at a layer's exit. Thick frame: the text leaves. Dashed: not run."
    return Html(
        card("".join(rows) + paragraphs([sum_up, legend]), "exits", 800),
        "\n".join([*lines, sum_up]),
    )


def _doubt(probabilities: Sequence[float], rule: str) -> float:
    return uncertainty(probabilities) if rule == "entropy" else 1 - max(probabilities)


def _cell(doubt: float, leaves: bool, skipped: bool) -> str:
    if skipped:
        return f'<span style="{CELL}border:1px dashed #bbb;color:#8a8a8a">–</span>'
    ground = cividis(doubt)
    frame = "border:3px solid #D55E00" if leaves else "border:1px solid #8a8a8a"
    return (
        f'<span style="{CELL}{frame};background:rgb{ground};color:{ink_on(ground)}">'
        f"{doubt:.2f}</span>"
    )
