"""ViT is equal to transformers' in outputs and gradients, under both sets of names that its weights
have had; and what is ViT's own, by hand: patches, positions of other sizes, hidden patches,
pictures. What "equal" means, and how models are drawn, is said in parity.py."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from members import VIT
from parity import (
    TOLERANCE,
    Case,
    all_distances,
    answer,
    assert_loaded,
    assert_saved_and_loaded,
    assert_there_and_back,
    both_backward,
    both_precisions,
    distance,
    drawn_weights,
    gradient_distance,
    largest,
    on_meta,
    output_distances,
    pair_of_models,
    run,
    same,
)
from torch import Tensor

from course_lib.checkpoints import (
    FAMILIES,
    CheckpointError,
    from_transformers,
    load_pretrained,
    their_name,
    to_transformers,
)
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Stack
from course_lib.family.gpt import PreNormBlock
from course_lib.family.vit import (
    AUTHORS,
    MaskedPatchOutput,
    VitConfig,
    VitEncoder,
    VitForClassification,
    VitForMaskedPatches,
    project_by_convolution,
    project_by_product,
    resize_positions,
    resized,
    vit,
    vit_encoder,
    vit_for_classification,
    vit_for_masked_patches,
)
from course_lib.images import cut_patches, join_patches
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.masked_patches import (
    hide_patches,
    masked_patch_batch,
    masked_patch_batches,
    masked_patch_loss,
)
from course_lib.objectives.pretraining import split_batch
from course_lib.teaching.compare import compare
from course_lib.train.loop import fit

transformers = pytest.importorskip("transformers")

every_kind = pytest.mark.parametrize("kind", VIT.kinds)
every_seed = pytest.mark.parametrize("seed", VIT.seeds)
FORMATS = (torch.float32, torch.float64, torch.bfloat16)
SMALL: dict[str, Any] = {
    "hidden_size": 24, "num_layers": 2, "num_heads": 3, "intermediate_size": 40,
    "image_size": 12, "patch_size": 4, "num_channels": 3,
}  # fmt: skip


def drawn(kind: str = "encoder", seed: int = 2) -> Any:
    case = VIT.case(seed)
    return drawn_weights(VIT.make(kind, case.config), case.sd)


def small(**settings: Any) -> Any:
    """A small encoder, every weight drawn, in float64."""
    config = VitConfig(**{**SMALL, **settings})
    return drawn_weights(vit_encoder(config), 0.2).double().eval()


def pictures(*size: int, seed: int = 0) -> Tensor:
    return torch.rand(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- equal to transformers


def test_the_drawn_cases_hold_every_kind():
    cases = [VIT.case(seed) for seed in VIT.seeds]
    for what, (value, expected) in VIT.varied.items():
        assert {value(case) for case in cases} == expected, what


@both_precisions
@every_seed
@pytest.mark.parametrize("kind", ["classes", "encoder"])
def test_equal_to_the_reference(kind: str, seed: int, dtype: torch.dtype):
    case = VIT.case(seed, dtype)
    ours, theirs = pair_of_models(partial(VIT.make, kind), case, dtype)
    assert type(theirs).__name__ == VIT.kinds[kind].theirs
    found = all_distances(ours, theirs, case)
    found["gradients"] = both_backward(ours, theirs, case, VIT.kinds[kind].loss)
    assert largest(found) <= TOLERANCE[dtype]


@torch.no_grad()
def test_a_difference_is_seen():
    cases = (VIT.case(seed, torch.float64) for seed in VIT.seeds)
    case = next(c for c in cases if c.config.patches_across > 1)
    ours, theirs = pair_of_models(partial(VIT.make, "classes"), case, torch.float64)
    VIT.spoil(ours, case)
    found = output_distances(run(ours, case), run(theirs, case), case)
    assert largest(found) > TOLERANCE[torch.float32]


@pytest.mark.parametrize("began", VIT.began)
@every_kind
@torch.no_grad()
def test_a_model_that_began_in_transformers(kind: str, began: Any):
    written, meant = began
    made = getattr(transformers, VIT.kinds[kind].theirs)
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    config = made.config_class(**sizes, intermediate_size=50, **written)
    theirs = drawn_weights(made(config), 0.2).eval()
    ours: Any = from_transformers(theirs)
    assert {setting: getattr(ours.config, setting) for setting in meant} == meant
    c = ours.config
    inputs = {"pixel_values": pictures(3, c.num_channels, c.image_size, c.image_size).float()}
    name = "logits" if kind == "classes" else "last_hidden_state"
    expected = getattr(theirs(**inputs), name)
    for model in (ours, to_transformers(ours)):
        assert distance(getattr(model(**inputs), name), expected) <= 1e-5


@pytest.mark.parametrize("size", VIT.counts)
def test_parameter_counts(size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    for kind, printed in zip(VIT.kinds.values(), VIT.counts[size], strict=True):
        assert kind.by_name is not None
        assert on_meta(partial(kind.by_name, size)) == printed
        assert on_meta(lambda kind=kind: to_transformers(kind.by_name(size))) == printed


def test_where_the_parameters_are():
    H, P, N, L = 768, 16, 14 * 14, 12
    embeddings = 3 * P * P * H + H + H + (N + 1) * H
    assert embeddings + L * 7_087_872 + 2 * H == VIT.counts["B/16"][2]  # BERT-base's blocks


# ---------------------------------------------------------------- names and weights


@every_kind
def test_weights_there_and_back_are_bit_identical(kind: str):
    for seed in VIT.seeds:
        ours = drawn(kind, seed).to(FORMATS[seed % 3]).train(seed % 2 == 0)
        back = assert_there_and_back(ours)
        assert back.config == ours.config and getattr(back, "names", 0) == getattr(ours, "names", 0)


OTHER_NAMES = (  # of transformers 5.0 and of released files, and of 5.15
    ("encoder.layer.", "layers."),
    ("attention.attention.query", "attention.q_proj"),
    ("attention.attention.key", "attention.k_proj"),
    ("attention.attention.value", "attention.v_proj"),
    ("attention.output.dense", "attention.o_proj"),
    ("intermediate.dense", "mlp.fc1"),
    ("output.dense", "mlp.fc2"),
)


def other_name(name: str) -> str:
    """The name of a weight in the other set of names than transformers has here."""
    to = 1 if "encoder.layer." in name else 0
    for pair in OTHER_NAMES:
        if pair[1 - to] in name:
            name = name.replace(pair[1 - to], pair[to])
    return name


def with_other_names(kind: str) -> type:
    """transformers' class, as a version with the other names has it."""
    installed = getattr(transformers, kind)

    def state_dict(self: Any, *args: Any, **more: Any) -> dict[str, Tensor]:
        found = installed.state_dict(self, *args, **more)
        return {other_name(name): value for name, value in found.items()}

    def load_state_dict(self: Any, state: dict[str, Tensor], **more: Any) -> Any:
        given = {other_name(name): value for name, value in state.items()}
        return installed.load_state_dict(self, given, **more)

    return type(kind, (installed,), {"state_dict": state_dict, "load_state_dict": load_state_dict})


