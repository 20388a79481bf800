"""The pre-training command: a recipe file in, a checkpoint and its results out.

    python -m course_lib.train.pretrain data/recipes/course_bert.toml --out runs/course_bert

It is the notebooks' loop, `fit`, with arguments. In the output folder: `recipe.json`, what is run;
`log.jsonl`, a line every few steps, written as the run goes; `run.safetensors`, from which a run
that was killed goes on to the same bits; and at the end `model/` (weights, configuration and
vocabulary, as `load_pretrained` and transformers read them), or where transformers has no such
model `model.safetensors`; and `results.json`.

On several processes, on one machine or many, with the same recipe and the same batches:

    torchrun --nproc_per_node 8 -m course_lib.train.pretrain RECIPE --out FOLDER"""

from __future__ import annotations

if __name__ == "__main__":  # before torch is imported, which takes seconds
    from course_lib.train.stopping import leave, listen

    listen(leave)

import argparse
import hashlib
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.checkpoints import FAMILIES as STORED
from course_lib.checkpoints import load_pretrained
from course_lib.checkpoints.families import Family
from course_lib.config import BertConfig, check_choice, check_size, published
from course_lib.encoder import count_parameters
from course_lib.family.deberta import DebertaConfig, deberta_masked_lm
from course_lib.family.electra import Electra, ElectraConfig, electra_from
from course_lib.family.elmo import ElmoConfig, ElmoForBiLM
from course_lib.files import json_object, lock_file, no_file, write_atomic
from course_lib.heads import BertForMaskedLM, BertForPreTraining, BertForSpanPreTraining
from course_lib.kernels.choosing import DEVICES
from course_lib.objectives.bilm import bilm_batches, bilm_loss
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.replaced_tokens import electra_loss
from course_lib.objectives.sentence_order import albert_loss, make_ordered_pairs
from course_lib.objectives.sequences import Batch, PackedSequences, SpecialIds
from course_lib.objectives.span_boundary import spanbert_loss
from course_lib.text.characters import WordVocabulary
from course_lib.text.packing import pack_documents
from course_lib.text.tokenizer_files import CONFIG as TOKENIZER_CONFIG
from course_lib.text.wordpiece import SETTINGS, WordPiece, word_numbers

from .distributed import ONE_PROCESS, Distributed, join
from .loop import Objective, Report, check_sharded, fit, is_due
from .metrics import evaluate, evaluate_bilm
from .new_vocabulary import with_vocabulary
from .optimizers import make_optimizer
from .precision import choose_precision
from .pretrain_recipe import ModelPart, ObjectivePart, PretrainRecipe, read_recipe, with_start
from .pretrain_text import Reading, read_text, read_words
from .state import check_finite, differences, put_weights, saved_step, whole_weights
from .stopping import one_line, stage

RUN, LOG, RESULTS, RECIPE_FILE = "run.safetensors", "log.jsonl", "results.json", "recipe.json"
MODEL, OWN_MODEL = "model", "model.safetensors"  # as transformers has it, or as ours
Documents = Sequence[Sequence[Sequence[int]]]


# family -> the row of checkpoints.FAMILIES with its configuration and how its encoder is built.
ENCODERS: dict[str, Family] = {
    **{name: STORED[name] for name in ("bert", "roberta", "albert", "distilbert", "mobilebert")},
    **{name: STORED[name] for name in ("modernbert", "electra", "deberta")},
    **{"tinybert": STORED["bert"], "ib-bert": STORED["mobilebert"]},
    "deberta-v3": STORED["deberta-v2"],
}
POOLED = ("bert", "roberta", "albert", "tinybert", "mobilebert", "ib-bert")
PAIRS = {"mlm+nsp": make_pairs, "mlm+sop": make_ordered_pairs}
OBJECTIVES = ("mlm", *PAIRS, "mlm+sbo", "rtd", "bilm")
FAMILIES = (*ENCODERS, "elmo")
# The objective of a member that has one of its own, and that no other member has.
OWN = {"electra": "rtd", "elmo": "bilm"}


