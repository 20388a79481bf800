"""Real text: `10_vocabulary`, what a vocabulary of seven languages does to the words of each, by
how they are sampled; `10_retrieval` (English, French, Chinese) and `10_retrieval_seven`, whether a
small XLM finds the translation of an unseen message, layer by layer, with and without TLM, beside
what spelling and counts alone find; `10_retrieval_tried`, what was tried to find more.

The text is what interfaces say (translations.py) and, as the large language, English documentation.
It stays in its packages: results hold numbers only, and the hash of what was read."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import Tensor

from course_lib.encoder import Encoder
from course_lib.family.xlm import XlmForLanguageModel, xlm_for_language_model
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import Batch, PackedSequences, SpecialIds, pack, to_sequences
from course_lib.objectives.translation_lm import translation_sequences
from course_lib.teaching.experiments import Experiment, Run, Trainer
from course_lib.teaching.results import kept, last_losses
from course_lib.text.documentation import Corpus, documentation_slice
from course_lib.text.language_sampling import shared_out, smoothed
from course_lib.text.world import MicroWorld
from course_lib.train.loop import Batches
from course_lib.train.retrieval import retrieval, sentence_vectors

from .pairs import RATE, joined
from .translations import LANGUAGES, Translations, translations

SEEDS = range(3)
PARAGRAPHS = 20_000  # of English documentation: the large language
ALL = ("en", *LANGUAGES)
PAD, UNK, END, MASK = SPECIAL = ("<pad>", "<unk>", "</s>", "<mask>")


@lru_cache(maxsize=1)
def text() -> Translations:
    """The messages of the installed packages. Raises LookupError where none is."""
    return translations()


# ---------------------------------------------------------------- a shared vocabulary


def learned(texts: Sequence[str], size: int, kind: str = "unigram") -> Tokenizer:
    """A vocabulary of `size` pieces by the tokenizers library, of raw text as SentencePiece has it:
    a space is the mark ▁ in front of a word. kind: "unigram" (Kudo 2018) or "bpe".

    Raises ValueError for another kind, and for fewer pieces than there are characters."""
    if kind not in ("unigram", "bpe"):
        raise ValueError(f'kind={kind!r} was given; expected "unigram" or "bpe".')
    characters = len(set("".join(texts))) + len(SPECIAL)
    if size < characters:
        raise ValueError(
            f"size={size} was given for text with {characters} characters and special tokens; "
            "expected more: each is a piece."
        )
    made: Any = {"vocab_size": size, "special_tokens": list(SPECIAL), "show_progress": False}
    if kind == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        trainer: Any = trainers.UnigramTrainer(unk_token=UNK, **made)
    else:
        tokenizer = Tokenizer(models.BPE(unk_token=UNK))
        trainer = trainers.BpeTrainer(**made)
    tokenizer.normalizer = normalizers.NFKC()  # type: ignore[assignment]
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()  # type: ignore[assignment]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """XLM's: one token, </s>, for both ends of a text."""
    pad, unk, end, mask = (tokenizer.get_vocab()[name] for name in SPECIAL)
    return SpecialIds(pad, unk, end, end, mask, tokenizer.get_vocab_size())


class Fertility(NamedTuple):
    """Pieces for each word (where words are spaced) and for each character, spaces not counted;
    the fraction of characters that the vocabulary does not know, each counted as a piece."""

    words: float
    characters: float
    unknown: float


def fertility(tokenizer: Tokenizer, texts: Sequence[str]) -> Fertility:
    """Of running text. Raises ValueError for no text."""
    if not any(map(str.strip, texts)):
        raise ValueError("no text was given; expected at least one word.")
    unk, pieces, unknown = tokenizer.token_to_id(UNK), 0, 0
    for encoded in tokenizer.encode_batch(list(texts)):
        for id, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
            pieces += max(end - start, 1) if id == unk else 1
            unknown += max(end - start, 1) if id == unk else 0
    characters = sum(len("".join(one.split())) for one in texts)
    return Fertility(
        pieces / sum(len(one.split()) for one in texts), pieces / characters, unknown / characters
    )


