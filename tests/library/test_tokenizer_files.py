"""Tokenizer files that others wrote: drawn ones read to the ids of the `tokenizers` library, or are
refused by the name of the setting; so are the files beside them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from course_lib import (
    bert_for_pretraining,
    load_pretrained,
    modernbert_for_masked_lm,
    roberta_for_masked_lm,
)
from course_lib.checkpoints import save_folder
from course_lib.text.byte_bpe import SPECIAL_TOKENS as ROBERTAS
from course_lib.text.byte_bpe import ByteBPE, train_byte_bpe
from course_lib.text.unigram import Unigram
from course_lib.text.wordpiece import SPECIAL_TOKENS, WordPiece, fast_wordpiece

TEXTS = [
    "Große Übung für ALLE: Café, naïve résumé — Ελλάδα ΣΑΣ",
    "ab [E1] x[e1]y [E2] [MASK] [mask] [ [CLS] and the Thing things thing",
    "tab\tline\nnul\x00l bell\x07 so\xadft \x1f wide\u3000space \u2028 \ufffd x\u200by",
    "東京は中文 abc中d a中 . , ! don't 3.14 $5 _x_ 国国",
    "wordswordswords a ab abc abcd abcde  two  spaces  ",
    "",
]
LETTERS = sorted({c for text in TEXTS for c in (*text, *text.lower())} - set(" \t\n\u3000\u2028国"))
WORDS = [
    "thing",
    "Thing",
    "##s",
    "übung",
    "ubung",
    "cafe",
    "e1",
    "E1",
    "the",
    "and",
    "@@s",
    "words",
]


class Change(NamedTuple):
    """A change of a tokenizer.json."""

    key: str  # which setting, a dot between the levels
    value: Any
    refused: str = ""  # what the refusal names; nothing where the file is read


def changed(content: Any, key: str, value: Any) -> Any:
    """`content` with one nested value replaced; of the added tokens, those of the same text."""
    first, _, rest = key.partition(".")
    if rest:
        return {**content, first: changed(content[first], rest, value)}
    if first == "added_tokens" and value:
        new = {entry["content"] for entry in value}
        value = [*(entry for entry in content[first] if entry["content"] not in new), *value]
    return {**content, first: value}


def token(content: str, id: int, **settings: bool) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": id, "content": content, **dict.fromkeys(names, False), **settings}


def frame(pair: str, cls: str, sep: str, ids: dict[str, int]) -> dict[str, Any]:
    special = [(cls, ids[cls]), (sep, ids[sep])]
    made = processors.TemplateProcessing(f"{cls} $A {sep}", pair, special)
    return json.loads(made.__getstate__())


TO_THREE = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
CUT_SHORT = [
    Change("truncation", TO_THREE),
    Change("truncation", {**TO_THREE, "direction": "Left"}, "direction = 'left'; expected 'right'"),
    Change("padding", {"strategy": {"Fixed": 20}, "direction": "Right", "pad_to_multiple_of": None,
                       "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}),
]  # fmt: skip


# ---------------------------------------------------------------- WordPiece


PIECES = [*SPECIAL_TOKENS, *WORDS, *LETTERS, *("##" + c for c in LETTERS)]
SIZE = len(dict.fromkeys(PIECES))
BERT_IDS = {piece: id for id, piece in enumerate(dict.fromkeys(PIECES))}
OF_WORDPIECE = [
    *CUT_SHORT,
    *(Change(f"normalizer.{name}", value)
      for name in ("strip_accents", "lowercase", "clean_text", "handle_chinese_chars")
      for value in (True, False)),
    Change("normalizer.strip_accents", None),
    Change("normalizer", None),
    *(Change("normalizer", {"type": kind, **more}, f"normalizer {kind}")
      for kind, more in (("NFC", {}), ("Lowercase", {}), ("Sequence", {"normalizers": []}))),
    Change("pre_tokenizer", None, "pre_tokenizer None"),
    Change("pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer Whitespace"),
    Change("pre_tokenizer", {"type": "Sequence", "pretokenizers": []}, "pre_tokenizer Sequence"),
    Change("model.continuing_subword_prefix", "@@", "continuing_subword_prefix = '@@'"),
    Change("model.continuing_subword_prefix", "", "continuing_subword_prefix = ''"),
    Change("model.unk_token", "a", "unk_token = 'a'"),
    *(Change("model.max_input_chars_per_word", most) for most in (0, 3, 5, 200)),
    Change("model.vocab", {**BERT_IDS, "more": SIZE + 1}, "are not 0 to|the id"),
    Change("model.vocab", {**BERT_IDS, "more": 7}, "are not 0 to|the id"),
    Change("added_tokens", []),
    Change("added_tokens", [token("[MASK]", 4, normalized=True, special=True)]),
    Change("added_tokens", [token("[E1]", SIZE, normalized=True)]),
    Change("added_tokens", [token("[E1]", SIZE), token("[E2]", SIZE + 1, normalized=True)]),
    Change("added_tokens", [token("[E1]", SIZE, lstrip=True, rstrip=True, special=True)]),
    Change("added_tokens", [token("thing", BERT_IDS["thing"])]),
    Change("added_tokens", [token("hing", SIZE, normalized=True)]),
    Change("added_tokens", [token("国", SIZE, normalized=True)]),
    Change("added_tokens", [token("things", SIZE), token("thin", SIZE + 1)]),
    Change("added_tokens", [token("[E1]", SIZE, single_word=True)], "single_word of"),
    Change("added_tokens", [token("[E1]", SIZE + 3)], "'\\[E1\\]' the id"),
    Change("added_tokens", [token("[E2]", SIZE + 1), token("[E1]", SIZE)], "the id"),
    Change("added_tokens", [token("[E1]", 7)], "'\\[E1\\]' the id 7"),
    Change("post_processor", None),
    Change("post_processor", frame("[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS]", "[SEP]", BERT_IDS)),
    Change("post_processor", frame("[CLS] $A [SEP] [SEP] $B [SEP]", "[CLS]", "[SEP]", BERT_IDS)),
    Change("post_processor", frame("[CLS] $B [SEP] $A", "[CLS]", "[SEP]", BERT_IDS),
           "a post_processor that gives"),
    Change("post_processor", frame("[CLS] $A [SEP] $B [SEP]", "[SEP]", "[CLS]", BERT_IDS),
           "a post_processor that gives"),
    Change("decoder", {"type": "WordPiece", "prefix": "##", "cleanup": True}),
    Change("decoder", {"type": "Fuse"}),
]  # fmt: skip


def wordpiece_file() -> dict[str, Any]:
    tokenizer = fast_wordpiece(WordPiece(list(BERT_IDS)))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return json.loads(tokenizer.to_str())


# ---------------------------------------------------------------- byte-level BPE and Unigram


BPE = train_byte_bpe([text for text in TEXTS if text] * 2, 320)
LAST = len(BPE) - 1
OF_BYTE_BPE = [
    *CUT_SHORT,
    Change("normalizer", {"type": "NFC"}, "normalizer NFC"),
    Change("pre_tokenizer", None, "pre_tokenizer None"),
    Change("pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer Whitespace"),
    Change("pre_tokenizer.add_prefix_space", True, "add_prefix_space = True"),
    Change("pre_tokenizer.use_regex", False, "use_regex = False"),
    Change("pre_tokenizer.trim_offsets", False),
    *(Change(f"model.{name}", True) for name in ("fuse_unk", "byte_fallback")),
    Change("model.unk_token", "<unk>"),
    Change("model.dropout", 0.5, "dropout"),
    Change("model.ignore_merges", True, "ignore_merges"),
    Change("model.end_of_word_suffix", "</w>", "is no tokenizer.json|end_of_word_suffix"),
    Change("model.continuing_subword_prefix", "##", r"is no tokenizer\.json"),
    Change("added_tokens", [token("<mask>", LAST, lstrip=True, special=True)]),
    Change("added_tokens", [token("<mask>", LAST, rstrip=True)], "rstrip of '<mask>'"),
    Change("added_tokens", [token("<s>", 0, single_word=True)], "single_word of '<s>'"),
    Change("added_tokens", [token("[E1]", LAST + 1)], r"the added token '\[E1\]'"),
    Change("post_processor", frame("<s> $A </s> </s> $B </s>", "<s>", "</s>", BPE.ids)),
    Change("post_processor", frame("<s> $A </s> $B", "<s>", "</s>", BPE.ids), "post_processor"),
]  # fmt: skip


def byte_bpe_file() -> dict[str, Any]:
    tokenizer = Tokenizer(models.BPE(vocab=BPE.ids, merges=BPE.merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(list(ROBERTAS))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return json.loads(tokenizer.to_str())


SCORED = [(piece, -3.0 - 0.1 * n) for n, piece in enumerate(["▁", "▁the", "▁thing", "s", *LETTERS])]
SCORED = list(dict(SCORED).items())
XLM_IDS = {name: id for id, name in enumerate(("<s>", "<pad>", "</s>", "<unk>"))}
MASK_AT = len(XLM_IDS) + len(SCORED)
UNK_AT = Change("model.unk_id", 5, "unk_id = 5")
OF_UNIGRAM = [
    *CUT_SHORT,
    UNK_AT, UNK_AT._replace(value=None, refused="unk_id = None"),
    Change("normalizer", {"type": "NFKC"}),
    Change("normalizer", {"type": "Lowercase"}),
    Change("pre_tokenizer", {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never",
                             "split": False}),
    Change("added_tokens", [token("[E1]", MASK_AT + 1)]),
    Change("added_tokens", [token("[E1]", MASK_AT + 1, normalized=True, single_word=True)]),
    Change("added_tokens", [token("[E1]", MASK_AT + 9)], "the id"),
    Change("added_tokens", [token("[CLS]", MASK_AT + 1)], r"<s> or \[CLS\]"),
    Change("post_processor", frame("<s> $A </s> $B </s>", "<s>", "</s>", XLM_IDS)),
    Change("post_processor", frame("<s> $A $B </s>", "<s>", "</s>", XLM_IDS), "post_processor"),
]  # fmt: skip


def unigram_file() -> dict[str, Any]:
    vocab = [*((name, 0.0) for name in XLM_IDS), *SCORED, ("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens([*XLM_IDS, "<mask>"])
    return json.loads(tokenizer.to_str())


# ---------------------------------------------------------------- drawn files


KINDS: dict[Any, tuple[Callable[[], dict[str, Any]], list[Change]]] = {
    WordPiece: (wordpiece_file, OF_WORDPIECE),
    ByteBPE: (byte_bpe_file, OF_BYTE_BPE),
    Unigram: (unigram_file, OF_UNIGRAM),
}


def drawn(kind: Any, seed: int) -> list[Change]:
    """Every change alone, and after these, two or three at once, each of another setting."""
    changes = KINDS[kind][1]
    if seed < len(changes):
        return [changes[seed]]
    draw = random.Random(seed)
    chosen = draw.sample(changes, 3)
    return [c for n, c in enumerate(chosen) if not any(related(c, other) for other in chosen[:n])]


def related(a: Change, b: Change) -> bool:
    return f"{a.key}.".startswith(f"{b.key}.") or f"{b.key}.".startswith(f"{a.key}.")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_drawn_files_read_as_the_library_reads_them_or_are_refused(kind: Any, tmp_path: Path):
    base = KINDS[kind][0]()
    path, read = tmp_path / "tokenizer.json", 0
    special = [[f"the {name}<mask> x"] * (kind is not WordPiece) for name in ("<s>", "<mask>")]
    for seed in range(len(KINDS[kind][1]) + 100):
        changes, content = drawn(kind, seed), base
        for change in changes:
            content = changed(content, change.key, change.value)
        path.write_text(json.dumps(content), encoding="utf-8")
        if refused := [change.refused for change in changes if change.refused]:
            with pytest.raises(ValueError, match="|".join(refused)):
                kind.from_file(path)
            continue
        ours, theirs = kind.from_file(path), Tokenizer.from_file(str(path))
        theirs.no_truncation()
        theirs.no_padding()
        parse = {} if kind is WordPiece else {"parse_special": True}
        assert len(ours) == theirs.get_vocab_size(), changes
        for text in [*TEXTS, *special[0], *special[1]]:
            expected = theirs.encode(text, add_special_tokens=False)
            assert ours.encode(text, **parse) == expected.ids, (changes, text)
            strip = any("lstrip" in json.dumps(c.value) for c in changes)
            if kind is WordPiece and not strip:
                assert ours.encode_with_offsets(text) == (expected.ids, expected.offsets), changes
        read += 1
    assert read > 9


# ---------------------------------------------------------------- the files beside


def beside(folder: Path, **files: Any) -> Path:
    """Write name.json for each of the files; the folder."""
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def vocab_txt(folder: Path, pieces: list[str], end: str = "\n") -> Path:
    (folder / "vocab.txt").write_bytes("".join(f"{p}{end}" for p in pieces).encode())
    return folder / "vocab.txt"


CASED = [*SPECIAL_TOKENS, "The", "DNA", "of", "Alzheimer", "##s", "für", "fur"]
UNCASED = [*SPECIAL_TOKENS, "the", "dna", "of", "##C", "##É", "[unused1]", "[E1]", "ℝ", "fur"]
MARKED = [*SPECIAL_TOKENS, "the", "für", "fur", "ubung", "übung"]


@pytest.mark.parametrize(
    ("pieces", "config", "expected"),
    [
        (CASED, None, (False, False)),
        (CASED, {"do_lower_case": True}, (True, True)),
        (CASED, {"model_max_length": 512}, (False, False)),
        (UNCASED, None, (True, True)),
        (UNCASED, {"do_lower_case": None, "strip_accents": None}, (True, True)),
        (UNCASED, {"do_lower_case": False}, (False, False)),
        (UNCASED, {"do_lower_case": True, "strip_accents": False}, (True, False)),
        (MARKED, None, (True, False)),
        (MARKED, {"strip_accents": True}, (True, True)),
        (MARKED, {"do_lower_case": True}, (True, True)),
        ([*UNCASED, *(f"w{n}" for n in range(2_000)), "Ä"], None, (True, True)),  # a stray
        ([*UNCASED, *"ACDEKLMPS"], None, (True, True)),  # of texts that speak of [MASK]
        ([*UNCASED, "B"], None, (False, False)),
    ],
)
def test_pieces_say_whether_capitals_and_accents_are_kept(
    tmp_path: Path, pieces: list[str], config: dict[str, Any] | None, expected: tuple[bool, bool]
):
    path = vocab_txt(tmp_path, pieces)
    if config is not None:
        beside(tmp_path, tokenizer_config=config)
    read = WordPiece.from_file(path)
    assert (read.lowercase, read.strip_accents) == expected
    for lowercase in (True, False):  # what the caller says comes first
        assert WordPiece.from_file(tmp_path, lowercase=lowercase).lowercase == lowercase
        other = WordPiece.from_file(path, lowercase=lowercase, strip_accents=not lowercase)
        assert (other.lowercase, other.strip_accents) == (lowercase, not lowercase)


def test_a_cased_vocabulary_alone(tmp_path: Path):
    """BioBERT's form: vocab.txt and no configuration."""
    read = WordPiece.from_file(vocab_txt(tmp_path, CASED))
    assert read.tokenize("The DNA of Alzheimer") == ["The", "DNA", "of", "Alzheimer"]


