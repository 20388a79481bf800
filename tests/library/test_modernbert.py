"""What is ModernBERT's own: every switch between it and BERT against a plain version written here,
texts longer than the window against transformers' two ways of attention, padded and not. That it
equals transformers' on drawn shapes is tested in test_parity.py."""

from __future__ import annotations

import math
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from parity import (
    TOLERANCE,
    both_precisions,
    distance,
    drawn_weights,
    gradient_distance,
    in_float64,
    on_meta,
)
from torch import Tensor

from course_lib.checkpoints import (
    FAMILIES,
    CheckpointError,
    load,
    load_pretrained,
    save,
    save_folder,
    to_transformers,
)
from course_lib.checkpoints.convert import our_config
from course_lib.config import BertConfig, published
from course_lib.encoder import Encoder, HeadPooler, count_parameters
from course_lib.family.modernbert import (
    AS_BERT,
    ModernBertConfig,
    modernbert,
    modernbert_encoder,
    modernbert_for_masked_lm,
)
from course_lib.heads import BertForMaskedLM
from course_lib.train.finetuning import classifier_on
from course_lib.train.flops import forward_flops

pytest.importorskip("transformers")

SMALL: dict[str, Any] = {
    "vocab_size": 40, "hidden_size": 12, "num_layers": 4, "num_heads": 2, "intermediate_size": 10,
    "max_positions": 60, "pad_token_id": 0, "window": 6,
}  # fmt: skip
OFF: dict[str, Any] = {**SMALL, **AS_BERT, "layer_norm_eps": 1e-12}
SWITCHES = [*AS_BERT, "first_norm"]


def model_of(**settings: Any) -> Any:
    """A small model, every weight drawn, in float64."""
    config = ModernBertConfig(**{**SMALL, **settings})
    return drawn_weights(modernbert_encoder(config), 0.15).double().eval()


def batch_of(lengths: tuple[int, ...], tokens: int, vocab: int = 40) -> dict[str, Tensor]:
    ids = torch.randint(
        1, vocab, (len(lengths), tokens), generator=torch.Generator().manual_seed(3)
    )
    mask = (torch.arange(tokens) < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask}


def squares(states: Tensor, mask: Tensor) -> Tensor:
    """Mean squared distance of the real tokens' states from a fixed target."""
    made = torch.Generator().manual_seed(5)
    target = torch.randn(states.shape, generator=made, dtype=torch.float64)
    return (states - target.to(states.dtype))[mask.bool()].square().mean()


# ---------------------------------------------------------------- every switch, written plainly


