"""The numbers that sentences of lecture 05 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from statistics import mean
from typing import Any, NamedTuple

import torch

from course_lib import MicroWorld, bert, count_parameters, make_pairs, published
from course_lib.config import encoder_flops
from course_lib.family.albert import SHARING, AlbertConfig, albert, parameter_breakdown
from course_lib.objectives.sentence_order import make_ordered_pairs
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import parameters, printed
from course_lib.teaching.numbers import millions, percent
from course_lib.teaching.results import outcome, stored
from course_lib.text.counts import NeighbourCounts, Unigram
from course_lib.train.metrics import evaluation_mask

from .experiments import (
    AS_RELEASED,
    CORNER_SEEDS,
    GRID,
    GRID_SEEDS,
    IN_STEP,
    IN_STEP_SEEDS,
    LIVE,
    LONG,
    LONG_SEEDS,
    TASK_SEEDS,
    WIDTHS,
)

TOKENS = 128  # of the text whose FLOPs are counted


@lru_cache(maxsize=1)
def base() -> AlbertConfig:
    return published("albert", "base", AlbertConfig)


@lru_cache(maxsize=16)
def albert_weights(size: str = "base", sharing: str = "all", groups: int = 1) -> int:
    with torch.device("meta"):  # shapes without memory
        return count_parameters(albert(size, sharing=sharing, num_groups=groups))


def factors() -> tuple[int, int, int]:
    """Parameters of the whole embedding matrix, of the narrow one, and of the projection."""
    config = base()
    V, E, H = config.vocab_size, config.embedding_size, config.hidden_size
    return V * H, V * E, E * H


TOY = (
    ((1.0, 0.0), (0.0, 1.0), (2.0, -1.0)),
    ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)),
)


def toy() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(TOY[0]), torch.tensor(TOY[1])


def wrong_order() -> str:
    """What PyTorch says when the matrix stands before the row."""
    short, widen = toy()
    try:
        _ = widen @ short[2]
    except RuntimeError as error:
        return str(error).splitlines()[0]
    raise AssertionError("the factors must not fit the other way round")


@lru_cache(maxsize=1)
def models() -> dict[str, tuple[int, int]]:
    """Weights, and FLOPs for one text, of five published models."""
    sizes = {}
    for size in ("base", "large", "xxlarge"):
        if size != "xxlarge":
            flops = encoder_flops(published("bert", size), TOKENS)
            sizes[f"BERT-{size}"] = parameters(bert, size), flops
        flops = encoder_flops(published("albert", size, AlbertConfig), TOKENS)
        sizes[f"ALBERT-{size}"] = albert_weights(size), flops
    return sizes


def points_lost(width: str) -> dict[str, float]:
    """Points of the five-task mean that sharing a half, or all, loses."""
    rows = printed("albert")["sharing"][width]
    parts = ("attention", "feed_forward", "all")
    return {part: round(rows["none"][-1] - rows[part][-1], 1) for part in parts}


@lru_cache(maxsize=1)
def the_world() -> MicroWorld:
    return MicroWorld.load()


def sentence_tasks() -> dict[str, Any]:
    return stored("05_sentence_tasks")


def past_plateau() -> dict[str, Any]:
    return stored("05_past_plateau")


def past_curves(tested: str) -> dict[str, list[list[tuple[float, float]]]]:
    """What was trained -> runs of (step, accuracy on the pairs of `tested`), past the plateau."""
    runs = past_plateau()["runs"]
    return {f"trained on {task}": _curves(of, tested) for task, of in runs.items()}


def _curves(runs: list[dict[str, Any]], measure: str) -> list[list[tuple[float, float]]]:
    """A measure over the steps, a curve a run."""
    return [[(point["step"], point[measure]) for point in run["curve"]] for run in runs]


def in_step() -> dict[str, Any]:
    return stored("05_in_step")


def in_step_curves() -> dict[str, list[list[tuple[float, float]]]]:
    """What NSP's model learns of order: runs of (step, accuracy on SOP's pairs), by the wrong B."""
    return {
        "wrong B from a random place": _curves(past_plateau()["runs"]["NSP"], "SOP"),
        "wrong B in step": _curves(in_step()["runs"][IN_STEP], "SOP"),
    }


def in_step_score(measure: str) -> str:
    return percent(outcome(in_step(), measure)[IN_STEP])


def released_elsewhere() -> str:
    """The fraction of SOP's pairs, as released, whose B is of another story."""
    pairs = stored("05_as_released")["pairs"]
    return f"{pairs['from elsewhere'] / pairs['all']:.0%}"


