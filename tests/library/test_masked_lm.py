"""BERT's masking: the count to the unit, the shares by statistics, special positions never."""

from __future__ import annotations

import math

import pytest
import torch

from course_lib.kernels.masking import KEPT, MASKED, RANDOM
from course_lib.objectives.masked_lm import mask_sequences, masked_lm_loss
from course_lib.objectives.sequences import PackedSequences, SpecialIds

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=1_000)
A_MILLION = 8_192, 128


def draw_sequences(count, tokens, seed=0, padding=True):
    """[CLS] words [SEP] words [SEP] padding, of drawn lengths."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, SPECIAL.vocab_size, (count, tokens), generator=generator)
    lengths = torch.full((count,), tokens)
    if padding:
        lengths = torch.randint(tokens // 2, tokens + 1, (count,), generator=generator)
    real = torch.arange(tokens)[None] < lengths[:, None]
    ids[:, 0] = SPECIAL.cls
    ids[:, tokens // 3] = SPECIAL.sep
    ids[torch.arange(count), lengths - 1] = SPECIAL.sep
    ids[~real] = SPECIAL.pad
    return PackedSequences(ids, real.long(), torch.zeros_like(ids))


def within_five_sd(hits: int, tries: int, share: float) -> bool:
    return abs(hits - tries * share) <= 5 * math.sqrt(tries * share * (1 - share))


def test_every_sequence_has_exactly_its_count():
    sequences = draw_sequences(2_000, 64)
    masked = mask_sequences(sequences, SPECIAL, seed=3)
    expected = [max(1, round(0.15 * n)) for n in sequences.attention_mask.sum(1).tolist()]
    assert masked.selected.sum(1).tolist() == expected


def test_special_and_padding_positions_are_never_selected():
    sequences = draw_sequences(*A_MILLION)
    ids = sequences.input_ids
    form = (ids == SPECIAL.cls) | (ids == SPECIAL.sep) | (ids == SPECIAL.pad)
    masked = mask_sequences(sequences, SPECIAL, rate=1.0)
    assert not masked.selected[form].any() and masked.selected[~form].all()
    assert torch.equal(masked.input_ids[form], ids[form])


def test_80_10_10_on_a_million_tokens():
    sequences = draw_sequences(*A_MILLION, padding=False)
    masked = mask_sequences(sequences, SPECIAL, seed=11)
    selected = len(masked.done)
    assert selected == A_MILLION[0] * 19
    for action, share in ((MASKED, 0.8), (RANDOM, 0.1), (KEPT, 0.1)):
        assert within_five_sd(int((masked.done == action).sum()), selected, share)
    became = masked.input_ids.flatten()[masked.predict_at]
    assert (became[masked.done == MASKED] == SPECIAL.mask).all()
    assert torch.equal(became[masked.done == KEPT], masked.original_ids[masked.done == KEPT])
    # A random id is drawn from the whole vocabulary, so now and then it is the original or special.
    drawn = became[masked.done == RANDOM]
    same = int((drawn == masked.original_ids[masked.done == RANDOM]).sum())
    assert within_five_sd(same, len(drawn), 1 / SPECIAL.vocab_size)
    assert within_five_sd(int((drawn < 5).sum()), len(drawn), 5 / SPECIAL.vocab_size)
    assert within_five_sd(int((drawn >= 500).sum()), len(drawn), 0.5)


def test_selected_positions_are_uniform_over_the_eligible_ones():
    sequences = draw_sequences(*A_MILLION, padding=False)
    hits = mask_sequences(sequences, SPECIAL, seed=5).selected.sum(0)
    eligible = [t for t in range(128) if t not in (0, 128 // 3, 127)]
    share = 19 / len(eligible)
    assert all(within_five_sd(int(hits[t]), A_MILLION[0], share) for t in eligible)
    # Pairs of positions are independent enough: neighbours are both chosen about as often as
    # expected.
    both = mask_sequences(sequences, SPECIAL, seed=5).selected
    pairs = int((both[:, 60] & both[:, 61]).sum())
    assert within_five_sd(pairs, A_MILLION[0], 19 / 125 * 18 / 124)


def test_a_mask_is_a_function_of_seed_epoch_and_example():
    sequences = draw_sequences(64, 64)
    base = mask_sequences(sequences, SPECIAL, seed=1, epoch=2)
    again = mask_sequences(sequences, SPECIAL, seed=1, epoch=2)
    assert torch.equal(base.input_ids, again.input_ids)
    some = torch.tensor([40, 3, 17])
    alone = mask_sequences(sequences[some], SPECIAL, seed=1, epoch=2, examples=some)
    assert torch.equal(alone.input_ids, base.input_ids[some])
    for other in (
        {"seed": 2, "epoch": 2},
        {"seed": 1, "epoch": 3},
        {"seed": 1, "epoch": 2, "first_example": 1},
    ):
        assert not torch.equal(mask_sequences(sequences, SPECIAL, **other).selected, base.selected)


def test_labels_hold_the_original_where_selected_and_are_ignored_elsewhere():
    sequences = draw_sequences(16, 32)
    masked = mask_sequences(sequences, SPECIAL)
    assert torch.equal(masked.labels[masked.selected], sequences.input_ids[masked.selected])
    assert (masked.labels[~masked.selected] == -100).all()


def test_the_loss_is_the_mean_over_selected_positions_only():
    class Output:
        prediction_logits = torch.tensor([[[0.0, math.log(3)], [5.0, -5.0], [0.0, 0.0]]])

    targets = {"labels": torch.tensor([[1, -100, 0]])}
    by_hand = (-math.log(3 / 4) - math.log(1 / 2)) / 2
    assert math.isclose(masked_lm_loss(Output, targets)["total"].item(), by_hand, rel_tol=1e-6)


@pytest.mark.parametrize("rate", [-0.1, 1.2, float("nan")])
def test_a_rate_that_is_no_share_is_refused(rate):
    with pytest.raises(ValueError, match=r"rate=.* expected a fraction"):
        mask_sequences(draw_sequences(2, 16), SPECIAL, rate=rate)


@pytest.mark.parametrize(
    ("mix", "says"),
    [
        ((0.8, 0.1, 0.2), "sums to 1.1; expected 1"),
        ((1.2, -0.1, -0.1), "expected three probabilities"),
        ((0.5, 0.5), "expected three probabilities"),
    ],
)
def test_a_mix_that_does_not_sum_to_one_is_refused(mix, says):
    with pytest.raises(ValueError, match=says):
        mask_sequences(draw_sequences(2, 16), SPECIAL, mix=mix)


def test_ids_outside_the_vocabulary_are_refused():
    sequences = draw_sequences(2, 16)
    sequences.input_ids[1, 3] = SPECIAL.vocab_size
    with pytest.raises(ValueError, match=r"to 1000 were given; expected 0 to 999"):
        mask_sequences(sequences, SPECIAL)


def test_computing_only_what_is_selected_changes_neither_outputs_nor_gradients():
    from course_lib.family.bert import bert_for_pretraining
    from course_lib.kernels.masked_loss import mean_cross_entropy

    torch.manual_seed(0)
    model = bert_for_pretraining(
        "tiny", vocab_size=1_000, hidden_dropout=0.0, attention_dropout=0.0
    ).double()
    sequences = draw_sequences(7, 33)
    masked = mask_sequences(sequences, SPECIAL)
    gradients = []
    for only in (True, False):
        model.zero_grad()
        at = masked.predict_at if only else None
        out = model(masked.input_ids, sequences.attention_mask, sequences.token_type_ids, at)
        logits = out.prediction_logits
        logits = logits if only else logits.flatten(0, 1)[masked.predict_at]
        pairs = out.seq_relationship_logits
        (mean_cross_entropy(logits, masked.original_ids) + pairs.square().mean()).backward()
        gradients.append([logits, pairs, *(p.grad.clone() for p in model.parameters())])
    largest = max(g.abs().max() for g in gradients[1][2:])
    for a, b in zip(*gradients, strict=True):
        assert (a - b).abs().max() <= 1e-10 * max(1, largest)


def test_nothing_selected_is_no_error():
    from course_lib.family.bert import bert_for_pretraining

    model = bert_for_pretraining("tiny", vocab_size=1_000)
    nothing = torch.empty(0, dtype=torch.long)
    assert model(torch.full((2, 5), 7), predict_at=nothing).prediction_logits.shape == (0, 1_000)
