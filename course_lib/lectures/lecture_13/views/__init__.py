"""What page 13 shows that no other page does."""

from .benchmark import (
    averages_table,
    benchmark_view,
    equal_size_chart,
    flops_table,
    front,
    front_chart,
    glue_table,
    points_ahead,
    rates_table,
    sentiment_table,
    tasks_chart,
)
from .costs import costs_table
from .guide import choices_table, guide_table, guide_view
from .index import errata_index, index_view, questions_index
from .real_text import documentation_chart, documentation_table
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