@pytest.mark.parametrize(
    "raw",
    ["{}\r\n", "\ufeff{}\n", "{}\n\n\n", "{}", "{}\r\n\r\n", "{} \n", "{}\n \n\t\n"],
    ids=repr,
)
def test_lines_of_a_vocabulary(tmp_path: Path, raw: str):
    """Windows' line ends, a byte order mark, blank lines behind: an id is its line's number."""
    end = "\r\n" if "\r" in raw else " \n" if "{} " in raw else "\n"
    path = tmp_path / "vocab.txt"
    path.write_bytes(raw.format(end.join(CASED)).encode())
    assert WordPiece.from_file(path).vocab == CASED
    path.write_text("\n".join([*CASED[:6], "", *CASED[6:]]), encoding="utf-8")
    assert WordPiece.from_file(path).ids["DNA"] == CASED.index("DNA") + 1
    path.write_text("\n".join([*CASED[:6], "", "", *CASED[6:]]), encoding="utf-8")
    with pytest.raises(ValueError, match="'' stands twice"):
        WordPiece.from_file(path)


MASK_AS = {"content": "[MASK]", "lstrip": False, "normalized": False, "single_word": False}
E1 = token("[E1]", 0, normalized=True)  # its id is its name in the file
ADDS: list[tuple[list[str], dict[str, Any]]] = [
    (["[E1]"], {"added_tokens": {"[E1]": len(CASED)}}),
    ([], {"special_tokens_map": {"additional_special_tokens": ["Alzheimer"]}}),
    ([], {"tokenizer_config": {"extra_special_tokens": {"name": "DNA"}}}),
    (["[E1]"], {"special_tokens_map": {"additional_special_tokens": ["[E1]"]}}),
    (["[E1]"], {"added_tokens": {"[E1]": len(CASED)},
                "special_tokens_map": {"additional_special_tokens": ["[E1]"]}}),
    (["[E1]"], {"tokenizer_config": {"added_tokens_decoder": {len(CASED): E1}}}),
    ([], {"tokenizer_config": {"added_tokens_decoder": {4: {**MASK_AS, "normalized": True}}}}),
    (["[E2]", "[E1]"], {"added_tokens": {"[E1]": len(CASED) + 1, "[E2]": len(CASED)}}),
]  # fmt: skip
SETTINGS = [
    {"do_lower_case": True},
    {"do_lower_case": True, "strip_accents": False},
    {"do_lower_case": False, "strip_accents": True},
    {"do_lower_case": True, "tokenize_chinese_chars": False},
]


