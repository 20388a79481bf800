"""How the claims of lecture 16 are settled; claims.toml tells them."""

from __future__ import annotations

from course_lib.config import published
from course_lib.teaching.claims import Check, Settled, entries, is_


def _layers() -> Settled:
    layers = published("bert", "base").num_layers
    return Settled(layers, f"{layers} layers")


CLAIMS = entries("16", {"layers": Check(_layers, is_(12), 24)})
