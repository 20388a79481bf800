"""Words with two senses, and what vectors of them know: static ones, ELMo's layers, BERT's layers.

Two texts. In the micro-world a sense is known: the topic of the story (the *bank* of a river, of
money). In the documentation of Python's libraries the package is the label: *kernel* in jupyter's
client is a running process, in scikit-learn a function of two points. A mention is a word in its
sentence or story; half of the modules (of the stories) train a probe and the others test it, both
senses equally often, so a guess is right half of the time. M mentions, L layers, H numbers."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.encoder import Encoder
from course_lib.family.elmo import Elmo
from course_lib.objectives.sequences import pack, to_sequences
from course_lib.text.characters import spell_sentences, words_of
from course_lib.text.documentation import (
    documentation,
    module_paragraphs,
    source_files,
    split_sentences,
)
from course_lib.text.english import UPOS, tagged_sentences
from course_lib.text.static_vectors import StaticVectors, ppmi_vectors, skip_gram_vectors
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld, Story
from course_lib.train.probing import linear_probe

SHORTEST, LONGEST = 8, 48  # words of a sentence of the documentation
MOST = 150  # mentions of a sense
FEWEST = 12  # of each sense, in a half


class Sense(NamedTuple):
    """What a word means in these packages; without: modules whose names hold one of these."""

    meaning: str
    packages: tuple[str, ...]
    without: tuple[str, ...] = ()


JUPYTER = ("jupyter_client", "jupyter_server", "ipykernel")
# The package stands for the sense. That is nearly so, not quite: sympy has vector fields, too. Left
# out are "class" (scikit-learn writes "this class" of Python's classes as well) and "seed" (it is
# random everywhere). A probe may read a package's style: the bag of words says how far that goes.
DOCUMENTATION: dict[str, tuple[Sense, Sense]] = {
    "kernel": (Sense("a running process", JUPYTER),
               Sense("a function of two points", ("sklearn",))),
    "key": (Sense("of a keyboard", ("prompt_toolkit",)),
            Sense("of an edge or an attribute", ("networkx",))),
    "tree": (Sense("a graph without cycles", ("networkx",)),
             Sense("a chain of decisions", ("sklearn",))),
    "axis": (Sense("of an array", ("numpy",)),
             Sense("of a drawing", ("plotly",))),
    "field": (Sense("of numbers", ("sympy",)),
              Sense("of a record", ("numpy",))),
    "token": (Sense("a secret that opens", ("huggingface_hub", "jupyter_server"), ("inference",)),
              Sense("a piece of text", ("transformers",))),
    "root": (Sense("of a tree", ("networkx",)),
             Sense("of an equation", ("sympy", "scipy"))),
}  # fmt: skip


@dataclass(frozen=True)
class Mention:
    """words[at] is the word, sense 0 or 1; source: the module or story it stands in."""

    words: tuple[str, ...]
    at: int
    sense: int
    source: str


# ---------------------------------------------------------------- mentions


def documentation_mentions(
    senses: Mapping[str, tuple[Sense, Sense]] = DOCUMENTATION,
) -> dict[str, list[Mention]]:
    """Every word's sentences in the packages of its senses; none where one is not installed.

    A sentence is left out if the seven words around the word were met before: many docstrings are
    copies of one another."""
    packages = sorted({p for pair in senses.values() for sense in pair for p in sense.packages})
    modules = {p: list(_sentences(p)) for p in packages}
    mentions = {}
    for word, pair in senses.items():
        sides = [list(_fresh(word, index, sense, modules)) for index, sense in enumerate(pair)]
        mentions[word] = list(chain(*map(_some, sides))) if all(sides) else []
    return mentions


def _sentences(package: str) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Every module of a package, and the words of its sentences."""
    for name, path in source_files(package).items():
        texts = chain.from_iterable(map(split_sentences, module_paragraphs(path)))
        yield name, [tuple(words_of(text)) for text in texts]


