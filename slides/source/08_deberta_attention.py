"""What deck 08 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import mean, stdev
from typing import Any

import drawing
from drawing import MONO, arrow, body_of, code, for_a_hall, grid, rect, svg, table, words

from course_lib import MicroWorld
from course_lib.family.deberta import DebertaForMaskedLM, EnhancedMaskDecoder
from course_lib.kernels.disentangled import disentangled_attention_reference, score_parts
from course_lib.kernels.positions import position_rows, row_table
from course_lib.lectures.lecture_08.claims import clipped_and_perturbed, paper_changes
from course_lib.lectures.lecture_08.experiments import RECIPES, small_model
from course_lib.lectures.lecture_08.numbers import (
    KEY_J,
    QUERY,
    QUERY_I,
    ROW_KEY,
    ROW_QUERY,
    SHOWN_FURTHEST,
    SHOWN_SPAN,
    SHOWN_TOKENS,
    SPAN,
    TOKENS,
    TOY,
    ahead,
    at_best,
    masked_accuracy,
    sizes_of_models,
    step_time,
    steps,
    three_products,
    toy_maps,
    which_delta,
    whole,
)
from course_lib.lectures.lecture_08.views.distance_buckets import delta_picture, distance_rows
from course_lib.lectures.lecture_08.views.score_spread import score_variance_picture
from course_lib.objectives.sift import sift_loss
from course_lib.teaching import ablation_chart, curves_chart, queue_chart
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import signed
from course_lib.teaching.results import stored
from course_lib.teaching.style import BLUE, GREY, INK, VERMILION

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
    parts += grid(delta.tolist(), left, top, (cell, cell), _row_look)
    x, step = 480, 56
    parts += [words(x, 148, "distance i − j", 20, "start", BOLD),
              words(x, 262, "row of the table", 20, "start", BOLD)]  # fmt: skip
    parts += [words(x + 25 + step * n, 186, whole(n - TOKENS + 1), 20) for n in range(len(rows))]
    parts += grid([rows.tolist()], x, 196, (step, 46), _row_look)
    return svg(1120, 370, *parts, says="the row of every pair of six tokens, and of every distance")


def _row_look(row: int, i: int, j: int) -> dict[str, Any]:
    return {"text": str(row), "fill": ROW_FILLS[row], "wide": 1, "size": 22, "mono": True}


# ---------------------------------------------------------------- 4: one score


def one_score() -> str:
    """The three products written out, a line each."""
    shown = (
        ("content-to-content", "c2c", ("query of i", QUERY_I), ("key of j", KEY_J)),
        ("content-to-position", "c2p", ("query of i", QUERY_I), ("key of the row", ROW_KEY)),
        ("position-to-content", "p2c", ("query of the row", ROW_QUERY), ("key of j", KEY_J)),
    )
    rows = []
    for (name, short, left, right), found in zip(shown, three_products(), strict=True):
        cells = [
            f'{who} <span style="{MONO};white-space:nowrap">'
            f"({', '.join(whole(x) for x in v)})</span>"
            for who, v in (left, right)
        ]
        rows.append((f"<strong>{name}</strong>", short, *cells, f"<strong>{whole(found)}</strong>"))
    total = sum(three_products())
    rows.append(("<strong>sum</strong>", "", "", "", f"<strong>{whole(total)}</strong>"))
    return table(("", "", "query", "key", "product"), rows, numbers=False, size=24)


# ---------------------------------------------------------------- 5: three maps and their sum


def three_maps() -> str:
    """Four grids of small integers: the darker the larger; the query row framed."""
    maps, parts = toy_maps(), []
    largest = max(float(one.abs().max()) for one in maps)
    titles = ("content-to-content", "content-to-position", "position-to-content", "sum")
    cell, top, gap, left = 56, 74, 56, 76

    def score_look(score: float, i: int, j: int) -> dict[str, Any]:
        return {"text": whole(score), "fill": _shade(score / largest), "wide": 1, "size": 23}

    for n, (title, values) in enumerate(zip(titles, maps, strict=True)):
        x = left + n * (4 * cell + gap)
        if n:
            parts.append(words(x - gap / 2, top + 2 * cell + 10, "=" if n == 3 else "+", 30))
        parts.append(words(x + 2 * cell, 22, title, 22, style=BOLD))
        for j, word in enumerate(TOY):
            parts.append(words(x + cell * (j + 0.5), top - 12, word, 18))
        parts += grid(values.tolist(), x, top, (cell, cell), score_look)
        frame = (
            f'x="{x - 4}" y="{top + cell * QUERY - 4}" width="{4 * cell + 5}" height="{cell + 5}"'
        )
        parts.append(f'<rect {frame} rx="6" fill="none" stroke="{VERMILION}" stroke-width="4"/>')
    for i, word in enumerate(TOY):
        style = BOLD if i == QUERY else ""
        parts.append(words(left - 12, top + cell * i + 34, word, 20, "end", style))
    return svg(1150, 306, *parts, says="three maps of scores of four words, and their sum")


def _shade(part: float) -> str:
    """From white to blue above zero, to orange below it; the number stands in the cell."""
    strength = abs(part) * 0.75
    end = (86, 156, 214) if part >= 0 else (230, 159, 0)
    mixed = [round(255 + (c - 255) * strength) for c in end]
    return f"rgb({','.join(map(str, mixed))})"


# ---------------------------------------------------------------- 6: the code


def code_scores() -> str:
    parts = body_of(score_parts, start="content =").rsplit("\nreturn", 1)[0]
    lines = body_of(disentangled_attention_reference).splitlines()
    chosen = [line for line in lines if line.startswith(("total =", "scores =", "weights ="))]
    return code("\n".join([parts, "", *chosen]))


# ---------------------------------------------------------------- 7: two generations of rows


def buckets() -> Any:
    """Rows against distances, a small table: cut off, and in buckets that widen."""
    curves = {}
    for name, furthest in (("first: cut off", None), ("second: widens", SHOWN_FURTHEST)):
        found = distance_rows(SHOWN_TOKENS, SHOWN_SPAN, furthest)
        curves[name] = [list(enumerate(found.rows, start=-found.most))]
    figure = curves_chart(curves, x_title="distance i − j", y_title="row", title="")
    figure.update_traces(line={"shape": "hvh", "width": 4})
    figure.layout.annotations = ()
    figure.update_layout(showlegend=True, legend={"x": 0.02, "y": 0.98})
    return for_a_hall(figure, 660, 420)


# ---------------------------------------------------------------- 8: counted, and right?


def sizes() -> str:
    rows = []
    for name, (every, vocabulary, places, projections) in sizes_of_models().items():
        assert vocabulary and places  # the names above are those of the weights
        rest = every - vocabulary - places - projections
        rows.append((f"<strong>{name}</strong>", f"{vocabulary:,}", f"{places:,}",
                     f"{projections:,}", f"{rest:,}", f"<strong>{every:,}</strong>"))  # fmt: skip
    head = ("", "token embeddings", "positions", "projections", "the rest", "all")
    return table(head, rows, size=22)


# ---------------------------------------------------------------- 9: why sqrt(3d)


def spread() -> str:
    return drawing.large(score_variance_picture().inner, 1.3)


# ---------------------------------------------------------------- 10: δ(i, j) or δ(j, i)


def both_deltas() -> str:
    """The row of each pair, k = 4: by the released code at the left, by equation 4 at the right."""
    which_delta()
    return drawing.large(delta_picture(5, 4, 2, 1).inner, 1.4)


# ---------------------------------------------------------------- 11: measured: added or apart


def _ablation(names: Mapping[str, str]) -> Any:
    """The page's rows of dots, for some of the recipes, each at its best learning rate."""
    reached = {said: at_best(name) for name, said in names.items()}
    x_title = "masked-token accuracy, held-out stories"
    figure = ablation_chart({"": reached}, title="", x_title=x_title, percent=True)
    figure.update_yaxes(ticktext=list(reached))  # one line each: here is room
    return for_a_hall(figure, 1120, max(280, 86 + 36 * len(names)))


