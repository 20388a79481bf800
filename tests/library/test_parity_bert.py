"""BERT is equal to transformers' BertForPreTraining and BertForMaskedLM: outputs, gradients,
weights there and back. What "equal" means, and how models are drawn, is said in parity.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from parity import (
    DRAWN,
    TOLERANCE,
    all_distances,
    assert_there_and_back,
    both_backward,
    both_precisions,
    distance,
    draw_case,
    drawn_weights,
    gradient_distance,
    largest,
    loss_of,
    on_meta,
    output_distances,
    pair_of_models,
    run,
)
from torch import Tensor

from course_lib.checkpoints import (
    MissingCheckpoint,
    Pretrained,
    from_transformers,
    load_pretrained,
    to_transformers,
)
from course_lib.config import PUBLISHED, BertConfig, published
from course_lib.encoder import Encoder, Pooler, count_parameters
from course_lib.family.bert import bert, bert_for_pretraining
from course_lib.heads import BertForMaskedLM, BertForPreTraining

transformers = pytest.importorskip("transformers")


def whole(config: BertConfig) -> BertForPreTraining:
    return BertForPreTraining(Encoder(config, pooler=Pooler(config)))


def masked(config: BertConfig) -> BertForMaskedLM:
    return BertForMaskedLM(Encoder(config))


MAKERS = pytest.mark.parametrize("make", [whole, masked])


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@MAKERS
def test_outputs(make: Any, seed: int, dtype: torch.dtype):
    case = draw_case(seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[dtype]


def test_both_forms_of_gelu_are_drawn():
    assert {draw_case(seed).config.hidden_act for seed in DRAWN} == {"gelu", "gelu_new"}


@pytest.mark.parametrize("seed", range(100, 104))
def test_narrow_models(seed: int):
    """Below width 8, LayerNorm's tiny epsilon leaves only outputs in float64 meaningful."""
    case = draw_case(seed, narrow=True)
    assert case.config.hidden_size < 8
    ours, theirs = pair_of_models(whole, case, torch.float64)
    with torch.no_grad():
        found = output_distances(run(ours, case), run(theirs, case), case)
    assert max(found.values()) <= TOLERANCE[torch.float64]


@both_precisions
@pytest.mark.parametrize("seed", DRAWN)
@MAKERS
def test_gradients(make: Any, seed: int, dtype: torch.dtype):
    case = draw_case(seed)
    ours, theirs = pair_of_models(make, case, dtype)
    assert both_backward(ours, theirs, case) <= TOLERANCE[dtype]


@both_precisions
@pytest.mark.parametrize("seed", range(20, 26))
def test_predicting_only_selected_positions(seed: int, dtype: torch.dtype):
    """With predict_at: the same scores there, the same loss and the same gradients."""
    case = draw_case(seed)
    ours, theirs = pair_of_models(whole, case, dtype)
    at = case.to_predict
    outputs = ours(**case.inputs, predict_at=at)
    mlm = F.cross_entropy(outputs.prediction_logits, case.labels.flatten()[at])
    (mlm + F.cross_entropy(outputs.seq_relationship_logits, case.pair)).backward()
    reference = theirs(**case.inputs)
    loss_of(reference, case).backward()
    wanted = reference.prediction_logits.flatten(0, 1)[at]
    assert distance(outputs.prediction_logits, wanted) <= TOLERANCE[dtype]
    pair, expected = outputs.seq_relationship_logits, reference.seq_relationship_logits
    assert distance(pair, expected) <= TOLERANCE[dtype]
    assert gradient_distance(ours, theirs) <= TOLERANCE[dtype]


def test_a_difference_is_seen():
    """The comparison itself can fail: one weight moved by a thousandth is enough."""
    case = draw_case(1)
    ours, theirs = pair_of_models(whole, case, torch.float32)
    with torch.no_grad():
        ours.encoder.stack.blocks[0].attention.key.weight[0, 0] += 1e-3
        found = output_distances(run(ours, case), run(theirs, case), case)
    assert max(found.values()) > TOLERANCE[torch.float32]


# ---------------------------------------------------------------- weights there and back


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", ["pretraining", "masked words", "encoder", "no pooler"])
def test_weights_there_and_back_are_bit_identical(kind: str, dtype: torch.dtype):
    config = draw_case(2).config
    ours = {
        "pretraining": whole,
        "masked words": masked,
        "encoder": lambda config: Encoder(config, pooler=Pooler(config)),
        "no pooler": Encoder,
    }[kind](config)
    ours = drawn_weights(ours, 0.1).to(dtype)
    assert_there_and_back(ours)
    assert from_transformers(to_transformers(ours)).config == config


