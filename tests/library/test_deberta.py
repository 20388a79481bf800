"""DeBERTa beside being equal to the reference: the enhanced mask decoder, what is kept at
inference, places of one's own, and what a model without positions cannot see."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checkpoints import CheckpointError, to_transformers
from course_lib.encoder import Block, Encoder, gather_positions
from course_lib.family.deberta import (
    EMPTY_CACHE,
    DebertaConfig,
    DebertaForMaskedLM,
    EnhancedMaskDecoder,
    FusedProjections,
    SeparateProjections,
    deberta,
    deberta_masked_lm,
    deberta_v3,
)
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.disentangled import score_parts
from course_lib.kernels.positions import log_bucket, position_rows
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.sequences import Batch
from course_lib.train.loop import Report, fit

SIZES: dict[str, Any] = {
    "vocab_size": 30, "hidden_size": 12, "num_heads": 3, "num_layers": 2, "intermediate_size": 20,
    "max_positions": 12, "span": 3, "initializer_range": 0.3,
}  # fmt: skip
V2: dict[str, Any] = {"furthest": 6}
IDS = torch.tensor([[2, 9, 8, 7, 3, 11, 3], [2, 5, 6, 3, 0, 0, 0]])
MASK = (IDS != 0).long()
REAL = MASK.bool()
AT = torch.tensor([[0, 2, 6, 2], [0, 1, 3, 0]])
both_generations = pytest.mark.parametrize("generation", [1, 2])
both_cuts = pytest.mark.parametrize("cut", [False, True])


def encoder_of(generation: int = 1, **changes: Any) -> Encoder:
    """Every weight drawn, in float64."""
    torch.manual_seed(generation)
    made = (
        deberta("base", **{**SIZES, **changes})
        if generation == 1
        else deberta_v3("base", **{**SIZES, **V2, **changes})
    )
    return drawn(made)


def drawn(model: Any) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.double().eval()


def words_of(generation: int = 1, **changes: Any) -> DebertaForMaskedLM:
    made = deberta_masked_lm(encoder_of(generation, **changes).float())
    assert isinstance(made, DebertaForMaskedLM)
    return drawn(made)


@torch.no_grad()
def states(encoder: Encoder, ids: Tensor = IDS, mask: Tensor | None = MASK, **more: Any) -> Tensor:
    found: Tensor = encoder(ids, mask, **more).last_hidden_state
    return found


def close(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and bool((first - second).abs().max() <= 1e-11)


# ---------------------------------------------------------------- the enhanced mask decoder


def parts_of(block: Block, head: int) -> dict[str, tuple[Tensor, Any]]:
    """Matrix and bias with which one head reads, by what it makes."""
    projections: Any = block.attention.projections  # type: ignore[union-attr]
    size = 12 // 3
    own = slice(head * size, (head + 1) * size)
    if isinstance(projections, FusedProjections):
        start = 3 * head * size
        q, k, v = (
            projections.fused.weight[start + i * size : start + (i + 1) * size] for i in range(3)
        )
        pk, pq = projections.position_key, projections.position_query
        assert pk is not None and pq is not None
        return {
            "query": (q, projections.query_bias[own]),
            "key": (k, 0.0),
            "value": (v, projections.value_bias[own]),
            "position key": (pk.weight[own], 0.0),
            "position query": (pq.weight[own], pq.bias[own]),
        }
    assert isinstance(projections, SeparateProjections)
    made = {
        name: (part.weight[own], part.bias[own])
        for name, part in projections.named_children()
        if isinstance(part, nn.Linear)
    }
    return {**made, "position key": made["key"], "position query": made["query"]}


def block_by_hand(encoder: Encoder, asking: Tensor, x: Tensor) -> Tensor:
    """The last block for one text (T, H), pair by pair: `asking` asks, x answers."""
    stack: Any = encoder.stack
    block, positions = stack.blocks[-1], stack.positions()
    rows = stack.positions.rows(len(x)).tolist()
    mixed = []
    for head in range(3):
        part = parts_of(block, head)

        def made(name: str, vectors: Tensor, part: dict[str, Any] = part) -> Tensor:
            matrix, bias = part[name]
            return vectors @ matrix.T + bias

        q, key, value = made("query", asking), made("key", x), made("value", x)
        to_key, to_query = made("position key", positions), made("position query", positions)
        scores = torch.stack([
            torch.stack([
                q[i] @ key[j]
                + q[i] @ to_key[rows[i - j + len(x) - 1]]
                + key[j] @ to_query[rows[i - j + len(x) - 1]]
                for j in range(len(x))
            ])
            for i in range(len(x))
        ])  # fmt: skip
        mixed.append((scores / math.sqrt(3 * q.shape[1])).softmax(-1) @ value)
    y = block.attention_norm(asking + block.attention.output(torch.cat(mixed, -1)))
    wide = F.gelu(block.feed_forward.expand(y))
    return block.output_norm(y + block.feed_forward.contract(wide))  # type: ignore[no-any-return]


def decoded_by_hand(model: DebertaForMaskedLM, visits: int) -> list[Tensor]:
    """For each text what the words are read from: [T vectors] of its real tokens."""
    found = []
    for ids, mask in zip(IDS, REAL, strict=True):
        text = ids[mask][None]
        before = model.encoder(text, output_hidden_states=True).hidden_states[-2][0]  # H(L − 1)
        asking = before + model.decoder.position.weight[: len(before)]
        for _ in range(visits):
            asking = block_by_hand(model.encoder, asking, before)
        found.append(asking)
    return found


@both_generations
@pytest.mark.parametrize("visits", [1, 2, 3])
def test_the_decoder_by_hand(generation: int, visits: int):
    """Section 3.2 and appendix A.8: queries begin as position + H(L − 1), keys and values stay.

    Values, and the gradient of every weight: nothing is cut off anywhere on the way."""
    model = words_of(generation)
    model.decoder.visits = visits
    whole = model(IDS, MASK).logits
    by_hand = [model.mlm(x) for x in decoded_by_hand(model, visits)]
    for logits, mask, expected in zip(whole, REAL, by_hand, strict=True):
        assert close(logits[mask], expected)
    parameters = dict(model.named_parameters())
    results = []
    for loss in (whole[REAL].square().mean(), torch.cat(by_hand).square().mean()):
        results.append(torch.autograd.grad(loss, list(parameters.values())))
    for name, one, other in zip(parameters, *results, strict=True):
        assert one.abs().max() > 0 and (one - other).abs().max() <= 1e-10, name


def test_visits_change_the_answer_and_without_positions_one_visit_is_the_last_block():
    model = words_of()
    answers = []
    for visits in (1, 2, 3):
        model.decoder.visits = visits
        with torch.no_grad():
            answers.append(model(IDS, MASK).logits[REAL])
    assert not close(answers[0], answers[1]) and not close(answers[1], answers[2])
    model.decoder.visits = 1
    with torch.no_grad():
        model.decoder.position.weight.zero_()
        plain = model.mlm(model.encoder(IDS, MASK).last_hidden_state)
        assert close(model(IDS, MASK).logits[REAL], plain[REAL])


@both_generations
def test_the_decoder_at_some_positions(generation: int):
    model = words_of(generation)
    last: Any = model.encoder.stack.blocks[-1]  # type: ignore[union-attr, index]
    with torch.no_grad():
        x = model.encoder(IDS, MASK, output_hidden_states=True).hidden_states[-2]
        full = model.decoder(x, last, MASK)
        assert full.shape == x.shape
        assert close(model.decoder(x, last, MASK, AT), gather_positions(full, AT))


@both_generations
def test_predict_at_is_all_positions_then_selected(generation: int):
    model = words_of(generation)
    at = torch.tensor([1, 4, 6, 8])
    full, part = model(IDS, MASK).logits, model(IDS, MASK, predict_at=at).logits
    assert close(part, full.flatten(0, 1)[at])
    parameters = list(model.parameters())
    grads = [
        torch.autograd.grad(x.square().sum(), parameters) for x in (full.flatten(0, 1)[at], part)
    ]
    for one, other in zip(*grads, strict=True):
        assert (one - other).abs().max() <= 1e-10


def test_the_position_table_learns_from_positions_that_are_there():
    model = words_of()
    model(IDS, MASK).logits[REAL].square().sum().backward()
    grad = model.decoder.position.weight.grad
    assert grad is not None and (grad[:7].abs().amax(1) > 0).all() and not grad[7:].any()


def test_states_are_handed_out_only_where_asked():
    model = words_of()
    with torch.no_grad():
        out = model(IDS, MASK, output_attentions=True)
        assert len(out.attentions) == 2 and out.attentions[0].shape == (2, 3, 7, 7)
        assert close(out.attentions[0].sum(-1)[0], torch.ones(3, 7).double())


def test_with_and_without_the_decoder():
    encoder = encoder_of().float()
    plain = deberta_masked_lm(encoder, decoder=False)
    assert isinstance(plain, BertForMaskedLM) and plain.encoder is encoder
    whole = deberta_masked_lm(encoder)
    assert isinstance(whole, DebertaForMaskedLM) and whole.decoder.visits == 2
    spread = whole.decoder.position.weight.std().item()
    assert abs(spread - 0.3) < 0.1
    more = sum(p.numel() for p in whole.parameters()) - sum(p.numel() for p in plain.parameters())
    assert more == 12 * 12 == EnhancedMaskDecoder(encoder.config).position.weight.numel()  # type: ignore[arg-type]


# ---------------------------------------------------------------- positions kept at inference


def attentions(encoder: Encoder) -> Iterator[Any]:
    yield from (block.attention for block in encoder.stack.blocks)  # type: ignore[union-attr]


def uncached(encoder: Encoder) -> Tensor:
    """With gradients, nothing is kept."""
    found: Tensor = encoder(IDS, MASK).last_hidden_state.detach()
    return found


@both_generations
def test_positions_are_kept_and_give_the_same_answer(generation: int):
    encoder = encoder_of(generation)
    first = states(encoder)
    kept = [a._cache[1] for a in attentions(encoder)]
    assert all(pair[0] is not None for pair in kept)
    assert torch.equal(states(encoder), first) and close(first, uncached(encoder))
    for attention, pair in zip(attentions(encoder), kept, strict=True):
        assert attention._cache[1] is pair  # the second pass computed none of them


@both_generations
@pytest.mark.parametrize("change", ["step", "load", "in place", "table alone", "data"])
def test_what_is_kept_is_renewed(generation: int, change: str):
    encoder = encoder_of(generation)
    before = states(encoder)
    if change == "step":
        optimizer = torch.optim.AdamW(encoder.parameters(), lr=0.1)
        encoder(IDS, MASK).last_hidden_state[..., 0].sum().backward()
        optimizer.step()
    elif change == "load":
        other = {n: v + 0.1 * torch.randn_like(v) for n, v in encoder.state_dict().items()}
        encoder.load_state_dict(other)
    else:
        stack: Any = encoder.stack
        weights = (
            [stack.positions.table.weight] if change == "table alone" else encoder.parameters()
        )
        with torch.no_grad():
            for parameter in weights:
                edited = parameter.data if change == "data" else parameter  # torch counts no edit
                edited.mul_(torch.rand_like(parameter))
    after = states(encoder)
    assert not close(after[REAL], before[REAL]) and close(after, uncached(encoder))


@both_generations
def test_a_model_evaluated_while_it_is_trained_answers_as_a_fresh_one(generation: int):
    """With the course's own optimizer, whose fused step torch does not count as an edit."""
    encoder = encoder_of(generation).float()
    model = deberta_masked_lm(encoder)
    answers: list[Tensor] = []

    def look(report: Report) -> None:
        with torch.no_grad():
            answers.append(report.model.eval()(IDS, MASK).logits[REAL])
            fresh = copy.deepcopy(model)
            for attention in attentions(fresh.encoder):
                attention._cache = EMPTY_CACHE
            assert torch.allclose(fresh.eval()(IDS, MASK).logits[REAL], answers[-1], atol=1e-5)
        report.model.train()

    at = torch.tensor([1, 2, 8])  # positions of the flat batch
    batch = Batch(
        {"input_ids": IDS, "attention_mask": MASK, "predict_at": at},
        {"labels": IDS.flatten()[at]},
    )
    fit(model, masked_lm_loss, lambda step: batch, steps=3, learning_rate=0.1, callbacks=[look])
    assert len(answers) == 3
    assert all((a - b).abs().max() > 1e-2 for a, b in pairwise(answers))


