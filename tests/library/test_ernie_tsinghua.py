"""Tsinghua's ERNIE: equal to a plain version, token by token, written from the paper's equations;
the alignments that are spoilt and restored."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from parity import distance, drawn_weights
from torch import Tensor

from course_lib.encoder import Encoder, count_parameters
from course_lib.family.ernie_tsinghua import (
    FusionConfig,
    FusionEncoder,
    FusionForPreTraining,
)
from course_lib.objectives.entity_alignment import (
    alignment_batches,
    alignment_loss,
    entity_targets,
    spoil_alignments,
)
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences, SpecialIds

LAYERS = ("text", "mix", "fusion", "fusion")
SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)
K = 9  # entities


def settings(**changes: Any) -> FusionConfig:
    return FusionConfig(
        **{
            **dict(
                vocab_size=40, hidden_size=18, num_heads=3, num_layers=4, intermediate_size=21,
                max_positions=20, entity_size=10, entity_heads=2, layers=LAYERS,
                hidden_dropout=0.0, attention_dropout=0.0,
            ),
            **changes,
        }
    )  # fmt: skip


def drawn(seed: int = 0, pooler: bool = True, **changes: Any) -> FusionForPreTraining:
    make = torch.Generator().manual_seed(seed)
    config = settings(**changes)
    vectors = torch.randn(K, config.entity_size, generator=make)
    model = FusionForPreTraining(FusionEncoder(config, vectors, pooler))
    return drawn_weights(model, 0.3).double().eval()


def drawn_batch(seed: int) -> dict[str, Tensor]:
    """Texts of several lengths; mentions of one to three tokens; one text without a mention."""
    make = torch.Generator().manual_seed(seed)
    B, T = 4, 12
    lengths = torch.tensor([12, 9, 7, 5])
    real = torch.arange(T) < lengths[:, None]
    entities = torch.full((B, T), -1)
    for b, start, stop, entity in (
        (0, 1, 4, 3),
        (0, 5, 6, 8),
        (0, 9, 11, 3),
        (1, 2, 4, 0),
        (2, 6, 7, 5),
    ):
        entities[b, start:stop] = entity
    return {
        "input_ids": torch.randint(5, 40, (B, T), generator=make),
        "attention_mask": real.long(),
        "token_type_ids": torch.randint(2, (B, T), generator=make),
        "entity_ids": entities,
    }  # fmt: skip


# ---------------------------------------------------------------- the plain version


def plain_attention(x: Tensor, real: Tensor, part: Any, heads: int) -> Tensor:
    """One text (T, H), head by head, query by query."""
    q, k, v = (F.linear(x, p.weight, p.bias) for p in (part.query, part.key, part.value))
    D = x.shape[1] // heads
    rows = []
    for i in range(len(x)):
        pieces = []
        for a in range(heads):
            at = slice(a * D, (a + 1) * D)
            scores = torch.stack([q[i, at] @ k[j, at] / math.sqrt(D) for j in real])
            weights = torch.exp(scores) / torch.exp(scores).sum()
            pieces.append(sum(w * v[j, at] for w, j in zip(weights, real, strict=True)))
        rows.append(torch.cat(pieces))
    return F.linear(torch.stack(rows), part.output.weight, part.output.bias)


def plain_norm(x: Tensor, part: Any) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return (
        part.weight * centred / (centred.pow(2).mean(-1, keepdim=True) + part.eps).sqrt()
        + part.bias
    )


def plain_gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def plain_model(
    model: FusionForPreTraining, batch: dict[str, Tensor], b: int
) -> tuple[Tensor, Tensor]:
    """Text b alone: states of its tokens (T, H), and of its entities (T, E), by the equations."""
    encoder, config = model.encoder, model.config
    n = int(batch["attention_mask"][b].sum())
    tables = encoder.embeddings
    x = plain_norm(
        tables.token.weight[batch["input_ids"][b, :n]]
        + tables.position.weight[:n]
        + tables.segment.weight[batch["token_type_ids"][b, :n]],
        tables.norm,
    )
    ids = batch["entity_ids"][b, :n].tolist()
    linked = [t for t in range(n) if ids[t] >= 0]
    entity = {t: encoder.entities[ids[t]] for t in linked}
    for kind, block in zip(config.layers, encoder.blocks, strict=True):
        x = plain_norm(
            x + plain_attention(x, list(range(n)), block.attention, config.num_heads),
            block.attention_norm,
        )
        if kind == "text":
            part = block.feed_forward
            inner = plain_gelu(F.linear(x, part.expand.weight, part.expand.bias))
            x = plain_norm(
                x + F.linear(inner, part.contract.weight, part.contract.bias), block.output_norm
            )
            continue
        if kind == "fusion" and linked:
            rows = torch.stack([entity[t] for t in linked])
            mixed = plain_attention(
                rows, list(range(len(linked))), block.entity_attention, config.entity_heads
            )
            rows = plain_norm(rows + mixed, block.entity_attention_norm)
            entity = dict(zip(linked, rows, strict=True))
        states = []
        for t in range(n):
            inner = block.text_in.weight @ x[t] + block.text_in.bias
            if t in entity:
                inner = inner + block.entity_in.weight @ entity[t]
            h = plain_gelu(inner)
            states.append(
                plain_norm(x[t] + block.text_out.weight @ h + block.text_out.bias, block.text_norm)
            )
            if t in entity:
                out = block.entity_out.weight @ h + block.entity_out.bias
                entity[t] = plain_norm(entity[t] + out, block.entity_norm)
        x = torch.stack(states)
    e = torch.zeros(n, config.entity_size, dtype=x.dtype)
    for t, value in entity.items():
        e[t] = value
    return x, e


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_the_equations(seed: int):
    """Outputs and gradients, in float64; dEA's logits too."""
    model, batch = drawn(seed), drawn_batch(seed)
    out = model.encoder(**batch)
    loss, plain_loss = torch.zeros(()).double(), torch.zeros(()).double()
    for b in range(4):
        n = int(batch["attention_mask"][b].sum())
        x, e = plain_model(model, batch, b)
        assert distance(out.last_hidden_state[b, :n], x) <= 1e-10
        assert distance(out.entity_state[b, :n], e) <= 1e-10
        ours = torch.cat(
            [out.last_hidden_state[b, :n].flatten(), out.entity_state[b, :n].flatten()]
        )
        plain_loss = plain_loss + torch.cat([x.flatten(), e.flatten()]).sin().mean()
        loss = loss + ours.sin().mean()
    ours = torch.autograd.grad(loss, list(model.encoder.parameters()), allow_unused=True)
    plain = torch.autograd.grad(plain_loss, list(model.encoder.parameters()), allow_unused=True)
    largest = max(float(g.abs().max()) for g in plain if g is not None)
    for g, p in zip(ours, plain, strict=True):
        assert (g is None) == (p is None) or not (g if p is None else p).any()
        if g is not None and p is not None:
            assert (g - p).abs().max() <= 1e-10 * largest

    at, candidates, _ = entity_targets(batch["entity_ids"])
    logits = model(**batch, align_at=at, candidates=candidates).entity_logits
    flat, head = out.last_hidden_state.flatten(0, 1), model.dea
    for i, position in enumerate(at.tolist()):
        answer = plain_norm(
            plain_gelu(head.dense.weight @ flat[position] + head.dense.bias), head.norm
        )
        for j, entity in enumerate(candidates.tolist()):
            assert distance(logits[i, j], answer @ model.encoder.entities[entity]) <= 1e-10