def plain(w: dict[str, Tensor], c: ModernBertConfig, ids: Tensor, mask: Tensor) -> Tensor:
    """Last states (B, T, H), in one function, from the weights by name."""
    T, D = ids.shape[1], c.head_size

    def dense(x: Tensor, name: str) -> Tensor:
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def norm(x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + c.layer_norm_eps).sqrt()
        return scaled * w[f"{name}.weight"] + w.get(f"{name}.bias", 0)

    def turned(x: Tensor, base: float) -> Tensor:  # two by two, in the plane of features i, i + D/2
        out, slow = torch.empty_like(x), base ** (torch.arange(0, D, 2).float() / D)
        for i in range(D // 2):
            angle = torch.arange(T).float() * (1 / slow)[i]
            cos, sin = angle.cos().double(), angle.sin().double()
            one, other = x[..., i], x[..., i + D // 2]
            out[..., i], out[..., i + D // 2] = one * cos - other * sin, other * cos + one * sin
        return out

    x = w["embeddings.token.weight"][ids]
    x = x if c.rotary else x + w["embeddings.position.weight"][:T]
    x = x + w["embeddings.segment.weight"][0] if c.type_vocab_size else x
    x = norm(x, "embeddings.norm")
    far = (torch.arange(T)[:, None] - torch.arange(T)).abs() > c.window // 2
    for layer in range(c.num_layers):
        b, whole = f"stack.blocks.{layer}", layer % c.global_every == 0
        hidden = (mask == 0)[:, None] if whole else (mask == 0)[:, None] | far
        normed = c.pre_norm and (layer > 0 or c.first_norm)
        read = norm(x, f"{b}.attention_norm") if normed else x
        heads = []
        for h in range(c.num_heads):
            q, k, v = (
                dense(read, f"{b}.attention.{name}")[..., h * D : (h + 1) * D]
                for name in ("query", "key", "value")
            )
            if c.rotary:
                q, k = (turned(y, c.global_base if whole else c.local_base) for y in (q, k))
            scores = (q @ k.transpose(1, 2) / math.sqrt(D)).masked_fill(hidden, -1e30)
            heads.append(scores.softmax(-1) @ v)
        x = x + dense(torch.cat(heads, -1), f"{b}.attention.output")
        x = x if c.pre_norm else norm(x, f"{b}.attention_norm")
        read = norm(x, f"{b}.output_norm") if c.pre_norm else x
        wide = dense(read, f"{b}.feed_forward.expand")
        if c.gated:
            wide, gate = wide.chunk(2, -1)
            wide = F.gelu(wide) * gate
        else:
            wide = F.gelu(wide)
        x = x + dense(wide, f"{b}.feed_forward.contract")
        x = x if c.pre_norm else norm(x, f"{b}.output_norm")
    return norm(x, "stack.norm") if c.final_norm else x


def turned_on(*names: str) -> dict[str, Any]:
    """A BERT with these changes of ModernBERT's."""
    ours = {name: getattr(ModernBertConfig(), name) for name in AS_BERT}
    ours |= {"first_norm": True}
    return {**OFF, **{name: ours[name] for name in names}}


draw = random.Random(0)
RUNGS = [
    (),
    *((name,) for name in SWITCHES),
    *(tuple(AS_BERT)[:n] for n in range(2, len(AS_BERT) + 1)),
    *(tuple(name for name in SWITCHES if draw.random() < 0.5) for _ in range(8)),
]


@pytest.mark.parametrize("names", RUNGS, ids=" ".join)
def test_any_set_of_changes_equals_the_plain_version(names: tuple[str, ...]):
    ours = model_of(**turned_on(*names))
    batch = batch_of((17, 9, 1), 17)
    mask, real = batch["attention_mask"], batch["attention_mask"].bool()
    weights = {n: p.detach().clone().requires_grad_() for n, p in ours.named_parameters()}
    mine = ours(**batch).last_hidden_state
    theirs = plain(weights, ours.config, batch["input_ids"], mask)
    assert distance(mine[real], theirs[real]) < 1e-10
    for states in (mine, theirs):
        squares(states, mask).backward()
    with torch.no_grad():  # the padding's row is not trained
        weights["embeddings.token.weight"].grad[0] = 0.0  # type: ignore[index]
    found = {n: p.grad for n, p in weights.items() if p.grad is not None}
    most = max(grad.abs().max() for grad in found.values())
    for name, parameter in ours.named_parameters():
        assert (parameter.grad - found[name]).abs().max() <= 1e-10 * most, name
    unpadded = ours(**batch, remove_padding=True).last_hidden_state
    weighed = ours(**batch, output_attentions=True).last_hidden_state
    for other in (unpadded, weighed):
        assert distance(other[real], mine[real]) < 1e-12


def test_without_a_change_it_is_bert():
    ours = model_of(**OFF)
    names = {n: v for n, v in OFF.items() if n in BertConfig.__dataclass_fields__}
    config = BertConfig(**names, hidden_dropout=0.0, attention_dropout=0.0)
    bert = Encoder(config).double().eval()
    bert.load_state_dict(ours.state_dict())  # the same names, all of them
    batch = batch_of((17, 9), 17)
    assert distance(ours(**batch).last_hidden_state, bert(**batch).last_hidden_state) < 1e-12
    heads = [BertForMaskedLM(model) for model in (ours, bert)]
    assert count_parameters(heads[0]) == count_parameters(heads[1])


def test_the_start_is_berts_but_for_the_depth():
    """Every matrix begins at 0.02, those that write into the states smaller by √(2L)."""
    for scaled in (False, True):
        torch.manual_seed(0)
        config = ModernBertConfig(
            **{**SMALL, "hidden_size": 64, "num_layers": 8, "depth_scaled_init": scaled}
        )
        stack: Any = modernbert_encoder(config).stack
        for name, weight in stack.named_parameters():
            writes = name.endswith(("attention.output.weight", "feed_forward.contract.weight"))
            if weight.dim() == 2:
                expected = 0.02 * 0.8796 / (4 if scaled and writes else 1)  # cut at two deviations
                assert weight.std().item() == pytest.approx(expected, rel=0.1), name


# ---------------------------------------------------------------- beside transformers, longer


LONG: dict[str, Any] = {
    "vocab_size": 60, "hidden_size": 24, "num_layers": 4, "num_heads": 3, "intermediate_size": 31,
    "max_positions": 400, "pad_token_id": 0,
}  # fmt: skip


@both_precisions
@pytest.mark.parametrize("way", ["eager", "sdpa"])
@pytest.mark.parametrize("lengths", [(300, 211, 40), (277,), (300, 300)], ids=str)
@pytest.mark.parametrize("unpadded", [False, True], ids=["padded", "unpadded"])
def test_texts_longer_than_the_window(
    lengths: tuple[int, ...], unpadded: bool, way: str, dtype: torch.dtype
):
    """The published window, 128; two of the four layers are local, and both bases are used. Beside
    eager ours takes its twins, and its references once more."""
    ours: Any = BertForMaskedLM(modernbert_encoder(ModernBertConfig(**LONG)))
    drawn_weights(ours, 0.15).to(dtype).eval()
    theirs = to_transformers(ours, attention=way)
    batch = batch_of(lengths, max(lengths), 60)
    with in_float64(theirs):
        reference = theirs(**batch).logits
    mask = batch["attention_mask"]
    for path in ("auto", "reference"):
        for block in ours.encoder.stack.blocks:
            block.attention.path = path
        found = ours(**batch, remove_padding=unpadded).logits
        assert distance(found[mask.bool()], reference[mask.bool()]) <= TOLERANCE[dtype]
        for model, logits in ((ours, found), (theirs, reference)):
            model.zero_grad()
            squares(logits, mask).backward(retain_graph=True)
        assert gradient_distance(ours, theirs) <= TOLERANCE[dtype]


def test_a_text_of_the_longest_length_is_read():
    """8,192 tokens, in one local and one global layer of one narrow head."""
    config = ModernBertConfig(
        **{**LONG, "hidden_size": 8, "num_heads": 1, "num_layers": 2, "max_positions": 8_192}
    )
    ours = drawn_weights(modernbert_encoder(config), 0.3).eval()
    ids = torch.randint(1, 60, (1, 8_192), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = ours(ids).last_hidden_state
        reference = to_transformers(ours)(ids).last_hidden_state
        assert distance(found, reference) <= TOLERANCE[torch.float32]
    with pytest.raises(ValueError, match=r"A text of 8193 tokens was given; this model has"):
        ours(F.pad(ids, (0, 1), value=1))


def test_positions_begin_anew_in_each_text():
    """A text says the same alone, padded on either side, and unpadded between others."""
    ours = model_of()
    ids = batch_of((9,), 9)["input_ids"]
    alone = ours(ids).last_hidden_state[0]
    left = torch.cat([torch.zeros(1, 5, dtype=torch.long), ids], 1)
    right = torch.cat([ids, torch.zeros(1, 5, dtype=torch.long)], 1)
    both = torch.cat([left, right, torch.ones(1, 14, dtype=torch.long)])
    mask = (both != 0).long()
    for remove in (False, True):
        states = ours(both, mask, remove_padding=remove).last_hidden_state
        assert distance(states[0, 5:], alone) < 1e-6  # angles are float32
        assert distance(states[1, :9], alone) < 1e-12


def test_given_positions_are_refused():
    with pytest.raises(ValueError, match="a model whose embeddings are BERT's, with a position ta"):
        model_of()(torch.ones(1, 3, dtype=torch.long), position_ids=torch.ones(1, 3).long())


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(("size", "V", "H", "F_", "L"), [
    ("base", 50_368, 768, 1_152, 22), ("large", 50_368, 1_024, 2_624, 28),
])  # fmt: skip
def test_counted_by_hand(size: str, V: int, H: int, F_: int, L: int):
    block = 4 * H * H + 3 * H * F_ + 2 * H  # attention, the gated part, two norms
    encoder = V * H + H + L * block - H + H  # the first norm left out, the final norm
    assert on_meta(partial(modernbert, size)) == encoder
    head = H * H + H + V  # dense, norm, the decoder's bias
    assert on_meta(partial(modernbert_for_masked_lm, size)) == encoder + head


def test_no_bias_but_the_decoders():
    names = dict(BertForMaskedLM(model_of()).named_parameters())
    assert [name for name in names if name.endswith("bias")] == ["mlm.bias"]


def test_local_layers_cost_what_the_window_does():
    """Of FLOPs: T² in a global layer, three blocks of 64 keys a token in a local one."""

    def flops(tokens: int, **changes: Any) -> int:
        return forward_flops(partial(modernbert, num_layers=2, **changes), tokens)

    H, F_ = 768, 1_152
    for T in (512, 2_048):
        dense = 2 * 2 * T * (4 * H * H + 3 * H * F_)
        assert flops(T) == dense + 4 * T * T * H + 4 * T * 3 * 64 * H
        assert flops(T, global_every=1) == dense + 2 * 4 * T * T * H


# ---------------------------------------------------------------- weights and settings elsewhere


RELEASED = {  # as the released files say it, in words older than transformers' own today
    "model_type": "modernbert", "vocab_size": 50_368, "hidden_size": 1_024, "norm_bias": False,
    "intermediate_size": 2_624, "num_hidden_layers": 28, "num_attention_heads": 16,
    "attention_bias": False, "mlp_bias": False, "classifier_bias": False, "decoder_bias": True,
    "global_attn_every_n_layers": 3, "global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0,
    "local_attention": 128, "max_position_embeddings": 8_192, "norm_eps": 1e-5,
    "layer_norm_eps": 1e-5, "pad_token_id": 50_283, "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
}  # fmt: skip
ROPE = {"rope_type": "yarn", "rope_theta": 1e4}


def test_a_released_configuration_is_the_published_size():
    found = our_config(RELEASED, FAMILIES["modernbert"], "config.json")
    assert found == published("modernbert", "large", ModernBertConfig)
    other = our_config({**RELEASED, "global_rope_theta": 9.0}, FAMILIES["modernbert"], "here")
    assert (other.global_base, other.local_base) == (9.0, 10_000.0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"mlp_bias": True}, "'mlp_bias': True.* were given; expected all of them true, or none"),
        ({"classifier_activation": "relu"}, "classifier_activation='relu' was given; expected hid"),
        ({"mlp_dropout": 0.1}, "mlp_dropout=0.1 was given; expected embedding_dropout's"),
        ({"embedding_dropout": 0.1}, "mlp_dropout=0.0 was given; expected embedding_dropout's"),
        ({"rope_parameters": {"full_attention": ROPE}}, "rope_type='yarn' was given; expected 'de"),
        ({"rope_scaling": {"rope_type": "linear"}}, "rope_type='linear' was given; expected 'def"),
        ({"layer_types": ["sliding_attention"] * 28}, "expected every n-th layer to be global"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings=False; only True means the same"),
        ({"decoder_bias": False}, "decoder_bias=False; only True means the same"),
        ({"local_attention": 0}, "window=0 was given; expected a whole number of at least 1"),
    ],
)
def test_what_ours_has_not_is_refused(changes: dict[str, Any], says: str):
    with pytest.raises(CheckpointError, match=says):
        our_config({**RELEASED, **changes}, FAMILIES["modernbert"], "config.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_scaling": {"rope_theta": 50.0}},
        {"rope_scaling": {"type": "linear", "factor": 4.0}},  # the old word, which theirs ignores
        {"sliding_window": 8},
    ],
)
def test_settings_of_other_versions_mean_what_they_mean_in_transformers(changes: dict[str, Any]):
    kind, family = pytest.importorskip("transformers").ModernBertConfig, FAMILIES["modernbert"]
    settings = {k: v for k, v in {**RELEASED, **changes}.items() if k != "model_type"}
    theirs = our_config(kind(**settings).to_dict(), family, "there")
    assert our_config({**RELEASED, **changes}, family, "here") == theirs


