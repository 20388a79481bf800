"""Exercises of lecture 09: lengths, spans, boundaries, units, facts, fusion. One file each."""

from .boundaries import BOUNDARIES
from .facts import FACTS
from .fusion import FUSION
from .lengths import LENGTHS
from .spans import SPANS
from .units import UNITS

EXERCISES = (LENGTHS, SPANS, BOUNDARIES, UNITS, FACTS, FUSION)
