"""The heads of fine-tuning are equal to transformers' classes: scores, their own losses and the
gradients of these, weights there and back. What "equal" means is said in parity.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import safetensors.torch
import torch
from parity import (
    DRAWN,
    TOLERANCE,
    Case,
    as_bert,
    assert_there_and_back,
    both_precisions,
    distance,
    draw_case,
    drawn_weights,
    gradient_distance,
    largest,
    on_meta,
    pair_of_models,
    scores_of,
)
from torch import Tensor

from course_lib.checkpoints import (
    CheckpointError,
    from_transformers,
    load,
    load_pretrained,
    save,
    to_transformers,
)
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler, count_parameters
from course_lib.family.albert import AlbertConfig, albert_encoder
from course_lib.family.deberta import DebertaV2Config, deberta_encoder
from course_lib.family.distilbert import DistilBertConfig, distilbert_encoder
from course_lib.family.electra import ElectraConfig, electra_encoder
from course_lib.family.roberta import RobertaConfig, roberta_encoder
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
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


def roberta_case(settings: dict[str, Any], draw: Any) -> RobertaConfig:
    return RobertaConfig(**{**settings, "max_positions": settings["max_positions"] + 2})


def albert_case(settings: dict[str, Any], draw: Any) -> AlbertConfig:
    return AlbertConfig(**settings, embedding_size=draw.choice([8, 9, 13]))


def distilbert_case(settings: dict[str, Any], draw: Any) -> DistilBertConfig:
    return DistilBertConfig(**{**settings, "type_vocab_size": 0})


def electra_case(settings: dict[str, Any], draw: Any) -> ElectraConfig:
    return ElectraConfig(**settings, embedding_size=draw.choice([8, 9, 13]))


def deberta_case(settings: dict[str, Any], draw: Any) -> DebertaV2Config:
    """Heads of 12: transformers' scale sqrt(3·12), computed in float32, is exact then."""
    sizes = {"hidden_size": 12 * settings["num_heads"], "type_vocab_size": 0}
    return DebertaV2Config(**{**settings, **sizes}, span=draw.choice([5, 8]), furthest=33)


def bert_encoder(config: BertConfig, pooler: bool = False) -> Encoder:
    return Encoder(config, pooler=Pooler(config) if pooler else None)


# Each member's name there, its configuration, its encoder, and the tasks whose heads are alike.
MEMBERS: dict[str, tuple[str, Any, Any, tuple[str, ...]]] = {
    "roberta": ("Roberta", roberta_case, roberta_encoder, ("tokens", "answers")),
    "albert": ("Albert", albert_case, albert_encoder, tuple(TASKS)),
    "distilbert": ("DistilBert", distilbert_case, distilbert_encoder, ("tokens", "answers")),
    "electra": ("Electra", electra_case, electra_encoder, ("tokens", "answers")),
    "deberta": ("DebertaV2", deberta_case, lambda c, p: deberta_encoder(c), ("tokens", "answers")),
}
OTHERS = [(member, task) for member, row in MEMBERS.items() for task in row[3]]
PADDED, FULL = 31, 33  # seeds of a batch with padding, and of one without


def models(task: Task, case: Case, encoder: Any, dtype: torch.dtype) -> tuple[Any, Any]:
    return pair_of_models(lambda config: task.make(encoder(config, task.pooler)), case, dtype)


def asked_both(
    task: Task, ours: Any, theirs: Any, case: Case, dtype: torch.dtype, **more: bool
) -> tuple[Any, Tensor, Any]:
    """Our output and our loss, and their output with their own loss in it."""
    targets = task.draw(case, torch.Generator().manual_seed(5))
    targets = {n: x.to(dtype) if x.is_floating_point() else x for n, x in targets.items()}
    mine = ours(**case.inputs, **more)
    labels = {task.said[name]: value for name, value in targets.items()}
    reference = theirs(**case.inputs, **labels, **more)
    return mine, task.loss(mine, targets)["total"], reference


def apart(task: Task, mine: Any, loss: Tensor, reference: Any, case: Case) -> dict[str, float]:
    """The distance of the scores, at real tokens where each has some, and of the losses."""
    found = {"loss": distance(loss, reference.loss)}
    for name in task.fields:
        a, b = getattr(mine, name), getattr(reference, name)
        per_token = a.shape[:2] == case.real.shape and task.theirs != "SequenceClassification"
        found[name] = distance(a[case.real], b[case.real]) if per_token else distance(a, b)
    return found


def whole_cases(count: range) -> list[int]:
    """Seeds whose rows have more than one token: with one, an answer's loss is 0 everywhere."""
    return [seed for seed in count if draw_case(seed).labels.shape[1] > 1]


