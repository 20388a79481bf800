"""Your own labelled files: CSV and JSON Lines by column, CoNLL's tagged sentences, SQuAD's
questions.

What cannot be read as it means is refused with its line: nothing is left out, filled or repaired.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_lib.config import check_choice
from course_lib.files import as_path, did_you_mean, json_object, read_text

from .english import Answer, Question, TaggedSentence, gold_texts

DELIMITERS = (",", ";", "\t")
SCHEMES = ("BIO", "IOB1", "BIOES")
_BIOES_MARKS = {"S": "B", "U": "B", "E": "I", "L": "I"}  # U and L: BILOU's names for S and E


# ---------------------------------------------------------------- columns


def read_csv(path: str | Path, *columns: str) -> dict[str, list[str]]:
    """The columns of a CSV file, name -> its cells as texts; all of them where none is named.

    The first line holds the columns' names. Cells are separated by commas, semicolons or tabs,
    whichever separates the names; a cell in quotes may hold separators and line ends.
    Raises ValueError, with file and line, for a column that is not there, a name that stands twice,
    a row of another length, a quote that nobody closes, a cell that is empty or NaN in a column
    that is read, and for no rows."""
    path = as_path(path)
    rows = csv_rows(path, columns)
    _, header = next(rows, (1, []))
    names = _chosen(path, header, columns)
    read = {name: header.index(name) for name in names}
    result: dict[str, list[str]] = {name: [] for name in names}
    for line, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path}, line {line}: {len(row)} cells were given; expected {len(header)}, one "
                f"for each of {', '.join(header)}. Put a text that holds the separator in quotes."
            )
        for name, column in read.items():
            result[name].append(_cell(row[column], name, f"{path}, line {line}"))
    return _not_empty(path, result)


def read_jsonl(path: str | Path, *columns: str) -> dict[str, list[str]]:
    """The columns of a JSON Lines file, an object a line, name -> its values as texts; numbers and
    truth values as JSON writes them. Where none is named, the columns of the first line.

    Raises ValueError, with file and line, for a line that is no JSON object, a column that it
    lacks, a value that is null, NaN, empty or holds others, and for no lines."""
    path = as_path(path)
    result: dict[str, list[str]] = {}
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        entry = _json(line, f"{path}, line {number}", "an object in braces on each line")
        names = _chosen(path, list(entry), columns or tuple(result), f", line {number}")
        for name in names:
            value = _cell(entry[name], name, f"{path}, line {number}")
            result.setdefault(name, []).append(value)
    return _not_empty(path, result)


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of each row, that of the names first; empty lines are none; of one column, an
    empty cell is a row."""
    first, _, rest = (text := _text(path)).partition("\n")
    if re.match(r"\s*(\{|\[\s*(\{|$))", first):
        raise ValueError(
            f"{path} holds JSON, {first!r:.60}; expected CSV. read_jsonl reads a line each."
        )
    if excel := re.fullmatch('"?sep=(.)"?', first):  # a line of Excel's that names the separator
        text = rest
    marks = excel[1] if excel else DELIMITERS
    delimiter = max(marks, key=lambda mark: _names_there(text, mark, columns))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = before = 1 + bool(excel)
    columns_there = 0
    with _long_cells():
        try:
            for row in reader:
                if len(row) > 1 or "".join(row).strip() or (row and columns_there == 1):
                    columns_there = columns_there or len(row)
                    yield line, row
                line = reader.line_num + before
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {line}: {error}. Is a quote not closed, or not written twice "
                "inside a cell in quotes?"
            ) from error


def _names_there(text: str, delimiter: str, columns: Sequence[str]) -> tuple[int, int]:
    """How many of the columns the first line has by this delimiter, and how many cells."""
    try:
        header = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    except csv.Error:
        header = []
    return sum(name in header for name in columns), len(header)


