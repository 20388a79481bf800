"""What other hands might write for the exercises of lecture 02, right and wrong.

A wrong answer that does what an edit of the solution does is tested with the edits."""

from __future__ import annotations

# mypy: ignore-errors
import math
import random
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F

# ---------------------------------------------------------------- 02.1


def count(c, *, tables=True, norms=True, biases=True, heads=False):
    """Layer by layer, from pairs (in, out), with things left out or added."""
    H, V = c.hidden_size, c.vocab_size
    block = [(H, H)] * 4 + [(H, c.intermediate_size), (c.intermediate_size, H)]
    linear = c.num_layers * block + [(H, H)] + [(H, H), (H, 2)] * heads
    total = sum(m * n + biases * n for m, n in linear) + (2 * H + V) * heads
    total += norms * 2 * H * (1 + 2 * c.num_layers)
    return total + (V + c.max_positions * tables + c.type_vocab_size * tables) * H


# ---------------------------------------------------------------- 02.2


def attention(q, k, v, attention_mask, far=-1e9, late=0.0):
    """far: added to the scores of padded keys; late: to their weights."""
    padding = 1 - attention_mask[:, None, None, :]
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    return ((scores + padding * far).softmax(-1) + padding * late) @ v


def attention_looped(q, k, v, attention_mask):
    out = np.zeros(tuple(q.shape))
    for b, a, t in np.ndindex(*q.shape[:3]):
        real = attention_mask[b].bool()
        w = np.exp((k[b, a, real] @ q[b, a, t] / q.shape[-1] ** 0.5).numpy())
        out[b, a, t] = (w / w.sum()) @ v[b, a, real].numpy()
    return out


def attention_ready_made(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m[:, None, None, :].bool())


# ---------------------------------------------------------------- 02.3


def masks(cuts=(0.8, 0.9), *, low=0, everywhere=False, draws=lambda generator: generator):
    """80/10/10 by hand, one thing changed; cuts: where [MASK] ends and where random ids end."""

    def answer(input_ids, selected, mask_id, vocab_size, generator):
        shape, generator = input_ids.shape, draws(generator)
        u = torch.rand(shape, generator=generator)
        others = torch.randint(low, vocab_size, shape, generator=generator)
        changed = torch.where(u < cuts[1], others, input_ids)
        changed = torch.where(u < cuts[0], mask_id, changed)
        return torch.where(selected | everywhere, changed, input_ids)

    return answer


def masks_looped(input_ids, selected, mask_id, vocab_size, generator):
    out = input_ids.tolist()
    g = np.random.default_rng(int(torch.randint(2**40, (), generator=generator)))
    for n, t in selected.nonzero().tolist():
        fate = g.choice(3, p=(0.8, 0.1, 0.1))
        out[n][t] = (mask_id, int(g.integers(vocab_size)), out[n][t])[fate]
    return out


# ---------------------------------------------------------------- 02.4


def choose(rule=lambda real, words, rate: round(rate * real), pick=lambda order, n: order[:n]):
    """The released code's rule by hand; rule: how many; pick: which."""

    def answer(input_ids, special, rate, max_predictions, generator):
        ids = input_ids.tolist()
        real = [id for id in ids if id != special.pad]
        places = [
            t for t, id in enumerate(ids) if id not in (special.pad, special.cls, special.sep)
        ]
        count = min(max_predictions, max(1, rule(len(real), len(places), rate)))
        order = torch.randperm(len(places), generator=generator).tolist()
        chosen = {places[i] for i in pick(order, count)}
        return [t in chosen for t in range(len(ids))]

    return answer


def choose_by_weights(input_ids, special, rate, max_predictions, generator):
    """The lowest of random numbers, infinite where nothing may be selected."""
    never = torch.isin(input_ids, torch.tensor(special.never_masked))
    length = int((input_ids != special.pad).sum())
    count = min(max_predictions, max(1, round(rate * length)), int((~never).sum()))
    u = torch.rand(len(input_ids), generator=generator) + never * 2.0
    return u <= u.sort().values[count - 1]


def choose_rounding_a_tensor(input_ids, special, rate, max_predictions, generator):
    return min(max_predictions, max(1, round(rate * (input_ids != special.pad).sum())))


# ---------------------------------------------------------------- 02.5


def make_pairs(label=lambda d, s, rng: rng.random() >= 0.5, flat=False):
    """The pairs by indices; label: the draw of IsNext; flat: every sentence of the other documents
    is equally likely, which is another reading."""

    def answer(documents, rng):
        made = []
        for d, document in enumerate(documents):
            others = documents[:d] + documents[d + 1 :]
            for s in range(len(document) - 1):
                if label(d, s, rng):
                    made.append((document[s], document[s + 1], 0))
                else:
                    other = [*chain(*others)] if flat else others[rng.randrange(len(others))]
                    made.append([document[s], rng.choice(other), 1])
        return made

    return answer


def pairs_label_a_document(documents, rng):
    z = [rng.random() < 0.5 for _ in documents]
    return make_pairs(label=lambda d, s, rng: z[d])(documents, rng)


# ---------------------------------------------------------------- 02.6


def loss(prediction_logits, labels, nsp_logits, nsp_label, pair=1):
    at = labels != -100
    nll = -prediction_logits.log_softmax(-1)[at].gather(1, labels[at][:, None])
    return nll.mean() - pair * nsp_logits.log_softmax(-1).gather(1, nsp_label[:, None]).mean()


