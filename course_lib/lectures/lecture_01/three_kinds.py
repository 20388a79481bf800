"""Three kinds of Transformer from one Block: an encoder, a decoder, an encoder-decoder, all on the
same three tasks.

Every task is told as a source and a target, lists of words of the micro-world: a word that is
missing from two sentences, the sentence after a sentence, a sentence in a second language. The
kinds differ in who may see whom, and so in how the target is put to them:
- encoder: all words see all; the target's words are [MASK], so it must be told how many there
  are. It predicts them all at once, or one at a time from the left (STEPWISE, SHOWN);
- decoder: source, [SEP], target in one row, each word sees what stands before it; the target is
  said word by word;
- encoder-decoder: the source is read as by the encoder, the target is said as by the decoder.
The loss is the same: cross-entropy at the target's words. B batch, T tokens, V vocabulary."""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, pairwise, product
from statistics import fmean as mean
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from course_lib.config import BertConfig
from course_lib.encoder import Embeddings, Encoder, Stack
from course_lib.family.gpt import GptForNextToken
from course_lib.family.seq2seq import BartConfig, Seq2Seq
from course_lib.kernels.attention import causal_mask
from course_lib.kernels.masked_loss import IGNORED, mean_cross_entropy
from course_lib.objectives.sequences import Batch
from course_lib.text.counts import EDGE, NeighbourCounts
from course_lib.text.grammar import Hole
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld
from course_lib.train.loop import Callback, History, fit

NAMES = ("input_ids", "attention_mask")
KINDS = ("encoder", "decoder", "encoder-decoder")
LEFT = "decoder, left only"  # reads what stands before a gap; earlier gaps hold the true words
STEPWISE = "encoder, word by word"  # trained as the encoder; fills one [MASK] at a time
SHOWN = "encoder, trained for it"  # the same, and in training it sees the first words of the target
ENCODERS = (KINDS[0], STEPWISE, SHOWN)
MEASURES = {"fill gaps": "words", "continue": "possible", "translate": "whole"}  # by task
TASKS = tuple(MEASURES)
GAPS = 3  # in two sentences
TOPIC, STORIES, HELDOUT = "river", 20_000, 2_000  # stories of all topics, of which one is read
LENGTH = 64
TEST = 200  # examples of held-out stories
LONGEST = 20  # words of an answer that is said word by word


Pair = tuple[list[int], list[int]]