@both_generations
def test_what_is_kept_follows_the_number_format(generation: int):
    encoder = encoder_of(generation)
    wide = states(encoder)
    encoder.float()
    assert states(encoder).dtype == torch.float32
    assert (states(encoder) - wide).abs().max() < 1e-4
    encoder.double()
    assert (states(encoder) - wide).abs().max() < 1e-4 and close(states(encoder), uncached(encoder))
    assert next(attentions(encoder))._cache[1][0].dtype == torch.float64


@both_generations
def test_what_is_kept_under_autocast(generation: int):
    """The same as of a model that kept nothing, in both formats, one after the other."""
    encoder = encoder_of(generation).float()
    fresh = [copy.deepcopy(encoder) for _ in range(2)]
    plain = states(fresh[0])
    with torch.autocast("cpu", torch.bfloat16):
        short = states(fresh[1])
    apart = (plain - short.float()).abs().max()  # what the formats make of one model
    assert apart > 1e-3
    for _ in range(2):
        torch.testing.assert_close(states(encoder), plain)
        with torch.autocast("cpu", torch.bfloat16):
            assert (states(encoder).float() - short.float()).abs().max() <= apart / 4
            assert next(attentions(encoder))._cache[1][0].dtype == torch.bfloat16


@both_generations
def test_a_model_made_in_inference_mode(generation: int):
    with torch.inference_mode():
        encoder = encoder_of(generation)
        before = states(encoder)
        assert torch.equal(states(encoder), before)
        for parameter in encoder.parameters():
            parameter.mul_(0.5)
        assert not close(states(encoder)[REAL], before[REAL])


