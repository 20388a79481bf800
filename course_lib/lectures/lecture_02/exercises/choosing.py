"""Exercise 02.4: which positions are selected for prediction, and how many. T tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from course_lib.objectives.sequences import SpecialIds
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
from course_lib.teaching.exercises.outputs import Exact, Items, Number, Numbers


def choose(
    input_ids: Tensor,
    special: SpecialIds,
    rate: float,
    max_predictions: int,
    generator: torch.Generator,
) -> Tensor:
    """Positions of one row (T,) selected for prediction, by the rule of BERT's released code."""
    length = int((input_ids != special.pad).sum())  # [CLS] and [SEP] count here …
    count = min(max_predictions, max(1, round(rate * length)))
    never = torch.tensor(special.never_masked)
    eligible = (~torch.isin(input_ids, never)).nonzero().flatten()  # … but are never selected
    order = torch.randperm(len(eligible), generator=generator)
    selected = torch.zeros(len(input_ids), dtype=torch.bool)
    selected[eligible[order[:count]]] = True
    return selected


def case(draw: Draw, words: int, padding: int, rate: float = 0.15, most: int = 1000) -> Case:
    """[CLS] words [SEP] words [SEP] and padding; a single word stands in one segment."""
    pad, unk, cls, sep, mask = draw.python.sample(range(12), 5)
    special = SpecialIds(pad, unk, cls, sep, mask, vocab_size=500)
    first, ids = draw.integer(1, max(1, words - 1)), draw.ids(12, 499, words).tolist()
    row = [cls, *ids[:first], sep, *([*ids[first:], sep] if words > first else [])]
    return torch.tensor(row + [pad] * padding), special, rate, most, draw.generator()


def every_length(draw: Draw) -> list[Case]:
    """Rows and rates where halves occur, short rows, limits that are met."""
    lengths = [*range(1, 24), 27, 37, 46, 47, 66, 67, 86, 87, 97]
    rules = ((0.15, 1000), (0.25, 1000), (0.15, draw.integer(3, 6)))
    return [case(draw, n, draw.integer(0, 30), *rule) for n in lengths for rule in rules]


def selections(function: Answer, case: Case, calls: int) -> Tensor:
    """The selections (calls, T) that come of other and other generators."""
    *arguments, generator = case
    states = [generator.initial_seed() + n for n in range(calls)]
    selected = [function(*arguments, torch.Generator().manual_seed(state)) for state in states]
    return torch.stack([torch.as_tensor(x).bool() for x in selected])


def not_words(function: Answer, row: Tensor, special: SpecialIds, *others: Any) -> list[str]:
    """Which special tokens are selected, in 30 calls."""
    once = selections(function, (row, special, *others), 30).any(0)
    names = {"[PAD]": special.pad, "[CLS]": special.cls, "[SEP]": special.sep}
    return [name for name, id in names.items() if bool((row[once] == id).any())]


def how_many(function: Answer, *case: Any) -> int:
    return int(torch.as_tensor(function(*case)).sum())


def whether_fixed(function: Answer, row: Tensor, special: SpecialIds, rate: float, *g: Any) -> str:
    numbers = selections(function, (row, special, rate, *g), 30).sum(1)
    if len(numbers.unique()) == 1:
        return "the same number each time"
    most = round(rate * int((row != special.pad).sum()))
    return "sometimes fewer" if int(numbers.max()) <= most else "sometimes fewer, sometimes more"


def where(function: Answer, row: Tensor, special: SpecialIds, *others: Any) -> Any:
    """Over 200 generators: how many selections there are, how many in one piece, each word's."""
    selected = selections(function, (row, special, *others), 200)
    spans = [int(x.max() - x.min()) + 1 for x in (s.nonzero() for s in selected) if len(x)]
    together = sum(a == b for a, b in zip(spans, selected.sum(1).tolist(), strict=False)) / 200
    words = ~torch.isin(row, torch.tensor(special.never_masked))
    different = len(selected.unique(dim=0)) > 1
    distinct = "different" if different else "one and the same"
    return distinct, together, selected.double().mean(0)[words]


WHERE = (
    Exact("selections with 200 generators"),
    Number("fraction of selections whose positions lie side by side", tol=0.3),
    # 17 or 18 of 40 words: standard deviation of a difference of two such frequencies 0.05
    Numbers("frequency with which each word is selected", tol=0.3),
)
NUMBER = "min(max_predictions, max(1, round(rate * length)))"
ORDER = "order = torch.randperm(len(eligible), generator=generator)"

