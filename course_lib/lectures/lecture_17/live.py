"""A search that is trained on the page while the reader waits: a token table beside BM25."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checkpoints import load_pretrained
from course_lib.text.features import plain_sequences
from course_lib.train.searching import BM25, VectorIndex

from .pairs import Pairs
from .search import (
    READ,
    RECIPES,
    TokenTable,
    fit_pairs,
    ndcg,
    one_vector_loss,
    sides_of,
    tokenizer,
)

RATE = 1e-2  # enough for some sixty steps; the stored table, with 200, has a higher one


class LiveSearch:
    """A token table, trained on pairs, that searches the documents of others.

    queries (Q, H), index: of those others, as the table stands."""

    def __init__(self, train: Pairs, unseen: Pairs, seed: int = 0) -> None:
        self.pairs, self.seed = unseen, seed
        self.sides = sides_of(train, READ)
        encoder = load_pretrained(RECIPES["token table"].start).encoder
        self.model = TokenTable(encoder, self.sides["document_ids"])
        self.bm25 = BM25(unseen.documents)
        self._encode_all()

    @property
    def chance(self) -> float:
        """nDCG@10 of a random order."""
        return float(ndcg(torch.zeros(len(self.pairs), len(self.pairs))).mean())

    def train(self, steps: int, batch_size: int = 256) -> None:
        """So many steps at RATE."""
        fit_pairs(
            self.model, one_vector_loss, self.sides, steps=steps, batch_size=batch_size,
            learning_rate=RATE, seed=self.seed,
        )  # fmt: skip
        self._encode_all()

    def _encode_all(self) -> None:
        """Queries, and an index of the documents, as the table stands."""
        self.queries = self.encode(self.pairs.queries)
        self.index = VectorIndex(self.encode(self.pairs.documents))

    @torch.no_grad()
    def encode(self, texts: list[str]) -> Tensor:
        """Unit vectors (N, H)."""
        packed = plain_sequences(texts, tokenizer(), READ)[0]
        return F.normalize(self.model(packed.input_ids, packed.attention_mask), dim=-1)

    def table(self) -> float:
        """nDCG@10 of the table."""
        return float(ndcg(self.index.scores(self.queries)).mean())

    def words(self) -> float:
        """nDCG@10 of BM25."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of queries without a known word: they count
            return float(ndcg(self.bm25.scores(self.pairs.queries)).mean())

    def search(self, question: str, k: int = 2) -> dict[str, list[str]]:
        """The queries whose documents each way finds first: what the found texts are about."""
        both = {
            "BM25": self.bm25.search([question], k)[0],
            "token table": self.index.search(self.encode([question]), k)[0],
        }
        return {
            name: [self.pairs.queries[int(n)] for n in ranking] for name, ranking in both.items()
        }
