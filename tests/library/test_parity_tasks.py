"""The heads of fine-tuning are equal to transformers' classes: scores, their own losses and the
gradients of these, weights there and back. What "equal" means is said in parity.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import safetensors.torch
import torch
from members import MEMBERS
from parity import (
    TOLERANCE,
    Case,
    all_distances,
    answer,
    assert_loaded,
    assert_saved_and_loaded,
    assert_there_and_back,
    both_precisions,
    distance,
    draw_case,
    drawn_weights,
    gradient_distance,
    largest,
    last_distances,
    pair_of_models,
)
from torch import Tensor

from course_lib.checkpoints import (
    FAMILIES,
    CheckpointError,
    from_transformers,
    load,
    load_pretrained,
    save,
    to_transformers,
)
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler, count_parameters
from course_lib.family.roberta import RobertaConfig, roberta_encoder
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.objectives.classification import classification_loss, regression_loss
from course_lib.objectives.spans import span_loss
from course_lib.objectives.token_labels import token_classification_loss

transformers = pytest.importorskip("transformers")

NAMES = ("negative", "neutral", "positive")
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
SMALL = BertConfig(
    vocab_size=30, hidden_size=12, num_layers=2, num_heads=3, intermediate_size=20, max_positions=9
)


class Task(NamedTuple):
    """A head of ours, what it is called there, and the same question put to both."""

    make: Callable[[Encoder], Any]
    theirs: str
    loss: Callable[[Any, dict[str, Tensor]], dict[str, Tensor]]
    draw: Callable[[Case, torch.Generator], dict[str, Tensor]]  # the targets
    said: dict[str, str]  # our name of a target -> transformers'
    fields: tuple[str, ...] = ("logits",)
    pooler: bool = False
    problem: str | None = None  # what transformers takes the targets for


def draw_classes(case: Case, make: torch.Generator) -> dict[str, Tensor]:
    return {"classes": torch.randint(3, case.pair.shape, generator=make)}


def draw_values(case: Case, make: torch.Generator) -> dict[str, Tensor]:
    values = torch.rand(case.pair.shape, generator=make, dtype=torch.float64) * 5
    return {"values": values}


def draw_tags(case: Case, make: torch.Generator) -> dict[str, Tensor]:
    """As on first pieces: labels at about a third of the real tokens."""
    tags = torch.randint(len(TAGS), case.labels.shape, generator=make)
    return {"token_labels": torch.where(case.labels == -100, -100, tags)}


def draw_spans(case: Case, make: torch.Generator) -> dict[str, Tensor]:
    """Answers among the real tokens, and (0, 0) in the first row."""
    lengths = case.real.sum(1)
    ends = (torch.rand((2, len(lengths)), generator=make) * lengths).long().sort(dim=0).values
    ends[:, 0] = 0
    return {"start": ends[0], "end": ends[1]}


TASKS = {
    "classes": Task(
        lambda encoder: BertForClassification(encoder, NAMES),
        "SequenceClassification",
        classification_loss,
        draw_classes,
        {"classes": "labels"},
        pooler=True,
        problem="single_label_classification",
    ),
    "regression": Task(
        lambda encoder: BertForClassification(encoder, 1),
        "SequenceClassification",
        regression_loss,
        draw_values,
        {"values": "labels"},
        pooler=True,
        problem="regression",
    ),
    "tokens": Task(
        lambda encoder: BertForTokenClassification(encoder, TAGS),
        "TokenClassification",
        token_classification_loss,
        draw_tags,
        {"token_labels": "labels"},
    ),
    "answers": Task(
        BertForQuestionAnswering,
        "QuestionAnswering",
        span_loss,
        draw_spans,
        {"start": "start_positions", "end": "end_positions"},
        fields=("start_logits", "end_logits"),
    ),
}
tasks = pytest.mark.parametrize("task", TASKS)


HEADS = [(member, task) for member, row in MEMBERS.items() for task in row.tasks]
every_head = pytest.mark.parametrize(("member", "task"), HEADS)
ODD_PADDING = ("deberta", "modernbert", "ultrabert")
PADDED, FULL = 31, 33  # seeds of a batch with padding, and of one without
# With one token a row, an answer's loss is 0 everywhere.
SEEDS = [seed for seed in range(12) if draw_case(seed).labels.shape[1] > 1][:8]
ONE_TOKEN = next(seed for seed in range(100) if draw_case(seed).labels.shape[1] == 1)


def made(member: str, task: str, config: Any) -> Any:
    """A model of this member with this head."""
    encoder = FAMILIES[MEMBERS[member].family].encoder(config, TASKS[task].pooler)
    return TASKS[task].make(encoder)


def models(member: str, task: str, case: Case, dtype: torch.dtype) -> tuple[Any, Any]:
    return pair_of_models(lambda config: made(member, task, config), case, dtype)


def losses(name: str, ours: Any, theirs: Any, case: Case) -> tuple[dict[str, float], list[Tensor]]:
    """The distance of the scores, at real tokens where each has some, and of the losses; and the
    losses, theirs by its own account."""
    task = TASKS[name]
    targets = task.draw(case, torch.Generator().manual_seed(5))
    dtype = next(ours.parameters()).dtype
    targets = {n: x.to(dtype) if x.is_floating_point() else x for n, x in targets.items()}
    mine = ours(**case.inputs)
    assert mine.hidden_states is None and mine.attentions is None  # which nobody wanted
    labels = {task.said[name]: value for name, value in targets.items()}
    reference = answer(theirs, case, **labels)
    loss = task.loss(mine, targets)["total"]
    found = last_distances(mine, reference, case)
    assert found.keys() == set(task.fields)
    return {**found, "loss": distance(loss, reference.loss)}, [loss, reference.loss]


@both_precisions
@pytest.mark.parametrize(
    ("member", "task", "seed"),
    [
        *(("bert", task, seed) for task in TASKS for seed in SEEDS),
        *(("bert", task, ONE_TOKEN) for task in ("classes", "tokens")),
        # transformers' DeBERTa and local layers treat padding as no other does, and an answer's
        # softmax runs over the padding, too: no padding there.
        *((m, t, FULL if m.startswith(ODD_PADDING) else PADDED) for m, t in HEADS if m != "bert"),
    ],
)
def test_equal_to_the_reference(member: str, task: str, seed: int, dtype: torch.dtype):
    row = MEMBERS[member]
    case = row.case(seed, dtype)
    assert case.real.all() or seed != FULL
    assert not case.real.all() or seed != PADDED
    ours, theirs = models(member, task, case, dtype)
    base = type(theirs.base_model).__name__.removesuffix("Model")
    assert type(theirs).__name__.removesuffix("Simple") == f"{base}For{TASKS[task].theirs}"
    found, both = losses(task, ours, theirs, case)
    for loss in both:
        loss.backward()
    found["gradients"] = gradient_distance(ours, theirs)
    found |= all_distances(ours, theirs, case, row.scores)
    assert largest(found) <= row.bound[dtype]
    if TASKS[task].problem:
        assert theirs.config.problem_type == TASKS[task].problem


@tasks
@torch.no_grad()
def test_a_difference_is_seen(task: str):
    """Not all of these comparisons hold whatever the numbers: one score moved is enough."""
    case = MEMBERS["bert"].case(1)
    ours, theirs = models("bert", task, case, torch.float32)
    (ours.span if task == "answers" else ours.classifier).weight[0, 0] += 1e-2
    found, _ = losses(task, ours, theirs, case)
    assert all(value > TOLERANCE[torch.float32] for n, value in found.items() if n != "end_logits")


# ---------------------------------------------------------------- dropout


@pytest.mark.parametrize(
    ("member", "task"),
    [
        (member, task)
        for member, task in HEADS
        if task in ("classes", "tokens")
        and type(made(member, task, MEMBERS[member].case(6).config))
        in FAMILIES[MEMBERS[member].family].dropouts
    ],
)
def test_the_heads_dropout(member: str, task: str):
    """While training, from the same random numbers; theirs may differ from the encoder's."""
    case = MEMBERS[member].case(6, torch.float64)
    ours, _ = models(member, task, case, torch.float64)
    at = case.real if task == "tokens" else ...
    assert ours.dropout.p == case.config.hidden_dropout == 0
    still = ours(**case.inputs).logits[at]
    ours.dropout.p = 0.5
    ours.train()
    theirs = to_transformers(ours, attention="eager")
    outputs = []
    for model in (ours, theirs, from_transformers(theirs)):
        torch.manual_seed(0)
        outputs.append(answer(model, case).logits[at])
    bound = MEMBERS[member].bound[torch.float64]
    assert distance(outputs[0], outputs[1]) <= bound >= distance(outputs[2], outputs[0])
    assert distance(outputs[0], still) > 1e-3


