"""What deck 08 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import mean, stdev
from typing import Any

import drawing
import torch
from drawing import MONO, arrow, body_of, code, for_a_hall, rect, svg, table, words
from torch import Tensor

from course_lib import MicroWorld, bert, count_parameters, published, to_transformers
from course_lib.family.deberta import (
    DebertaConfig,
    DebertaForMaskedLM,
    DebertaV2Config,
    EnhancedMaskDecoder,
    deberta,
    deberta_masked_lm,
    deberta_v3,
)
from course_lib.kernels.disentangled import (
    ScoreParts,
    disentangled_attention_reference,
    score_parts,
    score_scale,
)
from course_lib.kernels.positions import position_rows, row_table
from course_lib.lectures.lecture_08.experiments import (
    FULL,
    LENGTH,
    NARROW,
    QUEUE_RECIPES,
    RECIPES,
    SEEDS,
    STORIES,
    outcome,
    small_model,
)
from course_lib.lectures.lecture_08.views import score_statistics
from course_lib.lectures.lecture_08.views.distance_buckets import DistanceRows, distance_rows
from course_lib.lectures.lecture_08.views.score_spread import BIN, EDGE, histogram
from course_lib.objectives.sift import sift_loss
from course_lib.teaching import curves_chart
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import claims, printed
from course_lib.teaching.results import read_result
from course_lib.teaching.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, VERMILION, template

BOLD = ' font-weight="650"'
WORD = {"fill": "#e3eef6", "ink": BLUE}
PLACE = {"fill": "#fdf1d6", "ink": "#8a5f00"}
BLOCK = {"fill": "#f6e9f1", "ink": "#8f4a72"}


def _signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "−")


def _whole(number: float) -> str:
    return f"{number:.0f}".replace("-", "−")


def _percent(values: Sequence[float]) -> str:
    return f"{mean(values):.0%}"


def _in_letters(number: int) -> str:
    return ("none", "one", "two", "three", "four")[number]


# ---------------------------------------------------------------- 1, 2: added, or kept apart


def added_or_apart() -> str:
    """Left BERT: place and word become one vector; right DeBERTa: three products a pair."""
    parts = [
        words(245, 24, "BERT: added, once, at the entrance", 22, style=BOLD),
        words(865, 24, "DeBERTa: compared, in every layer", 22, style=BOLD),
        f'<path d="M535 0V388" stroke="{GREY}" stroke-dasharray="3 6"/>',
    ]
    for x, name in ((20, "i"), (275, "j")):
        parts += [
            rect(x, 52, 92, 52, f"word {name}", **WORD, wide=2),
            words(x + 109, 86, "+", 26),
            rect(x + 126, 52, 92, 52, f"place {name}", **PLACE, wide=2, dash="6 3"),
            arrow(x + 46, 106, x + 92, 158), arrow(x + 172, 106, x + 126, 158),
            rect(x + 38, 162, 142, 56, f"token {name}", wide=2.5, size=22),
        ]  # fmt: skip
    parts += [
        f'<path d="M202 190H311" stroke="{INK}" stroke-width="4"/>',
        words(256, 254, "one product"),
        words(245, 322, "word and place, once added,"), words(245, 350, "go on as one vector."),
        rect(605, 70, 130, 60, "word i", **WORD, wide=2, size=22),
        rect(995, 70, 130, 60, "word j", **WORD, wide=2, size=22),
        rect(765, 260, 200, 60, "distance i − j", **PLACE, wide=2, size=22, dash="6 3"),
        f'<path d="M737 100H993" stroke="{INK}" stroke-width="4"/>',
        f'<path d="M670 132L800 258M1060 132L930 258" stroke="{INK}" stroke-width="4"/>',
        words(865, 86, "word with word"),
        words(722, 206, "word with", 20, "end"), words(738, 232, "distance", 20, "end"),
        words(1008, 206, "distance", 20, "start"), words(992, 232, "with word", 20, "start"),
        words(865, 352, "one table of vectors, a row a distance,"),
        words(865, 378, "the same table in all layers"),
    ]  # fmt: skip
    return svg(1150, 392, *parts, says="BERT adds places to words; DeBERTa compares three times")


# ---------------------------------------------------------------- 3: which row

TOKENS, SPAN = 6, 2
ROW_FILLS = ("#ffffff", "#fdf1d6", "#cfe3f1", "#efd3e3")


def which_row() -> str:
    """Every pair of six tokens with its row, k = 2; below, each distance with its row."""
    delta, rows = row_table(position_rows(TOKENS, SPAN)), position_rows(TOKENS, SPAN)
    cell, left, top = 50, 96, 62
    parts = [
        words(left + cell * TOKENS / 2, 20, "token j answers"),
        f'<text transform="translate(26,{top + cell * TOKENS / 2}) rotate(-90)" '
        'text-anchor="middle" font-size="20">token i asks</text>',
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


def _rows_used() -> str:
    used = row_table(position_rows(TOKENS, SPAN)).unique().tolist()
    assert used == list(range(2 * SPAN))
    return f"{used[0]} to {used[-1]}"


# ---------------------------------------------------------------- 4: one score

ASKS, OFFERS = (2.0, 1.0), (1.0, 3.0)  # the notebook's: query of i, key of j
DISTANCE_OFFERS, DISTANCE_ASKS = (0.0, 2.0), (1.0, -1.0)


@lru_cache(maxsize=1)
def _one_score() -> tuple[float, float, float]:
    """The three products, by the library: a text of one token has one distance."""
    given = (ASKS, OFFERS, DISTANCE_OFFERS, DISTANCE_ASKS)
    query, key, position_key, position_query = (torch.tensor(v).view(1, 1, 2) for v in given)
    parts = score_parts(query[None], key[None], position_key, position_query, torch.tensor([0]))
    first, second, third = (float(part) for part in parts if part is not None)
    return first, second, third


def _scaled() -> float:
    one = torch.zeros(1)
    return sum(_one_score()) / score_scale(len(ASKS), one, one)


def one_score() -> str:
    """The three products written out, a line each."""
    shown = (
        ("word with word", "c2c", ("query of i", ASKS), ("key of j", OFFERS)),
        ("word with distance", "c2p", ("query of i", ASKS), ("key of the row", DISTANCE_OFFERS)),
        ("distance with word", "p2c", ("query of the row", DISTANCE_ASKS), ("key of j", OFFERS)),
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
    return table(("", "", "asks", "answers", "product"), rows, numbers=False, size=24)


# ---------------------------------------------------------------- 5: three maps and their sum

TOY = ("the", "red", "boat", "sank")
TOY_QUERY, TOY_KEY = ((0, 1), (1, 0), (2, 1), (1, 2)), ((0, 1), (1, 1), (2, 0), (1, 0))
# Rows of the distances −2 and below, −1, 0, 1 and above: k = 2.
TOY_POSITION_KEY = ((0, -1), (0, 1), (0, 0), (2, 0))
TOY_POSITION_QUERY = ((0, 0), (0, 2), (0, 0), (1, 0))
ASKING = TOY.index("boat")


@lru_cache(maxsize=1)
def _toy() -> ScoreParts:
    made = [torch.tensor(x, dtype=torch.float32)[None] for x in (
        TOY_QUERY, TOY_KEY, TOY_POSITION_KEY, TOY_POSITION_QUERY)]  # fmt: skip
    return score_parts(made[0][None], made[1][None], *made[2:], position_rows(len(TOY), SPAN))


def _toy_maps() -> list[Tensor]:
    """The three maps and their sum, each (T, T)."""
    maps = [part[0, 0] for part in _toy() if part is not None]
    return [*maps, maps[0] + maps[1] + maps[2]]


def _toy_weights() -> list[Tensor]:
    """The asking token's shares: by the words alone, and by the sum; (T,) each."""
    content, *_, total = _toy_maps()
    one = torch.zeros(1)
    return [
        (content[ASKING] / score_scale(2)).softmax(-1),
        (total[ASKING] / score_scale(2, one, one)).softmax(-1),
    ]


