"""What page 16 shows that no other page does."""

from .blocks import then_and_now_drawing
from .checkpoints import checkpoint_curves, checkpoints_table, tasks_chart
from .packing import packing_drawing
from .real_text import real_text_curves, real_text_table
from .results import (
    cost_chart,
    extension_table,
    ladder_2026_table,
    ladder_chart,
    ladder_curves,
    ladder_table,
    longer_chart,
    norms_chart,
)
from .rotation import rotation_picture, rotation_view
from .speed import speed_table
from .windows import window_picture, window_view