def sharing_grid() -> dict[str, Any]:
    return stored("05_sharing")


def corners() -> dict[str, Any]:
    return stored("05_sharing_past_plateau")


def corner_curves() -> dict[str, list[list[tuple[float, float]]]]:
    """Corner of the grid -> runs of (step, masked-token accuracy), past the plateau."""
    return {name: _curves(runs, "masked_accuracy") for name, runs in corners()["runs"].items()}


def corner(width: int, sharing: str) -> float:
    """Masked-token accuracy at the end of the long runs of one corner, in percent as printed."""
    return round(100 * mean(outcome(corners(), "masked_accuracy")[f"E={width}, {sharing}"]), 1)


def corner_behind(lower: tuple[int, str], higher: tuple[int, str]) -> str:
    """Points by which one corner lies behind another; that it does is what the page says."""
    behind = corner(*higher) - corner(*lower)
    assert behind > 0, (lower, higher)
    return f"{behind:.1f}"


def guessed(task: str, what: str) -> float:
    return float(sentence_tasks()["guesses"][task][what])


def alone(what: str, tested: str) -> str:
    """What a linear bag of words reaches: which one, and on which task's pairs."""
    return f"{sentence_tasks()['words alone'][what][tested]:.1%}"


def most_on_documentation(task: str) -> str:
    """Points of the best baseline over the majority class, on pairs of the documentation."""
    levels = [of[task] for of in stored("05_lengths")["words"].values()]
    kinds = ("shared", "ordered", "lengths")
    return f"{100 * max(at[kind] - at['commoner label'] for at in levels for kind in kinds):.1f}"


def scale_gap() -> tuple[str, str]:
    """Points between the widths, all shared; and those that the wide one loses where it starts at
    the narrow one's scale."""
    E_128, E_32 = (grid_accuracy(width, "all") for width in reversed(WIDTHS))
    (halved,) = outcome(stored("05_start_scale"), "masked_accuracy").values()
    return f"{100 * (E_128 - E_32):.0f}", f"{100 * (E_128 - mean(halved)):.0f}"


class Sign(NamedTuple):
    """How many pairs of a task show a sign, which fraction of all they are, and which fraction of
    them has the label 1."""

    pairs: int
    fraction: float
    wrong: float


@lru_cache(maxsize=1)
def _documents() -> list[list[list[int]]]:
    return the_world().documents(the_world().stories(LIVE.stories, seed=0))


@lru_cache(maxsize=1)
def _training_pairs() -> dict[str, PackedSequences]:
    """The training stories, cut for both tasks, as in the notebook."""
    length, special = LIVE.length, the_world().special
    return {
        "NSP": make_pairs(_documents(), special, length=length),
        "SOP": make_ordered_pairs(_documents(), special, length=length),
    }


@lru_cache(maxsize=2)
def _signs_of_wrong_pairs(task: str) -> dict[str, torch.Tensor]:
    """(N,) for each sign of a wrong pair, whether a training pair shows it."""
    rows = _training_pairs()[task]
    openings = {tuple(story[0][:4]) for story in _documents()}
    starts = rows.token_type_ids.argmax(dim=1).tolist()
    begins = [tuple(ids[b : b + 4].tolist()) for ids, b in zip(rows.input_ids, starts, strict=True)]
    opens = torch.tensor([start in openings for start in begins])
    late = _in_segment(rows, "finally", 0) & _in_segment(rows, "first", 1)
    return {"opens": opens, "late": late, "neither": ~(opens | late)}


def _labels(task: str) -> torch.Tensor:
    label = _training_pairs()[task].next_sentence_label
    assert label is not None
    return label


@lru_cache(maxsize=1)
def wrong_pair_signs() -> dict[str, dict[str, Sign]]:
    """Both tasks' signs counted; each is always label 1, as the slide says."""
    signs_of = {
        task: {
            name: Sign(
                int(which.sum()),
                which.float().mean().item(),
                _labels(task)[which].float().mean().item(),
            )
            for name, which in _signs_of_wrong_pairs(task).items()
        }
        for task in ("NSP", "SOP")
    }
    assert all(signs[name].wrong == 1 for signs in signs_of.values() for name in ("opens", "late"))
    return signs_of