def test_a_randomly_initialised_head_drops_as_the_encoder_does():
    """In transformers so, too, unless classifier_dropout says otherwise."""
    encoder = Encoder(BertConfig(**{**vars(SMALL), "hidden_dropout": 0.3}))
    ours = BertForTokenClassification(encoder, TAGS)
    assert ours.dropout.p == 0.3 == to_transformers(ours).dropout.p
    config = to_transformers(ours).config
    config.classifier_dropout = None
    assert from_transformers(transformers.BertForTokenClassification(config)).dropout.p == 0.3
    config.classifier_dropout = 0.7
    assert from_transformers(transformers.BertForTokenClassification(config)).dropout.p == 0.7


# ---------------------------------------------------------------- weights there and back


def small(task: str) -> Any:
    return drawn_weights(made("bert", task, SMALL), 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@every_head
def test_weights_there_and_back_are_bit_identical(member: str, task: str, dtype: torch.dtype):
    config = MEMBERS[member].case(PADDED).config
    ours = drawn_weights(made(member, task, config), 0.1).to(dtype)
    back = assert_there_and_back(ours)
    assert back.config == config and getattr(back, "names", ()) == getattr(ours, "names", ())


def test_labels_names_go_along():
    theirs = to_transformers(small("classes"))
    assert theirs.config.id2label == dict(enumerate(NAMES)) and theirs.config.num_labels == 3
    assert theirs.config.label2id == {"negative": 0, "neutral": 1, "positive": 2}
    assert to_transformers(small("regression")).config.num_labels == 1
    assert from_transformers(theirs).names == NAMES
    theirs.config.id2label = {str(i): NAMES[i] for i in (2, 0, 1)}  # as JSON keeps it
    assert from_transformers(theirs).names == NAMES
    nameless = BertForTokenClassification(Encoder(SMALL), 3)
    assert nameless.names == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert from_transformers(to_transformers(nameless)).names == nameless.names


@every_head
def test_saved_and_loaded(tmp_path: Path, member: str, task: str):
    """The file remembers the head, its labels and its dropout; as does a folder of transformers."""
    ours = made(member, task, MEMBERS[member].case(PADDED).config)
    if task in ("classes", "tokens"):
        ours.dropout.p = 0.25
    assert_saved_and_loaded(ours, tmp_path / "m.safetensors")
    save(ours, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    to_transformers(ours).save_pretrained(tmp_path / "f")
    found = load_pretrained(tmp_path / "f")
    assert_loaded(found, ours)
    for model in (again, found.model):
        assert getattr(model, "names", ()) == getattr(ours, "names", ())
    if task in ("classes", "tokens"):
        assert again.dropout.p == 0.25
        told = type(ours) in FAMILIES[MEMBERS[member].family].dropouts  # else it is the encoder's
        assert found.model.dropout.p == (0.25 if told else ours.config.hidden_dropout)


def say(folder: Path, **changes: Any) -> None:
    """Another config.json; what is None is left out."""
    settings = {**json.loads((folder / "config.json").read_text()), **changes}
    settings = {name: value for name, value in settings.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(settings))


def test_two_labels_without_names_are_not_in_the_file(tmp_path: Path):
    ours = BertForTokenClassification(Encoder(SMALL), 2)
    to_transformers(ours).save_pretrained(tmp_path)
    assert "id2label" not in json.loads((tmp_path / "config.json").read_text())
    assert load_pretrained(tmp_path).model.names == ("LABEL_0", "LABEL_1")


def test_what_the_configuration_calls_the_model_counts(tmp_path: Path):
    """A tagger's file that holds a pooler, too, as early ones do, is no classifier of texts; and a
    classifier for another task is no tagger."""
    plain = BertForTokenClassification(Encoder(SMALL), TAGS)
    to_transformers(plain).save_pretrained(tmp_path)
    state = safetensors.torch.load_file(tmp_path / "model.safetensors")
    pooler = Pooler(SMALL).dense.state_dict()
    pooler = {f"bert.pooler.dense.{name}": value for name, value in pooler.items()}
    safetensors.torch.save_file({**state, **pooler}, tmp_path / "model.safetensors")
    found = load_pretrained(tmp_path).model
    assert isinstance(found, BertForTokenClassification) and found.names == TAGS
    assert found.encoder.pooler is not None
    say(tmp_path, architectures=["BertForMultipleChoice"])
    with pytest.raises(CheckpointError, match=r"classifier\.(weight|bias) is not expected"):
        load_pretrained(tmp_path)
    say(tmp_path, architectures=None)
    assert isinstance(load_pretrained(tmp_path).model, BertForClassification)


def test_other_heads_are_refused(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"a BertForPreTraining around a roberta encoder"):
        config = RobertaConfig(**{**vars(SMALL), "layer_norm_eps": 1e-5})
        to_transformers(BertForPreTraining(roberta_encoder(config, True)))
    encoder = FAMILIES["electra"].encoder(MEMBERS["electra"].case(PADDED).config, False)
    encoder.pooler = Pooler(encoder.config)
    with pytest.raises(CheckpointError, match=r"pooler 'tanh' was given; .* computes 'gelu'"):
        to_transformers(BertForClassification(encoder, 2))
    with pytest.raises(CheckpointError, match=r"Only ours has: pooler.*encoder\.pooler = None"):
        to_transformers(BertForTokenClassification(Encoder(SMALL, pooler=Pooler(SMALL)), 2))
    config = to_transformers(Encoder(SMALL)).config
    config.num_labels = 3
    three = transformers.BertForQuestionAnswering(config)
    with pytest.raises(CheckpointError, match=r"qa_outputs\.weight is \(3, 12\).*asks for \(2, 12"):
        from_transformers(three)
    to_transformers(small("classes")).save_pretrained(tmp_path)
    say(tmp_path, id2label={"0": "no", "1": "yes"})
    with pytest.raises(CheckpointError, match=r"classifier\.weight is \(3, 12\).*asks for \(2, 12"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize("member", ["deberta", "deberta-v2"])
def test_dropout_before_debertas_pooler_is_refused(tmp_path: Path, member: str):
    """Only the classification head has that pooler in transformers."""
    ours = made(member, "classes", MEMBERS[member].case(PADDED).config)
    to_transformers(ours).save_pretrained(tmp_path)
    say(tmp_path, pooler_dropout=0.1)
    with pytest.raises(CheckpointError, match=r"pooler_dropout=0\.1 was given; only 0 means"):
        load_pretrained(tmp_path)


# ---------------------------------------------------------------- the heads themselves


def test_how_many_numbers_a_task_adds():
    """Little: K·H + K for K classes, 2·H + 2 for answers."""
    added = {"classes": 3 * 12 + 3, "regression": 12 + 1, "tokens": 5 * 12 + 5, "answers": 26}
    for task, number in added.items():
        model = made("bert", task, SMALL)
        assert count_parameters(model) == count_parameters(model.encoder) + number


@pytest.mark.parametrize("labels", [0, -1, [], ["yes", "yes"]])
def test_labels_without_names_of_their_own(labels: Any):
    for make in (BertForClassification, BertForTokenClassification):
        with pytest.raises(ValueError, match=r"expected at least one, each with a name of its own"):
            make(Encoder(SMALL, pooler=Pooler(SMALL)), labels)
    with pytest.raises(
        ValueError, match=r"without a pooler was given.*pooler_for\(encoder\.config\)"
    ):
        BertForClassification(Encoder(SMALL), 2)


@tasks
def test_padding_removed(task: str):
    """The same scores and gradients when the blocks work on the real tokens alone."""
    case = draw_case(7)
    assert not case.real.all()
    ours, _ = models("bert", task, case, torch.float64)
    targets = TASKS[task].draw(case, torch.Generator().manual_seed(5))
    seen = []
    for remove in (False, True):
        ours.zero_grad(set_to_none=True)
        out = ours(**case.inputs, remove_padding=remove)
        if task == "answers":  # what stands at the padding differs, and takes part in the softmax
            for scores in (out.start_logits, out.end_logits):
                scores.data.masked_fill_(~case.real, -1e9)
        TASKS[task].loss(out, targets)["total"].backward()
        scores = [getattr(out, name) for name in TASKS[task].fields]
        seen.append(
            [x[case.real] if x.shape[:2] == case.real.shape else x for x in scores]
            + [p.grad for p in ours.parameters()]
        )
    assert max(map(distance, *seen)) <= TOLERANCE[torch.float64]


def test_padding_removed_where_words_are_predicted():
    """With predict_at, too: the whole last block, then the words that are asked."""
    case = draw_case(7)
    ours = drawn_weights(BertForMaskedLM(Encoder(case.config)), case.sd).double().eval()
    with torch.no_grad():
        plain = ours(**case.inputs, predict_at=case.to_predict).logits
        packed = ours(**case.inputs, predict_at=case.to_predict, remove_padding=True).logits
    assert distance(packed, plain) <= TOLERANCE[torch.float64]


@pytest.mark.parametrize("member", ["modernbert", "mobilebert", "ultrabert", "bert", "distilbert"])
@pytest.mark.parametrize("task", ["classes", "tokens"])
def test_a_class_that_is_not_named(tmp_path: Path, member: str, task: str):
    """Read by its weights, and refused where a classifier and a tagger have the same ones."""
    config = MEMBERS[member].case(PADDED).config
    if member == "mobilebert":  # whose classifier then has no pooler's weights
        config = replace(config, classifier_activation=False)
    ours = made(member, task, config)
    to_transformers(ours).save_pretrained(tmp_path)
    say(tmp_path, architectures=None)
    if member in ("bert", "distilbert"):
        assert type(load_pretrained(tmp_path).model) is type(ours)
    else:
        with pytest.raises(CheckpointError, match=r"lacks architectures; expected one: .* fit"):
            load_pretrained(tmp_path)
