"""What deck 09 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from statistics import mean
from typing import Any

from drawing import body_of, code, for_a_hall, in_line, large, svg, table, wordless

from course_lib import MicroWorld
from course_lib.heads import SpanBoundaryHead
from course_lib.lectures.lecture_09.views import (
    chinese,
    graph,
    linked,
    spans,
    units,
)
from course_lib.objectives.span_boundary import spanbert_loss
from course_lib.teaching import ablation_chart
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import signed
from course_lib.teaching.results import outcome, stored
from course_lib.teaching.style import BLUE, ORANGE, template
from course_lib.teaching.tokens import tokens_row
from course_lib.text.knowledge_graph import world_graph
from course_lib.text.world import Story

NONE = "–"


@lru_cache(maxsize=1)
def world() -> MicroWorld:
    return MicroWorld.load()


@lru_cache(maxsize=1)
def stories() -> list[Story]:
    """The notebook's."""
    return world().stories(12, seed=5, split="heldout")


# ---------------------------------------------------------------- 2: three models


def three_models() -> str:
    rows = [
        (
            "masks",
            "spans of random length",
            "characters, phrases, names, each a unit",
            "single tokens",
        ),
        (
            "added loss",
            "span boundary (SBO)",
            "dialogue: is the answer real?",
            "entity alignment (dEA)",
        ),
        ("dropped", "NSP, second sentence", NONE, NONE),
        ("knowledge from", "text", "text in which names are marked", "a graph, as vectors"),
        ("links entities", "no", "<strong>no</strong>", "<strong>yes</strong>"),
        ("new, and kept", "nothing", "ReLU, 513 positions", "a stream of entities"),
        ("language", "English", "Chinese", "English"),
    ]
    rows = [(f"<strong>{row[0]}</strong>", *row[1:]) for row in rows]
    head = ("", "SpanBERT", "ERNIE (Baidu)", "ERNIE (Tsinghua)")
    return table(head, rows, numbers=False, size=21)


# ---------------------------------------------------------------- 3 to 5: spans


def masked_story() -> str:
    """The notebook's story under span masking."""
    return large(wordless(spans.spans_picture(world().tokenizer, stories()[1].text)), 1.4)


def lengths() -> str:
    found = spans.span_lengths()
    return svg(1120, 350, *spans.length_parts(found, 1100, 290, 22), says="lengths of spans")


def settings_table() -> str:
    decay = printed("spanbert")["decay"]
    rows = [
        ("p", "0.2", "0.3 by default, 0.2 in the published command"),
        ("last span", "complete words", "cut at the budget, inside a word too"),
        ("spans that touch", NONE, "merged, before the 80/10/10 draw"),
        ("SBO predicts", "every token", "the first 15 (default 20); no span at a sequence’s edge"),
        ("loss", "MLM + SBO, summed token by token", "mean MLM + sum of SBO / (n + 1)"),
        ("weight decay", f"{decay['paper']}", f"{decay['command']} in the published command"),
    ]
    rows = [(f"<strong>{row[0]}</strong>", *row[1:]) for row in rows]
    return table(("", "the paper", "the program"), rows, numbers=False, size=24)


# ---------------------------------------------------------------- 6, 7: the boundary


def code_boundary() -> str:
    head, loss = body_of(SpanBoundaryHead.forward), body_of(spanbert_loss)
    return code(f"# the head\n{head}\n\n# the loss\n{loss}")


# ---------------------------------------------------------------- 8: names


def fits_table() -> str:
    """How many names of three words fit, with one word masked and with all three."""
    one = world_graph(world())
    facts = [
        (one.entities[h], one.relations[r], one.entities[t]) for h, r, t in one.triples.tolist()
    ]
    city = {h: t for h, r, t in facts if r == "city" and len(h.split()) == 3}
    name = "sleeping falcon square"
    rows = []
    for gaps in ({2}, {0}, {0, 1, 2}):
        fits = [
            n for n in city
            if all(i in gaps or word == name.split()[i] for i, word in enumerate(n.split()))
        ]  # fmt: skip
        shown = " ".join("[MASK]" if i in gaps else w for i, w in enumerate(name.split()))
        there = sum(city[n] == city[name] for n in fits)
        rows.append((f"<code>{shown}</code>", f"{len(fits)}", f"{there}"))
    return table(("", "names that fit", f"of these in the city {city[name]}"), rows, size=22)


