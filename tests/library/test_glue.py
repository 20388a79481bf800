"""GLUE's nine twins: right labels, no leaks, no shortcuts; the metrics; the real ones' files."""

from __future__ import annotations

import builtins
import random
import re
import sys
from collections import Counter
from functools import cache
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.teaching.glue import (
    BASELINES,
    ORACLE,
    answer,
    baseline_score,
    oracle_score,
    read,
    rows,
)
from course_lib.text import glue
from course_lib.text.english import LabelledText, Pair
from course_lib.text.glue import (
    GLUE,
    MISMATCHED,
    SPLITS,
    UNSEEN,
    MissingGlue,
    glue_items,
    glue_sequences,
    glue_twin,
)
from course_lib.text.glue_twins import ALIKE, ANSWERS, CLAIMS, EVENTS, MOODS, QUESTIONS, WHEN
from course_lib.text.oracle import Oracle
from course_lib.text.tasks import ScoredSequences
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import finetune, task_score
from course_lib.train.glue import METRICS, glue_score, model_score, task_mean

ALL = [(name, split) for name, task in GLUE.items() for split in task.splits]
PAIRS = [name for name, task in GLUE.items() if len(task.columns) == 2]


@pytest.fixture(scope="module")
def world() -> MicroWorld:
    return MicroWorld.load()


@cache
def items(name: str, split: str) -> list:
    """As many as the twin has, of training at most 2,000."""
    task = GLUE[name]
    return glue_items(name, split, min(task.sizes[0], 2_000) if split == "train" else None)


def texts(item) -> tuple[str, ...]:
    return (item.text,) if isinstance(item, LabelledText) else (item.premise, item.hypothesis)


# ---------------------------------------------------------------- the table


def test_the_table_is_that_of_glue():
    assert list(GLUE) == [
        "CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE", "WNLI"
    ]  # fmt: skip
    for task in GLUE.values():
        classes = re.match(r"\d", task.real["answer"])
        assert (len(task.names) == int(classes[0])) if classes else not task.names
        assert set(task.metrics) <= set(METRICS) and len(task.classes) == len(task.names)
        assert (len(task.columns) == 1) == (task.real["input"] == "one sentence")
        printed = task.real.get("train", task.real.get("train_in_glue"))
        assert abs(task.real["released"][0] / printed - 1) < 0.05  # the table's rounding
    sizes = {name: task.sizes[0] for name, task in GLUE.items()}
    released = {name: task.real["released"][0] for name, task in GLUE.items()}
    for small in ("WNLI", "RTE", "MRPC"):  # the small ones are small here as well
        assert all(sizes[n] > sizes[small] for n in GLUE if released[n] > 2 * released[small])


# ---------------------------------------------------------------- the items


@pytest.mark.parametrize(("name", "split"), ALL)
def test_the_rules_give_every_label_from_the_texts_alone(name: str, split: str, world: MicroWorld):
    oracle = Oracle(world)
    for item in items(name, split):
        assert answer(name, item, oracle) == item.label, item
    found = oracle_score(name, items(name, split), world)
    assert all(score == pytest.approx(1) for score in found.values())


@pytest.mark.parametrize(("name", "split"), ALL)
def test_items_are_whole_words_of_the_world_and_no_two_alike(name, split, world: MicroWorld):
    found, task = items(name, split), glue_sequences(name, items(name, split), world.tokenizer)
    assert not {word for item in found for t in texts(item) for word in t.split()} - {*world.vocab}
    assert task.cut is not None and task.cut.texts == 0
    assert len({texts(item) for item in found}) == len({i.id for i in found}) == len(found)
    assert {type(item) for item in found} == {Pair if name in PAIRS else LabelledText}


@pytest.mark.parametrize("name", GLUE)
def test_no_held_out_text_is_a_training_text(name: str, world: MicroWorld):
    trained = {texts(item) for item in items(name, "train")}
    firsts = {item[0] for item in trained}
    validation, test = ({texts(i)[0] for i in items(name, s)} for s in ("validation", "test"))
    assert not test & (firsts | validation)
    if name == "WNLI":  # as in GLUE
        assert validation <= firsts
        assert not {texts(i) for i in items(name, "validation")} & trained
        return
    assert not validation & firsts
    for split, side in (("train", "train"), ("validation", "heldout"), ("test", "heldout")):
        for item in items(name, split):
            if item.label != "unacceptable":  # such a sentence was one of its side
                assert world.split_of(texts(item)[0]) == side, item


@pytest.mark.parametrize("name", GLUE)
def test_classes_are_as_often_as_told(name: str):
    task = GLUE[name]
    for split in task.splits:
        found = Counter(item.label for item in items(name, split))
        parts = task.classes or (1,) * 6
        if (name, split) == ("WNLI", "test"):
            parts = (65, 35)
        for label, part in zip(task.names or "012345", parts, strict=True):
            assert abs(found[label] - found.total() * part / sum(parts)) <= 1


