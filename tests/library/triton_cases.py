"""Disentangled attention in Triton against the readable reference, on any machine with Triton.

Without a GPU the kernels run in Triton's interpreter, which must be chosen before Triton is first
imported: test_kernel_disentangled_triton.py runs this file in a process of its own then, and here
otherwise."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from course_lib.bench.measuring import peak_bytes
from course_lib.kernels import disentangled_triton as kernel
from course_lib.kernels.disentangled import disentangled_attention_reference
from course_lib.kernels.disentangled_triton import disentangled_attention_triton
from course_lib.kernels.positions import position_rows

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# float32: the course's bound for equal twins (sums of up to T numbers, a few units of 2^-24 each).
# 16 bits: scores, weights and gradients are each rounded once, so a few units of the format.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 8 * 2**-11, torch.bfloat16: 8 * 2**-8}
NAMES = ("query", "key", "value", "position_key", "position_query")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 16 tokens, the least Triton multiplies, so that short texts fill several."""
    set_blocks(monkeypatch, 16, 16)


def set_blocks(monkeypatch, own, met):
    one = own, met, 4, 1
    monkeypatch.setattr(kernel, "BLOCKS", {which: (one, one) for which in kernel.BLOCKS})


def draw(batch, heads, tokens, size, table_rows, terms="both", dtype=torch.float32, seed=0):
    """The five inputs and a gradient of the output, drawn on the CPU."""
    generator = torch.Generator().manual_seed(seed)

    def one(*shape):
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return drawn.to(DEVICE, dtype)

    vectors = [one(batch, heads, tokens, size) for _ in range(4)]
    tables = [one(heads, table_rows, size) for _ in range(2)]
    tables[0] = tables[0] if terms in ("both", "c2p") else None
    tables[1] = tables[1] if terms in ("both", "p2c") else None
    return [*vectors[:3], *tables], vectors[3]


def outputs_and_gradients(attention, inputs, upstream, *rest):
    leaves = [None if x is None else x.detach().clone().requires_grad_() for x in inputs]
    mixed = attention(*leaves, *rest)
    mixed.backward(upstream)
    return mixed.detach(), [None if x is None else x.grad for x in leaves]


def reference(*given):
    return disentangled_attention_reference(*given)[0]


def compare(inputs, upstream, rows, mask=None):
    """Outputs within the tolerance of their largest, gradients of the largest of all five."""
    rows = rows.to(DEVICE)
    mask = None if mask is None else mask.to(DEVICE)
    ours, gradients = outputs_and_gradients(
        disentangled_attention_triton, inputs, upstream, rows, mask
    )
    exact = [None if x is None else x.double() for x in inputs]
    expected, exact_gradients = outputs_and_gradients(
        reference, exact, upstream.double(), rows, mask
    )
    tolerance = TOLERANCE[ours.dtype]
    assert ours.dtype == inputs[0].dtype
    assert (ours - expected).abs().max() <= tolerance * expected.abs().max()
    largest = max(x.abs().max() for x in exact_gradients if x is not None)
    for name, found, wanted in zip(NAMES, gradients, exact_gradients, strict=True):
        if wanted is None:
            assert found is None
            continue
        assert found.dtype == inputs[0].dtype and found.shape == wanted.shape
        assert (found - wanted).abs().max() <= tolerance * largest, name


def check_same_bits(inputs, upstream, rows, times=1):
    given = disentangled_attention_triton, inputs, upstream, rows
    mixed, gradients = outputs_and_gradients(*given)
    for _ in range(times):
        again, gradients_again = outputs_and_gradients(*given)
        assert torch.equal(mixed, again)
        assert all(torch.equal(a, b) for a, b in zip(gradients, gradients_again, strict=True))


