"""Where a reader's own text is read on the site: which playground stands on which page, and the
models that they need."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from course_index import SEARCHER
from guesses import play_box
from live import Recorded
from models_of_pages import BASES, CODE_TAGGER, DIGITS, DISTANCES, digits_examples, write_named
from weights import GROUP

from course_lib.images import digits
from course_lib.lectures.lecture_03.views.code_words import SENTENCE
from course_lib.teaching.attention import widget_class
from course_lib.teaching.style import CIVIDIS
from course_lib.text import english


@dataclass(frozen=True)
class Playground:
    """play: the script, models/NAME.js; after: code of the cell that it follows;
    models: names of what it opens, see `model_of`; text: what it opens with;
    try_this: what to do, as Markdown; label: what it is, for screen readers; up_to: whose its
    numbers are."""

    page: str
    after: str
    play: str
    models: tuple[str, ...]
    text: str
    try_this: str
    label: str = "your own sentence"
    more: str = ""  # what else its script reads, as JSON
    up_to: str = "the numbers are the notebook's up to that"


FILL = (
    "Press a word piece to hide it, or write `[MASK]` yourself, and see what the model guesses. "
    "Then choose a layer and a head: where does `[MASK]` look?"
)
COMPARE = (
    "Both models read the same sentence. Write `[MASK]`, or press a word piece to hide it: where "
    "do the two agree?"
)
ELECTRA = (
    "Change a word so that the story contradicts itself: does the discriminator notice? Press a "
    "word to hide it from the generator, and read what that proposes."
)
STORY = (
    "the conductor goza comes from alderholm with his train . first goza unlocks the train near "
    "moon market . then they drive the cat at moon market ."
)
CODE = (
    "The same tagger on any sentence. Use one word both ways, as a name and as plain English: "
    "which neighbours make it change its mind?"
)
MOVE = (
    "Press a word and move it: its content stays, its distances change. Which of its three scores "
    "change with it in layer 1? And in layer 2?"
)
SEARCH = (
    "Ask the course something, in words of your own. What does each ranking find that the other "
    "does not? Try a word that no page uses."
)
TRAINED_HERE = "was trained by this page's recipe when the site was built"
CHANGED = (
    "course-bert's, and int4 for what training changed of them. The model "
    f"{TRAINED_HERE}, on the documentation that was installed there"
)
DRAW = (
    "Draw one with a mouse, a finger or the keyboard. A ViT of two layers, trained as on this "
    f"page, says which it is. It has seen {len(digits()):,} digits, all scaled alike: so is yours, "
    "before it is read."
)
BLANKS = [blank.text for blank in english.blanks()]
PLAYGROUNDS = (
    Playground("00", "(in mind: ", "fill", ("course-bert",), BLANKS[12], FILL),
    Playground("02", "word within the first", "fill", ("course-bert",), BLANKS[1], FILL),
    Playground(
        "16", "the writer's word comes first:", "compare", ("course-bert", "course-modernbert"),
        BLANKS[3], COMPARE,
    ),
    Playground(
        "07", "corruptor_view(", "electra",
        ("electra-generator", "electra-discriminator"), STORY, ELECTRA, "your own story",
    ),
    Playground(
        "15", "attention_maps_view(model", "digits", (DIGITS,), "", DRAW,
        "a digit of your own", digits_examples(), up_to=f"the model {TRAINED_HERE}",
    ),
    Playground(
        "08", "score_maps(model", "scores", (DISTANCES,),
        "at lion mill nizin meets his friend pina .", MOVE, more=json.dumps(CIVIDIS),
        up_to=f"the model {TRAINED_HERE}",
    ),
    Playground(
        "03", "code_words_view(code_tagger", "code", (CODE_TAGGER,), SENTENCE, CODE,
        up_to=CHANGED,
    ),
    Playground(
        "17", "search_course(", "search", (SEARCHER,), "Which words are hidden from the model?",
        SEARCH, "your own question", up_to=CHANGED,
    ),
)  # fmt: skip
NOTE = (
    "{models} {run} in this page, without a server. {Their} weights are int8 here, in groups of "
    "{group} with a scale each: {up_to}."
)
WITHOUT = (
    "Here the site runs the model on your own text. That needs a browser of 2021 or later, with "
    "scripts allowed; the cell above shows some sentences as they come out."
)


def place_playgrounds(page: nbformat.NotebookNode, number: str) -> None:
    """Put the playgrounds of the page with this number into it, each behind its code cell and the
    paragraph below that. Raises ValueError where the page has no such cell."""
    for one in PLAYGROUNDS:
        if one.page == number:
            cells = [cell.cell_type == "code" and one.after in cell.source for cell in page.cells]
            if not any(cells):
                raise ValueError(f"Expected a cell with {one.after!r}, which {one.play} follows.")
            at = cells.index(True) + 1
            caption, _, rest = page.cells[at].source.partition("\n\n")
            texts = filter(None, (caption, markdown(one), rest))
            page.cells[at : at + 1] = map(nbformat.v4.new_markdown_cell, texts)


def markdown(one: Playground) -> str:
    """A playground as Markdown: what to try, and the box in which site.js draws it."""
    data = {"play": one.play, "models": " ".join(one.models), "text": one.text, "note": note(one)}
    data |= {"more": one.more} if one.more else {}
    return f"**{one.label.capitalize()}.** {one.try_this}\n\n{play_box(one.label, WITHOUT, data)}"


def note(one: Playground) -> str:
    """What a playground's numbers are."""
    run, their = ("run", "Their") if len(one.models) > 1 else ("runs", "Its")
    return NOTE.format(
        models=" and ".join(one.models), run=run, Their=their, group=GROUP, up_to=one.up_to
    )


def write_models(notebooks: Sequence[Path], folder: Path) -> None:
    """The models that these pages' playgrounds open."""
    numbers = {path.stem[:2] for path in notebooks}
    names = {name for one in PLAYGROUNDS if one.page in numbers for name in one.models}
    for name in sorted(names | {BASES[name] for name in names if name in BASES}):
        write_named(name, folder)


def attention_script() -> dict[str, Recorded]:
    """The script and style of the attention view, which playgrounds draw with."""
    kind = widget_class()
    one = Recorded("attention", {}, kind.__name__, str(kind._esm), str(kind._css))
    return {one.module: one}
