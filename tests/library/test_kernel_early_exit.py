"""Rows that leave early get what they get at full depth, and are computed no further."""

from __future__ import annotations

import math

import pytest
import torch
from kernel_parts import TOLERANCE, every_format
from torch import nn

from course_lib.config import BertConfig
from course_lib.encoder import Block
from course_lib.kernels.early_exit import (
    early_exit,
    early_exit_reference,
    entropy_at_most,
    normalised_entropy,
    probability_above,
)

WIDTH, CLASSES, DEPTH = 8, 3, 4
RULES = {
    f"{rule.__name__} {threshold}": rule(threshold)
    for rule, middle in ((entropy_at_most, 0.6), (probability_above, 0.7))
    for threshold in (0, middle, 1)
}
both_twins = pytest.mark.parametrize("twin", [early_exit_reference, early_exit])


def a_stack(dtype=torch.float32, exits_at=range(1, DEPTH + 1)):
    """Blocks that record how many rows they see, and an exit after the layers asked for."""
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=WIDTH, num_heads=2, intermediate_size=16, hidden_dropout=0, attention_dropout=0
    )
    blocks = [Block(config).to(dtype).eval() for _ in range(DEPTH)]
    heads = [nn.Linear(WIDTH, CLASSES).to(dtype) for _ in range(DEPTH)]
    seen = []

    def layer(block):
        def run(x, mask):
            assert mask is None or mask.shape == x.shape[:2]
            seen.append(len(x))
            return block(x, mask)[0]

        return run

    def leave(head):
        return lambda x, mask: 3 * head(x[:, 0])

    layers = [layer(block) for block in blocks]
    exits = [leave(h) if d in exits_at else None for d, h in enumerate(heads, start=1)]
    return layers, exits, seen


def a_batch(rows, tokens, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, tokens, WIDTH, generator=generator, dtype=torch.float64).to(dtype)
    lengths = torch.randint(1, tokens + 1, (rows, 1), generator=generator)
    return x, (torch.arange(tokens) < lengths).long()


@pytest.mark.parametrize("rule", RULES)
@every_format
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (9, 7), (32, 3)], ids=str)
@pytest.mark.parametrize("exits_at", [range(1, 5), (2, 4), (4,)], ids=["all", "some", "last"])
def test_early_exit_twins_agree(rule, dtype, shape, exits_at):
    layers, exits, _ = a_stack(dtype, exits_at)
    x, real = a_batch(*shape, dtype)
    given = x.clone()
    for mask in (None, real):
        fast, slow = (
            twin(x, layers, exits, RULES[rule], mask) for twin in (early_exit, early_exit_reference)
        )
        assert torch.equal(x, given), "what was given must not be changed"
        assert fast.layers_used.tolist() == slow.layers_used.tolist()
        assert set(fast.layers_used.tolist()) <= set(exits_at)
        assert fast.logits.shape == (shape[0], CLASSES) and fast.logits.dtype == dtype
        assert not fast.logits.requires_grad
        difference = (fast.logits.double() - slow.logits.double()).abs().max()
        assert difference <= TOLERANCE[dtype] * max(1, slow.logits.abs().max().item())


def test_rows_do_leave_at_different_depths_and_the_rest_is_compacted():
    layers, exits, seen = a_stack()
    x, mask = a_batch(32, 3)
    used = early_exit(x, layers, exits, entropy_at_most(0.6), mask).layers_used
    assert len(set(used.tolist())) >= 3
    assert seen == [int((used >= depth).sum()) for depth in range(1, max(used) + 1)]
    seen.clear()
    early_exit_reference(x, layers, exits, entropy_at_most(0.6), mask)
    assert seen == [32] * DEPTH


@pytest.mark.parametrize(
    ("rule", "depth"),
    [
        (entropy_at_most(1), 1),
        (probability_above(0), 1),
        (entropy_at_most(0), DEPTH),
        (probability_above(1), DEPTH),
    ],
)
def test_all_leave_at_once_or_none_does(rule, depth):
    layers, exits, seen = a_stack()
    x, mask = a_batch(5, 6)
    out = early_exit(x, layers, exits, rule, mask)
    assert seen == [5] * depth and out.layers_used.tolist() == [depth] * 5