@dataclass(frozen=True)
class Pretraining:
    """Everything a recipe stands for, ready to be trained."""

    recipe: PretrainRecipe
    reading: Reading
    train: PackedSequences
    heldout: PackedSequences
    model: nn.Module
    objective: Objective

    @property
    def special(self) -> SpecialIds:
        """The ids of the special tokens."""
        return self.reading.tokenizer.special


def set_up(recipe: PretrainRecipe) -> Pretraining:
    """Read the text, learn or read the vocabulary, make sequences, build the model with random
    initialisation or from the checkpoint that the recipe starts with.

    Raises ValueError for a family, objective or setting that does not exist, or does not go with
    the others."""
    _check(recipe)
    # Before the text, which takes long, what does not depend on it.
    start = _checkpoint(recipe) if recipe.model.start else None
    if not start and recipe.model.family != "elmo":
        _check_length(recipe, _config(recipe, SpecialIds(0, 1, 2, 3, 4, vocab_size=2**20)))
    read = read_words if recipe.model.family == "elmo" else read_text
    reading = read(recipe.text)
    train, heldout = (_rows(recipe, documents, reading) for documents in reading.documents)
    torch.manual_seed(recipe.training.seed)
    try:
        model, objective = (
            started(recipe, *start, reading.tokenizer) if start
            else build(recipe, reading.tokenizer.special)
        )  # fmt: skip
    except RuntimeError as error:
        if "memory" not in str(error):
            raise
        raise ValueError(
            f"size={recipe.model.size!r} and settings {dict(recipe.model.settings)} were given; "
            "expected a model that fits into this machine's memory."
        ) from error
    if isinstance(model.config, BertConfig):
        _check_shape(recipe, model.config, reading.tokenizer.special)
    make_optimizer(model, 0.0, 0.0, name=recipe.training.optimizer)  # Muon refuses some models
    return Pretraining(recipe, reading, train, heldout[: recipe.text.heldout], model, objective)


def build(recipe: PretrainRecipe, special: SpecialIds) -> tuple[nn.Module, Objective]:
    """The model of a recipe with random initialisation, and its loss."""
    config = _config(recipe, special)
    if isinstance(config, ElmoConfig):
        return ElmoForBiLM(config), bilm_loss
    encoder_of = ENCODERS[recipe.model.family].encoder
    if recipe.objective.name == "rtd":
        assert isinstance(config, ElectraConfig)
        return electra_from(config, recipe.model.generator), electra_loss()
    if recipe.objective.name in PAIRS:
        loss = pretraining_loss if recipe.objective.name == "mlm+nsp" else albert_loss
        return BertForPreTraining(encoder_of(config, True)), loss
    encoder = encoder_of(config, False)
    if recipe.objective.name == "mlm+sbo":
        return BertForSpanPreTraining(encoder), spanbert_loss
    if isinstance(config, DebertaConfig):
        return deberta_masked_lm(encoder), masked_lm_loss
    return BertForMaskedLM(encoder), masked_lm_loss


def _checkpoint(recipe: PretrainRecipe) -> tuple[BertForMaskedLM, WordPiece]:
    """The checkpoint that a recipe starts with, and its vocabulary. Shape and settings are its own.

    Raises ValueError where it has no masked-word head as BERT's or fewer positions than the recipe
    reads, and where the recipe asks for another objective or shape."""
    part = recipe.model
    check_choice("objective (with a start)", recipe.objective.name, ("mlm",))
    result = load_pretrained(part.start)
    model, old = result.model, result.tokenizer
    if isinstance(model, BertForPreTraining):
        headless, model = model, BertForMaskedLM(model.encoder)
        model.mlm = headless.mlm
        model.encoder.pooler = None  # nobody reads it, and transformers' class has none
    kind, config = type(model).__name__, getattr(model, "config", None)
    for right, actual, expected in (
        (kind == "BertForMaskedLM", f"a {kind}", "a BertForMaskedLM"),
        (isinstance(old, WordPiece), f"a {type(old).__name__}", "a WordPiece vocabulary"),
        (isinstance(config, ENCODERS[part.family].config_class),
         f"a {type(config).__name__}, with family={part.family!r}", "its own family"),
        (part.size == ModelPart.size, f"with size={part.size!r}", "its own size. Leave it out"),
        (not part.settings, f"with settings {sorted(part.settings)}", "its own. Leave them out"),
    ):  # fmt: skip
        if not right:
            raise ValueError(f"start={part.start!r} was given, {actual}; expected {expected}.")
    assert isinstance(model, BertForMaskedLM) and isinstance(old, WordPiece)
    _check_length(recipe, model.config)
    return model, old


