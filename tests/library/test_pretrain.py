"""The pre-training command: recipes are read with care, every member of the family trains by every
objective it has, a run that is killed ends where it would have ended."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from limits import AGAINST_HANGING
from own_text import paragraphs
from safetensors import safe_open

from course_lib.checkpoints import load, load_pretrained
from course_lib.checkpoints.elmo import load_elmo
from course_lib.config import BertConfig, encoder_flops
from course_lib.encoder import Encoder, Pooler
from course_lib.family.deberta import (
    DebertaConfig,
    DebertaForMaskedLM,
    deberta_encoder,
    deberta_masked_lm,
)
from course_lib.files import lock_file
from course_lib.heads import BertForPreTraining, BertForReplacedTokens
from course_lib.objectives.bilm import bilm_loss
from course_lib.objectives.pretraining import split_batch
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.documentation import split_of
from course_lib.text.wordpiece import WordPiece, word_numbers
from course_lib.train import cost, loop
from course_lib.train import pretrain as command
from course_lib.train.distributed import Distributed
from course_lib.train.metrics import evaluate, evaluate_bilm
from course_lib.train.pretrain import (
    ENCODERS,
    LOG,
    OBJECTIVES,
    PAIRS,
    RECIPE_FILE,
    RESULTS,
    RUN,
    batches_of,
    cut_sequences,
    main,
    pretrain,
    read_log,
    set_up,
)
from course_lib.train.pretrain_recipe import (
    ModelPart,
    ObjectivePart,
    PretrainRecipe,
    ReportsPart,
    TextPart,
    TrainingPart,
    read_recipe,
)
from course_lib.train.pretrain_text import read_words
from course_lib.train.schedule import warmup_then_linear

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 64}
RECIPE = """
name = "small"
[model]
family = "bert"
size = "tiny"
settings = { hidden_size = 32, intermediate_size = 64 }
[text]
source = "world"
stories = 150
length = 32
heldout = 40
[training]
steps = 12
batch_size = 8
learning_rate = 3e-3
[reports]
log_every = 2
evaluate_every = 6
save_every = 3
"""


@pytest.fixture
def file(tmp_path):
    """Writes a recipe file; `changed` are pairs of what stands in RECIPE and what is to stand."""

    def write(*changed: tuple[str, str], text: str = RECIPE) -> Path:
        for old, new in changed:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "recipe.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def small(family="bert", objective="mlm", *, size="base", settings=None, **training):
    """A recipe of a few steps in the micro-world."""
    model = ModelPart(family, size, {**SMALL, **(settings or {})})
    asked = {"steps": 3, "batch_size": 8, **training}
    return PretrainRecipe(
        "small", "", model, ObjectivePart(objective), TextPart("world", 150, length=32, heldout=40),
        TrainingPart(**asked), ReportsPart(1, 3, 2),
    )  # fmt: skip


ELMO = {"filters": [[1, 4], [3, 8]], "projection_size": 8, "cell_size": 16}


def small_elmo(**training):
    recipe = small(**training)
    return replace(recipe, model=ModelPart("elmo", settings=ELMO), objective=ObjectivePart("bilm"))


# ---------------------------------------------------------------- recipes


def test_the_course_recipe_is_read_and_its_model_is_small_enough_to_ship():
    recipe = read_recipe(ROOT / "data/recipes/course_bert.toml")
    assert (recipe.model.family, recipe.objective.name) == ("bert", "mlm")
    assert recipe.text.source == "documentation" and recipe.training.betas == (0.9, 0.98)
    assert recipe.training.accumulate == TrainingPart().accumulate  # what is not said
    special = set_up(small()).special
    model, _ = command.build(recipe, replace(special, vocab_size=recipe.text.vocabulary))
    assert 2 * command.count_parameters(model) <= 12 * 2**20  # bytes, as float16


def test_a_recipe_says_all_that_is_not_left_to_defaults(file):
    recipe = read_recipe(file())
    assert recipe.model.settings == {"hidden_size": 32, "intermediate_size": 64}
    assert recipe.text == TextPart("world", 150, length=32, heldout=40)
    assert recipe.training == TrainingPart(12, 8, learning_rate=3e-3)
    assert recipe.as_dict()["reports"] == {"log_every": 2, "evaluate_every": 6, "save_every": 3}
    whole = read_recipe(file(("learning_rate = 3e-3", "weight_decay = 1")))
    assert repr(whole.training.weight_decay) == "1.0"


WRONG = [
    ("steps = 12", "step = 12", r"has step; expected only steps, batch_size"),
    ('family = "bert"', 'famly = "bert"', "has famly; expected only family, size"),
    ("[training]", "[trainig]", "has trainig; expected only name, about, model"),
    ("steps = 12", 'steps = "12"', "training, steps is '12'; expected a value of type int"),
    ("steps = 12", "steps = 1.5", "training, steps is 1.5; expected a value of type int"),
    ("steps = 12", "steps = true", "training, steps is True; expected a value of type int"),
    ("steps = 12", "betas = [0.9]", "training, betas is .*expected a value of type tuple"),
    ('source = "world"', "source = 3", "text, source is 3; expected a value of type str"),
    ("length = 32", "vocabulary = 1.5", "vocabulary is 1.5; expected a value of type int or str"),
    ("length = 32", "length = 4", "length=4 was given; expected a whole number of at least 8"),
    ('name = "small"', "about = 'x'", "lacks name; expected a value there"),
    ('name = "small"', "name = 'x'\nmodel = 3", "is not valid TOML"),
    ('name = "small"', "name = ", "is not valid TOML"),
    ("[model]", "[objective]\nrate = 2.0\n[model]", "rate=2.0 was given; expected a fraction"),
    ("[model]", "[objective]\nrate = 0\n[model]", "rate=0.0 was given; expected more"),
    ('"world"', '""', "source='' was given; expected a name; or leave it out"),
    (
        "length = 32",
        'vocabulary = " "',
        "vocabulary=' ' was given; expected a name; or leave it out",
    ),
    ("length = 32", "vocabulary = 1000001", "whole number of at least 1 and at most 1,000,000"),
    ("length = 32", "length = 1000000000", "a whole number of at least 8 and at most 65,536"),
    ("stories = 150", "stories = 1000000000", "stories=1000000000 was given; expected a whole num"),
    ("heldout = 40", "heldout = 1000000000", "heldout=1000000000 was given; expected a whole num"),
    ("batch_size = 8", "batch_size = 1000000000", "batch_size=1000000000 was given; expected a w"),
    ("[model]", "[objective]\nmix = [1.0, 1.0, 0.0]\n[model]", "expected 1"),
    ("[model]", '[objective]\nunits = "letters"\n[model]', "units='letters' was given"),
    ("steps = 12", "steps = 4\nshort_steps = 5", "short_steps=5 was given for 4 steps"),
    ("steps = 12", "short_steps = 5\nshort_length = 9", "short_length=9 was given for sequences"),
    (
        "[training]",
        '[objective]\nunits = "words"\n[training]\nshort_steps = 2',
        r"units \(with short_steps\)='words' was given; expected one of tokens",
    ),
]


def wrong_numbers():
    """Settings of [training] and [reports], and values that none of them takes."""
    for name, least in (("steps", 0), ("batch_size", 1), ("short_steps", 0), ("accumulate", 1),
                        ("seed", 0)):  # fmt: skip
        old = {"steps": "steps = 12", "batch_size": "batch_size = 8"}.get(name, "[training]")
        new = f"{name} = {least - 1}"
        yield old, new if old[0] != "[" else f"{old}\n{new}", f"{name}={least - 1} was given"
    for name in ("learning_rate", "weight_decay", "clip", "warmup"):
        for value in ("-0.1", "nan", "inf", "true", '"1"'):
            old = "learning_rate = 3e-3" if name == "learning_rate" else "steps = 12"
            yield old, f"{name} = {value}", f"{name}( is |=).*expected a"
    yield "steps = 12", "warmup = 1.5", "warmup=1.5 was given; expected a fraction of the steps"
    yield "steps = 12", "betas = [0.9, 1]", "expected two numbers from 0 to below 1"
    yield "steps = 12", 'precision = "float8"', "expected one of auto, float32"
    for name in ("log_every", "evaluate_every", "save_every"):
        yield f"{name} = ", f"{name} = -", f"{name}=-[236] was given; expected a whole number"
    for name in ("stories", "heldout", "length"):
        yield f"{name} = ", f"{name} = -", f"{name}=-.* was given; expected a whole number"
    yield "steps = 12", "short_length = 0", "short_length=0 was given; expected a whole number of"
    yield "length = 32", "added = -1", "added=-1 was given; expected a whole number of at least 0"
    yield "length = 32", "vocabulary = 0", "vocabulary=0 was given; expected a whole number of at"
    yield "[model]", "[objective]\nmask_copies = -1\n[model]", "mask_copies=-1 was given"
    yield "[model]", "[model]\ngenerator = nan", "generator=nan was given; expected a finite"
    yield "[model]", '[model]\nrows = "zeros"', "rows='zeros' was given; expected one of mean"
    yield "[model]", "[model]\nsize = 3\n[other]", "has other; expected only"


WRONG += wrong_numbers()


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[new for _, new, _ in WRONG])
def test_a_recipe_that_is_none_is_refused(file, old, new, message):
    with pytest.raises(ValueError, match=message):
        read_recipe(file((old, new)))


def test_a_recipe_may_begin_with_the_mark_that_some_editors_leave(file):
    assert read_recipe(file(text="\ufeff" + RECIPE)) == read_recipe(file())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrainingPart(steps="12"), "steps is '12'; expected a value of type int"),
        (lambda: TrainingPart(learning_rate=True), "learning_rate is True; expected a value of ty"),
        (lambda: TrainingPart(clip=-1), "clip=-1.0 was given; expected .* 0 is no clipping"),
        (lambda: TrainingPart(clip="never"), 'clip is .never.; expected .* float or "none"'),
        (lambda: TextPart(source=3), "source is 3; expected a value of type str"),
        (lambda: ObjectivePart(mix=(1.0, 0.0)), "mix is .*expected a value of type tuple"),
        (lambda: ReportsPart(save_every=1.5), "save_every is 1.5; expected a value of type int"),
        (lambda: ModelPart(settings=[]), "settings is .*expected a value of type Mapping"),
        (lambda: PretrainRecipe("x", training=TextPart()), "training is .*expected a table"),
    ],
)
def test_a_recipe_made_in_python_is_checked_like_a_file(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("written", ["0", "0.0", '"none"', '"off"'])
def test_no_clipping_is_written_as_none_or_0(file, written):
    recipe = read_recipe(file(("steps = 12", f"steps = 12\nclip = {written}")))
    assert recipe.training == TrainingPart(12, 8, learning_rate=3e-3, clip=None)
    assert recipe.as_dict()["training"]["clip"] == 0.0


def test_a_table_that_is_a_number_a_file_that_is_missing_and_one_that_is_no_text(tmp_path, file):
    with pytest.raises(ValueError, match="model is 3; expected a table"):
        read_recipe(file(text='name = "x"\nmodel = 3'))
    with pytest.raises(FileNotFoundError, match=r"no file at .*absent.toml: expected a recipe"):
        read_recipe(tmp_path / "absent.toml")
    (tmp_path / "bytes.toml").write_bytes(b"name = \xff\xfe")
    with pytest.raises(ValueError, match="no text in UTF-8"):
        read_recipe(tmp_path / "bytes.toml")


UNFIT = [
    (small("bart"), "family='bart' was given; expected one of bert, roberta"),
    (small("bert", "clm"), "objective='clm' was given; expected one of mlm"),
    (small("electra", "mlm"), "expected electra with rtd"),
    (small("bert", "rtd"), "expected electra with rtd"),
    (small("elmo", "mlm"), "family 'elmo' was given .*elmo with bilm"),
    (small("bert", "bilm"), "expected electra with rtd, elmo with bilm; any other"),
    (replace(small_elmo(), text=TextPart("world", vocabulary="vocab.txt")), "how many words to"),
    (replace(small_elmo(), model=ModelPart("elmo", settings={"depth": 3})), "those of ElmoConfig"),
    (small("deberta", "mlm+nsp"), "has a pooler"),
    (small("deberta", "mlm+sbo"), "whose masked-word head is BERT's"),
    (small("bert", size="huge"), "size 'huge' was given for bert"),
    (small("bert", settings={"depth": 3}), "depth was given; expected settings of BertConfig"),
    *[(small(settings={name: value}), f"{name}=.*expected")
      for name, values in {
          "hidden_dropout": (-0.1, math.nan, "0"), "layer_norm_eps": (-1,),
          "initializer_range": (math.inf,), "num_layers": (True,), "vocab_size": (8,),
          "pad_token_id": (3,),
      }.items() for value in values],
    (small("modernbert", settings={"biases": 1}), "biases=1 was given; expected true or false"),
    *[(small(family, settings={"max_positions": 32 + more}), "expected at most 31, the positions")
      for family, more in (("bert", -1), ("roberta", 0))],
    (small("bert", "mlm+nsp", settings={"type_vocab_size": 1}), "type_vocab_size=1 was .* 2 segm"),
    *[(replace(small(), text=replace(small().text, **more)), "the world has its own vocabulary")
      for more in ({"vocabulary": "vocab.txt"},)],
    (replace(small(), text=TextPart("world", 150, 300, length=32)), "the world has its own vocab"),
    (replace(small(), text=replace(small().text, added=3)), "added was given; .* WordPieces"),
    (replace(small(), text=TextPart("law", 150)), "stories was given; .* only the world"),
    (small(short_length=16), "short_length was given; .* only short_steps"),
    (replace(small(), model=ModelPart(rows="random")), "rows was given; .* only a start"),
    (replace(small(), model=ModelPart(generator=0.5)), "generator was given; .*only an ELECTRA"),
    (replace(small_elmo(), objective=ObjectivePart("bilm", 0.3)), "rate was given; .* elmo masks"),
    (small("electra", "rtd", size="small", settings={"hidden_size": 33}), "hidden_size=33"),
    (small_elmo(optimizer="muon"), "optimizer was given; .* an elmo has no blocks for Muon"),
    (small(settings={"num_layers": 0}, optimizer="muon"), "a model without matrices in blocks"),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "message"), UNFIT, ids=[message for _, message in UNFIT])
def test_parts_that_do_not_go_together_are_refused_and_nothing_is_written(
    tmp_path, recipe, message
):
    with pytest.raises(ValueError, match=message):
        pretrain(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "settings", [{"depth": 3}, {"max_positions": 30}, {"hidden_dropout": -0.1}], ids=str
)
def test_a_wrong_setting_is_refused_before_the_text_is_read(monkeypatch, settings):
    monkeypatch.setattr("course_lib.train.pretrain.read_text", None)
    with pytest.raises(ValueError, match=next(iter(settings))):
        set_up(small(settings=settings))


@pytest.mark.parametrize("settings", [{"layer_norm_eps": 0}, {"initializer_range": 0}], ids=str)
def test_a_0_that_a_reader_writes_is_trained_and_saved(tmp_path, settings):
    """A whole number, where transformers' configuration, at the end of the run, wants 0.0."""
    pretrain(small(settings=settings, steps=1), tmp_path)
    saved = load_pretrained(tmp_path / "model").encoder.config
    assert vars(saved).items() >= settings.items()


