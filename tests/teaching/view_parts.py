"""What tests of views read: the picture, the text and the labels that a view shows."""

from __future__ import annotations

import base64
import json
import math
import re
from html import unescape
from typing import Any

from course_lib.teaching import page


def picture_of(live: page.Live) -> str:
    return live.widget.children[-1].value


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html))


def drawn(html: str) -> str:
    """The SVGs that a piece of HTML holds as images, decoded."""
    images = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", html)
    return "".join(base64.b64decode(one).decode() for one in images)


def labels_of(figure: Any) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def check_figure(figure: Any) -> None:
    """Every number finite, a title, no wider than the page, small in the notebook."""
    assert all(math.isfinite(v) for t in figure.data for axis in (t.x, t.y) for v in axis)
    assert figure.layout.title.text and figure.layout.width <= 760 and figure.layout.height <= 460
    written = json.dumps(figure.to_plotly_json(), default=list)
    assert "NaN" not in written and len(written) < 30_000