def _fresh(
    word: str, index: int, sense: Sense, modules: Mapping[str, list[Any]]
) -> Iterator[Mention]:
    seen = set()
    for name, sentences in chain.from_iterable(modules[p] for p in sense.packages):
        if any(part in name for part in sense.without):
            continue
        for words in sentences:
            if word in words and SHORTEST <= len(words) <= LONGEST:
                at = words.index(word)
                around = words[max(at - 3, 0) : at + 4]
                if around not in seen:
                    seen.add(around)
                    yield Mention(words, at, index, name)


def _some(mentions: list[Mention]) -> list[Mention]:
    return random.Random(0).sample(mentions, min(len(mentions), MOST))


def topics_of_things(world: MicroWorld) -> dict[str, list[str]]:
    """Each thing of the world, and the topics whose stories it stands in."""
    topics = defaultdict(list)
    for row in world.grammar.tables["things"]:
        topics[row["one"]].append(row["topic"])
    return dict(topics)


def two_sense_words(world: MicroWorld) -> dict[str, list[str]]:
    """The world's words that two topics share, and these."""
    return {word: shared for word, shared in topics_of_things(world).items() if len(shared) == 2}


def first_mentions(
    world: MicroWorld, stories: Sequence[Story], *, whole: bool
) -> Iterator[Mention]:
    """The first mention of each two-sense word in each story; its sense is the topic. Of the story
    the one sentence is kept, or all of it."""
    senses = two_sense_words(world)
    for index, story in enumerate(stories):
        sentences = [tuple(story.text.split())] if whole else story.words
        for word in sorted(senses.keys() & set(story.text.split())):
            words = next(sentence for sentence in sentences if word in sentence)
            if story.topic in senses[word]:
                sense = senses[word].index(story.topic)
                yield Mention(words, words.index(word), sense, f"story {index}")


def world_mentions(
    world: MicroWorld, stories: int = 40_000, *, whole: bool = False
) -> dict[str, list[Mention]]:
    """`first_mentions` in held-out stories, by their word; words that are told too seldom are left
    out."""
    heldout, by_word = world.stories(stories, seed=0, split="heldout"), defaultdict(list)
    for mention in first_mentions(world, heldout, whole=whole):
        by_word[mention.words[mention.at]].append(mention)
    sides = {word: [_some([m for m in of if m.sense == k]) for k in (0, 1)]
             for word, of in by_word.items()}  # fmt: skip
    return {word: a + b for word, (a, b) in sides.items() if min(len(a), len(b)) >= 3 * FEWEST}


# ---------------------------------------------------------------- static vectors


def world_sentences(world: MicroWorld, stories: int = 4_000) -> list[list[str]]:
    """Sentences of training stories."""
    training = world.stories(stories, seed=0)
    return [list(sentence) for story in training for sentence in story.words]


def documentation_sentences() -> list[list[str]]:
    """40,000 sentences of the documentation, drawn from all packages; the corpus is built on the
    first call (a minute or two)."""
    paragraphs = documentation("train").paragraphs
    texts = [text for paragraph in paragraphs for text in split_sentences(paragraph)]
    return [words_of(t) for t in random.Random(0).sample(texts, min(40_000, len(texts)))]


STATIC: dict[str, Callable[[Sequence[Sequence[str]]], StaticVectors]] = {
    "PPMI and SVD": ppmi_vectors,
    "skip-gram": partial(skip_gram_vectors, epochs=4),  # under a minute for 40,000 sentences
}


# ---------------------------------------------------------------- vectors

Vectors = Callable[[Sequence[Mention]], dict[str, Tensor]]  # layer -> (M, H)


def static(vectors: StaticVectors) -> Vectors:
    """The word's own vector, the same in every sentence."""
    return lambda mentions: {"word": torch.stack([vectors[m.words[m.at]] for m in mentions])}


def static_context(vectors: StaticVectors) -> Vectors:
    """The mean of the static vectors of all other words of the sentence."""

    def mean(mention: Mention) -> Tensor:
        others = [w for k, w in enumerate(mention.words) if k != mention.at and w in vectors]
        known = [vectors[word] for word in others] or [torch.zeros(vectors.vectors.shape[1])]
        return torch.stack(known).mean(dim=0)

    return lambda mentions: {"context": torch.stack([mean(m) for m in mentions])}


