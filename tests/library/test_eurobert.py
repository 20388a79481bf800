"""What is EuroBERT's and UltraBERT's own: each setting against ModernBERT or a plain version, long
texts beside transformers' two ways of attention, released configurations in their words. That both
equal transformers' on drawn shapes is tested in test_parity.py."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from parity import (
    TOLERANCE,
    both_precisions,
    distance,
    drawn_weights,
    gradient_distance,
    in_float64,
)

from course_lib.checkpoints import (
    FAMILIES,
    CheckpointError,
    load_pretrained,
    save_folder,
    to_transformers,
)
from course_lib.checkpoints.convert import our_config
from course_lib.config import published
from course_lib.encoder import Encoder, count_parameters, pooler_for
from course_lib.family.eurobert import (
    EuroBertConfig,
    EuroBertForMaskedLM,
    RMSNorm,
    eurobert,
    eurobert_encoder,
)
from course_lib.family.modernbert import ModernBertConfig, modernbert_encoder
from course_lib.family.ultrabert import (
    UltraBertConfig,
    UltraBertForMaskedLM,
    ultrabert,
    ultrabert_for_masked_lm,
)
from course_lib.heads import BertForClassification
from course_lib.text.wordpiece import WordPiece
from course_lib.train.flops import forward_flops

transformers = pytest.importorskip("transformers")

SMALL: dict[str, Any] = {
    "vocab_size": 60, "hidden_size": 24, "num_layers": 4, "num_heads": 6, "intermediate_size": 31,
    "max_positions": 400, "pad_token_id": 0,
}  # fmt: skip
AS_MODERN: dict[str, Any] = {
    "norm": "layer_norm", "hidden_act": "gelu", "embedding_norm": True, "first_norm": False,
    "global_every": 3, "global_base": 160_000.0, "depth_scaled_init": True,
}  # fmt: skip


def batch_of(lengths: tuple[int, ...], seed: int = 0) -> dict[str, Any]:
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    make = torch.Generator().manual_seed(seed)
    return {"input_ids": torch.randint(1, 60, mask.shape, generator=make), "attention_mask": mask}


def needs(model_type: str) -> None:
    if model_type not in transformers.CONFIG_MAPPING:
        pytest.skip(f"transformers {transformers.__version__} has no {model_type}")


# ---------------------------------------------------------------- beside ModernBERT and by hand


def test_with_modernberts_settings_it_computes_what_modernbert_does():
    euro = eurobert_encoder(EuroBertConfig(**{**SMALL, **AS_MODERN, "window": 6})).double()
    modern = modernbert_encoder(ModernBertConfig(**SMALL, window=6)).double()
    drawn_weights(euro, 0.2)
    state = dict(euro.state_dict())
    for name in [n for n in state if n.endswith("feed_forward.gate.weight")]:
        expand = name.replace("gate", "expand")
        state[expand] = torch.cat([state[expand], state.pop(name)])
    modern.load_state_dict(state)
    batch = batch_of((40, 22))
    one, other = (model(**batch).last_hidden_state for model in (euro, modern))
    assert distance(one, other) < 1e-12


def test_rms_norm_by_hand():
    norm = RMSNorm(2, eps=0.0)
    norm.weight.data = torch.tensor([1.0, 10.0])
    # The root of the mean of 9 and 16 is 3.5355.
    assert norm(torch.tensor([3.0, 4.0])).tolist() == pytest.approx([0.84853, 11.3137], rel=1e-4)
    assert not torch.allclose(norm(torch.tensor([3.0, 4.0]) + 1), norm(torch.tensor([3.0, 4.0])))
    x = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    plain = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    assert distance(RMSNorm(7, 1e-6).double()(x), plain) < 1e-14
    torch.autograd.gradcheck(RMSNorm(7, 1e-6).double(), x.requires_grad_())
    short = torch.full((1, 4_096), 300.0, dtype=torch.bfloat16)
    assert RMSNorm(4_096, 1e-6).bfloat16()(short).float().sub(1).abs().max() < 1e-2


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_shared_heads_are_all_heads_with_the_same_keys(groups: int):
    shared: Any = eurobert("210m", **SMALL, num_key_value_heads=groups).double()
    drawn_weights(shared, 0.3)
    every: Any = eurobert("210m", **SMALL).double()
    state = dict(shared.state_dict())
    for name in [n for n in state if ".key." in n or ".value." in n]:
        heads = state[name].unflatten(0, (groups, 4))  # (G, D, H)
        state[name] = heads.repeat_interleave(6 // groups, dim=0).flatten(0, 1)
    every.load_state_dict(state)
    batch = batch_of((30, 17))
    kept = [m(**batch, output_attentions=True) for m in (shared, every)]
    assert distance(kept[0].last_hidden_state, kept[1].last_hidden_state) < 1e-12
    assert kept[0].attentions[0].shape == (2, 6, 30, 30)
    listed = shared(**batch, remove_padding=True).last_hidden_state
    real = batch["attention_mask"].bool()
    assert distance(listed[real], kept[0].last_hidden_state[real]) < 1e-12


def test_what_sharing_saves():
    """Two projections; the products of attention cost what they cost before."""
    H, L, G, T = 24, 4, 2, 100
    build = partial(eurobert, "210m", **SMALL)
    saved = count_parameters(build()) - count_parameters(build(num_key_value_heads=G))
    assert saved == L * 2 * H * (H - G * 4)
    flops = forward_flops(build, T) - forward_flops(partial(build, num_key_value_heads=G), T)
    assert flops == 2 * T * saved


def test_the_last_layer_of_three_is_global_and_the_window_a_radius():
    stack: Any = ultrabert(**{**SMALL, "num_layers": 6}).stack
    assert [b.attention.window for b in stack.blocks] == [256, 256, None] * 2
    assert [b.attention.base for b in stack.blocks] == [10_000.0, 10_000.0, 2_560_000.0] * 2
    ours = drawn_weights(ultrabert(**{**SMALL, "num_layers": 1}, window=10), 0.3).double().eval()
    ids = batch_of((40,))["input_ids"]
    changed = ids.clone()
    changed[0, 20] = 1 + ids[0, 20] % 59
    with torch.no_grad():
        moved = (ours(ids).last_hidden_state - ours(changed).last_hidden_state).abs().amax(-1)[0]
    assert torch.equal(moved > 1e-9, (torch.arange(40) - 20).abs() <= 5)


# ---------------------------------------------------------------- beside transformers, longer


@both_precisions
@pytest.mark.parametrize("way", ["eager", "sdpa"])
@pytest.mark.parametrize("lengths", [(300, 211, 40), (277,)], ids=str)
@pytest.mark.parametrize("unpadded", [False, True], ids=["padded", "unpadded"])
@pytest.mark.parametrize("kind", ["eurobert", "ultrabert"])
def test_long_texts(
    kind: str, unpadded: bool, lengths: tuple[int, ...], way: str, dtype: torch.dtype
):
    """Radius 21, so that blocks along the diagonal are used; heads of keys: two of six."""
    needs(kind)
    settings = {**SMALL, "num_key_value_heads": 2}
    if kind == "eurobert":
        ours: Any = EuroBertForMaskedLM(eurobert("210m", **settings))
    else:
        ours = UltraBertForMaskedLM(ultrabert(**settings, window=42))
    drawn_weights(ours, 0.15).to(dtype).eval()
    theirs = to_transformers(ours, attention=way)
    batch = batch_of(lengths)
    with in_float64(theirs):
        reference = theirs(**batch).logits
    real = batch["attention_mask"].bool()
    found = ours(**batch, remove_padding=unpadded).logits
    assert distance(found[real], reference[real]) <= TOLERANCE[dtype]
    for logits in (found, reference):
        logits[real].square().mean().backward()
    assert gradient_distance(ours, theirs) <= TOLERANCE[dtype]


def test_bfloat16_and_back_changes_no_angle():
    """transformers' own `.bfloat16().float()` rounds the angles for good."""
    needs("ultrabert")
    ours: Any = drawn_weights(ultrabert(**SMALL, window=42), 0.3).eval()
    batch = batch_of((300,))
    rounded = ours.bfloat16().float()
    theirs = to_transformers(rounded)
    with torch.no_grad():
        expected = theirs(**batch).last_hidden_state
        assert distance(rounded(**batch).last_hidden_state, expected) <= 1e-5
        worse = theirs.bfloat16().float()(**batch).last_hidden_state
    assert distance(worse, expected) > 1e-3


