"""What deck 06 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from statistics import mean
from typing import Any, NamedTuple

import drawing
import torch
from drawing import arrow, body_of, code, for_a_hall, rect, svg, table, words

from course_lib import published
from course_lib.config import encoder_flops
from course_lib.family.distilbert import (
    initialise_from,
    spread_layers,
)
from course_lib.family.tinybert import layer_mapping
from course_lib.kernels.distillation import soft_target_loss
from course_lib.lectures.lecture_06.experiments import (
    HELDOUT,
    LENGTH,
    PRECISION,
    STARTS,
    TINIES,
    TINY,
    outcome,
    randomly_initialised_student,
)
from course_lib.lectures.lecture_06.numbers import (
    LOGITS,
    MODELS,
    STUDENT,
    WORDS,
    _begun,
    _doubt,
    _found,
    _gradient,
    _jobs,
    _kept,
    _lost,
    _parts,
    _rows,
    _share,
    _taught,
    _teacher,
    _times,
    _world,
    apart,
    as_list,
    chosen,
    paper_changes,
    signed,
    softened,
    teacher_run,
    tiny,
    tiny_change,
    toy,
)
from course_lib.objectives.distillation import (
    PUBLISHED_WEIGHTS,
    attention_loss,
    distilbert_loss,
)
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import gradient_chart, tradeoff_chart
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import printed
from course_lib.teaching.style import BLUE, INK, ORANGE, SKY
from course_lib.text.augmentation import augment
from course_lib.text.tasks import unstated_facts
from course_lib.text.world import story_sequences
from course_lib.train.metrics import evaluate

TOKENS = 128  # of the text whose FLOPs are counted
BOLD = ' font-weight="650"'
PALE, FAINT = "#e3f0f8", "#8a8a8a"


# ---------------------------------------------------------------- what is read, what is counted


# ---------------------------------------------------------------- 2, 3: by hand

SHOWN = (1.0, 2.0, 4.0)  # temperatures


def _share_bars(
    names: Sequence[str],
    panels: Sequence[tuple[str, Sequence[float]]],
    looks: Callable[[int, int], dict[str, Any]],
    said: Callable[[float], str],
    left: float,
    row: int,
    says: str,
) -> str:
    """Panels of bars side by side, the names once; looks: of panel and row; said: a probability."""
    tall, gap = row * len(names), (1150 - left) / len(panels)
    parts = [
        words(left - 14, 38 + row * (i + 0.5), name, 21, "end") for i, name in enumerate(names)
    ]
    for k, (title, probabilities) in enumerate(panels):
        x = left + gap * k
        parts += [words(x, 20, title, 20, "start", BOLD), arrow(x, 32, x, 36 + tall, tip=False)]
        for i, share in enumerate(probabilities):
            y, wide = 36 + row * i, max((gap - 92) * share, 2)
            parts.append(rect(x, y, wide, row - 10, **looks(k, i), wide=2))
            parts.append(words(x + wide + 8, y + row / 2 + 2, said(share), 20, "start"))
    return svg(1150, 40 + tall, *parts, says=says)


PLAIN_BAR = {"fill": "#cfe5f3", "ink": BLUE}
OPEN_BAR = {"fill": "#fff", "ink": INK, "dash": "6 3"}


def label_and_shares() -> str:
    """The label beside the teacher's answer at three temperatures."""
    panels = [("the label", [1.0, 0.0, 0.0])]
    panels += [(f"teacher, T = {T:g}", toy(T)) for T in SHOWN]
    return _share_bars(
        WORDS, panels, lambda panel, _: PLAIN_BAR if panel else OPEN_BAR,
        lambda share: f"{share:.0f}" if share in (0, 1) else f"{share:.3f}", 116, 50,
        "a label, and a teacher's answer at three temperatures",
    )  # fmt: skip


