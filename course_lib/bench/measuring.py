"""Measuring side by side: contenders take turns, and the machine's own limit stands beside them."""

from __future__ import annotations

import platform
import statistics
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.train.precision import native_bfloat16

Step = Callable[[], object]


@dataclass(frozen=True)
class Contender:
    """One row of a table: `make` builds it and returns one step of work on `tokens` tokens."""

    name: str
    make: Callable[[], Step]
    tokens: int


def contenders_of(makes: Mapping[str, Callable[[], Step]], tokens: int) -> list[Contender]:
    """Rows by name, all on the same tokens."""
    return [Contender(name, make, tokens) for name, make in makes.items()]


def precisions() -> list[str]:
    """float32, and bfloat16 where this processor multiplies it itself."""
    return ["float32", *(["bfloat16"] if native_bfloat16() else [])]


def forward_only(work: Step) -> Step:
    """The work without a graph for gradients."""

    def step() -> None:
        with torch.inference_mode():
            work()

    return step


@dataclass
class Measured:
    """Tokens per second over the rounds."""

    name: str
    rates: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    @property
    def middle_half(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.rates, n=4, method="inclusive")
        return low, high


def measure(
    contenders: Sequence[Contender], rounds: int = 9, seconds: float = 1.0, warm_ups: int = 4
) -> list[Measured]:
    """Build all, warm each up, then let them take turns of about `seconds` each, `rounds` times.

    warm_ups: steps before the first turn; the last of them says how many make a turn."""
    steps, results = [], []
    for contender in contenders:
        print(f"  building {contender.name} …", flush=True)
        step = contender.make()
        for _ in range(warm_ups):
            began = time.perf_counter()
            step()
            took = time.perf_counter() - began
        repeats = max(1, round(seconds / took))
        steps.append((step, repeats, contender.tokens))
        results.append(Measured(contender.name))
    for _ in range(rounds):
        for (step, repeats, tokens), result in zip(steps, results, strict=True):
            began = time.perf_counter()
            for _ in range(repeats):
                step()
            result.rates.append(tokens * repeats / (time.perf_counter() - began))
    return results


@dataclass(frozen=True)
class Table:
    """Contenders that are measured together; the first one's median is what ratios refer to.

    remark: what the figures say beside the ratios, from the results and the machine's record.
    turn: how long a turn takes, as a fraction of the given seconds; less where rows are many.
    slow: a step takes seconds, so one warms up and three rounds are enough.
    unit: what is counted in a second."""

    title: str
    contenders: Sequence[Contender]
    remark: Callable[[Sequence[Measured], dict[str, Any]], str] | None = None
    turn: float = 1.0
    slow: bool = False
    unit: str = "tokens"


def as_table(results: Sequence[Measured], first: str, unit: str = "tokens") -> str:
    """Rows with median, middle half, and the ratio to the row named `first`."""
    base = next(r.median for r in results if r.name == first)
    lines = [f"{'':56}{unit + '/s':>12}{'middle half':>22}{'ratio':>9}"]
    for r in results:
        low, high = r.middle_half
        lines.append(
            f"{r.name:56}{r.median:12,.0f}{low:11,.0f}–{high:<10,.0f}{r.median / base:8.2f}×"
        )
    return "\n".join(lines)


# ---- memory --------------------------------------------------------------------------------------


class _Watch(TorchDispatchMode):
    """Adds up the memory of the tensors that operations make, and takes it off when they go."""

    def __init__(self) -> None:
        super().__init__()
        self.held = self.peak = 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for x in tree_leaves((args, kwargs)):
            self.see(x, counts=False)  # was there before, or is already counted
        result = func(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            self.see(x, counts=True)
        return result

    def see(self, x: Any, counts: bool) -> None:
        if not isinstance(x, Tensor):
            return
        storage = x.untyped_storage()
        key, size = storage._cdata, storage.nbytes() if counts else 0
        if key not in self.known:
            self.known.add(key)
            self.held += size
            self.peak = max(self.peak, self.held)
            weakref.finalize(storage, self.forget, key, size)

    def forget(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.held -= size


def peak_bytes(step: Step) -> int:
    """The most memory that tensors made in one step hold at once, those that were there before it
    not counted, nor what an operation needs inside itself."""
    with _Watch() as watch:
        step()
    return watch.peak


# ---- the machine ---------------------------------------------------------------------------------


def matrix_product_rate(precision: str, size: int = 2_048) -> float:
    """GFLOP/s of a square matrix product, the best of several: the ceiling of everything below."""
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    best = float("inf")
    for _ in range(10):
        began = time.perf_counter()
        _ = a @ b
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best / 1e9


def processor() -> str:
    """The processor's name; on Linux Python knows only its kind, such as x86_64."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # another system
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """What the figures were measured on; bfloat16 only where the processor multiplies it itself."""
    native = native_bfloat16()
    return {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "native_bfloat16": native,
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "python": platform.python_version(),
        "date": date.today().isoformat(),
        "gflops_float32": round(matrix_product_rate("float32")),
        "gflops_bfloat16": round(matrix_product_rate("bfloat16")) if native else None,
        **({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}),
    }


def where_measured(on: Mapping[str, Any]) -> str:
    """A `machine()` in one line: processor, versions and the date."""
    threads = "one thread" if on["threads"] == 1 else f"{on['threads']} threads"
    parts = [str(on["processor"]), threads]
    parts += [str(on["gpu"])] if on.get("gpu") else []
    return f"{', '.join(parts)}, torch {on['torch']}, {on['date']}"


def against_the_limit(gflops: float, precision: str, on: dict[str, Any]) -> str:
    """A rate in GFLOP/s, also as a fraction of the machine's matrix products in that precision."""
    return f"{gflops:.0f} GFLOP/s, {gflops / on[f'gflops_{precision}']:.0%} of the matrix products"
