"""The numbers in the quiz and the questions for review of lecture 08, computed or read again."""

from __future__ import annotations

import math
import tomllib

import torch
from quiz_parts import Quiz

from course_lib.config import published
from course_lib.encoder import count_parameters
from course_lib.family.deberta import DebertaConfig, DebertaV2Config, EnhancedMaskDecoder, deberta
from course_lib.files import data_path
from course_lib.kernels.positions import log_bucket, position_rows, score_scale
from course_lib.lectures.lecture_08.exercises.extra import extra_weights
from course_lib.lectures.lecture_08.exercises.rows import delta

QUIZ = Quiz("08")
item, answer = QUIZ.item, QUIZ.answer
PAPER = tomllib.loads(data_path("papers", "deberta.toml").read_text(encoding="utf-8"))
ROWS = PAPER["ablation"]
FIRST, SECOND = (
    published("deberta", "base", DebertaConfig),
    published("deberta-v3", "base", DebertaV2Config),
)


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()


def test_the_rows_are_looked_up():
    found, right = item("k = 2.")
    written = [" ".join(map(str, row)) for row in delta(6, 2).tolist()]
    assert right.text == written[5]
    place = torch.arange(6)
    wrong = [(place - 5 + 2).clamp(0, 3), (5 - place + 2).clamp(0, 4)]
    assert [c.text for c in found.choices if not c.correct] == [
        " ".join(map(str, row.tolist())) for row in wrong
    ]
    said = answer("What is δ")
    assert f"looks up {written[0]}" in said and f"looks up {written[5]}" in said
    assert FIRST.span == 512 and f"gives {2 * FIRST.span:,}" in said
    assert f"{2 * FIRST.span:,} is above {FIRST.hidden_size}" in said


def test_the_exact_distances_are_counted():
    found, right = item("How many rows has its table")
    assert f"k = {SECOND.span} and furthest = {SECOND.furthest}" in found.question
    d = torch.arange(1, SECOND.furthest)
    found_in = log_bucket(d, SECOND.span, SECOND.furthest)
    exact = SECOND.span // 2
    assert right.text == f"{2 * SECOND.span} rows; exact up to {exact}"
    assert torch.equal(found_in[:exact], d[:exact]) and not torch.equal(found_in, d)
    assert int(found_in[-1]) == SECOND.span - 1 and f"until {int(d[-1])} is" in right.why
    for choice, span in zip(found.choices, (SECOND.span, FIRST.span), strict=False):
        rows = position_rows(1_200, span)[1_199:]  # of distance 0 and what stands to the left
        reach = int((rows[1:] > rows[:-1]).sum())
        assert choice.text == f"{2 * span:,} rows; exact up to {reach}"


def test_the_scale_counts_the_terms():
    found, _ = item("position-to-content is switched off")
    table = torch.zeros(1)
    scales = [score_scale(64), score_scale(64, table, None), score_scale(64, table, table)]
    for choice, scale in zip(found.choices, scales, strict=True):
        assert f"sqrt({scale**2:.0f}) = {scale:.1f}" in choice.text
    assert f"sqrt(3) = {math.sqrt(3):.2f}" in answer("divided by sqrt(3d)")


def test_the_weights_are_counted():
    found, right = item("14.9 million")
    base = (FIRST.num_layers, FIRST.hidden_size, FIRST.span)
    second = (SECOND.num_layers, SECOND.hidden_size, SECOND.span)
    L, d, k = base
    assert f"{extra_weights(*base, False) / 1e6:.1f} million" in found.question
    assert SECOND.shared_projections and right.text == f"{extra_weights(*second, True):,}"
    assert round(L * d * d / 1e6) == 7 and "7 million" in found.choices[2].text
    said = answer("cost in weights")
    for number in (2 * L * d * d, 2 * k * d, extra_weights(*base, False)):
        assert f"{number:,}" in said
    with torch.device("meta"):
        assert f"{count_parameters(deberta('base')):,} without heads" in said
    table = PAPER["second_generation"]
    assert f"{table['base']['parameters']} million" in said
    assert f"{table['shared_projections']['parameters']} million" in said
    assert f"about {PAPER['cost']['more_compute']:.0%}" in said