SEEDS = {"basic": 59, "phrase": 20, "entity": 0}  # under which the sentence meets a mask


def masked_units() -> str:
    """One sentence of the notebook's story, masked at each level."""
    story, rows = stories()[4], ""
    first = ["[CLS]", *story.text.split()].index("then")
    for level, seed in SEEDS.items():
        parts = units.units_row(world(), story, units.story_units(world(), story, level), seed)
        row = tokens_row(*(part[first : first + 10] for part in parts))
        name = f'<b style="flex:0 0 76px;font-size:15px;line-height:34px">{level}</b>'
        rows += f'<div style="display:flex">{name}{row.inner}</div>'
    return large(rows, 1.4)


# ---------------------------------------------------------------- 10: in Chinese


def chinese_units() -> str:
    """One sentence of the notebook's Chinese story, masked at each level."""
    in_chinese = MicroWorld.load(language="chinese")
    story = in_chinese.stories(12, seed=5, split="heldout")[CHINESE_STORY]
    said, rows = chinese.glosses(story, world()), ""
    before = sum(len(trace.word) for line in story.trace[:SENTENCE] for trace in line)
    for level, seed in CHINESE_SEEDS.items():
        selected = chinese.selected_characters(story, level, seed)[before:]
        row = chinese.line_html(story.trace[SENTENCE], said[SENTENCE], selected, level)
        name = f'<b style="flex:0 0 92px;font-size:14px;line-height:36px">{level}</b>'
        rows += f'<div style="display:flex">{name}{row}</div>'
    return large(rows, 1.18)


CHINESE_STORY, SENTENCE = 9, 2  # "first drallar writes the letter near ancient swan square"
CHINESE_SEEDS = {"characters": 10, "words": 7, "names": 10}


def chinese_measured() -> Any:
    """The world in Chinese: what is found again, by what was masked together."""
    found = stored("09_chinese")
    panels = {"a character": "character", "a word": "word_exact", "a fact": "fact_exact"}
    groups = {said: outcome(found, measure) for said, measure in panels.items()}
    figure = ablation_chart(groups, percent=True, title="Chinese", x_title="accuracy")
    return for_a_hall(figure, 1140, 282)


# ---------------------------------------------------------------- 11 to 14: the graph


def graph_picture() -> str:
    shown = world_graph(world())
    here = shown.about("goza")
    parts = graph.graph_parts(
        shown, "goza", [x for x in here if x[0] == "goza"], [x for x in here if x[2] == "goza"], 190
    )
    return svg(1120, 190, *parts, says="what the graph says of goza")


def step_picture() -> str:
    return svg(545, 292, *graph.step_parts(0.95), says="two towns, two countries, one step")


def linked_story() -> str:
    shown = linked.linked_picture(
        world_graph(world()), world().tokenizer, stories()[0].text, seed=3
    )
    return large(wordless(shown), 1.4)


# ---------------------------------------------------------------- 14, 15: measured


def masks_measured() -> Any:
    """Whole spans, names and single tokens, by what was masked together in pre-training."""
    found = stored("09_masks")
    panels = {"single tokens": "masked_accuracy", "whole spans": "span_exact",
              "whole names": "name_exact"}  # fmt: skip
    groups = {said: outcome(found, measure) for said, measure in panels.items()}
    figure = ablation_chart(groups, percent=True, title="masks", x_title="accuracy")
    return in_line(for_a_hall(figure, 1140, 286))


def tasks_measured() -> str:
    """Answers and coreference after fine-tuning on few questions, by seed."""
    found = stored("09_masks")
    answers = outcome(found, "answers_mean")
    same, other = (outcome(found, f"whose_{kind}_mean") for kind in ("same", "different"))
    coreference = {
        run: [mean(pair) for pair in zip(same[run], other[run], strict=True)] for run in same
    }
    runs = ("tokens", "spans", "spans + SBO")
    rows = [
        (f"{said}, {seed} seed", *(f"{100 * of[run][n]:.1f}%" for run in runs),
         *(f"<strong>{signed(100 * (of[run][n] - of[base][n]))}</strong>"
           for base, run in pairwise(runs)))
        for said, of in (("answers", answers), ("coref", coreference))
        for n, seed in enumerate(("first", "second"))
    ]  # fmt: skip
    return table(("F1", *runs, "by spans", "by SBO"), rows, size=18)


