"""A small run of the mutation campaign: no bare error, nothing silent. See tests/mutation.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")
sys.path.insert(0, str(Path(__file__).parent.parent))

from mutation import CALLS, DOORS, TEXT_DOOR, campaign, outcome


def test_a_few_hundred_mutants():
    outcomes = list(campaign(DOORS, 12 * len(DOORS), seed=0))
    assert not [one for one in outcomes if one.kind in ("bare", "silent")]
    kinds = [one.kind for one in outcomes]
    assert kinds.count("right") > 40 and kinds.count("clear") > 150


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_text(name: str):
    """Every wrong kind of input of every function that takes texts, words or ids."""
    kinds = {
        repr(value): outcome(TEXT_DOOR, (name, value), "", 0, None).kind for value in CALLS[name][1]
    }
    assert not {value: kind for value, kind in kinds.items() if kind in ("bare", "silent")}
