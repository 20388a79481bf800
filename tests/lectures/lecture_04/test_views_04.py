"""The views of lecture 04: the library's own numbers, in words and in the picture."""

from __future__ import annotations

import json
import math
import re
from html import unescape
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from view_parts import drawn, labels_of, picture_of, plain

from course_lib import mask_sequences
from course_lib.lectures.lecture_04.experiments import SCHEMES
from course_lib.lectures.lecture_04.views import byte_pieces, mask_epochs
from course_lib.teaching import figures, page, playgrounds, progress, run_charts, style
from course_lib.teaching.coverage import coverage
from course_lib.teaching.results import in_words
from course_lib.text.byte_bpe import ByteBPE, train_byte_bpe
from course_lib.text.wordpiece import WordPiece

TEXT = "the river rose over its bank after the rain and the old bridge was closed"


@pytest.fixture(scope="module")
def wordpiece() -> WordPiece:
    return WordPiece.from_words(sorted(set(TEXT.split())))


@pytest.fixture(scope="module")
def bpe() -> ByteBPE:
    return train_byte_bpe([f"{TEXT}. {TEXT}", "café café"], 300)


def check_figure(figure: Any) -> None:
    """Every number finite, a title, and no wider than the page."""
    assert all(math.isfinite(v) for t in figure.data for axis in (t.x, t.y) for v in axis)
    assert figure.layout.title.text and figure.layout.width <= 760 and figure.layout.height <= 460
    assert "NaN" not in json.dumps(figure.to_plotly_json(), default=list)


# ---------------------------------------------------------------- masks, epoch by epoch


@pytest.mark.parametrize("scheme", SCHEMES)
def test_epochs_are_the_librarys_masks(wordpiece: WordPiece, scheme: str) -> None:
    way = mask_epochs.all_schemes(wordpiece, TEXT, "the bank", 23, 0.3, 5)[scheme]
    sequences = playgrounds.one_row(wordpiece, TEXT, "the bank")
    copies = SCHEMES[scheme]
    for epoch in range(23):
        draw = epoch if copies is None else epoch % copies
        masked = mask_sequences(sequences, wordpiece.special, rate=0.3, seed=5, epoch=draw)
        assert way.actions[epoch] == masked.action[0].tolist()
        assert way.seen[epoch] == [wordpiece.token(i) for i in masked.input_ids[0].tolist()]
    selected = torch.tensor(way.actions).ne(0)
    assert way.times == selected.sum(0).tolist()
    assert way.selected == int(selected.any(0).sum())
    special = [token in ("[CLS]", "[SEP]") for token in way.tokens]
    assert [not may for may in way.may] == special and sum(special) == 3


def test_more_masks_select_more_tokens(wordpiece: WordPiece) -> None:
    ways = mask_epochs.all_schemes(wordpiece, TEXT, epochs=40)
    selected = [ways[scheme].selected for scheme in ("static", "ten copies", "dynamic")]
    assert selected[0] < selected[1] < selected[2] == len(TEXT.split())


def test_grid_draws_each_fate_once_and_says_it(wordpiece: WordPiece) -> None:
    view = mask_epochs.mask_epochs_picture(wordpiece, TEXT, scheme="dynamic", epochs=30, rate=0.4)
    way = mask_epochs.all_schemes(wordpiece, TEXT, epochs=30, rate=0.4)["dynamic"]
    flat = [action for actions in way.actions for action in actions]
    titles = re.findall(r"<title>([^<]*)</title>", view.html)
    for action, fate in ((1, "replaced by [MASK]"), (2, "replaced by a random"), (3, "kept, but")):
        assert sum(fate in title for title in titles) == flat.count(action) > 0
    assert view.html.count("url(#hatch") == flat.count(1)
    assert view.html.count("stroke-dasharray") == flat.count(3)  # the legend is an image
    cells = re.search(r'<path d="([^"]*)" fill="#efefef"/>', view.html)
    assert cells and cells.group(1).count("M") == sum(way.may) * 30 - len(titles)
    lines = [line for line in view.text.splitlines() if line.startswith("epoch")]
    letters = {"·": 0, "M": 1, "R": 2, "K": 3, " ": 0}
    assert [[letters[c] for c in line[9 : 9 + len(way.tokens)]] for line in lines] == way.actions
    for token, times, may in zip(way.tokens, way.times, way.may, strict=True):
        assert not may or f">{times}</text>" in view.html, token


