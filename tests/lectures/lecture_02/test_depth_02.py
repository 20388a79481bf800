"""What page and deck say of residual and LayerNorm, against the library's block."""

from __future__ import annotations

import torch

from course_lib.config import published
from course_lib.encoder import Block
from course_lib.lectures.lecture_02.depth import Altered, enlarged, measured
from course_lib.lectures.lecture_02.numbers import GROWN, query_matrix


def test_with_both_it_is_the_librarys_block():
    config = published("bert", "tiny", hidden_dropout=0.0, attention_dropout=0.0)
    torch.manual_seed(0)
    altered, x, mask = Altered(config, True, True), torch.randn(2, 5, 128), torch.ones(2, 5)
    block = Block(config)
    block.load_state_dict(altered.block.state_dict())
    torch.testing.assert_close(altered(x, mask), block(x, mask)[0])


def test_larger_matrices_and_nothing_else():
    torch.manual_seed(0)
    block = Block(published("bert", "tiny"))
    before = {name: weight.clone() for name, weight in block.named_parameters()}
    enlarged(block, 2.0)
    for name, weight in block.named_parameters():
        torch.testing.assert_close(weight, before[name] * (2 if weight.dim() == 2 else 1))


def test_the_residual_keeps_tokens_apart_and_layernorm_sizes_in_bounds():
    initial, grown = measured(1.0), measured(GROWN)
    assert initial["the block"][1] < 0.5 and initial["without residual"][1] > 0.99
    assert initial["without both"][2] < 1e-9 < 1 < initial["without LayerNorm"][2]
    assert grown["without LayerNorm"][0] > 10 and abs(grown["the block"][0] - 1) < 0.1
    assert grown["without LayerNorm"][2] > 100 * grown["the block"][2]


def test_training_makes_the_query_matrices_about_so_much_larger():
    sizes = query_matrix()
    assert abs(sizes["trained"] / sizes["drawn"] - GROWN) < 0.2
