"""What other hands might write for the exercises of lecture 06, right and wrong."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.distributions import Categorical, kl_divergence

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
    log_p = x - torch.from_numpy(x).logsumexp(1, keepdim=True).numpy()
    return torch.from_numpy(log_p).exp().numpy(), -(log_p * torch.from_numpy(log_p).exp().numpy()).sum(1)


# ---------------------------------------------------------------- 06.2


def kl_with(student=lambda x, T: F.log_softmax(x / T, 1), teacher=lambda x, T: F.softmax(x / T, 1),
            reduction="batchmean", factor=lambda T: T * T, swap=False):  # fmt: skip
    def answer(student_logits, teacher_logits, temperature):
        s, t = student(student_logits, temperature), teacher(teacher_logits.data, temperature)
        if swap:
            s, t = t.log(), s.exp()
        return factor(temperature) * F.kl_div(s, t, reduction=reduction)

    return answer


def kl_by_rows(student_logits, teacher_logits, temperature):
    total = 0
    for s, t in zip(student_logits, teacher_logits.data, strict=True):
        two = Categorical(logits=t / temperature), Categorical(logits=s / temperature)
        total = total + kl_divergence(*two)
    return temperature * temperature * total / len(student_logits)


def kl_letting_the_teacher_learn(s, t, T):
    s, t = F.log_softmax(s / T, -1), F.log_softmax(t / T, -1)
    return T**2 * F.kl_div(s, t, reduction="batchmean", log_target=True)


# ---------------------------------------------------------------- the answers

RIGHT = {
    "06.1": [soften_with(), soften_by_rows, soften_numpy],
    "06.2": [kl_with(), kl_by_rows,
             lambda s, t, T: kl_letting_the_teacher_learn(s, t.detach(), T).reshape(1)],
}  # fmt: skip

WRONG = {
    "06.1": [
        (soften_with(lambda x, T: F.softmax(x * T, 1)), "multiplied by T"),
        (soften_with(lambda x, T: F.softmax(x, 1)), "T has no effect"),
        (soften_with(lambda x, T: F.normalize(F.softmax(x, 1) / T, p=1)), "T has no effect"),
        (soften_with(lambda x, T: F.softmax(x, 1) / T), "probabilities are divided by T"),
        (soften_with(lambda x, T: F.softmax(x / T, 0)), "Each column adds up to one"),
        (soften_with(lambda x, T: torch.exp(x / T)), "not divided by their sum"),
        (soften_with(lambda x, T: F.log_softmax(x / T, 1)), "this is its logarithm"),
        (soften_with(lambda x, T: F.softmax(x, 1).pow(1 / T)), "to the power 1/T"),
        (soften_with(lambda x, T: F.softmax(x / T**2, 1)), "divided by T²"),
        (soften_with(lambda x, T: (x == x.amax(1, keepdim=True)) * 1.0), "the hard answer"),
        (soften_with(entropy=lambda p: -(p * p.log()).sum(1)), "0 · log 0 is not a number"),
        (soften_with(entropy=lambda p: (p * p.log2()).sum(1).neg()), "base 2 (bits)"),
        (soften_with(entropy=lambda p: torch.special.entr(p).sum()), "shape (); expected"),
        (soften_with(entropy=lambda p: torch.special.entr(p).sum(1).exp()), "exp of it"),
        (soften_with(entropy=lambda p: -torch.special.entr(p).sum(1)), "the sign is turned"),
        (lambda x, T: (F.softmax(x / T, 1), torch.special.entr(F.softmax(x, 1)).sum(1)),
         "the entropy before softening"),
        (lambda x, T: F.softmax(x / T, 1), "expected 2: probabilities, entropy"),
        (lambda x, T: soften_with()(x, T)[::-1], "exchanged"),
    ],
    "06.2": [
        (kl_with(factor=lambda T: 1), "T² is missing"),
        (kl_with(factor=lambda T: T), "The factor is T;"),
        (kl_with(teacher=lambda x, T: F.softmax(x, 1)), "Only the student's logits"),
        (kl_with(lambda x, T: F.log_softmax(x, 1), lambda x, T: F.softmax(x, 1),
                 factor=lambda T: 1), "T has no effect"),
        (kl_with(swap=True), "wrong way round"),
        (kl_with(reduction="mean"), 'reduction="batchmean"'),
        (kl_with(reduction="sum"), "sum over the positions"),
        (kl_with(reduction="none"), "expected one number in nats"),
        (kl_with(swap=True, factor=lambda T: 1), "wrong way round"),
        (lambda s, t, T: T**2 * F.cross_entropy(s / T, F.softmax(t / T, -1)), "cross-entropy"),
        (lambda s, t, T: T**2 * F.cross_entropy(s / T, t.argmax(-1)), "as if it were a label"),
        (kl_with(lambda x, T: F.softmax(x / T, 1)), "probabilities stand where"),
        (kl_with(lambda x, T: x / T), "logits stand where"),
        (kl_with(teacher=lambda x, T: F.log_softmax(x / T, 1)), "say log_target=True"),
        (kl_with(lambda x, T: F.log_softmax(x / T, 0), lambda x, T: F.softmax(x / T, 0)),
         "over the positions"),
        (lambda s, t, T: (s - t).square().sum(1).mean(), "squared distance of the logits"),
        (lambda s, t, T: F.mse_loss(s, t), "squared distance of the logits"),
        (kl_with(factor=lambda T: -T * T), "never negative"),
        (lambda s, t, T: kl_by_rows(s, t, T).item(), "carries no gradient"),
        (kl_letting_the_teacher_learn, "flows into `teacher_logits`; none may"),
        (lambda s, t, T: torch.tensor(0.0), "you have"),
    ],
}  # fmt: skip
