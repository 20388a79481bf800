"""Attention as lines between two columns of tokens: a live view with sliders, and a static picture.

L layers, A heads, T tokens. Layers and heads are counted from 1 here, as the papers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from .page import Html, Live, card, svg_drawing, svg_image

if TYPE_CHECKING:
    from torch import Tensor, nn

ROW, TOP, LEFT, RIGHT, WIDE = 24, 30, 230, 490, 720  # pixels
MOST_LINES, FAINTEST = 250, 0.04  # of the static picture, to keep it small


def attention_view(
    model: nn.Module,
    input_ids: Tensor | Sequence[int],
    tokens: Sequence[str],
    *,
    layer: int = 1,
    head: int = 1,
    **inputs: Tensor,
) -> Live:
    """The attention of `model` over one text, with sliders for layer and head.

    input_ids (T,) or (1, T); tokens: T strings; inputs: token_type_ids, attention_mask if wanted.
    Raises ValueError when the tokens are not as many as the ids, or the model returns no attention.
    """
    weights = attention_weights(model, input_ids, **inputs)
    _check(weights, tokens, layer, head)
    widget = widget_class()(
        tokens=list(tokens),
        weights=(weights * 1000).round().int().flatten().tolist(),
        layers=weights.shape[0],
        heads=weights.shape[1],
        layer=layer,
        head=head,
    )
    return Live(widget, attention_picture(weights, tokens, layer, head), {"view": widget})


def attention_weights(model: nn.Module, input_ids: Tensor | Sequence[int], **inputs: Any) -> Tensor:
    """Attention of one text, (L, A, T, T), dropout off; of our models and of transformers'."""
    import torch

    ids = torch.as_tensor(input_ids).reshape(1, -1)
    inputs = {name: torch.as_tensor(value).reshape(1, -1) for name, value in inputs.items()}
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            attentions = model(ids, output_attentions=True, **inputs).attentions
    finally:
        model.train(was_training)
    if not attentions:
        raise ValueError(
            "The model returned no attention. A model of transformers must be loaded with "
            'attn_implementation="eager"; its faster ways never form the weights.'
        )
    return torch.stack(
        [layer[0] for layer in attentions]
    ).float()  # L of (1, A, T, T) -> (L, A, T, T)


def attention_picture(
    weights: Tensor, tokens: Sequence[str], layer: int = 1, head: int = 1
) -> Html:
    """The view without its controls: one layer and head of weights (L, A, T, T) as a picture."""
    _check(weights, tokens, layer, head)
    matrix = weights[layer - 1, head - 1].tolist()
    svg = attention_svg(matrix, tokens, f"layer {layer}, head {head}")
    links = [
        f"{token} → {tokens[_largest(row)]}" for token, row in zip(tokens, matrix, strict=True)
    ]
    text = (
        f"Attention of layer {layer}, head {head}; each token and what it attends to most: "
        + "; ".join(links)
    )
    return Html(card(svg_image(svg, text), "attention-static"), text)


def attention_svg(matrix: Sequence[Sequence[float]], tokens: Sequence[str], title: str) -> str:
    """SVG of one head, (T, T): row: query, column: key; weak lines are left out."""
    lines = [(w, i, j) for i, row in enumerate(matrix) for j, w in enumerate(row) if w >= FAINTEST]
    drawn = "".join(_line(*line) for line in sorted(lines, reverse=True)[:MOST_LINES])
    words = "".join(
        f'<text x="{x}" y="{_middle(i) + 4}" text-anchor="{anchor}">{escape(token)}</text>'
        for x, anchor in ((LEFT - 8, "end"), (RIGHT + 8, "start"))
        for i, token in enumerate(tokens)
    )
    content = (
        f'<g font-family="ui-monospace,Menlo,Consolas,monospace">{words}</g>'
        f'<g font-size="12" fill="#555"><text x="{LEFT - 8}" y="16" text-anchor="end">this token '
        f'looks …</text><text x="{RIGHT + 8}" y="16">… at these</text>'
        f'<text x="{(LEFT + RIGHT) // 2}" y="16" text-anchor="middle">{escape(title)}</text></g>'
        f'<g stroke="#0072B2" stroke-linecap="round">{drawn}</g>'
    )
    return svg_drawing(WIDE, TOP + ROW * len(tokens) + 8, content, f"attention, {title}")


def _line(weight: float, asks: int, answers: int) -> str:
    return (
        f'<path d="M{LEFT} {_middle(asks)}L{RIGHT} {_middle(answers)}" '
        f'stroke-width="{0.5 + 4 * weight:.1f}" opacity="{weight:.2f}"/>'
    )