def test_one_number_is_enough_to_renew():
    encoder = encoder_of()
    attention = next(attentions(encoder))
    before = states(encoder)
    attention.projections.position_key.weight.data[0, 0] += 0.5
    assert not close(states(encoder)[REAL], before[REAL])


def test_nothing_is_kept_in_training():
    """Dropout on the table of distances is drawn anew every time."""
    encoder = encoder_of(hidden_dropout=0.4)
    encoder.train()
    attention = next(attentions(encoder))
    x = torch.zeros(1, 1, 12, dtype=torch.float64)
    with torch.no_grad():
        first, second = attention.project_positions(x)[0], attention.project_positions(x)[0]
    assert not torch.equal(first, second) and attention._cache is EMPTY_CACHE
    encoder(IDS, MASK)
    encoder.eval()
    encoder(IDS, MASK)
    assert attention._cache is EMPTY_CACHE
    with torch.no_grad():
        assert torch.equal(attention.project_positions(x)[0], attention.project_positions(x)[0])


def test_a_copy_keeps_its_own():
    encoder = encoder_of()
    before = states(encoder)
    other = copy.deepcopy(encoder)
    stack: Any = other.stack
    with torch.no_grad():
        stack.positions.table.weight.mul_(2)
    assert not close(states(other), before) and torch.equal(states(encoder), before)
    names = [n for n, _ in encoder.named_parameters() if "positions." in n]
    assert names == ["stack.positions.table.weight"]  # once, not in every layer