def bag_of_words(mentions: Sequence[Mention]) -> dict[str, Tensor]:
    """1 for each other word that stands in the sentence, in whatever order."""
    counts = Counter(w for m in mentions for w in dict.fromkeys(m.words))  # a set has no order
    ids = {word: k for k, word in enumerate(w for w, n in counts.items() if n > 1)}
    bags = torch.zeros(len(mentions), len(ids) or 1)
    for row, mention in enumerate(mentions):
        others = mention.words[: mention.at] + mention.words[mention.at + 1 :]
        bags[row, [ids[word] for word in others if word in ids]] = 1
    return {"bag": bags}


def elmo_layers(model: Elmo) -> Vectors:
    """The word's vector in each layer, and of the LSTM layers the two halves alone."""

    @torch.no_grad()
    def layers(mentions: Sequence[Mention]) -> dict[str, Tensor]:
        parts = []
        for part in _parts(mentions):
            ids, mask = spell_sentences([m.words for m in part], model.config.max_characters)
            states = model(ids, mask, output_hidden_states=True).hidden_states
            at = torch.tensor([m.at + 1 for m in part])
            parts.append(torch.stack([s[torch.arange(len(part)), at] for s in states or ()]))
        whole = dict(enumerate(torch.cat(parts, dim=1)))  # (L + 1, M, 2P)
        halves = {
            f"{layer} {way}": half
            for layer in list(whole)[1:]
            for way, half in zip(("forward", "backward"), whole[layer].chunk(2, -1), strict=True)
        }
        return {**{str(layer): states for layer, states in whole.items()}, **halves}

    return layers


