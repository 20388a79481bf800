"""Exercises of lecture 06: the planted wrong answers, the solutions beside the library.

What every exercise must do is asked in test_exercises.py, of these as of all others.
"""

from __future__ import annotations

import copy
import math
from statistics import fmean, median

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.family.distilbert import distilbert_for_masked_lm, initialise_from, spread_layers
from course_lib.kernels.distillation import soft_target_loss
from course_lib.lectures.lecture_06.exercises import (
    begin,
    layers,
    misprint,
    soften,
    targets,
    triple,
)
from course_lib.objectives.distillation import distilbert_loss, tinybert_loss
from course_lib.teaching.averages import glue_average
from course_lib.teaching.exercises import all_exercises
from course_lib.teaching.exercises.legacy import Draw, check_answer, close
from course_lib.train.distilling import TaughtOutput

EXERCISES = {id: e for id, e in all_exercises().items() if id.startswith("06.")}
SEEDS = (0, 1, 2, 3)
torch.set_num_threads(1)  # the tensors are tiny


# ---------------------------------------------------------------- planted wrong answers


def entropy_of(shares):
    return torch.special.entr(shares).sum(-1)


def soften_with(shares=lambda x, T: F.softmax(x / T, dim=-1), entropy=entropy_of):
    def answer(logits, temperature):
        softened = shares(logits, temperature)
        return softened, entropy(softened)

    return answer


def soften_by_hand(logits, temperature):
    raised = torch.exp(logits / temperature)
    shares = raised / raised.sum(1, keepdim=True)
    return shares, entropy_of(shares)


def soft_with(
    *, student=lambda x, T: F.log_softmax(x / T, 1), teacher=lambda x, T: F.softmax(x / T, 1),
    reduction="batchmean", factor=lambda T: T * T, swap=False, log_target=False,
):  # fmt: skip
    """The loss through F.kl_div, with one thing changed."""

    def answer(student_logits, teacher_logits, temperature):
        s, t = student(student_logits, temperature), teacher(teacher_logits.data, temperature)
        if swap:
            s, t = t.log(), s.exp()
        loss = F.kl_div(s, t, reduction=reduction, log_target=log_target)
        return factor(temperature) * loss

    return answer


def soft_cross_entropy(student_logits, teacher_logits, temperature):
    wanted = F.softmax(teacher_logits.detach() / temperature, -1)
    return temperature**2 * F.cross_entropy(student_logits / temperature, wanted)


def soft_hard(student_logits, teacher_logits, temperature):
    best = teacher_logits.argmax(-1)
    return temperature**2 * F.cross_entropy(student_logits / temperature, best)


def soft_without_detach(student_logits, teacher_logits, temperature):
    return F.kl_div(
        F.log_softmax(student_logits / temperature, -1),
        F.log_softmax(teacher_logits / temperature, -1),
        reduction="batchmean", log_target=True,
    ) * temperature**2  # fmt: skip


def mean_of(x, where):
    return x[where].sum() / max(1, int(where.sum()))


def rowwise(x, where):
    return torch.stack([mean_of(a, b) for a, b in zip(x, where, strict=True)]).mean()


def triple_with(
    *, soft_at=lambda real, asked: real, mlm_at=lambda real, asked: asked,
    cosine_at=lambda real, asked: real, mean=mean_of, mlm_mean=mean_of, layer=-1,
    apart=lambda cosine: 1 - cosine, weigh=lambda a, b, c: (a, b, c), factor=lambda T: T * T,
):  # fmt: skip
    """The triple loss position by position; a keyword changes one thing."""

    def answer(student, teacher, real, labels, weights, temperature):
        asked = labels >= 0
        T = temperature
        soft = F.kl_div(
            F.log_softmax(student.logits / T, -1), F.softmax(teacher.logits / T, -1),
            reduction="none",
        ).sum(-1)  # fmt: skip
        words = labels.clamp(min=0)
        mlm = F.cross_entropy(student.logits.transpose(1, 2), words, reduction="none")
        states = zip(student.hidden_states, teacher.hidden_states, strict=True)
        alike = [F.cosine_similarity(a, b, dim=-1) for a, b in states]
        alike = torch.stack(alike).mean(0) if layer == "every" else alike[layer]
        a, b, c = weigh(*weights)
        return (
            a * factor(T) * mean(soft, soft_at(real, asked))
            + b * mlm_mean(mlm, mlm_at(real, asked))
            + c * mean(apart(alike), cosine_at(real, asked))
        )

    return answer


