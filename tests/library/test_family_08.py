"""Both generations of DeBERTa are equal to transformers' DebertaModel and DebertaV2Model, with and
without the masked-word head.

In outputs, attention weights, gradients, weights there and back, and counts. What "equal" means,
and how models are drawn, is said in parity.py; what transformers' own precision leaves of it here,
at BOUND."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
import torch
from parity import (
    TOLERANCE,
    Case,
    assert_there_and_back,
    both_backward,
    both_precisions,
    chosen_against_full,
    distance,
    draw_case,
    drawn_weights,
    largest,
    on_meta,
    only_at_against_full,
    output_distances,
    pair_of_models,
    run,
)

from course_lib.checkpoints import CheckpointError, from_transformers, to_transformers
from course_lib.config import PUBLISHED, published
from course_lib.encoder import Encoder
from course_lib.family.deberta import (
    DebertaConfig,
    DebertaV2Config,
    deberta,
    deberta_encoder,
    deberta_masked_lm,
    deberta_v3,
)
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.positions import log_bucket, position_rows
from course_lib.teaching.compare import compare

transformers = pytest.importorskip("transformers")

DRAWN = range(16)
SUBSETS: tuple[tuple[str, ...], ...] = (("c2p", "p2c"), ("c2p",), ("p2c",), ())
# transformers computes the scale sqrt(D·n), n scores a pair, in float32 whatever the weights are.
# Where D·n is a square the root is exact, and the second generation can be held to 1e-10. The first
# also normalises its layers in float32: there float64 shows what that rounding leaves, 6e-8 a
# LayerNorm; the largest distance seen is 5e-7.
EXACT = {1: (9, 16), 2: (8, 18), 3: (12, 27)}  # n -> head sizes D
BOUND = {
    (DebertaConfig, torch.float32): 1e-5,
    (DebertaConfig, torch.float64): 1e-6,
    (DebertaV2Config, torch.float32): 1e-5,
    (DebertaV2Config, torch.float64): 1e-10,
}
both_generations = pytest.mark.parametrize("kind", [DebertaConfig, DebertaV2Config])


def as_deberta(
    kind: type[DebertaConfig], dtype: torch.dtype, seed: int, settings: dict[str, Any],
    draw: random.Random,
) -> DebertaConfig:  # fmt: skip
    """The drawn sizes as a DeBERTa; terms by the seed, so that all subsets come."""
    terms = SUBSETS[seed // 4 % 4]
    sizes = EXACT[1 + len(terms)] if dtype == torch.float64 else (8, 9, 11)
    span, furthest = draw.choice([(5, 9), (8, 33), (16, 20), (40, 64)])
    settings = {
        **settings,
        "hidden_size": settings["num_heads"] * draw.choice(sizes),
        "type_vocab_size": draw.choice([0, 0, 2]),
        "hidden_act": draw.choice(["gelu", "gelu_new"]),
        "span": span,
        "terms": terms,
    }
    if kind is DebertaV2Config:
        settings |= {
            "furthest": furthest,
            "shared_projections": draw.random() < 0.5,
            "normed_positions": draw.random() < 0.5,
            "convolution": draw.choice([0, 3]),
            "conv_act": draw.choice(["tanh", "gelu"]),
        }
    return kind(**settings)


def deberta_case(kind: type[DebertaConfig], seed: int, dtype: torch.dtype = torch.float32) -> Case:
    """Weights a little smaller than other families': three products a score soon make scores of
    25 and more, where transformers' own float32 is 1e-5 from its own float64."""
    case = draw_case(seed, partial(as_deberta, kind, dtype, seed))
    return case._replace(sd=0.7 * case.sd)


def masked_lm(config: DebertaConfig) -> BertForMaskedLM:
    return BertForMaskedLM(deberta_encoder(config))


# ---------------------------------------------------------------- outputs and gradients


@both_generations
def test_the_drawn_cases_hold_every_kind(kind: type[DebertaConfig]):
    cases = [deberta_case(kind, seed) for seed in DRAWN]
    configs: list[Any] = [case.config for case in cases]
    assert {c.terms for c in configs} == set(SUBSETS)
    tokens = [case.inputs["input_ids"].shape[1] for case in cases]
    assert {c.span < t for c, t in zip(configs, tokens, strict=True)} == {True, False}
    assert {c.type_vocab_size for c in configs} == {0, 2}
    assert any(c.num_heads % 2 for c in configs) and any(t % 2 for t in tokens)
    masks = [case.inputs["attention_mask"] for case in cases]
    assert any(len(mask) == 1 for mask in masks) and any(not mask.all() for mask in masks)
    if kind is DebertaV2Config:
        for name in ("shared_projections", "normed_positions", "convolution", "conv_act"):
            assert len({getattr(c, name) for c in configs}) == 2, name
        assert {(c.convolution, c.num_layers > 1) for c in configs} >= {(3, True), (0, True)}
        far = [t > c.furthest for c, t in zip(configs, tokens, strict=True)]
        assert True in far and False in far


