"""Tokens as boxes, the same way everywhere. Shape says what colour says.

[MASK] is hatched, a replaced token outlined twice, a token kept but selected for dotted and
underlined, a special token rounded. Actions are numbered as in objectives.masked_lm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .page import Html, card

PLAIN, MASKED, REPLACED, KEPT = 0, 1, 2, 3
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>", "<pad>", "<unk>", "<mask>")
SAID = {
    PLAIN: "",
    MASKED: "replaced by [MASK]",
    REPLACED: "replaced by a random token",
    KEPT: "kept, but selected",
}

_BOX = "display:inline-block;margin:2px 3px 0 0;color:#1a1a1a;white-space:pre;"
_HATCH = "repeating-linear-gradient(45deg,#fbe3b5 0 4px,#fff6e3 4px 8px)"
_LOOK = {
    PLAIN: "padding:4px 8px;border:1px solid #9a9a9a;border-radius:3px;background:#fff;",
    MASKED: "padding:3px 7px;border:2px solid #8a5f00;border-radius:3px;"
    f"background-color:#fdeecb;background-image:{_HATCH};",
    REPLACED: "padding:1px 5px;border:4px double #D55E00;border-radius:3px;background-color:#fff;",
    KEPT: "padding:3px 7px;border:2px dotted #007a59;border-radius:3px;background-color:#eef9f5;"
    "text-decoration:underline dotted;",
}
_ROUND = "padding:4px 8px;border:1px solid #9a9a9a;border-radius:12px;background-color:#efefef;"
_CELL = "display:inline-block;vertical-align:top;text-align:center;margin:0 1px 4px 0;"
_MONO = "font:13px/1.45 ui-monospace,Menlo,Consolas,monospace;"


def tokens_row(
    tokens: Sequence[str],
    actions: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
    *,
    selected: int | None = None,
) -> Html:
    """A row of token boxes. actions: 0 plain, 1 [MASK], 2 replaced, 3 kept; labels go under them
    and may have several lines.

    selected: this one is marked by a triangle. Raises ValueError when the lengths differ.
    """
    actions = list(actions) if actions is not None else [_guess(token) for token in tokens]
    labels = list(labels) if labels is not None else [""] * len(tokens)
    if not len(tokens) == len(actions) == len(labels):
        raise ValueError(
            f"{len(tokens)} tokens, {len(actions)} actions and {len(labels)} labels were given; "
            "expected one action and one label for each token."
        )
    cells = [
        _cell(*one, i == selected)
        for i, one in enumerate(zip(tokens, actions, labels, strict=True))
    ]
    words = (_plain(*one) for one in zip(tokens, actions, labels, strict=True))
    inner = f'<div class="token-boxes">{"".join(cells)}</div>'
    return Html(card(inner, "token-row"), " ".join(words), inner)


def tokens_legend(special: str = "[CLS]") -> str:
    """HTML: one small box of each kind with its meaning. special: one of the model's own."""
    return boxes_legend(
        ((special, PLAIN, "special token"), ("[MASK]", MASKED, "masked"),
         ("word", REPLACED, "replaced"), ("word", KEPT, "kept, but selected")),
        titles=False,
    )  # fmt: skip


def boxes_legend(kinds: Iterable[tuple[str, int, str]], titles: bool = True) -> str:
    """HTML: for each kind a box of its token and action, and the meaning; titles: which is the
    box's own title, too, in place of what the action means elsewhere."""
    parts = (
        f"{box(t, a, meaning * titles)}<span>{meaning}</span>&emsp;" for t, a, meaning in kinds
    )
    return f'<div style="font-size:12px;color:#444;margin-top:4px">{"".join(parts)}</div>'


def box(token: str, action: int = PLAIN, meaning: str = "") -> str:
    """One token as HTML; `meaning`: what its look says here, if not what SAID has."""
    rounded = token in SPECIAL and action == PLAIN and token not in ("[MASK]", "<mask>")
    look = _ROUND if rounded else _LOOK[int(action)]
    kind = "special" if rounded else ("plain", "masked", "replaced", "kept")[int(action)]
    meaning = meaning or SAID[int(action)] or ("special token" if rounded else "")
    title = f' title="{meaning}"' if meaning else ""
    style = f"{_BOX}{_MONO}{look}"
    return f'<span class="token token-{kind}"{title} style="{style}">{escape(token)}</span>'


def _cell(token: str, action: int, label: str, selected: bool) -> str:
    under = "▲ " * selected + escape(str(label))
    style = "font-size:11px;color:#444;min-height:14px;white-space:pre-line"
    below = f'<div style="{style}">{under}</div>' if under else ""
    return f'<div style="{_CELL}">{box(token, action)}{below}</div>'


def _plain(token: str, action: int, label: str) -> str:
    marks = {PLAIN: "{}", MASKED: "{}", REPLACED: "«{}»", KEPT: "_{}_"}
    one_line = " ".join(str(label).split("\n"))
    return marks[int(action)].format(token) + (f"({one_line})" if label else "")


def _guess(token: str) -> int:
    return MASKED if token in ("[MASK]", "<mask>") else PLAIN