def test_wnlis_validation_asks_the_training_texts_for_the_other_answer():
    known = {item.premise: item for item in items("WNLI", "train")}
    assert len(known) == len(items("WNLI", "train"))  # no text with both answers
    for item in items("WNLI", "validation"):
        twin = known[item.premise]
        assert (item.label != twin.label) and item.hypothesis != twin.hypothesis
    words = baseline_score("WNLI", items("WNLI", "train"), items("WNLI", "validation"), "words")
    assert words["accuracy"] < 0.45  # who memorises is wrong


def test_the_mismatched_sets_have_topics_of_their_own(world: MicroWorld):
    tables = world.grammar.tables
    topic = {r["name"]: r["topic"] for table in ("people", "guests") for r in tables[table]}
    for split in (*SPLITS, *MISMATCHED):
        there = {topic[w] for i in items("MNLI", split) for w in i.premise.split() if w in topic}
        assert there == ({*UNSEEN} if split in MISMATCHED else {*world.grammar.topics} - {*UNSEEN})


# ---------------------------------------------------------------- labels by another road


def test_acceptable_sentences_are_those_of_stories(world: MicroWorld):
    """Sorted words: a sentence out of order holds an acceptable one's words; the others do not."""
    told = {t for n in range(40) for story in world.stories(200, seed=n) for t in story.sentences}
    found = items("CoLA", "train")
    right = [item.text for item in found if item.label == "acceptable"]
    wrong = [item.text for item in found if item.label == "unacceptable"]
    assert sum(text in told for text in right) > 0.95 * len(right)
    assert not told & set(wrong)
    bags = {tuple(sorted(text.split())) for text in told}
    swapped = sum(tuple(sorted(text.split())) in bags for text in wrong) / len(wrong)
    assert 0.2 < swapped < 0.4  # three in ten, see BROKEN


def test_the_last_mood_of_who_acts_decides(world: MicroWorld):
    acts = {row["does"] for row in world.grammar.tables["acts1"]}
    told_before = 0
    for item in items("SST-2", "test"):
        first, last = item.text.removesuffix(" .").split(" . ")
        if acts & {*last.split()}:
            first, last = last, first
        words = first.split()
        (at,) = (n for n, word in enumerate(words) if word in acts)
        feels = last.split()[last.split().index(words[at - 1]) + 2]
        assert feels in MOODS["good" if item.label == "positive" else "bad"]
        told_before += " and is " in first
        assert {*last.split()} & {*MOODS["good"]} and {*last.split()} & {*MOODS["bad"]}
    assert 0.4 < told_before / len(items("SST-2", "test")) < 0.6


def facts_of(text: str, world: MicroWorld) -> tuple[str, str, str]:
    """(kind of claim, who, what): its wording is found by putting the holes back."""
    tables, words = world.grammar.tables, text.split()
    (who,) = {row["name"] for t in ("people", "guests") for row in tables[t]} & {*words}
    (what,) = {row["one"] for row in tables["things"]} & {*words}
    wording = " ".join({who: "{a}", what: "{thing}"}.get(word, word) for word in words)
    (kind,) = (kind for kind, ways in CLAIMS.items() if wording in ways)
    return kind, who, what


def relation(one: str, other: str) -> str:
    """Of two kinds: claims stand in pairs of contraries."""
    pairs = list(zip([*CLAIMS][::2], [*CLAIMS][1::2], strict=True))
    if one == other:
        return "entailment"
    return "contradiction" if any({one, other} == {*pair} for pair in pairs) else "neutral"


def test_how_alike_two_claims_are(world: MicroWorld):
    topic = {r["name"]: r["topic"] for r in world.grammar.tables["people"]}
    for item in items("STS-B", "test"):
        times, other = [], ("", "", "")
        for text in texts(item):
            (word,) = (w for ways in WHEN.values() for w in ways if text.startswith(w + " "))
            times.append(next(when for when, ways in WHEN.items() if word in ways))
            one, other = other, facts_of(text.removeprefix(word + " "), world)
        assert one[1] != other[1] and one[2] != other[2]  # no name and no thing twice
        points = ALIKE[relation(one[0], other[0])] + (topic[one[1]] == topic[other[1]])
        assert points + (times[0] == times[1]) == int(item.label), item


@pytest.mark.parametrize("name", ["MNLI", "RTE"])
def test_how_a_claim_stands_to_another(name: str, world: MicroWorld):
    """Both speak of the same person and the same thing: only what they say decides."""
    for item in items(name, "test"):
        one, other = (facts_of(text, world) for text in texts(item))
        found = relation(one[0], other[0])
        assert item.label == (found if found in GLUE[name].names else "not_entailment"), item
        assert one[1:] == other[1:]


