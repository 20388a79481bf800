"""What other hands might write for the exercises of lecture 02, right and wrong."""

from __future__ import annotations

# mypy: ignore-errors
import math
import random
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F

# ---------------------------------------------------------------- 02.1


def count(c, *, tables=True, norms=True, biases=True, heads=False, own=1):
    """Layer by layer, from pairs (in, out), with things left out or added."""
    H, V = c.hidden_size, c.vocab_size
    block = [(H, H)] * (3 * own + 1) + [(H, c.intermediate_size), (c.intermediate_size, H)]
    linear = c.num_layers * block + [(H, H)] + [(H, H), (H, 2)] * heads
    total = sum(m * n + biases * n for m, n in linear) + (2 * H + V) * heads
    total += norms * 2 * H * (1 + 2 * c.num_layers)
    return total + (V + c.max_positions * tables + c.type_vocab_size * tables) * H


def count_adding(c):
    total = 0
    for size in (c.vocab_size, c.max_positions, c.type_vocab_size, 2):
        total += size * c.hidden_size
    for _ in range(c.num_layers):
        total += 4 * c.hidden_size**2 + 2 * c.hidden_size * c.intermediate_size
        total += 9 * c.hidden_size + c.intermediate_size
    return total + c.hidden_size * (c.hidden_size + 1)


# ---------------------------------------------------------------- 02.2


def attention(*, divide=math.sqrt, dim=-1, hide="keys", after=False, far=-1e9):
    """Attention written another way than the solution, with one thing changed."""

    def answer(q, k, v, attention_mask):
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / divide(q.shape[-1])
        shapes = {"keys": (len(q), 1, 1, -1), "queries": (len(q), 1, -1, 1)}
        mask = attention_mask.reshape(shapes.get(hide, shapes["keys"]))
        penalty = {None: 0 * mask, "inverted": mask * far}.get(hide, (1 - mask) * far)
        weights = (scores if after else scores + penalty).softmax(dim)
        return (weights * (penalty == 0) if after else weights) @ v

    return answer


def attention_nan(q, k, v, attention_mask):
    keep = attention_mask[:, None, None, :] * attention_mask[:, None, :, None]
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(keep == 0, -math.inf)
    return scores.softmax(-1) @ v


def attention_zeroing(q, k, v, attention_mask):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (scores * attention_mask[:, None, None, :]).softmax(-1) @ v


def attention_late(q, k, v, attention_mask):
    weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
    return (weights + (1 - attention_mask[:, None, None, :]) * -1e9) @ v


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


def masks(cuts=(0.8, 0.9), *, low=0, high=0, everywhere=False, draw=torch.rand):
    """80/10/10 by hand, one thing changed; cuts: where [MASK] ends and where random ids end."""

    def answer(input_ids, selected, mask_id, vocab_size, generator):
        u = draw(input_ids.shape, generator=generator)
        shape = input_ids.shape
        others = torch.randint(low, vocab_size + high, shape, generator=generator)
        changed = torch.where(u < cuts[1], others, input_ids)
        changed = torch.where(u < cuts[0], torch.full_like(input_ids, mask_id), changed)
        return torch.where(
            torch.ones_like(selected) if everywhere else selected, changed, input_ids
        )

    return answer


def masks_looped(input_ids, selected, mask_id, vocab_size, generator):
    out, g = (
        input_ids.tolist(),
        np.random.default_rng(int(torch.randint(2**40, (), generator=generator))),
    )
    for n, t in selected.nonzero().tolist():
        fate = g.choice(3, p=(0.8, 0.1, 0.1))
        out[n][t] = (mask_id, int(g.integers(vocab_size)), out[n][t])[fate]
    return out


def masks_overwritten(input_ids, selected, mask_id, vocab_size, generator):
    out, u = input_ids.clone(), torch.rand(input_ids.shape, generator=generator)
    others = torch.randint(vocab_size, input_ids.shape, generator=generator)
    out[selected & (u < 0.8)] = mask_id
    return torch.where(selected & (u < 0.9), others, out)


