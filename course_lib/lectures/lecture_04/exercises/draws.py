"""Exercise 04.1: three ways to draw the masks, as one function without a memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from course_lib.teaching.exercises.calling import Guarded
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Items, Wrong, kind_of

Number = Callable[[int, int, int], float]  # (epoch, example, position) -> [0, 1)


def selected_positions(
    sequences: Sequence[Sequence[str]], examples: Sequence[int], epoch: int, copies: int | None,
    count: int, draw: Number,
) -> list[list[int]]:  # fmt: skip
    """The positions selected in each sequence; the same arguments give the same positions."""
    copy = epoch if copies is None else epoch % copies
    selected = []
    for sequence, example in zip(sequences, examples, strict=True):
        words = [t for t, token in enumerate(sequence) if token not in ("[PAD]", "[CLS]", "[SEP]")]
        draws = {t: draw(copy, example, t) for t in words}
        smallest = sorted(words, key=draws.__getitem__)[:count]
        selected.append(sorted(smallest))
    return selected


def numbers(draw: Draw) -> Number:
    """A stand-in for a seeded generator: a number in [0, 1) that depends on its arguments alone."""
    seed = draw.integer(0, 2**31)
    return lambda epoch, example, t: random.Random(f"{seed} {epoch} {example} {t}").random()


def batch(draw: Draw, size: int) -> tuple[list[list[str]], list[int]]:
    """Sequences of 6 to 9 words, numbered at random, none by its place in the batch."""
    lengths = [draw.integer(6, 9) for _ in range(size)]
    words = [draw.python.choices(("the", "lamp", "on", "a", "boat", "at", "noon"), k=n)
             for n in lengths]  # fmt: skip
    padded = [["[CLS]", *w, "[SEP]", *["[PAD]"] * (9 - len(w))] for w in words]
    return padded, draw.python.sample(range(100, 5_000), size)


def one_sequence(draw: Draw) -> list[Case]:
    """Example 0 in epoch 0: nothing to be wrong about but the words."""
    return [(batch(draw, 1)[0], [0], 0, 1, 3, numbers(draw)) for _ in range(24)]


def different_counts(draw: Draw) -> list[Case]:
    return [(*batch(draw, 4), 0, 1, count, numbers(draw)) for count in (1, 2, 3, 5)]


def several_sequences(draw: Draw) -> list[Case]:
    return [(*batch(draw, size), 0, 1, 3, numbers(draw)) for size in (2, 3, 5)]


def epochs(several: Sequence[int], *copies: int | None) -> Callable[[Draw], list[Case]]:
    """One batch, read in these epochs, for each number of copies."""

    def cases(draw: Draw) -> list[Case]:
        batches = [(batch(draw, 2), c, numbers(draw)) for c in copies]
        return [(*inputs, epoch, c, 3, g) for inputs, c, g in batches for epoch in several]

    return cases


OUT = Items("selected positions", of="lists of positions, one for each sequence", groups=True)


def ask_memory(answer: Guarded, sequences: Any, examples: Any, *more: Any) -> None:
    """Epoch 7, epoch 2, epoch 7 again, and then the same sequences in opposite order."""
    _, _, count, draw = more
    right = [selected_positions(sequences, examples, e, None, count, draw) for e in (7, 2)]

    def at(epoch: int, way: int = 1) -> list[list[int]]:
        positions = answer(sequences[::way], examples[::way], epoch, None, count, draw)
        return OUT.read(positions, right[0])

    late, early, again, turned = at(7), at(2), at(7), at(7, -1)
    if late == early == again == right[0] != right[1]:
        raise Wrong("Your function keeps a sequence's first mask: epoch 7, called first, and epoch "
                    "2, called afterwards, select the same positions. Keep nothing between "
                    "calls.", "memory")  # fmt: skip
    if late != again:
        raise Wrong(f"Asked twice for the same batch at epoch 7, with another epoch in between, "
                    f"your function selected {late[0]} and then {again[0]} in the first sequence. "
                    "Something is kept between the calls (a counter, a generator, a global), or "
                    "numbers come from elsewhere than draw. After a crash nobody could draw this "
                    "mask again.", "memory")  # fmt: skip
    if turned[::-1] != late and late == right[0]:
        raise Wrong(f"Example {examples[0]} has {late[0]} in one batch and {turned[-1]} in the "
                    "same batch in opposite order. A mask may depend on epoch, example and "
                    "position alone.", "memory")  # fmt: skip


def how_many(answer: Guarded, *case: Any) -> list[int]:
    """How many positions are selected in each sequence, of a function that asks `draw`."""
    *inputs, draw = case
    calls: list[Any] = []

    def noting(*where: int) -> Any:
        calls.append(where)
        return draw(*where)

    selected = OUT.read(answer(*inputs, noting), [[0]])
    strange = [t for places in selected for t in places if not isinstance(t, int) or t is True]
    if strange:
        raise Wrong(f"One of your lists holds {kind_of(strange[0])}; expected positions, whole "
                    "numbers: [1, 4] for the second and the fifth token.", "form")  # fmt: skip
    if not calls:
        raise Wrong("Your function never calls draw; every number must come from it.", "memory")
    return [len(places) for places in selected]


NUMBER = "epoch if copies is None else epoch % copies"
NEVER = 'not in ("[PAD]", "[CLS]", "[SEP]")'
EXAMPLE = "draw(copy, example, t)"
SMALLEST = "sorted(words, key=draws.__getitem__)[:count]"
BELOW = "How many these are is left to chance. Take exactly `count`: sort the words by their draws."

DRAWS = Exercise(
    **written("04.1"),
    solution=selected_positions,
    returns=OUT,
    see="course_lib.objectives.pretraining.pretraining_batches (mask_copies) and mask_sequences",
    when_raised=(("NoneType", "copies can be None: pass the epoch itself to draw then."),),
    stages=(
        Stage("any order of epochs, asked as often as you like", several_sequences,
              ask=ask_memory),
        Stage("`count` positions in each sequence", different_counts, how_many,
              Items("numbers of positions selected", of="whole numbers")),
        Stage("one sequence, epoch 0: only words", one_sequence),
        Stage("several sequences, each with its own number", several_sequences),
        Stage("one copy: the same at every epoch", epochs(range(4), 1)),
        Stage("None: a new mask at every epoch", epochs(range(8), None)),
        Stage("ten copies, three copies: read in turn", epochs(range(13), 10, 3)),
    ),
    mistakes=(
        Edit(SMALLEST, "[t for t in words if draws[t] < 0.15]",
             f"You take every word whose draw is below 0.15. {BELOW}"),
        Edit(SMALLEST, "[t for t in words if draws[t] < count / len(words)]",
             f"You take every word whose draw is below count / (number of words). {BELOW}"),
        Edit("[:count]", "[: count - 1]", "One position too few: [:count] takes `count` of a "
             "sorted list. (A threshold at the draw of rank `count` must let it in: <=, not <.)"),
        Edit("[:count]", "[: count + 1]", "One position too many: [:count] takes `count` of a "
             "sorted list."),
        Edit("[:count]", "[: max(1, round(0.15 * len(words)))]",
             "You take 15% of the words; take as many as `count` says."),
        Edit("[:count]", "[:3]", "You always take 3; take as many as `count` says."),
        Edit(SMALLEST, "[t for t in sorted(range(len(sequence)), key=lambda t: draw(copy, "
             "example, t))[:count] if t in draws]", "You remove [CLS], [SEP] and [PAD] after "
             "taking the smallest draws, so fewer than `count` words are left. Leave them out "
             "before you sort."),
        Edit(SMALLEST, "words[:count]",
             "The first words are taken; take those with the smallest draws."),
        Edit(NEVER, "not in ()", "[CLS], [SEP] and [PAD] take part in the draw. They are not words "
             "and are never selected: leave them out before you sort."),
        Edit(NEVER, 'not in ("[PAD]",)', "Padding is left out, but [CLS] and [SEP] take part in "
             "the draw. They are never selected."),
        Edit(NEVER, 'not in ("[CLS]", "[SEP]")', "[CLS] and [SEP] are left out, but padding takes "
             "part in the draw. It is never selected."),
        Edit(NEVER, 'not in ("[CLS]",)', "[CLS] is left out, but [SEP] and [PAD] take part in the "
             "draw. They are never selected."),
        Edit("[:count]", "[-count:]",
             "The words with the *largest* draws are taken; take the smallest."),
        Edit("sorted(smallest)", "sorted(words.index(t) for t in smallest)",
             "You count positions among the words only. A position is the index in the sequence, "
             "where [CLS] has index 0."),
        Edit(EXAMPLE, "draw(copy, examples.index(example), t)",
             "Your draw depends on the index of a sequence in its batch. Batches are shuffled, so "
             "the same sequence would get another mask in another batch. Use its number in the "
             "training set, examples[i]."),
        Edit(EXAMPLE, "draw(copy, examples[0], t)", "You draw every sequence of the batch with the "
             "first one's number, so all select the same positions. Each has its own number: "
             "examples[i]."),
        Edit(EXAMPLE, "draw(copy, 0, t)", "You draw every sequence as example 0, so all select the "
             "same positions. Each has its own number: examples[i]."),
        Edit(EXAMPLE, "draw(copy, example, words.index(t))",
             "You call draw with the index among the words; call it with the position in the "
             "sequence, where [CLS] is at 0."),
        Edit(EXAMPLE, "draw(copy, t, example)", "You swapped the position and the example: "
             "draw(epoch, example, position)."),
        Edit(EXAMPLE, "draw(example, copy, t)", "You swapped the epoch and the example: "
             "draw(epoch, example, position)."),
        Edit(NUMBER, "0", "The mask is drawn once and reused: epochs 0 and 1 select the same "
             "positions whatever copies says. That is right for copies=1 only."),
        Edit(NUMBER, "0 if copies is None else epoch % copies", "With copies=None the mask never "
             "changes. None means that nothing is stored: every epoch has a draw of its own."),
        Edit(NUMBER, "epoch", "Even with several copies, every epoch has a new draw here. With c "
             "copies only the draws 0 to c − 1 exist, and they are read again and again."),
        Edit(NUMBER, NUMBER.replace("epoch %", "(epoch + 1) %"),
             "You count the copies from one, so epoch 0 reads copy 1. It should read copy 0, and "
             "epoch c reads copy 0 again: epoch % copies."),
        Edit(NUMBER, NUMBER.replace("epoch %", "(epoch - 1) %"),
             "Your epoch 0 reads the last copy. It should read copy 0, and epoch c reads copy 0 "
             "again: epoch % copies."),
        Edit(NUMBER, NUMBER.replace("% copies", "% (copies + 1)"), "The draws begin again one "
             "epoch too late: with c copies there are draws 0 to c − 1, and epoch c reads draw 0."),
        Edit(NUMBER, NUMBER.replace("% copies", "% max(1, copies - 1)"),
             "The draws begin again one epoch too early: draw c − 1 is never read."),
        Edit(NUMBER, NUMBER.replace("epoch % copies", "min(epoch, copies - 1)"),
             "After the last copy you keep reading it. Begin again with copy 0: epoch % copies, "
             "not the smaller of the two."),
        Edit(NUMBER, NUMBER.replace("%", "//"), "You divide the epoch by the number of copies, so "
             "one copy serves several epochs in a row. Take the remainder: epoch % copies."),
    ),
)  # fmt: skip
