"""A reader's own text: which files of a folder are read, and what becomes of its letters."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from own_text import paragraphs

from course_lib.checkpoints import load_pretrained
from course_lib.text.documentation import split_sentences
from course_lib.text.folder import SENTENCE_END, read_folder
from course_lib.text.wordpiece import SPECIAL_TOKENS, WordPiece
from course_lib.train.pretrain import RESULTS, pretrain
from course_lib.train.pretrain_recipe import (
    ModelPart,
    PretrainRecipe,
    TextPart,
    TrainingPart,
    read_recipe,
)
from course_lib.train.pretrain_text import read_text, read_words

# Sentences of which marks make the sense, in words of our own; and words that differ by them only.
LANGUAGES = {
    "Vietnamese": (
        "Con ma ăn má mà mả của mã này mọc như mạ.",
        ["ma", "má", "mà", "mả", "mã", "mạ"],
    ),
    "Hindi": ("कल कील काला कोला कुल में मिला।", ["कल", "कील", "कुल"]),
    "Japanese": (
        "がっこう かっこう はし ばし ぱし です。",
        ["がっこう", "かっこう", "はし", "ばし", "ぱし"],
    ),
    "German": (
        "Es ist schon schön, wir fordern und fördern.",
        ["schon", "schön", "fordern", "fördern"],
    ),
    "French": (
        "Le pêcheur pécheur a été la côte, le coté.",
        ["pêcheur", "pécheur", "côte", "coté"],
    ),
    "Korean": ("가방 나방 다방 라방 이다.", ["가방", "나방", "다방"]),
    "Arabic": ("كَتَبَ كُتُب كِتَاب هنا.", ["كَتَبَ", "كُتُب"]),
}


def folder(tmp_path: Path, text: str, copies: int = 80) -> TextPart:
    """A folder whose paragraphs differ by a number only, some of them held out."""
    (tmp_path / "text").mkdir()
    body = "\n\n".join(f"{text} {number}" for number in range(copies))
    (tmp_path / "text" / "a.txt").write_text(body, encoding="utf-8")
    return TextPart(str(tmp_path / "text"), vocabulary=300, length=16)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_that_differ_by_marks_stay_apart(language: str, tmp_path: Path):
    text, words = LANGUAGES[language]
    part = folder(tmp_path, text)
    reading = read_text(part)
    tokenizer = reading.tokenizer
    ids = {tuple(tokenizer.encode(word)) for word in words}
    assert len(ids) == len(words) and not any(tokenizer.special.unk in i for i in ids)
    assert tokenizer.decode(tokenizer.encode(words[0])) == words[0]
    assert (tokenizer.lowercase, tokenizer.strip_accents) == (True, False)
    assert reading.about["strip_accents"] is False and reading.about["marked"] > 0.05
    assert re.search(r"% of the words have .*: they are kept, and cap", " ".join(reading.notes))
    stripped = read_text(replace(part, strip_accents=True)).tokenizer
    assert stripped.strip_accents and stripped.normalisation["lowercase"]
    if language not in ("Korean", "Japanese"):
        assert len({tuple(stripped.encode(word)) for word in words}) < len(words)
    spelt = read_words(replace(part, vocabulary=30)).tokenizer
    assert set(words) <= set(spelt.vocab)


def test_rare_marks_are_dropped(tmp_path: Path):
    """As in English: a naïve that comes later is read as the naive that was learned."""
    part = folder(tmp_path, f"{paragraphs(40)[0]} So naive, so much the keeper knew of it.", 100)
    reading = read_text(part)
    assert reading.about["marked"] == 0 and reading.tokenizer.strip_accents
    assert reading.tokenizer.encode("naïve") == reading.tokenizer.encode("naive")
    assert "they are dropped, and capitals are lower-cased" in " ".join(reading.notes)
    kept = read_text(replace(part, strip_accents=False))
    assert kept.tokenizer.vocab == reading.tokenizer.vocab
    assert kept.tokenizer.tokenize("naïve") == ["[UNK]"]
    assert "they are kept, and capitals are lower-cased" in " ".join(kept.notes)


@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "form"),
    [(None, None, (True, False)), (False, None, (False, False)), (True, None, (True, False)),
     (None, True, (True, True)), (False, True, (False, True)), (False, False, (False, False))],
)  # fmt: skip
def test_the_settings_mean_what_they_say_and_are_saved(
    lowercase, strip_accents, form, tmp_path, capsys
):
    """transformers reads the same ids out of the folder as ours."""
    from transformers import AutoTokenizer

    text = folder(tmp_path, LANGUAGES["German"][0] + " Über Größe spricht die Börse nie.")
    text = replace(text, lowercase=lowercase, strip_accents=strip_accents)
    model = ModelPart(size="tiny", settings={
        "hidden_size": 8, "num_layers": 1, "num_heads": 2, "intermediate_size": 8,
    })  # fmt: skip
    recipe = PretrainRecipe("own", model=model, text=text,
                            training=TrainingPart(steps=1, batch_size=8))  # fmt: skip
    out = tmp_path / "out"
    results = pretrain(recipe, out)
    assert results["notes"][-1] in capsys.readouterr().out
    assert (results["text"]["lowercase"], results["text"]["strip_accents"]) == form
    assert json.loads((out / RESULTS).read_text())["notes"] == list(results["notes"])
    ours = load_pretrained(out / "model").tokenizer
    theirs = AutoTokenizer.from_pretrained(out / "model")
    assert (ours.lowercase, ours.strip_accents) == form
    for sentence in (LANGUAGES["German"][0], "ÜBER Größe, schön und schon 東京 naïve"):
        ids = theirs(sentence, add_special_tokens=False)["input_ids"]
        assert ids == ours.encode(sentence)
    assert pretrain(recipe, out)["text"] == results["text"]  # and a run goes on with it
    # The vocabulary of this run is read as it was made, and nothing else is made of it.
    again = replace(text, vocabulary=str(out / "model" / "vocab.txt"))
    assert read_text(again).tokenizer.normalisation == ours.normalisation
    with pytest.raises(ValueError, match=r"lowercase=.* was given with vocabulary=.*, which was"):
        read_text(replace(again, lowercase=not form[0]))


def test_a_bare_list_of_pieces_is_read_as_the_recipe_says(tmp_path: Path):
    text = folder(tmp_path, LANGUAGES["German"][0])
    WordPiece([*SPECIAL_TOKENS, "es", "ist"]).save(tmp_path / "list.txt")
    part = replace(text, vocabulary=str(tmp_path / "list.txt"), lowercase=False, strip_accents=True)
    reading = read_text(part)
    assert (reading.tokenizer.lowercase, reading.tokenizer.strip_accents) == (False, True)
    named = replace(text, vocabulary="course-bert")
    note = read_text(named).notes[-1]
    assert "they are dropped" in note and note.endswith("the vocabulary, course-bert, is read.")
    with pytest.raises(ValueError, match="strip_accents=False was given with vocabulary='course-b"):
        read_text(replace(named, strip_accents=False))


@pytest.mark.parametrize("read", [read_text, read_words])
def test_a_folder_called_like_a_text_of_the_course(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    part = TextPart("world", stories=20, heldout=5, vocabulary=50)
    assert read(part).notes == ()
    (tmp_path / "world").mkdir()
    assert read(part).notes == ('"world" is a text of the course; "./world" would be yours.',)


def test_the_micro_world_has_its_own_vocabulary():
    with pytest.raises(ValueError, match="given for the micro-world, which has a vocabulary"):
        read_text(TextPart("world", strip_accents=False))


def test_shipped_recipes_say_nothing_of_case_and_marks(root: Path):
    """So that their runs, and what is compared with them, are the same as ever."""
    for path in (root / "data" / "recipes").glob("*.toml"):
        text = read_recipe(path).as_dict()["text"]
        assert not {"lowercase", "strip_accents"} & set(text), path.name
    part = replace(PretrainRecipe("x"), text=TextPart(lowercase=False))
    assert part.as_dict()["text"]["lowercase"] is False


def test_recipes_take_both_settings(tmp_path: Path):
    recipe = tmp_path / "r.toml"
    recipe.write_text('name = "a"\n[text]\nlowercase = false\nstrip_accents = true\n')
    text = read_recipe(recipe).text
    assert (text.lowercase, text.strip_accents) == (False, True)
    recipe.write_text('name = "a"\n[text]\nstrip_accents = "no"\n')
    with pytest.raises(ValueError, match=r"lowercase is 'off'; .* type bool \(true or false\)\."):
        TextPart(lowercase="off")
    with pytest.raises(ValueError, match="strip_accents is 'no'; expected a value of type bool"):
        read_recipe(recipe)


# ---------------------------------------------------------------- which files


TEXT = b"One paragraph.\n\nAnother one."
READ = ["One paragraph.", "Another one."]
RESOURCE_FORK = b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X"


@pytest.mark.parametrize(
    ("name", "content", "left"),
    [
        (".ipynb_checkpoints/a-checkpoint.txt", TEXT, "1 left out, hidden: .ipynb_checkpoints."),
        ("more/.git/a.txt", TEXT, "1 left out, hidden: more/.git."),
        ("._a.txt", RESOURCE_FORK, "1 left out, hidden: ._a.txt."),
        ("__MACOSX/._a.txt", RESOURCE_FORK, "1 left out, hidden: __MACOSX/._a.txt."),
        (".DS_Store", b"\0", "1 left out, hidden: .DS_Store."),
        ("b.md", TEXT, "1 left out, not ending in .txt: b.md."),
        ("b", TEXT, "1 left out, not ending in .txt: b."),
        ("b.txt.gz", b"\x1f\x8b", "1 left out, not ending in .txt: b.txt.gz."),
        ("b.txt~", TEXT, "1 left out, not ending in .txt: b.txt~."),
        ("b.txt", b"", "1 left out, holding no text: b.txt."),
        ("b.txt", b"\xef\xbb\xbf \r\n\r\n\t", "1 left out, holding no text: b.txt."),
        ("b.txt", RESOURCE_FORK, "1 left out, not text at all: b.txt."),
        ("b.txt", b"%PDF-1.7\0\xff", "1 left out, not text at all: b.txt."),
        ("b.txt", "a\n\nb".encode("utf-16-le"), "1 left out, not text at all: b.txt."),
        ("b.txt", "a\n\nb".encode("utf-32"), "1 left out, not text at all: b.txt."),
    ],
)
def test_what_is_no_text_of_the_readers_is_left_out_with_a_line(name, content, left, tmp_path):
    (tmp_path / "a.txt").write_bytes(TEXT)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    assert read_folder(tmp_path) == ([READ], (left,))


def test_the_vocabulary_of_a_model_is_no_text(tmp_path: Path):
    for name in ("a.txt", "model/vocab.txt", "vocab.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(TEXT)
    (tmp_path / "model" / "config.json").write_text("{}")
    read, left = read_folder(tmp_path)
    assert read == [READ, READ] and "1 left out, a model's vocabulary: model/vocab.txt." in left


def test_a_file_given_alone_that_is_no_text_is_named(tmp_path: Path):
    (tmp_path / "b.txt").write_bytes(RESOURCE_FORK)
    assert read_folder(tmp_path / "b.txt") == ([], ("1 left out, not text at all: b.txt.",))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.TXT", TEXT), ("b.Txt", TEXT), ("more/deeper/b.txt", TEXT), ("x.txt/b.txt", TEXT),
        ("a b ü.txt", TEXT),
        ("b.txt", b"\xef\xbb\xbf" + TEXT),
        ("b.txt", TEXT.replace(b"\n", b"\r\n")),
        ("b.txt", TEXT.replace(b"\n", b"\r")),
        ("b.txt", TEXT.replace(b"\n\n", b"\n \t\n\n") + b"\n\n"),
        ("b.txt", TEXT.decode().encode("utf-16")),
        ("b.txt", b"\xfe\xff" + TEXT.decode().encode("utf-16-be")),
    ],
)  # fmt: skip
def test_text_is_read_however_it_was_saved(name: str, content: bytes, tmp_path: Path):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    assert read_folder(tmp_path) == ([READ], ())


@pytest.mark.parametrize("content", [b"caf\xe9", "Größe".encode("latin-1"), b"\xff\xfea"])
def test_text_in_another_encoding_is_refused(content: bytes, tmp_path: Path):
    """It is text, and leaving it out would lose it."""
    (tmp_path / "a.txt").write_bytes(TEXT)
    (tmp_path / "b.txt").write_bytes(content)
    with pytest.raises(ValueError, match=r"b\.txt was given as text; its byte \d is no UTF-.*Save"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((f"b.{kind}", TEXT) for kind in ("json", "jsonl", "csv", "TSV", "html", "xml")),
        *(("b.txt", content) for content in (
            b'{"text": "a"}\n\n{"text": "b"}', b'\xef\xbb\xbf[\n {\n "text": "a"}]', b"<?xml?> a",
            b"<!DOCTYPE html>\n<html>",
        )),
    ],
)  # fmt: skip
def test_what_holds_more_than_text_is_refused(name: str, content: bytes, tmp_path: Path):
    """Its marks and the names of its columns would be learned."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} was given as text; .*read_jsonl of"):
        read_folder(tmp_path / name)


