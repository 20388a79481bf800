"""Lecture 15's runs: which pictures, in which order, how models begin, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from course_lib.images import cut_patches, digits, join_patches
from course_lib.lectures.lecture_15 import picture_runs as runs
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.masked_patches import masked_patch_batches, masked_patch_loss
from course_lib.train.finetuning import head_on, labelled_batches
from course_lib.train.flops import step_flops

torch.set_num_threads(1)
TINY = replace(runs.MAIN, steps=3, hidden_size=8, num_layers=1)


def numbered(count: int = 6) -> torch.Tensor:
    """Pictures of 8×8 whose patches of 2 hold 1 to 16."""
    patches = torch.arange(1.0, 17).reshape(1, 16, 1).expand(count, 16, 4)
    return join_patches(patches, 2, rows=4)


def test_shuffled_patches_are_the_same_patches_elsewhere():
    images = numbered()
    one, each = (
        cut_patches(runs.shuffled_patches(images, 2, order, 0), 2)[..., 0]
        for order in (runs.ONE, runs.EACH)
    )
    assert torch.equal(runs.shuffled_patches(images, 2, runs.KEPT, 0), images)
    for shuffled in (one, each):
        assert torch.equal(shuffled.sort(1).values, torch.arange(1.0, 17).expand(6, -1))
    assert len(one.unique(dim=0)) == 1 and not torch.equal(one[0], torch.arange(1.0, 17))
    assert len(each.unique(dim=0)) == 6


def test_one_permutation_is_that_of_the_test_pictures_too():
    """Both sides put back by it are as they were; one a picture has another draw for the test."""
    recipe = replace(runs.MAIN, order=runs.ONE)
    for side, plain in zip(runs.sides(recipe, 3), runs.sides(runs.MAIN, 3), strict=True):
        moved = cut_patches(runs.shuffled_patches(numbered(1), 2, runs.ONE, 3), 2)[0, :, 0]
        back = moved.argsort()  # where patch 1, 2, … went
        put_back = cut_patches(side.pixel_values, 2)[:, back]
        assert torch.equal(put_back, cut_patches(plain.pixel_values, 2))


def test_without_positions_the_order_of_the_patches_is_not_seen():
    for positions, alike in (("none", True), ("1d", False), ("2d", False)):
        model = head_on(runs.random_vit(replace(runs.MAIN, positions=positions), 0), digits())
        images = digits().pixel_values[:4]
        with torch.no_grad():
            one, other = (
                model.eval()(runs.shuffled_patches(images, 2, order, 0)).logits
                for order in (runs.KEPT, runs.EACH)
            )
        assert torch.allclose(one, other, atol=1e-5) == alike


def test_a_picture_is_moved_by_whole_pixels():
    images = torch.zeros(200, 1, 8, 8)
    images[:, 0, 3, 4] = 1.0
    moved = runs.moved(images, 1, 0)
    places = {tuple(place[1:].tolist()) for place in moved[:, 0].nonzero()}
    assert places == {(y, x) for y in (2, 3, 4) for x in (3, 4, 5)}
    assert torch.equal(runs.moved(images, 0, 0), images)
    assert not torch.equal(moved, runs.moved(images, 1, 1))


def test_questions_about_scenes():
    """The row is that of the first thing; what is held out is asked with the same classes."""
    for task, names in ((runs.PLACE, ("bottom", "middle", "top")), (runs.THINGS, ("no", "yes"))):
        pictures = runs.pictures_of(task)
        assert pictures["train"].names == pictures["test"].names == names
        assert (len(pictures["train"]), len(pictures["test"])) == (2_000, 1_000)


def test_equal_flops_are_equal():
    recipe = runs.MASKED["equal FLOPs, 50"]
    encoder, read = runs.random_vit(recipe, 0), runs.pictures_of(recipe.read)["train"]
    masked = masked_patch_batches(read.pixel_values, 2, batch_size=recipe.batch_size)(0)
    one = step_flops(runs.VitForMaskedPatches(encoder), masked_patch_loss, masked)
    labelled = labelled_batches(read, recipe.batch_size)(0)
    other = step_flops(head_on(encoder, read), classification_loss, labelled)
    steps = runs.pretraining_in_steps(recipe)
    assert steps * other == pytest.approx(recipe.start_steps * one, rel=0.002)
    assert steps > recipe.start_steps  # a step that predicts pixels costs more


def test_pretraining_is_shared_and_kept():
    recipe = replace(TINY, start="masked patches", start_steps=2, labelled=50)
    other = replace(recipe, labelled=100, steps=5)
    assert runs.first_stage(recipe) == runs.first_stage(other)
    begun: Any = runs.start_of(recipe, digits().names, 0)
    plain: Any = runs.start_of(replace(recipe, equal_flops=True), digits().names, 0)
    kept = runs.pretrained(runs.first_stage(recipe), 0).state_dict()
    name = "embeddings.project.weight"
    assert torch.equal(begun.encoder.state_dict()[name], kept[name])
    assert not torch.equal(plain.encoder.state_dict()[name], kept[name])


def test_larger_pictures_begin_as_the_small_ones_end(monkeypatch: pytest.MonkeyPatch):
    small: Any = head_on(runs.random_vit(runs.MAIN, 0), digits())
    monkeypatch.setattr(runs, "small_vit", lambda seed: small)
    models: dict[str, Any] = {
        name: runs.larger_start(recipe, 0) for name, recipe in runs.RESOLUTION.items()
    }
    blocks = small.encoder.stack.state_dict()
    for name, model in models.items():
        assert model.config.image_size == runs.LARGER
        same = all(torch.equal(model.encoder.stack.state_dict()[n], w) for n, w in blocks.items())
        assert same == (name != "random initialisation")
    tables = [models[name].encoder.embeddings.position for name in runs.RESOLUTION]
    assert tables[0].shape == (1, 65, runs.MAIN.hidden_size)
    assert len({round(float(table.detach().sum()), 4) for table in tables}) == 4
    assert torch.equal(models["bicubic"].classifier.weight, small.classifier.weight)


def test_the_three_models_train():
    for model in (runs.VIT, runs.CNN):
        recipe = replace(TINY, model=model, shift=1)
        watch = runs.Watch(digits("test"), at=(1, 3))
        _, losses = runs.trained(recipe, 0, [watch])
        assert len(losses["total"]) == 3 and [p["step"] for p in watch.curve] == [1, 3]
    train, test = runs.sides(TINY, 0)
    assert runs.logistic_accuracy(train, test) > 0.85


def test_a_picture_is_moved_before_its_patches_are_shuffled():
    recipe = replace(runs.PICTURES["CNN shifted, all, one permutation"], steps=1)
    train = runs.pictures_of(runs.DIGITS)["train"]
    pixel_values = runs.batches_of(train, recipe, 2)(5).inputs["pixel_values"]
    plain = labelled_batches(train, recipe.batch_size, 2)(5).inputs["pixel_values"]
    assert torch.equal(pixel_values, runs.shuffled_patches(runs.moved(plain, 1, 5), 2, runs.ONE, 2))
    with_order = cut_patches(runs.moved(plain, 1, 5), 2)
    assert torch.equal(with_order.sum(1), cut_patches(pixel_values, 2).sum(1))