def started(
    recipe: PretrainRecipe, model: BertForMaskedLM, old: WordPiece, tokenizer: Any
) -> tuple[BertForMaskedLM, Objective]:
    """A checkpoint with the rows of the recipe's vocabulary, and the masked-word loss."""
    seed = recipe.training.seed
    return with_vocabulary(model, old, tokenizer, recipe.model.rows, seed), masked_lm_loss


def _config(recipe: PretrainRecipe, special: SpecialIds) -> Any:
    """The model's configuration: the published one, as the text needs it, and the settings."""
    part, text = recipe.model, recipe.text
    if part.family == "elmo":
        assert isinstance(text.vocabulary, int)  # read_words has looked
        sizes = {"vocab_size": min(text.vocabulary, special.vocab_size)}
        try:
            return ElmoConfig(**{**sizes, **part.settings})
        except TypeError as error:
            raise ValueError(
                f"settings {sorted(part.settings)} were given for elmo; expected those of "
                f"ElmoConfig: {', '.join(ElmoConfig.__dataclass_fields__)}."
            ) from error
    kind = ENCODERS[part.family].config_class
    settings = {
        "max_positions": text.length + _reserved(kind, special.pad),
        "vocab_size": special.vocab_size, "pad_token_id": special.pad,
        **({"type_vocab_size": 2} if recipe.objective.name in PAIRS else {}), **part.settings,
    }  # fmt: skip
    return published(part.family, part.size, kind, **settings)


def _reserved(kind: type[BertConfig], pad: int) -> int:
    """Rows of the position table that no text uses: RoBERTa's first ones."""
    probe = kind(pad_token_id=pad)
    return probe.max_positions - probe.longest_text


def _rows(recipe: PretrainRecipe, documents: Documents, reading: Reading) -> PackedSequences:
    special, length = reading.tokenizer.special, recipe.text.length
    if make := PAIRS.get(recipe.objective.name):
        return make(documents, special, length=length)
    return pack_documents(documents, special, length)


def _check(recipe: PretrainRecipe) -> None:
    family, objective = recipe.model.family, recipe.objective.name
    check_choice("family", family, FAMILIES)
    check_choice("objective", objective, OBJECTIVES)
    if OWN.get(family, objective) != objective or (family not in OWN and objective in OWN.values()):
        own = ", ".join(f"{member} with {name}" for member, name in OWN.items())
        raise ValueError(
            f"family {family!r} was given with objective {objective!r}; expected {own}; any "
            "other family needs another objective."
        )
    if objective == "mlm+sbo" and family not in ("bert", "roberta", "distilbert", "tinybert"):
        raise ValueError(
            f"family {family!r} was given with objective {objective!r}; expected bert, roberta, "
            "distilbert or tinybert, whose masked-word head is BERT's."
        )
    if objective in PAIRS and family not in POOLED:
        raise ValueError(
            f"family {family!r} was given with objective {objective!r}; expected one whose encoder "
            f"has a pooler, from which pairs are classified: {', '.join(POOLED)}."
        )
    for name, reason in _unread(recipe).items():
        raise ValueError(f"{name} was given; expected none: {reason}. Leave it out.")


def _unread(recipe: PretrainRecipe) -> dict[str, str]:
    """Settings that are not the usual ones and that a run of this kind would never read -> why."""
    model, objective, text = recipe.model, recipe.objective, recipe.text
    elmo, world = model.family == "elmo", text.source == "world"
    own, training = world and not elmo, recipe.training
    why = {name: (elmo and getattr(objective, name) != value, "an elmo masks nothing")
           for name, value in vars(ObjectivePart(objective.name)).items()} | {
        "generator": (objective.name != "rtd" and model.generator != ModelPart.generator,
                      "only an ELECTRA has one"),
        "rows": (not model.start and model.rows != ModelPart.rows, "only a start has them"),
        "added": (text.added > 0 and (elmo or world), "it is for WordPieces of a text"),
        "vocabulary": (own and text.vocabulary != 8_192, "the world has its own vocabulary"),
        "stories": (not world and text.stories != type(text).stories, "only the world has any"),
        "optimizer": (elmo and training.optimizer == "muon", "an elmo has no blocks for Muon"),
        "short_length": (not training.short_steps
                         and training.short_length != type(training).short_length,
                         "only short_steps have it"),
    }  # fmt: skip
    return {name: reason for name, (unread, reason) in why.items() if unread}


