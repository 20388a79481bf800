"""What is claimed about SpanBERT and both ERNIEs: what is masked, what is predicted, what helps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import prod
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from course_lib.config import BertConfig
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.ernie import ErnieConfig, ernie_encoder
from course_lib.family.ernie_tsinghua import FusionConfig, FusionEncoder, FusionForPreTraining
from course_lib.heads import BertForPreTraining, BertForSpanPreTraining, SpanBoundaryHead
from course_lib.objectives.entity_alignment import alignment_loss, spoil_alignments
from course_lib.objectives.knowledge_masking import make_ernie_pairs
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import pretraining_loss
from course_lib.objectives.sequences import SpecialIds
from course_lib.objectives.span_boundary import spanbert_loss
from course_lib.teaching.claims import Settled, all_near, compared, printed, result
from course_lib.teaching.numbers import signed
from course_lib.train.schedule import warmup_then_linear

from .views.spans import span_lengths

ANSWERS = "F1 of answers, fine-tuned on 400 questions"
ENTITIES = "F1 of entities, fine-tuned on 20 sentences"
WHOSE = "F1 of whose a pronoun is, fine-tuned on 40 questions"
SCHEDULE_POINTS = 10_000  # of the schedule of the learning rate that are summed

# ================================================================ SpanBERT


def boundary_alone() -> Settled:
    """How far the logits of a span's tokens differ with position vectors, and without; the terms of
    the loss beside the total."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32,
        max_positions=16, initializer_range=0.3,
    )  # fmt: skip
    model = BertForSpanPreTraining(Encoder(config)).eval()
    with torch.no_grad():
        spreads = [_spread(model.sbo)]
        model.sbo.position.weight.zero_()
        spreads.append(_spread(model.sbo))
        ids, labels = torch.arange(5, 17)[None], torch.tensor([9, 10])
        boundaries = torch.tensor([[3, 6, 0], [3, 6, 1]])
        out = model(ids, predict_at=torch.tensor([4, 5]), boundaries=boundaries)
        losses = spanbert_loss(out, {"labels": labels, "sbo_labels": labels})
    terms = tuple(name for name in losses if name != "total")
    detail = (
        f"logits of five tokens of a span lie up to {spreads[0]:.1f} apart with position vectors, "
        f"{spreads[1]:.1f} without; the loss adds up {' and '.join(terms)}"
    )
    # Not 0.0: on several threads equal rows of a product may round apart.
    return Settled((spreads[0] > 0.1, spreads[1] < 1e-4, terms), detail)


def _spread(head: SpanBoundaryHead) -> float:
    """How far apart the logits of five tokens of one span lie, at most."""
    size = head.first.out_features
    before, behind = torch.linspace(-1, 1, 2 * size).view(2, 1, size).expand(2, 5, size)
    logits = head(before, behind, torch.arange(5))  # (5, V)
    return float((logits.amax(0) - logits.amin(0)).max())


def _table(name: str) -> dict[str, dict[str, float]]:
    return {k: v for k, v in printed("spanbert")[name].items() if isinstance(v, dict)}


def masks_compared() -> Settled:
    """Points of geometric spans over the best of the other four, by column of Table 6."""
    rows = _table("masks")
    spans = rows.pop("geometric")
    ahead = {
        column: round(score - max(row[column] for row in rows.values()), 1)
        for column, score in spans.items()
    }
    best = max(rows, key=lambda name: rows[name]["coref"])
    points_text = ", ".join(f"{column} {points:+.1f}" for column, points in ahead.items())
    return Settled((*ahead.values(), best), f"{points_text}; best on coreference: {best}")


def three_changes() -> Settled:
    """SQuAD 2.0 points of each change; of the last, coreference points and columns that gain."""
    tokens, steps = _table("masks")["subword"], _table("steps")
    two, one, sbo = (steps[name] for name in ("two_and_nsp", "one", "one_and_sbo"))
    rows = (tokens["squad_2"], two["squad_2"], one["squad_2"], sbo["squad_2"])
    points = tuple(round(b - a, 1) for a, b in pairwise(rows))
    coref = round(sbo["coref"] - one["coref"], 1)
    gains = sum(sbo[column] > one[column] for column in one)
    detail = "spans {:+.1f}, one sequence without NSP {:+.1f}, SBO {:+.1f}".format(*points)
    detail += f"; coreference, SBO {coref:+.1f}; SBO gains in {gains} of {len(one)} columns"
    return Settled((*points, coref, gains), detail)


def test_sets() -> Settled:
    """F1 points on SQuAD 2.0 over the released BERT, the authors' own, and theirs on single
    sequences."""
    ours, *others = (
        _table("test")[name]["squad_2"][1]  # type: ignore[index]
        for name in ("spanbert", "google_bert", "our_bert", "bert_1seq")
    )
    ahead = tuple(round(ours - other, 1) for other in others)
    return Settled(ahead, "{:+.1f} over BERT, {:+.1f} and {:+.1f} over their own".format(*ahead))


