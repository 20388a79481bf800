// Guesses before a page is read on: kept in this browser, and shown beside the page's answers. Boxes
// of one page know of each other by an event.
'use strict';
window.coursePlaygrounds.guess = (box, {node, sentence}) => {
  const key = `course-guesses-${box.dataset.page}`, CHANGED = 'course-guesses';
  const memory = window.courseGuesses ||= {};  // where a browser keeps nothing
  const read = () => {
    try {
      return JSON.parse(localStorage.getItem(key) || '{}');
    } catch { return memory[key] || {}; }
  };
  function write(guesses) {
    memory[key] = guesses;
    try {
      localStorage.setItem(key, JSON.stringify(guesses));
      return 'They are kept in this browser.';
    } catch { return 'This browser keeps nothing for pages opened as files: they last until you leave the page.'; }
  }
  const count = (keys, guesses) => `${keys.filter(one => guesses[one]).length} of ${keys.length} guesses written.`;
  box.replaceChildren();

  function fields(keys) {
    const list = node(box, 'div', {className: 'play-guesses'});
    const inputs = keys.map(one => {
      const label = node(list, 'label', {}, one), input = node(label, 'input', {type: 'text', autocomplete: 'off'});
      input.value = read()[one] || '';
      return input;
    });
    const say = sentence(box);
    say(`${count(keys, read())} Write yours; further down they stand beside the answers.`);
    list.addEventListener('input', () => {
      const guesses = Object.fromEntries(keys.map((one, n) => [one, inputs[n].value.trim()]));
      say(`${count(keys, guesses)} ${write(guesses)}`);
      window.dispatchEvent(new Event(CHANGED));
    });
  }
  function table(answers) {
    const keys = Object.keys(answers), scroll = node(box, 'div', {className: 'play-scroll', tabIndex: 0, role: 'group'});
    scroll.setAttribute('aria-label', 'your guesses beside the answers');
    const all = node(scroll, 'table', {className: 'play-answers'}), head = node(node(all, 'thead'), 'tr'), body = node(all, 'tbody');
    for (const text of ['asked', 'your guess', 'answer']) node(head, 'th', {scope: 'col'}, text);
    const cells = keys.map(one => {
      const row = node(body, 'tr');
      node(row, 'th', {scope: 'row'}, one);
      const mine = node(row, 'td');
      node(row, 'td', {}, answers[one]);
      return mine;
    });
    const say = sentence(box);
    function show() {
      const guesses = read();
      cells.forEach((cell, n) => { cell.textContent = guesses[keys[n]] || '–'; });
      say(`${count(keys, guesses)} Yours stand beside the answers${keys.some(one => guesses[one]) ? '' : ' once you write them, under Predict first'}.`);
    }
    show();
    for (const event of [CHANGED, 'storage']) window.addEventListener(event, show);
  }
  if (box.dataset.answers) table(JSON.parse(box.dataset.answers));
  else fields(JSON.parse(box.dataset.keys));
};
