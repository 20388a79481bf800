"""Fine-tuning: it learns what can be learnt, and leaves what it was given alone."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from objective_parts import draw_sequences, special_ids
from torch import nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.family.deberta import DebertaConfig, deberta_encoder
from course_lib.family.distilbert import DistilBertConfig, distilbert_encoder
from course_lib.family.modernbert import ModernBertConfig, modernbert_encoder
from course_lib.family.roberta import RobertaConfig, roberta_encoder
from course_lib.family.xlm_roberta import XlmRobertaConfig
from course_lib.heads import (
    BertForClassification,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForTokenClassification,
    SpanOutput,
    TokenClassifierOutput,
)
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.distillation import tinybert_loss
from course_lib.objectives.entity_alignment import alignment_batches
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.english import Answer, Question, TaggedSentence
from course_lib.text.features import question_sequences, tagged_sequences, text_sequences
from course_lib.text.tasks import LabelledSequences, ScoredSequences
from course_lib.text.wordpiece import WordPiece
from course_lib.train.distilling import DistillationPair
from course_lib.train.exits import (
    fastbert_on,
    train_backbone,
    train_students,
    unlabelled_batches,
)
from course_lib.train.finetuning import (
    answer_scores,
    best_answers,
    class_accuracy,
    classifier_on,
    finetune,
    gold_answers,
    head_on,
    labelled_batches,
    model_inputs,
    null_threshold,
    outputs_on,
    predicted_classes,
    predicted_tags,
    targets_of,
    task_score,
)
from course_lib.train.loop import fit
from course_lib.train.metrics import evaluate

WORDS = WordPiece.from_words(
    ["ann", "bob", "lee", "york", "rome", "##shire", "met", "is", "in", "who", "where", ".", "?"]
)
CONFIG = BertConfig(
    vocab_size=30, hidden_size=24, num_layers=2, num_heads=2, intermediate_size=48,
    max_positions=24, hidden_dropout=0.0, attention_dropout=0.0, initializer_range=0.1,
)  # fmt: skip
NAMES = ("low", "middle", "high")
TAGS = ("O", "B-PER", "I-PER", "B-LOC")
PLACES = ("york", "yorkshire", "rome")
POOLER = {"encoder.pooler.dense.weight", "encoder.pooler.dense.bias"}


def toy(count=60, seed=0):
    """Each class has seven words of its own; texts of 6 to 9 tokens, padded to 10."""
    make = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (count,), generator=make)
    ids = 5 + 7 * labels[:, None] + torch.randint(0, 7, (count, 10), generator=make)
    lengths = torch.randint(6, 10, (count, 1), generator=make)
    ids[:, 0] = 2
    mask = (torch.arange(10) < lengths).long()
    return LabelledSequences(
        PackedSequences(ids * mask, mask, torch.zeros_like(ids)), labels, NAMES
    )


def sentences(count, seed=0):
    """Who met whom, or is where; no two alike. Lee is a first name or, behind another, a family
    name."""
    draw = random.Random(seed)
    told = {}
    while len(told) < count:
        words, tags = [], []
        for _ in range(draw.randint(1, 2)):
            names = [draw.choice(("ann", "bob", "lee")), *draw.sample(["lee"], draw.randint(0, 1))]
            ends = (["met", draw.choice(("ann", "bob"))], ["is", "in", draw.choice(PLACES)])
            met = draw.random() < 0.5
            words += [*names, *ends[not met], "."]
            tags += ["B-PER", "I-PER"][: len(names)]
            tags += ["O", "B-PER", "O"] if met else ["O", "O", "B-LOC", "O"]
        text = " ".join(words)
        told[text] = TaggedSentence(
            f"t{len(told)}", text, tuple(words), ("X",) * len(words), tuple(tags)
        )
    return list(told.values())


def tagging(count=64, seed=0):
    return tagged_sequences(sentences(count, seed), "entities", WORDS, 20, TAGS)


def asking(count=64, seed=0):
    """Where is somebody? The only place of the text; of texts without one, nowhere."""
    questions = []
    for n, sentence in enumerate(sentences(count, seed)):
        found = [
            Answer(word, start)
            for word, (start, _) in zip(sentence.words, sentence.offsets, strict=True)
            if word in PLACES
        ]
        if len(found) < 2:
            questions.append(Question(f"q{n}", "where ?", sentence.text, tuple(found)))
    return question_sequences(questions, WORDS, 24, 8)


KINDS = {"classes": toy, "tags": tagging, "answers": asking}
HEADS = {
    "classes": BertForClassification,
    "tags": BertForTokenClassification,
    "answers": BertForQuestionAnswering,
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def encoder(pooler=False, **changes):
    torch.manual_seed(0)
    config = replace(CONFIG, **changes)
    return Encoder(config, pooler=Pooler(config) if pooler else None)


def bits(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same_bits(a, b):
    """Of weights that were left alone; and of a run that is repeated, on the same machine, with
    the same versions, precision and thread count."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def tune(task, steps, given=None, **more):
    losses = []
    model = finetune(
        given or encoder(), task, steps=steps, learning_rate=1e-2, precision="float32",
        callbacks=[lambda report: losses.append(report.losses["total"])], **more,
    )  # fmt: skip
    return model, losses


