"""Which of our weights and settings is which of transformers': one table a family member."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler, pooler_for
from course_lib.family.albert import AlbertConfig, albert_encoder
from course_lib.family.deberta import (
    DebertaConfig,
    DebertaForMaskedLM,
    DebertaV2Config,
    deberta_encoder,
)
from course_lib.family.distilbert import DistilBertConfig, distilbert_encoder
from course_lib.family.electra import ElectraConfig, electra_encoder
from course_lib.family.ernie import ErnieConfig, ernie_encoder
from course_lib.family.eurobert import EuroBertConfig, EuroBertForMaskedLM, eurobert_encoder
from course_lib.family.mobilebert import MobileBertConfig, mobilebert_encoder
from course_lib.family.modernbert import ModernBertConfig, modernbert_encoder
from course_lib.family.nomicbert import NomicBertConfig, nomicbert_encoder
from course_lib.family.roberta import RobertaConfig, roberta_encoder
from course_lib.family.ultrabert import UltraBertConfig, UltraBertForMaskedLM
from course_lib.family.vit import VitConfig, VitEncoder, VitForClassification, vit_encoder
from course_lib.family.xlm import XlmConfig, XlmForLanguageModel, xlm_encoder
from course_lib.family.xlm_roberta import XlmRobertaConfig
from course_lib.files import did_you_mean
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForReplacedTokens,
    BertForTokenClassification,
)
from course_lib.text.byte_bpe import ByteBPE
from course_lib.text.unigram import Unigram
from course_lib.text.wordpiece import WordPiece

from .reading import CheckpointError

Labelled = (  # heads whose classes have names
    BertForClassification | BertForTokenClassification | VitForClassification
)
ForTask = Labelled | BertForQuestionAnswering
Headed = (
    BertForPreTraining
    | DebertaForMaskedLM
    | XlmForLanguageModel
    | BertForMaskedLM
    | BertForReplacedTokens
    | ForTask
)
Model = Headed | Encoder
Tokenizer = WordPiece | ByteBPE | Unigram
MODELS: tuple[type[Model], ...] = (  # most heads first, but fine-tuned ones before all others
    BertForClassification,
    BertForTokenClassification,
    BertForQuestionAnswering,
    VitForClassification,
    BertForPreTraining,
    DebertaForMaskedLM,
    XlmForLanguageModel,
    UltraBertForMaskedLM,
    EuroBertForMaskedLM,
    BertForMaskedLM,
    BertForReplacedTokens,
    VitEncoder,
    Encoder,
)
EXPECTED = f"an Encoder or a {', a '.join(kind.__name__ for kind in MODELS[:-2])}"


@dataclass(frozen=True)
class Family:
    """How one member of the family is called in transformers, and how ours is built."""

    model_type: str  # in transformers' config.json
    config_class: type
    encoder: Callable[[Any, bool], Encoder]  # (config, with a pooler?) -> random encoder
    classes: Mapping[type[Model], str]  # our class -> theirs
    prefix: str  # what transformers puts before encoder names when there are heads
    modules: Mapping[str, str]  # our module or weight -> theirs; # is a number, as of a block
    heads: Mapping[str, str]  # our head -> how the names of its weights begin
    tied: Mapping[str, str]  # their second name -> their first
    settings: Mapping[str, str]  # our setting -> theirs
    fixed: Mapping[str, Any]  # settings that have one value only; absent counts as this value
    absent: Mapping[str, Any] = field(default_factory=dict)  # what else a file without it means
    more: Callable[[Any], dict[str, Any]] = lambda config: {}  # settings theirs has besides
    read: Callable[[dict[str, Any]], dict[str, Any]] = lambda theirs: theirs  # in one spelling
    ours_alone: tuple[type[Model], ...] = ()  # our classes that transformers does not have
    tokenizer: Callable[[Path], Tokenizer] | None = None  # from a folder
    leftovers: tuple[str, ...] = ()  # how weights begin that training left in released files
    dropouts: Mapping[type[Model], str] = field(default_factory=dict)  # our class -> theirs of it
    inputs: Mapping[str, str] = field(default_factory=dict)  # our argument -> theirs, if another
    outputs: Mapping[str, str] = field(default_factory=dict)  # our output -> theirs, if another
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # see convert.parted
    older: Mapping[str, str] = field(default_factory=dict)  # what files may call a module -> theirs
    stored: Mapping[str, str] = field(default_factory=dict)  # theirs -> what its files call it
    joined_in_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # and nowhere else
    of_head: Mapping[type[Model], Mapping[str, str]] = field(default_factory=dict)  # see under_head
    fixed_in: Mapping[type[Model], Mapping[str, Any]] = field(default_factory=dict)  # as `fixed`
    stored_prefix: str = ""  # what stands before encoder names in files, where it is another
    derived: tuple[str, ...] = ()  # settings that `read` makes and no file of theirs has
    aliases: Mapping[str, str] = field(default_factory=dict)  # second names of settings, which win

    @property
    def has_pooler(self) -> bool:
        """Whether transformers' encoder of this family can have a pooler."""
        return "pooler.dense" in self.modules

    def under_head(self, kind: type[Model]) -> Family:
        """The same for one class of ours, with what its weights alone are called in theirs. Where
        the pooler is a part of the head, that of the encoder is a leftover."""
        own = self.of_head.get(kind, {})
        more = ("pooler.",) if own.get("pooler.dense", "pooler.dense") != "pooler.dense" else ()
        leftovers = (*self.leftovers, *more)
        return replace(self, modules={**self.modules, **own}, leftovers=leftovers)


