// Draw a digit: a ViT says which it is, and how much it reads from each patch. The pen is a mouse, a
// finger, or the arrow keys. A drawing is scaled as the pictures were that the model learned from:
// 32×32 dots, as tall as the picture, in its middle; each of the 8×8 pixels is how many of its 16 dots
// have ink.
'use strict';
window.coursePlaygrounds.digits = (box, {node, touched, open, latest, bars, sentence, percent}) => {
  const SIDE = 256, STEP = 1 / 16, FINE = 32, PIXELS = 8, INK = 0.305;  // of a picture, on average
  const HOW = {rollout: 'rollout', 'class token': 'the class token’s attention'};
  const examples = JSON.parse(box.dataset.more), name = box.dataset.models;
  box.replaceChildren();
  const desk = node(box, 'div', {className: 'play-results'});
  const left = node(desk, 'div'), right = node(desk, 'div', {className: 'play-read'});
  const canvas = node(left, 'canvas', {className: 'play-canvas', width: SIDE, height: SIDE, tabIndex: 0});
  canvas.setAttribute('role', 'application');
  canvas.setAttribute('aria-label', 'Drawing area. Arrow keys move the pen, Space puts it down or lifts it.');
  const buttons = node(left, 'div', {className: 'play-buttons'});
  const undo = node(buttons, 'button', {type: 'button'}, 'Undo'), clear = node(buttons, 'button', {type: 'button'}, 'Clear');
  const example = node(buttons, 'button', {type: 'button'}, 'A test picture');
  const settings = node(right, 'div', {className: 'play-buttons'});
  const how = node(node(settings, 'label', {}, 'show '), 'select');
  Object.keys(HOW).forEach(key => node(how, 'option', {}, key));
  const which = node(settings, 'label', {}, 'layer '), layer = node(which, 'input', {type: 'range', min: 1, max: 2, step: 1, value: 2}), layerText = node(which, 'output');
  const pictures = node(right, 'div', {className: 'play-pictures'}), results = node(right, 'div', {className: 'play-results'});
  const say = sentence(box);
  node(box, 'p', {className: 'play-note'}, box.dataset.note);
  const HOWTO = 'Draw a digit. By keyboard: tab to the area, move the pen with the arrow keys, put it down or lift it with Space.';
  say(HOWTO);
  const paper = canvas.getContext('2d'), pen = {x: 0.5, y: 0.25, down: false, keys: false};
  let strokes = [], given = null, next = 0, ask = null, last = null;

  // --- drawing: strokes are lists of points, 0 to 1 across and down
  function draw() {
    paper.clearRect(0, 0, SIDE, SIDE);
    Object.assign(paper, {lineWidth: 16, lineCap: 'round', lineJoin: 'round', strokeStyle: '#1a1a1a', fillStyle: '#1a1a1a'});
    if (given) given.forEach((value, i) => {
      paper.globalAlpha = value;
      paper.fillRect(i % PIXELS * SIDE / PIXELS, Math.floor(i / PIXELS) * SIDE / PIXELS, SIDE / PIXELS, SIDE / PIXELS);
    });
    paper.globalAlpha = 1;
    for (const stroke of strokes) {
      paper.beginPath();
      paper.moveTo(SIDE * stroke[0].x, SIDE * stroke[0].y);
      for (const {x, y} of stroke) paper.lineTo(SIDE * x, SIDE * y);
      paper.stroke();
    }
    if (!pen.keys) return;
    Object.assign(paper, {lineWidth: 3, strokeStyle: '#b35c00'});
    paper.beginPath();
    paper.arc(SIDE * pen.x, SIDE * pen.y, 10, 0, 7);
    paper.stroke();
  }
  function changed() {
    draw();
    if (strokes.length || given) ask?.({strokes: strokes.map(stroke => [...stroke]), given});
    else {
      pictures.replaceChildren();
      results.replaceChildren();
      say(HOWTO);
    }
  }
  const begin = point => {
    given = null;
    strokes.push([point]);
    changed();
  };
  function go(point) {
    const stroke = strokes[strokes.length - 1], end = stroke[stroke.length - 1];
    if (Math.hypot(point.x - end.x, point.y - end.y) < 0.015) return;
    stroke.push(point);
    changed();
  }
  const within = v => Math.min(1, Math.max(0, v));
  const pointOf = event => {
    const area = canvas.getBoundingClientRect();
    return {x: within((event.clientX - area.left) / area.width), y: within((event.clientY - area.top) / area.height)};
  };
  let drawing = null;  // the pointer that draws
  canvas.addEventListener('pointerdown', event => {
    if (drawing !== null || event.button) return;
    Object.assign(pen, {keys: false, down: false});
    drawing = event.pointerId;
    canvas.setPointerCapture(drawing);
    begin(pointOf(event));
  });
  canvas.addEventListener('pointermove', event => { if (event.pointerId === drawing) go(pointOf(event)); });
  for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, event => { if (event.pointerId === drawing) drawing = null; });
  const MOVES = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  canvas.addEventListener('keydown', event => {
    const move = MOVES[event.key];
    if (!move && event.key !== ' ') return;
    event.preventDefault();
    if (!move) pen.down = !pen.down;
    else Object.assign(pen, {x: within(pen.x + STEP * move[0]), y: within(pen.y + STEP * move[1])});
    const here = {x: pen.x, y: pen.y};
    pen.keys = true;
    if (move && pen.down) go(here);
    else if (!move && pen.down) begin(here);
    else draw();
    if (!move) say(last ? inWords(last) : penInWords());
  });
  canvas.addEventListener('blur', () => {
    Object.assign(pen, {keys: false, down: false});
    draw();
  });
  undo.addEventListener('click', () => {
    if (given) given = null;
    else strokes.pop();
    changed();
  });
  clear.addEventListener('click', () => {
    given = null;
    strokes = [];
    changed();
  });
  example.addEventListener('click', () => {
    const [digit, pixels] = Object.entries(examples)[next++ % 10];
    strokes = [];
    given = Object.assign(pixels.map(value => value / 16), {digit});
    changed();
  });

  // --- what the model reads: 64 numbers
  function dots(strokes, radius) {
    const all = strokes.flat(), least = key => Math.min(...all.map(p => p[key])), most = key => Math.max(...all.map(p => p[key]));
    const [x0, x1, y0, y1] = [least('x'), most('x'), least('y'), most('y')], room = FINE - 2 * radius;
    const scale = room / Math.max(x1 - x0, y1 - y0, 0.2), inked = new Uint8Array(FINE * FINE);
    const placed = strokes.map(stroke => stroke.map(({x, y}) => [FINE / 2 + scale * (x - (x0 + x1) / 2), FINE / 2 + scale * (y - (y0 + y1) / 2)]));
    for (const stroke of placed) stroke.forEach(([bx, by], n) => {
      const [ax, ay] = stroke[Math.max(0, n - 1)], dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy || 1;
      const from = v => Math.max(0, Math.floor(v - radius)), to = v => Math.min(FINE - 1, Math.ceil(v + radius));
      for (let r = from(Math.min(ay, by)); r <= to(Math.max(ay, by)); r++) {
        for (let c = from(Math.min(ax, bx)); c <= to(Math.max(ax, bx)); c++) {
          const x = c + 0.5 - ax, y = r + 0.5 - ay, along = within((x * dx + y * dy) / length);
          if (Math.hypot(x - along * dx, y - along * dy) <= radius) inked[r * FINE + c] = 1;
        }
      }
    });
    return inked;
  }
  // The stroke is as wide as it takes to ink what a picture has of ink.
  function pixelsOf(strokes) {
    let thin = 1, thick = 5;
    const ink = inked => inked.reduce((sum, one) => sum + one, 0) / inked.length;
    for (let n = 0; n < 6; n++) {
      const radius = (thin + thick) / 2;
      if (ink(dots(strokes, radius)) < INK) thin = radius;
      else thick = radius;
    }
    const pixels = new Array(PIXELS ** 2).fill(0), wide = FINE / PIXELS;
    dots(strokes, (thin + thick) / 2).forEach((one, i) => {
      const row = Math.floor(i / FINE / wide), column = Math.floor(i % FINE / wide);
      pixels[row * PIXELS + column] += one / wide ** 2;
    });
    return pixels;
  }

  // --- what it says
  const reads = model => ({ask: async ({strokes, given}) => {
    const pixels = given || pixelsOf(strokes);
    const {labels: [logits], attentions, layers, heads} = await model.ask({ids: pixels, labels: true, attentions: true});
    const most = Math.max(...logits), sum = logits.reduce((all, z) => all + Math.exp(z - most), 0);
    const T = Math.sqrt(attentions.length / layers / heads);
    const mean = Array.from({length: layers}, (_, l) => Array.from({length: T}, (_, t) => Array.from({length: T}, (_, s) => {
      let all = 0;
      for (let a = 0; a < heads; a++) all += attentions[((l * heads + a) * T + t) * T + s];
      return all / heads;
    })));
    return {pixels, digit: given?.digit, mean, probabilities: Array.from(logits, z => Math.exp(z - most) / sum)};
  }});
  // Half of every vector goes past a layer in the residual sum (Abnar and Zuidema 2020).
  function rollout(mean, upTo) {
    let joint = mean[0].map((_, t) => mean[0].map((_, s) => Number(s === t)));
    for (const weights of mean.slice(0, upTo)) {
      joint = weights.map((row, t) => joint[t].map((_, s) => 0.5 * joint[t][s] + 0.5 * row.reduce((all, w, k) => all + w * joint[k][s], 0)));
    }
    return joint[0];
  }
  const readOf = ({mean}) => {
    const upTo = Number(layer.value);
    return how.value === 'rollout' ? rollout(mean, upTo) : mean[upTo - 1][0];
  };
  function show(answer) {
    last = answer;
    layer.max = answer.mean.length;
    layerText.textContent = ` ${layer.value} of ${layer.max}`;
    layer.setAttribute('aria-valuetext', `layer ${layer.value} of ${layer.max}`);
    pictures.replaceChildren();
    const seen = node(pictures, 'canvas', {className: 'play-seen', width: PIXELS, height: PIXELS}), paper = seen.getContext('2d');
    seen.setAttribute('role', 'img');
    seen.setAttribute('aria-label', 'what the model reads: 8 by 8 pixels');
    answer.pixels.forEach((value, i) => {
      paper.fillStyle = `rgb(${[255, 255, 255].map(white => Math.round(white * value)).join(' ')})`;
      paper.fillRect(i % PIXELS, Math.floor(i / PIXELS), 1, 1);
    });
    patches(readOf(answer).slice(1));
    results.replaceChildren();
    bars(results, 'which digit', answer.probabilities.map((value, digit) => ({
      label: String(digit), value, mark: String(digit) === answer.digit ? '← its label' : ''})));
    say(inWords(answer));
  }
  function patches(read) {
    const across = Math.sqrt(read.length), most = Math.max(...read), table = node(pictures, 'table', {className: 'play-patches'});
    node(table, 'caption', {className: 'play-spoken'}, 'how much is read from each patch');
    for (let r = 0; r < across; r++) {
      const row = node(table.tBodies[0] || node(table, 'tbody'), 'tr');
      for (const value of read.slice(r * across, (r + 1) * across)) {
        const cell = node(row, 'td', {}, `${Math.round(100 * value)}%`), dark = value / most;
        cell.style.background = `rgb(${[0, 34, 78].map(ink => Math.round(255 + dark * (ink - 255))).join(' ')})`;
        cell.style.color = dark > 0.61 ? '#fff' : '#000';
      }
    }
  }
  const penInWords = () => (pen.keys ? `The pen is ${pen.down ? 'down' : 'up'}. ` : '');
  function inWords(answer) {
    const order = [...answer.probabilities.keys()].sort((a, b) => answer.probabilities[b] - answer.probabilities[a]);
    const [first, second] = order.map(digit => `${digit} (${percent(answer.probabilities[digit])})`);
    const read = readOf(answer), patch = read.indexOf(Math.max(...read.slice(1)), 1), across = Math.sqrt(read.length - 1);
    const where = `row ${Math.ceil(patch / across)}, column ${(patch - 1) % across + 1}`;
    return `${penInWords()}Said to be ${first}, next ${second}${answer.digit ? `; its label is ${answer.digit}` : ''}. ${HOW[how.value]}, layer ${layer.value}: `
      + `most of it from patch ${patch} (${where}), ${percent(read[patch])}; from the class token itself ${percent(read[0])}.`;
  }
  for (const control of [how, layer]) control.addEventListener('input', () => { if (last) show(last); });
  touched(box, async () => {
    const model = await open(name, say);
    if (!model) return;
    ask = latest(reads(model), answer => { if (strokes.length || given) show(answer); }, error => say(error.message));
    changed();
  });
  draw();
};