@dataclass(frozen=True)
class VocabularyRecipe:
    """kind and size of the vocabulary; α: sentences of each language are drawn with p^α."""

    kind: str
    alpha: float
    size: int = 8_000


VOCABULARIES = {
    f"{kind}, α = {alpha:g}": VocabularyRecipe(kind, alpha)
    for kind in ("unigram", "bpe")
    for alpha in (1.0, 0.7, 0.3)
} | {"unigram, α = 0.3, twice the size": VocabularyRecipe("unigram", 0.3, 16_000)}


@lru_cache(maxsize=2)
def documentation_of(split: str, paragraphs: int) -> Corpus:
    """English documentation."""
    return documentation_slice(paragraphs, split)


@lru_cache(maxsize=1)
def sentences() -> dict[str, list[str]]:
    """What there is of each language to learn a vocabulary from; English: documentation too."""
    lines = {name: [row[0] for row in text().aligned(name, "en", split="train")] for name in ALL}
    lines["en"] += [s for d in documentation_of("train", PARAGRAPHS).sentences() for s in d]
    return lines


def sampled_sentences(alpha: float, seed: int) -> list[str]:
    """As many sentences as there are in all, of each language as many as p^α says; a small one is
    repeated whole, what is left over is drawn."""
    draw, result, lines_of = random.Random(seed), list[str](), sentences()
    sizes = [len(lines) for lines in lines_of.values()]
    counts = shared_out(sum(sizes), smoothed(sizes, alpha))
    for lines, count in zip(lines_of.values(), counts, strict=True):
        times, rest = divmod(count, len(lines))
        result += lines * times + draw.sample(lines, rest)
    return result


def vocabulary_run(recipe: VocabularyRecipe, seed: int) -> dict[str, Any]:
    """One vocabulary, measured on unseen messages that all seven languages have."""

    def run() -> dict[str, Any]:
        tokenizer = learned(sampled_sentences(recipe.alpha, seed), recipe.size, recipe.kind)
        rows = text().aligned(*ALL, split="heldout")
        texts = {name: [row[n] for row in rows] for n, name in enumerate(ALL)}
        texts["documentation"] = documentation_of("heldout", 300).paragraphs
        scores: dict[str, Any] = {"seed": seed}
        for name, lines in texts.items():
            for what, value in fertility(tokenizer, lines)._asdict().items():
                scores[f"{what} {name}"] = value
        cut = {name: _pieces(tokenizer, texts[name]) for name in ALL}
        return scores | {f"beside English {name}": cut[name] / cut["en"] for name in ALL}

    about = {"seed": seed, **asdict(recipe), "text": text().hash, "english": english_hash()}
    return kept("10-vocabulary", about, MicroWorld.load(), run)


def _pieces(tokenizer: Tokenizer, lines: Sequence[str]) -> float:
    return fertility(tokenizer, lines).words * sum(len(line.split()) for line in lines)


def english_hash() -> str:
    """Of the documentation that was read."""
    return documentation_of("train", PARAGRAPHS).hash


def about_text() -> dict[str, Any]:
    """What was read: versions, licences, hash, and how many sentences."""
    read = text()
    aligned = {"en fr zh": ("en", "fr", "zh"), "all seven": ALL}
    return {
        "versions": read.versions, "licences": read.licences, "hash": read.hash,
        "counts": read.counts(),
        "aligned": {
            name: {split: len(read.aligned(*which, split=split)) for split in ("train", "heldout")}
            for name, which in aligned.items()
        },
    }  # fmt: skip


# ---------------------------------------------------------------- finding translations