def _kl() -> float:
    """By the library; the terms of the table add up to it."""
    found = soft_target_loss(torch.tensor([STUDENT]), torch.tensor([LOGITS]), 1.0).item()
    assert abs(found - sum(term for _, _, term in apart()[0])) < 1e-5
    return found


def kl_table() -> str:
    rows = [
        (word, f"{t:.3f}", f"{s:.3f}", f"{t / s:.2f}", signed(term, 4))
        for word, (t, s, term) in zip(WORDS, apart()[0], strict=True)
    ]
    rows.append(("<strong>sum</strong>", "1", "1", "", f"<strong>{_kl():.4f}</strong>"))
    return table(("", "teacher, t", "student, s", "t / s", "t · log(t / s)"), rows, size=24)


# ---------------------------------------------------------------- 4: where T² comes from

TEMPERATURES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def gradients() -> Any:
    figure = gradient_chart(
        {
            "KL alone": [_gradient(T) / T**2 for T in TEMPERATURES],
            "T² · KL": [_gradient(T) for T in TEMPERATURES],
        },
        TEMPERATURES,
    )
    return for_a_hall(figure, 690, 400, right=250)


# ---------------------------------------------------------------- 5: a real teacher's doubt


def doubt_text() -> str:
    said = escape(_doubt()[0].replace(" .", ".")).replace("[MASK]", "<strong>[MASK]</strong>")
    return f'<p style="font-size:23px">{said}</p>'


def doubt() -> str:
    """The likeliest words at three temperatures; the true one in orange, all others together."""
    shown = [softened(T) for T in (1.0, 2.0, 8.0)]
    names = [f"{w} (true)" if w == shown[0].truth else w for w in shown[0].words]
    true = shown[0].words.index(shown[0].truth)
    looks = {true: {"fill": "#f7cf7a", "ink": "#8a5f00"}, len(names): OPEN_BAR}
    return _share_bars(
        [*names, "all other words"],
        [(f"T = {one.temperature:g}", [*one.probabilities, one.rest]) for one in shown],
        lambda _, row: looks.get(row, PLAIN_BAR), lambda share: f"{share:.1%}", 190, 44,
        "the teacher's likeliest words at three temperatures",
    )  # fmt: skip


# ---------------------------------------------------------------- 6, 12: who begins as, learns from


def _two_rows(
    teacher: Sequence[str],
    student: Sequence[str],
    pairs: Mapping[int, int],
    said: tuple[str, str] = ("teacher", "student"),
    dashes: Mapping[int, str] | None = None,
    top: int = 0,
    low: int = 150,
) -> list[str]:
    """Teacher above, student below, an arrow for each pair student -> teacher."""
    step, left, used = 1020 / len(teacher), 124, set(pairs.values())
    wide, spread = step - 9, 1020 / len(student)

    def above(k: int) -> float:
        return left + step * (k + 0.5)

    def below(k: int) -> float:
        return left + spread * (k + 0.5)

    parts = [
        words(106, top + 28, said[0], 20, "end"),
        words(106, top + low + 28, said[1], 20, "end"),
    ]
    for ours, theirs in pairs.items():
        dash = (dashes or {}).get(ours, "")
        parts.append(arrow(above(theirs), top + 46, below(ours), top + low - 3, dash=dash))
    for k, name in enumerate(teacher):
        look = {"fill": PALE, "ink": BLUE, "wide": 2} if k in used else {"dash": "4 4"}
        parts.append(rect(above(k) - wide / 2, top, wide, 44, name, size=18, **look))
    for k, name in enumerate(student):
        look = {"fill": "#dff1fb", "ink": INK, "wide": 2}
        parts.append(rect(below(k) - wide / 2, top + low, wide, 44, name, size=18, **look))
    return parts


