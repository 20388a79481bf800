"""What deck 04 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from statistics import mean
from typing import Any

import torch
from drawing import (
    apart,
    arrow,
    code,
    embeddings_and_blocks,
    for_a_hall,
    grouped_bars,
    large,
    rect,
    spread,
    svg,
    table,
    words,
)

from course_lib import count_parameters, pretraining_batches
from course_lib.family.roberta import position_ids_after_padding
from course_lib.lectures.lecture_04 import numbers
from course_lib.lectures.lecture_04.claims import average
from course_lib.lectures.lecture_04.experiments import LIVE, SCHEMES
from course_lib.lectures.lecture_04.numbers import (
    FEW,
    ODD,
    PARTS,
    ROBERTA_BETA2,
    STAGES,
    bpe,
    ends,
    over_ten_copies,
    paper,
    power,
    text_and_steps,
    world,
)
from course_lib.lectures.lecture_04.views.byte_pieces import word_merges
from course_lib.lectures.lecture_04.views.mask_epochs import legend, mask_epochs_print
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import coverage_chart, curves_chart, dots_chart, tokens_row
from course_lib.teaching.claims import difference, printed
from course_lib.teaching.coverage import coverage
from course_lib.teaching.numbers import percent, signed
from course_lib.teaching.style import BLUE, FAINT, GREEN, INK, ORANGE, VERMILION, template
from course_lib.teaching.tokens import PLAIN
from course_lib.train.schedule import adam_trace, warmup_then_linear

WAYS = tuple(SCHEMES)  # static, ten copies, dynamic


# ---------------------------------------------------------------- 2: the model


def size_bars() -> str:
    """Both models as bars of one scale: the embedding matrix, and the blocks."""
    whole = {name: count_parameters(model) for name, model in numbers.models().items()}
    lines = []
    for name, model in numbers.models().items():
        parts = {"tokens": model.embeddings.token, "blocks": model.stack}
        counts = {said: count_parameters(part) for said, part in parts.items()}
        drawn = [
            (count / max(whole.values()), f"{said} {count / 1e6:.1f}M")
            for said, count in counts.items()
        ]
        total = f"<strong>{whole[name] / 1e6:.1f}M</strong>"
        lines.append(embeddings_and_blocks(name, drawn, left=172, total=total))
    return "".join(lines)


def three_tables() -> str:
    """Rows of the three tables, and what the difference costs."""
    width = numbers.models()["BERT-base"].config.hidden_size
    lines, found = [], 0
    for name, said in (("token", "pieces"), ("position", "positions"), ("segment", "segments")):
        theirs, ours = numbers.table_rows(name)
        found += (ours - theirs) * width
        lines.append((said, f"{theirs:,}", f"{ours:,}", _more((ours - theirs) * width)))
    both = [count_parameters(model) for model in numbers.models().values()]
    lines.append(("all else", "", "", _more(both[1] - both[0] - found)))
    return table(("embedding rows for", "BERT", "RoBERTa", "parameters"), lines, size=21)


def _more(number: int) -> str:
    return f"{number:+,}".replace("-", "−")


IDS = (0, 713, 16, 10, 1296, 2, 1, 1)  # the sequence of the notebook
READ = ("<s>", "This", "is", "a", "test", "</s>", "<pad>", "<pad>")


def positions() -> str:
    """A sequence with padding, and the two ways to number its positions."""
    pad = IDS.index(1)
    ours = position_ids_after_padding(torch.tensor([IDS]), pad_token_id=1)[0].tolist()
    rows = (("BERT counts", list(range(len(IDS))), "#f2f2f2"), ("RoBERTa counts", ours, "#fdf1d6"))
    parts = []
    for i, token in enumerate(READ):
        dash = "5 4" if i >= pad else ""
        parts.append(rect(190 + 104 * i, 2, 96, 34, escape(token), size=18, mono=True, dash=dash))
    for k, (said, counted, fill) in enumerate(rows):
        y = 44 + 40 * k
        parts.append(words(0, y + 24, said, 19, "start"))
        parts += [
            rect(190 + 104 * i, y, 96, 34, str(n), fill=fill, size=18, dash="5 4" * (i >= pad))
            for i, n in enumerate(counted)
        ]
    return svg(1040, 122, *parts, says="positions from 0, and after the padding's id")


# ---------------------------------------------------------------- 3, 4: masks over epochs

SHOWN = 12  # epochs: from the eleventh on, ten copies repeat


def masks_over_epochs() -> str:
    grid = mask_epochs_print(world().tokenizer, epochs=SHOWN).inner
    return f'<div style="zoom:.97">{grid}</div>'


def mask_legend() -> str:
    """What the cells mean, as the notebook says it; and the frame."""
    frame = f'<span style="border:2px dashed {INK};padding:0 9px">&nbsp;</span> no new mask'
    style = "display:flex;gap:24px;font-size:18px;align-items:center;margin:0"
    return (
        f'<div style="{style}"><span style="zoom:1.25">{legend()}</span><span>{frame}</span></div>'
    )


def code_draw() -> str:
    """The line of `pretraining_batches` in which the three schemes differ."""
    lines = inspect.getsource(pretraining_batches).splitlines()
    return code(next(line.strip() for line in lines if line.strip().startswith("mask_epoch =")))


def coverage_lines() -> Any:
    figure = coverage_chart(paper()["rate"], int(LIVE.epochs), 10, simulated=numbers.counted())
    return for_a_hall(figure, 690, 430, right=212)


def coverage_table() -> str:
    """The formula's fractions after some epochs."""
    shown = (1, 2, 10, numbers.epochs_by_schedule(), int(LIVE.epochs))
    shares = [coverage(paper()["rate"], max(shown), copies) for copies in SCHEMES.values()]
    rows = [(str(n), *(f"{one[n - 1]:.1%}" for one in shares)) for n in shown]
    return table(("epochs", "static", "ten", "dynamic"), rows, size=20)


