"""Tasks with labels, made from the micro-world's stories."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from zlib import crc32

import torch
from torch import Tensor

from course_lib.objectives.sequences import PackedSequences

from .english import RELATIONS, Answer, Pair, Question, TaggedSentence
from .world import MicroWorld, Story, Trace, story_sequences


@dataclass(frozen=True)
class Cut:
    """What did not fit into sequences of `length` positions: `lost` tokens (or words, or answers,
    as `what` says) of `texts` texts, of the `of` that there were. str(cut) says it."""

    texts: int
    of: int
    lost: int
    length: int
    what: str = "tokens"

    def __str__(self) -> str:
        if not self.texts:
            return f"Nothing was cut: all {self.of} fit into {self.length} positions."
        return (
            f"{self.texts} of {self.of} did not fit into {self.length} positions: "
            f"{self.lost} {self.what} were left out."
        )


@dataclass(frozen=True)
class LabelledSequences:
    """Texts and the class of each: sequences of N texts, labels (N,), the classes' names; where
    texts were shortened to fit, `cut` says by how much (of all texts that the sequences were taken
    from).

    Raises ValueError unless every text has a label, and every label a name."""

    sequences: PackedSequences
    labels: Tensor
    names: tuple[str, ...]
    cut: Cut | None = None

    def __post_init__(self) -> None:
        if len(self.sequences) != len(self.labels):
            raise ValueError(
                f"{len(self.sequences)} texts and {len(self.labels)} labels were given; expected a "
                "label for each text."
            )
        low, high = (int(x) for x in torch.aminmax(self.labels)) if len(self) else (0, 0)
        if low < 0 or high >= len(self.names):
            raise ValueError(
                f"labels from {low} to {high} were given; expected numbers of the names, 0 to "
                f"{len(self.names) - 1}."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: slice | Tensor) -> LabelledSequences:
        return LabelledSequences(self.sequences[which], self.labels[which], self.names, self.cut)

    @property
    def commonest(self) -> float:
        """Accuracy of the majority class: what always answering the same reaches."""
        return self.labels.bincount().max().item() / len(self.labels)


@dataclass(frozen=True)
class ScoredSequences:
    """Texts and the number of each, as how alike two sentences are: sequences of N texts, values
    (N,) float; where texts were shortened to fit, `cut` says by how much.

    Raises ValueError unless every text has a finite number."""

    sequences: PackedSequences
    values: Tensor
    cut: Cut | None = None

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.sequences),) or not self.values.isfinite().all():
            wrong = (~self.values.isfinite()).nonzero()[:1].tolist()
            at = f" (not finite: that of text {wrong[0][0]})" if wrong else ""
            raise ValueError(
                f"{len(self.sequences)} texts and values {self.values.tolist()[:4]}{at} of shape "
                f"{tuple(self.values.shape)} were given; expected a finite number for each text."
            )

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, which: slice | Tensor) -> ScoredSequences:
        return ScoredSequences(self.sequences[which], self.values[which], self.cut)


def unstated_facts(
    world: MicroWorld, stories: Sequence[Story], length: int = 64
) -> LabelledSequences:
    """The unstated-fact probe: what is the hero's job? Only of stories that do not say it.

    About one story in five is such. Raises ValueError where none is."""
    silent = [s for s in stories if all(t.slot != "hero.job" for line in s.trace for t in line)]
    if not silent:
        raise ValueError(
            f"None of {len(stories)} stories leaves its hero's job unsaid; about one in five does. "
            "Give more stories."
        )
    people = world.grammar.tables[world.grammar.roles["hero"]]
    names = tuple(sorted({person["job"] for person in people}))
    jobs = [names.index(people[story.rows["hero"]]["job"]) for story in silent]
    return LabelledSequences(story_sequences(world, silent, length), torch.tensor(jobs), names)


@dataclass(frozen=True)
class LabelledWords:
    """Words in their texts, and the class of each.

    sequences: N texts; at (M,): positions of the words, as n·T + t, ascending; labels (M,), names:
    their classes; learn (M,) bool: the word is of the half that a probe learns from."""

    sequences: PackedSequences
    at: Tensor
    labels: Tensor
    names: tuple[str, ...]
    learn: Tensor


def slot_categories(world: MicroWorld, stories: Sequence[Story], length: int = 64) -> LabelledWords:
    """The slot-category probe: is this word a hero, a job, a thing, a city …?

    The words are halved by a hash: who learned from one half has never seen the slot of a
    word of the other. Raises ValueError for no stories."""
    if not stories:
        raise ValueError("No stories were given; expected at least one.")
    traces = [[trace for line in story.trace for trace in line] for story in stories]
    names = tuple(sorted({trace.slot for story in traces for trace in story if trace.slot}))
    filled = [
        (n * length + t, names.index(trace.slot), crc32(trace.word.encode()) % 2 == 1)
        for n, story in enumerate(traces)
        for t, trace in enumerate(story, start=1)  # after [CLS]
        if trace.slot
    ]
    at, labels, learn = zip(*filled, strict=True)
    return LabelledWords(
        story_sequences(world, stories, length),
        torch.tensor(at), torch.tensor(labels), names, torch.tensor(learn),
    )  # fmt: skip


def swapped_words(
    world: MicroWorld, stories: Sequence[Story], kind: str, length: int = 64, seed: int = 0
) -> LabelledWords:
    """The swapped-word probe: does this word fit its story? In every second story one word is
    replaced by another of its slot, drawn by the frequencies of these stories, so that the story
    contradicts itself or the world. Each story has one question; half of them are to learn from.

    kind: "repeated", the word stands elsewhere in the story, or "fact", another word about the
    same person or thing does. Raises ValueError for another kind, and where no story has such a
    word."""
    if kind not in ("repeated", "fact"):
        raise ValueError(f'kind={kind!r} was given; expected "repeated" or "fact".')
    traces = [[trace for line in story.trace for trace in line] for story in stories]
    words: dict[str, Counter[str]] = {}  # slot -> how often each word fills it
    for trace in chain(*traces):
        words.setdefault(trace.slot, Counter())[trace.word] += 1
    draw = random.Random(f"swapped words {kind} {seed}")
    at, right, wrong = [], [], []
    for n, story in enumerate(traces):
        places = [t for t, trace in enumerate(story) if trace.kind == kind]
        t = draw.choice(places) if places else 0
        counts = words[story[t].slot]
        if places and (others := sorted(set(counts) - _possible(world, story, t))):
            at.append(n * length + 1 + t)  # after [CLS]
            right.append(story[t].word)
            wrong.append(draw.choices(others, [counts[word] for word in others])[0])
    if not at:
        raise ValueError(f"None of {len(stories)} stories has a word of kind {kind!r}; give more.")
    number = torch.arange(len(at))
    swapped, packed = number % 2 == 1, story_sequences(world, stories, length)
    ids = torch.tensor([world.tokenizer.ids[word] for word in wrong])
    packed.input_ids.view(-1)[torch.tensor(at)[swapped]] = ids[swapped]
    names = ("original", "swapped")
    return LabelledWords(packed, torch.tensor(at), swapped.long(), names, number // 2 % 2 == 0)


def _possible(world: MicroWorld, story: Sequence[Trace], at: int) -> set[str]:
    """The words that may stand there, as far as the rest of the story tells who or what is meant:
    of every entity with which all that it says agrees."""
    role, columns = story[at].role, {}
    for t, trace in enumerate(story):
        if trace.role == role:
            columns[t] = world.grammar.column(role, trace.slot.removeprefix(role).lstrip("."))
    return {
        word
        for row, words in enumerate(columns[at])
        if all(story[t].word in column[row] for t, column in columns.items() if t != at)
        for word in words
    }


@dataclass(frozen=True)
class Queues:
    """Sequences in which the same eight workers come in the same order, each in a sentence of the
    same form; only the position says who it is.

    sequences: N texts; at (8,): positions of the workers in each; words: their jobs, in order."""

    sequences: PackedSequences
    at: Tensor
    words: tuple[str, ...]


def queues(world: MicroWorld, count: int, seed: int = 0, workers: int = 8) -> Queues:
    """`count` sequences "then the baker sees the lamp . then the …": what is seen is drawn anew
    each time, who comes is not. Neighbours say nothing about a worker but that one stands here.

    Raises ValueError unless there are 1 to 36 workers and at least one sequence."""
    ids = world.tokenizer.ids
    tables = world.grammar.tables
    jobs = sorted({person["job"] for person in tables[world.grammar.roles["hero"]]} & set(ids))
    things = sorted({thing for row in tables["things"] for thing in row.values()} & set(ids))
    if not 1 <= workers <= len(jobs) or count < 1:
        raise ValueError(
            f"workers={workers!r} and count={count!r} were given; expected 1 to {len(jobs)} "
            "workers, and at least one sequence."
        )
    generator = torch.Generator().manual_seed(seed)
    seen = torch.randint(len(things), (count, workers), generator=generator).tolist()
    texts = [
        [w for job, thing in zip(jobs, row, strict=False)
         for w in ("then", "the", job, "sees", "the", things[thing], ".")]
        for row in seen
    ]  # fmt: skip
    special = world.special
    packed = torch.tensor(
        [[special.cls, *(ids[word] for word in text), special.sep] for text in texts]
    )
    at = 3 + 7 * torch.arange(workers)  # after [CLS] then the
    sequences = PackedSequences(packed, torch.ones_like(packed), torch.zeros_like(packed))
    return Queues(sequences, at, tuple(jobs[:workers]))


# ---------------------------------------------------------------- items as in `english.py`

# The parts of speech of the frames' own words; "to" has two. Slots have theirs below.
PARTS_OF_SPEECH = {
    "ADJ": "last",
    "ADP": "about at for from in near of on with",
    "ADV": "also finally first home how later much so then there very",
    "AUX": "is",
    "CCONJ": "and",
    "DET": "all some the this",
    "NOUN": "friend people",
    "NUM": "one",
    "PRON": "both it them they",
    "PUNCT": ".",
    "SCONJ": "while",
    "VERB": "asks brings comes eat eats finds gives goes has helps like likes lives meet meets need"
    " see sees shares shows takes talks thanks use visits wait walks wants watches",
}
SLOTS = {
    "ADJ": "food.country.of look mood",
    "DET": "hero.job.a",
    "NOUN": "food guest.animal hero.job part thing thing.many",
    "PRON": "guest.sex.his hero.sex.he hero.sex.his",
    "PROPN": "day food.country guest hero hero.city hero.friend site",
    "VERB": "act1 act1.do act2 act2.do act3 act3.do",
}
AFTER_TO = ("see", "use", "wait")  # verbs: "to" is a particle before them, else a preposition
NAMES = {"PER": "guest hero hero.friend", "LOC": "food.country hero.city site"}
TAG_OF_WORD, TAG_OF_SLOT, NAME_OF_SLOT = (
    {word: tag for tag, words in table.items() for word in words.split()}
    for table in (PARTS_OF_SPEECH, SLOTS, NAMES)
)


def story_tags(stories: Sequence[Story]) -> list[TaggedSentence]:
    """Every sentence of the stories with its parts of speech and its entities, persons and places.

    Raises ValueError for no stories, and for a word that the tables above do not know."""
    _some(stories)
    return [
        TaggedSentence(
            f"w{n}s{k}", text, tuple(text.split()),
            tuple(_part_of_speech(*pair) for pair in zip(line, [*line[1:], None], strict=True)),
            tuple(_entity_tag(*pair) for pair in zip([None, *line[:-1]], line, strict=True)),
        )
        for n, story in enumerate(stories)
        for k, (text, line) in enumerate(zip(story.sentences, story.trace, strict=True))
    ]  # fmt: skip


def _part_of_speech(trace: Trace, then: Trace | None) -> str:
    if trace.word == "to" and not trace.slot:
        return "PART" if then and then.word in AFTER_TO else "ADP"
    tag = TAG_OF_SLOT.get(trace.slot) if trace.slot else TAG_OF_WORD.get(trace.word)
    if tag is None:
        raise ValueError(
            f"The part of speech of {trace.word!r} ({trace.frame}) is not known; expected it in "
            "PARTS_OF_SPEECH, or its slot in SLOTS. Was the world edited? Add it there."
        )
    return tag


def _entity_tag(before: Trace | None, trace: Trace) -> str:
    kind = NAME_OF_SLOT.get(trace.slot)
    goes_on = before is not None and before.slot == trace.slot  # a name of several words
    return f"{'I' if goes_on else 'B'}-{kind}" if kind else "O"


@dataclass(frozen=True)
class Fact:
    """Something that a story may say or leave out: which slot says it, of whom or what, how it is
    asked for, and a statement of it. All words are the world's own; it has no question words."""

    slot: str
    about: str
    question: str
    statement: str = ""  # none where the world never says two things about the same subject


