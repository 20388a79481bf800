"""What deck 05 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from math import log10
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
    marked_points,
    rect,
    spread,
    stacked_bars,
    svg,
    table,
    words,
)

from course_lib import bert, count_parameters, published
from course_lib.family.albert import (
    SHARING,
    AlbertConfig,
    FactorisedEmbeddings,
    SharedStack,
    albert,
    apply_halves,
    parameter_breakdown,
    sharing_plan,
)
from course_lib.lectures.lecture_05.experiments import LIVE, WIDTHS
from course_lib.lectures.lecture_05.numbers import (
    TOKENS,
    Sign,
    albert_weights,
    average,
    base,
    corner_curves,
    factors,
    grid_accuracy,
    guessed,
    mean_of_five,
    models,
    points_lost,
    sentence_tasks,
    sharing_grid,
    the_world,
    toy,
    wrong_pair_signs,
)
from course_lib.lectures.lecture_05.views import pairs, scores
from course_lib.objectives.masked_lm import mask_whole_words
from course_lib.objectives.sentence_order import make_ordered_pairs
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import bar_chart, curves_chart, dots_chart, heat_chart, tokens_row
from course_lib.teaching.claims import parameters, printed, settled
from course_lib.teaching.memory import activation_bytes
from course_lib.teaching.numbers import millions
from course_lib.teaching.results import outcome
from course_lib.teaching.style import BLUE, GREEN, GREY, INK, ORANGE
from course_lib.text.wordpiece import word_numbers

SIZES = ("base", "large", "xlarge", "xxlarge")
SAID = {"all": "all", "attention": "attention", "feed_forward": "feed-forward", "none": "nothing"}
BOLD = ' font-weight="650"'


# ---------------------------------------------------------------- 2, 3: two factors


def cut_in_two() -> str:
    """The wide matrix; the narrow one and its projection. E and H on one scale, V cut short."""
    config, (whole, narrow, matrix) = base(), factors()
    V, E = f"V = {config.vocab_size:,}", f"E = {config.embedding_size}"
    H, wide = f"H = {config.hidden_size}", 300
    thin = wide * config.embedding_size / config.hidden_size
    x, y = 744, 152  # of the matrix
    upright = ' transform="rotate(-90 {} 150)"'.format
    return svg(
        1150, 318,
        rect(70, 34, wide, 236, fill="#fdf1d6", ink=ORANGE, wide=2),
        words(220, 22, H), words(56, 150, V, style=upright(56)),
        words(220, 160, f"{whole:,}", 26, style=BOLD),
        words(220, 304, "BERT: a row of H numbers a piece"),
        words(412, 164, "→", 40),
        words(512, 160, f"{narrow:,}", 26, style=BOLD), words(618, 150, V, style=upright(618)),
        rect(632, 34, thin, 236, fill="#fdf1d6", ink=ORANGE, wide=2),
        words(632 + thin / 2, 22, E), words(714, 162, "·", 40),
        rect(x, y - thin / 2, wide, thin, fill="#e0f3ed", ink=GREEN, wide=2, dash="7 4"),
        words(x + 150, y - thin / 2 - 12, H), words(x + wide + 8, y + 7, E, 20, "start"),
        words(x + 150, y + 60, f"{matrix:,}", 26, style=BOLD),
        words(824, 304, "ALBERT: a short row, and one matrix for all"),
        says="an embedding matrix V×H beside one of V×E and a matrix E×H",
    )  # fmt: skip


def toy_factors() -> str:
    """The notebook's toy: three tokens, E = 2, H = 3; token 2 and its product are shaded."""
    short, widen = toy()
    long = short @ widen
    blocks = (
        _matrix("embeddings, V×E", short.tolist(), 2),
        '<div style="font-size:34px;padding-top:44px">·</div>',
        _matrix("matrix, E×H", widen.tolist()),
        '<div style="font-size:34px;padding-top:44px">=</div>',
        _matrix("rows, V×H", long.tolist(), 2),
    )
    return f'<div style="display:flex;gap:26px;margin:0 0 14px">{"".join(blocks)}</div>'