def decay_settled() -> Settled:
    """The fraction of its size that a weight without a gradient keeps, with either decay."""
    training, decay = printed("spanbert")["training"], printed("spanbert")["decay"]
    warm_up = training["warm_up"] / training["steps"]
    rates = [
        training["learning_rate"] * warmup_then_linear(n, SCHEDULE_POINTS, warm_up)
        for n in range(SCHEDULE_POINTS)
    ]
    steps = training["steps"] // SCHEDULE_POINTS
    fractions = tuple(
        prod((1 - rate * decay[who]) ** steps for rate in rates) for who in ("command", "paper")
    )
    return Settled(fractions, "kept: {:.0%} with 0.01, {:.6f} of it with 0.1".format(*fractions))


def by_seed(measure: str, against: str, runs: Sequence[str], called: str) -> Settled:
    """What was reached with other masks, less what was with `against`: a point a run and seed."""
    scores = result("09_masks")["runs"]
    points = tuple(
        one[measure] - base[measure]
        for run in runs
        for one, base in zip(scores[run], scores[against], strict=True)
    )
    detail = compared("09_masks", measure, runs, against, called).detail
    return Settled(points, f"{detail}; by seed {', '.join(signed(100 * x) for x in points)}")


def sbo_settled(measure: str, called: str) -> Settled:
    """What SBO adds: to spans, then to single tokens, a point a seed."""
    gains = [by_seed(measure, to, [f"{to} + SBO"], called) for to in ("spans", "tokens")]
    return Settled(gains[0].value + gains[1].value, "; ".join(one.detail for one in gains))


def whose(run: str, against: str) -> Settled:
    """Points on whose a pronoun is: persons of the same sex, then of different ones, by seed."""
    gains = [
        by_seed(f"whose_{kind}_mean", against, [run], f"{WHOSE}, {kind} sex")
        for kind in ("same", "different")
    ]
    return Settled(gains[0].value + gains[1].value, "; ".join(one.detail for one in gains))


def longer() -> Settled:
    """What spans + SBO have, less spans, after 3,000 and after 6,000 steps: masked tokens, whole
    spans, whole names."""
    measures = ("masked_accuracy", "span_exact", "name_exact")
    runs = [
        [result(name)["runs"][run][0] for run in ("spans", "spans + SBO")]
        for name in ("09_masks", "09_longer")
    ]
    points = tuple(sbo[m] - spans[m] for spans, sbo in runs for m in measures)
    steps_text = "; ".join(
        f"{steps} steps: " + ", ".join(f"{spans[m]:.0%} and {sbo[m]:.0%}" for m in measures)
        for steps, (spans, sbo) in zip(("3,000", "6,000"), runs, strict=True)
    )
    return Settled(
        points, f"masked tokens, whole spans, whole names, spans without and with SBO, one seed, "
        f"{steps_text}",
    )  # fmt: skip


# ================================================================ Baidu's ERNIE


_TINY: dict[str, Any] = dict(
    vocab_size=60, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32, max_positions=16
)


def two_models() -> Settled:
    """Weight tensors that read entities, in Baidu's and in Tsinghua's, and each loss's terms."""
    torch.manual_seed(0)
    baidu = BertForPreTraining(ernie_encoder(ErnieConfig(**_TINY)))
    config = FusionConfig(**_TINY, entity_size=8, entity_heads=2, layers=("text", "fusion"))
    tsinghua = FusionForPreTraining(FusionEncoder(config, torch.randn(5, 8), pooler=True))
    ids, predict_at = torch.arange(5, 15)[None], torch.tensor([3, 4])
    targets = {"labels": ids[0, predict_at], "next_sentence_label": torch.tensor([0])}
    linked = torch.full_like(ids, -1)
    linked[0, 6] = 2
    entity = {"entity_ids": linked, "align_at": torch.tensor([6]), "candidates": torch.tensor([2])}
    with torch.no_grad():
        theirs = pretraining_loss(baidu(ids, predict_at=predict_at), targets)
        out = tsinghua(ids, predict_at=predict_at, **entity)
        ours = alignment_loss(out, {**targets, "entity": torch.tensor([0])})
    terms = tuple(tuple(sorted(set(losses) - {"total"})) for losses in (theirs, ours))
    reads = tuple(
        sum("entity" in name or "dea" in name for name, _ in model.named_parameters())
        for model in (baidu, tsinghua)
    )
    detail = (
        f"weight tensors that read entities: {reads[0]} in Baidu's, {reads[1]} in Tsinghua's; "
        f"losses {' + '.join(terms[0])}, and {' + '.join(terms[1])}"
    )
    return Settled((reads[0], reads[1] > 0, *terms), detail)


def labels_settled() -> Settled:
    """How many of the same pairs have the label turned round, and how many there are."""
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=60)
    documents = [[[5 + n, 6 + k, 7] for k in range(6)] for n in range(8)]
    bert, baidu = (make(documents, special, length=24) for make in (make_pairs, make_ernie_pairs))
    same = torch.equal(bert.input_ids, baidu.input_ids)
    first, second = bert.next_sentence_label, baidu.next_sentence_label
    assert first is not None and second is not None
    turned = int((first + second == 1).sum())
    return Settled((same, turned == len(first)), f"{turned} of {len(first)} labels turned round")