def half_of_bert() -> str:
    """DistilBERT's beginning: released layers of BERT-base, its tables and its head."""
    whole, half = published("bert", "base"), published("distilbert", "base")
    N, M = whole.num_layers, half.num_layers
    layers = spread_layers(N, M)
    teacher = ["embed", *map(str, range(N)), "head"]
    student = ["embed", *map(str, range(M)), "head"]
    pairs = {0: 0, M + 1: N + 1} | {m + 1: n + 1 for m, n in enumerate(layers)}
    gone = [
        rect(124, 0, 104, 32, "segments", size=18, dash="4 4"), words(240, 23, "✕", 20),
        rect(1040, 0, 104, 32, "pooler", size=18, dash="4 4"), words(1028, 23, "✕", 20),
        words(634, 23, "solid: copied; dashed: left out; layers counted from 0", 18),
    ]  # fmt: skip
    said = ("BERT-base", "DistilBERT")
    return svg(1150, 226, *gone, *_two_rows(teacher, student, pairs, said, top=46, low=132),
               says="six of twelve layers are copied")  # fmt: skip


def code_begin() -> str:
    source = re.sub(r"  # type: ignore.*", "", body_of(initialise_from, start="for block"))
    return f'<div style="zoom:0.95;margin-top:6px">{code(source)}</div>'


# ---------------------------------------------------------------- 7: three losses

TEXT = ("[CLS]", "the", "[MASK]", "steers", "the", "boat", "[SEP]", "[PAD]", "[PAD]")


def three_places() -> str:
    """A row of tokens, and for each loss the tokens that it looks at."""
    step, left = 98, 236
    looks = (
        ("soft", "soft targets", BLUE, "#cfe5f3", lambda token: token != "[PAD]"),
        ("mlm", "masked words", "#8a5f00", "#fdf1d6", lambda token: token == "[MASK]"),
        ("cosine", "cosine", "#00745a", "#e0f3ed", lambda token: token != "[PAD]"),
    )
    parts = [
        rect(left + step * k, 0, step - 8, 40, token, size=18, mono=True,
             wide=3 if token == "[MASK]" else 1.5, ink=ORANGE if token == "[MASK]" else FAINT,
             dash="4 4" if token == "[PAD]" else "")
        for k, token in enumerate(TEXT)
    ]  # fmt: skip
    for row, (name, said, ink, fill, sees) in enumerate(looks):
        y = 56 + 46 * row
        parts += [words(0, y + 26, f"{PUBLISHED_WEIGHTS[name]:g} ×", 22, "start", BOLD),
                  words(62, y + 26, said, 22, "start")]  # fmt: skip
        parts += [
            rect(left + step * k, y, step - 8, 36, "✓", fill=fill, ink=ink, wide=2)
            if sees(token) else words(left + step * (k + 0.5) - 4, y + 25, "–", 20)
            for k, token in enumerate(TEXT)
        ]  # fmt: skip
    return svg(1150, 192, *parts, says="which tokens each of the three losses looks at")


def code_losses() -> str:
    lines = body_of(distilbert_loss, start="    if soft:").splitlines()
    shown = [line[4:] for line in lines if line.strip() != "return loss"]
    return f'<div style="zoom:0.82">{code(chr(10).join(shown).rstrip())}</div>'


# ---------------------------------------------------------------- 8: is it right?

HATCH = f"repeating-linear-gradient(45deg,{ORANGE} 0 5px,#f7cf7a 5px 10px)"


def four_models() -> str:
    """A bar a model: embeddings hatched, blocks plain, pooler grey."""
    most = _parts("BERT-base").all
    looks = ((HATCH, INK), (BLUE, "#fff"), ("#d9d9d9", INK))
    lines = []
    for name in MODELS:
        found = _parts(name)
        bars = "".join(
            f'<span style="width:{100 * count / most:.2f}%;background:{ground};color:{ink};'
            "padding:4px 0;box-sizing:border-box;white-space:nowrap;overflow:hidden;"
            f'text-align:center">{_in_bar(count, most, ground)}</span>'
            for count, (ground, ink) in zip(found, looks, strict=True)
        )
        lines.append(
            '<div style="display:flex;align-items:center;margin:0 0 8px;font-size:21px">'
            f'<span style="flex:0 0 140px">{name}</span>'
            f'<span style="display:flex;flex:1">{bars}</span>'
            f'<span style="flex:0 0 150px;text-align:right">{found.all:,}</span>'
            f'<strong style="flex:0 0 76px;text-align:right">{_share(name)}</strong></div>'
        )
    return "".join(lines)


