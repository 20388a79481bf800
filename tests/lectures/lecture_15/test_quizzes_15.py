"""The numbers in the quiz and the questions for review of lecture 15, computed again."""

from __future__ import annotations

import math

import pytest
import torch
from quiz_parts import Quiz

from course_lib.config import BertConfig, published
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.family.vit import (
    AUTHORS,
    VitConfig,
    project_by_convolution,
    vit,
    vit_encoder,
    vit_for_classification,
)
from course_lib.images import cut_patches, join_patches
from course_lib.lectures.lecture_15.exercises.count import sizes
from course_lib.objectives.classification import classification_loss

QUIZ = Quiz("15")
item, answer = QUIZ.item, QUIZ.answer


def base(**changes: int) -> VitConfig:
    return published("vit", "B/16", VitConfig, **changes)


def fraction_of_attention(config: VitConfig) -> float:
    """Of all FLOPs, those of products of tokens with tokens."""
    T = config.max_positions
    return config.num_layers * 4 * T * T * config.hidden_size / sizes(config)[1]


def a_model(**changes):
    torch.manual_seed(0)
    shape = {"hidden_size": 24, "num_layers": 2, "num_heads": 3, "intermediate_size": 40,
             "image_size": 12, "patch_size": 4, "initializer_range": 0.3}  # fmt: skip
    return vit_encoder(VitConfig(**{**shape, **changes})).double().eval()


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()
    assert len(QUIZ.items) == 15


def test_blocks_have_the_shapes_of_berts():
    with torch.device("meta"):
        blocks = {count_parameters(model.stack) for model in (bert("base"), vit("B/16"))}
    assert len(blocks) == 1
    said = f"{blocks.pop():,} parameters in either"
    assert said in item("domain-agnostic")[0].choices[1].why
    assert said in answer("BERT-base and ViT-B/16")
    text, pictures = published("bert", "base", BertConfig), base()
    for name in ("num_layers", "hidden_size", "num_heads", "intermediate_size"):
        assert getattr(text, name) == getattr(pictures, name)


def test_the_projection_as_convolution_and_as_matrix():
    config = base()
    numbers = config.num_channels * config.patch_size**2
    right = item("kernel_size=16, stride=16")[1]
    assert f"{numbers * config.hidden_size + config.hidden_size:,} parameters" in right.why
    assert numbers == config.hidden_size == 768
    assert "16 · 16 · 3 = 768 numbers" in item("ResNets of its size")[0].choices[0].why
    pictures, weight = torch.rand(1, 3, 8, 8), torch.rand(5, 3, 4, 4)
    found = project_by_convolution(pictures, weight, torch.zeros(5))
    assert found.shape == (1, 4, 5)


def test_larger_pictures():
    small, large = base(), base(image_size=384)
    found, right = item("fine-tuned at 384")
    times = sizes(large)[1] / sizes(small)[1]
    squared = (large.max_positions / small.max_positions) ** 2
    assert right.text == f"{large.max_positions} tokens, {times:.1f} times the FLOPs"
    assert f"{sizes(small)[1] / 1e9:.1f} GFLOPs become {sizes(large)[1] / 1e9:.1f}" in right.why
    assert f"{squared:.1f} times the FLOPs" in found.choices[2].text
    percent = [f"{100 * fraction_of_attention(c):.0f}%" for c in (small, large)]
    assert "they are {} of all FLOPs, at 577 tokens {}".format(*percent) in found.choices[2].why
    assert f"{round(197 * 384 / 224)} tokens" in found.choices[0].text
    assert f"{large.max_positions} tokens instead of {small.max_positions}, and {times:.1f} times" \
        in answer("larger pictures")  # fmt: skip


def test_two_ways_to_count_a_multiply_add():
    flops = sizes(base())[1] / 1e9
    found, right = item("torchvision")
    assert f"{flops:.1f} GFLOPs" in found.question and "17.56" in found.question
    assert flops / 2 == pytest.approx(17.56, abs=0.005) and "17.56 · 2 = 35.12" in right.why
    projected = 2 * 196 * 768 * 768 / 1e9
    assert f"Counted once it is {projected:.2f} GFLOPs" in found.choices[0].why


