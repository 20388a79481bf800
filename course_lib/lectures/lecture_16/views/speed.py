"""ModernBERT beside transformers' own, and beside BERT and DeBERTa, by length: the stored bench."""

from __future__ import annotations

import re
from statistics import median

from course_lib.bench.measuring import where_measured
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import stored

FILE = "16_speed"
ENCODER = re.compile(r"ModernBERT, inference, .*?(\d+)×(\d+) tokens")


def rates_by_length() -> dict[int, dict[str, float]]:
    """Tokens a second of every contender, by the tokens of a text."""
    by_length = {}
    for title, rows in stored(FILE)["tables"].items():
        if of := ENCODER.match(title):
            by_length[int(of[2])] = {row["name"]: median(row["rates"]) for row in rows}
    return by_length


def times_ahead(tokens: int) -> float:
    """Ours in times of transformers' quicker way, at a length."""
    rates = rates_by_length()[tokens]
    return rates["ours, ModernBERT"] / max(r for n, r in rates.items() if n.startswith("trans"))


def speed_table() -> Html:
    """Tokens a second by length, and how far ours is ahead."""
    head = ("tokens of a text", "transformers, eager", "transformers, sdpa", "ours",
            "ours / theirs", "our BERT", "our DeBERTa")  # fmt: skip
    names = ("transformers' ModernBertModel, eager", "transformers' ModernBertModel, sdpa",
             "ours, ModernBERT", "", "ours, BERT", "ours, DeBERTa")  # fmt: skip
    rows = [
        (
            f"{tokens:,}",
            *(
                f"{times_ahead(tokens):.2f}×" if not name
                else f"{rates[name]:,.0f}" if name in rates else "–"
                for name in names
            ),
        )
        for tokens, rates in rates_by_length().items()
    ]  # fmt: skip
    return number_table(head, rows, "ladder", 780)


def speed_measured_on() -> str:
    """The machine of `speed_table`, in a line."""
    return where_measured(stored(FILE)["machine"])
