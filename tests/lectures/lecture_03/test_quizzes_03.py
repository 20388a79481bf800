"""The numbers in the quiz and the questions for review of lecture 03, computed or read again."""

from __future__ import annotations

import math

import pytest
import torch
from quiz_parts import Quiz

from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.heads import BertForClassification, SpanOutput
from course_lib.objectives.sequences import SpecialIds
from course_lib.objectives.spans import best_spans, span_loss
from course_lib.teaching.claims import printed
from course_lib.text.english import ENTITY_KINDS, ENTITY_TAGS, TaggedSentence
from course_lib.text.features import tagged_sequences
from course_lib.text.packing import pack_pair
from course_lib.text.wordpiece import SPECIAL_TOKENS, WordPiece
from course_lib.train.span_metrics import answer_f1, exact_match, span_scores
from course_lib.train.task_metrics import accuracy, f1, macro_f1, matthews, pearson, spearman

QUIZ = Quiz("03")
item, answer = QUIZ.item, QUIZ.answer
BERT, GLUE = printed("bert"), printed("glue")
FEATURES = BERT["features"]


def wrong(found):
    return [choice for choice in found.choices if not choice.correct]


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()


# ---------------------------------------------------------------- what is new, what goes in


def test_the_new_weights_are_counted():
    found, right = item("neutral and contradiction. How many")
    with torch.device("meta"):
        encoder = bert("base")
        new = count_parameters(BertForClassification(encoder, 3)) - count_parameters(encoder)
    hidden, layers = encoder.config.hidden_size, encoder.config.num_layers
    assert f"{round(count_parameters(encoder) / 1e6)} million" in found.question
    assert right.text == f"{new:,}: 3 · {hidden}, and 3"
    pooler, everywhere = wrong(found)
    assert pooler.text.startswith(f"{count_parameters(encoder.pooler) + new:,}:")
    assert (
        everywhere.text.startswith(f"{layers * new:,}:") and f"{layers} layers" in everywhere.text
    )
    assert f"that is {3 * hidden:,} and 3 biases" in answer("What are the two stages")


def test_the_features_are_table_7():
    found, right = item("best vectors reach")
    best, tuned = FEATURES["concatenated_last_four"], FEATURES["fine_tuned"]
    frozen = [v for name, v in FEATURES.items() if isinstance(v, float) and name != "fine_tuned"]
    assert best == max(frozen) and f"reach {best} F1" in found.question
    assert f"fine-tuning {tuned} ({FEATURES['where']}" in found.question
    assert f"{tuned - best:.1f} below it" in right.why
    below, last = wrong(found)
    assert f"{FEATURES['embeddings']}" in below.why and f"{FEATURES['last']}" in last.why
    assert f"{FEATURES['second_to_last']}" in last.why
    said = answer("What are the two stages")
    assert all(str(FEATURES[name]) in said for name in
               ("concatenated_last_four", "second_to_last", "last", "fine_tuned"))  # fmt: skip


def packed(a, b, length):
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=9)
    return pack_pair([5] * a, [6] * b, special, length, truncate=True)


def test_the_segments_are_packed():
    found, right = item("What are the segment ids")
    assert "a has 4 tokens, text b has 3" in found.question
    ids, segments, _ = packed(4, 3, 10)
    assert right.text == " ".join(map(str, segments))
    first_sep, *_ = [t for t, token in enumerate(ids) if token == 3]
    other = [int(t >= first_sep) for t in range(10)], [*segments[:-1], 0]
    assert [c.text for c in wrong(found)] == [" ".join(map(str, row)) for row in other]


def test_the_longer_text_is_cut():
    found, right = item("must fit into 64")
    assert "70 tokens and a hypothesis of 20" in found.question
    ids, *_ = packed(70, 20, 64)
    premise, hypothesis = ids.count(5), ids.count(6)
    text = "{} of the premise, {} of the hypothesis".format
    assert right.text == text(premise, hypothesis)
    assert f"become {premise} and {hypothesis}," in answer("longer than the model's sequences")
    room = 64 - 3
    share, forgetful = wrong(found)
    assert share.text == text(round(70 * room / 90), round(20 * room / 90))
    assert forgetful.text == text(64 - 20, 20) and f"{room} positions" in right.why


