"""Exercises of lecture 06: soften, compare answers, add three losses, begin from the teacher,
compare layers, read a table critically. One file each."""

from .begin import BEGIN
from .layers import LAYERS
from .misprint import MISPRINT
from .soften import SOFTEN
from .targets import TARGETS
from .triple import TRIPLE

EXERCISES = (SOFTEN, TARGETS, TRIPLE, BEGIN, LAYERS, MISPRINT)
