"""The numbers that sentences of lecture 08 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from course_lib import bert, count_parameters, published, to_transformers
from course_lib.family.deberta import DebertaConfig, DebertaV2Config, deberta, deberta_v3
from course_lib.kernels.disentangled import ScoreParts, score_parts, score_scale
from course_lib.kernels.positions import position_rows, row_table
from course_lib.lectures.lecture_08.exercises.extra import extra_weights
from course_lib.teaching.claims import printed, settled
from course_lib.teaching.numbers import in_letters, percent, signed, whole
from course_lib.teaching.results import outcome, stored
from course_lib.teaching.verdicts import in_points
from course_lib.text.counts import NeighbourCounts, Unigram
from course_lib.text.world import MicroWorld

from .claims import all_from, at_best, at_rates, paper_changes
from .cue_words import STEPS as CUE_STEPS
from .cue_words import TOKENS as TOKENS_OF_CUES
from .embedding_numbers import NUMBERS as OF_EMBEDDINGS
from .experiments import (
    ABSOLUTE,
    FULL,
    LENGTH,
    NARROW,
    QUEUE_SEEDS,
    SEEDS,
    STORIES,
    prepare,
    small_model,
)
from .reach_and_cost import SPAN as REACH_SPAN
from .reach_and_cost import TOKENS as REACH_TOKENS
from .reach_and_cost import pairs_of_two_rules
from .views.distance_buckets import DistanceRows, distance_rows
from .views.position_bias import (
    SPAN,
    TOY,
    TOY_KEY,
    TOY_POSITION_KEY,
    TOY_POSITION_QUERY,
    TOY_QUERY,
)
from .views.score_spread import score_statistics

TOKENS = 6


def rows_used() -> str:
    used = row_table(position_rows(TOKENS, SPAN)).unique().tolist()
    assert used == list(range(2 * SPAN))
    return f"{used[0]} to {used[-1]}"


QUERY_I, KEY_J = (2.0, 1.0), (1.0, 3.0)  # the notebook's: query of i, key of j

ROW_KEY, ROW_QUERY = (0.0, 2.0), (1.0, -1.0)


@lru_cache(maxsize=1)
def three_products() -> tuple[float, float, float]:
    """The three products, by the library: a text of one token has one distance."""
    vectors = (QUERY_I, KEY_J, ROW_KEY, ROW_QUERY)
    query, key, position_key, position_query = (torch.tensor(v).view(1, 1, 2) for v in vectors)
    parts = score_parts(query[None], key[None], position_key, position_query, torch.tensor([0]))
    first, second, third = (float(part) for part in parts if part is not None)
    return first, second, third


def scaled() -> float:
    one = torch.zeros(1)
    return sum(three_products()) / score_scale(len(QUERY_I), one, one)


QUERY = TOY.index("boat")


@lru_cache(maxsize=1)
def _toy() -> ScoreParts:
    query, key, position_key, position_query = (
        torch.tensor(x, dtype=torch.float32)[None]
        for x in (TOY_QUERY, TOY_KEY, TOY_POSITION_KEY, TOY_POSITION_QUERY)
    )
    rows = position_rows(len(TOY), SPAN)
    return score_parts(query[None], key[None], position_key, position_query, rows)


def toy_maps() -> list[Tensor]:
    """The three maps and their sum, each (T, T)."""
    maps = [part[0, 0] for part in _toy() if part is not None]
    return [*maps, maps[0] + maps[1] + maps[2]]


def _toy_weights() -> list[Tensor]:
    """The query token's attention weights: by content alone, and by the sum; (T,) each."""
    content, *_, total = toy_maps()
    one = torch.zeros(1)
    return [
        (content[QUERY] / score_scale(2)).softmax(-1),
        (total[QUERY] / score_scale(2, one, one)).softmax(-1),
    ]


def attends_most(which: int) -> str:
    """The key to which the query token attends most, with its attention weight."""
    weights = _toy_weights()[which]
    best = int(weights.argmax())
    return f"*{TOY[best]}* ({float(weights[best]):.0%})"


def same_row() -> str:
    """The number that two keys share in the second map, as the slide says."""
    line = toy_maps()[1][QUERY].tolist()
    assert line[0] == line[1] and TOY[:2] == ("the", "red")
    return whole(line[0])


SHOWN_TOKENS, SHOWN_SPAN, SHOWN_FURTHEST = 48, 8, 32


def example_rows() -> DistanceRows:
    """The small table of the second generation."""
    return distance_rows(SHOWN_TOKENS, SHOWN_SPAN, SHOWN_FURTHEST)


