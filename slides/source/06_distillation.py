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

from course_lib import MicroWorld, bert, count_parameters, distilbert, published
from course_lib import tinybert as tinybert_of
from course_lib.config import encoder_flops
from course_lib.encoder import Encoder
from course_lib.family.distilbert import (
    DistilBertConfig,
    distilbert_encoder,
    every_other_layer,
    initialise_from,
    spread_layers,
)
from course_lib.family.tinybert import fit_matrix, layer_mapping
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.distillation import soft_target_loss
from course_lib.lectures.lecture_06.experiments import (
    BEGINNINGS,
    FULL,
    HELDOUT,
    LABELLED,
    LENGTH,
    PRECISION,
    SEEDS,
    STARTS,
    STORIES,
    TINIES,
    TINY,
    Material,
    general_stage,
    micro_teacher,
    outcome,
    randomly_initialised_student,
)
from course_lib.lectures.lecture_06.views.temperature import soften
from course_lib.objectives.distillation import (
    PUBLISHED_WEIGHTS,
    attention_loss,
    distilbert_loss,
    tinybert_loss,
)
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import gradient_chart, tradeoff_chart
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import claims, printed, verdict
from course_lib.teaching.results import read_result
from course_lib.teaching.style import BLUE, INK, ORANGE, SKY
from course_lib.text.augmentation import augment
from course_lib.text.tasks import unstated_facts
from course_lib.text.world import story_sequences
from course_lib.train.memory import activation_bytes
from course_lib.train.metrics import evaluate

TOKENS = 128  # of the text whose operations are counted
BOLD = ' font-weight="650"'
PALE, FAINT = "#e3f0f8", "#8a8a8a"


def _signed(points: float, digits: int = 1) -> str:
    return f"{points:+.{digits}f}".replace("-", "−")


# ---------------------------------------------------------------- what is read, what is counted


def _read(name: str) -> dict[str, Any]:
    try:
        return read_result(name)
    except FileNotFoundError as missing:
        raise RuntimeError(
            f"data/results/{name}.json is not there, and this slide shows what it holds. "
            "`python -m course_lib.teaching.results 06` makes it (an hour or less on two cores)."
        ) from missing


@lru_cache(maxsize=1)
def _taught() -> dict[str, Any]:
    return _read("06_distilbert")


@lru_cache(maxsize=1)
def _tiny() -> dict[str, Any]:
    return _read("06_tinybert")


@lru_cache(maxsize=1)
def _teacher_run() -> dict[str, Any]:
    run: dict[str, Any] = _read("06_teacher")["runs"]["teacher"][0]
    return run


@lru_cache(maxsize=1)
def _world() -> MicroWorld:
    return MicroWorld.load()


@lru_cache(maxsize=1)
def _teacher() -> BertForMaskedLM:
    return micro_teacher()


MODELS: dict[str, tuple[Callable[..., Encoder], str]] = {
    "BERT-base": (bert, "base"),
    "DistilBERT": (distilbert, "base"),
    "TinyBERT-6": (tinybert_of, "6"),
    "TinyBERT-4": (tinybert_of, "4"),
}


class Parts(NamedTuple):
    """Parameters of an encoder by its parts."""

    tables: int
    blocks: int
    pooler: int

    @property
    def all(self) -> int:
        return sum(self)


@lru_cache(maxsize=4)
def _parts(name: str) -> Parts:
    of, size = MODELS[name]
    with torch.device("meta"):  # shapes without memory
        model = of(size)
    pooler = 0 if model.pooler is None else count_parameters(model.pooler)
    return Parts(count_parameters(model.embeddings), count_parameters(model.stack), pooler)


def _share(name: str) -> str:
    return f"{_parts(name).all / _parts('BERT-base').all:.0%}"


# ---------------------------------------------------------------- 2, 3: by hand

WORDS = ("captain", "sailor", "baker")
LOGITS, STUDENT = (6.0, 4.0, 0.0), (3.0, 3.0, 0.0)
SHOWN = (1.0, 2.0, 4.0)  # temperatures


