"""The numbers that sentences of lecture 14 say: counted, computed, or read from results."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_lib import bert
from course_lib.bench.early_exit import flop_ratio
from course_lib.bench.masked_loss import masked_only_limit
from course_lib.bench.measuring import peak_bytes, where_measured
from course_lib.bench.roofline import Case, cases
from course_lib.bench.summary import (
    COMPARED,
    SpeedRow,
    in_todays_words,
    readme_rows,
    speed_rows,
)
from course_lib.bench.traffic import Traffic, by_kind, total, traffic
from course_lib.config import published
from course_lib.kernels import disentangled
from course_lib.kernels.choosing import ATTENTION, DISENTANGLED, Rule, choose
from course_lib.kernels.masked_loss import IGNORED, masked_loss, masked_loss_reference
from course_lib.kernels.positions import position_rows
from course_lib.teaching.results import read_result

from .claims import on_gpu
from .exercises.online import online_softmax
from .views.roofline import ridge, times
from .views.speeds import speeds
from .views.traffic_bars import amount

Twins = dict[str, dict[str, Traffic]]  # twin -> kind of operation -> what it does and moves

RATE = 0.15  # of the tokens that are selected for prediction

BYTES = 4  # of a float32
STEP = "Pre-training step"


@lru_cache(maxsize=1)
def stored_run() -> dict[str, Any]:
    """The stored run of the bench on a processor."""
    return in_todays_words(read_result("14_speed"))


def measured_on() -> str:
    return f"Measured on {where_measured(stored_run()['machine'])}."


@lru_cache(maxsize=1)
def float32_run() -> dict[str, Any]:
    """The README's sizes on a processor without bfloat16 products."""
    return in_todays_words(read_result("14_speed_float32"))


def in_float32(what: str, size: str, best: bool = False) -> str:
    """Times as fast as the peer there; size: how it begins. best: beside its best setting."""
    (row,) = (
        row
        for key, row in readme_rows(float32_run()).items()
        if key[0] == what and key[1].startswith(size) and key[2] == best
    )
    return f"{row.ratio:.1f}" if best or row.ratio > 2 else f"{row.ratio:.2f}"


BY_RULES = "ours in bfloat16, by the rules (the course's step)"


def ladder(size: str, to: str = "ours in float32", of: str = "transformers as shipped") -> str:
    """Times as fast as another row of the stored run's table of steps, by medians."""
    (rows,) = (
        rows
        for title, rows in stored_run()["tables"].items()
        if title.startswith(f"{STEP}, {size}")
    )
    fast, slow = (
        statistics.median(row["rates"]) for name in (to, of) for row in rows if row["name"] == name
    )
    return f"{fast / slow:.1f}"


def share_in_float32(size: str) -> str:
    """Of the rate of matrix products, what the course's step reached there."""
    remark = next(r for t, r in float32_run()["remarks"].items() if t.startswith(f"{STEP}, {size}"))
    return re.search(r"(\d+)% of the matrix products", remark)[1]  # type: ignore[index]


def stored_roof() -> dict[str, float]:
    """GFLOP/s of matrix products by number format, and GB/s of memory, of the stored run."""
    on = stored_run()["machine"]
    return {
        "memory": on["gigabytes_memory"],
        **{name: on[f"gflops_{name}"] for name in ("float32", "bfloat16")},
    }


def multiply_adds() -> str:
    """Those done while a float32 arrives from memory; a multiply-add counts as two FLOPs."""
    return f"{BYTES * ridge(stored_roof()) / 2:.0f}"


class Counted(NamedTuple):
    """A kernel's twin at the roofline's size, counted; no clock is looked at."""

    name: str
    twin: str
    how: str
    unavoidable: int
    kinds: dict[str, Traffic]
    held: int  # bytes at most at once
    outputs: list[Tensor]

    @property
    def sum(self) -> Traffic:
        return total(self.kinds.values())

    @property
    def intensity(self) -> float:
        return self.sum.flops / self.unavoidable


@lru_cache(maxsize=1)
def all_counted() -> tuple[Counted, ...]:
    """All of bench.roofline's cases, both twins."""
    return tuple(_one(case, twin) for case in cases() for twin in case.twins)