@lru_cache(maxsize=1)
def v3_rows() -> DistanceRows:
    """Of the released v3, in the longest text it is trained on."""
    config = published("deberta-v3", "base", DebertaV2Config)
    return distance_rows(config.max_positions, config.span, config.furthest)


def v3_sharing() -> str:
    """How many distances share the row of the longest."""
    first, last = v3_rows().sharing(v3_rows().most)
    return f"{first} to {last}"


def _counted(model: torch.nn.Module, *parts: str) -> int:
    """Weights whose names hold one of the parts."""
    return sum(p.numel() for name, p in model.named_parameters() if any(x in name for x in parts))


@lru_cache(maxsize=1)
def sizes_of_models() -> dict[str, tuple[int, int, int, int]]:
    """For each model: all weights, token embeddings, positions or distances, their projections."""
    sizes = {}
    with torch.device("meta"):  # shapes without memory
        models = {"BERT-base": bert("base"), "DeBERTa-base": deberta("base"),
                  "DeBERTa-v3-base": deberta_v3("base")}  # fmt: skip
    for name, model in models.items():
        sizes[name] = (
            count_parameters(model) - _counted(model, "pooler."),  # DeBERTa has none
            _counted(model, "embeddings.token."),
            _counted(model, "embeddings.position", "positions."),
            _counted(model, "position_key", "position_query"),
        )
    return sizes


def projection_millions() -> str:
    config = published("deberta", "base", DebertaConfig)
    L, d = config.num_layers, config.hidden_size
    weights = sizes_of_models()["DeBERTa-base"][3]
    assert weights == 2 * L * d * d + L * d  # two matrices a layer, and one bias
    return f"{weights / 1e6:.1f}"


SMALL = {
    "vocab_size": 2_000, "num_layers": 3, "hidden_size": 96, "num_heads": 4,
    "intermediate_size": 384,
}  # fmt: skip


@lru_cache(maxsize=1)
def apart_from_theirs() -> tuple[float, float]:
    """The largest difference of an output from transformers' own, first and second generation."""
    torch.manual_seed(0)
    ids, differences = torch.randint(5, 2_000, (3, 21)), []
    second = {"span": 8, "furthest": 32, "convolution": 3}
    for model in (deberta("base", span=16, **SMALL), deberta_v3("base", **second, **SMALL)):
        with torch.no_grad():
            ours = model.eval()(ids).last_hidden_state
            theirs = to_transformers(model).eval()(ids).last_hidden_state
        differences.append(float((ours - theirs).abs().max()))
    assert max(differences) < 1e-5
    return differences[0], differences[1]


@lru_cache(maxsize=1)
def which_delta() -> tuple[Any, Any, tuple[int, ...]]:
    """Distances at which row k + 1 acts in transformers, (c2p, p2c) of both generations; and those
    at which the paper's form cannot be had by turning the table (k = 8, 20 tokens)."""
    first, second, unlike = settled("08", "δ(j, i)").value
    assert first == second == ((1,), (1,))  # as the slide says
    return first, second, unlike


@lru_cache(maxsize=2)
def level(rule: type[Unigram] | type[NeighbourCounts]) -> float:
    """Masked-token accuracy of a rule that counts in the training stories, on the held-out ones."""
    return prepare().counted(rule)


def masked_accuracy(name: str) -> list[float]:
    return outcome(stored("08_positions"), "masked_accuracy")[name]


def best_beside(name: str, other: str) -> str:
    """Points between two recipes, each at its best rate, with the rule's word."""
    return in_points(at_best(name), at_best(other))


def ahead(better: str, worse: str) -> list[float]:
    """Points between two recipes, a number a seed that both have."""
    runs = stored("08_positions")["runs"]
    ours, other = (
        {run["seed"]: run["masked_accuracy"] for run in runs[name]} for name in (better, worse)
    )
    return [100 * (ours[seed] - other[seed]) for seed in sorted(ours.keys() & other.keys())]


def flops_ratio(name: str, to: str) -> float:
    """FLOPs of a recipe's whole training, another's being 1."""
    flops = stored("08_positions")["flops_a_step"]
    return float(flops[name] * steps(name) / (flops[to] * steps(to)))


def steps(name: str) -> int:
    return int(stored("08_positions")["recipes"][name]["steps"])


def step_time(name: str = "DeBERTa") -> float:
    """Times as long as a step of BERT."""
    seconds = stored("08_positions")["step_seconds"]
    return float(seconds[name] / seconds["BERT"])


def no_distances() -> str:
    values = masked_accuracy("no distances")
    return f"{min(values):.0%} to {max(values):.0%}"


