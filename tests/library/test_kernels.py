"""Each fast twin gives what its readable reference gives, in outputs and gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from course_lib.kernels.attention import attention, attention_reference
from course_lib.kernels.masked_loss import masked_loss, masked_loss_reference
from course_lib.kernels.masking import count_to_predict, mask_tokens, mask_tokens_reference

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 2e-2}
SHAPES = [(1, 1, 1, 1), (2, 3, 7, 5), (3, 2, 33, 16)]
LENGTHS = {"none": None, "full": 0, "some": 1, "all": 2}


def draw_qkv(shape, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for _ in range(3)
    ]


def draw_mask(kind, batch, tokens):
    if kind == "none":
        return None
    mask = torch.ones(batch, tokens, dtype=torch.long)
    if kind == "some":
        mask[0, tokens // 2 + 1 :] = 0
    if kind == "all":
        mask[0] = 0
    return mask


@pytest.mark.parametrize("path", ["reference", "plain", "fused"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", LENGTHS)
def test_attention_twins_agree(path, dtype, shape, kind):
    mask = draw_mask(kind, shape[0], shape[2])
    ours, theirs = draw_qkv(shape, dtype), draw_qkv(shape, dtype)
    fast = attention(*ours, mask, path=path)
    # The reference is computed from the same numbers in float64, so only the twin rounds.
    slow, weights, _ = attention_reference(*(x.double() for x in theirs), mask)
    assert weights.sum(-1).allclose(torch.ones_like(weights.sum(-1)))
    bound = TOLERANCE[dtype]
    assert (fast.double() - slow).abs().max() <= bound * max(1, slow.abs().max().item())
    upstream = torch.linspace(-1, 1, fast.numel(), dtype=torch.float64).view_as(slow)
    (fast.double() * upstream).mean().backward()
    (slow * upstream).mean().backward()
    largest = max(x.grad.abs().max().item() for x in theirs)
    # A row without a single real token comes out uniform in both twins; its gradient means nothing.
    first = 1 if kind == "all" else 0
    for a, b in zip(ours, theirs, strict=True):
        if first == len(a):
            continue
        assert (
            a.grad[first:].double() - b.grad[first:].double()
        ).abs().max() <= 2 * bound * largest


@pytest.mark.parametrize("path", ["reference", "plain", "fused"])
def test_fewer_queries_than_keys(path):
    q, k, v = (x.detach() for x in draw_qkv((2, 3, 9, 5), torch.float64))
    mask = draw_mask("some", 2, 9)
    whole = attention_reference(q, k, v, mask)[0]
    assert (attention(q[:, :, 2:4], k, v, mask, path=path) - whole[:, :, 2:4]).abs().max() <= 1e-10


def test_a_hidden_key_gets_no_weight_and_its_value_does_not_matter():
    q, k, v = (x.detach() for x in draw_qkv((1, 2, 6, 4), torch.float32))
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]])
    _, weights, _ = attention_reference(q, k, v, mask)
    assert weights[..., 4:].abs().max() == 0
    poisoned = v.clone()
    poisoned[:, :, 4:] = 1e6
    seen = attention(q, k, v, mask) - attention(q, k, poisoned, mask)
    assert seen.abs().max() <= 1e-6  # in units of the poison: 1e-12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("selected", ["none", "some", "all"])
def test_loss_twins_agree(dtype, selected):
    torch.manual_seed(0)
    hidden = torch.randn(3, 5, 8, dtype=dtype)
    head = torch.nn.Linear(8, 11).to(dtype)
    labels = torch.randint(0, 11, (3, 5))
    if selected == "some":
        labels[torch.rand(3, 5) < 0.6] = -100
    if selected == "none":
        labels[:] = -100
    grads = []
    for loss in (masked_loss, masked_loss_reference):
        x = hidden.clone().requires_grad_()
        value = loss(x, head, labels)
        if selected == "none":  # torch's own mean over nothing is not a number; ours is zero
            assert value == 0
        value.backward()
        grads.append((value.item(), x.grad))
    (a, grad_a), (b, grad_b) = grads
    assert math.isclose(a, b, rel_tol=1e-6)
    assert (grad_a - grad_b).abs().max() <= TOLERANCE[dtype] * grad_b.abs().max()


@pytest.mark.parametrize("rate", [0.0, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (37, 64)], ids=str)
@pytest.mark.parametrize("max_predictions", [None, 3])
def test_masking_twins_agree_exactly(rate, shape, max_predictions):
    generator = np.random.default_rng(1)
    ids = torch.from_numpy(generator.integers(0, 50, shape))
    eligible = torch.from_numpy(generator.random(shape) < 0.8)
    eligible[0] = False  # a row in which nothing may be chosen
    lengths = torch.from_numpy(generator.integers(1, shape[1] + 1, shape[0]))
    settings = dict(
        mask_id=4,
        vocab_size=50,
        rate=rate,
        mix=(0.6, 0.3, 0.1),
        seed=7,
        epoch=3,
        max_predictions=max_predictions,
    )
    examples = torch.arange(100, 100 + shape[0])
    before = ids.clone()
    fast = mask_tokens(ids, eligible, lengths, examples, **settings)
    slow = mask_tokens_reference(ids, eligible, lengths, examples, **settings)
    assert torch.equal(ids, before), "the rows given must not be changed"
    for a, b in zip(fast, slow, strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_count_rule_rounds_halves_to_even_and_is_never_zero():
    assert [count_to_predict(n, 0.15) for n in (1, 3, 9, 10, 30, 128)] == [1, 1, 1, 2, 4, 19]
    assert count_to_predict(50, 0.15) == 8 and count_to_predict(10, 0.25) == 2  # 7.5 and 2.5
    assert count_to_predict(512, 0.15, max_predictions=20) == 20
    assert count_to_predict(50, 0.0) == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("tokens", [5, 128, 513])
def test_attention_on_a_gpu_agrees(tokens):
    q, k, v = (x.detach().cuda() for x in draw_qkv((2, 3, tokens, 16), torch.float32))
    mask = draw_mask("some", 2, tokens).cuda()
    slow = attention_reference(q.double(), k.double(), v.double(), mask)[0]
    assert (attention(q, k, v, mask).double() - slow).abs().max() <= 1e-4