@every_kind
def test_it_learns_what_can_be_learnt_and_leaves_the_encoder_given_as_it_is(kind):
    task, given = KINDS[kind](), encoder(pooler=True)
    given.requires_grad_(False)  # a frozen encoder, such as a teacher's, is trained in its copy
    before = bits(given)
    # From some fresh weights a hundred steps are too few; which they are, torch's version decides.
    model, losses = tune(task, 300 if kind == "classes" else 100, given)
    assert isinstance(model, HEADS[kind]) and not model.training
    assert (model.encoder.pooler is None) == (kind != "classes")
    assert losses[-1] < 0.1 * losses[0]
    assert task_score(model, task) == 1.0
    assert task_score(model, KINDS[kind](seed=1)) > 0.9  # texts it has not seen
    assert task_score(head_on(given, task), task) < 0.7
    assert same_bits(bits(given), before) and not any(p.requires_grad for p in given.parameters())
    for name, value in bits(model.encoder).items():
        if not name.endswith("key.bias"):
            assert not torch.equal(value, before[name]), name  # the whole encoder was trained
    if kind == "classes":
        assert predicted_classes(model, task) == [NAMES[n] for n in task.labels.tolist()]


@every_kind
def test_the_same_seed_ends_in_the_same_weights(kind):
    task = KINDS[kind]()
    runs = [bits(tune(task, 3, seed=seed)[0]) for seed in (0, 0, 1)]
    assert same_bits(runs[0], runs[1]) and not same_bits(runs[0], runs[2])


@pytest.mark.parametrize("pooler", [True, False])
@every_kind
def test_of_a_frozen_encoder_the_head_learns_and_a_pooler_that_was_missing(kind, pooler):
    task, given = KINDS[kind](), encoder(pooler)
    fresh = bits(head_on(given, task))
    model, losses = tune(task, 40, given, frozen=True)
    assert losses[-1] < losses[0]
    moved = {name for name, value in bits(model).items() if not torch.equal(value, fresh[name])}
    head = {name for name in fresh if not name.startswith("encoder.")}
    assert moved == head | (POOLER if kind == "classes" and not pooler else set())


def test_a_pooler_is_kept_where_there_is_one_and_drawn_where_not():
    given = encoder(pooler=True)
    model = classifier_on(given, 3)
    assert model.encoder is not given
    assert torch.equal(model.encoder.pooler.dense.weight, given.pooler.dense.weight)
    fresh = classifier_on(encoder(), 3).encoder.pooler.dense
    assert fresh.weight.abs().max() <= 2 * CONFIG.initializer_range and not fresh.bias.any()
    one, same, other = (classifier_on(encoder(), 3, seed) for seed in (4, 4, 5))
    assert same_bits(bits(one), bits(same))
    assert not torch.equal(one.classifier.weight, other.classifier.weight)