# ---------------------------------------------------------------- 5, 6: measured


def loss_curves() -> Any:
    curves = {
        way: [[(p["step"], p["heldout_loss"]) for p in run["curve"]] for run in runs]
        for way, runs in numbers.result()["runs"][FEW].items()
    }
    # What the slide says about this figure: worse than word frequencies with one mask only.
    last = {way: mean(values) for way, values in ends("heldout_loss").items()}
    assert last["static"] > numbers.by_frequency() > last["ten copies"] > last["dynamic"]
    figure = curves_chart(
        curves, x_title="step", y_title="loss (nats)", title="",
        levels={"word frequencies": numbers.by_frequency()},
    )  # fmt: skip
    return apart(for_a_hall(figure, 1120, 310, right=230), gap=0.8)


def losses() -> str:
    """What each scheme reached in the end: means over seeds."""
    head = ("masking", "own masks", "same stories, new masks", "new stories", "accuracy there")
    rows = []
    for way in WAYS:
        cells = [
            f"{mean(ends(m)[way]):.3f}" if m == "train_loss" else f"{mean(ends(m)[way]):.2f}"
            for m in ("train_loss", "retold_loss", "heldout_loss")
        ]
        rows.append((f"<strong>{way}</strong>", *cells, spread(ends("heldout_accuracy")[way])))
    return table(head, rows, size=22)


def _dots(of: str) -> Any:
    figure = dots_chart(ends("heldout_accuracy", of), percent=True, title="", y_title="accuracy")
    figure.update_yaxes(range=[0, 1], tickformat=".0%")
    figure.update_xaxes(tickfont_size=17)
    return for_a_hall(figure, 550, 292)


def dots_few() -> Any:
    return _dots(FEW)


def four_cells() -> str:
    """Text and steps apart: masked-token accuracy with dynamic masking."""
    rows = [
        (f"{stories:,} stories", *(percent(values) for values in row.values()))
        for stories, row in text_and_steps().items()
    ]
    steps = (f"{steps:,} steps" for steps in next(iter(text_and_steps().values())))
    return table(("dynamic", *steps), rows, size=20)


def gains() -> str:
    """What dynamic masking gains on ten copies, the mean of the seeds."""
    rows = [(what, signed(100 * mean(points))) for what, points in over_ten_copies().items()]
    return table(("dynamic against ten copies", "points"), rows, size=22)


# ---------------------------------------------------------------- 7, 9, 12: the paper's tables