NUMBER = r"\b\d+\b"  # of a block: fc1 and layer_norm2 have none
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
_WITH_CLASSES: tuple[type[Model], ...] = (BertForClassification, BertForTokenClassification)
TASK_HEADS = {"classifier": "classifier", "span": "qa_outputs"}  # the same in every family


def _classes(member: str, masked: type[Model] = BertForMaskedLM) -> dict[type[Model], str]:
    """What nearly all families have: the encoder, a head for masked words, those of fine-tuning."""
    return {
        Encoder: f"{member}Model",
        masked: f"{member}ForMaskedLM",
        BertForClassification: f"{member}ForSequenceClassification",
        BertForTokenClassification: f"{member}ForTokenClassification",
        BertForQuestionAnswering: f"{member}ForQuestionAnswering",
    }


BERT = Family(
    model_type="bert",
    config_class=BertConfig,
    encoder=lambda config, pooler: Encoder(config, pooler=Pooler(config) if pooler else None),
    classes={**_classes("Bert"), BertForPreTraining: "BertForPreTraining"},
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
    leftovers=("fit_denses.",),  # TinyBERT's: matrices to its teacher's width, one a layer
    dropouts={kind: "classifier_dropout" for kind in _WITH_CLASSES},
)

_DENSE_IN_HEAD = {"pooler.dense": "classifier.dense", "classifier": "classifier.out_proj"}
ROBERTA = Family(
    model_type="roberta",
    config_class=RobertaConfig,
    encoder=roberta_encoder,
    classes=_classes("Roberta"),
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
    dropouts=BERT.dropouts,
    of_head={BertForClassification: _DENSE_IN_HEAD},
)

XLM_ROBERTA = replace(
    ROBERTA,
    model_type="xlm-roberta",
    config_class=XlmRobertaConfig,
    classes={ours: name.replace("Roberta", "XLMRoberta") for ours, name in ROBERTA.classes.items()},
    absent={**ROBERTA.absent, "vocab_size": 30_522},
    tokenizer=Unigram.from_file,
)


def _xlm_settings(config: XlmConfig) -> dict[str, Any]:
    """Theirs has no width of the feed-forward part, and no languages where there is one."""
    if config.intermediate_size != 4 * config.hidden_size:
        raise CheckpointError(
            f"an XLM with intermediate_size={config.intermediate_size} was given; transformers' "
            f"is always 4 · hidden_size, {4 * config.hidden_size}."
        )
    languages = config.type_vocab_size
    return {
        "n_langs": max(1, languages),
        "use_lang_emb": languages > 0,
        "gelu_activation": config.hidden_act == "gelu",
    }


def _read_xlm(theirs: dict[str, Any]) -> dict[str, Any]:
    """As ours are spelt."""
    languages = theirs["n_langs"] if theirs["use_lang_emb"] else 0
    return {
        **theirs,
        "n_langs": 0 if languages == 1 else languages,
        "intermediate_size": 4 * theirs["emb_dim"],
        "hidden_act": "gelu" if theirs["gelu_activation"] else "relu",
    }


