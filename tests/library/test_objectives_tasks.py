"""The losses of fine-tuning, and how an answer is found: by hand, against a plain double loop, and
what is refused."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED
from course_lib.objectives.classification import classification_loss, regression_loss
from course_lib.objectives.pretraining import counted_together, split_batch
from course_lib.objectives.sequences import Batch
from course_lib.objectives.spans import Spans, best_spans, choose_threshold, span_loss
from course_lib.objectives.token_labels import token_classification_loss

LOG2 = math.log(2)


def said(**scores: Any) -> Any:
    """What a model answered."""
    return SimpleNamespace(
        **{n: torch.as_tensor(x, dtype=torch.float64) for n, x in scores.items()}
    )


def drawn(*shape: int, seed: int = 0) -> Tensor:
    make = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=make, dtype=torch.float64)


# ---------------------------------------------------------------- labels of tokens


def test_token_labels_by_hand():
    """Three to one for the right label, then even: the mean of log 4/3 and log 2."""
    scores = [[[0.0, 9.0], [math.log(3), 0.0], [5.0, 5.0]]]
    labels = torch.tensor([[IGNORED, 0, 1]])
    found = token_classification_loss(said(logits=scores), {"token_labels": labels})["total"]
    assert found.item() == pytest.approx((math.log(4 / 3) + LOG2) / 2)


def test_what_is_not_selected_does_not_count():
    scores, labels = drawn(3, 7, 4), torch.randint(4, (3, 7))
    labels[:, ::2] = IGNORED
    loss = token_classification_loss(said(logits=scores), {"token_labels": labels})["total"]
    moved = torch.where(labels[..., None] == IGNORED, 100.0, scores)
    same = token_classification_loss(said(logits=moved), {"token_labels": labels})["total"]
    assert loss.item() == pytest.approx(same.item(), rel=1e-12)
    moved = scores.clone()
    moved[0, 1] += torch.arange(4)
    other = token_classification_loss(said(logits=moved), {"token_labels": labels})["total"]
    assert not torch.isclose(loss, other)


def test_rows_in_another_order_and_logits_raised_alike():
    scores, labels = drawn(4, 5, 3), torch.randint(3, (4, 5))
    loss = token_classification_loss(said(logits=scores), {"token_labels": labels})["total"]
    order = torch.tensor([2, 0, 3, 1])
    for logits, tags in ((scores[order], labels[order]), (scores + drawn(4, 5, 1), labels)):
        again = token_classification_loss(said(logits=logits), {"token_labels": tags})["total"]
        assert again.item() == pytest.approx(loss.item(), abs=1e-12)


def test_unequal_parts_add_up_to_the_whole():
    """One row has one label, the other six: the mean is over labels, not over rows."""
    labels = torch.full((3, 6), IGNORED)
    labels[0, 2], labels[1] = 1, torch.tensor([0, 1, 2, 0, 1, 2])
    scores = drawn(3, 6, 3)
    batch = Batch({"input_ids": torch.arange(18).view(3, 6)}, {"token_labels": labels})
    whole = token_classification_loss(said(logits=scores), batch.targets)["total"]
    parts = split_batch(batch, 3)  # the last asks nothing at all
    losses = [
        token_classification_loss(said(logits=scores[[i]]), part.targets)["total"]
        for i, part in enumerate(parts)
    ]
    assert sum(losses).item() == pytest.approx(whole.item()) and losses[2] == 0
    row_means = [
        token_classification_loss(said(logits=scores[[i]]), {"token_labels": labels[[i]]})["total"]
        for i in range(2)
    ]
    assert abs(sum(row_means).item() / 2 - whole.item()) > 0.01


# ---------------------------------------------------------------- numbers


def test_regression_by_hand():
    found = regression_loss(said(logits=[[1.0], [4.0]]), {"values": torch.tensor([3.0, 5.0])})
    assert found["total"].item() == 2.5  # of 4 and 1
    parts = counted_together([
        Batch({}, {"values": torch.tensor([3.0])}), Batch({}, {"values": torch.tensor([5.0])})
    ])  # fmt: skip
    losses = [
        regression_loss(said(logits=[[score]]), part.targets)["total"].item()
        for score, part in zip((1.0, 4.0), parts, strict=True)
    ]
    assert losses == [2.0, 0.5]


def test_whole_numbers_and_short_formats():
    whole = regression_loss(said(logits=[[1.0], [4.0]]), {"values": torch.tensor([3, 5])})
    assert whole["total"].item() == 2.5
    short = SimpleNamespace(logits=torch.tensor([[1.0], [4.0]], dtype=torch.bfloat16))
    assert (
        regression_loss(short, {"values": torch.tensor([3.0, 5.0])})["total"].dtype == torch.float32
    )


@pytest.mark.parametrize(
    ("logits", "values"),
    [
        (torch.zeros(2, 3), torch.zeros(2)),
        (torch.zeros(2), torch.zeros(2)),
        (torch.zeros(2, 1), torch.zeros(2, 1)),  # would spread to (2, 2)
        (torch.zeros(2, 1), torch.zeros(3)),
    ],
)
def test_shapes_that_are_no_regression(logits: Tensor, values: Tensor):
    with pytest.raises(ValueError, match=r"expected \(B, 1\) and \(B,\): one number a text"):
        regression_loss(SimpleNamespace(logits=logits), {"values": values})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -100.0])
def test_values_that_are_no_numbers(bad: float):
    with pytest.raises(ValueError, match="expected finite numbers, and none of -100"):
        regression_loss(said(logits=[[0.0], [0.0]]), {"values": torch.tensor([1.0, bad])})


# ---------------------------------------------------------------- labels that do not fit


@pytest.mark.parametrize("label", [3, -1, -99])
def test_a_label_outside_the_classes(label: int):
    with pytest.raises(
        ValueError, match=r"classes from .* were given; expected numbers from 0 to 2"
    ):
        classification_loss(said(logits=drawn(2, 3)), {"classes": torch.tensor([1, label])})
    tags = torch.tensor([[IGNORED, 2, label]])
    with pytest.raises(ValueError, match=r"token_labels from .*; expected numbers from 0 to 2"):
        token_classification_loss(said(logits=drawn(1, 3, 3)), {"token_labels": tags})


def test_nothing_selected_at_all():
    nothing = torch.full((2, 4), IGNORED)
    with pytest.raises(ValueError, match=r"all -100, not asked; expected at least one label"):
        token_classification_loss(said(logits=drawn(2, 4, 3)), {"token_labels": nothing})
    part = {"token_labels": nothing, "num_token_labels": torch.tensor(5)}  # others ask
    assert token_classification_loss(said(logits=drawn(2, 4, 3)), part)["total"] == 0


def test_labels_of_another_length():
    with pytest.raises(ValueError, match=r"shape \(2, 5\) .* expected \(2, 4\).*same length"):
        token_classification_loss(
            said(logits=drawn(2, 4, 3)), {"token_labels": torch.zeros(2, 5, dtype=torch.long)}
        )
    with pytest.raises(ValueError, match=r"classes of shape \(3,\) .* expected \(2,\)"):
        classification_loss(said(logits=drawn(2, 3)), {"classes": torch.tensor([0, 1, 2])})


# ---------------------------------------------------------------- answers: the loss


def test_span_loss_by_hand():
    """The start has half of the probability, the end all of two: half of log 2 and of log 2."""
    scores = said(start_logits=[[LOG2, 0.0, 0.0]], end_logits=[[-99.0, 1.0, 1.0]])
    found = span_loss(scores, {"start": torch.tensor([0]), "end": torch.tensor([2])})
    assert found["start"].item() == pytest.approx(LOG2)
    assert found["end"].item() == pytest.approx(LOG2)
    assert found["total"].item() == pytest.approx(LOG2)
    found = span_loss(scores, {"start": torch.tensor([1]), "end": torch.tensor([2])})
    assert found["total"].item() == pytest.approx((2 * LOG2 + LOG2) / 2)


def test_the_biases_of_span_change_no_answer():
    """All starts raised alike: the same loss, the same best span, the same margin over silence."""
    start, end = drawn(3, 8), drawn(3, 8, seed=1)
    targets = {"start": torch.tensor([0, 2, 5]), "end": torch.tensor([0, 2, 7])}
    allowed = torch.ones(3, 8, dtype=torch.bool)
    allowed[:, 0] = False
    losses, spans = [], []
    for s, e in ((start, end), (start + 3, end - 2)):
        losses.append(span_loss(said(start_logits=s, end_logits=e), targets)["total"].item())
        spans.append(best_spans(s, e, allowed))
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)
    assert torch.equal(spans[0].start, spans[1].start) and torch.equal(spans[0].end, spans[1].end)
    assert torch.allclose(spans[0].margin, spans[1].margin)


def test_parts_of_questions_add_up():
    scores = said(start_logits=drawn(5, 6), end_logits=drawn(5, 6, seed=1))
    start, end = torch.tensor([0, 1, 2, 5, 3]), torch.tensor([0, 4, 2, 5, 5])
    batch = Batch({"input_ids": torch.zeros(5, 6)}, {"start": start, "end": end})
    whole = span_loss(scores, batch.targets)["total"].item()
    found, row = 0.0, 0
    for part in split_batch(batch, 2):
        rows = slice(row, row + len(part.targets["start"]))
        row = rows.stop
        here = said(start_logits=scores.start_logits[rows], end_logits=scores.end_logits[rows])
        found += span_loss(here, part.targets)["total"].item()
    assert row == 5 and found == pytest.approx(whole)


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        ([6], [6], r"start positions \[6\] were given for rows of 6 tokens; expected 0 to 5"),
        ([2], [9], r"end positions \[9\] .*give \(0, 0\): no answer here"),
        ([-1], [2], r"start positions \[-1\]"),
        ([IGNORED], [IGNORED], r"start positions \[-100\]"),
        ([4], [3], r"spans \(start, end\) \[\[4, 3\]\] .* expected start ≤ end"),
        ([1, 2], [1, 2], r"start of shape \(2,\) .* for 1 rows"),
        ([[1]], [[2]], r"start of shape \(1, 1\)"),
    ],
)
def test_spans_that_are_none(start: list, end: list, says: str):
    """transformers clamps the first four, or leaves them out, and says nothing."""
    targets = {"start": torch.tensor(start), "end": torch.tensor(end)}
    with pytest.raises(ValueError, match=says):
        span_loss(said(start_logits=drawn(1, 6), end_logits=drawn(1, 6)), targets)


# ---------------------------------------------------------------- answers: the search


def by_hand(start: Tensor, end: Tensor, allowed: Tensor, longest: int) -> tuple[int, int, float]:
    """Every span of one row in turn; a later one must be better, not as good."""
    best = (-1, -1, -math.inf)
    for i in range(len(start)):
        for j in range(i, min(i + longest, len(start))):
            if allowed[i] and allowed[j] and (total := (start[i] + end[j]).item()) > best[2]:
                best = (i, j, total)
    return best


def draw_search(seed: int) -> tuple[Tensor, Tensor, Tensor, int]:
    """Few different scores in every third case, so that there are ties; some places forbidden."""
    make = torch.Generator().manual_seed(seed)
    batch, tokens = (int(torch.randint(1, n, (1,), generator=make)) for n in (6, 40))
    tokens += 1
    start, end = drawn(batch, tokens, seed=seed), drawn(batch, tokens, seed=seed + 1000)
    if seed % 3 == 0:
        start, end = start.round(), end.round()
    allowed = torch.rand((batch, tokens), generator=make) < (1.0, 0.7, 0.2)[seed % 3]
    allowed[:, 0] = False
    allowed[torch.arange(batch), torch.randint(1, tokens, (batch,), generator=make)] = True
    return start, end, allowed, int(torch.randint(1, 50, (1,), generator=make))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("seed", range(30))
def test_best_spans_are_those_of_a_double_loop(seed: int, dtype: torch.dtype):
    start, end, allowed, longest = draw_search(seed)
    start, end = start.to(dtype), end.to(dtype)
    found = best_spans(start, end, allowed, longest)
    wide = (lambda x: x) if dtype == torch.float64 else Tensor.float
    for row in range(len(start)):
        expected = by_hand(wide(start[row]), wide(end[row]), allowed[row], longest)
        assert (found.start[row], found.end[row], found.score[row]) == expected
        assert found.null_score[row] == wide(start[row, 0]) + wide(end[row, 0])
        assert 0 <= found.end[row] - found.start[row] < longest


def test_the_drawn_searches_hold_every_kind():
    searches = [draw_search(seed) for seed in range(30)]
    assert any(longest < 5 for *_, longest in searches)
    assert any(longest > start.shape[1] for start, *_, longest in searches)
    binding = [
        not torch.equal(best_spans(s, e, a, n).score, best_spans(s, e, a, 99).score)
        for s, e, a, n in searches
    ]
    assert any(binding) and not all(binding)
    crossed = [bool((e.argmax(1) < s.argmax(1)).any()) for s, e, _, _ in searches]
    assert any(crossed)  # the best end stands before the best start


def test_ties_go_to_the_first_and_shortest():
    flat = torch.zeros(1, 6)
    allowed = torch.tensor([[False, False, True, True, True, True]])
    found = best_spans(flat, flat, allowed)
    assert (found.start.item(), found.end.item()) == (2, 2)
    end = torch.tensor([[0.0, 0.0, 0.0, 1.0, 0.0, 1.0]])
    found = best_spans(flat, end, allowed)
    assert (found.start.item(), found.end.item()) == (2, 3)


def test_the_best_end_before_the_best_start():
    """Each end by itself would give the span 4 to 1; together they give one that reads forwards."""
    start = torch.tensor([[0.0, 2.0, 0.0, 0.0, 5.0, 0.0]])
    end = torch.tensor([[0.0, 5.0, 0.0, 0.0, 1.0, 0.0]])
    allowed = torch.arange(6)[None] > 0
    found = best_spans(start, end, allowed)
    assert (found.start.item(), found.end.item(), found.score.item()) == (1, 1, 7)


def test_where_no_answer_may_stand():
    """The question's tokens have the best scores, and count for nothing; neither does padding."""
    start = end = torch.tensor([[1.0, 9.0, 9.0, 2.0, 1.0, 50.0]])
    allowed = torch.tensor([[False, False, False, True, True, False]])
    found = best_spans(start, end, allowed)
    assert (found.start.item(), found.end.item(), found.score.item()) == (3, 3, 4)
    assert found.null_score.item() == 2


