"""What page 06 shows that no other page does."""

from .drawings import half_drawing, positions_drawing
from .layer_map import layer_map_view
from .temperature import temperature_view