def test_heads_keep_the_names_of_their_labels():
    assert head_on(encoder(), toy()).names == NAMES
    assert head_on(encoder(), tagging()).names == TAGS
    assert classifier_on(encoder(), 2).names == ("LABEL_0", "LABEL_1")


# ---------------------------------------------------------------- batches


def row_numbers(task, batch):
    """Which of the task's texts a batch holds."""
    ids = batch.inputs["input_ids"]
    wide = torch.nn.functional.pad(ids, (0, task.sequences.input_ids.shape[1] - ids.shape[1]))
    same = (wide[:, None] == task.sequences.input_ids[None]).all(-1)
    assert (same.sum(1) == 1).all()
    return same.int().argmax(1).tolist()


@pytest.mark.parametrize("count", [60, 62])
def test_an_epoch_visits_each_text_once(count):
    """What fills no batch is left for another epoch."""
    task = toy(count)
    batches = labelled_batches(task, 12, seed=3)
    epochs = [
        [n for step in range(5 * e, 5 * e + 5) for n in row_numbers(task, batches(step))]
        for e in range(20)
    ]
    assert all(len(set(epoch)) == 60 for epoch in epochs)
    assert epochs[0] != epochs[1]  # in another order
    assert {n for epoch in epochs for n in epoch} == set(range(count))


@every_kind
def test_a_batch_is_a_function_of_the_step_and_carries_its_targets(kind):
    task = KINDS[kind]()
    batches = labelled_batches(task, 8, seed=1)
    late = batches(7)
    batches(2)
    again = labelled_batches(task, 8, seed=1)(7)
    assert all(torch.equal(late.inputs[name], again.inputs[name]) for name in late.inputs)
    which = row_numbers(task, late)
    assert row_numbers(task, labelled_batches(task, 8, seed=2)(7)) != which
    expected = targets_of(task[torch.tensor(which)])
    assert late.targets.keys() == expected.keys()
    assert all(torch.equal(late.targets[name], value) for name, value in expected.items())
    if kind == "tags":
        assert late.targets["token_labels"].shape == late.inputs["input_ids"].shape
    if kind == "classes":
        assert torch.equal(late.targets["classes"], task.labels[which])


def test_texts_are_cut_to_the_longest():
    task = toy()
    short = task[task.sequences.attention_mask.sum(1) == 7]
    inputs = model_inputs(short)
    assert {x.shape[1] for x in inputs.values()} == {7}
    assert torch.equal(inputs["input_ids"], short.sequences.input_ids[:, :7])


@pytest.mark.parametrize("batch_size", [0, 61])
def test_a_batch_that_cannot_be_filled_is_refused(batch_size):
    with pytest.raises(ValueError, match=f"batch_size={batch_size} was given for 60 examples"):
        labelled_batches(toy(), batch_size)
    with pytest.raises(ValueError, match="batch_size=16 was given for 10 examples"):
        finetune(encoder(), toy(10), steps=1, batch_size=16)


# ---------------------------------------------------------------- accuracy


@pytest.mark.parametrize("training", [True, False])
def test_accuracy_leaves_the_mode_as_it_was(training):
    model = classifier_on(encoder(hidden_dropout=0.1), 3).train(training)
    assert class_accuracy(model, toy()) == class_accuracy(model, toy())  # without dropout
    assert model.training is training and model.encoder.training is training
    broken = toy()
    broken.sequences.input_ids[5, 1] = 99
    with pytest.raises(ValueError, match="expected numbers from 0 to 29"):
        class_accuracy(model, broken)
    assert model.training is training


