"""The solutions of lecture 14 beside the library, and what only its exercises have."""

from __future__ import annotations

import pytest
import torch

from course_lib.kernels import early_exit as library
from course_lib.kernels.disentangled import _skew
from course_lib.kernels.masked_loss import masked_loss_reference
from course_lib.kernels.unpadding import Packing
from course_lib.lectures.lecture_14.exercises import (
    bound,
    in_place,
    leaving,
    loss,
    online,
    real,
    skew,
)
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import Wrong, alike


def test_the_bound_is_the_roof():
    flops, moved, peak, bandwidth = 3e9, 5e8, 200, 30
    roof = min(peak, flops / moved * bandwidth)
    assert bound.least_seconds(flops, moved, peak, bandwidth) == pytest.approx(flops / roof / 1e9)
    assert "0.02 and 0.05 seconds, so 0.05." in bound.BOUND.hints[-1]
    assert bound.least_seconds(2e9, 1e9, 100, 20) == pytest.approx(0.05)


def test_the_loss_of_everything_is_the_references():
    for hidden, head, labels in (*loss.some_selected(Draw(3)), *loss.none_selected(Draw(3))):
        theirs = masked_loss_reference(hidden, head, labels)
        assert alike(loss.masked_loss(hidden, head, labels), theirs, 1e-12)


def test_the_skew_is_the_librarys_order_turned():
    """The library's tables for queries run from distance T − 1 down, as here."""
    x = torch.randn(5, 9)
    assert torch.equal(skew.skew(x), _skew(x[None], 5)[0])


def test_the_online_softmax_is_the_softmax():
    scores, values = torch.randn(11, dtype=torch.float64), torch.randn(11, 3, dtype=torch.float64)
    for chunk in (1, 3, 11, 20):
        output = online.online_softmax(scores, values, chunk)
        assert alike(output, scores.softmax(0) @ values, 1e-12)


def test_the_watch_sees_a_chunk_and_no_more():
    scores, values = torch.randn(12, dtype=torch.float64), torch.randn(12, 2, dtype=torch.float64)
    with online.Watch(scores, values, 3):
        online.online_softmax(scores, values, 3)
    for work in (scores.exp, lambda: values[:4].sum(), lambda: torch.zeros(7)):
        with pytest.raises(Wrong, match="at once"), online.Watch(scores, values, 3):
            work()
    for x in (scores, values):
        with pytest.raises(Wrong, match="read again"), online.Watch(scores, values, 3):
            x[3:6].sum() + x[:3].sum()


def test_the_real_tokens_are_the_librarys_packing():
    for layer, x, mask in real.other_widths(Draw(5)):
        packing = Packing(mask)
        assert alike(real.real_only(layer, x, mask), packing.pad(layer(packing.unpad(x))))


def test_the_exit_is_the_librarys():
    for x, layers, exits, confident in leaving.one_by_one(Draw(4)):
        logits, used = leaving.early_exit(x, layers, exits, confident)
        theirs = library.early_exit_reference(
            x[:, None],
            [lambda part, mask, f=f: f(part) for f in layers],
            [lambda part, mask, f=f: f(part[:, 0]) for f in exits],
            confident,
        )
        assert alike(logits, theirs.logits) and torch.equal(used, theirs.layers_used)
        counts = leaving.row_counts(leaving.early_exit, x, layers, exits, confident)
        assert counts.tolist() == [int((used >= depth).sum()) for depth in range(1, 5)]


def test_the_loss_in_place_is_autograds_and_holds_no_second_table():
    logits, labels = torch.randn(50, 30, dtype=torch.float64), torch.randint(0, 30, (50,))
    leaf = logits.clone().requires_grad_()
    theirs = torch.nn.functional.cross_entropy(leaf, labels)
    theirs.backward()
    loss, gradient = in_place.loss_in_place(logits, labels)
    assert gradient is logits and alike(gradient, leaf.grad, 1e-12) and alike(loss, theirs, 1e-12)
    (first, label), _ = in_place.by_hand(Draw(0))
    assert "ln 4 = 1.386 and the gradient −3/4, 3/4" in in_place.IN_PLACE.statement
    loss, gradient = in_place.loss_in_place(first, label)
    assert loss.item() == pytest.approx(1.386, abs=5e-4)
    assert gradient.flatten().tolist() == pytest.approx([-0.75, 0.75])