@both_twins
def test_each_row_takes_its_first_confident_exit_by_hand(twin):
    """Layers add 1; the exit says how far a row has come; a row leaves at the place it names."""
    leaves_at = torch.tensor([2, 1, 9, 2])
    x = leaves_at[:, None, None] * 100.0  # (4, 1, 1)
    layers = [lambda x, mask: x + 1] * 3
    exits = [lambda x, mask: x[:, 0]] * 3
    out = twin(x, layers, exits, lambda logits: logits[:, 0] % 100 >= logits[:, 0] // 100)
    assert out.layers_used.tolist() == [2, 1, 3, 2]
    assert out.logits.flatten().tolist() == [202, 101, 903, 202]


@pytest.mark.parametrize("rest", [(0.4, 0.0), (0.2, 0.2)], ids=["a class ruled out", "three"])
def test_the_rules_by_hand(rest):
    """Same largest probability, another entropy: the two rules are not one (three classes)."""
    logits = torch.tensor([[0.6, *rest]]).log()
    entropy = -sum(p * math.log(p) for p in (0.6, *rest) if p) / math.log(3)
    assert entropy_at_most(entropy + 1e-3)(logits).all()
    assert not entropy_at_most(entropy - 1e-3)(logits).any()
    assert probability_above(0.59)(logits).all() and not probability_above(0.61)(logits).any()


@pytest.mark.parametrize("classes", range(2, 12))
def test_the_boundary_belongs_to_those_who_leave(classes):
    """Equal probabilities have an entropy of 1, however they are rounded, and leave at speed 1; at
    speed 0 leaves who is certain, and nobody else."""
    equal, certain = torch.zeros(1, classes), torch.zeros(1, classes)
    certain[0, -1] = 1_000.0
    assert normalised_entropy(equal).item() == pytest.approx(1, abs=1e-6)
    assert entropy_at_most(1)(equal).all() and not entropy_at_most(0.999)(equal).any()
    assert entropy_at_most(0)(certain).all() and not entropy_at_most(0)(certain / 500).any()
    own = normalised_entropy(certain / 500).item()
    assert entropy_at_most(own)(certain / 500).all()


def test_exits_see_the_mask_of_the_texts_under_way():
    """Rows of x and of the mask stay together: an exit that counts real tokens answers so."""
    x, mask = a_batch(9, 7)
    layers, seen = [lambda x, mask: x] * 3, []

    def counting(x, mask):
        seen.append(len(x))
        return mask.sum(1, keepdim=True).float()

    rules = [lambda logits: logits[:, 0] > 3]
    fast, slow = (
        twin(x, layers, [counting] * 3, rules[0], mask)
        for twin in (early_exit, early_exit_reference)
    )
    assert torch.equal(fast.logits[:, 0], mask.sum(1).float())
    assert torch.equal(fast.layers_used, slow.layers_used)
    assert seen[0] == 9 and 0 < seen[1] < 9


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize("rule", [entropy_at_most, probability_above])
def test_a_threshold_is_a_share(rule, threshold):
    with pytest.raises(ValueError, match="expected a number from 0 to 1"):
        rule(threshold)


@both_twins
def test_what_does_not_fit_is_refused(twin):
    layers, exits, _ = a_stack()
    x, mask = a_batch(2, 3)
    never = entropy_at_most(0)
    for wrong in (exits[:-1], [*exits[:-1], None], []):
        with pytest.raises(ValueError, match="expected one exit a layer"):
            twin(x, layers, wrong, never, mask)
    with pytest.raises(ValueError, match="expected one text at least"):
        twin(x[:0], layers, exits, never)
    with pytest.raises(ValueError, match=r"mask of shape \(2, 2\)"):
        twin(x, layers, exits, never, mask[:, :2])
    with pytest.raises(ValueError, match="two classes or more"):
        twin(x, layers, [lambda x, mask: x[:, 0, :1]] * DEPTH, never, mask)
