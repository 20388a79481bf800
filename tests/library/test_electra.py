"""What ELECTRA does beside being equal to the reference: how the generator is shaped, which tables
it shares, what it puts into the text, that it learns nothing from the discriminator; and that the
joint loss of both gives the gradients of two reference networks."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from members import ELECTRA
from parity import (
    TOLERANCE,
    assert_there_and_back,
    both_precisions,
    distance,
    drawn_weights,
    gradients_apart,
    on_meta,
    pair_of_models,
    replaced_in,
    replaced_loss,
    same,
)
from torch import Tensor, nn

from course_lib.checkpoints import (
    FAMILIES,
    CheckpointError,
    load,
    save,
    their_name,
    to_transformers,
)
from course_lib.config import published
from course_lib.encoder import Embeddings, count_parameters
from course_lib.family.albert import FactorisedEmbeddings
from course_lib.family.electra import (
    DISENTANGLED,
    GENERATOR_SIZE,
    TIED,
    DisentangledEmbedding,
    Electra,
    ElectraConfig,
    electra,
    electra_encoder,
    electra_from,
    fill_in,
    generator_config,
    merged,
)
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.replaced_tokens import electra_loss, replaced_token_loss

V, P, E, H = 50, 16, 20, 48
CONFIG = ElectraConfig(
    vocab_size=V, hidden_size=H, num_layers=2, num_heads=4, intermediate_size=80,
    max_positions=P, embedding_size=E, hidden_dropout=0.0, attention_dropout=0.0,
)  # fmt: skip
SAME_WIDTH = replace(CONFIG, embedding_size=H)
ways_to_tie = pytest.mark.parametrize("tied", TIED)


def joint(config: ElectraConfig, tied: str = "all", dtype: torch.dtype = torch.float32) -> Electra:
    return drawn_weights(electra_from(config, 1 / 4, tied), 0.15).to(dtype).eval()


def a_batch() -> dict[str, Tensor]:
    """Texts with [MASK] (id 4) at the positions to predict, the true words, and one short row."""
    make = torch.Generator().manual_seed(5)
    ids = torch.randint(5, V, (3, 12), generator=make)
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    at = torch.tensor([2, 5, 9, 14, 19, 25, 30, 31])
    original_ids = ids.flatten()[at]
    ids = torch.where(mask.bool(), ids, 0)
    ids.view(-1)[at] = 4
    types = (torch.arange(12) > 6).long() * mask
    return {"ids": ids, "mask": mask, "types": types, "at": at, "original_ids": original_ids}


BATCH = a_batch()
MASKED, MASK, AT = BATCH["ids"], BATCH["mask"], BATCH["at"]
ELSEWHERE = torch.ones(MASKED.numel(), dtype=torch.bool)
ELSEWHERE[AT] = False


def asked(model: Electra) -> Any:
    return model(MASKED, MASK, BATCH["types"], predict_at=AT)


# ---------------------------------------------------------------- the generator's shape


@pytest.mark.parametrize(
    ("size", "expected"),
    [("small", (64, 1, 256, 128)), ("base", (256, 4, 1024, 768)), ("large", (256, 4, 1024, 1024))],
)
def test_generators_of_the_published_sizes(size: str, expected: tuple[int, ...]):
    """Clark et al. 2020, Table 6: 1/4, 1/3 and 1/4 of the discriminator's width, all its layers."""
    config = published("electra", size, ElectraConfig)
    made = generator_config(config, GENERATOR_SIZE[size])
    assert len(GENERATOR_SIZE) == 3
    shape = ("hidden_size", "num_heads", "intermediate_size", "embedding_size")
    assert tuple(getattr(made, name) for name in shape) == expected
    assert replace(made, **{name: getattr(config, name) for name in shape}) == config


# What the generator has beyond the tables it shares, its head left out.
@pytest.mark.parametrize(("size", "millions"), [("base", 9.67), ("large", 19.2)])
def test_what_the_generator_adds(size: str, millions: float):
    c = published("electra", size, ElectraConfig)
    small = generator_config(c, GENERATOR_SIZE[size])
    tables = on_meta(lambda: electra(size).discriminator.encoder.embeddings)
    added = on_meta(lambda: electra_encoder(small)) - tables
    assert round(added / 1e6, 2 if millions < 10 else 1) == millions
    head = small.hidden_size * c.embedding_size + 3 * c.embedding_size + c.vocab_size
    assert on_meta(lambda: electra(size)) == ELECTRA.counts[size][0] + added + head