def three_maps() -> str:
    """Four grids of small integers: the darker the larger; the asking row framed."""
    maps, parts = _toy_maps(), []
    largest = max(float(one.abs().max()) for one in maps)
    titles = ("word with word", "word with distance", "distance with word", "sum")
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


def _looks_most(which: int) -> str:
    """Whom the asking token looks at most, and with what share."""
    weights = _toy_weights()[which]
    best = int(weights.argmax())
    return f"*{TOY[best]}* ({float(weights[best]):.0%})"


def _same_row() -> str:
    """The number that two keys share in the second map, as the slide says."""
    line = _toy_maps()[1][ASKING].tolist()
    assert line[0] == line[1] and TOY[:2] == ("the", "red")
    return _whole(line[0])


# ---------------------------------------------------------------- 6: the code


def code_scores() -> str:
    parts = body_of(score_parts, start="content =").rsplit("\nreturn", 1)[0]
    whole = body_of(disentangled_attention_reference).splitlines()
    chosen = [line for line in whole if line.startswith(("total =", "scores =", "weights ="))]
    return code("\n".join([parts, "", *chosen]))


# ---------------------------------------------------------------- 7: two generations of rows

SHOWN_TOKENS, SHOWN_SPAN, SHOWN_FURTHEST = 48, 8, 32


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


