"""Our own files: a model with its configuration in one safetensors file, or a folder as
transformers writes it."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, check_choice, check_number, check_size
from course_lib.encoder import POOLERS, Encoder, pooler_name
from course_lib.family.deberta import DebertaForMaskedLM
from course_lib.family.mobilebert import MobileBertConfig
from course_lib.files import as_path, json_object, one_error, write_atomic, write_together
from course_lib.heads import BertForClassification, BertForMaskedLM, meaning_of
from course_lib.text.byte_bpe import SPECIAL_TOKENS, fast_byte_bpe
from course_lib.text.features import check_tokenizer
from course_lib.text.tokenizer_files import CONFIG as TOKENIZER_CONFIG
from course_lib.text.tokenizer_files import NAMES, TOKENIZER_FILES, WHOLE
from course_lib.text.unigram import Unigram
from course_lib.text.wordpiece import SETTINGS, WordPiece, fast_wordpiece

from .convert import check_sizes, compare_weights, encoder_of, hollow, known, to_transformers
from .families import (
    MODELS,
    Family,
    ForTask,
    Labelled,
    Model,
    Tokenizer,
    family_named,
    family_of,
    has_pooler,
    stored_name,
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
    read_header,
    read_weights,
)

FORMAT = 2  # of what `save` writes beside the weights


def save(model: nn.Module, path: str | Path) -> str:
    """Write weights and configuration to one safetensors file; returns its SHA-256.

    model: an Encoder or one of the models with heads (`MODELS`), of any family. The file is
    complete or not there at all, and holds the hash of its own weights, which `load` checks. The
    same model gives the same bytes. Raises CheckpointError for another model, and for weights that
    are not finite numbers; TypeError for what is no path."""
    path = as_path(path, " The model comes first: save(model, path).")
    ours, family = known(model)
    config = _stored(encoder_of(ours).config)
    about = {"family": family.model_type, "model": type(ours).__name__, "config": config}
    more: dict[str, Any] = {}
    if isinstance(ours, DebertaForMaskedLM):
        more["visits"] = ours.decoder.visits
    pooler = encoder_of(ours).pooler
    # What kind it is, where a file that does not say so has another: those of before.
    if pooler and (kind := pooler_name(pooler)) != _old_pooler(encoder_of(ours).config):
        more["pooler"] = kind
    if isinstance(ours, Labelled):
        more.update(names=ours.names, dropout=ours.dropout.p)
        usual = meaning_of(ours.names) if isinstance(ours, BertForClassification) else {}
        if (kept := getattr(ours, "kept", {})) != usual:
            more["kept"] = kept
    elif isinstance(ours, ForTask) and ours.dropout.p:
        more["dropout"] = ours.dropout.p
    if unread := encoder_of(ours).unread:
        more["unread"] = json.loads(json.dumps(unread))  # numbers of languages as texts, as read
    return write_own(model, path, about, **more)


def _old_pooler(config: BertConfig) -> str:
    return config.pooler if isinstance(config, MobileBertConfig) else "tanh"


def write_own(model: nn.Module, path: str | Path, about: Mapping[str, Any], **more: Any) -> str:
    """A file of ours: the weights, what is said about them, and the hashes of both."""
    import safetensors.torch

    values = model.state_dict().items()
    state = {name: as_stored(name, value.detach().cpu()) for name, value in values}
    about = {"format": FORMAT, **about, "weights_sha256": hash_of_weights(state), **more}
    about["about_sha256"] = _hash_of_about(about)
    # One entry only: safetensors writes several in the order of a hash table, anew in every run.
    data = safetensors.torch.save(state, metadata={"course_lib": json.dumps(about)})
    write_atomic(path, data)
    return hashlib.sha256(data).hexdigest()


def read_own(path: Path, sha256: str | None, kinds: Collection[str]) -> tuple[Any, State]:
    """What such a file says about its weights, and the weights, if its model is one of these kinds;
    None and nothing if it is another file. Raises as `load`."""
    header = read_header(path)
    check_hash(path, sha256)
    entry = header.get("__metadata__", {}).get("course_lib", "{}")
    about = json_object(entry, path) if entry.startswith("{") else {}
    if about.get("format") != FORMAT or about.get("model") not in kinds:
        return None, {}
    state = read_weights(path)
    # Files of before this hash lack it.
    whole = about.get("about_sha256") in (None, _hash_of_about(about))
    if hash_of_weights(state) != about["weights_sha256"] or not whole:
        what = "weights no longer have" if whole else "settings no longer have"
        raise CheckpointError(f"{path} is damaged: its {what} the hash it records.")
    check_weights(state, path)
    return about, state


def _hash_of_about(about: Mapping[str, Any]) -> str:
    content = {name: value for name, value in about.items() if name != "about_sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def save_folder(
    model: Model, folder: str | Path, tokenizer: Tokenizer | None, *, half: bool = False
) -> str:
    """Write a model as transformers does: config.json, model.safetensors, and the vocabulary as
    tokenizer.json, a WordPiece's also as vocab.txt (tokenizer=None: none, as of a model of
    pictures); returns the weights' SHA-256.
    `load_pretrained(folder)` reads it back, and so do transformers' AutoModel… and AutoTokenizer,
    in float32 whatever the weights' format (float64 stays), so that it can be trained further.

    half: weights in float16, half the size and about three significant digits. Where a file cannot
    be written, none is. Of a DeBERTa with its enhanced mask decoder, which transformers does not
    have, it holds what the released ones hold: AutoModel reads the encoder. Warns of ONNX files
    that stand there from before and, given no tokenizer, of an old one's files. Raises
    CheckpointError for a model that transformers does not have, for weights that are not finite
    numbers (in float16: up to 65,504), and for a tokenizer with more tokens than the model has
    rows, or whose [PAD] is not the model's, and for a folder with files of another tokenizer,
    or a PEFT adapter; TypeError for what is no tokenizer or path. Then nothing is written."""
    import safetensors.torch

    folder = as_path(folder, " The model comes first: save_folder(model, folder, tokenizer).")
    more: State = {}
    if isinstance(model, DebertaForMaskedLM):
        model, more = _without_decoder(model)
    hf_model = to_transformers(model)
    if tokenizer is not None:
        check_tokenizer(tokenizer)
    tied = set(hf_model.all_tied_weights_keys)  # read back from the table that they share
    family = family_of(encoder_of(model).config)
    state = {
        stored_name(name, family): as_stored(name, value, half)
        for name, value in hf_model.state_dict().items()
        if name not in tied
    }
    state |= {name: as_stored(name, value, half) for name, value in more.items()}
    kind = family.classes[Encoder] if more else type(hf_model).__name__
    settings = {**hf_model.config.to_diff_dict(), "architectures": [kind]}
    if isinstance(model, Labelled):  # transformers leaves its own names out, LABEL_0 and LABEL_1
        settings |= {"id2label": hf_model.config.id2label, "label2id": hf_model.config.label2id}
    double = any(value.dtype == torch.float64 for value in state.values())
    settings["dtype"] = "float64" if double else "float32"  # what readers compute and train in
    config = json.dumps(settings, indent=1, sort_keys=True) + "\n"
    files = {CONFIG: config, **(_vocabulary_files(tokenizer, model, family) if tokenizer else {})}
    there = {file.name for file in folder.glob("*")} - set(files)
    old = sorted(n for n in there if n in (*TOKENIZER_FILES, ADAPTER) or n.endswith(".model"))
    if ADAPTER in old or (old and tokenizer is not None):
        raise CheckpointError(
            f"{folder} holds {', '.join(old)} from before, to be read beside the new files. Delete "
            "them, or give another folder."
        )
    data = safetensors.torch.save(state, metadata={"format": "pt"})
    contents: dict[str, bytes | str] = {**files, WEIGHTS: data}
    write_together({folder / name: content for name, content in contents.items()})
    if old:
        warnings.warn(
            f"{folder} holds {', '.join(old)} from before, which load_pretrained reads. Delete "
            "them if they are not this model's.",
            stacklevel=2,
        )
    for other in sorted(folder.glob("*.onnx")):
        warnings.warn(
            f"{other} was there before and is of another model. Export again, or delete it.",
            stacklevel=2,
        )
    return hashlib.sha256(data).hexdigest()


def _without_decoder(model: DebertaForMaskedLM) -> tuple[BertForMaskedLM, State]:
    """A DeBERTa as released files hold it: what transformers has, and the positions of the enhanced
    mask decoder, which it leaves unread."""
    if (visits := model.decoder.visits) != 2:
        raise CheckpointError(
            f"an enhanced mask decoder of {visits} visits was given; such a folder always has 2. "
            "checkpoints.save keeps the number."
        )
    plain = BertForMaskedLM(model.encoder)
    plain.mlm = model.mlm
    position = family_of(model.config).prefix + "embeddings.position_embeddings.weight"
    return plain.train(model.training), {position: model.decoder.position.weight.detach()}


def as_stored(name: str, value: Tensor, half: bool = False) -> Tensor:
    """A weight as the file gets it. Raises CheckpointError for one that is not finite there."""
    stored = (value.half() if half and value.is_floating_point() else value).contiguous()
    if not value.isfinite().all():
        raise CheckpointError(
            f"{name} holds nan or infinity; expected finite numbers: its training went wrong. "
            "Take an earlier checkpoint."
        )
    if not stored.isfinite().all():
        raise CheckpointError(
            f"{name} holds {value.abs().max():,.0f}; float16 ends at 65,504. Leave half=True out."
        )
    return stored


def _vocabulary_files(tokenizer: Tokenizer, model: Model, family: Family) -> dict[str, str]:
    """As the tokenizers library reads it, and a WordPiece as ours does, too: families whose own
    vocabulary is of another kind, such as ModernBERT, take one from tokenizer.json alone."""
    config, special = encoder_of(model).config, tokenizer.special
    if strife := contradiction(tokenizer, config):
        raise CheckpointError(strife)
    # A model that transformers calls with the segments under another name must not get them.
    segments = config.type_vocab_size > 1 and "token_type_ids" not in family.inputs
    files = {WHOLE: _library_tokenizer(tokenizer).to_str()}
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": min(config.longest_text, tokenizer.model_max_length),
        "model_input_names": ["input_ids", *["token_type_ids"] * segments, "attention_mask"],
        **{name: tokenizer.token(getattr(special, name[:-6])) for name in NAMES},
    }
    if isinstance(tokenizer, WordPiece):
        about |= {theirs: tokenizer.normalisation[ours] for ours, theirs in SETTINGS.items()}
        files["vocab.txt"] = "".join(f"{token}\n" for token in tokenizer.vocab)
        # transformers.js gives a pair its segments for this class alone; for it transformers reads
        # a vocabulary and these settings, so nothing else may be set.
        usual = WordPiece(tokenizer.vocab, **{**tokenizer.normalisation, "clean_text": True})
        if segments and files[WHOLE] == _library_tokenizer(usual).to_str():
            about["tokenizer_class"] = "BertTokenizer"
    return {**files, TOKENIZER_CONFIG: json.dumps(about, indent=1) + "\n"}


def contradiction(tokenizer: Tokenizer, config: BertConfig, pad: bool = True) -> str | None:
    """Why a tokenizer cannot be the model's, None where it can. pad: compare their [PAD], too."""
    if tokenizer.vocab_size > config.vocab_size:
        return (
            f"a tokenizer of {tokenizer.vocab_size:,} tokens was given with a model of "
            f"{config.vocab_size:,} rows; expected at most as many. They belong to two models."
        )
    if pad and tokenizer.special.pad != config.pad_token_id:
        return (
            f"a tokenizer whose {tokenizer.token(tokenizer.special.pad)} has the id "
            f"{tokenizer.special.pad} was given with a model of "
            f"pad_token_id={config.pad_token_id}; expected the same: correct the configuration, or "
            "take the tokenizer and the model from one checkpoint."
        )
    return None


