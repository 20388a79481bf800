"""The solutions of lecture 06's exercises beside the library, and their hints beside the truth."""

from __future__ import annotations

import copy
from statistics import fmean

import torch
import torch.nn.functional as F
from answers_06 import begin_copied, by_distance, triple_library

from course_lib.family.distilbert import distilbert_for_masked_lm, initialise_from, spread_layers
from course_lib.kernels.distillation import soft_target_loss
from course_lib.lectures.lecture_06.exercises import (
    EXERCISES,
    begin,
    layers,
    misprint,
    soften,
    targets,
    triple,
)
from course_lib.objectives.distillation import PUBLISHED_WEIGHTS, tinybert_loss
from course_lib.teaching.averages import glue_average
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import alike
from course_lib.train.distilling import PairOutput

BY_ID = {exercise.id: exercise for exercise in EXERCISES}


def test_the_hint_of_the_softer_answer_is_right():
    hint = BY_ID["06.1"].hints[-1]
    for T in (1.0, 2.0):
        probabilities, entropy = soften.soften(torch.tensor([[2.0, 0.0]]), T)
        a, b = probabilities[0].tolist()
        assert f"{a:.3f} and {b:.3f}, entropy {entropy.item():.3f}" in hint


def test_the_hint_of_the_soft_loss_is_right():
    hint, logits = BY_ID["06.2"].hints[-1], torch.tensor([[2.0, 0.0]])
    one, two = (soft_target_loss(logits, 0 * logits, T).item() for T in (1.0, 2.0))
    assert f"T = 1 gives {one:.3f}" in hint and f"= {two:.3f}." in hint
    assert f"4 · {two / 4:.3f}" in hint


def test_the_soft_loss_is_the_librarys():
    for case in targets.other_temperatures(Draw(3)):
        assert alike(targets.soft_loss(*case), soft_target_loss(*case))


def test_a_perfect_student_has_no_soft_loss_and_still_a_cross_entropy():
    logits = torch.tensor([[1.0, 0.0, -1.0]])
    assert alike(targets.soft_loss(logits, logits, 2.0), 0.0)
    assert float(F.cross_entropy(logits / 2, (logits / 2).softmax(-1))) > 0.25


def test_the_triple_loss_is_the_librarys():
    for case in [*triple.with_padding(Draw(3)), *triple.nothing_masked(Draw(4))]:
        assert alike(triple.triple_loss(*case), triple_library(*case))
    assert tuple(PUBLISHED_WEIGHTS.values()) == triple.PUBLISHED


def test_the_layer_losses_are_the_librarys():
    loss = tinybert_loss([2, 4], embedding=0.0)
    for case in layers.cases([([2, 4], 4, 3, 5)], (4, 4), (6, 3))(Draw(3)):
        student, teacher, _, matrix, real = case
        widened = tuple(x @ matrix for x in student.hidden_states)
        losses = loss(PairOutput(student, teacher, real, None, widened), {})
        assert alike(layers.layer_losses(*case), (losses["attention"], losses["hidden"]))


def test_the_drawn_scores_look_like_an_encoders():
    outputs = layers.outputs(Draw(1), 1, 4, torch.tensor([[True, True, False]]))
    assert (outputs.attentions[0][..., 2] == 0).all()
    assert torch.isfinite(outputs.attention_scores[0]).all()


def test_the_layers_chosen_are_the_librarys():
    for N, M in ((12, 6), (4, 2), (9, 4), (5, 3)):
        student, teacher = begin.depths(N, M)(Draw(0))[0]
        origins, behind = begin.layers(begin.begin, student, teacher)
        assert origins == by_distance(N, M) == list(spread_layers(N, M)) and not behind
    assert "0, 2, 4, 7, 9, 11" in BY_ID["06.4"].statement
    assert spread_layers(12, 6) == (0, 2, 4, 7, 9, 11)


def test_a_student_begins_as_the_librarys_does():
    student, teacher = begin.depths(4, 2)(Draw(5))[0]
    ours = begin.begin(copy.deepcopy(student), teacher)
    names = ("vocab_size", "hidden_size", "num_heads", "intermediate_size", "max_positions")
    sizes = {name: getattr(ours.config, name) for name in names}
    theirs = distilbert_for_masked_lm(**sizes, num_layers=2, type_vocab_size=2)
    whole = distilbert_for_masked_lm(**sizes, num_layers=4, type_vocab_size=2)
    whole.encoder = teacher
    initialise_from(theirs, whole)
    for own, other in zip(ours.parameters(), theirs.encoder.parameters(), strict=True):
        assert torch.equal(own, other)


def test_a_teacher_whose_tensors_are_shared_would_change():
    student, teacher = begin.depths(4, 2)(Draw(5))[0]
    shared = begin_copied(student, teacher, how=lambda module: module)
    before = teacher.stack.blocks[0].attention.query.weight.clone()
    with torch.no_grad():
        shared.stack.blocks[0].attention.query.weight += 1
    assert not torch.equal(teacher.stack.blocks[0].attention.query.weight, before)


def test_the_printed_row_contradicts_itself_and_the_mended_one_does_not():
    row, printed, again = misprint.printed_row()
    assert (printed, row["MNLI"], again["MNLI"]) == (79.5, 86.7, 84.7)
    assert f"{glue_average(row, 'dev-9'):.2f}" == "79.72"
    assert f"{glue_average(again, 'dev-9'):.2f}" == "79.50"
    task, shift = misprint.misprint(row, printed, again)
    assert task == "MNLI" and alike(shift, 2 / 9)
    assert set(row) == set(misprint.TASKS)


def test_the_second_prints_slips_never_mend_the_mean():
    for seed in range(30):
        for row, printed, again in misprint.two_prints(Draw(seed)):
            fits = [t for t in row if round(fmean({**row, t: again[t]}.values()), 1) == printed]
            assert len(fits) == 1 and round(fmean(row.values()), 1) != printed


def test_the_hint_of_the_shift_is_right():
    assert "1.8 / 9 = 0.2" in BY_ID["06.6"].hints[-1] and alike(1.8 / 9, 0.2)
