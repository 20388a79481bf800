"""SentencePiece vocabularies: read as transformers writes them, and with their face here."""

from __future__ import annotations

import json

import pytest

from course_lib import load_pretrained, xlm_roberta_for_masked_lm
from course_lib.checkpoints import save_folder
from course_lib.text.features import plain_sequences
from course_lib.text.unigram import Unigram

transformers = pytest.importorskip("transformers")
TEXTS = [
    "The old mill stands still.", "  two  spaces , and a comma", "Ünïcode ﬁ １２ 中文 words",
    "", "unknown ζ signs \u200b here", "mill\tmill\nmill",
]  # fmt: skip
PIECES = ["▁the", "▁mill", "▁", "mill", "▁st", "ands", "▁old", "s", "t", "i", "l", "▁a", ",", ".",
          "The", "o", "d", "w", "e", "r", "n", "a", "中", "文", "c", "m", "h", "f"]  # fmt: skip


@pytest.fixture(params=["xlm-roberta", "albert"])
def theirs(request):
    """A small tokenizer of transformers, with a vocabulary of the test's own."""
    scored = [(piece, -2.0 - 0.1 * n) for n, piece in enumerate(PIECES)]
    if request.param == "xlm-roberta":
        special = ["<s>", "<pad>", "</s>", "<unk>"]
        vocab = [*((token, 0.0) for token in special), *scored, ("<mask>", 0.0)]
        return transformers.XLMRobertaTokenizer(vocab=vocab)
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    return transformers.AlbertTokenizer(vocab=[*((t, 0.0) for t in special), *scored])


@pytest.fixture
def ours(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    return Unigram.from_file(tmp_path)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_and_offsets_are_those_of_transformers(theirs, ours, text):
    found, offsets = ours.encode_with_offsets(text)
    assert ours.encode(text) == found == theirs(text, add_special_tokens=False)["input_ids"]
    assert len(offsets) == len(found)
    for start, end in offsets:
        assert 0 <= start <= end <= len(text)
        assert start == end or not text[start].isspace()


def test_special_ids_are_those_of_transformers(theirs, ours):
    special = ours.special
    assert (special.pad, special.unk, special.cls, special.sep, special.mask) == (
        theirs.pad_token_id, theirs.unk_token_id, theirs.cls_token_id, theirs.sep_token_id,
        theirs.mask_token_id,
    )  # fmt: skip
    assert special.vocab_size == len(ours) == len(theirs)
    assert ours.token(special.mask) == theirs.mask_token
    assert ours.decode(ours.encode("the mill")) == "the mill"
    assert ours.pieces("the mill")[-1] == "▁mill" and "Unigram(" in repr(ours)


@pytest.mark.parametrize("length", [8, 9, 24])
def test_pairs_are_those_of_transformers(theirs, ours, length):
    """XLM-R has two separators between the texts of a pair, ALBERT one; cut or whole."""
    first, second = "the old mill stands still", "the mill"
    row = theirs(first, second, truncation="longest_first", max_length=length, padding="max_length")
    sequences, _ = plain_sequences([first], ours, length, [second])
    assert sequences.attention_mask[0].tolist() == row["attention_mask"]
    if length > 9:  # which text loses a token first is another convention
        assert sequences.input_ids[0].tolist() == row["input_ids"]
    twice = "XLM" in type(theirs).__name__
    assert (sequences.input_ids == ours.special.sep).sum() == (3 if twice else 2)


def test_a_released_folder_comes_with_its_vocabulary(theirs, ours, tmp_path):
    if "XLM" not in type(theirs).__name__:
        pytest.skip("one family is enough")
    model = xlm_roberta_for_masked_lm(
        vocab_size=len(ours), num_layers=1, hidden_size=8, num_heads=2, intermediate_size=16,
        pad_token_id=ours.special.pad,
    )  # fmt: skip
    folder = tmp_path / "model"
    save_folder(model, folder, None)
    theirs.save_pretrained(folder)
    found = load_pretrained(folder)
    assert isinstance(found.tokenizer, Unigram)
    assert found.tokenizer.encode(TEXTS[0]) == ours.encode(TEXTS[0])


CLASSES = {"Albert": ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
           "XLMRoberta": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
           "DebertaV2": ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]}  # fmt: skip
MASKED = "the[MASK]mill<mask>mill"
TYPES = {"Albert": "albert", "XLMRoberta": "xlm-roberta", "DebertaV2": "deberta-v2"}
READ_BY = {"do_lower_case": "Albert DebertaV2", "keep_accents": "Albert",
           "split_by_punct": "DebertaV2", "add_prefix_space": " ".join(CLASSES)}  # fmt: skip
SETTINGS = [(name, value) for name in READ_BY for value in (True, False)]
PUBLISHED = [
    {"model_max_length": 512, "do_lower_case": None},
    {"do_lower_case": False, "vocab_type": "spm", "split_by_punct": False, "sp_model_kwargs": {}},
    {"do_lower_case": True, "keep_accents": False, "remove_space": True},
    {"do_lower_case": True, "add_prefix_space": False, "tokenizer_class": "TokenizersBackend"},
]