def test_a_generator_of_the_same_size_and_of_the_smallest():
    config = ElectraConfig(hidden_size=12, num_heads=3, intermediate_size=24, embedding_size=8)
    assert generator_config(config, 1.0) == config
    least = generator_config(config, 1 / 12)
    assert (least.hidden_size, least.num_heads, least.intermediate_size) == (1, 1, 2)


@pytest.mark.parametrize(
    ("size", "says"),
    [
        *(
            (size, rf"size={size} was given; expected a fraction of the disc")
            for size in (0, -0.5, 0.01)
        ),
        (0.77, "hidden_size=37 cannot be shared out to num_heads=3"),
    ],
)
def test_generators_that_cannot_be(size: float, says: str):
    with pytest.raises(ValueError, match=says):
        generator_config(CONFIG, size)


def test_the_projection_is_there_where_widths_differ():
    narrow, plain = electra_encoder(CONFIG), electra_encoder(SAME_WIDTH)
    assert isinstance(narrow.embeddings, FactorisedEmbeddings)
    assert isinstance(plain.embeddings, Embeddings)
    assert narrow.pooler is None and plain.pooler is None
    assert electra_encoder(CONFIG, pooler=True).pooler is not None


# ---------------------------------------------------------------- shared tables

# What the discriminator's tables hold that the generator reads, too.
SHARED = {"all": V * E + P * E + 2 * E + 2 * E, "tokens": V * E, DISENTANGLED: 0, "none": 0}
PARTS = {
    "all": {"token", "position", "segment", "norm"}, "tokens": {"token"},
    DISENTANGLED: set(), "none": set(),
}  # fmt: skip


def tables(network: Any) -> Embeddings:
    return network.encoder.embeddings.tables


@ways_to_tie
def test_which_tables_are_shared(tied: str):
    assert set(SHARED) == set(TIED)
    model = joint(CONFIG, tied)
    ours, theirs = tables(model.generator), tables(model.discriminator)
    assert {part for part in PARTS["all"] if getattr(ours, part) is getattr(theirs, part)} == PARTS[
        tied
    ]
    assert model.generator.mlm._tied[0] is ours.token  # and the head writes through it
    projections = [m.encoder.embeddings.project for m in (model.generator, model.discriminator)]
    assert projections[0] is not projections[1]
    apart = count_parameters(model.generator) + count_parameters(model.discriminator)
    assert count_parameters(model) == apart - SHARED[tied]


@pytest.mark.parametrize("which", ["generator", "discriminator"])
@ways_to_tie
def test_which_network_moves_the_discriminators_tables(tied: str, which: str):
    """The discriminator always; the generator where they are shared, and only there."""
    model = joint(CONFIG, tied)
    getattr(model, which)(MASKED, MASK, BATCH["types"]).logits.square().mean().backward()
    for name, table in tables(model.discriminator).named_parameters():
        moved = table.grad is not None and bool(table.grad.any())
        assert moved == (which == "discriminator" or name.split(".")[0] in PARTS[tied]), name


def test_unknown_ways_to_tie():
    for tied in ("some", "", None):
        with pytest.raises(ValueError, match=rf"tied={tied!r} was given; expected one of all, tok"):
            electra_from(CONFIG, 1 / 2, tied)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tied='position' was given"):
        electra("small", tied="position", num_layers=1)


@pytest.mark.parametrize(
    ("changes", "refused", "says"),
    [
        ({"embedding_size": 9}, ("all", "tokens"), r"\(50, 9\) .* and \(50, 20\) .*, or tie less"),
        ({"max_positions": 5}, ("all",), "position tables of shapes"),
    ],
)
def test_tables_of_other_shapes_cannot_be_tied(
    changes: dict[str, int], refused: tuple[str, ...], says: str
):
    other = BertForMaskedLM(electra_encoder(generator_config(replace(CONFIG, **changes), 1 / 4)))
    for tied in refused:
        with pytest.raises(ValueError, match=says):
            Electra(other, BertForReplacedTokens(electra_encoder(CONFIG)), tied)
    fits = next(tied for tied in ("tokens", "none") if tied not in refused)
    model = Electra(other, BertForReplacedTokens(electra_encoder(CONFIG)), fits)
    if "max_positions" not in changes:
        assert asked(model).logits.shape == MASKED.shape


