"""Which layer of the teacher each layer of a student learns from (TinyBERT, section 3.1).

M layers of the student, N of the teacher; layer 0 are the embeddings, M + 1 and N + 1 the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import choice, playground
from course_lib.teaching.style import BLUE, GREEN, INK, VERMILION
from course_lib.teaching.svg import key, line, picture, rect, words

KINDS = ("uniform", "top", "bottom")
MOST_LAYERS = 48
WIDTH, TOP = 740, 48  # pixels
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
    fit = _those_that_fit(student_layers, teacher_layers, kinds)
    controls = {"kind": choice("mapping g", fit[0], kinds)}
    draw = partial(layer_map_picture, student_layers, teacher_layers)
    return playground(draw, controls, layer_map_print(student_layers, teacher_layers, kinds))


def layer_map_picture(student_layers: int, teacher_layers: int, kind: str = "uniform") -> Html:
    """One mapping, drawn large. Raises ValueError as family.tinybert.layer_mapping does."""
    parts = _columns(student_layers, teacher_layers, kind, x=90, box=150, gap=250)
    return _picture(teacher_layers, parts, [_in_words(student_layers, teacher_layers, kind)])


def _picture(teacher_layers: int, parts: Sequence[str], sentences: Sequence[str]) -> Html:
    entries = [
        (line(0, 8, 36, 8, ink=ink, wide=2.6, dash=dash), caption)
        for ink, dash, caption in LINES.values()
    ]
    entries.append((rect(0, 0, 36, 15, rounding=3, wide=1, dash="3 3"), "teaches nobody"))
    height = TOP + _height(teacher_layers)
    below = key(entries, "solid: layers; dashed: embeddings; dotted: answers", 36, WIDTH)
    return picture("layer-map", WIDTH, height, parts, sentences, below=below)


def layer_map_print(student_layers: int, teacher_layers: int, kinds: Sequence[str] = KINDS) -> Html:
    """All mappings side by side; one that does not come out even is named with its reason."""
    fit = _those_that_fit(student_layers, teacher_layers, kinds)
    panel = WIDTH // len(fit)
    box, gap = min(86, panel // 3), min(200, panel // 4)
    parts, lines = [], []
    for kind in kinds:
        try:
            lines.append(_in_words(student_layers, teacher_layers, kind))
        except ValueError as error:
            lines.append(f"{kind}: {error}")
    for k, kind in enumerate(fit):
        x = k * panel + (panel - 2 * box - gap) // 2
        parts += _columns(student_layers, teacher_layers, kind, x=x, box=box, gap=gap)
    return _picture(teacher_layers, parts, lines)


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


def _in_words(M: int, N: int, kind: str) -> str:
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


def _height(N: int) -> int:
    """The height of the columns in pixels: not too far apart, and on one screen."""
    return 8 + min(34 * (N + 2), 412)


def _columns(M: int, N: int, kind: str, *, x: float, box: float, gap: float) -> list[str]:
    """Student left, teacher right, the text goes in below; lines between them."""
    from course_lib.family.tinybert import layer_mapping

    mapping = layer_mapping(M, N, kind)
    pairs = {0: 0, M + 1: N + 1} | dict(enumerate(mapping, start=1))
    tall = _height(N) - 8
    step = tall / (N + 2)
    height = min(step - 3, 26)
    right = x + box + gap

    def teacher_y(layer: float) -> float:
        return TOP + tall - step * (layer + 0.5)

    def student_y(layer: int) -> float:  # spread over the teacher's height
        return teacher_y(layer * (N + 1) / (M + 1))

    parts = [
        words(x, 16, kind, 14, "start", bold=True),
        words(x + box / 2, 38, "student", 12, ink="#444"),
        words(right + box / 2, 38, "teacher", 12, ink="#444"),
    ]
    for ours, theirs in pairs.items():
        what = "embeddings" if ours == 0 else "prediction" if ours == M + 1 else "layers"
        ink, dash, _ = LINES[what]
        ends = (x + box, student_y(ours), right, teacher_y(theirs))
        parts.append(line(*ends, ink=ink, wide=2.6, dash=dash))
    used = set(pairs.values())
    for layer in range(M + 2):
        parts.append(_box(_name(layer, M), x, student_y(layer), box, height, True))
    for layer in range(N + 2):
        parts.append(_box(_name(layer, N), right, teacher_y(layer), box, height, layer in used))
    return parts


def _name(layer: int, layers: int) -> str:
    return {0: "embeddings", layers + 1: "answers"}.get(layer, f"layer {layer}")


def _box(name: str, x: float, y: float, width: float, height: float, used: bool) -> str:
    """A layer; one that teaches nobody is dashed and pale."""
    look: dict[str, Any] = (
        {"fill": "#e8f1f8", "ink": INK} if used else {"dash": "3 3", "text_ink": "#666"}
    )
    size = round(max(8, min(12, height - 4)))
    return rect(x, y - height / 2, width, height, name, rounding=3, wide=1, size=size, **look)