_COUNTS = {"num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
_OLD_XLM = {"n_words": "vocab_size", "pad_index": "pad_token_id"}  # in released files
XLM = Family(
    model_type="xlm",
    config_class=XlmConfig,
    encoder=xlm_encoder,
    classes={
        **_classes("XLM", XlmForLanguageModel),
        XlmForLanguageModel: "XLMWithLMHeadModel",
        BertForQuestionAnswering: "XLMForQuestionAnsweringSimple",
    },
    prefix="transformer.",
    modules={
        **TASK_HEADS,
        "embeddings.token": "embeddings",
        "embeddings.position": "position_embeddings",
        "embeddings.segment": "lang_embeddings",
        "embeddings.norm": "layer_norm_emb",
        "stack.blocks.#.attention.query": "attentions.#.q_lin",
        "stack.blocks.#.attention.key": "attentions.#.k_lin",
        "stack.blocks.#.attention.value": "attentions.#.v_lin",
        "stack.blocks.#.attention.output": "attentions.#.out_lin",
        "stack.blocks.#.attention_norm": "layer_norm1.#",
        "stack.blocks.#.feed_forward.expand": "ffns.#.lin1",
        "stack.blocks.#.feed_forward.contract": "ffns.#.lin2",
        "stack.blocks.#.output_norm": "layer_norm2.#",
        "mlm": "pred_layer.proj",
    },
    heads={"mlm": "pred_layer."},
    tied={"pred_layer.proj.weight": "embeddings.weight"},
    settings={
        **SETTINGS,
        **{"hidden_size": "emb_dim", "num_layers": "n_layers", "num_heads": "n_heads"},
        **{"type_vocab_size": "n_langs", "hidden_act": "hidden_act", "hidden_dropout": "dropout"},
        **{"attention_dropout": "attention_dropout", "initializer_range": "init_std"},
        **{"causal": "causal", "sinusoidal": "sinusoidal_embeddings"},
    },
    fixed={"is_encoder": True, "asm": False},
    absent={
        **{"vocab_size": 30_145, "emb_dim": 2048, "n_layers": 12, "n_heads": 16, "n_langs": 1},
        **{"use_lang_emb": True, "gelu_activation": True, "pad_token_id": 2},
        "summary_first_dropout": 0.1,
    },
    of_head={BertForClassification: {"classifier": "sequence_summary.summary"}},
    fixed_in={
        BertForClassification: {
            **{"summary_type": "first", "summary_use_proj": True, "summary_activation": None},
            **{"summary_proj_to_labels": True, "summary_last_dropout": 0},
        }
    },
    dropouts={BertForClassification: "summary_first_dropout"},
    more=_xlm_settings,
    read=_read_xlm,
    inputs={"token_type_ids": "langs"},
    aliases={"hidden_size": "emb_dim", **_COUNTS, **_OLD_XLM},
)


def _albert_groups(config: AlbertConfig) -> dict[str, Any]:
    """How many blocks theirs keeps."""
    if config.sharing not in ("all", "none"):
        raise CheckpointError(
            f"an ALBERT with sharing={config.sharing!r} was given; transformers has no such "
            "model: its blocks are shared whole (sharing='all') or not at all ('none')."
        )
    groups = config.num_groups if config.sharing == "all" else config.num_layers
    return {"num_hidden_groups": groups}


_LAYER = "encoder.albert_layer_groups.#.albert_layers.0"
ALBERT = Family(
    model_type="albert",
    config_class=AlbertConfig,
    encoder=albert_encoder,
    classes={**_classes("Albert"), BertForPreTraining: "AlbertForPreTraining"},
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
        **{name: name for name in ("hidden_act", "embedding_size")},
        "num_groups": "num_hidden_groups",
    },
    fixed={"inner_group_num": 1, "position_embedding_type": "absolute"},
    absent={
        **{"hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16_384},
        "classifier_dropout_prob": 0.1,
    },
    more=_albert_groups,
    outputs={"seq_relationship_logits": "sop_logits"},
    tokenizer=Unigram.from_file,
    # Its pair head has none here.
    dropouts={k: "classifier_dropout_prob" for k in (*_WITH_CLASSES, BertForPreTraining)},
)

_BLOCK = "transformer.layer.#"
_NOT_IN_DISTILBERT = ("type_vocab_size", "layer_norm_eps")
DISTILBERT = Family(
    model_type="distilbert",
    config_class=DistilBertConfig,
    encoder=distilbert_encoder,
    classes=_classes("DistilBert"),
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
        **{ours: SETTINGS[ours] for ours in SETTINGS if ours not in _NOT_IN_DISTILBERT},
        **{"hidden_size": "dim", "num_layers": "n_layers", "num_heads": "n_heads"},
        **{"intermediate_size": "hidden_dim", "hidden_act": "activation"},
        **{"hidden_dropout": "dropout", "attention_dropout": "attention_dropout"},
    },
    # Theirs has no setting for the epsilon: it is written into the code.
    fixed={"sinusoidal_pos_embds": False, "layer_norm_eps": 1e-12},
    absent={"seq_classif_dropout": 0.2, "qa_dropout": 0.1},
    tokenizer=WordPiece.from_file,
    of_head={BertForClassification: {"pooler.dense": "pre_classifier"}},
    dropouts={BertForClassification: "seq_classif_dropout", BertForQuestionAnswering: "qa_dropout"},
    aliases={"hidden_size": "dim", **_COUNTS},
)

ELECTRA = Family(
    model_type="electra",
    config_class=ElectraConfig,
    encoder=electra_encoder,
    # For masked words the generator, for replaced ones the discriminator.
    classes={**_classes("Electra"), BertForReplacedTokens: "ElectraForPreTraining"},
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
    dropouts=BERT.dropouts,
    of_head={BertForClassification: _DENSE_IN_HEAD},
)


def _read_ernie(theirs: dict[str, Any]) -> dict[str, Any]:
    """No rows of tasks where the model does not use them."""
    return theirs if theirs["use_task_id"] else {**theirs, "task_type_vocab_size": 0}


ERNIE = replace(
    BERT,
    model_type="ernie",
    config_class=ErnieConfig,
    encoder=ernie_encoder,
    classes={ours: name.replace("Bert", "Ernie") for ours, name in BERT.classes.items()},
    prefix="ernie.",
    modules={**BERT.modules, "embeddings.task": "embeddings.task_type_embeddings"},
    settings={**BERT.settings, "task_types": "task_type_vocab_size"},
    absent={
        **{"vocab_size": 30_522, "max_position_embeddings": 512, "hidden_act": "gelu"},
        **{"task_type_vocab_size": 3, "use_task_id": False},
    },
    more=lambda config: {"use_task_id": config.task_types > 0},
    read=_read_ernie,
    leftovers=(),
)


def _deberta_encoder(config: DebertaConfig, pooler: bool) -> Encoder:
    encoder = deberta_encoder(config)
    encoder.pooler = pooler_for(config) if pooler else None
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


