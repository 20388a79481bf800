"""The views of lecture 14: bytes, roofline and speeds, in words and in the picture."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from view_parts import drawn, labels_of, picture_of, plain

from course_lib.bench.roofline import Placed
from course_lib.bench.traffic import Traffic
from course_lib.lectures.lecture_14.views import page_faults, roofline, speeds, traffic_bars
from course_lib.train.allocator import keep_freed_memory

# ---------------------------------------------------------------- page faults


def test_a_bar_a_step_first_as_it_is_then_kept() -> None:
    before = [page_faults.Counted(faults, 0.25) for faults in (900, 800)]
    figure = page_faults.faults_chart(before, [page_faults.Counted(3, 0.125)], page=10_000)
    assert [(t.name, list(t.x), list(t.y)) for t in figure.data] == [
        ("as it is", [1, 2], [900, 800]), ("freed memory kept", [3], [3]),
    ]  # fmt: skip
    assert [list(row) for row in figure.data[0].customdata] == [[9, 250], [8, 250]]
    assert figure.data[0].marker.pattern.shape != figure.data[1].marker.pattern.shape
    assert len(page_faults.faults_chart(before, []).data) == 1  # the allocator cannot be told


def test_a_fresh_process_counts_its_steps() -> None:
    before, after = page_faults.fresh_faults("tiny", 2)
    assert len(before) == (0 if sys.platform == "win32" else 2)
    assert all(one.seconds > 0 and one.faults >= 0 for one in before)
    assert len(after) == (3 if keep_freed_memory() and before else 0)


# ---------------------------------------------------------------- traffic

TWINS = {
    "reference": {
        "softmax": Traffic("softmax", 0, 50_000_000, 30_000_000),
        "matrix product": Traffic("matrix product", 4_000, 20_000_000, 10_000_000),
    },
    "fast": {
        "matrix product": Traffic("matrix product", 1_000, 8_000_000, 4_000_000),
        "gather": Traffic("gather", 0, 6_000_000, 4_000_000),
    },
}


def test_bars_are_the_bytes_of_each_kind() -> None:
    figure = traffic_bars.traffic_chart(TWINS, title="Loss")
    ticks = [re.sub("<.*?>", "", tick) for tick in figure.layout.yaxis.ticktext]
    assert ticks == ["reference  read", "reference  written", "fast  read", "fast  written"]
    bars = {trace.name: list(trace.x) for trace in figure.data}
    assert bars == {
        "softmax": [50, 30, 0, 0], "matrix product": [20, 10, 8, 4], "gather": [0, 0, 6, 4],
    }  # fmt: skip
    styles = [(t.marker.color, t.marker.pattern.shape) for t in figure.data]
    assert len(set(styles)) == len({shape for _, shape in styles}) == 3
    assert figure.layout.xaxis.title.text.startswith("MB") and figure.layout.title.text == "Loss"
    assert {"<b>70.0 MB</b>", "<b>40.0 MB</b>", "<b>14.0 MB</b>", "<b>8.00 MB</b>"} <= set(
        labels_of(figure)
    )
    assert labels_of(figure)[-1] == (
        "reference moves 110 MB, fast 22.0 MB: 5.00 times less.<br>"
        "FLOPs of the matrix products: 4.00 times less."
    )


def test_small_kinds_are_put_together_and_nothing_is_lost() -> None:
    kinds = {f"kind {k}": Traffic("k", 0, 10 * (9 - k), 9 - k) for k in range(9)}
    figure = traffic_bars.traffic_chart({"mine": kinds})
    assert [t.name for t in figure.data] == [f"kind {k}" for k in range(5)] + ["all other"]
    assert sum(t.x[0] for t in figure.data) == sum(one.read for one in kinds.values())
    assert figure.data[-1].x[1] == 4 + 3 + 2 + 1
    assert labels_of(figure)[-1] == "mine moves 495 bytes."


def test_the_sentence_says_also_when_more_is_moved() -> None:
    turned = {"fast": TWINS["fast"], "reference": TWINS["reference"]}
    sentence = labels_of(traffic_bars.traffic_chart(turned))[-1]
    assert "5.00 times more" in sentence and "4.00 times more" in sentence
    assert (
        "the same"
        in labels_of(traffic_bars.traffic_chart({"a": TWINS["fast"], "b": TWINS["fast"]}))[-1]
    )


# ---------------------------------------------------------------- roofline

ROOF = {"float32": 200.0, "bfloat16": 800.0, "memory": 20.0}


def placement(name: str, twin: str, intensity: float, ms: float, how: str = "") -> Placed:
    unavoidable = 10_000_000
    flops = round(intensity * unavoidable)
    return Placed(name, twin, flops, unavoidable, 4 * unavoidable, ms / 1e3, how)


POINTS = [
    placement("masked-LM loss", "reference", 680, 90),
    placement("masked-LM loss", "fast", 102, 20),
    placement("attention", "reference", 32, 12),
    placement("attention", "fast", 32, 9, "plain"),
    placement("attention", "fast", 32, 3, "fused"),
    placement("disentangled attention", "reference", 128, 90),
    placement("disentangled attention", "fast", 90, 35),
    placement("distillation loss", "reference", 1085, 150),
    placement("distillation loss", "fast", 1085, 120),
    placement("early exit", "reference", 940, 140),
    placement("early exit", "fast", 590, 80),
    placement("ELECTRA's sampling", "reference", 0, 50),
    placement("ELECTRA's sampling", "fast", 0, 4),
]


def traces(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data if trace.xaxis != "x2"}


def test_the_roof_bends_at_the_ridge() -> None:
    assert roofline.ridge(ROOF) == 10 and roofline.ridge(ROOF, "bfloat16") == 40
    figure = roofline.roofline_chart(ROOF, POINTS)
    drawn = traces(figure)
    assert drawn["float32 products"].x[0] == 10 and set(drawn["float32 products"].y) == {200}
    assert drawn["bfloat16 products"].x[0] == 40 and set(drawn["bfloat16 products"].y) == {800}
    slope = drawn["memory"]
    assert slope.y[-1] == 800 and [y / x for x, y in zip(slope.x, slope.y, strict=True)] == (
        pytest.approx([20, 20], rel=1e-3)
    )
    assert list(drawn["ridge"].x) == [10, 10]
    assert drawn["float32 products"].line.dash != drawn["bfloat16 products"].line.dash
    labels = labels_of(figure)
    assert {"ridge: 10 a byte", "memory: 20 GB/s", "float32 products: 200 GFLOP/s"} <= set(labels)
    without = roofline.roofline_chart({**ROOF, "bfloat16": None}, POINTS)
    assert "bfloat16 products" not in traces(without)
    assert traces(without)["memory"].y[-1] == 200


def test_points_stand_where_they_were_measured_hollow_and_filled() -> None:
    drawn = traces(roofline.roofline_chart(ROOF, POINTS))
    for point in POINTS[:-2]:
        name = ", ".join(part for part in (point.name, point.twin, point.how) if part)
        marker = drawn[name]
        assert list(marker.x) == pytest.approx([point.intensity], rel=1e-3)
        assert list(marker.y) == pytest.approx([point.gflops], rel=1e-3)
        assert (marker.marker.color == "white") == (point.twin == "reference")
    joined = drawn["early exit, from reference to fast"]
    assert list(joined.x) == pytest.approx([940, 590], rel=1e-3)
    moved = traces(roofline.roofline_chart(ROOF, POINTS, by="moved"))
    assert list(moved["masked-LM loss, fast"].x) == pytest.approx([102 / 4], rel=1e-3)


def test_labels_name_each_fast_twin_with_its_gain() -> None:
    figure = roofline.roofline_chart(ROOF, POINTS)
    labels = set(labels_of(figure))
    assert {"attention, fused <b>4.0×</b>", "attention, plain <b>1.3×</b>"} <= labels
    assert {"masked-LM loss <b>4.5×</b>", "distillation loss <b>1.2×</b>"} <= labels
    assert "ELECTRA's sampling <b>12×</b>" in labels
    alone = roofline.roofline_chart(ROOF, POINTS[:1])
    assert "masked-LM loss" in labels_of(alone)


@pytest.mark.parametrize("by", ["unavoidable", "moved"])
@pytest.mark.parametrize("roof", [ROOF, {**ROOF, "bfloat16": None}, {**ROOF, "memory": 4.0}])
def test_labels_do_not_collide(roof: Any, by: str) -> None:
    figure = roofline.roofline_chart(roof, POINTS, by)
    inner = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    width = figure.layout.width - figure.layout.margin.l - figure.layout.margin.r
    boxes = []
    for note in figure.layout.annotations:
        if note.xref == "paper" and note.yref == "paper" and note.xanchor == "center":
            if note.textangle:
                continue  # the slope's own name
            half = roofline.wide_of(note.text) / 2
            x, y = note.x * width, note.y * inner
            boxes.append((x - half, y - 8, x + half, y + 8))
    assert len(boxes) == 6
    for i, a in enumerate(boxes):
        assert a[0] >= 0 and a[2] <= width + 15
        for b in boxes[:i]:
            assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]


def test_kernels_without_products_stand_by_bytes_a_second() -> None:
    figure = roofline.roofline_chart(ROOF, POINTS)
    strip = {t.name: t for t in figure.data if t.xaxis == "x2"}
    assert list(strip["memory"].x) == [20, 20]
    assert list(strip["ELECTRA's sampling, fast"].x) == pytest.approx([2.5])  # 10 MB in 4 ms
    assert list(strip["ELECTRA's sampling, reference"].x) == pytest.approx([0.2])
    assert any("Without matrix products" in text for text in labels_of(figure))
    plain_roof = roofline.roofline_chart(ROOF, POINTS[:-2])
    assert not [t for t in plain_roof.data if t.xaxis == "x2"]
    assert plain_roof.layout.height < figure.layout.height
    written = json.dumps(figure.to_plotly_json(), default=list)
    assert "NaN" not in written and len(written) < 30_000


# ---------------------------------------------------------------- speeds

FOUND = {
    "machine": {"processor": "x86_64", "threads": 2, "torch": "2.13.0", "date": "2030-01-02"},
    "tables": {
        "Masking <b>, 64×512": [
            {"name": "transformers' collator", "rates": [900.0, 1_000.0, 1_100.0]},
            {"name": "ours", "rates": [20_000.0, 24_000.0, 32_000.0]},
        ],
        "Early exit": [
            {"name": "full depth", "rates": [50.0, 50.0]},
            {"name": "rows leave", "rates": [45.0, 45.0]},
        ],
    },
    "remarks": {"Early exit": "time 0.90× less\n(goal: 0.85 or more)"},
}


def test_speeds_are_medians_with_their_middle_half() -> None:
    peer, ours = speeds.speeds(FOUND, "Masking <b>, 64×512")
    assert peer == ("transformers' collator", 1_000, 950, 1_050, 1)
    assert ours == ("ours", 24_000, 22_000, 28_000, 24)


def test_the_first_row_is_hollow_and_ratios_stand_at_the_end() -> None:
    picture = drawn(speeds.speed_picture(FOUND, "Masking <b>, 64×512").html)
    fills = re.findall(r'<circle [^>]*r="5" fill="([^"]+)"', picture)
    assert len(fills) == 2 and fills[0] == "#fff" != fills[1]
    assert ">24×</text>" in picture and ">1.0×</text>" in picture


def test_captions_say_machine_date_and_remark() -> None:
    picture = speeds.speed_picture(FOUND, "Early exit")
    assert "Measured on x86_64, 2 threads, torch 2.13.0, 2030-01-02." in picture.text
    assert "medians of 2 rounds" in picture.text and "Fastest: full depth, 1.0×" in picture.text
    assert "(goal: 0.85 or more)" in plain(picture.html) and "0.90×" in picture.text
    gpu = {**FOUND, "machine": {**FOUND["machine"], "gpu": "H"}}
    assert "2 threads, H, torch" in speeds.speed_picture(gpu, "Early exit").text


def test_the_menu_reaches_every_table_and_the_print_holds_all() -> None:
    live = speeds.speed_chart(FOUND)
    menu = live.controls["table"]
    assert list(menu.options) == list(FOUND["tables"]) and menu.description == "table"
    pictures = set()
    for title in menu.options:
        menu.value = title
        assert title in plain(picture_of(live))
        pictures.add(picture_of(live))
    assert len(pictures) == 2
    assert all(title in live.static.text for title in FOUND["tables"])
    assert "rows leave" in plain(live.static.html) and "<b>" not in live.static.html
    assert live.static.html.count("<details") == 1
    first = speeds.speed_chart(FOUND, "Early exit")
    assert first.controls["table"].value == "Early exit"


@pytest.mark.parametrize("rates", [[1e7, 1.001e7], [3.0, 3.1], [1.0, 1e9]])
def test_every_axis_has_marks_to_read(rates: list[float]) -> None:
    record = {**FOUND, "tables": {"t": [{"name": "a", "rates": rates}]}}
    picture = drawn(speeds.speed_picture(record, "t").html)
    axis = re.findall(r'text-anchor="middle"[^>]*>([^<]+)<', picture)
    axis.remove("tokens a second")
    assert 1 <= len(axis) <= 11 and len(set(axis)) == len(axis)