def masking_table() -> str:
    rows = printed("roberta")["masking"]
    said = {"published": "BERT-base, Yang et al.", "static": "their own, ten copies",
            "dynamic": "their own, dynamic"}  # fmt: skip
    lines = [(name, *map(str, rows[key])) for key, name in said.items()]
    gains = difference("roberta", "masking", "dynamic", "static")
    gained = (f"<strong>{signed(d)}</strong>" for d in gains.values())
    lines.append(("<strong>dynamic against ten</strong>", *gained))
    return table(("masks", *rows["columns"]), lines, size=23)


FORMATS = {  # row of Table 2: how it is named and drawn
    "sentence-pair": ("single sentences, NSP", VERMILION, "x"),
    "full-sentences": ("full sentences, no NSP", BLUE, ""),
    "doc-sentences": ("doc-sentences, no NSP", GREEN, "/"),
}


def format_bars() -> Any:
    """Points won or lost against segment pairs with NSP."""
    groups = {
        name: (difference("roberta", "input_formats", key, "segment-pair"), colour, shape)
        for key, (name, colour, shape) in FORMATS.items()
    }
    legend = {"orientation": "h", "x": 0, "y": -0.02, "yanchor": "top"}
    return grouped_bars(groups, [-3, 2], legend)


def _stage(key: str) -> str:
    """roberta_16GB_100k in words."""
    _, text, steps = key.split("_")
    return f"{text.replace('GB', ' GB')}, {steps.replace('k', ',000')} steps"


def stage_bars() -> Any:
    """Points over BERT-large, stage upon stage."""
    import plotly.graph_objects as go

    figure = go.Figure(layout={"template": template(), "barmode": "stack", "bargap": 0.35})
    tasks = printed("roberta")["stages"]["columns"]
    for before, key in pairwise(["bert_large", *STAGES]):
        points = list(difference("roberta", "stages", key, before).values())
        colour, shape = STAGES[key]
        figure.add_bar(
            y=tasks, x=points, orientation="h", name=_stage(key), width=0.6,
            text=[signed(p) for p in points] if colour == BLUE else None, textposition="inside",
            insidetextanchor="middle", textangle=0, textfont={"size": 20, "color": "#fff"},
            marker={
                "color": colour, "line": {"color": "#fff", "width": 1},
                "pattern": {"shape": shape, "fgcolor": "white", "solidity": 0.3},
            },
        )  # fmt: skip
    whole = list(difference("roberta", "stages", key, "bert_large").values())
    for task, gained in zip(tasks, whole, strict=True):
        figure.add_annotation(x=gained, y=task, text=signed(gained), showarrow=False, xshift=30)
    figure.update_yaxes(autorange="reversed", ticks="", showline=False)
    figure.update_xaxes(title_text="points over BERT-large", range=[0, max(whole) + 0.8])
    legend = {"orientation": "h", "x": -0.1, "y": -0.24, "yanchor": "top", "font": {"size": 19},
              "traceorder": "normal", "entrywidth": 270}  # fmt: skip
    figure.update_layout(showlegend=True, legend=legend)
    return for_a_hall(figure, 690, 410)


def cost() -> str:
    """What it took, beside BERT-large."""
    theirs, ours = paper(), printed("roberta")["settings"]["large"]
    data = [v for v in printed("roberta")["data"].values() if isinstance(v, int)]
    flops = printed("roberta")["compute"]
    rows = (
        ("text, GB", str(printed("roberta")["data"]["books_and_wikipedia"]), str(sum(data))),
        ("batch size", f"{theirs['batch']:,}", f"{ours['batch']:,}"),
        ("steps", f"{theirs['steps']:,}", f"{ours['steps']:,}"),
        ("learning rate", power(theirs["learning_rate"]), power(ours["learning_rate"])),
        ("β₂", str(theirs["beta2"]), str(ROBERTA_BETA2)),
        ("FLOPs", *(power(flops[run], 1) for run in ("bert_large", "roberta_500k"))),
    )
    return table(("large", "BERT", "RoBERTa"), rows, size=20)


# ---------------------------------------------------------------- 8: input formats