@pytest.mark.parametrize("number", range(len(ADDS) * 2))
def test_vocab_txt_reads_as_berts_class_reads_it(tmp_path: Path, number: int):
    transformers = pytest.importorskip("transformers")
    more, files = ADDS[number % len(ADDS)]
    config = {"mask_token": "[MASK]", **SETTINGS[number % 3 + number // len(ADDS)]}
    path = vocab_txt(tmp_path, CASED)
    files = {**files, "tokenizer_config": {**files.get("tokenizer_config", {}), **config}}
    beside(tmp_path, config={"model_type": "bert"}, **files)
    ours = WordPiece.from_file(path)
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    assert ours.vocab == [*CASED, *more]
    texts = ["[E1] the [e1]DNA of Alzheimer [mask]s für[E2]", "[MASK] x[MASK]y Für 東of", *TEXTS]
    for text in texts:
        assert ours.encode(text) == theirs(text, add_special_tokens=False)["input_ids"], text


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"tokenizer_config": {"do_lower_case": False}}, "do_lower_case = False"),
    ({"tokenizer_config": {"do_lower_case": "true"}}, "do_lower_case = 'true'"),
    ({"tokenizer_config": {"strip_accents": False}}, "strip_accents = False"),
    ({"tokenizer_config": {"tokenize_chinese_chars": False}}, "tokenize_chinese_chars = False"),
    ({"tokenizer_config": {"clean_text": False}}, "clean_text = False"),
    ({"tokenizer_config": {"do_basic_tokenize": False}}, "do_basic_tokenize = False"),
    ({"tokenizer_config": {"never_split": ["DNA"]}}, "never_split"),
    ({"tokenizer_config": {"split_special_tokens": True}}, "split_special_tokens = True"),
    ({"tokenizer_config": {"max_input_chars_per_word": 5}}, "max_input_chars_per_word = 5"),
    ({"tokenizer_config": {"wordpieces_prefix": "@@"}}, "wordpieces_prefix"),
    ({"tokenizer_config": {"word_tokenizer_type": "mecab"}}, "word_tokenizer_type = 'mecab'"),
    ({"tokenizer_config": {"mask_token": "<mask>"}}, "mask_token = '<mask>'"),
    ({"tokenizer_config": {"mask_token": {**MASK_AS, "content": "thing"}}}, "mask_token = 'thing'"),
    ({"special_tokens_map": {"unk_token": "<unk>"}}, "unk_token = '<unk>'"),
    ({"tokenizer_config": {"tokenizer_class": "BertJapaneseTokenizer"}}, "BertJapaneseTokenizer"),
    ({"config": {"tokenizer_class": "XLMRobertaTokenizer"}}, "XLMRobertaTokenizer"),
    ({"added_tokens": {"[E1]": SIZE}}, r"token '\[E1\]' with the id"),
    ({"added_tokens": {"[MASK]": 9}}, r"token '\[MASK\]' with the id 9"),
    ({"tokenizer_config": {"added_tokens_decoder": {"5": E1}}}, r"token '\[E1\]' with the id 5"),
    ({"tokenizer_config": []}, "holds a list"),
    ({"added_tokens": {"[E1]": None}}, "not as transformers writes them"),
    ({"tokenizer_config": {"added_tokens_decoder": {"x": E1}}}, "not as transformers writes them"),
    ({"tokenizer_config": {"added_tokens_decoder": ["[E1]"]}}, "not as transformers writes them"),
]  # fmt: skip
AGREEMENTS: list[dict[str, Any]] = [
    {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True},
    {"strip_accents": True, "clean_text": True, "never_split": None, "do_basic_tokenize": True},
    {"tokenizer_class": "BertTokenizerFast", "mask_token": MASK_AS, "unk_token": "[UNK]"},
    {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": None},
    {"added_tokens_decoder": {"4": MASK_AS}, "additional_special_tokens": []},
    {"split_special_tokens": False},
]


@pytest.mark.parametrize(
    ("files", "says"), CONTRADICTIONS, ids=[says for _, says in CONTRADICTIONS]
)
def test_files_that_contradict_a_tokenizer_json(tmp_path: Path, files: Any, says: str):
    beside(tmp_path, tokenizer=wordpiece_file(), **files)
    with pytest.raises(ValueError, match=says) as error:
        WordPiece.from_file(tmp_path)
    assert str(tmp_path) in str(error.value)
    if "lower" in says and "'" not in says:
        assert WordPiece.from_file(tmp_path, lowercase=False).tokenize("Thing") == ["Thing"]


@pytest.mark.parametrize("config", AGREEMENTS, ids=str)
def test_files_that_agree_with_a_tokenizer_json(tmp_path: Path, config: dict[str, Any]):
    beside(tmp_path, tokenizer=wordpiece_file(), tokenizer_config=config)
    assert WordPiece.from_file(tmp_path).tokenize("Thing [MASK]") == ["thing", "[MASK]"]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"add_prefix_space": True}, "add_prefix_space = True"),
        ({"split_special_tokens": True}, "split_special_tokens = True"),
        ({"tokenizer_class": "PhobertTokenizer"}, "PhobertTokenizer"),
        ({"cls_token": "[CLS]"}, r"cls_token = '\[CLS\]'"),
        ({"added_tokens_decoder": {"320": E1}}, r"token '\[E1\]'"),
        ({"additional_special_tokens": ["[E1]"]}, r"token '\[E1\]'"),
        ({"add_prefix_space": False, "tokenizer_class": "RobertaTokenizer"}, ""),
        ({"added_tokens_decoder": {LAST: {**MASK_AS, "content": "<mask>"}}}, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("whole", [True, False], ids=["tokenizer.json", "vocab.json"])
def test_files_beside_a_byte_level_bpe(tmp_path: Path, config: Any, says: str, whole: bool):
    if whole:
        beside(tmp_path, tokenizer=byte_bpe_file())
    else:
        BPE.save(tmp_path)
    beside(tmp_path, tokenizer_config=config)
    if says:
        with pytest.raises(ValueError, match=says):
            ByteBPE.from_file(tmp_path)
        return
    read = ByteBPE.from_file(tmp_path)
    strips = not whole and "added_tokens_decoder" not in config  # what RoBERTa's does
    ids = read.encode("a <mask>", parse_special=True)
    assert ids == [*BPE.encode("a" if strips else "a "), LAST]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"special_tokens_map": {"cls_token": "[CLS]"}}, r"none or several of \[CLS\]"),
        ({"tokenizer_config": {"cls_token": "</s>"}, "special_tokens_map": {"cls_token": "<s>"}},
         "special_tokens_map.json sets cls_token = '<s>'"),
        ({"tokenizer_config": {"unk_token": "<pad>"}}, "unk_id = 3; expected the id of <pad>, 1"),
        ({"added_tokens": {"[E1]": 7}}, r"token '\[E1\]' with the id 7"),
        ({"tokenizer_config": {"split_special_tokens": True}}, "split_special_tokens = True"),
        ({"tokenizer_config": {"cls_token": "<s>", "mask_token": {"content": "<mask>"}}}, ""),
    ],
)  # fmt: skip
def test_files_beside_a_unigram_model(tmp_path: Path, files: dict[str, Any], says: str):
    beside(tmp_path, tokenizer=unigram_file(), **files)
    if says:
        with pytest.raises(ValueError, match=says):
            Unigram.from_file(tmp_path)
    else:
        assert Unigram.from_file(tmp_path).special.mask == MASK_AT