def _toy(temperature: float, logits: Sequence[float] = LOGITS) -> list[float]:
    """The shares of the three words, in their order."""
    return soften(logits, WORDS, temperature, top=3).probabilities


def _ratio(temperature: float) -> str:
    """How many times as likely the first word is as the second."""
    captain, sailor, _ = _toy(temperature)
    return f"{captain / sailor:.1f}"


def _share_bars(
    names: Sequence[str],
    panels: Sequence[tuple[str, Sequence[float]]],
    looks: Callable[[int, int], dict[str, Any]],
    said: Callable[[float], str],
    left: float,
    row: int,
    says: str,
) -> str:
    """Panels of bars side by side, the names once; looks: of panel and row; said: a share."""
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
    panels += [(f"teacher, T = {T:g}", _toy(T)) for T in SHOWN]
    return _share_bars(
        WORDS, panels, lambda panel, _: PLAIN_BAR if panel else OPEN_BAR,
        lambda share: f"{share:.0f}" if share in (0, 1) else f"{share:.3f}", 116, 50,
        "a label, and a teacher's answer at three temperatures",
    )  # fmt: skip


def _apart() -> tuple[list[tuple[float, float, float]], float, float]:
    """For each word both shares and its term of the KL; cross-entropy; the teacher's entropy."""
    t, s = torch.tensor(_toy(1.0)), torch.tensor(_toy(1.0, STUDENT))
    terms = t * (t / s).log()
    rows = list(zip(t.tolist(), s.tolist(), terms.tolist(), strict=True))
    return rows, -(t * s.log()).sum().item(), -(t * t.log()).sum().item()


def _kl() -> float:
    """By the library; the terms of the table add up to it."""
    found = soft_target_loss(torch.tensor([STUDENT]), torch.tensor([LOGITS]), 1.0).item()
    assert abs(found - sum(term for _, _, term in _apart()[0])) < 1e-5
    return found


def kl_table() -> str:
    rows = [
        (word, f"{t:.3f}", f"{s:.3f}", f"{t / s:.2f}", _signed(term, 4))
        for word, (t, s, term) in zip(WORDS, _apart()[0], strict=True)
    ]
    rows.append(("<strong>sum</strong>", "1", "1", "", f"<strong>{_kl():.4f}</strong>"))
    return table(("", "teacher, t", "student, s", "t / s", "t · log(t / s)"), rows, size=24)


# ---------------------------------------------------------------- 4: where T² comes from

TEMPERATURES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


@lru_cache(maxsize=16)
def _gradient(temperature: float) -> float:
    """The norm of T²·KL's gradient for the notebook's random scores; no weight is trained."""
    draw = torch.Generator().manual_seed(0)
    mine = (2 * torch.randn(64, 1_000, generator=draw)).requires_grad_()
    theirs = 2 * torch.randn(64, 1_000, generator=draw)
    return torch.autograd.grad(soft_target_loss(mine, theirs, temperature), mine)[0].norm().item()


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

STORY = 11  # of 40 new ones: a gap that leaves the teacher in some doubt


@lru_cache(maxsize=1)
def _doubt() -> tuple[str, str, torch.Tensor]:
    """A story with a gap, the hidden word, and the teacher's scores (V,) for the gap."""
    world = _world()
    *halves, hidden = world.stories(40, seed=3, split="heldout")[STORY].with_gap("fact")
    text = " ".join(halves)
    ids = torch.tensor([world.tokenizer.encode(text)])
    with torch.no_grad():
        scores = _teacher()(ids).logits[0, ids[0].tolist().index(world.special.mask)]
    return text, hidden, scores


@lru_cache(maxsize=8)
def _softened(temperature: float, top: int = 6) -> Any:
    world, (_, hidden, scores) = _world(), _doubt()
    names = [world.tokenizer.token(i) for i in range(world.special.vocab_size)]
    return soften(scores, names, temperature, top=top, truth=hidden)


