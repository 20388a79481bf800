"""The distillation loss: by hand, and its chunked twin against the reference, in outputs, gradients
and memory."""

from __future__ import annotations

import math

import pytest
import torch
from kernel_parts import TOLERANCE, compare, every_format, needs_gpu
from torch import nn

from course_lib.bench.traffic import traffic
from course_lib.kernels import distillation as kernel
from course_lib.kernels.distillation import (
    distillation_loss,
    distillation_loss_reference,
    soft_target_loss,
)

# Of student and teacher. bfloat16 rounds to 8 bits, so its scores are off by up to 2^-9 of
# themselves: with scores up to about 10, and T = 0.5, the softmax is off by some hundredths. A
# teacher's scores in bfloat16 may be rounded the other way once divided by T.
F64, F32, BF16 = TOLERANCE
BOUNDS = {
    (F64, F64): 1e-10, (F32, F32): 1e-5, (BF16, BF16): 5e-2, (F32, BF16): 2e-2, (F32, F64): 1e-5,
}  # fmt: skip
SHAPES = [(1, 1, 1, 1), (1, 4, 3, 2), (7, 33, 5, 9), (50, 130, 16, 24)]  # N, V, H, H'
TEMPERATURES = [0.5, 1.0, 2.0, 8.0]
every_temperature = pytest.mark.parametrize("temperature", TEMPERATURES)
both_twins = pytest.mark.parametrize("loss", [distillation_loss, distillation_loss_reference])


def draw(shape, dtype=F64, teacher_dtype=None):
    """The six tensors; those of the student require gradients."""
    count, words, width, teacher_width = shape
    generator = torch.Generator().manual_seed(0)
    drawn = []
    for wide, kind in ((width, dtype), (teacher_width, teacher_dtype or dtype)):
        for size in ((count, wide), (words, wide), (words,)):
            x = torch.randn(size, generator=generator, dtype=F64)
            drawn.append((x * 2 / wide**0.5 if len(size) == 2 and size[0] == words else x).to(kind))
    return [x.requires_grad_() for x in drawn[:3]] + drawn[3:]


def compare_twins(given, temperature=2.0, bound=None):
    return compare(
        lambda *x: distillation_loss(*x, temperature),
        lambda *x: distillation_loss_reference(*x, temperature),
        given,
        bound,
        of_each=True,
    )


@pytest.fixture(params=["one chunk", "chunks that do not come out even"])
def chunks(request, monkeypatch):
    """Both ways; in the second a chunk holds 3 rows of 130 words, a tile 2."""
    if request.param != "one chunk":
        monkeypatch.setattr(kernel, "CHUNK_BYTES", 3 * 130 * 16)
        monkeypatch.setattr(kernel, "TILE_BYTES", 2 * 130 * 8)
    return request.param


# ---- soft_target_loss ----------------------------------------------------------------------------


@every_temperature
def test_against_torchs_kl_and_the_gradients_formula(temperature):
    """T · (softmax(s/T) − softmax(t/T)) / N, and nothing to the teacher."""
    torch.manual_seed(0)
    s, t = ((2 * torch.randn(11, 30, dtype=F64)).requires_grad_() for _ in range(2))
    p, q = ((x.detach() / temperature).softmax(-1) for x in (s, t))
    loss = soft_target_loss(s, t, temperature)
    expected = nn.KLDivLoss(reduction="batchmean")(p.log(), q) * temperature**2
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9)
    loss.backward()
    assert t.grad is None
    assert (s.grad - temperature * (p - q) / 11).abs().max() < 1e-12


def test_number_formats():
    s, t = (torch.randn(4, 9, dtype=torch.float64) for _ in range(2))
    assert soft_target_loss(s, t, 2.0).dtype == torch.float64
    assert soft_target_loss(s, t.float(), 2.0).dtype == torch.float64
    low = s.bfloat16(), t.bfloat16()
    loss = soft_target_loss(*low, 2.0)
    assert loss.dtype == torch.float32  # only the scores given are rounded
    exact = soft_target_loss(*(x.double() for x in low), 2.0)
    assert loss.item() == pytest.approx(exact.item(), rel=1e-5)


def test_a_word_that_the_teacher_rules_out_adds_nothing():
    """A logit, or a bias, of -inf: torch's KL on probabilities."""
    torch.manual_seed(0)
    given = [x.requires_grad_(n < 3) for n, x in enumerate(draw((2, 7, 4, 4)))]
    given[5][3] = -math.inf
    s, t = (nn.functional.linear(*part) for part in (given[:3], given[3:]))
    expected = nn.KLDivLoss(reduction="batchmean")(s.log_softmax(-1), t.softmax(-1))
    found = soft_target_loss(s, t), distillation_loss(*given), distillation_loss_reference(*given)
    gradients = [torch.autograd.grad(x, given[:3], retain_graph=True) for x in (expected, *found)]
    for loss, parts in zip(found, gradients[1:], strict=True):
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        torch.testing.assert_close(parts, gradients[0])


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("loss", [soft_target_loss, distillation_loss, distillation_loss_reference])
def test_a_temperature_that_is_none(loss, temperature):
    given = draw((2, 3, 4, 4)) if loss is not soft_target_loss else torch.zeros(2, 2, 3)
    with pytest.raises(ValueError, match="expected a finite number above 0"):
        loss(*given, temperature)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 4)), ((2, 3), (1, 3)), ((1, 2, 3), (1, 2, 3))])