# Tokens, span, furthest: one token; a table longer than the text; one cut at both ends; buckets
# that widen; nearly all distances beyond the ends; two rows in all.
LENGTHS = [
    (1, 2, None), (5, 40, None), (17, 4, None), (33, 8, None), (49, 8, 20), (40, 2, None),
    (33, 1, None), (33, 20, 25),
]  # fmt: skip
# The interpreter multiplies the bits of bfloat16 as if they were whole numbers.
SHORT_FORMATS = [torch.float16] + ([torch.bfloat16] if DEVICE == "cuda" else [])
CASES = [  # batch, heads, tokens, head size; span, furthest; what else is special
    # One text of one head: several of both are in the rows below, and in test_hidden_keys.
    *(((1, 1, tokens, 16), span, furthest, {}) for tokens, span, furthest in LENGTHS),
    ((2, 2, 17, 16), 4, None, {}),
    *(((1, 1, 33, 16), 4, None, {"terms": terms}) for terms in ("c2p", "p2c", "none")),
    *(((1, 1, 33, 16), 4, None, {"dtype": dtype}) for dtype in SHORT_FORMATS),
    *(((1, 1, 19, size), 4, None, {}) for size in kernel.HEAD_SIZES),
]


@pytest.mark.parametrize("shape, span, furthest, more", CASES, ids=str)
def test_outputs_and_all_five_gradients(shape, span, furthest, more):
    inputs, upstream = draw(*shape, 2 * span, **more, seed=shape[2])
    compare(inputs, upstream, position_rows(shape[2], span, furthest))


@pytest.mark.parametrize("blocks", [(32, 16), (16, 32)], ids=str)
def test_blocks_that_differ(monkeypatch, blocks):
    set_blocks(monkeypatch, *blocks)
    inputs, upstream = draw(1, 1, 70, 16, 16)
    compare(inputs, upstream, position_rows(70, 8, 20))


@pytest.mark.parametrize("hidden", ["end", "beginning", "scattered", "all of one text"])
def test_hidden_keys(hidden):
    mask = torch.ones(2, 33, dtype=torch.long)
    if hidden == "end":
        mask[0, 20:] = mask[1, 1:] = 0
    elif hidden == "beginning":  # the first two blocks have no key to show
        mask[0, :32] = 0
    elif hidden == "scattered":
        mask[:, ::2] = 0
    else:
        mask[1] = 0
    inputs, upstream = draw(2, 1, 33, 16, 8)
    compare(inputs, upstream, position_rows(33, 4), mask)


def test_rows_of_the_table_that_no_distance_has_get_no_gradient():
    inputs, upstream = draw(1, 1, 5, 16, 80)
    _, gradients = outputs_and_gradients(
        disentangled_attention_triton, inputs, upstream, position_rows(5, 40)
    )
    for gradient in gradients[3:]:
        assert gradient.abs().sum((0, 2)).nonzero().flatten().tolist() == list(range(36, 45))


def test_heads_as_the_encoder_cuts_them():
    """Views with the head axis moved, and a gradient that is one number expanded."""
    inputs, upstream = draw(2, 2, 17, 16, 8)
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs[:3]]
    assert not turned[0].is_contiguous()
    one_number = upstream[:1, :1, :1, :1].expand_as(upstream)
    compare([*turned, *inputs[3:]], one_number, position_rows(17, 4))


def weights_kept(dropout):
    """(64, 64) of one text: 0 where the kernel's dropout hits a weight, 1 / (1 − dropout)
    elsewhere. Alike scores give alike weights, and values of 0 and 1 show them."""
    alike, eye = torch.zeros(1, 1, 64, 64, device=DEVICE), torch.eye(64, device=DEVICE)
    given = alike, alike, eye[None, None], None, None, position_rows(64, 8)
    return 64 * disentangled_attention_triton(*given, dropout=dropout)[0, 0]


def test_dropout_hits_as_many_as_it_says_and_follows_the_seed():
    torch.manual_seed(0)
    kept, other = weights_kept(0.25), weights_kept(0.25)
    assert not torch.equal(kept, other)
    torch.manual_seed(0)
    assert torch.equal(kept, weights_kept(0.25))
    share = (kept == 0).double().mean()
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / 64**2) ** 0.5  # five standard deviations
    assert torch.allclose(kept[kept > 0], torch.tensor(4 / 3, device=DEVICE))