def _in_bar(count: int, most: int, ground: str) -> str:
    if count / most < 0.07:
        return "&nbsp;"
    inside = "background:#fff;padding:0 5px" if ground == HATCH else ""
    return f'<span style="{inside}">{count / 1e6:.1f}M</span>'


def _cut() -> dict[str, int]:
    """What BERT-base has and DistilBERT has not; the last line must be nothing."""
    config, student = published("bert", "base"), published("distilbert", "base")
    whole, half = _parts("BERT-base"), _parts("DistilBERT")
    missing = config.num_layers - student.num_layers
    segments = config.type_vocab_size * config.hidden_size
    blocks = whole.blocks * missing // config.num_layers
    rest = whole.all - half.all - blocks - segments - whole.pooler
    return {
        "six blocks": blocks, "segment embeddings": segments, "pooler": whole.pooler,
        "anything else": rest,
    }  # fmt: skip


def what_was_cut() -> str:
    rows = [(name, f"{count:,}") for name, count in _cut().items()]
    return table(("gone", "parameters"), rows, size=22)


# ---------------------------------------------------------------- 9: faster at what?


def _flops(family: str, size: str) -> float:
    return encoder_flops(published(family, size), TOKENS) / 1e9


def speeds() -> str:
    speed = printed("distilbert")["speed"]
    whole, half = _flops("bert", "base"), _flops("distilbert", "base")
    weights = [4 * _parts(name).all / 1e6 for name in ("BERT-base", "DistilBERT")]
    gpu = printed("tinybert")["speed"]["distilbert_6"]
    rows = (
        (f"FLOPs, {TOKENS} tokens", f"{whole:.2f} G", f"{half:.2f} G", f"{whole / half:.2f}",
         "formula"),
        ("seconds, CPU, batch 1", f"{speed['bert_base']}", f"{speed['distilbert']}",
         f"<strong>{_times():.2f}</strong>", "DistilBERT, Table 3"),
        ("time, K80 GPU", "", "", f"{gpu:.2f}", "TinyBERT, Table 1"),
        ("file of weights", f"{weights[0]:.0f} MB", f"{weights[1]:.0f} MB",
         f"{weights[0] / weights[1]:.2f}", "counted, 4 bytes each"),
        ("stored activations", f"{_kept()[0]:.0f} MB", f"{_kept()[1]:.0f} MB",
         f"{_kept()[0] / _kept()[1]:.2f}", "counted, a third as wide"),
    )  # fmt: skip
    return table(("", "12 layers", "6 layers", "times less", "who says so"), rows, size=23)


# ---------------------------------------------------------------- rows of dots


class Panel(NamedTuple):
    """An axis for rows of dots: its title, where it lies, its ends, its ticks and a level."""

    title: str
    x: float
    wide: float
    low: float
    high: float
    ticks: tuple[float, ...]
    level: float | None = None


def _across(panel: Panel, value: float) -> float:
    return panel.x + panel.wide * (value - panel.low) / (panel.high - panel.low)


def _panel(panel: Panel, bottom: float) -> list[str]:
    """Title, ticks with faint lines, and the teacher's level as a dashed line."""
    parts = [words(panel.x, 18, panel.title, 17, "start", BOLD)]
    for tick in panel.ticks:
        x = _across(panel, tick)
        parts.append(f'<path d="M{x:.1f} 32V{bottom}" stroke="#dcdcdc"/>')
        parts.append(words(x, bottom + 20, f"{tick:.0%}", 17))
    if panel.level is not None:
        x = _across(panel, panel.level)
        parts.append(arrow(x, 32, x, bottom, tip=False, dash="7 4"))
        parts.append(words(x, 20, "teacher", 16))
    return parts


