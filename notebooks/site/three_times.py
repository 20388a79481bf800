"""The page "the same model three times": each part of BERT in course_lib's library, in its one-file
version and in the JavaScript that the site runs, side by side; then the JavaScript whole."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

from course_lib import encoder, heads, plain_bert
from course_lib.family import modernbert
from course_lib.kernels import attention, rotary
from course_lib.text import wordpiece

MODELS = Path(__file__).resolve().parent / "models"
PAGE = "three_times"


class Part(NamedTuple):
    """title and text: of the section; library, one_file: functions and classes, whose source is
    shown; script: functions of encoder.js (or another file, before a colon)."""

    title: str
    text: str
    library: tuple[Any, ...]
    one_file: tuple[Any, ...]
    script: str


PARTS = (
    Part(
        "Embeddings",
        "A token's vector, its segment's and its position's are added and normed.",
        (encoder.Embeddings,), (plain_bert.Embeddings,), "embeddings layerNorm",
    ),
    Part(
        "Self-attention",
        "PyTorch reshapes to bring the heads apart. The script leaves every row where it is and "
        "tells the product where a head begins and how far the next row is.",
        (encoder.SelfAttention, attention.attention_reference), (plain_bert.SelfAttention,),
        "attention softmax",
    ),
    Part(
        "Feed-forward",
        "Two dense layers with a GELU between them. JavaScript has no erf, so the script has a "
        "polynomial for it. ModernBERT's gate is one more line.",
        (encoder.FeedForward, encoder.activate, modernbert.GatedFeedForward),
        (plain_bert.FeedForward,), "feedForward erf",
    ),
    Part(
        "A block",
        "Attention, then feed-forward, each added to its input. The norm follows the sum, and in "
        "ModernBERT stands before each half.",
        (encoder.Block,), (plain_bert.Block,), "block",
    ),
    Part(
        "The encoder",
        "The blocks one after the other. The script reads one text at a time, so it needs neither "
        "a batch nor a padding mask.",
        (encoder.Stack,), (plain_bert.PlainBert.encode,), "encode",
    ),
    Part(
        "The masked-word head",
        "Dense, GELU, LayerNorm, and the token table again as decoder. The script computes only "
        "the positions that are asked for.",
        (heads.MaskedLMHead,), (plain_bert.PlainBert.forward,), "maskedLM transform",
    ),
    Part(
        "A dense layer",
        "In PyTorch it is `nn.Linear`. The script calls one product for all layers, for attention "
        "scores and for the sum over values; its text for WebAssembly is at the end of this page.",
        (), (), "dense",
    ),
    Part(
        "Rotary positions",
        "ModernBERT turns queries and keys by their positions. The one-file BERT adds a position "
        "table instead.",
        (rotary.rotary_reference,), (), "turn",
    ),
    Part(
        "Words into pieces",
        "The longest piece that fits, again and again. Before it, the text is normalised and split "
        "by the same rules; all ids agree.",
        (wordpiece.normalise, wordpiece.split_words, wordpiece.longest_match), (),
        "wordpiece:normalise longestMatch",
    ),
)  # fmt: skip

COLUMNS = ("PyTorch: the library", "PyTorch: one file", "JavaScript")
FILES = (
    ("encoder.js", "javascript", "The encoder and its heads"),
    ("wordpiece.js", "javascript", "The tokenizer"),
    ("product.wat", "text", "The product, as text for WebAssembly"),
)
HEAD = """---
hide-toc: true
---

# The same model three times

Three programs, one model: `course_lib`'s library, whose parts other members of the family
exchange; `course_lib/plain_bert.py`, one file to be read from top to bottom; and the {lines} lines
of JavaScript with which this site runs the model in your browser. Tests hold the three together:
the one-file BERT equals the library's, and with the same weights the script's states differ from
PyTorch's by at most 1e-4. Each section shows one part, side by side where the screen has room.
"""


def three_times() -> str:
    """The page as Markdown for Sphinx."""
    lines = len(script("encoder.js").splitlines())
    sections = [HEAD.format(lines=lines), *map(_section, PARTS), "## The whole script\n"]
    for file, language, title in FILES:
        sections.append(f"### {title}: {file}\n\n{_fenced(script(file), language)}")
    return "\n".join(sections)


def script(file: str) -> str:
    """The text of one of the site's scripts."""
    return (MODELS / file).read_text(encoding="utf-8")


def function_of(text: str, name: str) -> str:
    """A function of a script with the comment above it. Raises ValueError where there is none."""
    pattern = rf"(?:^  //[^\n]*\n)*^  function {name}\(.*?^  \}}$"
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError(f"no function {name} in the script: expected one, two spaces indented.")
    return textwrap.dedent(found[0])


def _section(part: Part) -> str:
    file, _, names = part.script.rpartition(":")
    functions = [function_of(script(f"{file or 'encoder'}.js"), name) for name in names.split()]
    ours = _fenced("\n\n".join(functions), "javascript")
    cells = zip(COLUMNS, (_python(part.library), _python(part.one_file), ours), strict=True)
    columns = "\n</div><div>\n\n".join(f"**{title}**\n\n{code}" for title, code in cells if code)
    grid = f'<div class="three-times"><div>\n\n{columns}\n</div></div>'
    return f"## {part.title}\n\n{part.text}\n\n{grid}\n"


def _python(parts: tuple[Any, ...]) -> str:
    sources = [textwrap.dedent(inspect.getsource(part)).rstrip() for part in parts]
    return _fenced("\n\n\n".join(sources), "python") if sources else ""


def _fenced(text: str, language: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````\n"
