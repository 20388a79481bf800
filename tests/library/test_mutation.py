"""A small run of the mutation campaign: no bare error, nothing silent. See tests/mutation.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")
sys.path.insert(0, str(Path(__file__).parent.parent))

from mutation import DOORS, campaign


def test_a_few_hundred_mutants():
    outcomes = list(campaign(DOORS, 15 * len(DOORS), seed=0))
    assert not [one for one in outcomes if one.kind in ("bare", "silent")]
    kinds = [one.kind for one in outcomes]
    assert kinds.count("right") > 40 and kinds.count("clear") > 150
