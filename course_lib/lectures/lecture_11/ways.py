"""`11_ways`: four ways to a domain model, at equal FLOPs, and what each forgets.

As it is; pre-training continued (BioBERT); from random initialisation with a vocabulary of its own
(Legal-BERT-SC, SciBERT); continued with other rows (FinBERT's FinVocab is nearest). Every way is a
recipe in data/recipes/, of which the controls change one line. Measured on the way: whole hidden
words of unseen sentences, of the domain and of general documentation, alike for every vocabulary;
at the end: the domain's tasks, fine-tuned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from course_lib.checkpoints import load_pretrained
from course_lib.files import data_path
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import Batch
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import REPLAYED, kept
from course_lib.text.documentation import documentation_slice
from course_lib.text.domains import domain
from course_lib.text.packing import pack_documents
from course_lib.text.wordpiece import WordPiece, fast_wordpiece
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import LOSSES, head_on, labelled_batches, task_score
from course_lib.train.flops import step_flops
from course_lib.train.loop import Report, fit
from course_lib.train.pretrain import Pretraining, batches_of, set_up
from course_lib.train.pretrain_recipe import PretrainRecipe, read_recipe

from .tasks import LENGTH, TASKS, Texts, as_task, cut_by_rule, short_sentences, title_texts
from .whole_words import words_right

PRECISION, SEEDS = "float32", range(3)
BUDGET = 1_000  # steps of the way that keeps model and vocabulary; the others get its FLOPs
MEASUREMENTS = 6  # on the way
GENERAL = "course-bert"
TUNED = {"chapters": 300, "added words": 200, "licences": 200}  # steps of fine-tuning


@dataclass(frozen=True)
class WayRecipe:
    """file: of data/recipes/; rows: what a control changes in it; replayed: one batch in so many is
    general text; times: the budget; 0: nothing is pre-trained."""

    file: str = "medicine_continued"
    rows: str = "mean"
    replayed: int = 0
    times: float = 1.0


@dataclass(frozen=True)
class RatedWay(WayRecipe):
    """learning_rate: of pre-training. task_text: the titles of the task are read, nothing else."""

    learning_rate: float = 1e-3
    task_text: bool = False


MEDICINE = {
    "as it is": WayRecipe(times=0),
    "continued": WayRecipe(),
    "continued, general text mixed in": WayRecipe(replayed=4),
    "own vocabulary, afresh": WayRecipe("medicine_afresh"),
    "rows added, means": WayRecipe("medicine_added"),
    "rows added, random": WayRecipe("medicine_added", rows="random"),
    "rows replaced, means": WayRecipe("medicine_replaced"),
    "random initialisation": WayRecipe("medicine_afresh", times=0),
}
LONG = {
    "own vocabulary, afresh, longer": WayRecipe("medicine_afresh", times=3),
    "continued, longer": WayRecipe(times=3),
}
LAW = {
    "as it is": WayRecipe("law_continued", times=0),
    "continued": WayRecipe("law_continued", times=0.5),
    "rows replaced, means": WayRecipe("law_replaced", times=0.5),
    "random initialisation": WayRecipe("law_afresh", times=0),
}
ABOUT = {"medicine": ("chapters", "added words"), "law": ("licences",)}


def recipe_of(way: WayRecipe, seed: int) -> PretrainRecipe:
    """The file of a way with what the way changes."""
    recipe = read_recipe(data_path("recipes", f"{way.file}.toml"))
    rate = getattr(way, "learning_rate", recipe.training.learning_rate)
    return replace(
        recipe, model=replace(recipe.model, rows=way.rows),
        training=replace(recipe.training, seed=seed, precision=PRECISION, learning_rate=rate),
    )  # fmt: skip


@lru_cache(maxsize=1)
def ready(way: WayRecipe, seed: int) -> Pretraining:
    """Text, vocabulary and model of a way."""
    return set_up(recipe_of(way, seed))


def batches_for(way: WayRecipe, seed: int) -> Callable[[int], Batch]:
    """The way's batches; every `replayed`-th one of general documentation."""
    prepared = ready(way, seed)
    if getattr(way, "task_text", False):
        return batches_of_text(prepared, [title_texts(seed)], seed)
    own = batches_of(prepared)
    if not way.replayed:
        return own
    general = batches_of_text(prepared, documentation_slice(20_000).sentences(), seed)
    every = way.replayed
    return lambda step: own(step - step // every) if step % every else general(step // every)


def batches_of_text(
    prepared: Pretraining, documents: Iterable[Sequence[str]], seed: int
) -> Callable[[int], Batch]:
    """Batches of other text, packed as the recipe packs its own."""
    fast = fast_wordpiece(prepared.reading.tokenizer)  # type: ignore[arg-type]
    cut = [
        [e.ids for e in fast.encode_batch(list(d), add_special_tokens=False) if e.ids]
        for d in documents
    ]
    recipe = prepared.recipe
    rows = pack_documents([d for d in cut if d], prepared.special, recipe.text.length)
    return pretraining_batches(
        rows, prepared.special, batch_size=recipe.training.batch_size, seed=seed
    )


@lru_cache(maxsize=16)
def flops_a_step(way: WayRecipe) -> int:
    """Of a way, the mean of five batches."""
    prepared, batches = ready(way, 0), batches_for(way, 0)
    return step_flops(prepared.model, prepared.objective, *map(batches, range(1, 6)))


def steps_of(way: WayRecipe) -> int:
    """As many as cost what the continued model's BUDGET steps cost."""
    if not way.times:
        return 0
    reference = flops_a_step(WayRecipe(f"{way.file.split('_')[0]}_continued"))
    return round(way.times * BUDGET * reference / flops_a_step(way))


def pretrain(
    way: WayRecipe, seed: int, steps: int, callbacks: Sequence[Any] = (), precision: str = PRECISION
) -> list[float]:
    """Train the way's model, which `ready` holds; its losses."""
    if not steps:
        return []
    training, prepared = recipe_of(way, seed).training, ready(way, seed)
    history = fit(
        prepared.model, prepared.objective, batches_for(way, seed), steps=steps, seed=seed,
        learning_rate=training.learning_rate, weight_decay=training.weight_decay,
        betas=training.betas, precision=precision, callbacks=callbacks,
    )  # fmt: skip
    return history.losses["total"]


def hidden_words(model: BertForMaskedLM, tokenizer: WordPiece, field: str) -> dict[str, float]:
    """Hidden whole words found, in unseen sentences of the domain and of general text."""
    return {
        name: words_right(model, tokenizer, short_sentences(name)) for name in (field, "general")
    }


def tuned(model: Any, tokenizer: WordPiece, task: str, seed: int) -> float:
    """The test score of the encoder fine-tuned: accuracy, or F1 of spans."""
    texts = TASKS[task](seed=seed)
    train = as_task(texts, "train", tokenizer, LENGTH[task])
    head = head_on(model.encoder, train, seed)
    fit(
        head, LOSSES[type(train)], labelled_batches(train, 16, seed), steps=TUNED[task],
        learning_rate=3e-4, seed=seed, precision=PRECISION,
    )  # fmt: skip
    return task_score(head, as_task(texts, "test", tokenizer, LENGTH[task]))


def one_run(way: WayRecipe, seed: int) -> dict[str, Any]:
    """A way from its start to the scores of its tasks. Finished runs are read from the cache."""
    field, weights = way.file.split("_")[0], load_pretrained(GENERAL).sha256

    def run() -> dict[str, Any]:
        ready.cache_clear()
        steps, prepared = steps_of(way), ready(way, seed)
        tokenizer: Any = prepared.reading.tokenizer
        curve = [{"step": 0, **hidden_words(prepared.model, tokenizer, field)}]  # type: ignore[arg-type]

        def look(report: Report) -> None:
            if report.step % max(steps // MEASUREMENTS, 1) == 0:
                curve.append({"step": report.step, **hidden_words(report.model, tokenizer, field)})  # type: ignore[arg-type]

        pretrain(way, seed, steps, [look])
        prepared.model.eval()
        last = hidden_words(prepared.model, tokenizer, field)  # type: ignore[arg-type]
        scores = {task: tuned(prepared.model, tokenizer, task, seed) for task in ABOUT[field]}
        return {
            "seed": seed, "steps": steps, "flops_a_step": flops_a_step(way),
            "vocabulary": len(tokenizer), "sequences": len(prepared.train),
            "in domain": last[field], "general": last["general"], **scores, "curve": curve,
        }  # fmt: skip

    about = {"seed": seed, **asdict(way), "weights": weights, "text": domain(field).hash,
             "budget": BUDGET}  # fmt: skip
    return kept(f"11-{field}", about, MicroWorld.load(), run)


def without_encoder(task: str, seed: int) -> float:
    """What counting words, or a rule for tags, finds from the same labelled texts."""
    from course_lib.train.baselines import label_accuracy
    from course_lib.train.span_metrics import span_scores

    texts: Texts = TASKS[task](seed=seed)
    if task == "added words":
        return span_scores(
            [s.entities for s in texts.test], [cut_by_rule(s) for s in texts.test]
        ).f1
    return label_accuracy(texts.train, texts.test, "words")


def replay(way: WayRecipe) -> list[float]:
    """The first losses of a way, seed 0: alike on every machine to a few digits."""
    ready.cache_clear()
    return pretrain(way, 0, REPLAYED)


def of_field(field: str, ways: Mapping[str, WayRecipe]) -> Experiment:
    """A domain's file."""
    return Experiment(
        f"11_{field}", ways, SEEDS, run=lambda way, _, seed: one_run(way, seed),
        losses=lambda _: replay(ways["continued"]),
        more={
            "text": lambda _: about_text(field), "tuned": TUNED,
            "without_encoder": lambda _: {
                task: [without_encoder(task, seed) for seed in SEEDS] for task in ABOUT[field]
            },
        },
    )  # fmt: skip


def about_text(name: str) -> dict[str, Any]:
    """What was read, and what it was split into."""
    read = domain(name)
    sides = {side: read.corpus(side) for side in ("train", "heldout")}
    return {
        "version": read.version, "licence": read.licence, "hash": read.hash,
        "documents": {side: len(corpus.documents) for side, corpus in sides.items()},
        "words": {side: corpus.words for side, corpus in sides.items()},
    }  # fmt: skip


EXPERIMENTS = (of_field("medicine", MEDICINE | LONG), of_field("law", LAW))
