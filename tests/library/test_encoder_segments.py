"""An encoder without segments: type_vocab_size=0, as DistilBERT has it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.albert import FactorisedEmbeddings

CONFIG = BertConfig(
    vocab_size=30, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=24,
    max_positions=12, type_vocab_size=0, hidden_dropout=0.0, attention_dropout=0.0,
)  # fmt: skip
IDS = torch.tensor([[2, 7, 8, 3, 0], [2, 9, 10, 11, 3]])


def test_the_sum_is_of_token_and_position_alone():
    embeddings = Encoder(CONFIG).embeddings
    parts = embeddings.parts(IDS)
    assert list(parts) == ["token", "position", "sum", "normed"]
    expected = embeddings.token(IDS) + embeddings.position(torch.arange(5))
    assert torch.equal(parts["sum"], expected)


def test_a_table_of_zeros_says_the_same_as_none():
    torch.manual_seed(0)
    without = Encoder(CONFIG).eval()
    with_table = Encoder(replace(CONFIG, type_vocab_size=1)).eval()
    missing = with_table.load_state_dict(without.state_dict(), strict=False)
    assert missing.missing_keys == ["embeddings.segment.weight"]
    torch.nn.init.zeros_(with_table.embeddings.segment.weight)
    torch.testing.assert_close(with_table(IDS).last_hidden_state, without(IDS).last_hidden_state)


def test_one_segment_number_a_token():
    with pytest.raises(ValueError, match="one segment number a token"):
        Encoder(CONFIG)(IDS, token_type_ids=torch.zeros(2, 3, dtype=torch.long))


def test_narrow_tables_go_without_segments_too():
    tables = FactorisedEmbeddings(CONFIG, 4)
    assert tables.tables.segment is None
    assert tables(IDS, torch.zeros_like(IDS)).shape == (2, 5, 16)
