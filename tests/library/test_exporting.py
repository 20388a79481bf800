"""Models as ONNX: all inputs, named outputs, any batch and length, the same numbers in ONNX
Runtime; and nothing left where that fails. `python -m course_lib.bench.readers` exports a model of
every member."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from members import MEMBERS, VIT
from parity import answer, drawn_weights
from test_parity_tasks import TASKS

from course_lib import export_onnx
from course_lib.checkpoints import (
    FAMILIES,
    CheckpointError,
    exporting,
    load_pretrained,
    save_folder,
)
from course_lib.encoder import Pooler
from course_lib.family.bert import bert
from course_lib.family.deberta import deberta, deberta_v3
from course_lib.family.electra import electra
from course_lib.family.fastbert import FastBert
from course_lib.family.gpt import gpt
from course_lib.family.modernbert import modernbert
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSpanPreTraining,
    BertForTokenClassification,
)

SIZES: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 16, "num_heads": 2, "num_layers": 1, "intermediate_size": 20,
    "max_positions": 60, "pad_token_id": 0,
}  # fmt: skip
LABELS = ("größer", "no")
needs_onnx = pytest.mark.skipif(bool(exporting.missing_packages()), reason="wants the extra [onnx]")


def pair_classifier(**more: Any) -> BertForClassification:
    """A DeBERTa-v3 with segments and a convolution."""
    more = {"type_vocab_size": 2, "span": 4, "furthest": 12, "convolution": 3, **more}
    encoder = deberta_v3("base", **SIZES, **more)
    encoder.pooler = Pooler(encoder.config)
    return drawn_weights(BertForClassification(encoder, LABELS), 0.3)


def reader() -> BertForQuestionAnswering:
    """A ModernBERT with a global and a local layer, which sees two tokens on either side."""
    return drawn_weights(
        BertForQuestionAnswering(modernbert("base", **{**SIZES, "num_layers": 2}, window=4)), 0.3
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Written once, of a model as training left it, in float64, in training mode and for a GPU's
    kernel. (A ModernBERT is exported in test_bench_serving.py.)"""
    path = tmp_path_factory.mktemp("onnx") / "new" / "model.onnx"
    model = pair_classifier(kernels="triton").double().train()
    assert export_onnx(model, path) == path
    assert [file.name for file in path.parent.iterdir()] == ["model.onnx"]
    assert model.training and model.classifier.weight.dtype == torch.float64  # left as it was
    same = pair_classifier()
    same.load_state_dict(model.state_dict())
    return same.eval(), path


@needs_onnx
def test_the_file_says_what_goes_in_and_out(exported: tuple[Any, Path]):
    import onnxruntime

    session = onnxruntime.InferenceSession(exported[1])
    inputs = {x.name: x.shape for x in session.get_inputs()}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    assert inputs == {name: ["batch", "tokens"] for name in names}
    assert [(x.name, x.shape) for x in session.get_outputs()] == [("logits", ["batch", 2])]
    labels = json.loads(session.get_modelmeta().custom_metadata_map["id2label"])
    assert labels == {str(number): name for number, name in enumerate(LABELS)}


