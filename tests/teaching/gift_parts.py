"""A small reader of GIFT, by Moodle's rules and not by our writer's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ESCAPED = {"\\\\": "\\", "\\~": "~", "\\=": "=", "\\#": "#", "\\{": "{", "\\}": "}", "\\:": ":",
           "\\n": "\n"}  # fmt: skip


@dataclass
class Read:
    name: str
    text: str
    answers: list[tuple[float, str, str]] = field(default_factory=list)  # percent, text, feedback
    general: str = ""


def read(text: str) -> tuple[list[str], list[Read]]:
    """The categories and the items of a file."""
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        hidden.append(ESCAPED[match[0]])
        return f"\0{len(hidden) - 1}\0"

    text = re.sub(r"\\[\\~=#{}:n]", hide, text)  # first of all, so that no sign is taken for syntax

    def plain_text(part: str) -> str:
        return re.sub("\0(\\d+)\0", lambda match: hidden[int(match[1])], part.strip())

    categories, items = [], []
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("$CATEGORY:"):
            categories.append(plain_text(block.removeprefix("$CATEGORY:")))
            continue
        name, question, answers = re.fullmatch(
            r"::(.*?)::\[html\](.*?)\{(.*)\}", block, re.S
        ).groups()
        item = Read(plain_text(name), plain_text(question))
        before, _, general = answers.partition("####")
        item.general = plain_text(general)
        for sign, answer in re.findall(r"([=~])([^=~]*)", before):
            weight = re.match(r"%(-?\d+(?:\.\d+)?)%", answer)
            percent = float(weight[1]) if weight else 100.0 * (sign == "=")
            choice, _, why = answer[weight.end() if weight else 0 :].partition("#")
            item.answers.append((percent, plain_text(choice), plain_text(why)))
        items.append(item)
    return categories, items
