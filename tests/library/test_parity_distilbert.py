"""DistilBERT is equal to transformers' DistilBertModel and DistilBertForMaskedLM.

In outputs, gradients, weights there and back, and counts. What "equal" means, and how models are
drawn, is said in parity.py."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from parity import (
    DRAWN,
    TOLERANCE,
    Case,
    all_distances,
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
    scores_of,
)

from course_lib.checkpoints import CheckpointError, from_transformers, to_transformers
from course_lib.config import PUBLISHED, published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.bert import bert
from course_lib.family.distilbert import (
    DistilBertConfig,
    distilbert,
    distilbert_encoder,
    distilbert_for_masked_lm,
)
from course_lib.heads import BertForMaskedLM
from course_lib.teaching.compare import _batch, compare

transformers = pytest.importorskip("transformers")


def as_distilbert(settings: dict[str, Any], draw: random.Random) -> DistilBertConfig:
    """The drawn sizes without segments, with one of the two forms of GELU and any padding id."""
    more = {"type_vocab_size": 0, "hidden_act": draw.choice(["gelu", "gelu_new"])}
    return DistilBertConfig(**{**settings, **more, "pad_token_id": draw.choice([0, 0, 3])})


def distil_case(seed: int) -> Case:
    return draw_case(seed, as_distilbert)


def masked(config: DistilBertConfig) -> BertForMaskedLM:
    return BertForMaskedLM(distilbert_encoder(config))


MAKERS = pytest.mark.parametrize("make", [masked, distilbert_encoder])


# ---------------------------------------------------------------- outputs and gradients


def test_the_drawn_cases_hold_every_kind():
    cases = [distil_case(seed) for seed in DRAWN]
    assert all("token_type_ids" not in case.inputs for case in cases)
    masks = [case.inputs["attention_mask"] for case in cases]
    assert any(mask.all() for mask in masks) and any(not mask.all() for mask in masks)
    configs = [case.config for case in cases]
    assert {c.hidden_act for c in configs} == {"gelu", "gelu_new"}
    assert {c.pad_token_id for c in configs} == {0, 3}
    assert any(c.num_heads % 2 for c in configs) and any(len(mask) == 1 for mask in masks)


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
def test_outputs(seed: int, dtype: torch.dtype):
    case = distil_case(seed)
    ours, theirs = pair_of_models(masked, case, dtype)
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@torch.no_grad()
def test_outputs_of_the_encoder(seed: int, dtype: torch.dtype):
    case = distil_case(seed)
    ours, theirs = pair_of_models(distilbert_encoder, case, dtype)
    mine = run(ours, case, output_attention_scores=True)
    reference = run(theirs, case)
    found = output_distances(mine, reference, case, scores_of(theirs, case))
    found["states"] = distance(
        mine.last_hidden_state[case.real], reference.last_hidden_state[case.real]
    )
    assert largest(found) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@MAKERS
def test_gradients(make: Any, seed: int, dtype: torch.dtype):
    case = distil_case(seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert both_backward(ours, theirs, case) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", range(20, 26))
def test_only_where_something_is_selected(seed: int, dtype: torch.dtype):
    case = distil_case(seed)
    ours, _ = pair_of_models(masked, case, dtype)
    found = chosen_against_full(ours, case) | only_at_against_full(ours.encoder, case)
    assert largest(found) <= TOLERANCE[dtype]


def test_a_difference_is_seen():
    """Two layers in the other order are noticed."""
    seed = next(s for s in DRAWN if distil_case(s).config.num_layers > 1)
    case = distil_case(seed)
    ours, theirs = pair_of_models(masked, case, torch.float32)
    blocks = list(ours.encoder.stack.blocks)
    ours.encoder.stack.blocks = torch.nn.ModuleList(blocks[::-1])
    with torch.no_grad():
        found = output_distances(run(ours, case), run(theirs, case), case)
    assert max(found.values()) > TOLERANCE[torch.float32]


# ---------------------------------------------------------------- compare


@MAKERS
def test_compare_finds_it_equal(make: Any):
    ours = drawn_weights(make(distil_case(2).config), 0.2)
    found = compare(ours)
    assert found.equal and found.our_parameters == count_parameters(ours)
    assert compare(ours.double()).equal and "two segments" not in found.batch
    theirs = to_transformers(ours)
    with torch.no_grad():
        theirs.base_model.transformer.layer[0].ffn.lin1.weight[0] += 0.1
    changed = compare(ours, theirs)
    assert not changed.equal and changed.gradient_difference > 1e-4


def test_compare_gives_no_segments_to_a_model_without():
    assert set(_batch(DistilBertConfig(), 2, 8, 0)) == {"input_ids", "attention_mask"}


def test_compare_as_the_lecture_calls_it():
    small = {"hidden_size": 48, "num_heads": 4, "intermediate_size": 96, "num_layers": 2}
    assert compare(distilbert("base", vocab_size=200, **small)).equal
    assert compare(distilbert_for_masked_lm("base", vocab_size=200, **small)).equal


# ---------------------------------------------------------------- weights there and back


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@MAKERS
def test_weights_there_and_back_are_bit_identical(make: Any, dtype: torch.dtype):
    config = distil_case(2).config
    assert_there_and_back(drawn_weights(make(config), 0.1).to(dtype))
    assert from_transformers(to_transformers(make(config))).config == config


def test_a_model_that_began_in_transformers():
    config = transformers.DistilBertConfig(
        vocab_size=40, dim=24, n_layers=3, n_heads=3, hidden_dim=50, max_position_embeddings=30,
        attn_implementation="eager",
    )  # fmt: skip
    theirs = transformers.DistilBertForMaskedLM(config).eval()
    ours, ids = from_transformers(theirs), torch.randint(40, (3, 9))
    with torch.no_grad():
        assert distance(ours(ids).logits, theirs(ids).logits) <= 1e-5
    alone = from_transformers(theirs.distilbert)
    assert isinstance(alone, Encoder) and alone.pooler is None
    assert isinstance(alone.config, DistilBertConfig) and alone.config.type_vocab_size == 0


def test_what_transformers_does_not_have():
    """Segments, a pooler, another epsilon; and of theirs, positions that nobody learned."""
    sizes = {"vocab_size": 20, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 8}
    wave = transformers.DistilBertConfig(**sizes, sinusoidal_pos_embds=True)
    with pytest.raises(CheckpointError, match="sinusoidal_pos_embds=True; only False means"):
        from_transformers(transformers.DistilBertModel(wave))
    config = DistilBertConfig(
        vocab_size=20, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=8
    )
    with pytest.raises(CheckpointError, match=r"no pooler\. Set encoder\.pooler = None first"):
        to_transformers(distilbert_encoder(config, pooler=True))
    changes = {"vocab_size": 20, "hidden_size": 8, "num_heads": 2, "num_layers": 1}
    with pytest.raises(CheckpointError, match=r"embeddings\.segment\.weight has no counterpart"):
        to_transformers(distilbert("base", **changes, type_vocab_size=2))
    with pytest.raises(CheckpointError, match=r"layer_norm_eps=1e-05; only 1e-12"):
        to_transformers(distilbert("base", **changes, layer_norm_eps=1e-5))


# ---------------------------------------------------------------- parameter counts

# facts.md 0.1
COUNTS = {"base": (66_362_880, 66_985_530)}  # encoder, with the masked-word head


def test_every_published_size_is_counted():
    assert set(COUNTS) == set(PUBLISHED["distilbert"])


@pytest.mark.parametrize("size", COUNTS)
def test_parameter_counts(size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    found = on_meta(lambda: distilbert(size)), on_meta(lambda: distilbert_for_masked_lm(size))
    assert found == COUNTS[size]
    config = transformers.DistilBertConfig()
    c = published("distilbert", size, DistilBertConfig)
    assert (c.num_layers, c.hidden_size, c.intermediate_size) == (
        config.n_layers, config.dim, config.hidden_dim,
    )  # fmt: skip
    assert found[0] == on_meta(lambda: transformers.DistilBertModel(config))
    assert found[1] == on_meta(lambda: transformers.DistilBertForMaskedLM(config))


def test_what_separates_it_from_bert():
    """Six blocks, two segment rows and the pooler less (Sanh et al. 2019, section 3)."""
    less = on_meta(lambda: bert("base")) - on_meta(lambda: distilbert("base"))
    assert less == 6 * 7_087_872 + 2 * 768 + 768 * 768 + 768
    share = on_meta(lambda: distilbert("base")) / on_meta(lambda: bert("base"))
    assert round(share, 3) == 0.606


# ---------------------------------------------------------------- bad input


def test_a_segment_number_is_refused():
    ids = torch.tensor([[2, 9, 3]])
    small = {"vocab_size": 20, "hidden_size": 8, "num_heads": 2, "num_layers": 1}
    model = distilbert("base", **small).eval()
    with torch.no_grad():
        plain = model(ids).last_hidden_state
        zeros = model(ids, token_type_ids=torch.zeros_like(ids)).last_hidden_state
    assert torch.equal(plain, zeros)
    with pytest.raises(ValueError, match="this model has no segments: leave it out"):
        model(ids, token_type_ids=torch.ones_like(ids))


def test_names_that_do_not_exist():
    with pytest.raises(ValueError, match="expected settings of DistilBertConfig"):
        distilbert("base", embedding_size=128)
    with pytest.raises(ValueError, match="expected one of base"):
        distilbert("large")
