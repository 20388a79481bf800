"""What deck 14 shows: counted here or read from data/results; nothing is timed, nothing trained."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from math import log10
from typing import Any, NamedTuple

import drawing
import numpy as np
import torch
from drawing import arrow, body_of, code, rect, svg, table, words

from course_lib import albert, bert, published
from course_lib.bench.early_exit import Evenly, flop_ratio
from course_lib.bench.roofline import Placed
from course_lib.bench.summary import COMPARED, SpeedRow
from course_lib.bench.traffic import Traffic, total
from course_lib.config import encoder_flops
from course_lib.kernels import disentangled
from course_lib.kernels.choosing import ATTENTION, DISENTANGLED
from course_lib.kernels.early_exit import early_exit
from course_lib.kernels.masked_loss import masked_loss
from course_lib.kernels.masking import CHOICE, as_uniform, random_bits
from course_lib.lectures.lecture_14.exercises.real import real_only
from course_lib.lectures.lecture_14.numbers import (
    CHUNK,
    EXAMPLES,
    GPU,
    HEADS,
    LONG,
    PLACES,
    SEED,
    SIZES,
    VALUES,
    Counted,
    _band,
    _counted,
    _padded,
    _pieces,
    _ridge,
    _roof,
    _seen,
    _size,
    _stored,
    _sum_intensity,
    _twins,
    _where,
    a_number,
    asked_kinds,
    ladder_titles,
    measured_on,
    ratio_of,
    rows_of,
    square,
    view_of_three,
    when,
)
from course_lib.lectures.lecture_14.views.roofline import times
from course_lib.lectures.lecture_14.views.speeds import speeds
from course_lib.teaching.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION

BOLD = ' font-weight="650"'
PALE, SOFT, RULE_LINE = "#e3f0f8", "#8a8a8a", "#dcdcdc"


# ---------------------------------------------------------------- what is read


# ---------------------------------------------------------------- what is counted


# ---------------------------------------------------------------- bars of traffic

MOST = 4  # kinds with a look of their own
REST = "all other"
LOOKS = (  # fill, ink, the pattern drawn over the fill
    ("#bcdcf0", BLUE, ""),
    ("#f7cdb5", VERMILION, "M0 8 8 0"),
    ("#bfe5d8", GREEN, "M4 0V8"),
    ("#ecd3e2", PURPLE, "M0 4H8"),
)
REST_LOOK = ("#e6e6e6", SOFT, "M0 0 8 8")


def _pattern(k: int, look: tuple[str, str, str]) -> str:
    fill, ink, path = look
    return (
        f'<pattern id="kind{k}" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" '
        f'height="8" fill="{fill}"/><path d="{path}" stroke="{ink}" stroke-width="1" '
        'stroke-opacity="0.6"/></pattern>'
    )


def _traffic_bars(twins: Mapping[str, Mapping[str, Traffic]], left: int = 130) -> str:
    """A bar a twin, by kind of operation; bytes and FLOPs of matrix products at its right."""
    sums = {name: total(kinds.values()) for name, kinds in twins.items()}
    shown = _most_moving(twins.values())
    looks = dict(zip(shown, LOOKS, strict=False)) | {REST: REST_LOOK}
    ids = {kind: k for k, kind in enumerate(looks)}
    scale = (870 - left) / max(one.moved for one in sums.values())
    parts = ["<defs>", *(_pattern(ids[kind], look) for kind, look in looks.items()), "</defs>"]
    x = float(left)
    for kind, (_, ink, _) in looks.items():
        if any(_part(kinds, kind, shown) for kinds in twins.values()):
            parts.append(rect(x, 2, 24, 22, fill=f"url(#kind{ids[kind]})", ink=ink))
            parts.append(words(x + 32, 20, kind, 19, "start"))
            x += 58 + 10.2 * len(kind)
    for row, (name, kinds) in enumerate(twins.items()):
        y, x = 36 + 46 * row, float(left)
        parts.append(words(left - 12, y + 26, name, 20, "end"))
        for kind, (_, ink, _) in looks.items():
            wide = scale * _part(kinds, kind, shown)
            if wide:
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="38" '
                    f'fill="url(#kind{ids[kind]})" stroke="{ink}" stroke-width="1.2"/>'
                )
            x += wide
        parts.append(words(x + 10, y + 26, f"<tspan{BOLD}>{_size(sums[name].moved)}</tspan>"
                           f"{_operations(sums[name].flops)}", 20, "start"))  # fmt: skip
    says = "; ".join(f"{name} moves {_size(one.moved)}" for name, one in sums.items())
    return svg(1150, 36 + 46 * len(twins), *parts, says=says)


def _operations(flops: int) -> str:
    return f", {flops / 1e9:.2f} GFLOP" if flops else ""


def _most_moving(twins: Any) -> list[str]:
    moved: dict[str, int] = {}
    for kinds in twins:
        for kind, one in kinds.items():
            moved[kind] = moved.get(kind, 0) + one.moved
    return sorted(moved, key=lambda kind: -moved[kind])[:MOST]


def _part(kinds: Mapping[str, Traffic], kind: str, shown: Sequence[str]) -> int:
    chosen = [kind] if kind != REST else [k for k in kinds if k not in shown]
    return sum(kinds[k].moved for k in chosen if k in kinds)


def _bars_of(name: str) -> str:
    """Bars of one of the roofline's cases."""
    return _traffic_bars({one.how or one.twin: one.kinds for one in _twins(name)})


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
    head = ("n", "2n³ FLOPs", "3n² numbers, bytes", "product, a byte", "sum, a byte")
    return table(head, rows, size=24)


