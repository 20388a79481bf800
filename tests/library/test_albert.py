"""What ALBERT does beside being equal to the reference: sharing does what it says."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from members import ALBERT, as_albert
from parity import (
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
    pair_of_models,
    positions_against_full,
)
from torch import Tensor, nn

from course_lib.encoder import Encoder
from course_lib.family.albert import SHARING, AlbertConfig, albert, sharing_plan
from course_lib.heads import BertForPreTraining

whole = partial(ALBERT.make, "pretraining")


def albert_case(seed: int, **changes: Any) -> Case:
    """A drawn case; `changes` are settings to fix."""
    return draw_case(seed, partial(as_albert, **changes))


def check_parity(case: Case, dtype: torch.dtype) -> tuple[Any, Any]:
    pytest.importorskip("transformers")
    ours, theirs = pair_of_models(whole, case, dtype)
    found = all_distances(ours, theirs, case)
    found["gradients"] = both_backward(ours, theirs, case)
    assert largest(found) <= TOLERANCE[dtype]
    return ours, theirs


@both_precisions
@pytest.mark.parametrize("groups", [1, 2, 3, 6, 12])
def test_groups_of_a_deep_model(groups: int, dtype: torch.dtype):
    ours, _ = check_parity(albert_case(3, num_layers=12, num_groups=groups), dtype)
    assert len(ours.encoder.stack.blocks) == groups


@both_precisions
@pytest.mark.parametrize("seed", ALBERT.seeds)
def test_without_sharing(seed: int, dtype: torch.dtype):
    """sharing="none" is transformers' model with a group for each layer."""
    case = albert_case(seed, sharing="none")
    _, theirs = check_parity(case, dtype)
    assert theirs.config.num_hidden_groups == case.config.num_layers


@both_precisions
@pytest.mark.parametrize("seed", range(20, 26))
@pytest.mark.parametrize("sharing", SHARING)
def test_only_where_something_is_selected(sharing: str, seed: int, dtype: torch.dtype):
    case = albert_case(seed, sharing=sharing)
    ours = drawn_weights(whole(case.config), case.sd).to(dtype).eval()
    found = chosen_against_full(ours, case) | positions_against_full(ours.encoder, case)
    assert largest(found) <= TOLERANCE[dtype]


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_there_and_back(groups: int):
    config = albert_case(2, num_layers=4, num_groups=groups).config
    assert assert_there_and_back(drawn_weights(whole(config), 0.1)).config == config


def test_no_sharing_comes_back_as_a_group_for_each_layer():
    case = albert_case(2, num_layers=4, num_groups=1, sharing="none")
    ours = drawn_weights(whole(case.config), 0.1)
    back = assert_there_and_back(ours)
    assert (back.config.sharing, back.config.num_groups) == ("all", 4)
    assert back.encoder.stack.plan == ours.encoder.stack.plan


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
    sum(x.square().mean() for x in vars(outputs).values() if isinstance(x, Tensor)).backward()
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
        again = model.stack.blocks[-1].apply_feed_forward(again)
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
