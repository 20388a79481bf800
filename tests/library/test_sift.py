"""SiFT: how far answers are apart, where the push goes and how far, and what it leaves behind."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.family.deberta import DebertaConfig, deberta_encoder
from course_lib.heads import BertForClassification
from course_lib.objectives.sift import EPS, sift_loss, symmetric_kl

SIZES = {
    "vocab_size": 30, "hidden_size": 16, "num_heads": 2, "num_layers": 2, "intermediate_size": 24,
    "max_positions": 8, "initializer_range": 0.3,
}  # fmt: skip
IDS = torch.tensor([[2, 9, 8, 7, 3], [2, 5, 6, 3, 0], [2, 11, 12, 13, 3]])
MASK = (IDS != 0).long()


def classifier(kind="deberta"):
    torch.manual_seed(1)
    if kind == "deberta":
        encoder = deberta_encoder(DebertaConfig(**SIZES, span=4))
    else:
        encoder = Encoder(BertConfig(**SIZES))
    encoder.pooler = Pooler(encoder.config)
    return BertForClassification(encoder, 3).double().eval()


def norm_of(model):
    return model.encoder.embeddings.norm


def answer_of(model):
    return lambda: model(IDS, MASK).logits


def sifted(model, seed=0, **more):
    torch.manual_seed(seed)
    return sift_loss(answer_of(model), norm_of(model), **more)


def inputs_of_the_norm(model, **more):
    """What LayerNorm read in SiFT's three passes: clean, pushed at random, pushed uphill."""
    seen = []
    hook = norm_of(model).register_forward_hook(
        lambda _, given, out: seen.append(given[0].detach())
    )
    sifted(model, **more)
    hook.remove()
    return seen


kinds = pytest.mark.parametrize("kind", ["bert", "deberta"])


# ---------------------------------------------------------------- how far apart two answers are


def random_scores(*shape):
    make = torch.Generator().manual_seed(3)
    first, second = torch.randn(2, *shape, generator=make, dtype=torch.float64) * 2
    return first.requires_grad_(), second.requires_grad_()


def test_value_and_gradient_are_the_textbooks_with_fixed_weights():
    """Σ p ln(p/q) + Σ q ln(q/p); of the first sum only q learns, of the second only p: gradients
    p − q and q − p."""
    a, b = random_scores(4, 5, 6)
    p, q = a.softmax(-1), b.softmax(-1)
    expected = (p * (p / q).log()).sum(-1) + (q * (q / p).log()).sum(-1)
    found = symmetric_kl(a, b)
    assert found.shape == (4, 5) and (found > 0).all()
    assert torch.allclose(found, expected, atol=1e-12)
    assert torch.allclose(symmetric_kl(b, a), expected, atol=1e-12)
    to_a, to_b = torch.autograd.grad(found.sum(), (a, b))
    assert torch.allclose(to_a, p - q, atol=1e-12) and torch.allclose(to_b, q - p, atol=1e-12)


# ---------------------------------------------------------------- where the push goes


@kinds
def test_the_perturbation_is_small_and_lives_on_normalised_embeddings(kind):
    model = classifier(kind)
    clean, first, second = inputs_of_the_norm(model, start=0.03, step=0.01)
    stage = model.encoder.embeddings.parts(IDS)["sum"]
    assert torch.allclose(clean, F.layer_norm(stage, (16,), eps=EPS), atol=1e-12)
    random, climbed = first - clean, second - first
    assert 0 < random.abs().max() <= 0.06 + 1e-12 and abs(random.std() - 0.03) < 0.01
    largest = climbed.abs().amax(-1)[MASK.bool()]
    assert (largest <= 0.01 + 1e-12).all() and (largest > 0.0099).all()  # one token, one step