def test_scores_that_cannot_be_compared(shapes):
    with pytest.raises(ValueError, match=r"expected \(N, V\) both"):
        soft_target_loss(*(torch.zeros(s) for s in shapes))


# ---- the twins -----------------------------------------------------------------------------------


@every_temperature
@pytest.mark.parametrize("formats", BOUNDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_twins_agree(chunks, shape, formats, temperature):
    found = compare_twins(draw(shape, *formats), temperature, BOUNDS[formats])
    assert found.dtype == (F64 if F64 in formats else F32)


@every_format
@both_twins
def test_no_positions_cost_nothing(loss, dtype):
    given = draw((0, 5, 3, 2), dtype)
    value = loss(*given, 2.0)
    value.backward()
    assert value.item() == 0
    assert all(x.grad.shape == x.shape and not x.grad.any() for x in given[:3])


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2), (), range(6), (3, 4, 5)], ids=str)
def test_gradients_only_where_they_are_wanted_and_never_to_the_teacher(chunks, wanted):
    given = [x.detach().requires_grad_(n in wanted) for n, x in enumerate(draw((7, 130, 5, 9)))]
    compare_twins(given)
    assert [n for n, x in enumerate(given) if x.grad is not None] == [n for n in wanted if n < 3]


def test_a_second_backward_pass_gives_the_same_again():
    given = draw((7, 33, 5, 9))
    loss = distillation_loss(*given, 2.0)
    first = torch.autograd.grad(loss, given[:3], retain_graph=True)
    loss.backward(retain_graph=True)
    given[1].grad.zero_()  # what was handed out is not what is kept
    second = torch.autograd.grad(3 * loss, given[:3])
    for a, b in zip(first, second, strict=True):
        assert torch.allclose(3 * a, b, rtol=1e-12)


def test_gradients_add_up_with_those_of_another_use_of_the_table():
    """The table is also the embedding table: its gradients come from both ends."""
    totals = []
    for loss in (distillation_loss, distillation_loss_reference):
        hidden, table, bias, *teacher = draw((7, 33, 5, 9))
        (loss(hidden, table, bias, *teacher, 2.0) + table[3].square().sum()).backward()
        totals.append(table.grad)
    assert (totals[0] - totals[1]).abs().max() <= 1e-10


def test_no_more_than_a_chunk_is_ever_held(monkeypatch):
    N, V, rows = 60, 50, 8  # 60 positions in 8 chunks, of 8 rows at most
    monkeypatch.setattr(kernel, "CHUNK_BYTES", rows * V * 16)
    given = draw((N, V, 2, 2))
    for loss, most in ((distillation_loss, rows), (distillation_loss_reference, N)):
        moved = traffic(lambda loss=loss: loss(*given, 2.0).backward())
        assert max(op.written for op in moved) == most * V * 8


@pytest.mark.parametrize(("learning", "products"), [(True, 4), (False, 2)])
def test_without_learning_there_are_only_the_products_of_the_forward_pass(learning, products):
    given = draw((7, 33, 5, 9))
    with torch.set_grad_enabled(learning):
        assert distillation_loss(*given, 2.0).requires_grad == learning
        moved = traffic(lambda: distillation_loss(*given, 2.0))
    assert sum(op.flops > 0 for op in moved) == products


def test_gradients_of_gradients_are_refused():
    given = draw((3, 5, 4, 4))
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    loss = weight * distillation_loss(*given, 2.0)
    (grad,) = torch.autograd.grad(loss, given[:1], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize(
    ("change", "dtype", "says"),
    [
        ({0: (7, 4)}, F64, r"student_hidden.*expected \(N, H\), \(V, H\) and \(V,\)"),
        ({5: (32,)}, F64, r"teacher_hidden.*expected \(N, H\), \(V, H\) and \(V,\)"),
        ({0: (1, 7, 5)}, F64, r"expected \(N, H\), \(V, H\) and \(V,\)"),
        ({3: (6, 9)}, F64, "the same positions and the same vocabulary"),
        ({4: (32, 9), 5: (32,)}, F64, "the same positions and the same vocabulary"),
        ({0: (7, 5)}, F32, "expected one number format"),
    ],
)
@both_twins
def test_what_does_not_fit_is_refused(loss, change, dtype, says):
    given = draw((7, 33, 5, 9))
    for n, shape in change.items():
        given[n] = torch.zeros(shape, dtype=dtype)
    with pytest.raises(ValueError, match=says):
        loss(*given, 2.0)


@needs_gpu
def test_twins_agree_on_a_gpu(chunks):
    on_gpu = (x.detach().cuda().requires_grad_(x.requires_grad) for x in draw(SHAPES[-1]))
    compare_twins(list(on_gpu))
