"""Pictures: scikit-learn's digits, scenes whose sentence a rule reads off the picture, and a ViT
that learns from both."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

from course_lib.family.vit import VitConfig, VitForClassification, vit_encoder
from course_lib.images import (
    COLOURS,
    COLUMNS,
    ROWS,
    SHAPES,
    LabelledPictures,
    digits,
    scenes,
)
from course_lib.objectives.classification import classification_loss
from course_lib.train.finetuning import class_accuracy, finetune, labelled_batches, task_score
from course_lib.train.loop import fit

EYES = VitConfig(
    hidden_size=32, num_layers=2, num_heads=4, intermediate_size=64,
    image_size=8, patch_size=2, num_channels=1,
)  # fmt: skip


# ---------------------------------------------------------------- digits


def test_digits():
    train, test = digits(), digits("test")
    assert (len(train), len(test)) == (1_437, 360)
    for part in (train, test):
        assert part.pixel_values.shape == (len(part), 1, 8, 8)
        assert part.pixel_values.dtype == torch.float32
        assert (part.pixel_values.min(), part.pixel_values.max()) == (0, 1)
        assert part.labels.unique().tolist() == list(range(10))
    assert train.names == tuple("0123456789")
    with pytest.raises(ValueError, match='split=\'dev\' was given; expected "train" or "test"'):
        digits("dev")


def test_the_end_of_the_file_is_the_harder_test():
    """The numbers that `digits` states: the nearest picture of the rest has the right digit."""
    train, test = digits(), digits("test")
    pixels = torch.cat([train.pixel_values, test.pixel_values]).flatten(1)
    labels = torch.cat([train.labels, test.labels])
    number = torch.arange(len(pixels))
    for held, expected in ((number >= 1_437, 0.956), (number % 5 == 4, 0.992)):
        nearest = torch.cdist(pixels[held], pixels[~held]).argmin(1)
        right = labels[~held][nearest] == labels[held]
        assert right.double().mean().item() == pytest.approx(expected, abs=5e-4)


def test_a_vit_learns_digits():
    train, test = digits()[:400], digits("test")
    torch.manual_seed(0)
    encoder = vit_encoder(EYES, pooler=False)
    model = finetune(encoder, train, steps=300, batch_size=40, learning_rate=3e-3)
    assert isinstance(model, VitForClassification) and model.names == train.names
    assert class_accuracy(model, train) > 0.9 and task_score(model, test) > 0.6  # chance: 0.1
    frozen = finetune(encoder, train, steps=5, batch_size=40, frozen=True)
    for name, weight in frozen.encoder.state_dict().items():
        assert torch.equal(weight, encoder.state_dict()[name]), name


def test_batches_of_pictures():
    train = digits()
    batches = labelled_batches(train, 32, seed=1)
    batch = batches(3)
    assert batch.inputs["pixel_values"].shape == (32, 1, 8, 8)
    again = labelled_batches(train, 32, seed=1)(3)
    assert torch.equal(batch.inputs["pixel_values"], again.inputs["pixel_values"])
    torch.manual_seed(0)
    one, two = (VitForClassification(vit_encoder(EYES, pooler=False), train.names) for _ in "ab")
    two.load_state_dict(one.state_dict())
    found = [
        fit(model, classification_loss, labelled_batches(train, size), steps=2, accumulate=parts,
            precision="float32", clip=1e9)
        for model, size, parts in ((one, 32, 1), (two, 16, 2))
    ]  # fmt: skip
    assert [history.tokens for history in found] == [64, 64]  # a picture is one


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 3], [0, 1, -1]])
def test_labels_that_do_not_fit(labels: list[int]):
    with pytest.raises(ValueError, match=r"3 pictures and labels .* a number of the names, 0 to 2"):
        LabelledPictures(torch.zeros(3, 1, 8, 8), torch.tensor(labels), ("a", "b", "c"))


# ---------------------------------------------------------------- scenes


def read(picture: Tensor) -> str:
    """The sentence of a picture (3, 24, 24), by rules that know nothing of how it was drawn: a cell
    with colour in it has a thing; hue says which colour, the outline which shape."""
    pixels = picture.numpy()
    things = []
    for row in range(3):
        for column in range(3):
            cell = pixels[:, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
            ink = np.ptp(cell, axis=0) > 0.25  # grey is not ink
            if ink.any():
                words = f"a {_hue(cell[:, ink].mean(axis=1))} {_outline(ink)}"
                things.append(f"{words} at the {ROWS[row]} {COLUMNS[column]}")
    return f"{' and '.join(things)} ."


def _hue(rgb: np.ndarray) -> str:
    red, green, blue = rgb / rgb.max()
    if red > 0.9:
        return "yellow" if green > 0.8 else "red"
    return "blue" if blue > green else "green"


def _outline(ink: np.ndarray) -> str:
    lines, columns = (np.flatnonzero(ink.any(axis=axis)) for axis in (1, 0))
    box = ink[lines[0] : lines[-1] + 1, columns[0] : columns[-1] + 1]
    if box.all():
        return "square"
    if box[0].sum() < box[-1].sum():
        return "triangle"
    return "circle" if box.mean() > 0.7 else "cross"


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_word_of_the_sentence_can_be_read_off_the_picture(split: str):
    found = scenes(400, seed=3, split=split)
    assert found.pixel_values.shape == (400, 3, 24, 24)
    assert found.pixel_values.min() >= 0 and found.pixel_values.max() <= 1
    for picture, sentence in zip(found.pixel_values, found.sentences, strict=True):
        assert read(picture) == sentence


def test_the_reader_sees_a_change():
    """The reader can fail: of another picture it says another sentence."""
    found = scenes(40, seed=4)
    for picture, sentence in zip(found.pixel_values, found.sentences, strict=True):
        changed = [picture.roll(8, 1), picture.roll(8, 2)]  # each thing a row lower, a column on
        if "red" in sentence or "blue" in sentence:
            changed.append(picture.flip(0))  # and red for blue
        if "triangle" in sentence:
            changed.append(picture.flip(1))
        assert all(read(other) != sentence for other in changed)


def test_scenes_are_drawn_alike_and_apart():
    found = scenes(2_000, seed=0)
    again, other = scenes(50, seed=1), scenes(50, seed=2)
    assert torch.equal(again.pixel_values, scenes(50, seed=1).pixel_values)
    assert not torch.equal(again.pixel_values, other.pixel_values)
    for what, known in (("colour", COLOURS), ("shape", SHAPES)):
        counts = Counter(getattr(thing, what) for pair in found.things for thing in pair)
        assert set(counts) == set(known) and min(counts.values()) > 0.8 * 4_000 / len(known)
    assert {(t.row, t.column) for pair in found.things for t in pair} == {
        (row, column) for row in ROWS for column in COLUMNS
    }
    words = {word for sentence in found.sentences for word in sentence.split()}
    assert words == {*COLOURS, *SHAPES, *ROWS, *COLUMNS, "a", "at", "the", "and", "."}


def test_no_held_out_sentence_is_trained_on():
    train, test = (set(scenes(3_000, split=split).sentences) for split in ("train", "test"))
    assert not train & test
    pair = re.compile(r" at the \w+ \w+")
    assert {pair.sub("", s) for s in test} <= {
        pair.sub("", s) for s in train
    }  # new in their places


def test_questions_about_scenes():
    found = scenes(60, seed=5)
    asked = found.labelled(lambda pair: "same" if pair[0].colour == pair[1].colour else "other")
    assert asked.names == ("other", "same") and asked.pixel_values is found.pixel_values
    for label, (first, second) in zip(asked.labels.tolist(), found.things, strict=True):
        assert label == (first.colour == second.colour)
    with pytest.raises(ValueError, match="count=0 was given; expected at least one scene"):
        scenes(0)
    with pytest.raises(ValueError, match="split='dev' was given"):
        scenes(3, split="dev")
