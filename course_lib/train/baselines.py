"""What a model of pairs must beat: a classifier that sees which words two segments share, and no
order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..objectives.rows import Rows, SpecialIds


def bag_of_words_accuracy(train: Rows, heldout: Rows, special: SpecialIds) -> float:
    """Share of held-out pairs that a logistic regression over shared words tells apart.

    Its features: for each word, whether it stands in both segments; and how many words do.
    """
    from sklearn.linear_model import LogisticRegression

    classifier = LogisticRegression(max_iter=200).fit(*_features(train, special))
    return float(classifier.score(*_features(heldout, special)))


def _features(rows: Rows, special: SpecialIds) -> tuple[Any, np.ndarray]:
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
    both = bags[0].multiply(bags[1]).tocsr()
    count = csr_matrix(both.sum(axis=1))
    assert rows.next_sentence_label is not None
    return hstack([both, count]).tocsr(), rows.next_sentence_label.numpy()