def _middle(row: int) -> int:
    return TOP + ROW * row + ROW // 2


def _largest(row: Sequence[float]) -> int:
    return max(range(len(row)), key=row.__getitem__)


def _check(weights: Tensor, tokens: Sequence[str], layer: int, head: int) -> None:
    layers, heads, T, _ = weights.shape
    if len(tokens) != T:
        raise ValueError(f"{len(tokens)} tokens were given for {T} ids; expected one for each id.")
    if not (1 <= layer <= layers and 1 <= head <= heads):
        raise ValueError(
            f"layer={layer}, head={head} was given; expected a layer from 1 to {layers} and a head "
            f"from 1 to {heads}."
        )


@lru_cache(maxsize=1)
def widget_class() -> Any:
    """The class of the live view, as anywidget has it."""
    import anywidget
    import traitlets

    class AttentionView(anywidget.AnyWidget):
        _esm = _ESM
        _css = _CSS
        tokens: Any = traitlets.List().tag(sync=True)
        weights: Any = traitlets.List().tag(sync=True)  # thousandths, (L, A, T, T) flattened
        layers = traitlets.Int().tag(sync=True)
        heads = traitlets.Int().tag(sync=True)
        layer = traitlets.Int(1).tag(sync=True)
        head = traitlets.Int(1).tag(sync=True)

    return AttentionView


_CSS = """
.attention-view{color-scheme:light;background:#fff;color:#1a1a1a;
  font:14px/1.4 system-ui,sans-serif;padding:10px 12px;max-width:744px;box-sizing:border-box}
.attention-view .controls{display:flex;gap:6px 22px;flex-wrap:wrap;align-items:center;
  margin-bottom:6px}
.attention-view label{display:flex;margin:0;gap:8px;align-items:center;color:#1a1a1a}
.attention-view output{min-width:4.2em;font-variant-numeric:tabular-nums}
.attention-view input[type=range]{width:150px;margin:0;accent-color:#0072B2}
.attention-view input:focus-visible{outline:3px solid #E69F00;outline-offset:2px}
.attention-view svg{display:block;max-width:100%;height:auto}
.attention-view .token{cursor:pointer;outline:none}
.attention-view .token .ring{fill:transparent;stroke:none}
.attention-view .token:focus-visible .ring{stroke:#E69F00;stroke-width:3}
.attention-view .token.chosen text{font-weight:700}
.attention-view .said{min-height:1.4em;color:#333;font-size:13px}
.attention-view .hint{color:#666;font-size:12px}
"""