def _check_length(recipe: PretrainRecipe, config: BertConfig) -> None:
    """Raise ValueError where the model has fewer positions than a text has tokens."""
    if (length := recipe.text.length) > config.longest_text:
        raise ValueError(
            f"length={length} was given; expected at most {config.longest_text}, the positions "
            f"that the model has for text (max_positions={config.max_positions})."
        )


def _check_shape(recipe: PretrainRecipe, config: BertConfig, special: SpecialIds) -> None:
    """Raise ValueError where the model cannot read what the text becomes."""
    _check_length(recipe, config)
    pieces = special.vocab_size
    segments, pad = 2 if recipe.objective.name in PAIRS else 0, special.pad
    for name, right, expected in (
        ("vocab_size", config.vocab_size >= pieces, f"at least {pieces:,}, a row for each piece"),
        ("pad_token_id", config.pad_token_id == pad, f"{pad}, where the vocabulary has [PAD]"),
        ("type_vocab_size", config.type_vocab_size >= segments, f"at least {segments} segments"),
    ):
        if not right:
            raise ValueError(
                f"{name}={getattr(config, name)} was given; expected {expected}. Leave it out of "
                "the settings: it follows the text and the objective."
            )


def batches_of(ready: Pretraining) -> Callable[[int], Batch]:
    """Batches as a pure function of the step, masked as the recipe says; short sequences first, if
    it says so."""
    objective, training = ready.recipe.objective, ready.recipe.training
    vocabulary, word_of = ready.reading.tokenizer, None
    if isinstance(vocabulary, WordVocabulary):
        return bilm_batches(
            ready.train, ready.special, vocabulary.spelling, vocabulary.predicted,
            batch_size=training.batch_size, seed=training.seed,
        )  # fmt: skip
    if objective.units != "tokens":
        word_of = word_numbers(vocabulary, ready.train.input_ids, ready.train.attention_mask)
    masking: dict[str, Any] = {
        "rate": objective.rate, "mix": objective.mix, "seed": training.seed,
        "mask_copies": objective.mask_copies or None, "rule": objective.masking,
    }  # fmt: skip
    whole = pretraining_batches(
        ready.train, ready.special, batch_size=training.batch_size, word_of=word_of,
        max_words=3 if objective.units == "runs" else 1,
        spans={} if objective.units == "spans" else None,
        boundaries=objective.name == "mlm+sbo", **masking,
    )  # fmt: skip
    if not training.short_steps:
        return whole
    pieces = cut_sequences(ready.train, training.short_length)
    as_many_tokens = training.batch_size * ready.recipe.text.length // training.short_length
    short = pretraining_batches(pieces, ready.special, batch_size=as_many_tokens, **masking)
    change = training.short_steps * training.accumulate
    return lambda step: short(step) if step < change else whole(step - change)


def cut_sequences(sequences: PackedSequences, length: int) -> PackedSequences:
    """Sequences cut into pieces of `length` tokens; pieces of which less than half is text are left
    out. `length` must divide that of the sequences."""
    ids, mask = (x.reshape(-1, length) for x in (sequences.input_ids, sequences.attention_mask))
    full = mask.sum(dim=1) * 2 >= length
    return PackedSequences(ids[full], mask[full], torch.zeros_like(ids[full]))


# ---------------------------------------------------------------- while it runs


