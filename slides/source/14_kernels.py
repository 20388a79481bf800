"""What deck 14 shows: counted here or read from data/results; nothing is timed, nothing trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import log10
from typing import Any

import drawing
import numpy as np
import torch
from drawing import arrow, body_of, code, for_a_hall, grid, rect, svg, table, words

from course_lib import albert, bert, published
from course_lib.bench.early_exit import under_way
from course_lib.bench.measuring import where_measured
from course_lib.bench.roofline import Placed
from course_lib.bench.summary import COMPARED, SpeedRow
from course_lib.config import encoder_flops
from course_lib.kernels import disentangled
from course_lib.kernels.choosing import ATTENTION, DISENTANGLED
from course_lib.kernels.early_exit import early_exit
from course_lib.kernels.masked_loss import masked_loss
from course_lib.kernels.masking import CHOICE, as_uniform, random_bits
from course_lib.lectures.lecture_14.exercises.real import real_only
from course_lib.lectures.lecture_14.numbers import (
    BYTES,
    CHUNK,
    EXAMPLES,
    HEADS,
    LONG,
    PLACES,
    SEED,
    SIZES,
    VALUES,
    Counted,
    Twins,
    all_counted,
    band,
    exit_gains,
    is_seen,
    ladder_titles,
    multiply_adds,
    padded_batch,
    ratio_of,
    rows_of,
    selected_traffic,
    softmax_pieces,
    square,
    stored_roof,
    stored_run,
    twins_of,
    view_of_three,
    when,
)
from course_lib.lectures.lecture_14.views import roofline_chart, traffic_chart
from course_lib.lectures.lecture_14.views.roofline import times
from course_lib.lectures.lecture_14.views.speeds import speed_picture, speeds
from course_lib.lectures.lecture_14.views.traffic_bars import amount
from course_lib.teaching.results import read_result
from course_lib.teaching.style import BLUE, INK, SKY

BOLD = ' font-weight="650"'
PALE, RULE_LINE = "#e3f0f8", "#dcdcdc"
SOLID = {"fill": PALE, "ink": BLUE, "wide": 2}


def _solid_if(solid: bool, text: str = "", **look: Any) -> dict[str, Any]:
    """A box of a grid: what is computed, read or selected is solid, all else dashed."""
    return {"text": text, **(SOLID if solid else {"dash": "3 3"}), **look}


def _traffic_bars(twins: Twins) -> Any:
    figure = for_a_hall(traffic_chart(twins, together=True), 1120, 36 + 27 * len(twins))
    return figure.update_layout(margin_t=32, margin_b=4)


def _bars_of(name: str) -> Any:
    """Bars of one of the roofline's cases."""
    return _traffic_bars({one.how or one.twin: one.kinds for one in twins_of(name)})


def _blank(source: str, missing: str) -> str:
    """The code with a piece of it left out, for the class to fill in."""
    assert source.count(missing) == 1, missing
    return code(source.replace(missing, "______"))


def _between(function: Callable[..., Any], first: str, last: str) -> str:
    """Lines of a function's body, from the one with `first` to the one with `last`."""
    lines = body_of(function).splitlines()
    begin = next(i for i, line in enumerate(lines) if first in line)
    end = next(i for i, line in enumerate(lines) if i >= begin and last in line)
    indent = len(lines[begin]) - len(lines[begin].lstrip())
    return "\n".join(line[indent:] for line in lines[begin : end + 1])


# ---------------------------------------------------------------- 2: two numbers


def two_numbers() -> str:
    rows = []
    for n in SIZES:
        product, plus, moved = square(n)
        rows.append((f"{n:,}", f"{product:,}", f"{moved:,}", f"<strong>{product / moved:,.1f}"
                     "</strong>", f"{plus / moved:.2f}"))  # fmt: skip
    head = ("n", "2n³ FLOPs", "3n² numbers, bytes", "FLOPs per byte: product", "sum")
    return table(head, rows, size=24)


