"""Rows that leave early get what they get at full depth, and are computed no further."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from course_lib.bench import Measured
from course_lib.bench import early_exit as bench
from course_lib.bench.early_exit import Evenly
from course_lib.config import BertConfig
from course_lib.encoder import Block
from course_lib.kernels.early_exit import (
    early_exit,
    early_exit_reference,
    entropy_below,
    probability_above,
)

TWINS = (early_exit_reference, early_exit)
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 2e-2}
WIDTH, CLASSES, DEPTH = 8, 3, 4


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
        return lambda x: 3 * head(x[:, 0])

    layers = [layer(block) for block in blocks]
    exits = [leave(h) if d in exits_at else None for d, h in enumerate(heads, start=1)]
    return layers, exits, seen


def a_batch(rows, tokens, dtype=torch.float32, masked=True):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, tokens, WIDTH, generator=generator, dtype=torch.float64).to(dtype)
    if not masked:
        return x, None
    lengths = torch.randint(1, tokens + 1, (rows, 1), generator=generator)
    return x, (torch.arange(tokens) < lengths).long()


RULES = {
    "entropy 0": entropy_below(0),
    "entropy 0.6": entropy_below(0.6),
    "entropy 1": entropy_below(1),
    "probability 0": probability_above(0),
    "probability 0.7": probability_above(0.7),
    "probability 1": probability_above(1),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (9, 7), (32, 3)], ids=str)
@pytest.mark.parametrize("exits_at", [range(1, 5), (2, 4), (4,)], ids=["all", "some", "last"])
def test_early_exit_twins_agree(rule, dtype, shape, exits_at):
    layers, exits, _ = a_stack(dtype, exits_at)
    for masked in (False, True):
        x, mask = a_batch(*shape, dtype, masked)
        given = x.clone()
        fast = early_exit(x, layers, exits, RULES[rule], mask)
        slow = early_exit_reference(x, layers, exits, RULES[rule], mask)
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
    used = early_exit(x, layers, exits, entropy_below(0.6), mask).layers_used
    assert len(set(used.tolist())) >= 3
    assert seen == [int((used >= depth).sum()) for depth in range(1, max(used) + 1)]
    seen.clear()
    early_exit_reference(x, layers, exits, entropy_below(0.6), mask)
    assert seen == [32] * DEPTH


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("entropy 1", [5]), ("probability 0", [5])]
    + [(r, [5] * 4) for r in ("entropy 0", "probability 1")],
)
def test_all_leave_at_once_or_none_does(rule, expected):
    layers, exits, seen = a_stack()
    x, mask = a_batch(5, 6)
    out = early_exit(x, layers, exits, RULES[rule], mask)
    assert seen == expected and out.layers_used.tolist() == [len(expected)] * 5


@pytest.mark.parametrize("twin", TWINS)
def test_each_row_takes_its_first_confident_exit_by_hand(twin):
    """Layers add 1; the exit says how far a row has come; a row leaves at the place it names."""
    leaves_at = torch.tensor([2, 1, 9, 2])
    x = leaves_at[:, None, None] * 100.0  # (4, 1, 1)
    layers = [lambda x, mask: x + 1] * 3
    exits = [lambda x: x[:, 0]] * 3
    out = twin(x, layers, exits, lambda logits: logits[:, 0] % 100 >= logits[:, 0] // 100)
    assert out.layers_used.tolist() == [2, 1, 3, 2]
    assert out.logits.flatten().tolist() == [202, 101, 903, 202]


def test_the_rules_by_hand():
    """Same largest probability, another entropy: the two rules are not one (three classes)."""
    logits = torch.tensor([[0.6, 0.4, 1e-30], [0.6, 0.2, 0.2]]).log()
    entropies = [
        -sum(p * math.log(p) for p in row) / math.log(3) for row in ((0.6, 0.4), (0.6, 0.2, 0.2))
    ]
    between = sum(entropies) / 2
    assert entropy_below(between)(logits).tolist() == [True, False]
    for entropy, row in zip(entropies, logits, strict=True):
        assert entropy_below(entropy + 1e-3)(row[None]).all()
        assert not entropy_below(entropy - 1e-3)(row[None]).any()
    assert probability_above(0.59)(logits).all() and not probability_above(0.61)(logits).any()


def test_a_class_that_is_ruled_out_has_no_entropy():
    logits = torch.tensor([[0.0, -torch.inf, 0.0]])  # ln 2 / ln 3 = 0.63
    assert entropy_below(0.64)(logits).item() and not entropy_below(0.62)(logits).item()


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize("rule", [entropy_below, probability_above])
def test_a_threshold_is_a_share(rule, threshold):
    with pytest.raises(ValueError, match="expected a number from 0 to 1"):
        rule(threshold)


@pytest.mark.parametrize("twin", TWINS)
def test_what_does_not_fit_is_refused(twin):
    layers, exits, _ = a_stack()
    x, mask = a_batch(2, 3)
    never = entropy_below(0)
    for wrong in (exits[:-1], [*exits[:-1], None], []):
        with pytest.raises(ValueError, match="expected one exit a layer"):
            twin(x, layers, wrong, never, mask)
    with pytest.raises(ValueError, match="expected one text at least"):
        twin(x[:0], layers, exits, never)
    with pytest.raises(ValueError, match=r"mask of shape \(2, 2\)"):
        twin(x, layers, exits, never, mask[:, :2])
    with pytest.raises(ValueError, match="two classes or more"):
        twin(x, layers, [lambda x: x[:, 0, :1]] * DEPTH, never, mask)


# ---- the bench -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("layers", "rows"), [(4, 32), (12, 32), (3, 2), (5, 1)])
def test_the_rigged_classifier_lets_rows_leave_evenly(layers, rows):
    judge, under_way = Evenly(layers), rows
    for depth in range(1, layers + 1):
        under_way -= int(judge(torch.zeros(under_way, 2)).sum())
        assert under_way == rows * (layers - depth) // layers


def test_flops_saved_by_hand():
    assert bench.flop_ratio(4) == pytest.approx(4 * 32 / (32 + 24 + 16 + 8))
    assert bench.flop_ratio(1) == 1


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_both_bench_contenders_do_their_work(monkeypatch, precision):
    monkeypatch.setattr(bench, "ROWS", 4)
    monkeypatch.setattr(bench, "TOKENS", 6)
    answers = []

    def watched(*given):
        answers.append(early_exit(*given))
        return answers[-1]

    monkeypatch.setattr(bench, "early_exit", watched)
    shape = dict(num_layers=4, hidden_size=8, num_heads=2, intermediate_size=16)
    for contender in bench.contenders(shape, precision):
        assert contender.tokens == 24
        contender.make()()
    full, early = answers
    assert full.layers_used.tolist() == [4] * 4 and early.layers_used.tolist() == [1, 2, 3, 4]
    assert (full.logits[3] - early.logits[3]).abs().max() <= TOLERANCE[full.logits.dtype]


def test_the_remark_sets_time_beside_flops():
    results = [Measured(name, [rate] * 2) for name, rate in (("full", 100), ("early", 144))]
    said = bench.remark({"num_layers": 4}, results, {})
    assert said.startswith("time 1.44× less, FLOPs 1.60× fewer: 0.90 of")
