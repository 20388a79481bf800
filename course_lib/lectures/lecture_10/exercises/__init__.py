"""Exercises of lecture 10: sampling, pairs, retrieval, neutral, sizes, fertility. One file each."""

from .fertility import FERTILITY
from .neutral import NEUTRAL
from .pairs import PAIRS
from .retrieval import RETRIEVAL
from .sampling import SAMPLING
from .sizes import SIZES

EXERCISES = (SAMPLING, PAIRS, RETRIEVAL, NEUTRAL, SIZES, FERTILITY)
