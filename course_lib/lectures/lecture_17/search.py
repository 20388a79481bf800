"""`17_search`: queries and documents of installed documentation, found by words, by vectors, and by
both, on unseen modules of known packages and on packages that no training here ever read.

Each query has one document that belongs to it. Learning rates and the weight of a mix are chosen on
training pairs that were put aside, seed 0; three seeds of everything that is trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from time import process_time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checkpoints import load_pretrained
from course_lib.encoder import Encoder
from course_lib.kernels.maxsim import maxsim
from course_lib.objectives.contrastive import (
    info_nce_loss,
    matryoshka_loss,
    symmetric_cross_entropy,
)
from course_lib.objectives.sequences import Batch, shuffled
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept
from course_lib.text.features import plain_sequences
from course_lib.text.world import MicroWorld
from course_lib.train.loop import History, Objective, fit
from course_lib.train.searching import BM25, reciprocal_rank_fusion, search_terms, weighted_mix
from course_lib.train.sentence_encoder import SentenceEncoder

from .pairs import Pairs, held_out_of_training, pairs

K = 10
QUERY_LENGTH, DOCUMENT_LENGTH = 32, 64  # tokens that are read in training
READ = 128  # tokens that are read in search
CUT = "BM25 cut"  # that reads no more of a document than the encoders do
PIECE = 50  # words of a section of the course that are read at once: nearly all fit into READ
SIZES = (16, 32, 64, 128, 256)  # of Matryoshka vectors
WEIGHTS = tuple(n / 10 for n in range(1, 10))  # of vectors in a mix
SHARED = ("0", "1", "2", "3", "4", "5+")  # words of the query that the document has, too
SEEDS, TESTS = range(3), ("modules", "packages")
RATES = {"encoder": (1e-4, 3e-4, 1e-3), "table": (3e-3, 1e-2, 3e-2)}
START = "course-bert"  # whose pieces all read


@dataclass(frozen=True)
class Recipe:
    """A way to search. start: a checkpoint, RANDOM, or none: by words alone.
    learning_rate: 0 is the best of RATES; steps: 0 is no training."""

    way: str
    start: str = START
    steps: int = 0
    batch_size: int = 64
    learning_rate: float = 0.0
    every = 1  # of the tests' queries every so many-th is searched for

    @property
    def corpus(self) -> str:
        """What the names of its splits begin with: nothing, or "code "."""
        return ""

    def untrained(self, seed: int) -> nn.Module:
        """Its model before its training."""
        return model_of(self, seed)

    def trained(self, seed: int) -> tuple[nn.Module, History]:
        """Its model, and its losses."""
        return train(self, seed)

    def scores(self, model: nn.Module, split: str) -> Tensor:
        """The model's scores (Q, Q) of a split."""
        return model_scores(model, self, split)


RANDOM = "random initialisation"
RECIPES = {
    "BM25": Recipe("BM25", start=""),
    "TF-IDF": Recipe("TF-IDF", start=""),
    "[CLS]": Recipe("cls"),
    "mean": Recipe("mean"),
    "mean, centred": Recipe("centred"),
    "MiniLM": Recipe("mean", start="minilm"),
    "token table": Recipe("table", steps=200, batch_size=512),
    "Matryoshka table": Recipe("nested table", steps=200, batch_size=512),
    "bi-encoder": Recipe("mean", steps=120),
    "bi-encoder from nothing": Recipe("mean", start=RANDOM, steps=120),
    "MaxSim, untrained": Recipe("tokens"),
    "MaxSim, trained": Recipe("tokens", steps=120),
}
TRAINED = tuple(name for name, recipe in RECIPES.items() if recipe.steps)


# ---------------------------------------------------------------- how well