def test_special_tokens_in_a_text_are_plain_characters_to_a_unigram_model(tmp_path: Path):
    """As in SentencePiece itself, where no text makes a control symbol."""
    text = "the <s> </s><pad> <mask> <unk>"
    read = Unigram.from_file(beside(tmp_path, tokenizer=unigram_file()))
    plain, parsed = read.encode(text), read.encode(text, parse_special=True)
    assert read.pieces("<s>") == ["▁", "<unk>", "s", "<unk>"]  # no angle brackets in its vocabulary
    assert not {0, 1, 2, MASK_AT} & set(plain) and {0, 1, 2, MASK_AT} <= set(parsed)
    assert read.encode_with_offsets(text)[0] == plain


# ---------------------------------------------------------------- checkpoints


def checkpoint(folder: Path, tokenizer: WordPiece, model: Any = bert_for_pretraining) -> Path:
    config = {"num_layers": 1, "hidden_size": 8, "num_heads": 2, "intermediate_size": 8,
              "pad_token_id": 0}  # fmt: skip
    save_folder(model("base", vocab_size=len(tokenizer), **config), folder, tokenizer)
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lowercase": False},
        {"strip_accents": False},
        {"lowercase": False, "strip_accents": True, "max_chars": 4},
        {"clean_text": False, "handle_chinese_chars": False},
        {"added_tokens": {**dict.fromkeys(SPECIAL_TOKENS, False), "[E1]": True, "thing": False}},
        {"added_tokens": {}},
    ],
    ids=str,
)
def test_all_settings_are_saved_and_read(tmp_path: Path, settings: dict[str, Any]):
    ours = WordPiece(list(BERT_IDS), **settings)
    folder = checkpoint(tmp_path / "m", ours)
    read, theirs = load_pretrained(folder), Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert read.tokenizer_error is None and read.tokenizer.vocab == ours.vocab
    assert vars(read.tokenizer)["normalisation"] == ours.normalisation
    assert read.tokenizer.added_tokens == ours.added_tokens
    for text in TEXTS:
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == read.tokenizer.encode(text) == ids
    (folder / "tokenizer.json").unlink()
    alone = WordPiece.from_file(folder)
    assert alone.normalisation == ours.normalisation


