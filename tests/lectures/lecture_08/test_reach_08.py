"""Beyond the table: T5's buckets against transformers', what far words change, what positions
cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from course_lib.config import encoder_flops, published
from course_lib.family.deberta import DebertaConfig, deberta
from course_lib.kernels.positions import position_rows
from course_lib.lectures.lecture_08 import reach_and_cost as reach
from course_lib.lectures.lecture_08.views import bias_maps, position_bias, t5_bucket
from course_lib.train.flops import step_flops


@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (16, 64), (4, 5)])
def test_t5s_buckets_are_transformers(buckets: int, furthest: int):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket
    d = torch.arange(-300, 301)
    expected = theirs(-d, num_buckets=buckets, max_distance=furthest)  # they count j − i
    assert [t5_bucket(one, buckets, furthest) for one in d.tolist()] == expected.tolist()


def test_t5s_bias_is_one_number_a_diagonal_and_head_for_every_text():
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(d_model=8, d_kv=4, num_heads=3)
    attention = transformers.models.t5.modeling_t5.T5Attention(config, True, layer_idx=0)
    bias = attention.compute_bias(9, 9)[0]  # (A, T, T): without any text
    table = attention.relative_attention_bias.weight  # (32, A)
    assert table.shape == (32, 3)
    for i in range(9):
        for j in range(9):
            assert torch.equal(bias[:, i, j], table[t5_bucket(i - j)])


def test_buckets_that_do_not_fit_say_so():
    for sizes in ((3, 128), (32, 8)):
        with pytest.raises(ValueError, match="such as 32 and 128"):
            t5_bucket(1, *sizes)


def test_the_maps_are_the_products_pair_by_pair():
    by_content, by_distance = position_bias.position_maps()
    for i in range(4):
        for j in range(4):
            row = min(max(i - j + 2, 0), 3)
            key, position_query = (
                torch.tensor(table[row]).float()
                for table in (position_bias.TOY_POSITION_KEY, position_bias.TOY_POSITION_QUERY)
            )
            assert by_content[i, j] == torch.tensor(position_bias.TOY_QUERY[i]).float() @ key
            assert by_distance[i, j] == position_query @ key
    for offset in range(-3, 4):
        assert len(by_distance.diagonal(offset).unique()) == 1
    assert any(len(by_content.diagonal(offset).unique()) > 1 for offset in range(-3, 4))
    view = bias_maps()
    assert "4  4  0  1" in view.text and "a diagonal holds one number" in view.html


def test_one_block_reads_far_words_but_not_their_order():
    for blocks in (1, 2):
        word, order = reach.far_changes(blocks)
        assert word > 1e-3 and (order > 1e-6) == (blocks > 1)
    assert min(reach.EXCHANGED) > 2 * reach.SPAN  # beyond two blocks' times k


@pytest.mark.parametrize(("tokens", "printed"), [(512, 0), (600, 0.011), (2_048, 0.281)])
def test_pairs_where_the_two_rules_differ(tokens: int, printed: float):
    fraction = reach.pairs_of_two_rules(tokens, 256, 512)
    beyond = max(0, tokens - 512)
    assert fraction == pytest.approx(beyond * (beyond + 1) / 2 / tokens**2, abs=1e-7)
    assert fraction == pytest.approx(printed, abs=5e-4)
    assert 0 not in position_rows(512, 256, 512)


@pytest.mark.parametrize("terms", [("c2p", "p2c"), ("c2p",)])
@pytest.mark.parametrize(("batch", "tokens"), [(1, 20), (3, 20), (2, 5)])
def test_position_flops_are_those_that_a_step_counts(terms: Any, batch: int, tokens: int):
    sizes: dict[str, Any] = dict(
        vocab_size=60, num_layers=2, hidden_size=32, num_heads=2, intermediate_size=64, span=8,
        max_positions=20, hidden_dropout=0.0, attention_dropout=0.0, kernels="reference",
    )  # fmt: skip

    def counted(of: tuple[str, ...]) -> int:
        ids = torch.randint(5, 60, (batch, tokens))
        batch_of_ids: Any = SimpleNamespace(inputs={"input_ids": ids}, targets={})
        model = deberta("base", **sizes, terms=of)
        return step_flops(
            model, lambda out, _: {"total": out.last_hidden_state.sum()}, batch_of_ids
        )

    config = published("deberta", "base", DebertaConfig, **sizes, terms=terms)
    more = reach.position_flops(config, tokens, batch)
    assert counted(terms) - counted(()) == 3 * sum(more)  # forward, and twice that backward
    blocks = batch * encoder_flops(config, tokens)
    assert counted(()) == 3 * blocks
    assert reach.more_flops(config, tokens, batch) == sum(more) / blocks
