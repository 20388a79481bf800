"""What deck 06 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from statistics import mean
from typing import Any

import drawing
import torch
from drawing import (
    HATCH,
    arrow,
    body_of,
    code,
    for_a_hall,
    grouped_bars,
    large,
    rect,
    stacked_bars,
    svg,
    table,
    words,
)

from course_lib import published
from course_lib.config import encoder_flops
from course_lib.family.distilbert import initialise_from
from course_lib.family.tinybert import layer_mapping
from course_lib.kernels.distillation import soft_target_loss
from course_lib.lectures.lecture_06.claims import table_1
from course_lib.lectures.lecture_06.experiments import (
    HELDOUT,
    LENGTH,
    PRECISION,
    STARTS,
    TINY,
    randomly_initialised_student,
)
from course_lib.lectures.lecture_06.numbers import (
    ATTENTION_AXES,
    LOGITS,
    MEGABYTES,
    MODELS,
    STUDENT,
    WORDS,
    apart,
    as_list,
    attention_lines,
    gradient_norm,
    initial_layers,
    masked_story,
    megabytes,
    narrow_reached,
    narrow_students,
    needed,
    of_bert_base,
    paper_changes,
    parts_of,
    reached,
    reached_from,
    softened,
    stored_activations,
    students,
    task_changes,
    teacher_run,
    the_teacher,
    the_world,
    times_on_a_cpu,
)
from course_lib.lectures.lecture_06.views.drawings import (
    BOLD,
    PALE,
    two_rows,
)
from course_lib.lectures.lecture_06.views.temperature import IN_PRINT, soften, temperature_picture
from course_lib.objectives.distillation import attention_loss, distilbert_loss
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import ablation_chart, curves_chart, gradient_chart, tradeoff_chart
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import printed, settled
from course_lib.teaching.numbers import millions, percent, signed
from course_lib.teaching.results import outcome
from course_lib.teaching.style import BLUE, INK, ORANGE
from course_lib.text.augmentation import augment
from course_lib.text.tasks import unstated_facts
from course_lib.text.world import story_sequences
from course_lib.train.metrics import evaluate

TOKENS = 128  # of the text whose FLOPs are counted
PROBE = "unstated-fact probe"


# ---------------------------------------------------------------- 2, 3: by hand

SHOWN = (1.0, 2.0, 4.0)  # temperatures


def label_and_teacher() -> str:
    """The label beside the teacher's answer at three temperatures."""
    answers = [soften(LOGITS, WORDS, T, top=3) for T in SHOWN]
    label = answers[0]._replace(temperature=0.0, probabilities=[1.0, 0.0, 0.0])
    titles = ["the label", *(f"teacher, T = {T:g}" for T in SHOWN)]
    return large(temperature_picture([label, *answers], titles=titles).inner)


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
            "KL alone": [gradient_norm(T) / T**2 for T in TEMPERATURES],
            "T² · KL": [gradient_norm(T) for T in TEMPERATURES],
        },
        TEMPERATURES,
    )
    return for_a_hall(figure, 690, 400, right=250)


# ---------------------------------------------------------------- 5: a real teacher's soft targets


def masked_text() -> str:
    said = escape(masked_story()[0].replace(" .", ".")).replace("[MASK]", "<strong>[MASK]</strong>")
    return f'<p style="font-size:23px">{said}</p>'


def soft_targets() -> str:
    """The notebook's picture: the likeliest words at three temperatures, the true one hatched."""
    return large(temperature_picture([softened(T) for T in IN_PRINT]).inner)


# ---------------------------------------------------------------- 6, 12: from which layers


def code_begin() -> str:
    source = re.sub(r"  # type: ignore.*", "", body_of(initialise_from, start="for block"))
    return f'<div style="zoom:0.95;margin-top:6px">{code(source)}</div>'


# ---------------------------------------------------------------- 7: three losses


def code_losses() -> str:
    lines = body_of(distilbert_loss, start="    if soft:").splitlines()
    shown = [line[4:] for line in lines if line.strip() != "return loss"]
    return f'<div style="zoom:0.9">{code(chr(10).join(shown).rstrip())}</div>'


# ---------------------------------------------------------------- 8: is it right?


def four_models() -> str:
    """A bar a model: embeddings hatched, blocks plain, pooler grey."""
    most = parts_of("BERT-base").all
    models = []
    for name in MODELS:
        found = parts_of(name)
        parts = [(count / most, millions(count)) for count in found]
        models.append((name, parts, f"{found.all:,} &ensp;<strong>{of_bert_base(name)}</strong>"))
    return stacked_bars(models, ((HATCH, INK), (BLUE, "#fff"), ("#d9d9d9", INK)), 140, 226)


def what_was_cut() -> str:
    """What BERT-base has and DistilBERT has not, as a claim settles it."""
    names = ("six blocks", "segment embeddings", "pooler", "anything else")
    counts = settled("06", "E105").value
    rows = [(name, f"{count:,}") for name, count in zip(names, counts, strict=True)]
    return table(("gone", "parameters"), rows, size=22)


