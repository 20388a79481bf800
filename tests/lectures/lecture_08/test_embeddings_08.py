"""The tug-of-war on shared token embeddings: gradients taken apart, cosines that can be checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from course_lib.family.electra import DISENTANGLED, Electra, ElectraConfig, electra_from
from course_lib.lectures.lecture_08.embedding_sharing import (
    FIRST_WORD,
    mean_cosine,
    pulls,
    table_gradients,
    tables_of,
)
from course_lib.objectives.replaced_tokens import electra_loss
from course_lib.objectives.sequences import Batch

CONFIG = ElectraConfig(
    vocab_size=30, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=24,
    max_positions=8, embedding_size=12, hidden_dropout=0.0, attention_dropout=0.0,
    initializer_range=0.3,
)  # fmt: skip


@pytest.fixture
def model() -> Callable[[str], Electra]:
    def made(tied: str) -> Electra:
        torch.manual_seed(2)
        return electra_from(CONFIG, 1 / 2, tied).eval()

    return made


def batch(seed: int) -> Batch:
    make = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 30, (4, 8), generator=make)
    at = torch.tensor([1, 6, 11, 20, 27])
    labels = ids.flatten()[at]
    ids.view(-1)[at] = 4
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "predict_at": at}
    return Batch(inputs, {"labels": labels})


def test_the_two_gradients_add_up_to_that_of_the_shared_table(model: Callable[[str], Electra]):
    shared = model("tokens")
    torch.manual_seed(7)
    mlm, rtd = table_gradients(shared, batch(1))
    torch.manual_seed(7)  # the generator samples the same words
    one = batch(1)
    electra_loss(50.0)(shared(**one.inputs), one.targets)["total"].backward()
    table = shared.discriminator.encoder.get_parameter("embeddings.tables.token.weight")
    assert mlm.any() and rtd.any() and mlm.shape == table.shape
    torch.testing.assert_close(mlm + 50 * rtd, table.grad, atol=1e-5, rtol=1e-4)


def test_disentangled_the_second_is_the_differences(model: Callable[[str], Electra]):
    apart = model(DISENTANGLED)
    torch.manual_seed(7)
    _, rtd = table_gradients(apart, batch(1))
    torch.manual_seed(7)
    one = batch(1)
    electra_loss(50.0)(apart(**one.inputs), one.targets)["rtd"].backward()
    difference = apart.discriminator.encoder.get_parameter("embeddings.tables.token.difference")
    torch.testing.assert_close(rtd, difference.grad)


def test_cosines_of_every_two_different_batches(model: Callable[[str], Electra]):
    shared = model("tokens")
    gradients = pulls(shared, [batch(1), batch(2), batch(3)])
    counts = {name: len(values) for name, values in gradients.cosines.items()}
    assert counts == {"MLM with MLM": 3, "RTD with RTD": 3, "MLM with RTD": 6}
    assert all(abs(c) <= 1 for values in gradients.cosines.values() for c in values)
    once = pulls(shared, [batch(1), batch(1)]).cosines["MLM with MLM"]
    assert once == pytest.approx([1.0], abs=1e-5)  # the same batch, nothing drawn for MLM
    assert pulls(shared, [batch(1), batch(2), batch(3)], 25.0).longer == pytest.approx(
        gradients.longer / 2
    )


def test_the_mean_cosine_is_that_of_all_pairs():
    table = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    pairs = [
        float(torch.cosine_similarity(table[i], table[j], dim=0))
        for i in range(7)
        for j in range(7)
        if i != j
    ]
    assert mean_cosine(table) == pytest.approx(sum(pairs) / len(pairs), abs=1e-6)


@pytest.mark.parametrize(("tied", "apart"), [("tokens", False), ("none", True)])
def test_tables_are_compared_word_by_word(
    model: Callable[[str], Electra], tied: str, apart: bool
) -> None:
    tables = tables_of(model(tied))
    assert (tables["tables_apart"] > 0.5) == apart
    assert (tables["alike_generator"] != tables["alike_discriminator"]) == apart


def test_v3s_tables_are_apart_by_the_difference(model: Callable[[str], Electra]) -> None:
    both = model(DISENTANGLED)
    assert tables_of(both)["tables_apart"] == 0
    token = both.discriminator.encoder.get_submodule("embeddings.tables.token")
    with torch.no_grad():
        token.difference.normal_()  # type: ignore[union-attr, operator]
    E_G, delta = (
        both.generator.encoder.get_parameter("embeddings.tables.token.weight"),
        both.discriminator.encoder.get_parameter("embeddings.tables.token.difference"),
    )
    expected = delta[FIRST_WORD:].norm() / E_G[FIRST_WORD:].norm()
    assert tables_of(both)["tables_apart"] == pytest.approx(float(expected))
