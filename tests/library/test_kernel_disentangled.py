"""Disentangled attention: by hand, its paths against the reference in outputs and gradients, the
rows of its table against transformers', and the rules that choose a path."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from kernel_parts import TOLERANCE, compare, draw_mask, every_format, every_mask, watch

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.deberta import deberta_v3
from course_lib.kernels import attention as attention_kernel
from course_lib.kernels import choosing
from course_lib.kernels import disentangled as kernel
from course_lib.kernels.choosing import (
    ATTENTION,
    ATTENTION_PATHS,
    DISENTANGLED,
    DISENTANGLED_PATHS,
    Rule,
    choose,
)
from course_lib.kernels.disentangled import (
    disentangled_attention,
    disentangled_attention_reference,
    score_parts,
    score_scale,
)
from course_lib.kernels.positions import log_bucket, position_rows, row_table

# bfloat16 rounds to 8 bits at every product, sum and weight.
BOUNDS = {**TOLERANCE, torch.bfloat16: 4e-2}
SPANS = {"wide": (100, None), "clamped": (4, None), "buckets": (8, 32)}  # span, furthest
BATCH, HEADS, WIDTH = 2, 3, 8


@pytest.fixture(params=["one tile", "tiles that do not come out even"])
def tiles(request, monkeypatch):
    """Both ways; in the second a tile is 16 tokens, and one or two heads fit a chunk."""
    if request.param != "one tile":
        monkeypatch.setattr(kernel, "TILE", 16)
        monkeypatch.setattr(kernel, "CHUNK_BYTES", 2 * 65 * 65 * 8)
    return request.param


def draw(tokens, dtype=torch.float64, span=100, furthest=None, terms="both", asking=None, seed=0):
    """query, key, value, position_key, position_query, laid out as projections leave them; rows."""
    generator = torch.Generator().manual_seed(seed)

    def random(*size):
        x = torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
        return x.transpose(-2, -3).requires_grad_()

    q = random(BATCH, asking or tokens, HEADS, WIDTH)
    k, v = (random(BATCH, tokens, HEADS, WIDTH) for _ in range(2))
    tables = [random(2 * span, HEADS, WIDTH) for _ in range(2)]
    if terms in ("c2p", "none"):
        tables[1] = None
    if terms in ("p2c", "none"):
        tables[0] = None
    return [q, k, v, *tables], position_rows(tokens, span, furthest)


def compare_paths(
    path, tokens, spans="wide", dtype=torch.float64, mask="none", at=None, wanted=range(5), **drawn
):
    """Outputs and gradients against the reference; and without gradients, the same outputs."""
    given, rows = draw(tokens, dtype, *SPANS[spans], **drawn)
    given = [x if x is None or n in wanted else x.detach() for n, x in enumerate(given)]
    mask = draw_mask(mask, BATCH, tokens)

    def fast(*given):
        return disentangled_attention(*given, rows, mask, at=at, path=path)

    def slow(*given):
        return disentangled_attention_reference(*given, rows, mask, at=at)[0]

    found = compare(fast, slow, given, BOUNDS[dtype])
    assert found.dtype == dtype
    with torch.no_grad():
        assert (found - fast(*given)).abs().max() <= BOUNDS[dtype]


# ---- the terms -----------------------------------------------------------------------------------


def test_the_terms_pair_by_pair():
    """Equation 4 in loops: token i looks up i − j both times."""
    (q, k, _, pk, pq), rows = draw(5, span=3)
    q, k, pk, pq = (x.detach() for x in (q, k, pk, pq))
    parts = score_parts(q, k, pk, pq, rows)
    for b, a, i, j in product(range(BATCH), range(HEADS), range(5), range(5)):
        row = min(max(i - j + 3, 0), 5)
        by_hand = q[b, a, i] @ k[b, a, j], q[b, a, i] @ pk[a, row], k[b, a, j] @ pq[a, row]
        for part, value in zip(parts, by_hand, strict=True):
            assert part[b, a, i, j].item() == pytest.approx(value.item(), abs=1e-12)


def test_the_three_terms_together_have_variance_3d():
    """Of fresh unit-normal vectors: D for each product, so sqrt(3D) brings the sum back to 1."""
    size = 64
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(40, 4, 32, size, generator=generator) for _ in range(2))
    pk, pq = (torch.randn(4, 64, size, generator=generator) for _ in range(2))
    parts = score_parts(q, k, pk, pq, position_rows(32, 32))
    total = sum(parts)
    for scores, expected in ((parts.content, size), (total, 3 * size)):
        assert scores.var().item() == pytest.approx(expected, rel=0.1)
    assert score_scale(size, pk, pq) == math.sqrt(3 * size)
    assert score_scale(size, pk, None) == score_scale(size, None, pq) == math.sqrt(2 * size)
    assert score_scale(size, None, None) == math.sqrt(size)


# ---- the rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("buckets", [2, 3, 4, 8, 31, 32, 128, 256])
@pytest.mark.parametrize("factor", [1.5, 2, 4])
def test_buckets_are_transformers(buckets, factor):
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    furthest = math.ceil(factor * buckets)
    distance = torch.arange(-2 * furthest, 2 * furthest + 1)
    ours = log_bucket(distance, buckets, furthest)
    assert torch.equal(ours, make_log_bucket_position(distance, buckets, furthest).long())
    assert torch.equal(ours, -log_bucket(-distance, buckets, furthest))
    assert (ours.diff() >= 0).all()
    assert ours[distance == furthest - 1].item() == 2 * (buckets // 2) - 1


@pytest.mark.parametrize("tokens", [1, 2, 17, 300, 700])
@pytest.mark.parametrize("span, furthest", [(4, None), (256, None), (256, 512), (32, 128)])
def test_rows_are_transformers(tokens, span, furthest):
    from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position

    text = torch.empty(1, tokens, 1)
    relative = build_relative_position(
        text, text, bucket_size=span if furthest else -1, max_position=furthest or -1
    )
    theirs = (relative[0] + span).clamp(0, 2 * span - 1)
    rows = position_rows(tokens, span, furthest)
    assert rows.shape == (2 * tokens - 1,) and (rows.diff() >= 0).all()
    assert torch.equal(row_table(rows), theirs)


@pytest.mark.parametrize("settings", [(0, 4), (4, 0), (4, 1, 8), (4, 8, 4)])
def test_rows_that_cannot_be(settings):
    with pytest.raises(ValueError, match="expected"):
        position_rows(*settings)


# ---- the twins -----------------------------------------------------------------------------------

both_paths = pytest.mark.parametrize("path", ["gathered", "skewed"])


@every_format
@pytest.mark.parametrize("tokens", [1, 2, 17, 65])
@pytest.mark.parametrize("spans", SPANS)
@both_paths
def test_paths_agree(tiles, path, spans, tokens, dtype):
    compare_paths(path, tokens, spans, dtype)


@every_format
@every_mask
@both_paths
def test_paths_agree_under_a_mask(tiles, path, kind, dtype):
    compare_paths(path, 33, dtype=dtype, mask=kind)


@pytest.mark.parametrize("terms", ["c2p", "p2c", "none"])
@pytest.mark.parametrize("path", DISENTANGLED_PATHS[:3])
def test_paths_agree_without_a_term(tiles, path, terms):
    compare_paths(path, 20, mask="padding", terms=terms)


@every_format
@pytest.mark.parametrize("path", ["auto", "gathered", "skewed"])
def test_some_tokens_ask(path, dtype):
    at = torch.tensor([[0, 16, 5], [3, 3, 9]])
    compare_paths(path, 17, "buckets", dtype, "padding", at, asking=3)


@pytest.mark.parametrize("wanted", [(3,), (0, 4), (1,), (2,)])
def test_only_what_is_asked_for_gets_a_gradient(wanted):
    compare_paths("skewed", 9, wanted=wanted)


def test_under_autocast_the_gradients_come_in_the_short_format():
    given, rows = draw(20, torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = disentangled_attention(*given, rows, path="skewed")
    assert mixed.dtype == torch.bfloat16
    mixed.sum().backward()
    assert all(x.grad.dtype == torch.bfloat16 for x in given)


@pytest.mark.parametrize("path", ["auto", "gathered", "skewed"])
def test_dropout_keeps_the_mean(path):
    given, rows = draw(8)
    given = [x.detach() for x in given]
    expected = disentangled_attention_reference(*given, rows)[0]
    torch.manual_seed(0)
    drawn = [disentangled_attention(*given, rows, dropout=0.5, path=path) for _ in range(400)]
    assert not torch.equal(drawn[0], drawn[1])
    error = torch.stack(drawn).std(0) / 20  # of the mean of 400
    assert ((torch.stack(drawn).mean(0) - expected).abs() <= 6 * error).all()


def test_what_is_dropped_is_dropped_in_the_gradients_too(tiles):
    """Outputs and gradients are those of the reference whose weights are dropped alike."""
    given, rows = draw(20)
    mask = torch.ones(BATCH, 20)
    mask[1, 15:] = 0
    torch.manual_seed(3)
    found = disentangled_attention(*given, rows, mask, dropout=0.3, path="skewed")
    torch.manual_seed(3)
    dropped = kernel._Dropped(0.3, int(torch.randint(2**62, ())))
    factor = torch.zeros(BATCH, HEADS, 20, 20, dtype=torch.float64)
    for (row, some), drawn in zip(kernel._chunks(given[0]), dropped.factors(given[0]), strict=True):
        factor[row, some] = drawn
    assert {0.0, 1 / 0.7} == set(factor.unique().tolist())
    weights = disentangled_attention_reference(*given, rows, mask)[1]
    expected = (weights * factor) @ given[2]
    upstream = torch.randn(found.shape, dtype=found.dtype)
    torch.testing.assert_close(found, expected)
    mine, theirs = (torch.autograd.grad(x, given, upstream) for x in (found, expected))
    torch.testing.assert_close(mine, theirs)
    with torch.no_grad():
        torch.manual_seed(3)
        again = disentangled_attention(*given, rows, mask, dropout=0.3, path="skewed")
    torch.testing.assert_close(again, expected)


@pytest.mark.parametrize("path", ["skewed", "gathered"])
def test_all_dropped_is_nothing(path):
    given, rows = draw(5)
    assert not disentangled_attention(*given, rows, dropout=1.0, path=path).any()


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("path", ["reference", "gathered", "skewed"])
def test_all_paths_leave_autocast(path, learning):
    """What is given in float32 is computed in float32, with gradients and without."""
    given, rows = draw(20, torch.float32)
    with torch.set_grad_enabled(learning):
        plain = disentangled_attention(*given, rows, path=path)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            under = disentangled_attention(*given, rows, path=path)
    assert under.dtype == torch.float32
    torch.testing.assert_close(under, plain)


# ---- the rules -----------------------------------------------------------------------------------


def test_rules_are_read_from_top_to_bottom():
    rules = (
        Rule("a", device="cuda"),
        Rule("b", dtypes=(torch.bfloat16,), training=True),
        Rule("c", tokens_up_to=10, training=True),
        Rule("f", dropout=True),
        Rule("d", training=False),
        Rule("e"),
    )
    plain, short = torch.zeros(1), torch.zeros(1, dtype=torch.bfloat16)
    learning, short_learning = (x.clone().requires_grad_() for x in (plain, short))
    assert choose(rules, plain, 5) == choose(rules, short, 5) == "d"
    assert choose(rules, short_learning, 99) == "b"
    assert choose(rules, learning, 10) == "c" and choose(rules, learning, 11) == "e"
    with torch.no_grad():
        assert choose(rules, learning, 10) == "d"
    assert choose(rules, torch.zeros(1, device="meta"), 5) == "d"
    assert choose(rules, learning, 10, 0.1) == "c" and choose(rules, learning, 11, 0.1) == "f"


@pytest.mark.parametrize(
    "rules, known", [(ATTENTION, ATTENTION_PATHS), (DISENTANGLED, DISENTANGLED_PATHS)]
)
def test_every_rule_names_a_path_and_its_reason(rules, known):
    assert rules[-1] == Rule(rules[-1].path, why=rules[-1].why)  # fits always
    for rule in rules:
        assert rule.path in known and rule.path != "reference" and rule.why
    assert "triton" not in {choose(rules, torch.zeros(1, dtype=d), 64) for d in TOLERANCE}


SMALL = {"vocab_size": 20, "hidden_size": 16, "num_heads": 2, "num_layers": 2}
SMALL["intermediate_size"] = 8
MODELS = {
    "BERT": (
        lambda path: Encoder(BertConfig(**SMALL, kernels=path)),
        (attention_kernel, ATTENTION),
        {"reference": "attention_reference", "plain": "_plain", "fused": None},
        ({}, {"remove_padding": True}),
    ),
    "DeBERTa": (
        lambda path: deberta_v3(**SMALL, span=4, furthest=8, kernels=path),
        (kernel, DISENTANGLED),
        {
            "reference": "disentangled_attention_reference",
            "gathered": "_gathered",
            "skewed": "_skewed",
        },
        ({},),
    ),
}


@pytest.mark.parametrize("build, where, functions, hows", MODELS.values(), ids=MODELS)
def test_a_model_takes_the_path_its_configuration_names(monkeypatch, build, where, functions, hows):
    module, rules = where
    called = watch(monkeypatch, module, *filter(None, functions.values()))
    ids, found = torch.arange(12).view(2, 6), []
    assert choose(DISENTANGLED, torch.zeros(1), 6) == "skewed"
    for path in (*functions, "auto"):
        called.clear()
        torch.manual_seed(0)
        with torch.no_grad():
            model = build(path).eval()
            found += [model(ids, torch.ones_like(ids), **how).last_hidden_state for how in hows]
        name = functions[choose(rules, torch.zeros(1), 6) if path == "auto" else path]
        assert [call.name for call in called] == [name] * (2 * len(hows) if name else 0)
    assert all((x - found[0]).abs().max() < 1e-5 for x in found)


class OnGpu:
    """What a rule asks of a query on a GPU."""

    device = torch.device("cuda")
    requires_grad = False

    def __init__(self, head_size, dtype=torch.bfloat16):
        self.shape, self.dtype = (2, 3, 5, head_size), dtype


@pytest.mark.parametrize(
    ("query", "dropout", "triton", "path"),
    [
        (OnGpu(64), 0.0, True, "triton"),
        (OnGpu(24), 0.0, True, "gathered"),  # a head size that the kernel does not know
        (OnGpu(64, torch.float64), 0.0, True, "gathered"),
        (OnGpu(64), 0.1, True, "gathered"),
        (OnGpu(64), 0.0, False, "gathered"),  # Windows
        (torch.zeros(2, 3, 5, 24), 0.1, False, "skewed"),
    ],
)
def test_auto_takes_a_path_that_can_be_taken(monkeypatch, query, dropout, triton, path):
    monkeypatch.setattr(choosing, "installed", lambda package: triton)
    assert choose(DISENTANGLED, query, 5, dropout) == path


def test_a_path_that_cannot_be_taken():
    with pytest.raises(ValueError, match="kernels='quick' was given; expected 'auto' or"):
        BertConfig(kernels="quick")
    with pytest.raises(ValueError, match="reference, plain, fused"):
        BertConfig(kernels="skewed")
    with pytest.raises(ValueError, match="reference, gathered, skewed, triton"):
        deberta_v3(**SMALL, kernels="fused")
    x = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="kernels='quick'"):
        attention_kernel.attention(x, x, x, path="quick")
    given, rows = draw(4)
    with pytest.raises(ValueError, match="'triton' was given for tensors on 'cpu'"):
        disentangled_attention(*given, rows, path="triton")


def test_the_path_is_no_property_of_the_weights(tmp_path):
    from course_lib.checkpoints import load, save

    torch.manual_seed(0)
    model = Encoder(BertConfig(**SMALL, kernels="reference"))
    first = save(model, tmp_path / "a.safetensors")
    assert load(tmp_path / "a.safetensors").config == BertConfig(**SMALL)
    model.config = BertConfig(**SMALL)
    assert save(model, tmp_path / "b.safetensors") == first
