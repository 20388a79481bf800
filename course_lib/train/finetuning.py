"""Fine-tuning: a pre-trained encoder, a randomly initialised head on top, a few labelled texts.

The task decides the head: LabelledSequences a class a text, ScoredSequences a number a text,
TaggedSequences a tag a word, QuestionSequences the start and the end of an answer, LabelledPictures
a class a picture. Nothing else differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import ceil, inf
from typing import Any

import torch
from torch import Tensor

from course_lib.checkpoints import Pretrained
from course_lib.config import check_number, check_size
from course_lib.encoder import Encoder, Pooler, count_parameters, initialise, pooler_for
from course_lib.family.vit import VitForClassification
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
    label_names,
)
from course_lib.images import LabelledPictures
from course_lib.objectives.classification import classification_loss, regression_loss
from course_lib.objectives.sequences import Batch, shuffled, text_first
from course_lib.objectives.spans import best_spans, span_loss
from course_lib.objectives.token_labels import token_classification_loss
from course_lib.text.english import gold_texts
from course_lib.text.features import QuestionSequences, TaggedSequences
from course_lib.text.tasks import LabelledSequences, ScoredSequences

from .loop import Callback, Objective, fit
from .progress import ProgressLine
from .span_metrics import Candidate, SquadScores, choose_null_threshold, span_scores, squad_scores
from .task_metrics import accuracy, pearson

Task = LabelledSequences | ScoredSequences | TaggedSequences | QuestionSequences | LabelledPictures
ForTask = (
    BertForClassification
    | BertForTokenClassification
    | BertForQuestionAnswering
    | VitForClassification
)

# The learning rate for encoders of up to so many weights: lecture 03 tried five for the first two
# shapes (MiniLM's 22 million are past theirs at 1e-3); BERT, appendix A.3, for all larger ones.
RATES = ((8_000_000, 1e-3), (50_000_000, 1e-4), (float("inf"), 3e-5))
MAKERS = {
    LabelledSequences: "text_sequences(texts, labels, None, tokenizer, length)",
    TaggedSequences: 'tagged_sequences(sentences, "entities", tokenizer, length)',
    QuestionSequences: "question_sequences(questions, tokenizer, length, stride)",
}

# What each kind of task is trained with.
LOSSES: dict[type, Objective] = {
    LabelledSequences: classification_loss,
    ScoredSequences: regression_loss,
    TaggedSequences: token_classification_loss,
    QuestionSequences: span_loss,
    LabelledPictures: classification_loss,
}


def labelled_batches(task: Task, batch_size: int, seed: int = 0) -> Callable[[int], Batch]:
    """Batches of the task's texts, in the order of `shuffled`, which raises its errors."""
    which = shuffled(len(task), batch_size, seed)

    def batches(step: int) -> Batch:
        part = task[which(step)]
        return Batch(model_inputs(part), targets_of(part))

    return batches


def model_inputs(task: Task) -> dict[str, Tensor]:
    """A model's arguments, padding behind the texts and cut to the longest of them; of pictures,
    the pictures."""
    if isinstance(task, LabelledPictures):
        return {"pixel_values": task.pixel_values}
    inputs, longest = task.sequences.padding_last().inputs, _longest(task)
    return {name: value[:, :longest].contiguous() for name, value in inputs.items()}


def targets_of(task: Task) -> dict[str, Tensor]:
    """What the task's loss compares the model's answer with."""
    if isinstance(task, LabelledSequences | LabelledPictures):
        return {"classes": task.labels}
    if isinstance(task, ScoredSequences):
        return {"values": task.values}
    if isinstance(task, TaggedSequences):
        moved = task.labels.gather(1, text_first(task.sequences.attention_mask))
        return {"token_labels": moved[:, : _longest(task)].contiguous()}
    return {"start": task.start, "end": task.end}


def _longest(task: Any) -> int:
    return int((task.sequences.attention_mask != 0).sum(dim=1).max())


def unwrap_encoder(start: Encoder | Pretrained) -> Encoder:
    """The encoder that fine-tuning starts from; TypeError for anything else than one, or than what
    `load_pretrained` returns."""
    start = start.encoder if isinstance(start, Pretrained) else start
    if not isinstance(start, Encoder):
        within = " Its encoder is .encoder." if hasattr(start, "encoder") else ""
        name = start if isinstance(start, str) else "course-bert"
        raise TypeError(
            f"a {type(start).__name__} was given; expected an encoder, or what "
            f'load_pretrained("{name}") returns.{within}'
        )
    return start