def test_the_sentence_says_all_three_schemes(wordpiece: WordPiece) -> None:
    ways = mask_epochs.all_schemes(wordpiece, TEXT, epochs=12)
    view = mask_epochs.mask_epochs_picture(wordpiece, TEXT, scheme="ten copies", epochs=12)
    sentence = (
        f"After 12 epochs, {ways['ten copies'].selected} of 15 tokens were selected at least once"
    )
    others = f"(static: {ways['static'].selected}, dynamic: {ways['dynamic'].selected})"
    assert f"{sentence} {others}." in plain(view.html) and sentence in view.text
    assert "= epoch 1" in view.html and "= epoch 2" in view.text
    one = mask_epochs.mask_epochs_picture(wordpiece, TEXT, scheme="dynamic", epochs=1)
    assert "After 1 epoch, " in one.text and "= epoch" not in one.html


def test_print_shows_three_grids_that_say_the_same(wordpiece: WordPiece) -> None:
    live = mask_epochs.mask_epochs_view(wordpiece, TEXT)
    svg, alt = drawn(live.static.html), unescape(live.static.html).split('alt="')[1]
    ways = mask_epochs.all_schemes(wordpiece, TEXT, epochs=mask_epochs.IN_PRINT)
    later = mask_epochs.all_schemes(wordpiece, TEXT, epochs=40)
    for epochs, schemes in ((mask_epochs.IN_PRINT, ways), (40, later)):
        listed = ", ".join(f"{name} {way.selected}" for name, way in schemes.items())
        end = f"After {epochs} epochs, tokens selected at least once (of 15): {listed}."
        assert all(end in text for text in (live.static.text, plain(live.static.html), alt))
    hidden = sum(actions.count(1) for way in ways.values() for actions in way.actions)
    assert svg.count("url(#hatch") == hidden + 1  # and one in the legend
    for name, way in ways.items():
        assert f">{name}: {way.selected} of 15 selected</text>" in svg
    assert svg.count('stroke-dasharray="6 4"') == 2  # around what static and ten copies repeat
    assert len(live.static.html) < 80_000


def test_mask_view_redraws_at_every_control(wordpiece: WordPiece) -> None:
    live = mask_epochs.mask_epochs_view(wordpiece, TEXT, "the bank")
    moves = {"scheme": "dynamic", "epochs": 40, "rate": 1.0, "seed": 50, "text": "the old bridge",
             "second": ""}  # fmt: skip
    assert set(moves) == set(live.controls)
    for name, value in moves.items():
        before = picture_of(live)
        live.controls[name].value = value
        assert picture_of(live) != before and "mask-epochs" in picture_of(live), name
    live.controls["rate"].value = 0
    assert "0 of 3 tokens were selected" in plain(picture_of(live))
    assert "second" not in mask_epochs.mask_epochs_view(wordpiece, TEXT).controls


def test_mask_view_answers_bad_texts_in_words(wordpiece: WordPiece, bpe: ByteBPE) -> None:
    live = mask_epochs.mask_epochs_view(wordpiece, TEXT)
    live.controls["text"].value = " "
    assert "The sentence is empty" in picture_of(live)
    live.controls["text"].value = "the bridge " * 40
    assert "has 82 tokens, special ones counted; expected at most 60" in picture_of(live)
    live.controls["text"].value = TEXT
    assert "selected at least once" in picture_of(live)
    assert "<mask>" not in mask_epochs.mask_epochs_picture(bpe, TEXT).text.splitlines()[1]


# ---------------------------------------------------------------- coverage


def test_coverage_chart_draws_formula_and_counted_marks() -> None:
    counted = {"static": [0.16] * 20, "dynamic": coverage(0.16, 20)}
    figure = figures.coverage_chart(0.15, 20, 10, simulated=counted)
    check_figure(figure)
    traces = {trace.name: trace for trace in figure.data}
    for name, copies in SCHEMES.items():
        assert list(traces[name].y) == style.rounded(coverage(0.15, 20, copies))
        assert traces[name].mode == "lines"
    for name, shares in counted.items():
        marks = traces[f"{name}, counted"]
        assert marks.mode == "markers" and 20 in marks.x
        assert list(marks.y) == style.rounded(shares[int(x) - 1] for x in marks.x)
    assert "ten copies, counted" not in traces
    assert len({traces[name].line.dash for name in SCHEMES}) == 3