# ---------------------------------------------------------------- 9: faster at what?


def _flops(family: str, size: str) -> float:
    return encoder_flops(published(family, size), TOKENS) / 1e9


def speeds() -> str:
    speed = printed("distilbert")["speed"]
    whole, half = _flops("bert", "base"), _flops("distilbert", "base")
    weights = [4 * parts_of(name).all / 1e6 for name in ("BERT-base", "DistilBERT")]
    gpu = printed("tinybert")["speed"]["distilbert_6"]
    kept, less = stored_activations()
    rows = (
        (f"FLOPs, {TOKENS} tokens", f"{whole:.2f} G", f"{half:.2f} G", f"{whole / half:.2f}",
         "formula"),
        ("seconds, CPU, batch 1", f"{speed['bert_base']}", f"{speed['distilbert']}",
         f"<strong>{times_on_a_cpu():.2f}</strong>", "DistilBERT, Table 3"),
        ("time, K80 GPU", "", "", f"{gpu:.2f}", "TinyBERT, Table 1"),
        ("file of weights", f"{weights[0]:.0f} MB", f"{weights[1]:.0f} MB",
         f"{weights[0] / weights[1]:.2f}", "counted, 4 bytes each"),
        ("stored activations", f"{kept:.0f} MB", f"{less:.0f} MB", f"{kept / less:.2f}",
         "counted, a third as wide"),
    )  # fmt: skip
    return table(("", "12 layers", "6 layers", "times less", "source"), rows, size=23)


# ---------------------------------------------------------------- rows of dots


def _dots(
    names: Mapping[str, str], panels: Mapping[str, Mapping[str, Any]], levels: Sequence[float]
) -> Any:
    """The notebook's chart: a panel a measure, a row a recipe; dashed: the teacher's level."""
    groups = {
        what: {said: values[name] for name, said in names.items()}
        for what, values in panels.items()
    }
    figure = ablation_chart(groups, percent=True, title="", x_title="")
    low, high = figure.layout.xaxis.range
    figure.update_xaxes(range=[low, max(high, max(levels) + 0.02)], automargin=False)
    for axis, level in zip(("x", "x2"), levels, strict=False):
        figure.add_shape(
            type="line", xref=axis, yref="paper", x0=level, x1=level, y0=0, y1=1,
            line={"dash": "dash", "color": INK, "width": 2},
        )  # fmt: skip
    for_a_hall(figure, 1120, min(348, 80 + 42 * len(names))).update_annotations(font_size=16)
    figure.update_annotations(bgcolor="rgba(255,255,255,0.85)")  # the dashed line stands behind
    figure.update_yaxes(ticktext=list(names.values()), tickfont_size=19)
    return figure.update_layout(margin={"t": 28, "b": 32, "l": 320})


def _both(names: Mapping[str, str], reach: Callable[[str], Mapping[str, Any]]) -> Any:
    """Both measures of students, beside the teacher's."""
    teacher = teacher_run()
    return _dots(
        names,
        {"masked-token accuracy": reach("masked_accuracy"), PROBE: reach("job_accuracy")},
        (teacher["masked_accuracy"], teacher["job_accuracy"]),
    )


# ---------------------------------------------------------------- 10: leave one out

SAID = {
    "triple loss": "all three losses",
    "without soft targets": "without soft targets",
    "without masked words": "without MLM",
    "without cosine": "without cosine",
    "fresh weights": "all three, random init.",
    "teacher's layers, masked words only": "teacher's layers, MLM only",
    "alone": "random init., MLM only",
}
TABLE_4 = {
    "without soft targets": "without_soft",
    "without masked words": "without_mlm",
    "without cosine": "without_cosine",
    "fresh weights": "fresh_weights",
}


def left_out() -> Any:
    """Both measures of each student, and in its name the paper's change."""
    paper = printed("distilbert")["ablation"]
    changes = {name: f" ({signed(paper[row], 2)})" for name, row in TABLE_4.items()}
    return _both({name: said + changes.get(name, "") for name, said in SAID.items()}, reached)


# ---------------------------------------------------------------- 11: initialised from


@lru_cache(maxsize=1)
def _heldout() -> PackedSequences:
    """The new stories on which results were measured."""
    world = the_world()
    return story_sequences(world, world.stories(HELDOUT, seed=0, split="heldout"), LENGTH)


@lru_cache(maxsize=8)
def _before(name: str) -> float:
    """Masked-token accuracy of a student that is initialised, and has not made a step."""
    world = the_world()
    student = randomly_initialised_student(STARTS[name], the_teacher(), world, 0).eval()
    return evaluate(student, _heldout(), world.special, precision=PRECISION).masked_accuracy


def initialisations() -> Any:
    """Both measures, and in the name the layers and the masked-token accuracy at step 0."""
    names = {}
    for name in STARTS:
        layers = initial_layers(name)
        said = f"{name}: {as_list(layers)}" if layers else "random initialisation"
        names[name] = f"{said} ({_before(name):.1%})"
    return _both(names, reached_from)


