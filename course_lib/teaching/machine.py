"""Is this machine ready for the course? The doctor's findings, on a page."""

from __future__ import annotations

import html

from course_lib.doctor import Finding, State, examine, verdict

from .page import Html, card

SIGNS: dict[State, str] = {"good": "✓ ready", "note": "– note", "missing": "✗ <b>to do</b>"}


def check_machine() -> Html:
    """What is here, what is missing and what to do about it; nothing is installed or changed. The
    same as `python -m course_lib.doctor`."""
    found = examine()
    lines = "".join(map(_line, found))
    list_ = f"<ul style='list-style:none;padding-left:0;margin:0'>{lines}</ul>"
    page = f"{list_}<p><b>{html.escape(verdict(found))}</b></p>"
    return Html(card(page, "machine-check"), "\n".join([*map(str, found), verdict(found)]))


def _line(finding: Finding) -> str:
    """Folders of the machine are named only where there is something to do."""
    where = f" ({finding.where})" if finding.where and finding.state != "good" else ""
    remedy = f"<br>&emsp;→ {html.escape(finding.remedy)}" if finding.remedy else ""
    said = html.escape(f"{finding.what}: {finding.found}{where}")
    return f"<li>{SIGNS[finding.state]}: {said}{remedy}</li>"