def everywhere(real, asked):
    return torch.ones_like(real)


def at_asked(real, asked):
    return asked


def triple_nan(student, teacher, real, labels, weights, temperature):
    soft = soft_target_loss(student.logits[real], teacher.logits[real], temperature)
    mlm = F.cross_entropy(student.logits.flatten(0, 1), labels.flatten())
    last = student.hidden_states[-1][real], teacher.hidden_states[-1][real]
    cosine = F.cosine_embedding_loss(*last, torch.ones(len(last[0])))
    return sum(w * x for w, x in zip(weights, (soft, mlm, cosine), strict=True))


def triple_library(student, teacher, real, labels, weights, temperature):
    at = (labels != -100).flatten().nonzero()[:, 0]
    targets = {"labels": labels.flatten()[at]}
    loss = distilbert_loss(*weights, temperature)
    return loss(TaughtOutput(student, teacher, real, at), targets)["total"]


def by_distance(N, M):
    """The right choice, found without rounding."""
    steps = [i * (N - 1) / (M - 1) for i in range(M)]
    return [min(range(N), key=lambda n: abs(n - step)) for step in steps]


def begin_with(choose=by_distance, *, copy_block=None, embeddings=True):
    """Layers by another rule, or copied in another way: copy_block(into, source)."""

    def answer(student, teacher):
        M, N = len(student.stack.blocks), len(teacher.stack.blocks)
        if embeddings:
            student.embeddings.load_state_dict(teacher.embeddings.state_dict())
        for i, n in enumerate(choose(N, M)):
            into, source = student.stack.blocks[i], teacher.stack.blocks[n]
            if copy_block:
                copy_block(into, source)
            else:
                with torch.no_grad():
                    pairs = zip(into.parameters(), source.parameters(), strict=True)
                    [mine.copy_(theirs) for mine, theirs in pairs]
        return student

    return answer


def copy_some(keep):
    def copy_block(into, source):
        some = {name: x for name, x in source.state_dict().items() if keep(name)}
        into.load_state_dict(some, strict=False)

    return copy_block


def share_data(into, source):
    for mine, theirs in zip(into.parameters(), source.parameters(), strict=True):
        mine.data = theirs.data


def begin_assigning(student, teacher):
    begin.begin(student, teacher)
    for i, n in enumerate(by_distance(len(teacher.stack.blocks), len(student.stack.blocks))):
        student.stack.blocks[i] = teacher.stack.blocks[n]
    return student


def begin_embeddings_assigned(student, teacher):
    begin.begin(student, teacher).embeddings = teacher.embeddings
    return student


def begin_copied_modules(student, teacher):
    M, N = len(student.stack.blocks), len(teacher.stack.blocks)
    student.embeddings = copy.deepcopy(teacher.embeddings)
    for i, n in enumerate(by_distance(N, M)):
        student.stack.blocks[i] = copy.deepcopy(teacher.stack.blocks[n])
    return student


def begin_copied_and_thawed(student, teacher):
    return begin_copied_modules(student, teacher).requires_grad_(True)


def begin_not_strict(student, teacher):
    student.load_state_dict(teacher.state_dict(), strict=False)
    return student


def begin_shorter(student, teacher):
    student.stack.blocks = student.stack.blocks[:-1]
    return student


def begin_without(*parts):
    def answer(student, teacher):
        before = copy.deepcopy(student.embeddings.state_dict())
        begin.begin(student, teacher)
        old = {name: x for name, x in before.items() if name.split(".")[0] in parts}
        student.embeddings.load_state_dict(old, strict=False)
        return student

    return answer


def begin_backwards(student, teacher):
    M, N = len(student.stack.blocks), len(teacher.stack.blocks)
    for i, n in enumerate(by_distance(N, M)):
        teacher.stack.blocks[n].load_state_dict(student.stack.blocks[i].state_dict())
    return student


