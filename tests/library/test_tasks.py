"""Tasks with labels from the micro-world, and more texts from few."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.text.augmentation import CANDIDATES, COPIES, SHARE, augment, likeliest_words
from course_lib.text.tasks import (
    LabelledSequences,
    hard_pronouns,
    pronoun_questions,
    queues,
    story_pronouns,
    unstated_facts,
)
from course_lib.text.world import MicroWorld

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def stories(world):
    return world.stories(400, seed=3)


# ---------------------------------------------------------------- the hero's job


def words_of(world, ids):
    return [world.tokenizer.token(i) for i in ids.tolist() if i not in world.special.never_masked]


def test_no_text_says_a_job_and_every_text_names_its_hero(world, stories):
    task = unstated_facts(world, stories)
    people = {p["name"]: p["job"] for p in world.grammar.tables[world.grammar.roles["hero"]]}
    assert 40 < len(task) < 120  # about one story in five
    for ids, label in zip(task.sequences.input_ids, task.labels.tolist(), strict=True):
        words = set(words_of(world, ids))
        assert not words & set(task.names)
        assert task.names[label] in {people[w] for w in words if w in people}


def test_labels_are_the_heroes_jobs(world, stories):
    """Told the other way round: of the stories that do say it, the trace agrees with the table."""
    task = unstated_facts(world, stories)
    assert len(task.names) == 36 and list(task.names) == sorted(set(task.names))
    people = world.grammar.tables["people"]
    silent = [s for s in stories if not said_jobs(s)]
    assert len(silent) == len(task)
    rows = zip(silent, task.sequences.input_ids, task.labels.tolist(), strict=True)
    for story, ids, label in rows:
        assert words_of(world, ids) == [w for line in story.words for w in line]
        assert task.names[label] == people[story.rows["hero"]]["job"]
    for story in stories:
        for job in said_jobs(story):
            assert job == people[story.rows["hero"]]["job"]


def said_jobs(story):
    return [t.word for line in story.trace for t in line if t.slot == "hero.job"]


def test_the_task_is_the_same_every_time(world, stories):
    one, same = unstated_facts(world, stories), unstated_facts(world, world.stories(400, seed=3))
    assert torch.equal(one.sequences.input_ids, same.sequences.input_ids)
    assert torch.equal(one.labels, same.labels) and one.names == same.names
    part = one[:7]
    assert len(part) == 7 and torch.equal(part.sequences.input_ids, one.sequences.input_ids[:7])
    expected = max(one.labels.tolist().count(label) for label in range(36)) / len(one)
    assert one.commonest == pytest.approx(expected)


def test_stories_that_all_say_it_are_refused(world, stories):
    telling = [story for story in stories if said_jobs(story)][:5]
    with pytest.raises(ValueError, match=r"None of 5 stories leaves.*Give more stories"):
        unstated_facts(world, telling)


def test_labels_that_do_not_fit_are_refused():
    sequences = small_task().sequences
    with pytest.raises(ValueError, match="12 texts and 3 labels were given"):
        LabelledSequences(sequences, torch.tensor([0, 1, 0]), ("a", "b"))
    with pytest.raises(ValueError, match=r"labels from 0 to 2 were given.*0 to 1"):
        LabelledSequences(sequences, torch.arange(12) % 3, ("a", "b"))


# ---------------------------------------------------------------- more texts from few


def small_task(count=12, tokens=10):
    make = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 40, (count, tokens), generator=make)
    lengths = torch.randint(5, tokens + 1, (count,), generator=make)
    mask = (torch.arange(tokens) < lengths[:, None]).long()
    ids[:, 0] = SPECIAL.cls
    ids[torch.arange(count), lengths - 1] = SPECIAL.sep
    sequences = PackedSequences(ids * mask, mask, torch.zeros_like(ids))
    return LabelledSequences(sequences, torch.arange(count) % 2, ("a", "b"))


class Favours:
    """Wherever it is asked, it likes best the words that come after the token on the left."""

    def __init__(self):
        self.predicted = []

    def __call__(self, input_ids, attention_mask, token_type_ids, predict_at):
        sequences, tokens = input_ids.shape
        assert predict_at.shape == (sequences,)  # one word a text is hidden
        assert ((input_ids == SPECIAL.mask).sum(1) == 1).all()
        assert (input_ids.flatten()[predict_at] == SPECIAL.mask).all()
        at = (predict_at % tokens).tolist()
        self.predicted += zip(input_ids.tolist(), at, strict=True)
        left = input_ids.flatten()[predict_at - 1]
        logits = -((torch.arange(40) - left[:, None] - 1) % 40).float()
        return SimpleNamespace(prediction_logits=logits)


def favourites(left, count):
    """What it says, best first, when no special token counts as a word."""
    following = [(int(left) + 1 + step) % 40 for step in range(40)]
    return [word for word in following if word > 4][:count]


def eligible(sequences):
    return sequences.attention_mask.bool() & (sequences.input_ids > 3)


def test_the_texts_themselves_come_first_then_the_copies():
    task = small_task()
    grown = augment(task, Favours(), SPECIAL, copies=3)
    assert len(grown) == 48 and grown.names == task.names
    assert torch.equal(grown.sequences.input_ids[:12], task.sequences.input_ids)
    assert torch.equal(grown.labels, task.labels.repeat(4))
    for name in ("attention_mask", "token_type_ids"):
        given = getattr(task.sequences, name)
        assert torch.equal(getattr(grown.sequences, name), given.repeat(4, 1))
    nothing = augment(task, Favours(), SPECIAL, copies=0)
    assert torch.equal(nothing.sequences.input_ids, task.sequences.input_ids)
    assert torch.equal(nothing.labels, task.labels)
    assert (COPIES, SHARE, CANDIDATES) == (20, 0.4, 15)  # Jiao et al. 2020, section 4.2


def test_only_words_change_and_only_to_what_the_model_likes_there():
    task = small_task()
    ids, may = task.sequences.input_ids.clone(), eligible(task.sequences)
    grown = augment(task, Favours(), SPECIAL, copies=10, share=1.0, candidates=4)
    assert torch.equal(task.sequences.input_ids, ids)  # the task given is left alone
    copies = grown.sequences.input_ids[12:].view(10, 12, 10)
    assert torch.equal(copies[:, ~may], ids[~may].expand(10, -1))
    chosen = set()
    for n, t in may.nonzero().tolist():
        liked = favourites(ids[n, t - 1], 4)  # the text's own left neighbour, not the copy's
        found = copies[:, n, t].tolist()
        assert set(found) <= set(liked)
        chosen |= {liked.index(word) for word in found}
    assert chosen == {0, 1, 2, 3}  # all four, not the best alone


def test_each_word_is_hidden_once_and_alone():
    task, model = small_task(), Favours()
    augment(task, model, SPECIAL, copies=5)
    expected = []
    for n, t in eligible(task.sequences).nonzero().tolist():
        text = task.sequences.input_ids[n].clone()
        text[t] = SPECIAL.mask
        expected.append((text.tolist(), t))
    longest = int(task.sequences.attention_mask.sum(1).max())
    assert model.predicted == [(text[:longest], t) for text, t in expected]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_the_share_of_words_replaced(share):
    """Ten thousand words, all moved to a word that the text does not hold."""
    ids = torch.randint(5, 30, (1_000, 10), generator=torch.Generator().manual_seed(0))
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    task = LabelledSequences(sequences, torch.zeros(1_000, dtype=torch.long), ("a",))

    def model(input_ids, *_, predict_at):
        logits = torch.zeros(len(predict_at), 40)
        logits[:, 35:] = 1.0
        return SimpleNamespace(prediction_logits=logits)

    grown = augment(task, model, SPECIAL, copies=2, share=share, candidates=5)
    moved = grown.sequences.input_ids[1_000:].view(2, 1_000, 10) >= 35
    tries = moved.numel()
    assert abs(int(moved.sum()) - tries * share) <= 5 * math.sqrt(tries * share * (1 - share))
    if share:
        became = grown.sequences.input_ids[1_000:][moved.flatten(0, 1)]
        hits = np.bincount(became.numpy(), minlength=40)[35:]  # each of the five equally often
        assert (abs(hits - len(became) / 5) <= 5 * math.sqrt(len(became) * 0.16)).all()
        both = int((moved[0] & moved[1]).sum())  # two copies of a text are drawn independently
        assert abs(both - 10_000 * share**2) <= 5 * math.sqrt(10_000 * share**2)


def test_a_seed_gives_the_same_variants_and_another_others():
    task = small_task()
    one, same, other = (augment(task, Favours(), SPECIAL, copies=4, seed=s) for s in (0, 0, 1))
    assert torch.equal(one.sequences.input_ids, same.sequences.input_ids)
    assert not torch.equal(one.sequences.input_ids, other.sequences.input_ids)
    copies = one.sequences.input_ids[12:].view(4, 12, 10)
    assert all(not torch.equal(copies[a], copies[b]) for a in range(4) for b in range(a))
    fewer = augment(task, Favours(), SPECIAL, copies=2)  # of more copies the first are the same
    assert torch.equal(fewer.sequences.input_ids, one.sequences.input_ids[:36])


def real_model():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=40, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32,
        max_positions=10, hidden_dropout=0.5, initializer_range=0.5,
    )  # fmt: skip
    return BertForMaskedLM(Encoder(config))


def test_a_real_models_words_without_dropout():
    task, model = small_task(), real_model()
    ids, mask = task.sequences.input_ids, task.sequences.attention_mask
    at = eligible(task.sequences).flatten().nonzero().squeeze(1)
    found = likeliest_words(model, task.sequences, at, SPECIAL.mask, 3, batch_size=7)
    assert model.training  # as it was found
    model.eval()
    for place, words in zip(at.tolist(), found.tolist(), strict=True):
        n, t = divmod(place, 10)
        text = ids[n : n + 1].clone()
        text[0, t] = SPECIAL.mask
        scores = model(text, mask[n : n + 1]).logits[0, t]
        assert words == scores.topk(3).indices.tolist()
    narrowed = likeliest_words(model, task.sequences, at, SPECIAL.mask, 35, never=range(5))
    assert int(narrowed.min()) == 5 and not model.training


@pytest.mark.parametrize(
    "settings",
    [
        {"copies": -1}, {"copies": 1.5}, {"share": 1.1}, {"share": -0.1}, {"share": float("nan")},
        {"candidates": 0}, {"candidates": 36},
    ],
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(settings):
    name, value = next(iter(settings.items()))
    with pytest.raises(ValueError, match=rf"{name}={value}.*1 to 35 candidates"):
        augment(small_task(), Favours(), SPECIAL, **settings)


# ---------------------------------------------------------------- workers in a queue


def test_the_same_workers_come_in_the_same_order_in_sequences_that_fit(world):
    task = queues(world, 50)
    assert task.sequences.input_ids.shape[0] == 50 and task.sequences.input_ids.shape[1] <= 64
    assert task.sequences.attention_mask.all() and not task.sequences.token_type_ids.any()
    assert len(task.words) == len(set(task.words)) == len(task.at) == 8
    jobs = {p["job"] for p in world.grammar.tables[world.grammar.roles["hero"]]}
    assert set(task.words) <= jobs
    ids = torch.tensor([world.tokenizer.ids[word] for word in task.words])
    assert (task.sequences.input_ids[:, task.at] == ids).all()
    assert (task.sequences.input_ids[:, 0] == world.special.cls).all()
    assert (task.sequences.input_ids[:, -1] == world.special.sep).all()


def test_neighbours_say_nothing_about_a_worker(world):
    """Around each stands the same sentence, and what is seen is drawn alike at every place."""
    task = queues(world, 20_000, seed=5)
    sentences = task.sequences.input_ids[:, 1:-1].unflatten(1, (8, 7))  # (N, place, word)
    others = [0, 1, 3, 4, 6]  # all but the worker, 2, and what is seen, 5
    first = sentences[0, 0]
    assert (sentences[:, :, others] == first[others]).all()
    frame = ("then", "the", "worker", "sees", "the", "thing", ".")
    assert [world.tokenizer.token(int(first[i])) for i in others] == [frame[i] for i in others]
    seen = sentences[:, :, 5]
    things = seen.unique()
    assert len(things) > 20
    expected = len(seen) / len(things)
    for place in range(8):
        counts = torch.stack([(seen[:, place] == thing).sum() for thing in things])
        assert ((counts - expected).abs() <= 5 * expected**0.5).all()  # five standard deviations
    repeated = (seen[:, 1:] == seen[:, :-1]).double().mean().item()
    assert abs(repeated * len(things) - 1) < 0.3  # nor do two neighbours agree more than chance


def test_queues_are_the_same_every_time(world):
    one, same, other = queues(world, 9, 1), queues(world, 9, 1), queues(world, 9, 2)
    assert torch.equal(one.sequences.input_ids, same.sequences.input_ids)
    assert one.words == other.words
    assert not torch.equal(one.sequences.input_ids, other.sequences.input_ids)
    assert queues(world, 2, workers=3).words == one.words[:3]


@pytest.mark.parametrize(("count", "workers"), [(0, 8), (-1, 8), (3, 0), (3, 37)])
def test_queues_that_cannot_be(world, count: int, workers: int):
    with pytest.raises(ValueError, match=rf"workers={workers} and count={count} .* 1 to 36 work"):
        queues(world, count, workers=workers)


# ---------------------------------------------------------------- whose a pronoun is


def told_persons(story, before):
    """The trace of a story's names before a word, in order; read off the sentences."""
    names = {
        " ".join(story.world.grammar.column(role, "")[story.rows[role]]): role
        for role in ("hero", "guest") if role in story.rows
    }  # fmt: skip
    return [names[word] for word in story.text.split()[:before] if word in names]


