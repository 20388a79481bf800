"""A checkpoint by its name: from a recipe's run to a folder with a card, and figures."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from own_text import paragraphs

from course_lib import files
from course_lib.checkpoints import load_pretrained, save_folder
from course_lib.config import published
from course_lib.encoder import count_parameters
from course_lib.family.modernbert import ModernBertConfig, modernbert_for_masked_lm
from course_lib.files import (
    cache_dir,
    data_path,
    data_root,
    read_manifest,
    read_result,
    sha256_of,
)
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import checkpoints
from course_lib.text.documentation import (
    Corpus,
    corpus_hash,
    documentation,
    installed_versions,
    read_cache,
    split_of,
)
from course_lib.text.packing import pack_documents
from course_lib.train import pretrain_text
from course_lib.train.flops import step_flops
from course_lib.train.pretrain import build
from course_lib.train.pretrain import main as pretrain_command
from course_lib.train.pretrain_recipe import read_recipe

NAME = "course-modernbert"
TINY = """
name = "course-modernbert"
[model]
family = "modernbert"
size = "base"
[model.settings]
hidden_size = 32
num_layers = 4
num_heads = 2
intermediate_size = 48
window = 8
[objective]
rate = 0.3
[text]
vocabulary = 120
length = 32
heldout = 40
[training]
steps = 6
batch_size = 8
[reports]
log_every = 2
evaluate_every = 3
"""


def recipe_of(name: str) -> Any:
    return read_recipe(data_root() / "recipes" / f"{checkpoints.recipe_file(name)}.toml")


def corpus(split: str) -> Corpus:
    documents = [[p for p in paragraphs(200) if split_of(p) == split]]
    return Corpus(documents, {"python": "3.12.1"}, corpus_hash(documents), split)


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data/ of its own that holds a small recipe under the real name, and a small text."""
    root = tmp_path / "data"
    (root / "recipes").mkdir(parents=True)
    (root / "recipes" / "course_modernbert.toml").write_text(TINY, encoding="utf-8")
    (root / files.MANIFEST).write_text("", encoding="utf-8")
    for module in (files, checkpoints):
        monkeypatch.setattr(module, "data_root", lambda: root)
    monkeypatch.setattr(pretrain_text, "documentation", corpus)
    return root


