"""Exercise 02.3: the 80/10/10 rule.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.machinery import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    call,
    expect_tensor,
    share_is,
    writes_into,
)


def corrupt(
    input_ids: Tensor, chosen: Tensor, mask_id: int, vocab_size: int, generator: torch.Generator
) -> Tensor:
    """Of the chosen positions 80% become [MASK], 10% a random id, 10% stay (section 3.1)."""
    share = torch.rand(input_ids.shape, generator=generator)
    random_ids = torch.randint(vocab_size, input_ids.shape, generator=generator)
    corrupted = input_ids.clone()
    corrupted[chosen & (share < 0.8)] = mask_id
    replaced = chosen & (share >= 0.8) & (share < 0.9)
    corrupted[replaced] = random_ids[replaced]
    return corrupted


def _masking_case(draw: Draw, rows: int, length: int, rate: float) -> tuple[Any, ...]:
    """Ids crowded in the vocabulary's lower half: random ids can be told from borrowed ones."""
    vocab_size, mask_id = draw.integer(80, 160), draw.integer(3, 9)
    ids = torch.minimum(*(draw.ids(mask_id + 1, vocab_size - 1, rows, length) for _ in range(2)))
    chosen = torch.rand(rows, length, generator=draw.torch) < rate
    return ids, chosen, mask_id, vocab_size, draw.generator()


def _call_masking(answer: Answer, case: tuple[Any, ...]) -> Tensor:
    given = expect_tensor(call(answer, *case), tuple(case[0].shape), "ids, one for each given id")
    if given.dtype.is_floating_point:
        raise Mistake(
            "not whole numbers",
            f"Your result has type {given.dtype}; expected whole numbers, int64.",
        )
    return given


def _ask_form(answer: Answer, draw: Draw) -> None:
    ids, _chosen, mask_id, vocab_size, generator = _masking_case(draw, 2, 6, 0.5)
    nothing = torch.zeros_like(ids, dtype=torch.bool)
    given = _call_masking(answer, (ids, nothing, mask_id, vocab_size, generator))
    if not torch.equal(given, ids):
        raise Mistake(
            "changes unchosen",
            f"Nothing was chosen, and yet {int((given != ids).sum())} of {ids.numel()} ids "
            "changed. The 80, 10 and 10 percent are of the chosen positions, not of all.",
        )
    everything = torch.ones_like(nothing)
    if (
        writes_into(
            answer, ids.repeat(9, 9), everything.repeat(9, 9), mask_id, vocab_size, generator
        )
        == 0
    ):
        raise Mistake(
            "writes into its input",
            "Your function writes into input_ids itself. The originals are the answers the model "
            "must give: work on input_ids.clone().",
        )


def _ask_unchosen(answer: Answer, draw: Draw) -> None:
    case = _masking_case(draw, 50, 40, 0.15)
    ids, chosen = case[:2]
    changed = (_call_masking(answer, case) != ids) & ~chosen
    if changed.any():
        n, t = (int(i) for i in changed.nonzero()[0])
        raise Mistake(
            "changes unchosen",
            f"{int(changed.sum())} of {int((~chosen).sum())} positions changed although they were "
            f"not chosen, the first at [{n}, {t}]. Combine every condition with `chosen`.",
        )


def _ask_shares(answer: Answer, draw: Draw) -> None:
    _name_one_draw(answer, draw)
    case = _masking_case(draw, 200, 200, 0.5)
    ids, chosen, mask_id, vocab_size, _ = case
    given = _call_masking(answer, case)
    n = int(chosen.sum())
    masked = int((chosen & (given == mask_id)).sum()) / n
    kept = int((chosen & (given == ids)).sum()) / n
    replaced = 1 - masked - kept
    by_chance = 0.1 / vocab_size  # a random id may be [MASK], or the original
    if share_is(masked, 0.8 + by_chance, n) and share_is(kept, 0.1 + by_chance, n):
        return
    key, said = _name_shares(torch.tensor([masked, replaced, kept]), n, vocab_size)
    raise Mistake(
        key,
        f"{said}Of {n:,} chosen positions {masked:.1%} became [MASK], {replaced:.1%} another id "
        f"and {kept:.1%} stayed; expected 80%, 10%, 10% (each within six standard deviations, at "
        "most 1.7 points).",
    )


