"""Exercises of lecture 17: contrastive loss, BM25, measures, late interaction, mixes, codes."""

from .bm25 import BM25
from .codes import CODED
from .info_nce import INFO_NCE
from .maxsim import MAXSIM
from .measures import MEASURES
from .mix import MIX

EXERCISES = (INFO_NCE, BM25, MEASURES, MAXSIM, MIX, CODED)
