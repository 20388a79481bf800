"""The numbers in the quiz and the questions for review of lecture 06, computed or read again."""

from __future__ import annotations

from statistics import fmean

import torch
from quiz_parts import Quiz

from course_lib.config import encoder_flops, published
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.family.distilbert import DistilBertConfig, distilbert, spread_layers
from course_lib.family.tinybert import layer_mapping, tinybert
from course_lib.kernels.distillation import soft_target_loss
from course_lib.lectures.lecture_06.exercises.soften import soften
from course_lib.objectives.distillation import PUBLISHED_WEIGHTS
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import signed

QUIZ = Quiz("06")
item, answer = QUIZ.item, QUIZ.answer


PAPER, TINY, GLUE = printed("distilbert"), printed("tinybert"), printed("glue")
TEACHER, STUDENT = GLUE["bert_base_dev_distilbert"], GLUE["distilbert_dev"]


def count(model, *args):
    with torch.device("meta"):
        return count_parameters(model(*args))


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()


def test_the_softened_logits_are_computed():
    found, right = item("Logits 4, 2 and 0")
    scores = torch.tensor([[4.0, 2.0, 0.0]])
    cold, warm, sharp = (soften(scores, T)[0][0, 0].item() for T in (1.0, 4.0, 0.25))
    assert right.text == f"From {cold:.2f} to {warm:.2f}"
    texts = [choice.text for choice in found.choices]
    assert f"From {cold:.2f} to {cold / 4:.2f}" in texts
    assert f"From {cold:.2f} to {sharp:.2f}" in texts


def test_the_gradient_shrinks_as_the_answer_says():
    torch.manual_seed(0)
    scores, taught = torch.randn(1, 50, requires_grad=True), torch.randn(1, 50)
    sizes = []
    for T in (4.0, 16.0, 64.0):
        (found,) = torch.autograd.grad(soft_target_loss(scores, taught, T), scores)
        p, q = soften(scores, T)[0], soften(taught, T)[0]
        assert torch.allclose(found / T**2, (p - q) / T, atol=1e-7)
        sizes.append(found.norm().item())
    assert max(sizes) < 1.1 * min(sizes)  # with T², nearly the same at every T
    assert "(p − q) / T" in answer("factor T²")


def test_the_parameters_are_counted():
    big, small = count(bert, "base"), count(distilbert, "base")
    _, right = item("leave out of BERT-base")
    said = answer("Count DistilBERT")
    assert f"{small:,} numbers remain of {big:,}" in right.why
    block, pooler = 7_087_872, 768 * 768 + 768
    assert big - 6 * block - 2 * 768 - pooler == small
    for number in (big, block, 6 * block, 2 * 768, pooler, small):
        assert f"{number:,}" in said
    assert f"{small / big:.1%}" in said
    tiny = count(tinybert, "4")
    assert f"{tiny / 1e6:.1f} million parameters, {tiny / big:.0%} of" in answer("77.0 of 79.5")


def test_the_flops_are_counted():
    big = encoder_flops(published("bert", "base"), 128)
    small = encoder_flops(published("distilbert", "base", DistilBertConfig), 128)
    assert f"({small / 1e9:.2f} against {big / 1e9:.2f} billion" in answer("60% faster")


def test_the_layers_are_the_released_ones():
    found, _ = item("What does this save")
    *first, last = spread_layers(12, 6)
    assert f"{', '.join(map(str, first))} and {last}" in found.question


def test_the_scores_are_those_of_table_1():
    before, after = TEACHER["scores"], STUDENT["scores"]
    said, (_, right) = answer("gap between"), item("97% of what")
    for task in ("RTE", "CoLA", "MNLI", "SST-2", "WNLI"):
        assert f"{task} {signed(after[task] - before[task])}" in said
    means = fmean(before.values()), fmean(after.values())
    assert f"{means[0]:.1f} against {means[1]:.1f}" in said
    assert f"{1 - TEACHER['printed'] ** -1 * STUDENT['printed']:.1%} less" in said
    assert right.why.startswith(f"77.0 / 79.5 = {STUDENT['printed'] / TEACHER['printed']:.1%}")
    uneven = item("97% of what")[0].choices[0].why
    for task in ("RTE", "SST-2", "WNLI"):
        assert f"{abs(after[task] - before[task]):.1f}" in uneven


def test_the_other_results_are_those_of_tables_2_and_3():
    told, speed = PAPER["downstream"], PAPER["speed"]
    said = answer("gap between")
    assert f"{told['bert_base_imdb']} against {told['distilbert_imdb']}" in said
    assert f"F1 {told['bert_base_squad'][1]} against {told['distilbert_squad'][1]}" in said
    found, right = item("a second distillation")
    for scores in (told["distilbert_squad"], told["distilbert_twice_squad"]):
        assert str(scores[1]) in found.question
    ratio = speed["bert_base"] / speed["distilbert"]
    less = 1 - 1 / ratio
    found, right = item("takes BERT-base 668 s")
    assert f"{ratio:.2f} times" in right.text and f"{less:.0%} less" in right.why
    assert f"{speed['distilbert']} s" in found.question
    assert f"{ratio:.2f} times" in said and f"{less:.0%} less" in answer("60% faster")
    assert f"{speed['bert_base'] - speed['distilbert']} s of" in found.choices[0].why


