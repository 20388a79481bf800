// DeBERTa's three scores of a head for the reader's sentence, and for the same sentence when a word has
// moved: maps of all pairs, and in numbers the row of the word that moves.
'use strict';
window.coursePlaygrounds.scores = (box, {node, field, touched, open, latest, sentence, percent}) => {
  const MOST = 24, PIXELS = 14;  // tokens, as page 08 shows at most; of a score in a map
  const TERMS = ['content-to-content', 'content-to-position', 'position-to-content'], MAPS = [...TERMS, 'their sum'];
  const name = box.dataset.models, colours = JSON.parse(box.dataset.more);
  const input = field(box, 'Your sentence, in words of the micro-world');
  const settings = node(box, 'div', {className: 'play-buttons'});
  const dials = ['layer', 'head'].map(what => {
    const dial = node(node(settings, 'label', {}, `${what} `), 'select');
    dial.addEventListener('input', () => { if (last) show(last); });
    return dial;
  });
  const line = node(box, 'div', {className: 'play-pieces', role: 'group'}), moves = node(box, 'div', {className: 'play-buttons'});
  line.setAttribute('aria-label', 'the words; the one that is pressed moves');
  for (const [text, by] of [['← Move it left', -1], ['Move it right →', 1], ['Back to your sentence', 0]]) {
    node(moves, 'button', {type: 'button'}, text).addEventListener('click', () => move(by));
  }
  const pictures = node(box, 'div'), say = sentence(box), numbers = node(box, 'div', {className: 'play-scroll', tabIndex: 0, role: 'group'});
  numbers.setAttribute('aria-label', 'the scores of the word that moves, in numbers');
  node(box, 'p', {className: 'play-note'}, box.dataset.note);
  say('Click into the sentence, or tab to it: the model is read then. Then press a word and move it.');
  let ask = null, words = null, last = null, text = null, order = [], picked = 1;

  // order: where each token of the sentence as written stands now; [CLS] and [SEP] stay at the ends.
  function move(by) {
    if (!last) return;
    const from = order.indexOf(picked), to = from + by;
    if (!by) order.sort((a, b) => a - b);
    else if (to > 0 && to < order.length - 1) [order[from], order[to]] = [order[to], order[from]];
    run();
  }
  function choose(t) {
    picked = t;
    run();
  }
  function run() {
    if (!ask) return;
    const {ids: map, encode} = words, all = encode(input.value), kept = all.slice(0, MOST - 2);
    const ids = [map.get('[CLS]'), ...kept, map.get('[SEP]')];
    if (input.value !== text) order = ids.map((_, t) => t);
    text = input.value;
    picked = Math.max(0, Math.min(picked, ids.length - 2));
    ask({ids, order: [...order], picked, cut: all.length - kept.length});
  }
  // A sentence's maps: of a layer and head, the three scores of tokens by their places in the sentence as written.
  function reads(answer, order) {
    const {parts, attentions, heads: A} = answer, T = order.length, [l, a] = dials.map(dial => Math.max(0, dial.selectedIndex));
    const row = (all, n) => [...all.subarray(n * T, (n + 1) * T)];
    const terms = TERMS.map((_, n) => order.map((_, t) => row(parts, ((l * A + a) * T + t) * 3 + n)));
    return {
      maps: [...terms, terms[0].map((scores, t) => scores.map((v, s) => v + terms[1][t][s] + terms[2][t][s]))],
      weights: order.map((_, t) => row(attentions, (l * A + a) * T + t)),
    };
  }
  const both = model => ({ask: async request => {
    const one = order => model.ask({ids: order.map(t => request.ids[t]), parts: true, attentions: true});
    const written = request.ids.map((_, t) => t), moved = request.order.some((t, at) => t !== at);
    const first = await one(written);
    return {...request, written, moved, first, second: moved ? await one(request.order) : first};
  }});
  function show(answer) {
    last = answer;
    dials.forEach((dial, n) => {
      const count = [answer.first.layers, answer.first.heads][n];
      while (dial.length < count) node(dial, 'option', {}, String(dial.length + 1));
    });
    const {first, second, written, order, moved} = answer;
    const before = reads(first, written), after = reads(second, order);
    press(answer);
    pictures.replaceChildren();
    const most = Math.max(...[before, after].flatMap(({maps}) => maps.flat(2).map(Math.abs))) || 1;
    draw(moved ? 'your sentence' : 'your sentence, as it stands', before, first.pieces, answer.picked, most);
    if (moved) draw('with the word moved', after, second.pieces, order.indexOf(answer.picked), most);
    node(pictures, 'p', {className: 'play-note'}, `A line of a map is a query, a column a key, in the order of the words; framed is the word that moves. Yellow is ${number(most)}, dark blue ${number(-most)}, grey 0.`);
    const pairs = inNumbers(answer, before, after);
    table(pairs, answer);
    say(inWords(pairs, answer));
  }
  function press({second: {pieces}, order, picked}) {
    const at = [...line.children].indexOf(document.activeElement);
    line.replaceChildren();
    order.forEach((t, place) => {
      if (!place || place === order.length - 1) return node(line, 'span', {className: 'play-piece'}, pieces[place]);
      const button = node(line, 'button', {type: 'button', className: 'play-piece'}, pieces[place]);
      button.setAttribute('aria-pressed', t === picked);
      button.addEventListener('click', () => choose(t));
      return button;
    });
    if (at >= 0) line.children[at]?.focus();
  }
  function draw(title, {maps}, pieces, query, most) {
    const group = node(pictures, 'div', {className: 'play-maps'}), T = pieces.length;
    node(group, 'p', {}, title);
    maps.forEach((scores, n) => {
      const figure = node(group, 'figure'), map = node(figure, 'canvas', {width: PIXELS * T, height: PIXELS * T}), paper = map.getContext('2d');
      map.setAttribute('role', 'img');
      map.setAttribute('aria-label', `${title}: ${MAPS[n]} of all pairs; the numbers of ${pieces[query]} stand below`);
      scores.forEach((row, t) => row.forEach((score, s) => {
        paper.fillStyle = `rgb(${colour(0.5 + score / most / 2).join(' ')})`;
        paper.fillRect(PIXELS * s, PIXELS * t, PIXELS, PIXELS);
      }));
      Object.assign(paper, {strokeStyle: '#d55e00', lineWidth: 2});
      paper.strokeRect(1, PIXELS * query + 1, PIXELS * T - 2, PIXELS - 2);
      node(figure, 'figcaption', {}, MAPS[n]);
    });
  }
  function colour(share) {
    const place = share * (colours.length - 1), low = Math.min(Math.floor(place), colours.length - 2), part = place - low;
    return colours[low].map((from, n) => Math.round(from + part * (colours[low + 1][n] - from)));
  }
  const whole = value => String(value).replace('-', '−');
  const number = value => value.toFixed(2).replace(/^-(?=.*[1-9])/, '−').replace('-', '');
  // The picked word with every key: [as written, now] of its distance, three scores, their sum and the weight.
  function inNumbers({written, order, picked, first}, before, after) {
    const [from, to] = [written, order].map(all => all.indexOf(picked));
    return order.map((key, s) => ({
      key: first.pieces[key],
      distance: [from - key, to - s],
      scores: MAPS.map((_, n) => [before.maps[n][from][key], after.maps[n][to][s]]),
      weight: [before.weights[from][key], after.weights[to][s]],
    }));
  }
  function table(pairs, {moved, first, picked}) {
    numbers.replaceChildren();
    const all = node(numbers, 'table', {className: 'play-answers play-numbers'}), body = node(all, 'tbody');
    node(all, 'caption', {}, `“${first.pieces[picked]}” as the query, layer ${dials[0].value}, head ${dials[1].value}${moved ? ': in your sentence → with the word moved' : ''}`);
    const head = node(all.createTHead(), 'tr');
    for (const title of ['key', 'distance', ...MAPS, 'weight']) node(head, 'th', {scope: 'col'}, title);
    const cell = (row, [was, is], text) => {
      const changed = moved && text(was) !== text(is);
      node(row, 'td', {className: changed ? 'play-changed' : ''}, changed ? `${text(was)} → ${text(is)}` : text(is));
    };
    for (const {key, distance, scores, weight} of pairs) {
      const row = node(body, 'tr');
      node(row, 'th', {scope: 'row'}, key);
      cell(row, distance, whole);
      for (const score of scores) cell(row, score, number);
      cell(row, weight, percent);
    }
  }
  function inWords(pairs, {moved, first, picked, cut, ids}) {
    const best = n => pairs.reduce((a, b) => (b.weight[n] > a.weight[n] ? b : a));
    const told = n => {
      const {key, distance, scores, weight} = best(n), sums = TERMS.map((term, k) => `${term} ${number(scores[k][n])}`).join(', ');
      return `“${key}” (distance ${whole(distance[n])}), ${percent(weight[n])}: ${sums}, sum ${number(scores[3][n])}`;
    };
    const word = first.pieces[picked], place = `Layer ${dials[0].value}, head ${dials[1].value}.`;
    const parts = [place, `${moved ? 'In your sentence' : 'Here'} “${word}” attends most to ${told(0)}.`];
    if (moved) {
      const count = TERMS.map((term, n) => `${term} ${pairs.filter(({scores: {[n]: [was, is]}}) => number(was) !== number(is)).length}`);
      parts.push(`With the word moved: to ${told(1)}.`, `Of its scores with ${pairs.length} tokens changed: ${count.join(', ')}.`);
    }
    const strange = first.pieces.filter(piece => piece === '[UNK]').length;
    if (strange) parts.push(`The micro-world does not know ${strange} of your words: the model reads [UNK] there.`);
    if (cut) parts.push(`Shown are ${ids.length} tokens; the last ${cut} of your text are left out.`);
    return parts.join(' ');
  }
  input.addEventListener('input', run);
  touched(box, async () => {
    const model = await open(name, say);
    if (!model) return;
    words = window.courseWordPiece(model.vocab, model.tokenizer);
    ask = latest(both(model), show, error => say(error.message));
    run();
  });
};
