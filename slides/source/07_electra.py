"""What deck 07 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from functools import lru_cache
from math import log10
from typing import Any

import torch
from drawing import (
    MONO,
    apart,
    body_of,
    code,
    for_a_hall,
    large,
    marked_points,
    rect,
    spread,
    svg,
    table,
    words,
)

from course_lib import count_parameters, electra, published
from course_lib.family.electra import (
    GENERATOR_SIZE,
    Electra,
    ElectraConfig,
    fill_in,
    generator_config,
)
from course_lib.lectures.lecture_07.ablation_steps import ABLATION_STEPS
from course_lib.lectures.lecture_07.experiments import ENDS, RATES, SEEDS
from course_lib.lectures.lecture_07.numbers import (
    GENERATOR_MEASURES,
    MEASURES,
    at_rate,
    bert_encoder,
    cost,
    curve_of,
    disc_fraction,
    disc_weight,
    example_corruption,
    generator_costs,
    generator_runs,
    paper_score,
    past_runs,
    price,
    untrained,
    variants,
)
from course_lib.lectures.lecture_07.views.corruptor import ROWS, corruption_tables
from course_lib.lectures.lecture_07.views.networks import DISC, GEN
from course_lib.objectives.replaced_tokens import electra_loss, replaced_labels, replaced_token_loss
from course_lib.teaching import curves_chart
from course_lib.teaching.numbers import signed
from course_lib.teaching.results import outcome
from course_lib.teaching.style import BLUE, GREEN, INK, ORANGE, VERMILION, template
from course_lib.train.watch import ALIKE

SIZES = ("small", "base", "large")
BOLD = ' font-weight="650"'


# ---------------------------------------------------------------- 2: two networks


# ---------------------------------------------------------------- 3: by hand

TEXT = ["the", "gardener", "waters", "the", "old", "roses"]
MASKED = ["the", "gardener", "[MASK]", "the", "[MASK]", "roses"]
FILLED = ["the", "gardener", "waters", "the", "wet", "roses"]


def by_hand() -> str:
    """The notebook's sentence in three versions, and the label of each token."""
    labels = _hand_labels()
    lines = (
        ("the text", TEXT, 0),
        ("generator reads", MASKED, 56),
        ("discriminator reads", FILLED, 112),
    )
    parts = []
    for said, row, y in lines:
        parts.append(words(206, y + 28, said, 20, "end"))
        for i, word in enumerate(row):
            look: dict[str, Any] = {}
            if word == "[MASK]":
                look = {"fill": "#fdeecb", "ink": "#8a5f00", "wide": 2.5, "dash": "6 3"}
            elif row is FILLED and MASKED[i] == "[MASK]":
                look = {"ink": VERMILION, "wide": 4} if labels[i] else {"ink": GREEN, "wide": 3}
            parts.append(rect(222 + 155 * i, y, 145, 42, word, mono=True, size=21, **look))
    parts.append(words(206, 196, "label", 20, "end"))
    for i, label in enumerate(labels):
        said = f"{label}  {'replaced' if label else 'original'}"
        parts.append(
            words(294 + 155 * i, 196, said, 20, style=BOLD if MASKED[i] != TEXT[i] else "")
        )
    return svg(1150, 208, *parts, says="a sentence, with gaps, filled, and its labels")


@lru_cache(maxsize=1)
def _hand_labels() -> list[int]:
    """By the library, of word numbers that stand for the words."""
    number = {word: i for i, word in enumerate(dict.fromkeys(TEXT + FILLED))}
    at = torch.tensor([i for i, word in enumerate(MASKED) if word == "[MASK]"])
    filled = torch.tensor([[number[word] for word in FILLED]])
    selected = torch.tensor([number[TEXT[i]] for i in at.tolist()])
    return [int(label) for label in replaced_labels(filled, at, selected)[0]]


# ---------------------------------------------------------------- 4: where λ stands


