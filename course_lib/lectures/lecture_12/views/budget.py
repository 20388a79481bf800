"""What to serve under a budget: of the ways that fit, the most accurate; and what it would take for
the next one to fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

from course_lib.teaching.page import Html, Live, card, paragraphs
from course_lib.teaching.playgrounds import playground, slider

HEAD = ("way", "accuracy", "ms, 95th percentile", "MB on disk", "fits")


@dataclass(frozen=True)
class Offer:
    """A way to serve the task: accuracy from 0 to 1, milliseconds that 19 of 20 texts take at
    most, megabytes of its file."""

    name: str
    accuracy: float
    milliseconds: float
    megabytes: float

    def fits(self, milliseconds: float, megabytes: float) -> bool:
        """Within both budgets."""
        return self.milliseconds <= milliseconds and self.megabytes <= megabytes


def chosen(offers: Sequence[Offer], milliseconds: float, megabytes: float) -> Offer | None:
    """The most accurate that fits, the quicker of equals; None where none does."""
    fitting = [offer for offer in offers if offer.fits(milliseconds, megabytes)]
    return max(fitting, key=lambda o: (o.accuracy, -o.milliseconds), default=None)


def budget_view(offers: Sequence[Offer]) -> Live:
    """The offers, and which one a budget picks. Controls: milliseconds, megabytes."""
    slowest, largest = _ends(offers)
    controls = {
        "milliseconds": slider("at most, ms", slowest / 2, 0, slowest, round(slowest / 50, 2)),
        "megabytes": slider("at most, MB", largest / 2, 0, largest, round(largest / 50, 2)),
    }
    return playground(partial(budget_picture, offers), controls)


def _ends(offers: Sequence[Offer]) -> tuple[float, float]:
    if not offers:
        raise ValueError("No offers were given; expected at least one way to serve.")
    return (
        round(1.1 * max(offer.milliseconds for offer in offers), 1),
        round(1.1 * max(offer.megabytes for offer in offers), 1),
    )


def budget_picture(offers: Sequence[Offer], milliseconds: float, megabytes: float) -> Html:
    """A table with ✓ and ✗, and the choice in words. Raises ValueError for no offers."""
    _ends(offers)
    best = chosen(offers, milliseconds, megabytes)
    rows = "".join(_row(offer, milliseconds, megabytes, offer is best) for offer in offers)
    head = "".join(f'<th style="text-align:left;padding:2px 10px">{name}</th>' for name in HEAD)
    sentence = choice_in_words(offers, milliseconds, megabytes)
    table = f'<table style="border-collapse:collapse"><tr>{head}</tr>{rows}</table>'
    return Html(card(table + paragraphs([sentence]), "budget", 800), sentence)


def _row(offer: Offer, milliseconds: float, megabytes: float, best: bool) -> str:
    quick, small = offer.milliseconds <= milliseconds, offer.megabytes <= megabytes
    cells = (
        f"{'▶ ' if best else ''}{escape(offer.name)}",
        f"{offer.accuracy:.1%}",
        f"{offer.milliseconds:.1f} {'✓' if quick else '✗'}",
        f"{offer.megabytes:.1f} {'✓' if small else '✗'}",
        "yes" if quick and small else "no",
    )
    style = "padding:2px 10px;background:#fff;color:#1a1a1a;text-align:left"
    style += ";font-weight:650;border:2px solid #D55E00" if best else ""
    return "<tr>" + "".join(f'<td style="{style}">{cell}</td>' for cell in cells) + "</tr>"


def choice_in_words(offers: Sequence[Offer], milliseconds: float, megabytes: float) -> str:
    """Which one is taken, why, and what would change it."""
    budget = f"{milliseconds:.1f} ms and {megabytes:.1f} MB"
    best = chosen(offers, milliseconds, megabytes)
    better = [o for o in offers if best is None or o.accuracy > best.accuracy]
    next_one = min(better, key=lambda o: _short(o, milliseconds, megabytes), default=None)
    hint = ""
    if next_one is not None:
        hint = (
            f" Next: {next_one.name} ({next_one.accuracy:.1%}) needs "
            f"{next_one.milliseconds:.1f} ms and {next_one.megabytes:.1f} MB."
        )
    if best is None:
        return f"Nothing fits {budget}.{hint}"
    return f"{budget}: take {best.name}, {best.accuracy:.1%}.{hint}"


def _short(offer: Offer, milliseconds: float, megabytes: float) -> float:
    """By how much, in budgets, an offer misses: the larger of both."""
    return max(offer.milliseconds / max(milliseconds, 1e-9), offer.megabytes / max(megabytes, 1e-9))
