"""The cue-word task: the answer stands where query or key say, and nowhere else."""

from __future__ import annotations

import pytest

from course_lib.lectures.lecture_08 import cue_words as here


@pytest.mark.parametrize("says", ["query", "key"])
def test_the_answer_stands_at_the_distance_that_is_said(says: str):
    batch = here.cue_batch(says, 50, seed=3)
    ids, labels = batch.inputs["input_ids"], batch.targets["labels"]
    for row, flat, label in zip(ids, batch.inputs["predict_at"].tolist(), labels, strict=True):
        at = flat % here.TOKENS
        candidates = [int(row[at - d]) for d in range(1, here.DISTANCES + 1)]
        if says == "query":
            (distance,) = [int(row[at]) - here.CUE]
        else:
            assert row[at] == here.CUE
            numbers = [(one - 1) // here.WORDS for one in candidates]
            (distance,) = [d for d, n in enumerate(numbers, 1) if n == d]
        assert (candidates[distance - 1] - 1) % here.WORDS + 1 == label


@pytest.mark.parametrize(("says", "tokens"), [("both", 20), ("key", 4)])
def test_what_cannot_be_drawn_is_refused(says: str, tokens: int):
    with pytest.raises(ValueError, match=f"says='{says}' and tokens={tokens}"):
        here.cue_batch(says, 2, seed=0, tokens=tokens)


def test_models_have_the_terms_that_their_names_say():
    terms = {name: terms for name, (terms, _) in here.MODELS.items()}
    assert terms["c2p alone"] == ("c2p",) and terms["no positions"] == ()
    model = here.train_cue(here.cue_model(("c2p",)), "query", steps=2)
    assert 0 <= here.cue_accuracy(model, "query", here.LONGER, count=20) <= 1