class Example(NamedTuple):
    """What is read and what is to be said, as ids."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class KindRecipe:
    """A kind of Transformer, 128 wide, trained on one task; the encoder-decoder has its layers
    twice, once to read and once to write."""

    kind: str = "encoder"
    task: str = "fill gaps"
    steps: int = 600
    layers: int = 2
    batch_size: int = 32
    learning_rate: float = 2e-3
    initializer_range: float = 0.05


# ---------------------------------------------------------------- the tasks


class TwoLanguages:
    """The words of the micro-world's river stories, and those of a second language: sentences read
    from their end.

    There a word is spelt backwards, and words stand in the opposite order; the full stop stays at
    the end. A model sees numbers, not letters: it has to learn each word's translation, and the
    order. One topic of twelve, so that a small model meets every word often."""

    def __init__(self, world: MicroWorld | None = None) -> None:
        self.world = world or MicroWorld.load()
        self.train, self.heldout = (
            [s for s in self.world.stories(count, seed=0, split=split) if s.topic == TOPIC]
            for split, count in (("train", STORIES), ("heldout", HELDOUT))
        )
        self.words = sorted({word for story in self.train for word in story.text.split()})
        self.tokenizer = WordPiece.from_words(self.words)
        self.special = self.tokenizer.special
        self.vocab_size = self.tokenizer.vocab_size + len(self.words)

    def translated(self, words: Sequence[int]) -> list[int]:
        """Ids of a sentence with its full stop -> ids of its translation."""
        *forwards, stop = (word + len(self.words) for word in words)
        return [*reversed(forwards), stop]

    def text(self, ids: Sequence[int]) -> str:
        """Words of both languages as text."""
        return " ".join(map(self._word, ids))

    def _word(self, word: int) -> str:
        if word < self.tokenizer.vocab_size:
            return self.tokenizer.token(word)
        return self.tokenizer.token(word - len(self.words))[::-1]

    @cached_property
    def frames(self) -> re.Pattern[str]:
        """What every sentence of the world matches: one of its frames, with any word in a hole."""
        frames = chain.from_iterable(self.world.grammar.frames.values())
        return re.compile("|".join(f"(?:{self._pattern(frame.items)})" for frame in frames))

    def _pattern(self, items: Sequence[str | Hole]) -> str:
        parts = []
        for item in items:
            if isinstance(item, str):
                parts.append(re.escape(item))
            else:
                rows = self.world.grammar.column(item.role, item.path)
                known = {re.escape(" ".join(words)) for words in rows}
                parts.append(f"(?:{'|'.join(sorted(known))})")
        return " ".join(parts)

    def is_possible(self, sentence: Sequence[int]) -> bool:
        """Whether the world could say this: a frame of its, filled with words of the right kind.
        Whether these fit one another is not asked."""
        return self.frames.fullmatch(self.text(sentence)) is not None


def sentence_pairs(both: TwoLanguages, split: str = "train") -> list[Pair]:
    """Every two neighbouring sentences of the river stories, as ids; held-out ones with a word that
    training stories do not have are left out."""
    stories = both.train if split == "train" else both.heldout
    documents = [[both.tokenizer.encode(s) for s in story.sentences] for story in stories]
    pairs = chain.from_iterable(pairwise(document) for document in documents)
    return [(a, b) for a, b in pairs if both.special.unk not in a + b]


def heldout_examples(both: TwoLanguages, task: str) -> list[Example]:
    """Examples of a task that no training saw, always the same."""
    draw = random.Random(0)
    some = draw.sample(sentence_pairs(both, "heldout"), TEST)
    return [example(both, task, a, b, draw) for a, b in some]


def example(
    both: TwoLanguages, task: str, a: list[int], b: list[int], draw: random.Random
) -> Example:
    """Two neighbouring sentences as an example of a task; `draw` places the gaps.

    Raises ValueError for another task."""
    if task not in TASKS:
        raise ValueError(f"task={task!r} was given; expected one of {', '.join(TASKS)}.")
    if task == "continue":
        return Example(a, b)
    if task == "translate":
        return Example(b, both.translated(b))
    text, stops = a + b, (len(a) - 1, len(a + b) - 1)
    at = sorted(draw.sample([k for k in range(len(text)) if k not in stops], GAPS))
    source = [both.special.mask if k in at else word for k, word in enumerate(text)]
    return Example(source, [text[k] for k in at])


# ---------------------------------------------------------------- the three kinds


class PostNormCausalStack(Stack):
    """The encoder's blocks, unchanged, as in the first GPT; each word sees itself and what stands
    before it."""

    def forward(self, x: Tensor, mask: Any = None, *others: Any) -> Any:
        """As Stack's; mask (B, T) is the padding's."""
        return super().forward(x, causal_mask(mask), *others)


def build(recipe: KindRecipe, vocab_size: int, seed: int = 0) -> nn.Module:
    """The model of a recipe, randomly initialised. Encoder and decoder differ in the mask alone:
    both have GPT's head, the token table again. Raises ValueError for another kind."""
    if recipe.kind not in (*KINDS, *ENCODERS, LEFT):
        raise ValueError(f"kind={recipe.kind!r} was given; expected one of {', '.join(KINDS)}.")
    torch.manual_seed(seed)
    shape: dict[str, Any] = dict(
        vocab_size=vocab_size, hidden_size=128, num_layers=recipe.layers, num_heads=4,
        intermediate_size=256, max_positions=LENGTH + 2, type_vocab_size=0, pad_token_id=0,
        hidden_dropout=0.0, attention_dropout=0.0, initializer_range=recipe.initializer_range,
    )  # fmt: skip
    if recipe.kind == "encoder-decoder":
        return Seq2Seq(BartConfig(**shape))
    config = BertConfig(**shape)
    stack = Stack if recipe.kind in ENCODERS else PostNormCausalStack
    return GptForNextToken(Encoder(config, Embeddings(config), stack(config)))


