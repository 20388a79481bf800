"""The course's kernels on this machine's roofline (Williams, Waterman and Patterson 2009): how much
arithmetic each does for every byte it must move, and how near it comes to what the machine allows.

Two rates bound every kernel: the matrix products' (measuring.matrix_product_rate) and memory's.
A kernel's bytes here are those that cannot be avoided, inputs read once and outputs written once,
so both twins share them; what each really asks of memory is counted by traffic.py. All in float32.
Small inputs may stay in the processor's cache, and what does not go to memory may be faster than
it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.config import published
from course_lib.encoder import Stack
from course_lib.kernels.attention import attention, attention_reference
from course_lib.kernels.disentangled import disentangled_attention, disentangled_attention_reference
from course_lib.kernels.distillation import distillation_loss, distillation_loss_reference
from course_lib.kernels.early_exit import Layer, early_exit, early_exit_reference
from course_lib.kernels.masked_loss import IGNORED, masked_loss, masked_loss_reference
from course_lib.kernels.masking import mask_tokens, mask_tokens_reference
from course_lib.kernels.positions import position_rows
from course_lib.kernels.sampling import sample_tokens, sample_tokens_reference
from course_lib.kernels.unit_masking import select_words, select_words_reference
from course_lib.kernels.unpadding import Packing, packed_attention, packed_attention_reference

from .early_exit import Evenly, as_layer, on_cls
from .inputs import SPECIAL, random_sequences, shape
from .masking import numbers_of
from .traffic import total, traffic
from .unpadding import padded_mask

HEADS, HEAD_SIZE, TOKENS = 12, 64, 128  # BERT-base's attention, short texts
WORDS, WIDTH = 8_192, 256  # of the losses and of sampling
POSITIONS = 150  # a text of the batch, for the distillation loss: more than one chunk a batch

Outputs = Sequence[Tensor]
Work = Callable[[], Outputs]


@dataclass(frozen=True)
class Placed:
    """A kernel's twin at one size: what it does, what it must move, and how long it takes.

    twin: "reference" or "fast"; how: which of several fast ones. flops: of its matrix products.
    unavoidable: bytes of its inputs and outputs, each once; moved: bytes that its operations read
    and write, by traffic(), which does not see into numpy. seconds: the best of several."""

    name: str
    twin: str
    flops: int
    unavoidable: int
    moved: int
    seconds: float
    how: str = ""

    @property
    def intensity(self) -> float:
        """FLOPs a byte that must move; 0 for a kernel without matrix products."""
        return self.flops / self.unavoidable

    @property
    def traffic_intensity(self) -> float:
        """FLOPs a byte that its operations read or write."""
        return self.flops / self.moved if self.moved else 0.0

    @property
    def gflops(self) -> float:
        """GFLOP/s achieved."""
        return self.flops / self.seconds / 1e9

    @property
    def gigabytes(self) -> float:
        """GB/s of what must move: the measure of kernels without matrix products."""
        return self.unavoidable / self.seconds / 1e9

    def share(self, roof: Mapping[str, float | None]) -> float:
        """Of the speed that the roof allows, from 0 to about 1.

        roof: "float32", GFLOP/s of matrix products, and "memory", GB/s."""
        products, memory = roof["float32"] or 0.0, roof["memory"] or 0.0
        least = max(self.flops / products, self.unavoidable / memory) / 1e9
        return least / self.seconds


def memory_rate(size: int = 2**28, repeats: int = 8) -> float:
    """GB/s that memory gives, bytes read plus bytes written: the best of several copies of `size`
    bytes, far more than a cache holds."""
    source = torch.ones(size // 4)
    target = torch.zeros_like(source)
    seconds = _best(lambda: target.copy_(source), repeats, 0.0)
    return 2 * source.nbytes / seconds / 1e9


def place(
    name: str,
    twin: str,
    step: Callable[[], object],
    tensors_in: Iterable[Tensor],
    tensors_out: Iterable[Tensor],
    how: str = "",
) -> Placed:
    """Count and time one step of a kernel that must read tensors_in and write tensors_out.

    Raises ValueError for another twin, and where nothing must be moved."""
    if twin not in ("reference", "fast"):
        raise ValueError(f'twin={twin!r} was given; expected "reference" or "fast".')
    unavoidable = sum(x.nbytes for x in [*tensors_in, *tensors_out])
    if not unavoidable:
        raise ValueError(f"{name!r} was given no tensors in or out; expected those it works on.")
    counted = total(traffic(step))
    return Placed(name, twin, counted.flops, unavoidable, counted.moved, _best(step), how)


def _best(step: Callable[[], object], repeats: int = 3, seconds: float = 0.25) -> float:
    """The shortest of `repeats` or more runs, in about `seconds` altogether."""
    best, began, runs = float("inf"), time.perf_counter(), 0
    while runs < repeats or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        step()
        best, runs = min(best, time.perf_counter() - start), runs + 1
    return best


# ---- the course's kernels ------------------------------------------------------------------------


class Case(NamedTuple):
    """A kernel at one size: what it reads, and its twins, each of which returns what it writes."""

    name: str
    inputs: Sequence[Tensor]
    twins: Mapping[str, Work]  # "reference", "fast", or "fast, how"


def placements(small: bool = True) -> list[Placed]:
    """Every kernel of the course at one size, reference and fast twin, timed now; `small` takes
    some ten seconds on two cores, else batches are four times as large. The losses run forward and
    backward, all else forward; of the stack with early exits, a quarter leaves at each layer.

    Masking and sampling have no matrix products: their intensity is 0, and what can be compared is
    GB/s of what must move (Placed.gigabytes)."""
    points = []
    for case in cases(small):
        for twin, work in case.twins.items():
            kind, _, how = twin.partition(", ")
            points.append(place(case.name, kind, work, case.inputs, work(), how))
    return points


def cases(small: bool = True) -> Iterator[Case]:
    """One at a time, as each holds its own inputs; numbers are drawn anew from seed 0."""
    batch = 8 if small else 32
    makers = (
        _masked_loss, _distillation, _attention, _disentangled, _unpadding, _early_exit,
        _sampling, _single_tokens, _whole_words,
    )  # fmt: skip
    for make in makers:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            yield make(batch)


def _masked_loss(batch: int) -> Case:
    hidden, table = torch.randn(batch, TOKENS, WIDTH), torch.randn(WORDS, WIDTH) / WIDTH**0.5
    words = torch.randint(WORDS, (batch, TOKENS))
    labels = torch.where(torch.rand(batch, TOKENS) < 0.15, words, IGNORED)
    learning = [hidden.requires_grad_(), table.requires_grad_()]

    def twin(loss: Callable[..., Tensor]) -> Work:
        def work() -> Outputs:
            return torch.autograd.grad(loss(hidden, lambda x: x @ table.T, labels), learning)

        return work

    return Case(
        "masked-LM loss",
        [hidden, table, labels],
        {"reference": twin(masked_loss_reference), "fast": twin(masked_loss)},
    )


def _distillation(batch: int) -> Case:
    def side() -> list[Tensor]:
        return [
            torch.randn(batch * POSITIONS, WIDTH // 2),
            torch.randn(WORDS, WIDTH // 2) / WIDTH**0.5,
            torch.zeros(WORDS),
        ]

    student, teacher = [x.requires_grad_() for x in side()], side()

    def twin(loss: Callable[..., Tensor]) -> Work:
        return lambda: torch.autograd.grad(loss(*student, *teacher, 2.0), student)

    return Case(
        "distillation loss",
        [*student, *teacher],
        {"reference": twin(distillation_loss_reference), "fast": twin(distillation_loss)},
    )


def _attention(batch: int) -> Case:
    q, k, v = (torch.randn(batch, HEADS, TOKENS, HEAD_SIZE) for _ in range(3))
    twins: dict[str, Work] = {
        "reference": lambda: attention_reference(q, k, v)[:1],
        "fast, plain": lambda: [attention(q, k, v, path="plain")],
        "fast, fused": lambda: [attention(q, k, v, path="fused")],
    }
    return Case("attention", [q, k, v], twins)


def _disentangled(batch: int) -> Case:
    content = [torch.randn(batch, HEADS, TOKENS, HEAD_SIZE) for _ in range(3)]
    positions = [torch.randn(HEADS, 2 * 256, HEAD_SIZE) for _ in range(2)]
    inputs: list[Any] = [*content, *positions, position_rows(TOKENS, 256, 512)]
    twins: dict[str, Work] = {
        "reference": lambda: disentangled_attention_reference(*inputs)[:1],
        "fast": lambda: [disentangled_attention(*inputs)],
    }
    return Case("disentangled attention", inputs, twins)


def _unpadding(batch: int) -> Case:
    packing = Packing(padded_mask(2 * batch, TOKENS, 0.5))
    q, k, v = (torch.randn(len(packing.positions), HEADS * HEAD_SIZE) for _ in range(3))
    twins: dict[str, Work] = {
        "reference": lambda: [packed_attention_reference(q, k, v, packing, HEADS)],
        "fast": lambda: [packed_attention(q, k, v, packing, HEADS)],
    }
    return Case("attention, half padding", [q, k, v], twins)


def _early_exit(batch: int) -> Case:
    depth = 4
    config = published("bert", "base", **shape(depth, WIDTH))
    stack = Stack(config).eval()
    heads = nn.ModuleList(nn.Linear(WIDTH, 3) for _ in range(depth))
    layers: list[Layer] = [as_layer(block) for block in stack.blocks]
    exits = [on_cls(head) for head in heads]
    x = torch.randn(batch, TOKENS, WIDTH)
    twins: dict[str, Work] = {
        "reference": lambda: [early_exit_reference(x, layers, exits, Evenly(depth)).logits],
        "fast": lambda: [early_exit(x, layers, exits, Evenly(depth)).logits],
    }
    weights = [p.detach() for part in (stack, heads) for p in part.parameters()]
    return Case("early exit", [x, *weights], twins)


def _sampling(batch: int) -> Case:
    positions = round(0.15 * batch * 4 * TOKENS)
    inputs: list[Any] = [2 * torch.randn(positions, WORDS), torch.rand(positions)]
    twins: dict[str, Work] = {
        "reference": lambda: [sample_tokens_reference(*inputs)],
        "fast": lambda: [sample_tokens(*inputs)],
    }
    return Case("ELECTRA's sampling", inputs, twins)


def _single_tokens(batch: int) -> Case:
    ids = random_sequences(8 * batch, TOKENS).input_ids
    eligible = (ids != SPECIAL.cls) & (ids != SPECIAL.sep)
    inputs: list[Any] = [ids, eligible, torch.full((len(ids),), TOKENS), torch.arange(len(ids))]

    def twin(mask: Callable[..., Outputs]) -> Work:
        return lambda: mask(
            *inputs, mask_id=SPECIAL.mask, vocab_size=SPECIAL.vocab_size, rate=0.15,
            mix=(0.8, 0.1, 0.1), seed=0, epoch=0,
        )  # fmt: skip

    twins = {"reference": twin(mask_tokens_reference), "fast": twin(mask_tokens)}
    return Case("masking single tokens", inputs, twins)


def _whole_words(batch: int) -> Case:
    words = numbers_of(random_sequences(8 * batch, TOKENS))
    inputs: list[Any] = [words, torch.full((len(words),), TOKENS), torch.arange(len(words))]

    def twin(choose: Callable[..., Tensor]) -> Work:
        return lambda: [choose(*inputs, rate=0.15, seed=0, epoch=0)]

    twins = {"reference": twin(select_words_reference), "fast": twin(select_words)}
    return Case("choosing whole words", inputs, twins)