def test_accuracy_by_hand():
    """A classifier that always says class 1, in parts of seven texts."""
    task, model = toy(), classifier_on(encoder(), 3)
    torch.nn.init.zeros_(model.classifier.weight)
    model.classifier.bias.data = torch.tensor([0.0, 1.0, 0.0])
    shares = [(task.labels == c).double().mean().item() for c in range(3)]
    assert class_accuracy(model, task, batch_size=7) == pytest.approx(shares[1])
    assert task_score(model, task) == pytest.approx(shares[1])
    assert predicted_classes(model, task) == ["middle"] * 60
    assert task.commonest == pytest.approx(max(shares))


def test_the_loss_is_the_mean_of_minus_log_p():
    class Said:
        logits = torch.tensor([[3.0, 1.0], [1.0, 1.0]]).log()

    targets = {"classes": torch.tensor([0, 1])}
    by_hand = -(torch.tensor(3 / 4).log() + torch.tensor(1 / 2).log()) / 2
    assert classification_loss(Said, targets)["total"].item() == pytest.approx(by_hand.item())
    part = {**targets, "num_classes": torch.tensor(8)}  # of a batch of eight texts
    found = classification_loss(Said, part)["total"]
    assert found.item() == pytest.approx(by_hand.item() * 2 / 8)


# ---------------------------------------------------------------- scores by hand


class Told(nn.Module):
    """Scores that depend on the token alone: (V, n) of them, and for answers, at [CLS], the number
    of tokens in the row."""

    def __init__(self, kind, scores):
        super().__init__()
        self.kind = kind
        self.table = torch.zeros(WORDS.vocab_size, len(next(iter(scores.values()))))
        for token, values in scores.items():
            self.table[WORDS.id(token)] = torch.tensor(values)

    def forward(self, input_ids, attention_mask, token_type_ids):
        scores = self.table[input_ids]
        if self.kind == "tags":
            return TokenClassifierOutput(scores)
        scores[:, 0] = torch.stack([attention_mask.sum(1), torch.zeros(len(input_ids))], dim=1)
        return SpanOutput(*scores.unbind(-1))


LETTERS = {"ann": [0.0, 2.0, 0.0, 0.0], "lee": [0.0, 1.0, 2.0, 0.0], "york": [0.0, 0.0, 0.0, 1.0],
           "##shire": [9.0, 0.0, 0.0, 0.0], ".": [1.0, 0.0, 0.0, 0.0]}  # fmt: skip


def sentence(text, entities, pos=""):
    words = tuple(text.split())
    tags = tuple(pos.split()) or ("NOUN",) * len(words)
    return TaggedSentence("t", text, words, tags, tuple(entities.split()))


def test_tags_are_read_off_first_pieces():
    told = [
        sentence("ann lee is in yorkshire .", "B-PER I-PER O O B-LOC O"),
        sentence("lee .", "B-PER O"),
        sentence("ann met ann lee ann lee ann .", "B-PER O B-PER I-PER B-PER I-PER B-PER O"),
    ]
    # Of the last sentence seven words fit.
    task = tagged_sequences(told, "entities", WORDS, 9, TAGS)
    model = Told("tags", LETTERS)
    said = [
        ["B-PER", "I-PER", "O", "O", "B-LOC", "O"],  # not the O of ##shire
        ["I-PER", "O"],
        ["B-PER", "O", "B-PER", "I-PER", "B-PER", "I-PER", "B-PER"],
    ]
    assert predicted_tags(model, task) == said
    assert task_score(model, task) == 1.0  # an I- that continues nothing begins an entity, too
    model.table[WORDS.id("york"), 0] = 2.0  # now Yorkshire is none: 6 of 7, and 6 are said
    assert task_score(model, task) == pytest.approx(2 * 6 / 13)


