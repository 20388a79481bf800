"""Exercise 07.1: which tokens were replaced. B texts of T tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def labels(original_ids: Tensor, masked_ids: Tensor, corrupted_ids: Tensor) -> Tensor:
    """1 where another word stands than in the original, else 0 (section 2; the code's sign)."""
    return (corrupted_ids != original_ids).long()


# ---------------------------------------------------------------- cases

PAD, CLS, SEP, MASK, FIRST_WORD, WORDS = 0, 2, 3, 4, 5, 60
Fates = tuple[int, int, int, int]  # selected: masked, drawn wrong or right; the same, left in place


def text(draw: Draw, length: int, fates: Fates) -> tuple[list[int], list[int], list[int]]:
    """One text, what the generator reads of it, and what the discriminator reads."""
    word_ids = [draw.integer(FIRST_WORD, FIRST_WORD + WORDS - 1) for _ in range(length - 2)]
    original = [CLS, *word_ids, SEP]
    masked, corrupted = list(original), list(original)
    wrong, right, left_wrong, _ = fates
    at = draw.python.sample(range(1, length - 1), sum(fates))
    for t in at[: wrong + right]:
        masked[t] = MASK
    for i, t in enumerate([*at[:wrong], *at[wrong + right : wrong + right + left_wrong]]):
        corrupted[t] = other_word(draw, original[t], word_ids if i % 2 else [])
    return original, masked, corrupted


def other_word(draw: Draw, word: int, among: Sequence[int]) -> int:
    choices = [other for other in among if other != word]
    choices = choices or [id for id in range(FIRST_WORD, FIRST_WORD + WORDS) if id != word]
    return draw.python.choice(choices)


def case(draw: Draw, *texts: tuple[int, Fates]) -> Case:
    """texts: the length of each and what happens in it; shorter ones are padded."""
    longest = max(length for length, _ in texts)
    made = [text(draw, length, fates) for length, fates in texts]
    padded = [[[*ids, *[PAD] * (longest - len(ids))] for ids in one] for one in made]
    return tuple(torch.tensor(ids) for ids in zip(*padded, strict=True))


@dataclass(frozen=True)
class ZerosAndOnes(Numbers):
    """True and False are taken for 1 and 0."""

    def _check_kind(self, labels: Tensor, right: Any) -> None:
        super()._check_kind(labels.long() if labels.dtype is torch.bool else labels, right)


RULE = "(corrupted_ids != original_ids).long()"

LABELS = Exercise(
    **written("07.1"),
    solution=labels,
    returns=ZerosAndOnes("labels", shape="B T"),
    see="course_lib.objectives.replaced_tokens.replaced_labels (it has the true words of the "
    "selected positions only, and begins with zeros everywhere)",
    stages=(
        Stage("one text, every drawn word is wrong",
              each(case, [(8, (2, 0, 0, 0))], [(11, (3, 0, 0, 0))])),
        Stage("the generator draws a true word",
              each(case, [(8, (1, 1, 0, 0))], [(14, (3, 2, 0, 0))])),
        Stage("several texts with padding",
              each(case, *[((12, (2, 2, 0, 0)), (8, (2, 1, 0, 0)))] * 3)),
        Stage("selected positions whose word was left in place",
              each(case, *[((14, (2, 2, 2, 1)), (16, (3, 1, 2, 2)))] * 2)),
    ),
    mistakes=(
        Edit("corrupted_ids != original_ids", "masked_ids != original_ids",
             "You label every masked position 1. Where the generator drew the original word, "
             "nothing was replaced: the label is 0."),
        Edit("corrupted_ids != original_ids", "corrupted_ids != masked_ids",
             "You compare the corrupted text with the masked one. That asks whether a [MASK] was "
             "filled, which is always so. Compare with the original."),
        Edit("corrupted_ids != original_ids", "corrupted_ids == original_ids",
             "Your labels are the wrong way round: 1 for original. The paper writes its "
             "discriminator in this way, D = P(original). Here, as in the released code, 1 means "
             "replaced."),
        Edit(RULE, "((corrupted_ids == original_ids) & (masked_ids != original_ids)).long()",
             "You label the positions where the generator drew the true word. Those count as "
             "original: label the positions where it drew another word."),
        Edit(RULE, "((corrupted_ids != original_ids) & (masked_ids != original_ids)).long()",
             "You label replaced words 1 only where there was a [MASK]. A position can be selected "
             "although its word was left in the masked text; the generator's word is put in there "
             "too."),
        Edit(RULE, f"torch.where(masked_ids != original_ids, {RULE}, -100)",
             "Outside the masked positions your labels are −100, as in masked language modelling. "
             "The discriminator classifies *every* token: there the label is 0, original."),
        Edit(RULE, f"{RULE}[masked_ids != original_ids]",
             "You return labels for the masked positions only. The discriminator classifies every "
             "token: (B, T), with 0 wherever nothing changed."),
        Edit(RULE, "torch.where(corrupted_ids != original_ids, corrupted_ids, 0)", "Where a word "
             "was replaced you return its id. The discriminator answers yes or no: 1."),
        Edit(RULE, "torch.where(corrupted_ids != original_ids, original_ids, 0)",
             "Where a word was replaced you return the true word, as the generator's target. The "
             "discriminator does not predict the word, only whether it was replaced: 1."),
        Edit(RULE, "(~torch.isin(corrupted_ids, original_ids)).long()",
             "You ask whether the word occurs anywhere in the original. A word that occurs "
             "elsewhere in the text is still wrong here: compare position by position."),
        Edit(RULE, "(corrupted_ids != original_ids).any(-1).long()",
             "You return one label for each text. The discriminator classifies every token: (B, "
             "T)."),
    ),
)  # fmt: skip
