"""What page 09 shows that no other page does."""

from .boundary import boundary_drawing
from .chinese import chinese_view
from .fusion import fusion_drawing
from .graph import graph_view, step_drawing, steps_view
from .linked import linked_view
from .spans import lengths_view, span_lengths, spans_view
from .units import story_units, units_view