@contextmanager
def _long_cells() -> Iterator[None]:
    """Without Python's limit of 131,072 characters a cell: a document may be longer."""
    before = csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _chosen(path: Path, there: list[str], columns: Sequence[str], where: str = "") -> list[str]:
    """The columns that are asked for, or all."""
    if twice := [name for name, count in Counter(there).items() if count > 1]:
        raise ValueError(f"{path}: the column {twice[0]!r} stands twice; expected each name once.")
    for name in columns:
        if name not in there:
            raise ValueError(
                f"{path}{where}: the column {name!r} was asked for; expected one of "
                f"{', '.join(map(repr, there)) or 'none: there is nothing'}."
                + did_you_mean(name, there)
            )
    return list(dict.fromkeys(columns)) or there


def _cell(value: object, name: str, where: str) -> str:
    """The cell as a text; ValueError for one that holds nothing, and for lists and objects."""
    if value is None or value != value or str(value).strip().casefold() in ("", "nan"):
        raise ValueError(
            f"{where}: the column {name!r} is empty, {value!r:.20}; expected a text. Fill it in, "
            "or take the row out of the file."
        )
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return json.dumps(value)
    if not isinstance(value, str):
        raise ValueError(
            f"{where}: the column {name!r} holds {value!r:.60}; expected a text or a number."
        )
    return value


def _not_empty(path: Path, columns: dict[str, list[str]]) -> dict[str, list[str]]:
    if not any(columns.values()):
        raise ValueError(f"{path} has no rows; expected at least one.")
    return columns


# ---------------------------------------------------------------- tagged sentences


def read_conll(
    path: str | Path, kind: str = "entities", scheme: str | None = None
) -> list[TaggedSentence]:
    """The sentences of a CoNLL file: a word a line, an empty line behind each sentence.

    A line has two columns, word and tag, or four, word, part of speech, chunk and entity tag, as
    CoNLL-2003 has; they are separated by tabs, or by white space where there are none. Lines of
    -DOCSTART- and CoNLL-U's comments are none of any sentence, whose text is its words with spaces
    between them.
    kind: "entities", which come as BIO whatever the file has, or "pos" for parts of speech, as they
    stand. scheme: how entities are marked, "BIO" (IOB2), "IOB1" (B- only between two neighbours of
    one kind) or "BIOES" (BILOU, too); None: that which all tags of the file agree with.
    Raises ValueError, with file and line, for another number of columns, a tag of another form or
    against the scheme, and for no sentences."""
    check_choice("kind", kind, ("entities", "pos"))
    if scheme is not None:
        check_choice("scheme", scheme, SCHEMES)
    path = as_path(path)
    sentences = _conll_sentences(path)
    if kind == "pos":
        tags = [[row[1] for _, row in rows] for rows in sentences]
        return [_sentence(path, rows, row, ()) for rows, row in zip(sentences, tags, strict=True)]
    marked = [[(line, row[-1]) for line, row in rows] for rows in sentences]
    for rows in marked:
        for line, tag in rows:
            _check_form(tag, f"{path}, line {line}")
    to_bio = _as_bio(path, marked, scheme)
    return [
        _sentence(path, rows, _parts_of_speech(rows), to_bio([tag for _, tag in row]))
        for rows, row in zip(sentences, marked, strict=True)
    ]


Rows = list[tuple[int, list[str]]]  # (line, its columns)
COMMENT = re.compile(r"# (newdoc|newpar|sent_id|text(_\w+)?|global\.columns)\b")  # as CoNLL-U has


def _conll_sentences(path: Path) -> list[Rows]:
    sentences: list[Rows] = [[]]
    columns = 0
    for number, line in enumerate(_text(path).split("\n"), 1):
        # Not split() alone: it would cut at a space that may not break, inside a number.
        line = line.strip(" \t")
        row = [cell.strip(" ") for cell in re.split("\t+" if "\t" in line else " +", line) if cell]
        if not row or row[0] == "-DOCSTART-" or COMMENT.match(line):
            sentences.append([])
            continue
        columns = columns or len(row)
        if len(row) not in (2, 4) or len(row) != columns:
            raise ValueError(
                f"{path}, line {number}: {len(row)} columns were given, {line!r:.60}; expected 2 "
                "(word, tag) or 4 (word, part of speech, chunk, tag), the same on every line, and "
                "an empty line between sentences."
            )
        sentences[-1].append((number, row))
    if not any(sentences):
        raise ValueError(f"{path} has no sentences; expected a word and its tag on each line.")
    return [rows for rows in sentences if rows]


