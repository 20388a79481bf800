"""Solutions of lecture 10 beside the library; hints and remarks that must be true."""

from __future__ import annotations

import pytest
import torch

from course_lib.config import BertConfig, published
from course_lib.encoder import Encoder
from course_lib.family.xlm import xlm
from course_lib.family.xlm_roberta import xlm_roberta
from course_lib.lectures.lecture_10.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_10.exercises import (
    fertility,
    neutral,
    pairs,
    retrieval,
    sampling,
    sizes,
)
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.objectives.translation_lm import translation_sequences
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import alike
from course_lib.text.language_sampling import smoothed, times_read
from course_lib.text.wordpiece import WordPiece
from course_lib.train.retrieval import retrieval as by_cosine
from course_lib.train.retrieval import sentence_vectors

EXERCISES = {exercise.id: exercise for exercise in ALL}


@pytest.mark.parametrize("alpha", [0, 0.3, 0.5, 0.7, 1])
def test_the_sampling_is_the_librarys(alpha):
    counts = [900, 100, 12_345, 7]
    probabilities, read = sampling.sampling(counts, alpha)
    assert alike(probabilities.tolist(), smoothed(counts, alpha))
    assert alike(read.tolist(), times_read(counts, smoothed(counts, alpha)))


def test_icelandic_is_1000_to_the_power_seven_tenths():
    assert "126 times" in sampling.icelandic() and round(1000**0.7) == 126


@pytest.mark.parametrize("sides", [([7, 8], [9]), ([5], [6, 7, 8, 9])])
def test_the_pair_is_the_librarys(sides):
    special = SpecialIds(pad=0, unk=2, cls=1, sep=1, mask=3, vocab_size=20)
    sequences = translation_sequences(
        [sides[0]], [sides[1]], special, length=sum(map(len, sides)) + 4, languages=(3, 1)
    )
    ours = pairs.pair(*sides, (3, 1), 1)
    theirs = sequences.input_ids, sequences.position_ids, sequences.token_type_ids
    assert list(ours) == [part[0].tolist() for part in theirs]


def models():
    with torch.device("meta"):
        return {
            "mBERT, cased": Encoder(
                published("bert", "multilingual-cased", BertConfig), pooler=None
            ),
            "mBERT, uncased": Encoder(
                published("bert", "multilingual-uncased", BertConfig), pooler=None
            ),
            "XLM of 15 languages": xlm("xnli15"),
            "XLM-R base": xlm_roberta("base", pooler=False),
        }


def test_the_weights_are_those_of_the_models():
    remark = sizes.closing_answer()
    for name, model in models().items():
        total, fraction, blocks = sizes.weights(*sizes.sizes_of(sizes.MODELS[name]))
        table = model.embeddings.token.weight.numel()
        count = sum(p.numel() for p in model.parameters())
        assert (total, fraction) == (count, table / count)
        assert blocks == table / sum(p.numel() for p in model.stack.blocks[0].parameters())
        assert f"{name}: {count / 1e6:.1f}M, {table / count:.1%}" in remark


def test_the_retrieval_is_the_librarys():
    inputs = retrieval.case(Draw(3), 20, True, True)
    a, b = (retrieval.mean_vectors(*inputs[i : i + 2]) for i in (0, 2))
    assert alike(retrieval.retrieval(*inputs), tuple(by_cosine(a, b)))


def test_the_mean_vectors_are_the_librarys():
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=30)
    ids = torch.tensor([[2, 7, 8, 9, 3, 0], [2, 11, 3, 0, 0, 0]])
    sequences = PackedSequences(ids, (ids > 0).long(), torch.zeros_like(ids))
    config = BertConfig(
        vocab_size=30, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=16,
        max_positions=8,
    )  # fmt: skip
    encoder = Encoder(config).eval()
    with torch.no_grad():
        states = encoder(ids, sequences.attention_mask).last_hidden_state
        vectors = sentence_vectors(encoder, sequences, special)[-1]
    assert alike(retrieval.mean_vectors(states, ids), vectors, 1e-5)


def test_known_rows_are_all_the_library_has():
    vectors, language, _ = neutral.case(Draw(1), 12, 2)
    language = torch.arange(12) % 2
    new = neutral.neutral(vectors, language, torch.ones(12, dtype=torch.bool))
    ours = by_cosine(new[::2], new[1::2])
    assert ours == by_cosine(vectors[::2], vectors[1::2], centred=True)


def test_fertility_reads_the_tokenizers_marks():
    tokenizer = WordPiece.from_words(["play", "##ing", "now", "."])
    tokens = ["[CLS]", *tokenizer.tokenize("Playing now."), "[SEP]", "[PAD]"]
    assert fertility.fertility([tokens]) == (4 / 3, 1 / 3)
    assert str(tokens).replace("'", '"') in EXERCISES["10.6"].statement


def test_the_hints_with_numbers_are_right():
    probabilities, read = sampling.sampling([640, 360], 0.5)
    assert alike(probabilities.tolist(), [0.8 / 1.4, 0.6 / 1.4])
    sentence = "{:.3f} and {:.3f}".format(*probabilities.tolist())
    assert sentence in EXERCISES["10.1"].hints[0]
    assert f"{1_000 * probabilities[1]:.0f} are Swahili" in EXERCISES["10.1"].hints[0]
    assert f"each is read {read[1]:.2f} times" in EXERCISES["10.1"].hints[0]
    pair = pairs.pair([7, 8], [9], (0, 3), 1)
    assert (
        EXERCISES["10.2"].hints[-1].endswith("tokens {}, positions {}, languages {}.".format(*pair))
    )
    block = sizes.weights(0, 768, 1, 3072, 0, 0)[0] - 2 * 768
    assert f"{block:,}" in EXERCISES["10.5"].hints[2]
    vectors, language, known = neutral.case(Draw(0), 12, 3, True)
    new = neutral.neutral(vectors, language, known)
    for language_id in language.unique():
        rows = language == language_id
        assert new[rows & known].mean(0).abs().max() < 1e-9
        assert new[rows].mean(0).abs().max() > 1e-3


def test_a_mean_that_has_seen_the_test_finds_more():
    """What the last exercise warns of: with few sentences, means over the tested ones help."""
    accuracies = {True: 0.0, False: 0.0}
    for seed in range(60):
        draw = Draw(seed)
        meaning, apart = draw.normal(12, 6), 6 * draw.normal(1, 6)
        vectors = torch.cat([meaning, meaning + apart]) + 0.8 * draw.normal(24, 6)
        language, known = torch.arange(24) // 12, torch.arange(24) % 12 < 3
        for seen in accuracies:
            mask = torch.ones_like(known) if seen else known
            new = neutral.neutral(vectors, language, mask)
            accuracies[seen] += by_cosine(new[3:12], new[15:]).mean / 60
    assert accuracies[True] > accuracies[False] + 0.02
