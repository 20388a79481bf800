"""Weights of the two models that write, GPT and BART: to transformers and back, bit for bit.

They have tables of their own: GPT-2 keeps query, key and value in one matrix, and its matrices
transposed; BART has two stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from course_lib.family.gpt import GptConfig, GptForNextToken, gpt_decoder
from course_lib.family.seq2seq import BartConfig, Seq2Seq

from .convert import joined, parted
from .families import renamed
from .reading import CheckpointError, State

_GPT2 = {
    "embeddings.token": "wte",
    "embeddings.position": "wpe",
    "stack.norm": "ln_f",
    "stack.blocks.#.attention_norm": "h.#.ln_1",
    **{
        f"stack.blocks.#.attention.{part}": f"h.#.attn.c_attn.{part}"
        for part in ("query", "key", "value")
    },
    "stack.blocks.#.attention.output": "h.#.attn.c_proj",
    "stack.blocks.#.output_norm": "h.#.ln_2",
    "stack.blocks.#.feed_forward.expand": "h.#.mlp.c_fc",
    "stack.blocks.#.feed_forward.contract": "h.#.mlp.c_proj",
}
_OURS_OF_GPT2 = {theirs: ours for ours, theirs in _GPT2.items()}
_JOINED = {".c_attn": ("query", "key", "value")}
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


def gpt2_layout(ours: Mapping[str, Tensor]) -> State:
    """Weights, or their gradients, of a GptForNextToken under GPT-2's names and in its shapes."""
    named = {f"{renamed(n.removeprefix('decoder.'), _GPT2)}": value for n, value in ours.items()}
    theirs = joined(named, _JOINED)
    return {f"transformer.{name}": _turned(name, value) for name, value in theirs.items()}


def gpt2_layout_back(theirs: Mapping[str, Tensor]) -> State:
    """The same the other way; of what it has besides, nothing."""
    parts: State = {}
    for name, value in theirs.items():
        name = name.removeprefix("transformer.")
        parts |= parted(name, _turned(name, value), _JOINED)
    result = {renamed(name, _OURS_OF_GPT2): value for name, value in parts.items()}
    return {f"decoder.{name}": value for name, value in result.items() if name}


def _turned(name: str, value: Tensor) -> Tensor:
    """A dense layer's matrix the other way round; what is none as it is."""
    return value.T if value.dim() == 2 and name not in ("wte.weight", "wpe.weight") else value


def bart_name(name: str) -> str:
    """transformers' name of a parameter of our Seq2Seq."""
    if name.endswith("embeddings.token.weight"):
        return "model.shared.weight"
    side = "encoder" if name.startswith("encoder.") else "decoder"
    bare = name.removeprefix("encoder.").removeprefix("stack.")
    return f"model.{side}.{renamed(bare, _BART)}"


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

    Raises CheckpointError for settings that ours do not have, and for a head of its own."""
    theirs, state = hf_model.config, hf_model.state_dict()
    settings = {ours: getattr(theirs, name) for ours, name in _GPT2_SETTINGS.items()}
    settings["intermediate_size"] = theirs.n_inner or 4 * theirs.n_embd
    _check(theirs, "GPT-2", scale_attn_by_inverse_layer_idx=False, scale_attn_weights=True)
    _check(theirs, "GPT-2", embd_pdrop=theirs.resid_pdrop, add_cross_attention=False)
    _check_tied(state, "GPT-2", "transformer.wte.weight")
    config = GptConfig(**settings, hidden_dropout=theirs.resid_pdrop)
    ours = GptForNextToken(gpt_decoder(config)).to(next(hf_model.parameters()).dtype)
    ours.load_state_dict(gpt2_layout_back(state))
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

    Raises CheckpointError for settings that ours do not have, and for a head of its own."""
    theirs, state = hf_model.config, hf_model.state_dict()
    for side in ("layers", "attention_heads", "ffn_dim"):
        _check(theirs, "BART", **{f"decoder_{side}": getattr(theirs, f"encoder_{side}")})
    _check(theirs, "BART", scale_embedding=False, encoder_layerdrop=0, decoder_layerdrop=0)
    _check_tied(state, "BART", "model.shared.weight")
    settings = {ours: getattr(theirs, name) for ours, name in _BART_SETTINGS.items()}
    ours = Seq2Seq(BartConfig(**settings, max_positions=theirs.max_position_embeddings + 2))
    ours.to(next(hf_model.parameters()).dtype)
    ours.load_state_dict({name: state[bart_name(name)] for name in ours.state_dict()})
    return ours.train(hf_model.training)


def _check(settings: Any, family: str, **expected: object) -> None:
    for name, value in expected.items():
        if getattr(settings, name) != value:
            raise CheckpointError(
                f"a {family} with {name}={getattr(settings, name)!r} was given; only {value!r} "
                "means the same here."
            )


def _check_tied(state: State, family: str, table: str) -> None:
    """Raise CheckpointError where logits are not the last states times the one embedding matrix."""
    seconds = ("lm_head.weight", ".embed_tokens.weight")
    own = [n for n, v in state.items() if n.endswith(seconds) and not v.equal(state[table])]
    own += [n for n in state if n == "final_logits_bias" and state[n].any()]
    if own:
        raise CheckpointError(
            f"a {family} with {', '.join(own)} of its own was given; expected {table} as each such "
            "matrix (tie_word_embeddings=True) and 0 as such a bias: ours has nothing else."
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
