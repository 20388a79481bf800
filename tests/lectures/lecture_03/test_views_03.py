"""The views of lecture 03: the library's own numbers, in words and in the picture."""

from __future__ import annotations

import json
import re
from itertools import product
from statistics import fmean
from typing import Any

import pytest
import torch
from view_parts import drawn, labels_of, picture_of, plain

from course_lib.family.bert import bert
from course_lib.heads import BertForTokenClassification
from course_lib.lectures.lecture_03.benchmark import progress, without
from course_lib.lectures.lecture_03.views import (
    answer_spans,
    code_words,
    cut_pairs,
    finetuning_charts,
    glue_tables,
    outcomes,
    reliability,
    span_pairs,
    tagged_words,
    task_heads,
)
from course_lib.objectives.sequences import SpecialIds
from course_lib.objectives.spans import best_spans
from course_lib.teaching.documentation_tasks import CODE_TAGS
from course_lib.text.packing import pack_pair
from course_lib.text.wordpiece import WordPiece

# ---------------------------------------------------------------- one encoder, four heads


def test_four_heads_read_what_they_should() -> None:
    view = task_heads.task_shapes()
    svg = drawn(view.html)
    panels = re.findall(r'<g transform="translate\(\d+,\d+\)">(.*?)</g>', svg)
    assert len(panels) == 4 and all("the same pre-trained encoder" in one for one in panels)
    read = [re.findall(r'class="(read|unread)"', one) for one in panels]
    tokens = [re.findall(r'style="font-family[^"]*">([^<]*)<', one) for one in panels]
    for panel, (marks, names) in enumerate(zip(read, tokens, strict=True)):
        assert len(marks) == len(names) and names[0] == "[CLS]" and names[-1] == "[SEP]"
        chosen = [name for name, mark in zip(names, marks, strict=True) if mark == "read"]
        last = len(names) - 1 - names[::-1].index("[SEP]", 1) if names.count("[SEP]") > 1 else 0
        assert chosen == [
            ["[CLS]"], ["[CLS]"], names[1:-1], ["[CLS]", *names[last + 1 : -1]],
        ][panel]  # fmt: skip
    answers = [re.findall(r'class="answer"[^>]*>([^<]*)<', one) for one in panels]
    assert answers[2] == ["B-PER", "O", "O", "B-LOC"] and answers[3][1:] == ["start", "end"]
    fills = {
        re.search(rf'class="{kind}"[^>]* fill="([^"]*)"', svg)[1] for kind in ("read", "unread")
    }  # type: ignore[index]
    assert sum("url(" in fill for fill in fills) == 1  # told apart without colour
    assert "<svg" not in view.html and len(view.html) < 40_000
    assert view.text in plain(view.html) and "2 × H for an answer" in view.text


# ---------------------------------------------------------------- code words in an own sentence


def test_an_own_sentence_is_tagged_word_by_word() -> None:
    tokenizer = WordPiece.from_words(["take", "the", "copy", "a", "_", "b", "."])
    torch.manual_seed(0)
    model = BertForTokenClassification(bert("tiny", vocab_size=tokenizer.vocab_size), CODE_TAGS)
    with torch.no_grad():
        model.classifier.bias.copy_(torch.tensor([0.0, 100.0, 0.0]))  # B-CODE, whatever comes
    live = code_words.code_words_view(model, tokenizer, "take the copy .")
    assert live.static.text.startswith("take(B-CODE) the(B-CODE) copy(B-CODE) .(B-CODE)")
    live.controls["text"].value = "copy a.b"
    assert plain(picture_of(live)).count("B-CODE") == 4  # the full stop is a word of its own
    live.controls["text"].value = "take " * 60
    assert plain(picture_of(live)).count("B-CODE") == code_words.LENGTH - 2  # what fits
    live.controls["text"].value = "  "
    assert "An empty sentence was given" in plain(picture_of(live))


# ---------------------------------------------------------------- tagged sentences

