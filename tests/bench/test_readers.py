"""Who reads what we save: the light readers read it, refusals are told, and what is shown is what
is stored. The others run outside: `python -m course_lib.bench.readers --others all`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from course_lib.bench.readers import light, samples, tables
from course_lib.bench.readers.each import difference, row_of
from course_lib.bench.readers.others import HERE, OTHERS, collected
from course_lib.checkpoints import load_pretrained
from course_lib.lectures.lecture_12.views import lost_table, readers_table


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the models; the slow export is tested in test_exporting.py."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "export_onnx", lambda model, path: path)
        samples.write_samples(folder, ("DeBERTa", "RoBERTa", "XLM", "ViT"))
    return folder


@pytest.mark.parametrize("name", ["DeBERTa", "RoBERTa", "XLM", "ViT"])
def test_transformers_reads_what_we_save(work: Path, name: str):
    row = row_of(light.read_transformers, work / name)
    assert row.get("difference", 1) < 1e-5, row


def test_sentence_transformers_reads_what_we_save(work: Path):
    pytest.importorskip("sentence_transformers")
    row = row_of(light.read_sentence_transformers, work / "RoBERTa")
    assert row["difference"] < 1e-5 and row["lost"] == "the head"
    assert row_of(light.read_sentence_transformers, work / "ViT") == {"says": "reads texts only"}


def test_a_refusal_is_told_in_the_readers_own_words(work: Path):
    row = row_of(light.read_onnxruntime, work / "RoBERTa")  # where no file was written
    assert set(row) == {"says"} and "model.onnx" in row["says"]
    settings = work / "XLM" / "config.json"
    changed = {**json.loads(settings.read_text(encoding="utf-8")), "emb_dim": 60}
    settings.write_text(json.dumps(changed), encoding="utf-8")
    assert row_of(light.read_transformers, work / "XLM")["says"].startswith("RuntimeError")


def test_differences_are_of_real_tokens_as_a_fraction_of_the_largest(tmp_path: Path):
    ours = np.array([[[4.0], [2.0], [0.0]]])
    np.savez(tmp_path / "expected.npz", logits=ours, attention_mask=np.array([[1, 1, 0]]))
    other = ours + np.array([[[0.0], [1.0], [50.0]]])
    assert difference(tmp_path, "logits", other) == pytest.approx(0.25)
    with pytest.raises(AssertionError, match=r"logits of shape \(1, 2, 1\); ours \(1, 3, 1\)"):
        difference(tmp_path, "logits", other[:, :2])


def test_the_answers_of_a_text_are_the_models_own(work: Path):
    answers = json.loads((work / "DeBERTa" / "expected.json").read_text(encoding="utf-8"))
    written: Any = load_pretrained(work / "DeBERTa")
    with torch.no_grad():
        logits = written.model(torch.tensor([answers["blank_ids"]])).logits[0]
    at = answers["blank_ids"].index(written.tokenizer.special.mask)
    assert answers["best"][0] == int(logits[at].argmax())
    assert answers["first"] == at * logits.shape[1]


def test_what_a_script_printed_is_collected_by_reader():
    printed = """noise
{"reader": "b", "versions": {"x": "1"}}
{"model": "M", "difference": 1e-6, "lost": "the head"}
{"reader": "b", "model": "M", "says": "no"}"""
    found = collected(printed, ("a", "b"))
    assert found["a"] == {"versions": {}, "rows": {"M": {"difference": 1e-6, "lost": "the head"}}}
    assert found["b"] == {"versions": {"x": "1"}, "rows": {"M": {"says": "no"}}}


@pytest.mark.parametrize("name", OTHERS)
def test_the_scripts_are_there_and_all_versions_pinned(name: str):
    other = OTHERS[name]
    script = HERE / (other.script if other.script.endswith(".mjs") else f"{other.script}.py")
    assert script.is_file()
    mark = "@" if name == "node" else "=="
    assert all(mark in package[1:] for package in other.packages)


def test_the_tables_say_read_wrong_refused_and_never_measured():
    found: dict[str, Any] = {"GGUF": {"versions": {"gguf": "1", "torch": "2"}, "rows": {
        "course-bert": {"difference": 0.003, "lost": "the head"},
        "XLM-R": {"difference": 0.81, "lost": "the head, positions"},
        "BERT": {"says": "ValueError: no architecture for x"},
        "ERNIE": {"says": "ValueError: no architecture for y"},
        "ViT": {"says": "reads texts only"},
    }}}  # fmt: skip
    column = 1 + tables.READERS.index("GGUF")
    cells = {row[0]: row[column] for row in tables.matrix(found)}
    assert cells["course-bert"] == "3e-03" and cells["XLM-R"] == "wrong by 0.8"
    assert (cells["BERT"], cells["ViT"], cells["ALBERT"]) == ("refuses", "–", "not measured")
    rows = {row[0]: row[1:] for row in tables.reader_rows(found)}
    assert rows["keras-hub"][1] == "not measured"
    assert rows["GGUF"] == ["gguf 1", "1 of 4", "3e-03", "the head; positions",
                            "ValueError: no architecture for x"]  # fmt: skip


def test_every_reader_was_run_on_every_model_and_the_light_ones_are_right():
    found = tables.stored()
    assert set(found) == set(tables.READERS)
    assert all(set(found[name]["rows"]) == set(samples.NAMES) for name in found)
    assert all("not measured" not in row for row in tables.matrix(found))
    for name in ("transformers", "onnxruntime", "onnxruntime-node"):
        rows = [r for r in found[name]["rows"].values() if r.get("says") not in tables.ASIDE]
        assert len(rows) >= 13 and all(row.get("difference", 1) < 1e-4 for row in rows)


def test_readme_and_page_show_what_is_stored(root: Path):
    text = (root / "README.md").read_text(encoding="utf-8")
    shown = text.split("<!-- readers -->")[1].split("<!-- /readers -->")[0]
    assert shown.strip() == tables.readme_tables(tables.stored())
    assert "course-modernbert" in readers_table().text and "tanh form" in lost_table().text
