"""The checkpoints that the course ships as folders: a recipe's run into data/checkpoints, with a
model card, and what the stored weights reach into data/results.

    python -m course_lib.train.pretrain data/recipes/course_modernbert.toml --out runs/modern
    python -m course_lib.teaching.checkpoints course-modernbert --run runs/modern
    python -m course_lib.teaching.checkpoints course-modernbert --again  # its files only
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from course_lib.checkpoints import load_pretrained, save_folder
from course_lib.config import published
from course_lib.files import cache_dir, data_root, write_atomic, write_manifest
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.teaching.results import tokens_read
from course_lib.text.counts import Unigram
from course_lib.train.metrics import evaluate, evaluation_mask
from course_lib.train.pretrain import ENCODERS, Pretraining, measure, pretrain, set_up
from course_lib.train.pretrain_recipe import read_recipe

FIRST_SEQUENCES = 100


class About(NamedTuple):
    """What a model card says of one checkpoint that its figures do not.

    model_name: the model's; base: what its settings are a change of; theirs: transformers' class;
    results: the file in data/results; command: what makes it; answers, pairs: among its limits."""

    model_name: str
    base: str
    theirs: str
    results: str
    command: str
    answers: str
    pairs: str


ABOUT = {
    "course-bert": About(
        "BERT", "BERT", "BertForMaskedLM", "03_checkpoint",
        "python -m course_lib.teaching.results 03",
        "; lecture 02 shows all its answers",
        "has read one segment only, and no question about pairs: the vector of segment 1 and a "
        "pooler\n  have to be learnt in fine-tuning",
    ),
    "course-modernbert": About(
        "ModernBERT", "ModernBERT-base", "ModernBertForMaskedLM", "16_checkpoint",
        "python -m course_lib.train.pretrain`,\nstored and measured by `python -m "
        "course_lib.teaching.checkpoints",
        "",
        "has read no question about pairs, and knows no segments: a pooler has to be learnt in\n"
        "  fine-tuning",
    ),
}  # fmt: skip


def build_checkpoint(name: str, run: str | Path | None = None) -> dict[str, Any]:
    """Run the recipe of a checkpoint of ABOUT (well over an hour on two cores; a run that was
    stopped goes on), store its weights in data/checkpoints, measure the stored ones, and write
    their model card beside them. Returns what the results file holds.

    run: the folder of the pre-training run, finished or not; None: one in the cache. Raises
    ValueError for a name that is not in ABOUT, and for a folder that holds another run."""
    if name not in ABOUT:
        raise ValueError(f"name={name!r} was given; expected one of {', '.join(ABOUT)}.")
    recipe = read_recipe(data_root() / "recipes" / f"{recipe_file(name)}.toml")
    out = Path(run) if run else cache_dir("pretraining", recipe.name)
    results = pretrain(recipe, out)
    trained = load_pretrained(out / "model")
    folder = data_root() / "checkpoints" / recipe.name
    assert trained.model is not None
    save_folder(trained.model, folder, trained.tokenizer, half=True)  # type: ignore[arg-type]
    stored = load_pretrained(folder)
    ready = set_up(recipe)
    curve = [
        line for line in results["curve"] if "heldout_accuracy" in line or line["step"] % 200 == 0
    ]
    speeds = [line["tokens_per_second"] for line in results["curve"] if "tokens_per_second" in line]
    record = {
        **{k: results[k] for k in ("recipe", "text", "rows", "parameters", "precision", "threads")},
        "versions": results["versions"],
        "vocabulary": ready.special.vocab_size,
        "reached": measure(ready, stored.model),  # type: ignore[arg-type]
        "before_storing": results["reached"],
        "as_trained": as_trained_accuracy(stored.model, ready),
        "commonest": commonest_accuracy(ready),
        "first_rows": first_sequences_accuracy(stored.model, ready.heldout, ready.special),
        "tokens_per_second": sorted(speeds)[len(speeds) // 2],
        "curve": curve,
        "sha256": stored.sha256,
    }
    write_atomic(folder / "README.md", model_card(record))
    write_manifest(data_root())
    return record


def write_again(name: str) -> None:
    """The files of a shipped checkpoint as `save_folder` writes them today, from its own weights,
    which stay what they are to the bit; and the manifest of data/."""
    shipped, folder = load_pretrained(name), data_root() / "checkpoints" / name
    sha256 = save_folder(shipped.model, folder, shipped.tokenizer, half=True)  # type: ignore[arg-type]
    assert sha256 == shipped.sha256, f"{name}: the weights have changed"
    write_manifest(data_root())


def recipe_file(name: str) -> str:
    """The name, without ending, of a checkpoint's file in data/recipes."""
    return name.replace("-", "_")


def as_trained_accuracy(model: Any, ready: Pretraining) -> float:
    """Masked-token accuracy on held-out text when it is masked as in training: a tenth of the
    selected tokens stay as they are, which is easy, and a tenth become another token."""
    mix, precision = ready.recipe.objective.mix, ready.recipe.training.precision
    scores = evaluate(model, ready.heldout, ready.special, precision=precision, mix=mix)
    return scores.masked_accuracy


def commonest_accuracy(ready: Pretraining) -> float:
    """Masked-token accuracy on held-out text of always naming the commonest token."""
    hidden = evaluation_mask(ready.heldout, ready.special)
    return Unigram(ready.reading.documents[0]).accuracy(ready.heldout, hidden.selected)


def first_sequences_accuracy(model: Any, heldout: PackedSequences, special: SpecialIds) -> float:
    """What `measure` finds in the first held-out sequences alone, in float32: quick to do again."""
    return evaluate(model, heldout[:FIRST_SEQUENCES], special, precision="float32").masked_accuracy


