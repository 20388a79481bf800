"""The models that write, GPT and the encoder-decoder: equal to transformers' GPT-2 and BART in
outputs, hidden states, attention weights, gradients and counts; weights there and back. What
"equal" means is said in parity.py."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from parity import (
    TOLERANCE,
    Case,
    both_precisions,
    distance,
    draw_case,
    drawn_weights,
    gradients_apart,
    largest,
    on_meta,
    output_distances,
    positions_against_full,
    run,
    same,
)
from torch import Tensor

from course_lib.checkpoints import CheckpointError
from course_lib.checkpoints.decoders import (
    bart_name,
    from_bart,
    from_gpt2,
    gpt2_layout,
    to_bart,
    to_gpt2,
)
from course_lib.config import PUBLISHED
from course_lib.encoder import Encoder
from course_lib.family.gpt import GptConfig, GptForNextToken, gpt, gpt_decoder
from course_lib.family.seq2seq import BartConfig, Seq2Seq, bart
from course_lib.objectives.next_token import next_token_labels, next_token_loss

transformers = pytest.importorskip("transformers")
SEEDS = range(12)


def as_gpt(settings: dict[str, Any], draw: random.Random) -> GptConfig:
    settings = {**settings, "type_vocab_size": 0, "hidden_act": draw.choice(["gelu", "gelu_new"])}
    return GptConfig(**settings)


def as_bart(settings: dict[str, Any], draw: random.Random) -> BartConfig:
    settings = {**settings, "type_vocab_size": 0, "hidden_act": draw.choice(["gelu", "gelu_new"])}
    return BartConfig(**{**settings, "max_positions": settings["max_positions"] + 2})


def ours_and_theirs(seed: int, dtype: torch.dtype, writes: str) -> tuple[Case, Any, Any]:
    case = draw_case(seed, as_gpt if writes == "gpt2" else as_bart)
    model = GptForNextToken(gpt_decoder(case.config)) if writes == "gpt2" else Seq2Seq(case.config)
    ours = drawn_weights(model, case.sd).to(dtype).eval()
    return case, ours, (to_gpt2 if writes == "gpt2" else to_bart)(ours, "eager")


def two_texts(case: Case, seed: int) -> dict[str, Tensor]:
    """The drawn text to read, and another of its own length to write."""
    make = torch.Generator().manual_seed(50 + seed)
    batch, tokens = len(case.mask), (1, 5, 12)[seed % 3]
    lengths = 1 + torch.randint(tokens, (batch,), generator=make)
    written = torch.randint(case.config.vocab_size, (batch, tokens), generator=make)
    mask = (torch.arange(tokens) < lengths[:, None]).long()
    return {**case.inputs, "decoder_input_ids": written, "decoder_attention_mask": mask}


# ---------------------------------------------------------------- outputs and gradients


@both_precisions
@pytest.mark.parametrize("seed", SEEDS)
def test_the_decoder_is_gpt2(seed: int, dtype: torch.dtype):
    case, ours, theirs = ours_and_theirs(seed, dtype, "gpt2")
    with torch.no_grad():
        found = output_distances(run(ours, case), run(theirs, case), case)
        fast = ours(**case.inputs).logits  # the path that keeps no weights
        found["fast"] = distance(fast[case.real], theirs(**case.inputs).logits[case.real])
    for model in (ours, theirs):
        logits = model(**case.inputs).logits
        F.cross_entropy(logits.flatten(0, 1), case.labels.flatten()).backward()
    grads = {name: p.grad for name, p in ours.named_parameters()}
    reference = {name: p.grad for name, p in theirs.named_parameters()}
    found["gradients"] = gradients_apart(gpt2_layout(grads), reference)
    assert largest(found) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", SEEDS)
def test_the_encoder_decoder_is_bart(seed: int, dtype: torch.dtype):
    """Both stacks whole, cross-attention's weights among them."""
    case, ours, theirs = ours_and_theirs(seed, dtype, "bart")
    inputs = two_texts(case, seed)
    written = inputs["decoder_attention_mask"].bool()
    keep = {"output_hidden_states": True, "output_attentions": True}
    with torch.no_grad():
        mine, reference = ours(**inputs, **keep), theirs(**inputs, **keep)
        fast = ours(**inputs)
    found = {"fast": distance(fast.logits[written], reference.logits[written])}
    found["encoder"] = distance(
        mine.encoder_last_hidden_state[case.real], reference.encoder_last_hidden_state[case.real]
    )
    found["logits"] = distance(mine.logits[written], reference.logits[written])
    for name in ("decoder_hidden_states", "decoder_attentions", "cross_attentions"):
        pairs = zip(getattr(mine, name), getattr(reference, name), strict=True)
        for i, (a, b) in enumerate(pairs):
            a, b = (
                x if x.dim() == 3 else x.transpose(1, 2) for x in (a, b)
            )  # queries before heads
            found[f"{name} {i}"] = distance(a[written], b[written])
    labels = torch.where(written, inputs["decoder_input_ids"], -100)
    for model in (ours, theirs):
        F.cross_entropy(model(**inputs).logits.flatten(0, 1), labels.flatten()).backward()
    grads = {bart_name(name): p.grad for name, p in ours.named_parameters()}
    reference_grads = {name: p.grad for name, p in theirs.named_parameters()}
    found["gradients"] = gradients_apart(grads, reference_grads)
    assert largest(found) <= TOLERANCE[dtype]


