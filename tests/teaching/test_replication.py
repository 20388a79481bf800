"""The table of headline claims: what is stored is what the rooms say, and every row can be told."""

from __future__ import annotations

import pytest

from course_lib.teaching.claims import Claim, Headline
from course_lib.teaching.replication import (
    SIGNS,
    Replicated,
    ReplicationTable,
    gathered,
    replication_table,
)


def test_the_stored_table_says_what_the_rooms_say() -> None:
    """`python -m course_lib.teaching.replication` writes it anew."""
    expected = [row._replace(found="") for row in gathered(settle=False)]
    assert [row._replace(found="") for row in replication_table().rows] == expected


def test_every_outcome_that_is_not_plain_says_why_and_every_other_what_was_found() -> None:
    for row in replication_table().rows:
        assert row.outcome in SIGNS
        assert row.because or row.outcome == "reproduced in miniature", row
        assert row.found or row.outcome == "not testable here", row
        assert "please report it" not in row.found, row


def test_signs_words_and_counts_are_shown_without_markup_going_astray() -> None:
    rows = (
        Replicated("A", "02", "x", "<b> is bold", "A, 1", "contradicted", "tested: *depth*", "−1"),
        Replicated("A", "02", "y", "it is so", "A, 2", "not testable here", "too large", ""),
    )
    table = ReplicationTable(rows)
    assert "✗ 1 contradicted · – 1 not testable here" in repr(table)
    html = table._repr_html_()
    assert "&lt;b&gt; is bold" in html and "<em>depth</em>" in html and "lecture 02" in html


@pytest.mark.parametrize(
    ("how", "outcome"), [("cited", "contradicted"), ("measured", "not testable here")]
)
def test_only_what_was_run_here_is_reproduced_or_contradicted(how: str, outcome: str) -> None:
    settled = {} if how == "cited" else {"settle": int, "accepts": bool, "rejected": 1}
    with pytest.raises(ValueError, match="not testable here"):
        Claim("id", "a", "b", "c", "true", how, "d", headline=Headline("A", outcome), **settled)
