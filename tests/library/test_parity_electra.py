"""ELECTRA's two networks are equal to transformers' ElectraForMaskedLM (the generator) and
ElectraForPreTraining (the discriminator).

In outputs, gradients, weights there and back, and counts; and the joint loss of both together gives
the gradients of the two reference networks with their tables tied by hand. What "equal" means, and
how models are drawn, is said in parity.py."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from parity import (
    DRAWN,
    TOLERANCE,
    Case,
    all_distances,
    assert_there_and_back,
    both_backward,
    both_precisions,
    chosen_against_full,
    distance,
    draw_case,
    drawn_weights,
    largest,
    on_meta,
    only_at_against_full,
    output_distances,
    pair_of_models,
    run,
    scores_of,
)
from torch import Tensor

from course_lib.checkpoints import (
    CheckpointError,
    from_transformers,
    their_name,
    to_transformers,
)
from course_lib.checkpoints.families import ELECTRA
from course_lib.config import PUBLISHED, published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.electra import (
    GENERATOR_SIZE,
    TIED,
    Electra,
    ElectraConfig,
    electra,
    electra_discriminator,
    electra_encoder,
    fill_in,
    generator_config,
)
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens
from course_lib.objectives.replaced_tokens import electra_loss
from course_lib.teaching.compare import compare

transformers = pytest.importorskip("transformers")


def as_electra(settings: dict[str, Any], draw: random.Random) -> ElectraConfig:
    """The drawn sizes as an ELECTRA: tables below, at or above the width H of the network."""
    hidden = settings["hidden_size"]
    return ElectraConfig(**settings, embedding_size=draw.choice([8, 9, hidden, hidden, hidden + 4]))


def electra_case(seed: int) -> Case:
    return draw_case(seed, as_electra)


def generator(config: ElectraConfig) -> BertForMaskedLM:
    return BertForMaskedLM(electra_encoder(config))


def discriminator(config: ElectraConfig) -> BertForReplacedTokens:
    return BertForReplacedTokens(electra_encoder(config))


MAKERS = pytest.mark.parametrize("make", [generator, discriminator, electra_encoder])
WITH_HEADS = pytest.mark.parametrize("make", [generator, discriminator])


def replaced_in(case: Case) -> Tensor:
    """(B, T) bool: of the asked positions those with an even word; in the others the generator
    drew the word that stood there.

    Some tenths of the tokens, as in ELECTRA. With as many replaced as original tokens of almost one
    score, the mean's gradient is a small rest of large terms, and transformers' own in float32 is
    3e-5 from its own in float64."""
    return (case.labels != -100) & (case.labels % 2 == 0)


def rtd_loss(outputs: Any, case: Case) -> Tensor:
    """Mean over the real tokens."""
    scores = outputs.logits[case.real]
    return F.binary_cross_entropy_with_logits(scores, replaced_in(case)[case.real].to(scores.dtype))


# ---------------------------------------------------------------- outputs and gradients


def test_the_drawn_cases_hold_every_kind():
    cases = [electra_case(seed) for seed in DRAWN]
    configs = [case.config for case in cases]
    wider = {
        (c.embedding_size > c.hidden_size) - (c.embedding_size < c.hidden_size) for c in configs
    }
    assert wider == {-1, 0, 1}
    masks = [case.inputs["attention_mask"] for case in cases]
    assert any(mask.all() for mask in masks) and any(not mask.all() for mask in masks)
    assert any(c.num_heads % 2 for c in configs) and any(len(mask) == 1 for mask in masks)
    assert sum(bool(replaced_in(case).any()) for case in cases) >= 10


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@WITH_HEADS
def test_outputs(make: Any, seed: int, dtype: torch.dtype):
    case = electra_case(seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@torch.no_grad()
def test_outputs_of_the_encoder(seed: int, dtype: torch.dtype):
    case = electra_case(seed)
    ours, theirs = pair_of_models(electra_encoder, case, dtype)
    mine = run(ours, case, output_attention_scores=True)
    reference = run(theirs, case)
    found = output_distances(mine, reference, case, scores_of(theirs, case))
    found["states"] = distance(
        mine.last_hidden_state[case.real], reference.last_hidden_state[case.real]
    )
    assert largest(found) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@pytest.mark.parametrize("make", [generator, electra_encoder])
def test_gradients(make: Any, seed: int, dtype: torch.dtype):
    case = electra_case(seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert both_backward(ours, theirs, case) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
def test_gradients_of_the_discriminator(seed: int, dtype: torch.dtype):
    case = electra_case(seed)
    ours, theirs = pair_of_models(discriminator, case, dtype)
    assert both_backward(ours, theirs, case, rtd_loss) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", range(20, 26))
def test_only_where_something_is_selected(seed: int, dtype: torch.dtype):
    case = electra_case(seed)
    ours, _ = pair_of_models(generator, case, dtype)
    found = chosen_against_full(ours, case) | only_at_against_full(ours.encoder, case)
    assert largest(found) <= TOLERANCE[dtype]


def test_the_loss_that_transformers_itself_computes():
    """Its labels mark a replaced token 1, and its mean is over the real tokens, as here."""
    case = electra_case(1)
    assert not case.real.all() and 0 < replaced_in(case).sum() < case.real.sum()
    ours, theirs = pair_of_models(discriminator, case, torch.float32)
    with torch.no_grad():
        expected = theirs(**case.inputs, labels=replaced_in(case).long()).loss
        assert distance(rtd_loss(ours(**case.inputs), case), expected) <= 1e-5


def test_a_difference_is_seen():
    """The tanh form of GELU in the discriminator's head is noticed in float64."""
    case = electra_case(2)
    ours, theirs = pair_of_models(discriminator, case, torch.float64)
    ours.rtd.gelu_form = "tanh"
    with torch.no_grad():
        found = output_distances(run(ours, case), run(theirs, case), case)
    assert max(found.values()) > TOLERANCE[torch.float64]