def test_the_length_of_the_embeddings_does_not_matter():
    """Ten times the table: the same input, the same push, the same answers."""
    model = classifier()
    before, (logits, loss) = inputs_of_the_norm(model), sifted(model)
    with torch.no_grad():
        model.encoder.embeddings.token.weight.mul_(10)
    after, (again, other) = inputs_of_the_norm(model), sifted(model)
    for one, two in zip(before, after, strict=True):
        assert (one - two).abs().max() < 1e-4
    for i in (1, 2):
        size, same = ((seen[i] - seen[0]).norm() for seen in (before, after))
        assert abs(size / same - 1) < 1e-4
    assert (logits - again).abs().max() < 1e-4 and abs(loss / other - 1) < 1e-3


@kinds
def test_climbing_moves_the_answer_further_than_chance(kind):
    model = classifier(kind)
    gains = []
    for seed in range(10):
        chance = sifted(model, seed, step=0.0)[1].item()
        climbed = sifted(model, seed, step=1e-3)[1].item()
        assert chance > 0
        gains.append(climbed / chance - 1)
    assert sum(gains) / len(gains) > 0.01 and min(gains) > 0


@kinds
def test_the_control_is_as_long_a_token_and_not_aimed(kind):
    model, moved = classifier(kind), {}
    for aimed in (True, False):
        clean, _, second = inputs_of_the_norm(model, start=1e-3, step=0.1, aimed=aimed)
        moved[aimed] = (second - clean)[MASK.bool()]  # (tokens, 16)
    lengths = [one.norm(dim=-1) for one in moved.values()]
    assert torch.allclose(*lengths, atol=1e-12) and (lengths[0] > 0.09).all()
    cosines = F.cosine_similarity(*moved.values(), dim=-1)
    assert cosines.abs().max() < 0.95 and cosines.mean().abs() < 0.3
    gains = [sifted(model, seed, start=1e-3, step=0.1)[1].item() for seed in range(10)]
    chance = [sifted(model, seed, start=1e-3, step=0.1, aimed=False)[1].item()
              for seed in range(10)]  # fmt: skip
    assert min(gains) > max(chance) > 0


@kinds
def test_clean_answers_are_those_of_normalised_embeddings(kind):
    model = classifier(kind)
    plain = answer_of(model)()
    handle = norm_of(model).register_forward_pre_hook(
        lambda module, given: (F.layer_norm(given[0], (16,), eps=EPS),)
    )
    expected = answer_of(model)()
    handle.remove()
    logits = sifted(model)[0]
    near, far = ((logits - answer).abs().max() for answer in (expected, plain))
    assert near <= far / 20 and 0 < far < 1e-4  # normalised twice: all but the same


# ---------------------------------------------------------------- what is left behind


def hooks(model):
    return len(norm_of(model)._forward_pre_hooks)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_model_is_as_it_was_also_after_an_error(at):
    model = classifier()
    with torch.no_grad():
        before = answer_of(model)()
    calls = []

    def answer():
        calls.append(hooks(model))
        if len(calls) == at:
            raise RuntimeError("no answer")
        return answer_of(model)()

    with pytest.raises(RuntimeError, match="no answer"):
        sift_loss(answer, norm_of(model))
    assert calls == [1] * at and hooks(model) == 0
    sifted(model)
    assert hooks(model) == 0 and all(p.grad is None for p in model.parameters())
    with torch.no_grad():
        assert torch.equal(answer_of(model)(), before)


@kinds
def test_every_weight_learns(kind):
    """Those of the embeddings from the clean answer alone: the push stands where they would."""
    model = classifier(kind)
    logits, loss = sifted(model)
    assert loss > 0 and logits.requires_grad
    loss.backward()
    for name, parameter in model.named_parameters():
        if name.endswith(".key.bias"):
            continue  # a constant added to every score of a row: no softmax sees it
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def test_no_perturbation_has_no_slope():
    model = classifier()
    for start in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=rf"start={start} was given; expected a number above"):
            sift_loss(answer_of(model), norm_of(model), start=start)