FACTS = (
    Fact("look", "thing", "how is the {about}", "the {about} is {value} ."),
    Fact("mood", "hero", "how is {about}", "{about} is {value} ."),
    Fact("site", "hero", "{about} is near", "{about} is near {value} ."),
    Fact("hero.job", "hero", "{about} is the"),
    Fact("hero.city", "hero", "{about} comes from"),
)


def story_pairs(stories: Sequence[Story], seed: int = 0) -> list[Pair]:
    """A story as the premise, a statement about it as the hypothesis: the story says so
    (entailment), says otherwise (contradiction), or says nothing of it (neutral).

    Every hypothesis comes equally often with each of the three, so it alone tells nothing; the
    world tells as many stories as one likes, and those that fit into no three are left out. One
    story may be the premise of several pairs. Raises ValueError where no three are found."""
    _some(stories)
    texts = [story.text for story in stories]
    values: dict[tuple[Fact, str], dict[str, list[int]]] = {}  # subject -> value or "" -> stories
    for number, story in enumerate(stories):
        spans = _mentions(story)
        for fact in FACTS:
            if fact.statement and (about := _about(story, fact)):
                value = next((texts[number][a:b] for a, b in spans.get(fact.slot, [])), "")
                values.setdefault((fact, about), {}).setdefault(value, []).append(number)
    draw = random.Random(f"story pairs {seed}")
    pairs = []
    for (fact, about), by_value in values.items():
        for value in filter(None, by_value):
            others = [n for v, those in by_value.items() if v not in ("", value) for n in those]
            groups = [by_value[value], by_value.get("", []), others]  # in the order of RELATIONS
            for group in groups:
                draw.shuffle(group)
            hypothesis = fact.statement.format(about=about, value=value)
            for three in zip(*groups, strict=False):
                for number, label in zip(three, RELATIONS, strict=True):
                    pairs.append((texts[number], hypothesis, label))
    if not pairs:
        raise ValueError(
            f"{len(stories)} stories hold no statement that one says, one denies and one leaves "
            "open; give a few hundred."
        )
    draw.shuffle(pairs)
    return [Pair(f"w{n}", *pair) for n, pair in enumerate(pairs)]