def _dots(panel: Panel, y: float, values: Sequence[float], hollow: bool) -> list[str]:
    """A dot a seed, a bar at their mean, and the mean in words on the emptier side."""
    fill, at = "#fff" if hollow else SKY, _across(panel, mean(values))
    parts = [
        f'<circle cx="{_across(panel, v):.1f}" cy="{y}" r="7" fill="{fill}" stroke="{INK}" '
        'stroke-width="1.5" fill-opacity="0.85"/>'
        for v in values
    ]
    parts.append(f'<path d="M{at:.1f} {y - 14}V{y + 14}" stroke="{INK}" stroke-width="3"/>')
    right = at < panel.x + 0.5 * panel.wide
    edge = _across(panel, max(values) if right else min(values))
    x, anchor = (edge + 14, "start") if right else (edge - 14, "end")
    said = f"{mean(values):.1%}"
    halo = ' paint-order="stroke" stroke="#fff" stroke-width="6"'
    return [*parts, words(x, y + 7, said, 19, anchor, halo)]


def _rows_of_dots(
    names: Mapping[str, str],
    panels: Sequence[tuple[Panel, Mapping[str, Sequence[float]]]],
    columns: Sequence[tuple[str, float, Mapping[str, str]]] = (),
    hollow: Sequence[str] = (),
    left: float = 300,
    step: float = 42,
    says: str = "",
) -> str:
    """A row a recipe: its name, its dots in each panel, and words in further columns."""
    bottom = 36 + step * len(names)
    parts = [part for panel, _ in panels for part in _panel(panel, bottom)]
    parts += [words(x, 18, title, 19, "end", BOLD) for title, x, _ in columns]
    for row, (name, said) in enumerate(names.items()):
        y = 36 + step * (row + 0.5)
        parts.append(words(left - 12, y + 7, said, 20, "end"))
        for panel, values in panels:
            parts += _dots(panel, y, values[name], name in hollow)
        parts += [words(x, y + 7, found.get(name, "–"), 20, "end") for _, x, found in columns]
    return svg(1150, int(bottom + 28), *parts, says=says)


# ---------------------------------------------------------------- 10: leave one out

SAID = {
    "triple loss": "all three losses",
    "without soft targets": "without soft targets",
    "without masked words": "without masked words",
    "without cosine": "without cosine",
    "fresh weights": "all three, random init.",
    "teacher's layers, masked words only": "its layers, MLM only",
    "alone": "random init., MLM only",
}
TABLE_4 = {
    "without soft targets": "without_soft",
    "without masked words": "without_mlm",
    "without cosine": "without_cosine",
    "fresh weights": "fresh_weights",
}
UNTAUGHT = ("teacher's layers, masked words only", "alone")  # no teacher's losses: hollow dots


def _two_panels() -> tuple[Panel, Panel]:
    """Both measures, with the teacher's level."""
    teacher = teacher_run()
    hidden = Panel("masked-token accuracy", 300, 340, 0.15, 1.0, (0.2, 0.4, 0.6, 0.8, 1.0),
                   teacher["masked_accuracy"])  # fmt: skip
    jobs = Panel("unstated-fact probe", 690, 300, 0.5, 0.85, (0.5, 0.6, 0.7, 0.8),
                 teacher["job_accuracy"])  # fmt: skip
    return hidden, jobs


def left_out() -> str:
    """Both measures of each student, and the paper's change."""
    paper = printed("distilbert")["ablation"]
    changes = {name: signed(paper[row], 2) for name, row in TABLE_4.items()}
    changes["triple loss"] = "0"
    hidden, jobs = _two_panels()
    return _rows_of_dots(
        SAID,
        [(hidden, _found("masked_accuracy")), (jobs, _found("job_accuracy"))],
        [("paper, points", 1140, changes)],
        UNTAUGHT,
        says="masked-token accuracy and unstated-fact probe of students that miss one thing each",
    )


