"""Exercise 14.6: a layer on real tokens alone. B texts, T tokens, H numbers in, W numbers out.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
    expect_tensor,
)

Case = tuple[Tensor, Tensor, Tensor]  # the layer's weights (H, W), x (B, T, H), mask (B, T)
Cases = Callable[[Draw], list[Case]]
Layer = Callable[[Tensor], Tensor]


def real_only(layer: Layer, x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, W): the layer's outcome at real tokens, zeros at padding."""
    real = mask != 0
    done = layer(x[real])  # (N, H) -> (N, W)
    out = done.new_zeros(*mask.shape, done.shape[-1])
    out[real] = done
    return out


class Seen(NamedTuple):
    """What an answer did: its result, how many rows its layer was given, the gradient of x."""

    out: Tensor
    rows: int
    gradient: Tensor | None
    changed: bool  # whether x is another one now


def observed(answer: Answer) -> Callable[..., Seen]:
    """The answer on the case's own tensors, with a layer that counts what it is given."""

    def run(weights: Tensor, x: Tensor, mask: Tensor, learning: bool = False) -> Seen:
        given, rows = x.detach().clone().requires_grad_(learning), 0

        def layer(part: Tensor) -> Tensor:
            nonlocal rows
            rows += part.numel() // part.shape[-1]
            return (part @ weights + 1.0).tanh()  # not 0 where the input is

        result = call(lambda: answer(layer, given, mask.clone()))
        shape = (*mask.shape, weights.shape[1])
        out = expect_tensor(result, shape, "the layer's outcome at every place, 0 at padding")
        gradient = None
        if learning and out.requires_grad:
            upstream = torch.linspace(1, 2, out.numel(), dtype=out.dtype).view_as(out)
            (gradient,) = torch.autograd.grad(out, given, upstream, allow_unused=True)
        return Seen(out.detach(), rows, gradient, not torch.equal(given.detach(), x))

    return run


right = observed(real_only)


# ---------------------------------------------------------------- known wrong answers


def _padded(end: Callable[[Tensor, Tensor], Tensor]) -> Answer:
    """The layer on everything; end(outcome, mask (B, T, 1))."""
    return lambda layer, x, mask: end(layer(x), mask[..., None])


def _prefix(layer: Layer, x: Tensor, mask: Tensor) -> Tensor:
    return real_only(layer, x, _left(mask))


def _left(mask: Tensor) -> Tensor:
    return (torch.arange(mask.shape[1]) < mask.sum(1, keepdim=True)).long()


def _packed(place: Callable[[Tensor], Tensor]) -> Answer:
    """The right rows through the layer, but put where place(mask) says."""

    def answer(layer: Layer, x: Tensor, mask: Tensor) -> Tensor:
        done = layer(x[mask != 0])
        out = done.new_zeros(*mask.shape, done.shape[-1])
        out[place(mask) != 0] = done
        return out

    return answer


def _front(mask: Tensor) -> Tensor:
    return (torch.arange(mask.numel()) < mask.sum()).view_as(mask)


def _first_text(layer: Layer, x: Tensor, mask: Tensor) -> Tensor:
    return real_only(layer, x, mask[:1].expand_as(mask))


def _by_column(layer: Layer, x: Tensor, mask: Tensor) -> Tensor:
    real = mask != 0
    done = layer(x.transpose(0, 1)[real.T])
    out = done.new_zeros(*mask.shape, done.shape[-1])
    out[real] = done
    return out


def _mask_as_index(layer: Layer, x: Tensor, mask: Tensor) -> Tensor:
    """x[mask] is (B, T, T, H): text 0 or 1 for every place."""
    done = layer(x[mask])
    out = done.new_zeros(*mask.shape, done.shape[-1])
    out[mask] = done
    return out


def _x_kept(layer: Layer, x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask[..., None] != 0, layer(x), x)


REAL_SUSPECTS = tuple(
    Suspect(key, message, observed(answer))
    for key, message, answer in (
        (
            "padding not zero",
            "The layer's outcome stands at the padding, too. It must be 0 there.",
            _padded(lambda y, m: y),
        ),
        (
            "padding not zero",
            "The padding was set to 0 before the layer, and a layer has a bias: what comes out is "
            "not 0. Put zeros into the outcome.",
            lambda layer, x, mask: layer(x * mask[..., None]),
        ),
        (
            "input left at the padding",
            "At the padding your result holds x. It must be 0 there: begin with zeros, not with a "
            "copy of x.",
            _x_kept,
        ),
        (
            "mask inverted",
            "The layer works on the padding, and real tokens are 0. The mask is 1 at real tokens.",
            lambda layer, x, mask: real_only(layer, x, 1 - mask),
        ),
        (
            "lengths",
            "You take the first tokens of each text, as many as are real. Padding can stand "
            "anywhere, also in front: go by the mask, not by lengths.",
            _prefix,
        ),
        (
            "moved to the front of the text",
            "The outcomes stand at the front of each text. Each belongs where its token stands.",
            _packed(_left),
        ),
        (
            "moved to the front of the batch",
            "The outcomes stand one after another from the first place on. Each belongs where its "
            "token stands.",
            _packed(_front),
        ),
        (
            "mask as an index",
            "A mask of 0 and 1 as an index picks texts 0 and 1: make it bool. x[mask] is then the "
            "list of real tokens: mask.bool(), or mask != 0.",
            _mask_as_index,
        ),
        (
            "first text's mask",
            "All texts are cut by the mask of the first one. Each text has a mask of its own.",
            _first_text,
        ),
        (
            "another order",
            "The list goes through the batch column by column, and back row by row. Use the same "
            "order both ways.",
            _by_column,
        ),
    )
)


# ---------------------------------------------------------------- inputs