def _parts_of_speech(rows: Rows) -> tuple[str, ...]:
    return tuple(row[1] for _, row in rows) if len(rows[0][1]) == 4 else ()


def _sentence(
    path: Path, rows: Rows, pos: Sequence[str], entities: Sequence[str]
) -> TaggedSentence:
    words = tuple(row[0] for _, row in rows)
    name = f"{path.name}, line {rows[0][0]}"
    return TaggedSentence(name, " ".join(words), words, tuple(pos), tuple(entities))


def _check_form(tag: str, where: str) -> None:
    mark, _, name = tag.partition("-")
    if tag != "O" and (mark not in ("B", "I", *_BIOES_MARKS) or not name):
        raise ValueError(
            f"{where}: the tag {tag!r} was given; expected O, or a mark and a kind, such as B-PER "
            'and I-PER. Parts of speech are read with kind="pos".'
        )


def _as_bio(
    path: Path, sentences: list[list[tuple[int, str]]], scheme: str | None
) -> Callable[[list[str]], tuple[str, ...]]:
    """What turns tags of the file's scheme into BIO; ValueError where a tag is against it."""
    marks = {tag[0] for rows in sentences for _, tag in rows}
    possible = ("BIOES",) if marks & _BIOES_MARKS.keys() else ("BIO", "IOB1")
    errors = {}
    for name in [scheme] if scheme else possible:
        broken = (_against(name, rows) for rows in sentences)
        if (error := next(filter(None, broken), None)) is None:
            return CONVERT[name]
        errors[name] = error
    raise ValueError(
        f"{path}: "
        + "; ".join(f"no {name}, for line {line}: {why}" for name, (line, why) in errors.items())
        + ". Expected tags of one scheme; mend that line."
    )


def _against(scheme: str, rows: list[tuple[int, str]]) -> tuple[int, str] | None:
    """The first line of a sentence whose tag is against the scheme, and why."""
    if scheme == "BIOES":
        return _against_bioes(rows)
    before = "O"
    for line, tag in rows:
        if tag[0] in _BIOES_MARKS:
            return line, f"{tag} has a mark of BIOES"
        continues = before != "O" and before[1:] == tag[1:]
        if scheme == "BIO" and tag[0] == "I" and not continues:
            return line, f"{tag} follows {before}"
        if scheme == "IOB1" and tag[0] == "B" and not continues:
            return line, f"{tag} follows {before}, where IOB1 has I{tag[1:]}"
        before = tag
    return None


def _against_bioes(rows: list[tuple[int, str]]) -> tuple[int, str] | None:
    before = "O"
    for line, tag in [*rows, (rows[-1][0], "O")]:
        is_open = before[0] in "BI"
        goes_on = tag[0] in "IEL"
        if is_open != goes_on or (goes_on and before[1:] != tag[1:]):
            return line, f"{tag} follows {before}"
        before = tag
    return None


def _from_iob1(tags: Sequence[str]) -> tuple[str, ...]:
    """An entity's first word gets its B-, also where no neighbour of its kind stands before it."""
    pairs = zip(["O", *tags], tags, strict=False)
    return tuple(
        f"B{tag[1:]}" if tag[0] == "I" and before[1:] != tag[1:] else tag for before, tag in pairs
    )


