"""What each member takes to be used."""

from __future__ import annotations

from course_lib.teaching.page import Html
from course_lib.teaching.results import stored

from ..pretraining_runs import CONTROLS, MEMBERS
from .written import written_table

COSTS = "13_costs"


def costs_table() -> Html:
    """Time of one text and of a batch, memory of a fine-tuning step, and the file."""
    record = stored(COSTS)
    head = (
        "", "ms, one text", f"texts a second, {record['batch']} at once", "fine-tuning step, MB",
        "weights, MB",
    )  # fmt: skip
    rows = [
        (
            name,
            f"{1e3 / row['one']['texts_per_second']:.2f}",
            f"{row['batch']['texts_per_second']:,.0f}",
            f"{row['learning_bytes'] / 1e6:.1f}",
            f"{row['weight_bytes'] / 1e6:.1f}",
        )
        for name, row in record["members"].items() if name in (*MEMBERS, *CONTROLS)
    ]  # fmt: skip
    return written_table(head, rows, "costs", 820)
