"""What XLM does beside being equal to the reference on real tokens: zeros at padding, its sines,
the language of every token, CLM, released files; and positions that are given, to any member."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from members import MEMBERS
from parity import answer, distance, drawn_weights, on_meta, pair_of_models, same

from course_lib.checkpoints import (
    CheckpointError,
    from_transformers,
    load_pretrained,
    to_transformers,
)
from course_lib.config import published
from course_lib.encoder import Encoder, FirstToken
from course_lib.family.albert import albert
from course_lib.family.bert import bert
from course_lib.family.deberta import deberta
from course_lib.family.xlm import (
    XlmConfig,
    XlmForLanguageModel,
    sines_and_cosines,
    xlm,
    xlm_encoder,
    xlm_for_language_model,
)
from course_lib.family.xlm_roberta import XlmRobertaConfig, xlm_roberta
from course_lib.heads import BertForClassification, BertForMaskedLM
from course_lib.objectives.next_token import next_token_loss

TINY: dict[str, Any] = {
    "vocab_size": 20, "hidden_size": 8, "num_heads": 2, "num_layers": 2, "intermediate_size": 32,
    "max_positions": 12, "type_vocab_size": 3,
}  # fmt: skip
IDS = torch.tensor([[3, 4, 5, 6, 7], [3, 8, 9, 2, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def small(**changes: Any) -> Encoder:
    return drawn_weights(xlm("xnli15", **TINY, **changes), 0.3).double().eval()


@pytest.mark.parametrize("name", ["xlm", "xlm-clm"])
@torch.no_grad()
def test_states_at_padding_are_the_references_zeros(name: str):
    """In every layer, and so does the whole of it agree, padding and all."""
    pytest.importorskip("transformers")
    row, seen = MEMBERS[name], 0
    for seed in row.seeds:
        case = row.case(seed)
        ours, theirs = pair_of_models(lambda c: row.make("encoder", c), case, torch.float64)
        states = [answer(m, case, output_hidden_states=True).hidden_states for m in (ours, theirs)]
        for one, other in zip(*states, strict=True):
            assert distance(one, other) <= 1e-10
            assert not one[~case.real].any()
        seen += int((~case.real).sum())
    assert seen > 50


@torch.no_grad()
def test_zeros_at_padding_with_it_removed_and_where_only_some_positions_are_wanted():
    model = small()
    whole = model(IDS, MASK).last_hidden_state
    torch.testing.assert_close(model(IDS, MASK, remove_padding=True).last_hidden_state, whole)
    at = torch.tensor([[0, 3], [0, 3]])
    part = model(IDS, MASK, output_positions=at).last_hidden_state
    torch.testing.assert_close(part, whole[:, [0, 3]])
    assert not part[1, 1].any() and part[0, 1].any()
    with pytest.raises(ValueError, match="remove_padding=True was given to a causal XLM"):
        small(causal=True)(IDS, MASK, remove_padding=True)


@torch.no_grad()
def test_the_language_of_every_token_is_told():
    model = small()
    languages = torch.tensor([[0, 0, 2, 2, 2], [1, 1, 1, 0, 0]])
    told = model.embeddings.parts(IDS, languages)  # type: ignore[operator]
    assert torch.equal(told["segment"][0, 3], model.embeddings.segment.weight[2])  # type: ignore
    other = model(IDS, MASK, languages).last_hidden_state
    assert distance(other, model(IDS, MASK).last_hidden_state) > 0.1
    with pytest.raises(ValueError, match=r"token_type_ids from 1 to 3 .* from 0 to 2"):
        model(IDS, MASK, languages + 1)
    silent = drawn_weights(xlm("xnli15", **{**TINY, "type_vocab_size": 0}), 0.3).eval()
    assert silent.embeddings.segment is None
    with pytest.raises(ValueError, match="has no segments: leave it out"):
        silent(IDS, MASK, languages)


def test_sines_and_cosines():
    """sin p, cos p in the first two of four columns; sin and cos of p/100 in the others."""
    table = sines_and_cosines(3, 4)
    p = torch.arange(3).double()
    expected = torch.stack([p.sin(), p.cos(), (p / 100).sin(), (p / 100).cos()], 1)
    torch.testing.assert_close(table, expected)
    encoder = xlm("xnli15", **TINY, sinusoidal=True)
    found = encoder.embeddings.position.weight  # type: ignore[union-attr]
    torch.testing.assert_close(found.double(), sines_and_cosines(12, 8), rtol=0, atol=1e-6)
    assert found.requires_grad


def test_sines_are_where_transformers_begins():
    transformers = pytest.importorskip("transformers")
    config = transformers.XLMConfig(
        vocab_size=20, emb_dim=10, n_layers=1, n_heads=2, max_position_embeddings=50,
        sinusoidal_embeddings=True,
    )  # fmt: skip
    theirs = transformers.XLMModel(config).position_embeddings.weight
    torch.testing.assert_close(theirs.double(), sines_and_cosines(50, 10), rtol=0, atol=1e-6)


@torch.no_grad()
def test_clm_looks_back_only():
    ids = torch.randint(20, (1, 9), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[0, 5] = (changed[0, 5] + 1) % 20
    for causal in (True, False):
        model = small(causal=causal)
        one, other = (model(x).last_hidden_state for x in (ids, changed))
        assert torch.allclose(one[:, :5], other[:, :5], 0, 1e-12) is causal
        assert not torch.allclose(one[:, 5:], other[:, 5:])


def test_one_network_learns_the_next_token():
    """CLM: next_token_loss of the causal model falls on a text that counts."""
    torch.manual_seed(0)
    model = xlm_for_language_model("xnli15", **TINY, causal=True, hidden_dropout=0.0)
    ids = (torch.arange(10) + torch.arange(8)[:, None]) % 18 + 2
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        loss = next_token_loss(model(ids).logits, ids)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[0] > 2.5 and losses[-1] < 1


def test_a_classifier_on_top():
    """No pooler in the released model; with one, the heads of fine-tuning go on it."""
    config = XlmConfig(**TINY)
    model = BertForClassification(xlm_encoder(config, pooler=True), 2)
    assert model(IDS, MASK).logits.shape == (2, 2)
    assert isinstance(model.encoder.pooler, FirstToken) and xlm_encoder(config).pooler is None


# ---------------------------------------------------------------- files


def test_released_files_name_the_vocabulary_and_the_padding_otherwise(tmp_path: Path):
    pytest.importorskip("transformers")
    ours = drawn_weights(xlm_for_language_model("xnli15", **TINY, pad_token_id=5), 0.3)
    to_transformers(ours).save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    for new, old in (("vocab_size", "n_words"), ("pad_token_id", "pad_index")):
        settings[old] = settings.pop(new)
    (tmp_path / "config.json").write_text(json.dumps(settings))
    found = load_pretrained(tmp_path).model
    assert isinstance(found, XlmForLanguageModel) and same(found, ours)
    assert found.config == ours.config


def test_what_transformers_does_not_have():
    pytest.importorskip("transformers")
    with pytest.raises(CheckpointError, match=r"intermediate_size=9 .* always 4 · hidden_size, 32"):
        to_transformers(xlm("xnli15", **{**TINY, "intermediate_size": 9}))
    with pytest.raises(CheckpointError, match="a BertForMaskedLM around a xlm encoder"):
        to_transformers(BertForMaskedLM(xlm("xnli15", **TINY)))
    theirs = to_transformers(xlm("xnli15", **TINY))
    theirs.config.asm = True
    with pytest.raises(CheckpointError, match="asm=True; only False means the same"):
        from_transformers(theirs)


def test_the_defaults_of_transformers_are_not_xlm_r():
    """BERT's vocabulary and positions; of the real base 69% of the weights are the token table."""
    theirs = pytest.importorskip("transformers").XLMRobertaConfig()
    assert (theirs.vocab_size, theirs.max_position_embeddings) == (30_522, 512)
    ours = published("xlm-roberta", "base", XlmRobertaConfig)
    assert (ours.vocab_size, ours.max_positions, ours.longest_text) == (250_002, 514, 512)
    table = ours.vocab_size * ours.hidden_size
    assert round(table / on_meta(xlm_roberta), 2) == 0.69


