"""The frozen probes: what they find where the answer stands in the vectors, and where it does not;
and the texts of the swapped-word probe."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.tasks import LabelledWords, swapped_words
from course_lib.text.world import MicroWorld
from course_lib.train.probing import all_states, linear_probe, states_at, word_probe


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def stories(world):
    return world.stories(300, seed=4, split="heldout")


class Vectors(torch.nn.Module):
    """An encoder whose vectors are given: every id its row of a table, as one layer."""

    config = SimpleNamespace(type_vocab_size=2)

    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, input_ids, attention_mask, token_type_ids, output_hidden_states):
        return SimpleNamespace(hidden_states=(self.table[input_ids],))


@pytest.mark.parametrize("segments", [0, 1, 2])
def test_pairs_are_read_by_any_encoder(segments):
    config = BertConfig(9, 8, 1, 2, 8, 6, type_vocab_size=segments)
    ids = torch.arange(3, 9).repeat(2, 1)
    pairs = PackedSequences(ids, torch.ones_like(ids), (ids > 5).long())
    assert all_states(Encoder(config).eval(), pairs).shape == (2, 6, 16)


def test_a_linear_probe_finds_what_is_there_and_nothing_in_noise():
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(2_000) % 2
    noise = torch.randn(2_000, 5, generator=draw)
    holds = torch.cat([noise, labels[:, None].float()], dim=1)
    halves = slice(0, 1_000), slice(1_000, 2_000)
    for features, low, high in ((holds, 1.0, 1.0), (noise, 0.4, 0.6)):
        train, test = (features[half] for half in halves)
        assert low <= linear_probe(train, labels[halves[0]], test, labels[halves[1]]) <= high


def test_a_word_probe_reads_the_vectors_of_its_words(world, stories):
    words = swapped_words(world, stories, "repeated")
    draw = torch.Generator().manual_seed(1)
    noise = torch.randn(world.special.vocab_size, 8, generator=draw)
    assert 0.3 < word_probe(Vectors(noise), words) < 0.7
    # every word its own id, an odd one where it was swapped: the answer stands in the vector
    ids = 2 * torch.arange(words.sequences.input_ids.numel()).view_as(words.sequences.input_ids)
    ids.view(-1)[words.at] += words.labels
    told = LabelledWords(
        type(words.sequences)(ids, words.sequences.attention_mask, ids * 0),
        words.at, words.labels, words.names, words.learn,
    )  # fmt: skip
    parity = (torch.arange(int(ids.max()) + 1) % 2).float()[:, None]
    assert word_probe(Vectors(parity), told) == 1.0


@pytest.mark.parametrize("batch_size", [1, 7, 1_000])
def test_vectors_are_those_of_the_positions_whatever_the_batch(world, stories, batch_size):
    words = swapped_words(world, stories[:20], "repeated")
    table = torch.arange(world.special.vocab_size).float()[:, None]
    found = states_at(Vectors(table), words.sequences, words.at, batch_size)
    assert found[:, 0].tolist() == words.sequences.input_ids.flatten()[words.at].tolist()


@pytest.mark.parametrize("kind", ["repeated", "fact"])
def test_every_second_story_has_one_word_swapped_that_no_longer_fits(world, stories, kind):
    words = swapped_words(world, stories, kind)
    tokens = words.sequences.input_ids.shape[1]
    assert words.names == ("original", "swapped")
    assert words.labels.double().mean() == pytest.approx(0.5, abs=0.01)
    for half in (words.learn, ~words.learn):
        assert words.labels[half].double().mean() == pytest.approx(0.5, abs=0.03)
    assert (words.at.diff() > 0).all()
    for at, label in zip(words.at.tolist(), words.labels.tolist(), strict=True):
        n, t = divmod(at, tokens)
        before = [trace for line in stories[n].trace for trace in line]
        ids = words.sequences.input_ids[n, 1 : 1 + len(before)].tolist()
        after = [world.tokenizer.token(i) for i in ids]
        changed = [i for i, trace in enumerate(before) if trace.word != after[i]]
        assert before[t - 1].kind == kind and changed == ([t - 1] if label else [])
        if label:
            assert not any(fits(world, before, after, row) for row in rows(world, before[t - 1]))


def rows(world, trace):
    return range(len(world.grammar.tables[world.grammar.roles[trace.role]]))


def fits(world, before, after, row):
    """Whether everything that the story now says of some role can be said of this row."""
    changed = next(trace for trace, word in zip(before, after, strict=True) if trace.word != word)
    return all(
        word
        in world.grammar.column(trace.role, trace.slot.removeprefix(trace.role).lstrip("."))[row]
        for trace, word in zip(before, after, strict=True)
        if trace.role == changed.role
    )


def test_swaps_are_the_same_every_time_and_other_with_another_seed(world, stories):
    one, same, other = (swapped_words(world, stories, "fact", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.sequences.input_ids, same.sequences.input_ids)
    assert torch.equal(one.at, same.at) and not torch.equal(one.at, other.at)


def test_swaps_that_cannot_be_made_say_why(world, stories):
    with pytest.raises(ValueError, match=r"kind='free' was given; expected"):
        swapped_words(world, stories, "free")
    for few in ([], [s for s in stories if all(t.kind != "fact" for x in s.trace for t in x)][:1]):
        with pytest.raises(ValueError, match="has a word of kind 'fact'; give more"):
            swapped_words(world, few, "fact")