@dataclass(frozen=True)
class RetrievalRecipe:
    """languages: beside English. tlm: every second batch holds messages beside their translations;
    without, the same messages each alone. steps 0: random initialisation."""

    languages: tuple[str, ...]
    tlm: bool = False
    steps: int = 6_000
    vocabulary: int = 6_000
    hidden_size: int = 128
    num_layers: int = 2
    dropout: float = 0.1
    batch_size: int = 32  # pairs; twice as many messages alone
    learning_rate: float = 1e-3
    longest: int = 40  # pieces of a message


def _with_and_without(languages: tuple[str, ...], **more: int) -> dict[str, RetrievalRecipe]:
    plain = RetrievalRecipe(languages, **more)  # type: ignore[arg-type]
    return {
        "random initialisation": replace(plain, steps=0),
        "MLM": plain,
        "MLM + TLM": replace(plain, tlm=True),
    }


FEW = ("fr", "zh")
RETRIEVALS = {
    "10_retrieval": _with_and_without(FEW),
    "10_retrieval_seven": _with_and_without(LANGUAGES, vocabulary=8_000, steps=4_000),
}
TRIED = {  # on the first seed alone
    "10_retrieval_tried": {
        "a third of the vocabulary": RetrievalRecipe(FEW, tlm=True, vocabulary=2_000),
        "twice the steps": RetrievalRecipe(FEW, tlm=True, steps=12_000),
    }
}
TRIED_SEEDS = range(1)
LOOK_EVERY = 1_000


class Material(NamedTuple):
    """What a recipe's models read and are tested with: one sequence a message, by language; pairs;
    the same unseen messages in all languages."""

    tokenizer: Tokenizer
    train: PackedSequences
    pairs: PackedSequences
    unseen: dict[str, PackedSequences]
    texts: dict[str, list[str]]  # the unseen messages as they are read

    @property
    def special(self) -> SpecialIds:
        """Ids of the special tokens."""
        return special_ids(self.tokenizer)


@lru_cache(maxsize=2)
def prepare(languages: tuple[str, ...], vocabulary: int, longest: int) -> Material:
    """Learn the vocabulary from the training messages, each language alike often, and pack."""
    names = ("en", *languages)
    lines = {n: [row[0] for row in text().aligned(n, "en", split="train")] for n in names}
    most = max(map(len, lines.values()))
    tokenizer = learned([s for of in lines.values() for s in (of * 7)[:most]], vocabulary)
    special, length = special_ids(tokenizer), 2 * longest + 4

    def ids(one: str) -> list[int]:
        return tokenizer.encode(one).ids

    alone, pairs = [], []
    for language_id, name in enumerate(names):
        short = [of for of in map(ids, lines[name]) if len(of) <= longest]
        alone.append(packed(short, language_id, special, length))
        if language_id:
            both = [tuple(map(ids, row)) for row in text().aligned("en", name, split="train")]
            short_pairs = [pair for pair in both if max(map(len, pair)) <= longest]
            first, second = ([pair[side] for pair in short_pairs] for side in (0, 1))
            pairs.append(
                translation_sequences(
                    first, second, special, length=length, languages=(0, language_id)
                )
            )
    rows = text().aligned(*names, split="heldout")
    rows = [row for row in rows if max(len(ids(one)) for one in row) <= longest]
    texts = {name: [row[language_id] for row in rows] for language_id, name in enumerate(names)}
    unseen = {
        name: packed([ids(one) for one in lines], language_id, special, length)
        for language_id, (name, lines) in enumerate(texts.items())
    }
    return Material(tokenizer, joined(*alone), joined(*pairs), unseen, texts)


def packed(
    texts: Sequence[Sequence[int]], language: int, special: SpecialIds, length: int
) -> PackedSequences:
    """Messages one a sequence, their language told; positions counted as in pairs."""
    sequences = to_sequences([pack(ids, None, special, length) for ids in texts])
    sequences.token_type_ids.fill_(language)
    return replace(sequences, position_ids=torch.arange(length).expand_as(sequences.input_ids))


