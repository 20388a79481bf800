"""What the families of lectures 06 and 07 do beside being equal to the reference.

How a student begins and which layer it learns from; how ELECTRA's generator is shaped, which tables
it shares, what it puts into the text, and that it learns nothing from the discriminator. Shapes of
the models are compared with transformers' in test_parity_*.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Embeddings, Encoder, count_parameters
from course_lib.family.albert import FactorisedEmbeddings
from course_lib.family.distilbert import (
    RELEASED_LAYERS,
    DistilBertConfig,
    distilbert,
    distilbert_encoder,
    every_other_layer,
    initialise_from,
    spread_layers,
)
from course_lib.family.electra import (
    GENERATOR_SIZE,
    TIED,
    Electra,
    ElectraConfig,
    electra,
    electra_discriminator,
    electra_encoder,
    electra_from,
    fill_in,
    generator_config,
)
from course_lib.family.tinybert import MAPPINGS, fit_matrix, layer_mapping, tinybert
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.replaced_tokens import replaced_token_loss

SIZES: dict[str, Any] = {
    "vocab_size": 40, "hidden_size": 12, "num_heads": 3, "intermediate_size": 20,
    "max_positions": 10, "initializer_range": 0.3,
}  # fmt: skip
IDS = torch.tensor([[2, 9, 8, 7, 3, 11], [2, 5, 6, 3, 0, 0]])
MASK = (IDS != 0).long()


def teacher(layers: int = 4, **changes: Any) -> BertForMaskedLM:
    torch.manual_seed(1)
    config = BertConfig(**{**SIZES, "num_layers": layers, **changes})
    model = BertForMaskedLM(Encoder(config)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms, too, are not as they began
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def student(layers: int = 2, **changes: Any) -> BertForMaskedLM:
    torch.manual_seed(2)
    config = DistilBertConfig(**{**SIZES, "num_layers": layers, **changes})
    return BertForMaskedLM(distilbert_encoder(config)).double().eval()


@torch.no_grad()
def words(model: nn.Module) -> Tensor:
    return model(IDS, MASK).logits[MASK.bool()]


# ---------------------------------------------------------------- DistilBERT: how it begins


def test_the_released_layers_are_the_spread_ones():
    assert spread_layers(12, 6) == RELEASED_LAYERS
    assert every_other_layer(12, 6) == (0, 2, 4, 6, 8, 10)


@pytest.mark.parametrize(
    ("full", "kept", "spread", "step"),
    [
        (4, 2, (0, 3), (0, 2)),
        (6, 3, (0, 2, 5), (0, 2, 4)),
        (12, 4, (0, 4, 7, 11), (0, 3, 6, 9)),
        (24, 6, (0, 5, 9, 14, 18, 23), (0, 4, 8, 12, 16, 20)),
        (12, 5, (0, 3, 6, 8, 11), (0, 2, 4, 6, 8)),
        (5, 3, (0, 2, 4), (0, 1, 2)),
        (4, 4, (0, 1, 2, 3), (0, 1, 2, 3)),
        (7, 1, (6,), (0,)),
    ],
)
def test_layers_on_paper(full: int, kept: int, spread: Sequence[int], step: Sequence[int]):
    assert spread_layers(full, kept) == spread
    assert every_other_layer(full, kept) == step


def test_the_spread_rises_from_first_to_last():
    for full in range(2, 25):
        for kept in range(2, full + 1):
            layers = spread_layers(full, kept)
            assert (layers[0], layers[-1]) == (0, full - 1)
            steps = [b - a for a, b in pairwise(layers)]
            assert min(steps) >= 1 and max(steps) - min(steps) <= 1


@pytest.mark.parametrize("choose", [spread_layers, every_other_layer])
@pytest.mark.parametrize("kept", [0, 5, -1])
def test_depths_that_do_not_fit(choose: Any, kept: int):
    with pytest.raises(ValueError, match=rf"student_layers={kept} .* of 4; expected 1 to 4"):
        choose(4, kept)


def test_as_many_layers_as_the_teacher_gives_the_teachers_own_answers():
    """Segments folded into the positions: the same sum in another order, so all but the last
    bits."""
    whole, copy = teacher(4), student(4)
    assert (words(whole) - words(copy)).abs().max() > 0.1
    assert initialise_from(copy, whole) is copy
    assert (words(whole) - words(copy)).abs().max() <= 1e-12
    with torch.no_grad():
        first, second = (m.encoder(IDS, MASK, output_hidden_states=True) for m in (whole, copy))
    real = MASK.bool()
    for a, b in zip(first.hidden_states, second.hidden_states, strict=True):
        assert (a[real] - b[real]).abs().max() <= 1e-12


def test_a_student_with_segments_is_initialised_from_the_teacher():
    whole, copy = teacher(4), student(4, type_vocab_size=2)
    initialise_from(copy, whole)
    types = (torch.arange(6) > 2).long().expand_as(IDS)
    weights = whole.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in copy.state_dict().items())
    with torch.no_grad():
        first, second = (model(IDS, MASK, types).logits for model in (whole, copy))
    assert (first - second).abs().max() <= 1e-12


def test_a_teacher_without_segments():
    whole, copy = student(4), student(4)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter += 1
    assert (words(initialise_from(copy, whole)) - words(whole)).abs().max() <= 1e-12


def test_which_layers_are_copied():
    whole, short = teacher(4), student(2)
    positions = whole.encoder.embeddings.position.weight.detach().clone()
    for layers, chosen in ((None, (0, 3)), ([2, 1], (2, 1)), (every_other_layer(4, 2), (0, 2))):
        initialise_from(short, whole, layers)
        for block, layer in zip(short.encoder.stack.blocks, chosen, strict=True):
            source = whole.encoder.stack.blocks[layer].state_dict()
            assert all(torch.equal(v, source[n]) for n, v in block.state_dict().items())
    head = whole.mlm.state_dict()
    assert all(torch.equal(v, head[n]) for n, v in short.mlm.state_dict().items())
    assert torch.equal(whole.encoder.embeddings.position.weight, positions)  # the teacher's, as was
    summed = positions + whole.encoder.embeddings.segment.weight[0]
    assert torch.equal(short.encoder.embeddings.position.weight, summed)


def test_the_student_shares_nothing_with_its_teacher():
    whole, copy = teacher(2), student(2)
    before = words(initialise_from(copy, whole)).clone()
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter.add_(1)
    assert torch.equal(words(copy), before)
    copy(IDS, MASK).logits.square().mean().backward()
    assert all(p.grad is not None for p in copy.parameters())
    assert all(p.grad is None for p in whole.parameters())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hidden_size": 15}, r"hidden_size=15 and a teacher with 12 .*copied whole"),
        ({"vocab_size": 41}, r"vocab_size=41 and a teacher with 40 were given; expected the same"),
        ({"num_heads": 4}, r"num_heads=4 and a teacher with 3"),
        ({"intermediate_size": 24}, r"intermediate_size=24 and a teacher with 20"),
        ({"max_positions": 9}, r"max_positions=9 and a teacher with 10"),
    ],
)
def test_a_student_of_another_shape(changes: dict[str, int], says: str):
    with pytest.raises(ValueError, match=says):
        initialise_from(student(2, **changes), teacher(4))


@pytest.mark.parametrize("layers", [[0], [0, 1, 2], [0, 4], [-1, 2], []])
def test_layers_that_the_teacher_does_not_have(layers: list[int]):
    with pytest.raises(ValueError, match=r"layers=\[.*\] .* expected 2 numbers from 0 to 3"):
        initialise_from(student(2), teacher(4), layers)


def test_a_student_deeper_than_its_teacher():
    with pytest.raises(ValueError, match="student_layers=5 was given for a teacher of 4"):
        initialise_from(student(5), teacher(4))


def test_count_of_a_student_with_memory():
    """The same rule as on meta, on one small enough to add up by hand."""
    V, P, H, F = 40, 10, 12, 20
    block = 4 * (H * H + H) + (H * F + F) + (F * H + H) + 4 * H
    model = distilbert("base", **SIZES, num_layers=2)
    assert count_parameters(model) == V * H + P * H + 2 * H + 2 * block
    assert model.pooler is None and model.embeddings.segment is None


# ---------------------------------------------------------------- TinyBERT: which layer from which


@pytest.mark.parametrize(
    ("kind", "small", "large", "mapping"),
    [
        ("uniform", 4, 12, (3, 6, 9, 12)),  # g(m) = 3m, section 4.2
        ("uniform", 6, 12, (2, 4, 6, 8, 10, 12)),
        ("uniform", 1, 5, (5,)),
        ("uniform", 3, 3, (1, 2, 3)),
        ("top", 4, 12, (9, 10, 11, 12)),
        ("top", 2, 5, (4, 5)),
        ("bottom", 4, 12, (1, 2, 3, 4)),
        ("bottom", 5, 5, (1, 2, 3, 4, 5)),
    ],
)
def test_mappings_on_paper(kind: str, small: int, large: int, mapping: tuple[int, ...]):
    assert layer_mapping(small, large, kind) == mapping
    if kind == "uniform":
        assert layer_mapping(small, large) == mapping


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((4, 12, "middle"), r"kind='middle' was given; expected one of uniform, top, bottom"),
        ((5, 12, "uniform"), r"student of 5 layers and a teacher of 12 .* a divisor of it"),
        ((0, 12, "uniform"), r"student of 0 layers .* expected a student of 1 to 12 layers"),
        ((13, 12, "top"), r"student of 13 layers .* for the top mapping"),
        ((0, 12, "bottom"), r"student of 0 layers .* expected a student of 1 to 12 layers\."),
    ],
)
def test_mappings_that_do_not_come_out(given: tuple[int, int, str], says: str):
    with pytest.raises(ValueError, match=says):
        layer_mapping(*given)


def test_every_mapping_is_tried():
    assert set(MAPPINGS) == {"uniform", "top", "bottom"}


def test_the_matrix_leads_from_width_to_width():
    small, large = tinybert("4", **{**SIZES, "num_layers": 1}).config, published("bert", "tiny")
    matrix = fit_matrix(small, large)
    states = torch.randn(2, 5, 12)
    assert matrix(states).shape == (2, 5, 128)
    assert matrix.weight.std() > 0.1 and not matrix.bias.any()  # the student's own spread, 0.3


# ---------------------------------------------------------------- ELECTRA: the generator's shape


@pytest.mark.parametrize(
    ("size", "expected"),
    [("small", (64, 1, 256, 128)), ("base", (256, 4, 1024, 768)), ("large", (256, 4, 1024, 1024))],
)
def test_generators_of_the_published_sizes(size: str, expected: tuple[int, ...]):
    """Clark et al. 2020, Table 6: 1/4, 1/3 and 1/4 of the discriminator's width, all its layers."""
    config = published("electra", size, ElectraConfig)
    made = generator_config(config, GENERATOR_SIZE[size])
    found = (made.hidden_size, made.num_heads, made.intermediate_size, made.embedding_size)
    assert found == expected
    same = ("num_layers", "vocab_size", "max_positions", "type_vocab_size", "pad_token_id")
    assert all(getattr(made, name) == getattr(config, name) for name in same)


