"""The one-file BERT equals the library's, and its masking and its step do what they say."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from parity import TOLERANCE, both_precisions, drawn_weights
from torch import Tensor

from course_lib import plain_bert
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.heads import BertForPreTraining
from course_lib.plain_bert import IGNORED, MASK, PlainBert, PlainConfig, make_pair, mask_tokens

SIZES: dict[str, Any] = {"vocab_size": 40, "hidden_size": 24, "num_layers": 3, "num_heads": 3,
         "intermediate_size": 50, "max_positions": 20}  # fmt: skip
RENAMED = {"encoder.": "", "stack.": "", "pooler.dense": "pooler", "mlm.": "mlm_",
           "pair.dense": "nsp", "expand": "up_proj", "contract": "down_proj"}  # fmt: skip


def plain_name(name: str) -> str:
    """The plain model's name of one of the library's weights."""
    for ours, plain in RENAMED.items():
        name = name.replace(ours, plain)
    return name


def batch() -> tuple[Tensor, Tensor, Tensor]:
    make = torch.Generator().manual_seed(0)
    ids = torch.randint(4, 40, (3, 13), generator=make)
    mask = (torch.arange(13) < torch.tensor([[13], [5], [9]])).long()
    return ids * mask, torch.randint(2, (3, 13), generator=make), mask


@both_precisions
def test_outputs_and_gradients_are_the_librarys(dtype: torch.dtype):
    config = BertConfig(**SIZES, hidden_dropout=0.0, attention_dropout=0.0)
    library = drawn_weights(BertForPreTraining(Encoder(config, pooler=Pooler(config))), 0.2)
    plain = PlainBert(PlainConfig(**SIZES, dropout=0.0))
    plain.load_state_dict({plain_name(n): w for n, w in library.state_dict().items()})
    library, plain = library.to(dtype), plain.to(dtype)
    ids, segments, mask = batch()
    theirs = library(ids, mask, segments)
    ours = plain(ids, segments, mask)
    for logits, expected in zip(
        ours, (theirs.prediction_logits, theirs.seq_relationship_logits), strict=True
    ):
        assert torch.allclose(logits, expected, rtol=0, atol=10 * TOLERANCE[dtype])
        target = torch.zeros(logits.shape[:-1], dtype=torch.long).flatten()
        for value in (logits, expected):
            F.cross_entropy(value.flatten(0, -2), target).backward(retain_graph=True)
    expected_grads: dict[str, Any] = {
        plain_name(name): p.grad for name, p in library.named_parameters()
    }
    largest = max(float(grad.abs().max()) for grad in expected_grads.values())
    for name, parameter in plain.named_parameters():
        grad: Any = parameter.grad
        if name == "embeddings.token.weight":  # the library's padding row gets none from the input
            grad[0] = expected_grads[name][0] = 0
        distance = (grad - expected_grads[name]).abs().max()
        assert distance <= TOLERANCE[dtype] * largest, name


def test_of_the_selected_80_percent_are_masked_10_random_and_10_kept():
    ids = torch.randint(1, 1_000, (200, 100), generator=torch.Generator().manual_seed(0))
    read, labels = mask_tokens(ids, 1_000, torch.Generator().manual_seed(1))
    selected = labels != IGNORED
    special = ids < MASK  # [PAD], [CLS], [SEP]
    assert torch.equal(labels[selected], ids[selected]) and not (selected & special).any()
    assert torch.equal(read[~selected], ids[~selected])
    parts = [selected.double().mean(), (read[selected] == MASK).double().mean(),
             (read[selected] == ids[selected]).double().mean()]  # fmt: skip
    assert parts == pytest.approx([0.15, 0.8, 0.1], abs=0.012)
    assert int(read[selected & (read != MASK)].min()) > MASK


def test_a_pair_has_a_segment_for_each_token():
    assert make_pair([7, 8], [9], 8) == ([1, 7, 8, 2, 9, 2, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0])


def test_the_toy_run_learns(capsys: pytest.CaptureFixture[str]):
    plain_bert.main(steps=100)
    first, last = (float(line.split()[3]) for line in capsys.readouterr().out.splitlines())
    assert first > 2.5 and last < 1.0
