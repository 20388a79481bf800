"""What a model says about one masked word, and how that changes while it learns."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .page import Html, Live, card, svg_drawing, svg_image
from .playgrounds import playground
from .style import BLUE, round_one

if TYPE_CHECKING:
    from torch import nn

    from course_lib.text.wordpiece import WordPiece
    from course_lib.train.loop import Report

Guesses = list[tuple[str, float]]  # (token, probability), the likeliest first
Snapshot = tuple[int, Guesses]

_HATCH = (
    '<defs><pattern id="course-hatch" width="8" height="8" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="8" height="8" fill="#E69F00"/>'
    '<rect width="3" height="8" fill="#fff"/></pattern></defs>'
)


def predict_masked(
    model: nn.Module,
    tokenizer: WordPiece,
    text: str,
    *,
    second: str | None = None,
    truth: str = "",
    top: int = 8,
) -> Guesses:
    """The `top` likeliest tokens for the first [MASK] of `text`, with probabilities to four digits.

    second: a second segment; truth: a token to add at the end when it is not among them.
    Raises ValueError where the text holds no [MASK].
    """
    import torch

    from course_lib.objectives.sequences import pack

    a, b = tokenizer.encode(text), tokenizer.encode(second) if second else None
    ids, types, mask = pack(a, b, tokenizer.special)
    if tokenizer.special.mask not in ids:
        raise ValueError(f"{text!r} holds no [MASK]; expected one instead of the word to predict.")
    rows = [torch.tensor([row]) for row in (ids, mask, types)]
    at = torch.tensor([ids.index(tokenizer.special.mask)])
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            logits = model(*rows, predict_at=at).prediction_logits  # (1, V)
    finally:
        model.train(was_training)
    probabilities = logits[0].float().softmax(-1)  # (V,)
    best = probabilities.topk(min(top, len(probabilities))).indices.tolist()
    if truth and tokenizer.id(truth) not in best:
        best.append(tokenizer.id(truth))
    return [(tokenizer.token(i), round_one(probabilities[i].item())) for i in best]


class WatchWord:
    """A callback of train.fit that predicts the masked word at chosen steps; see .snapshots.

    looks: how often, spread so that the early looks, where most happens, are close together.
    more: second, truth and top of predict_masked.
    """

    every = 1

    def __init__(self, tokenizer: WordPiece, text: str, *, looks: int = 12, **more: Any) -> None:
        self.tokenizer, self.text, self.looks, self.more = tokenizer, text, looks, more
        self.snapshots: list[Snapshot] = []

    def __call__(self, report: Report) -> None:
        if report.step in self._when(report.steps):
            guesses = predict_masked(report.model, self.tokenizer, self.text, **self.more)
            self.snapshots.append((report.step, guesses))

    def _when(self, steps: int) -> set[int]:
        """Squares: look k of n at step (k/n)² · steps."""
        return {max(1, round(steps * (k / self.looks) ** 2)) for k in range(1, self.looks + 1)}


def prediction_slider(
    snapshots: Sequence[Snapshot], text: str = "", *, truth: str = "", top: int = 8
) -> Live:
    """What is predicted for a masked word as training goes on: a slider over the snapshots.

    snapshots: [(step, [(token, probability), …]), …]; truth: the masked word, its bar hatched.
    Raises ValueError without a snapshot.
    """
    import ipywidgets

    if not snapshots:
        raise ValueError("No snapshots were given; expected at least one (step, guesses).")
    options = [(f"{step:,}", i) for i, (step, _) in enumerate(snapshots)]
    step = ipywidgets.SelectionSlider(
        options=options, value=len(options) - 1, description="training step"
    )

    def draw(step: int) -> str:
        return card(prediction_svg(snapshots[step], text, truth, top), "prediction-view")

    def said(step: int) -> str:
        at, guesses = snapshots[step]
        listed = ", ".join(f"{token} {100 * p:.1f}%" for token, p in guesses[:top])
        return f"{text} After step {at:,}: {listed}".strip()

    last = prediction_svg(snapshots[-1], text, truth, top)
    text_twin = said(len(snapshots) - 1)
    static = Html(card(svg_image(last, text_twin), "prediction-view"), text_twin)
    return playground(draw, {"step": step}, static)


def prediction_svg(snapshot: Snapshot, text: str = "", truth: str = "", top: int = 8) -> str:
    """Horizontal bars of one snapshot; the true word is hatched and named so."""
    step, guesses = snapshot
    text = _around_the_mask(text)
    shown = list(guesses[:top])
    if truth and truth not in [token for token, _ in shown]:
        shown += [(token, p) for token, p in guesses if token == truth] or [(truth, 0.0)]
    top_y, row = 52, 28
    height = top_y + row * (top + 1) + 6  # the same for every step, so that the page does not jump
    bars = "".join(_bar(i, t, p, t == truth, top_y, row) for i, (t, p) in enumerate(shown))
    head = (
        f'<text x="10" y="18" font-size="14">{escape(text)}</text>'
        f'<text x="10" y="40" fill="#555">after step {step:,}</text>'
    )
    return svg_drawing(720, height, _HATCH + head + bars, f"predictions after step {step}")


def _bar(i: int, token: str, probability: float, true: bool, top: int, row: int) -> str:
    y, wide = top + row * i, 430 * probability
    fill = 'fill="url(#course-hatch)" stroke="#8a5f00"' if true else f'fill="{BLUE}"'
    said = " ← the true word" if true else ""
    number = "not among the likeliest" if probability == 0 else f"{100 * probability:.1f}%"
    return (
        f'<text x="150" y="{y + 16}" text-anchor="end" font-family="ui-monospace,Menlo,monospace">'
        f'{escape(token)}</text><rect x="158" y="{y + 2}" width="{max(wide, 1):.1f}" '
        f'height="{row - 8}" {fill}/><text x="{166 + wide:.1f}" y="{y + 16}">{number}{said}</text>'
    )


def _around_the_mask(text: str, most: int = 90) -> str:
    """As much of a long text as fits on a line, the [MASK] in it."""
    if len(text) <= most:
        return text
    at = max(text.find("[MASK]"), 0)
    first = min(max(at - most // 2, 0), len(text) - most)
    cut = text[first : first + most]
    head, tail = ("… " if first else ""), (" …" if first + most < len(text) else "")
    inside = cut[cut.find(" ") + 1 :] if head else cut
    return head + (inside[: inside.rfind(" ")] if tail else inside) + tail
