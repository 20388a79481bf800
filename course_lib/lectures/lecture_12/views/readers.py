"""Who reads what we save: two tables, from what the readers gave."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.bench.readers.tables import OF_READER, READERS, matrix, reader_rows, stored
from course_lib.teaching.page import Html, card, number_table, table_row

SHOWN = ("reader", "versions", "reads", "largest difference", "lost")


def readers_table() -> Html:
    """A row a model, a column a program."""
    return number_table(("", *READERS), matrix(stored()), "readers", 1_000)


def lost_table() -> Html:
    """A row a program: how many models it reads, and what is lost on the way."""
    columns = [OF_READER.index(name) for name in SHOWN]
    rows: list[Sequence[str]] = [[row[i] for i in columns] for row in reader_rows(stored())]
    sides = ["left"] * len(SHOWN)
    body = table_row("th", SHOWN, sides) + "".join(table_row("td", row, sides) for row in rows)
    style = "border-collapse:collapse;margin:0;background:#fff"
    text = "\n".join("  ".join(row) for row in (SHOWN, *rows))
    return Html(card(f'<table style="{style}">{body}</table>', "readers", 1_000), text)