# ---------------------------------------------------------------- the last layer at some places


@pytest.mark.parametrize(
    ("generation", "changes"),
    [
        (1, {}),
        *((2, {"convolution": c, "num_layers": layers}) for c in (0, 3) for layers in (1, 3)),
    ],
)
def test_output_positions_are_gathered_afterwards(generation: int, changes: dict[str, int]):
    encoder = encoder_of(generation, **changes)
    assert close(states(encoder, output_positions=AT), gather_positions(states(encoder), AT))


# ---------------------------------------------------------------- what positions are good for

ORDER = torch.tensor([3, 0, 6, 2, 5, 1, 4])
TEXT = torch.tensor([[2, 9, 8, 7, 3, 11, 4]])


@both_generations
@pytest.mark.parametrize("terms", [(), ("c2p",), ("p2c",), ("c2p", "p2c")])
def test_order_is_seen_through_the_terms_alone(generation: int, terms: tuple[str, ...]):
    encoder = encoder_of(generation, terms=terms)
    assert encoder.embeddings.position is None
    moved = states(encoder, TEXT[:, ORDER], None)
    assert close(moved, states(encoder, TEXT, None)[:, ORDER]) == (terms == ())


def test_the_convolution_sees_order_by_itself():
    encoder = encoder_of(2, terms=(), convolution=3)
    moved = states(encoder, TEXT[:, ORDER], None)
    assert not close(moved, states(encoder, TEXT, None)[:, ORDER])