@every_kind
def test_the_other_names(kind: str, monkeypatch: pytest.MonkeyPatch):
    """There and back by the names of the versions that are not installed here."""
    ours, name = drawn(kind).eval(), VIT.kinds[kind].theirs
    plain = to_transformers(ours).state_dict()
    monkeypatch.setattr(sys.modules["transformers"], name, with_other_names(name))
    theirs = to_transformers(ours)
    state = theirs.state_dict()
    blocks = [n for n in plain if "layers." in n or "encoder.layer." in n]
    assert blocks and not set(blocks) & set(state)
    assert all(torch.equal(state[other_name(n)], value) for n, value in plain.items())
    assert same(ours, from_transformers(theirs))


@every_kind
def test_files_under_both_sets_of_names(kind: str, tmp_path: Path):
    import safetensors.torch

    ours = drawn(kind).eval()
    theirs = to_transformers(ours)
    theirs.save_pretrained(tmp_path)
    state = theirs.state_dict()
    for names in (str, other_name):
        renamed = {names(name): value.contiguous() for name, value in state.items()}
        safetensors.torch.save_file(renamed, tmp_path / "model.safetensors")
        assert_loaded(load_pretrained(tmp_path), ours)


def test_names_on_paper():
    new = their_name("encoder.stack.blocks.11.feed_forward.contract.weight", FAMILIES["vit"])
    assert new == "layers.11.mlp.fc2.weight"
    assert other_name(new) == "encoder.layer.11.output.dense.weight"
    assert (
        other_name(other_name("layers.3.attention.o_proj.bias")) == "layers.3.attention.o_proj.bias"
    )


