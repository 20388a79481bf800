// Two models beside each other: the likeliest pieces for every [MASK] of the reader's sentence, as
// each of them says. Both have the same pieces, so a piece that is pressed is hidden from both.
'use strict';
window.coursePlaygrounds.compare = (box, {node, field, touched, openAll, latest, gaps, bars, guesses, pieces, sentence, percent}) => {
  const TOP = 5, MOST = 2, MASK = '[MASK]';
  const names = box.dataset.models.split(' '), input = field(box, 'Your sentence');
  const insert = node(box, 'button', {type: 'button'}, `Insert ${MASK}`);
  const line = node(box, 'div'), results = node(box, 'div');
  const say = sentence(box);
  node(box, 'p', {className: 'play-note'}, box.dataset.note);
  say(`Click into the sentence, or tab to it: ${names.join(' and ')} are read then, and guess the hidden word.`);
  let ask = null;

  // What both are asked is one request: {ask} as latest expects it of a model.
  const both = models => ({ask: async request => Promise.all(models.map(model => model.ask(request)))});
  function show(answers) {
    const [first] = answers;
    pieces(line, first, chosen);
    results.replaceChildren();
    first.masked.forEach(({at}, n) => {
      const beside = node(results, 'div', {className: 'play-results'}), written = chosen.hidden.includes(at) ? first.written[at] : null;
      const where = written ? `instead of ${written}` : `${MASK} at position ${at}`;
      answers.forEach(({masked}, m) => bars(beside, `${names[m]}: ${where}`, guesses(masked[n].best, written)));
    });
    say(inWords(answers));
  }
  function inWords(answers) {
    const [{ids, cut, masked}] = answers;
    const parts = masked.map(({at}, n) => {
      const lists = answers.map(answer => answer.masked[n].best);
      const said = lists.map(([{piece, probability}], m) => `${names[m]} says ${piece} (${percent(probability)})`);
      const shared = lists[0].filter(({piece}) => lists[1].some(other => other.piece === piece)).length;
      return `Position ${at}: ${said.join(', ')}. They share ${shared} of ${TOP} pieces.`;
    });
    if (!masked.length) parts.push(`Nothing is hidden. Write ${MASK}, or press a word piece to hide it.`);
    if (ids.filter((_, t) => answers[0].pieces[t] === MASK).length > MOST) parts.push(`At most ${MOST} hidden words are filled.`);
    if (cut) parts.push(`The models read ${ids.length} tokens; the last ${cut} of your text are left out.`);
    return parts.join(' ');
  }
  const run = () => ask?.({text: input.value, hide: chosen.hidden, top: TOP, most: MOST});
  const chosen = gaps(input, insert, () => run());
  touched(box, async () => {
    const models = await openAll(names, say);
    if (!models) return;
    ask = latest(both(models), show, error => say(error.message));
    run();
  });
};