def story_questions(
    stories: Sequence[Story], seed: int = 0, unanswerable: float = 0.25
) -> list[Question]:
    """One question about a fact for each story: how is the lamp, where does the hero come from?

    A fraction of about `unanswerable` ask for what the story does not say. An answer that is said
    twice has both spans. Raises ValueError for no stories and for a fraction outside 0 to 1."""
    _some(stories)
    if not 0 <= unanswerable <= 1:
        raise ValueError(f"unanswerable={unanswerable!r} was given; expected a fraction, 0 to 1.")
    draw = random.Random(f"story questions {seed}")
    result = []
    for number, story in enumerate(stories):
        spans, text = _mentions(story), story.text
        candidates = [(fact, about) for fact in FACTS if (about := _about(story, fact))]
        silent = draw.random() < unanswerable
        fits = [pair for pair in candidates if (pair[0].slot not in spans) == silent] or candidates
        fact, about = draw.choice(fits)
        answers = tuple(Answer(text[a:b], a) for a, b in spans.get(fact.slot, []))
        result.append(Question(f"w{number}", fact.question.format(about=about), text, answers))
    return result


PRONOUNS = ("hero.sex.he", "hero.sex.his", "guest.sex.his")
PERSONS = ("hero", "guest")


@dataclass(frozen=True)
class Pronoun:
    """A pronoun in a story that has named both its persons before.

    story, at: number of the story, and of the word in it; slot: what the frame asks for; role:
    whose it is; nearest: who was named last before it; same_sex: are both persons of one sex? If
    so, the word itself does not tell them apart."""

    story: int
    at: int
    slot: str
    role: str
    nearest: str
    same_sex: bool


