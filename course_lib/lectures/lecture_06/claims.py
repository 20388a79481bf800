"""What is claimed about DistilBERT and TinyBERT: losses, size, speed, and what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from statistics import mean, median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checkpoints import KNOWN
from course_lib.config import BertConfig, encoder_flops, published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.bert import bert
from course_lib.family.distilbert import DistilBertConfig, distilbert, distilbert_encoder
from course_lib.family.tinybert import fit_matrix, tinybert
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.distillation import soft_target_loss
from course_lib.objectives.distillation import (
    PUBLISHED_WEIGHTS,
    attention_loss,
    distilbert_loss,
    hidden_loss,
)
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import (
    Settled,
    compared,
    parameters,
    printed,
    processor_time_ratios,
    result,
)
from course_lib.teaching.memory import activation_bytes
from course_lib.teaching.results import in_words, outcome
from course_lib.train.distilling import DistillationPair

TOKENS = 128  # of the text whose FLOPs are counted
ADAM = 16  # bytes a weight of float32 takes in training: itself, its gradient, two moments

# ================================================================ the loss


def _gradient(temperature: float) -> float:
    """Norm of the gradient of a soft-target loss as it is in the code, with T²."""
    draw = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(64, 30, generator=draw) for _ in range(2))
    student.requires_grad_()
    loss = soft_target_loss(student, 2 * teacher, temperature)
    return float(torch.autograd.grad(loss, student)[0].norm())


def temperature_squared() -> Settled:
    """Gradient at T=8 as a fraction of that at T=1: without the factor T², and with it."""
    of_one = {T: _gradient(T) / _gradient(1) for T in (2, 8)}
    detail = ", ".join(f"at T={T} {norm / T**2:.1%} without T²" for T, norm in of_one.items())
    detail = f"gradient of the soft targets, of that at T=1: {detail}, {of_one[8]:.0%} with it"
    return Settled((of_one[8] / 8**2, of_one[8]), detail)


@lru_cache(maxsize=1)
def _triple() -> dict[str, float]:
    """The parts of the published loss for a random student, eight wide, and its teacher."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "vocab_size": 30, "hidden_size": 8, "num_heads": 2, "intermediate_size": 32,
        "max_positions": 16, "hidden_dropout": 0.0, "attention_dropout": 0.0,
    }  # fmt: skip
    student = BertForMaskedLM(distilbert_encoder(DistilBertConfig(num_layers=1, **shape)))
    teacher = BertForMaskedLM(Encoder(BertConfig(num_layers=2, **shape)))
    ids, at = torch.arange(5, 21)[None], torch.tensor([2, 9])
    with torch.no_grad():
        out = DistillationPair(student, teacher)(ids, predict_at=at)
        parts = distilbert_loss()(out, {"labels": ids.flatten()[at]})
    return {name: float(value) for name, value in parts.items() if name != "total"}


def weights_settled() -> Settled:
    """Each loss's part of the sum, by the command for one GPU and by that for four."""
    parts, lines = [], []
    for command, gpus in (("weights", "one GPU"), ("weights_four_gpus", "four GPUs")):
        weights = {name: printed("distilbert")[command][name] for name in PUBLISHED_WEIGHTS}
        parts += [round(weight / sum(weights.values()), 3) for weight in weights.values()]
        names = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
        lines.append(f"{gpus}: {names}; of their sum " + ", ".join(f"{x:.1%}" for x in parts[-3:]))
    return Settled(tuple(parts), ". ".join(lines))


def left_out(*rows: str) -> Settled:
    """Points lost by DistilBERT's Table 4 where a part is left out: of these rows, else of all."""
    names = {"without_soft": "soft targets", "without_cosine": "cosine"}
    names |= {"without_mlm": "MLM", "fresh_weights": "the teacher's weights"}
    lost = {row: printed("distilbert")["ablation"][row] for row in rows or names}
    detail = ", ".join(f"without {names[row]} {points:+.2f}" for row, points in lost.items())
    return Settled(tuple(lost.values()), f"points of the macro score: {detail}")


