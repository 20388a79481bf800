"""WordPiece: by hand, against the `tokenizers` library on every word of a real text, and errors."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from tokenizers import Tokenizer, normalizers, pre_tokenizers

from course_lib.text.byte_bpe import train_byte_bpe
from course_lib.text.wordpiece import (
    SPECIAL_TOKENS,
    WordPiece,
    fast_wordpiece,
    normalise,
    split_words,
    train_wordpiece,
)

NASTY = [
    "Café déjà-vu, naïve résumé — ÅNGSTRÖM İstanbul ǅ ﬁne ß ẞ",
    "ΌΔΟΣ ὈΔΥΣΣΕΎΣ σίγμα ΣΑΣ",
    "東京は日本の首都です。ABC中文abc 𠀀𫠠丽 한국어 조합",
    "emoji 😀👩‍👩‍👧 flag 🇫🇷 ❤️ 🫨 1️⃣",
    "tabs\tand\nlines\r\nand\x0bmore\x0c\x85\x1f nul\x00l \ufffd bell\x07 so\xadft zero\u200bwidth",
    "spaces\u00a0of\u2003many\u3000kinds\u2028line\u2029paragraph\ufeffbom",
    "x" * 100 + " " + "y" * 101 + " " + "é" * 100 + " " + "é" * 101,
    "a.b,c!d?e:f;g'h\"i(j)k[l]m{n}o<p>q=r+s-t*u/v\\w|x~y`z^@#$%&_",
    "don't they're U.S.A. 3.14 1,000 50% C++ C# x_y",
    "“quotes” ‘single’ «guillemets» … – — ‽ ¿que? ¡sí! § ¶ † ₿ € № ™ ½ x² H₂O",
    "עִבְרִית العَرَبِيَّة हिन्दी ไทย ქართული Ελληνικά Русский Tiếng Việt",
    "[MASK] [mask] [[MASK]] x[SEP]y [CLS][PAD] [UNK]. [MASK",
    "",
    "   \n\t ",
    "e\u0301 n\u0303 a\u030a combining\u0336 \u0301alone",
    "𝒜𝓁𝓅𝒽𝒶 ＦＵＬＬ ｗｉｄｔｈ ① ⅷ ㎏",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(english_texts: list[str]) -> WordPiece:
    return train_wordpiece(english_texts, 3_000)


def agree(ours: WordPiece, texts: list[str]) -> int:
    """Assert the same ids for every text; return how many words were compared."""
    theirs = fast_wordpiece(ours)
    words = 0
    for text, other in zip(texts, theirs.encode_batch(texts), strict=True):
        assert ours.encode(text) == other.ids, text
        words += len(list(ours.words(text)))
    return words


def test_every_word_of_a_real_text(trained: WordPiece, english_texts: list[str]):
    words = agree(trained, english_texts)
    print(f"{words} words of data/english agree, {len(trained)} tokens")
    assert words > 30_000
    pieces = [piece for text in english_texts[:200] for piece in trained.tokenize(text)]
    assert sum(piece.startswith("##") for piece in pieces) > 500  # pieces are exercised


SETTINGS = [
    {},
    {"lowercase": False},
    {"strip_accents": False},
    {"lowercase": False, "strip_accents": True},
    {"handle_chinese_chars": False},
    {"clean_text": False},
    {"lowercase": False, "clean_text": False, "handle_chinese_chars": False},
    {"max_chars": 3, "strip_accents": False},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_offsets_are_the_librarys(trained: WordPiece, english_texts: list[str], settings: dict):
    ours = WordPiece([*trained.vocab, "T", "##É"], **settings)
    theirs = fast_wordpiece(ours)
    for text in [*NASTY, *english_texts[:100]]:
        ids, offsets = ours.encode_with_offsets(text)
        assert ids == ours.encode(text)
        assert offsets == theirs.encode(text).offsets, text


def test_every_word_with_the_published_vocabulary(minilm_folder: Path, english_texts: list[str]):
    ours = WordPiece.from_file(minilm_folder / "vocab.txt")
    assert (ours.vocab_size, ours.id("[MASK]"), ours.id("[CLS]")) == (30_522, 103, 101)
    assert ours.vocab == WordPiece.from_file(minilm_folder / "tokenizer.json").vocab
    assert agree(ours, english_texts + NASTY) > 30_000
    theirs = Tokenizer.from_file(str(minilm_folder / "tokenizer.json"))
    theirs.no_truncation()
    theirs.no_padding()
    for text in english_texts[:300] + NASTY:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, text


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_nasty_lines(settings: dict):
    letters = sorted(set("".join(NASTY)) - set(" \t\n\r"))
    both = {c for c in letters for c in (c, c.lower())}
    both |= {part for char in both for part in unicodedata.normalize("NFD", char)}
    words = sorted(c for c in both if c and not c.isspace())
    ours = WordPiece([*SPECIAL_TOKENS, *words, *("##" + c for c in words)], **settings)
    assert agree(ours, NASTY) > 150
    unknown = any("[UNK]" in ours.tokenize(text) for text in NASTY[:2])
    assert unknown == (ours.max_chars == 3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ["große", "fur", "ubung"]),
        ({"strip_accents": False}, ["große", "für", "übung"]),
        ({"lowercase": False}, ["Große", "für", "Übung"]),
        ({"lowercase": False, "strip_accents": True}, ["Große", "fur", "Ubung"]),
    ],
)
def test_case_and_accents_are_two_settings(settings: dict, words: list[str]):
    text = "Große für Übung"
    ours = WordPiece.from_words(words, **settings)
    assert ours.tokenize(text) == words
    learned = train_wordpiece([text] * 2, 60, **settings)
    assert set(words) <= set(learned.vocab) and learned.tokenize(text) == words
    assert ours.with_vocab(learned.vocab).tokenize(text) == words
    with pytest.raises(ValueError, match=r"'übung' can never .*accents"):
        WordPiece.from_words(["übung"], strip_accents=True)


def test_every_old_character(old_characters: list[str]):
    splitter = pre_tokenizers.BertPreTokenizer()
    ours = [WordPiece(SPECIAL_TOKENS, **settings).normalisation for settings in SETTINGS[:4]]
    theirs = [normalizers.BertNormalizer(**settings) for settings in ours]
    for number, char in enumerate(old_characters):
        text = f"a{char}B"
        for which in {0, number % 4}:
            assert normalise(text, **ours[which]) == theirs[which].normalize_str(text), repr(char)
        bare = normalise(text, lowercase=False)
        assert split_words(bare) == [w for w, _ in splitter.pre_tokenize_str(bare)], repr(char)


def test_long_and_unknown_words():
    ours = WordPiece.from_words(["x", "##x"])
    assert ours.tokenize("x" * 100) == ["x"] + ["##x"] * 99
    assert ours.tokenize("x" * 101) == ["[UNK]"]
    assert ours.tokenize("xyx x") == ["[UNK]", "x"]


def test_where_it_is_not_googles_own_rule():
    """That gives ς at a word's end, cuts up to 200 characters, keeps \ue000, splits [MASK]."""
    ours = WordPiece.from_words(["σας", "σασ", "a", "##a", "x", "[", "]", "mask"])
    assert ours.tokenize("ΣΑΣ \ue000x [MASK]") == ["σασ", "x", "[MASK]"]
    assert ours.tokenize("a" * 101) == ["[UNK]"]
    longer = WordPiece(ours.vocab, max_chars=200, added_tokens={})
    assert len(longer.tokenize("a" * 200)) == 200 and longer.tokenize("a" * 201) == ["[UNK]"]
    assert longer.tokenize("[MASK]") == ["[", "mask", "]"]