# ---------------------------------------------------------------- both networks together

CONFIG = ElectraConfig(
    vocab_size=50, hidden_size=48, num_layers=2, num_heads=4, intermediate_size=80,
    max_positions=16, embedding_size=20, hidden_dropout=0.0, attention_dropout=0.0,
)  # fmt: skip
SAME_WIDTH = ElectraConfig(**{**vars(CONFIG), "embedding_size": 48})
TABLES = {
    "all": (
        "word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight",
        "LayerNorm.weight", "LayerNorm.bias",
    ),
    "tokens": ("word_embeddings.weight",),
    "none": (),
}  # fmt: skip


def joint(config: ElectraConfig, tied: str, dtype: torch.dtype = torch.float32) -> Electra:
    small = generator_config(config, 1 / 4)
    return drawn_weights(Electra(generator(small), discriminator(config), tied), 0.15).to(dtype)


def a_batch() -> dict[str, Tensor]:
    """Texts with [MASK] (id 4) at the positions to predict, the true words, and one short row."""
    make = torch.Generator().manual_seed(5)
    ids = torch.randint(5, 50, (3, 12), generator=make)
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    at = torch.tensor([2, 5, 9, 14, 19, 25, 30, 31])
    original_ids = ids.flatten()[at]
    ids = torch.where(mask.bool(), ids, 0)
    ids.view(-1)[at] = 4
    types = (torch.arange(12) > 6).long() * mask
    return {"ids": ids, "mask": mask, "types": types, "at": at, "original_ids": original_ids}


def by_hand(made: Any, discriminator: Any, batch: dict[str, Tensor], uniforms: Tensor) -> Tensor:
    """The joint loss of two transformers models: L_MLM + 50 · L_Disc (section 2)."""
    inputs = {"attention_mask": batch["mask"], "token_type_ids": batch["types"]}
    scores = made(batch["ids"], **inputs).logits.flatten(0, 1)[batch["at"]]
    corrupted = fill_in(batch["ids"], batch["at"], scores, uniforms)
    truth = batch["ids"].flatten().clone()
    truth[batch["at"]] = batch["original_ids"]
    replaced = corrupted != truth.view_as(corrupted)
    assert 0 < replaced.sum() <= len(batch["at"])
    real = batch["mask"].bool()
    said = discriminator(corrupted, **inputs).logits[real]
    disc = F.binary_cross_entropy_with_logits(said, replaced[real].to(said.dtype))
    return F.cross_entropy(scores, batch["original_ids"]) + 50 * disc


def our_joint_loss(ours: Electra, batch: dict[str, Tensor], seed: int) -> Tensor:
    torch.manual_seed(seed)  # the model draws its own shares
    outputs = ours(batch["ids"], batch["mask"], batch["types"], predict_at=batch["at"])
    return electra_loss()(outputs, {"labels": batch["original_ids"]})["total"]


def gradients(model: Any) -> dict[str, Tensor]:
    named = {n.removeprefix("electra."): p.grad for n, p in model.named_parameters()}
    return {n: grad for n, grad in named.items() if n != "generator_lm_head.weight"}