def _shown() -> DistanceRows:
    """The small table of the second generation."""
    return distance_rows(SHOWN_TOKENS, SHOWN_SPAN, SHOWN_FURTHEST)


@lru_cache(maxsize=1)
def _v3_rows() -> DistanceRows:
    """Of the released v3, in the longest text it is trained on."""
    config = published("deberta-v3", "base", DebertaV2Config)
    return distance_rows(config.max_positions, config.span, config.furthest)


def _v3_sharing() -> str:
    """How many distances share the row of the longest."""
    first, last = _v3_rows().sharing(_v3_rows().most)
    return f"{first} to {last}"


# ---------------------------------------------------------------- 8: counted, and right?


def _counted(model: torch.nn.Module, *parts: str) -> int:
    """Weights whose names hold one of the parts."""
    return sum(p.numel() for name, p in model.named_parameters() if any(x in name for x in parts))


@lru_cache(maxsize=1)
def _sizes() -> dict[str, tuple[int, int, int, int]]:
    """For each model: all weights, the words' table, places or distances, their projections."""
    found = {}
    with torch.device("meta"):  # shapes without memory
        models = {"BERT-base": bert("base"), "DeBERTa-base": deberta("base"),
                  "DeBERTa-v3-base": deberta_v3("base")}  # fmt: skip
    for name, model in models.items():
        found[name] = (
            count_parameters(model) - _counted(model, "pooler."),  # DeBERTa has none
            _counted(model, "embeddings.token."),
            _counted(model, "embeddings.position", "positions."),
            _counted(model, "position_key", "position_query"),
        )
    return found


def sizes() -> str:
    rows = []
    for name, (whole, vocabulary, places, projections) in _sizes().items():
        assert vocabulary and places  # the names above are those of the weights
        rest = whole - vocabulary - places - projections
        rows.append((f"<strong>{name}</strong>", f"{vocabulary:,}", f"{places:,}",
                     f"{projections:,}", f"{rest:,}", f"<strong>{whole:,}</strong>"))  # fmt: skip
    head = ("", "words’ table", "places", "projections", "the rest", "all")
    return table(head, rows, size=22)


def _projections() -> str:
    config = published("deberta", "base", DebertaConfig)
    L, d = config.num_layers, config.hidden_size
    found = _sizes()["DeBERTa-base"][3]
    assert found == 2 * L * d * d + L * d  # two matrices a layer, and one bias
    return f"{found / 1e6:.1f}"


SMALL = {
    "vocab_size": 2_000, "num_layers": 3, "hidden_size": 96, "num_heads": 4,
    "intermediate_size": 384,
}  # fmt: skip


@lru_cache(maxsize=1)
def _apart_from_theirs() -> tuple[float, float]:
    """The largest difference of an output from transformers' own, first and second generation."""
    torch.manual_seed(0)
    ids, found = torch.randint(5, 2_000, (3, 21)), []
    second = {"span": 8, "furthest": 32, "convolution": 3}
    for model in (deberta("base", span=16, **SMALL), deberta_v3("base", **second, **SMALL)):
        with torch.no_grad():
            ours = model.eval()(ids).last_hidden_state
            theirs = to_transformers(model).eval()(ids).last_hidden_state
        found.append(float((ours - theirs).abs().max()))
    assert max(found) < 1e-5
    return found[0], found[1]


