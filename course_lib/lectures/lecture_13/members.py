"""The members of the family in one shape, made ready to be pre-trained on the same text.

Four layers, 128 wide, no dropout; what makes a member itself departs from this, as it does from
BERT-base: half the layers, one block for all of them, a second network. Each entry of MEMBERS makes
the model, its loss and its batches; what is kept of it is an encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.family.albert import AlbertConfig, albert_encoder
from course_lib.family.deberta import DebertaConfig, deberta_encoder, deberta_masked_lm
from course_lib.family.distilbert import DistilBertConfig, distilbert_encoder, initialise_from
from course_lib.family.electra import Electra, ElectraConfig, electra_from
from course_lib.family.mobilebert import MobileBertConfig, copy_all_but_blocks, mobilebert_encoder
from course_lib.family.modernbert import ModernBertConfig, modernbert_encoder
from course_lib.family.roberta import RobertaConfig, roberta_encoder
from course_lib.family.tinybert import fit_matrix, layer_mapping, tinybert_encoder
from course_lib.heads import BertForMaskedLM, BertForPreTraining, BertForSpanPreTraining
from course_lib.objectives.distillation import distilbert_loss, tinybert_loss
from course_lib.objectives.knowledge_transfer import pretraining_distillation_loss, transfer_loss
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.replaced_tokens import PAPER_MIX, electra_loss
from course_lib.objectives.sentence_order import albert_loss, make_ordered_pairs
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.objectives.span_boundary import spanbert_loss
from course_lib.text.packing import pack_documents
from course_lib.text.units import story_units
from course_lib.text.wordpiece import word_numbers
from course_lib.text.world import MicroWorld, story_sequences
from course_lib.train.distilling import DistillationPair
from course_lib.train.knowledge_transfer import Stage, pair_of, stages
from course_lib.train.loop import Batches, Objective
from course_lib.train.pretrain_recipe import TextPart
from course_lib.train.pretrain_text import read_text

STORIES, HELDOUT, LENGTH = 10_000, 500, 64
SHORT = 32  # tokens of a sequence of documentation: in short ones a neighbour is easier to find
DOCUMENTATION, PIECES = "documentation", "course-bert"  # whose pieces the documentation is cut into
PAD = 0


@dataclass(frozen=True)
class Recipe:
    """A member's pre-training. member: a key of MEMBERS. teacher: the recipe whose model it learns
    from, by name. flops: as many as BERT needs for this many steps. text: "stories", or
    DOCUMENTATION."""

    member: str = "BERT"
    num_layers: int = 4
    hidden_size: int = 128
    embedding_size: int = 0  # E, where it is not H
    teacher: str = ""
    flops: int = 2_400
    batch_size: int = 32
    learning_rate: float = 2e-3
    initializer_range: float = 0.05
    text: str = "stories"
    optimizer: str = "adamw"


@dataclass(frozen=True)
class Material:
    """A text as the members read it. train and unseen: its two parts, each by what reads it:
    sequences ("single"), pairs of each kind ("nsp", "sop"). units: of the single sequences of both,
    what is masked together. length: tokens of a sequence. hash: of the documentation, which depends
    on what is installed."""

    special: SpecialIds
    train: Mapping[str, PackedSequences]
    unseen: Mapping[str, PackedSequences]
    units: Mapping[str, tuple[torch.Tensor, torch.Tensor]]
    length: int = LENGTH
    num_heads: int = 2
    precision: str = "float32"
    hash: str = ""

    @property
    def heldout(self) -> PackedSequences:
        """What masked words are predicted in: held-out texts, one a sequence."""
        return self.unseen["single"]


@dataclass(frozen=True)
class Part:
    """A stretch of pre-training: what `fit` trains, for which share of all steps."""

    model: nn.Module
    loss: Objective
    share: float = 1.0
    scale: Any = None


@dataclass(frozen=True)
class Trainee:
    """A member before its pre-training. kept: the model that stays, which has the encoder. heldout:
    the same batches as in training, of texts that no training saw."""

    kept: Any
    parts: tuple[Part, ...]
    batches: Batches
    heldout: Batches


@lru_cache
def prepare(text: str = "stories") -> Material:
    """A text, packed in each way. Raises ValueError for one that is neither."""
    if text == "stories":
        return _stories()
    if text == DOCUMENTATION:
        return _documentation()
    raise ValueError(f"text={text!r} was given; expected stories or {DOCUMENTATION}.")


def _stories() -> Material:
    """Drawn with seed 0 of each split, one a sequence."""
    world = MicroWorld.load()
    stories, unseen = world.stories(STORIES), world.stories(HELDOUT, split="heldout")
    train, heldout = (
        _in_all_ways(world.documents(s), story_sequences(world, s, LENGTH), world.special, LENGTH)
        for s in (stories, unseen)
    )
    both = ((stories, train), (unseen, heldout))
    one, other = (story_units(world, s, ways["single"]) for s, ways in both)
    return Material(world.special, train, heldout, {name: (one[name], other[name]) for name in one})


def _in_all_ways(
    documents: Any, single: PackedSequences, special: SpecialIds, length: int
) -> dict[str, PackedSequences]:
    return {
        "single": single,
        "nsp": make_pairs(documents, special, length=length),
        "sop": make_ordered_pairs(documents, special, length=length),
    }


def _documentation() -> Material:
    """What is installed here, filled across documents. Nobody marked its phrases: its units are
    whole words."""
    reading = read_text(TextPart(DOCUMENTATION, vocabulary=PIECES))
    special, (documents, unseen) = reading.tokenizer.special, reading.documents
    train, heldout = (
        _in_all_ways(part, pack_documents(part, special, SHORT)[:most], special, SHORT)
        for part, most in ((documents, None), (unseen, 2 * HELDOUT))
    )
    word_ids = tuple(
        word_numbers(reading.tokenizer, of.input_ids, of.attention_mask)  # type: ignore
        for of in (train["single"], heldout["single"])
    )
    units: Any = {"phrases": word_ids, "spans": word_ids}
    return Material(special, train, heldout, units, SHORT, 4, "bfloat16", reading.about["hash"])


def shape(recipe: Recipe, **more: Any) -> dict[str, Any]:
    """The settings that the members share."""
    H, read = recipe.hidden_size, prepare(recipe.text)
    return {
        "vocab_size": read.special.vocab_size, "max_positions": read.length,
        "num_layers": recipe.num_layers, "hidden_size": H, "num_heads": read.num_heads,
        "intermediate_size": 4 * H, "hidden_dropout": 0.0, "attention_dropout": 0.0,
        "initializer_range": recipe.initializer_range, "pad_token_id": PAD, **more,
    }  # fmt: skip


def masked_words(model: BertForMaskedLM | BertForPreTraining) -> BertForMaskedLM:
    """The same weights as a masked-word model: what students learn from."""
    if isinstance(model, BertForMaskedLM):
        return model
    alone = BertForMaskedLM(model.encoder)
    alone.mlm = model.mlm
    return alone


def trainee(recipe: Recipe, seed: int, teacher: Any = None) -> Trainee:
    """A recipe's member, randomly initialised or begun from its teacher's weights.

    teacher: the trained model that `recipe.teacher` names. Raises ValueError for a member that is
    none of MEMBERS, and for a teacher that is missing."""
    if recipe.member not in MEMBERS:
        raise ValueError(f"member={recipe.member!r} was given; expected one of {list(MEMBERS)}.")
    if bool(recipe.teacher) != (teacher is not None):
        raise ValueError(f"{recipe.member} with teacher {recipe.teacher!r} was given {teacher!r}.")
    torch.manual_seed(seed)
    return MEMBERS[recipe.member](recipe, seed, *([teacher] if recipe.teacher else []))


def _made(
    recipe: Recipe, seed: int, kept: Any, parts: Sequence[Part], kind: str = "single",
    units: str = "", **masking: Any,
) -> Trainee:  # fmt: skip
    """A trainee that reads sequences of a kind, and whose masking takes `units` together."""
    read = prepare(recipe.text)
    both = []
    for part, sequences in enumerate((read.train, read.unseen)):
        if units:
            masking["word_of"] = read.units[units][part]
        both.append(
            pretraining_batches(
                sequences[kind], read.special, batch_size=recipe.batch_size, seed=seed + 100,
                **masking,
            )
        )  # fmt: skip
    return Trainee(kept, tuple(parts), *both)


def _plain(recipe: Recipe, seed: int, model: Any, loss: Objective, **reading: Any) -> Trainee:
    return _made(recipe, seed, model, [Part(model, loss)], **reading)


# ---------------------------------------------------------------- one entry a member


def _bert(recipe: Recipe, seed: int) -> Trainee:
    """Masked words and NSP."""
    config = BertConfig(**shape(recipe))
    model = BertForPreTraining(Encoder(config, pooler=Pooler(config)))
    return _plain(recipe, seed, model, pretraining_loss, kind="nsp")


def _roberta(recipe: Recipe, seed: int) -> Trainee:
    """Masked words alone, whole stories, no segments."""
    positions = prepare(recipe.text).length + PAD + 1
    config = RobertaConfig(**shape(recipe, max_positions=positions, type_vocab_size=0))
    model = BertForMaskedLM(roberta_encoder(config, pooler=False))
    return _plain(recipe, seed, model, masked_lm_loss)


def _albert(recipe: Recipe, seed: int) -> Trainee:
    """One block for all layers, narrow embeddings, SOP."""
    config = AlbertConfig(**shape(recipe, embedding_size=recipe.embedding_size))
    model = BertForPreTraining(albert_encoder(config))
    return _plain(recipe, seed, model, albert_loss, kind="sop")


def _distilbert(recipe: Recipe, seed: int, teacher: Any) -> Trainee:
    """Half of its teacher's layers, begun from them; the triple loss."""
    taught_by = masked_words(teacher)
    config = DistilBertConfig(**shape(recipe))
    student = initialise_from(BertForMaskedLM(distilbert_encoder(config)), taught_by)
    part = Part(DistillationPair(student, taught_by), distilbert_loss())
    return _made(recipe, seed, student, [part])