def test_the_artefact_is_no_luck():
    found, _ = item("hypotheses only")
    deviation = math.sqrt(1 / 3 * 2 / 3 / 100)  # standard, of the accuracy on 100 pairs
    assert "61%" in found.question and (0.61 - 1 / 3) / deviation > 5


# ---------------------------------------------------------------- tags and spans


def test_the_tags_are_counted():
    assert len(ENTITY_TAGS) == 2 * len(ENTITY_KINDS) + 1
    found, right = item("Four kinds of entities")
    assert right.text.startswith(f"{2 * 4 + 1},") and "2 · 4 + 1" in right.why
    assert [c.text[:2] for c in wrong(found)] == ["4,", "8,"]


def test_first_pieces_are_counted():
    found, right = item("is cut into 10 pieces")
    names, words = ("NOUN", "VERB"), tuple(["aa", "b", "cc", "d", "ee", "ff"])
    pieces = ("##a", "##c", "##e", "##f")
    tokenizer = WordPiece([*SPECIAL_TOKENS, *"abcdef", *pieces])
    sentence = TaggedSentence("t", " ".join(words), words, (*names,) * 3, ("O",) * 6)
    made = tagged_sequences([sentence], "pos", tokenizer, 20, names)
    labelled = int((made.labels != -100).sum())
    whole = int(made.sequences.attention_mask.sum())
    assert f"{len(words)} words is cut into {whole - 2} pieces" in found.question
    assert f"there are {whole} positions" in found.question
    assert [int(c.text.split(":")[0]) for c in found.choices] == [labelled, whole - 2, whole]
    assert right.text.startswith(f"{len(words)}:")


TAGS = ["B-PER", "I-PER", "O", "O", "B-LOC", "O", "B-ORG", "I-ORG", "I-ORG", "O"]
SAID = [*TAGS[:8], "O", "O"]


def test_spans_are_counted_whole():
    found, right = item("Nine of ten words")
    assert f"`{' '.join(TAGS)}`" in found.question
    scores = span_scores([TAGS], [SAID])
    assert right.text == f"{scores.f1:.2f}"
    assert (scores.precision, scores.recall) == (2 / 3, 2 / 3)
    words = f1([tag != "O" for tag in TAGS], [tag != "O" for tag in SAID], positive=True)
    assert [c.text for c in wrong(found)] == [f"{accuracy(TAGS, SAID):.2f}", f"{words:.2f}"]
    said = answer("Accuracy of tags and F1")
    assert "Tags: 9/10" in said and accuracy(TAGS, SAID) == 9 / 10
    assert f"recall = F1 = {scores.f1:.2f}" in said


def test_a_wrong_tag_may_leave_the_span():
    assert "the same span" in answer("Accuracy of tags and F1")
    begun_with_i = ["I-PER", *TAGS[1:]]
    assert accuracy(TAGS, begun_with_i) < 1 == span_scores([TAGS], [begun_with_i]).f1


def test_the_length_fits_though_the_place_does_not():
    found, right = item("with start 93 and end 101")
    assert "eight characters" in found.question
    assert f"101 − 93 = {101 - 93} fits" in found.choices[0].why
    assert right.text.startswith("`context[93:101]`")


def test_the_words_of_the_answer_are_counted():
    assert f"(77, 79) has 79 − 77 + 1 = {79 - 77 + 1}," in answer("(17, 17), and later (77, 79)")


# ---------------------------------------------------------------- questions and answers

STARTS, ENDS = [0.5, 2.0, 0.1, 3.0], [2.8, 1.0, 2.5, 0.4]


def best(starts, ends):
    """The passage behind [CLS]: its tokens are counted from 1."""
    logits = [torch.tensor([[-9.0, *scores]], dtype=torch.float64) for scores in (starts, ends)]
    allowed = torch.tensor([[False, *(True for _ in starts)]])
    return best_spans(*logits, allowed)


