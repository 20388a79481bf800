"""Who reads what we save: two tables, from what the readers gave."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.bench.readers.tables import OF_READER, READERS, matrix, reader_rows, stored
from course_lib.teaching.page import Html, number_table

SHOWN = ("reader", "versions", "reads", "largest difference", "lost")


def readers_table() -> Html:
    """A row a model, a column a program."""
    return number_table(("", *READERS), matrix(stored()), "readers", 1_000)


def lost_table() -> Html:
    """A row a program: how many models it reads, and what is lost on the way."""
    columns = [OF_READER.index(name) for name in SHOWN]
    rows: list[Sequence[str]] = [[row[i] for i in columns] for row in reader_rows(stored())]
    return number_table(SHOWN, rows, "readers", 1_000, words=len(SHOWN))
