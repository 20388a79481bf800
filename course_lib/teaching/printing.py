"""Pages to PDF, by the Chromium of this machine: the kit's, and the decks' hand-outs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from course_lib.doctor import BROWSERS, how_to_install_browser, program

AGAINST_HANGING = 30 * 60  # seconds for whatever the browser is waited for


class NoPrinter(ValueError):
    """This machine cannot make PDFs; the message is one sentence that says what to install."""


def add_no_pdf(parser: argparse.ArgumentParser) -> None:
    """The option of every command that prints."""
    parser.add_argument(
        "--no-pdf", dest="pdf", action="store_false", help="pages only, made without a browser"
    )


def printer() -> str:
    """Where the browser is that prints; call it before anything is written. Raises NoPrinter."""
    executable = program(BROWSERS)
    needs = [] if executable else [("Chromium or Chrome", how_to_install_browser())]
    if find_spec("playwright") is None:
        needs.append(("the package playwright", f"{sys.executable} -m pip install playwright"))
    if executable is None or needs:
        names, commands = zip(*needs, strict=True)
        raise NoPrinter(
            f"PDFs are printed with {' and '.join(names)}, not found here. Install with "
            f"`{' && '.join(commands)}`, or leave the PDFs out with --no-pdf (make: PDF=no)."
        )
    return executable


def print_pages(
    pages: Sequence[Path], drawn: Callable[[Any], dict[str, Any]], query: str = "", **tab: Any
) -> list[Path]:
    """Each page printed beside it. Raises NoPrinter where this machine cannot.

    drawn: waits until the page in a tab is complete, and returns what else Playwright's `pdf` is
    given. query: stands after a page's address. tab: what a new tab is given, as its size."""
    executable = printer()

    def work() -> list[Path]:
        from playwright.sync_api import Error, sync_playwright

        written = []
        with sync_playwright() as playwright:
            try:
                browser = playwright.chromium.launch(
                    executable_path=executable, args=["--no-sandbox", "--disable-gpu"],
                    timeout=AGAINST_HANGING * 1000,
                )  # fmt: skip
            except Error as error:
                reason = str(error).strip().splitlines()[0]
                raise NoPrinter(
                    f"{executable} is installed but does not start ({reason}). Reinstall it with "
                    f"`{how_to_install_browser()}`, or leave the PDFs out with --no-pdf "
                    "(make: PDF=no)."
                ) from error
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