# ---------------------------------------------------------------- 9: δ(i, j) or δ(j, i)

SEEN_TOKENS, SEEN_SPAN = 5, 4  # as in the claim


@lru_cache(maxsize=1)
def _which_delta() -> tuple[Any, Any, tuple[int, ...]]:
    """Distances at which row k + 1 acts in transformers, (c2p, p2c) of both generations; and those
    at which the paper's form cannot be had by turning the table (k = 8, 20 tokens)."""
    first, second, unlike = next(one for one in claims("08") if one.id == "δ(j, i)").settle().value
    assert first == second == ((1,), (1,))  # as the slide says
    return first, second, unlike


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
    _which_delta()
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
        parts.append(words(x + 2.5 * cell, top + 5 * cell + 24, "j answers →", 18))
        parts.append(f'<text transform="translate({x - 14},{top + 2.5 * cell}) rotate(-90)" '
                     'text-anchor="middle" font-size="18">← i asks</text>')  # fmt: skip
    return svg(660, 328, *parts, says="row k + 1 acts above the diagonal, or below it")


# ---------------------------------------------------------------- 10: why sqrt(3d)

HEAD = 64


def spread() -> Any:
    """Densities of fresh scores: one term, three by sqrt(d), three by sqrt(3d)."""
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
    figure.update_yaxes(title_text="share (density)", range=[0, 0.46], dtick=0.2)
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


@lru_cache(maxsize=1)
def _found() -> dict[str, Any]:
    return read_result("08_positions")


def _reached(name: str) -> list[float]:
    return outcome(_found(), "masked_accuracy")[name]


def _ahead(better: str, worse: str) -> list[float]:
    """Points between two recipes, a number a seed."""
    return [100 * (a - b) for a, b in zip(_reached(better), _reached(worse), strict=True)]


def _steps(name: str) -> int:
    return int(_found()["recipes"][name]["steps"])


def _longer(name: str = "DeBERTa") -> float:
    """Times as long as a step of BERT."""
    seconds = _found()["step_seconds"]
    return float(seconds[name] / seconds["BERT"])


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

    parts = [words(left, 20, "hidden words found, held-out stories", 19, "start", BOLD)]
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
        step=66, says="hidden words found by BERT and DeBERTa, at equal steps and at equal time",
    )  # fmt: skip


def _at_equal_time() -> str:
    """What BERT reaches in no more than DeBERTa's time; the slide says that it is ahead."""
    assert _steps("BERT, equal time") / _steps("BERT") <= _longer()
    assert mean(_ahead("BERT, equal time", "DeBERTa")) > 0
    return _percent(_reached("BERT, equal time"))


def _equal_time_seeds() -> str:
    """In how many seeds BERT is ahead at equal time."""
    return _in_letters(sum(points > 0 for points in _ahead("BERT, equal time", "DeBERTa")))


# ---------------------------------------------------------------- 12, 13: what each part is worth

PARTS = {
    "DeBERTa": "DeBERTa",
    "without c2p": "without c2p",
    "without p2c": "without p2c",
    "decoder without places": "decoder without places",
    "without decoder": "without decoder",
    "BERT": "BERT (adds places)",
}


def parts_worth() -> str:
    assert mean(_reached("no distances")) < 0.6  # far left of the figure, as the slide says
    return _rows_of_dots(
        PARTS, 0.78, 0.94, (0.8, 0.85, 0.9), columns={"blocks to a guess": _blocks()},
        filled={"DeBERTa": PURPLE, "BERT": BLUE},
        says="hidden words found by DeBERTa, without each of its parts, and by BERT",
    )  # fmt: skip


@lru_cache(maxsize=1)
def _blocks() -> dict[str, str]:
    """How many blocks a word passes on its way to a guess. The decoder starts from what the last
    block reads, and visits that block instead."""
    world, passed = MicroWorld.load(), {}
    for name in PARTS:
        model: Any = small_model(RECIPES[name], world, seed=0)
        blocks = len(model.encoder.stack.blocks)
        decoded = isinstance(model, DebertaForMaskedLM)
        passed[name] = f"{blocks - 1 + model.decoder.visits if decoded else blocks}"
    return passed