def measured() -> Any:
    """BERT and DeBERTa at equal steps, and BERT for as long as DeBERTa takes."""
    assert min(_behind("BERT")) > 0  # in every seed, as the slide says
    shown = {}
    for name, label in (("BERT", "BERT"), ("DeBERTa", "DeBERTa"), ("BERT, equal time", "BERT")):
        time = steps(name) * (step_time() if name == "DeBERTa" else 1) / steps("BERT")
        shown[name] = f"{label}, {steps(name):,} steps (time {time:.1f})"
    return _ablation(shown)


# ---------------------------------------------------------------- 12, 13: what each part is worth

PARTS = {
    "DeBERTa": "DeBERTa",
    "decoder without places": "decoder without positions",
    "three blocks, without decoder": "without decoder, a block more",
    "without decoder": "without decoder",
    "BERT, three blocks": "BERT, a block more",
    "BERT": "BERT (adds positions)",
}
TERMS = {"without c2p": "without c2p, at 2e-3", "without p2c": "without p2c, at 2e-3"}


def parts_worth() -> Any:
    assert mean(masked_accuracy("no distances")) < 0.6  # far left of the figure, as the slide says
    shown = {name: f"{said} ({_blocks()[name]} blocks)" for name, said in PARTS.items()}
    return drawing.in_line(_ablation(shown).update_layout(margin_r=190), column=True)


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