@pytest.mark.parametrize("start", [b"{a} ", b"[1] ", b"< 5 ", b'"{" '])
def test_text_may_begin_with_a_bracket(start: bytes, tmp_path: Path):
    (tmp_path / "b.md").write_bytes(start + TEXT)
    assert read_folder(tmp_path / "b.md")[0] == [[(start + TEXT[:14]).decode(), READ[1]]]


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.symlink_to(target, target_is_directory=target.is_dir())
    except OSError:
        pytest.skip("links are not to be had here")


@pytest.mark.parametrize(
    ("links", "left"),
    [
        ({"b.txt": "a.txt"}, "1 left out, leading to what is read anyway: b.txt."),
        ({"b.txt": "nowhere.txt"}, "1 left out, leading to no file: b.txt."),
        ({"b": "nowhere"}, "1 left out, not ending in .txt: b."),
        ({"more/circle": "."}, "1 left out, leading to what is read anyway: more/circle."),
        ({"more/up": ".."}, "1 left out, leading to what is read anyway: more/up."),
        (
            {"z": "more", "more/b.txt": "a.txt"},
            "2 left out, leading to what is read anyway: more/b.txt, z.",
        ),
    ],
)
def test_what_links_lead_to_is_read_once(links: dict[str, str], left: str, tmp_path: Path):
    text = tmp_path / "text"
    (text / "more").mkdir(parents=True)
    (text / "a.txt").write_bytes(TEXT)
    for name, target in links.items():
        link(text / name, text / target)
    assert read_folder(text) == ([READ], (left,))