def check_task(task: object) -> None:
    """Raise TypeError for anything but labelled sequences or pictures."""
    if type(task) not in LOSSES:
        makers = "; ".join(MAKERS.values())
        raise TypeError(
            f"a {type(task).__name__} was given as task, {task!r:.40}; expected labelled texts as "
            f"sequences, which these make: {makers}."
        )


def check_learnable(task: Task) -> None:
    """Raise ValueError for a task without texts, and for one of a single class."""
    if not len(task):
        raise ValueError("A task without texts was given; expected texts to learn from.")
    if isinstance(task, LabelledSequences | TaggedSequences):
        labels = task.labels[task.labels >= 0].unique()
        if len(labels) < 2:
            only = task.names[int(labels[0])] if len(labels) else "none"
            raise ValueError(
                f"all texts of the task have one label, {only!r}; expected two or more: with one "
                "there is nothing to learn. Were the data sorted and then cut?"
            )


def classifier_on(
    encoder: Encoder | Pretrained,
    classes: int | Sequence[str],
    seed: int = 0,
    plain_head: bool = False,
) -> BertForClassification:
    """A classifier on top of a *copy* of the encoder; classifier and, where missing, pooler are
    randomly initialised. classes: their names, or how many there are. plain_head: BERT's pooler in
    place of the member's own. TypeError as `unwrap_encoder`."""
    encoder = unwrap_encoder(encoder)
    torch.manual_seed(seed)
    copy = deepcopy(encoder).requires_grad_(True)
    if copy.pooler is None:
        copy.pooler = Pooler(copy.config) if plain_head else pooler_for(copy.config)
        copy.pooler.apply(lambda module: initialise(module, copy.config.initializer_range))
    return BertForClassification(copy, classes, plain_head)


def check_length(task: Task, model: Any) -> None:
    """Raise ValueError for a text with more tokens than the model has positions for."""
    longest = getattr(getattr(model, "config", None), "longest_text", inf)
    if not isinstance(task, LabelledPictures) and (tokens := _longest(task)) > longest:
        raise ValueError(
            f"a task with a text of {tokens} tokens was given to a model with positions for "
            f"{longest}; expected at most as many. Make the task with length={longest}."
        )


def head_on(
    encoder: Encoder | Pretrained, task: Task, seed: int = 0, plain_head: bool = False
) -> ForTask:
    """The task's head, randomly initialised, on top of a *copy* of the encoder. plain_head: see
    `finetune`. TypeError as `unwrap_encoder` and `check_task`."""
    encoder = unwrap_encoder(encoder)
    check_task(task)
    if isinstance(task, LabelledSequences):
        return classifier_on(encoder, task.names, seed, plain_head)
    if isinstance(task, ScoredSequences):
        return classifier_on(encoder, 1, seed, plain_head)
    torch.manual_seed(seed)
    copy = deepcopy(encoder).requires_grad_(True)
    copy.pooler = None  # this head does not use it
    if isinstance(task, LabelledPictures):
        return VitForClassification(copy, task.names)  # type: ignore[arg-type]
    if isinstance(task, TaggedSequences):
        return BertForTokenClassification(copy, task.names, plain_head)
    return BertForQuestionAnswering(copy, plain_head)


def finetune(
    encoder: Encoder | Pretrained,
    task: Task,
    *,
    steps: int | None = None,
    epochs: float | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    seed: int = 0,
    precision: str = "auto",
    device: str = "auto",
    frozen: bool = False,
    plain_head: bool = False,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
) -> Any:
    """Train a copy of the whole encoder on the task; the one that was passed in does not change.

    encoder: one, or what `load_pretrained` returns. steps or epochs: the number of batches to train
    on, or of passes over the texts, of which each drops the few that fill no batch. batch_size:
    None for 16, or for all where there are fewer.
    learning_rate: None for that of RATES, by the encoder's size.
    frozen: only what is randomly initialised learns (the head, and a pooler that was missing), on
    vectors that stay as they are. plain_head: BERT's head on every member, in place of the one that
    its class in transformers has: for comparing encoders. device: as in `fit`; the model that is
    returned, with the task's head, is where the encoder is. progress: a line with steps, loss and
    time left, and a report at the end; None: in a terminal, where there are no callbacks.
    Raises TypeError for another encoder or task, ValueError for both steps and epochs, or neither,
    for a text longer than the model, and as `check_learnable`, `labelled_batches` and `fit` do."""
    check_size("seed", seed, 0)
    encoder = unwrap_encoder(encoder)
    model = head_on(encoder, task, seed, plain_head)
    check_learnable(task)
    check_length(task, encoder)
    batch_size = max(1, min(16, len(task))) if batch_size is None else batch_size
    steps = count_steps(len(task), batch_size, steps, epochs)
    learning_rate = default_rate(encoder) if learning_rate is None else learning_rate
    if progress or (progress is None and not callbacks):
        per_epoch = len(task) / batch_size
        callbacks = [*callbacks, ProgressLine(per_epoch, learning_rate, always=bool(progress))]
    if frozen:
        model.encoder.requires_grad_(False)
        if encoder.pooler is None and model.encoder.pooler is not None:
            model.encoder.pooler.requires_grad_(True)
    fit(
        model, LOSSES[type(task)], labelled_batches(task, batch_size, seed),
        steps=steps, learning_rate=learning_rate, seed=seed, precision=precision,
        device=device, callbacks=callbacks,
    )  # fmt: skip
    return model


