"""ModernBERT: rotary positions and windowed attention alone, and a whole small encoder beside
transformers' and beside BERT and DeBERTa of the same shape, from short texts to long ones.

Forward only, all texts full, the vocabulary the same. A batch holds TOKENS tokens, or one text
where that is longer, so tokens a second of two lengths show what length costs. What keeps a score
for every pair of tokens is left out where two tables of them would need more than MEMORY bytes;
ModernBERT's peer takes ours' weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.checkpoints import to_transformers
from course_lib.family.bert import bert
from course_lib.family.deberta import deberta_v3
from course_lib.family.modernbert import modernbert
from course_lib.kernels.rotary import frequencies, rotary, rotary_reference
from course_lib.kernels.sliding_window import (
    sliding_window_attention,
    sliding_window_attention_reference,
    window_mask,
)
from course_lib.train.precision import FORMATS

from .inputs import SPECIAL, random_sequences, shape
from .measuring import Contender, Measured, Step, Table, contenders_of, forward_only, precisions

LENGTHS = (128, 512, 2_048, 8_192)
TOKENS, WINDOW, BASE = 2_048, 128, 160_000.0
MEMORY = 2e9
SHAPE: dict[str, Any] = shape(6, 256)
# Two thirds as wide: with the gate's matrix a block has as many weights as BERT's, within 1%.
GATED = SHAPE | {"intermediate_size": 688}
MODERN, BERT, DEBERTA = "ours, ModernBERT", "ours, BERT", "ours, DeBERTa"
PEER = "transformers' ModernBertModel"


def tables() -> list[Table]:
    """Each part alone in every number format worth using here; whole encoders in the last of
    them, which is the quickest."""
    parts = [
        Table(
            f"{what}, {batch_text(tokens)}, {precision}",
            make(tokens, precision),
            turn=0.1,
            slow=tokens > TOKENS,
        )
        for what, make, lengths in (
            ("Rotary positions", rotary_contenders, LENGTHS[1:3]),
            ("Sliding-window attention", window_contenders, LENGTHS[1:]),
        )
        for precision in precisions()
        for tokens in lengths
    ]
    precision, size = precisions()[-1], f"{SHAPE['num_layers']}×{SHAPE['hidden_size']}"
    return parts + [
        Table(
            f"ModernBERT, inference, {size}, {batch_text(tokens)}, {precision}",
            contenders(tokens, precision),
            partial(remark, max(tokens, TOKENS)),
            turn=0.1,
            slow=tokens > TOKENS,
        )
        for tokens in LENGTHS
    ]


def batch_text(tokens: int) -> str:
    """A batch of texts this long, in words."""
    return f"{batch_of(tokens)}×{tokens} tokens"


def batch_of(tokens: int) -> int:
    """How many texts this long are read at once."""
    return max(1, TOKENS // tokens)


def fits(tokens: int) -> bool:
    """Whether two tables of all scores, before the softmax and after it, are small enough."""
    scores = batch_of(tokens) * SHAPE["num_heads"] * tokens**2
    return 2 * scores * torch.finfo(torch.float32).bits / 8 <= MEMORY


# ---- parts alone ---------------------------------------------------------------------------------


Ready = Callable[[], object]  # one step, its inputs made


def rotary_contenders(tokens: int, precision: str) -> list[Contender]:
    """Query and key turned: transformers' way with its tables ready, and both of ours."""
    ways: dict[str, Callable[..., Ready]] = {
        "transformers' apply_rotary_pos_emb, tables ready": peer_rotary,
        "ours, rotary_reference": lambda q, k: partial(rotary_reference, q, k, BASE, tokens),
        "ours, rotary": lambda q, k: partial(rotary, q, k, BASE, tokens),
    }
    return alone(ways, tokens, precision, tensors=2)


def peer_rotary(query: Tensor, key: Tensor) -> Ready:
    """transformers' function on (B, T, A, D), its cosines and sines ready, as in every layer but
    the first."""
    from transformers.models.modernbert.modeling_modernbert import apply_rotary_pos_emb

    angle = torch.arange(query.shape[1])[:, None] * frequencies(query.shape[-1], BASE)
    cos, sin = (table.repeat(1, 2)[None] for table in (angle.cos(), angle.sin()))  # (1, T, D)
    return partial(apply_rotary_pos_emb, query, key, cos, sin, unsqueeze_dim=2)


