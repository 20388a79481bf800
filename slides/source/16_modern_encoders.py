"""What deck 16 shows: read from data/results or drawn; never trained."""

from __future__ import annotations

from typing import Any

import drawing
from drawing import body_of, code, for_a_hall, table

from course_lib.family.modernbert import GatedFeedForward
from course_lib.kernels.rotary import rotary_reference
from course_lib.lectures.lecture_16.views import (
    results,
    tasks_chart,
)

CHANGES = (
    ("positions", "learned table", "queries and keys rotated (RoPE)", "Su et al. 2021"),
    ("norms", "after each half", "before each half", "Xiong et al. 2020"),
    ("feed-forward", "GELU", "GeGLU", "Shazeer 2020"),
    ("attention", "all see all", "two layers of three: a window", "Beltagy et al. 2020"),
    ("padding", "computed", "removed by the authors' code", "Portes et al. 2023"),
    ("masked", "15%", "30%", "Wettig et al. 2022"),
    ("segments, NSP", "yes", "no", "Liu et al. 2019"),
    ("biases", "everywhere", "only in the decoder", "Dayma et al. 2021"),
    ("longest text", "512", "8,192", "Warner et al. 2024"),
)


CHANGES_2026 = (
    ("norm", "LayerNorm; on the embeddings, too", "RMSNorm; none on the embeddings"),
    ("gate", "GELU", "SiLU"),
    ("key and value heads", "as many as query heads", "may be fewer"),
    ("local layers", "two of three, 64 on either side", "UltraBERT: two of three, 128 on either"),
    ("global layer", "the first of three", "UltraBERT: the last; EuroBERT: all"),
    ("decoder, biases", "tied, with a bias", "a matrix of its own, no bias"),
    ("longest text", "8,192", "EuroBERT 8,192, UltraBERT 32,768"),
)


def changes_2026() -> str:
    return table(("", "ModernBERT, 2024", "2025 and 2026"), CHANGES_2026, numbers=False, size=16)


def rungs_2026() -> str:
    return table(results.HEAD_2026, results.rows_2026(), size=16)


def extension() -> str:
    return table(results.extension_head(), results.extension_rows(), size=20)


def changes() -> str:
    head = ("", "BERT, 2018", "ModernBERT, 2024", "from")
    return table(head, CHANGES, numbers=False, size=22)


def code_rotary() -> str:
    return code(body_of(rotary_reference, "def turned"))


def code_gate() -> str:
    return code(body_of(GatedFeedForward.forward, "inner"))


def ladder_rows() -> str:
    return table(results.HEAD, results.ladder_rows(), size=19)


def tuned() -> Any:
    figure = for_a_hall(tasks_chart(), 1140, 470).update_annotations(font_size=17)
    axis = figure.layout.yaxis  # twelve rows: a name takes one line
    return figure.update_yaxes(ticktext=[name.replace("<br>", " ") for name in axis.ticktext])


def further_back() -> Any:
    return drawing.apart(for_a_hall(results.longer_chart("further_back"), 1140, 450, 300))
