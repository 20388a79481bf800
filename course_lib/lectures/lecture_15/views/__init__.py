"""What page 15 shows that no other page does."""

from .maps import (
    attention_maps,
    attention_maps_view,
    attentions_of,
    position_similarity,
    rollout,
    scene_cards,
)
from .results import (
    masked_chart,
    orders_chart,
    pictures_chart,
    positions_chart,
    resolution_chart,
    retrieval_table,
)
from .two_inputs import two_inputs_drawing
