"""The numbers in the quiz and the questions for review of lecture 04, computed or read again."""

from __future__ import annotations

import pytest
import torch
from quiz_parts import Quiz

from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.family.roberta import position_ids_after_padding, roberta
from course_lib.lectures.lecture_04.exercises.accumulate import large_batch_loss
from course_lib.lectures.lecture_04.exercises.average import average
from course_lib.objectives.coverage import coverage
from course_lib.teaching.claims import difference, printed

QUIZ = Quiz("04")
item, answer = QUIZ.item, QUIZ.answer


PAPER, GLUE = printed("roberta"), printed("glue")


def test_the_coverage_is_computed():
    found, right = item("Ten copies, in each")
    assert right.text == f"{coverage(0.15, 40, 10)[-1]:.1%}" == "80.3%"
    assert f"{0.85**10:.1%}" in right.why
    assert f"{coverage(0.15, 40)[-1]:.1%}" in [choice.text for choice in found.choices]
    said = answer("How many different masks")
    assert f"{coverage(0.15, 13)[-1]:.0%} after 13" in said
    assert f"{coverage(0.15, 40)[-1]:.1%} after 40" in said


def test_the_gains_of_dynamic_masking_are_the_papers():
    gains = list(difference("roberta", "masking", "dynamic", "static").values())
    said = f"{gains[0]:+.1f}, {gains[1]:+.1f} and {gains[2]:+.1f}".replace("-", "−")
    assert said in item("multiplies the training data")[1].why
    assert "+0.4 on SQuAD 2.0, +0.4 on SST-2 and −0.3 on MNLI" in answer("How many different masks")
    assert gains == [0.4, -0.3, 0.4]


def test_the_input_formats_are_the_papers():
    table = PAPER["input_formats"]
    squad, race = (table["columns"].index(name) for name in ("SQuAD 2.0", "RACE"))
    _, right = item("say about NSP")
    for name in ("segment-pair", "full-sentences", "doc-sentences", "sentence-pair"):
        assert str(table[name][squad]) in right.why
    for name in ("segment-pair", "full-sentences", "doc-sentences"):
        assert str(table[name][race]) in answer("do without NSP")
    rows = {name: table[name] for name in ("segment-pair", "sentence-pair", "full-sentences")}
    not_best = [
        name for i, name in enumerate(table["columns"])
        if table["doc-sentences"][i] < max(row[i] for row in rows.values())
    ]  # fmt: skip
    assert not_best == ["SST-2"]


def test_two_thousand_sequences_are_best():
    _, right = item("which batch size")
    best = min(PAPER["batch"]["rows"], key=lambda row: row[3])
    assert best[0] == 2000 and all(str(x) in right.why for x in best[3:])
    assert [max(row[i] for row in PAPER["batch"]["rows"]) for i in (4, 5)] == best[4:]


def test_the_loss_of_the_parts_is_right():
    _, right = item("read in two parts")
    assert float(right.text) == large_batch_loss([3.0, 2.0], [10, 30], [1, 1], [1, 1])


def test_the_parameters_are_counted():
    with torch.device("meta"):
        more = count_parameters(roberta("base")) - count_parameters(bert("base"))
    found, right = item("million parameters more")
    assert f"{more / 1e6:.1f} million" in found.question
    rows = 50_265 - 30_522
    assert f"{rows:,} rows of 768 are {rows * 768:,}" in right.why
    assert more == rows * 768 + 2 * 768 - 768


def test_the_position_numbers_are_the_librarys():
    _, right = item("position numbers")
    ids = torch.tensor([[0, 7, 8, 2, 1, 1]])
    assert right.text == " ".join(map(str, position_ids_after_padding(ids, 1)[0].tolist()))


@pytest.mark.parametrize("size", ["base", "large"])
def test_the_settings_are_those_of_table_9(size):
    table = PAPER["settings"][size]
    rate, climb = round(table["learning_rate"] * 1e4), f"{table['warmup']:,}"
    assert f"{size}: {rate}e-4 and {climb} steps" in item("warm-up")[1].text.lower()
    said = answer("settings of base and large")
    assert f"{rate}·10⁻⁴ after" in said and climb in said


def test_the_results_are_those_of_the_papers():
    squad, race = PAPER["squad"], PAPER["race"]
    gain_dev = squad["roberta_2_dev"] - squad["bert_large_2_dev"]
    gain_test = squad["roberta_2_test"] - squad["bert_large_2_test"]
    _, right = item("on SQuAD 2.0 is like for like")
    assert right.text == f"{squad['bert_large_2_dev']} (BERT-large) against 89.4 (RoBERTa)"
    assert f"{gain_dev:+.1f}" in right.why and f"{gain_test:+.1f}" in right.why
    _, right = item("SQuAD 1.1 from")
    assert f"{squad['bert_large_1_dev']} against {squad['roberta_1_dev']}" in right.why
    said = answer("results on SQuAD 2.0")
    assert f"{squad['roberta_2_test']} against {squad['bert_large_2_test']}" in said
    assert f"{race['roberta']} against {race['bert_large']}" in said
    more, longer = (
        list(
            difference("roberta", "stages", f"roberta_160GB_{after}", f"roberta_{before}").values()
        )
        for before, after in (("16GB_100k", "100k"), ("160GB_100k", "500k"))
    )
    said = answer("needs for data")
    assert f"{more[2]:+.1f} on MNLI and {more[1]:+.1f} on SQuAD 2.0" in said
    assert f"{longer[2]:+.1f} and {longer[1]:+.1f}" in said


def test_the_means_come_from_the_rows():
    means = {
        name: average(GLUE[name]["scores"], GLUE[name]["recipe"])
        for name in ("roberta_large_dev", "bert_large_dev", "bert_large_leaderboard",
                     "bert_large_test")
    }  # fmt: skip
    assert item("RoBERTa 88.5, BERT-large 84.6")[1].text.startswith(
        f"{means['roberta_large_dev']:.2f} and {means['bert_large_dev']:.2f}"
    )
    said = answer("Read RoBERTa's GLUE table")
    assert f"{means['bert_large_leaderboard']:.1f} in that list" in said
    assert f"its {means['bert_large_test']:.1f} is another recipe" in said
    for name in ("roberta_large_dev", "bert_large_dev"):
        for task, score in GLUE[name]["scores"].items():
            row = "/".join(map(str, score)) if isinstance(score, list) else str(score)
            assert row in said, (name, task)


def test_the_amounts_are_computed():
    data, compute = PAPER["data"], PAPER["compute"]
    sizes = [data[name] for name in ("books_and_wikipedia", "cc_news", "openwebtext", "stories")]
    said = answer("Which text")
    assert all(f"({size} GB" in said or f"({size} GB)" in said for size in sizes[1:])
    assert f"The sum is {sum(sizes)}" in said
    times = f"{compute['roberta_500k'] / compute['bert_large']:.1f}"
    for said in (answer("side by side"), answer("How far does"), item("1,024 V100")[1].why):
        assert f"{times} times" in said
    assert 256 * 1_000_000 == 256e6 and 8_000 * 500_000 == 4e9
    with torch.device("meta"):
        large = [count_parameters(model("large")) / 1e6 for model in (bert, roberta)]
    assert f"{large[0]:.0f} against {large[1]:.0f} million" in answer("side by side")