# ---------------------------------------------------------------- positions that are given


@torch.no_grad()
def test_positions_are_rows_of_the_table_in_any_member():
    sizes = {name: TINY[name] for name in TINY if name != "type_vocab_size"}
    for model in (bert("tiny", **sizes), small()):
        model.eval()
        counted = torch.arange(5).expand(2, 5)
        plain = model(IDS, MASK).last_hidden_state
        assert torch.equal(model(IDS, MASK, position_ids=counted).last_hidden_state, plain)
        turned = model(IDS[:1].flip(1), position_ids=counted[:1].flip(1)).last_hidden_state
        torch.testing.assert_close(turned.flip(1), model(IDS[:1]).last_hidden_state)
        with pytest.raises(ValueError, match=r"position_ids of shape \(1, 5\) .* \(2, 5\)"):
            model(IDS, MASK, position_ids=counted[:1])
        with pytest.raises(ValueError, match=r"position_ids from 8 to 12 .* 0 to 11"):
            model(IDS, MASK, position_ids=counted + 8)
    for model in (deberta("base", **sizes, span=4), albert("base", **sizes, embedding_size=5)):
        with pytest.raises(ValueError, match="a model whose embeddings are BERT's"):
            model(IDS, MASK, position_ids=torch.zeros_like(IDS))
