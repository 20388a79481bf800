"""Texts, tagged sentences and questions as rows: every label where it belongs, every cut told."""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from course_lib.text import english
from course_lib.text.byte_bpe import ByteBPE, train_byte_bpe
from course_lib.text.english import ENTITY_TAGS, RELATIONS, UPOS, Answer, Question, TaggedSentence
from course_lib.text.features import (
    IGNORED,
    QuestionSequences,
    plain_sequences,
    question_sequences,
    tagged_sequences,
    text_sequences,
)
from course_lib.text.tasks import FACTS, PARTS_OF_SPEECH, story_pairs, story_questions, story_tags
from course_lib.text.wordpiece import WordPiece, train_wordpiece
from course_lib.text.world import MicroWorld, Story
from course_lib.train.span_metrics import bio_spans

SMALL = WordPiece.from_words(
    ["ann", "lee", "met", "bob", "in", "york", "##shire", "who", "is", "she", ".", "'", "##n", "t"]
)
PAD, UNK, CLS, SEP = 0, 1, 2, 3


def ids(text: str) -> list[int]:
    """Tokens by name, special ones among them."""
    return [SMALL.id(token) for token in text.split()]


# ---------------------------------------------------------------- one text, or a pair


def test_texts_by_hand():
    texts, labels = ["Ann met Bob.", "Ann Yorkshire Lee is in York."], ["no", "yes"]
    task = text_sequences(texts, labels, ("yes", "no"), SMALL, 7)
    assert task.sequences.input_ids.tolist() == [
        ids("[CLS] ann met bob . [SEP] [PAD]"),
        ids("[CLS] ann york ##shire lee is [SEP]"),  # in, york and the full stop are cut
    ]
    assert task.sequences.attention_mask.tolist() == [[1] * 6 + [0], [1] * 7]
    assert not task.sequences.token_type_ids.any()
    assert task.labels.tolist() == [1, 0] and task.names == ("yes", "no")
    assert task.cut is not None
    assert str(task.cut) == "1 of 2 did not fit into 7 positions: 3 tokens were left out."
    assert task[:1].cut == task.cut
    fits = text_sequences(texts, labels, ("yes", "no"), SMALL, 10)
    assert str(fits.cut) == "Nothing was cut: all 2 fit into 10 positions."


def test_of_a_pair_the_longer_text_is_cut():
    sequences, cut = plain_sequences(
        ["ann lee met bob in york", "ann"], SMALL, 9, ["she is in york", "lee"]
    )
    assert sequences.input_ids.tolist() == [
        ids("[CLS] ann lee met [SEP] she is in [SEP]"),
        [*ids("[CLS] ann [SEP] lee [SEP]"), *[PAD] * 4],
    ]
    assert sequences.token_type_ids.tolist() == [[0] * 5 + [1] * 4, [0, 0, 0, 1, 1, 0, 0, 0, 0]]
    assert (cut.texts, cut.of, cut.lost, cut.length, cut.what) == (1, 2, 4, 9, "tokens")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"texts": [], "labels": []}, "No texts were given"),
        ({"labels": ["a"]}, "2 texts and 1 labels were given"),
        ({"labels": ["a", "c"]}, "label 'c' was given; expected one of a, b"),
        ({"labels": ["a", "yess"], "names": ("a", "yes")}, "one of a, yes. Did you mean 'yes'"),
        ({"labels": ["1", "1.0"], "names": None}, "labels '1' and '1.0' .* which differ in"),
        ({"labels": ["é", "e\u0301"], "names": None}, "differ in white space, .* of a letter"),
        ({"labels": ["0", "nan"], "names": None}, "label 'nan' was given, which is no finite"),
        ({"labels": ["0", "-Infinity"], "names": None}, "label '-Infinity' was given, which is no"),
        ({"names": ("a", "b", "a")}, "names a, b, a were given; expected each of them once"),
        ({"texts": ["ann", " \n"]}, "text 1, .* has no token"),
        ({"second": ["lee"]}, "2 first and 1 second texts"),
        ({"length": 2}, "length=2 was given; expected at least 3"),
        ({"length": "64"}, "length='64' was given; expected a whole number"),
        ({"length": 9.0}, "length=9.0 was given; expected a whole number"),
        ({"length": 4, "second": ["lee", "bob"]}, "length=4 was given; expected at least 5"),
    ],
)
def test_bad_texts_are_refused(given: dict, message: str):
    good = {"texts": ["ann", "lee"], "labels": ["a", "b"], "names": ("a", "b"), "length": 9}
    with pytest.raises(ValueError, match=message):
        text_sequences(**{**good, **given}, tokenizer=SMALL)


