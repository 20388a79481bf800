"""Exercise 03.4: SQuAD's token F1. The solution is the library's own.

The known wrong answers first, then the stages.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Suspect,
    call,
    close,
)
from course_lib.train.span_metrics import answer_f1, normalise_answer

from .slips import pools, slip_suspects

Case = tuple[str, str]  # the answer that was predicted, the gold one
Cases = Callable[[Draw], list[Case]]
Words = list[str]


def token_f1(predicted: str, gold: str) -> float:
    """The library's F1 against a single gold answer."""
    return answer_f1(predicted, [gold])


# ---------------------------------------------------------------- known wrong answers

MARKS = re.compile(f"[{re.escape(string.punctuation)}]")


def _without(words: Words, articles: Sequence[str] = ("a", "an", "the")) -> Words:
    return [word for word in words if word.lower() not in articles]


def _normal(text: str, lower: bool, articles: str, marks: str) -> Words:
    """articles, marks: what becomes of them; see the slips below."""
    if articles == "before lower case":
        text = " ".join(word for word in text.split() if word not in ("a", "an", "the"))
    if lower:
        text = text.lower()
    if articles == "before punctuation":
        text = " ".join(_without(text.split()))
    if articles == "inside words":
        text = re.sub("an|a|the", "", text)
    if marks == "at the ends":
        text = " ".join(word.strip(string.punctuation) for word in text.split())
    elif marks == "dots and commas":
        text = re.sub("[.,]", "", text)
    elif marks != "kept":
        text = MARKS.sub({"removed": "", "a gap": " "}[marks], text)
    if articles == "between spaces":
        for article in ("a", "an", "the"):
            text = text.replace(f" {article} ", " ")
    words = text.split()
    if articles == "the alone":
        return _without(words, ("the",))
    return _without(words) if articles == "removed" else words


def _counted(said: Words, gold: Words) -> int:
    return (Counter(said) & Counter(gold)).total()


def _f1(hits: int, said: Words, gold: Words) -> float:
    return 2 * hits / (len(said) + len(gold))


def _empty(said: Words, gold: Words) -> float:
    return float(said == gold)


def _with(
    *,
    lower: bool = True,
    articles: str = "removed",
    marks: str = "removed",
    only: str = "both",
    hits: Callable[[Words, Words], int] = _counted,
    score: Callable[[int, Words, Words], float] = _f1,
    empty: Callable[[Words, Words], float] = _empty,
) -> Answer:
    """The answer with switches for going wrong: what is normalised, in which of the two, what a hit
    is, what is made of hits, and what counts where an answer has no words left."""

    def answer(predicted: str, gold: str) -> float:
        said, true = (
            _normal(text, lower, articles, marks) if only in ("both", name) else text.split()
            for text, name in ((predicted, "predicted"), (gold, "gold"))
        )
        return score(hits(said, true), said, true) if said and true else empty(said, true)

    return answer


def _as_sets(hits: int, said: Words, gold: Words) -> float:
    return 2 * len({*said} & {*gold}) / (len({*said}) + len({*gold}))


def _each_side(hits: int, said: Words, gold: Words) -> float:
    precision = sum(word in gold for word in said) / len(said)
    recall = sum(word in said for word in gold) / len(gold)
    return 2 * precision * recall / (precision + recall) if hits else 0.0


SLIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "sets": (
        "Repeated words count once: sets forget how often. A word is shared as often as both "
        "answers have it, and both lengths count every word.",
        {"score": _as_sets},
    ),
    "sets, lengths of lists": (
        "A word that both answers have twice is one hit: a set forgets how often. It is shared as "
        "often as both have it: Counter(a) & Counter(b).",
        {"hits": lambda said, gold: len({*said} & {*gold})},
    ),
    "hits counted twice": (
        "Each word of the prediction that occurs in the gold answer is a hit, however often the "
        "gold answer has it. Then repeating a word pays. It is shared as often as *both* have it.",
        {"hits": lambda said, gold: sum(word in gold for word in said)},
    ),
    "hits counted twice, the other way": (
        "Each word of the gold answer that occurs in the prediction is a hit, however often the "
        "prediction has it. It is shared as often as *both* have it.",
        {"hits": lambda said, gold: sum(word in said for word in gold)},
    ),
    "place by place": (
        "Words are compared place by place. One word too many at the start, and nothing fits any "
        "more. F1 asks which words are shared, wherever they stand.",
        {"hits": lambda said, gold: sum(a == b for a, b in zip(said, gold, strict=False))},
    ),
    "case kept": (
        "Capital and small letters differ in your comparison; compare lower case.",
        {"lower": False},
    ),
    "articles kept": (
        "a, an and the are counted as words; they are left out, of both answers.",
        {"articles": "kept"},
    ),
    "only the": (
        "*the* is left out, but a and an are counted as words. All three are articles.",
        {"articles": "the alone"},
    ),
    "articles at the edges kept": (
        "Articles go only where a space stands on either side: the first and the last word stay. "
        "Split first, then leave out words.",
        {"articles": "between spaces"},
    ),
    "articles before lower case": (
        "Articles are removed before the text is made lower case, so that *The* stays.",
        {"articles": "before lower case"},
    ),
    "articles inside words": (
        "a, an and the are removed inside of words too (*paint* becomes *pint*). Only whole "
        "words are articles: split first, or ask for word borders, r'\\b(a|an|the)\\b'.",
        {"articles": "inside words"},
    ),
    "punctuation kept": (
        "Punctuation stays with the words, so that *wall.* is not *wall*. Remove it.",
        {"marks": "kept"},
    ),
    "some punctuation kept": (
        "Dots and commas go, other marks stay. Remove every character of string.punctuation.",
        {"marks": "dots and commas"},
    ),
    "punctuation at the ends only": (
        "Punctuation inside of words stays. Every mark goes: *3.5* becomes *35*.",
        {"marks": "at the ends"},
    ),
    "punctuation leaves a gap": (
        "Punctuation becomes a space, which splits words. It goes without a gap: *well-known* "
        "becomes *wellknown*. Odd, but both sides are treated alike.",
        {"marks": "a gap"},
    ),
    "articles before punctuation": (
        "Articles are removed before the punctuation, so that *the* in quotation marks or brackets "
        "stays. Punctuation goes first.",
        {"articles": "before punctuation"},
    ),
    "gold answer as it is": (
        "Only the prediction is normalised; the gold answer must be, too.",
        {"only": "predicted"},
    ),
    "prediction as it is": (
        "Only the gold answer is normalised; the prediction must be, too.",
        {"only": "gold"},
    ),
    "each side counted by itself": (
        "For precision you count predicted words that occur in the gold answer, for recall gold "
        "words that occur in the prediction. Then repeating a word costs nothing. Both have the "
        "same hits: each word as often as both answers have it.",
        {"score": _each_side},
    ),
    "precision": (
        "This is precision: the share of the predicted words that are right. F1 is the harmonic "
        "mean of precision and recall.",
        {"score": lambda hits, said, gold: hits / len(said)},
    ),
    "recall": (
        "This is recall: the share of the gold answer's words that were said. F1 is the harmonic "
        "mean of precision and recall.",
        {"score": lambda hits, said, gold: hits / len(gold)},
    ),
    "arithmetic mean": (
        "Precision and recall are added and halved. F1 is their harmonic mean, 2PR / (P + R), "
        "which stays close to the lower one.",
        {"score": lambda hits, said, gold: (hits / len(said) + hits / len(gold)) / 2},
    ),
    "geometric mean": (
        "This is the square root of precision times recall. F1 is their harmonic mean, 2PR / (P + "
        "R).",
        {"score": lambda hits, said, gold: hits / (len(said) * len(gold)) ** 0.5},
    ),
    "product": (
        "Precision and recall are multiplied. F1 is their harmonic mean, 2PR / (P + R).",
        {"score": lambda hits, said, gold: hits / len(said) * hits / len(gold)},
    ),
    "the 2 forgotten": (
        "This is half of F1: 2PR / (P + R) has a 2.",
        {"score": lambda hits, said, gold: _f1(hits, said, gold) / 2},
    ),
    "Jaccard": (
        "This is the share of all different words that both have (Jaccard). F1 is 2 · hits / "
        "(words of the one + words of the other).",
        {"score": lambda hits, said, gold: len({*said} & {*gold}) / len({*said} | {*gold})},
    ),
    "Jaccard with counts": (
        "This is hits divided by the words of both, shared ones counted once (Jaccard). F1 is 2 · "
        "hits / (words of the one + words of the other).",
        {"score": lambda hits, said, gold: hits / (len(said) + len(gold) - hits)},
    ),
    "share of the longer": (
        "The hits are divided by the longer answer's words. F1 is 2 · hits / (words of the one + "
        "words of the other).",
        {"score": lambda hits, said, gold: hits / max(len(said), len(gold))},
    ),
    "share of the shorter": (
        "The hits are divided by the shorter answer's words. Then saying the whole passage would "
        "be perfect. F1 is 2 · hits / (words of the one + words of the other).",
        {"score": lambda hits, said, gold: hits / min(len(said), len(gold))},
    ),
    "rounded": (
        "The result is rounded. Return it as it is; round when you print.",
        {"score": lambda hits, said, gold: round(_f1(hits, said, gold), 2)},
    ),
    "exact match": (
        "This is exact match, all or nothing; F1 gives a share for a part.",
        {"score": lambda hits, said, gold: float(said == gold)},
    ),
    "number of hits": (
        "This is the number of shared words; expected F1, from 0 to 1.",
        {"score": lambda hits, said, gold: float(hits)},
    ),
    "percent": (
        "This is F1 in percent; expected a share, from 0 to 1.",
        {"score": lambda hits, said, gold: 100 * _f1(hits, said, gold),
         "empty": lambda said, gold: 100 * _empty(said, gold)},
    ),
    "two empty answers": (
        "Two empty answers give 0. Where the text has no answer and the model gives none, it is "
        "right: 1.",
        {"empty": lambda said, gold: 0.0},
    ),
    "one empty answer": (
        "An empty answer beside one with words gives 1. Nothing is shared: 0.",
        {"empty": lambda said, gold: 1.0},
    ),
}  # fmt: skip