def material_of(recipe: RetrievalRecipe) -> Material:
    """What a recipe reads; recipes of the same languages read the same."""
    return prepare(recipe.languages, recipe.vocabulary, recipe.longest)


def model_of(recipe: RetrievalRecipe, special: SpecialIds, seed: int) -> XlmForLanguageModel:
    """A small XLM, randomly initialised."""
    torch.manual_seed(seed)
    return xlm_for_language_model(
        vocab_size=special.vocab_size, hidden_size=recipe.hidden_size, num_heads=4,
        num_layers=recipe.num_layers, intermediate_size=4 * recipe.hidden_size,
        max_positions=2 * recipe.longest + 4, type_vocab_size=1 + len(recipe.languages),
        pad_token_id=special.pad, hidden_dropout=recipe.dropout, attention_dropout=recipe.dropout,
        initializer_range=0.05,
    )  # fmt: skip


def batches_of(recipe: RetrievalRecipe, _: Any, seed: int) -> Batches:
    """Messages alone, and with `tlm` every second step pairs."""
    material, size = material_of(recipe), recipe.batch_size
    alone, beside = (
        pretraining_batches(sequences, material.special, batch_size=count, rate=RATE, seed=seed + 1)
        for sequences, count in ((material.train, 2 * size), (material.pairs, size))
    )

    def batches(step: int) -> Batch:
        return (beside if step % 2 else alone)(step // 2) if recipe.tlm else alone(step)

    return batches


pretrain = Trainer(
    lambda recipe, _, seed: (
        model_of(recipe, material_of(recipe).special, seed), masked_lm_loss
    ),
    batches_of,
)  # fmt: skip


def retrieval_by_layer(encoder: Encoder, material: Material) -> dict[str, list[float]]:
    """Of every layer, embeddings first: unseen messages whose nearest vector is their translation,
    for each pair of languages; centred: without the mean of each language."""
    vectors = {
        name: sentence_vectors(encoder, sequences, material.special)
        for name, sequences in material.unseen.items()
    }
    return summed_up({
        (one, other, centred): [
            retrieval(a, b, centred=centred).mean
            for a, b in zip(vectors[one], vectors[other], strict=True)
        ]
        for one, other in combinations(vectors, 2)
        for centred in (False, True)
    })  # fmt: skip


def summed_up(by_pair: dict[tuple[str, str, bool], list[float]]) -> dict[str, list[float]]:
    """Pair by pair with English, and the means over pairs with English and without."""
    lists_of: dict[str, list[list[float]]] = defaultdict(list)
    for (one, other, centred), values in by_pair.items():
        end = " centred" if centred else ""
        if one == "en":
            lists_of[f"layers {other}{end}"].append(values)
        lists_of[f"layers {'with' if one == 'en' else 'without'} English{end}"].append(values)
    return {
        name: [fmean(layer) for layer in zip(*lists, strict=True)]
        for name, lists in lists_of.items()
    }


def last(layers: dict[str, list[float]]) -> dict[str, float]:
    """What the last layer finds, as `retrieval …`."""
    return {
        f"retrieval{name.removeprefix('layers')}": values[-1] for name, values in layers.items()
    }


def final_measures(run: Run) -> dict[str, Any]:
    """What every layer finds at the end."""
    positions = {"positions": run.history.tokens} if run.recipe.steps else {}
    layers = retrieval_by_layer(_encoder(run.model), material_of(run.recipe))
    return {**last_losses(run.history), **positions, **last(layers), **layers}


def curve_measures(run: Run) -> dict[str, float]:
    """What the curve shows."""
    return last(retrieval_by_layer(_encoder(run.model), material_of(run.recipe)))


def _encoder(model: Any) -> Encoder:
    """Ready to be asked, without dropout."""
    encoder = model.encoder.eval()
    assert isinstance(encoder, Encoder)
    return encoder


# ---------------------------------------------------------------- without an encoder


def by_spelling(texts: dict[str, list[str]]) -> dict[str, float]:
    """Found by what is spelled alike: counts of runs of one to four characters, weighted by how
    rare they are (tf-idf). Digits, names and commands are the same in all languages."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    counter = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4))
    counter.fit([one for lines in texts.values() for one in lines])
    vectors = {
        name: torch.tensor(counter.transform(lines).toarray()) for name, lines in texts.items()
    }
    return _without_encoder(vectors)


def by_counts(material: Material, width: int = 128) -> dict[str, float]:
    """Found by which pieces occur in translations of each other, without order or a network: the
    counts in each training pair, both sides in one row, reduced to `width` numbers (latent semantic
    indexing across languages, Landauer and Littman 1990)."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    weigh, reduce = TfidfTransformer(sublinear_tf=True), TruncatedSVD(width, random_state=0)
    reduce.fit(weigh.fit_transform(counts(material.pairs, material.special).numpy()))
    vectors = {
        name: torch.from_numpy(
            reduce.transform(weigh.transform(counts(sequences, material.special).numpy()))
        )
        for name, sequences in material.unseen.items()
    }
    return _without_encoder(vectors)


def counts(sequences: PackedSequences, special: SpecialIds) -> Tensor:
    """How often each piece stands in each sequence, special ones left out: (N, V)."""
    result = torch.zeros(len(sequences), special.vocab_size)
    result.scatter_add_(1, sequences.input_ids, sequences.attention_mask.float())
    result[:, list(special.never_masked)] = 0
    return result


def _without_encoder(vectors: dict[str, Tensor]) -> dict[str, float]:
    by_pair = {
        (one, other, False): [retrieval(vectors[one], vectors[other]).mean]
        for one, other in combinations(vectors, 2)
    }
    return last(summed_up(by_pair))


def of_recipes(
    name: str, recipes: Mapping[str, RetrievalRecipe], seeds: Sequence[int]
) -> Experiment:
    """A file of these recipes, which read the same text."""
    last_recipe = list(recipes.values())[-1]

    def material() -> Material:
        return material_of(last_recipe)

    return Experiment(
        name, recipes, seeds, train=pretrain, measure=final_measures,
        label="10-retrieval", settings=lambda _: {"text": text().hash},
        curve=(LOOK_EVERY, curve_measures),
        replayed=last_recipe,
        more={
            "text": lambda _: about_text(), "looked_up": lambda _: len(material().texts["en"]),
            "read": lambda _: {
                "messages": len(material().train), "pairs": len(material().pairs)
            },
            "asked": lambda _: {
                n: len(material_of(one).texts["en"]) for n, one in recipes.items()
            },
            "by_spelling": lambda _: by_spelling(material().texts),
            "by_counts": lambda _: by_counts(material()),
        },
    )  # fmt: skip


MEASURES = tuple(
    f"{what} {name}"
    for what, names in (
        ("words", ALL), ("beside English", LANGUAGES),
        ("retrieval", (*LANGUAGES, "with English", "without English")),
    )
    for name in names
)  # fmt: skip
LEARNED = Experiment(
    "10_vocabulary", VOCABULARIES, SEEDS,
    run=lambda recipe, _, seed: vocabulary_run(recipe, seed),
    more={
        "text": lambda _: about_text(), "english": lambda _: english_hash(),
        "learned_from": lambda _: {name: len(lines) for name, lines in sentences().items()},
        "tested_on": lambda _: len(text().aligned(*ALL, split="heldout")),
    },
)  # fmt: skip
EXPERIMENTS = (LEARNED, *(
    of_recipes(name, recipes, seeds)
    for files, seeds in ((RETRIEVALS, SEEDS), (TRIED, TRIED_SEEDS))
    for name, recipes in files.items()
))  # fmt: skip
