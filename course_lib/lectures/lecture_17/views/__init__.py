"""What page 17 shows that no other page does."""

from .charts import (
    cosines_chart,
    course_table,
    shared_words_chart,
    sizes_chart,
    trials_table,
    ways_table,
)

__all__ = [
    "cosines_chart", "course_table", "shared_words_chart", "sizes_chart", "trials_table",
    "ways_table",
]  # fmt: skip