def _choices(choices: str | list[str] | None) -> list[str]:
    words = choices.lower().split("|") if isinstance(choices, str) else choices or []
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
    classes=_classes("Deberta"),
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
    older={
        "cls.predictions": _HEAD,
        "cls.predictions.decoder": f"{_HEAD}.decoder",
        **{f"cls.predictions.transform.{n}": f"{_HEAD}.{n}" for n in ("dense", "LayerNorm")},
    },
    tied={
        # transformers 5.0 to 5.19 gives the head the table, too; 5.20 does not.
        f"{_HEAD}.weight": "embeddings.word_embeddings.weight",
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
        **{"relative_attention": False, "position_biased_input": True, "pos_att_type": None},
        **{"hidden_size": 768, "num_attention_heads": 12, "max_position_embeddings": 512},
        "max_relative_positions": -1,
    },
    more=_deberta_settings,
    read=_read_deberta,
    of_head={BertForClassification: {"pooler.dense": "pooler.dense"}},
    fixed_in={BertForClassification: {"pooler_hidden_act": "gelu", "pooler_dropout": 0}},
    dropouts={BertForClassification: "cls_dropout"},
)
DEBERTA_V2 = replace(
    DEBERTA,
    model_type="deberta-v2",
    config_class=DebertaV2Config,
    classes=_classes("DebertaV2"),
    modules={
        **{ours: theirs for ours, theirs in DEBERTA.modules.items() if _OURS not in ours},
        "stack.positions.norm": "encoder.LayerNorm",
        "stack.convolution.mix": "encoder.conv.conv",
        "stack.convolution.norm": "encoder.conv.LayerNorm",
        **{f"{_OURS}.{name}": f"{_SELF}.{name}_proj" for name in ("query", "key", "value")},
        f"{_OURS}.position_key": f"{_SELF}.pos_key_proj",
        f"{_OURS}.position_query": f"{_SELF}.pos_query_proj",
    },
    tokenizer=Unigram.from_file,
    settings={
        **DEBERTA.settings,
        "span": "position_buckets",
        "furthest": "max_relative_positions",
        "shared_projections": "share_att_key",
        "normed_positions": "norm_rel_ebd",
        "convolution": "conv_kernel_size",
        "conv_act": "conv_act",
    },
    fixed={
        **{"relative_attention": True, "position_biased_input": False, "conv_groups": 1},
        "cut_at_furthest": False,  # transformers has its own rule alone
    },
    absent={
        **DEBERTA.absent,
        **{"hidden_size": 1536, "num_hidden_layers": 24, "num_attention_heads": 24},
        **{"intermediate_size": 6144, "position_buckets": -1, "share_att_key": False},
        **{"norm_rel_ebd": "none", "conv_kernel_size": 0},
    },
    read=_read_deberta_v2,
    leftovers=("mask_predictions.",),  # v3's head that told replaced tokens
)


def _mobilebert_settings(config: MobileBertConfig) -> dict[str, Any]:
    """Their words for what attention reads; refuses what theirs cannot compute."""
    reads, eps = config.attention_input, config.layer_norm_eps
    if reads == "wide":
        raise CheckpointError(
            "a MobileBERT with attention_input='wide' was given, as its teacher has it; "
            "transformers has no such model: its query and key are as wide as the bottleneck."
        )
    _check_epsilon(config.normalization, eps)
    return {
        "use_bottleneck_attention": reads == "bottleneck",
        "key_query_shared_bottleneck": reads == "shared",
    }


def _check_epsilon(normalization: str, eps: float) -> None:
    if normalization == "layer_norm" and eps != 1e-5:
        raise CheckpointError(
            f"a MobileBERT with LayerNorm and layer_norm_eps={eps} was given; only 1e-5 means the "
            "same here and in transformers, where some of its LayerNorms always have that."
        )


def _read_mobilebert(theirs: dict[str, Any]) -> dict[str, Any]:
    """What attention reads, in our words."""
    _check_epsilon(theirs["normalization_type"], theirs["layer_norm_eps"])
    reads = "shared" if theirs["key_query_shared_bottleneck"] else "wide"
    return {**theirs, "reads": "bottleneck" if theirs["use_bottleneck_attention"] else reads}


_ATTEND, _FED = "encoder.layer.#.bottleneck", "encoder.layer.#.ffn.#"
MOBILEBERT = Family(
    model_type="mobilebert",
    config_class=MobileBertConfig,
    encoder=mobilebert_encoder,
    classes={ours: name.replace("Bert", "MobileBert") for ours, name in BERT.classes.items()},
    prefix="mobilebert.",
    modules={
        **BERT.modules,
        "embeddings.project": "embeddings.embedding_transformation",
        "stack.blocks.#.enter.dense": f"{_ATTEND}.input.dense",
        "stack.blocks.#.enter.norm": f"{_ATTEND}.input.LayerNorm",
        "stack.blocks.#.shared.dense": f"{_ATTEND}.attention.dense",
        "stack.blocks.#.shared.norm": f"{_ATTEND}.attention.LayerNorm",
        "stack.blocks.#.stacked.#.feed_forward.expand": f"{_FED}.intermediate.dense",
        "stack.blocks.#.stacked.#.feed_forward.contract": f"{_FED}.output.dense",
        "stack.blocks.#.stacked.#.norm": f"{_FED}.output.LayerNorm",
        "stack.blocks.#.feed_forward_norm": "encoder.layer.#.output.LayerNorm",
        "stack.blocks.#.leave": "encoder.layer.#.output.bottleneck.dense",
        "stack.blocks.#.output_norm": "encoder.layer.#.output.bottleneck.LayerNorm",
        "mlm.extra": "cls.predictions.dense",
    },
    heads=BERT.heads,
    tied=BERT.tied,
    settings={
        **SETTINGS,
        **{name: name for name in ("hidden_act", "embedding_size", "classifier_activation")},
        "bottleneck_size": "intra_bottleneck_size",
        "num_feed_forwards": "num_feedforward_networks",
        **{"normalization": "normalization_type", "attention_input": "reads"},
    },
    fixed={"use_bottleneck": True, "trigram_input": True, "masked_score": None},
    absent={
        **{"use_bottleneck_attention": False, "key_query_shared_bottleneck": True},
        **{"normalization_type": "no_norm", "classifier_activation": True},
        "layer_norm_eps": 1e-12,
    },
    more=_mobilebert_settings,
    read=_read_mobilebert,
    tokenizer=WordPiece.from_file,
    dropouts=BERT.dropouts,
)


def _modernbert_settings(config: ModernBertConfig) -> dict[str, Any]:
    """What theirs says several times; and no special tokens beyond the vocabulary."""
    parts = ("attention", "mlp", "classifier")
    tokens = {"bos": 50_281, "cls": 50_281, "eos": 50_282, "sep": 50_282}
    return {
        **{f"{part}_bias": config.biases for part in parts},
        **{f"{name}_token_id": None for name, id in tokens.items() if id >= config.vocab_size},
        "mlp_dropout": config.hidden_dropout,
        "classifier_activation": config.hidden_act,
    }


