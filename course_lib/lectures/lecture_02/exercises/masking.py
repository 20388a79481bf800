"""Exercise 02.3: the 80/10/10 rule. N sequences, T tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.drawing import from_generator
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
from course_lib.teaching.exercises.outputs import Number, Numbers


def corrupt(
    input_ids: Tensor, selected: Tensor, mask_id: int, vocab_size: int, generator: torch.Generator
) -> Tensor:
    """Of the selected positions 80% become [MASK], 10% a random id, 10% stay (section 3.1)."""
    fate = torch.rand(input_ids.shape, generator=generator)
    random_ids = torch.randint(vocab_size, input_ids.shape, generator=generator)
    corrupted = input_ids.clone()
    corrupted[selected & (fate < 0.8)] = mask_id
    replaced = selected & (fate >= 0.8) & (fate < 0.9)
    corrupted[replaced] = random_ids[replaced]
    return corrupted


def case(draw: Draw, rows: int, length: int, rate: float) -> Case:
    """Ids crowded in the vocabulary's lower half: random ids can be told from borrowed ones."""
    vocab_size, mask_id = draw.integer(80, 160), draw.integer(3, 9)
    ids = torch.minimum(*(draw.ids(mask_id + 1, vocab_size - 1, rows, length) for _ in range(2)))
    selected = torch.rand(rows, length, generator=draw.torch) < rate
    return ids, selected, mask_id, vocab_size, draw.generator()


some_selected = each(case, (2, 40, 0.15), (50, 40, 0.15))
many_selected = each(case, (250, 320, 0.5))


def at_the_others(function: Answer, *arguments: Any) -> Tensor:
    return torch.as_tensor(function(*arguments))[~arguments[1]]


def outcomes(function: Answer, ids: Tensor, selected: Tensor, mask_id: int, *others: Any) -> Tensor:
    """The fractions of selected positions that became [MASK], became another id, stayed."""
    seen = torch.as_tensor(function(ids, selected, mask_id, *others))[selected]
    masked, kept = ((seen == x).double().mean() for x in (mask_id, ids[selected]))
    return torch.stack([masked, 1 - masked - kept, kept])


def together(function: Answer, ids: Tensor, selected: Tensor, mask_id: int, V: int, g: Any) -> Any:
    """Whether positions share their fate: over 60 generators, how often all 100 positions or whole
    rows are masked alike, how many positions always; how much the number of masks varies; early
    against late positions."""
    ids, everything = ids[:10, :10], torch.ones(10, 10, dtype=torch.bool)
    states = [torch.Generator().manual_seed(g.initial_seed() + n) for n in range(60)]
    seen = [torch.as_tensor(function(ids, everything, mask_id, V, state)) for state in states]
    masked = torch.stack([x == mask_id for x in seen]).double()
    rows = masked.mean(-1)
    counts = masked.sum((1, 2))
    late = masked[:, 5:].mean() - masked[:, :5].mean()
    one_fate = ((counts == 0) | (counts == 100)).double().mean()
    one_row, always = (((x == 0) | (x == 1)).double().mean() for x in (rows, masked.mean(0)))
    return one_fate, one_row, always, counts.std(), late


def drawn_ids(function: Answer, ids: Tensor, selected: Tensor, mask_id: int, V: int, g: Any) -> Any:
    """The lowest and the highest random id, and how unevenly they come."""
    seen = torch.as_tensor(function(ids, selected, mask_id, V, g))[selected]
    random_ids = seen[(seen != ids[selected]) & (seen != mask_id)]
    counts = torch.bincount(random_ids.clamp(0, V - 1), minlength=V).double()
    uneven = counts.std() / counts.mean()
    return int(random_ids.min()), int(random_ids.max()), uneven


TOGETHER = (
    Number("fraction of draws in which all positions become [MASK], or none", tol=0.3),
    Number("fraction of rows in which all positions become [MASK], or none", tol=0.35),
    Number("fraction of positions that become [MASK] with every generator, or never", tol=0.3),
    Number("standard deviation of the number of [MASK] among 100 selected", tol=0.6),
    Number("excess of [MASK] in the later half of the positions", tol=0.1),
)
IDS = (
    Number("lowest random id", kind="int"),
    Number("highest random id", kind="int"),
    Number("variation of how often an id is drawn (standard deviation / mean)", tol=0.12),
)

FATE = "torch.rand(input_ids.shape, generator=generator)"
REPLACED = "(fate >= 0.8) & (fate < 0.9)"