def check_parity(task: Task, case: Case, encoder: Any, name: str, dtype: torch.dtype) -> None:
    ours, theirs = models(task, case, encoder, dtype)
    assert type(theirs).__name__ == f"{name}For{task.theirs}"
    mine, loss, reference = asked_both(task, ours, theirs, case, dtype)
    found = apart(task, mine, loss, reference, case)
    loss.backward()
    reference.loss.backward()
    found["gradients"] = gradient_distance(ours, theirs)
    assert largest(found) <= TOLERANCE[dtype]
    if task.problem:
        assert theirs.config.problem_type == task.problem


@both_precisions
@pytest.mark.parametrize("seed", whole_cases(DRAWN)[:8])
@tasks
def test_logits_losses_and_gradients(task: str, seed: int, dtype: torch.dtype):
    check_parity(TASKS[task], draw_case(seed), bert_encoder, "Bert", dtype)


@both_precisions
@pytest.mark.parametrize(("member", "task"), OTHERS)
def test_other_members(member: str, task: str, dtype: torch.dtype):
    """Wherever transformers' head is the same one dense layer. Its DeBERTa treats padding as no
    other does, and an answer's softmax runs over the padding, too: no padding there."""
    name, configure, encoder, _ = MEMBERS[member]
    case = draw_case(FULL if member == "deberta" else PADDED, configure)
    assert case.real.all() == (member == "deberta")
    check_parity(TASKS[task], case, encoder, name, dtype)


@pytest.mark.parametrize("task", ["classes", "tokens"])
def test_a_batch_of_one_token(task: str):
    seed = next(seed for seed in range(100) if draw_case(seed).labels.shape[1] == 1)
    check_parity(TASKS[task], draw_case(seed), bert_encoder, "Bert", torch.float64)


@torch.no_grad()
@tasks
def test_what_else_is_returned(task: str):
    """Hidden states, attention weights and scores come along, as from the encoder."""
    case = draw_case(4)
    ours, theirs = models(TASKS[task], case, bert_encoder, torch.float64)
    wanted = {"output_hidden_states": True, "output_attentions": True}
    mine, reference = ours(**case.inputs, **wanted), theirs(**case.inputs, **wanted)
    for name in ("hidden_states", "attentions"):
        pairs = list(zip(getattr(mine, name), getattr(reference, name), strict=True))
        assert pairs and all(
            distance(*(x.transpose(1, -2)[case.real] if x.dim() == 4 else x[case.real] for x in p))
            <= TOLERANCE[torch.float64]
            for p in pairs
        )
    scores = ours(**case.inputs, output_attention_scores=True).attention_scores
    assert len(scores) == len(scores_of(theirs, case))
    assert ours(**case.inputs).hidden_states is None


def test_a_difference_is_seen():
    """Not all of these comparisons hold whatever the numbers: one score moved is enough."""
    for name, task in TASKS.items():
        case = draw_case(1)
        ours, theirs = models(task, case, bert_encoder, torch.float32)
        with torch.no_grad():
            (ours.span if name == "answers" else ours.classifier).weight[0, 0] += 1e-2
            mine, loss, reference = asked_both(task, ours, theirs, case, torch.float32)
        found = apart(task, mine, loss, reference, case)
        assert all(
            value > TOLERANCE[torch.float32] for n, value in found.items() if n != "end_logits"
        )


# ---------------------------------------------------------------- dropout


@pytest.mark.parametrize("task", ["classes", "tokens"])
@pytest.mark.parametrize("member", ["bert", "albert"])
def test_the_heads_dropout(member: str, task: str):
    """While training, from the same random numbers; theirs may differ from the encoder's."""
    configure, encoder = (as_bert, bert_encoder) if member == "bert" else MEMBERS[member][1:3]
    case = draw_case(5, configure)
    ours, _ = models(TASKS[task], case, encoder, torch.float64)
    assert ours.dropout.p == case.config.hidden_dropout == 0
    still = ours(**case.inputs).logits
    ours.dropout.p = 0.5
    ours.train()
    theirs = to_transformers(ours, attention="eager")
    outputs = []
    for model in (ours, theirs, from_transformers(theirs)):
        torch.manual_seed(0)
        outputs.append(model(**case.inputs).logits[case.real if task == "tokens" else ...])
    assert distance(outputs[0], outputs[1]) <= 1e-10 >= distance(outputs[2], outputs[0])
    assert distance(outputs[0], still[case.real if task == "tokens" else ...]) > 1e-3


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