def test_from_words_and_back(tmp_path: Path):
    ours = WordPiece.from_words(["the", "cat", "##s", "."])
    assert ours.vocab[:5] == list(SPECIAL_TOKENS)
    special = ours.special
    assert (special.pad, special.unk, special.cls, special.sep, special.mask) == (0, 1, 2, 3, 4)
    assert special.vocab_size == ours.vocab_size == len(ours) == 9
    assert ours.encode("The cats.") == [5, 6, 7, 8]
    assert ours.decode([5, 6, 7, 8]) == "the cats ."
    assert ours.encode("the [MASK] .") == [5, 4, 8]
    assert ours.token(ours.id("cat")) == "cat"
    ours.save(tmp_path / "vocab.txt")
    assert WordPiece.from_file(tmp_path / "vocab.txt").vocab == ours.vocab


def test_files_say_whether_cased(tmp_path: Path):
    (tmp_path / "vocab.txt").write_text("\n".join(SPECIAL_TOKENS) + "\r\nThe\n", encoding="utf-8")
    assert WordPiece.from_file(tmp_path / "vocab.txt").tokenize("The") == ["The"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    assert WordPiece.from_file(tmp_path / "vocab.txt").tokenize("The") == ["[UNK]"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    assert WordPiece.from_file(tmp_path / "vocab.txt").tokenize("The") == ["The"]
    cased = fast_wordpiece(WordPiece.from_words(["The"], lowercase=False))
    cased.save(str(tmp_path / "tokenizer.json"))
    again = WordPiece.from_file(tmp_path / "tokenizer.json")
    assert again.tokenize("The") == ["The"] and not again.lowercase


@pytest.mark.parametrize(
    ("vocab", "says"),
    [
        ([], "lacks"),
        (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"], r"\[MASK\]"),
        ([*SPECIAL_TOKENS, "a", "b", "a"], "'a' stands twice"),
    ],
)
def test_bad_vocabularies(vocab: list[str], says: str):
    with pytest.raises(ValueError, match=says):
        WordPiece(vocab)


@pytest.mark.parametrize("word", ["The", "two words", "it's", "", "café"])
def test_words_that_no_text_gives(word: str):
    with pytest.raises(ValueError, match="never be matched"):
        WordPiece.from_words(["fine", word])


def test_bad_ids_and_tokens():
    ours = WordPiece.from_words(["the"])
    for id in (-1, 6):
        with pytest.raises(ValueError, match="outside this vocabulary of 6 tokens"):
            ours.decode([id])
    with pytest.raises(ValueError, match=r"'dog' is none of the 6 tokens.*\[UNK\]"):
        ours.id("dog")


def test_bad_files(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"no vocabulary at .*expected a vocab\.txt"):
        WordPiece.from_file(tmp_path / "vocab.txt")
    (tmp_path / "vocab.txt").write_bytes(b"\x80\x04\xff")
    with pytest.raises(ValueError, match="is no text in UTF-8"):
        WordPiece.from_file(tmp_path / "vocab.txt")
    (tmp_path / "a.txt").write_text("just\nwords\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.txt is not a WordPiece vocabulary.*lacks"):
        WordPiece.from_file(tmp_path / "a.txt")
    for content, says in (
        ("{", "is no JSON"),
        ("[]", "holds a list: expected a JSON object"),
        ('{"model": 3}', r"is no tokenizer\.json"),
        ('{"model": {"type": "BPE", "vocab": {}, "merges": []}}', "describes a BPE tokenizer"),
        ('{"model": {"type": "WordPiece", "vocab": {}}}', r"is no tokenizer\.json"),
    ):
        (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=says):
            WordPiece.from_file(tmp_path / "tokenizer.json")


def test_training_errors():
    with pytest.raises(ValueError, match="5 special tokens alone"):
        train_wordpiece(["some text"], 5)
    with pytest.raises(ValueError, match="no words"):
        train_wordpiece(["", "  "], 100)
    with pytest.raises(ValueError, match="letters of these texts alone are 12"):
        train_wordpiece(["abc bcd", "abc"], 11)  # 5 special, ##b ##c ##d, a b c d


@pytest.mark.parametrize("train", [train_wordpiece, train_byte_bpe])
def test_words_that_are_none_of_a_language_do_not_hold_the_trainer_up(train):
    """Half a megabyte without a space, as a picture in base64: the trainer would take minutes."""
    text, long = "the cat sat on the mat. " * 9, "ab" * 250_000
    with pytest.warns(UserWarning, match="^1 words of more than 1,000 characters were left out"):
        learned = train([f"{text}{long} {text}"], 290)
    assert learned.vocab == train([text, text], 290).vocab


def test_texts_without_spaces_between_words_are_no_long_words(recwarn):
    text = "猫在垫子上。" * 300
    assert train_wordpiece([text], 40).vocab == train_wordpiece([" ".join(text)], 40).vocab
    assert not recwarn.list


def test_training_is_repeatable(english_texts: list[str]):
    first, *more = (train_wordpiece(english_texts[:200], 500).vocab for _ in range(4))
    assert all(other == first for other in more)
    assert first[:5] == list(SPECIAL_TOKENS) and len(first) == 500


def test_letters_that_only_control_tokens_bring_stand_in_order():
    """A hash table hands them over in another order each time."""
    texts = ["[CLS] and [SEP] and [MASK] are tokens, [PAD] too", "special tokens and tokens"] * 3

    def pieces() -> list[str]:
        words = train_wordpiece(texts, 70)
        return [words.token(i) for i in range(words.vocab_size)]

    first = pieces()
    capitals = [piece for piece in first if re.fullmatch("##[A-Z]", piece)]
    assert len(capitals) > 5 and capitals == sorted(capitals)
    assert all(pieces() == first for _ in range(5))
