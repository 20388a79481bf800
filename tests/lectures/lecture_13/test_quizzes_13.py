"""The numbers in the quiz and the questions for review of lecture 13, computed or read again."""

from __future__ import annotations

import tomllib
from statistics import fmean, stdev

import pytest
import torch
from quiz_parts import Quiz

from course_lib.config import BertConfig, encoder_flops, published
from course_lib.encoder import count_parameters
from course_lib.family.albert import albert
from course_lib.family.bert import bert
from course_lib.files import data_path
from course_lib.lectures.lecture_13.exercises.matthews import matthews_of_counts
from course_lib.lectures.lecture_13.exercises.seeds import better
from course_lib.teaching.averages import glue_average

QUIZ = Quiz("13")
item, answer = QUIZ.item, QUIZ.answer
PAPERS = tomllib.loads(data_path("papers", "glue.toml").read_text(encoding="utf-8"))


def scores(name: str) -> dict:
    return PAPERS[name]["scores"]


def without_wnli(name: str) -> float:
    """The mean over the eight other tasks, pairs averaged."""
    tasks = (fmean(x) if isinstance(x, list) else x for t, x in scores(name).items() if t != "WNLI")
    return fmean(tasks)


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()
    assert len(QUIZ.items) == 14


def test_tasks_with_another_metric_than_accuracy():
    _, right = item("another metric than accuracy")
    other = {t for t, row in PAPERS["tasks"].items()
             if isinstance(row, dict) and row["metrics"] != ["accuracy"]}  # fmt: skip
    assert {word.strip(",") for word in right.text.replace(" and ", " ").split()} == other


def test_what_wnli_costs_on_the_leaderboard():
    found, right = item("How much did BERT learn of WNLI")
    row, wnli = scores("bert_large_leaderboard"), PAPERS["tasks"]["WNLI"]
    whole, eight = glue_average(row, "leaderboard"), without_wnli("bert_large_leaderboard")
    assert row["WNLI"] == wnli["majority"] and f"has {row['WNLI']} for WNLI" in found.question
    assert f"and {whole:.1f} on average" in found.question
    assert f"costs this row {eight - whole:.1f} points" in right.why
    assert f"have {eight:.2f}" in right.why
    assert f"{wnli['train_in_glue']} examples" in found.choices[0].text
    assert f"RTE, which has {row['RTE']}" in found.choices[1].text


def test_five_sets_are_alberts_average():
    """ALBERT's Table 2: base, in the order SQuAD 1.1, SQuAD 2.0, MNLI, SST-2, RACE."""
    table = {"ALBERT": ((89.3, 82.3), (80.0, 77.1), 81.6, 90.3, 64.0),
             "BERT": ((90.4, 83.2), (80.4, 77.6), 84.5, 92.8, 68.2)}  # fmt: skip
    tasks = ("SQuAD 1.1", "SQuAD 2.0", "MNLI", "SST-2", "RACE")
    means = {name: glue_average(dict(zip(tasks, row, strict=True)), "ALBERT-5")
             for name, row in table.items()}  # fmt: skip
    _, right = item("What is 80.1")
    assert means["ALBERT"] == pytest.approx(80.1, abs=0.051)  # 80.05, printed as 80.1
    assert means["BERT"] == pytest.approx(82.3, abs=0.051)
    assert "BERT-base has 82.3" in right.why


def test_two_averages_of_the_same_digits():
    _, right = item("Is DistilBERT as good")
    distil, base = without_wnli("distilbert_dev"), without_wnli("bert_base_dev_distilbert")
    tested = glue_average(scores("bert_base_test"), "test-9")
    assert f"{distil:.1f}" == f"{tested:.1f}" == "79.6"
    assert right.text.endswith(f"BERT-base has {base:.2f}")
    assert f"{scores('bert_base_dev_distilbert')['MNLI']}" in right.why
    assert f"DistilBERT {distil:.1f}" in answer("What is wrong, and how is it mended")


def test_the_two_models_of_an_unbalanced_set():
    found, right = item("ahead by CoLA's metric")
    counts = torch.tensor([[[0, 10], [0, 90]], [[8, 2], [13, 77]]])
    always, other = matthews_of_counts(counts).tolist()
    assert right.text == f"B, by {other:.2f} to {always:.0f}"
    sums = [*counts[1].sum(dim=1).tolist(), *counts[1].sum(dim=0).tolist()]
    assert "(8 · 77 − 2 · 13) / √({} · {} · {} · {})".format(*sums) in right.why
    right_ones = counts.diagonal(dim1=1, dim2=2).sum(1).tolist()
    assert found.choices[0].text == "A, by {} to {}".format(*right_ones)
    four = matthews_of_counts(torch.tensor([[[6, 4], [4, 86]]])).item()
    assert f"have {four:.3f}" in answer("low score of CoLA's metric")


