"""Own files: read as they mean, or refused with file and line."""

from __future__ import annotations

import json

import pytest

from course_lib.text.english import Answer
from course_lib.text.readers import read_conll, read_csv, read_jsonl, read_squad


def written(folder, content, name="file"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


COLUMNS = {"text": ["a b", "c"], "label": ["x", "y"]}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text,label\na b,x\nc,y\n", COLUMNS),
        ("\ufefftext,label\r\na b,x\r\nc,y", COLUMNS),  # a mark at the beginning, CRLF, no end
        ("label;id;text\nx;1;a b\n\n  \ny;2;c\n", COLUMNS),  # in another order, and empty lines
        ("text\tlabel\na b\tx\nc\ty\n", COLUMNS),
        ("text,label\ra b,x\rc,y\r", COLUMNS),
        (
            'text,label\n"a, ""b""\nand c",x\nnone,y\n',  # "none" is a word
            {"text": ['a, "b"\nand c', "none"], "label": ["x", "y"]},
        ),
        ("sep=;\r\ntext;label\r\na b;x\r\nc;y\r\n", COLUMNS),  # as Excel writes it
        ("sep=|\ntext|label\na b|x\nc|y\n", COLUMNS),
        ("text,label\n" + "a" * 200_000 + ",x\n", {"text": ["a" * 200_000], "label": ["x"]}),
    ],
)
def test_csv(tmp_path, content, expected):
    assert read_csv(written(tmp_path, content), "text", "label") == expected


def test_all_columns_where_none_is_named(tmp_path):
    assert read_csv(written(tmp_path, "a;b\n1;2\n")) == {"a": ["1"], "b": ["2"]}
    assert read_jsonl(written(tmp_path, '{"a": 1, "b": "2"}\n')) == {"a": ["1"], "b": ["2"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\na,x\n,y\n", r"line 3: the column 'text' is empty, ''"),
        ("text,label\na,x\nNaN,y\n", r"line 3: the column 'text' is empty, 'NaN'"),
        ('text,label\n"a\nb",x\nc,  \n', r"line 4: the column 'label' is empty"),
        ("text,lable\na,x\n", "'label' was asked for; expected one of 'text', 'lable'. Did you"),
        ("text, label\na,x\n", "expected one of 'text', ' label'"),
        ("text,label,text\na,x,b\n", "column 'text' stands twice"),
        ("text,label\na,x\na, b,y\n", r"line 3: 3 cells were given; expected 2"),
        ("text,label\na\n", r"line 2: 1 cells were given; expected 2"),
        ('text,label\na,x\n"b,y\nc,z\n', r"line 3: .*Is a quote not closed"),
        ("text,label\n", "has no rows"),
        ("sep=;\ntext;label\na;x\n;y\n", r"line 4: the column 'text' is empty"),
        ('{"text": "a", "label": "x"}\n', r"holds JSON, .* read_jsonl"),
        ('[\n{"text": "a", "label": "x"}\n]', r"holds JSON, "),
        ("", "'text' was asked for; expected one of none"),
        (b"text,label\na,x\nb\xe4,y\n", r"line 3: this is no text in UTF-8"),
        ("text,label\na,x\n".encode("utf-16"), "no text in UTF-8"),
    ],
)
def test_csv_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_csv(written(tmp_path, content), "text", "label")


def test_an_empty_cell_of_the_only_column_is_no_empty_line(tmp_path):
    assert read_csv(written(tmp_path, "text\na\n\nb\n"), "text") == {"text": ["a", "b"]}
    with pytest.raises(ValueError, match="line 3: the column 'text' is empty"):
        read_csv(written(tmp_path, 'text\na\n""\nb\n'), "text")