@dataclass
class TrainingLog:
    """A callback that writes a line of the log, measures on held-out text, and says on the terminal
    how far the run is."""

    ready: Pretraining
    path: Path
    distributed: Distributed = ONE_PROCESS  # every process calls it, one of them writes
    check: Callable[[], None] = lambda: None  # whether the folder is still this run's
    every: int = 1

    def __post_init__(self) -> None:
        self._began, self._first, self.step = time.perf_counter(), 0, 0
        self.notes: list[str] = []

    def memory(self) -> dict[str, Any]:
        """How many lines the log has, their hash, and what became of it."""
        lines = read_log(self.path)
        return {"lines": len(lines), "sha256": _hash_of(lines), "notes": self.notes}

    def remember(self, done: int, memory: Mapping[str, Any], losses: Mapping[str, Any]) -> None:
        """Keep the lines of the steps that are done; those of steps to be repeated go.

        A log that was lost, cut or changed is kept beside, and its losses are written again. Of a
        run that starts with a checkpoint, the log begins with what it is worth before step 1."""
        self._first, self.step, self.notes = done, done, memory.get("notes", [])
        if self.distributed.is_main_process:
            self._restore(done, memory, losses)
        recipe = self.ready.recipe
        if recipe.model.start and recipe.reports.evaluate_every and not done:
            self._write(0, measure(self.ready, self.ready.model, self.distributed))

    def _restore(self, done: int, memory: Mapping[str, Any], losses: Mapping[str, Any]) -> None:
        lines = read_log(self.path)[: memory.get("lines", 0)]
        if done and _hash_of(lines) != memory.get("sha256"):
            every = self.ready.recipe.reports.log_every or self.ready.recipe.training.steps
            lines = [{"step": step} | {name: round(v[step - 1], 5) for name, v in losses.items()}
                     for step in range(every, done + 1, every)]  # fmt: skip
            if self.path.is_file():
                write_atomic(f"{self.path}.changed", self.path.read_bytes())
            self.notes.append(
                f"{self.path.name} had been lost, cut or changed when the run went on after step "
                f"{done:,}: its losses were written again from {RUN}; speeds and held-out figures "
                "of the steps before are missing."
            )
            print(self.notes[-1], flush=True)
        write_atomic(self.path, "".join(json.dumps(line) + "\n" for line in lines))

    def __call__(self, report: Report) -> None:
        reports, at = self.ready.recipe.reports, (report.step, report.steps)
        self.step = report.step
        if reports.log_every and is_due(*at, reports.log_every):
            speed = {"tokens_per_second": report.tokens_per_second}
            self._write(report.step, {**report.losses, **speed})
            self._say(report)
        if reports.evaluate_every and is_due(*at, reports.evaluate_every):
            self._write(report.step, measure(self.ready, report.model, self.distributed))
            report.model.train()

    def _write(self, step: int, measures: dict[str, float]) -> None:
        if not self.distributed.is_main_process:
            return
        line = {"step": step, **{k: round(v, 5) for k, v in measures.items()}}
        self.check()
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if "heldout_accuracy" in measures:
            loss, accuracy = measures["heldout_loss"], measures["heldout_accuracy"]
            what = predicted(self.ready.recipe)
            print(f"\n  step {step:,}: held-out loss {loss:.3f}, "
                  f"{accuracy:.1%} of {what} found", flush=True)  # fmt: skip

    def _say(self, report: Report) -> None:
        if not self.distributed.is_main_process:
            return
        done = report.step - self._first
        left = (report.steps - report.step) * (time.perf_counter() - self._began) / done
        end = "\r" if sys.stdout.isatty() and report.step < report.steps else "\n"
        print(f"{report.step:,} of {report.steps:,} steps  loss {report.losses['total']:.3f}  "
              f"{report.tokens_per_second:,.0f} tokens/s  {_clock(left)} left",
              end=end, flush=True)  # fmt: skip


def predicted(recipe: PretrainRecipe) -> str:
    """What a recipe's model predicts, in words."""
    return "next and previous words" if recipe.model.family == "elmo" else "hidden tokens"