def test_the_best_span_is_searched():
    found, right = item("A passage of four tokens")
    for scores in (STARTS, ENDS):
        assert ", ".join(map(str, scores)) in found.question
        assert ", ".join(map(str, scores)) in answer("where the answer starts and ends")
    span = best(STARTS, ENDS)
    assert right.text == f"{int(span.start)} to {int(span.end)}, with {span.score.item():.1f}"
    backwards, greedy = wrong(found)
    i, j = STARTS.index(max(STARTS)), ENDS.index(max(ENDS))
    assert j < i and backwards.text == f"{i + 1} to {j + 1}, with {STARTS[i] + ENDS[j]:.1f}"
    j = ENDS.index(max(ENDS[i:]))
    assert greedy.text == f"{i + 1} to {j + 1}, with {STARTS[i] + ENDS[j]:.1f}"
    assert sum(j >= i for i in range(4) for j in range(4)) == 10 and "Ten pairs" in right.why


def test_the_null_answer_is_weighed():
    found, right = item("SQuAD 2.0")
    assert "span scores 4.5, both ends at [CLS] score 5.1" in found.question
    assert "τ = −1" in found.question
    logits = torch.tensor([[5.1, 4.5]], dtype=torch.float64)
    span = best_spans(logits, torch.zeros_like(logits), torch.tensor([[False, True]]))
    assert span.answered(-1.0).item() and right.text == "The span, as 4.5 > 5.1 − 1"
    tau_0, other_sign = wrong(found)
    assert tau_0.text.endswith("5.1 is above 4.5")
    assert other_sign.text.endswith("4.5 is below 5.1 + 1")
    assert not span.answered(0.0).item() and not span.answered(1.0).item()
    assert f"s_null + τ = {5.1 - 1:.1f}" in right.why


def test_the_span_loss_is_worked_out():
    found, right = item("1/2 and the true end 1/8")
    start, end = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.5, 0.375, 0.125]])
    outputs = SpanOutput((start + 1e-9).log(), end.log())
    losses = span_loss(outputs, {"start": torch.tensor([0]), "end": torch.tensor([2])})
    assert right.text == f"{losses['total'].item():.2f}"
    both = losses["start"] + losses["end"]
    assert both.item() == pytest.approx(math.log(2) + math.log(8), abs=1e-5)
    mean = -math.log((1 / 2 + 1 / 8) / 2)
    assert [c.text for c in wrong(found)] == [f"{both.item():.2f}", f"{mean:.2f}"]


def test_the_answers_words_are_counted():
    found, right = item("harbour wall of stone")
    gold, said = ["the old harbour wall"], "harbour wall of stone"
    assert f"*{gold[0]}*" in found.question
    form = "EM {:.0f}, F1 {:.2f}".format
    exact = exact_match(said, gold)
    assert right.text == form(exact, answer_f1(said, gold)) and "2 · 2 / (3 + 4)" in right.why
    with_article, recall = wrong(found)
    assert with_article.text == form(exact, 2 * 2 / (4 + 4))
    assert recall.text == form(exact, 2 / 3)


# ---------------------------------------------------------------- scores of benchmarks


def test_matthews_by_hand():
    found, right = item("Of 100 sentences 80")
    true = [1] * 80 + [0] * 20
    said = [1] * 70 + [0] * 10 + [0] * 10 + [1] * 10
    constant = [1] * 100
    assert "recognises 70 of these and 10 of the other 20" in found.question
    assert f"accuracy is {accuracy(true, said):.2f}" in found.question
    assert accuracy(true, said) == accuracy(true, constant)
    model, nothing = matthews(true, said), matthews(true, constant)
    assert right.text == f"{model:.3f} for the model, {nothing:.0f} for the constant answer"
    assert "600/1600" in right.why and pytest.approx(600 / 1600) == model
    rescaled, scores = wrong(found)
    assert rescaled.text == f"{2 * accuracy(true, said) - 1:.2f} for both, being 2 · 0.80 − 1"
    form = "{:.2f} for the model, {:.2f} for the constant answer"
    assert scores.text == form.format(f1(true, said), f1(true, constant))