def test_conversions_copy():
    """A change in one model must not reach the other."""
    ours = bert_for_pretraining("tiny", vocab_size=30, num_layers=1)
    theirs = to_transformers(ours)
    back = from_transformers(theirs)
    before = ours.encoder.embeddings.token.weight.clone()
    with torch.no_grad():
        theirs.bert.embeddings.word_embeddings.weight.zero_()
    assert torch.equal(ours.encoder.embeddings.token.weight, before)
    assert torch.equal(back.encoder.embeddings.token.weight, before)


def test_a_model_that_began_in_transformers():
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=50, max_position_embeddings=30, attn_implementation="eager",
    )  # fmt: skip
    theirs = transformers.BertForPreTraining(config).eval()
    ours = from_transformers(theirs)
    ids = torch.randint(40, (3, 9))
    with torch.no_grad():
        assert distance(ours(ids).prediction_logits, theirs(ids).prediction_logits) <= 1e-5
        state = ours.encoder(ids).last_hidden_state
        assert distance(state, theirs.bert(ids).last_hidden_state) <= 1e-5
    assert ours.encoder.embeddings.token.weight.requires_grad


# ---------------------------------------------------------------- parameter counts

# facts.md 0.1: without pooler, with pooler, whole pre-training model (None: not given there)
COUNTS = {
    "base": (108_891_648, 109_482_240, 110_106_428),
    "large": (334_092_288, 335_141_888, 336_226_108),
    "base-cased": (107_719_680, 108_310_272, None),
    "large-cased": (332_529_664, 333_579_264, None),
    "base-chinese": (101_677_056, 102_267_648, None),
    "multilingual-cased": (177_262_848, 177_853_440, None),
    "multilingual-uncased": (166_765_824, 167_356_416, None),
    "tiny": (None, 4_385_920, None),
    "mini": (None, 11_170_560, None),
    "small": (None, 28_763_648, None),
    "medium": (None, 41_373_184, None),
}


def test_every_published_size_is_counted():
    assert set(COUNTS) == set(PUBLISHED["bert"])


@pytest.mark.parametrize("size", COUNTS)
def test_parameter_counts(size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    found = (
        on_meta(lambda: Encoder(published("bert", size))),
        on_meta(lambda: bert(size)),
        on_meta(lambda: bert_for_pretraining(size)),
    )
    theirs = transformers_counts(published("bert", size))
    assert found == theirs
    for ours, printed in zip(found, COUNTS[size], strict=True):
        assert printed is None or ours == printed


def transformers_counts(c: BertConfig) -> tuple[int, int, int]:
    """transformers' own counts for the same settings: no pooler, with pooler, with heads."""
    config = transformers.BertConfig(
        vocab_size=c.vocab_size, hidden_size=c.hidden_size, num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads, intermediate_size=c.intermediate_size,
        max_position_embeddings=c.max_positions, type_vocab_size=c.type_vocab_size,
    )  # fmt: skip
    makers = (
        lambda: transformers.BertModel(config, add_pooling_layer=False),
        lambda: transformers.BertModel(config),
        lambda: transformers.BertForPreTraining(config),
    )
    bare, pooled, whole = map(on_meta, makers)
    return bare, pooled, whole


def test_the_parts_that_facts_name():
    """A block, the MLM head and the pair head of base and large."""
    with torch.device("meta"):
        base, large = bert_for_pretraining("base"), bert("large")
    assert count_parameters(base.encoder.stack.blocks[0]) == 7_087_872
    assert count_parameters(large.stack.blocks[0]) == 12_596_224
    assert count_parameters(base.mlm) == 622_650
    assert count_parameters(base.pair) == 1_538


# ---------------------------------------------------------------- the real MiniLM

TEXTS = (
    "The bank of the river was green, and the bank in the town was closed.",
    "Short.",
    "Attention is a weighted average; what it weighs is learned. " * 6,
)


@pytest.fixture(scope="module")
def minilm() -> Pretrained:
    try:
        return load_pretrained("all-MiniLM-L6-v2")
    except MissingCheckpoint as error:
        pytest.skip(str(error))


def minilm_batch(minilm: Pretrained) -> dict[str, Tensor]:
    assert minilm.tokenizer is not None
    rows = [[101, *minilm.tokenizer.encode(text), 102] for text in TEXTS]
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def their_minilm(minilm: Pretrained, attention: str, dtype: torch.dtype) -> Any:
    model = transformers.AutoModel.from_pretrained(
        minilm.path.parent, attn_implementation=attention, local_files_only=True
    )
    return model.to(dtype).eval()


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 2e-5), (torch.float64, 1e-10)], ids=["float32", "float64"]
)
@torch.no_grad()
def test_real_minilm(minilm: Pretrained, dtype: torch.dtype, bound: float):
    """Hidden states of real weights, layer by layer, beside transformers' own two ways."""
    batch = minilm_batch(minilm)
    real = batch["attention_mask"].bool()
    wanted = {"output_hidden_states": True, "output_attentions": True}
    eager = their_minilm(minilm, "eager", dtype)(**batch, **wanted)
    sdpa = their_minilm(minilm, "sdpa", dtype)(**batch, output_hidden_states=True)
    assert len(eager.attentions) == 6 and all(a is not None for a in eager.attentions)
    encoder = minilm.encoder.to(dtype)
    ours = encoder(**batch, **wanted)
    plain = encoder(**batch, output_hidden_states=True)
    minilm.encoder.to(torch.float32)
    assert len(ours.hidden_states) == len(eager.hidden_states) == 7
    layers = zip(ours.hidden_states, plain.hidden_states, eager.hidden_states, strict=True)
    for i, (kept, fast, reference) in enumerate(layers):
        distances = [(x[real] - reference[real]).abs().max().item() for x in (kept, fast)]
        between = (sdpa.hidden_states[i][real] - reference[real]).abs().max().item()
        print(f"layer {i}: ours {max(distances):.1e}, transformers eager to sdpa {between:.1e}")
        assert max(distances) <= bound
    for a, b in zip(ours.attentions, eager.attentions, strict=True):
        assert (a.transpose(1, 2)[real] - b.transpose(1, 2)[real]).abs().max() <= bound


