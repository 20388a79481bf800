"""What deck 13 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

import re
from html import escape
from statistics import fmean, median
from typing import Any

import drawing
import numpy as np
from drawing import body_of, code, for_a_hall, grid, large, rect, svg, table, words
from scipy.stats import binomtest

from course_lib.lectures.lecture_13 import guide, tables
from course_lib.lectures.lecture_13.interfaces import interfaces as asked
from course_lib.lectures.lecture_13.pretraining_runs import MEMBERS, steps_of
from course_lib.lectures.lecture_13.views import benchmark as views
from course_lib.lectures.lecture_13.views.guide import USUAL, changes
from course_lib.lectures.lecture_13.views.real_text import documentation_chart
from course_lib.lectures.lecture_13.views.tables import GLUE_HEAD
from course_lib.teaching.numbers import signed
from course_lib.teaching.page import inline
from course_lib.teaching.style import BLUE, FAINT, INK, ORANGE
from course_lib.train.calibration import bootstrap_interval

BOLD = "font-weight='650'"
FRAME = "border:2.5px solid #0072b2;border-radius:5px;padding:0 6px"

# ---------------------------------------------------------------- by hand

TEXTS = {
    "✓": (78, "both right"), "✗": (16, "both wrong"), "B": (4, "only B right"),
    "A": (2, "only A right"),
}  # fmt: skip
LOOKS = {"✓": "#fff", "✗": FAINT, "B": "#9fcbe6", "A": "#f7cf7a"}


def hundred_texts() -> str:
    """A box a text, with who is right on it."""
    marks = [mark for mark, (count, _) in TEXTS.items() for _ in range(count)]
    rows = [marks[n : n + 20] for n in range(0, 100, 20)]
    boxes = grid(rows, 1, 1, (57, 50), _mark)
    under = [
        rect(285 * n + 1, 266, 40, 34, **_mark(mark))
        + words(285 * n + 52, 291, f"{name}: <tspan {BOLD}>{count}</tspan>", 24, "start")
        for n, (mark, (count, name)) in enumerate(TEXTS.items())
    ]
    said = "; ".join(f"{name}: {count}" for count, name in TEXTS.values())
    return svg(1140, 316, *boxes, *under, says=said)


def _mark(mark: str, *_: int) -> dict[str, Any]:
    return {"text": mark, "fill": LOOKS[mark]}


def how_sure() -> str:
    """The difference of the two, where resampled test sets have it, and McNemar's p."""
    one, other = TEXTS["B"][0], TEXTS["A"][0]
    gains = np.repeat([1, -1, 0], [one, other, 100 - one - other])
    low, high = (signed(100 * end) for end in bootstrap_interval(gains))
    rows = [(
        signed(100 * float(gains.mean())), f"{low} to {high}",
        f"p = {binomtest(one, one + other).pvalue:.2f}",
    )]  # fmt: skip
    coin = "as uneven with a fair coin"
    head = ("B is ahead by", "95% of resampled test sets", coin)
    return table(head, rows, numbers=False, size=26)


# ---------------------------------------------------------------- tasks, tables, FLOPs


def nine_tasks() -> str:
    return large(views.glue_table(theirs=False).inner.replace("STS-B", "STS\u2011B"), 1.62)


def mixed_table() -> str:
    """What a source lecture prints, and published averages a recipe a column."""
    compared = tables.compared()
    known = {f"{model.printed:.1f}" for model in compared} | {"79.6"}  # of the second guess

    def cell(mean: float) -> str:
        said = f"{mean:.1f}"
        return f'<span style="{FRAME}">{said}</span>' if said in known else said

    rows = [
        (model.model, f"<strong>{model.printed:.1f}</strong>",
         *(" / ".join(map(cell, model.by_recipe.get(recipe, ()))) or "–"
           for recipe in tables.SINGLE),
         model.cost, "–" if model.flops is None else f"{model.flops:.1f}×")
        for model in compared
    ]  # fmt: skip
    return table((*GLUE_HEAD[:2], *GLUE_HEAD[3:]), rows, size=24)


def code_steps() -> str:
    return code(body_of(steps_of))


