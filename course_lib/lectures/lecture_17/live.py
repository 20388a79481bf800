"""A search that is trained on the page while the reader waits: a token table beside BM25."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checkpoints import load_pretrained
from course_lib.objectives.sequences import Batch, shuffled
from course_lib.text.features import plain_sequences
from course_lib.train.loop import fit
from course_lib.train.searching import BM25, VectorIndex

from .pairs import Pairs
from .search import (
    QUERY_LENGTH,
    READ,
    RECIPES,
    BothSides,
    TokenTable,
    ndcg,
    one_vector_loss,
    tokenizer,
)

RATE = 1e-2  # the best of those tried for the token table


class LiveSearch:
    """A token table, trained on pairs, that searches the documents of others."""

    def __init__(self, train: Pairs, unseen: Pairs, seed: int = 0) -> None:
        self.pairs, self.seed = unseen, seed
        sides = (train.queries, QUERY_LENGTH), (train.documents, READ)
        self.sides = [plain_sequences(texts, tokenizer(), n)[0] for texts, n in sides]
        encoder = load_pretrained(RECIPES["token table"].start).encoder
        self.model = TokenTable(encoder, self.sides[1].input_ids)
        self.bm25 = BM25(unseen.documents)

    @property
    def chance(self) -> float:
        """nDCG@10 of a random order."""
        return float(ndcg(torch.zeros(len(self.pairs), len(self.pairs))).mean())

    def train(self, steps: int, batch_size: int = 256) -> None:
        """So many steps at RATE."""
        query, document = self.sides
        which = shuffled(len(query), batch_size, self.seed)

        def batches(step: int) -> Batch:
            at = which(step)
            inputs = {
                "input_ids": query.input_ids[at], "attention_mask": query.attention_mask[at],
                "document_ids": document.input_ids[at],
                "document_mask": document.attention_mask[at],
            }  # fmt: skip
            return Batch(inputs, {})

        both = BothSides(self.model)
        fit(both, one_vector_loss, batches, steps=steps, learning_rate=RATE, weight_decay=0.0,
            seed=self.seed, precision="float32")  # fmt: skip

    @torch.no_grad()
    def encode(self, texts: list[str]) -> Tensor:
        """Unit vectors (N, H)."""
        packed = plain_sequences(texts, tokenizer(), READ)[0]
        return F.normalize(self.model(packed.input_ids, packed.attention_mask), dim=-1)

    @property
    def index(self) -> VectorIndex:
        """Of all documents, as the table stands."""
        return VectorIndex(self.encode(self.pairs.documents))

    @property
    def queries(self) -> Tensor:
        return self.encode(self.pairs.queries)

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