CARD = """# {name}

A small {model_name} for teaching, trained from random initialisation on technical English:
{num_layers} layers, {hidden_size} wide, {num_heads} heads, {parameters:,} weights, a WordPiece
vocabulary {whose} ({vocabulary:,} pieces, lower case), sequences of up to {length} tokens. On
top is the masked-LM head; there is no pooler. `load_pretrained("{name}")` reads it, and so does
transformers (`{theirs}`).

## Data

Whole paragraphs of prose from the docstrings of Python's standard library and of the packages that
the course installs, doubles removed: {words:,} words to learn from, {rows:,} sequences. One
paragraph in twenty, selected by its hash, was held out. The text itself is not shipped;
`python -m course_lib.text.documentation` builds it from what is installed.

- read: {packages}
- SHA-256 of the text to learn from: `{hash}`
- SHA-256 of the held-out text: `{heldout_hash}`

## Recipe

`data/recipes/{recipe_file}.toml`, run by `{command}`. Masked LM
alone, no pairs: {rate:.0%} of the tokens are selected for prediction, anew at every visit (dynamic
masking). {steps:,} steps of
{batch_size} sequences; the first {short_steps:,} of them read as many tokens in sequences of
{short_length}.
{millions:.1f} million tokens in all, padding counted. AdamW, learning rate {learning_rate:g} after
{warmup:.0%} of warm-up, then down to zero in a straight line; betas {betas}, weight decay
{weight_decay:g}, seed {seed}. Other than in {base}: {settings}.

{precision}, threads: {threads}, torch {torch}: {tokens_per_second:,.0f} tokens a second (median),
so about {hours:.1f} hours.

## What it reaches

Measured with the weights in this folder (stored as float16, read back as float32, computed with in
{precision}) on at most {heldout:,} held-out sequences: {part:.0%} of their tokens are selected. One
run, one seed.

| | masked-token accuracy | loss, nats |
|---|---|---|
| all of them replaced by [MASK] | {found:.1%} | {loss:.3f} |
| the same, before the weights were rounded to float16 | {found_before:.1%} | {loss_before:.3f} |
| masked as in training: a tenth can be read, a tenth is replaced | {as_trained:.1%} | |
| always the commonest token | {commonest:.1%} | |

The first line is the figure to quote.

SHA-256 of `model.safetensors`: `{sha256}`

## Limits

- It knows the English of documentation: arrays, files, arguments. Of everyday words it knows
  little, and many are no piece of its vocabulary. `data/english/blanks.toml` holds sentences to
  try, written before it was trained{answers}.
- It says what often stands in a place, not what is true. It is no source on any library.
- The held-out text comes from the same packages, and only exact doubles were removed: paragraphs
  that are nearly alike make the figures flatter. They say nothing about other text.
- It {pairs}.
- What prejudice the text may carry has not been studied. The model is made for lessons.

## Licence

CC BY 4.0, like the rest of `data/`. The packages whose documentation was read keep their own
licences.
"""


def model_card(record: Mapping[str, Any]) -> str:
    """The README.md beside a checkpoint's weights: data, recipe, figures, limits, licence. Every
    figure is one that `build_checkpoint` found."""
    recipe, text = record["recipe"], record["text"]
    model, training, before = recipe["model"], recipe["training"], record["before_storing"]
    batch_size = training["batch_size"] * training["accumulate"]
    vocabulary = recipe["text"]["vocabulary"]
    kind = ENCODERS[model["family"]].config_class
    figures = {
        **asdict(published(model["family"], model["size"], kind, **model["settings"])),
        **{**recipe["text"], **recipe["objective"], **training, **text, **record},
        **ABOUT[recipe["name"]]._asdict(),
        "name": recipe["name"],
        "recipe_file": recipe_file(recipe["name"]),
        "whose": "of its own" if isinstance(vocabulary, int) else
                 f"taken from {vocabulary}",
        "part": signature(evaluation_mask).parameters["rate"].default,
        "batch_size": batch_size,
        "millions": tokens_read(record) / 1e6,
        "hours": tokens_read(record) / record["tokens_per_second"] / 3600,
        "betas": " and ".join(map(str, training["betas"])),
        "settings": ", ".join(f"{name} {value}" for name, value in model["settings"].items()),
        "packages": ", ".join(f"{name} {version}" for name, version in text["versions"].items()),
        "torch": record["versions"]["torch"],
        "found": record["reached"]["heldout_accuracy"],
        "loss": record["reached"]["heldout_loss"],
        "found_before": before["heldout_accuracy"],
        "loss_before": before["heldout_loss"],
    }  # fmt: skip
    return CARD.format(**figures)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.teaching.checkpoints",
        description="Store, measure and describe a checkpoint of the course.",
    )
    parser.add_argument("name", choices=ABOUT, help="of the checkpoint")
    parser.add_argument("--run", type=Path, help="folder of its pre-training run, made if absent")
    parser.add_argument("--again", action="store_true", help="only write the stored one's files")
    options = parser.parse_args(arguments)
    if options.again:
        write_again(options.name)
        return
    record = build_checkpoint(options.name, options.run)
    file = data_root() / "results" / f"{ABOUT[options.name].results}.json"
    write_atomic(file, json.dumps(record, indent=1) + "\n")
    write_manifest(data_root())
    print(f"held-out: {json.dumps(record['reached'])}\n"
          f"saved to data/checkpoints/{options.name} and data/results/{file.name}")  # fmt: skip


if __name__ == "__main__":
    main()
