"""Calibration and bootstrap intervals: by hand, against scipy, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import binom
from torchmetrics.functional.classification import multiclass_calibration_error

from course_lib.train.calibration import (
    Bin,
    bootstrap_interval,
    confidences,
    expected_calibration_error,
    fit_temperature,
    log_loss,
    reliability,
)

# Two classes: the probability of the answer is 0.9, 0.9, 0.9, 0.6; the second answer is wrong.
LOGITS = torch.tensor(
    [[0.0, math.log(9)], [math.log(9), 0.0], [0.0, math.log(9)], [math.log(1.5), 0]]
)
LABELS = torch.tensor([1, 1, 1, 0])


def test_confidences_by_hand():
    confidence, right = confidences(LOGITS, LABELS)
    assert confidence.tolist() == pytest.approx([0.9, 0.9, 0.9, 0.6])
    assert right.tolist() == [True, False, True, True]
    # Halving the logits takes the square root of the odds.
    assert confidences(LOGITS, LABELS, 2.0)[0][0].item() == pytest.approx(0.75)


def test_the_expected_calibration_error_by_hand():
    bins = reliability(*confidences(LOGITS, LABELS), bins=5)
    assert [part.texts for part in bins] == [0, 0, 1, 0, 3]  # 0.6 belongs to (0.4, 0.6]
    assert bins[4] == Bin(0.8, 1.0, 3, pytest.approx(0.9), pytest.approx(2 / 3))
    assert math.isnan(bins[0].accuracy)
    by_hand = (3 * (0.9 - 2 / 3) + 1 * (1 - 0.6)) / 4
    assert expected_calibration_error(bins) == pytest.approx(by_hand)


def test_every_text_falls_into_one_bin():
    confidence = torch.linspace(0, 1, 101)
    bins = reliability(confidence, confidence > 0.5, bins=7)
    assert sum(part.texts for part in bins) == 101
    assert all(not part.texts or part.low <= part.confidence <= part.high for part in bins)


@pytest.mark.parametrize("bins", [1, 5, 7, 10, 15, 20])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_value_on_an_edge_belongs_to_the_bin_below_it(bins: int, dtype: torch.dtype):
    """As (low, high] says; 0 stands in the first. 0.7 · 10 is more than 7 in float64."""
    edges = torch.tensor([n / bins for n in range(bins + 1)], dtype=torch.float64).to(dtype)
    counts = [part.texts for part in reliability(edges, edges > 0.5, bins)]
    assert counts == [2, *[1] * (bins - 1)]
    above = torch.nextafter(edges[:-1], torch.ones_like(edges[:-1]))
    assert [part.texts for part in reliability(above, above > 0.5, bins)] == [1] * bins


@pytest.mark.parametrize("bins", [4, 10, 15])
def test_the_expected_calibration_error_is_torchmetrics(bins: int):
    torch.manual_seed(bins)
    logits, labels = 2 * torch.randn(500, 3), torch.randint(3, (500,))
    theirs = multiclass_calibration_error(logits.softmax(-1), labels, 3, n_bins=bins)
    ours = expected_calibration_error(reliability(*confidences(logits, labels), bins=bins))
    assert ours == pytest.approx(theirs.item(), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.bool])
def test_labels_of_any_whole_type_are_the_same_labels(dtype: torch.dtype):
    labels = LABELS.to(dtype)
    for score in (log_loss, fit_temperature):
        assert score(LOGITS, labels) == score(LOGITS, LABELS)
    assert confidences(LOGITS, labels)[1].tolist() == [True, False, True, True]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [0.5, 3.0, 12.0])
def test_the_temperature_is_scipys(seed: int, scale: float):
    torch.manual_seed(seed)
    logits = torch.randn(80, 3)
    labels = torch.distributions.Categorical(logits=logits).sample()
    found = fit_temperature(scale * logits, labels)
    theirs = minimize_scalar(
        lambda log: log_loss(scale * logits, labels, math.exp(log)), bounds=(-3, 4.6),
        method="bounded", options={"xatol": 1e-9},
    )  # fmt: skip
    assert found == pytest.approx(math.exp(theirs.x), rel=1e-3)
    assert log_loss(scale * logits, labels, found) <= theirs.fun + 1e-9
    # Scaled logits need a scaled temperature, and no more.
    assert found == pytest.approx(scale * fit_temperature(logits, labels), rel=1e-6)


def test_labels_drawn_from_the_model_need_no_temperature():
    torch.manual_seed(0)
    logits = 2 * torch.randn(20_000, 4)
    labels = torch.distributions.Categorical(logits=logits).sample()
    assert fit_temperature(logits, labels) == pytest.approx(1, abs=0.05)
    bins = reliability(*confidences(logits, labels))
    assert expected_calibration_error(bins) < 0.015
    # Overconfident on purpose, and mended.
    sharp = reliability(*confidences(5 * logits, labels))
    mended = reliability(*confidences(5 * logits, labels, fit_temperature(5 * logits, labels)))
    assert expected_calibration_error(sharp) > 0.15 > 0.02 > expected_calibration_error(mended)


def test_no_temperature_changes_an_answer():
    torch.manual_seed(1)
    logits, labels = torch.randn(50, 3), torch.randint(3, (50,))
    for temperature in (0.1, 1.0, 30.0):
        assert torch.equal(confidences(logits, labels, temperature)[1], logits.argmax(-1) == labels)


def test_an_endless_temperature_ends_at_the_bound():
    """Worse than chance: the softer the better. All right: the harder the better."""
    assert fit_temperature(-LOGITS, LABELS) == pytest.approx(100)
    assert fit_temperature(LOGITS, LOGITS.argmax(-1)) == pytest.approx(0.05)


# ---------------------------------------------------------------- bootstrap


def test_the_interval_of_a_fraction_is_the_binomials():
    right = np.repeat([1.0, 0.0], [60, 40])
    low, high = bootstrap_interval(right, draws=4_000)
    theirs = [binom.ppf(q, 100, 0.6) / 100 for q in (0.025, 0.975)]
    assert [low, high] == pytest.approx(theirs, abs=0.011)
    assert bootstrap_interval(right) == bootstrap_interval(torch.tensor(right))  # the seed's
    assert bootstrap_interval(right, level=0.5)[0] > low


def test_a_score_that_is_no_mean():
    values = np.array([1.0, 2.0, 3.0, 10.0])
    drawn = bootstrap_interval(range(4), lambda items: float(np.median(values[items])), draws=200)
    assert drawn == bootstrap_interval(values, np.median, draws=200)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logits": LOGITS[0]}, r"logits \(2,\)"),
        ({"labels": LABELS[:3]}, r"labels \(3,\)"),
        ({"logits": LOGITS[:0], "labels": LABELS[:0]}, "N at least 1"),
        ({"logits": LOGITS * math.inf}, "no number"),
        ({"labels": LABELS + 1}, "not among the 2 classes"),
        ({"labels": LABELS - 2}, "not among the 2 classes"),
        ({"labels": LABELS.float()}, "not among the 2 classes"),
        ({"temperature": 0.0}, "expected a number above 0"),
        ({"temperature": math.nan}, "expected a number above 0"),
    ],
)
def test_logits_that_cannot_be_scored(changes: dict, message: str):
    given = {"logits": LOGITS, "labels": LABELS, **changes}
    for score in (confidences, log_loss):
        with pytest.raises(ValueError, match=message):
            score(**given)
    if "temperature" not in changes:
        with pytest.raises(ValueError, match=message):
            fit_temperature(**given)


def test_other_arguments_that_are_refused():
    half, yes = torch.tensor([0.5, 0.6]), torch.tensor([True, False])
    for arguments, message in (
        ((half, yes[:1]), r"right \(1,\)"), ((half, yes, 0), "bins=0"),
        ((half, yes, 2.5), "bins=2.5"), ((half * math.nan, yes), "within 0 to 1"),
        ((half[:0], yes[:0]), "N at least 1"), ((half + 0.6, yes), "within 0 to 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            reliability(*arguments)
    with pytest.raises(ValueError, match="0 bins without a text"):
        expected_calibration_error([])
    with pytest.raises(ValueError, match=r"shape \(1,\)"):
        bootstrap_interval([1.0])
    with pytest.raises(ValueError, match="level=95"):
        bootstrap_interval([1.0, 0.0], level=95)
