"""What other hands might write for the exercises of lecture 06, right and wrong."""

from __future__ import annotations

import copy
from statistics import fmean, median

import numpy as np
import torch
import torch.nn.functional as F
from torch.distributions import Categorical, kl_divergence

from course_lib.heads import MaskedLMOutput
from course_lib.kernels.distillation import soft_target_loss
from course_lib.objectives.distillation import distilbert_loss
from course_lib.train.distilling import TaughtOutput

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


# ---------------------------------------------------------------- 06.3


def mean_of(x, where):
    return x[where].sum() / max(1, int(where.sum()))


def triple_with(
    *, soft_at=lambda real, at: real, mlm_at=lambda real, at: at, cosine_at=lambda real, at: real,
    mean=mean_of, mlm_mean=mean_of, layer=-1, apart=lambda cosine: 1 - cosine,
    weigh=lambda a, b, c: (a, b, c), factor=lambda T: T * T, mlm_T=lambda T: 1,
):  # fmt: skip
    """The triple loss position by position; a keyword changes one thing."""

    def answer(student, teacher, real, labels, weights, T):
        at = labels >= 0
        log_p, q = F.log_softmax(student.logits / T, -1), F.softmax(teacher.logits.detach() / T, -1)
        soft = F.kl_div(log_p, q, reduction="none").sum(-1)
        words = labels.clamp(min=0)
        logits = student.logits.transpose(1, 2) / mlm_T(T)
        mlm = F.cross_entropy(logits, words, reduction="none")
        states = zip(student.hidden_states, teacher.hidden_states, strict=True)
        alike = [F.cosine_similarity(x, y.data, dim=-1) for x, y in states]
        alike = torch.stack(alike).mean(0) if layer == "every" else alike[layer]
        a, b, c = weigh(*weights)
        return (
            a * factor(T) * mean(soft, soft_at(real, at))
            + b * mlm_mean(mlm, mlm_at(real, at))
            + c * mean(apart(alike), cosine_at(real, at))
        )

    return answer


def everywhere(real, at):
    return torch.ones_like(real)


def at_masked(real, at):
    return at


def by_row(x, where):
    return sum(mean_of(a, b) for a, b in zip(x, where, strict=True)) / len(x)


def triple_library(student, teacher, real, labels, weights, temperature):
    at = (labels != -100).flatten().nonzero()[:, 0]
    loss, targets = distilbert_loss(*weights, temperature), {"labels": labels.flatten()[at]}
    fixed = MaskedLMOutput(teacher.logits.data, tuple(x.data for x in teacher.hidden_states))
    return loss(TaughtOutput(student, fixed, real, at), targets)["total"]


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


def triple_teaching_the_teacher(student, teacher, real, labels, weights, T):
    last = F.cosine_similarity(student.hidden_states[-1], teacher.hidden_states[-1], dim=-1)
    without = triple_with(apart=lambda c: 0 * c)(student, teacher, real, labels, weights, T)
    return without + weights[2] * (1 - last[real]).mean()


# ---------------------------------------------------------------- 06.4


def by_distance(N, M):
    """The right choice, found without rounding."""
    steps = [i * (N - 1) / (M - 1) for i in range(M)]
    return [min(range(N), key=lambda n: abs(n - step)) for step in steps]


@torch.no_grad()
def copy_parameters(into, source):
    for mine, theirs in zip(into.parameters(), source.parameters(), strict=True):
        mine.copy_(theirs)


def begin_with(choose=by_distance, *, copy_block=copy_parameters, embeddings=True):
    """Layers by another rule, or copied in another way: copy_block(into, source)."""

    def answer(student, teacher):
        if embeddings:
            student.embeddings.load_state_dict(teacher.embeddings.state_dict())
        M, N = len(student.stack.blocks), len(teacher.stack.blocks)
        for i, n in enumerate(choose(N, M)):
            copy_block(student.stack.blocks[i], teacher.stack.blocks[n])
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


def begin_copied(student, teacher, how=copy.deepcopy):
    student.embeddings = how(teacher.embeddings)
    for i, n in enumerate(by_distance(len(teacher.stack.blocks), len(student.stack.blocks))):
        student.stack.blocks[i] = how(teacher.stack.blocks[n])
    return student


def begin_one_block(student, teacher):
    begin_with()(student, teacher)
    for i in range(len(student.stack.blocks)):
        student.stack.blocks[i] = student.stack.blocks[0]
    return student


def begin_not_strict(student, teacher):
    student.load_state_dict(teacher.state_dict(), strict=False)
    return student


def begin_shorter(student, teacher):
    student.stack.blocks = student.stack.blocks[:-1]
    return student


