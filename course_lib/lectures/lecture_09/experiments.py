"""Lecture 09's experiments. `09_masks`: one BERT of the micro-world, pre-trained with other things
masked together, with the span-boundary objective and without (SpanBERT's Tables 6 and 7 in small).
`09_fusion` is in knowledge.py, `09_chinese` in chinese.py.

Every word of the world is one token, so masking whole words is masking tokens. Its names of several
words are those of places: "dragon inn", "little maple market"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.checkpoints import load, save
from course_lib.encoder import count_parameters
from course_lib.files import cache_dir
from course_lib.heads import BertForMaskedLM, BertForSpanPreTraining
from course_lib.objectives.sequences import PackedSequences
from course_lib.objectives.span_boundary import (
    MaskedSpans,
    boundary_targets,
    mask_spans,
)
from course_lib.teaching import results
from course_lib.teaching.experiments import Experiment, Run, Stories, results_of
from course_lib.teaching.results import kept, last_losses
from course_lib.text.features import (
    QuestionSequences,
    TaggedSequences,
    question_sequences,
    tagged_sequences,
)
from course_lib.text.tasks import (
    LabelledWords,
    Pronoun,
    hard_pronouns,
    pronoun_questions,
    slot_categories,
    story_questions,
    story_tags,
)
from course_lib.text.units import story_units
from course_lib.text.wordpiece import word_numbers
from course_lib.text.world import MicroWorld, Story, story_sequences
from course_lib.train.finetuning import finetune, task_score
from course_lib.train.flops import step_flops
from course_lib.train.metrics import HIDDEN
from course_lib.train.probing import text_probe, word_probe

from .chinese import CHINESE
from .knowledge import FUSION, LABELS
from .recipes import (
    FACT_SLOTS,
    LENGTH,
    LOOK_EVERY,
    PRECISION,
    MaskRecipe,
    TrainingText,
    all_right,
    batches_of,
    randomly_initialised,
    right_at,
    train_on_material,
)
from .recipes import train_masks as train_masks  # page 09

STORIES, UNSEEN, HELDOUT = 10_000, 3_000, 600
LABELLED = 400  # texts that train the unstated-fact probe
QUESTIONS, SENTENCES, TUNED_STEPS = 400, 100, 100  # of fine-tuning
FEW_SENTENCES, TUNED_SEEDS = 20, range(3)  # of fine-tuning once more, from the same weights
TESTED_QUESTIONS, TESTED_SENTENCES, STRIDE, SENTENCE_LENGTH = 300, 1_000, 24, 32
PRONOUNS_EACH, TESTED_PRONOUNS = 10, 72  # of each of four kinds, see hard_pronouns
SEEDS = range(2)


RECIPES = {
    "tokens": MaskRecipe(),
    "tokens + SBO": MaskRecipe(sbo=True),
    "phrases": MaskRecipe("phrases"),
    "names": MaskRecipe("names"),
    "spans": MaskRecipe("spans"),
    "spans + SBO": MaskRecipe("spans", sbo=True),
}


LONGER = {name: replace(RECIPES[name], steps=6_000) for name in ("spans", "spans + SBO")}


@dataclass(frozen=True)
class Pronouns:
    """Questions whose a pronoun is, to learn from; and to be tested with, for hero and guest of the
    "same" sex and of "different" ones."""

    learned: QuestionSequences
    tested: Mapping[str, QuestionSequences]


class MaskMaterial(Stories):
    """What the models read, and what they are measured with."""

    @cached_property
    def training(self) -> TrainingText:
        return training_text(self.world, self.stories)

    @cached_property
    def spans(self) -> MaskedSpans:
        """Of the held-out stories."""
        words = _words(self.world, self.heldout)
        return mask_spans(self.heldout, self.world.special, words, mix=HIDDEN, seed=1)

    @cached_property
    def names(self) -> tuple[Tensor, Tensor]:
        """Positions of masked names, and which name each is of."""
        return repeated_names(self.unseen[: self.heldout_count])

    @cached_property
    def fact_positions(self) -> Tensor:
        """Positions of masked words, one a story."""
        return fact_words(self.unseen[: self.heldout_count])

    @cached_property
    def slots(self) -> LabelledWords:
        return slot_categories(self.world, self.unseen[:300], self.length)

    @cached_property
    def questions(self) -> tuple[QuestionSequences, QuestionSequences]:
        parts = self.stories[:QUESTIONS], self.unseen[-TESTED_QUESTIONS:]
        learned, tested = (_questions(self.world, part) for part in parts)
        return learned, tested

    @cached_property
    def sentences(self) -> tuple[TaggedSequences, TaggedSequences]:
        parts = (self.stories, SENTENCES), (self.unseen, TESTED_SENTENCES)
        learned, tested = (_sentences(self.world, part, count) for part, count in parts)
        return learned, tested

    @cached_property
    def pronouns(self) -> Pronouns:
        return _pronouns(self.world, self.stories, self.unseen)


def prepare() -> MaskMaterial:
    """The stories, their units, and the tasks that are made of them."""
    return MaskMaterial(STORIES, HELDOUT, UNSEEN, LABELLED, LENGTH)


def training_text(world: MicroWorld, stories: Sequence[Story]) -> TrainingText:
    """Stories as the models read them, one a sequence, with their units."""
    train = story_sequences(world, stories, LENGTH)
    return TrainingText(world, train, story_units(world, stories, train))


def _words(world: MicroWorld, sequences: PackedSequences) -> Tensor:
    return word_numbers(world.tokenizer, sequences.input_ids, sequences.attention_mask)


def repeated_names(stories: Sequence[Story]) -> tuple[Tensor, Tensor]:
    """The last name of several words of each story that also stands elsewhere in it: positions of
    its words (K,), n·T + t, and the number of the name (K,)."""
    at: list[int] = []
    of: list[int] = []
    for n, story in enumerate(stories):
        traces = [trace for line in story.trace for trace in line]
        places = [t for t, x in enumerate(traces, 1) if (x.slot, x.kind) == ("site", "repeated")]
        if places:
            size = len(next(x.entity for x in traces if x.slot == "site").split())
            at += [n * LENGTH + t for t in places[-size:]]
            of += [n] * size
    return torch.tensor(at), torch.tensor(of).unique(return_inverse=True)[1]


def fact_words(stories: Sequence[Story]) -> Tensor:
    """One word of each story that a fact of the world tells from its other words, such as the city
    of its hero: positions (M,), n·T + t. Stories without one are left out."""
    at = []
    for n, story in enumerate(stories):
        traces = enumerate((trace for line in story.trace for trace in line), start=1)
        places = [t for t, x in traces if x.kind == "fact" and x.slot in FACT_SLOTS]
        at += [n * LENGTH + t for t in places[-1:]]
    return torch.tensor(at)


def _questions(world: MicroWorld, stories: Sequence[Story]) -> QuestionSequences:
    return question_sequences(story_questions(stories), world.tokenizer, LENGTH, STRIDE)


def _pronouns(world: MicroWorld, training: Sequence[Story], unseen: Sequence[Story]) -> Pronouns:
    def sequences_of(stories: Sequence[Story], pronouns: Sequence[Pronoun]) -> QuestionSequences:
        questions = pronoun_questions(stories, pronouns)
        return question_sequences(questions, world.tokenizer, LENGTH, STRIDE)

    hard = hard_pronouns(unseen, TESTED_PRONOUNS)
    return Pronouns(
        sequences_of(training, hard_pronouns(training, PRONOUNS_EACH)),
        {
            kind: sequences_of(unseen, [p for p in hard if p.same_sex == same])
            for kind, same in (("same", True), ("different", False))
        },
    )


def _sentences(world: MicroWorld, stories: Sequence[Story], count: int) -> TaggedSequences:
    """`count` of the first stories' sentences, from all places of a story."""
    sentences = story_tags(stories[:count])
    sentences = sentences[:: len(sentences) // count][:count]
    return tagged_sequences(sentences, "entities", world.tokenizer, SENTENCE_LENGTH)


# ---------------------------------------------------------------- training


def masked_lm_of(model: nn.Module) -> BertForMaskedLM:
    """What is kept after pre-training: the span-boundary head is left behind."""
    kept_model = getattr(model, "masked_lm", model)
    assert isinstance(kept_model, BertForMaskedLM)
    return kept_model


# ---------------------------------------------------------------- measuring


def span_scores(model: BertForMaskedLM, material: MaskMaterial) -> dict[str, Any]:
    """Of the masked spans of the held-out stories: tokens right, spans right in all their tokens,
    and those by the span's length as [length, spans, right]."""
    masked = material.spans
    right = right_at(model, material.heldout, masked.predict_at, material.world.special.mask)
    _, of, lengths = masked.begins.unique_consecutive(return_inverse=True, return_counts=True)
    whole = all_right(right, of)
    by_length = [
        [n, int((lengths == n).sum()), int(whole[lengths == n].sum())]
        for n in lengths.unique().tolist()
    ]
    return {
        "span_token_accuracy": right.float().mean().item(),
        "span_exact": whole.float().mean().item(),
        "by_length": by_length,
    }


def look_at(model: nn.Module, material: MaskMaterial) -> dict[str, Any]:
    """Masked-token and whole-span accuracy on held-out stories: what the curve shows."""
    kept_model = masked_lm_of(model)
    accuracy = material.masked_scores(kept_model)["masked_accuracy"]
    return {"masked_accuracy": accuracy, **span_scores(kept_model, material)}


@torch.no_grad()
def boundary_accuracy(model: BertForSpanPreTraining, material: MaskMaterial) -> float:
    """Of the tokens in masked spans, how many the span-boundary head gets right."""
    sequences, masked = material.heldout, material.spans
    boundaries, true = boundary_targets(masked, sequences, material.world.special)
    inputs = masked.input_ids, sequences.attention_mask, sequences.token_type_ids, masked.predict_at
    logits = model(*inputs, boundaries=boundaries).sbo_logits
    return (logits.argmax(-1) == true).float().mean().item()


def measure(model: nn.Module, material: MaskMaterial, seed: int) -> dict[str, Any]:
    """All measures: words in place (masked-word head), probes of the frozen encoder, and two tasks
    after fine-tuning on few examples."""
    kept_model, mask = masked_lm_of(model.eval()), material.world.special.mask
    encoder, sequences = kept_model.encoder, material.heldout
    at, of = material.names
    scores = look_at(model, material)
    scores["name_exact"] = (
        all_right(right_at(kept_model, sequences, at, mask), of).float().mean().item()
    )
    scores["fact_accuracy"] = (
        right_at(kept_model, sequences, material.fact_positions, mask).float().mean().item()
    )
    scores["slot_probe"] = word_probe(encoder, material.slots)
    scores["unstated_probe"] = text_probe(encoder, material.facts, material.facts_heldout)
    for kind, words in material.swapped.items():
        scores[f"swapped_{kind}"] = word_probe(encoder, words)
    for name, (train, test) in (
        ("answer_f1", material.questions),
        ("entity_f1", material.sentences),
    ):
        tuned = finetune(encoder, train, steps=TUNED_STEPS, seed=seed, precision=PRECISION)
        scores[name] = task_score(tuned, test)
    if isinstance(model, BertForSpanPreTraining):
        scores["boundary_accuracy"] = boundary_accuracy(model, material)
    return scores


def look(run: Run) -> dict[str, Any]:
    """What the curve shows."""
    seen = look_at(run.model, run.material)
    seen.pop("by_length")
    return seen


def reached(run: Run) -> dict[str, Any]:
    """What a run reached, and its losses. The weights are kept, so that a measure can be added
    later."""
    save(masked_lm_of(run.model), _weights(run.recipe, run.seed))
    about = {"parameters": count_parameters(run.model), **last_losses(run.history)}
    return {**about, **measure(run.model, run.material, run.seed)}


def _weights(recipe: MaskRecipe, seed: int) -> Path:
    run = f"{recipe.units}-{recipe.sbo}-{recipe.num_layers}-{recipe.hidden_size}-{recipe.steps}"
    return cache_dir("results", "09-masks") / f"{run}-{seed}.safetensors"


def model_of(recipe: MaskRecipe, seed: int) -> BertForMaskedLM:
    """The trained model of a recipe, from the cache, frozen."""
    model = load(_weights(recipe, seed))
    assert isinstance(model, BertForMaskedLM)
    return model.requires_grad_(False).eval()


def untrained(material: MaskMaterial, seed: int) -> dict[str, Any]:
    """The same measures at random initialisation: what any pre-training must beat."""
    recipe = RECIPES["tokens"]
    settings = {"seed": seed, **asdict(recipe)}
    model, _ = randomly_initialised(recipe, material.world, seed)

    def run() -> dict[str, Any]:
        return {"seed": seed, **measure(model, material, seed)}

    scores = kept("09-masks-untrained", settings, material.world, run)
    return {
        **scores,
        **tuned_again("untrained", model, settings, material),
        **whose("untrained", model, settings, material),
    }


def tuned_again(
    name: str, model: nn.Module, settings: Mapping[str, Any], material: MaskMaterial
) -> dict[str, Any]:
    """Fine-tuning with several seeds from the same weights, so that its own spread is seen: answers
    as in `measure`, and entities from a few sentences. Read from the cache where it is done."""
    encoder = masked_lm_of(model).encoder
    few = material.sentences[0][:: SENTENCES // FEW_SENTENCES]
    tasks = {
        "answers": material.questions,
        "entities_few": (few, material.sentences[1]),
    }

    def score(train: Any, test: Any, seed: int) -> float:
        tuned = finetune(encoder, train, steps=TUNED_STEPS, seed=seed, precision=PRECISION)
        return task_score(tuned, test)

    def run() -> dict[str, Any]:
        return {
            task: [score(train, test, seed) for seed in TUNED_SEEDS]
            for task, (train, test) in tasks.items()
        }

    scores = kept(f"09-tuned-{name}", dict(settings), material.world, run)
    return {**scores, **{f"{task}_mean": mean(values) for task, values in scores.items()}}


def whose(
    name: str, model: nn.Module, settings: Mapping[str, Any], material: MaskMaterial
) -> dict[str, Any]:
    """Coreference of she and he after fine-tuning on a few questions, several seeds from the same
    weights: F1 of the name. Read from the cache where it is done."""
    encoder, pronouns = masked_lm_of(model).encoder, material.pronouns
    counts = {"learned": PRONOUNS_EACH, "tested": TESTED_PRONOUNS}

    def run() -> dict[str, Any]:
        tuned = [
            finetune(encoder, pronouns.learned, steps=TUNED_STEPS, seed=seed, precision=PRECISION)
            for seed in TUNED_SEEDS
        ]
        return {f"whose_{kind}": [task_score(one, questions) for one in tuned]
                for kind, questions in pronouns.tested.items()}  # fmt: skip

    scores = kept(f"09-whose-{name}", {**settings, **counts}, material.world, run)
    return {**scores, **{f"{kind}_mean": mean(values) for kind, values in scores.items()}}


def whole_run(recipe: MaskRecipe, material: MaskMaterial, seed: int) -> dict[str, Any]:
    """A run, its weights fine-tuned again, and its pronouns."""
    result = LONGER_RUNS.one_run(recipe, material, seed)
    model, settings = model_of(recipe, seed), {"seed": seed, **asdict(recipe)}
    return {
        **result,
        **tuned_again(recipe.units, model, settings, material),
        **whose(recipe.units, model, settings, material),
    }


def flops_a_step(recipe: MaskRecipe, training: TrainingText) -> int:
    """FLOPs of a training step, mean of five batches."""
    model, loss = randomly_initialised(recipe, training.world, 0)
    batches = batches_of(recipe, training, 0)
    return step_flops(model, loss, *map(batches, range(5)))


# Is it only later that spans learn to copy, with the span-boundary objective and without?
LONGER_RUNS = Experiment(
    "09_longer", LONGER, range(1), prepare, train_on_material, reached, label="09-masks-{units}",
    files=lambda recipe, seed: [_weights(recipe, seed)], curve=(LOOK_EVERY, look),
)  # fmt: skip
MASKS = replace(
    LONGER_RUNS, name="09_masks", recipes=RECIPES, seeds=SEEDS, run=whole_run,
    replayed=RECIPES["spans + SBO"],
    more={
        "flops_a_step": lambda material: {
            name: flops_a_step(recipe, material.training) for name, recipe in RECIPES.items()
        },
        "untrained": lambda material: [untrained(material, seed) for seed in SEEDS],
        "tuned_steps": TUNED_STEPS,
    },
)  # fmt: skip


MEASURES = (
    "masked_accuracy", "span_token_accuracy", "span_exact", "name_exact", "fact_accuracy",
    "slot_probe", "unstated_probe", "swapped_repeated", "swapped_fact", "answer_f1", "entity_f1",
    "character", "inside", "word_exact", "person_exact", "place_exact", "fact_exact",
    "answers_mean", "entities_few_mean", "whose_same_mean", "whose_different_mean",
    *(f"{t} {n}" for t, of in LABELS.items() for n in of),
)  # fmt: skip
summary = partial(results.summary, measures=MEASURES)
EXPERIMENTS = (MASKS, LONGER_RUNS, FUSION, CHINESE)
RESULTS = results_of(EXPERIMENTS)
