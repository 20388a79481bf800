"""Exercises of lecture 16: rotation, gating, window, unpadding, FLOPs, parameters, shared heads."""

from .count import COUNT
from .flops import FLOPS
from .geglu import GEGLU
from .grouped import GROUPED
from .rope import ROPE
from .unpad import UNPAD
from .window import WINDOW

EXERCISES = (ROPE, GEGLU, WINDOW, UNPAD, FLOPS, COUNT, GROUPED)
