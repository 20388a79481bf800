"""What other hands might write for the exercises of lecture 06, right and wrong."""

from __future__ import annotations

import copy
from statistics import fmean

import numpy as np
import torch
import torch.nn.functional as F
from torch.distributions import Categorical, kl_divergence

from course_lib.heads import MaskedLMOutput
from course_lib.kernels.distillation import soft_target_loss
from course_lib.objectives.distillation import distilbert_loss
from course_lib.train.distilling import PairOutput

# ---------------------------------------------------------------- 06.1


def soften_with(probabilities=lambda x, T: F.softmax(x / T, 1), entropy=None):
    entropy = entropy or (lambda p: torch.special.entr(p).sum(-1))
    return lambda logits, T: (probabilities(logits, T), entropy(probabilities(logits, T)))


def soften_by_rows(logits, temperature):
    rows = [Categorical(logits=row / temperature) for row in logits]
    return [row.probs.tolist() for row in rows], [row.entropy().item() for row in rows]


def soften_numpy(logits, temperature):
    x = logits.numpy() / temperature
    x = x - x.max(1, keepdims=True)
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    return p, -np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0.0).sum(1)


# ---------------------------------------------------------------- 06.2


def kl(student_logits, teacher_logits, T, teacher=F.softmax, reduction="batchmean"):
    student = F.log_softmax(student_logits / T, 1)
    return T * T * F.kl_div(student, teacher(teacher_logits.data / T, 1), reduction=reduction)


def kl_by_rows(student_logits, teacher_logits, temperature):
    total = 0
    for s, t in zip(student_logits, teacher_logits.data, strict=True):
        two = Categorical(logits=t / temperature), Categorical(logits=s / temperature)
        total = total + kl_divergence(*two)
    return temperature * temperature * total / len(student_logits)


def kl_letting_the_teacher_learn(s, t, T):
    s, t = F.log_softmax(s / T, -1), F.log_softmax(t / T, -1)
    return T**2 * F.kl_div(s, t, reduction="batchmean", log_target=True)


# ---------------------------------------------------------------- 06.3


def triple_library(student, teacher, real, labels, weights, temperature):
    at = (labels != -100).flatten().nonzero()[:, 0]
    loss, targets = distilbert_loss(*weights, temperature), {"labels": labels.flatten()[at]}
    fixed = MaskedLMOutput(teacher.logits.data, tuple(x.data for x in teacher.hidden_states))
    return loss(PairOutput(student, fixed, real, at), targets)["total"]


def triple_loops(student, teacher, real, labels, weights, T):
    soft, mlm, cosine = [], [], []
    for b, t in real.nonzero().tolist():
        s, w = student.logits[b, t], teacher.logits[b, t].detach()
        soft.append(kl_by_rows(s[None], w[None], T).squeeze())
        u, v = student.hidden_states[-1][b, t], teacher.hidden_states[-1][b, t].detach()
        cosine.append(1 - u @ v / (u.norm() * v.norm()))
        if labels[b, t] >= 0:
            mlm.append(-s.log_softmax(0)[labels[b, t]])
    means = [sum(x) / len(x) if x else 0 for x in (soft, mlm, cosine)]
    return sum(w * x for w, x in zip(weights, means, strict=True))


def triple_careless(student, teacher, real, labels, weights, T):
    soft = soft_target_loss(student.logits[real], teacher.logits[real], T)
    mlm = F.cross_entropy(student.logits.flatten(0, 1), labels.flatten())
    last = student.hidden_states[-1][real], teacher.hidden_states[-1][real].data
    cosine = F.cosine_embedding_loss(*last, torch.ones(len(last[0])))
    return sum(w * x for w, x in zip(weights, (soft, mlm, cosine), strict=True))


# ---------------------------------------------------------------- 06.4


def by_distance(N, M):
    """The right choice, found without rounding."""
    steps = [i * (N - 1) / (M - 1) for i in range(M)]
    return [min(range(N), key=lambda n: abs(n - step)) for step in steps]


@torch.no_grad()
def copy_parameters(into, source):
    for parameter, other in zip(into.parameters(), source.parameters(), strict=True):
        parameter.copy_(other)


def begin_with(choose=by_distance):
    """Layers by another rule."""

    def answer(student, teacher):
        student.embeddings.load_state_dict(teacher.embeddings.state_dict())
        M, N = len(student.stack.blocks), len(teacher.stack.blocks)
        for i, n in enumerate(choose(N, M)):
            copy_parameters(student.stack.blocks[i], teacher.stack.blocks[n])
        return student

    return answer


def begin_copied(student, teacher, how=copy.deepcopy):
    student.embeddings = how(teacher.embeddings)
    for i, n in enumerate(by_distance(len(teacher.stack.blocks), len(student.stack.blocks))):
        student.stack.blocks[i] = how(teacher.stack.blocks[n])
    return student


def begin_shorter(student, teacher):
    student.stack.blocks = student.stack.blocks[:-1]
    return student


def begin_tokens_only(student, teacher):
    positions = copy.deepcopy(student.embeddings)
    begin_with()(student, teacher)
    positions.token = student.embeddings.token
    student.embeddings = positions
    return student


def begin_backwards(student, teacher):
    for i, n in enumerate(by_distance(len(teacher.stack.blocks), len(student.stack.blocks))):
        teacher.stack.blocks[n].load_state_dict(student.stack.blocks[i].state_dict())
    return student


# ---------------------------------------------------------------- 06.5


