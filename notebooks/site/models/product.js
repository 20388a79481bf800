// The one product that all layers are made of: y[r][o] = x[r] · w[o]. courseProduct(memory) gives a
// function that computes it on matrices in that memory; product.wat is its text, with what the nine
// numbers are. Where a browser has no SIMD instructions it is the same in plain JavaScript, slower.
'use strict';
window.courseProduct = (memory, plainly = false) => {
  const code =
    'AGFzbQEAAAABEgJgAXsBfWAJf39/f39/f39/AAISAQZjb3Vyc2UGbWVtb3J5AgABAwMCAAEHCwEHcHJvZHVjdAABCuUEAhkA' +
    'IAD9HwAgAP0fAZIgAP0fAiAA/R8DkpILyAQCCn8KewNAIAAhCSACIQogAyELA0AgCSENIA0gBmohDiAOIAZqIQ8gDyAGaiEQ' +
    'IBAgBmohCSABIREgESAHaiESIBEgBUECdGohDP0MAAAAAAAAAAAAAAAAAAAAACEV/QwAAAAAAAAAAAAAAAAAAAAAIRn9DAAA' +
    'AAAAAAAAAAAAAAAAAAAhFv0MAAAAAAAAAAAAAAAAAAAAACEa/QwAAAAAAAAAAAAAAAAAAAAAIRf9DAAAAAAAAAAAAAAAAAAA' +
    'AAAhG/0MAAAAAAAAAAAAAAAAAAAAACEY/QwAAAAAAAAAAAAAAAAAAAAAIRwDQCAR/QAEACETIBL9AAQAIRQgFSAN/QAEACAT' +
    '/eYB/eQBIRUgGSAN/QAEACAU/eYB/eQBIRkgFiAO/QAEACAT/eYB/eQBIRYgGiAO/QAEACAU/eYB/eQBIRogFyAP/QAEACAT' +
    '/eYB/eQBIRcgGyAP/QAEACAU/eYB/eQBIRsgGCAQ/QAEACAT/eYB/eQBIRggHCAQ/QAEACAU/eYB/eQBIRwgDUEQaiENIA5B' +
    'EGohDiAPQRBqIQ8gEEEQaiEQIBJBEGohEiARQRBqIREgESAMSQ0ACyAKIBUQADgCACAKIBkQADgCBCAKIAhqIQogCiAWEAA4' +
    'AgAgCiAaEAA4AgQgCiAIaiEKIAogFxAAOAIAIAogGxAAOAIEIAogCGohCiAKIBgQADgCACAKIBwQADgCBCAKIAhqIQogC0EE' +
    'ayILDQALIAEgB0EBdGohASACQQhqIQIgBEECayIEDQALCw==';

  const bytes = Uint8Array.from(atob(code), letter => letter.charCodeAt(0));
  const hasSimd = typeof WebAssembly === 'object' && WebAssembly.validate(bytes);
  if (hasSimd && !plainly) {
    const module = new WebAssembly.Module(bytes);
    return new WebAssembly.Instance(module, {course: {memory}}).exports.product;
  }
  const floats = new Float32Array(memory.buffer);
  return (x, w, y, rows, outputs, columns, xStep, wStep, yStep) => {
    for (let r = 0; r < rows; r++) for (let o = 0; o < outputs; o++) {
      const xRow = (x + r * xStep) / 4, wRow = (w + o * wStep) / 4;  // addresses count in bytes
      let sum = 0;
      for (let k = 0; k < columns; k++) sum += floats[xRow + k] * floats[wRow + k];
      floats[(y + r * yStep) / 4 + o] = sum;
    }
  };
};