@pytest.mark.parametrize("name", [n for n in AS_BERT if n not in (
    "biases", "global_every", "depth_scaled_init")] + ["first_norm"])  # fmt: skip
def test_a_model_between_is_not_given_to_transformers_but_kept_by_ours(tmp_path: Path, name: str):
    value = AS_BERT.get(name, True)
    ours = BertForMaskedLM(model_of(**{name: value})).double()
    with pytest.raises(CheckpointError, match=f"has {name}={value}; only .* means the same here"):
        to_transformers(ours)
    save(ours, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    batch = batch_of((9,), 9)
    assert again.config == ours.config
    assert distance(again(**batch).logits, ours(**batch).logits) < 1e-12


def test_in_bfloat16_transformers_keeps_its_angles():
    ours = model_of().bfloat16()
    theirs = to_transformers(ours)
    assert {p.dtype for p in theirs.parameters()} == {torch.bfloat16}
    angles = [b for name, b in theirs.named_buffers() if "inv_freq" in name]
    assert angles and all(b.dtype == torch.float32 for b in angles)
    batch = batch_of((50,), 50)
    with torch.no_grad():
        found, reference = (model(**batch).last_hidden_state for model in (ours, theirs))
        exact = ours.double()(**batch).last_hidden_state
    assert distance(found.double(), exact) < 0.05 > distance(reference.double(), exact)


def test_a_classifier_on_it_is_kept(tmp_path: Path):
    model = classifier_on(model_of(), 3).double()
    assert isinstance(model.encoder.pooler, HeadPooler)
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    batch = batch_of((9, 4), 9)
    assert distance(again(**batch).logits, model.eval()(**batch).logits) < 1e-12
    save_folder(model.float(), tmp_path / "folder", None)
    assert distance(load_pretrained(tmp_path / "folder").model(**batch).logits,
                    model(**batch).logits) < 1e-6  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"window": 0}, "window=0 was given; expected a whole number of at least 1"),
        ({"window": 2.5}, r"window=2\.5 was given"),
        ({"global_every": 0}, "global_every=0 was given; expected a whole number"),
        ({"global_base": 0}, "global_base=0.0 was given; expected above 0"),
        ({"local_base": -1.0}, r"local_base=-1\.0 was given"),
        ({"hidden_size": 10}, "a head size of 5 was given; expected an even one"),
        ({"pad_token_id": 50_283}, "pad_token_id=50283 was given; expected an id of the vocab"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        ModernBertConfig(**{**SMALL, **settings})
    if "hidden_size" in settings:
        ModernBertConfig(**{**SMALL, **settings, "rotary": False})  # without turning, it may be