def layers_with(
    *, t_at=lambda n: n - 1, pairs=lambda real: real.unsqueeze(1) & real.unsqueeze(2),
    widen=lambda a, W: a @ W, both=lambda a, h: (a, h),
):  # fmt: skip
    """Both losses pair by pair with boolean picking; a keyword changes one thing."""

    def answer(student, teacher, mapping, matrix, real):
        attention, hidden, keep = 0, 0, pairs(real)
        for m, n in enumerate(mapping, start=1):
            a = student.attention_scores[m - 1].transpose(0, 1)  # (A, B, T, T)
            b = teacher.attention_scores[t_at(n)].detach().transpose(0, 1)
            heads = [F.mse_loss(x[keep], y[keep]) for x, y in zip(a, b, strict=True)]
            attention = attention + sum(heads) / len(heads)
            a, b = widen(student.hidden_states[m], matrix), teacher.hidden_states[n].detach()
            hidden = hidden + F.mse_loss(a[real], b[real])
        return both(attention, hidden)

    return answer


def layers_einsum(student, teacher, mapping, matrix, real):
    """Weighted sums in place of picking."""
    w, pairs = real.double(), torch.einsum("bq,bk->bqk", real.double(), real.double())
    attention = hidden = 0
    for i in range(len(mapping)):
        a, b = student.attention_scores[i], teacher.attention_scores[mapping[i] - 1].data
        apart = torch.where(pairs[:, None] > 0, a - b, 0.0).pow(2).mean(1)
        attention = attention + (apart * pairs).sum() / pairs.sum()
        c = student.hidden_states[i + 1] @ matrix - teacher.hidden_states[mapping[i]].data
        hidden = hidden + (c.pow(2).mean(-1) * w).sum() / w.sum()
    return attention, hidden


# ---------------------------------------------------------------- 06.6


def misprint_with(same=lambda a, b: f"{a:.1f}" == f"{b:.1f}", shift=lambda a, b: a - b):
    """same(mean, printed); shift(mean before, mean after)."""

    def answer(row, printed, again):
        means = {t: fmean({**row, t: again[t]}.values()) for t in row}
        before = fmean(row.values())
        if same(before, printed) or not any(same(x, printed) for x in means.values()):
            return None, 0.0
        task = next(t for t in row if same(means[t], printed))
        return task, shift(before, means[task])

    return answer


def misprint_by_gap(row, printed, again):
    """The cell whose error is the gap between nine printed means and the sum."""
    gap = sum(row.values()) - 9 * printed
    if abs(gap) < 0.45:
        return [None, 0]
    task = min(row, key=lambda t: abs(row[t] - again[t] - gap))
    return [task, (row[task] - again[task]) / 9]


# ---------------------------------------------------------------- the answers

RIGHT = {
    "06.1": [soften_with(), soften_by_rows, soften_numpy],
    "06.2": [kl, kl_by_rows,
             lambda s, t, T: kl_letting_the_teacher_learn(s, t.detach(), T).reshape(1)],
    "06.3": [triple_library, triple_loops],
    "06.4": [begin_with(), lambda s, t: begin_copied(s, t).requires_grad_(True)],
    "06.5": [layers_with(), layers_einsum, layers_with(both=lambda a, h: [a, h])],
    "06.6": [misprint_with(), misprint_by_gap,
             misprint_with(lambda a, b: abs(a - b) < 0.05)],
}  # fmt: skip

WRONG = {
    "06.1": [
        (soften_with(lambda x, T: (x == x.amax(1, keepdim=True)) * 1.0), "the hard answer"),
        (soften_with(entropy=lambda p: -(p * p.log()).sum(1)), "0 · log 0 is nan"),
    ],
    "06.2": [
        (lambda *args: kl(*args, teacher=F.log_softmax), "say log_target=True"),
        (lambda s, t, T: F.mse_loss(s, t), "squared distance of the logits"),
        (lambda s, t, T: torch.tensor(0.0), "you have"),
    ],
    "06.3": [
        (lambda s, t, real, *rest: triple_library(s, t, torch.ones_like(real), *rest),
         "You count padding in the cosine"),
        (triple_careless, "divide the sum by max(1, their number)"),
        (lambda s, t, real, y, w, T: F.cross_entropy(s.logits, y), "logits[masked]"),
        (lambda *case: torch.tensor(1.0), "you have"),
    ],
    "06.4": [
        (begin_with(lambda N, M: range(0, N, N // M)), "the paper's wording"),
        (begin_with(lambda N, M: range(N - M + 1, N + 1)), "counted from 0"),
        (begin_with(lambda N, M: [3, *by_distance(N, M)[1:]]), "you have [3, 3]; expected [0, 3]"),
        (begin_tokens_only, "'position.weight', 'segment.weight'"),
        (begin_shorter, "has 1 now"),
        (begin_backwards, "The teacher's weights changed"),
        (lambda s, t: t, "returned the teacher"),
        (lambda s, t: copy.deepcopy(begin_with()(s, t)), "not the student it was given"),
        (lambda s, t: s.load_state_dict(t.state_dict()), "do not fit"),
        (lambda s, t: s.embeddings.token.weight.copy_(t.embeddings.token.weight), "no_grad()"),
    ],
    "06.5": [
        (layers_with(t_at=lambda n: n), "attention_scores[n - 1]"),
        (layers_with(pairs=lambda real: torch.ones_like(real[:, None] & real[..., None])),
         "Attention: you count pairs with padding"),
        (layers_with(both=lambda a, h: (a, 7 * h)), "Hidden loss: you have"),
    ],
    "06.6": [
        (misprint_with(lambda a, b: round(a) == round(b)), "Task: you have"),
        (lambda row, printed, again: fmean(row), "row.values()"),
        (misprint_with(shift=lambda a, b: 5 * (a - b)), "Shift: you have"),
    ],
}  # fmt: skip