def this_machine() -> str:
    """Memory, arithmetic, and what goes on while one number travels."""
    roof = _roof()
    rate = f"{roof['memory']:.0f} GB/s" if roof else ""
    speed = f"{roof['float32']:,.0f} GFLOP/s" if roof else ""
    look = {"wide": 2, "size": 22}
    parts = [
        rect(0, 20, 250, 96, fill=PALE, ink=BLUE, wide=2),
        words(125, 62, "memory", 24, style=BOLD), words(125, 94, "every tensor", 19),
        arrow(250, 68, 512, 68), words(381, 54, rate, 22, style=BOLD),
        words(381, 96, "one number: 4 bytes", 19),
        rect(516, 20, 250, 96, fill="#fdf1d6", ink="#8a5f00", wide=2),
        words(641, 62, "arithmetic", 24, style=BOLD), words(641, 94, speed, 20),
    ]  # fmt: skip
    if roof:
        parts += [
            rect(826, 20, 324, 96, dash="6 4", ink=INK, **look),
            words(988, 60, f"{a_number(roof)} multiply-adds", 24, style=BOLD),
            words(988, 92, "while one number arrives", 20),
        ]
    return svg(1150, 124, *parts, says="memory brings numbers to the arithmetic")


# ---------------------------------------------------------------- 3, 13: the roofline


class Axes(NamedTuple):
    """Logarithmic axes in pixels."""

    left: float
    right: float
    top: float
    bottom: float
    x: tuple[float, float]  # FLOPs a byte, both ends
    y: tuple[float, float]  # GFLOP/s

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = log10(x / self.x[0]) / log10(self.x[1] / self.x[0])
        up = log10(y / self.y[0]) / log10(self.y[1] / self.y[0])
        return (
            self.left + across * (self.right - self.left),
            self.bottom - up * (self.bottom - self.top),
        )


def _tens(low: float, high: float) -> list[float]:
    return [10.0**k for k in range(-3, 7) if low <= 10.0**k <= high]


