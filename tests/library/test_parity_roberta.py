"""RoBERTa is equal to transformers' RobertaModel and RobertaForMaskedLM.

In outputs, gradients, weights there and back, and counts; its position numbers follow the text
wherever the padding is. What "equal" means, and how models are drawn, is said in parity.py."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
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
)

from course_lib.checkpoints import from_transformers, to_transformers
from course_lib.config import PUBLISHED, published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.bert import bert
from course_lib.family.roberta import (
    RobertaConfig,
    count_after_padding,
    roberta,
    roberta_encoder,
    roberta_for_masked_lm,
)
from course_lib.heads import BertForMaskedLM
from course_lib.teaching.compare import _batch, compare

transformers = pytest.importorskip("transformers")


def as_roberta(settings: dict[str, Any], draw: random.Random) -> RobertaConfig:
    """The drawn sizes as a RoBERTa; the padding id is its own or another, as are the segments."""
    pad = draw.choice([1, 1, 0, 5])
    more = {"pad_token_id": pad, "type_vocab_size": draw.choice([1, 1, 2])}
    return RobertaConfig(**{**settings, **more, "max_positions": settings["max_positions"] + pad})


def roberta_case(seed: int, left: bool | None = None) -> Case:
    """A drawn case whose padding has the padding's id, to the right or (every fourth) the left."""
    case = draw_case(seed, as_roberta)
    left = seed % 4 == 1 if left is None else left
    pad, vocab = case.config.pad_token_id, case.config.vocab_size
    inputs, labels = dict(case.inputs), case.labels
    if left:
        inputs = {name: value.flip(1) for name, value in inputs.items()}
        labels = labels.flip(1)
    ids = torch.where(inputs["input_ids"] == pad, (pad + 1) % vocab, inputs["input_ids"])
    inputs["input_ids"] = torch.where(inputs["attention_mask"].bool(), ids, pad)
    return case._replace(inputs=inputs, labels=labels)


def masked(config: RobertaConfig) -> BertForMaskedLM:
    return BertForMaskedLM(roberta_encoder(config, pooler=False))


MAKERS = pytest.mark.parametrize("make", [masked, roberta_encoder])


# ---------------------------------------------------------------- outputs and gradients


def test_the_drawn_cases_hold_every_kind():
    cases = [roberta_case(seed) for seed in DRAWN]
    masks = [case.inputs["attention_mask"] for case in cases]
    assert any(mask.all() for mask in masks) and any(not mask[:, -1].all() for mask in masks)
    assert any(not mask[:, 0].all() for mask in masks)  # padded at the left
    assert {case.config.pad_token_id for case in cases} >= {0, 1}
    assert {case.config.type_vocab_size for case in cases} == {1, 2}
    assert any(case.config.num_heads % 2 for case in cases)
    assert any(len(mask) == 1 for mask in masks)


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
def test_outputs(seed: int, dtype: torch.dtype):
    case = roberta_case(seed)
    ours, theirs = pair_of_models(masked, case, dtype)
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@torch.no_grad()
def test_outputs_of_the_encoder_and_its_pooler(seed: int, dtype: torch.dtype):
    case = roberta_case(seed)
    ours, theirs = pair_of_models(roberta_encoder, case, dtype)
    mine, reference = run(ours, case), run(theirs, case)
    found = output_distances(mine, reference, case)
    found["pooler"] = distance(mine.pooler_output, reference.pooler_output)
    assert largest(found) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@MAKERS