def this_machine() -> str:
    """Memory, arithmetic, and what goes on while one number travels."""
    roof = stored_roof()
    parts = [
        rect(1, 20, 249, 96, fill=PALE, ink=BLUE, wide=2),
        words(125, 62, "memory", 24, style=BOLD), words(125, 94, "every tensor", 19),
        arrow(250, 68, 512, 68), words(381, 54, f"{roof['memory']:.0f} GB/s", 22, style=BOLD),
        words(381, 96, "one number: 4 bytes", 19),
        rect(516, 20, 250, 96, fill="#fdf1d6", ink="#8a5f00", wide=2),
        words(641, 62, "arithmetic", 24, style=BOLD),
        words(641, 94, f"{roof['float32']:,.0f} GFLOP/s", 20),
        rect(826, 20, 323, 96, dash="6 4", ink=INK, wide=2),
        words(988, 60, f"{multiply_adds()} multiply-adds", 24, style=BOLD),
        words(988, 92, "while one number arrives", 20),
    ]  # fmt: skip
    return svg(1150, 124, *parts, says="memory brings numbers to the arithmetic")


# ---------------------------------------------------------------- 3, 13: the roofline


def _below_roof(points: Sequence[Placed], high: int) -> Any:
    zoom = 1.5  # from the notebook's size of type to a hall's
    figure = roofline_chart(stored_roof(), points, width=1120 / zoom, height=high / zoom)
    return for_a_hall(figure, 1120, high + 90).update_layout(margin={"b": 66})


def _without(figure: Any, start: str) -> Any:
    """The figure without the words that begin so."""
    notes = figure.layout.annotations
    figure.layout.annotations = [note for note in notes if not note.text.startswith(start)]
    return figure


def the_roof() -> Any:
    """The roof of the stored machine, with a sum and three products where they touch it."""
    roof = stored_roof()
    done = {"sum": square(SIZES[1])[1:]}
    done |= {f"product, n = {n:,}": square(n)[::2] for n in SIZES}
    points = []
    for name, (flops, moved) in done.items():
        seconds = max(flops / roof["float32"], moved / roof["memory"]) / 1e9
        points.append(Placed(name, "fast", flops, moved, moved, seconds))
    # Nothing here has a twin, so the line that explains hollow and filled goes.
    return _without(_below_roof(points, 270), "hollow:")


# ---------------------------------------------------------------- 4: three ways

WAYS = {
    "Do less": ("leave out what is never used",
                ("selected positions only", "no padding", "early exit", "rows that occur")),
    "Move less": ("use a number while it is near",
                  ("a shift for a gather", "softmax in pieces", "loss in chunks")),
    "Wait less": ("few large steps, not many small",
                  ("masks by the batch", "sampling in two steps", "texts of one length")),
}  # fmt: skip


def three_ways() -> str:
    looks = ((PALE, BLUE), ("#e0f3ed", "#00745a"), ("#fdf1d6", "#8a5f00"))
    parts = []
    for k, ((name, (what, kernels)), (fill, ink)) in enumerate(
        zip(WAYS.items(), looks, strict=True)
    ):
        x = 392 * k + 1
        parts += [rect(x, 1, 364, 300, fill=fill, ink=ink, wide=2),
                  words(x + 24, 46, f"{k + 1}. {name}", 28, "start", BOLD),
                  words(x + 24, 86, what, 21, "start")]  # fmt: skip
        parts += [words(x + 24, 136 + 40 * i, f"– {kernel}", 21, "start")
                  for i, kernel in enumerate(kernels)]  # fmt: skip
    return svg(1150, 304, *parts, says="do less, move less, wait less, and the kernels that do so")


# ---------------------------------------------------------------- 5: only selected positions


def selected_bars() -> Any:
    return _traffic_bars(selected_traffic())


def selected_code() -> str:
    return _blank(body_of(masked_loss), "hidden.flatten(0, 1)[at]")


# ---------------------------------------------------------------- 6: a mask never stored


def _by_function(examples: Sequence[int], epoch: int) -> np.ndarray:
    rows, places = np.array(examples)[:, None], np.arange(PLACES)
    return as_uniform(random_bits(SEED, epoch, rows, CHOICE, places))


def _by_stream(examples: Sequence[int]) -> np.ndarray:
    draw = torch.Generator().manual_seed(SEED)
    return torch.rand(len(examples), PLACES, generator=draw).numpy()