def test_a_model_that_says_no_number_is_not_stored(tmp_path):
    """The last step's loss and the weights behind it are finite, but not what they compute."""
    with pytest.raises(FloatingPointError, match="The held-out loss is nan; expected a finite"):
        pretrain(small(learning_rate=0.9, weight_decay=1e30, steps=1), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {RECIPE_FILE, LOG, f"{RUN}.lock"}


def test_a_vocabulary_beside_a_file_of_ours_keeps_its_settings(tmp_path):
    """Case and marks of its text, which its pieces here do not show."""
    words = WordPiece.from_words(["the", "cat"], lowercase=False, strip_accents=True)
    sizes = {**SMALL, "vocab_size": len(words)}
    model = deberta_masked_lm(deberta_encoder(DebertaConfig(**sizes)))
    assert command.store(model, words, tmp_path) == "model"
    again = load_pretrained(tmp_path / "model").tokenizer
    assert (again.vocab, again.normalisation) == (words.vocab, words.normalisation)


def test_a_vocabulary_that_a_text_does_not_fill_is_said(tmp_path):
    """The model has as many rows as pieces came out, and the results say so."""
    written(tmp_path / "text", paragraphs(120))
    text = TextPart(str(tmp_path / "text"), vocabulary=400_000, length=32)
    said = pretrain(replace(small(steps=1), text=text), tmp_path / "out")["notes"][-1]
    pieces = len(WordPiece.from_file(tmp_path / "out/model"))
    assert said == f"vocabulary = 400,000: {pieces:,} pieces were learnt from this text."
    ready = set_up(replace(small(), text=replace(text, vocabulary=90)))
    assert not [note for note in ready.reading.notes if "were learnt" in note]
    elmo = set_up(replace(small_elmo(), text=text)).reading
    assert elmo.notes[-1].startswith(f"vocabulary = 400,000: {elmo.tokenizer.predicted:,} words")


class SomeProcesses(Distributed):
    """Nine processes that share the weights out."""

    world_size, sharded = 9, True


@pytest.mark.parametrize(
    ("training", "message"),
    [({"batch_size": 8}, r"a sequence for each process\)=8 was given; .* at least 9"),
     ({"batch_size": 9, "precision": "float16"}, "float16 was chosen for weights")],
)  # fmt: skip
def test_what_several_processes_cannot_run_is_refused_and_nothing_is_written(
    tmp_path, training, message
):
    with pytest.raises(ValueError, match=message):
        pretrain(small(**training), tmp_path / "out", SomeProcesses())
    assert not (tmp_path / "out").exists()


def test_a_run_that_never_reports_ends_all_the_same(tmp_path):
    """0 is never; the model, what it reached and the checkpoint are there at the end."""
    quiet = replace(small(clip=0), reports=ReportsPart(0, 0, 0))
    found = pretrain(quiet, tmp_path / "quiet")
    assert read_log(tmp_path / "quiet" / LOG) == found["curve"] == []
    assert found["reached"] == pretrain(small(clip=None), tmp_path / "loud")["reached"]
    assert tensors_in(tmp_path / "quiet" / RUN)[1]["step"] == "3"


# ---------------------------------------------------------------- every member, every objective

PAIRED = ("bert", "roberta", "albert", "tinybert", "mobilebert", "ib-bert")
SPANNED = ("bert", "roberta", "distilbert", "tinybert")
SIZES = {"tinybert": "4", "electra": "small", "ib-bert": "large"}
MORE = {
    "albert": {"embedding_size": 16},
    "electra": {"embedding_size": 16},
    "mobilebert": {"embedding_size": 16, "bottleneck_size": 16},
    "ib-bert": {"embedding_size": 16, "bottleneck_size": 48},
    "deberta": {"span": 16},
    "deberta-v3": {"span": 16, "furthest": 32},
}
ALL = [
    (family, objective) for family in ENCODERS for objective in OBJECTIVES
    if objective != "bilm" and (objective == "rtd") == (family == "electra")
    and (objective in ("mlm", "rtd") or family in (SPANNED if "sbo" in objective else PAIRED))
]  # fmt: skip


@pytest.mark.parametrize(("family", "objective"), ALL, ids=[" ".join(pair) for pair in ALL])
def test_trains_and_what_is_stored_is_read_again(tmp_path, family, objective):
    recipe = small(family, objective, size=SIZES.get(family, "base"), settings=MORE.get(family))
    found = pretrain(recipe, tmp_path)
    lines = [line for line in read_log(tmp_path / LOG) if "total" in line]
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert all(math.isfinite(line["total"]) for line in lines)
    reached = found["reached"]
    assert 0 < reached["heldout_loss"] < 10 and ("heldout_pairs" in reached) == (objective in PAIRS)
    assert json.loads((tmp_path / RESULTS).read_text()) == json.loads(json.dumps(found))

    ready = set_up(recipe)
    if found["model"] == "model":
        model = load_pretrained(tmp_path / "model").model
        theirs_agree(tmp_path / "model", model, ready.heldout[:4])
    else:
        alone = family.startswith("deberta") or family == "ib-bert"
        assert alone or (family == "roberta" and "+" in objective)
        model = load(tmp_path / found["model"])
    if not isinstance(model, BertForReplacedTokens):
        again = evaluate(model, ready.heldout, ready.special)
        assert again.mlm_loss == pytest.approx(reached["heldout_loss"], rel=1e-5)


def test_an_elmo_trains_and_what_is_stored_is_read_again(tmp_path):
    found = pretrain(small_elmo(), tmp_path)
    lines = [line for line in read_log(tmp_path / LOG) if "total" in line]
    assert all(
        line["total"] == pytest.approx((line["forward"] + line["backward"]) / 2, abs=2e-5)
        for line in lines
    )
    model, words = load_elmo(tmp_path / found["model"])
    ready = set_up(small_elmo())
    assert words.vocab == ready.reading.tokenizer.vocab[: words.predicted]
    loss, accuracy = evaluate_bilm(model, ready.heldout, ready.reading.tokenizer)
    assert found["reached"]["heldout_loss"] == pytest.approx(loss, rel=1e-5)
    assert found["reached"]["heldout_accuracy"] == pytest.approx(accuracy)


def test_an_elmo_counts_labels_over_all_parts_of_a_step():
    """Two batches of 8 and one of 16 hold the same number of labels, and the same mean."""
    ready = set_up(small_elmo(batch_size=16))
    ready.model.eval()  # no dropout
    whole = batches_of(ready)(0)
    with torch.no_grad():
        total = bilm_loss(ready.model(**whole.inputs), whole.targets)["total"]
        parts = split_batch(whole, 2)
        added = sum(bilm_loss(ready.model(**p.inputs), p.targets)["total"] for p in parts)
    assert added.item() == pytest.approx(total.item(), rel=1e-5)


def test_the_words_of_files_are_read_whole(tmp_path):
    for number in range(60):
        text = f"The cat{number} sat here. It was Tuesday."
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    reading = read_words(TextPart(str(tmp_path), vocabulary=8))
    assert reading.tokenizer.predicted == 8
    assert reading.tokenizer.vocab[4] == "."  # twice in each
    (train, heldout) = reading.documents
    words = {reading.tokenizer.token(i) for d in (*train, *heldout) for s in d for i in s}
    assert {"cat0", "cat59", "tuesday"} <= words and "<UNK>" not in words


@torch.no_grad()
def theirs_agree(folder: Path, model, sequences: PackedSequences):
    """transformers reads the same folder, and says the same."""
    import transformers

    (name,) = json.loads((folder / "config.json").read_text())["architectures"]
    theirs = getattr(transformers, name).from_pretrained(folder).eval()
    given = {"input_ids": sequences.input_ids, "attention_mask": sequences.attention_mask}
    if "distilbert" not in name.lower() and model.config.type_vocab_size > 1:
        given["token_type_ids"] = sequences.token_type_ids
    if isinstance(model, DebertaForMaskedLM):  # its decoder is read here alone
        model = model.encoder
    names = ("prediction_logits", "logits", "last_hidden_state")
    ours, scores = (
        next(getattr(output, name) for name in names if hasattr(output, name))
        for output in (model(**given), theirs(**given))
    )
    real = sequences.attention_mask.bool()
    assert (ours[real] - scores[real]).abs().max() < 1e-4
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    theirs(**tokenizer("The cat sat.", "It slept.", return_tensors="pt"))  # takes all it gives
    known = load_pretrained(folder).tokenizer
    pieces = tokenizer("The [MASK] sat.")["input_ids"]
    assert pieces == [known.special.cls, *known.encode("The [MASK] sat."), known.special.sep]


# ---------------------------------------------------------------- what is read


def test_sequences_are_cut_into_pieces_with_enough_text():
    ids = torch.arange(1, 49).reshape(3, 16)
    mask = torch.ones_like(ids)
    mask[1, 11:] = 0  # its last quarter holds nothing, the one before three of four
    mask[2, 9:] = 0  # one of four: left out
    pieces = cut_sequences(PackedSequences(ids, mask, torch.ones_like(ids)), 4)
    assert pieces.input_ids[:, 0].tolist() == [1, 5, 9, 13, 17, 21, 25, 33, 37]
    assert pieces.attention_mask.sum(1).tolist() == [4, 4, 4, 4, 4, 4, 3, 4, 4]
    assert pieces.token_type_ids.sum() == 0 and pieces.input_ids.shape == (9, 4)


def test_short_sequences_come_first_with_as_many_tokens_a_step():
    ready = set_up(small(steps=4, short_steps=2, short_length=8, accumulate=2))
    batches = batches_of(ready)
    shapes = [tuple(batches(number).inputs["input_ids"].shape) for number in range(8)]
    assert all(sequences == 32 and tokens <= 8 for sequences, tokens in shapes[:4])
    assert all(sequences == 8 and 8 < tokens <= 32 for sequences, tokens in shapes[4:])


def test_whole_words_are_hidden_alone_or_in_runs(monkeypatch):
    """The micro-world's words are single pieces: give every second token to the word before."""

    def in_twos(tokenizer, input_ids, attention_mask):
        numbers = word_numbers(tokenizer, input_ids, attention_mask)
        return torch.where(numbers >= 0, numbers // 2, numbers)

    monkeypatch.setattr(command, "word_numbers", in_twos)
    neighbours = dict.fromkeys(("words", "runs"), 0)
    for units in neighbours:
        ready = set_up(replace(small(), objective=ObjectivePart(units=units, mix=(1.0, 0.0, 0.0))))
        for number in range(4):
            batch = batches_of(ready)(number)
            ids, at = batch.inputs["input_ids"].clone(), batch.inputs["predict_at"]
            ids.flatten()[at] = batch.targets["labels"]
            hidden = ids != batch.inputs["input_ids"]
            words = in_twos(ready.reading.tokenizer, ids, batch.inputs["attention_mask"])
            for word, here in zip(words, hidden, strict=True):
                taken = set(word[here].tolist())
                assert taken and not taken & set(word[~here].tolist())  # no half of a word
                neighbours[units] += sum(number + 1 in taken for number in taken)
    assert neighbours["runs"] > 2 * neighbours["words"], neighbours


def test_a_vocabulary_of_ones_own_is_read_again(tmp_path):
    text = TextPart(
        str(written(tmp_path / "text", paragraphs(90))), vocabulary=90, length=16, heldout=20
    )
    found = pretrain(replace(small(), text=text), tmp_path / "out")
    assert found["text"]["source"] == text.source and found["text"]["words"] > 1_000
    kept = load_pretrained(tmp_path / "out" / "model")
    assert kept.tokenizer.encode("the boat") and kept.model.config.vocab_size <= 90
    again = replace(text, vocabulary=str(tmp_path / "out" / "model" / "vocab.txt"))
    special, same = (set_up(replace(small(), text=text)).special for text in (text, again))
    assert special == same
    with pytest.raises(FileNotFoundError, match=r"text \(.txt, UTF-8\) that exists"):
        set_up(replace(small(), text=replace(text, source=str(tmp_path / "nowhere"))))


OWN = """
name = "mine"
[model]
family = "{family}"
size = "base"
settings = {{ hidden_size = 32, num_layers = 4, num_heads = 2, intermediate_size = 64{more} }}
[text]
source = "{source}"
vocabulary = 120
length = 32
[training]
steps = 4
batch_size = 8
precision = "{precision}"
[reports]
log_every = 1
"""


def own(file, source: Path, family="bert", more="", precision="float32") -> str:
    text = OWN.format(family=family, source=source.as_posix(), more=more, precision=precision)
    return str(file(text=text))


def written(folder: Path, texts: list[str], name="a.txt") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n \n".join(texts), encoding="utf-8-sig")  # as editors leave it
    return folder


@pytest.mark.parametrize(
    ("family", "more"), [("bert", ""), ("modernbert", ", window = 8, global_every = 3")]
)
def test_a_readers_folder_becomes_a_model_that_transformers_loads(file, tmp_path, family, more):
    """The command as a user gives it; then AutoModelForMaskedLM and AutoTokenizer alone."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    text = paragraphs(90)
    written(written(tmp_path / "text", text[:50]), text[50:], "more/b.txt")
    out = tmp_path / "out"
    given = [own(file, tmp_path / "text", family, more), "--out", str(out), "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-m", "course_lib.train.pretrain", *given],
        cwd=ROOT, capture_output=True, text=True, timeout=AGAINST_HANGING,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "held-out: " in done.stdout and f"in {out}/model" in done.stdout
    about = json.loads((out / RESULTS).read_text())["text"]
    held = sum(split_of(p) == "heldout" for p in text)
    assert held > 0 and about["words"] < sum(len(p.split()) for p in text)

    ours, folder = load_pretrained(out / "model"), str(out / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    theirs = AutoModelForMaskedLM.from_pretrained(folder).eval()
    assert tokenizer.is_fast and tokenizer.model_max_length == 32
    for sentence in (text[0], "Zwölf Boote, naïve & unread!"):
        pieces = tokenizer(sentence, add_special_tokens=False)["input_ids"]
        assert pieces == ours.tokenizer.encode(sentence)
    asked = ["The pilot paints the [MASK] boat.", "[MASK] at noon"]
    batch = tokenizer(asked, padding=True, return_tensors="pt")
    assert ("token_type_ids" in batch) == (family == "bert")
    with torch.no_grad():
        found, reference = (model(**batch).logits for model in (ours.model, theirs))
    real = batch["attention_mask"].bool()
    assert (found - reference)[real].abs().max() < 1e-5
    at = batch["input_ids"] == tokenizer.mask_token_id
    assert at.sum() == 2 and tokenizer.mask_token_id == ours.tokenizer.special.mask
    best = [ours.tokenizer.token(int(i)) for i in found[at].argmax(-1)]
    assert tokenizer.convert_ids_to_tokens(reference[at].argmax(-1)) == best


def test_a_modernbert_in_bfloat16_learns(file, tmp_path):
    """Twenty steps: every loss is a finite number, and they fall."""
    written(tmp_path / "text", paragraphs(90))
    recipe = own(file, tmp_path / "text", "modernbert", ", window = 8", "bfloat16")
    main([recipe, "--out", str(tmp_path / "out"), "--steps", "20", "--device", "cpu"])
    found = json.loads((tmp_path / "out" / RESULTS).read_text())
    losses = [line["total"] for line in found["curve"] if "total" in line]
    assert found["precision"] == "bfloat16" and len(losses) == 20
    assert all(map(math.isfinite, losses)) and sum(losses[-5:]) < sum(losses[:5])


ONE_OF_EACH = {split_of(paragraph): paragraph for paragraph in paragraphs(90)}.values()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "text was given as a folder of text; it holds no file that ends in .txt"),
        (
            {"a.md": b"Some text."},
            "no file that ends in .txt, subfolders included. Put plain UTF-8 text",
        ),
        ({"a.txt": b""}, "holds 0 paragraphs to learn from and 0 to hold out (one in twenty); exp"),
        ({"a.txt": b"One.\n\nTwo."}, "2 paragraphs to learn from and 0 to hold out"),
        ({"a.txt": b"Fine.", "b/c.txt": b"caf\xe9"}, "c.txt was given as text; its byte 3 is no U"),
        ({"a.txt": "\n\n".join(ONE_OF_EACH).encode()}, "batch_size=8 was given for"),
    ],
    ids=["empty", "no .txt", "no text", "none to hold out", "not UTF-8", "fewer than a batch"],
)
def test_a_folder_that_cannot_be_read_is_refused_and_nothing_is_written(
    file, tmp_path, capsys, files, says
):
    (tmp_path / "text").mkdir()
    for name, content in files.items():
        (tmp_path / "text" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "text" / name).write_bytes(content)
    recipe = own(file, tmp_path / "text")
    before = set(tmp_path.rglob("*"))
    assert says in refused(capsys, recipe, "--out", str(tmp_path / "out"))
    assert set(tmp_path.rglob("*")) == before


# ---------------------------------------------------------------- the command


def test_the_command_writes_a_log_a_model_and_results_and_goes_on(file, tmp_path, capsys):
    out = tmp_path / "out"
    main([str(file()), "--out", str(out), "--device", "cpu"])
    said = capsys.readouterr().out
    assert "small: " in said and "one process on cpu" in said and "12 of 12 steps" in said
    assert "min" in said and "tokens/s" in said and "held-out: " in said
    log = read_log(out / LOG)
    assert [line["step"] for line in log if "total" in line] == [2, 4, 6, 8, 10, 12]
    assert [line["step"] for line in log if "heldout_loss" in line] == [6, 12]
    results = json.loads((out / RESULTS).read_text())
    assert results["curve"] == log and results["recipe"]["training"]["steps"] == 12
    assert results["reached"]["heldout_loss"] == pytest.approx(log[-1]["heldout_loss"], abs=1e-5)
    assert (results["processes"], results["device"]) == (1, "cpu")
    first = log[0]["total"]
    assert log[-2]["total"] < first  # it learns

    before = (out / RUN).read_bytes()
    main([str(file(("log_every = 2", "log_every = 3"))), "--out", str(out), "--device", "cpu"])
    assert (out / RUN).read_bytes() == before and read_log(out / LOG) == log  # nothing left to do


def refused(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert str(stopped.value).startswith("pretrain: ") and "Traceback" not in str(stopped.value)
    return str(stopped.value)


def test_a_folder_with_another_run_is_refused(file, tmp_path, capsys):
    out = tmp_path / "out"
    main([str(file()), "--out", str(out), "--steps", "3", "--device", "cpu"])
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for old, new, part in (
        ("intermediate_size = 64", "intermediate_size = 96",
         "model.settings.intermediate_size: 64 then, 96 now"),
        ("batch_size = 8", "batch_size = 9", "training.batch_size: 8 then, 9 now"),
        ("stories = 150", "stories = 151", "text.stories: 150 then, 151 now"),
        ('name = "small"', 'name = "other"', 'name: "small" then, "other" now'),
        ("hidden_size = 32, ", "", "model.settings.hidden_size: 32 then, not set now"),
        ("[reports]", "released_schedule = true\n[reports]",
         "training.released_schedule: not set then, true now"),
    ):  # fmt: skip
        said = refused(capsys, str(file((old, new))), "--out", str(out), "--steps", "3")
        assert f"holds another run, which\n  differs in {part}\nexpected the same" in said
        assert "To train longer" not in said
    said = refused(capsys, str(file(("batch_size = 8", "batch_size = 9"))), "--out", str(out))
    lines = ["training.steps: 3 then, 12 now", "training.batch_size: 8 then, 9 now"]
    assert [f"  differs in {line}" for line in lines] == said.splitlines()[1:3]
    assert f"with --start {out / 'model'} --out {out}-longer" in said
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    (out / RUN).write_bytes(before[out / RUN][:-50])
    said = refused(capsys, str(file()), "--out", str(out), "--steps", "3")
    assert "not a whole checkpoint" in said
    del before[out / RUN]
    assert all(path.read_bytes() == data for path, data in before.items())  # the log is whole


@pytest.mark.parametrize(
    "name", [RUN, RESULTS, LOG, "model/config.json", "model.safetensors", "vocab.txt"]
)
def test_a_folder_with_other_peoples_files_is_refused(tmp_path, name):
    """Of those names that a run would write over; what stands beside them is no matter."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=f"holds {name.split('/')[0]} and no {RECIPE_FILE}"):
        command.refuse_foreign(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.read_text() for path in files] == ["mine"] * 2
    (tmp_path / name).unlink()
    (tmp_path / "model").exists() and (tmp_path / "model").rmdir()
    command.refuse_foreign(tmp_path)
    command.lock_output_folder(tmp_path, small(), {"source": "world"})
    assert (tmp_path / RECIPE_FILE).exists()


@pytest.mark.parametrize("out", ["", "file", "file/below"])
def test_what_is_no_folder_for_a_run_is_refused(tmp_path, out):
    (tmp_path / "file").write_text("mine")
    with pytest.raises((ValueError, OSError), match=r"expected a folder|file"):
        pretrain(small(steps=1), out and tmp_path / out)
    assert (tmp_path / "file").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A run that has come to its end."""
    out = tmp_path_factory.mktemp("ended") / "out"
    pretrain(small(), out)
    return out


def change_log(change):
    return lambda path: path.write_bytes(b"".join(change(path.read_bytes().splitlines(True))))


@pytest.mark.parametrize(
    "harm",
    [
        Path.unlink, change_log(lambda lines: []), change_log(lambda lines: lines[1:]),
        change_log(lambda lines: lines[:-2]), change_log(lambda lines: [*lines[:-1], b"{"]),
        change_log(lambda lines: [lines[0].replace(b"1", b"2"), *lines[1:]]),
        change_log(lambda lines: [b"\xff\xfe\n", *lines[1:]]),
        change_log(lambda lines: [b"[1]\n", *lines[1:]]),
    ],
)  # fmt: skip
def test_a_log_that_was_lost_cut_or_changed_is_noticed(ended, tmp_path, capsys, harm):
    """Its losses are written again, which the checkpoint has; a changed one is kept beside."""
    out = shutil.copytree(ended, tmp_path / "out")
    whole = read_log(out / LOG)
    harm(out / LOG)
    changed = (out / LOG).read_bytes() if (out / LOG).exists() else None
    results = pretrain(small(), out)
    said = f"{LOG} had been lost, cut or changed when the run went on after step 3"
    assert said in capsys.readouterr().out and said in results["notes"][0]
    losses = [{"step": line["step"], "total": line["total"]} for line in whole if "total" in line]
    again = read_log(out / LOG)
    assert losses == [{k: line[k] for k in ("step", "total")} for line in again]
    aside = out / f"{LOG}.changed"
    assert (aside.read_bytes() if aside.exists() else None) == changed
    assert "notes" in pretrain(small(), out)  # remembered with the run


def test_two_runs_in_one_folder(ended, tmp_path):
    out = shutil.copytree(ended, tmp_path / "out")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with ThreadPoolExecutor(1) as other, lock_file(out / RUN):
        words = f"is being written by process {os.getpid()} on .*, since 2.*one run at a time"
        with pytest.raises(ValueError, match=words):
            other.submit(pretrain, small(), out).result()
        (out / f"{RUN}.holder").unlink()
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert "notes" not in pretrain(small(), out)  # the lock is free again


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made again by another run"])
@pytest.mark.parametrize("reports", [ReportsPart(1, 0, 0), ReportsPart(0, 0, 1)])
def test_a_folder_deleted_during_a_run_is_not_made_again(tmp_path, monkeypatch, reports, again):
    out = tmp_path / "out"

    def delete(*_):
        shutil.rmtree(out, ignore_errors=True)
        if again:
            out.mkdir()
            (out / f"{RUN}.holder").write_text("process 1 on another, since yesterday")

    monkeypatch.setattr(loop, "distributed_step", lambda *_: delete() or {"total": 1.0})
    with pytest.raises(FileNotFoundError, match=r"was deleted or moved while run\.safetensors was"):
        pretrain(replace(small(), reports=reports), out)
    assert out.exists() == again and not (out / LOG).exists() and not (out / RUN).exists()


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", '{"recipe": {}}', '{"recipe": 1}'])
def test_a_folder_with_another_recipe_json_is_refused(tmp_path, content):
    (tmp_path / RECIPE_FILE).write_text(content)
    with pytest.raises(ValueError, match=r"recipe\.json was not written by a run.*another --out"):
        command.lock_output_folder(tmp_path, small(), {"source": "world"})
    assert (tmp_path / RECIPE_FILE).read_text() == content


def test_a_folder_whose_text_or_vocabulary_has_changed_is_refused(file, tmp_path, capsys):
    """Also where only what is held out did, which no step of training reads."""
    texts, out, vocabulary = paragraphs(120), tmp_path / "out", tmp_path / "vocab.txt"
    written(tmp_path / "text", texts)
    made = set_up(replace(small(), text=TextPart(str(tmp_path / "text"), vocabulary=90, length=32)))
    pieces = made.reading.tokenizer.vocab
    vocabulary.write_text("\n".join(pieces), encoding="utf-8")
    recipe = file(
        ("vocabulary = 120", f'vocabulary = "{vocabulary.as_posix()}"'),
        text=OWN.format(family="bert", source=(tmp_path / "text").as_posix(), more="",
                        precision="float32"),
    )  # fmt: skip
    given = [str(recipe), "--out", str(out), "--device", "cpu"]
    main(given)
    finished = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    main(given)  # nothing left to do
    held = [n for n, text in enumerate(texts) if split_of(text) == "heldout"]
    swapped = [text for n, text in enumerate(texts) if n not in held[1:]]
    for spoil, mend in (
        (lambda: written(tmp_path / "text", swapped), lambda: written(tmp_path / "text", texts)),
        (lambda: vocabulary.write_text("\n".join([*pieces[:5], *pieces[:4:-1]]), encoding="utf-8"),
         lambda: vocabulary.write_text("\n".join(pieces), encoding="utf-8")),
    ):  # fmt: skip
        spoil()
        said = refused(capsys, *given)
        assert "differs in the text that was read.vocabulary_hash: " in said or (
            "differs in the text that was read.heldout_hash: " in said
        )
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == finished
        mend()
    # A run begun before this was written down goes on, says so, and is compared from then on.
    begun = json.loads((out / RECIPE_FILE).read_text(encoding="utf-8"))
    del begun["text"]["heldout_hash"], begun["text"]["vocabulary_hash"]
    (out / RECIPE_FILE).write_text(json.dumps(begun), encoding="utf-8")
    main(given)
    assert "was begun before heldout_hash, vocabulary_hash was recorded" in capsys.readouterr()[0]
    written(tmp_path / "text", swapped)
    assert "the text that was read" in refused(capsys, *given)


def test_an_older_run_goes_on_only_as_older_runs_read_their_text(tmp_path, capsys):
    """They dropped all capitals and marks and did not write that down."""
    texts = [text.replace("boat", "böat") for text in paragraphs(120)]
    written(tmp_path / "text", texts)
    for strip, goes_on in ((True, True), (False, False)):
        text = TextPart(
            str(tmp_path / "text"), vocabulary=90, length=32, heldout=9, strip_accents=strip
        )
        recipe, out = replace(small(), text=text), tmp_path / str(strip)
        pretrain(recipe, out)
        begun = json.loads((out / RECIPE_FILE).read_text(encoding="utf-8"))
        for name in ("lowercase", "strip_accents", "marked", "heldout_hash"):
            begun["text"].pop(name)
        (out / RECIPE_FILE).write_text(json.dumps(begun), encoding="utf-8")
        if goes_on:
            pretrain(recipe, out)
            assert "was begun before heldout_hash, marked was" in capsys.readouterr().out
        else:
            with pytest.raises(ValueError, match="differs in the text that was read"):
                pretrain(recipe, out)


def test_what_cannot_be_run_is_said_in_words(file, tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")]
    (tmp_path / "taken").write_text("a file")
    assert "taken" in refused(capsys, str(file()), "--out", str(tmp_path / "taken"))
    assert "no file at" in refused(capsys, str(tmp_path / "absent.toml"), *out)
    assert "has famly" in refused(capsys, str(file(("family", "famly"))), *out)
    assert "--fsdp was given to one process" in refused(capsys, str(file()), *out, "--fsdp")
    large = file(("batch_size = 8", "batch_size = 100_000"))
    assert "batch_size=100000 was given for" in refused(capsys, str(large), *out)
    if not torch.cuda.is_available():
        assert "torch sees no GPU" in refused(capsys, str(file()), *out, "--device", "cuda")


# ---------------------------------------------------------------- what more would cost


def test_flops_of_a_sequence_are_those_of_its_products():
    """Between the blocks without the last and all of them, three times (forward, and back to inputs
    and to weights), plus the head's product with the table at every word asked."""
    config = BertConfig(vocab_size=200, **SMALL)
    model = BertForPreTraining(Encoder(config, pooler=Pooler(config)))
    counted, blocks = cost.sequence_flops(model, 64), 3 * encoder_flops(config, 64)
    head = 3 * 2 * round(0.15 * 64) * 32 * (32 + 200)
    assert blocks / 2 + head < counted < blocks + 2 * head


def test_the_estimate_shows_its_sum():
    phases = [cost.Phase(1_000, 128, 10**9), cost.Phase(10, 512, 10**10)]
    said = cost.report(phases, 1e9, "10 tokens × 1e8", peak=1e12, used=0.5)
    assert "1,000 steps × 256 sequences × 1e+09 FLOPs a sequence of 128 tokens = 2.56e+14" in said
    assert "together 2.82e+14 FLOPs" in said and "10 tokens × 1e8 = 1e+09" in said
    assert "2.82e+14 / 1e+09 = 2.82e+05 s = 3.3 days" in said
    assert cost.in_days(40 * 365.25 * cost.DAY) == "40 years"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--tokens-per-second -5", "above 0"),
        ("--tokens-per-second 0", "above 0"),
        ("--peak 0", "above 0"),
        ("--used 40", "--used above 0, up to 1"),
        ("--used 0", "--used above 0, up to 1"),
        ("--recipe tiny.toml", "--tokens-per-second, too"),
        ("--recipe nowhere.toml --tokens-per-second 9", "nowhere.toml"),
    ],
)
def test_a_cost_of_nothing_is_refused(options, message, capsys):
    with pytest.raises(SystemExit):
        cost.main(options.split())
    assert message in capsys.readouterr().err