def with_prefix_space() -> dict[str, Any]:
    return changed(byte_bpe_file(), "pre_tokenizer.add_prefix_space", True)


PHOBERT = "<s> 0\nxin_chào 431\n"  # a line of its vocab.txt is a piece and a count
OTHERS: list[tuple[Any, Any, str]] = [
    (bert_for_pretraining, byte_bpe_file, "describes a BPE tokenizer; expected WordPiece"),
    (bert_for_pretraining, unigram_file, "describes a Unigram tokenizer; expected WordPiece"),
    (bert_for_pretraining, lambda: {"model": {"type": "Unigram"}}, r"is no tokenizer\.json"),
    (bert_for_pretraining, PHOBERT, r"vocab\.txt is not a WordPiece vocabulary"),
    (roberta_for_masked_lm, wordpiece_file, "describes a WordPiece tokenizer; expected BPE"),
    (roberta_for_masked_lm, unigram_file, "describes a Unigram tokenizer; expected BPE"),
    (roberta_for_masked_lm, with_prefix_space, "add_prefix_space = True"),
    (roberta_for_masked_lm, PHOBERT, r"vocab\.txt is not a WordPiece vocabulary"),
    (modernbert_for_masked_lm, byte_bpe_file, "no tokenizer of this kind"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "file", "says"), OTHERS, ids=[says for *_, says in OTHERS])
def test_another_tokenizer_leaves_the_weights(tmp_path: Path, model: Any, file: Any, says: str):
    folder = checkpoint(tmp_path / "m", WordPiece(list(BERT_IDS)), model)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    bare = load_pretrained(folder)
    assert bare.tokenizer is None and "there is no vocabulary in" in bare.tokenizer_error
    if isinstance(file, str):
        (folder / "vocab.txt").write_text(file, encoding="utf-8")
    else:
        beside(folder, tokenizer=file())
    with pytest.warns(UserWarning, match=says) as warned:
        found = load_pretrained(folder)
    assert found.tokenizer is None and found.tokenizer_error in str(warned[0].message)
    assert len(warned) == 1 and warned[0].filename == __file__
    assert found.sha256 == bare.sha256 and found.model is not None
