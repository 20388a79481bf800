"""One word of a sentence as ELMo's two language models predict it: one knows what stands before,
the other what stands after, neither both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from course_lib.teaching.page import Html, Live, card, paragraphs
from course_lib.teaching.playgrounds import playground, slider, text_field
from course_lib.teaching.tokens import MASKED, PLAIN, tokens_row

from .nearest import side_by_side

if TYPE_CHECKING:
    from torch import Tensor

    from course_lib.family.elmo import ElmoForBiLM
    from course_lib.text.characters import WordVocabulary

Guesses = list[tuple[str, float]]  # (word, probability), the likeliest first
TOP = 6


def two_guesses(
    model: ElmoForBiLM,
    vocabulary: WordVocabulary,
    words: Sequence[str],
    position: int,
) -> dict[str, Guesses]:
    """What each language model says about the word at `position` (from 0), which it does not see:
    "from the left" and "from the right". Dropout is off.

    Raises ValueError for no words and for a position outside them."""
    import torch

    from course_lib.text.characters import spell_sentences

    if not 0 <= position < len(words):
        raise ValueError(
            f"word {position + 1} was asked for in a text of {len(words)} words; expected one of "
            "them, counted from 1."
        )
    ids, mask = spell_sentences([list(words)], model.config.max_characters)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            out = model(ids, mask)
    finally:
        model.train(was_training)
    # <S> stands before word 0: word t is at t + 1, its neighbours at t and t + 2.
    logits = {
        "from the left": out.forward_logits[0, position],
        "from the right": out.backward_logits[0, position + 2],
    }
    return {way: _best(row.softmax(-1), vocabulary) for way, row in logits.items()}


def _best(probabilities: Tensor, vocabulary: WordVocabulary) -> Guesses:
    best = probabilities.topk(TOP)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [(vocabulary.vocab[index], probability) for index, probability in pairs]


def guesses_view(
    model: ElmoForBiLM, vocabulary: WordVocabulary, text: str, word: int = 1
) -> Live:  # fmt: skip
    """A text of the reader's own, and one of its words as both language models predict it.

    Controls: text (words with spaces between them, signs too), word (counted from 1)."""
    controls = {
        "text": text_field("text", text, continuous_update=False),
        "word": slider("word to predict", word, 1, 20),
    }
    return playground(partial(guesses_picture, model, vocabulary), controls)


def guesses_picture(
    model: ElmoForBiLM, vocabulary: WordVocabulary, text: str, word: int
) -> Html:  # fmt: skip
    """The text with one word hidden, and two columns of guesses."""
    words = text.lower().split()
    if not words:
        raise ValueError("The text is empty; expected at least one word.")
    word = min(word, len(words))
    guesses = two_guesses(model, vocabulary, words, word - 1)
    marks = [MASKED if t == word - 1 else PLAIN for t in range(len(words))]
    row = tokens_row(words, marks)
    before, after = " ".join(words[: word - 1]) or "nothing", " ".join(words[word:]) or "nothing"
    lines = [
        f"{way}, having read “{seen}”: "
        + ", ".join(f"{guess} {p:.0%}" for guess, p in guesses[way])
        for way, seen in (("from the left", before), ("from the right", after))
    ]
    hidden = f"Hidden from both: “{words[word - 1]}”."
    html = row.inner + side_by_side(guesses, "", ".0%") + paragraphs([hidden])
    return Html(card(html, "guesses", 800), "\n".join([row.text, hidden, *lines]))