def from_bioes(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags of BIOES or BILOU as BIO: S- and U- begin an entity, E- and L- go on with one."""
    return tuple(_BIOES_MARKS.get(tag[0], tag[0]) + tag[1:] for tag in tags)


CONVERT: Mapping[str, Callable[[Sequence[str]], tuple[str, ...]]] = {
    "BIO": tuple,
    "IOB1": _from_iob1,
    "BIOES": from_bioes,
}


# ---------------------------------------------------------------- questions


def read_squad(path: str | Path) -> list[Question]:
    """The questions of a file in SQuAD's JSON, of version 1.1 or 2.0; in 2.0 those that are marked
    `is_impossible` have no answers.

    Raises ValueError, with file and question, for another form, an answer that does not stand in
    its passage where `answer_start` says (counted in characters), an impossible question with
    answers, one without that is not marked so, an id that stands twice, and for no questions."""
    path = as_path(path)
    whole = _json(_text(path), str(path), 'SQuAD\'s form, {"data": [...]}')
    questions = []
    for article in _list(whole, "data", str(path)):
        for paragraph in _list(article, "paragraphs", str(path)):
            passage = _value(paragraph, "context", str, str(path))
            for entry in _list(paragraph, "qas", str(path)):
                name = _value(entry, "id", str | int, str(path))
                questions.append(_question(entry, str(name), passage, f"{path}, question {name}"))
    if not questions:
        raise ValueError(f"{path} has no questions; expected at least one.")
    try:
        gold_texts(questions)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return questions


def _question(entry: Mapping[str, Any], name: str, passage: str, where: str) -> Question:
    text = _value(entry, "question", str, where)
    answers = tuple(_answer(answer, passage, where) for answer in _list(entry, "answers", where))
    if (impossible := entry.get("is_impossible", False)) is not (not answers):
        stated = f"is {impossible!r}" if "is_impossible" in entry else "is missing"
        raise ValueError(
            f"{where}: {len(answers)} answers were given, and is_impossible {stated}; expected it "
            "to be true exactly where there is no answer. A question that its passage does not "
            'answer has "is_impossible": true, as in version 2.0; or take it out of the file.'
        )
    return Question(name, text, passage, answers)


def _answer(entry: Any, passage: str, where: str) -> Answer:
    text, start = _value(entry, "text", str, where), _value(entry, "answer_start", int, where)
    if not text.strip() or start < 0 or passage[start : start + len(text)] != text:
        places = [place.start() for place in re.finditer(re.escape(text), passage)] if text else []
        stands = f"it stands at {', '.join(map(str, places[:5]))}" if places else "it is not there"
        raise ValueError(
            f"{where}: the answer {text!r:.60} was given at {start}, where the passage has "
            f"{passage[max(start, 0) :][: len(text)]!r:.60}; {stands}. Expected words of the "
            "passage, and in answer_start the number of characters before them."
        )
    return Answer(text, start)


def _list(entry: Any, name: str, where: str) -> list[Any]:
    return _value(entry, name, list, where)


def _value(entry: Any, name: str, kind: Any, where: str) -> Any:
    """A field of a JSON object, of the kind that is expected."""
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        there = ", ".join(entry) if isinstance(entry, dict) else f"{entry!r:.60}"
        what = f"{name} is {value!r:.60}" if value is not None else f"{name} is missing ({there})"
        expected = {str: "a text", int: "a whole number", list: "a list"}.get(kind, "a name")
        raise ValueError(f"{where}: {what}; expected {expected}, as in SQuAD's files.")
    return value


# ---------------------------------------------------------------- small parts


def _text(path: Path) -> str:
    """A file in UTF-8, with or without its mark at the beginning, its line ends as \\n."""
    text = read_text(path, "text in UTF-8, such as CSV or JSON")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _json(text: str, where: str, expected: str) -> dict[str, Any]:
    """As `json_object`, with the form that is expected here."""
    try:
        return json_object(text, where)
    except ValueError as error:
        if error.__cause__ is None:  # JSON, but no object
            raise ValueError(f"{where} holds {text.strip()!r:.60}; expected {expected}.") from error
        reason = error.__cause__
        raise ValueError(f"{where} is not JSON: {reason}; expected {expected}.") from error