def ranks(scores: Tensor, numbers: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Of query n's own document, n, in scores (Q, Q): how many score higher, and how many alike,
    itself among them. numbers: the numbers of the queries that the rows are of, where not all."""
    at = torch.arange(len(scores)) if numbers is None else numbers
    own = scores.gather(1, at[:, None])
    return (scores > own).sum(dim=1), (scores == own).sum(dim=1)


def ndcg(scores: Tensor, k: int = K, numbers: Tensor | None = None) -> Tensor:
    """nDCG@k of each query, (Q,): 1/log2(1 + rank) where its one document is among the first k;
    of documents that score alike, the mean over their orders."""
    higher, alike = ranks(scores, numbers)
    places = torch.arange(1, scores.shape[1] + 1, dtype=torch.float64)
    gains = (1 / torch.log2(1 + places)).where(places <= k, 0)
    total = F.pad(gains.cumsum(0), (1, 0))
    return (total[higher + alike] - total[higher]) / alike


@cache
def shared_words(split: str) -> list[int]:
    """How many different words of each query its document has, too, as BM25 sees words."""
    of = read(split)
    sides = zip(search_terms(of.queries), search_terms(of.documents), strict=True)
    return [len(set(query) & set(document)) for query, document in sides]


def by_shared_words(
    scores: Tensor, split: str, numbers: Tensor | None = None
) -> dict[str, dict[str, float]]:
    """nDCG@10 and the count of the queries that share so many words with their document."""
    counts = torch.tensor(shared_words(split)).clamp(max=len(SHARED) - 1)
    counts, values = counts if numbers is None else counts[numbers], ndcg(scores, numbers=numbers)
    return {
        name: {"ndcg": float(values[counts == n].mean()), "queries": int((counts == n).sum())}
        for n, name in enumerate(SHARED)
        if (counts == n).any()
    }


# ---------------------------------------------------------------- what is read


@lru_cache
def read(split: str) -> Pairs:
    """A split, of documentation or, as in "code dev", of code; of the training pairs "train"
    without, "dev" only, what settings are chosen by."""
    corpus, _, part = split.rpartition(" ")
    if part in TESTS:
        return pairs(part, corpus)
    train, dev = held_out_of_training(pairs("train", corpus))
    return train if part == "train" else dev[:500]


@lru_cache
def tokenizer() -> Any:
    """course-bert's, whose pieces all but MiniLM read."""
    return load_pretrained(START).tokenizer


def sides_of(of: Pairs, document_length: int = DOCUMENT_LENGTH) -> dict[str, Tensor]:
    """Queries and documents as BothSides takes them, cut to their lengths."""
    texts = ((of.queries, QUERY_LENGTH), (of.documents, document_length))
    query, document = (plain_sequences(t, tokenizer(), n)[0] for t, n in texts)
    return {
        "input_ids": query.input_ids, "attention_mask": query.attention_mask,
        "document_ids": document.input_ids, "document_mask": document.attention_mask,
    }  # fmt: skip


@lru_cache
def packed_sides(split: str) -> dict[str, Tensor]:
    """Those of a split, cut to their training lengths."""
    return sides_of(read(split))


# ---------------------------------------------------------------- models


class TokenTable(nn.Module):
    """A text's vector is the weighted mean of its tokens' vectors: no position, no context.

    Begun from an encoder's token embeddings; the weight of a token is trained, too, and begins at
    its inverse document frequency."""

    def __init__(self, encoder: Encoder, ids: Tensor) -> None:
        super().__init__()
        embeddings: Any = encoder.embeddings
        table = embeddings.token.weight.detach()
        present = torch.zeros(len(ids), len(table)).scatter_(1, ids, 1).sum(dim=0)
        self.vectors = nn.Embedding.from_pretrained(F.normalize(table, dim=-1), freeze=False)
        self.weights = nn.Parameter(((1 + len(ids)) / (1 + present)).log().sqrt())

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        weights = self.weights[input_ids] * attention_mask  # (B, T)
        return (self.vectors(input_ids) * weights[..., None]).sum(dim=1)


class TokenVectors(nn.Module):
    """A vector a token, of unit length; padding is zero."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.encoder(input_ids, attention_mask).last_hidden_state
        return F.normalize(states, dim=-1) * attention_mask[..., None]


class BothSides(nn.Module):
    """One model, two texts: what `fit` trains."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        document_ids: Tensor,
        document_mask: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        query = self.model(input_ids, attention_mask)
        return query, self.model(document_ids, document_mask), attention_mask, document_mask


TEMPERATURE = 0.05


def one_vector_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Symmetric InfoNCE among the pairs of the batch."""
    query, document, *_ = outputs
    return {"total": info_nce_loss(query, document, temperature=TEMPERATURE, symmetric=True)}


def nested_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same over the first numbers of each vector, for every size of SIZES."""

    def loss(query: Tensor, document: Tensor) -> Tensor:
        return one_vector_loss((query, document), targets)["total"]

    return {"total": matryoshka_loss(loss, outputs[:2], SIZES) / len(SIZES)}


def token_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Cross-entropy over MaxSim scores, each the mean over the query's tokens."""
    query, document, query_mask, document_mask = outputs
    scores = maxsim(query, document, query_mask, document_mask) / query_mask.sum(1)[:, None]
    return {"total": symmetric_cross_entropy(scores / TEMPERATURE)}


LOSSES = {
    "mean": one_vector_loss, "table": one_vector_loss, "nested table": nested_loss,
    "tokens": token_loss,
}  # fmt: skip


def start_encoder(recipe: Recipe, seed: int) -> Encoder:
    """The checkpoint's encoder, or one as large as course-bert's with random weights."""
    if recipe.start != RANDOM:
        return load_pretrained(recipe.start).encoder
    torch.manual_seed(seed)
    return Encoder(load_pretrained(START).encoder.config)


def model_of(recipe: Recipe, seed: int) -> nn.Module:
    """Before its training."""
    encoder = start_encoder(recipe, seed)
    if recipe.way in ("table", "nested table"):
        return TokenTable(encoder, packed_sides("train")["document_ids"])
    if recipe.way == "tokens":
        return TokenVectors(encoder)
    reads: Any = load_pretrained("minilm").tokenizer if recipe.start == "minilm" else tokenizer()
    return SentenceEncoder(encoder, reads, "cls" if recipe.way == "cls" else "mean", length=READ)


def fit_pairs(
    model: nn.Module,
    loss: Objective,
    sides: Mapping[str, Tensor],
    *,
    steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
) -> History:
    """Train a model on random pairs of `sides`, `batch_size` a step."""
    which = shuffled(len(sides["input_ids"]), batch_size, seed)

    def batches(step: int) -> Batch:
        at = which(step)
        return Batch({name: value[at] for name, value in sides.items()}, {})

    return fit(
        BothSides(model), loss, batches, steps=steps, learning_rate=learning_rate, seed=seed,
        weight_decay=0.0, precision="float32",
    )  # fmt: skip


def train(recipe: Recipe, seed: int, steps: int | None = None) -> tuple[nn.Module, History]:
    """A recipe's model and its losses; at its own learning rate, which must not be 0."""
    model = model_of(recipe, seed)
    history = fit_pairs(
        model, LOSSES[recipe.way], packed_sides(f"{recipe.corpus}train"), seed=seed,
        steps=recipe.steps if steps is None else steps, batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate,
    )  # fmt: skip
    return model.eval(), history


# ---------------------------------------------------------------- scores


@cache
def by_words(split: str, way: str = "BM25") -> Tensor:
    """Scores (Q, Q) of a split's queries and documents by words alone."""
    of = read(split)
    if way in ("BM25", CUT):
        documents = of.documents if way == "BM25" else [as_read(text) for text in of.documents]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of queries without a known word: they count
            return BM25(documents).scores(of.queries)
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=lambda words: words, sublinear_tf=True)
    documents = vectorizer.fit_transform(search_terms(of.documents))
    product = vectorizer.transform(search_terms(of.queries)) @ documents.T
    return torch.from_numpy(product.toarray()).float()