def _name_one_draw(answer: Answer, draw: Draw) -> None:
    """Many generator states, because which fate all positions share is luck."""
    ids, _chosen, mask_id, vocab_size, _ = _masking_case(draw, 10, 10, 0.5)
    chosen = torch.ones_like(ids, dtype=torch.bool)
    fates = set()
    for _ in range(40):
        given = _call_masking(answer, (ids, chosen, mask_id, vocab_size, draw.generator()))
        fates.add(_common_fate(given, ids, mask_id))
        if "" in fates:
            return
    if len(fates) > 1:
        raise Mistake(
            "one draw for all",
            "One draw decides for all positions: with 40 generators it was all or nothing every "
            "time. Draw a number for each position: torch.rand(input_ids.shape, "
            "generator=generator).",
        )


def _common_fate(given: Tensor, ids: Tensor, mask_id: int) -> str:
    """What became of nearly all positions, or an empty string where their fates differ."""
    masked, kept = (float((given == x).double().mean()) for x in (mask_id, ids))
    if max(masked, kept) > 0.9:
        return "masked" if masked > kept else "kept"
    return "replaced" if max(masked, kept) < 0.1 else ""


# Recognisable wrong mixes: [MASK], random, kept.
WRONG_MIXES: tuple[tuple[str, tuple[float, float, float], str], ...] = (
    (
        "all masked",
        (1.0, 0.0, 0.0),
        "Every chosen position becomes [MASK]. The model would learn that a real word is never "
        "asked about, and at fine-tuning there is no [MASK]. ",
    ),
    (
        "nothing changed",
        (0.0, 0.0, 1.0),
        "Nothing is changed at all: was the result written into a copy that is not returned? ",
    ),
    (
        "no random",
        (0.8, 0.0, 0.2),
        "The 10% of random ids are missing: those positions keep their word. ",
    ),
    ("none kept", (0.8, 0.2, 0.0), "No chosen position keeps its word: 10% should. "),
    (
        "no kept, all else masked",
        (0.9, 0.1, 0.0),
        "No chosen position keeps its word: 10% should stay, and 80% (not 90%) become [MASK]. ",
    ),
    (
        "no random, all else masked",
        (0.9, 0.0, 0.1),
        "There are no random ids: 10% should be, and 80% (not 90%) become [MASK]. ",
    ),
    (
        "ten percent of the rest",
        (0.8, 0.02, 0.18),
        "The random 10% were taken of the 20% that were left. They are 10% of all chosen "
        "positions: half of the rest. ",
    ),
    (
        "second draw over the first",
        (0.72, 0.1, 0.18),
        "The random ids were drawn over all chosen positions after the masks, and replace some "
        "of them. One draw must decide between the three. ",
    ),
    (
        "masks overwritten",
        (0.0, 0.9, 0.1),
        "No [MASK] is left: the random ids were written over them. They are for numbers from 0.8 "
        "to 0.9 only; a condition `< 0.9` alone holds below 0.8 too. ",
    ),
    (
        "shares swapped",
        (0.1, 0.8, 0.1),
        "The shares are swapped: 80% is for [MASK], 10% for random ids. ",
    ),
    ("shares rotated", (0.1, 0.1, 0.8), "The shares are swapped: 80% is for [MASK], 10% stay. "),
    (
        "chosen again",
        (0.12, 0.015, 0.865),
        "The 15% were drawn a second time. `chosen` already is the result of that draw; the "
        "shares here are of the chosen positions. ",
    ),
    (
        "thirds",
        (1 / 3, 1 / 3, 1 / 3),
        "The three cases are equally likely; expected 80, 10 and 10. ",
    ),
)