def test_the_threshold_decides_between_span_and_silence():
    """Answered where score > null + threshold (section 4.3 of the paper), not at equality."""
    zero = torch.zeros(3, dtype=torch.long)
    spans = Spans(zero, zero, torch.tensor([3.0, 5.0, 4.0]), torch.tensor([4.0, 4.0, 4.0]))
    assert spans.margin.tolist() == [-1, 1, 0]
    assert spans.answered().tolist() == [False, True, False]
    assert spans.answered(-1.5).tolist() == [True, True, True]
    assert spans.answered(1.0).tolist() == [False, False, False]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"longest": 0}, "longest=0 was given; expected a whole number of tokens, at least 1"),
        ({"longest": 2.5}, "longest=2.5 was given"),
        ({"allowed": torch.ones(2, 5)}, r"allowed of type torch.float32; expected \(B, T\)"),
        ({"allowed": torch.ones(2, 4, dtype=torch.bool)}, r"shapes \[\(2, 5\), .*\(2, 4\)\]"),
        ({"allowed": torch.ones(2, 5, dtype=torch.bool)}, r"\[CLS\].*Was attention_mask given"),
        ({"allowed": torch.zeros(2, 5, dtype=torch.bool)}, r"rows \[0, 1\] allow no token"),
        ({"end_logits": torch.zeros(2, 6)}, r"shapes \[\(2, 5\), \(2, 6\), \(2, 5\)\]"),
    ],
)
def test_searches_that_cannot_be(changes: dict[str, Any], says: str):
    allowed = torch.arange(5).expand(2, 5) > 0
    given = {"start_logits": torch.zeros(2, 5), "end_logits": torch.zeros(2, 5), "allowed": allowed}
    with pytest.raises(ValueError, match=says):
        best_spans(**{**given, **changes})


