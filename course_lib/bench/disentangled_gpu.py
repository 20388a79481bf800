"""Disentangled attention on a GPU: one attention module of DeBERTa-v3-base's shape in bfloat16, its
projections included, from 256 to 8,192 tokens.

transformers' own module (its table of distances is made beforehand, as an encoder does once for all
layers), the same weights around the course's readable reference and around its Triton kernels, and
two packages of others where they are installed. What they document is whole models, so their rows
are models of one layer with a feed-forward width of 16: two LayerNorms and little else more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.kernels.disentangled import disentangled_attention_reference
from course_lib.kernels.positions import position_rows

from .inputs import peer_v3
from .measuring import Contender, Measured, Step, Table, contenders_of

LENGTHS = (256, 1_024, 4_096, 8_192)
HEADS, SIZE = 12, 64
SPAN, FURTHEST = 256, 512  # k and the furthest distance of the logarithmic buckets
DEVICE, FORMAT = "cuda", torch.bfloat16
Call = Callable[[Tensor], Tensor]  # states (1, T, H) -> (1, T, H)


def tables() -> list[Table]:
    """Inference and training at each length; none without a GPU. A length is left out where the
    peer's tables of all pairs, about 40 bytes a pair and head, do not fit."""
    if not torch.cuda.is_available():
        return []
    free, _ = torch.cuda.mem_get_info()
    fitting = [tokens for tokens in LENGTHS if 40 * HEADS * tokens**2 < free]
    return [_table(tokens, training) for training in (False, True) for tokens in fitting]


def _table(tokens: int, training: bool) -> Table:
    compared = contenders(tokens, training)
    return Table(
        f"Disentangled attention on a GPU, {'forward and backward' if training else 'forward'}, "
        f"1×{tokens:,}, A={HEADS}, D={SIZE}, {str(FORMAT).removeprefix('torch.')}",
        compared,
        partial(remark, compared, tokens, training),
    )


def contenders(tokens: int, training: bool) -> list[Contender]:
    """The peer as shipped first; the packages of others only where they are installed and run."""
    makers: dict[str, Callable[[int, bool], Call]] = {
        "transformers' DisentangledSelfAttention, eager": transformers_module,
        "ours, the readable reference": partial(our_module, reference),
    }
    if find_spec("triton") is not None:
        makers["ours, in Triton"] = partial(our_module, triton_kernel)
    makes = {name: partial(work, maker, tokens, training) for name, maker in makers.items()}
    rows = contenders_of(makes, tokens)
    others = {"disentangled_flash": disentangled_flash, "flashdeberta": flash_deberta}
    for package, maker in others.items():
        row = Contender(f"{package}, a layer", partial(work, maker, tokens, training), tokens)
        if find_spec(package) is not None and runs(row):
            rows.append(row)
    return rows


def runs(contender: Contender) -> bool:
    """Whether a step of it succeeds; if not, says why it is left out."""
    try:
        contender.make()()
    except Exception as error:  # another's package, of any version
        print(f"  left out: {contender.name}: {type(error).__name__}: {error}")
        return False
    return True


def work(maker: Callable[[int, bool], Call], tokens: int, training: bool) -> Step:
    """One pass over one text, to its end on the GPU."""
    call = maker(tokens, training)
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(1, tokens, HEADS * SIZE, generator=generator).to(DEVICE, FORMAT)
    states.requires_grad_(training)
    upstream = torch.ones_like(states)

    def step() -> None:
        with torch.set_grad_enabled(training):
            output = call(states)
        if training:
            output.backward(upstream)
            states.grad = None
        if states.is_cuda:
            torch.cuda.synchronize()

    return step


def config() -> Any:
    """DeBERTa-v3-base's attention; the rest of the layer as small as it can be."""
    changes = {"position_buckets": SPAN, "max_position_embeddings": FURTHEST}
    return peer_v3(1, HEADS * SIZE, HEADS, 16, vocab_size=16, **changes)


