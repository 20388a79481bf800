"""Which pages need not run again here: nothing that they depend on has changed since they passed.

For work on one lecture: `make test CHANGED=1` leaves such pages out of the notebooks' part. A clean
clone knows of no page that passed, and in CI (the variable CI is set) nothing is left out."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from pathlib import Path

from course_lib.files import write_atomic

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "pages_passed.json"  # page: what it stood on when it last passed
SWITCH = "COURSE_ONLY_CHANGED"


def stands_on(page: str, root: Path = ROOT) -> str:
    """A hash of all that a page reads: itself, the package without other lectures' rooms, the data,
    the versions, the environment. Page 00 reads every room."""
    own = f"lecture_{page[:2]}"
    files = [root / "notebooks" / page, root / "data" / "MANIFEST.sha256"]
    files += [root / name for name in ("pyproject.toml", "constraints.txt")]
    for path in sorted((root / "course_lib").rglob("*")):
        room = next((part for part in path.parts if part.startswith("lecture_")), own)
        read = path.suffix in (".py", ".toml") and (room == own or page.startswith("00"))
        files += [path] if read else []
    whole = hashlib.sha256(f"{platform.python_version()} {sys.prefix}".encode())
    for path in files:
        whole.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return whole.hexdigest()


def left_out(pages: list[Path]) -> list[Path]:
    """Of these pages those that passed as they are, where that is asked for."""
    if os.environ.get(SWITCH, "") in ("", "0") or os.environ.get("CI"):
        return []
    passed = _passed()
    return [p for p in pages if p.name in passed and passed[p.name] == stands_on(p.name)]


def remember(page: Path, good: bool) -> None:
    """Note that a page of the course passed, or that it did not."""
    if not (ROOT / "notebooks" / page.name).exists():
        return  # a page that a test made
    passed = {name: of for name, of in _passed().items() if name != page.name}
    if good:
        passed[page.name] = stands_on(page.name)
    write_atomic(KEPT, json.dumps(passed, indent=1) + "\n")


def _passed() -> dict[str, str]:
    try:
        return dict(json.loads(KEPT.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
