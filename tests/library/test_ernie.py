"""What Baidu's ERNIE alone has: the task embedding, the label of a pair, the units of its masks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from members import MEMBERS
from parity import drawn_weights, pair_of_models

from course_lib.family.ernie import ErnieConfig, TaskEmbeddings, ernie
from course_lib.objectives.knowledge_masking import make_ernie_pairs, unit_numbers
from course_lib.objectives.masked_lm import mask_whole_words
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.sequences import PackedSequences, SpecialIds

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)
WORDS = torch.tensor([[-1, 0, 1, 1, 2, 3, 4, -1], [-1, 0, 1, 2, 2, 3, -1, -1]])


# ---------------------------------------------------------------- the model


@pytest.mark.parametrize("task", [0, 1, 2])
@torch.no_grad()
def test_the_tasks_vector_is_added_as_in_transformers(task: int):
    row = MEMBERS["ernie"]
    case = next(c for c in map(row.case, range(12)) if c.config.task_types)
    ours, theirs = pair_of_models(lambda config: row.make("encoder", config), case, torch.float64)
    embeddings = ours.embeddings
    assert isinstance(embeddings, TaskEmbeddings)
    embeddings.task_id = task
    ids = torch.full_like(case.inputs["input_ids"], task)
    reference = theirs(**case.inputs, task_type_ids=ids).last_hidden_state[case.real]
    found = ours(**case.inputs).last_hidden_state[case.real]
    assert (found - reference).abs().max() <= 1e-10 * max(1, reference.abs().max())
    embeddings.task_id = (task + 1) % 3
    assert (ours(**case.inputs).last_hidden_state[case.real] - reference).abs().max() > 1e-3
    stages = embeddings.parts(case.inputs["input_ids"])
    assert list(stages) == ["token", "segment", "position", "task", "sum", "normed"]


def test_the_released_settings():
    """Where transformers' configuration says nothing it means another model."""
    config = ErnieConfig()
    assert (config.hidden_act, config.max_positions, config.vocab_size) == ("relu", 513, 18_000)
    assert config.task_types == 0 and config.longest_text == 513
    with pytest.raises(ValueError, match=r"'swish'.* expected 'gelu' or 'gelu_new' or 'relu'"):
        ErnieConfig(hidden_act="swish")
    with pytest.raises(ValueError, match=r"task_types=-1 was given; expected a whole number of"):
        ErnieConfig(task_types=-1)


def test_relu_is_relu_in_both_places():
    sizes: dict[str, Any] = {"hidden_size": 12, "num_heads": 2, "num_layers": 1}
    model = drawn_weights(ernie(**sizes, intermediate_size=8, vocab_size=30), 0.5).eval()
    part, x = model.stack.blocks[0].feed_forward, torch.randn(3, 12)
    expected = part.contract(part.expand(x).clamp(min=0))
    assert torch.allclose(part(x), expected, atol=1e-6)


# ---------------------------------------------------------------- the label


def test_one_is_the_real_next_sentence():
    documents = [[[5 + d, 6 + s] for s in range(4)] for d in range(6)]
    settings: dict[str, Any] = {"length": 16, "seed": 3}
    ours = make_ernie_pairs(documents, SPECIAL, **settings)
    berts = make_pairs(documents, SPECIAL, **settings)
    assert torch.equal(ours.input_ids, berts.input_ids)
    assert torch.equal(ours.next_sentence_label, 1 - berts.next_sentence_label)
    assert set(ours.next_sentence_label.tolist()) == {0, 1}
    for ids, label in zip(ours.input_ids, ours.next_sentence_label, strict=True):
        a, b = ((ids == SPECIAL.sep).nonzero()[:, 0] - 2).tolist()
        assert (ids[a] - ids[b] == 0) == bool(label)  # the same document


# ---------------------------------------------------------------- units


def test_units_are_joined():
    joined = unit_numbers(WORDS, [(0, 1, 4), (0, 4, 6), (1, 3, 5)])
    assert joined.tolist() == [[-1, 0, 0, 0, 2, 2, 4, -1], [-1, 0, 1, 2, 2, 3, -1, -1]]
    assert torch.equal(unit_numbers(WORDS, []), WORDS)  # basic masking


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ((0, 0, 2), r"positions 0 to 1 of sequence 0 .* expected words there: 2 sequences of 8"),
        ((0, 6, 9), r"positions 6 to 8 .* expected words there"),
        ((2, 1, 2), r"of sequence 2 was given; expected words there"),
        ((-1, 1, 2), r"of sequence -1 was given"),
        ((0, 3, 3), r"positions 3 to 2 of sequence 0"),
        ((0, 3, 5), r"positions 3 to 4 of sequence 0 cuts a word in two"),
        ((1, 1, 4), r"positions 1 to 3 of sequence 1 cuts a word in two"),
        ((0, 1, 2), r"two units meet at positions 1 to 1 of sequence 0.* Keep the longer"),
    ],
)
def test_units_that_make_no_sense(unit: tuple[int, int, int], says: str):
    before = WORDS.clone()
    with pytest.raises(ValueError, match=says):
        unit_numbers(WORDS, [(0, 1, 2), unit] if "meet" in says else [unit])
    assert torch.equal(WORDS, before)


def test_a_unit_is_hidden_whole_or_not_at_all():
    """And its pieces draw [MASK], random or kept each for itself."""
    T = 24
    ids = torch.randint(5, 40, (400, T), generator=torch.Generator().manual_seed(0))
    ids[:, 0], ids[:, -1] = SPECIAL.cls, SPECIAL.sep
    rows = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    words = torch.arange(-1, T - 1).repeat(len(ids), 1)
    words[:, -1] = -1
    units = unit_numbers(words, [(n, 5, 8) for n in range(len(ids))])
    masked = mask_whole_words(rows, SPECIAL, units)
    inside = masked.selected[:, 5:8]
    assert torch.equal(inside.any(1), inside.all(1)) and 0 < inside.all(1).sum() < len(ids)
    kinds = Counter(map(tuple, masked.action[inside.all(1), 5:8].tolist()))
    assert any(len(set(kind)) > 1 for kind in kinds)
