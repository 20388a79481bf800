"""What a model of pairs must beat: a classifier that sees which words the segments hold, and no
order of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..objectives.rows import Rows, SpecialIds


def bag_of_words_accuracy(
    train: Rows, heldout: Rows, special: SpecialIds, *, kind: str = "shared"
) -> float:
    """Share of held-out pairs that a logistic regression over words tells apart.

    kind: its features. "shared": for each word, whether it stands in both segments, and how many
    words do; the same when the segments are swapped. "ordered": for each word +1 if it stands in
    the first segment only, −1 if in the second only; what they share is not seen.
    """
    from sklearn.linear_model import LogisticRegression

    if kind not in ("shared", "ordered"):
        raise ValueError(f"kind={kind!r} was given; expected 'shared' or 'ordered'.")
    assert train.next_sentence_label is not None and heldout.next_sentence_label is not None
    # To the optimum: stopped earlier, it ends elsewhere on another processor.
    classifier = LogisticRegression(max_iter=1_000, tol=1e-7)
    classifier.fit(_features(train, special, kind), train.next_sentence_label.numpy())
    found = classifier.score(_features(heldout, special, kind), heldout.next_sentence_label.numpy())
    return float(found)


def _features(rows: Rows, special: SpecialIds, kind: str) -> Any:
    from scipy.sparse import csr_matrix, hstack

    ids, types = rows.input_ids.numpy(), rows.token_type_ids.numpy()
    words = rows.attention_mask.numpy().astype(bool) & ~np.isin(ids, special.never_masked)
    bags = []
    for segment in (0, 1):
        row, place = np.nonzero(words & (types == segment))
        bag = csr_matrix(
            (np.ones(len(row)), (row, ids[row, place])), shape=(len(rows), special.vocab_size)
        )
        bags.append((bag > 0).astype(float))
    if kind == "ordered":
        return (bags[0] - bags[1]).tocsr()
    both = bags[0].multiply(bags[1]).tocsr()
    return hstack([both, csr_matrix(both.sum(axis=1))]).tocsr()