def count_steps(texts: int, batch_size: int, steps: int | None, epochs: float | None) -> int:
    """The number of steps; epochs are converted and rounded up. Raises ValueError for both or
    neither, and for numbers below one."""
    check_size("batch_size", batch_size)
    if (steps is None) == (epochs is None):
        raise ValueError(
            f"steps={steps} and epochs={epochs} were given; expected one of the two: epochs=3, "
            "say, to go through all texts three times."
        )
    if epochs is None:
        return steps  # type: ignore[return-value]
    check_number("epochs", epochs)
    if epochs <= 0:
        raise ValueError(f"epochs={epochs!r} was given; expected more than 0.")
    return ceil(round(epochs * texts / batch_size, 6))


def default_rate(encoder: Encoder) -> float:
    """The learning rate of RATES for an encoder of this size."""
    weights = count_parameters(encoder)
    return next(rate for most, rate in RATES if weights < most)


# ---------------------------------------------------------------- answers, and how good they are


@torch.no_grad()
def outputs_on(
    model: Any, task: Task, outputs: Sequence[str], batch_size: int = 64
) -> list[Tensor]:
    """The model's outputs of these names for all texts, a token's where it stands in its sequence,
    on the CPU. The model is left as it was found, wherever it is. ValueError for no texts, a text
    longer than the model, and a task whose labels have other names or order than the model's."""
    model = unwrap_model(model)
    check_task(task)
    if not len(task):
        raise ValueError("A task without texts was given; expected at least one.")
    ours, theirs = getattr(model, "names", ()), getattr(task, "names", ())
    known = (tuple(theirs), label_names(len(theirs) or 1))
    if ours and theirs and tuple(ours) not in known:
        raise ValueError(
            f"a task with the labels {', '.join(theirs)} was given to a model with "
            f"{', '.join(ours)}; expected the same, in the same order. Make the task with "
            "names=model.names."
        )
    check_length(task, model)
    was_training, device = model.training, next(model.parameters(), torch.empty(0)).device
    model.eval()
    result = []
    try:
        for start in range(0, len(task), batch_size):
            part = task[start : start + batch_size]
            out = model(**{name: value.to(device) for name, value in model_inputs(part).items()})
            logits = [getattr(out, name).cpu() for name in outputs]
            if isinstance(part, TaggedSequences | QuestionSequences):
                logits = [_restore_positions(x, part.sequences.attention_mask) for x in logits]
            result.append(logits)
    finally:
        model.train(was_training)
    return [torch.cat(parts) for parts in zip(*result, strict=True)]


def _restore_positions(logits: Tensor, attention_mask: Tensor) -> Tensor:
    """(B, longest, …), as `model_inputs` moved the tokens, -> (B, T, …), where they stand in their
    sequences; zeros elsewhere."""
    order = text_first(attention_mask)[:, : logits.shape[1]]
    at = order.view(*order.shape, *[1] * (logits.dim() - 2)).expand_as(logits)
    empty = logits.new_zeros(*attention_mask.shape, *logits.shape[2:])
    return empty.scatter(1, at, logits)


def unwrap_model(model: Any) -> Any:
    """The model with its head; of what `load_pretrained` returns, the one in it."""
    if not isinstance(model, Pretrained):
        return model
    if model.model is None:
        raise TypeError("a checkpoint of an encoder was given; expected a model with a head.")
    return model.model