def _no_distances() -> str:
    values = _reached("no distances")
    return f"{min(values):.0%} to {max(values):.0%}"


def _worse(name: str, than: str = "DeBERTa") -> str:
    """Points that a recipe loses in the mean, above zero as the slide says."""
    points = mean(_ahead(than, name))
    assert points > 0, (name, than, points)
    return f"{points:.1f}"


def _without_p2c_gains() -> str:
    """Points over the whole DeBERTa; the slide says: more, not less."""
    points = mean(_ahead("without p2c", "DeBERTa"))
    assert points > 0
    return f"{points:.1f}"


def _seeds_below(name: str, than: str = "DeBERTa") -> int:
    """In how many seeds a recipe finds less than another."""
    return sum(points > 0 for points in _ahead(than, name))


def _kept_without_places() -> str:
    """Of what the decoder brings, the share that stays with all places at zero."""
    whole = mean(_ahead("DeBERTa", "without decoder"))
    share = mean(_ahead("decoder without places", "without decoder")) / whole
    assert share > 0.7  # "nearly all"
    return f"{share:.0%}"


def _against_bert() -> str:
    """Points between DeBERTa without its decoder and BERT; the slide says: about level."""
    points = mean(_ahead("without decoder", "BERT"))
    assert abs(points) < 3
    return _signed(points)


PRINTED = {
    "without c2p": "without_c2p", "without p2c": "without_p2c",
    "without decoder": "without_decoder", "BERT": "roberta",
}  # fmt: skip


def _paper_changes(row: str) -> list[float]:
    """Points of MNLI (matched), SQuAD 2.0 (F1) and RACE against DeBERTa, by Table 4."""
    rows = printed("deberta")["ablation"]
    (mnli, _, squad, race), whole = rows[row], rows["deberta"]
    return [mnli[0] - whole[0][0], squad[0] - whole[2][0], race - whole[3]]


def beside_the_paper() -> str:
    rows = []
    for name in [n for n in PARTS if n != "DeBERTa"]:
        points = [-p for p in _ahead("DeBERTa", name)]
        theirs = PRINTED.get(name)
        rows.append(
            (
                "<strong>BERT; the paper: RoBERTa</strong>" if name == "BERT"
                else f"<strong>{name}</strong>",
                f"{_signed(mean(points))} (sd {stdev(points):.1f})",
                f"{_seeds_below(name)} of {len(points)}",
                *(map(_signed, _paper_changes(theirs)) if theirs else ["–"] * 3),
            )
        )  # fmt: skip
    head = ("points against DeBERTa", "ours: words", "seeds below", "MNLI", "SQuAD 2.0", "RACE")
    return table(head, rows, size=23)


# ---------------------------------------------------------------- 14, 15, 16: the queue


@lru_cache(maxsize=1)
def _queue() -> dict[str, Any]:
    return read_result("08_queue")


def queue_text() -> str:
    """The first two sentences of a row: workers hidden, things drawn anew; below, who it was."""
    line = _queue_line(_queue()["words"])
    return svg(1150, 104, *line, says="two sentences of the queue with their workers hidden")


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
    """What asks goes through the last block twice; what is read stays the same."""
    return svg(
        1150, 252,
        rect(2, 14, 148, 56, "place", **PLACE, wide=2, dash="6 3", size=22),
        rect(2, 150, 148, 70, "x", **WORD, wide=2.5, size=26),
        words(0, 243, "what the last block read", 18, "start"),
        words(230, 102, "+", 34),
        arrow(152, 42, 214, 84, tip=False), arrow(152, 172, 214, 104, tip=False),
        arrow(248, 92, 330, 92), words(288, 76, "asks", 20),
        rect(336, 50, 200, 84, "last block", **BLOCK, wide=2.5, size=24),
        arrow(538, 92, 640, 92), words(588, 76, "asks", 20),
        rect(646, 50, 200, 84, "last block", **BLOCK, wide=2.5, size=24),
        arrow(848, 92, 930, 92),
        rect(936, 56, 212, 72, "which word?", wide=2, size=22),
        arrow(152, 200, 436, 200, 436, 138), arrow(436, 200, 746, 200, 746, 138),
        words(310, 190, "is read", 20), words(590, 190, "the same x is read", 20),
        words(591, 36, "the same weights", 20),
        says="the place is added to what asks; the last block is visited twice; x is read",
    )  # fmt: skip