def _axes(axes: Axes, roof: Mapping[str, float]) -> list[str]:
    """Ticks, the slope of memory, and a flat line for each number format."""
    parts = []
    for tick in _tens(*axes.x):
        x, _ = axes.at(tick, axes.y[0])
        parts += [f'<path d="M{x:.1f} {axes.top}V{axes.bottom}" stroke="{RULE_LINE}"/>',
                  words(x, axes.bottom + 22, f"{tick:g}", 18)]  # fmt: skip
    for tick in _tens(*axes.y):
        _, y = axes.at(axes.x[0], tick)
        parts += [f'<path d="M{axes.left} {y:.1f}H{axes.right}" stroke="{RULE_LINE}"/>',
                  words(axes.left - 10, y + 6, f"{tick:g}", 18, "end")]  # fmt: skip
    parts.append(words(axes.left, axes.top - 14, "GFLOP/s", 18, "start"))
    parts.append(words(axes.right, axes.bottom + 48, "FLOPs a byte", 18, "end"))
    for name, dash in (("float32", ""), ("bfloat16", "9 5")):
        if name not in roof:
            continue
        bend = roof[name] / roof["memory"]
        x0, y = axes.at(bend, roof[name])
        parts.append(arrow(x0, y, axes.right, y, tip=False, dash=dash))
        name_at = x0 + 0.45 * (axes.right - x0)  # clear of slope and marks
        parts.append(words(name_at, y - 11, f"{name}: {roof[name]:,.0f}", 18, "start"))
    highest = max(rate for name, rate in roof.items() if name != "memory")
    start = max(axes.x[0], axes.y[0] / roof["memory"])
    ends = [axes.at(x, x * roof["memory"]) for x in (start, highest / roof["memory"])]
    parts.append(arrow(*ends[0], *ends[1], tip=False))
    x, y = (a + 0.45 * (b - a) for a, b in zip(*ends, strict=True))
    parts.append(words(x - 12, y - 8, f"memory: {roof['memory']:.0f} GB/s", 18, "end"))
    foot, top = (axes.at(_ridge(roof), y) for y in (axes.y[0], roof["float32"]))
    parts.append(arrow(*foot, *top, tip=False, dash="2 5"))
    parts.append(words(foot[0] + 8, foot[1] - 8, f"ridge: {_ridge(roof):.0f}", 18, "start"))
    return parts


def the_roof() -> str:
    """The roof of the stored machine, with a sum and three products below it."""
    roof = _roof()
    if not roof:
        return ""
    most = max(square(SIZES[-1])[0] / square(SIZES[-1])[2], 10 * _ridge(roof))
    high = max(rate for name, rate in roof.items() if name != "memory")
    axes = Axes(80, 1130, 30, 330, (0.03, 1.3 * most), (0.8 * 0.03 * roof["memory"], 2 * high))
    marks = [("a sum", _sum_intensity())]
    marks += [(f"product, n = {n:,}", (f := square(n))[0] / f[2]) for n in SIZES]
    parts = _axes(axes, roof)
    for name, intensity in marks:
        reach = min(roof["float32"], intensity * roof["memory"])
        x, y = axes.at(intensity, reach)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8" fill="{ORANGE}" stroke="{INK}" '
                     'stroke-width="1.5"/>')  # fmt: skip
        if reach < roof["float32"]:
            parts.append(words(x - 14, y - 10, name, 18, "end"))
        else:
            parts.append(words(x, y + 28, name, 18, "end" if x > 1050 else "middle"))
    return svg(1150, 384, *parts, says="the roofline: a slope of memory, a flat line of arithmetic")


# ---------------------------------------------------------------- 4: three ways

WAYS = {
    "Do less": ("leave out what nobody reads",
                ("masked positions only", "no padding", "early exit", "rows that occur")),
    "Move less": ("use a number again where it is",
                  ("a shift for a gather", "softmax in pieces", "loss in chunks")),
    "Wait less": ("few large steps for many small",
                  ("masks by the batch", "sampling in two steps", "texts of one length")),
}  # fmt: skip


def three_ways() -> str:
    looks = ((PALE, BLUE), ("#e0f3ed", "#00745a"), ("#fdf1d6", "#8a5f00"))
    parts = []
    for k, ((name, (what, kernels)), (fill, ink)) in enumerate(
        zip(WAYS.items(), looks, strict=True)
    ):
        x = 392 * k
        parts += [rect(x, 0, 364, 300, fill=fill, ink=ink, wide=2),
                  words(x + 24, 46, f"{k + 1}. {name}", 28, "start", BOLD),
                  words(x + 24, 86, what, 21, "start")]  # fmt: skip
        parts += [words(x + 24, 136 + 40 * i, f"– {kernel}", 21, "start")
                  for i, kernel in enumerate(kernels)]  # fmt: skip
    return svg(1150, 304, *parts, says="do less, move less, wait less, and the kernels that do so")


# ---------------------------------------------------------------- 5: only selected positions


def asked_bars() -> str:
    return _traffic_bars(asked_kinds())


