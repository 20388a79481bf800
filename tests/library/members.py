"""The members of the family, a row each: how their settings are drawn, which class of transformers
each of their models must equal, and what else is special. Who adds a row here has every test of
test_parity.py for it. Who reads pictures has a row of its own at the end, for test_vit.py."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from parity import TOLERANCE, Case, Configure, as_bert, draw_case, loss_of, replaced_loss
from torch import Tensor, nn

from course_lib.checkpoints import FAMILIES
from course_lib.config import PUBLISHED, BertConfig, published
from course_lib.encoder import Encoder
from course_lib.family.albert import AlbertConfig, albert, albert_for_pretraining
from course_lib.family.bert import bert, bert_for_pretraining
from course_lib.family.deberta import DebertaConfig, DebertaV2Config, deberta, deberta_v3
from course_lib.family.distilbert import DistilBertConfig, distilbert, distilbert_for_masked_lm
from course_lib.family.electra import (
    GENERATOR_SIZE,
    ElectraConfig,
    electra_discriminator,
    electra_encoder,
    generator_config,
)
from course_lib.family.ernie import ErnieConfig, ernie, ernie_for_pretraining
from course_lib.family.eurobert import (
    EuroBertConfig,
    EuroBertForMaskedLM,
    eurobert,
    eurobert_for_masked_lm,
)
from course_lib.family.mobilebert import (
    MobileBertConfig,
    mobilebert,
    mobilebert_for_masked_lm,
    mobilebert_for_pretraining,
)
from course_lib.family.modernbert import (
    ModernBertConfig,
    modernbert,
    modernbert_for_masked_lm,
)
from course_lib.family.nomicbert import NomicBertConfig, nomicbert, nomicbert_for_masked_lm
from course_lib.family.roberta import RobertaConfig, roberta, roberta_for_masked_lm
from course_lib.family.tinybert import tinybert, tinybert_for_masked_lm
from course_lib.family.ultrabert import UltraBertConfig, UltraBertForMaskedLM
from course_lib.family.vit import (
    VitConfig,
    VitForClassification,
    vit,
    vit_for_classification,
)
from course_lib.family.xlm import XlmConfig, XlmForLanguageModel, xlm, xlm_for_language_model
from course_lib.family.xlm_roberta import (
    XlmRobertaConfig,
    xlm_roberta,
    xlm_roberta_for_masked_lm,
)
from course_lib.heads import BertForMaskedLM, BertForPreTraining, BertForReplacedTokens


class Kind(NamedTuple):
    """A model of ours, and transformers' class that it must equal."""

    theirs: str
    head: Callable[[Encoder], nn.Module] | None = None
    pooler: bool = False
    loss: Callable[[Any, Case], Tensor] = loss_of
    by_name: Callable[..., nn.Module] | None = None  # as a lecture asks for a published size


class Member(NamedTuple):
    family: str  # its row in checkpoints.FAMILIES
    published: str  # its row in PUBLISHED, if it has one
    draw: Configure
    kinds: dict[str, Kind]
    varied: dict[str, tuple[Callable[[Case], Any], set[Any]]]  # what the drawn cases must hold
    spoil: Callable[[Any, Case], Any]  # makes the first kind another model, which must be seen
    counts: dict[str, tuple[int | None, ...]]  # of the kinds with by_name; None: not printed
    # Models that began in transformers: settings in its words, and what they are in ours.
    began: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (({}, {}),)
    tasks: tuple[str, ...] = ("classes", "regression", "tokens", "answers")  # of test_parity_tasks
    seeds: Sequence[int] = range(12)
    draw_exact: Configure | None = None  # in float64, where it is another than draw
    arrange: Callable[[Case, int], Case] = lambda case, seed: case
    bound: dict[torch.dtype, float] = TOLERANCE
    scores: bool = True  # whether scores before the softmax are one product of query and key

    def make(self, kind: str, config: Any) -> Any:
        _, head, pooler, *_ = self.kinds[kind]
        encoder = FAMILIES[self.family].encoder(config, pooler)
        return encoder if head is None else head(encoder)

    def case(self, seed: int, dtype: torch.dtype = torch.float32) -> Case:
        draw = self.draw_exact if self.draw_exact and dtype == torch.float64 else self.draw
        return self.arrange(draw_case(seed, draw), seed)


def setting(name: str, *values: Any) -> tuple[Callable[[Case], Any], set[Any]]:
    return lambda case: getattr(case.config, name), set(values)


def compared(value: float, other: float) -> int:
    return (value > other) - (value < other)


WIDTH_OF_TABLES = {
    "E to H": (lambda c: compared(c.config.embedding_size, c.config.hidden_size), {-1, 0, 1})
}
BOTH_GELUS = {"GELU": setting("hidden_act", "gelu", "gelu_new")}


# ---------------------------------------------------------------- how their settings are drawn


def as_roberta(
    settings: dict[str, Any], draw: random.Random, kind: type[RobertaConfig] = RobertaConfig
) -> RobertaConfig:
    """The padding id is its own or another, as are the segments."""
    pad = draw.choice([1, 1, 0, 5])
    more = {"pad_token_id": pad, "type_vocab_size": draw.choice([1, 1, 2])}
    return kind(**{**settings, **more, "max_positions": settings["max_positions"] + pad})