def begin_one_block(student, teacher):
    begin.begin(student, teacher)
    M = len(student.stack.blocks)
    source = student.stack.blocks[0]
    for i in range(M):
        student.stack.blocks[i] = source
    return student


def layers_with(
    *, scores="attention_scores", s_at=lambda m, n: m - 1, t_at=lambda m, n: n - 1,
    pairs=lambda real: real.unsqueeze(1) & real.unsqueeze(2), reduce_heads="mean",
    hs_at=lambda m, n: m, ht_at=lambda m, n: n, widen=lambda a, b, W: (a @ W, b),
    tokens=lambda real: real, both=lambda a, h: (a, h), total=sum, start=1,
):  # fmt: skip
    """Both losses pair by pair with boolean picking; a keyword changes one thing."""

    def answer(student, teacher, mapping, matrix, real):
        attention, hidden = [], []
        for m, n in enumerate(mapping, start=1):
            keep = pairs(real)
            a = getattr(student, scores)[s_at(m, n)].transpose(0, 1)  # (A, B, T, T)
            b = getattr(teacher, scores)[t_at(m, n)].transpose(0, 1)
            heads = [F.mse_loss(x[keep], y[keep]) for x, y in zip(a, b, strict=True)]
            attention.append(sum(heads) / (len(heads) if reduce_heads == "mean" else 1))
        for m, n in [(0, 0)] * (start == 0) + list(enumerate(mapping, start=1)):
            a, b = student.hidden_states[hs_at(m, n)], teacher.hidden_states[ht_at(m, n)]
            a, b = widen(a, b, matrix)
            hidden.append(F.mse_loss(a[tokens(real)], b[tokens(real)]))
        return both(total(attention), total(hidden))

    return answer


def layers_as_released(student, teacher, mapping, matrix, real):
    """Cells at hidden keys set to zero, then a mean over all cells."""
    attention, hidden = layers.layer_losses(student, teacher, mapping, matrix, real)
    pairs = (real[:, :, None] & real[:, None, :]).double()
    return attention * pairs.mean(), hidden


def transposed_where_it_fits(a, b, W):
    return (a @ W.T if W.shape[0] == W.shape[1] else a @ W), b


def no_matrix_where_it_fits(a, b, W):
    return (a if a.shape == b.shape else a @ W), b


def to_the_students_width(a, b, W):
    return a, b @ W.T


def total_mean(losses):
    return sum(losses) / len(losses)


def misprint_with(
    *, mean=lambda row: fmean(row.values()), close_enough=lambda a, b: f"{a:.1f}" == f"{b:.1f}",
    find=None, shift=lambda before, after, row, task, again, printed: before - after,
):  # fmt: skip
    def answer(row, printed, again):
        if close_enough(mean(row), printed):
            return None, 0.0
        fits = [t for t in row if close_enough(mean({**row, t: again[t]}), printed)]
        task = find(row, again) if find else (fits or [None])[0]
        if task is None:
            return None, 0.0
        after = {**row, task: again[task]}
        return task, shift(mean(row), mean(after), row, task, again, printed)

    return answer


def no_wnli(row):
    return fmean(x for task, x in row.items() if task != "WNLI")


