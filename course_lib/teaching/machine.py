"""Is this machine ready for the course? The doctor's findings, on a page."""

from __future__ import annotations

from dataclasses import replace

from course_lib.doctor import Finding, State, examine, verdict

from .page import Html, card, inline

SIGNS: dict[State, str] = {"good": "✓ ready", "note": "– note", "missing": "✗ <b>to do</b>"}


def check_machine() -> Html:
    """What is here, what is missing and what to do about it; nothing is installed or changed. The
    same as `python -m course_lib.doctor`; folders are named only where there is something to do."""
    findings = [replace(f, here="") if f.state == "good" else f for f in examine()]
    lines = "".join(map(_line, findings))
    list_ = f"<ul style='list-style:none;padding-left:0;margin:0'>{lines}</ul>"
    page = f"{list_}<p><b>{verdict(findings)}</b></p>"
    return Html(card(page, "machine-check"), "\n".join([*map(str, findings), verdict(findings)]))


def _line(finding: Finding) -> str:
    here = f" ({finding.here})" if finding.here else ""
    remedy = f"<br>&emsp;→ {inline(finding.remedy)}" if finding.remedy else ""
    sentence = inline(f"{finding.what}: {finding.message}{here}")
    return f"<li>{SIGNS[finding.state]}: {sentence}{remedy}</li>"