def window_contenders(tokens: int, precision: str) -> list[Contender]:
    """Attention within the window: torch's with the mask ready, and both of ours."""

    def ours(function: Callable[..., Tensor]) -> Callable[..., Ready]:
        return lambda *qkv: partial(function, *(x.transpose(1, 2) for x in qkv), WINDOW)

    ways = {"torch's sdpa, mask ready": peer_window}
    if fits(tokens):
        reference = sliding_window_attention_reference
        ways["ours, sliding_window_attention_reference"] = ours(reference)
    ways["ours, sliding_window_attention"] = ours(sliding_window_attention)
    return alone(ways, tokens, precision, tensors=3)


def peer_window(*qkv: Tensor) -> Ready:
    """torch's function on query, key and value (B, T, A, D), the mask (1, 1, T, T) ready."""
    near = window_mask(qkv[0][:1], WINDOW)[:, None]
    query, key, value = (x.transpose(1, 2) for x in qkv)
    attend = torch.nn.functional.scaled_dot_product_attention
    return partial(attend, query, key, value, attn_mask=near)


def alone(
    ways: Mapping[str, Callable[..., Ready]], tokens: int, precision: str, tensors: int
) -> list[Contender]:
    """Rows by name, each on `tensors` random tensors (B, T, A, D) of the encoder's heads."""
    heads, batch = SHAPE["num_heads"], batch_of(tokens)
    size = (batch, tokens, heads, SHAPE["hidden_size"] // heads)

    def make(way: Callable[..., Ready]) -> Step:
        generator = torch.Generator().manual_seed(0)
        drawn = (torch.randn(size, generator=generator) for _ in range(tensors))
        return forward_only(way(*(x.to(FORMATS[precision]) for x in drawn)))

    return contenders_of({name: partial(make, way) for name, way in ways.items()}, batch * tokens)


# ---- the whole encoder ---------------------------------------------------------------------------


def contenders(tokens: int, precision: str) -> list[Contender]:
    """transformers' two ways, ours, and two older members of the family in ours."""
    common: dict[str, Any] = {"vocab_size": SPECIAL.vocab_size, "max_positions": LENGTHS[-1]}
    off: dict[str, Any] = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
    modern = partial(modernbert, pad_token_id=SPECIAL.pad, window=WINDOW, **common, **GATED)
    makes: dict[str, Callable[[], Step]] = {
        f"{PEER}, eager": partial(encoding, modern, tokens, precision, "eager"),
        f"{PEER}, sdpa": partial(encoding, modern, tokens, precision, "sdpa"),
        MODERN: partial(encoding, modern, tokens, precision),
        BERT: partial(encoding, partial(bert, "base", **common, **SHAPE, **off), tokens, precision),
        DEBERTA: partial(
            encoding, partial(deberta_v3, **common, **SHAPE, **off), tokens, precision
        ),
    }
    if not fits(tokens):
        del makes[f"{PEER}, eager"]
    return contenders_of(makes, batch_of(tokens) * tokens)


def encoding(
    make: Callable[[], nn.Module], tokens: int, precision: str, attention: str = ""
) -> Step:
    """Forward only. attention: of transformers' model with the same weights; "": ours itself."""
    torch.manual_seed(0)
    model = make().eval().to(FORMATS[precision])
    if attention:
        model = to_transformers(model, attention)
    ids = random_sequences(batch_of(tokens), tokens).input_ids
    return forward_only(lambda: model(ids))


def remark(tokens: int, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """Ours against the peer's better way, and what the older members take, in times of ours."""
    rates = {r.name: r.median for r in results}
    ours, peer = rates[MODERN], max(r for name, r in rates.items() if name.startswith(PEER))
    return (
        f"ours {1e3 * tokens / ours:.0f} ms, ours / transformers' better one {ours / peer:.2f}×   "
        f"in ours' time: BERT {ours / rates[BERT]:.2f}×, DeBERTa {ours / rates[DEBERTA]:.2f}×"
    )
