"""Exercises of lecture 15: patches, their projection, positions, rollout, hidden patches, sizes."""

from .count import COUNT
from .cutting import CUTTING
from .hidden import HIDDEN
from .positions import POSITIONS
from .projection import PROJECTION
from .rollout import ROLLOUT

EXERCISES = (CUTTING, PROJECTION, POSITIONS, ROLLOUT, HIDDEN, COUNT)