WORDS = "Ines Ferrant left Turin for Halden Paper Works in May .".split()  # noqa: SIM905
TRUE = "B-PER I-PER O B-LOC O B-ORG I-ORG I-ORG O O O".split()  # noqa: SIM905
PREDICTED = "B-PER I-PER O B-ORG O B-ORG I-ORG O O B-PER O".split()  # noqa: SIM905


def brackets_of(html: str) -> list[str]:
    return re.findall(r'class="bracket" style="([^"]*)"', html)


def test_mistakes_are_marked_by_sign_frame_and_word() -> None:
    view = tagged_words.tag_view(WORDS, PREDICTED, TRUE)
    cells = re.findall(r'<span class="token token-(\w+)"[^>]*>([^<]*)</span>', view.html)
    wrong = [k for k, (a, b) in enumerate(zip(PREDICTED, TRUE, strict=True)) if a != b]
    assert [word for _, word in cells] == WORDS
    assert [k for k, (kind, _) in enumerate(cells) if kind == "replaced"] == wrong == [3, 7, 9]
    assert re.findall(r"✗ ([^<\s]*)</div>", view.html) == [PREDICTED[k] for k in wrong]
    for line in (
        "1 of 3 true entities found; of 4 predicted, 3 wrong.",
        "✓ PER “Ines Ferrant”; ✗ ORG “Turin”: the kind is LOC; ✗ ORG “Halden Paper”: begins or "
        "ends elsewhere; ✗ PER “May”: no entity there.",
    ):
        assert line in view.text and line in plain(view.html)
    assert "missed" not in view.text  # what was found in part is not called missed as well
    nobody = tagged_words.tag_view(WORDS, ["O"] * len(WORDS), TRUE)
    assert "✗ PER “Ines Ferrant”: missed; ✗ LOC “Turin”: missed" in nobody.text
    assert "0 of 3 true entities found; of 0 predicted, 0 wrong." in nobody.text


def test_brackets_open_and_close_where_entities_do() -> None:
    view = tagged_words.tag_view(WORDS, PREDICTED)
    held = brackets_of(view.html)
    assert len(held) == len(WORDS)
    inside = [k for k, style in enumerate(held) if "border-bottom:2px solid #1a1a1a" in style]
    begins = [k for k, style in enumerate(held) if "border-left" in style]
    ends = [k for k, style in enumerate(held) if "border-right" in style]
    assert (inside, begins, ends) == ([0, 1, 3, 5, 6, 9], [0, 3, 5, 9], [1, 3, 6, 9])
    both = brackets_of(tagged_words.tag_view(WORDS, PREDICTED, TRUE).html)
    assert len(both) == 2 * len(WORDS) and sum("border-top:2px solid #" in b for b in both) == 6
    assert "✗" not in view.html
    sentence = "Entities: PER “Ines Ferrant”, ORG “Turin”, ORG “Halden Paper”, PER “May”."
    assert sentence in view.text and sentence in plain(view.html)
    assert "Entities: none." in tagged_words.tag_view(["so"], ["O"]).text


def test_other_tags_have_no_brackets() -> None:
    words, true = ["<b>", "rose"], ["NOUN", "VERB"]
    view = tagged_words.tag_view(words, ["NOUN", "NOUN"], true)
    assert not any("#1a1a1a" in style for style in brackets_of(view.html))
    assert "1 of 2 words have the right tag.\n✗ “rose”: NOUN, should be VERB." in view.text
    assert "<b>" not in view.html and "&lt;b&gt;" in view.html
    assert tagged_words.tag_view(words, true, true).text.endswith(
        "2 of 2 words have the right tag."
    )
    assert "2 words, 2 different tags." in tagged_words.tag_view(words, true).text


# ---------------------------------------------------------------- answers

QUESTION, PASSAGE = "when does it open ?".split(), "the <old> mill ##pond opens at noon .".split()  # noqa: SIM905
TOKENS = ["[CLS]", *QUESTION, "[SEP]", *PASSAGE, "[SEP]"]
ALLOWED = torch.tensor([False] * 7 + [True] * 8 + [False])


