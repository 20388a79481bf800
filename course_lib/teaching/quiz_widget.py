"""A quiz to click through, and the same as text that unfolds where no kernel runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

from .page import Html, Live, card, inline
from .quizzes import QuizItem


def quiz_view(items: Sequence[QuizItem]) -> Live:
    """The items as a widget. Raises ValueError for none."""
    if not items:
        raise ValueError("quiz_view was given no items; expected at least one.")
    widget = _widget_class()(items=[_as_html(item) for item in items])
    return Live(widget, quiz_text(items), {"view": widget})


def quiz_text(items: Sequence[QuizItem]) -> Html:
    """The questions, each with its choices, and an answer that unfolds."""
    html = card("".join(_unfolding(_as_html(item)) for item in items), "quiz-text")
    return Html(html, "\n\n".join(_in_words(item) for item in items))


def _as_html(item: QuizItem) -> dict[str, Any]:
    """An item as HTML pieces that the widget and the text share."""
    choices = [
        {"text": inline(choice.text), "correct": choice.correct, "why": inline(choice.why)}
        for choice in item.choices
    ]
    return {"number": str(item.number), "question": inline(item.question), "choices": choices}


def _unfolding(item: dict[str, Any]) -> str:
    choices = "".join(f"<li>{choice['text']}</li>" for choice in item["choices"])
    answers = "".join(
        f"<li>{'<b>✓ right.</b>' if choice['correct'] else '✗ wrong.'} {choice['why']}</li>"
        for choice in item["choices"]
    )
    letters = 'style="list-style-type:lower-alpha;margin:2px 0 4px"'
    return (
        f'<div style="margin:0 0 14px"><b>{escape(item["number"])}.</b> {item["question"]}'
        f"<ol {letters}>{choices}</ol><details><summary>Answer</summary>"
        f"<ol {letters}>{answers}</ol></details></div>"
    )


def _in_words(item: QuizItem) -> str:
    lines = [f"{item.number}. {item.question}"]
    for letter, choice in zip("abcdefgh", item.choices, strict=False):
        lines.append(f"   {letter}) {choice.text}")
    return "\n".join(lines)


@lru_cache(maxsize=1)
def _widget_class() -> Any:
    import anywidget
    import traitlets

    class QuizView(anywidget.AnyWidget):
        _esm = _ESM
        _css = _CSS
        items: Any = traitlets.List().tag(sync=True)
        score = traitlets.Int(0).tag(sync=True)  # right at the first attempt
        answered = traitlets.Int(0).tag(sync=True)
        right: Any = traitlets.List().tag(sync=True)  # places of those answered right by now

    return QuizView


_CSS = """
.quiz-view{color-scheme:light;background:#fff;color:#1a1a1a;font:14px/1.45 system-ui,sans-serif;
  padding:10px 14px;max-width:760px;box-sizing:border-box}
.quiz-view fieldset{border:1px solid #d9d9d9;border-radius:6px;margin:0 0 12px;
  padding:8px 14px 10px;min-width:0}
.quiz-view legend{font-weight:600;padding:0 6px;color:#1a1a1a;font-size:14px}
.quiz-view label{display:flex;gap:8px;align-items:baseline;padding:3px 4px;
  border-radius:4px;cursor:pointer}
.quiz-view label:hover{background:#f3f7fa}
.quiz-view input[type=radio]{accent-color:#0072B2;flex:none}
.quiz-view :focus-visible{outline:3px solid #E69F00;outline-offset:2px}
.quiz-view button{margin-top:6px;padding:4px 14px;border:1px solid #00558a;border-radius:4px;
  background:#00558a;color:#fff;font:inherit;cursor:pointer}
.quiz-view button:disabled{background:#eee;color:#666;border-color:#bbb;cursor:default}
.quiz-view .why{margin-top:6px}
.quiz-view .why div{border-left:4px solid;padding:3px 10px}
.quiz-view .right{border-color:#009E73!important}
.quiz-view .wrong{border-color:#D55E00!important}
.quiz-view .score{font-weight:600}
"""

_ESM = """
function add(parent, tag, props = {}, html = '') {
  const node = Object.assign(document.createElement(tag), props);
  if (html) node.innerHTML = html;
  parent.appendChild(node);
  return node;
}
function render({model, el}) {
  const items = model.get('items');
  const root = add(el, 'div', {className: 'quiz-view'});
  const group = 'quiz' + Math.random().toString(36).slice(2);
  const first = new Map();                             // item -> was the first attempt right?
  const solved = new Set();                            // items answered right, at whichever attempt
  items.forEach((item, n) => question(item, n));
  const score = add(root, 'div', {className: 'score'});
  score.setAttribute('aria-live', 'polite');
  tell();

  function tell() {
    const right = [...first.values()].filter(Boolean).length;
    score.textContent =
      `${right} right at the first attempt, ${first.size} of ${items.length} answered`;
    model.set('score', right);
    model.set('answered', first.size);
    model.set('right', [...solved]);
    model.save_changes();
  }
  function question(item, n) {
    const box = add(root, 'fieldset');
    add(box, 'legend', {}, `${item.number}.`);
    add(box, 'div', {}, item.question);
    const inputs = item.choices.map(choice => {
      const label = add(box, 'label');
      const input = add(label, 'input', {type: 'radio', name: group + n});
      add(label, 'span', {}, choice.text);
      input.addEventListener('change', () => { button.disabled = false; });
      return input;
    });
    const button = add(box, 'button', {type: 'button', disabled: true, textContent: 'Check'});
    const why = add(box, 'div', {className: 'why'});
    why.setAttribute('aria-live', 'polite');
    box.addEventListener('keydown', event => event.stopPropagation());  // no notebook shortcuts
    button.addEventListener('click', () => {
      const choice = item.choices[inputs.findIndex(input => input.checked)];
      if (!choice) return;
      if (!first.has(n)) first.set(n, choice.correct);
      if (choice.correct) solved.add(n);
      const sign = choice.correct ? '✓ Right.' : '✗ Not this one.';
      const kind = choice.correct ? 'right' : 'wrong';
      why.innerHTML = `<div class="${kind}"><b>${sign}</b> ${choice.why}</div>`;
      tell();
    });
  }
}
export default { render };
"""