def test_json_lines(tmp_path):
    lines = '{"text": "a b", "label": 1}\r\n{"label": true, "text": "c", "more": []}\n\n'
    expected = {"text": ["a b", "c"], "label": ["1", "true"]}
    assert read_jsonl(written(tmp_path, "\ufeff" + lines), "text", "label") == expected


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            '{"text": "a", "label": "x"}\n{"text": null, "label": "x"}',
            "line 2: the column 'text' is",
        ),
        ('{"text": "a", "label": NaN}', "line 1: the column 'label' is empty, nan"),
        ('{"text": "a", "label": ["x"]}', "line 1: the column 'label' holds"),
        ('{"text": "a", "label": Infinity}', "line 1: the column 'label' holds inf; expected a"),
        ('{"text": "a", "label": -1e999}', "line 1: the column 'label' holds -inf"),
        ('{"text": "a", "label": "x"}\n{"text": "a"}', "line 2: the column 'label' was asked for"),
        ('[{"text": "a", "label": "x"}]', "line 1 holds .* expected an object"),
        ('{"text": "a"', "line 1 is not JSON"),
        (
            '{"text": "a", "label": "x", "text": "b"}',
            "line 1 is not JSON: 'text' stands there twice",
        ),
        ("\n", "has no rows"),
    ],
)
def test_json_lines_refused(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        read_jsonl(written(tmp_path, lines), "text", "label")


BIO = ("B-PER", "I-PER", "B-PER", "O", "B-LOC")
FORMS = {
    "BIO": BIO,
    "IOB1": ("I-PER", "I-PER", "B-PER", "O", "I-LOC"),
    "BIOES": ("B-PER", "E-PER", "S-PER", "O", "S-LOC"),
    "BILOU": ("B-PER", "L-PER", "U-PER", "O", "U-LOC"),
}
WORDS = ("Ann", "Lee", "Bob", "1\u00a0000", "Rome")


def conll(tags, columns=2, separator=" "):
    rows = ((w, *["NOUN", "O"][: columns - 2], t) for w, t in zip(WORDS, tags, strict=True))
    return "\n".join(separator.join(row) for row in rows)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(("columns", "separator"), [(2, "\t"), (2, "  "), (4, " "), (4, "\t")])
def test_conll(tmp_path, form, named, columns, separator):
    start = separator.join(["-DOCSTART-", "-X-", "-X-", "O"][:columns])
    one = conll(FORMS[form], columns, separator)
    text = f"\ufeff{start}\n\n{one}\n \n\n{one}\n".replace("\n", "\r\n")
    scheme = {"BILOU": "BIOES"}.get(form, form) if named else None
    sentences = read_conll(written(tmp_path, text, "a.conll"), scheme=scheme)
    assert [s.entities for s in sentences] == [BIO, BIO]
    assert [s.words for s in sentences] == [WORDS, WORDS]
    assert sentences[0].text == " ".join(WORDS) and sentences[0].id == "a.conll, line 3"
    assert sentences[0].pos == (("NOUN",) * 5 if columns == 4 else ())


def test_parts_of_speech(tmp_path):
    comments = "# newdoc\n# text = a cat\n# text_en = cat\n"
    (sentence,) = read_conll(written(tmp_path, f"{comments}a DET\ncat NOUN\n"), "pos")
    assert sentence.pos == ("DET", "NOUN") and sentence.entities == ()


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a O\nb\n", {}, "line 2: 1 columns were given"),
        ("a O\n\nb NN NP O\n", {}, "line 3: 4 columns were given"),
        ("a NN O\n", {}, "line 1: 3 columns"),
        ("1\ta\tB-PER\tO\n# b\n", {}, "line 2: 2 columns"),
        ("a PER\n", {}, "line 1: the tag 'PER' was given; expected O, or"),
        ("a O\nb B-\n", {}, "line 2: the tag 'B-' was given"),
        ("a I-PER\n\nb B-LOC\n", {}, "no BIO, for line 1: I-PER follows O; no IOB1, for line 3"),
        ("a I-PER\n", {"scheme": "BIO"}, "no BIO, for line 1"),
        ("a B-PER\n", {"scheme": "IOB1"}, "no IOB1, for line 1: B-PER follows O"),
        ("a S-PER\n", {"scheme": "BIO"}, "S-PER has a mark of BIOES"),
        ("a B-PER\nb O\nc S-LOC\n", {}, "no BIOES, for line 2: O follows B-PER"),
        ("a B-PER\nb E-LOC\n", {}, "no BIOES, for line 2: E-LOC follows B-PER"),
        ("a S-PER\nb B-PER\n", {}, "no BIOES, for line 2: O follows B-PER"),
        ("a O\n", {"scheme": "IO"}, "scheme='IO' was given; expected one of BIO, IOB1, BIOES"),
        ("a O\n", {"kind": "tags"}, "kind='tags' was given; expected one of entities, pos"),
        ("\n-DOCSTART- O\n", {}, "has no sentences"),
    ],
)
def test_conll_refused(tmp_path, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_conll(written(tmp_path, content), **options)


PASSAGE = "Ann lives in Rome. Rome is warm."


def squad(*entries, passage=PASSAGE):
    paragraphs = [{"context": passage, "qas": list(entries)}]
    return json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]})