def _read_modernbert(theirs: dict[str, Any]) -> dict[str, Any]:
    """As ours are spelt, from the words of released files or the newer ones that transformers
    writes; refuses what ours have one setting for and theirs sets twice."""
    biases = {name: theirs[name] for name in theirs if name in _THEIR_BIASES}
    if len(set(biases.values())) > 1:
        raise ValueError(f"{biases} were given; expected all of them true, or none.")
    if (mlp := theirs["mlp_dropout"]) != theirs["embedding_dropout"]:
        raise ValueError(f"mlp_dropout={mlp!r} was given; expected embedding_dropout's.")
    if (head := theirs["classifier_activation"]) != theirs["hidden_activation"]:
        raise ValueError(f"classifier_activation={head!r} was given; expected hidden_activation's.")
    ropes, layers = theirs.get("rope_parameters") or {}, theirs["num_hidden_layers"]
    scaling = {"rope_type": "default", **(theirs.get("rope_scaling") or {})}  # wins there
    for kind, name in _ROPES.items():
        theirs[name] = _rope_base(scaling, _rope_base(ropes.get(kind) or {}, theirs[name]))
    if (radius := theirs.get("sliding_window")) is not None:
        theirs["local_attention"] = 2 * radius
    every = theirs["global_attn_every_n_layers"]
    if types := theirs.get("layer_types"):
        if len(types) != layers:
            raise ValueError(
                f"layer_types of {len(types)} layers were given; expected num_hidden_layers, "
                f"{layers:,}."
            )
        whole = [layer for layer, kind in enumerate(types) if kind == "full_attention"]
        fits = (n for n in (every, *range(1, layers + 1)) if [*range(0, layers, n)] == whole)
        theirs["global_attn_every_n_layers"] = every = next(fits, None)
    if every is None:
        raise ValueError(f"layer_types={types} was given; expected every n-th layer to be global.")
    return theirs


_ROPES = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}


def _rope_base(rope: Mapping[str, Any], otherwise: Any) -> Any:
    """The base of the angles; raises ValueError where they are stretched in some way."""
    if (form := rope.get("rope_type", rope.get("type", "default"))) != "default":
        raise ValueError(f"rope_type={form!r} was given; expected 'default'.")
    return rope.get("rope_theta", otherwise)


def _in_head(part: str) -> dict[str, str]:
    """ModernBERT's heads for tasks: a dense layer and a norm, and what stands on them."""
    own = {f"{part}.{name}": f"head.{name}" for name in ("dense", "norm")}
    return {**own, "classifier": "classifier", "span": "classifier"}