def predicted_classes(model: BertForClassification, task: LabelledSequences) -> list[str]:
    """The class with the highest logit of each text, by name."""
    (logits,) = outputs_on(model, task, ["logits"])
    return [task.names[n] for n in logits.argmax(-1).tolist()]


def predicted_values(model: BertForClassification, task: ScoredSequences) -> list[float]:
    """The number that the model says of each text."""
    (logits,) = outputs_on(model, task, ["logits"])
    return logits.squeeze(1).tolist()


def predicted_tags(model: BertForTokenClassification, task: TaggedSequences) -> list[list[str]]:
    """The tag with the highest logit of each word that fits into its sequence."""
    (logits,) = outputs_on(model, task, ["logits"])
    names = task.names or unwrap_model(model).names
    return [
        [names[n] for n in row[list(first)].argmax(-1).tolist()]
        for row, first in zip(logits, task.first, strict=True)
    ]


def best_answers(
    model: BertForQuestionAnswering,
    task: QuestionSequences,
    longest: int = 30,
    as_released: bool = False,
) -> dict[str, tuple[str, float]]:
    """question id -> the best span of all its windows, as it stands in the passage, and by how much
    it beats the null answer. as_released: as in run_squad.py, an answer starts only in that window
    in which its first token has most context. ValueError as `gold_answers`."""
    start, end = outputs_on(model, task, ["start_logits", "end_logits"])
    may_start = task.most_context if as_released else None
    spans = best_spans(start, end, task.allowed, longest, may_start)
    null: dict[str, float] = {}
    best: dict[str, tuple[float, int]] = {}  # the best score, and in which window
    gold_answers(task)  # raises where two questions have one id
    for window, number in enumerate(task.question.tolist()):
        name, score = task.questions[number].id, spans.score[window].item()
        # The question has no answer if no window has one: the least of their null scores.
        null[name] = min(null.get(name, float("inf")), spans.null_score[window].item())
        if name not in best or score > best[name][0]:
            best[name] = score, window
    return {
        name: (task.span(w, int(spans.start[w]), int(spans.end[w])).text, score - null[name])
        for name, (score, w) in best.items()
    }


def null_threshold(answers: Mapping[str, tuple[str, float]], task: QuestionSequences) -> float:
    """The threshold that these answers do best with: give the span where it beats the null answer
    by more. Of equally good ones that which answers least, as in the official script. Choose it on
    other questions than those it is tested on."""
    gold = gold_answers(task)
    return choose_null_threshold(
        Candidate(text, margin, gold[name]) for name, (text, margin) in answers.items()
    )


def gold_answers(task: QuestionSequences) -> dict[str, list[str]]:
    """`gold_texts` of the questions that these windows are of, with its error."""
    return gold_texts(task.questions[n] for n in dict.fromkeys(task.question.tolist()))


def answer_scores(
    model: BertForQuestionAnswering,
    task: QuestionSequences,
    threshold: float = 0.0,
    as_released: bool = False,
) -> SquadScores:
    """Exact match and F1 of `best_answers`, "" where the margin is not above the threshold."""
    predicted = {name: text if margin > threshold else "" for name, (text, margin) in
            best_answers(model, task, as_released=as_released).items()}  # fmt: skip
    return squad_scores(predicted, gold_answers(task))


def class_accuracy(
    model: ForTask, task: LabelledSequences | LabelledPictures, batch_size: int = 256
) -> float:
    """Fraction of texts, or pictures, whose class gets the highest logit."""
    (logits,) = outputs_on(model, task, ["logits"], batch_size)
    return (logits.argmax(-1) == task.labels).double().mean().item()


def task_score(model: Any, task: Task, threshold: float = 0.0) -> float:
    """One number for how well a model does a task: accuracy of classes; of numbers Pearson's
    correlation (nan where the model always says the same); of entities F1 over whole spans, of
    other tags accuracy; of answers F1."""
    if isinstance(task, LabelledSequences | LabelledPictures):
        return class_accuracy(model, task)
    if isinstance(task, ScoredSequences):
        return pearson(task.values, predicted_values(model, task))
    if isinstance(task, QuestionSequences):
        return answer_scores(model, task, threshold).f1
    true, predicted = task.tags(task.labels), predicted_tags(model, task)
    if "O" in task.names:
        return span_scores(true, predicted).f1
    return accuracy([t for row in true for t in row], [t for row in predicted for t in row])