def test_values_and_ranks_are_correlated():
    found, right = item("a model says 0, 1, 4, 9")
    true, said = [0, 1, 2, 3], [0, 1, 4, 9]
    assert found.question.startswith(
        f"True similarities {str(true)[1:-1]}; a model says {str(said)[1:-1]}."
    )
    line, ranks = pearson(true, said), spearman(true, said)
    assert right.text == f"Pearson {line:.2f}, Spearman {ranks:.0f}"
    assert "15/sqrt(5·49)" in right.why and pytest.approx(15 / math.sqrt(5 * 49)) == line
    assert wrong(found)[0].text == f"Pearson {ranks:.0f}, Spearman {line:.2f}"
    classes = f"Accuracy {accuracy(true, said):.2f}, macro F1 {macro_f1(true, said):.2f}"
    assert wrong(found)[1].text == classes


def test_the_settings_are_the_papers():
    _, right = item("most hyper-parameters")
    assert all(f"{part}" in right.why for part in ("16 or 32", "5e-5, 3e-5 or 2e-5", "2, 3 or 4"))
    said = answer("What does fine-tuning cost")
    assert f"2 · 3 · 3 = {2 * 3 * 3} runs" in said
    before = BERT["pretraining"]
    _, _, none = item("most hyper-parameters")[0].choices
    assert f"batches of {before['batch']}" in none.why and before["learning_rate"] == 1e-4


def test_the_half_hour_is_of_the_large_model():
    large = BERT["whole_word_masking"]
    found, right = item("30 minutes")
    assert "BERT-large" in large["what"] and right.text.startswith("BERT-large")
    assert f"dev F1 {large['pieces'][0]}" in right.why and "SQuAD 1.1 dev" in right.text
    assert f"{large['pieces'][0]:.0f}% F1" in found.question


def test_wnli_is_not_in_the_average():
    row = GLUE["bert_large_leaderboard"]["scores"]
    _, right = item("describes eight")
    assert str(row["WNLI"]) in right.text and str(row["WNLI"]) in answer("nine tasks")
    assert "WNLI" not in GLUE["bert_large_test"]["scores"]
    assert all(task in answer("nine tasks") for task in row) and len(row) == 9


def test_the_rows_of_the_table_are_subtracted():
    found, right = item("CoNLL-2003, test F1")
    score = {"ELMo": 92.2, "BERT-base": 92.4, "CVT": 92.6, "BERT-large": 92.8, "Flair": 93.1}
    assert ", ".join(f"{name} {value}" for name, value in score.items()) in found.question
    ranked = sorted(score, key=score.__getitem__, reverse=True)
    assert ranked.index("BERT-large") == 1 and ranked[0] == "Flair"
    assert (
        found.choices[0].text == f"BERT-large reads {score['BERT-large']}% of all words correctly"
    )
    assert f"{score['Flair'] - score['BERT-large']:.1f} behind Flair" in right.text
    gap = f"{score['BERT-base'] - score['ELMo']:.1f}"
    assert f"{gap} above ELMo" in found.choices[1].why
    lecture = {"TagLM": 91.93, "ELMo": 92.22, "CVT": 92.61, "Flair": 93.09}
    said = answer("TagLM")
    assert all(f"{name} {value}" in said for name, value in lecture.items())
    assert all(round(value, 1) == score[name] for name, value in lecture.items() if name in score)
    ranked = sorted(score | lecture, key=(score | lecture).__getitem__, reverse=True)
    assert ranked.index("BERT-base") == 3 and "fourth of six" in said and len(ranked) == 6


def test_one_run_says_nothing():
    found, right = item("86.9 on MRPC")
    assert f"{86.9 - 86.1:.1f} is small" in right.why and f"a spread of {88 - 84}" in right.why
    assert "A has 86.9 on MRPC's development set, model B 86.1," in found.question
    assert "84 to 88 between runs" in found.question


def test_the_confidence_is_worked_out():
    said = answer("a negation before")
    assert f"{math.log(0.9996 / 0.0004):.1f} apart" in said
    assert f"of 10,000 such answers {round(10_000 * (1 - 0.9996))} are wrong" in said
