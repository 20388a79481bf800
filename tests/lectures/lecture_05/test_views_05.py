"""The view and the charts of lecture 05: the library's own numbers, in words and in the picture."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from view_parts import check_figure, drawn, labels_of, picture_of, plain

from course_lib import bert, count_parameters
from course_lib.config import BertConfig, encoder_flops, published
from course_lib.family.albert import AlbertConfig, albert, parameter_breakdown
from course_lib.lectures.lecture_05.views import calculator, factors, pairs, scores
from course_lib.teaching import figures, run_charts, style
from course_lib.teaching.claims import printed
from course_lib.train.metrics import layer_distances

# ---------------------------------------------------------------- charts


def test_layers_in_two_panels() -> None:
    models = {"albert": ([3.0, 2.0, 2.5], [40.0, 30.0, 35.0]), "MiniLM": ([1.0], [20.0])}
    figure = run_charts.layer_distance_chart(models, title="How far a layer moves a vector")
    check_figure(figure)
    panels = {(trace.name, trace.xaxis): trace for trace in figure.data}
    for name, (moved, turned) in models.items():
        assert list(panels[name, "x"].y) == moved and list(panels[name, "x2"].y) == turned
        assert list(panels[name, "x"].x) == list(range(1, len(moved) + 1))
        assert panels[name, "x2"].yaxis == "y2"
        assert panels[name, "x"].line.dash == panels[name, "x2"].line.dash
    assert labels_of(figure) == ["● albert", "■ MiniLM"]
    assert figure.layout.yaxis.title.text == "Euclidean distance"
    assert figure.layout.yaxis2.title.text == "angle (degrees)"
    assert figure.layout.yaxis.range[0] == 0 and figure.layout.yaxis.range[1] > 3


def test_layer_chart_takes_what_the_metric_gives() -> None:
    torch.manual_seed(0)
    model = albert("base", vocab_size=50, hidden_size=16, num_heads=2, num_layers=3).eval()
    ids = torch.arange(5, 15)[None]
    states = model(ids, output_hidden_states=True).hidden_states
    measured = layer_distances(states, torch.ones_like(ids))
    figure = run_charts.layer_distance_chart({"fresh": measured}, title="Random initialisation")
    assert list(figure.data[0].y) == style.rounded(measured[0])
    assert list(figure.data[1].y) == style.rounded(measured[1])


def test_heat_chart_writes_fractions_as_percentages() -> None:
    figure = figures.heat_chart([[0.25, 0.5]], ["a"], ["x", "y"], percent=True)
    assert figure.data[0].texttemplate == "%{z:.1%}"
    assert figure.data[0].colorbar.tickformat == ".0%"


# ---------------------------------------------------------------- parameters


SHAPE: dict[str, Any] = {"vocab_size": 500, "hidden_size": 128, "num_heads": 2, "num_layers": 6}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sharing": "attention", "num_groups": 2},
        {"sharing": "feed_forward", "embedding_size": 32},
        {"sharing": "none", "intermediate_size": 256},
        {"sharing": "all", "num_groups": 3, "embedding_size": 256},
    ],
)
def test_breakdown_adds_up_to_the_model(changes: dict[str, Any]) -> None:
    encoder = albert("base", **SHAPE, **changes)
    config: Any = encoder.config
    parts = parameter_breakdown(config)
    assert list(parts) == ["embeddings", "projection", "blocks", "pooler"]
    assert sum(parts.values()) == count_parameters(encoder)
    E, H = config.embedding_size, 128
    assert parts["projection"] == E * H + H
    assert parts["embeddings"] == (500 + 512 + 2) * E + 2 * E
    assert parts["pooler"] == H * H + H


def test_breakdown_of_bert_has_no_projection() -> None:
    encoder = bert("tiny", vocab_size=500)
    parts = parameter_breakdown(encoder.config)
    assert sum(parts.values()) == count_parameters(encoder) and parts["projection"] == 0
    large = parameter_breakdown(BertConfig())
    assert sum(large.values()) == 109_482_240  # BERT-base, with its pooler
    assert sum(parameter_breakdown(AlbertConfig()).values()) == 11_683_584


def numbers(text: str) -> dict[str, tuple[int, int]]:
    """The two columns of the table in a calculator's text."""
    lines = re.findall(r"^(\w.*?)\s{2,}([\d,]+)\s+([\d,]+)$", text, flags=re.M)
    return {name: (int(a.replace(",", "")), int(b.replace(",", ""))) for name, a, b in lines}