@every_kind
def test_saved_and_loaded(kind: str, tmp_path: Path):
    for i, seed in enumerate((2, 5, 7)):
        case, ours = VIT.case(seed), drawn(kind, seed).to(FORMATS[i])
        inputs = {"pixel_values": case.inputs["pixel_values"].to(FORMATS[i])}
        assert_saved_and_loaded(ours, tmp_path / "m.safetensors", inputs)
        to_transformers(ours).save_pretrained(tmp_path / "f")
        half = FORMATS[i] == torch.bfloat16
        assert_loaded(load_pretrained(tmp_path / "f"), ours.float() if half else ours)
        shutil.rmtree(tmp_path / "f")


def test_a_token_of_hidden_patches_is_left_aside():
    config = transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=3, image_size=8, patch_size=4
    )
    theirs = transformers.ViTModel(config, use_mask_token=True)
    assert "embeddings.mask_token" in theirs.state_dict()
    ours: Any = from_transformers(theirs)
    assert ours.config.image_size == 8


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"positions": "none"}, "has positions='none'; only '1d' means the same here"),
        ({"positions": "2d"}, "has positions='2d'; only '1d'"),
        ({"resize": "bilinear"}, "has resize='bilinear'; only 'bicubic' means the same here"),
    ],
)
def test_what_transformers_does_not_have(settings: dict[str, Any], says: str):
    with pytest.raises(CheckpointError, match=says):
        to_transformers(vit_encoder(VitConfig(**{**SMALL, **settings})))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"image_size": [8, 12]}, r"image_size=\[8, 12\] was given; expected a square: one number"),
        ({"qkv_bias": False}, "has qkv_bias=False; only True means the same here"),
        ({"pooler_act": "relu"}, "has pooler_act='relu'; only 'tanh'"),
        ({"pooler_output_size": 5}, "pooler_output_size=5 was given; expected hidden_size, 24"),
    ],
)
def test_what_ours_does_not_have(settings: dict[str, Any], says: str):
    sizes = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3, "patch_size": 4}
    config = transformers.ViTConfig(**{**sizes, "image_size": 8, **settings})
    with pytest.raises(CheckpointError, match=says):
        from_transformers(transformers.ViTModel(config))


@every_kind
def test_compare_finds_it_equal(kind: str):
    ours = drawn(kind, 3)
    found = compare(ours)
    size, channels = ours.config.image_size, ours.config.num_channels
    assert found.equal and found.batch == (
        f"4 pictures of {size}×{size} pixels in {channels} channels"
    )
    exact = compare(ours.double())
    assert exact.equal and exact.tolerance == 1e-10
    theirs = to_transformers(ours)
    with torch.no_grad():  # one number alone: no LayerNorm sees what is added to all
        theirs.get_parameter(f"{'vit.' * (kind == 'classes')}embeddings.cls_token")[0, 0, 0] += 0.1
    assert not compare(ours, theirs).equal


# ---------------------------------------------------------------- patches


def test_patches_by_hand():
    """A picture of 4×4 in two channels, its patches in reading order, channel by channel."""
    picture = torch.arange(32.0).view(1, 2, 4, 4)
    patches = cut_patches(picture, 2)
    assert patches.shape == (1, 4, 8)
    assert patches[0, 1].tolist() == [2, 3, 6, 7, 18, 19, 22, 23]
    assert patches[0, 2].tolist() == [8, 9, 12, 13, 24, 25, 28, 29]
    assert torch.equal(join_patches(patches, 2, rows=2), picture)