def _module() -> tuple[Any, Tensor]:
    """transformers' attention module, and the vectors of its 2k positions."""
    from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

    torch.manual_seed(0)
    module = DisentangledSelfAttention(config())
    positions = nn.Parameter(torch.randn(2 * SPAN, HEADS * SIZE).to(DEVICE, FORMAT))
    return module.to(DEVICE, FORMAT), positions


def transformers_module(tokens: int, training: bool) -> Call:
    from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position

    module, positions = _module()
    like = torch.empty(tokens, 1, device=DEVICE)  # only its length and its device are read
    distances = build_relative_position(like, like, SPAN, FURTHEST)
    mask = torch.ones(1, 1, tokens, tokens, dtype=torch.bool, device=DEVICE)

    def call(states: Tensor) -> Tensor:
        position_inputs = {"relative_pos": distances, "rel_embeddings": positions}
        return module(states, mask, **position_inputs)[0]  # type: ignore[no-any-return]

    return call


def our_module(attention: Callable[..., Tensor], tokens: int, training: bool) -> Call:
    """The same projections around one of the course's functions."""
    module, positions = _module()
    rows = position_rows(tokens, SPAN, FURTHEST)
    rows = rows.to(DEVICE) if attention is reference else rows

    def heads(x: Tensor) -> Tensor:
        return x.unflatten(-1, (HEADS, SIZE)).transpose(-2, -3)  # (…, A, T, D)

    def call(states: Tensor) -> Tensor:
        vectors = (
            heads(f(states)) for f in (module.query_proj, module.key_proj, module.value_proj)
        )
        position_key = heads(module.key_proj(positions))
        position_query = heads(module.query_proj(positions))
        output = attention(*vectors, position_key, position_query, rows)
        return output.transpose(1, 2).flatten(2)

    return call


def reference(*inputs: Tensor) -> Tensor:
    return disentangled_attention_reference(*inputs)[0]  # type: ignore[arg-type]


def triton_kernel(*inputs: Tensor) -> Tensor:
    from course_lib.kernels.disentangled_triton import disentangled_attention_triton

    return disentangled_attention_triton(*inputs)  # type: ignore[arg-type]


def disentangled_flash(tokens: int, training: bool) -> Call:
    """PyPI's disentangled-flash as its page says: it exchanges a model's encoder."""
    from disentangled_flash import optimize_deberta, optimize_deberta_training
    from transformers import DebertaV2Model

    model = DebertaV2Model(config()).to(DEVICE, FORMAT)
    if training:
        optimize_deberta_training(model)
    else:
        optimize_deberta(model.eval(), sequence_lengths=[tokens])
    return _of_model(model, tokens)


def flash_deberta(tokens: int, training: bool) -> Call:
    """PyPI's flashdeberta as its page says: a model class in place of transformers'."""
    from flashdeberta import FlashDebertaV2Model

    settings = config()
    settings._attn_implementation = "flash_attention"
    return _of_model(FlashDebertaV2Model(settings).to(DEVICE, FORMAT).train(training), tokens)


def _of_model(model: Any, tokens: int) -> Call:
    real = torch.ones(1, tokens, dtype=torch.long, device=DEVICE)

    def call(states: Tensor) -> Tensor:
        return model(inputs_embeds=states, attention_mask=real).last_hidden_state  # type: ignore[no-any-return]

    return call


def remark(
    compared: Sequence[Contender],
    tokens: int,
    training: bool,
    results: Sequence[Measured],
    on: dict[str, Any],
) -> str:
    """Of each: TFLOP/s, counting plain attention's two products forward and five backward over all
    pairs (not projections or positions), and the most memory beside weights and inputs."""
    flops = 2 * HEADS * SIZE * tokens**2 * (7 if training else 2)
    lines = [f"on {torch.cuda.get_device_name()}:"]
    for contender, result in zip(compared, results, strict=True):
        step = contender.make()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        memory = torch.cuda.max_memory_allocated() - before
        rate = result.median / tokens * flops / 1e12
        lines.append(f"  {result.name}: {rate:.1f} TFLOP/s, {memory / 1e6:,.0f} MB")
    return "\n".join(lines)
