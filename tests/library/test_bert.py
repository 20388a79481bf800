"""What BERT does beside being equal to the reference on drawn weights: the real MiniLM, and texts
that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from parity import distance, same
from torch import Tensor

from course_lib.checkpoints import (
    MissingCheckpoint,
    Pretrained,
    from_transformers,
    load_pretrained,
    to_transformers,
)
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert_for_pretraining
from course_lib.heads import BertForPreTraining

transformers = pytest.importorskip("transformers")

TEXTS = (
    "The bank of the river was green, and the bank in the town was closed.",
    "Short.",
    "Attention is a weighted average; what it weighs is learned. " * 6,
)


@pytest.fixture(scope="module")
def minilm() -> Pretrained:
    try:
        return load_pretrained("all-MiniLM-L6-v2")
    except MissingCheckpoint as error:
        pytest.skip(str(error))


def minilm_batch(minilm: Pretrained) -> dict[str, Tensor]:
    assert minilm.tokenizer is not None
    rows = [[101, *minilm.tokenizer.encode(text), 102] for text in TEXTS]
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def their_minilm(minilm: Pretrained, attention: str, dtype: torch.dtype) -> Any:
    model = transformers.AutoModel.from_pretrained(
        minilm.path.parent, attn_implementation=attention, local_files_only=True
    )
    return model.to(dtype).eval()


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 2e-5), (torch.float64, 1e-10)], ids=["float32", "float64"]
)
@torch.no_grad()
def test_real_minilm(minilm: Pretrained, dtype: torch.dtype, bound: float):
    """Hidden states of real weights, layer by layer, beside transformers' own two ways."""
    batch = minilm_batch(minilm)
    real = batch["attention_mask"].bool()
    wanted = {"output_hidden_states": True, "output_attentions": True}
    eager = their_minilm(minilm, "eager", dtype)(**batch, **wanted)
    sdpa = their_minilm(minilm, "sdpa", dtype)(**batch, output_hidden_states=True)
    assert len(eager.attentions) == 6 and all(a is not None for a in eager.attentions)
    encoder = minilm.encoder.to(dtype)
    ours = encoder(**batch, **wanted)
    plain = encoder(**batch, output_hidden_states=True)
    minilm.encoder.to(torch.float32)
    assert len(ours.hidden_states) == len(eager.hidden_states) == 7
    layers = zip(ours.hidden_states, plain.hidden_states, eager.hidden_states, strict=True)
    for i, (kept, fast, reference) in enumerate(layers):
        distances = [(x[real] - reference[real]).abs().max().item() for x in (kept, fast)]
        between = (sdpa.hidden_states[i][real] - reference[real]).abs().max().item()
        print(f"layer {i}: ours {max(distances):.1e}, transformers eager to sdpa {between:.1e}")
        assert max(distances) <= bound
    for a, b in zip(ours.attentions, eager.attentions, strict=True):
        assert (a.transpose(1, 2)[real] - b.transpose(1, 2)[real]).abs().max() <= bound


def test_real_minilm_weights_go_there_and_back(minilm: Pretrained):
    theirs = to_transformers(minilm.encoder)
    original = their_minilm(minilm, "sdpa", torch.float32).state_dict()
    for name, value in theirs.state_dict().items():
        assert torch.equal(value, original[name]), name
    assert same(from_transformers(theirs), minilm.encoder)
    assert count_parameters(minilm.encoder) == 22_713_216


# ---------------------------------------------------------------- bad input


@pytest.fixture(scope="module")
def small() -> BertForPreTraining:
    return bert_for_pretraining("tiny", vocab_size=50, max_positions=16).eval()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (3,), (1, 2, 3)])
def test_empty_text_and_wrong_shape(small: BertForPreTraining, shape: tuple[int, ...]):
    with pytest.raises(ValueError, match=r"expected \(batch, tokens\) with at least one of each"):
        small(torch.zeros(shape, dtype=torch.long))


def test_wrong_mask_and_segments(small: BertForPreTraining):
    ids = torch.ones(2, 5, dtype=torch.long)
    for name in ("attention_mask", "token_type_ids"):
        with pytest.raises(ValueError, match=rf"{name} of shape \(2, 4\) was given; expected that"):
            small(ids, **{name: ids[:, :4]})


@pytest.mark.parametrize(
    "mask", [[0.0, 0, 0, -1e4, -1e4], [0, 0, 0, -torch.inf, 0], [1, 1, 2, 0, 0], [1, 1, 0.5, 1, 1]]
)
def test_a_mask_of_other_numbers_than_0_and_1_is_refused(small: BertForPreTraining, mask):
    ids, mask = torch.ones(1, 5, dtype=torch.long), torch.tensor([mask])
    with pytest.raises(ValueError, match=r"expected 1 at real tokens, 0 at padding\. A mask to be"):
        small(ids, attention_mask=mask)
    zero_or_one = mask.clamp(0, 1).round()
    with torch.no_grad():
        outputs = [small(ids, attention_mask=zero_or_one.to(kind)).prediction_logits
                   for kind in (torch.long, torch.float32, torch.bool)]  # fmt: skip
    assert torch.equal(outputs[0], outputs[1]) and torch.equal(outputs[0], outputs[2])


def test_a_text_that_is_only_padding_stays_finite(small: BertForPreTraining):
    ids = torch.ones(2, 5, dtype=torch.long)
    mask = torch.tensor([[1] * 5, [0] * 5])
    with torch.no_grad():
        outputs = small(ids, attention_mask=mask)
        alone = small(ids[:1])
    assert torch.isfinite(outputs.prediction_logits).all()
    assert distance(outputs.prediction_logits[:1], alone.prediction_logits) <= 1e-5
