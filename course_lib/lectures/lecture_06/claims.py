"""What is claimed about DistilBERT and TinyBERT: losses, size, speed, and what is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    all_near,
    cited,
    compared,
    computed,
    is_,
    measured,
    near,
    parameters,
    printed,
    processor_time_ratios,
    result,
)
from course_lib.teaching.results import in_words, outcome
from course_lib.train.distilling import Taught
from course_lib.train.memory import activation_bytes

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


def _temperature_squared() -> Settled:
    """Gradient at T=8 as a fraction of that at T=1: without the factor T², and with it."""
    of_one = {T: _gradient(T) / _gradient(1) for T in (2, 8)}
    said = ", ".join(f"at T={T} {norm / T**2:.1%} without T²" for T, norm in of_one.items())
    said = f"gradient of the soft targets, of that at T=1: {said}, {of_one[8]:.0%} with it"
    return Settled((of_one[8] / 8**2, of_one[8]), said)


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
        out = Taught(student, teacher)(ids, predict_at=at)
        parts = distilbert_loss()(out, {"labels": ids.flatten()[at]})
    return {name: float(value) for name, value in parts.items() if name != "total"}


def _three_terms() -> Settled:
    """The names of the losses that are added, as many as there are weights."""
    parts = _triple()
    said = ", ".join(f"{PUBLISHED_WEIGHTS[name]:g} × {name} {x:.3f}" for name, x in parts.items())
    return Settled(tuple(parts), f"of a randomly initialised student eight wide: {said}")


def _weights() -> Settled:
    table = printed("distilbert")["weights"]
    weights = {name: table[name] for name in ("soft", "mlm", "cosine")}
    parts = tuple(weight / sum(weights.values()) for weight in weights.values())
    said = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
    return Settled(parts, f"{said}: of their sum " + ", ".join(f"{part:.1%}" for part in parts))


def _one_alpha() -> Settled:
    """What the published weights leave for the hard part, were soft and hard all there is."""
    table = printed("distilbert")["weights"]
    alpha = table["soft"] / (table["soft"] + table["mlm"])
    left = table["cosine"] / (table["soft"] + table["mlm"] + table["cosine"])
    said = f"α would be {alpha:.0%}, and {left:.1%} of the weight, the cosine's, has no place"
    return Settled(left, said)


def _left_out(*rows: str) -> Settled:
    """Points lost by DistilBERT's Table 4 where a part is left out: of these rows, else of all."""
    names = {"without_soft": "soft targets", "without_cosine": "cosine"}
    names |= {"without_mlm": "MLM", "fresh_weights": "the teacher's weights"}
    lost = {row: printed("distilbert")["ablation"][row] for row in rows or names}
    said = ", ".join(f"without {names[row]} {points:+.2f}" for row, points in lost.items())
    return Settled(tuple(lost.values()), f"points of the macro score: {said}")


def _terms_of_the_code() -> Settled:
    """A name, an output and a loss, as the code of the source lecture has them."""
    torch.manual_seed(0)
    with torch.no_grad():
        out = bert("tiny", vocab_size=50)(torch.arange(5, 9)[None])
    logits = torch.randn(4, 50)
    p, log_p = logits.softmax(-1), logits.log_softmax(-1)
    wrong, right = (float(F.kl_div(x, p, reduction="batchmean")) for x in (p, log_p))
    found = ("bert-base" in KNOWN, hasattr(out, "logits"), abs(wrong) < 1e-6, abs(right) < 1e-6)
    said = (
        f"an encoder gives {', '.join(name for name, x in vars(out).items() if x is not None)} "
        f"and no logits; torch's kl_div of two equal distributions is {wrong:.2f} when given the "
        f"student's probabilities, {abs(right):.2f} when given their logarithms"
    )
    return Settled(found, said)


def _sign() -> Settled:
    """The printed Σ t·log s: of a student that agrees with its teacher, of one that does not."""
    teacher = torch.tensor([0.7, 0.2, 0.1])
    same, other = teacher, torch.tensor([0.1, 0.2, 0.7])
    printed_form = tuple(float((teacher * student.log()).sum()) for student in (same, other))
    said = f"Σ t·log s is {printed_form[0]:.2f} where both agree, {printed_form[1]:.2f} where not"
    return Settled(printed_form, f"{said}: minimised as printed, it drives the student away")


# ================================================================ size and speed


def _smaller() -> Settled:
    ours, theirs = parameters(distilbert, "base"), parameters(bert, "base")
    said = f"{ours:,} against {theirs:,}: {1 - ours / theirs:.1%} fewer"
    return Settled(1 - ours / theirs, said)