def padded_by_its_id(case: Case, seed: int) -> Case:
    """Padding has the padding's id, to the right or (every fourth) the left."""
    pad, vocab = case.config.pad_token_id, case.config.vocab_size
    inputs, labels = dict(case.inputs), case.labels
    if seed % 4 == 1:
        inputs = {name: value.flip(1) for name, value in inputs.items()}
        labels = labels.flip(1)
    ids = torch.where(inputs["input_ids"] == pad, (pad + 1) % vocab, inputs["input_ids"])
    inputs["input_ids"] = torch.where(inputs["attention_mask"].bool(), ids, pad)
    return case._replace(inputs=inputs, labels=labels)


def as_albert(settings: dict[str, Any], draw: random.Random, **changes: Any) -> AlbertConfig:
    """E below, at or above H, any number of groups, both GELUs; `changes` are settings to fix."""
    layers, hidden = settings["num_layers"], settings["hidden_size"]
    more = {
        "embedding_size": draw.choice([8, 9, hidden - 1, hidden, hidden + 4]),
        "num_groups": draw.choice([g for g in range(1, layers + 1) if layers % g == 0]),
        "hidden_act": draw.choice(["gelu", "gelu_new"]),
    }
    return AlbertConfig(**{**settings, **more, **changes})


def as_distilbert(settings: dict[str, Any], draw: random.Random) -> DistilBertConfig:
    """Without segments, with one of the two forms of GELU and any padding id."""
    more = {"type_vocab_size": 0, "hidden_act": draw.choice(["gelu", "gelu_new"])}
    return DistilBertConfig(**{**settings, **more, "pad_token_id": draw.choice([0, 0, 3])})


def as_tinybert(settings: dict[str, Any], draw: random.Random) -> BertConfig:
    """A feed-forward part that is no multiple of the width, as 1200 is not of 312."""
    wide = 4 * settings["hidden_size"] - draw.randint(1, settings["hidden_size"] - 1)
    return BertConfig(**{**settings, "intermediate_size": wide})


def as_tinybert_4(settings: dict[str, Any], draw: random.Random) -> BertConfig:
    """312 wide, 12 heads of 26 and 1200 between, of a drawn depth and vocabulary."""
    depth = {"num_layers": draw.choice([1, 2, 4])}
    return BertConfig(**{**settings, **PUBLISHED["tinybert"]["4"], **depth})


def as_electra(settings: dict[str, Any], draw: random.Random) -> ElectraConfig:
    """Tables below, at or above the width H of the network."""
    hidden = settings["hidden_size"]
    return ElectraConfig(**settings, embedding_size=draw.choice([8, 9, hidden, hidden, hidden + 4]))


def as_ernie(settings: dict[str, Any], draw: random.Random) -> ErnieConfig:
    """ReLU more often than the GELUs, with task embeddings or without."""
    more = {"hidden_act": draw.choice(["relu", "relu", "gelu"]), "task_types": draw.choice([0, 3])}
    return ErnieConfig(**{**settings, **more})


def as_xlm(settings: dict[str, Any], draw: random.Random, causal: bool = False) -> XlmConfig:
    """Some languages or none, GELU or ReLU, any padding id; positions drawn or sines."""
    more = {
        "intermediate_size": 4 * settings["hidden_size"],
        "type_vocab_size": draw.choice([0, 2, 4, 4]),
        "pad_token_id": draw.choice([2, 2, 0, 7]),
        "hidden_act": draw.choice(["gelu", "gelu", "relu"]),
        "sinusoidal": draw.random() < 0.3,
    }
    return XlmConfig(**{**settings, **more, "causal": causal})


