"""Fine-tuning with SiFT: what is added to the loss, and that recipes differ in nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib.lectures.lecture_08 import sift_runs as here
from course_lib.train.finetuning import labelled_batches


@pytest.fixture(scope="module")
def material():
    return here.prepare_sift()


def one_batch(material, recipe=here.FULL):
    return labelled_batches(here.labels_of(recipe, material, 0), recipe.batch_size)(0)


def losses_of(material, recipe, weight=None):
    around, loss = here.to_train(recipe, material, 0)
    if weight is not None:
        loss = here.sifted_loss(weight)
    batch = one_batch(material)
    torch.manual_seed(0)
    losses = loss(around(**batch.inputs), batch.targets)
    return {name: float(part.detach()) for name, part in losses.items()}


def test_lambda_times_the_perturbation_is_added_to_the_task(material):
    plain = losses_of(material, here.FULL)["total"]
    losses = losses_of(material, here.AUTHORS, weight=5.0)
    assert losses["task"] == pytest.approx(plain, abs=1e-4)  # normalised twice: all but so
    assert losses["moved"] > 0
    assert losses["total"] == pytest.approx(losses["task"] + 5 * losses["moved"])


def test_an_aimed_perturbation_moves_the_answer_most(material):
    size = replace(here.AUTHORS, step=0.5)
    aimed, turned = (
        losses_of(material, replace(size, method=method))["moved"]
        for method in (here.SIFT, here.NOISE)
    )
    assert aimed > 3 * turned > 0


def test_the_head_and_the_labels_are_those_of_the_seed_alone(material):
    ids = one_batch(material).inputs
    answers = []
    for recipe in (here.FULL, here.AUTHORS):
        around, _ = here.to_train(recipe, material, 1)
        model = here.train_sift.kept(around)
        with torch.no_grad():
            answers.append(model(**ids).logits)
    assert torch.equal(*answers)
    (first, again), second = (
        (here.labels_of(r, material, 0) for r in (here.FULL, here.AUTHORS)),
        here.labels_of(here.FULL, material, 1),
    )
    assert torch.equal(first.sequences.input_ids, again.sequences.input_ids)
    assert len(first) == len(second) == here.FULL.labels
    assert not torch.equal(first.sequences.input_ids, second.sequences.input_ids)