def as_read(text: str) -> str:
    """What of a document course-bert reads: its first READ tokens, [CLS] and [SEP] among them."""
    _, offsets = tokenizer().encode_with_offsets(text)
    return text if len(offsets) <= READ - 2 else text[: offsets[READ - 3][1]]


def model_scores(model: nn.Module, recipe: Recipe, split: str) -> Tensor:
    """Scores (Q, Q) of a split by a model."""
    return scores_between(model, recipe, read(split).queries, read(split).documents)


@torch.no_grad()
def scores_between(
    model: nn.Module, recipe: Recipe, queries: Sequence[str], documents: Sequence[str]
) -> Tensor:
    """Scores (Q, N) by a model: cosines, or MaxSim."""
    if isinstance(model, SentenceEncoder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of documents that are cut: BM25 alone reads all
            query, document = model.encode(queries), model.encode(documents)
        if recipe.way == "centred":
            return cosines(query - query.mean(0), document - document.mean(0))
        return query @ document.T
    (query, query_mask), (document, document_mask) = (
        _in_batches(model, texts) for texts in (queries, documents)
    )
    if recipe.way == "tokens":
        return maxsim(query, document, query_mask, document_mask)
    return cosines(query, document)


def cosines(query: Tensor, document: Tensor) -> Tensor:
    """(Q, H), (N, H) -> (Q, N)."""
    return F.normalize(query, dim=-1) @ F.normalize(document, dim=-1).T


@torch.no_grad()
def _in_batches(model: nn.Module, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    packed = plain_sequences(texts, tokenizer(), READ)[0]
    ids, mask = packed.input_ids, packed.attention_mask
    return torch.cat(
        [model(*part) for part in zip(ids.split(64), mask.split(64), strict=True)]
    ), mask


def nested_ndcg(model: TokenTable, split: str) -> dict[str, float]:
    """nDCG@10 by the first numbers of each vector alone."""
    query, document = (
        _in_batches(model, t)[0] for t in (read(split).queries, read(split).documents)
    )
    return {
        str(size): float(ndcg(cosines(query[:, :size], document[:, :size])).mean())
        for size in SIZES
    }


@cache
def rates_tried(recipe: Recipe) -> dict[float, float]:
    """nDCG@10 on the pairs put aside by learning rate, seed 0; an end that is best is passed."""

    def score(rate: float) -> float:
        return float(outcome(replace(recipe, learning_rate=rate), 0)["dev"])

    tried = {rate: score(rate) for rate in RATES["table" if "table" in recipe.way else "encoder"]}
    while (best := max(tried, key=lambda rate: tried[rate])) in (min(tried), max(tried)):
        further = best / 3 if best == min(tried) else best * 3
        tried[further] = score(further)
    return dict(sorted(tried.items()))


def at_best(recipe: Recipe) -> Recipe:
    """With the best of its learning rates, where it is trained."""
    if not recipe.steps or recipe.learning_rate:
        return recipe
    tried = rates_tried(recipe)
    return replace(recipe, learning_rate=max(tried, key=lambda rate: tried[rate]))


def outcome(recipe: Recipe, seed: int) -> dict[str, Any]:
    """A recipe trained, where it is, and searched with. Read from the cache if done before."""

    def run() -> dict[str, Any]:
        began, last, model = process_time(), None, None
        scores_of: Callable[[str], Tensor] = partial(by_words, way=recipe.way)
        if recipe.steps:
            model, history = recipe.trained(seed)
            last = sum(history.losses["total"][-20:]) / 20
        elif recipe.start:
            model = recipe.untrained(seed).eval()
        if model is not None:
            scores_of = partial(recipe.scores, model)
        seconds = round(process_time() - began, 1)
        result = measured(scores_of, recipe.corpus, recipe.every)
        if isinstance(model, TokenTable):
            result["sizes"] = {split: nested_ndcg(model, split) for split in TESTS}
        return {**result, "loss": last, "train_seconds": seconds,
                "cpu_seconds": round(process_time() - began, 1)}  # fmt: skip

    texts = {split: read(recipe.corpus + split).hash for split in ("train", "dev", *TESTS)}
    about = {"seed": seed, **asdict(recipe), "texts": texts}
    return kept(f"17-{recipe.way.replace(' ', '-')}-{seed}", about, MicroWorld.load(), run)


def measured(
    scores_of: Callable[[str], Tensor], corpus: str = "", every: int = 1
) -> dict[str, Any]:
    """What is written of a way to search: alone, by shared words, and joined with BM25, by ranks
    and by a mix whose weight is chosen on the pairs put aside."""

    def of_split(split: str) -> tuple[Tensor, Tensor, Tensor]:
        """The numbers of some of the queries, and their scores by the way and by words."""
        numbers, name = torch.arange(0, len(read(corpus + split)), every), corpus + split
        return numbers, scores_of(name)[numbers], by_words(name)[numbers]

    numbers, dev, words = of_split("dev")
    tried = {w: float(ndcg(weighted_mix(words, dev, w), numbers=numbers).mean()) for w in WEIGHTS}
    weight, result = max(tried, key=lambda w: tried[w]), {}
    alone = float(ndcg(dev, numbers=numbers).mean())
    for split in TESTS:
        numbers, scores, words = of_split(split)
        higher, _ = ranks(scores, numbers)
        mean = {
            "ndcg": scores,
            "fused": reciprocal_rank_fusion(words, scores),
            "mix": weighted_mix(words, scores, weight),
        }
        result[split] = {
            **{name: float(ndcg(of, numbers=numbers).mean()) for name, of in mean.items()},
            "mrr": float((1 / (1 + higher.double())).where(higher < K, 0).mean()),
            "recall": float((higher < K).double().mean()),
            "by_shared": by_shared_words(scores, corpus + split, numbers),
        }
    return {"dev": alone, "weight": weight, **result}


def one_run(recipe: Recipe, seed: int) -> dict[str, Any]:
    """A recipe at its best learning rate."""
    best = at_best(recipe)
    rates = {"rates": rates_tried(recipe)} if recipe.steps and not recipe.learning_rate else {}
    return {"seed": seed, "rate": best.learning_rate, **rates, **outcome(best, seed)}


SEARCH = Experiment(
    "17_search",
    RECIPES,
    {
        name: SEEDS if recipe.steps and recipe.start != RANDOM else (0,)
        for name, recipe in RECIPES.items()
    },
    run=lambda recipe, _, seed: one_run(recipe, seed),
    more={
        "texts": lambda _: {
            split: {"pairs": len(read(split)), "hash": read(split).hash}
            for split in ("train", "dev", *TESTS)
        },
        "packages": lambda _: pairs("packages").versions,
    },
)
