"""Pages to PDF, by the Chromium of this machine: the kit's, and the decks' hand-outs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from course_lib.doctor import BROWSERS, program

AGAINST_HANGING = 30 * 60  # seconds for whatever the browser is waited for


def print_pages(
    pages: Sequence[Path], drawn: Callable[[Any], dict[str, Any]], query: str = "", **tab: Any
) -> list[Path]:
    """Each page printed beside it; where this machine cannot, [] and a line says why.

    drawn: waits until the page in a tab is complete, and returns what else Playwright's `pdf` is
    given. query: stands after a page's address. tab: what a new tab is given, as its size."""
    executable = program(BROWSERS)
    if executable is None:
        what = "the page itself is" if len(pages) == 1 else "the pages are"
        print(f"NO PDF: no Chromium found to print with; {what} complete", file=sys.stderr)
        return []
    if find_spec("playwright") is None:
        print(
            "NO PDF: playwright is not installed (`make kit` and `make slides` do it)",
            file=sys.stderr,
        )
        return []

    def work() -> list[Path]:
        from playwright.sync_api import sync_playwright

        written = []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=executable, args=["--no-sandbox", "--disable-gpu"],
                timeout=AGAINST_HANGING * 1000,
            )  # fmt: skip
            view = browser.new_page(**tab)
            view.set_default_timeout(AGAINST_HANGING * 1000)
            for page in pages:
                target, partial = page.with_suffix(".pdf"), page.with_suffix(".partial")
                view.goto(page.resolve().as_uri() + query)
                more = drawn(view)
                view.pdf(path=partial, prefer_css_page_size=True, print_background=True, **more)
                written.append(partial.replace(target))
            browser.close()
        return written

    # Playwright refuses where an event loop runs, as in every notebook: so in a thread of its own.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()
