"""The numbers that sentences of lecture 03 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from math import prod
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
from course_lib.teaching.claims import claims, printed
from course_lib.teaching.results import read_result
from course_lib.text import english
from course_lib.train.pretrain_recipe import PretrainRecipe, read_recipe
from course_lib.train.span_metrics import span_scores
from course_lib.train.task_metrics import accuracy

from .experiments import COURSE, MINILM, STARTS, WORLD_NLI, rise_beyond


def _signed(points: float, digits: int = 1) -> str:
    return f"{points:+.{digits}f}".replace("-", "−")


@lru_cache(maxsize=1)
def _course() -> Any:
    """The course's checkpoint: encoder and tokenizer."""
    return load_pretrained("course-bert")


@lru_cache(maxsize=1)
def _recipe() -> PretrainRecipe:
    return read_recipe(data_path("recipes", "course_bert.toml"))


def _rows_share() -> str:
    """Rows that three passes over MNLI read, of those that BERT's pre-training reads."""
    before = printed("bert")["pretraining"]
    share = 3 * printed("glue")["tasks"]["MNLI"]["train"] / (before["steps"] * before["batch"])
    return f"{share:.1%}"


HEADS: dict[str, Callable[[Any], Any]] = {
    "sentiment: 2": lambda encoder: BertForClassification(encoder, 2),
    "NLI: 3": lambda encoder: BertForClassification(encoder, 3),
    "names: 7 tags": lambda encoder: BertForTokenClassification(encoder, english.ENTITY_TAGS),
    "answers: 2 ends": BertForQuestionAnswering,
}


@lru_cache(maxsize=1)
def _sizes() -> dict[str, tuple[int, ...]]:
    """Weights of an encoder of BERT-base's shape and of ours, then of each head on it."""
    with torch.device("meta"):  # counts without memory
        shapes = {"base": bert("base"), "ours": bert("mini", vocab_size=8_192, max_positions=128)}
        return {
            name: (count_parameters(encoder), *(_on(encoder, head) for head in HEADS.values()))
            for name, encoder in shapes.items()
        }


def _on(encoder: Any, head: Callable[[Any], Any]) -> int:
    return count_parameters(head(encoder)) - count_parameters(encoder)


def _runs_a_task() -> int:
    """Runs, if every combination of the values is tried."""
    return prod(len(v) for v in printed("bert")["finetuning"].values() if isinstance(v, list))


@lru_cache(maxsize=1)
def _silent() -> tuple[float, float]:
    """Words right, and F1, of a tagger that finds nothing in the test sentences."""
    truth = [sentence.entities for sentence in english.tagged_sentences("test")]
    silent = [["O"] * len(tags) for tags in truth]
    right = accuracy(chain.from_iterable(truth), chain.from_iterable(silent))
    return right, span_scores(truth, silent).f1


SHOWN_PAIR, ROOM = 3, 24

PASSAGE = ["Along", "cracks", "the", "stone", "is", "eaten", "away", "first"]

START_LOGITS = (0.4, 2.0, 1.5, 0.1, 0.3, 0.0, 0.2, 0.4, 0.9)  # [CLS] comes first

END_LOGITS = (0.9, 0.2, 2.5, 0.0, 0.8, 0.1, 0.0, 0.6, 3.0)

CAP = 3


@lru_cache(maxsize=2)
def _best(longest: int) -> Spans:
    allowed = torch.ones(1, len(START_LOGITS), dtype=torch.bool)
    allowed[0, 0] = False
    return best_spans(torch.tensor([START_LOGITS]), torch.tensor([END_LOGITS]), allowed, longest)


def _text_of(found: Spans) -> str:
    return " ".join(PASSAGE[int(found.start) - 1 : int(found.end)])


def intro() -> dict[str, Any]:
    return english.examples()["entities"][0]


@lru_cache(maxsize=16)
def _settled(claim: str) -> Any:
    one = next(one for one in claims("03") if one.id == claim)
    assert one.settle is not None
    return one.settle()


def _question() -> str:
    """The worked question whose answer stands nowhere in its passage."""
    asked = chain.from_iterable(passage["items"] for passage in english.examples()["questions"])
    return next(item["question"] for item in asked if not item["answers"])


