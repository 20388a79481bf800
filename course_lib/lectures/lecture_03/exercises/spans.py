"""Exercise 03.2: from tags to entities. The solution is the library's own.

The known wrong answers first, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
)
from course_lib.train.span_metrics import Span, bio_spans

from .slips import pools, slip_suspects

Case = tuple[list[str]]
Cases = Callable[[Draw], list[Case]]
KINDS = ("PER", "ORG", "LOC")


# ---------------------------------------------------------------- known wrong answers


def _with(
    *,
    grows: bool = True,
    merge: bool = False,
    kind: str = "asked",
    stray: bool = True,
    other: bool = True,
    outside: str = "ends",
    at_end: str = "kept",
    behind: bool = True,
    shape: Callable[[str, int, int], Any] = lambda kind, first, last: (kind, first, last),
    keep: Callable[[list[list[Any]]], list[list[Any]]] = lambda found: found,
) -> Answer:
    """The answer with switches for going wrong.

    grows: does an I- lengthen an entity; merge: does a B- of its kind; kind: is the I-'s kind
    asked for, or is it ignored and the entity keeps its "first" or takes the "last"; stray and
    other: does an I- begin an entity after O, and after another kind; outside: what O does;
    at_end: what becomes of an entity that reaches the end; behind: may an entity begin right behind
    another; keep: which ones are given in the end."""

    def answer(tags: Sequence[str]) -> list[Any]:
        found: list[list[Any]] = []  # kind, first, last
        is_open = False
        for place, tag in enumerate(tags):
            mark, _, here = tag.partition("-")
            if tag == "O":
                is_open = is_open and outside != "ends"
                continue
            alike = is_open and (kind != "asked" or here == found[-1][0])
            if alike and grows and (mark == "I" or merge):
                found[-1][2] = place
                if kind == "last":
                    found[-1][0] = here
            elif (behind or not is_open) and (mark == "B" or (other if is_open else stray)):
                found.append([here, place, place])
                is_open = True
            else:
                is_open = False
        if at_end != "kept" and is_open and found[-1][2] == len(tags) - 1:
            *found, (name, first, last) = found
            found += [[name, first, last + 1]] if at_end == "one too far" else []
        return [shape(*span) for span in keep(found)]

    return answer


SLIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "B- merged": (
        "A B- right behind an entity of the same kind is taken into it. B- always begins a new "
        "one: two names side by side are two.",
        {"merge": True},
    ),
    "kind ignored": (
        "An I- of another kind goes on with the entity before it. A span goes on only while I- of "
        "*its own* kind follows; this I- begins a new one.",
        {"kind": "first"},
    ),
    "kind of the last word": (
        "An I- of another kind goes on with the entity before it and changes its kind. A span goes "
        "on only while I- of its own kind follows; this I- begins a new one.",
        {"kind": "last"},
    ),
    "last one lost": (
        "An entity that reaches the end of the sentence is missing. It is only added when "
        "something follows it; after the loop, add what is still open.",
        {"at_end": "lost"},
    ),
    "last one too far": (
        "An entity that reaches the end of the sentence ends one word too late there: its last "
        "word is len(tags) − 1.",
        {"at_end": "one too far"},
    ),
    "next one lost": (
        "What begins right behind an entity is missing. The tag that ends one entity may begin "
        "another: look at it again.",
        {"behind": False},
    ),
    "stray I- dropped": (
        "An I- that continues nothing is dropped. By the rule of this exercise, CoNLL's, it begins "
        "an entity as a B- would. A model writes such tags.",
        {"stray": False, "other": False},
    ),
    "stray I- dropped after O": (
        "An I- behind O, or at the start of the sentence, is dropped. By the rule of this "
        "exercise, CoNLL's, it begins an entity as a B- would.",
        {"stray": False},
    ),
    "I- of another kind dropped": (
        "An I- behind an entity of another kind is dropped. By the rule of this exercise, CoNLL's, "
        "it begins an entity as a B- would.",
        {"other": False},
    ),
    "O does not end it": (
        "An I- behind O goes on with an entity from before the O. O ends whatever is open.",
        {"outside": "is skipped"},
    ),
    "words instead of entities": (
        "Each tagged word is an entity of its own. B-PER I-PER is one, of two words.",
        {"grows": False},
    ),
    "end excluded": (
        "The last number is one too large: the place behind the entity, as in a Python slice. Here "
        "it is the last word, itself included.",
        {"shape": lambda kind, first, last: (kind, first, last + 1)},
    ),
    "end one too early": (
        "The last number is one too small. It is the place of the entity's last word.",
        {"shape": lambda kind, first, last: (kind, first, last - 1)},
    ),
    "counted from 1": (
        "Words are counted from 1; here the first word is 0.",
        {"shape": lambda kind, first, last: (kind, first + 1, last + 1)},
    ),
    "length": (
        "The last number is how many words the entity has; expected the place of its last word.",
        {"shape": lambda kind, first, last: (kind, first, last - first + 1)},
    ),
    "first word only": (
        "Each entity ends at its first word: I- tags do not lengthen it.",
        {"shape": lambda kind, first, last: (kind, first, first)},
    ),
    "tag instead of kind": (
        "The kind is written with its B-. The kind of B-PER is PER.",
        {"shape": lambda kind, first, last: ("B-" + kind, first, last)},
    ),
    "one of each kind": (
        "Of each kind only one entity is left. A sentence may name two people: collect tuples, not "
        "a dictionary by kind.",
        {"keep": lambda found: [[*x] for x in {x[0]: tuple(x) for x in found}.values()]},
    ),
    "only the first": (
        "Only the first entity is in your result. Does a `return` stand inside the loop?",
        {"keep": lambda found: found[:1]},
    ),
    "single words lost": (
        "Entities of one word are missing. A B- without an I- behind it is an entity, too.",
        {"keep": lambda found: [x for x in found if x[1] < x[2]]},
    ),
}


def _up_to_the_next(tags: Sequence[str]) -> list[Span]:
    """From each B- to the word before the next B-, or to the end of the sentence."""
    at = [place for place, tag in enumerate(tags) if tag.startswith("B-")]
    ends = [*at[1:], len(tags)] if at else []
    return [(tags[a][2:], a, b - 1) for a, b in zip(at, ends, strict=True)]


def _runs(tags: Sequence[str]) -> list[Span]:
    """Runs of words that are not O, with the kind of the first."""
    found: list[Span] = []
    for place, tag in enumerate(tags):
        if tag == "O":
            continue
        if place and tags[place - 1] != "O":
            kind, first, _ = found.pop()
            found.append((kind, first, place))
        else:
            found.append((tag[2:], place, place))
    return found


def _begins_only(tags: Sequence[str]) -> list[Span]:
    return [(tag[2:], n, n) for n, tag in enumerate(tags) if tag[0] == "B"]


def _lengthens_the_last(tags: Sequence[str]) -> list[Span]:
    found: list[Span] = []
    for place, tag in enumerate(tags):
        if tag[0] == "B":
            found.append((tag[2:], place, place))
        elif tag[0] == "I" and found:
            kind, first, _ = found.pop()
            found.append((kind, first, place))
    return found


def _never_closed(tags: Sequence[str]) -> list[Span]:
    """What is open is given at every tag that does not go on with it, and stays open."""
    found: list[Span] = []
    kind, first = "", 0
    for place, tag in enumerate(tags):
        if kind and tag == f"I-{kind}":
            continue
        if kind:
            found.append((kind, first, place - 1))
        if tag != "O":
            kind, first = tag[2:], place
    return [*found, (kind, first, len(tags) - 1)] if kind else found


SPAN_SUSPECTS = slip_suspects(
    _with,
    SLIPS,
    Suspect(
        "only B- is read",
        "Only words with B- are in your result, each by itself. The I- behind it lengthen an "
        "entity.",
        _begins_only,
    ),
    Suspect(
        "every I- lengthens the last",
        "Every I- lengthens the last entity, whatever its kind and whatever stands between. It "
        "goes on only with an entity of its own kind that ends right before it; any other I- "
        "begins one.",
        _lengthens_the_last,
    ),
    Suspect(
        "never closed",
        "An entity is given again and again, each time longer: after you have added it, nothing is "
        "open any more.",
        _never_closed,
    ),
    Suspect(
        "up to the next B-",
        "Each entity reaches to the next B-, across words that are O. O ends whatever is open.",
        _up_to_the_next,
    ),
    Suspect(
        "runs of names",
        "Every run of words that are not O is one entity. B- begins a new one, and so does an I- "
        "of another kind.",
        _runs,
    ),
)


# ---------------------------------------------------------------- inputs


def _entity(kind: str, words: int) -> list[str]:
    return [f"B-{kind}", *[f"I-{kind}"] * (words - 1)]


def _one(draw: Draw) -> list[Case]:
    kind, other = draw.python.sample(KINDS, 2)
    return [
        (["O", *_entity(kind, 1), "O"],),
        (["O", "O", *_entity(other, 3), "O"],),
        (["O"] * draw.integer(2, 5),),
    ]


def _several(draw: Draw) -> list[Case]:
    a, b = draw.python.sample(KINDS, 2)
    return [
        ([*_entity(a, 2), "O", *_entity(b, 1), "O"],),
        (["O", *_entity(a, 1), "O", "O", *_entity(a, 2), "O", *_entity(b, 3), "O"],),
    ]


def _at_the_end(draw: Draw) -> list[Case]:
    a, b = draw.python.sample(KINDS, 2)
    return [
        (["O", *_entity(a, 1)],),
        ([*_entity(a, 1), "O", *_entity(b, 2)],),
        (_entity(b, draw.integer(2, 4)),),
    ]


def _side_by_side(draw: Draw) -> list[Case]:
    a, b = draw.python.sample(KINDS, 2)
    return [
        (["O", *_entity(a, 1), *_entity(b, 1), "O"],),
        (["O", *_entity(a, 2), *_entity(a, 2), "O"],),
        ([*_entity(b, 1), *_entity(b, 1), *_entity(a, 2), *_entity(b, 1)],),
    ]


def _proper(draw: Draw) -> list[Case]:
    """Drawn sentences as annotators write them."""
    made = []
    for _ in range(60):
        tags: list[str] = []
        for _ in range(draw.integer(1, 5)):
            tags += ["O"] * draw.integer(0, 2)
            tags += _entity(draw.python.choice(KINDS), draw.integer(1, 3))
        made.append((tags + ["O"] * draw.integer(0, 1),))
    return made


def _stray(draw: Draw) -> list[Case]:
    a, b = draw.python.sample(KINDS, 2)
    return [
        (["O", f"I-{a}", "O"],),
        ([f"I-{a}", f"I-{a}", "O", f"B-{b}", "O", f"I-{b}"],),
        ([f"B-{a}", f"I-{b}", f"I-{b}", "O"],),
        (["O", f"B-{a}", "O", f"I-{a}", f"I-{b}", f"B-{a}"],),
    ]


def _everything(draw: Draw) -> list[Case]:
    tags = ["O", "O", *(f"{mark}-{kind}" for kind in KINDS[:2] for mark in "BIB"), "I-PER"]
    return [([draw.python.choice(tags) for _ in range(draw.integer(2, 9))],) for _ in range(120)]


# ---------------------------------------------------------------- stages


def _ask_spans(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in sorted(cases(draw), key=lambda case: len(case[0])):  # the shortest fails first
            given, right = _read(call(answer, *case)), sorted(bio_spans(*case))
            if given == right:
                continue
            if len(given) > len({*given}) and set(given) == set(right):
                raise Mistake(
                    "given twice",
                    f"{' '.join(case[0])}: an entity stands twice in your result, {given}. Once "
                    "it is closed, nothing is open any more.",
                )
            asked = pools(cases, draw, _everything, _proper)
            found = name_suspect(answer, case, asked, SPAN_SUSPECTS, _same)
            raise told(
                found,
                f"{' '.join(case[0])}: you have {given or 'no entity'}; it is "
                f"{right or 'no entity'}.",
            )

    return ask


def _read(x: Any) -> list[Any]:
    """Sorted, so that the order does not matter."""
    if isinstance(x, (Mapping, str)) or not hasattr(x, "__iter__"):
        raise _not_spans(x)
    found = [tuple(span) if isinstance(span, (tuple, list)) else span for span in x]
    if not all(isinstance(span, tuple) and len(span) == 3 for span in found):
        raise _not_spans(x)
    kinds = [[isinstance(part, str) for part in span] for span in found]
    if any(kind in ([False, True, False], [False, False, True]) for kind in kinds):
        raise Mistake(
            "order of the three",
            f"Your result has {found[0]}; expected (kind, first, last), in this order.",
        )
    if not all(kind == [True, False, False] for kind in kinds):
        raise _not_spans(x)
    return sorted((kind, int(first), int(last)) for kind, first, last in found)


def _not_spans(x: Any) -> Mistake:
    return Mistake(
        "wrong type",
        f"Your function returned {x!r:.80} ({type(x).__name__}); expected a list, or a set, of "
        "tuples (kind, first, last), such as [('PER', 0, 1)].",
    )


def _same(mine: Any, theirs: list[Any], _case: Case) -> bool:
    return _read(mine) == sorted(theirs)


SPANS = Exercise(
    id="03.2",
    title="From tags to entities",
    purpose="a tagger is judged by whole entities, not by words",
    difficulty=3,
    minutes=15,
    signature="my_spans(tags)",
    statement=(
        "Read the entities off the tags of one sentence. `tags` has one for each word: `O`, "
        "`B-kind` for the first word of an entity, `I-kind` for its further words. Return a list "
        "(or a set) of tuples (kind, first, last): the kind without B- or I-, and the places of "
        "the first and the last word, counted from 0, both included. "
        "`O B-PER I-PER O B-LOC` has two: ('PER', 1, 2) and ('LOC', 4, 4).  \n"
        "Models also write what no annotator would: an I- that continues nothing, at the start, "
        "behind O, or behind an entity of another kind. It begins an entity, as a B- would; that "
        "is how CoNLL's scorer and seqeval read it."
    ),
    hints=(
        "Go through the words and keep what is open: the kind and the first word of an entity, or "
        "nothing.",
        "At each word ask first: does it go on with what is open? Only an I- of the same kind "
        "does. Anything else closes it.",
        'tag[2:] is the kind, tag[0] the letter; or mark, _, kind = tag.partition("-").',
        "Close an entity in two places: where another tag ends it, and at the end of the sentence. "
        "Or let one O follow the tags: [*tags, 'O'].",
        "I-PER B-PER I-LOC has three: ('PER', 0, 0), ('PER', 1, 1), ('LOC', 2, 2).",
    ),
    solution=bio_spans,
    library=(
        "course_lib.train.span_metrics:bio_spans",
        "course_lib.train.span_metrics:_mark_and_kind",
    ),
    when_raised=(
        (
            r"not enough values to unpack|split",
            'O has no kind, so "O".split("-") has one part only: treat O first, or use partition, '
            "which always gives three parts.",
        ),
        (
            r"NoneType",
            "Nothing is open yet, or no longer, and your code asks for its kind: ask `is not "
            "None` first.",
        ),
        (
            r"list index out of range",
            "A place behind the last tag was asked for. Where you look at the next word, the last "
            "word has none.",
        ),
    ),
    stages=(
        Check("at most one entity", _ask_spans(_one)),
        Check("several, with O between them", _ask_spans(_several)),
        Check("an entity at the end of the sentence", _ask_spans(_at_the_end)),
        Check("entities side by side", _ask_spans(_side_by_side)),
        Check("an I- that continues nothing", _ask_spans(_stray)),
        Check("120 drawn sentences", _ask_spans(_everything)),
    ),
)