def _letters(predicted: str, gold: str) -> float:
    """As for words, with the characters of the normalised texts."""
    said, true = normalise_answer(predicted), normalise_answer(gold)
    return _f1(_counted([*said], [*true]), [*said], [*true]) if said and true else float(
        said == true
    )  # fmt: skip


def _empty_text(predicted: str, gold: str) -> float:
    """Two empty texts are equal, two texts of articles are not."""
    if not predicted and not gold:
        return 1.0
    return token_f1(predicted, gold) if normalise_answer(predicted) else 0.0


ANSWER_SUSPECTS = slip_suspects(
    _with,
    SLIPS,
    Suspect(
        "emptiness asked too early",
        "You ask whether the texts are empty before they are normalised. *The.* has no words left "
        "either: ask afterwards.",
        _empty_text,
    ),
    Suspect(
        "letters",
        "Characters are compared, not words: a text is a sequence of characters until you split() "
        "it.",
        _letters,
    ),
)


# ---------------------------------------------------------------- inputs

# Plain words: no capitals, no marks, no letter sequence that is an article.
PLAIN = [
    "stone", "bridge", "river", "mill", "copper", "ten", "silk", "green", "winter", "port", "cedar",
    "hill",
]  # fmt: skip
ARTICLES = ["a", "an", "the"]


def _some(draw: Draw, low: int, high: int, words: list[str] = PLAIN) -> Words:
    """Different words."""
    return draw.python.sample(words, draw.integer(low, high))


def _overlap(draw: Draw, repeat: bool = False) -> tuple[Words, Words]:
    """Two answers of different lengths that share some words, in another order at times."""
    words = _some(draw, 7, 9)
    shared, mine, theirs = words[:3], words[3 : 3 + draw.integer(0, 1)], words[4:]
    said, gold = [*mine, *shared[: draw.integer(1, 3)]], [*shared, *theirs[: draw.integer(1, 3)]]
    if repeat:
        said += draw.python.choices(shared, k=2)
        gold += draw.python.choices(shared, k=draw.integer(1, 2))
    if draw.python.random() < 0.5:
        draw.python.shuffle(said)
    pair = [said, gold]
    draw.python.shuffle(pair)
    return pair[0], pair[1]


def _joined(said: Words, gold: Words) -> Case:
    return " ".join(said), " ".join(gold)


def _whole(draw: Draw) -> list[Case]:
    """Right, wrong, and a part."""
    words = _some(draw, 6, 6)
    return [
        _joined(words[:2], words[:2]),
        _joined(words[:2], words[2:4]),
        _joined(words[:1], words[:3]),
        _joined(words[:4], words[1:3]),
    ]


def _shared(draw: Draw) -> list[Case]:
    return [_joined(*_overlap(draw)) for _ in range(4)]


def _repeated(draw: Draw) -> list[Case]:
    a, b, c = _some(draw, 3, 3)
    return [
        _joined([a, a, b], [a, b]),
        _joined([a, b], [b, a, a, c]),
        _joined([b, b, a], [b, b]),
        *(_joined(*_overlap(draw, repeat=True)) for _ in range(3)),
    ]


def _dressed(draw: Draw, words: Words, marks: bool = True) -> str:
    """With capitals, articles and punctuation put in."""
    out: Words = []
    for word in words:
        if draw.python.random() < 0.3:
            article = draw.python.choice(ARTICLES)
            quoted = marks and draw.python.random() < 0.5
            out.append(f'"{article}' if quoted else article)
        word = word.capitalize() if draw.python.random() < 0.4 else word
        if marks and draw.python.random() < 0.4:
            at = draw.integer(1, len(word))
            word = word[:at] + draw.python.choice(".,-'") + word[at:]
        out.append(word)
    return " ".join(out)


