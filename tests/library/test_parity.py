"""Every member of the family is equal to transformers: outputs, hidden states, attention weights,
gradients, weights there and back, counts. What "equal" means, and how models are drawn, is said in
parity.py; what the members are, in members.py."""

from __future__ import annotations

import math
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from members import DEBERTA, MEMBERS
from parity import (
    TOLERANCE,
    all_distances,
    answer,
    assert_loaded,
    assert_saved_and_loaded,
    assert_there_and_back,
    both_backward,
    both_precisions,
    chosen_against_full,
    draw_case,
    drawn_weights,
    largest,
    last_distances,
    on_meta,
    output_distances,
    pair_of_models,
    positions_against_full,
    run,
)

from course_lib.checkpoints import (
    FAMILIES,
    from_transformers,
    load_pretrained,
    their_name,
    to_transformers,
)
from course_lib.config import PUBLISHED, BertConfig, published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.albert import AlbertConfig
from course_lib.family.bert import bert, bert_for_pretraining
from course_lib.family.deberta import DebertaConfig, DebertaV2Config
from course_lib.family.distilbert import DistilBertConfig, distilbert
from course_lib.family.electra import ElectraConfig
from course_lib.family.roberta import RobertaConfig, roberta
from course_lib.family.tinybert import fit_matrix, tinybert
from course_lib.family.xlm import XlmConfig
from course_lib.teaching.compare import SHORT_SUMS, _batch, compare

transformers = pytest.importorskip("transformers")

KINDS = [(name, kind) for name, row in MEMBERS.items() for kind in row.kinds]
every_member = pytest.mark.parametrize("name", MEMBERS)
every_published = pytest.mark.parametrize("name", [n for n in MEMBERS if MEMBERS[n].published])
every_kind = pytest.mark.parametrize(("name", "kind"), KINDS)


def drawn(name: str, kind: str, seed: int = 2) -> Any:
    """A model with every weight drawn."""
    case = MEMBERS[name].case(seed)
    return drawn_weights(MEMBERS[name].make(kind, case.config), case.sd)


# ---------------------------------------------------------------- outputs and gradients


@every_member
def test_the_drawn_cases_hold_every_kind(name: str):
    row = MEMBERS[name]
    cases = [row.case(seed) for seed in row.seeds]
    for what, (value, expected) in row.varied.items():
        assert {value(case) for case in cases} == expected, what
    if len(cases) > 2:
        assert {bool(case.real.all()) for case in cases} == {False, True}
        assert any(len(case.mask) == 1 for case in cases)
        assert any(case.mask.shape[1] % 2 for case in cases)
        assert any(case.config.num_heads % 2 for case in cases)


@both_precisions
@pytest.mark.parametrize(
    ("name", "kind", "seed"),
    [
        (name, kind, seed)
        for name, kind in KINDS
        if kind != "bare"  # an encoder whose pooler is left out is the same one under a head
        for seed in MEMBERS[name].seeds
    ],
)
def test_equal_to_the_reference(name: str, kind: str, seed: int, dtype: torch.dtype):
    row = MEMBERS[name]
    case = row.case(seed, dtype)
    ours, theirs = pair_of_models(partial(row.make, kind), case, dtype)
    assert type(theirs).__name__ == row.kinds[kind].theirs
    found = all_distances(ours, theirs, case, row.scores)
    found["gradients"] = both_backward(ours, theirs, case, row.kinds[kind].loss)
    assert largest(found) <= row.bound[dtype]