def doubt_text() -> str:
    said = escape(_doubt()[0].replace(" .", ".")).replace("[MASK]", "<strong>[MASK]</strong>")
    return f'<p style="font-size:23px">{said}</p>'


def doubt() -> str:
    """The likeliest words at three temperatures; the true one in orange, all others together."""
    shown = [_softened(T) for T in (1.0, 2.0, 8.0)]
    names = [f"{w} (true)" if w == shown[0].truth else w for w in shown[0].words]
    true = shown[0].words.index(shown[0].truth)
    looks = {true: {"fill": "#f7cf7a", "ink": "#8a5f00"}, len(names): OPEN_BAR}
    return _share_bars(
        [*names, "all other words"],
        [(f"T = {one.temperature:g}", [*one.probabilities, one.rest]) for one in shown],
        lambda _, row: looks.get(row, PLAIN_BAR), lambda share: f"{share:.1%}", 190, 44,
        "the teacher's likeliest words at three temperatures",
    )  # fmt: skip


def _runners_up() -> str:
    """The second and the third word, at T = 1."""
    one = _softened(1.0)
    return " and ".join(f"{one.words[i]} {one.probabilities[i]:.1%}" for i in (1, 2))


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
    teacher = ["tables", *map(str, range(N)), "head"]
    student = ["tables", *map(str, range(M)), "head"]
    pairs = {0: 0, M + 1: N + 1} | {m + 1: n + 1 for m, n in enumerate(layers)}
    gone = [
        rect(124, 0, 104, 32, "segments", size=18, dash="4 4"), words(240, 23, "✕", 20),
        rect(1040, 0, 104, 32, "pooler", size=18, dash="4 4"), words(1028, 23, "✕", 20),
        words(634, 23, "solid: copied; dashed: left out; layers counted from 0", 18),
    ]  # fmt: skip
    said = ("BERT-base", "DistilBERT")
    return svg(1150, 226, *gone, *_two_rows(teacher, student, pairs, said, top=46, low=132),
               says="six of twelve layers are copied")  # fmt: skip


def _as_list(layers: Sequence[int]) -> str:
    return ", ".join(map(str, layers))


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
    """A bar a model: tables hatched, blocks plain, pooler grey."""
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
        "six blocks": blocks, "segment table": segments, "pooler": whole.pooler,
        "anything else": rest,
    }  # fmt: skip


def what_was_cut() -> str:
    rows = [(name, f"{count:,}") for name, count in _cut().items()]
    return table(("gone", "parameters"), rows, size=22)


def _same_as_its_teacher() -> float:
    """A student with all of its teacher's layers: how far its scores are from the teacher's."""
    teacher, text = _teacher(), _doubt()[0]
    shape = {name: getattr(teacher.config, name) for name in (
        "vocab_size", "max_positions", "num_layers", "hidden_size", "num_heads",
        "intermediate_size")}  # fmt: skip
    student = BertForMaskedLM(distilbert_encoder(DistilBertConfig(**shape)))
    initialise_from(student, teacher, range(teacher.config.num_layers)).eval()
    ids = torch.tensor([_world().tokenizer.encode(text)])
    with torch.no_grad():
        return (student(ids).logits - teacher(ids).logits).abs().max().item()


# ---------------------------------------------------------------- 9: faster at what?


def _flops(family: str, size: str) -> float:
    return encoder_flops(published(family, size), TOKENS) / 1e9


NARROW = {"hidden_size": 256, "num_heads": 4, "intermediate_size": 1_024, "vocab_size": 1_000}


@lru_cache(maxsize=1)
def _kept() -> tuple[float, float]:
    """Megabytes that a forward pass keeps for the way back, twelve layers and six: the notebook's
    pair, a third as wide as base, eight texts of 64 tokens."""
    torch.manual_seed(0)
    texts = torch.randint(5, 1_000, (8, 64))
    whole, half = (activation_bytes(of("base", **NARROW), texts) for of in (bert, distilbert))
    return whole / 1e6, half / 1e6


def _less_kept() -> str:
    whole, half = _kept()
    return f"{1 - half / whole:.0%}"


