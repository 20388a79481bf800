"""Each fast twin gives what its readable reference gives, in outputs and gradients."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from kernel_parts import compare, draw, draw_mask, every_format, every_mask, needs_gpu

from course_lib.kernels.attention import attention, attention_reference
from course_lib.kernels.masked_loss import masked_loss, masked_loss_reference
from course_lib.kernels.masking import count_to_predict, mask_tokens, mask_tokens_reference

every_path = pytest.mark.parametrize("path", ["reference", "plain", "fused"])


@every_path
@every_format
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 7, 5), (3, 2, 33, 16)], ids=str)
@every_mask
def test_attention_twins_agree(path, dtype, shape, kind):
    mask = draw_mask(kind, shape[0], shape[2])

    def reference(*given):
        output, weights, _ = attention_reference(*given, mask)
        assert weights.sum(-1).allclose(torch.ones_like(weights.sum(-1)))
        return output

    # A row without a single real token comes out uniform in both twins; its gradient means nothing.
    rows = slice(1 if kind == "a row without real tokens" else 0, None)
    qkv = draw(*[shape] * 3, dtype=dtype)
    compare(lambda *given: attention(*given, mask, path=path), reference, qkv, rows=rows)


@every_path
def test_fewer_queries_than_keys(path):
    q, k, v = (x.detach() for x in draw(*[(2, 3, 9, 5)] * 3))
    mask = draw_mask("padding", 2, 9)
    whole = attention_reference(q, k, v, mask)[0]
    assert (attention(q[:, :, 2:4], k, v, mask, path=path) - whole[:, :, 2:4]).abs().max() <= 1e-10


def test_a_hidden_key_gets_no_weight_and_its_value_does_not_matter():
    q, k, v = (x.detach() for x in draw(*[(1, 2, 6, 4)] * 3, dtype=torch.float32))
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]])
    assert attention_reference(q, k, v, mask)[1][..., 4:].abs().max() == 0
    poisoned = v.clone()
    poisoned[:, :, 4:] = 1e6
    seen = attention(q, k, v, mask) - attention(q, k, poisoned, mask)
    assert seen.abs().max() <= 1e-6  # in units of the poison: 1e-12


@needs_gpu
@pytest.mark.parametrize("tokens", [5, 128, 513])
def test_attention_on_a_gpu_agrees(tokens):
    q, k, v = (x.detach().cuda() for x in draw(*[(2, 3, tokens, 16)] * 3, dtype=torch.float32))
    mask = draw_mask("padding", 2, tokens).cuda()
    slow = attention_reference(q.double(), k.double(), v.double(), mask)[0]
    assert (attention(q, k, v, mask).double() - slow).abs().max() <= 1e-4


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-10), (torch.float32, 1e-6)])
@pytest.mark.parametrize("selected", [0.0, 0.4, 1.0])
def test_loss_twins_agree(dtype, bound, selected):
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 11)
    labels = torch.randint(0, 11, (3, 5)).masked_fill(torch.rand(3, 5) >= selected, -100)

    def of_hidden(loss):
        return lambda hidden: loss(hidden, deepcopy(head).to(hidden.dtype), labels)

    twins = of_hidden(masked_loss), of_hidden(masked_loss_reference)
    found = compare(*twins, draw((3, 5, 8), dtype=dtype), bound, of_each=True)
    # torch's own mean over nothing is not a number; ours is zero
    assert (found == 0) == (selected == 0)


@pytest.mark.parametrize("rate", [0.0, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (37, 64)], ids=str)
@pytest.mark.parametrize("max_predictions", [None, 3])
def test_masking_twins_agree_exactly(rate, shape, max_predictions):
    generator = np.random.default_rng(1)
    ids = torch.from_numpy(generator.integers(0, 50, shape))
    eligible = torch.from_numpy(generator.random(shape) < 0.8)
    eligible[0] = False  # a row in which nothing may be chosen
    lengths = torch.from_numpy(generator.integers(1, shape[1] + 1, shape[0]))
    settings = {"mask_id": 4, "vocab_size": 50, "mix": (0.6, 0.3, 0.1), "seed": 7, "epoch": 3}
    settings |= {"rate": rate, "max_predictions": max_predictions}
    given = ids, eligible, lengths, torch.arange(100, 100 + shape[0])
    before = ids.clone()
    fast, slow = (twin(*given, **settings) for twin in (mask_tokens, mask_tokens_reference))
    assert torch.equal(ids, before), "the rows given must not be changed"
    for a, b in zip(fast, slow, strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_count_rule_rounds_halves_to_even_and_is_never_zero():
    assert [count_to_predict(n, 0.15) for n in (1, 3, 9, 10, 30, 128)] == [1, 1, 1, 2, 4, 19]
    assert count_to_predict(50, 0.15) == 8 and count_to_predict(10, 0.25) == 2  # 7.5 and 2.5
    assert count_to_predict(512, 0.15, max_predictions=20) == 20
    assert count_to_predict(50, 0.0) == 0
