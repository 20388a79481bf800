"""What is MobileBERT's own, by hand; and its teacher, which transformers cannot run, against a
plain version written here. That MobileBERT equals transformers' is tested in test_parity.py."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from parity import drawn_weights, on_meta
from torch import Tensor

from course_lib.checkpoints import CheckpointError, load, save, to_transformers
from course_lib.config import encoder_flops, published
from course_lib.encoder import Encoder, FirstToken, Pooler, count_parameters
from course_lib.family.mobilebert import (
    BottleneckAttention,
    MobileBertConfig,
    NoNorm,
    TrigramEmbeddings,
    copy_all_but_blocks,
    ib_bert,
    ib_bert_for_masked_lm,
    mobilebert,
    mobilebert_encoder,
)
from course_lib.heads import BertForClassification, BertForMaskedLM
from course_lib.train.finetuning import classifier_on
from course_lib.train.flops import forward_flops

SMALL: dict[str, Any] = {
    "vocab_size": 30, "hidden_size": 12, "num_layers": 3, "num_heads": 2, "intermediate_size": 10,
    "max_positions": 9, "embedding_size": 4, "bottleneck_size": 6,
    "hidden_dropout": 0.0, "attention_dropout": 0.0,
}  # fmt: skip
TEACHER: dict[str, Any] = {
    **SMALL, "bottleneck_size": 20, "intermediate_size": 30, "num_feed_forwards": 1,
    "attention_input": "wide", "normalization": "layer_norm", "hidden_act": "gelu",
}  # fmt: skip
IDS = torch.tensor([[2, 7, 8, 3, 0], [2, 5, 9, 6, 3]])
MASK = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])


def drawn(**settings: Any) -> Any:
    """A small model, every weight drawn, in float64."""
    config = MobileBertConfig(**{**SMALL, **settings})
    return drawn_weights(mobilebert_encoder(config), 0.1).double().eval()


# ---------------------------------------------------------------- how many parameters


def test_the_parts_of_a_block():
    """What the stacked feed-forwards are for: 1 part of attention to 2 of them, as in BERT."""
    with torch.device("meta"):
        block: Any = mobilebert().stack.blocks[0]
    H, N, FF = 512, 128, 512
    dense = H * N + N + 2 * N  # into the bottleneck: matrix, bias, γ and β
    assert count_parameters(block.enter) == count_parameters(block.shared) == dense
    attention = 3 * (N * N + N) + H * N + N
    assert count_parameters(block.attention) == attention == 115_200
    one = 2 * N * FF + FF + N
    assert count_parameters(block.stacked[0]) == one + 2 * N
    assert count_parameters(block) == 2 * dense + attention + 2 * N + 4 * (one + 2 * N) + (
        N * H + H + 2 * H
    )
    assert 4 * one / (attention + 2 * dense) == pytest.approx(2.1, abs=0.1)
    assert one / (attention + 2 * dense) == pytest.approx(0.5, abs=0.1)


def test_the_teacher_has_three_tenths_of_a_billion():
    V, E, H, N, FF, L = 30_522, 128, 512, 1_024, 4_096, 24
    embeddings = V * E + 3 * E * H + H + (512 + 2) * H + 2 * H
    block = (H * N + N + 2 * N) + 3 * (H * N + N) + (N * N + N + 2 * N)
    block += (2 * N * FF + FF + N + 2 * N) + (N * H + H + 2 * H)
    assert on_meta(lambda: ib_bert(pooler=False)) == embeddings + L * block == 294_205_184
    head = H * H + H + 2 * H + V + V * (H - E)
    assert on_meta(ib_bert_for_masked_lm) == embeddings + L * block + head


# ---------------------------------------------------------------- the teacher, written plainly


def plain_teacher(weights: dict[str, Tensor], config: MobileBertConfig, at: str = "") -> Tensor:
    """Last states (B, T, H) of IB-BERT for IDS and MASK, in one function, from its weights."""

    def dense(x: Tensor, name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + config.layer_norm_eps).sqrt()
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    table = weights["embeddings.token.weight"]
    rows = []
    for text in IDS.tolist():
        vectors = [
            torch.zeros_like(table[0]),
            *(table[i] for i in text),
            torch.zeros_like(table[0]),
        ]
        triples = zip(vectors[2:], vectors[1:-1], vectors[:-2], strict=True)
        rows.append(torch.stack([torch.cat(triple) for triple in triples]))
    x = dense(torch.stack(rows), "embeddings.project")
    x = x + weights["embeddings.position.weight"][:5] + weights["embeddings.segment.weight"][0]
    x = norm(x, "embeddings.norm")
    size = config.bottleneck_size // config.num_heads
    for layer in range(config.num_layers):
        b = f"stack.blocks.{layer}"
        inside = norm(dense(x, f"{b}.enter.dense"), f"{b}.enter.norm")
        heads = []
        for h in range(config.num_heads):
            part = slice(h * size, (h + 1) * size)
            q, k, v = (
                dense(x, f"{b}.attention.{name}")[..., part] for name in ("query", "key", "value")
            )
            scores = q @ k.transpose(1, 2) / math.sqrt(size)
            scores = scores.masked_fill(MASK[:, None] == 0, -torch.inf)
            heads.append(scores.softmax(-1) @ v)
        attended = dense(torch.cat(heads, -1), f"{b}.attention.output")
        inside = norm(inside + attended, f"{b}.attention_norm")
        wide = F.gelu(dense(inside, f"{b}.feed_forward.expand"))
        fed = inside + dense(wide, f"{b}.feed_forward.contract")
        inside = norm(fed, f"{b}.feed_forward_norm")
        x = norm(x + dense(inside, f"{b}.leave"), f"{b}.output_norm")
    return x


def test_the_teacher_equals_the_plain_version_in_states_and_gradients():
    ours = drawn(**TEACHER)
    weights = {n: p.detach().clone().requires_grad_() for n, p in ours.named_parameters()}
    plain, states = plain_teacher(weights, ours.config), ours(IDS, MASK).last_hidden_state
    real = MASK.bool()
    assert (plain - states)[real].abs().max() < 1e-12
    target = torch.randn(states.shape, generator=torch.Generator().manual_seed(5)).double()
    for found in (plain, states):
        (found - target)[real].square().mean().backward()
    with torch.no_grad():  # the padding's row stays as it is, though the trigram reads it
        weights["embeddings.token.weight"].grad[0] = 0.0  # type: ignore[index]
    for name, parameter in ours.named_parameters():
        assert (parameter.grad - weights[name].grad).abs().max() < 1e-12, name


def test_the_comparison_sees_the_values_read_elsewhere():
    """Of equal widths N = H, what attention reads cannot be told from shapes."""
    same = {**TEACHER, "bottleneck_size": 12}
    ours = drawn(**same)
    other = drawn(**{**same, "attention_input": "bottleneck"})
    other.load_state_dict(ours.state_dict())
    plain = plain_teacher(ours.state_dict(), ours.config)
    apart = [
        (m(IDS, MASK).last_hidden_state - plain)[MASK.bool()].abs().max() for m in (ours, other)
    ]
    assert apart[0] < 1e-12 < 1e-3 < apart[1]


# ---------------------------------------------------------------- embeddings, norms, pooler


def test_the_trigram_is_next_own_previous():
    config = MobileBertConfig(**{**SMALL, "hidden_size": 4, "embedding_size": 1})
    part = TrigramEmbeddings(config)
    with torch.no_grad():
        for parameter in part.parameters():
            parameter.zero_()
        part.norm.weight.fill_(1.0)  # type: ignore[union-attr, operator]
        part.token.weight[:, 0] = torch.arange(30.0)
        part.project.weight[:3] = torch.eye(3)
    expected = [[7, 2, 0, 0], [8, 7, 2, 0], [3, 8, 7, 0], [0, 3, 8, 0], [0, 0, 3, 0]]
    assert part(IDS)[0].tolist() == expected
    stages = part.parts(IDS)
    assert list(stages) == ["token", "segment", "position", "sum", "normed"]
    assert all(stage.shape == (2, 5, 4) for stage in stages.values())


def test_the_trigram_reads_the_padding():
    """So the last word of a padded text is another than alone, once [PAD] has a vector."""
    ours = drawn()

    def apart() -> float:
        padded = ours(IDS[:1], MASK[:1]).last_hidden_state[:, :4]
        return (padded - ours(IDS[:1, :4]).last_hidden_state).abs().max().item()

    assert apart() > 1e-4
    with torch.no_grad():
        ours.embeddings.token.weight[0] = 0.0  # as at random initialisation
    assert apart() < 1e-12


def test_no_norm_scales_and_shifts():
    part = NoNorm(3)
    x = torch.tensor([[1.0, -2.0, 4.0]])
    assert torch.equal(part(x), x)
    with torch.no_grad():
        part.weight.copy_(torch.tensor([2.0, 1.0, 0.5]))
        part.bias.copy_(torch.tensor([0.0, 1.0, -1.0]))
    assert part(x).tolist() == [[2.0, -1.0, 1.0]]
    assert part(10 * x).tolist() == [[20.0, -19.0, 19.0]]  # a LayerNorm would not see the 10


def test_states_without_layer_norm_are_not_held():
    """Twice the weights: a LayerNorm brings each vector back to one length, NoNorm does not."""
    lengths = {}
    for kind in ("no_norm", "layer_norm"):
        model = mobilebert_encoder(MobileBertConfig(**{**SMALL, "normalization": kind}))
        norms = [m for m in model.modules() if isinstance(m, torch.nn.LayerNorm)]
        assert bool(norms) == (kind == "layer_norm")
        with torch.no_grad():
            for module in model.modules():
                if isinstance(module, torch.nn.Embedding | torch.nn.Linear):
                    module.weight.mul_(40)
            lengths[kind] = model(IDS).last_hidden_state.norm(dim=-1).max().item()
    assert lengths["layer_norm"] == pytest.approx(math.sqrt(12), rel=1e-3)
    assert lengths["no_norm"] > 5 * lengths["layer_norm"]


def test_the_pooler_is_the_first_state_or_berts():
    ours = drawn()
    assert isinstance(ours.pooler, FirstToken) and count_parameters(ours.pooler) == 0
    out = ours(IDS, MASK)
    assert torch.equal(out.pooler_output, out.last_hidden_state[:, 0])
    dense = drawn(classifier_activation=True)
    first = dense(IDS, MASK).last_hidden_state[:, 0]
    assert torch.allclose(dense(IDS, MASK).pooler_output, torch.tanh(dense.pooler.dense(first)))


def test_fine_tuning_adds_the_pooler_of_the_configuration():
    for activation, kind in ((False, FirstToken), (True, Pooler)):
        config = MobileBertConfig(**SMALL, classifier_activation=activation)
        model = classifier_on(mobilebert_encoder(config, pooler=False), 3)
        assert type(model.encoder.pooler) is kind
        assert model(IDS, MASK).logits.shape == (2, 3)
        to_transformers(model)


def test_a_pooler_without_weights_is_stored(tmp_path: Path):
    for model in (drawn(), BertForClassification(drawn(), 3).double()):
        save(model, tmp_path / "m.safetensors")
        again = load(tmp_path / "m.safetensors")
        assert isinstance(getattr(again, "encoder", again).pooler, FirstToken)
    save(BertForMaskedLM(drawn()), tmp_path / "m.safetensors")
    assert load(tmp_path / "m.safetensors").encoder.pooler is None  # type: ignore[union-attr]


# ---------------------------------------------------------------- hidden keys


def weights_of(masked_score: float | None) -> Tensor:
    """Attention weights (B, A, T, T) where every real score is 0."""
    config = MobileBertConfig(**{**SMALL, "masked_score": masked_score})
    part = BottleneckAttention(config)
    with torch.no_grad():
        part.query.weight.zero_()
        part.query.bias.zero_()
    x, wide = torch.randn(2, 5, 6), torch.randn(2, 5, 12)
    _, weights, scores = part(x, MASK, output_attentions=True, value_states=wide)
    assert weights is not None and scores is not None
    assert (scores[:, :, :, :4] == 0).all()
    return weights[0, 0, 0]


def test_a_hidden_key_keeps_a_four_hundredth():
    assert weights_of(None).tolist() == [0.25, 0.25, 0.25, 0.25, 0.0]
    rest = math.exp(-6)
    expected = [1 / (4 + rest)] * 4 + [rest / (4 + rest)]
    assert weights_of(-6.0).tolist() == pytest.approx(expected, rel=1e-5)


def test_minus_six_lets_padding_through():
    """Five positions of padding more: nothing changes with −∞, something with −6."""
    longer = F.pad(IDS, (0, 4)), F.pad(MASK, (0, 4))
    apart = {}
    for score in (None, -6.0):
        ours = drawn(masked_score=score)
        with torch.no_grad():
            ours.embeddings.token.weight[0] = 0.0  # the trigram has its own part in it
        short, long = ours(IDS, MASK), ours(*longer)
        real = MASK.bool()
        gap = (short.last_hidden_state - long.last_hidden_state[:, :5])[real]
        apart[score] = gap.abs().max().item()
        alone = ours(IDS, MASK, output_attentions=True).last_hidden_state
        assert torch.allclose(alone, short.last_hidden_state, atol=1e-12)  # asked for or not
    assert apart[None] < 1e-12 and apart[-6.0] > 1e-5


def test_padding_is_removed_where_it_has_no_weight():
    ours = drawn()
    whole, packed = ours(IDS, MASK), ours(IDS, MASK, remove_padding=True)
    gap = (whole.last_hidden_state - packed.last_hidden_state)[MASK.bool()]
    assert gap.abs().max() < 1e-12
    with pytest.raises(ValueError, match=r"remove_padding=True .* masked_score=-6\.0; expected"):
        drawn(masked_score=-6.0)(IDS, MASK, remove_padding=True)


# ---------------------------------------------------------------- the start, and refusals


def test_what_is_not_in_the_blocks_begins_as_the_teachers():
    student = BertForMaskedLM(mobilebert_encoder(MobileBertConfig(**SMALL), pooler=False))
    teacher = BertForMaskedLM(mobilebert_encoder(MobileBertConfig(**TEACHER), pooler=False))
    drawn_weights(teacher, 0.2)
    blocks = {n: v.clone() for n, v in student.encoder.stack.state_dict().items()}
    assert copy_all_but_blocks(student, teacher) is student
    ours, theirs = student.state_dict(), teacher.state_dict()
    for name in ours:
        if "stack" not in name and "embeddings.norm" not in name:
            assert torch.equal(ours[name], theirs[name]), name
    assert torch.equal(ours["encoder.embeddings.norm.weight"], torch.ones(12))
    assert all(torch.equal(v, blocks[n]) for n, v in student.encoder.stack.state_dict().items())
    other = BertForMaskedLM(mobilebert_encoder(MobileBertConfig(**{**TEACHER, "hidden_size": 14})))
    with pytest.raises(ValueError, match=r"hidden_size=12 and a teacher with 14 .* same"):
        copy_all_but_blocks(student, other)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (TEACHER, "attention_input='wide' was given, as its teacher has it; transformers has no"),
        ({"normalization": "layer_norm"}, r"layer_norm_eps=1e-12 was given; only 1e-5 means the"),
        ({"masked_score": -6.0}, r"masked_score=-6\.0; only None means the same here"),
    ],
)
def test_what_transformers_cannot_compute_is_not_given_to_it(settings: dict[str, Any], says: str):
    with pytest.raises(CheckpointError, match=says):
        to_transformers(drawn(**settings))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"embedding_size": 12}, r"embedding_size=12 was given; expected less than hidden_size=12"),
        ({"bottleneck_size": 7}, r"bottleneck_size=7 cannot be shared out to num_heads=2"),
        ({"bottleneck_size": 0}, "bottleneck_size=0 was given; expected a whole number"),
        ({"num_feed_forwards": 0}, "num_feed_forwards=0 was given; expected a whole number"),
        ({"normalization": "none"}, "normalization='none' .* one of no_norm, layer_norm"),
        ({"attention_input": "narrow"}, "'narrow' .* one of shared, wide, bottleneck"),
        ({"hidden_act": "tanh"}, "'tanh' .* 'gelu' or 'gelu_new' or 'relu'"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        MobileBertConfig(**{**SMALL, **settings})


def test_flops_counted_on_shapes():
    """Of BERT what the formula says; of MobileBERT a quarter of it, by hand."""
    base = published("bert", "base")
    assert forward_flops(lambda: Encoder(base), 128) == encoder_flops(base, 128)
    H, N, FF, E, L, T = 512, 128, 512, 128, 24, 128
    dense = 2 * H * N + 2 * N * N + H * N + N * N + 4 * 2 * N * FF + N * H
    by_hand = 2 * T * (3 * E * H + L * dense) + L * 2 * 2 * T * T * N
    assert forward_flops(mobilebert, T) == by_hand
    assert by_hand / encoder_flops(base, T) == pytest.approx(0.24, abs=0.01)