def test_labels_that_look_like_numbers_stay_apart():
    task = text_sequences(["ann", "lee", "bob"], ["1", "01b", "-1"], None, SMALL, 9)
    assert task.names == ("-1", "01b", "1") and task.labels.tolist() == [2, 1, 0]


# ---------------------------------------------------------------- a label a word


def sentence(text: str, words: str, entities: str) -> TaggedSentence:
    parts = tuple(words.split())
    return TaggedSentence("s", text, parts, ("NOUN",) * len(parts), tuple(entities.split()))


YORK = sentence(
    "Ann Lee isn't in Yorkshire.", "Ann Lee is n't in Yorkshire .",
    "B-PER I-PER O O O B-LOC O",
)  # fmt: skip


def test_the_first_piece_carries_the_label():
    task = tagged_sequences([YORK], "entities", SMALL, 14)
    # "isn't" as a whole is one word, [UNK] ' t; its parts are is and n ' t.
    assert task.sequences.input_ids.tolist() == [
        [*ids("[CLS] ann lee is [UNK] ' t in york ##shire . [SEP]"), PAD, PAD]
    ]
    assert task.first == ((1, 2, 3, 4, 7, 8, 10),)
    x, (person, inside, place) = IGNORED, map(ENTITY_TAGS.index, ("B-PER", "I-PER", "B-LOC"))
    assert task.labels.tolist() == [[x, person, inside, 0, 0, x, x, 0, place, x, 0, x, x, x]]
    assert task.tags(task.labels) == [list(YORK.entities)]
    assert task.names == ENTITY_TAGS and not task.cut.texts
    assert tagged_sequences([YORK, YORK], "entities", SMALL, 14)[1:].words == (YORK.words,)


@pytest.mark.parametrize(("length", "words"), [(8, 4), (9, 5), (10, 5), (11, 6), (12, 7)])
def test_a_word_is_cut_whole(length: int, words: int):
    """Yorkshire, positions 8 and 9, needs a row of 11; "n't", 4 to 6, one of 8."""
    task = tagged_sequences([YORK], "entities", SMALL, length)
    assert len(task.first[0]) == words
    assert (task.cut.texts, task.cut.lost, task.cut.what) == (length < 12, 7 - words, "words")
    assert task.tags(task.labels) == [list(YORK.entities[:words])]
    assert task.sequences.input_ids.shape == task.labels.shape == (1, length)


def test_sentences_without_tags_can_be_tagged():
    alone = sentence("Who met Bob?", "Who met Bob ?", "O O O O")
    task = tagged_sequences([alone], None, SMALL, 8, names=ENTITY_TAGS)
    assert (task.labels == IGNORED).all() and task.first == ((1, 2, 3, 4),)
    said = torch.zeros(1, 8, dtype=torch.int64)
    said[0, 3] = ENTITY_TAGS.index("B-PER")
    assert task.tags(said) == [["O", "O", "B-PER", "O"]]
    with pytest.raises(ValueError, match=r"shape \(1, 5\) were given; .* \(1, 8\)"):
        task.tags(said[:, :5])
    with pytest.raises(ValueError, match="tag -100 was given at a word; expected 0 to 6"):
        task.tags(task.labels)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sentences": []}, "No sentences were given"),
        ({"kind": "words"}, "kind='words' was given; expected 'pos' or 'entities'"),
        ({"names": ("O", "B-LOC")}, "s: the tag 'B-PER' was given; expected one of O, B-LOC"),
        ({"length": 2}, "length=2 was given; s begins with 'Ann'"),
    ],
)
def test_bad_tagged_sentences_are_refused(given: dict, message: str):
    good = {"sentences": [YORK], "kind": "entities", "tokenizer": SMALL, "length": 14}
    with pytest.raises(ValueError, match=message):
        tagged_sequences(**{**good, **given})


