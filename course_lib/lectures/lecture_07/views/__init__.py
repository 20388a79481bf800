"""What page 07 shows that no other page does."""

from .corruptor import corrupt_and_detect, corruptor_view
from .networks import networks_drawing
from .swaps import swaps_view