@torch.no_grad()
def test_the_comparison_sees_a_difference():
    model, batch = drawn(1), drawn_batch(1)
    model.encoder.blocks[1].entity_in.weight[0, 0] += 1e-2
    before = drawn(1).encoder(**batch).last_hidden_state
    assert distance(model.encoder(**batch).last_hidden_state[0, 1:4], before[0, 1:4]) > 1e-6


@torch.no_grad()
def test_what_reaches_what():
    """Without entities it is a text model; entities reach other tokens' entities in "fusion" alone;
    an entity of one text reaches no other text."""
    model, batch = drawn(2), drawn_batch(2)
    alone = {**batch, "entity_ids": torch.full_like(batch["entity_ids"], -1)}
    plain = model.encoder(**alone)
    assert not plain.entity_state.any()
    assert (
        distance(
            plain.last_hidden_state,
            model.encoder(**{**alone, "entity_ids": None}).last_hidden_state,
        )
        == 0
    )
    with_entities = model.encoder(**batch)
    real = batch["attention_mask"].bool()
    moved = (with_entities.last_hidden_state - plain.last_hidden_state).abs().amax(-1)
    assert not moved[3][real[3]].any() and (moved[:3][real[:3]] > 0).all()

    changed = {**batch, "entity_ids": batch["entity_ids"].clone()}
    changed["entity_ids"][0, 5] = 7
    for layers, seen in ((("mix",), False), (("fusion",), True)):
        one = drawn(3, num_layers=1, layers=layers)
        states = [one.encoder(**b).entity_state[0] for b in (batch, changed)]
        difference = (states[0] - states[1]).abs().amax(-1)
        assert difference[5] > 0 and bool(difference[1:4].any()) == seen


def test_how_large_it_is():
    """The paper's 114M: BERT-base's, and in six layers a second, narrow stream."""
    with torch.device("meta"):
        model = FusionForPreTraining(FusionEncoder(FusionConfig(), pooler=True))
    stream = (
        4 * (100 * 100 + 100) + 200 + 2 * 3_072 * 100 + 100 + 200
    )  # attention, in and out, norms
    head = 768 * 100 + 100 + 200
    assert count_parameters(model) == 110_106_428 + 6 * stream + head == 114_115_328
    narrow = settings(num_layers=2, layers=("text", "text"))
    plain = count_parameters(FusionEncoder(narrow))
    assert plain == count_parameters(Encoder(narrow))


# ---------------------------------------------------------------- dEA


