// Draw figures, then start the deck; window.deckDrawn says when all of it stands.
(async () => {
  const drawFigures = () => Promise.all([...document.querySelectorAll(".plotly")].map((place) => {
    const figure = JSON.parse(document.querySelector(`script[data-for="${place.id}"]`).textContent);
    return Plotly.newPlot(place, figure.data, figure.layout, {displayModeBar: false});
  }));
  // Before reveal.js hides the slides that are not shown: sizes can still be measured.
  await document.fonts.ready;
  await drawFigures();
  const {width, height} = document.body.dataset;
  const printing = /print-pdf/.test(location.search);
  const laidOut = new Promise((done) => printing ? Reveal.on("pdf-ready", done) : done());
  await Reveal.initialize({
    width: Number(width), height: Number(height), margin: 0.02, center: false, hash: true,
    controls: true, progress: true, transition: "none", backgroundTransition: "none",
    pdfSeparateFragments: false, viewDistance: 100, plugins: [RevealNotes],
  });
  await laidOut;
  await document.fonts.ready;
  window.deckDrawn = true;
})();