def masks_by_quota(input_ids, selected, mask_id, vocab_size, generator):
    out, places = input_ids.clone(), selected.nonzero()
    places = places[torch.randperm(len(places), generator=generator)]
    masks, changed = round(0.8 * len(places)), round(0.9 * len(places))
    out[tuple(places[:masks].T)] = mask_id
    others = torch.randint(vocab_size, (changed - masks,), generator=generator)
    out[tuple(places[masks:changed].T)] = others
    return out


def masks_nested(input_ids, selected, mask_id, vocab_size, generator):
    out = input_ids.clone()
    masked = (torch.rand(out.shape, generator=generator) < 0.8) & selected
    out[masked] = mask_id
    rest = selected & ~masked & (torch.rand(out.shape, generator=generator) < 0.1)
    out[rest] = torch.randint(vocab_size, out.shape, generator=generator)[rest]
    return out


def masks_in_place(input_ids, selected, mask_id, vocab_size, generator):
    input_ids[selected & (torch.rand(input_ids.shape, generator=generator) < 0.8)] = mask_id
    return input_ids


def masks_borrowing(input_ids, selected, mask_id, vocab_size, generator):
    order = torch.randperm(input_ids.numel(), generator=generator)
    u = torch.rand(input_ids.shape, generator=generator)
    out = torch.where(
        selected & (u < 0.9), input_ids.flatten()[order].view_as(input_ids), input_ids
    )
    return torch.where(selected & (u < 0.8), mask_id, out)


def masks_unseeded(ids, selected, mask_id, vocab_size, generator):
    return masks()(ids, selected, mask_id, vocab_size, None)


def masks_seeded(ids, selected, mask_id, vocab_size, generator):
    return masks()(ids, selected, mask_id, vocab_size, torch.Generator().manual_seed(1))


def once(shape, generator):
    return torch.rand(1, generator=generator).expand(shape)


def once_a_row(shape, generator):
    return torch.rand((shape[0], 1), generator=generator).expand(shape)


# ---------------------------------------------------------------- 02.4


def choose(rule=None, *, never=("pad", "cls", "sep"), pick=None, as_list=False):
    """The released code's rule by hand; rule: another number of (real, words, row, rate, limit)."""

    def answer(input_ids, special, rate, max_predictions, generator):
        banned = [getattr(special, name) for name in never]
        places = [t for t, id in enumerate(input_ids.tolist()) if id not in banned]
        real = int((input_ids != special.pad).sum())
        words = real - int(((input_ids == special.cls) | (input_ids == special.sep)).sum())
        number = min(max_predictions, max(1, round(rate * real)))
        if rule:
            number = rule(real, words, len(input_ids), rate, max_predictions)
        order = torch.randperm(len(places), generator=generator).tolist()
        order = pick(order, number) if pick else order[:number]
        chosen = {places[i] for i in order}
        found = [t in chosen for t in range(len(input_ids))]
        return found if as_list else torch.tensor(found)

    return answer


def choose_by_weights(input_ids, special, rate, max_predictions, generator):
    """The lowest of random numbers, infinite where nothing may be selected."""
    never = torch.isin(input_ids, torch.tensor(special.never_masked))
    length = int((input_ids != special.pad).sum())
    number = min(max_predictions, max(1, round(rate * length)), int((~never).sum()))
    u = torch.rand(len(input_ids), generator=generator) + never * 2.0
    return u <= u.sort().values[number - 1]


def choose_independently(input_ids, special, rate, max_predictions, generator):
    draws = torch.rand(input_ids.shape, generator=generator) < rate
    return draws & ~torch.isin(input_ids, torch.tensor(special.never_masked))


def choose_with_replacement(input_ids, special, rate, max_predictions, generator):
    words = (~torch.isin(input_ids, torch.tensor(special.never_masked))).nonzero().flatten()
    number = min(max_predictions, max(1, round(rate * int((input_ids != special.pad).sum()))))
    chosen = torch.zeros(len(input_ids), dtype=torch.bool)
    chosen[words[torch.randint(len(words), (number,), generator=generator)]] = True
    return chosen