def opening_rule() -> float:
    """The accuracy on SOP's pairs of: swapped where B begins like an opening."""
    return (_signs_of_wrong_pairs("SOP")["opens"] == _labels("SOP").bool()).float().mean().item()


def _in_segment(rows: PackedSequences, word: str, segment: int) -> torch.Tensor:
    """(N,) whether the word stands in the segment."""
    here = (rows.input_ids == the_world().tokenizer.id(word)) & (rows.token_type_ids == segment)
    return (here & rows.attention_mask.bool()).any(dim=1)


def swapped_with_opening() -> float:
    """The fraction of SOP's swapped training pairs in which B begins like a story's opening."""
    return _signs_of_wrong_pairs("SOP")["opens"][_labels("SOP").bool()].float().mean().item()


# ---------------------------------------------------------------- where these runs stop


def grid_mean(width: int) -> float:
    return mean(grid_accuracy(width, sharing) for sharing in SHARING)


def long_masked() -> str:
    """Masked-token accuracy at the end of lecture 02's long run in the same world."""
    runs = stored("02_pretraining")["runs"]["long"]
    return percent([run["curve"][-1]["masked_accuracy"] for run in runs])


@lru_cache(maxsize=2)
def level(rule: type[Unigram] | type[NeighbourCounts]) -> float:
    """What a baseline reaches on the held-out SOP pairs, where masked tokens are measured."""
    documents = the_world().documents(the_world().stories(LIVE.heldout, seed=0, split="heldout"))
    rows = make_ordered_pairs(documents, the_world().special, length=LIVE.length)
    selected = evaluation_mask(rows, the_world().special).selected
    return float(rule(_documents()).accuracy(rows, selected))


def seeds_apart(width: int) -> str:
    """Points between the best and the worst seed, for the way to share where they lie widest."""
    reached = outcome(sharing_grid(), "masked_accuracy")
    runs = [reached[f"E={width}, {sharing}"] for sharing in SHARING]
    return f"{100 * max(max(values) - min(values) for values in runs):.1f}"


def ensemble_gain(column: str) -> str:
    """Points of ALBERT's ensemble over its one model, in a column of the paper's Table 10."""
    table = printed("albert")["reading"]
    at = table["columns"].index(column)
    return f"{table['ensemble']['albert'][at] - table['one_model']['albert'][at]:.1f}"


def embeddings_shrink() -> str:
    """How many times more parameters BERT-base's embeddings have than ALBERT-base's, projected."""
    ours, theirs = parameter_breakdown(base()), parameter_breakdown(published("bert", "base"))
    return f"{theirs['embeddings'] / (ours['embeddings'] + ours['projection']):.1f}"


def grid_accuracy(width: int, sharing: str) -> float:
    return mean(outcome(sharing_grid(), "masked_accuracy")[f"E={width}, {sharing}"])


def costs(sharing: str) -> list[float]:
    """Points lost by this way to share against none, at each width."""
    return [
        100 * (grid_accuracy(width, "none") - grid_accuracy(width, sharing)) for width in WIDTHS
    ]


def attention_against_feed_forward() -> str:
    """Points that sharing either half loses at the narrow width, in the mean; attention's are more,
    at both widths."""
    attention, feed_forward = costs("attention"), costs("feed_forward")
    assert all(a > f for a, f in zip(attention, feed_forward, strict=True))
    return f"{attention[0]:.1f} against {feed_forward[0]:.1f}"


def width_gains() -> list[float]:
    """Points gained by the wider embedding, for each way to share."""
    return [100 * (grid_accuracy(WIDTHS[1], s) - grid_accuracy(WIDTHS[0], s)) for s in SHARING]


def _means_by_width() -> dict[str, float]:
    """The mean of five tasks by embedding width in the paper's Table 3, all shared."""
    rows = printed("albert")["embedding_size"]["all_shared"]
    return {width: row[-1] for width, row in rows.items()}


def five_tasks_spread() -> float:
    means = _means_by_width().values()
    return max(means) - min(means)


def average(row: str, recipe: str = "dev-8") -> float:
    return glue_average(printed("glue")[row]["scores"], recipe)


