"""The README's speed table, from the bench's saved figures."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

# How a table's title begins -> how its peers' rows and ours begin. The quickest peer counts,
# compiled or with our tricks, and the last of ours.
Peers = str | tuple[str, ...]
COMPARED: dict[str, tuple[Peers, str]] = {
    "Pre-training step": ("transformers as shipped", "ours in"),
    "Masked-LM loss": ("transformers' BertForMaskedLM", "ours, logits"),
    "Masking single tokens": ("transformers' masking collator", "ours"),
    "Masking whole words": ("transformers' whole-word collator", "… word numbers ready"),
    "Disentangled attention on a GPU": ("transformers'", "ours, in Triton"),
    "Disentangled attention": ("transformers' DebertaV2Model", 'ours, kernels="auto"'),
    "Rotary positions": ("transformers'", "ours, rotary"),
    "Sliding-window attention": ("torch's sdpa", "ours, sliding_window_attention"),
    "ModernBERT": ("transformers' ModernBertModel", "ours, ModernBERT"),
    "Padding removed": (
        ("transformers' BertModel (sdpa), padded", "transformers' BertModel (sdpa), sorted, 50%"),
        "ours, padding removed, 50%",
    ),
    "Distillation loss": ("torch's", "ours, in chunks"),
    "Corruption by ELECTRA": ("… and torch's", "… and sampling"),
    "Contrastive step": ("plain", "ours,"),
    "MaxSim": (("sentence-transformers' maxsim", "plain"), "ours, maxsim"),
    "Early exit": ("full depth", "texts leave evenly"),
    "Weights shared or not": ("transformers' AlbertModel", "ours, one block"),
}
# What a user would ask for, of every kind: how the sizes begin that the README shows.
IN_README = {
    "Pre-training step": ("mini", "tiny"),
    "Masked-LM loss in a training step": ("base",),
    "Masking single tokens": ("64",),
    "Masking whole words": ("64",),
    "Disentangled attention": (
        "inference, 4×768, 8×128 tokens, float32", "inference, 4×768, 8×512 tokens, float32",
        "training step, 4×768, 4×512 tokens, float32",
    ),
    "Padding removed": ("inference, 2×768, 32×128, float32",),
    "Distillation loss": ("forward and backward, 1,024 positions, V=30,522, H=768, float32",),
    "Corruption by ELECTRA-base's generator": (
        "12×256, 32×128 tokens, 15% masked, V=30,522, float32",
    ),
    "Early exit": ("12×256, 32×128 tokens, float32",),
}  # fmt: skip
# Of these it shows the peer's best setting, too: how the names of its rows begin.
BEST_TOO = {"Pre-training step": "… "}
# Stored figures keep the names of their day; what is shown has today's.
TODAY = {
    "Masked-word loss": "Masked-LM loss",
    "masked-word loss": "masked-LM loss",
    "scores where asked only": "logits at the selected positions only",
    "scores where asked / all": "logits at the selected positions / all",
    "all scores": "all logits",
    "limit by arithmetic": "limit by FLOPs",
    "mask_rows": "mask_sequences",
    "told which tokens": "given which tokens",
    "and the draw:": "and sampling:",
    "with the draw": "with sampling",
    "ELECTRA's draw": "ELECTRA's sampling",
    "rows leave evenly": "texts leave evenly",
    "operations ": "FLOPs ",
    "rows of one length": "texts of one length",
}


def in_todays_words(run: Mapping[str, Any]) -> dict[str, Any]:
    """A stored run with today's names of tables, rows and kernels, and in its remarks."""
    text = json.dumps(run, ensure_ascii=False)
    for old, new in TODAY.items():
        text = text.replace(old, new)
    return json.loads(text)  # type: ignore[no-any-return]


class SpeedRow(NamedTuple):
    """Ours against its peer at one size; low and high: ours at the ends of its middle half."""

    what: str
    size: str
    peer: str
    ours: str
    ratio: float
    low: float
    high: float