def qa(answers=({"text": "Rome", "answer_start": 13},), **more):
    return {"id": "q1", "question": "Where?", "answers": list(answers), **more}


def test_squad(tmp_path):
    plausible = [{"text": "Rome", "answer_start": 13}]
    second = qa((), id="q2", is_impossible=True, plausible_answers=plausible)
    text = "\ufeff" + squad(qa(), second, qa(id="q3", is_impossible=False))
    first, none, last = read_squad(written(tmp_path, text))
    assert first.answers == last.answers == (Answer("Rome", 13),) and none.answers == ()
    assert first.passage == PASSAGE and first.question == "Where?" and none.id == "q2"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (squad(qa([{"text": "Rome", "answer_start": 12}])), "q1: .* given at 12.* at 13, 19"),
        (squad(qa([{"text": "Paris", "answer_start": 13}])), "q1: .* it is not there"),
        (squad(qa([{"text": "Rome.", "answer_start": -20}])), "q1: .* given at -20"),
        (squad(qa([{"text": "", "answer_start": 0}])), "q1: the answer ''"),
        (squad(qa([{"text": "Rome", "answer_start": 13.0}])), "answer_start is 13.0; expected a w"),
        (squad(qa([{"text": "Rome", "answer_start": True}])), "answer_start is True"),
        (squad(qa([{"text": "Rome"}])), r"q1: answer_start is missing \(text\)"),
        (squad(qa(is_impossible=True)), "1 answers were given, and is_impossible is True"),
        (squad(qa((), is_impossible=False)), "0 answers were given, and is_impossible is False"),
        (squad(qa(())), "q1: 0 answers .* is_impossible is missing; .* or take it out of the file"),
        (squad(qa(), qa()), "id 'q1' was given to two questions"),
        (squad(), "has no questions"),
        (squad(qa(), passage=None), "context is missing"),
        (json.dumps([qa()]), "expected SQuAD's form"),
        (json.dumps({"q1": "Rome"}), r"data is missing \(q1\)"),
        ('{"data": [', "is not JSON"),
    ],
)
def test_squad_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_squad(written(tmp_path, content))


READERS = (read_csv, read_jsonl, read_conll, read_squad)


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_file_of_text_is_named(tmp_path, read):
    for packed in (b"PK\x03\x04 a workbook", b"\x1f\x8b packed"):
        with pytest.raises(ValueError, match=r"file is packed .*: unpack it, .*; expected text"):
            read(written(tmp_path, packed, "file"))
    with pytest.raises(ValueError, match=f"{tmp_path.name} is a folder; expected a file"):
        read(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"no file at .*fil: .* Did you mean 'file'\? .* file"
    ):
        read(tmp_path / "fil")
    for wrong in (5, None, ""):
        with pytest.raises(TypeError, match="was given; expected the path of a file"):
            read(wrong)


def test_a_list_of_columns_is_none(tmp_path):
    with pytest.raises(ValueError, match=r"column \['text', 'label'\] was asked for; expected one"):
        read_csv(written(tmp_path, "text,label\na,b\n"), ["text", "label"])