def test_a_generator_of_the_same_size_and_of_the_smallest():
    config = ElectraConfig(hidden_size=12, num_heads=3, intermediate_size=24, embedding_size=8)
    assert generator_config(config, 1.0) == config
    least = generator_config(config, 1 / 12)
    assert (least.hidden_size, least.num_heads, least.intermediate_size) == (1, 1, 2)


@pytest.mark.parametrize("size", [0, -0.5, 0.01])
def test_generators_of_no_width(size: float):
    config = ElectraConfig(hidden_size=12, num_heads=3, intermediate_size=24)
    with pytest.raises(ValueError, match=rf"size={size} was given; expected a share of the disc"):
        generator_config(config, size)


def test_a_generator_whose_heads_do_not_come_out():
    config = ElectraConfig(hidden_size=64, num_heads=4)
    with pytest.raises(ValueError, match="hidden_size=45 cannot be shared out to num_heads=2"):
        generator_config(config, 0.7)


def test_settings_that_do_not_fit():
    for size in (0, 12.5, None):
        with pytest.raises(ValueError, match=r"embedding_size=.* was given; expected a whole"):
            ElectraConfig(embedding_size=size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected settings of ElectraConfig"):
        electra("small", sharing="all")
    with pytest.raises(ValueError, match="expected one of small, base, large"):
        electra_discriminator("tiny")


def test_the_projection_is_there_where_widths_differ():
    narrow = electra_encoder(ElectraConfig(**SIZES, num_layers=1, embedding_size=5))
    plain = electra_encoder(ElectraConfig(**SIZES, num_layers=1, embedding_size=12))
    assert isinstance(narrow.embeddings, FactorisedEmbeddings)
    assert isinstance(plain.embeddings, Embeddings)
    assert narrow.pooler is None and plain.pooler is None
    assert electra_encoder(plain.config, pooler=True).pooler is not None


# ---------------------------------------------------------------- ELECTRA: shared tables

CONFIG = ElectraConfig(**{**SIZES, "hidden_dropout": 0.0}, num_layers=2, embedding_size=8)
V, P, E, H = 40, 10, 8, 12
SHARED = {  # what the discriminator's tables hold that the generator reads, too
    "all": V * E + P * E + 2 * E + 2 * E,
    "tokens": V * E,
    "none": 0,
}
AT = torch.tensor([1, 3, 7, 8])
MASKED = IDS.clone()
MASKED.view(-1)[AT] = 4


def tables(network: Any) -> Embeddings:
    return network.encoder.embeddings.tables


@pytest.mark.parametrize("tied", TIED)
def test_which_tables_are_shared(tied: str):
    model = electra_from(CONFIG, 1 / 2, tied)
    ours, theirs = tables(model.generator), tables(model.discriminator)
    shared = {part for part in ("token", "position", "segment", "norm")
              if getattr(ours, part) is getattr(theirs, part)}  # fmt: skip
    everything = {"token", "position", "segment", "norm"}
    assert shared == {"all": everything, "tokens": {"token"}, "none": set()}[tied]
    assert model.generator.mlm._tied[0] is ours.token  # and the head writes through it
    projections = [m.encoder.embeddings.project for m in (model.generator, model.discriminator)]
    assert projections[0] is not projections[1]


@pytest.mark.parametrize("tied", TIED)
def test_counts_of_the_ways_to_tie(tied: str):
    model = electra_from(CONFIG, 1 / 2, tied)
    apart = count_parameters(model.generator) + count_parameters(model.discriminator)
    assert count_parameters(model) == apart - SHARED[tied]


def test_every_way_to_tie_is_tried():
    assert set(SHARED) == set(TIED)


@pytest.mark.parametrize("which", ["generator", "discriminator"])
@pytest.mark.parametrize("tied", TIED)
def test_which_network_moves_the_discriminators_tables(tied: str, which: str):
    """The discriminator always; the generator where they are shared, and only there."""
    model = electra_from(CONFIG, 1 / 2, tied).eval()
    network = getattr(model, which)
    network(IDS, MASK, torch.zeros_like(IDS)).logits.square().mean().backward()
    for part, table in tables(model.discriminator).named_parameters():
        shared = tied == "all" or (tied == "tokens" and part.startswith("token"))
        moved = table.grad is not None and bool(table.grad.any())
        assert moved == (which == "discriminator" or shared), part


def test_unknown_ways_to_tie():
    for tied in ("some", "", None):
        with pytest.raises(ValueError, match=rf"tied={tied!r} was given; expected one of all, tok"):
            electra_from(CONFIG, 1 / 2, tied)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tied='position' was given"):
        electra("small", tied="position", **SIZES, num_layers=1, embedding_size=8)


def test_tables_of_unequal_width_cannot_be_tied():
    wider = ElectraConfig(**{**vars(CONFIG), "embedding_size": 9})
    generator = BertForMaskedLM(electra_encoder(wider))
    discriminator = BertForReplacedTokens(electra_encoder(CONFIG))
    for tied in ("all", "tokens"):
        with pytest.raises(ValueError, match=r"\(40, 9\) .* and \(40, 8\) .*, or tie less"):
            Electra(generator, discriminator, tied)
    model = Electra(generator, discriminator, "none")
    assert model(MASKED, MASK, predict_at=AT).logits.shape == IDS.shape


def test_plain_and_projected_tables_are_tied():
    """ELECTRA-base: the discriminator has no projection, its narrower generator has one."""
    config = ElectraConfig(**{**vars(CONFIG), "embedding_size": H})
    model = electra_from(config, 1 / 3)
    assert isinstance(model.discriminator.encoder.embeddings, Embeddings)
    assert tables(model.generator).token is model.discriminator.encoder.embeddings.token
    assert model(MASKED, MASK, predict_at=AT).prediction_logits.shape == (4, V)


# ---------------------------------------------------------------- ELECTRA: what is filled in


def test_words_are_drawn_at_the_selected_positions_only():
    before = MASKED.clone()
    logits = torch.full((4, V), -100.0)
    wanted = torch.tensor([20, 21, 22, 23])
    logits[torch.arange(4), wanted] = 100.0
    filled = fill_in(MASKED, AT, logits, torch.rand(4))
    assert filled.shape == IDS.shape and torch.equal(MASKED, before)
    assert torch.equal(filled.flatten()[AT], wanted)
    elsewhere = torch.ones(IDS.numel(), dtype=torch.bool)
    elsewhere[AT] = False
    assert torch.equal(filled.flatten()[elsewhere], MASKED.flatten()[elsewhere])


def test_a_uniform_points_at_a_word():
    """Probabilities 1/2, 1/4, 1/4 stand side by side on a line from 0 to 1."""
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log().expand(5, 3)
    uniforms = torch.tensor([0.0, 0.49, 0.51, 0.74, 0.99])
    filled = fill_in(torch.full((1, 6), 9), torch.arange(5), logits, uniforms)
    assert filled.tolist() == [[0, 0, 1, 1, 2, 9]]


def test_draws_follow_the_generators_distribution():
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log().expand(4_000, 3)
    torch.manual_seed(3)
    ids = torch.full((4_000, 1), 9)
    counts = torch.bincount(fill_in(ids, torch.arange(4_000), logits).flatten(), minlength=3)
    assert (counts / 4_000 - torch.tensor([0.5, 0.25, 0.25])).abs().max() < 0.03
    again = fill_in(ids, torch.arange(4_000), logits)
    assert not torch.equal(again, fill_in(ids, torch.arange(4_000), logits))  # drawn anew


def test_what_both_networks_say():
    model = electra_from(CONFIG, 1 / 2).eval()
    out = model(MASKED, MASK, predict_at=AT)
    assert out.prediction_logits.shape == (4, V) and out.logits.shape == IDS.shape
    assert torch.equal(out.attention_mask, MASK) and torch.equal(out.predict_at, AT)
    kept = torch.ones(IDS.numel(), dtype=torch.bool)
    kept[AT] = False
    assert torch.equal(out.corrupted_ids.flatten()[kept], MASKED.flatten()[kept])
    with torch.no_grad():
        again = model.discriminator(out.corrupted_ids, MASK).logits
        words = model.generator(MASKED, MASK).logits.flatten(0, 1)[AT]
    assert torch.equal(again, out.logits) and torch.allclose(
        words, out.prediction_logits, atol=1e-5
    )
    assert torch.equal(model(MASKED, predict_at=AT).attention_mask, torch.ones_like(IDS))


# ---------------------------------------------------------------- ELECTRA: nothing flows back


def own(network: nn.Module, other: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of a network that the other one does not share."""
    theirs = {id(p) for p in other.parameters()}
    return {n: p for n, p in network.named_parameters() if id(p) not in theirs}


@pytest.mark.parametrize("tied", TIED)
def test_the_generator_learns_nothing_from_the_discriminator(tied: str):
    model = electra_from(CONFIG, 1 / 2, tied).eval()
    outputs, targets = model(MASKED, MASK, predict_at=AT), {"labels": IDS.flatten()[AT]}
    assert outputs.prediction_logits.requires_grad and not outputs.corrupted_ids.is_floating_point()
    replaced_token_loss(outputs, targets)["rtd"].backward(retain_graph=True)
    generators = own(model.generator, model.discriminator)
    assert len(generators) > 30
    assert [n for n, p in generators.items() if p.grad is not None] == []
    discriminators = own(model.discriminator, model.generator)
    before = {n: p.grad.clone() for n, p in discriminators.items() if p.grad is not None}
    assert before.keys() == discriminators.keys()
    masked_lm_loss(outputs, targets)["mlm"].backward()
    assert [n for n, p in generators.items() if p.grad is None] == []
    assert all(torch.equal(discriminators[n].grad, grad) for n, grad in before.items())


def test_tables_of_other_shapes_are_not_tied():
    whole = ElectraConfig(**SIZES, num_layers=1, embedding_size=6)
    short = replace(whole, max_positions=5)
    generator = BertForMaskedLM(electra_encoder(generator_config(short, 1 / 3)))
    discriminator = BertForReplacedTokens(electra_encoder(whole))
    with pytest.raises(ValueError, match="position tables of shapes"):
        Electra(generator, discriminator)
    Electra(generator, discriminator, "tokens")  # the token tables do fit


def test_a_student_with_other_segments_cannot_be_initialised_from_its_teacher():
    models = [teacher(2, type_vocab_size=kinds) for kinds in (2, 3, 0)]
    for other in models[1:]:
        with pytest.raises(ValueError, match="type_vocab_size=2"):
            initialise_from(models[0], other)