def _matrix(name: str, rows: Sequence[Sequence[float]], shaded: int = -1) -> str:
    def row(number: int, values: Sequence[float]) -> str:
        ground = "background:#cfe5f3;font-weight:650;" if number == shaded else ""
        cells = (
            f'<td style="{ground}padding:5px 12px;text-align:right">{v:g}</td>'.replace("-", "−")
            for v in values
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(row(n, values) for n, values in enumerate(rows))
    head = f'<span style="font-size:22px;white-space:nowrap">{name}</span>'
    return f'<div>{head}<table style="margin:6px 0;font-size:24px">{body}</table></div>'


def code_embeddings() -> str:
    made = body_of(FactorisedEmbeddings.__init__, start="self.tables")
    return code(f"{made}\n\n# forward\n{body_of(FactorisedEmbeddings.forward)}")


# ---------------------------------------------------------------- 4, 5: one block, many layers

PALETTE = (
    ("#e3f0f8", BLUE),
    ("#fdf1d6", "#8a5f00"),
    ("#e0f3ed", "#00745a"),
    ("#f9e7f1", "#9c3f74"),
)
SHOWN_LAYERS = 4


def _plans() -> dict[str, tuple[list[tuple[int, int]], int]]:
    """For each way to share: the library's plan for four layers, and the size of a base model."""
    layers = {"num_layers": SHOWN_LAYERS}
    found = {
        sharing: (
            sharing_plan(AlbertConfig(sharing=sharing, **layers)),
            albert_weights(sharing=sharing),
        )
        for sharing in reversed(SHARING)
    }
    two = sharing_plan(AlbertConfig(num_groups=2, **layers))
    return found | {"two groups": (two, albert_weights(groups=2))}


def plans() -> str:
    """Columns of four layers, each in two halves; the number says which block works there."""
    parts = []
    for k, (name, (plan, count)) in enumerate(_plans().items()):
        x = 20 + 228 * k
        said = f"shared: {SAID[name]}" if name in SAID else name
        parts += [
            words(x + 92, 18, said, 18, style=BOLD),
            words(x + 92, 276, f"base: {millions(count)}", 20),
            arrow(x + 92, 254, x + 92, 244),
        ]
        for layer, halves in enumerate(plan):
            y = 190 - 54 * layer
            for half, (work, block) in enumerate(zip(("attend", "feed"), halves, strict=True)):
                fill, ink = PALETTE[block]
                dash, at = "6 3" if half else "", x + 94 * half
                parts.append(
                    rect(at, y, 90, 48, f"{work} {block}", size=18, fill=fill, ink=ink, wide=2,
                         dash=dash)
                )  # fmt: skip
    return svg(1150, 284, *parts, says="which block works in which layer, five ways to share")


def code_stack() -> str:
    """The plan as layers, and what a layer is."""
    source = f"# layers\n{body_of(SharedStack.layers)}\n\n# apply_halves\n{body_of(apply_halves)}"
    return f'<div style="zoom:0.9">{code(source)}</div>'


def ladder() -> str:
    """BERT-base, then one cut, then both, as bars of one scale."""
    steps = {
        "BERT-base": published("bert", "base"),
        "factorised": published("albert", "base", AlbertConfig, sharing="none"),
        "and one block": base(),
    }
    most = parameters(bert, "base")
    models = []
    for name, config in steps.items():
        found = parameter_breakdown(config)
        parts = [
            (count / most, f"{part} {millions(count)}" if count > most / 2 else millions(count))
            for part, count in found.items()
        ]
        models.append((name, parts, f"<strong>{millions(sum(found.values()))}</strong>"))
    looks = ((HATCH, INK), ("#fff", INK), (BLUE, "#fff"), ("#d9d9d9", INK))
    return stacked_bars(models, looks, left=160, right=100)


def four_sizes() -> str:
    paper = printed("albert")["sizes"]
    rows = []
    for size in SIZES:
        config, count = published("albert", size, AlbertConfig), albert_weights(size)
        shape = f"{config.num_layers} × {config.hidden_size:,}"
        against = "base" if size == "base" else "large"
        fewer = f"{parameters(bert, against) / count:.1f} times"
        rows.append((f"<strong>{size}</strong>", shape, f"{count:,}",
                     f"{fewer} (BERT-{against})", f"{paper[size] // 10**6}M"))  # fmt: skip
    head = ("ALBERT", "layers × width", "counted", "fewer than", "the paper says")
    return table(head, rows, size=22)


# ---------------------------------------------------------------- 6, 7: what is not saved


def weights_and_work() -> str:
    """Two bars a model: its weights to one scale, its FLOPs to another."""
    most = [max(pair[i] for pair in models().values()) for i in (0, 1)]
    parts = [words(180, 18, "weights", 20, "start", BOLD),
             words(640, 18, f"FLOPs for {TOKENS} tokens", 20, "start", BOLD)]  # fmt: skip
    for k, (name, (weights, work)) in enumerate(models().items()):
        y = 34 + 48 * k
        shared = name.startswith("ALBERT")
        look = {"fill": "#e0f3ed", "ink": "#00745a", "dash": "6 3"} if shared else {
            "fill": "#cfe5f3", "ink": BLUE}  # fmt: skip
        left, right = 330 * weights / most[0], 360 * work / most[1]
        parts += [
            words(166, y + 24, name, 20, "end"),
            rect(180, y, left, 34, **look, wide=2),
            words(190 + left, y + 24, millions(weights), 20, "start"),
            rect(640, y, right, 34, **look, wide=2),
            words(650 + right, y + 24, f"{work / 1e9:.4g} G", 20, "start"),
        ]
    return svg(1150, 276, *parts, says="weights and FLOPs of BERT and ALBERT")


@lru_cache(maxsize=2)
def _stored(sharing: str) -> tuple[float, float]:
    """Megabytes of weights, and of activations stored for the backward pass, as in the
    notebook: base, four texts of 128 tokens, a vocabulary of 1,000."""
    torch.manual_seed(0)
    model = albert("base", sharing=sharing, vocab_size=1_000)
    ids = torch.randint(5, 1_000, (4, TOKENS))
    return 4 * count_parameters(model) / 1e6, activation_bytes(model, ids) / 1e6


def activations_stored() -> str:
    rows = [
        (name, *(f"{megabytes:,.0f} MB" for megabytes in _stored(sharing)))
        for name, sharing in (("twelve blocks", "none"), ("one block, twelve times", "all"))
    ]
    return table(("base, 4 texts", "weights", "activations stored"), rows, size=22)


def speed_and_score() -> Any:
    """The paper's Table 2: for each model, throughput in training against its mean of tasks."""
    overall = printed("albert")["overall"]
    points = []
    for name, throughput in overall["throughput"].items():
        size = name.removeprefix("bert_")
        family, symbol, colour, count = (
            ("BERT", "square", BLUE, parameters(bert, size)) if size != name
            else ("ALBERT", "circle", "#00745a", albert_weights(size))
        )  # fmt: skip
        said = f"{family}-{size}, {count / 1e6:.0f}M"
        side = -1 if throughput > 1 or name == "xlarge" else 1
        points.append((throughput, overall[name][-1], said, symbol, colour, side))
    ticks = {t: f"{t:g}×" for t in sorted(set(overall["throughput"].values()))}
    return marked_points(
        points, {}, "training throughput, BERT-large = 1", "mean of five tasks", (0.25, 7),
        (79, 90), ticks,
    )  # fmt: skip


# ---------------------------------------------------------------- 8: what it costs in points


def lost_bars() -> Any:
    """The paper's Table 4: points won or lost by each way to share."""
    groups = {
        f"E = {width}": (
            {SAID[part]: -points for part, points in points_lost(width).items()}, colour, shape
        )
        for width, colour, shape in (("128", ORANGE, "/"), ("768", BLUE, ""))
    }  # fmt: skip
    legend = {"x": 0, "y": 0, "xanchor": "left", "yanchor": "bottom"}
    return grouped_bars(groups, (-3.4, 0.6), legend, 540, 390)


def width_lines() -> Any:
    """The paper's Table 3: the mean of five tasks over the embedding width E."""
    tables = printed("albert")["embedding_size"]
    curves = {
        said: [[(float(width), row[-1]) for width, row in tables[part].items()]]
        for said, part in (("own blocks", "not_shared"), ("one block", "all_shared"))
    }
    figure = curves_chart(
        curves, title="", log_x=True,
        x_title="E, embedding width (logarithmic)", y_title="mean of five tasks",
    )  # fmt: skip
    widths = [int(width) for width in tables["all_shared"]]
    figure.update_xaxes(tickvals=widths, ticktext=[str(w) for w in widths])
    figure.update_xaxes(range=[log10(58), log10(850)])
    return for_a_hall(figure, 540, 390, right=190).update_annotations(font_size=18)


# ---------------------------------------------------------------- 9: in order, or swapped


@lru_cache(maxsize=1)
def _two_stories() -> tuple[list[str], list[str]]:
    """Two stories of the micro-world, a text a sentence."""
    world = the_world()
    documents = [d for d in world.documents(world.stories(8, seed=4)) if len(d) == 5]
    first, second = ([_as_text(sentence) for sentence in d] for d in documents[:2])
    return first, second


def _as_text(ids: Sequence[int]) -> str:
    return " ".join(the_world().tokenizer.token(i) for i in ids).replace(" .", ".")


def a_story() -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in _two_stories()[0])
    return f'<ol style="font-size:21px;margin-bottom:8px">{items}</ol>'


