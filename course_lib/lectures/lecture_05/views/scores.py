"""The paper's last two tables, each row with the number of models behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.teaching.claims import printed
from course_lib.teaching.page import Html, card, table_html

NAMES = {
    "bert_large": "BERT-large", "roberta": "RoBERTa", "albert": "ALBERT", "alice": "ALICE",
    "mt_dnn": "MT-DNN", "xlnet": "XLNet", "adv_roberta": "Adv-RoBERTa", "dcmn": "DCMN+",
    "xlnet_large": "XLNet-large", "roberta_large": "RoBERTa-large",
}  # fmt: skip
DEV = ("bert_large_dev", "xlnet_large_dev", "roberta_large_dev", "albert_dev")
UNSAID = "ensemble, ? models"

Row = list[str]


def models_behind(name: str) -> str:
    """How many models an ensemble's row averages, as far as a paper says."""
    known = printed("albert")["ensembles"]
    if name == "albert":
        least, most = known["albert_candidates"]
        return f"ensemble, from {least}–{most}"
    if name == "roberta":
        return "ensemble of {}–{}".format(*known["roberta_models"])
    if name == "bert_large":
        return f"ensemble of {known['bert_models']}, more data"
    return UNSAID


def glue_rows() -> list[Row]:
    """The GLUE table: a head, one model each (dev), then ensembles (test)."""
    glue, below = printed("glue"), printed("albert")["glue_ensembles"]
    tasks = below["columns"][:-1]
    rows = [["", "set", "behind the row", *tasks, "printed mean"]]
    for name in DEV:
        scores = glue[name]["scores"]
        one = [_one(scores[task] if task != "WNLI" else "") for task in tasks]
        rows.append([NAMES[name.removesuffix("_dev")], "dev", "one model", *one, "–"])
    for name, cells in below.items():
        if name in NAMES:
            rows.append([NAMES[name], "test", models_behind(name), *map(_one, cells)])
    return rows


def reading_rows() -> list[Row]:
    """The table of SQuAD and RACE: a head, one model each, then ensembles."""
    table = printed("albert")["reading"]
    rows = [["", "behind the row", *table["columns"]]]
    for kind in ("one_model", "ensemble"):
        for name, cells in table[kind].items():
            behind = "one model" if kind == "one_model" else models_behind(name)
            rows.append([NAMES[name], behind, *map(_one, cells)])
    return rows


def glue_table() -> Html:
    """ALBERT's Table 9, with the number of models behind each row."""
    return _table(glue_rows(), words=3)


def reading_table() -> Html:
    """ALBERT's Table 10, with the number of models behind each row."""
    return _table(reading_rows(), words=2)


def _one(cell: Any) -> str:
    """A cell in one number; of MNLI's two the matched one; a dash for none."""
    if isinstance(cell, Sequence) and not isinstance(cell, str):
        cell = cell[0]
    return str(cell) if cell != "" else "–"


def _table(rows: list[Row], words: int) -> Html:
    """Rows under their head; the first `words` columns to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    text = "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    html = table_html(rows[0], rows[1:], words)
    return Html(card(f'<div style="overflow-x:auto">{html}</div>', "scores", 1000), text)