def loss_looped(prediction_logits, labels, nsp_logits, nsp_label):
    words, pair = [], []
    for b in range(len(labels)):
        for t in range(labels.shape[1]):
            if labels[b, t] != -100:
                p = torch.softmax(prediction_logits[b, t], 0)
                words.append(-torch.log(p[labels[b, t]]))
        pair.append(-torch.log(torch.softmax(nsp_logits[b], 0)[nsp_label[b]]))
    return (sum(words) / len(words) + sum(pair) / len(pair)).reshape(1)


# ---------------------------------------------------------------- 02.7


def pieces(word, vocab, max_chars, unknown="[UNK]"):
    """By slicing the word down."""
    pieces_so_far, rest = [], word if len(word) <= max_chars else "?"
    while rest:
        mark = "##" if pieces_so_far else ""
        sizes = [n for n in range(len(rest), 0, -1) if mark + rest[:n] in vocab]
        if not sizes:
            return [unknown]
        pieces_so_far.append(mark + rest[: sizes[0]])
        rest = rest[sizes[0] :]
    return tuple(pieces_so_far)


def pieces_recursive(word, vocab, max_chars, first=True):
    if not word:
        return []
    if first and len(word) > max_chars:
        return ["[UNK]"]
    mark = "" if first else "##"
    for n in range(len(word), 0, -1):
        if mark + word[:n] in vocab:
            rest = pieces_recursive(word[n:], vocab, max_chars, False)
            return ["[UNK]"] if rest == ["[UNK]"] else [mark + word[:n], *rest]
    return ["[UNK]"]


RIGHT = {
    "02.1": [count, lambda c: np.int64(count(c)), lambda c: count(c) / 1],
    "02.2": [attention, lambda *args: attention(*args, far=-1e4), attention_looped],
    "02.3": [masks(), masks_looped],
    "02.4": [choose(), choose_by_weights],
    "02.5": [make_pairs(), make_pairs(flat=True)],
    "02.6": [loss, loss_looped, lambda p, y, n, z: loss(p, y, n, z) + 0 * n.sum()],
    "02.7": [pieces, pieces_recursive],
}
WRONG = {
    "02.1": [
        (lambda c: count(c, norms=False, biases=False), "the biases"),
        (lambda c: count(c, tables=False), "the position embeddings"),
    ],
    "02.2": [
        (lambda q, k, v, m: attention(q, k, v, 1 - m), "Change of the output at real tokens"),
        (lambda *args: attention(*args, far=-3.0),
         "when keys and values of the padding change"),
        (lambda *args: attention(*args, far=0.0, late=-1e9), "values beyond a million"),
        (attention_ready_made, "Your function calls `scaled_dot_product_attention`"),
        (lambda q, k, v, m: (q @ k.T).softmax(-1) @ v, "k.transpose(-1, -2)"),
        (lambda q, k, v, m: (q @ k.transpose(1, 2)).softmax(-1) @ v, "k.transpose(-1, -2)"),
        (lambda q, k, v, m: torch.matmul(q, k.permute(3, 2, 1, 0)), "k.transpose(-1, -2)"),
        (lambda q, k, v, m: (q @ k.mT).masked_fill(m[:, None, None], -1e9), "attention_mask == 0"),
    ],
    "02.3": [
        (masks(everywhere=True), "Positions that were not selected change too"),
        (masks((0.5, 0.7)), "ractions of [MASK], random and kept: you have"),
        (masks(low=10), "owest random id"),
        (masks(draws=lambda g: None), "The same state of `generator` gave two different results"),
    ],
    "02.4": [
        (choose(lambda real, words, rate: int(rate * words)), "without [CLS] and [SEP]"),
        (choose(lambda real, words, rate: 2), "umber of selected positions: "),
        (lambda *args: torch.tensor(choose()(*args)).nonzero().flatten(),
         "True and False of shape (3,)"),
        (lambda *args: choose()(*args[:4], None), "gave two different results"),
        (choose_rounding_a_tensor, "wrap it in int(...)"),
    ],
    "02.5": [
        (make_pairs(lambda d, s, rng: s % 2), "neighbouring pairs with the same label"),
        (make_pairs(lambda d, s, rng: rng.random() < 0.63), "raction of NotNext pairs: "),
        (pairs_label_a_document, "One draw decides for a whole document"),
        (lambda d, r: make_pairs()(d, random), "gave two different results"),
        (lambda d, r: [x for x in make_pairs()(d, r) if "sentence 2 " not in x[0]], "entences a: "),
    ],
    "02.6": [
        (lambda *args: loss(*args, pair=3), "oss: you have"),
        (lambda *args: loss(*args).item(), "as a tensor that a gradient can flow from"),
        (lambda p, y, n, z: loss(p, y, n.detach(), z), "radient of `nsp_logits`"),
        (lambda p, y, n, z: F.cross_entropy(p, y), "flatten (B, T, V) to (B·T, V)"),
        (lambda p, y, n, z: F.cross_entropy(p.flatten(0, 1), y), "flatten (B, T, V) to (B·T, V)"),
    ],
    "02.7": [
        (lambda *args: pieces(*args, unknown="UNK"), "['[UNK]']"),
        (lambda *args: pieces(*args)[:2], "ieces: you have"),
    ],
}  # fmt: skip
