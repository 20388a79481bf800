"""How the members' interfaces differ, asked of transformers' Auto classes, without a network.

For each member a checkpoint is written as the hub has it: a tiny network at random initialisation
with the heads it was pre-trained with, and a tokenizer of the micro-world's words. Everything in a
row is then asked of what `AutoTokenizer`, `AutoModel` and `AutoModelForSequenceClassification` make
of that folder. So a row says what the installed version of transformers does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch

from course_lib.text.byte_bpe import CLS, MASK, PAD, SEP, UNK, train_byte_bpe
from course_lib.text.wordpiece import fast_wordpiece
from course_lib.text.world import MicroWorld

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAIR = ("she hauls the net .", "the boat is new .")
HIDDEN, LAYERS, HEADS, POSITIONS, CLASSES = 16, 1, 2, 40, 3
BPE_SIZE, STORIES = 400, 40


@dataclass(frozen=True)
class Kind:
    """A member: its model type, the class its released checkpoint was saved from, how its text is
    cut ("wordpiece", "bpe" or "unigram"), its special tokens, and what else its released
    configuration says.

    cls, sep, pad, unk, mask: as its vocabulary spells them."""

    model_type: str
    saved_from: str
    cut: str
    special: tuple[str, str, str, str, str]  # cls, sep, pad, unk, mask
    settings: dict[str, Any]


_BERT = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
_ROBERTA = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
_USUAL = {
    "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "intermediate_size": HIDDEN, "max_position_embeddings": POSITIONS,
}  # fmt: skip
_RELATIVE = {"relative_attention": True, "position_biased_input": False, "type_vocab_size": 0}
KINDS: dict[str, Kind] = {
    "BERT": Kind("bert", "BertForPreTraining", "wordpiece", _BERT, _USUAL),
    "RoBERTa": Kind(
        "roberta", "RobertaForMaskedLM", "bpe", _ROBERTA, {**_USUAL, "type_vocab_size": 1}
    ),
    "ALBERT": Kind(
        "albert", "AlbertForPreTraining", "unigram",
        ("[CLS]", "[SEP]", "<pad>", "<unk>", "[MASK]"), {**_USUAL, "embedding_size": 8},
    ),
    "DistilBERT": Kind(
        "distilbert", "DistilBertForMaskedLM", "wordpiece", _BERT,
        {"dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": HIDDEN,
         "max_position_embeddings": POSITIONS},
    ),
    "ELECTRA": Kind(
        "electra", "ElectraForPreTraining", "wordpiece", _BERT, {**_USUAL, "embedding_size": 8}
    ),
    "DeBERTa": Kind(
        "deberta", "DebertaForMaskedLM", "bpe", _BERT,
        {**_USUAL, **_RELATIVE, "pos_att_type": ["c2p", "p2c"]},
    ),
    "DeBERTa-v3": Kind(
        "deberta-v2", "DebertaV2ForMaskedLM", "unigram", _BERT,
        {**_USUAL, **_RELATIVE, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8,
         "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Interface:
    """What one member's classes ask for and give back.

    written: a pair of texts as the tokenizer writes it, A and B between special tokens. types: the
    segment ids it gives to that pair by default, empty where it gives none; requested: with
    return_token_type_ids=True. type_vocab_size: rows of the model's table of segments. segment_use:
    what the model does with ids 0 and 1: "uses" them, "ignores" them, or "refuses" to run. outputs:
    the fields of AutoModel's output. pooler: "none", "trained", or "random" where AutoModel has one
    and the checkpoint has no weights for it. missing: weights of the classifier that the checkpoint
    has not."""

    member: str
    tokenizer: str
    written: str
    types: tuple[int, ...]
    requested: tuple[int, ...]
    type_vocab_size: int
    segment_use: str
    outputs: tuple[str, ...]
    pooler: str
    missing: tuple[str, ...]


@lru_cache(maxsize=1)
def interfaces() -> tuple[Interface, ...]:
    """A row for each of KINDS; a second or two, most of it to import transformers."""
    # Windows does not delete files that a model still maps; the system clears them away later.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, _silent():
        return tuple(
            interface_of(name, Path(folder, kind.model_type)) for name, kind in KINDS.items()
        )


def interface_of(member: str, folder: Path) -> Interface:
    from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

    write_checkpoint(KINDS[member], folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model, loading = AutoModel.from_pretrained(folder, output_loading_info=True)
    _, beyond = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=CLASSES, output_loading_info=True
    )
    without_types, with_types = tokenizer(*PAIR), tokenizer(*PAIR, return_token_type_ids=True)
    ids = without_types["input_ids"]
    with torch.no_grad():
        outputs = model.eval()(torch.tensor([ids]))
    return Interface(
        member=member,
        tokenizer=type(tokenizer).__name__,
        written=_outline(tokenizer, ids),
        types=tuple(without_types.get("token_type_ids", ())),
        requested=tuple(with_types["token_type_ids"]),
        type_vocab_size=_segments(model),
        segment_use=_segment_use(model, torch.tensor([ids])),
        outputs=tuple(outputs.keys()),
        pooler=_pooler(model, loading["missing_keys"]),
        missing=tuple(sorted(beyond["missing_keys"])),
    )


def _outline(tokenizer: Any, ids: list[int]) -> str:
    """The special tokens of a pair, its texts as A and B."""
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    parts, texts = [], iter("AB")
    for before, id in zip([None, *ids], ids, strict=False):
        if id in special:
            parts.append(tokenizer.convert_ids_to_tokens(id))
        elif before is None or before in special:
            parts.append(next(texts))
    return " ".join(parts)


def _segments(model: Any) -> int:
    """Rows of the table of segments; 0 without one."""
    sizes = [len(p) for name, p in model.named_parameters() if "token_type_embeddings" in name]
    return sizes[0] if sizes else 0


@torch.no_grad()
def _segment_use(model: Any, ids: torch.Tensor) -> str:
    """Whether its vectors change when the second half of a text becomes segment 1."""
    half = (torch.arange(ids.shape[1]) >= ids.shape[1] // 2).long()[None]
    try:
        first, second = (model(ids, token_type_ids=t)[0] for t in (0 * half, half))
    except (TypeError, IndexError):  # an argument it does not know, a row it does not have
        return "refuses"
    return "ignores" if torch.equal(first, second) else "uses"


def _pooler(model: Any, missing: Any) -> str:
    own = {name for name, _ in model.named_parameters() if "pooler" in name}
    if not own:
        return "none"
    return "random" if own <= set(missing) else "trained"


# ---------------------------------------------------------------- a checkpoint as on the hub


def write_checkpoint(kind: Kind, folder: Path) -> None:
    """config.json, model.safetensors, tokenizer.json and tokenizer_config.json into `folder`."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(kind)
    cls, sep, pad, unk, mask = kind.special
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {"cls_token": cls, "sep_token": sep, "pad_token": pad, "unk_token": unk}
    settings = {**named, "mask_token": mask, "model_max_length": POSITIONS - 2}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    config = transformers.AutoConfig.for_model(
        kind.model_type,
        vocab_size=tokenizer.get_vocab_size(),
        pad_token_id=tokenizer.token_to_id(pad),
        **kind.settings,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        getattr(transformers, kind.saved_from)(config).save_pretrained(folder)


def _tokenizer(kind: Kind) -> Tokenizer:
    """The micro-world's words, cut as this member cuts them."""
    world = MicroWorld.load()
    if kind.cut == "wordpiece":
        return fast_wordpiece(world.tokenizer)
    return _bpe(kind, world) if kind.cut == "bpe" else _unigram(kind, world)


def _bpe(kind: Kind, world: MicroWorld) -> Tokenizer:
    """Byte-level BPE of some stories, its special tokens renamed."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    learned = train_byte_bpe([s.text for s in world.stories(STORIES, seed=0)], BPE_SIZE)
    names = dict(zip((CLS, SEP, PAD, UNK, MASK), kind.special, strict=True))
    ids = {names.get(piece, piece): id for piece, id in learned.ids.items()}
    tokenizer = Tokenizer(models.BPE(ids, learned.merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore
    tokenizer.add_special_tokens(list(kind.special))
    return tokenizer


def _unigram(kind: Kind, world: MicroWorld) -> Tokenizer:
    """Whole words and single letters, words more probable than what they could be cut into."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    cls, sep, pad, unk, mask = kind.special
    words = [word for word in world.tokenizer.vocab if not word.startswith(("[", "#"))]
    letters = sorted({letter for word in words for letter in word} | {"▁"})
    pieces = [(token, 0.0) for token in (pad, unk, cls, sep, mask)]
    pieces += [(f"▁{word}", -log(len(words))) for word in words]
    pieces += [(letter, -2 * log(len(words))) for letter in letters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()  # type: ignore[assignment]
    tokenizer.add_special_tokens([cls, sep, pad, unk, mask])
    return tokenizer


@contextmanager
def _silent() -> Iterator[None]:
    """Weights that a checkpoint has not are what is asked here: no warning, no progress bar."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