def test_every_wording_is_read_as_itself_and_as_nothing_else():
    words = {"a": "goka", "b": "pina", "look": "red", "thing": "lamp", "site": "lion mill"}
    for wordings in (EVENTS, QUESTIONS, ANSWERS, CLAIMS):
        for kind, ways in wordings.items():
            assert len(set(ways)) == len(ways) > 1
            for way in ways:
                holes = re.findall(r"\{(\w+)\}", way)
                assert read(way.format(**words), wordings) == (kind, {h: words[h] for h in holes})
                assert not set(re.sub(r"\{\w+\}", "", way).split()) - {*MicroWorld.load().vocab}
    assert read("goka is", EVENTS) is None


# ---------------------------------------------------------------- shortcuts

# Mean of the metrics that the baselines stay under, and what the majority class has: (seen, most).
CEILINGS = {
    "CoLA": {"length": 0.15, "words": 0.3},
    "SST-2": {"length": 0.6, "words": 0.6},
    "MRPC": {"length": 0.78, "hypothesis": 0.78, "words": 0.84},
    "STS-B": {"length": 0.1, "hypothesis": 0.1, "words": 0.5},
    "QQP": {"length": 0.5, "hypothesis": 0.55, "words": 0.8},
    "MNLI": {"length": 0.42, "hypothesis": 0.42, "words": 0.68},
    "QNLI": {"length": 0.58, "hypothesis": 0.58, "words": 0.75},
    "RTE": {"length": 0.58, "hypothesis": 0.58, "words": 0.72},
    "WNLI": {"length": 0.66, "hypothesis": 0.66, "words": 0.66},
}


@pytest.mark.parametrize("name", GLUE)
def test_baselines_stay_far_from_the_oracle(name: str):
    for sees, most in CEILINGS[name].items():
        found = baseline_score(name, items(name, "train"), items(name, "test"), sees)
        assert task_mean(found) < most, (sees, found)


def test_the_majority_class():
    found = {n: baseline_score(n, items(n, "train"), items(n, "test"), "nothing") for n in GLUE}
    assert found["CoLA"] == {"Matthews": 0}
    assert found["QQP"]["F1"] == 0 and found["QQP"]["accuracy"] == pytest.approx(0.63)
    assert found["MRPC"]["F1"] == pytest.approx(2 * 0.68 / 1.68)  # nobody need read a word
    assert np.isnan(found["STS-B"]["Pearson"])
    assert rows("RTE").keys() == {ORACLE, *BASELINES}


# ---------------------------------------------------------------- training


@pytest.mark.parametrize("name", GLUE)
def test_every_twin_can_be_fine_tuned(name: str, world: MicroWorld):
    config = BertConfig(
        vocab_size=len(world.tokenizer.ids), hidden_size=16, num_layers=1, num_heads=2,
        intermediate_size=32, max_positions=64, hidden_dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    losses: list[float] = []
    train = glue_twin(name, "train", 24)
    model = finetune(
        Encoder(config), train, steps=5, batch_size=8, precision="float32",
        callbacks=[lambda report: losses.append(report.losses["total"])],
    )  # fmt: skip
    assert len(losses) == 5 and np.isfinite(losses).all()
    assert model.classifier.out_features == max(1, len(GLUE[name].names))
    found = model_score(name, model, train)
    assert tuple(found) == GLUE[name].metrics
    if name == "STS-B":
        assert isinstance(train, ScoredSequences) and len(train[:5]) == 5
        assert task_score(model, train) == pytest.approx(found["Pearson"])
        assert train.values.tolist() == [float(i.label) for i in glue_items(name, "train", 24)]


def test_scored_sequences_refuse_what_is_no_number(world: MicroWorld):
    sequences = glue_twin("STS-B", "train", 6).sequences
    for values in (torch.ones(5), torch.full((6,), torch.nan), torch.ones(6, 1)):
        with pytest.raises(ValueError, match=r"6 texts and values .* a finite number for each"):
            ScoredSequences(sequences, values)


# ---------------------------------------------------------------- metrics


def test_scores_are_those_of_scikit_learn_and_scipy():
    draw = random.Random(0)
    true, said = ([draw.randint(0, 1) for _ in range(60)] for _ in range(2))
    x, y = ([draw.gauss(0, 1) for _ in range(60)] for _ in range(2))
    expected = {
        "CoLA": {"Matthews": metrics.matthews_corrcoef(true, said)},
        "MRPC": {"F1": metrics.f1_score(true, said), "accuracy": np.equal(true, said).mean()},
        "STS-B": {"Pearson": stats.pearsonr(x, y)[0], "Spearman": stats.spearmanr(x, y)[0]},
        "RTE": {"accuracy": metrics.accuracy_score(true, said)},
    }
    expected["QQP"] = expected["MRPC"]
    for name, scores in expected.items():
        labels, answers = (x, y) if name == "STS-B" else (true, said)
        assert glue_score(name, answers, labels) == pytest.approx(scores)
        if GLUE[name].names:
            named = [[GLUE[name].names[n] for n in side] for side in (answers, labels)]
            assert glue_score(name, *named) == pytest.approx(scores)
    assert task_mean({"F1": 0.5, "accuracy": 1.0}) == 0.75


# ---------------------------------------------------------------- the same call, and bad input


def test_the_same_seed_gives_the_same_items():
    for name in ("CoLA", "QQP", "WNLI"):
        one, again, other = (glue_items(name, "train", 30, seed=s) for s in (1, 1, 2))
        assert one == again != other and len(one) == 30
    whole = glue_items("WNLI", "train", 40)
    assert [i.premise for i in glue_items("WNLI", "validation", 40)] == [i.premise for i in whole]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("GLUE", "train"), "'GLUE' was given; expected one of CoLA, SST-2"),
        (("RTE", "dev"), "split='dev' and count=None were given; RTE has train, validation, test"),
        (("RTE", "test_mismatched"), "RTE has train, validation, test,"),
        (("RTE", "train", 0), "count=0 were given"),
    ],
)
def test_what_cannot_be_made_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        glue_items(*given)