def _clock(seconds: float) -> str:
    minutes, hours = int(seconds // 60) % 60, int(seconds // 3600)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {int(seconds % 60):02} s"


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; what a killed run left of its last line is dropped."""
    result = []
    for line in path.read_bytes().split(b"\n")[:-1] if path.is_file() else []:
        with suppress(ValueError, RecursionError):
            result.append(json.loads(line))
    return [line for line in result if isinstance(line, dict)]


def _hash_of(lines: Sequence[Mapping[str, Any]]) -> str:
    """Of what a repeated run would write again: all but the speed."""
    kept = [{k: v for k, v in line.items() if k != "tokens_per_second"} for line in lines]
    return hashlib.sha256(json.dumps(kept).encode()).hexdigest()


def measure(
    ready: Pretraining, model: nn.Module, distributed: Distributed = ONE_PROCESS
) -> dict[str, float]:
    """Loss and accuracy on hidden tokens of held-out text, all of them replaced by [MASK]; of an
    ELMo, on the next and the previous word of every word.

    Of several processes all call this; the first process measures, the others find nothing. Raises
    FloatingPointError where the loss is no finite number."""
    model = whole_model(ready, model, distributed)
    if not distributed.is_main_process:
        return {}
    precision, vocabulary = ready.recipe.training.precision, ready.reading.tokenizer
    if isinstance(vocabulary, WordVocabulary):
        assert isinstance(model, ElmoForBiLM)
        loss, accuracy = evaluate_bilm(model, ready.heldout, vocabulary, precision=precision)
        check_finite("held-out loss", loss)
        return {"heldout_loss": loss, "heldout_accuracy": accuracy}
    reader: Any = model.generator if isinstance(model, Electra) else model
    scores = evaluate(reader, ready.heldout, ready.special, precision=precision)
    check_finite("held-out loss", scores.mlm_loss)
    result = {"heldout_loss": scores.mlm_loss, "heldout_accuracy": scores.masked_accuracy}
    if len(scores.pair_right):
        result["heldout_pairs"] = scores.pair_accuracy
    return result


def whole_model(ready: Pretraining, model: nn.Module, distributed: Distributed) -> nn.Module:
    """The model itself; on the first of several processes that keep parts of it, a whole copy."""
    if not distributed.sharded:
        return model
    weights = whole_weights(model, distributed.is_main_process)
    if not distributed.is_main_process:
        return model
    copy, _ = build(ready.recipe, ready.special)
    put_weights(copy, weights)
    return copy.to(distributed.device)


# ---------------------------------------------------------------- the command


def pretrain(
    recipe: PretrainRecipe, out: str | Path, distributed: Distributed = ONE_PROCESS
) -> dict[str, Any]:
    """Run a recipe to its end in the folder `out`, from where an earlier run of it stopped.

    Returns what results.json holds; of several processes, on the first. Raises ValueError where
    `out` holds the run of another recipe or of other text, or is in use by another process, and
    FileNotFoundError where it is deleted meanwhile."""
    training, path = recipe.training, Path(out)
    if not str(out) or (path.exists() and not path.is_dir()):
        raise ValueError(f"{str(out)!r} was given as the folder of a run; expected a folder.")
    check_size(
        "batch_size (a sequence for each process)", training.batch_size, distributed.world_size
    )
    precision = choose_precision(training.precision, distributed.device.type)
    check_sharded(precision, distributed, training.optimizer)
    ready = set_up(recipe)
    about, batches = ready.reading.about, batches_of(ready)
    hashes = [value for name, value in about.items() if name.endswith("hash")]
    distributed.check_same("The text", hashes)
    if distributed.is_main_process:
        refuse_foreign(path)
    with (
        lock_file(path / RUN) if distributed.is_main_process else nullcontext(lambda: None) as check
    ):
        if distributed.is_main_process:
            lock_output_folder(path, recipe, about)
            print(f"{recipe.name}: {count_parameters(ready.model):,} parameters, "
                  f"{len(ready.train):,} sequences of {recipe.text.length} tokens and "
                  f"{len(ready.heldout):,} held out, vocabulary of {ready.special.vocab_size:,}, "
                  f"{_where(distributed)}",
                  *ready.reading.notes, sep="\n  ", flush=True)  # fmt: skip
        training_log = TrainingLog(ready, path / LOG, distributed, check)
        with stage(lambda: f"at step {training_log.step:,}; {_next(path)}"):
            history = fit(
                ready.model, ready.objective, batches,
                steps=training.steps, learning_rate=training.learning_rate, warmup=training.warmup,
                released_schedule=training.released_schedule,
                weight_decay=training.weight_decay, clip=training.clip, betas=training.betas,
                optimizer=training.optimizer, decay=training.decay,
                accumulate=training.accumulate, precision=training.precision, seed=training.seed,
                callbacks=[training_log], checkpoint=path / RUN,
                checkpoint_every=recipe.reports.save_every,
                distributed=distributed,
            )  # fmt: skip
        check()
        with stage(lambda: f"while the results were written; {_next(path)}"):
            return finish(ready, path, history.precision, distributed, training_log.notes)


def _next(out: Path) -> str:
    """What the command of a stopped run does when it is given again."""
    if step := saved_step(out / RUN):
        return f"the same command goes on after step {step:,} ({out / RUN})"
    return "the same command goes on from the beginning: no step was saved yet"


def refuse_foreign(out: Path) -> None:
    """Raise ValueError where a folder holds what a run would write over, and no run began there."""
    written = (RUN, LOG, RESULTS, MODEL, OWN_MODEL, "vocab.txt", TOKENIZER_CONFIG)
    others = [name for name in written if (out / name).exists()]
    for obstacle in (no_file(out / name) for name in (*written, RECIPE_FILE) if name != MODEL):
        if obstacle:
            raise ValueError(f"{obstacle}. Choose another --out, or move it away.")
    if others and not (out / RECIPE_FILE).exists():
        raise ValueError(
            f"{out} holds {', '.join(others)} and no {RECIPE_FILE}; expected nothing that a run "
            "would write over. Choose another --out, or move it away."
        )


def lock_output_folder(out: Path, recipe: PretrainRecipe, about: dict[str, Any]) -> None:
    """Write down what is run in the folder; raise ValueError where something else was.

    How often a run reports may change; all else belongs to the run. What an older run did not
    write down of its text, such as a hash of what is held out, is believed to be as it is now, and
    written down."""
    requested = json.loads(json.dumps({"recipe": recipe.as_dict(), "text": about}))
    if not (out / RECIPE_FILE).exists():
        write_atomic(out / RECIPE_FILE, json.dumps(requested, indent=1) + "\n")
        return
    begun = _begun(out / RECIPE_FILE)
    parts = [name for name in requested["recipe"] if name != "reports"]
    then, now = ({n: of["recipe"].get(n) for n in parts} for of in (begun, requested))
    different, text = differences(then, now), requested["text"]
    usual = {name: True for name in ("lowercase", "strip_accents") if name in text}
    begun_text = {**usual, **begun["text"]}  # what was done before it was written down
    known = [name for name in begun_text if name not in ("source", "stories")]  # the recipe's, too
    then, now = ({name: of.get(name) for name in known} for of in (begun_text, text))
    different += differences(then, now, "the text that was read")
    if different:
        longer = _longer(out, recipe) if "training.steps:" in " ".join(different) else ""
        raise ValueError(
            f"{out} holds another run, which\n  " + "\n  ".join(different) + "\nexpected the same "
            "recipe and text, to go on with it. Choose another --out, or delete the folder."
            + longer
        )
    if unknown := sorted(text.keys() - begun_text.keys()):
        print(f"{out} was begun before {', '.join(unknown)} was recorded, so we cannot know if "
              "that part of the text has changed. From now on it is checked.")  # fmt: skip
        write_atomic(out / RECIPE_FILE, json.dumps({**begun, "text": text}, indent=1) + "\n")


def _longer(out: Path, recipe: PretrainRecipe) -> str:
    """How to train longer than a run's steps, at the last of which its learning rate is near 0."""
    how = "start again with more steps, in another --out"
    if recipe.objective.name == "mlm" and "deberta" not in recipe.model.family:
        how = (
            f"let it end, then give the same command with --start {out / MODEL} --out {out}-longer"
        )
    return (
        f"\nTo train longer, {how}: a run's learning rate falls to near 0 at its last step, and "
        "rises and falls again in the new one."
    )


def _begun(path: Path) -> dict[str, Any]:
    """What an earlier run wrote down. Raises ValueError for a file that none wrote."""
    try:
        begun = json_object(path.read_bytes(), path)
        if begun["recipe"].keys() and begun["text"].keys():
            return begun
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ValueError(
        f"{path} was not written by a run, or was cut short; expected a recipe and text. Choose "
        "another --out, or delete the folder."
    )


def _where(distributed: Distributed) -> str:
    count, shared = distributed.world_size, ", weights shared out" if distributed.sharded else ""
    processes = "one process" if count == 1 else f"{count} processes"
    return f"{processes} on {distributed.device.type}{shared}"


def finish(
    ready: Pretraining,
    out: Path,
    precision: str,
    distributed: Distributed = ONE_PROCESS,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the trained model and what it reached; returns the latter."""
    model = whole_model(ready, ready.model, distributed)
    if not distributed.is_main_process:
        return {}
    reached = measure(ready, model)
    stored = store(model.cpu(), ready.reading.tokenizer, out)
    results = {
        "recipe": ready.recipe.as_dict(),
        "text": ready.reading.about,
        **({"notes": notes} if (notes := [*ready.reading.notes, *notes]) else {}),
        "rows": len(ready.train),
        "heldout_rows": len(ready.heldout),
        "parameters": count_parameters(model),
        "reached": reached,
        "curve": read_log(out / LOG),
        "precision": precision,
        "processes": distributed.world_size,
        "device": distributed.device.type,
        "threads": torch.get_num_threads(),
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "model": stored,
    }
    write_atomic(out / RESULTS, json.dumps(results, indent=1) + "\n")
    return results


def store(model: nn.Module, tokenizer: Any, out: Path) -> str:
    """Write the model, weights in float32, where `load_pretrained` finds it; returns its name."""
    from course_lib.checkpoints import CheckpointError, save, save_folder
    from course_lib.checkpoints.elmo import save_elmo

    if isinstance(model, ElmoForBiLM):
        save_elmo(model, tokenizer, out / OWN_MODEL)
        return OWN_MODEL

    kept: Any = model.discriminator if isinstance(model, Electra) else model
    kept = model.masked_lm if isinstance(model, BertForSpanPreTraining) else kept
    try:
        save_folder(kept, out / MODEL, tokenizer)
    except CheckpointError:  # a model that transformers does not have
        save(kept, out / OWN_MODEL)
        tokenizer.save(out / "vocab.txt")
        form = {theirs: tokenizer.normalisation[ours] for ours, theirs in SETTINGS.items()}
        write_atomic(out / TOKENIZER_CONFIG, json.dumps(form, indent=1) + "\n")
        return OWN_MODEL
    return MODEL


def main(arguments: Sequence[str] | None = None) -> None:
    """The command. Ctrl-C and SIGTERM end it with one line, and the status 130 or 143."""
    with one_line():
        _main(arguments)


def _main(arguments: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.train.pretrain",
        description="Pre-train a model by a recipe file.",
    )
    parser.add_argument("recipe", help="a TOML file, such as data/recipes/course_bert.toml")
    parser.add_argument("--out", required=True, help="folder for checkpoint, log and results")
    parser.add_argument("--steps", type=int, help="instead of the recipe's number of steps")
    parser.add_argument(
        "--start", help="a checkpoint, such as another run's model/, instead of the recipe's model"
    )
    parser.add_argument("--device", choices=DEVICES, default="auto", help="auto: a GPU, if any")
    parser.add_argument(
        "--fsdp", action="store_true",
        help="under torchrun, for large models: each process keeps a part of the weights",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        recipe = read_recipe(options.recipe)
        if options.steps is not None:
            recipe = replace(recipe, training=replace(recipe.training, steps=options.steps))
        if options.start is not None:
            recipe = with_start(recipe, options.start)
        distributed = join(options.device, options.fsdp)
        results = pretrain(recipe, options.out, distributed)
    except (ValueError, OSError, FloatingPointError) as error:
        nameless = isinstance(error, OSError) and error.errno and not error.filename
        sys.exit(f"pretrain: {error}" + f" (in {options.out})" * bool(nameless))
    distributed.shut_down()
    if not distributed.is_main_process:
        return
    reached = results["reached"]
    print(f"held-out: {reached['heldout_accuracy']:.1%} of {predicted(recipe)} found, loss "
          f"{reached['heldout_loss']:.3f} nats; in {options.out}/{results['model']}")  # fmt: skip


if __name__ == "__main__":
    main()