def choose_then_drop(input_ids, special, rate, max_predictions, generator):
    real = (input_ids != special.pad).nonzero().flatten()
    number = min(max_predictions, max(1, round(rate * len(real))))
    chosen = torch.zeros(len(input_ids), dtype=torch.bool)
    chosen[real[torch.randperm(len(real), generator=generator)[:number]]] = True
    return chosen & ~torch.isin(input_ids, torch.tensor(special.never_masked))


def choose_rounding_a_tensor(input_ids, special, rate, max_predictions, generator):
    return min(max_predictions, max(1, round(rate * (input_ids != special.pad).sum())))


def side_by_side(order, n):
    return [order[0] % (len(order) - n + 1) + i for i in range(n)] if n < len(order) else order


# ---------------------------------------------------------------- 02.5


def make_pairs(*, label=None, b_next=None, b_other=None, flat=False, step=1):
    """The pairs by indices; what may be changed: the draw of the label, and both kinds of b."""

    def answer(documents, rng):
        made = []
        for d, document in enumerate(documents):
            for s in range(0, len(document) - 1, step):
                positive = rng.random() >= 0.5 if label is None else label(d, s, rng)
                if positive:
                    b = document[s + 1] if b_next is None else b_next(document, s)
                    made.append((document[s], b, 0))
                    continue
                other = rng.randrange(len(documents) - 1)
                other = documents[other + (other >= d)]
                b = rng.choice(other) if b_other is None else b_other(documents, d, rng)
                made.append([document[s], b, 1])
        return made

    return answer


def changed_pairs(change):
    return lambda documents, rng: [change(*x) for x in make_pairs()(documents, rng)]


def pairs_across(documents, rng):
    flat = [sentence for document in documents for sentence in document]
    return [(a, b, 0) for a, b in pairwise(flat)]


def pairs_of_the_flat_list(documents, rng):
    """Another reading: every sentence of the other documents is equally likely."""
    rest = {
        d: [x for e in documents if e is not documents[d] for x in e] for d in range(len(documents))
    }
    return make_pairs(b_other=lambda docs, d, rng: rng.choice(rest[d]))(documents, rng)


def pairs_backwards(documents, rng):
    return [(b, a, 0) if z == 0 else (a, b, 1) for a, b, z in make_pairs()(documents, rng)]


def pairs_one_number(documents, rng):
    made = []
    for d, document in enumerate(documents):
        others = documents[:d] + documents[d + 1 :]
        for a, b in pairwise(document):
            u = rng.random()
            other = others[int(u * len(others))]
            made.append((a, b, 0) if u < 0.5 else (a, other[int(u * len(other))], 1))
    return made


def pairs_label_a_document(documents, rng):
    z = [rng.random() < 0.5 for _ in documents]
    return make_pairs(label=lambda d, s, rng: z[d])(documents, rng)


def pairs_other_a_document(documents, rng):
    other = [rng.choice(documents[:d] + documents[d + 1 :]) for d in range(len(documents))]
    return make_pairs(b_other=lambda docs, d, rng: rng.choice(other[d]))(documents, rng)


def anywhere(documents, d, rng):
    return rng.choice(rng.choice(documents))


def first_of_another(documents, d, rng):
    return rng.choice(documents[:d] + documents[d + 1 :])[0]


# ---------------------------------------------------------------- 02.6


def loss(*, words="mean", pair="mean", label=lambda z: z, add=lambda a, b: a + b, asked=None):
    def answer(prediction_logits, labels, nsp_logits, nsp_label):
        at = labels != -100 if asked is None else asked(labels)
        nll = -prediction_logits.log_softmax(-1)[at].gather(1, labels[at][:, None])
        mlm = nll.sum() if words == "sum" else nll.mean()
        if words == "all":
            mlm = nll.sum() / labels.numel()
        if words == "ignored":
            mlm = F.cross_entropy(prediction_logits.transpose(1, 2), labels.clamp(min=0))
        true = -nsp_logits.log_softmax(-1).gather(1, label(nsp_label)[:, None])
        return add(mlm, true.sum() if pair == "sum" else true.mean())

    return answer