def _one(case: Case, twin: str) -> Counted:
    work = case.twins[twin]
    outputs = [x.detach() for x in work()]
    unavoidable = sum(x.nbytes for x in [*case.inputs, *outputs])
    kind, _, how = twin.partition(", ")
    moved = by_kind(traffic(work))
    return Counted(case.name, kind, how, unavoidable, moved, peak_bytes(work), outputs)


def twins_of(name: str) -> list[Counted]:
    """The reference first."""
    return [one for one in all_counted() if one.name == name]


SIZES = (16, 256, 4_096)


def square(n: int) -> tuple[int, int, int]:
    """FLOPs of a product and of a sum of n × n matrices, and the bytes either must move."""
    return 2 * n**3, n * n, 3 * n * n * BYTES


def sum_intensity() -> float:
    """FLOPs a byte of a sum, the same for every n."""
    flops, moved = square(256)[1:]
    return flops / moved


def checked_product() -> str:
    """The formula, against what traffic() counts of a real product."""
    n = SIZES[1]
    a = torch.ones(n, n)
    product = total(traffic(lambda: a @ a.T))
    flops, _, moved = square(n)
    assert (product.flops, product.moved) == (flops, moved)
    return f"{product.flops:,} FLOPs, {product.moved:,} bytes"


def memory_bound() -> str:
    """Which of the notebook's three products are memory-bound on the stored machine."""
    low = [n for n in SIZES if square(n)[0] / square(n)[2] < ridge(stored_roof())]
    products = f"products up to n = {max(low):,} and every sum" if low else "every sum"
    return f"Of those drawn, memory-bound: {products}."


class SelectedOnly(NamedTuple):
    """The notebook's masked-LM loss: both twins, and the selected positions, of so many."""

    steps: dict[str, Callable[[], Any]]
    selected: int
    positions: int


@lru_cache(maxsize=1)
def selected_only() -> SelectedOnly:
    """Forward and backward; gradients are computed, nothing is trained."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hidden = torch.randn(8, 128, 128, requires_grad=True)
        weights = torch.randn(4_096, 128, requires_grad=True)
        drawn = torch.randint(4_096, (8, 128))
        labels = torch.where(torch.rand(8, 128) < RATE, drawn, IGNORED)

    def twin(loss: Callable[..., Tensor]) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(
            loss(hidden, lambda x: x @ weights.T, labels), (hidden, weights)
        )

    steps = {"reference": twin(masked_loss_reference), "fast": twin(masked_loss)}
    return SelectedOnly(steps, int((labels != IGNORED).sum()), labels.numel())


@lru_cache(maxsize=1)
def selected_traffic() -> Twins:
    return {name: by_kind(traffic(step)) for name, step in selected_only().steps.items()}


def held_at_once(twin: str) -> str:
    """The most memory that a step of the masked-LM loss holds at once."""
    return amount(peak_bytes(selected_only().steps[twin]))


def times_less(twins: Twins, what: str) -> float:
    """How many times fewer "flops", or less is "moved", by the second twin."""
    first, second = (total(kinds.values()) for kinds in twins.values())
    return float(getattr(first, what) / getattr(second, what))


SEED, EXAMPLES, PLACES, VISITS = 1, (5, 7, 9), 3, 40

BATCH = (64, 128)


def mask_bytes() -> str:
    return amount(VISITS * torch.ones(BATCH, dtype=torch.bool).nbytes)


def view_of_three() -> Tensor:
    """The library's view (3, 3) of a table (3, 5) that holds its numbers' positions in memory."""
    T = 3
    places = torch.arange(float(T * (2 * T - 1))).view(1, T, -1)
    return disentangled._skew(places, T)[0].int()


def gathered() -> str:
    """Of the reference's bytes, those of gathers."""
    reference = twins_of("disentangled attention")[0]
    return f"{reference.kinds['gather'].moved / reference.sum.moved:.0%}"


def ratio_of(name: str, what: str = "moved", which: int = 1) -> str:
    """How many times less the twin moves, or computes, than its reference."""
    twins = twins_of(name)
    return f"{getattr(twins[0].sum, what) / getattr(twins[which].sum, what):.1f}"


SCORES, VALUES, CHUNK = (2.0, 1.0, 4.0, 3.0, 5.0, 0.0), (10.0, 20.0, 30.0, 40.0, 50.0, 60.0), 2


class Kept(NamedTuple):
    """What is kept after a chunk."""

    scores: tuple[float, ...]
    largest: float
    shrink: float
    sum: float
    mixed: float


