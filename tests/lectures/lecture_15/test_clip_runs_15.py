"""Lecture 15's CLIP: what it learns from, and what it retrieves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from course_lib.images import Thing
from course_lib.lectures.lecture_15 import clip_runs as runs

torch.set_num_threads(1)


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


def test_a_small_clip_trains():
    recipe = replace(runs.CLIP, steps=2, batch_size=4, hidden_size=8, num_layers=1)
    model, losses = runs.trained_clip(recipe, 0)
    assert len(losses) == 2
    for vectors in model.vectors(**runs.clip_inputs(runs.scenes(3))):
        assert torch.allclose(vectors.norm(dim=-1), torch.ones(3), atol=1e-5)
