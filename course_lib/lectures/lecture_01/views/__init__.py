"""What page 01 shows that no other page does."""

from .drawings import elmo_drawing, three_drawing
from .guesses import guesses_view
from .hand_attention import hand_attention_view
from .nearest import index_occurrences, layers_view, neighbours_view, some_mentions
from .tree import tree_view
from .who_sees_whom import masks_view
