"""Exercises of lecture 03: align, read spans, find one, score it, cut, correlate, count."""

from .align import ALIGN
from .answers import ANSWERS
from .best import BEST
from .correlation import CORRELATION
from .cutting import CUTTING
from .heads import HEADS
from .spans import SPANS

EXERCISES = (ALIGN, SPANS, BEST, ANSWERS, CUTTING, CORRELATION, HEADS)