def two_draws() -> str:
    """Example 7 in a batch of three and alone: a stream's numbers differ, a function's do not."""
    alone = EXAMPLES[1]
    drawn = {
        "one stream": (_by_stream(EXAMPLES), _by_stream([alone])),
        "a function": (_by_function(EXAMPLES, 0), _by_function([alone], 0)),
    }

    def look(number: float, i: int, j: int) -> dict[str, Any]:
        return {"text": f"{number:.4f}", "size": 19, **(SOLID if i == 1 else {})}

    parts = [words(x, 18, said, 20, "start", BOLD)
             for x, said in ((250, f"{alone} in a batch"), (680, f"{alone} alone"))]  # fmt: skip
    for row, (name, (batch, single)) in enumerate(drawn.items()):
        y = 30 + 118 * row
        same = np.array_equal(batch[1], single[0])
        assert same == (name == "a function")
        parts.append(words(0, y + 58, name, 22, "start", BOLD))
        parts += [words(236, y + 23 + 35 * i, str(n), 20, "end") for i, n in enumerate(EXAMPLES)]
        parts.append(words(666, y + 58, str(alone), 20, "end"))
        parts += grid(batch, 250, y, (104, 35), look)
        parts += grid(single, 680, y + 35, (104, 35), lambda x, i, j: look(x, 1, j))
        said = "the same" if same else "they differ"
        parts.append(words(1010, y + 58, said, 22, "start", BOLD))
    return svg(1150, 256, *parts, says="random numbers of one example in a batch, and alone")


def hash_code() -> str:
    source = _between(random_bits, "rows = ", "return ")
    return _blank(source, "example.astype(np.uint64)")


# ---------------------------------------------------------------- 7: look up by shifting


def shifted() -> str:
    """The table (3, 5) by distance and the view (3, 3): positions in memory, by the library."""
    view, step = view_of_three(), 52
    T, width = len(view), 2 * len(view) - 1
    picked = set(view.flatten().tolist())
    left, right, top = 120, 800, 62
    parts = [words(left + 2.5 * step, 18, "by distance i − j", 20, "middle", BOLD),
             words(right + 1.5 * step, 18, "by token j", 20, "middle", BOLD)]  # fmt: skip
    parts += [words(left + step * (c + 0.5), 50, str(T - 1 - c).replace("-", "−"), 19)
              for c in range(width)]  # fmt: skip
    parts += [words(right + step * (j + 0.5), 50, str(j), 19) for j in range(T)]
    parts += [words(x - 14, top + 32 + step * i, f"row {i}", 19, "end")
              for x in (left, right) for i in range(T)]  # fmt: skip
    table_of = np.arange(T * width).reshape(T, width)
    parts += grid(table_of, left, top, (step, step), lambda n, i, j: _solid_if(n in picked, str(n)))
    parts += grid(view.tolist(), right, top, (step, step), lambda n, i, j: _solid_if(True, str(n)))
    jump = int(view[1, 0] - view[0, 0])
    along = int(view[0, 1] - view[0, 0])
    parts += [
        arrow(430, 140, 690, 140), words(560, 92, "numbers: positions in memory", 18),
        words(560, 126, f"a row on: + {jump}", 20), words(560, 168, f"a token on: + {along}", 20),
        words(560, 196, f"begin at {int(view[0, 0])}", 20),
    ]  # fmt: skip
    return svg(1150, 222, *parts, says="nine of fifteen numbers, read by steps of four and one")


def shifted_bars() -> Any:
    return _bars_of("disentangled attention")


def shifted_code() -> str:
    return _blank(body_of(disentangled._skew, start="return"), "width - 1")


# ---------------------------------------------------------------- 8: a softmax in pieces


def pieces_table() -> str:
    rows = []
    for number, one in enumerate(softmax_pieces()):
        shrink = "" if number == 0 else f"{one.shrink:.4f}"
        values = VALUES[CHUNK * number : CHUNK * (number + 1)]
        rows.append((", ".join(f"{s:g}" for s in one.scores), ", ".join(f"{v:g}" for v in values),
                     f"{one.largest:g}", shrink, f"{one.sum:.4f}", f"{one.mixed:.3f}"))  # fmt: skip
    head = ("scores", "values", "largest so far", "old parts ×", "sum", "weighted sum")
    return table(head, rows, size=23)


