"""BERT is equal to transformers' BertForPreTraining: outputs, gradients, weights there and back.

Configurations are drawn. Only real rows (positions that are not padding) are compared; dropout is
off. Outputs: max|difference| <= tol * max(1, max|reference|). Gradients of a mean loss: every entry
within tol of the model's largest gradient entry. tol is 1e-5 in float32, 1e-10 in float64.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checkpoints import (
    MissingCheckpoint,
    Pretrained,
    from_transformers,
    load_pretrained,
    their_name,
    to_transformers,
)
from course_lib.config import PUBLISHED, BertConfig, published
from course_lib.encoder import Encoder, Pooler, count_parameters
from course_lib.family.bert import bert, bert_for_pretraining
from course_lib.heads import BertForPreTraining

transformers = pytest.importorskip("transformers")

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
DRAWN = range(12)


class Case(NamedTuple):
    """A drawn configuration, its weights' standard deviation, and a batch for it."""

    config: BertConfig
    sd: float
    inputs: dict[str, Tensor]
    labels: Tensor  # (B, T), -100 where nothing is asked
    pair: Tensor  # (B,)

    @property
    def real(self) -> Tensor:
        return self.inputs["attention_mask"].bool()


def draw_case(seed: int, narrow: bool = False) -> Case:
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3, 5, 7])
    hidden = heads * (1 if narrow else draw.choice([8, 9, 11]))
    config = BertConfig(
        vocab_size=draw.randint(20, 150),
        hidden_size=hidden,
        num_layers=draw.randint(1, 4),
        num_heads=heads,
        intermediate_size=draw.randint(5, 4 * hidden),
        max_positions=draw.randint(33, 50),
        type_vocab_size=draw.choice([2, 3]),
        hidden_dropout=0.0,
        attention_dropout=0.0,
    )
    batch = 1 if seed % 4 == 0 else draw.randint(2, 5)
    tokens = draw.choice([1, 7, 13, 24, 33])
    make = torch.Generator().manual_seed(seed)

    def numbers(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=make)

    lengths = 1 + numbers(tokens, batch)
    if seed % 3 == 0:
        lengths[:] = tokens  # a batch without padding
    mask = (torch.arange(tokens) < lengths[:, None]).long()
    ids = numbers(config.vocab_size, batch, tokens)
    inputs = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": numbers(config.type_vocab_size, batch, tokens),
    }
    asked = (torch.rand((batch, tokens), generator=make) < 0.3) & mask.bool()
    asked[0, 0] = True
    labels = torch.where(asked, numbers(config.vocab_size, batch, tokens), -100)
    return Case(config, draw.uniform(0.02, 0.3), inputs, labels, numbers(2, batch))


def pair_of_models(case: Case, dtype: torch.dtype) -> tuple[BertForPreTraining, Any]:
    """Ours with drawn weights (every bias and LayerNorm too), and transformers' with the same."""
    torch.manual_seed(1)
    ours = BertForPreTraining(Encoder(case.config, pooler=Pooler(case.config)))
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.normal_(centre, case.sd)
    ours = ours.to(dtype).eval()
    return ours, to_transformers(ours, attention="eager")


def run(model: Any, case: Case, **more: bool) -> Any:
    return model(**case.inputs, output_hidden_states=True, output_attentions=True, **more)


def loss_of(outputs: Any, case: Case) -> Tensor:
    """Mean over the chosen positions plus mean over the pairs: BERT's joint loss."""
    mlm = F.cross_entropy(outputs.prediction_logits.flatten(0, 1), case.labels.flatten())
    return mlm + F.cross_entropy(outputs.seq_relationship_logits, case.pair)


def distance(ours: Tensor, reference: Tensor) -> float:
    """max|difference| / max(1, max|reference|)."""
    assert ours.shape == reference.shape
    assert torch.isfinite(reference).all() and torch.isfinite(ours).all()
    return ((ours - reference).abs().max() / reference.abs().max().clamp(min=1)).item()