_THEIR_BIASES = ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias")
MODERNBERT = Family(
    model_type="modernbert",
    config_class=ModernBertConfig,
    encoder=modernbert_encoder,
    classes=_classes("ModernBert"),
    prefix="model.",
    modules={
        "embeddings.token": "embeddings.tok_embeddings",
        "embeddings.norm": "embeddings.norm",
        **{
            f"stack.blocks.#.attention.{name}": f"layers.#.attn.Wqkv.{name}"
            for name in ("query", "key", "value")
        },
        "stack.blocks.#.attention.output": "layers.#.attn.Wo",
        "stack.blocks.#.attention_norm": "layers.#.attn_norm",
        "stack.blocks.#.feed_forward.expand": "layers.#.mlp.Wi",
        "stack.blocks.#.feed_forward.contract": "layers.#.mlp.Wo",
        "stack.blocks.#.output_norm": "layers.#.mlp_norm",
        "stack.norm": "final_norm",
        "mlm.dense": "head.dense",
        "mlm.norm": "head.norm",
        "mlm": "decoder",
    },
    heads={"mlm": "head.", "decoder": "decoder."},  # theirs has it in two parts
    tied={"decoder.weight": "embeddings.tok_embeddings.weight"},
    joined={".Wqkv": ("query", "key", "value")},
    settings={
        **{ours: theirs for ours, theirs in SETTINGS.items() if ours != "type_vocab_size"},
        **{"hidden_act": "hidden_activation", "hidden_dropout": "embedding_dropout"},
        **{"attention_dropout": "attention_dropout", "layer_norm_eps": "norm_eps"},
        **{"biases": "norm_bias", "window": "local_attention"},
        "global_every": "global_attn_every_n_layers",
        **{"global_base": "global_rope_theta", "local_base": "local_rope_theta"},
        "classifier_pooling": "classifier_pooling",
    },
    fixed={
        **{"pre_norm": True, "first_norm": False, "final_norm": True, "rotary": True},
        **{"gated": True, "type_vocab_size": 0},
        **{"decoder_bias": True, "tie_word_embeddings": True},
    },
    absent={
        **{"num_hidden_layers": 22, "global_attn_every_n_layers": 3},
        **{"global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0},
        **{"hidden_activation": "gelu", "classifier_activation": "gelu"},
        **{"classifier_dropout": 0.0, "mlp_dropout": 0.0, "embedding_dropout": 0.0},
    },
    of_head={
        BertForClassification: _in_head("pooler"),
        BertForTokenClassification: _in_head("transform"),
        BertForQuestionAnswering: _in_head("transform"),
    },
    dropouts={**BERT.dropouts, BertForQuestionAnswering: "classifier_dropout"},
    more=_modernbert_settings,
    read=_read_modernbert,
)


def _read_eurobert(theirs: dict[str, Any]) -> dict[str, Any]:
    """The base as one number, the first token's pooling in our word; refuses other head sizes."""
    heads, hidden = theirs["num_attention_heads"], theirs["hidden_size"]
    if (size := theirs.get("head_dim")) and size * heads != hidden:
        raise ValueError(
            f"head_dim={size!r} was given for {heads} heads; expected their sizes to add up to "
            f"hidden_size, {hidden}."
        )
    rope = theirs.get("rope_scaling") or theirs.get("rope_parameters") or {}
    pooling = theirs["classifier_pooling"]
    return {
        **theirs,
        "global_rope_theta": _rope_base(rope, theirs.get("rope_theta", 10_000.0)),
        "classifier_pooling": "cls" if pooling == "bos" else pooling,
    }


EUROBERT = Family(
    model_type="eurobert",
    config_class=EuroBertConfig,
    encoder=eurobert_encoder,
    classes={
        Encoder: "EuroBertModel",
        EuroBertForMaskedLM: "EuroBertForMaskedLM",
        BertForClassification: "EuroBertForSequenceClassification",
        BertForTokenClassification: "EuroBertForTokenClassification",
    },
    prefix="model.",
    modules={
        "embeddings.token": "embed_tokens",
        **{
            f"stack.blocks.#.attention.{ours}": f"layers.#.self_attn.{theirs}_proj"
            for ours, theirs in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o"))
        },
        "stack.blocks.#.attention_norm": "layers.#.input_layernorm",
        "stack.blocks.#.feed_forward.expand": "layers.#.mlp.gate_proj",  # what the curve is on
        "stack.blocks.#.feed_forward.gate": "layers.#.mlp.up_proj",
        "stack.blocks.#.feed_forward.contract": "layers.#.mlp.down_proj",
        "stack.blocks.#.output_norm": "layers.#.post_attention_layernorm",
        "stack.norm": "norm",
        "mlm.decoder": "lm_head",
        "classifier": "classifier",
    },
    heads={"mlm": "lm_head."},
    tied={},
    settings={
        **{n: SETTINGS[n] for n in SETTINGS if n not in ("type_vocab_size", "hidden_dropout")},
        "attention_dropout": "attention_dropout",
        "layer_norm_eps": "rms_norm_eps",
        **{n: n for n in ("hidden_act", "num_key_value_heads", "classifier_pooling")},
        "global_base": "global_rope_theta",
    },
    fixed={
        **{"pre_norm": True, "first_norm": True, "final_norm": True, "rotary": True},
        **{"gated": True, "type_vocab_size": 0, "norm": "rms_norm", "embedding_norm": False},
        **{"biases": False, "attention_bias": False, "mlp_bias": False},
        **{"hidden_dropout": 0.0, "global_every": 1, "tie_word_embeddings": False},
    },
    absent={"hidden_size": 768, "num_attention_heads": 12, "classifier_pooling": "late"},
    of_head={BertForClassification: {"pooler.dense": "dense"}},
    derived=("global_rope_theta",),
    more=lambda config: {
        "rope_parameters": {"rope_type": "default", "rope_theta": config.global_base},
        "classifier_pooling": config.classifier_pooling.replace("cls", "bos"),
    },
    read=_read_eurobert,
)


_OLD_NOMIC = {
    **{"attn.Wqkv": "self_attn", "attn.out_proj": "self_attn.o_proj"},
    **{"mlp.fc11": "mlp.up_proj", "mlp.fc12": "mlp.gate_proj", "mlp.fc2": "mlp.down_proj"},
    **{"norm1": "post_attention_layernorm", "norm2": "post_mlp_layernorm"},
}
NOMIC = replace(
    BERT,
    model_type="nomic_bert",
    config_class=NomicBertConfig,
    encoder=nomicbert_encoder,
    classes={
        ours: name.replace("Bert", "NomicBert", 1)
        for ours, name in BERT.classes.items()
        if ours not in (BertForPreTraining, BertForQuestionAnswering)
    },
    prefix="nomic_bert.",
    modules={
        **{ours: name for ours, name in BERT.modules.items() if ours != "embeddings.position"},
        **{ours: name for ours, name in EUROBERT.modules.items() if ".attention." in ours},
        **{ours: name for ours, name in EUROBERT.modules.items() if ".feed_forward." in ours},
        "stack.blocks.#.attention_norm": "layers.#.post_attention_layernorm",
        "stack.blocks.#.output_norm": "layers.#.post_mlp_layernorm",
        "mlm.norm": "cls.predictions.transform.layer_norm",
    },
    settings={**BERT.settings, "global_base": "global_rope_theta"},
    fixed={
        **{"pre_norm": False, "final_norm": False, "rotary": True, "gated": True},
        **{"biases": True, "global_every": 1, "classifier_pooling": "cls"},
    },
    absent={"hidden_size": 768, "num_attention_heads": 12},
    older={  # so they are in released files, and in those that transformers writes
        "emb_ln": "embeddings.LayerNorm",
        **{f"encoder.layers.#.{old}": f"layers.#.{new}" for old, new in _OLD_NOMIC.items()},
    },
    joined_in_files={".self_attn": ("q_proj", "k_proj", "v_proj")},
    leftovers=(),
    derived=EUROBERT.derived,
    more=lambda config: {
        "rope_parameters": {"rope_type": "default", "rope_theta": config.global_base}
    },
    read=lambda theirs: _read_eurobert(
        {"rope_theta": 1_000.0, **theirs, "classifier_pooling": "cls"}
    ),
)


def _ultrabert_settings(config: UltraBertConfig) -> dict[str, Any]:
    """Layers and bases in their words, and the window as they measure it."""
    layers = map(config.is_global, range(config.num_layers))
    bases = {"full_attention": config.global_base, "sliding_attention": config.local_base}
    return {
        "sliding_window": config.window // 2,
        "layer_types": ["full_attention" if whole else "sliding_attention" for whole in layers],
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()
        },
    }


