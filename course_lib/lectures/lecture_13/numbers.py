"""The numbers that sentences of lecture 13 say: counted, or read from results."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from course_lib.bench.measuring import where_measured
from course_lib.family.albert import albert
from course_lib.family.bert import bert
from course_lib.teaching.numbers import percent, signed
from course_lib.teaching.results import stored, tokens_read
from course_lib.teaching.verdicts import in_points
from course_lib.text.glue import GLUE

from . import benchmark
from .guide import guide
from .members import SHORT
from .pretraining_runs import BERT, CONTROLS, MEMBERS
from .views import benchmark as shown
from .views import real_text as written

STARTS = {
    "random": benchmark.RANDOM, "fast": benchmark.FAST,
    **{name.lower(): name for name in MEMBERS},
    "narrow": "plain, 58 wide", "short": "plain, two layers", "as_modernbert": "plain, 110 wide",
    "as_deberta": "plain, 138 wide", "as_tinybert": "plain, two layers, 64 wide",
}  # fmt: skip

OLD_WAY = "shortened, then swapped"  # how ALBERT's pairs of documentation were made
# Said of these starts: their averages, their pre-training, and what they have beside BERT.
AVERAGES = (
    "random", "fast", "bert", "roberta", "albert", "distilbert", "tinybert", "mobilebert",
    "modernbert", "deberta", "narrow", "short", "as_modernbert", "as_deberta", "as_tinybert",
)  # fmt: skip
PIECES = (  # masked ones
    "bert", "roberta", "albert", "deberta", "spanbert", "mobilebert", "modernbert", "short",
)  # fmt: skip
TASKS = {task.lower().replace("-", ""): task for task in GLUE}  # as a number's name begins


def mean_of(start: str, by: str = "average") -> str:
    """The average of nine, or one number of a task, the mean over the seeds, in percent."""
    return percent(shown.values_of(start, by))


def beside_bert(start: str) -> str:
    """How far a start is from BERT, in points."""
    one, other = (fmean(shown.values_of(name)) for name in (start, "BERT"))
    return signed(100 * (one - other))


def interval_of(start: str) -> str:
    """Where 95% of resampled test sets have the difference from BERT, in points."""
    low, high = stored(shown.FILE)["intervals"][start]["beside BERT"]
    return f"{signed(100 * low)} to {signed(100 * high)}"


def masked(start: str) -> str:
    """Held-out masked words that the pre-trained model finds, in percent."""
    return percent([run["masked_accuracy"] for run in shown.runs_of(start)])


def steps(start: str) -> str:
    """Of its pre-training."""
    return f"{shown.runs_of(start)[0]['steps']:,}"


def documented(start: str) -> str:
    """The mean of the documentation tasks, in percent with a decimal."""
    return percent([written.scores_of(start)["mean"]], 1)


def beside_bert_there(start: str) -> str:
    """On documentation: how far a start is from BERT, in points, with the rule's word."""
    return in_points(written.means(STARTS[start]), written.means("BERT"))


def read_more() -> str:
    """How many times as many tokens as BERT's pre-training here course-bert's has read."""
    here = stored(written.FILE)["pretraining"]["BERT"]
    own = here["flops"] * here["batch_size"] * SHORT
    return f"{tokens_read(stored('03_checkpoint')) / own:.0f}"


def pieces(start: str) -> str:
    """Held-out masked pieces of the documentation that a start finds, in percent with a decimal."""
    return percent([run["masked_accuracy"] for run in stored(written.FILE)["runs"][start]], 1)


def seeds_run() -> int:
    return len(stored(shown.FILE)["runs"]["BERT"])


def lowest() -> float:
    """The lowest mean of the family, ALBERT left out."""
    return min(fmean(shown.values_of(name)) for name in MEMBERS if name != "ALBERT")


def hours() -> str:
    """CPU hours of all runs, pre-training and fine-tuning."""
    runs: Mapping[str, Any] = stored(shown.FILE)["runs"]
    seconds = sum(
        run["tuning_seconds"] + run.get("pretraining_cpu_seconds", 0)
        for of in runs.values() for run in of
    )  # fmt: skip
    return f"{seconds / 3_600:.1f}"


def bag_of_words(task: str) -> str:
    """What a bag of words reaches on a twin, one number of its metrics, in percent."""
    scores = stored(shown.FILE)["without_learning"][task]["words"]
    return percent([fmean(scores.values())])


# Digits that are computed here, and that a sentence also types with another meaning.
TYPED = {
    "70%": "by hand: who calls every sentence good",
    "80%": "by hand: a model's accuracy",
    "100": "a hundred texts, by hand and in the quiz",
}
