"""What deck 08 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import mean, stdev
from typing import Any

import drawing
import torch
from drawing import MONO, arrow, body_of, code, for_a_hall, rect, svg, table, words
from torch import Tensor

from course_lib import MicroWorld
from course_lib.family.deberta import (
    DebertaForMaskedLM,
    EnhancedMaskDecoder,
    deberta,
    deberta_masked_lm,
)
from course_lib.kernels.disentangled import (
    disentangled_attention_reference,
    score_parts,
)
from course_lib.kernels.positions import position_rows, row_table
from course_lib.lectures.lecture_08.experiments import (
    LENGTH,
    NARROW,
    RECIPES,
    small_model,
)
from course_lib.lectures.lecture_08.numbers import (
    ASKING,
    ASKS,
    DISTANCE_ASKS,
    DISTANCE_OFFERS,
    OFFERS,
    SHOWN_FURTHEST,
    SHOWN_SPAN,
    SHOWN_TOKENS,
    SPAN,
    TOKENS,
    TOLD,
    TOY,
    UNTOLD,
    _ahead,
    _longer,
    _one_score,
    _queue,
    _reached,
    _sizes,
    _steps,
    _whole,
    paper_changes,
    seeds_below,
    signed,
    toy_maps,
    which_delta,
)
from course_lib.lectures.lecture_08.views import score_statistics
from course_lib.lectures.lecture_08.views.distance_buckets import distance_rows
from course_lib.lectures.lecture_08.views.score_spread import BIN, EDGE, histogram
from course_lib.objectives.sift import sift_loss
from course_lib.teaching import curves_chart
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import printed
from course_lib.teaching.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, VERMILION, template

BOLD = ' font-weight="650"'
WORD = {"fill": "#e3eef6", "ink": BLUE}
PLACE = {"fill": "#fdf1d6", "ink": "#8a5f00"}
BLOCK = {"fill": "#f6e9f1", "ink": "#8f4a72"}


# ---------------------------------------------------------------- 1, 2: added, or kept apart


def added_or_apart() -> str:
    """Left BERT: position and word become one vector; right DeBERTa: three products a pair."""
    parts = [
        words(245, 24, "BERT: added, once, at the input", 22, style=BOLD),
        words(865, 24, "DeBERTa: compared, in every layer", 22, style=BOLD),
        f'<path d="M535 0V388" stroke="{GREY}" stroke-dasharray="3 6"/>',
    ]
    for x, name in ((20, "i"), (275, "j")):
        parts += [
            rect(x, 52, 92, 52, f"word {name}", **WORD, wide=2),
            words(x + 109, 86, "+", 26),
            rect(x + 126, 52, 92, 52, f"position {name}", **PLACE, wide=2, size=17,
                 dash="6 3"),
            arrow(x + 46, 106, x + 92, 158), arrow(x + 172, 106, x + 126, 158),
            rect(x + 38, 162, 142, 56, f"token {name}", wide=2.5, size=22),
        ]  # fmt: skip
    parts += [
        f'<path d="M202 190H311" stroke="{INK}" stroke-width="4"/>',
        words(256, 254, "one product"),
        words(245, 322, "word and position, once added,"), words(245, 350, "go on as one vector."),
        rect(605, 70, 130, 60, "word i", **WORD, wide=2, size=22),
        rect(995, 70, 130, 60, "word j", **WORD, wide=2, size=22),
        rect(765, 260, 200, 60, "distance i − j", **PLACE, wide=2, size=22, dash="6 3"),
        f'<path d="M737 100H993" stroke="{INK}" stroke-width="4"/>',
        f'<path d="M670 132L800 258M1060 132L930 258" stroke="{INK}" stroke-width="4"/>',
        words(865, 86, "content-to-content"),
        words(722, 206, "content-to-", 20, "end"), words(738, 232, "position", 20, "end"),
        words(1008, 206, "position-to-", 20, "start"), words(992, 232, "content", 20, "start"),
        words(865, 352, "one table of vectors, a row a distance,"),
        words(865, 378, "the same table in all layers"),
    ]  # fmt: skip
    return svg(1150, 392, *parts, says="BERT adds positions to words; DeBERTa has three products")


# ---------------------------------------------------------------- 3: which row

ROW_FILLS = ("#ffffff", "#fdf1d6", "#cfe3f1", "#efd3e3")


def which_row() -> str:
    """Every pair of six tokens with its row, k = 2; below, each distance with its row."""
    delta, rows = row_table(position_rows(TOKENS, SPAN)), position_rows(TOKENS, SPAN)
    cell, left, top = 50, 96, 62
    parts = [
        words(left + cell * TOKENS / 2, 20, "j: key"),
        f'<text transform="translate(26,{top + cell * TOKENS / 2}) rotate(-90)" '
        'text-anchor="middle" font-size="20">i: query</text>',
    ]
    for n in range(TOKENS):
        parts.append(words(left + cell * (n + 0.5), 50, str(n), 19, style=f' fill="{GREY}"'))
        parts.append(words(left - 16, top + cell * n + 32, str(n), 19, style=f' fill="{GREY}"'))
    for i, line in enumerate(delta.tolist()):
        parts += [
            rect(left + cell * j, top + cell * i, cell - 3, cell - 3, str(row),
                 fill=ROW_FILLS[row], wide=1, size=22, mono=True)
            for j, row in enumerate(line)
        ]  # fmt: skip
    x, step = 480, 56
    parts += [words(x, 148, "distance i − j", 20, "start", BOLD),
              words(x, 262, "row of the table", 20, "start", BOLD)]  # fmt: skip
    for n, row in enumerate(rows.tolist()):
        at = x + step * n
        parts += [words(at + 25, 186, _whole(n - TOKENS + 1), 20),
                  rect(at, 196, step - 4, 42, str(row), fill=ROW_FILLS[row], wide=1, size=22,
                       mono=True)]  # fmt: skip
    return svg(1120, 370, *parts, says="the row of every pair of six tokens, and of every distance")


# ---------------------------------------------------------------- 4: one score


def one_score() -> str:
    """The three products written out, a line each."""
    shown = (
        ("content-to-content", "c2c", ("query of i", ASKS), ("key of j", OFFERS)),
        ("content-to-position", "c2p", ("query of i", ASKS), ("key of the row", DISTANCE_OFFERS)),
        ("position-to-content", "p2c", ("query of the row", DISTANCE_ASKS), ("key of j", OFFERS)),
    )
    rows = []
    for (name, short, left, right), found in zip(shown, _one_score(), strict=True):
        cells = [
            f'{who} <span style="{MONO};white-space:nowrap">'
            f"({', '.join(_whole(x) for x in v)})</span>"
            for who, v in (left, right)
        ]
        rows.append(
            (f"<strong>{name}</strong>", short, *cells, f"<strong>{_whole(found)}</strong>")
        )
    total = sum(_one_score())
    rows.append(("<strong>sum</strong>", "", "", "", f"<strong>{_whole(total)}</strong>"))
    return table(("", "", "query", "key", "product"), rows, numbers=False, size=24)


# ---------------------------------------------------------------- 5: three maps and their sum


def three_maps() -> str:
    """Four grids of small integers: the darker the larger; the query row framed."""
    maps, parts = toy_maps(), []
    largest = max(float(one.abs().max()) for one in maps)
    titles = ("content-to-content", "content-to-position", "position-to-content", "sum")
    cell, top, gap, left = 56, 74, 56, 76
    for n, (title, values) in enumerate(zip(titles, maps, strict=True)):
        x = left + n * (4 * cell + gap)
        if n:
            parts.append(words(x - gap / 2, top + 2 * cell + 10, "=" if n == 3 else "+", 30))
        parts.append(words(x + 2 * cell, 22, title, 22, style=BOLD))
        for j, word in enumerate(TOY):
            parts.append(words(x + cell * (j + 0.5), top - 12, word, 18))
        for i, line in enumerate(values.tolist()):
            parts += [
                rect(x + cell * j, top + cell * i, cell - 3, cell - 3, _whole(value),
                     fill=_shade(value / largest), wide=1, size=23)
                for j, value in enumerate(line)
            ]  # fmt: skip
        frame = (
            f'x="{x - 4}" y="{top + cell * ASKING - 4}" width="{4 * cell + 5}" height="{cell + 5}"'
        )
        parts.append(f'<rect {frame} rx="6" fill="none" stroke="{VERMILION}" stroke-width="4"/>')
    for i, word in enumerate(TOY):
        style = BOLD if i == ASKING else ""
        parts.append(words(left - 12, top + cell * i + 34, word, 20, "end", style))
    return svg(1150, 306, *parts, says="three maps of scores of four words, and their sum")


def _shade(share: float) -> str:
    """From white to blue above zero, to orange below it; the number stands in the cell."""
    strength = abs(share) * 0.75
    end = (86, 156, 214) if share >= 0 else (230, 159, 0)
    mixed = [round(255 + (c - 255) * strength) for c in end]
    return f"rgb({','.join(map(str, mixed))})"


# ---------------------------------------------------------------- 6: the code


def code_scores() -> str:
    parts = body_of(score_parts, start="content =").rsplit("\nreturn", 1)[0]
    whole = body_of(disentangled_attention_reference).splitlines()
    chosen = [line for line in whole if line.startswith(("total =", "scores =", "weights ="))]
    return code("\n".join([parts, "", *chosen]))


# ---------------------------------------------------------------- 7: two generations of rows


def buckets() -> Any:
    """Rows against distances, a small table: cut off, and in buckets that widen."""
    import plotly.graph_objects as go

    figure = go.Figure(layout={"template": template()})
    looks = (("first: cut off", None, BLUE, "solid"),
             ("second: widens", SHOWN_FURTHEST, VERMILION, "dash"))  # fmt: skip
    for _name, furthest, colour, dash in looks:
        found = distance_rows(SHOWN_TOKENS, SHOWN_SPAN, furthest)
        figure.add_scatter(
            x=list(range(-found.most, found.most + 1)), y=found.rows, mode="lines",
            line={"color": colour, "width": 4, "dash": dash, "shape": "hvh"},
        )  # fmt: skip
    figure.add_annotation(x=9, y=2 * SHOWN_SPAN - 1, text="first: cut off", font_color=BLUE,
                          showarrow=False, xanchor="right", yshift=18, xshift=-10)  # fmt: skip
    figure.add_annotation(x=20, y=12.3, text="second: widens", font_color="#a04400",
                          showarrow=False, xanchor="left")  # fmt: skip
    figure.update_xaxes(title_text="distance i − j", dtick=16, tick0=0, zeroline=False)
    figure.update_yaxes(
        title_text="row", range=[-0.8, 2 * SHOWN_SPAN + 0.9],
        tickvals=[0, SHOWN_SPAN, 2 * SHOWN_SPAN - 1], zeroline=False,
    )  # fmt: skip
    figure.update_layout(showlegend=False)
    return for_a_hall(figure, 660, 420)


# ---------------------------------------------------------------- 8: counted, and right?


def sizes() -> str:
    rows = []
    for name, (whole, vocabulary, places, projections) in _sizes().items():
        assert vocabulary and places  # the names above are those of the weights
        rest = whole - vocabulary - places - projections
        rows.append((f"<strong>{name}</strong>", f"{vocabulary:,}", f"{places:,}",
                     f"{projections:,}", f"{rest:,}", f"<strong>{whole:,}</strong>"))  # fmt: skip
    head = ("", "token embeddings", "positions", "projections", "the rest", "all")
    return table(head, rows, size=22)


# ---------------------------------------------------------------- 9: δ(i, j) or δ(j, i)

SEEN_TOKENS, SEEN_SPAN = 5, 4  # as in the claim


def _acts(transposed: bool) -> Tensor:
    """Where a third term acts whose table has row k + 1 alone, (T, T)."""
    marked = torch.zeros(1, 2 * SEEN_SPAN, 1)
    marked[0, SEEN_SPAN + 1] = 1
    key = torch.ones(1, 1, SEEN_TOKENS, 1)
    rows = position_rows(SEEN_TOKENS, SEEN_SPAN)
    found = score_parts(key, key, None, marked, rows).position_to_content
    assert found is not None
    return found[0, 0].T if transposed else found[0, 0]


def both_deltas() -> str:
    """Two grids: where row k + 1 acts by equation 4, and where in the released code."""
    which_delta()
    shown = (
        ("equation 4: δ(j, i)", "acts where j − i = 1", _acts(True), 60),
        ("released code: δ(i, j)", "acts where i − j = 1", _acts(False), 400),
    )
    parts, cell, top = [], 46, 66
    for title, where, values, x in shown:
        parts += [words(x + 2.5 * cell, 24, title, 22, style=BOLD),
                  words(x + 2.5 * cell, 50, where, 20)]  # fmt: skip
        for i, line in enumerate(values.tolist()):
            for j, value in enumerate(line):
                look: dict[str, Any] = {"ink": "#c4c4c4"}
                if value:
                    look = {"text": "●", "fill": "#efd3e3", "ink": "#8f4a72", "wide": 3, "size": 18}
                parts.append(rect(x + cell * j, top + cell * i, cell - 4, cell - 4, **look))
        parts.append(words(x + 2.5 * cell, top + 5 * cell + 24, "j: key →", 18))
        parts.append(f'<text transform="translate({x - 14},{top + 2.5 * cell}) rotate(-90)" '
                     'text-anchor="middle" font-size="18">← i: query</text>')  # fmt: skip
    return svg(660, 328, *parts, says="row k + 1 acts above the diagonal, or below it")


# ---------------------------------------------------------------- 10: why sqrt(3d)

HEAD = 64


def spread() -> Any:
    """Densities of scores of random vectors: one term, three by sqrt(d), three by sqrt(3d)."""
    import plotly.graph_objects as go

    one, three = score_statistics(HEAD, 1), score_statistics(HEAD, 3)
    plain, scaled = three.scales
    figure = go.Figure(layout={"template": template()})
    lines = (
        (one.scores / plain, BLUE, "solid", 9),
        (three.scores / plain, VERMILION, "dot", 4),
        (three.scores / scaled, INK, "dash", 4),
    )
    middles = [-EDGE + BIN * (n + 0.5) for n in range(round(2 * EDGE / BIN))]
    for scores, colour, dash, wide in lines:
        figure.add_scatter(x=middles, y=histogram(scores), mode="lines",
                           line={"color": colour, "dash": dash, "width": wide})  # fmt: skip
    for x, y, text, colour in (
        (0.9, 0.375, "one, ÷ √d (wide)<br>three, ÷ √(3d) (dashed)", INK),
        (2.6, 0.115, "three, ÷ √d<br>(dotted)", "#a04400"),
    ):
        figure.add_annotation(x=x, y=y, text=text, font_color=colour, showarrow=False,
                              xanchor="left", align="left")  # fmt: skip
    figure.update_xaxes(title_text="score of a pair", range=[-EDGE, EDGE], zeroline=False)
    figure.update_yaxes(title_text="density", range=[0, 0.46], dtick=0.2)
    figure.update_layout(showlegend=False)
    return for_a_hall(figure, 680, 400)


def spread_table() -> str:
    one, three = score_statistics(HEAD, 1), score_statistics(HEAD, 3)
    plain, scaled = three.scales
    rows = [
        (name, f"{found.variance(scale):.2f}", f"{found.entropy(scale):.2f}")
        for name, found, scale in (
            ("one, ÷ √d", one, plain),
            ("three, ÷ √d", three, plain),
            ("three, ÷ √(3d)", three, scaled),
        )
    ]
    return table(("terms", "variance", "entropy"), rows, size=20)


# ---------------------------------------------------------------- 11: measured: added or apart


def _rows_of_dots(
    names: Mapping[str, str], low: float, high: float, ticks: Sequence[float], *,
    columns: Mapping[str, Mapping[str, str]] | None = None, left: int = 330, wide: int = 640,
    filled: Mapping[str, str] | None = None, step: int = 48, says: str = "",
) -> str:  # fmt: skip
    """A row a recipe: its name, a dot a seed, a bar at their mean; further columns in words."""
    top = 34
    bottom = top + step * len(names)

    def across(value: float) -> float:
        return left + wide * (value - low) / (high - low)

    parts = [words(left, 20, "masked-token accuracy, held-out stories", 19, "start", BOLD)]
    for tick in ticks:
        parts.append(f'<path d="M{across(tick):.1f} {top}V{bottom}" stroke="#dcdcdc"/>')
        parts.append(words(across(tick), bottom + 22, f"{tick:.0%}", 18))
    for n, (title, cells) in enumerate((columns or {}).items()):
        x = 1140 - 130 * (len(columns or {}) - 1 - n)
        parts.append(words(x, 20, title, 19, "end", BOLD))
        for row, name in enumerate(names):
            parts.append(words(x, top + step * (row + 0.5) + 7, cells.get(name, ""), 20, "end"))
    for row, (name, said) in enumerate(names.items()):
        y, values = top + step * (row + 0.5), _reached(name)
        parts.append(words(left - 14, y + 7, said, 20, "end"))
        colour = (filled or {}).get(name, "#fff")
        for value in values:
            assert low <= value <= high, (name, value)
            parts.append(
                f'<circle cx="{across(value):.1f}" cy="{y}" r="8" fill="{colour}" '
                f'stroke="{INK}" stroke-width="1.5" fill-opacity="0.85"/>'
            )
        x = across(mean(values))
        parts.append(f'<path d="M{x:.1f} {y - 15}V{y + 15}" stroke="{INK}" stroke-width="3"/>')
        right = mean(values) < (low + high) / 2
        edge = across(max(values) if right else min(values))
        at, anchor = (edge + 16, "start") if right else (edge - 16, "end")
        halo = ' paint-order="stroke" stroke="#fff" stroke-width="6"'
        parts.append(words(at, y + 7, f"{mean(values):.1%}", 20, anchor, halo))
    return svg(1150, bottom + 32, *parts, says=says)


def measured() -> str:
    """BERT and DeBERTa at equal steps, and BERT for as long as DeBERTa takes."""
    assert min(_ahead("DeBERTa", "BERT")) > 0  # in every seed, as the slide says
    said = {
        name: f"{label}, {_steps(name):,} steps"
        for name, label in (("BERT", "BERT"), ("DeBERTa", "DeBERTa"), ("BERT, equal time", "BERT"))
    }
    times = {
        name: f"{_steps(name) * (_longer() if name == 'DeBERTa' else 1) / _steps('BERT'):.1f}"
        for name in said
    }
    return _rows_of_dots(
        said, 0.78, 0.94, (0.8, 0.85, 0.9), columns={"time (BERT’s = 1)": times},
        filled={"DeBERTa": PURPLE, "BERT": BLUE, "BERT, equal time": BLUE},
        step=66, says="masked-token accuracy of BERT and DeBERTa, at equal steps and at equal time",
    )  # fmt: skip


# ---------------------------------------------------------------- 12, 13: what each part is worth

PARTS = {
    "DeBERTa": "DeBERTa",
    "without c2p": "without c2p",
    "without p2c": "without p2c",
    "decoder without places": "decoder without positions",
    "without decoder": "without decoder",
    "BERT": "BERT (adds positions)",
}


def parts_worth() -> str:
    assert mean(_reached("no distances")) < 0.6  # far left of the figure, as the slide says
    return _rows_of_dots(
        PARTS, 0.78, 0.94, (0.8, 0.85, 0.9), columns={"blocks to a prediction": _blocks()},
        filled={"DeBERTa": PURPLE, "BERT": BLUE},
        says="masked-token accuracy of DeBERTa, without each of its parts, and of BERT",
    )  # fmt: skip


@lru_cache(maxsize=1)
def _blocks() -> dict[str, str]:
    """How many blocks a token passes up to its prediction. The decoder starts from the last
    block's input, and visits that block instead."""
    world, passed = MicroWorld.load(), {}
    for name in PARTS:
        model: Any = small_model(RECIPES[name], world, seed=0)
        blocks = len(model.encoder.stack.blocks)
        decoded = isinstance(model, DebertaForMaskedLM)
        passed[name] = f"{blocks - 1 + model.decoder.visits if decoded else blocks}"
    return passed


