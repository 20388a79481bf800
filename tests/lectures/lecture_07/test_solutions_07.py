"""The solutions of lecture 07's exercises beside the library, and their hints beside the truth."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.electra import ElectraConfig, ElectraOutput, electra_from
from course_lib.heads import BertForMaskedLM
from course_lib.lectures.lecture_07.exercises import (
    EXERCISES,
    compute,
    judging,
    labels,
    steps,
    weighing,
)
from course_lib.objectives.replaced_tokens import electra_loss, replaced_labels, replaced_token_loss
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.machinery import check_answer
from course_lib.teaching.exercises.outputs import alike

BY_ID = {exercise.id: exercise for exercise in EXERCISES}


def test_the_labels_are_the_librarys():
    original, masked, corrupted = labels.LABELS.stages[-1].cases(Draw(3))[0]
    at = ((masked != original) | (corrupted != original)).flatten().nonzero().flatten()
    theirs = replaced_labels(corrupted, at, original.flatten()[at])
    assert torch.equal(labels.labels(original, masked, corrupted), theirs)
    assert 0 < theirs.sum() < len(at)


def test_the_sentence_is_labelled_as_the_hint_says():
    original = ["the", "gardener", "waters", "the", "roses"]
    corrupted = ["the", "nurse", "waters", "the", "roses"]
    assert " ".join(original) in BY_ID["07.1"].statement
    by_hand = " ".join(str(int(a != b)) for a, b in zip(original, corrupted, strict=True))
    assert BY_ID["07.1"].hints[0].startswith(f"By hand: {by_hand}.")


def test_the_loss_is_the_librarys():
    logits, judged, real = judging.case(Draw(5), (6, 9), (2, 3))
    at = judged.flatten().nonzero().flatten()
    corrupted = torch.full_like(judged, 7)
    outputs = ElectraOutput(torch.zeros(len(at), 9), logits, corrupted, at, real)
    theirs = replaced_token_loss(outputs, {"labels": torch.full((len(at),), 8)})["total"]
    assert alike(judging.judge_loss(logits, judged, real), theirs, 1e-5)


def test_the_start_is_that_of_a_model_at_random_initialisation():
    torch.manual_seed(0)
    config = ElectraConfig(vocab_size=900, hidden_size=64, num_layers=2, intermediate_size=128,
                           max_positions=40, embedding_size=32)  # fmt: skip
    model = electra_from(config).eval()
    ids = torch.randint(5, 900, (4, 32))
    at = torch.arange(0, 128, 7)
    with torch.no_grad():
        outputs = model(ids.flatten().index_fill(0, at, 4).view(4, 32), predict_at=at)
        losses = electra_loss()(outputs, {"labels": ids.flatten()[at]})
    total, fraction = weighing.at_the_start(900, 50.0)
    assert float(losses["total"]) == pytest.approx(total, rel=0.05)
    assert float(50 * losses["rtd"] / losses["total"]) == pytest.approx(fraction, rel=0.05)


def test_the_fractions_that_the_exercise_speaks_of_are_right():
    total, fraction = weighing.at_the_start(30_522, 50)
    assert f"{fraction:.0%}" == "77%" and total == pytest.approx(44.98, abs=0.01)
    assert weighing.at_the_start(8, 3)[1] == pytest.approx(0.5)
    assert f"{weighing.at_the_start(8, 3)[0]:.4f}" in BY_ID["07.4"].hints[-1]


def test_the_mistake_of_the_lecture_is_named_where_it_first_shows():
    exercise = BY_ID["07.4"]
    report = check_answer(exercise, exercise.with_mistakes(exercise.mistakes[0]), 0)
    assert [stage.passed for stage in report.stages] == [True, False, None]


def counted(model, *inputs, **more):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*inputs, **more)
    return counter.get_total_flops()


def test_the_flops_are_those_of_the_networks():
    sizes = dict(vocab_size=50, hidden_size=24, num_layers=3, num_heads=3, intermediate_size=96,
                 max_positions=16)  # fmt: skip
    T = 11
    model = electra_from(ElectraConfig(**sizes, embedding_size=24), 1 / 3).eval()
    bert = BertForMaskedLM(Encoder(BertConfig(**sizes))).eval()
    ids = torch.ones(1, T, dtype=torch.long)
    ours = steps.training_step(steps.Blocks(T, 3), T, 24, 50, 3, 8)
    hidden = dict(output_attentions=True)  # the readable attention, which the counter can see
    discriminator = counted(model.discriminator.encoder, ids, **hidden) + 2 * T * (24 * 24 + 24)
    head = 2 * 3 * (8 * 24 + 24 * 50)
    generator = counted(model.generator.encoder, ids, **hidden) + head
    assert ours[1] == 3 * (discriminator + generator)
    assert ours[0] == 3 * (counted(bert.encoder, ids, **hidden) + 2 * 3 * (24 * 24 + 24 * 50))
    assert counted(model.generator.mlm, torch.zeros(3, 8)) == head
    assert counted(model.discriminator.rtd, torch.zeros(T, 24)) == 2 * T * (24 * 24 + 24)


def test_the_hint_with_numbers_counts_right():
    (hint,) = (h for h in BY_ID["07.5"].hints if h.startswith("With "))
    bert, both = steps.training_step({4: 500, 2: 150}.__getitem__, 2, 4, 10, 1, 2)
    assert f"= {bert}, " in hint and hint.endswith(f"= {both}.")


def test_a_step_is_dearer_by_little():
    bert, both = steps.training_step(*steps.published_step("base", 512, 0.15))
    assert 1.10 < both / bert < 1.20


def test_whose_quarter_it_is():
    shares = compute.compute_shares("ELECTRA-400K", compute.printed_rows())
    assert {name for name, x in shares.items() if x <= 0.25} == {"RoBERTa-500K", "XLNet"}
    assert f"{shares['BERT-large']:.1f} times" in BY_ID["07.6"].hints[-1]
    assert f": {shares['RoBERTa-500K']:.2f}." in BY_ID["07.6"].hints[-1]
    assert "ELECTRA-1.75M" not in shares
    base = compute.compute_shares("ELECTRA-base", compute.printed_rows())
    assert f"{base['BERT-large']:.2f}" == "0.34" and base["BERT-base"] == 1.0


def test_no_drawn_rival_stands_near_the_margin():
    for seed in range(20):
        for stage in BY_ID["07.6"].stages[:-1]:
            for model, rows in stage.cases(Draw(seed)):
                gaps = [row["score"] - rows[model]["score"] for row in rows.values()]
                assert min(abs(abs(gap) - compute.LEVEL) for gap in gaps) > 0.04
