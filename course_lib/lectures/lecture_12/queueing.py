"""A serving sketch: texts arrive when they like, a queue makes batches of them, one model answers.

Arrivals are simulated, answers are not: each batch is really computed, and the queue's clock moves
on by as long as that took. So an hour of traffic need not be waited for where nothing arrives."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import torch
from torch import Tensor


@dataclass(frozen=True)
class Request:
    """When a text arrives, in seconds, and its ids."""

    at: float
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Policy:
    """How batches are made: at most `most` texts; the first one waits at most `wait` seconds for
    company; texts in one batch differ by at most `spread` tokens in length from the first one.

    Raises ValueError for a batch of none and for less than no time or length."""

    most: int = 1
    wait: float = 0.0
    spread: int = 10_000

    def __post_init__(self) -> None:
        if self.most < 1 or self.wait < 0 or self.spread < 0:
            raise ValueError(
                f"most={self.most}, wait={self.wait}, spread={self.spread} were given; expected "
                "one text a batch at least, and no negative seconds or tokens."
            )


@dataclass(frozen=True)
class Served:
    """What a run of the queue came to: seconds from arrival to answer of each text, texts answered
    a second, and the fraction of computed positions that were padding."""

    latencies: list[float]
    throughput: float
    padding: float

    @property
    def median(self) -> float:
        """Half of the texts wait no longer."""
        return median(self.latencies)

    @property
    def p95(self) -> float:
        """19 of 20 texts wait no longer."""
        return quantiles(self.latencies, n=20, method="inclusive")[-1]


def arrivals(texts: Sequence[Sequence[int]], a_second: float, seed: int = 0) -> list[Request]:
    """Texts arriving independently of each other, `a_second` of them on average (a Poisson
    process: the gaps between them are exponential)."""
    draw, at, requests = random.Random(f"arrivals {seed}"), 0.0, []
    for ids in texts:
        at += draw.expovariate(a_second)
        requests.append(Request(at, tuple(ids)))
    return requests


def serve(
    requests: Sequence[Request],
    answer: Callable[[Tensor, Tensor], object],
    policy: Policy,
    clock: Callable[[], float] = time.perf_counter,
) -> Served:
    """Answer all requests, batch by batch. answer: a function of ids and mask, (B, T).

    Raises ValueError where there is nothing to answer."""
    if not requests:
        raise ValueError("No requests were given; expected one at least.")
    coming, waiting = deque(sorted(requests, key=lambda r: r.at)), list[Request]()
    now, latencies, real, computed = 0.0, list[float](), 0, 0
    while coming or waiting:
        while coming and coming[0].at <= now:
            waiting.append(coming.popleft())
        if not waiting:
            now = coming[0].at
            continue
        batch, until = together(waiting, policy), waiting[0].at + policy.wait
        if len(batch) < policy.most and coming and now < until:
            now = min(until, coming[0].at)  # wait for company
            continue
        ids, mask = padded(batch)
        began = clock()
        answer(ids, mask)
        now += clock() - began
        latencies += [now - request.at for request in batch]
        real, computed = real + int(mask.sum()), computed + mask.numel()
        gone = set(map(id, batch))  # not by value: two texts may be the same
        waiting = [request for request in waiting if id(request) not in gone]
    return Served(latencies, len(requests) / now, 1 - real / computed)


def together(waiting: Sequence[Request], policy: Policy) -> list[Request]:
    """The first one, and of those near it in length the nearest."""
    first = waiting[0]
    near = sorted(waiting, key=lambda r: abs(len(r.ids) - len(first.ids)))  # first stays first
    fits = [r for r in near if abs(len(r.ids) - len(first.ids)) <= policy.spread]
    return fits[: policy.most]


def padded(batch: Sequence[Request]) -> tuple[Tensor, Tensor]:
    """ids and mask (B, T) of a batch, T its longest text; the padding's id is 0."""
    longest = max(len(request.ids) for request in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, request in enumerate(batch):
        ids[row, : len(request.ids)] = torch.tensor(request.ids)
        mask[row, : len(request.ids)] = 1
    return ids, mask
