"""A discriminator that chooses among answers without fine-tuning, beside networks that fill a gap.

A question is a held-out story of the micro-world with one gap: ids (1, T) with [MASK] at a position
`at`, and the answers, the right word first, then the four that the shipped generator finds
likeliest besides. A way to answer gives each of them a number, the lowest for the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.objectives.sequences import pack
from course_lib.teaching.shipped import micro_electra
from course_lib.text.world import MicroWorld

from .exercises.choosing import p_replaced

QUESTIONS, OTHERS, LENGTH = 300, 4, 64
Question = tuple[Tensor, int, list[int]]


@torch.no_grad()
def gap_questions(world: MicroWorld, count: int = QUESTIONS) -> list[Question]:
    """A question about each of `count` stories."""
    torch.manual_seed(0)
    generator, special, result = micro_electra().generator, world.special, []
    for story in world.stories(count, seed=11, split="heldout"):
        ids, *_ = pack(world.tokenizer.encode(story.text)[: LENGTH - 2], None, special)
        at = int(torch.randint(1, len(ids) - 1, ()))
        text = torch.tensor([ids])
        text[0, at] = special.mask
        best = generator(text, torch.ones_like(text)).logits[0, at].topk(2 * OTHERS).indices
        others = [n for n in best.tolist() if n not in (ids[at], *range(special.mask + 1))]
        result.append((text, at, [ids[at], *others[:OTHERS]]))
    return result


def by_filling(model: Any, text: Tensor, at: int, answers: list[int]) -> Tensor:
    """A masked-word model reads the gap once, for all answers."""
    return -model(text, torch.ones_like(text)).logits[0, at, answers]  # type: ignore[no-any-return]


def by_discriminating(model: Any, text: Tensor, at: int, answers: list[int]) -> Tensor:
    """A discriminator reads the text once for each answer: P(replaced)."""
    texts = text.repeat(len(answers), 1)
    texts[:, at] = torch.tensor(answers)
    logits = model(texts, torch.ones_like(texts)).logits
    return p_replaced(logits, [(at, at + 1)] * len(answers))


@torch.no_grad()
def answered(way: Callable[..., Tensor], model: Any, questions: Sequence[Question]) -> float:
    """The fraction of questions answered right."""
    return sum(int(way(model, *one).argmin()) == 0 for one in questions) / len(questions)
