"""Exercise 06.5: TinyBERT's two losses between layers.

B batch, T tokens, A heads, H width of the student, H' of the teacher, M and N layers. The solution
first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.encoder import EncoderOutput
from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import Answer, Check, Draw, Exercise, Mistake, call

from .shared import Slips, call_keeping, gradient, one_loss, same_loss, suspects_of

# What student and teacher computed, g(1) … g(M), W_h (H, H'), real (B, T).
Case = tuple[EncoderOutput, EncoderOutput, list[int], Tensor, Tensor]


def layer_losses(
    student: Any,
    teacher: Any,
    mapping: Sequence[int],
    matrix: Tensor,
    real: Tensor,
) -> tuple[Tensor, Tensor]:
    """The attention and the hidden loss, each summed over the student's layers (Jiao et al. 2020,
    equations 7 and 8)."""
    both = (real[:, :, None] & real[:, None, :])[:, None]  # (B, 1, T, T): a real pair of tokens
    attention = hidden = torch.zeros(())
    for m, n in enumerate(mapping, start=1):  # layers, counted from 1
        scores, wanted = student.attention_scores[m - 1], teacher.attention_scores[n - 1]
        apart = (scores - wanted).masked_fill(~both, 0.0) ** 2  # (B, A, T, T)
        attention = attention + apart.sum() / (both.sum() * scores.shape[1])
        widened = student.hidden_states[m] @ matrix  # index 0 holds the embeddings
        hidden = hidden + ((widened - teacher.hidden_states[n]) ** 2)[real].mean()
    return attention, hidden


# ---------------------------------------------------------------- known wrong answers

Pick = Callable[[int, int], int]  # of (m, g(m)), counted from 1, an index


def _attention(
    student: EncoderOutput,
    teacher: EncoderOutput,
    mapping: Sequence[int],
    matrix: Tensor,
    real: Tensor,
    *,
    field: str = "attention_scores",
    mine: Pick = lambda m, n: m - 1,
    theirs: Pick = lambda m, n: n - 1,
    pairs: str = "both",
    heads: str = "mean",
    over: str = "mean",
    total: str = "sum",
    distance: str = "squared",
) -> Tensor:
    """The attention loss with switches for going wrong."""
    queries, keys = real[:, None, :, None], real[:, None, None, :]
    both = queries & keys  # (B, 1, T, T)
    every = torch.ones_like(both)
    where = {"both": both, "keys": keys & every, "queries": queries & every, "all": every}
    layers = []
    for m, n in enumerate(mapping, start=1):
        a = getattr(student, field)[mine(m, n)]
        b = getattr(teacher, field)[theirs(m, n)]
        keep = both if pairs == "zeroed" else where[pairs]
        a, b = a.masked_fill(~keep, 0.0), b.masked_fill(~keep, 0.0)
        if heads == "averaged first":
            a, b = a.mean(1, keepdim=True), b.mean(1, keepdim=True)
        apart = {"squared": (a - b) ** 2, "absolute": (a - b).abs()}[distance]
        counted = every if pairs == "zeroed" else keep
        if over == "rows":
            found = (apart.sum((1, 2, 3)) / counted.sum((1, 2, 3)) / apart.shape[1]).mean()
        elif over == "sum":
            found = apart.sum()
        else:
            found = apart.sum() / counted.sum() / (1 if heads == "sum" else apart.shape[1])
        layers.append(found)
    stacked = torch.stack(layers)
    return {"sum": stacked.sum(), "mean": stacked.mean(), "last": stacked[-1]}[total]


def _hidden(
    student: EncoderOutput,
    teacher: EncoderOutput,
    mapping: Sequence[int],
    matrix: Tensor,
    real: Tensor,
    *,
    mine: Pick = lambda m, n: m,
    theirs: Pick = lambda m, n: n,
    widen: str = "student",
    tokens: str = "real",
    over: str = "mean",
    total: str = "sum",
    distance: str = "squared",
    embeddings: bool = False,
) -> Tensor:
    """The hidden loss with switches for going wrong."""
    layers = []
    pairs = [(0, 0)] * embeddings + [
        (mine(m, n), theirs(m, n)) for m, n in enumerate(mapping, start=1)
    ]
    for i, j in pairs:
        a, b = student.hidden_states[i], teacher.hidden_states[j]  # type: ignore[index]
        if widen == "student":
            a = a @ matrix
        elif widen == "transposed":
            a = a @ matrix.T
        elif widen == "teacher":
            b = b @ matrix.T
        elif widen == "both":
            a, b = a @ matrix, b @ matrix
        keep = (torch.ones_like(real) if tokens == "all" else real)[..., None]
        apart = {"squared": (a - b) ** 2, "absolute": (a - b).abs()}[distance] * keep
        counted = torch.ones_like(real) if tokens in ("all", "zeroed") else real
        if over == "rows":
            found = (apart.sum((1, 2)) / counted.sum(1) / apart.shape[2]).mean()
        elif over == "sum":
            found = apart.sum()
        else:
            found = apart.sum() / counted.sum() / (1 if over == "tokens" else apart.shape[2])
        layers.append(found)
    stacked = torch.stack(layers)
    return {"sum": stacked.sum(), "mean": stacked.mean(), "last": stacked[-1]}[total]


MEAN_OVER_LAYERS = (
    "The layers are averaged. The loss is their *sum*: a student of more layers has more to learn."
)
LAST_LAYER = "Only the last layer of the student is compared; add up all M."
UNMAPPED = (
    "The mapping has no effect: layer m is compared with the teacher's layer m. It is to be "
    "compared with layer g(m) = mapping[m − 1]."
)

ATTENTION_SLIPS: Slips = {
    "after the softmax": (
        "The attention *probabilities* are compared. TinyBERT compares the scores before the "
        "softmax (its section 3.1): .attention_scores, not .attentions.",
        {"field": "attentions"},
    ),
    "teacher one layer off in attention": (
        "The teacher's attention comes from the layer before g(m). Scores have no entry for the "
        "embeddings, so layer 1 stands at index 0 and layer n at n − 1.",
        {"theirs": lambda m, n: n - 2},
    ),
    "teacher's layer above in attention": (
        "The teacher's attention comes from the layer after g(m). Scores have no entry for the "
        "embeddings, so layer 1 stands at index 0 and layer n at n − 1.",
        {"theirs": lambda m, n: n},
    ),
    "student one layer off in attention": (
        "The student's attention comes from the layer before m (and from the last for m = 1). "
        "Layer m stands at index m − 1.",
        {"mine": lambda m, n: m - 2},
    ),
    "mapping ignored in attention": (UNMAPPED, {"theirs": lambda m, n: m - 1}),
    "padding counted in attention": (
        "Pairs with padding are counted in attention. A score counts where both the token that "
        "asks and the one that is asked are real.",
        {"pairs": "all"},
    ),
    "padded keys only left out": (
        "Keys of padding are left out, but not its queries: padding's own row of scores is counted "
        "as well. Both tokens of a pair must be real.",
        {"pairs": "keys"},
    ),
    "padded queries only left out": (
        "Queries of padding are left out, but not its keys. Both tokens of a pair must be real.",
        {"pairs": "queries"},
    ),
    "padding zeroed but counted in attention": (
        "Pairs with padding are set to 0 and still counted: the mean is divided by all T · T. (The "
        "authors' code does so.) Divide by the number of real pairs, or short texts count less.",
        {"pairs": "zeroed"},
    ),
    "sum over heads": (
        "The heads are added; the loss is their mean (1/h in equation 7).",
        {"heads": "sum"},
    ),
    "heads averaged first": (
        "The scores are averaged over the heads before they are compared. Each head is compared "
        "with the same head of the teacher; the mean comes after the square.",
        {"heads": "averaged first"},
    ),
    "attention row by row": (
        "Each text was averaged by itself, then the texts. Average over all real pairs of the "
        "batch at once.",
        {"over": "rows"},
    ),
    "attention summed": (
        "The squares of attention are added up; expected their mean in each layer.",
        {"over": "sum", "heads": "sum"},
    ),
    "attention: layers averaged": (MEAN_OVER_LAYERS, {"total": "mean"}),
    "attention: last layer only": (LAST_LAYER, {"total": "last"}),
    "absolute differences in attention": (
        "The differences of scores are taken without their sign; they are squared.",
        {"distance": "absolute"},
    ),
}

HIDDEN_SLIPS: Slips = {
    "both one layer off": (
        "Student and teacher are both taken one state too early. Hidden states begin with the "
        "embeddings, so layer m stands at index m, and layer n at n.",
        {"mine": lambda m, n: m - 1, "theirs": lambda m, n: n - 1},
    ),
    "teacher one layer off": (
        "The teacher's state is that before layer g(m). Hidden states begin with the embeddings, "
        "so layer n stands at index n. (Scores begin with layer 1: there it is n − 1.)",
        {"theirs": lambda m, n: n - 1},
    ),
    "student one layer off": (
        "The student's state is that before layer m. Hidden states begin with the embeddings, so "
        "layer m stands at index m. (Scores begin with layer 1: there it is m − 1.)",
        {"mine": lambda m, n: m - 1},
    ),
    "mapping ignored": (UNMAPPED, {"theirs": lambda m, n: m}),
    "no matrix": (
        "The student's states are compared as they are; `matrix` has no effect. It stands between "
        "the widths, and is learned also where they are equal.",
        {"widen": "no"},
    ),
    "matrix transposed": (
        "The matrix is multiplied the wrong way round, which goes unnoticed where H = H'. A state "
        "is a row: states @ matrix.",
        {"widen": "transposed"},
    ),
    "matrix on the teacher's side": (
        "The teacher's states are led to the student's width. It is the student that is widened "
        "(equation 8). Else a matrix of zeros and a student of zeros would agree perfectly.",
        {"widen": "teacher"},
    ),
    "matrix on both sides": (
        "Both states are multiplied by the matrix; only the student's are.",
        {"widen": "both"},
    ),
    "padding counted": (
        "States of padding are counted in the hidden loss; take real tokens only.",
        {"tokens": "all"},
    ),
    "padding zeroed but counted": (
        "States of padding are set to 0 and still counted: the mean is divided by all B · T "
        "tokens. Divide by the real ones: states[real] picks them.",
        {"tokens": "zeroed"},
    ),
    "embeddings included": (
        "The embeddings are compared as well. TinyBERT does that in a loss of its own, with a "
        "matrix of its own (equation 9); here it is layers 1 to M.",
        {"embeddings": True},
    ),
    "sum over the width": (
        "The squares are added over the H' units; expected their mean.",
        {"over": "tokens"},
    ),
    "hidden row by row": (
        "Each text was averaged by itself, then the texts. Average over all real tokens of the "
        "batch at once.",
        {"over": "rows"},
    ),
    "hidden summed": (
        "The squares are added up; expected their mean in each layer.",
        {"over": "sum"},
    ),
    "layers averaged": (MEAN_OVER_LAYERS, {"total": "mean"}),
    "last layer only": (LAST_LAYER, {"total": "last"}),
    "absolute differences": (
        "The differences are taken without their sign; they are squared.",
        {"distance": "absolute"},
    ),
}

# Slips that often come two at a time.
ATTENTION_SUSPECTS = suspects_of(
    ATTENTION_SLIPS,
    _attention,
    together=(
        "after the softmax", "mapping ignored in attention", "padding counted in attention",
        "padding zeroed but counted in attention", "sum over heads", "attention: layers averaged",
    ),
)  # fmt: skip
HIDDEN_SUSPECTS = suspects_of(
    HIDDEN_SLIPS,
    _hidden,
    together=(
        "both one layer off", "teacher one layer off", "mapping ignored", "no matrix",
        "padding counted", "padding zeroed but counted", "embeddings included", "layers averaged",
    ),
)  # fmt: skip


# ---------------------------------------------------------------- inputs

Cases = Callable[[Draw], list[Case]]
Sizes = tuple[list[int], int, int, int]  # g(1) … g(M), N, H, H'


def _case(draw: Draw, sizes: Sizes, lengths: Sequence[int]) -> Case:
    mapping, N, H, wide = sizes
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]  # (B, T)
    student, teacher = _said(draw, len(mapping), H, real), _said(draw, N, wide, real)
    return student, teacher, list(mapping), draw.normal(H, wide), real


def _said(draw: Draw, layers: int, width: int, real: Tensor) -> EncoderOutput:
    """States and scores as an encoder gives them: hidden keys have the smallest finite score."""
    (B, T), heads = real.shape, 3
    states = tuple(draw.normal(B, T, width) for _ in range(layers + 1))
    low = torch.finfo(states[0].dtype).min
    hidden = ~real[:, None, None, :]
    scores = tuple(
        (2 * draw.normal(B, heads, T, T)).masked_fill(hidden, low) for _ in range(layers)
    )
    weights = tuple(x.softmax(-1) for x in scores)
    return EncoderOutput(states[-1], None, states, weights, scores)


def _drawn(sizes: Sequence[Sizes], lengths: Sequence[Sequence[int]]) -> Cases:
    return lambda draw: [_case(draw, size, rows) for size in sizes for rows in lengths]


EQUAL: list[Sizes] = [([1], 1, 3, 3), ([2], 2, 4, 4)]  # H = H'
NARROW: list[Sizes] = [([2], 2, 2, 5), ([3], 3, 3, 4)]
MAPPED: list[Sizes] = [([2, 4], 4, 3, 5), ([3, 6, 9, 12], 12, 2, 3), ([3, 4], 4, 2, 4)]
WHOLE, PADDED = [(4, 4)], [(6, 3), (5, 2, 4)]
RICH = _drawn([([2, 4], 5, 3, 5), ([1, 3], 4, 2, 4)], PADDED)
RICH_EQUAL = _drawn([([2, 4], 5, 4, 4)], PADDED)  # where a matrix fits in any way


# ---------------------------------------------------------------- stages


def _ask_losses(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            pools = [RICH(draw), RICH_EQUAL(draw), cases(draw)]
            _expect_losses(answer, case, pools)

    return ask


def _expect_losses(answer: Answer, case: Case, pools: Sequence[Sequence[Case]]) -> None:
    given, right = _two(call(answer, *case)), layer_losses(*case)
    whole = [same_loss(mine, theirs) for mine, theirs in zip(given, right, strict=True)]
    if all(whole):
        return
    if same_loss(given[0], right[1]) and same_loss(given[1], right[0]):
        raise Mistake(
            "exchanged", "The two losses are exchanged: attention first, then hidden states."
        )
    place = whole.index(False)
    name, suspects = (("attention", ATTENTION_SUSPECTS), ("hidden", HIDDEN_SUSPECTS))[place]
    _, teacher, mapping, matrix, real = case
    assert teacher.attention_scores is not None
    said = (
        f"A student of {len(mapping)} layer(s), a teacher of {len(teacher.attention_scores)}, "
        f"g = {mapping}, widths {matrix.shape[0]} and {matrix.shape[1]}, {int(real.sum())} real "
        f"tokens of {real.numel()}: your {name} loss is {float(given[place]):.4f}; it is "
        f"{float(right[place]):.4f}."
    )

    def same(mine: Any, theirs: Tensor, _case: Case) -> bool:
        return same_loss(_two(mine)[place], theirs)

    raise told(name_suspect(answer, case, pools, suspects, same), said)


def _two(result: Any) -> tuple[Tensor, Tensor]:
    if isinstance(result, dict) and set(result) == {"attention", "hidden"}:
        result = result["attention"], result["hidden"]
    if isinstance(result, Tensor) and result.shape == (2,):
        result = result[0], result[1]
    if isinstance(result, (Tensor, float, int)):
        raise Mistake(
            "one number",
            "Your function returned one value; expected two losses, (attention, hidden).",
        )
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Mistake(
            "wrong type",
            f"Your function returned {result!r:.60}; expected two losses, (attention, hidden).",
        )
    return one_loss(result[0]), one_loss(result[1])


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    case = _case(draw, ([2, 4], 4, 3, 5), (4, 2))
    student, matrix = case[0], case[3]
    assert student.hidden_states is not None and student.attention_scores is not None
    for leaf in (student.hidden_states[1], student.attention_scores[0], matrix):
        leaf.requires_grad_()
    found, (mine, _, _, widening, _) = call_keeping(answer, *case)
    attention, hidden = _two(found)
    wanted = {
        "attention scores": (attention, mine.attention_scores[0]),
        "hidden states": (hidden, mine.hidden_states[1]),
        "matrix": (hidden, widening),
    }
    for name, (loss, leaf) in wanted.items():
        if not loss.requires_grad or not bool(gradient(loss, leaf).any()):
            whose = "the matrix" if name == "matrix" else f"the student's {name}"
            raise Mistake(
                "no gradient",
                f"The numbers are right, but no gradient reaches {whose}: it would never learn. Is "
                "there a .detach(), .item() or torch.no_grad() on the way?",
            )


LAYERS = Exercise(
    id="06.5",
    title="Think as your teacher does",
    purpose="what TinyBERT learns inside its layers",
    difficulty=4,
    minutes=20,
    signature="my_layer_losses(student, teacher, mapping, matrix, real)",
    statement=(
        "`student` (M layers, width H) and `teacher` (N layers, width H') are what two encoders "
        "computed of one batch: `.hidden_states`, the embeddings first, then each layer; "
        "`.attention_scores` (B, A, T, T) of each layer before the softmax, and `.attentions` "
        "after it. `mapping` is g(1) … g(M): the teacher's layer, counted from 1, for each layer "
        "of the student. `matrix` (H, H') widens the student; `real` (B, T) is false at padding. "
        "Return two losses, each a sum over the student's layers.  \n"
        "attention: the mean squared difference of the scores, over heads and pairs of real "
        "tokens.  \n"
        "hidden: the mean squared difference of the widened student's states and the teacher's, "
        "over units and real tokens."
    ),
    hints=(
        "for m, n in enumerate(mapping, start=1) gives the student's layer m and its teacher's n, "
        "both counted from 1.",
        "hidden_states[0] is the embeddings, so layer n is hidden_states[n]. There are no scores "
        "of embeddings, so layer n is attention_scores[n - 1].",
        "states[real] picks real tokens: (number, H). states @ matrix leads from H to H'.",
        "Pairs of real tokens: both = (real[:, :, None] & real[:, None, :])[:, None], (B, 1, T, "
        "T). Set the others to 0 with masked_fill, sum the squares, and divide by both.sum() times "
        "the number of heads.",
    ),
    solution=layer_losses,
    library=(
        "course_lib.objectives.distillation:attention_loss",
        "course_lib.objectives.distillation:hidden_loss",
        "course_lib.objectives.distillation:tinybert_loss",
    ),
    when_raised=(
        (
            "tuple index out of range",
            "Scores have no entry for the embeddings: layer n is attention_scores[n - 1], and "
            "layer n of the hidden states is hidden_states[n].",
        ),
        (
            r"\A.*(mat1 and mat2|cannot be multiplied|must match|Expected size|size mismatch)",
            "The shapes do not fit. A state of the student is H wide, one of the teacher H'; "
            "`matrix` is (H, H') and stands on the right: states @ matrix. Both have the same "
            "number of heads.",
        ),
    ),
    stages=(
        Check("one layer, equal widths", _ask_losses(_drawn(EQUAL, WHOLE))),
        Check("a narrower student", _ask_losses(_drawn(NARROW, WHOLE))),
        Check("which layer learns from which", _ask_losses(_drawn(MAPPED, WHOLE))),
        Check("rows with padding", _ask_losses(_drawn([*NARROW[:1], *MAPPED[:1]], PADDED))),
        Check("student and matrix learn", _ask_gradient),
    ),
)
