"""Every way to serve a classifier gives the same answers, up to its rounding, and says its size."""

from __future__ import annotations

import pytest
import torch

from course_lib.bench import serving
from course_lib.checkpoints import exporting
from course_lib.family.bert import bert
from course_lib.family.modernbert import modernbert
from course_lib.train.finetuning import classifier_on

# How far a logit may be from float32's, as a fraction of the largest: float32's own rounding in
# another order; 8 bits of a bfloat16 and of an int8 after two layers.
ROUNDING = {"bfloat16": 0.05, "int8": 0.1, "ONNX Runtime, int8": 0.1}
SLOW = ("torch.compile", "ONNX Runtime", "ONNX Runtime, int8")


@pytest.fixture(scope="module")
def model():
    small = {"num_layers": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64}
    encoder = bert("tiny", vocab_size=100, **small)
    torch.manual_seed(0)
    for weight in encoder.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return classifier_on(encoder, 5).eval()


@pytest.fixture(scope="module")
def modern():
    """With a global and a local layer, which sees two tokens on either side."""
    small = {"num_layers": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 20}
    sizes = {"vocab_size": 100, "pad_token_id": 0, "max_positions": 40}
    return classifier_on(modernbert("base", window=4, **small, **sizes), 5).eval()


@pytest.fixture(scope="module")
def texts():
    ids = torch.randint(5, 100, (3, 12), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 7:] = mask[2, 2:] = 0
    return ids, mask


@pytest.mark.parametrize("name", serving.WAYS)
def test_all_ways_answer_alike(name, model, modern, texts):
    if name in serving.missing():
        pytest.skip(f"{name} wants {serving.missing()[name]}")
    model = modern if name == "ONNX Runtime" else model  # what is hardest to export
    with torch.no_grad():
        right = model(*texts).logits
        served = serving.WAYS[name](model)
        for rows in (slice(None), slice(1, 2)):  # a batch, and one text with its padding
            given = served.answer(*(x[rows] for x in texts))
            bound = ROUNDING.get(name, 1e-5) * right.abs().max()
            assert (given - right[rows]).abs().max() <= bound
        if name in ROUNDING:
            assert not torch.equal(given, right[rows]), "nothing was rounded"


def test_sizes_by_hand(model):
    weights = sum(p.numel() for p in model.parameters())
    dense = sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear))
    assert serving.in_float32(model).stored == 4 * weights
    assert serving.in_bfloat16(model).stored == 2 * weights
    assert serving.in_int8(model).stored == 4 * (weights - dense) + dense
    assert next(model.parameters()).dtype == torch.float32  # a copy was rounded, not the model


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    monkeypatch.setattr(serving.shutil, "which", lambda name: None)
    assert serving.missing() == {
        "torch.compile": "a C++ compiler",
        "ONNX Runtime": "pip install onnx onnxscript onnxruntime",
        "ONNX Runtime, int8": "pip install onnx onnxscript onnxruntime",
    }
    assert set(serving.ways()) == {"float32", "bfloat16", "int8", "padding removed"}


def test_the_rows_do_their_work(monkeypatch):
    monkeypatch.setattr(serving, "missing", lambda: dict.fromkeys(SLOW, ""))
    tiny = {"num_layers": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
    rows = serving.contenders(2, 6, **tiny)
    assert [row.name for row in rows][:2] == ["float32", "bfloat16"]
    for row in rows:
        row.make()()
        assert row.tokens == 12
    assert next(table.title for table in serving.tables()).startswith("Serving, BERT-base's shape")