@both_precisions
@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize("config", [CONFIG, SAME_WIDTH], ids=["E < H", "E = H"])
def test_the_joint_loss_against_two_networks(config: ElectraConfig, tied: str, dtype: torch.dtype):
    """The same loss, and of a shared table the sum of what both networks ask of it."""
    ours, batch = joint(config, tied, dtype).eval(), a_batch()
    made = to_transformers(ours.generator, attention="eager")
    discriminator = to_transformers(ours.discriminator, attention="eager")
    torch.manual_seed(3)
    uniforms = torch.rand(len(batch["at"]))
    expected = by_hand(made, discriminator, batch, uniforms)
    expected.backward()
    loss = our_joint_loss(ours, batch, seed=3)
    loss.backward()
    assert distance(loss, expected) <= TOLERANCE[dtype]

    from_made, from_discriminator = gradients(made), gradients(discriminator)
    shared = {f"embeddings.{table}" for table in TABLES[tied]}
    reference = {f"discriminator.{n}": grad for n, grad in from_discriminator.items()}
    for name, grad in from_made.items():
        if name in shared:
            assert grad.abs().max() > 0 and from_discriminator[name].abs().max() > 0
            reference[f"discriminator.{name}"] = from_discriminator[name] + grad
        else:
            reference[f"generator.{name}"] = grad

    found = {}
    for name, p in ours.named_parameters():  # a shared one is named once, as the generator's
        network, _, rest = name.partition(".")
        bare = their_name(rest, ELECTRA)
        found[f"{'discriminator' if bare in shared else network}.{bare}"] = p.grad
    assert found.keys() == reference.keys()
    most = max(grad.abs().max() for grad in reference.values())
    worst = max((found[n] - grad).abs().max() for n, grad in reference.items())
    assert worst / most <= TOLERANCE[dtype]


@pytest.mark.parametrize("tied", ["all", "tokens"])
def test_the_joint_loss_with_tables_tied_by_hand(tied: str):
    """transformers' two networks, made to read through one table: autograd adds up by itself."""
    ours, batch = joint(CONFIG, tied, torch.float64).eval(), a_batch()
    made, discriminator = to_transformers(ours.generator), to_transformers(ours.discriminator)
    one, other = made.electra.embeddings, discriminator.electra.embeddings
    one.word_embeddings = other.word_embeddings
    made.generator_lm_head.weight = other.word_embeddings.weight
    if tied == "all":
        made.electra.embeddings = other
    torch.manual_seed(8)
    by_hand(made, discriminator, batch, torch.rand(len(batch["at"]))).backward()
    our_joint_loss(ours, batch, seed=8).backward()
    tables = ours.discriminator.encoder.embeddings.tables
    for name, parameter in tables.named_parameters():
        expected = other.get_parameter(
            their_name(f"embeddings.tables.{name}", ELECTRA).removeprefix("embeddings.")
        )
        assert distance(parameter.grad, expected.grad) <= 1e-10, name
    assert ours.generator.encoder.embeddings.tables.token is tables.token


@pytest.mark.parametrize("tied", TIED)
def test_each_network_goes_its_way_alone(tied: str):
    """Of shared tables both take a copy along; there and back, every bit is the same."""
    ours = joint(CONFIG, tied)
    for part in (ours.generator, ours.discriminator):
        assert_there_and_back(part)
    made, discriminator = to_transformers(ours.generator), to_transformers(ours.discriminator)
    first, second = (m.electra.embeddings.word_embeddings.weight for m in (made, discriminator))
    assert first is not second and torch.equal(first, second) == (tied != "none")
    with torch.no_grad():
        first += 1
    assert not torch.equal(first, ours.generator.encoder.embeddings.token.weight)
    again = Electra(
        from_transformers(to_transformers(ours.generator)), from_transformers(discriminator), tied
    )
    for (name, one), (other_name, other) in zip(
        ours.state_dict().items(), again.state_dict().items(), strict=True
    ):
        assert name == other_name and torch.equal(one, other), name


def test_both_at_once_are_no_model_of_transformers():
    with pytest.raises(CheckpointError, match=r"a Electra was.*\.generator or \.discriminator alo"):
        to_transformers(joint(CONFIG, "all"))


# ---------------------------------------------------------------- compare


@MAKERS
@pytest.mark.parametrize("config", [CONFIG, SAME_WIDTH], ids=["E < H", "E = H"])
def test_compare_finds_it_equal(config: ElectraConfig, make: Any):
    ours = drawn_weights(make(config), 0.2)
    found = compare(ours)
    assert found.equal and found.our_parameters == count_parameters(ours)
    assert compare(ours.double()).equal
    theirs = to_transformers(ours)
    with torch.no_grad():
        theirs.base_model.encoder.layer[0].intermediate.dense.weight[0] += 0.1
    changed = compare(ours, theirs)
    assert not changed.equal and changed.gradient_difference > 1e-4


def test_compare_looks_at_the_head_of_the_discriminator():
    ours = drawn_weights(discriminator(CONFIG), 0.2)
    for change in ("dense.bias", "dense_prediction.bias"):
        theirs = to_transformers(ours)
        with torch.no_grad():
            theirs.get_parameter(f"discriminator_predictions.{change}")[0] += 0.5
        assert compare(ours, theirs).output_difference > 1e-3, change


