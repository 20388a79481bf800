"""What page 07 shows that no other page does."""

from .corruptor import corrupt_and_detect, corruptor_view
from .swaps import swaps_view

__all__ = ["corrupt_and_detect", "corruptor_view", "swaps_view"]