def test_larger_patches():
    right, fine, coarse = item("patches of 32 × 32")[1], base(), base(patch_size=32)
    weights = [c.num_channels * c.patch_size**2 * c.hidden_size / 1e6 for c in (coarse, fine)]
    assert "{:.2f} million weights instead of {:.2f}".format(*weights) in right.why
    millions = [sizes(c)[0] / 1e6 for c in (coarse, fine)]
    assert "{:.1f} against {:.1f} million".format(*millions) in right.why
    saved = (fine.max_positions - coarse.max_positions) * fine.hidden_size / 1e6
    assert f"Positions save {saved:.2f}" in right.why
    assert sizes(coarse)[1] / sizes(fine)[1] == pytest.approx(0.25, abs=0.005)


@torch.no_grad()
@pytest.mark.parametrize(("positions", "same"), [("none", True), ("1d", False)])
def test_shuffled_patches(positions, same):
    model = a_model(positions=positions)
    picture = torch.rand(1, 3, 12, 12, dtype=torch.float64)
    shuffled = join_patches(cut_patches(picture, 4)[:, torch.randperm(9)], 4, 3)
    assert not torch.equal(picture, shuffled)
    first, second = (model(x).last_hidden_state[:, 0] for x in (picture, shuffled))
    assert torch.allclose(first, second) is same
    assert item("patches shuffled")[1].text == "The same"


def test_a_hidden_patch_of_two_colours():
    values = torch.tensor([0.0, 1.0])
    errors = [(values - said).square().mean().item() for said in (0.5, 0.0, 1.0)]
    drawn = (values[:, None] - values).square().mean().item()
    found, right = item("black or white, equally often")
    assert f"here {errors[0]:.2f}" in right.why and errors[1] == errors[2] == drawn == 0.5
    assert "mean squared error of 0.5" in found.choices[0].why
    assert "0.5 in the mean. 0.25 is possible" in found.choices[1].why


def test_a_classifier_that_begins_at_zero():
    torch.manual_seed(0)
    shape = {"hidden_size": 24, "num_layers": 1, "num_heads": 3, "intermediate_size": 40,
             "image_size": 8, "patch_size": 4, **AUTHORS}  # fmt: skip
    model = vit_for_classification("B/16", 1_000, **shape)
    labels = {"classes": torch.tensor([3, 999])}
    loss = classification_loss(model(torch.rand(2, 3, 8, 8)), labels)["total"]
    loss.backward()
    assert item("begin at zero")[1].text == f"ln 1000 = {loss.item():.2f}, as for a guess"
    assert loss.item() == pytest.approx(math.log(1_000), abs=1e-5)
    grads = {name: bool(x.grad.any()) for name, x in model.named_parameters() if x.grad is not None}
    moving = {name for name, moves in grads.items() if moves}
    assert moving == {"classifier.weight", "classifier.bias"}  # nothing further down at first
    assert "encoder.norm.weight" in grads


def test_parameters_are_counted_part_by_part():
    said, config = answer("Count ViT-B/16"), base()
    H = config.hidden_size
    with torch.device("meta"):
        plain, pooled, headed = vit(pooler=False), vit(), vit_for_classification()
    block = count_parameters(plain.stack) // config.num_layers
    project = sum(
        w.numel() for name, w in plain.named_parameters() if name.startswith("embeddings.project")
    )
    assert f"Projection {project:,}, class token {H}" in said
    assert f"positions 197 · 768 = {config.max_positions * H:,}" in said
    assert f"twelve blocks of {block:,}, the last LayerNorm {2 * H:,}" in said
    assert f": {count_parameters(plain):,}." in said
    assert f"does not read, {count_parameters(pooled):,}." in said
    assert f"no pooler, {count_parameters(headed):,}." in said


def test_three_sizes_of_patches():
    said, all = answer("Patches of 8, 16 or 32"), [base(patch_size=n) for n in (8, 16, 32)]
    assert "{}, {} or {} at 224".format(*(c.max_positions for c in all)) in said
    assert "{:.0f}, {:.1f} or {:.1f} GFLOPs".format(*(sizes(c)[1] / 1e9 for c in all)) in said
    assert "{:.1f}, {:.1f} and {:.1f} million".format(*(sizes(c)[0] / 1e6 for c in all)) in said
    percent = [round(100 * fraction_of_attention(c)) for c in all]
    assert percent[0] == 15 and "are 15% of the FLOPs" in said
    assert percent[2] == 1 and "with 32 one percent" in said


def test_what_the_authors_program_has():
    said, ours = answer("authors' program, and not"), VitConfig()
    assert (AUTHORS["layer_norm_eps"], ours.layer_norm_eps) == (1e-6, 1e-12)
    assert "is 1e-6; transformers has erf and 1e-12" in said
    assert (AUTHORS["resize"], ours.resize) == ("bilinear", "bicubic") and AUTHORS["zero_start"]