def test_a_word_that_vanishes_is_refused():
    soft = TaggedSentence("s", "Ann \u00ad met", ("Ann", "\u00ad", "met"), ("X",) * 3, ("O",) * 3)
    with pytest.raises(ValueError, match=r"s: the word .* has no token"):
        tagged_sequences([soft], None, SMALL, 14)


# ---------------------------------------------------------------- a question about a passage

LEE = "Ann Lee met Bob in York. She is in Yorkshire."
WHERE = Question("q", "Who met Bob?", LEE, (Answer("Ann Lee", 0), Answer("Ann", 0)))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (["Yorkshire"], None),
        (["York", "Ann Lee", "shire."], None),
        (["orkshire", "Lee"], "1 of 2 .*: 'orkshire' of question q0 is learnt as 'Yorkshire'"),
        (["Lee", "nn Le", "hire"], "2 of 3 .*: 'nn Le' of question q1 is learnt as 'Ann Lee'"),
    ],
)
def test_an_answer_that_begins_inside_a_token_is_counted(answers, message, recwarn):
    """York|shire: the whole tokens around it are what a model can mark."""
    passage = "Ann Lee is in Yorkshire."
    questions = [Question(f"q{n}", "Who?", passage, (Answer(text, passage.index(text)),))
                 for n, text in enumerate(answers)]  # fmt: skip
    question_sequences(questions, SMALL, 14, 4)
    said = [str(warning.message) for warning in recwarn]
    assert len(said) == (message is not None) and all(re.match(str(message), x) for x in said)


def test_windows_by_hand():
    silent = Question("r", "Where is she?", LEE, (Answer("Yorkshire", 35),))
    task = question_sequences([WHERE, silent], SMALL, 14, 4)
    # Thirteen tokens in windows of 7, each four after the one before.
    question = "[CLS] who met bob [UNK] [SEP]"
    windows = [
        "ann lee met bob in york . [SEP]",
        "in york . she is in york [SEP]",
        "is in york ##shire . [SEP] [PAD] [PAD]",
    ]
    assert task.sequences.input_ids[:3].tolist() == [
        ids(f"{question} {window}") for window in windows
    ]
    assert task.question.tolist() == [0, 0, 0, 1, 1, 1]
    assert task.start.tolist() == [6, 0, 0, 0, 0, 8]
    assert task.end.tolist() == [7, 0, 0, 0, 0, 9]  # in window 4 stands only half of Yorkshire
    assert task.sequences.token_type_ids[2].tolist() == [0] * 6 + [1] * 6 + [0] * 2
    assert task.allowed[2].tolist() == [False] * 6 + [True] * 5 + [False] * 3
    assert task.offsets[2, 6:11].tolist() == [[29, 31], [32, 34], [35, 39], [39, 44], [44, 45]]
    assert not task.offsets[~task.allowed].any()
    assert task.span(5, 8, 9) == Answer("Yorkshire", 35) and task.span(5, 0, 0) == Answer("", 0)
    assert task.span(0, 6, 7) == WHERE.answers[0]
    assert not task.cut.texts and task.cut.of == 2
    part = task[torch.tensor([5])]
    assert len(part) == 1 and part.span(0, 8, 9).text == "Yorkshire"
    for span in [(9, 8), (5, 8), (8, 11), (0, 7)]:
        with pytest.raises(ValueError, match=rf"from {span[0]} to {span[1]} .* 6 to 10"):
            task.span(5, *span)