def asked_code() -> str:
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
    parts = [words(x, 18, said, 20, "start", BOLD)
             for x, said in ((250, f"{alone} in a batch"), (680, f"{alone} alone"))]  # fmt: skip
    for row, (name, (batch, single)) in enumerate(drawn.items()):
        y = 30 + 118 * row
        same = np.array_equal(batch[1], single[0])
        assert same == (name == "a function")
        parts.append(words(0, y + 58, name, 22, "start", BOLD))
        for i, example in enumerate(EXAMPLES):
            parts.append(words(236, y + 23 + 35 * i, str(example), 20, "end"))
            parts += [
                _cell(250 + 104 * t, y + 35 * i, batch[i, t], example == alone)
                for t in range(PLACES)
            ]
        parts.append(words(666, y + 58, str(alone), 20, "end"))
        parts += [_cell(680 + 104 * t, y + 35, single[0, t], True) for t in range(PLACES)]
        said = "the same" if same else "others"
        parts.append(words(1010, y + 58, said, 22, "start", BOLD))
    return svg(1150, 256, *parts, says="random numbers of one example in a batch, and alone")


def _cell(x: float, y: float, share: float, strong: bool) -> str:
    look = {"fill": PALE, "ink": BLUE, "wide": 2.5} if strong else {}
    return rect(x, y, 98, 31, f"{share:.4f}", size=19, **look)


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
    parts = [words(left + 2.5 * step, 18, "by distance j − i", 20, "middle", BOLD),
             words(right + 1.5 * step, 18, "by token j", 20, "middle", BOLD)]  # fmt: skip
    parts += [words(left + step * (c + 0.5), 50, str(c - T + 1).replace("-", "−"), 19)
              for c in range(width)]  # fmt: skip
    parts += [words(right + step * (j + 0.5), 50, str(j), 19) for j in range(T)]
    for i in range(T):
        y = top + step * i
        parts += [words(x - 14, y + 32, f"row {i}", 19, "end") for x in (left, right)]
        for c in range(width):
            place = i * width + c
            look = {"fill": PALE, "ink": BLUE, "wide": 2} if place in picked else {"dash": "3 4"}
            parts.append(rect(left + step * c, y, step - 4, step - 4, str(place), **look))
        for j in range(T):
            parts.append(
                rect(right + step * j, y, step - 4, step - 4, str(int(view[i, j])), fill=PALE,
                     ink=BLUE, wide=2)
            )  # fmt: skip
    jump = int(view[1, 0] - view[0, 0])
    along = int(view[0, 1] - view[0, 0])
    parts += [
        arrow(430, 140, 690, 140), words(560, 92, "numbers: positions in memory", 18),
        words(560, 126, f"a row on: + {jump}", 20), words(560, 168, f"a token on: + {along}", 20),
        words(560, 196, f"begin at {int(view[0, 0])}", 20),
    ]  # fmt: skip
    return svg(1150, 222, *parts, says="nine of fifteen numbers, read by steps of four and one")


def shifted_bars() -> str:
    return _bars_of("disentangled attention")


def shifted_code() -> str:
    return _blank(body_of(disentangled._skew, start="return"), "width - 1")


# ---------------------------------------------------------------- 8: a softmax in pieces


def pieces_table() -> str:
    rows = []
    for number, one in enumerate(_pieces()):
        shrink = "" if number == 0 else f"{one.shrink:.4f}"
        values = VALUES[CHUNK * number : CHUNK * (number + 1)]
        rows.append((", ".join(f"{s:g}" for s in one.scores), ", ".join(f"{v:g}" for v in values),
                     f"{one.largest:g}", shrink, f"{one.sum:.4f}", f"{one.mixed:.3f}"))  # fmt: skip
    head = ("scores", "values", "largest so far", "old parts ×", "sum", "weighted sum")
    return table(head, rows, size=23)