def three_pairs() -> str:
    """What the two tasks make of a story: in order, swapped, and NSP's wrong B."""
    says = "a pair in order, the same swapped, a pair of two stories"
    return svg(548, 148, *pairs.three_pairs(), says=says)


def shared_words() -> Any:
    kinds = {"commoner label": "majority<br>class", "shared": "bag of<br>words"}
    values = {
        f"{task}:<br>{said}": guessed(task, kind)
        for task in ("NSP", "SOP")
        for kind, said in kinds.items()
    }
    figure = bar_chart(values, percent=True, y_title="accuracy")
    figure.update_traces(marker_color=[GREY, ORANGE, GREY, BLUE])
    figure.update_xaxes(tickangle=0, tickfont_size=18)
    return for_a_hall(figure, 540, 410)


# ---------------------------------------------------------------- 10, 11: tested on both


def tested_on_both() -> Any:
    groups = {
        f"trained on {a}, tested on {b}": outcome(sentence_tasks(), b)[a]
        for a in ("NSP", "SOP")
        for b in ("NSP", "SOP")
    }
    figure = dots_chart(
        groups, percent=True, title="", y_title="accuracy", levels={"chance level": 0.5}
    )
    return for_a_hall(figure, 1120, 300, right=210)


def both_tables() -> str:
    """Ours beside the paper's Table 5: mean over seeds, held-out pairs and masked tokens."""
    paper = printed("albert")["sentence_loss"]["intrinsic"]
    rows = []
    for task, said in (("none", "MLM alone"), ("NSP", "NSP"), ("SOP", "SOP")):
        ours = [
            spread(outcome(sentence_tasks(), what)[task], "")
            for what in ("NSP", "SOP", "masked_accuracy")
        ]
        hidden, nsp, sop = paper[task]
        rows.append((f"<strong>{said}</strong>", *ours, f"{nsp}", f"{sop}", f"{hidden}"))
    head = ("trained with", "NSP", "SOP", "masked tokens", "paper: NSP", "SOP", "masked tokens")
    return table(head, rows, size=21)