def test_an_answer_in_no_window_is_told():
    assert len(question_sequences([WHERE], SMALL, 20, 13)) == 1  # the passage fits, or nearly
    assert len(question_sequences([WHERE], SMALL, 19, 12)) == 2
    long = Question("q", "Who?", LEE, (Answer("Ann Lee met Bob", 0),))
    task = question_sequences([long, Question("r", "Who?", LEE)], SMALL, 8, 3)
    assert not task.start.any() and not task.end.any()
    assert str(task.cut) == "1 of 1 did not fit into 8 positions: 1 answers were left out."


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_windows_that_overlap_enough_hold_every_answer(stride: int, k: int):
    """One of k tokens is whole in some window if these hold at least stride + k − 1."""
    _, places = SMALL.encode_with_offsets(LEE)
    spans = [(places[n][0], places[n + k - 1][1]) for n in range(len(places) - k + 1)]
    questions = [Question(f"q{a}", "Who?", LEE, (Answer(LEE[a:b], a),)) for a, b in spans]
    room = stride + k - 1
    task = question_sequences(questions, SMALL, 5 + room, stride)  # "who ?", [CLS] and two [SEP]
    assert not task.cut.texts and set(in_windows(task)) == set(range(len(questions)))
    if stride > 1 and k > 1:  # with one token less, some are lost
        assert question_sequences(questions, SMALL, 4 + room, stride).cut.texts


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"questions": []}, "No questions were given"),
        ({"questions": [WHERE, Question("q", "Who?", LEE)]}, "the id 'q' was given to two"),
        ({"questions": [Question("q", " ", LEE)]}, "q: the question has no token"),
        ({"questions": [Question("q", "Who?", "\n")]}, "q: the passage has no token"),
        ({"length": 7}, "length=7 .* question of 4 tokens.*Expected at least 8"),
        ({"stride": 8}, "stride=8 .* room for 7 tokens.*gaps"),
        ({"stride": 0}, "stride=0 was given"),
        ({"stride": 2.5}, "stride=2.5 was given"),
    ],
)
def test_bad_questions_are_refused(given: dict, message: str):
    good = {"questions": [WHERE], "tokenizer": SMALL, "length": 14, "stride": 4}
    with pytest.raises(ValueError, match=message):
        question_sequences(**{**good, **given})


# ---------------------------------------------------------------- the whole of data/english


@pytest.fixture(scope="module", params=["learned", "MiniLM's", "byte-level"])
def tokenizer(request: pytest.FixtureRequest, english_texts: list[str]) -> WordPiece | ByteBPE:
    if request.param == "learned":
        return train_wordpiece(english_texts, 3_000)
    if request.param == "byte-level":
        return train_byte_bpe(english_texts, 1_500)
    return WordPiece.from_file(request.getfixturevalue("minilm_folder") / "vocab.txt")


def test_tags_and_entities_are_found_again_through_their_tokens(tokenizer: WordPiece | ByteBPE):
    sentences = english.tagged_sentences()
    task = tagged_sequences(sentences, "pos", tokenizer, 64)
    assert task.names == UPOS and task.tags(task.labels) == [list(s.pos) for s in sentences]
    task = tagged_sequences(sentences, "entities", tokenizer, 64)
    assert not task.cut.texts and task.tags(task.labels) == [list(s.entities) for s in sentences]
    assert (task.labels != IGNORED).sum() == sum(len(s.words) for s in sentences)
    found = 0
    for n, item in enumerate(sentences):
        ids = task.sequences.input_ids[n][task.sequences.attention_mask[n].bool()].tolist()[1:-1]
        bounds = [*task.first[n], len(ids) + 1]
        for _, first, last in bio_spans(item.entities):
            pieces = ids[bounds[first] - 1 : bounds[last + 1] - 1]
            name = item.text[item.offsets[first][0] : item.offsets[last][1]]
            said = tokenizer.decode(pieces)
            if isinstance(tokenizer, WordPiece):  # which has lost capitals, accents and spaces
                assert tokenizer.encode(said) == tokenizer.encode(name), item.id
            else:
                assert said.strip() == name, item.id
            found += 1
    assert found > 250


