"""Which layer of the teacher each layer of a student learns from (TinyBERT, section 3.1).

M layers of the student, N of the teacher; layer 0 are the embeddings, M + 1 and N + 1 the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from course_lib.teaching.page import Html, Live, card, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, GREEN, VERMILION

KINDS = ("uniform", "top", "bottom")
MOST_LAYERS = 48
WIDE, TOP = 740, 48  # pixels
LINES = {  # what is compared: the stroke's colour, its dashes, and the words
    "embeddings": (GREEN, "7 4", "embeddings learn from embeddings"),
    "layers": (BLUE, "", "a layer learns from a layer: attention scores and hidden states"),
    "prediction": (VERMILION, "2 3", "answers learn from answers"),
}


def layer_map_view(student_layers: int, teacher_layers: int, kinds: Sequence[str] = KINDS) -> Live:
    """Both networks as columns of layers, with a line for every pair that is compared.

    kinds: the mappings to choose from, of family.tinybert.MAPPINGS. Control: kind.
    Raises ValueError for no kinds or an unknown one, and for a student that no kind fits.
    """
    import ipywidgets as w

    drawn = _those_that_fit(student_layers, teacher_layers, kinds)
    controls = {"kind": w.Dropdown(options=list(kinds), value=drawn[0], description="mapping g")}

    def draw(kind: str) -> str:
        return layer_map_picture(student_layers, teacher_layers, kind).html

    return playground(draw, controls, layer_map_print(student_layers, teacher_layers, kinds))


def layer_map_picture(student_layers: int, teacher_layers: int, kind: str = "uniform") -> Html:
    """One mapping, drawn large. Raises ValueError as family.tinybert.layer_mapping does."""
    said = _said(student_layers, teacher_layers, kind)
    content = _columns(student_layers, teacher_layers, kind, x=90, box=150, gap=250)
    drawing = svg_drawing(WIDE, TOP + _high(teacher_layers), content, said)
    words = f'<p style="margin:6px 0 0">{escape(said)}</p>'
    return Html(card(drawing + _legend() + words, "layer-map", 780), said)


def layer_map_print(student_layers: int, teacher_layers: int, kinds: Sequence[str] = KINDS) -> Html:
    """All mappings side by side; one that does not come out even is named with its reason."""
    fit = _those_that_fit(student_layers, teacher_layers, kinds)
    panel = WIDE // len(fit)
    box, gap = min(86, panel // 3), min(200, panel // 4)
    content, said = "", []
    for kind in kinds:
        try:
            said.append(_said(student_layers, teacher_layers, kind))
        except ValueError as error:
            said.append(f"{kind}: {error}")
    for k, kind in enumerate(fit):
        x = k * panel + (panel - 2 * box - gap) // 2
        content += _columns(student_layers, teacher_layers, kind, x=x, box=box, gap=gap)
    drawing = svg_drawing(WIDE, TOP + _high(teacher_layers), content, " ".join(said))
    words = "".join(f'<p style="margin:4px 0 0">{escape(line)}</p>' for line in said)
    html = svg_image(drawing, " ".join(said)) + _legend() + words
    return Html(card(html, "layer-map", 780), "\n".join(said))


def _those_that_fit(M: int, N: int, kinds: Sequence[str]) -> list[str]:
    """The kinds that can be made of these numbers of layers; ValueError where none can."""
    from course_lib.family.tinybert import MAPPINGS, layer_mapping

    if not kinds or set(kinds) - set(MAPPINGS):
        raise ValueError(f"kinds={kinds!r} was given; expected some of {', '.join(MAPPINGS)}.")
    if N > MOST_LAYERS:
        raise ValueError(
            f"a teacher of {N} layers was given; expected at most {MOST_LAYERS}, so that each "
            "keeps a line of its own."
        )
    fit, reason = [], None
    for kind in kinds:
        try:
            layer_mapping(M, N, kind)
            fit.append(kind)
        except ValueError as error:
            reason = error
    if not fit:
        assert reason is not None
        raise reason
    return fit


def _said(M: int, N: int, kind: str) -> str:
    from course_lib.family.tinybert import layer_mapping

    mapping = layer_mapping(M, N, kind)
    ours = ", ".join(str(m) for m in range(1, M + 1))
    theirs = ", ".join(map(str, mapping))
    more = "s" * (M > 1)
    idle = N - len(mapping)
    none = f"{idle} of its {N} layers teach nobody" if idle else "every one of its layers teaches"
    return (
        f"{kind}: the student's layer{more} {ours} learn{'s' * (M == 1)} from the teacher's "
        f"layer{more} {theirs}; {none}. Embeddings learn from embeddings, answers from answers."
    )


# ---------------------------------------------------------------- drawn


def _high(N: int) -> int:
    """The height of the columns in pixels: not too far apart, and on one screen."""
    return 8 + min(34 * (N + 2), 412)


def _columns(M: int, N: int, kind: str, *, x: float, box: float, gap: float) -> str:
    """Student left, teacher right, the text goes in below; lines between them."""
    from course_lib.family.tinybert import layer_mapping

    mapping = layer_mapping(M, N, kind)
    pairs = {0: 0, M + 1: N + 1} | dict(enumerate(mapping, start=1))
    tall = _high(N) - 8
    step = tall / (N + 2)
    high = min(step - 3, 26)
    right = x + box + gap

    def teacher_y(layer: float) -> float:
        return TOP + tall - step * (layer + 0.5)

    def student_y(layer: int) -> float:  # spread over the teacher's height
        return teacher_y(layer * (N + 1) / (M + 1))

    parts = [
        f'<text x="{x}" y="16" font-weight="700" font-size="14">{kind}</text>'
        f'<g font-size="12" fill="#444" text-anchor="middle"><text x="{x + box / 2}" y="38">'
        f'student</text><text x="{right + box / 2}" y="38">teacher</text></g>'
    ]
    for ours, theirs in pairs.items():
        what = "embeddings" if ours == 0 else "prediction" if ours == M + 1 else "layers"
        ink, dashes, _ = LINES[what]
        line = f' stroke-dasharray="{dashes}"' if dashes else ""
        parts.append(
            f'<path d="M{x + box:.0f} {student_y(ours):.1f}L{right:.0f} {teacher_y(theirs):.1f}" '
            f'stroke="{ink}" stroke-width="2.6"{line}/>'
        )
    taught = set(pairs.values())
    for layer in range(M + 2):
        parts.append(_box(_name(layer, M), x, student_y(layer), box, high, True))
    for layer in range(N + 2):
        parts.append(_box(_name(layer, N), right, teacher_y(layer), box, high, layer in taught))
    return "".join(parts)


def _name(layer: int, layers: int) -> str:
    return {0: "embeddings", layers + 1: "answers"}.get(layer, f"layer {layer}")


def _box(name: str, x: float, y: float, wide: float, high: float, used: bool) -> str:
    """A layer; one that teaches nobody is dashed and pale."""
    look = (
        'fill="#e8f1f8" stroke="#1a1a1a"' if used
        else 'fill="#fff" stroke="#8a8a8a" stroke-dasharray="3 3"'
    )  # fmt: skip
    ink = "" if used else ' fill="#666"'
    size = max(8, min(12, high - 4))
    return (
        f'<rect x="{x:.0f}" y="{y - high / 2:.1f}" width="{wide:.0f}" height="{high:.1f}" rx="3" '
        f'{look}/><text x="{x + wide / 2:.0f}" y="{y + size * 0.36:.1f}" text-anchor="middle" '
        f'font-size="{size:.0f}"{ink}>{name}</text>'
    )


def _legend() -> str:
    """A line of each kind with its meaning."""
    parts, y = [], 12
    for ink, dashes, said in LINES.values():
        line = f' stroke-dasharray="{dashes}"' if dashes else ""
        parts.append(
            f'<path d="M4 {y}H40" stroke="{ink}" stroke-width="2.6"{line}/>'
            f'<text x="50" y="{y + 4}" font-size="12" fill="#444">{said}</text>'
        )
        y += 18
    parts.append(
        '<rect x="420" y="4" width="36" height="15" rx="3" fill="#fff" stroke="#8a8a8a" '
        'stroke-dasharray="3 3"/><text x="464" y="16" font-size="12" fill="#444">teaches nobody'
        "</text>"
    )
    drawing = svg_drawing(WIDE, y - 4, "".join(parts), "what the lines mean")
    return svg_image(drawing, "solid: layers; dashed: embeddings; dotted: answers")
