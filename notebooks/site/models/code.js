// Which words of the reader's sentence does a tagger take for code? A word is a run of letters, digits
// and underscores, or another sign; its first piece carries its tag, as on page 03.
'use strict';
window.coursePlaygrounds.code = (box, {node, field, touched, open, latest, sentence, percent}) => {
  const WORD = /[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]/gu, LENGTH = 40;  // tokens, as in its training
  const TAGS = ['O', 'B-CODE', 'I-CODE'], name = box.dataset.models, input = field(box, 'Your sentence');
  const tiles = node(box, 'div', {className: 'play-tiles', role: 'group'}), say = sentence(box);
  tiles.setAttribute('aria-label', 'P(code) of every word');
  node(box, 'p', {className: 'play-note'}, box.dataset.note);
  say('Click into the sentence, or tab to it: the tagger is read then, and marks what it takes for code.');
  let ask = null;

  // [CLS] words [SEP], without the words that no longer fit whole; and where each word begins.
  function pack(text, pieces) {
    const ids = [pieces.ids.get('[CLS]')], words = [], all = [...text.matchAll(WORD)];
    for (const {0: word, index} of all) {
      const own = pieces.encode(word);
      if (ids.length + own.length >= LENGTH) break;
      words.push({word, index, first: ids.length, read: own.length > 0});
      ids.push(...own);
    }
    return {ids: [...ids, pieces.ids.get('[SEP]')], words, cut: all.length - words.length};
  }
  const reads = (model, pieces) => ({ask: async text => {
    const {ids, words, cut} = pack(text, pieces), {labels} = await model.ask({ids, labels: true});
    for (const one of words) {
      const logits = one.read ? Array.from(labels[one.first]) : [0, -Infinity, -Infinity], most = Math.max(...logits);
      const shares = logits.map(z => Math.exp(z - most)), sum = shares.reduce((a, b) => a + b);
      Object.assign(one, {tag: TAGS[logits.indexOf(most)], p: 1 - shares[0] / sum});
    }
    return {words, cut};
  }});
  function show({words, cut}, text) {
    tiles.replaceChildren();
    for (const {word, tag, p} of words) {
      const code = tag !== 'O', tile = node(tiles, 'span', {className: `play-tile${code ? ' play-suspect' : ''}`});
      node(tile, 'span', {className: 'play-word'}, code ? `\`${word}\`` : word);
      node(tile, 'span', {}, percent(p));
    }
    say(inWords(words, cut, text));
  }
  // Words that go on with the code before them are one stretch of the text.
  function inWords(words, cut, text) {
    const spans = [];
    words.forEach(({word, index, tag}, n) => {
      if (tag === 'O') return;
      if (tag === 'B-CODE' || !n || words[n - 1].tag === 'O') spans.push({from: index});
      spans[spans.length - 1].to = index + word.length;
    });
    const parts = [spans.length ? `Taken for code: ${spans.map(({from, to}) => `\`${text.slice(from, to)}\``).join(', ')}.`
      : words.length ? 'Taken for code: no word.' : 'There is no word to read.'];
    if (cut) parts.push(`The tagger reads ${LENGTH} tokens; the last ${cut} words of your sentence are left out.`);
    return parts.join(' ');
  }
  input.addEventListener('input', () => ask?.(input.value || ' '));
  touched(box, async () => {
    const model = await open(name, say);
    if (!model) return;
    ask = latest(reads(model, window.courseWordPiece(model.vocab, model.tokenizer)), show, error => say(error.message));
    ask(input.value || ' ');
  });
};