def loss_looped(prediction_logits, labels, nsp_logits, nsp_label):
    words, pair = [], []
    for b in range(len(labels)):
        for t in range(labels.shape[1]):
            if labels[b, t] != -100:
                p = torch.softmax(prediction_logits[b, t], 0)
                words.append(-torch.log(p[labels[b, t]]))
        pair.append(-torch.log(torch.softmax(nsp_logits[b], 0)[nsp_label[b]]))
    return (sum(words) / len(words) + sum(pair) / len(pair)).reshape(1)


def loss_row_by_row(prediction_logits, labels, nsp_logits, nsp_label):
    rows = [F.cross_entropy(p, y) for p, y in zip(prediction_logits, labels, strict=True)]
    return torch.stack(rows).mean() + F.cross_entropy(nsp_logits, nsp_label)


def loss_one_list(prediction_logits, labels, nsp_logits, nsp_label):
    at = labels != -100
    every = [
        F.cross_entropy(prediction_logits[at], labels[at], reduction="none"),
        F.cross_entropy(nsp_logits, nsp_label, reduction="none"),
    ]
    return torch.cat(every).mean()


# ---------------------------------------------------------------- 02.7


def pieces(*, lengths=reversed, look="##", write="##", limit=0, stuck="unk", unknown="[UNK]"):
    """Greedy splitting by slicing the word down, with one thing changed."""

    def answer(word, vocab, max_chars):
        if len(word) > max_chars + limit:
            return [unknown]
        found, rest = [], word
        while rest:
            mark, sign = (look, write) if found else ("", "")
            sizes = [n for n in lengths(range(1, len(rest) + 1)) if mark + rest[:n] in vocab]
            if not sizes:
                return {"unk": [unknown], "keep": [*found, unknown], "stop": found}[stuck]
            found.append(sign + rest[: sizes[0]])
            rest = rest[sizes[0] :]
        return found

    return answer


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


def pieces_fewest(word, vocab, max_chars, back=False):
    """Every split; the one with the fewest pieces, or the first that going back finds."""

    def splits(start):
        if start == len(word):
            return [[]]
        mark = "##" if start else ""
        ends = [e for e in range(len(word), start, -1) if mark + word[start:e] in vocab]
        return [[mark + word[start:e], *rest] for e in ends for rest in splits(e)]

    every = splits(0) if len(word) <= max_chars else []
    return (every[0] if back else min(every, key=len)) if every else ["[UNK]"]


def pieces_from_the_end(word, vocab, max_chars):
    found, end = [], len(word)
    while end > 0 and len(word) <= max_chars:
        starts = [s for s in range(end) if ("##" if s else "") + word[s:end] in vocab]
        if not starts:
            return ["[UNK]"]
        found.insert(0, ("##" if starts[0] else "") + word[starts[0] : end])
        end = starts[0]
    return found or ["[UNK]"]


def pieces_endless(word, vocab, max_chars):
    found, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start and "##" * (start > 0) + word[start:end] not in vocab:
            end -= 1
        found.append("##" * (start > 0) + word[start:end])
        found, start = found[-20:], end
    return found


