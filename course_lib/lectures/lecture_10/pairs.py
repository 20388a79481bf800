"""A small XLM of two languages of the world, trained live on sentences beside their translations.
Stories are drawn in English and told in the other language, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from course_lib.family.xlm import XlmForLanguageModel, xlm_for_language_model
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences, SpecialIds, pack, to_sequences
from course_lib.objectives.translation_lm import translation_sequences
from course_lib.text.wordpiece import SEP, WordPiece
from course_lib.text.world import MicroWorld, Story
from course_lib.train.loop import Callback, History, fit
from course_lib.train.retrieval import Retrieval, retrieval, sentence_vectors

LENGTH = 32  # the longest sentence of the world and its translation, with four special tokens
STORIES, STEPS, BATCH, RATE = 1_000, 1_200, 32, 0.25


@dataclass(frozen=True)
class Pairs:
    """Sentences of two languages, the same in both, as ids of one vocabulary."""

    tokenizer: WordPiece
    first: list[list[int]]
    second: list[list[int]]

    @property
    def special(self) -> SpecialIds:
        """XLM's: one token for both ends of a text, </s>."""
        return replace(self.tokenizer.special, cls=self.tokenizer.special.sep)

    @property
    def together(self) -> PackedSequences:
        """Each sentence beside its translation, as TLM reads them."""
        return translation_sequences(self.first, self.second, self.special, length=LENGTH)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Ids as words, the separator as XLM writes it."""
        words = map(self.tokenizer.token, ids)
        return ["</s>" if word == SEP else word for word in words]

    @property
    def apart(self) -> PackedSequences:
        """The sentences of both, one a sequence: text without translations."""
        return joined(self.alone(0), self.alone(1))

    @property
    def mixed(self) -> PackedSequences:
        """Every sentence alone, and every one beside its translation, as XLM reads by turns."""
        ids = self.alone(0, LENGTH).input_ids
        counted = torch.arange(LENGTH).expand_as(ids)  # positions as where none are given
        alone = [replace(self.alone(side, LENGTH), position_ids=counted) for side in (0, 1)]
        return joined(*alone, self.together)

    def alone(self, side: int, length: int = LENGTH // 2) -> PackedSequences:
        """The sentences of one side (0 or 1), its language told, one a sequence."""
        texts = (self.first, self.second)[side]
        packed = [pack(ids, None, self.special, length) for ids in texts]
        sequences = to_sequences(packed)
        sequences.token_type_ids.fill_(side)
        return sequences


def joined(*parts: PackedSequences) -> PackedSequences:
    """Sequences of one length, one part after the other."""
    names = parts[0].inputs
    return PackedSequences(**{n: torch.cat([part.inputs[n] for part in parts]) for n in names})


def joint_tokenizer(*worlds: MicroWorld) -> WordPiece:
    """One vocabulary for several languages: every word of each is one piece."""
    return WordPiece.from_words(sorted({word for world in worlds for word in world.vocab}))


def sentence_pairs(
    english: MicroWorld,
    other: MicroWorld,
    stories: Sequence[Story],
    tokenizer: WordPiece | None = None,
) -> Pairs:
    """The sentences of English stories and their translations. tokenizer: one that knows more
    languages than these two, if a third is to be read."""
    tokenizer = tokenizer or joint_tokenizer(english, other)
    both = [(story, story.told_in(other)) for story in stories]
    lines = [pair for one, two in both for pair in zip(one.sentences, two.sentences, strict=True)]
    first, second = ([tokenizer.encode(text) for text in side] for side in zip(*lines, strict=True))
    return Pairs(tokenizer, first, second)


def small_xlm(special: SpecialIds, seed: int) -> XlmForLanguageModel:
    """Two layers, 64 wide, two languages; randomly initialised."""
    torch.manual_seed(seed)
    return xlm_for_language_model(
        vocab_size=special.vocab_size, hidden_size=64, num_layers=2, num_heads=2,
        intermediate_size=256, max_positions=LENGTH, type_vocab_size=2, pad_token_id=special.pad,
        hidden_dropout=0.0, attention_dropout=0.0, initializer_range=0.05,
    )  # fmt: skip


def train_pairs(
    pairs: Pairs,
    *,
    translations: bool = True,
    mixed: bool = False,
    steps: int = STEPS,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> tuple[XlmForLanguageModel, History]:
    """The small XLM trained by TLM; without `translations` by MLM on the same sentences, each alone
    and as many words a step; `mixed`: half of the words so, half so.

    A quarter of the words is masked, as sentences are short."""
    model = small_xlm(pairs.special, seed)
    sequences = pairs.mixed if mixed else pairs.together if translations else pairs.apart
    batch = BATCH * 3 // 2 if mixed else BATCH * LENGTH // sequences.input_ids.shape[1]
    batches = pretraining_batches(
        sequences, pairs.special, rate=RATE, seed=seed + 1, batch_size=batch
    )
    history = fit(
        model, masked_lm_loss, batches, steps=steps, learning_rate=3e-3, seed=seed,
        precision="float32", callbacks=callbacks,
    )  # fmt: skip
    return model, history


def translation_retrieval(
    model: XlmForLanguageModel, pairs: Pairs, *, centred: bool = False, known: Pairs | None = None
) -> list[Retrieval]:
    """In each layer, embeddings first: how often a sentence's nearest vector is its translation.

    centred: each language's mean over the sentences looked up is taken off. known: its mean over
    other sentences is, the first half of them in one language, the second half in the other, so
    that neither the sentences looked up nor any translation is in the means."""
    first, second = vectors_of(model, pairs)
    if known:
        half = len(known.first) // 2
        one, other = vectors_of(model, known)
        first = first - one[:, :half].mean(dim=1, keepdim=True)
        second = second - other[:, half:].mean(dim=1, keepdim=True)
    return [retrieval(a, b, centred=centred) for a, b in zip(first, second, strict=True)]


def dictionary_retrieval(learn: Pairs, test: Pairs) -> float:
    """Retrieval accuracy without a network, the mean of both directions: a dictionary is learned
    from pairs, by how often two words stand in a sentence and its translation (Dice's coefficient),
    and the translation is the sentence that best answers each word of this one."""
    first, second = (_words_in(side, learn.special) for side in (learn.first, learn.second))
    often = first.sum(0)[:, None] + second.sum(0)
    dice = 2 * (first.T @ second) / often.clamp(min=1)  # (V, V)
    accuracies = []
    for one, other, table in (
        (test.first, test.second, dice), (test.second, test.first, dice.T),
    ):  # fmt: skip
        best = torch.stack([table[:, ids].amax(dim=1) for ids in other])  # (N, V)
        scores = _words_in(one, test.special) @ best.T
        accuracies.append((scores.argmax(dim=1) == torch.arange(len(one))).float().mean().item())
    return sum(accuracies) / 2


def _words_in(texts: Sequence[Sequence[int]], special: SpecialIds) -> Tensor:
    """Which words each text has: (N, V)."""
    present = torch.zeros(len(texts), special.vocab_size)
    for row, ids in zip(present, texts, strict=True):
        row[list(ids)] = 1
    return present


def vectors_of(model: XlmForLanguageModel, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Sentence vectors of both sides in every layer: (L + 1, N, H) twice."""
    encoder = model.encoder.eval()
    first, second = (sentence_vectors(encoder, pairs.alone(side), pairs.special) for side in (0, 1))
    return first, second


@torch.no_grad()
def guesses(
    model: XlmForLanguageModel, sequences: PackedSequences, at: int, mask: int
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """One sequence with position `at` masked: the probabilities there (V,), and all attention."""
    ids = sequences.input_ids.clone()
    ids[0, at] = mask
    inputs = {**sequences.inputs, "input_ids": ids}
    model.eval()
    logits = model(**inputs).logits.reshape(-1, model.config.vocab_size)[at]
    attentions = model.encoder(**inputs, output_attentions=True).attentions
    return logits.softmax(-1), attentions
