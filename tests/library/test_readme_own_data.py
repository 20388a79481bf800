"""README's "Your own data": its lines run as they stand there, from a file to a served model."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from course_lib import entities, load_pretrained, predict
from course_lib.train.pretrain_recipe import read_recipe

TICKETS = [("The invoice is wrong", "bill"), ("My screen is broken", "device")] * 5
WORDS = "Ann B-PER\nLee I-PER\nleft O\nAcme B-ORG\nfor O\nYork B-LOC\n. O\n\n"
CONTEXT = "Ann lives in Rome, Bob in York."


def question(number):
    answers = [{"text": "Rome", "answer_start": 13}]
    return {"id": str(number), "question": "Where does Ann live?", "answers": answers}


FILES = {
    "tickets.csv": "text,label\n" + "\n".join(f'"{text}, {n}.",{label}'
                                               for n, (text, label) in enumerate(TICKETS)),
    "train.conll": WORDS * 2,
    "test.conll": WORDS,
    "questions.json": json.dumps({"data": [{"paragraphs": [
        {"context": CONTEXT, "qas": [question(n) for n in range(4)]}]}]}),
}  # fmt: skip


def lines_of(root: Path, name: str, language: str = "python") -> str:
    text = (root / "README.md").read_text(encoding="utf-8")
    pattern = rf"<!-- {name} -->\n```{language}\n(.*?)```\n<!-- /{name} -->"
    (block,) = re.findall(pattern, text, re.S)
    return block


@pytest.mark.parametrize("name", ["classes", "tags", "questions"])
def test_the_lines_run(root: Path, tmp_path: Path, monkeypatch, capsys, name):
    for file, content in FILES.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = lines_of(root, name)
    assert len([line for line in code.splitlines() if "import" not in line and line]) <= 12
    if name == "classes" and not find_spec("onnxruntime"):
        code = code[: code.index("export_onnx(model")]
    scope: dict = {}
    exec(code, scope)
    shown = capsys.readouterr().out
    if name == "classes":
        folder = load_pretrained("my_classifier")
        (ours,) = predict(folder, ["The screen stays dark."])
        (theirs,) = scope["pipeline"]("text-classification", "my_classifier")(
            "The screen stays dark."
        )
        assert "2 texts right" in shown
        assert (ours.label, ours.score) == (
            theirs["label"],
            pytest.approx(theirs["score"], abs=1e-4),
        )
        assert not find_spec("onnxruntime") or Path("my_classifier/model.onnx").stat().st_size
    elif name == "tags":
        (ours,) = entities(load_pretrained("my_tagger"), [scope["text"]])
        pipe = scope["pipeline"]("token-classification", "my_tagger", aggregation_strategy="first")
        assert "F1 of whole entities" in shown
        assert [(e.label, e.start, e.end) for e in ours] == [
            (e["entity_group"], e["start"], e["end"]) for e in pipe(scope["text"])
        ]
    else:
        assert "F1 of answers" in shown and "AnswerSpan(" in shown


def test_the_recipe_that_continues_is_one(root: Path, tmp_path: Path):
    (tmp_path / "my_text.toml").write_text(lines_of(root, "continue", "toml"), encoding="utf-8")
    recipe = read_recipe(tmp_path / "my_text.toml")
    assert recipe.model.start == recipe.text.vocabulary == "course-bert"