def attention_bars() -> str:
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
    lengths, step, tall = (3, 8, 5, 2, 4), 34, 28
    letters = "abcde"
    parts = []
    for row, length in enumerate(lengths):
        for t in range(8):
            look = {"fill": PALE, "ink": BLUE, "wide": 2} if t < length else {"dash": "3 3"}
            parts.append(rect(step * t, 30 * row, step - 4, tall - 2,
                              letters[row] if t < length else "", size=17, **look))  # fmt: skip
    place = 0
    for row, length in sorted(enumerate(lengths), key=lambda pair: pair[1]):
        for _ in range(length):
            x, y = 400 + step * (place % 22), 12 + 44 * (place // 22)
            parts.append(rect(x, y, step - 4, tall, letters[row], size=17, fill=PALE, ink=BLUE,
                              wide=2))  # fmt: skip
            place += 1
    parts += [arrow(290, 62, 386, 62),
              words(400, 86, f"{place} of {8 * len(lengths)} positions; dense layers, norms, "
                    "GELU work on the list,", 20, "start"),
              words(400, 116, "attention on texts of one length at once", 20, "start")]  # fmt: skip
    return svg(1150, 150, *parts, says="a padded batch, and the list of its real tokens")


def padding_bars() -> str:
    return _traffic_bars(_padded().twins)


def padding_code() -> str:
    return _blank(body_of(real_only), "x[real]")


# ---------------------------------------------------------------- 11: who is done may leave


@lru_cache(maxsize=1)
def _under_way() -> tuple[int, ...]:
    """Rows that each layer of the roofline's early exit sees, as its rigged classifier says."""
    layers, batch = 4, 8
    classifier, left = Evenly(layers), torch.arange(batch)
    while len(left):
        left = left[~classifier(left[:, None].float())]
    return tuple(classifier.left_at)


def leaving_picture() -> str:
    seen = _under_way()
    rows, step, wide = seen[0], 20, 126
    parts = []
    for k, count in enumerate(seen):
        x = 90 + 2 * wide * k / 2
        parts.append(words(x + wide / 2 - 4, 18, f"layer {k + 1}", 19, style=BOLD))
        for row in range(rows):
            look = {"fill": PALE, "ink": BLUE, "wide": 2} if row < count else {"dash": "3 3"}
            parts.append(rect(x, 28 + step * row, wide - 10, step - 3, **look))
    parts += [words(80, 44 + step * 3.5, "texts", 19, "end"),
              words(660, 60, f"solid: computed, {sum(seen)} of {rows * len(seen)} squares", 21,
                    "start"),
              words(660, 96, f"FLOPs: {ratio_of('early exit', 'flops')} times fewer", 21,
                    "start", BOLD),
              words(660, 132, "dashed: the reference computes it too,", 21, "start"),
              words(660, 162, "and throws it away", 21, "start")]  # fmt: skip
    return svg(1150, 28 + step * rows + 6, *parts, says="a batch that shrinks from layer to layer")


def leaving_bars() -> str:
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
    for name in dict.fromkeys(one.name for one in _counted()):
        reference, *fast = _twins(name)
        for one in fast:
            moved = (reference.sum.moved, one.sum.moved)
            rows.append((f"{name}{f', {one.how}' if one.how else ''}",
                         *(map(_size, moved) if _seen(reference) else ("–", "–")),
                         *(map(_size, (reference.held, one.held))
                           if _seen(reference) else ("–", "–")),
                         f"<strong>{_difference(reference, one)}</strong>"))  # fmt: skip
    head = ("", "moved, reference", "fast", "held at once, reference", "fast", "difference")
    return table(head, rows, size=19)


# ---------------------------------------------------------------- 13: kernels below the roof

KERNEL_INKS = (BLUE, VERMILION, GREEN, PURPLE, "#8a5f00", INK)


def _with_products() -> list[str]:
    return [n for n in dict.fromkeys(one.name for one in _counted()) if _twins(n)[0].sum.flops]


def _points() -> list[Placed]:
    """Timed points, where the stored run holds them."""
    return [Placed(**point) for point in (_stored() or {}).get("points", [])]


def kernels_on_the_roof() -> str:
    """Timed kernels below the roof; without times, their intensities as marks at its foot."""
    roof = _roof()
    if not roof:
        return ""
    names, points = _with_products(), _points()
    counted = [one for one in _counted() if one.name in names]
    span = [one.intensity for one in counted] + [_ridge(roof)]
    high = max(rate for name, rate in roof.items() if name != "memory")
    low = min([p.gflops for p in points if p.name in names] or [roof["float32"] / 40])
    axes = Axes(76, 690, 30, 400, (_ridge(roof) / 30, max(span) * 1.6), (low / 2.5, high * 2))
    parts = _axes(axes, roof)
    for k, name in enumerate(names):
        level = axes.y[0] * (axes.y[1] / axes.y[0]) ** (0.09 * (k + 1))
        ends = [(p, axes.at(p.intensity, p.gflops)) for p in points if p.name == name] or [
            (p, axes.at(p.intensity, level)) for p in counted if p.name == name
        ]
        (_, first), *others = ends
        parts += [arrow(*first, *other, tip=False) for _, other in others]
        parts += [_letter(*at, "ABCDEF"[k], KERNEL_INKS[k], p.twin == "fast") for p, at in ends]
    return svg(1150, 452, *parts, *_named(names), says="kernels and the stored machine's roof")


def _named(names: Sequence[str]) -> list[str]:
    """Letters, the fast twin's FLOPs a byte, and times less where there are times."""
    points = _points()
    parts = [words(1036, 42, "a byte", 19, "end", BOLD)]
    parts += [words(1150, 42, "time less", 19, "end", BOLD)] if points else []
    for k, name in enumerate(names):
        y = 80 + 52 * k
        parts += [_letter(740, y, "ABCDEF"[k], KERNEL_INKS[k], True),
                  words(762, y + 7, name, 19, "start"),
                  words(1036, y + 7, f"{_twins(name)[-1].intensity:.0f}", 19, "end")]  # fmt: skip
        if points:
            slow, *quick = (p for p in points if p.name == name)
            said = ", ".join(f"{p.how} {times(slow.seconds / p.seconds)}".strip() for p in quick)
            parts.append(words(1150, y + (7 if len(quick) == 1 else 32), said, 19, "end"))
    return parts


def _letter(x: float, y: float, letter: str, ink: str, filled: bool) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="13" fill="{ink if filled else "#fff"}" '
        f'stroke="{ink}" stroke-width="2.5"/>'
        + words(x, y + 6, letter, 16, style=f'{BOLD} fill="{"#fff" if filled else ink}"')
    )


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
    found = _stored()
    if found is None:
        return ""
    return _ratio_dots(found, [kind for kind in COMPARED if "GPU" not in kind])


