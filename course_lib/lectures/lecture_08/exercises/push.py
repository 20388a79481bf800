"""Exercise 08.5: one step of SiFT's push. B texts, T tokens, width H.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
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
    writes_into,
)

Case = tuple[Tensor, Tensor, Tensor, float]  # embeddings, push, slope, all (B, T, H); step
Pair = tuple[Tensor, Tensor]  # the new push, what the model reads; both (B, T, H)
Cases = Callable[[Draw], list[Case]]
TOLERANCE = 1e-4  # so that neither the ε of the normalisation nor one below the line matters


def climb(embeddings: Tensor, push: Tensor, slope: Tensor, step: float) -> Pair:
    """(new push, normalised embeddings + new push): one step uphill (section 4, and its code)."""
    largest = slope.abs().amax(-1, keepdim=True)  # (B, T, 1), of each token
    new = push + step * slope / largest.clamp(min=1e-12)  # a token without slope stays
    return new, F.layer_norm(embeddings, embeddings.shape[-1:]) + new


# ---------------------------------------------------------------- known wrong answers


def _biggest(slope: Tensor, *axes: int) -> Tensor:
    return slope.abs().amax(axes or (0, 1, 2), keepdim=True)


def _length(slope: Tensor, *axes: int) -> Tensor:
    return slope.square().sum(axes or (0, 1, 2), keepdim=True).sqrt()


CLIPPING = (
    "That is clipping: it leaves short slopes alone and shortens long ones. One lecture prints it "
    "under the name of SiFT. Here each token's slope, short or long, is divided by its largest "
    "entry, then multiplied by `step`."
)
# The slope of the batch, or of each token, is cut to a length of `step` or of 1.
CLIPPED: tuple[Callable[[Tensor, Tensor, float], Tensor], ...] = (
    lambda p, g, s: p + g / (_length(g) / s).clamp(min=1),
    lambda p, g, s: p + g / (_length(g, 2) / s).clamp(min=1),
    lambda p, g, s: p + s * g / _length(g).clamp(min=1),
    lambda p, g, s: p + s * g / _length(g, 2).clamp(min=1),
    lambda p, g, s: p + g / _length(g).clamp(min=1),
    lambda p, g, s: p + g / _length(g, 2).clamp(min=1),
    lambda p, g, s: p + s * g / (_length(g) / s).clamp(min=1),
    lambda p, g, s: p + s * g / (_length(g, 2) / s).clamp(min=1),
)

# (key, what is said, (push, slope, step) -> new push)
CLIMBS: tuple[tuple[str, str, Callable[[Tensor, Tensor, float], Tensor]], ...] = (
    ("", "", lambda p, g, s: p + s * g / _biggest(g, 2)),
    (
        "downhill",
        "You go *down* the slope, as an optimiser does with weights. The push looks for the place "
        "where the answer changes most: go up.",
        lambda p, g, s: p - s * g / _biggest(g, 2),
    ),
    *(("gradient clipping", CLIPPING, rule) for rule in CLIPPED),
    (
        "entries clipped",
        "Every entry of the slope is cut off at ±`step`. Nothing is cut here: each token's slope "
        "is divided by its largest entry, and keeps its direction.",
        lambda p, g, s: p + g.clamp(-s, s),
    ),
    (
        "slope undivided",
        "The slope is multiplied by `step` as it is. Then a token with a steep slope is pushed far "
        "and others hardly. Divide each token's slope by its largest entry.",
        lambda p, g, s: p + s * g,
    ),
    (
        "largest of all",
        "The slope is divided by the largest entry of the whole batch. Each *token* has its own: "
        ".amax(-1, keepdim=True).",
        lambda p, g, s: p + s * g / _biggest(g),
    ),
    (
        "largest of the text",
        "The slope is divided by the largest entry of a text. Each *token* has its own: .amax(-1, "
        "keepdim=True).",
        lambda p, g, s: p + s * g / _biggest(g, 1, 2),
    ),
    (
        "largest over the tokens",
        "The slope is divided by the largest entry of a *column*, over the tokens. Each token has "
        "its own: .amax(-1, keepdim=True).",
        lambda p, g, s: p + s * g / _biggest(g, 1),
    ),
    (
        "largest over the texts",
        "The slope is divided by the largest entry over the *texts*, place by place. Each token "
        "has its own: .amax(-1, keepdim=True).",
        lambda p, g, s: p + s * g / _biggest(g, 0),
    ),
    (
        "push normalised",
        "The new push is normalised as well. Only the embeddings are: the push stays small, and "
        "as long as the steps have made it.",
        lambda p, g, s: _normed(p + s * g / _biggest(g, 2)),
    ),
    (
        "push normalised",
        "The new push is divided by its largest entry. Only the *slope* is divided by its largest "
        "entry, before the step is added.",
        lambda p, g, s: (p + s * g / _biggest(g, 2)) / _biggest(p + s * g / _biggest(g, 2), 2),
    ),
    (
        "length instead of largest",
        "The slope is divided by its length, the square root of the sum of squares. Here it is the "
        "largest entry: after it, that entry moves by `step` exactly.",
        lambda p, g, s: p + s * g / _length(g, 2),
    ),
    (
        "length of all",
        "The slope of the whole batch is divided by its length. Each token's slope is divided by "
        "its own largest entry.",
        lambda p, g, s: p + s * g / _length(g),
    ),
    (
        "sum instead of largest",
        "The slope is divided by the sum of its entries' sizes. It is the largest of them.",
        lambda p, g, s: p + s * g / g.abs().sum(-1, keepdim=True),
    ),
    (
        "largest with sign",
        "The slope is divided by its largest entry with signs: where a negative one is the "
        "farthest from zero, another is taken. Take slope.abs() first.",
        lambda p, g, s: p + s * g / g.amax(-1, keepdim=True),
    ),
    (
        "sign only",
        "Every entry moves by the same amount: only the sign of the slope is used. Here small "
        "entries move less than large ones.",
        lambda p, g, s: p + s * g.sign(),
    ),
    (
        "old push forgotten",
        "The new push is the step alone. It is the old push *plus* the step.",
        lambda p, g, s: s * g / _biggest(g, 2),
    ),
    (
        "step forgotten",
        "`step` has no effect: the divided slope is multiplied by it.",
        lambda p, g, s: p + g / _biggest(g, 2),
    ),
    (
        "not climbed",
        "The push comes back as it was: the slope has no effect.",
        lambda p, g, s: p,
    ),
)

# (key, what is said, (embeddings, old push, new push) -> what the model reads)
READINGS: tuple[tuple[str, str, Callable[[Tensor, Tensor, Tensor], Tensor]], ...] = (
    ("", "", lambda e, old, new: _normed(e) + new),
    (
        "not normalised",
        "The push is added to the embeddings as they are. SiFT normalises them first: then a push "
        "of one size means the same in a model with long vectors and in one with short.",
        lambda e, old, new: e + new,
    ),
    (
        "normalised afterwards",
        "You push first and normalise then: long vectors hardly notice the push, and short ones "
        "drown in it. Normalise first.",
        lambda e, old, new: _normed(e + new),
    ),
    (
        "normalised twice",
        "The sum of normalised embeddings and push is normalised once more. It is read as it is: "
        "normalising is over before the push comes.",
        lambda e, old, new: _normed(_normed(e) + new),
    ),
    (
        "push normalised to be read",
        "What is to be read has the push on it *normalised*. Only the embeddings are normalised; "
        "the push is added as it is.",
        lambda e, old, new: _normed(e) + _normed(new),
    ),
    (
        "only centred",
        "The mean of each token is subtracted, but it is not divided by the standard deviation.",
        lambda e, old, new: e - e.mean(-1, keepdim=True) + new,
    ),
    (
        "not centred",
        "Each token is divided by its standard deviation, but its mean is not subtracted.",
        lambda e, old, new: e / e.std(-1, correction=0, keepdim=True) + new,
    ),
    (
        "length one",
        "Each token is made as long as 1. Layer normalisation subtracts the mean of its entries "
        "and divides by their standard deviation.",
        lambda e, old, new: F.normalize(e, dim=-1) + new,
    ),
    (
        "H − 1 below the line",
        "Your standard deviation divides by H − 1, as torch.std does unless told otherwise. Layer "
        "normalisation divides by H: correction=0.",
        lambda e, old, new: (e - e.mean(-1, keepdim=True)) / e.std(-1, keepdim=True) + new,
    ),
    (
        "divided by the variance",
        "Each token is divided by its variance. It is divided by the square root of that.",
        lambda e, old, new: (
            (e - e.mean(-1, keepdim=True)) / e.var(-1, correction=0, keepdim=True) + new
        ),
    ),
    (
        "normalised over the batch",
        "Mean and standard deviation are those of the whole batch. Each token is normalised by "
        "itself, over its H entries.",
        lambda e, old, new: F.layer_norm(e, e.shape) + new,
    ),
    (
        "normalised over the text",
        "Mean and standard deviation are those of a whole text. Each token is normalised by "
        "itself, over its H entries.",
        lambda e, old, new: F.layer_norm(e, e.shape[1:]) + new,
    ),
    (
        "old push",
        "What is to be read has the *old* push on it. Add the new one.",
        lambda e, old, new: _normed(e) + old,
    ),
    (
        "step alone",
        "What is to be read has only the last step on it. The push is the old one plus the step.",
        lambda e, old, new: _normed(e) + new - old,
    ),
    (
        "pushed twice",
        "What is to be read has both pushes on it, the old one and the new one, which contains the "
        "old one already.",
        lambda e, old, new: _normed(e) + old + new,
    ),
    (
        "no push",
        "What is to be read has no push on it: add the new one to the normalised embeddings.",
        lambda e, old, new: _normed(e),
    ),
    (
        "push taken off",
        "The push is subtracted from the normalised embeddings. Add it.",
        lambda e, old, new: _normed(e) - new,
    ),
    (
        "no embeddings",
        "The second result is the push alone. The model reads normalised embeddings plus push.",
        lambda e, old, new: new,
    ),
)


def _normed(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def _suspects() -> list[Suspect]:
    """One mistake first, then one of each kind together."""
    every = [_suspect(rule, reading) for rule, reading in product(CLIMBS, READINGS)]
    other = Suspect(
        "the other order",
        "The two results are right, in the other order: first the new push, then what is read.",
        lambda *given: climb(*given)[::-1],
    )
    named = [other, *(suspect for suspect in every if suspect.key)]
    return sorted(named, key=lambda suspect: " + " in suspect.key)


def _suspect(rule: Any, reading: Any) -> Suspect:
    parts = [part for part in (rule, reading) if part[0]]

    def compute(embeddings: Tensor, push: Tensor, slope: Tensor, step: float) -> Pair:
        new = rule[2](push, slope, step)
        return new, reading[2](embeddings, push, new)

    return Suspect(" + ".join(p[0] for p in parts), " ".join(p[1] for p in parts), compute)


PUSH_SUSPECTS = _suspects()


# ---------------------------------------------------------------- inputs


def _case(draw: Draw, B: int, T: int, even: float = 0.0, normed: bool = False) -> Case:
    """even: every token's largest slope is that; normed: the embeddings are normalised already.

    Lengths of words and slopes differ from token to token, as they do in a model."""
    H = 6
    embeddings = draw.normal(B, T, H) * draw.ids(2, 30, B, T, 1) + draw.ids(-9, 9, B, T, 1)
    slope = draw.normal(B, T, H) * draw.ids(1, 40, B, T, 1)
    slope[..., 0] = -1.2 * slope.abs().amax(-1)  # the farthest from zero is below it,
    slope[..., 1] = slope[..., 1].abs()  # and one at least is above
    slope = slope[..., torch.randperm(H, generator=draw.torch)]
    if even:
        slope = even * slope / _biggest(slope, 2)
    if normed:
        embeddings = _normed(embeddings)
    step = (draw.integer(3, 9) + 10 * draw.integer(0, 1)) / 10  # never 1
    return embeddings, draw.normal(B, T, H), slope, step


def _plain(draw: Draw) -> list[Case]:
    return [_case(draw, 1, 1, even=1.0, normed=True), _case(draw, 1, 3, even=1.0, normed=True)]


def _short(draw: Draw) -> list[Case]:
    """Slopes shorter than 1 and than any step, those of a whole text together, too."""
    return [_case(draw, 1, tokens, even=0.05, normed=True) for tokens in (1, 3)]


def _uneven(draw: Draw) -> list[Case]:
    return [_case(draw, 1, 1, normed=True), _case(draw, 1, 4, normed=True), *_short(draw)]


def _long(draw: Draw) -> list[Case]:
    return [_case(draw, 1, 1), _case(draw, 1, 4)]


def _batch(draw: Draw) -> list[Case]:
    """In the last one even the slope of the whole batch is shorter than a step."""
    return [_case(draw, 3, 4), _case(draw, 3, 4), _case(draw, 3, 4, even=0.03)]


# ---------------------------------------------------------------- stages


def _ask_push(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case), case), climb(*case)
            if _agree(given, right):
                continue
            pools = [_batch(draw), [*_long(draw), *_short(draw)], _uneven(draw)]
            pools.append([*cases(draw), *_short(draw)])
            found = name_suspect(answer, case, pools, PUSH_SUSPECTS, _same)
            raise told(found, _example(case, given, right))

    return ask


def _example(case: Case, given: Pair, right: Pair) -> str:
    part = 0 if not close(given[0], right[0], TOLERANCE) else 1
    off = (given[part] - right[part]).abs().nan_to_num(1e9).amax(-1)
    b, t = (int(x) for x in (off == off.max()).nonzero()[0])
    what = ("new push", "vector to be read")[part]

    def shown(x: Tensor) -> str:
        return ", ".join(f"{value:.3f}" for value in x[b, t, :3].tolist())

    return (
        f"Token {t} of text {b}: slope {shown(case[2])}, …, largest "
        f"{case[2][b, t].abs().max():.3f}; step {case[3]:g}; old push {shown(case[1])}, …. "
        f"Its {what} begins with {shown(given[part])} in your result; it is {shown(right[part])}."
    )


def _read(x: Any, case: Case) -> Pair:
    if (isinstance(x, Tensor) and x.shape == case[0].shape) or not isinstance(x, (tuple, list)):
        raise Mistake(
            "one result",
            f"Your function returned one thing, {type(x).__name__}; expected two tensors, the new "
            "push and what the model reads.",
        )
    if len(x) != 2:
        raise Mistake(
            "wrong type", f"Your function returned {len(x)} things; expected two, both tensors."
        )
    shape = tuple(case[0].shape)
    first = expect_tensor(x[0], shape, "the new push, a vector for every token")
    return first, expect_tensor(x[1], shape, "what the model reads, a vector for every token")


def _agree(mine: Pair, theirs: Pair) -> bool:
    return all(close(a, b, TOLERANCE) for a, b in zip(mine, theirs, strict=True))


def _same(mine: Any, theirs: Pair, case: Case) -> bool:
    return _agree(_read(mine, case), theirs)


def _ask_flat(answer: Answer, draw: Draw) -> None:
    """A token whose slope is zero in every direction: padding, for one."""
    embeddings, push, slope, step = _case(draw, 2, 3)
    slope[1, 2] = 0
    given = _read(call(answer, embeddings, push, slope, step), (embeddings, push, slope, step))
    right = climb(embeddings, push, slope, step)
    if _agree(given, right):
        return
    raise Mistake(
        "nought by nought",
        "A token has no slope at all (padding, for one). Its slope divided by its largest entry "
        f"is 0/0, and your new push holds {given[0][1, 2, :3].tolist()}, …. It keeps the old push: "
        "put something tiny below the line, 1e-6 for one.",
    )


def _ask_untouched(answer: Answer, draw: Draw) -> None:
    """What is given is used elsewhere, too: with the old push the step can be taken again."""
    place = writes_into(answer, *_case(draw, 2, 3))
    if place is not None:
        name = ("embeddings", "push", "slope", "step")[place]
        raise Mistake(
            "writes into its input",
            f"Your function changes {name} itself (+= adds in place). Others still need it: write "
            "a = a + b.",
        )


PUSH = Exercise(
    id="08.5",
    title="One step uphill",
    purpose="SiFT is a push to what is read, not a limit for what is learned",
    difficulty=2,
    minutes=12,
    signature="my_push(embeddings, push, slope, step)",
    statement=(
        "All three tensors are (B, T, H). `embeddings` are the vectors of the words before their "
        "LayerNorm; `push` is what was added so far; `slope` is how much the answer's change grows "
        "along each entry of the push. Climb once: divide each *token's* slope by its entry that "
        "is farthest from zero (without its sign), and add `step` times that to the push; leave "
        "what is given as it is. Return two tensors: the new push, and what the model reads with "
        "it, namely the embeddings, normalised token by token (mean 0, variance 1, no gain and no "
        "bias), plus the new push."
    ),
    hints=(
        "The farthest from zero: slope.abs().amax(dim=-1, keepdim=True), of shape (B, T, 1).",
        "Uphill is plus: push + step * slope / largest.",
        "F.layer_norm(x, x.shape[-1:]) normalises every token over its H entries; without a "
        "module it has neither gain nor bias.",
        "What if a token's slope is zero everywhere? largest + 1e-6 keeps the division harmless.",
        "return new, normed + new",
    ),
    solution=climb,
    see="course_lib.objectives.sift.sift_loss (the push begins at random; one step is climbed)",
    when_raised=(
        (
            r"size of tensor|must match",
            "The largest entry of each token needs its axis to divide by: amax(dim=-1, "
            "keepdim=True) is (B, T, 1).",
        ),
        (
            r"namedtuple|unsupported operand|torch.return_types",
            ".max(dim=…) gives two things, values and places. .amax(dim=-1, keepdim=True) gives "
            "the values alone.",
        ),
        (
            r"normalized_shape",
            "F.layer_norm wants the sizes of the axes it normalises over: x.shape[-1:], for every "
            "token by itself.",
        ),
    ),
    stages=(
        Check("the largest slope is 1, the words are normalised already", _ask_push(_plain)),
        Check("slopes of a length below 1", _ask_push(_short)),
        Check("slopes of any size", _ask_push(_uneven)),
        Check("words of any length", _ask_push(_long)),
        Check("several texts", _ask_push(_batch)),
        Check("a token without any slope", _ask_flat),
        Check("the old push stays as it is", _ask_untouched),
    ),
)