def _read_ultrabert(theirs: dict[str, Any]) -> dict[str, Any]:
    """As ours are spelt; released configurations list windows and bases a layer, which must be one
    of each kind here. (transformers merges such lists without a word.)"""
    read = _read_eurobert({**theirs, "rope_parameters": None, "rope_theta": None})
    layers, windows = theirs["num_hidden_layers"], theirs.get("attention_windows")
    types = theirs.get("layer_types")
    if windows is not None:
        types = types or ["sliding_attention" if each else "full_attention" for each in windows]
        read["sliding_window"] = _one_of([w for w in windows if w], "attention_windows", 128)
    if types and len(types) != layers:
        raise ValueError(f"{len(types)} layers were given; expected num_hidden_layers, {layers:,}.")
    read["global_attn_every_n_layers"] = _last_of(types, layers) if types else 3
    ropes, bases = theirs.get("rope_parameters") or {}, theirs.get("rope_theta")
    types = types or [("sliding", "full")[(n + 1) % 3 == 0] + "_attention" for n in range(layers)]
    if bases is not None and not isinstance(bases, list | tuple):
        raise ValueError(f"rope_theta={bases!r} was given; expected a list, a base for each layer.")
    for kind, name in _ROPES.items():
        own = [base for base, of in zip(bases or (), types, strict=False) if of == kind]
        read[name] = _rope_base(ropes.get(kind) or {}, _one_of(own, "rope_theta", theirs[name]))
    return {**read, "local_attention": 2 * read["sliding_window"]}


def _one_of(values: list[Any], name: str, otherwise: Any) -> Any:
    """The value that all of them have; raises ValueError where they differ."""
    if len(set(values)) > 1:
        raise ValueError(f"{name} of {values} were given; expected one for each type of layer.")
    return values[0] if values else otherwise


def _last_of(types: list[str], layers: int) -> int:
    """Of how many layers the last one is global; 3 where that fits, as where none is."""
    whole = [layer for layer, kind in enumerate(types) if kind == "full_attention"]
    every = (3, *range(1, layers + 2))
    fits = (n for n in every if [*range(n - 1, layers, n)] == whole)
    if every_n := next(fits, None):
        return every_n
    raise ValueError(f"layer_types={types} was given; expected the last of every n to be global.")