PRINTED = {
    "without c2p": "without_c2p", "without p2c": "without_p2c",
    "without decoder": "without_decoder", "BERT": "roberta",
}  # fmt: skip


def beside_the_paper() -> str:
    rows = []
    for name in [n for n in PARTS if n != "DeBERTa"]:
        points = [-p for p in _ahead("DeBERTa", name)]
        theirs = PRINTED.get(name)
        rows.append(
            (
                "<strong>BERT; the paper: RoBERTa</strong>" if name == "BERT"
                else f"<strong>{PARTS[name]}</strong>",
                f"{signed(mean(points))} (sd {stdev(points):.1f})",
                f"{seeds_below(name)} of {len(points)}",
                *(map(signed, paper_changes(theirs)) if theirs else ["–"] * 3),
            )
        )  # fmt: skip
    head = ("points against DeBERTa", "ours: accuracy", "seeds below", "MNLI", "SQuAD 2.0", "RACE")
    return table(head, rows, size=23)


# ---------------------------------------------------------------- 14, 15, 16: the queue


def queue_text() -> str:
    """The first two sentences of a row: workers masked, things drawn anew; below, who it was."""
    line = _queue_line(_queue()["words"])
    return svg(1150, 104, *line, says="two sentences of the queue with their workers masked")


def _queue_line(jobs: Sequence[str]) -> list[str]:
    parts, x = [], 0
    for n, seen in ((0, "lamp"), (1, "boat")):
        for word in ("then", "the", "", "sees", "the", seen, "."):
            wide = 128 if not word else round(12 * len(word)) + 16
            if word:
                parts.append(words(x, 44, word, 22, "start"))
            else:
                parts.append(rect(x, 14, 116, 44, "[MASK]", fill="#fdeecb", ink="#8a5f00", wide=2.5,
                                  dash="6 3", mono=True))  # fmt: skip
                parts.append(words(x + 58, 90, jobs[n], 21, style=BOLD))
            x += wide
    parts.append(words(x + 6, 44, "…", 24, "start"))
    parts.append(words(x + 30, 90, f"… {jobs[-1]}", 21, "start", BOLD))
    return parts