def _what_was_cut() -> Settled:
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
    said = (
        f"six blocks {six:,}, segment embeddings {segments:,}, pooler {pooler:,}, all else {rest:,}"
    )
    return Settled((six, segments, pooler, rest), said)


def _printed_speed() -> Settled:
    table = printed("distilbert")["speed"]
    times = table["bert_base"] / table["distilbert"]
    saved = 1 - 1 / times
    flops = _flops("bert") / _flops("distilbert")
    k80 = printed("tinybert")["speed"]["distilbert_6"]
    said = (
        f"{table['bert_base']} s / {table['distilbert']} s = {times:.2f} times as fast, or "
        f"{saved:.1%} less time, on a CPU at batch 1; {flops:g} times fewer FLOPs; "
        f"{k80:g} times as fast on a K80 GPU (TinyBERT, Table 1)"
    )
    return Settled(times, said)


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
def _timed(batch: int) -> float:
    """How many times the processor time of six layers twelve take: the median of the rounds."""
    torch.manual_seed(0)
    ids = torch.ones(batch, 16, dtype=torch.long)
    return median(processor_time_ratios(_stack(6), _stack(12), ids))


def _half_the_layers() -> Settled:
    ratios = tuple(_timed(batch) for batch in (1, 32))
    said = f"at batch 1 {ratios[0]:.2f} times, at batch 32 {ratios[1]:.2f} times"
    return Settled(ratios, f"twelve layers against six: {said} the processor time")


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


def _less_memory() -> Settled:
    weights, stored, whole = _memory()
    said = (
        f"of a BERT at a sixth of the width, half the layers save {1 - weights:.0%} of the "
        f"weights, {1 - stored:.0%} of the activations that a training step stores; of both "
        f"together {1 - whole[0]:.0%} at batch 1, {1 - whole[1]:.0%} at batch 32"
    )
    return Settled((weights, stored), said)


def _gpu_hours() -> Settled:
    table = printed("distilbert")["training"]
    hours = table["gpus"] * table["hours"]
    said = f"{table['gpus']} GPUs × {table['hours']} hours = {hours} GPU hours"
    return Settled(hours, f"{said} on all of BERT's text, after the teacher was trained")


# ================================================================ what is kept


def table_1() -> tuple[dict[str, float], dict[str, float]]:
    """Table 1 of DistilBERT: BERT-base, with the README's MNLI, and DistilBERT."""
    rows = printed("glue")
    return rows["bert_base_dev_distilbert"]["scores"], rows["distilbert_dev"]["scores"]


def lost_by_task() -> dict[str, float]:
    theirs, ours = table_1()
    return {task: round(ours[task] - theirs[task], 2) for task in ours}


def _retained() -> Settled:
    means = [glue_average(row, "dev-9") for row in table_1()]
    kept = means[1] / means[0]
    return Settled(kept, f"{means[1]:.2f} / {means[0]:.2f} = {kept:.1%} of the mean of nine")


def _by_task() -> Settled:
    """The tasks that lose more than three points."""
    lost = dict(sorted(lost_by_task().items(), key=lambda item: item[1]))
    _, f1 = _squad("distilbert", "bert_base")
    said = ", ".join(f"{task} {points:+.1f}" for task, points in lost.items())
    said = f"{said}; mean {mean(lost.values()):+.1f}; SQuAD 1.1 F1 {f1:+.1f}"
    return Settled(tuple(task for task, points in lost.items() if points < -3), said)


def _row_means() -> Settled:
    """The mean of BERT-base's row with the printed MNLI, and with the README's."""
    row, misprint = table_1()[0], printed("distilbert")["glue"]["bert_base_mnli"]
    means = tuple(
        round(glue_average({**row, "MNLI": score}, "dev-9"), 2) for score in (misprint, row["MNLI"])
    )
    mean_printed = printed("glue")["bert_base_dev_distilbert"]["printed"]
    said = f"the row averages {means[0]} with {misprint}, {means[1]} with {row['MNLI']}"
    return Settled(means, f"{said}; printed is {mean_printed}")


def _whose(task: str, score: float) -> str:
    """The models for which another table prints this score of a task, and on which split."""
    for row in printed("glue").values():
        found = row.get("scores", {}).get(task)
        cells = found if isinstance(found, list) else [found]
        if score in cells and "distilbert" not in row["where"].lower():
            return f"{row['model']} ({row['split']})"
    return "nobody here"