def test_the_published_schedule():
    assert sum(steps for steps, _ in cost.SCHEDULE) == 1_000_000


# ---------------------------------------------------------------- SIGKILL


def killed_run(kind: str, number: int, arguments: list[str], threads: int) -> None:
    """The command, killed at the `number`-th step, checkpoint or line of the log; 0: not at all."""
    torch.set_num_threads(threads)

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def torn(descriptor):  # half of the bytes are in the temporary file
        os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        die()

    def half_a_line(training_log, *_):
        with training_log.path.open("a") as file:
            file.write('{"step": 6, "total": 3.')
        die()

    owner, name, kill = {
        "step": (torch.optim.AdamW, "step", die),  # after the backward pass, before the update
        "write": (loop, "save_run", lambda *_: setattr(os, "fsync", torn)),
        "line": (command.TrainingLog, "_write", half_a_line),
    }[kind]
    whole, left = getattr(owner, name), [number]

    def counted(*inputs, **named):
        left[0] -= 1
        if left[0] == 0:
            kill(*inputs)
        return whole(*inputs, **named)

    setattr(owner, name, counted)
    main(arguments)


@pytest.fixture
def start(monkeypatch):
    """Starts `killed_run` in a process of its own, forked from one that has imported all it needs:
    importing torch anew for each would cost more than the runs."""
    paths = [str(ROOT), *map(str, (ROOT / "tests", ROOT / "tests/library"))]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])

    def start(kind, number, *arguments):
        words = [*map(str, arguments), "--device", "cpu"]
        process = context.Process(
            target=killed_run, args=(kind, number, words, torch.get_num_threads())
        )
        process.start()
        return process

    return start