@torch.no_grad()
def test_a_difference_is_seen():
    case, ours, theirs = ours_and_theirs(2, torch.float64, "gpt2")
    ours.decoder.stack.blocks[0].attention.key.weight[0, 0] += 1e-3
    assert largest(output_distances(run(ours, case), run(theirs, case), case)) > 1e-5
    case, ours, theirs = ours_and_theirs(2, torch.float64, "bart")
    ours.blocks[0].cross.key.weight[0, 0] += 1e-3
    inputs = two_texts(case, 2)
    assert distance(ours(**inputs).logits, theirs(**inputs).logits) > 1e-6


@pytest.mark.parametrize("seed", range(20, 24))
@torch.no_grad()
def test_only_some_positions_of_the_last_layer(seed: int):
    """The rows of the triangle follow the positions that are asked for."""
    case = draw_case(seed, as_gpt)
    ours = drawn_weights(gpt_decoder(case.config), case.sd).double().eval()
    assert largest(positions_against_full(ours, case)) <= 1e-10


# ---------------------------------------------------------------- who sees whom


@torch.no_grad()
def test_nothing_flows_back():
    """A later token changes nothing that stands before it, in any layer; in BERT it does."""
    config = GptConfig(vocab_size=30, hidden_size=16, num_heads=2, num_layers=3, max_positions=9)
    ids = torch.randint(30, (1, 9), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[0, 5] = (changed[0, 5] + 1) % 30
    for model, back in ((gpt_decoder(config), False), (Encoder(config), True)):
        drawn_weights(model, 0.2).double().eval()
        one, other = (model(x, output_hidden_states=True).hidden_states for x in (ids, changed))
        for layer, (a, b) in enumerate(zip(one, other, strict=True)):
            assert torch.allclose(a[:, :5], b[:, :5], 0, 1e-12) is not (back and layer > 0)
            assert not torch.allclose(a[:, 5:], b[:, 5:])


@torch.no_grad()
def test_the_decoder_reads_the_source_through_its_mask():
    model = drawn_weights(bart(**TINY), 0.2).double().eval()
    source, mask = torch.tensor([[3, 4, 5, 6]]), torch.tensor([[1, 1, 1, 0]])
    written = torch.tensor([[2, 7, 8]])
    logits = model(source, mask, written).logits
    hidden, seen = source.clone(), source.clone()
    hidden[0, 3], seen[0, 2] = 9, 9
    torch.testing.assert_close(model(hidden, mask, written).logits, logits)
    assert not torch.allclose(model(seen, mask, written).logits, logits)
    longer = model(source, mask, torch.tensor([[2, 7, 8, 9]])).logits
    torch.testing.assert_close(longer[:, :3], logits)


TINY: dict[str, Any] = {
    "vocab_size": 20, "hidden_size": 8, "num_heads": 2, "num_layers": 2, "intermediate_size": 12,
    "max_positions": 12,
}  # fmt: skip


# ---------------------------------------------------------------- weights there and back, counts


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("writes", ["gpt2", "bart"])
def test_weights_there_and_back_are_bit_identical(writes: str, dtype: torch.dtype):
    for seed in (1, 2, 3):
        _, ours, theirs = ours_and_theirs(seed, dtype, writes)
        back = (from_gpt2 if writes == "gpt2" else from_bart)(theirs)
        assert same(ours, back) and back.training == ours.training
        assert not {p.data_ptr() for p in back.parameters()} & {
            p.data_ptr() for model in (ours, theirs) for p in model.parameters()
        }


@pytest.mark.parametrize(
    ("size", "printed"),
    [
        ("small", 124_439_808), ("medium", 354_823_168), ("large", 774_030_080),
        ("xl", 1_557_611_200),
    ],
)  # fmt: skip
def test_counts_of_gpt2(size: str, printed: int):
    assert on_meta(partial(gpt, size)) == printed == on_meta(lambda: to_gpt2(gpt(size)))


@pytest.mark.parametrize(("size", "printed"), [("base", 139_420_416), ("large", 406_291_456)])
def test_counts_of_bart(size: str, printed: int):
    assert on_meta(partial(bart, size)) == printed == on_meta(lambda: to_bart(bart(size)))


def test_every_published_size_is_counted():
    assert (len(PUBLISHED["gpt2"]), len(PUBLISHED["bart"])) == (4, 2)


# ---------------------------------------------------------------- the loss, and writing


def test_next_token_labels():
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    assert next_token_labels(ids).tolist()[0] == [6, 7, 8, -100]
    assert next_token_labels(ids, mask).tolist()[1] == [6, -100, -100, -100]
    logits = torch.randn(2, 4, 9, dtype=torch.float64)
    expected = -sum(
        logits.log_softmax(-1)[b, t, ids[b, t + 1]] for b, t in ((0, 0), (0, 1), (0, 2), (1, 0))
    )
    torch.testing.assert_close(next_token_loss(logits, ids, mask), expected / 4)


# ---------------------------------------------------------------- bad input


def test_bad_input():
    model, ids = bart(**TINY), torch.tensor([[3, 4]])
    with pytest.raises(ValueError, match="2 texts to read and 1 to write"):
        model(ids.expand(2, -1), None, ids)
    with pytest.raises(ValueError, match=r"attention_mask of shape \(1, 1\)"):
        model(ids, None, ids, torch.ones(1, 1))
    with pytest.raises(ValueError, match=r"A text of 11 tokens .* at most 10"):
        model(ids, None, torch.full((1, 11), 3))
    writer = gpt(**{**TINY, "max_positions": 10})
    with pytest.raises(ValueError, match="remove_padding=True was given to a decoder"):
        writer(ids, torch.tensor([[1, 0]]), remove_padding=True)
    other = to_gpt2(writer)
    other.config.scale_attn_weights = False
    with pytest.raises(CheckpointError, match="scale_attn_weights=False"):
        from_gpt2(other)
    reader = to_bart(model)
    reader.config.decoder_layers = 3
    with pytest.raises(CheckpointError, match="BART with decoder_layers=3"):
        from_bart(reader)


@pytest.mark.parametrize(
    ("writes", "name"),
    [
        ("gpt2", "lm_head.weight"),
        ("bart", "lm_head.weight"),
        ("bart", "model.encoder.embed_tokens.weight"),
        ("bart", "model.decoder.embed_tokens.weight"),
        ("bart", "final_logits_bias"),
    ],
)
@torch.no_grad()
def test_a_head_of_its_own_is_refused(writes: str, name: str):
    """Equal values are one matrix, whatever tie_word_embeddings says."""
    take = from_gpt2 if writes == "gpt2" else from_bart
    tied = to_gpt2(gpt(**TINY)) if writes == "gpt2" else to_bart(bart(**TINY))
    tied.config.tie_word_embeddings = False
    apart = type(tied)(tied.config)
    apart.load_state_dict(tied.state_dict())
    assert same(take(apart), take(tied))
    apart.state_dict()[name][0, 3] += 1
    with pytest.raises(CheckpointError, match=f"{name} of its own was given; expected"):
        take(apart)


@pytest.mark.parametrize(
    ("writes", "setting", "value"),
    [
        ("gpt2", "add_cross_attention", True),
        ("bart", "encoder_layerdrop", 0.1),
        ("bart", "decoder_layerdrop", 0.1),
    ],
)
def test_what_ours_has_not_is_refused(writes: str, setting: str, value: object):
    theirs = to_gpt2(gpt(**TINY)) if writes == "gpt2" else to_bart(bart(**TINY))
    setattr(theirs.config, setting, value)
    with pytest.raises(CheckpointError, match=f"{setting}={value}"):
        (from_gpt2 if writes == "gpt2" else from_bart)(theirs)
