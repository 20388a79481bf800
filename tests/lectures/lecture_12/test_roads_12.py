"""Lecture 12's texts of roads, and what its file says of them."""

from __future__ import annotations

import torch

from course_lib.lectures.lecture_12 import fast_runs, roads
from course_lib.teaching.results import read_result


def test_the_answer_is_where_the_roads_end():
    texts = roads.road_texts(300, seed=5)
    ids, types = texts.sequences.input_ids, texts.sequences.token_type_ids
    for row, leads, answer, n in zip(ids, types, texts.labels, roads.roads_of(texts), strict=True):
        road = {int(b) - roads.FIRST: int(t) - 1 for b, t in zip(row[4:], leads[4:], strict=True)}
        assert sorted(road) == sorted(road.values()) == list(range(len(roads.PLACES)))
        place = int(row[1]) - roads.FIRST
        for _ in range(int(n)):
            place = road[place]
        assert place == answer
    assert set(roads.roads_of(texts).tolist()) == {1, 2, 3}


def test_texts_are_drawn_by_the_seed():
    first, again, other = (roads.road_texts(50, seed).sequences.input_ids for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_a_text_in_words():
    text = roads.as_text(roads.road_texts(1, seed=0), 0)
    listed, question, answer = text.split(" · ")
    start, count = question.removeprefix("from ").split(", roads: ")
    road, place = dict(one.split("→") for one in listed.split()), start
    for _ in range(int(count)):
        place = road[place]
    assert place == answer


def test_what_the_page_says_of_every_seed():
    """One road needs one exit, three need more; early exit beats one exit for all and the draw."""
    stored = read_result("12_roads")
    assert set(stored["recipes"]) == set(fast_runs.ROAD_FASTBERTS)
    for run in stored["runs"]["joint"]:
        assert run["by_roads"]["1"][0] > 0.97 > 0.5 > run["by_roads"]["3"][0]
        assert min(run["by_roads"][n][2] for n in "123") > 0.99
        early = next(row for row in run["by_entropy"] if row["speed"] == 0.3)
        assert early["accuracy"] > run["accuracy"] - 0.01 > 0.98
        no_dearer = run["by_layer"][: int(early["layers"])]  # one exit for all texts
        assert max(no_dearer) < early["accuracy"] - 0.1
        assert early["accuracy"] > early["at_random"] + 0.08
