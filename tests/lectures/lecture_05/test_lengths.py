"""What page 05 says of the lengths of the live pairs."""

from __future__ import annotations

import random

import pytest

from course_lib.lectures.lecture_05.experiments import LIVE
from course_lib.objectives.sentence_order import make_ordered_pairs
from course_lib.text.world import MicroWorld
from course_lib.train.baselines import bag_of_words_accuracy


@pytest.fixture(scope="module")
def stories() -> list:
    """To train and to be measured on."""
    world = MicroWorld.load()
    counts = {"train": 1_500, "heldout": 2_000}
    return [world.documents(world.stories(n, seed=0, split=split)) for split, n in counts.items()]


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_lengths_tell_the_order_of_stories_and_nothing_else(stories, shuffled: bool) -> None:
    draw, special = random.Random(0), MicroWorld.load().special
    assert max(sum(map(len, story)) for split in stories for story in split) <= LIVE.length - 3
    if shuffled:
        stories = [[draw.sample(story, len(story)) for story in split] for split in stories]
    train, heldout = (make_ordered_pairs(s, special, length=LIVE.length) for s in stories)
    reached = bag_of_words_accuracy(train, heldout, special, kind="lengths")
    sd = (0.25 / len(heldout)) ** 0.5
    assert (reached < 0.5 + 4 * sd) is shuffled, (reached, len(heldout))