def signs_table() -> str:
    said = {
        "opens": "B begins like a story's opening",
        "late": "<em>finally</em> in A, <em>first</em> in B",
        "neither": "neither",
    }
    signs = wrong_pair_signs()
    rows = [
        (text, *(cell for task in ("NSP", "SOP") for cell in _sign_cells(signs[task][name])))
        for name, text in said.items()
    ]
    head = ("", "of NSP's pairs", "NotNext", "of SOP's pairs", "swapped")
    return table(head, rows, size=22)


def _sign_cells(sign: Sign) -> tuple[str, str]:
    return f"{sign.fraction:.0%}", f"{sign.wrong:.0%}"


def two_openings() -> str:
    """A wrong pair of NSP and a swapped one of SOP: both have an opening in B."""
    return svg(1150, 134, *pairs.two_openings(), says="two wrong pairs, both with an opening in B")


# ---------------------------------------------------------------- 12: the grid


def grid() -> Any:
    """The notebook's chart, with the weights of each model in its cell."""
    figure = heat_chart(
        [[100 * grid_accuracy(width, sharing) for sharing in SHARING] for width in WIDTHS],
        rows=[f"E = {width}" for width in WIDTHS], columns=[SAID[s] for s in SHARING],
        x_title="what the layers share",
    )  # fmt: skip
    figure.update_traces(
        text=[[_in_cell(width, sharing) for sharing in SHARING] for width in WIDTHS],
        texttemplate="%{text}", textfont_size=22, showscale=False,
    )  # fmt: skip
    return for_a_hall(figure, 690, 350)


def _in_cell(width: int, sharing: str) -> str:
    weights = sharing_grid()["runs"][f"E={width}, {sharing}"][0]["parameters"]
    return f"<b>{grid_accuracy(width, sharing):.1%}</b><br>{weights / 1000:.0f}k"