def test_links_to_other_folders_are_followed_once(tmp_path: Path):
    text, other = tmp_path / "text", tmp_path / "other"
    text.mkdir()
    other.mkdir()
    (other / "a.txt").write_bytes(TEXT)
    link(other / "circle", other)
    link(text / "disk", other)
    link(text / "disk2", other)
    documents, notes = read_folder(text)
    assert documents == [READ]
    assert notes == ("2 left out, leading to what is read anyway: disk/circle, disk2.",)
    os.link(other / "a.txt", text / "hard.txt")
    assert read_folder(text)[0] == [READ]


def test_many_of_a_kind_are_one_line(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(TEXT)
    for number in range(5):
        (tmp_path / f"{number}.md").write_bytes(TEXT)
    line = "5 left out, not ending in .txt: 0.md, 1.md, 2.md and others."
    assert read_folder(tmp_path)[1] == (line,)


def test_a_folder_of_other_things_says_what_lies_there(tmp_path: Path):
    (tmp_path / "a.md").write_bytes(TEXT)
    with pytest.raises(ValueError, match=r"no file that ends in .txt.*1 left out, not .*: a\.md"):
        read_folder(tmp_path)
    (tmp_path / "b.txt").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"0 paragraphs to learn.*1 left out, holding no text: b\.txt"
    ):
        read_text(TextPart(str(tmp_path)))