def test_the_decoder_is_a_table():
    config = DebertaConfig(vocab_size=9, hidden_size=12, num_heads=2, max_positions=7)
    made = EnhancedMaskDecoder(config)
    assert count_parameters(made) == 7 * 12 and made.visits == 2
    assert item("decoder add")[1].text.startswith("P · d, for")
    assert "visited twice more" in answer("absolute positions at all")


def gaps(name):
    """What DeBERTa has more than this row: MNLI matched, SQuAD 1.1 F1, SQuAD 2.0 F1, RACE."""
    pairs = zip(ROWS["deberta"], ROWS[name], strict=True)
    return [
        (a[0] if isinstance(a, list) else a) - (b[0] if isinstance(b, list) else b)
        for a, b in pairs
    ]


def test_the_ablation_is_subtracted():
    said = answer("How does disentangled")
    mnli, _, squad, race = gaps("roberta")
    assert f"+{mnli:.1f} on MNLI, +{squad:.1f} F1 on SQuAD 2.0, +{race:.1f} on RACE" in said
    for name, form in (("without_c2p", "costs {:.1f}, {:.1f} and {:.1f}"),
                       ("without_p2c", "to-content {:.1f}, {:.1f} and {:.1f}")):  # fmt: skip
        mnli, _, squad, race = gaps(name)
        assert form.format(mnli, squad, race) in said
    said = answer("architecture then overrated")
    assert "{:.1f}, {:.1f} and {:.1f} points".format(*(gaps("roberta")[i] for i in (0, 2, 3)))
    for name in ("roberta", "deberta"):
        for score in (ROWS[name][0][0], ROWS[name][2][0], ROWS[name][3]):
            assert str(score) in said


def test_the_parts_do_not_add_up():
    found, right = item("Which reading is right")
    decoder, c2p, both, roberta = (
        gaps(name)[3]
        for name in ("without_decoder", "without_c2p", "without_decoder_and_c2p", "roberta")
    )
    race = ROWS["deberta"][3]
    assert f"{decoder:.1f} and {c2p:.1f}: without both, {race - decoder - c2p:.1f}" in (
        found.choices[0].text
    )
    assert f"together they bring {both:.1f}" in right.text and both < decoder + c2p
    assert f"{roberta - both:.1f} above RoBERTa" in found.choices[2].why
    names = ("deberta", "without_decoder", "without_c2p", "without_decoder_and_c2p", "roberta")
    assert all(f" {ROWS[name][3]}" in found.question for name in names)


def test_the_order_is_the_papers():
    order = PAPER["order"]
    names = ("DeBERTa", "ELECTRA", "XLNet", "RoBERTa", "BERT")
    ranked = sorted(names, key=order.__getitem__, reverse=True)
    written = ", ".join(f"{name} {order[name]}" for name in ranked)
    assert item("ranks large models")[1].text == written
    said = answer("large size")
    assert said.strip().startswith(written)
    assert f"has the mean {PAPER['large']['glue_recomputed']}" in said
    assert f"within {order['DeBERTa'] - order['RoBERTa']:.1f} points" in said


def test_superglue_belongs_to_the_largest():
    glue, size = PAPER["superglue"], PAPER["settings"]["xxlarge"]
    _, right = item("beats humans")
    assert str(glue["single"]) in right.text
    assert all(str(glue[key]) in right.why for key in ("human", "ensemble"))
    said = answer("Mend both halves")
    assert f"{size['layers']} layers, {size['hidden_size']:,} wide" in said
    assert all(str(score) in said for key, score in glue.items() if key not in ("where", "what"))


def test_the_papers_slips_are_the_papers():
    cells, said = PAPER["roberta_cells"], answer("paper critically")
    ours = PAPER["large"]["squad_2"][0]
    for score in (cells["squad_2_in_the_abstract"], cells["squad_2"]):
        assert str(score) in said and f"+{ours - score:.1f}" in said
    assert str(cells["qnli"]) in said
    assert f"{PAPER['large']['glue']:.2f}" in said and "89.9" in said


def test_the_generations_are_the_papers():
    said = answer("what is v3")
    table = PAPER["second_generation"]
    for step in ("shared_projections", "convolution", "vocabulary_128k"):
        assert str(table[step]["parameters"]) in said
    for row in (PAPER["replaced_tokens"]["base"], PAPER["base"]["mnli"]):
        assert f"{row[0]} and {row[1]}" in said
