"""What code moves and where it stands on the roofline: counts by hand, and every kernel placed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from course_lib.bench import roofline, summary
from course_lib.bench.traffic import Traffic, by_kind, kind_of, total, traffic

N = 16
A, B, OWN = (torch.randn(N, N) for _ in range(3))
MATRIX = N * N * 4  # bytes


def moved(step):
    found = total(traffic(step))
    return found.read, found.written, found.flops


TABLE, AT = torch.randn(1_000, N), torch.arange(3)
ROWS = 3 * N * 4  # bytes of the three that are looked up
WHERE = torch.zeros(N, 2, dtype=torch.long)


def without_autograd():
    with torch.inference_mode():
        F.linear(A, B)


PRODUCT = 2 * MATRIX, MATRIX, 2 * N**3  # read, written, FLOPs
LOOK_UP = AT.nbytes + ROWS, ROWS, 0
MOVED = [
    (lambda: A @ B, PRODUCT),
    (lambda: A.t() @ B, PRODUCT),
    (lambda: F.linear(A, B), PRODUCT),
    (without_autograd, PRODUCT),
    (lambda: torch.mm(A, B, out=torch.empty(N, N)), PRODUCT),
    # In place the total is read as well as the factors.
    (lambda: torch.zeros(N, N).addmm_(A, B), (3 * MATRIX, 2 * MATRIX, 2 * N**3)),
    (lambda: A + B, (2 * MATRIX, MATRIX, 0)),
    (lambda: A.clone().add_(B), (3 * MATRIX, 2 * MATRIX, 0)),
    (lambda: torch.empty(N, N).copy_(A), (MATRIX, MATRIX, 0)),
    (lambda: torch.softmax(A, -1), (MATRIX, MATRIX, 0)),
    (lambda: torch.exp(OWN, out=OWN), (MATRIX, MATRIX, 0)),  # read, though it is out
    (lambda: A[:1].expand(N, N) + B, (MATRIX + N * 4, MATRIX, 0)),  # in memory it is once
    (lambda: F.embedding(AT, TABLE), LOOK_UP),
    (lambda: TABLE[AT], LOOK_UP),
    (lambda: TABLE.index_copy_(0, AT, A[:3]), LOOK_UP),
    (lambda: A.gather(1, WHERE), (WHERE.nbytes + 2 * N * 4, 2 * N * 4, 0)),
]


@pytest.mark.parametrize(("step", "expected"), MOVED, ids=range(len(MOVED)))
def test_what_an_operation_moves_and_computes(step, expected):
    assert moved(step) == expected


def test_views_and_reserved_memory_count_nothing():
    def step():
        x = A.view(-1)[: N * 2].reshape(2, N).t().unsqueeze(0).expand(5, N, 2)
        torch.empty_like(x), A.split(4), A.detach()

    assert traffic(step) == []


def test_backward_is_seen_too():
    weight = torch.randn(N, N, requires_grad=True)
    found = by_kind(traffic(lambda: torch.autograd.grad((A @ weight).sum(), weight)))
    product = found["matrix product"]
    assert product.flops == 2 * 2 * N**3  # forward, and for the weight
    assert product.written == 2 * MATRIX
    assert product.read == 3 * MATRIX + 4  # the sum's gradient is one number, expanded


def test_fused_attention_counts_its_products_on_a_cpu():
    q, k, v = (torch.randn(2, 3, 8, 4) for _ in range(3))
    products = 2 * 2 * (2 * 3 * 8 * 8 * 4)
    read, _, flops = moved(lambda: F.scaled_dot_product_attention(q, k, v))
    assert flops == products and read == 3 * q.nbytes
    q.requires_grad_()
    _, _, flops = moved(
        lambda: torch.autograd.grad(F.scaled_dot_product_attention(q, k, v).sum(), q)
    )
    assert flops == products + 5 * products // 2  # the scores once more, and four gradients


def test_kinds_are_sorted_and_add_up():
    found = traffic(lambda: (A @ B).softmax(-1)[0].argsort())
    kinds = by_kind(found)
    assert list(kinds) == ["matrix product", "softmax", "sort and search"]
    assert sum(kinds.values(), Traffic("all")).moved == total(found).moved
    names = {
        "_log_softmax_backward_data": "softmax", "addmm_": "matrix product", "add_": "add",
        "native_layer_norm": "norm", "masked_fill": "compare and mask", "index_put_": "gather",
        "_scaled_dot_product_flash_attention_for_cpu": "fused attention", "clone": "copy",
        "native_dropout": "random numbers", "nll_loss_forward": "loss", "frobnicate": "other",
    }  # fmt: skip
    assert {name: kind_of(name) for name in names} == names


# ---- the roofline --------------------------------------------------------------------------------


def test_a_placed_product_has_its_intensity():
    one = roofline.place("product", "fast", lambda: A @ B, [A, B], [A])
    assert one.intensity == pytest.approx(2 * N**3 / (3 * MATRIX)) == one.traffic_intensity
    known = replace(one, seconds=1e-6)
    assert known.gflops == pytest.approx(2 * N**3 / 1e3)
    assert known.gigabytes == pytest.approx(3 * MATRIX / 1e3)
    # By hand: memory needs 3,072 bytes / 10 GB/s, products 8,192 / 100 GFLOP/s.
    roof = {"float32": 100.0, "memory": 10.0, "bfloat16": None}
    assert known.share(roof) == pytest.approx(max(3_072 / 10, 8_192 / 100) * 1e-9 / 1e-6)
    idle = replace(known, flops=0)
    assert idle.intensity == idle.traffic_intensity == 0
    assert idle.share(roof) == pytest.approx(0.3072)


def test_what_cannot_be_placed_says_why():
    with pytest.raises(ValueError, match='"reference" or "fast"'):
        roofline.place("product", "quick", lambda: A @ B, [A, B], [A])
    with pytest.raises(ValueError, match="no tensors"):
        roofline.place("product", "fast", lambda: A @ B, [], [])


def test_memory_rate_counts_both_directions(monkeypatch):
    clock = iter(range(1_000))
    monkeypatch.setattr(roofline.time, "perf_counter", lambda: next(clock))  # a second a look
    assert roofline.memory_rate(size=4_000, repeats=3) == pytest.approx(8_000 / 1e9)


@pytest.fixture
def small(monkeypatch):
    for name, value in {"HEADS": 2, "HEAD_SIZE": 4, "TOKENS": 16, "WORDS": 60, "WIDTH": 8}.items():
        monkeypatch.setattr(roofline, name, value)
    monkeypatch.setattr(roofline, "POSITIONS", 20)


def test_twins_of_every_kernel_write_the_same(small):
    names = []
    for case in roofline.cases():
        wanted = case.twins["reference"]()
        names.append(case.name)
        for twin, work in case.twins.items():
            for ours, theirs in zip(work(), wanted, strict=True):
                close = torch.allclose(ours.float(), theirs.float(), rtol=1e-3, atol=1e-5)
                assert close, f"{case.name}, {twin}"
    assert len(set(names)) == len(names) == 9


def test_placements_place_every_twin(small, monkeypatch):
    monkeypatch.setattr(roofline, "_best", lambda step: 1e-3)
    found = roofline.placements()
    assert len(found) == 2 * 9 + 1
    assert {p.twin for p in found} == {"reference", "fast"}
    without = {p.name for p in found if not p.flops}
    assert without == {"ELECTRA's sampling", "masking single tokens", "choosing whole words"}
    both = {p.twin: p for p in found if p.name == "masked-LM loss"}
    assert both["fast"].flops < 0.35 * both["reference"].flops
    assert both["fast"].unavoidable == both["reference"].unavoidable
    assert {p.how for p in found if p.name == "attention"} == {"", "plain", "fused"}


# ---- stored figures ------------------------------------------------------------------------------


def figures(*tables):
    on = {"processor": "x86", "threads": 2, "torch": "2", "transformers": "5", "date": "2030-01-02"}
    on |= {"native_bfloat16": False, "gflops_float32": 100}
    return {"machine": on, "tables": dict(tables)}


def rates(name, *values):
    return {"name": name, "rates": list(values)}


MASKING = (
    "Masking whole words, 64×512 tokens",
    [
        rates("transformers' whole-word collator ([MASK] only)", 8.0, 10.0, 12.0),
        rates("ours, [MASK] only, word numbers found each time", 30.0, 30.0, 30.0),
        rates("… word numbers ready", 300.0, 400.0, 600.0),
        rates("… runs of up to three words (ALBERT)", 1.0, 1.0, 1.0),
    ],
)
PADDING = (
    "Padding removed, inference, 2×768, 32×128, float32",
    [
        rates("transformers' BertModel (sdpa), padded", 10.0, 10.0, 10.0),
        rates("ours, padding removed, 50% padding", 9.0, 9.5, 9.7),
    ],
)


def test_speed_rows_compare_ours_with_the_peer():
    found = figures(PADDING, ("Attention among real tokens", [rates("a", 1.0, 2.0)]), MASKING)
    words, padding = summary.speed_rows(found)
    assert words[:4] == (
        "Masking whole words",
        "64×512 tokens",
        *(MASKING[1][i]["name"] for i in (0, 2)),
    )
    assert (words.ratio, words.low, words.high) == pytest.approx((40, 35, 50))
    assert padding.ratio == pytest.approx(0.95)  # where ours loses, it says so
    table = summary.readme_table(found).splitlines()
    assert table[0].count("|") == table[2].count("|") == 6
    assert table[0].endswith("| without bfloat16 products |")
    assert "| 40× (35× to 50×) |" in table[2] and "| word numbers ready |" in table[2]
    assert "| 0.95× (0.93× to 0.96×) |" in table[3] and "2030-01-02" in table[-1]


def test_figures_that_cannot_be_summed_up_say_why():
    with pytest.raises(ValueError, match="expected machine and tables"):
        summary.speed_rows({"machine": {}})
    with pytest.raises(ValueError, match="expected rows that begin"):
        summary.speed_rows(figures((MASKING[0], MASKING[1][:2])))


def test_every_table_of_the_readme_is_one_the_bench_makes():
    """COMPARED names rows by their beginnings: they must exist where they are made."""
    from course_lib.bench import (
        contrastive,
        distillation,
        early_exit,
        masking,
        modern,
        pretraining,
        unpadding,
    )

    made = [
        *pretraining.tables(["tiny"], False), *masking.tables(), *distillation.tables(),
        *early_exit.tables(), *unpadding.tables(), *modern.tables(), *contrastive.tables(),
    ]  # fmt: skip
    found = figures(*((t.title, [rates(c.name, 1.0, 2.0) for c in t.contenders]) for t in made))
    assert {row.what for row in summary.speed_rows(found)} == {
        "Pre-training step", "Masking single tokens", "Masking whole words", "Distillation loss",
        "Early exit", "Padding removed", "Rotary positions", "Sliding-window attention",
        "ModernBERT", "Contrastive step", "MaxSim",
    }  # fmt: skip


def test_the_readme_shows_the_stored_figures(root: Path):
    text = (root / "README.md").read_text(encoding="utf-8")
    stored = (root / "data" / "results" / f"14_speed{run}.json" for run in ("_float32", ""))
    shown = text.split("<!-- speed -->")[1].split("<!-- /speed -->")[0]
    runs = (json.loads(file.read_text(encoding="utf-8")) for file in stored)
    assert shown.strip() == summary.readme_table(*runs).strip()