MASKING = Exercise(
    **written("02.3"),
    solution=corrupt,
    returns=Numbers("ids", shape="N T", kind="int"),
    see="course_lib.kernels.masking.mask_tokens_reference selects and corrupts in one go",
    stages=(
        Stage("ids come back, the input is left alone",
              each(case, (1, 6, 0.0), (2, 6, 0.0), (30, 6, 0.0))),
        Stage("positions not selected keep their ids", some_selected, at_the_others,
              Numbers("ids where nothing was selected", kind="int")),
        Stage("each position is drawn by itself", many_selected, together, TOGETHER),
        Stage("80% [MASK], 10% random, 10% kept", many_selected, outcomes,
              Numbers("fractions of [MASK], random and kept", tol=0.02)),
        Stage("random ids come from the whole vocabulary",
              each(case, (250, 320, 0.5), (250, 320, 0.5)), drawn_ids, IDS),
        from_generator(some_selected),
    ),
    mistakes=(
        Edit("selected & (fate < 0.8)", "fate < 0.8",
             "Positions that were not selected change too. The 80, 10 and 10 percent are of the "
             "selected positions, not of all: join every condition with `selected`."),
        Edit("replaced = selected &", "replaced =", "Random ids are written where nothing was "
             "selected: join every condition with `selected`."),
        Edit(FATE, "torch.rand(1, generator=generator).expand(input_ids.shape)",
             "One draw decides for all positions: it is all or nothing. Draw a number for each: "
             "torch.rand(input_ids.shape, generator=generator)."),
        Edit(FATE, "torch.rand(len(input_ids), 1, generator=generator).expand(input_ids.shape)",
             "All positions of a row share one outcome. Draw a number for each position: "
             "torch.rand(input_ids.shape, generator=generator)."),
        Edit(FATE, "torch.rand(input_ids.shape, generator=torch.Generator().manual_seed(1))",
             "Every generator gives the same: nothing is drawn from it, or it is seeded inside."),
        Edit(FATE, "torch.linspace(0, 1, input_ids.numel()).reshape(input_ids.shape)",
             "Early positions are treated differently from late ones: the outcomes are assigned in "
             "order. They must be drawn at random for each position."),
        Edit("fate = torch.rand(input_ids.shape, generator=generator)",
             "fate = torch.ones(input_ids.shape); many = int(selected.sum()); "
             "fate[selected] = torch.randperm(many, generator=generator) / many",
             "The number of [MASK] is fixed and only their positions are drawn. Each position is "
             "drawn by itself, so the number varies, by about 4 in 100."),
        Edit("fate < 0.8", "fate < 2", "Every selected position becomes [MASK]. At fine-tuning "
             "there is no [MASK]: the model would never have to predict a word that it "
             "sees.", more=(("(fate >= 0.8)", "(fate > 2)"),)),
        Edit("return corrupted", "return input_ids.clone()",
             "Nothing has changed: was the result written into a copy that is not returned?"),
        Edit(REPLACED, "(fate > 2)",
             "The 10% of random ids are missing: those positions keep their word."),
        Edit(REPLACED, "(fate >= 0.8)", "No selected position keeps its word: 10% should."),
        Edit(REPLACED, "(fate >= 0.8) & (fate < 0.82)", "The random 10% are 10% of the 20% that "
             "are left. They must be 10% of all selected positions: half of the rest."),
        Edit(REPLACED, "(torch.rand(input_ids.shape, generator=generator) < 0.1)",
             "The random ids are drawn over all selected positions after the masks, and replace "
             "some of them. One draw must decide between the three."),
        Edit(REPLACED, "(fate < 0.9)",
             "No [MASK] is left: the random ids are written over them. They are for numbers from "
             "0.8 to 0.9 only; a condition `< 0.9` alone holds below 0.8 too."),
        Edit("fate < 0.8", "fate < 0.1", "The 80% and the 10% are exchanged: 80% is for [MASK], "
             "10% for random ids.", more=(("(fate >= 0.8)", "(fate >= 0.1)"),)),
        Edit("fate < 0.8", "fate < 1 / 3", "The three outcomes are equally likely; expected 80%, "
             "10% and 10%.", more=((REPLACED, "(fate >= 1 / 3) & (fate < 2 / 3)"),)),
        Edit("(fate < 0.8)", "(fate < 0.8 * 0.15)",
             "The 15% are drawn a second time. `selected` already is the result of that draw.",
             more=((REPLACED, "(fate >= 0.12) & (fate < 0.135)"),)),
        Edit("(vocab_size, input_ids.shape, ", "(vocab_size - 1, input_ids.shape, ", "The last id "
             "of the vocabulary is never drawn. torch.randint leaves out its upper end by itself."),
        Edit("(vocab_size, input_ids.shape, ", "(vocab_size + 1, input_ids.shape, ",
             "Random ids reach `vocab_size`; the vocabulary ends at `vocab_size − 1`."),
        Edit("(vocab_size, input_ids.shape, ", "(mask_id + 1, vocab_size, input_ids.shape, ",
             "Low ids are never drawn. The released code draws from the whole vocabulary, 0 and "
             "the special tokens included."),
        Edit("corrupted[replaced] = random_ids[replaced]",
             "corrupted[replaced] = random_ids[0, 0]",
             "All random replacements are the same id. Draw one for each position."),
        Edit("torch.randint(vocab_size, input_ids.shape, generator=generator)",
             "input_ids.flatten()[torch.randperm(input_ids.numel(), generator=generator)]"
             ".view(input_ids.shape)",
             "The random ids follow the text's own word frequencies: they are borrowed from the "
             "batch. Every id of the vocabulary must be equally likely."),
    ),
)  # fmt: skip
