"""ALBERT is equal to transformers' AlbertModel, AlbertForMaskedLM and AlbertForPreTraining.

In outputs, gradients, weights there and back, and counts; and sharing does what it says. What
"equal" means, and how models are drawn, is said in parity.py."""

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
    logits_of,
    on_meta,
    only_at_against_full,
    output_distances,
    pair_of_models,
    run,
)
from torch import Tensor, nn

from course_lib.checkpoints import from_transformers, to_transformers
from course_lib.config import PUBLISHED, published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.albert import (
    SHARING,
    AlbertConfig,
    albert,
    albert_encoder,
    albert_for_pretraining,
    sharing_plan,
)
from course_lib.heads import BertForMaskedLM, BertForPreTraining
from course_lib.teaching.compare import compare

transformers = pytest.importorskip("transformers")


def as_albert(settings: dict[str, Any], draw: random.Random) -> AlbertConfig:
    """The drawn sizes as an ALBERT: E below, at or above H, any number of groups, both GELUs."""
    layers, hidden = settings["num_layers"], settings["hidden_size"]
    return AlbertConfig(
        **settings,
        embedding_size=draw.choice([8, 9, hidden - 1, hidden, hidden + 4]),
        num_groups=draw.choice([g for g in range(1, layers + 1) if layers % g == 0]),
        hidden_act=draw.choice(["gelu", "gelu_new"]),
    )


def albert_case(seed: int, **changes: Any) -> Case:
    """A drawn case; `changes` are settings to fix."""
    return draw_case(
        seed,
        lambda settings, draw: AlbertConfig(
            **{**vars(as_albert(settings, draw)), **changes},
        ),
    )


def whole(config: AlbertConfig) -> BertForPreTraining:
    return BertForPreTraining(albert_encoder(config))


def masked(config: AlbertConfig) -> BertForMaskedLM:
    return BertForMaskedLM(albert_encoder(config, pooler=False))


# ---------------------------------------------------------------- outputs and gradients


