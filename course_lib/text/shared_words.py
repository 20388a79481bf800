"""How many words two languages share is a setting: a language of the micro-world told with a stated
fraction of its words replaced by the English ones of the same meaning.

At 0 no word is shared, at 1 every word is English and only word order and grammar differ. The words
of 0.1 are among those of 0.3: each word's place in the order is a hash of its meaning, whatever it
is (a name, a verb, "with"). Words are counted as they are spelled, so hauls and haul are two, and
punctuation is not counted. Two words of one meaning (Norlish sin and siz, English her) become one,
so that the fraction of shared types is as stated to within half a per cent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from course_lib.config import check_choice
from course_lib.files import data_path
from course_lib.text.grammar import Grammar, Row, read_toml
from course_lib.text.world import MicroWorld, Story, languages

ENGLISH = "english"
GLOSSES = "glosses"  # the table of the words of a language's sentences
NOT_WORDS = ("topic", "sex")  # columns that no sentence says
MARKED = dict(
    zip("aeiouy", "æəıøʉƴ", strict=True)
)  # letters that English lacks and NFD leaves whole


@dataclass(frozen=True)
class SharedWords:
    """The fraction of a language's words that another has too: of types, and of a text's tokens."""

    types: float
    tokens: float


def meanings(language: str) -> dict[str, str]:
    """{word of the language: the English word in the same place of the tables}; for the words of
    its sentences, what its table `glosses` says. English: every word itself.

    Raises ValueError for a language without a folder, and for one without that table (Chinese,
    whose words have not each one English word)."""
    check_choice("language", language, languages())
    english = MicroWorld.load()
    if language == ENGLISH:
        return {word: word for word in english.vocab}
    tables = dict(MicroWorld.load(language=language).grammar.tables)
    if GLOSSES not in tables:
        raise ValueError(
            f"{language} has no table `{GLOSSES}`, which says what English word each word of its "
            "sentences stands for. Take a language that has, such as norlish."
        )
    result = {row["word"]: row["english"] for row in tables.pop(GLOSSES)}
    for name, rows in tables.items():
        for row, other in zip(rows, english.grammar.tables[name], strict=True):
            for column in (c for c in row if c not in NOT_WORDS):
                pairs = zip(row[column].split("_"), other[column].split("_"), strict=True)
                result.update(pairs)
    return result


def with_shared_words(language: str, fraction: float) -> MicroWorld:
    """The world told in `language` with this fraction of its word types spelled as in English, and
    no other word spelled so: one that is by nature gets a letter of its own (goka, gokæ). English
    itself can be given, too: then only spelling differs.

    Its hash is its own. Raises ValueError for a fraction outside 0 to 1, and as `meanings`."""
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"fraction={fraction!r} was given; expected 0 (no word shared) to 1 (all words shared)."
        )
    english_of = meanings(language)
    world, english = MicroWorld.load(language=language), MicroWorld.load()
    words = [word for word in world.vocab if word.isalpha()]
    order = sorted(words, key=lambda word: (_place(english_of[word]), word))
    shared, known = order[: round(fraction * len(order))], set(english.vocab)
    spelling = {word: own_spelling(word) for word in words if word in known}
    spelling |= {word: english_of[word] for word in shared}
    grammar = world.grammar
    sentences = read_toml(data_path("world", language, "sentences.toml"))
    translated = Grammar(
        grammar.rules,
        {n: _respelled_table(t, spelling) for n, t in grammar.tables.items() if n != GLOSSES},
        {
            s: {n: _respelled(t, spelling) for n, t in texts.items()}
            for s, texts in sentences.items()
        },
    )
    made_of = f"{english.hash} {world.hash} {fraction:.6f}"
    return MicroWorld(translated, hashlib.sha256(made_of.encode()).hexdigest())


def own_spelling(word: str) -> str:
    """`word` with a letter that English lacks for its last vowel: goka, gokæ."""
    at = max(word.rfind(vowel) for vowel in MARKED)
    return word[:at] + MARKED[word[at]] + word[at + 1 :]


def shared_words(world: MicroWorld, other: MicroWorld, stories: Sequence[Story]) -> SharedWords:
    """How many of the words of `world`, and of these stories told in it, `other` can say too.

    Punctuation is not counted. Raises ValueError for no stories."""
    if not stories:
        raise ValueError("No stories were given; expected at least one to count the tokens of.")
    translated = (word for story in stories for line in story.told_in(world).words for word in line)
    known = set(other.vocab)
    return SharedWords(_fraction(world.vocab, known), _fraction(translated, known))


def _fraction(words: Iterable[str], known: set[str]) -> float:
    counted = [word in known for word in words if word.isalpha()]
    return sum(counted) / len(counted)


def _place(word: str) -> str:
    """Where a meaning stands in the order in which words become shared: the same in every
    language."""
    return hashlib.blake2b(word.encode(), digest_size=8).hexdigest()


def _respelled(text: str, spelling: dict[str, str], between: str | None = None) -> str:
    return (between or " ").join(spelling.get(word, word) for word in text.split(between))


def _respelled_table(rows: list[Row], spelling: dict[str, str]) -> str:
    lines = [" ".join(rows[0])]
    for row in rows:
        cells = [v if c in NOT_WORDS else _respelled(v, spelling, "_") for c, v in row.items()]
        lines.append(" ".join(cells))
    return "\n".join(lines)
