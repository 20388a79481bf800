"""Exercises of lecture 07: label, corrupt, judge, weigh, count, read, watch, choose."""

from .choosing import CHOOSING
from .compute import COMPUTE
from .corrupting import CORRUPTING
from .judging import JUDGING
from .labels import LABELS
from .likeness import LIKENESS
from .steps import STEPS
from .weighing import WEIGHING

EXERCISES = (LABELS, CORRUPTING, JUDGING, WEIGHING, STEPS, COMPUTE, LIKENESS, CHOOSING)
