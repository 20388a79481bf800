"""Raw text in, raw answers out; what fine-tuning takes, and how it says what it does not."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from course_lib.checkpoints import (
    CheckpointError,
    Pretrained,
    load,
    load_pretrained,
    save,
    save_folder,
)
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.text.english import Answer, Question, TaggedSentence
from course_lib.text.features import question_sequences, tagged_sequences, text_sequences
from course_lib.text.wordpiece import WordPiece
from course_lib.train.finetuning import (
    RATES,
    class_accuracy,
    default_rate,
    finetune,
    head_on,
    outputs_on,
    predicted_tags,
)
from course_lib.train.predicting import _words, answer, entities, predict
from course_lib.train.sentence_encoder import SentenceEncoder

WORDS = WordPiece.from_words(
    ["ann", "bob", "lee", "rome", "##shire", "york", "lives", "in", "where", ".", "?", ",", "-"]
)
CONFIG = BertConfig(
    vocab_size=len(WORDS), hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32,
    max_positions=32, hidden_dropout=0.0, attention_dropout=0.0, initializer_range=0.3,
)  # fmt: skip
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
TAG_OF = {"ann": "B-PER", "bob": "B-PER", "lee": "I-PER", "york": "B-LOC", "rome": "B-LOC"}


def encoder():
    torch.manual_seed(0)
    return Encoder(CONFIG, pooler=Pooler(CONFIG))


def pretrained(model, tokenizer=WORDS):
    whole = None if isinstance(model, Encoder) else model
    return Pretrained(
        model if whole is None else model.encoder, whole, tokenizer, "path", "", Path(), None
    )


class Tagger(BertForTokenClassification):
    """A tagger that looks tokens up, so that its tags are known."""

    def __init__(self, tag_of, names=TAGS):
        super().__init__(encoder(), names)
        self.tag_of = {WORDS.id(word): names.index(tag) for word, tag in tag_of.items()}

    def forward(self, input_ids, *rest, **more):
        out = super().forward(input_ids, *rest, **more)
        numbers = [[self.tag_of.get(i, 0) for i in row] for row in input_ids.tolist()]
        out.logits = 9.0 * torch.nn.functional.one_hot(torch.tensor(numbers), len(self.names))
        return out


TEXT = "  Ann Lee (Bob) lives in Yorkshire,  York-Rome. \u200b Ann"
SPANS = [("PER", "Ann Lee"), ("PER", "Bob"), ("LOC", "Yorkshire"), ("LOC", "York-Rome")]
SPANS += [("PER", "Ann")]


@pytest.mark.parametrize("length", [None, 9])
def test_entities(length):
    """Also in parts of nine tokens, which end between words, never within one."""
    result, other = entities(pretrained(Tagger(TAG_OF)), [TEXT, "in Rome"], length=length)
    assert [(e.label, e.text) for e in result] == SPANS
    assert all(TEXT[e.start : e.end] == e.text and 0.9 < e.score < 1 for e in result)
    assert [e.start for e in result] == sorted(e.start for e in result)
    assert [(e.label, e.start, e.end) for e in other] == [("LOC", 3, 7)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tom Becker's train", ["Tom", "Becker", "'s", "train"]),
        ("(Emma,Aisha) from Cape Town;Lisbon—born", ["(", "Emma", ",", "Aisha", ")", "from", "Cape",
         "Town", ";", "Lisbon", "—", "born"]),
        ("Smith-Jones, U.S.A., 1,000 at 12:30", ["Smith-Jones", ",", "U.S.A", ".", ",", "1,000",
         "at", "12:30"]),
        ("O'Brien didn't: a/b '’s", ["O'Brien", "didn't", ":", "a", "/", "b", "'", "’", "s"]),
    ],
)  # fmt: skip
def test_words_of_a_text(text, words):
    """As CoNLL files have them: names on both sides of punctuation are two."""
    assert list(_words(text)) == words


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("O", "S-PER", "B-PER", "E-PER"), [("PER", "Ann Lee"), ("PER", "Bob")]),
        (("X", "NOUN", "VERB", "NUM"), [("VERB", "Ann"), ("NUM", "Lee"), ("NOUN", "Bob")]),
        (("O", "I-PER", "B-PER", "I-ORG"), [("PER", "Ann"), ("ORG", "Lee"), ("PER", "Bob")]),
    ],
)
def test_entities_of_other_tags(names, expected):
    """BIOES, parts of speech, and tags that no scheme allows."""
    tagger = Tagger({"ann": names[2], "lee": names[3], "bob": names[1]}, names)
    (result,) = entities(tagger, ["Ann Lee Bob"], tokenizer=WORDS)
    assert [(e.label, e.text) for e in result] == expected


def test_own_words_are_taken():
    sentence = TaggedSentence("s", "Ann-Lee", ("Ann", "-", "Lee"))
    (result,) = entities(Tagger(TAG_OF), [sentence], tokenizer=WORDS)
    assert [(e.start, e.end) for e in result] == [(0, 3), (4, 7)]


def test_predict():
    model = BertForClassification(encoder(), ("no", "yes", "maybe"))
    one, two = predict(pretrained(model), ["Ann", "Bob lives in Rome ."])
    task = text_sequences(["Ann", "Bob lives in Rome ."], ["no", "yes"], model.names, WORDS, 9)
    (logits,) = outputs_on(model, task, ["logits"])
    for result, row in zip((one, two), logits.softmax(-1), strict=True):
        assert list(result.probabilities) == ["no", "yes", "maybe"]
        assert list(result.probabilities.values()) == pytest.approx(row.tolist(), abs=1e-6)
        assert result.label == model.names[int(row.argmax())]
        assert result.score == max(result.probabilities.values())
    (pair,) = predict(model, ["Ann"], ["Bob"], tokenizer=WORDS)
    assert pair.probabilities != one.probabilities
    with pytest.warns(UserWarning, match="1 of 1 did not fit into 5 positions: 2 tokens"):
        predict(model, ["Ann lives in Rome ."], tokenizer=WORDS, length=5)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_model_without_names_has_as_many_classes_as_the_task(count):
    model = BertForClassification(encoder(), count)
    task = text_sequences(["Ann"], ["no"], ("no", "yes", "maybe"), WORDS, 9)
    with pytest.raises(ValueError, match="labels no, yes, maybe was given to a model with LABEL_0"):
        outputs_on(model, task, ["logits"])
    assert outputs_on(BertForClassification(encoder(), 3), task, ["logits"])[0].shape == (1, 3)


class Reader(BertForQuestionAnswering):
    """A reader whose answer starts and ends at a token; `null` is the logit of [CLS]."""

    def __init__(self, token, null):
        super().__init__(encoder())
        self.token, self.null = WORDS.id(token), null

    def forward(self, input_ids, *rest, **more):
        out = super().forward(input_ids, *rest, **more)
        logits = 5.0 * (input_ids == self.token)
        logits[:, 0] = self.null
        out.start_logits = out.end_logits = logits
        return out


@pytest.mark.parametrize("before", [0, 40])  # then several windows are needed
def test_answer(before):
    passage = "Lee, " * before + "Ann  lives in Rome."
    result = answer(pretrained(Reader("rome", 1.0)), "Where?", passage)
    assert (result.text, passage[result.start : result.end]) == ("Rome", "Rome")
    assert 0.5 < result.score < 1
    silent = Reader("rome", 6.0)
    none = answer(silent, "Where?", passage, tokenizer=WORDS)
    assert (none.text, none.start, none.end) == ("", 0, 0) and 0.2 < none.score < 1
    forced = answer(silent, "Where?", passage, tokenizer=WORDS, threshold=float("-inf"))
    assert forced.text == "Rome" and forced.score < none.score


CLASSIFIER, TAGGER = BertForClassification(encoder(), ("a", "b")), Tagger(TAG_OF)


READY = pretrained(CLASSIFIER)
NUMBER = BertForClassification(encoder(), 1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: predict(pretrained(encoder()), ["Ann"]), TypeError, "without a head .* finetune"),
        (lambda: predict("folder", ["Ann"]), TypeError, "expected a BertForClassification"),
        (lambda: predict(TAGGER, ["Ann"]), TypeError, "a Tagger .* expected a BertForClassificat"),
        (lambda: entities(CLASSIFIER, ["Ann"]), TypeError, "expected a BertForTokenClassification"),
        (lambda: answer(CLASSIFIER, "a", "b"), TypeError, "expected a BertForQuestionAnswering"),
        (lambda: predict(CLASSIFIER, ["Ann"]), ValueError, "no tokenizer was given; .*tokenizer="),
        (lambda: predict(pretrained(CLASSIFIER, None), ["Ann"]), ValueError, "no tokenizer"),
        (lambda: predict(READY, "Ann"), TypeError, "put it into a list"),
        (lambda: predict(READY, []), ValueError, "No texts were given"),
        (lambda: entities(pretrained(TAGGER), []), ValueError, "No texts were given"),
        (lambda: entities(pretrained(TAGGER), "Ann"), TypeError, "put it into a list"),
        (lambda: entities(pretrained(TAGGER), ["Ann", " "]), ValueError, "text 1, ' ', has no tok"),
        (lambda: predict(READY, ["a", ""]), ValueError, "text 1, '', has no token"),
        (lambda: predict(READY, ["a", float("nan")]), TypeError, "an empty cell, as number 1"),
        (lambda: predict(READY, ["a"], length=64), ValueError, "up to 32 tokens"),
        (lambda: predict(pretrained(NUMBER), ["a"]), ValueError, "predicted_values"),
        (lambda: answer(pretrained(Reader("ann", 0)), ["a"], "b"), TypeError, "expected a text"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---------------------------------------------------------------- what fine-tuning takes

TEXTS, LABELS = (
    ["Ann lives .", "Bob .", "Rome in", "York , in"] * 4,
    ["per", "per", "loc", "loc"] * 4,
)


def task():
    return text_sequences(TEXTS, LABELS, None, WORDS, 8)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_a_loaded_checkpoint_and_epochs_are_taken():
    one = finetune(pretrained(encoder()), task(), epochs=1.5, batch_size=4, precision="float32")
    two = finetune(
        encoder(), task(), steps=6, batch_size=4, precision="float32", learning_rate=1e-3
    )
    assert torch.allclose(weights(one), weights(two), atol=1e-5)
    assert class_accuracy(pretrained(one), task()) == class_accuracy(one, task())
    assert task().names == ("loc", "per")


@pytest.mark.parametrize(("weights", "rate"), [(1e6, 1e-3), (22e6, 1e-4), (110e6, 3e-5)])
def test_the_rate_follows_the_size(weights, rate):
    small = replace(CONFIG, vocab_size=int(weights / 16))
    with torch.device("meta"):
        assert default_rate(Encoder(small)) == rate
    assert rate in dict(map(reversed, RATES))


@pytest.mark.parametrize(
    ("start", "items", "options", "error", "message"),
    [
        (
            "course-bert",
            task,
            {},
            TypeError,
            r'a str was given; .*load_pretrained\("course-bert"\)',
        ),
        (BertForMaskedLM(encoder()), task, {}, TypeError, "BertForMaskedLM .* Its encoder is .enc"),
        (None, task, {}, TypeError, "a NoneType was given; expected an encoder"),
        (encoder(), lambda: TEXTS, {}, TypeError, "a list was given as task.*text_sequences"),
        (encoder(), task, {"steps": None}, ValueError, "steps=None and epochs=None"),
        (encoder(), task, {"epochs": 1}, ValueError, "steps=1 and epochs=1"),
        (encoder(), task, {"steps": None, "epochs": 0}, ValueError, "epochs=0 was given"),
        (encoder(), task, {"steps": None, "epochs": "3"}, ValueError, "epochs='3' was given"),
    ],
)
def test_fine_tuning_refuses(start, items, options, error, message):
    with pytest.raises(error, match=message):
        finetune(start, items(), **{"steps": 1, **options})
    if error is TypeError:
        with pytest.raises(TypeError, match=message):
            head_on(start, items())


def test_labels_in_another_order_are_refused():
    other = text_sequences(TEXTS, LABELS, ["per", "loc"], WORDS, 8)
    with pytest.raises(ValueError, match="labels per, loc was given to a model with loc, per"):
        class_accuracy(head_on(encoder(), task()), other)


@pytest.mark.parametrize("labels", [["Spam", "spam"], ["spam", "spam "]])
def test_labels_that_look_alike_are_refused(labels):
    with pytest.raises(ValueError, match="differ in white space, capitals or the"):
        text_sequences(["Ann", "Bob"], labels, None, WORDS, 8)
    assert text_sequences(["Ann", "Bob"], labels, labels, WORDS, 8).names == tuple(labels)


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        (("B-SKU", "O", "B-AGE"), ("O", "B-AGE", "I-AGE", "B-SKU", "I-SKU")),
        (("B-PER", "O", "O"), ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")),
    ],
)
def test_own_tags(tags, names):
    sentence = TaggedSentence("s", "Ann lives in", ("Ann", "lives", "in"), entities=tags)
    made = tagged_sequences([sentence], "entities", WORDS, 8)
    assert made.names == names and made.tags(made.labels) == [list(tags)]
    model = head_on(pretrained(encoder()), made)
    assert predicted_tags(pretrained(model), made) == predicted_tags(model, made)
    with pytest.raises(ValueError, match="s has no tags of the kind 'pos'"):
        tagged_sequences([sentence], "pos", WORDS, 8)


def test_the_line_of_progress(capsys):
    questions = [Question("q", "where ?", "ann lives in rome", (Answer("rome", 13),))]
    sequences = question_sequences(questions, WORDS, 16, 4)
    finetune(encoder(), sequences, steps=2, batch_size=1, progress=True)
    out, err = capsys.readouterr()
    assert "2/2" in err and "loss=" in err
    assert re.search(r"2 steps, 2.0 epochs: loss [\d.]+ at first, [\d.]+ at last; .* 0.001", out)
    finetune(encoder(), sequences, steps=2, batch_size=1)  # no terminal
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("classes", "problem", "function"),
    [
        (("toxic", "insult"), "multi_label_classification", torch.sigmoid),
        (("toxic",), "multi_label_classification", torch.sigmoid),
        (("good", "bad"), "single_label_classification", lambda x: x.softmax(-1)),
        (("good", "bad"), None, lambda x: x.softmax(-1)),
    ],
)
def test_a_checkpoint_says_what_its_logits_mean(tmp_path: Path, classes, problem, function):
    """And what is saved says the same, in transformers' format and in ours."""
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, id2label=dict(enumerate(classes)),
        problem_type=problem, sentence_transformers={"activation_fn": "torch.nn.Identity"},
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = transformers.BertForSequenceClassification(config).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    found = load_pretrained(tmp_path / "theirs")
    ids = torch.tensor([[WORDS.special.cls, *WORDS.encode("ann lives in rome"), WORDS.special.sep]])
    expected = function(theirs(ids).logits[0].double()).tolist()
    save_folder(found.model, tmp_path / "again", WORDS)
    save(found.model, tmp_path / "own")
    for model in (found.model, load_pretrained(tmp_path / "again").model, load(tmp_path / "own")):
        (prediction,) = predict(model, ["ann lives in rome"], tokenizer=WORDS)
        assert [*prediction.probabilities.values()] == pytest.approx(expected, abs=1e-6)
    read = transformers.AutoConfig.from_pretrained(tmp_path / "again")
    assert read.problem_type == problem
    assert read.sentence_transformers == {"activation_fn": "torch.nn.Identity"}


