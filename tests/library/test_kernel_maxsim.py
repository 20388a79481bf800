"""MaxSim: by hand, its twin beside the reference, beside sentence-transformers' own, and what it
holds in memory."""

from __future__ import annotations

import pytest
import torch
from kernel_parts import compare, draw, every_format

from course_lib.bench.measuring import peak_bytes
from course_lib.kernels import maxsim as kernel
from course_lib.kernels.maxsim import maxsim, maxsim_reference

both_twins = pytest.mark.parametrize("function", [maxsim, maxsim_reference])
SHAPES = [(1, 1, 1, 1, 1), (1, 3, 2, 5, 4), (4, 5, 7, 9, 3), (3, 1, 6, 17, 8)]  # Q, S, D, T, H


@pytest.fixture(params=["one chunk", "chunks of a few", "one document a chunk"])
def chunks(request, monkeypatch):
    bytes = {"chunks of a few": 2_500, "one document a chunk": 1}.get(request.param)
    if bytes:
        monkeypatch.setattr(kernel, "CHUNK_BYTES", bytes)


def mask_of(count, tokens, padding, seed=0):
    """Padding anywhere, at least one real token each."""
    if not padding:
        return torch.ones(count, tokens, dtype=torch.long)
    mask = torch.rand(count, tokens, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[torch.arange(count), torch.arange(count) % tokens] = True
    return mask.long()


@every_format
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_twins_agree(chunks, shape, padding, dtype):
    Q, S, D, T, H = shape
    masks = mask_of(Q, S, padding), mask_of(D, T, padding, seed=1)
    # In bfloat16 two similarities may round to one: another token is then the best.
    bound = 0.1 if dtype is torch.bfloat16 else None
    given = draw((Q, S, H), (D, T, H), dtype=dtype)
    scores = compare(lambda q, d: maxsim(q, d, *masks), lambda q, d: maxsim_reference(q, d, *masks),
                     [x.detach() for x in given] if bound else given, bound)  # fmt: skip
    assert scores.shape == (Q, D)


@both_twins
def test_by_hand(function):
    """The first token of the query matches the second document's first by 1, the other by 2; all
    matches may be negative, and padding never wins with its zero."""
    query = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]]])
    documents = torch.tensor([[[-1.0, -1.0], [0.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]]])
    masks = torch.tensor([[1, 1, 0]]), torch.tensor([[1, 0], [1, 1]])
    assert function(query, documents, *masks).tolist() == [[-3.0, 3.0]]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_as_sentence_transformers(chunks, shape):
    util = pytest.importorskip("sentence_transformers.util")
    Q, S, D, T, H = shape
    masks = mask_of(Q, S, True), mask_of(D, T, True, seed=1)
    q, d = (x.detach() for x in draw((Q, S, H), (D, T, H), dtype=torch.float32))
    assert (maxsim(q, d, *masks) - util.maxsim(q, d, *masks)).abs().max() <= 1e-5


@both_twins
def test_a_token_whose_vector_is_zero_counts(function):
    """sentence-transformers' own maxsim without masks leaves such tokens out; a mask says it."""
    query, documents = torch.ones(1, 1, 2), torch.tensor([[[0.0, 0.0], [-1.0, -1.0]]])
    masks = torch.ones(1, 1), torch.ones(1, 2)
    assert function(query, documents, *masks).tolist() == [[0.0]]


def test_the_similarities_are_never_held_at_once(monkeypatch):
    Q, S, D, T, H = 8, 16, 64, 32, 8
    monkeypatch.setattr(kernel, "CHUNK_BYTES", Q * S * T * 4)  # of one document
    masks = mask_of(Q, S, False), mask_of(D, T, True)
    q, d = draw((Q, S, H), (D, T, H), dtype=torch.float32)
    peaks = [
        peak_bytes(lambda f=f: f(q, d, *masks).sum().backward()) for f in (maxsim, maxsim_reference)
    ]
    assert peaks[0] <= peaks[1] / 10


@both_twins
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({0: torch.zeros(2, 4)}, r"expected \(Q, S, H\)"),
        ({2: torch.ones(2, 2)}, r"expected \(Q, S, H\)"),
        ({0: torch.zeros(2, 3, 5)}, "5 numbers a token"),
        ({0: torch.zeros(2, 3, 4).double()}, "float64"),
        ({2: torch.tensor([[1, 1, 1], [0, 0, 0]])}, "query 1 has no token"),
        ({3: torch.zeros(3, 6)}, "document 0 has no token"),
    ],
)
def test_what_does_not_fit(function, change, says):
    given = [torch.zeros(2, 3, 4), torch.zeros(3, 6, 4), torch.ones(2, 3), torch.ones(3, 6)]
    for n, value in change.items():
        given[n] = value
    with pytest.raises(ValueError, match=says):
        function(*given)


def test_gradients_of_gradients_are_refused():
    q, d = draw((1, 2, 3), (2, 2, 3))
    score = maxsim(q, d, torch.ones(1, 2), torch.ones(2, 2)).square().sum()
    (grad,) = torch.autograd.grad(score, [q], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()