def terms_of_the_code() -> Settled:
    """A name, an output and a loss, as the code of the source lecture has them."""
    torch.manual_seed(0)
    with torch.no_grad():
        out = bert("tiny", vocab_size=50)(torch.arange(5, 9)[None])
    logits = torch.randn(4, 50)
    p, log_p = logits.softmax(-1), logits.log_softmax(-1)
    wrong, right = (float(F.kl_div(x, p, reduction="batchmean")) for x in (p, log_p))
    verdicts = ("bert-base" in KNOWN, hasattr(out, "logits"), abs(wrong) < 1e-6, abs(right) < 1e-6)
    detail = (
        f"an encoder gives {', '.join(name for name, x in vars(out).items() if x is not None)} "
        f"and no logits; torch's kl_div of two equal distributions is {wrong:.2f} when given the "
        f"student's probabilities, {abs(right):.2f} when given their logarithms"
    )
    return Settled(verdicts, detail)


def sign() -> Settled:
    """The printed Σ t·log s: of a student that agrees with its teacher, of one that does not."""
    teacher = torch.tensor([0.7, 0.2, 0.1])
    same, other = teacher, torch.tensor([0.1, 0.2, 0.7])
    printed_form = tuple(float((teacher * student.log()).sum()) for student in (same, other))
    detail = f"Σ t·log s is {printed_form[0]:.2f} where both agree, {printed_form[1]:.2f} where not"
    return Settled(printed_form, f"{detail}: minimised as printed, it drives the student away")


# ================================================================ size and speed


def smaller() -> Settled:
    ours, theirs = parameters(distilbert, "base"), parameters(bert, "base")
    detail = f"{ours:,} against {theirs:,}: {1 - ours / theirs:.1%} fewer"
    return Settled(1 - ours / theirs, detail)


def what_was_cut() -> Settled:
    """BERT-base less DistilBERT: six blocks, segment embeddings, pooler, and what is left over."""
    config = published("bert", "base")
    with torch.device("meta"):
        whole = bert()
    assert whole.pooler is not None
    six = count_parameters(whole.stack) * 6 // config.num_layers
    pooler = count_parameters(whole.pooler)
    segments = config.type_vocab_size * config.hidden_size
    cut = parameters(bert, "base") - parameters(distilbert, "base")
    rest = cut - six - segments - pooler
    detail = (
        f"six blocks {six:,}, segment embeddings {segments:,}, pooler {pooler:,}, all else {rest:,}"
    )
    return Settled((six, segments, pooler, rest), detail)


def printed_speed() -> Settled:
    table = printed("distilbert")["speed"]
    times = table["bert_base"] / table["distilbert"]
    saved = 1 - 1 / times
    flops = _flops("bert") / _flops("distilbert")
    k80 = printed("tinybert")["speed"]["distilbert_6"]
    detail = (
        f"{table['bert_base']} s / {table['distilbert']} s = {times:.2f} times as fast, or "
        f"{saved:.1%} less time, on a CPU at batch 1; {flops:g} times fewer FLOPs; "
        f"{k80:g} times as fast on a K80 GPU (TinyBERT, Table 1)"
    )
    return Settled(times, detail)


def _flops(family: str, size: str = "base") -> int:
    return encoder_flops(published(family, size), TOKENS)


def _stack(layers: int) -> Encoder:
    """Layers small enough to run, 128 wide, with random weights."""
    config = BertConfig(
        vocab_size=100, max_positions=32, num_layers=layers, hidden_size=128, num_heads=2,
        intermediate_size=512,
    )  # fmt: skip
    return Encoder(config).eval()


@lru_cache(maxsize=2)
def timed(batch: int) -> float:
    """How many times the processor time of six layers twelve take: the median of the rounds."""
    torch.manual_seed(0)
    ids = torch.ones(batch, 16, dtype=torch.long)
    return median(processor_time_ratios(_stack(6), _stack(12), ids))