def test_real_minilm_weights_go_there_and_back(minilm: Pretrained):
    theirs = to_transformers(minilm.encoder)
    original = their_minilm(minilm, "sdpa", torch.float32).state_dict()
    for name, value in theirs.state_dict().items():
        assert torch.equal(value, original[name]), name
    back = from_transformers(theirs).state_dict()
    assert all(torch.equal(v, back[n]) for n, v in minilm.encoder.state_dict().items())
    assert count_parameters(minilm.encoder) == 22_713_216


# ---------------------------------------------------------------- bad input


@pytest.fixture(scope="module")
def small() -> BertForPreTraining:
    return bert_for_pretraining("tiny", vocab_size=50, max_positions=16).eval()


@pytest.mark.parametrize("id", [-1, 50, 30_000])
def test_ids_outside_the_vocabulary(small: BertForPreTraining, id: int):
    with pytest.raises(ValueError, match=rf"input_ids .*{id}.* expected numbers from 0 to 49"):
        small(torch.tensor([[2, id, 3]]))
    with pytest.raises(ValueError, match=r"token_type_ids .* expected numbers from 0 to 1"):
        small(torch.tensor([[2, 3]]), token_type_ids=torch.tensor([[0, 2]]))


def test_text_longer_than_the_model(small: BertForPreTraining):
    assert small(torch.ones(1, 16, dtype=torch.long)).prediction_logits.shape == (1, 16, 50)
    with pytest.raises(ValueError, match=r"text of 17 tokens was given.* at most 16.*Cut it"):
        small(torch.ones(1, 17, dtype=torch.long))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (3,), (1, 2, 3)])
def test_empty_text_and_wrong_shape(small: BertForPreTraining, shape: tuple[int, ...]):
    with pytest.raises(ValueError, match=r"expected \(batch, tokens\) with at least one of each"):
        small(torch.zeros(shape, dtype=torch.long))


def test_wrong_mask_and_segments(small: BertForPreTraining):
    ids = torch.ones(2, 5, dtype=torch.long)
    for name in ("attention_mask", "token_type_ids"):
        with pytest.raises(ValueError, match=rf"{name} of shape \(2, 4\) was given; expected that"):
            small(ids, **{name: ids[:, :4]})


def test_hidden_size_that_heads_cannot_share():
    with pytest.raises(ValueError, match=r"hidden_size=100 .*num_heads=12; expected .* multiple"):
        BertConfig(hidden_size=100)


def test_a_text_that_is_only_padding_stays_finite(small: BertForPreTraining):
    ids = torch.ones(2, 5, dtype=torch.long)
    mask = torch.tensor([[1] * 5, [0] * 5])
    with torch.no_grad():
        outputs = small(ids, attention_mask=mask)
        alone = small(ids[:1])
    assert torch.isfinite(outputs.prediction_logits).all()
    assert distance(outputs.prediction_logits[:1], alone.prediction_logits) <= 1e-5