@lru_cache(maxsize=1)
def softmax_pieces() -> tuple[Kept, ...]:
    """A line a chunk; the end is compared with the whole softmax and with exercise 14.5's."""
    scores, values = (torch.tensor(x, dtype=torch.float64) for x in (SCORES, VALUES))
    largest, added, mixed, kept = -torch.inf, 0.0, 0.0, []
    for s, v in zip(scores.split(CHUNK), values.split(CHUNK), strict=True):
        now = max(largest, s.max().item())
        shrink = float(np.exp(largest - now))
        weights = (s - now).exp()
        added = added * shrink + weights.sum().item()
        mixed = mixed * shrink + (weights @ v).item()
        kept.append(Kept(tuple(s.tolist()), now, shrink, added, mixed))
        largest = now
    whole = (scores.softmax(0) @ values).item()
    library = online_softmax(scores, values[:, None], CHUNK).item()
    assert abs(mixed / added - whole) < 1e-12 and abs(library - whole) < 1e-12
    return tuple(kept)


def pieces_end() -> str:
    last = softmax_pieces()[-1]
    return f"{last.mixed:.3f} / {last.sum:.4f} = {last.mixed / last.sum:.3f}"


def first_pieces() -> str:
    first = softmax_pieces()[0]
    weights = " + ".join(f"e^{s - first.largest:g}".replace("-", "−") for s in first.scores)
    return f"{weights} = {first.sum:.4f}"


def shrink_of(chunk: int) -> str:
    """The factor of a later chunk, as a power of e."""
    before, now = softmax_pieces()[chunk - 1], softmax_pieces()[chunk]
    return f"e^{before.largest - now.largest:g}".replace("-", "−")


def when(rule: Rule) -> str:
    """A rule's conditions in words."""
    parts = [
        {"cpu": "CPU", "cuda": "GPU"}[rule.device] if rule.device else "",
        " or ".join(str(t).removeprefix("torch.") for t in rule.dtypes or ()),
        f"D {', '.join(map(str, rule.head_sizes))}" if rule.head_sizes else "",
        f"up to {rule.tokens_up_to:,} tokens" if rule.tokens_up_to else "",
        {True: "training", False: "inference", None: ""}[rule.training],
        {True: "dropout", False: "no dropout", None: ""}[rule.dropout],
        f"{rule.package} installed" if rule.package else "",
    ]
    return ", ".join(filter(None, parts)) or "else"


def taken(rules: Sequence[Rule], training: bool, dtype: torch.dtype = torch.bfloat16) -> str:
    """The path for a text of 128 tokens, on a CPU and without dropout."""
    with torch.enable_grad():
        return choose(rules, torch.zeros(1, dtype=dtype, requires_grad=training), 128)