def test_the_drawn_cases_hold_every_kind():
    cases = [albert_case(seed) for seed in DRAWN]
    configs = [case.config for case in cases]
    groups = {(c.num_layers, c.num_groups) for c in configs}
    assert any(1 < g < layers for layers, g in groups) and any(g == 1 < n for n, g in groups)
    assert any(g == layers > 1 for layers, g in groups)
    assert {c.hidden_act for c in configs} == {"gelu", "gelu_new"}
    wider = {
        (c.embedding_size > c.hidden_size) - (c.embedding_size < c.hidden_size) for c in configs
    }
    assert wider == {-1, 0, 1}
    masks = [case.inputs["attention_mask"] for case in cases]
    assert any(mask.all() for mask in masks) and any(not mask.all() for mask in masks)
    assert any(c.num_heads % 2 for c in configs) and any(len(mask) == 1 for mask in masks)


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@pytest.mark.parametrize("make", [whole, masked])
def test_outputs(make: Any, seed: int, dtype: torch.dtype):
    case = albert_case(seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@pytest.mark.parametrize("make", [whole, masked, albert_encoder])
def test_gradients(make: Any, seed: int, dtype: torch.dtype):
    case = albert_case(seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert both_backward(ours, theirs, case) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("groups", [1, 2, 3, 6, 12])
def test_groups_of_a_deep_model(groups: int, dtype: torch.dtype):
    case = albert_case(3, num_layers=12, num_groups=groups)
    ours, theirs = pair_of_models(whole, case, dtype)
    assert len(ours.encoder.stack.blocks) == groups
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[dtype]
    assert both_backward(ours, theirs, case) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
def test_without_sharing(seed: int, dtype: torch.dtype):
    """sharing="none" is transformers' model with a group for each layer."""
    case = albert_case(seed, sharing="none")
    ours, theirs = pair_of_models(whole, case, dtype)
    assert theirs.config.num_hidden_groups == case.config.num_layers
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[dtype]
    assert both_backward(ours, theirs, case) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", range(20, 26))
@pytest.mark.parametrize("sharing", SHARING)
def test_only_where_something_is_selected(sharing: str, seed: int, dtype: torch.dtype):
    case = albert_case(seed, sharing=sharing)
    ours = drawn_weights(whole(case.config), case.sd).to(dtype).eval()
    found = chosen_against_full(ours, case) | only_at_against_full(ours.encoder, case)
    assert largest(found) <= TOLERANCE[dtype]


def test_a_difference_is_seen():
    """The tanh form of GELU in the exact one's place is noticed in float64."""
    case = albert_case(2, hidden_act="gelu")
    ours, theirs = pair_of_models(whole, case, torch.float64)
    ours.encoder.stack.blocks[0].feed_forward.gelu_form = "tanh"
    with torch.no_grad():
        found = output_distances(run(ours, case), run(theirs, case), case)
    assert max(found.values()) > TOLERANCE[torch.float64]


@pytest.mark.parametrize("make", [whole, masked, albert_encoder])
def test_compare_finds_it_equal(make: Any):
    ours = drawn_weights(make(albert_case(2, num_layers=4, num_groups=2).config), 0.2)
    found = compare(ours)
    assert found.equal and found.our_parameters == count_parameters(ours)
    assert compare(ours.double()).equal
    theirs = to_transformers(ours)
    with torch.no_grad():
        theirs.base_model.encoder.albert_layer_groups[1].albert_layers[0].ffn.weight[0] += 0.1
    changed = compare(ours, theirs)
    assert not changed.equal and changed.gradient_difference > 1e-4


def test_compare_looks_at_both_heads():
    ours = drawn_weights(whole(albert_case(2).config), 0.2)
    for change in ("sop_classifier.classifier.bias", "predictions.bias"):
        theirs = to_transformers(ours)
        with torch.no_grad():
            theirs.get_parameter(change)[0] += 0.1
        assert compare(ours, theirs).output_difference > 1e-3, change


# ---------------------------------------------------------------- weights there and back


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", ["pretraining", "masked words", "encoder", "no pooler"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_weights_there_and_back_are_bit_identical(groups: int, kind: str, dtype: torch.dtype):
    config = albert_case(2, num_layers=4, num_groups=groups).config
    make = {"pretraining": whole, "masked words": masked, "encoder": albert_encoder}
    ours = make[kind](config) if kind in make else albert_encoder(config, pooler=False)
    assert_there_and_back(drawn_weights(ours, 0.1).to(dtype))
    assert from_transformers(to_transformers(ours)).config == config


def test_no_sharing_comes_back_as_a_group_for_each_layer():
    ours = drawn_weights(
        whole(albert_case(2, num_layers=4, num_groups=1, sharing="none").config), 0.1
    )
    assert_there_and_back(ours)
    back = from_transformers(to_transformers(ours))
    assert (back.config.sharing, back.config.num_groups) == ("all", 4)
    assert back.encoder.stack.plan == ours.encoder.stack.plan


def test_a_model_that_began_in_transformers():
    """Its pair head drops out a tenth while training: that must not matter in evaluation."""
    config = transformers.AlbertConfig(
        vocab_size=40, embedding_size=10, hidden_size=24, num_hidden_layers=4,
        num_hidden_groups=2, num_attention_heads=3, intermediate_size=50,
        max_position_embeddings=30, classifier_dropout_prob=0.1, attn_implementation="eager",
    )  # fmt: skip
    theirs = transformers.AlbertForPreTraining(config).eval()
    ours, ids = from_transformers(theirs), torch.randint(40, (3, 9))
    with torch.no_grad():
        mine, reference = ours(ids), theirs(ids)
    assert distance(mine.prediction_logits, reference.prediction_logits) <= 1e-5
    assert distance(mine.sop_logits, reference.sop_logits) <= 1e-5
    assert to_transformers(ours).config.classifier_dropout_prob == 0.0


# ---------------------------------------------------------------- parameter counts

# facts.md 0.1: without pooler, with pooler
COUNTS = {
    "base": (11_092_992, 11_683_584),
    "large": (16_634_368, 17_683_968),
    "xlarge": (54_528_512, 58_724_864),
    "xxlarge": (205_814_272, 222_595_584),
}


def test_every_published_size_is_counted():
    assert set(COUNTS) == set(PUBLISHED["albert"])


@pytest.mark.parametrize("size", COUNTS)
def test_parameter_counts(size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    found = on_meta(lambda: albert(size, pooler=False)), on_meta(lambda: albert(size))
    assert found == COUNTS[size]
    c = published("albert", size, AlbertConfig)
    config = transformers.AlbertConfig(
        hidden_size=c.hidden_size, num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads, intermediate_size=c.intermediate_size,
    )  # fmt: skip
    base = transformers.AlbertModel
    assert found[0] == on_meta(lambda: base(config, add_pooling_layer=False))
    assert found[1] == on_meta(lambda: base(config))
    with_heads = on_meta(lambda: transformers.AlbertForPreTraining(config))
    assert on_meta(lambda: albert_for_pretraining(size)) == with_heads


def test_the_whole_pre_training_model_of_base():
    assert on_meta(lambda: albert_for_pretraining("base")) == 11_813_810


# Lan et al. 2019, Table 4, E = 128: 12M, 64M, 38M and 89M. To the last unit, with the pooler:
SHARED = {
    "all": 11_683_584,
    "feed_forward": 37_686_528,
    "attention": 63_647_232,
    "none": 89_650_176,
}
PRINTED = {"all": 12, "feed_forward": 38, "attention": 64, "none": 89}


def test_every_sharing_is_counted():
    assert set(SHARED) == set(SHARING)


@pytest.mark.parametrize("sharing", SHARED)
def test_counts_of_the_four_ways_of_sharing(sharing: str):
    found = on_meta(lambda: albert("base", sharing=sharing))
    assert found == SHARED[sharing]
    assert abs(found / 1e6 - PRINTED[sharing]) < 1
    H, F = 768, 3072
    attention, feed = 4 * (H * H + H) + 2 * H, 2 * H * F + F + H + 2 * H
    copies = {"all": (1, 1), "attention": (1, 12), "feed_forward": (12, 1), "none": (12, 12)}
    tables = (30_000 + 512 + 2) * 128 + 2 * 128 + 128 * H + H
    own = copies[sharing][0] * attention + copies[sharing][1] * feed
    assert found == tables + own + H * H + H


# ---------------------------------------------------------------- what sharing shares

L = 4
SIZES = {"vocab_size": 30, "embedding_size": 6, "hidden_size": 12, "num_heads": 3}
SMALL = {**SIZES, "num_layers": L, "intermediate_size": 20, "max_positions": 12}
IDS = torch.tensor([[2, 9, 8, 7, 3], [2, 5, 6, 3, 0]])
MASK = (IDS != 0).long()


def small(**changes: Any) -> Encoder:
    return drawn_weights(albert("base", **{**SMALL, **changes}), 0.3).double().eval()


@pytest.mark.parametrize(
    ("sharing", "groups", "plan"),
    [
        ("all", 1, [(0, 0), (0, 0), (0, 0), (0, 0)]),
        ("all", 2, [(0, 0), (0, 0), (1, 1), (1, 1)]),
        ("all", 4, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("attention", 1, [(0, 0), (0, 1), (0, 2), (0, 3)]),
        ("attention", 2, [(0, 0), (0, 1), (2, 2), (2, 3)]),
        ("feed_forward", 1, [(0, 0), (1, 0), (2, 0), (3, 0)]),
        ("feed_forward", 2, [(0, 0), (1, 0), (2, 2), (3, 2)]),
        ("none", 1, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("none", 2, [(0, 0), (1, 1), (2, 2), (3, 3)]),
    ],
)
def test_the_plan_on_paper(sharing: str, groups: int, plan: list[tuple[int, int]]):
    config = AlbertConfig(**SMALL, sharing=sharing, num_groups=groups)
    assert sharing_plan(config) == plan


def calls_of(model: Encoder, half: str) -> list[nn.Module]:
    """The modules called `half` in the order in which one run uses them."""
    used: list[nn.Module] = []
    parts = [getattr(b, half) for b in model.stack.blocks if hasattr(b, half)]
    hooks = [part.register_forward_hook(lambda m, i, o: used.append(m)) for part in parts]
    with torch.no_grad():
        model(IDS, MASK)
    for hook in hooks:
        hook.remove()
    return used


@pytest.mark.parametrize(
    ("sharing", "attentions", "feeds"),
    [("all", 1, 1), ("attention", 1, L), ("feed_forward", L, 1), ("none", L, L)],
)
def test_which_modules_a_run_uses(sharing: str, attentions: int, feeds: int):
    """Every layer runs, whatever is shared; the norm after a half is shared with it."""
    model = small(sharing=sharing)
    for half, norm, different in (
        ("attention", "attention_norm", attentions),
        ("feed_forward", "output_norm", feeds),
    ):
        for name in (half, norm):
            used = calls_of(model, name)
            assert len(used) == L and len({id(part) for part in used}) == different
            kept = [block for block in model.stack.blocks if hasattr(block, name)]
            assert len(kept) == different  # and no weights lie about unused


@pytest.mark.parametrize("sharing", SHARING)
def test_gradients_reach_every_weight(sharing: str):
    model = drawn_weights(BertForPreTraining(small(sharing=sharing)).double(), 0.3)
    outputs = model(IDS, MASK, (torch.arange(5) > 2).long().expand_as(IDS))
    sum(x.square().mean() for x in logits_of(outputs).values()).backward()  # type: ignore[union-attr]
    unreached = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert unreached == []


def changed_layers(model: Encoder, weight: Tensor) -> list[bool]:
    """For each layer, whether its output changes when one weight matrix does."""
    with torch.no_grad():
        before = model(IDS, MASK, output_hidden_states=True).hidden_states
        weight += 0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(5))
        after = model(IDS, MASK, output_hidden_states=True).hidden_states
    assert torch.equal(before[0], after[0])
    moved = [(a - b).abs().max().item() for a, b in zip(before[1:], after[1:], strict=True)]
    assert not any(1e-6 < distance < 1e-3 for distance in moved)  # by rounding, or visibly
    return [distance > 1e-3 for distance in moved]


def test_shared_attention_is_one_and_the_feed_forwards_are_each_their_layers():
    for layer in range(L):
        model = small(sharing="attention")
        feed = model.stack.blocks[layer].feed_forward
        assert changed_layers(model, feed.expand.weight) == [n >= layer for n in range(L)]
    model = small(sharing="attention")
    assert [hasattr(block, "attention") for block in model.stack.blocks] == [True] + [False] * 3
    used = calls_of(model, "attention")
    assert used == [model.stack.blocks[0].attention] * L
    assert changed_layers(model, model.stack.blocks[0].attention.value.weight) == [True] * L
    # In the last layer, too, and not only by what the first one hands on:
    with torch.no_grad():
        one = model(IDS, MASK, output_hidden_states=True).hidden_states
        again, *_ = model.stack.blocks[0].attend(one[-2], MASK, False, None)
        again = model.stack.blocks[-1].feed(again)
    assert distance(again, one[-1]) <= 1e-12


def copy_into(model: Encoder, source: Encoder) -> Encoder:
    """The one block of `source`, and all its other weights, into every block of `model`."""
    given = source.state_dict()
    state = {}
    for name in model.state_dict():
        parts = name.split(".")
        if parts[:2] == ["stack", "blocks"]:
            parts[2] = "0"
        state[name] = given[".".join(parts)].clone()
    model.load_state_dict(state)
    return model


@pytest.mark.parametrize("sharing", ["attention", "feed_forward", "none"])
def test_copies_of_one_block_compute_what_one_block_does(sharing: str):
    """Equal outputs; and the gradient of a shared weight is the sum of its copies' gradients."""
    shared = small()
    copied = copy_into(small(sharing=sharing), shared)
    for model in (shared, copied):
        outputs = model(IDS, MASK)
        (
            outputs.last_hidden_state.square().mean() + outputs.pooler_output.square().sum()
        ).backward()
    with torch.no_grad():
        one, other = shared(IDS, MASK), copied(IDS, MASK)
    assert distance(other.last_hidden_state, one.last_hidden_state) <= 1e-12
    for name, parameter in shared.stack.blocks[0].named_parameters():
        copies = [dict(block.named_parameters()).get(name) for block in copied.stack.blocks]
        total = sum(copy.grad for copy in copies if copy is not None)
        assert isinstance(total, Tensor) and parameter.grad is not None
        assert distance(total, parameter.grad) <= 1e-12, name


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"embedding_size": 0},
            r"embedding_size=0 was given; expected a whole number of at least 1",
        ),
        ({"embedding_size": 12.5}, r"embedding_size=12\.5 was given"),
        ({"sharing": "some"}, r"sharing='some' .* one of all, attention, feed_forward, none"),
        ({"sharing": None}, r"sharing=None was given"),
        (
            {"num_groups": 0},
            r"num_groups=0 was given for 12 layers; expected a number that divides",
        ),
        ({"num_groups": 5}, r"num_groups=5 was given for 12 layers"),
        ({"num_groups": 24}, r"num_groups=24 was given for 12 layers"),
        ({"num_groups": 2.0}, r"num_groups=2\.0 was given"),
        ({"hidden_act": "relu"}, r"hidden_act='relu' was given; expected 'gelu' or 'gelu_new'"),
        ({"hidden_size": 100}, r"hidden_size=100 .*num_heads=12"),
        ({"pad_token_id": 30_000}, r"pad_token_id=30000 was given"),
    ],
)
def test_settings_that_do_not_fit(changes: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        AlbertConfig(**changes)
    with pytest.raises(ValueError, match=says):
        albert("base", **changes)


def test_names_that_do_not_exist():
    with pytest.raises(ValueError, match=r"expected settings of AlbertConfig: .*embedding_size"):
        albert("base", embedding=128)
    with pytest.raises(ValueError, match="expected one of base, large, xlarge, xxlarge"):
        albert("huge")


def test_texts_that_do_not_fit():
    model = small()
    with pytest.raises(ValueError, match=r"text of 13 tokens .* at most 12"):
        model(torch.full((1, 13), 4))
    with pytest.raises(ValueError, match=r"input_ids from 30 to 30 .* from 0 to 29"):
        model(torch.full((1, 3), 30))


def test_count_of_a_model_with_memory():
    """The same rule as on meta, on one small enough to add up by hand."""
    V, P, E, H, F = 30, 12, 6, 12, 20
    block = 4 * (H * H + H) + (H * F + F) + (F * H + H) + 4 * H
    tables = V * E + P * E + 2 * E + 2 * E + E * H + H
    assert count_parameters(small()) == tables + block + H * H + H