def test_tags_that_are_no_entities_are_scored_word_by_word():
    told = [sentence("ann met lee", "O O O", "PROPN VERB PROPN"), sentence(".", "O", "PUNCT")]
    task = tagged_sequences(told, "pos", WORDS, 8, ("PROPN", "VERB", "PUNCT"))
    model = Told("tags", {"ann": [1.0, 0.0, 0.0], "lee": [0.0, 1.0, 0.0], ".": [0.0, 0.0, 1.0]})
    assert predicted_tags(model, task) == [["PROPN", "PROPN", "VERB"], ["PUNCT"]]
    assert task_score(model, task) == 0.5


def test_sentences_without_tags_take_the_names_of_the_model():
    told = [sentence("ann lee .", "O O O")]
    model = Told("tags", LETTERS)
    model.names = TAGS
    task = tagged_sequences(told, None, WORDS, 8)
    assert predicted_tags(model, task) == [["B-PER", "I-PER", "O"]]


PASSAGE = "Ann met Bob in York. Lee is in Rome."
SPANS = {"bob": [2.0, 0.0], "york": [0.0, 4.0], "lee": [3.0, 2.0], "rome": [0.0, 1.0]}


def windows(*questions):
    return question_sequences(questions, WORDS, 10, 4)


def test_the_best_span_of_all_windows_against_the_least_null_score():
    """ann met bob in york . | york . lee is in rome | in rome . with rows of 10, 10 and 7 tokens,
    which are their null scores here."""
    task, model = windows(Question("q", "who", PASSAGE)), Told("answers", SPANS)
    assert task.sequences.attention_mask.sum(1).tolist() == [10, 10, 7]
    # First window: from bob, 2, to york, 4. Second: lee, 3 + 2. Third: rome, 1.
    assert best_answers(model, task) == {"q": ("Bob in York", 6.0 - 7.0)}
    # Of at most two tokens the first window has "in York", 4.
    assert best_answers(model, task, longest=2) == {"q": ("Lee", 5.0 - 7.0)}
    assert best_answers(model, task[torch.tensor([2])]) == {"q": ("in Rome", 1.0 - 7.0)}


def test_questions_are_kept_apart():
    task = windows(
        Question("a", "who", PASSAGE, (Answer("Lee", 21),)), Question("b", "where ?", "Rome."),
    )  # fmt: skip
    found = best_answers(Told("answers", SPANS), task)
    assert found == {"a": ("Bob in York", -1.0), "b": ("Rome", 1.0 - 7.0)}
    assert gold_answers(task) == {"a": ["Lee"], "b": []}


def test_two_questions_with_one_id_are_not_scored_as_one():
    questions = (Question("a", "who", "Ann.", (Answer("Ann", 0),)), Question("b", "who", "Bob."))
    twice = replace(windows(*questions), questions=(questions[0], replace(questions[1], id="a")))
    for score in (gold_answers, lambda task: best_answers(Told("answers", SPANS), task),
                  lambda task: answer_scores(Told("answers", SPANS), task)):  # fmt: skip
        with pytest.raises(ValueError, match="the id 'a' was given to two questions"):
            score(twice)


def test_gold_answers_stand_in_the_order_of_the_questions():
    """In every process, whatever the texts' hashes are."""
    names = [f"q{n}" for n in range(9)]
    assert list(gold_answers(windows(*(Question(n, "who", "Ann.") for n in names)))) == names


def test_a_task_without_texts_is_refused():
    with pytest.raises(ValueError, match="A task without texts was given"):
        best_answers(Told("answers", SPANS), windows(Question("a", "who", "Ann."))[:0])


def test_a_threshold_by_hand():
    task = windows(
        Question("a", "who", "Ann.", (Answer("Ann", 0),)), Question("b", "who", "Bob."),
        Question("c", "who", "Lee is in.", (Answer("Lee", 0),)),
    )  # fmt: skip
    answers = {"a": ("Ann", 2.0), "b": ("Bob", 1.0), "c": ("Lee is", -1.0)}
    # All answered: 1 + 0 + 2/3; the first alone: 1 + 1 + 0; none: 0 + 1 + 0.
    assert null_threshold(answers, task) == 1.5
    assert null_threshold({**answers, "c": ("lee", -1.0)}, task) == 1.5  # 1 + 0 + 1, no better
    assert null_threshold({**answers, "b": ("Bob", 3.0), "a": ("is", 2.0)}, task) == 3.0