def attention_bars() -> Any:
    return _bars_of("attention")


# ---------------------------------------------------------------- 9: which path


def rules() -> str:
    rows = []
    for name, found in (("attention", ATTENTION), ("disentangled", DISENTANGLED)):
        for place, rule in enumerate(found):
            why = rule.why.split(": ", 1)[1] if rule.why.startswith("bench ") else rule.why
            rows.append((f"<strong>{name}</strong>" if place == 0 else "", when(rule),
                         f'<code style="font-size:19px">{rule.path}</code>',
                         escape(why)))  # fmt: skip
    return table(("", "where", "takes", "because"), rows, numbers=False, size=19)


# ---------------------------------------------------------------- 10: no padding


def padding_picture() -> str:
    """Five rows with their padding, and the list of what is real."""
    lengths, step = (3, 8, 5, 2, 4), 34
    padded = [letter * length + " " * (8 - length)
              for letter, length in zip("abcde", lengths, strict=True)]  # fmt: skip
    real = "".join(
        sorted("".join(padded).replace(" ", ""), key=lambda a: lengths["abcde".index(a)])
    )

    def look(letter: str, i: int, j: int) -> dict[str, Any]:
        return _solid_if(letter != " ", letter.strip(), size=17)

    parts = grid(padded, 1, 1, (step, 30), look)
    parts += grid([real], 400, 12, (step, 32), look)
    parts += [arrow(290, 62, 386, 62),
              words(400, 86, f"{len(real)} of {8 * len(lengths)} positions; dense layers, norms, "
                    "GELU work on the list,", 20, "start"),
              words(400, 116, "attention on texts of one length at once", 20, "start")]  # fmt: skip
    return svg(1150, 150, *parts, says="a padded batch, and the list of its real tokens")


def padding_bars() -> Any:
    return _traffic_bars(padded_batch()[0])


def padding_code() -> str:
    return _blank(body_of(real_only), "x[real]")


# ---------------------------------------------------------------- 11: who is done may leave


def leaving_picture() -> str:
    seen = under_way(layers=4, batch=8)  # as the roofline's early exit
    rows, step, wide = seen[0], 20, 126
    parts = [words(90 + wide * (k + 0.5), 18, f"layer {k + 1}", 19, style=BOLD)
             for k in range(len(seen))]  # fmt: skip
    computed = [[row < count for count in seen] for row in range(rows)]
    parts += grid(computed, 90, 28, (wide, step), lambda solid, i, j: _solid_if(solid))
    parts += [words(80, 44 + step * 3.5, "texts", 19, "end"),
              words(660, 60, f"solid: computed, {sum(seen)} of {rows * len(seen)} squares", 21,
                    "start"),
              words(660, 96, f"FLOPs: {ratio_of('early exit', 'flops')} times fewer", 21,
                    "start", BOLD),
              words(660, 132, "dashed: the reference computes it too,", 21, "start"),
              words(660, 162, "and throws it away", 21, "start")]  # fmt: skip
    return svg(1150, 28 + step * rows + 6, *parts, says="a batch that shrinks from layer to layer")


def leaving_bars() -> Any:
    return _bars_of("early exit")


def leaving_code() -> str:
    return _blank(_between(early_exit, "if bool(done.any())", "left, x ="), "x[stay]")


# ---------------------------------------------------------------- 12: is it right?


def _difference(reference: Counted, fast: Counted) -> str:
    """The largest difference, as a fraction of the largest number; "none" where all are equal."""
    gaps = []
    for ours, theirs in zip(fast.outputs, reference.outputs, strict=True):
        wide = theirs.double()
        largest = wide.abs().max().item() or 1.0
        gaps.append((ours.double() - wide).abs().max().item() / largest)
    return f"{max(gaps):.0e}".replace("-", "−") if max(gaps) else "none"


