"""How the members' interfaces differ: rows asked of transformers, in silence and offline.

What stands here holds for every transformers of the 5 series: shapes of checkpoints, not habits of
its tokenizers."""

from __future__ import annotations

import socket
import warnings

import pytest
from view_parts import plain

from course_lib.lectures.lecture_13 import interfaces as room
from course_lib.lectures.lecture_13.interfaces import KINDS, Interface, interfaces
from course_lib.lectures.lecture_13.views.tables import interfaces_table


@pytest.fixture(scope="module")
def rows() -> dict[str, Interface]:
    return {row.member: row for row in interfaces()}


def test_nothing_is_said_and_no_network_asked(monkeypatch, capfd) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = interfaces.__wrapped__()
    assert capfd.readouterr() == ("", "")
    assert again == interfaces()


def test_the_library_speaks_again_afterwards() -> None:
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    interfaces.__wrapped__()
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (level, bars)


def test_segments(rows: dict[str, Interface]) -> None:
    assert {name: row.type_vocab_size for name, row in rows.items()} == {
        "BERT": 2, "RoBERTa": 1, "ALBERT": 2, "DistilBERT": 0, "ELECTRA": 2, "DeBERTa": 0,
        "DeBERTa-v3": 0,
    }  # fmt: skip
    assert {name for name, row in rows.items() if row.segment_use == "uses"} == {
        "BERT", "ALBERT", "ELECTRA",
    }  # fmt: skip
    assert rows["RoBERTa"].segment_use == "refuses"  # one row: there is no second segment
    assert rows["BERT"].types == rows["BERT"].requested and set(rows["BERT"].types) == {0, 1}
    assert rows["RoBERTa"].types == ()


def test_poolers(rows: dict[str, Interface]) -> None:
    """BERT and ALBERT trained theirs; RoBERTa's was saved without; three have none at all."""
    assert {name: row.pooler for name, row in rows.items()} == {
        "BERT": "trained", "ALBERT": "trained", "RoBERTa": "random", "DistilBERT": "none",
        "ELECTRA": "none", "DeBERTa": "none", "DeBERTa-v3": "none",
    }  # fmt: skip
    for row in rows.values():
        assert ("pooler_output" in row.outputs) == (row.pooler != "none")


def test_what_a_classifier_lacks(rows: dict[str, Interface]) -> None:
    for row in rows.values():
        assert any("classifier" in name for name in row.missing), row
    assert rows["BERT"].missing == ("classifier.bias", "classifier.weight")
    assert any("pooler" in name for name in rows["DeBERTa"].missing)
    assert any("pre_classifier" in name for name in rows["DistilBERT"].missing)


def test_how_a_pair_is_written(rows: dict[str, Interface]) -> None:
    assert rows["BERT"].written == rows["DistilBERT"].written == "[CLS] A [SEP] B [SEP]"
    assert rows["RoBERTa"].written == "<s> A </s> </s> B </s>"
    for name, row in rows.items():
        assert row.written.startswith(KINDS[name].special[0])


def test_checkpoints_are_small_and_always_the_same(tmp_path) -> None:
    with room._silent():
        for folder in ("a", "b"):
            room.write_checkpoint(KINDS["ELECTRA"], tmp_path / folder)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= {
        *files
    }
    weights = [(tmp_path / f / "model.safetensors").read_bytes() for f in ("a", "b")]
    assert weights[0] == weights[1] and len(weights[0]) < 200_000


def test_the_table_has_a_row_a_member(rows: dict[str, Interface]) -> None:
    table = interfaces_table()
    assert table.html.count("<tr ") == len(rows) + 1
    for row in rows.values():
        assert row.member in table.text
        assert row.written.replace(" ", "\u00a0") in plain(table.html)
