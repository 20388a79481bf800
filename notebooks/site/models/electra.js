// ELECTRA in the micro-world: the discriminator says of every word of the reader's story whether it
// takes it for replaced; where a word is hidden, the generator proposes others, and the discriminator
// reads the likeliest. A proposal that is pressed is written into the story.
'use strict';
window.coursePlaygrounds.electra = (box, {node, field, touched, openAll, latest, gaps, sentence, percent}) => {
  const TOP = 5, MOST = 3, MASK = '[MASK]', WORD = /\[MASK\]|[!-/:-@[-`{-~]|\p{P}|(?:(?![!-/:-@[-`{-~]|\p{P})\S)+/gu;
  const names = box.dataset.models.split(' '), input = field(box, 'Your story, in words of the micro-world', 3);
  const insert = node(box, 'button', {type: 'button'}, `Insert ${MASK}`);
  const tiles = node(box, 'div', {className: 'play-tiles', role: 'group'});
  tiles.setAttribute('aria-label', 'P(replaced) of every word');
  const proposals = node(box, 'div', {className: 'play-results'}), say = sentence(box);
  node(box, 'p', {className: 'play-note'}, box.dataset.note);
  say('Click into the story, or tab to it: ELECTRA’s two networks are read then.');
  let ask = null;

  // The generator fills what is hidden; the discriminator reads the result.
  const both = ([generator, discriminator]) => ({ask: async ({text, hide}) => {
    const filled = await generator.ask({text, hide, top: TOP, most: MOST});
    const ids = [...filled.ids];
    for (const {at, best} of filled.masked) ids[at] = generator.vocab.indexOf(best[0].piece);
    return {...filled, ...await discriminator.ask({ids, replaced: true}), masked: filled.masked, cut: filled.cut};
  }});
  const wordsOf = text => [...text.matchAll(WORD)];
  function show(answer, {text, vocab}) {
    const from = [...tiles.children].indexOf(document.activeElement), words = wordsOf(text);
    const filled = new Set(answer.masked.map(({at}) => at));
    tiles.replaceChildren();
    for (let t = 1; t < answer.pieces.length - 1; t++) {
      const p = answer.replaced[t], mark = p > 0.5, fixed = filled.has(t) && !chosen.hidden.includes(t);
      const tile = node(tiles, fixed ? 'span' : 'button', {className: `play-tile${mark ? ' play-suspect' : ''}`});
      node(tile, 'span', {className: 'play-word'}, filled.has(t) ? `(${answer.pieces[t]})` : answer.pieces[t]);
      node(tile, 'span', {}, `${mark ? '✗ ' : ''}${percent(p)}`);
      if (fixed) continue;
      tile.type = 'button';
      tile.setAttribute('aria-pressed', chosen.hidden.includes(t));
      tile.addEventListener('click', () => chosen.press(t, !chosen.hidden.includes(t)));
    }
    if (from >= 0) tiles.children[from]?.focus();
    propose(answer, words);
    say(inWords(answer, words, new Set(vocab)));
  }
  function propose({masked, written, pieces}, words) {
    proposals.replaceChildren();
    for (const {at, best} of masked) {
      const group = node(proposals, 'div', {role: 'group', className: 'play-proposals'});
      const place = written[at] === MASK ? `${MASK}, word ${at}` : `${written[at]}, word ${at}`;
      group.setAttribute('aria-label', `the generator’s words for ${place}`);
      node(group, 'p', {}, `The generator’s words for ${place}; press one to write it:`);
      for (const {piece, probability} of best) {
        const button = node(group, 'button', {type: 'button'}, `${piece} ${percent(probability)}`);
        button.disabled = words.length < pieces.length - 2;
        button.addEventListener('click', () => write(words[at - 1], piece));
      }
    }
  }
  // One word of the story becomes another.
  function write(word, piece) {
    input.setRangeText(piece, word.index, word.index + word[0].length, 'end');
    input.focus();
    input.dispatchEvent(new Event('input'));
  }
  function inWords({pieces, replaced, masked, cut}, words, known) {
    const count = pieces.length - 2, suspects = [];
    for (let t = 1; t <= count; t++) if (replaced[t] > 0.5) suspects.push(`${pieces[t]} (word ${t}, ${percent(replaced[t])})`);
    const strange = new Set(words.map(([word]) => word).filter(word => word !== MASK && !known.has(word.toLowerCase())));
    const parts = [`The discriminator takes ${suspects.length} of ${count} words for replaced${suspects.length ? ': ' : ''}${suspects.join(', ')}.`];
    for (const {at, best: [{piece, probability}]} of masked) {
      parts.push(`For word ${at} the generator’s first is ${piece} (${percent(probability)}); the discriminator reads it with P(replaced) ${percent(replaced[at])}.`);
    }
    if (strange.size) parts.push(`The micro-world does not know: ${[...strange].join(', ')}. Both networks read [UNK] there.`);
    if (cut) parts.push(`The networks read ${pieces.length} tokens; the last ${cut} of your story are left out.`);
    return parts.join(' ');
  }
  const run = () => ask?.(input.value);
  const chosen = gaps(input, insert, () => run(), MOST);
  touched(box, async () => {
    const models = await openAll(names, say);
    if (!models) return;
    const send = latest(both(models), show, error => say(error.message));
    ask = text => send({text, hide: chosen.hidden, vocab: models[0].vocab});
    run();
  });
};