def test_a_run_becomes_a_checkpoint_by_its_name(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The two commands, one after the other; then load_pretrained and transformers read it."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    run = str(tmp_path / "run")
    recipe = str(data / "recipes" / "course_modernbert.toml")
    pretrain_command([recipe, "--out", run, "--device", "cpu"])
    weights = sha256_of(tmp_path / "run" / "run.safetensors")
    checkpoints.main([NAME, "--run", run])
    assert sha256_of(tmp_path / "run" / "run.safetensors") == weights  # nothing was trained again
    assert f"saved to data/checkpoints/{NAME}" in capsys.readouterr().out

    record = read_result("16_checkpoint")
    folder = data / "checkpoints" / NAME
    assert {f"checkpoints/{NAME}/{path.name}" for path in folder.iterdir()} < set(
        read_manifest(data)
    )
    assert (folder / "README.md").read_text(encoding="utf-8") == checkpoints.model_card(record)
    ours = load_pretrained(NAME)
    assert ours.source == "course" and ours.sha256 == record["sha256"]
    assert count_parameters(ours.model) == record["parameters"]  # type: ignore[arg-type]
    assert record["vocabulary"] == ours.tokenizer.vocab_size  # type: ignore[union-attr]
    reached, before = record["reached"], record["before_storing"]
    assert reached["heldout_loss"] == pytest.approx(before["heldout_loss"], abs=0.01)

    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    theirs = AutoModelForMaskedLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    batch = tokenizer(
        ["The keeper counts [MASK] ropes.", "At noon."], padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        logits, reference = (model(**batch).logits for model in (ours.model, theirs))  # type: ignore[misc]
    real = batch["attention_mask"].bool()
    assert (logits - reference)[real].abs().max() < 1e-5


def flops_of(name):
    """FLOPs of a checkpoint's whole pre-training, all sequences full."""
    recipe = recipe_of(name)
    special = load_pretrained("course-bert").tokenizer.special
    model, objective = build(recipe, special)
    training, total = recipe.training, 0
    for length, steps in (
        (training.short_length, training.short_steps),
        (recipe.text.length, training.steps - training.short_steps),
    ):
        rows = training.batch_size * recipe.text.length // length
        ids = torch.randint(10, special.vocab_size, (rows, length))
        full = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
        batch = pretraining_batches(
            full, special, batch_size=rows, seed=0, rate=recipe.objective.rate
        )(0)
        total += steps * step_flops(model, objective, batch)
    return total


def test_both_checkpoints_have_as_many_flops():
    assert flops_of(NAME) == pytest.approx(flops_of("course-bert"), rel=0.01)


def test_the_real_recipe_differs_from_course_berts_only_where_it_says():
    bert, modern = (recipe_of(name).as_dict() for name in ("course-bert", NAME))
    assert {**modern["training"], "steps": bert["training"]["steps"]} == bert["training"]
    assert modern["reports"] == bert["reports"]
    assert {**modern["text"], "vocabulary": 8_192} == bert["text"]
    assert modern["text"]["vocabulary"] == "course-bert"
    assert modern["objective"] == {**bert["objective"], "rate": 0.3}
    config = published("modernbert", "base", ModernBertConfig, **modern["model"]["settings"])
    assert 1 < config.window < modern["text"]["length"] / 2
    assert [config.is_global(layer) for layer in range(4)] == [True, False, False, True]
    with torch.device("meta"):
        model = modernbert_for_masked_lm(
            **modern["model"]["settings"], vocab_size=8_192, pad_token_id=0
        )
    size = 2 * count_parameters(model)
    assert size < 12e6 and size == pytest.approx(2 * 5_364_480, rel=0.01)  # as large as course-bert


def found_by(name: str) -> dict[str, Any]:
    return {
        "recipe": json.loads(json.dumps(recipe_of(name).as_dict())),
        "text": {"words": 1_234, "hash": "a1", "heldout_hash": "b2", "versions": {"numpy": "2.2"}},
        "rows": 56, "parameters": 789, "precision": "bfloat16", "threads": 2, "vocabulary": 8_192,
        "versions": {"torch": "9.8"}, "tokens_per_second": 1_000.0, "curve": [], "sha256": "c3",
        "reached": {"heldout_accuracy": 0.5, "heldout_loss": 2.0}, "as_trained": 0.6,
        "before_storing": {"heldout_accuracy": 0.5, "heldout_loss": 2.0}, "commonest": 0.1,
    }  # fmt: skip


def test_each_card_tells_of_its_own_model():
    modern, bert = (checkpoints.model_card(found_by(name)) for name in (NAME, "course-bert"))
    for part in (
        "# course-modernbert", "A small ModernBERT for teaching", "taken from course-bert (8,192 p",
        "(`ModernBertForMaskedLM`)", "`data/recipes/course_modernbert.toml`", "30% of the tokens",
        "Other than in ModernBERT-base: num_layers 4, hidden_si",
        "knows no segments", "window 32, global_every 3", "course_lib.teaching.checkpoints`",
    ):  # fmt: skip
        assert part in modern and part not in bert, part
    assert all("sequences: 15% of their tokens" in card for card in (modern, bert))
    assert "lecture 02 shows" in bert and "lecture 02 shows" not in modern


def test_a_name_without_a_recipe_is_refused():
    with pytest.raises(ValueError, match="expected one of course-bert, course-modernbert"):
        checkpoints.build_checkpoint("course-gpt")
    with pytest.raises(SystemExit):
        checkpoints.main(["course-gpt"])


# ---------------------------------------------------------------- what is shipped

both = pytest.mark.parametrize("name", checkpoints.ABOUT)


def plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value))


def made(name: str) -> dict[str, Any]:
    return read_result(checkpoints.ABOUT[name].results)


@both
def test_a_checkpoint_was_made_by_its_recipe(name: str):
    record = made(name)
    assert record["recipe"] == plain(recipe_of(name).as_dict())
    steps, every = (record["recipe"][part][of] for part, of in
                    (("training", "steps"), ("reports", "evaluate_every")))  # fmt: skip
    evaluated = [line["step"] for line in record["curve"] if "heldout_accuracy" in line]
    assert evaluated == [*range(every, steps, every), steps]


def test_both_read_the_same_text_in_the_same_pieces():
    bert, modern = map(made, checkpoints.ABOUT)
    assert all(bert["text"][key] == modern["text"][key] for key in ("hash", "heldout_hash"))
    pieces = [load_pretrained(name).tokenizer.ids for name in checkpoints.ABOUT]
    assert pieces[0] == pieces[1]


@both
def test_the_shipped_weights_are_those_that_were_measured(name: str):
    record, shipped = made(name), load_pretrained(name)
    weights = data_path("checkpoints", name, "model.safetensors")
    assert record["sha256"] == sha256_of(weights) == shipped.sha256
    assert record["parameters"] == count_parameters(shipped.model)
    assert weights.stat().st_size < 12_000_000 and shipped.source == "course"


