"""What goes into a model: sequences of ids, fixed in length, and batches made from them. N
sequences, T positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_lib.config import is_whole


@dataclass(frozen=True)
class SpecialIds:
    """The ids of the special tokens, and how many ids there are."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    vocab_size: int
    separators: int = 1  # between the texts of a pair: RoBERTa and XLM-R were trained with two

    @property
    def never_masked(self) -> tuple[int, int, int]:
        """[PAD], [CLS] and [SEP]: the positions that carry form, not words."""
        return (self.pad, self.cls, self.sep)


@dataclass(frozen=True)
class PackedSequences:
    """Packed text. Index with a slice or a tensor of numbers to get fewer sequences."""

    input_ids: Tensor  # (N, T) int64
    attention_mask: Tensor  # (N, T) int64, 1 real, 0 padding
    token_type_ids: Tensor  # (N, T) int64, 0 segment A, 1 segment B; of XLM: the language
    next_sentence_label: Tensor | None = None  # (N,) int64, 0 IsNext, 1 NotNext
    # For ALBERT's task (sentence_order.py) the same field: 0 in order, 1 swapped.
    position_ids: Tensor | None = None  # (N, T) int64, where positions do not just follow the text

    def __len__(self) -> int:
        return self.input_ids.shape[0]

    def __getitem__(self, which: slice | Tensor) -> PackedSequences:
        label, positions = self.next_sentence_label, self.position_ids
        return PackedSequences(
            self.input_ids[which],
            self.attention_mask[which],
            self.token_type_ids[which],
            None if label is None else label[which],
            None if positions is None else positions[which],
        )

    @property
    def inputs(self) -> dict[str, Tensor]:
        """A model's keyword arguments: position_ids among them only where there are some."""
        names = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
        inputs = {name: getattr(self, name) for name in names}
        return {name: value for name, value in inputs.items() if value is not None}

    def padding_last(self) -> PackedSequences:
        """The same texts with all padding behind them, where models have met it: a pooler reads
        position 0. The tokens themselves are what attention_mask says; gaps between them close."""
        order = text_first(self.attention_mask)
        moved = {name: value.gather(1, order) for name, value in self.inputs.items()}
        return replace(self, **moved)

    @property
    def sentence_order_label(self) -> Tensor | None:
        """(N,) int64, 0 in order, 1 swapped: the label under the name of ALBERT's task."""
        return self.next_sentence_label

    @property
    def padding_share(self) -> float:
        """Fraction of positions that hold no text."""
        return 1 - self.attention_mask.float().mean().item()


def text_first(attention_mask: Tensor) -> Tensor:
    """(N, T) -> (N, T): of each sequence the positions of its tokens in their order, then those of
    its padding."""
    return (attention_mask == 0).to(torch.int8).argsort(dim=1, stable=True)


class Batch(NamedTuple):
    """One step's work: the model's keyword arguments, and what the objective compares its answer
    with."""

    inputs: dict[str, Tensor]
    targets: dict[str, Tensor]


def part_of_mean(mean: Tensor, count: Tensor | int, whole: Tensor | None) -> Tensor:
    """A mean over `count` items as its part of the mean over all `whole` items of a larger batch:
    the parts of a batch add up. None: there are no others. No item: zero, not not-a-number."""
    if whole is None:
        return mean
    return mean * count / whole if count else mean.nan_to_num() * 0


def shuffled(count: int, batch_size: int, seed: int = 0) -> Callable[[int], Tensor]:
    """Numbers of the examples of a step's batch, (batch_size,), as a pure function of the step:
    each epoch visits them in a new order, none twice; what is left over when no batch can be filled
    any more is left out.

    Raises ValueError when there are fewer examples than a batch holds."""
    check_batch_size(batch_size, count)

    def which(step: int) -> Tensor:
        epoch, number = divmod(step, count // batch_size)
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
        order = torch.randperm(count, generator=generator)
        return order[number * batch_size : (number + 1) * batch_size]

    return which


def check_batch_size(batch_size: int, count: int, what: str = "examples") -> None:
    """Raise ValueError unless a batch can be filled."""
    if not count:
        raise ValueError(f"no {what} were given; expected at least one.")
    if not is_whole(batch_size) or not 1 <= batch_size <= count:
        raise ValueError(
            f"batch_size={batch_size!r} was given for {count} {what}; expected 1 to {count}."
        )


def pack(
    a: Sequence[int], b: Sequence[int] | None, special: SpecialIds, length: int | None = None
) -> tuple[list[int], list[int], list[int]]:
    """[CLS] a [SEP] b [SEP] and padding: input_ids, token_type_ids, attention_mask, each `length`
    long, without one as long as the text. Where `special.separators` is 2: <s> a </s></s> b </s>.

    Raises ValueError for an empty segment and for text that does not fit; see `truncate_pair`.
    """
    if not a or (b is not None and not b):
        raise ValueError(
            "An empty segment was given; expected at least one token in each. Leave out empty "
            "texts before packing; for a single text pass b=None."
        )
    first = [special.cls, *a, *[special.sep] * (1 if b is None else special.separators)]
    second = [] if b is None else [*b, special.sep]
    used = len(first) + len(second)
    length = used if length is None else length
    if used > length:
        raise ValueError(
            f"{used} tokens were given, special tokens included; expected at most length={length}. "
            "Shorten with truncate_pair, or choose a greater length."
        )
    pad = length - used
    return (
        first + second + [special.pad] * pad,
        [0] * len(first) + [1] * len(second) + [0] * pad,
        [1] * used + [0] * pad,
    )


def to_sequences(packed: Sequence[tuple[list[int], list[int], list[int]]]) -> PackedSequences:
    """Packed sequences of one length as tensors; raises ValueError when there are none."""
    if not packed:
        raise ValueError("No sequences were given; expected at least one. Is the text empty?")
    ids, types, mask = (_as_tensor(column) for column in zip(*packed, strict=True))
    return PackedSequences(input_ids=ids, attention_mask=mask, token_type_ids=types)


def _as_tensor(sequences: Sequence[Sequence[int]]) -> Tensor:
    """Lists of one length as a tensor (N, T); several times quicker than torch.tensor on lists."""
    flat = np.fromiter(chain.from_iterable(sequences), dtype=np.int64)
    return torch.from_numpy(flat.reshape(len(sequences), -1))
