"""What axe-core, run inside a page, finds that shuts readers out."""

from __future__ import annotations

from collections.abc import Sequence

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")  # axe's names for levels A and AA
AXE = Axe().axe_script


def serious_findings(page: Page, inside: str = "html", rules: Sequence[str] = WCAG) -> list[str]:
    """Each finding that axe calls serious or critical, with the element and the reason."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE)
    run = "([inside, runOnly]) => axe.run(inside, {runOnly, resultTypes: ['violations']})"
    found = page.evaluate(run, [inside, list(rules)])["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary']}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