def _compared_with() -> Settled:
    """The nine's means, and SST-2 and MNLI of BERT-base and DistilBERT, from one table."""
    theirs, ours = table_1()
    means = [round(glue_average(row, "dev-9"), 1) for row in (theirs, ours)]
    found = (tuple(means), (theirs["SST-2"], ours["SST-2"]), (theirs["MNLI"], ours["MNLI"]))
    said = "; ".join(f"{a} against {b}" for a, b in found)
    test = glue_average(printed("glue")["bert_base_test"]["scores"], "test-9")
    said = (
        f"{said}. SST-2 of 94.9 is {_whose('SST-2', 94.9)}, MNLI of 86.7 {_whose('MNLI', 86.7)}, "
        f"{test:.1f} BERT-base's mean of nine test scores"
    )
    return Settled(found, said)


def _over_elmo() -> Settled:
    ours, elmo = table_1()[1]["STS-B"], printed("distilbert")["glue"]["elmo_sts_b"]
    return Settled(round(ours - elmo, 1), f"{ours} − {elmo} = {ours - elmo:.1f} points in Table 1")


def _squad(ours: str, theirs: str) -> tuple[float, float]:
    """Points of SQuAD 1.1, exact match and F1, by which one row of Table 2 exceeds another."""
    table = printed("distilbert")["downstream"]
    pairs = zip(table[f"{ours}_squad"], table[f"{theirs}_squad"], strict=True)
    exact, f1 = (round(a - b, 1) for a, b in pairs)
    return exact, f1


def _twice() -> Settled:
    gained = _squad("distilbert_twice", "distilbert")
    return Settled(gained, f"exact match {gained[0]:+.1f}, F1 {gained[1]:+.1f}, on SQuAD 1.1 alone")


def _squad_gap() -> Settled:
    exact, f1 = _squad("bert_base", "distilbert")
    return Settled((exact, f1), f"{exact} points of exact match and {f1} of F1 in Table 2")


def _twice_in_the_text() -> Settled:
    exact, f1 = printed("distilbert")["downstream"]["distilbert_twice_squad"]
    return Settled((f1, exact), f"Table 2: F1 {f1}, exact match {exact}")


# ================================================================ TinyBERT


def _widths() -> Settled:
    """Whether a loss between widths 312 and 768 is refused, and what W_h makes of 312."""
    student, teacher = published("tinybert", "4"), published("bert", "base")
    torch.manual_seed(0)
    narrow, wide = (torch.randn(5, config.hidden_size) for config in (student, teacher))
    try:
        _ = (narrow - wide).square().mean()
        error = ""
    except RuntimeError as refused:
        error = str(refused).split(" at non")[0]
    with torch.no_grad():
        widened = fit_matrix(student, teacher)(narrow)
        loss = float(hidden_loss(widened, wide))
    said = f"torch: {error or 'no error'}. With W_h {tuple(widened.shape)} and a loss of {loss:.2f}"
    return Settled((bool(error), tuple(widened.shape)), said)


def _logits_or_probabilities() -> Settled:
    """Gradients where student and teacher each look at another word with near certainty: of the
    squared distance of attention scores, and of that of attention weights."""
    teacher, student = torch.eye(6), torch.eye(6).roll(1, dims=1)
    teacher, student = (10 * x[None, None] for x in (teacher, student))  # (1, 1, 6, 6)
    real = torch.ones(1, 6, dtype=torch.bool)

    def gradient(view: Callable[[Tensor], Tensor]) -> float:
        x = student.clone().requires_grad_()
        loss = attention_loss(view(x), view(teacher), real)
        return float(torch.autograd.grad(loss, x)[0].norm())

    found = gradient(lambda x: x), gradient(lambda x: x.softmax(-1))
    said = f"gradient {found[0]:.2f} on attention scores, {found[1]:.1e} on attention weights"
    return Settled(found, f"a student that looks past its teacher's word, and is sure: {said}")


def _tiny_kept() -> Settled:
    table = printed("tinybert")["glue"]
    kept = table["tinybert_4"] / table["teacher"]
    said = f"{table['tinybert_4']} / {table['teacher']} = {kept:.2%} of the mean of the test sets"
    return Settled(kept, f"{said}; the same shape without a teacher has {table['bert_tiny']}")


def _tiny_size() -> Settled:
    """How many times smaller than BERT-base TinyBERT-4 is: with its matrix, and as it is used."""
    model, whole = parameters(tinybert, "4"), parameters(bert, "base")
    with_matrix = model + _matrix_size()
    times = whole / with_matrix, whole / model
    said = (
        f"{with_matrix:,} with the matrix W_h, {with_matrix / whole:.1%} of BERT-base, "
        f"{times[0]:.2f} times smaller; {model:,} without it, {times[1]:.2f} times smaller"
    )
    return Settled(times, said)


