"""What a model says about one masked word, and how that changes while it learns."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .page import Html, Live, card, svg_drawing, svg_image
from .playgrounds import playground, steps
from .style import ORANGE, hatch, round_one
from .svg import bar, words

if TYPE_CHECKING:
    from torch import nn

    from course_lib.text.wordpiece import WordPiece
    from course_lib.train.loop import Report

Guesses = list[tuple[str, float]]  # (token, probability), the likeliest first
Snapshot = tuple[int, Guesses]


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
    if not snapshots:
        raise ValueError("No snapshots were given; expected at least one (step, guesses).")

    def draw(step: int) -> Html:
        at, guesses = snapshots[step]
        listed = ", ".join(f"{token} {100 * p:.1f}%" for token, p in guesses[:top])
        sentence = f"{text} After step {at:,}: {listed}".strip()
        image = svg_image(prediction_svg(snapshots[step], text, truth, top), sentence)
        return Html(card(image, "prediction-view"), sentence)

    options = [(f"{step:,}", i) for i, (step, _) in enumerate(snapshots)]
    return playground(draw, {"step": steps("training step", len(options) - 1, options)})


def prediction_svg(snapshot: Snapshot, text: str = "", truth: str = "", top: int = 8) -> str:
    """Horizontal bars of one snapshot; the true word is hatched and named so."""
    step, guesses = snapshot
    bars = list(guesses[:top])
    if truth and truth not in [token for token, _ in bars]:
        bars += [(token, p) for token, p in guesses if token == truth] or [(truth, 0.0)]
    parts = [
        words(10, 18, escape(_around_the_mask(text)), 14, "start"),
        words(10, 40, f"after step {step:,}", 13, "start", ink="#555"),
    ]
    for i, (token, p) in enumerate(bars):
        label = "not among the likeliest" if p == 0 else f"{100 * p:.1f}%"
        mark = " ← the true word" * (token == truth)
        look: dict[str, Any] = (
            {"fill": hatch("#ffffff", ORANGE, 8), "ink": "#8a5f00"} if token == truth else {}
        )
        parts.append(bar(158, 54 + 28 * i, max(430 * p, 1), 20, escape(token), label + mark,
                         mono=True, **look))  # fmt: skip
    height = 58 + 28 * (top + 1)  # the same for every step, so that the page does not jump
    return svg_drawing(720, height, "".join(parts), f"predictions after step {step}")


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