CHOOSING = Exercise(
    **written("02.4"),
    solution=choose,
    returns=Numbers("selection", shape="T", kind="bool"),
    see="course_lib.kernels.masking.count_to_predict and mask_tokens_reference",
    stages=(
        Stage("a sequence of one word", each(case, *[(1, 0, 1.0)] * 3)),
        Stage("one word and padding", each(case, (1, 1, 1.0), (1, 2, 1.0))),
        Stage("only words are selected", each(case, *((words, 9, 0.5) for words in (6, 20, 30))),
              not_words, Items("selected special tokens", of="names")),
        Stage("the number is fixed", each(case, (57, 5, 0.5)), whether_fixed,
              Exact("number of selected positions in 30 calls")),
        Stage("the number follows the rule", every_length, how_many,
              Number("number of selected positions", kind="int")),
        Stage("every word is equally likely", each(case, (40, 5, 0.4)), where, WHERE),
        from_generator(each(case, (40, 5, 0.4))),
    ),
    mistakes=(
        Edit("torch.tensor(special.never_masked)", "torch.tensor([special.pad])", "[CLS] and [SEP] "
             "are selected. They count for the number; only words may be selected."),
        Edit("torch.tensor(special.never_masked)", "torch.tensor([special.cls, special.sep])",
             "Padding is selected; only words may be."),
        Edit("torch.tensor(special.never_masked)", "torch.tensor([special.pad, special.cls])",
             "[SEP] is selected; only words may be."),
        Edit("(~torch.isin(input_ids, never))",
             "((torch.arange(len(input_ids)) < length - 1) & (torch.arange(len(input_ids)) > 0))",
             "The [SEP] between two segments is selected: only the last one is left out."),
        Edit("selected[eligible[order[:count]]] = True",
             "selected[eligible] = torch.rand(len(eligible), generator=generator) < rate",
             "The number changes from call to call: each position is drawn by itself with the rate "
             "as its probability. BERT fixes the number first and then draws which."),
        Edit(ORDER, "order = torch.randint(len(eligible), (count,), generator=generator)",
             "Sometimes there are too few: the same position can be drawn twice, or a [CLS] be "
             "drawn and then dropped."),
        Edit("round(rate", "int(rate",
             "The number is rounded down; the released code rounds to the nearest whole number."),
        Edit("round(rate * length)", "-int(-rate * length // 1)",
             "The number is rounded up; the released code rounds to the nearest whole number."),
        Edit("round(rate * length)", "int(rate * length + 0.5)",
             "Halves are rounded up. The released code calls Python's round, which takes halves to "
             "the even neighbour: round(2.5) is 2."),
        Edit("(input_ids != special.pad)", "(~torch.isin(input_ids, torch.tensor([special.pad, "
             "special.cls, special.sep])))", "The rate is taken of the words without [CLS] and "
             "[SEP]. In the released code these count for the number, although they are never "
             "selected."),
        Edit("int((input_ids != special.pad).sum())", "len(input_ids)",
             "Padding is counted: a padded sequence gets too many. Count real tokens only."),
        Edit("max(1, round(rate * length))", "round(rate * length)",
             "A short sequence gets no position at all; at least one is always selected."),
        Edit("min(max_predictions, max(1, round(rate * length)))", "max(1, round(rate * length))",
             "max_predictions has no effect: no sequence may have more positions than that."),
        Edit(NUMBER, "max_predictions", "Every sequence has max_predictions positions; that is the "
             "most, not the number."),
        Edit(NUMBER, "max(max_predictions, round(rate * length))",
             "The larger of the number and max_predictions is taken; take the smaller."),
        Edit(ORDER, "order = torch.arange(len(eligible))",
             "The same positions are selected with every generator: draw them."),
        Edit(ORDER, "order = (torch.arange(len(eligible)) + int(torch.randint(max(1, len(eligible) "
             "- count + 1), (1,), generator=generator))) % len(eligible)",
             "The selected positions always lie side by side. That is another method "
             "(SpanBERT's); BERT draws them independently of each other."),
        Edit("order[:count]", "order[: count + 1].sort().values[:count]",
             "The last words are too rarely selected. Every word must be equally likely: take the "
             "first of the shuffled positions, as they come."),
    ),
)  # fmt: skip