def _name_shares(found: Tensor, n: int, vocab_size: int) -> tuple[str, str]:
    """The wrong mix nearest to the shares found, if it lies within six standard deviations."""

    def distance(mix: tuple[float, float, float]) -> float:
        by_chance = mix[1] / vocab_size
        expected = torch.tensor(mix) + torch.tensor([by_chance, -2 * by_chance, by_chance])
        return float((found - expected).abs().max())

    key, mix, said = min(WRONG_MIXES, key=lambda known: distance(known[1]))
    return (key, said) if distance(mix) < 3 / math.sqrt(n) else ("", "")


def _ask_each_alone(answer: Answer, draw: Draw) -> None:
    case = _masking_case(draw, 200, 100, 0.5)
    _ids, chosen, mask_id = case[:3]
    masked = (_call_masking(answer, case) == mask_id) & chosen
    by_row = masked.sum(1) / chosen.sum(1).clamp(min=1)
    if int(((by_row < 0.4) | (by_row == 1)).sum()) > 20:
        raise Mistake(
            "one draw a row",
            "All chosen positions of a row share one fate. Draw a number for each position: "
            "torch.rand(input_ids.shape, generator=generator).",
        )
    halves = [(masked[:, part].sum() / chosen[:, part].sum()).item() for part in _HALVES]
    order = [
        m.sum() / c.sum()
        for m, c in zip(*(_early_late(x, chosen) for x in (masked, chosen)), strict=True)
    ]
    if abs(halves[0] - halves[1]) > 0.06 or abs(float(order[0] - order[1])) > 0.06:
        raise Mistake(
            "fate by place",
            "Early chosen positions are treated differently from late ones: the fate was dealt "
            "out in order. It must be drawn at random for each position.",
        )
    _name_quotas(answer, draw)


def _name_quotas(answer: Answer, draw: Draw) -> None:
    """The number of masks among 100 positions varies by about 4; a quota's does not vary."""
    chosen = torch.ones(10, 10, dtype=torch.bool)
    ids, mask_id, vocab_size = draw.ids(10, 49_999, 10, 10), 3, 50_000
    masked = [
        _call_masking(answer, (ids, chosen, mask_id, vocab_size, draw.generator())) == mask_id
        for _ in range(30)
    ]
    numbers = [int(m.sum()) for m in masked]
    drawn = any(not torch.equal(m, masked[0]) for m in masked)  # else: see _ask_generator
    if drawn and max(numbers) - min(numbers) <= 1:  # 1: a random id may be [MASK]'s
        raise Mistake(
            "exact quotas",
            f"Of 100 chosen positions {numbers[0]} became [MASK] with every one of 30 generators: "
            "the number was fixed, and only the places drawn. Each position is drawn by itself, "
            "so the number varies, by about 4 in 100.",
        )


_HALVES = (slice(0, 50), slice(50, 100))


