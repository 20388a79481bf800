"""What page 06 shows that no other page does."""

from .attention_weight import attention_chart
from .layer_map import layer_map_view
from .temperature import temperature_view

__all__ = ["attention_chart", "layer_map_view", "temperature_view"]