def in_windows(task: QuestionSequences) -> Counter[int]:
    """How many windows hold the answer of each question; each gives back the answer's words."""
    found: Counter[int] = Counter()
    for window, n in enumerate(task.question.tolist()):
        if start := int(task.start[window]):
            assert task.span(window, start, int(task.end[window])) == task.questions[n].answers[0]
            found[n] += 1
    return found


@pytest.mark.parametrize(("length", "stride"), [(384, 128), (96, 32)])
def test_every_answer_is_found_again(tokenizer: WordPiece | ByteBPE, length: int, stride: int):
    questions = english.questions()
    task = question_sequences(questions, tokenizer, length, stride)
    found = in_windows(task)
    answerable = {n for n, question in enumerate(questions) if question.answers}
    assert found.keys() == answerable and not task.cut.texts
    separators = (task.sequences.input_ids == tokenizer.special.sep).sum(dim=1)
    assert (separators == (3 if isinstance(tokenizer, ByteBPE) else 2)).all()  # RoBERTa's has two
    if length == 96:
        assert len(task) > 2 * len(questions) and max(found.values()) > 1  # windows are exercised


def test_reviews_and_pairs_as_sequences(tokenizer: WordPiece | ByteBPE):
    test = english.nli_pairs("test")
    task = text_sequences(
        [pair.premise for pair in test], [pair.label for pair in test], RELATIONS, tokenizer, 80,
        [pair.hypothesis for pair in test],
    )  # fmt: skip
    assert not task.cut.texts and len(task) == len(test)
    assert task.labels.bincount().tolist() == [len(test) / 3] * 3
    short, cut = plain_sequences([pair.premise for pair in test], tokenizer, 10)
    lengths = [len(tokenizer.encode(pair.premise)) for pair in test]
    assert cut.texts == sum(n > 8 for n in lengths) > 20
    assert cut.lost == sum(max(0, n - 8) for n in lengths)
    assert int(short.attention_mask.sum()) == sum(min(n, 8) + 2 for n in lengths)


# ---------------------------------------------------------------- the micro-world's tasks


@pytest.fixture(scope="module")
def world() -> MicroWorld:
    return MicroWorld.load()


@pytest.fixture(scope="module")
def stories(world: MicroWorld) -> list[Story]:
    return world.stories(1_200, seed=5)


def test_every_statement_comes_with_each_label(world: MicroWorld, stories: list[Story]):
    pairs = story_pairs(stories)
    assert len(pairs) > 1_000 and {p.premise for p in pairs} <= {s.text for s in stories}
    counts = Counter((pair.hypothesis, pair.label) for pair in pairs)
    for hypothesis, _ in list(counts):
        assert len({counts[hypothesis, label] for label in RELATIONS}) == 1
    assert not {word for p in pairs for word in p.hypothesis.split()} - set(world.vocab)
    assert story_pairs(stories) == pairs != story_pairs(stories, seed=1)


def test_statements_against_the_text(stories: list[Story]):
    """By another road: "the lamp is red" needs the words red lamp, "x is sad" a sentence of x's."""
    tables = stories[0].world.grammar.tables
    looks, moods = ({next(iter(row.values())) for row in tables[t]} for t in ("looks", "moods"))
    sites = re.compile("|".join(row["site"].replace("_", " ") for row in tables["sites"]))
    seen = Counter()
    for pair in story_pairs(stories):
        words = sites.sub("", pair.premise).split()  # "square" may be a look, or end a name
        said = pair.hypothesis.split()
        kind = looks if said[0] == "the" else moods
        if said[-2] not in kind:
            continue
        there = kind & set(words)
        label = "neutral" if not there else "entailment" if said[-2] in there else "contradiction"
        assert pair.label == label, pair
        seen[label] += 1
    assert min(seen[label] for label in RELATIONS) > 200