@pytest.mark.parametrize("hidden", [False, True], ids=["all shown", "some hidden"])
def test_outputs_and_gradients_with_dropout(monkeypatch, hidden):
    """Against the reference's weights, hit where the kernel says that it hits them."""
    set_blocks(monkeypatch, 32, 16)
    inputs, upstream = draw(1, 1, 64, 64, 16)
    rows = position_rows(64, 8, 20)
    mask = (torch.arange(64) < (50 if hidden else 64)).long()[None].to(DEVICE)

    def ours(*given):
        torch.manual_seed(1)
        return disentangled_attention_triton(*given, dropout=0.25)

    torch.manual_seed(1)
    kept = weights_kept(0.25).double()

    def expected(*given):
        _, weights, _ = disentangled_attention_reference(*given)
        return (weights * kept) @ given[2]

    found = outputs_and_gradients(ours, inputs, upstream, rows, mask)
    exact = [x.double() for x in inputs]
    wanted = outputs_and_gradients(expected, exact, upstream.double(), rows.to(DEVICE), mask)
    largest = max(x.abs().max() for x in wanted[1])
    assert (found[0] - wanted[0]).abs().max() <= 1e-5 * wanted[0].abs().max()
    for name, a, b in zip(NAMES, found[1], wanted[1], strict=True):
        assert (a - b).abs().max() <= 1e-5 * largest, name


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_a_dropout_that_is_none_is_refused(dropout):
    inputs, _ = draw(1, 1, 5, 16, 8)
    with pytest.raises(ValueError, match=f"dropout={dropout} was given; expected a number from 0"):
        disentangled_attention_triton(*inputs, position_rows(5, 4), dropout=dropout)


def test_the_same_bits_twice():
    inputs, upstream = draw(1, 2, 33, 16, 8)
    check_same_bits(inputs, upstream, position_rows(33, 2))


def test_memory_grows_with_the_length_not_with_its_square(monkeypatch):
    """With a band of 16 distances: a table of pairs would take four times as much at twice the
    length, and 256 · 256 numbers alone."""
    set_blocks(monkeypatch, 64, 64)
    peaks = []
    for tokens in (128, 256):
        given = *draw(1, 1, tokens, 16, 8), position_rows(tokens, 4)
        step = partial(outputs_and_gradients, disentangled_attention_triton, *given)
        peaks.append(peak_bytes(step))
    assert peaks[1] < 2.2 * peaks[0]
    assert peaks[1] < 256 * 256 * 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"query": torch.zeros(1, 2, 5, 24)}, "query of shape (1, 2, 5, 24)"),
        ({"key": torch.zeros(1, 2, 6, 16)}, "key of shape (1, 2, 6, 16)"),
        ({"position_query": torch.zeros(2, 8, 32)}, "expects (2, 8, 16)"),
        ({"position_key": torch.zeros(8, 16)}, "position_key of shape (8, 16)"),
        ({"rows": torch.arange(8)}, "expects (9,)"),
        ({"mask": torch.ones(2, 5)}, "expects (1, 5)"),
        ({"value": torch.zeros(1, 2, 5, 16).double()}, "torch.float32, torch.float64"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_does_not_fit_is_named(change, says):
    inputs, _ = draw(1, 2, 5, 16, 8)
    given = dict(zip(NAMES, inputs, strict=True), rows=position_rows(5, 4)) | change
    with pytest.raises(ValueError) as raised:
        disentangled_attention_triton(**given)
    assert says in str(raised.value)


def test_gradients_of_gradients_are_refused():
    inputs, upstream = draw(1, 1, 5, 16, 8)
    leaves = [x.requires_grad_() for x in inputs]
    mixed = disentangled_attention_triton(*leaves, position_rows(5, 4))
    (gradient,) = torch.autograd.grad(
        mixed, leaves[:1], upstream.requires_grad_(), create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_keys_after_a_texts_last_real_one_are_not_visited():
    """Where they would be, what is no number there would spoil the sums."""
    inputs, upstream = draw(2, 1, 70, 16, 16)
    rows = position_rows(70, 8, 20).to(DEVICE)
    mask = torch.ones(2, 70, dtype=torch.long, device=DEVICE)
    mask[0, 20:] = 0  # two tiles of 16
    mask[0, 7] = 0
    expected = outputs_and_gradients(disentangled_attention_triton, inputs, upstream, rows, mask)
    inputs[2][0, :, 32:] = torch.nan
    found = outputs_and_gradients(disentangled_attention_triton, inputs, upstream, rows, mask)
    assert torch.equal(found[0], expected[0])
    for name, ours, theirs in zip(NAMES, found[1], expected[1], strict=True):
        assert torch.equal(ours, theirs), name
