"""The GPU bench compares like with like; on the CPU, in small."""

from __future__ import annotations

import pytest
import torch

from course_lib.bench import Measured, disentangled_gpu


@pytest.fixture
def small(monkeypatch):
    settings = {"HEADS": 2, "SIZE": 8, "SPAN": 8, "FURTHEST": 20, "DEVICE": "cpu"}
    for name, value in {**settings, "FORMAT": torch.float32}.items():
        monkeypatch.setattr(disentangled_gpu, name, value)


def test_the_peer_and_ours_compute_the_same(small):
    states = torch.randn(1, 40, 16, generator=torch.Generator().manual_seed(0))
    peer = disentangled_gpu.transformers_module(40, False)(states)
    ours = disentangled_gpu.our_module(disentangled_gpu.reference, 40, False)(states)
    assert ours.shape == states.shape
    assert (ours - peer).abs().max() <= 1e-5 * peer.abs().max()


@pytest.mark.parametrize("training", [False, True])
def test_every_contender_does_its_work(small, training, capsys):
    rows = disentangled_gpu.contenders(40, training)
    assert len({row.name for row in rows}) == len(rows) >= 2
    for row in rows:
        assert row.tokens == 40 and len(row.name) <= 56
        if "Triton" not in row.name:  # needs a GPU
            row.make()()


def test_a_package_that_does_not_run_is_left_out_with_its_reason(capsys):
    def fails():
        raise KeyError("renamed")

    assert not disentangled_gpu.runs(disentangled_gpu.Contender("theirs", fails, 1))
    assert "left out: theirs: KeyError: 'renamed'" in capsys.readouterr().out
    assert disentangled_gpu.runs(disentangled_gpu.Contender("theirs", lambda: dict, 1))


def test_without_a_gpu_there_is_nothing_to_measure(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert disentangled_gpu.tables() == []


@pytest.mark.parametrize(("training", "products"), [(False, 2), (True, 7)])
def test_the_remark_counts_work_by_hand(monkeypatch, training, products):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a chip")
    for name in ("memory_allocated", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda: 0)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    row = disentangled_gpu.Contender("ours", lambda: lambda: None, 1_000)
    # A step a second: each product multiplies and adds 64 numbers for each pair, in 12 heads.
    said = disentangled_gpu.remark([row], 1_000, training, [Measured("ours", [1_000.0] * 2)], {})
    assert f"ours: {products * 2 * 64 * 12 * 1_000**2 / 1e12:.1f} TFLOP/s, 0 MB" in said
