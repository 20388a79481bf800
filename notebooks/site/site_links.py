"""Links between notebooks as links between pages."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from docutils.nodes import make_id
from markdown_it.common.normalize_url import normalizeLinkText

LINK = re.compile(r'href="(\d\d_\w+)\.ipynb(?:#([^"]*))?"')


def as_jupyter_does(title: str) -> str:
    """A heading's name in links, which is JupyterLab's, in the form in which MyST reads links."""
    return normalizeLinkText(quote(title.replace(" ", "-")))


def to_pages(html: str) -> str:
    """HTML whose links to notebooks and their headings lead to pages and their headings' ids."""
    return LINK.sub(_to_page, html)


def _to_page(found: re.Match[str]) -> str:
    page, heading = found.groups()
    return f'href="{page}.html{"#" + make_id(unquote(heading)) if heading else ""}"'
