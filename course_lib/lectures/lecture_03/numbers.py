"""The numbers that sentences of lecture 03 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from statistics import mean
from typing import Any

import torch

from course_lib import bert, count_parameters, load_pretrained
from course_lib.files import data_path
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.objectives.spans import Spans, best_spans
from course_lib.teaching.claims import printed, settled
from course_lib.teaching.numbers import percent, signed
from course_lib.teaching.results import stored as result
from course_lib.teaching.results import tokens_read
from course_lib.text import english
from course_lib.train.pretrain_recipe import PretrainRecipe, read_recipe
from course_lib.train.span_metrics import answer_f1, bio_spans
from course_lib.train.task_metrics import accuracy, f1, macro_f1, matthews, pearson, spearman

from .benchmark import progress, without
from .documentation_runs import CODE, FILES, PACKAGE, SECTION
from .experiments import PLAIN_SEEDS, rise_beyond
from .starts import COURSE, MINILM, STARTS
from .world_runs import NLI, PRETRAINED, QA, RANDOM, WORLD_SEEDS, WORLD_STORIES

checkpoint = partial(result, "03_checkpoint")  # its training, and what it reached
AT_RANDOM = STARTS[1]  # the shape of the course's BERT, from random initialisation


@cache
def course() -> Any:
    """The course's checkpoint: encoder and tokenizer."""
    return load_pretrained("course-bert")


@cache
def recipe() -> PretrainRecipe:
    return read_recipe(data_path("recipes", "course_bert.toml"))


def settled_points(claim: str, part: int) -> str:
    return signed(settled("03", claim).value[part])


# ---------------------------------------------------------------- what is new, and what is read

HEADS: dict[str, Callable[[Any], Any]] = {
    "sentiment: 2": lambda encoder: BertForClassification(encoder, 2),
    "NLI: 3": lambda encoder: BertForClassification(encoder, 3),
    "names: 7 tags": lambda encoder: BertForTokenClassification(encoder, english.ENTITY_TAGS),
    "answers: 2 ends": BertForQuestionAnswering,
}


@cache
def sizes() -> dict[str, tuple[int, ...]]:
    """Weights of an encoder of BERT-base's shape and of ours, then of each head on it."""
    with torch.device("meta"):  # counts without memory
        shapes = {"base": bert("base"), "ours": bert("mini", vocab_size=8_192, max_positions=128)}
        counts = {
            name: [
                count_parameters(encoder),
                *(count_parameters(h(encoder)) for h in HEADS.values()),
            ]
            for name, encoder in shapes.items()
        }
    return {name: (whole, *(n - whole for n in both)) for name, (whole, *both) in counts.items()}


def pooler() -> int:
    """Weights of the pooler that a classifier on our checkpoint gets anew."""
    width = course().encoder.config.hidden_size
    assert course().encoder.pooler is None  # as the notes say
    return width * width + width


def mnli_sequences() -> str:
    """Sequences that three epochs of MNLI read, of those that BERT's pre-training reads."""
    before = printed("bert")["pretraining"]
    read = 3 * printed("glue")["tasks"]["MNLI"]["train"]
    return f"{read / (before['steps'] * before['batch']):.1%}"


def times_words() -> int:
    """Words that BERT's pre-training had, for each of ours."""
    paper = printed("bert")["pretraining"]
    ours = checkpoint()["text"]["words"]
    return 100 * round((paper["words_books"] + paper["words_wikipedia"]) / ours / 100)


def texts(read: Callable[[str], Sequence[Any]], split: str = "train") -> int:
    return len(read(split))


# ---------------------------------------------------------------- a pair, and an answer

SHOWN_PAIR, ROOM = 3, 24
PASSAGE = ["Along", "cracks", "the", "stone", "is", "eaten", "away", "first"]
START_LOGITS = (0.4, 2.0, 1.5, 0.1, 0.3, 0.0, 0.2, 0.4, 0.9)  # [CLS] comes first
END_LOGITS = (0.9, 0.2, 2.5, 0.0, 0.8, 0.1, 0.0, 0.6, 3.0)
CAP = 3


