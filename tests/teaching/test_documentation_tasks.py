"""Labels from the markup of docstrings: what is marked, what is dropped, on which side it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from course_lib.teaching import documentation_tasks as room
from course_lib.teaching.documentation_tasks import (
    CLASSES,
    CODE_TAGS,
    MOST_A_MODULE,
    SECTIONS,
    described_parameters,
    drawn,
    marked_sentences,
    nameless_paragraphs,
    section_sentences,
    side_of,
    tagged,
    without_marks,
    without_names,
)
from course_lib.text.documentation import PACKAGES, split_of
from course_lib.text.english import LabelledText
from course_lib.text.world import MicroWorld


def texts_and_code(docstring: str) -> list[tuple[str, list[str]]]:
    return [(text, [text[a:b] for a, b in spans]) for text, spans in marked_sentences(docstring)]


def test_marks_are_taken_out_and_remembered():
    text = "Give ``copy`` or `axis` to :func:`numpy.take`, as :meth:`~numpy.ndarray.take` does."
    plain, spans = without_marks(text)
    assert plain == "Give copy or axis to numpy.take, as take does."
    assert [plain[a:b] for a, b in spans] == ["copy", "axis", "numpy.take", "take"]
    assert without_marks("See `this page <https://a.b>`_ and `that`_.")[1] == []


def test_sentences_of_prose_with_a_marked_word_of_small_letters():
    docstring = """Return a new array without looking at the old one twice.

    If ``copy`` is set, the values
    of `other` are copied before anything else happens. The rest stays as it was before the call.
    """
    assert texts_and_code(docstring) == [
        ("If copy is set, the values of other are copied before anything else happens.",
         ["copy", "other"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sentence",
    [
        "If ``Copy`` is set, the values of the array are copied before anything else happens.",
        "If ``copy`` is set, the values of new_array are copied before anything else happens.",
        "If ``copy`` is None, the values of the array are copied before anything else happens.",
        "If ``copy`` is set, the values of *other* are copied before anything else happens.",
        "If ``copy`` is set, the result of take() is copied before anything else happens to it.",
        "If ``copy`` is 'deep', the values of the array are copied before anything happens.",
        "If ``copy``s are made, the values of the array are copied before anything else happens.",
        "If ``copy`` is set, see :ref:`below`, the values are copied before anything else happens.",
        "``copy`` it.",
    ],
)
def test_what_is_unclear_is_dropped(sentence: str):
    assert texts_and_code(sentence) == []


def test_tags_are_bio_over_words_and_signs():
    text = "Give copy to numpy.take, or copy it."
    sentence = tagged([text, [[5, 9], [13, 23]]], id="a", split="test")
    assert sentence.words == (
        *("Give", "copy", "to", "numpy", ".", "take", ",", "or", "copy", "it", "."),
    )
    code = [(w, t) for w, t in zip(sentence.words, sentence.tags("entities"), strict=True)
            if t != "O"]  # fmt: skip
    assert code == [("copy", "B-CODE"), ("numpy", "B-CODE"), (".", "I-CODE"), ("take", "I-CODE")]
    assert {tag for _, tag in code} | {"O"} == {*CODE_TAGS}


NUMPY = """Sum the numbers of a list that somebody has given.

Parameters
----------
numbers : list of float
    The numbers that are to be summed, in any order whatever. More is said here.
start : float, optional
    What the sum begins with before any number is added

Returns
-------
total : float
    the sum of all the numbers that were given to it.

Notes
-----
Nothing that stands here belongs to one of the classes that we want.

Raises
------
ValueError
    If a number is so large that it cannot be added to others.
"""
GOOGLE = """Sum the numbers of a list that somebody has given.

Args:
    numbers (list): The numbers that are to be summed, in any order
        whatever. More is said here.
    start: too short.

Returns:
    float: the sum of all the numbers that were given to it.

Raises:
    ValueError: If a number is so large that it cannot be added to others.