def _capitals(draw: Draw) -> list[Case]:
    a, b, c = _some(draw, 3, 3)
    return [
        (f"{a} {b}".title(), f"{a} {b} {c}"),
        (f"the {a} {b}", f"{a} {b}"),
        (f"{a} an {b}", f"A {b.upper()} {c}"),
        (f"{a} the {b}", f"{a} {b} a"),
        (f"the pint {a}", f"{a} paint {b}"),
    ]


def _marks(draw: Draw) -> list[Case]:
    a, b, c = _some(draw, 3, 3)
    return [
        (f"{a} {b}.", f"{a} {b} {c}"),
        (f"{a}-{b}", f"{a} {b}"),
        (f'"the {a}" ({b})', f"{a}, {b}"),
        (f"{a} 3.5", f"{a}'s 35 {b}"),
    ]


def _nothing(draw: Draw) -> list[Case]:
    a, b = _some(draw, 2, 2)
    return [("", ""), ("", f"{a} {b}"), (f"{a} {b}", ""), ("the", f"{a}"), ("The.", "")]


def _everything(draw: Draw) -> list[Case]:
    pairs = [_overlap(draw, repeat=True) for _ in range(40)]
    drawn = [(_dressed(draw, said), _dressed(draw, gold)) for said, gold in pairs]
    return [*drawn, *_capitals(draw), *_marks(draw), *_nothing(draw)]


def _with_words(draw: Draw) -> list[Case]:
    """As `_everything`, without empty answers."""
    return [case for case in _everything(draw) if all(map(normalise_answer, case))]


def _without_marks(draw: Draw) -> list[Case]:
    pairs = [_overlap(draw, repeat=True) for _ in range(20)]
    return [*_capitals(draw), *((_dressed(draw, a, False), _dressed(draw, b, False))
                                for a, b in pairs)]  # fmt: skip


def _bare(draw: Draw) -> list[Case]:
    return [*_shared(draw), *_shared(draw), *_repeated(draw), *_repeated(draw)]


# ---------------------------------------------------------------- stages


def _ask_f1(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case)), token_f1(*case)
            if close(given, right):
                continue
            asked = pools(cases, draw, _everything, _with_words, _without_marks, _bare)
            found = name_suspect(answer, case, asked, ANSWER_SUSPECTS, _same)
            said = f"Predicted {case[0]!r}, gold {case[1]!r}: you have {given:.4g}; it is "
            raise told(found, f"{said}{right:.4g}.")

    return ask


def _read(x: Any) -> float:
    return one_number(x, "F1, from 0 to 1")


def _same(mine: Any, theirs: float, _case: Case) -> bool:
    return close(_read(mine), theirs)


ANSWERS = Exercise(
    id="03.4",
    title="How right is an answer?",
    purpose="SQuAD's F1, with all its small print",
    difficulty=2,
    minutes=12,
    signature="my_answer_f1(predicted, gold)",
    statement=(
        "Both are texts. First make each comparable: lower case; without punctuation (each "
        "character of `string.punctuation` goes, and leaves no gap); then without the words `a`, "
        "`an` and `the`. Split what is left at spaces. Precision is the share of the predicted "
        "words that the gold answer has too, recall the share of the gold words that were "
        "predicted. A word is shared as often as both have it. Return F1 = 2PR / (P + R), from 0 "
        "to 1, and 0 where no word is shared. Where one of the two has no words left, the result "
        "is 1 if the other has none either, else 0: that is how *no answer* is scored."
    ),
    hints=(
        'text.translate(str.maketrans("", "", string.punctuation)) removes punctuation.',
        "Split at spaces, then keep the words that are none of the three articles.",
        "Counter(a) & Counter(b), from collections, keeps each word as often as both have it; "
        ".total() adds up.",
        "F1 can be written without P and R: 2 · shared / (words of the one + words of the other).",
        '"The old, old wall" and "an old wall" become old old wall and old wall: 2 · 2 / (3 + 2) = '
        "0.8.",
    ),
    solution=token_f1,
    library=(
        "course_lib.train.span_metrics:normalise_answer",
        "course_lib.train.span_metrics:answer_f1",
        "course_lib.train.span_metrics:_words_f1",
    ),
    when_raised=(
        (
            r"division by zero",
            "Nothing was shared, or an answer has no words left. Ask for these cases first: no "
            "shared word gives 0, two empty answers give 1.",
        ),
        (
            r"total",
            "Counter.total() is there from Python 3.10 on; sum(counter.values()) does the same.",
        ),
    ),
    stages=(
        Check("right, wrong, and a part", _ask_f1(_whole)),
        Check("some words are shared", _ask_f1(_shared)),
        Check("words that come twice", _ask_f1(_repeated)),
        Check("capitals and articles", _ask_f1(_capitals)),
        Check("punctuation", _ask_f1(_marks)),
        Check("empty answers", _ask_f1(_nothing)),
        Check("forty drawn pairs", _ask_f1(_everything)),
    ),
)
