"""Exercise 07.2: words drawn from the generator, put into the text. B texts of T tokens, N selected
positions, V words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.drawing import from_torch
from course_lib.teaching.exercises.form import (
    Answer,
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Exact, Items, Numbers, Wrong


def corrupt(input_ids: Tensor, predict_at: Tensor, logits: Tensor) -> Tensor:
    """The text with a word drawn from softmax(logits) at each selected position (section 2)."""
    p = logits.detach().softmax(dim=-1)  # (N, V)
    sampled = torch.multinomial(p, 1).squeeze(1)  # (N,)
    filled = input_ids.flatten().clone()  # (B·T,), a new tensor
    filled[predict_at] = sampled
    return filled.view_as(input_ids)


# ---------------------------------------------------------------- cases, and what is looked at

MASK = 4
POSITIONS = 20_000  # two halves of 10,000 draws
POSITIVE = (0.4, 0.9, 1.4, 1.9, 2.5, 3.4)
ANY = (-2.6, -1.7, -0.9, -0.2, 0.5, 1.4)
IDS = Numbers("ids", shape="B T", kind="int")


def certain(draw: Draw, B: int, T: int, N: int, V: int, left: bool = False) -> Case:
    """One word a position is as good as certain, and not the one that stands there. left: the
    first of the selected positions shows its own word instead of [MASK]."""
    ids = draw.ids(5, V - 1, B, T)
    at = torch.randperm(B * T, generator=draw.torch)[:N].sort().values
    flat = ids.view(-1)
    certain_ids = 5 + (flat[at] - 5 + draw.ids(1, V - 6, N)) % (V - 5)
    flat[at[1:] if left else at] = MASK
    return ids, at, (60.0 * F.one_hot(certain_ids, V).double()).requires_grad_()


def ladder(draw: Draw, steps: Sequence[float]) -> Tensor:
    """Logits so far apart that wrong distributions differ from the right one, in drawn order."""
    logits = [step + draw.integer(-10, 10) / 100 for step in steps]
    draw.python.shuffle(logits)
    return torch.tensor(logits, dtype=torch.float64)


def spread(draw: Draw, steps: Sequence[float], N: int) -> Case:
    """The first N positions of one text are selected; odd ones have one distribution and even ones
    another."""
    two = torch.stack([ladder(draw, steps), ladder(draw, steps)])
    while bool(two[0].argmax() == two[1].argmax()):
        two[1] = ladder(draw, steps)
    ids = torch.where(torch.arange(N + 8) < N, MASK, 5)[None]
    return ids, torch.arange(N), two.repeat(N // 2, 1).requires_grad_()


def text(function: Answer, ids: Tensor, at: Tensor, logits: Tensor) -> Tensor:
    """What the answer returns; Wrong where it is not the ids of a whole text."""
    corrupted = function(ids, at, logits)
    if isinstance(corrupted, Tensor) and corrupted.shape in ((len(at),), (len(at), 1)) != ids.shape:
        raise Wrong(f"Your result has {len(at)} numbers: the drawn words. Put them into the text "
                    f"and return the whole text, of shape {tuple(ids.shape)}.")  # fmt: skip
    if isinstance(corrupted, Tensor) and corrupted.shape == (ids.numel(),):
        raise Wrong(f"Your result is flat, of shape {tuple(corrupted.shape)}. Restore its "
                    "rows with view_as(input_ids).")  # fmt: skip
    if isinstance(corrupted, Tensor) and corrupted.requires_grad:
        raise Wrong("A gradient would flow from your result back into the logits. The generator "
                    "must not learn from the discriminator: draw whole words, without gradient.",
                    "gradient")  # fmt: skip
    return IDS.read(corrupted, ids)


def each_anew(function: Answer, ids: Tensor, at: Tensor, logits: Tensor) -> Any:
    """In twelve calls: which positions were never filled; whether all positions with the same
    distribution got the same word; whether all calls drew the same."""
    draws = torch.stack([text(function, ids.clone(), at, logits)[0, at] for _ in range(12)])
    fives = torch.where(ids == MASK, 5, ids)  # once more, as 4 and 5 may be drawn as well
    again = torch.stack([text(function, fives.clone(), at, logits)[0, at] for _ in range(3)])
    left = (draws == MASK).all(0) & (again == 5).all(0)
    one = all(len(run[half::2].unique()) == 1 for run in draws for half in (0, 1))
    return at[left].tolist(), one, bool((draws == draws[0]).all())


def frequencies(function: Answer, ids: Tensor, at: Tensor, logits: Tensor) -> Tensor:
    """How often each word is drawn at the even and at the odd positions: (2, V)."""
    sampled, V = text(function, ids, at, logits)[0, at], logits.shape[1]
    if bool(((sampled < 0) | (sampled >= V)).any()):
        raise Wrong(f"You put in ids outside the vocabulary: expected 0 to {V - 1}.")
    return torch.stack([torch.bincount(sampled[half::2], minlength=V) for half in (0, 1)]) / (
        len(at) / 2
    )


def elsewhere(function: Answer, ids: Tensor, at: Tensor, logits: Tensor) -> Tensor:
    """The ids at the positions that were not selected."""
    kept = torch.ones(ids.numel(), dtype=torch.bool).index_fill(0, at, False)
    return text(function, ids, at, logits).flatten()[kept]


EACH = (
    Items("selected positions that still show [MASK]", of="positions"),
    Exact("all positions with the same distribution get the same word"),
    Exact("twelve calls draw the same"),
)
# Two samples of 10,000 differ by a standard deviation of at most 0.0071: the tolerance is five.
DRAWN = Numbers("fraction of draws of each word at even and at odd positions", tol=0.035)

SEVERAL = ((3, 7, 6, 20), (2, 9, 5, 30))
several, few = each(certain, *SEVERAL), each(spread, (POSITIVE, 32))
P, DRAW, PUT = (
    "logits.detach().softmax(dim=-1)", "torch.multinomial(p, 1).squeeze(1)",
    "filled[predict_at] = sampled",
)  # fmt: skip
RAW = "A logit is not a probability: apply softmax."

CORRUPTING = Exercise(
    **written("07.2"),
    solution=corrupt,
    returns=IDS,
    library=(
        "course_lib.family.electra:fill_in",
        "course_lib.kernels.sampling:sample_tokens_reference",
    ),
    see="course_lib.kernels.sampling.sample_tokens draws for all positions at once",
    when_raised=(
        (r"probability tensor contains|invalid multinomial|Expected parameter probs|"
         r"constraint Simplex", "torch.multinomial needs probabilities, but logits can be "
         "negative: apply softmax(dim=-1) first."),
        (r"shape mismatch: value tensor of shape \[(\d+), 1\]",
         "torch.multinomial(…, 1) gives (N, 1), but N positions need (N,): add .squeeze(1)."),
        (r"shape mismatch|number of elements", "The numbers of positions and words differ. "
         "predict_at says where the words go; it counts through the flattened ids, and a selected "
         "position need not hold [MASK]."),
        (r"out of bounds|out of range", "predict_at counts through the whole batch, b·T + t. It is "
         "an index into input_ids.flatten(), not into the rows."),
        (r"requires grad|requires_grad", "The logits carry a gradient. Draw under "
         "torch.no_grad(), or from logits.detach()."),
    ),
    stages=(
        Stage("one text: each position is drawn, and anew at each call", few,
              each_anew, EACH),
        Stage("words come as often as their probability says",
              each(spread, (POSITIVE, POSITIONS)), frequencies, DRAWN),
        Stage("logits below zero too", each(spread, (ANY, POSITIONS)), frequencies, DRAWN),
        Stage("all other tokens stay", several, elsewhere,
              Numbers("ids at positions that were not selected", kind="int")),
        Stage("where the words go, several texts", several, text),
        Stage("a selected position that shows its own word",
              each(certain, *((*sizes, True) for sizes in SEVERAL)), text),
        from_torch(few),
    ),
    mistakes=(
        Edit(DRAW, "p.argmax(-1)", "You always put in the most likely word. Then a text is "
             "corrupted in the same way in every epoch, and the discriminator sees only the "
             "generator's favourites. Draw the words at random."),
        Edit(DRAW, "(p.cumsum(-1) < torch.rand(1)).sum(-1).clamp(max=p.shape[1] - 1)",
             "All positions with the same distribution get the same word: one random number "
             "decides for the whole batch. Each position needs a draw of its own."),
        Edit("torch.multinomial(p, 1)",
             "torch.multinomial(p, 1, generator=torch.Generator().manual_seed(1))",
             "All calls draw the same words: the random numbers are fixed inside your function. A "
             "text must be corrupted anew in every epoch."),
        Edit(PUT, "pass", "You return the text unchanged. Put the drawn words in at predict_at."),
        Edit(P, "torch.ones_like(logits)", "You draw every word equally often: the logits have no "
             "effect. Draw each word with its probability, softmax(logits)."),
        Edit(P, "logits.detach().clamp(min=1e-9)", f"The logits themselves are taken for "
             f"probabilities. {RAW}"),
        Edit(P, "logits.detach() - logits.amin(-1, keepdim=True)",
             f"The logits, shifted to start at zero, are taken for probabilities. {RAW}"),
        Edit(P, "logits.detach().abs()",
             f"The logits without their sign are taken for probabilities. {RAW}"),
        Edit(P, f"{P}.softmax(-1)", "You apply the softmax twice, so the probabilities are nearly "
             "equal. torch.multinomial needs softmax(logits); Categorical(logits=…) needs the "
             "logits."),
        Edit(P, "logits.detach().softmax(0)", "Your softmax runs over the positions (axis 0). The "
             "probabilities of the words at one position must add up to 1: dim=-1."),
        Edit(P, "logits.detach().sigmoid()", "You compute probabilities with a sigmoid. The words "
             "at one position exclude each other: use softmax."),
        Edit(P, "(-logits.detach()).softmax(-1)", "Unlikely words are drawn often and likely ones "
             "rarely: you reversed the sign of the logits."),
        Edit(P, "logits.detach()[:1].softmax(-1).expand_as(logits)",
             "You fill every position from the distribution of the first one. Each position has "
             "its own distribution, a row of the logits."),
        Edit(PUT, "filled.view_as(input_ids)[predict_at % len(input_ids), predict_at // "
             "len(input_ids)] = sampled", "You split predict_at with B where T belongs. It counts "
             "along the rows: position t of row b is b·T + t, so the row is at // T and the column "
             "at % T."),
        Edit(PUT, "filled.view_as(input_ids)[0, predict_at % input_ids.shape[1]] = sampled",
             "All words land in the first row. predict_at counts through the whole batch, b·T + t: "
             "flatten the ids, or take at // T as the row."),
        Edit(PUT, "filled.view_as(input_ids)[:, predict_at % input_ids.shape[1]] = sampled",
             "Each word is put into every row at its column. predict_at counts through the whole "
             "batch, b·T + t: it names one position of one row."),
        Edit(PUT, "filled[predict_at - 1] = sampled",
             "Each word lands one position too early: predict_at counts from 0."),
        Edit(PUT, "filled[(predict_at + 1) % len(filled)] = sampled",
             "Each word lands one position too late: predict_at counts from 0."),
        Edit(PUT, "at = (filled == MASK).nonzero()[:, 0]; filled[at[: len(sampled)]] = "
             "sampled[: len(at)]",
             "You put the words where a [MASK] is. A position can be selected although its own "
             "word was left in place; the generator's word goes there too. predict_at says where."),
        Edit(PUT, "gaps = filled[predict_at] == MASK; filled[predict_at[gaps]] = sampled[gaps]",
             "You left out a selected position that holds its own word. The generator predicts "
             "there too, and its word goes in at every position of predict_at."),
        Edit(PUT, "filled[predict_at] = sampled.sort().values",
             "The words arrive at the right positions in another order: the i-th row of the logits "
             "belongs to the i-th number in predict_at."),
        Edit("filled = input_ids.flatten().clone()",
             "filled = torch.full((input_ids.numel(),), MASK)",
             "Your result contains only the drawn words; all other tokens of the text must stay. "
             "Start from a copy of input_ids."),
    ),
)  # fmt: skip
