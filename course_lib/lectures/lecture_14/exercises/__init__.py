"""Exercises of lecture 14: bound, gather, hash, shift, rescale, unpad, leave, overwrite. One file
each."""

from .bound import BOUND
from .in_place import IN_PLACE
from .leaving import LEAVING
from .loss import LOSS
from .numbers import NUMBERS
from .online import ONLINE
from .real import REAL
from .skew import SKEW

EXERCISES = (BOUND, LOSS, NUMBERS, SKEW, ONLINE, REAL, LEAVING, IN_PLACE)
