// What all playgrounds share. A playground is a function in a file of its own, kept by its name:
//
//   coursePlaygrounds.fill = (box, tools) => …      models/fill.js, for <div data-play="fill">
//
// box is where it draws. tools:
//   node(parent, tag, properties, text)    a new element
//   field(box, label, rows)      an empty box with a field for the reader's text
//   touched(box, start)      calls start once, at the first click, key or focus inside the box
//   script(name)             a further script of this folder
//   open(name, tell)         the model; meanwhile and where it fails, tell(sentence)
//   latest(model, show, fail)    see models.js: never more than one request waits
//   bars(parent, title, items)   items [{label, value, mark}]: bars of 0 to 1 with their numbers
//   openAll(names, tell)     the models in that order; null where one fails
//   pieces(line, answer, chosen)     an answer's word pieces, as buttons that hide them; see gaps
//   guesses(best, written)   what a model finds likeliest, as items of bars
//   gaps(input, insert, run, most)   {hidden, press}: the last `most` pieces that were pressed, until
//                            something is typed; the button inserts [MASK]; run after each change
//   sentence(parent)         a function that says a sentence, aloud when the typing has paused
//   attention(parent)        a function (pieces, weights, layers, heads) that draws AttentionView
//   percent(p)               as the notebooks print it
(() => {
  'use strict';
  const here = document.currentScript.src, core = {};
  const PAUSE = 700;  // milliseconds without a key, after which a result is read aloud
  window.coursePlaygrounds = {};

  function script(name) {
    return core[name] ||= new Promise((done, failed) => {
      const src = new URL(name, here).href;
      document.head.append(Object.assign(document.createElement('script'), {src, onload: done, onerror: failed}));
    });
  }
  async function open(name, tell) {
    tell(`The model ${name} is being read …`);
    try {
      for (const part of ['product', 'encoder', 'wordpiece', 'models']) await script(`${part}.js`);
      const model = await window.courseModels.open(name);
      tell('');
      return model;
    } catch (error) {
      tell(error instanceof Error ? error.message : 'A script of this site is missing. Copy the site anew.');
      return null;
    }
  }
  async function openAll(names, tell) {
    const models = [];
    for (const name of names) models.push(await open(name, tell));
    return models.includes(null) ? null : models;
  }
  function touched(box, start) {
    const events = ['pointerdown', 'focusin', 'keydown'];
    const first = () => {
      events.forEach(event => box.removeEventListener(event, first));
      start();
    };
    events.forEach(event => box.addEventListener(event, first));
  }
  function node(parent, tag, properties = {}, text = '') {
    const made = Object.assign(document.createElement(tag), properties);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  }
  function field(box, label, rows = 2) {
    const id = `play-${Math.random().toString(36).slice(2)}`;
    box.replaceChildren();
    node(box, 'label', {htmlFor: id}, label);
    return node(box, 'textarea', {id, rows, spellcheck: false, value: box.dataset.text});
  }
  const percent = p => `${(100 * p).toFixed(1)}%`;

  function bars(parent, title, items) {
    const table = node(parent, 'table', {className: 'play-bars'});
    node(table, 'caption', {}, title);
    for (const {label, value, mark} of items) {
      const row = node(node(table, 'tbody'), 'tr', {className: mark ? 'play-mark' : ''});
      node(row, 'th', {scope: 'row'}, label);
      const bar = node(node(row, 'td', {className: 'play-bar'}), 'div');
      bar.style.width = `${100 * value}%`;
      node(row, 'td', {className: 'play-number'}, percent(value) + (mark ? ` ${mark}` : ''));
    }
    return table;
  }
  const guesses = (best, written) => best.map(({piece, probability}) => ({
    label: piece, value: probability, mark: piece === written ? '← as written' : '',
  }));
  function pieces(line, answer, chosen) {
    const from = [...line.querySelectorAll('button')].indexOf(document.activeElement);
    line.replaceChildren();
    const group = node(line, 'div', {className: 'play-pieces', role: 'group'}), last = answer.pieces.length - 1;
    group.setAttribute('aria-label', 'word pieces');
    answer.pieces.forEach((piece, t) => {
      const down = chosen.hidden.includes(t);
      if (t === 0 || t === last || (piece === '[MASK]' && !down)) return node(group, 'span', {className: 'play-piece'}, piece);
      const button = node(group, 'button', {type: 'button', className: 'play-piece'}, piece);
      button.setAttribute('aria-pressed', down);
      button.addEventListener('click', () => chosen.press(t, !down));
      return button;
    });
    if (from >= 0) line.querySelectorAll('button')[from]?.focus();
  }
  function gaps(input, insert, run, most = Infinity) {
    const chosen = {hidden: [], press(t, down) {
      const others = chosen.hidden.filter(one => one !== t);
      chosen.hidden = (down ? [...others, t] : others).slice(-most);
      run();
    }};
    input.addEventListener('input', () => {
      chosen.hidden = [];
      run();
    });
    insert.addEventListener('click', () => {
      input.setRangeText('[MASK]', input.selectionStart, input.selectionEnd, 'end');
      input.focus();
      input.dispatchEvent(new Event('input'));
    });
    return chosen;
  }
  function sentence(parent) {
    const visible = node(parent, 'p', {className: 'play-sentence'});
    const spoken = node(parent, 'p', {className: 'play-spoken'});
    spoken.setAttribute('aria-live', 'polite');
    visible.setAttribute('aria-hidden', 'true');  // the same words; a reader's screen hears them once
    let timer;
    return text => {
      visible.textContent = text;
      clearTimeout(timer);
      timer = setTimeout(() => { spoken.textContent = text; }, PAUSE);
    };
  }
  function attention(parent) {
    const box = node(parent, 'div', {className: 'play-attention'}), state = {layer: 1, head: 1};  // which stay as the reader set them
    return (tokens, weights, layers, heads) => {
      Object.assign(state, {tokens, layers, heads, weights: Array.from(weights, w => Math.round(1000 * w))});
      const from = box.firstChild ? box.scrollLeft : null;
      box.replaceChildren();
      window.courseModules.AttentionView.render({model: window.courseWidgetModel(state), el: box});
      box.scrollLeft = from ?? (box.scrollWidth - box.clientWidth) / 2;  // on a phone, its middle first
    };
  }
  const latest = (...all) => window.courseModels.latest(...all);
  window.courseTools = {node, field, touched, script, open, openAll, latest, bars, guesses, pieces, gaps, sentence, attention, percent};
})();