def speed_rows(run: Mapping[str, Any]) -> list[SpeedRow]:
    """A row for each table of `run` that has a peer in COMPARED, in that order.

    run: what `python -m course_lib.bench --json` saved. The ratio is that of the medians. Raises
    ValueError for figures of another form, and for a table that lacks one of the two rows."""
    if not isinstance(run.get("tables"), Mapping):
        raise ValueError(
            f"speed_rows was given {sorted(run)}; expected machine and tables, as `python -m "
            "course_lib.bench --json` saves them."
        )
    tables = in_todays_words(run)["tables"]
    return [
        _row(title, tables[title], *COMPARED[kind])
        for kind in COMPARED
        for title in tables
        if kind == next((known for known in COMPARED if title.startswith(known)), None)
    ]


def _row(title: str, rows: list[dict[str, Any]], peer: Peers, ours: str) -> SpeedRow:
    peers, own = ([r for r in rows if r["name"].startswith(name)] for name in (peer, ours))
    if not peers or not own:
        raise ValueError(
            f"the table {title!r} holds {[row['name'] for row in rows]}; expected rows that begin "
            f"with {peer!r} and {ours!r}. Correct COMPARED, or measure again."
        )
    theirs, own_row = max(peers, key=lambda row: statistics.median(row["rates"])), own[-1]
    base = statistics.median(theirs["rates"])
    low, middle, high = (
        q / base for q in statistics.quantiles(own_row["rates"], n=4, method="inclusive")
    )
    what, _, size = title.partition(", ")
    return SpeedRow(what, size, theirs["name"], own_row["name"], middle, low, high)


def in_readme(title: str) -> bool:
    """Whether the README shows the table of that title."""
    what, _, size = title.partition(", ")
    return size.startswith(IN_README.get(what, ("no size",)))


def readme_table(*runs: Mapping[str, Any]) -> str:
    """The rows of IN_README in Markdown, a column a run, with machines and dates below: what stands
    in the README between `<!-- speed -->` and `<!-- /speed -->`.

    A size that a run lacks has a dash; a peer that is not the first run's is named."""
    columns = [readme_rows(run) for run in runs]
    heads = (
        f"with{'' if run['machine']['native_bfloat16'] else 'out'} bfloat16 products"
        for run in runs
    )
    lines = [f"| what | size | peer | ours | {' | '.join(heads)} |", "|---" * (4 + len(runs)) + "|"]
    for key in dict.fromkeys(key for rows in columns for key in rows):
        rows = [column.get(key) for column in columns]
        first = next(row for row in rows if row)
        cells = (first.what, first.size, _plain(first.peer), _plain(first.ours))
        lines.append(f"| {' | '.join((*cells, *(_cell(row, first.peer) for row in rows)))} |")
    machines = (
        f"*With{'' if on['native_bfloat16'] else 'out'}*: {on['processor']}, {on['threads']} "
        f"threads, {on['gflops_float32']} GFLOP/s in float32, torch {on['torch']}, transformers "
        f"{on['transformers']}, {on['date']}."
        for on in (run["machine"] for run in runs)
    )
    return "\n".join(lines) + f"\n\nMedians, in brackets the middle half. {' '.join(machines)}\n"


def readme_rows(run: Mapping[str, Any]) -> dict[tuple[str, str, bool], SpeedRow]:
    """By what, size, and whether beside the peer's best setting."""
    tables, rows = in_todays_words(run)["tables"], {}
    for row in speed_rows(run):
        if in_readme(title := f"{row.what}, {row.size}"):
            rows[row.what, row.size, False] = row
            if row.what in BEST_TOO:
                best = _row(title, tables[title], BEST_TOO[row.what], COMPARED[row.what][1])
                rows[row.what, row.size, True] = best
    return rows


def _cell(row: SpeedRow | None, peer: str) -> str:
    if row is None:
        return "–"
    beside = "" if row.peer == peer else f", beside {_plain(row.peer)}"
    return f"{_times(row.ratio)} ({_times(row.low)} to {_times(row.high)}){beside}"


def _plain(name: str) -> str:
    """A row's name out of its table: without the marks of what it goes on from, and its format."""
    return re.sub(r"^… (and )?| in b?float\d\d(?=,)", "", name)


def _times(ratio: float) -> str:
    return f"{ratio:.2f}×" if ratio < 10 else f"{ratio:.0f}×"