# ---------------------------------------------------------------- 15: the ladder


def ladder() -> str:
    """One pre-training step, from the peer as shipped to ours, in tokens a second."""
    found = _stored()
    titles = ladder_titles(found) if found else []
    if not titles or found is None:
        return ""
    rows = speeds(found, titles[0])
    left, step = 524, 38
    scale = (1000 - left) / max(row.high for row in rows)
    parts = []
    for k, row in enumerate(rows):
        y, ours = step * k, row.name.startswith("ours")
        fill, ink, dash = ("#cfe5f3", BLUE, "") if ours else ("#fff", INK, "6 3")
        name = row.name.replace(" (the course's step)", "")
        parts += [words(left - 12, y + 23, escape(name), 19, "end"),
                  rect(left, y, scale * row.median, step - 9, fill=fill, ink=ink, wide=2,
                       dash=dash),
                  arrow(left + scale * row.low, y + (step - 9) / 2, left + scale * row.high,
                        y + (step - 9) / 2, tip=False),
                  words(left + scale * row.high + 10, y + 22, f"{row.median:,.0f}", 19, "start"),
                  words(1150, y + 22, times(row.ratio), 19, "end", BOLD)]  # fmt: skip
    return svg(1150, step * len(rows), *parts, says=titles[0])


def ladder_said() -> str:
    """The first table's title, its remark, machine and date."""
    found = _stored()
    titles = ladder_titles(found) if found else []
    if not titles or found is None:
        return ""
    remark = re.sub(r"\s{2,}", "; ", found.get("remarks", {}).get(titles[0], ""))
    first = f"<strong>{escape(remark)}</strong><br>" if remark else ""
    lines = escape(f"{titles[0]}; tokens a second, medians. {measured_on()}")
    return f'<p style="font-size:22px">{first}{lines}</p>'


# ---------------------------------------------------------------- 16: on a GPU

HALF = 2  # bytes of a bfloat16


def tiles() -> str:
    """Queries down, keys across: the band, and one program's way past three zones."""
    cells, size, owner = 12, 25, 6
    parts = []
    for i in range(cells):
        for j in range(cells):
            inside = abs(i - j) <= 2
            look = {"fill": "#fdf1d6", "ink": "#8a5f00"} if inside else {"dash": "2 3"}
            if i == owner:
                look |= {"wide": 3, "ink": BLUE, "dash": ""}
            parts.append(rect(50 + size * j, 34 + size * i, size - 3, size - 3, **look))
    y = 34 + size * (owner + 0.5)
    parts += [
        words(50, 20, "keys, a block at a time", 18, "start"), words(40, y + 6, "own", 18, "end"),
        arrow(50 + size * cells + 4, y, 392, y),
    ]  # fmt: skip
    return svg(400, 40 + size * cells, *parts, says="tiles of queries and keys, the band shaded")