def begin_tokens_only(student, teacher):
    begin_with(embeddings=False)(student, teacher)
    student.embeddings.token.load_state_dict(teacher.embeddings.token.state_dict())
    return student


def begin_backwards(student, teacher):
    for i, n in enumerate(by_distance(len(teacher.stack.blocks), len(student.stack.blocks))):
        teacher.stack.blocks[n].load_state_dict(student.stack.blocks[i].state_dict())
    return student


# ---------------------------------------------------------------- 06.5


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
            b = getattr(teacher, scores)[t_at(m, n)].detach().transpose(0, 1)
            heads = [F.mse_loss(x[keep], y[keep]) for x, y in zip(a, b, strict=True)]
            attention.append(sum(heads) / (len(heads) if reduce_heads == "mean" else 1))
        for m, n in [(0, 0)] * (start == 0) + list(enumerate(mapping, start=1)):
            a, b = student.hidden_states[hs_at(m, n)], teacher.hidden_states[ht_at(m, n)].detach()
            a, b = widen(a, b, matrix)
            hidden.append(F.mse_loss(a[tokens(real)], b[tokens(real)]))
        return both(total(attention), total(hidden))

    return answer


def layers_zeroed(student, teacher, mapping, matrix, real):
    """As in the authors code: low scores set to zero, a mean over all T · T."""
    attention = 0
    for a, n in zip(student.attention_scores, mapping, strict=True):
        b = teacher.attention_scores[n - 1].detach()
        keep = (real[:, None, :, None] & real[:, None, None, :]).expand_as(a)
        attention = attention + F.mse_loss(
            torch.where(keep, a, 0), torch.where(keep, b, 0).to(a.dtype)
        )
    return attention, layers_with()(student, teacher, mapping, matrix, real)[1]


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


def layers_teaching_the_teacher(student, teacher, mapping, matrix, real):
    hidden = [
        F.mse_loss((student.hidden_states[m] @ matrix)[real], teacher.hidden_states[n][real])
        for m, n in enumerate(mapping, 1)
    ]
    return layers_with()(student, teacher, mapping, matrix, real)[0], sum(hidden)


# ---------------------------------------------------------------- 06.6


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


def misprint_by_gap(row, printed, again):
    """The cell whose error is the gap between nine printed means and the sum."""
    gap = sum(row.values()) - 9 * printed
    if abs(gap) < 0.45:
        return [None, 0]
    task = min(row, key=lambda t: abs(row[t] - again[t] - gap))
    return [task, (row[task] - again[task]) / 9]


def first_difference(row, again):
    return next(t for t in row if row[t] != again[t])


def no_wnli(row):
    return fmean(x for task, x in row.items() if task != "WNLI")


# ---------------------------------------------------------------- the answers