def two_weightings() -> str:
    """The two sums as bars of one length: which part is the discriminator's?"""
    lam = disc_weight()
    parts = []
    shown = (
        (f"L_MLM + {lam} · L_Disc", "the paper", lam, 1, 0),
        (f"L_Disc + {lam} · L_MLM", "one lecture", 1, lam, 92),
    )
    for formula, who, disc, mlm, y in shown:
        part = disc_fraction(disc, mlm)
        wide = 800 * part
        parts += [
            words(0, y + 24, formula, 22, "start", f' style="{MONO}"'),
            words(0, y + 52, who, 20, "start"),
            rect(330, y, max(wide, 3), 62, "discriminator" if part > 0.5 else "", **DISC, wide=2.5),
            rect(330 + wide, y, 800 - wide, 62, "generator", **GEN, wide=2, dash="7 4"),
        ]
        digits = 1 if part > 0.01 else 2
        said = f"{100 * part:.{digits}f}%"
        if part > 0.5:
            parts.append(words(330 + 20, y + 40, said, 24, "start", BOLD))
        else:
            parts.append(words(345, y + 40, f"← {said} discriminator", 24, "start", BOLD))
    return svg(1150, 158, *parts, says="the discriminator's part of the loss, two ways to weigh")


# ---------------------------------------------------------------- 5: not an adversary


def code_forward() -> str:
    forward = body_of(Electra.forward, start="guess =")
    draw = body_of(fill_in, start="filled =")
    return code(f"{forward}\n\n# fill_in, under torch.no_grad\n{draw}")


@lru_cache(maxsize=1)
def _reached() -> tuple[int, int, int, int]:
    """Weights only the generator has, how many of them the discriminator's gradient reaches; the
    same of the embeddings both read."""
    torch.manual_seed(0)
    shape = {"hidden_size": 128, "num_heads": 2, "intermediate_size": 512, "embedding_size": 64}
    model = electra("small", vocab_size=2_000, num_layers=2, **shape)
    ids, at = torch.randint(5, 2_000, (2, 12)), torch.tensor([3, 11, 20])
    loss = replaced_token_loss(model(ids, predict_at=at), {"labels": ids.flatten()[at]})["total"]
    weights = list(model.generator.parameters())
    found = torch.autograd.grad(loss, weights, allow_unused=True)
    both = {id(p) for p in model.discriminator.parameters()}
    counts = [0, 0, 0, 0]
    for weight, gradient in zip(weights, found, strict=True):
        first = 2 * (id(weight) in both)
        counts[first] += weight.numel()
        counts[first + 1] += weight.numel() if gradient is not None else 0
    assert counts[1] == 0 and counts[2] == counts[3] > 0  # as the slide says
    return counts[0], counts[1], counts[2], counts[3]


def reached_table() -> str:
    own, heard, shared, heard_shared = _reached()
    rows = [
        ("own weights", f"{own:,}", f"<strong>{heard:,}</strong>"),
        ("shared embeddings", f"{shared:,}", f"<strong>{heard_shared:,}</strong>"),
    ]
    return table(("generator's", "weights", "reached"), rows, size=22)


# ---------------------------------------------------------------- 6: counted


@lru_cache(maxsize=1)
def _counts() -> dict[str, tuple[int, int, int]]:
    """For each size the kept encoder, its head, and what the generator adds to it."""
    found = {}
    with torch.device("meta"):  # shapes without memory
        for size in SIZES:
            both = electra(size)
            kept = both.discriminator
            added = count_parameters(both) - count_parameters(kept)
            found[size] = count_parameters(kept.encoder), count_parameters(kept.rtd), added
    return found


def counts_table() -> str:
    rows = []
    for size, (encoder, head, added) in _counts().items():
        config = published("electra", size, ElectraConfig)
        small = generator_config(config, GENERATOR_SIZE[size]).hidden_size
        shape = f"{config.num_layers} × {config.hidden_size:,} / {small}"
        rows.append((f"<strong>ELECTRA-{size}</strong>", shape, f"{encoder:,}", f"{head:,}",
                     f"{added:,}"))  # fmt: skip
    config = published("bert", "base")
    shape = f"{config.num_layers} × {config.hidden_size}"
    rows.append(("BERT-base, no pooler", shape, f"{bert_encoder():,}", "", ""))
    assert _counts()["base"][0] == bert_encoder()
    head = ("", "layers × widths", "encoder", "+ head", "generator adds")
    return table(head, rows, size=23)


# ---------------------------------------------------------------- 7: the loss in code


def code_loss() -> str:
    labels = body_of(replaced_labels)
    loss = body_of(replaced_token_loss, start="logits = outputs")
    lines = [line for line in loss.splitlines() if "upcast" not in line]
    at = next(i for i, line in enumerate(lines) if line.startswith("if not len"))
    lines = lines[:at] + lines[at + 2 : -1]
    weighed = body_of(electra_loss, start="def loss").replace(", only_masked=only_masked", "")
    return code("\n".join([labels, "", *lines, "", weighed.rsplit("\n\n", 1)[0]]))


