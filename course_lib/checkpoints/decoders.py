"""Weights of the two models that write, GPT and BART: to transformers and back, bit for bit.

They have tables of their own: GPT-2 keeps query, key and value in one matrix, and its matrices
transposed; BART has two stacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from course_lib.family.gpt import GptConfig, GptForNextToken, gpt_decoder
from course_lib.family.seq2seq import BartConfig, Seq2Seq

from .reading import CheckpointError, State

_GPT2 = {
    "embeddings.token": "wte",
    "embeddings.position": "wpe",
    "stack.norm": "ln_f",
    "stack.blocks.#.attention_norm": "h.#.ln_1",
    "stack.blocks.#.attention.output": "h.#.attn.c_proj",
    "stack.blocks.#.output_norm": "h.#.ln_2",
    "stack.blocks.#.feed_forward.expand": "h.#.mlp.c_fc",
    "stack.blocks.#.feed_forward.contract": "h.#.mlp.c_proj",
}
_FUSED = "stack.blocks.#.attention.", "h.#.attn.c_attn"  # query, key and value side by side
_BART = {
    "embeddings.position": "embed_positions",
    "embeddings.norm": "layernorm_embedding",
    "blocks.#.attention_norm": "layers.#.self_attn_layer_norm",
    "blocks.#.cross_norm": "layers.#.encoder_attn_layer_norm",
    "blocks.#.feed_forward.expand": "layers.#.fc1",
    "blocks.#.feed_forward.contract": "layers.#.fc2",
    "blocks.#.output_norm": "layers.#.final_layer_norm",
    **{
        f"blocks.#.{ours}.{part}": f"layers.#.{theirs}.{their_part}"
        for ours, theirs in (("attention", "self_attn"), ("cross", "encoder_attn"))
        for part, their_part in (
            ("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"), ("output", "out_proj"),
        )
    },
}  # fmt: skip
_GPT2_SETTINGS = {
    "vocab_size": "vocab_size",
    "hidden_size": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "intermediate_size": "n_inner",
    "max_positions": "n_positions",
    "hidden_act": "activation_function",
    "attention_dropout": "attn_pdrop",
    "layer_norm_eps": "layer_norm_epsilon",
    "initializer_range": "initializer_range",
}
_BART_SETTINGS = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_layers": "encoder_layers",
    "num_heads": "encoder_attention_heads",
    "intermediate_size": "encoder_ffn_dim",
    "pad_token_id": "pad_token_id",
    "hidden_act": "activation_function",
    "hidden_dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "initializer_range": "init_std",
}


def _numbered(name: str) -> tuple[str, str, str]:
    """blocks.3.cross.query.weight -> blocks.#.cross.query, weight, 3"""
    number = re.search(r"\d+", name)
    module, _, leaf = re.sub(r"\d+", "#", name, count=1).rpartition(".")
    return module, leaf, number[0] if number else ""


def gpt2_layout(ours: Mapping[str, Tensor]) -> State:
    """Weights, or their gradients, of a GptForNextToken under GPT-2's names and in its shapes."""
    theirs: State = {}
    fused: dict[str, list[Tensor]] = {}
    for name, value in ours.items():
        module, leaf, number = _numbered(name.removeprefix("decoder."))
        dense = value.dim() == 2 and not module.startswith("embeddings.")
        value = value.T if dense else value
        if module in _GPT2:
            theirs[f"transformer.{_GPT2[module]}.{leaf}".replace("#", number)] = value
        else:  # query, key and value come in this order
            fused.setdefault(f"transformer.{_FUSED[1]}.{leaf}".replace("#", number), []).append(
                value
            )
    return theirs | {name: torch.cat(parts, -1) for name, parts in fused.items()}


def gpt2_layout_back(theirs: Mapping[str, Tensor]) -> State:
    """The same the other way."""
    names = {their: our for our, their in _GPT2.items()}
    ours: State = {}
    for name, value in theirs.items():
        module, leaf, number = _numbered(name.removeprefix("transformer."))
        dense = value.dim() == 2 and module not in ("wte", "wpe")
        if module == _FUSED[1]:
            for part, piece in zip(("query", "key", "value"), value.chunk(3, -1), strict=True):
                ours[f"decoder.{_FUSED[0]}{part}.{leaf}".replace("#", number)] = (
                    piece.T if dense else piece
                )
        elif module in names:
            moved = value.T if dense else value
            ours[f"decoder.{names[module]}.{leaf}".replace("#", number)] = moved
    return {name: value.clone() for name, value in ours.items()}


