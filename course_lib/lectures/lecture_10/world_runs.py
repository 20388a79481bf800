"""`10_transfer`: one BERT of all four languages, fine-tuned in English alone and tested in each of
them. `10_order`: what does the far language lack, English words or English order?

What is fine-tuned: the slot of each word (hero, job, look, place …) and the topic of a text (river,
bank, school …). Each language tells other stories, so no text is a translation of another, but for
TLM. All words of a language are in one vocabulary, one piece each, Chinese by characters; what is
spelled alike in two languages is one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.encoder import Encoder
from course_lib.family.xlm import XlmForLanguageModel, xlm_for_language_model
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import Batch, PackedSequences, SpecialIds, pack, to_sequences
from course_lib.objectives.translation_lm import translation_sequences
from course_lib.teaching.experiments import Experiment, Run, Trainer
from course_lib.teaching.results import last_losses
from course_lib.text.features import TaggedSequences
from course_lib.text.tasks import Cut, LabelledSequences
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld, Story
from course_lib.train.finetuning import finetune, outputs_on, task_score
from course_lib.train.metrics import evaluate
from course_lib.train.probing import linear_probe
from course_lib.train.retrieval import retrieval, sentence_vectors

from .pair_runs import LONGER, SPELLED, PairRecipe, all_untrained
from .pairs import joined

PRECISION, SEEDS, ORDER_SEEDS = "float32", range(3), range(3)
LENGTH = 48  # two sentences in Chinese characters, or one beside its English
LANGUAGES = ("english", "norlish", "sumorian", "chinese")
ALL, ENGLISH = LANGUAGES, LANGUAGES[:1]
STORIES, UNSEEN = 3_000, 250  # of each language; the same unseen ones in all
LABELLED, TUNED_STEPS = 2_000, 600  # English texts to learn a task from, and steps
RETRIEVED, LOOK_EVERY = 300, 1_500  # sentences; steps


@dataclass(frozen=True)
class TransferRecipe:
    """languages: what is read, all equally often. told: is the language told, as in XLM? tlm: is
    every second batch one of translations? steps 0: random initialisation."""

    languages: tuple[str, ...] = ALL
    told: bool = False
    tlm: bool = False
    steps: int = 9_000
    hidden_size: int = 64
    batch_size: int = 32
    learning_rate: float = 3e-3


RECIPES = {
    "English only": TransferRecipe(ENGLISH),
    "four, MLM": TransferRecipe(),
    "four, MLM, language told": TransferRecipe(told=True),
    "four, MLM + TLM": TransferRecipe(told=True, tlm=True),
    "untrained": TransferRecipe(steps=0),
}


class Text(NamedTuple):
    """Up to two sentences of a story in one language: ids, slot of each id, topic."""

    ids: list[int]
    slots: list[str]
    topic: str


class Material(NamedTuple):
    """What the models read and are tested with; by language, as numbered in LANGUAGES."""

    tokenizer: WordPiece
    train: dict[str, PackedSequences]
    translations: PackedSequences
    learn: list[Text]  # English
    test: dict[str, list[Text]]
    sentences: dict[str, PackedSequences]  # unseen, the same in all languages


@lru_cache(maxsize=1)
def worlds() -> dict[str, MicroWorld]:
    """The world in each language."""
    return {language: MicroWorld.load(language=language) for language in LANGUAGES}


@lru_cache(maxsize=1)
def joint_vocabulary() -> WordPiece:
    """One vocabulary: all that the languages' own tokenizers know."""
    own = (world.tokenizer for world in worlds().values())
    return WordPiece.from_words(sorted({w for each in own for w in each.ids if w[0] != "["}))


def texts_of(world: MicroWorld, stories: Sequence[Story]) -> list[Text]:
    """Stories in pairs of sentences, told in the language of `world`; an odd last one is alone."""
    encode, texts = lru_cache(maxsize=None)(joint_vocabulary().encode), []
    for story in stories:
        lines = story.told_in(world).trace
        for start in range(0, len(lines), 2):
            words = [trace for line in lines[start : start + 2] for trace in line]
            ids = [encode(trace.word) for trace in words]
            slots = [x.slot for x, of in zip(words, ids, strict=True) for _ in of]
            texts.append(Text([i for of in ids for i in of], slots, story.topic))
    return texts