def test_gradients(make: Any, seed: int, dtype: torch.dtype):
    case = roberta_case(seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert both_backward(ours, theirs, case) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", range(20, 26))
def test_only_where_something_is_selected(seed: int, dtype: torch.dtype):
    case = roberta_case(seed)
    ours, _ = pair_of_models(masked, case, dtype)
    found = chosen_against_full(ours, case) | only_at_against_full(ours.encoder, case)
    assert largest(found) <= TOLERANCE[dtype]


def test_a_difference_is_seen():
    """BERT's position numbers in RoBERTa's place are noticed."""
    case = roberta_case(2)
    ours, theirs = pair_of_models(masked, case, torch.float32)
    ours.encoder.embeddings.number = lambda ids: torch.arange(ids.shape[1])
    with torch.no_grad():
        found = output_distances(run(ours, case), run(theirs, case), case)
    assert max(found.values()) > TOLERANCE[torch.float32]


@pytest.mark.parametrize("kind", ["masked words", "encoder", "no pooler"])
def test_compare_finds_it_equal(kind: str):
    config = roberta_case(2).config
    ours: Any = masked(config) if kind[0] == "m" else roberta_encoder(config, kind[0] == "e")
    found = compare(drawn_weights(ours, 0.2), sequences=3, length=99)
    assert found.equal and found.our_parameters == count_parameters(ours)
    assert f"up to {config.longest_text} tokens" in found.batch
    theirs = to_transformers(ours)
    with torch.no_grad():
        theirs.base_model.embeddings.position_embeddings.weight[config.pad_token_id + 1, 0] += 1
    changed = compare(ours, theirs)
    assert not changed.equal and changed.output_difference > 1e-4


def test_compare_draws_no_padding_into_the_text():
    config = RobertaConfig(vocab_size=3)
    for seed in range(20):
        batch = _batch(config, 4, 16, seed)
        assert torch.equal(batch["input_ids"] != config.pad_token_id, batch["attention_mask"] == 1)
        assert not batch["token_type_ids"].any()  # RoBERTa has one segment


def test_compare_refuses_another_model():
    config = roberta_case(2).config
    theirs = to_transformers(roberta_encoder(config, pooler=False))
    with pytest.raises(ValueError, match=r"other weights than ours, first pooler\.dense\.weight"):
        compare(roberta_encoder(config), theirs)


# ---------------------------------------------------------------- weights there and back


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", ["masked words", "encoder", "no pooler"])
def test_weights_there_and_back_are_bit_identical(kind: str, dtype: torch.dtype):
    config = roberta_case(2).config
    ours: Any = (
        masked(config) if kind == "masked words" else roberta_encoder(config, kind[0] == "e")
    )
    assert_there_and_back(drawn_weights(ours, 0.1).to(dtype))
    assert from_transformers(to_transformers(ours)).config == config


def test_a_model_that_began_in_transformers():
    config = transformers.RobertaConfig(
        vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=50, max_position_embeddings=30, type_vocab_size=1,
        layer_norm_eps=1e-5, attn_implementation="eager",
    )  # fmt: skip
    theirs = transformers.RobertaForMaskedLM(config).eval()
    ours = from_transformers(theirs)
    ids = torch.tensor([[0, 7, 1, 9, 2], [0, 5, 2, 1, 1]])  # a padding id amid a text, too
    with torch.no_grad():
        assert distance(ours(ids).logits, theirs(ids).logits) <= 1e-5
    alone = from_transformers(theirs.roberta)
    assert isinstance(alone, Encoder) and alone.pooler is None
    assert isinstance(alone.config, RobertaConfig) and alone.config.longest_text == 28


# ---------------------------------------------------------------- parameter counts

# facts.md 0.1: without pooler, with pooler
COUNTS = {"base": (124_055_040, 124_645_632), "large": (354_310_144, 355_359_744)}


def test_every_published_size_is_counted():
    assert set(COUNTS) == set(PUBLISHED["roberta"])


@pytest.mark.parametrize("size", COUNTS)
def test_parameter_counts(size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    found = on_meta(lambda: roberta(size, pooler=False)), on_meta(lambda: roberta(size))
    assert found == COUNTS[size]
    c = published("roberta", size, RobertaConfig)
    config = transformers.RobertaConfig(
        vocab_size=50_265, max_position_embeddings=514, type_vocab_size=1,
        hidden_size=c.hidden_size, num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads, intermediate_size=c.intermediate_size,
    )  # fmt: skip
    base = transformers.RobertaModel
    assert found[0] == on_meta(lambda: base(config, add_pooling_layer=False))
    assert found[1] == on_meta(lambda: base(config))
    whole = on_meta(lambda: transformers.RobertaForMaskedLM(config))
    assert on_meta(lambda: roberta_for_masked_lm(size)) == whole


def test_the_masked_word_model_of_base():
    assert on_meta(lambda: roberta_for_masked_lm("base")) == 124_697_433


def test_what_separates_it_from_bert():
    """Vocabulary rows, two position rows more and one segment row less (facts.md, E79)."""
    more = on_meta(lambda: roberta("base")) - on_meta(lambda: bert("base"))
    assert more == 15_163_392 == (50_265 - 30_522 + 2 - 1) * 768


# ---------------------------------------------------------------- positions


def test_position_numbers_on_paper():
    ids = torch.tensor([[0, 9, 8, 2, 1, 1], [1, 1, 0, 9, 8, 2], [0, 9, 8, 7, 6, 2]])
    assert count_after_padding(ids, 1).tolist() == [
        [2, 3, 4, 5, 1, 1],  # padded at the right
        [1, 1, 2, 3, 4, 5],  # at the left
        [2, 3, 4, 5, 6, 7],  # not at all
    ]


@pytest.mark.parametrize("pad", [0, 1, 5])
def test_position_numbers_are_those_of_transformers(pad: int):
    ids = torch.randint(8, (20, 11), generator=torch.Generator().manual_seed(4))
    embeddings = transformers.models.roberta.modeling_roberta.RobertaEmbeddings
    expected = embeddings.create_position_ids_from_input_ids(ids, pad)
    assert torch.equal(count_after_padding(ids, pad), expected)


@pytest.fixture(scope="module")
def small() -> Encoder:
    changes = {"vocab_size": 30, "hidden_size": 12, "num_heads": 3, "num_layers": 2}
    model = roberta("base", **changes, intermediate_size=20, max_positions=14)
    return drawn_weights(model, 0.3).double().eval()


@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_padding_changes_nothing_for_the_text(small: Encoder, side: str):
    """Position numbers follow the text, wherever the padding is; BERT's would not."""
    text = torch.tensor([[0, 9, 8, 7, 2]])
    padding = torch.full((1, 4), 1)
    parts = (padding, text) if side == "left" else (text, padding)
    ids = torch.cat(parts, dim=1)
    states = small(ids, attention_mask=(ids != 1).long()).last_hidden_state
    assert distance(states[ids != 1], small(text).last_hidden_state[0]) <= 1e-12


def test_the_rows_of_padding_stay_zero():
    model = roberta_for_masked_lm("base", vocab_size=20, hidden_size=8, num_heads=2, num_layers=1)
    table = model.encoder.embeddings.position.weight
    assert not table[1].any() and table[2:].any(dim=1).all()
    ids = torch.tensor([[0, 5, 2, 1]])
    model(ids, attention_mask=(ids != 1).long()).logits.square().mean().backward()
    assert table.grad is not None
    assert table.grad.any(dim=1).nonzero()[:, 0].tolist() == [2, 3, 4]


# ---------------------------------------------------------------- bad input


def test_text_longer_than_the_model(small: Encoder):
    """14 rows: one of padding's own, one before it, 12 for text. The advice is worth following."""
    assert small.config.longest_text == 12
    longest = torch.full((1, 12), 4)
    assert small(longest).last_hidden_state.shape == (1, 12, 12)
    longer = torch.full((1, 13), 4)
    with pytest.raises(ValueError, match=r"text of 13 tokens.* at most 12.*max_positions=15"):
        small(longer)
    sizes = {"vocab_size": 30, "hidden_size": 12, "num_heads": 3, "num_layers": 1}
    assert roberta("base", **sizes, max_positions=15)(longer).last_hidden_state.shape[1] == 13
    assert published("roberta", "base", RobertaConfig).longest_text == 512


def test_a_second_segment(small: Encoder):
    ids = torch.tensor([[0, 9, 2]])
    with pytest.raises(ValueError, match=r"token_type_ids from 0 to 1 .* from 0 to 0"):
        small(ids, token_type_ids=torch.tensor([[0, 0, 1]]))


def test_settings_that_do_not_fit():
    with pytest.raises(ValueError, match=r"max_positions=2 was given; expected at least 3"):
        RobertaConfig(max_positions=2)
    for pad in (-1, 50_265, None):
        with pytest.raises(ValueError, match=r"pad_token_id=.* expected an id of the vocabulary"):
            RobertaConfig(pad_token_id=pad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected settings of RobertaConfig"):
        roberta("base", embedding_size=128)
    with pytest.raises(ValueError, match="expected one of base, large"):
        roberta("tiny")


def test_count_of_a_model_with_memory(small: Encoder):
    """The same rule as on meta, on one small enough to add up by hand."""
    H, F, V, P = 12, 20, 30, 14
    block = 4 * (H * H + H) + (H * F + F) + (F * H + H) + 4 * H
    assert count_parameters(small) == V * H + P * H + H + 2 * H + 2 * block + H * H + H