def their_defaults() -> Settled:
    """Activation, positions and vocabulary of transformers' defaults."""
    from transformers import ErnieConfig as Theirs

    config = Theirs()
    defaults = config.hidden_act, config.max_position_embeddings, config.vocab_size
    settings = printed("ernie")["settings"]
    detail = "{}, {} positions, {:,} rows; released: {}, {} and {:,}"
    released = (settings[name] for name in ("hidden_act", "positions", "rows"))
    return Settled(defaults, detail.format(*defaults, *released))


def chinese() -> Settled:
    """Points over BERT on the test sets, in their order, and in reading comprehension."""
    paper = printed("ernie")
    pairs = {k: v for k, v in paper["test"].items() if isinstance(v, list)}
    pairs["dureader"] = paper["reading"]["dureader"]
    points = {name: round(ours - bert, 1) for name, (ours, bert) in pairs.items()}
    return Settled(
        tuple(points.values()), ", ".join(f"{name} {x:+.1f}" for name, x in points.items())
    )


def spelling_alone() -> Settled:
    """Words that a table of words finds with one character masked and with all of them, and the
    masked characters that leave another character of their word readable."""
    stored = result("09_chinese")
    alone = stored["words_alone"]
    value = alone["inside"], alone["word_exact"], stored["given_away"]
    detail = (
        "a table of words finds {:.0%} with one character masked, {:.0%} with all; {:.0%} of "
        "characters masked one by one leave another of their word readable"
    )
    return Settled(value, detail.format(*value))


def words_in_chinese() -> Settled:
    """Facts and whole words right after masking whole words or names, less after characters; and
    single characters."""
    units = ("words", "names")
    gains = [
        compared("09_chinese", measure, units, "characters", called)
        for measure, called in (
            ("fact_exact", "facts"),
            ("word_exact", "whole words"),
            ("character", "single characters"),
        )
    ]
    return Settled(
        tuple(gain for one in gains for gain in one.value), "; ".join(one.detail for one in gains)
    )


def names_in_chinese() -> Settled:
    """Facts and people right after masking names as units, less after whole words."""
    gains = [
        compared("09_chinese", measure, ("names",), "words", called)
        for measure, called in (("fact_exact", "facts"), ("person_exact", "people"))
    ]
    return Settled(tuple(one.value[0] for one in gains), "; ".join(one.detail for one in gains))


# ================================================================ Tsinghua's ERNIE


@cache
def fusion_parameters() -> int:
    """Weights of the published size with its three heads, the entities' vectors not counted."""
    with torch.device("meta"):
        return count_parameters(FusionForPreTraining(FusionEncoder(FusionConfig(), pooler=True)))


def fates_settled() -> Settled:
    """Of mentions of two tokens, the fractions replaced, taken away and kept."""
    entities, count = 500, 20_000
    one = torch.arange(count) % entities
    entity_ids = torch.stack([one, one, torch.full((count,), -1)], dim=1)  # two tokens, then none
    spoilt = spoil_alignments(entity_ids, entities, torch.Generator().manual_seed(0))
    first, second = spoilt[:, 0], spoilt[:, 1]
    fates: tuple[Tensor, ...] = ((first >= 0) & (first != one), first < 0, first == one)
    fractions = tuple(float(fate.float().mean()) for fate in fates)
    detail = "{:.1%} replaced, {:.1%} taken away, {:.1%} kept".format(*fractions)
    return Settled((*fractions, torch.equal(first, second)), f"of {count:,} mentions {detail}")


def entity_tasks() -> Settled:
    tasks = printed("ernie_tsinghua")["tasks"]
    points = {k: round(v[1] - v[0], 2) for k, v in tasks.items() if isinstance(v, list)}
    detail = ", ".join(f"{name.replace('_', ' ')} {x:+.2f}" for name, x in points.items())
    return Settled(tuple(points.values()), detail)


def ranks_settled() -> Settled:
    """Mean rank of the right tail: of facts that were read, not read, and with random vectors."""
    splits = result("09_fusion")["ranks"]
    ranks = {name: mean(one[name] for one in splits) for name in ("read", "not read", "random")}
    detail = ", ".join(f"{name} {rank:.1f}" for name, rank in ranks.items())
    detail = f"mean rank among 384: {detail} ({len(splits)} splits)"
    return Settled(tuple(ranks.values()), detail)


OTHER_VECTORS = ("shuffled", "without", "none")


def vectors(task: str, against: str = "right", runs: Sequence[str] = OTHER_VECTORS) -> Settled:
    """Accuracy with other entity vectors, less that with `against`."""
    return compared("09_fusion", task, runs, against, f"accuracy, {task} labels")


def near_fates(value: tuple[Any, ...]) -> bool:
    return all_near((0.05, 0.15, 0.80), 0.01)(value[:3]) and value[3] is True