RIGHT = {
    "06.1": [soften_with(), soften_by_rows, soften_numpy],
    "06.2": [kl_with(), kl_by_rows,
             lambda s, t, T: kl_letting_the_teacher_learn(s, t.detach(), T).reshape(1)],
    "06.3": [triple_with(), triple_library, triple_loops],
    "06.4": [begin_with(), lambda s, t: begin_copied(s, t).requires_grad_(True),
             begin_with(copy_block=copy_some(lambda name: True))],
    "06.5": [layers_with(), layers_einsum, layers_with(both=lambda a, h: [a, h])],
    "06.6": [misprint_with(), misprint_by_gap,
             misprint_with(close_enough=lambda a, b: abs(a - b) < 0.05)],
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
    "06.3": [
        (triple_with(soft_at=everywhere, cosine_at=everywhere), "Padding is counted in the cosine"),
        (triple_with(soft_at=everywhere), "Padding is counted in the soft targets"),
        (triple_with(cosine_at=everywhere), "Padding is counted in the cosine"),
        (triple_with(soft_at=at_masked), "soft targets are compared at the masked"),
        (triple_with(soft_at=at_masked, cosine_at=at_masked), "soft targets are compared at the m"),
        (triple_with(mlm_at=everywhere), "taken at every position, with word 0"),
        (triple_with(mlm_at=lambda real, at: real), "taken at every real token"),
        (triple_with(mlm_mean=lambda x, at: x[at].sum() / at.numel()), "divided by all B · T"),
        (triple_with(mean=by_row), "averaged in each row"),
        (triple_with(mean=by_row, mlm_mean=by_row), "averaged by itself, then the rows"),
        (triple_with(apart=lambda c: c), "The cosine is added"),
        (triple_with(apart=lambda c: -c), "−cosine stands"),
        (triple_with(layer=0), "the embeddings; take the last"),
        (triple_with(layer=-2), "last layer but one"),
        (triple_with(layer="every"), "averaged over all hidden states"),
        (triple_with(weigh=lambda a, b, c: (a, 1 - a, c)), "weighted by 1 − α"),
        (triple_with(weigh=lambda *w: [x / sum(w) for x in w]), "divided by their sum"),
        (triple_with(weigh=lambda a, b, c: (b, a, c)), "soft targets and MLM are exchanged"),
        (triple_with(weigh=lambda *w: (1, 1, 1)), "without their weights"),
        (triple_with(weigh=lambda *w: (5, 2, 1)), "always 5, 2 and 1"),
        (triple_with(weigh=lambda a, b, c: (a, b, 0)), "The cosine is missing"),
        (triple_with(factor=lambda T: 1), "T² of the soft targets is missing"),
        (triple_with(factor=lambda T: 1, apart=lambda c: c), "The cosine is added"),
        (triple_with(mlm_T=lambda T: T), "of softened logits"),
        (triple_careless, "divide a sum by max(1, how many)"),
        (triple_teaching_the_teacher, "flows into `teacher.hidden_states`; none may"),
        (lambda *case: triple_with()(*case).item(), "carries no gradient"),
        (lambda *case: (triple_with()(*case), 1.0), "expected one number"),
        (lambda s, t, real, y, w, T: F.cross_entropy(s.logits, y), "logits[masked]"),
        (lambda *case: torch.tensor(1.0), "you have"),
    ],
    "06.4": [
        (begin_with(lambda N, M: range(M)), "the teacher's first ones"),
        (begin_not_strict, "the teacher's first ones"),
        (begin_with(lambda N, M: range(N - M, N)), "the teacher's last ones"),
        (begin_with(lambda N, M: range(0, N, N // M)), "the paper's wording"),
        (begin_with(lambda N, M: range(N // M - 1, N, N // M)), "The first layer is missing"),
        (begin_with(lambda N, M: [i * (N - 1) // (M - 1) for i in range(M)]), "rounded down"),
        (begin_with(lambda N, M: [(n + 1) % N for n in by_distance(N, M)]), "the one after"),
        (begin_with(lambda N, M: by_distance(N, M)[::-1]), "in reverse order"),
        (begin_with(lambda N, M: [0] * M), "from the teacher's first."),
        (begin_one_block, "from the teacher's first."),
        (begin_with(lambda N, M: []), "nothing was copied"),
        (begin_with(lambda N, M: range(N - M + 1, N + 1)), "counted from 0"),
        (begin_with(lambda N, M: [3, *by_distance(N, M)[1:]]), "you have [3, 3]; it is [0, 3]"),
        (begin_with(copy_block=copy_some(lambda n: "norm" not in n)), "the two LayerNorms did"),
        (begin_with(copy_block=copy_some(lambda n: "norm" in n or n.endswith("weight"))),
         "the biases of the linear layers did"),
        (begin_with(copy_block=copy_some(lambda n: "norm" not in n and n.endswith("weight"))),
         "biases and LayerNorms did"),
        (begin_with(copy_block=copy_some(lambda n: "feed_forward" not in n)), "the feed-forward"),
        (begin_with(embeddings=False), "embeddings are not the teacher's. Copied"),
        (begin_tokens_only, "'position.weight', 'segment.weight'"),
        (begin_with(copy_block=share_data), "share the layers"),
        (lambda s, t: begin_copied(s, t, lambda x: x), "share layers and embeddings"),
        (lambda s, t: setattr(begin_with()(s, t), "embeddings", t.embeddings) or s,
         "share the embeddings"),
        (begin_copied, "the whole student is frozen"),
        (begin_shorter, "has 1 now"),
        (begin_backwards, "The teacher's numbers changed"),
        (lambda s, t: t, "returned the teacher"),
        (lambda s, t: copy.deepcopy(begin_with()(s, t)), "another model than the student"),
        (lambda s, t: begin_with()(s, t).state_dict(), "expected the student"),
        (lambda s, t: s.load_state_dict(t.state_dict()), "do not fit"),
        (lambda s, t: s.embeddings.token.weight.copy_(t.embeddings.token.weight), "no_grad()"),
    ],
    "06.5": [
        (layers_with(scores="attentions"), "The attention *probabilities*"),
        (layers_with(t_at=lambda m, n: m - 1), "Attention: the mapping has no effect"),
        (layers_with(t_at=lambda m, n: n - 2), "the layer before g(m). Scores"),
        (layers_with(t_at=lambda m, n: n), "attention_scores[n - 1]"),
        (layers_with(t_at=lambda m, n: m - 1, ht_at=lambda m, n: m), "Attention: the mapping has"),
        (layers_with(pairs=lambda real: torch.ones_like(real[:, None] & real[..., None])),
         "Attention: pairs with padding are counted"),
        (layers_with(pairs=lambda real: real.unsqueeze(1).expand(-1, real.shape[1], -1)),
         "but not its queries"),
        (layers_with(pairs=lambda real: real.unsqueeze(2).expand(-1, -1, real.shape[1])),
         "but not its keys"),
        (layers_zeroed, "still counted: the mean is divided by all T · T"),
        (layers_with(reduce_heads="sum"), "the heads are added"),
        (layers_with(total=lambda x: sum(x) / len(x)), "Attention: the layers are averaged"),
        (layers_with(total=lambda losses: losses[-1]), "Attention: only the last layer"),
        (layers_with(hs_at=lambda m, n: m - 1, ht_at=lambda m, n: n - 1), "one state too early"),
        (layers_with(ht_at=lambda m, n: n - 1), "that before layer g(m)"),
        (layers_with(hs_at=lambda m, n: m - 1), "that before layer m"),
        (layers_with(ht_at=lambda m, n: m), "Hidden states: the mapping has no effect"),
        (layers_with(widen=lambda a, b, W: (a @ (W.T if W.shape[0] == W.shape[1] else W), b)),
         "multiplied the wrong way round"),
        (layers_with(widen=lambda a, b, W: (a, b @ W.T)), "led to the student"),
        (layers_with(widen=lambda a, b, W: (a if a.shape == b.shape else a @ W, b)),
         "`matrix` has no effect"),
        (layers_with(tokens=torch.ones_like), "Hidden states: padding is counted"),
        (layers_with(start=0), "the embeddings are compared as well"),
        (layers_with(reduce_heads="sum", total=lambda x: sum(x) / len(x)), "the heads are added"),
        (layers_with(both=lambda a, h: (h, a)), "exchanged"),
        (layers_with(both=lambda a, h: a + h), "expected 2: attention loss, hidden loss"),
        (layers_with(both=lambda a, h: (a, h.item())), "Your hidden loss carries no gradient"),
        (layers_teaching_the_teacher, "flows into `teacher.hidden_states`; none may"),
        (layers_with(widen=lambda a, b, W: (a @ W.T[:, :0].T, b)), "states @ matrix"),
        (layers_with(both=lambda a, h: (a, 7 * h)), "Hidden loss: you have"),
    ],
    "06.6": [
        (misprint_with(mean=no_wnli), "without WNLI"),
        (misprint_with(mean=lambda row: median(row.values())), "The median is compared"),
        (misprint_with(close_enough=lambda a, b: abs(a - b) < 1e-9), "compare after rounding"),
        (misprint_with(close_enough=lambda a, b: round(a) == round(b)), "Task: you have"),
        (misprint_with(find=lambda row, again: max(
            row, key=lambda t: abs(row[t] - fmean(row.values())))), "farthest from the row"),
        (misprint_with(find=lambda row, again: max(row, key=row.get)), "The largest cell"),
        (misprint_with(find=lambda row, again: min(row, key=row.get)), "The smallest cell"),
        (misprint_with(find=first_difference), "The first cell in which"),
        (misprint_with(find=lambda row, again: max(row, key=lambda t: abs(row[t] - again[t]))),
         "differ most is blamed"),
        (misprint_with(shift=lambda a, b, row, t, again, p: row[t] - again[t]), "the *cell* is"),
        (misprint_with(shift=lambda a, b, row, t, again, p: a - p), "printed mean is subtracted"),
        (misprint_with(shift=lambda a, b, *rest: b - a), "The sign is wrong"),
        (misprint_with(shift=lambda a, b, *rest: abs(a - b)), "lost its sign"),
        (misprint_with(shift=lambda a, b, *rest: b), "the mean of the mended row;"),
        (misprint_with(shift=lambda a, b, row, t, again, p: again[t]), "right value of the cell"),
        (misprint_with(shift=lambda a, b, *rest: (a - b) * 9 / 8), "divided by eight"),
        (misprint_with(shift=lambda a, b, *rest: round(a - b, 1)), "The shift is rounded"),
        (misprint_with(shift=lambda a, b, *rest: round(a - b, 2)), "rounded to two decimals"),
        (misprint_with(find=first_difference, shift=lambda a, b, *rest: b - a), "sign is wrong"),
        (lambda row, printed, again: "MNLI", "expected 2: task, shift"),
        (lambda row, printed, again: fmean(row), "row.values()"),
        (misprint_with(shift=lambda a, b, *rest: 5 * (a - b)), "Shift: you have"),
    ],
}  # fmt: skip
