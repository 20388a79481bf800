"""Tables of sentences: cells that wrap, and the same as Markdown for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.teaching.page import Html, card, inline

# Themes set these of each cell, and stripe rows: what cells inherit is said of the table, once.
TABLE = "border-collapse:collapse;margin:0;font-size:13px;color:#1a1a1a;background:#fff"
CELL = "padding:3px 8px;vertical-align:top;text-align:left;border-bottom:1px solid #ddd"


def written_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], kind: str, width: int = 820
) -> Html:
    """Rows of texts, which may mark `code` and *stress*; `kind` becomes the card's class.

    Raises ValueError for a row with another number of cells than the head."""
    if wrong := [row for row in rows if len(row) != len(head)]:
        raise ValueError(f"a row of {len(wrong[0])} cells was given; expected {len(head)}.")
    inner = table_of(head, rows)
    return Html(card(inner, kind, width), markdown(head, rows), inner)


def table_of(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table without its card."""
    lines = (
        '<tr style="background:#fff">'
        + "".join(f'<{tag} style="{CELL}">{inline(text)}</{tag}>' for text in row)
        + "</tr>"
        for tag, row in [("th", head), *(("td", row) for row in rows)]
    )
    return f'<div style="overflow-x:auto"><table style="{TABLE}">{"".join(lines)}</table></div>'


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table."""
    lines = (" | ".join(text.replace("|", "\\|") for text in row) for row in (head, *rows))
    top, *rest = (f"| {line} |" for line in lines)
    return "\n".join([top, "|" + "---|" * len(head), *rest])
