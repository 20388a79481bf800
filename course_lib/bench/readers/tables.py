"""What came out, as tables: which reader reads which model, and what is lost on the way."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from course_lib.files import read_result

from .light import LIGHT
from .others import OTHERS
from .samples import NAMES

READERS = (*LIGHT, *(reader for other in OTHERS.values() for reader in other.readers))
RESULT = "12_readers"  # in data/results
ASIDE = ("reads texts only", "no masked-LM head")  # said by our scripts, not by a reader
WRONG = 0.05
Readers = Mapping[str, Mapping[str, Any]]  # reader -> {"versions", "rows"}


def stored() -> Readers:
    """What the readers gave last; nothing where none ever ran."""
    try:
        return read_result(RESULT)["readers"]  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}


def matrix(readers: Readers) -> list[list[str]]:
    """A row a model: its name, then for each of READERS the largest difference from ours, "refuses"
    or "not measured"; "–" where a model has not what is read, as a ViT no texts. Larger ones are
    "wrong": no rounding, but another model."""
    return [[name, *(_cell(readers.get(r, {}).get("rows", {}).get(name)) for r in READERS)]
            for name in NAMES]  # fmt: skip


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "not measured"
    if "difference" in row:
        apart = row["difference"]
        return f"wrong by {apart:.1f}" if apart > WRONG else f"{apart:.0e}" if apart else "0"
    return "–" if row["says"] in ASIDE else "refuses"


def reader_rows(readers: Readers) -> list[list[str]]:
    """A row a reader: its name and version, how many models it reads, the largest difference, what
    is lost, and what it says to one that it refuses."""
    rows = []
    for reader in READERS:
        result = readers.get(reader, {"versions": {}, "rows": {}})
        models = [row for row in result["rows"].values() if row.get("says") not in ASIDE]
        if not models:
            rows.append([reader, "", "not measured", "", "", ""])
            continue
        read = [row for row in models if row.get("difference", 1) <= WRONG]
        versions = ", ".join(f"{n} {v}" for n, v in result["versions"].items() if n != "torch")
        worst = f"{largest(result['rows']):.0e}" if read else ""
        lost = _parts(row["lost"] for row in models if "lost" in row)
        says = _messages(row["says"] for row in models if "says" in row)
        rows.append([reader, versions, f"{len(read)} of {len(models)}", worst, lost, says])
    return rows


def largest(rows: Mapping[str, Mapping[str, Any]]) -> float:
    """The largest difference of those that are rounding."""
    apart = [row["difference"] for row in rows.values() if "difference" in row]
    return max(value for value in apart if value <= WRONG)


def _parts(texts: Iterable[str]) -> str:
    """What is lost, each part once."""
    return "; ".join(dict.fromkeys(part for text in texts for part in text.split(", ") if part))


def _messages(texts: Iterable[str]) -> str:
    """Each once, the first of each kind: those that begin with the same words are of one kind."""
    kinds: dict[str, str] = {}
    for text in texts:
        kinds.setdefault(" ".join(text.split()[:4]), text)
    return "; ".join(textwrap.shorten(text, 90, placeholder=" …") for text in kinds.values())


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in r) + " |" for r in lines)


OF_READER = ("reader", "versions", "reads", "largest difference", "lost", "says to the others")


def readme_tables(readers: Readers) -> str:
    """What stands in the README between `<!-- readers -->` and `<!-- /readers -->`."""
    return "\n\n".join(
        (markdown(("", *READERS), matrix(readers)), markdown(OF_READER, reader_rows(readers)))
    )