@both_generations
@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
def test_outputs_and_gradients(kind: type[DebertaConfig], seed: int, dtype: torch.dtype):
    """Words, states and attention weights of every layer; and the path that keeps no weights."""
    case = deberta_case(kind, seed, dtype)
    ours, theirs = pair_of_models(masked_lm, case, dtype)
    real = case.real
    with torch.no_grad():
        reference = run(theirs, case)
        found = output_distances(run(ours, case), reference, case)
        found["without weights"] = distance(
            ours(**case.inputs).logits[real], reference.logits[real]
        )
    assert largest(found) <= BOUND[kind, dtype]
    for p in (*ours.parameters(), *theirs.parameters()):
        p.grad = torch.zeros_like(p)  # without terms, nothing reaches the table of distances
    assert both_backward(ours, theirs, case) <= BOUND[kind, dtype]


@both_generations
@both_precisions
@pytest.mark.parametrize("seed", DRAWN[::4])
def test_the_encoder_alone(kind: type[DebertaConfig], seed: int, dtype: torch.dtype):
    case = deberta_case(kind, seed, dtype)
    ours, theirs = pair_of_models(deberta_encoder, case, dtype)
    with torch.no_grad():
        mine, reference = (m(**case.inputs).last_hidden_state[case.real] for m in (ours, theirs))
    assert distance(mine, reference) <= BOUND[kind, dtype]
    for p in (*ours.parameters(), *theirs.parameters()):
        p.grad = torch.zeros_like(p)
    assert both_backward(ours, theirs, case) <= BOUND[kind, dtype]


@both_generations
@both_precisions
@pytest.mark.parametrize("seed", [0, 5, 10])
def test_only_where_something_is_selected(kind: type[DebertaConfig], seed: int, dtype: torch.dtype):
    """Of the same model with and without, so float64 is exact in both generations."""
    case = deberta_case(kind, seed, dtype)
    ours = drawn_weights(masked_lm(case.config), case.sd).to(dtype).eval()
    found = chosen_against_full(ours, case) | only_at_against_full(ours.encoder, case)
    assert largest(found) <= TOLERANCE[dtype]


@both_generations
def test_a_difference_is_seen(kind: type[DebertaConfig]):
    """One row of the table of distances, moved by a thousandth."""
    case = deberta_case(kind, 1)
    ours, theirs = pair_of_models(masked_lm, case, torch.float32)
    with torch.no_grad():
        ours.encoder.stack.positions.table.weight[case.config.span] += 1e-3 * torch.randn(
            case.config.hidden_size
        )
        found = output_distances(run(ours, case), run(theirs, case), case)
    assert max(found.values()) > BOUND[kind, torch.float32]


# ---------------------------------------------------------------- which row a distance has


