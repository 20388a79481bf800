"""What page 06 shows that no other page does."""

from .layer_map import layer_map_view
from .temperature import temperature_view

__all__ = ["layer_map_view", "temperature_view"]