# ---------------------------------------------------------------- 8: a corruptor


def corruptor() -> str:
    """The notebook's rows but the text, of a held-out story by the shipped ELECTRA."""
    return large(corruption_tables(example_corruption(), 1080, ROWS[1:]), 1.34)


# ---------------------------------------------------------------- 9: a long run


def long_run() -> Any:
    """What both networks of the shipped ELECTRA could do, every 500 steps."""
    curves = {
        "ROC-AUC": [curve_of("auc")],
        "slot-category probe": [curve_of("kinds")],
        "masked-token accuracy": [curve_of("words_by_generator")],
        "fraction replaced": [curve_of("replaced")],
    }
    figure = curves_chart(curves, x_title="training steps", y_title="", title="", percent=True)
    return apart(for_a_hall(figure, 1120, 400, right=300))


# ---------------------------------------------------------------- 10, 11: five ablation steps

READS = {
    "BERT": ("[MASK]", "the word", "masked"),
    "Replace MLM": ("sampled words", "the word", "masked"),
    "ELECTRA 15%": ("sampled words", "replaced or not", "masked"),
    "All-tokens MLM": ("sampled words", "the word, or “copy”", "all"),
    "ELECTRA": ("sampled words", "replaced or not", "all"),
}


def steps_table() -> str:
    rows = []
    for step in ABLATION_STEPS:
        reads, says, at = READS[step]
        before = (
            READS[ABLATION_STEPS[ABLATION_STEPS.index(step) - 1]] if step != "BERT" else READS[step]
        )
        cells = [
            f"<strong>{new}</strong>" if new != old else new
            for new, old in zip((reads, says, at), before, strict=True)
        ]
        rows.append((f"<strong>{step}</strong>", *cells, f"{cost(step):.2f}"))
    head = ("", "reads", "predicts", "where", "FLOPs, training step")
    return table(head, rows, numbers=False, size=23)


def paper_steps() -> Any:
    """Table 5 as points over BERT."""
    import plotly.graph_objects as go

    gained = {
        step: round(paper_score(step) - paper_score("BERT"), 1) for step in ABLATION_STEPS[1:]
    }
    figure = go.Figure(layout={"template": template()})
    everywhere = [READS[step][2] == "all" for step in gained]
    figure.add_bar(
        x=[step.replace(" ", "<br>").replace("-", "-<br>", 1) for step in gained],
        y=list(gained.values()),
        text=[f"{signed(points)}<br>({paper_score(step)})" for step, points in gained.items()],
        textposition="outside", textfont_size=19, cliponaxis=False, constraintext="none",
        marker={
            "color": [VERMILION if every else "#f0b48f" for every in everywhere],
            "pattern": {"shape": ["" if every else "/" for every in everywhere],
                        "fgcolor": "white", "solidity": 0.25},
        },
    )  # fmt: skip
    figure.update_yaxes(title_text="points over BERT", range=[0, 3.6], dtick=1)
    figure.update_xaxes(tickangle=0)
    return for_a_hall(figure, 640, 400)


# ---------------------------------------------------------------- 12, 13: measured here


def by_rate(measure: str) -> dict[str, list[list[tuple[float, float]]]]:
    """Of each ablation step and seed, what it reached at each learning rate of pre-training."""
    return {
        step: [[(rate, at_rate(step, rate, measure)[seed]) for rate in RATES] for seed in SEEDS]
        for step in ABLATION_STEPS
    }


def measured_steps() -> Any:
    """The five ablation steps after equal steps, at each learning rate."""
    figure = curves_chart(
        by_rate("kinds"), x_title="learning rate of pre-training", y_title="slot-category probe",
        title="", percent=True, log_x=True, levels={"random initialisation": untrained("kinds")},
    )  # fmt: skip
    return for_a_hall(figure, 1120, 390, right=260)


def alike_by_rate() -> Any:
    """How alike the vectors of different texts are: of both ends, at each learning rate."""
    figure = curves_chart(
        {step: runs for step, runs in by_rate("likeness").items() if step in ENDS},
        x_title="learning rate of pre-training", y_title="likeness", title="", log_x=True,
        levels={"collapsed": ALIKE},
    )  # fmt: skip
    return for_a_hall(figure, 1120, 390, right=200)