def code_decoder() -> str:
    lines = body_of(EnhancedMaskDecoder.forward).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("if only_at"))
    return code(
        "\n".join(lines[:start] + lines[start + 2 :])
    )  # without the saving at masked places


TOLD = {
    "BERT": "BERT",
    f"distances to {NARROW}, place side by side": "side by side",
    f"distances to {NARROW}, decoder": "decoder",
}
UNTOLD = (f"distances to {LENGTH}, no decoder", f"distances to {NARROW}, no decoder")
LONGER = f"distances to {LENGTH}, no decoder, longer"


def _named(name: str) -> list[float]:
    return outcome(_queue(), "accuracy")[name]


def _chance() -> float:
    return 1 / len(_queue()["words"])


def queue_lines() -> Any:
    """The share of workers named right along training; the mean of the seeds, and their range."""
    short = dict(TOLD)
    short |= {name: f"distances to {n}" for name, n in zip(UNTOLD, (LENGTH, NARROW), strict=True)}
    curves = {said: [run["curve"] for run in _queue()["runs"][name]]
              for name, said in short.items()}  # fmt: skip
    figure = curves_chart(
        curves, x_title="training step", y_title="workers named", title="", percent=True,
        levels={"chance": _chance()},
    )  # fmt: skip
    labels = [a for a in figure.layout.annotations if a.xref == "paper"]
    for label, y in zip(labels, (1.02, 0.91, 0.80, 0.42, 0.31, 0.13), strict=True):
        label.y = y  # those that end at the same height, one under another
    return for_a_hall(figure, 1120, 350, right=260)


def _workers() -> str:
    assert len(_queue()["words"]) == 8  # as the guesses say
    return "eight"


def _all_from(name: str) -> int:
    """The step from which on even the slowest seed names all."""
    curves = [run["curve"] for run in _queue()["runs"][name]]
    return max(next(step for step, share in curve if share > 0.99) for curve in curves)


def _all_named() -> str:
    """Whoever is told the place names all workers in every seed."""
    assert all(min(_named(name)) > 0.99 and _all_from(name) <= 100 for name in TOLD)
    return _workers()


def _untold() -> str:
    values = [v for name in UNTOLD for v in _named(name)]
    assert max(values) < 0.2
    return f"{mean(values):.1%}"


def _longer_end() -> str:
    assert QUEUE_RECIPES[LONGER].steps == 5 * QUEUE_RECIPES[UNTOLD[0]].steps  # "five times"
    return f"{mean(_named(LONGER)):.1%}"


def _longer_best() -> str:
    """The highest that a seed of the long run ever has on the way."""
    return f"{max(share for run in _queue()['runs'][LONGER] for _, share in run['curve']):.0%}"


# ---------------------------------------------------------------- 17: SiFT


@lru_cache(maxsize=1)
def _clipped_and_perturbed() -> tuple[float, float, float, float]:
    """A gradient's size before clipping and after; what that changes in the answers; how far
    SiFT's push moves them, in nats."""
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
        ("<strong>SiFT</strong>", "the words’ normalised vectors", "a push",
         f"<strong>KL {perturbed:.5f}</strong>"),
    ]  # fmt: skip
    return table(("", "touches", "", "answers now"), rows, numbers=False, size=22)


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


def _superglue(name: str) -> float:
    return float(printed("deberta")["superglue"][name])


def _gain(where: str) -> str:
    ours, theirs = printed("deberta")["large"]["squad_2"][0], printed("deberta")["roberta_cells"]
    return _signed(ours - theirs[where])


def _cost(of: str) -> str:
    """The paper's share of further computation, or the claim's by formula."""
    if of == "paper":
        return f"{printed('deberta')['cost']['more_compute']:.0%}"
    return f"{next(one for one in claims('08') if one.id == '30% more').settle().value[0]:.0%}"


# ---------------------------------------------------------------- 19, 20: to keep

CHOSEN = ("E98", "decoder here", "slip 3 abstract")


def claims_rows() -> str:
    return drawing.claims_rows("08", CHOSEN, size=20)


def exercises() -> str:
    return drawing.exercise_list("08")