def signalled_run(kind: str, number: int, arguments: list[str], sent: int) -> None:
    """The command, which is sent a signal in the `number`-th call of a function of this kind, and
    another at once, as torchrun and a second Ctrl-C do; what it says goes into a file."""
    torch.set_num_threads(1)
    owner, name = {
        "read": (command, "read_text"), "step": (torch.optim.AdamW, "step"),
        "write": (os, "fsync"), "measure": (command, "measure"), "store": (command, "store"),
        "results": (command, "read_log"),
    }[kind]  # fmt: skip
    whole, left = getattr(owner, name), [number]

    def counted(*inputs, **named):
        left[0] -= 1
        if left[0] == 0:
            try:
                os.kill(os.getpid(), sent)
            finally:
                os.kill(os.getpid(), sent)
        return whole(*inputs, **named)

    setattr(owner, name, counted)
    with open(arguments[2] + ".said", "w") as sys.stderr:
        main(arguments)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
def test_a_signal_ends_a_run_with_one_line_at_every_stage(file, tmp_path):
    """What the line says is what happens: the next command goes on after that step."""
    torch.set_num_threads(1)  # as in the other processes, or their bits differ
    recipe, whole, out = file(), tmp_path / "whole", tmp_path / "out"
    main([str(recipe), "--out", str(whole), "--device", "cpu"])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    new, end = "goes on from the beginning: no step was saved yet", "goes on after step 12 (RUN)"
    for sent, kind, number, where in (
        (signal.SIGINT, "read", 1, "before the first step; the same command goes on"),
        (signal.SIGTERM, "step", 2, f"at step 1; the same command {new}"),
        (signal.SIGINT, "step", 5, "at step 4; the same command goes on after step 3 (RUN)"),
        (signal.SIGTERM, "measure", 1, "at step 6; the same command goes on after step 3 (RUN)"),
        (signal.SIGINT, "write", 3, "at step 6; the same command goes on after step 3 (RUN)"),
        (signal.SIGTERM, "step", 8, "at step 10; the same command goes on after step 9 (RUN)"),
        (signal.SIGTERM, "store", 1, f"while the results were written; the same command {end}"),
    ):
        arguments = [str(recipe), "--out", str(out), "--device", "cpu"]
        process = context.Process(target=signalled_run, args=(kind, number, arguments, sent))
        process.start()
        process.join(AGAINST_HANGING)
        said = Path(f"{out}.said").read_text()
        where = where.replace("(RUN)", f"({out / RUN})")
        assert (said, process.exitcode) == (f"pretrain: stopped {where}\n", 128 + sent), kind
        assert not [*out.glob("*.tmp*"), *out.glob("*.holder")], kind
    main([str(recipe), "--out", str(out), "--device", "cpu"])
    found, expected = (tensors_in(folder / RUN)[0] for folder in (out, whole))
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_longer_is_a_new_run_with_the_old_ones_model(file, tmp_path, monkeypatch, capsys):
    """As the refusal says it; its learning rate climbs and falls again, over its own steps."""
    out, rates = tmp_path / "out", []
    main([str(file()), "--out", str(out), "--device", "cpu"])
    said = refused(capsys, str(file()), "--out", str(out), "--steps", "5", "--device", "cpu")
    more = said.partition("same command with ")[2].partition(": ")[0].split()
    assert more[0] == "--start" and more[2] == "--out"
    set_rate = loop.set_learning_rate
    monkeypatch.setattr(loop, "set_learning_rate",
                        lambda *given: (rates.append(given[1]), set_rate(*given)))  # fmt: skip
    main([str(file()), *more, "--steps", "5", "--device", "cpu"])
    assert rates == [3e-3 * warmup_then_linear(step, 5) for step in range(5)]
    log, reached = read_log(Path(more[3]) / LOG), json.loads((out / RESULTS).read_text())["reached"]
    assert log[0]["step"] == 0
    assert log[0]["heldout_loss"] == pytest.approx(reached["heldout_loss"], abs=1e-4)
    assert json.loads((out / RECIPE_FILE).read_text())["recipe"]["training"]["steps"] == 12


