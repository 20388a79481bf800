"""The micro-world: an invented world told in simple English by a seeded generator, whose rules one
can read and edit. It can be told in Chinese too, and in two invented languages: the same rows and
frames, the other words.

`MicroWorld.load()` reads `data/world/`; `world.stories(20_000)` tells stories. What is known about
it exactly (the oracle) is in `oracle.py`, the grammar behind both in `grammar.py`.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect, bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from course_lib.files import data_path
from course_lib.objectives.sequences import PackedSequences, SpecialIds, pack, to_sequences
from course_lib.text.grammar import Frame, Grammar, Hole, RulesError, hash_of
from course_lib.text.wordpiece import WordPiece

SPLITS = ("train", "heldout")
TRIES = 200  # redraws of one sentence before the whole story is begun anew
KINDS = ("function", "agreement", "repeated", "fact", "name", "free")


def languages(folder: str | Path | None = None) -> list[str]:
    """The languages of a world (default: the shipped one): its folders, in alphabetical order."""
    folder = Path(folder) if folder else data_path("world", "rules.toml").parent
    return sorted(words.parent.name for words in folder.glob("*/words.toml"))


class Trace(NamedTuple):
    """Where a word of a story comes from.

    `slot` is "" for a word of the frame itself, else what the frame asks for ("hero.job"); `entity`
    is the key of the row that fills the role; `kind` says what a reader needs to guess the word:
    function (the frame) · agreement · repeated (it stands elsewhere in the story) · fact (another
    word about the same entity does) · name (a further word of the same name) · free (nothing tells
    it but its topic and frame).
    """

    word: str
    frame: str
    slot: str
    role: str
    entity: str
    kind: str


@dataclass(frozen=True)
class Story:
    """A story: sentences of space-separated lower-case words, each ending in a full stop."""

    sentences: tuple[str, ...]
    topic: str
    frames: tuple[str, ...]  # "stage.name" of each sentence
    rows: dict[str, int] = field(repr=False, compare=False)  # role -> row of its table
    world: MicroWorld = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        return " ".join(self.sentences)

    @property
    def written(self) -> str:
        """The text as its language writes it: in Chinese without spaces."""
        return self.text.replace(" ", self.world.grammar.between)

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(s.split()) for s in self.sentences)

    def told_in(self, world: MicroWorld) -> Story:
        """The same story in another language of the world: same frames, same rows. Its sentences
        may be of neither split there. Raises ValueError where a frame is not known."""
        return world.tell(self)

    def with_gap(self, kind: str) -> tuple[str, str, str]:
        """The story's two halves with [MASK] for its last word of this kind, and the masked word.

        Raises ValueError when the story has no such word; `kind` is one of those of `Trace`.
        """
        places = [(s, w) for s, line in enumerate(self.trace) for w in range(len(line))]
        at = [(s, w) for s, w in places if self.trace[s][w].kind == kind]
        if not at:
            have = ", ".join(sorted({t.kind for line in self.trace for t in line}))
            raise ValueError(f"Asked to hide a {kind!r} word; this story has words of kind {have}.")
        sentences = [list(sentence) for sentence in self.words]
        hidden, sentences[at[-1][0]][at[-1][1]] = sentences[at[-1][0]][at[-1][1]], "[MASK]"
        half = len(sentences) // 2
        first, second = (" ".join(chain(*part)) for part in (sentences[:half], sentences[half:]))
        return first, second, hidden

    @cached_property
    def trace(self) -> tuple[tuple[Trace, ...], ...]:
        """For every sentence, for every word, where it comes from."""
        return self.world.trace(self)


Parts = list[tuple[str, list[str]]]  # of a frame: a role, "" for none, and its text for each row


def _text(parts: Parts, rows: Mapping[str, int]) -> str:
    return " ".join([texts[rows[role]] if role else texts[0] for role, texts in parts])


class MicroWorld:
    """One language of one world. `version` and `hash` identify the rules; results record both."""

    def __init__(self, grammar: Grammar, hash: str):
        self.grammar = grammar
        self.hash = hash
        self.version = str(grammar.rules.get("version", ""))
        self._frames = {f.key: f for fs in grammar.frames.values() for f in fs}
        self._parts = {name: self._compile(f) for name, f in self._frames.items()}
        self._choices = {
            role: [_choices(p) for p in prior] for role, prior in grammar.prior.items()
        }
        self._plan_steps = _steps([p.weight for p in grammar.plans])
        self._topic_steps = _steps(grammar.topic_weights.tolist())
        self._end = int(grammar.rules.get("heldout_words", 5))
        self._ends = {name: self._ends_of(parts) for name, parts in self._parts.items()}
        self._end_roles = {
            name: [[role for role, _ in parts if role] for parts in ends]
            for name, ends in self._ends.items()
        }
        self._end_reserved = lru_cache(maxsize=500_000)(self._is_end_reserved)
        self._words_of = lru_cache(maxsize=None)(self._holes)
        self._agreement = set(grammar.rules.get("grammar", {}).get("agreement", []))
        self._limit = int(grammar.heldout_share * 2**32)

    @classmethod
    def load(cls, folder: str | Path | None = None, *, language: str = "english") -> MicroWorld:
        """The world of `folder` (default: the shipped `data/world`, checked against the manifest).

        Raises RulesError (a ValueError) that says which file, table or sentence is wrong and what
        was expected.
        """
        names = ("rules.toml", f"{language}/words.toml", f"{language}/sentences.toml")
        if (known := languages(folder)) and language not in known:
            raise RulesError(
                f"language={language!r} was given; expected one of {', '.join(known)}, or a folder "
                "of that name beside them, with words.toml and sentences.toml."
            )
        if folder is None:
            paths = [data_path("world", *name.split("/")) for name in names]
            folder = paths[0].parent
        else:
            paths = [Path(folder, name) for name in names]
        grammar = Grammar.read(Path(folder), language)
        if not grammar.rules.get("version"):
            raise RulesError(f'{paths[0]} has no version; expected a line such as version = "1.0".')
        return cls(grammar, hash_of(paths))

    @cached_property
    def vocab(self) -> list[str]:
        """Every word the world can say, in alphabetical order (without the special tokens)."""
        return self.grammar.vocabulary()

    @cached_property
    def tokenizer(self) -> WordPiece:
        """A WordPiece vocabulary in which every word of the world is one piece; where no spaces
        part the words (Chinese), every character, as in BERT's."""
        between = self.grammar.between
        return WordPiece.from_words(self.vocab if between else sorted(set("".join(self.vocab))))

    @property
    def special(self) -> SpecialIds:
        return self.tokenizer.special

    def stories(self, n: int, seed: int = 0, split: str = "train") -> list[Story]:
        """`n` stories, the same for the same seed on every platform; the first ones do not depend
        on `n`.

        Every sentence is one of its split (`split_of`): the generator draws it again until it is.
        """
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"Asked for {n!r} stories; expected a whole number, at least 1.")
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}; expected one of {SPLITS}.")
        rng = random.Random(f"micro-world {seed} {split}").random
        return [self._story(rng, split == "heldout") for _ in range(n)]

    def documents(self, stories: Sequence[Story]) -> list[list[list[int]]]:
        """Stories as documents of sentences of ids: what `make_pairs` and the count models take."""
        ids = {word: self.tokenizer.encode(word) for word in self.vocab}
        return [[[i for w in line for i in ids[w]] for line in story.words] for story in stories]

    def sequences(self, stories: Sequence[Story], length: int = 64) -> StorySequences:
        """Whole stories, one a sequence: [CLS] first half [SEP] second half [SEP], label 0
        (IsNext)."""
        packed, origins = [], []
        for story, document in zip(stories, self.documents(stories), strict=True):
            half = len(document) // 2
            a, b = (list(chain(*part)) for part in (document[:half], document[half:]))
            packed.append(pack(a, b, self.special, length))
            where = [
                (s, w)
                for s, line in enumerate(story.words)
                for w, word in enumerate(line)
                for _ in self.tokenizer.encode(word)
            ]
            filled = [(-1, -1), *where[: len(a)], (-1, -1), *where[len(a) :]]
            origins.append(filled + [(-1, -1)] * (length - len(filled)))
        sequences = to_sequences(packed)
        labels = torch.zeros(len(stories), dtype=torch.int64)
        sequences = PackedSequences(
            sequences.input_ids, sequences.attention_mask, sequences.token_type_ids, labels
        )
        return StorySequences(list(stories), sequences, torch.tensor(origins))

    def tell(self, story: Story) -> Story:
        """A story of this world, of any language, in this world's: see `Story.told_in`."""
        unknown = [name for name in story.frames if name not in self._parts]
        if unknown:
            raise ValueError(
                f"The story has the frames {unknown}, which this language does not know; it has "
                f"{list(self._parts)}."
            )
        sentences = tuple(_text(self._parts[name], story.rows) for name in story.frames)
        return Story(sentences, story.topic, story.frames, story.rows, self)

    def trace(self, story: Story) -> tuple[tuple[Trace, ...], ...]:
        """Where every word of a story comes from; `story.trace` is the same."""
        items = [self._items(story, name) for name in story.frames]
        seen: dict[tuple[str, str], int] = {}
        mentions: dict[str, int] = {}
        for sentence in items:
            for word, hole in sentence:
                if hole:
                    seen[hole.role, word] = seen.get((hole.role, word), 0) + 1
                    if hole.part == 0:
                        mentions[hole.role] = mentions.get(hole.role, 0) + 1
        return tuple(
            tuple(self._trace(story, name, word, hole, seen, mentions) for word, hole in sentence)
            for name, sentence in zip(story.frames, items, strict=True)
        )

    def _compile(self, frame: Frame) -> Parts:
        """The frame as (role, text for each row) pairs; role "" for words of the frame."""
        parts: Parts = []
        for item in frame.items:
            if isinstance(item, Hole):
                texts = self.grammar.column(item.role, item.path)
                parts.append((item.role, [" ".join(words) for words in texts]))
            else:
                parts.append(("", [item]))
        return parts

    def _story(self, rng, heldout: bool) -> Story:
        while True:
            topic = bisect(self._topic_steps, rng())
            plan = self.grammar.plans[bisect(self._plan_steps, rng())]
            rows: dict[str, int] = {}
            sentences: list[tuple[str, Frame]] = []
            for stage in plan.stages:
                sentence = self._sentence(rng, stage, topic, rows, heldout)
                if sentence is None:
                    break
                sentences.append(sentence)
            else:
                frames = tuple(frame.key for _, frame in sentences)
                return Story(
                    tuple(s for s, _ in sentences), self.grammar.topics[topic], frames, rows, self
                )

    def _sentence(self, rng, stage, topic, rows, heldout) -> tuple[str, Frame] | None:
        """Draw a frame and the roles it needs, again until the sentence is on the wanted side of
        the split."""
        frames = self.grammar.frames[stage]
        known = set(rows)
        for _ in range(TRIES):
            frame = frames[int(rng() * len(frames))]
            for role in frame.roles:
                if role not in known:
                    row_numbers, steps = self._choices[role][topic]
                    rows[role] = row_numbers[bisect(steps, rng())]
            for end, roles in enumerate(self._end_roles[frame.key]):
                if self._end_reserved(frame.key, end, tuple([rows[r] for r in roles])) != heldout:
                    break
            else:
                drawn = {role: rows[role] for role in frame.roles if role not in known}
                for role in set(rows) - known:  # those of earlier tries go
                    del rows[role]
                rows.update(drawn)
                return _text(self._parts[frame.key], rows), frame
        return None

    def _ends_of(self, parts: Parts) -> tuple[Parts, Parts]:
        """As many parts from the beginning, and from the end, as hold the words that are hashed,
        whichever rows are drawn: few roles, so that what is known of an end serves often."""
        return self._first(parts), self._first(parts[::-1])[::-1]

    def _first(self, parts: Parts) -> Parts:
        held = list(accumulate(min(len(text.split()) for text in texts) for _, texts in parts))
        return parts[: 1 + bisect_left(held, self._end)]

    def _is_end_reserved(self, name: str, end: int, rows: tuple[int, ...]) -> bool:
        parts, number = self._ends[name][end], iter(rows)
        words = " ".join(texts[next(number)] if role else texts[0] for role, texts in parts).split()
        return self._is_reserved(words[-self._end :] if end else words[: self._end])

    def split_of(self, sentence: str) -> str | None:
        """ "train", "heldout", or None for a sentence that stories of neither split hold.

        The first five and the last five words of a sentence (the full stop is one) are hashed; each
        end is held out with the chance `heldout_share`. A training sentence has no such end, a
        held-out one has two. Nearly every eight words in a row, also across two sentences, hold a
        whole end: so not only held-out sentences are new, nearly all their parts are.
        """
        sides = {self._fits(sentence, False): "train", self._fits(sentence, True): "heldout"}
        return sides.get(True)

    def _fits(self, sentence: str, heldout: bool) -> bool:
        words = sentence.split()
        ends = words[: self._end], words[-self._end :]
        return all(self._is_reserved(end) == heldout for end in ends)

    def _is_reserved(self, words: list[str]) -> bool:
        digest = hashlib.blake2b(" ".join(words).encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") < self._limit

    def _items(self, story: Story, name: str) -> list[tuple[str, Hole | None]]:
        pairs: list[tuple[str, Hole | None]] = []
        for item in self._frames[name].items:
            if isinstance(item, str):
                pairs.append((item, None))
            else:
                pairs += self._words_of(item.role, item.path, story.rows[item.role])
        return pairs

    def _holes(self, role: str, path: str, row: int) -> list[tuple[str, Hole | None]]:
        words = self.grammar.column(role, path)[row]
        return [(word, Hole(role, path, k, len(words))) for k, word in enumerate(words)]

    def _trace(self, story, frame, word, hole, seen, mentions) -> Trace:
        if hole is None:
            return Trace(word, frame, "", "", "", "function")
        row = self.grammar.tables[self.grammar.roles[hole.role]][story.rows[hole.role]]
        entity = next(iter(row.values())).replace("_", " ")
        kind = self._kind(word, hole, seen, mentions)
        return Trace(word, frame, hole.slot, hole.role, entity, kind)

    def _kind(self, word: str, hole: Hole, seen, mentions) -> str:
        if hole.path.split(".")[-1] in self._agreement:
            return "agreement"
        if seen[hole.role, word] > 1:
            return "repeated"
        if mentions[hole.role] > 1:
            return "fact"
        return "name" if hole.parts > 1 else "free"


def _steps(shares: list[float]) -> list[float]:
    """Where each choice ends on the line from 0 to 1, without the last: for `bisect` with a random
    number."""
    return list(accumulate(shares))[:-1]


def _choices(probabilities: np.ndarray) -> tuple[list[int], list[float]]:
    """The rows with some probability, and their steps."""
    rows = probabilities.nonzero()[0]
    return rows.tolist(), _steps(probabilities[rows].tolist())


@dataclass(frozen=True)
class StorySequences:
    """Whole stories as sequences, and where each position comes from.

    `places` is (N, T, 2): sentence and word of the position in its story, -1 for special tokens and
    padding.
    """

    stories: list[Story]
    sequences: PackedSequences
    origins: torch.Tensor

    def positions(self, selected: torch.Tensor) -> list[tuple[int, int, int]]:
        """(story, sentence, word) of every position that `chosen` (N, T) marks, in order."""
        n, t = selected.nonzero(as_tuple=True)
        return [
            (i, s, w) for i, (s, w) in zip(n.tolist(), self.origins[n, t].tolist(), strict=True)
        ]

    def kinds(self, positions: Iterable[tuple[int, int, int]]) -> list[str]:
        """The kind (see Trace) of every position."""
        return [self.stories[i].trace[s][w].kind for i, s, w in positions]


def story_sequences(world: MicroWorld, stories: Sequence[Story], length: int) -> PackedSequences:
    """One story a sequence, [CLS] story [SEP], all of it one segment."""
    documents = world.documents(stories)
    return to_sequences([pack(list(chain(*d)), None, world.special, length) for d in documents])
