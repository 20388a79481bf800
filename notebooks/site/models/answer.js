// An exercise's answer for one input, computed by hand: right, one of the mistakes that the exercise
// knows, or neither. Whole numbers must be exact, of others three digits are enough.
'use strict';
window.coursePlaygrounds.answer = (box, {node, sentence}) => {
  const {names, right, mistakes, close} = JSON.parse(box.dataset.what);
  box.replaceChildren();
  const form = node(box, 'form', {className: 'play-guesses'});
  const inputs = names.map(name => node(node(form, 'label', {}, name), 'input', {type: 'text', autocomplete: 'off'}));
  node(form, 'button', {type: 'submit'}, 'Check');
  const say = sentence(box), whole = right.every(Number.isInteger);
  say(`Write ${names.length > 1 ? 'the numbers' : 'the number'}${whole ? '' : '; three digits are enough'}.`);
  const grouped = /^[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/;  // 1,234.5; any other comma is a decimal one
  function read(typed) {
    const text = typed.replace(/[\s_]/g, '').replace('−', '-');
    return /\d/.test(text) ? Number(grouped.test(text) ? text.replace(/,/g, '') : text.replace(',', '.')) : NaN;
  }
  const same = (mine, these) => these.every((value, n) => (
    Number.isInteger(value) ? mine[n] === value : Math.abs(mine[n] - value) <= close * Math.abs(value)));
  function judge(mine) {
    if (mine.some(Number.isNaN)) return 'Write a number in every field, such as 1234, 0.25 or 2.5e-4.';
    if (same(mine, right)) return 'Right. The notebook asks your function for other inputs, too.';
    const known = mistakes.find(([wrong]) => same(mine, wrong));
    if (known) return known[1];
    const off = names.filter((_, n) => !same([mine[n]], [right[n]]));
    return `Not yet${names.length > 1 ? `: ${off.join(' and ')}` : ''}. The exercise has no name for this mistake; the hints above may help.`;
  }
  form.addEventListener('submit', event => {
    event.preventDefault();
    say(judge(inputs.map(input => read(input.value))));
  });
};