def collate(
    kind: str,
    some: Sequence[Example],
    both: TwoLanguages,
    visible_positions: Sequence[Iterable[int]] | None = None,
) -> Batch:
    """Examples as this kind of Transformer reads them, with labels (B, T) at the target's words.

    A word's label stands where the model says it: at its own [MASK], or one position before.
    visible_positions: of each target those whose words an encoder sees; they have no labels."""
    special, columns = both.special, list[tuple[list[int], ...]]()
    for (source, target), visible in zip(some, visible_positions or [()] * len(some), strict=True):
        read, target_labels = [special.cls, *source, special.sep], [*target, special.sep]
        if kind == "encoder-decoder":
            columns.append((read, [special.cls, *target], target_labels))
        elif kind == "decoder":
            columns.append((read + target, [IGNORED] * (len(read) - 1) + target_labels))
        else:  # where a [MASK] stands, the label is its word
            seen, masked = set(visible), read
            words = iter(target)
            labels = [next(words) if word == special.mask else IGNORED for word in read]
            if special.mask not in source:
                masked = read + [w if k in seen else special.mask for k, w in enumerate(target)]
                labels += [IGNORED if k in seen else w for k, w in enumerate(target)]
            if kind == LEFT:  # the text with all its words, each label one position before its word
                true = [b if b != IGNORED else a for a, b in zip(masked, labels, strict=True)]
                masked, labels = true, [*labels[1:], IGNORED]
            columns.append((masked, labels))
    *inputs_of, labels_of = zip(*columns, strict=True)
    inputs = {}
    for part, ids in zip(("", "decoder_"), inputs_of, strict=False):
        inputs[f"{part}input_ids"] = _padded(ids, special.pad)
        inputs[f"{part}attention_mask"] = _padded([[1] * len(row) for row in ids], 0)
    return Batch(inputs, {"labels": _padded(labels_of, IGNORED)})


def _padded(lists: Sequence[Sequence[int]], fill: int) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in lists], True, fill)


def target_loss(outputs: Any, targets: Any) -> dict[str, Tensor]:
    """Mean cross-entropy in nats at the target's words."""
    return {"total": mean_cross_entropy(outputs.logits, targets["labels"])}


@dataclass
class Trained:
    """A kind of Transformer after its training on a task."""

    recipe: KindRecipe
    both: TwoLanguages
    model: nn.Module
    history: History

    def say(self, some: Sequence[Example]) -> list[list[int]]:
        """What the model says of each source. Of the target an encoder is told the length."""
        kind = self.recipe.kind
        say = _at_once if kind in ("encoder", LEFT) else _one_by_one
        say = _from_the_left if kind in (STEPWISE, SHOWN) else say
        parts = (some[k : k + 50] for k in range(0, len(some), 50))
        return [answer for part in parts for answer in say(self.model, kind, part, self.both)]

    def answer(self, source: str, length: int | None = None) -> str:
        """The same for a text of the world, [MASK] for a gap; length: of what an encoder says.

        (The decoder that sees the left only reads [UNK] for the gaps before a gap.)"""
        ids = self.both.tokenizer.encode(source)
        count = ids.count(self.both.special.mask) or length or len(ids)
        (answer,) = self.say([Example(ids, [self.both.special.unk] * count)])
        return self.both.text(answer)

    def measure(self, some: Sequence[Example]) -> dict[str, float]:
        """words: fraction of the target's words that are right; whole: of targets that are right
        from end to end; possible: of the answers that are sentences of the world; own: of words
        that LEFT fills rightly where it has read its own earlier guesses."""
        answers, targets = self.say(some), [one.target for one in some]
        right = [a == b for pair in zip(answers, targets, strict=True) for a, b in _aligned(*pair)]
        whole = map(operator.eq, answers, targets)
        fractions = {"words": mean(right), "whole": mean(whole)}
        if self.recipe.task == "continue":
            fractions["possible"] = sum(map(self.both.is_possible, answers)) / len(answers)
        if self.recipe.kind == LEFT:
            own = chain.from_iterable(_from_the_left(self.model, LEFT, some, self.both))
            fractions["own"] = mean(a == b for a, b in zip(own, chain(*targets), strict=True))
        return fractions


def _aligned(answer: list[int], target: list[int]) -> Iterator[tuple[int | None, int]]:
    missing = [None] * len(target)
    return zip([*answer, *missing], target, strict=False)


@torch.no_grad()
def _at_once(
    model: nn.Module, kind: str, some: Sequence[Example], both: TwoLanguages
) -> list[list[int]]:
    batch = collate(kind, some, both)
    predictions = model(**batch.inputs).logits.argmax(-1)
    at = batch.targets["labels"] != IGNORED
    return [row[here].tolist() for row, here in zip(predictions, at, strict=True)]


