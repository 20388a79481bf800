"""TinyBERT is a BERT: at its shape, and at small ones, equal to transformers' BertModel and
BertForMaskedLM. What "equal" means, and how models are drawn, is said in parity.py."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from parity import (
    TOLERANCE,
    Case,
    all_distances,
    assert_there_and_back,
    both_backward,
    both_precisions,
    distance,
    draw_case,
    drawn_weights,
    largest,
    on_meta,
    output_distances,
    pair_of_models,
    run,
)

from course_lib.checkpoints import to_transformers
from course_lib.config import PUBLISHED, BertConfig, published
from course_lib.encoder import count_parameters
from course_lib.family.tinybert import (
    fit_matrix,
    tinybert,
    tinybert_encoder,
    tinybert_for_masked_lm,
)
from course_lib.heads import BertForMaskedLM
from course_lib.teaching.compare import compare

transformers = pytest.importorskip("transformers")

HEADS = 12  # of TinyBERT-4, which are 26 wide


def in_its_shape(settings: dict[str, Any], draw: random.Random) -> BertConfig:
    """312 wide, 12 heads and 1200 between: TinyBERT-4, of a drawn depth and vocabulary."""
    shape = PUBLISHED["tinybert"]["4"]
    return BertConfig(**{**settings, **shape, "num_layers": draw.choice([1, 2, 4])})


def smaller(settings: dict[str, Any], draw: random.Random) -> BertConfig:
    """The drawn sizes, with a feed-forward part that is no multiple of the width, as 1200 is not
    of 312."""
    wide = 4 * settings["hidden_size"] - draw.randint(1, settings["hidden_size"] - 1)
    return BertConfig(**{**settings, "intermediate_size": wide})


def masked(config: BertConfig) -> BertForMaskedLM:
    return BertForMaskedLM(tinybert_encoder(config, pooler=False))


SHAPES = pytest.mark.parametrize(
    ("shape", "seed"),
    [*((in_its_shape, seed) for seed in (0, 2)), *((smaller, seed) for seed in range(8))],
)


def case_of(shape: Any, seed: int) -> Case:
    """A drawn case; at 312 wide, weights of 0.2 would drive every softmax to one word."""
    case = draw_case(seed, shape)
    return case._replace(sd=0.05) if shape is in_its_shape else case


@both_precisions
@SHAPES
def test_outputs(shape: Any, seed: int, dtype: torch.dtype):
    case = case_of(shape, seed)
    ours, theirs = pair_of_models(masked, case, dtype)
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[dtype]


@both_precisions
@SHAPES
@torch.no_grad()
def test_outputs_of_the_encoder_and_its_pooler(shape: Any, seed: int, dtype: torch.dtype):
    case = case_of(shape, seed)
    ours, theirs = pair_of_models(tinybert_encoder, case, dtype)
    mine, reference = run(ours, case), run(theirs, case)
    found = output_distances(mine, reference, case)
    found["pooler"] = distance(mine.pooler_output, reference.pooler_output)
    assert largest(found) <= TOLERANCE[dtype]


@both_precisions
@SHAPES
@pytest.mark.parametrize("make", [masked, tinybert_encoder])
def test_gradients(make: Any, shape: Any, seed: int, dtype: torch.dtype):
    case = case_of(shape, seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert both_backward(ours, theirs, case) <= TOLERANCE[dtype]


def test_its_shape_is_the_published_one():
    config = case_of(in_its_shape, 0).config
    assert (config.hidden_size, config.num_heads, config.intermediate_size) == (312, HEADS, 1_200)
    assert config.head_size == 26


@pytest.mark.parametrize("make", [masked, tinybert_encoder])
def test_compare_finds_it_equal(make: Any):
    ours = drawn_weights(make(case_of(smaller, 2).config), 0.2)
    found = compare(ours)
    assert found.equal and found.our_parameters == count_parameters(ours)
    theirs = to_transformers(ours)
    with torch.no_grad():
        theirs.base_model.encoder.layer[0].intermediate.dense.weight[0] += 0.1
    assert not compare(ours, theirs).equal


@pytest.mark.parametrize("kind", ["masked words", "encoder", "no pooler"])
def test_weights_there_and_back_are_bit_identical(kind: str):
    config = case_of(smaller, 2).config
    ours: Any = masked(config) if kind[0] == "m" else tinybert_encoder(config, kind[0] == "e")
    assert_there_and_back(drawn_weights(ours, 0.1))


# ---------------------------------------------------------------- parameter counts

# facts.md 0.1: without pooler, with pooler
COUNTS = {"4": (14_252_592, 14_350_248), "6": (66_364_416, 66_955_008)}


def test_every_published_size_is_counted():
    assert set(COUNTS) == set(PUBLISHED["tinybert"])


@pytest.mark.parametrize("size", COUNTS)
def test_parameter_counts(size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    found = on_meta(lambda: tinybert(size, pooler=False)), on_meta(lambda: tinybert(size))
    assert found == COUNTS[size]
    c = published("tinybert", size)
    config = transformers.BertConfig(
        hidden_size=c.hidden_size, num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads, intermediate_size=c.intermediate_size,
    )  # fmt: skip
    base = transformers.BertModel
    assert found[0] == on_meta(lambda: base(config, add_pooling_layer=False))
    assert found[1] == on_meta(lambda: base(config))
    whole = on_meta(lambda: transformers.BertForMaskedLM(config))
    assert on_meta(lambda: tinybert_for_masked_lm(size)) == whole


def test_the_matrix_that_is_thrown_away():
    matrix = on_meta(lambda: fit_matrix(published("tinybert", "4"), published("bert", "base")))
    assert matrix == 240_384 == 312 * 768 + 768
    assert round((matrix + COUNTS["4"][1]) / 1e6, 2) == 14.59


def test_names_that_do_not_exist():
    with pytest.raises(ValueError, match="expected one of 4, 6"):
        tinybert("2")
    with pytest.raises(ValueError, match="expected settings of BertConfig"):
        tinybert("4", embedding_size=128)