def right_rows() -> str:
    rows = []
    for name in dict.fromkeys(one.name for one in all_counted()):
        reference, *fast = twins_of(name)
        for one in fast:
            sizes = (reference.sum.moved, one.sum.moved, reference.held, one.held)
            said = map(amount, sizes) if is_seen(reference) else "––––"
            rows.append((f"{name}{f', {one.how}' if one.how else ''}", *said,
                         f"<strong>{_difference(reference, one)}</strong>"))  # fmt: skip
    head = ("", "moved, reference", "fast", "held at once, reference", "fast", "difference")
    return table(head, rows, size=19)


# ---------------------------------------------------------------- 13: kernels below the roof


def kernels_on_the_roof() -> Any:
    """The timed kernels that have matrix products, below the stored machine's roof."""
    points = [Placed(**point) for point in stored_run()["points"]]
    figure = _below_roof([point for point in points if point.flops], 360)
    for note in figure.layout.annotations:  # so that no name lies upon the slope or its name
        if note.text.startswith("ridge"):
            note.update(x=note.x - 0.01, xanchor="right")
        elif note.text.startswith("attention, half padding"):
            text = note.text.replace(", ", ",<br>", 1)
            note.update(x=0.32, y=0.075, xref="paper", yref="paper", xanchor="left", text=text)
            note.update(yanchor="middle", align="left", xshift=0, yshift=0)
    return figure


# ---------------------------------------------------------------- 14: against the peers


def _ratio_dots(found: Mapping[str, Any], kinds: Sequence[str]) -> str:
    """A row a kind, a dot a size: how many times as quick as the peer; hollow where slower."""
    groups = {kind: rows for kind in kinds if (rows := rows_of(kind, found))}
    ratios = [row.ratio for rows in groups.values() for row in rows]
    low, high = min([*ratios, 0.8]) / 1.15, max([*ratios, 2.0]) * 1.3
    left, right, step, top = 330, 1000, 43, 34
    bottom = top + step * len(groups)

    def across(ratio: float) -> float:
        return left + (right - left) * log10(ratio / low) / log10(high / low)

    parts = []
    for tick in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200):
        if low <= tick <= high:
            x = across(tick)
            ink, wide = (INK, 2) if tick == 1 else (RULE_LINE, 1)
            parts += [f'<path d="M{x:.1f} {top - 8}V{bottom}" stroke="{ink}" stroke-width="{wide}"'
                      "/>", words(x, 18, f"{tick:g}×", 18)]  # fmt: skip
    for row, (kind, found_rows) in enumerate(groups.items()):
        y = top + step * (row + 0.5)
        parts.append(words(left - 14, y + 7, _kind_said(kind), 20, "end"))
        parts += [_ratio_mark(across(one.ratio), y, one) for one in found_rows]
        ends = [times(f(one.ratio for one in found_rows)).rstrip("×") for f in (min, max)]
        parts.append(words(1150, y + 7, f"{'–'.join(dict.fromkeys(ends))}×", 20, "end", BOLD))
    return svg(1150, int(bottom + 4), *parts, says="how many times as quick as the peer, by size")


def _kind_said(kind: str) -> str:
    return kind.replace("Corruption by ELECTRA", "ELECTRA's corruption").replace(" on a", ",")


def _ratio_mark(x: float, y: float, row: SpeedRow) -> str:
    fill = SKY if row.ratio >= 1 else "#fff"
    look = f'fill="{fill}" fill-opacity="0.8" stroke="{INK}" stroke-width="1.6"'
    if row.size.endswith("bfloat16"):
        return f'<rect x="{x - 7:.1f}" y="{y - 7}" width="14" height="14" {look}/>'
    return f'<circle cx="{x:.1f}" cy="{y}" r="8" {look}/>'


def against_peers() -> str:
    return _ratio_dots(stored_run(), [kind for kind in COMPARED if "GPU" not in kind])


# ---------------------------------------------------------------- 15: the ladder


def ladder() -> str:
    """One pre-training step, from the peer as shipped to ours, in tokens a second."""
    return drawing.large(speed_picture(stored_run(), ladder_titles()[0]).inner, 1.4)


# ---------------------------------------------------------------- 16: on a GPU

HALF = BYTES // 2  # a bfloat16


