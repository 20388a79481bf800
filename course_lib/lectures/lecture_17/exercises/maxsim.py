"""Exercise 17.4: late interaction. S query tokens, D documents of T tokens, H hidden."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def late_interaction(
    query: Tensor, documents: Tensor, query_mask: Tensor, document_mask: Tensor
) -> Tensor:
    """Each document's score: the best match of each query token, added up. -> (D,)."""
    similar = torch.einsum("sh,dth->dst", query, documents)
    padding = document_mask[:, None, :] == 0  # (D, 1, T)
    best = similar.masked_fill(padding, -torch.inf).amax(dim=2)  # (D, S)
    return (best * query_mask).sum(dim=1)


# ---------------------------------------------------------------- cases


def case(draw: Draw, query: str, *documents: str, apart: float = 0.0) -> Case:
    """Tokens as signs: 1 a real token, 0 padding. apart: how far query and documents look in
    opposite directions, so that their dot products are negative."""
    masks = [torch.tensor([[int(sign) for sign in text] for text in texts])
             for texts in ((query,), draw.python.sample(documents, len(documents)))]  # fmt: skip
    hidden = draw.integer(3, 6)
    towards = draw.normal(hidden)
    q, d = (draw.normal(*mask.shape, hidden) + sign * apart * towards
            for mask, sign in zip(masks, (1, -1), strict=True))  # fmt: skip
    return q[0], d, masks[0][0], masks[1]


def negative(draw: Draw, query: str, *documents: str) -> Case:
    return case(draw, query, *documents, apart=3.0)


def by_hand(draw: Draw) -> list[Case]:
    query = torch.eye(2, dtype=torch.float64)
    documents = torch.tensor([[[1, 0], [-1, 0]], [[-0.6, -0.8], [0, 0]]], dtype=torch.float64)
    return [(query, documents, torch.tensor([1, 1]), torch.tensor([[1, 1], [1, 0]])),
            case(draw, "11", "110", "100", "111")]  # fmt: skip


SIMILAR = 'torch.einsum("sh,dth->dst", query, documents)'
PADDING = "document_mask[:, None, :] == 0"
FILLED, BEST = ".masked_fill(padding, -torch.inf)", ".amax(dim=2)"
RETURN = "(best * query_mask).sum(dim=1)"
WHOLE = f"similar{FILLED}{BEST}"

MAXSIM = Exercise(
    **written("17.4"),
    solution=late_interaction,
    returns=Numbers("scores", shape="D"),
    see="course_lib.kernels.maxsim.maxsim_reference does this for many queries at once, and its "
    "twin `maxsim` without ever holding all similarities",
    infinite="Your scores are not all finite: give −∞ only to the padding of *documents*, before "
    "you take the largest. The query's padding counts 0 in the sum.",
    stages=(
        Stage("two tokens, on paper", by_hand),
        Stage("no padding", each(case, ("111", "1111", "1111"), ("1111", "11", "11", "11"))),
        Stage("documents with padding",
              each(case, ("111", "11100", "11111", "10000"), ("11", "1100", "1110"))),
        Stage("padding anywhere, in the query too",
              each(case, ("1101", "00111", "10101"), ("0110", "0111", "1011", "0100"))),
        Stage("negative similarities",
              each(negative, ("1110", "11100", "10000"), ("1011", "0110", "1111"))),
    ),
    mistakes=(
        Edit(FILLED, "", "You compare padding as well. If it matches better than every real "
             "token, it wins; give it −∞ before you take the largest."),
        Edit(FILLED, ".masked_fill(padding, 0)", "Padding has similarity 0 in your answer, which "
             "beats a negative one. Give it −∞ before you take the largest."),
        Edit(FILLED, ".masked_fill(padding, -1)", "Padding has similarity −1 in your answer. "
             "These vectors need not have length 1, so a real token may have less: use −∞."),
        Edit(PADDING, "document_mask[:, None, :] == 1", "Tokens and padding are exchanged: 1 in "
             "the mask is a token."),
        Edit(PADDING, "(torch.arange(documents.shape[1]) >= document_mask.sum(dim=1, keepdim=True))"
             "[:, None, :]", "You take the first tokens of each document, as many as are real. "
             "Padding may be before or between them: the mask says where."),
        Edit(RETURN, "best.sum(dim=1)", "The query's padding counts in your sum. Only its real "
             "tokens do."),
        Edit(RETURN, "(best * query_mask).sum(dim=1) / query_mask.sum()", "You take the mean over "
             "the query's tokens. Expected the sum."),
        Edit(RETURN, "best.masked_fill(query_mask == 0, -torch.inf).amax(dim=1)", "You keep the "
             "single best pair of tokens. *Each* query token has its best match; add these up."),
        Edit(BEST, ".masked_fill(padding, 0).sum(dim=2)", "You add up over all tokens of a "
             "document. Each query token keeps its best match only."),
        Edit(WHOLE, "similar.masked_fill(padding, 0).sum(dim=2) / document_mask.sum(dim=1)[:, "
             "None]", "You take the mean over a document's tokens: that is one vector per "
             "document, not late interaction. Keep the best match."),
        Edit(BEST, ".amax(dim=2).clamp(min=0)", "Your best matches are never below 0. A query "
             "token without a good match may lower the score: keep negative values."),
        Edit(RETURN, "similar.masked_fill(query_mask[:, None] == 0, -torch.inf).amax(dim=1)"
             ".masked_fill(document_mask == 0, 0).sum(dim=1)", "You take the best match of each "
             "*document* token, so a long document would win by its length. Take the best match "
             "of each query token."),
        Edit(SIMILAR, 'torch.einsum("sh,dth->dst", query / query.norm(dim=-1, keepdim=True), '
             "documents / documents.norm(dim=-1, keepdim=True).clamp(min=1e-12))", "You normalise "
             "the vectors. Compare them unchanged, by dot product."),
    ),
)  # fmt: skip