def _behind(name: str) -> list[float]:
    """Points by which a recipe is behind DeBERTa, a value a seed: each at its best rate, or both at
    the one rate of TERMS."""
    if name in TERMS:
        return ahead("DeBERTa", name)
    return [100 * (a - b) for a, b in zip(at_best("DeBERTa"), at_best(name), strict=True)]


def beside_the_paper() -> str:
    rows = []
    for name in (*TERMS, *(n for n in PARTS if n != "DeBERTa")):
        points = [-p for p in _behind(name)]
        theirs = PRINTED.get(name)
        rows.append(
            (
                "<strong>BERT; the paper: RoBERTa</strong>" if name == "BERT"
                else f"<strong>{(TERMS | PARTS)[name]}</strong>",
                f"{signed(mean(points))} (sd {stdev(points):.1f})",
                f"{sum(point < 0 for point in points)} of {len(points)}",
                *(map(signed, paper_changes(theirs)) if theirs else ["–"] * 3),
            )
        )  # fmt: skip
    head = ("points against DeBERTa", "ours: accuracy", "seeds below", "paper: MNLI", "SQuAD 2.0",
            "RACE")  # fmt: skip
    return table(head, rows, size=21)


# ---------------------------------------------------------------- 14, 15: decoder and queue


def queue_text() -> str:
    """The first two sentences of a row: workers masked, things drawn anew; below, who it was."""
    line = _queue_line(stored("08_queue")["words"])
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
    start = next(i for i, line in enumerate(lines) if line.startswith("if output_positions"))
    return code(
        "\n".join(lines[:start] + lines[start + 2 :])
    )  # without the saving at masked places


def queue_lines() -> Any:
    """The page's chart: the fraction of workers named right along training."""
    figure = for_a_hall(queue_chart(stored("08_queue")), 1120, 280, right=500)
    labels = sorted((a for a in figure.layout.annotations if a.xref == "paper"), key=lambda a: -a.y)
    figure.update_yaxes(title_text="accuracy")
    for label, y in zip(labels, (1.02, 0.9, 0.78, 0.66, 0.54, 0.11), strict=True):
        label.update(y=y, text=label.text.replace("<br>", " "))  # one line each, one under another
    return figure


# ---------------------------------------------------------------- 16: SiFT


def clipping_and_sift() -> str:
    found = clipped_and_perturbed()
    rows = [
        ("<strong>clipping</strong>", f"the gradient: length {found.before:.1f} → {found.after:g}",
         f"<strong>unchanged ({found.changed:g})</strong>"),
        ("<strong>SiFT</strong>", "the normalised embeddings: a perturbation",
         f"<strong>KL {found.perturbed:.5f}</strong>"),
    ]  # fmt: skip
    return table(("", "changes", "outputs now"), rows, numbers=False, size=22)


def code_sift() -> str:
    lines = body_of(sift_loss, start="with perturbing").splitlines()
    aside = ("assert", "if not aimed", "turned(")  # the control is no part of SiFT
    return code("\n".join(line for line in lines if not any(part in line for part in aside)))


# ---------------------------------------------------------------- 17: what the paper reached


def order() -> Any:
    """Table 1: means of eight development sets at large size; ALBERT's row beside them."""
    scores = {k: v for k, v in printed("deberta")["order"].items() if isinstance(v, float)}
    scores["ALBERT"] = round(glue_average(printed("glue")["albert_dev"]["scores"], "dev-8"), 2)
    scores = dict(sorted(scores.items(), key=lambda item: item[1]))
    figure = drawing.bars(scores, [], 660, 400, y_title="mean of eight GLUE tasks")
    figure.update_xaxes(tickfont_size=18)
    figure.update_traces(constraintext="none")
    patterns = ["/" if name == "ALBERT" else "" for name in scores]
    figure.update_traces(text=list(scores.values()), marker_pattern_shape=patterns)
    return figure.update_yaxes(range=[82, 91.5])


# ---------------------------------------------------------------- 18: trained here


SHARING = {"gradient-disentangled": "v3's way"}


def sharing_lines() -> Any:
    """The generator on the way: one table, two, or v3's."""
    curves = {
        SHARING.get(name, name): [
            [(at["step"], at["masked_accuracy"]) for at in run["curve"]] for run in runs
        ]
        for name, runs in stored("08_embedding_sharing")["runs"].items()
    }
    y_title = "masked-token accuracy"
    figure = curves_chart(curves, x_title="training step", y_title=y_title, title="", percent=True)
    figure = for_a_hall(figure, 660, 400, right=210)
    labels = sorted((a for a in figure.layout.annotations if a.xref == "paper"), key=lambda a: a.y)
    for label, up in zip(labels, (-8, 0, 8), strict=True):  # large type must not touch
        label.yshift = up
    return figure
