"""Span masking and the span-boundary objective: twins agree in every position, lengths follow the
geometric distribution, targets and loss by hand."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from objective_parts import draw_sequences, special_ids, within_five_sd

from course_lib.config import published
from course_lib.encoder import Encoder
from course_lib.heads import BertForSpanPreTraining, SpanBoundaryHead
from course_lib.kernels.masking import KEPT, MASKED, RANDOM
from course_lib.kernels.span_masking import (
    draw_spans,
    length_probabilities,
    select_spans,
    select_spans_reference,
)
from course_lib.objectives.masked_lm import Masked, mask_sequences
from course_lib.objectives.pretraining import pretraining_batches, split_batch
from course_lib.objectives.sequences import PackedSequences
from course_lib.objectives.span_boundary import boundary_targets, mask_spans, spanbert_loss

SPECIAL = special_ids(1_000)


def plain_rows(count, tokens):
    """Full sequences of words of one piece, between [CLS] and [SEP]."""
    sequences = draw_sequences(SPECIAL, count, tokens, padding=False)
    sequences.input_ids[:, tokens // 3] = 7  # one text
    return sequences, torch.arange(tokens).expand(count, tokens)


def select(tokens, count=4_000, **settings):
    """Spans of rows of `tokens` words, no special tokens: (at, begins)."""
    words = torch.arange(tokens).expand(count, tokens)
    given = {"rate": 0.15, "seed": 3, "epoch": 0} | settings
    return select_spans(words, torch.arange(count), **given)


def mean_length(begins):
    return len(begins) / len(begins.unique())


# ---- the twins -----------------------------------------------------------------------------------


def draw_words(generator, shape):
    """Random numbers of words, with gaps, now and then a row of none (as in test_masking.py)."""
    words = (generator.random(shape) < generator.random()).cumsum(axis=1)
    words[generator.random(shape) < generator.choice([0, 0.1, 0.5])] = -1
    words[generator.random(shape[0]) < 0.1] = -1
    return torch.from_numpy(words)


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.15, 0.5, 1.0])
@pytest.mark.parametrize(("p", "max_words"), [(0.2, 10), (0.9, 3), (1.0, 1)])
def test_twins_agree_exactly(whole_words, merge, rate, p, max_words):
    generator = np.random.default_rng(1)
    seen = 0
    for shape in [(1, 1), (1, 2), (3, 5), (6, 40), (33, 7), (5, 60)]:
        words = draw_words(generator, shape)
        before = words.clone()
        examples = torch.from_numpy(generator.integers(0, 10**6, shape[0]))
        settings = {"rate": rate, "p": p, "max_words": max_words}
        settings |= {"whole_words": whole_words, "merge": merge}
        settings |= {"seed": int(generator.integers(1_000)), "epoch": int(generator.integers(5))}
        twins = select_spans, select_spans_reference
        fast, slow = (twin(words, examples, **settings) for twin in twins)
        for one, other in zip(fast, slow, strict=True):
            assert one.dtype == other.dtype == torch.int64 and torch.equal(one, other)
        assert torch.equal(words, before), "the numbers given must not be changed"
        seen += len(fast[0])
    assert (seen > 0) == (rate > 0)


# ---- lengths -------------------------------------------------------------------------------------


def test_the_distribution_of_lengths():
    probabilities = length_probabilities(0.2, 10)
    assert math.isclose(probabilities.sum(), 1)
    assert np.allclose(probabilities[1:] / probabilities[:-1], 0.8)
    lengths = np.arange(1, 11)
    assert round(float(probabilities @ lengths), 3) == 3.797
    # Not cut off but heaped up at 10, as in min(l, 10), it would be the larger mean often quoted.
    heaped = 0.2 * 0.8 ** np.arange(10)
    heaped[-1] = 0.8**9
    assert round(float(heaped @ lengths), 2) == 4.46
    assert length_probabilities(1.0, 10).tolist() == [1.0] + [0.0] * 9


def test_drawn_lengths_and_beginnings_follow_their_distributions():
    _, lengths = draw_spans(1, 2, np.arange(1_000)[:, None], np.arange(100), 0.2, 10)
    seen = np.bincount(lengths.ravel(), minlength=11)[1:]
    exact = length_probabilities(0.2, 10)
    assert all(within_five_sd(n, 100_000, p) for n, p in zip(seen, exact, strict=True))
    where, _ = draw_spans(1, 2, np.arange(1_000)[:, None], np.arange(100), 0.2, 10)
    tenths = np.bincount((where.ravel() * 10).astype(int), minlength=10)
    assert all(within_five_sd(n, 100_000, 0.1) for n in tenths)


@pytest.mark.parametrize(("tokens", "mean"), [(510, 3.94), (128, 3.60), (32, 2.62)])
def test_mean_length_after_merging_and_cutting(tokens, mean):
    """What the released program's rule gives, measured when its code was read."""
    _, begins = select(tokens, count=200_000 // tokens + 2_000)
    assert abs(mean_length(begins) - mean) < 0.03


def test_the_count_is_reached_exactly():
    for tokens in (1, 7, 32, 130):
        at, _ = select(tokens, count=200)
        counts = (at // tokens).bincount(minlength=200)
        assert (counts == math.ceil(0.15 * tokens)).all()


def test_anchors_are_uniform_but_later_positions_are_hidden_more_often():
    at, _ = select(40, count=40_000, rate=1 / 40)  # one position a row: the anchor itself
    hits = (at % 40).bincount(minlength=40).tolist()
    assert all(within_five_sd(seen, 40_000, 1 / 40) for seen in hits)
    at, _ = select(40, count=40_000)
    hits = (at % 40).bincount(minlength=40).double() / 40_000
    assert hits[0] < 0.08 < 0.14 < hits[20]  # a span runs to the right; the first starts only


# ---- words ---------------------------------------------------------------------------------------


def test_spans_are_cut_inside_a_word_or_take_its_rest():
    words = (torch.arange(60) // 3).expand(2_000, 60)  # three pieces a word; the count is nine
    settings = {"rate": 0.14, "seed": 2, "epoch": 0}  # ceil(0.14 · 60) = 9
    for whole, rate in ((True, 0.14), (False, 0.12)):  # 9 and 8
        at, begins = select_spans(
            words, torch.arange(2_000), **(settings | {"rate": rate}), whole_words=whole
        )
        pieces = (at // 3).unique(return_counts=True)[1]
        assert (begins % 3 == 0).all()
        assert ((pieces == 3).all()) == whole
    at, _ = select_spans(
        words, torch.arange(2_000), **(settings | {"rate": 0.12}), whole_words=True
    )
    assert (at.bincount(minlength=120_000).view(2_000, 60).sum(1) == 9).all()  # 8 and the rest


def test_merging_makes_fewer_and_longer_spans():
    merged, apart = (select(128, merge=merge) for merge in (True, False))
    assert torch.equal(merged[0], apart[0])
    assert mean_length(merged[1]) > mean_length(apart[1])
    at, begins = merged
    touch = (at.diff() == 1) & (begins.diff() != 0) & (at[1:] % 128 > 0)
    assert not touch.any()


def test_special_tokens_and_padding_are_never_hidden_and_end_a_span():
    sequences = draw_sequences(SPECIAL, 500, 64)
    words = torch.arange(64).expand(500, 64)
    masked = mask_spans(sequences, SPECIAL, words, rate=1.0)
    form = torch.isin(sequences.input_ids, torch.tensor(SPECIAL.never_masked))
    assert torch.equal(masked.selected, ~form)
    masked = mask_spans(sequences, SPECIAL, words)
    assert not masked.selected[form].any()
    first, last = masked.spans.unbind(1)
    assert (first // 64 == last // 64).all()
    assert not any(form.flatten()[a : b + 1].any() for a, b in masked.spans.tolist())


# ---- what is done --------------------------------------------------------------------------------


def test_one_draw_a_span():
    sequences, words = plain_rows(4_000, 130)
    masked = mask_spans(sequences, SPECIAL, words)
    by_span = Counter()
    for action in (MASKED, RANDOM, KEPT):
        by_span[action] = len(masked.begins[masked.done == action].unique())
    spans = len(masked.spans)
    assert sum(by_span.values()) == spans, "a span was treated in two ways"
    for action, share in ((MASKED, 0.8), (RANDOM, 0.1), (KEPT, 0.1)):
        assert within_five_sd(by_span[action], spans, share)
    each = mask_spans(sequences, SPECIAL, words, one_draw=False)
    assert torch.equal(each.predict_at, masked.predict_at)
    assert within_five_sd(int((each.done == MASKED).sum()), len(each.done), 0.8)
    assert sum(len(each.begins[each.done == a].unique()) for a in (1, 2, 3)) > spans


def test_random_ids_follow_the_frequencies():
    sequences, words = plain_rows(2_000, 130)
    frequencies = torch.zeros(1_000)
    frequencies[10], frequencies[20] = 3, 1
    masked = mask_spans(sequences, SPECIAL, words, mix=(0, 1, 0), frequencies=frequencies)
    drawn = masked.input_ids.flatten()[masked.predict_at]
    assert set(drawn.tolist()) == {10, 20}
    assert within_five_sd(int((drawn == 10).sum()), len(drawn), 0.75)


def test_a_mask_is_a_function_of_seed_epoch_and_example():
    sequences = draw_sequences(SPECIAL, 64, 64)
    words = torch.arange(64).expand(64, 64)
    settings = {"seed": 1, "epoch": 2}
    base = mask_spans(sequences, SPECIAL, words, **settings)
    some = torch.tensor([40, 3, 17])
    alone = mask_spans(sequences[some], SPECIAL, words[some], **settings, examples=some)
    assert torch.equal(alone.input_ids, base.input_ids[some])
    for other in ({"seed": 2}, {"epoch": 3}, {"first_example": 1}):
        changed = mask_spans(sequences, SPECIAL, words, **(settings | other))
        assert not torch.equal(changed.selected, base.selected)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rate": 1.2}, "rate=1.2 was given; expected a fraction"),
        ({"mix": (0.8, 0.1, 0.2)}, "sums to 1.1; expected 1"),
        ({"word_of": torch.zeros(2, 3).long()}, r"shape \(2, 3\) .* expected .* \(2, 16\)"),
        ({"p": 0.0}, "p=0.0 was given; expected a probability above 0"),
        ({"p": math.nan}, "p=nan was given"),
        ({"max_words": 0}, "max_words=0 was given; expected a whole number of at least 1"),
        ({"max_words": 2.5}, "max_words=2.5 was given"),
        ({"frequencies": torch.ones(7)}, r"shape \(7,\) were given; expected .* \(1000,\)"),
        ({"frequencies": -torch.ones(1_000)}, "hold a negative number"),
        ({"frequencies": torch.zeros(1_000)}, "sum to nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, says):
    sequences = draw_sequences(SPECIAL, 2, 16)
    given = {"word_of": torch.arange(16).expand(2, 16)} | changes
    with pytest.raises(ValueError, match=says):
        mask_spans(sequences, SPECIAL, **given)


def test_a_text_without_words_and_spans_longer_than_the_row():
    ids = torch.tensor([[2, 3, 0, 0], [2, 9, 8, 3]])
    sequences = PackedSequences(ids, (ids > 0).long(), 0 * ids)
    masked = mask_spans(
        sequences, SPECIAL, torch.arange(4).expand(2, 4), rate=1.0, p=0.001, max_words=100
    )
    assert masked.predict_at.tolist() == [5, 6] and masked.spans.tolist() == [[5, 6]]
    nothing = boundary_targets(masked, sequences, SPECIAL)
    assert nothing[0].shape == (0, 3) and nothing[1].shape == (0,)


# ---- the span-boundary objective -----------------------------------------------------------------


def masked_at(picture):
    """A row from its picture: S special, a letter a word, capital where it is masked."""
    ids = [2 if t == 0 else 3 if c == "S" else 5 + ord(c.lower()) - ord("a")
           for t, c in enumerate(picture)]  # fmt: skip
    ids = torch.tensor([ids])
    at = torch.tensor([t for t, c in enumerate(picture) if c.isupper() and c != "S"])
    done = torch.ones(len(at), dtype=torch.int8)
    corrupted = ids.clone()
    corrupted[0, at] = SPECIAL.mask
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    return Masked(corrupted, at, ids[0, at], done), sequences


def test_boundaries_by_hand():
    #            0123456789012
    masked, sequences = masked_at("SAbCDefGHSiJkS")
    boundaries, labels = boundary_targets(masked, sequences, SPECIAL)
    # A touches [CLS] and GH touch [SEP]: nobody asks for them.
    assert boundaries.tolist() == [[2, 5, 0], [2, 5, 1], [10, 12, 0]]
    assert labels.tolist() == [7, 8, 14]
    short, labels = boundary_targets(masked, sequences, SPECIAL, longest=1)
    assert short.tolist() == [[2, 5, 0], [10, 12, 0]] and labels.tolist() == [7, 14]


def test_boundaries_of_a_batch_stay_in_their_rows():
    sequences, words = plain_rows(300, 40)
    masked = mask_spans(sequences, SPECIAL, words, rate=0.4)
    boundaries, labels = boundary_targets(masked, sequences, SPECIAL)
    before, behind, place = boundaries.unbind(1)
    assert (before // 40 == behind // 40).all() and (behind - before > 1).all()
    assert torch.equal(sequences.input_ids.flatten()[before + 1 + place], labels)
    selected = masked.selected.flatten()
    assert selected[before + 1 + place].all() and not selected[before].any()
    assert not selected[behind].any() and int(place.max()) <= 14


def tiny(**changes):
    config = published(
        "bert", "tiny", vocab_size=1_000, hidden_dropout=0.0, attention_dropout=0.0, **changes
    )
    torch.manual_seed(0)
    return BertForSpanPreTraining(Encoder(config)).double()


def test_the_head_is_the_formula():
    model = tiny()
    head, H = model.sbo, model.config.hidden_size
    before, behind = torch.randn(2, 5, H, dtype=torch.float64)
    place = torch.tensor([0, 1, 2, 14, 0])
    x = torch.cat([before, behind, head.position.weight[place]], dim=-1)
    for dense, norm in ((head.first, head.first_norm), (head.second, head.second_norm)):
        x = F.gelu(x @ dense.weight.T + dense.bias)
        x = (x - x.mean(-1, keepdim=True)) / (
            x.var(-1, keepdim=True, unbiased=False) + 1e-12
        ).sqrt()
        x = x * norm.weight + norm.bias
    expected = x @ model.encoder.embeddings.token.weight.T + head.bias
    assert (head(before, behind, place) - expected).abs().max() < 1e-10


def test_the_heads_size_is_the_authors():
    config = published("bert", "large", vocab_size=28_996)
    head = SpanBoundaryHead(config, torch.nn.Embedding(1, 1_024))
    counted = {name: p.numel() for name, p in head.named_parameters()}
    assert head.first.in_features == 2_248
    assert counted.pop("position.weight") == 15 * 200 and counted.pop("bias") == 28_996
    assert round(sum(counted.values()) / 1e6, 2) == 3.36


def test_without_the_position_all_tokens_of_a_span_get_one_prediction():
    model = tiny()
    with torch.no_grad():
        model.sbo.position.weight.zero_()
    before, behind = torch.randn(2, 1, model.config.hidden_size, dtype=torch.float64)
    three = model.sbo(before.expand(3, -1), behind.expand(3, -1), torch.arange(3))
    assert torch.equal(three[0], three[1]) and torch.equal(three[1], three[2])


def span_batch(count=16, boundaries=True):
    sequences = draw_sequences(SPECIAL, count, 48)
    words = torch.arange(48).expand(count, 48)
    return pretraining_batches(
        sequences, SPECIAL, batch_size=count, word_of=words, spans={}, boundaries=boundaries
    )(0)


def test_computing_only_what_is_asked_changes_nothing():
    model, batch = tiny(), span_batch()
    out = model(**batch.inputs)
    hidden = model.encoder(
        *(batch.inputs[k] for k in ("input_ids", "attention_mask", "token_type_ids"))
    ).last_hidden_state.flatten(0, 1)
    before, behind, place = batch.inputs["boundaries"].unbind(1)
    assert (out.sbo_logits - model.sbo(hidden[before], hidden[behind], place)).abs().max() < 1e-10
    plain = model.masked_lm.mlm(hidden[batch.inputs["predict_at"]])
    assert (out.logits - plain).abs().max() < 1e-10
    everywhere = model(**{k: v for k, v in batch.inputs.items() if k != "predict_at"})
    assert everywhere.logits.shape == (16, batch.inputs["input_ids"].shape[1], 1_000)
    assert (everywhere.sbo_logits - out.sbo_logits).abs().max() < 1e-10
    alone = model(**{k: v for k, v in batch.inputs.items() if k != "boundaries"})
    assert alone.sbo_logits is None and (alone.logits - out.logits).abs().max() < 1e-10


def test_the_loss_divides_by_one_more():
    logits = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]])
    outputs = SimpleNamespace(prediction_logits=logits[:1], sbo_logits=logits)
    targets = {"labels": torch.tensor([1]), "sbo_labels": torch.tensor([1, 0])}
    found = spanbert_loss(outputs, targets)
    assert math.isclose(found["mlm"].item(), -math.log(3 / 4), rel_tol=1e-6)
    assert math.isclose(found["sbo"].item(), -(math.log(3 / 4) + math.log(1 / 2)) / 3, rel_tol=1e-6)
    assert math.isclose(found["total"].item(), (found["mlm"] + found["sbo"]).item())
    none = {"labels": torch.tensor([1]), "sbo_labels": torch.empty(0, dtype=torch.long)}
    outputs.sbo_logits = logits[:0]
    assert spanbert_loss(outputs, none)["sbo"].item() == 0


def test_parts_of_a_batch_add_up():
    model, batch = tiny(), span_batch()
    whole = spanbert_loss(model(**batch.inputs), batch.targets)
    whole["total"].backward()
    gradient = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    summed = Counter()
    for part in split_batch(batch, 3):
        losses = spanbert_loss(model(**part.inputs), part.targets)
        losses["total"].backward()
        for name, loss in losses.items():
            summed[name] += loss.item()
    assert all(math.isclose(summed[n], whole[n].item(), rel_tol=1e-9) for n in whole)
    for name, p in model.named_parameters():
        if name in gradient:
            assert (p.grad - gradient[name]).abs().max() < 1e-10


def test_masks_that_are_no_spans_have_boundaries_too():
    sequences = draw_sequences(SPECIAL, 64, 48)
    masked = mask_sequences(sequences, SPECIAL, rate=0.3)
    boundaries, _ = boundary_targets(masked, sequences, SPECIAL)
    selected = masked.selected.flatten()
    assert len(boundaries) and not selected[boundaries[:, :2]].any()


def test_spans_without_words_are_refused():
    sequences, _ = plain_rows(8, 20)
    with pytest.raises(ValueError, match="without word_of"):
        pretraining_batches(sequences, SPECIAL, batch_size=2, spans={})
