"""Exercises of lecture 11: words, rows, rates, weights, padding, repetition. One file each."""

from .padding import PADDING
from .rates import RATES
from .repetition import REPETITION
from .rows import ROWS
from .weights import WEIGHTS
from .words import WORDS

EXERCISES = (WORDS, ROWS, RATES, WEIGHTS, PADDING, REPETITION)
