"""What page 13 shows that no other page does."""

from .guide import choices_table, guide_picture, guide_table, guide_view
from .index import errata_index, index_view, questions_index
from .tables import (
    card_table,
    glue_comparison,
    guidelines_table,
    interfaces_table,
    leaderboard_table,
    measures_table,
    rankings_table,
    reading_table,
    reasons_table,
    variants_table,
)

__all__ = [
    "card_table",
    "choices_table",
    "errata_index",
    "glue_comparison",
    "guide_picture",
    "guide_table",
    "guide_view",
    "guidelines_table",
    "index_view",
    "interfaces_table",
    "leaderboard_table",
    "measures_table",
    "questions_index",
    "rankings_table",
    "reading_table",
    "reasons_table",
    "variants_table",
]
