"""Lecture 15's scenes: what the autoencoder sees and is tested on, and what CLIP retrieves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from course_lib.images import Thing
from course_lib.lectures.lecture_15 import scene_runs as runs
from course_lib.teaching.results import read_result

torch.set_num_threads(1)
TINY = runs.SceneRecipe(runs.MASKED, start_steps=1, batch_size=4, hidden_size=8, num_layers=1)


def test_the_encoder_never_reads_a_hidden_patch():
    """Other pixels where patches are hidden: the same reconstruction. Where one is visible: not."""
    model = runs.MaskedAutoencoder(runs.random_encoder(TINY, 0))
    inputs, targets = runs.masked_scenes(TINY, 0, 0)
    visible, hidden = inputs["visible"], targets["hidden"]
    assert visible.shape == (4, 9) and hidden.sum(1).tolist() == [27] * 4
    assert not hidden.gather(1, visible).any()
    outputs = []
    for patches in (hidden, ~hidden):
        mask = patches.view(4, 1, 6, 6).repeat_interleave(4, 2).repeat_interleave(4, 3)
        outputs.append(model(torch.where(mask, 5.0, inputs["pixel_values"]), visible).patches)
    right = model(**inputs).patches
    assert torch.equal(outputs[0], right) and not torch.allclose(outputs[1], right)


def test_only_hidden_pixels_count():
    inputs, targets = runs.masked_scenes(TINY, 0, 0)
    patches = (
        targets["patches"]
        + 2.0 * targets["hidden"][..., None]
        + 9.0 * ~targets["hidden"][..., None]
    )
    loss = runs.hidden_pixels_loss(runs.Reconstruction(patches), targets)["total"]
    assert loss.item() == pytest.approx(4.0, rel=1e-4)
    other = runs.masked_scenes(TINY, 0, 1)
    assert not torch.equal(inputs["pixel_values"], other.inputs["pixel_values"])


def test_clip_retrieves_what_belongs_together(monkeypatch: pytest.MonkeyPatch):
    """A model that knows: all right. One that answers with the next: none, and what is wrong."""
    made = runs.candidates()
    assert len(made.things) == runs.CANDIDATES == len(set(made.sentences))

    class Knows(torch.nn.Module):
        further = 0

        def forward(self, **_: Any) -> runs.Similarities:
            return runs.Similarities(torch.eye(runs.CANDIDATES).roll(self.further, 1))

    model: Any = Knows()
    assert runs.retrieved(model)["accuracy"] == runs.retrieved(model)["picture_accuracy"] == 1
    model.further = 1
    assert runs.retrieved(model)["accuracy"] == 0


def test_wrong_words_by_hand():
    red, blue = Thing("red", "circle", "top", "left"), Thing("blue", "circle", "top", "right")
    assert runs.wrong_words((red, red), (red, red)) == 0
    assert runs.wrong_words((red, red), (red, blue)) == 2


def test_the_contrastive_loss_by_hand():
    logits = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
    rows, columns = logits.log_softmax(1).diagonal(), logits.log_softmax(0).diagonal()
    expected = -(rows.mean() + columns.mean()) / 2
    loss = runs.contrastive_loss(runs.Similarities(logits), {})["total"]
    assert torch.allclose(loss, expected)


def test_rates_are_chosen_on_other_pictures_than_those_reported():
    train, valid, test = runs.asked_for_shape()
    assert train.names == valid.names == test.names
    assert not torch.equal(valid.pixel_values, test.pixel_values)
    stored = read_result(runs.FILE)["runs"]
    assert runs.best_rate(runs.LONGER) == runs.LONGER
    for start in (runs.RANDOM, runs.MASKED):
        best = runs.best_rate(start)
        means = {
            rate: sum(run["valid_accuracy"] for run in stored[f"{start}, {rate:g}"])
            for rate in runs.RATES
        }
        assert best == f"{start}, {max(means, key=means.__getitem__):g}"  # type: ignore[arg-type]


def test_a_small_clip_trains():
    recipe = replace(runs.CLIP, steps=2, batch_size=4, hidden_size=8, num_layers=1)
    model, losses = runs.trained_clip(recipe, 0)
    assert len(losses) == 2
    for vectors in model.vectors(**runs.clip_inputs(runs.scenes(3))):
        assert torch.allclose(vectors.norm(dim=-1), torch.ones(3), atol=1e-5)
