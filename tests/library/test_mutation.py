"""A small run of the mutation campaign: no bare error, nothing silent. See tests/mutation."""

from __future__ import annotations

import pytest

pytest.importorskip("tokenizers")

from breaking import campaign, outcome
from broken_checkpoints import CALLS, CHECKPOINTS, TEXT_DOOR
from broken_runs import RUNS

DOORS = [*CHECKPOINTS, *RUNS]


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