def output_distances(ours: Any, theirs: Any, case: Case, scores: tuple | None) -> dict[str, float]:
    """The distance of every output, on real rows."""
    assert len(theirs.attentions) == case.config.num_layers  # sdpa would have returned none
    assert len(ours.attentions) == len(theirs.attentions)
    assert len(ours.hidden_states) == len(theirs.hidden_states) == case.config.num_layers + 1
    real = case.real

    def rows(weights: Tensor) -> Tensor:
        return weights.transpose(1, 2)[real]  # (B, A, T, T) -> (real queries, A, T)

    found = {
        "prediction_logits": distance(ours.prediction_logits[real], theirs.prediction_logits[real]),
        "pair_logits": distance(ours.seq_relationship_logits, theirs.seq_relationship_logits),
    }
    for i, (a, b) in enumerate(zip(ours.hidden_states, theirs.hidden_states, strict=True)):
        found[f"hidden_states {i}"] = distance(a[real], b[real])
    for i, (a, b) in enumerate(zip(ours.attentions, theirs.attentions, strict=True)):
        found[f"attentions {i}"] = distance(rows(a), rows(b))
    for i, (a, b) in enumerate(zip(ours.attention_scores or (), scores or (), strict=True)):
        key = real[:, None, None, :].expand_as(a)  # hidden keys hold "minus infinity" in both
        found[f"attention_scores {i}"] = distance(rows(a * key), rows(b * key))
    return found