PADDING = torch.zeros(1, 3, dtype=torch.long)
LATER = torch.cat([PADDING, TEXT], 1)
LATER_MASK = torch.cat([PADDING, torch.ones_like(TEXT)], 1)


@pytest.mark.parametrize(
    ("generation", "changes"), [(1, {}), (2, {}), (2, {"convolution": 3}), (1, {"num_layers": 1})]
)
def test_only_distances_count(generation: int, changes: dict[str, Any]):
    """The same text three places further on, after padding: the same states."""
    encoder = encoder_of(generation, **changes)
    assert close(states(encoder, LATER, LATER_MASK)[:, 3:], states(encoder, TEXT, None))


def test_the_decoder_knows_positions():
    """And with it, the same text further on is another text."""
    model = words_of()
    with torch.no_grad():
        assert not close(model(LATER, LATER_MASK).logits[:, 3:], model(TEXT).logits)


# ---------------------------------------------------------------- which row a distance has


@pytest.mark.parametrize("buckets", [2, 3, 6, 7, 10, 11, 32, 64, 256])
def test_buckets(buckets: int):
    """The same bucket for every distance; for furthest − 1 the last one, to the last bit."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.models.deberta_v2.modeling_deberta_v2.make_log_bucket_position
    for furthest in (*range(buckets // 2 + 2, buckets // 2 + 40), 128, 512, 1000):
        if furthest - 1 <= buckets // 2:
            continue
        distances = torch.arange(-furthest, furthest + 1)
        found = log_bucket(distances, buckets, furthest)
        assert torch.equal(found, theirs(distances, buckets, furthest).long())
        assert torch.equal(found, -found.flip(0))
        ends = log_bucket(torch.tensor([1 - furthest, furthest - 1]), buckets, furthest)
        last = max(1, 2 * (buckets // 2) - 1)  # k − 1, if k is even
        assert ends.tolist() == [-last, last]
        rows = position_rows(furthest, buckets, furthest)
        assert ((rows[1:] - rows[:-1]) >= 0).all() and rows.max() < 2 * buckets


def test_terms_read_from_a_file_are_a_tuple_again():
    config = DebertaConfig(terms=["c2p"])  # type: ignore[arg-type]
    assert config.terms == ("c2p",) and hash(config) == hash(DebertaConfig(terms=("c2p",)))


def test_segments_are_there_where_the_configuration_says_so():
    encoder = encoder_of(type_vocab_size=2)
    types = (torch.arange(7) > 3).long().expand_as(IDS)
    assert not close(states(encoder), states(encoder, token_type_ids=types))


# ---------------------------------------------------------------- beyond the furthest distance


def authors_row(distance: int, k: int, furthest: int) -> int:
    """One distance by the authors' rule, number by number: first cut, then put into a bucket."""
    size = min(abs(distance), furthest - 1)
    if size > k // 2:
        fraction = math.log(size / (k // 2)) / math.log((furthest - 1) / (k // 2))
        size = k // 2 + math.ceil(round(fraction * (k // 2 - 1), 6))
    return k + (size if distance > 0 else -size)


@pytest.mark.parametrize(("k", "furthest"), [(4, 6), (8, 33), (16, 40), (256, 512)])
def test_beyond_furthest_there_are_two_rules(k: int, furthest: int):
    """transformers' by default, against its own function; the authors', against a plain version.
    Up to furthest − 1 they are one."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.models.deberta_v2.modeling_deberta_v2.make_log_bucket_position
    tokens = 3 * furthest
    d = torch.arange(1 - tokens, tokens)
    rows, cut = (position_rows(tokens, k, furthest, one) for one in (False, True))
    assert torch.equal(rows, (theirs(d, k, furthest).long() + k).clamp(0, 2 * k - 1))
    assert cut.tolist() == [authors_row(one, k, furthest) for one in d.tolist()]
    differ = d[rows != cut]
    assert differ.max() == -furthest and len(differ) == tokens - furthest  # the far end, one side
    assert rows[rows != cut].unique().tolist() == [0] and cut[rows != cut].unique().tolist() == [1]
    known = position_rows(furthest, k, furthest)
    assert 0 not in known and 1 in known  # row 0 is never trained by texts of that length


@pytest.mark.parametrize("path", ["reference", "gathered", "skewed"])
def test_the_rules_differ_in_texts_longer_than_furthest_alone(path: str):
    long = {"max_positions": 24, "span": 4, "furthest": 8, "kernels": path}
    ours, authors = (encoder_of(2, **long, cut_at_furthest=cut) for cut in (False, True))
    authors.load_state_dict(ours.state_dict())
    ids = torch.arange(3, 27)[None]
    assert close(states(ours, ids[:, :8], None), states(authors, ids[:, :8], None))
    assert not close(states(ours, ids, None), states(authors, ids, None))


@both_cuts
def test_a_long_text_is_what_the_rows_say(cut: bool):
    """A block of one head by hand, pair by pair, with the row of each distance by a plain rule."""
    encoder = encoder_of(2, num_layers=1, num_heads=1, max_positions=20, span=4, furthest=8,
                         cut_at_furthest=cut, terms=("c2p",))  # fmt: skip
    ids = torch.arange(3, 23)[None]
    attention = next(attentions(encoder))
    with torch.no_grad():
        x = encoder.embeddings(ids)
        q, k, _ = (y[0, 0] for y in attention.projections(x, None))
        stack: Any = encoder.stack
        table = attention.project(stack.positions())[0][0]
        rows = [[authors_row(i - j, 4, 8) if cut or i - j > -8 else 0 for j in range(20)]
                for i in range(20)]  # fmt: skip
        by_hand = torch.stack([
            torch.stack([q[i] @ (k[j] + table[rows[i][j]]) for j in range(20)]) for i in range(20)
        ])  # fmt: skip
        out = encoder(ids, output_attention_scores=True)
    assert close(out.attention_scores[0][0, 0], by_hand / math.sqrt(2 * 12))


def test_transformers_has_no_such_switch():
    with pytest.raises(CheckpointError, match="cut_at_furthest=True"):
        to_transformers(deberta_v3("base", **{**SIZES, **V2}, cut_at_furthest=True))


def test_the_rows_of_distances_stay_where_no_gpu_is_waited_for():
    """Read as numbers in every layer, of a model on any device; each length once."""
    with torch.device("meta"):
        stack: Any = deberta("base", num_layers=1, vocab_size=20, hidden_size=8, num_heads=2).stack
        rows = stack.positions.rows(6)
    assert rows.device.type == "cpu" and rows is stack.positions.rows(6)
    given = [torch.randn(1, 2, 6, 4, device="meta") for _ in range(2)]
    tables = [torch.randn(2, 12, 4, device="meta") for _ in range(2)]
    for part in score_parts(*given, *tables, rows):
        assert part is not None and part.device.type == "meta" and part.shape == (1, 2, 6, 6)