def test_a_letter_in_two_forms_is_named(tmp_path: Path):
    text = LANGUAGES["German"][0]
    loose = unicodedata.normalize("NFD", text)
    part = folder(tmp_path, text)
    assert not any("NFC" in note for note in read_text(part).notes)
    (tmp_path / "text" / "b.txt").write_text("\n\n".join(f"{loose} {n}" for n in range(40)))
    assert re.match(r"\d+ of \d+ paragraphs are not .*NFC", read_text(part).notes[0])


@pytest.mark.parametrize(
    ("paragraph", "count"),
    [
        ("It rained. It stopped, e.g. at noon. So what?", 3),
        ("Es regnete. Ändern kann man es nicht.", 2),
        ("Đây là nhà. Ông ấy đi. Mẹ ở nhà.", 3),
        ("राम घर गया। सीता आई। क्या हुआ?", 3),
        ("私は行く。彼は来た！本当？", 3),
        ("Он ушёл. Она осталась.", 2),
        ("وصل. هل جاء؟ نعم.", 3),
        ("Ça coûte 3.5 euros. été comme hiver", 1),
    ],
)
def test_sentences_of_other_scripts(paragraph: str, count: int):
    sentences = split_sentences(paragraph, SENTENCE_END)
    assert len(sentences) == count
    assert "".join(sentences).replace(" ", "") == paragraph.replace(" ", "")
