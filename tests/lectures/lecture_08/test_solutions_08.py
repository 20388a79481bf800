"""Solutions of lecture 08 beside the library; hints and figures that must be true."""

from __future__ import annotations

import pytest
import torch

from course_lib.config import BertConfig
from course_lib.encoder import Embeddings, Encoder, count_parameters
from course_lib.family.deberta import (
    DebertaConfig,
    DebertaV2Config,
    EnhancedMaskDecoder,
    deberta_encoder,
)
from course_lib.family.electra import DisentangledEmbedding
from course_lib.kernels.disentangled import disentangled_attention_reference
from course_lib.kernels.positions import log_bucket, position_rows, row_table
from course_lib.lectures.lecture_08.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_08.exercises import (
    bucket,
    decoder,
    extra,
    push,
    rows,
    scores,
    sharing,
)
from course_lib.objectives.sift import perturbing
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.machinery import check_answer
from course_lib.teaching.exercises.outputs import alike

EXERCISES = {exercise.id: exercise for exercise in ALL}


def test_the_rows_are_the_librarys():
    for tokens, span in ((1, 1), (9, 3), (6, 8)):
        assert torch.equal(rows.delta(tokens, span), row_table(position_rows(tokens, span)))


def test_the_scores_are_the_librarys():
    inputs = scores.case(Draw(3), 1, 1, 1)
    query, key, position_key, position_query, delta = inputs
    flat = torch.cat([delta[0].flip(0), delta[1:, 0]])  # (2T − 1,), as the library keeps it
    _, _, theirs = disentangled_attention_reference(
        query, key, torch.zeros_like(key), position_key, position_query, flat
    )
    assert alike(scores.scores(*inputs), theirs, 1e-12)


def test_with_half_of_the_buckets_exact_it_is_the_librarys_rule():
    for buckets, furthest in ((256, 512), (8, 65), (16, 128)):
        d = torch.arange(1 - furthest, furthest)
        ours = bucket.bucket(d, buckets, furthest, buckets // 2)
        theirs = log_bucket(d, buckets, furthest).clamp(1 - buckets, buckets - 1)
        assert torch.equal(ours, theirs)


def test_the_hint_of_the_buckets_is_right():
    buckets = bucket.bucket(torch.tensor([4, 16, 64, 1_000]), 8, 65, 4)
    assert buckets.tolist() == [4, 6, 7, 7]
    assert "4 + ceil(1.5) = 6. 64 and 1,000 are in bucket 7" in EXERCISES["08.4"].hints[-1]


def test_the_decoder_is_the_librarys():
    x, positions, block, masked = decoder.case(Draw(4), 2, 6, 3, 4)
    config = BertConfig(hidden_size=6, num_heads=2, max_positions=len(positions))
    library = EnhancedMaskDecoder(config, visits=3).double()
    library.position.weight.data = positions
    with torch.no_grad():
        theirs = library(x, block)
    assert alike(decoder.decode(x, positions, block, masked), theirs[masked], 1e-12)


def test_the_perturbation_is_the_librarys():
    """The library's normalisation is a hook; its climb is a line of sift_loss."""
    embeddings, old, gradient, step = push.case(Draw(5), 2, 3)
    layer = torch.nn.LayerNorm(6, elementwise_affine=False).double()
    new, read = push.climb(embeddings, old, gradient, step)
    with perturbing(layer) as at:
        layer(embeddings)
        at.perturbation = old + step * gradient / (gradient.abs().amax(-1, keepdim=True) + 1e-6)
        assert alike(at.perturbation, new, push.TOLERANCE)
        assert alike(at(layer, (embeddings,))[0], read, push.TOLERANCE)


@pytest.mark.parametrize("shared", [False, True])
def test_the_count_is_that_of_built_models(shared):
    sizes = dict(vocab_size=20, hidden_size=12, num_layers=3, num_heads=2, intermediate_size=24,
                 max_positions=9, span=5, type_vocab_size=0)  # fmt: skip
    config = (DebertaV2Config(**sizes, furthest=9, normed_positions=False, shared_projections=True)
              if shared else DebertaConfig(**sizes))  # fmt: skip
    plain = {name: value for name, value in sizes.items() if name != "span"}
    with torch.device("meta"):
        bert = BertConfig(**plain)
        without = count_parameters(Encoder(bert, Embeddings(bert, positions=False)))
        model = deberta_encoder(config)
    # Of the first generation: no biases of keys (one a layer), but of positions' queries (one).
    assert count_parameters(model) - without == extra.extra_weights(3, 12, 5, shared)


def test_the_hints_with_numbers_count_right():
    hint = EXERCISES["08.7"].hints[-1]
    assert f"so {extra.extra_weights(2, 4, 3, False)}" in hint
    assert hint.endswith(f"shared: {extra.extra_weights(2, 4, 3, True)}.")
    assert str(rows.delta(3, 1).tolist()) in EXERCISES["08.1"].hints[-1]


def test_the_published_sizes_are_those_of_the_last_stage():
    base, v3 = extra.published_sizes()
    assert tuple(base) == (12, 768, 512, False) and extra.extra_weights(*base) == 14_942_208
    assert tuple(v3) == (12, 768, 256, True) and extra.extra_weights(*v3) == 393_216
    with torch.device("meta"):
        whole = count_parameters(deberta_encoder(DebertaConfig()))
    assert f"{whole:,}" in EXERCISES["08.7"].statement
    assert f"14,942,208 of {whole:,}, that is {14_942_208 / whole:.1%}" in extra.closing_answer()


def test_the_closing_answer_stands_in_a_passed_report():
    report = check_answer(EXERCISES["08.7"], extra.extra_weights, 0)
    assert extra.closing_answer() in repr(report) and not report.message


def test_the_third_look_up_is_called_the_papers():
    assert "equation 4" in EXERCISES["08.2"].mistakes[0].say
    assert "δ(i, j) in both, as in the released code" in EXERCISES["08.2"].statement


def test_the_lookup_is_the_librarys():
    ids, table, difference, pad = sharing.case(Draw(6), 3, 8, True)
    plain = torch.nn.Embedding(*table.shape, padding_idx=pad).double()
    plain.weight.data = table
    library = DisentangledEmbedding(plain)
    library.difference.data = difference
    ours = sharing.look_up(ids, table, difference.requires_grad_(), pad)
    assert (ids == pad).any() and torch.equal(ours, library(ids))
    for vectors in (ours, library(ids)):
        vectors.square().sum().backward()
    assert torch.equal(difference.grad, library.difference.grad) and plain.weight.grad is None