def _library_tokenizer(tokenizer: Tokenizer) -> Any:
    """The same in the tokenizers library, which puts the special tokens around a text, too."""
    from tokenizers import AddedToken, processors
    from tokenizers import Tokenizer as Library

    if isinstance(tokenizer, Unigram):
        return Library.from_str(tokenizer._read.to_str())
    sep, cls = ((tokenizer.token(id), id) for id in (tokenizer.special.sep, tokenizer.special.cls))
    if isinstance(tokenizer, WordPiece):
        fast = fast_wordpiece(tokenizer)
        fast.post_processor = processors.BertProcessing(sep, cls)
        return fast
    fast = fast_byte_bpe(tokenizer)
    added = (AddedToken(t, lstrip=t in tokenizer.lstrip, special=True) for t in SPECIAL_TOKENS)
    fast.add_special_tokens([*added])
    fast.post_processor = processors.RobertaProcessing(sep, cls, add_prefix_space=False)
    return fast


def load(path: str | Path, sha256: str | None = None) -> Model:
    """The model in a file that `save` wrote, in evaluation mode.

    sha256: what the file's hash must be. Raises MissingCheckpoint, or CheckpointError for a wrong
    hash, a file cut short or damaged, a pickle, or a file that `save` did not write."""
    path = as_path(path)
    with one_error(path, CheckpointError, MissingCheckpoint):
        return _load(path, sha256)