def tensors_in(path: Path):
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def without_rate(path: Path):
    return [{k: v for k, v in line.items() if k != "tokens_per_second"} for line in read_log(path)]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a POSIX signal")
def test_killed_again_and_again_it_ends_in_the_same_bits(file, tmp_path, start):
    """One run, killed in a step and inside a checkpoint's write, before and after there is a first
    one, inside a line of its log, and once at whatever it was doing. Promised on the same machine,
    with the same versions, precision and thread count."""
    recipe, whole, out = file(), tmp_path / "whole", tmp_path / "out"
    main([str(recipe), "--out", str(whole), "--device", "cpu"])
    draw = random.Random(6)
    moments = [("step", draw.randint(1, 3)), ("write", 1)]
    moments += [("step", draw.randint(4, 6)), ("write", draw.randint(2, 3)), ("line", 2)]
    for kind, number in moments:
        process = start(kind, number, recipe, "--out", out)
        process.join(AGAINST_HANGING)
        assert process.exitcode == -signal.SIGKILL, kind
        if kind == "write":
            assert list(out.glob(f"{RUN}.tmp*")), "the kill did not hit a write"
        if kind == "line":
            assert not (out / LOG).read_text().endswith("\n")
    lines = len(read_log(out / LOG))
    process = start("step", 0, recipe, "--out", out)
    while process.is_alive() and len(read_log(out / LOG)) <= lines:
        time.sleep(0.001)
    process.kill()
    process.join(AGAINST_HANGING)
    assert process.exitcode in (0, -signal.SIGKILL)
    main([str(recipe), "--out", str(out), "--device", "cpu"])

    (found, header), (expected, header_expected) = (tensors_in(f / RUN) for f in (out, whole))
    assert header == header_expected and set(found) == set(expected)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    for name in ("model/model.safetensors", "model/config.json", "model/vocab.txt"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert without_rate(out / LOG) == without_rate(whole / LOG)  # each step once
    assert not list(out.glob("*.tmp*"))