def test_compare_looks_at_real_tokens_only():
    """A discriminator has one score a token: those of the padding count no more than elsewhere."""
    ours = drawn_weights(discriminator(CONFIG), 0.2)
    theirs = to_transformers(ours)
    row = CONFIG.pad_token_id  # no text of the batch has this id
    with torch.no_grad():
        theirs.electra.embeddings.word_embeddings.weight[row] += 1
    found = compare(ours, theirs)
    assert found.output_difference <= 1e-5


@pytest.mark.parametrize("tied", TIED)
def test_compare_of_the_two_networks(tied: str):
    ours = joint(CONFIG, tied)
    assert compare(ours.generator).equal and compare(ours.discriminator).equal


# ---------------------------------------------------------------- weights there and back


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@MAKERS
@pytest.mark.parametrize("config", [CONFIG, SAME_WIDTH], ids=["E < H", "E = H"])
def test_weights_there_and_back_are_bit_identical(
    config: ElectraConfig, make: Any, dtype: torch.dtype
):
    assert_there_and_back(drawn_weights(make(config), 0.1).to(dtype))
    assert from_transformers(to_transformers(make(config))).config == config


def test_models_that_began_in_transformers():
    for size in (10, 24):
        config = transformers.ElectraConfig(
            vocab_size=40, embedding_size=size, hidden_size=24, num_hidden_layers=2,
            num_attention_heads=3, intermediate_size=50, max_position_embeddings=30,
            attn_implementation="eager",
        )  # fmt: skip
        ids = torch.randint(40, (3, 9))
        for name in ("ElectraForMaskedLM", "ElectraForPreTraining"):
            theirs = getattr(transformers, name)(config).eval()
            ours = from_transformers(theirs)
            with torch.no_grad():
                assert distance(ours(ids).logits, theirs(ids).logits) <= 1e-5
            alone = from_transformers(theirs.electra)
            assert isinstance(alone, Encoder) and alone.pooler is None
            assert isinstance(alone.config, ElectraConfig)
            assert alone.config.embedding_size == size


def test_what_transformers_does_not_have():
    with pytest.raises(CheckpointError, match=r"no pooler\. Set encoder\.pooler = None first"):
        to_transformers(electra_encoder(CONFIG, pooler=True))
    tanh = ElectraConfig(**{**vars(CONFIG), "hidden_act": "gelu_new"})
    for make in (generator, discriminator):
        with pytest.raises(CheckpointError, match="ElectraConfig has hidden_act='gelu_new'; only"):
            to_transformers(make(tanh))


# ---------------------------------------------------------------- parameter counts

# facts.md 0.1: the discriminator's encoder, its head
COUNTS = {
    "small": (13_483_008, 66_049),
    "base": (108_891_648, 591_361),
    "large": (334_092_288, 1_050_625),
}


def their_config(c: ElectraConfig) -> Any:
    return transformers.ElectraConfig(
        embedding_size=c.embedding_size, hidden_size=c.hidden_size,
        num_hidden_layers=c.num_layers, num_attention_heads=c.num_heads,
        intermediate_size=c.intermediate_size,
    )  # fmt: skip


def test_every_published_size_is_counted():
    assert set(COUNTS) == set(PUBLISHED["electra"]) == set(GENERATOR_SIZE)


@pytest.mark.parametrize("size", COUNTS)
def test_parameter_counts(size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    encoder, head = COUNTS[size]
    config = published("electra", size, ElectraConfig)
    assert on_meta(lambda: electra_encoder(config)) == encoder
    assert on_meta(lambda: electra_discriminator(size)) == encoder + head
    theirs = their_config(config)
    assert encoder == on_meta(lambda: transformers.ElectraModel(theirs))
    assert encoder + head == on_meta(lambda: transformers.ElectraForPreTraining(theirs))
    small = generator_config(config, GENERATOR_SIZE[size])
    whole = on_meta(lambda: transformers.ElectraForMaskedLM(their_config(small)))
    assert on_meta(lambda: generator(small)) == whole


# What the generator has beyond the tables it shares, its head left out: facts.md 0.1.
@pytest.mark.parametrize(("size", "millions"), [("base", 9.67), ("large", 19.2)])
def test_what_the_generator_adds(size: str, millions: float):
    c = published("electra", size, ElectraConfig)
    small = generator_config(c, GENERATOR_SIZE[size])
    tables = on_meta(lambda: electra(size).discriminator.encoder.embeddings)
    added = on_meta(lambda: electra_encoder(small)) - tables
    assert round(added / 1e6, 2 if millions < 10 else 1) == millions
    head = small.hidden_size * c.embedding_size + 3 * c.embedding_size + c.vocab_size
    both = on_meta(lambda: electra(size))
    assert both == sum(COUNTS[size]) + added + head
