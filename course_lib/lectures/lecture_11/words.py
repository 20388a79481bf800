"""`11_words`: how far the domains' words are from the general ones.

For each domain: pieces a word under three vocabularies, how many of its frequent words the general
text has among its own, how long its sentences are, how many Latin phrases and subordinate clauses
they have, and how much of the held-out text stands in the text to learn from, split by family and
split at random."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from statistics import median
from typing import Any

from course_lib.checkpoints import MissingCheckpoint, load_pretrained
from course_lib.teaching.results import made_with
from course_lib.text.documentation import documentation_slice, split_sentences
from course_lib.text.domains import SOURCES, domain, repeated
from course_lib.text.wordpiece import WordPiece, train_wordpiece
from course_lib.text.world import MicroWorld
from course_lib.train.new_vocabulary import fertility

PARAGRAPHS, FREQUENT = 20_000, 2_000
EXAMPLES = (
    "metformin", "ibuprofen", "aspirin", "EGFR", "BRCA1", "TP53", "diabetic retinopathy",
    "indemnify", "hereinafter", "amortization", "volatility",
)  # fmt: skip

LATIN = (
    "ab initio", "ad hoc", "bona fide", "de facto", "de minimis", "et seq", "infra", "inter alia",
    "ipso facto", "mutatis mutandis", "pari passu", "per se", "prima facie", "pro rata",
    "sine qua non", "supra", "ultra vires", "vice versa",
)  # fmt: skip
CLAUSES = (  # words that open a subordinate clause
    "although", "because", "if", "provided", "that", "unless", "when", "where", "whereas",
    "whether", "which", "while", "who", "whose",
)  # fmt: skip


def paragraphs(name: str, split: str) -> list[str]:
    """Of a domain, or of "general" documentation."""
    if name == "general":
        return documentation_slice(PARAGRAPHS if split == "train" else 2_000, split).paragraphs
    return domain(name).corpus(split).paragraphs


@lru_cache(maxsize=4)
def own_vocabulary(name: str, size: int = 8_192) -> WordPiece:
    """A vocabulary of the domain's text to learn from."""
    return train_wordpiece(paragraphs(name, "train"), size)


@lru_cache(maxsize=1)
def vocabularies() -> dict[str, WordPiece]:
    """The course's, and bert-base-uncased's where MiniLM, which has it, is installed."""
    result = {"course": load_pretrained("course-bert").tokenizer}
    with suppress(MissingCheckpoint):
        result["bert-base"] = load_pretrained("all-MiniLM-L6-v2").tokenizer
    return result  # type: ignore[return-value]


def frequent(texts: Sequence[str], count: int = FREQUENT) -> set[str]:
    """The most frequent words of letters."""
    tokenizer = vocabularies()["course"]
    words = Counter(w for text in texts for w in tokenizer.words(text) if w.isalpha())
    return {word for word, _ in words.most_common(count)}


def count(phrases: Sequence[str], texts: Sequence[str]) -> int:
    """How often any of these phrases stands in the texts, as whole words."""
    pattern = re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)
    return sum(len(pattern.findall(text)) for text in texts)


def shared(name: str, learn: Sequence[str]) -> float:
    """The fraction of a domain's frequent words that general text has among its own; of general
    text, that one half of its modules has of the other half's."""
    general = paragraphs("general", "train")
    if name == "general":
        learn, general = general[: len(general) // 2], general[len(general) // 2 :]
    return len(frequent(learn) & frequent(general)) / FREQUENT


def measured(name: str) -> dict[str, Any]:
    """Everything of one domain, on its held-out text; frequent words of what is learnt from."""
    held, learn = paragraphs(name, "heldout"), paragraphs(name, "train")
    lengths = [len(s.split()) for p in held for s in split_sentences(p)]
    numbers: dict[str, Any] = {
        "words": sum(len(p.split()) for p in learn + held),
        "fertility": {which: fertility(v, held) for which, v in vocabularies().items()}
        | {"own": fertility(own_vocabulary(name), held)},
        "shared": shared(name, learn),
        "sentence": {"median": median(lengths), "mean": sum(lengths) / len(lengths)},
        "latin": 10_000 * count(LATIN, learn + held) / sum(len(p.split()) for p in learn + held),
        "clauses": count(CLAUSES, held) / len(lengths),
    }
    if name != "general":
        numbers["repeated"] = {
            "by family": _repeated(name, True),
            "at random": _repeated(name, False),
        }
    return numbers


def _repeated(name: str, by_family: bool) -> float:
    documents = domain(name).documents
    held = [d.split == "heldout" for d in documents]
    if not by_family:
        random.Random(0).shuffle(held)
    of = {side: [d.paragraphs for d, h in zip(documents, held, strict=True) if h is side]
          for side in (True, False)}  # fmt: skip
    return repeated(of[True], of[False])


def build_words() -> dict[str, Any]:
    """What data/results/11_words.json holds."""
    read = {name: domain(name) for name in SOURCES}
    return {
        "domains": {name: measured(name) for name in ("general", *SOURCES)},
        "packages": {SOURCES[name].distribution: one.version for name, one in read.items()},
        "licences": {SOURCES[name].distribution: one.licence for name, one in read.items()},
        "hash": {name: one.hash for name, one in read.items()},
        "pieces": {word: {which: v.tokenize(word) for which, v in
                          (*vocabularies().items(), ("medicine", own_vocabulary("medicine")))}
                   for word in EXAMPLES},
        **made_with(MicroWorld.load()),
    }  # fmt: skip


RESULTS = {"11_words": build_words}
