"""The solutions of lecture 05's exercises beside the library, and the hints beside the truth."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.config import encoder_flops, published
from course_lib.encoder import count_parameters
from course_lib.family.albert import SHARING, AlbertConfig, albert_encoder, sharing_plan
from course_lib.lectures.lecture_05.exercises import count, flops, layers, ngrams
from course_lib.teaching.exercises import exercise


@pytest.mark.parametrize("sharing", SHARING)
def test_the_count_is_the_models(sharing: str) -> None:
    config = AlbertConfig(
        vocab_size=97, hidden_size=24, num_layers=4, num_heads=3, intermediate_size=50,
        max_positions=31, embedding_size=10, sharing=sharing,
    )  # fmt: skip
    built = count_parameters(albert_encoder(config))
    assert count.albert_parameters(97, 31, 10, 24, 50, 4, sharing) == built


@pytest.mark.parametrize("size", ["base", "large", "xlarge", "xxlarge"])
def test_the_count_is_that_of_the_published_sizes(size: str) -> None:
    c = published("albert", size, AlbertConfig)
    with torch.device("meta"):
        built = count_parameters(albert_encoder(c))
    sizes = (c.vocab_size, c.max_positions, c.embedding_size, c.hidden_size, c.intermediate_size)
    assert count.albert_parameters(*sizes, c.num_layers, "all") == built


@pytest.mark.parametrize("id", ["05.3", "05.6"])
def test_the_hint_with_numbers_counts_right(id: str) -> None:
    (hint,) = [h for h in exercise(id).hints if h.startswith("With ")]
    if id == "05.3":
        assert hint.endswith(f" {count.albert_parameters(10, 6, 3, 4, 8, 2, 'attention')}.")
        assert f": {count.albert_parameters(10, 6, 3, 4, 8, 2, 'all')}." in hint
    else:
        assert hint.endswith(f" {flops.stack_flops(2, 3, 4, 1, 'all')}.")


def test_groups_are_those_of_the_family_file() -> None:
    make_block = layers.Maker(torch.zeros(12, 2, 2))
    layers.shared_layers(torch.zeros(1, 1, 2), make_block, 12, 3)
    assert make_block.visits == [a for a, _ in sharing_plan(AlbertConfig(num_groups=3))]


@pytest.mark.parametrize("sharing", SHARING)
def test_the_operations_are_those_a_model_does(sharing: str) -> None:
    config = AlbertConfig(
        vocab_size=50, hidden_size=24, num_layers=4, num_heads=3, intermediate_size=40,
        max_positions=16, embedding_size=8, sharing=sharing,
    )  # fmt: skip
    model, tokens = albert_encoder(config, pooler=False).eval(), 7
    with FlopCounterMode(display=False) as counter:
        model(torch.ones(1, tokens, dtype=torch.long), output_attentions=True)
    projection = 2 * tokens * 8 * 24
    ours = flops.stack_flops(tokens, 24, 40, 4, sharing)
    assert counter.get_total_flops() - projection == ours == encoder_flops(config, tokens)


def test_the_lengths_have_their_chances() -> None:
    u = (torch.arange(66_000, dtype=torch.float64) + 0.5) / 66_000
    shares = torch.bincount(ngrams.ngram_lengths(u, 3))[1:] / len(u)
    assert torch.allclose(shares, torch.tensor([6.0, 3.0, 2.0]) / 11, atol=1e-4)