def test_how_often_alignments_are_spoilt():
    ids = torch.full((400, 30), -1)
    for start in (1, 6, 11, 20):
        ids[:, start : start + 3] = start % K
    spoilt = spoil_alignments(ids, K, torch.Generator().manual_seed(0))
    assert (spoilt[ids < 0] == -1).all()
    draws = Counter()
    for start in (1, 6, 11, 20):
        before, after = ids[:, start : start + 3], spoilt[:, start : start + 3]
        assert (after == after[:, :1]).all()  # a mention as a whole
        draws["gone"] += int((after[:, 0] < 0).sum())
        draws["kept"] += int((after[:, 0] == before[:, 0]).sum())
    draws["other"] = 1_600 - draws.total()
    for what, p in (("other", 0.05), ("gone", 0.15), ("kept", 0.8)):
        assert abs(draws[what] - 1_600 * p) < 4 * math.sqrt(1_600 * p * (1 - p))
    assert torch.equal(spoil_alignments(ids, K, torch.Generator(), (0.0, 0.0, 1.0)), ids)


def test_the_batch_and_its_loss():
    rows = 24
    make = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 40, (rows, 10), generator=make)
    ids[:, 0], ids[:, -1] = SPECIAL.cls, SPECIAL.sep
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    entity_ids = torch.full_like(ids, -1)
    entity_ids[:, 2:4] = torch.arange(rows)[:, None] % K
    batches = alignment_batches(sequences, SPECIAL, entity_ids, K, batch_size=8, seed=5)
    inputs, targets = batches(3)
    again, same = batches(3)
    assert (
        all(torch.equal(inputs[n], again[n]) for n in inputs)
        and "next_sentence_label" not in targets
    )
    words, _ = pretraining_batches(sequences, SPECIAL, batch_size=8, seed=5)(3)
    assert torch.equal(words["input_ids"], inputs["input_ids"])  # masks of words know no entities
    right = inputs["candidates"][targets["entity"]]
    assert len(inputs["candidates"]) == len(set(right.tolist())) <= 8
    kept = inputs["entity_ids"].flatten()[inputs["align_at"]]
    assert 0 < (kept == right).sum() <= len(right) == 16
    assert torch.equal(same["entity"], targets["entity"])

    model = drawn(0, pooler=False).float()
    losses = alignment_loss(model(**inputs), targets)
    assert set(losses) == {"total", "mlm", "dea"}
    assert torch.isclose(losses["total"], losses["mlm"] + losses["dea"])
    expected = F.cross_entropy(model(**inputs).entity_logits, targets["entity"])
    assert torch.isclose(losses["dea"], expected)
    labels = torch.arange(rows) % 2
    paired = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids), labels)
    inputs, targets = alignment_batches(paired, SPECIAL, entity_ids, K, batch_size=8)(0)
    losses = alignment_loss(drawn(0).float()(**inputs), targets)
    assert set(losses) == {"total", "mlm", "dea", "nsp"}


def test_a_batch_without_entities_has_no_dea():
    ids = torch.randint(5, 40, (8, 10), generator=torch.Generator().manual_seed(1))
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    batch = alignment_batches(sequences, SPECIAL, torch.full_like(ids, -1), K, batch_size=8)(0)
    losses = alignment_loss(drawn(0, pooler=False).float()(**batch.inputs), batch.targets)
    assert set(losses) == {"total", "mlm"} and bool(losses["total"].isfinite())


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"entity_size": 11}, r"entity_size=11 cannot be shared out to entity_heads=2"),
        ({"entity_heads": 0}, r"entity_heads=0 was given; expected a whole number of at least 1"),
        ({"num_layers": 3}, r"for num_layers=3; expected as many, each one of text, mix, fusion"),
        ({"layers": ("text", "mix", "fuse", "text")}, r"'fuse'.* expected as many, each one of"),
    ],
)
def test_settings_that_do_not_fit(changes: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        settings(**changes)


def test_entities_that_do_not_fit():
    with pytest.raises(ValueError, match=r"shape \(9, 7\) were given; expected \(entities, 10\)"):
        FusionEncoder(settings(), torch.zeros(9, 7))
    model, batch = drawn(0), drawn_batch(0)
    for entity in (K, -2):
        wrong = {**batch, "entity_ids": torch.full_like(batch["entity_ids"], entity)}
        with pytest.raises(
            ValueError, match=rf"from {entity} to {entity} .* below {K}\. A mention"
        ):
            model(**wrong)
    with pytest.raises(ValueError, match=r"entity_ids of shape \(4, 5\) .* input_ids, \(4, 12\)"):
        model(**{**batch, "entity_ids": batch["entity_ids"][:, :5]})
    sequences = PackedSequences(
        *(batch[n] for n in ("input_ids", "attention_mask", "token_type_ids"))
    )
    with pytest.raises(ValueError, match=r"shape \(2, 12\) .* Link the sequences after packing"):
        alignment_batches(sequences, SPECIAL, batch["entity_ids"][:2], K, batch_size=2)
