"""Reading tokenizer files that others wrote. A file is read as it means, or refused by the name of
the setting that a tokenizer here does not have.

What a tokenizer.json means is what the `tokenizers` library makes of it; only its truncation, its
padding and its decoder are left out, which belong to no encoding here. (transformers' class for a
model, such as BertTokenizer, takes the vocabulary from it and the rest from tokenizer_config.json,
or else from defaults: a tokenizer.json that keeps capitals is lower-cased there unless
tokenizer_config.json says so, too.) Where the settings beside it contradict it, neither is taken; a
vocab.txt beside it is not read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from course_lib.files import as_path, json_object, read_text

from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WHOLE, CONFIG = "tokenizer.json", "tokenizer_config.json"
SPECIAL_MAP, MODEL_CONFIG = "special_tokens_map.json", "config.json"
VOCABULARIES = (WHOLE, "vocab.txt", "vocab.json", "merges.txt")
TOKENIZER_FILES = (*VOCABULARIES, CONFIG, SPECIAL_MAP, "added_tokens.json")
NAMES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
GENERIC = (
    "PreTrainedTokenizerFast|TokenizersBackend"  # transformers' classes for any tokenizer.json
)


class AddedToken(NamedTuple):
    """A token that is taken out of a text whole, before the text is cut."""

    content: str
    id: int | None = None  # None where a file does not say it
    normalized: bool | None = None  # whether it is looked for in the normalised text
    flags: frozenset[str] = frozenset()  # which of lstrip, rstrip and single_word it has


def tokenizer_file(path: str | Path, otherwise: str) -> Path:
    """`path`; of a folder the tokenizer.json in it, or if there is none, the file `otherwise`."""
    path = as_path(path)
    if not path.is_dir():
        return path
    return path / (WHOLE if os.path.lexists(path / WHOLE) else otherwise)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, empty where there is no such file. Raises ValueError."""
    if not os.path.lexists(path):
        return {}
    return json_object(read_text(path, "a JSON object"), path)


READERS = "The tokenizers library (Tokenizer.from_file) or transformers' AutoTokenizer may read it."
END_CUT = "'right': of a long text the end is cut here"


def refuse(
    where: Path | str, settings: Iterable[str], expected: str, advice: str = READERS
) -> None:
    """Raise ValueError where there are any settings, which a tokenizer here does not have."""
    if named := ", ".join(settings):
        raise ValueError(f"{where} sets {named}; expected {expected}. {advice}")


# ---------------------------------------------------------------- tokenizer.json


