"""Masking tokens, whole words and runs of words: twins agree, rules hold to the unit, probabilities
by statistics; and the loss."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import groupby, permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from objective_parts import draw_sequences, special_ids, within_five_sd

from course_lib.family.bert import bert_for_pretraining
from course_lib.kernels.masked_loss import mean_cross_entropy
from course_lib.kernels.masking import KEPT, MASKED, RANDOM, count_to_predict
from course_lib.kernels.unit_masking import select_words, select_words_reference
from course_lib.objectives.masked_lm import mask_sequences, mask_whole_words, masked_lm_loss
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.wordpiece import WordPiece, train_wordpiece, word_numbers

SPECIAL = special_ids(1_000)
A_MILLION = 8_192, 128


def mask_pairs(sequences, special, **settings):
    """Words of two pieces each."""
    words = torch.arange(sequences.input_ids.shape[1]) // 2
    return mask_whole_words(sequences, special, words.expand(len(sequences), -1), **settings)


MASKS = {"tokens": mask_sequences, "words": mask_pairs, "runs": partial(mask_pairs, max_words=3)}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)

# ---- what all share ------------------------------------------------------------------------------


@every_mask
def test_special_and_padding_positions_are_never_selected(mask):
    sequences = draw_sequences(SPECIAL, *A_MILLION)
    ids = sequences.input_ids
    form = (ids == SPECIAL.cls) | (ids == SPECIAL.sep) | (ids == SPECIAL.pad)
    masked = mask(sequences, SPECIAL, rate=1.0)
    assert not masked.selected[form].any()
    assert masked.selected[~form].all() or mask is MASKS["runs"]  # of which some are passed over
    assert torch.equal(masked.input_ids[form], ids[form])


@every_mask
def test_a_mask_is_a_function_of_seed_epoch_and_example(mask):
    sequences = draw_sequences(SPECIAL, 64, 64)
    settings = {"seed": 1, "epoch": 2}
    base = mask(sequences, SPECIAL, **settings)
    assert torch.equal(base.input_ids, mask(sequences, SPECIAL, **settings).input_ids)
    some = torch.tensor([40, 3, 17])
    columns = sequences.input_ids, sequences.attention_mask, sequences.token_type_ids
    wider = PackedSequences(*(torch.cat([x[some], x[some] * 0], dim=1) for x in columns))
    for given in (sequences[some], wider):
        alone = mask(given, SPECIAL, **settings, examples=some)
        assert torch.equal(alone.input_ids[:, :64], base.input_ids[some])
    for other in ({"seed": 2}, {"epoch": 3}, {"first_example": 1}):
        changed = mask(sequences, SPECIAL, **(settings | other))
        assert not torch.equal(changed.selected, base.selected)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        *(({"rate": rate}, r"rate=.* expected a fraction") for rate in (-0.1, 1.2, math.nan)),
        ({"mix": (0.8, 0.1, 0.2)}, "sums to 1.1; expected 1"),
        ({"mix": (1.2, -0.1, -0.1)}, "expected three probabilities"),
        ({"mix": (0.5, 0.5)}, "expected three probabilities"),
        ({"special": special_ids(999)}, r"to 999 were given; expected 0 to 998"),
    ],
)
@every_mask
def test_what_makes_no_sense_is_refused(mask, changes, says):
    sequences = draw_sequences(SPECIAL, 2, 16)
    sequences.input_ids[1, 3] = 999
    with pytest.raises(ValueError, match=says):
        mask(sequences, **({"special": SPECIAL} | changes))


# ---- single tokens -------------------------------------------------------------------------------


def test_every_sequence_has_exactly_its_count():
    sequences = draw_sequences(SPECIAL, 2_000, 64)
    masked = mask_sequences(sequences, SPECIAL, seed=3)
    expected = [max(1, round(0.15 * n)) for n in sequences.attention_mask.sum(1).tolist()]
    assert masked.selected.sum(1).tolist() == expected


def test_80_10_10_on_a_million_tokens():
    sequences = draw_sequences(SPECIAL, *A_MILLION, padding=False)
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
    sequences = draw_sequences(SPECIAL, *A_MILLION, padding=False)
    selected = mask_sequences(sequences, SPECIAL, seed=5).selected
    eligible = [t for t in range(128) if t not in (0, 128 // 3, 127)]
    hits = selected.sum(0).tolist()
    assert all(within_five_sd(hits[t], len(selected), 19 / len(eligible)) for t in eligible)
    # Pairs of positions are independent enough: neighbours are both chosen about as often as
    # expected.
    pairs = int((selected[:, 60] & selected[:, 61]).sum())
    assert within_five_sd(pairs, len(selected), 19 / 125 * 18 / 124)


# ---- labels and loss -----------------------------------------------------------------------------


def test_labels_hold_the_original_where_selected_and_are_ignored_elsewhere():
    sequences = draw_sequences(SPECIAL, 16, 32)
    masked = mask_sequences(sequences, SPECIAL)
    assert torch.equal(masked.labels[masked.selected], sequences.input_ids[masked.selected])
    assert (masked.labels[~masked.selected] == -100).all()


def test_the_loss_is_the_mean_over_selected_positions_only():
    logits = torch.tensor([[[0.0, math.log(3)], [5.0, -5.0], [0.0, 0.0]]])
    targets = {"labels": torch.tensor([[1, -100, 0]])}
    by_hand = (-math.log(3 / 4) - math.log(1 / 2)) / 2
    loss = masked_lm_loss(SimpleNamespace(prediction_logits=logits), targets)["total"]
    assert math.isclose(loss.item(), by_hand, rel_tol=1e-6)


def test_computing_only_what_is_selected_changes_neither_outputs_nor_gradients():
    torch.manual_seed(0)
    model = bert_for_pretraining(
        "tiny", vocab_size=1_000, hidden_dropout=0.0, attention_dropout=0.0
    ).double()
    sequences = draw_sequences(SPECIAL, 7, 33)
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
    model = bert_for_pretraining("tiny", vocab_size=1_000)
    nothing = torch.empty(0, dtype=torch.long)
    assert model(torch.full((2, 5), 7), predict_at=nothing).prediction_logits.shape == (0, 1_000)


# ---- words and runs of words: the twins ----------------------------------------------------------


def draw_words(generator, shape):
    """Random numbers of words: of one piece or of many, with gaps, now and then a row of none."""
    begins = generator.random(shape) < generator.random()
    words = begins.cumsum(axis=1)
    words[generator.random(shape) < generator.choice([0, 0.1, 0.5])] = -1
    words[generator.random(shape[0]) < 0.1] = -1
    return torch.from_numpy(words)


def rows_of(pattern, copies=1):
    """Rows from a picture of one: S a special token, a letter a piece, its repetition the same
    word, a dot padding."""
    ids = [3 if c == "S" else 0 if c == "." else 5 + ord(c) - ord("a") for c in pattern]
    ids[0] = 2 if pattern[0] == "S" else ids[0]
    words = [-1 if c in "S." else ord(c) - ord("a") for c in pattern]
    input_ids = torch.tensor([ids] * copies)
    sequences = PackedSequences(input_ids, (input_ids != 0).long(), torch.zeros_like(input_ids))
    return sequences, torch.tensor([words] * copies)


def long_rows(count, tokens, two_piece_share, seed=0):
    """[CLS] words [SEP], a share of the words of two pieces; with the numbers of the words."""
    generator = np.random.default_rng(seed)
    second = np.zeros((count, tokens), dtype=bool)
    for t in range(2, tokens - 1):
        second[:, t] = ~second[:, t - 1] & (generator.random(count) < two_piece_share)
    words = torch.from_numpy((~second).cumsum(axis=1))
    words[:, [0, -1]] = -1
    ids = torch.from_numpy(generator.integers(5, SPECIAL.vocab_size, (count, tokens)))
    ids[:, 0], ids[:, -1] = SPECIAL.cls, SPECIAL.sep
    return PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids)), words


def words_in(numbers):
    """The lists of positions that make up each word of a row."""
    stretches = groupby(range(len(numbers)), key=numbers.__getitem__)
    return [list(positions) for number, positions in stretches if number >= 0]


@pytest.mark.parametrize("max_words", [1, 2, 3, 7])
@pytest.mark.parametrize("rate", [0.0, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("max_predictions", [None, 0, 3])
def test_twins_agree_exactly(max_words, rate, max_predictions):
    generator = np.random.default_rng(1)
    seen = 0
    for shape in [(1, 1), (1, 2), (3, 5), (4, 17), (6, 40), (33, 7), (5, 129)] * 3:
        words = draw_words(generator, shape)
        before = words.clone()
        lengths = torch.from_numpy(generator.integers(0, shape[1] + 1, shape[0]))
        examples = torch.from_numpy(generator.integers(0, 10**6, shape[0]))
        settings = {"rate": rate, "max_words": max_words, "max_predictions": max_predictions}
        settings |= {"seed": int(generator.integers(1_000)), "epoch": int(generator.integers(5))}
        twins = select_words, select_words_reference
        fast, slow = (twin(words, lengths, examples, **settings) for twin in twins)
        assert fast.dtype == slow.dtype == torch.int64 and torch.equal(fast, slow)
        assert torch.equal(words, before), "the numbers given must not be changed"
        seen += len(fast)
    assert (seen > 0) == (rate > 0 and max_predictions != 0)


def test_words_of_one_piece_give_the_plain_mask():
    sequences, _ = long_rows(300, 64, 0.0)
    each_its_own = torch.arange(64).expand(300, 64)
    settings = dict(seed=3, epoch=2, first_example=7, max_predictions=8)
    plain = mask_sequences(sequences, SPECIAL, **settings)
    whole = mask_whole_words(sequences, SPECIAL, each_its_own, **settings)
    assert torch.equal(plain.predict_at, whole.predict_at)
    assert torch.equal(plain.input_ids, whole.input_ids) and torch.equal(plain.done, whole.done)


# ---- the rule ------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_words", [1, 3])
@pytest.mark.parametrize("rate", [0.15, 0.4, 0.9])
def test_words_are_whole_and_the_count_is_never_exceeded(max_words, rate):
    generator = np.random.default_rng(2)
    words = draw_words(generator, (400, 33))
    ones = torch.ones(400, 33, dtype=torch.long)
    sequences = PackedSequences(9 * ones, ones, 0 * ones)
    masked = mask_whole_words(sequences, SPECIAL, words, rate=rate, max_words=max_words)
    count, partly = count_to_predict(33, rate), 0
    for numbers, selected in zip(words.tolist(), masked.selected.tolist(), strict=True):
        left = count - sum(selected)
        assert left >= 0
        for word in words_in(numbers):
            hidden = {selected[t] for t in word}
            assert len(hidden) == 1, "a word is hidden in part"
            partly += len(word) > 1 and hidden == {True}
            # Passed over only because it did not fit; with runs, also because its run met another.
            assert max_words > 1 or hidden == {True} or len(word) > left
    assert partly > 100
    assert not masked.selected[words < 0].any()


@pytest.mark.parametrize("max_words", [1, 3])
def test_the_share_hidden_is_the_rate(max_words):
    sequences, words = long_rows(2_000, 128, 0.3)
    masked = mask_whole_words(sequences, SPECIAL, words, max_words=max_words, seed=4)
    # Words of one piece are always left, so every row reaches its count, round(0.15 · 128).
    assert (masked.selected.sum(dim=1) == 19).all()


def test_sequences_with_nothing_to_mask_are_left_alone():
    sequences, words = rows_of("SS......")
    for max_words in (1, 3):
        masked = mask_whole_words(sequences, SPECIAL, words, rate=1.0, max_words=max_words)
        assert len(masked.predict_at) == 0 and torch.equal(masked.input_ids, sequences.input_ids)


def test_a_run_does_not_go_on_behind_a_special_token():
    # Every word is alone between two [SEP].
    sequences, words = rows_of("SaSbScSdSeSfSgShS", copies=3_000)
    masked = mask_whole_words(sequences, SPECIAL, words, max_words=3, max_predictions=2)
    pairs = Counter(map(tuple, masked.predict_at.remainder(17).view(-1, 2).tolist()))
    assert len(pairs) == 28  # any two of eight words, neighbours no more often than others
    assert all(within_five_sd(seen, 3_000, 1 / 28) for seen in pairs.values())


def test_pieces_of_a_word_are_corrupted_each_for_itself():
    sequences, words = long_rows(4_000, 64, 1.0)  # all words of two pieces but the last
    masked = mask_whole_words(sequences, SPECIAL, words, seed=9)
    became = masked.action[:, 1:63].reshape(-1, 2)
    became = became[became[:, 0] > 0]
    both = int((became == MASKED).all(dim=1).sum())
    assert within_five_sd(int((became == MASKED).sum()), became.numel(), 0.8)
    assert within_five_sd(both, len(became), 0.8**2)


# ---- n-grams -------------------------------------------------------------------------------------


def hidden_sets(stretches, room):
    """Exact probabilities of the sets of masked words, by going through every order of the words
    and every length of their runs. stretches: sizes of the words between special tokens."""
    words = [(s, i) for s, sizes in enumerate(stretches) for i in range(len(sizes))]
    chances = {1: 6 / 11, 2: 3 / 11, 3: 2 / 11}
    orders = list(permutations(words))
    found: Counter[tuple[bool, ...]] = Counter()
    for drawn in product(chances, repeat=len(words)):
        length = dict(zip(words, drawn, strict=True))
        chance = math.prod(chances[n] for n in drawn) / len(orders)
        for order in orders:
            hidden: set[tuple[int, int]] = set()
            for s, i in order:
                used = sum(stretches[a][b] for a, b in hidden)
                for n in range(length[s, i], 0, -1):
                    run = stretches[s][i : i + n]
                    if used + sum(run) <= room:
                        new = {(s, j) for j in range(i, i + len(run))}
                        hidden |= new if not hidden & new else set()
                        break
            found[tuple(word in hidden for word in words)] += chance
    return found


@pytest.mark.parametrize("room", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("picture", "stretches"),
    [("SabcS", [[1, 1, 1]]), ("SabbScdS.", [[1, 2], [1, 1]]), ("SaabccccS", [[2, 1, 4]])],
)
def test_hidden_sets_have_their_exact_probabilities(picture, stretches, room):
    tries = 20_000
    sequences, words = rows_of(picture, copies=tries)
    exact = hidden_sets(stretches, min(room, sum(map(sum, stretches))))
    assert math.isclose(sum(exact.values()), 1)
    masked = mask_whole_words(sequences, SPECIAL, words, rate=1, max_words=3, max_predictions=room)
    first = [word[0] for word in words_in(words[0].tolist())]
    seen = Counter(tuple(row) for row in masked.selected[:, first].tolist())
    assert set(seen) <= set(exact)
    assert all(within_five_sd(seen[s], tries, min(1, share)) for s, share in exact.items())


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"word_of": torch.zeros(2, 3).long()}, r"shape \(2, 3\) .* expected .* \(1, 9\)"),
        ({"word_of": torch.zeros(1, 9)}, r"torch.float32 was given; expected whole numbers"),
        ({"word_of": torch.full((1, 9), -2)}, r"holds -2; expected numbers of words from 0"),
        ({"max_words": 0}, "max_words=0 was given; expected a whole number of at least 1"),
        ({"max_words": 1.5}, "max_words=1.5 was given"),
    ],
)
def test_words_that_make_no_sense_are_refused(change, says):
    sequences, words = rows_of("SabbScdS.")
    with pytest.raises(ValueError, match=says):
        mask_whole_words(sequences, SPECIAL, **({"word_of": words} | change))


def test_rows_too_long_for_the_sort_are_refused():
    words = torch.zeros(1, 65_536).long()
    with pytest.raises(ValueError, match="65,536 positions were given; expected at most 65,535"):
        select_words(words, torch.tensor([65_536]), torch.tensor([0]), rate=0.1, seed=0, epoch=0)


# ---- pieces back to words ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece.from_words(["play", "##ing", "##s", "well", "un", "##able"])


def test_word_numbers_by_hand(tokenizer):
    text = "[CLS] play ##ing ##s well [SEP] ##able un ##able [UNK] ##s [SEP] [PAD] [PAD]"
    ids = torch.tensor([[tokenizer.id(token) for token in text.split()]])
    numbers = word_numbers(tokenizer, ids, (ids != 0).long())
    # After [SEP], a piece whose word was cut off begins a word; ## joins even an [UNK].
    assert numbers.tolist() == [[-1, 0, 0, 0, 1, -1, 2, 3, 3, 4, 4, -1, -1, -1]]
    assert numbers.dtype == torch.int64
    hidden = word_numbers(tokenizer, ids[:, :5], torch.tensor([[1, 1, 1, 0, 0]]))
    assert hidden.tolist() == [[-1, 0, 0, -1, -1]]


def test_every_token_is_a_word_where_no_piece_goes_on():
    words = WordPiece.from_words(["a", "b", "c"])
    ids = torch.tensor([[2, 5, 6, 3, 7, 3, 0]])
    numbers = word_numbers(words, ids, (ids != 0).long())
    assert numbers.tolist() == [[-1, 0, 1, -1, 2, -1, -1]]


def test_word_numbers_follow_the_words_of_a_text():
    texts = ["the player is playing; players play unplayable plays", "a replay of the display"] * 3
    tokenizer = train_wordpiece(texts, 60)
    pieces = [[tokenizer.id(p) for p in tokenizer.pieces(w)] for w in tokenizer.words(texts[0])]
    assert max(map(len, pieces)) > 1
    ids = torch.tensor([[i for word in pieces for i in word]])
    numbers = word_numbers(tokenizer, ids, torch.ones_like(ids))
    assert numbers[0].tolist() == [w for w, word in enumerate(pieces) for _ in word]


@pytest.mark.parametrize(
    ("last", "mask", "says"),
    [
        (3, [[1, 1]], r"attention_mask of shape \(1, 2\) was given; expected .* \(1, 3\)"),
        (11, [[1, 1, 1]], "ids from 2 to 11 were given; expected 0 to 10"),
    ],
)
def test_word_numbers_refuses_what_does_not_fit(tokenizer, last, mask, says):
    with pytest.raises(ValueError, match=says):
        word_numbers(tokenizer, torch.tensor([[2, 5, last]]), torch.tensor(mask))