@pytest.mark.parametrize("buckets", [2, 3, 6, 7, 10, 11, 32, 64, 256])
def test_buckets(buckets: int):
    """The same bucket for every distance; for furthest − 1 the last one, to the last bit."""
    theirs = transformers.models.deberta_v2.modeling_deberta_v2.make_log_bucket_position
    for furthest in (*range(buckets // 2 + 2, buckets // 2 + 40), 128, 512, 1000):
        if furthest - 1 <= buckets // 2:
            continue
        distances = torch.arange(-furthest, furthest + 1)
        found = log_bucket(distances, buckets, furthest)
        assert torch.equal(found, theirs(distances, buckets, furthest).long())
        assert torch.equal(found, -found.flip(0))
        ends = log_bucket(torch.tensor([1 - furthest, furthest - 1]), buckets, furthest)
        last = max(1, 2 * (buckets // 2) - 1)  # k − 1, if k is even
        assert ends.tolist() == [-last, last]
        rows = position_rows(furthest, buckets, furthest)
        assert ((rows[1:] - rows[:-1]) >= 0).all() and rows.max() < 2 * buckets


# ---------------------------------------------------------------- weights there and back


@both_generations
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("make", [masked_lm, deberta_encoder])
@pytest.mark.parametrize("seed", [2, 5, 11])
def test_weights_there_and_back_are_bit_identical(
    kind: type[DebertaConfig], make: Any, seed: int, dtype: torch.dtype
):
    case = deberta_case(kind, seed)
    assert_there_and_back(drawn_weights(make(case.config), case.sd).to(dtype))
    assert from_transformers(to_transformers(make(case.config))).config == case.config


SIZES: dict[str, Any] = {
    "vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 50, "max_position_embeddings": 20, "relative_attention": True,
    "position_biased_input": False,
}  # fmt: skip
IDS = torch.randint(40, (3, 15), generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize(
    ("written", "terms"), [("p2c|c2p", ("p2c", "c2p")), (["c2p"], ("c2p",)), (None, ())]
)
def test_models_of_the_first_generation_that_began_in_transformers(
    written: Any, terms: tuple[str, ...], legacy: bool
):
    """Both spellings of the head are one head here; it goes back under the released name."""
    config = transformers.DebertaConfig(**SIZES, pos_att_type=written, legacy=legacy)
    theirs = drawn_weights(transformers.DebertaForMaskedLM(config), 0.2).eval()
    ours = from_transformers(theirs)
    assert isinstance(ours, BertForMaskedLM)
    assert (ours.config.span, ours.config.terms) == (20, terms)
    again = to_transformers(ours)
    assert not again.config.legacy
    with torch.no_grad():
        expected = theirs(IDS).logits
        assert distance(ours(IDS).logits, expected) <= 1e-5
        assert distance(again(IDS).logits, expected) <= 1e-6
        alone = from_transformers(theirs.deberta)
        assert isinstance(alone, Encoder) and alone.pooler is None
        states = theirs.deberta(IDS).last_hidden_state
        assert distance(alone(IDS).last_hidden_state, states) <= 1e-5


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_models_of_the_second_generation_that_began_in_transformers(shared: bool, legacy: bool):
    config = transformers.DebertaV2Config(
        **SIZES, pos_att_type="p2c|c2p", legacy=legacy, position_buckets=8, share_att_key=shared,
        norm_rel_ebd="layer_norm" if shared else "none", conv_kernel_size=3, conv_act="gelu",
        attention_head_size=12,
    )  # fmt: skip
    theirs = drawn_weights(transformers.DebertaV2ForMaskedLM(config), 0.2).eval()
    ours = from_transformers(theirs)
    c = ours.config
    assert isinstance(c, DebertaV2Config)
    assert (c.span, c.furthest, c.convolution, c.conv_act) == (8, 20, 3, "gelu")
    assert c.shared_projections == c.normed_positions == shared
    with torch.no_grad():
        expected = theirs(IDS).logits
        assert distance(ours(IDS).logits, expected) <= 1e-5
        assert distance(to_transformers(ours)(IDS).logits, expected) <= 1e-6


def test_what_transformers_does_not_have():
    for config in (DebertaConfig, DebertaV2Config):
        encoder = deberta_encoder(deberta_case(config, 2).config)
        with pytest.raises(CheckpointError, match=r"no enhanced mask decoder, .*give \.encoder"):
            to_transformers(deberta_masked_lm(encoder))


# ---------------------------------------------------------------- compare


@both_generations
@pytest.mark.parametrize("make", [masked_lm, deberta_encoder])
def test_compare_finds_it_equal(kind: type[DebertaConfig], make: Any):
    """In float64, too: there the bound is float32's, for that is what transformers computes in."""
    config = kind(
        vocab_size=50, hidden_size=48, num_layers=2, num_heads=4, intermediate_size=80,
        max_positions=16, span=5,
    )  # fmt: skip
    ours = drawn_weights(make(config), 0.2)
    found = compare(ours)
    assert found.equal
    assert compare(ours.double()).tolerance == found.tolerance and compare(ours).equal
    theirs = to_transformers(ours)
    with torch.no_grad():
        theirs.base_model.encoder.rel_embeddings.weight.normal_()
    changed = compare(ours, theirs)
    assert not changed.equal and changed.gradient_difference > 1e-4


# ---------------------------------------------------------------- parameter counts

COUNTS = {"base": 138_601_728, "large": 405_163_008}  # facts.md 0.1
EXTRA = {"base": 14_942_208, "large": 51_380_224}  # 2LH² + 2kH


def their_config(c: DebertaConfig) -> Any:
    common: dict[str, Any] = dict(
        vocab_size=c.vocab_size, hidden_size=c.hidden_size, num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads, intermediate_size=c.intermediate_size,
        relative_attention=True, position_biased_input=False, pos_att_type=["c2p", "p2c"],
    )  # fmt: skip
    if not isinstance(c, DebertaV2Config):
        return transformers.DebertaConfig(**common)
    return transformers.DebertaV2Config(
        **common, position_buckets=256, share_att_key=True, norm_rel_ebd="layer_norm"
    )


def test_every_published_size_of_the_first_generation_is_counted():
    assert set(COUNTS) == set(EXTRA) == set(PUBLISHED["deberta"])


@pytest.mark.parametrize("size", COUNTS)
def test_parameter_counts(size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    config = published("deberta", size, DebertaConfig)
    assert on_meta(lambda: deberta(size)) == COUNTS[size]
    assert on_meta(lambda: transformers.DebertaModel(their_config(config))) == COUNTS[size]


@pytest.mark.parametrize("size", COUNTS)
def test_what_disentangling_adds(size: str):
    """2LH² + 2kH (He et al. 2020, appendix A.7): two matrices a layer, and the table.

    With its biases: H of a position query in each layer, while one of three biases (the key's) is
    left out, which cancels."""
    c = published("deberta", size, DebertaConfig)
    H, L = c.hidden_size, c.num_layers
    plain = L * (4 * (H * H + H) + 2 * H * c.intermediate_size + c.intermediate_size + H + 4 * H)
    added = COUNTS[size] - c.vocab_size * H - 2 * H - plain
    assert added == EXTRA[size] == 2 * L * H * H + 2 * c.span * H


@pytest.mark.parametrize("size", PUBLISHED["deberta-v3"])
def test_parameter_counts_of_v3(size: str):
    theirs = their_config(published("deberta-v3", size, DebertaV2Config))
    assert on_meta(lambda: deberta_v3(size)) == on_meta(lambda: transformers.DebertaV2Model(theirs))