def _case(draw: Draw, mask: Tensor, width: int | None = None) -> Case:
    H = draw.integer(3, 5)
    return draw.normal(H, width or H), draw.normal(*mask.shape, H), mask


def _full(draw: Draw) -> list[Case]:
    return [_case(draw, torch.ones(2, draw.integer(3, 5), dtype=torch.long))]


def _ends(draw: Draw) -> list[Case]:
    lengths = torch.tensor(draw.python.sample(range(1, 8), 4))
    return [_case(draw, (torch.arange(8) < lengths[:, None]).long()) for _ in range(2)]


def _anywhere(draw: Draw) -> list[Case]:
    """In every text one real token and one place of padding at least, padding in front too."""
    mask = draw.ids(0, 1, 4, 9)
    mask[:, 0], mask[:, 4], mask[0, 0], mask[0, 1] = 0, 1, 1, 0
    return [_case(draw, mask)]


def _empty(draw: Draw) -> list[Case]:
    some, none = draw.ids(0, 1, 3, 6), torch.zeros(2, 4, dtype=torch.long)
    some[1] = 0
    some[2, 1:3] = 1
    return [_case(draw, some), _case(draw, none)]


def _wider(draw: Draw) -> list[Case]:
    return [_case(draw, _anywhere(draw)[0][2], width) for width in (2, 7)]


# ---------------------------------------------------------------- stages


def _ask_values(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            mine, theirs = observed(answer)(*case), right(*case)
            if mine.changed:
                raise Mistake(
                    "writes into its input",
                    "Your function changes x itself. Others still need it: begin with new zeros.",
                )
            if close(mine.out, theirs.out):
                continue
            pools = [_anywhere(draw), _ends(draw), cases(draw)]
            raise told(
                name_suspect(observed(answer), case, pools, REAL_SUSPECTS, _same),
                _example(case, mine, theirs),
            )

    return ask


def _same(mine: Seen, theirs: Seen, _case: Any) -> bool:
    return close(mine.out, theirs.out)


def _example(case: Case, mine: Seen, theirs: Seen) -> str:
    off = (mine.out - theirs.out).abs().nan_to_num(1e9).sum(-1)
    b, t = (off > 1e-6).nonzero()[0].tolist()
    kind = "a real token" if case[2][b, t] else "padding"
    return (
        f"Text {b} with the mask {case[2][b].tolist()}, place {t} ({kind}): your vector begins "
        f"with {float(mine.out[b, t, 0]):.4f}; it is {float(theirs.out[b, t, 0]):.4f}."
    )


def _ask_rows(answer: Answer, draw: Draw) -> None:
    for case in (*_ends(draw), *_anywhere(draw)):
        mine, real = observed(answer)(*case), int(case[2].sum())
        if mine.rows > real:
            raise Mistake(
                "layer saw the padding",
                f"The right numbers, but the layer was given {mine.rows} rows, of which {real} are "
                "real tokens. What is multiplied by 0 afterwards has been computed all the same: "
                "pick the real rows before the layer.",
            )


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    for case in _anywhere(draw):
        mine = observed(answer)(*case, True).gradient
        theirs = right(*case, True).gradient
        if mine is None:
            raise Mistake(
                "no gradient",
                "The numbers are right, but no gradient comes back to x: is there a detach(), a "
                "torch.no_grad() or a .data on the way?",
            )
        if not close(mine, theirs):
            raise Mistake("wrong gradient", "The numbers are right, the gradient of x is not.")


REAL = Exercise(
    id="14.6",
    title="Leave the padding out",
    purpose="half of a batch, half of the time",
    difficulty=2,
    minutes=8,
    signature="my_real_only(layer, x, mask)",
    statement=(
        "`layer` is a function that treats each row of H numbers by itself, whatever axes stand "
        "before, and gives W numbers for it; W can be H or not. `x` is (B, T, H); `mask` (B, T) is "
        "1 at real tokens and 0 at padding, which may stand *anywhere*. Return (B, T, W): the "
        "layer's outcome at real tokens, zeros at padding. The layer may be given *real tokens "
        "only*: it counts. Gradients must come through, and `x` stays as it is. A text can be all "
        "padding, and so can a batch."
    ),
    hints=(
        "real = mask != 0 is (B, T), True at real tokens. x[real] is the list of them, (N, H).",
        "The layer takes that list: layer(x[real]) is (N, W).",
        "Put it back into zeros of shape (B, T, W): out[real] = done. The same mask, the same "
        "order.",
        "done.new_zeros(B, T, done.shape[-1]) has the number format and the width of the outcome.",
    ),
    solution=real_only,
    library=(
        "course_lib.kernels.unpadding:Packing.unpad",
        "course_lib.kernels.unpadding:Packing.pad",
    ),
    when_raised=(
        (
            r"leaf [Vv]ariable|in-place operation",
            "x is written into. Begin with new zeros and write there.",
        ),
        (
            r"tensors used as indices|long, int, byte or bool",
            "An index must be whole numbers or True and False: mask != 0.",
        ),
        (
            r"shape mismatch|must match|cannot broadcast|expanded size",
            "The outcome can be wider or narrower than x: make zeros of its width, "
            "done.shape[-1]. A mask of 0 and 1 as an index picks texts 0 and 1: write mask != 0.",
        ),
    ),
    stages=(
        Check("no padding", _ask_values(_full)),
        Check("padding at the end", _ask_values(_ends)),
        Check("padding anywhere", _ask_values(_anywhere)),
        Check("the layer sees real tokens only", _ask_rows),
        Check("texts and batches of padding alone", _ask_values(_empty)),
        Check("a layer that changes the width", _ask_values(_wider)),
        Check("the gradient", _ask_gradient),
    ),
)
