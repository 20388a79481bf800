"""What page 14 shows that no other page does."""

from .roofline import roofline_chart
from .speeds import speed_chart
from .traffic_bars import traffic_chart

__all__ = ["roofline_chart", "speed_chart", "traffic_chart"]