def test_plain_and_projected_tables_are_tied():
    """ELECTRA-base: the discriminator has no projection, its narrower generator has one."""
    model = joint(SAME_WIDTH)
    assert isinstance(model.discriminator.encoder.embeddings, Embeddings)
    assert tables(model.generator).token is model.discriminator.encoder.embeddings.token
    assert asked(model).prediction_logits.shape == (len(AT), V)


# ---------------------------------------------------------------- what is filled in


def test_words_are_drawn_at_the_selected_positions_only():
    before = MASKED.clone()
    wanted = torch.arange(20, 20 + len(AT))
    logits = torch.full((len(AT), V), -100.0)
    logits[torch.arange(len(AT)), wanted] = 100.0
    filled = fill_in(MASKED, AT, logits, torch.rand(len(AT)))
    assert filled.shape == MASKED.shape and torch.equal(MASKED, before)
    assert torch.equal(filled.flatten()[AT], wanted)
    assert torch.equal(filled.flatten()[ELSEWHERE], MASKED.flatten()[ELSEWHERE])


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
    model = joint(CONFIG)
    out = model(MASKED, MASK, predict_at=AT)
    assert out.prediction_logits.shape == (len(AT), V) and out.logits.shape == MASKED.shape
    assert torch.equal(out.attention_mask, MASK) and torch.equal(out.predict_at, AT)
    assert torch.equal(out.corrupted_ids.flatten()[ELSEWHERE], MASKED.flatten()[ELSEWHERE])
    with torch.no_grad():
        again = model.discriminator(out.corrupted_ids, MASK).logits
        words = model.generator(MASKED, MASK).logits.flatten(0, 1)[AT]
    assert torch.equal(again, out.logits)
    assert torch.allclose(words, out.prediction_logits, atol=1e-5)
    assert torch.equal(model(MASKED, predict_at=AT).attention_mask, torch.ones_like(MASKED))


# ---------------------------------------------------------------- nothing flows back


