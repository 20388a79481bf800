"""Exercises of lecture 07: label, corrupt, judge, weigh, count, read, watch. One file each."""

from .compute import COMPUTE
from .corrupting import CORRUPTING
from .judging import JUDGING
from .labels import LABELS
from .likeness import LIKENESS
from .steps import STEPS
from .weighing import WEIGHING

EXERCISES = (LABELS, CORRUPTING, JUDGING, WEIGHING, STEPS, COMPUTE, LIKENESS)
