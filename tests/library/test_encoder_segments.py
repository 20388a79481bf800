"""An encoder without segments: type_vocab_size=0, as DistilBERT has it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib.config import BertConfig
from course_lib.encoder import Embeddings, Encoder, count_parameters
from course_lib.family.albert import FactorisedEmbeddings

CONFIG = BertConfig(
    vocab_size=30, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=24,
    max_positions=12, type_vocab_size=0, hidden_dropout=0.0, attention_dropout=0.0,
)  # fmt: skip
IDS = torch.tensor([[2, 7, 8, 3, 0], [2, 9, 10, 11, 3]])


def test_there_is_no_table_and_no_weight_for_segments():
    without = Encoder(CONFIG)
    assert without.embeddings.segment is None
    assert not [name for name in without.state_dict() if "segment" in name]
    for kinds in (1, 2):
        more = count_parameters(Encoder(replace(CONFIG, type_vocab_size=kinds)))
        assert more - count_parameters(without) == kinds * 16


def test_the_sum_is_of_token_and_position_alone():
    embeddings = Embeddings(CONFIG)
    parts = embeddings.parts(IDS)
    assert list(parts) == ["token", "position", "sum", "normed"]
    expected = embeddings.token(IDS) + embeddings.position(torch.arange(5))
    assert torch.equal(parts["sum"], expected)
    torch.testing.assert_close(embeddings.eval()(IDS), embeddings.norm(expected))


def test_a_table_of_zeros_says_the_same_as_none():
    torch.manual_seed(0)
    without = Encoder(CONFIG).eval()
    with_table = Encoder(replace(CONFIG, type_vocab_size=1)).eval()
    missing = with_table.load_state_dict(without.state_dict(), strict=False)
    assert missing.missing_keys == ["embeddings.segment.weight"]
    torch.nn.init.zeros_(with_table.embeddings.segment.weight)
    torch.testing.assert_close(with_table(IDS).last_hidden_state, without(IDS).last_hidden_state)


def test_segment_a_may_be_named_and_segment_b_may_not():
    encoder = Encoder(CONFIG).eval()
    zeros = torch.zeros_like(IDS)
    named = encoder(IDS, token_type_ids=zeros).last_hidden_state
    assert torch.equal(named, encoder(IDS).last_hidden_state)
    zeros[1, 3] = 1
    with pytest.raises(ValueError, match="this model has no segments: leave it out"):
        encoder(IDS, token_type_ids=zeros)
    with pytest.raises(ValueError, match="one segment number a token"):
        encoder(IDS, token_type_ids=torch.zeros(2, 3, dtype=torch.long))


def test_narrow_tables_go_without_segments_too():
    tables = FactorisedEmbeddings(CONFIG, 4)
    assert tables.tables.segment is None
    assert tables(IDS, torch.zeros_like(IDS)).shape == (2, 5, 16)


def test_fewer_than_no_segments_are_refused():
    with pytest.raises(ValueError, match=r"type_vocab_size=-1 was given.*at least 0"):
        replace(CONFIG, type_vocab_size=-1)
