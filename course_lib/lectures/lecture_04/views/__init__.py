"""What page 04 shows that no other page does."""

from .byte_pieces import byte_pieces_view
from .mask_epochs import mask_epochs_view
