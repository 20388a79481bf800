// Figures and live views of a page, drawn when a reader comes near them. Plain scripts, no modules:
// a browser refuses modules to a page that is opened as a file.
(() => {
  'use strict';
  const here = document.currentScript.src;
  const beside = name => new URL(name, here).href;
  const loading = new Map();
  const load = url => {
    if (!loading.has(url)) loading.set(url, new Promise((done, failed) => {
      const script = Object.assign(document.createElement('script'), {src: url, onload: done, onerror: failed});
      document.head.appendChild(script);
    }));
    return loading.get(url);
  };
  const node = (parent, tag, props = {}, text = '') => {
    const made = Object.assign(document.createElement(tag), props);
    if (text) made.textContent = text;
    parent.appendChild(made);
    return made;
  };

  // --- figures
  async function figure(box) {
    await load(beside('plotly.min.js'));
    const {data, layout} = JSON.parse(box.querySelector('script').textContent);
    const place = document.createElement('div');
    box.querySelector('img')?.remove();
    box.appendChild(place);
    await window.Plotly.newPlot(place, data, layout, {displaylogo: false, responsive: false});
    box.dataset.drawn = 'yes';
  }

  // --- live views: what Python computed beforehand arrives by window.courseLive(name, what)
  const arrived = new Map();
  window.courseLive = (name, what) => arrived.set(name, what);
  async function live(box) {
    await load(beside(`../live/${box.dataset.live}.js`));
    const what = arrived.get(box.dataset.live);
    const root = document.createElement('div');
    if (what.module) window.courseModules[what.module].render({model: model(what.state), el: root});
    else controls(root, what);
    box.replaceChildren(root);
    box.dataset.drawn = 'yes';
  }
  // --- playgrounds: a reader's own text, read by a model in the page (models/playgrounds.js)
  async function play(box) {
    await load(beside('playgrounds.js'));
    await load(beside(`${box.dataset.play}.js`));
    window.coursePlaygrounds[box.dataset.play](box, window.courseTools);
    box.dataset.drawn = 'yes';
  }
  // What a widget's script expects of its model, without a kernel behind it.
  window.courseWidgetModel = model;
  function model(state) {
    const heard = new Map();
    return {
      get: name => state[name],
      set(name, value) {
        if (state[name] === value) return;
        state[name] = value;
        (heard.get('change:' + name) || []).forEach(tell => tell());
      },
      on: (event, tell) => heard.set(event, [...(heard.get(event) || []), tell]),
      off: (event, tell) => heard.set(event, (heard.get(event) || []).filter(one => one !== tell)),
      save_changes() {},
    };
  }
  function controls(root, what) {
    const bar = node(root, 'div', {className: 'live-controls'});
    const picture = node(root, 'div', {className: 'live-picture'});
    const at = what.controls.map(control => control.start);
    const shown = what.controls.map((control, k) => one(bar, control, value => {
      if (!what.grid) what.controls.forEach((other, n) => { if (n !== k) at[n] = other.start; });
      at[k] = value;
      draw();
    }));
    node(root, 'p', {className: 'live-note'}, what.note);
    draw();
    function draw() {
      const place = at.join(','), also = what.also[place] || {};
      shown.forEach((show, k) => show(...(also[k] || [at[k]])));
      picture.innerHTML = what.html[what.at[place]].map(part => what.parts[part]).join('');
    }
  }
  function one(bar, control, moved) {
    const label = node(bar, 'label', {}, control.label);
    if (control.options.length < 2) {
      node(label, 'b', {}, control.options[0]);
      return () => {};
    }
    if (control.kind === 'choice') {
      const select = node(label, 'select');
      control.options.forEach(text => node(select, 'option', {}, text));
      select.addEventListener('change', () => moved(select.selectedIndex));
      return value => { select.selectedIndex = value; };
    }
    const input = node(label, 'input', {type: 'range', min: 0, max: control.options.length - 1, step: 1});
    const said = node(label, 'output');
    input.addEventListener('input', () => moved(Number(input.value)));
    return (value, words = control.options[value]) => {
      input.value = value;
      said.textContent = words;
      input.setAttribute('aria-valuetext', words);
    };
  }

  // What scrolls sideways must be reached by the keyboard, too.
  function reachable() {
    document.querySelectorAll('pre, .output, .output div, .table-wrapper').forEach(box => {
      const scrolls = box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== 'visible';
      if (scrolls) box.tabIndex = 0;
      else if (box.tabIndex === 0 && box.matches('pre, .output')) box.removeAttribute('tabindex');
    });
  }

  // --- when
  const draw = box => (box.dataset.play ? play(box) : box.dataset.live ? live(box) : figure(box)).then(reachable, error => {
    box.dataset.drawn = 'no';  // the picture stays
    console.error(error);
  });
  const start = () => {
    const near = new IntersectionObserver(seen => seen.filter(one => one.isIntersecting).forEach(one => {
      near.unobserve(one.target);
      draw(one.target);
    }), {rootMargin: '800px'});
    document.querySelectorAll('.plotly-box, .live-box, .play-box').forEach(box => near.observe(box));
    reachable();
    window.addEventListener('resize', reachable);
  };
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start);
  else start();
})();