def small(task: str, config: BertConfig = SMALL) -> Any:
    return drawn_weights(TASKS[task].make(bert_encoder(config, TASKS[task].pooler)), 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@tasks
def test_weights_there_and_back_are_bit_identical(task: str, dtype: torch.dtype):
    ours = small(task).to(dtype)
    assert_there_and_back(ours)
    back = from_transformers(to_transformers(ours))
    assert back.config == SMALL and getattr(back, "names", ()) == getattr(ours, "names", ())


@pytest.mark.parametrize(("member", "task"), OTHERS)
def test_other_members_there_and_back(member: str, task: str):
    _, configure, encoder, _ = MEMBERS[member]
    case = draw_case(31, configure)
    assert_there_and_back(
        drawn_weights(TASKS[task].make(encoder(case.config, TASKS[task].pooler)), 0.1)
    )


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


@tasks
def test_saved_and_loaded(tmp_path: Path, task: str):
    """The file remembers the head, its labels and its dropout; the same model, the same bytes."""
    ours = small(task)
    if task in ("classes", "tokens"):
        ours.dropout.p = 0.25
    digest = save(ours, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors", sha256=digest)
    assert type(again) is type(ours) and again.config == ours.config
    assert getattr(again, "names", ()) == getattr(ours, "names", ())
    assert getattr(again, "dropout", None) == getattr(ours, "dropout", None) or (
        again.dropout.p == ours.dropout.p
    )
    weights = again.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in ours.state_dict().items())
    ids = torch.tensor([[2, 7, 8, 3]])
    for name in TASKS[task].fields:  # not by bits: the weights lie at other addresses
        torch.testing.assert_close(getattr(again(ids), name), getattr(ours.eval()(ids), name))
    assert save(again, tmp_path / "n.safetensors") == digest
    found = load_pretrained(tmp_path / "m.safetensors")
    assert type(found.model) is type(ours) and found.encoder is found.model.encoder


@pytest.mark.parametrize(
    ("member", "task"),
    [*(("bert", task) for task in TASKS), ("albert", "classes"), ("distilbert", "answers")],
)
def test_a_folder_that_transformers_wrote(tmp_path: Path, member: str, task: str):
    if member == "bert":
        ours = small(task)
    else:
        _, configure, encoder, _ = MEMBERS[member]
        ours = TASKS[task].make(encoder(draw_case(31, configure).config, TASKS[task].pooler))
    to_transformers(ours).save_pretrained(tmp_path)
    found = load_pretrained(tmp_path).model
    assert type(found) is type(ours) and getattr(found, "names", 0) == getattr(ours, "names", 0)
    assert all(torch.equal(v, found.state_dict()[n]) for n, v in ours.state_dict().items())


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
    settings = json.loads((tmp_path / "config.json").read_text())
    settings["architectures"] = ["BertForMultipleChoice"]
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(CheckpointError, match=r"classifier\.(weight|bias) is not expected"):
        load_pretrained(tmp_path)
    del settings["architectures"]
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert isinstance(load_pretrained(tmp_path).model, BertForClassification)


def test_other_heads_are_refused(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"a BertForClassification around a roberta encoder"):
        config = RobertaConfig(**{**vars(SMALL), "layer_norm_eps": 1e-5})
        to_transformers(BertForClassification(roberta_encoder(config, True), 2))
    with pytest.raises(CheckpointError, match=r"Only ours has: pooler.*encoder\.pooler = None"):
        to_transformers(BertForTokenClassification(bert_encoder(SMALL, True), 2))
    config = to_transformers(Encoder(SMALL)).config
    config.num_labels = 3
    three = transformers.BertForQuestionAnswering(config)
    with pytest.raises(CheckpointError, match=r"qa_outputs\.weight is \(3, 12\).*asks for \(2, 12"):
        from_transformers(three)
    to_transformers(small("classes")).save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    settings["id2label"] = {"0": "no", "1": "yes"}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(CheckpointError, match=r"classifier\.weight is \(3, 12\).*asks for \(2, 12"):
        load_pretrained(tmp_path)


# ---------------------------------------------------------------- the heads themselves


def test_how_many_numbers_a_task_adds():
    """Little: K·H + K for K classes, 2·H + 2 for answers."""
    base, pooled = BertConfig(), on_meta(lambda: bert_encoder(BertConfig(), True))
    bare = on_meta(lambda: Encoder(base))
    for task, alone, added in (
        ("classes", pooled, 3 * 768 + 3),
        ("regression", pooled, 768 + 1),
        ("tokens", bare, 5 * 768 + 5),
        ("answers", bare, 2 * 768 + 2),
    ):

        def make(task: str = task) -> Any:
            return TASKS[task].make(bert_encoder(base, TASKS[task].pooler))

        assert on_meta(make) == alone + added
    assert count_parameters(small("answers").span) == 2 * 12 + 2


@pytest.mark.parametrize("labels", [0, -1, [], ["yes", "yes"]])
def test_labels_without_names_of_their_own(labels: Any):
    for make in (BertForClassification, BertForTokenClassification):
        with pytest.raises(ValueError, match=r"expected at least one, each with a name of its own"):
            make(bert_encoder(SMALL, True), labels)
    with pytest.raises(ValueError, match=r"without a pooler was given.*Pooler\(encoder\.config\)"):
        BertForClassification(Encoder(SMALL), 2)


@tasks
def test_padding_removed(task: str):
    """The same scores and gradients when the blocks work on the real tokens alone."""
    case = draw_case(7)
    assert not case.real.all()
    ours, _ = models(TASKS[task], case, bert_encoder, torch.float64)
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