def test_the_ablation_is_that_of_table_4():
    table = {name: x for name, x in PAPER["ablation"].items() if name.startswith(("w", "f"))
             and isinstance(x, float)}  # fmt: skip
    assert min(table, key=table.get) == "fresh_weights"
    assert max(table, key=table.get) == "without_mlm"
    _, right = item("missed least")
    assert right.text == f"Masked words: {table['without_mlm']}".replace("-", "−")
    for name in ("without_soft", "without_cosine"):
        assert f"{table[name]}".replace("-", "−") in right.why
    said = answer("What knowledge")
    assert all(f"{-x}" in said for x in table.values())
    assert item("What does this save")[1].text.startswith(f"{-table['fresh_weights']} points")
    assert f"{table['without_soft']}".replace("-", "−") in answer("more from a teacher")


def test_the_weights_are_the_published_ones():
    assert {name: PAPER["weights"][name] for name in PUBLISHED_WEIGHTS} == PUBLISHED_WEIGHTS
    soft, mlm, cosine = (f"{PUBLISHED_WEIGHTS[name]:g}" for name in ("soft", "mlm", "cosine"))
    assert item("(1 − α)")[1].text == f"{soft} · soft + {mlm} · MLM + {cosine} · cosine"
    assert answer("Write down DistilBERT").strip().startswith(f"{soft} · T²")


def test_the_price_is_multiplied_right():
    training = PAPER["training"]
    hours = training["gpus"] * training["hours"]
    assert f"{training['gpus']} GPUs for about {training['hours']} hours: {hours}" in answer(
        "save the cost"
    )


def test_tinyberts_numbers_are_printed_ones():
    losses, stages, mapping = TINY["losses"], TINY["stages"], TINY["mapping"]
    found, right = item("one kind of loss")
    assert str(losses["all"]) in found.question
    assert right.text.endswith(str(losses["without_both_layer_losses"]))
    assert str(losses["without_attention"]) in right.why
    assert str(losses["without_hidden"]) in right.why
    assert str(losses["without_prediction"]) in found.choices[0].why
    for name in ("embedding", "prediction", "both_layer_losses"):
        assert f"{losses['all'] - losses[f'without_{name}']:.1f}" in found.choices[1].why
    said = answer("What knowledge")
    assert all(str(x) in said for name, x in losses.items() if name != "where")
    said = answer("two stages")
    assert all(str(x) in said for name, x in stages.items() if name != "where")
    said = item("uniform mapping")[0].choices[0].why
    assert str(mapping["bottom"]) in said and str(mapping["uniform"]) in said
    said = answer("77.0 of 79.5")
    assert str(TINY["glue"]["distilbert_6"]) in said and str(TINY["glue"]["distilbert_4"]) in said
    assert (TINY["glue"]["tinybert_4"], TINY["glue"]["teacher"]) == (
        STUDENT["printed"], TEACHER["printed"],
    )  # fmt: skip


def test_the_mapping_is_the_librarys():
    _, right = item("uniform mapping")
    layer = layer_mapping(4, 12)[1]
    assert right.text == f"From layer {layer}, index {layer}"


def test_the_widths_are_those_of_the_published_sizes():
    student, teacher = published("tinybert", "4"), published("bert", "base")
    found, _ = item("be compared at all")
    assert f"{student.hidden_size} wide" in found.question
    assert f"teacher {teacher.hidden_size}" in found.question
    assert student.num_heads == teacher.num_heads == 12
    assert f"({student.hidden_size}, {teacher.hidden_size})" in answer("four losses")


def test_the_slips_are_recomputed():
    said, text, told = answer("Find slips"), PAPER["in_the_text"], PAPER["downstream"]
    misprint = {**TEACHER["scores"], "MNLI": PAPER["glue"]["bert_base_mnli"]}
    assert f"{PAPER['glue']['bert_base_mnli']} on MNLI" in said
    assert f"averages {glue_average(misprint, 'dev-9'):.2f}" in said
    assert f"it is {glue_average(TEACHER['scores'], 'dev-9'):.2f}" in said
    over = STUDENT["scores"]["STS-B"] - PAPER["glue"]["elmo_sts_b"]
    assert f"{text['sts_b_over_elmo']} points" in said and f"{over:.1f}" in said
    assert f"{text['twice_f1']} F1 and {text['twice_exact_match']} exact match" in said
    twice = told["distilbert_twice_squad"]
    assert f"{twice[1]} and {twice[0]}" in said
    gaps = [a - b for a, b in zip(told["bert_base_squad"], told["distilbert_squad"], strict=True)]
    assert f"within {text['squad_within']} points" in said
    assert f"{gaps[1]:.1f} (F1) and {gaps[0]:.1f} (exact match)" in said


def test_the_discussion_questions_are_among_those_for_review():
    for words in (
        "What knowledge should be transferred", "learn more from a teacher", "soft probabilities",
        "gap between DistilBERT", "distillation need",
    ):  # fmt: skip
        assert answer(words)