def test_answers_are_given_above_the_threshold():
    task = windows(
        Question("a", "who", "Lee.", (Answer("Lee", 0),)), Question("b", "who", "Bob in York."),
    )  # fmt: skip
    model = Told("answers", SPANS)
    assert best_answers(model, task) == {"a": ("Lee", 5.0 - 6.0), "b": ("Bob in York", 6.0 - 8.0)}
    for threshold, with_answer, without in ((0.0, 0, 1), (-1.0, 0, 1), (-1.5, 1, 1), (-2.5, 1, 0)):
        scores = answer_scores(model, task, threshold)
        assert (scores.has_answer.f1, scores.no_answer.f1) == (with_answer, without), threshold
        assert task_score(model, task, threshold) == scores.f1 == (with_answer + without) / 2


# ---------------------------------------------------------------- outputs in batches


@pytest.mark.parametrize("kind", ["tags", "answers"])
def test_outputs_are_padded_to_the_sequences_and_do_not_depend_on_the_batch(kind):
    task = KINDS[kind](12)
    model = head_on(encoder(), task).train()
    names = ["logits"] if kind == "tags" else ["start_logits", "end_logits"]
    length = task.sequences.input_ids.shape[1]
    for batch_size in (1, 5, 64):
        found = outputs_on(model, task, names, batch_size)
        assert model.training and len(found) == len(names)
        for name, scores in zip(names, found, strict=True):
            assert scores.shape[:2] == (len(task), length) and not scores.requires_grad
            for n in range(len(task)):
                used = int(task.sequences.attention_mask[n].sum())
                with torch.no_grad():
                    alone = getattr(model.eval()(**model_inputs(task[n : n + 1])), name)[0]
                torch.testing.assert_close(scores[n, :used], alone)
            model.train()
    assert not found[0][:, int(task.sequences.attention_mask.sum(1).max()) :].any()


# ---------------------------------------------------------------- encoders without two segments


SHAPE = {
    name: value
    for name, value in vars(CONFIG).items()
    if name
    not in (
        "max_positions",
        "type_vocab_size",
        "pad_token_id",
        "layer_norm_eps",
        "kernels",
        "hidden_act",
    )
}
WITHOUT = {
    "RoBERTa": lambda: roberta_encoder(RobertaConfig(**SHAPE, max_positions=30), pooler=False),
    "XLM-R": lambda: roberta_encoder(XlmRobertaConfig(**SHAPE, max_positions=30)),
    "DistilBERT": lambda: distilbert_encoder(DistilBertConfig(**SHAPE)),
    "ModernBERT": lambda: modernbert_encoder(ModernBertConfig(**SHAPE, pad_token_id=0)),
    "DeBERTa": lambda: deberta_encoder(DebertaConfig(**SHAPE, type_vocab_size=0, span=16)),
}  # fmt: skip


def pairs(count=32):
    """Does the second text name somebody whom the first names?"""
    made = sentences(count)
    first, second = [s.text for s in made], [s.text for s in made[1:] + made[:1]]
    labels = ["yes" if {*a.split()} & {*b.split()} & {"ann", "bob"} else "no"
              for a, b in zip(first, second, strict=True)]  # fmt: skip
    return text_sequences(first, labels, ("no", "yes"), WORDS, 24, second)


def scored_pairs():
    task = pairs()
    return ScoredSequences(task.sequences, task.labels.float())