def _times() -> float:
    """By the paper's own clock."""
    speed = printed("distilbert")["speed"]
    return float(speed["bert_base"] / speed["distilbert"])


def speeds() -> str:
    speed = printed("distilbert")["speed"]
    whole, half = _flops("bert", "base"), _flops("distilbert", "base")
    weights = [4 * _parts(name).all / 1e6 for name in ("BERT-base", "DistilBERT")]
    gpu = printed("tinybert")["speed"]["distilbert_6"]
    rows = (
        (f"operations, {TOKENS} tokens", f"{whole:.2f} G", f"{half:.2f} G", f"{whole / half:.2f}",
         "formula"),
        ("seconds, CPU, batch 1", f"{speed['bert_base']}", f"{speed['distilbert']}",
         f"<strong>{_times():.2f}</strong>", "DistilBERT, Table 3"),
        ("time, K80 GPU", "", "", f"{gpu:.2f}", "TinyBERT, Table 1"),
        ("file of weights", f"{weights[0]:.0f} MB", f"{weights[1]:.0f} MB",
         f"{weights[0] / weights[1]:.2f}", "counted, 4 bytes each"),
        ("kept for the way back", f"{_kept()[0]:.0f} MB", f"{_kept()[1]:.0f} MB",
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
    parts = [words(panel.x, 18, panel.title, 19, "start", BOLD)]
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
    "fresh weights": "all three, fresh weights",
    "teacher's layers, masked words only": "its layers, words only",
    "alone": "fresh weights, words only",
}
TABLE_4 = {
    "without soft targets": "without_soft",
    "without masked words": "without_mlm",
    "without cosine": "without_cosine",
    "fresh weights": "fresh_weights",
}
UNTAUGHT = ("teacher's layers, masked words only", "alone")  # no teacher's losses: hollow dots


def _found(measure: str) -> dict[str, list[float]]:
    return outcome(_taught(), measure)


def _two_panels() -> tuple[Panel, Panel]:
    """Both measures, with the teacher's level."""
    teacher = _teacher_run()
    hidden = Panel("hidden words found", 300, 360, 0.15, 1.0, (0.2, 0.4, 0.6, 0.8, 1.0),
                   teacher["masked_accuracy"])  # fmt: skip
    jobs = Panel("the hero's job", 730, 250, 0.5, 0.85, (0.5, 0.6, 0.7, 0.8),
                 teacher["job_accuracy"])  # fmt: skip
    return hidden, jobs


def left_out() -> str:
    """Both measures of each student, and the paper's change."""
    paper = printed("distilbert")["ablation"]
    changes = {name: _signed(paper[row], 2) for name, row in TABLE_4.items()}
    changes["triple loss"] = "0"
    hidden, jobs = _two_panels()
    return _rows_of_dots(
        SAID,
        [(hidden, _found("masked_accuracy")), (jobs, _found("job_accuracy"))],
        [("paper, points", 1140, changes)],
        UNTAUGHT,
        says="hidden words and jobs found by students that miss one thing each",
    )


def _change(name: str, measure: str, against: str = "triple loss") -> list[float]:
    """Gained against another recipe, one number a seed that both have."""
    runs = _taught()["runs"]
    base = {run["seed"]: run[measure] for run in runs[against]}
    return [run[measure] - base[run["seed"]] for run in runs[name] if run["seed"] in base]


def _points(name: str, measure: str) -> str:
    said = verdict(_change(name, measure)).replace("-", "−")
    return re.sub(r"^[+−](0\.0) ", r"\1 ", said)


# ---------------------------------------------------------------- 11: which layers to begin with


@lru_cache(maxsize=1)
def _heldout() -> PackedSequences:
    """The new stories on which results were measured."""
    world = _world()
    return story_sequences(world, world.stories(HELDOUT, seed=0, split="heldout"), LENGTH)


@lru_cache(maxsize=8)
def _before(name: str) -> float:
    """Hidden words found by a student that has begun, and not made a step."""
    world = _world()
    student = randomly_initialised_student(STARTS[name], _teacher(), world, 0).eval()
    return evaluate(student, _heldout(), world.special, precision=PRECISION).masked_accuracy


def _begun(measure: str) -> dict[str, list[float]]:
    return {name: _found(measure)[f"begin: {name}"] for name in STARTS}


def _top_is_best() -> str:
    """What the student of the top layers finds; the slide says that no other finds more."""
    found = {name: mean(values) for name, values in _begun("masked_accuracy").items()}
    assert found["top"] == max(found.values())
    return f"{found['top']:.0%}"


def _chosen(name: str) -> tuple[int, ...]:
    """The teacher's layers, counted from 0, that this student begins as."""
    choose = BEGINNINGS[name]
    depth = _teacher().config.num_layers
    return () if choose is None else tuple(choose(depth, FULL.num_layers))


def starts() -> str:
    said = {
        name: f"{name}: {_as_list(_chosen(name))}" if _chosen(name) else "fresh weights"
        for name in STARTS
    }
    hidden, jobs = _two_panels()
    before = {name: f"{_before(name):.1%}" for name in STARTS}
    return _rows_of_dots(
        said,
        [(hidden, _begun("masked_accuracy")), (jobs, _begun("job_accuracy"))],
        [("words, step 0", 1140, before)],
        says="hidden words and jobs found by students that begin with other layers",
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
        ("attention", "each head's scores, <em>before</em> the softmax", "solid"),
        ("hidden", "the vectors after a layer, widened", "solid"),
        ("prediction", "the answers, at T = 1; in the second stage only", "dotted"),
    )
    return table(("loss", "what is compared", "arrow"), rows, numbers=False, size=22)


def _mappings() -> str:
    small, whole = published("tinybert", "4"), published("bert", "base")
    return "; ".join(
        f"{kind} {_as_list(layer_mapping(small.num_layers, whole.num_layers, kind))}"
        for kind in ("top", "bottom")
    )


def does_not_fit() -> str:
    """What PyTorch says when a narrow vector is taken from a wide one."""
    small, whole = published("tinybert", "4"), published("bert", "base")
    mine, theirs = (torch.zeros(1, 5, c.hidden_size) for c in (small, whole))
    try:
        _ = mine - theirs
    except RuntimeError as error:
        return str(error).splitlines()[0].split(" at non")[0]
    raise AssertionError("the widths must not fit")


def _matrix() -> torch.nn.Linear:
    with torch.device("meta"):
        return fit_matrix(published("tinybert", "4"), published("bert", "base"))


HEADS = ((9.0, 3.0, 0.0), (9.0, 0.0, 0.0))


def two_heads() -> str:
    """The notebook's two heads: their scores, their shares, and both distances."""
    a, b = (torch.tensor(scores) for scores in HEADS)
    pairs = {"scores": (a, b), "shares": (a.softmax(-1), b.softmax(-1))}
    rows = [
        (name, *("&nbsp; ".join(f"{v:.4g}" if said == "scores" else f"{v:.4f}"
                                for v in pair[which].tolist()) for said, pair in pairs.items()))
        for which, name in enumerate(("one head", "another"))
    ]  # fmt: skip
    distances = [((x - y) ** 2).mean().item() for x, y in pairs.values()]
    rows.append(("mean squared distance", f"<strong>{distances[0]:.1f}</strong>",
                 f"<strong>{distances[1]:.6f}</strong>"))  # fmt: skip
    return table(("", *pairs), rows, size=22)


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
        words(122, 58, "plain stories"), words(122, 82, "inner losses", 18),
        rect(322, 32, 250, 62, **green),
        words(447, 58, "the task's texts"), words(447, 82, "inner losses", 18),
        rect(652, 32, 250, 62, **green),
        words(777, 58, "the same texts"), words(777, 82, "the teacher's answers", 18),
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
    "without the teacher's answers": "labels for answers",
    "alone": "alone: labels only",
}
PRINTED = {
    "without attention": "without_attention",
    "without hidden": "without_hidden",
    "without both layer losses": "without_both_layer_losses",
    "without embedding": "without_embedding",
    "without the teacher's answers": "without_prediction",
}