def _sixth(layers: int, **more: Any) -> BertConfig:
    """BERT-base at a sixth of its width; its embeddings have about the same part of the weights."""
    return BertConfig(
        vocab_size=5_087, max_positions=85, num_layers=layers, hidden_size=128, num_heads=2,
        intermediate_size=512, **more,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _memory() -> tuple[float, float, tuple[float, ...]]:
    """The student as a fraction of its teacher: in weights, in activations stored for the backward
    pass, and in both together in training at batch 1 and 32."""
    torch.manual_seed(0)
    pair = Encoder(_sixth(6, type_vocab_size=0)), bert("tiny", **vars(_sixth(12)))
    weights = [count_parameters(model) for model in pair]
    stored = [activation_bytes(model, torch.ones(4, 64, dtype=torch.long)) for model in pair]
    whole = tuple(
        (ADAM * weights[0] + batch / 4 * stored[0]) / (ADAM * weights[1] + batch / 4 * stored[1])
        for batch in (1, 32)
    )
    return weights[0] / weights[1], stored[0] / stored[1], whole


def less_memory() -> Settled:
    weights, stored, whole = _memory()
    detail = (
        f"of a BERT at a sixth of the width, half the layers save {1 - weights:.0%} of the "
        f"weights, {1 - stored:.0%} of the activations that a training step stores; of both "
        f"together {1 - whole[0]:.0%} at batch 1, {1 - whole[1]:.0%} at batch 32"
    )
    return Settled((weights, stored), detail)


# ================================================================ what is kept


def table_1() -> tuple[dict[str, float], dict[str, float]]:
    """Table 1 of DistilBERT: BERT-base, with the README's MNLI, and DistilBERT."""
    rows = printed("glue")
    return rows["bert_base_dev_distilbert"]["scores"], rows["distilbert_dev"]["scores"]


def lost_by_task() -> dict[str, float]:
    theirs, ours = table_1()
    return {task: round(ours[task] - theirs[task], 2) for task in ours}


def retained() -> Settled:
    means = [glue_average(row, "dev-9") for row in table_1()]
    kept = means[1] / means[0]
    return Settled(kept, f"{means[1]:.2f} / {means[0]:.2f} = {kept:.1%} of the mean of nine")


def by_task() -> Settled:
    """The tasks that lose more than three points."""
    lost = dict(sorted(lost_by_task().items(), key=lambda item: item[1]))
    _, f1 = _squad("distilbert", "bert_base")
    detail = ", ".join(f"{task} {points:+.1f}" for task, points in lost.items())
    detail = f"{detail}; mean {mean(lost.values()):+.1f}; SQuAD 1.1 F1 {f1:+.1f}"
    return Settled(tuple(task for task, points in lost.items() if points < -3), detail)


def row_means() -> Settled:
    """The mean of BERT-base's row with the printed MNLI, and with the README's."""
    row, misprint = table_1()[0], printed("distilbert")["glue"]["bert_base_mnli"]
    means = tuple(
        round(glue_average({**row, "MNLI": score}, "dev-9"), 2) for score in (misprint, row["MNLI"])
    )
    mean_printed = printed("glue")["bert_base_dev_distilbert"]["printed"]
    detail = f"the row averages {means[0]} with {misprint}, {means[1]} with {row['MNLI']}"
    return Settled(means, f"{detail}; printed is {mean_printed}")


def _whose(task: str, score: float) -> str:
    """The models for which another table prints this score of a task, and on which split."""
    for row in printed("glue").values():
        cell = row.get("scores", {}).get(task)
        cells = cell if isinstance(cell, list) else [cell]
        if score in cells and "distilbert" not in row["where"].lower():
            return f"{row['model']} ({row['split']})"
    return "nobody here"


def compared_with() -> Settled:
    """The nine's means, and SST-2 and MNLI of BERT-base and DistilBERT, from one table."""
    theirs, ours = table_1()
    means = [round(glue_average(row, "dev-9"), 1) for row in (theirs, ours)]
    pairs = (tuple(means), (theirs["SST-2"], ours["SST-2"]), (theirs["MNLI"], ours["MNLI"]))
    detail = "; ".join(f"{a} against {b}" for a, b in pairs)
    test = glue_average(printed("glue")["bert_base_test"]["scores"], "test-9")
    detail = (
        f"{detail}. SST-2 of 94.9 is {_whose('SST-2', 94.9)}, MNLI of 86.7 {_whose('MNLI', 86.7)}, "
        f"{test:.1f} BERT-base's mean of nine test scores"
    )
    return Settled(pairs, detail)


def _squad(ours: str, theirs: str) -> tuple[float, float]:
    """Points of SQuAD 1.1, exact match and F1, by which one row of Table 2 exceeds another."""
    table = printed("distilbert")["downstream"]
    pairs = zip(table[f"{ours}_squad"], table[f"{theirs}_squad"], strict=True)
    exact, f1 = (round(a - b, 1) for a, b in pairs)
    return exact, f1


def twice() -> Settled:
    gained = _squad("distilbert_twice", "distilbert")
    return Settled(gained, f"exact match {gained[0]:+.1f}, F1 {gained[1]:+.1f}, on SQuAD 1.1 alone")


def squad_gap() -> Settled:
    exact, f1 = _squad("bert_base", "distilbert")
    return Settled((exact, f1), f"{exact} points of exact match and {f1} of F1 in Table 2")


def twice_in_the_text() -> Settled:
    exact, f1 = printed("distilbert")["downstream"]["distilbert_twice_squad"]
    return Settled((f1, exact), f"Table 2: F1 {f1}, exact match {exact}")


# ================================================================ TinyBERT


def widths() -> Settled:
    """Whether a loss between widths 312 and 768 is refused, and what W_h makes of 312."""
    student, teacher = published("tinybert", "4"), published("bert", "base")
    torch.manual_seed(0)
    ours, theirs = (torch.randn(5, config.hidden_size) for config in (student, teacher))
    try:
        _ = (ours - theirs).square().mean()
        error = ""
    except RuntimeError as refused:
        error = str(refused).split(" at non")[0]
    with torch.no_grad():
        widened = fit_matrix(student, teacher)(ours)
        loss = float(hidden_loss(widened, theirs))
    shape = tuple(widened.shape)
    detail = f"torch: {error or 'no error'}. With W_h {shape} and a loss of {loss:.2f}"
    return Settled((bool(error), shape), detail)


def logits_or_probabilities() -> Settled:
    """Gradients where student and teacher each look at another word with near certainty: of the
    squared distance of attention scores, and of that of attention weights."""
    teacher, student = torch.eye(6), torch.eye(6).roll(1, dims=1)
    teacher, student = (10 * x[None, None] for x in (teacher, student))  # (1, 1, 6, 6)
    real = torch.ones(1, 6, dtype=torch.bool)

    def gradient(view: Callable[[Tensor], Tensor]) -> float:
        x = student.clone().requires_grad_()
        loss = attention_loss(view(x), view(teacher), real)
        return float(torch.autograd.grad(loss, x)[0].norm())

    norms = gradient(lambda x: x), gradient(lambda x: x.softmax(-1))
    detail = f"gradient {norms[0]:.2f} on attention scores, {norms[1]:.1e} on attention weights"
    return Settled(norms, f"a student that looks past its teacher's word, and is sure: {detail}")


def tiny_size() -> Settled:
    """How many times smaller than BERT-base TinyBERT-4 is: with its matrix, and as it is used."""
    model, whole = parameters(tinybert, "4"), parameters(bert, "base")
    with_matrix = model + matrix_size()
    times = whole / with_matrix, whole / model
    detail = (
        f"{with_matrix:,} with the matrix W_h, {with_matrix / whole:.1%} of BERT-base, "
        f"{times[0]:.2f} times smaller; {model:,} without it, {times[1]:.2f} times smaller"
    )
    return Settled(times, detail)


def matrix_size() -> int:
    with torch.device("meta"):
        matrix = fit_matrix(published("tinybert", "4"), published("bert", "base"))
    return count_parameters(matrix)


def tiny_flops() -> Settled:
    ours, theirs = _flops("tinybert", "4"), _flops("bert")
    detail = f"{ours / 1e9:.2f} GFLOPs for {TOKENS} tokens, BERT-base {theirs / 1e9:.2f}"
    faster = printed("tinybert")["speed"]["tinybert_4"]
    detail += f": {theirs / ours:.1f} times fewer; {faster} times faster on a K80 GPU is printed"
    return Settled(ours / 1e9, detail)


def tiny_rows(table: str) -> dict[str, float]:
    return {k: v for k, v in printed("tinybert")[table].items() if isinstance(v, float)}


def _changes(table: str) -> tuple[dict[str, float], str]:
    """Points that each row of an ablation of TinyBERT differs from all, and in words."""
    rows = tiny_rows(table)
    changes = {name: round(rows[name] - rows["all"], 1) for name in rows if name != "all"}
    ordered = sorted(changes.items(), key=lambda item: item[1])
    listed = ", ".join(f"{name.replace('_', ' ')} {points:+.1f}" for name, points in ordered)
    return changes, f"points: {listed}"


def tiny_losses() -> Settled:
    changes, detail = _changes("losses")
    return Settled(min(changes.items(), key=lambda item: item[1]), detail)


def tiny_stages() -> Settled:
    changes, detail = _changes("stages")
    return Settled(tuple(changes.values()), detail)


# ================================================================ what our own runs reached


MEASURES = {"job_accuracy": "unstated-fact probe", "masked_accuracy": "masked-token accuracy"}


def students(
    runs: Sequence[str], measure: str = "masked_accuracy", against: str = "triple loss"
) -> Settled:
    return compared("06_distilbert", measure, runs, against, MEASURES[measure])


def past_plateau(run: str, against: str) -> Settled:
    """A longer run against another: on the probe, and in masked-token accuracy."""
    return _together(
        compared("06_past_plateau", measure, (run,), against, name)
        for measure, name in MEASURES.items()
    )


def _together(parts: Iterable[Settled]) -> Settled:
    """All values and all words, one after the other."""
    every = list(parts)
    return Settled(
        tuple(x for one in every for x in one.value), "; ".join(one.detail for one in every)
    )


def kept_here() -> Settled:
    """What the student has of its teacher's accuracy: on the probe, and on masked tokens."""
    teacher = result("06_teacher")["runs"]["teacher"][0]
    kept, details = [], []
    for measure, called in MEASURES.items():
        reached = outcome(result("06_distilbert"), measure)["triple loss"]
        kept.append(mean(reached) / teacher[measure])
        details.append(f"{called} {in_words(reached)} of {teacher[measure]:.1%}: {kept[-1]:.1%}")
    return Settled(tuple(kept), "; ".join(details))


def tinies(runs: Sequence[str]) -> Settled:
    return compared("06_tinybert", "job_accuracy", runs, "all", MEASURES["job_accuracy"])


def _attention(general: int) -> Settled:
    """A tenth of the attention loss and all of it, against none of it."""
    cells = [f"attention × {weight}, {general} general steps" for weight in ("0.1", "1", "0")]
    measure = "job_accuracy"
    return compared("06_tinybert_attention", measure, cells[:2], cells[2], MEASURES[measure])


def attention_here() -> Settled:
    return _together(_attention(general) for general in (300, 1_200))


STARTS = tuple(f"begin: {way}" for way in ("every other", "bottom", "top", "fresh"))
LEFT_OUT = ("without soft targets", "without cosine", "without masked words")
PARTS = (
    "without attention",
    "without hidden",
    "without embedding",
    "without both layer losses",
    "without the teacher's answers",
)