@pytest.mark.parametrize(
    ("name", "task_of"),
    [
        ("RoBERTa", pairs), ("RoBERTa", asking), ("XLM-R", pairs), ("DistilBERT", scored_pairs),
        ("DistilBERT", asking), ("ModernBERT", pairs), ("ModernBERT", asking), ("DeBERTa", asking),
    ],
)  # fmt: skip
def test_pairs_and_questions_are_learnt_without_segments(name, task_of):
    """The separators tell the texts apart; what token_type_ids say changes nothing."""
    task = task_of()
    assert task.sequences.token_type_ids.any()
    model = finetune(WITHOUT[name](), task, steps=2, precision="float32")
    assert 0 <= task_score(model, task) <= 1 or isinstance(task, ScoredSequences)
    inputs = model_inputs(task[:5])
    others = inputs | {"token_type_ids": torch.zeros_like(inputs["input_ids"])}
    with torch.no_grad():
        for field in ("start_logits", "end_logits") if task_of is asking else ("logits",):
            told, untold = (getattr(model(**given), field) for given in (inputs, others))
            torch.testing.assert_close(told, untold)


def test_berts_own_segments_are_still_read():
    task = pairs()
    model = finetune(encoder(pooler=True), task, steps=1, precision="float32")
    inputs = model_inputs(task[:5])
    with torch.no_grad():
        told = model(**inputs).logits
        untold = model(**inputs | {"token_type_ids": torch.zeros_like(inputs["input_ids"])}).logits
    assert (told - untold).abs().max() > 1e-4


def test_pairs_without_segments_for_exits_and_a_teacher_with_them():
    task, student = pairs(), WITHOUT["DistilBERT"]()
    model = fastbert_on(student, task.names, exit_size=8)
    train_backbone(model, labelled_batches(task, 8), steps=1, precision="float32")
    train_students(model, unlabelled_batches(task.sequences, 8), steps=1, precision="float32")
    assert len(model.answer(**model_inputs(task)).layers_used) == len(task)
    pair = DistillationPair(
        classifier_on(student, task.names), classifier_on(encoder(pooler=True), 2)
    )
    loss = tinybert_loss((), attention=0.0, hidden=0.0, embedding=0.0, prediction=1.0)
    history = fit(pair, loss, labelled_batches(task, 8), steps=1, precision="float32")
    assert history.losses["total"][0] > 0


# ---------------------------------------------------------------- padding that is not behind


def at_the_left(mask):
    """For each text its padding, then its tokens."""
    return mask.argsort(dim=1, stable=True)


def between(mask):
    """For each text its first two tokens, its padding, the others."""
    where = torch.arange(mask.shape[1]).expand_as(mask)
    return torch.where(mask == 0, 2, where + (where > 1)).argsort(dim=1, stable=True)


def moved(sequences, order):
    return PackedSequences(
        **{name: value.gather(1, order) for name, value in sequences.inputs.items()},
        next_sentence_label=sequences.next_sentence_label,
    )


anywhere = pytest.mark.parametrize("place", [at_the_left, between], ids=lambda f: f.__name__)