def _paper_changes(part: str, of: str = "all") -> dict[str, str]:
    """Points against the row `of`, in an ablation of the paper."""
    rows = {k: v for k, v in printed("tinybert")[part].items() if isinstance(v, float)}
    return {name: _signed(score - rows[of]) for name, score in rows.items()}


def _jobs() -> dict[str, list[float]]:
    return outcome(_tiny(), "job_accuracy")


def _tiny_change(name: str) -> list[float]:
    """Gained against the whole recipe, a number a seed."""
    return [a - b for a, b in zip(_jobs()[name], _jobs()["all"], strict=True)]


def parts_worth() -> str:
    jobs, taught = _jobs(), _tiny()["taught_by"]
    panel = Panel("the hero's job, share right", 270, 500, 0.5, 0.85, (0.5, 0.6, 0.7, 0.8),
                  taught["job_accuracy"])  # fmt: skip
    ours = {name: _signed(100 * mean(_tiny_change(name))) for name in TINIES} | {"all": "0"}
    changes = _paper_changes("losses")
    paper = {name: changes[row] for name, row in PRINTED.items()} | {"all": "0"}
    return _rows_of_dots(
        TINY_SAID, [(panel, jobs)], [("ours, points", 950, ours), ("paper, points", 1140, paper)],
        ("alone", "without the teacher's answers"), left=270,
        says="the hero's job, told by students that miss one part each",
    )  # fmt: skip