NUMBERS: dict[str, Callable[[], Any]] = {
    "workers": _workers,
    "cost_paper": lambda: _cost("paper"),
    "cost_formula": lambda: _cost("formula"),
    "toy_k": lambda: SPAN,
    "toy_rows": lambda: 2 * SPAN,
    "rows_used": _rows_used,
    "wrong_rows": lambda: 2 * SPAN + 1,
    "one_sum": lambda: _whole(sum(_one_score())),
    "one_scaled": lambda: f"{_scaled():.2f}",
    "alone_looks": lambda: _looks_most(0),
    "sum_looks": lambda: _looks_most(1),
    "same_row": _same_row,
    "shown_span": lambda: SHOWN_SPAN,
    "shown_rows": lambda: 2 * SHOWN_SPAN,
    "shown_furthest": lambda: SHOWN_FURTHEST,
    "shown_own": lambda: _shown().own[1],
    "shown_dozen": lambda: "{} to {}".format(*_shown().sharing(12)),
    "v1_rows": lambda: 2 * published("deberta", "base", DebertaConfig).span,
    "v1_span": lambda: published("deberta", "base", DebertaConfig).span,
    "v3_span": lambda: published("deberta-v3", "base", DebertaV2Config).span,
    "v3_own": lambda: _v3_rows().own[1],
    "v3_sharing": _v3_sharing,
    "projections": _projections,
    "apart_first": lambda: f"{_apart_from_theirs()[0]:.7f}",
    "apart_second": lambda: f"{_apart_from_theirs()[1]:.7f}",
    "unlike_from": lambda: _which_delta()[2][0],
    "head": lambda: HEAD,
    "stories": lambda: STORIES,
    "seeds": lambda: _in_letters(len(SEEDS)),
    "steps": lambda: FULL.steps,
    "bert_words": lambda: _percent(_reached("BERT")),
    "deberta_words": lambda: _percent(_reached("DeBERTa")),
    "equal_time_words": _at_equal_time,
    "equal_time_seeds": _equal_time_seeds,
    "equal_time_steps": lambda: _steps("BERT, equal time"),
    "longer": lambda: f"{_longer():.1f}",
    "longer_without": lambda: f"{_longer('without decoder'):.1f}",
    "no_distances": _no_distances,
    "c2p_loses": lambda: _worse("without c2p"),
    "p2c_gains": _without_p2c_gains,
    "p2c_below": lambda: _in_letters(_seeds_below("without p2c")),
    "decoder_worth": lambda: _worse("without decoder"),
    "places_worth": lambda: _worse("decoder without places"),
    "three_blocks": lambda: _worse("BERT, three blocks"),
    "kept_without_places": _kept_without_places,
    "against_bert": _against_bert,
    "paper_p2c": lambda: _signed(_paper_changes("without_p2c")[2]),
    "queue_steps": lambda: QUEUE_RECIPES["BERT"].steps,
    "queue_long": lambda: QUEUE_RECIPES[LONGER].steps,
    "all_named": _all_named,
    "bert_from": lambda: _all_from("BERT"),
    "beside_from": lambda: _all_from(f"distances to {NARROW}, place side by side"),
    "decoder_from": lambda: _all_from(f"distances to {NARROW}, decoder"),
    "untold": _untold,
    "longer_end": _longer_end,
    "longer_best": _longer_best,
    "narrow": lambda: NARROW,
    "far": lambda: LENGTH,
    "single": lambda: _superglue("single"),
    "ensemble": lambda: _superglue("ensemble"),
    "people": lambda: _superglue("human"),
    "gain_abstract": lambda: _gain("squad_2_in_the_abstract"),
    "gain_table": lambda: _gain("squad_2"),
    "mnli_gain": lambda: _signed(-_paper_changes("roberta")[0]),
    "squad_gain": lambda: _signed(-_paper_changes("roberta")[1]),
    "race_gain": lambda: _signed(-_paper_changes("roberta")[2]),
    "printed_mean": lambda: f"{printed('deberta')['large']['glue']:.2f}",
    "real_mean": lambda: printed("deberta")["large"]["glue_recomputed"],
    "claims_in_all": lambda: len(claims("08")),
    "exercise_minutes": lambda: drawing.exercise_minutes("08"),
}  # fmt: skip
