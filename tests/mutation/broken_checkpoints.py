"""Doors of checkpoints, of our own files, of tokenizers, and of what takes texts.

Not drawn are changes that make another valid input: a flipped bit in a published checkpoint's
weights, which no hash guards, another activation, a word in a vocabulary exchanged for another."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from breaking import (
    Door,
    Draw,
    add_foreign,
    break_file,
    break_header,
    break_json,
    break_tensor,
    break_text,
    break_value,
    packed,
    split,
)
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from course_lib.checkpoints import (
    FAMILIES,
    CheckpointError,
    MissingCheckpoint,
    load,
    load_pretrained,
    save,
    their_name,
)
from course_lib.checkpoints.convert import _their_config, encoder_of, joined
from course_lib.checkpoints.elmo import load_elmo, save_elmo
from course_lib.checkpoints.families import family_of
from course_lib.checkpoints.saved import _vocabulary_files
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.family.albert import albert_for_pretraining
from course_lib.family.bert import bert_for_pretraining
from course_lib.family.deberta import deberta_v3
from course_lib.family.distilbert import distilbert_for_masked_lm
from course_lib.family.electra import electra_discriminator
from course_lib.family.elmo import ElmoConfig, ElmoForBiLM
from course_lib.family.modernbert import modernbert_for_masked_lm
from course_lib.family.roberta import roberta_for_masked_lm
from course_lib.family.vit import VitConfig, vit_encoder
from course_lib.heads import BertForClassification, BertForMaskedLM
from course_lib.text.byte_bpe import ByteBPE, train_byte_bpe
from course_lib.text.characters import WordVocabulary, spell, spell_sentences, words_of
from course_lib.text.features import (
    plain_sequences,
    question_sequences,
    tagged_sequences,
    text_sequences,
)
from course_lib.text.static_vectors import frequent_words
from course_lib.text.unigram import Unigram
from course_lib.text.wordpiece import WordPiece, normalise, split_words, train_wordpiece
from course_lib.train.new_vocabulary import extended, fertility

# ---------------------------------------------------------------- checkpoints, folder by folder

TINY: dict[str, Any] = {
    "hidden_size": 10, "num_heads": 5, "num_layers": 2, "intermediate_size": 6, "max_positions": 9,
}  # fmt: skip
WORDS = [*"abcdefghijklmnopqrstuvwxyz", "the", "cat", "sat", "##s", "##at", "on", "mat"]
TEXTS = ["the cats sat on a mat", "The CAT, at: é!", "", "[MASK] <mask> x"]
PIECES = WordPiece.from_words(WORDS)
BYTES = train_byte_bpe(["the cat sat on the mat"] * 3, 270)


def sentencepieces(cls: str, sep: str, order: list[str]) -> Unigram:
    """A Unigram model of few pieces."""
    pieces = [*order, "▁the", "▁cat", "s", "at", "▁", *"abcdefghijklmnopqr"]
    unk = next(i for i, piece in enumerate(pieces) if "unk" in piece.lower())
    fast = Tokenizer(models.Unigram([(p, -float(len(p) < 2)) for p in pieces], unk_id=unk))
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    fast.add_special_tokens(order)
    fast.post_processor = processors.BertProcessing(
        (sep, pieces.index(sep)), (cls, pieces.index(cls))
    )
    return Unigram(fast)


LATIN = sentencepieces("[CLS]", "[SEP]", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])


def classifier(**sizes: Any) -> BertForClassification:
    config = BertConfig(**sizes)
    return BertForClassification(Encoder(config, pooler=Pooler(config)), 2)


MEMBERS: dict[str, tuple[Callable[..., Any], Any]] = {  # how it is made, its tokenizer
    "bert": (partial(bert_for_pretraining, "base"), PIECES),
    "bert classes": (classifier, PIECES),
    "roberta": (partial(roberta_for_masked_lm, "base"), BYTES),
    "albert": (partial(albert_for_pretraining, "base", embedding_size=5), LATIN),
    "distilbert": (partial(distilbert_for_masked_lm, "base"), PIECES),
    "electra": (partial(electra_discriminator, "small", embedding_size=5), PIECES),
    "deberta-v3": (
        lambda **sizes: BertForMaskedLM(deberta_v3("base", **sizes, span=4, furthest=9)),
        LATIN,
    ),
    "modernbert": (partial(modernbert_for_masked_lm, "base"), PIECES),
    "vit": (
        lambda **sizes: vit_encoder(VitConfig(**sizes, image_size=8, patch_size=4), True),
        None,
    ),
}


def write_member(name: str, alone: bool, folder: Path) -> Path:
    """A folder as transformers writes it. alone: with a vocabulary in lines, no tokenizer.json."""
    make, tokenizer = MEMBERS[name]
    sizes = dict(TINY)
    torch.manual_seed(0)
    if tokenizer is None:
        del sizes["max_positions"]
    else:
        sizes |= {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.special.pad}
    model = make(**sizes)
    config = encoder_of(model).config
    family = family_of(config)
    settings = {"model_type": family.model_type, **_their_config(config, family)}
    if name == "bert classes":
        settings["architectures"] = ["BertForSequenceClassification"]
        settings["id2label"] = dict(enumerate(model.names))
    files = {"config.json": json.dumps(settings, indent=1)}
    if tokenizer is not None:
        files |= _vocabulary_files(tokenizer, model, family)
    if alone:
        del files["tokenizer.json"]
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    if alone and isinstance(tokenizer, ByteBPE):
        tokenizer.save(folder)
    state = joined({their_name(n, family): v for n, v in model.state_dict().items()}, family.joined)
    state = {name: value.clone() for name, value in state.items()}
    safetensors.torch.save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def mutate_folder(folder: Path, draw: Draw) -> tuple[Path, str]:
    files = sorted(file.name for file in folder.iterdir())
    texts = [name for name in files if not name.endswith(".safetensors")]
    how = draw.choice(["setting", "setting", "tensor", "tensor", "header", "text", "file", "beside",
                       "vocabulary", "vocabulary"])  # fmt: skip
    weights = folder / "model.safetensors"
    if how == "setting":
        return folder, break_json(folder / "config.json", draw)
    if how == "tensor":
        return folder, break_tensor(weights, draw)
    if how == "header":
        data, what = break_header(weights.read_bytes(), draw)
        weights.write_bytes(data)
        return folder, what
    if how == "file":
        name = draw.choice(files)
        return folder, f"{name}: {break_file(folder / name, draw)}"
    if how == "beside":
        return folder, add_foreign(folder, draw)
    vocabulary = [name for name in texts if name != "config.json"]
    name = draw.choice(vocabulary if how == "vocabulary" and vocabulary else texts)
    if how == "text":
        data, what = break_text((folder / name).read_bytes(), draw)
        (folder / name).write_bytes(data)
        return folder, f"{name}: {what}"
    return folder, break_vocabulary(folder / name, draw, of_model=True)


def break_vocabulary(path: Path, draw: Draw, of_model: bool = False) -> str:
    """Lines of a vocabulary gone, there twice, blank or too many; or a value of JSON.

    of_model: a model beside it says how many lines there must be."""
    if path.suffix == ".json":
        return break_json(path, draw)
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    place = draw.randrange(len(lines))
    hows = ["twice", "blank", "two blank", "blank end", "spaces"]
    how = draw.choice([*hows, "gone", "half gone", "more"] if of_model else hows)
    if how in ("gone", "half gone"):
        del lines[place : None if how == "half gone" else place + 1]
    elif how == "blank end":
        lines += ["", ""]
    elif how == "more":
        lines += ["one more", "another"] if path.name == "vocab.txt" else ["q z"]
    elif how == "spaces":
        lines[place] += "  "
    else:
        new = {"twice": [lines[draw.randrange(len(lines))]], "blank": [""], "two blank": [""] * 2}
        lines[place:place] = new[how]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return f"{path.name}: line {place} {how}"


@torch.no_grad()
def outputs(encoder: Any) -> torch.Tensor:
    """What an encoder makes of a fixed input."""
    if hasattr(encoder.config, "image_size"):
        pixels = torch.arange(192.0).view(1, 3, 8, 8) / 192
        return encoder(pixels).last_hidden_state
    ids = torch.tensor([[2, 5, 6, 7, 3, encoder.config.pad_token_id]])
    mask = torch.tensor([[1, 1, 1, 1, 1, 0]])
    return encoder(ids, mask).last_hidden_state[:, :5]


def same_model(one: Any, other: Any) -> bool:
    """The same class, weights to three digits, outputs, and names of classes."""
    a, b = one.state_dict(), other.state_dict()
    same = type(one) is type(other) and a.keys() == b.keys()
    same = same and all(torch.allclose(a[n].float(), b[n].float(), atol=0.05) for n in a)
    same = same and getattr(one, "names", None) == getattr(other, "names", None)
    return same and torch.allclose(
        outputs(encoder_of(one)), outputs(encoder_of(other)).float(), atol=0.1
    )


def same_tokenizer(one: Any, other: Any, path: Path) -> bool:
    """The same ids of texts; or those that the library gives, where a file means something else."""
    if one is None or other is None:
        return one is other
    ids = [other.encode(text) for text in TEXTS]
    if ids == [one.encode(text) for text in TEXTS] and one.special == other.special:
        return True
    whole = path / "tokenizer.json" if path.is_dir() else path
    if not whole.is_file() or whole.name != "tokenizer.json" or isinstance(other, ByteBPE):
        return False
    # A tokenizer.json means what the library makes of it, such as another way to normalise.
    library = Tokenizer.from_file(str(whole))
    special = {"parse_special": True} if isinstance(other, Unigram) else {}
    parsed = [other.encode(text, **special) for text in TEXTS]
    return parsed == [library.encode(text, add_special_tokens=False).ids for text in TEXTS]


def same_folder(one: Any, other: Any, path: Path) -> bool:
    return same_model(one.model or one.encoder, other.model or other.encoder) and same_tokenizer(
        one.tokenizer, other.tokenizer, path
    )


def folder_door(name: str, alone: bool = False) -> Door:
    return Door(
        f"load_pretrained, {name}{', lines' * alone}",
        partial(write_member, name, alone),
        mutate_folder,
        load_pretrained,
        (CheckpointError, MissingCheckpoint),
        same_folder,
        lambda result: result.tokenizer_error or "",
    )


# ---------------------------------------------------------------- files of our own


def write_own_file(folder: Path) -> Path:
    torch.manual_seed(0)
    save(classifier(vocab_size=12, **TINY), folder / "own.safetensors")
    return folder / "own.safetensors"


def write_elmo(folder: Path) -> Path:
    torch.manual_seed(0)
    words = WordVocabulary(["the", "cat", "sat"])
    config = ElmoConfig(
        character_size=2, filters=((1, 3), (2, 3)), num_highways=1, projection_size=4, cell_size=4,
        num_layers=1, vocab_size=len(words),
    )  # fmt: skip
    save_elmo(ElmoForBiLM(config), words, folder / "elmo.safetensors")
    return folder / "elmo.safetensors"


def mutate_own(path: Path, draw: Draw) -> tuple[Path, str]:
    data = path.read_bytes()
    how = draw.choice(["bit", "header", "about", "about", "tensor", "file"])
    if how == "tensor":
        return path, break_tensor(path, draw)
    if how == "file":
        return path, break_file(path, draw)
    if how == "bit":
        place = draw.randrange(len(data))
        data = data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]
        what = f"a bit of byte {place}"
    elif how == "header":
        data, what = break_header(data, draw)
    else:
        header, numbers = split(data)
        about = json.loads(header["__metadata__"]["course_lib"])
        text, what = break_value(about, draw)
        if draw.random() < 0.5 and "names" not in what and "words" not in what:
            # As an older version wrote it, whose names, too, might be any.
            text = text.replace(f', "about_sha256": "{about.get("about_sha256")}"', "")
        header["__metadata__"]["course_lib"] = text
        data = packed(json.dumps(header), numbers)
    path.write_bytes(data)
    return path, what


def same_elmo(one: Any, other: Any, path: Path) -> bool:
    a, b = one[0].state_dict(), other[0].state_dict()
    same = a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
    return (
        same and one[1].vocab == other[1].vocab and asdict(one[0].config) == asdict(other[0].config)
    )


# ---------------------------------------------------------------- tokenizers alone


def write_tokenizer(tokenizer: Any, file: str, folder: Path) -> Path:
    if file == "tokenizer.json":
        model = bert_for_pretraining("base", **TINY, vocab_size=len(tokenizer),
                                     pad_token_id=tokenizer.special.pad)  # fmt: skip
        for name, text in _vocabulary_files(tokenizer, model, FAMILIES["bert"]).items():
            (folder / name).write_text(text, encoding="utf-8")
    else:
        tokenizer.save(folder / file if file == "vocab.txt" else folder)
    return folder / file


def mutate_tokenizer(path: Path, draw: Draw) -> tuple[Path, str]:
    files = sorted(file.name for file in path.parent.iterdir())
    name = draw.choice([path.name, path.name, *files])
    how = draw.choice(["values", "values", "text", "file"])
    if how == "file":
        return path, f"{name}: {break_file(path.with_name(name), draw)}"
    if how == "text":
        data, what = break_text(path.with_name(name).read_bytes(), draw)
        # A vocab.txt cut short at the end of a line is one with fewer lines.
        if what == "cut short" and name == "vocab.txt":
            data = data[:5]
        path.with_name(name).write_bytes(data)
        return path, f"{name}: {what}"
    return path, break_vocabulary(path.with_name(name), draw, of_model=name == "merges.txt")


def tokenizer_door(tokenizer: Any, file: str) -> Door:
    kind = type(tokenizer)
    return Door(
        f"{kind.__name__}.from_file, {file}",
        partial(write_tokenizer, tokenizer, file),
        mutate_tokenizer,
        kind.from_file,
        (ValueError, FileNotFoundError),
        same_tokenizer,
        named=lambda text, path: str(path.parent) in text,
    )


# ---------------------------------------------------------------- texts

NO_TEXT = [None, 5, 0.5, True, b"cat", [], ["cat"], {}, {"cat": 1}, object(), ("a", 1), "\ud800"]
NO_TEXTS = ["cat", b"cat", None, 5, [None], ["cat", 5], [b"cat"], [["cat"]], {"cat": 1}, object()]
NO_SENTENCES = ["cat", None, 5, ["cat"], [None], [[5]], [["cat"], "sat"], [[b"cat"]]]
NO_IDS = ["cat", None, 5, [None], ["1"], [0.5], [-1], [999]]
CALLS: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    **{
        f"{type(t).__name__}.{method}": (getattr(t, method), NO_TEXT)
        for t in (PIECES, BYTES, LATIN)
        for method in ("encode", "encode_with_offsets", "pieces")
    },
    "WordPiece.tokenize": (PIECES.tokenize, NO_TEXT),
    "WordPiece.words": (lambda text: list(PIECES.words(text)), NO_TEXT),
    "WordPiece.cut_word": (PIECES.cut_word, NO_TEXT),
    "WordPiece.id": (PIECES.id, NO_TEXT),
    "ByteBPE.id": (BYTES.id, NO_TEXT),
    "ByteBPE.word_steps": (BYTES.word_steps, NO_TEXT),
    "WordPiece": (WordPiece, NO_TEXTS),
    "WordPiece.from_words": (WordPiece.from_words, NO_TEXTS),
    **{
        f"{type(t).__name__}.decode": (t.decode, NO_IDS)
        for t in (PIECES, BYTES, LATIN)
    },
    "normalise": (normalise, NO_TEXT),
    "split_words": (split_words, NO_TEXT),
    "words_of": (words_of, NO_TEXT),
    "spell": (spell, NO_TEXT),
    "spell_sentences": (spell_sentences, NO_SENTENCES),
    "WordVocabulary": (WordVocabulary, NO_TEXTS),
    "WordVocabulary.of": (WordVocabulary.of, NO_SENTENCES),
    "WordVocabulary.encode": (WordVocabulary(["cat"]).encode, NO_TEXTS),
    "train_wordpiece": (lambda texts: train_wordpiece(texts, 40), NO_TEXTS),
    "train_byte_bpe": (lambda texts: train_byte_bpe(texts, 270), NO_TEXTS),
    "plain_sequences": (lambda texts: plain_sequences(texts, PIECES, 9), NO_TEXTS),
    "plain_sequences, second": (
        lambda texts: plain_sequences(["cat"], PIECES, 9, texts), [*NO_TEXTS[:2], *NO_TEXTS[3:]]
    ),
    "text_sequences": (lambda texts: text_sequences(texts, ["a"], "ab", PIECES, 9), NO_TEXTS),
    "text_sequences, labels": (
        lambda labels: text_sequences(["cat", "sat"], labels, ["a", "b"], PIECES, 9), NO_TEXTS
    ),
    "text_sequences, names": (
        lambda names: text_sequences(["cat", "sat"], ["a", "b"], names, PIECES, 9),
        [value for value in NO_TEXTS if value is not None],  # None: taken from the labels
    ),
    "frequent_words": (lambda texts: frequent_words(texts, 1), NO_SENTENCES),
    "fertility": (lambda texts: fertility(PIECES, texts), NO_TEXTS),
    "extended": (lambda texts: extended(PIECES, texts, 1), NO_TEXTS),
    "tagged_sequences": (lambda texts: tagged_sequences(texts, None, PIECES, 9), NO_TEXTS),
    "question_sequences": (lambda texts: question_sequences(texts, PIECES, 9, 2), NO_TEXTS),
}  # fmt: skip
HARMLESS = "\ud800"  # where a text is cleaned, half a character vanishes like any control character


def mutate_call(call: Any, draw: Draw) -> tuple[Any, str]:
    name = draw.choice([*CALLS])
    value = draw.choice(CALLS[name][1])
    return (name, value), f"{name}({value!r:.40})"


TEXT_DOOR = Door(
    "tokenizers and sequences",
    lambda folder: None,
    mutate_call,
    lambda call: call and CALLS[call[0]][0](call[1]),
    (TypeError, ValueError),
    lambda one, other, call: call[1] is HARMLESS,
    named=lambda text, call: any(
        word in text for word in ("expected", "Text was", "surrogate", "is none of", "outside")
    ),
)

CHECKPOINTS = [
    *(folder_door(name) for name in MEMBERS),
    *(folder_door(name, alone=True) for name in ("bert", "roberta", "distilbert")),
    Door("load", write_own_file, mutate_own, load, (CheckpointError, MissingCheckpoint),
         lambda one, other, path: same_model(one, other)),
    Door("load_elmo", write_elmo, mutate_own, load_elmo, (CheckpointError, MissingCheckpoint),
         same_elmo),
    tokenizer_door(PIECES, "vocab.txt"),
    tokenizer_door(PIECES, "tokenizer.json"),
    tokenizer_door(BYTES, "vocab.json"),
    tokenizer_door(BYTES, "tokenizer.json"),
    tokenizer_door(LATIN, "tokenizer.json"),
    TEXT_DOOR,
]  # fmt: skip