def _best_without_attention() -> str:
    """What that student reaches; the slide says that it is the best of all in every seed."""
    jobs = _jobs()
    for seed, reached in enumerate(jobs["without attention"]):
        assert reached == max(values[seed] for values in jobs.values()), seed
    return f"{mean(jobs['without attention']):.0%}"


def _alone_no_worse() -> str:
    """What a student alone reaches; the slide says that all parts together do no better."""
    jobs = _jobs()
    assert mean(jobs["all"]) <= mean(jobs["alone"])
    return _percent(jobs["alone"])


@lru_cache(maxsize=1)
def _first_losses() -> dict[str, float]:
    """The three inner losses of a student that has not made a step, on 64 plain stories."""
    world, teacher = _world(), _teacher()
    rows = story_sequences(world, world.stories(64, seed=0), LENGTH)
    nothing = unstated_facts(world, world.stories(40, seed=0), LENGTH)
    material = Material(world, rows, rows, nothing, nothing)
    pair, _ = general_stage(TINY, material, teacher, steps=0)
    mapping = layer_mapping(TINY.num_layers, teacher.config.num_layers, TINY.mapping)
    with torch.no_grad():
        said = pair(rows.input_ids, rows.attention_mask, rows.token_type_ids)
        losses = tinybert_loss(mapping)(said, {})
    return {name: value.item() for name, value in losses.items() if name != "total"}


# ---------------------------------------------------------------- 16: quality against size


def tradeoff() -> Any:
    """The notebook's chart, its names set anew for large type."""
    teacher = _teacher_run()
    points = [{"name": "teacher, fine-tuned", "x": teacher["parameters"],
               "y": teacher["job_accuracy"]}]  # fmt: skip
    for found, shape, runs in ((_taught(), "2×128", ("triple loss", "alone")),
                               (_tiny(), "2×64", ("without attention", "alone"))):  # fmt: skip
        jobs = outcome(found, "job_accuracy")
        points += [
            {"name": f"{shape}, {run}", "x": found["runs"][run][0]["parameters"],
             "y": mean(jobs[run]), "low": min(jobs[run]), "high": max(jobs[run])}
            for run in runs
        ]  # fmt: skip
    figure = tradeoff_chart(points, x="weights", y="the hero's job, share right", percent=True)
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


def _rows() -> tuple[dict[str, float], dict[str, float]]:
    """Table 1: BERT-base, with the README's MNLI, and DistilBERT."""
    rows = printed("glue")
    return rows["bert_base_dev_distilbert"]["scores"], rows["distilbert_dev"]["scores"]