PLANTED = {
    "06.1": {
        "multiplies by T": soften_with(lambda x, T: F.softmax(x * T, 1)),
        "divides after the softmax": soften_with(lambda x, T: F.softmax(x, 1) / T),
        "divides after the softmax, renormalised": soften_with(
            lambda x, T: F.normalize(F.softmax(x, 1) / T, p=1, dim=1)),
        "wrong axis": soften_with(lambda x, T: F.softmax(x / T, 0)),
        "not normalised": soften_with(lambda x, T: torch.exp(x / T)),
        "logarithms": soften_with(lambda x, T: F.log_softmax(x / T, 1)),
        "power without a sum": soften_with(lambda x, T: F.softmax(x, 1).pow(1 / T)),
        "divides by √T": soften_with(lambda x, T: F.softmax(x / T**0.5, 1)),
        "hardened": soften_with(lambda x, T: (x == x.max(1, keepdim=True).values).double()),
        "overflow": soften_by_hand,
        "0 · log 0": soften_with(entropy=lambda p: -(p * p.log()).sum(1)),
        "sign of the entropy": soften_with(entropy=lambda p: -entropy_of(p)),
        "bits": soften_with(entropy=lambda p: entropy_of(p) / math.log(2)),
        "entropy at T = 1": lambda x, T: (F.softmax(x / T, 1), entropy_of(F.softmax(x, 1))),
        "entropy averaged over the choices": soften_with(
            entropy=lambda p: torch.special.entr(p).mean(1)),
        "perplexity": soften_with(entropy=lambda p: entropy_of(p).exp()),
        "one entropy for all": soften_with(entropy=lambda p: entropy_of(p).mean()),
        "entropy missing": lambda x, T: F.softmax(x / T, 1),
        "exchanged": lambda x, T: soften.soften(x, T)[::-1],
        "wrong shape": soften_with(lambda x, T: F.softmax(x / T, 1)[:, :1]),
        "wrong type": lambda x, T: "soft",
        "unforeseen": soften_with(lambda x, T: F.softmax(x / (T + 1), 1)),
    },
    "06.2": {
        "no T²": soft_with(factor=lambda T: 1),
        "T instead of T²": soft_with(factor=lambda T: T),
        "divided by T²": soft_with(factor=lambda T: T**-2),
        "softened only on the student's side": soft_with(teacher=lambda x, T: F.softmax(x, 1)),
        "softened only on the teacher's side": soft_with(student=lambda x, T: F.log_softmax(x, 1)),
        "temperature ignored": soft_with(
            student=lambda x, T: F.log_softmax(x, 1), teacher=lambda x, T: F.softmax(x, 1),
            factor=lambda T: 1),
        "wrong way round": soft_with(swap=True),
        "mean over all entries": soft_with(reduction="mean"),
        "sum over positions": soft_with(reduction="sum"),
        "cross-entropy": soft_cross_entropy,
        "hard targets": soft_hard,
        "probabilities where logarithms belong": soft_with(
            student=lambda x, T: F.softmax(x / T, 1)),
        "scores where logarithms belong": soft_with(student=lambda x, T: x / T),
        "not a number": soft_with(teacher=lambda x, T: F.log_softmax(x / T, 1)),
        "wrong axis": lambda s, t, T: T**2 * (F.softmax(t.data / T, 0) * (
            F.log_softmax(t.data / T, 0) - F.log_softmax(s / T, 0))).sum(1).mean(),
        "squared distance of the scores": lambda s, t, T: (s - t.data).square().sum(1).mean(),
        "sign": soft_with(factor=lambda T: -(T**2)),
        "bits": soft_with(factor=lambda T: T**2 / math.log(2)),
        "no T² + mean over all entries": soft_with(factor=lambda T: 1, reduction="mean"),
        "no T² + wrong way round": soft_with(factor=lambda T: 1, swap=True),
        "no gradient": lambda s, t, T: soft_without_detach(s, t, T).item(),
        "the teacher learns": soft_without_detach,
        "not reduced": soft_with(reduction="none"),
        "wrong type": lambda s, t, T: "KL",
        "unforeseen": soft_with(factor=lambda T: 3 * T),
    },
    "06.3": {
        "padding counted": triple_with(soft_at=everywhere, cosine_at=everywhere),
        "padding in the soft targets": triple_with(soft_at=everywhere),
        "padding in the cosine": triple_with(cosine_at=everywhere),
        "soft targets at masked words only": triple_with(soft_at=at_asked),
        "everything at masked words only": triple_with(soft_at=at_asked, cosine_at=at_asked),
        "masked words at every token": triple_with(mlm_at=everywhere),
        "masked words at every real token": triple_with(mlm_at=lambda real, asked: real),
        "masked words divided by all tokens": triple_with(
            mlm_mean=lambda x, at: x[at].sum() / at.numel()),
        "soft targets and cosine row by row": triple_with(mean=rowwise),
        "averaged row by row": triple_with(mean=rowwise, mlm_mean=rowwise),
        "soft targets divided by the rows": lambda s, t, real, y, w, T: triple_with()(
            s, t, real, y, (0, w[1], w[2]), T) + w[0] * T * T * F.kl_div(
            F.log_softmax(s.logits / T, -1), F.softmax(t.logits / T, -1), reduction="batchmean"),
        "sign of the cosine": triple_with(apart=lambda c: c),
        "cosine without the one": triple_with(apart=lambda c: -c),
        "embeddings compared": triple_with(layer=0),
        "last layer but one": triple_with(layer=-2),
        "every layer compared": triple_with(layer="every"),
        "α and 1 − α": triple_with(weigh=lambda a, b, c: (a, 1 - a, c)),
        "weights made to add up to one": triple_with(
            weigh=lambda *w: [x / sum(w) for x in w]),
        "weights exchanged": triple_with(weigh=lambda a, b, c: (b, a, c)),
        "no weights": triple_with(weigh=lambda *w: (1, 1, 1)),
        "5, 2 and 1": triple_with(weigh=lambda *w: (5, 2, 1)),
        "no cosine": triple_with(weigh=lambda a, b, c: (a, b, 0)),
        "no T²": triple_with(factor=lambda T: 1),
        "nothing masked": triple_nan,
        "sign of the cosine + no T²": triple_with(factor=lambda T: 1, apart=lambda c: c),
        "no gradient": lambda *case: triple_with()(*case).item(),
        "several values": lambda *case: (triple_with()(*case), 1.0),
        "not reduced": lambda s, t, real, *rest: real.double(),
        "wrong type": lambda *case: "loss",
        "unforeseen": triple_with(apart=lambda c: 3 * (1 - c) ** 2),
    },
    "06.4": {
        "first layers": begin_with(lambda N, M: range(M)),
        "last layers": begin_with(lambda N, M: range(N - M, N)),
        "every other layer": begin_with(lambda N, M: range(0, N, N // M)),
        "every other layer, from the second": begin_with(
            lambda N, M: range(N // M - 1, N, N // M)),
        "rounded down": begin_with(lambda N, M: [i * (N - 1) // (M - 1) for i in range(M)]),
        "one layer off": begin_with(lambda N, M: [(n + 1) % N for n in by_distance(N, M)]),
        "reversed": begin_with(lambda N, M: by_distance(N, M)[::-1]),
        "one layer for all": begin_with(lambda N, M: [0] * M),
        "layers not copied": begin_with(lambda N, M: []),
        "LayerNorms not copied": begin_with(copy_block=copy_some(lambda n: "norm" not in n)),
        "biases not copied": begin_with(
            copy_block=copy_some(lambda n: "norm" in n or n.endswith("weight"))),
        "only linear weights copied": begin_with(
            copy_block=copy_some(lambda n: "norm" not in n and n.endswith("weight"))),
        "feed-forward not copied": begin_with(
            copy_block=copy_some(lambda n: "feed_forward" not in n)),
        "embeddings not copied": begin_with(embeddings=False),
        "embedding LayerNorm not copied": begin_without("norm"),
        "embeddings copied in part": begin_without("position", "segment"),
        "shared with the teacher": begin_assigning,
        "embeddings shared with the teacher": begin_embeddings_assigned,
        "frozen like the teacher": begin_copied_modules,
        "number of layers changed": begin_shorter,
        "the teacher changed": begin_backwards,
        "the teacher": lambda student, teacher: teacher,
        "another model": lambda student, teacher: copy.deepcopy(begin.begin(student, teacher)),
        "wrong type": lambda student, teacher: begin.begin(student, teacher).state_dict(),
        "unforeseen": begin_with(lambda N, M: [3, *by_distance(N, M)[1:]]),
    },
    "06.5": {
        "after the softmax": layers_with(scores="attentions"),
        "mapping ignored in attention": layers_with(t_at=lambda m, n: m - 1),
        "teacher one layer off in attention": layers_with(t_at=lambda m, n: n - 2),
        "padding counted in attention": layers_with(
            pairs=lambda real: torch.ones_like(real.unsqueeze(1) & real.unsqueeze(2))),
        "padded keys only left out": layers_with(
            pairs=lambda real: real.unsqueeze(1).expand(-1, real.shape[1], -1)),
        "padding zeroed but counted in attention": layers_as_released,
        "sum over heads": layers_with(reduce_heads="sum"),
        "attention: layers averaged": layers_with(total=total_mean),
        "attention: last layer only": layers_with(total=lambda losses: losses[-1]),
        "both one layer off": layers_with(hs_at=lambda m, n: m - 1, ht_at=lambda m, n: n - 1),
        "teacher one layer off": layers_with(ht_at=lambda m, n: n - 1),
        "student one layer off": layers_with(hs_at=lambda m, n: m - 1),
        "mapping ignored": layers_with(ht_at=lambda m, n: m),
        "matrix transposed": layers_with(widen=transposed_where_it_fits),
        "matrix on the teacher's side": layers_with(widen=to_the_students_width),
        "no matrix": layers_with(widen=no_matrix_where_it_fits),
        "padding counted": layers_with(tokens=torch.ones_like),
        "embeddings included": layers_with(start=0),
        "exchanged": layers_with(both=lambda a, h: (h, a)),
        "one number": layers_with(both=lambda a, h: a + h),
        "no gradient": layers_with(both=lambda a, h: (a, h.item())),
        "wrong type": layers_with(both=lambda a, h: "two"),
        "unforeseen": layers_with(both=lambda a, h: (a, 7 * h)),
    },
    "06.6": {
        "WNLI left out": misprint_with(mean=no_wnli),
        "median": misprint_with(mean=lambda row: median(row.values())),
        "not rounded": misprint_with(close_enough=lambda a, b: abs(a - b) < 1e-9),
        "farthest from the mean": misprint_with(
            find=lambda row, again: max(row, key=lambda t: abs(row[t] - fmean(row.values())))),
        "largest cell": misprint_with(find=lambda row, again: max(row, key=row.get)),
        "first difference": misprint_with(
            find=lambda row, again: next(t for t in row if row[t] != again[t])),
        "largest difference": misprint_with(
            find=lambda row, again: max(row, key=lambda t: abs(row[t] - again[t]))),
        "shift of the cell": misprint_with(shift=lambda a, b, row, t, again, p: row[t] - again[t]),
        "shift against the printed mean": misprint_with(
            shift=lambda a, b, row, t, again, p: a - p),
        "sign of the shift": misprint_with(shift=lambda a, b, *rest: b - a),
        "shift without its sign": misprint_with(shift=lambda a, b, *rest: abs(a - b)),
        "mended mean": misprint_with(shift=lambda a, b, *rest: b),
        "mended value": misprint_with(shift=lambda a, b, row, t, again, p: again[t]),
        "shift divided by eight": misprint_with(shift=lambda a, b, *rest: (a - b) * 9 / 8),
        "rounded shift": misprint_with(shift=lambda a, b, *rest: round(a - b, 1)),
        "wrong type": lambda row, printed, again: "MNLI",
        "unforeseen": misprint_with(shift=lambda a, b, *rest: 5 * (a - b)),
    },
}  # fmt: skip


# ---------------------------------------------------------------- other right and wrong answers


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("06.1", soften_with()),
        ("06.1", soften_with(lambda x, T: torch.distributions.Categorical(logits=x / T).probs)),
        ("06.2", soft_with()),
        ("06.2", soft_target_loss),
        ("06.3", triple_with()),
        ("06.3", triple_library),
        ("06.4", begin_with()),
        ("06.4", begin_copied_and_thawed),
        ("06.5", layers_with()),
        ("06.5", layers_with(both=lambda a, h: [a, h])),
        ("06.5", layers_with(both=lambda a, h: {"attention": a, "hidden": h})),
        ("06.6", misprint_with()),
        ("06.6", misprint_with(close_enough=lambda a, b: abs(a - b) < 0.05)),
    ],
)
def test_another_right_answer_passes(id, answer):
    for seed in SEEDS[:2]:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.status == "passed", report


@pytest.mark.parametrize(
    ("id", "answer", "key"),
    [
        ("06.1", soften_with(lambda x, T: F.softmax(x / T**2, 1)), "divides by T²"),
        ("06.1", soften_with(entropy=lambda p: entropy_of(p) / math.log(p.shape[1])),
         "share of the largest entropy"),
        ("06.2", soft_with(student=lambda x, T: F.log_softmax(x, 1),
                           teacher=lambda x, T: F.softmax(x, 1)), "nothing softened"),
        ("06.2", lambda s, t, T: T * T * (F.softmax(s / T, 1) - F.softmax(t.data / T, 1))
         .square().sum(1).mean(), "squared distance of the probabilities"),
        ("06.3", triple_with(weigh=lambda a, b, c: (1 - b, b, c)), "α and 1 − α exchanged"),
        ("06.3", triple_with(cosine_at=at_asked), "cosine at masked words only"),
        ("06.4", begin_with(copy_block=share_data), "shared with the teacher"),
        ("06.4", begin_one_block, "one layer for all"),
        ("06.4", begin_not_strict, "first layers"),
        ("06.5", layers_with(t_at=lambda m, n: min(m, n) - 1, ht_at=lambda m, n: m),
         "mapping ignored in attention"),
        ("06.5", layers_with(pairs=lambda real: real.unsqueeze(2).expand(-1, -1, real.shape[1])),
         "padded queries only left out"),
        ("06.6", misprint_with(find=lambda row, again: min(row, key=row.get)), "smallest cell"),
        ("06.6", misprint_with(shift=lambda a, b, *rest: round(a - b, 2)),
         "shift to two decimals"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_in_other_clothes_too(id, answer, key):
    for seed in SEEDS[:2]:
        assert check_answer(EXERCISES[id], answer, seed).mistake == key


@pytest.mark.parametrize(
    ("id", "answer", "advice"),
    [
        ("06.3", lambda s, t, real, y, w, T: F.cross_entropy(s.logits, y), "logits[asked]"),
        ("06.4", lambda s, t: s.load_state_dict(t.state_dict()), "do not fit"),
        ("06.4", lambda s, t: s.embeddings.token.weight.copy_(t.embeddings.token.weight),
         "torch.no_grad()"),
        ("06.4", begin_with(lambda N, M: range(N - M + 1, N + 1)), "counted from 0"),
        ("06.5", layers_with(t_at=lambda m, n: n), "attention_scores[n - 1]"),
        ("06.5", layers_with(widen=lambda a, b, W: (a @ W.T[:, :0].T, b)), "states @ matrix"),
        ("06.6", lambda row, printed, again: fmean(row), "row.values()"),
    ],
)  # fmt: skip
def test_a_frequent_exception_gets_a_line_of_advice(id, answer, advice):
    report = check_answer(EXERCISES[id], answer, 0)
    assert report.mistake == "raised", report
    assert advice in report.message, report


# ---------------------------------------------------------------- the solutions against the library


def test_the_hint_of_the_softer_answer_is_right():
    said = EXERCISES["06.1"].hints[-1]
    for T in (1.0, 2.0):
        shares, entropy = soften.soften(torch.tensor([[2.0, 0.0]]), T)
        a, b = shares[0].tolist()
        assert f"{a:.3f} and {b:.3f}, entropy {entropy.item():.3f}" in said


def test_the_hint_of_the_soft_loss_is_right():
    said, scores = EXERCISES["06.2"].hints[-1], torch.tensor([[2.0, 0.0]])
    one, two = (soft_target_loss(scores, 0 * scores, T).item() for T in (1.0, 2.0))
    assert f"T = 1 gives {one:.3f}" in said and f"= {two:.3f}." in said
    assert f"4 · {two / 4:.3f}" in said


def test_the_soft_loss_is_the_librarys():
    for case in targets.RICH(Draw(3)):
        assert close(targets.soft_loss(*case), soft_target_loss(*case))


def test_the_triple_loss_is_the_librarys():
    for case in [*triple.RICH(Draw(3)), triple._case(Draw(4), ((3, 5), (0, 0)))]:
        assert close(triple.triple_loss(*case), triple_library(*case))


def test_the_layer_losses_are_the_librarys():
    loss = tinybert_loss([2, 4], embedding=0.0)
    for case in layers._drawn([([2, 4], 4, 3, 5)], [(4, 4), (6, 3)])(Draw(3)):
        student, teacher, _, matrix, real = case
        widened = tuple(x @ matrix for x in student.hidden_states)
        found = loss(TaughtOutput(student, teacher, real, None, widened), {})
        attention, hidden = layers.layer_losses(*case)
        assert close(attention, found["attention"]) and close(hidden, found["hidden"])


def test_the_drawn_scores_look_like_an_encoders():
    said = layers._said(Draw(1), 1, 4, torch.tensor([[True, True, False]]))
    assert (said.attentions[0][..., 2] == 0).all()
    assert torch.isfinite(said.attention_scores[0]).all()


def test_the_layers_chosen_are_the_librarys():
    for sizes in ((12, 6), (4, 2), (9, 4), (5, 3)):
        assert tuple(begin.chosen(*sizes)) == spread_layers(*sizes) == tuple(by_distance(*sizes))
    assert "0, 2, 4, 7, 9, 11" in EXERCISES["06.4"].statement
    assert begin.chosen(12, 6) == [0, 2, 4, 7, 9, 11]


def test_a_student_begins_as_the_librarys_does():
    student, teacher = begin._encoders(Draw(5), 4, 2)
    ours = begin.begin(copy.deepcopy(student), teacher)
    config = ours.config
    sizes = {
        name: getattr(config, name)
        for name in ("vocab_size", "hidden_size", "num_heads", "intermediate_size", "max_positions")
    }
    theirs = distilbert_for_masked_lm(**sizes, num_layers=2, type_vocab_size=2)
    whole = distilbert_for_masked_lm(**sizes, num_layers=4, type_vocab_size=2)
    whole.encoder = teacher
    initialise_from(theirs, whole)
    for mine, other in zip(ours.parameters(), theirs.encoder.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_teacher_whose_tensors_are_shared_would_change():
    student, teacher = begin._encoders(Draw(5), 4, 2)
    shared = begin_assigning(student, teacher)
    before = teacher.stack.blocks[0].attention.query.weight.clone()
    with torch.no_grad():
        shared.stack.blocks[0].attention.query.weight += 1
    assert not torch.equal(teacher.stack.blocks[0].attention.query.weight, before)


def test_no_way_to_choose_layers_is_the_right_one_by_another_name():
    for key, (found, _) in begin.known_choices(12, 6).items():
        assert found != begin.chosen(12, 6), key


def test_the_printed_row_contradicts_itself_and_the_mended_one_does_not():
    row, printed, again = misprint.printed_row()
    assert (printed, row["MNLI"], again["MNLI"]) == (79.5, 86.7, 84.7)
    assert f"{glue_average(row, 'dev-9'):.2f}" == "79.72"
    assert f"{glue_average(again, 'dev-9'):.2f}" == "79.50"
    task, shift = misprint.misprint(row, printed, again)
    assert task == "MNLI" and close(shift, 2 / 9)
    assert set(row) == set(misprint.TASKS)


def test_the_second_prints_slips_never_mend_the_mean():
    for seed in range(30):
        for row, printed, again in misprint._two_prints(Draw(seed)):
            fits = [t for t in row if round(fmean({**row, t: again[t]}.values()), 1) == printed]
            assert len(fits) == 1 and round(fmean(row.values()), 1) != printed


def test_the_hint_of_the_shift_is_right():
    assert "1.8 / 9 = 0.2" in EXERCISES["06.6"].hints[-1] and close(1.8 / 9, 0.2)


def test_a_perfect_student_has_no_soft_loss_and_still_a_cross_entropy():
    scores = torch.tensor([[1.0, 0.0, -1.0]])
    assert close(targets.soft_loss(scores, scores, 2.0), 0.0)
    assert float(soft_cross_entropy(scores, scores, 2.0)) > 1


def test_layers_are_modules_of_the_course():
    student, _ = begin._encoders(Draw(1), 4, 2)
    assert isinstance(student.stack.blocks, nn.ModuleList)