@pytest.mark.parametrize("kind", ["eurobert", "ultrabert"])
def test_a_folder_of_ours_is_read_by_both(tmp_path: Path, kind: str):
    """The decoder is its own in the file, too, and stays apart from the table."""
    needs(kind)
    build = {"eurobert": lambda: EuroBertForMaskedLM(eurobert("210m", **SMALL)),
             "ultrabert": lambda: ultrabert_for_masked_lm(**SMALL)}[kind]  # fmt: skip
    ours: Any = drawn_weights(build(), 0.2).eval()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(55))]
    save_folder(ours, tmp_path / "f", WordPiece(words))
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "f").eval()
    found = load_pretrained(tmp_path / "f")
    assert type(found.model) is type(ours) and found.model.config == ours.config
    batch = batch_of((12,))
    logits = [model(**batch).logits for model in (ours, theirs, found.model)]
    assert distance(logits[0], logits[1]) <= 1e-5 and torch.equal(logits[0], logits[2])
    ours.encoder.embeddings.token.weight.data.mul_(2.0)
    assert not torch.equal(ours.mlm.decoder.weight, ours.encoder.embeddings.token.weight)


# ---------------------------------------------------------------- poolings and configurations


@pytest.mark.parametrize("pooling", ["cls", "mean", "late"])
def test_padding_means_nothing_to_a_pooling(pooling: str):
    config = EuroBertConfig(**SMALL, classifier_pooling=pooling)
    ours = BertForClassification(eurobert_encoder(config, pooler=True), 3)
    drawn_weights(ours, 0.2).double().eval()
    batch = batch_of((12, 9))
    alone = ours(batch["input_ids"][1:, :9]).logits
    assert distance(ours(**batch).logits[1:], alone) < 1e-12


