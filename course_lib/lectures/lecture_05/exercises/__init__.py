"""Exercises of lecture 05: embed, order, count, share, lengths, FLOPs. One file each."""

from .count import COUNT
from .embedding import EMBEDDING
from .flops import FLOPS
from .layers import LAYERS
from .ngrams import NGRAMS
from .order import ORDER

EXERCISES = (EMBEDDING, ORDER, COUNT, LAYERS, NGRAMS, FLOPS)
