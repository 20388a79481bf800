"""SiFT, scale-invariant fine-tuning: adversarial training with small perturbations of the
embeddings (He et
al. 2020, section 4; the details as in the authors' code).

The perturbation is added to the *layer-normalised* embeddings, so its size means the same in a
small model and a large one, whatever the length of their word vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPS = 1e-7  # of the normalisation before the perturbation


def symmetric_kl(p_logits: Tensor, q_logits: Tensor) -> Tensor:
    """KL(p ‖ q) + KL(q ‖ p) of each row of logits, (…, C) -> (…), in nats.

    Both sides learn. The weights of each sum are held fixed, as the authors do."""
    log_p, log_q = p_logits.log_softmax(-1), q_logits.log_softmax(-1)
    gap = log_p - log_q
    return ((log_p.exp() - log_q.exp()).detach() * gap).sum(-1)


@dataclass
class Perturbation:
    """What the embeddings' LayerNorm is given: its input normalised, plus a perturbation if set."""

    clean: Tensor | None = None  # (B, T, H), of the latest pass without a perturbation
    perturbation: Tensor | None = None  # (B, T, H)

    def __call__(self, module: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        if self.perturbation is not None and self.clean is not None:
            return (self.clean.detach() + self.perturbation,)
        self.clean = F.layer_norm(inputs[0], inputs[0].shape[-1:], eps=EPS)
        return (self.clean,)


@contextmanager
def perturbing(norm: nn.Module) -> Iterator[Perturbation]:
    """While this lasts, `norm` (the embeddings' LayerNorm) reads what the Perturbation says."""
    hook = Perturbation()
    handle = norm.register_forward_pre_hook(hook)
    try:
        yield hook
    finally:
        handle.remove()


def turned(perturbation: Tensor) -> Tensor:
    """Each token's vector in a random direction, as long as it was: (…, H) -> (…, H)."""
    other = torch.randn_like(perturbation)
    return other * perturbation.norm(dim=-1, keepdim=True) / other.norm(dim=-1, keepdim=True)


def sift_loss(
    answer: Callable[[], Tensor],
    norm: nn.Module,
    *,
    start: float = 1e-2,
    step: float = 1e-4,
    aimed: bool = True,
) -> tuple[Tensor, Tensor]:
    """The model's answer without a perturbation, and how far a perturbation moves it.

    answer: runs the model on its batch, () -> logits (…, C). norm: the LayerNorm of its embeddings.
    start: standard deviation of the first, random perturbation, cut at two of them. step: how far
    it then climbs; each token's gradient is divided by its largest entry, so no token dominates.
    aimed: False is a control, a perturbation as long as that in a direction drawn at random.
    Returns (logits, mean symmetric KL between them and the perturbed ones); add the second to the
    task's loss. Nothing of the weights is changed here. Raises ValueError unless start > 0."""
    if not start > 0:
        raise ValueError(
            f"start={start!r} was given; expected a number above 0: with no perturbation at all "
            "there is no gradient to climb."
        )
    with perturbing(norm) as at:
        logits = answer()
        assert at.clean is not None
        first = torch.randn_like(at.clean) * start
        at.perturbation = first.clamp(-2 * start, 2 * start).detach().requires_grad_()
        moved = symmetric_kl(answer(), logits.detach()).sum()
        (slope,) = torch.autograd.grad(moved, at.perturbation)
        largest = slope.abs().amax(-1, keepdim=True) + 1e-6  # (B, T, 1)
        at.perturbation = (at.perturbation + step * slope / largest).detach()
        if not aimed:
            at.perturbation = turned(at.perturbation)
        return logits, symmetric_kl(answer(), logits).mean()