def mean_of_five(row: str) -> float:
    """The paper's own mean of five tasks, as printed; its recipe gives the same."""
    overall = printed("albert")["overall"]
    scores = dict(zip(overall["columns"][:-1], overall[row][:-1], strict=True))
    assert abs(glue_average(scores, "ALBERT-5") - overall[row][-1]) < 0.06, row
    return float(overall[row][-1])


def sentence_score(task: str, tested: str) -> str:
    return percent(outcome(sentence_tasks(), tested)[task])


def past(task: str, tested: str) -> str:
    return percent(outcome(past_plateau(), tested)[task])


def paper_pairs(task: str, tested: str) -> float:
    row = printed("albert")["sentence_loss"]["intrinsic"][task]
    return float(row[("masked tokens", "NSP", "SOP").index(tested)])


def overall_mean(row: str) -> float:
    return float(printed("albert")["overall"][row][-1])


def throughput(row: str) -> str:
    return f"{printed('albert')['overall']['throughput'][row]:g}"


def best_width() -> tuple[str, str]:
    """The width with the best mean where all is shared, and its lead over the widest (Table 3)."""
    means = _means_by_width()
    best = max(means, key=lambda width: means[width])
    return best, f"{means[best] - means[max(means, key=int)]:.1f}"


def feed_forward_fraction() -> float:
    """The feed-forward half's fraction of a block."""
    H, F = base().hidden_size, base().intermediate_size
    half = 2 * H * F + F + H + 2 * H  # with its LayerNorm
    return half / block()


def wide_spread() -> float:
    """Points between the best and the worst way to share, at the wide E."""
    reached = [100 * grid_accuracy(WIDTHS[1], sharing) for sharing in SHARING]
    return max(reached) - min(reached)


def flops_of(model: str) -> str:
    """Billions of FLOPs for one text, of four digits at most."""
    flops = models()[model][1] / 1e9
    return f"{flops:.0f}" if flops > 100 else f"{flops:.1f}"


def block(size: str = "base") -> int:
    return parameter_breakdown(published("albert", size, AlbertConfig))["blocks"]


def downstream(task: str) -> float:
    return float(printed("albert")["sentence_loss"]["downstream"][task][-1])


NUMBERS: dict[str, Callable[[], Any]] = {
    "bag_nsp": lambda: f"{guessed('NSP', 'shared'):.0%}",
    "majority_nsp": lambda: f"{guessed('NSP', 'commoner label'):.0%}",
    "dev_bert": lambda: f"{average('bert_large_dev'):.2f}",
    "large_fewer": lambda: round(parameters(bert, "large") / albert_weights("large")),
    "late_sharing_wide": lambda: corner_behind((WIDTHS[1], "all"), (WIDTHS[1], "none")),
    "late_width_all": lambda: corner_behind((WIDTHS[0], "all"), (WIDTHS[1], "all")),
    "late_width_none": lambda: corner_behind((WIDTHS[0], "none"), (WIDTHS[1], "none")),
    "times_smaller": lambda: f"{parameters(bert, 'base') / albert_weights():.1f}",
    "flops_base": lambda: f"{models()['ALBERT-base'][1] / 1e9:.2f}",
    "xxlarge": lambda: millions(albert_weights("xxlarge")),
    "xxlarge_printed": lambda: ", ".join(
        f"{size // 10**6}M"
        for name, size in printed("albert")["sizes"].items()
        if name.startswith("xxlarge")
    ),
}

TYPED = {
    "128": "E of the published sizes, H of the small models, tokens of a text; worked by hand",
    "768": "H of the published sizes, worked by hand",
    "1,024": "widths of the paper's Table 12",
    "4,096": "widths of the paper's Table 12, its batch size, and H of xxlarge",
    "30,000": "V of the published sizes, worked by hand",
    "52.0": "the paper's Table 5",
    "61%": "DistilBERT's weights of BERT-base's",
    "78.9": "the paper's Table 5",
    "80.1": "the paper's Tables 2 to 5",
    "81.8": "the paper's Table 11",
    "82.1": "the paper's Table 11",
    "87.2": "the paper's Table 6",
    "88.7": "the paper's Tables 2 and 6",
    "89.4": "the paper's Table 9",
    "225": "a printed size of xxlarge",
    "233": "a printed size of xxlarge",
    "235": "a printed size of xxlarge",
}
"""Digits that mean something else where they are typed, or that a paper prints."""
