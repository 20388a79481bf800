"""The nearest orthogonal matrix, which Muon puts in a gradient's place (Jordan et al. 2024): of
U·S·Vᵀ, the singular value decomposition, it is U·Vᵀ.

N matrices (A, B). The reference takes the decomposition; its twin needs products alone."""

from __future__ import annotations

import torch
from torch import Tensor

from .upcast import upcast

# Of Jordan's polynomial a·x + b·x³ + c·x⁵: the steepest at 0 that stays near 1 once it is there.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
SMALLEST = 1e-7  # a length that no matrix is divided below


def orthogonalize_reference(matrices: Tensor) -> Tensor:
    """(…, A, B) -> (…, A, B): every singular value becomes 1."""
    u, _, v = torch.linalg.svd(upcast(matrices), full_matrices=False)
    return u @ v


def orthogonalize(matrices: Tensor, steps: int = 5, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same roughly: singular values of at least a hundredth of the matrix's length (its
    Frobenius norm) land between 0.65 and 1.25, smaller ones are raised less. (…, A, B) ->
    (…, A, B) in `dtype`, in which the 3·steps products are.

    Newton-Schulz: each step puts a polynomial of the matrix in its place, which does to every
    singular value what it does to a number. A matrix of zeros stays one."""
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = (x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=SMALLEST)).to(dtype)
    x = x.reshape(x.shape[:-2].numel(), *x.shape[-2:]).contiguous()  # views have slower products
    for a, b, c in [COEFFICIENTS] * steps:
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).reshape(matrices.shape)
