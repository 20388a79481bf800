// Masked words as you type: the likeliest pieces for every [MASK], the word pieces, and the attention
// of any layer and head over the reader's own sentence. A piece that is pressed is hidden.
'use strict';
window.coursePlaygrounds.fill = (box, {node, field, touched, open, latest, gaps, bars, guesses, pieces, sentence, attention, percent}) => {
  const TOP = 5, MOST = 4, MASK = '[MASK]';
  const name = box.dataset.models, input = field(box, 'Your sentence');
  const insert = node(box, 'button', {type: 'button', className: 'play-insert'}, `Insert ${MASK}`);
  const line = node(box, 'div'), results = node(box, 'div', {className: 'play-results'});
  const say = sentence(box), looking = node(box, 'div');
  node(box, 'p', {className: 'play-note'}, box.dataset.note);
  say(`Click into the sentence, or tab to it: ${name} is read then, and guesses the hidden word.`);
  let ask = null, draw = null;

  function show(answer) {
    pieces(line, answer, chosen);
    results.replaceChildren();
    for (const {at, best} of answer.masked) {
      const written = chosen.hidden.includes(at) ? answer.written[at] : null;
      bars(results, written ? `instead of ${written}` : `${MASK} at position ${at}`, guesses(best, written));
    }
    draw(answer.pieces, answer.attentions, answer.layers, answer.heads);
    say(inWords(answer));
  }
  function inWords({masked, cut, ids}) {
    const many = ids.filter((_, t) => masked.some(({at}) => at === t)).length;
    const parts = masked.map(({at, best}) =>
      `Position ${at}: ${best.map(({piece, probability}) => `${piece} ${percent(probability)}`).join(', ')}.`);
    if (!many) parts.push(`Nothing is hidden. Write ${MASK}, or press a word piece to hide it.`);
    if (many === MOST) parts.push(`At most ${MOST} hidden words are filled.`);
    if (cut) parts.push(`The model reads ${ids.length} tokens; the last ${cut} of your text are left out.`);
    return parts.join(' ');
  }
  const run = () => ask?.({text: input.value, hide: chosen.hidden, top: TOP, most: MOST, attentions: true});
  const chosen = gaps(input, insert, () => run());
  touched(box, async () => {
    const model = await open(name, say);
    if (!model) return;
    draw = attention(looking);
    ask = latest(model, show, error => say(error.message));
    run();
  });
};
