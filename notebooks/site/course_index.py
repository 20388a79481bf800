"""What page 17's playground searches: the sections of all pages, by their words and by vectors."""

from __future__ import annotations

import re
import warnings
from typing import Any

import bm25s
import snowballstemmer
import torch
from docutils.nodes import make_id
from weights import LETTERS, as_letters

from course_lib.encoder import Encoder
from course_lib.lectures.lecture_17 import course
from course_lib.lectures.lecture_17.search import READ
from course_lib.search import Section, index_of
from course_lib.teaching.results import stored
from course_lib.text.wordpiece import WordPiece
from course_lib.train.sentence_encoder import SentenceEncoder

SEARCHER = "search-encoder"
WAY = "bi-encoder"  # of page 17
MIDDLE = (len(LETTERS) - 1) // 2  # the letter of 0


def index_for(encoder: Encoder, tokenizer: WordPiece) -> dict[str, Any]:
    """As models/search.js reads it, by a trained encoder. sections: page, anchor, heading and first
    sentence; of: the section of each piece that the model read; vectors: the pieces', a letter a
    number, in units of `unit`; words: {stem: [section, 1,000 times its BM25 score, section, …]};
    stems: of the words that are not their own; weight: of the model in the mix."""
    sections = {n: one for n, one in enumerate(course.sections()) if one.page != "README.md"}
    texts, of = course.pieces()
    chosen = [(text, n) for text, n in zip(texts, of.tolist(), strict=True) if n in sections]
    model = SentenceEncoder(encoder, tokenizer, length=READ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the few pieces that are cut
        vectors = model.encode([text for text, _ in chosen])
    unit = float(vectors.abs().max()) / MIDDLE
    run, *_ = stored("17_course")["runs"][WAY]
    return {
        "sections": [_shown(one) for one in sections.values()],
        "of": [n for _, n in chosen],
        "vectors": as_letters((vectors / unit).round().int().numpy() + MIDDLE),
        "unit": unit,
        "words": _words(list(sections.values())),
        "stems": _stems(list(sections.values())),
        "unsearched": list(bm25s.stopwords.STOPWORDS_EN),
        "weight": run["weight"],
    }


def _shown(section: Section) -> list[str]:
    page = section.page.replace(".ipynb", ".html")
    return [page, make_id(section.heading), section.heading, section.first_sentence]


def _words(sections: list[Section]) -> dict[str, list[int]]:
    """BM25's scores: a document's is the sum over the words that are asked for."""
    index = index_of(sections)
    words = {}
    for stem in filter(None, sorted(index.index.vocab_dict)):  # "" is bm25s's own
        scores = torch.from_numpy(index.index.get_scores([stem]))
        of = scores.nonzero()[:, 0].tolist()
        words[stem] = [number for n in of for number in (n, round(1_000 * float(scores[n])))]
    return {stem: numbers for stem, numbers in words.items() if numbers}


def _stems(sections: list[Section]) -> dict[str, str]:
    """The page's own stemmer is of another version than ours: a few words differ."""
    texts = (f"{one.title} {one.heading} {one.text}".lower() for one in sections)
    words = sorted({word for text in texts for word in re.findall(r"\w\w+", text)})
    pairs = zip(words, snowballstemmer.stemmer("english").stemWords(words), strict=True)
    return {word: stem for word, stem in pairs if word != stem}
