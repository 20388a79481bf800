"""Views and charts of lecture 06: the library's own numbers, in words and in the picture."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import pytest
import torch
from view_parts import check_figure, drawn, labels_of, picture_of, plain

from course_lib.family.tinybert import MAPPINGS, layer_mapping
from course_lib.lectures.lecture_06.views import layer_map, temperature
from course_lib.teaching import chart_parts, figures, run_charts, style

# ---------------------------------------------------------------- temperature


WORDS = ["<red>", "blue", "green", "grey", "brown", "black", "white", "pink", "old", "new"]


LOGITS = torch.tensor([4.0, 3.0, 2.5, 1.0, 0.0, -1.0, 0.5, -3.0, 2.0, -8.0])


def written(probability: float) -> str:
    """As in an SVG: nothing small is written as nothing."""
    if probability < 0.0005:
        return "&lt;0.1%"
    return "&gt;99.9%" if probability > 0.9995 else f"{probability:.1%}"


@pytest.mark.parametrize("T", temperature.TEMPERATURES)
def test_softened_probabilities_are_the_softmax_of_the_logits(T: float) -> None:
    softened = temperature.soften(LOGITS, WORDS, T, top=4, truth="new")
    probabilities = (LOGITS.double() / T).softmax(-1)
    order = [*LOGITS.argsort(descending=True)[:4].tolist(), 9]
    assert softened.words == [WORDS[i] for i in order]
    assert softened.probabilities == pytest.approx(
        [probabilities[i].item() for i in order], abs=1e-12
    )
    assert softened.rest == pytest.approx(1 - probabilities[order].sum().item(), abs=1e-12)
    entropy = torch.distributions.Categorical(probs=probabilities).entropy().item()
    assert softened.entropy == pytest.approx(entropy, abs=1e-9)


def test_heat_makes_the_answer_softer_but_keeps_the_order() -> None:
    softened = [temperature.soften(LOGITS, WORDS, T) for T in temperature.TEMPERATURES]
    for cool, warm in pairwise(softened):
        assert cool.entropy < warm.entropy < math.log(len(WORDS))
        assert cool.probabilities[0] > warm.probabilities[0] and cool.words == warm.words


def test_bars_carry_the_probabilities_and_differ_in_shape() -> None:
    one = temperature.soften(LOGITS, WORDS, 2.0, top=4, truth="green")
    view = temperature.temperature_picture([one])
    svg = drawn(view.html)
    for probability in [*one.probabilities, one.rest]:
        assert f">{written(probability)}</text>" in svg
    assert svg.count('fill="url(#hatch') == 1 and svg.count("stroke-dasharray") == 1
    assert ">green (true)</text>" in svg and temperature.REST in svg
    assert "&lt;red&gt;" in svg and "<red>" not in svg + view.html
    sentence = (
        f"T = 2: the first word, “<red>”, has {100 * one.probabilities[0]:.1f}% and the true one, "
    )
    assert sentence in view.text and sentence in plain(view.html)
    assert f"Entropy {one.entropy:.2f} nats, of at most {math.log(10):.2f}" in view.text


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
    assert svg.count("url(#hatch") == len(temperature.IN_PRINT)
    assert len(live.static.html) < 12_000


def test_what_is_small_is_not_written_as_zero_and_no_temperature_is_zero() -> None:
    one = temperature.soften(LOGITS, WORDS, 0.5, truth="new")
    assert 0 < one.probabilities[-1] < 0.0005
    view = temperature.temperature_picture([one])
    assert "0.0%" not in view.text and "the true one, “new”, <0.1%" in view.text
    sure = temperature.soften([50.0, 0.0], ["a", "b"], 1)
    view = temperature.temperature_picture([sure])
    assert "has >99.9%" in view.text and temperature.REST not in drawn(
        view.html
    )  # both words are there


# ---------------------------------------------------------------- which layer learns from which


def lines_of(svg: str) -> list[tuple[float, float, str]]:
    """Where a line begins and ends, from top to bottom, and its look."""
    lines = re.findall(r'<polyline points="\d+ ([\d.]+) \d+ ([\d.]+)" ([^>]*)/>', svg)
    return [(float(a), float(b), look) for a, b, look in lines]


def boxes_of(svg: str) -> dict[tuple[int, str], tuple[float, bool]]:
    """The middle of every box by column and name, and whether it is dashed."""
    pattern = (
        r'<rect x="(\d+)" y="([\d.]+)" width="\d+" height="([\d.]+)" rx="3" ([^>]*)/>'
        r"<text[^>]*>([^<]*)<"
    )
    boxes = {}
    for x, y, height, look, name in re.findall(pattern, svg):
        boxes[int(x), name] = (float(y) + float(height) / 2, "dasharray" in look)
    return boxes


@pytest.mark.parametrize(("M", "N", "kind"), [(4, 12, k) for k in MAPPINGS] + [(2, 24, "top")])
def test_lines_join_the_layers_of_the_mapping(M: int, N: int, kind: str) -> None:
    view = layer_map.layer_map_picture(M, N, kind)
    svg = drawn(view.html).split("</svg>")[0]
    boxes = boxes_of(svg)
    left, right = sorted({x for x, _ in boxes})
    assert len(boxes) == M + 2 + N + 2
    mapping = layer_mapping(M, N, kind)
    pairs = [("embeddings", "embeddings"), ("answers", "answers")]
    pairs += [(f"layer {m}", f"layer {n}") for m, n in enumerate(mapping, start=1)]
    expected = {(boxes[left, ours][0], boxes[right, theirs][0]) for ours, theirs in pairs}
    lines = lines_of(svg)
    assert len(lines) == len(expected) == M + 2
    for a, b, _ in lines:
        assert any(abs(a - x) < 0.2 and abs(b - y) < 0.2 for x, y in expected)
    idle = {name for (x, name), (_, dashed) in boxes.items() if x == right and dashed}
    assert idle == {f"layer {n}" for n in range(1, N + 1)} - {f"layer {n}" for n in mapping}
    assert not any(dashed for (x, _), (_, dashed) in boxes.items() if x == left)
    assert boxes[left, "embeddings"][0] > boxes[left, "layer 1"][0] > boxes[left, "answers"][0]
    dashes = {re.sub(r'.*dasharray="([^"]*)".*|.*', r"\1", look) for _, _, look in lines}
    assert len(dashes) == 3 and "" in dashes  # embeddings, layers and answers, without colour
    assert f"from the teacher's layers {', '.join(map(str, mapping))};" in view.text
    assert view.text in plain(view.html)


def test_menu_and_print_show_every_mapping() -> None:
    live = layer_map.layer_map_view(4, 12)
    pictures = set()
    for kind in MAPPINGS:
        live.controls["kind"].value = kind
        assert f"{kind}: the student's layers 1, 2, 3, 4" in plain(picture_of(live))
        pictures.add(picture_of(live))
    assert len(pictures) == 3
    svg = drawn(live.static.html).split("</svg>")[0]
    assert all(f">{kind}</text>" in svg and f"{kind}: " in live.static.text for kind in MAPPINGS)
    assert len(lines_of(svg)) == 3 * 6
    assert len(live.static.html) < 30_000


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
    lowest, highest = figure.layout.xaxis.range
    assert lowest < min(x) and highest > max(x)
    assert not log_x or list(figure.layout.xaxis.ticktext) == ["10", "20", "50", "100"]
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
    bottom, top = figure.layout.yaxis.range
    assert (bottom, top) == (-3, 0)
    assert all(bottom <= note.y <= top for note in figure.layout.annotations)
    assert labels_of(figure) == ["● KL alone 0.00781", "■ T² · KL 0.58"]
    assert figure.data[0].line.dash != figure.data[1].line.dash
    near = run_charts.gradient_chart({"a": [0.5, 0.5], "b": [0.5, 0.5001]}, [1, 8])
    one, two = near.layout.annotations
    assert abs(one.y - two.y) > 0.05
