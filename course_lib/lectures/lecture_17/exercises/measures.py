"""Exercise 17.3: nDCG, reciprocal rank and recall of one query's ranking."""

from __future__ import annotations

import math

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def discounted(gains: list[int]) -> float:
    """DCG: each gain divided by log2(1 + rank)."""
    return sum(gain / math.log2(1 + rank) for rank, gain in enumerate(gains, 1))


def measures(relevant: dict[str, int], ranking: list[str], k: int) -> tuple[float, float, float]:
    """nDCG@k, reciprocal rank and recall@k."""
    gains = [relevant.get(document, 0) for document in ranking[:k]]
    best = sorted(relevant.values(), reverse=True)[:k]
    ranks = [rank for rank, gain in enumerate(gains, 1) if gain > 0]
    reciprocal = 1 / ranks[0] if ranks else 0.0
    recall = len(ranks) / sum(gain > 0 for gain in relevant.values())
    return discounted(gains) / discounted(best), reciprocal, recall


# ---------------------------------------------------------------- cases


def case(draw: Draw, places: str, missing: list[int], k: int) -> Case:
    """places: the gain at each rank, "-" where nobody judged; missing: gains of documents that the
    ranking lacks."""
    names = draw.python.sample("abcdefghijklmnopqrstuvwxyz", len(places) + len(missing))
    gains = [*places, *map(str, missing)]
    judged = [(name, int(gain)) for name, gain in zip(names, gains, strict=True) if gain != "-"]
    draw.python.shuffle(judged)
    return dict(judged), names[: len(places)], k


def by_hand(draw: Draw) -> list[Case]:
    relevant = {"a": 2, "b": 1}
    return [(relevant, ["c", "b", "a"], 3), (relevant, ["c", "b", "a"], 2)]


DISCOUNT = "gain / math.log2(1 + rank)"
GAINS = "[relevant.get(document, 0) for document in ranking[:k]]"
BEST = "sorted(relevant.values(), reverse=True)[:k]"
RANKS = "[rank for rank, gain in enumerate(gains, 1) if gain > 0]"
RECIPROCAL = "1 / ranks[0] if ranks else 0.0"
RECALL = "len(ranks) / sum(gain > 0 for gain in relevant.values())"
NDCG = "discounted(gains) / discounted(best)"

MEASURES = Exercise(
    **written("17.3"),
    solution=measures,
    helpers=(discounted,),
    returns=(Number("nDCG"), Number("reciprocal rank"), Number("recall")),
    see="course_lib.train.ranking_metrics.ranking_scores takes a whole run, and counts equal "
    "scores as the mean over all their orders",
    stages=(
        Stage("three documents, on paper", by_hand),
        Stage("everything relevant is ranked",
              each(case, ("-2-13--", [], 7), ("1--2", [], 4), ("--3-1-2-", [], 5))),
        Stage("judged, and not relevant",
              each(case, ("0-210-", [], 6), ("00-1-3", [], 6), ("-0201", [], 3))),
        Stage("relevant documents that the ranking lacks, or has beyond k",
              each(case, ("-1--2", [3, 1, 1], 5), ("2-0-13", [2, 0, 1, 1], 2), ("0--2", [1], 3))),
        Stage("a ranking shorter than k", each(case, ("-1", [2, 1], 10), ("2", [1, 0, 1], 5))),
    ),
    mistakes=(
        Edit(DISCOUNT, "gain / rank", "You divide gains by the rank. Divide by log2(1 + rank), "
             "which grows more slowly."),
        Edit(DISCOUNT, "gain / math.log2(max(2, rank))", "Your ranks 1 and 2 have the same "
             "discount, as with log2(rank). Divide by log2(1 + rank): 1, 1.58, 2 …"),
        Edit(DISCOUNT, "gain / math.log2(2 + rank)", "Your ranks are one too large in the "
             "logarithm: rank 1 has no discount, because log2(2) = 1."),
        Edit(DISCOUNT, "(2**gain - 1) / math.log2(1 + rank)", "Your gains are 2^gain − 1, another "
             "definition of nDCG. Here the gain itself counts. (Papers that print nDCG may differ "
             "in this.)"),
        Edit(DISCOUNT, "(gain > 0) / math.log2(1 + rank)", "Every relevant document counts 1 in "
             "your nDCG. Its gain counts: 3 is more than 1."),
        Edit(NDCG, "discounted(gains)", "This is DCG. Divide by the DCG of the best order, so that "
             "a perfect ranking has 1."),
        Edit(BEST, "sorted(gains, reverse=True) if any(gains) else [1]", "Your best order has only "
             "the ranked documents. It must have *all* relevant ones, so that leaving one out "
             "costs something."),
        Edit(BEST, "sorted(relevant.values(), reverse=True)", "Your best order does not end at k: "
             "if more than k documents are relevant, even a perfect ranking has less than 1."),
        Edit(BEST, "list(relevant.values())[:k]", "Your best order is that of the judgements. It "
             "must begin with the largest gain."),
        Edit(GAINS, "[relevant.get(document, 0) for document in ranking]", "You read beyond k. "
             "Only the first k documents count, in all three measures."),
        Edit(RANKS, "[rank for rank, gain in enumerate(gains, 1) if ranking[rank - 1] in relevant]",
             "A document judged with gain 0 is relevant in your answer. To be relevant, its gain "
             "must be above 0."),
        Edit(RECIPROCAL, "sum(1 / rank for rank in ranks)", "You add up over all relevant "
             "documents. Only the *first* of them counts."),
        Edit(RECIPROCAL, "1 / (1 + gains.index(max(gains))) if ranks else 0.0", "You take the rank "
             "of the largest gain. Take the first relevant document of any gain."),
        Edit(RECIPROCAL, "1 / ranks[0] if ranks else 1 / (k + 1)", "If no relevant document is "
             "among the first k, the reciprocal rank is 0."),
        Edit(RECALL, "len(ranks) / k", "This is precision, the fraction of the k that is relevant. "
             "Recall divides by the number of relevant documents."),
        Edit(RECALL, "len(ranks) / min(k, sum(gain > 0 for gain in relevant.values()))", "You "
             "divide by k if more than k documents are relevant. Recall divides by all relevant "
             "ones, so it cannot reach 1 there."),
        Edit(RECALL, "len(ranks) / len(relevant)", "You divide by all judged documents. Those "
             "with gain 0 are not relevant."),
        Edit(RECALL, "sum(gains) / sum(relevant.values())", "Your recall weights documents by "
             "their gains. Each relevant one counts 1."),
    ),
)  # fmt: skip
