"""What page 12 shows that no other page does."""

from .blocks import blocks_drawing
from .budget import budget_view
from .exits import exits_picture, exits_view
from .readers import lost_table, readers_table
from .results import (
    entropies_chart,
    exits_chart,
    flops_and_time_chart,
    roads_chart,
    roads_table,
    serving_table,
    strategies_chart,
    training_chart,
)
