"""Exercise 07.1: which tokens were replaced. B texts of T tokens.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
    expect_tensor,
)

Case = tuple[Tensor, Tensor, Tensor]  # original, masked and corrupted ids, all (B, T)
Cases = Callable[[Draw], list[Case]]
Fates = tuple[
    int, int, int, int
]  # asked positions: masked, drawn wrong or right; the same unmasked

PAD, CLS, SEP, MASK, FIRST_WORD, WORDS = 0, 2, 3, 4, 5, 60


def labels(original_ids: Tensor, masked_ids: Tensor, corrupted_ids: Tensor) -> Tensor:
    """1 where another word stands than in the original, else 0 (section 2; the code's sign)."""
    return (corrupted_ids != original_ids).long()


# ---------------------------------------------------------------- known wrong answers

LABEL_SUSPECTS = (
    Suspect(
        "every masked position",
        "Every position that was masked is labelled 1. Where the generator drew the very word that "
        "stood there, nothing was replaced: the label is 0.",
        lambda o, m, c: (m != o).long(),
    ),
    Suspect(
        "compared with the masked text",
        "The corrupted text is compared with the masked one. That asks whether a [MASK] was "
        "filled, and it always is. Compare with the original.",
        lambda o, m, c: (c != m).long(),
    ),
    Suspect(
        "paper's sign",
        "Your labels are the wrong way round: 1 for original. That is how the paper writes its "
        "discriminator, D = P(original). Here, as in the released code, 1 means replaced.",
        lambda o, m, c: (c == o).long(),
    ),
    Suspect(
        "hits labelled",
        "You label the positions where the generator found the true word. Those are the ones that "
        "count as original: label those where it drew another word.",
        lambda o, m, c: ((c == o) & (m != o)).long(),
    ),
    Suspect(
        "paper's sign at masked positions",
        "At the positions asked your labels are the wrong way round: 0 for a replaced word and 1 "
        "for a true one. Here 1 means replaced.",
        lambda o, m, c: ((c == o) & ((m != o) | (c != m))).long(),
    ),
    Suspect(
        "only where [MASK] stood",
        "Replaced words are labelled 1 only where a [MASK] stood. A position can be asked although "
        "its word was left in the masked text; the generator's draw is put in there too.",
        lambda o, m, c: ((c != o) & (m != o)).long(),
    ),
    Suspect(
        "ignored elsewhere",
        "Outside the masked positions your labels are −100, as in masked language modelling. The "
        "discriminator is asked about *every* token: there the label is 0, original.",
        lambda o, m, c: torch.where(m != o, (c != o).long(), -100),
    ),
    Suspect(
        "ids instead of labels",
        "Where a word was replaced you return its id. The discriminator answers yes or no: 1.",
        lambda o, m, c: torch.where(c != o, c, 0),
    ),
    Suspect(
        "true words",
        "Where a word was replaced you return the true word, as the generator's target. The "
        "discriminator does not name the word, it only says whether one was replaced: 1.",
        lambda o, m, c: torch.where(c != o, o, 0),
    ),
    Suspect(
        "occurs elsewhere",
        "You ask whether the word occurs anywhere in the original. A word that stands elsewhere in "
        "the text is still wrong here: compare position by position.",
        lambda o, m, c: (~torch.isin(c, o)).long(),
    ),
)


# ---------------------------------------------------------------- inputs


def _text(draw: Draw, length: int, fates: Fates) -> tuple[list[int], list[int], list[int]]:
    """One text, what the generator reads of it, and what the discriminator reads."""
    words = [draw.integer(FIRST_WORD, FIRST_WORD + WORDS - 1) for _ in range(length - 2)]
    original = [CLS, *words, SEP]
    masked, corrupted = list(original), list(original)
    wrong, right, left_wrong, _ = fates
    at = draw.python.sample(range(1, length - 1), sum(fates))
    for t in at[: wrong + right]:
        masked[t] = MASK
    for i, t in enumerate([*at[:wrong], *at[wrong + right : wrong + right + left_wrong]]):
        corrupted[t] = _other_word(draw, original[t], words if i % 2 else [])
    return original, masked, corrupted


def _other_word(draw: Draw, word: int, among: Sequence[int]) -> int:
    choices = [other for other in among if other != word]
    choices = choices or [id for id in range(FIRST_WORD, FIRST_WORD + WORDS) if id != word]
    return draw.python.choice(choices)


def _case(draw: Draw, *texts: tuple[int, Fates]) -> Case:
    """texts: the length of each and what happens in it; shorter ones are padded."""
    longest = max(length for length, _ in texts)
    made = [_text(draw, length, fates) for length, fates in texts]
    padded = [[[*ids, *[PAD] * (longest - len(ids))] for ids in text] for text in made]
    original, masked, corrupted = (torch.tensor(ids) for ids in zip(*padded, strict=True))
    return original, masked, corrupted


def _misses(draw: Draw) -> list[Case]:
    return [_case(draw, (8, (2, 0, 0, 0))), _case(draw, (11, (3, 0, 0, 0)))]


def _hits(draw: Draw) -> list[Case]:
    return [_case(draw, (8, (1, 1, 0, 0))), _case(draw, (14, (3, 2, 0, 0)))]


def _batch(draw: Draw) -> list[Case]:
    lengths = [(12, (2, 2, 0, 0)), (8, (2, 1, 0, 0)), (15, (3, 2, 0, 0))]
    return [_case(draw, *lengths) for _ in range(3)]


def _left(draw: Draw) -> list[Case]:
    return [_case(draw, (14, (2, 2, 2, 1)), (16, (3, 1, 2, 2)))]


def _everything(draw: Draw) -> list[Case]:
    return [_case(draw, (18, (4, 3, 3, 2)), (12, (3, 2, 2, 2))) for _ in range(4)]


# ---------------------------------------------------------------- stages


def _ask_labels(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_labels(answer, case, cases, draw)

    return ask


def _expect_labels(answer: Answer, case: Case, cases: Cases, draw: Draw) -> None:
    given, right = _read(call(answer, *case), case), labels(*case)
    if torch.equal(given, right.double()):
        return
    pools = [_everything(draw), _batch(draw), cases(draw)]
    found = name_suspect(answer, case, pools, LABEL_SUSPECTS, _same_labels)
    row = int((given != right).any(1).nonzero()[0])
    names = ("original", "read by the generator", "read by the discriminator")
    shown = "; ".join(f"{name} {ids[row].tolist()}" for name, ids in zip(names, case, strict=True))
    mine = [int(x) if x == int(x) else x for x in given[row].nan_to_num(1e9).tolist()]
    raise told(found, f"{shown} ({MASK} is [MASK]): you have {mine}; it is {right[row].tolist()}.")


def _read(x: Any, case: Case) -> Tensor:
    original, masked, corrupted = case
    asked = (masked != original) | (corrupted != original)
    if isinstance(x, Tensor) and x.dim() == 1 and len(x) in (asked.sum(), (masked == MASK).sum()):
        raise Mistake(
            "only the masked positions",
            f"Your result has {len(x)} labels, one for each position the generator was asked at. "
            "The discriminator judges every token: expected the shape of the text, "
            f"{tuple(original.shape)}, with 0 wherever nothing changed.",
        )
    return expect_tensor(x, tuple(original.shape), "a label, 0 or 1, for each token").double()


def _same_labels(mine: Any, theirs: Tensor, case: Case) -> bool:
    return torch.equal(_read(mine, case), theirs.double())


LABELS = Exercise(
    id="07.1",
    title="Which tokens were replaced?",
    purpose="what the discriminator is asked, exactly",
    difficulty=1,
    minutes=8,
    signature="my_labels(original_ids, masked_ids, corrupted_ids)",
    statement=(
        "By hand first. The text is *the gardener waters the roses*. `gardener` and `roses` are "
        "masked; the generator draws `nurse` and `roses`. Write a label under each of the five "
        "words: 1 for replaced, 0 for original.  \n"
        "Then as a function, for ids of shape (B, T): `original_ids`, `masked_ids` (what the "
        "generator read) and `corrupted_ids` (what the discriminator reads). Return the labels, "
        "(B, T). Not all three inputs are needed."
    ),
    hints=(
        "By hand: 0 1 0 0 0. The generator drew `roses`, and `roses` is what stood there.",
        "The question is about the text: does another word stand here now? It is not: was this "
        "position masked?",
        "Two tensors of one shape are compared position by position: a != b.",
        "(…).long() turns True and False into 1 and 0.",
    ),
    solution=labels,
    see=(
        "course_lib.objectives.replaced_tokens.replaced_labels (it has the true words of the asked "
        "positions only, and begins with zeros everywhere)"
    ),
    stages=(
        Check("one text, every drawn word is wrong", _ask_labels(_misses)),
        Check("the generator draws a true word", _ask_labels(_hits)),
        Check("several texts with padding", _ask_labels(_batch)),
        Check("asked positions whose word was left in place", _ask_labels(_left)),
    ),
)
