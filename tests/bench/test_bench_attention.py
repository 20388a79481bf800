"""The attention benches compare the same arithmetic, and say what they measured."""

from __future__ import annotations

import pytest
import torch

from course_lib.bench import Measured, attention, disentangled
from course_lib.checkpoints import from_transformers

TINY = {"num_layers": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32}


@pytest.mark.parametrize("training", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_way_of_attending_gives_the_same(monkeypatch, precision, training):
    monkeypatch.setattr(attention, "TOKENS", 32)
    found = []

    def watched(attend, *settings):
        def call(*given):
            found.append((attend(*given), given))
            return found[-1][0]

        return working(call, *settings)

    working = attention.working
    monkeypatch.setattr(attention, "working", watched)
    for contender in attention.contenders(8, precision, training):
        assert contender.tokens == 32
        step = contender.make()
        step()
        step()  # gradients begin anew
    assert len(found) == 8
    bound = {"float32": 1e-5, "bfloat16": 5e-2}[precision]
    (first, leaves), others = found[0], found[1:]
    assert first.shape == (4, 12, 8, 64) and first.requires_grad == training
    for mixed, given in others:
        assert (mixed - first).abs().max() <= bound
        for a, b in zip(given, leaves, strict=True):
            if training:
                assert (a.grad - b.grad).abs().max() <= bound * max(1, b.grad.abs().max().item())


def test_dropout_is_on_where_the_table_says_so(monkeypatch):
    monkeypatch.setattr(attention, "TOKENS", 64)
    x = [torch.randn(2, 12, 32, 64) for _ in range(3)]
    for kind in ("eager", "sdpa"):
        off, on = attention.peer(kind, 0.0), attention.peer(kind, 0.5)
        assert torch.equal(off(*x), off(*x)) and not torch.equal(on(*x), on(*x))
    for contender in attention.contenders(32, "float32", True, 0.5):
        contender.make()()


def test_the_remark_names_the_quicker_path():
    results = [Measured(n, [r] * 2) for n, r in zip("abcd", (10, 20, 15, 30), strict=True)]
    said = attention.remark(results, {})
    assert "fused is quicker, 2.00×" in said and "best 1.50×" in said


def test_both_deberta_have_the_same_weights():
    """Ours, filled with the peer's, so that sizes and settings are known to be the same."""
    peer = disentangled.peer_deberta(TINY).eval()
    ids = torch.arange(5, 45).view(2, 20)
    ours = from_transformers(peer)
    with torch.no_grad():
        a, b = (m(ids).last_hidden_state for m in (ours, peer))
    assert (a - b).abs().max() < 1e-5
    made = disentangled.deberta_v3(vocab_size=disentangled.SPECIAL.vocab_size, **TINY)
    same = ("span", "furthest", "terms", "shared_projections", "normed_positions", "convolution")
    assert all(getattr(made.config, name) == getattr(ours.config, name) for name in same)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("what", disentangled.STEPS)
def test_every_disentangled_contender_does_its_work(what, precision):
    names = [c.name for c in disentangled.contenders(what, precision, 2, 10, TINY)]
    assert len(set(names)) == 4
    for contender in disentangled.contenders(what, precision, 2, 10, TINY):
        assert contender.tokens == 20
        contender.make()()


def test_the_disentangled_remark_is_in_times_not_rates():
    results = [Measured(n, [r] * 2) for n, r in zip("abcd", (1e3, 2e3, 4e3, 5e3), strict=True)]
    said = disentangled.remark(1.5, 100, results, {})
    assert "DeBERTa 100.0, reference 50.0, ours 25.0, transformers' BERT 20.0" in said
    assert "4.00× (goal 1.5×)" in said and "would be 5.00×" in said
    assert "no goal set" in disentangled.remark(None, 100, results, {})


def test_every_goal_belongs_to_a_table():
    sizes = {"inference": disentangled.SIZES, "training step": disentangled.TRAINING}
    assert all((batch, tokens) in sizes[what] for what, _, batch, tokens in disentangled.GOALS)
