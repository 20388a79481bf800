"""Solutions of lecture 16 beside the library; numbers by hand that must be true."""

from __future__ import annotations

from itertools import accumulate

import pytest
import torch

from course_lib.config import published
from course_lib.encoder import count_parameters
from course_lib.family.modernbert import (
    GatedFeedForward,
    ModernBertConfig,
    modernbert,
    modernbert_for_masked_lm,
)
from course_lib.kernels.rotary import rotary
from course_lib.kernels.sliding_window import window_mask
from course_lib.kernels.unpadding import Packing
from course_lib.lectures.lecture_16.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_16.exercises import count, flops, geglu, rope, unpad, window
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import alike

EXERCISES = {exercise.id: exercise for exercise in ALL}
SMALL = ModernBertConfig(hidden_size=8, intermediate_size=12, num_heads=2, num_layers=4,
                         vocab_size=20, pad_token_id=0)  # fmt: skip


def texts_of(id: str) -> str:
    return EXERCISES[id].statement + " ".join(EXERCISES[id].hints)


def in_words(row: torch.Tensor) -> str:
    """(0.54, −0.84), and whole numbers without decimals."""
    return (
        "("
        + ", ".join(f"{x:.2f}".removesuffix(".00") for x in row.tolist()).replace("-", "−")
        + ")"
    )


@pytest.mark.parametrize("base", [10_000.0, 160_000.0])
def test_queries_and_keys_are_turned_as_in_the_library(base):
    query, key = Draw(0).normal(2, 7, 3, 8), Draw(1).normal(2, 7, 3, 8)
    theirs = rotary(query, key, base, 7)
    ours = rope.rotated(query, key, base)
    assert all(alike(a, b, 1e-5) for a, b in zip(ours, theirs, strict=True))


def test_the_turns_by_hand():
    query, _ = rope.rotated(*rope.by_hand(Draw(0))[0])
    one, two, three = (in_words(row) for row in query[0, :, 0])
    assert f"It becomes {one}, {two} and {three}." in texts_of("16.1")
    unit = torch.tensor([0.0, 1, 0, 0]).expand(1, 2, 1, 4)
    turned = rope.turned(unit, 100.0)[0, 1, 0]
    assert torch.atan2(turned[3], turned[1]).item() == pytest.approx(0.1)
    assert "the second pair rotates by 100^(−1/2) = 0.1 per position" in texts_of("16.1")


def test_products_depend_on_the_distance_alone():
    """The last hint of 16.1, with vectors that are the same at all positions."""
    query, key = (Draw(n).normal(1, 1, 1, 8).expand(1, 9, 1, 8) for n in (2, 3))
    q, k = (x[0, :, 0] for x in rope.rotated(query, key, 100.0))
    products = q @ k.T
    assert alike(products[0, 3], products[2, 5], 1e-5)
    assert not alike(products[0, 3], products[3, 0], 1e-2)
    assert "(0, 3) and (2, 5)" in texts_of("16.1")


def test_the_gate_is_the_librarys():
    layer, x = GatedFeedForward(SMALL).double(), Draw(4).normal(2, 3, 8)
    with torch.no_grad():
        for bias in (layer.expand.bias, layer.contract.bias):
            bias.zero_()
        output, _ = geglu.geglu(x, layer.expand.weight, layer.contract.weight, 3)
        assert alike(output, layer(x))


def test_the_gate_by_hand():
    output, width = geglu.geglu(*geglu.by_hand(Draw(0))[0])
    gelu = torch.nn.functional.gelu(torch.tensor(2.0))
    assert f"With GELU(2) = {gelu:.4f} the output is {output.item():.4f}." in texts_of("16.2")
    plain = published("bert", "base").intermediate_size
    assert f"inner width of {plain:,} the gated part may be {width:,} wide" in texts_of("16.2")
    assert 3 * width <= 2 * plain < 3 * (width + 1)