def _tinybert(recipe: Recipe, seed: int, teacher: Any) -> Trainee:
    """Half the layers, half as wide; general distillation: its teacher's inner states."""
    config = BertConfig(**shape(recipe))
    student = tinybert_encoder(config)
    matrix = fit_matrix(config, teacher.config)
    layers = layer_mapping(recipe.num_layers, teacher.config.num_layers)
    pair = DistillationPair(student, teacher.encoder, matrix, scores=True)
    return _made(recipe, seed, student, [Part(pair, tinybert_loss(layers))], rate=0.0)


def _electra(recipe: Recipe, seed: int) -> Trainee:
    """A generator of a quarter of the width, and the discriminator, which is kept."""
    config = ElectraConfig(**shape(recipe, embedding_size=recipe.hidden_size))
    both: Electra = electra_from(config)
    return _made(recipe, seed, both.discriminator, [Part(both, electra_loss())], mix=PAPER_MIX)


def _deberta(recipe: Recipe, seed: int) -> Trainee:
    """Content and position apart, and the enhanced mask decoder."""
    config = DebertaConfig(**shape(recipe, type_vocab_size=0), span=prepare(recipe.text).length)
    model = deberta_masked_lm(deberta_encoder(config))
    return _plain(recipe, seed, model, masked_lm_loss)


