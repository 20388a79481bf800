"""Drawing words: the twins agree to the word, and what is drawn follows the distribution."""

from __future__ import annotations

import math

import pytest
import torch
from kernel_parts import needs_gpu

from course_lib.kernels import sampling as kernel
from course_lib.kernels.sampling import PIECE, sample_tokens, sample_tokens_reference

INF = math.inf
# Vocabularies around the length of a run, and BERT's.
SHAPES = [(1, 1), (5, 2), (40, PIECE - 1), (40, PIECE), (40, PIECE + 1), (9, 1_000), (6, 30_522)]
both_twins = pytest.mark.parametrize("draw_words", [sample_tokens_reference, sample_tokens])


def draw(count, words, spread=3.0):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(count, words, generator=generator, dtype=torch.float64) * spread
    return logits, torch.rand(count, generator=generator, dtype=torch.float64)


@pytest.fixture(params=["whole", "tiles"])
def tiles(request, monkeypatch):
    """All rows at once, and in tiles of one row."""
    monkeypatch.setattr(kernel, "TILE_BYTES", 2**30 if request.param == "whole" else 1)


def check_twins(logits, uniforms):
    before = logits.clone()
    drawn = sample_tokens(logits, uniforms)
    assert drawn.dtype == torch.int64 and drawn.shape == logits.shape[:1]
    assert torch.equal(drawn, sample_tokens_reference(logits, uniforms))
    assert torch.equal(logits, before) and not drawn.requires_grad


@pytest.mark.parametrize("shape", [*SHAPES, (0, 9)], ids=str)
def test_twins_agree_exactly(tiles, shape):
    logits, uniforms = draw(*shape)
    check_twins(logits.requires_grad_(), uniforms)


@pytest.mark.parametrize("rows", [1, 3, 7, 8])
def test_the_last_tile_may_be_shorter(monkeypatch, rows):
    monkeypatch.setattr(kernel, "TILE_BYTES", rows * 3 * PIECE * 8)
    check_twins(*draw(8, 300))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("words", [7, 500, 30_522])
def test_narrow_formats_miss_by_rounding_only(tiles, dtype, words):
    """The word drawn in float32 is the one whose piece of the exact line holds the share, to within
    float32's rounding: 2^-24 for each mass, and for each of log2-many sums, far below 1e-5."""
    logits, uniforms = draw(32, words)
    logits, uniforms = logits.to(dtype), uniforms.float()
    drawn = sample_tokens(logits, uniforms)[:, None]
    ends = logits.double().softmax(-1).cumsum(-1)
    end = ends.gather(1, drawn).squeeze(1)
    begin = end - logits.double().softmax(-1).gather(1, drawn).squeeze(1)
    assert ((begin - 1e-5 <= uniforms) & (uniforms <= end + 1e-5)).all()


@both_twins
@pytest.mark.parametrize("add", [-700.0, -95.0, 0.0, 95.0, 700.0])
def test_only_differences_of_logits_count(draw_words, add):
    """exp(±95) leaves float32's range, exp(±700) nearly float64's."""
    logits, uniforms = draw(20, 300)
    expected = sample_tokens_reference(logits, uniforms)
    assert torch.equal(draw_words(logits + add, uniforms), expected)
    assert torch.equal(draw_words((logits + add).float(), uniforms), expected)


def test_rows_of_very_different_height_in_one_tile():
    logits, uniforms = draw(6, 300)
    heights = torch.tensor([-1e4, -100.0, 0.0, 50.0, 100.0, 1e4], dtype=torch.float64)[:, None]
    expected = sample_tokens_reference(logits, uniforms)
    assert torch.equal(sample_tokens(logits + heights, uniforms), expected)