@cache
def best(longest: int) -> Spans:
    allowed = torch.ones(1, len(START_LOGITS), dtype=torch.bool)
    allowed[0, 0] = False
    return best_spans(torch.tensor([START_LOGITS]), torch.tensor([END_LOGITS]), allowed, longest)


def text_of(span: Spans) -> str:
    return " ".join(PASSAGE[int(span.start) - 1 : int(span.end)])


def intro() -> dict[str, Any]:
    return english.examples()["entities"][0]


def second_name() -> str:
    """Where the second name of the self-introduction stands."""
    return "{start}–{end}".format(**intro()["entities"][1])


def venus() -> str:
    """The worked question whose answer stands nowhere in its passage."""
    items = chain.from_iterable(passage["items"] for passage in english.examples()["questions"])
    return next(item["question"] for item in items if not item["answers"])


def spans_counted() -> str:
    """How many spans the passage of that question has, as the claim counts them."""
    claim = settled("03", "E90")
    assert claim.value == (0.0, True)  # as the slide says
    return claim.detail.split()[1]


# ---------------------------------------------------------------- the checkpoint, the plateau


def epochs() -> str:
    sequences = recipe().training.steps * recipe().training.batch_size
    return f"{sequences / checkpoint()['rows']:.0f}"


def step_after_short(after: int) -> int:
    """The last step in short sequences at which the run was measured, or the first after it."""
    every = recipe().reports.evaluate_every
    return every * (recipe().training.short_steps // every + after)


def accuracy_at(step: int) -> str:
    """Masked-token accuracy on held-out sequences after so many steps."""
    curve = checkpoint()["curve"]
    measured = {line["step"]: line for line in curve if "heldout_accuracy" in line}
    return f"{measured[step]['heldout_accuracy']:.0%}"


def left_plateau() -> str:
    """The first step written down whose loss is a nat below what frequencies explain."""
    low = result("03_plateau")["unigram"] - 1
    curve = (line for line in checkpoint()["curve"] if "total" in line)
    return f"{next(line['step'] for line in curve if line['total'] < low):,}"


def _plateau_end(which: Callable[[Sequence[float]], float]) -> str:
    """The last training losses of the runs on the plateau: of the first, or of the others."""
    return f"{which([run['loss'][-1] for run in result('03_plateau')['runs'].values()]):.1f}"


# ---------------------------------------------------------------- the tasks

# task -> what it is called, and the data and measure of its baselines
SCORED = {
    "sentiment": ("reviews", "reviews", "accuracy"),
    "spam": ("messages", "messages", "accuracy"),
    "nli": ("pairs", "nli", "accuracy"),
    "pos": ("parts of speech", "tagged", "POS accuracy"),
    "ner": ("names, F1", "tagged", "entity F1"),
    "qa": ("answers, F1", "passages", "F1"),
}


def _names(split: str) -> list[str]:
    """Every name of the tagged sentences, in lower case as our tokenizer reads them."""
    return [
        " ".join(sentence.words[first : last + 1]).lower()
        for sentence in english.tagged_sentences(split)
        for _, first, last in sorted(bio_spans(sentence.entities))
    ]


def unseen_names() -> str:
    """How many of the test names stand in no training sentence."""
    known, tested = set(_names("train")), _names("test")
    return f"{sum(name not in known for name in tested) / len(tested):.0%}"


@cache
def baselines() -> dict[tuple[str, str], dict[str, float]]:
    """(data, measure) -> rule -> its score on the test texts."""
    by_data: dict[tuple[str, str], dict[str, float]] = {}
    for data, measure, rule, score in result("03_tasks")["baselines"]:
        by_data.setdefault((data, measure), {})[rule] = score
    return by_data


def best_rule(task: str) -> tuple[str, float]:
    return max(baselines()[SCORED[task][1:]].items(), key=lambda one: one[1])


def scores(task: str, start: str) -> list[float]:
    return [run["score"] for run in result("03_tasks")["runs"][task].get(start, [])]


def score_of(task: str, start: str) -> str:
    return percent(scores(task, start))


def gain(task: str, clear: bool) -> str:
    """Points that pre-training adds to our small BERT; clear: every pre-trained run is better than
    every one from random initialisation, as the slide says."""
    after, before = (scores(task, start) for start in STARTS[:2])
    assert (min(after) > max(before)) == clear, task
    return signed(100 * (mean(after) - mean(before)), 0 if clear else 1)


def outcome(task: str) -> str:
    """What our BERT's runs reached: against random initialisation, and against the baseline."""
    ours, at_random = (scores(task, start) for start in STARTS[:2])
    gains, beats = min(ours) > max(at_random), min(ours) > best_rule(task)[1]
    if gains and beats:
        return "✓ success"
    if gains:
        return "◐ a gain from pre-training, but not above the baseline"
    return "◐ above the baseline, no clear gain" if beats else "✗ failure: neither"


def _under_baseline(task: str, rule: str, starts: Sequence[str]) -> str:
    """The best baseline's score, which none of the starts reaches in the mean."""
    best, score = best_rule(task)
    assert best == rule and all(mean(scores(task, start)) < score for start in starts), task
    return f"{score:.0%}"


def more_of_several(name: str, but: str = "") -> str:
    """Points by which an ensemble's mean of eight test sets is above one model's of the
    development sets; or of the seven others, where one task is left out."""
    at = f"{name}_test", f"{name}_large_dev" if name == "roberta" else f"{name}_dev"
    several, one = (without(but, row) for row in at)
    return signed(several - one)


def range_of(task: str, starts: Iterable[str]) -> str:
    """From the lowest to the highest mean of these starts, in percent."""
    means = [mean(scores(task, start)) for start in starts]
    return f"{min(means):.0%} to {max(means):.0%}"


def validation_apart() -> str:
    """By how much the rate that was passed over was ahead of the one taken, in points."""
    tasks = result("03_tasks")
    rates = tasks["passed_over"]["rate"], tasks["rates"][COURSE]
    ahead, taken = (mean(tasks["tuning"][COURSE][f"{rate:g}"]) for rate in rates)
    return f"{100 * (ahead - taken):.1f}"


def _tuned(start: str, rate: float) -> list[float]:
    """Validation scores of a start at a learning rate, reviews and names averaged, one a seed."""
    scores: list[float] = result("03_tasks")["tuning"][start][f"{rate:g}"]
    return scores


UNSTABLE = 3e-3  # the learning rate at which some runs learn and others do not
FLOOR = 0.25  # half of the reviews right, as by one answer to all, and no name found


def collapsed(start: str, rate: float) -> str:
    """How many of the runs at this rate came to nothing, as the page says: some, not all."""
    scores = _tuned(start, rate)
    assert 0 < scores.count(FLOOR) < len(scores) and set(_tuned(MINILM, rate)) == {FLOOR}
    return f"{scores.count(FLOOR)} of {len(scores)}"


def collapsed_rate() -> str:
    """The learning rate at which no run of any start learns anything."""
    tuning = result("03_tasks")["tuning"]
    rates = {r for r in tuning[COURSE] if all(set(t[r]) == {FLOOR} for t in tuning.values())}
    return "{}".format(*rates)


def first_step() -> str:
    """How many times as long Adam's first step is when it does not correct its bias: m/√v with
    β 0.9 and 0.999, whatever the gradient."""
    first, second = (printed("bert")["pretraining"][name] for name in ("beta1", "beta2"))
    return f"{(1 - first) / (1 - second) ** 0.5:.1f}"


def _points(task: str, start: str) -> list[tuple[int, float]]:
    """(number of training texts, mean score of the seeds), rising."""
    by_size = result("03_curves")["curves"][task][start]
    return sorted((int(n), mean(scores)) for n, scores in by_size.items())


def few() -> tuple[int, float]:
    """Names: the fewest sentences with which our BERT is as good as its shape from random
    initialisation with all, and its score."""
    goal = _points("ner", AT_RANDOM)[-1][1]
    return next(point for point in _points("ner", COURSE) if point[1] >= goal)


def world_curves(task: str) -> dict[str, list[list[tuple[float, float]]]]:
    """03_world's runs of a task, by start: (step, score on test stories), a line a seed."""
    runs = result("03_world")["runs"]
    return {
        start: [
            [(look["step"], look["score"]) for look in run["curve"]]
            for run in runs[f"{task}, {start}"]
        ]
        for start in (PRETRAINED, RANDOM)
    }


def world_levels(task: str) -> dict[str, float]:
    """What needs no Transformer, on the same test stories."""
    levels: dict[str, float] = result("03_world")["baselines"][task]
    return levels


def in_world(task: str, start: str) -> str:
    return percent([line[-1][1] for line in world_curves(task)[start]])


def story_pairs_left_out() -> str:
    pairs = result("03_world")["pairs"]
    return f"{1 - pairs['fitting'] / pairs['all']:.0%}"


def world_steps(task: str) -> int:
    steps: int = result("03_world")["recipes"][f"{task}, {PRETRAINED}"]["steps"]
    return steps


# ---------------------------------------------------------------- labels without end


def _markup(task: str) -> dict[str, Any]:
    """The results file that a task of documentation_runs.py is in."""
    return result(next(name for name, tasks in FILES.items() if task in tasks))


def markup(task: str, start: str, n: int, measure: str = "score") -> list[float]:
    """Scores of a task, one a seed: of a start, or "baseline", with n texts."""
    return [run[measure] for run in _markup(task)["runs"][task][start][str(n)]]


def markup_sizes(task: str) -> list[int]:
    return sorted(map(int, _markup(task)["runs"][task][COURSE]))


def markup_score(task: str, start: str, which: int = -1, measure: str = "score") -> str:
    return percent(markup(task, start, markup_sizes(task)[which], measure))


def markup_curves() -> dict[str, dict[str, dict[int, list[float]]]]:
    """task -> start -> number of texts -> a score a seed, on other modules."""
    rules = {CODE: "window regression", PACKAGE: "bag of words"}
    return {
        task: {name: {n: markup(task, start, n) for n in markup_sizes(task)}
               for start, name in _starts(rule).items()}
        for task, rule in rules.items()
    }  # fmt: skip


def _starts(rule: str) -> dict[str, str]:
    """What the results call a start -> what a chart calls it."""
    return {COURSE: COURSE, AT_RANDOM: "random init", "baseline": rule}


def markup_table() -> Iterator[tuple[str, str, list[list[float]]]]:
    """Of each task with all its texts: its name, what is tested, and the scores of both starts and
    of the baseline, one a seed."""
    measures = {"score": "other modules", "outside": "packages never read"}
    for task in chain(*FILES.values()):
        for measure, source in measures.items():
            source = "paragraphs never read" if (task, measure) == (PACKAGE, "outside") else source
            starts, n = (COURSE, AT_RANDOM, "baseline"), markup_sizes(task)[-1]
            yield task, source, [markup(task, start, n, measure) for start in starts]


def enough_code() -> tuple[int, int]:
    """Code words: the fewest sentences with which every run of ours is above every run from random
    initialisation with the middle number, which these runs have fitted; and that number."""
    middle = markup_sizes(CODE)[1]
    most = max(markup(CODE, AT_RANDOM, middle))
    return next(n for n in markup_sizes(CODE) if min(markup(CODE, COURSE, n)) > most), middle


def confused() -> tuple[int, str, str]:
    """How many test texts of one section our runs take for another most often, over the seeds, and
    which: (number, true, said)."""
    runs = _markup(SECTION)["runs"][SECTION][COURSE][str(markup_sizes(SECTION)[-1])]
    names = _markup(SECTION)["sections"]
    most = max(
        (sum(run["confusion"][i][j] for run in runs), true, predicted)
        for i, true in enumerate(names) for j, predicted in enumerate(names) if i != j
    )  # fmt: skip
    assert {*most[1:]} == {"Attributes", "Parameters"}  # as the page explains
    return most


# ---------------------------------------------------------------- layers, and the line


def by_layer(task: str, start: str) -> list[float]:
    """Accuracy of a linear classifier on the frozen vectors of each layer."""
    accuracies = result("03_features")["layers"][start][task]
    return [score for name, score in accuracies.items() if name.startswith("layer")]


def best_layer(start: str) -> tuple[int, float]:
    """The layer whose frozen vectors tell most of names; not the last one, as the slide says."""
    accuracies = by_layer("ner", start)
    layer = accuracies.index(max(accuracies))
    assert layer < len(accuracies) - 1
    return layer, accuracies[layer]


def line_of(start: str) -> dict[str, Any]:
    return result("03_loss_line")["lines"][start]


def at_the_end(start: str, what: str, form: str) -> str:
    """On the line, at α = 1: after fine-tuning."""
    return format(line_of(start)[what][line_of(start)["alpha"].index(1.0)], form)


def line_best() -> str:
    """The best test score on the line of our BERT, and where it is."""
    line = line_of(COURSE)
    score, at = max(zip(line["test_score"], line["alpha"], strict=True))
    return f"{score:.0%} at α = {at:g}"


# ---------------------------------------------------------------- plain reviews


def plain(start: str, measure: str = "score", n: int = 144) -> list[float]:
    """Scores of 03_reviews, one a seed: of a start, or "bag of words", with n plain reviews."""
    results = result("03_reviews")
    runs = results["bag"] if start == "bag of words" else results["runs"][start]
    return [run[measure] for run in runs[str(n)]]


def plain_score(start: str, n: int = 144) -> str:
    return "all" if min(scores := plain(start, n=n)) == 1 else percent(scores)


def plain_to_tricky() -> str:
    """From the lowest to the highest mean on the tricky reviews, trained on plain ones."""
    means = [mean(plain(start, "tricky")) for start in (*STARTS[:3], "bag of words")]
    return f"{min(means):.0%} to {max(means):.0%}"


def plain_error() -> int:
    """One standard error of our BERT's score on the plain test reviews, in points."""
    score = mean(plain(COURSE))
    return round(100 * (score * (1 - score) / len(english.plain_reviews("test"))) ** 0.5)


def plain_minutes() -> int:
    every = (run for sizes in result("03_reviews")["runs"].values() for runs in sizes.values()
             for run in runs)  # fmt: skip
    return round(sum(run["cpu_seconds"] for run in every) / 60)


TYPED = {
    "88%": "MRPC from run to run, README of BERT's code",
    "45%": "a bound that the pairs were written under",
    "61%": "a quiz item of its own: hypotheses without premises",
    "100": "F1 from 0 to 100; the label -100 of what no loss counts",
    "96.1": "BERT, Table 7",
    "96.4": "BERT, Table 7",
    "33%": "chance, three classes",
    "108": "QNLI has 108,000 pairs to learn from",
    "2,307": "a choice of the quiz, beside its wrong ones",
}

NUMBERS: dict[str, Callable[[], Any]] = {
    "old_weights": lambda: f"{sizes()['base'][0] / 1e6:.0f}",
    "train_pairs": lambda: texts(english.nli_pairs),
    "train_sentences": lambda: texts(english.tagged_sentences),
    "train_answers": lambda: sum(bool(q.answers) for q in english.questions("train")),
    "cap": lambda: CAP,
    "million_tokens": lambda: f"{tokens_read(checkpoint()) / 1e6:.0f}",
    "plateau_short": lambda: _plateau_end(lambda losses: losses[0]),
    "plateau_least": lambda: _plateau_end(lambda losses: min(losses[1:])),
    "plateau_most": lambda: _plateau_end(lambda losses: max(losses[1:])),
    "rate_others": lambda: "{:g}".format(*{result("03_tasks")["rates"][s] for s in STARTS[1:]}),
    "list_of_names": lambda: _under_baseline("ner", "list of names", STARTS[:2]),
    "pairs_words": lambda: _under_baseline("nli", "words", STARTS),
    "never_answer": lambda: _under_baseline("qa", "no answer", STARTS[:2]),
    "story_rate": lambda: (
        f"{result('03_world')['recipes'][f'{NLI}, {PRETRAINED}']['learning_rate']:g}"
    ),
    "rise": lambda: f"{max(rise_beyond(line_of(start)) for start in STARTS[:2]):.3f}",
    "silent_words": lambda: f"{settled('03', 'E92').value[3]:.0%}",
    "mnli_texts": lambda: f"{printed('glue')['tasks']['MNLI']['train']:,}",
    "mini_mnli": lambda: printed("glue")["bert_mini_leaderboard"]["scores"]["MNLI"][0],
    "xlnet_roberta": lambda: f"{next(s.one for s in progress() if 'XLNet' in s.model):.1f}",
    "wnli_majority": lambda: printed("glue")["tasks"]["WNLI"]["majority"],
}