def test_calculator_shows_the_librarys_counts() -> None:
    view = calculator.parameter_picture(5_000, 64, 256, 6, 2, "attention", 3)
    shape: dict[str, Any] = dict(vocab_size=5_000, hidden_size=256, num_layers=6, num_heads=4)
    ours = albert("base", **shape, intermediate_size=512, embedding_size=64, sharing="attention",
                  num_groups=3)  # fmt: skip
    theirs = bert("base", **shape, intermediate_size=512)
    totals = (count_parameters(ours), count_parameters(theirs))
    table = numbers(view.text)
    assert table["total"] == totals
    parts = (parameter_breakdown(ours.config), parameter_breakdown(theirs.config))
    for part, name in calculator.PARTS.items():
        if part != "total":
            assert table[name] == (parts[0][part], parts[1][part])
        assert all(f">{count:,}<" in drawn(view.html) for count in table[name])
    assert f"{totals[0] / totals[1]:.1%} of BERT's {totals[1]:,}" in view.text
    assert encoder_flops(ours.config, 128) == encoder_flops(theirs.config, 128)
    assert f"{encoder_flops(ours.config, 128) / 1e9:,.1f} billion in both" in view.text
    assert "share the attention half within each of 3 groups" in view.text
    assert all(line in plain(view.html) for line in view.text.splitlines()[-4:])


def test_bars_are_drawn_to_one_scale() -> None:
    view = calculator.parameter_picture()
    bars = re.findall(r'<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="16"', drawn(view.html))
    counts = [
        count for column in zip(*numbers(view.text).values(), strict=True) for count in column
    ]
    scale = max(map(float, bars)) / max(counts)
    assert len(bars) == 10
    for width, count in zip(bars, counts, strict=True):
        assert float(width) == pytest.approx(count * scale, abs=1.0)


def test_choosing_a_preset_moves_the_sliders_and_a_slider_leaves_it() -> None:
    live = calculator.parameter_calculator()
    assert numbers(live.static.text)["total"][0] == 11_683_584
    for size, hidden in (("large", 1024), ("xlarge", 2048), ("xxlarge", 4096), ("base", 768)):
        live.controls["preset"].value = size
        assert live.controls["hidden_size"].value == hidden
        assert live.controls["preset"].value == size
        config = published("albert", size, AlbertConfig)
        total = sum(parameter_breakdown(config).values())
        assert f"{total:,}" in picture_of(live)
    live.controls["embedding_size"].value = 768
    assert live.controls["preset"].value == calculator.OWN
    assert "E = 768" in picture_of(live)


def test_groups_that_do_not_divide_give_a_message() -> None:
    live = calculator.parameter_calculator()
    live.controls["num_groups"].value = 5
    assert "num_groups=5 was given for 12 layers" in plain(picture_of(live))
    live.controls["num_layers"].value = 10
    assert "within each of 5 groups" in picture_of(live)


def test_a_wide_embedding_saves_nothing() -> None:
    view = calculator.parameter_picture(1_000, 512, 64, 1, sharing="none")
    assert "it saves nothing" in view.text


# ---------------------------------------------------------------- pictures and printed tables


def test_factors_are_drawn_to_one_scale() -> None:
    view = factors.factors_picture()
    boxes = re.findall(r'width="([\d.]+)" height="([\d.]+)" fill="#(?!fff)', drawn(view.html))
    counts = [int(n.replace(",", "")) for n in re.findall(r"= ([\d,]+) numbers", view.text)]
    assert counts == [30_000 * 768, 30_000 * 128, 128 * 768]
    scale = (factors.LONG / 30_000) ** 2
    for (width, height), count in zip(boxes, counts, strict=True):
        assert float(width) * float(height) == pytest.approx(count * scale, rel=0.05)


def test_one_block_is_stored_and_visited_in_every_layer() -> None:
    view = factors.visits_picture()
    counts = [parameter_breakdown(published("albert", "base", AlbertConfig))["blocks"],
              parameter_breakdown(BertConfig())["blocks"]]  # fmt: skip
    assert counts[1] == 12 * counts[0] and all(
        f"{count:,} weights" in view.text for count in counts
    )
    picture = drawn(view.html)
    assert picture.count('stroke-dasharray="4 3"') == 11  # visits that store nothing
    assert picture.count('rx="6"') == 24


def test_pairs_say_what_is_drawn() -> None:
    assert pairs.pairs_picture().text.count("label 1") == 2
    assert drawn(pairs.openings_picture().html).count(style.VERMILION) == 2  # the framed openings


def test_every_printed_score_stands_with_the_number_of_models_behind_it() -> None:
    head, *rows = scores.glue_rows()
    assert len(rows) == 10 and all(len(row) == len(head) for row in rows)
    assert {row[2] for row in rows if row[1] == "dev"} == {"one model"}
    assert all(row[2].startswith("ensemble") for row in rows if row[1] == "test")
    assert rows[-1][-1] == str(printed("glue")["albert_test"]["printed"])
    paper = printed("glue")["albert_test"]["scores"]
    assert rows[-1][4:-1] == [str(score) for task, score in paper.items() if task != "MNLI"]
    text = plain(scores.reading_table().html)
    for row in scores.reading_rows():
        assert all(cell in text for cell in row)
