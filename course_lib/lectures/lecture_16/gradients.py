"""How large gradients are at random initialisation, layer by layer: norms after the sums, or before
the halves of a block (Xiong et al. 2020 compare them so)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from course_lib.objectives.masked_lm import masked_lm_loss

from .ladder import CHANGES, DEEP, batches_of, changed, model_of

WAYS: dict[str, dict[str, Any]] = {"post-norm": {}, "pre-norm": CHANGES["pre-norm"]}


def gradient_norms(way: str, layers: int = 12, seed: int = 0) -> list[float]:
    """The norm of the loss's gradient for each layer's last matrix, on one batch of stories.

    way: a name of WAYS. Raises ValueError for another name."""
    if way not in WAYS:
        raise ValueError(f"way={way!r} was given; expected {' or '.join(map(repr, WAYS))}.")
    recipe = replace(DEEP, num_layers=layers)
    model = model_of(changed(recipe, WAYS[way]), seed)
    batch = batches_of(recipe, seed)(0)
    masked_lm_loss(model(**batch.inputs), batch.targets)["total"].backward()
    blocks: Any = model.encoder.stack.blocks  # type: ignore[union-attr]
    return [float(block.feed_forward.contract.weight.grad.norm()) for block in blocks]