def story_pronouns(stories: Sequence[Story]) -> list[Pronoun]:
    """Every pronoun that stands behind a mention of the hero and one of the guest. (The first of
    the two to be named is always the hero.)

    Raises ValueError for no stories."""
    _some(stories)
    result = []
    for number, story in enumerate(stories):
        named: list[str] = []
        for at, trace in enumerate(chain.from_iterable(story.trace)):
            if trace.slot in PERSONS:
                named.append(trace.slot)
            elif trace.slot in PRONOUNS and set(named) == set(PERSONS):
                his = {_filled(story, role, "sex.his") for role in PERSONS}
                result.append(Pronoun(number, at, trace.slot, trace.role, named[-1], len(his) == 1))
    return result


def hard_pronouns(stories: Sequence[Story], each: int) -> list[Pronoun]:
    """Pronouns that neither "the first named" nor "the last named" gets right more often than not:
    the guest was named last before all of them, and half are the hero's. `each` of every kind: of
    hero and guest, with persons of the same sex and of different ones; one a story at most.

    The guest's are rare, one in twenty or so. Raises ValueError where these stories have fewer."""
    types: dict[tuple[str, bool], list[Pronoun]] = {
        (role, same): [] for role in PERSONS for same in (True, False)
    }
    result = [p for p in story_pronouns(stories) if p.nearest == "guest"]
    used: set[int] = set()
    for pronoun in sorted(
        result, key=lambda p: p.role
    ):  # the guest's first: they are the rare ones
        kind = types[pronoun.role, pronoun.same_sex]
        if pronoun.story not in used and len(kind) < each:
            used.add(pronoun.story)
            kind.append(pronoun)
    if (fewest := min(map(len, types.values()))) < each:
        raise ValueError(
            f"each={each!r} was given; {len(stories)} stories have {fewest} pronouns of some kind. "
            "Give more stories."
        )
    return sorted(chain(*types.values()), key=lambda p: p.story)