RIGHT = {
    "02.1": [count, count_adding, lambda c: np.int64(count(c))],
    "02.2": [attention(), attention(far=-1e4), attention_looped],
    "02.3": [masks(), masks_looped],
    "02.4": [choose(), choose(as_list=True), choose_by_weights],
    "02.5": [make_pairs(), pairs_of_the_flat_list],
    "02.6": [loss(), loss_looped, lambda p, y, n, z: loss()(p, y, n, z) + 0 * n.sum()],
    "02.7": [pieces(), pieces_recursive, lambda *given: tuple(pieces()(*given))],
}
WRONG = {
    "02.1": [
        (lambda c: count(c, biases=False), "the biases of the linear layers"),
        (lambda c: count(c, norms=False), "every LayerNorm"),
        (lambda c: count(c, norms=False, biases=False), "the biases"),
        (lambda c: count(c, tables=False), "the position embeddings"),
        (lambda c: count(c, heads=True), "The MLM and NSP heads were counted"),
        (lambda c: count(c, own=c.num_heads), "Each head has its own H×H matrices"),
        (lambda c: count(c) + count(c, heads=True) - count(c) + c.vocab_size * c.hidden_size,
         "A matrix of V×H too many"),
        (lambda c: count(c) - c.hidden_size * (c.hidden_size + 1), "the pooler, one more"),
        (lambda c: count(c) - c.num_layers * 2 * c.hidden_size, "one LayerNorm"),
        (lambda c: count(c) / 1, "a float; expected one whole number"),
        (lambda c: 109_482_240, "the same for all inputs"),
        (lambda c: f"{count(c)}", "expected one whole number"),
    ],
    "02.2": [
        (attention(divide=lambda d: 1.0), "not divided by √D"),
        (attention(divide=lambda d: d), "divided by D; it should be"),
        (attention(divide=lambda d: 1 / math.sqrt(d)), "multiplied by √D"),
        (attention(dim=-2), "runs over the queries"),
        (attention(hide="queries"), "The mask hides the padded queries"),
        (attention(hide="inverted"), "the wrong way round"),
        (attention(hide="inverted", far=-math.inf), "Not all of it is finite"),
        (attention(hide=None), "The mask has no effect"),
        (attention(after=True), "after the softmax, or into the values"),
        (lambda q, k, v, m: attention()(q, k, v * m[:, None, :, None], m * 0 + 1),
         "after the softmax, or into the values"),
        (attention(far=-3.0), "when keys and values of the padding change"),
        (attention_zeroing, "e⁰ = 1 still has weight"),
        (attention_late, "values beyond a million"),
        (attention_nan, "every key was hidden from them"),
        (attention_ready_made, "Your function calls `scaled_dot_product_attention`"),
        (lambda q, k, v, m: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1), "the attention weights"),
        (lambda q, k, v, m: [1, 2, 3], "that is (B, A, T, D)"),
        (lambda q, k, v, m: torch.zeros_like(q), "it is all zeros"),
        (lambda q, k, v, m: (q @ k.T).softmax(-1) @ v, "k.transpose(-1, -2)"),
        (lambda q, k, v, m: (q @ k.transpose(1, 2)).softmax(-1) @ v, "k.transpose(-1, -2)"),
        (lambda q, k, v, m: torch.matmul(q, k.permute(3, 2, 1, 0)), "k.transpose(-1, -2)"),
        (lambda q, k, v, m: (q @ k.mT).masked_fill(m[:, None, None], -1e9), "attention_mask == 0"),
        (lambda q, k, v, m: attention(divide=lambda d: 1.0)(q, k, v, 1 - m), "not divided by √D"),
    ],
    "02.3": [
        (masks(everywhere=True), "Positions that were not selected change too"),
        (masks((1.0, 1.0)), "Every selected position becomes [MASK]"),
        (masks((0.0, 0.0)), "Nothing is changed at all"),
        (masks((0.8, 0.8)), "The 10% of random ids are missing"),
        (masks((0.8, 1.0)), "No selected position keeps its word"),
        (masks((0.1, 0.9)), "The 80% and the 10% are exchanged"),
        (masks((1 / 3, 2 / 3)), "equally likely"),
        (masks((0.5, 0.7)), "ractions of [MASK], random and kept: you have"),
        (masks_nested, "taken of the 20% that are left"),
        (masks(draw=once), "One draw decides for all positions"),
        (masks(draw=once_a_row), "All positions of a row share one fate"),
        (masks_overwritten, "No [MASK] is left"),
        (masks_by_quota, "The number of [MASK] is fixed"),
        (masks_in_place, "writes into `input_ids`"),
        (masks(low=10), "owest random id"),
        (masks(high=-1), "The last id of the vocabulary is never drawn"),
        (masks(high=1), "Random ids reach `vocab_size`"),
        (masks_borrowing, "borrowed from the batch"),
        (masks_unseeded, "The same state of `generator` gave two different results"),
        (masks_seeded, "nothing is drawn from it, or it is seeded inside"),
        (lambda ids, s, mask, v, g: ids, "Nothing is changed at all"),
    ],
    "02.4": [
        (choose(never=("pad",)), "[CLS] and [SEP] are selected"),
        (choose(never=("cls", "sep")), "Padding is selected"),
        (choose(never=()), "are selected"),
        (choose_independently, "each position is drawn by itself with the rate"),
        (choose_with_replacement, "the same position can be drawn twice"),
        (choose_then_drop, "a [CLS] be drawn and then dropped"),
        (choose(lambda n, e, T, r, m: min(m, max(1, int(r * n)))), "rounded down"),
        (choose(lambda n, e, T, r, m: min(m, max(1, math.ceil(r * n)))), "rounded up"),
        (choose(lambda n, e, T, r, m: min(m, max(1, int(r * n + 0.5)))), "Halves are rounded up"),
        (choose(lambda n, e, T, r, m: min(m, max(1, round(r * e)))), "without [CLS] and [SEP]"),
        (choose(lambda n, e, T, r, m: min(m, max(1, int(r * e)))), "without [CLS] and [SEP]"),
        (choose(lambda n, e, T, r, m: min(m, max(1, round(r * T)))), "Padding is counted"),
        (choose(lambda n, e, T, r, m: min(m, round(r * n))), "A short sequence gets no position"),
        (choose(lambda n, e, T, r, m: max(1, round(r * n))), "max_predictions has no effect"),
        (choose(lambda n, e, T, r, m: m), "that is the most, not the number"),
        (choose(lambda n, e, T, r, m: 2), "umber of selected positions: "),
        (choose(pick=lambda order, n: sorted(order)[:n]), "The same positions are selected"),
        (choose(pick=side_by_side), "always lie side by side"),
        (choose(pick=lambda order, n: sorted(order[: n + 1])[:n]), "The last words are too rarely"),
        (lambda *given: choose()(*given).nonzero().flatten(), "True and False of shape (3,)"),
        (lambda *given: choose()(*given[:4], None), "gave two different results"),
        (choose_rounding_a_tensor, "wrap it in int(...)"),
    ],
    "02.5": [
        (changed_pairs(lambda a, b, z: (a, b, 1 - z)), "The labels are exchanged"),
        (changed_pairs(lambda a, b, z: (a, b, 0)), "Every pair has the label 0"),
        (changed_pairs(lambda a, b, z: (a, b if z else a, z)), "b is a itself"),
        (changed_pairs(lambda a, b, z: (a, b)), "expected (a, b, label)"),
        (pairs_backwards, "b stands *before* a"),
        (pairs_across, "paired with the first of the next"),
        (make_pairs(b_other=anywhere), "b from a's own document"),
        (make_pairs(label=lambda d, s, rng: True), "All pairs are labelled IsNext"),
        (make_pairs(label=lambda d, s, rng: False), "All pairs are labelled NotNext"),
        (make_pairs(label=lambda d, s, rng: s % 2), "neighbouring pairs with the same label"),
        (make_pairs(label=lambda d, s, rng: rng.random() < 0.25), "Three quarters are NotNext"),
        (make_pairs(label=lambda d, s, rng: rng.random() < 0.63), "raction of NotNext pairs: "),
        (pairs_label_a_document, "One draw decides for a whole document"),
        (pairs_other_a_document, "One other document serves all pairs"),
        (pairs_one_number, "One random number decides between label"),
        (make_pairs(b_other=first_of_another), "first sentence of its document"),
        (make_pairs(b_other=lambda docs, d, rng: rng.choice(docs[(d + 1) % len(docs)])),
         "from the neighbouring document"),
        (make_pairs(b_other=lambda docs, d, rng: rng.choice(docs[d - 1])), "from the neighbouring"),
        (make_pairs(step=2), "Each sentence stands in one pair only"),
        (lambda d, r: make_pairs()(d, r)[::-1], "not in the order of the documents"),
        (lambda d, r: make_pairs()(d, random), "gave two different results"),
        (lambda d, r: 3, "expected a list of (a, b, label)"),
        (lambda d, r: [x for x in make_pairs()(d, r) if "sentence 2 " not in x[0]], "entences a: "),
    ],
    "02.6": [
        (loss(words="sum"), "The masked-word term is a sum"),
        (loss(words="all"), "divided by the number of *all* positions"),
        (loss(words="ignored"), "as if word 0 had been the answer"),
        (loss(label=torch.zeros_like), "−log P(IsNext) whatever the label"),
        (loss(label=lambda z: 1 - z), "reads the labels the wrong way round"),
        (loss(pair="sum"), "The pair term is a sum"),
        (loss(pair="sum", words="sum"), "The masked-word term is a sum"),
        (loss(add=lambda a, b: a), "the loss of the pairs is missing"),
        (loss(add=lambda a, b: b), "the loss of the masked words is missing"),
        (loss(add=lambda a, b: (a + b) / 2), "The two terms were averaged"),
        (loss(add=lambda a, b: -a - b), "the sign is turned"),
        (loss(add=lambda a, b: a + 3 * b), "oss: you have"),
        (loss(add=lambda a, b: (a, b)), "expected one number"),
        (loss(add=lambda a, b: torch.stack([a, b])), "expected one number"),
        (loss(asked=lambda y: y > 0), "Word 0 is left out"),
        (loss_one_list, "averaged together"),
        (loss_row_by_row, "averaged by itself, then the sequences"),
        (lambda p, y, n, z: loss()(p.softmax(-1), y, n.softmax(-1), z), "through a softmax"),
        (lambda *given: loss()(*given).item(), "as a tensor that a gradient can flow from"),
        (lambda *given: loss()(*given).detach(), "carries no gradient"),
        (lambda p, y, n, z: loss()(p, y, n.detach(), z), "radient of `nsp_logits`"),
        (lambda p, y, n, z: F.cross_entropy(p, y), "flatten (B, T, V) to (B·T, V)"),
        (lambda p, y, n, z: F.cross_entropy(p.flatten(0, 1), y), "flatten (B, T, V) to (B·T, V)"),
    ],
    "02.7": [
        (pieces(lengths=list), "The shortest piece that fits is taken"),
        (pieces(lengths=list, limit=10**6, stuck="keep"), "The shortest piece that fits is taken"),
        (pieces(look=""), "looked up without their ##"),
        (pieces(write=""), "written without ##"),
        (pieces(look="", write=""), "The ## is missing"),
        (pieces(stuck="keep"), "are kept and [UNK] follows"),
        (pieces(stuck="keep", limit=10**6), "are kept and [UNK] follows"),
        (pieces(stuck="stop"), "the rest of the word is lost"),
        (pieces(limit=10**6), "max_chars has no effect"),
        (pieces(limit=-1), "exactly max_chars characters"),
        (pieces(unknown="UNK"), "['[UNK]']"),
        (pieces_from_the_end, "from the end of the word"),
        (pieces_fewest, "the fewest pieces"),
        (lambda w, v, m: pieces_fewest(w, v, m, True), "you go back"),
        (lambda w, v, m: [w] if w in v and len(w) <= m else ["[UNK]"], "without being split"),
        (lambda w, v, m: " ".join(pieces()(w, v, m)), "expected a list of pieces"),
        (lambda w, v, m: pieces()(w, v, m)[:2], "ieces: you have"),
        (lambda w, v, m: ["[UNK]"], "the same for all inputs"),
        (pieces_endless, "did not come back"),
    ],
}  # fmt: skip
