// WordPiece: text into pieces of a fixed vocabulary, longest first. The same four steps as in
// course_lib/text/wordpiece.py, and the same ids: normalise, split into words, longest match, ids.
// vocab: the pieces in the order of their ids; settings: what a BertNormalizer has.
'use strict';
window.courseWordPiece = (vocab, settings) => {
  const ids = new Map(vocab.map((piece, id) => [piece, id]));
  const CONTROL = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\ufffd]/gu;
  const WHITE = '\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
  const SPACE = new RegExp(`[${WHITE}]`, 'gu'), WORD = new RegExp(`[^${WHITE}]+`, 'gu');
  const PUNCTUATION = /[!-/:-@[-`{-~]|\p{P}/gu;  // ASCII's signs stand alone, too: $ + < ^
  // Ideographs are written without spaces between words, so each is a word of its own.
  const IDEOGRAPH = new RegExp('[\\u4e00-\\u9fff\\u3400-\\u4dbf\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2b73f}'
    + '\\u{2b740}-\\u{2b81f}\\u{2b920}-\\u{2ceaf}\\uf900-\\ufaff\\u{2f800}-\\u{2fa1f}]', 'gu');
  const special = settings.added_tokens.map(token => token.replace(/[[\]()*+?.\\^$|{}]/g, '\\$&'));
  const SPECIAL = new RegExp(`(${special.join('|') || '(?!)'})`, 'u');

  function normalise(text) {
    if (settings.clean_text) text = text.replace(/[\t\n\r]/g, ' ').replace(CONTROL, '').replace(SPACE, ' ');
    if (settings.handle_chinese_chars) text = text.replace(IDEOGRAPH, ' $& ');
    if (settings.strip_accents) text = text.normalize('NFD').replace(/\p{Mn}/gu, '');
    // Letter by letter: a whole word would give a Greek sigma its other form at the end.
    return settings.lowercase ? Array.from(text, letter => letter.toLowerCase()).join('') : text;
  }
  const splitWords = text => text.replace(PUNCTUATION, ' $& ').match(WORD) || [];

  // A word as pieces of the vocabulary, always taking the longest that fits: un ##aff ##able.
  function longestMatch(word) {
    const letters = Array.from(word), pieces = [];
    if (letters.length > settings.max_chars) return ['[UNK]'];
    for (let start = 0, end; start < letters.length; start = end) {
      const piece = () => (start ? '##' : '') + letters.slice(start, end).join('');
      for (end = letters.length; end > start && !ids.has(piece()); end--);
      if (end === start) return ['[UNK]'];
      pieces.push(piece());
    }
    return pieces;
  }
  // The pieces of a text. A special token written out, such as [MASK], stays whole.
  const tokenize = text => text.split(SPECIAL).flatMap((part, n) =>
    n % 2 ? [part] : splitWords(normalise(part)).flatMap(longestMatch));
  return {ids, vocab, tokenize, encode: text => tokenize(text).map(piece => ids.get(piece))};
};
