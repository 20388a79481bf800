"""What other hands might write for the exercises of lecture 02, right and wrong."""

from __future__ import annotations

# mypy: ignore-errors
import math

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


RIGHT = {
    "02.1": [count, count_adding, lambda c: np.int64(count(c))],
    "02.2": [attention(), attention(far=-1e4), attention_looped],
    "02.3": [masks(), masks_looped],
    "02.4": [choose(), choose(as_list=True), choose_by_weights],
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
}  # fmt: skip