# ---------------------------------------------------------------- 13: where the runs stop


def past_the_plateau() -> Any:
    """The notebook's chart: the grid's corners, four times the steps."""
    figure = curves_chart(
        corner_curves(), x_title="steps", y_title="masked-token accuracy", percent=True, title=""
    )
    figure.update_xaxes(nticks=4)
    figure.update_yaxes(range=[0, 1])  # room for four names, one above the other
    return drawing.apart(for_a_hall(figure, 650, 370, right=265), 0.075)


# ---------------------------------------------------------------- 14: runs of words


def run_table() -> str:
    """Length of a run, its probability, and the fraction of masked words in such runs."""
    chances = dict(enumerate(settled("05", "runs of words").value, start=1))
    masked = sum(n * chance for n, chance in chances.items())
    rows = [(str(n), str(chance), str(n * chance / masked)) for n, chance in chances.items()]
    return table(("run of", "probability", "of masked words"), rows, size=24)


@lru_cache(maxsize=1)
def _heldout_row() -> PackedSequences:
    """The row of the notebook: the first SOP pair of the held-out stories."""
    world = the_world()
    told = world.documents(world.stories(LIVE.heldout, seed=0, split="heldout"))
    return make_ordered_pairs(told, world.special, length=LIVE.length)[:1]


def two_masked_rows() -> str:
    world, row = the_world(), _heldout_row()
    word_of = word_numbers(world.tokenizer, row.input_ids, row.attention_mask)
    lines = []
    for most in (1, printed("albert")["masking"]["longest"]):
        masked = mask_whole_words(row, world.special, word_of, seed=3, max_words=most)
        ids, done = masked.input_ids[0, :28].tolist(), masked.action[0, :28].tolist()
        shown = tokens_row([world.tokenizer.token(i) for i in ids], done).inner
        said = "single words" if most == 1 else f"runs of up to {most}"
        lines.append(f'<p style="margin:0 0 6px">{said}</p>{large(shown, 1.3)}')
    return '<div style="height:14px"></div>'.join(lines)


# ---------------------------------------------------------------- 15, 16: its scores


SCORED = {
    "BERT-large": "bert_large_dev",
    "RoBERTa-large": "roberta_large_dev",
    "ALBERT-xxlarge": "albert_dev",
}


def scores_bars() -> Any:
    means = {name: average(row) for name, row in SCORED.items()}
    figure = bar_chart(means, y_title="mean of eight tasks")
    figure.update_traces(
        marker_color=[BLUE, ORANGE, "#00745a"],
        text=[f"{score:.2f}" for score in means.values()],
    )
    figure.update_xaxes(ticktext=[name.replace("-", "-<br>") for name in means])
    return for_a_hall(figure, 540, 400)


def three_numbers() -> str:
    test = printed("glue")["albert_test"]
    rows = (
        (f"{mean_of_five('base')}", "ALBERT-base: two SQuADs, MNLI, SST-2, RACE"),
        (f"{average('albert_dev'):.2f}", "xxlarge: eight GLUE tasks, dev, one model"),
        (f"{test['printed']}", f"GLUE test server, {test['model'].split(', ')[1]}"),
    )
    shown = [(f"<strong>{score}</strong>", what) for score, what in rows]
    return table(("“ALBERT's score”", "of what"), shown, numbers=False, size=22)


# ---------------------------------------------------------------- 17, 18: to keep


def ensembles() -> str:
    """The averages of the GLUE table's lower half, with the number of models behind each."""
    below = printed("albert")["glue_ensembles"]
    rows = [
        (said, _models(scores.models_behind(name)), f"{below[name][-1]}")
        for name, said in scores.NAMES.items() if name in below
    ]  # fmt: skip
    rows.sort(key=lambda row: row[-1])
    return table(("GLUE test, ensembles", "models", "mean"), rows, size=22)


def reading() -> str:
    """SQuAD 2.0 and RACE on test: one model, and the ensemble."""
    _, *rows = scores.reading_rows()
    shown = [(row[0], _models(row[1]), row[-2], row[-1]) for row in rows if row[-1] != "–"]
    return table(("test", "models", "SQuAD 2.0", "RACE"), shown, size=22)


def _models(behind: str) -> str:
    """The number of models alone: 1, 5–7, from 6–17, ?."""
    for words_around in ("ensemble, ", "ensemble of ", " models"):
        behind = behind.replace(words_around, "")
    return "1" if behind == "one model" else behind