@both_precisions
@pytest.mark.parametrize(
    ("name", "kind", "seed"),
    [
        (name, kind, 20 + seed)
        for name, kind in KINDS
        if kind in ("pretraining", "masked", "generator", "encoder")
        for seed in range(len(MEMBERS[name].seeds) // 2)
    ],
)
def test_only_where_something_is_selected(name: str, kind: str, seed: int, dtype: torch.dtype):
    """Of one model with and without, so float64 is exact in every family."""
    row = MEMBERS[name]
    case = row.case(seed, dtype)
    ours = drawn_weights(row.make(kind, case.config), case.sd).to(dtype).eval()
    part_against_full = positions_against_full if kind == "encoder" else chosen_against_full
    assert largest(part_against_full(ours, case)) <= TOLERANCE[dtype]


@pytest.mark.parametrize("seed", range(100, 104))
def test_narrow_models(seed: int):
    """Below width 8, LayerNorm's tiny epsilon leaves only outputs in float64 meaningful."""
    case = draw_case(seed, narrow=True)
    assert case.config.hidden_size < 8
    ours, theirs = pair_of_models(partial(MEMBERS["bert"].make, "pretraining"), case, torch.float64)
    assert largest(all_distances(ours, theirs, case)) <= TOLERANCE[torch.float64]


@every_member
@torch.no_grad()
def test_a_difference_is_seen(name: str):
    """The comparison itself can fail, and for what is this member's own."""
    row = MEMBERS[name]
    cases = (row.case(seed, torch.float64) for seed in row.seeds)
    case = next(c for c in cases if c.config.num_layers > 1 and getattr(c.config, "terms", True))
    ours, theirs = pair_of_models(partial(row.make, next(iter(row.kinds))), case, torch.float64)
    row.spoil(ours, case)
    found = output_distances(run(ours, case), run(theirs, case), case)
    assert largest(found) > TOLERANCE[torch.float32]


# ---------------------------------------------------------------- weights there and back


FORMATS = (torch.float32, torch.float64, torch.bfloat16)


@every_kind
def test_weights_there_and_back_are_bit_identical(name: str, kind: str):
    for seed in MEMBERS[name].seeds:
        ours = drawn(name, kind, seed).to(FORMATS[seed % 3]).train(seed % 2 == 0)
        assert assert_there_and_back(ours).config == ours.config


@every_kind
def test_saved_and_loaded(tmp_path: Path, name: str, kind: str):
    """In our format, and as transformers writes a folder."""
    for i, seed in enumerate(MEMBERS[name].seeds[::3]):
        ours = drawn(name, kind, seed).to(FORMATS[i % 3])
        assert_saved_and_loaded(ours, tmp_path / "m.safetensors")
        to_transformers(ours).save_pretrained(tmp_path / "f")
        half = FORMATS[i % 3] == torch.bfloat16  # such numbers save space on a disk
        assert_loaded(load_pretrained(tmp_path / "f"), ours.float() if half else ours)
        shutil.rmtree(tmp_path / "f")


THEIR_SIZES = {
    "vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 50, "max_position_embeddings": 30,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind", "began"),
    [(name, kind, i) for name, kind in KINDS for i in range(len(MEMBERS[name].began))],
)
@torch.no_grad()
def test_a_model_that_began_in_transformers(name: str, kind: str, began: int):
    written, meant = MEMBERS[name].began[began]
    made = getattr(transformers, MEMBERS[name].kinds[kind].theirs)
    theirs = drawn_weights(made(made.config_class(**THEIR_SIZES, **written)), 0.2).eval()
    ours, again = from_transformers(theirs), to_transformers(from_transformers(theirs))
    assert {setting: getattr(ours.config, setting) for setting in meant} == meant
    assert all(p.requires_grad for p in ours.parameters())
    assert not getattr(again.config, "legacy", False)  # back under the name that was released
    if name == "albert":  # a tenth in transformers, kept though our pair head has no dropout
        assert again.config.classifier_dropout_prob == 0.1
    ids = torch.randint(40, (3, 15), generator=torch.Generator().manual_seed(4))
    ids[0, 3] = 1  # what is padding to some, amid a text
    case = draw_case(0)._replace(inputs={"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    if ours.config.type_vocab_size > 2:  # XLM adds no language where none is told
        case.inputs["token_type_ids"] = torch.zeros_like(ids)
    expected, base = answer(theirs, case), theirs.base_model
    assert largest(last_distances(ours(ids), expected, case)) <= 1e-5
    assert largest(last_distances(answer(again, case), expected, case)) <= 1e-6
    alone = from_transformers(base)
    assert isinstance(alone, Encoder) and alone.config == ours.config
    assert largest(last_distances(alone(ids), answer(base, case), case)) <= 1e-5


# ---------------------------------------------------------------- compare


@pytest.mark.parametrize("seed", [2, 5])
@every_kind
def test_compare_finds_it_equal(name: str, kind: str, seed: int):
    ours = drawn(name, kind, seed)
    found = compare(ours, sequences=3, length=99)
    assert found.equal and found.our_parameters == count_parameters(ours)
    longest, kinds = ours.config.longest_text, ours.config.type_vocab_size
    assert f"3 sequences of up to {longest} tokens" in found.batch
    assert ("two segments" in found.batch) == (kinds > 1)
    exact = compare(ours.double())
    # Parts of transformers' models of these are float32 whatever the weights are.
    short = MEMBERS[name].family in SHORT_SUMS
    assert exact.equal and exact.tolerance == (1e-5 if short else 1e-10)
    theirs = to_transformers(ours.float())
    last = len(getattr(ours, "encoder", ours).stack.blocks) - 1
    changed = f"stack.blocks.{last}.feed_forward.expand.weight"
    changed = their_name(changed, FAMILIES[MEMBERS[name].family])
    with torch.no_grad():
        theirs.base_model.get_parameter(changed).add_(0.1)  # one unit alone may rest under a ReLU
    unequal = compare(ours, theirs)
    assert not unequal.equal and unequal.gradient_difference > 1e-4


@pytest.mark.parametrize(
    ("name", "kind", "changed"),
    [
        ("albert", "pretraining", "sop_classifier.classifier.bias"),
        ("albert", "pretraining", "predictions.bias"),
        ("electra", "discriminator", "discriminator_predictions.dense.bias"),
        ("electra", "discriminator", "discriminator_predictions.dense_prediction.bias"),
    ],
)
def test_compare_looks_at_every_head(name: str, kind: str, changed: str):
    ours = drawn(name, kind)
    theirs = to_transformers(ours)
    with torch.no_grad():
        theirs.get_parameter(changed)[0] += 0.5
    assert compare(ours, theirs).output_difference > 1e-3


def test_compare_looks_at_real_tokens_only():
    """A discriminator has one score a token: those of the padding count no more than elsewhere."""
    ours = drawn("electra", "discriminator")
    theirs = to_transformers(ours)
    with torch.no_grad():  # no text of the batch has this id
        theirs.electra.embeddings.word_embeddings.weight[ours.config.pad_token_id] += 1
    assert compare(ours, theirs).output_difference <= 1e-5


def test_compare_draws_no_padding_into_the_text():
    config = RobertaConfig(vocab_size=3)
    for seed in range(20):
        batch = _batch(config, 4, 16, seed)
        assert torch.equal(batch["input_ids"] != config.pad_token_id, batch["attention_mask"] == 1)
        assert not batch["token_type_ids"].any()  # RoBERTa has one segment
    assert set(_batch(DistilBertConfig(), 2, 8, 0)) == {"input_ids", "attention_mask"}


def test_compare_refuses_another_model():
    with pytest.raises(ValueError, match=r"other weights than ours, first pooler\.dense\.weight"):
        compare(drawn("roberta", "encoder"), to_transformers(drawn("roberta", "bare")))


# ---------------------------------------------------------------- parameter counts


@pytest.mark.parametrize(
    ("name", "size"),
    [(name, size) for name, row in MEMBERS.items() for size in PUBLISHED.get(row.published, ())],
)
def test_parameter_counts(name: str, size: str):
    """To the last unit, against the printed numbers and against transformers; no memory is used."""
    named = [kind for kind in MEMBERS[name].kinds.values() if kind.by_name]
    for kind, printed in zip(named, MEMBERS[name].counts[size], strict=True):
        found = on_meta(partial(kind.by_name, size))
        assert printed in (None, found)
        assert on_meta(lambda kind=kind: to_transformers(kind.by_name(size))) == found


def test_the_parts_that_facts_name():
    """A block, the MLM head and the pair head of base and large."""
    with torch.device("meta"):
        base, large = bert_for_pretraining("base"), bert("large")
    assert count_parameters(base.encoder.stack.blocks[0]) == 7_087_872
    assert count_parameters(large.stack.blocks[0]) == 12_596_224
    assert count_parameters(base.mlm) == 622_650
    assert count_parameters(base.pair) == 1_538


def test_what_separates_members_from_bert():
    base = on_meta(lambda: bert("base"))
    # Vocabulary rows, two position rows more and one segment row less.
    more = on_meta(lambda: roberta("base")) - base
    assert more == 15_163_392 == (50_265 - 30_522 + 2 - 1) * 768
    # Six blocks, two segment rows and the pooler less (Sanh et al. 2019, section 3).
    distilled = on_meta(lambda: distilbert("base"))
    assert base - distilled == 6 * 7_087_872 + 2 * 768 + 768 * 768 + 768
    assert round(distilled / base, 3) == 0.606


@pytest.mark.parametrize("size", DEBERTA.counts)
def test_what_disentangling_adds(size: str):
    """2LH² + 2kH (He et al. 2020, appendix A.7): two matrices a layer, and the table.

    With its biases: H of a position query in each layer, while one of three biases (the key's) is
    left out, which cancels."""
    c = published("deberta", size, DebertaConfig)
    H, L = c.hidden_size, c.num_layers
    plain = L * (4 * (H * H + H) + 2 * H * c.intermediate_size + c.intermediate_size + H + 4 * H)
    (whole,) = DEBERTA.counts[size]
    added = whole - c.vocab_size * H - 2 * H - plain
    assert added == 2 * L * H * H + 2 * c.span * H
    assert added == {"base": 14_942_208, "large": 51_380_224}[size]


def test_the_matrix_that_is_thrown_away():
    matrix = on_meta(lambda: fit_matrix(published("tinybert", "4"), published("bert", "base")))
    assert matrix == 240_384 == 312 * 768 + 768
    assert round((matrix + on_meta(lambda: tinybert("4"))) / 1e6, 2) == 14.59


# ---------------------------------------------------------------- bad input


@every_published
def test_names_that_do_not_exist(name: str):
    row = MEMBERS[name]
    by_name = next(kind.by_name for kind in row.kinds.values() if kind.by_name)
    size, *others = PUBLISHED[row.published]
    with pytest.raises(ValueError, match=f"expected one of {', '.join([size, *others])}"):
        by_name("no such size")
    config = FAMILIES[row.family].config_class
    with pytest.raises(ValueError, match=f"expected settings of {config.__name__}: .*hidden_size"):
        published(row.published, size, config, embedding=128)


@every_member
def test_texts_that_do_not_fit(name: str):
    model = drawn(name, "encoder").double().eval()
    c = model.config

    def states(tokens: int, word: int = 4, **more: Any) -> Any:
        with torch.no_grad():
            return model(torch.full((1, tokens), word), **more).last_hidden_state

    assert states(c.longest_text).shape == (1, c.longest_text, c.hidden_size)
    with pytest.raises(
        ValueError, match=rf"A text of {c.longest_text + 1} .* at most {c.longest_text}\. Cut"
    ):
        states(c.longest_text + 1)
    for word in (-1, c.vocab_size, 30_000):
        with pytest.raises(
            ValueError, match=rf"input_ids .*{word}.* numbers from 0 to {c.vocab_size - 1}"
        ):
            states(3, word)
    kinds = max(1, c.type_vocab_size)
    segments = torch.zeros(1, 3, dtype=torch.long)
    assert torch.equal(states(3, token_type_ids=segments), states(3))
    segments[0, 2] = kinds
    says = rf"token_type_ids from 0 to {kinds} .* from 0 to {kinds - 1}"
    says += "" if c.type_vocab_size else ": this model has no segments: leave it out"
    with pytest.raises(ValueError, match=says):
        states(3, token_type_ids=segments)


WHOLE = "expected a whole number of at least"


@pytest.mark.parametrize(
    ("kind", "changes", "says"),
    [
        (BertConfig, {"hidden_size": 100}, r"hidden_size=100 .*num_heads=12; expected .* multiple"),
        (BertConfig, {"type_vocab_size": -1}, rf"type_vocab_size=-1 was given; {WHOLE} 0"),
        *(
            (kind, {name: value}, rf"{name}={value!r} was given; expected a")
            for kind in (BertConfig, AlbertConfig, RobertaConfig)
            for name, values in {
                "hidden_dropout": (-0.1, 1, math.nan, True, "0"),
                "layer_norm_eps": (-1, math.nan, math.inf, False, "x", None),
                "initializer_range": (-0.02, math.inf),
                "num_layers": (True, 1.5, "2"),
                "pad_token_id": (True, "1"),
            }.items()
            for value in values
        ),
        (RobertaConfig, {"max_positions": 2}, r"max_positions=2 was given; expected at least 3"),
        (RobertaConfig, {"pad_token_id": -1}, r"pad_token_id=-1 .* an id of the vocabulary"),
        (RobertaConfig, {"pad_token_id": 50_265}, r"pad_token_id=50265 .* an id of the vocab"),
        (RobertaConfig, {"pad_token_id": None}, r"pad_token_id=None .* an id of the vocabulary"),
        (AlbertConfig, {"embedding_size": 0}, rf"embedding_size=0 was given; {WHOLE} 1"),
        (AlbertConfig, {"embedding_size": 12.5}, r"embedding_size=12\.5 was given"),
        (
            AlbertConfig,
            {"sharing": "some"},
            r"sharing='some' .* all, attention, feed_forward, none",
        ),
        (AlbertConfig, {"sharing": None}, r"sharing=None was given"),
        (AlbertConfig, {"num_groups": 0}, r"num_groups=0 was given for 12 layers; .* that divides"),
        (AlbertConfig, {"num_groups": 5}, r"num_groups=5 was given for 12 layers"),
        (AlbertConfig, {"num_groups": 24}, r"num_groups=24 was given for 12 layers"),
        *(
            (AlbertConfig, {"num_groups": value}, rf"num_groups={value!r} .*; expected a whole num")
            for value in (2.0, True, "2", math.nan)
        ),
        *(
            (
                DebertaV2Config,
                {name: value},
                rf"{name}={value!r} was given; expected a whole number",
            )
            for name in ("convolution", "furthest", "span")
            for value in (True, math.nan, "3", None)
        ),
        *(
            (DebertaConfig, {"terms": value}, r"terms=.* was given; expected some of c2p, p2c")
            for value in (0, True, None, "c2p", [["c2p"]])
        ),
        (AlbertConfig, {"hidden_act": "relu"}, r"hidden_act='relu' .* 'gelu' or 'gelu_new'"),
        (AlbertConfig, {"hidden_size": 100}, r"hidden_size=100 .*num_heads=12"),
        (AlbertConfig, {"pad_token_id": 30_000}, r"pad_token_id=30000 was given"),
        (ElectraConfig, {"embedding_size": 0}, rf"embedding_size=0 was given; {WHOLE} 1"),
        (
            ElectraConfig,
            {"embedding_size": 12.5},
            r"embedding_size=12\.5 was given; expected a who",
        ),
        (ElectraConfig, {"embedding_size": None}, r"embedding_size=None was given; expected a who"),
        *(
            (kind, changes, says)
            for kind in (DebertaConfig, DebertaV2Config)
            for changes, says in (
                ({"terms": ("p2p",)}, r"terms=\('p2p',\) .* some of c2p, p2c, each once"),
                ({"terms": ("c2p", "c2p")}, r"terms=.* expected some of c2p, p2c, each once"),
                ({"span": 0}, rf"span=0 was given; {WHOLE} 1"),
                ({"span": 2.5}, r"span=2\.5 was given"),
            )
        ),
        (XlmConfig, {"type_vocab_size": 1}, r"type_vocab_size=1 .* 2 or more languages, or 0"),
        (XlmConfig, {"hidden_act": "gelu_new"}, r"hidden_act='gelu_new' .* 'gelu' or 'relu'"),
        (DebertaV2Config, {"convolution": 2}, r"convolution=2 was given; expected 0, or an odd nu"),
        (DebertaV2Config, {"convolution": -1}, r"convolution=-1 was given"),
        (DebertaV2Config, {"conv_act": "relu"}, r"conv_act='relu' .* expected one of tanh, gelu"),
        (DebertaV2Config, {"span": 1}, r"buckets=1 and furthest=512 .* at least 2 buckets"),
        (DebertaV2Config, {"span": 20, "furthest": 11}, r"buckets=20 and furthest=11 were given"),
    ],
)
def test_settings_that_do_not_fit(kind: type[BertConfig], changes: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        kind(**changes)
