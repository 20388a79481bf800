// BERT in JavaScript: the encoder and its heads, to be read beside course_lib/encoder.py. With
// settings of a ModernBertConfig it is ModernBERT: norms before the halves of a block, rotary
// positions, gated feed-forward parts, attention within a window. With a DebertaConfig's, pairs of tokens
// have two more scores, with a table of distances.
//
// T tokens, H hidden, A heads, D = H / A head size, F feed-forward, V vocabulary, L layers.
//
// courseEncoder({config, tensors}, makeProduct): config holds the settings of course_lib's
// configuration; tensors, by the names of course_lib's state_dict, each weight's shape and a function
// that writes its numbers where it is told to. makeProduct is courseProduct.
//
// Nothing goes on with what fill() returns, as in x.fill(0).subarray(…): Firefox 153.8 compiled that, after
// some dozens of texts, into code whose attention was wrong.
'use strict';
window.courseEncoder = ({config, tensors}, makeProduct) => {
  const {hidden_size: H, num_layers: L, num_heads: A, intermediate_size: F, layer_norm_eps: eps} = config;
  const D = H / A, R = 2 * (config.span || 0);  // rows of DeBERTa's table of distances

  // ---------------------------------------------------------------- memory and matrices
  // All matrices lie in one memory, where the product finds them. Weights stand first and stay;
  // what a text needs follows, and is forgotten before the next text.
  const upTo4 = n => Math.ceil(n / 4) * 4;
  const most = upTo4(config.max_positions), width = Math.max(H, config.embedding_size || 0);
  const stored = Object.values(tensors).reduce((sum, {shape: [n, m = 1]}) => sum + upTo4(n) * m, 0);
  const needed = stored + most * (12 * width + 5 * F + 2 * most + 2 * A * R) + 2 * R * H + 8 * (config.vocab_size + H);
  const memory = makeMemory(Math.ceil(4 * needed / 65536));  // in pages of 64 KiB
  const floats = new Float32Array(memory.buffer), product = makeProduct(memory);
  let free = 0;  // where the next matrix goes

  function makeMemory(pages) {
    if (typeof WebAssembly === 'object') return new WebAssembly.Memory({initial: pages});
    return {buffer: new ArrayBuffer(65536 * pages)};
  }
  // A matrix of zeros. Its rows are made a multiple of 4, since the product takes four at a time.
  function matrix(rows, columns) {
    const at = free, size = upTo4(rows) * columns;
    if (at + size > floats.length) throw new Error('The text needs more memory than was set aside.');
    free += size;
    const values = floats.subarray(at, free);
    values.fill(0);
    return {rows, columns, values, at: 4 * at, row: r => values.subarray(r * columns, (r + 1) * columns)};
  }
  const weights = {};
  for (const [name, {shape: [rows, columns = 1], write}] of Object.entries(tensors)) {
    weights[name] = matrix(rows, columns);
    write(weights[name].values);
  }
  const firstFree = free;

  // ---------------------------------------------------------------- the parts
  // x (T, in) times the rows of the weight (out, in), plus the bias: (T, out).
  function dense(x, name, weight = weights[name + '.weight'], bias = weights[name + '.bias']) {
    const outputs = weight.rows + weight.rows % 2, y = matrix(x.rows, outputs);
    product(x.at, weight.at, y.at, upTo4(x.rows), outputs, x.columns, 4 * x.columns, 4 * x.columns, 4 * outputs);
    if (bias) for (let t = 0; t < x.rows; t++) add(y.row(t).subarray(0, weight.rows), bias.values);
    return y;
  }
  function add(row, other) {
    for (let i = 0; i < row.length; i++) row[i] += other[i];
  }
  // Each row minus its mean, over its standard deviation; then a gain and a bias for each column.
  function layerNorm(x, name) {
    const gain = weights[name + '.weight']?.values, bias = weights[name + '.bias']?.values;
    const y = matrix(x.rows, x.columns);
    if (!gain) return y.values.set(x.values), y;  // ModernBERT's first block has no norm here
    for (let t = 0; t < x.rows; t++) {
      const from = x.row(t), to = y.row(t), n = x.columns;
      let sum = 0, squares = 0;
      for (let i = 0; i < n; i++) sum += from[i];
      for (let i = 0; i < n; i++) squares += (from[i] - sum / n) ** 2;
      const mean = sum / n, scale = 1 / Math.sqrt(squares / n + eps);
      for (let i = 0; i < n; i++) to[i] = (from[i] - mean) * scale * gain[i] + (bias ? bias[i] : 0);
    }
    return y;
  }
  // erf to 1.5e-7 (Abramowitz and Stegun 1964, formula 7.1.26).
  function erf(x) {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    return Math.sign(x) * (1 - poly * Math.exp(-x * x));
  }
  const gelu = config.gelu_form === 'tanh'
    ? x => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))
    : x => 0.5 * x * (1 + erf(x * Math.SQRT1_2));
  function softmax(row) {
    let largest = -Infinity, sum = 0;
    for (let i = 0; i < row.length; i++) if (row[i] > largest) largest = row[i];
    for (let i = 0; i < row.length; i++) sum += row[i] = Math.exp(row[i] - largest);
    for (let i = 0; i < row.length; i++) row[i] /= sum;
  }

  // ---------------------------------------------------------------- the encoder
  // Token + segment + position, then LayerNorm: (T, H).
  function embeddings(ids, types) {
    if (config.patch_size) return patches(ids);
    const inside = weights['embeddings.project.weight'] ? 'embeddings.tables' : 'embeddings';
    const [token, segment, position] = ['token', 'segment', 'position'].map(n => weights[`${inside}.${n}.weight`]);
    const x = matrix(ids.length, token.columns);
    ids.forEach((id, t) => {
      const row = x.row(t);
      row.set(token.row(id));
      if (segment) add(row, segment.row(types[t]));
      if (position) add(row, position.row(t));
    });
    const normed = layerNorm(x, inside + '.norm');
    return inside === 'embeddings' ? normed : dense(normed, 'embeddings.project');  // ELECTRA: (T, E) -> (T, H)
  }
  // ViT: a grey picture's pixels, row by row; each patch through one matrix, the class token in front: (T, H).
  function patches(pixels) {
    const {image_size: S, patch_size: P} = config, across = S / P, T = 1 + across ** 2;
    const cut = matrix(across ** 2, P * P), x = matrix(T, H), position = weights['embeddings.position'];
    pixels.forEach((pixel, i) => {
      const row = Math.floor(i / S), column = i % S;
      cut.row(Math.floor(row / P) * across + Math.floor(column / P))[row % P * P + column % P] = pixel;
    });
    const projected = dense(cut, 'embeddings.project');
    for (let t = 0; t < T; t++) {
      x.row(t).set(t ? projected.row(t - 1) : weights['embeddings.cls'].row(0));
      add(x.row(t), position.row(t));
    }
    return x;
  }
  // Rotary positions: features i and i + D/2 of a head are a point, turned by t · base^(−2i/D).
  function turn(x, base) {
    for (let i = 0; i < D / 2; i++) {
      const frequency = base ** (-2 * i / D);
      for (let t = 0; t < x.rows; t++) {
        const cos = Math.cos(t * frequency), sin = Math.sin(t * frequency), row = x.row(t);
        for (let k = i; k < H; k += D) {
          const a = row[k], b = row[k + D / 2];
          row[k] = a * cos - b * sin;
          row[k + D / 2] = a * sin + b * cos;
        }
      }
    }
  }
  // DeBERTa: each head's products of queries and of keys with all rows of the table of distances, (T, R) each.
  function withDistances(q, k, name) {
    const table = weights['stack.positions.table.weight'];
    const pairs = [[q, dense(table, name + '.position_key')], [k, dense(table, name + '.position_query')]];
    return Array.from({length: A}, (_, a) => pairs.map(([x, rows]) => {
      const y = matrix(x.rows, R), head = 4 * a * D;
      product(x.at + head, rows.at + head, y.at, upTo4(x.rows), R, D, 4 * H, 4 * H, 4 * R);
      return y;
    }));
  }
  // Query t with all keys: content with content is there; the row of their distance adds the other two.
  function threeScores(row, [ofQuery, ofKey], t, kept) {
    const parts = [row.slice(), row.slice(), row.slice()];
    for (let s = 0; s < row.length; s++) {
      const distance = Math.min(Math.max(t - s + R / 2, 0), R - 1);
      parts[1][s] = ofQuery.row(t)[distance];
      parts[2][s] = ofKey.row(s)[distance];
      row[s] += parts[1][s] + parts[2][s];
    }
    for (const part of parts) kept.parts?.push(part.map(score => score / Math.sqrt(3 * D)));
  }
  // Every token gathers from every other, in A heads side by side: (T, H) -> (T, H).
  function attention(x, name, layer, kept) {
    const T = x.rows, P = upTo4(T), whole = !config.rotary || layer % config.global_every === 0;
    const [q, k, v] = ['query', 'key', 'value'].map(part => dense(x, `${name}.${part}`));
    if (config.rotary) for (const turned of [q, k]) turn(turned, whole ? config.global_base : config.local_base);
    const sight = whole ? T : Math.floor(config.window / 2);  // how far a token sees
    const y = matrix(T, H), scores = matrix(T, P), turned = matrix(D, P), apart = R && withDistances(q, k, name);
    for (let a = 0; a < A; a++) {
      const head = 4 * a * D;  // a head's part of every row, in bytes
      product(q.at + head, k.at + head, scores.at, P, P, D, 4 * H, 4 * H, 4 * P);  // (T, D) · (T, D) -> (T, T)
      for (let t = 0; t < T; t++) {
        const row = scores.row(t).subarray(0, T);
        scores.row(t).fill(0, T);
        if (apart) threeScores(row, apart[a], t, kept);
        for (let s = 0; s < T; s++) row[s] = Math.abs(s - t) > sight ? -Infinity : row[s] / Math.sqrt(apart ? 3 * D : D);
        kept.scores?.push(row.slice());
        softmax(row);
        kept.attentions?.push(row.slice());
        for (let i = 0; i < D; i++) turned.values[i * P + t] = v.values[t * H + a * D + i];
      }
      product(scores.at, turned.at, y.at + head, P, D, P, 4 * P, 4 * P, 4 * H);  // (T, T) · (D, T) -> (T, D)
    }
    return dense(y, name + '.output');
  }
  // Two dense layers with a GELU between them; gated (GeGLU): half of the first times its other half.
  function feedForward(x, name) {
    const up = dense(x, name + '.expand'), inner = config.gated ? matrix(x.rows, F) : up;
    for (let t = 0; t < x.rows; t++) {
      const from = up.row(t), to = inner.row(t);
      for (let i = 0; i < F; i++) to[i] = gelu(from[i]) * (config.gated ? from[F + i] : 1);
    }
    return dense(inner, name + '.contract');
  }
  // Attention, then feed-forward; the input is added after each, and a norm follows (BERT) or
  // stands before each half (ModernBERT).
  function block(x, layer, kept) {
    const name = `stack.blocks.${layer}`, sum = matrix(x.rows, H);
    const attend = x => attention(x, name + '.attention', layer, kept);
    const residual = (x, change) => { sum.values.set(x.values), add(sum.values, change.values); return sum; };
    if (config.pre_norm) {
      residual(x, attend(layerNorm(x, name + '.attention_norm')));
      return residual(sum, feedForward(layerNorm(sum, name + '.output_norm'), name + '.feed_forward'));
    }
    const middle = layerNorm(residual(x, attend(x)), name + '.attention_norm');
    return layerNorm(residual(middle, feedForward(middle, name + '.feed_forward')), name + '.output_norm');
  }
  // A text's ids and segments (T), or a ViT's pixels -> the last states (T · H). keep: names of what else is wanted,
  // states (L + 1 · T · H), attentions and scores (L · A · T · T), DeBERTa's parts of the scores (L · A · T · 3 · T).
  function encode(ids, types = ids.map(() => 0), keep = []) {
    const kept = Object.fromEntries(keep.map(name => [name, []]));
    free = firstFree;
    let x = embeddings(ids, types);
    const states = free, copy = () => x.values.slice(0, x.rows * H);
    kept.states?.push(copy());
    for (let layer = 0; layer < L; layer++) {
      const y = block(x, layer, kept).values.slice();
      free = states;  // what the block needed is forgotten
      x.values.set(y);
      kept.states?.push(copy());
    }
    if (config.final_norm) x = layerNorm(x, 'stack.norm');
    if (config.final_norm && kept.states) kept.states[L] = copy();
    for (const name of keep) kept[name] = joined(kept[name]);
    return {...kept, hidden: copy()};
  }
  function joined(lists) {
    const whole = new Float32Array(lists.length * lists[0].length);
    lists.forEach((list, n) => whole.set(list, n * list.length));
    return whole;
  }

  // ---------------------------------------------------------------- the heads
  // Chosen rows of the last states as a matrix again.
  function gather(hidden, positions) {
    free = firstFree;
    const x = matrix(positions.length, H);
    positions.forEach((t, n) => x.row(n).set(hidden.subarray(t * H, (t + 1) * H)));
    return x;
  }
  // Dense, GELU, and where there is one LayerNorm.
  function transform(x, name) {
    const y = dense(x, name + '.dense');
    for (let i = 0; i < y.values.length; i++) y.values[i] = gelu(y.values[i]);
    return weights[name + '.norm.weight'] ? layerNorm(y, name + '.norm') : y;
  }
  // Masked words: the probabilities of all V pieces at one position. The token table is the decoder.
  function maskedLM(hidden, position) {
    const table = weights['embeddings.token.weight'] || weights['embeddings.tables.token.weight'];
    const row = dense(transform(gather(hidden, [position]), 'mlm'), '', table, weights['mlm.bias']).row(0);
    softmax(row.subarray(0, table.rows));
    return row.slice(0, table.rows);
  }
  // The logits of a head that looks at every token: (T, labels).
  function tokenLogits(x, name, labels = weights[name + '.weight'].rows) {
    const y = dense(x, name);
    return Array.from({length: x.rows}, (_, t) => y.row(t).slice(0, labels));
  }
  const every = hidden => gather(hidden, Array.from({length: hidden.length / H}, (_, t) => t));
  return {
    config, encode, maskedLM,
    // ELECTRA's discriminator: P(replaced) of every token, (T).
    replaced: hidden => tokenLogits(transform(every(hidden), 'rtd'), 'rtd.score').map(([z]) => 1 / (1 + Math.exp(-z))),
    // Token classification: a logit for every label, T of (labels).
    labels: hidden => tokenLogits(every(hidden), 'classifier'),
    // A sentence's vector: the mean of its states, of length 1 (H).
    sentence(hidden) {
      const mean = new Float32Array(H);
      for (let i = 0; i < hidden.length; i++) mean[i % H] += hidden[i];
      const length = Math.hypot(...mean);
      return mean.map(v => v / length);
    },
  };
};
