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
from course_lib.train.loop import adamw
from course_lib.train.precision import FORMATS, computing_in, native_bfloat16

from .inputs import SPECIAL, random_sequences
from .measuring import Contender, Measured, Step, Table, against_the_limit

TOKENS = 128
Shape = dict[str, Any]
LARGE: Shape = {"num_layers": 12, "hidden_size": 768, "num_heads": 12, "intermediate_size": 3_072}
# Four models with gradients and Adam's averages stand side by side: these fit into 1.5 GB.
SMALL: Shape = {"num_layers": 12, "hidden_size": 384, "num_heads": 6, "intermediate_size": 1_536}


def tables() -> list[Table]:
    """Inference at base width, one sequence and eight; a training step at half that width."""
    precisions = ["float32", *(["bfloat16"] if native_bfloat16() else [])]
    made = []
    for precision in precisions:
        for batch in (1, 8):
            step = partial(inference, batch=batch, precision=precision)
            made.append(_table("inference", LARGE, batch, precision, step, flops_factor=1))
    for precision in precisions:
        step = partial(training, batch=8, precision=precision)
        made.append(_table("training step", SMALL, 8, precision, step, flops_factor=3))
    return made


def _table(
    what: str,
    shape: Shape,
    batch: int,
    precision: str,
    step: Callable[[nn.Module], Step],
    flops_factor: int,
) -> Table:
    size = f"12×{shape['hidden_size']}, {batch}×{TOKENS} tokens, {precision}"
    flops = (
        flops_factor * encoder_flops(published("bert", "base", **shape), TOKENS) / TOKENS
    )  # a token
    return Table(
        f"Weights shared or not, {what}, {size}",
        contenders(shape, batch, step),
        partial(remark, flops, precision),
    )


def contenders(shape: Shape, batch: int, step: Callable[[nn.Module], Step]) -> list[Contender]:
    """Both kinds, transformers' and ours: each model is built, then `step` makes its work."""
    V = SPECIAL.vocab_size
    makes: dict[str, Callable[[], nn.Module]] = {
        "transformers' BertModel, own weights": lambda: peer_bert(shape),
        "transformers' AlbertModel, one block": lambda: peer_albert(shape),
        "ours, own weights": lambda: albert("base", sharing="none", vocab_size=V, **shape),
        "ours, one block": lambda: albert("base", vocab_size=V, **shape),
    }
    return [
        Contender(name, partial(_built, make, step), batch * TOKENS) for name, make in makes.items()
    ]


def _built(make: Callable[[], nn.Module], step: Callable[[nn.Module], Step]) -> Step:
    torch.manual_seed(0)
    return step(make())


def peer_bert(shape: Shape) -> nn.Module:
    """transformers' BERT: tables as wide as the blocks, no projection."""
    from transformers import BertConfig, BertModel

    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertModel(BertConfig(vocab_size=SPECIAL.vocab_size, **_peer_names(shape), **dropout))


def peer_albert(shape: Shape) -> nn.Module:
    """transformers' ALBERT; its dropout is off as it comes."""
    from transformers import AlbertConfig, AlbertModel

    return AlbertModel(AlbertConfig(vocab_size=SPECIAL.vocab_size, **_peer_names(shape)))


def _peer_names(shape: Shape) -> Shape:
    names = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    return {names.get(name, name): value for name, value in shape.items()}


def inference(model: nn.Module, batch: int, precision: str, tokens: int = TOKENS) -> Step:
    """Forward only; in bfloat16 the weights themselves are bfloat16."""
    model = model.eval().to(FORMATS[precision])
    ids = random_sequences(batch, tokens).input_ids

    def step() -> None:
        with torch.inference_mode():
            model(ids)

    return step


def training(model: nn.Module, batch: int, precision: str, tokens: int = TOKENS) -> Step:
    """Forward, backward and the update of AdamW; the loss reads every position."""
    optimizer = adamw(model.train(), 1e-4, 0.01)
    ids = random_sequences(batch, tokens).input_ids
    wanted: Tensor | None = None

    def step() -> None:
        nonlocal wanted
        with computing_in(precision):
            hidden = model(ids).last_hidden_state.float()  # (B, T, H)
        wanted = torch.randn_like(hidden) if wanted is None else wanted
        (hidden * wanted).mean().backward()
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
