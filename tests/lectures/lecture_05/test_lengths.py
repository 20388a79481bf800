"""What page 05 says of the lengths of the live pairs."""

from __future__ import annotations

import random

import pytest

from course_lib.lectures.lecture_05.experiments import LIVE
from course_lib.objectives.sentence_order import make_ordered_pairs
from course_lib.text.world import MicroWorld
from course_lib.train.baselines import bag_of_words_accuracy


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_lengths_tell_the_order_of_stories_and_nothing_else(shuffled: bool) -> None:
    world, draw = MicroWorld.load(), random.Random(0)

    def pairs(count: int, split: str):
        stories = world.documents(world.stories(count, seed=0, split=split))
        assert max(sum(map(len, story)) for story in stories) <= LIVE.length - 3
        if shuffled:
            stories = [draw.sample(story, len(story)) for story in stories]
        return make_ordered_pairs(stories, world.special, length=LIVE.length)

    train, heldout = pairs(3_000, "train"), pairs(2_000, "heldout")
    reached = bag_of_words_accuracy(train, heldout, world.special, kind="lengths")
    sd = (0.25 / len(heldout)) ** 0.5
    assert (reached < 0.5 + 4 * sd) is shuffled, (reached, len(heldout))
