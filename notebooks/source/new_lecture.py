"""Lay an empty room for a lecture, with a page and a deck that pass the tests from the start.

    make new-lecture NB=18 NAME=a_name

writes course_lib/lectures/lecture_NN/ (exercises/ and exercises.toml, claims.py and claims.toml,
numbers.py, quiz.toml), the sources of the page and the deck, and the file of the answers that tests
try. Nothing that exists is touched. Then `make notebooks NB=NN` executes the page; the README's
table wants a line."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = (
    "Predict first", "By hand", "Try it", "The code", "Is it right?", "See it", "Measure it",
    "What they claim, what you measured", "More exercises", "Quiz", "Questions for review",
    "Read on",
)  # fmt: skip

ROOM = '"""The room of lecture {number}: everything that belongs to it alone."""\n'

EXERCISES = '''"""Exercises of lecture {number}, one file each."""

from course_lib.teaching.exercises.form import Exercise

EXERCISES: tuple[Exercise, ...] = ()
'''

WRITTEN = "What a student reads of each exercise; code, cases and known mistakes are in exercises/."

CLAIMS = '''"""What the claims of lecture {number} are settled with; claims.toml tells them."""

from __future__ import annotations
'''

TOLD = """["layers"]
they_say = "BERT-base has twelve layers"
who = "Devlin et al. 2019, section 3"
it_is = "twelve"
verdict = "true"
how = "computed"
settled_by = "the published sizes in course_lib/config.py"
value = "published('bert', 'base').num_layers"
detail = "{{number:value}} layers"
expected = 12
rejected = 24
"""

NUMBERS = '''"""The measured numbers that sentences of lecture {number} say."""

from __future__ import annotations
'''

QUIZ = """[[item]]
question = "How many layers has BERT-base?"

[[item.choice]]
text = "6"
correct = false
why = "That is how many DistilBERT has, half of it."

[[item.choice]]
text = "{{{{number:published('bert', 'base').num_layers}}}}"
correct = true
why = "So its published sizes say; the large one has twice as many."

[[item.choice]]
text = "24"
correct = false
why = "That is how many BERT-large has."

[[review]]
question = "What is this lecture about?"
answer = "Nothing yet."
"""

PAGE_HEAD = """# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # {title}
#
# **Lecture {number}** · {{{{duration}}}} · {{{{colab}}}}
#
# After this page you can
#
# - say what this page is going to teach.
#
# You need the encoder of lecture 02. Nothing is downloaded.
#
# {{{{parts}}}}

# %%
from course_lib import bert, claims_table, count_parameters, published, quiz, show
"""

PAGE_CELLS = {
    "Predict first": "BERT-base has {{number:published('bert', 'base').num_layers}} layers. How "
    "many parameters has the smallest published BERT? Write a number down.",
    "The code": "show(published)",
    "Is it right?": "print(f\"{count_parameters(bert('tiny')):,}\")",
    "What they claim, what you measured": 'claims_table("NN")',
    "Quiz": 'quiz("NN")',
    "Questions for review": "{{review:NN}}",
}
COMPARED = "Is it right?"  # the cell whose output the tests compare

DECK_HEAD = """title: {title}
lecture: {number}
"""

ANSWERS = '''"""What other hands might answer in lecture {number}, right and wrong."""

from __future__ import annotations

from typing import Any

RIGHT: dict[str, list[Any]] = {{}}
WRONG: dict[str, list[tuple[Any, str]]] = {{}}
'''


def page(number: str, title: str) -> str:
    """The page's source: its twelve parts, most of them still to be written."""
    cells = [PAGE_HEAD.format(number=number, title=title)]
    for part in PARTS:
        cells.append(f"# %% [markdown]\n# ## {part}\n")
        content = PAGE_CELLS.get(part, "To be written.").replace("NN", number)
        if re.match(r"[a-z_]+\(", content):
            tags = ' tags=["nbval-check-output"]' if part == COMPARED else ""
            cells.append(f"# %%{tags}\n{content}\n")
        else:
            cells[-1] = cells[-1].rstrip("\n") + f"\n#\n# {content}\n"
    return "\n".join(cells)


def deck(number: str, title: str) -> str:
    """The deck's source: a slide for each part of the page, notes included."""
    head = [DECK_HEAD.format(number=number, title=title)]
    notes = "Notes:\n\nSay here what the room should do, and what to ask it before going on.\n"
    for n, part in enumerate(PARTS):
        name, style = (title, " .title") if n == 0 else (part, "")
        level = "#" if n == 0 else "##"
        content = "BERT-base has {{ number:layers }} layers." if n == 1 else "To be written."
        head.append(f"---\n\n{level} {name} {{minutes=3{style}}}\n\n{content}\n\n{notes}")
    return "\n".join(head)


def files(number: str, name: str) -> dict[str, str]:
    """{path from the checkout: content} of an empty lecture."""
    title = name.replace("_", " ").capitalize()
    room, source = f"course_lib/lectures/lecture_{number}", f"{number}_{name}"
    return {
        f"{room}/__init__.py": ROOM.format(number=number),
        f"{room}/exercises/__init__.py": EXERCISES.format(number=number),
        f"{room}/exercises.toml": f"# {WRITTEN}\n",
        f"{room}/claims.py": CLAIMS.format(number=number),
        f"{room}/claims.toml": TOLD,
        f"{room}/numbers.py": NUMBERS.format(number=number),
        f"{room}/quiz.toml": QUIZ.format(),
        f"notebooks/source/{source}.py": page(number, title),
        f"slides/source/{source}.md": deck(number, title),
        f"slides/source/{source}.py": f'"""What deck {number} computes: figures and tables."""\n',
        f"tests/lectures/lecture_{number}/answers_{number}.py": ANSWERS.format(number=number),
    }


def lay(root: Path, number: str, name: str) -> list[str]:
    """Write the files; ValueError, and nothing written, where the lecture exists or is misnamed."""
    if not re.fullmatch(r"\d\d", number) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(
            f"NB={number!r} NAME={name!r} was given; expected two digits and a name in small "
            "letters, as in `make new-lecture NB=18 NAME=a_name`."
        )
    if there := [path for path in (root / "notebooks" / "source").glob(f"{number}_*.py")]:
        raise ValueError(f"lecture {number} exists already: {there[0].name}; take another number.")
    found = files(number, name)
    if taken := [path for path in found if (root / path).exists()]:
        raise ValueError(
            f"{', '.join(taken)} exists already; move it away, or take another number."
        )
    for path, content in found.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    return list(found)


def main() -> None:
    parser = argparse.ArgumentParser(description="Lay an empty room for a lecture.")
    parser.add_argument("number", help="two digits, as in 09")
    parser.add_argument("name", help="the page's name, as in many_languages")
    arguments = parser.parse_args()
    try:
        print("\n".join(lay(ROOT, arguments.number, arguments.name)))
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
