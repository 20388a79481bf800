"""The queue: who is answered when, with whom, and what it costs, on a clock that the test holds."""

from __future__ import annotations

from itertools import pairwise

import pytest

from course_lib.lectures.lecture_12.queueing import (
    Policy,
    Request,
    Served,
    arrivals,
    padded,
    serve,
    together,
)


class Clock:
    """An answer takes a second a batch and a tenth of a second a position."""

    def __init__(self):
        self.now, self.shapes = 0.0, []

    def __call__(self):
        return self.now

    def answer(self, ids, mask):
        self.shapes.append(tuple(ids.shape))
        self.now += 1 + 0.1 * ids.numel()


def request(at, length):
    return Request(at, tuple(range(1, length + 1)))


def run(requests, policy):
    clock = Clock()
    return serve(requests, clock.answer, policy, clock), clock.shapes


def test_one_by_one_each_waits_for_those_before_it():
    served, shapes = run([request(0, 10), request(0.5, 10), request(10, 10)], Policy())
    assert shapes == [(1, 10)] * 3
    assert served.latencies == pytest.approx([2, 3.5, 2])  # the third arrives at an idle queue
    assert served.throughput == pytest.approx(3 / 12) and served.padding == 0


def test_a_batch_waits_for_company_until_it_is_full_or_its_time_is_up():
    requests = [request(0, 10), request(0.4, 5), request(3, 10)]
    served, shapes = run(requests, Policy(most=2, wait=1))
    assert shapes == [(2, 10), (1, 10)]
    assert served.latencies == pytest.approx([3.4, 3.0, 2.4])
    assert served.padding == pytest.approx(5 / 30)
    _, shapes = run(requests, Policy(most=3, wait=0.2))  # the second comes too late, and has waited
    assert shapes == [(1, 10), (1, 5), (1, 10)]


def test_texts_of_other_lengths_wait_for_another_batch():
    waiting = [request(0, 10), request(0, 90), request(0, 12), request(0, 30)]
    assert [len(r.ids) for r in together(waiting, Policy(most=3, spread=5))] == [10, 12]
    assert [len(r.ids) for r in together(waiting, Policy(most=3))] == [10, 12, 30]
    served, shapes = run(waiting, Policy(most=4, spread=25))
    assert shapes == [(3, 30), (1, 90)] and len(served.latencies) == 4


def test_equal_texts_that_arrive_together_are_all_answered():
    served, shapes = run([request(0, 4) for _ in range(3)], Policy(most=2))
    assert shapes == [(2, 4), (1, 4)] and len(served.latencies) == 3


def test_padding_is_zeros_under_a_mask_of_zeros():
    ids, mask = padded([request(0, 2), request(0, 3)])
    assert ids.tolist() == [[1, 2, 0], [1, 2, 3]] and mask.tolist() == [[1, 1, 0], [1, 1, 1]]


def test_arrivals_come_as_often_as_asked():
    requests = arrivals([[1]] * 4_000, a_second=50)
    assert 45 < len(requests) / requests[-1].at < 55 and requests == arrivals([[1]] * 4_000, 50)
    assert all(a.at < b.at for a, b in pairwise(requests))


def test_median_and_95th_percentile():
    served = Served([float(n) for n in range(101)], 1.0, 0.0)
    assert (served.median, served.p95) == (50, 95)


def test_bad_input_is_told():
    for wrong in ({"most": 0}, {"wait": -1.0}, {"spread": -1}):
        with pytest.raises(ValueError, match="were given; expected"):
            Policy(**wrong)
    with pytest.raises(ValueError, match="No requests"):
        serve([], lambda ids, mask: None, Policy())