@both
def test_the_shipped_weights_have_the_recipes_shape(name: str):
    shipped, recipe = load_pretrained(name), recipe_of(name)
    model, _ = build(recipe, shipped.tokenizer.special)
    assert plain(asdict(shipped.model.config)) == plain(asdict(model.config))
    assert isinstance(shipped.model, BertForMaskedLM)


@both
def test_the_figures_are_sound_and_storing_cost_little(name: str):
    record, vocabulary = made(name), load_pretrained(name).tokenizer.vocab_size
    reached, before = record["reached"], record["before_storing"]
    assert reached["heldout_accuracy"] == pytest.approx(before["heldout_accuracy"], abs=0.003)
    assert reached["heldout_loss"] == pytest.approx(before["heldout_loss"], abs=0.01)
    last = record["curve"][-1]["heldout_accuracy"]
    assert before["heldout_accuracy"] == pytest.approx(last, abs=0.003)
    assert 1 > record["as_trained"] > reached["heldout_accuracy"]  # some words can then be read
    # Far more is found than the commonest token, and most of the vocabulary is ruled out.
    assert 1 > reached["heldout_accuracy"] > 3 * record["commonest"] > 0
    assert 0 < reached["heldout_loss"] < 0.6 * math.log(vocabulary)


@both
def test_the_first_held_out_sequences_give_what_they_gave(name: str):
    """Only where the same text is installed, and built."""
    record, shipped = made(name), load_pretrained(name)
    built = cache_dir("documentation") / "packages.jsonl"
    if read_cache(built, installed_versions()) is None:
        pytest.skip("the corpus is not built: python -m course_lib.text.documentation builds it")
    heldout = documentation("heldout")
    if heldout.hash != record["text"]["heldout_hash"]:
        pytest.skip("other versions are installed than the checkpoint has read: another text")
    sentences = heldout.sentences()[:300]  # more documents than a hundred sequences hold
    ids = [[i for s in document if (i := shipped.tokenizer.encode(s))] for document in sentences]
    rows = pack_documents([d for d in ids if d], shipped.tokenizer.special, 128)
    assert len(rows) > checkpoints.FIRST_SEQUENCES
    again = checkpoints.first_sequences_accuracy(shipped.model, rows, shipped.tokenizer.special)
    assert again == pytest.approx(record["first_rows"], abs=0.003)
    assert again == pytest.approx(record["reached"]["heldout_accuracy"], abs=0.1)


@both
def test_the_shipped_card_is_that_of_the_file(name: str):
    card = data_path("checkpoints", name, "README.md").read_text(encoding="utf-8")
    assert card == checkpoints.model_card(made(name))


@both
def test_transformers_reads_what_is_shipped(name: str):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    shipped, folder = load_pretrained(name), data_root() / "checkpoints" / name
    theirs = AutoModelForMaskedLM.from_pretrained(folder).eval()
    assert type(theirs).__name__ == checkpoints.ABOUT[name].theirs
    assert theirs.dtype == torch.float32  # not as stored: in float16 a step of AdamW ends in nan
    text = "If the file does not [MASK], an error is raised."
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.model_max_length == shipped.encoder.config.longest_text == 128
    encoding = tokenizer(text, return_tensors="pt")
    special = shipped.tokenizer.special
    ids = [special.cls, *shipped.tokenizer.encode(text), special.sep]
    assert encoding["input_ids"][0].tolist() == ids
    with torch.no_grad():
        ours = shipped.model(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long))
        expected = theirs(**encoding).logits
    torch.testing.assert_close(ours.prediction_logits, expected, atol=1e-3, rtol=1e-3)


@both
def test_transformers_trains_what_is_shipped(name: str):
    from transformers import AutoModelForSequenceClassification

    folder = data_root() / "checkpoints" / name
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(5, 8_000, (2, 9), generator=torch.Generator().manual_seed(0))
    model(input_ids=ids, labels=torch.tensor([0, 1])).loss.backward()
    optimizer.step()
    assert all(bool(weight.isfinite().all()) for weight in model.parameters())


@both
def test_the_files_are_as_save_folder_writes_them(name: str, tmp_path: Path):
    shipped, folder = load_pretrained(name), data_root() / "checkpoints" / name
    save_folder(shipped.model, tmp_path, shipped.tokenizer, half=True)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {path.name for path in folder.iterdir()} - {"README.md"}
    for file in written - {"config.json", "tokenizer.json"}:  # of the libraries' versions
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes(), file
