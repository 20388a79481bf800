"""What page 12 shows that no other page does."""

from .blocks import blocks_drawing
from .budget import budget_view
from .exits import exits_picture, exits_view

__all__ = ["blocks_drawing", "budget_view", "exits_picture", "exits_view"]
