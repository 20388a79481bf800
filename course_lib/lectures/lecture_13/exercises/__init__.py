"""Exercises of lecture 13: correlation, averages, bootstrap, seeds, timing, front."""

from .averages import AVERAGES
from .bootstrap import BOOTSTRAP
from .matthews import MATTHEWS
from .pareto import PARETO
from .seeds import SEEDS
from .timing import TIMING

EXERCISES = (MATTHEWS, AVERAGES, BOOTSTRAP, SEEDS, TIMING, PARETO)
