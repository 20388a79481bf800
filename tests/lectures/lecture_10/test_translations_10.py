"""The reader of real translations: tiny catalogues made up here, broken ones, missing ones; then
what is installed, where it is."""

from __future__ import annotations

import struct
import sys

import pytest

from course_lib.lectures.lecture_10 import translations as room
from course_lib.lectures.lecture_10.translations import (
    LANGUAGES,
    cleaned,
    is_translation,
    read_catalogue,
    split_of,
    translations,
    words,
)

HEAD = "Content-Type: text/plain; charset={}\nPlural-Forms: nplurals=2; plural=n != 1;\n"
RED = "The door stays red"
DOORS = {
    RED: "La porte reste rouge",
    "Menu\x04Open the &old %(what)s door": "Ouvrir la vieille porte %(what)s",
    "Only three words": "Seulement trois mots",
    "%d door is open today\0%d doors are open today": "%d porte est ouverte\0%d portes ouvertes",
    "Never translated, not once": "Never translated, not once",
}


def catalogue(messages, charset="utf-8"):
    """The bytes of a compiled catalogue; \\0 stands between plural forms."""
    rows = sorted({"": HEAD.format(charset), **messages}.items())
    names, texts = ([one.encode("utf-8") for one in side] for side in zip(*rows, strict=True))
    count, start = len(rows), 28
    where, table, body = start + 16 * count, b"", b""
    for one in (*names, *texts):
        table += struct.pack("<II", len(one), where + len(body))
        body += one + b"\0"
    header = struct.pack("<7I", 0x950412DE, 0, count, start, start + 8 * count, 0, where)
    return header + table + body


