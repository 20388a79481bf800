"""`11_labels`: does reading on help a task that words alone cannot answer, from 20 labels to 500?

And what do hidden words cost in bits a character? The ways are those of ways.py, and the task's own
titles (TAPT) and other rates of pre-training; trained in bfloat16. Each finished run is kept."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from course_lib.checkpoints import load_pretrained
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept
from course_lib.text.domains import domain
from course_lib.text.world import MicroWorld
from course_lib.train.baselines import label_accuracy
from course_lib.train.finetuning import LOSSES, head_on, labelled_batches, task_score
from course_lib.train.loop import fit

from .tasks import LENGTH, Texts, as_task, chapters, short_sentences, word_order
from .ways import GENERAL, SEEDS, RatedWay, pretrain, ready, steps_of
from .whole_words import bits_a_character, words_right

PRECISION, LABELS, BATCH = "bfloat16", (20, 100, 500), 20
RATE = 1e-3  # of fine-tuning: the best of those tried on the model as it is
STEPS = {"chapters": 300, "word order": 150}
TRIED = (3e-4, RATE, 3e-3)
TASK_TEXT = 0.2  # of the budget, on the 500 titles of the task

AT_EACH_RATE = {  # of fine-tuning; the others at RATE alone
    "random initialisation": RatedWay(times=0, file="medicine_afresh"),
    "as it is": RatedWay(times=0),
    "continued": RatedWay(),
}
LABELLED = AT_EACH_RATE | {  # about 3 minutes of one core a seed each
    "task text": RatedWay(times=TASK_TEXT, task_text=True),
    "continued, rate 3e-4": RatedWay(learning_rate=3e-4),
    "continued, rate 1e-4": RatedWay(learning_rate=1e-4),
}


def tuned(encoder: Any, tokenizer: Any, texts: Any, task: str, rate: float, seed: int) -> float:
    """The test accuracy of a copy of the encoder, fine-tuned."""
    train, test = (as_task(texts, side, tokenizer, LENGTH[task]) for side in ("train", "test"))
    head = head_on(encoder, train, seed)
    batches = labelled_batches(train, min(BATCH, len(texts.train)), seed)
    fit(
        head, LOSSES[type(train)], batches, steps=STEPS[task], learning_rate=rate, seed=seed,
        precision=PRECISION,
    )  # fmt: skip
    return task_score(head, test)


def texts_of(seed: int) -> dict[str, Texts]:
    """The tasks: the chapter, and the order of words by the number of labels."""
    orders = {f"word order, {n}": word_order(n, seed=seed) for n in LABELS}
    return {"chapters": chapters(seed=seed), **orders}


def scores_of(encoder: Any, tokenizer: Any, seed: int, way: RatedWay) -> dict[str, float]:
    """Accuracy of the chapter, and of the order of words by the number of labels, at each rate of
    fine-tuning that the way is tried at."""
    return {
        f"{name}, rate {rate:g}": tuned(encoder, tokenizer, of, task, rate, seed)
        for name, of in texts_of(seed).items()
        for task in [name.split(",")[0]]
        for rate in (TRIED if way in AT_EACH_RATE.values() else (RATE,))
    }


def one_run(way: RatedWay, seed: int) -> dict[str, Any]:
    """A way from its start to what it knows, and to its tasks. Finished runs are kept."""

    def run() -> dict[str, Any]:
        ready.cache_clear()
        steps, prepared = steps_of(way), ready(way, seed)
        pretrain(way, seed, steps, precision=PRECISION)
        model: Any = prepared.model.eval()
        tokenizer: Any = prepared.reading.tokenizer
        scores: dict[str, Any] = {"seed": seed, "steps": steps}
        for name, field in (("in domain", "medicine"), ("general", "general")):
            sentences = short_sentences(field)
            scores[name] = words_right(model, tokenizer, sentences)
            scores[f"{name}, bits"] = bits_a_character(model, tokenizer, sentences)
        return scores | scores_of(model.encoder, tokenizer, seed, way)

    about = {"seed": seed, **asdict(way), "weights": load_pretrained(GENERAL).sha256,
             "text": domain("medicine").hash, "tried": TRIED}  # fmt: skip
    return kept("11-labels", about, MicroWorld.load(), run)


def counted(seed: int, sees: str) -> dict[str, float]:
    """What a logistic regression reaches in each task that sees "words", or "neighbours" too."""
    return {n: label_accuracy(of.train, of.test, sees) for n, of in texts_of(seed).items()}


EXPERIMENTS = (
    Experiment(
        "11_labels", LABELLED, SEEDS, run=lambda way, _, seed: one_run(way, seed),
        precision=PRECISION, more={
            f"counting_{sees}": lambda _, sees=sees: [counted(seed, sees) for seed in SEEDS]
            for sees in ("words", "neighbours")
        },
    ),
)  # fmt: skip
