"""Twelve blocks with their own weights against one block used twelve times: ALBERT's sharing.

The FLOPs are the same, so only what the weights cost can differ: reading them, and in training
the optimiser's update. Dropout is off everywhere, all sequences are full, the vocabulary is the
same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import encoder_flops, published
from course_lib.family.albert import albert
from course_lib.train.optimizers import make_optimizer
from course_lib.train.precision import FORMATS, computing_in

from .inputs import SPECIAL, random_sequences, shape
from .measuring import (
    Contender,
    Measured,
    Step,
    Table,
    against_the_limit,
    contenders_of,
    forward_only,
    precisions,
)

TOKENS = 128
Shape = dict[str, Any]
LARGE = shape(12, 768)
# Four models with gradients and Adam's averages stand side by side: these fit into 1.5 GB.
SMALL = shape(12, 384)


def tables() -> list[Table]:
    """Inference at base width, one sequence and eight; a training step at half that width."""
    made = []
    for precision in precisions():
        for batch in (1, 8):
            step = partial(inference, batch=batch, precision=precision)
            made.append(_table("inference", LARGE, batch, precision, step, flops_factor=1))
    for precision in precisions():
        step = partial(training, batch=8, precision=precision)
        made.append(_table("training step", SMALL, 8, precision, step, flops_factor=3))
    return made


def _table(
    what: str,
    size: Shape,
    batch: int,
    precision: str,
    step: Callable[[nn.Module], Step],
    flops_factor: int,
) -> Table:
    flops = encoder_flops(published("bert", "base", **size), TOKENS) / TOKENS  # a token, forward
    return Table(
        f"Weights shared or not, {what}, 12×{size['hidden_size']}, {batch}×{TOKENS} tokens, "
        f"{precision}",
        contenders(size, batch, step),
        partial(remark, flops_factor * flops, precision),
    )


def contenders(size: Shape, batch: int, step: Callable[[nn.Module], Step]) -> list[Contender]:
    """Both kinds, transformers' and ours: each model is built, then `step` makes its work."""
    V = SPECIAL.vocab_size
    makes: dict[str, Callable[[], nn.Module]] = {
        "transformers' BertModel, own weights": lambda: peer_bert(size),
        "transformers' AlbertModel, one block": lambda: peer_albert(size),
        "ours, own weights": lambda: albert("base", sharing="none", vocab_size=V, **size),
        "ours, one block": lambda: albert("base", vocab_size=V, **size),
    }
    steps = {name: partial(_built, make, step) for name, make in makes.items()}
    return contenders_of(steps, batch * TOKENS)


def _built(make: Callable[[], nn.Module], step: Callable[[nn.Module], Step]) -> Step:
    torch.manual_seed(0)
    return step(make())


def peer_bert(size: Shape) -> nn.Module:
    """transformers' BERT: tables as wide as the blocks, no projection."""
    from transformers import BertConfig, BertModel

    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertModel(BertConfig(vocab_size=SPECIAL.vocab_size, **_peer_names(size), **dropout))


def peer_albert(size: Shape) -> nn.Module:
    """transformers' ALBERT; its dropout is off as it comes."""
    from transformers import AlbertConfig, AlbertModel

    return AlbertModel(AlbertConfig(vocab_size=SPECIAL.vocab_size, **_peer_names(size)))


def _peer_names(size: Shape) -> Shape:
    names = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    return {names.get(name, name): value for name, value in size.items()}


def inference(model: nn.Module, batch: int, precision: str, tokens: int = TOKENS) -> Step:
    """Forward only; in bfloat16 the weights themselves are bfloat16."""
    model = model.eval().to(FORMATS[precision])
    ids = random_sequences(batch, tokens).input_ids
    return forward_only(lambda: model(ids))


def training(model: nn.Module, batch: int, precision: str, tokens: int = TOKENS) -> Step:
    """Forward, backward and the update of AdamW; the loss reads every position."""
    optimizer = make_optimizer(model.train(), 1e-4, 0.01)
    ids = random_sequences(batch, tokens).input_ids
    upstream: Tensor | None = None

    def step() -> None:
        nonlocal upstream
        with computing_in(precision):
            hidden = model(ids).last_hidden_state.float()  # (B, T, H)
        upstream = torch.randn_like(hidden) if upstream is None else upstream
        (hidden * upstream).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def remark(flops: float, precision: str, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """What sharing changes in each library, and how near ours is to the machine's limit."""
    bert, peer, own, shared = (r.median for r in results)
    return (
        f"one block / own weights: transformers {peer / bert:.2f}×, ours {shared / own:.2f}×   "
        f"ours, one block: {against_the_limit(shared * flops / 1e9, precision, on)}"
    )
