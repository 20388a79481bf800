"""Exercises of lecture 10: sampling, pairs, sizes, retrieval, fertility, neutral. One file each."""

from .fertility import FERTILITY
from .neutral import NEUTRAL
from .pairs import PAIRS
from .retrieval import RETRIEVAL
from .sampling import SAMPLING
from .sizes import SIZES

EXERCISES = (SAMPLING, PAIRS, SIZES, RETRIEVAL, FERTILITY, NEUTRAL)
