"""Solutions of lecture 13 beside the library; numbers by hand that must be true."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
import torch

from course_lib.lectures.lecture_13.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_13.exercises import (
    averages,
    bootstrap,
    matthews,
    pareto,
    seeds,
    timing,
)
from course_lib.teaching.averages import AVERAGES, PAIRS, glue_average
from course_lib.teaching.exercises.form import Draw
from course_lib.train import task_metrics

EXERCISES = {exercise.id: exercise for exercise in ALL}


def texts_of(id: str) -> str:
    return EXERCISES[id].statement + " ".join(EXERCISES[id].hints)


# ---------------------------------------------------------------- 13.1


@pytest.mark.parametrize("cases", [matthews.by_hand, lambda draw: [matthews.case(draw, 5)],
                                   lambda draw: [matthews.one_sided(draw, 4)]])  # fmt: skip
def test_matthews_is_the_librarys_of_the_same_texts(cases):
    for (counts,) in cases(Draw(0)):
        for square, ours in zip(counts.tolist(), matthews.matthews_of_counts(counts), strict=True):
            texts = [(t, p) for t in (0, 1) for p in (0, 1) for _ in range(square[t][p])]
            assert task_metrics.matthews(*zip(*texts, strict=True)) == pytest.approx(ours.item())


def test_the_model_of_the_statement():
    (counts,) = matthews.by_hand(Draw(0))[0]
    value = matthews.matthews_of_counts(counts).item()
    assert f"500/900 = {value:.3f}" in texts_of("13.1")
    assert str(counts[0].tolist()) in texts_of("13.1")
    assert f"{counts[0].diagonal().sum()} of {counts.sum()} right" in texts_of("13.1")
    assert f"would have {counts[0, 1].sum()} right" in texts_of("13.1")
    always = torch.stack([torch.zeros(2), counts[0].sum(dim=1)], dim=1)[None]
    assert matthews.matthews_of_counts(always).item() == 0


def test_the_product_of_four_sums_does_not_fit_into_int64():
    (counts,) = matthews.case(Draw(0), 3, 50_000, 400_000)
    sums = torch.cat([counts.sum(1), counts.sum(2)], dim=1)
    assert (sums.double().prod(dim=1) > torch.iinfo(torch.int64).max).all()


# ---------------------------------------------------------------- 13.2


@pytest.mark.parametrize("stage", range(5))
def test_an_average_is_nan_where_the_library_refuses_one(stage):
    undefined = []
    for row, recipe in EXERCISES["13.2"].stages[stage].cases(Draw(stage)):
        ours = averages.average(row, recipe)
        if np.isnan(ours):
            with pytest.raises(ValueError, match="given"):
                glue_average(row, recipe)
        else:
            assert ours == pytest.approx(glue_average(row, recipe))
        undefined.append(np.isnan(ours))
    assert len(set(undefined)) == (2 if stage >= 3 else 1)


def test_the_tasks_are_those_of_the_librarys_recipes():
    single, paired = set(averages.SINGLE), set(averages.PAIRED)
    assert single | paired == set(AVERAGES["test-9"].tasks)
    assert single | paired | {"WNLI"} == set(AVERAGES["leaderboard"].tasks)
    assert paired == {task for task in PAIRS if "SQuAD" not in task}


def test_no_row_of_one_number_a_task_gives_the_leaderboards_average():
    rows = [
        row
        for row, _ in averages.printed(Draw(0))
        if "WNLI" in row and isinstance(row["QQP"], float)
    ]
    assert rows and all(np.isnan(averages.average(row, "leaderboard")) for row in rows)


# ---------------------------------------------------------------- 13.3


def test_the_interval_is_that_of_numpy_however_one_interpolates():
    a, b, resampled = bootstrap.case(Draw(0), 50, 201, 0.3)
    assert (len(resampled) - 1) % 40 == 0
    gains = a.numpy().astype(float) - b.numpy()
    ours = bootstrap.interval(a, b, resampled).tolist()
    for method in ("linear", "lower", "higher", "nearest"):
        theirs = np.percentile(gains[resampled.numpy()].mean(axis=1), [2.5, 97.5], method=method)
        assert ours == pytest.approx(theirs)


def test_every_stage_draws_so_many_sets_that_no_interpolation_matters():
    for stage in EXERCISES["13.3"].stages:
        assert all((len(resampled) - 1) % 40 == 0 for _, _, resampled in stage.cases(Draw(1)))


def test_pairing_makes_the_interval_narrower():
    a, b, resampled = bootstrap.case(Draw(2), 200, 401, 0.05)
    low, high = bootstrap.interval(a, b, resampled).tolist()
    other = a.double()[resampled].mean(1) - b.double()[resampled.roll(1, 0)].mean(1)
    wide_low, wide_high = other.quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    assert high - low < 0.7 * (wide_high - wide_low)


def test_the_row_of_the_statement():
    a, b, _ = bootstrap.by_hand(Draw(0))[0]
    row = torch.tensor([1, 1, 3, 0])
    accuracies = [x[row].double().mean().item() for x in (a, b)]
    assert a.nonzero()[:, 0].tolist() == [0, 1, 2] and b.nonzero()[:, 0].tolist() == [0, 3]
    both = bootstrap.interval(a, b, row.repeat(41, 1)).tolist()
    assert both == pytest.approx([accuracies[0] - accuracies[1]] * 2)
    sentence = "A's accuracy is {:.2f}, B's {:.1f}, the difference {:.2f}"
    assert sentence.format(*accuracies, both[0]) in texts_of("13.3")


# ---------------------------------------------------------------- 13.4


def test_the_three_pairs_of_the_statement():
    pairs = seeds.by_hand(Draw(0))
    assert [seeds.better(*pair) for pair in pairs] == [1, 0, -1]
    for (a, b), verdict in zip(pairs, ("is 1;", "is 0,", "is −1"), strict=True):
        texts = [", ".join(f"{x:.0f}" for x in side.tolist()) for side in (a, b)]
        assert f"{texts[0]} against {texts[1]} {verdict}" in texts_of("13.4")
    assert (pairs[1][0] - pairs[1][1]).mean() == 1  # "higher by 1"


def test_each_kind_of_textsis_what_its_name_says():
    spread, two, enough = (torch.tensor(x) for x in (seeds.WIDE, seeds.TWO, seeds.ENOUGH))
    assert (spread > 0).all() and spread.mean() < spread.std()
    assert two.std(correction=0) < two.mean() < two.std()
    assert enough.std() < enough.mean() < 2 * enough.std()
    assert torch.tensor(seeds.AGAINST).mean() > torch.tensor(seeds.AGAINST).std()


def test_the_standard_error_is_exceeded_whenever_all_textsagree():
    for n in range(2, 8):
        gains = torch.rand(500, n, generator=Draw(n).torch, dtype=torch.float64) ** 8
        assert (gains.mean(dim=1) > gains.std(dim=1) / n**0.5 - 1e-12).all()


# ---------------------------------------------------------------- 13.5


def test_the_times_of_the_statement():
    seconds, warm_up, batch_size = timing.by_hand(Draw(0))[0]
    median, p95, throughput = timing.latency(seconds, warm_up, batch_size)
    times = ", ".join(f"{1000 * s:.0f}" for s in seconds)
    sentence = (
        f"{times} ms with one warm-up call and batches of {batch_size} give a median of "
        f"{1000 * median:.1f} ms, a 95th percentile of {1000 * p95:.0f} ms, and {throughput:.1f} "
        "texts per second"
    )
    assert sentence in texts_of("13.5")


@pytest.mark.parametrize("calls", [1, 19, 20, 21, 60, 140])
def test_nearest_rank_is_numpys_and_leaves_at_most_one_of_twenty_slower(calls):
    seconds, warm_up, batch_size = timing.case(Draw(calls), 2, calls, 4)
    median, p95, throughput = timing.latency(seconds, warm_up, batch_size)
    timed = np.array(seconds[2:])
    assert median == np.median(timed)
    assert p95 == np.percentile(timed, 95, method="inverted_cdf")
    assert (timed > p95).mean() <= 0.05
    assert throughput == pytest.approx(4 / fmean(timed))


# ---------------------------------------------------------------- 13.6


def test_the_four_models_of_the_statement():
    scores, costs = pareto.by_hand(Draw(0))[0]
    assert pareto.front(scores, costs).tolist() == [True, True, True, False]
    points = ", ".join(f"({s:.0f}, {c:.0f})" for s, c in zip(scores, costs, strict=True))
    text = texts_of("13.6").replace("score ", "").replace("cost ", "")
    assert points in text
    assert scores[1] > scores[3] and costs[1] < costs[3]  # "by the second"


def test_whoever_is_dominated_is_so_by_one_of_the_front():
    for scores, costs in (pareto.case(Draw(1), 9), pareto.best(Draw(2), 7, 1.0)):
        front = pareto.front(scores, costs)
        for i in (~front).nonzero()[:, 0]:
            at_least = (scores[front] >= scores[i]) & (costs[front] <= costs[i])
            assert at_least.any()
        assert (
            front[scores.argmax()] or costs[scores == scores.max()].min() < costs[scores.argmax()]
        )


# ---------------------------------------------------------------- all