def bart_name(name: str) -> str:
    """transformers' name of a parameter of our Seq2Seq."""
    if name.endswith("embeddings.token.weight"):
        return "model.shared.weight"
    side = "encoder" if name.startswith("encoder.") else "decoder"
    module, leaf, number = _numbered(name.removeprefix("encoder.").removeprefix("stack."))
    return f"model.{side}.{_BART[module]}.{leaf}".replace("#", number)


def to_gpt2(model: GptForNextToken, attention: str = "sdpa") -> Any:
    """transformers' GPT2LMHeadModel with a copy of the weights of ours; same type and mode."""
    from transformers import GPT2Config, GPT2LMHeadModel

    c = model.config
    settings = {theirs: getattr(c, ours) for ours, theirs in _GPT2_SETTINGS.items()}
    settings |= {"embd_pdrop": c.hidden_dropout, "resid_pdrop": c.hidden_dropout}
    theirs = GPT2LMHeadModel(GPT2Config(**settings, attn_implementation=attention))
    return _filled(theirs, gpt2_layout(model.state_dict()), model)


def from_gpt2(hf_model: Any) -> GptForNextToken:
    """Our model with a copy of the weights of a GPT2LMHeadModel; same type and mode.

    Raises CheckpointError for settings that ours do not have."""
    theirs = hf_model.config
    settings = {ours: getattr(theirs, name) for ours, name in _GPT2_SETTINGS.items()}
    settings["intermediate_size"] = theirs.n_inner or 4 * theirs.n_embd
    _check(theirs, "GPT-2", scale_attn_by_inverse_layer_idx=False, scale_attn_weights=True)
    _check(theirs, "GPT-2", embd_pdrop=theirs.resid_pdrop)
    config = GptConfig(**settings, hidden_dropout=theirs.resid_pdrop)
    ours = GptForNextToken(gpt_decoder(config)).to(next(hf_model.parameters()).dtype)
    ours.load_state_dict(gpt2_layout_back(hf_model.state_dict()))
    return ours.train(hf_model.training)


def to_bart(model: Seq2Seq, attention: str = "sdpa") -> Any:
    """transformers' BartForConditionalGeneration with a copy of the weights of ours."""
    from transformers import BartConfig as TheirConfig
    from transformers import BartForConditionalGeneration

    c = model.config
    settings = {theirs: getattr(c, ours) for ours, theirs in _BART_SETTINGS.items()}
    for side in ("layers", "attention_heads", "ffn_dim"):
        settings[f"decoder_{side}"] = settings[f"encoder_{side}"]
    settings["max_position_embeddings"] = c.longest_text
    config = TheirConfig(**settings, attn_implementation=attention)
    state = {bart_name(name): value for name, value in model.state_dict().items()}
    return _filled(BartForConditionalGeneration(config), state, model)


def from_bart(hf_model: Any) -> Seq2Seq:
    """Our model with a copy of the weights of a BartForConditionalGeneration.

    Raises CheckpointError for settings that ours do not have."""
    theirs = hf_model.config
    for side in ("layers", "attention_heads", "ffn_dim"):
        _check(theirs, "BART", **{f"decoder_{side}": getattr(theirs, f"encoder_{side}")})
    _check(theirs, "BART", scale_embedding=False)
    settings = {ours: getattr(theirs, name) for ours, name in _BART_SETTINGS.items()}
    ours = Seq2Seq(BartConfig(**settings, max_positions=theirs.max_position_embeddings + 2))
    ours.to(next(hf_model.parameters()).dtype)
    state = hf_model.state_dict()
    ours.load_state_dict({name: state[bart_name(name)] for name in ours.state_dict()})
    return ours.train(hf_model.training)


def _check(settings: Any, family: str, **expected: object) -> None:
    for name, value in expected.items():
        if getattr(settings, name) != value:
            raise CheckpointError(
                f"a {family} with {name}={getattr(settings, name)!r} was given; only {value!r} "
                "means the same here."
            )


def _filled(theirs: Any, state: State, ours: Any) -> Any:
    """theirs with these weights; what it has besides is tied, or a constant."""
    theirs.to(next(ours.parameters()).dtype)
    missing, surplus = theirs.load_state_dict(state, strict=False)
    own = {name for name, _ in theirs.named_parameters()}  # each tied weight once
    if surplus or own & set(missing):
        raise CheckpointError(
            f"weights that do not fit: {surplus[:3]} {sorted(own & set(missing))[:3]}"
        )
    return theirs.train(ours.training)
