"""A discriminator that chooses among answers without fine-tuning, beside networks that fill a gap.

Each question is a held-out story of the micro-world with one gap. Its answers are the right word
and the four words that the shipped generator finds likeliest besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.objectives.sequences import pack
from course_lib.teaching.shipped import micro_electra
from course_lib.text.world import MicroWorld

from .exercises.choosing import p_replaced

QUESTIONS, OTHERS, LENGTH = 300, 4, 64


class Question(NamedTuple):
    """input_ids (1, T), with [MASK] at position `at`; answers: ids, the right one first."""

    input_ids: Tensor
    at: int
    answers: list[int]


@torch.no_grad()
def gap_questions(world: MicroWorld, count: int = QUESTIONS) -> list[Question]:
    """A question about each of `count` held-out stories."""
    torch.manual_seed(0)
    generator, special, result = micro_electra().generator, world.special, []
    for story in world.stories(count, seed=11, split="heldout"):
        ids, *_ = pack(world.tokenizer.encode(story.text)[: LENGTH - 2], None, special)
        at = int(torch.randint(1, len(ids) - 1, ()))
        text = torch.tensor([ids])
        text[0, at] = special.mask
        best = generator(text, torch.ones_like(text)).logits[0, at].topk(2 * OTHERS).indices
        others = [n for n in best.tolist() if n not in (ids[at], *range(special.mask + 1))]
        result.append(Question(text, at, [ids[at], *others[:OTHERS]]))
    return result


def by_filling(model: Any, question: Question) -> Tensor:
    """How little a masked-word model likes each answer, (C,): one pass for all of them."""
    text, at, answers = question
    return -model(text, torch.ones_like(text)).logits[0, at, answers]  # type: ignore[no-any-return]


def by_discriminating(discriminator: Any, question: Question) -> Tensor:
    """P(replaced) of each answer, (C,): a text for every answer."""
    text, at, answers = question
    texts = text.repeat(len(answers), 1)
    texts[:, at] = torch.tensor(answers)
    logits = discriminator(texts, torch.ones_like(texts)).logits
    return p_replaced(logits, [(at, at + 1)] * len(answers))


@torch.no_grad()
def answered(
    way: Callable[[Any, Question], Tensor], model: Any, questions: Sequence[Question]
) -> float:
    """The fraction of questions whose right answer has the lowest number."""
    return sum(int(way(model, one).argmin()) == 0 for one in questions) / len(questions)
