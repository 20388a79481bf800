"""DeBERTa's attention on a processor: four layers of base width, beside transformers' DeBERTa and
beside transformers' BERT of the same width, which has no position products at all.

Settings are those of the second generation's published models: 256 buckets for distances up to 512,
positions through the words' own projections, their table normalised. Dropout is off everywhere, all
sequences are full, the vocabulary is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import nn

from course_lib.family.deberta import deberta_v3

from .inputs import SPECIAL, peer_v3, shape
from .measuring import Contender, Measured, Step, Table, contenders_of, precisions
from .sharing import Shape, inference, peer_bert, training

SIZES = ((1, 64), (1, 128), (8, 128), (1, 512), (8, 512))
TRAINING = ((8, 128), (4, 512))
SHAPE = shape(4, 768)
COMPILED = "transformers' DebertaV2Model, compiled"
# What ours, as the rules choose, should reach beside transformers' DeBERTa: times as quick.
GOALS: dict[tuple[str, str, int, int], float] = {
    ("inference", "float32", 1, 64): 2.0,
    ("inference", "float32", 1, 128): 1.6,
    ("inference", "float32", 8, 128): 1.4,
    ("inference", "float32", 8, 512): 1.5,
    ("inference", "bfloat16", 8, 512): 3.0,
    **{
        ("training step", precision, *size): 1.3
        for precision in ("float32", "bfloat16")
        for size in TRAINING
    },
}
STEPS: dict[str, Callable[..., Step]] = {"inference": inference, "training step": training}


def tables(compiled: bool = True) -> list[Table]:
    """One a size, in each number format worth using here: inference, then the training step.
    Without `compiled`, torch.compile is left out."""
    cases = [
        (what, precision, batch, tokens)
        for what, sizes in (("inference", SIZES), ("training step", TRAINING))
        for precision in precisions()
        for batch, tokens in sizes
    ]
    return [_table(*case, compiled) for case in cases]


def _table(what: str, precision: str, batch: int, tokens: int, compiled: bool = True) -> Table:
    size = f"{SHAPE['num_layers']}×{SHAPE['hidden_size']}, {batch}×{tokens} tokens, {precision}"
    return Table(
        f"Disentangled attention, {what}, {size}",
        contenders(what, precision, batch, tokens, compiled=compiled),
        partial(remark, GOALS.get((what, precision, batch, tokens)), batch * tokens),
        turn=0.4,
    )


def contenders(
    what: str,
    precision: str,
    batch: int,
    tokens: int,
    size: Shape = SHAPE,
    compiled: bool = False,
) -> list[Contender]:
    """The peer, ours by the reference, ours by the rules, BERT; and the peer compiled."""
    V = SPECIAL.vocab_size
    off: dict[str, Any] = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
    makes: dict[str, Callable[[], nn.Module]] = {
        "transformers' DebertaV2Model, eager": lambda: peer_deberta(size),
        'ours, kernels="reference"': lambda: deberta_v3(
            vocab_size=V, kernels="reference", **size, **off
        ),
        'ours, kernels="auto"': lambda: deberta_v3(vocab_size=V, **size, **off),
        "transformers' BertModel, sdpa": lambda: peer_bert(size),
    }
    if compiled:
        makes[COMPILED] = lambda: peer_deberta(size, compiled=True)

    def built(make: Callable[[], nn.Module]) -> Step:
        return STEPS[what](make(), batch=batch, precision=precision, tokens=tokens)

    steps = {name: partial(built, make) for name, make in makes.items()}
    return contenders_of(steps, batch * tokens)


def peer_deberta(size: Shape, compiled: bool = False) -> nn.Module:
    """transformers' DeBERTa of the second generation; it has eager attention only."""
    from transformers import DebertaV2Model

    model = DebertaV2Model(peer_v3(*size.values()))
    if compiled:
        model.compile()
    return model


def remark(goal: float | None, tokens: int, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """Milliseconds of each; ours against the peer, the goal for this size, and beside BERT."""
    peer, reference, ours, bert, *compiled = (1e3 * tokens / r.median for r in results)
    more = "".join(f", compiled {t:.1f} ({t / ours:.2f}× ours)" for t in compiled)
    goal_text = "no goal set" if goal is None else f"goal {goal:.1f}×"
    return (
        f"ms: transformers' DeBERTa {peer:.1f}{more}, reference {reference:.1f}, ours {ours:.1f}, "
        f"transformers' BERT {bert:.1f}\n"
        f"ours / transformers' DeBERTa {peer / ours:.2f}× ({goal_text})   "
        f"at BERT's own time it would be {peer / bert:.2f}×"
    )
