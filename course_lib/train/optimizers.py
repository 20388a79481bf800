"""What moves the weights: AdamW, or Muon.

Muon (Jordan et al. 2024): for the matrices of a model's blocks the step is the orthogonal matrix
nearest to the running gradient, so that it moves all directions alike, not the few that the
gradient is made of. Embeddings, heads and vectors keep AdamW. The step is as long as AdamW's, 0.2 a
number (Liu et al. 2025, equation 4): one learning rate for both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import check_choice, check_number
from course_lib.kernels.orthogonal import orthogonalize

from .precision import native_bfloat16
from .schedule import OPTIMIZERS, check_betas

MOMENTUM = 0.95
LENGTH = 0.2  # root mean square of AdamW's steps, about


def is_block_matrix(name: str, parameter: Tensor) -> bool:
    """Whether a parameter of this name is a matrix within a stack's blocks."""
    return parameter.dim() == 2 and ".blocks." in f".{name}"


class Muon(torch.optim.AdamW):
    """torch's AdamW, but the groups that say `muon=True` step by orthogonal matrices.

    Takes AdamW's arguments. Newton-Schulz runs in bfloat16 where the processor multiplies it, else
    in float32 (torch.optim.Muon's always in bfloat16, which is slow without such instructions);
    matrices of one shape together. A step whose gradients are not finite is the scaler's to skip.
    Raises ValueError for a model whose groups all are AdamW's."""

    def __init__(self, groups: list[dict[str, Any]], **settings: Any) -> None:
        if not any(group.get("muon") and group["params"] for group in groups):
            raise ValueError(
                'optimizer="muon" was given for a model without matrices in blocks; expected a '
                'stack of them, as an Encoder has. Use optimizer="adamw".'
            )
        super().__init__(groups, **settings)
        self._step_supports_amp_scaling = False  # then torch's scaler skips the step itself

    def __setstate__(self, state: dict[str, Any]) -> None:
        torch.optim.Optimizer.__setstate__(self, state)  # AdamW's wants a "step" of every weight

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """As every optimizer's."""
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if not group.get("muon")]
            loss = super().step(closure)
        finally:
            self.param_groups = groups
        for group in (group for group in groups if group.get("muon")):
            self._step(group)
        return loss

    def _step(self, group: dict[str, Any]) -> None:
        alike: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for weight in group["params"]:
            if weight.grad is not None:
                state = self.state[weight]
                if "mean" not in state:
                    state["mean"] = torch.zeros_like(weight)
                mean = state["mean"].lerp_(weight.grad, 1 - MOMENTUM)
                update = weight.grad.lerp(mean, MOMENTUM)  # Nesterov's: where the mean is going
                alike[tuple(weight.shape)].append((weight, update))
        for shape, pairs in alike.items():
            weights, updates = zip(*pairs, strict=True)
            dtype = torch.bfloat16 if native_bfloat16(weights[0].device.type) else torch.float32
            steps = orthogonalize(torch.stack(updates), dtype=dtype).to(weights[0].dtype)
            size = LENGTH * max(shape) ** 0.5  # U·Vᵀ has 1 / max(A, B) as its mean square
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(weights, steps.unbind(), alpha=-group["lr"] * size)


def make_optimizer(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.999),
    *,
    name: str = "adamw",
    one_by_one: bool = False,
) -> torch.optim.Optimizer:
    """The optimizer of a name of OPTIMIZERS, with decoupled weight decay on matrices; biases and
    LayerNorms do not decay (as in BERT's code). betas: of AdamW, Muon's momentum is MOMENTUM.
    one_by_one: each parameter by itself, under its name, so that rates can differ. Raises
    ValueError for settings that make no sense, and for Muon without matrices in blocks."""
    check_number("learning_rate", learning_rate)
    check_number("weight_decay", weight_decay)
    check_betas(betas)
    check_choice("optimizer", name, OPTIMIZERS)
    decays, plain = {"weight_decay": weight_decay}, {"weight_decay": 0.0}
    groups: dict[str, dict[str, Any]] = {}
    if not one_by_one:
        groups = {"matrices": {**decays, "params": []}, "vectors": {**plain, "params": []}}
    for parameter_name, p in model.named_parameters():
        if p.requires_grad:
            muon = name == "muon" and is_block_matrix(parameter_name, p)
            settings = {**(decays if p.dim() > 1 else plain), **({"muon": True} if muon else {})}
            if one_by_one:
                groups[parameter_name] = {**settings, "params": [p], "name": parameter_name}
                continue
            kind = "muon" if muon else "matrices" if p.dim() > 1 else "vectors"
            groups.setdefault(kind, {**settings, "params": []})["params"].append(p)
    made = Muon if name == "muon" else torch.optim.AdamW
    return made(list(groups.values()), lr=learning_rate, betas=betas, eps=1e-6, fused=True)