def test_late_is_the_mean_of_what_the_pooler_makes():
    encoder = eurobert_encoder(EuroBertConfig(**SMALL), pooler=True).double()
    x = torch.randn(2, 5, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    dense: Any = encoder.pooler.dense  # type: ignore[union-attr]
    every = torch.nn.functional.gelu(dense(x))
    expected = torch.stack([every[0].mean(0), every[1, :2].mean(0)])
    assert distance(encoder.pool(x, mask), expected) < 1e-12
    assert type(pooler_for(encoder.config)) is type(encoder.pooler)


RELEASED = {  # EuroBERT-2.1B's, in its own words
    "model_type": "eurobert", "attention_bias": False, "attention_dropout": 0.0,
    "hidden_act": "silu", "hidden_dropout": 0.0, "hidden_size": 2_304, "initializer_range": 0.02,
    "intermediate_size": 6_144, "max_position_embeddings": 8_192, "num_attention_heads": 18,
    "num_hidden_layers": 32, "num_key_value_heads": 6, "rms_norm_eps": 1e-05,
    "pad_token_id": 128_001, "rope_scaling": None, "rope_theta": 250_000,
    "tie_word_embeddings": False, "vocab_size": 128_256,
}  # fmt: skip
A_LAYER = {  # an UltraBERT as its first files say it: windows and bases a layer
    "model_type": "ultrabert", "vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 6,
    "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 31, "pad_token_id": 0,
    "attention_windows": [128, 128, 0] * 2, "rope_theta": [10_000, 10_000, 2_560_000] * 2,
}  # fmt: skip


def test_released_configurations():
    found = our_config(RELEASED, FAMILIES["eurobert"], "config.json")
    assert found == published("eurobert", "2.1b", EuroBertConfig)
    found = our_config(A_LAYER, FAMILIES["ultrabert"], "config.json")
    sizes = {**SMALL, "num_layers": 6, "num_key_value_heads": 2, "max_positions": 32_768}
    assert found == UltraBertConfig(**sizes)
    scaling = {"rope_parameters": {"rope_type": "default", "rope_theta": 9.0}, "rope_scaling": {}}
    assert our_config({**RELEASED, **scaling}, FAMILIES["eurobert"], "here").global_base == 9.0
    scaling["rope_scaling"] = {"rope_type": "linear", "factor": 2.0}  # which wins
    with pytest.raises(CheckpointError, match="rope_type='linear' was given; expected 'default'"):
        our_config({**RELEASED, **scaling}, FAMILIES["eurobert"], "here")
    needs("ultrabert")
    theirs = transformers.UltrabertConfig(**{k: v for k, v in A_LAYER.items() if k != "model_type"})
    assert our_config(theirs.to_dict(), FAMILIES["ultrabert"], "here") == found


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"attention_windows": [128, 64, 0] * 2}, r"attention_windows of \[128, 64.* each type"),
        (
            {"rope_theta": [1.0, 2.0, 3.0] * 2},
            r"rope_theta of \[1\.0, 2\.0.* expected one for each",
        ),
        (
            {"rope_theta": 10_000.0},
            "rope_theta=10000.0 was given; expected a list, a base for each layer",
        ),
        ({"attention_windows": [0, 8, 8] * 2}, "expected the last of every n to be global"),
        ({"attention_windows": [8, 0]}, "2 layers were given; expected num_hidden_layers, 6"),
        ({"head_dim": 5}, "head_dim=5 was given for 6 heads; expected their sizes to add up to"),
        ({"rope_scaling": {"type": "yarn"}}, "rope_type='yarn' was given; expected 'default'"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings=True; only False means the same"),
        ({"mlp_bias": True}, "mlp_bias=True; only False means the same"),
        ({"num_key_value_heads": 4}, "num_key_value_heads=4 was given for 6 heads; expected a num"),
        ({"classifier_pooling": "max"}, "classifier_pooling='max' was given; expected one of cls"),
    ],
)
def test_what_ours_has_not_is_refused(changes: dict[str, Any], says: str):
    with pytest.raises(CheckpointError, match=says):
        our_config({**A_LAYER, **changes}, FAMILIES["ultrabert"], "config.json")


