"""Learning rates that differ by layer: FinBERT's two guards against forgetting.

Layer-wise rates (Howard & Ruder 2018 call them discriminative fine-tuning): what lies nearer to the
text moves less. Gradual unfreezing: first the head learns, then one layer more at a time. Both are
a factor of the learning rate, by a parameter's name and the step: `fit(…, scale=…)`. ALBERT's one
block counts as the lowest layer, which FinBERT's program (`as_released`) never trains."""

from __future__ import annotations

import math
import re

from course_lib.config import is_number, is_whole

from .loop import Scale

_LAYER = re.compile(r"\.blocks\.(\d+)\.")


def layer_of(name: str, num_layers: int) -> int:
    """-1 for embeddings (and DeBERTa's distances), 0 … L - 1 for the encoder's layers (the last one
    with the norm behind it, as ModernBERT and ViT have), L for what stands on top."""
    if result := _LAYER.search(name):
        return int(result[1])
    if "stack.convolution." in name:  # DeBERTa's, a part of the first layer
        return 0
    below = "embeddings" in name or "stack.positions." in name
    return -1 if below else num_layers - bool(re.search(r"\b(stack|encoder)\.norm\.", name))


def layerwise_rates(num_layers: int, divisor: float = 1.2) -> Scale:
    """Layer i of L has the rate divided by divisor^(L - i), i from 0, as in FinBERT's code; the
    embeddings as a layer below, the head whole. Raises ValueError for a divisor below 1."""
    if not is_number(divisor) or not 1 <= divisor < math.inf:
        raise ValueError(
            f"divisor={divisor} was given; expected at least 1, which changes nothing."
        )
    return lambda name, step: divisor ** (layer_of(name, num_layers) - num_layers)


def gradual_unfreezing(num_layers: int, every: int, as_released: bool = False) -> Scale:
    """The head from the first step; the highest layer from step `every`, the next one below from
    step 2·every, the embeddings last. as_released: FinBERT's program, which never reaches the
    lowest two layers nor the pooler. Raises ValueError for less than one step."""
    if not is_whole(every) or every < 1:
        raise ValueError(f"every={every} was given; expected at least one step.")

    def factor(name: str, step: int) -> float:
        layer = layer_of(name, num_layers)
        if as_released and (layer in (0, 1) or ".pooler." in f".{name}"):
            return 0.0
        return float(step >= every * (num_layers - layer))

    return factor


def both(one: Scale, other: Scale) -> Scale:
    """The product of two factors."""
    return lambda name, step: one(name, step) * other(name, step)