def own(network: nn.Module, other: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of a network that the other one does not share."""
    theirs = {id(p) for p in other.parameters()}
    return {n: p for n, p in network.named_parameters() if id(p) not in theirs}


@ways_to_tie
def test_the_generator_learns_nothing_from_the_discriminator(tied: str):
    model = joint(CONFIG, tied)
    outputs, targets = asked(model), {"labels": BATCH["original_ids"]}
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


# ---------------------------------------------------------------- gradient-disentangled sharing


def token_of(network: Any) -> Any:
    return network.encoder.embeddings.token


def test_the_difference_begins_at_zero_and_the_tables_are_one():
    model = electra_from(CONFIG, 1 / 4, DISENTANGLED)
    token = token_of(model.discriminator)
    assert isinstance(token, DisentangledEmbedding) and not token.difference.any()
    assert torch.equal(token.weight, token_of(model.generator).weight)
    names = dict(model.named_parameters())  # each table once, each by its own network
    ends = [name.split(".", 1)[0] for name in names if ".tables.token." in name]
    assert sorted(ends) == ["discriminator", "generator"]


def test_each_loss_reaches_its_own_table_only():
    """The difference takes exactly the gradient that a table of the discriminator's own would take,
    and the generator's table no part of it; MLM the other way round."""
    model = joint(CONFIG, DISENTANGLED, torch.float64)
    alone = merged(model.discriminator)
    table, difference = token_of(model.generator).weight, token_of(model.discriminator).difference
    outputs, targets = asked(model), {"labels": BATCH["original_ids"]}
    replaced_token_loss(outputs, targets)["rtd"].backward(retain_graph=True)
    assert table.grad is None
    outputs.logits = alone(outputs.corrupted_ids, MASK, BATCH["types"]).logits
    replaced_token_loss(outputs, targets)["rtd"].backward()
    own = token_of(alone).weight.grad
    assert own.any() and torch.allclose(difference.grad, own, rtol=0, atol=1e-14)
    masked_lm_loss(outputs, targets)["mlm"].backward()
    assert table.grad.any() and torch.allclose(difference.grad, own, rtol=0, atol=1e-14)
    same_generator = electra_from(CONFIG, 1 / 4, "none").double()
    same_generator.generator.load_state_dict(model.generator.state_dict())
    again = same_generator(MASKED, MASK, BATCH["types"], predict_at=AT)
    masked_lm_loss(again, targets)["mlm"].backward()
    assert torch.allclose(table.grad, token_of(same_generator.generator).weight.grad, atol=1e-14)


def test_the_discriminator_follows_the_generators_table():
    model = joint(CONFIG, DISENTANGLED)
    token = token_of(model.discriminator)
    with torch.no_grad():
        before = token(MASKED)
        token_of(model.generator).weight += 1
        assert torch.allclose(token(MASKED), before + 1, atol=1e-6)


@pytest.mark.parametrize("config", [CONFIG, SAME_WIDTH], ids=["E < H", "E = H"])
def test_merged_into_one_table_the_outputs_are_the_same(config: ElectraConfig, tmp_path: Path):
    model = joint(config, DISENTANGLED)
    alone = merged(model.discriminator)
    assert isinstance(alone.encoder.embeddings.token, nn.Embedding)
    assert alone.encoder.embeddings.token.weight.requires_grad
    with torch.no_grad():
        expected = model.discriminator(MASKED, MASK, BATCH["types"]).logits
        assert torch.equal(alone(MASKED, MASK, BATCH["types"]).logits, expected)
        save(alone, tmp_path / "alone.safetensors")
        again: Any = load(tmp_path / "alone.safetensors")
        assert torch.equal(again(MASKED, MASK, BATCH["types"]).logits, expected)
    with pytest.raises(CheckpointError, match=r"network's plus a difference.*merged\(model"):
        save(model.discriminator, tmp_path / "not.safetensors")
    assert isinstance(token_of(model.discriminator), DisentangledEmbedding)  # left as it was


def test_both_networks_are_saved_on_the_way():
    """As one model, a run that stopped goes on: table and difference are both in its state."""
    model, other = joint(CONFIG, DISENTANGLED), joint(CONFIG, DISENTANGLED)
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    other.load_state_dict(model.state_dict())
    assert same(model, other)
    assert torch.equal(token_of(other.discriminator).weight, token_of(model.discriminator).weight)
    copied = deepcopy(model)  # the copy's discriminator reads the copy's generator
    assert token_of(copied.discriminator)._table[0] is token_of(copied.generator)


def test_a_discriminator_with_its_own_table_is_only_copied():
    model = joint(CONFIG, "none").discriminator
    again = merged(model)
    assert again is not model and same(again, model)


# ---------------------------------------------------------------- both against two networks


def by_hand(made: Any, discriminator: Any, uniforms: Tensor) -> Tensor:
    """The joint loss of two transformers models: L_MLM + 50 · L_Disc (section 2)."""
    inputs = {"attention_mask": MASK, "token_type_ids": BATCH["types"]}
    scores = made(MASKED, **inputs).logits.flatten(0, 1)[AT]
    corrupted = fill_in(MASKED, AT, scores, uniforms)
    truth = MASKED.flatten().clone()
    truth[AT] = BATCH["original_ids"]
    replaced = corrupted != truth.view_as(corrupted)
    assert 0 < replaced.sum() <= len(AT)
    real = MASK.bool()
    said = discriminator(corrupted, **inputs).logits[real]
    disc = F.binary_cross_entropy_with_logits(said, replaced[real].to(said.dtype))
    return F.cross_entropy(scores, BATCH["original_ids"]) + 50 * disc


def our_joint_loss(ours: Electra, seed: int) -> Tensor:
    torch.manual_seed(seed)  # the model draws its own shares
    return electra_loss()(asked(ours), {"labels": BATCH["original_ids"]})["total"]


def both_networks(ours: Electra) -> tuple[Any, Any]:
    pytest.importorskip("transformers")
    return tuple(
        to_transformers(part, attention="eager")
        for part in (ours.generator, merged(ours.discriminator))
    )


def gradients(model: Any) -> dict[str, Tensor]:
    named = {n.removeprefix("electra."): p.grad for n, p in model.named_parameters()}
    return {n: grad for n, grad in named.items() if n != "generator_lm_head.weight"}


def theirs_of(name: str) -> str:
    return their_name(name, FAMILIES["electra"])


@both_precisions
@ways_to_tie
@pytest.mark.parametrize("config", [CONFIG, SAME_WIDTH], ids=["E < H", "E = H"])
def test_the_joint_loss_against_two_networks(config: ElectraConfig, tied: str, dtype: torch.dtype):
    """The same loss, and of a shared table the sum of what both networks ask of it."""
    ours = joint(config, tied, dtype)
    made, discriminator = both_networks(ours)
    torch.manual_seed(3)
    expected = by_hand(made, discriminator, torch.rand(len(AT)))
    expected.backward()
    loss = our_joint_loss(ours, seed=3)
    loss.backward()
    assert distance(loss, expected) <= TOLERANCE[dtype]

    shared = {
        theirs_of(f"embeddings.tables.{name}")
        for name, _ in tables(ours.generator).named_parameters()
        if name.split(".")[0] in PARTS[tied]
    }
    from_discriminator = gradients(discriminator)
    reference = {f"discriminator.{n}": grad for n, grad in from_discriminator.items()}
    for name, grad in gradients(made).items():
        if name in shared:
            assert grad.abs().max() > 0 and from_discriminator[name].abs().max() > 0
            reference[f"discriminator.{name}"] = from_discriminator[name] + grad
        else:
            reference[f"generator.{name}"] = grad

    found = {}
    for name, p in ours.named_parameters():  # a shared one is named once, as the generator's
        network, _, rest = name.partition(".")
        bare = theirs_of(rest.replace("token.difference", "token.weight"))
        found[f"{'discriminator' if bare in shared else network}.{bare}"] = p.grad
    assert gradients_apart(found, reference) <= TOLERANCE[dtype]


@pytest.mark.parametrize("tied", ["all", "tokens"])
def test_the_joint_loss_with_tables_tied_by_hand(tied: str):
    """transformers' two networks, made to read through one table: autograd adds up by itself."""
    ours = joint(CONFIG, tied, torch.float64)
    made, discriminator = both_networks(ours)
    one, other = made.electra.embeddings, discriminator.electra.embeddings
    one.word_embeddings = other.word_embeddings
    made.generator_lm_head.weight = other.word_embeddings.weight
    if tied == "all":
        made.electra.embeddings = other
    torch.manual_seed(8)
    by_hand(made, discriminator, torch.rand(len(AT))).backward()
    our_joint_loss(ours, seed=8).backward()
    for name, parameter in tables(ours.discriminator).named_parameters():
        bare = theirs_of(f"embeddings.tables.{name}").removeprefix("embeddings.")
        assert distance(parameter.grad, other.get_parameter(bare).grad) <= 1e-10, name


@ways_to_tie
def test_each_network_goes_its_way_alone(tied: str):
    """Of shared tables both take a copy along; there and back, every bit is the same."""
    ours = joint(CONFIG, tied)
    made, discriminator = both_networks(ours)
    first, second = (m.electra.embeddings.word_embeddings.weight for m in (made, discriminator))
    assert first is not second and torch.equal(first, second) == (tied in ("all", "tokens"))
    apart = (ours.generator, merged(ours.discriminator))
    again = [assert_there_and_back(part) for part in apart]
    if tied != DISENTANGLED:  # there, what was merged does not come apart again
        assert same(ours, Electra(*again, tied))


def test_the_loss_that_transformers_itself_computes():
    """Its labels mark a replaced token 1, and its mean is over the real tokens, as here."""
    pytest.importorskip("transformers")
    case = ELECTRA.case(1)
    assert not case.real.all() and 0 < replaced_in(case).sum() < case.real.sum()
    ours, theirs = pair_of_models(
        lambda config: ELECTRA.make("discriminator", config), case, torch.float32
    )
    with torch.no_grad():
        expected = theirs(**case.inputs, labels=replaced_in(case).long()).loss
        assert distance(replaced_loss(ours(**case.inputs), case), expected) <= 1e-5
