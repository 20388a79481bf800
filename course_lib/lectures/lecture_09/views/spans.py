"""SpanBERT's masks: on a sentence of the reader's own, and how long their spans are."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from course_lib.kernels.span_masking import draw_spans, length_probabilities, select_spans
from course_lib.objectives.span_boundary import MaskedSpans, mask_spans
from course_lib.teaching.page import Html, Live, card, paragraphs
from course_lib.teaching.playgrounds import (
    check_words,
    checkbox,
    one_row,
    playground,
    slider,
    text_field,
)
from course_lib.teaching.style import BLUE, INK
from course_lib.teaching.svg import Scale, area, dot, picture, words
from course_lib.teaching.tokens import tokens_legend, tokens_row
from course_lib.text.wordpiece import word_numbers

if TYPE_CHECKING:
    from course_lib.text.wordpiece import WordPiece

MOST_TOKENS, P, LONGEST = 96, 0.2, 10
SAMPLES = 20_000  # lengths drawn for the chart
LENGTHS = (510, 128, 32)  # tokens of the sequences whose spans are counted, merged and cut
POSITIONS = 60_000  # of all sequences of one length together
FATES = {1: "[MASK]", 2: "random", 3: "kept"}

# ---------------------------------------------------------------- a sentence


def spans_view(tokenizer: WordPiece, text: str) -> Live:
    """Mask spans of an own text. Controls: text, p, longest, merge (spans that meet or touch are
    one), one_draw (one fate a span, else one a token), seed."""
    controls = {
        "text": text_field("text", text),
        **_length_sliders(),
        "merge": checkbox("merge spans that touch"),
        "one_draw": checkbox("one draw a span"),
        "seed": slider("seed", 0, 0, 50),
    }
    return playground(partial(spans_picture, tokenizer), controls)


def _length_sliders() -> dict[str, Any]:
    return {
        "p": slider("p", P, 0.05, 1.0, 0.05),
        "longest": slider("longest, in words", LONGEST, 1, 15),
    }


def spans_picture(
    tokenizer: WordPiece,
    text: str,
    p: float = P,
    longest: int = LONGEST,
    merge: bool = True,
    one_draw: bool = True,
    seed: int = 0,
) -> Html:
    """The text after `mask_spans`; under each selected token the number of its span and the token
    that stood there. Raises ValueError for a text without words, with unknown ones or too long."""
    check_words(tokenizer, text, MOST_TOKENS)
    sequences = one_row(tokenizer, text)
    masked = mask_spans(
        sequences, tokenizer.special,
        word_numbers(tokenizer, sequences.input_ids, sequences.attention_mask),
        p=p, max_words=longest, merge=merge, one_draw=one_draw, seed=seed,
    )  # fmt: skip
    tokens, was = (
        [tokenizer.token(i) for i in ids[0].tolist()]
        for ids in (masked.input_ids, sequences.input_ids)
    )
    labels = [""] * len(tokens)
    for number, (first, last) in enumerate(masked.spans.tolist(), 1):
        for t in range(first, last + 1):
            labels[t] = f"span {number}\n{was[t]}"
    row = tokens_row(tokens, masked.action[0].tolist(), labels)
    sentences = spans_in_words(masked, was)
    html = row.inner + tokens_legend() + paragraphs(sentences)
    return Html(card(html, "spans", 800), "\n".join([row.text, *sentences]))


def spans_in_words(masked: MaskedSpans, was: list[str]) -> list[str]:
    """How many tokens were selected, and each span with its fate."""
    action = masked.action[0].tolist()
    lines = []
    for number, (first, last) in enumerate(masked.spans.tolist(), 1):
        here = range(first, last + 1)
        fates = dict.fromkeys(FATES[action[t]] for t in here)
        lines.append(f"span {number}: “{' '.join(was[t] for t in here)}” ({' and '.join(fates)})")
    text, chosen = len(was) - 2, len(masked.predict_at)
    count = f"{chosen} of {text} tokens are selected, in {len(lines)} spans."
    return [count, "; ".join(lines) + "."]


# ---------------------------------------------------------------- how long


class Lengths(NamedTuple):
    """Of one p and one longest: the distribution, what was drawn from it, and four means."""

    exact: np.ndarray  # (longest,), P(1) to P(longest)
    sampled: np.ndarray  # (longest,), fractions of SAMPLES lengths
    mean: float  # of the distribution
    heaped: float  # if all that is longer were counted as longest
    counted: dict[int, float]  # tokens of a sequence -> mean length after merging and cutting


def span_lengths(p: float = P, longest: int = LONGEST, seed: int = 0) -> Lengths:
    """Lengths of spans, by the formula, as drawn, and as they stand in sequences of LENGTHS tokens
    in which every word is one token. Raises ValueError as `length_probabilities` does."""
    exact, steps = length_probabilities(p, longest), np.arange(1, longest + 1)
    _, lengths = draw_spans(seed, 0, np.arange(SAMPLES), np.array(0), p, longest)
    sampled = np.bincount(lengths, minlength=longest + 1)[1:] / SAMPLES
    tail = p * (1 - p) ** np.arange(longest)
    tail[-1] = (1 - p) ** (longest - 1)
    counted = {T: _counted(T, p, longest, seed) for T in LENGTHS}
    return Lengths(exact, sampled, float(exact @ steps), float(tail @ steps), counted)


def _counted(tokens: int, p: float, longest: int, seed: int) -> float:
    """Mean length of the spans in sequences of so many one-token words, merged and cut."""
    count = -(-POSITIONS // tokens)
    at, begins = select_spans(
        torch.arange(tokens).expand(count, tokens).contiguous(), torch.arange(count),
        rate=0.15, seed=seed, epoch=0, p=p, max_words=longest,
    )  # fmt: skip
    return len(at) / len(begins.unique())


def lengths_view() -> Live:
    """The distribution of lengths with what was drawn from it. Controls: p, longest."""
    return playground(lengths_picture, _length_sliders())


def lengths_picture(p: float = P, longest: int = LONGEST) -> Html:
    """Bars for the distribution, a ring for what was drawn, and the means in words."""
    lengths = span_lengths(p, longest)
    sentences = lengths_in_words(lengths)
    parts = length_parts(lengths, 640, 210)
    return picture("lengths", 640, 250, parts, sentences, label=sentences[0], card_width=800)


def length_parts(lengths: Lengths, width: float, height: float, size: float = 15) -> list[str]:
    """A bar a length, its probability above it, a ring where the drawn fraction is."""
    step = width / len(lengths.exact)
    y = Scale(0, max(*lengths.exact, *lengths.sampled), height - size, 2.2 * size)
    parts = [words(width / 2, height + 1.9 * size, "words in a span", size)]
    for i, (exact, sampled) in enumerate(zip(lengths.exact, lengths.sampled, strict=True)):
        x = step * (i + 0.5)
        parts += [
            area(x - 0.36 * step, y(exact), 0.72 * step, y(0) - y(exact), "#b9d8ea", ink=BLUE),
            dot(x, y(sampled), 5, "none", ink=INK),
            words(x, y(max(exact, sampled)) - 0.6 * size, f"{exact:.0%}", size),
            words(x, height + 0.3 * size, str(i + 1), size),
        ]
    return parts


def lengths_in_words(lengths: Lengths) -> list[str]:
    """The means, of the distribution and of what becomes of it."""
    means = ", ".join(f"{mean:.2f} in sequences of {T}" for T, mean in lengths.counted.items())
    off = np.abs(lengths.exact - lengths.sampled).max()
    return [
        f"Mean of the distribution: {lengths.mean:.2f} words. {SAMPLES:,} lengths drawn (rings) "
        f"differ from it by at most {off:.1%} at a length.",
        f"After merging and cutting, the mean is {means} tokens. (If every longer span counted as "
        f"{len(lengths.exact)} words instead of being left out, it would be {lengths.heaped:.2f}.)",
    ]