def as_mobilebert(settings: dict[str, Any], draw: random.Random) -> MobileBertConfig:
    """N below, at or above H, one to three feed-forward parts, both normalisations and poolers."""
    hidden, norm = settings["hidden_size"], draw.choice(["no_norm", "no_norm", "layer_norm"])
    more = {
        "hidden_act": draw.choice(["relu", "relu", "gelu"]),
        "embedding_size": draw.choice([3, hidden - 1]),
        "bottleneck_size": settings["num_heads"]
        * draw.choice([8, hidden // settings["num_heads"], 12]),
        "num_feed_forwards": draw.choice([1, 2, 3]),
        "normalization": norm,
        "layer_norm_eps": 1e-12 if norm == "no_norm" else 1e-5,
        "attention_input": draw.choice(["shared", "shared", "bottleneck"]),
        "classifier_activation": draw.random() < 0.5,
    }
    return MobileBertConfig(**{**settings, **more})


def as_modernbert(settings: dict[str, Any], draw: random.Random) -> ModernBertConfig:
    """Windows below and above the length, every layer global or every second or third, other bases,
    with biases or without; heads of even size."""
    more = {
        "hidden_size": settings["num_heads"] * draw.choice([8, 10, 12]),
        "type_vocab_size": 0,
        "pad_token_id": draw.choice([0, 3]),
        "hidden_act": draw.choice(["gelu", "gelu_new"]),
        "layer_norm_eps": draw.choice([1e-5, 1e-12]),
        "window": draw.choice([1, 2, 7, 10, 128]),
        "global_every": draw.choice([1, 2, 3, 3]),
        "global_base": draw.choice([160_000.0, 500.0]),
        "biases": draw.random() < 0.3,
        "classifier_pooling": draw.choice(["cls", "mean"]),
    }
    return ModernBertConfig(**{**settings, **more})


def as_eurobert(
    settings: dict[str, Any], draw: random.Random, kind: type[EuroBertConfig] = EuroBertConfig
) -> EuroBertConfig:
    """One, two or as many heads of keys as of queries; SiLU or both GELUs; heads of even size."""
    heads = draw.choice([1, 2, 3, 4, 6])
    more = {
        "num_heads": heads,
        "num_key_value_heads": draw.choice([n for n in (1, 2, heads) if heads % n == 0]),
        "hidden_size": heads * draw.choice([8, 10, 12]),
        "type_vocab_size": 0,
        "pad_token_id": draw.choice([0, 3]),
        "hidden_act": draw.choice(["silu", "silu", "gelu", "gelu_new"]),
        "layer_norm_eps": draw.choice([1e-5, 1e-6]),
        "global_base": draw.choice([250_000.0, 500.0]),
        "classifier_pooling": draw.choice(kind.choices["classifier_pooling"]),
    }
    return kind(**{**settings, **more, **_layers(settings, draw, kind)})


def _layers(settings: dict[str, Any], draw: random.Random, kind: type) -> dict[str, Any]:
    """UltraBERT's: odd radii and even, below and above the length, and the last of n global."""
    if kind is EuroBertConfig:
        return {}
    return {
        "window": 2 * draw.choice([1, 3, 4, 5, 128]),
        "global_every": draw.choice([3, 3, *range(1, settings["num_layers"] + 1)]),
        "local_base": draw.choice([10_000.0, 90.0]),
        "prediction_size": draw.choice([5, 24, 40]),
    }


def as_nomicbert(settings: dict[str, Any], draw: random.Random) -> NomicBertConfig:
    """One to three segments, SiLU or both GELUs, other bases; heads of even size."""
    more = {
        "hidden_size": settings["num_heads"] * draw.choice([8, 10, 12]),
        "type_vocab_size": draw.choice([2, 2, 3]),
        "pad_token_id": draw.choice([0, 3]),
        "hidden_act": draw.choice(["silu", "silu", "gelu", "gelu_new"]),
        "layer_norm_eps": draw.choice([1e-5, 1e-12]),
        "global_base": draw.choice([1_000.0, 77.0]),
    }
    return NomicBertConfig(**{**settings, **more})


def as_vit(settings: dict[str, Any], draw: random.Random) -> VitConfig:
    """Patches of one to five pixels, one to sixteen of them, grey, coloured or of four channels."""
    texts = ("vocab_size", "max_positions", "type_vocab_size")
    patch = draw.choice([1, 2, 3, 5])
    more: dict[str, Any] = {
        "hidden_act": draw.choice(["gelu", "gelu_new"]),
        "layer_norm_eps": draw.choice([1e-12, 1e-6]),
        "patch_size": patch,
        "image_size": patch * draw.choice([1, 2, 3, 4]),
        "num_channels": draw.choice([1, 3, 4]),
    }
    return VitConfig(**{k: v for k, v in settings.items() if k not in texts}, **more)


def seen(case: Case, seed: int) -> Case:
    """A batch of pictures for that of texts."""
    config, batch = case.config, len(case.pair)
    size = (batch, config.num_channels, config.image_size, config.image_size)
    pixels = torch.randn(size, generator=torch.Generator().manual_seed(80 + seed))
    labels = torch.zeros(batch, config.max_positions, dtype=torch.long)
    return case._replace(inputs={"pixel_values": pixels}, labels=labels)


def of_pictures(outputs: Any, case: Case) -> Tensor:
    """Mean over the pictures of a classifier's loss."""
    return F.cross_entropy(outputs.logits, case.pair)


def placed(case: Case, seed: int, both_sides: bool = True) -> Case:
    """In two cases of three positions are given, any row for any token; every fourth is padded at
    the left."""
    inputs, labels = dict(case.inputs), case.labels
    if seed % 3:
        make = torch.Generator().manual_seed(70 + seed)
        rows = torch.randint(case.config.max_positions, labels.shape, generator=make)
        inputs["position_ids"] = rows
    if seed % 4 == 1 and both_sides:
        inputs = {name: value.flip(1) for name, value in inputs.items()}
        labels = labels.flip(1)
    return case._replace(inputs=inputs, labels=labels)


SUBSETS: tuple[tuple[str, ...], ...] = (("c2p", "p2c"), ("c2p",), ("p2c",), ())
# transformers computes DeBERTa's scale sqrt(D·n), n scores a pair, in float32 whatever the weights
# are. Where D·n is a square the root is exact, and the second generation can be held to 1e-10. The
# first also normalises its layers in float32: there float64 shows what that rounding leaves, 6e-8 a
# LayerNorm; the largest distance seen is 5e-7.
EXACT = {1: (9, 16), 2: (8, 18), 3: (12, 27)}  # n -> head sizes D
FIRST_GENERATION = {torch.float32: 1e-5, torch.float64: 1e-6}


def as_deberta(
    kind: type[DebertaConfig], exact: bool, settings: dict[str, Any], draw: random.Random
) -> DebertaConfig:
    span, furthest = draw.choice([(5, 9), (8, 33), (16, 20), (40, 64)])
    terms = draw.choice(SUBSETS)
    sizes = EXACT[1 + len(terms)] if exact else (8, 9, 11)
    settings = {
        **settings,
        "hidden_size": settings["num_heads"] * draw.choice(sizes),
        "type_vocab_size": draw.choice([0, 0, 2]),
        "hidden_act": draw.choice(["gelu", "gelu_new"]),
        "span": span,
        "terms": terms,
    }
    if kind is DebertaV2Config:
        settings |= {
            "furthest": furthest,
            "shared_projections": draw.random() < 0.5,
            "normed_positions": draw.random() < 0.5,
            "convolution": draw.choice([0, 3]),
            "conv_act": draw.choice(["tanh", "gelu"]),
        }
    return kind(**settings)


def softer(case: Case, seed: int) -> Case:
    """Weights a little smaller than other families': three products a score soon make scores of
    25 and more, where transformers' own float32 is 1e-5 from its own float64."""
    return case._replace(sd=0.7 * case.sd)


def unbounded(case: Case, seed: int) -> Case:
    """Smaller weights where nothing brings states back to length one: without LayerNorm they grow
    with every layer, at a standard deviation of 0.29 to 10^7 in three, and scores to 10^10, where
    float32 has no softmax left to compare."""
    kept = case.config.normalization == "layer_norm"
    return case if kept else case._replace(sd=0.4 * case.sd)


def growing(case: Case, seed: int) -> Case:
    """Weights a little smaller: no norm follows a block, states grow, and at a standard deviation
    of 0.25 in four layers of 84 transformers' own float32 gradients are 1e-5 from its float64."""
    return case._replace(sd=0.7 * case.sd)


# ---------------------------------------------------------------- how they are spoilt


def move_a_weight(ours: Any, case: Case) -> None:
    ours.encoder.stack.blocks[0].attention.key.weight[0, 0] += 1e-3


def another_gelu(ours: Any, case: Case) -> None:
    part = ours.rtd if hasattr(ours, "rtd") else ours.encoder.stack.blocks[0].feed_forward
    part.gelu_form = "tanh" if part.gelu_form == "none" else "none"


def gelu_for_relu(ours: Any, case: Case) -> None:
    """What a model gets that takes transformers' default for ERNIE's."""
    form = "relu" if ours.mlm.gelu_form == "none" else "none"
    for part in (ours.mlm, *(block.feed_forward for block in ours.encoder.stack.blocks)):
        part.gelu_form = form


def layers_in_the_other_order(ours: Any, case: Case) -> None:
    ours.encoder.stack.blocks = nn.ModuleList(list(ours.encoder.stack.blocks)[::-1])


def positions_as_berts(ours: Any, case: Case) -> None:
    ours.encoder.embeddings.make_position_ids = lambda ids: torch.arange(ids.shape[1])


def languages_in_the_other_order(ours: Any, case: Case) -> None:
    table = ours.encoder.embeddings.segment.weight
    table.copy_(table.flip(0))


def previous_before_next(ours: Any, case: Case) -> None:
    """The trigram the other way round."""
    weight = ours.encoder.embeddings.project.weight
    following, own, preceding = weight.clone().chunk(3, dim=1)
    weight.copy_(torch.cat([preceding, own, following], dim=1))


def gate_before_input(ours: Any, case: Case) -> None:
    """GELU over the other half."""
    weight = ours.encoder.stack.blocks[0].feed_forward.expand.weight
    weight.copy_(torch.cat(weight.clone().chunk(2)[::-1]))


def gate_instead_of_input(ours: Any, case: Case) -> None:
    """The activation over the other matrix."""
    part = ours.encoder.stack.blocks[0].feed_forward
    part.expand, part.gate = part.gate, part.expand


def look_ahead(ours: Any, case: Case) -> None:
    ours.encoder.stack.causal = False


def move_a_distance(ours: Any, case: Case) -> None:
    row = ours.encoder.stack.positions.table.weight[case.config.span]
    row += 1e-3 * torch.randn(case.config.hidden_size)


def patches_in_columns(ours: Any, case: Case) -> None:
    """Positions as if patches were read from the top down; that of the class token stays."""
    table, side = ours.encoder.embeddings.position, case.config.patches_across
    patches = table[0, 1:].unflatten(0, (side, side)).transpose(0, 1).flatten(0, 1).clone()
    table[0, 1:] = patches


# ---------------------------------------------------------------- the rows

BERT = Member(
    family="bert",
    published="bert",
    draw=as_bert,
    kinds={
        "pretraining": Kind(
            "BertForPreTraining", BertForPreTraining, pooler=True, by_name=bert_for_pretraining
        ),
        "masked": Kind("BertForMaskedLM", BertForMaskedLM),
        "encoder": Kind("BertModel", pooler=True, by_name=bert),
        "bare": Kind("BertModel", by_name=lambda size: Encoder(published("bert", size))),
    },
    varied=BOTH_GELUS,
    spoil=move_a_weight,
    counts={  # the pre-training model, the encoder with pooler and without
        "base": (110_106_428, 109_482_240, 108_891_648),
        "large": (336_226_108, 335_141_888, 334_092_288),
        "base-cased": (None, 108_310_272, 107_719_680),
        "large-cased": (None, 333_579_264, 332_529_664),
        "base-chinese": (None, 102_267_648, 101_677_056),
        "multilingual-cased": (None, 177_853_440, 177_262_848),
        "multilingual-uncased": (None, 167_356_416, 166_765_824),
        "tiny": (None, 4_385_920, None),
        "mini": (None, 11_170_560, None),
        "small": (None, 28_763_648, None),
        "medium": (None, 41_373_184, None),
    },
)
ROBERTA = Member(
    family="roberta",
    published="roberta",
    draw=as_roberta,
    arrange=padded_by_its_id,
    kinds={
        "masked": Kind("RobertaForMaskedLM", BertForMaskedLM, by_name=roberta_for_masked_lm),
        "encoder": Kind("RobertaModel", pooler=True, by_name=roberta),
        "bare": Kind("RobertaModel", by_name=partial(roberta, pooler=False)),
    },
    varied={
        "padded at the right": (lambda case: bool(case.real[:, -1].all()), {False, True}),
        "padded at the left": (lambda case: bool(case.real[:, 0].all()), {False, True}),
        "padding id": setting("pad_token_id", 0, 1, 5),
        "segments": setting("type_vocab_size", 1, 2),
    },
    spoil=positions_as_berts,
    counts={
        "base": (124_697_433, 124_645_632, 124_055_040),
        "large": (None, 355_359_744, 354_310_144),
    },
    began=(({"type_vocab_size": 1, "layer_norm_eps": 1e-5}, {"longest_text": 28}),),
)
XLM_ROBERTA = ROBERTA._replace(
    family="xlm-roberta",
    published="xlm-roberta",
    draw=partial(as_roberta, kind=XlmRobertaConfig),
    kinds={
        "masked": Kind("XLMRobertaForMaskedLM", BertForMaskedLM, by_name=xlm_roberta_for_masked_lm),
        "encoder": Kind("XLMRobertaModel", pooler=True, by_name=xlm_roberta),
        "bare": Kind("XLMRobertaModel", by_name=partial(xlm_roberta, pooler=False)),
    },
    counts={
        "base": (None, 278_043_648, 277_453_056),
        "large": (None, 559_890_432, 558_840_832),
    },
    seeds=range(8),
)
XLM = Member(
    family="xlm",
    published="xlm",
    draw=as_xlm,
    arrange=placed,
    kinds={
        "masked": Kind("XLMWithLMHeadModel", XlmForLanguageModel, by_name=xlm_for_language_model),
        "encoder": Kind("XLMModel", by_name=xlm),
    },
    varied={
        "activation": setting("hidden_act", "gelu", "relu"),
        "languages": setting("type_vocab_size", 0, 2, 4),
        "sines": setting("sinusoidal", False, True),
        "padding id": setting("pad_token_id", 0, 2, 7),
        "padded at the left": (lambda case: bool(case.real[:, 0].all()), {False, True}),
        "positions given": (lambda case: "position_ids" in case.inputs, {False, True}),
    },
    spoil=languages_in_the_other_order,
    counts={  # table, 512 positions, languages, LayerNorm, layers of 12H² + 13H; a bias a word
        "xnli15": (249_071_384, 248_976_384),
        "en": (667_119_041, 667_088_896),
        "17": (571_696_960, 571_496_960),
        "100": (571_696_960, 571_496_960),
    },
    began=(
        ({}, {"type_vocab_size": 0, "intermediate_size": 96, "pad_token_id": 2}),
        (
            {"n_langs": 4, "gelu_activation": False, "sinusoidal_embeddings": True},
            {"type_vocab_size": 4, "hidden_act": "relu", "sinusoidal": True},
        ),
        ({"n_langs": 4, "use_lang_emb": False}, {"type_vocab_size": 0}),
        ({"n_langs": 1, "causal": True}, {"type_vocab_size": 0, "causal": True}),
    ),
)
XLM_CAUSAL = XLM._replace(
    tasks=(),
    draw=partial(as_xlm, causal=True),
    arrange=partial(placed, both_sides=False),
    varied={"causal": setting("causal", True), "languages": setting("type_vocab_size", 0, 2, 4)},
    spoil=look_ahead,
    began=(({"causal": True, "n_langs": 4}, {"causal": True, "type_vocab_size": 4}),),
    scores=False,  # theirs, taken from query and key, do not show who is hidden
)
ALBERT = Member(
    family="albert",
    published="albert",
    draw=as_albert,
    kinds={
        "pretraining": Kind(
            "AlbertForPreTraining", BertForPreTraining, pooler=True, by_name=albert_for_pretraining
        ),
        "masked": Kind("AlbertForMaskedLM", BertForMaskedLM),
        "encoder": Kind("AlbertModel", pooler=True, by_name=albert),
        "bare": Kind("AlbertModel", by_name=partial(albert, pooler=False)),
    },
    varied={
        **BOTH_GELUS,
        **WIDTH_OF_TABLES,
        "more than one group": (lambda c: compared(c.config.num_groups, 1), {0, 1}),
        "fewer groups than layers": (
            lambda c: compared(c.config.num_layers, c.config.num_groups) * c.config.num_groups,
            {0, 1, 2},
        ),
    },
    spoil=another_gelu,
    counts={
        "base": (11_813_810, 11_683_584, 11_092_992),
        "large": (None, 17_683_968, 16_634_368),
        "xlarge": (None, 58_724_864, 54_528_512),
        "xxlarge": (None, 222_595_584, 205_814_272),
    },
    # Its pair head drops out a tenth while training: that must not matter in evaluation.
    began=(
        (
            {"embedding_size": 10, "num_hidden_groups": 2, "classifier_dropout_prob": 0.1},
            {"embedding_size": 10, "num_groups": 2},
        ),
    ),
)
DISTILBERT = Member(
    family="distilbert",
    published="distilbert",
    draw=as_distilbert,
    kinds={
        "masked": Kind("DistilBertForMaskedLM", BertForMaskedLM, by_name=distilbert_for_masked_lm),
        "encoder": Kind("DistilBertModel", by_name=distilbert),
    },
    varied={
        **BOTH_GELUS,
        "padding id": setting("pad_token_id", 0, 3),
        "segments": (lambda case: "token_type_ids" in case.inputs, {False}),
    },
    spoil=layers_in_the_other_order,
    counts={"base": (66_985_530, 66_362_880)},
    began=(
        (
            {"hidden_dim": 50},
            {"intermediate_size": 50, "num_layers": 2, "type_vocab_size": 0},
        ),
    ),
)
TINYBERT = BERT._replace(
    published="tinybert",
    tasks=(),  # BERT's
    draw=as_tinybert,
    kinds={
        "masked": Kind("BertForMaskedLM", BertForMaskedLM, by_name=tinybert_for_masked_lm),
        "encoder": Kind("BertModel", pooler=True, by_name=tinybert),
        "bare": Kind("BertModel", by_name=partial(tinybert, pooler=False)),
    },
    varied={},
    counts={"4": (None, 14_350_248, 14_252_592), "6": (None, 66_955_008, 66_364_416)},
    seeds=range(8),
)
TINYBERT_4 = TINYBERT._replace(
    draw=as_tinybert_4,
    # At 312 wide, weights of 0.2 would drive every softmax to one word.
    arrange=lambda case, seed: case._replace(sd=0.05),
    varied={
        "width": setting("hidden_size", 312),
        "heads": setting("head_size", 26),
        "feed-forward": setting("intermediate_size", 1_200),
    },
    seeds=(0, 2),
)
ELECTRA = Member(
    family="electra",
    published="electra",
    draw=as_electra,
    kinds={
        "discriminator": Kind(
            "ElectraForPreTraining",
            BertForReplacedTokens,
            loss=replaced_loss,
            by_name=electra_discriminator,
        ),
        "generator": Kind(
            "ElectraForMaskedLM",
            BertForMaskedLM,
            by_name=lambda size: BertForMaskedLM(
                electra_encoder(
                    generator_config(
                        published("electra", size, ElectraConfig), GENERATOR_SIZE[size]
                    )
                )
            ),
        ),
        "encoder": Kind(
            "ElectraModel",
            by_name=lambda size: electra_encoder(published("electra", size, ElectraConfig)),
        ),
    },
    varied=WIDTH_OF_TABLES,
    spoil=another_gelu,
    counts={  # the discriminator's encoder and its head
        "small": (13_483_008 + 66_049, None, 13_483_008),
        "base": (108_891_648 + 591_361, None, 108_891_648),
        "large": (334_092_288 + 1_050_625, None, 334_092_288),
    },
    began=tuple(({"embedding_size": size}, {"embedding_size": size}) for size in (10, 24)),
)
ERNIE = Member(
    family="ernie",
    published="ernie",
    draw=as_ernie,
    kinds={
        "pretraining": Kind(
            "ErnieForPreTraining", BertForPreTraining, pooler=True, by_name=ernie_for_pretraining
        ),
        "masked": Kind("ErnieForMaskedLM", BertForMaskedLM),
        "encoder": Kind("ErnieModel", pooler=True, by_name=ernie),
        "bare": Kind("ErnieModel", by_name=partial(ernie, pooler=False)),
    },
    varied={
        "activation": setting("hidden_act", "relu", "gelu"),
        "tasks": setting("task_types", 0, 3),
    },
    spoil=gelu_for_relu,
    counts={"base": (None, 99_866_112, 99_275_520)},
    began=(
        ({}, {"hidden_act": "gelu", "task_types": 0}),  # their defaults are not ERNIE's
        ({"hidden_act": "relu", "use_task_id": True}, {"hidden_act": "relu", "task_types": 3}),
    ),
)
MOBILEBERT = Member(
    family="mobilebert",
    published="mobilebert",
    draw=as_mobilebert,
    arrange=unbounded,
    kinds={
        "pretraining": Kind(
            "MobileBertForPreTraining",
            BertForPreTraining,
            pooler=True,
            by_name=mobilebert_for_pretraining,
        ),
        "masked": Kind("MobileBertForMaskedLM", BertForMaskedLM, by_name=mobilebert_for_masked_lm),
        "encoder": Kind("MobileBertModel", pooler=True, by_name=mobilebert),
        "tanh": Kind(
            "MobileBertModel", pooler=True, by_name=partial(mobilebert, classifier_activation=True)
        ),
    },
    varied={
        "activation": setting("hidden_act", "relu", "gelu"),
        "normalisation": setting("normalization", "no_norm", "layer_norm"),
        "attention reads": setting("attention_input", "shared", "bottleneck"),
        "feed-forwards": setting("num_feed_forwards", 1, 2, 3),
        "pooler": setting("classifier_activation", False, True),
        "N to H": (lambda c: compared(c.config.bottleneck_size, c.config.hidden_size), {-1, 0, 1}),
    },
    spoil=previous_before_next,
    counts={  # without a pooler's weights, and with them (transformers' default)
        "base": (36_597_564, 36_596_538, 24_581_888, 24_844_544),
        "tiny": (27_501_372, 27_500_346, 15_485_696, None),
    },
    began=(
        (
            {"embedding_size": 10, "intra_bottleneck_size": 12},
            {"classifier_activation": True, "attention_input": "shared", "bottleneck_size": 12},
        ),
        (
            {
                **{"embedding_size": 10, "intra_bottleneck_size": 30},
                **{"classifier_activation": False, "use_bottleneck_attention": True},
                **{"key_query_shared_bottleneck": False, "num_feedforward_networks": 2},
                **{"normalization_type": "layer_norm", "layer_norm_eps": 1e-5},
            },
            {
                **{"classifier_activation": False, "attention_input": "bottleneck"},
                **{"num_feed_forwards": 2, "normalization": "layer_norm"},
            },
        ),
    ),
)
MODERNBERT = Member(
    family="modernbert",
    published="modernbert",
    draw=as_modernbert,
    arrange=growing,
    kinds={
        "masked": Kind("ModernBertForMaskedLM", BertForMaskedLM, by_name=modernbert_for_masked_lm),
        "encoder": Kind("ModernBertModel", by_name=modernbert),
    },
    varied={
        **BOTH_GELUS,
        "biases": setting("biases", False, True),
        "a local layer": (lambda c: c.config.num_layers > 1 < c.config.global_every, {False, True}),
        "window below the length": (
            lambda c: c.config.window // 2 + 1 < c.mask.shape[1],
            {False, True},
        ),
    },
    spoil=gate_before_input,
    counts={"base": (149_655_232, 149_014_272), "large": (395_881_664, 394_781_696)},
    began=(
        ({"pad_token_id": 3}, {"global_every": 3, "window": 128, "biases": False}),
        (
            {
                **{"pad_token_id": 3, "local_attention": 6, "norm_bias": True, "mlp_bias": True},
                **{"attention_bias": True, "classifier_bias": True, "mlp_dropout": 0.1},
                "embedding_dropout": 0.1,
                "layer_types": ["full_attention", "full_attention"],
                "rope_parameters": {
                    "full_attention": {"rope_type": "default", "rope_theta": 90.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
                },
            },
            {
                **{"global_every": 1, "window": 6, "biases": True, "gated": True},
                **{"global_base": 90.0, "local_base": 20.0, "type_vocab_size": 0},
            },
        ),
    ),
    seeds=range(16),
    scores=False,  # theirs come of one matrix, and are turned
)


def shared_keys(case: Case) -> str:
    groups = case.config.num_key_value_heads
    return "all" if groups == case.config.num_heads else f"{groups} of more"


NO_SPECIAL = {"pad_token_id": 3, "bos_token_id": 1, "eos_token_id": 2}
EUROBERT = Member(
    family="eurobert",
    published="eurobert",
    draw=as_eurobert,
    arrange=growing,
    kinds={
        "masked": Kind("EuroBertForMaskedLM", EuroBertForMaskedLM, by_name=eurobert_for_masked_lm),
        "encoder": Kind("EuroBertModel", by_name=eurobert),
    },
    varied={
        "activation": setting("hidden_act", "silu", "gelu", "gelu_new"),
        "heads of keys": (shared_keys, {"1 of more", "2 of more", "all"}),
    },
    spoil=gate_instead_of_input,
    counts={"210m": (310_266_624, 211_766_016), "2.1b": (2_403_092_736, 2_107_590_912)},
    began=(
        (NO_SPECIAL, {"global_base": 10_000.0, "num_key_value_heads": 3, "pad_token_id": 3}),
        (
            {
                **NO_SPECIAL,
                **{"num_key_value_heads": 1, "hidden_act": "gelu_new", "rms_norm_eps": 1e-3},
                "rope_parameters": {"rope_type": "default", "rope_theta": 77.0},
                "classifier_pooling": "bos",
            },
            {
                **{"num_key_value_heads": 1, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
                **{"global_base": 77.0, "classifier_pooling": "cls"},
            },
        ),
    ),
    tasks=("classes", "regression", "tokens"),  # theirs has no class for answers
    seeds=range(16),
    scores=False,  # theirs are turned after the projections
)
NOMIC = EUROBERT._replace(
    family="nomic_bert",
    published="nomicbert",
    draw=as_nomicbert,
    kinds={
        "masked": Kind("NomicBertForMaskedLM", BertForMaskedLM, by_name=nomicbert_for_masked_lm),
        "encoder": Kind("NomicBertModel", by_name=nomicbert),
    },
    varied={
        "activation": setting("hidden_act", "silu", "gelu", "gelu_new"),
        "segments": setting("type_vocab_size", 2, 3),
        "base": setting("global_base", 1_000.0, 77.0),
    },
    counts={"base": (137_354_304, 136_731_648)},
    began=(
        ({}, {"global_base": 1_000.0, "hidden_act": "silu", "pre_norm": False}),
        (
            {
                **{"pad_token_id": 3, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
                "rope_parameters": {"rope_type": "default", "rope_theta": 77.0},
            },
            {"global_base": 77.0, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
        ),
    ),
)
ULTRABERT = EUROBERT._replace(
    family="ultrabert",
    published="",  # its cards do not say its depth
    draw=partial(as_eurobert, kind=UltraBertConfig),
    kinds={
        "masked": Kind("UltrabertForMaskedLM", UltraBertForMaskedLM),
        "encoder": Kind("UltrabertModel"),
    },
    varied={
        **EUROBERT.varied,
        "every": setting("global_every", 1, 2, 3),
        "window below the length": (
            lambda c: c.config.window // 2 + 1 < c.mask.shape[1],
            {False, True},
        ),
    },
    counts={},
    began=(
        (NO_SPECIAL, {"global_every": 3, "window": 256, "global_base": 2_560_000.0}),
        (
            {**NO_SPECIAL, "attention_windows": [3, 0], "rope_theta": [20.0, 90.0]},
            {"global_every": 2, "window": 6, "global_base": 90.0, "local_base": 20.0},
        ),
        (
            {**NO_SPECIAL, "attention_windows": [0, 0], "num_key_value_heads": 1},
            {"global_every": 1, "num_key_value_heads": 1, "prediction_size": 768},
        ),
    ),
    tasks=("classes", "regression", "tokens", "answers"),
)
DISENTANGLED = {
    "terms": setting("terms", *SUBSETS),
    "span below the length": (lambda c: c.config.span < c.mask.shape[1], {False, True}),
    "segments": setting("type_vocab_size", 0, 2),
}
RELATIVE: dict[str, Any] = {"relative_attention": True, "position_biased_input": False}
DEBERTA = Member(
    family="deberta",
    published="deberta",
    draw=partial(as_deberta, DebertaConfig, False),
    draw_exact=partial(as_deberta, DebertaConfig, True),
    arrange=softer,
    kinds={
        "masked": Kind("DebertaForMaskedLM", BertForMaskedLM),
        "encoder": Kind("DebertaModel", by_name=deberta),
    },
    varied=DISENTANGLED,
    spoil=move_a_distance,
    counts={"base": (138_601_728,), "large": (405_163_008,)},
    began=tuple(
        (
            {**RELATIVE, "pos_att_type": written, "legacy": legacy},
            {"terms": terms, "span": 30},
        )
        for written, terms in (("p2c|c2p", ("p2c", "c2p")), (["c2p"], ("c2p",)), (None, ()))
        for legacy in (True, False)  # both spellings of the head are one head here
    ),
    seeds=range(16),
    bound=FIRST_GENERATION,
    scores=False,
)
DEBERTA_V2 = DEBERTA._replace(
    family="deberta-v2",
    published="deberta-v3",
    draw=partial(as_deberta, DebertaV2Config, False),
    draw_exact=partial(as_deberta, DebertaV2Config, True),
    kinds={
        "masked": Kind("DebertaV2ForMaskedLM", BertForMaskedLM),
        "encoder": Kind("DebertaV2Model", by_name=deberta_v3),
    },
    varied={
        **DISENTANGLED,
        "shared projections": setting("shared_projections", False, True),
        "normed positions": setting("normed_positions", False, True),
        "convolution": setting("convolution", 0, 3),
        "its activation": setting("conv_act", "tanh", "gelu"),
        "a layer after it": (
            lambda c: c.config.num_layers > 1 and bool(c.config.convolution),
            {False, True},
        ),
        "furthest below the length": (lambda c: c.config.furthest < c.mask.shape[1], {False, True}),
    },
    counts={size: (None,) for size in PUBLISHED["deberta-v3"]},
    began=tuple(
        (
            {
                **RELATIVE,
                **{"pos_att_type": "p2c|c2p", "position_buckets": 8, "attention_head_size": 8},
                **{"share_att_key": shared, "norm_rel_ebd": "layer_norm" if shared else "none"},
                **{"conv_kernel_size": 3, "conv_act": "gelu", "legacy": legacy},
            },
            {
                **{"span": 8, "furthest": 30, "convolution": 3, "conv_act": "gelu"},
                **{"shared_projections": shared, "normed_positions": shared},
            },
        )
        for shared in (True, False)
        for legacy in (True, False)
    ),
    bound=TOLERANCE,
)
MEMBERS: dict[str, Member] = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": XLM_ROBERTA,
    "xlm": XLM,
    "xlm-clm": XLM_CAUSAL,
    "albert": ALBERT,
    "distilbert": DISTILBERT,
    "tinybert": TINYBERT,
    "tinybert-4": TINYBERT_4,
    "electra": ELECTRA,
    "ernie": ERNIE,
    "mobilebert": MOBILEBERT,
    "modernbert": MODERNBERT,
    "eurobert": EUROBERT,
    "nomicbert": NOMIC,
    "ultrabert": ULTRABERT,
    "deberta": DEBERTA,
    "deberta-v2": DEBERTA_V2,
}

VIT = Member(
    family="vit",
    published="vit",
    draw=as_vit,
    arrange=seen,
    kinds={
        "classes": Kind(
            "ViTForImageClassification",
            partial(VitForClassification, classes=("cat", "dog", "bird")),
            loss=of_pictures,
            by_name=vit_for_classification,
        ),
        "encoder": Kind("ViTModel", pooler=True, by_name=vit),
        "bare": Kind("ViTModel", by_name=partial(vit, pooler=False)),
    },
    varied={
        **BOTH_GELUS,
        "patch": setting("patch_size", 1, 2, 3, 5),
        "patches in a row": setting("patches_across", 1, 2, 3, 4),
        "channels": setting("num_channels", 1, 3, 4),
        "epsilon": setting("layer_norm_eps", 1e-12, 1e-6),
        "odd heads": (lambda case: case.config.num_heads % 2, {0, 1}),
        "pictures": (lambda case: len(case.labels) == 1, {False, True}),
    },
    spoil=patches_in_columns,
    counts={  # with a thousand classes, with a pooler, without
        "B/16": (86_567_656, 86_389_248, 85_798_656),
        "L/16": (304_326_632, 304_351_232, 303_301_632),
        "H/14": (632_045_800, 632_404_480, 630_764_800),
    },
    began=(
        ({"image_size": 12, "patch_size": 4}, {"image_size": 12, "hidden_act": "gelu"}),
        (
            {"image_size": [6, 6], "patch_size": [2, 2], "num_channels": 1},
            {"image_size": 6, "patch_size": 2, "num_channels": 1},
        ),
    ),
    tasks=(),
    seeds=range(16),
)