def test_every_pronoun_behind_two_names_is_found_and_the_hero_is_named_first(stories):
    found = story_pronouns(stories)
    for p in found:
        story = stories[p.story]
        word, named = story.text.split()[p.at], told_persons(story, p.at)
        assert word in ("he", "she", "his", "her")
        assert set(named) == {"hero", "guest"} and named[0] == "hero" and named[-1] == p.nearest
        sexes = {
            role: story.world.grammar.column(role, p.slot.partition(".")[2])[story.rows[role]]
            for role in ("hero", "guest")
        }
        assert sexes[p.role] == (word,) and (len(set(sexes.values())) == 1) == p.same_sex
    places = {(p.story, p.at) for p in found}
    for n, story in enumerate(stories):
        for at, word in enumerate(story.text.split()):
            named = set(told_persons(story, at))
            if word in ("he", "she", "his", "her") and len(named) == 2:
                assert (n, at) in places
    heroes = sum(p.role == "hero" for p in found) / len(found)
    assert 0.85 < heroes < 0.99  # why the hard ones are needed


def test_hard_pronouns_are_as_often_the_guests_and_no_simple_rule_finds_them(world):
    stories = world.stories(800, seed=3)
    found = hard_pronouns(stories, 12)
    assert len(found) == 48 and len({p.story for p in found}) == 48
    for same in (True, False):
        of_kind = [p for p in found if p.same_sex == same]
        assert [p.role for p in of_kind].count("guest") == 12 == len(of_kind) / 2
    assert {p.nearest for p in found} == {"guest"}
    assert [p.story for p in found] == sorted(p.story for p in found)
    with pytest.raises(ValueError, match=r"each=500 was given; 800 stories have \d+ pronouns"):
        hard_pronouns(stories, 500)
    with pytest.raises(ValueError, match="No stories were given"):
        story_pronouns([])


def test_a_pronouns_question_ends_with_its_sentence_and_is_answered_by_its_person(world):
    stories = world.stories(800, seed=3)
    found = hard_pronouns(stories, 12)
    for p, question in zip(found, pronoun_questions(stories, found), strict=True):
        story, passage = stories[p.story], question.passage
        words = passage.split()
        assert story.text.startswith(passage) and passage.endswith(".")
        assert question.question == words[p.at] and question.question not in words[p.at + 1 :]
        assert p.at > len(passage.rsplit(" . ", 1)[0].split())  # in the last sentence
        name = " ".join(world.grammar.column(p.role, "")[story.rows[p.role]])
        assert {answer.text for answer in question.answers} == {name}
        assert len(question.answers) == words.count(name)
        assert question.answers[0].start < len(" ".join(words[: p.at]))