def test_coverage_chart_knows_its_lines() -> None:
    assert "3 copies 38.6%" in labels_of(figures.coverage_chart(0.15, 8, copies=3))


# ---------------------------------------------------------------- curves, dots, layers

CURVES = {
    "static": [[(0, 5.0), (10, 4.0), (20, 6.0)], [(0, 5.2), (10, 4.4), (20, 5.0)]],
    "a new name": [[(0, 5.0), (10, 3.0), (20, 2.5)]],
}
AXES: dict[str, Any] = {"x_title": "step", "y_title": "loss (nats)", "title": "Held-out loss"}


def test_curves_are_means_with_the_range_as_a_band() -> None:
    figure = run_charts.curves_chart(CURVES, **AXES, levels={"unigram": 5.5})
    check_figure(figure)
    traces = {trace.name: trace for trace in figure.data}
    assert list(traces["static"].y) == [5.1, 4.2, 5.5] and list(traces["static"].x) == [0, 10, 20]
    band = traces["static, range of the runs"]
    assert list(band.y) == [5.2, 4.4, 6.0, 5.0, 4.0, 5.0] and band.fill == "toself"
    assert "a new name, range of the runs" not in traces
    assert list(traces["unigram"].y) == [5.5, 5.5]
    assert labels_of(figure) == ["● static 5.5", "■ a new name 2.5", "unigram 5.5"]
    one, two = traces["static"], traces["a new name"]
    assert one.line.dash != two.line.dash and one.marker.symbol != two.marker.symbol
    bottom, top = figure.layout.yaxis.range
    assert bottom < 2.5 and top > 6.0


def test_curves_on_a_logarithmic_axis_and_as_shares() -> None:
    figure = run_charts.curves_chart(CURVES, **AXES, log_x=True)
    assert list(figure.data[-1].x) == [10, 20] and figure.layout.xaxis.type == "log"
    shares = {"dynamic": [[(1, 0.2), (2, 0.5)]]}
    figure = run_charts.curves_chart(shares, **AXES, percent=True)
    assert labels_of(figure) == ["● dynamic 50.0%"] and figure.layout.yaxis.tickformat == ".0%"
    assert figure.layout.yaxis.range[0] < 0.2
    tiny = {"base": [[(k, 6e-4 * k / 2000) for k in range(2000)]]}
    figure = run_charts.curves_chart(tiny, **AXES)
    check_figure(figure)
    assert len(figure.data[0].x) <= 400 and figure.layout.yaxis.exponentformat == "e"


def test_every_seed_is_a_dot_and_the_words_say_the_mean() -> None:
    groups = {"static": [0.31, 0.30, 0.33], "dynamic": [0.5, 0.5, 0.56], "one": [0.4]}
    title = {"title": "Masked tokens", "y_title": "accuracy"}
    figure = run_charts.dots_chart(groups, **title, percent=True, levels={"chance": 0.5})
    check_figure(figure)
    traces = {trace.name: trace for trace in figure.data}
    for place, (name, values) in enumerate(groups.items()):
        assert list(traces[name].y) == style.rounded(values)
        assert all(abs(x - place) < 0.35 for x in traces[name].x)
        assert len(set(traces[name].x)) == len(values)
        mean = style.round_one(sum(values) / len(values))
        assert list(traces[f"{name}, mean"].y) == [mean, mean]
        label = re.sub(r"<[^>]+>", " ", figure.layout.xaxis.ticktext[place])
        assert " ".join(label.split()) == f"{name} {in_words(values)}"
    assert labels_of(figure) == ["chance 50.0%"]
    symbols = {traces[name].marker.symbol for name in groups}
    assert len(symbols) == 3
    again = run_charts.dots_chart(groups, **title, percent=True, levels={"chance": 0.5})
    assert again.to_json() == figure.to_json()


def test_dots_in_other_units_and_without_values() -> None:
    figure = run_charts.dots_chart({"a": [2.0, 3.0]}, title="Loss", y_title="nats")
    assert figure.layout.xaxis.ticktext[0] == "a<br><b>2.5</b><br>(sd 0.707, n 2)"


def test_long_names_are_broken_where_they_stand() -> None:
    names = [f"trained on {a}, tested on {b}" for a in ("NSP", "SOP") for b in ("NSP", "SOP")]
    groups = {name: [0.5, 0.6] for name in names}
    figure = run_charts.dots_chart(groups, title="t", y_title="y", percent=True)
    lines = [line for under in figure.layout.xaxis.ticktext for line in under.split("<br>")]
    assert max(map(len, lines)) * len(names) * 7 < style.WIDTH
    assert figure.layout.xaxis.tickangle == 0