def test_settings_that_do_not_fit():
    with pytest.raises(ValueError, match=r"window=7 was given; expected an even number"):
        ultrabert(**SMALL, window=7)
    with pytest.raises(
        ValueError, match=r"num_key_value_heads=4 was given for 6 heads; expected a"
    ):
        eurobert("210m", **SMALL, num_key_value_heads=4)
    with pytest.raises(CheckpointError, match=r"has norm=layer_norm|norm='layer_norm'"):
        to_transformers(eurobert("210m", **SMALL, norm="layer_norm"))
    with pytest.raises(TypeError):
        eurobert("210m", **SMALL)(torch.ones(1, 3, dtype=torch.long), labels=None)


# ---------------------------------------------------------------- a trap that is not ours


@torch.no_grad()
def test_long_padding_in_float64_leaves_no_hole_in_ours():
    """transformers' ModernBERT, eager, in float64, gives NaN where padding is longer than half of
    the window: its softmax is float32's, where float64's smallest number is minus infinity."""
    ours: Any = drawn_weights(modernbert_encoder(ModernBertConfig(**SMALL, window=8)), 0.3)
    ours.double().eval()
    batch = batch_of((60, 12))
    real = batch["attention_mask"].bool()
    found = ours(**batch).last_hidden_state
    assert found.isfinite().all()
    alone = ours(batch["input_ids"][1:, :12]).last_hidden_state
    assert distance(found[1:, :12], alone) < 1e-12
    sdpa = to_transformers(ours)(**batch).last_hidden_state
    assert distance(found[real], sdpa[real]) < 1e-5
    eager = to_transformers(ours, attention="eager")(**batch).last_hidden_state
    if eager.isfinite().all():
        pytest.skip(
            f"transformers {transformers.__version__} has mended it: the page says less now"
        )
    assert isinstance(ours, Encoder) and not eager[real].isfinite().all()