def _load(path: Path, sha256: str | None) -> Model:
    types = {kind.__name__: kind for kind in MODELS}
    about, state = read_own(path, sha256, types)
    if about is None:
        raise CheckpointError(
            f"{path} was not written by this version of course_lib.checkpoints.save: it lacks a "
            "configuration. For a checkpoint of transformers give load_pretrained the folder that "
            "holds its config.json and model.safetensors."
        )
    family = family_named(about["family"], str(path))
    kind, config = types[about["model"]], family.config_class(**about["config"])
    check_sizes(config, state, str(path))
    _check_head(about)
    weights = any("pooler." in name for name in state)
    pooler = about.get("pooler") or (has_pooler(kind, config, weights) and _old_pooler(config))
    known = ("visits", "names", "dropout", "kept", "unread")
    of_head = {name: about[name] for name in known if name in about}
    plain = not any(name.startswith("transform.") for name in state)
    model = hollow(kind, config, family, pooler, plain=plain, **of_head)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    compare_weights(shapes, state, [n for n in state if n not in shapes], str, str(path))
    model.load_state_dict(state, assign=True)
    return model.eval()


def _check_head(about: Mapping[str, Any]) -> None:
    """Raise ValueError for what no head has: its names, its dropout, a decoder's visits."""
    names = about.get("names", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names={names!r:.60} was given; expected a list of texts.")
    for name in ("kept", "unread"):
        if not isinstance(about.get(name, {}), dict):
            raise ValueError(f"{name}={about[name]!r:.60} was given; expected an object.")
    check_number("dropout", about.get("dropout") or 0, below=1)
    check_size("visits", about.get("visits", 2), most=100)
    check_choice("pooler", about.get("pooler", "tanh"), POOLERS)


def _stored(config: BertConfig) -> dict[str, Any]:
    """The settings that belong to the weights: not the path by which they are computed with."""
    return {name: value for name, value in asdict(config).items() if name != "kernels"}


def hash_of_weights(state: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and bytes of all weights."""
    digest = hashlib.sha256()
    for name in sorted(state):
        value = state[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