"""
SAID = [
    ["Sum the numbers of a list that somebody has given.", "Summary"],
    ["The numbers that are to be summed, in any order whatever.", "Parameters"],
    ["What the sum begins with before any number is added.", "Parameters"],
    ["The sum of all the numbers that were given to it.", "Returns"],
    ["If a number is so large that it cannot be added to others.", "Raises"],
]


def test_sections_in_the_conventions_of_numpy_and_of_google():
    assert list(section_sentences(NUMPY)) == SAID
    assert list(section_sentences(GOOGLE)) == [SAID[0], SAID[1], *SAID[3:]]
    assert not list(section_sentences("Only one line, and no section that says any more of it."))


def test_kinds_of_parameters_in_the_conventions_of_numpy_and_of_google():
    assert list(described_parameters(NUMPY)) == [[SAID[2][0], "float"]]  # not the list of float
    typed = GOOGLE.replace("(list)", "(`torch.Tensor`, *optional*)")
    assert list(described_parameters(typed)) == [[SAID[1][0], "array"]]
    assert not list(described_parameters(GOOGLE))  # a list is none of the kinds
    assert not list(described_parameters(typed.replace("torch.Tensor", "int or float")))
    assert not list(described_parameters(typed.replace("Args", "Attributes")))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("Like ``numpy.take``, but :func:`torch.take` is faster\nthan `take`.",
         "Like, but is faster than."),
        ("NumPy, scikit-learn and Hugging Face's Transformers (in Python) agree.",
         ", and 's (in) agree."),
        ("Call fit() with n_jobs or maxIter, x2 and os.path on a GPU.", "Call with or, and on a."),
        ("A numerical scheme by *Newton*, see `the manual <https://a.b>`_.",
         "A numerical scheme by Newton, see the manual."),
    ],
)  # fmt: skip
def test_names_and_code_are_taken_out(block: str, expected: str):
    assert without_names(block) == expected


def test_paragraphs_know_their_package_and_their_side(monkeypatch: pytest.MonkeyPatch):
    words = [first + second for first in "abcdefghijklmnopqrstuvwxyz" for second in "wz"]
    texts = [f"The {word} of a sum is found by adding up all of them slowly." for word in words]
    names = [f"numpy/{n}.py" for n in range(30)]
    monkeypatch.setattr(room, "source_files", lambda package: (
        {name: Path(name) for name in names} if package == "numpy" else {}))  # fmt: skip
    monkeypatch.setattr(room, "module_docstrings", lambda path: texts)
    read, unread = ({name: list(items) for name, items in nameless_paragraphs(held_out)}
                    for held_out in (False, True))  # fmt: skip
    tested = {name for name in names if side_of(name) == "test"}
    held = {text for text in texts if split_of(text) == "heldout"}
    assert set(read) == {*names} > set(unread) == tested and tested and held
    for name in names:
        expected = texts if name not in tested else [t for t in texts if t not in held]
        assert read[name] == [[text, "numpy"] for text in expected]
    assert all({t for t, _ in items} == held for items in unread.values())


def sentence(n: int) -> str:
    return f"{n}a {n}b {n}c {n}d {n}e {n}f {n}g"


def modules(count: int, each: int) -> list[tuple[str, list[list[str]]]]:
    return [(f"m{k}", [[sentence(100 * k + n), SECTIONS[n % 5]] for n in range(each)])
            for k in range(count)]  # fmt: skip


def test_a_module_is_on_one_side_and_sets_are_balanced():
    lines_by_split = drawn(modules(40, 10), {"train": 30, "test": 10}, set(), classes=5)
    items = {split: [json.loads(line) for line in lines] for split, lines in lines_by_split.items()}
    assert {split: len(some) for split, some in items.items()} == {"train": 30, "test": 10}
    for split, some in items.items():
        assert set(Counter(label for _, label in some).values()) == {len(some) // 5}
        assert all(side_of(f"m{int(text.split('a')[0]) // 100}") == split for text, _ in some)


def test_a_smaller_set_begins_a_larger_one_and_no_module_fills_it():
    small, large = (drawn(modules(40, 30), {"train": n, "test": n}, set()) for n in (20, 60))
    assert large["train"][:20] == small["train"]
    of = Counter(json.loads(line)[0].split("a")[0][:-2] for line in large["train"])
    assert max(of.values()) == MOST_A_MODULE


def test_of_nearly_equal_texts_the_first_stays():
    near = sentence(1).replace("1g", "other")
    texts = [("m", [[text, "x"] for text in (sentence(1), near, sentence(2))])]
    seen: set[str] = set()
    kept = drawn(texts, {"outside": 9}, seen)["outside"]
    assert [json.loads(line)[0] for line in kept] == [sentence(1), sentence(2)]
    again = drawn([("n", [[near, "x"], [sentence(3), "x"]])], {"outside": 9}, seen)
    assert [json.loads(line)[0] for line in again["outside"]] == [sentence(3)]


def test_outside_packages_are_none_the_checkpoint_read():
    assert not {*room.OUTSIDE} & {*PACKAGES} and {*room.INSIDE} <= {*PACKAGES}


def test_sets_are_built_once_and_again_when_versions_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path))
    lines = [f"Take ``copy`` {sentence(n)} as it is there.".replace("1", "x") for n in range(9)]
    built, versions = [], {"numpy": "1"}

    def in_order(packages: tuple[str, ...]) -> list[tuple[str, list[str]]]:
        built.append(packages)
        return [(f"{packages[0]}{n}", [line]) for n, line in enumerate(lines)]

    monkeypatch.setattr(room, "in_order", in_order)
    monkeypatch.setattr(room, "installed_versions", lambda packages: versions)
    monkeypatch.setattr(room, "is_prose", lambda text: True)
    monkeypatch.setattr(room, "_UNCLEAR", room.re.compile("~"))
    monkeypatch.setattr(room, "INSIDE", ("i",))
    first = room.code_words(4, 2, 3)
    assert first == room.code_words(4, 2, 3) and len(built) == 2 and first.train
    assert all("B-CODE" in item.entities for item in [*first.train, *first.test])
    assert first.train[0].id == "train-0" and first.versions == versions
    versions["numpy"] = "2"
    assert room.code_words(4, 2, 3).hash == first.hash and len(built) == 4


@pytest.mark.parametrize(("count", "learned"), [(9, 6), (5, 2), (2, 0)])
def test_validation_texts_are_the_last_of_those_to_learn_from(
    count: int, learned: int, monkeypatch: pytest.MonkeyPatch
):
    def made(train: int, test: int, outside: int) -> room.DocumentationTask:
        assert (train, test, outside) == (9, 1, 1)
        return room.DocumentationTask([*range(count)], [10], [11], {}, "")

    monkeypatch.setitem(room.TASKS, "numbers", made)
    room.documentation_task.cache_clear()
    task = room.documentation_task("numbers", 6, 1, 1, validation=3)
    assert (task.train, task.validation) == ([*range(learned)], [*range(learned, count)])


def test_each_task_has_its_classes_or_tags():
    code = [tagged(["Set a", [[4, 5]]])]
    texts = {name: [LabelledText("", "a", c) for c in of] for name, of in CLASSES.items()}
    assert [room.CODE, *texts] == [*room.TASKS]
    for name, items in {room.CODE: code, **texts}.items():
        made = room.as_sequences(name, items, MicroWorld.load().tokenizer, 9)
        assert made.names == CLASSES.get(name, CODE_TAGS)
        labels = made.labels[made.labels >= 0].tolist()
        assert labels == ([0, 1] if name == room.CODE else [*range(len(items))])
