"""Our own files: a model with its configuration in one safetensors file, or a folder as
transformers writes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig
from course_lib.family.deberta import DebertaForMaskedLM
from course_lib.files import write_atomic
from course_lib.text.tokenizer_files import NAMES
from course_lib.text.wordpiece import SETTINGS, SPECIAL_TOKENS, WordPiece, fast_wordpiece

from .convert import compare_weights, encoder_of, hollow, known, to_transformers
from .families import MODELS, Labelled, Model, family_named, has_pooler
from .reading import CONFIG, WEIGHTS, CheckpointError, check_hash, read_header, read_weights

FORMAT = 2  # of what `save` writes beside the weights


def save(model: nn.Module, path: str | Path) -> str:
    """Write weights and configuration to one safetensors file; returns its SHA-256.

    model: an Encoder or one of the models with heads (`MODELS`), of any family. The file is
    complete or not there at all, and holds the hash of its own weights, which `load` checks. The
    same model gives the same bytes. Raises CheckpointError for another model."""
    import safetensors.torch

    ours, family = known(model)
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    about = {
        "format": FORMAT,
        "family": family.model_type,
        "model": type(ours).__name__,
        "config": _stored(encoder_of(ours).config),
        "weights_sha256": hash_of_weights(state),
    }
    if isinstance(ours, DebertaForMaskedLM):
        about["visits"] = ours.decoder.visits
    if isinstance(ours, Labelled):
        about.update(names=ours.names, dropout=ours.dropout.p)
    # One entry only: safetensors writes several in the order of a hash table, anew in every run.
    data = safetensors.torch.save(state, metadata={"course_lib": json.dumps(about)})
    write_atomic(path, data)
    return hashlib.sha256(data).hexdigest()


def save_folder(
    model: Model, folder: str | Path, tokenizer: WordPiece, *, half: bool = False
) -> str:
    """Write a model as transformers does: config.json, model.safetensors, and the vocabulary as
    vocab.txt and tokenizer.json; returns the weights' SHA-256. `load_pretrained(folder)` reads it
    back, and so do transformers' AutoModel… and AutoTokenizer.

    half: weights in float16, half the size and about three significant digits; they are read back
    as float32. The file of weights is written last. Raises CheckpointError for a model that
    transformers does not have."""
    import safetensors.torch

    hf_model, folder = to_transformers(model), Path(folder)
    tied = set(hf_model.all_tied_weights_keys)  # read back from the table that they share
    state = {
        name: (value.half() if half and value.is_floating_point() else value).contiguous()
        for name, value in hf_model.state_dict().items()
        if name not in tied
    }
    settings = {**hf_model.config.to_diff_dict(), "architectures": [type(hf_model).__name__]}
    settings["dtype"] = "float16" if half else "float32"
    write_atomic(folder / CONFIG, json.dumps(settings, indent=1, sort_keys=True) + "\n")
    config = encoder_of(model).config
    _save_vocabulary(tokenizer, folder, config.longest_text, config.type_vocab_size > 1)
    data = safetensors.torch.save(state, metadata={"format": "pt"})
    write_atomic(folder / WEIGHTS, data)
    return hashlib.sha256(data).hexdigest()


def _save_vocabulary(tokenizer: WordPiece, folder: Path, longest: int, segments: bool) -> None:
    """As ours and as the tokenizers library reads it: families whose own vocabulary is of another
    kind, such as ModernBERT, take a WordPiece from tokenizer.json alone."""
    from tokenizers.processors import BertProcessing

    fast, special = fast_wordpiece(tokenizer), tokenizer.special
    fast.post_processor = BertProcessing(("[SEP]", special.sep), ("[CLS]", special.cls))
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{theirs: tokenizer.normalisation[ours] for ours, theirs in SETTINGS.items()},
        "model_max_length": longest,
        "model_input_names": ["input_ids", *["token_type_ids"] * segments, "attention_mask"],
        **dict(zip(NAMES, SPECIAL_TOKENS, strict=True)),
    }
    write_atomic(folder / "tokenizer_config.json", json.dumps(about, indent=1) + "\n")
    write_atomic(folder / "tokenizer.json", fast.to_str())
    tokenizer.save(folder / "vocab.txt")


def load(path: str | Path, sha256: str | None = None) -> Model:
    """The model in a file that `save` wrote, in evaluation mode.

    sha256: what the file's hash must be. Raises MissingCheckpoint, or CheckpointError for a wrong
    hash, a file cut short or damaged, a pickle, or a file that `save` did not write."""
    path = Path(path)
    header = read_header(path)
    check_hash(path, sha256)
    about = header.get("__metadata__", {}).get("course_lib", "{}")
    about = json.loads(about) if about.startswith("{") else {}
    if about.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} was not written by this version of course_lib.checkpoints.save: it lacks a "
            "configuration. For a checkpoint of transformers give load_pretrained the folder that "
            "holds its config.json and model.safetensors."
        )
    family = family_named(about["family"], str(path))
    state = read_weights(path)
    if hash_of_weights(state) != about["weights_sha256"]:
        raise CheckpointError(f"{path} is damaged: its weights no longer have the hash it records.")
    kind = next(kind for kind in MODELS if kind.__name__ == about["model"])
    config = family.config_class(**about["config"])
    pooler = has_pooler(kind, config, any("pooler." in name for name in state))
    of_head = {name: about[name] for name in ("visits", "names", "dropout") if name in about}
    model = hollow(kind, config, family, pooler, **of_head)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    compare_weights(shapes, state, [n for n in state if n not in shapes], str, str(path))
    model.load_state_dict(state, assign=True)
    return model.eval()


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