# ---------------------------------------------------------------- 11: which layers to begin with


@lru_cache(maxsize=1)
def _heldout() -> PackedSequences:
    """The new stories on which results were measured."""
    world = _world()
    return story_sequences(world, world.stories(HELDOUT, seed=0, split="heldout"), LENGTH)


@lru_cache(maxsize=8)
def _before(name: str) -> float:
    """Masked-token accuracy of a student that is initialised, and has not made a step."""
    world = _world()
    student = randomly_initialised_student(STARTS[name], _teacher(), world, 0).eval()
    return evaluate(student, _heldout(), world.special, precision=PRECISION).masked_accuracy


def starts() -> str:
    said = {
        name: f"{name}: {as_list(chosen(name))}" if chosen(name) else "random initialisation"
        for name in STARTS
    }
    hidden, jobs = _two_panels()
    before = {name: f"{_before(name):.1%}" for name in STARTS}
    return _rows_of_dots(
        said,
        [(hidden, _begun("masked_accuracy")), (jobs, _begun("job_accuracy"))],
        [("tokens, step 0", 1140, before)],
        says="both measures of students initialised from other layers",
    )


# ---------------------------------------------------------------- 12, 13: TinyBERT's losses


def any_shape() -> str:
    """TinyBERT-4 under BERT-base: who learns from whom."""
    small, whole = published("tinybert", "4"), published("bert", "base")
    M, N = small.num_layers, whole.num_layers
    layers = layer_mapping(M, N)
    teacher = ["input", *map(str, range(1, N + 1)), "output"]
    student = ["input", *map(str, range(1, M + 1)), "output"]
    pairs = {0: 0, M + 1: N + 1} | dict(enumerate(layers, start=1))
    said = (f"width {whole.hidden_size}", f"width {small.hidden_size}")
    dashes = {0: "8 4", M + 1: "2 4"}
    return svg(1150, 186, *_two_rows(teacher, student, pairs, said, dashes, low=136),
               says="four layers learn from every third of twelve")  # fmt: skip


def four_losses() -> str:
    rows = (
        ("embedding", "the vectors before the first layer, widened", "dashed"),
        ("attention", "attention scores, <em>before</em> the softmax", "solid"),
        ("hidden", "the vectors after a layer, widened", "solid"),
        ("prediction", "soft targets, at T = 1; in the second stage only", "dotted"),
    )
    return table(("loss", "what is compared", "arrow"), rows, numbers=False, size=22)


HEADS = ((9.0, 3.0, 0.0), (9.0, 0.0, 0.0))


def two_heads() -> str:
    """The notebook's two heads: attention scores, attention weights, and both distances."""
    a, b = (torch.tensor(scores) for scores in HEADS)
    pairs = {"attention scores": (a, b), "attention weights": (a.softmax(-1), b.softmax(-1))}
    rows = [
        (name, *("&nbsp; ".join(f"{v:.4g}" if said == "attention scores" else f"{v:.4f}"
                                for v in pair[which].tolist()) for said, pair in pairs.items()))
        for which, name in enumerate(("one head", "another"))
    ]  # fmt: skip
    distances = [((x - y) ** 2).mean().item() for x, y in pairs.values()]
    rows.append(("mean squared error", f"<strong>{distances[0]:.1f}</strong>",
                 f"<strong>{distances[1]:.6f}</strong>"))  # fmt: skip
    return table(("", *pairs), rows, size=19)


def code_attention() -> str:
    return f'<div style="zoom:0.95">{code(body_of(attention_loss))}</div>'


# ---------------------------------------------------------------- 14: two stages


