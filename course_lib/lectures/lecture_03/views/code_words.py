"""A control: an own sentence, and which of its words a tagger takes for code."""

from __future__ import annotations

from functools import partial
from typing import Any

from course_lib.lectures.lecture_03.documentation_runs import LENGTH
from course_lib.teaching.documentation_tasks import CODE_TAGS, tagged
from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import playground, text_field
from course_lib.text.features import Tokenizer, tagged_sequences
from course_lib.train.finetuning import predicted_tags

from .tagged_words import tag_view

SENTENCE = "If copy is true, values is a copy of the array; otherwise it shares memory with array."


def code_words_view(model: Any, tokenizer: Tokenizer, text: str = SENTENCE) -> Live:
    """`code_words_picture` below a field for the sentence."""
    draw = partial(code_words_picture, model, tokenizer)
    return playground(draw, {"text": text_field("sentence", text)})


def code_words_picture(model: Any, tokenizer: Tokenizer, text: str) -> Html:
    """The words of a sentence with the tags that a tagger of CODE_TAGS gives them, as far as they
    fit into its sequence. Raises ValueError for a text without words, or without tokens."""
    if not text.strip():
        raise ValueError("An empty sentence was given; expected words in it.")
    sentence = tagged([text, []])
    task = tagged_sequences([sentence], None, tokenizer, LENGTH, names=CODE_TAGS)
    tags = predicted_tags(model, task)[0]
    return tag_view(sentence.words[: len(tags)], tags)