def package(folder, name, module, about="License-Expression: MIT\n", version="1.0", **locales):
    """An installed distribution that is made of catalogues: locale -> bytes."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(head + about, encoding="utf-8")
    for locale, data in locales.items():
        file = folder / module / "locale" / locale / "LC_MESSAGES" / "messages.mo"
        file.parent.mkdir(parents=True)
        file.write_bytes(data)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An empty folder of packages, where alone distributions are looked for."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


# ---------------------------------------------------------------- one message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("  The %(count)d&nbsp;doors\n of %s ", "The doors of"),
        ("Page %1 of {{total}}, {name}: %.2f", "Page of,"),
        ("<b>Save</b> the ``file`` now…", "Save the file now…"),
        ("&Open File (&O)", "Open File"),
        ("Rock & roll is 100% fun", "Rock & roll is 100% fun"),
        ("value “%(value)s” is odd", "value is odd"),
        ("值 “%(value)s” 无效", "值 无效"),
        ("URL of the .aff file", "URL of the .aff file"),
        ("caf\u0065\u0301 \u200bouvert", "caf\u00e9 ouvert"),
    ],
)
def test_messages_by_hand(message, expected):
    assert cleaned(message) == expected


def test_what_counts_as_a_word_and_as_a_translation():
    assert words("It's a read-only file, v2 of 3") == 6  # v2 counts for its v
    assert is_translation(RED, "La porte reste rouge")
    assert not is_translation(RED, "the door stays RED.")
    assert not is_translation(RED, "porte\nThe door stays red")
    assert not is_translation(RED, "…") and not is_translation("a {key: b}", "une {key: b}")


def test_one_sentence_in_six_is_held_out_whatever_its_punctuation():
    lines = [f"message number {chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600)]
    held = [one for one in lines if split_of(one) == "heldout"]
    assert 70 < len(held) < 130
    assert {split_of(one.upper() + " …") for one in held} == {"heldout"}


# ---------------------------------------------------------------- files


def test_a_catalogue_by_hand(tmp_path):
    path = tmp_path / "messages.mo"
    path.write_bytes(catalogue(DOORS))
    entries = read_catalogue(path)
    assert entries[RED] == "La porte reste rouge" and "" not in entries
    assert entries["Open the &old %(what)s door"] == "Ouvrir la vieille porte %(what)s"
    assert entries["%d door is open today"] == "%d porte est ouverte"  # the first form alone
    assert len(entries) == len(DOORS)


@pytest.mark.parametrize(
    "data",
    [b"", b"not a catalogue at all", catalogue(DOORS)[:60], catalogue(DOORS, "utf-16"),
     catalogue(DOORS | {"Again the door opens": "é"}, "ascii"), catalogue(DOORS, "no-such-code")],
)  # fmt: skip
def test_a_broken_catalogue_is_named(tmp_path, data):
    path = tmp_path / "broken.mo"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"broken\.mo was given; expected .* Install its package"):
        read_catalogue(path)


# ---------------------------------------------------------------- packages


def test_packages_are_aligned_on_their_english(site):
    chinese = catalogue({RED: "门是红色的", "A door that nobody opens": "没人开的门"})
    package(site, "Sphinx", "sphinx", version="9.0.4", fr=catalogue(DOORS), zh_CN=chinese)
    lab = catalogue({"The DOOR stays red.": "Rouge", "Close it before noon": "Ferme avant midi"})
    name, tried = "jupyterlab-language-pack-fr-FR", room.SOURCES["JupyterLab"].tried
    about = (
        "License: All rights\n of many lines\nClassifier: License :: OSI Approved :: BSD License\n"
    )
    package(site, name, "jupyterlab_language_pack_fr_FR", about, tried, fr_FR=lab)
    with pytest.warns(UserWarning, match="Django is not installed"):
        messages = translations(["fr", "zh"])
    assert messages.aligned("en", "fr", "zh") == [(RED, "La porte reste rouge", "门是红色的")]
    assert messages.aligned("zh", "en")[1] == ("没人开的门", "A door that nobody opens")
    by_english = {one.english: one for one in messages.sentences}
    assert set(by_english) == {
        RED, "Open the old door", "door is open today", "A door that nobody opens",
        "Close it before noon",
    }  # fmt: skip
    assert messages.counts() == {
        "Sphinx": {"en": 4, "fr": 3, "zh": 2}, "Django": {}, "JupyterLab": {"en": 1, "fr": 1},
    }  # fmt: skip
    assert messages.versions == {"Sphinx": "9.0.4", name: tried}
    assert messages.licences == {"Sphinx": "MIT", name: "BSD License"}
    assert len(messages.notes) == 3  # Django twice, the Chinese pack
    parts = [messages.aligned("en", "fr", split=split) for split in ("train", "heldout")]
    assert sorted(parts[0] + parts[1]) == sorted(messages.aligned("en", "fr"))
    assert messages.hash != translations_of(["fr"]).hash and "2 sentences" not in repr(messages)


def translations_of(languages):
    with pytest.warns(UserWarning):
        return translations(languages)


def test_another_version_is_read_and_named(site):
    package(site, "Django", "django", version="4.0", fr=catalogue(DOORS))
    with pytest.warns(UserWarning, match=r"Django 4\.0 is read; tried was 5\.2\.19"):
        assert translations(["fr"]).versions == {"Django": "4.0"}


def test_a_broken_file_loses_nothing_else(site):
    package(site, "Django", "django", version="5.2.19", fr=catalogue(DOORS), zh_Hans=b"broken")
    other = site / "django" / "contrib" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.mo"
    other.parent.mkdir(parents=True)
    other.write_bytes(catalogue({RED: "门是红色的"}))
    with pytest.warns(UserWarning, match=r"left out: .*messages\.mo was given"):
        messages = translations(["fr", "zh"])
    assert len(messages.aligned("en", "fr")) == 3 and len(messages.aligned("en", "zh")) == 1


def test_a_language_without_a_folder(site):
    package(site, "Django", "django", version="5.2.19", fr=catalogue(DOORS))
    with pytest.raises(
        ValueError, match=r"in xx nothing was found(.|\n)*folder xx or xx_XX .* are fr"
    ):
        translations(["fr", "xx"])


def test_nothing_installed_says_what_to_do(site):
    with pytest.raises(LookupError, match=r"No package .* Sphinx, Django, JupyterLab.*pip install"):
        translations()
    assert not room.installed()


def test_a_package_whose_files_are_gone(site):
    package(site, "Django", "django", version="5.2.19")
    with pytest.raises(LookupError, match=r"below .*django, and there is none\. Install it anew"):
        translations(["fr"])


@pytest.mark.parametrize("languages", [[], ["fr", "fr"], ["en", "fr"]])
def test_languages_are_named_once_and_without_english(languages):
    with pytest.raises(ValueError, match="expected each once"):
        translations(languages)


@pytest.mark.parametrize("options", [{"split": "test"}, {}])
def test_only_what_was_read_is_aligned(options):
    made = room.Translations([], ("fr",), {}, {})
    with pytest.raises(ValueError, match="expected some of en, fr, and train, heldout or all"):
        made.aligned("en", "fr" if options else "zh", **options)


# ---------------------------------------------------------------- what is installed


@pytest.fixture(scope="module")
def real():
    if not room.installed():
        pytest.skip(f"the packages with translations are not all installed: {room.INSTALL}")
    return translations()


@pytest.mark.filterwarnings("ignore:.*tried was")
def test_real_sentences_are_many_clean_and_parallel(real):
    assert len(real.aligned("en", "fr", "zh")) > 1_500
    assert len(real.aligned("en", *LANGUAGES)) > 400
    for english, french, chinese in real.aligned("en", "fr", "zh"):
        assert words(english) >= room.FEWEST and french and chinese
        assert not any(sign in one for one in (english, french, chinese) for sign in "{}\n`\x04")
        assert "%(" not in english and english.casefold() != french.casefold()
    far = [one for (one,) in real.aligned("zh")]
    assert sum(any("\u4e00" <= c <= "\u9fff" for c in one) for one in far) > 0.98 * len(far)


@pytest.mark.filterwarnings("ignore:.*tried was")
def test_real_packages_are_read_as_files_and_their_licences_are_free(real):
    assert all("BSD" in one for one in real.licences.values())
    counts = real.counts()
    assert all(counts[package]["en"] > 150 for package in room.SOURCES)
    assert sum(one["en"] for one in counts.values()) == len(real.sentences)
    assert "django" not in sys.modules
