"""Padding removed gives what the padded batch gives: at real tokens, in outputs and gradients."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from course_lib.bench import Measured
from course_lib.bench import unpadding as unpadding_bench
from course_lib.config import BertConfig
from course_lib.encoder import Block, Encoder, Pooler, Stack
from course_lib.family.albert import AlbertConfig, albert_encoder
from course_lib.family.distilbert import DistilBertConfig, distilbert_encoder
from course_lib.family.electra import ElectraConfig, electra_encoder
from course_lib.family.roberta import RobertaConfig, roberta_encoder
from course_lib.kernels.unpadding import (
    Packing,
    packed_attention,
    packed_attention_reference,
    shared_rows_attention,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 2e-2}
LENGTHS = {
    "mixed": (7, (3, 7, 1, 3, 5)),
    "an empty row": (6, (4, 0, 6)),
    "no padding": (4, (4, 4, 4)),
    "one row": (9, (5,)),
    "one token": (1, (1,)),
    "longest row padded": (8, (2, 5, 2, 1)),
    "nothing real": (3, (0, 0)),
}


def mask_of(kind):
    if kind == "holes":  # padding on the left and between
        return torch.tensor([[0, 1, 1, 0, 1, 1], [1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
    tokens, lengths = LENGTHS[kind]
    return (torch.arange(tokens) < torch.tensor(lengths)[:, None]).long()


MASKS = [*LENGTHS, "holes"]


# ---- the list ------------------------------------------------------------------------------------


def test_the_list_by_hand():
    packing = Packing(torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 1, 1]]))
    assert packing.groups == [(1, 1), (2, 3)]
    assert packing.positions.tolist() == [4, 0, 1, 2, 8, 10, 11]
    x = torch.arange(12.0).view(3, 4, 1)
    assert packing.unpad(x).flatten().tolist() == [4, 0, 1, 2, 8, 10, 11]
    back = packing.pad(packing.unpad(x) + 1).squeeze(2)
    assert back.tolist() == [[1, 2, 3, 0], [5, 0, 0, 0], [9, 0, 11, 12]]


@pytest.mark.parametrize("form", [torch.bool, torch.float32, torch.uint8], ids=str)
def test_a_mask_may_have_any_number_format(form):
    packing = Packing(mask_of("holes").to(form))
    assert packing.positions.tolist() == Packing(mask_of("holes")).positions.tolist()
    assert torch.equal(packing.mask, mask_of("holes"))


@pytest.mark.parametrize("kind", MASKS)
def test_the_list_and_back_have_exact_gradients(kind):
    packing = Packing(mask_of(kind))
    padded = torch.randn(*packing.shape, 2, dtype=torch.float64, requires_grad=True)
    listed = torch.randn(len(packing.positions), 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(packing.unpad, padded)
    assert torch.autograd.gradcheck(packing.pad, listed)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"mask of shape \(3,\)"):
        Packing(torch.ones(3))
    packing = Packing(mask_of("mixed"))
    with pytest.raises(ValueError, match=r"x of shape \(5, 6, 2\)"):
        packing.unpad(torch.ones(5, 6, 2))
    with pytest.raises(ValueError, match=r"list of 18 tokens .* packing of 19"):
        packing.pad(torch.ones(18, 2))


# ---- attention -----------------------------------------------------------------------------------


def draw_list(count, width, dtype):
    generator = torch.Generator().manual_seed(0)
    drawn = (torch.randn(count, width, generator=generator) for _ in range(3))
    return [x.to(dtype).requires_grad_() for x in drawn]


TWINS = {
    "plain": partial(packed_attention, path="plain"),
    "fused": partial(packed_attention, path="fused"),
    "shared rows": shared_rows_attention,
}


@pytest.mark.parametrize("way", TWINS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("kind", MASKS)
def test_attention_twins_agree(way, dtype, kind):
    packing = Packing(mask_of(kind))
    count, heads, size = len(packing.positions), 3, 5
    ours, theirs = (draw_list(count, heads * size, dtype) for _ in range(2))
    fast = TWINS[way](*ours, packing, heads)
    # The reference is computed from the same numbers in float64, so only the twin rounds.
    slow = packed_attention_reference(*(x.double() for x in theirs), packing, heads)
    assert fast.shape == slow.shape == (count, heads * size) and fast.dtype == dtype
    if not count:
        return
    bound = TOLERANCE[dtype]
    assert (fast.double() - slow).abs().max() <= bound * max(1, slow.abs().max().item())
    upstream = torch.linspace(-1, 1, fast.numel(), dtype=torch.float64).view_as(slow)
    (fast.double() * upstream).mean().backward()
    (slow * upstream).mean().backward()
    largest = max(x.grad.abs().max().item() for x in theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.grad.double() - b.grad.double()).abs().max() <= 2 * bound * largest


@pytest.mark.parametrize("twin", [packed_attention, shared_rows_attention])
def test_no_text_sees_another(twin):
    packing = Packing(mask_of("longest row padded"))
    count = len(packing.positions)
    query, key, value = (x.detach() for x in draw_list(count, 4, torch.float32))
    before = twin(query, key, value, packing, 2)
    owner = packing.positions // packing.shape[1]  # whose row each token of the list is from
    for text in range(packing.shape[0]):
        poisoned = value.clone()
        poisoned[owner == text] += 100
        moved = (twin(query, key, poisoned, packing, 2) - before).abs()
        changed = (moved > 1).any(dim=1)  # a mean of values moves by 100, or by none of it
        assert torch.equal(changed, owner == text)


@pytest.mark.parametrize("twin", [packed_attention, shared_rows_attention])
def test_dropout_is_passed_on(twin):
    packing = Packing(mask_of("mixed"))
    given = [x.detach() for x in draw_list(len(packing.positions), 4, torch.float32)]
    assert not torch.equal(twin(*given, packing, 2, 0.5), twin(*given, packing, 2))


def test_shared_rows_are_few_and_hold_every_token_once():
    packing = Packing(mask_of("mixed"))  # 7 | 5 + 1 | 3 + 3
    at, owner = packing.shared_rows
    assert owner.shape == (3, 7) and (owner < 0).sum() == 3 * 7 - 19
    assert len(set(at.tolist())) == 19
    lengths = [length for rows, length in packing.groups for _ in range(rows)]
    assert torch.equal(
        owner.flatten()[at], torch.arange(5).repeat_interleave(torch.tensor(lengths))
    )


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
    loss = sum((x * torch.linspace(-1, 1, x.numel()).view_as(x)).mean() for x in real)
    loss.backward()
    return real, {
        name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None
    }


@pytest.mark.parametrize("kind", ["mixed", "an empty row", "no padding", "one row", "holes"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_family_gives_the_same_without_padding(family, dtype, kind):
    torch.manual_seed(0)
    model, mask = FAMILIES[family]().to(dtype), mask_of(kind)
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
    torch.manual_seed(0)
    model, mask = bert_encoder(), mask_of("mixed")
    ids = draw_ids(model, mask)
    plain = model(ids, mask)
    out = model(ids, mask, remove_padding=True, output_hidden_states=True)
    assert out.attentions is None and out.attention_scores is None
    for state in (out.last_hidden_state, *out.hidden_states):
        assert state.shape == (*mask.shape, 12)
        assert state[mask == 0].abs().max() == 0 and state[mask == 1].abs().max() > 0
    assert (out.pooler_output - plain.pooler_output).abs().max() <= 1e-5
    assert model(ids, mask, remove_padding=True).hidden_states is None


def test_the_blocks_see_real_tokens_only(monkeypatch):
    model, mask = bert_encoder(), mask_of("mixed")
    seen = []
    for block in model.stack.blocks:
        block.feed_forward.register_forward_hook(lambda _, given, out: seen.append(given[0].shape))
    model(draw_ids(model, mask), mask, remove_padding=True)
    assert seen == [(19, 12)] * 3


def test_without_a_mask_or_without_a_real_token():
    model = bert_encoder().eval()
    ids = draw_ids(model, torch.ones(2, 5))
    same = model(ids, remove_padding=True).last_hidden_state
    torch.testing.assert_close(same, model(ids).last_hidden_state)
    nothing = model(ids, torch.zeros_like(ids), remove_padding=True).last_hidden_state
    assert nothing.shape == (2, 5, 12) and nothing.abs().max() == 0


def test_in_bfloat16_under_autocast():
    torch.manual_seed(0)
    model, mask = bert_encoder(initializer_range=0.1), mask_of("mixed")
    ids = draw_ids(model, mask)
    exact = model(ids, mask).last_hidden_state
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(ids, mask, remove_padding=True).last_hidden_state
    assert (out.float() - exact)[mask == 1].abs().max() <= 5e-2 * exact.abs().max()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"output_attentions": True}, "with output_attentions"),
        ({"output_attention_scores": True}, "or output_attention_scores"),
        ({"only_at": torch.zeros(5, 1, dtype=torch.long)}, "with only_at"),
    ],
    ids=["weights", "scores", "only_at"],
)
def test_what_needs_the_whole_batch_is_refused(how, says):
    model, mask = bert_encoder(), mask_of("mixed")
    with pytest.raises(ValueError, match=says):
        model(draw_ids(model, mask), mask, remove_padding=True, **how)


def test_another_attention_is_refused():
    class Relative(torch.nn.Module):
        """Stands for DeBERTa's, which needs to know how far apart two tokens are."""

    config = BertConfig(**SHAPE)
    stack = Stack(config)
    stack.blocks[1] = Block(config, Relative())
    model, mask = Encoder(config, stack=stack), mask_of("mixed")
    with pytest.raises(ValueError, match="a model with Relative; expected SelfAttention"):
        model(draw_ids(model, mask), mask, remove_padding=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_gpu():
    torch.manual_seed(0)
    model, mask = bert_encoder().cuda(), mask_of("mixed").cuda()
    ids = draw_ids(model, mask.cpu()).cuda()
    real = mask == 1
    exact = model(ids, mask).last_hidden_state
    out = model(ids, mask, remove_padding=True).last_hidden_state
    assert (out - exact)[real].abs().max() <= 1e-4 * exact.abs().max()
    packing = Packing(mask)
    given = [x.detach().cuda() for x in draw_list(len(packing.positions), 6, torch.float32)]
    slow = packed_attention_reference(*given, packing, 2)
    for twin in (packed_attention, shared_rows_attention):
        assert (twin(*given, packing, 2) - slow).abs().max() <= 1e-4


# ---- the bench -----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", unpadding_bench.PADDING)
@pytest.mark.parametrize(("batch", "tokens"), unpadding_bench.BATCHES)
def test_the_bench_pads_what_it_says(batch, tokens, share):
    mask = unpadding_bench.padded_mask(batch, tokens, share)
    assert abs(1 - mask.float().mean().item() - share) < 0.03
    lengths = mask.sum(dim=1)
    assert lengths.max() == tokens and lengths.min() >= 2
    assert torch.equal(mask, (torch.arange(tokens) < lengths[:, None]).long())


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_bench_contender_does_its_work(monkeypatch, precision):
    small = dict(num_layers=2, hidden_size=16, num_heads=2, intermediate_size=32)
    monkeypatch.setattr(unpadding_bench, "SHAPE", small)
    seen = []
    plain = torch.nn.functional.linear

    def linear(x, *weights):
        seen.append(x.shape[:-1].numel())
        return plain(x, *weights)

    monkeypatch.setattr(torch.nn.functional, "linear", linear)
    tokens_seen = {}
    compared = unpadding_bench.contenders(6, 20, precision)
    for contender in compared:
        assert contender.tokens == 120
        step = contender.make()
        seen.clear()
        step()
        assert len(seen) >= 6 and set(seen) <= {max(seen), 6}  # the peer's pooler sees 6 rows
        tokens_seen[contender.name] = max(seen)
    real = [int(unpadding_bench.padded_mask(6, 20, s).sum()) for s in unpadding_bench.PADDING]
    assert list(tokens_seen.values()) == [120, 120, *real, 120, *real]
    for contender in unpadding_bench.attention_contenders(6, 20, precision):
        contender.make()()


def test_the_linear_part_mixes_no_tokens():
    layer = unpadding_bench.NoAttention(BertConfig(**SHAPE))
    x = torch.randn(2, 5, 12)
    changed = x.clone()
    changed[:, 3] += 1
    moved = (layer(x)[0] - layer(changed)[0]).abs().amax(-1)
    assert not ((moved > 1e-5) & (moved < 1e-3)).any()  # by rounding, or visibly
    differs = moved >= 1e-3
    assert differs.tolist() == [[False, False, False, True, False]] * 2


def test_the_remark_names_gain_goal_and_limit():
    rates = (5, 10, 12, 18, 35, 20, 24, 38, 70)
    results = [Measured(str(i), [rate] * 2) for i, rate in enumerate(rates)]
    said = unpadding_bench.remark(1_000, 400, results, {}).splitlines()
    assert said[1] == (
        "padding 50%: 3.60× transformers', 1.80× ours padded; linear part 1.90× (goal 1.80×, "
        "limit 2.00×)"
    )
    assert said[2].startswith(
        "padding 75%: 7.00× transformers', 3.50× ours padded; linear part 3.50×"
    )