def test_tags_of_stories(stories: list[Story]):
    sentences = story_tags(stories[:300])
    assert sum(len(s.sentences) for s in stories[:300]) == len(sentences)
    people = {r["name"] for t in ("people", "guests") for r in stories[0].world.grammar.tables[t]}
    cities = {row["city"] for row in stories[0].world.grammar.tables["cities"]}
    ambiguous = Counter()
    for item in sentences:
        for word, pos, entity in zip(item.words, item.pos, item.entities, strict=True):
            # "hotel" is a person's name, and no word of a place's.
            assert (entity == "B-PER") == (word in people), item
            assert word not in cities or entity == "B-LOC"
            assert (pos == "PROPN") == (entity != "O") or word.endswith("day")
            if word == "to":
                ambiguous[pos] += 1
    assert min(ambiguous["PART"], ambiguous["ADP"]) > 20
    assert any("I-LOC" in item.entities for item in sentences)
    assert sentences[0].text == stories[0].sentences[0]


def test_questions_about_stories(world: MicroWorld, stories: list[Story]):
    questions = story_questions(stories)
    assert len(questions) == len(stories) and questions == story_questions(stories)
    silent = sum(not question.answers for question in questions)
    assert 0.18 < silent / len(questions) < 0.32
    assert all(q.answers for q in story_questions(stories[:100], unanswerable=0))
    task = question_sequences(questions, world.tokenizer, 80, 40)
    assert len(in_windows(task)) == len(questions) - silent and not task.cut.texts
    assert not (task.sequences.input_ids == world.special.unk).any()
    cities = {row["city"] for row in world.grammar.tables["cities"]}
    for question in questions:
        if question.question.endswith("comes from"):
            # The only city of a story is its hero's; those of places are never named.
            there = cities & set(question.passage.split())
            assert {answer.text for answer in question.answers} == there


def test_the_tables_of_words_hold_no_word_twice():
    words = [word for line in PARTS_OF_SPEECH.values() for word in line.split()]
    assert len(words) == len(set(words)) and set(PARTS_OF_SPEECH) <= set(UPOS)
    assert len({fact.slot for fact in FACTS}) == len(FACTS)


def test_stories_that_cannot_be(world: MicroWorld, stories: list[Story], monkeypatch):
    for make in (story_tags, story_pairs, story_questions):
        with pytest.raises(ValueError, match="No stories were given"):
            make([])
    with pytest.raises(ValueError, match="1 stories hold no statement"):
        story_pairs(stories[:1])
    with pytest.raises(ValueError, match=r"unanswerable=1\.5 was given"):
        story_questions(stories, unanswerable=1.5)
    monkeypatch.delitem(story_tags.__globals__["TAG_OF_WORD"], "the")
    with pytest.raises(ValueError, match=r"part of speech of 'the' .* expected it in"):
        story_tags(stories)


def test_texts_of_one_class_are_scored_where_the_names_are_given():
    """A test file may well be of one class; to learn from, `finetune` refuses it."""
    task = text_sequences(["ann", "lee"], ["b", "b"], ("a", "b"), SMALL, 9)
    assert task.labels.tolist() == [1, 1]
    one = TaggedSentence("s", "Ann met", ("Ann", "met"), ("X",) * 2, ("O",) * 2)
    tagged = tagged_sequences([one], "entities", SMALL, 9, ("O", "B-PER"))
    assert set(tagged.labels[tagged.labels >= 0].tolist()) == {0}


@pytest.mark.parametrize(
    "make",
    [
        lambda given: text_sequences(["ann", "lee"], ["a", "b"], None, given, 9),
        lambda given: tagged_sequences([YORK], "entities", given, 14),
        lambda given: question_sequences([Question("q", "who", "ann", ())], given, 14, 4),
    ],
)
def test_what_is_no_tokenizer_is_refused(make):
    pretrained = SimpleNamespace(tokenizer=SMALL)
    with pytest.raises(TypeError, match=r"a SimpleNamespace was given.*its tokenizer is \.tok"):
        make(pretrained)
    with pytest.raises(TypeError, match="a NoneType was given as tokenizer; expected one"):
        make(None)