def read_tokenizer_json(path: Path, kind: str) -> tuple[Tokenizer, dict[str, Any]]:
    """A tokenizer.json as the `tokenizers` library reads it, but without truncation and padding;
    and the content of the file.

    kind: of the model, "WordPiece", "BPE" or "Unigram".
    Raises ValueError for another file, another kind, and added tokens whose ids are not kept."""
    from tokenizers import Tokenizer

    text = read_text(path, f"a {WHOLE}")
    content = json_object(text, path)
    try:
        read = Tokenizer.from_str(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises a bare Exception, or panics
        raise ValueError(
            f"{path} is no {WHOLE} of the tokenizers library, which cannot read it: {error}."
        ) from error
    if (its := type(read.model).__name__) != kind:
        raise ValueError(
            f"{path} describes a {its} tokenizer; expected {kind}. WordPiece.from_file, "
            "ByteBPE.from_file and Unigram.from_file read one kind each."
        )
    for token in tokens_in(content):
        if token.content and (id := read.token_to_id(token.content)) != token.id:
            raise ValueError(
                f"{path} gives the added token {token.content!r} the id {token.id}; the tokenizers "
                f"library, which counts on from the vocabulary, gives it {id}. Expected added "
                "tokens in the order of their ids, without gaps."
            )
    refuse(path, settings_unlike(read.truncation or {}, {"direction": "right"}), END_CUT)
    read.no_truncation()
    read.no_padding()
    return read, content


def model_kind(path: Path) -> str | None:
    """What kind of model a tokenizer.json says it has, unchecked."""
    try:
        model = read_object(path).get("model")
    except ValueError:  # whoever reads it will say so
        return None
    return model.get("type") if isinstance(model, dict) else None


def tokens_in(content: Mapping[str, Any]) -> list[AddedToken]:
    """The added tokens of a tokenizer.json."""
    return [_added(entry, entry["id"]) for entry in content.get("added_tokens") or ()]


def _added(entry: Mapping[str, Any], id: int) -> AddedToken:
    flags = frozenset(name for name in ("lstrip", "rstrip", "single_word") if entry.get(name))
    normalized = entry.get("normalized", not entry.get("special", False))
    return AddedToken(entry["content"], int(id), bool(normalized), flags)


def settings_unlike(settings: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """The settings that are not as expected, each as "name = value"; null says nothing."""
    return [
        f"{name} = {settings[name]!r:.60}"
        for name, value in expected.items()
        if name in settings
        and settings[name] not in (value if isinstance(value, tuple) else (value, None))
    ]


def parts_unlike(read: Tokenizer, normalizers: str, pre_tokenizer: str) -> list[str]:
    """Which of the two parts before the model is another than a tokenizer here has, by its class.

    normalizers: a pattern of those that it has; no part is called None."""
    names = [str(part and type(part).__name__) for part in (read.normalizer, read.pre_tokenizer)]
    pairs = zip(("normalizer", "pre_tokenizer"), names, (normalizers, pre_tokenizer), strict=True)
    return [f"{part} {name}" for part, name, known in pairs if not re.fullmatch(known, name)]


def refuse_frame(read: Tokenizer, path: Path, cls: int | None, sep: int | None) -> None:
    """Raise ValueError for a post-processor that sets texts into other special tokens than the
    course does: [CLS] text [SEP], and between the two of a pair one [SEP], or RoBERTa's two."""
    text = read.encode("a", add_special_tokens=False).ids
    frames = (
        ([*text], [*text, *text]),
        ([cls, *text, sep], [cls, *text, sep, *text, sep]),
        ([cls, *text, sep], [cls, *text, sep, sep, *text, sep]),
    )
    pair = read.encode("a", "a")
    if (read.encode("a").ids, pair.ids) not in frames:
        refuse(path, [f"a post_processor that gives {' '.join(pair.tokens)}"],
               "[CLS] a [SEP] a [SEP], or none")  # fmt: skip


def in_order(vocab: Mapping[str, int], path: Path) -> list[str]:
    """The tokens of `vocab` by their ids. Raises ValueError where these are not 0 to n − 1."""
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise ValueError(f"the ids in {path} are not 0 to {len(vocab) - 1}, each once.")
    return sorted(vocab, key=vocab.__getitem__)


# ---------------------------------------------------------------- the files beside it


def text_of(token: Any) -> Any:
    """A token, which is written as a text or as an object with the text in "content"."""
    return token.get("content") if isinstance(token, dict) else token


def tokens_beside(path: Path) -> list[AddedToken]:
    """What tokens the files beside a vocabulary add, those first of which most is said: the
    added_tokens_decoder of tokenizer_config.json, added_tokens.json, more special tokens."""
    config, tokens = read_object(path.with_name(CONFIG)), []
    try:
        for id, entry in (config.get("added_tokens_decoder") or {}).items():
            tokens.append(_added(entry, id))
        for content, id in read_object(path.with_name("added_tokens.json")).items():
            tokens.append(AddedToken(content, int(id), True))
        for settings in (config, read_object(path.with_name(SPECIAL_MAP))):
            for key in ("additional_special_tokens", "extra_special_tokens"):
                more = settings.get(key) or ()
                more = more.values() if isinstance(more, dict) else more
                tokens += [AddedToken(str(text_of(token)), None, False) for token in more]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the added tokens beside {path} are not as transformers writes them: {error!r}."
        ) from error
    return tokens


def refuse_beside(
    read: Vocabulary,
    path: Path,
    added: Iterable[str],
    expected: Mapping[str, Any],
    classes: str = r"\w+",
) -> None:
    """Raise ValueError where a file beside `path` contradicts the tokenizer that was read from it.

    added: its tokens that are taken out of a text whole. expected: other settings, by the names
    that transformers gives them; of a tuple, each value will do. classes: a pattern of
    transformers' classes that cut as it does."""
    names = zip(NAMES, read.special_tokens, strict=True)
    expected = {"split_special_tokens": False, **expected, **dict(names)}
    side = settings_unlike(read_object(path.with_name(CONFIG)), {"truncation_side": "right"})
    refuse(path.with_name(CONFIG), side, END_CUT)
    for name in (MODEL_CONFIG, SPECIAL_MAP, CONFIG):
        settings = {key: text_of(value) for key, value in read_object(path.with_name(name)).items()}
        unlike = [] if name == MODEL_CONFIG else settings_unlike(settings, expected)
        kind = settings.get("tokenizer_class")
        if kind is not None and not re.fullmatch(f"({classes})(Fast)?|{GENERIC}", str(kind)):
            unlike.append(f"tokenizer_class = {kind!r}")
        refuse(path.with_name(name), unlike, f"what {path.name} says, or nothing", "Correct one.")
    ids = {token: read.ids[token] for token in added}
    for token in tokens_beside(path):
        if token.content not in ids or token.id not in (None, ids[token.content]):
            raise ValueError(
                f"files beside {path} add the token {token.content!r} with the id {token.id}; "
                f"expected one that it takes out of a text whole, with its id: "
                f"{ids.get(token.content, 'it has none')}."
            )
