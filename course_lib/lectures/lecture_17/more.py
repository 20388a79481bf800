"""`17_more`: what might find more on unseen packages than the ways of `17_search`. BM25's hard
negatives, a start from ModernBERT, SimCSE, a cross-encoder over BM25's first 50, and another task:
a function's code, by the first sentence of its docstring.

Learning rates, weights of mixes, seeds and measures are those of `17_search`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.encoder import Encoder
from course_lib.objectives.contrastive import info_nce_loss
from course_lib.objectives.sequences import Batch, shuffled
from course_lib.teaching.experiments import Experiment
from course_lib.train.loop import History, fit
from course_lib.train.precision import computing_in
from course_lib.train.searching import BM25

from .search import (
    CUT,
    RATES,
    SEEDS,
    TEMPERATURE,
    Recipe,
    by_words,
    one_run,
    read,
    sides_of,
    start_encoder,
    train,
)

THIRD = 3  # every third query is asked of a cross-encoder: 50 texts for each take their time
CANDIDATES = 50  # of BM25's, that a cross-encoder reads
DRAWN_FROM = 20  # of BM25's best wrong documents hard negatives are drawn
PAIR_DOCUMENT = 96  # tokens of a document beside a query of 32: together all that course-bert reads
CROSS_PRECISION = "bfloat16"  # half the time where the processor has it; scores in float32
DROPOUT = 0.1  # of SimCSE, as in the paper; course-bert has none of its own


@dataclass(frozen=True)
class Trial(Recipe):
    """negatives: hard ones that are drawn for each query; task: "" or "code"; every: 1 asks all
    queries of the tests, n every n-th."""

    negatives: int = 0
    task: str = ""
    every: int = 1

    @property
    def corpus(self) -> str:
        return self.task and f"{self.task} "

    def trained(self, seed: int) -> tuple[nn.Module, History]:
        if not self.negatives and self.way != "simcse":
            return train(self, seed)
        return fit_trial(self.untrained(seed), self, seed)

    def untrained(self, seed: int) -> nn.Module:
        if self.way == "cross":
            return CrossEncoder(start_encoder(self, seed), seed)
        return super().untrained(seed)

    def scores(self, model: nn.Module, split: str) -> Tensor:
        return (
            reranked(model, split, self.every)
            if self.way == "cross"
            else super().scores(model, split)
        )


CROSS, UNTRAINED = "cross-encoder, a third", "cross-encoder, untrained, a third"
TRIALS = {
    "hard negatives": Trial("mean", steps=120, negatives=1),
    "from course-modernbert": Trial("mean", start="course-modernbert", steps=120),
    "SimCSE": Trial("simcse", steps=120),
    "BM25, 128 tokens": Trial(CUT, start=""),
    "BM25, a third": Trial("BM25", start="", every=THIRD),
    UNTRAINED: Trial("cross", every=THIRD),
    # Its rate was the best of 1e-4, 3e-4 and 1e-3 after 300 steps: nDCG@10 .144, .178 and .126 on
    # the pairs put aside.
    CROSS: Trial("cross", steps=1_200, batch_size=16, negatives=3, every=THIRD, learning_rate=3e-4),
    "code: BM25": Trial("BM25", start="", task="code"),
    "code: untrained": Trial("mean", task="code"),
    "code: MiniLM": Trial("mean", start="minilm", task="code"),
    "code: bi-encoder": Trial("mean", steps=120, task="code"),
}


class CrossEncoder(nn.Module):
    """Query and document in one input, and a number from the state of [CLS]: (B,)."""

    def __init__(self, encoder: Encoder, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.encoder = encoder
        self.score = nn.Linear(encoder.config.hidden_size, 1)

    def forward(self, query: Tensor, query_mask: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        """Each (B, T) of its side, [CLS] text [SEP]: the document's [CLS] is left out. Its first
        token is always at one position, whatever the query's length."""
        segments = torch.cat([torch.zeros_like(query), torch.ones_like(ids[:, 1:])], dim=1)
        inputs = torch.cat([query, ids[:, 1:]], 1), torch.cat([query_mask, mask[:, 1:]], 1)
        states = self.encoder(*inputs, segments).last_hidden_state[:, 0]
        with torch.autocast(states.device.type, enabled=False):
            return self.score(states.float())[:, 0]


