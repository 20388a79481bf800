"""What page 11 shows that no other page does."""

from .pieces import pieces_view
from .results import (
    differences_table,
    forgetting_chart,
    hidden_words_chart,
    labels_chart,
    labels_table,
    law_chart,
    rates_table,
    switches_table,
    tasks_chart,
    ways_table,
    words_table,
)