def decoder_picture() -> str:
    """The query's copy goes through the last block twice; key and value stay the same."""
    return svg(
        1150, 252,
        rect(2, 14, 148, 56, "position", **PLACE, wide=2, dash="6 3", size=22),
        rect(2, 150, 148, 70, "x", **WORD, wide=2.5, size=26),
        words(0, 243, "the last block’s input", 18, "start"),
        words(230, 102, "+", 34),
        arrow(152, 42, 214, 84, tip=False), arrow(152, 172, 214, 104, tip=False),
        arrow(248, 92, 330, 92), words(288, 76, "query", 20),
        rect(336, 50, 200, 84, "last block", **BLOCK, wide=2.5, size=24),
        arrow(538, 92, 640, 92), words(588, 76, "query", 20),
        rect(646, 50, 200, 84, "last block", **BLOCK, wide=2.5, size=24),
        arrow(848, 92, 930, 92),
        rect(936, 56, 212, 72, "which word?", wide=2, size=22),
        arrow(152, 200, 436, 200, 436, 138), arrow(436, 200, 746, 200, 746, 138),
        words(310, 190, "key, value", 20), words(590, 190, "key, value: the same x", 20),
        words(591, 36, "the same weights", 20),
        says="the position is added to the query; the last block is visited twice; x is key, value",
    )  # fmt: skip


