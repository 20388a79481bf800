"""What page 07 shows that no other page does."""

from .corruptor import corrupt_and_judge, corruptor_view

__all__ = ["corrupt_and_judge", "corruptor_view"]