def _matrix_size() -> int:
    with torch.device("meta"):
        matrix = fit_matrix(published("tinybert", "4"), published("bert", "base"))
    return count_parameters(matrix)


def _matrix() -> Settled:
    size = _matrix_size()
    return Settled(size, f"312 × 768 + 768 = {size:,} numbers, used in training alone")


def _tiny_flops() -> Settled:
    ours, theirs = _flops("tinybert", "4"), _flops("bert")
    said = f"{ours / 1e9:.2f} GFLOPs for {TOKENS} tokens, BERT-base {theirs / 1e9:.2f}"
    faster = printed("tinybert")["speed"]["tinybert_4"]
    said += f": {theirs / ours:.1f} times fewer; {faster} times faster on a K80 GPU is printed"
    return Settled(ours / 1e9, said)


def _tiny_rows(table: str) -> dict[str, float]:
    return {k: v for k, v in printed("tinybert")[table].items() if isinstance(v, float)}


def _changes(table: str) -> tuple[dict[str, float], str]:
    """Points that each row of an ablation of TinyBERT differs from all, and in words."""
    rows = _tiny_rows(table)
    changes = {name: round(rows[name] - rows["all"], 1) for name in rows if name != "all"}
    ordered = sorted(changes.items(), key=lambda item: item[1])
    said = ", ".join(f"{name.replace('_', ' ')} {points:+.1f}" for name, points in ordered)
    return changes, f"points: {said}"


def _tiny_losses() -> Settled:
    changes, said = _changes("losses")
    return Settled(min(changes.items(), key=lambda item: item[1]), said)


def _tiny_stages() -> Settled:
    changes, said = _changes("stages")
    return Settled(tuple(changes.values()), said)


def _tiny_mapping() -> Settled:
    rows = _tiny_rows("mapping")
    said = ", ".join(f"{kind} {score}" for kind, score in rows.items())
    return Settled(max(rows, key=lambda kind: rows[kind]), said)


# ================================================================ what our own runs reached


MEASURES = {"job_accuracy": "unstated-fact probe", "masked_accuracy": "masked-token accuracy"}


def _students(
    runs: Sequence[str], measure: str = "masked_accuracy", against: str = "triple loss"
) -> Settled:
    return compared("06_distilbert", measure, runs, against, MEASURES[measure])


def _kept_here() -> Settled:
    """What the student has of its teacher's accuracy: on the probe, and on masked tokens."""
    teacher = result("06_teacher")["runs"]["teacher"][0]
    kept, said = [], []
    for measure, called in MEASURES.items():
        reached = outcome(result("06_distilbert"), measure)["triple loss"]
        kept.append(mean(reached) / teacher[measure])
        said.append(f"{called} {in_words(reached)} of {teacher[measure]:.1%}: {kept[-1]:.1%}")
    return Settled(tuple(kept), "; ".join(said))


def _tinies(runs: Sequence[str]) -> Settled:
    return compared("06_tinybert", "job_accuracy", runs, "all", MEASURES["job_accuracy"])


STARTS = tuple(f"begin: {way}" for way in ("every other", "bottom", "top", "fresh"))
LEFT_OUT = ("without soft targets", "without cosine", "without masked words")
PARTS = (
    "without attention",
    "without hidden",
    "without embedding",
    "without both layer losses",
    "without the teacher's answers",
)
LECTURE_000, LECTURE_001 = "source lecture 000", "source lecture 001"
LECTURE_002, LECTURE_003 = "source lecture 002", "source lecture 003"
LECTURE_004 = "source lecture 004"