@torch.no_grad()
def _from_the_left(
    model: nn.Module, kind: str, some: Sequence[Example], both: TwoLanguages
) -> list[list[int]]:
    """The most probable word at the first gap, then at the next, which has read the first."""
    answers = [[both.special.mask] * len(one.target) for one in some]
    for step in range(max(map(len, answers), default=0)):
        so_far = [Example(one.source, answer) for one, answer in zip(some, answers, strict=True)]
        batch = collate(kind, so_far, both, [range(step)] * len(some))
        predictions = model(**batch.inputs).logits.argmax(-1)
        at = batch.targets["labels"] != IGNORED  # of encoders, only where a word is still missing
        for row, answer in enumerate(answers):
            if step < len(answer):
                answer[step] = int(predictions[row, at[row]][step - len(answer)])
    return answers


@torch.no_grad()
def _one_by_one(
    model: nn.Module, kind: str, some: Sequence[Example], both: TwoLanguages
) -> list[list[int]]:
    """The most probable word, again and again, until [SEP] comes."""
    inputs = collate(kind, [Example(e.source, []) for e in some], both).inputs
    ids, mask = (f"decoder_{k}" if f"decoder_{k}" in inputs else k for k in NAMES)
    begin, row = inputs[mask].sum(dim=1), torch.arange(len(some))  # where the answer begins: (B,)
    inputs = {**inputs, **{k: F.pad(inputs[k], (0, LONGEST)) for k in (ids, mask)}}
    end, answers = both.special.sep, torch.empty(len(some), 0, dtype=torch.long)
    while answers.shape[1] < LONGEST and not (answers == end).any(dim=1).all():
        at = begin + answers.shape[1]
        word = model(**inputs).logits[row, at - 1].argmax(-1)  # (B,)
        inputs[ids][row, at], inputs[mask][row, at] = word, 1
        answers = torch.cat([answers, word[:, None]], dim=1)
    rows = answers.tolist()
    return [one[: one.index(end)] if end in one else one for one in rows]


def train(
    recipe: KindRecipe,
    *,
    seed: int = 0,
    steps: int | None = None,
    both: TwoLanguages | None = None,
    callbacks: Sequence[Callback] = (),
) -> Trained:
    """Train a kind of Transformer on a task; the same examples for all kinds."""
    both = both or two_languages()
    pairs = sentence_pairs(both)
    model = build(recipe, both.vocab_size, seed)

    def batches(step: int) -> Batch:
        draw = random.Random(f"{seed} {step}")
        drawn = draw.sample(pairs, recipe.batch_size)
        some = [example(both, recipe.task, a, b, draw) for a, b in drawn]
        if recipe.kind != SHOWN:
            return collate(recipe.kind, some, both)
        begun = [range(draw.randrange(len(one.target))) for one in some]  # as when it writes
        return collate(recipe.kind, some, both, begun)

    history = fit(
        model, target_loss, batches, steps=steps or recipe.steps, seed=seed,
        learning_rate=recipe.learning_rate, precision="float32", callbacks=callbacks,
    )  # fmt: skip
    return Trained(recipe, both, model, history)


@lru_cache(maxsize=1)
def two_languages() -> TwoLanguages:
    """Those of the shipped world, read once."""
    return TwoLanguages()


def recipes(usual: KindRecipe | None = None) -> dict[str, KindRecipe]:
    """Every kind on every task; gaps filled by a decoder that does not read on behind them (earlier
    gaps hold the true words), and sentences said by an encoder one word at a time."""
    usual = usual or KindRecipe()
    cells = [*product(KINDS, TASKS), (LEFT, TASKS[0]), (STEPWISE, TASKS[1]), (SHOWN, TASKS[1])]
    return {f"{kind}: {task}": replace(usual, kind=kind, task=task) for kind, task in cells}


def counted_gaps(both: TwoLanguages) -> float:
    """Fraction of the held-out gaps that the words on both sides, counted, fill rightly."""
    counts, right = NeighbourCounts(sentence_pairs(both)), list[bool]()
    for source, target in heldout_examples(both, TASKS[0]):
        words = iter(target)
        text = [next(words) if word == both.special.mask else word for word in source]
        triples = zip([EDGE, *text], text, [*text[1:], EDGE], source, strict=False)
        right += [counts.predict(a, b) == w for a, w, b, s in triples if s == both.special.mask]
    return mean(right)