class Comparing(nn.Module):
    """A model, the two sides of B pairs, and K more documents for each query: what `fit` trains."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        document_ids: Tensor,
        document_mask: Tensor,
    ) -> Tensor:
        """The loss. document_ids ((1 + K)·B, T): the queries' own, then K for each query."""
        pairs, more = len(input_ids), len(document_ids) // len(input_ids) - 1
        if isinstance(self.model, CrossEncoder):
            own = torch.arange(pairs)
            which = torch.cat([own, own.repeat_interleave(more)])
            scores = self.model(
                input_ids[which], attention_mask[which], document_ids, document_mask
            )
            others = scores[pairs:].view(pairs, more)
            logits = torch.cat([scores[:pairs, None], others], dim=1)  # (B, 1 + K), own first
            return F.cross_entropy(logits, torch.zeros_like(own))
        query = self.model(input_ids, attention_mask)
        documents = self.model(document_ids, document_mask)
        hard = documents[pairs:].view(pairs, more, -1) if more else None
        return info_nce_loss(
            query, documents[:pairs], hard, temperature=TEMPERATURE, symmetric=True
        )


def _total(loss: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {"total": loss}


def fit_trial(
    model: nn.Module, trial: Trial, seed: int, steps: int | None = None
) -> tuple[nn.Module, History]:
    """A model trained with hard negatives; or, of SimCSE, documents alone with two dropouts."""
    sides = sides_of(read(f"{trial.corpus}train"), PAIR_DOCUMENT if trial.way == "cross" else 64)
    if trial.way == "simcse":
        documents = {"input_ids": sides["document_ids"], "attention_mask": sides["document_mask"]}
        sides = {**sides, **documents}
        for part in model.modules():
            if isinstance(part, nn.Dropout):
                part.p = DROPOUT
    which = shuffled(len(sides["input_ids"]), trial.batch_size, seed)
    hard = hard_negatives(f"{trial.corpus}train") if trial.negatives else None

    def batches(step: int) -> Batch:
        at = documents = which(step)
        if hard is not None:
            draw = torch.Generator().manual_seed(1_000_003 * seed + step)
            columns = torch.rand(len(at), hard.shape[1], generator=draw).argsort(1)
            drawn = hard[at].gather(1, columns[:, : trial.negatives])  # (B, K)
            documents = torch.cat([at, drawn.flatten()])
        rows = {"input_ids": at, "attention_mask": at}
        return Batch({n: x[rows.get(n, documents)] for n, x in sides.items()}, {})

    history = fit(
        Comparing(model), _total, batches, steps=steps or trial.steps, seed=seed,
        learning_rate=trial.learning_rate, weight_decay=0.0,
        precision=CROSS_PRECISION if trial.way == "cross" else "float32",
    )  # fmt: skip
    return model.eval(), history


@cache
def hard_negatives(split: str, count: int = DRAWN_FROM) -> Tensor:
    """BM25's best wrong documents of each query, (Q, count): their numbers."""
    of = read(split)
    index, parts = BM25(of.documents), []
    for first in range(0, len(of), 500):
        scores = index.scores(of.queries[first : first + 500])
        rows = torch.arange(len(scores))
        scores[rows, first + rows] = -torch.inf
        parts.append(scores.topk(min(count, len(of) - 1), dim=1).indices)
    return torch.cat(parts)


@torch.no_grad()
def reranked(model: nn.Module, split: str, every: int = 1) -> Tensor:
    """Scores (Q, Q): BM25's first CANDIDATES in the model's order, all others as BM25 has them
    below. A document without a word of the query is no candidate. every: with n, only every n-th
    row is the model's, the others are BM25's."""
    words, sides = by_words(split), sides_of(read(split), PAIR_DOCUMENT)
    best = words.topk(min(CANDIDATES, len(words)), dim=1)
    logits = best.values.clone()
    for row in range(0, len(words), every):
        which = best.indices[row]
        query = (
            sides[name][row].expand(len(which), -1) for name in ("input_ids", "attention_mask")
        )
        document = (sides[name][which] for name in ("document_ids", "document_mask"))
        with computing_in(CROSS_PRECISION):
            logits[row] = model(*query, *document)
    below = words - words.amax(dim=1, keepdim=True) - 1
    above = logits - logits.amin(dim=1, keepdim=True)
    above = above.where(best.values > 0, below.gather(1, best.indices))
    return below.scatter(1, best.indices, above)


MORE = Experiment(
    "17_more",
    TRIALS,
    {
        name: (SEEDS[:2] if name == CROSS else SEEDS) if trial.steps else (0,)
        for name, trial in TRIALS.items()
    },
    run=lambda trial, _, seed: one_run(trial, seed),
    more={"rates": RATES["encoder"]},
)
