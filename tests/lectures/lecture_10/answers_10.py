"""Answers to the exercises of lecture 10 as other hands write them, for test_exercises.py."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial

import torch
import torch.nn.functional as F

from course_lib.objectives.sequences import SpecialIds
from course_lib.objectives.translation_lm import translation_sequences
from course_lib.text.language_sampling import smoothed, times_read
from course_lib.train.retrieval import retrieval as by_cosine

# ---------------------------------------------------------------- 10.1


def sampling(sizes, alpha, weight=lambda p, alpha: p**alpha, normed=True):
    """Language by language, from the sizes themselves: their sum cancels."""
    weights = [weight(size / sum(sizes), alpha) for size in sizes]
    total = sum(weights) if normed else 1
    probs = [w / total for w in weights]
    return probs, [q / (size / sum(sizes)) for q, size in zip(probs, sizes, strict=True)]


def by_library(sizes, alpha):
    probabilities = smoothed(sizes, alpha)
    return probabilities, times_read(sizes, probabilities)


def of_sizes(sizes, alpha):
    powers = torch.tensor(sizes, dtype=torch.float64).pow(alpha)
    probabilities = powers / powers.sum()
    return probabilities, probabilities * sum(sizes) / torch.tensor(sizes)


WRONG_SAMPLINGS = [
    (partial(sampling, normed=False), "do not add up to one"),
    (partial(sampling, weight=lambda p, a: a * p + (1 - a) * 0.1), "you have"),
    (lambda s, a: sampling(sorted(s), a), "you have"),
    (lambda s, a: sampling(s**a, a), "its entries one by one"),
]

# ---------------------------------------------------------------- 10.2


def pair(first, second, languages, end, ends=(1, 1, 1, 1), start=0, again=True):
    """Token by token. ends: whether a special token stands at each of the four places."""
    tokens, positions, language_ids = [], [], []
    for n, side in enumerate((first, second)):
        position = start if again or n == 0 else len(tokens) + start
        for token in (*[end] * ends[2 * n], *side, *[end] * ends[2 * n + 1]):
            tokens.append(token)
            positions.append(position)
            language_ids.append(languages[n])
            position += 1
    return tokens, positions, language_ids


def from_library(first, second, languages, end):
    special = SpecialIds(pad=99, unk=98, cls=end, sep=end, mask=97, vocab_size=100)
    sequences = translation_sequences(
        [first], [second], special, length=len(first) + len(second) + 4, languages=languages
    )
    return sequences.input_ids[0], sequences.position_ids[0], sequences.token_type_ids[0]


WRONG_PAIRS = [
    (partial(pair, ends=(1, 1, 0, 1)), "three special tokens"),
    (partial(pair, ends=(1, 0, 1, 1)), "you have"),
    (partial(pair, start=2), "you have"),
    (lambda x, y, k, e: pair(y, x, k, e), "you have"),
    (lambda x, y, k, e: (e + x, 0, 0), "put into a list"),
]

# ---------------------------------------------------------------- 10.3


def retrieval(first, first_ids, second, second_ids, is_word=lambda i: i > 4, near=None, mean=None):
    """Sentence by sentence."""
    sides = []
    for states, ids in ((first, first_ids), (second, second_ids)):
        mean = mean or (lambda x: x.mean(0))
        sides.append(torch.stack([mean(x[is_word(i)]) for x, i in zip(states, ids, strict=True)]))
    near = near or (lambda a, b: F.cosine_similarity(a, b, dim=-1))
    hits = [[], []]
    for n in range(len(first)):
        for way, (a, b) in enumerate((sides, sides[::-1])):
            all_of_it = torch.stack([near(a[n], other) for other in b])
            hits[way].append(int(all_of_it.argmax()) == n)
    return tuple(sum(way) / len(way) for way in hits)


def with_library(first, first_ids, second, second_ids):
    means = []
    for states, ids in ((first, first_ids), (second, second_ids)):
        mask = (ids > 4).double()
        means.append((mask[:, None] @ states)[:, 0] / mask.sum(1, keepdim=True))
    return by_cosine(*means)


def of_sums(*args):
    """The cosine does not see the number of words."""
    return retrieval(*args, mean=lambda x: x.sum(0))


def twice(*args):
    return (retrieval(*args)[0],) * 2


def unpadded_only(first, first_ids, second, second_ids):
    """Divides by T: the same direction, so no mistake."""
    a, b = (
        F.normalize((x * (i > 4)[..., None]).mean(1), dim=-1)
        for x, i in ((first, first_ids), (second, second_ids))
    )
    near, own = a @ b.T, torch.arange(len(a))
    return [(near.argmax(d) == own).double().mean() for d in (1, 0)]


def first_language_twice(first, first_ids, second, second_ids):
    return retrieval(first, first_ids, first, first_ids)


WRONG_RETRIEVALS = [
    (partial(retrieval, is_word=lambda i: i >= 0), "special tokens are counted"),
    (partial(retrieval, near=lambda a, b: -(a - b).abs().sum()), "you have"),
    (twice, "You return the same direction twice"),
    (first_language_twice, "you have"),
    (lambda a, i, b, j: (a * (i > 4), b), "mask[..., None]"),
]

# ---------------------------------------------------------------- 10.4


def neutral(vectors, language, known, seen=None, centre=lambda x: x.mean(0)):
    """Row by row."""
    new = []
    for row, language_id in zip(vectors, language.tolist(), strict=True):
        mask = (language == language_id) & (known if seen is None else seen(known))
        new.append(row - centre(vectors[mask]))
    return new


def by_one_hot(vectors, language, known):
    one_hot = F.one_hot(language).double()
    counted = one_hot * known[:, None]
    means = (counted.T @ vectors) / counted.sum(0).clamp(min=1)[:, None]
    return vectors - one_hot @ means


def scaled(vectors, language, known, unbiased=True):
    new = torch.stack(neutral(vectors, language, known))
    for language_id in language.unique():
        seen = vectors[(language == language_id) & known]
        new[language == language_id] /= seen.std(0, unbiased=unbiased) + 1e-9
    return new


WRONG_NEUTRALS = [
    (partial(neutral, seen=torch.ones_like), "any measurement there has seen the test"),
    (partial(neutral, centre=lambda x: x[0]), "you have"),
    (lambda v, n, k: F.normalize(torch.stack(neutral(v, n, k)), dim=-1), "to length one"),
    (scaled, "a z-score"),
    (lambda v, n, k: v[n == 1 and k], "join masks with &"),
]

# ---------------------------------------------------------------- 10.5


def weights(V, H, L, F, P, S, per_block=0, more=0, matrices=4, biases=None):
    """Matrix by matrix."""
    biases = [H] * 4 + [F, H] if biases is None else [H] * biases
    shapes = [(H, H)] * matrices + [(H, F), (F, H)] + [(n,) for n in biases] + [(H,)] * 4
    block = sum(torch.Size(shape).numel() for shape in shapes) + per_block * H
    table = V * H
    total = table + (P + S + 2) * H + L * block + more
    return total, table / total, table / block


def in_fractions(vocab, hidden, *others):
    total, _, blocks = weights(vocab, hidden, *others)
    return float(total), Fraction(vocab * hidden, total), Decimal(blocks)


def of_a_model(V, H, L, F, P, S):
    from torch import nn

    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(H, 1, F)
    count = sum(p.numel() for p in layer.parameters())
    total = (V + P + S) * H + 2 * H + L * count
    return total, V * H / total, V * H / count


WRONG_WEIGHTS = [
    (partial(weights, per_block=-4), "the two LayerNorms of a block"),
    (lambda V, H, L, F, P, S: weights(V, H, L, F, P, S, more=-H), "one is counted"),
    (lambda V, H, L, F, P, S: weights(V, H, L, F, P, 2), "you have"),
    (lambda V, H, L, F, P, S: weights(V, H, L, F, P, S, more=-2 * H), "over the embeddings"),
    (lambda *x: (weights(*x)[0], 1 - weights(*x)[1], weights(*x)[2]), "you have"),
]

# ---------------------------------------------------------------- 10.6


def fertility(sentences, special=("[CLS]", "[SEP]", "[PAD]"), types=False):
    """Words put together first."""
    words = []
    for tokens in sentences:
        for token in tokens:
            if token in special:
                continue
            if token.startswith("##"):
                words[-1] = (*words[-1], token)
            else:
                words.append((token,))
    words = set(words) if types else words
    return sum(map(len, words)) / len(words), sum(len(w) > 1 for w in words) / len(words)


def by_join(sentences):
    text = " ".join(" ".join(tokens) for tokens in sentences).replace(" ##", "##").split()
    text = [word for word in text if word not in ("[CLS]", "[SEP]", "[PAD]")]
    count = [1 + word.count("##") for word in text]
    return torch.tensor(count).double().mean(), sum(n > 1 for n in count) / len(count)


WRONG_FERTILITIES = [
    (partial(fertility, types=True), "*different* words"),
    (lambda s: fertility(s[:1]), "you have"),
    (lambda s: [t.startswith("##") for t in s], "two loops"),
]

RIGHT = {
    "10.1": [sampling, by_library, of_sizes],
    "10.2": [pair, from_library, lambda *x: [torch.tensor(part) for part in pair(*x)]],
    "10.3": [retrieval, with_library, of_sums, unpadded_only],
    "10.4": [neutral, by_one_hot],
    "10.5": [weights, of_a_model, in_fractions],
    "10.6": [fertility, by_join],
}
WRONG = {"10.1": WRONG_SAMPLINGS, "10.2": WRONG_PAIRS, "10.3": WRONG_RETRIEVALS,
         "10.4": WRONG_NEUTRALS, "10.5": WRONG_WEIGHTS, "10.6": WRONG_FERTILITIES}  # fmt: skip
