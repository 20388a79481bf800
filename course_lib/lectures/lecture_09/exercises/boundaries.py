"""Exercise 09.3: what the span-boundary objective predicts from. T positions."""

from __future__ import annotations

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Items

Pair = tuple[int, int]
Triple = tuple[int, int, int]


def boundaries(is_text: list[bool], spans: list[Pair], longest: int) -> list[Triple]:
    """(before, behind, relative) of each token that is predicted, span by span (section 3.2)."""
    triples = []
    for first, last in spans:
        if is_text[first - 1] and is_text[last + 1]:
            for t in range(first, min(last, first + longest - 1) + 1):
                triples.append((first - 1, last + 1, t - first))
    return triples


# ---------------------------------------------------------------- cases


def case(draw: Draw, lengths: tuple[int, ...], longest: int, touch: str = "", pad: int = 0) -> Case:
    """One text with spans of these lengths. touch: "start", "end" or both: the first span begins
    behind [CLS], the last ends before [SEP]; pad: positions of padding."""
    at, spans = (1 if "start" in touch else draw.integer(2, 5)), []
    for length in lengths:
        spans.append((at, at + length - 1))
        at += length + draw.integer(1, 4)
    tokens = spans[-1][1] + 1 if "end" in touch else spans[-1][1] + draw.integer(2, 5)
    return [False, *[True] * (tokens - 1), *[False] * (1 + pad)], spans, longest


TOUCH = "is_text[first - 1] and is_text[last + 1]"
RANGE = "range(first, min(last, first + longest - 1) + 1)"
TRIPLE = "(first - 1, last + 1, t - first)"
SKIPPED = (
    "A span that touches [CLS] or [SEP] has no word on that side; it is left out, as in the "
    "released code."
)

BOUNDARIES = Exercise(
    **written("09.3"),
    solution=boundaries,
    returns=Items("list of boundaries", of="triples (before, behind, relative)"),
    see="course_lib.objectives.span_boundary.boundary_targets (of a whole batch); "
        "course_lib.heads.SpanBoundaryHead makes logits of the two vectors and the relative "
        "position",
    when_raised=(
        (r"not subscriptable|unpack", "A span is a pair (first, last); unpack it in the loop: "
         "for first, last in spans."),
        (r"out of range", "is_text has an entry for every position, [CLS] and padding included. "
         "The neighbours of a span are first − 1 and last + 1."),
    ),
    stages=(
        Stage("a span of one token, and one of several",
              each(case, ((1,), 15), ((4,), 15), ((5,), 15))),
        Stage("several spans", each(case, ((2, 3), 15), ((3, 1, 4), 15, "", 2))),
        Stage("a span that touches [CLS] or [SEP]",
              each(case, ((2, 3), 15, "start"), ((2, 2, 1), 15, "end"), ((3,), 15, "start"),
                   ((2, 1, 3), 15, "start end"), ((3,), 15, "end", 3), ((4,), 15, "start end"))),
        Stage("a span longer than `longest`",
              each(case, ((6,), 3), ((3, 7), 4), ((4, 5), 4), ((9, 2), 1))),
        Stage("all of it", each(case, ((18, 3, 2), 15, "start", 3), ((2, 16, 4), 15, "end", 1),
                                ((3, 17, 2), 15, "", 2))),
    ),
    mistakes=(
        Edit(TRIPLE, "(first, last, t - first)", "Your boundaries are the first and the last "
             "token *of* the span. Those are masked. The boundaries are before and behind the "
             "span."),
        Edit(TRIPLE, "(t - 1, t + 1, t - first)", "Your boundaries are the neighbours of the "
             "token. Inside a span those are masked; the boundaries are the *span's* neighbours, "
             "the same for all of its tokens."),
        Edit(TRIPLE, "(first - 1, last + 1, t - first + 1)", "Your relative positions count from "
             "1, as the paper's p₁, p₂, … Here they are rows of a table, and count from 0."),
        Edit(TRIPLE, "(first - 1, last + 1, t)", "Your third number is the position in the "
             "sequence. Expected is the position in the span, 0 for its first token."),
        Edit(TRIPLE, "(first - 1, last + 1, last - t)", "Your relative positions count "
             "from the end of the span. The first token has 0."),
        Edit(TRIPLE, "(first - 1, last + 1, last - first)", "Your third number is the same for "
             "all tokens of a span, so all would get the same prediction. Expected is the "
             "token's position in the span."),
        Edit(TRIPLE, "(first - 1, last + 1, len(triples))", "Your relative positions keep "
             "counting in the next span. Each span starts at 0."),
        Edit(TRIPLE, "(first - 1, last, t - first)", "`last` is included in the span: the position "
             "behind it is last + 1."),
        Edit(TRIPLE, "(first - 1, min(last, first + longest - 1) + 1, t - first)", "In a long "
             "span your second boundary is the token behind the last predicted one, which is "
             "itself masked. The boundary is behind the whole span."),
        Edit(TRIPLE, "(last + 1, first - 1, t - first)", "Before and behind are exchanged."),
        Edit(TRIPLE, "(t - first, first - 1, last + 1)", "The relative position comes first in "
             "your triples. Expected is (before, behind, relative)."),
        Edit(TRIPLE, "(t - first, last + 1 - t, t - first)", "Your first two numbers are "
             "distances. Expected are positions in the sequence."),
        Edit(TOUCH, "True", f"Spans without a word on both sides are in your "
             f"list. {SKIPPED} (Ask the *neighbours*: the span's own tokens always are text.)"),
        Edit(f"if {TOUCH}:", f"if not ({TOUCH}):\n            break\n        else:", "You stop "
             "at the first span that touches [CLS] or [SEP]. Leave it out and go on with the "
             "next."),
        Edit(TOUCH, "first > 1 and last < len(is_text) - 2", "You compare with the ends of the "
             "list. There may be padding behind [SEP]: check is_text to see whether there is a "
             "word."),
        Edit(TOUCH, "is_text[first - 1]", f"You look at the side before the span only. {SKIPPED}"),
        Edit(TOUCH, "is_text[last + 1]", f"You look at the side behind the span only. {SKIPPED}"),
        Edit(TOUCH, "is_text[first - 1] or is_text[last + 1]",
             f"One word beside the span is not enough. {SKIPPED}"),
        Edit(RANGE, "range(first, last + 1)", "Tokens behind the first `longest` of a span are in "
             "your list. The table of relative positions has `longest` rows: those tokens are left "
             "out."),
        Edit(RANGE, "range(first, last + 1 if last - first < longest else first)", "A span longer "
             "than `longest` is left out as a whole. Its first `longest` tokens are predicted."),
        Edit(RANGE, "range(first, min(last, first + longest) + 1)", "You take one token too "
             "many from a long span: relative positions are 0 to longest − 1."),
        Edit(RANGE, "range(max(first, last - longest + 1), last + 1)", "In a long span you take "
             "the last `longest` tokens. Take the first ones."),
        Edit(RANGE, "range(first, min(last, first + longest - 1))", "The last token is missing: "
             "`last` is included in the span, and range(a, b) ends before b."),
        Edit("triples = []", "triples, spans = [], spans[:1]", "Only the first span's "
             "tokens are in your list."),
    ),
)  # fmt: skip