def packed(texts: Sequence[Text], language: int) -> PackedSequences:
    """Texts one a sequence, language told; positions counted, so that TLM's can be joined."""
    special = joint_vocabulary().special
    sequences = to_sequences([pack(text.ids, None, special, LENGTH) for text in texts])
    sequences.token_type_ids.fill_(language)
    return sequences


def translated(english: Sequence[Story]) -> PackedSequences:
    """Every sentence of the stories beside its translation into each other language."""
    ids, parts = joint_vocabulary().encode, []
    for language_id, language in enumerate(LANGUAGES[1:], start=1):
        translations = (story.told_in(worlds()[language]) for story in english)
        pairs = [
            (ids(a), ids(b))
            for one, other in zip(english, translations, strict=True)
            for a, b in zip(one.sentences, other.sentences, strict=True)
        ]
        sides = [[pair[side] for pair in pairs] for side in (0, 1)]
        special = joint_vocabulary().special
        parts.append(
            translation_sequences(*sides, special, length=LENGTH, languages=(0, language_id))  # type: ignore
        )
    return joined(*parts)


@lru_cache(maxsize=1)
def prepare() -> Material:
    """Draw the stories, of each language its own. All are drawn in English, so that a sentence that
    is unseen there is unseen in every language."""
    english = worlds()["english"]
    train = {
        language: packed(texts_of(world, english.stories(STORIES, seed=language_id)), language_id)
        for language_id, (language, world) in enumerate(worlds().items())
    }
    unseen = english.stories(UNSEEN, seed=0, split="heldout")
    lines = [replace(s, sentences=(x,), frames=(f,)) for s in unseen
             for x, f in zip(s.sentences, s.frames, strict=True)][:RETRIEVED]  # fmt: skip
    stories = english.stories(STORIES, seed=0)
    return Material(
        joint_vocabulary(), train, translated(stories[: STORIES // 3]), texts_of(english, stories),
        {language: texts_of(world, unseen) for language, world in worlds().items()},
        {language: packed(texts_of(world, lines), language_id)
         for language_id, (language, world) in enumerate(worlds().items())},
    )  # fmt: skip


# ---------------------------------------------------------------- pre-training


def as_read(recipe: TransferRecipe, sequences: PackedSequences) -> PackedSequences:
    """Without its language where the recipe does not tell it (all tokens then add one vector)."""
    types = sequences.token_type_ids
    return sequences if recipe.told else replace(sequences, token_type_ids=torch.zeros_like(types))


def model_of(recipe: TransferRecipe, special: SpecialIds, seed: int) -> XlmForLanguageModel:
    """Two layers, randomly initialised; four language vectors for all, so sizes do not differ."""
    torch.manual_seed(seed)
    return xlm_for_language_model(
        vocab_size=special.vocab_size, hidden_size=recipe.hidden_size, num_layers=2, num_heads=2,
        intermediate_size=4 * recipe.hidden_size, max_positions=LENGTH, pad_token_id=special.pad,
        type_vocab_size=len(LANGUAGES), hidden_dropout=0.0, attention_dropout=0.0,
        initializer_range=0.05,
    )  # fmt: skip


def batches_of(recipe: TransferRecipe, material: Material, seed: int) -> Any:
    """Texts of the recipe's languages; with `tlm` every second step translations instead, as many
    sequences a step."""
    special = material.tokenizer.special
    read = as_read(recipe, joined(*(material.train[name] for name in recipe.languages)))
    alone, beside = (
        pretraining_batches(sequences, special, batch_size=recipe.batch_size, seed=seed + 1)
        for sequences in (read, material.translations)
    )

    def batches(step: int) -> Batch:
        return (beside if step % 2 else alone)(step // 2) if recipe.tlm else alone(step)

    return batches


pretrain = Trainer(
    lambda recipe, material, seed: (
        model_of(recipe, material.tokenizer.special, seed), masked_lm_loss
    ),
    batches_of,
)  # fmt: skip


# ---------------------------------------------------------------- tasks


def slot_names(material: Material) -> tuple[str, ...]:
    """The classes of words: every slot of the English texts."""
    return tuple(sorted({slot for text in material.learn for slot in text.slots if slot}))


def slot_task(
    material: Material, texts: Sequence[Text], sequences: PackedSequences
) -> TaggedSequences:
    """The slot of each word that fills one; what the frames say themselves has no label."""
    label_ids = {name: n for n, name in enumerate(slot_names(material))}
    labels = torch.full_like(sequences.input_ids, -100)
    for n, text in enumerate(texts):
        row = [label_ids.get(slot, -100) for slot in text.slots]
        labels[n, 1 : 1 + len(row)] = torch.tensor(row)  # after [CLS]
    words = tuple(tuple(text.slots) for text in texts)
    first = tuple(tuple(range(1, 1 + len(text.slots))) for text in texts)
    cut = Cut(0, len(texts), 0, LENGTH, "words")
    return TaggedSequences(sequences, labels, tuple(label_ids), words, first, cut)


def topic_task(texts: Sequence[Text], sequences: PackedSequences) -> LabelledSequences:
    """The topic of each text."""
    names = tuple(worlds()["english"].grammar.topics)
    return LabelledSequences(
        sequences, torch.tensor([names.index(text.topic) for text in texts]), names
    )


def slot_accuracy(model: Any, task: TaggedSequences) -> float:
    """Fraction of the words with a slot whose slot gets the highest logit."""
    (logits,) = outputs_on(model, task, ["logits"])
    labelled = task.labels >= 0
    return (logits.argmax(-1) == task.labels)[labelled].double().mean().item()


def transfer(encoder: Encoder, recipe: TransferRecipe, material: Material, seed: int) -> dict:
    """Both tasks fine-tuned in English; accuracy of each in every language."""
    learned = material.learn[:LABELLED]
    train = as_read(recipe, packed(learned, 0))
    settings: Any = {"steps": TUNED_STEPS, "seed": seed, "precision": PRECISION, "batch_size": 32}
    slots = finetune(encoder, slot_task(material, learned, train), **settings)
    topics = finetune(encoder, topic_task(learned, train), **settings)
    accuracies = {}
    for language_id, (language, texts) in enumerate(material.test.items()):
        test = as_read(recipe, packed(texts, language_id))
        accuracies[f"slots {language}"] = slot_accuracy(slots, slot_task(material, texts, test))
        accuracies[f"topic {language}"] = task_score(topics, topic_task(texts, test))
    return accuracies


def layers(encoder: Encoder, recipe: TransferRecipe, material: Material) -> dict[str, list[float]]:
    """Of every layer, the embeddings first: unseen sentences whose nearest vector is that of their
    translation, English with each language; centred: without the mean of each language."""
    special = material.tokenizer.special
    vectors = {
        name: sentence_vectors(encoder, as_read(recipe, sequences), special)
        for name, sequences in material.sentences.items()
    }
    return {
        f"layers {name}{suffix}": [
            retrieval(a, b, centred=centred).mean
            for a, b in zip(vectors["english"], vectors[name], strict=True)
        ]
        for name in LANGUAGES[1:]
        for suffix, centred in (("", False), (" centred", True))
    }


def measured(model: Any, recipe: TransferRecipe, material: Material) -> dict[str, float]:
    """What the curve shows too: masked-token accuracy on unseen texts of the languages that are
    read, and retrieval in the last layer."""
    was_training, special = model.training, material.tokenizer.special
    scores = {}
    for language_id, name in enumerate(LANGUAGES):
        if name in recipe.languages:
            sequences = as_read(recipe, packed(material.test[name], language_id))
            right = evaluate(model, sequences, special, precision=PRECISION).masked_accuracy
            scores[f"masked {name}"] = right
    by_layer = layers(model.encoder.eval(), recipe, material)
    model.train(was_training)
    return scores | {f"retrieval{k.removeprefix('layers')}": v[-1] for k, v in by_layer.items()}


# ---------------------------------------------------------------- controls


def words_alone(material: Material) -> dict[str, float]:
    """What the words' spelling alone gives: each word's commonest slot in the English labels (of an
    unknown word the commonest of all), and a linear classifier of topics on the counts of words."""
    slots_of: dict[int, Counter[str]] = {}
    for text in material.learn[:LABELLED]:
        for word, slot in zip(text.ids, text.slots, strict=True):
            slots_of.setdefault(word, Counter())[slot] += 1
    every: Counter[str] = sum((Counter(s for s in t.slots if s) for t in material.learn), Counter())
    usual = every.most_common(1)[0][0]
    guess = {word: max((c, s) for s, c in of.items())[1] for word, of in slots_of.items()}
    known = material.learn[:LABELLED]
    learned = topic_task(known, packed(known, 0))
    accuracies = {}
    for language_id, (language, texts) in enumerate(material.test.items()):
        pairs = [p for t in texts for p in zip(t.ids, t.slots, strict=True) if p[1]]
        right = [guess.get(word, usual) == slot for word, slot in pairs]
        test = topic_task(texts, packed(texts, language_id))
        accuracies[f"slots {language}"] = sum(right) / len(right)
        accuracies[f"topic {language}"] = linear_probe(
            counts(known), learned.labels, counts(texts), test.labels
        )
    return accuracies


def counts(texts: Sequence[Text]) -> Tensor:
    """How often each row of the vocabulary stands in each text: (N, V)."""
    size = joint_vocabulary().special.vocab_size
    return torch.stack([torch.tensor(text.ids).bincount(minlength=size) for text in texts]).float()


def majority(material: Material) -> dict[str, float]:
    """Accuracy of always the commonest answer, in English."""
    texts = material.test["english"]
    of = {"slots": [s for t in texts for s in t.slots if s], "topic": [t.topic for t in texts]}
    return {name: Counter(true).most_common(1)[0][1] / len(true) for name, true in of.items()}


# ---------------------------------------------------------------- runs


def reached(run: Run) -> dict[str, Any]:
    """What the curve shows, every layer, and both tasks."""
    model, recipe, material = run.model.eval(), run.recipe, run.material
    positions = {"positions": run.history.tokens} if recipe.steps else {}
    return {
        **last_losses(run.history), **positions, **measured(model, recipe, material),
        **layers(model.encoder, recipe, material),
        **transfer(model.encoder, recipe, material, run.seed),
    }  # fmt: skip


def hashes() -> dict[str, str]:
    """Of each language's rules: results record them."""
    return {language: world.hash for language, world in worlds().items()}


TRANSFER = Experiment(
    "10_transfer", RECIPES, SEEDS, prepare, pretrain, reached, label="10-transfer",
    settings=lambda _: {"hashes": hashes()},
    curve=(LOOK_EVERY, lambda run: measured(run.model, run.recipe, run.material)),
    replayed=RECIPES["four, MLM + TLM"],
    more={
        "languages": lambda _: hashes(), "tuned": {"texts": LABELLED, "steps": TUNED_STEPS},
        "retrieved": RETRIEVED, "majority": majority, "words_alone": words_alone,
    },
)  # fmt: skip
ORDER = {
    f"sumorian, {shared:.0%} shared": PairRecipe("sumorian", False, LONGER, shared)
    for shared in (0.0, 0.3, 1.0)
}
OTHER_ORDER = replace(  # the language with another order
    SPELLED, name="10_order", recipes=ORDER, seeds=ORDER_SEEDS,
    more={
        "languages": lambda _: {name: recipe.world.hash for name, recipe in ORDER.items()},
        "untrained": lambda _: all_untrained(ORDER),
    },
)  # fmt: skip
EXPERIMENTS = (TRANSFER, OTHER_ORDER)
MEASURES = tuple(
    f"{what} {language}"
    for what in ("masked", "slots", "topic", "retrieval")
    for language in LANGUAGES
)
