"""Exercises of lecture 01: count, compare, predict from two sides, mix, attend, hide. One file
each."""

from .attention import ATTENTION
from .bilm import BILM
from .counting import COUNTING
from .mixing import MIXING
from .nearest import NEAREST
from .visible import VISIBLE

EXERCISES = (COUNTING, NEAREST, BILM, MIXING, ATTENTION, VISIBLE)
