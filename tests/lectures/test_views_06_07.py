"""The views of lectures 06 and 07: the library's own numbers, in words and in the picture."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import torch
from view_parts import drawn, labels_of, picture_of, plain

from course_lib.family.electra import Electra, ElectraConfig, electra_from
from course_lib.family.tinybert import MAPPINGS, layer_mapping
from course_lib.lectures.lecture_06.views import layer_map, temperature
from course_lib.lectures.lecture_07.views import corruptor
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.replaced_tokens import PAPER_MIX
from course_lib.teaching import chart_parts, figures, playgrounds, run_charts, style, tokens
from course_lib.text.wordpiece import WordPiece

TEXT = "the river rose over its bank after the rain and the old bridge was closed"


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece.from_words(sorted(set(TEXT.split())))


@pytest.fixture(scope="module")
def model(tokenizer: WordPiece) -> Electra:
    torch.manual_seed(0)
    config = ElectraConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=32, num_layers=1, num_heads=2,
        intermediate_size=64, embedding_size=32, max_positions=40, initializer_range=0.3,
    )  # fmt: skip
    return electra_from(config, 1 / 2)


def check_figure(figure: Any) -> None:
    """Every number finite, a title, no wider than the page, small in the notebook."""
    assert all(math.isfinite(v) for t in figure.data for axis in (t.x, t.y) for v in axis)
    assert figure.layout.title.text and figure.layout.width <= 760 and figure.layout.height <= 460
    written = json.dumps(figure.to_plotly_json(), default=list)
    assert "NaN" not in written and len(written) < 30_000


# ---------------------------------------------------------------- temperature

WORDS = ["<red>", "blue", "green", "grey", "brown", "black", "white", "pink", "old", "new"]
LOGITS = torch.tensor([4.0, 3.0, 2.5, 1.0, 0.0, -1.0, 0.5, -3.0, 2.0, -8.0])


def written(probability: float) -> str:
    """As in an SVG: nothing small is written as nothing."""
    return (
        "&lt;0.1%"
        if probability < 0.0005
        else "&gt;99.9%"
        if probability > 0.9995
        else f"{probability:.1%}"
    )


@pytest.mark.parametrize("T", temperature.TEMPERATURES)
def test_softened_probabilities_are_the_softmax_of_the_logits(T: float) -> None:
    found = temperature.soften(LOGITS, WORDS, T, top=4, truth="new")
    probabilities = (LOGITS.double() / T).softmax(-1)
    order = [*LOGITS.argsort(descending=True)[:4].tolist(), 9]
    assert found.words == [WORDS[i] for i in order]
    assert found.probabilities == pytest.approx([probabilities[i].item() for i in order], abs=1e-12)
    assert found.rest == pytest.approx(1 - probabilities[order].sum().item(), abs=1e-12)
    entropy = torch.distributions.Categorical(probs=probabilities).entropy().item()
    assert found.entropy == pytest.approx(entropy, abs=1e-9)


def test_heat_makes_the_answer_softer_but_keeps_the_order() -> None:
    looks = [temperature.soften(LOGITS, WORDS, T) for T in temperature.TEMPERATURES]
    for cool, warm in pairwise(looks):
        assert cool.entropy < warm.entropy < math.log(len(WORDS))
        assert cool.probabilities[0] > warm.probabilities[0] and cool.words == warm.words


def test_bars_are_as_long_as_the_shares_and_differ_in_shape() -> None:
    one = temperature.soften(LOGITS, WORDS, 2.0, top=4, truth="green")
    shown = temperature.temperature_picture(one)
    bars = re.findall(r'<rect x="158" [^>]*width="([\d.]+)"[^>]*?(fill="[^>]*)/>', shown.html)
    assert len(bars) == 5
    for (wide, _), probability in zip(bars, [*one.probabilities, one.rest], strict=True):
        assert float(wide) == pytest.approx(480 * probability, abs=0.06)
        assert f">{written(probability)}</text>" in shown.html
    fills = [look for _, look in bars]
    assert [i for i, look in enumerate(fills) if "course-truth" in look] == [2]
    assert [i for i, look in enumerate(fills) if "stroke-dasharray" in look] == [4]
    assert ">green (true)</text>" in shown.html and temperature.REST in shown.html
    assert "&lt;red&gt;" in shown.html and "<red>" not in shown.html
    said = (
        f"T = 2: the first word, “<red>”, has {100 * one.probabilities[0]:.1f}% and the true one, "
    )
    assert said in shown.text and said in plain(shown.html)
    assert f"Entropy {one.entropy:.2f} nats, of at most {math.log(10):.2f}" in shown.text


def test_temperature_slider_at_every_position() -> None:
    live = temperature.temperature_view(LOGITS, WORDS, top=3, truth="<red>")
    slider = live.controls["temperature"]
    assert [T for _, T in slider.options] == [0.5, 1, 1.5, 2, 3, 4, 6, 8]
    pictures = set()
    for _, T in slider.options:
        slider.value = T
        one = temperature.soften(LOGITS, WORDS, T, top=3)
        assert f"T = {T:g}: the first word, “<red>”" in plain(picture_of(live))
        assert f"has {one.probabilities[0]:.1%} (it is the true one)" in plain(picture_of(live))
        pictures.add(picture_of(live))
    assert len(pictures) == 8


def test_print_of_the_temperatures_says_the_same_and_is_small() -> None:
    live = temperature.temperature_view(LOGITS, WORDS, top=8, truth="new")
    svg = drawn(live.static.html)
    for T in temperature.IN_PRINT:
        one = temperature.soften(LOGITS, WORDS, T, truth="new")
        assert f">T = {T:g}</text>" in svg
        assert all(
            f">{written(probability)}</text>" in svg
            for probability in [*one.probabilities, one.rest]
        )
        assert f"Entropy {one.entropy:.2f} nats" in live.static.text
    assert svg.count("url(#course-truth)") == len(temperature.IN_PRINT)
    assert "<svg" not in live.static.html and len(live.static.html) < 12_000


@pytest.mark.parametrize(
    ("scores", "settings", "said"),
    [
        (LOGITS[None], {}, "one logit a word"),
        (LOGITS[:9], {}, "one logit a word"),
        (LOGITS * math.inf, {}, "no number"),
        (LOGITS, {"truth": "violet"}, "one of the 10 words"),
        (LOGITS, {"top": 0}, "1 to 20"),
    ],
)
def test_logits_that_cannot_be_softened_say_why(
    scores: Any, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        temperature.temperature_view(scores, WORDS, **settings)


def test_what_is_small_is_not_written_as_zero() -> None:
    one = temperature.soften(LOGITS, WORDS, 0.5, truth="new")
    assert 0 < one.probabilities[-1] < 0.0005
    shown = temperature.temperature_picture(one)
    assert "0.0%" not in shown.text and "the true one, “new”, <0.1%" in shown.text
    sure = temperature.soften([50.0, 0.0], ["a", "b"], 1)
    assert "has >99.9%" in temperature.temperature_picture(sure).text


def test_no_temperature_at_zero() -> None:
    with pytest.raises(ValueError, match="above 0"):
        temperature.soften(LOGITS, WORDS, 0)


# ---------------------------------------------------------------- which layer learns from which


def lines_of(svg: str) -> list[tuple[float, float, str]]:
    """Where a line begins and ends, from top to bottom, and its look."""
    found = re.findall(r'<path d="M\d+ ([\d.]+)L\d+ ([\d.]+)" ([^>]*)/>', svg)
    return [(float(a), float(b), look) for a, b, look in found]


def boxes_of(svg: str) -> dict[tuple[int, str], tuple[float, bool]]:
    """The middle of every box by column and name, and whether it is dashed."""
    pattern = (
        r'<rect x="(\d+)" y="([\d.]+)" width="\d+" height="([\d.]+)" rx="3" ([^>]*)/>'
        r"<text[^>]*>([^<]*)<"
    )
    found = {}
    for x, y, high, look, name in re.findall(pattern, svg):
        found[int(x), name] = (float(y) + float(high) / 2, "dasharray" in look)
    return found


@pytest.mark.parametrize(("M", "N", "kind"), [(4, 12, k) for k in MAPPINGS] + [(2, 24, "top")])
def test_lines_join_the_layers_of_the_mapping(M: int, N: int, kind: str) -> None:
    shown = layer_map.layer_map_picture(M, N, kind)
    svg = shown.html.split("</svg>")[0]
    boxes = boxes_of(svg)
    left, right = sorted({x for x, _ in boxes})
    assert len(boxes) == M + 2 + N + 2
    mapping = layer_mapping(M, N, kind)
    pairs = [("embeddings", "embeddings"), ("answers", "answers")]
    pairs += [(f"layer {m}", f"layer {n}") for m, n in enumerate(mapping, start=1)]
    want = {(boxes[left, ours][0], boxes[right, theirs][0]) for ours, theirs in pairs}
    lines = lines_of(svg)
    assert len(lines) == len(want) == M + 2
    for a, b, _ in lines:
        assert any(abs(a - x) < 0.2 and abs(b - y) < 0.2 for x, y in want)
    idle = {name for (x, name), (_, dashed) in boxes.items() if x == right and dashed}
    assert idle == {f"layer {n}" for n in range(1, N + 1)} - {f"layer {n}" for n in mapping}
    assert not any(dashed for (x, _), (_, dashed) in boxes.items() if x == left)
    assert boxes[left, "embeddings"][0] > boxes[left, "layer 1"][0] > boxes[left, "answers"][0]
    dashes = {re.sub(r'.*dasharray="([^"]*)".*|.*', r"\1", look) for _, _, look in lines}
    assert len(dashes) == 3 and "" in dashes  # embeddings, layers and answers, without colour
    assert f"from the teacher's layers {', '.join(map(str, mapping))};" in shown.text
    assert shown.text in plain(shown.html)


def test_menu_and_print_show_every_mapping() -> None:
    live = layer_map.layer_map_view(4, 12)
    pictures = set()
    for kind in MAPPINGS:
        live.controls["kind"].value = kind
        assert f"{kind}: the student's layers 1, 2, 3, 4" in plain(picture_of(live))
        pictures.add(picture_of(live))
    assert len(pictures) == 3
    svg = drawn(live.static.html)
    assert all(f">{kind}</text>" in svg and f"{kind}: " in live.static.text for kind in MAPPINGS)
    assert len(lines_of(svg)) == 3 * 6
    assert "<svg" not in live.static.html and len(live.static.html) < 30_000


def test_a_mapping_that_does_not_come_out_even_is_answered_in_words() -> None:
    live = layer_map.layer_map_view(5, 12)
    live.controls["kind"].value = "uniform"
    assert "a divisor of it" in plain(picture_of(live))
    live.controls["kind"].value = "top"
    assert "layers 8, 9, 10, 11, 12" in picture_of(live)
    assert "uniform: a student of 5 layers" in live.static.text
    assert ">uniform</text>" not in drawn(live.static.html)
    one = layer_map.layer_map_picture(1, 1)
    assert "layer 1 learns from the teacher's layer 1; every one of its layers" in one.text


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((4, 12, ()), "expected some of uniform, top, bottom"),
        ((4, 12, ("upper",)), "expected some of uniform, top, bottom"),
        ((13, 12), "1 to 12 layers"),
        ((4, 96), "at most 48"),
        ((5, 12, ("uniform",)), "a divisor of it"),
    ],
)
def test_maps_that_cannot_be_drawn_say_why(shape: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        layer_map.layer_map_view(*shape)


# ---------------------------------------------------------------- ELECTRA at work


@pytest.mark.parametrize(("share", "seed"), list(product((0.05, 0.3, 0.5), (0, 7))))
def test_judged_is_what_both_networks_say(
    model: Electra, tokenizer: WordPiece, share: float, seed: int
) -> None:
    kept = model.generator.mlm.bias.detach().clone()
    try:
        with torch.no_grad():  # random weights may draw [MASK] itself; these never do
            model.generator.mlm.bias[tokenizer.id("[MASK]")] = -1e4
        found = corruptor.corrupt_and_detect(model, tokenizer, TEXT, share, seed)
    finally:
        with torch.no_grad():
            model.generator.mlm.bias.copy_(kept)
    sequences = playgrounds.one_row(tokenizer, TEXT)
    hidden = mask_sequences(sequences, tokenizer.special, rate=share, mix=PAPER_MIX, seed=seed)
    assert found.tokens == ["[CLS]", *TEXT.split(), "[SEP]"]
    assert found.selected == hidden.selected[0].tolist()
    assert sum(found.selected) == max(1, round(share * 17))
    for i, selected in enumerate(found.selected):
        assert found.masked[i] == ("[MASK]" if selected else found.tokens[i])
        assert selected or found.filled[i] == found.tokens[i]
    assert "[MASK]" not in found.filled
    model.eval()
    with torch.no_grad():
        ids = torch.tensor([[tokenizer.id(token) for token in found.filled]])
        scores = model.discriminator(ids, torch.ones_like(ids)).logits[0]
    assert found.p_replaced == pytest.approx(scores.sigmoid().tolist(), abs=1e-6)


def test_the_generators_own_shares_decide_what_is_drawn(
    model: Electra, tokenizer: WordPiece
) -> None:
    again = corruptor.corrupt_and_detect(model, tokenizer, TEXT, 0.3, 4)
    assert again == corruptor.corrupt_and_detect(model, tokenizer, TEXT, 0.3, 4)
    kept = model.generator.mlm.bias.detach().clone()
    try:
        with torch.no_grad():  # a generator that knows one word
            model.generator.mlm.bias[tokenizer.id("bridge")] = 1e4
        sure = corruptor.corrupt_and_detect(model, tokenizer, TEXT, 0.3, 4)
    finally:
        with torch.no_grad():
            model.generator.mlm.bias.copy_(kept)
    drawn_there = {w for w, selected in zip(sure.filled, sure.selected, strict=True) if selected}
    assert drawn_there == {"bridge"} and sure.selected == again.selected
    model.train()
    corruptor.corrupt_and_detect(model, tokenizer, TEXT)
    assert model.training and model.discriminator.training


CORRUPTION = corruptor.Corruption(
    tokens=["[CLS]", "the", "<old>", "bank", "was", "closed", "[SEP]"],
    masked=["[CLS]", "the", "[MASK]", "[MASK]", "[MASK]", "closed", "[SEP]"],
    filled=["[CLS]", "the", "red", "bank", "rain", "closed", "[SEP]"],
    selected=[False, False, True, True, True, False, False],
    p_replaced=[0.01, 0.6, 0.87, 0.03, 0.12, 0.5, 0.0],
)


def test_the_sentences_say_every_replacement_and_its_judgement() -> None:
    said = " ".join(corruptor.corruption_in_words(CORRUPTION))
    assert "3 of 7 tokens were masked" in said and "replaced 2 and guessed 1 right" in said
    assert "“<old>” by “red” (discriminator: 87% replaced, right)" in said
    assert "“was” by “rain” (discriminator: 12% replaced, wrong)" in said
    assert "nothing was replaced: “bank” (discriminator: 3% replaced, right)" in said
    assert "Of the 4 tokens never masked, the discriminator calls replaced: “the” 60%." in said
    calm = replace(CORRUPTION, filled=CORRUPTION.tokens, p_replaced=[0.1] * 7)
    said = " ".join(corruptor.corruption_in_words(calm))
    assert "replaced 0 and guessed 3 right" in said and "calls replaced: none." in said
    assert "The generator replaced" not in said


def test_rows_tell_by_shape_what_happened_to_each_token() -> None:
    shown = corruptor.corruptor_picture(CORRUPTION)
    table = shown.html.split("</table>")[0]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr")[1:]]
    assert [len(row) for row in rows] == [7] * 4
    for row, want in zip(
        rows, (CORRUPTION.tokens, CORRUPTION.masked, CORRUPTION.filled), strict=False
    ):
        assert [plain(cell).strip() for cell in row] == want
    hatched = ["token-masked" in cell for cell in rows[1]]
    assert hatched == CORRUPTION.selected and "repeating-linear-gradient" in rows[1][2]
    kinds = [re.findall(r"token-(\w+)", cell) for cell in rows[2]]
    assert kinds == [[], [], ["replaced"], ["kept"], ["replaced"], [], []]
    assert 'title="replaced by the generator"' in rows[2][2] and "4px double" in rows[2][2]
    assert 'title="guessed right"' in rows[2][3]
    assert [plain(cell).split() for cell in rows[3]] == [
        ["1%"], ["60%", "✗", "false", "alarm"], ["87%", "✓", "found"], ["3%", "✓", "believed"],
        ["12%", "✗", "missed"], ["50%"], ["0%"],
    ]  # fmt: skip
    assert table.count('scope="row"') == 4 and "<old>" not in shown.html
    assert "«red»" in shown.text and "_bank_" in shown.text and "red 87%" in shown.text


def luminance(colour: tuple[int, ...]) -> float:
    parts = [c / 255 for c in colour]
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_shades_darken_with_p_replaced_and_stay_readable() -> None:
    grounds = []
    for percent in range(101):
        html = corruptor._shade(percent / 100)
        ground = tuple(map(int, re.findall(r"rgb\((\d+),(\d+),(\d+)\)", html)[0]))
        ink = 1.0 if ";color:#fff" in html else 0.0
        light, dark = sorted((luminance(ground), ink), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, percent
        grounds.append(luminance(ground))
    assert all(a > b for a, b in pairwise(grounds))


def test_a_long_text_is_broken_into_lines_that_fit(model: Electra, tokenizer: WordPiece) -> None:
    long = f"{TEXT} {TEXT}"
    corruption = corruptor.corrupt_and_detect(model, tokenizer, long, 0.5)
    shown = corruptor.corruptor_picture(corruption)
    lines = corruptor._lines(corruption)
    assert len(lines) > 1 and lines[0][0] == 0 and lines[-1][1] == len(corruption.tokens) == 32
    assert all(a[1] == b[0] for a, b in pairwise(lines))
    assert shown.html.count("<table") == len(lines) and len(shown.html) < 50_000


def test_corruptor_redraws_at_every_control(model: Electra, tokenizer: WordPiece) -> None:
    live = corruptor.corruptor_view(model, tokenizer, TEXT, seed=3)
    assert picture_of(live).endswith(live.static.html)
    share, seed = live.controls["share"], live.controls["seed"]
    assert (share.min, share.max) == (0.05, 0.5)
    for slider, ends in ((share, (0.05, 0.5)), (seed, (seed.min, seed.max))):
        for end in ends:
            before = picture_of(live)
            slider.value = end
            assert picture_of(live) != before and "tokens were masked" in picture_of(live)
    live.controls["again"].click()
    assert seed.value == 0  # after the last comes the first
    before = picture_of(live)
    live.controls["again"].click()
    assert seed.value == 1 and picture_of(live) != before
    assert live.controls["again"] in live.widget.children
    live.controls["text"].value = "the bridge was closed"
    assert "3 of 6 tokens were masked" in plain(picture_of(live))


def test_texts_that_cannot_be_read_are_answered_in_the_view(
    model: Electra, tokenizer: WordPiece
) -> None:
    live = corruptor.corruptor_view(model, tokenizer, TEXT)
    answers = {
        " ": "The sentence is empty",
        "the unicorn rose <b>": "never read “unicorn”, “<”, “b”, “>”",
        "the brigde was closed": "Near in spelling: “bridge”",
        f"{TEXT} {TEXT} {TEXT}": "47 tokens, [CLS] and [SEP] counted; expected at most 40",
        "the [MASK] rose": "holds [MASK], a special token",
    }
    for text, said in answers.items():
        live.controls["text"].value = text
        assert said in plain(picture_of(live)), text
        static = corruptor.corruptor_view(model, tokenizer, text).static
        assert said in static.text and said in plain(static.html)
    assert "<b>" not in corruptor.corruptor_view(model, tokenizer, "<b>").static.html
    live.controls["text"].value = TEXT.upper()
    assert "tokens were masked" in picture_of(live)


def test_wrong_models_and_settings_are_refused(model: Electra, tokenizer: WordPiece) -> None:
    detect: Any = corruptor.corrupt_and_detect
    for settings, said in (({"share": 1.5}, "0 to 1"), ({"seed": -1}, "from 0 on")):
        with pytest.raises(ValueError, match=said):
            detect(model, tokenizer, TEXT, **settings)
    view: Any = corruptor.corruptor_view
    with pytest.raises(ValueError, match="a BertForMaskedLM was given; expected an Electra"):
        view(model.generator, tokenizer, TEXT)
    with pytest.raises(ValueError, match="the tokenizer it was trained with"):
        view(model, WordPiece.from_words(["the"]), "the")


def test_boxes_keep_their_meaning_unless_told_otherwise() -> None:
    assert 'title="replaced by a random token"' in tokens.box("word", tokens.REPLACED)
    assert 'title="guessed right"' in tokens.box("word", tokens.KEPT, "guessed right")


# ---------------------------------------------------------------- charts

POINTS: list[dict[str, Any]] = [
    {"name": "BERT-base", "x": 110, "y": 0.795},
    {"name": "DistilBERT", "x": 66, "y": 0.770, "low": 0.76, "high": 0.785},
    {"name": "TinyBERT-6", "x": 67, "y": 0.7699},
    {"name": "a neighbour", "x": 67, "y": 0.7698},
    {"name": "TinyBERT-4", "x": 14.5, "y": 0.765},
]


@pytest.mark.parametrize("log_x", [False, True])
def test_tradeoff_names_every_dot(log_x: bool) -> None:
    figure = figures.tradeoff_chart(
        POINTS, x="weights (millions)", y="score", percent=True, log_x=log_x
    )
    check_figure(figure)
    traces = {trace.name: trace for trace in figure.data}
    for point in POINTS:
        trace = traces[point["name"]]
        assert (trace.x[0], trace.y[0]) == (point["x"], point["y"])
        assert f"{point['name']} {point['y']:.1%}" in labels_of(figure)
    assert len({trace.marker.symbol for trace in figure.data}) == len(POINTS)
    bar = traces["DistilBERT"].error_y
    assert list(bar.array) == [0.015] and list(bar.arrayminus) == [0.01]
    assert traces["BERT-base"].error_y.array is None
    for name, family in (("BERT-base", "bert"), ("TinyBERT-4", "tinybert")):
        assert traces[name].marker.color == style.COLOURS[family]
    x = [math.log10(p["x"]) if log_x else p["x"] for p in POINTS]
    low, high = figure.layout.xaxis.range
    assert low < min(x) and high > max(x)
    assert not log_x or list(figure.layout.xaxis.ticktext) == ["20", "50", "100"]
    assert chart_parts.log_ticks(4.9, 6.1) == [1e5, 2e5, 5e5, 1e6]
    assert [figures._short(t) for t in (0.5, 2_000, 5e5, 2e6)] == ["0.5", "2000", "500k", "2M"]
    assert figure.layout.title.text == "Score against weights (millions)"


def test_names_in_a_tradeoff_cover_nothing() -> None:
    figure = figures.tradeoff_chart(POINTS, x="size", y="score", percent=True)
    area = (style.WIDTH - 84, style.HEIGHT - 96)
    boxes = []
    for note in figure.layout.annotations:
        assert (note.xanchor, note.yanchor) == ("center", "middle")
        moved = (note.ax, -note.ay) if note.showarrow else (note.xshift, note.yshift)
        x, y = note.x * area[0] + moved[0], note.y * area[1] + moved[1]
        boxes.append((x - 3.7 * len(note.text), y - 9, x + 3.7 * len(note.text), y + 9))
    for i, one in enumerate(boxes):
        assert chart_parts.inside((one[0] + 1, one[1] + 1, one[2] - 1, one[3] - 1), area)
        assert not chart_parts.hits((one[0] + 1, one[1] + 1, one[2] - 1, one[3] - 1), boxes[:i])


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([], "no points"),
        ([{"x": 1, "y": 2}], "a name of its own"),
        ([{"name": "a", "x": 1, "y": 2}] * 2, "a name of its own"),
        ([{"name": "a", "x": 1}], "'a' has no y"),
        ([{"name": "a", "x": 1, "y": math.nan}], "no number"),
        ([{"name": "a", "x": 1, "y": 2, "low": 1}], "low and high, or neither"),
        ([{"name": "a", "x": 1, "y": 2, "low": 2.5, "high": 3}], "lies outside"),
        ([{"name": "a", "x": 0, "y": 2}], "x > 0"),
    ],
)
def test_tradeoffs_that_cannot_be_drawn_say_why(points: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        figures.tradeoff_chart(points, x="size", y="score", log_x=True)


def test_one_point_alone_is_drawn() -> None:
    figure = figures.tradeoff_chart([{"name": "a", "x": 0, "y": 0}], x="size", y="score")
    check_figure(figure)
    assert labels_of(figure) == ["a 0"]


def test_gradients_on_two_logarithmic_axes() -> None:
    heat = [1, 2, 4, 8]
    norms = {"KL alone": [0.5 / T**2 for T in heat], "T² · KL": [0.5 + 0.01 * T for T in heat]}
    figure = run_charts.gradient_chart(norms, heat)
    check_figure(figure)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == ["1", "2", "4", "8"]
    assert [list(trace.x) for trace in figure.data] == [heat, heat]
    assert list(figure.data[0].y) == style.rounded(norms["KL alone"])
    low, high = figure.layout.yaxis.range
    assert (low, high) == (-3, 0)
    assert all(low <= note.y <= high for note in figure.layout.annotations)
    assert labels_of(figure) == ["● KL alone 0.00781", "■ T² · KL 0.58"]
    assert figure.data[0].line.dash != figure.data[1].line.dash
    near = run_charts.gradient_chart({"a": [0.5, 0.5], "b": [0.5, 0.5001]}, [1, 8])
    one, two = near.layout.annotations
    assert abs(one.y - two.y) > 0.05


@pytest.mark.parametrize(
    ("norms", "heat", "said"),
    [
        ({}, [1, 2], "no loss"),
        ({"KL": [1.0]}, [1, 2], "1 norms for 2 temperatures"),
        ({"KL": [1.0, 0.0]}, [1, 2], "above zero"),
        ({"KL": [1.0, 1.0]}, [0, 2], "above zero"),
        ({"KL": [1.0, math.nan]}, [1, 2], "all of them numbers"),
    ],
)
def test_gradients_that_cannot_be_drawn_say_why(norms: Any, heat: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run_charts.gradient_chart(norms, heat)


ABLATION_STEPS = {
    "equal steps": {"BERT": [0.50, 0.52], "All-tokens MLM": [0.61, 0.6], "ELECTRA": [0.7, 0.66]},
    "equal arithmetic": {"BERT": [0.49], "All-tokens MLM": [0.55], "ELECTRA": [0.6]},
}


def test_ablation_steps_stand_in_rows_with_a_panel_a_group() -> None:
    figure = run_charts.ablation_chart(
        ABLATION_STEPS, title="Stones", x_title="share found", percent=True
    )
    check_figure(figure)
    traces = {trace.name: trace for trace in figure.data}
    symbols = set()
    for axis, (group, measured) in zip(("x", "x2"), ABLATION_STEPS.items(), strict=True):
        for place, (name, values) in enumerate(measured.items()):
            dots, bar = traces[f"{name}, {group}"], traces.get(f"{name}, {group}, mean")
            assert dots.xaxis == axis and list(dots.x) == values
            assert all(abs(y - place) < 0.5 for y in dots.y) and len(set(dots.y)) == len(values)
            mean = sum(values) / len(values)
            assert (bar is None) == (len(values) == 1)
            if bar is not None:
                assert bar.xaxis == axis and list(bar.x) == pytest.approx([mean, mean], rel=1e-3)
            assert any(text.startswith(f"<b>{mean:.1%}</b>") for text in labels_of(figure))
            symbols.add(dots.marker.symbol)
    assert len(symbols) == 3
    assert figure.layout.xaxis.range == figure.layout.xaxis2.range
    assert list(figure.layout.yaxis.ticktext) == ["BERT", "All-tokens MLM", "ELECTRA"]
    top, bottom = figure.layout.yaxis.range[1], figure.layout.yaxis.range[0]
    assert top < 0 < 2 < bottom  # the first row is the highest
    assert {"<b>equal steps</b>", "<b>equal arithmetic</b>"} <= set(labels_of(figure))
    assert "<b>51.0%</b> (sd 1.4%)" in labels_of(figure)
    assert "<b>49.0%</b> (one run)" in labels_of(figure)
    assert traces["ELECTRA, equal steps"].marker.color == style.COLOURS["electra"]


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({}, "one to three"),
        ({"a": {}}, "one to three"),
        ({"a": {"x": [1.0]}, "b": {"y": [1.0]}}, "different rows"),
        ({"a": {"x": []}}, "at least one value"),
        ({"a": {"x": [math.inf]}}, "all of them numbers"),
    ],
)
def test_ablation_steps_that_cannot_be_drawn_say_why(groups: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run_charts.ablation_chart(groups, title="t", x_title="x")


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", ["temperature", "layer_map", "corruptor"])
def test_every_control_has_a_name(root: Path, name: str) -> None:
    (path,) = (root / "course_lib" / "lectures").glob(f"*/views/{name}.py")
    source = path.read_text(encoding="utf-8")
    kinds = "Text|IntSlider|FloatSlider|Dropdown|SelectionSlider|Button"
    controls = len(re.findall(rf"w\.(?:{kinds})\(", source))
    assert controls == len(re.findall(r"description=", source)) > 0
