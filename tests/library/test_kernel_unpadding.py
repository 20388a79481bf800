"""Padding removed gives what the padded batch gives: at real tokens, in outputs and gradients."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from kernel_parts import TOLERANCE, compare, draw, every_format, needs_gpu

from course_lib.config import BertConfig
from course_lib.encoder import Block, Encoder, Pooler, Stack
from course_lib.family.albert import AlbertConfig, albert_encoder
from course_lib.family.distilbert import DistilBertConfig, distilbert_encoder
from course_lib.family.electra import ElectraConfig, electra_encoder
from course_lib.family.modernbert import ModernBertConfig, modernbert_encoder
from course_lib.family.roberta import RobertaConfig, roberta_encoder
from course_lib.kernels.unpadding import (
    Packing,
    packed_attention,
    packed_attention_reference,
    shared_rows_attention,
)

LENGTHS = {
    "mixed": (7, (3, 7, 1, 3, 5)),
    "an empty row": (6, (4, 0, 6)),
    "no padding": (4, (4, 4, 4)),
    "one row": (9, (5,)),
    "one token": (1, (1,)),
    "longest row padded": (8, (2, 5, 2, 1)),
    "nothing real": (3, (0, 0)),
}
MASKS = {
    kind: (torch.arange(tokens) < torch.tensor(lengths)[:, None]).long()
    for kind, (tokens, lengths) in LENGTHS.items()
}
# Padding on the left and between:
MASKS["holes"] = torch.tensor([[0, 1, 1, 0, 1, 1], [1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]])


# ---- the list ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [torch.int64, torch.bool, torch.float32, torch.uint8], ids=str)
def test_the_list_by_hand(form):
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 1, 1]])
    packing = Packing(mask.to(form))
    assert packing.groups == [(1, 1), (2, 3)] and torch.equal(packing.mask, mask)
    assert packing.positions.tolist() == [4, 0, 1, 2, 8, 10, 11]
    x = torch.arange(12.0).view(3, 4, 1)
    assert packing.unpad(x).flatten().tolist() == [4, 0, 1, 2, 8, 10, 11]
    back = packing.pad(packing.unpad(x) + 1).squeeze(2)
    assert back.tolist() == [[1, 2, 3, 0], [5, 0, 0, 0], [9, 0, 11, 12]]


def test_which_texts_are_in_one_piece():
    assert all(Packing(mask).contiguous == (kind != "holes") for kind, mask in MASKS.items())
    assert Packing(torch.tensor([[0, 1, 1], [1, 1, 0]])).contiguous
    assert not Packing(torch.tensor([[1, 1, 1], [1, 0, 1]])).contiguous


@pytest.mark.parametrize("kind", MASKS)
def test_the_list_and_back_have_exact_gradients(kind):
    packing = Packing(MASKS[kind])
    padded, listed = draw((*packing.shape, 2), (len(packing.positions), 2))
    assert torch.autograd.gradcheck(packing.unpad, padded)
    assert torch.autograd.gradcheck(packing.pad, listed)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"mask of shape \(3,\)"):
        Packing(torch.ones(3))
    packing = Packing(MASKS["mixed"])
    with pytest.raises(ValueError, match=r"x of shape \(5, 6, 2\)"):
        packing.unpad(torch.ones(5, 6, 2))
    with pytest.raises(ValueError, match=r"list of 18 tokens .* packing of 19"):
        packing.pad(torch.ones(18, 2))


# ---- attention -----------------------------------------------------------------------------------

TWINS = {
    "plain": partial(packed_attention, path="plain"),
    "fused": partial(packed_attention, path="fused"),
    "shared rows": shared_rows_attention,
}
both_twins = pytest.mark.parametrize("twin", [packed_attention, shared_rows_attention])


def draw_list(packing, width, dtype=torch.float32):
    """query, key and value."""
    return draw(*[(len(packing.positions), width)] * 3, dtype=dtype)


@pytest.mark.parametrize("way", TWINS)
@every_format
@pytest.mark.parametrize("kind", MASKS)
def test_attention_twins_agree(way, dtype, kind):
    packing, heads = Packing(MASKS[kind]), 3
    among = {"packing": packing, "num_heads": heads}
    fast, slow = partial(TWINS[way], **among), partial(packed_attention_reference, **among)
    assert compare(fast, slow, draw_list(packing, heads * 5, dtype)).dtype == dtype


@both_twins
def test_no_text_sees_another(twin):
    packing = Packing(MASKS["longest row padded"])
    query, key, value = (x.detach() for x in draw_list(packing, 4))
    before = twin(query, key, value, packing, 2)
    owner = packing.positions // packing.shape[1]  # whose row each token of the list is from
    for text in range(packing.shape[0]):
        poisoned = value.clone()
        poisoned[owner == text] += 100
        moved = (twin(query, key, poisoned, packing, 2) - before).abs()
        changed = (moved > 1).any(dim=1)  # a mean of values moves by 100, or by none of it
        assert torch.equal(changed, owner == text)


@both_twins
def test_dropout_is_passed_on(twin):
    packing = Packing(MASKS["mixed"])
    given = draw_list(packing, 4)
    assert not torch.equal(twin(*given, packing, 2, 0.5), twin(*given, packing, 2))


def test_shared_rows_are_few_and_hold_every_token_once():
    packing = Packing(MASKS["mixed"])  # 7 | 5 + 1 | 3 + 3
    at, owner = packing.shared_rows
    assert owner.shape == (3, 7) and (owner < 0).sum() == 3 * 7 - 19
    assert len(set(at.tolist())) == 19
    lengths = torch.tensor([length for rows, length in packing.groups for _ in range(rows)])
    assert torch.equal(owner.flatten()[at], torch.arange(5).repeat_interleave(lengths))


# ---- the model -----------------------------------------------------------------------------------

SHAPE = dict(
    vocab_size=30,
    hidden_size=12,
    num_layers=3,
    num_heads=3,
    intermediate_size=20,
    max_positions=16,
    initializer_range=0.3,
    hidden_dropout=0.0,
    attention_dropout=0.0,
)


def bert_encoder(**changes):
    torch.manual_seed(0)
    config = BertConfig(**{**SHAPE, **changes})
    return Encoder(config, pooler=Pooler(config))


FAMILIES = {
    "bert": bert_encoder,
    "roberta": lambda: roberta_encoder(RobertaConfig(**SHAPE)),
    "albert": lambda: albert_encoder(AlbertConfig(**SHAPE, embedding_size=5)),
    "albert, attention shared": lambda: albert_encoder(
        AlbertConfig(**SHAPE, embedding_size=5, sharing="attention")
    ),
    "distilbert": lambda: distilbert_encoder(DistilBertConfig(**SHAPE)),
    "electra": lambda: electra_encoder(ElectraConfig(**SHAPE, embedding_size=7)),
    "modernbert": lambda: modernbert_encoder(ModernBertConfig(**SHAPE, pad_token_id=0, window=2)),
}


def draw_ids(model, mask):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, model.config.vocab_size, mask.shape, generator=generator)
    return ids.masked_fill(mask == 0, model.config.pad_token_id)


def answers(model, ids, mask, **how):
    """Hidden states at real tokens, and every weight's gradient of a loss over them."""
    out = model(ids, mask, output_hidden_states=True, **how)
    real = [state[mask == 1] for state in (out.last_hidden_state, *out.hidden_states)]
    model.zero_grad()
    sum((x * torch.linspace(-1, 1, x.numel()).view_as(x)).mean() for x in real).backward()
    gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return real, gradients