# ---------------------------------------------------------------- 12, 13: TinyBERT's losses


def who_learns_from_whom() -> str:
    """TinyBERT-4 under BERT-base: who learns from whom."""
    small, whole = published("tinybert", "4"), published("bert", "base")
    M, N = small.num_layers, whole.num_layers
    layers = layer_mapping(M, N)
    teacher = ["input", *map(str, range(1, N + 1)), "output"]
    student = ["input", *map(str, range(1, M + 1)), "output"]
    pairs = {0: 0, M + 1: N + 1} | dict(enumerate(layers, start=1))
    said = (f"width {whole.hidden_size}", f"width {small.hidden_size}")
    dashes = {0: "8 4", M + 1: "2 4"}
    return svg(1150, 186, *two_rows(teacher, student, pairs, said, dashes, low=136),
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
    """Without the switch for the authors' program, which notes and page speak of."""
    source = re.sub(r"if over_padding:\n.*\n", "", body_of(attention_loss))
    source = source.replace("((real[:, :, None] | over_padding)", "(real[:, :, None]")
    return f'<div style="zoom:0.95">{code(source)}</div>'


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
    world = the_world()
    # The first stories of the task are those of any longer draw from the same seed.
    task = unstated_facts(world, world.stories(40, seed=0), LENGTH)[:1]
    grown = augment(task, the_teacher(), world.special, copies=3)
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
    "all": "all losses",
    "without attention": "without attention",
    "without hidden": "without hidden",
    "without both layer losses": "without both of these",
    "without embedding": "without embedding",
    "without the teacher's answers": "labels, not soft targets",
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
    """The probe of each student, and the paper's change where it left out the same."""
    paper = paper_changes("losses")
    reached_by = narrow_reached()
    rows = [
        (said, percent(reached_by[name]), paper.get(PRINTED.get(name, ""), ""))
        for name, said in TINY_SAID.items()
    ]
    return table(("student", "probe", "paper"), rows, size=18)


def attention_weights() -> Any:
    """The notebook's chart: the probe after few and after many general steps, by weight."""
    figure = curves_chart(attention_lines(), **ATTENTION_AXES, title="")
    low, high = figure.layout.yaxis.range
    figure.update_yaxes(range=[low, high + 0.2 * (high - low)])  # room for large labels
    return drawing.apart(for_a_hall(figure, 660, 320, right=268), 0.03)


# ---------------------------------------------------------------- 16: quality against size


def tradeoff() -> Any:
    """The notebook's chart, its names set anew for large type."""
    teacher = teacher_run()
    reached = (teacher["job_accuracy"], narrow_students()["taught_by"]["job_accuracy"])
    points = [
        {"name": f"teacher, {steps} steps", "x": teacher["parameters"], "y": y}
        for steps, y in zip((200, TINY.prediction), reached, strict=True)
    ]
    shown = (
        (students(), "2×128", ("triple loss", "alone")),
        (narrow_students(), "2×64", ("without attention", "alone")),
    )
    for found, shape, runs in shown:
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


def by_task() -> Any:
    return grouped_bars(
        {"DistilBERT": (task_changes(), BLUE, "")}, (-11, 5), {}, 690, 400
    ).update_layout(showlegend=False)


def _mean_with(mnli: float) -> str:
    """The mean of BERT-base's nine scores, were this its MNLI."""
    return f"{glue_average({**table_1()[0], 'MNLI': mnli}, 'dev-9'):.2f}"


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


# ---------------------------------------------------------------- 18: the budget

FITTED = {  # model -> family and size, row of TinyBERT's Table 1
    "BERT-base": ("bert", "base", "teacher"),
    "DistilBERT": ("distilbert", "base", "distilbert_6"),
    "TinyBERT-6": ("tinybert", "6", "tinybert_6"),
    "TinyBERT-4": ("tinybert", "4", "tinybert_4"),
}


def budget() -> str:
    """Weights against the budget's, FLOPs a second that its time asks for, GLUE as printed."""
    means, rows = printed("tinybert")["glue"], []
    for name, (family, size, row) in FITTED.items():
        weights = megabytes(name)
        fits = "✓" if float(weights) <= MEGABYTES else "✗"
        flops, asked = f"{_flops(family, size):.2f} G", needed(family, size)
        cost = (f"{weights} MB {fits}", flops, f"{asked} G/s")
        rows.append((name, *cost, f"{means[row]}"))
    rows.append(("its shape, no teacher", *cost, f"{means['bert_tiny']}"))
    return table(("", "weights", "FLOPs", "needed", "GLUE, test"), rows, size=20)


def when_to_take() -> str:
    rows = (
        ("DistilBERT", "many tasks, or tasks to come: distilled once, then fine-tuned"),
        ("TinyBERT", "one task, a tight budget: distilled anew for each task"),
        ("a small one, pre-trained", "no suitable teacher, or a shape that nobody distilled"),
        ("8 bits a weight", "nearly small enough: a quarter of the bytes, also of a student"),
    )
    return table(("take", "when"), rows, numbers=False, size=20)