def _lost() -> dict[str, float]:
    """Points by which DistilBERT differs from BERT-base, the greatest loss first."""
    theirs, ours = _rows()
    lost = {task: ours[task] - theirs[task] for task in ours}
    return dict(sorted(lost.items(), key=lambda item: item[1]))


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
        parts += [words(end, y + 24, _signed(points), 20, anchor),
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


def _retained() -> str:
    theirs, ours = (glue_average(row, "dev-9") for row in _rows())
    return f"{ours / theirs:.1%}"


# ---------------------------------------------------------------- 18, 19: to keep

CHOSEN = ("E15", "E83", "E104", "slip 1 twice")


def claims_rows() -> str:
    return drawing.claims_rows("06", CHOSEN)


def exercises() -> str:
    return drawing.exercise_list("06")


def _percent(values: Sequence[float]) -> str:
    return f"{mean(values):.0%}"


def _words(name: str) -> str:
    return _percent(_found("masked_accuracy")[name])


def _job(name: str) -> str:
    return _percent(_found("job_accuracy")[name])


def _tiny_size() -> str:
    """The narrow student's share of the teacher's weights."""
    return f"{_tiny()['runs']['all'][0]['parameters'] / _teacher_run()['parameters']:.0%}"


def _in_letters(number: int) -> str:
    return ("no", "one", "two", "three", "four", "five", "six")[number]


def _starts_range() -> str:
    """Points between the best and the worst mean on the task, of those begun as layers."""
    means = [mean(values) for name, values in _begun("job_accuracy").items() if _chosen(name)]
    return f"{100 * (max(means) - min(means)):.1f}"


def _head_width(family: str, size: str) -> int:
    config = published(family, size)
    return config.hidden_size // config.num_heads


def _gpu_hours() -> int:
    training = printed("distilbert")["training"]
    return int(training["gpus"] * training["hours"])


NUMBERS: dict[str, Callable[[], Any]] = {
    "distil_share": lambda: _share("DistilBERT"),
    "tiny_share": lambda: _share("TinyBERT-4"),
    "fewer": lambda: f"{1 - _parts('DistilBERT').all / _parts('BERT-base').all:.0%}",
    "times_cpu": lambda: f"{_times():.2f}",
    "less_time": lambda: f"{1 - 1 / _times():.0%}",
    "less_kept": _less_kept,
    "kept_width": lambda: NARROW["hidden_size"],
    "scores": lambda: ", ".join(f"{w} {x:g}" for w, x in zip(WORDS, LOGITS, strict=True)),
    "ratio_1": lambda: _ratio(1.0),
    "ratio_2": lambda: _ratio(2.0),
    "ratio_4": lambda: _ratio(4.0),
    "cross_entropy": lambda: f"{_apart()[1]:.4f}",
    "entropy": lambda: f"{_apart()[2]:.4f}",
    "fades": lambda: round(_gradient(1.0) / (_gradient(8.0) / 8**2)),
    "teacher_layers": lambda: _in_letters(_teacher().config.num_layers),
    "teacher_width": lambda: _teacher().config.hidden_size,
    "teacher_weights": lambda: _teacher_run()["parameters"],
    "teacher_found": lambda: f"{_teacher_run()['masked_accuracy']:.0%}",
    "stories": lambda: STORIES,
    "runners_up": _runners_up,
    "rest_8": lambda: f"{_softened(8.0).rest:.0%}",
    "temperature": lambda: f"{FULL.temperature:g}",
    "every_other": lambda: _as_list(every_other_layer(12, 6)),
    "spread": lambda: _as_list(spread_layers(12, 6)),
    "same_as_teacher": lambda: f"{_same_as_its_teacher():.5f}",
    "steps": lambda: FULL.steps,
    "seeds": lambda: _in_letters(len(SEEDS)),
    "labelled": lambda: LABELLED,
    "soft_words": lambda: _points("without soft targets", "masked_accuracy"),
    "mlm_words": lambda: _points("without masked words", "masked_accuracy"),
    "cosine_words": lambda: _points("without cosine", "masked_accuracy"),
    "fresh_words": lambda: _words("fresh weights"),
    "alone_words": lambda: _words("alone"),
    "fresh_jobs": lambda: _job("fresh weights"),
    "alone_jobs": lambda: _job("alone"),
    "fresh_gain": lambda: f"{100 * mean(_change('fresh weights', 'job_accuracy', 'alone')):.0f}",
    "top_words": _top_is_best,
    "spread_words": lambda: _percent(_begun("masked_accuracy")["spread"]),
    "starts_range": _starts_range,
    "paper_fresh": lambda: _signed(printed("distilbert")["ablation"]["fresh_weights"], 2),
    "mappings": _mappings,
    "does_not_fit": does_not_fit,
    "matrix_shape": lambda: f"{_matrix().in_features} × {_matrix().out_features}",
    "matrix_size": lambda: count_parameters(_matrix()),
    "tiny_width": lambda: published("tinybert", "4").hidden_size,
    "base_width": lambda: published("bert", "base").hidden_size,
    "tiny_head": lambda: _head_width("tinybert", "4"),
    "copies": lambda: TINY.copies,
    "tiny_weights": lambda: _tiny()["runs"]["all"][0]["parameters"],
    "tiny_general": lambda: TINY.general,
    "tiny_inner": lambda: TINY.inner,
    "tiny_prediction": lambda: TINY.prediction,
    "tiny_all": lambda: _percent(_jobs()["all"]),
    "tiny_alone": _alone_no_worse,
    "tiny_labels": lambda: _percent(_jobs()["without the teacher's answers"]),
    "tiny_neither": lambda: _percent(_jobs()["without both layer losses"]),
    "tiny_best": _best_without_attention,
    "tiny_gained": lambda: f"{100 * mean(_tiny_change('without attention')):.0f}",
    "tiny_paper": lambda: _paper_changes("losses")["without_attention"].removeprefix("−"),
    "tiny_fifth": _tiny_size,
    "first_attention": lambda: f"{_first_losses()['attention']:.1f}",
    "first_hidden": lambda: f"{_first_losses()['hidden']:.1f}",
    "first_embedding": lambda: f"{_first_losses()['embedding']:.1f}",
    "paper_general": lambda: _paper_changes("stages")["without_general"],
    "paper_task": lambda: _paper_changes("stages")["without_task"],
    "paper_augment": lambda: _paper_changes("stages")["without_augmentation"],
    "paper_top": lambda: _paper_changes("mapping", "uniform")["top"],
    "paper_bottom": lambda: _paper_changes("mapping", "uniform")["bottom"],
    "half_jobs": lambda: f"{mean(_found('job_accuracy')['triple loss']):.1%}",
    "teacher_jobs": lambda: f"{_teacher_run()['job_accuracy']:.1%}",
    "every_words": lambda: _percent(_begun("masked_accuracy")["every other"]),
    "bottom_words": lambda: _percent(_begun("masked_accuracy")["bottom"]),
    "tiny_teacher": lambda: f"{_tiny()['taught_by']['job_accuracy']:.1%}",
    "distil_mean": lambda: f"{glue_average(_rows()[1], 'dev-9'):.1f}",
    "bert_mean": lambda: f"{glue_average(_rows()[0], 'dev-9'):.1f}",
    "retained": _retained,
    "gpu_hours": _gpu_hours,
    "tb_teacher": lambda: printed("tinybert")["glue"]["teacher"],
    "tb_6": lambda: printed("tinybert")["glue"]["tinybert_6"],
    "tb_4": lambda: str(printed("tinybert")["glue"]["tinybert_4"]),
    "tb_tiny": lambda: printed("tinybert")["glue"]["bert_tiny"],
    "most_lost": lambda: f"{-min(_lost().values()):.1f}",
    "claims_in_all": lambda: len(claims("06")),
    "exercise_minutes": lambda: drawing.exercise_minutes("06"),
}  # fmt: skip
