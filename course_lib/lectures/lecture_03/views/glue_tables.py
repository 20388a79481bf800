"""GLUE on the page: its nine questions as a table, and the mean of eight of them as a chart."""

from __future__ import annotations

from html import escape
from typing import Any

from course_lib.lectures.lecture_03.benchmark import ASKED, progress, tasks
from course_lib.teaching.chart_parts import new_figure, readable
from course_lib.teaching.page import Html, card
from course_lib.teaching.style import BLUE, VERMILION

_TABLE = "border-collapse:collapse;font-size:13px;color:#1a1a1a;background:#fff"
_CELL = "padding:4px 8px;text-align:left;vertical-align:top"
HEAD = ("task", "what goes in", "what is asked, and an example", "answer", "scored by", "texts")


def glue_questions() -> Html:
    """The nine tasks: what goes in, the question and an example of our own, what comes out, the
    metric, and the number of texts to learn from."""
    rows, lines = [], []
    for name, task in tasks().items():
        question = ASKED[name]
        texts = f"{task['train']:,}" if "train" in task else f"{task['train_in_glue']:,}"
        scored = " and ".join(task["metrics"])
        example = f"{question.example} → {question.answer}"
        asks = f"{escape(task['asks'])}<br><em>{escape(question.example)}</em> → {question.answer}"
        name_html = f"<b>{name.replace('-', '‑')}</b>"  # not broken at the hyphen
        cells = (name_html, task["input"], asks, task["answer"], scored, texts)
        rows.append(row("td", cells))
        lines.append(f"{name} ({task['input']}; {task['answer']}; {scored}; {texts} texts): "
                     f"{task['asks']} {example}")  # fmt: skip
    table = f'<table style="{_TABLE}">{row("th", HEAD)}'
    return Html(card(f"{table}{''.join(rows)}</table>", "glue-questions", 860), "\n".join(lines))


def row(kind: str, cells: tuple[str, ...]) -> str:
    """Cells that may break their lines; each row brings its own ground, as themes stripe tables."""
    html = "".join(f'<{kind} style="{_CELL}">{cell}</{kind}>' for cell in cells)
    return f'<tr style="border-bottom:1px solid #d9d9d9;background:#fff">{html}</tr>'


# Shape says it without colour: a filled circle, an open diamond.
KINDS = (
    ("one model, development sets", "one", "circle", BLUE),
    ("several models a task, test sets", "several", "diamond-open", VERMILION),
)


def glue_progress() -> Any:
    """The mean of eight GLUE tasks, a row a model in the order of the papers; one model is a
    circle, an ensemble a diamond."""
    steps = progress()[::-1]  # the oldest on top
    figure = new_figure("GLUE from model to model", "mean of eight tasks, WNLI left out", "")
    for label, field, symbol, colour in KINDS:
        points = [(k, getattr(step, field)) for k, step in enumerate(steps)]
        points = [(k, score) for k, score in points if score is not None]
        figure.add_scatter(
            x=[score for _, score in points], y=[k for k, _ in points], name=label, mode="markers",
            marker={"symbol": symbol, "size": 11, "color": colour, "line_width": 2},
        )  # fmt: skip
        for k, score in points:
            above = field == "several"
            figure.add_annotation(
                x=score, y=k, text=f"{score:.1f}", showarrow=False, font_color=readable(colour),
                xanchor="left" if above else "right", xshift=10 if above else -10,
            )  # fmt: skip
    names = [f"{step.model}, {step.month}" for step in steps]
    figure.update_yaxes(tickvals=list(range(len(steps))), ticktext=names)
    scores = [score for step in steps for score in (step.one, step.several) if score]
    figure.update_xaxes(range=[min(scores) - 3, max(scores) + 2.5])
    empty = {"x": 0.03, "y": 0.04, "yanchor": "bottom", "bgcolor": "#fff"}  # nothing is drawn there
    return figure.update_layout(showlegend=True, legend=empty, margin_l=170)
