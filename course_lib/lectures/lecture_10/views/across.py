"""Attention across two languages: a masked word, and where in the translation it looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from statistics import mean

from torch import Tensor

from course_lib.family.xlm import XlmForLanguageModel
from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import choice, playground, slider
from course_lib.teaching.style import BLUE, ORANGE
from course_lib.teaching.svg import area, line, picture, rect, words
from course_lib.text.world import MicroWorld, Story

from ..pairs import Pairs, guesses, sentence_pairs

ROW, TOP, LEFT, RIGHT, WIDTH = 27, 42, 300, 470, 780  # pixels
FAINTEST, GUESSES = 0.02, 3


def across_view(
    models: Mapping[str, XlmForLanguageModel],
    english: MicroWorld,
    others: Mapping[str, MicroWorld],
    stories: Sequence[Story],
    *,
    sentence: int = 0,
    word: int = 1,
    layer: int = 2,
    head: int = 1,
) -> Live:
    """Where a masked English word looks. Controls: language, sentence, word, layer, head.

    models: by language, trained on pairs; stories: their sentences are those to choose from."""
    first = next(iter(models))
    config = models[first].config
    sentences = [(story, index) for story in stories for index in range(len(story.sentences))]
    longest = max(len(story.sentences[index].split()) for story, index in sentences)
    controls = {
        "language": choice("beside English", first, models),
        "sentence": slider("sentence", sentence, 0, len(sentences) - 1),
        "word": slider("masked: word no.", word, 1, longest),
        "layer": slider("layer", layer, 1, config.num_layers),
        "head": slider("head", head, 1, config.num_heads),
    }

    def draw(language: str, sentence: int, **values: int) -> Html:
        story, index = sentences[sentence]
        return across_picture(models[language], english, others[language], story, index, **values)

    return playground(draw, controls)


def across_picture(
    model: XlmForLanguageModel,
    english: MicroWorld,
    other: MicroWorld,
    story: Story,
    sentence: int = 0,
    word: int = 1,
    layer: int = 2,
    head: int = 1,
) -> Html:
    """The sentence on the left, its translation on the right, lines from the masked word to what it
    attends to. A word number beyond the sentence is taken as the last one."""
    translation = story.told_in(other)
    word = min(word, len(story.trace[sentence]))
    pairs = sentence_pairs(english, other, [story])
    sequences = pairs.together[sentence : sentence + 1]
    answer, attentions = guesses(model, sequences, word, pairs.special.mask)
    row = attentions[layer - 1][0, head - 1, word]  # (T,)
    both = (story, translation)
    left, right = (["</s>", *one.sentences[sentence].split(), "</s>"] for one in both)
    hidden, left[word] = left[word], "[MASK]"
    same = _same_slot(story, translation, sentence, word)
    where = f"Layer {layer}, head {head}"
    sentences = _in_words(where, row, left, right, hidden, likeliest(pairs, answer))
    parts = across_parts(row.tolist(), left, right, word, same)
    height = TOP + ROW * max(len(left), len(right)) + 6
    return picture("across", WIDTH, height, parts, sentences, card_width=820)


def alignment_table(
    model: XlmForLanguageModel,
    english: MicroWorld,
    other: MicroWorld,
    stories: Sequence[Story],
    *,
    layer: int = 2,
    head: int = 1,
) -> str:
    """Each word with a slot masked by itself: how often the head looks most at its translation, of
    words spelled otherwise there and of words spelled alike, which need no dictionary; and how
    often at the word of its own position. A line for each distance between the two."""
    hits: dict[int, list[tuple[bool, bool, bool]]] = {}
    for story in stories:
        translation = story.told_in(other)
        together = sentence_pairs(english, other, [story])
        for index, sentence in enumerate(story.trace):
            one = together.together[index : index + 1]
            split, far = len(sentence) + 2, len(sentence) + len(translation.trace[index]) + 4
            for word in range(1, len(sentence) + 1):
                if same := _same_slot(story, translation, index, word):
                    _, attentions = guesses(model, one, word, together.special.mask)
                    at = int(attentions[layer - 1][0, head - 1, word, split:far].argmax())
                    distance = min(FURTHEST, min(abs(place - word) for place in same))
                    spellings = {translation.trace[index][place - 1].word for place in same}
                    alike = sentence[word - 1].word in spellings
                    hits.setdefault(distance, []).append((alike, at in same, at == word))
    rows = (_alignment_row(distance, pairs) for distance, pairs in sorted(hits.items()))
    return "\n".join([HEADER, *rows])


FURTHEST = 3  # a distance that stands for all from here on
HEADER = (
    f"{'translation moved by':22}{'words':>7}{'finds it, spelled differently':>31}"
    f"{'spelled alike':>15}{'looks at the same position':>28}"
)


def _alignment_row(distance: int, hits: Sequence[tuple[bool, bool, bool]]) -> str:
    otherwise, alike = ([own for a, own, _ in hits if a is which] for which in (False, True))
    label = f"{distance}{' and more' * (distance == FURTHEST)}"
    cells = "".join(f"{f'{mean(of):.0%}' if of else '–':>{width}}"
                    for of, width in ((otherwise, 31), (alike, 15)))  # fmt: skip
    return f"{label:22}{len(hits):7}{cells}{mean(at for *_, at in hits):28.0%}"


def _same_slot(story: Story, translation: Story, sentence: int, word: int) -> list[int]:
    """Positions in the translation, </s> counted, of the words that say the same."""
    slot = story.trace[sentence][word - 1].slot
    line = enumerate(translation.trace[sentence], start=1)
    return [place for place, trace in line if slot and trace.slot == slot]


def across_parts(
    weights: Sequence[float],
    left: Sequence[str],
    right: Sequence[str],
    word: int,
    same: Sequence[int],
) -> list[str]:
    """What the drawing consists of, for the deck too. weights: one a token, first the left ones."""
    split = len(left)
    parts = [
        words(LEFT - 10, 20, "English, one word masked", 13, "end"),
        words(RIGHT + 10, 20, "its translation (framed: says the same)", 13, "start"),
    ]
    for i, token in enumerate(left):
        parts += _token(token, weights[i], _middle(i), LEFT - 10, "end", i == word)
    for i, token in enumerate(right):
        parts += _token(token, weights[split + i], _middle(i), RIGHT + 10, "start", i in same)
    for i, weight in enumerate(weights[split : split + len(right)]):
        if weight >= FAINTEST:
            parts.append(line(LEFT, _middle(word), RIGHT, _middle(i), ink=BLUE,
                              wide=0.6 + 5 * weight, opacity=0.25 + 0.75 * weight))  # fmt: skip
    return parts


def _token(token: str, weight: float, y: int, x: int, anchor: str, framed: bool) -> list[str]:
    """A token, a frame around it if marked, and outside of it how much attention it gets."""
    side = -1 if anchor == "end" else 1
    outside, length = x + side * 125, 100 * weight
    parts = [words(x, y + 5, escape(token), 13, anchor)]
    if weight >= FAINTEST:
        parts += [
            area(outside if side > 0 else outside - length, y - 6, length, 12, ORANGE),
            words(outside + side * (length + 5), y + 4, f"{weight:.0%}", 12, anchor),
        ]
    if framed:
        edge = x - 116 if side < 0 else x - 6
        parts.append(rect(edge, y - 12, 122, 24, fill="none", ink=BLUE, wide=2, rounding=4))
    return parts


def _middle(row: int) -> int:
    return TOP + ROW * row + ROW // 2


def likeliest(pairs: Pairs, answer: Tensor) -> str:
    """The first guesses and their probabilities, in words. answer: (V,)."""
    best = answer.topk(GUESSES)
    words = pairs.tokens(best.indices.tolist())
    return ", ".join(f"{word} {p:.0%}" for word, p in zip(words, best.values.tolist(), strict=True))


def _in_words(
    where: str, row: Tensor, left: Sequence[str], right: Sequence[str], hidden: str, guessed: str
) -> list[str]:
    there = row[len(left) : len(left) + len(right)]
    return [
        f"{where}. The masked word is “{hidden}”. {float(there.sum()):.0%} of this head's "
        f"attention goes to the other language, most of it to “{right[int(there.argmax())]}”.",
        f"The model's guesses: {guessed}.",
    ]