def four_formats() -> str:
    """Three sequences of each format as strips, and how much of all is padding."""
    parts = [words(816, 16, "padding, all sequences", 18, "start")]
    for k, (name, rows) in enumerate(numbers.filled().items()):
        y = 30 + 98 * k
        nsp = "no NSP" if rows.next_sentence_label is None else "NSP"
        parts += [
            words(0, y + 26, name, 20, "start", ' font-weight="650"'),
            words(0, y + 52, nsp, 18, "start"),
        ]
        for n in range(3):
            parts.append(_strip(rows, n, 180, y + 26 * n))
        share, full = rows.padding_share, 200
        parts += [
            rect(816, y + 14, full, 42, fill="#fff", ink=FAINT),
            rect(816, y + 14, full * share, 42, fill="#bdbdbd", ink=INK, dash="5 4"),
            words(1030, y + 43, f"{share:.0%}", 24, "start", ' font-weight="650"'),
        ]
    return svg(1120, 30 + 98 * 4, *parts, says="sequences in four formats and their padding")


def _strip(rows: PackedSequences, number: int, x: float, y: float) -> str:
    """One sequence: segments by shade, special tokens dark, padding dashed and white."""
    wide, special = 9.6, world().special
    ids, kinds = rows.input_ids[number].tolist(), rows.token_type_ids[number].tolist()
    real = int(rows.attention_mask[number].sum())
    looks = (("#cfe5f3", BLUE), ("#fbe3b5", "#8a5f00"))
    cells = []
    for i in range(real):
        fill, ink = looks[kinds[i]]
        if ids[i] in (special.cls, special.sep):
            fill = ink = INK
        at = f'x="{x + wide * i:.1f}" y="{y}" width="{wide - 1:.1f}" height="20"'
        cells.append(f'<rect {at} fill="{fill}" stroke="{ink}" stroke-width="0.7"/>')
    left = wide * (len(ids) - real)
    if left:
        at = f'x="{x + wide * real:.1f}" y="{y}" width="{left - 1:.1f}" height="20"'
        cells.append(f'<rect {at} fill="#fff" stroke="#8a8a8a" stroke-dasharray="5 4"/>')
    return "".join(cells)


# ---------------------------------------------------------------- 10, 14: large batches, and Adam


def accumulation() -> str:
    parts, right, wrong = numbers.added()
    count = sum(selected for selected, _ in PARTS)
    rows = [
        (f"part {k}", str(n), f"{loss:.1f}", f"{n} · {loss:.1f} / {count} = {part:.1f}")
        for k, ((n, loss), part) in enumerate(zip(PARTS, parts, strict=True), start=1)
    ]
    rows.append(
        ("<strong>together</strong>", str(count), f"<s>{wrong:.1f}</s>",
         f"<strong>{right:.1f}</strong>")
    )  # fmt: skip
    return table(("", "selected", "mean loss", "part of the whole"), rows, size=22)


def batch_table() -> str:
    rows = printed("roberta")["batch"]["rows"]
    best = [min(rows, key=lambda row: row[3])[3], *(max(row[k] for row in rows) for k in (4, 5))]
    lines = [
        (f"{batch:,}", f"{steps:,}", power(rate),
         *(f"<strong>{v}</strong>" if v == top else str(v)
           for v, top in zip(scores, best, strict=True)))
        for batch, steps, rate, *scores in rows
    ]  # fmt: skip
    return table(("batch", "steps", "rate", "perplexity", "MNLI-m", "SST-2"), lines, size=22)


def jump() -> Any:
    gradients = [1.0] * 100 + [10.0] * 100
    betas = (paper()["beta2"], ROBERTA_BETA2)
    traces = {
        f"β₂ {beta}": [list(enumerate(adam_trace(gradients, betas=(0.9, beta))))] for beta in betas
    }
    figure = curves_chart(traces, x_title="step", y_title="size ÷ learning rate", title="")
    return _named_only(for_a_hall(figure, 550, 350, right=120))


def _climb_and_fall(
    learning_rate: float, warmup: int, steps: int, **_: Any
) -> Iterator[tuple[int, float]]:
    for step in range(0, steps, 1_000):
        yield step, learning_rate * warmup_then_linear(step, steps, warmup / steps)


def learning_rates() -> Any:
    settings = printed("roberta")["settings"]
    curves = {size: [list(_climb_and_fall(**s))] for size, s in settings.items()}
    figure = curves_chart(curves, x_title="step", y_title="learning rate", title="")
    figure.update_xaxes(tickvals=[0, 250_000, 500_000])
    return apart(_named_only(for_a_hall(figure, 540, 350, right=80)), gap=7e-5)