def gain(better: str, worse: str) -> str:
    """Points between two recipes in the mean, above zero as page and slides say."""
    points = mean(ahead(better, worse))
    assert points > 0, (better, worse, points)
    return f"{points:.1f}"


def decoder_time() -> str:
    """Of the time that a step of DeBERTa takes longer than BERT's, the decoder's."""
    return f"{(step_time() - step_time('without decoder')) / (step_time() - 1):.0%}"


@lru_cache(maxsize=1)
def more_weights() -> str:
    """The small DeBERTa's weights over the small BERT's."""
    world = MicroWorld.load()
    ours, usual = (count_parameters(small_model(one, world, 0)) for one in (FULL, ABSOLUTE))
    return f"{ours / usual - 1:.0%}"


def added_weights() -> str:
    """Millions of weights of the first generation for distances: projections and table."""
    _, _, table, projections = sizes_of_models()["DeBERTa-base"]
    return f"{(table + projections) / 1e6:.1f}"


def second_saves() -> str:
    """Millions of weights, token embeddings aside, that the second generation has fewer."""
    first, second = (sizes_of_models()[name] for name in ("DeBERTa-base", "DeBERTa-v3-base"))
    return f"{((first[0] - first[1]) - (second[0] - second[1])) / 1e6:.1f}"


def cost(which: int) -> str:
    """FLOPs that the position terms add at base size and 512 tokens: products alone; with the
    projection of the table at batch 1; at batch 32."""
    return f"{settled('08', '30% more').value[which]:.0%}"


def differ(tokens: int) -> float:
    """The fraction of pairs where transformers' rows of v3 are not the authors'."""
    config = published("deberta-v3", "base", DebertaV2Config)
    return pairs_of_two_rules(tokens, config.span, config.furthest)


WITH_POSITIONS = {
    "BERT": "BERT",
    f"distances to {NARROW}, place side by side": "side by side",
    f"distances to {NARROW}, decoder": "decoder",
}
FAR, NEAR = f"distances to {LENGTH}, no decoder", f"distances to {NARROW}, no decoder"


def named(name: str) -> list[float]:
    """The fraction of the queue that each seed names."""
    return outcome(stored("08_queue"), "accuracy")[name]


def all_named() -> str:
    """All name all workers, in every seed, with positions or with distances alone."""
    assert all(min(named(name)) > 0.99 for name in (*WITH_POSITIONS, FAR, NEAR))
    return workers()


def workers() -> str:
    assert len(stored("08_queue")["words"]) == 8  # as the guesses say
    return "eight"


def accuracy(recipe: str) -> str:
    return percent(masked_accuracy(recipe))


def superglue(who: str) -> float:
    return float(printed("deberta")["superglue"][who])


def over_roberta(task: int) -> str:
    """Points of MNLI, SQuAD 2.0 or RACE over RoBERTa on the same text, by Table 4."""
    return signed(-paper_changes("roberta")[task])


def spread(which: int) -> str:
    """Of the scores of three random terms after the division by √d, or by √(3d)."""
    statistics = score_statistics(64)
    scale = statistics.scales[which]
    return f"{statistics.variance(scale):.2f} (entropy {statistics.entropy(scale):.2f} nats)"


def squad_gain(where: str) -> str:
    """Points of F1 on SQuAD 2.0 over RoBERTa, as the abstract or Table 2 has it."""
    ours, theirs = printed("deberta")["large"]["squad_2"][0], printed("deberta")["roberta_cells"]
    return signed(ours - theirs[where])


NUMBERS: dict[str, Callable[[], Any]] = {
    "concat_from": lambda: all_from(f"distances to {NARROW}, place side by side"),
    "decoder_from": lambda: all_from(f"distances to {NARROW}, decoder"),
    "paper_reach": lambda: settled("08", "24,528 tokens").value[0],
    "shown_dozen": lambda: "{} to {}".format(*example_rows().sharing(12)),
    **OF_EMBEDDINGS,
}

TYPED = {
    "600": "tokens of a long text, whose fraction of far pairs is computed",
    "30%": "printed in the paper's appendix A.7, and cited with it",
    "90.3": "printed in the paper: SuperGLUE, the ensemble",
    "89.8": "printed in the paper: SuperGLUE, the human score",
    "89.9": "printed in the paper: SuperGLUE, one model; and the mean of a printed row",
    "90.00": "printed in the paper's Table 1",
    "1,024": "2 · 512, as arithmetic that quizzes ask for",
    "512": "tokens of a sequence; k or furthest distance given in a question",
    "128": "the width of the small models; 2 · 64 and 256 / 2, as arithmetic",
    "256": "k, given in a question",
    "511": "512 − 1, as arithmetic",
    "786,432": "2 · 512 · 768, as arithmetic",
}