def fusion_measured() -> Any:
    """Three tasks with the most labels each, by the vectors that the entities have."""
    found = stored("09_fusion")
    panels = {"relation": "relation 500", "country": "country 100", "kind": "kind 100"}
    groups = {said: outcome(found, key) for said, key in panels.items()}
    figure = ablation_chart(groups, percent=True, title="vectors", x_title="accuracy")
    return for_a_hall(figure, 1140, 400)


# ---------------------------------------------------------------- 16, 17: printed


def gains() -> Any:
    """What each of SpanBERT's three changes adds, on two tasks (Tables 6 and 7)."""
    import plotly.graph_objects as go

    masks, steps = printed("spanbert")["masks"], printed("spanbert")["steps"]
    pairs = {
        "spans": (masks["geometric"], masks["subword"]),
        "one sequence": (steps["one"], steps["two_and_nsp"]),
        "SBO": (steps["one_and_sbo"], steps["one"]),
    }
    figure = go.Figure(layout={"template": template(), "barmode": "group", "bargap": 0.3})
    for task, said, colour, shape in (
        ("squad_2", "SQuAD 2.0", BLUE, ""),
        ("coref", "coreference", ORANGE, "/"),
    ):
        values = [round(after[task] - before[task], 1) for after, before in pairs.values()]
        figure.add_bar(
            x=list(pairs), y=values, name=said, marker_color=colour, textposition="outside",
            text=[signed(value) for value in values], textfont_size=20, cliponaxis=False,
            marker_pattern={"shape": shape, "fgcolor": "white", "solidity": 0.25},
        )  # fmt: skip
    figure.update_yaxes(title_text="points", range=[-2, 3.4])
    figure.update_layout(showlegend=True, legend={"x": 0.02, "y": 0.98})
    return for_a_hall(figure, 545, 430)


def test_table() -> str:
    rows = printed("spanbert")["test"]
    names = {"google_bert": "Google's BERT", "our_bert": "BERT, trained again",
             "bert_1seq": "BERT, one sequence",
             "spanbert": "<strong>SpanBERT</strong>"}  # fmt: skip
    cells = [
        (said, *(" / ".join(f"{x}" for x in rows[row][task]) for task in ("squad_1", "squad_2")))
        for row, said in names.items()
    ]
    return table(("test sets, EM / F1", "SQuAD 1.1", "SQuAD 2.0"), cells, size=20)


TASKS = {
    "xnli": "XNLI", "lcqmc": "LCQMC", "msra_ner": "MSRA-NER", "chnsenticorp": "ChnSentiCorp",
    "dbqa": "NLPCC-DBQA", "dureader": "DuReader, reading", "figer": "FIGER, typing",
    "open_entity": "Open Entity, typing", "fewrel": "FewRel, relations",
    "tacred": "TACRED, relations",
}  # fmt: skip


def ernies_printed() -> str:
    """Both ERNIEs against BERT, as printed."""
    baidu, tsinghua = printed("ernie"), printed("ernie_tsinghua")["tasks"]
    pairs = {
        task: (who, *(one[task][::-1] if who == "Baidu" else one[task]))
        for who, one in (("Baidu", baidu["test"] | baidu["reading"]), ("Tsinghua", tsinghua))
        for task in TASKS if task in one
    }  # fmt: skip
    digits = {"Baidu": 1, "Tsinghua": 2}  # as printed
    rows = [
        (TASKS[task], who, *(f"{score:.{digits[who]}f}" for score in (bert, ernie)),
         f"<strong>{signed(round(ernie - bert, 2))}</strong>")
        for task, (who, bert, ernie) in pairs.items()
    ]  # fmt: skip
    return table(("", "ERNIE of", "BERT", "ERNIE", "points"), rows, size=20)