CLAIMS = (
    computed(
        id="E12",
        they_say="loss = α · hard + (1−α) · soft + β · cosine, with labels y and no T²",
        who=LECTURE_000,
        it_is=(
            "three weights of their own; the hard part is that of the masked words; student and "
            "teacher are both softened by T, and the code multiplies by T²"
        ),
        settled_by="gradients of the soft-target loss on fixed random logits",
        settle=_temperature_squared,
        accepts=lambda value: value[0] < 0.05 and 0.5 < value[1] < 2,
        rejected=(1.0, 64.0),  # a gradient that did not shrink
    ),
    computed(
        id="E84",
        they_say="loss = α · soft + (1−α) · hard",
        who=LECTURE_002,
        it_is="distillation's general form; DistilBERT adds three losses, none tied to another",
        settled_by="the published weights",
        settle=_one_alpha,
        accepts=near(0.125, 1e-9),
        rejected=0.0,
    ),
    computed(
        id="E95",
        they_say="loss = L_ce + L_cosine",
        who=LECTURE_003,
        it_is="L_mlm is missing, though of the three it matters least",
        settled_by="DistilBERT's Table 4",
        settle=lambda: _left_out("without_mlm"),
        accepts=is_((-0.31,)),
        rejected=(0.0,),
    ),
    computed(
        id="E59",
        they_say="loss = 0.5 · KL + 0.5 · MLM",
        who=LECTURE_001,
        it_is="the cosine is missing; the published weights are 5, 2 and 1",
        settled_by="the command in the README of the released code",
        settle=_weights,
        accepts=is_((0.625, 0.25, 0.125)),
        rejected=(0.5, 0.5, 0.0),
    ),
    computed(
        id="triple loss",
        they_say="distillation, masked words and cosine are combined",
        who="DistilBERT (Sanh et al. 2019), section 2",
        it_is="so; soft targets and cosine over all real tokens, the last layer's vectors compared",
        settled_by="our loss on a randomly initialised student and teacher, here",
        settle=_three_terms,
        accepts=is_(("soft", "mlm", "cosine")),
        rejected=("soft", "mlm"),
    ),
    computed(
        id="slip 1 sign",
        they_say="L_ce = Σ t · log s",
        who="DistilBERT, section 2",
        it_is="−Σ t · log s: a minus sign was lost in print",
        settled_by="the printed sum for three words",
        settle=_sign,
        accepts=lambda value: value[1] < value[0] < 0,
        rejected=(0.8, 1.97),  # with the sign put back, the agreeing student is the smaller
    ),
    computed(
        id="E58",
        they_say=(
            'teacher = BertModel.from_pretrained("bert-base"), DistilBertModel(num_layers=6), '
            "logits [0.7, 0.2, 0.1], KL of softmax(student / T)"
        ),
        who=LECTURE_001,
        it_is=(
            "no checkpoint has that name; the class takes a configuration, with n_layers; it gives "
            "hidden states, not logits; the three numbers are probabilities; and KL wants the "
            "student's *log*-probabilities, times T²"
        ),
        settled_by="the names we know, an encoder's output, torch's kl_div, here",
        settle=_terms_of_the_code,
        accepts=is_((False, False, False, True)),
        rejected=(True, True, True, True),
    ),
    computed(
        id="ablation",
        they_say="the soft targets matter most of the losses, the masked words least",
        who="DistilBERT, Table 4",
        it_is="so; and initialising from the teacher's layers matters more than any of them",
        settled_by="DistilBERT's Table 4",
        settle=_left_out,
        accepts=is_((-2.96, -1.46, -0.31, -3.69)),
        rejected=(-0.31, -1.46, -2.96, -3.69),
    ),
    computed(
        id="97% kept",
        they_say="97% of BERT's performance is kept",
        who="DistilBERT, abstract; source lectures 001 to 004",
        it_is="96.9% of the mean of nine development sets, WNLI among them",
        settled_by="the two rows of DistilBERT's Table 1",
        settle=_retained,
        accepts=near(0.969, 0.001),
        rejected=0.99,
    ),
    computed(
        id="E14",
        they_say="95% of BERT's performance is kept",
        who=LECTURE_000,
        it_is="97%, or 96.9% to one decimal",
        settled_by="the two rows of DistilBERT's Table 1",
        settle=_retained,
        accepts=near(0.969, 0.001),
        rejected=0.95,
    ),
    computed(
        id="E96",
        they_say="usually less than 3% lost, for twice the speed",
        who=LECTURE_003,
        it_is="2.5 points on average, but 9.4 on RTE, 5.0 on CoLA; 1.63 times the speed on a CPU",
        settled_by="differences in DistilBERT's Tables 1 and 2",
        settle=_by_task,
        accepts=is_(("RTE", "CoLA")),
        rejected=(),
    ),
    computed(
        id="E60",
        they_say="BERT, DistilBERT: GLUE 79.6 and 77.0, SST-2 94.9 and 92.7, MNLI 86.7 and 82.2",
        who=LECTURE_001,
        it_is=(
            "79.5 and 77.0, 92.7 and 91.3, 84.7 and 82.2: the other numbers are of BERT-large, of "
            "test sets, or of BERT-base in DistilBERT's column"
        ),
        settled_by="the rows of DistilBERT's Table 1, and those of BERT's",
        settle=_compared_with,
        accepts=is_(((79.5, 77.0), (92.7, 91.3), (84.7, 82.2))),
        rejected=((79.6, 77.0), (94.9, 92.7), (86.7, 82.2)),
    ),
    computed(
        id="slip 1 MNLI",
        they_say="BERT-base has 86.7 on MNLI, and a mean of 79.5",
        who="DistilBERT, Table 1",
        it_is="84.7, as in the README of the code: only with that is the mean 79.5",
        settled_by="the mean of the printed row, both ways",
        settle=_row_means,
        accepts=is_((79.72, 79.5)),
        rejected=(79.5, 79.28),  # were 86.7 right
    ),
    computed(
        id="slip 1 STS-B",
        they_say="DistilBERT is up to 19 points better than ELMo on STS-B",
        who="DistilBERT, section 4",
        it_is="16.5 by its own table",
        settled_by="a difference in DistilBERT's Table 1",
        settle=_over_elmo,
        accepts=is_(16.5),
        rejected=19,
    ),
    computed(
        id="slip 1 gap",
        they_say="on SQuAD DistilBERT is within 3.9 points of BERT",
        who="DistilBERT, section 4",
        it_is="within 3.5 of exact match and 2.7 of F1: neither is 3.9",
        settled_by="differences in DistilBERT's Table 2",
        settle=_squad_gap,
        accepts=is_((3.5, 2.7)),
        rejected=(3.9, 3.9),
    ),
    computed(
        id="slip 1 twice",
        they_say="with a second distillation SQuAD reaches 79.8 F1 and 70.4 exact match",
        who="DistilBERT, section 4",
        it_is="86.9 and 79.1 by its table",
        settled_by="DistilBERT's Table 2",
        settle=_twice_in_the_text,
        accepts=is_((86.9, 79.1)),
        rejected=(79.8, 70.4),
    ),
    cited(
        id="slip 1 task",
        they_say="STS-B is sentiment analysis",
        who="DistilBERT, Table 3",
        it_is="it asks how alike two sentences are, from 0 to 5",
        settled_by="cited: the GLUE benchmark's list of tasks",
    ),
    computed(
        id="40% smaller",
        they_say="40% smaller: 66M against 110M",
        who="DistilBERT, abstract; source lectures 000, 002, 003 and 004",
        it_is="39.4% fewer parameters",
        settled_by="counting both models, built from the published sizes",
        settle=_smaller,
        accepts=near(0.394, 0.0005),
        rejected=0.5,  # half the layers
    ),
    computed(
        id="E105",
        they_say="NSP is removed: listed under architecture",
        who=LECTURE_004,
        it_is="an objective; what the architecture loses is six layers, segments and the pooler",
        settled_by="counting both models, part by part",
        settle=_what_was_cut,
        accepts=is_((42_527_232, 1_536, 590_592, 0)),
        rejected=(42_527_232, 1_536, 590_592, 1_538),  # a pair head more
    ),
    computed(
        id="60% faster",
        they_say="60% faster",
        who="DistilBERT, abstract; source lectures 001 to 004",
        it_is="1.63 times as fast by its Table 3; counted as time, 39% less",
        settled_by="the seconds of DistilBERT's Table 3",
        settle=_printed_speed,
        accepts=near(1.63, 0.005),
        rejected=2.5,  # 60% less time
    ),
    computed(
        id="E15",
        they_say="inference is twice as fast",
        who=LECTURE_000,
        it_is="1.63 times in the paper's own timing; 2 is the FLOPs, or a K80 GPU",
        settled_by="the seconds of DistilBERT's Table 3",
        settle=_printed_speed,
        accepts=near(1.63, 0.005),
        rejected=2.0,
    ),
    measured(
        id="half the layers",
        they_say="half the layers take half the time",
        who="follows from source lecture 000, twice as fast",
        it_is="about so for the layers alone, at any batch; what else a program does is not halved",
        settled_by="twelve and six layers of width 128, processor time, here",
        settle=_half_the_layers,
        accepts=lambda ratios: all(1.5 < ratio < 2.6 for ratio in ratios),
        rejected=(1.0, 1.0),
    ),
    measured(
        id="E83",
        they_say="40% less memory",
        who=LECTURE_002,
        it_is=(
            "40% fewer *parameters*; the activations stored for the backward pass go with layers "
            "and batch, and are halved"
        ),
        settled_by="weights, and bytes of stored activations, in a narrow copy of both, here",
        settle=_less_memory,
        accepts=lambda value: abs(value[0] - 0.61) < 0.01 and 0.45 < value[1] < 0.55,
        rejected=(0.61, 0.61),
    ),
    computed(
        id="E104",
        they_say="compressed without retraining from scratch, with minimal resources",
        who=LECTURE_004,
        it_is="the student reads all of BERT's text: 720 GPU hours, and the teacher came first",
        settled_by="DistilBERT, section 3: the GPUs times the hours",
        settle=_gpu_hours,
        accepts=is_(720),
        rejected=90,
    ),
    computed(
        id="E13",
        they_say="second phase: distillation for the task, as part of the training",
        who=LECTURE_000,
        it_is=(
            "an extra experiment, on SQuAD alone: +1.1 F1. DistilBERT is distilled once, before "
            "any task; TinyBERT has a second phase"
        ),
        settled_by="differences in DistilBERT's Table 2",
        settle=_twice,
        accepts=is_((1.4, 1.1)),
        rejected=(0.0, 0.0),
    ),
    computed(
        id="E16",
        they_say="TinyBERT's layer loss is MSE(FFN of the student, FFN of the teacher)",
        who=LECTURE_000,
        it_is=(
            "MSE(H_S · W_h, H_T), of the layers' outputs: widths 312 and 768 cannot be compared "
            "without W_h, which is learnt"
        ),
        settled_by="both in torch, here",
        settle=_widths,
        accepts=is_((True, (5, 768))),
        rejected=(False, (5, 312)),
    ),
    computed(
        id="fit matrix",
        they_say="a learnt matrix widens the student's vectors",
        who="TinyBERT (Jiao et al. 2020), equation 8",
        it_is="240,384 numbers as released, with a bias, thrown away after the training",
        settled_by="counting the matrix",
        settle=_matrix,
        accepts=is_(240_384),
        rejected=239_616,  # without the bias
    ),
    computed(
        id="E17",
        they_say="attention loss on A, not said which; no embedding and no prediction loss",
        who=LECTURE_000,
        it_is=(
            "on the attention scores *before* the softmax; and there are four losses: attention, "
            "hidden states, embeddings, predictions"
        ),
        settled_by="TinyBERT, equations 7 to 11; gradients of six attention scores, here",
        settle=_logits_or_probabilities,
        accepts=lambda found: found[0] > 1_000 * found[1] > 0,
        rejected=(1.0, 1.0),
    ),
    cited(
        id="E18",
        they_say="three progressive steps: general, for the task, augmentation",
        who=LECTURE_000,
        it_is=(
            "two stages; augmentation belongs to the second, and the prediction loss is left out "
            "of the first"
        ),
        settled_by="cited: TinyBERT, section 3.2 and its footnote",
    ),
    computed(
        id="TinyBERT kept",
        they_say="TinyBERT-4 keeps more than 96.8% of its teacher",
        who="TinyBERT, abstract",
        it_is="96.9% of the mean of the test sets; other tasks and split than DistilBERT's 97%",
        settled_by="means in TinyBERT's Table 1",
        settle=_tiny_kept,
        accepts=lambda kept: 0.968 < kept < 0.97,
        rejected=70.2 / 79.5,  # the same shape without a teacher
    ),
    computed(
        id="TinyBERT size",
        they_say="7.5 times smaller than BERT-base",
        who="TinyBERT, abstract",
        it_is="so with the matrix counted, 13.3% of BERT-base; 7.6 times as it is used",
        settled_by="counting both models and the matrix",
        settle=_tiny_size,
        accepts=all_near((7.50, 7.63), 0.01),
        rejected=(9.4, 9.4),
    ),
    computed(
        id="TinyBERT FLOPs",
        they_say="1.2B FLOPs",
        who="TinyBERT, Table 1",
        it_is="1.25 by formula, 17.9 times fewer than BERT-base: time shrinks less, 9.4 times",
        settled_by="FLOPs by formula",
        settle=_tiny_flops,
        accepts=near(1.25, 0.01),
        rejected=22.35 / 9.4,
    ),
    computed(
        id="TinyBERT losses",
        they_say="the losses of the layers matter most: 56.3 without them, 75.6 with all",
        who="TinyBERT, ablation of the distillation objectives",
        it_is="so: 19.3 points; without attention alone 4.6, without hidden states alone 2.7",
        settled_by="differences in that table",
        settle=_tiny_losses,
        accepts=is_(("without_both_layer_losses", -19.3)),
        rejected=("without_prediction", -2.1),
    ),
    computed(
        id="TinyBERT stages",
        they_say="general distillation, task distillation and augmentation all help",
        who="TinyBERT, ablation of the learning procedure",
        it_is="so: 3.1, 7.1 and 7.2 points are lost without them",
        settled_by="differences in that table",
        settle=_tiny_stages,
        accepts=is_((-3.1, -7.1, -7.2)),
        rejected=(-7.2, -7.1, -3.1),
    ),
    computed(
        id="TinyBERT mapping",
        they_say="every third layer of the teacher is the best choice to learn from",
        who="TinyBERT, effects of the mapping function",
        it_is="so: 75.6, the last four layers 70.9, the first four 71.3",
        settled_by="that table",
        settle=_tiny_mapping,
        accepts=is_("uniform"),
        rejected="top",
    ),
    measured(
        id="kept here",
        they_say="half the layers keep 97%",
        who="DistilBERT, abstract",
        it_is="all of it on the unstated-fact probe, 87% of masked-token accuracy, after 400 steps",
        settled_by=(
            "three students and their teacher, data/results/06_distilbert.json: a regression check"
        ),
        settle=_kept_here,
        accepts=lambda kept: kept[0] > 0.95 and 0.8 < kept[1] < 0.92,
        rejected=(97.0, 97.0),
    ),
    measured(
        id="losses here",
        they_say="left out, soft targets cost 2.96 points, the cosine 1.46, masked words 0.31",
        who="DistilBERT, Table 4",
        it_is=(
            "the same first place: soft targets cost most, though 1.3 points only; masked words "
            "come next, the cosine is not seen"
        ),
        settled_by="the same seeds of each, data/results/06_distilbert.json: a regression check",
        settle=lambda: _students(LEFT_OUT),
        accepts=lambda value: value[0] < value[2] < 0 and abs(value[1]) < 0.005,
        rejected=(-2.96, -1.46, -0.31),  # points of another score
    ),
    measured(
        id="losses here, task",
        they_say="left out, soft targets cost 2.96 points, the cosine 1.46, masked words 0.31",
        who="DistilBERT, Table 4, which fine-tunes",
        it_is=("not told here: all that are initialised from the teacher come out alike"),
        settled_by="the same students, fine-tuned on the unstated-fact probe: a regression check",
        settle=lambda: _students(LEFT_OUT, "job_accuracy"),
        accepts=lambda value: max(map(abs, value)) < 0.01,
        rejected=(-2.96, -1.46, -0.31),
    ),
    measured(
        id="initialisation here",
        they_say="a student is initialised from every other layer of its teacher: 3.69 points",
        who="DistilBERT, Table 4",
        it_is=(
            "not here: the top layers are the best to initialise from, the bottom ones worse; "
            "random initialisation stays far behind"
        ),
        settled_by="the same seeds of each, data/results/06_distilbert.json: a regression check",
        settle=lambda: _students(STARTS, against="begin: spread"),
        accepts=lambda value: value[2] > 0.05 and value[1] < -0.05 and value[3] < -0.4,
        rejected=(0.0, 0.0, 0.0, -3.69),
    ),
    measured(
        id="a teacher here",
        they_say="a student learns more from a teacher than from the words alone",
        who="follows from DistilBERT, Table 4",
        it_is=("so here too, by 1.5 points; without the teacher's layers nearly all is lost"),
        settled_by="the same seeds of each, data/results/06_distilbert.json: a regression check",
        settle=lambda: _students(("teacher's layers, masked words only", "alone")),
        accepts=lambda value: -0.03 < value[0] < 0 and value[1] < -0.4,
        rejected=(-2.96, -3.69),
    ),
    measured(
        id="second phase here",
        they_say="distilling for the task as well helps: +1.1 F1",
        who="DistilBERT, Table 2; source lecture 000",
        it_is=("not told here: soft targets and labels differ by less than the seeds do"),
        settled_by="soft targets against labels, data/results/06_tinybert.json: a regression check",
        settle=lambda: _tinies(("without the teacher's answers", "alone")),
        accepts=lambda value: abs(value[0]) < 0.05,
        rejected=(-1.1, -1.1),
    ),
    measured(
        id="TinyBERT losses here",
        they_say="without the losses of the layers 19.3 points are lost, without predictions 2.1",
        who="TinyBERT, ablation of the distillation objectives",
        it_is=(
            "not here: without the attention loss the small student is *better* in every seed; in "
            "so few steps the losses get in each other's way"
        ),
        settled_by="the same seeds of each, data/results/06_tinybert.json: a regression check",
        settle=lambda: _tinies(PARTS),
        accepts=lambda value: value[0] > 0.1 and value[3] > 0,
        rejected=(-4.6, -2.7, -1.5, -19.3, -2.1),
    ),
)
