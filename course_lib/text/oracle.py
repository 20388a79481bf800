"""The oracle: the exact probability of every word at a position of a story, given all its other
words.

It knows the rules (words, facts, frames, plans) and applies Bayes' rule to the generator itself, so
no model that sees the same words or fewer can be right more often in the long run. A masked model
sees fewer (15% are hidden), so for it the oracle is an upper bound. The one thing the oracle leaves
out is the hash that splits sentences into training and held-out; that is a coin flip of a
sentence's text and tells nothing about which word is likelier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from course_lib.text.grammar import Form, Grammar, Hole, RulesError
from course_lib.text.world import MicroWorld, Story

Words = Sequence[str]
Evidence = dict[str, frozenset[int]]  # role -> rows of its table that every mention allows


class Oracle:
    """Exact inference in a micro-world. Topics are summed over; a role whose row is not certain is,
    too."""

    def __init__(self, world: MicroWorld):
        self.world = world
        self.grammar: Grammar = world.grammar
        self._plans: dict[tuple[str, ...], float] = {}
        for plan in self.grammar.plans:
            self._plans[plan.stages] = self._plans.get(plan.stages, 0.0) + plan.weight
        self._by_length: dict[int, list[Form]] = {}
        for form in self.grammar.all_forms:
            self._by_length.setdefault(len(form.items), []).append(form)
        self._index = {hole: self._rows_by_word(hole) for hole in self._holes()}
        self._mass = lru_cache(maxsize=200_000)(self._mass_of)
        check_unambiguous(self.grammar, self._index)

    def score(self, story: Story, sentence: int, word: int) -> dict[str, float]:
        """{word: probability} of the position, given every other word; words that cannot stand
        there are left out.

        `sentence` and `word` count from 0. IndexError outside the story; ValueError when the rest
        of the story is not one this world tells.
        """
        sentences = story.words
        if not 0 <= sentence < len(sentences) or not 0 <= word < len(sentences[sentence]):
            raise IndexError(
                f"Asked for word {word} of sentence {sentence}; the story's sentences have "
                f"{[len(s) for s in sentences]} words, both counted from 0."
            )
        return self.posterior(sentences, sentence, word)

    def posterior(self, sentences: Sequence[Words], sentence: int, word: int) -> dict[str, float]:
        """As `score`, for sentences given as words."""
        joint = self.joint(sentences, sentence, word)
        total = sum(joint.values())
        if not total:
            raise ValueError(
                f"No word makes {[' '.join(s) for s in sentences]} a story of this world."
            )
        return {
            w: p / total for w, p in sorted(joint.items(), key=lambda pair: (-pair[1], pair[0]))
        }

    def joint(self, sentences: Sequence[Words], sentence: int, word: int) -> dict[str, float]:
        """{word: probability of the whole story with that word at the position}, zeros left out."""
        others = [self._parse(tuple(s)) for i, s in enumerate(sentences) if i != sentence]
        if any(parse is None for parse in others):
            return {}
        evidence = _meet([parse[1] for parse in others if parse])
        stages = [parse[0] for parse in others if parse]
        known = self.grammar.topic_weights * self._product(evidence, set())
        result: dict[str, float] = {}
        for form, here in self._matches(tuple(sentences[sentence]), word):
            plan = self._plans.get((*stages[:sentence], form.frame.stage, *stages[sentence:]), 0.0)
            frames = [*stages, form.frame.stage]
            scale = plan / float(np.prod([len(self.grammar.frames[s]) for s in frames]))
            if scale:
                self._add(result, form.items[word], scale, known, evidence, here)
        return result

    def best(self, story: Story, sentence: int, word: int) -> str:
        """The likeliest word of the position (ties: the first in the alphabet)."""
        return next(iter(self.score(story, sentence, word)))

    def accuracy(
        self, stories: Sequence[Story], positions: Iterable[tuple[int, int, int]]
    ) -> float:
        """Fraction of positions (story, sentence, word) where the likeliest word is the one that
        stands there."""
        hits = [self.best(stories[i], s, w) == stories[i].words[s][w] for i, s, w in positions]
        return float(np.mean(hits))

    def _add(self, masses, item, scale, known, evidence, here) -> None:
        """Add one reading of the sentence to `masses`: known / what changes * what it becomes,
        summed over topics."""
        merged = {
            role: rows & evidence[role] if role in evidence else rows for role, rows in here.items()
        }
        target = item.role if isinstance(item, Hole) else None
        before = self._product({r: evidence[r] for r in here if r in evidence}, set())
        base = np.divide(known, before, out=np.zeros_like(known), where=before > 0)
        base = scale * base * self._product(merged, {target})
        if target is None:
            masses[item] = masses.get(item, 0.0) + float(base.sum())
            return
        for row in merged[target]:
            words = self.grammar.column(item.role, item.path)[row]
            p = float(base @ self.grammar.prior[target][:, row])
            if p and len(words) == item.parts:
                masses[words[item.part]] = masses.get(words[item.part], 0.0) + p

    def _product(self, evidence: Evidence, leave_out: set[str | None]) -> np.ndarray:
        """Probability of the mentions of each role given the topic, multiplied: (topics,)."""
        product = np.ones(len(self.grammar.topics))
        for role, rows in evidence.items():
            if role not in leave_out:
                product = product * self._mass(role, rows)
        return product

    def _mass_of(self, role: str, rows: frozenset[int]) -> np.ndarray:
        return self.grammar.prior[role][:, sorted(rows)].sum(1)

    def reads(self, words: Words) -> bool:
        """Whether the world can say this sentence: some frame gives it, and no fact denies it."""
        return self._parse(tuple(words)) is not None

    def _parse(self, words: tuple[str, ...]) -> tuple[str, Evidence] | None:
        """The stage of a whole sentence and what it says of its roles; None if none gives it."""
        for form, evidence in self._matches(words, None):
            return form.frame.stage, evidence
        return None

    def _matches(self, words: tuple[str, ...], hidden: int | None) -> list[tuple[Form, Evidence]]:
        """The forms that give these words, whatever stands at position `hidden`."""
        result = []
        for form in self._by_length.get(len(words), []):
            evidence = self._match(form, words, hidden)
            if evidence is not None:
                result.append((form, evidence))
        return result

    def _match(self, form: Form, words: Words, hidden: int | None) -> Evidence | None:
        for i, (item, word) in enumerate(zip(form.items, words, strict=True)):
            if isinstance(item, str) and item != word and i != hidden:
                return None
        evidence: Evidence = {}
        for i, (item, word) in enumerate(zip(form.items, words, strict=True)):
            if isinstance(item, Hole):
                index = self._index[item]
                rows = index[""] if i == hidden else index.get(word, frozenset())
                rows = rows & evidence[item.role] if item.role in evidence else rows
                if not rows:
                    return None
                evidence[item.role] = rows
        return evidence

    def _holes(self) -> set[Hole]:
        return {i for form in self.grammar.all_forms for i in form.items if isinstance(i, Hole)}

    def _rows_by_word(self, hole: Hole) -> dict[str, frozenset[int]]:
        """{word: rows that put it in the hole}; "" maps to all rows whose name has the
        hole's length."""
        rows: dict[str, set[int]] = {"": set()}
        for row, words in enumerate(self.grammar.column(hole.role, hole.path)):
            if len(words) == hole.parts:
                rows[""].add(row)
                rows.setdefault(words[hole.part], set()).add(row)
        return {word: frozenset(result) for word, result in rows.items()}


def _meet(parts: Iterable[Evidence]) -> Evidence:
    """What all sentences together say of each role."""
    together: Evidence = {}
    for evidence in parts:
        for role, rows in evidence.items():
            together[role] = together[role] & rows if role in together else rows
    return together


def check_unambiguous(grammar: Grammar, index: dict[Hole, dict[str, frozenset[int]]]) -> None:
    """Raise RulesError when two frames can give the same sentence: then no sentence would tell its
    frame."""
    forms = sorted(grammar.all_forms, key=lambda form: len(form.items))
    for i, a in enumerate(forms):
        for b in forms[i + 1 :]:
            if len(b.items) > len(a.items):
                break
            pairs = zip(a.items, b.items, strict=True)
            if all(_sayable(x, index) & _sayable(y, index) for x, y in pairs):
                raise RulesError(
                    f"Sentences {a.frame.stage}.{a.frame.name} and "
                    f"{b.frame.stage}.{b.frame.name} can give the "
                    "same words; expected every sentence to have one reading. Change a word "
                    "of one of them."
                )


def _sayable(item: str | Hole, index: dict[Hole, dict[str, frozenset[int]]]) -> set[str]:
    return {item} if isinstance(item, str) else set(index[item]) - {""}
