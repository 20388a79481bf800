"""Solutions of lecture 09 beside the library; hints that must be true."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from course_lib.family.ernie_tsinghua import FusionBlock, FusionConfig
from course_lib.kernels.span_masking import length_probabilities, select_spans_reference
from course_lib.kernels.unit_masking import select_words_reference
from course_lib.lectures.lecture_09.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_09.exercises import (
    boundaries,
    facts,
    fusion,
    lengths,
    spans,
    units,
)
from course_lib.objectives.knowledge_masking import unit_numbers
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.objectives.span_boundary import MaskedSpans, boundary_targets, mask_spans
from course_lib.objectives.transe import Translations, distances, margin_loss
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.machinery import check_answer
from course_lib.teaching.exercises.outputs import alike

EXERCISES = {exercise.id: exercise for exercise in ALL}
SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=90)


def row(word_of, pad=0):
    """One sequence of these words: [CLS], a word id a piece, [SEP], padding."""
    inside = [5 + t for t in range(len(word_of) - 2)]
    ids = torch.tensor([[SPECIAL.cls, *inside, SPECIAL.sep, *[SPECIAL.pad] * pad]])
    return PackedSequences(ids, (ids != SPECIAL.pad).long(), torch.zeros_like(ids))


@pytest.mark.parametrize(("p", "longest"), [(0.2, 10), (0.3, 4), (1.0, 3), (0.5, 1)])
def test_the_lengths_are_the_librarys(p, longest):
    probabilities, mean = lengths.lengths(p, longest)
    assert alike(probabilities, length_probabilities(p, longest), 1e-12)
    assert mean == pytest.approx(length_probabilities(p, longest) @ range(1, longest + 1))


def test_the_closing_sentence_has_the_papers_mean():
    """The paper prints 3.8; 4.46 is computed once more, in another way."""
    sentence = lengths.published()
    assert "3.797 words" in sentence and "4.46" in sentence
    lumped = 0.2 * 0.8 ** torch.arange(9).double()
    assert f"{float(lumped @ torch.arange(1, 10).double()) + 10 * 0.8**9:.2f}" == "4.46"
    report = check_answer(EXERCISES["09.1"], lengths.lengths, 0)
    assert sentence in repr(report) and report.status == "passed"


@pytest.mark.parametrize("seed", range(6))
def test_the_spans_are_the_librarys(seed, monkeypatch):
    """The library's own draws of a text, given to the solution."""
    from course_lib.kernels import span_masking

    word_of = spans.text(Draw(seed), 14, 3)
    places = [t for t, word in enumerate(word_of) if word >= 0]
    draws, inner = [], span_masking.draw_spans

    def noted(*args):
        where, length = inner(*args)
        draws.append((places[int(where.item() * len(places))], int(length.item())))
        return where, length

    monkeypatch.setattr(span_masking, "draw_spans", noted)
    at, begins = select_spans_reference(
        torch.tensor([word_of]), torch.tensor([seed]), rate=0.5, seed=1, epoch=2, p=0.3, max_words=4
    )
    selected = spans.spans(word_of, draws, -(-len(places) // 2))
    first, sizes = begins.unique_consecutive(return_counts=True)
    assert selected == list(zip(first.tolist(), (first + sizes - 1).tolist(), strict=True))
    assert at.tolist() == [t for a, b in selected for t in range(a, b + 1)]


def test_the_boundaries_are_the_librarys():
    """Of masks that it draws, on a text with padding; some spans are long, some touch [CLS]."""
    word_of = [-1, *range(40), -1]
    text, touching, long = row(word_of, pad=3), 0, 0
    numbers = torch.tensor([[*word_of, -1, -1, -1]])
    is_text = [word >= 0 for word in numbers[0].tolist()]
    for seed in range(20):
        masked = mask_spans(text, SPECIAL, numbers, rate=0.3, seed=seed, max_words=9)
        assert isinstance(masked, MaskedSpans)
        pairs = [(a, b) for a, b in masked.spans.tolist()]
        theirs, _ = boundary_targets(masked, text, SPECIAL, longest=5)
        assert boundaries.boundaries(is_text, pairs, 5) == [tuple(x) for x in theirs.tolist()]
        touching += sum(a == 1 for a, _ in pairs)
        long += sum(b - a >= 5 for a, b in pairs)
    assert touching and long


def test_the_units_are_the_librarys():
    """The library's order, by the draw of each unit's first position."""
    from course_lib.kernels.masking import CHOICE, random_bits

    for seed in range(6):
        word_of, names, _, _ = units.case(Draw(seed), 14, 2, 3, 5)
        joined = unit_numbers(torch.tensor([word_of]), [(0, a, b) for a, b in names])
        T, example = len(word_of), torch.tensor([seed]).numpy()
        draws = random_bits(7, 1, example, CHOICE, torch.arange(T).numpy())
        order = sorted(range(T), key=lambda t, draws=draws: draws[t])
        theirs = select_words_reference(
            joined, torch.tensor([T]), torch.tensor([seed]), rate=0.3, seed=7, epoch=1
        )
        assert units.units(word_of, names, order, round(0.3 * T)) == theirs.tolist()


def test_the_loss_is_the_librarys():
    entity, relation, triples, side, other, margin = facts.case(Draw(4), 6, 2)
    false = triples.clone()
    false[torch.arange(6), 2 * side] = other
    vectors = Translations(entity, relation)
    theirs = margin_loss(distances(vectors, triples), distances(vectors, false), margin)
    assert alike(facts.loss(entity, relation, triples, side, other, margin), theirs, 1e-12)


def test_the_fusion_is_the_librarys():
    """The library's block without what the exercise leaves out: attention, norms, outer biases."""
    words, ids, entities, text_in, entity_in, bias, text_out, entity_out = fusion.case(
        Draw(5), 4, "2.0."
    )
    config = FusionConfig(
        hidden_size=5, num_heads=1, intermediate_size=6, num_layers=1, entity_size=3,
        entity_heads=1, layers=("mix",), hidden_dropout=0.0,
    )  # fmt: skip
    block = FusionBlock(config, among_entities=False).double().eval()
    block.attention_norm = block.text_norm = block.entity_norm = nn.Identity()
    block.attention.forward = lambda x, mask: (torch.zeros_like(x), None, None)
    for layer, weight in ((block.text_in, text_in), (block.entity_in, entity_in),
                          (block.text_out, text_out), (block.entity_out, entity_out)):  # fmt: skip
        layer.weight.data = weight.T.contiguous()
        if layer.bias is not None:
            layer.bias.data.zero_()
    block.text_in.bias.data = bias
    there = (ids >= 0).long()
    with torch.no_grad():
        x, e = block(words[None], (entities[ids] * there[:, None])[None], None, there[None])
    ours = fusion.fusion(words, ids, entities, text_in, entity_in, bias, text_out, entity_out)
    assert alike(ours[0], x[0], 1e-12) and alike(ours[1], e[0], 1e-12)


def test_the_hints_with_numbers_are_right():
    probabilities, mean = lengths.lengths(0.5, 3)
    assert alike(probabilities.tolist(), [4 / 7, 2 / 7, 1 / 7]) and f"{mean:.3f}" == "1.571"
    assert "11/7 = 1.571" in EXERCISES["09.1"].hints[0]
    inputs = [-1, 0, 0, 1, 2, -1], [(2, 2), (4, 1)]
    assert spans.spans(*inputs, 3) == [(1, 3)] and spans.spans(*inputs, 4) == [(1, 4)]
    assert f"{inputs[0]}, draws = {inputs[1]}, budget = 3" in EXERCISES["09.2"].hints[-1]
    is_text = [False, *[True] * 6, False]
    triples = boundaries.boundaries(is_text, [(2, 4)], 15)
    assert ", ".join(map(str, triples)) in EXERCISES["09.3"].hints[-1]
    assert boundaries.boundaries(is_text, [(2, 4)], 2) == triples[:2]
    assert not boundaries.boundaries(is_text, [(1, 2)], 15)
    inputs = [-1, 0, 1, 2, -1], [(2, 4)], [3, 2, 1, 0, 4], 2
    assert units.units(*inputs) == [2, 3]
    for part in inputs[:3]:
        assert str(part) in EXERCISES["09.4"].hints[-1]


def test_whole_units_leave_no_half_of_a_name():
    """What the exercise is for: with names no name is hidden in part, without some are."""
    halves = {True: 0, False: 0}
    for seed in range(40):
        word_of, names, order, budget = units.case(Draw(seed), 14, 2, 3, 6)
        for known in (True, False):
            hidden = set(units.units(word_of, names if known else [], order, budget))
            parts = (hidden & set(range(a, b)) for a, b in names)
            halves[known] += sum(0 < len(x) < b - a for x, (a, b) in zip(parts, names, strict=True))
    assert halves[True] == 0 < halves[False]
