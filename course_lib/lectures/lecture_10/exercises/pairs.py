"""Exercise 10.2: the input of translation language modelling."""

from __future__ import annotations

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Items

Three = tuple[list[int], list[int], list[int]]


def pair(first: list[int], second: list[int], languages: tuple[int, int], end: int) -> Three:
    """Ids, positions and languages of </s> x </s> </s> y </s> (XLM's program)."""
    one, two = [end, *first, end], [end, *second, end]
    tokens = one + two
    positions = [*range(len(one)), *range(len(two))]
    return tokens, positions, [languages[0]] * len(one) + [languages[1]] * len(two)


# ---------------------------------------------------------------- cases


def case(draw: Draw, n: int, m: int, languages: tuple[int, int], end: int = 1) -> Case:
    """A sentence of n tokens and its translation of m; no token is the special one."""
    ids = draw.python.sample(range(5, 95), n + m)
    return ids[:n], ids[n:], languages, end


ONE, TWO, TOKENS = "[end, *first, end]", "[end, *second, end]", "one + two"
POSITIONS = "[*range(len(one)), *range(len(two))]"
LANGUAGES = "[languages[0]] * len(one) + [languages[1]] * len(two)"
RUN_ON = "[*range(len(one) + len(two))]"

PAIRS = Exercise(
    **written("10.2"),
    solution=pair,
    returns=(Items("list of token ids", of="token ids"), Items("list of positions", of="positions"),
             Items("list of languages", of="numbers of languages")),
    see="course_lib.objectives.translation_lm.translation_sequences (of many pairs, with padding); "
        "mask_anywhere then masks both sides",
    when_raised=(
        (r"can only concatenate|unsupported operand", "Lists are joined with +, and a number is "
         "put into a list with [number]."),
    ),
    stages=(
        Stage("sentences of one token", each(case, (1, 1, (0, 1)), (1, 1, (0, 1)))),
        Stage("sentences of equal length", each(case, (3, 3, (0, 1)), (5, 5, (0, 1)))),
        Stage("a translation that is shorter, or longer",
              each(case, (6, 3, (0, 1)), (2, 5, (0, 1)), (4, 9, (0, 1)))),
        Stage("other languages, another </s>",
              each(case, (4, 6, (3, 0), 2), (5, 2, (14, 7), 0), (3, 4, (2, 9), 4))),
    ),
    mistakes=(
        Edit(TWO, "[*second, end]", "There are three special tokens in your sequence, as in "
             "BERT's [CLS] x [SEP] y [SEP]. XLM's pair has four: each sentence has one before "
             "it and one behind it, exactly as it has alone."),
        Edit(ONE, "[*first, end]", "The first sentence has no special token before it.",
             more=((TWO, "[*second, end]"),)),
        Edit(ONE, "[end, *first]", "There is no special token behind the sentences; each has "
             "one before it and one behind it.", more=((TWO, "[end, *second]"),)),
        Edit(ONE, "first", "There is no special token in your sequence. Each sentence has one "
             "before it and one behind it.", more=((TWO, "second"),)),
        Edit(TOKENS, "two + one", "The translation comes first in your tokens."),
        Edit(TOKENS, "[end, *first, end, *second[::-1], end][: len(one)] + two[::-1]", "The "
             "translation is reversed."),
        Edit(TOKENS, "[t for both in zip(one, two) for t in both] + one[len(two) :] + "
             "two[len(one) :]", "The two sentences are mixed, token by token. Put one after the "
             "other."),
        Edit(POSITIONS, RUN_ON, "Your positions run on, as in BERT. In XLM they start again at "
             "0 with the second sentence, so that a word and its translation have about the "
             "same position."),
        Edit(POSITIONS, "[*range(1, len(one) + 1), *range(1, len(two) + 1)]", "Your positions "
             "start at 1. The first </s> has position 0."),
        Edit(POSITIONS, "[0, *range(len(first)), len(first), 0, *range(len(second)), len(second)]",
             "You count words from 0, as if there were no </s> before them. The </s> has "
             "position 0, the first word 1."),
        Edit(POSITIONS, "[*range(len(one) + 1), *range(len(two) - 1)]", "Your second sentence "
             "starts at 0 with its first *word*. It should start with the </s> before it."),
        Edit(POSITIONS, "[*range(len(one)), *range(1, len(two) + 1)]", "Your second sentence "
             "starts at 1. Each starts at 0."),
        Edit(POSITIONS, "[*range(len(one)), *range(len(one) - 1, len(one) + len(two) - 1)]",
             "Your two special tokens in the middle share a position, and then positions run "
             "on. The second sentence starts at 0."),
        Edit(POSITIONS, "[*range(len(one)), *[min(t, len(one) - 1) for t in range(len(two))]]",
             "The positions of a longer translation stop too early. They run to its end."),
        Edit(POSITIONS, "[*range(len(one)), *range(len(two))][::-1]", "Your positions run from the "
             "end to the beginning."),
        Edit(LANGUAGES, "[languages[0]] * (len(one) + len(two))", "All tokens have the first "
             "language. Each has that of its own sentence: without it the model would have to "
             "guess where the language changes."),
        Edit(LANGUAGES, "[0] * len(one) + [1] * len(two)", "These are BERT's segments, 0 and 1. "
             "Expected are the numbers of the two languages, as in `languages`."),
        Edit(LANGUAGES, "[languages[1]] * len(one) + [languages[0]] * len(two)", "The two "
             "languages are exchanged."),
        Edit(LANGUAGES, "[languages[0]] * (len(one) + 1) + [languages[1]] * (len(two) - 1)", "The "
             "</s> before the second sentence has the first language. It belongs to its own "
             "sentence."),
        Edit(LANGUAGES, "[0, *[languages[0]] * len(first), 0, 0, *[languages[1]] * len(second), 0]",
             "The special tokens have language 0 in your answer. Each has the language of its "
             "sentence."),
        Edit(LANGUAGES, "[languages[0]] * (len(one) - 1) + [languages[1]] * (len(two) + 1)", "The "
             "</s> behind the first sentence has the second language. It belongs to the sentence "
             "that it ends."),
    ),
)  # fmt: skip