def bert_layers(encoder: Encoder, tokenizer: WordPiece) -> Vectors:
    """The vector of the word's first piece in each layer, the embeddings' as layer 0. Of a sentence
    too long for the encoder, it reads what surrounds the word."""

    @torch.no_grad()
    def layers(mentions: Sequence[Mention]) -> dict[str, Tensor]:
        parts, special = [], tokenizer.special
        for part in _parts(mentions):
            cut = [[tokenizer.encode(word) for word in m.words] for m in part]
            at = [sum(map(len, c[: m.at])) for c, m in zip(cut, part, strict=True)]
            flat, room = [list(chain(*pieces)) for pieces in cut], encoder.config.max_positions - 2
            begin = [
                max(0, min(k - room // 2, len(ids) - room)) for k, ids in zip(at, flat, strict=True)
            ]
            flat = [ids[k : k + room] for k, ids in zip(begin, flat, strict=True)]
            at = [1 + k - first for k, first in zip(at, begin, strict=True)]
            rows = [pack(ids, None, special, max(map(len, flat)) + 2) for ids in flat]
            batch = to_sequences(rows)
            out = encoder(batch.input_ids, batch.attention_mask, output_hidden_states=True)
            row = torch.arange(len(part))
            parts.append(torch.stack([s[row, torch.tensor(at)] for s in out.hidden_states or ()]))
        return {str(layer): states for layer, states in enumerate(torch.cat(parts, dim=1))}

    return layers


def _parts(mentions: Sequence[Mention], size: int = 50) -> Iterable[Sequence[Mention]]:
    return (mentions[k : k + size] for k in range(0, len(mentions), size))


# ---------------------------------------------------------------- measures


def halves(mentions: Sequence[Mention], seed: int) -> tuple[list[int], list[int]]:
    """Numbers of the mentions that train and that test: no module in both, both senses equally
    often in each. Raises ValueError where a sense has too few."""
    draw = random.Random(seed)
    sources = sorted({m.source for m in mentions})
    draw.shuffle(sources)
    counts = Counter(m.source for m in mentions)
    # Each module to the half that has fewer: a large one does not decide the sizes.
    train, sizes = set(), [0, 0]
    for source in sources:
        if sizes[0] <= sizes[1]:
            train.add(source)
        sizes[source not in train] += counts[source]
    both = []
    for inside in (True, False):
        sides = [
            [k for k, m in enumerate(mentions) if (m.source in train) == inside and m.sense == side]
            for side in (0, 1)
        ]
        least = min(map(len, sides))
        if least < FEWEST:
            raise ValueError(
                f"a half has {least} mentions of a sense; expected at least {FEWEST}. Give more "
                "text."
            )
        both.append([k for side in sides for k in draw.sample(side, least)])
    return both[0], both[1]


def nearest_sense(train: Tensor, labels: Tensor, test: Tensor) -> Tensor:
    """For each test vector the label of the training vector with the greatest cosine."""
    cosines = F.normalize(test, dim=-1) @ F.normalize(train, dim=-1).T
    return labels[cosines.argmax(dim=-1)]


def sense_accuracy(
    mentions: Sequence[Mention], vectors: Tensor, seeds: Iterable[int]
) -> dict[str, list[float]]:
    """How often a frozen linear probe and the nearest neighbour say the sense, by seed."""
    labels, accuracies = torch.tensor([m.sense for m in mentions]), defaultdict(list)
    for seed in seeds:
        train, test = halves(mentions, seed)
        split = vectors[train], labels[train], vectors[test]
        accuracies["probe"].append(linear_probe(*split, labels[test]))
        right = nearest_sense(*split) == labels[test]
        accuracies["neighbour"].append(right.double().mean().item())
    return dict(accuracies)


def similarities(mentions: Mapping[str, Sequence[Mention]], layer: Mapping[str, Tensor]) -> Any:
    """Mean cosines of one layer's vectors, (M, H) for each word: of two mentions with the same
    sense, with another sense, and of two mentions of different words, which is chance."""
    units = {word: F.normalize(vectors, dim=-1) for word, vectors in layer.items()}
    same, other = [], []
    for word, unit in units.items():
        sense = torch.tensor([m.sense for m in mentions[word]])
        cosines, alike = unit @ unit.T, sense[:, None] == sense
        same.append(cosines[alike & ~torch.eye(len(unit), dtype=torch.bool)].mean())
        other.append(cosines[~alike].mean())
    middles = torch.stack([unit.mean(dim=0) for unit in units.values()])
    products = middles @ middles.T  # the mean cosine of all pairs of two words
    apart = ~torch.eye(len(middles), dtype=torch.bool)
    return {
        "same": torch.stack(same).mean().item(),
        "other": torch.stack(other).mean().item(),
        "chance": products[apart].mean().item(),
    }


def known_senses(
    mentions: Mapping[str, Sequence[Mention]], vectors: Vectors, seeds: Iterable[int]
) -> list[dict[str, Any]]:
    """For each layer: its name, accuracies by word and seed, and similarities."""
    layers: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for word, of in mentions.items():
        for name, states in vectors(of).items():
            layers[name][word] = states
    return [
        {
            "layer": name,
            "words": {w: sense_accuracy(mentions[w], v, seeds) for w, v in by_word.items()},
            "cosine": None if name == "bag" else similarities(mentions, by_word),
        }
        for name, by_word in layers.items()
    ]


# ---------------------------------------------------------------- parts of speech


def tagged_words() -> list[Mention]:
    """Every word of the course's tagged sentences; its part of speech stands for a sense."""
    names = {tag: index for index, tag in enumerate(UPOS)}
    return [
        Mention(tuple(word.lower() for word in sentence.words), at, names[tag], sentence.id)
        for sentence in tagged_sentences()
        for at, tag in enumerate(sentence.pos)
    ]


def tag_accuracy(words: Sequence[Mention], vectors: Vectors, seeds: Iterable[int]) -> Any:
    """layer -> by seed, how often a linear probe says the part of speech of a word of sentences
    that it has not seen; half of the sentences train it."""
    labels, sources = torch.tensor([w.sense for w in words]), sorted({w.source for w in words})
    accuracies = defaultdict(list)
    made = vectors(words)
    for seed in seeds:
        learn = set(random.Random(seed).sample(sources, len(sources) // 2))
        train = torch.tensor([w.source in learn for w in words])
        for name, layer in made.items():
            split = layer[train], labels[train], layer[~train], labels[~train]
            accuracies[name].append(linear_probe(*split))
    return dict(accuracies)