def _early_late(x: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """x at the first and at the last half of the chosen positions, in reading order."""
    flat = x[chosen]
    return flat[: len(flat) // 2], flat[len(flat) // 2 :]


def _ask_range(answer: Answer, draw: Draw) -> None:
    case = _masking_case(draw, 300, 300, 0.5)
    ids, chosen, mask_id, vocab_size, _ = case
    given = _call_masking(answer, case)
    drawn = given[chosen & (given != ids) & (given != mask_id)]  # about 4,500
    seen = torch.bincount(drawn.clamp(0, vocab_size), minlength=vocab_size)
    if int(drawn.min()) < 0 or int(drawn.max()) >= vocab_size:
        raise Mistake(
            "outside the vocabulary",
            f"Random ids from {int(drawn.min())} to {int(drawn.max())} appear; the vocabulary "
            f"ends at {vocab_size - 1}.",
        )
    if int((seen > 0).sum()) == 1:
        raise Mistake(
            "one random id",
            f"All random replacements are the same id, {int(drawn[0])}. Draw one for each "
            "position.",
        )
    _expect_whole_range(drawn, mask_id, vocab_size)
    _expect_even(seen, ids, mask_id, vocab_size)


def _expect_whole_range(drawn: Tensor, mask_id: int, vocab_size: int) -> None:
    low, high = int(drawn.min()), int(drawn.max())
    lowest = 1 if mask_id == 0 else 0
    if low > lowest:
        raise Mistake(
            "range begins late",
            f"No random id below {low} ever appears among {len(drawn):,}. The released code draws "
            "from the whole vocabulary, 0 and the special tokens included.",
        )
    if high < vocab_size - 1:
        raise Mistake(
            "range ends early",
            f"No random id above {high} ever appears among {len(drawn):,}; the vocabulary goes to "
            f"{vocab_size - 1}. Note that torch.randint leaves out its upper end.",
        )


def _expect_even(seen: Tensor, ids: Tensor, mask_id: int, vocab_size: int) -> None:
    """Every id about equally often; drawing the original is not seen: frequent words lose some."""
    frequency = torch.bincount(ids.flatten(), minlength=vocab_size)[:vocab_size] / ids.numel()
    expected = int(seen.sum()) / (vocab_size - 2) * (1 - frequency) / (1 - 1 / vocab_size)
    others = torch.arange(vocab_size) != mask_id
    gaps = ((seen[:vocab_size] - expected).square() / expected)[others]
    freedom = len(gaps) - 1
    if float(gaps.sum()) < freedom + 7 * math.sqrt(2 * freedom):  # χ², seven standard deviations
        return
    alike = torch.corrcoef(
        torch.stack([seen[:vocab_size][others].double(), frequency[others].double()])
    )
    if float(alike[0, 1]) > 0.7:
        raise Mistake(
            "borrowed words",
            "The random ids follow the text's own word frequencies: they seem to be borrowed "
            "from the batch. Every id of the vocabulary must be equally likely.",
        )
    often = int(seen.argmax())
    raise Mistake(
        "uneven",
        f"The random ids are not equally likely: id {often} came {int(seen[often])} times, where "
        f"about {float(expected[often]):.0f} are expected.",
    )


def _ask_generator(answer: Answer, draw: Draw) -> None:
    case = _masking_case(draw, 20, 50, 0.5)
    first, again = (_call_masking(answer, case) for _ in range(2))
    if not torch.equal(first, again):
        raise Mistake(
            "ignores the generator",
            "The same generator state gave two different results. Pass generator=generator to "
            "torch.rand and torch.randint, so that an experiment can be repeated.",
        )
    if torch.equal(first, _call_masking(answer, (*case[:4], draw.generator()))):
        raise Mistake(
            "always the same",
            "Another generator gives the same result: nothing is drawn from it, or it is seeded "
            "inside.",
        )


MASKING = Exercise(
    id="02.3",
    title="The 80/10/10 rule",
    purpose="why a chosen word is not always hidden",
    difficulty=2,
    minutes=12,
    signature="my_mask(input_ids, chosen, mask_id, vocab_size, generator)",
    statement=(
        "`chosen` (N, T) says at which positions of `input_ids` (N, T) the model will be asked. "
        "Return the ids it sees: each chosen position becomes `mask_id` with probability 0.8, an "
        "id drawn evenly from the whole vocabulary (`0 … vocab_size − 1`) with 0.1, and stays "
        "with 0.1. All other ids stay, and so does `input_ids` itself. Draw from `generator`."
    ),
    hints=(
        "One number from 0 to 1 for each position decides between the three: torch.rand(shape, "
        "generator=generator).",
        "Below 0.8: [MASK]. From 0.8 up to 0.9: a random id. The rest needs no code.",
        "Start from input_ids.clone(), and join each condition with `chosen &`.",
        "torch.randint(vocab_size, shape, generator=generator) draws a candidate for every "
        "position; use only those you need.",
    ),
    solution=corrupt,
    see="course_lib.kernels.masking.mask_tokens_reference chooses and corrupts in one go",
    stages=(
        Check("ids come back, the input is left alone", _ask_form),
        Check("positions not chosen keep their ids", _ask_unchosen),
        Check("80% [MASK], 10% random, 10% kept", _ask_shares),
        Check("each position is drawn by itself", _ask_each_alone),
        Check("random ids come from the whole vocabulary", _ask_range),
        Check("the draws come from the generator", _ask_generator),
    ),
)