_ESM = """
const ROW = 24, TOP = 30, LEFT = 230, RIGHT = 490, WIDE = 720;
const NS = 'http://www.w3.org/2000/svg';
const PROSE = 'system-ui,sans-serif', CODE = 'ui-monospace,Menlo,Consolas,monospace';
function make(parent, name, attributes, text) {
  const node = document.createElementNS(NS, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}
function slider(parent, model, name, largest, onMove) {
  const label = document.createElement('label');
  const input = document.createElement('input');
  const shown = document.createElement('output');
  const value = () => Math.min(largest, Math.max(1, model.get(name)));
  Object.assign(input, {type: 'range', min: 1, max: largest, step: 1, value: value()});
  input.setAttribute('aria-label', name);
  const say = () => {
    input.value = value();
    shown.textContent = value() + ' of ' + largest;
    input.setAttribute('aria-valuetext', name + ' ' + shown.textContent);
  };
  input.addEventListener('input', () => {
    model.set(name, Number(input.value));
    model.save_changes();
  });
  const changed = () => { say(); onMove(); };
  model.on('change:' + name, changed);
  label.append(name, input, shown);
  parent.appendChild(label);
  say();
  return () => model.off('change:' + name, changed);
}
function render({model, el}) {
  const tokens = model.get('tokens'), weights = model.get('weights');
  const T = tokens.length, heads = model.get('heads');
  const middle = i => TOP + ROW * i + ROW / 2;
  const weight = (i, j) =>
    weights[(((model.get('layer') - 1) * heads + model.get('head') - 1) * T + i) * T + j] / 1000;
  let chosen = null;  // {side, index} of the token hovered or focused
  const root = document.createElement('div');
  root.className = 'attention-view';
  const controls = document.createElement('div');
  controls.className = 'controls';
  root.appendChild(controls);
  const undo = ['layer', 'head'].map(
    name => slider(controls, model, name, model.get(name + 's'), draw));
  const height = TOP + ROW * T + 8;
  const svg = make(root, 'svg', {width: WIDE, height, viewBox: `0 0 ${WIDE} ${height}`,
    role: 'group', 'aria-label': 'attention between tokens', 'font-family': PROSE});
  const small = {y: 16, 'font-size': 12, fill: '#555'};
  make(svg, 'text', {...small, x: LEFT - 8, 'text-anchor': 'end'}, 'this token looks …');
  make(svg, 'text', {...small, x: RIGHT + 8}, '… at these');
  const lines = make(svg, 'g',
    {stroke: '#0072B2', 'stroke-linecap': 'round', 'aria-hidden': 'true'});
  const columns = {left: column('left'), right: column('right')};
  const said = document.createElement('div');
  said.className = 'said';
  said.setAttribute('aria-live', 'polite');
  const hint = document.createElement('div');
  hint.className = 'hint';
  hint.textContent = 'Point at a token, or Tab to a column and use ↑ ↓, to see its own weights; '
    + 'Esc shows all.';
  root.append(said, hint);
  el.appendChild(root);
  draw();

  function column(side) {
    const left = side === 'left', x = left ? 20 : RIGHT, width = LEFT - 20;
    return tokens.map((token, i) => {
      const group = make(svg, 'g', {class: 'token', tabindex: i ? -1 : 0, role: 'button',
        'aria-label': `${left ? 'from' : 'to'} token ${i + 1}, ${token}`});
      const y = TOP + ROW * i + 1;
      make(group, 'rect', {class: 'ring', x, y, width, height: ROW - 2, rx: 3});
      const bar = make(group, 'rect', {x: left ? LEFT : RIGHT, y: TOP + ROW * i + 2, width: 0,
        height: ROW - 4, fill: '#cfe4f2'});
      make(group, 'text', {x: left ? LEFT - 8 : RIGHT + 8, y: middle(i) + 4, 'font-size': 13,
        fill: '#1a1a1a', 'text-anchor': left ? 'end' : 'start', 'font-family': CODE}, token);
      const number = make(group, 'text', {x: left ? 24 : WIDE - 24, y: middle(i) + 4,
        'font-size': 11, fill: '#444', 'text-anchor': left ? 'start' : 'end'}, '');
      const choose = () => { chosen = {side, index: i}; draw(); };
      group.addEventListener('mouseenter', choose);
      group.addEventListener('mouseleave', () => { chosen = null; draw(); });
      group.addEventListener('focus', choose);
      group.addEventListener('blur', () => { chosen = null; draw(); });
      group.addEventListener('keydown', event => move(event, side, i));
      return {group, bar, number};
    });
  }
  function move(event, side, i) {
    const to = {ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: T - 1}[event.key];
    const other = {ArrowLeft: 'left', ArrowRight: 'right'}[event.key];
    if (event.key === 'Escape') { columns[side][i].group.blur(); return; }
    const target = other ? columns[other][i] : columns[side][to];
    event.stopPropagation();
    if (!target) return;
    event.preventDefault();
    columns[side][i].group.setAttribute('tabindex', -1);
    target.group.setAttribute('tabindex', 0);
    target.group.focus();
  }
  function draw() {
    lines.replaceChildren();
    for (let i = 0; i < T; i++) for (let j = 0; j < T; j++) {
      const w = weight(i, j);
      const mine = !chosen || (chosen.side === 'left' ? i : j) === chosen.index;
      if (w < 0.01 || !mine) continue;
      make(lines, 'line', {x1: LEFT, y1: middle(i), x2: RIGHT, y2: middle(j), opacity: w,
        'stroke-width': 0.5 + 4 * w});
    }
    for (const side of ['left', 'right']) columns[side].forEach((cell, k) => {
      const answers = chosen && chosen.side !== side;
      const w = !answers ? 0 : side === 'right' ? weight(chosen.index, k) : weight(k, chosen.index);
      const wide = (LEFT - 20) * w;
      cell.bar.setAttribute('width', wide);
      if (side === 'left') cell.bar.setAttribute('x', LEFT - wide);
      cell.number.textContent = answers && w >= 0.005 ? w.toFixed(2) : '';
      cell.group.classList.toggle('chosen', !!chosen && chosen.side === side && chosen.index === k);
    });
    said.textContent = sentence();
  }
  function sentence() {
    if (!chosen) return 'Every line is one weight: the wider and darker, the larger.';
    const left = chosen.side === 'left', k = chosen.index;
    const all = tokens.map((token, m) => [left ? weight(k, m) : weight(m, k), token]);
    const best = all.sort((a, b) => b[0] - a[0]).slice(0, 3)
      .map(([w, token]) => `${token} ${w.toFixed(2)}`);
    return `“${tokens[k]}” ${left ? 'looks at' : 'is looked at by'} ${best.join(', ')} …`;
  }
  return () => undo.forEach(off => off());
}
export default { render };
"""