def two_stages() -> str:
    """Plain text, then the task: what the student learns in each part, and what that needs."""
    blue, green = ({"fill": fill, "ink": ink, "wide": 2} for fill, ink in (
        (PALE, BLUE), ("#e0f3ed", "#00745a")))  # fmt: skip
    ready = {"dash": "7 4", "ink": "#8a5f00", "wide": 2, "size": 19}
    return svg(
        1150, 176,
        words(2, 20, "stage 1, general", 20, "start", BOLD),
        words(322, 20, "stage 2, for one task", 20, "start", BOLD),
        rect(2, 32, 240, 62, **blue),
        words(122, 58, "plain stories"), words(122, 82, "intermediate layers", 18),
        rect(322, 32, 250, 62, **green),
        words(447, 58, "the task's texts"), words(447, 82, "intermediate layers", 18),
        rect(652, 32, 250, 62, **green),
        words(777, 58, "the same texts"), words(777, 82, "the teacher's predictions", 18),
        arrow(242, 63, 319, 63), arrow(572, 63, 649, 63), arrow(902, 63, 966, 63),
        words(976, 70, "ready: no matrix", 20, "start"),
        rect(2, 130, 240, 42, "the teacher", **ready),
        rect(322, 130, 250, 42, f"texts × {TINY.copies + 1}: augmented", **ready),
        rect(652, 130, 250, 42, "the teacher, fine-tuned", **ready),
        arrow(122, 130, 122, 97), arrow(417, 130, 417, 97), arrow(807, 130, 807, 97),
        arrow(540, 130, 690, 97), arrow(684, 130, 534, 97),
        words(976, 157, "dashed: given", 18, "start"),
        says="two stages; the second has two parts, on augmented texts, with a fine-tuned teacher",
    )  # fmt: skip


@lru_cache(maxsize=1)
def _variants() -> list[list[str]]:
    """The first text of the task, and three variants of it, as words."""
    world = _world()
    # The first stories of the task are those of any longer draw from the same seed.
    task = unstated_facts(world, world.stories(40, seed=0), LENGTH)[:1]
    grown = augment(task, _teacher(), world.special, copies=3)
    never = world.special.never_masked
    return [[world.tokenizer.token(i) for i in row if i not in never]
            for row in grown.sequences.input_ids.tolist()]  # fmt: skip


def variants() -> str:
    """The beginning of each, replaced words framed and bold."""
    text, *others = _variants()
    lines = []
    for number, row in enumerate([text, *others]):
        cells = [
            f'<span style="border:2px solid {ORANGE};border-radius:4px;padding:0 4px;'
            f'font-weight:650">{escape(word)}</span>'
            if word != was else escape(word)
            for word, was in list(zip(row, text, strict=True))[:14]
        ]  # fmt: skip
        name = "the text" if number == 0 else f"variant {number}"
        cell = '<td style="white-space:nowrap">'
        lines.append(f"<tr>{cell}{name}</td>{cell}{' '.join(cells)} …</td></tr>")
    return f'<table style="font-size:20px">{"".join(lines)}</table>'


# ---------------------------------------------------------------- 15: what each part is worth

TINY_SAID = {
    "all": "all of it",
    "without attention": "without attention",
    "without hidden": "without hidden",
    "without both layer losses": "without both of these",
    "without embedding": "without embedding",
    "without the teacher's answers": "labels for soft targets",
    "alone": "alone: labels only",
}
PRINTED = {
    "without attention": "without_attention",
    "without hidden": "without_hidden",
    "without both layer losses": "without_both_layer_losses",
    "without embedding": "without_embedding",
    "without the teacher's answers": "without_prediction",
}