def tiles() -> str:
    """Queries down, keys across: the band, and one program's way past three zones."""
    cells, size, owner = 12, 25, 6

    def look(_: None, i: int, j: int) -> dict[str, Any]:
        inside = abs(i - j) <= 2
        shown = {"fill": "#fdf1d6", "ink": "#8a5f00"} if inside else {"dash": "2 3"}
        return shown | ({"wide": 3, "ink": BLUE, "dash": ""} if i == owner else {})

    parts = grid([[None] * cells] * cells, 50, 34, (size, size), look)
    y = 34 + size * (owner + 0.5)
    parts += [
        words(50, 20, "keys, a block at a time", 18, "start"), words(40, y + 6, "own", 18, "end"),
        arrow(50 + size * cells + 4, y, 392, y),
    ]  # fmt: skip
    return svg(400, 40 + size * cells, *parts, says="tiles of queries and keys, the band shaded")


def gpu_memory() -> str:
    scores, inside = HEADS * LONG * LONG * HALF, 2 * HEADS * LONG * band() * HALF
    rows = (
        ("one matrix of all pairs", "T²", amount(scores)),
        ("both scores in the band", f"2 · T · {band():,}", amount(inside)),
        ("largest, both sums", "", "not in memory"),
    )
    return table((f"{LONG:,} tokens, {HEADS} heads", "a head", "bfloat16"), rows, size=21)


def gpu_figures() -> str:
    """The stored run on a GPU."""
    found = read_result("14_gpu")
    dots = _ratio_dots(found, ["Disentangled attention on a GPU"])
    where = escape(where_measured(found["machine"]))
    return f'{dots}<p style="font-size:19px;margin:0">{where}</p>'


# ---------------------------------------------------------------- 17: whose speed?


def _rates(start: str) -> list[dict[str, float]]:
    """The medians of all stored tables whose title begins so, by the contenders' names."""
    return [{row.name: row.median for row in speeds(stored_run(), title)}
            for title in stored_run()["tables"] if title.startswith(start)]  # fmt: skip


def _plain_wins() -> str:
    """How often plain attention beats the fused one in the stored run's tables."""
    tables = _rates("Attention alone")
    wins = sum(rate["ours, plain"] > rate["ours, fused"] for rate in tables)
    return f"plain products are faster in {wins} of {len(tables)} tables, CPU"


def _albert_time() -> str:
    """Shared against own weights, both ours, at inference."""
    tables = _rates("Weights shared or not, inference")
    ratios = [rate["ours, one block"] / rate["ours, own weights"] for rate in tables]
    return f"; one block on the clock: {min(ratios):.2f} to {max(ratios):.2f} times as fast"


def _albert_counts() -> str:
    own, shared = published("bert", "base"), published("albert", "base")
    kept = encoder_flops(shared, 128) / encoder_flops(own, 128)
    with torch.device("meta"):
        sizes = [sum(p.numel() for p in of("base").parameters()) for of in (bert, albert)]
    return f"{sizes[0] / sizes[1]:.1f} times fewer weights, {kept:.0%} of the FLOPs{_albert_time()}"


def _exit_times() -> str:
    won = exit_gains().values()
    return f"factor on the clock: {min(won):.0%} to {max(won):.0%} of that in FLOPs"


def distrust() -> str:
    padding = padded_batch()[1]
    slow, fast = twins_of("masked-LM loss")
    rows = (
        ("“Shared weights make ALBERT faster.”", "Does it do fewer FLOPs?", _albert_counts()),
        ("“Early exit saves half.”", "Half of what, FLOPs or time?",
         _exit_times()),
        ("“Fused attention is the fast one.”", "Where? At which length, which direction?",
         _plain_wins()),
        ("“This kernel reaches more GFLOP/s.”", "Is all that it computes used?",
         f"masked-LM loss: the reference does {slow.sum.flops / fast.sum.flops:.1f} times the "
         "work for the same loss"),
        ("“Twice as fast without padding.”", "How much was padding? 1/(1 − p) limits dense layers.",
         f"p = {padding:.0%} here: at most {1 / (1 - padding):.2f} times"),
    )  # fmt: skip
    return table(("they say", "ask", "counted or measured here"), rows, numbers=False, size=20)