@needs_onnx
@pytest.mark.parametrize(("batch", "tokens"), [(1, 1), (1, 60), (4, 2), (5, 33)])
def test_the_same_numbers_at_every_size(exported: tuple[Any, Path], batch: int, tokens: int):
    """Padding to the left and to the right, and a pair's segments, which change the answer."""
    import onnxruntime

    model, path = exported
    ids = torch.randint(5, 50, (batch, tokens))
    mask = torch.ones_like(ids)
    mask[1:2, : tokens // 3], mask[2:3, tokens // 2 + 1 :] = 0, 0
    segments = (torch.arange(tokens) >= tokens // 2).long().expand_as(ids)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
    values = onnxruntime.InferenceSession(path).run(None, {n: x.numpy() for n, x in inputs.items()})
    with torch.no_grad():
        right, without = model(**inputs).logits, model(ids, mask).logits
    torch.testing.assert_close(torch.from_numpy(values[0]), right, atol=1e-5, rtol=1e-5)
    assert (without - right).abs().max() > 0.05


def with_pooler(member: Any, head: Callable[[Any], Any] = lambda encoder: encoder) -> Any:
    encoder = member.make("encoder", member.case(3).config)
    encoder.pooler = Pooler(encoder.config)
    return head(encoder)


@pytest.mark.parametrize(
    ("make", "inputs", "outputs"),
    [
        *(
            (lambda m=m, k=k: m.make(k, m.case(3).config), None, outputs)
            for m in map(MEMBERS.__getitem__, ("roberta", "xlm", "distilbert", "deberta-v2"))
            for k, outputs in (("masked", ["logits"]), ("encoder", None))
        ),
        (lambda: with_pooler(MEMBERS["bert"]), 3, ["last_hidden_state", "pooler_output"]),
        (lambda: MEMBERS["bert"].make("pretraining", MEMBERS["bert"].case(3).config), 3,
         ["prediction_logits", "seq_relationship_logits"]),
        (lambda: MEMBERS["albert"].make("pretraining", MEMBERS["albert"].case(3).config), 3,
         ["prediction_logits", "sop_logits"]),
        (lambda: MEMBERS["electra"].make("discriminator", MEMBERS["electra"].case(3).config), 3,
         ["logits"]),
        (lambda: with_pooler(MEMBERS["xlm"], lambda e: BertForTokenClassification(e, 3)), 3,
         ["logits"]),
        (lambda: reader(), 2, ["start_logits", "end_logits"]),
        (lambda: FastBert(bert("tiny", **SIZES), LABELS), 3, ["logits", "exit_logits_1"]),
        (lambda: gpt("small", **SIZES), 2, ["logits"]),
        (lambda: VIT.make("classes", VIT.case(3).config), 1, ["logits"]),
        (lambda: VIT.make("encoder", VIT.case(3).config), 1,
         ["last_hidden_state", "pooler_output"]),
    ],
)  # fmt: skip
def test_every_head_has_its_inputs_and_outputs_by_name(make: Any, inputs: Any, outputs: Any):
    """As they will stand in the file; nothing is written here."""
    model = make()
    whole = exporting._Whole(model)
    segments = getattr(model.config, "type_vocab_size", 0) > 1
    expected = ["input_ids", "attention_mask", *["token_type_ids"] * segments]
    assert whole.inputs == (["pixel_values"] if inputs == 1 else expected)
    assert inputs in (None, len(whole.inputs))
    pooled = ["pooler_output"] * (getattr(model, "pooler", None) is not None)
    assert whole.outputs == (outputs or ["last_hidden_state", *pooled])
    drawn = whole.drawn(3, 7)
    by_name = whole.by_name(**drawn)
    assert all(map(torch.equal, whole(*drawn.values()), by_name.values()))


@needs_onnx
@pytest.mark.parametrize(
    ("name", "task", "changes"),
    [("modernbert", "classes", {"classifier_pooling": "mean"}), ("xlm", "answers", {})],
)
def test_one_answer_three_ways(tmp_path: Path, name: str, task: str, changes: dict[str, Any]):
    """Ours, transformers' and ONNX Runtime's, of a model with a head of its own and padding."""
    import onnxruntime
    import transformers

    case = MEMBERS[name].case(31)
    config = replace(case.config, **changes)
    model = drawn_weights(TASKS[task].make(FAMILIES[name].encoder(config, TASKS[task].pooler)), 0.1)
    save_folder(model, tmp_path, None)
    export_onnx(load_pretrained(tmp_path).model, tmp_path / "model.onnx")
    kind = json.loads((tmp_path / "config.json").read_text())["architectures"][0]
    theirs = getattr(transformers, kind).from_pretrained(tmp_path).eval()
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    inputs = {x.name: case.inputs[x.name] for x in session.get_inputs()}
    values = session.run(None, {n: x.numpy() for n, x in inputs.items()})
    assert not case.inputs["attention_mask"].all()
    with torch.no_grad():
        ours, others = model.eval()(**inputs), answer(theirs, case._replace(inputs=inputs))
    for output, value in zip(session.get_outputs(), values, strict=True):
        right = getattr(ours, output.name)
        at = case.real if task == "answers" else ...
        for other in (torch.from_numpy(value), getattr(others, output.name)):
            torch.testing.assert_close(other[at], right[at], atol=1e-5, rtol=1e-5)


# ---------------------------------------------------------------- what fails


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: load_pretrained("course-bert"), r"a Pretrained was given.*Give \.encoder or \.mo"),
        (lambda: electra("small", **SIZES), r"Give \.generator or \.discriminator alone"),
        (lambda: BertForSpanPreTraining(bert("tiny", **SIZES)), r"Give \.masked_lm alone"),
        (lambda: "course-bert", "a str was given; expected an Encoder"),
    ],
)
def test_another_model_is_refused_before_anything_is_written(tmp_path: Path, make: Any, says: str):
    with pytest.raises(CheckpointError, match=says):
        export_onnx(make(), tmp_path / "new" / "model.onnx")
    assert not any(tmp_path.iterdir())


