"""The documentation corpus: what counts as prose, the split, the slice, a cache to be trusted."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_lib.text import documentation as room
from course_lib.text.documentation import (
    Corpus,
    corpus_hash,
    documentation,
    documentation_slice,
    is_prose,
    module_paragraphs,
    plain,
    prose_paragraphs,
    read_cache,
    split_of,
    split_sentences,
    write_cache,
)

MODULE = '''
"""A small module that exists only so that its words can be read by a test.

Usage::

    >>> import nothing

See :class:`~package.Thing` and ``code`` for the *many* details of `this page <https://a.b>`_.
"""
raise RuntimeError("whoever imports this has not understood the rule")

class Box:
    """A box holds things, and it does so until the box is emptied by somebody.

    Parameters
    ----------
    size : int
        How many things fit into the box before it is full to the brim.
    """
    def open(self):
        """Open the box, which makes a noise that nobody has ever heard before."""
'''


def test_a_module_by_hand(tmp_path: Path):
    (tmp_path / "m.py").write_text(MODULE, encoding="utf-8")
    assert module_paragraphs(tmp_path / "m.py") == [
        "A small module that exists only so that its words can be read by a test.",
        "See package.Thing and code for the many details of this page.",
        "A box holds things, and it does so until the box is emptied by somebody.",
        "How many things fit into the box before it is full to the brim.",
        "Open the box, which makes a noise that nobody has ever heard before.",
    ]


def test_what_cannot_be_parsed_is_left_out(tmp_path: Path):
    (tmp_path / "m.py").write_bytes(b"def \x00 (")
    assert module_paragraphs(tmp_path / "m.py") == []
    assert module_paragraphs(tmp_path / "absent.py") == []


@pytest.mark.parametrize(
    "text",
    [
        "Too short to be a paragraph.",
        "no capital letter at the beginning of this line of eight words.",
        "This has no end although it is long enough to be a sentence",
        "In [3]: x = f(y) and some more words after it, to make it long.",
        ">>> The prompt of an interpreter stands in front of all these words here.",
        "See https://example.org for the whole story and all of its many details.",
        "1 2 3 4 5 6 7 8 9 10.",
        "Values 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 are here.",
    ],
)
def test_not_prose(text: str):
    assert not is_prose(text)


def test_blocks_are_cut_at_blank_lines_and_indentation():
    text = (
        "The first paragraph goes over two lines\nand ends on the second of them.\n\n"
        "    The second one stands further in and is one of its own.\n"
        "The third stands further out, without a blank line before it.\n"
    )
    assert len(prose_paragraphs(text)) == 3
    assert plain("two\n  lines") == "two lines"


def test_sentences():
    text = 'One ends here. "Two" is e.g. short, as J. Doe et al. say (Fig. 3)! Is it? 4 is last.'
    assert split_sentences(text) == [
        "One ends here.",
        '"Two" is e.g. short, as J. Doe et al. say (Fig. 3)!',
        "Is it?",
        "4 is last.",
    ]
    assert split_sentences("") == []


def test_split_is_a_function_of_the_paragraph():
    paragraphs = [f"This is paragraph number {i} of many." for i in range(20_000)]
    share = sum(split_of(p) == "heldout" for p in paragraphs) / len(paragraphs)
    expected = 13 / 256  # the first byte of a hash below 256/20
    assert abs(share - expected) < 5 * (expected * (1 - expected) / len(paragraphs)) ** 0.5


def test_slice_is_quick_safe_and_repeatable():
    """In a fresh process: a few seconds, and none of the packages it reads is imported."""
    code = (
        "import sys; from course_lib.text.documentation import documentation_slice as s\n"
        "before = set(sys.modules); c = s()\n"
        "bad = {'numpy', 'scipy', 'sklearn', 'torch'} & (set(sys.modules) - before)\n"
        "assert not bad, bad\n"
        "print(c.hash, len(c.paragraphs))"
    )
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    print(f"cold slice: {time.perf_counter() - start:.1f} s")
    digest, count = run.stdout.split()
    here = documentation_slice()
    assert (here.hash, str(len(here.paragraphs))) == (digest, count)
    # It ends with the document that makes 2,000 full, however long the documents here are.
    assert len(here.paragraphs) - len(here.documents[-1]) < 2_000 <= len(here.paragraphs)
    assert here.hash == corpus_hash(here.documents)
    assert here.versions["python"] and here.versions["torch"]


def test_slice_is_prose_without_doubles_on_its_side():
    train = documentation_slice(400)
    heldout = documentation_slice(40, "heldout")
    assert len(set(train.paragraphs)) == len(train.paragraphs) >= 400
    assert all(map(is_prose, train.paragraphs))
    assert {split_of(p) for p in train.paragraphs} == {"train"}
    assert {split_of(p) for p in heldout.paragraphs} == {"heldout"}
    assert 1 < len(train.documents) < len(train.paragraphs)  # some have several paragraphs
    sentences = train.sentences()
    assert len(sentences) == len(train.documents)
    assert sum(map(len, sentences)) > len(train.paragraphs)


def test_slice_errors():
    with pytest.raises(ValueError, match="paragraphs=0: expected at least 1"):
        documentation_slice(0)
    for call in (documentation_slice, documentation):
        with pytest.raises(ValueError, match="split='test': expected"):
            call(split="test")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Only one package, made here, is read, into an empty cache; returns the cache's file."""
    package = tmp_path / "site" / "docstrings_only"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(MODULE, encoding="utf-8")
    for i in range(60):
        text = f'"""Whoever opens module number {i} finds one sentence and nothing else in it."""'
        (package / f"part_{i}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path))
    monkeypatch.setattr(room, "PACKAGES", (package.name, "no_such_package"))
    return tmp_path / "documentation" / "packages.jsonl"


def test_whole_corpus_is_built_once(small: Path, monkeypatch: pytest.MonkeyPatch):
    whole = documentation("all")
    assert set(whole.versions) == {"docstrings_only"}
    assert len(whole.documents) == 61 and len(whole.paragraphs) == 65  # MODULE has five
    parts = [documentation(split).paragraphs for split in ("train", "heldout")]
    assert parts[0] and parts[1] and sorted(parts[0] + parts[1]) == sorted(whole.paragraphs)
    assert "Corpus(all:" in repr(whole) and isinstance(whole, Corpus)
    monkeypatch.setattr(room, "module_paragraphs", lambda path: pytest.fail("built again"))
    assert documentation("all") == whole


def test_damaged_caches_are_rebuilt(small: Path):
    whole = documentation("all")
    good = small.read_bytes()
    header, *lines = good.decode().splitlines(keepends=True)
    other = json.dumps({**json.loads(header), "versions": {"docstrings_only": "0.0.1"}}) + "\n"
    damaged = {
        "half written": good[: len(good) // 2],
        "a line lost": "".join([header, *lines[:-1]]).encode(),
        "a word changed": good.replace(b"the", b"teh", 1),
        "another version": "".join([other, *lines]).encode(),
        "empty": b"",
        "not text": b"\x80\xff\x00",
        "not JSON": b"hello\n",
        "no header": "".join(lines).encode(),
    }
    for what, content in damaged.items():
        assert content != good
        small.write_bytes(content)
        assert read_cache(small, whole.versions) is None, what
        assert documentation("all") == whole, what
        assert small.read_bytes() == good, what


def test_cache_keeps_odd_characters(tmp_path: Path):
    documents = [["line\u2028separator \x85 and é"], ["tab\tand\nnewline", "x"]]
    write_cache(tmp_path / "c", documents, {"a": "1"})
    assert read_cache(tmp_path / "c", {"a": "1"}) == documents
    assert not list(tmp_path.glob("*tmp*"))


def test_hash_sees_order_and_ends_of_documents():
    hashes = {corpus_hash(d) for d in ([["a", "b"]], [["b", "a"]], [["a"], ["b"]], [["a"]], [])}
    assert len(hashes) == 5


def test_the_command(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setattr(sys, "argv", ["documentation", "--rebuild"])
    room.main()
    printed = capsys.readouterr().out
    assert "Corpus(train:" in printed and "Corpus(heldout:" in printed
    assert "from docstrings_only" in printed
    assert small.is_file()