@pytest.mark.parametrize("size", [1, 2, 5, 6, 40])
def test_the_window_is_the_librarys(size):
    for stage in window.WINDOW.stages:
        for mask, _ in stage.cases(Draw(5)):
            assert torch.equal(window.local_mask(mask, size), window_mask(mask, size, mask))


def test_the_window_by_hand():
    rows = window.local_mask(torch.tensor([[1, 1, 1, 0]]), 2)[0].int().tolist()
    *first, last = ("".join(map(str, row)) for row in rows)
    assert f"The rows are {', '.join(first)} and {last}." in texts_of("16.3")


def test_the_list_holds_what_the_librarys_list_holds():
    for stage in unpad.UNPAD.stages:
        for x, mask, layer in stage.cases(Draw(6)):
            tokens, begins, back = unpad.without_padding(x, mask, layer)
            packing = Packing(mask)
            assert sorted(tokens.tolist()) == sorted(packing.unpad(x).tolist())
            lengths = [length for rows, length in packing.groups for _ in range(rows)]
            ours = [n for n in begins.diff().tolist() if n]
            assert sorted(ours) == lengths
            # By the library: its list is in order of length.
            theirs = packing.pad(layer(packing.unpad(x), torch.tensor([0, *accumulate(lengths)])))
            assert alike(back, theirs)


def test_the_list_by_hand():
    x, mask, layer = unpad.by_hand(Draw(0))[0]
    tokens, begins, back = unpad.without_padding(x, mask, layer)
    listed, borders = (", ".join(f"{n:g}" for n in y.flatten().tolist()) for y in (tokens, begins))
    assert f"The list is {listed}, the cumulative lengths are {borders}." in texts_of("16.4")
    made = [
        ", ".join(f"{n:g}" for n in y.flatten().tolist()) for y in (layer(tokens, begins), *back)
    ]
    assert "gives {}; put back that is ({}) and ({})".format(*made) in texts_of("16.4")


@pytest.mark.parametrize(("layers", "every", "size"), [(22, 3, 128), (7, 3, 5), (9, 4, 8)])
def test_pairs_and_lengths_are_those_of_the_masks(layers, every, size):
    config = ModernBertConfig(global_every=every, num_layers=layers)
    whole = sum(config.is_global(layer) for layer in range(layers))

    def counted(tokens):
        local = int(window_mask(torch.zeros(1, tokens), size).sum())
        return whole * tokens**2 + (layers - whole) * local

    for tokens in (1, 3, 40):
        count, length = flops.cost(tokens, 6, layers, every, size)
        assert count == 4 * 6 * counted(tokens)
    assert length and 2 * counted(length) <= layers * length**2
    assert 2 * counted(length - 1) > layers * (length - 1) ** 2


def test_the_cost_by_hand():
    count, length = flops.cost(*flops.by_hand(Draw(0))[0])
    assert (count, length) == (96, 4)
    assert "24 pairs, 96 FLOPs" in texts_of("16.5") and "So the length is 4." in texts_of("16.5")


def test_the_sizes_that_are_asked_are_modernberts():
    for size, ours in (("base", flops.BASE), ("large", flops.LARGE)):
        c = published("modernbert", size, ModernBertConfig)
        assert ours == (c.hidden_size, c.num_layers, c.global_every, c.window)
    assert "from 568 tokens on, the large one's from 547" in flops.message()


@pytest.mark.parametrize("size", ["base", "large"])
def test_parameters_are_the_librarys(size):
    with torch.device("meta"):
        encoder = count_parameters(modernbert(size))
        whole = count_parameters(modernbert_for_masked_lm(size))
    c = published("modernbert", size, ModernBertConfig)
    ours = count.parameters(c.vocab_size, c.hidden_size, c.num_layers, c.intermediate_size)
    assert ours == (encoder, whole - encoder)
    assert f"{encoder:,}" in texts_of("16.6")


def test_the_count_by_hand():
    encoder, head = count.parameters(10, 4, 1, 3)
    assert f"together {encoder}. The head adds {head}." in texts_of("16.6")