def saved(name, folder, **settings):
    """A folder as a class of transformers writes it; its tokenizer_config.json."""
    pieces = [*PIECES, "T", "M", "U", "u", "K"]
    scored = [(piece, -2.0 - 0.1 * n) for n, piece in enumerate(pieces)]
    vocab = [*((token, 0.0) for token in CLASSES[name]), *scored]
    getattr(transformers, f"{name}Tokenizer")(vocab=vocab, **settings).save_pretrained(folder)
    return folder / "tokenizer_config.json"


def ids_of_transformers(folder):
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    return [theirs(text, add_special_tokens=False)["input_ids"] for text in (*TEXTS, MASKED)]


def ids_of_ours(folder):
    ours = Unigram.from_file(folder)
    return [ours.encode(text, parse_special=True) for text in (*TEXTS, MASKED)]


@pytest.mark.parametrize(("setting", "value"), SETTINGS)
@pytest.mark.parametrize("name", CLASSES)
def test_a_setting_beside_is_that_of_the_file_or_refused(name, setting, value, tmp_path):
    """As AutoTokenizer judges: which class reads the setting, and whether it changes the file."""
    path = saved(name, tmp_path / "theirs", **{setting: value})
    assert ids_of_ours(path.parent) == ids_of_transformers(path.parent)
    path = saved(name, tmp_path / "changed")
    config = json.loads(path.read_text(encoding="utf-8"))
    before = ids_of_transformers(path.parent)
    path.write_text(json.dumps(config | {setting: value}), encoding="utf-8")
    after = ids_of_transformers(path.parent)
    if name in READ_BY[setting] and config[setting] != value:
        assert after != before
        with pytest.raises(ValueError, match=f"tokenizer_config.json sets {setting} = {value}"):
            Unigram.from_file(path.parent)
    else:
        assert ids_of_ours(path.parent) == after == before


@pytest.mark.parametrize("config", PUBLISHED, ids=str)
def test_what_released_folders_say_is_read(config, tmp_path):
    """Their configurations beside a tokenizer.json: of XLM-R, DeBERTa-v3, ALBERT, and a generic."""
    name = ["XLMRoberta", "DebertaV2", "Albert", "Albert"][PUBLISHED.index(config)]
    path = saved(name, tmp_path)
    expected = ids_of_transformers(tmp_path)
    path.write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": TYPES[name]}))
    assert ids_of_ours(tmp_path) == ids_of_transformers(tmp_path) == expected


PIECE_NAMES = {"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]"}


def test_what_the_advice_makes_of_debertas_model(tmp_path):
    """The ids of SentencePiece itself, whose character map AutoTokenizer alone would lose."""
    sentencepiece = pytest.importorskip("sentencepiece")
    pytest.importorskip("google.protobuf")
    text = tmp_path / "text"
    text.write_text("1/2 fine figure of office work: A B C [SEP]\nhalf of 12 files\n" * 50)
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(tmp_path / "spm"), vocab_size=60, minloglevel=2,
        hard_vocab_limit=False, normalization_rule_name="nmt_nfkc",
        **{f"{name}_id": id for id, name in enumerate(PIECE_NAMES)},
        **{f"{name}_piece": piece for name, piece in PIECE_NAMES.items()},
    )  # fmt: skip
    (tmp_path / "config.json").write_text('{"model_type": "deberta-v2"}')
    with pytest.raises(FileNotFoundError, match=r"sentencepiece \.model alone") as error:
        Unigram.from_file(tmp_path)
    advice = str(error.value).partition("keeps it: ")[2].removesuffix(".")
    slow = transformers.AutoTokenizer.from_pretrained(tmp_path)
    exec(advice, {"slow": slow, "transformers": transformers, "folder": str(tmp_path)})
    ours = Unigram.from_file(tmp_path)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    for line in ("ﬁne ½ oﬃce ＡＢ", "half  of [SEP] [CLS] files ", *TEXTS):
        assert ours.encode(line) == theirs.encode(line), line


def test_what_is_no_such_file_is_refused(theirs, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{")
    with pytest.raises(ValueError, match="is no JSON: expected an object"):
        Unigram.from_file(path)
    theirs.save_pretrained(tmp_path)
    whole = json.loads(path.read_text(encoding="utf-8"))
    whole["added_tokens"] = []
    whole["model"]["vocab"] = [["▁a", -1.0], ["b", -2.0]]
    whole["model"]["unk_id"] = 0
    whole["post_processor"] = None
    path.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(ValueError, match="expected the five special tokens"):
        Unigram.from_file(path)
    whole["model"] = {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"}
    path.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(ValueError, match="describes a WordLevel tokenizer; expected Unigram"):
        Unigram.from_file(path)
