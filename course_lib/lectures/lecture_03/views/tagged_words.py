"""A tagged sentence: words in boxes, their tags below, entities in brackets, mistakes marked.

Right and wrong differ in sign, frame and word, not in colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from course_lib.teaching.page import Html, card, paragraphs
from course_lib.teaching.tokens import PLAIN, REPLACED, box
from course_lib.train.span_metrics import Span, bio_spans

_ROW = "display:flex;flex-wrap:wrap;row-gap:6px;text-align:center;font-size:11px;line-height:15px"
_INK = "2px solid #1a1a1a"


def tag_view(
    words: Sequence[str], predicted: Sequence[str], true: Sequence[str] | None = None
) -> Html:
    """The words of a sentence with the predicted tags below them, and the true ones above if given.

    BIO tags get a bracket an entity; other tags, such as parts of speech, stand alone. A word with
    a wrong tag has a double frame and ✗. Raises ValueError for tags that are not as many as the
    words, and for a mixture of BIO and other tags.
    """
    _check(words, predicted, true)
    bio = any(tag[:2] in ("O", "B-", "I-") for tag in [*predicted, *(true or ())])
    brackets, true_brackets = _brackets(predicted, bio), _brackets(true or (), bio)
    cells = []
    for k, word in enumerate(words):
        wrong = true is not None and true[k] != predicted[k]
        above = "" if true is None else _tag(true[k], true_brackets[k], True, False)
        below = _tag(predicted[k], brackets[k], False, wrong)
        framed = box(word, REPLACED if wrong else PLAIN, "wrong tag" if wrong else "")
        cells.append(f"<div>{above}{framed}{below}</div>")
    lines = (_entity_lines if bio else _tag_lines)(words, predicted, true)
    sides = "" if true is None else (
        '<p style="margin:0 0 6px;font-size:12px;color:#444">above the words: the true tags; '
        "below: the predicted ones; double frame and ✗: a wrong tag</p>"
    )  # fmt: skip
    row = f'<div class="tagged-words" style="{_ROW}">{"".join(cells)}</div>'
    tagged = " ".join(f"{word}({tag})" for word, tag in zip(words, predicted, strict=True))
    return Html(
        card(sides + row + paragraphs(lines), "tag-view", 780), "\n".join([tagged, *lines]), row
    )


def _check(words: Sequence[str], predicted: Sequence[str], true: Sequence[str] | None) -> None:
    counts = {"predicted": len(predicted)} | ({} if true is None else {"true": len(true)})
    if not words or any(count != len(words) for count in counts.values()):
        listed = ", ".join(f"{count} {name} tags" for name, count in counts.items())
        raise ValueError(
            f"{len(words)} words, {listed} were given; expected at least one word, and a tag for "
            "each."
        )


# ---------------------------------------------------------------- drawn


def _brackets(tags: Sequence[str], bio: bool) -> list[tuple[bool, bool, bool]]:
    """For each word: does an entity hold it, begin at it, end at it?"""
    held = [(False, False, False)] * len(tags)
    for _, first, last in bio_spans(tags) if bio else ():
        for k in range(first, last + 1):
            held[k] = (True, k == first, k == last)
    return held


def _tag(tag: str, held: tuple[bool, bool, bool], above: bool, wrong: bool) -> str:
    """A tag and its part of the bracket, which lies between the tag and the word."""
    inside, begins, ends = held
    side = "top" if above else "bottom"
    lines = f"height:5px;border-{side}:{_INK}" if inside else "height:7px"
    lines += f";border-left:{_INK};margin-left:3px" * begins
    lines += f";border-right:{_INK};margin-right:3px" * ends
    bracket = f'<div class="bracket" style="{lines}"></div>'
    look = "font-weight:700" if inside or wrong else "color:#555"
    label = f'<div style="padding:0 4px;{look}">{"✗ " * wrong}{escape(tag)}</div>'
    return label + bracket if above else bracket + label


# ---------------------------------------------------------------- in words


def _entity_lines(
    words: Sequence[str], predicted: Sequence[str], true: Sequence[str] | None
) -> list[str]:
    entities = bio_spans(predicted)
    if true is None:
        listed = ", ".join(_named(words, span) for span in _in_order(entities)) or "none"
        return [f"Entities: {listed}."]
    truly = bio_spans(true)
    verdicts = [
        *(f"✓ {_named(words, span)}" for span in _in_order(entities & truly)),
        *(f"✗ {_named(words, span)}: {_why(span, truly)}" for span in _in_order(entities - truly)),
        *(f"✗ {_named(words, span)}: missed" for span in _in_order(truly - entities)
          if not any(_meet(span, other) for other in entities)),
    ]  # fmt: skip
    head = (
        f"{len(entities & truly)} of {len(truly)} true entities found; of {len(entities)} "
        f"predicted, {len(entities - truly)} wrong."
    )
    return [head, "; ".join(verdicts) + "."] if verdicts else [head]


def _tag_lines(
    words: Sequence[str], predicted: Sequence[str], true: Sequence[str] | None
) -> list[str]:
    if true is None:
        return [f"{len(words)} words, {len(set(predicted))} different tags."]
    wrong = [
        f"✗ “{word}”: {p}, should be {t}"
        for word, p, t in zip(words, predicted, true, strict=True)
        if p != t
    ]
    head = f"{len(words) - len(wrong)} of {len(words)} words have the right tag."
    return [head, "; ".join(wrong) + "."] if wrong else [head]


def _named(words: Sequence[str], span: Span) -> str:
    kind, first, last = span
    return f"{kind} “{' '.join(words[first : last + 1])}”"


def _why(span: Span, truly: set[Span]) -> str:
    """What is wrong with a predicted entity."""
    near = [other for other in truly if _meet(span, other)]
    if not near:
        return "no entity there"
    if any(other[1:] == span[1:] for other in near):
        return f"the kind is {next(other[0] for other in near if other[1:] == span[1:])}"
    return "begins or ends elsewhere" + ("" if any(o[0] == span[0] for o in near) else ", kind too")


def _meet(a: Span, b: Span) -> bool:
    return a[1] <= b[2] and b[1] <= a[2]


def _in_order(spans: set[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: span[1:])