def _named_only(figure: Any) -> Any:
    """Labels without the last value, where that says nothing."""
    for label in figure.layout.annotations:
        label.text = label.text.rsplit(" ", 1)[0]
    return figure


# ---------------------------------------------------------------- 11: bytes

WORD = " sentence"


def merges() -> str:
    """One word from its bytes to its pieces, a row a merge."""
    return large(word_merges(bpe(), WORD)[1], 1.28)


def odd_pieces() -> str:
    pieces = bpe().pieces(ODD)
    row = large(tokens_row(pieces, [PLAIN] * len(pieces)).inner, 1.35)
    return f'<p style="margin:0 0 6px">“{escape(ODD)}”</p>{row}'


# ---------------------------------------------------------------- 13: averages


def four_averages() -> str:
    """Each row one way to average; only what stands in one row may be compared."""
    glue = printed("glue")
    ensemble = glue["roberta_test"]["printed"]
    rows = (
        ("eight dev sets, one model",
         (("BERT-large", average("bert_large_dev")), ("RoBERTa", average("roberta_large_dev")))),
        ("BERT's Table 1: nine test numbers",
         (("BERT-large", average("bert_large_test")),)),
        ("leaderboard: nine test sets",
         (("BERT-large", average("bert_large_leaderboard")), ("RoBERTa, ensemble", ensemble))),
        ("one test set alone, MNLI",
         (("BERT-base", glue["bert_base_test"]["scores"]["MNLI"][0]),)),
    )  # fmt: skip
    parts, places = [], {}
    for k, (said, marks) in enumerate(rows):
        y = 34 + 58 * k
        parts.append(words(0, y + 6, said, 19, "start"))
        parts.append(arrow(340, y, 1120, y, tip=False, dash="2 6"))
        for model, value in marks:
            places[k, model] = (_at(value), y)
            exact = f"{value:.2f}" if k < 3 and value != ensemble else f"{value}"
            parts += _mark(_at(value), y, f"{model} {exact}", "RoBERTa" in model)
    (x1, y1), (x2, _) = places[0, "BERT-large"], places[0, "RoBERTa"]
    (x3, y3), (x4, y4) = places[3, "BERT-base"], places[2, "RoBERTa, ensemble"]
    parts += [
        arrow(x1 + 12, y1, x2 - 13, y1),
        words((x1 + x2) / 2, y1 + 24, "like for like", 18),
        arrow(x3 + 12, y3 - 4, x4 - 9, y4 + 10, dash="7 5"),
        words((x3 + x4) / 2 - 8, (y3 + y4) / 2 - 6, "as quoted", 18, "end"),
    ]
    return svg(1150, 228, *parts, says="averages called GLUE, a row a recipe")


def _at(value: float) -> float:
    """Where a score lies on the axis, from 79 to 91."""
    return 340 + (value - 79) / 12 * 780


def _mark(x: float, y: float, said: str, filled: bool) -> list[str]:
    look = f'fill="{ORANGE if filled else "#fff"}" stroke="{INK}" stroke-width="2"'
    bold = ' font-weight="650"'
    beside = words(x - 18, y - 8, said, 18, "end", bold)  # an arrow leaves to the right, upwards
    return [
        f'<circle cx="{x:.0f}" cy="{y}" r="9" {look}/>',
        beside if "BERT-base" in said else words(x, y - 15, said, 18, style=bold),
    ]


def like_for_like() -> str:
    s = printed("roberta")["squad"]
    rows = (
        (_unbroken(f"SQuAD 1.1: {s['roberta_1_dev']} against {s['bert_ensemble_triviaqa_1_test']}"),
         "one model, dev; seven models with extra data, test",
         f"{s['roberta_1_dev']} against {s['bert_large_1_dev']}, dev"),
        (_unbroken(f"SQuAD 2.0: {s['roberta_2_dev']} against {s['bert_large_2_test']}"),
         "dev; test",
         f"{s['roberta_2_dev']} against {s['bert_large_2_dev']} dev, "
         f"{s['roberta_2_test']} against {s['bert_large_2_test']} test"),
    )  # fmt: skip
    head = ("as quoted", "what the two numbers are", "like for like")
    return table(head, rows, numbers=False, size=22)


def _unbroken(text: str) -> str:
    return text.replace(" ", "\u00a0")