def _spanbert(recipe: Recipe, seed: int) -> Trainee:
    """Spans, and the span-boundary objective."""
    model = BertForSpanPreTraining(Encoder(BertConfig(**shape(recipe))))
    part = Part(model, spanbert_loss)
    masking: dict[str, Any] = {"units": "spans", "spans": {}, "boundaries": True}
    return _made(recipe, seed, model.masked_lm, [part], **masking)


def _ernie(recipe: Recipe, seed: int) -> Trainee:
    """Units masked as a whole, ERNIE's knowledge masking: noun phrases, or words."""
    model = BertForMaskedLM(Encoder(BertConfig(**shape(recipe))))
    return _plain(recipe, seed, model, masked_lm_loss, units="phrases")


def _mobile_config(recipe: Recipe, **more: Any) -> MobileBertConfig:
    return MobileBertConfig(**shape(recipe, embedding_size=recipe.embedding_size, **more))


def _modernbert(recipe: Recipe, seed: int) -> Trainee:
    """What ModernBERT changed, all at once, and three words in ten masked."""
    inside = 3 * recipe.hidden_size // 2  # two of these beside one of BERT's 4H, as in the base
    window = prepare(recipe.text).length // 2  # tokens that a local layer sees
    config = ModernBertConfig(
        **shape(recipe, type_vocab_size=0, intermediate_size=inside, window=window)
    )
    model = BertForMaskedLM(modernbert_encoder(config))
    return _plain(recipe, seed, model, masked_lm_loss, rate=0.3)


def _ib_bert(recipe: Recipe, seed: int) -> Trainee:
    """MobileBERT's teacher: as wide between blocks, twice as wide inside."""
    inside = 2 * recipe.hidden_size
    config = _mobile_config(
        recipe, bottleneck_size=inside, intermediate_size=4 * inside, num_feed_forwards=1,
        attention_input="wide", normalization="layer_norm", hidden_act="gelu",
    )  # fmt: skip
    model = BertForMaskedLM(mobilebert_encoder(config, pooler=False))
    return _plain(recipe, seed, model, masked_lm_loss)


TRANSFER = 0.4  # of a MobileBERT's steps: knowledge transfer, a layer after the other


def _mobilebert(recipe: Recipe, seed: int, teacher: Any) -> Trainee:
    """Thin inside, with NoNorm and ReLU; progressive knowledge transfer, then masked words."""
    inside = recipe.hidden_size // 2
    config = _mobile_config(recipe, bottleneck_size=inside, intermediate_size=4 * inside)
    student = BertForMaskedLM(mobilebert_encoder(config, pooler=False))
    student, L = copy_all_but_blocks(student, teacher), recipe.num_layers
    plan: list[Stage] = stages(
        "progressive", L, transfer_loss, pretraining_distillation_loss(),
        steps=100 * L, transfer_steps=round(100 * L * TRANSFER),
    )  # fmt: skip
    parts = [
        Part(pair_of(student, teacher, s), s.objective, s.steps / (100 * L), s.scale) for s in plan
    ]
    return _made(recipe, seed, student, parts)


MEMBERS: dict[str, Callable[..., Trainee]] = {
    "BERT": _bert, "RoBERTa": _roberta, "ALBERT": _albert, "DistilBERT": _distilbert,
    "TinyBERT": _tinybert, "ELECTRA": _electra, "DeBERTa": _deberta, "SpanBERT": _spanbert,
    "ERNIE": _ernie, "IB-BERT": _ib_bert, "MobileBERT": _mobilebert, "ModernBERT": _modernbert,
}  # fmt: skip