@both_twins
def test_by_hand(draw_words):
    """Pieces end at 1/8, 4/8, 8/8; a share on an end belongs to the next word."""
    logits = torch.tensor([1.0, 3.0, 4.0], dtype=torch.float64).log().expand(6, 3)
    uniforms = torch.tensor([0, 0.12, 0.13, 0.49, 0.51, 1 - 2**-53], dtype=torch.float64)
    assert draw_words(logits, uniforms).tolist() == [0, 0, 1, 1, 2, 2]
    alike = torch.zeros(4, 4)  # four of a quarter: ends are exact
    assert draw_words(alike, torch.tensor([0, 0.25, 0.5, 0.75])).tolist() == [0, 1, 2, 3]
    assert draw_words(torch.tensor([[-4.0]]), torch.tensor([0.9])).tolist() == [0]
    begin = torch.zeros(2, 1_000)
    begin[:, 700:] = -INF  # the last uniform number draws the last possible word
    assert draw_words(begin, torch.tensor([0.0, 1 - 2**-24])).tolist() == [0, 699]
    wanted = torch.tensor([0, 3, 299, 128, 127])
    one_hot = torch.full((5, 300), -1e4).scatter(1, wanted[:, None], 1e4)
    for uniform in (0.0, 0.3, 1 - 2**-24):
        assert torch.equal(draw_words(one_hot, torch.full((5,), uniform)), wanted)


@both_twins
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("words", [5, PIECE, 2 * PIECE + 7])
def test_a_word_that_cannot_be_is_never_drawn(draw_words, dtype, words):
    """Also at the very ends of the line, and also when it is the last of a run or of all."""
    logits, _ = draw(words, words)
    hidden = torch.ones(words, words, dtype=torch.bool)
    keep = torch.arange(words)
    hidden[keep, keep] = False  # row n: word n, and a few in some rows
    hidden[:, words // 2] &= torch.arange(words) % 2 == 0
    logits = logits.masked_fill(hidden, -INF).to(dtype)
    rows = torch.arange(words)
    for uniform in (0.0, 1e-30, 0.5, 1 - 2**-24, 1 - 2**-53):
        uniforms = torch.full((words,), uniform, dtype=torch.float64)
        assert not hidden[rows, draw_words(logits, uniforms)].any()
    largest = torch.full((words,), 1 - 2**-24)  # the last below 1 in float32
    assert not hidden[rows, draw_words(logits, largest)].any()


def test_evenly_spread_uniforms_give_every_word_its_probability():
    """With shares 0, 1/n, 2/n … a word is drawn n·p times, to within one."""
    n = 4_096
    logits, _ = draw(1, 300, spread=1.0)
    drawn = sample_tokens(logits.expand(n, 300), torch.arange(n, dtype=torch.float64) / n)
    seen = torch.bincount(drawn, minlength=300)
    assert (drawn.diff() >= 0).all()
    assert ((seen - n * logits[0].softmax(-1)).abs() <= 1).all()


@both_twins
def test_rows_that_do_not_lie_side_by_side(draw_words):
    logits, uniforms = draw(300, 6)
    assert torch.equal(
        draw_words(logits.T, uniforms[:6]), sample_tokens_reference(logits.T.clone(), uniforms[:6])
    )


ROWS = torch.zeros(2, 3)
HALF = torch.tensor([0.5, 0.5])
OFF = [torch.tensor([0.5, uniform]) for uniform in (-0.1, 1.0, 2.0, math.nan)]
LOST = [torch.tensor([[0.0, 1, 2], row]) for row in ([-INF] * 3, [math.nan, 0, 0], [INF, 0, 0])]


@both_twins
@pytest.mark.parametrize(
    ("logits", "uniforms", "says"),
    [
        (torch.zeros(2, 3, 4), HALF, r"expected \(N, V\)"),
        (ROWS, torch.zeros(3), r"expected \(N, V\)"),
        (ROWS, torch.zeros(2, 1), r"expected \(N, V\)"),
        (torch.zeros(2, 0), HALF, "V at least 1"),
        *((ROWS, off_the_line, "from 0 up to, not including, 1") for off_the_line in OFF),
        *((nothing_to_draw, HALF, "Has training diverged") for nothing_to_draw in LOST),
    ],
)
def test_what_cannot_be_drawn_from_is_refused(draw_words, logits, uniforms, says):
    with pytest.raises(ValueError, match=says):
        draw_words(logits, uniforms)


@needs_gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_twins_agree_on_a_gpu(shape):
    logits, uniforms = draw(*shape)
    drawn = sample_tokens(logits.cuda(), uniforms.cuda())
    assert torch.equal(drawn.cpu(), sample_tokens_reference(logits, uniforms))
