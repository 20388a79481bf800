"""Exercises of lecture 12: uncertainty, exits, self-distillation, trigrams, folding, int8."""

from .distillation import DISTILLATION
from .exits import EXITS
from .folding import FOLDING
from .int8 import INT8
from .trigrams import TRIGRAMS
from .uncertainty import UNCERTAINTY

EXERCISES = (UNCERTAINTY, EXITS, DISTILLATION, TRIGRAMS, FOLDING, INT8)
