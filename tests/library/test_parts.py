"""A large batch in parts: for every objective of the library, and for the lectures' own, losses and
gradients of uneven parts add up to those of the whole, also where a part has nothing to say."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import partial

import pytest
import torch
from objective_parts import draw_sequences, special_ids

from course_lib import objectives
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.family import electra
from course_lib.family.electra import ElectraConfig, electra_from
from course_lib.family.elmo import ElmoConfig, ElmoForBiLM
from course_lib.family.ernie_tsinghua import FusionConfig, FusionEncoder, FusionForPreTraining
from course_lib.family.fastbert import FastBert
from course_lib.family.tinybert import fit_matrix, tinybert_encoder
from course_lib.family.vit import VitConfig, VitForMaskedPatches, vit_encoder
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSpanPreTraining,
    BertForTokenClassification,
)
from course_lib.kernels.masked_loss import IGNORED
from course_lib.lectures.lecture_07.ablation_steps import ablation_step
from course_lib.lectures.lecture_08.sift_runs import SiftRecipe, WithSift, sifted_loss
from course_lib.objectives.bilm import bilm_labels, bilm_loss
from course_lib.objectives.classification import (
    classification_loss,
    regression_loss,
    weighted_classification_loss,
)
from course_lib.objectives.distillation import distilbert_loss, tinybert_loss
from course_lib.objectives.entity_alignment import alignment_batches, alignment_loss
from course_lib.objectives.exits import (
    joint_exits_loss,
    self_distillation_loss,
    student_labels_loss,
)
from course_lib.objectives.knowledge_transfer import (
    both_losses,
    pretraining_distillation_loss,
    transfer_loss,
)
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.masked_patches import hide_patches, masked_patch_batch, masked_patch_loss
from course_lib.objectives.next_sentence import next_sentence_loss
from course_lib.objectives.pretraining import (
    COUNT,
    pretraining_batch,
    pretraining_loss,
    split_batch,
)
from course_lib.objectives.replaced_tokens import electra_loss, replaced_token_loss
from course_lib.objectives.sentence_order import albert_loss, sentence_order_loss
from course_lib.objectives.sequences import Batch
from course_lib.objectives.span_boundary import spanbert_loss
from course_lib.objectives.spans import span_loss
from course_lib.objectives.token_labels import padded_token_loss, token_classification_loss
from course_lib.train.distilling import DistillationPair
from course_lib.train.loop import distributed_step

SPECIAL = special_ids(40)
ROWS, TOKENS, PARTS = 7, 12, 4  # parts of 1, 2, 2 and 2 sequences
SHAPE = {
    "vocab_size": 40, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24,
    "max_positions": TOKENS, "hidden_dropout": 0.0, "attention_dropout": 0.0,
    "initializer_range": 0.2,
}  # fmt: skip
CONFIG = BertConfig(**SHAPE)
CLASSES = torch.tensor([IGNORED, 2, 0, 0, 1, 0, 2])  # the first part has none
VALUES = torch.tensor([0.5, 3.0, -2.0, 1.0, 0.25, 7.0, 0.0])


def encoder(pooler=True):
    return Encoder(CONFIG, pooler=Pooler(CONFIG) if pooler else None)


def texts():
    """Seven texts of uneven lengths, pairs of which three are labelled 1."""
    found = draw_sequences(SPECIAL, ROWS, TOKENS)
    labels = torch.tensor([IGNORED, 1, 0, 0, 1, 0, 1])
    return type(found)(**found.inputs, next_sentence_label=labels)


def masked(boundaries=False, **settings):
    """Masked words, none of them in the first text."""
    batch = pretraining_batch(texts(), SPECIAL, boundaries, rate=0.3, **settings)
    inputs, targets = dict(batch.inputs), dict(batch.targets)
    kept = inputs["predict_at"] >= TOKENS
    inputs["predict_at"], targets["labels"] = inputs["predict_at"][kept], targets["labels"][kept]
    if boundaries:
        kept = inputs["boundaries"][:, 0] >= TOKENS
        inputs["boundaries"] = inputs["boundaries"][kept]
        targets["sbo_labels"] = targets["sbo_labels"][kept]
    return Batch(inputs, targets)


def labelled(**targets):
    return Batch(texts().inputs, targets)


def token_labels():
    labels = torch.randint(0, 3, (ROWS, TOKENS), generator=torch.Generator().manual_seed(3))
    labels[0] = labels[3:5, 4:] = labels[:, 0] = IGNORED
    return labels.masked_fill(texts().attention_mask == 0, IGNORED)


def words(objective, batch=masked):
    return lambda: (BertForPreTraining(encoder()), objective, batch())


def classes(objective, model=BertForClassification, **targets):
    given = targets or {"classes": CLASSES}
    return lambda: (model(encoder(), 3), objective, labelled(**given))


def replaced(objective):
    def make():
        config = ElectraConfig(**SHAPE, embedding_size=8)
        return electra_from(config, 0.5), objective, masked(mix=(1.0, 0.0, 0.0))

    return make


def ablation(name):
    def make():
        model, objective = ablation_step(name, ElectraConfig(**SHAPE, embedding_size=8), 0.5)
        return model, objective, masked(mix=(1.0, 0.0, 0.0))

    return make


def bilm():
    ids, mask = texts().input_ids, texts().attention_mask
    rows = torch.randint(0, 262, (40, 6), generator=torch.Generator().manual_seed(1))
    batch = bilm_labels(ids, mask, 30, SPECIAL.unk)
    config = ElmoConfig(
        vocab_size=40, character_size=4, filters=((1, 4), (2, 4)), projection_size=8, cell_size=9,
        max_characters=6, dropout=0.0,
    )  # fmt: skip
    targets = {name: x.clone() for name, x in batch.targets.items()}
    for labels in targets.values():
        labels[0] = IGNORED
    return ElmoForBiLM(config), bilm_loss, Batch({**batch.inputs, "input_ids": rows[ids]}, targets)


def patches():
    config = VitConfig(
        hidden_size=16, num_layers=1, num_heads=2, intermediate_size=24, image_size=8, patch_size=4,
        num_channels=1,
    )  # fmt: skip
    pictures = torch.rand(ROWS, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    hidden = hide_patches(4, torch.arange(ROWS))
    hidden[0] = False
    batch = masked_patch_batch(pictures, 4, hidden)
    return VitForMaskedPatches(vit_encoder(config, pooler=False)), masked_patch_loss, batch


def entities():
    """Mentions of uneven number, none in the shortest text, which stands first in the batch."""
    found = texts()
    ids = torch.full((ROWS, TOKENS), -1)
    by_length = found.attention_mask.sum(dim=1).argsort(stable=True)
    for place, start, stop, entity in ((1, 1, 3, 3), (2, 1, 2, 4), (2, 5, 6, 3), (5, 2, 5, 0)):
        ids[by_length[place], start:stop] = entity
    config = FusionConfig(**SHAPE, entity_size=8, entity_heads=2, layers=("text", "fusion"))
    model = FusionForPreTraining(FusionEncoder(config, torch.randn(5, 8), pooler=True))
    batch = alignment_batches(found, SPECIAL, ids, 5, batch_size=ROWS)(0)
    assert not len(split_batch(batch, PARTS)[0].targets["entity"])
    return model, alignment_loss, batch


def taught(objective, batch=masked, student=None, teacher=None, scores=False, matrix=None):
    def make():
        narrow = student() if student else BertForPreTraining(encoder())
        wide = teacher() if teacher else BertForPreTraining(encoder())
        return DistillationPair(narrow, wide, matrix and matrix(), scores), objective, batch()

    return make


SMALL = BertConfig(**{**SHAPE, "hidden_size": 8, "num_layers": 1})
distilled = partial(
    taught, student=lambda: BertForMaskedLM(encoder()), teacher=lambda: BertForMaskedLM(encoder())
)  # fmt: skip
of_classes = partial(
    taught, student=lambda: BertForClassification(encoder(), 3),
    teacher=lambda: BertForClassification(encoder(), 3), batch=lambda: labelled(classes=CLASSES),
)  # fmt: skip
tiny = partial(
    taught, student=lambda: tinybert_encoder(SMALL, pooler=False), teacher=lambda: encoder(False),
    scores=True, matrix=lambda: fit_matrix(SMALL, CONFIG),
)  # fmt: skip
ANSWERS = {"attention": 0.0, "hidden": 0.0, "embedding": 0.0, "prediction": 1.0}

CASES = {
    "masked_lm_loss": words(masked_lm_loss),
    "next_sentence_loss": words(next_sentence_loss),
    "sentence_order_loss": words(sentence_order_loss),
    "pretraining_loss": words(pretraining_loss),
    "albert_loss": words(albert_loss),
    "spanbert_loss": lambda: (
        BertForSpanPreTraining(encoder(False)), spanbert_loss,
        masked(True, word_of=token_numbers(), spans={}),
    ),
    "replaced_token_loss": replaced(replaced_token_loss),
    "replaced_token_loss, masked": replaced(partial(replaced_token_loss, only_masked=True)),
    "electra_loss": replaced(electra_loss()),
    "bilm_loss": bilm,
    "classification_loss": classes(classification_loss),
    "weighted_classification_loss": classes(
        weighted_classification_loss(torch.tensor([0.2, 5.0, 1.5]))
    ),
    "regression_loss": lambda: (
        BertForClassification(encoder(), 1), regression_loss, labelled(values=VALUES)
    ),
    "token_classification_loss": classes(
        token_classification_loss, BertForTokenClassification, token_labels=token_labels()
    ),
    "padded_token_loss": classes(
        padded_token_loss, BertForTokenClassification, token_labels=token_labels()
    ),
    "span_loss": lambda: (
        BertForQuestionAnswering(encoder(False)), span_loss,
        labelled(start=CLASSES.clamp(min=0), end=CLASSES.clamp(min=0) + 1),
    ),
    "self_distillation_loss": classes(self_distillation_loss(), FastBert),
    "self_distillation_loss, forward": classes(self_distillation_loss("forward"), FastBert),
    "joint_exits_loss": classes(joint_exits_loss, FastBert),
    "student_labels_loss": classes(student_labels_loss, FastBert),
    "masked_patch_loss": patches,
    "alignment_loss": entities,
    "distilbert_loss": distilled(distilbert_loss()),
    "tinybert_loss": tiny(tinybert_loss((2,))),
    "tinybert_loss, words": distilled(tinybert_loss((), **ANSWERS)),
    "tinybert_loss, classes": of_classes(tinybert_loss((), **ANSWERS)),
    "tinybert_loss, as released": tiny(tinybert_loss((2,), as_released=True)),
    "tinybert_loss, words as released": distilled(tinybert_loss((), **ANSWERS, as_released=True)),
    "transfer_loss, over padding": taught(transfer_loss(over_padding=True), scores=True),
    "transfer_loss": taught(transfer_loss(), scores=True),
    "transfer_loss, all": taught(transfer_loss(all_teacher_layers=True), scores=True),
    "pretraining_distillation_loss": taught(pretraining_distillation_loss()),
    "both_losses": taught(
        both_losses(transfer_loss(), pretraining_distillation_loss()), scores=True
    ),
    "lecture 07, Replace MLM": ablation("Replace MLM"),
    "lecture 07, All-tokens MLM": ablation("All-tokens MLM"),
    "lecture 08, SiFT": lambda: (
        WithSift(BertForClassification(encoder(), 3), SiftRecipe()), sifted_loss(2.0),
        labelled(classes=CLASSES),
    ),
}  # fmt: skip
# Losses that an objective is made of: they are told two tensors and no targets.
PARTS_OF_LOSSES = {
    "attention_loss", "attention_transfer_loss", "cosine_loss", "feature_map_loss", "hidden_loss",
    "margin_loss", "mean_loss", "next_token_loss", "prediction_loss", "sift_loss", "variance_loss",
    "pair_classification_loss",
}  # fmt: skip
# Losses that compare the texts of a batch: fewer texts are another task, so no parts add up.
AMONG_A_BATCH = {"info_nce_loss", "matryoshka_loss"}


def token_numbers():
    found = texts()
    numbers = torch.arange(TOKENS).expand(ROWS, -1)
    special = torch.isin(found.input_ids, torch.tensor(SPECIAL.never_masked))
    return numbers.masked_fill(special, -1)


def test_every_objective_has_its_case():
    found = set()
    for module in pkgutil.iter_modules(objectives.__path__, f"{objectives.__name__}."):
        whole = importlib.import_module(module.name)
        functions = dict(inspect.getmembers(whole, inspect.isfunction))
        here = {name for name, f in functions.items() if f.__module__ == module.name}
        found |= {name for name in here if name.endswith(("_loss", "_losses"))}
    assert found - PARTS_OF_LOSSES - AMONG_A_BATCH == {
        n.split(",")[0] for n in CASES if not n.startswith("lecture")
    }


class KeepGradients(torch.optim.SGD):
    """Moves nothing; the gradient it was called with can be read."""

    def step(self, closure=None):
        parameters = self.param_groups[0]["params"]
        self.seen = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]


def gradients_of(model, objective, batch):
    """The step's losses and its gradient, by the loop's own step."""
    optimizer = KeepGradients(model.parameters(), lr=0.0)
    losses = distributed_step(model, objective, optimizer, batch, 0.0, "float32")
    return losses, torch.cat([g.flatten() for g in optimizer.seen])


@pytest.fixture
def same_draws(monkeypatch):
    """Whatever is drawn for a whole batch is drawn for its parts: the middle of the distribution,
    and a perturbation that depends on its place in the sequence alone."""
    fill_in = electra.fill_in
    monkeypatch.setattr(
        electra, "fill_in",
        lambda ids, at, logits: fill_in(ids, at, logits, torch.full((len(at),), 0.5)),
    )  # fmt: skip
    monkeypatch.setattr(
        torch, "randn_like",
        lambda x: torch.linspace(-1, 1, x[0].numel()).to(x).view_as(x[0]).expand_as(x).clone(),
    )  # fmt: skip
    monkeypatch.setattr(
        "course_lib.lectures.lecture_07.ablation_steps.fill_in", electra.fill_in, raising=False
    )


@pytest.mark.parametrize("name", ["classification_loss", "weighted_classification_loss",
                                  "token_classification_loss", "joint_exits_loss"])  # fmt: skip
def test_a_batch_in_parts_of_which_none_has_a_label_is_refused(name):
    model, objective, whole = CASES[name]()
    ((target, labels),) = whole.targets.items()
    nothing = Batch(whole.inputs, {target: torch.full_like(labels, IGNORED)})
    for parts in (nothing, split_batch(nothing, PARTS)):
        with pytest.raises(ValueError, match="all -100, ignored; expected at least one"):
            gradients_of(model, objective, parts)


@pytest.mark.parametrize("name", CASES)
def test_parts_add_up_to_the_whole(name, same_draws):
    torch.manual_seed(0)
    model, objective, whole = CASES[name]()
    model = model.double().train()
    whole = Batch({k: x.double() if x.is_floating_point() else x for k, x in whole.inputs.items()},
                  whole.targets)  # fmt: skip
    parts = split_batch(whole, PARTS)
    assert len({len(next(iter(part.inputs.values()))) for part in parts}) > 1
    losses, gradient = gradients_of(model, objective, whole)
    added, found = gradients_of(model, objective, parts)
    assert added == pytest.approx(losses, rel=1e-9, abs=1e-12) and losses["total"] > 0
    assert (found - gradient).abs().max() <= 1e-9 * gradient.abs().max()
    assert gradient.abs().max() > 0

    # The careless way, a mean over each part alone, is another number: the test can fail.
    alone = [{n: x for n, x in part.targets.items() if not n.startswith(COUNT)} for part in parts]
    careless = [objective(model(**part.inputs), targets)["total"].item()
                for part, targets in zip(parts[1:], alone[1:], strict=True)]  # fmt: skip
    assert sum(careless) != pytest.approx(losses["total"], rel=0.05)