def same_tensors(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@anywhere
def test_no_word_is_lost_wherever_the_padding_is(place):
    """Texts with padding before or between their tokens are read as if it were behind them."""
    task = toy()
    order = place(task.sequences.attention_mask)
    shifted = replace(task, sequences=moved(task.sequences, order))
    assert not torch.equal(shifted.sequences.input_ids, task.sequences.input_ids)
    assert same_tensors(model_inputs(shifted[:9]), model_inputs(task[:9]))
    batches = [unlabelled_batches(some.sequences, 8)(1).inputs for some in (task, shifted)]
    assert same_tensors(*batches)

    tags = tagging(12)
    order = place(tags.sequences.attention_mask)
    back = order.argsort(dim=1)  # where each token has gone
    elsewhere = replace(
        tags, sequences=moved(tags.sequences, order), labels=tags.labels.gather(1, order),
        first=tuple(tuple(back[n, list(row)].tolist()) for n, row in enumerate(tags.first)),
    )  # fmt: skip
    assert elsewhere.tags(elsewhere.labels) == tags.tags(tags.labels)
    for of in (model_inputs, targets_of):
        assert same_tensors(of(elsewhere[:5]), of(tags[:5]))
    model = head_on(encoder(), tags)
    assert predicted_tags(model, elsewhere) == predicted_tags(model, tags)
    questions = asking(12)
    order = place(questions.sequences.attention_mask)
    with pytest.raises(ValueError, match="padding before or between their tokens were given"):
        replace(questions, sequences=moved(questions.sequences, order))


@anywhere
@pytest.mark.parametrize("units", [False, True])
def test_no_word_is_lost_in_pretraining_wherever_the_padding_is(place, units):
    special = special_ids(30)
    texts = draw_sequences(special, 16, 12)
    labels = torch.arange(16) % 2
    texts = replace(texts, next_sentence_label=labels)
    order = place(texts.attention_mask)
    shifted = moved(texts, order)
    numbers = torch.arange(12).expand(16, -1).masked_fill(texts.attention_mask == 0, -1)
    more = [{"word_of": x} if units else {} for x in (numbers, numbers.gather(1, order))]
    batches = [
        pretraining_batches(some, special, batch_size=5, **given)(2)
        for some, given in zip((texts, shifted), more, strict=True)
    ]
    assert same_tensors(batches[0].inputs, batches[1].inputs)
    assert same_tensors(batches[0].targets, batches[1].targets)
    torch.manual_seed(0)
    model = BertForPreTraining(encoder(pooler=True))
    one, other = (evaluate(model, some, special, precision="float32") for some in (texts, shifted))
    assert torch.equal(one.masked_right, other.masked_right) and torch.equal(
        one.pair_right, other.pair_right
    )
    entities = torch.where(numbers == 3, 1, -1)
    one, other = (
        alignment_batches(some, special, ids, 4, batch_size=5)(0)
        for some, ids in ((texts, entities), (shifted, entities.gather(1, order)))
    )
    assert same_tensors(one.inputs, other.inputs) and same_tensors(one.targets, other.targets)


@pytest.mark.parametrize(("labels", "message"), [(["a"] * 3, "one label, 'a'"), ([], "no|without")])
def test_where_there_is_nothing_to_learn(labels: list[str], message: str):
    task = text_sequences(["ann", "lee", "bob"], ["a"] * 3, ("a", "b"), WORDS, 9)[: len(labels)]
    encoder = Encoder(BertConfig(vocab_size=len(WORDS), hidden_size=4, num_heads=1, num_layers=1,
                                 intermediate_size=4, max_positions=9))  # fmt: skip
    with pytest.raises(ValueError, match=message):
        finetune(encoder, task, steps=1)
    alone = text_sequences(["ann"], ["a"], None, WORDS, 9)
    with pytest.raises(ValueError, match="one label, 'a'"):
        finetune(encoder, alone, steps=1)


def test_a_text_longer_than_the_model_is_named_before_the_first_step():
    """It may come late, or be alone; a task with room to spare is none."""
    texts, names = ["ann", "lee " * 12, "bob"], ["a", "b", "a"]
    encoder = Encoder(BertConfig(vocab_size=len(WORDS), hidden_size=4, num_heads=1, num_layers=1,
                                 intermediate_size=4, max_positions=9))  # fmt: skip
    task = text_sequences(texts, names, None, WORDS, 40)
    message = "text of 14 tokens was given to a model with positions for 9; .* with length=9"
    steps: list[int] = []
    with pytest.raises(ValueError, match=message):
        finetune(encoder, task, steps=2, batch_size=1, callbacks=[lambda r: steps.append(r.step)])
    model = finetune(encoder, text_sequences(["ann", "lee"], ["a", "b"], None, WORDS, 40), steps=1)
    with pytest.raises(ValueError, match=message):
        class_accuracy(model, task)
    assert steps == []