@lru_cache(maxsize=1)
def padded_batch() -> tuple[Twins, float]:
    """The notebook's padded batch: what both ways move, and the fraction of padding."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = bert("mini", vocab_size=1_000).eval()
        lengths = torch.randint(16, 129, (32,))
        mask = (torch.arange(128) < lengths[:, None]).long()
        ids = torch.randint(5, 1_000, (32, 128)) * mask

    def forward(remove: bool) -> None:
        with torch.no_grad():
            model(ids, mask, remove_padding=remove)

    twins = {
        name: by_kind(traffic(partial(forward, remove)))
        for name, remove in (("padded", False), ("unpadded", True))
    }
    return twins, 1 - mask.float().mean().item()


@lru_cache(maxsize=1)
def gpu_run() -> dict[str, Any]:
    """The stored run of the bench on a GPU."""
    return read_result("14_gpu")


def gpu_memory(row: str) -> str:
    """The most memory of a row beside weights and inputs, forward and backward at 8,192 tokens."""
    remark = next(
        r for t, r in gpu_run()["remarks"].items() if "forward and backward, 1×8,192" in t
    )
    match = re.search(rf"{row}.*?, ([\d,]+) MB", remark)
    assert match
    return match[1]


def leaving_clock() -> str:
    """Time won beside FLOPs saved, of the stored run."""
    gains = [f"{won:.0%} ({size})" for size, won in exit_gains().items()]
    return f"The factor on the clock, divided by that in FLOPs: {'; '.join(gains)}."


def exit_gains() -> dict[str, float]:
    """For each size of early exit, the factor in time as a fraction of that in FLOPs."""
    rows = rows_of("Early exit", stored_run())
    return {row.size: row.ratio / flop_ratio(int(row.size.split("×", 1)[0])) for row in rows}


def holds_more() -> str:
    """Twins that hold more at once than their reference."""
    twins = [
        f"{one.name}, {one.how}".removesuffix(", ")
        for one in all_counted()
        if one.twin == "fast" and is_seen(one) and one.held > twins_of(one.name)[0].held
    ]
    return "; ".join(twins) or "none"


def is_seen(one: Counted) -> bool:
    """Masks are made by numpy, which traffic() does not see."""
    return bool(one.sum.flops) or one.name == "ELECTRA's sampling"


def least_work() -> str:
    """The fast masked-word loss does fewer FLOPs a byte than its reference."""
    slow, fast = twins_of("masked-LM loss")
    assert fast.intensity < slow.intensity
    return f"{slow.intensity:.0f} to {fast.intensity:.0f}"


def rows_of(kind: str, record: Mapping[str, Any]) -> list[SpeedRow]:
    """The rows whose table begins with that key of COMPARED, and no longer one."""
    longer = [k for k in COMPARED if k != kind and k.startswith(kind)]
    return [
        row
        for row in speed_rows(record)
        if row.what.startswith(kind) and not any(row.what.startswith(k) for k in longer)
    ]


def _lost() -> list[SpeedRow]:
    """The sizes at which the peer is quicker."""
    return [row for row in speed_rows(stored_run()) if row.ratio < 1]


def peers_in_words() -> str:
    sizes, lost = len(speed_rows(stored_run())), len(_lost())
    return f"{sizes} sizes; slower than the peer in {lost or 'none'}. {measured_on()}"


def peers_lost() -> str:
    named = "; ".join(f"{row.what}, {row.size}: {times(row.ratio)}" for row in _lost())
    return f"Hollow ones by name: {named}." if named else "No mark is hollow."


def ladder_titles() -> list[str]:
    return [title for title in stored_run()["tables"] if title.startswith("Pre-training step")]


def ladder_in_words() -> str:
    return f"{ladder_titles()[0]}; tokens a second, medians. {measured_on()}"


def ladder_remark() -> str:
    return re.sub(r"\s{2,}", "; ", stored_run()["remarks"][ladder_titles()[0]])


def ladder_others() -> str:
    """Ours against the peer as shipped, for the sizes that are not drawn."""
    return "; ".join(
        f"{title.removeprefix('Pre-training step, ')}: "
        f"{times(speeds(stored_run(), title)[-1].ratio)} the peer as shipped"
        for title in ladder_titles()[1:]
    )


LONG, HEADS, SPAN, FURTHEST = 8_192, 12, 256, 512  # DeBERTa-v3-base's attention, a long text


@lru_cache(maxsize=1)
def band() -> int:
    """Distances from the last one in the first row to the first one in the last."""
    rows = position_rows(LONG, SPAN, FURTHEST)
    return len(rows) - int((rows == rows[0]).sum()) - int((rows == rows[-1]).sum()) + 2


def gains() -> str:
    """The widest and the narrowest gain of the stored run, and what the widest is in."""
    rows = sorted(speed_rows(stored_run()), key=lambda row: row.ratio)
    ratios = [row.ratio for row in rows]
    return (
        f"Against the peers: {times(ratios[0])} to {times(ratios[-1])} ({rows[-1].what.lower()}), "
        f"median {times(statistics.median(ratios))}."
    )


def padding_worst() -> str:
    """Of the limit 1/(1 − p), what is reached in bfloat16 with three quarters padding, at worst."""
    reached = []
    for title, remark in stored_run()["remarks"].items():
        if title.startswith("Padding removed") and title.endswith("bfloat16"):
            last = remark.splitlines()[-1]
            gain, limit = re.findall(r"(?:linear part|limit) (\d+\.\d+)", last)
            reached.append(float(gain) / float(limit))
    return f"{min(reached):.1f}"


TYPED = {
    "15%": "the rate of BERT's paper",
    "85%": "one minus the rate of BERT's paper",
    "100": "an option of the first guess; −100, the label that is ignored",
    "128": "tokens of a text; 768/6, worked by hand",
    "256": "n of a matrix, worked by hand",
    "768": "n of a matrix, worked by hand",
    "1,024": "tokens of a text; positions of the masked-LM loss",
}
