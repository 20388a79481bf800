"""What a piece of code moves: the bytes each of its operations reads and writes, and the FLOPs
of its matrix products, counted while it runs.

This is the view of one operation after another: each reads its tensors from memory and writes its
results back. What cannot be seen: a number that is still in the processor's cache is counted as
read again; what an operation needs inside, such as the table of scores within a fused attention,
is not counted; nor is what numpy does, or what runs outside torch's own operations. So the bytes
say what code reads and writes, and an upper bound of what memory must bring."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

OTHER = "other"
# The first kind of which a word occurs in the operation's name.
KINDS: dict[str, set[str]] = {
    kind: set(words.split())
    for kind, words in {
        "softmax": "softmax logsumexp",
        "norm": "layer rms",  # layer_norm, rms_norm
        "loss": "nll cross kl",
        "random numbers": "dropout bernoulli rand randn randint randperm normal uniform "
        "multinomial exponential",
        "fused attention": "product",  # scaled_dot_product_…
        "matrix product": "mm bmm addmm baddbmm mv addmv dot convolution",
        "gather": "gather index embedding take scatter put",
        "compare and mask": "masked where eq ne lt gt le ge logical bitwise clamp minimum maximum",
        "sort and search": "sort argsort topk unique unique2 nonzero searchsorted argmax argmin",
        "copy": "copy clone cat stack repeat pad slice split select roll flip",
        "fill": "zero zeros ones fill full arange",
        "sum": "sum cumsum mean amax amin max min norm any all var std",
        "add": "add sub rsub addcmul addcdiv lerp",
        "multiply": "mul div neg pow sqrt rsqrt reciprocal",
        "activation": "gelu relu threshold silu tanh sigmoid erf exp log entr",
    }.items()
}
# Operations that read of their first tensor only the entries that are looked up.
LOOK_UPS = {"embedding", "index", "index_select", "gather", "take", "nll_loss_forward"}
# Those that write only such entries, in place.
PUTS = {"index_put_", "index_copy_", "scatter_"}
# In place, but without a look at what was there; backward passes that need no more than a shape.
OVERWRITES = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_"}
SHAPE_ONLY = {"nll_loss_backward"}


@dataclass(frozen=True)
class Traffic:
    """What one operation, or several of a kind, did: FLOPs, bytes read, bytes written."""

    op: str
    flops: int = 0
    read: int = 0
    written: int = 0

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.read + self.written

    def __add__(self, other: Traffic) -> Traffic:
        """Both together, under the name of the first."""
        return Traffic(
            self.op,
            self.flops + other.flops,
            self.read + other.read,
            self.written + other.written,
        )


def traffic(step: Callable[[], Any]) -> list[Traffic]:
    """Every operation that runs in one step, forward and backward, in order.

    Bytes are those of its tensors: each input read once, each output written once; what is changed
    in place counts as both. An expanded tensor counts as large as what it is expanded from. A
    look-up reads the entries it looks up, not the table. Views (transposed, split, reshaped in
    place) and memory that is only reserved count nothing and are left out. FLOPs are those of
    matrix products and convolutions, by torch's own formulas; a multiply-add counts as two."""
    with _Count() as count:
        step()
    return count.operations


def total(operations: Iterable[Traffic]) -> Traffic:
    """All of them together, under the name "total"."""
    return sum(operations, Traffic("total"))


def by_kind(operations: Iterable[Traffic]) -> dict[str, Traffic]:
    """Those of one kind together, kinds in plain words: matrix product, softmax, gather, add, …;
    the one that moves most comes first."""
    kinds: dict[str, Traffic] = {}
    for one in operations:
        kind = kind_of(one.op)
        kinds[kind] = kinds.get(kind, Traffic(kind)) + one
    return dict(sorted(kinds.items(), key=lambda item: -item[1].moved))


def kind_of(op: str) -> str:
    """The kind, in plain words, of an operation by torch's name ("addmm", "_softmax", "add_")."""
    words = set(op.split("_"))
    return next((kind for kind, names in KINDS.items() if names & words), OTHER)


# ---- counting ------------------------------------------------------------------------------------


class _Count(TorchDispatchMode):
    """Notes every operation that reaches the processor."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Traffic] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not torch.ops.prim.device.default:
            with self:  # what is made of others is seen as these others
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        one = _of_one(func, args, kwargs, result)
        if one.moved:
            self.operations.append(one)
        return result


def _of_one(func: Any, args: Any, kwargs: Any, result: Any) -> Traffic:
    name = func._schema.name.split("::")[-1]
    inputs, changed = _inputs_and_changed(func, args, kwargs)
    made = [x for x in _tensors(result) if not any(x is y for y in changed)]
    if not changed and _holds_memory_of(made, inputs):
        return Traffic(name)  # a view
    if "empty" in name:
        return Traffic(name)  # reserved, not touched
    written = sum(map(_bytes, [*changed, *made]))
    if "out" not in kwargs and name not in OVERWRITES:
        inputs = [*changed, *inputs]
    read = list(map(_bytes, inputs))
    if name in LOOK_UPS:
        targets = args[1] if name == "nll_loss_forward" else _tensors(result)[0]
        read[0] = min(read[0], targets.numel() * inputs[0].element_size())
    elif name in PUTS:
        read[0], written = 0, min(written, max(read[1:]))
    elif name in SHAPE_ONLY:
        read = [_bytes(x) for x in inputs if x.shape != made[0].shape]
    return Traffic(name, _flops(func, name, args, kwargs, result), sum(read), written)


def _tensors(tree: Any) -> list[Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, Tensor)]


def _inputs_and_changed(func: Any, args: Any, kwargs: Any) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors that the operation only reads, and those it writes to."""
    inputs: list[Tensor] = []
    changed: list[Tensor] = []
    for place, argument in enumerate(func._schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        alias = argument.alias_info
        (changed if alias is not None and alias.is_write else inputs).extend(_tensors(value))
    return inputs, changed


def _holds_memory_of(made: list[Tensor], inputs: list[Tensor]) -> bool:
    memory = {x.untyped_storage()._cdata for x in inputs}
    return bool(made) and all(x.untyped_storage()._cdata in memory for x in made)


def _bytes(x: Tensor) -> int:
    """What of the tensor is in memory: a dimension it is expanded along counts once."""
    sizes = zip(x.shape, x.stride(), strict=True)
    return x.element_size() * prod(size if stride else min(size, 1) for size, stride in sizes)


def _flops(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> int:
    """By torch's formulas; also in place, and for the CPU's fused attention, which has none."""
    from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

    if name == "_scaled_dot_product_flash_attention_for_cpu":
        return int(sdpa_flop_count(*(x.shape for x in args[:3])))
    if name == "_scaled_dot_product_flash_attention_for_cpu_backward":
        return int(sdpa_backward_flop_count(*(x.shape for x in args[:4])))
    packet = getattr(torch.ops.aten, name.removesuffix("_"), func._overloadpacket)
    if packet not in flop_registry:
        return 0
    return int(flop_registry[packet](*args, **kwargs, out_val=result))