# ---------------------------------------------------------------- the threshold


def score_at(margin: Tensor, answered: Tensor, silent: Tensor, threshold: float) -> float:
    return torch.where(margin.double() > threshold, answered, silent).double().mean().item()


def test_a_threshold_by_hand():
    """Margins 4 and 2 are right, 1 and −3 have no answer: anything from 1 to under 2 is perfect."""
    margin = torch.tensor([2.0, 1.0, 4.0, -3.0])
    answered, silent = torch.tensor([1.0, 0, 1, 0]), torch.tensor([0.0, 1, 0, 1])
    assert choose_threshold(margin, answered, silent) == 1.5


def test_all_or_nothing():
    margin, ones, zeros = torch.tensor([0.5, -2.0]), torch.ones(2), torch.zeros(2)
    assert choose_threshold(margin, ones, zeros) < -2  # every question is answered
    assert choose_threshold(margin, zeros, ones) >= 0.5  # none is


@pytest.mark.parametrize("seed", range(10))
def test_no_other_threshold_is_better(seed: int):
    """Against every margin itself and places all around; margins that are equal stay together."""
    make = torch.Generator().manual_seed(seed)
    margin = torch.randn(30, generator=make).mul(3).round() / (1 if seed % 2 else 7)
    empty = torch.rand(30, generator=make) < 0.3
    answered = torch.where(empty, 0.0, torch.rand(30, generator=make))
    chosen = choose_threshold(margin, answered, empty.float())
    best = score_at(margin, answered, empty.float(), chosen)
    tried = [*margin.tolist(), *torch.linspace(-12, 12, 401).tolist()]
    assert best >= max(score_at(margin, answered, empty.float(), t) for t in tried) - 1e-12


@pytest.mark.parametrize("shapes", [((0,), (0,), (0,)), ((3,), (2,), (3,)), ((2, 2),) * 3])
def test_a_threshold_from_nothing(shapes: tuple[tuple[int, ...], ...]):
    with pytest.raises(ValueError, match=r"expected \(N,\) for each, N questions, at least one"):
        choose_threshold(*(torch.zeros(shape) for shape in shapes))
