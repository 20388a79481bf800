"""The losses of fine-tuning, and how an answer is found: by hand, against a plain double loop, and
what is refused."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
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
    wide = {name: torch.as_tensor(x, dtype=torch.float64) for name, x in scores.items()}
    return SimpleNamespace(**wide)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    make = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=make, dtype=torch.float64)


def token_loss(logits: Any, labels: Tensor, **more: Tensor) -> Tensor:
    return token_classification_loss(said(logits=logits), {"token_labels": labels, **more})["total"]


def value_loss(logits: Any, values: list[float]) -> Tensor:
    return regression_loss(said(logits=logits), {"values": torch.tensor(values)})["total"]


# ---------------------------------------------------------------- labels of tokens


def test_token_labels_by_hand():
    """Three to one for the right label, then even: the mean of log 4/3 and log 2."""
    scores = [[[0.0, 9.0], [math.log(3), 0.0], [5.0, 5.0]]]
    found = token_loss(scores, torch.tensor([[IGNORED, 0, 1]]))
    assert found.item() == pytest.approx((math.log(4 / 3) + LOG2) / 2)


def test_token_labels_against_torchs_own_loss():
    scores, labels = drawn(3, 7, 4), torch.randint(4, (3, 7))
    labels[:, ::2] = IGNORED
    expected = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
    assert token_loss(scores, labels).item() == pytest.approx(expected.item(), rel=1e-12)


def test_unequal_parts_add_up_to_the_whole():
    """One row has one label, the other six: the mean is over labels, not over rows."""
    labels = torch.full((3, 6), IGNORED)
    labels[0, 2], labels[1] = 1, torch.tensor([0, 1, 2, 0, 1, 2])
    scores = drawn(3, 6, 3)
    batch = Batch({"input_ids": torch.arange(18).view(3, 6)}, {"token_labels": labels})
    whole = token_loss(scores, labels)
    parts = zip(scores.split(1), split_batch(batch, 3), strict=True)  # the last asks nothing at all
    losses = [token_classification_loss(said(logits=x), part.targets)["total"] for x, part in parts]
    assert sum(losses).item() == pytest.approx(whole.item()) and losses[2] == 0
    row_means = [token_loss(scores[[i]], labels[[i]]) for i in range(2)]
    assert abs(sum(row_means).item() / 2 - whole.item()) > 0.01


# ---------------------------------------------------------------- numbers


def test_regression_by_hand():
    assert value_loss([[1.0], [4.0]], [3.0, 5.0]) == 2.5  # of 4 and 1
    assert value_loss([[1.0], [4.0]], [3, 5]) == 2.5  # whole numbers
    batches = [Batch({}, {"values": torch.tensor([value])}) for value in (3.0, 5.0)]
    parts = zip((1.0, 4.0), counted_together(batches), strict=True)
    losses = [
        regression_loss(said(logits=[[x]]), part.targets)["total"].item() for x, part in parts
    ]
    assert losses == [2.0, 0.5]
    short = SimpleNamespace(logits=torch.zeros(2, 1, dtype=torch.bfloat16))
    assert regression_loss(short, {"values": torch.ones(2)})["total"].dtype == torch.float32


# ---------------------------------------------------------------- targets that do not fit

LOSSES = {
    "values": regression_loss,
    "classes": classification_loss,
    "token_labels": token_classification_loss,
}
SHAPES = r"expected \(B, 1\) and \(B,\): one number a text"
LOST = "expected finite numbers, and none of -100"
OUTSIDE = "were given; expected numbers from 0 to 2"


@pytest.mark.parametrize(
    ("name", "logits", "target", "says"),
    [
        ("values", (2, 3), torch.zeros(2), SHAPES),
        ("values", (2,), torch.zeros(2), SHAPES),
        ("values", (2, 1), torch.zeros(2, 1), SHAPES),  # would spread to (2, 2)
        ("values", (2, 1), torch.zeros(3), SHAPES),
        *(("values", (2, 1), [1.0, bad], LOST) for bad in (math.nan, math.inf, -100.0)),
        *(("classes", (2, 3), [1, bad], f"classes from .* {OUTSIDE}") for bad in (3, -1, -99)),
        *(
            ("token_labels", (1, 3, 3), [[IGNORED, 2, bad]], f"token_labels from .* {OUTSIDE}")
            for bad in (3, -1, -99)
        ),
        (
            "token_labels",
            (2, 4, 3),
            [[IGNORED] * 4] * 2,
            "all -100, ignored; expected at least one",
        ),
        ("token_labels", (2, 4, 3), [[0] * 5] * 2, r"\(2, 5\) .* expected \(2, 4\).*same length"),
        ("classes", (2, 3), [0, 1, 2], r"classes of shape \(3,\) .* expected \(2,\)"),
    ],
)
def test_targets_that_do_not_fit_are_refused(name, logits, target, says):
    with pytest.raises(ValueError, match=says):
        LOSSES[name](said(logits=torch.zeros(logits)), {name: torch.as_tensor(target)})


def test_a_part_that_asks_nothing_costs_nothing():
    nothing = torch.full((2, 4), IGNORED)
    assert token_loss(drawn(2, 4, 3), nothing, num_token_labels=torch.tensor(5)) == 0  # others ask


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
        ([6], [6], r"start positions \[6\] were given for sequences of 6 tokens; expected 0 to 5"),
        ([2], [9], r"end positions \[9\] .*give \(0, 0\): no answer"),
        ([-1], [2], r"start positions \[-1\]"),
        ([IGNORED], [IGNORED], r"start positions \[-100\]"),
        ([4], [3], r"spans \(start, end\) \[\[4, 3\]\] .* expected start ≤ end"),
        ([1, 2], [1, 2], r"start of shape \(2,\) .* for 1 sequences"),
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


@pytest.mark.parametrize(
    ("start", "end", "allowed", "expected"),
    [
        # Ties go to the first and shortest.
        ([0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], range(2, 6), (2, 2, 0)),
        ([0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1], range(2, 6), (2, 3, 1)),
        # Each end by itself would give 4 to 1; together they give one that reads forwards.
        ([0, 2, 0, 0, 5, 0], [0, 5, 0, 0, 1, 0], range(1, 6), (1, 1, 7)),
        # The question's tokens have the best scores, and count for nothing; neither does padding.
        ([1, 9, 9, 2, 1, 50], [1, 9, 9, 2, 1, 50], (3, 4), (3, 3, 4)),
        # Three tokens at the longest: 1 to 5 would be better.
        ([0, 5, 0, 2, 0, 0], [0, 1, 0, 0, 0, 6], range(1, 6), (3, 5, 8)),
    ],
)
def test_best_spans_by_hand(start: list, end: list, allowed: Any, expected: tuple):
    found = best_spans(
        torch.tensor([start]).float(),
        torch.tensor([end]).float(),
        torch.tensor([[t in allowed for t in range(6)]]),
        longest=3,
    )
    assert (found.start.item(), found.end.item(), found.score.item()) == expected
    assert found.null_score.item() == start[0] + end[0]


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
        ({"allowed": torch.zeros(2, 5, dtype=torch.bool)}, r"sequences \[0, 1\] allow no token"),
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
