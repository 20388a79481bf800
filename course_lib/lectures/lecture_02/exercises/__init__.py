"""Exercises of lecture 02: count, attend, mask, choose, pair, lose, split words. One file each."""

from .attention import ATTENTION
from .choosing import CHOOSING
from .count import COUNT
from .loss import LOSS
from .masking import MASKING
from .pairs import PAIRS
from .words import WORDS

EXERCISES = (COUNT, ATTENTION, MASKING, CHOOSING, PAIRS, LOSS, WORDS)
