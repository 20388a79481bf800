"""Exercise 17.1: the contrastive loss of a batch, both ways. B pairs, H hidden."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def info_nce(queries: Tensor, documents: Tensor, temperature: float) -> Tensor:
    """How badly pairs find each other among the batch, by cosine: (B, H) twice -> one number."""
    unit_queries = F.normalize(queries, dim=-1)
    unit_documents = F.normalize(documents, dim=-1)
    scores = unit_queries @ unit_documents.T / temperature  # (B, B)
    forward = -scores.log_softmax(dim=1).diagonal().mean()
    back = -scores.log_softmax(dim=0).diagonal().mean()
    return (forward + back) / 2


# ---------------------------------------------------------------- cases


def case(draw: Draw, pairs: int, hidden: int, temperature: float) -> Case:
    """Documents near their queries, vectors of all lengths."""
    queries = draw.normal(pairs, hidden)
    documents = queries + draw.normal(pairs, hidden)
    lengths = draw.ids(1, 9, pairs, 1) / 2
    return queries * lengths, documents * lengths.flip(0), temperature


def by_hand(draw: Draw) -> list[Case]:
    queries, documents = ([[1.0, 0], [0, 2]], [[2.0, 0], [1, 0]])
    return [(torch.tensor(queries).double(), torch.tensor(documents).double(), 1.0),
            case(draw, 2, 2, 1.0)]  # fmt: skip


QUERIES, DOCUMENTS = "F.normalize(queries, dim=-1)", "F.normalize(documents, dim=-1)"
SCORES = "unit_queries @ unit_documents.T / temperature"
FORWARD = "-scores.log_softmax(dim=1).diagonal().mean()"
BACK = "-scores.log_softmax(dim=0).diagonal().mean()"
BOTH = "(forward + back) / 2"

INFO_NCE = Exercise(
    **written("17.1"),
    solution=info_nce,
    returns=Number("loss", "nats"),
    see="course_lib.objectives.contrastive.info_nce_loss with symmetric=True; it also takes hard "
    "negatives and pairs that do not count as negatives",
    infinite="Your loss is not finite: exp of a cosine divided by a low temperature is too large "
    "for a float. log_softmax and cross_entropy subtract the largest score first.",
    gradient=("queries", "documents"),
    stages=(
        Stage("two pairs, on paper", by_hand),
        Stage("larger batches", each(case, (3, 4, 1.0), (5, 3, 1.0), (6, 8, 1.0))),
        Stage("other temperatures", each(case, (4, 5, 0.05), (5, 6, 0.5), (3, 6, 2.0))),
        Stage("one pair, and a temperature near 0", each(case, (1, 4, 0.5), (4, 3, 0.0005))),
    ),
    mistakes=(
        Edit(QUERIES, "queries", "You do not normalise the queries. A cosine divides both vectors "
             "by their lengths."),
        Edit(DOCUMENTS, "documents", "You do not normalise the documents. A cosine divides both "
             "vectors by their lengths."),
        Edit(QUERIES, "queries", "Your scores are dot products. Divide both vectors by their "
             "lengths first: that is the cosine.", more=((DOCUMENTS, "documents"),)),
        Edit(SCORES, "-torch.cdist(unit_queries, unit_documents) / temperature", "Your scores are "
             "distances. The cosine is the dot product of unit vectors."),
        Edit(SCORES, "unit_queries @ unit_documents.T * temperature", "You multiply by the "
             "temperature. Divide: a temperature below 1 makes differences larger."),
        Edit(SCORES, "unit_queries @ unit_documents.T", "The temperature is not used."),
        Edit(BOTH, "forward", "In your loss only queries find their documents. The symmetric loss "
             "is the mean of both directions: documents must find their queries as well."),
        Edit(BOTH, "back", "In your loss only documents find their queries. The symmetric loss is "
             "the mean of both directions."),
        Edit(BOTH, "forward + back", "You add the two directions up. Take their mean."),
        Edit(FORWARD, "-scores.log_softmax(dim=1).diagonal().sum()", "You add up over the pairs. "
             "Each direction is a *mean* over the B pairs.",
             more=((BACK, "-scores.log_softmax(dim=0).diagonal().sum()"),)),
        Edit(FORWARD, "-scores.log_softmax(dim=1).mean()", "You take the mean over all B² pairs of "
             "query and document. Only the diagonal counts, each query with its own document.",
             more=((BACK, "-scores.log_softmax(dim=0).mean()"),)),
        Edit(FORWARD, "-scores.log_softmax(dim=1)[:, 0].mean()", "Your right answer is document 0 "
             "for every query. Query i's own document is number i.",
             more=((BACK, "-scores.log_softmax(dim=0)[0].mean()"),)),
        Edit(FORWARD, "-scores.flatten().log_softmax(dim=0).view_as(scores).diagonal().mean()",
             "Your softmax runs over all B² pairs at once. Each query has one over the B "
             "documents, each document one over the B queries.",
             more=((BACK, "forward"),)),
        Edit(FORWARD, "(scores - torch.diag(torch.full((len(scores),), torch.inf))).logsumexp(dim="
             "1).sub(scores.diagonal()).mean()", "Your softmax leaves out the own document. The "
             "sum in the denominator is over all B, including the own one.",
             more=((BACK, "(scores - torch.diag(torch.full((len(scores),), torch.inf))).logsumexp("
                    "dim=0).sub(scores.diagonal()).mean()"),)),
    ),
)  # fmt: skip
