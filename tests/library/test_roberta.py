"""What RoBERTa does beside being equal to the reference: its position numbers follow the text,
wherever the padding is."""

from __future__ import annotations

import pytest
import torch
from parity import distance, drawn_weights

from course_lib.config import published
from course_lib.encoder import Encoder
from course_lib.family.electra import electra
from course_lib.family.roberta import (
    RobertaConfig,
    position_ids_after_padding,
    roberta,
    roberta_for_masked_lm,
)
from course_lib.train.finetuning import classifier_on

SMALL = {"vocab_size": 30, "hidden_size": 12, "num_heads": 3, "num_layers": 2}


def test_position_numbers_on_paper():
    ids = torch.tensor([[0, 9, 8, 2, 1, 1], [1, 1, 0, 9, 8, 2], [0, 9, 8, 7, 6, 2]])
    assert position_ids_after_padding(ids, 1).tolist() == [
        [2, 3, 4, 5, 1, 1],  # padded at the right
        [1, 1, 2, 3, 4, 5],  # at the left
        [2, 3, 4, 5, 6, 7],  # not at all
    ]


@pytest.mark.parametrize("pad", [0, 1, 5])
def test_position_numbers_are_those_of_transformers(pad: int):
    transformers = pytest.importorskip("transformers")
    ids = torch.randint(8, (20, 11), generator=torch.Generator().manual_seed(4))
    embeddings = transformers.models.roberta.modeling_roberta.RobertaEmbeddings
    expected = embeddings.create_position_ids_from_input_ids(ids, pad)
    assert torch.equal(position_ids_after_padding(ids, pad), expected)


@pytest.fixture(scope="module")
def small() -> Encoder:
    model = roberta("base", **SMALL, intermediate_size=20, max_positions=14)
    return drawn_weights(model, 0.3).double().eval()


@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_padding_changes_nothing_for_the_text(small: Encoder, side: str):
    """Position numbers follow the text, wherever the padding is; BERT's would not."""
    text = torch.tensor([[0, 9, 8, 7, 2]])
    padding = torch.full((1, 4), 1)
    parts = (padding, text) if side == "left" else (text, padding)
    ids = torch.cat(parts, dim=1)
    states = small(ids, attention_mask=(ids != 1).long()).last_hidden_state
    assert distance(states[ids != 1], small(text).last_hidden_state[0]) <= 1e-12


def test_the_rows_of_padding_stay_zero():
    model = roberta_for_masked_lm("base", vocab_size=20, hidden_size=8, num_heads=2, num_layers=1)
    table = model.encoder.embeddings.position.weight
    assert not table[1].any() and table[2:].any(dim=1).all()
    ids = torch.tensor([[0, 5, 2, 1]])
    model(ids, attention_mask=(ids != 1).long()).logits.square().mean().backward()
    assert table.grad is not None
    assert table.grad.any(dim=1).nonzero()[:, 0].tolist() == [2, 3, 4]


def test_text_longer_than_the_model(small: Encoder):
    """14 rows: one of padding's own, one before it, 12 for text. The advice is worth following."""
    longer = torch.full((1, 13), 4)
    with pytest.raises(ValueError, match=r"text of 13 tokens.* at most 12.*max_positions=15"):
        small(longer)
    assert roberta("base", **SMALL, max_positions=15)(longer).last_hidden_state.shape[1] == 13
    assert published("roberta", "base", RobertaConfig).longest_text == 512


@pytest.mark.parametrize("make", [roberta, lambda *a, **k: electra(*a, **k).discriminator.encoder])
@pytest.mark.parametrize("training", [True, False])
def test_a_classifier_reads_its_pooler_once(make, training: bool):
    encoder = make("base", vocab_size=50, hidden_size=16, num_heads=2, num_layers=1,
                   intermediate_size=8, max_positions=12)  # fmt: skip
    model = classifier_on(encoder, 2).train(training)
    calls: list[torch.Tensor] = []
    model.encoder.pooler.register_forward_hook(lambda *given: calls.append(given[1][0]))
    model(torch.randint(3, 50, (2, 5)))
    assert len(calls) == 1 and calls[0].shape == ((2, 1, 16) if training else (2, 5, 16))
