"""Exercises of lecture 04: draw masks, count what they ask, number positions, merge bytes, average,
accumulate. One file each."""

from .accumulate import ACCUMULATE
from .average import AVERAGE
from .draws import DRAWS
from .merges import MERGES
from .positions import POSITIONS
from .share import SHARE

EXERCISES = (DRAWS, SHARE, POSITIONS, MERGES, AVERAGE, ACCUMULATE)