@pytest.mark.parametrize("kind", ["mixed", "an empty row", "no padding", "one row", "holes"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_family_gives_the_same_without_padding(family, dtype, kind):
    torch.manual_seed(0)
    model, mask = FAMILIES[family]().to(dtype), MASKS[kind]
    ids = draw_ids(model, mask)
    padded, padded_grads = answers(model, ids, mask)
    ours, our_grads = answers(model, ids, mask, remove_padding=True)
    bound = TOLERANCE[dtype]
    assert len(padded) == len(ours) == model.config.num_layers + 2
    for a, b in zip(ours, padded, strict=True):
        assert (a - b).abs().max() <= bound * max(1, b.abs().max().item())
    assert our_grads.keys() == padded_grads.keys()
    largest = max(grad.abs().max().item() for grad in padded_grads.values())
    for name, grad in padded_grads.items():
        assert (our_grads[name] - grad).abs().max() <= bound * largest, name


def test_padding_comes_back_as_zeros_and_the_pooler_as_ever():
    model, mask = bert_encoder(), MASKS["mixed"]
    ids, seen = draw_ids(model, mask), []
    plain = model(ids, mask)
    for block in model.stack.blocks:
        block.feed_forward.register_forward_hook(lambda _, given, out: seen.append(given[0].shape))
    out = model(ids, mask, remove_padding=True, output_hidden_states=True)
    assert seen == [(19, 12)] * 3  # real tokens only
    assert out.attentions is None and out.attention_scores is None
    for state in (out.last_hidden_state, *out.hidden_states):
        assert state.shape == (*mask.shape, 12)
        assert state[mask == 0].abs().max() == 0 and state[mask == 1].abs().max() > 0
    assert (out.pooler_output - plain.pooler_output).abs().max() <= 1e-5
    assert model(ids, mask, remove_padding=True).hidden_states is None


def test_without_a_mask_or_without_a_real_token():
    model = bert_encoder().eval()
    ids = draw_ids(model, torch.ones(2, 5))
    same = model(ids, remove_padding=True).last_hidden_state
    torch.testing.assert_close(same, model(ids).last_hidden_state)
    nothing = model(ids, torch.zeros_like(ids), remove_padding=True).last_hidden_state
    assert nothing.shape == (2, 5, 12) and nothing.abs().max() == 0


def test_in_bfloat16_under_autocast():
    model, mask = bert_encoder(initializer_range=0.1), MASKS["mixed"]
    ids = draw_ids(model, mask)
    exact = model(ids, mask).last_hidden_state
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(ids, mask, remove_padding=True).last_hidden_state
    assert (out.float() - exact)[mask == 1].abs().max() <= 5e-2 * exact.abs().max()


class Relative(torch.nn.Module):
    """Stands for DeBERTa's, which needs to know how far apart two tokens are."""


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"output_attentions": True}, "with output_attentions"),
        ({"output_attention_scores": True}, "or output_attention_scores"),
        ({"output_positions": torch.zeros(5, 1, dtype=torch.long)}, "with output_positions"),
        ({}, "a model with Relative; expected SelfAttention"),
    ],
    ids=["weights", "scores", "output_positions", "another attention"],
)
def test_what_needs_the_whole_batch_is_refused(how, says):
    config = BertConfig(**SHAPE)
    stack = Stack(config)
    if not how:
        stack.blocks[1] = Block(config, Relative())
    model, mask = Encoder(config, stack=stack), MASKS["mixed"]
    with pytest.raises(ValueError, match=says):
        model(draw_ids(model, mask), mask, remove_padding=True, **how)


@needs_gpu
def test_on_a_gpu():
    model, mask = bert_encoder().cuda(), MASKS["mixed"].cuda()
    ids = draw_ids(model, mask.cpu()).cuda()
    real = mask == 1
    exact = model(ids, mask).last_hidden_state
    out = model(ids, mask, remove_padding=True).last_hidden_state
    assert (out - exact)[real].abs().max() <= 1e-4 * exact.abs().max()
    packing = Packing(mask)
    given = [x.detach().cuda() for x in draw_list(packing, 6)]
    slow = packed_attention_reference(*given, packing, 2)
    for twin in (packed_attention, shared_rows_attention):
        assert (twin(*given, packing, 2) - slow).abs().max() <= 1e-4
