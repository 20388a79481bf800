"""03_documentation and 03_packages: fine-tuning on documentation, its baselines and its results."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, replace
from typing import Any

import pytest
from test_results_03 import course, numbers, plain, result  # noqa: F401  course is a fixture

from course_lib.lectures.lecture_03 import documentation_runs as runs
from course_lib.lectures.lecture_03.documentation_runs import (
    BOTH,
    CLASSES,
    CODE,
    FILES,
    PACKAGE,
    SECTION,
    STEPS,
)
from course_lib.lectures.lecture_03.starts import COURSE
from course_lib.teaching import documentation_tasks
from course_lib.teaching.documentation_tasks import INSIDE, OUTSIDE, tagged
from course_lib.teaching.results import REPLAYED
from course_lib.text.documentation import installed_versions
from course_lib.text.english import LabelledText


@pytest.fixture(scope="module")
def documentation() -> dict[str, Any]:
    return result("03_documentation")


@pytest.mark.parametrize("name", FILES)
def test_the_file_was_made_by_today_s_recipes(name, course):  # noqa: F811
    results, tasks = result(name), FILES[name]
    recipe = replace(runs.recipes(tasks)[0], task="", start="", examples=0, steps=0)
    assert results["recipe"] == plain(asdict(recipe)) and results["weights"] == course.sha256
    assert results["steps"] == plain({task: STEPS[task] for task in tasks})
    assert all(results[task] == list(CLASSES[task]) for task in tasks if task in CLASSES)
    assert list(results["runs"]) == list(tasks)
    assert results["seeds"] == {task: len(runs.SEEDS[task]) for task in tasks}
    for task, starts in results["runs"].items():
        assert list(starts) == [*BOTH, "baseline"]
        for start, sizes in starts.items():
            assert [int(n) for n in sizes] == list(STEPS[task])
            for n, of in sizes.items():
                assert len(of) == results["seeds"][task]
                losses = {len(run["loss"]) for run in of if start in BOTH}
                assert losses <= {math.ceil(STEPS[task][int(n)] / 20)}
                assert all(0 <= run[m] <= 1 for run in of for m in ("score", "outside"))
    for task in CLASSES.keys() & {*tasks}:
        for run in results["runs"][task][COURSE]["2000"]:
            count = results["texts"][task]["test"]
            assert sum(numbers(run["confusion"])) == count
            right = sum(row[k] for k, row in enumerate(run["confusion"]))
            assert run["score"] == pytest.approx(right / count)


@pytest.mark.parametrize("name", FILES)
def test_no_text_of_the_packages_is_in_the_file(name):
    results = result(name)
    for task, about in results["texts"].items():
        assert re.fullmatch("[0-9a-f]{64}", about["hash"])
        read = {*CLASSES[PACKAGE]} if task == PACKAGE else {*INSIDE, *OUTSIDE}
        assert {*about["versions"]} <= read
    names = {*STEPS, *BOTH}
    texts = [t for t in strings(results) if " " in t and t not in names]
    assert not texts, texts[:3]


def strings(value: Any) -> list[str]:
    """Every text inside, keys left out."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in strings(part)]


def test_the_runs_say_what_the_page_says(documentation):
    """Fitted with 100 and 500 sentences from both starts, with 2,000 not from random
    initialisation; the order of the lines in packages never read."""
    code = documentation["runs"][CODE]
    fitted = {start: {n: [run["loss"][-1] < 0.1 for run in of] for n, of in code[start].items()}
              for start in BOTH}  # fmt: skip
    assert all(all(of) for of in fitted[BOTH[0]].values())
    assert all(fitted[BOTH[1]]["100"]) and all(fitted[BOTH[1]]["500"])
    assert not any(fitted[BOTH[1]]["2000"])
    sections = documentation["runs"][SECTION][BOTH[1]]["2000"]
    assert all(run["loss"][-1] > 0.1 for run in sections)
    for task in FILES["03_documentation"]:
        starts = documentation["runs"][task]
        ours, at_random, rule = ([run["score"] for run in starts[start]["2000"]]
                                 for start in (*BOTH, "baseline"))  # fmt: skip
        assert min(ours) > max([*at_random, *rule])
    for n in map(str, STEPS[CODE]):
        ours, rule, at_random = (sum(run["outside"] for run in code[start][n])
                                 for start in (BOTH[0], "baseline", BOTH[1]))  # fmt: skip
        assert ours > rule > at_random


def test_the_runs_say_of_packages_what_the_page_says():
    """Fitted with 100 paragraphs from both starts, at the end of the curve not from random
    initialisation; the bag of words lies between."""
    results = result("03_packages")
    ours, at_random, rule = (results["runs"][PACKAGE][start] for start in (*BOTH, "baseline"))
    fitted = {n: [run["loss"][-1] < 0.1 for run in of] for n, of in at_random.items()}
    assert all(run["loss"][-1] < 0.1 for run in ours["100"]) and all(fitted["100"])
    assert not any(fitted["2000"])
    for n, of in ours.items():
        assert min(run["score"] for run in of) > max(run["score"] for run in at_random[n])
    lowest, between, highest = (
        [run["score"] for run in sizes["2000"]] for sizes in (at_random, rule, ours)
    )
    assert max(lowest) < min(between) <= max(between) < min(highest)


@pytest.mark.usefixtures("recorded_draws")
@pytest.mark.parametrize("name", FILES)
def test_the_first_losses_are_the_recorded_ones(name):
    results, first = result(name), runs.recipes(FILES[name])[0]
    about = results["texts"][first.task]
    if installed_versions(about["versions"]) != about["versions"]:
        pytest.skip("other versions are installed: other texts")
    assert runs.texts(first.task).hash == about["hash"]
    assert len(results["replay"]) == REPLAYED
    assert runs.replay(first) == pytest.approx(results["replay"], rel=2e-3)


# ---------------------------------------------------------------- the parts


def test_a_larger_number_of_texts_begins_with_a_smaller_one():
    items = list(range(50))
    some = runs.some_texts(items, 20, seed=1)
    assert runs.some_texts(items, 5, seed=1) == some[:5] != runs.some_texts(items, 5, seed=2)
    assert sorted(runs.some_texts(items, 99, seed=1)) == items


def test_the_window_sees_two_words_to_either_side_and_the_form():
    seen = list(documentation_tasks.windows(tagged(["Give new_array to Take", []])))
    assert set(seen[0]) == {"+0 give", "+1 new_array", "+2 to", "-1 ", "-2 ", "capital", "ends ive"}
    assert {"-1 give", "underscore", "ends ray"} <= set(seen[1])
    assert documentation_tasks._continued(["I-CODE", "I-CODE", "O", "B-CODE", "I-CODE"]) == [
        "B-CODE", "I-CODE", "O", "B-CODE", "I-CODE",
    ]  # fmt: skip


def test_baselines_learn_what_they_see():
    code = [tagged([f"Set {word} to the value", [[4, 4 + len(word)]]]) for word in ("copy", "axis")]
    plain_ = [tagged([f"A {word} of the value", []]) for word in ("copy", "axis")]
    assert runs.without_encoder(CODE, (code + plain_) * 5, code + plain_) == 1
    sections = [LabelledText("", f"{text} it", label)
                for text, label in (("If", "Raises"), ("Return", "Summary"))]  # fmt: skip
    assert runs.without_encoder(SECTION, sections * 5, sections) == 1