def pronoun_questions(stories: Sequence[Story], pronouns: Sequence[Pronoun]) -> list[Question]:
    """Whose is it? Each question is the pronoun alone, its passage the story up to the sentence in
    which it stands; meant is the last such word. Any mention of the person is an answer."""
    result = []
    for pronoun in pronouns:
        story, end = stories[pronoun.story], 0
        for count in range(1, len(story.sentences) + 1):
            end += len(story.words[count - 1])
            if pronoun.at < end:
                break
        text = " ".join(story.sentences[:count])
        spans = [span for span in _mentions(story)[pronoun.role] if span[1] <= len(text)]
        word = text.split()[pronoun.at]
        answers = tuple(Answer(text[a:b], a) for a, b in spans)
        result.append(Question(f"w{pronoun.story}p{pronoun.at}", word, text, answers))
    return result


def _filled(story: Story, role: str, path: str) -> str:
    """The word for this column of a role's row, as the story says it or would."""
    return " ".join(story.world.grammar.column(role, path)[story.rows[role]])


def _about(story: Story, fact: Fact) -> str:
    """The word for what a fact is about; "" where the story has no such thing."""
    if fact.about not in story.rows:
        return ""
    return _filled(story, fact.about, "")


def _mentions(story: Story) -> dict[str, list[tuple[int, int]]]:
    """{slot: where in the story's text it is filled}, a name of several words being one stretch."""
    result: dict[str, list[tuple[int, int]]] = {}
    end, before = -1, ""
    for trace in chain.from_iterable(story.trace):
        start, end = end + 1, end + 1 + len(trace.word)
        if trace.slot:
            spans = result.setdefault(trace.slot, [])
            if trace.slot == before:
                start = spans.pop()[0]
            spans.append((start, end))
        before = trace.slot
    return result


def _some(stories: Sequence[Story]) -> None:
    if not stories:
        raise ValueError("No stories were given; expected at least one.")