def scores(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(2 * torch.randn(len(TOKENS), generator=generator) for _ in range(2))  # type: ignore[return-value]


@pytest.mark.parametrize("longest", [1, 2, 3, 30])
def test_the_best_span_is_the_librarys(longest: int) -> None:
    for seed in range(40):
        start, end = scores(seed)
        row = answer_spans.scored_row(TOKENS, start, end, ALLOWED, longest)
        expected = best_spans(start[None], end[None], ALLOWED[None], longest)
        best = row.best(longest)[0]
        assert (best.i, best.j) == (expected.start.item(), expected.end.item())
        assert best.score == pytest.approx(expected.score.item(), abs=1e-6)
        assert row.null.score == pytest.approx(expected.null_score.item(), abs=1e-6)
        listed = row.best(longest, 100)
        possible = [(i, j) for i, j in product(range(7, 15), repeat=2) if 0 <= j - i < longest]
        assert sorted((span.i, span.j) for span in listed) == possible
        assert [span.score for span in listed] == sorted((s.score for s in listed), reverse=True)


def test_the_words_tell_the_span_and_the_null_answer() -> None:
    start, end = torch.zeros(16), torch.zeros(16)
    start[9], end[10], start[0], end[0] = 5.0, 4.0, 3.0, 1.5
    view = span_pairs.span_table(TOKENS, start, end, ALLOWED)
    sentence = (
        "The best span of at most 30 tokens is “millpond” with 5.00 + 4.00 = 9.00; no answer has "
        "4.50. The difference, 4.50, is above τ = 0.00: the model answers."
    )
    assert sentence in view.text and sentence in plain(view.html)
    silent = span_pairs.span_table(TOKENS, start, end, ALLOWED, threshold=4.5)
    assert "is not above τ = 4.50: the model says that the passage does not tell." in silent.text


@pytest.mark.parametrize(
    ("first", "last", "longest", "why"),
    [(12, 8, 30, "the end before the start"), (8, 12, 2, "too many tokens")],
)
def test_ends_that_make_no_span_are_named(first: int, last: int, longest: int, why: str) -> None:
    start, end = torch.zeros(16), torch.zeros(16)
    start[first], end[last] = 5.0, 5.0
    text = span_pairs.span_table(TOKENS, start, end, ALLOWED, longest=longest).text
    a, b = TOKENS[first], TOKENS[last]
    assert f"“{a}” ({first}), and the best end, “{b}” ({last}), do not make a span: {why}." in text
    start[first] = end[last] = 0.0
    start[8], end[9] = 5.0, 5.0
    assert "do not make" not in span_pairs.span_table(TOKENS, start, end, ALLOWED).text


def test_of_long_rows_the_likely_part_is_drawn() -> None:
    many = ["[CLS]", "?", "[SEP]", *(f"w{k}" for k in range(120)), "[SEP]"]
    allowed = torch.tensor([k > 2 for k in range(123)] + [False])
    start, end = torch.zeros(124), torch.zeros(124)
    start[44], end[47] = 6.0, 6.0
    view = span_pairs.span_table(many, start, end, allowed)
    picture = drawn(view.html)
    assert "80 more tokens are not drawn" in picture and 'class="best"' in picture
    assert "▸w41" in picture and "▾w44" in picture


def test_byte_level_pieces_are_joined_as_written() -> None:
    row = answer_spans.scored_row(
        ["<s>", "ĠThe", "Ġmill", "pond"], torch.zeros(4), torch.zeros(4),
        torch.tensor([False, True, True, True]), 4,
    )  # fmt: skip
    assert row.text(answer_spans.Span(2, 3, 0.0, 0.0)) == "millpond"
    assert row.text(answer_spans.Span(1, 2, 0.0, 0.0)) == "The mill"


def cells_inside(points: str, n: int, corner: tuple[float, float], cell: float) -> set:
    """The cells (row, column) whose middle lies within the polygon: even-odd rule."""
    xy = [tuple(map(float, p.split(","))) for p in points.split()]
    inside = set()
    for i, j in product(range(n), repeat=2):
        x, y = corner[0] + (j + 0.5) * cell, corner[1] + (i + 0.5) * cell
        hits = 0
        for (x1, y1), (x2, y2) in zip(xy, xy[1:] + xy[:1], strict=True):
            if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
                hits += 1
        if hits % 2:
            inside.add((i, j))
    return inside


@pytest.mark.parametrize("longest", [1, 3, 8, 30])
def test_hatched_half_and_dotted_corner_are_what_is_impossible(longest: int) -> None:
    start, end = scores(5)
    view = span_pairs.span_table(TOKENS, start, end, ALLOWED, longest=longest)
    svg = drawn(view.html)
    n, cell = 8, 26.0
    frame = re.search(r'<image x="([\d.]+)" y="([\d.]+)" width="208"', svg)
    assert frame
    corner = (float(frame[1]), float(frame[2]))
    shapes = dict(re.findall(r'<polygon class="(\w+)" points="([^"]*)"', svg))
    pairs = list(product(range(n), repeat=2))
    assert cells_inside(shapes["behind"], n, corner, cell) == {(i, j) for i, j in pairs if j < i}
    far = {(i, j) for i, j in pairs if j - i >= longest}
    assert cells_inside(shapes["long"], n, corner, cell) == far if far else "long" not in shapes
    ring = re.search(r'class="best" cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert ring
    best = best_spans(start[None], end[None], ALLOWED[None], longest)
    column, row = ((float(ring[k + 1]) - corner[k]) / cell - 0.5 for k in (0, 1))
    assert (row, column) == pytest.approx((best.start.item() - 7, best.end.item() - 7), abs=0.01)
    assert f"of at most {longest} token{'s' * (longest > 1)} is" in view.text
    assert view.text.split("\n")[0] in plain(view.html) and len(view.html) < 30_000


def test_the_explorer_at_both_ends_of_every_slider() -> None:
    start, end = scores(1)
    live = span_pairs.span_explorer(TOKENS, start, end, ALLOWED, longest=3)
    assert "at most 3 tokens" in live.static.text
    assert live.controls["longest"].max == 8
    margin = answer_spans.scored_row(TOKENS, start, end, ALLOWED, 8)
    best = margin.best(8)[0].score - margin.null.score
    lowest, highest = live.controls["threshold"].min, live.controls["threshold"].max
    assert lowest < best < highest
    for longest in (1, 8):
        live.controls["longest"].value = longest
        assert f"at most {longest} token" in picture_of(live)
    for threshold, verdict in (
        (lowest, ": the model answers"),
        (highest, "the passage does not tell"),
    ):
        live.controls["threshold"].value = threshold
        assert verdict in plain(picture_of(live))


# ---------------------------------------------------------------- how sure, how right


def test_the_reliability_diagram_draws_its_bins_at_every_temperature() -> None:
    torch.manual_seed(0)
    logits, labels = 6 * torch.randn(60, 2), torch.randint(2, (60,))
    live = reliability.reliability_view(logits, labels, 7.25)
    assert "T = 7.25:" in live.static.text
    slider = live.controls["temperature"]
    assert ("7.25 (fitted)", 7.25) in slider.options and slider.value == 1.0
    for temperature in (0.5, 7.25, 20.0):
        slider.value = temperature
        one, picture = reliability.calibrated(logits, labels, temperature), picture_of(live)
        svg = drawn(picture)
        for kind in ("right", "gap"):
            assert svg.count(f'class="{kind}"') == sum(part.texts > 0 for part in one.bins)
        assert all(f">{part.texts}<" in svg for part in one.bins if part.texts)
        assert f"accuracy {one.accuracy:.0%}; expected calibration error {one.error:.0%}" in (
            plain(picture)
        )
        assert 'fill="url(#hatch' in svg  # told apart without colour
    assert len(live.static.html) < 20_000


# ---------------------------------------------------------------- curves

STARTS = {
    "pre-trained": {"200": [0.5, 0.6], "50": [0.4, 0.5], "800": [0.7, 0.72]},
    "random": {"50": [0.33, 0.35], "200": [0.34, 0.4], "800": [0.36, 0.42]},
    "MiniLM": {"50": [0.5], "800": [0.8]},
}
RESULT: dict[str, Any] = {
    "nli": STARTS, "ner": {"pre-trained": {"50": [0.2, 0.1]}},
    "baselines": {"nli": {"bag of words": 0.41, "length alone": 0.35}},
}  # fmt: skip


def test_learning_curves_are_means_bands_and_seeds() -> None:
    figure = finetuning_charts.learning_curves(RESULT)
    first = {trace.name: trace for trace in figure.data if trace.xaxis == "x"}
    second = [trace.name for trace in figure.data if trace.xaxis == "x2"]
    for start, by_number in STARTS.items():
        rising = sorted(map(int, by_number))
        assert list(first[start].x) == rising
        expected = [fmean(by_number[str(n)]) for n in rising]
        assert list(first[start].y) == pytest.approx(expected, rel=1e-3)
        seeds = f"{start}, seeds"
        if start == "MiniLM":  # one run has no spread
            assert seeds not in first
            continue
        dots = sorted(zip(first[seeds].x, first[seeds].y, strict=True))
        assert dots == sorted((int(n), y) for n, scores in by_number.items() for y in scores)
        band = first[f"{start}, range of the runs"]
        assert list(band.y) == [max(by_number[str(n)]) for n in rising] + [
            min(by_number[str(n)]) for n in reversed(rising)
        ]
    assert list(first["bag of words"].y) == [0.41, 0.41]
    assert "pre-trained" in second and "bag of words" not in second
    lines = [first[name] for name in STARTS]
    assert len({(line.line.dash, line.marker.symbol) for line in lines}) == 3
    assert first["bag of words"].line.dash != first["length alone"].line.dash
    axis = figure.layout.xaxis
    assert axis.type == figure.layout.xaxis2.type == "log" and list(axis.tickvals) == [50, 200, 800]
    assert 10 ** axis.range[0] < 50 and 10 ** axis.range[1] > 800
    assert figure.layout.yaxis.tickformat == ".0%"


def test_learning_curves_are_labelled_and_fit() -> None:
    figure = finetuning_charts.learning_curves(RESULT)
    labels = [label.replace("<br>", " ") for label in labels_of(figure)]
    for text in ("● pre-trained 71.0%", "bag of words 41.0%", "<b>NLI: accuracy</b>",
                 "<b>NER: span F1</b>", "● pre-trained 15.0%"):  # fmt: skip
        assert text in labels, labels
    for note in figure.layout.annotations:
        if note.yref != "paper":
            bottom, top = figure.layout[note.yref.replace("y", "yaxis")].range
            assert bottom <= note.y <= top
    assert figure.layout.width <= 760 and figure.layout.height <= 460
    one = finetuning_charts.learning_curves({"sst": STARTS}, title="One task")
    assert one.layout.title.text == "One task" and "<b>sst</b>" in labels_of(one)
    assert one.layout.xaxis.domain[1] > 0.7 > figure.layout.xaxis.domain[1]
    assert len(json.dumps(figure.to_plotly_json(), default=list)) < 30_000


LINE = {
    name: {"alpha": [-0.5, 0, 0.5, 1, 1.5], "train_loss": [k, k, 0.6, 0.1, 0.3],
           "test_score": [0.3, 0.4, 0.6, 0.8, 0.7]}
    for name, k in (("pre-trained", 1.1), ("random", 2.2))
}  # fmt: skip


def test_loss_line_has_both_starts_in_both_panels() -> None:
    figure = finetuning_charts.loss_line(LINE)
    for axis, what in (("x", "train_loss"), ("x2", "test_score")):
        traces = {trace.name: trace for trace in figure.data if trace.xaxis == axis}
        assert sorted(traces) == sorted(LINE)
        for name, trace in traces.items():
            assert list(trace.x) == LINE[name]["alpha"] and list(trace.y) == LINE[name][what]
        assert len({(t.line.dash, t.marker.symbol) for t in traces.values()}) == 2
    marks = sorted((shape.xref, shape.x0) for shape in figure.layout.shapes)
    assert marks == [("x", 0), ("x", 1), ("x2", 0), ("x2", 1)]
    assert list(figure.layout.xaxis.ticktext) == ["−0.5", "0<br>before", "0.5", "1<br>after", "1.5"]
    assert labels_of(figure) == ["● pre-trained", "■ random"]
    assert figure.layout.width <= 760 and figure.layout.height <= 460


# ---------------------------------------------------------------- what is cut


@pytest.mark.parametrize(("first", "second"), [(9, 4), (4, 9), (6, 6), (1, 8), (7, None)])
def test_what_is_kept_is_what_packing_keeps(first: int, second: int | None) -> None:
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=100)
    a = list(range(10, 10 + first))
    b = None if second is None else list(range(50, 50 + second))
    texts = [a] if b is None else [a, b]
    for length in range(3 if b is None else 5, first + (second or 0) + 6):
        ids, *_ = pack_pair(a, b, special, length, truncate=True)
        kept = cut_pairs.kept_tokens(first, second, length)
        assert kept == [len(set(text) & set(ids)) for text in texts]
        names = [[f"t{i}" for i in text] for text in texts]
        view = cut_pairs.cut_picture(names[0], names[1] if b else None, length)
        struck = re.findall(r'token-cut"[^>]*>([^<]*)<', view.html)
        assert struck == [f"t{i}" for text in texts for i in text if i not in ids]
        assert len(re.findall(r'token-plain"', view.html)) == sum(kept)


def test_what_is_cut_is_said_in_words() -> None:
    first, second = [f"a{k}" for k in range(9)], [f"b{k}" for k in range(4)]
    sentences = {
        10: "holds 3 special tokens and 7 others: 5 tokens from the end of the first text and 1 "
        "token from the end of the second text are cut, and the model never sees them.",
        15: "holds 3 special tokens and 12 others: 1 token from the end of the first text is cut",
        16: "holds 3 special tokens and 13 others: nothing is cut, 0 positions stay empty.",
        17: "nothing is cut, 1 position stay",
    }
    live = cut_pairs.cut_view(first, second, length=15)
    slider = live.controls["length"]
    assert (slider.min, slider.max, slider.value) == (5, 16, 15)
    assert sentences[15] in live.static.text and "✂ a8" in live.static.text
    for length in (5, 10, 16):
        slider.value = length
        assert sentences.get(length, "A sequence of 5 ") in plain(picture_of(live))
    assert sentences[17] in cut_pairs.cut_picture(first, second, 17).text
    assert "the end of the text are cut" in cut_pairs.cut_picture(first, None, 5).text


# ---------------------------------------------------------------- GLUE, and the outcomes


def test_all_nine_tasks_say_what_they_ask() -> None:
    view = glue_tables.glue_questions()
    lines = view.text.splitlines()
    assert len(lines) == 9 and all("?" in line and "→" in line for line in lines)
    assert view.html.count("<tr") == 10 and "363,000" in view.html and "634" in lines[-1]
    assert "a number, 0 to 5" in view.html and "STS-B" not in plain(view.html)  # no break in it


def test_one_model_and_several_differ_in_shape() -> None:
    figure = glue_tables.glue_progress()
    one, several = figure.data
    assert one.marker.symbol != several.marker.symbol
    assert len(one.x) == len(progress()) == 9 and len(several.x) == 2
    oldest_on_top = [step.one for step in progress()]
    assert list(one.x)[::-1] == oldest_on_top and list(one.y) == list(range(9))
    assert "89.6" in labels_of(figure) and figure.layout.width <= 760


def test_a_mean_without_a_task() -> None:
    assert without("", "roberta_test") == pytest.approx(717.1 / 8)
    assert without("QNLI", "roberta_test") == pytest.approx((717.1 - 98.9) / 7)


def test_outcomes_say_success_and_failure() -> None:
    lines = outcomes.task_outcomes().text.splitlines()
    assert len(lines) == 6 and "✓ success" in lines[0] and lines[0].startswith("task: parts of")
    assert [line.rpartition("result: ")[2][0] for line in lines] == [*"✓◐◐✗✗✗"]
