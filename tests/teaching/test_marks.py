"""The marks of pictures: where they stand, what they escape, and their words."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from xml.etree import ElementTree

import pytest
import torch
from view_parts import drawn

from course_lib.teaching import page, style, svg


def numbers(mark: str, *names: str) -> list[float]:
    """These attributes of a mark's first shape."""
    return [float(re.search(rf' {name}="([-\d.]+)"', mark)[1]) for name in names]  # type: ignore[index]


def test_a_scale_leads_from_values_to_pixels_upwards_too() -> None:
    up = svg.Scale(-1, 3, 200, 100)
    assert [up(value) for value in (-1, 1, 3)] == [200, 150, 100]


def test_a_bar_has_its_name_before_it_and_its_words_behind_it() -> None:
    mark = svg.bar(100, 40, 60, 20, "name", "60%", fill="#123456", ink="#000", dash="4 3")
    assert numbers(mark[mark.index("<rect") :], "x", "y", "width", "height") == [100, 40, 60, 20]
    name, text = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"(?: text-anchor="(\w+)")?', mark)
    assert (float(name[0]) < 100, name[2]) == (True, "end")
    assert (float(text[0]) > 160, text[2]) == (True, "")
    assert 50 < float(text[1]) < 60  # on the middle of the bar
    assert "stroke-dasharray" in mark and "<text" not in svg.bar(0, 0, 1, 1)


def test_cells_stand_in_rows_and_columns_under_their_names() -> None:
    cells = svg.cells([[1, 2], [3, 4]], 10, 20, (30, 40), lambda v, i, j: {"text": f"{v}"} if v != 4
                      else None)  # fmt: skip
    assert [numbers(cell, "x", "y") for cell in cells] == [[10, 20], [40, 20], [10, 60]]
    assert all("rx=" not in cell and "stroke=" not in cell for cell in cells)
    names = svg.cell_names(["a", "b"], ["c"], 10, 20, (30, 40), bold=(1, -1))
    assert ["font-weight" in name for name in names] == [False, True, False]
    assert numbers(names[1], "x")[0] < 10 and numbers(names[2], "x", "y")[1] < 20
    turned = svg.cell_names([], ["c"], 10, 20, (30, 40), turn=-60)[0]
    assert "rotate(-60)" in turned and "text-anchor" not in turned


def test_axes_have_every_number_and_their_title() -> None:
    axis = svg.x_axis(svg.Scale(0, 10, 50, 250), 100, {0: "0", 5: "five"}, "steps", top=20)
    assert all(f">{label}</text>" in axis for label in ("0", "five", "steps"))
    assert 'points="150 20 150 104"' in axis
    assert ">low</text>" in svg.y_axis(svg.Scale(0, 1, 100, 20), 50, {0: "low"})


def test_lines_have_tips_dashes_and_places() -> None:
    mark = svg.line(1, 2, 3.14159, 4, dash="3 3", tip=True, opacity=0.5)
    assert 'points="1 2 3.1 4"' in mark and "url(#tip)" in mark and 'opacity="0.50"' in mark
    assert "marker-end" not in svg.arrow(0, 0, 1, 1, tip=False)


@pytest.mark.parametrize("fill", [style.hatch("#D55E00"), style.dotted("#8a8a8a", "#fff", 6, 1.7)])
def test_a_hatched_fill_brings_its_pattern_once(fill: str) -> None:
    content = svg.area(0, 0, 1, 1, fill) * 2 + svg.area(0, 0, 1, 1, "#fff")
    picture = page.svg_drawing(10, 10, content, "a < b")
    ElementTree.fromstring(picture)  # escaped, and well-formed
    name = fill.removeprefix("url(#").removesuffix(")")
    assert picture.count(f'<pattern id="{name}"') == 1 and "&lt; b" in picture
    assert "<pattern" not in page.svg_drawing(10, 10, svg.area(0, 0, 1, 1, "#fff"), "")


def test_a_picture_says_in_words_what_it_shows() -> None:
    picture = svg.picture("kind", 20, 10, [svg.dot(1, 2, 3, "#000")], ["One.", "Two <b>."])
    assert picture.text == "One.\nTwo <b>." and 'class="course-view kind"' in picture.html
    assert "<b>" not in picture.html and "&lt;b&gt;" in picture.html and "<svg" not in picture.html
    image = drawn(picture.html)  # the label is its alternative text
    assert "<circle" in image and page.LABEL.sub("", str(picture.inner), count=1) == image
    inline = svg.picture("kind", 20, 10, [], "One.", image=False, label="seen", text="read")
    assert 'aria-label="seen"' in inline.html and inline.text == "read"


def test_a_key_has_a_swatch_for_each_meaning() -> None:
    entries = [(svg.area(0, 0, 30, 13, "#fff"), "one"), (svg.dot(9, 8, 4, "#000"), "two")]
    image = drawn(svg.key(entries, "says"))
    (first, second) = map(float, re.findall(r"translate\(([\d.]+),3\)", image))
    assert second - first > 30 and ">one<" in image and ">two<" in image


def test_a_key_takes_a_second_line_where_the_first_is_full() -> None:
    image = drawn(svg.key([(svg.area(0, 0, 30, 13, "#fff"), "mw" * 12)] * 3, "says"))
    places = re.findall(r"translate\(([\d.]+),([\d.]+)\)", image)
    assert [y for _, y in places] == ["3", "3", "21"] and places[0][0] == places[2][0]
    assert svg.text_width("mm") > 2 * svg.text_width("il") and svg.text_width("a", 26) == 16


def test_heat_png_is_a_png_with_the_sign_of_each_number() -> None:
    uri = svg.heat_png(torch.tensor([[-1.0, 0.0], [0.5, 1.0]]))
    data = base64.b64decode(uri.split(",")[1])
    assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24]) == (2, 2)
    pixels = zlib.decompress(data[data.index(b"IDAT") + 4 :])
    assert tuple(pixels[1:4]) == style.CIVIDIS[0] and tuple(pixels[-3:]) == style.CIVIDIS[-1]


def test_values_that_are_none_of_the_options_are_named() -> None:
    page.check_one_of((4, 8), span=4)
    with pytest.raises(ValueError, match="span=5 was given; expected one of 4, 8"):
        page.check_one_of((4, 8), span=5)
