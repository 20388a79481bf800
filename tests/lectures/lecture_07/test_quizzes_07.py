"""The numbers in the quiz and the questions for review of lecture 07, computed or read again."""

from __future__ import annotations

import math

import pytest
import torch
from quiz_parts import Quiz

from course_lib.config import published
from course_lib.encoder import count_parameters
from course_lib.family.electra import (
    GENERATOR_SIZE,
    ElectraConfig,
    electra,
    electra_encoder,
)
from course_lib.lectures.lecture_07.exercises import compute, steps, weighing
from course_lib.objectives.replaced_tokens import RELEASED_MIX
from course_lib.teaching.claims import printed

QUIZ = Quiz("07")
item, answer = QUIZ.item, QUIZ.answer
PAPER = printed("electra")
LARGE, SMALL, ABLATION_STEPS = PAPER["large"], PAPER["small"], PAPER["stones"]
OURS = LARGE["electra_400k"]


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()


def test_the_shares_at_the_start_are_computed():
    found, right = item("what fraction of ELECTRA's loss")
    total, share = weighing.at_the_start(30_522, PAPER["loss"]["disc_weight"])
    mlm, disc = math.log(30_522), math.log(2)
    wrong_side = disc / (disc + 50 * mlm)
    assert right.text == f"{share:.0%}"
    assert [choice.text for choice in found.choices][:2] == [
        f"{wrong_side:.2%}", f"{disc / (disc + mlm):.1%}"]  # fmt: skip
    assert f"{mlm:.2f}" in right.why and f"{50 * disc:.2f}" in right.why
    assert f"{disc:.2f} of {disc + 50 * mlm:.0f}" in found.choices[0].why
    said = answer("λ = 50 large")
    for number in (f"{mlm:.2f} nats", f"{disc:.2f}", f"{total:.2f}", f"{share:.0%}",
                   f"{wrong_side:.2%}"):  # fmt: skip
        assert number in said


def test_adam_forgets_a_factor_but_not_in_a_shared_table():
    """What the item about λ says, for Adam's first step: the gradient over its own size."""

    def step(gradient):
        return -gradient / (math.sqrt(gradient**2) + 1e-6)

    mlm, disc = -10.0, 1.0  # the two losses pull a shared weight in opposite directions
    assert step(50 * disc) == pytest.approx(step(disc), rel=1e-4)
    assert step(mlm + disc) > 0 > step(mlm + 50 * disc)


def test_the_printed_rows_are_the_papers():
    found, right = item("What may explain")
    tying = PAPER["tying"]
    assert all(str(tying[key]) in found.question for key in ("none", "tokens", "all"))
    assert f"brings {tying['all'] - tying['tokens']:.1f}" in found.choices[1].why
    _, right = item("no adversarial training")
    tried = PAPER["adversarial"]
    assert f"{tried['adversarial']}%" in right.why and f"{tried['mlm']}%" in right.why
    said = answer("no gradient reach")
    assert f"{tried['adversarial']}%" in said and f"{tried['mlm']}%" in said
    assert PAPER["generator"]["best"] == [1 / 4, 1 / 2] and "1/4 to 1/2" in item("afford")[1].text
    assert [GENERATOR_SIZE[size] for size in ("small", "base", "large")] == [1 / 4, 1 / 3, 1 / 4]
    assert "1/4 (small), 1/3 (base) and 1/4 (large)" in answer("generator small")
    both = {PAPER["inference"][name] for name in ("bert_base", "electra_base")}
    assert both == {2.9e10} and "2.9e10" in item("faster inference")[1].why
    assert RELEASED_MIX == (0.85, 0.0, 0.15) and "masks 85%" in answer("disagree in two")