@pytest.mark.parametrize(("count", "problem"), [(1, None), (1, "regression"), (2, "regression")])
def test_a_checkpoint_of_numbers_has_no_classes(tmp_path: Path, count, problem):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, num_labels=count, problem_type=problem,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path / "theirs")
    model = load_pretrained(tmp_path / "theirs").model
    save_folder(model, tmp_path / "again", WORDS)
    assert transformers.AutoConfig.from_pretrained(tmp_path / "again").problem_type == problem
    with pytest.raises(ValueError, match="a model of a number instead of classes was given"):
        predict(model, ["ann"], tokenizer=WORDS)


def test_a_problem_that_transformers_does_not_have_is_refused(tmp_path: Path):
    save_folder(BertForClassification(encoder(), ["good", "bad"]), tmp_path, WORDS)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace("single_label_cl", "three_label_cl"))
    with pytest.raises(CheckpointError, match="problem_type='three_label_classification' was giv"):
        load_pretrained(tmp_path)


LONG = ["bob lives in york " * 3]


@pytest.mark.parametrize(("said", "tokens"), [(8, 8), (30, 14), (10**30, 14), (None, 14), (2, 14)])
def test_a_length_that_the_files_say(tmp_path: Path, said: int | None, tokens: int):
    """model_max_length cuts texts as it does in transformers, and what is saved says the same."""
    torch.manual_seed(0)
    model = BertForClassification(encoder(), ["no", "yes"])
    save_folder(model, tmp_path / "a", WORDS)
    path = tmp_path / "a" / "tokenizer_config.json"
    about = {**json.loads(path.read_text()), "model_max_length": said}
    path.write_text(json.dumps({name: value for name, value in about.items() if value is not None}))
    found = load_pretrained(tmp_path / "a")
    with warnings.catch_warnings(record=tokens < 14):
        result = predict(found, LONG)
        assert result == predict(found, LONG, length=tokens)
        assert SentenceEncoder(found.encoder, found.tokenizer).length == (8 if said == 8 else
               30 if said == 30 else 32)  # fmt: skip
    save_folder(found.model, tmp_path / "b", found.tokenizer)
    saved = json.loads((tmp_path / "b" / "tokenizer_config.json").read_text())
    assert saved["model_max_length"] == (said if said in (8, 30) else 32)


def test_a_text_cut_at_its_start_is_refused(tmp_path: Path):
    save_folder(BertForClassification(encoder(), ["no", "yes"]), tmp_path, WORDS)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "truncation_side": "left"}))
    with pytest.warns(UserWarning, match="truncation_side = 'left'; expected 'right'"):
        found = load_pretrained(tmp_path)
    with pytest.raises(ValueError, match="truncation_side = 'left'"):
        predict(found, LONG)