def scores_of(reference: Any, case: Case) -> tuple[Tensor, ...]:
    """transformers' scores before the softmax, from its own query and key projections."""
    projected: list[Tensor] = []

    def keep(_module: Any, _inputs: Any, output: Tensor) -> None:
        batch, tokens, _ = output.shape
        projected.append(output.view(batch, tokens, case.config.num_heads, -1).transpose(1, 2))

    layers = [layer.attention.self for layer in reference.bert.encoder.layer]
    hooks = [part.register_forward_hook(keep) for s in layers for part in (s.query, s.key)]
    reference(**case.inputs)
    for hook in hooks:
        hook.remove()
    scale = case.config.head_size**-0.5
    pairs = zip(projected[::2], projected[1::2], strict=True)
    return tuple(query @ key.transpose(-1, -2) * scale for query, key in pairs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("seed", DRAWN)
def test_outputs(seed: int, dtype: torch.dtype):
    case = draw_case(seed)
    ours, theirs = pair_of_models(case, dtype)
    with torch.no_grad():
        scores = scores_of(theirs, case)
        mine = run(ours, case, output_attention_scores=True)
        found = output_distances(mine, run(theirs, case), case, scores)
        pooled = ours.encoder(**case.inputs).pooler_output
        found["pooler"] = distance(pooled, theirs.bert(**case.inputs).pooler_output)
        plain = ours(**case.inputs).prediction_logits  # the path that keeps no weights
        found["without weights"] = distance(plain[case.real], mine.prediction_logits[case.real])
    worst = max(found, key=found.__getitem__)
    print(f"largest distance {found[worst]:.1e} ({worst})")
    assert found[worst] <= TOLERANCE[dtype], worst


@pytest.mark.parametrize("seed", range(100, 104))
def test_narrow_models(seed: int):
    """Below width 8, LayerNorm's tiny epsilon leaves only outputs in float64 meaningful."""
    case = draw_case(seed, narrow=True)
    assert case.config.hidden_size < 8
    ours, theirs = pair_of_models(case, torch.float64)
    with torch.no_grad():
        found = output_distances(run(ours, case), run(theirs, case), case, None)
    assert max(found.values()) <= TOLERANCE[torch.float64]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("seed", DRAWN)
def test_gradients(seed: int, dtype: torch.dtype):
    case = draw_case(seed)
    ours, theirs = pair_of_models(case, dtype)
    for model in (ours, theirs):
        loss_of(model(**case.inputs), case).backward()
    worst = gradient_distance(ours, theirs)
    print(f"largest distance {worst:.1e} of the largest gradient entry")
    assert worst <= TOLERANCE[dtype]


def gradient_distance(ours: BertForPreTraining, theirs: Any) -> float:
    """max|difference| over every entry of every gradient, in parts of the largest entry."""
    reference = {n.removeprefix("bert."): p.grad for n, p in theirs.named_parameters()}
    found = {their_name(n): p.grad for n, p in ours.named_parameters()}
    assert found.keys() == reference.keys()
    assert all(torch.isfinite(grad).all() for grad in (*found.values(), *reference.values()))
    largest = max(grad.abs().max().item() for grad in reference.values())
    assert largest > 0
    return max((found[n] - grad).abs().max().item() for n, grad in reference.items()) / largest


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("seed", range(20, 26))
def test_predicting_only_chosen_positions(seed: int, dtype: torch.dtype):
    """With predict_at: the same scores there, the same loss and the same gradients."""
    case = draw_case(seed)
    ours, theirs = pair_of_models(case, dtype)
    at = (case.labels.flatten() != -100).nonzero()[:, 0]
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
    ours, theirs = pair_of_models(case, torch.float32)
    with torch.no_grad():
        ours.encoder.stack.blocks[0].attention.key.weight[0, 0] += 1e-3
        found = output_distances(run(ours, case), run(theirs, case), case, None)
    assert max(found.values()) > TOLERANCE[torch.float32]


# ---------------------------------------------------------------- weights there and back


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", ["pretraining", "encoder", "no pooler"])
def test_weights_there_and_back_are_bit_identical(kind: str, dtype: torch.dtype):
    config = draw_case(2).config
    pooler = None if kind == "no pooler" else Pooler(config)
    ours: Any = Encoder(config, pooler=pooler)
    ours = (BertForPreTraining(ours) if kind == "pretraining" else ours).to(dtype)
    theirs = to_transformers(ours)
    assert theirs.config._attn_implementation == "sdpa"
    back = from_transformers(theirs)
    assert type(back) is type(ours) and (ours.config == back.config)
    assert back.training == ours.training
    first, second = ours.state_dict(), back.state_dict()
    assert list(first) == list(second)
    for name, value in first.items():
        assert second[name].dtype == dtype and torch.equal(value, second[name]), name
    again = to_transformers(back).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in theirs.state_dict().items())


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
    with torch.device("meta"):
        whole = bert_for_pretraining(size)
        encoder = bert(size)
        bare = Encoder(published("bert", size))
        found = tuple(map(count_parameters, (bare, encoder, whole)))
        theirs = to_transformers_meta(whole)
    assert found == theirs
    for ours, printed in zip(found, COUNTS[size], strict=True):
        assert printed is None or ours == printed


def to_transformers_meta(model: BertForPreTraining) -> tuple[int, int, int]:
    """transformers' own counts for the same settings: no pooler, with pooler, with heads."""
    c = model.config
    config = transformers.BertConfig(
        vocab_size=c.vocab_size, hidden_size=c.hidden_size, num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads, intermediate_size=c.intermediate_size,
        max_position_embeddings=c.max_positions, type_vocab_size=c.type_vocab_size,
    )  # fmt: skip
    models = (
        transformers.BertModel(config, add_pooling_layer=False),
        transformers.BertModel(config),
        transformers.BertForPreTraining(config),
    )
    bare, pooled, whole = (sum(p.numel() for p in m.parameters()) for m in models)
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
    asked = {"output_hidden_states": True, "output_attentions": True}
    eager = their_minilm(minilm, "eager", dtype)(**batch, **asked)
    sdpa = their_minilm(minilm, "sdpa", dtype)(**batch, output_hidden_states=True)
    assert len(eager.attentions) == 6 and all(a is not None for a in eager.attentions)
    encoder = minilm.encoder.to(dtype)
    ours = encoder(**batch, **asked)
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