def _spans_counted() -> str:
    """How many spans the passage of that question has, as the claim counts them."""
    value, said = _settled("E90").value, _settled("E90").detail
    assert value == (0.0, True)  # as the slide says
    return said.split()[1]


OURS = COURSE, f"{COURSE}, random init"  # starts of one shape


@lru_cache(maxsize=8)
def result(name: str) -> dict[str, Any]:
    try:
        return read_result(name)
    except FileNotFoundError as missing:
        raise RuntimeError(
            f"data/results/{name}.json is not there, and this slide shows what it holds. "
            "`python -m course_lib.teaching.results 03` makes it (hours on two cores)."
        ) from missing


def _minutes() -> str:
    """How long the run takes at its median speed."""
    tokens = _recipe().training.steps * _recipe().training.batch_size * _recipe().text.length
    return f"{tokens / result('03_checkpoint')['tokens_per_second'] / 60:.0f}"


def _look(after: int) -> int:
    """The last step in short rows at which the run was measured, or the first after it."""
    every = _recipe().reports.evaluate_every
    return every * (_recipe().training.short_steps // every + after)


def _found_at(step: int) -> str:
    """Hidden tokens of held-out rows found after so many steps."""
    curve = result("03_checkpoint")["curve"]
    measured = {line["step"]: line for line in curve if "heldout_accuracy" in line}
    return f"{measured[step]['heldout_accuracy']:.0%}"


# task -> what it is called, and the data and measure of its baselines
SCORED = {
    "sentiment": ("reviews", "reviews", "accuracy"),
    "spam": ("messages", "messages", "accuracy"),
    "nli": ("pairs", "nli", "accuracy"),
    "pos": ("parts of speech", "tagged", "POS accuracy"),
    "ner": ("names, F1", "tagged", "entity F1"),
    "qa": ("answers, F1", "passages", "F1"),
}


@lru_cache(maxsize=1)
def _baselines() -> dict[tuple[str, str], dict[str, float]]:
    """(data, measure) -> rule -> its score on the test texts."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for data, measure, rule, score in result("03_tasks")["baselines"]:
        found.setdefault((data, measure), {})[rule] = score
    return found


def best_rule(task: str) -> tuple[str, float]:
    rules = _baselines()[SCORED[task][1:]]
    best = max(rules, key=lambda rule: rules[rule])
    return best, rules[best]


def _scores(task: str, start: str) -> list[float]:
    return [run["score"] for run in result("03_tasks")["runs"][task].get(start, [])]


def _share(task: str, start: str) -> str:
    return f"{mean(_scores(task, start)):.0%}"


def _gain(task: str) -> float:
    """Points that pre-training our small BERT adds."""
    before, after = (mean(_scores(task, start)) for start in (OURS[1], OURS[0]))
    return 100 * (after - before)


def _clear_gain(task: str) -> str:
    """The same, of a task where every pre-trained run is better than every random one."""
    assert min(_scores(task, OURS[0])) > max(_scores(task, OURS[1])), task  # as the slide says
    return _signed(_gain(task), 0)


def _no_clear_gain(task: str) -> str:
    """The same, of a task where the runs overlap."""
    assert min(_scores(task, OURS[0])) <= max(_scores(task, OURS[1])), task  # as the slide says
    return _signed(_gain(task))


def _under_rule(task: str, starts: Sequence[str]) -> str:
    """The best simple rule's score, which none of the starts reaches in the mean."""
    rule = best_rule(task)[1]
    assert all(mean(_scores(task, start)) < rule for start in starts), task  # as the slide says
    return f"{rule:.0%}"


def _points(task: str, start: str) -> list[tuple[int, float]]:
    """(number of training texts, mean score of the seeds), rising."""
    found = result("03_curves")["curves"][task][start]
    return sorted((int(n), mean(scores)) for n, scores in found.items())


def _few_against_all() -> tuple[int, float, int, float]:
    """Names: the fewest sentences with which our BERT is as good as its shape from random weights
    with all, and those."""
    most = _points("ner", OURS[1])[-1]
    few = next(point for point in _points("ner", OURS[0]) if point[1] >= most[1])
    return (*few, *most)


def _world(start: str) -> str:
    """The micro-world's pairs right, with rising numbers of them to learn from."""
    points = _points(WORLD_NLI, start)
    return ", ".join(f"{score:.0%} with {n:,}" for n, score in points)


def _by_layer(task: str, start: str) -> list[float]:
    found = result("03_features")["layers"][start][task]
    return [share for name, share in found.items() if name.startswith("layer")]


def _best_layer(task: str, start: str) -> tuple[int, float]:
    """The layer whose frozen vectors tell most; not the last one, as the slide says."""
    shares = _by_layer(task, start)
    best = max(range(len(shares)), key=shares.__getitem__)
    assert best < len(shares) - 1
    return best, shares[best]


def _on_the_line(start: str, what: str, alpha: float) -> float:
    found = result("03_loss_line")["lines"][start]
    return float(found[what][found["alpha"].index(alpha)])


def _best_on_the_line(start: str) -> str:
    """The best test score on the line, and where it is."""
    found = result("03_loss_line")["lines"][start]
    best, at = max(zip(found["test_score"], found["alpha"], strict=True))
    return f"{best:.0%} at α = {at:g}"


def _glue(name: str, what: str) -> Any:
    return printed("glue")["tasks"][name][what]


def _split(read: Callable[[str], Sequence[Any]], split: str) -> int:
    return len(read(split))


def _pooler() -> int:
    """Weights of the pooler that a classifier on our checkpoint gets anew."""
    width = _course().encoder.config.hidden_size
    assert _course().encoder.pooler is None  # as the notes say
    return width * width + width


def _times_words() -> int:
    """Words that BERT's pre-training had, for each of ours."""
    paper = printed("bert")["pretraining"]
    ours = result("03_checkpoint")["text"]["words"]
    return round((paper["words_books"] + paper["words_wikipedia"]) / ours)


def _place(which: int) -> str:
    one = intro()["entities"][which]
    return f"{one['start']}–{one['end']}"


CHECKPOINT, PLATEAU, TASKS, CURVES = (
    read_result(f"03_{name}") for name in ("checkpoint", "plateau", "tasks", "curves")
)
LINE = read_result("03_loss_line")["lines"]
TRAINING: dict[str, Any] = CHECKPOINT["recipe"]["training"]
TOKENS = TRAINING["steps"] * TRAINING["batch_size"] * CHECKPOINT["recipe"]["text"]["length"]
SHORT, *OTHERS = [run["loss"][-1] for run in PLATEAU["runs"].values()]


def _passes() -> str:
    rows = TRAINING["steps"] * TRAINING["batch_size"]
    return f"{rows / CHECKPOINT['rows']:.0f}"


def _left_plateau() -> str:
    """The first step written down whose loss is a nat below what frequencies explain."""
    losses = ((line["step"], line["total"]) for line in CHECKPOINT["curve"] if "total" in line)
    return f"{next(step for step, loss in losses if loss < PLATEAU['unigram'] - 1):,}"


def _score(task: str, start: str) -> float:
    return mean(run["score"] for run in TASKS["runs"][task][start])


def _rule(what: str, sees: str) -> float:
    """A baseline's score, of the row with these words."""
    return next(row[-1] for row in TASKS["baselines"] if (row[0], row[2]) == (what, sees))


def _world_of_page(start: str) -> float:
    sizes = CURVES["curves"]["world nli"][start]
    return mean(sizes[max(sizes, key=int)])


def _validation_apart() -> str:
    """By how much the rate that was passed over was ahead of the one taken, in points."""
    rates = TASKS["passed_over"]["rate"], TASKS["rates"][COURSE]
    ahead, taken = (mean(TASKS["tuning"][COURSE][f"{rate:g}"]) for rate in rates)
    return f"{100 * (ahead - taken):.1f}"


def _few() -> tuple[str, str]:
    """The fewest sentences with which the pre-trained one is as good as the random one with all."""
    ours, fresh = (CURVES["curves"]["ner"][start] for start in STARTS[:2])
    goal = mean(list(fresh.values())[-1])
    return next((n, f"{mean(scores):.0%}") for n, scores in ours.items() if mean(scores) >= goal)


def _range(scores: Iterable[float]) -> str:
    """From the lowest to the highest, in percent."""
    low, *_, high = sorted(scores)
    return f"{low:.0%} to {high:.0%}"


TYPED = {
    "96.1": "BERT, Table 7",
    "96.4": "BERT, Table 7",
    "33%": "chance, three classes",
    "108": "QNLI has 108,000 pairs to learn from",
    "2,307": "a choice of the quiz, beside its wrong ones",
}

NUMBERS: dict[str, Callable[[], Any]] = {
    "million_tokens": lambda: f"{TOKENS / 1e6:.0f}",
    "passes": _passes,
    "minutes": lambda: f"{TOKENS / CHECKPOINT['tokens_per_second'] / 60:.0f}",
    "plateau_steps": lambda: f"{PLATEAU['steps']:,}",
    "plateau_short": lambda: f"{SHORT:.1f}",
    "plateau_least": lambda: f"{min(OTHERS):.1f}",
    "plateau_most": lambda: f"{max(OTHERS):.1f}",
    "short_steps": lambda: f"{TRAINING['short_steps']:,}",
    "left_plateau": _left_plateau,
    "rate_ours": lambda: f"{TASKS['rates'][COURSE]:g}",
    "rate_others": lambda: "{:g}".format(*{TASKS["rates"][start] for start in STARTS[1:]}),
    "rate_passed_over": lambda: f"{TASKS['passed_over']['rate']:g}",
    "validation_apart": _validation_apart,
    "names_passed_over": lambda: f"{mean(TASKS['passed_over']['ner']):.0%}",
    "names_ours": lambda: f"{_score('ner', COURSE):.0%}",
    "few": lambda: _few()[0],
    "few_score": lambda: _few()[1],
    "names_fresh": lambda: f"{_score('ner', STARTS[1]):.0%}",
    "way_ours": lambda: f"{LINE[COURSE]['distance']:.0f}",
    "way_fresh": lambda: f"{LINE[STARTS[1]]['distance']:.0f}",
    "rise": lambda: f"{max(map(rise_beyond, LINE.values())):.3f}",
    "list_of_names": lambda: f"{_rule('tagged', 'list of names'):.0%}",
    "pairs_words": lambda: f"{_rule('nli', 'words'):.0%}",
    "pairs_range": lambda: _range(_score("nli", start) for start in STARTS),
    "pairs_range_curves": lambda: _range(_score("nli", start) for start in STARTS[:3]),
    "never_answer": lambda: f"{_rule('passages', 'no answer'):.0%}",
    "world_ours": lambda: f"{_world_of_page('pre-trained'):.0%}",
    "world_fresh": lambda: f"{_world_of_page('random init'):.0%}",
    "bert_over_elmo": lambda: _signed(_settled("E92").value[1]),
    "best_layer": lambda: _best_layer("ner", MINILM)[0],
    "best_layer_ours": lambda: f"{_best_layer('ner', COURSE)[1]:.1%}",
    "best_layer_score": lambda: f"{_best_layer('ner', MINILM)[1]:.1%}",
    "cap": lambda: CAP,
    "capped": lambda: _text_of(_best(CAP)),
    "capped_score": lambda: f"{_best(CAP).score.item():.1f}",
    "checkpoint_minutes": _minutes,
    "checkpoint_reached": lambda: f"{result('03_checkpoint')['reached']['heldout_accuracy']:.1%}",
    "checkpoint_trained": lambda: f"{result('03_checkpoint')['as_trained']:.1%}",
    "claims_in_all": lambda: len(claims("03")),
    "cut_at": lambda: ROOM,
    "eight_mean": lambda: _settled("E78").value[2],
    "entity_words": lambda: f"{1 - _silent()[0]:.0%}",
    "features_frozen": lambda: printed("bert")["features"]["concatenated_last_four"],
    "features_tuned": lambda: printed("bert")["features"]["fine_tuned"],
    "first_long": lambda: _look(1),
    "flair_over_bert": lambda: _signed(_settled("E92").value[2]),
    "folds_hypothesis": lambda: f"{_baselines()['nli', 'accuracy, ten folds']['hypothesis']:.0%}",
    "found_long": lambda: _found_at(_look(1)),
    "found_short": lambda: _found_at(_look(0)),
    "gain_ner": lambda: _clear_gain("ner"),
    "gain_pos": lambda: _clear_gain("pos"),
    "gain_reviews": lambda: _no_clear_gain("sentiment"),
    "glue_ratio": lambda: _settled("unequal tasks").value[0],
    "last_layer_score": lambda: f"{_by_layer('ner', MINILM)[-1]:.1%}",
    "last_short": lambda: _look(0),
    "line_best": lambda: _best_on_the_line(OURS[0]),
    "line_end_fresh": lambda: f"{_on_the_line(OURS[1], 'train_loss', 1.0):.3f}",
    "line_end_ours": lambda: f"{_on_the_line(OURS[0], 'train_loss', 1.0):.3f}",
    "line_score_fresh": lambda: f"{_on_the_line(OURS[1], 'test_score', 1.0):.0%}",
    "line_score_ours": lambda: f"{_on_the_line(OURS[0], 'test_score', 1.0):.0%}",
    "loose": lambda: _text_of(_best(8)),
    "loose_score": lambda: f"{_best(8).score.item():.1f}",
    "margin": lambda: _signed(_best(CAP).margin.item()),
    "mnli_texts": lambda: _glue("MNLI", "train"),
    "most": lambda: _few_against_all()[2],
    "most_score": lambda: f"{_few_against_all()[3]:.0%}",
    "mrpc_gain": lambda: _settled("runs of MRPC").value[0],
    "mrpc_range": lambda: _settled("runs of MRPC").value[1],
    "ner_fresh": lambda: _share("ner", OURS[1]),
    "ner_ours": lambda: _share("ner", OURS[0]),
    "new_for_three": lambda: _sizes()["base"][2],
    "nine_mean": lambda: _settled("E78").value[1],
    "nli_fresh": lambda: _share("nli", OURS[1]),
    "nli_minilm": lambda: _share("nli", MINILM),
    "nli_ours": lambda: _share("nli", OURS[0]),
    "null_end": lambda: END_LOGITS[0],
    "null_score": lambda: f"{_best(CAP).null_score.item():.1f}",
    "null_start": lambda: START_LOGITS[0],
    "old_weights": lambda: f"{_sizes()['base'][0] / 1e6:.0f}",
    "over_people_one": lambda: _signed(_settled("people").value[0]),
    "over_people_seven": lambda: _signed(_settled("people").value[1]),
    "pooler": lambda: _pooler(),
    "reviews_minilm": lambda: _share("sentiment", MINILM),
    "rows_share": _rows_share,
    "rule_answers": lambda: _under_rule("qa", OURS),
    "rule_names": lambda: _under_rule("ner", OURS),
    "rule_pairs": lambda: _under_rule("nli", (*STARTS,)),
    "runs_a_task": _runs_a_task,
    "silent_f1": lambda: f"{_silent()[1]:.0f}",
    "silent_words": lambda: f"{_silent()[0]:.0%}",
    "spans_counted": _spans_counted,
    "test_sentences": lambda: _split(english.tagged_sentences, "test"),
    "times_weights": lambda: round(_sizes()["base"][0] / count_parameters(_course().encoder)),
    "times_words": lambda: round(_times_words(), -2),
    "train_answers": lambda: sum(bool(q.answers) for q in english.questions("train")),
    "train_messages": lambda: _split(english.messages, "train"),
    "train_pairs": lambda: _split(english.nli_pairs, "train"),
    "train_passages": lambda: _split(english.passages, "train"),
    "train_questions": lambda: _split(english.questions, "train"),
    "train_reviews": lambda: _split(english.reviews, "train"),
    "train_sentences": lambda: _split(english.tagged_sentences, "train"),
    "true_second": lambda: _place(1),
    "under_people": lambda: _signed(_settled("people").value[2]),
    "unigram": lambda: f"{result('03_plateau')['unigram']:.1f}",
    "venus": _question,
    "wnli_majority": lambda: _glue("WNLI", "majority"),
    "world_pairs": lambda: _points(WORLD_NLI, "pre-trained")[-1][0],
    "world_nli_after": lambda: _world("pre-trained"),
    "world_nli_before": lambda: _world("random init"),
}