@pytest.mark.parametrize("size", [(2, 1, 8, 8, 2), (3, 3, 12, 20, 4), (1, 4, 5, 5, 5)])
def test_a_convolution_is_a_product(size: tuple[int, ...]):
    """Outputs and gradients, of pictures that are not square, too."""
    *shape, patch = size
    images = pictures(*shape)
    assert torch.equal(join_patches(cut_patches(images, patch), patch, shape[2] // patch), images)
    weight = pictures(7, shape[1], patch, patch, seed=1).requires_grad_()
    bias = pictures(7, seed=2).requires_grad_()
    found = []
    for project in (project_by_convolution, project_by_product):
        out = project(images, weight, bias)
        assert out.shape == (shape[0], shape[2] * shape[3] // patch**2, 7)
        out.square().mean().backward()
        found.append((out.detach(), weight.grad, bias.grad))
        weight.grad = bias.grad = None
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_without_positions_patches_are_a_bag():
    """In another order the class token says the same, and each patch what it said; with positions
    it does not."""
    images = pictures(2, 3, 12, 12)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    mixed = join_patches(cut_patches(images, 4)[:, order], 4, rows=3)
    apart = {}
    for positions in ("none", "1d", "2d"):
        model = small(positions=positions)
        one, other = model(images).last_hidden_state, model(mixed).last_hidden_state
        apart[positions] = (one[:, 0] - other[:, 0]).abs().max().item()
        if positions == "none":
            assert (one[:, 1:][:, order] - other[:, 1:]).abs().max() < 1e-12
    assert apart["none"] < 1e-12 < 1e-3 < min(apart["1d"], apart["2d"])


def test_two_dimensional_positions():
    """Half of a position is its row's, half its column's; the class token has none."""
    part = small(positions="2d").embeddings
    table = part.position_table()
    assert table.shape == (10, 24) and not table[0].any()
    patches = table[1:].view(3, 3, 24)
    for row in range(3):
        for column in range(3):
            expected = torch.cat([part.row[row], part.column[column]])
            assert torch.equal(patches[row, column], expected)


# ---------------------------------------------------------------- other sizes


@both_precisions
@pytest.mark.parametrize("size", [(12, 12), (20, 20), (8, 8), (8, 16), (4, 36)])
def test_positions_interpolated_as_in_transformers(size: tuple[int, int], dtype: torch.dtype):
    """States, pooler and gradients for pictures of other sizes."""
    ours = small().to(dtype)
    theirs = to_transformers(ours, attention="sdpa")
    inputs = {"pixel_values": pictures(2, 3, *size).to(dtype), "interpolate_pos_encoding": True}
    case = Case(ours.config, 0.2, inputs, torch.zeros(2, 1), torch.zeros(2))
    mine, reference = answer(ours, case), answer(theirs, case)
    tokens = 1 + size[0] * size[1] // 16
    assert mine.last_hidden_state.shape == (2, tokens, 24)
    for name in ("last_hidden_state", "pooler_output"):
        assert distance(getattr(mine, name), getattr(reference, name)) <= TOLERANCE[dtype]
    for out in (mine, reference):
        (out.last_hidden_state.square().mean() + out.pooler_output.square().mean()).backward()
    assert gradient_distance(ours, theirs) <= TOLERANCE[dtype]


@pytest.mark.parametrize("side", [2, 3, 5, 8])
def test_the_authors_resize_as_scipys_zoom(side: int):
    """Of order 1, corners kept: what their checkpoint.py calls."""
    zoom = pytest.importorskip("scipy.ndimage").zoom
    table = pictures(1 + 16, 6)
    found = resize_positions(table, (side, side), "bilinear")
    assert torch.equal(found[0], table[0])
    expected = zoom(table[1:].view(4, 4, 6).numpy(), (side / 4, side / 4, 1), order=1)
    assert np.abs(found[1:].view(side, side, 6).numpy() - expected).max() < 1e-12


@pytest.mark.parametrize("positions", ["1d", "2d", "none"])
@pytest.mark.parametrize("resize", ["bicubic", "bilinear"])
def test_resized_for_good(positions: str, resize: str):
    """The same as interpolating at every call; and back at the old size, where sizes are the
    same."""
    model = small(positions=positions, resize=resize)
    larger = resized(model, 20)
    assert larger.config == replace(model.config, image_size=20) and not larger.training
    assert larger.config.max_positions == 26
    images = pictures(2, 3, 20, 20)
    with torch.no_grad():
        once = larger(images).last_hidden_state
        again = model(images, interpolate_pos_encoding=True).last_hidden_state
    assert (once - again).abs().max() < 1e-12
    assert same(resized(model, 12), model)
    assert all(p.requires_grad for p in larger.parameters())


# ---------------------------------------------------------------- the authors' settings


def test_the_authors_settings():
    model: Any = vit_for_classification("B/16", 5, **{**SMALL, **AUTHORS}).eval()
    assert model.config.gelu_form == "tanh" and model.encoder.norm.eps == 1e-6
    assert model.encoder.stack.blocks[0].attention_norm.eps == 1e-6
    assert not model.classifier.weight.any() and not model.encoder.embeddings.cls.any()
    logits = model(pictures(2, 3, 12, 12).float()).logits
    assert logits.shape == (2, 5) and not logits.any()  # all classes alike: chance loss at first
    usual: Any = vit_for_classification("B/16", 5, **SMALL)
    assert usual.classifier.weight.any() and usual.encoder.embeddings.cls.any()


def test_initialisation():
    """Normal with the configuration's standard deviation, cut at two of them; biases zero."""
    torch.manual_seed(0)
    model = vit(num_layers=1, image_size=64, initializer_range=0.05)
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            assert weight.abs().max() <= 0.1, name
            if weight.numel() > 10_000:
                assert weight.std().item() == pytest.approx(0.05 * 0.88, rel=0.05), name
        elif name.endswith("bias"):
            assert not weight.any(), name


# ---------------------------------------------------------------- one stack, two kinds of input


def test_the_stack_does_not_know_what_it_reads():
    """One Stack under words and under patches: both losses fall, and both move its weights."""
    torch.manual_seed(0)
    text_config = BertConfig(
        vocab_size=12, hidden_size=24, num_layers=2, num_heads=3, intermediate_size=40,
        max_positions=8, hidden_dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    picture_config = VitConfig(**SMALL)
    for block in (None, PreNormBlock):
        stack = Stack(text_config, block=block) if block else Stack(text_config)
        text = Encoder(text_config, stack=stack)
        eyes = VitForClassification(VitEncoder(picture_config, stack=stack), 3)
        assert text.stack is eyes.encoder.stack
        ids, images = torch.randint(12, (6, 8)), pictures(6, 3, 12, 12).float()
        target, labels = torch.randn(6, 8, 24), torch.arange(6) % 3
        each = {*text.parameters(), *eyes.parameters()}
        optimizer, found = torch.optim.Adam(each, 3e-3), []
        for _ in range(20):
            losses = (
                (text(ids).last_hidden_state - target).square().mean(),
                classification_loss(eyes(images), {"classes": labels})["total"],
            )
            found.append([loss.item() for loss in losses])
            weight: Any = stack.blocks[0].attention.query.weight  # type: ignore[union-attr]
            grads = [torch.autograd.grad(x, weight, retain_graph=True)[0] for x in losses]
            assert all(grad.abs().max() > 0 for grad in grads)
            optimizer.zero_grad()
            sum(losses).backward()  # type: ignore[union-attr]
            optimizer.step()
        assert all(last < 0.9 * first for first, last in zip(found[0], found[-1], strict=True))


# ---------------------------------------------------------------- hidden patches


def test_which_patches_are_hidden():
    hidden = hide_patches(16, torch.arange(400), rate=0.5)
    assert hidden.shape == (400, 16) and (hidden.sum(1) == 8).all()
    assert (hidden.float().mean(0) - 0.5).abs().max() < 0.1
    assert torch.equal(hidden[7:9], hide_patches(16, torch.tensor([7, 8])))  # of its example alone
    for other in ({"epoch": 1}, {"seed": 1}):
        assert not torch.equal(hidden, hide_patches(16, torch.arange(400), **other))
    assert (hide_patches(16, torch.arange(3), rate=0.01).sum(1) == 1).all()
    assert not hide_patches(16, torch.arange(3), rate=0.0).any()
    with pytest.raises(ValueError, match=r"rate=1\.5 was given; expected a fraction"):
        hide_patches(16, torch.arange(3), rate=1.5)


@both_precisions
def test_hidden_patches_as_in_transformers(dtype: torch.dtype):
    """Its ViTForMaskedImageModeling with our weights: picture, and gradients of our loss."""
    torch.manual_seed(0)
    ours = drawn_weights(vit_for_masked_patches(**SMALL), 0.2).to(dtype).eval()
    inside = to_transformers(ours.encoder)
    theirs = transformers.ViTForMaskedImageModeling(inside.config).to(dtype).eval()
    state = {f"vit.{name}": value for name, value in inside.state_dict().items()}
    state["vit.embeddings.mask_token"] = ours.mask_token
    state["decoder.0.weight"] = ours.head.weight[:, :, None, None]
    state["decoder.0.bias"] = ours.head.bias
    theirs.load_state_dict(state)
    hidden = hide_patches(9, torch.arange(3))
    batch = masked_patch_batch(pictures(3, 3, 12, 12).to(dtype), 4, hidden)
    outputs = [model(**batch.inputs) for model in (ours, theirs)]
    apart = distance(outputs[0].reconstruction, outputs[1].reconstruction)
    assert apart <= TOLERANCE[dtype]
    for out in outputs:
        masked_patch_loss(out, batch.targets)["total"].backward()
    mine = dict(ours.named_parameters())
    other = dict(theirs.named_parameters())
    most = max(p.grad.abs().max() for p in mine.values())
    pairs = {
        "mask_token": "vit.embeddings.mask_token",
        "head.weight": "decoder.0.weight",
        "encoder.embeddings.position": "vit.embeddings.position_embeddings",
        "encoder.norm.weight": "vit.layernorm.weight",
    }
    for name, there in pairs.items():
        gap = (mine[name].grad - other[there].grad.view_as(mine[name])).abs().max()
        assert gap <= TOLERANCE[dtype] * most, name


def test_the_loss_by_hand():
    """The mean over pixels of hidden patches alone, however they lie."""
    images, hidden = pictures(2, 1, 4, 4), torch.tensor([[1, 0, 0, 1], [0, 0, 1, 0]]).bool()
    batch = masked_patch_batch(images, 2, hidden)
    said = MaskedPatchOutput(pictures(2, 1, 4, 4, seed=5))
    apart = cut_patches(said.reconstruction - images, 2).square().mean(-1)  # (2, 4)
    expected = (apart[0, 0] + apart[0, 3] + apart[1, 2]) / 3
    losses = masked_patch_loss(said, batch.targets)
    assert losses["total"].item() == pytest.approx(expected.item(), rel=1e-12)
    with pytest.raises(ValueError, match=r"pictures that hold -100 were given; .* 'not hidden'"):
        masked_patch_batch(torch.full((1, 1, 4, 4), -100.0), 2, hidden[:1])


def test_what_is_hidden_is_not_seen():
    """Other pixels under the mask change nothing; the mask in another place does."""
    model = VitForMaskedPatches(small()).double().eval()
    images, hidden = pictures(1, 3, 12, 12), torch.arange(9)[None] == 4
    pixels = join_patches(hidden[..., None].expand(-1, -1, 48), 4, rows=3)
    other = torch.where(pixels, pictures(1, 3, 12, 12, seed=8), images)
    with torch.no_grad():
        one, two = (model(x, hidden).reconstruction for x in (images, other))
        bare, moved = model(images).reconstruction, model(images, hidden.roll(1, 1)).reconstruction
    assert torch.equal(one, two)
    assert min((one - x).abs().max() for x in (bare, moved)) > 1e-6


def test_parts_of_a_batch_add_up():
    model = VitForMaskedPatches(small()).double().eval()
    hidden = torch.rand(5, 9, generator=torch.Generator().manual_seed(3)) < 0.4  # unequal counts
    batch = masked_patch_batch(pictures(5, 3, 12, 12), 4, hidden)
    whole = masked_patch_loss(model(**batch.inputs), batch.targets)["total"]
    parts = split_batch(batch, 3)
    assert [len(part.inputs["pixel_values"]) for part in parts] == [1, 2, 2]
    losses = [masked_patch_loss(model(**part.inputs), part.targets)["total"] for part in parts]
    assert sum(losses).item() == pytest.approx(whole.item(), rel=1e-12)  # type: ignore[union-attr]


def test_hidden_patches_are_learnt():
    """Of pictures that are grey all over, each in its own way, the others tell a hidden patch."""
    bright = torch.rand(64, 1, 1, 1, generator=torch.Generator().manual_seed(0))
    images = bright.expand(64, 1, 8, 8).contiguous()
    torch.manual_seed(0)
    changes = {**SMALL, "image_size": 8, "patch_size": 2, "num_channels": 1}
    model = vit_for_masked_patches(**changes)
    batches = masked_patch_batches(images, 2, batch_size=16)
    again = masked_patch_batches(images, 2, batch_size=16)
    for step in (0, 3, 9):
        assert torch.equal(
            batches(step).inputs["bool_masked_pos"], again(step).inputs["bool_masked_pos"]
        )
    first, later = (batches(step).inputs["bool_masked_pos"] for step in (0, 4))
    assert not torch.equal(first, later)  # another epoch hides others
    history = fit(model, masked_patch_loss, batches, steps=150, learning_rate=3e-3)
    known = images.var().item()  # what the mean grey of all pictures would reach
    assert sum(history.losses["patches"][-10:]) / 10 < 0.35 * known
    assert history.tokens == 150 * 16


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (torch.zeros(2, 3, 12, 13), r"12×13 pixels were given; expected multiples of the patch, 4"),
        (torch.zeros(2, 1, 12, 12), r"1 channels were given; this model reads 3\. Repeat a grey"),
        (torch.zeros(2, 3, 16, 16), r"16×16 pixels were given; this model has positions for 12×12"),
        (torch.zeros(3, 12, 12), r"shape \(3, 12, 12\) .* expected \(batch, channels, height"),
        (torch.zeros(0, 3, 12, 12), r"shape \(0, 3, 12, 12\) .* at least one of each"),
        (torch.zeros(2, 3, 12, 12).to(torch.uint8), r"torch\.uint8 were given; .* divide whole"),
    ],
)
def test_pictures_that_cannot_be_read(images: Tensor, says: str):
    with pytest.raises(ValueError, match=says):
        vit_encoder(VitConfig(**SMALL))(images)


def test_pictures_of_any_size_must_be_asked_for():
    model = small()
    assert (
        model(pictures(1, 3, 16, 8), interpolate_pos_encoding=True).last_hidden_state.shape[1] == 9
    )
    with pytest.raises(ValueError, match=r"16×9 pixels were given; .* pad them to 16×12"):
        model(pictures(1, 3, 16, 9), interpolate_pos_encoding=True)


@pytest.mark.parametrize(
    ("hidden", "token"),
    [
        (torch.zeros(2, 9).bool(), None),
        (torch.zeros(2, 9), torch.zeros(1, 1, 24)),
        (torch.zeros(2, 10).bool(), torch.zeros(1, 1, 24)),
    ],
)
def test_masks_that_do_not_fit(hidden: Tensor, token: Tensor | None):
    says = r"bool_masked_pos of shape .* was given .*; expected with one, and bool .* \(2, 9\)"
    with pytest.raises(ValueError, match=says):
        vit_encoder(VitConfig(**SMALL))(torch.zeros(2, 3, 12, 12), hidden, token)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"image_size": 14}, "image_size=14 and patch_size=4 were given; expected the picture to"),
        ({"patch_size": 0}, "patch_size=0 was given; expected a whole number of at least 1"),
        ({"num_channels": 0}, "num_channels=0 was given"),
        ({"image_size": 12.0}, r"image_size=12\.0 was given"),
        ({"positions": "3d"}, "positions='3d' was given; expected one of 1d, 2d, none"),
        ({"resize": "nearest"}, "resize='nearest' .* one of bicubic, bilinear"),
        ({"hidden_size": 21, "positions": "2d"}, "hidden_size=21 .* expected an even number"),
        ({"hidden_size": 25}, "hidden_size=25 cannot be shared out to num_heads=3"),
        ({"hidden_act": "relu"}, "'relu' .* 'gelu' or 'gelu_new'"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        VitConfig(**{**SMALL, **settings})


def test_names_that_do_not_exist():
    with pytest.raises(ValueError, match=r"size 'B/12' was given for vit; expected one of B/16, L"):
        vit("B/12")
    with pytest.raises(ValueError, match=r"expected settings of VitConfig: .*patch_size"):
        vit("B/16", patches=3)
