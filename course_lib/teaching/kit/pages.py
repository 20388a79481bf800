"""The kit's pages: one template, and what is put into it. They load nothing from anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from course_lib.teaching.page import inline
from course_lib.teaching.printing import print_pages

STYLE = """
:root{color-scheme:light}
body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;color:#1a1a1a;
  background:#fff;max-width:860px;margin:0 auto;padding:1.2em 1.4em 3em}
h1{font-size:1.7em;line-height:1.2;margin:.4em 0}
h2{font-size:1.25em;margin:1.6em 0 .4em;border-bottom:1px solid #bbb;padding-bottom:.15em}
h3{font-size:1.05em;margin:1.2em 0 .3em}
p{margin:.4em 0}ul,ol{margin:.3em 0;padding-left:1.5em}
a{color:#00558a}
code{background:#f0f0f0;padding:0 .2em;font-size:.9em}
pre{background:#f6f6f6;padding:.5em .7em;font-size:.82em;line-height:1.35;white-space:pre-wrap;
  overflow-wrap:anywhere}
pre code{background:none;padding:0}
table.stages{width:auto}table.stages td{padding-right:1.5em}
.when{white-space:nowrap}
table{border-collapse:collapse;width:100%;margin:.5em 0}
th,td{text-align:left;vertical-align:top;padding:.3em .6em .3em 0;border-bottom:1px solid #ddd}
th{border-bottom:2px solid #888}
td.n,th.n{text-align:right;white-space:nowrap}
.small{font-size:.9em;color:#444}
.item{margin:1.1em 0;break-inside:avoid-page}
.item.code{break-inside:auto}
.answer{break-inside:avoid-page}
.points{float:right;color:#444;font-size:.9em;margin-left:1em;white-space:nowrap}
ol.choices{list-style:none;padding:0;margin:.4em 0}
ol.choices li{margin:.25em 0;padding-left:3.2em;text-indent:-3.2em}
ol.choices .box{display:inline-block;width:1.7em;text-indent:0}
ol.choices .letter{display:inline-block;width:1.5em;text-indent:0}
.line{border-bottom:1px solid #999;height:1.9em}
.room{border:1px solid #999;height:15em;margin:.4em 0;break-inside:avoid-page}
.key{border-left:4px solid #00664a;padding-left:.8em;margin:.3em 0}
.who td{border:1px solid #999;padding:.5em .7em}
.mark{border-left:4px solid #a03c00;padding-left:.8em}
@page{size:A4;margin:18mm 16mm}
@media print{body{max-width:none;padding:0;font-size:11pt}h2,h3{break-after:avoid}}
"""

FOOTER = (
    '<div style="width:100%;text-align:center;font:8px system-ui,sans-serif;color:#444">'
    '<span class="pageNumber"></span> of <span class="totalPages"></span></div>'
)


def page(title: str, body: str) -> str:
    """The template: every page of the kit is this."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><main>\n<h1>{escape(title)}</h1>\n{body}\n</main></body></html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of HTML cells. numbers: the columns that stand at the right."""
    of = {n: ' class="n"' for n in numbers}
    top = "".join(f"<th{of.get(n, '')}>{cell}</th>" for n, cell in enumerate(head))
    body = (
        "".join(f"<td{of.get(n, '')}>{cell}</td>" for n, cell in enumerate(row)) for row in rows
    )
    lines = "\n".join(f"<tr>{cells}</tr>" for cells in body)
    return f"<table><thead><tr>{top}</tr></thead><tbody>\n{lines}\n</tbody></table>"


def bullets(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{as_html(text)}</li>' for text in texts)}</ul>"


# ---------------------------------------------------------------- the course's marks as HTML


def as_html(text: str) -> str:
    """Plain HTML of the course's own marks: `code`, *stress*, a blank line between paragraphs, and
    code that stands between lines of three backticks."""
    parts = re.split(r"^```\n(.*?)^```$", text.strip(), flags=re.MULTILINE | re.DOTALL)
    made = []
    for place, part in enumerate(parts):
        if place % 2:
            made.append(f"<pre>{escape(part.rstrip(), quote=False)}</pre>")
        else:
            made += [_paragraph(p) for p in re.split(r"\n\s*\n", part) if p.strip()]
    if len(made) == 1 and made[0].startswith("<p>"):
        return made[0][3:-4]
    return "".join(made)


def _paragraph(text: str) -> str:
    lines = text.strip().splitlines()
    if all(line.startswith("- ") for line in lines):
        return f"<ul>{''.join(f'<li>{inline(line[2:], plain=True)}</li>' for line in lines)}</ul>"
    return f"<p>{inline(' '.join(lines), plain=True)}</p>"


# ---------------------------------------------------------------- pages to PDF


def printed(pages: Sequence[Path]) -> list[Path]:
    """Each page printed beside it, with its pages numbered at the foot."""
    numbered = {"display_header_footer": True, "header_template": "<span></span>"}
    return print_pages(pages, lambda tab: numbered | {"footer_template": FOOTER})
