"""What came out, as tables: which reader reads which model, and what is lost on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .light import LIGHT
from .others import OTHERS
from .samples import NAMES

READERS = (*LIGHT, *(reader for other in OTHERS.values() for reader in other.readers))
Found = Mapping[str, Mapping[str, Any]]  # reader -> {"versions", "rows"}


def matrix(found: Found) -> list[list[str]]:
    """A row a model: its name, then for each of READERS the largest difference from ours, "refuses"
    or "not measured"; "–" for a ViT where only texts are read."""
    return [[name, *(_cell(found.get(r, {}).get("rows", {}).get(name)) for r in READERS)]
            for name in NAMES]  # fmt: skip


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "not measured"
    if "difference" in row:
        return f"{row['difference']:.0e}"
    return "–" if row["says"] == "reads texts only" else "refuses"


def reader_rows(found: Found) -> list[list[str]]:
    """A row a reader: its name and version, how many models it reads, the largest difference, what
    is lost, and what it says to one that it refuses."""
    rows = []
    for reader in READERS:
        mine = found.get(reader, {"versions": {}, "rows": {}})
        results = [row for row in mine["rows"].values() if row.get("says") != "reads texts only"]
        if not results:
            rows.append([reader, "", "not measured", "", "", ""])
            continue
        read = [row for row in results if "difference" in row]
        versions = ", ".join(f"{n} {v}" for n, v in mine["versions"].items() if n != "torch")
        worst = f"{max(row['difference'] for row in read):.0e}" if read else ""
        lost = _joined(row["lost"] for row in read)
        says = _joined(row["says"].rstrip(".") for row in results if "says" in row)
        rows.append([reader, versions, f"{len(read)} of {len(results)}", worst, lost, says])
    return rows


def _joined(texts: Any) -> str:
    """Each once, the first of each kind: messages that differ in a name alone are of one kind."""
    kinds = {text.split("'")[0].split("model_type")[0]: text for text in reversed(list(texts))}
    return "; ".join(text for text in reversed(kinds.values()) if text)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in r) + " |" for r in lines)


OF_READER = ("reader", "versions", "reads", "largest difference", "lost", "says to the others")


def readme_tables(found: Found) -> str:
    """What stands in the README between `<!-- readers -->` and `<!-- /readers -->`."""
    return "\n\n".join(
        (markdown(("", *READERS), matrix(found)), markdown(OF_READER, reader_rows(found)))
    )