ULTRABERT = replace(
    EUROBERT,
    model_type="ultrabert",
    config_class=UltraBertConfig,
    classes=_classes("Ultrabert", UltraBertForMaskedLM),
    modules={
        **EUROBERT.modules,
        **TASK_HEADS,
        "mlm.first": "head.linear1",
        "mlm.second": "head.linear2",
        "mlm.decoder": "head.decoder",
    },
    heads={"mlm": "head."},
    stored_prefix="ultrabert.",
    older={"cls": "head.decoder"},
    stored={"head.decoder": "cls"},
    settings={
        **EUROBERT.settings,
        "local_base": "local_rope_theta",
        "window": "local_attention",
        "global_every": "global_attn_every_n_layers",
        "prediction_size": "prediction_head_size",
    },
    fixed={n: v for n, v in EUROBERT.fixed.items() if n != "global_every"},
    absent={
        **{"vocab_size": 32_000, "hidden_size": 4_096, "intermediate_size": 11_008},
        **{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": None},
        **{"sliding_window": 128, "classifier_pooling": "cls", "classifier_dropout": 0.0},
        **{"global_rope_theta": 2_560_000.0, "local_rope_theta": 10_000.0},
    },
    of_head={BertForClassification: {}},  # where its pooler is
    dropouts=BERT.dropouts,
    derived=(*_ROPES.values(), "local_attention", "global_attn_every_n_layers"),
    more=_ultrabert_settings,
    read=_read_ultrabert,
)


def _read_vit(theirs: dict[str, Any]) -> dict[str, Any]:
    """Sizes as one number; refuses pictures and patches that are not square, and other poolers."""
    read = dict(theirs)
    for name in ("image_size", "patch_size"):
        size = theirs.get(name)
        if isinstance(size, list | tuple):
            if len(set(size)) != 1:
                raise ValueError(f"{name}={size} was given; expected a square: one number.")
            read[name] = size[0]
    if (width := theirs.get("pooler_output_size")) not in (None, theirs.get("hidden_size", 768)):
        raise ValueError(
            f"pooler_output_size={width} was given; expected hidden_size, "
            f"{theirs.get('hidden_size', 768)}: a pooler is as wide as the encoder here."
        )
    return read


_OF_TEXTS = ("vocab_size", "max_positions", "type_vocab_size", "pad_token_id")
_BLOCK, _OLD_BLOCK = "layers.#", "encoder.layer.#"
_OLD_VIT = {  # so transformers 5.0 has them, and so they are in files, new ones too
    f"{_OLD_BLOCK}.attention.attention.query": f"{_BLOCK}.attention.q_proj",
    f"{_OLD_BLOCK}.attention.attention.key": f"{_BLOCK}.attention.k_proj",
    f"{_OLD_BLOCK}.attention.attention.value": f"{_BLOCK}.attention.v_proj",
    f"{_OLD_BLOCK}.attention.output.dense": f"{_BLOCK}.attention.o_proj",
    f"{_OLD_BLOCK}.layernorm_before": f"{_BLOCK}.layernorm_before",
    f"{_OLD_BLOCK}.intermediate.dense": f"{_BLOCK}.mlp.fc1",
    f"{_OLD_BLOCK}.output.dense": f"{_BLOCK}.mlp.fc2",
    f"{_OLD_BLOCK}.layernorm_after": f"{_BLOCK}.layernorm_after",
}
VIT = Family(
    model_type="vit",
    config_class=VitConfig,
    encoder=vit_encoder,
    classes={VitEncoder: "ViTModel", VitForClassification: "ViTForImageClassification"},
    prefix="vit.",
    modules={
        "embeddings.cls": "embeddings.cls_token",
        "embeddings.position": "embeddings.position_embeddings",
        "embeddings.project": "embeddings.patch_embeddings.projection",
        "stack.blocks.#.attention.query": f"{_BLOCK}.attention.q_proj",
        "stack.blocks.#.attention.key": f"{_BLOCK}.attention.k_proj",
        "stack.blocks.#.attention.value": f"{_BLOCK}.attention.v_proj",
        "stack.blocks.#.attention.output": f"{_BLOCK}.attention.o_proj",
        "stack.blocks.#.attention_norm": f"{_BLOCK}.layernorm_before",
        "stack.blocks.#.feed_forward.expand": f"{_BLOCK}.mlp.fc1",
        "stack.blocks.#.feed_forward.contract": f"{_BLOCK}.mlp.fc2",
        "stack.blocks.#.output_norm": f"{_BLOCK}.layernorm_after",
        "norm": "layernorm",
        "pooler.dense": "pooler.dense",
        "classifier": "classifier",
    },
    older=_OLD_VIT,
    stored={new: old for old, new in _OLD_VIT.items()},
    heads={},
    tied={},
    settings={
        **{ours: SETTINGS[ours] for ours in SETTINGS if ours not in _OF_TEXTS},
        **{name: name for name in ("hidden_act", "image_size", "patch_size", "num_channels")},
    },
    fixed={"positions": "1d", "resize": "bicubic", "qkv_bias": True, "pooler_act": "tanh"},
    more=lambda config: {"encoder_stride": config.patch_size},
    read=_read_vit,
    leftovers=("embeddings.mask_token",),  # of hidden patches: no picture without them reads it
)


def has_pooler(kind: type[Model], config: Any, weights: bool) -> bool:
    """Whether a model of this kind has a pooler: `weights`, whether weights of one are there; of
    one without weights, what stands on it says so. (Of XLM's encoders none has one.)"""
    if config.pooler != "first":
        return weights
    alone = kind is Encoder and type(config) is MobileBertConfig
    return alone or kind in (BertForPreTraining, BertForClassification)


FAMILIES: dict[str, Family] = {  # later members add theirs here
    family.model_type: family
    for family in (
        *(BERT, ROBERTA, ALBERT, DISTILBERT, ELECTRA, ERNIE, DEBERTA, DEBERTA_V2),
        *(XLM, XLM_ROBERTA, MOBILEBERT, MODERNBERT, EUROBERT, NOMIC, ULTRABERT, VIT),
    )
}


def their_inputs(hf_model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A model's arguments under the names that transformers' model of the family gives them; those
    of a model of no family here, such as GPT-2, keep their names."""
    family = FAMILIES.get(hf_model.config.model_type)
    names = family.inputs if family else {}
    return {names.get(name, name): value for name, value in inputs.items()}


def their_name(name: str, family: Family = BERT) -> str:
    """transformers' name of our parameter, without its prefix.

    stack.blocks.3.output_norm.weight -> encoder.layer.3.output.LayerNorm.weight
    Raises CheckpointError for a parameter that the family's table does not list."""
    result = renamed(name.removeprefix("encoder."), family.modules)
    if result is None:
        why = "is the model built from other parts than that family's?"
        if name.removeprefix("encoder.").startswith("pooler."):
            why = "it has no pooler. Set encoder.pooler = None first."
        raise CheckpointError(
            f"the parameter {name} has no counterpart in transformers' {family.model_type}: {why}"
        )
    return result


def newest_name(name: str, family: Family) -> str:
    """The name in the family's table of a weight that an older transformers may have named."""
    return renamed(name, family.older) or name


def stored_name(name: str, family: Family) -> str:
    """What transformers' files call the weight that its model calls so, prefix included."""
    bare = name.removeprefix(family.prefix)
    prefix = name.removesuffix(bare) and (family.stored_prefix or family.prefix)
    return prefix + (renamed(bare, family.stored) or bare)


def renamed(name: str, table: Mapping[str, str]) -> str | None:
    """A weight's name in a table of modules or weights, in which # is a number; None if neither
    the weight nor its module is listed."""
    pattern = re.sub(NUMBER, "#", name)
    module, _, leaf = pattern.rpartition(".")
    result = table.get(pattern) or (f"{table[module]}.{leaf}" if module in table else None)
    numbers = iter(re.findall(NUMBER, name))
    return result and re.sub("#", lambda _: next(numbers), result)


def family_of(config: Any) -> Family:
    for family in FAMILIES.values():
        if type(config) is family.config_class:
            return family
    raise CheckpointError(
        f"a {type(config).__name__} was given; transformers' names are known for "
        f"{', '.join(FAMILIES)}."
    )


def family_named(model_type: object, where: str) -> Family:
    if model_type not in FAMILIES:
        stated = f"describes a {model_type!r}" if model_type else "lacks model_type"
        raise CheckpointError(
            f"{where} {stated}; expected one of {', '.join(FAMILIES)}. Choose a checkpoint of that "
            f"architecture.{did_you_mean(model_type, FAMILIES)}"
        )
    return FAMILIES[str(model_type)]