def past_table() -> str:
    """Both families of probes and fine-tuning, past the plateau, with the control."""
    rows = [
        (said, *(spread(values, "") for values in past_runs(measure).values()))
        for measure, said in MEASURES.items()
    ]
    return table(("", "BERT", "ELECTRA", "random initialisation"), rows, size=23)


def generators_table() -> str:
    """What a wider generator brings, at equal steps."""
    costs = generator_costs()
    rows = [("FLOPs of a step", *(f"{cost:.2f}" for cost in costs.values()))]
    rows += [
        (said, *(spread(values, "") for values in generator_runs(measure).values()))
        for measure, said in GENERATOR_MEASURES.items()
    ]
    return table(("", *costs), rows, size=21)


CHANGED = {
    "generator 1/4": "generator 1/4 as wide",
    "generator 1/2": "generator 1/2 as wide",
    "untied": "two embedding matrices",
    "λ on the generator": "λ on the wrong term",
}


def variants_table() -> str:
    found = variants()
    costs = found["flops_a_step"]
    rows = [
        (
            CHANGED[name],
            f"{costs[name] / costs['generator 1/4']:.2f}",
            *(spread(outcome(found, m)[name], "") for m in ("auc", "kinds", "words_by_generator")),
        )
        for name in found["runs"]
    ]
    head = ("ELECTRA", "FLOPs of a step", "ROC-AUC", "slot-category probe", "masked-token accuracy")
    return table(head, rows, size=20)


# ---------------------------------------------------------------- 14, 15: at what price


PRICED = {  # row -> name, and where the name stands: right or left of its mark
    "bert_small": ("BERT-small", 1), "electra_small": ("ELECTRA-small", 1),
    "bert_base": ("BERT-base", 1), "electra_base": ("ELECTRA-base", -1),
    "bert_large": ("BERT-large", 1), "own_bert": ("the authors' BERT", 1),
    "electra_400k": ("ELECTRA-400K", -1), "roberta_500k": ("RoBERTa-500K", 1),
    "electra_1750k": ("ELECTRA-1.75M", 1),
}  # fmt: skip


SHIFTED = {"electra_1750k": 12, "roberta_500k": -12}  # names upwards, so that they do not touch


def prices() -> Any:
    """Tables 1 and 2: FLOPs of pre-training against the GLUE mean; arrows at equal price."""
    points = []
    for row, (name, side) in PRICED.items():
        ours = "ELECTRA" in name
        colour = VERMILION if ours else ORANGE if "RoBERTa" in name else BLUE
        flops, glue = price(row)
        symbol = "circle" if ours else "square"
        points.append((flops, glue, f"{name}, {glue}", symbol, colour, side))
    shifts = {f"{PRICED[row][0]}, {price(row)[1]}": up for row, up in SHIFTED.items()}
    figure = marked_points(
        points, shifts, "FLOPs of pre-training", "GLUE, development mean", (10**17.9, 10**22.7),
        (74, 91), {10.0**n: f"10<sup>{n}</sup>" for n in range(18, 23)}, height=410,
    )  # fmt: skip
    for below, above in (("bert_small", "electra_small"), ("bert_base", "electra_base"),
                         ("own_bert", "electra_400k")):  # fmt: skip
        (x, low), (_, high) = price(below), price(above)
        figure.add_annotation(
            x=log10(x), y=high - 0.35, ax=log10(x), ay=low + 0.35, axref="x", ayref="y", text="",
            showarrow=True, arrowhead=2, arrowwidth=2, arrowcolor=INK,
        )  # fmt: skip
    return figure


def whose_compute() -> str:
    """Quotients of FLOPs, and both scores."""
    named = {row: name for row, (name, _) in PRICED.items()} | {"xlnet": "XLNet"}
    rows = []
    for above, below in (
        ("electra_400k", "bert_large"),
        ("electra_400k", "roberta_500k"),
        ("electra_400k", "xlnet"),
        ("electra_base", "bert_large"),
        ("electra_base", "bert_base"),
    ):
        (cost, glue), (other, score) = price(above), price(below)
        rows.append((f"<strong>{named[above]}</strong>", named[below],
                     f"<strong>{cost / other:.2f}</strong>", f"{glue}", f"{score}"))  # fmt: skip
    head = ("this one", "divided by", "FLOPs", "its GLUE", "the other's")
    return table(head, rows, size=24)