def test_three_seeds_that_do_not_decide():
    found, right = item("What may be printed")
    a, b = [84.1, 86.0, 85.2], [84.9, 85.1, 86.6]
    gains = [y - x for x, y in zip(a, b, strict=True)]
    for name, row in (("A", a), ("B", b)):
        assert f"{name}: {', '.join(map(str, row))}" in found.question
    assert ", ".join(f"{x:.1f}".replace("-", "−") for x in gains) in right.why
    assert f"mean of {fmean(gains):.2f}, a standard deviation of {stdev(gains):.2f}" in right.why
    assert better(torch.tensor(a), torch.tensor(b)) == 0
    assert f"{fmean(gains):.1f} points on average" in found.choices[1].text


def test_what_albert_saves():
    with torch.device("meta"):
        small, base = count_parameters(albert("base")), count_parameters(bert("base"))
        wide, large = count_parameters(albert("xxlarge")), count_parameters(bert("large"))
    _, right = item("For which of the three")
    flops = encoder_flops(published("bert", "base", BertConfig), 128)
    assert f"{small / 1e6:.1f} million weights instead of {base / 1e6:.1f}" in right.why
    assert f"{flops / 1e9:.2f} GFLOPs" in right.why
    assert encoder_flops(published("albert", "base"), 128) == flops
    _, twice = item("at equal parameters, and at equal FLOPs")
    theirs = [encoder_flops(published(*x), 128) for x in (("albert", "xxlarge"), ("bert", "large"))]
    assert 1 - wide / large == pytest.approx(1 / 3, abs=0.01) and "a third fewer" in twice.why
    assert f"{theirs[0] / theirs[1]:.1f} times the FLOPs" in twice.why


def test_throughput_and_latency_of_a_batch():
    found, right = item("Is the batch better")
    assert "One text takes 20 ms. A batch of 32 takes 320 ms" in found.question
    assert f"{32 / 0.320:.0f} texts a second instead of {1 / 0.020:.0f}" in right.why
    assert f"each text takes {320 / 32:.0f} ms" in found.choices[0].text.lower()


def test_roberta_base_by_its_own_row():
    mean = glue_average(scores("roberta_base_dev"), "dev-8")
    said = answer("What is wrong, and how is it mended")
    assert f"RoBERTa-base {mean:.2f}" in said
    assert f"BERT-base {PAPERS['means']['bert_base_dev']}" in said


def test_distilberts_loss_is_uneven():
    student, teacher = scores("distilbert_dev"), scores("bert_base_dev_distilbert")
    lost = {task: teacher[task] - student[task] for task in ("RTE", "SST-2")}
    said = answer("What does the family as a whole teach")
    assert f"{lost['RTE']:.1f} points on RTE, {lost['SST-2']:.1f} on SST-2" in said


def test_segment_ids_in_three_classes():
    """DistilBERT takes nothing from them, RoBERTa has no row for a 1, BERT reads them."""
    transformers = pytest.importorskip("transformers")
    ids = torch.tensor([[5, 6, 7, 8]])
    one = torch.tensor([[0, 0, 1, 1]])
    small = {"vocab_size": 20, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
             "num_attention_heads": 2, "max_position_embeddings": 12}  # fmt: skip
    reading = transformers.BertModel(transformers.BertConfig(**small)).eval()
    first, second = (reading(ids, token_type_ids=x).last_hidden_state for x in (one, 0 * one))
    assert not torch.equal(first, second)
    single = transformers.RobertaConfig(**small, type_vocab_size=1)
    with pytest.raises(IndexError):
        transformers.RobertaModel(single)(ids, token_type_ids=one)
    config = transformers.DistilBertConfig(
        vocab_size=20, dim=8, hidden_dim=8, n_layers=1, n_heads=2
    )
    without = transformers.DistilBertModel(config).eval()
    assert not [name for name, _ in without.named_parameters() if "token_type" in name]
    try:
        given = without(ids, token_type_ids=one).last_hidden_state
    except TypeError:
        return  # an older version
    assert torch.equal(given, without(ids).last_hidden_state)