def steps() -> Any:
    values = {name: views.runs_of(name)[0]["steps"] for name in MEMBERS}
    figure = drawing.bars(values, (), 1140, 390)
    figure.update_traces(text=[f"{count:,}" for count in values.values()])
    return figure.update_xaxes(tickfont_size=18).update_yaxes(title_text="steps")


# ---------------------------------------------------------------- the benchmark


def benchmark() -> str:
    """The picture alone: who leads is what the room is asked."""
    shown = views.benchmark_picture(shown="the family").html
    return large(re.sub(r"<p [^>]*>Highest.*?</p>", "", shown), 1.36)


def ahead() -> str:
    return views.points_ahead()


def sizes() -> Any:
    return for_a_hall(views.equal_size_chart(), 1140, 470).update_traces(marker_size=14)


def documentation() -> Any:
    return for_a_hall(documentation_chart(), 1140, 520).update_traces(textfont_size=18)


def sentiment() -> str:
    return large(views.sentiment_table().inner, 1.38)


# ---------------------------------------------------------------- time, interfaces


def ten_calls() -> str:
    """Ten calls as bars, the first one slow, and what is made of them."""
    calls = [900] + 9 * [10]
    bars = [
        f'<rect x="{4 + 40 * n}" y="{188 - 0.18 * ms:g}" width="30" height="{0.18 * ms:g}" '
        f'fill="{ORANGE if n == 0 else BLUE}" stroke="{INK}"/>' for n, ms in enumerate(calls)
    ]  # fmt: skip
    said = [
        f"mean of all ten: <tspan {BOLD}>{fmean(calls):g} ms</tspan>",
        f"median: <tspan {BOLD}>{median(calls):g} ms</tspan>",
        f"without the first, mean and median: {fmean(calls[1:]):g} ms",
    ]
    lines = [words(480, 60 + 48 * n, text, 27, "start") for n, text in enumerate(said)]
    named = [words(44, 40, f"first call, {calls[0]} ms", 22, "start"),
             words(222, 160, f"nine calls, {calls[1]} ms each", 22)]  # fmt: skip
    return svg(1140, 204, *bars, *named, *lines, says="ten calls, the first one slow")


def interfaces() -> str:
    rows = [
        (f'<span style="white-space:nowrap">{one.member}</span>',
         f'<span style="white-space:nowrap">{escape(one.written)}</span>',
         one.segment_use, one.pooler, f"{len(one.missing)}")
        for one in asked()
    ]  # fmt: skip
    head = ("", "a pair is", "segment ids", "pooler", "new tensors of a classifier")
    return table(head, rows, numbers=False, size=26)


# ---------------------------------------------------------------- the guide, and what to ask


def usual_case() -> str:
    answers = {q: guide.guide().questions[q].answers[value] for q, value in USUAL.items()}
    said = " · ".join(answers[q] for q in ("language", "domain", "task"))
    return (
        f"<p>{said} · {answers['labels']} of labels · no limits<br>▶&nbsp; "
        f"<strong>{guide.decide(USUAL).name}</strong>. With one other answer:</p>"
    )


def one_answer_changed() -> str:
    """What one other answer makes of the usual case, a line a question; of a choice's name what
    stands before a colon, a semicolon, a parenthesis or an aside."""
    lines: dict[str, list[str]] = {}
    for name, values, then in changes(USUAL):
        choice = re.split(r"[:;(]|, such|, asked", then)[0]
        lines.setdefault(name, []).append(f"{' / '.join(values)} ▶&nbsp;<strong>{choice}</strong>")
    asks = guide.guide().questions
    rows = [
        (f'<span style="white-space:nowrap">{asks[name].short}</span>',
         " &nbsp;·&nbsp; ".join(said))
        for name, said in lines.items()
    ]  # fmt: skip
    return table(("", ""), rows, numbers=False, size=20)


def _asked_of(name: str, title: str, chosen: tuple[int, ...]) -> str:
    told = tables.rows(name)
    rows = [(inline(told[n]["look"]), inline(told[n]["ask"])) for n in chosen]
    return table((title, "ask"), rows, numbers=False, size=22)


def board() -> str:
    return _asked_of("board", "a leaderboard", (0, 1, 3, 4, 5))


def model_card() -> str:
    return _asked_of("card", "a model card", (1, 3, 4, 5, 7))


def exercises() -> str:
    return " · ".join(f"{e.id} {e.title}" for e in drawing.exercises_of("13"))
