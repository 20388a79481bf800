"""A story of the world in Chinese: its characters, words and names, and what is masked together."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from course_lib.objectives.masked_lm import mask_sequences, mask_whole_words
from course_lib.teaching.page import Html, Live, card, check_one_of, paragraphs
from course_lib.teaching.playgrounds import choice, playground, slider
from course_lib.teaching.tokens import MASKED, PLAIN, box
from course_lib.text.world import MicroWorld
from course_lib.train.metrics import HIDDEN

from ..chinese import LEVELS, PLACES, spelled, training_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from course_lib.text.world import Story, Trace

STORIES = 12  # held-out stories to choose from
DESCRIPTIONS = {
    "characters": "every character is a unit (BERT; ERNIE's basic stage)",
    "words": "every word is a unit (whole-word masking; ERNIE's phrase stage)",
    "names": "words are units, and names of several words are one (ERNIE's entity stage)",
}
MEASURE = "(count)"  # a measure word, as in two *sheets* of paper
# What the words of the frames say. The other words have their row in the English tables.
_GLOSSES = """
，:, 。:. 步行:walks 去:to 是:is 一:a 住:lives 在:at 附近:near 有:has 的:of 找到:finds 今天:today
把:(takes) 带:brings 到:to 着:(-ing) 从:from 来:comes 和:and 朋友:friend 需要:needs 遇见:meets
非常:very 喜欢:likes 这:this 向:to 问起:asks~about 看:see 给:to 带来:brings 他们:they 还:also
那里:there 教:teaches 怎么:how 使用:use 想:wants 看看:look~at 那:that 首先:first 一起:together
一边:while 聊天:chats 所有:all 一开始:at~first 它:it 只好:has~to 等:wait 然后:then 为:for
其中:of~these 帮助:helps 吃:eats 了:(done) 一些:some 两:two 个:(count) 人:people 最后:finally
感到:feels 很:very 看见:sees 终于:at~last 感谢:thanks 于是:so 回:goes 家:home 送给:gives 后来:later
人人:everybody 都:all 分享:shares 拜访:visits
"""
GLOSS = dict(pair.split(":") for pair in _GLOSSES.split())


def chinese_view(world: MicroWorld, english: MicroWorld, index: int = 0, seed: int = 0) -> Live:
    """What is masked together in a Chinese story. Controls: unit, story, draw.

    world: the world in Chinese; english: the same in English, for what the words say."""
    stories = world.stories(STORIES, seed=5, split="heldout")
    controls = {
        "level": choice("a unit is one of", "words", LEVELS),
        "story": slider("story", index, 0, STORIES - 1),
        "seed": slider("draw again", seed, 0, 50),
    }

    def draw(level: str, story: int, seed: int) -> Html:
        return chinese_picture(stories[story], english, level, seed)

    return playground(draw, controls)


def chinese_picture(story: Story, english: MicroWorld, level: str, seed: int = 0) -> Html:
    """The story, a sentence a line, beside the same in English; hatched what is selected. Raises
    ValueError for a level that is none of LEVELS."""
    selected = selected_characters(story, level, seed)
    word_glosses = glosses(story, english)
    rows, lines, done = [], [], 0
    sentences = story.told_in(english).sentences
    for line, gloss, sentence in zip(story.trace, word_glosses, sentences, strict=True):
        count = sum(len(trace.word) for trace in line)
        here = selected[done : done + count]
        done += count
        rows.append(sentence_row(line, gloss, here, level, sentence))
        lines.append(f"{plain_line(line, here)} = {sentence}")
    counted = in_words(story, level, selected)
    return Html(
        card("".join(rows) + paragraphs(counted), "chinese-units", 940),
        "\n".join([*lines, *counted]),
    )


def selected_characters(story: Story, level: str, seed: int) -> list[bool]:
    """Of each character of a story: is it selected for prediction? As in the experiment."""
    check_one_of(LEVELS, level=level)
    training = training_text(story.world, [story])
    inputs = training.train, story.world.special
    if level == "characters":
        masked = mask_sequences(*inputs, mix=HIDDEN, seed=seed)
    else:
        masked = mask_whole_words(*inputs, training.word_of[level], mix=HIDDEN, seed=seed)
    return masked.selected[0, 1 : 1 + len(spelled(story))].tolist()


def glosses(story: Story, english: MicroWorld) -> list[list[str]]:
    """What each word of a Chinese story says, in English."""
    result = []
    for line in story.trace:
        of_line: list[str] = []
        for slot, run in groupby(line, key=lambda trace: trace.slot):
            words = list(run)
            if not slot:
                of_line += [GLOSS[trace.word].replace("~", " ") for trace in words]
            elif slot.endswith(".a"):
                of_line += [MEASURE] * len(words)
            else:
                role, _, path = slot.partition(".")
                of_line += english.grammar.column(role, path)[story.rows[role]]
        result.append(of_line)
    return result


def sentence_row(
    line: Sequence[Trace], gloss: Sequence[str], selected: Sequence[bool], level: str, english: str
) -> str:
    """HTML: the sentence in boxes, and beside it the same in English."""
    ours = f'<div style="flex:1 1 480px">{line_html(line, gloss, selected, level)}</div>'
    text = escape(english.replace(" .", "."))
    theirs = f'<div style="flex:0 1 250px;color:#444;padding-top:8px">{text}</div>'
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:14px;border-top:1px solid #ddd;'
        f'padding:4px 0">{ours}{theirs}</div>'
    )


def line_html(
    line: Sequence[Trace], gloss: Sequence[str], selected: Sequence[bool], level: str
) -> str:
    """HTML: a sentence in boxes, a character each; words and names are framed where they are
    units."""
    marks, words = iter(selected), zip(line, gloss, strict=True)
    parts = []
    for slot, run in groupby(words, key=lambda one: one[0].slot):
        framed = [word_html(x.word, below, marks, level != "characters") for x, below in run]
        name = level == "names" and slot in PLACES
        parts.append(_name(framed) if name else "".join(framed))
    return f'<div lang="zh-Hans">{"".join(parts)}</div>'


def word_html(word: str, gloss: str, selected: Iterator[bool], framed: bool) -> str:
    """HTML: a word's characters side by side, what it says below. selected: an iterator that gives
    a mark for each character."""
    boxes = "".join(
        box(c, MASKED, "selected for prediction") if next(selected) else box(c, PLAIN) for c in word
    )
    border = "1px solid #0072B2" if framed else "1px solid transparent"
    style = (
        f"display:inline-block;border:{border};border-radius:5px;padding:0 0 1px 3px;"
        "margin:3px 2px;text-align:center;vertical-align:top"
    )
    below = f'<div lang="en" style="font-size:11px;color:#444">{escape(gloss)}</div>'
    return f'<span class="word" style="{style}">{boxes}{below}</span>'


def _name(words: Sequence[str]) -> str:
    """HTML: the words of a name in one frame."""
    style = "display:inline-block;border:3px solid #0072B2;border-radius:7px;margin:1px 2px"
    return f'<span class="name" style="{style}">{"".join(words)}</span>'


def plain_line(line: Sequence[Trace], selected: Sequence[bool]) -> str:
    """The sentence as text: words parted by spaces, selected characters in brackets."""
    marks = iter(selected)
    return " ".join("".join(f"[{c}]" if next(marks) else c for c in trace.word) for trace in line)


def in_words(story: Story, level: str, selected: Sequence[bool]) -> list[str]:
    """How many characters are selected, and how many leave another of their word readable."""
    of_word = [number for number, _ in spelled(story)]
    hidden = [n for n, mark in zip(of_word, selected, strict=True) if mark]
    several = [n for n in hidden if of_word.count(n) > 1]
    readable = sum(hidden.count(n) < of_word.count(n) for n in several)
    return [
        f"{level}: {DESCRIPTIONS[level]}. {len(hidden)} of {len(of_word)} characters are selected "
        "(hatched).",
        f"{len(several)} of these belong to words of several characters; {readable} have a "
        "readable character in their own word.",
    ]