def parts_worth() -> str:
    jobs, taught = _jobs(), tiny()["taught_by"]
    panel = Panel("unstated-fact probe, accuracy", 270, 500, 0.5, 0.85, (0.5, 0.6, 0.7, 0.8),
                  taught["job_accuracy"])  # fmt: skip
    ours = {name: signed(100 * mean(tiny_change(name))) for name in TINIES} | {"all": "0"}
    changes = paper_changes("losses")
    paper = {name: changes[row] for name, row in PRINTED.items()} | {"all": "0"}
    return _rows_of_dots(
        TINY_SAID, [(panel, jobs)], [("ours, points", 950, ours), ("paper, points", 1140, paper)],
        ("alone", "without the teacher's answers"), left=270,
        says="unstated-fact probe of students that miss one part each",
    )  # fmt: skip


# ---------------------------------------------------------------- 16: quality against size


def tradeoff() -> Any:
    """The notebook's chart, its names set anew for large type."""
    teacher = teacher_run()
    points = [{"name": "teacher, fine-tuned", "x": teacher["parameters"],
               "y": teacher["job_accuracy"]}]  # fmt: skip
    for found, shape, runs in ((_taught(), "2×128", ("triple loss", "alone")),
                               (tiny(), "2×64", ("without attention", "alone"))):  # fmt: skip
        jobs = outcome(found, "job_accuracy")
        points += [
            {"name": f"{shape}, {run}", "x": found["runs"][run][0]["parameters"],
             "y": mean(jobs[run]), "low": min(jobs[run]), "high": max(jobs[run])}
            for run in runs
        ]  # fmt: skip
    figure = tradeoff_chart(points, x="weights", y="unstated-fact probe, accuracy", percent=True)
    figure.layout.annotations = ()
    for point in points:
        last = point["x"] == teacher["parameters"]
        figure.add_annotation(
            x=point["x"], y=point["y"], text=f"{point['name']} {point['y']:.1%}", showarrow=False,
            xanchor="right" if last else "left", xshift=10 if last else 16,
            yshift=-26 if last else 0,
        )  # fmt: skip
    return for_a_hall(figure, 1120, 430)


# ---------------------------------------------------------------- 17: reading the table


def by_task() -> str:
    """A bar a task, to the left where points are lost."""
    parts, zero, scale = [], 456, 36
    for row, (task, points) in enumerate(_lost().items()):
        y, wide = 4 + 48 * row, scale * abs(points)
        look = {"fill": "#dff1fb", "ink": INK} if points < 0 else {
            "fill": "#fff", "ink": "#00745a", "dash": "6 3"}  # fmt: skip
        x = zero - wide if points < 0 else zero
        parts.append(rect(x, y, wide, 32, **look, wide=2))
        end, anchor = (x - 8, "end") if points < 0 else (x + wide + 8, "start")
        name, side = (zero + 12, "start") if points < 0 else (zero - 12, "end")
        parts += [words(end, y + 24, signed(points), 20, anchor),
                  words(name, y + 24, task, 20, side)]  # fmt: skip
    parts.append(arrow(zero, 0, zero, 436, tip=False))
    return svg(650, 440, *parts, says="points that DistilBERT loses or gains on nine tasks")


def _mean_with(mnli: float) -> str:
    """The mean of BERT-base's nine scores, were this its MNLI."""
    return f"{glue_average({**_rows()[0], 'MNLI': mnli}, 'dev-9'):.2f}"


def misprint() -> str:
    row, wrong = printed("glue")["bert_base_dev_distilbert"], _misprinted()
    right = row["scores"]["MNLI"]
    rows = (
        (f"{wrong} (paper)", _mean_with(wrong)),
        (f"{right} (README)", f"<strong>{_mean_with(right)}</strong>"),
        ("printed mean", f"{row['printed']}"),
    )
    return table(("BERT's MNLI", "mean of nine"), rows, size=22)


def _misprinted() -> float:
    return float(printed("distilbert")["glue"]["bert_base_mnli"])


# ---------------------------------------------------------------- 18, 19: to keep

CHOSEN = ("E15", "E83", "E104", "slip 1 twice")


def claims_rows() -> str:
    return drawing.claims_rows("06", CHOSEN)


def exercises() -> str:
    return drawing.exercise_list("06")
