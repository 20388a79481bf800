"""One vector a text: an encoder, its tokenizer and a way to pool (Reimers and Gurevych 2019,
section 3), in and out of the folders that sentence-transformers reads."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checkpoints import CheckpointError, Pretrained, load_pretrained, save_folder
from course_lib.checkpoints.families import Tokenizer
from course_lib.checkpoints.reading import read_json
from course_lib.config import check_choice, check_size
from course_lib.encoder import Encoder, mean_state
from course_lib.files import as_path, one_error, write_together
from course_lib.text.features import check_tokenizer, plain_sequences

from .finetuning import unwrap_encoder

MODULES, LIMITS, ABOUT = (
    "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
)  # fmt: skip
POOLING, TOKENIZER = "1_Pooling/config.json", "tokenizer_config.json"
# What their files call the two ways to pool, in versions before 6 and since.
OLD_NAMES = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}
# What other settings may be, unless they are empty: those of the last layer's states.
_LAST = {"method": "forward", "method_output_name": "last_hidden_state"}
_USUAL = ("feature-extraction", "token_embeddings", {"text": _LAST})


class SentenceEncoder(nn.Module):
    """Texts to vectors (N, H).

    pooling: "mean" of the states at real tokens, [CLS] and [SEP] among them, or "cls", the first
    state. normalize: vectors of unit length, so that a dot product is the cosine. length: how many
    tokens a text may have; by default 256, or as many as the model can or its files allow, if these
    are fewer. Raises TypeError for what is no encoder or tokenizer, ValueError for another way to
    pool and a length that the model cannot."""

    def __init__(
        self,
        encoder: Encoder | Pretrained,
        tokenizer: Tokenizer,
        pooling: str = "mean",
        normalize: bool = True,
        length: int | None = None,
    ) -> None:
        super().__init__()
        encoder = unwrap_encoder(encoder)
        check_tokenizer(tokenizer)
        check_choice("pooling", pooling, OLD_NAMES)
        longest = encoder.config.longest_text
        self.length = min(256, longest, tokenizer.model_max_length) if length is None else length
        check_size("length", self.length, 3, longest)
        self.encoder, self.tokenizer = encoder, tokenizer
        self.pooling, self.normalize = pooling, normalize
        self.about: dict[str, Any] = {"similarity_fn_name": "cosine"}  # not used here

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Each (B, T), as an encoder takes them -> (B, H), with a graph: what a loss compares."""
        output = self.encoder(input_ids, attention_mask, token_type_ids)
        states = output.last_hidden_state  # (B, T, H)
        vectors = states if self.pooling == "cls" else mean_state(states, attention_mask)
        return F.normalize(vectors[:, 0], dim=-1) if self.normalize else vectors[:, 0]

    @torch.no_grad()
    def encode(self, texts: Sequence[str], batch_size: int = 32) -> Tensor:
        """One vector a text, in their order: (N, H) float32 on the processor, fit for training.

        Texts of like length are read together, with dropout off; afterwards every part is in the
        mode it was in. Warns where texts are cut, with their number. Raises TypeError for one text
        instead of several, ValueError for no texts and for a text without a token."""
        check_size("batch_size", batch_size)
        sequences, cut = plain_sequences(texts, self.tokenizer, self.length)
        if cut.texts:
            warnings.warn(str(cut), stacklevel=3)
        lengths = sequences.attention_mask.sum(dim=1)
        order = lengths.argsort(descending=True, stable=True)
        modes = [(part, part.training) for part in self.modules()]
        device = next(self.parameters()).device
        vectors = torch.empty(len(sequences), self.encoder.config.hidden_size)
        self.eval()
        try:
            for which in order.split(batch_size):
                inputs = sequences[which].inputs.items()
                longest = int(lengths[which[0]])
                batch = {name: value[:, :longest].to(device) for name, value in inputs}
                vectors[which] = self(**batch).float().cpu()
        finally:
            for part, training in modes:
                part.training = training
        return vectors

    def save_folder(self, folder: str | Path) -> str:
        """Write a folder that `SentenceTransformer(folder)` and `SentenceEncoder.load` read, as
        `course_lib.save_folder` does, which says what it raises; returns the weights' SHA-256."""
        folder = as_path(folder)
        digest = save_folder(self.encoder, folder, self.tokenizer)
        types = ["Transformer", "Pooling", *["Normalize"] * self.normalize]
        modules = [
            {"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "", "type": MODULE + kind}
            for n, kind in enumerate(types)
        ]
        pooling = {name: kind == self.pooling for kind, name in OLD_NAMES.items()}
        # fastembed, and whoever takes the tokenizer alone, reads the second of these limits only.
        files: dict[str, Any] = {
            LIMITS: {"max_seq_length": self.length, "do_lower_case": False},
            TOKENIZER: {**read_json(folder / TOKENIZER), "model_max_length": self.length},
            ABOUT: {"model_type": "SentenceTransformer", **self.about},
            POOLING: {"word_embedding_dimension": self.encoder.config.hidden_size, **pooling},
            MODULES: modules,
        }
        (folder / MODULES).unlink(missing_ok=True)  # no old one beside the new weights
        as_json = {name: json.dumps(content, indent=1) + "\n" for name, content in files.items()}
        write_together({folder / name: text for name, text in as_json.items()})
        return digest

    @classmethod
    def load(cls, name: str | Path) -> SentenceEncoder:
        """What such a folder holds, or the checkpoint of that name ("minilm"), in evaluation mode.

        Raises as `load_pretrained`, and CheckpointError for a folder without modules.json, for
        parts and settings that are not read here (other ways to pool, a dense layer, a default
        prompt, shortened vectors, other states than the last), and for a tokenizer that could not
        be read. Named prompts and the similarity go along into what `save_folder` writes."""
        source = load_pretrained(name)
        folder = source.path.parent
        if not (folder / MODULES).is_file():
            raise CheckpointError(
                f"{folder} has no {MODULES}: it does not say how states become one vector. "
                "SentenceEncoder(source.encoder, source.tokenizer, pooling=…), with source from "
                "load_pretrained, makes one; its vectors mean little before training."
            )
        if source.tokenizer is None:
            raise CheckpointError(f"{folder}: a tokenizer is needed. {source.tokenizer_error}")
        with one_error(folder / MODULES, CheckpointError):
            pooling, normalize = _pooling_in(folder)
        with one_error(folder / LIMITS, CheckpointError):
            length, about = _limits_in(folder, source.encoder.config.longest_text)
        model = cls(source.encoder, source.tokenizer, pooling, normalize, length).eval()
        model.about.update(about)
        return model


MODULE = "sentence_transformers.models."  # the names that all their versions read


def _pooling_in(folder: Path) -> tuple[str, bool]:
    """The way to pool, and whether vectors are made unit length."""
    modules = json.loads((folder / MODULES).read_text(encoding="utf-8"))
    types = [module["type"].rpartition(".")[2] for module in modules]
    if types not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise CheckpointError(
            f"{folder / MODULES} lists {', '.join(types) or 'nothing'}; expected Transformer, "
            "Pooling and perhaps Normalize: nothing else is read here."
        )
    settings = read_json(path := folder / modules[1]["path"] / "config.json")
    old = [name for name, on in settings.items() if name.startswith("pooling_mode_") and on]
    named = settings.get("pooling_mode", old or "mean")
    named = named if isinstance(named, list) else [named]
    known = {**{name: kind for kind, name in OLD_NAMES.items()}, "cls": "cls", "mean": "mean"}
    if len(named) != 1 or named[0] not in known:
        raise CheckpointError(f"{path} pools by {named}; expected mean or cls, one of them.")
    if not settings.get("include_prompt", True):
        raise CheckpointError(f"{path} sets include_prompt=false, which is not read here.")
    return known[named[0]], "Normalize" in types


def _limits_in(folder: Path, longest: int) -> tuple[int, dict[str, Any]]:
    """How many tokens a text may have, and what is kept; refuses what would change the vectors."""
    limits, about, tokenizer = (
        read_json(folder / name) if (folder / name).is_file() else {}
        for name in (LIMITS, ABOUT, TOKENIZER)
    )
    length = limits.pop("max_seq_length", None) or tokenizer.get("model_max_length") or longest
    changed = limits | {n: about.get(n) for n in ("default_prompt_name", "truncate_dim")}
    if on := {name: value for name, value in changed.items() if value and value not in _USUAL}:
        raise CheckpointError(f"{folder} sets {on}, which is not read here; expected none of it.")
    kept = {name: about[name] for name in ("similarity_fn_name", "prompts") if about.get(name)}
    return min(int(length), longest), kept
