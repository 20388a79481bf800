"""Padding removed: the real tokens of a batch as one list, and attention among those of one text.

B batch, T tokens, N real tokens, H hidden, A heads, D = H/A head size. A dense layer, a norm or a
feed-forward works on each token by itself, so a list (N, H) does as well as (B, T, H), and the
padding costs nothing. Attention needs to know which tokens stand together. Two ways keep it to real
tokens, and both give what the padded batch gives:

- `packed_attention`: rows of one length are attended together, at that length. The list holds such
  rows side by side, so a group is cut out without a copy and needs no mask.
- `shared_rows_attention`: short texts share a row as long as the longest text, and a mask keeps
  them apart (a block-diagonal mask). It costs few but large products; what is computed between two
  texts is thrown away, and the tokens are copied into place and back.

The encoder uses the first. On a processor, at base width and inference, it was the quicker one in
nearly every case tried, up to five times. So it was beside lengths rounded up to steps of 4 to 64:
these make fewer groups, but need the copies and a mask as well. `python -m course_lib.bench
--tables unpadding` times both here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import attention, attention_reference


class Packing:
    """Where the real tokens of a batch are, worked out once for all layers.

    mask (B, T): 1 at real tokens, 0 at padding, which may be anywhere; a row may be empty. In the
    list, rows stand in order of length; within a row, tokens in order of position. Raises
    ValueError for a mask of another form."""

    def __init__(self, mask: Tensor) -> None:
        if mask.dim() != 2:
            raise ValueError(
                f"a mask of shape {tuple(mask.shape)} was given; expected (batch, tokens): 1 at "
                "real tokens, 0 at padding."
            )
        real = mask != 0
        lengths, order = real.sum(dim=1).sort(stable=True)
        row, position = real[order].nonzero(as_tuple=True)
        self.shape = mask.shape
        self.positions = order[row] * mask.shape[1] + position  # (N,), each as b·T + t
        values, counts = lengths.unique_consecutive(return_counts=True)
        groups = zip(counts.tolist(), values.tolist(), strict=True)
        self.groups = [(rows, length) for rows, length in groups if length]  # rows of one length

    def unpad(self, x: Tensor) -> Tensor:
        """(B, T, H) -> (N, H): the real tokens. Raises ValueError for another batch's x."""
        if x.shape[:2] != self.shape:
            raise ValueError(
                f"x of shape {tuple(x.shape)} was given to the packing of a batch of "
                f"{tuple(self.shape)}; expected (B, T, H) with that B and T."
            )
        return F.embedding(
            self.positions, x.flatten(0, 1)
        )  # the quickest look-up of rows, both ways

    def pad(self, x: Tensor) -> Tensor:
        """(N, H) -> (B, T, H): each token back at its position, zeros at the padding. Raises
        ValueError for a list of another length."""
        if x.shape[0] != len(self.positions):
            raise ValueError(
                f"a list of {x.shape[0]} tokens was given to a packing of {len(self.positions)}; "
                "expected one vector a real token, as `unpad` returns them."
            )
        batch, tokens = self.shape
        padded = x.new_zeros(batch * tokens, x.shape[1]).index_copy_(0, self.positions, x)
        return padded.unflatten(0, (batch, tokens))

    @cached_property
    def mask(self) -> Tensor:
        """(B, T): 1 at real tokens, 0 at padding."""
        return self.pad(torch.ones_like(self.positions)[:, None]).squeeze(2)

    @cached_property
    def contiguous(self) -> bool:
        """Whether no text has padding between its tokens."""
        return bool((self.mask.diff(dim=1) > 0).sum(dim=1).add(self.mask[:, 0]).le(1).all())

    @cached_property
    def shared_rows(self) -> tuple[Tensor, Tensor]:
        """Texts put into rows as long as the longest one: at which position of R rows of C each
        token of the list stands, (N,) as r·C + c, and whose text stands at each position, (R, C),
        −1 where there is none.

        The longest texts go first, each into the first row with room for it."""
        lengths = [length for rows, length in self.groups for _ in range(rows)]
        capacity = max(lengths, default=0)
        used: list[int] = []  # of each row
        begins = [0] * len(lengths)
        for text in reversed(range(len(lengths))):
            fits = (row for row, n in enumerate(used) if n + lengths[text] <= capacity)
            row = next(fits, len(used))
            if row == len(used):
                used.append(0)
            begins[text] = row * capacity + used[row]
            used[row] += lengths[text]
        device = self.positions.device
        texts = torch.arange(len(lengths), device=device)
        count = torch.tensor(lengths, dtype=torch.int64, device=device)
        of_text = texts.repeat_interleave(count)  # (N,)
        within = torch.arange(len(of_text), device=device) - (count.cumsum(0) - count)[of_text]
        at = torch.tensor(begins, dtype=torch.int64, device=device)[of_text] + within
        owner = torch.full((len(used) * capacity,), -1, device=device)
        return at, owner.index_copy(0, at, of_text).view(len(used), capacity)


def packed_attention_reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packing: Packing,
    num_heads: int,
    dropout: float = 0.0,
) -> Tensor:
    """The padded batch as it is, its padding hidden by the mask: query, key, value (N, H) -> output
    (N, H)."""
    q, k, v = (_heads(packing.pad(x), num_heads) for x in (query, key, value))  # (B, A, T, D)
    output, _, _ = attention_reference(q, k, v, packing.mask, dropout)
    return packing.unpad(output.transpose(1, 2).flatten(2))


def packed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packing: Packing,
    num_heads: int,
    dropout: float = 0.0,
    path: str = "auto",
    attend: Callable[..., Tensor] = attention,
) -> Tensor:
    """The same, one product for all rows of one length, at that length: no padding, no mask.

    path: as in `attention`. attend: what stands for it, called the same way."""
    if not packing.groups:
        return value  # no token at all
    sizes = [rows * length for rows, length in packing.groups]
    # One split, not a slice a group: a slice's backward pass would write all N rows each time.
    parts = zip(*(x.split(sizes) for x in (query, key, value)), strict=True)
    output = []
    for group, part in zip(packing.groups, parts, strict=True):
        q, k, v = (_heads(x.view(*group, -1), num_heads) for x in part)  # (rows, A, length, D)
        attended = attend(q, k, v, dropout=dropout, path=path).transpose(1, 2)
        output.append(attended.reshape(part[0].shape))
    return torch.cat(output)


def shared_rows_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packing: Packing,
    num_heads: int,
    dropout: float = 0.0,
) -> Tensor:
    """The same, several texts to a row of scores, each kept to its own block by the mask."""
    if not packing.groups:
        return value
    at, owner = packing.shared_rows  # (N,), (R, C)
    rows, capacity = owner.shape

    def lay_out(x: Tensor) -> Tensor:  # (N, H) -> (R, A, C, D)
        filled = x.new_zeros(rows * capacity, x.shape[1]).index_copy_(0, at, x)
        return _heads(filled.view(rows, capacity, -1), num_heads)

    # An empty position attends to the other empty ones, so that none is left without a key.
    apart = (owner[:, :, None] != owner[:, None, :])[:, None]  # (R, 1, C, C)
    bias = apart.to(query.dtype) * torch.finfo(query.dtype).min
    output = F.scaled_dot_product_attention(
        lay_out(query), lay_out(key), lay_out(value), attn_mask=bias, dropout_p=dropout
    )  # (R, A, C, D)
    return output.transpose(1, 2).reshape(rows * capacity, -1)[at]


def _heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, T, H) -> (B, A, T, D)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