def code_decoder() -> str:
    lines = body_of(EnhancedMaskDecoder.forward).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("if only_at"))
    return code(
        "\n".join(lines[:start] + lines[start + 2 :])
    )  # without the saving at masked places


def _chance() -> float:
    return 1 / len(_queue()["words"])


def queue_lines() -> Any:
    """The fraction of workers named right along training; the seeds' mean and range."""
    short = dict(TOLD)
    short |= {name: f"distances to {n}" for name, n in zip(UNTOLD, (LENGTH, NARROW), strict=True)}
    curves = {said: [run["curve"] for run in _queue()["runs"][name]]
              for name, said in short.items()}  # fmt: skip
    figure = curves_chart(
        curves, x_title="training step", y_title="workers named", title="", percent=True,
        levels={"chance level": _chance()},
    )  # fmt: skip
    labels = [a for a in figure.layout.annotations if a.xref == "paper"]
    for label, y in zip(labels, (1.02, 0.91, 0.80, 0.42, 0.31, 0.13), strict=True):
        label.y = y  # those that end at the same height, one under another
    return for_a_hall(figure, 1120, 350, right=260)


# ---------------------------------------------------------------- 17: SiFT


@lru_cache(maxsize=1)
def _clipped_and_perturbed() -> tuple[float, float, float, float]:
    """A gradient's size before clipping and after; what that changes in the outputs; how far
    SiFT's perturbation moves them, in nats."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "vocab_size": 50, "num_layers": 2, "hidden_size": 32, "num_heads": 2,
        "intermediate_size": 64, "max_positions": 16, "span": 16, "initializer_range": 0.2,
    }  # fmt: skip
    model = deberta_masked_lm(deberta("base", **shape)).eval()
    assert isinstance(model, DebertaForMaskedLM)
    ids = torch.arange(5, 15)[None]
    plain = model(ids).logits
    loss = torch.nn.functional.cross_entropy(plain.flatten(0, 1), ids.flatten())
    weights = [p for p in model.parameters() if p.requires_grad]
    for weight, slope in zip(
        weights, torch.autograd.grad(loss, weights, allow_unused=True), strict=True
    ):
        weight.grad = slope
    before = float(torch.nn.utils.clip_grad_norm_(weights, 0.1))
    with torch.no_grad():
        changed = float((model(ids).logits - plain).abs().max())
    assert changed == 0
    perturbed = sift_loss(lambda: model(ids).logits, model.encoder.embeddings.norm)[1]
    return before, 0.1, changed, float(perturbed.detach())


def clipping_and_sift() -> str:
    before, after, changed, perturbed = _clipped_and_perturbed()
    rows = [
        ("<strong>clipping</strong>", "the gradient", f"{before:.1f} → {after:g}",
         f"<strong>unchanged ({changed:g})</strong>"),
        ("<strong>SiFT</strong>", "normalised embeddings", "perturbation",
         f"<strong>KL {perturbed:.5f}</strong>"),
    ]  # fmt: skip
    return table(("", "touches", "", "outputs now"), rows, numbers=False, size=22)


def code_sift() -> str:
    lines = body_of(sift_loss, start="with perturbing").splitlines()
    return code("\n".join(line for line in lines if "assert" not in line))


# ---------------------------------------------------------------- 18: what the paper reached


def order() -> Any:
    """Table 1: means of eight development sets at large size; ALBERT's row beside them."""
    import plotly.graph_objects as go

    scores = {k: v for k, v in printed("deberta")["order"].items() if isinstance(v, float)}
    scores["ALBERT"] = round(glue_average(printed("glue")["albert_dev"]["scores"], "dev-8"), 2)
    scores = dict(sorted(scores.items(), key=lambda item: item[1]))
    figure = go.Figure(layout={"template": template()})
    colours = {"DeBERTa": PURPLE, "ELECTRA": VERMILION, "RoBERTa": ORANGE, "BERT": BLUE,
               "ALBERT": GREEN}  # fmt: skip
    figure.add_bar(
        x=list(scores.values()), y=list(scores), orientation="h",
        text=[f"{v}" for v in scores.values()],
        textposition="outside", textfont_size=20, cliponaxis=False,
        marker={"color": [colours.get(n, GREY) for n in scores],
                "pattern": {"shape": ["/" if n == "ALBERT" else "" for n in scores],
                            "fgcolor": "white", "solidity": 0.3}},
    )  # fmt: skip
    figure.update_xaxes(range=[82, 91.5], title_text="mean of eight GLUE tasks (axis from 82)")
    return for_a_hall(figure, 620, 400)


# ---------------------------------------------------------------- 19, 20: to keep

CHOSEN = ("E98", "decoder here", "slip 3 abstract")


def claims_rows() -> str:
    return drawing.claims_rows("08", CHOSEN, size=20)


def exercises() -> str:
    return drawing.exercise_list("08")
