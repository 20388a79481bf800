"""bertviz without a network: its own HTML in a frame, with jQuery and d3 from installed packages.

As shipped, bertviz fetches require.js, jQuery and d3 from other hosts and fails without them. The
frame weighs about 440 kB, so it lives in a widget: a saved notebook keeps only the static picture.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .attention import attention_picture, attention_weights
from .page import Live

if TYPE_CHECKING:
    from torch import Tensor, nn

# bertviz loads its libraries through require.js; this answers with those already on the page.
_STAND_IN = (
    "var require={config:function(){}};"
    "function requirejs(names,run){run(window.jQuery,window.d3)}"
    "d3.schemeCategory10=d3.scale.category10().range();"  # the name newer versions of d3 use
)


def bertviz_view(
    model: nn.Module,
    input_ids: Tensor | Sequence[int],
    tokens: Sequence[str],
    *,
    kind: Literal["head", "model"] = "head",
    sentence_b_start: int | None = None,
    **inputs: Tensor,
) -> Live:
    """bertviz's head view or model view of one text. It counts layers and heads from 0.

    input_ids (T,) or (1, T); tokens: T strings; inputs: token_type_ids, attention_mask if wanted;
    sentence_b_start: position of the first token of the second sentence. Raises ValueError as
    attention_view does, ImportError naming the package that is missing.
    """
    weights = attention_weights(model, input_ids, **inputs)
    static = attention_picture(weights, tokens)
    page = bertviz_page(weights, tokens, kind=kind, sentence_b_start=sentence_b_start)
    widget = _widget_class()(page=page, title=f"bertviz, {kind} view")
    return Live(widget, static, {"view": widget})


def bertviz_page(
    weights: Tensor,
    tokens: Sequence[str],
    *,
    kind: Literal["head", "model"] = "head",
    sentence_b_start: int | None = None,
) -> str:
    """An HTML page with bertviz's view of weights (L, A, T, T); it needs nothing from outside."""
    if kind not in ("head", "model"):
        raise ValueError(f'kind={kind!r} was given; expected "head" or "model".')
    bertviz = import_module("bertviz")  # not this module

    short = (weights.double() * 10_000).round() / 10_000  # four decimals: a third of the size
    view = {"head": bertviz.head_view, "model": bertviz.model_view}[kind]
    options: dict[str, Any] = {"display_mode": "light"} if kind == "model" else {}
    html = view(
        attention=[layer[None] for layer in short],  # L of (1, A, T, T)
        tokens=list(tokens),
        sentence_b_start=sentence_b_start,
        html_action="return",
        **options,
    ).data
    zoom = 0.66 if kind == "model" else 1  # bertviz draws the model view 970 pixels wide
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<style>body{{margin:6px;background:#fff;color:#1a1a1a;zoom:{zoom}}}"
        "select:focus-visible{outline:3px solid #E69F00}</style>"
        f"<script>{_library('jquery', 'jquery.min.js')}</script>"
        f"<script>{_library('d3', 'd3.js')}</script><script>{_STAND_IN}</script></head>"
        f"<body>{_without_hosts(html)}</body></html>"
    )


def _without_hosts(html: str) -> str:
    """bertviz's HTML without the tag, the comment and the settings that name other hosts."""
    html = re.sub(r"<script src=[^>]*></script>", "", html)
    html = re.sub(r"/\*\*.*?\*/", "", html, count=1, flags=re.DOTALL)
    return re.sub(r"require\.config\(\{.*?\}\s*\}\);", "", html, flags=re.DOTALL)


@lru_cache(maxsize=2)
def _library(name: str, file: str) -> str:
    """The text of a JavaScript library that a PyPI package carries."""
    try:
        package = import_module(f"xstatic.pkg.{name}")
    except ImportError as error:
        raise ImportError(
            f"bertviz_view needs {name}, which was not found; expected the package XStatic-{name}. "
            f"Install it with: pip install XStatic-{name}"
        ) from error
    text = (Path(package.BASE_DIR) / file).read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script")


@lru_cache(maxsize=1)
def _widget_class() -> Any:
    import anywidget
    import traitlets

    class BertvizView(anywidget.AnyWidget):
        _esm = _ESM
        page = traitlets.Unicode().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)

    return BertvizView


_ESM = """
function render({model, el}) {
  const box = document.createElement('div');
  box.className = 'bertviz-view';
  const frame = document.createElement('iframe');
  frame.title = model.get('title');
  frame.style.cssText = 'width:100%;box-sizing:border-box;border:1px solid #d9d9d9;'
    + 'border-radius:6px;background:#fff';
  frame.srcdoc = model.get('page');
  // As tall as what bertviz drew, within reason; it stays scrollable.
  frame.addEventListener('load', () => setTimeout(() => {
    const page = frame.contentDocument && frame.contentDocument.documentElement;
    if (page) frame.style.height = Math.min(page.scrollHeight + 12, 860) + 'px';
  }, 300));
  box.appendChild(frame);
  el.appendChild(box);
}
export default { render };
"""
