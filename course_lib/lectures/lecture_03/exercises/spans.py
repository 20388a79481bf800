"""Exercise 03.2: from tags to entities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Items
from course_lib.train.span_metrics import Span

KINDS = ("PER", "ORG", "LOC")
HYPHENED = ("art-film", "art-music", "person-actor")  # as in Few-NERD


def entity_spans(tags: Sequence[str]) -> list[Span]:
    """(kind, first, last) of each entity; an I- that continues nothing begins one."""
    spans: list[Span] = []
    for n, tag in enumerate(tags):
        mark, _, kind = tag.partition("-")
        before = spans[-1] if spans and spans[-1][2] == n - 1 else None  # ends right before
        if before and mark == "I" and before[0] == kind:
            spans[-1] = (*before[:2], n)
        elif mark != "O":
            spans.append((kind, n, n))
    return spans


def sentences(*patterns: str, kinds: Sequence[str] = KINDS) -> Callable[[Draw], list[Case]]:
    """One for each pattern, such as "O Bx Ix By", in which x and y are two drawn kinds."""

    def cases(draw: Draw) -> list[Case]:
        x, y = draw.python.sample(kinds, 2)
        full = {mark + end: f"{mark}-{k}" for mark in "BI" for end, k in (("x", x), ("y", y))}
        return [([full.get(tag, "O") for tag in pattern.split()],) for pattern in patterns]

    return cases


def anything(draw: Draw) -> list[Case]:
    kinds = (draw.python.choice(KINDS), draw.python.choice(HYPHENED))
    tags = ["O", "O", "O", *(f"{mark}-{kind}" for kind in kinds for mark in "BII")]
    return [(draw.python.choices(tags, k=draw.integer(2, 9)),) for _ in range(60)]


GOES_ON = 'before and mark == "I" and before[0] == kind'
BY_RULE = "By the rule of this exercise, CoNLL's, it begins an entity as a B- would."


def instead(returned: str, say: str) -> Edit:
    """Something else is returned, made of the entities."""
    return Edit("return spans", f"return {returned}", say)


SPANS = Exercise(
    **written("03.2"),
    solution=entity_spans,
    returns=Items("entities", of="tuples (kind, first, last), such as ('PER', 0, 1)",
                  ordered=False),
    library=("course_lib.train.span_metrics:bio_spans",
             "course_lib.train.span_metrics:_mark_and_kind"),
    when_raised=(
        (r"too many values.*\n.*partition",
         'partition always gives three parts: mark, _, kind = tag.partition("-").'),
        (r"too many values",
         'A kind may contain a hyphen itself: "B-art-film".split("-") has three parts. tag[2:], or '
         'split("-", 1).'),
        (r"values to unpack|split|string index out of range|substring not found",
         'O has no kind, so "O".split("-") has one part only: treat O first, or use partition, '
         "which always gives three parts."),
        (r"NoneType", "No entity is open here, but your code asks for its kind: test `is "
         "not None` first."),
        (r"list index out of range", "You read a position that a list does not have. There are two "
         'usual places: O has one part only, so there is no "O".split("-")[1]; and where you look '
         "at the next word, the last word has none."),
    ),
    stages=(
        Stage("at most one entity", sentences("O O O", "O Bx O", "O O By Iy Iy O")),
        Stage("several, with O between them",
              sentences("Bx Ix O By O", "O Bx O O Bx Ix O By Iy Iy O", "O Bx Ix O Bx O O")),
        Stage("an entity at the end of the sentence", sentences("O Bx", "Bx O By Iy", "By Iy Iy")),
        Stage("entities side by side",
              sentences("O Bx By O", "O Bx Ix Bx Ix O", "By By Bx Ix By")),
        Stage("kinds with a hyphen", sentences("O Bx O", "Bx Ix O By Iy Iy O", kinds=HYPHENED)),
        Stage("an I- that continues nothing",
              sentences("O Ix O", "Ix Ix O By O Iy", "Bx Iy Iy O", "O Bx O Ix Iy Bx")),
        Stage("60 drawn sentences", anything),
    ),
    mistakes=(
        Edit('and mark == "I" and', 'and mark != "O" and',
             "A B- right behind an entity of the same kind is taken into it. B- always begins a "
             "new one: two names side by side are two."),
        Edit(" and before[0] == kind", "",
             "An I- of another kind goes on with the entity before it. An entity goes on only "
             "while I- of *its own* kind follows; this I- begins a new one."),
        Edit(" and before[0] == kind", "", "An I- of another kind goes on with the entity before "
             "it and changes its kind. An entity goes on only while I- of its own kind follows; "
             "this I- begins a new one.", more=(("(*before[:2], n)", "(kind, before[1], n)"),)),
        Edit('elif mark != "O":', 'elif mark != "O" and not before:',
             "An entity right after another is missing. The tag that ends one entity may "
             "begin another: look at it again."),
        Edit('elif mark != "O":', 'elif mark == "B":',
             f"An I- that continues nothing is dropped. {BY_RULE} A model writes such tags."),
        Edit('elif mark != "O":', 'elif mark == "B" or (before and mark == "I"):',
             f"An I- behind O, or at the start of the sentence, is dropped. {BY_RULE}"),
        Edit('elif mark != "O":', 'elif mark == "B" or (not before and mark == "I"):',
             f"An I- behind an entity of another kind is dropped. {BY_RULE}"),
        Edit(" and spans[-1][2] == n - 1", "",
             "An I- after O continues an entity from before the O. O ends whatever is open."),
        Edit(" and spans[-1][2] == n - 1", "", "Every I- lengthens the last entity, whatever its "
             "kind and whatever is between. It continues only an entity of its own kind "
             "that ends right before it; any other I- begins one.",
             more=((" and before[0] == kind", ""), ('mark != "O"', 'mark == "B"'))),
        Edit(" and spans[-1][2] == n - 1", "",
             "Each entity reaches to the next B-, across words that are O. O ends whatever is "
             "open.", more=((GOES_ON, 'before and mark != "B"'), ('mark != "O"', 'mark == "B"'))),
        Edit(GOES_ON, 'before and mark != "O"', "Every run of words that are not O is one entity. "
             "B- begins a new one, and so does an I- of another kind."),
        Edit(GOES_ON, "False",
             "Each tagged word is its own entity. B-PER I-PER is one entity of two words."),
        Edit(GOES_ON, "False", "Only words with B- are in your result, each by itself. The I- "
             "behind it lengthen an entity.", more=(('elif mark != "O"', 'elif mark == "B"'),)),
        Edit('tag.partition("-")', '(*tag.split("-"), "")[0], "-", (*tag.split("-"), "")[1]',
             "A kind that contains a hyphen is cut there: the kind of B-art-film is art-film. "
             'tag[2:], or split("-", 1).'),
        Edit('tag.partition("-")', 'tag[0], "-", tag.split("-")[-1]',
             "Of a kind that contains a hyphen only the last part is left: the kind of B-art-film "
             'is art-film. tag[2:], or split("-", 1).'),
        instead("[s for s in spans if s[2] < len(tags) - 1]",
                "An entity that reaches the end of the sentence is missing. It is only added when "
                "something follows it; after the loop, add what is still open."),
        instead("[(k, a, b + (b == len(tags) - 1)) for k, a, b in spans]",
                "An entity that reaches the end of the sentence ends one word too late there: its "
                "last word is len(tags) − 1."),
        instead("[(k, a, b + 1) for k, a, b in spans]",
                "The last number is one too large: the position behind the entity, as in a Python "
                "slice. Here it is the last word, itself included."),
        instead("[(k, a, b - 1) for k, a, b in spans]",
                "The last number is one too small. It is the position of the entity's last word."),
        instead("[(k, a + 1, b + 1) for k, a, b in spans]",
                "Words are counted from 1; here the first word is 0."),
        instead("[(k, a, b - a + 1) for k, a, b in spans]", "The last number is how many words the "
                "entity has; expected the position of its last word."),
        instead("[(k, a, b - a) for k, a, b in spans]",
              "The last number is how far the last word is from the first; expected its position."),
        instead("[(k, a, a) for k, a, b in spans]",
                "Each entity ends at its first word: I- tags do not lengthen it."),
        instead("[(tags[a], a, b) for k, a, b in spans]",
                "The kind is written with its B- (or I-). The kind of B-PER is PER."),
        instead("[(a, b, k) for k, a, b in spans]",
                "The three are in another order; expected (kind, first, last)."),
        instead("[*{s[0]: s for s in spans}.values()]", "Of each kind only one entity is left, the "
                "last. A sentence may name two people: collect tuples, not a dictionary by kind."),
        instead("[*{s[0]: s for s in spans[::-1]}.values()]",
                "Of each kind only the first entity is given. A sentence may name two people."),
        instead("spans[:1]",
                "Only the first entity is in your result. Is a `return` inside the loop?"),
        instead("[s for s in spans if s[1] < s[2]]",
              "Entities of one word are missing. A B- without an I- behind it is an entity, too."),
        instead("[*spans, *spans]", "An entity is twice in your result. Once it is closed, "
                "nothing is open any more."),
        instead("[(k, a, p) for (k, a, b), (_, end, _) in zip(spans, [*spans[1:], ('', len(tags), "
                "0)]) for p in range(b, end)]",
                "An entity is given again and again, each time longer: after you have added it, "
                "nothing is open any more."),
    ),
)  # fmt: skip