def test_labels_that_a_task_does_not_have_are_refused():
    with pytest.raises(ValueError, match=r"'maybe' was given; RTE has \('entailment'"):
        glue_score("RTE", ["maybe"], ["entailment"])
    with pytest.raises(ValueError, match="1 true and 2 predicted were given"):
        glue_score("CoLA", [0, 1], [0])
    with pytest.raises(ValueError, match="'SST' was given; expected one of"):
        glue_score("SST", [0], [0])


# ---------------------------------------------------------------- the real ones


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict:
    """Stands for the columns of a parquet file; ["path"] is where it was looked for."""
    columns: dict = {}

    def read_table(path):
        columns["path"] = str(path)
        return SimpleNamespace(to_pydict=lambda: columns)

    package = ModuleType("pyarrow")
    package.parquet = SimpleNamespace(read_table=read_table)
    monkeypatch.setitem(sys.modules, "pyarrow", package)
    return columns


def test_the_real_ones_are_read_by_the_same_call(table: dict, monkeypatch, tmp_path):
    monkeypatch.setattr(glue, "_file", lambda task, split: tmp_path / task.hub / split)
    table |= {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "label": [3.8, 0.0], "idx": [0, 1]}
    found = glue_items("STS-B", "train", real=True)
    assert found == [Pair("stsb-train-0", "a", "c", "3.8", "train"),
                     Pair("stsb-train-1", "b", "d", "0.0", "train")]  # fmt: skip
    table["label"] = [1, 0]
    assert [i.label for i in glue_items("RTE", "train", real=True)] == [
        "not_entailment", "entailment"
    ]  # fmt: skip
    table |= {"premise": ["e"], "hypothesis": ["f"], "label": [1]}
    (item,) = glue_items("MNLI", "validation", 1, real=True)
    assert item.label == "neutral" and table["path"].endswith("validation_matched")
    table |= {"sentence": ["g", "h"], "label": [0, 1]}
    assert glue_items("CoLA", "train", 1, real=True)[0].label == "unacceptable"
    with pytest.raises(ValueError, match="GLUE keeps the labels of its test sets"):
        glue_items("CoLA", "test", real=True)


def test_the_real_ones_come_from_the_hub(table: dict, monkeypatch):
    """What the hub may answer else: test_hub.py."""
    asked: list[tuple] = []
    table |= {"sentence": ["a"], "label": [1]}
    monkeypatch.setattr(glue, "hub_file", lambda *a, **k: asked.append((*a, k)) or "/f")
    glue_items("SST-2", "train", real=True)
    file = "sst2/train-00000-of-00001.parquet"
    assert asked == [("nyu-mll/glue", file, {"repo_type": "dataset"})] and table["path"] == "/f"
    monkeypatch.setattr(glue, "hub_file", lambda *a, **k: None)
    with pytest.raises(MissingGlue, match=rf"real SST-2 cannot.*no {file}.*glue_items\('SST-2'"):
        glue_items("SST-2", "train", real=True)


@pytest.mark.parametrize("missing", ["pyarrow", "huggingface_hub"])
def test_a_missing_package_is_named(missing: str, table: dict, monkeypatch):
    load = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == missing:
            raise ImportError(name)
        return load(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingGlue, match=f"{missing} is not installed.*twin instead"):
        glue_items("RTE", "train", real=True)
