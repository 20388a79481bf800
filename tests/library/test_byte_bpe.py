"""Byte-level BPE: by hand, then against the `tokenizers` library: splitter, encoder, learner."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors, trainers

from course_lib.text import byte_bpe
from course_lib.text.byte_bpe import (
    ALPHABET,
    BYTE_OF,
    CHAR_OF,
    SPECIAL_TOKENS,
    ByteBPE,
    Pair,
    fast_byte_bpe,
    from_stand_ins,
    learn_merges,
    merge_pair,
    split_text,
    stand_ins,
    train_byte_bpe,
)

LIBRARY_SPLIT = pre_tokenizers.ByteLevel(add_prefix_space=False)

HARD = [
    "",
    " ",
    "   \n\t ",
    "a  b   c    d \n\n e\t\tf \r\n\r\n  g\n h \t",
    "tabs\tand\nlines\r\nand\x0bmore\x0c\x85\x1c\x1d\x1e\x1f nul\x00l bell\x07 so\xadft \x7f",
    "spaces\u00a0of\u2003many\u3000kinds\u2028line\u2029paragraph\ufeffbom zero\u200bwidth \u180e",
    "I'm you're she's he'd we'll they've don't 'tis 's's 'S 'RE x'll'll ''s ' s",
    "it’s 1's 2're -'ve _'m ('d) 's",
    "x1 22 3.14 1,000 50% C++ C# x_y __init__ ² ½ Ⅷ x²y ١٢٣ 一二三 ㉓ ①a",
    "emoji 😀👩‍👩‍👧 flag 🇫🇷 ❤️ 🫨 1️⃣ 👍🏽 end",
    "東京は日本の首都です。ABC中文abc 𠀀𫠠丽 한국어 조합",
    "e\u0301 n\u0303 a\u030a combining\u0336 \u0301alone u\u0308\u0304",
    "עִבְרִית العَرَبِيَّة हिन्दी ไทย ქართული Ελληνικά Русский Tiếng Việt",
    "Café déjà-vu — ÅNGSTRÖM İstanbul ǅ ﬁne ß ẞ 𝒜𝓁𝓅𝒽𝒶 ＦＵＬＬ ﷺ \ufffd \U0010ffff \ue000",
    "a.b,c!d?e:f;g'h\"i(j)k[l]m{n}o<p>q=r+s-t*u/v\\w|x~y`z^@#$%&_",
    "<s> <mask> a<mask>b </s><pad> <unk>. <mask [MASK] <<s>>",
    "Ġ Ċ ĠthĠe Ā ŀ Ń Ã© are stand-ins, and here plain text",
    "x" * 300 + " " + "ab" * 150 + " " * 40 + "é" * 100,
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(english_texts: list[str]) -> ByteBPE:
    return train_byte_bpe(english_texts, 3_000)


# ---------------------------------------------------------------- by hand


def test_bytes_and_their_stand_ins():
    assert sorted(CHAR_OF) == list(range(256)) and len(BYTE_OF) == 256
    assert set(ALPHABET) == set(pre_tokenizers.ByteLevel.alphabet())
    assert all(char.isprintable() and not char.isspace() for char in ALPHABET)
    assert stand_ins(" the\n") == "ĠtheĊ" and CHAR_OF[ord("a")] == "a"
    assert stand_ins("é b") == "Ã©Ġb" and from_stand_ins("Ã©Ġb") == "é b"
    assert from_stand_ins("Ã") == "\ufffd"  # half of an é
    assert stand_ins("né€") == "nÃ©âĤ¬" and stand_ins("") == ""
    assert [len(stand_ins(char)) for char in "👩‍👧"] == [4, 3, 4]  # woman, joiner, girl


@pytest.mark.parametrize(
    ("words", "merges"),
    [
        # Sennrich et al. 2016. e s and s t tie at 9, and e is the older byte; then es t has 9. l o
        # and o w tie at 7; then lo w has 7. n e, e w and w est tie at 6.
        (
            {"low": 5, "lower": 2, "newest": 6, "widest": 3},
            ["e s", "es t", "l o", "lo w", "e w"],
        ),
        ({"ba": 2, "ab": 2}, ["a b", "b a"]),  # the older left piece first
        ({"ac": 2, "ab": 2}, ["a b", "a c"]),  # then the older right piece
        ({"Ġz": 2, "zĠ": 2}, ["z Ġ", "Ġ z"]),  # bytes by code point of their stand-ins
        ({"zab": 2, "ba": 2, "ca": 9, "dca": 9}, ["c a", "d ca", "a b", "b a", "z ab"]),
        ({"aaa": 1}, ["a a"]),  # two pairs, so it occurs twice; aa a only once
        ({"aaaa": 1, "b": 5}, ["a a"]),
        ({"ab": 1}, []),
    ],
)
def test_tie_rule_by_hand(words: dict[str, int], merges: list[str]):
    assert [" ".join(pair) for pair in learn_merges(words, 5)] == merges
    assert learn_merges(words, 0) == []


# ---------------------------------------------------------------- the learner and the library


def learned_there(texts: list[str], size: int, special: Sequence[str], least: int = 0) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = LIBRARY_SPLIT
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=least, special_tokens=list(special), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def library(texts: list[str], vocab_size: int, min_frequency: int) -> tuple[list[Pair], dict]:
    """Merges and vocabulary as the `tokenizers` library learns them, <mask> put at the end."""
    tokenizer = learned_there(texts, vocab_size - 1, SPECIAL_TOKENS[:4], min_frequency)
    tokenizer.add_special_tokens([SPECIAL_TOKENS[4]])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges], tokenizer.get_vocab()


def same_learned(texts: list[str], vocab_size: int, min_frequency: int = 2) -> ByteBPE:
    """Assert the same merges in the same order and the same vocabulary; return what was learned."""
    ours = train_byte_bpe(texts, vocab_size, min_frequency=min_frequency)
    merges, vocab = library(texts, vocab_size, min_frequency)
    assert ours.merges == merges
    assert ours.ids == vocab
    return ours


def test_same_merges_on_random_texts():
    """1,000 drawn corpora of a few letters, of one byte or more: nearly every merge is a tie, and
    words overlap."""
    learned = 0
    for seed in range(1_000):
        draw = random.Random(seed)
        letters = draw.choice(["ab", "abc", "abcd", "abcdef", "東京é", "😀😁", "'st"])
        letters += draw.choice(["", " ", " é", "1 ", "\n "])
        texts = [
            "".join(draw.choices(letters, k=draw.randint(1, 60)))
            for _ in range(draw.randint(1, 6))
        ]  # fmt: skip
        size, least = draw.choice([265, 280, 400]), draw.choice([1, 2, 3])
        learned += len(same_learned(texts, size, least).merges)
    print(f"{learned} merges of 1,000 drawn corpora are the library's")
    assert learned > 10_000


@pytest.mark.parametrize(("some", "vocab_size"), [(400, 2_000), (1_500, 3_000), (1_500, 20_000)])
def test_same_merges_on_a_real_text(english_texts: list[str], some: int, vocab_size: int):
    ours = same_learned(english_texts[:some], vocab_size)
    print(f"{len(ours.merges)} merges from {some} paragraphs are the library's")
    if vocab_size < 10_000:
        assert ours.vocab_size == vocab_size
    else:  # every pair that occurs twice was learned
        assert ours.vocab_size < vocab_size
    assert len(set(ours.vocab)) == ours.vocab_size == len(ours.merges) + 261


# ---------------------------------------------------------------- splitter, encoder, decoder


def same_split(text: str) -> None:
    theirs = [word for word, _ in LIBRARY_SPLIT.pre_tokenize_str(text)]
    assert [stand_ins(word) for word in split_text(text)] == theirs, text


def test_same_words(english_texts: list[str]):
    for text in english_texts + HARD:
        same_split(text)
        assert "".join(split_text(text)) == text


def test_every_old_character_is_split_alike(old_characters: list[str]):
    for char in old_characters:
        same_split(f"a{char}b1{char}2 {char}!{char}{char} {char}\n{char} ")


def same_ids(ours: ByteBPE, texts: list[str]) -> int:
    """Assert the same ids for every text, and back again; return how many ids were compared."""
    theirs, compared = fast_byte_bpe(ours), 0
    for text, other in zip(texts, theirs.encode_batch(texts), strict=True):
        ids = ours.encode(text)
        assert ids == other.ids, text
        assert ours.decode(ids) == text == theirs.decode(ids)
        compared += len(ids)
    return compared


def test_same_ids(trained: ByteBPE, english_texts: list[str]):
    draw = random.Random(0)
    pools = [
        " \n\t\r\xa0 '",
        "abcdeeeestthin 's",
        "áéíóú東京 😀\u200d👩",
        "".join(chr(c) for c in range(256)),
    ]
    drawn = ["".join(draw.choices(draw.choice(pools), k=draw.randint(0, 80))) for _ in range(2_000)]
    assert same_ids(trained, english_texts) > 50_000 and same_ids(trained, drawn) > 50_000
    assert repr(trained) == "ByteBPE(3000 tokens, 2739 merges)"
    assert trained.ids["<unk>"] not in {i for text in english_texts for i in trained.encode(text)}
    # Pieces of English hardly reach into the hard texts; their own merges do.
    learned_from_them = train_byte_bpe(HARD, 1_000, min_frequency=1)
    assert 0 < same_ids(learned_from_them, HARD) < same_ids(trained, HARD) // 2


def test_offsets_are_the_librarys(trained: ByteBPE, english_texts: list[str]):
    """But for pieces of white space alone, where theirs depend on which white space it is."""
    theirs = fast_byte_bpe(trained)
    theirs.post_processor = processors.ByteLevel(trim_offsets=True)
    for text in [*HARD, *english_texts[:300]]:
        ids, offsets = trained.encode_with_offsets(text)
        assert ids == trained.encode(text)
        for found, expected in zip(offsets, theirs.encode(text).offsets, strict=True):
            if found[0] < found[1]:
                assert found == expected, text
            else:
                assert not text[slice(*expected)].strip()


def test_decoding_any_ids(trained: ByteBPE):
    """Ids in any order: broken characters become the replacement character, as in the library."""
    draw, theirs = random.Random(1), fast_byte_bpe(trained)
    broken = 0
    for _ in range(2_000):
        ids = draw.choices(range(4, 300), k=draw.randint(0, 12))
        text = trained.decode(ids)
        assert text == theirs.decode(ids)
        broken += "\ufffd" in text
    assert broken > 500
    assert trained.decode([trained.id("Ã")]) == "\ufffd"


def test_special_tokens_in_a_text(trained: ByteBPE):
    special = trained.special
    assert (special.cls, special.pad, special.sep, special.unk) == (0, 1, 2, 3)
    assert special.mask == trained.vocab_size - 1 == special.vocab_size - 1
    plain = trained.encode("a <mask> b")
    assert special.mask not in plain and trained.decode(plain) == "a <mask> b"
    assert trained.encode("the <mask>.", parse_special=True) == [
        *trained.encode("the"),
        special.mask,
        *trained.encode("."),
    ]
    theirs = fast_byte_bpe(trained)
    theirs.add_special_tokens([*SPECIAL_TOKENS[:4], AddedToken("<mask>", lstrip=True)])
    more = ["<s>a \n\x1f <mask> b</s></s>c  <mask><mask>", "  <mask>", "<pad> <unk> \u2003<mask>\n"]
    for text in HARD + more:
        assert trained.encode(text, parse_special=True) == theirs.encode(text).ids, text
    assert trained.decode([0, special.mask, 2]) == "<s><mask></s>"


def test_pieces_and_steps(trained: ByteBPE):
    pieces = trained.pieces("the representation's 東")
    assert "".join(pieces) == stand_ins("the representation's 東")
    assert [trained.id(piece) for piece in pieces] == trained.encode("the representation's 東")
    steps = trained.word_steps(" representation")
    assert steps[0] == list("Ġrepresentation") and steps[-1] == trained.pieces(" representation")
    for before, after in pairwise(steps):
        (pair,) = {p for p in pairwise(before) if merge_pair(before, p, "".join(p)) == after}
        assert pair in trained.ranks
    used = [min(trained.ranks.get(p, 10**9) for p in pairwise(before)) for before in steps[:-1]]
    assert used == sorted(used)  # in the order of learning


def test_cache_changes_nothing(trained: ByteBPE, english_texts: list[str], monkeypatch):
    monkeypatch.setattr(byte_bpe, "CACHED_WORDS", 10)
    small = ByteBPE(trained.vocab, trained.merges)
    for text in [" the", *english_texts[:50]]:
        first = small.encode(text)
        first_again = small.encode(text)
        assert first == first_again == trained.encode(text)
        first.clear()  # what was handed out is the caller's
        assert small.encode(text) == first_again
    assert len(small._cache) == 10


# ---------------------------------------------------------------- files


def test_files_and_back(tmp_path: Path, trained: ByteBPE):
    trained.save(tmp_path / "two")
    assert sorted(f.name for f in (tmp_path / "two").iterdir()) == ["merges.txt", "vocab.json"]
    (tmp_path / "one").mkdir()
    fast_byte_bpe(trained).save(str(tmp_path / "one" / "tokenizer.json"))
    for path in ("two", "two/vocab.json", "one", "one/tokenizer.json"):
        again = ByteBPE.from_file(tmp_path / path)
        assert again.vocab == trained.vocab and again.merges == trained.merges
    theirs = models.BPE.from_file(
        str(tmp_path / "two/vocab.json"), str(tmp_path / "two/merges.txt")
    )
    tokenizer = Tokenizer(theirs)
    tokenizer.pre_tokenizer = LIBRARY_SPLIT
    assert tokenizer.encode(HARD[9]).ids == trained.encode(HARD[9])


def test_file_of_the_library(tmp_path: Path, english_texts: list[str]):
    """Learned there, <mask> at another place, merges in the older form "left right"."""
    tokenizer = learned_there(english_texts, 1_000, SPECIAL_TOKENS)
    content = json.loads(tokenizer.to_str())
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    ours = ByteBPE.from_file(path)
    assert ours.special.mask == 4 and ours.vocab_size == 1_000
    for text in english_texts[:100]:
        assert ours.encode(text) == tokenizer.encode(text).ids


def test_bad_files(tmp_path: Path, trained: ByteBPE):
    with pytest.raises(FileNotFoundError, match=r"vocab\.json and no .*merges\.txt: expected a"):
        ByteBPE.from_file(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no .*nothing\.json: expected a tokenizer\.json"):
        ByteBPE.from_file(tmp_path / "nothing.json")
    trained.save(tmp_path)
    merges = (tmp_path / "merges.txt").read_text(encoding="utf-8")
    (tmp_path / "merges.txt").write_text(merges + "a b c\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab\.json is no byte-level BPE as here: 'a b c' is"):
        ByteBPE.from_file(tmp_path)
    (tmp_path / "vocab.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab\.json holds a list"):
        ByteBPE.from_file(tmp_path)
    (tmp_path / "vocab.json").write_bytes(b"\x80\x04\xff")
    with pytest.raises(ValueError, match="is no text in UTF-8"):
        ByteBPE.from_file(tmp_path)


def change(content: dict, *keys: str, to: object) -> dict:
    """`content` with one nested value changed."""
    for key in keys[:-1]:
        content = content[key]
    content[keys[-1]] = to
    return content


@pytest.mark.parametrize(
    ("keys", "to", "says"),
    [
        (("model", "type"), "WordPiece", r"is no tokenizer\.json"),
        (("model", "merges"), None, r"is no tokenizer\.json"),
        (("model", "vocab"), [1], r"is no tokenizer\.json"),
        (("model", "vocab"), {"a": 0, "b": 2}, "out of vocabulary"),
        (("model", "ignore_merges"), True, "sets ignore_merges"),
        (("pre_tokenizer",), None, "sets pre_tokenizer None"),
        (("pre_tokenizer", "add_prefix_space"), True, "sets add_prefix_space"),
        (("pre_tokenizer", "use_regex"), False, "sets use_regex"),
        (("normalizer",), {"type": "NFC"}, "sets normalizer NFC"),
    ],
)
def test_tokenizer_files_of_another_kind(
    tmp_path: Path, trained: ByteBPE, keys: tuple[str, ...], to: object, says: str
):
    content = json.loads(fast_byte_bpe(trained).to_str())
    change(content, *keys, to=to)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=says):
        ByteBPE.from_file(path)


# ---------------------------------------------------------------- bad input


WHOLE = [*SPECIAL_TOKENS, *ALPHABET]


@pytest.mark.parametrize(
    ("vocab", "merges", "says"),
    [
        ([], [], r"\(0 tokens\) lacks <s> <pad> .* and more"),
        (ALPHABET, [], "lacks <s> <pad> </s> <unk> <mask>. Expected"),
        (WHOLE[:-1], [], "lacks Ń. Expected"),
        ([*WHOLE, "a"], [], "'a' stands twice"),
        ([*WHOLE, "a b"], [], "' ' in 'a b' stands for no byte"),
        ([*WHOLE, "ab"], [("a", "c")], r"merge 1 \(a c\): 'ac' is not in the vocabulary"),
        ([*WHOLE, "abc"], [("ab", "c")], "'ab' is no byte and made by no earlier merge"),
        ([*WHOLE, "ab"], [("a", "b")] * 2, r"merge 2 \(a b\): an earlier merge makes 'ab'"),
    ],
)
def test_bad_vocabularies(vocab: list[str], merges: list[Pair], says: str):
    with pytest.raises(ValueError, match=says):
        ByteBPE(vocab, merges)


def test_lone_surrogates_and_other_things(trained: ByteBPE):
    for call in (trained.encode, trained.pieces, trained.word_steps, stand_ins):
        with pytest.raises(ValueError, match=r"character 2 of the text is U\+D83D, a lone surr"):
            call("ab\ud83d")
        with pytest.raises(TypeError, match=r"expected a text \(str\), got bytes: b'ab'"):
            call(b"ab")  # type: ignore[arg-type]
    repaired = "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert repaired == "😀"  # what the message says to do


def test_bad_ids_tokens_and_words(trained: ByteBPE):
    for id in (-1, 3_000):
        with pytest.raises(ValueError, match="outside this vocabulary of 3000 tokens"):
            trained.decode([id])
    with pytest.raises(ValueError, match=r"' the' is none of the 3000 .*\['Ġthe'\].*space is Ġ"):
        trained.id(" the")
    for word in ("", "two words", "it's"):
        with pytest.raises(ValueError, match="is not one word"):
            trained.word_steps(word)
    with pytest.raises(ValueError, match="' ' in 'a b' stands for no byte"):
        from_stand_ins("a b")
    with pytest.raises(ValueError, match="stands for no byte"):
        learn_merges({"a b": 3}, 5)


def test_bad_requests_to_the_learner():
    with pytest.raises(ValueError, match="vocab_size is 260; the 256 bytes and the 5 special"):
        train_byte_bpe(["some text"], 260)
    assert train_byte_bpe(["some text"], 261).merges == []
    with pytest.raises(ValueError, match="min_frequency is 0"):
        train_byte_bpe(["some text"], 300, min_frequency=0)
    for nothing in ([], ["", ""]):
        with pytest.raises(ValueError, match="hold no character"):
            train_byte_bpe(nothing, 300)
    with pytest.raises(TypeError, match="several texts, got the one text 'some text'"):
        train_byte_bpe("some text", 300)
    with pytest.raises(TypeError, match=r"expected a text \(str\), got int: 3"):
        train_byte_bpe(["some text", 3], 300)  # type: ignore[list-item]
