"""Exercises of lecture 08: look up, score, share, bucket, decode, push, count. One file each."""

from .bucket import BUCKET
from .decoder import DECODER
from .extra import EXTRA
from .push import PUSH
from .rows import ROWS
from .scores import SCORES
from .sharing import SHARING

EXERCISES = (ROWS, SCORES, SHARING, BUCKET, DECODER, PUSH, EXTRA)