def gpu_memory() -> str:
    scores, band = HEADS * LONG * LONG * HALF, 2 * HEADS * LONG * _band() * HALF
    rows = (
        ("one matrix of all pairs", "T²", _size(scores)),
        ("both scores in the band", f"2 · T · {_band():,}", _size(band)),
        ("largest, both sums", "", "not in memory"),
    )
    return table((f"{LONG:,} tokens, {HEADS} heads", "a head", "bfloat16"), rows, size=21)


def gpu_figures() -> str:
    """The stored run on a GPU, or that there is none."""
    found = _stored(GPU)
    if found is None:
        return "<p><strong>No GPU figures are stored with this course yet.</strong></p>"
    dots = _ratio_dots(found, ["Disentangled attention on a GPU"])
    return f'{dots}<p style="font-size:19px;margin:0">{escape(_where(found))}</p>'


# ---------------------------------------------------------------- 17: whose speed?


def _plain_wins() -> str:
    """How often plain attention beats the fused one in the stored run's tables."""
    found = _stored()
    if found is None:
        return ""
    titles = [title for title in found["tables"] if title.startswith("Attention alone")]
    wins = 0
    for title in titles:
        rate = {row.name: row.median for row in speeds(found, title)}
        wins += rate["ours, plain"] > rate["ours, fused"]
    return f"plain products are quicker in {wins} of {len(titles)} tables, CPU" if titles else ""


def _albert_time() -> str:
    """Shared against own weights, both ours, at inference."""
    found = _stored()
    if found is None:
        return ""
    ratios = []
    for title in found["tables"]:
        if title.startswith("Weights shared or not, inference"):
            rate = {row.name: row.median for row in speeds(found, title)}
            ratios.append(rate["ours, one block"] / rate["ours, own weights"])
    if not ratios:
        return ""
    return f"; one block on the clock: {min(ratios):.2f} to {max(ratios):.2f} times as quick"


def _albert_counts() -> str:
    own, shared = published("bert", "base"), published("albert", "base")
    kept = encoder_flops(shared, 128) / encoder_flops(own, 128)
    with torch.device("meta"):
        sizes = [sum(p.numel() for p in of("base").parameters()) for of in (bert, albert)]
    return f"{sizes[0] / sizes[1]:.1f} times fewer weights, {kept:.0%} of the FLOPs{_albert_time()}"


def _exit_times() -> str:
    found = _stored()
    rows = rows_of("Early exit", found) if found else []
    if not rows:
        return f"FLOPs {flop_ratio(4):.2f} times fewer at four layers"
    kept = [row.ratio / flop_ratio(int(row.size.split("×", 1)[0])) for row in rows]
    return f"the clock shows {min(kept):.0%} to {max(kept):.0%} of the gain in FLOPs"


def distrust() -> str:
    padding = _padded().padding
    slow, fast = _twins("masked-word loss")
    rows = (
        ("“Shared weights make ALBERT faster.”", "Does it do fewer FLOPs?", _albert_counts()),
        ("“Early exit saves half.”", "Half of what, FLOPs or time?",
         _exit_times()),
        ("“Fused attention is the fast one.”", "Where? At which length, which direction?",
         _plain_wins()),
        ("“This kernel reaches more GFLOP/s.”", "Does anybody read what it computes?",
         f"masked-word loss: the reference does {slow.sum.flops / fast.sum.flops:.1f} times the "
         "work for the same loss"),
        ("“Twice as fast without padding.”", "How much was padding? 1/(1 − p) limits dense layers.",
         f"p = {padding:.0%} here: at most {1 / (1 - padding):.2f} times"),
    )  # fmt: skip
    return table(("they say", "ask", "counted or measured here"), rows, numbers=False, size=20)


# ---------------------------------------------------------------- 18: to keep


def exercises() -> str:
    return drawing.exercise_list("14")