@needs_onnx
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, value: float):
    model = reader()
    model.span.weight.data[0, 0] = value
    with pytest.raises(CheckpointError, match=r"span\.weight holds nan or infinity"):
        export_onnx(model, tmp_path / "new" / "model.onnx")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("missing", [["onnx"], ["onnxscript", "onnxruntime"]])
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: list[str]
):
    monkeypatch.setattr(exporting, "find_spec", lambda name: None if name in missing else name)
    says = rf"{', '.join(missing)} is not installed.*pip install 'bert-family-course\[onnx\]'"
    with pytest.raises(ModuleNotFoundError, match=says):
        export_onnx(reader(), tmp_path / "model.onnx")
    assert not any(tmp_path.iterdir())


@needs_onnx
def test_other_numbers_are_told_and_the_old_file_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, exported: tuple[Any, Path]
):
    """As if the exporter had written another model: by how much its answers differ is said."""
    model, path = exported
    monkeypatch.setattr(exporting, "_write", lambda whole, file: shutil.copy(path, file))
    other = pair_classifier()
    other.load_state_dict(model.state_dict())
    export_onnx(other, tmp_path / "model.onnx")
    other.classifier.bias.data += 0.25
    with pytest.raises(CheckpointError, match=r"logits differ from torch's by up to 2\.5e-01"):
        export_onnx(other, tmp_path / "model.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_bytes() == path.read_bytes()
    export_onnx(other, tmp_path / "coarse.onnx", tolerance=1.0)
    assert (tmp_path / "coarse.onnx").is_file()


@needs_onnx
def test_an_exporter_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def fails(*given: Any, **named: Any) -> None:
        raise RuntimeError("step 1 of 3") from TypeError("unhashable type")

    monkeypatch.setattr(torch.onnx, "export", fails)
    with pytest.raises(CheckpointError, match=r"a BertForQuestionAnswering.*unhashable t"):
        export_onnx(reader(), tmp_path / "model.onnx")
    with pytest.raises(CheckpointError, match="is a folder; expected the file's name"):
        export_onnx(reader(), tmp_path)
    assert not any(tmp_path.iterdir())


# ---------------------------------------------------------------- what is computed otherwise


@pytest.mark.parametrize("kernels", ["auto", "skewed", "gathered"])
@pytest.mark.parametrize("make", [deberta, deberta_v3])
def test_disentangled_attention_is_the_same_while_it_is_exported(
    monkeypatch: pytest.MonkeyPatch, make: Any, kernels: str
):
    more = {} if make is deberta else {"furthest": 12}
    model = drawn_weights(make("base", **SIZES, span=4, kernels=kernels, **more), 0.3).eval()
    same_while_exported(monkeypatch, BertForMaskedLM(model).eval())


def test_rotary_and_local_attention_are_the_same_while_exported(monkeypatch: pytest.MonkeyPatch):
    same_while_exported(monkeypatch, reader().eval())


def same_while_exported(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    ids = torch.randint(5, 50, (2, 60))  # more than four blocks of a local layer
    with torch.no_grad():
        expected = next(iter(vars(model(ids)).values()))
        monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
        values = next(iter(vars(model(ids)).values()))
    torch.testing.assert_close(values, expected, atol=1e-5, rtol=1e-5)