def test_looks_differ_in_colour_and_in_marker() -> None:
    styles = style.looks(["static", "new", "dynamic", "other", "more"])
    assert styles["static"].colour == style.COLOURS["static"]
    assert len({look.colour for look in styles.values()}) == 5
    assert len({look.symbol for look in styles.values()}) == 5
    assert len({look.dash for look in styles.values()}) >= 4


# ---------------------------------------------------------------- bytes and merges

SIGNS = "the café 🐙 rose"


def test_pieces_are_the_tokenizers(bpe: ByteBPE, wordpiece: WordPiece) -> None:
    view = byte_pieces.byte_pieces_picture(bpe, SIGNS, wordpiece=wordpiece)
    ids = bpe.encode(SIGNS)
    boxes = re.findall(r'class="token [^>]*>([^<]*)</span>', view.html)
    assert [unescape(one) for one in boxes[: len(ids)]] == [bpe.token(i) for i in ids]
    assert f"{len(SIGNS)} characters, {len(SIGNS.encode())} bytes in UTF-8." in view.text
    assert f"Byte-level BPE: {len(ids)} pieces, none unknown." in view.text
    labels = [unescape(one) for one in re.findall(r"pre-line\">([^<]*)</div>", view.html)]
    assert [int(one.split("\n")[0]) for one in labels[: len(ids)]] == ids
    held = [bytes.fromhex(one.split("\n")[1].split(" =")[0]) for one in labels if "\n" in one]
    assert b"".join(held).decode() == "afé🐙"
    assert any(one.endswith("66 c3 a9 = afé") for one in labels)  # learned as one piece
    assert "WordPiece: 4 pieces, 2 unknown." in view.text


def test_every_step_is_a_merge_that_was_learned(bpe: ByteBPE) -> None:
    word = 2  # " over"
    text = "the river over"
    view = byte_pieces.byte_pieces_picture(bpe, text, word)
    steps = bpe.word_steps(" over")
    assert len(steps) > 2
    lines = view.text.splitlines()[-len(steps) :]
    assert [line.split("   ")[0] for line in lines] == [
        f"{i}. {' '.join(pieces)}" for i, pieces in enumerate(steps)
    ]
    for line, (before, after) in zip(lines[1:], pairwise(steps), strict=True):
        left, right, merge = re.findall(r"\((\S+) \+ (\S+), merge no. ([\d,]+)\)", line)[0]
        assert bpe.merges[int(merge.replace(",", "")) - 1] == (left, right)
        assert left + right in after and left in before and right in before
    sentence = f"“over” with the space before it: 5 bytes, {len(steps) - 1} merges"
    assert sentence in plain(view.html) and sentence in view.text


def test_byte_view_follows_the_text_and_the_chosen_word(bpe: ByteBPE) -> None:
    live = byte_pieces.byte_pieces_view(bpe, "the river rose")
    assert [name for name, _ in live.controls["word"].options] == ["the", " river", " rose"]
    assert "“river”" in picture_of(live) and "“river”" in live.static.text
    live.controls["word"].value = 0
    assert "“the”" in picture_of(live)
    live.controls["text"].value = "a bridge"
    assert live.controls["word"].value == 1 and "“bridge”" in picture_of(live)
    live.controls["text"].value = "  "
    assert "The text is empty; expected at least one word" in picture_of(live)
    live.controls["text"].value = "é" * 201
    assert "has 402 bytes; expected at most 400" in picture_of(live)
    live.controls["text"].value = "bank" * 12
    assert "too long to show its merges" in picture_of(live)
    live.controls["text"].value = "<b> & rose"
    assert "<b>" not in picture_of(live)


# ---------------------------------------------------------------- the rest


def test_live_loss_says_which_run_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures: list[page.Html] = []
    monkeypatch.setattr(progress._Display, "show", lambda self, html, last: pictures.append(html))
    live = progress.LiveLoss(title="ten <copies>")
    report = SimpleNamespace(step=1, steps=1, losses={"total": 2.0}, tokens_per_second=1.0)
    live(report)  # type: ignore[arg-type]
    assert pictures[0].text.startswith("ten <copies>: step 1 of 1")
    assert "ten &lt;copies&gt;" in pictures[0].html and live.drawn == 1 and live.values == [2.0]
