// Models on a page: load one at the first touch, ask it without stopping the page.
//
//   const model = await courseModels.open('course-bert')    rejects with a sentence for the reader
//   const answer = await model.ask({text: 'The [MASK] of the array', top: 5})
//
// open: however many playgrounds of a page open a model, its file is read once, and one worker has
// its weights. (Where a browser gives no worker, the page itself computes.) A request may hold
//   text, second   what is read; or ids and types, already packed
//   hide           token positions that become [MASK]
//   top, most      how many pieces for every [MASK], and for how many of these
//   attentions, scores, parts, states, hidden, replaced, labels, sentence     true: what else is wanted
// and the answer
//   pieces, ids, types    T tokens, [CLS] and [SEP] among them; written: the pieces before hiding
//   cut            how many tokens of the text the model has no room for, 0 if none
//   masked         for every [MASK] {at, best: [{piece, probability}, …]}, the likeliest first
//   attentions, scores    Float32Array, (L, A, T, T); `layers` and `heads` say L and A
//   parts          of DeBERTa's scores, Float32Array, (L, A, T, 3, T)
//   states, hidden        Float32Array, (L + 1, T, H) and (T, H)
//   replaced       P(replaced) of every token; labels: T times a logit a label; sentence: (H)
//   milliseconds   of computing
//
//   const ask = courseModels.latest(model, show, fail)      ask(request) → show(answer, request)
// While a request is computed only the newest further one is kept, however fast a reader types.
(() => {
  'use strict';
  const here = document.currentScript.src;
  const arrived = new Map(), opened = new Map();
  // A model's file, a plain script, calls this: a page that is a file may fetch nothing else.
  window.courseModel = (name, what) => arrived.set(name, what);

  function script(url) {
    return new Promise((done, failed) => {
      const tag = Object.assign(document.createElement('script'), {src: url, onload: done, onerror: failed});
      document.head.append(tag);
      tag.addEventListener('load', () => tag.remove());
    });
  }
  const sentence = (name, what) => new Error(`The model ${name} ${what} Everything else on this page works without it.`);

  async function read(name) {
    const file = `${name}.js`;
    await script(new URL(`../models/${file}`, here).href).catch(() => {
      throw sentence(name, `could not be read: its file models/${file} is missing beside this page.`);
    });
    const what = arrived.get(name);
    arrived.delete(name);  // the text of the weights need not stay in memory
    if (!what) throw sentence(name, `could not be read: its file models/${file} is damaged. Copy the site anew.`);
    if (!what.base) return what;
    const base = await read(what.base);  // what it was fine-tuned from: the file holds what changed
    return {...what, under: base, vocab: base.vocab, tokenizer: base.tokenizer};
  }
  async function load(name) {
    const {index, ...what} = await read(name);  // the index is the page's, not the engine's
    const waiting = [];  // who has asked, in order
    const hear = message => waiting.shift().done(message);
    const stop = () => waiting.splice(0).forEach(({failed}) => failed());
    const send = (post, message) => new Promise((done, failed) => {
      waiting.push({done, failed});
      post(message);
    });
    let post = inWorker(name, hear, stop), loaded;
    try {
      loaded = await send(post, {load: what});
    } catch {  // some browsers give a page that is a file no worker
      post = inPage(hear);
      loaded = await send(post, {load: what});
    }
    if (loaded.error) throw sentence(name, loaded.error);
    async function ask(request) {
      const {answer, error} = await send(post, {ask: request}).catch(() => ({error: 'has stopped: open the page anew.'}));
      if (error) throw sentence(name, error);
      return answer;
    }
    return {name, config: loaded.config, vocab: what.vocab, tokenizer: what.tokenizer, index, ask};
  }
  // Two places for the engine: a worker, made of the text of our own functions, since a page that is
  // a file may load none; or the page itself.
  const parts = () => [window.courseProduct, window.courseEncoder, window.courseWordPiece];
  function inWorker(name, hear, stop) {
    const text = `onmessage = (${courseEngine})(${parts().join(', ')}, message => postMessage(message));`;
    const url = URL.createObjectURL(new Blob([text], {type: 'text/javascript'}));
    try {
      const worker = new Worker(url, {name});
      worker.onmessage = ({data}) => hear(data);
      worker.onerror = stop;
      return message => worker.postMessage(message);
    } catch {
      return stop;
    }
  }
  function inPage(hear) {
    const run = courseEngine(...parts(), hear);
    return data => setTimeout(() => run({data}));
  }
  function open(name) {
    if (!opened.has(name)) opened.set(name, load(name));
    return opened.get(name);
  }
  function latest(model, show, fail = console.error) {
    let busy = false, next = null;
    async function run() {
      busy = true;
      while (next) {
        const request = next;
        next = null;
        try {
          show(await model.ask(request), request);
        } catch (error) { fail(error); }
      }
      busy = false;
    }
    return request => {
      next = request;
      if (!busy) run();
    };
  }
  window.courseModels = {open, latest};

  // --- what runs beside the page: the tokenizer, the encoder, and a request's answer
  function courseEngine(makeProduct, makeEncoder, makeWordPiece, tell) {
    let bert, words;
    // What weights.py writes in letters, each a digit from 0 to 91: whole numbers below 255, four in five
    // letters; below 9, two in one; below 92; and the bits of a float32, in five.
    const digit = Int8Array.from({length: 127}, (_, code) => code - 33 - (code > 34) - (code > 92));  // without " and \\
    const read = {
      255(text, at, result) {
        for (let n = 0; n < result.length; n += 4, at += 5) {
          for (let k = 0, rest = digit[text.charCodeAt(at + 4)]; k < 4; k++, rest = rest / 3 | 0) {
            result[n + k] = 3 * digit[text.charCodeAt(at + k)] + rest % 3;
          }
        }
      },
      9(text, at, result) {
        for (let n = 0; n < result.length; n += 2, at++) {
          result[n] = digit[text.charCodeAt(at)] % 9;
          result[n + 1] = digit[text.charCodeAt(at)] / 9 | 0;
        }
      },
      92(text, at, result) {
        for (let n = 0; n < result.length; n++) result[n] = digit[text.charCodeAt(at + n)];
      },
      float(text, at, result) {
        for (let n = 0; n < result.length; n++, at += 5) {
          for (let k = 5; k--;) result[n] = 92 * result[n] + digit[text.charCodeAt(at + k)];
        }
      },
    };
    const lettersOf = {255: count => 5 * Math.ceil(count / 4), 9: count => count / 2, float: count => 5 * count};
    function unharmed({data, adler}) {
      let a = 1, b = 0;  // the two sums of adler32
      for (let i = 0; i < data.length; i++) {
        a = (a + data.charCodeAt(i)) % 65521;
        b = (b + a) % 65521;
      }
      if (b * 65536 + a !== adler) throw new Error('other numbers than were written');
      return data;
    }
    // A matrix from a place on: a step below its first scale for each group, then its numbers.
    function matrix(text, at, rows, columns, group, base, top) {
      const groups = Math.ceil(columns / group), middle = (base - 1) / 2, next = at + rows * groups;
      return {next: next + lettersOf[base](rows * columns), each(take) {
        const steps = new Uint8Array(rows * groups), values = new Uint8Array(rows * columns);
        read[92](text, at, steps);
        read[base](text, next, values);
        for (let r = 0, i = 0; r < rows; r++) for (let g = 0; g < groups; g++) {
          const scale = Math.fround(top * 2 ** (-steps[r * groups + g] / 8)), end = Math.min(columns, (g + 1) * group);
          for (let c = g * group; c < end; c++, i++) take(r, c, (values[i] - middle) * scale);
        }
      }};
    }
    function decode(what) {
      const {tensors, group} = what, text = unharmed(what), named = {};
      let at = 0;
      for (const [name, shape, top] of tensors) {
        const [rows, columns] = shape, start = at;
        if (shape.length === 1) {
          at += lettersOf.float(rows);
          named[name] = {shape, write: to => {
            const bits = new Uint32Array(rows);
            read.float(text, start, bits);
            to.set(new Float32Array(bits.buffer));
          }};
          continue;
        }
        const {next, each} = matrix(text, at, rows, columns, group, 255, top);
        at = next;
        named[name] = {shape, write: to => each((r, c, value) => { to[r * columns + c] = value; })};
      }
      return named;
    }
    // What a base became: differences of its rows, in numbers from -4 to 4.
    function changed(base, what) {
      const {tensors, group} = what.changes, text = unharmed(what.changes), named = decode(what);
      let at = 0;
      for (const [name, rows, top] of tensors) {
        const {shape, write} = base[name], columns = shape[1];
        const {next, each} = matrix(text, at, rows.length, columns, group, 9, top);
        at = next;
        named[name] = {shape, write: to => {
          write(to);
          each((r, c, value) => { to[rows[r] * columns + c] += value; });
        }};
      }
      return named;
    }
    // [CLS] first [SEP] second [SEP], without the ends of the longer one where it does not fit.
    function pack(first, second) {
      const [cls, sep] = ['[CLS]', '[SEP]'].map(piece => words.ids.get(piece));
      const room = bert.config.max_positions - (second ? 3 : 2);
      let cut = 0;
      for (; first.length + (second ? second.length : 0) > room; cut++) (second && second.length > first.length ? second : first).pop();
      const a = [cls, ...first, sep], b = second ? [...second, sep] : [];
      return {ids: [...a, ...b], types: [...a.map(() => 0), ...b.map(() => 1)], cut};
    }
    function answer(request) {
      const start = performance.now(), mask = words.ids.get('[MASK]');
      const {ids, types, cut} = request.ids
        ? {cut: 0, ids: [...request.ids], types: request.types || request.ids.map(() => 0)}
        : pack(words.encode(request.text), request.second ? words.encode(request.second) : null);
      const inWords = () => ids.map(id => words.vocab[id]), written = inWords();
      for (const at of request.hide || []) if (at < ids.length) ids[at] = mask;
      const keep = ['states', 'attentions', 'scores', 'parts'].filter(name => request[name]);
      const {hidden, ...kept} = bert.encode(ids, types, keep);
      const result = {ids, types, cut, written, pieces: inWords(), ...kept,
        layers: bert.config.num_layers, heads: bert.config.num_heads};
      if (request.top) {
        const places = ids.flatMap((id, at) => (id === mask ? [at] : [])).slice(0, request.most);
        result.masked = places.map(at => ({at, best: best(hidden, at, request.top)}));
      }
      for (const name of ['replaced', 'labels', 'sentence']) if (request[name]) result[name] = bert[name](hidden);
      if (request.hidden) result.hidden = hidden;
      return {...result, milliseconds: performance.now() - start};
    }
    function best(hidden, at, top) {
      const probabilities = bert.maskedLM(hidden, at), order = [];
      for (let n = 0; n < Math.min(top, probabilities.length); n++) {
        const id = probabilities.reduce((a, p, i) => (order.includes(i) || (a >= 0 && probabilities[a] >= p) ? a : i), -1);
        order.push(id);
      }
      return order.map(id => ({piece: words.vocab[id], probability: probabilities[id]}));
    }
    function load(what) {
      words = makeWordPiece(what.vocab, what.tokenizer);
      const tensors = what.under ? changed(decode(what.under), what) : decode(what);
      bert = makeEncoder({config: what.config, tensors}, makeProduct);
      return {loaded: true, config: what.config};
    }
    return ({data: {load: what, ask: request}}) => {
      try {
        tell(what ? load(what) : {answer: answer(request)});
      } catch (error) {
        const message = what ? 'could not be read: its file holds' : 'could not read this text:';
        tell({loaded: Boolean(what), error: `${message} ${error.message}.`});
      }
    };
  }
})();
