"""Exercises of lecture 05: embed, count, share, order, lengths, arithmetic. One file each."""

from .count import COUNT
from .embedding import EMBEDDING
from .flops import FLOPS
from .layers import LAYERS
from .ngrams import NGRAMS
from .order import ORDER

EXERCISES = (EMBEDDING, COUNT, LAYERS, ORDER, NGRAMS, FLOPS)
