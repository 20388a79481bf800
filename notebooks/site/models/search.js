// A question for the course: its sections ranked by the words that they share with it (BM25), by
// the vectors of an encoder, and by both. Index: course_index.py; the same rankings: page 17.
'use strict';
window.coursePlaygrounds.search = (box, {node, field, touched, open, latest, sentence, script}) => {
  const SHOWN = 5, WORD = /[\p{L}\p{N}_]{2,}/gu, name = box.dataset.models;
  const WAYS = {both: 'both together', words: 'words (BM25)', meaning: 'meaning (vectors)'};
  const input = field(box, 'Your question'), ways = node(box, 'fieldset', {className: 'play-ways'});
  node(ways, 'legend', {}, 'Rank by');
  for (const [way, label] of Object.entries(WAYS)) {
    const about = node(ways, 'label'), radio = node(about, 'input', {type: 'radio', name: input.id, value: way, checked: way === 'both'});
    about.append(` ${label}`);
    radio.addEventListener('change', () => last && show(last));
  }
  const list = node(box, 'ol', {className: 'play-found'}), say = sentence(box);
  node(box, 'p', {className: 'play-note'}, box.dataset.note);
  say('Click into the question, or tab to it: the index is read then, and the course is searched.');
  let ask = null, last = null;

  // Words as BM25 sees them: small letters, no stop words, stemmed; and each section's score.
  function byWords(text, {words, stems, unsearched, sections}, stemmer) {
    const scores = new Float64Array(sections.length), missing = new Set();
    let known = false;
    for (const [word] of text.toLowerCase().matchAll(WORD)) {
      if (unsearched.includes(word)) continue;
      const of = words.get(stems.get(word) || (words.has(word) ? word : stemmer.stemWord(word))) || [];
      known ||= of.length > 0;
      if (!of.length) missing.add(word);
      for (let i = 0; i < of.length; i += 2) scores[of[i]] += of[i + 1] / 1000;
    }
    return {scores, known, missing: [...missing]};
  }
  // The cosine of the question's vector with each section's best piece.
  function byMeaning(vector, {of, vectors, sections}) {
    const scores = new Float64Array(sections.length).fill(-1);
    of.forEach((section, n) => {
      let sum = 0;
      for (let i = 0, at = n * vector.length; i < vector.length; i++) sum += vector[i] * vectors[at + i];
      scores[section] = Math.max(scores[section], sum);
    });
    return scores;
  }
  const numberOf = (letter, code = letter.charCodeAt(0)) => code - 33 - (code > 34) - (code > 92);  // weights.py's LETTERS
  // Mean 0 and standard deviation 1 over all sections: what can be added up.
  function spread(scores) {
    const mean = scores.reduce((a, b) => a + b) / scores.length;
    const deviation = Math.sqrt(scores.reduce((sum, x) => sum + (x - mean) ** 2, 0) / scores.length);
    return scores.map(x => deviation > 1e-9 ? (x - mean) / deviation : 0);
  }
  function searches(model, stemmer) {
    const index = {...model.index};
    for (const table of ['words', 'stems']) index[table] = new Map(Object.entries(index[table]));
    index.vectors = Float32Array.from(index.vectors, c => index.unit * (numberOf(c) - 45));
    return {ask: async text => {
      const {scores: words, known, missing} = byWords(text, index, stemmer);
      const {sentence: vector, cut} = await model.ask({text, sentence: true});
      const meaning = byMeaning(vector, index), [a, b] = [words, meaning].map(spread);
      const both = a.map((x, n) => (1 - index.weight) * x + index.weight * b[n]);
      return {scores: {words, meaning, both}, known, missing, cut, sections: index.sections};
    }};
  }
  function show(found) {
    last = found;
    const way = ways.querySelector(':checked').value, scores = found.scores[way];
    const best = Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a] || a - b).slice(0, SHOWN);
    list.replaceChildren();
    for (const n of way === 'words' ? best.filter(n => scores[n] > 0) : best) {
      const [page, anchor, heading, first] = found.sections[n], item = node(list, 'li');
      node(item, 'a', {href: `${page}#${anchor}`}, `${page.slice(0, 2)} · ${heading}`);
      node(item, 'div', {className: 'play-first'}, first);
    }
    say(inWords(found, WAYS[way]));
  }
  function inWords({known, missing, cut}, way) {
    const parts = list.firstChild ? [`First by ${way}: “${list.querySelector('a').textContent}”.`] : [];
    if (!known) parts.push('The pages have none of these words: BM25 finds nothing.');
    else if (missing.length) parts.push(`No page has ${missing.join(', ')}.`);
    if (cut) parts.push(`The encoder does not read the last ${cut} tokens of your question.`);
    return parts.join(' ');
  }
  const run = () => input.value.trim() && ask?.(input.value);
  input.addEventListener('input', run);
  touched(box, async () => {
    const model = await open(name, say);
    if (!model) return;
    try {
      for (const part of ['base-stemmer.js', 'english-stemmer.js']) await script(part);
    } catch {
      return say('A script of this site is missing. Copy the site anew.');
    }
    ask = latest(searches(model, new EnglishStemmer()), show, error => say(error.message));
    run();
  });
};