def test_the_ablation_steps_are_subtracted():
    found, right = item("What brings most")
    gains = {
        "no mask": ABLATION_STEPS["Replace MLM"] - ABLATION_STEPS["BERT"],
        "everywhere": ABLATION_STEPS["ELECTRA"] - ABLATION_STEPS["ELECTRA 15%"],
        "all words": ABLATION_STEPS["All-tokens MLM"] - ABLATION_STEPS["BERT"],
        "asking everywhere": ABLATION_STEPS["All-tokens MLM"] - ABLATION_STEPS["Replace MLM"],
        "judging": ABLATION_STEPS["ELECTRA"] - ABLATION_STEPS["All-tokens MLM"],
    }
    assert max(gains, key=gains.get) == "everywhere"
    assert f"{gains['everywhere']:.1f} points" in right.why
    assert f"gains {gains['all words']:.1f}" in right.why
    assert f"{gains['no mask']:.1f} points" in found.choices[0].why
    said = answer("Table 5 as a chain")
    assert all(f"{gain:.1f}" in said for gain in gains.values())
    assert all(str(x) in found.question for x in ABLATION_STEPS.values() if isinstance(x, float))
    said = answer("Compare replaced token detection")
    assert all(str(ABLATION_STEPS[name]) in said for name in ("BERT", "All-tokens MLM", "ELECTRA"))


def test_the_compute_is_divided():
    found, right = item("quarter of the compute")
    ratio = OURS["flops"] / LARGE["bert_large"]["flops"]
    assert f"{ratio:.1f} times as many" in found.choices[0].why
    assert f"{ratio:.1f} times as many" in answer("with a quarter")
    for said in (right.why, answer("with a quarter")):
        assert f"{LARGE['roberta_500k']['times']} times" in said
        assert f"{LARGE['xlnet']['times']} times" in said
    assert str(LARGE["own_bert"]["glue"]) in found.choices[2].why
    shares = compute.compute_shares("ELECTRA-400K", compute.printed_rows())
    assert {name for name, share in shares.items() if share <= 0.25} == {"RoBERTa-500K", "XLNet"}
    base = SMALL["electra_base"]
    assert f"{base['flops'] / LARGE['bert_large']['flops']:.0%} of" in answer("with a quarter")
    assert base["glue"] > LARGE["bert_large"]["glue"]
    assert SMALL["electra_small"]["flops"] == SMALL["bert_small"]["flops"] == 1.4e18


def test_the_balance_is_computed():
    said = answer("right balance")
    bert, roberta = LARGE["bert_large"], LARGE["roberta_500k"]
    assert f"{roberta['flops'] / bert['flops']:.0f} times" in said
    assert f"from {bert['glue']:.1f} to {roberta['glue']}" in said
    assert f"1/{roberta['flops'] / OURS['flops']:.1f} of" in said
    anew, task = (LARGE["own_bert"]["glue"] - bert["glue"],
                  OURS["glue"] - LARGE["own_bert"]["glue"])  # fmt: skip
    assert f"Of the {anew + task:.1f} points" in said
    assert f"{anew:.1f} came with a BERT trained anew" in said
    assert f"{task:.1f} with the task" in said


def test_the_extra_cost_is_counted():
    sizes = steps.published_step("base", 512, 0.15)
    bert, both = steps.training_step(*sizes)
    assert f"costs {both / bert - 1:.0%} more" in answer("generator small")
    blocks, _, H, *_, g = sizes
    assert blocks(g) / blocks(H) == pytest.approx(1 / 8, abs=0.01)


def test_the_parameters_are_counted():
    said = answer("must be stored")
    with torch.device("meta"):
        for size in ("small", "base", "large"):
            config = published("electra", size, ElectraConfig)
            assert f"{count_parameters(electra_encoder(config)):,}" in said
        model = electra("base")
        kept = count_parameters(model.discriminator)
        generator = count_parameters(model) - kept - count_parameters(model.generator.mlm)
    assert f"{count_parameters(model.discriminator.rtd):,}" in said
    assert f"{generator / 1e6:.2f} million" in said
