"""What quizzes work out by hand and no expression says briefly: the right choice, computed with the
library or with an exercise's solution. What can be said as a number, quiz.toml takes by
{{number:…}}."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import transformers

from course_lib.family.ernie import ErnieConfig
from course_lib.family.modernbert import ModernBertConfig
from course_lib.family.roberta import position_ids_after_padding
from course_lib.heads import SpanOutput
from course_lib.kernels.masking import count_to_predict
from course_lib.kernels.sliding_window import window_mask
from course_lib.lectures.lecture_01.exercises import visible
from course_lib.lectures.lecture_04.exercises.accumulate import large_batch_loss
from course_lib.lectures.lecture_05.exercises.ngrams import ngram_lengths
from course_lib.lectures.lecture_08.exercises.rows import delta
from course_lib.lectures.lecture_10.exercises import pairs
from course_lib.lectures.lecture_12.exercises.uncertainty import uncertainty
from course_lib.lectures.lecture_13.exercises.matthews import matthews_of_counts
from course_lib.lectures.lecture_14.exercises import bound
from course_lib.lectures.lecture_17.exercises.bm25 import bm25
from course_lib.lectures.lecture_17.exercises.info_nce import info_nce
from course_lib.objectives.sequences import SpecialIds
from course_lib.objectives.spans import best_spans, span_loss
from course_lib.objectives.translation_lm import mix_of
from course_lib.teaching.claims import printed
from course_lib.teaching.quizzes import read_quiz, read_review
from course_lib.text.packing import pack_pair
from course_lib.text.wordpiece import longest_match
from course_lib.train.ranking_metrics import ranking_scores
from course_lib.train.searching import QuantisedIndex
from course_lib.train.span_metrics import exact_match, span_scores

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=9)
TAGS = ["B-PER", "I-PER", "O", "O", "B-LOC", "O", "B-ORG", "I-ORG", "I-ORG", "O"]


def row(values) -> str:
    return " ".join(map(str, values))


def packed(a: int, b: int, length: int):
    return pack_pair([5] * a, [6] * b, SPECIAL, length, truncate=True)


def cut_pair() -> str:
    ids, *_ = packed(70, 20, 64)
    return f"{ids.count(5)} of the premise, {ids.count(6)} of the hypothesis"


def best_span() -> str:
    """The passage behind [CLS]: its tokens are counted from 1."""
    starts, ends = ([-9.0, 0.5, 2.0, 0.1, 3.0], [-9.0, 2.8, 1.0, 2.5, 0.4])
    logits = (torch.tensor([x], dtype=torch.float64) for x in (starts, ends))
    span = best_spans(*logits, torch.tensor([[False, True, True, True, True]]))
    return f"{int(span.start)} to {int(span.end)}, with {span.score.item():.1f}"


def null_answer() -> str:
    logits = torch.tensor([[5.1, 4.5]], dtype=torch.float64)
    span = best_spans(logits, torch.zeros_like(logits), torch.tensor([[False, True]]))
    answers = [bool(span.answered(tau)) for tau in (-1.0, 0.0, 1.0)]
    return "The span, as 4.5 > 5.1 − 1" if answers == [True, False, False] else "no answer"


def loss_of_a_span() -> str:
    start, end = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.5, 0.375, 0.125]])
    outputs = SpanOutput((start + 1e-9).log(), end.log())
    losses = span_loss(outputs, {"start": torch.tensor([0]), "end": torch.tensor([2])})
    return f"{losses['total'].item():.2f}"


def words_of_every_length() -> str:
    lengths = ngram_lengths((torch.arange(66_000, dtype=torch.float64) + 0.5) / 66_000, 3)
    threes = lengths[lengths == 3].sum() / lengths.sum()
    return "1/3" if abs(threes - 1 / 3) < 1e-4 else f"{threes}"


def mixture_of_xlm() -> str:
    masked, random, kept = mix_of("0.8,0.15,0.05")
    return f"{masked:.0%} become [MASK], {kept:.0%} are kept, {random:.0%} are replaced at random"


def sure(*p: float) -> float:
    return uncertainty(torch.tensor([p], dtype=torch.float64).clamp(min=1e-30).log()).item()


def two_uncertain() -> str:
    first, second = sure(0.6, 0.4, 0), sure(0.6, 0.2, 0.2)
    return f"The first: its uncertainty is {first:.2f}, the other's {second:.2f}"


def two_classifiers() -> str:
    counts = torch.tensor([[[0, 10], [0, 90]], [[8, 2], [13, 77]]])
    always, other = matthews_of_counts(counts).tolist()
    return f"B, by {other:.2f} to {always:.0f}"


def other_metrics() -> str:
    tasks = (item for item in printed("glue")["tasks"].items() if isinstance(item[1], dict))
    *first, last = (name for name, task in tasks if task["metrics"] != ["accuracy"])
    return f"{', '.join(first)} and {last}"


def cells_of_a_prefix() -> str:
    return str(int(visible.visible(4, 3, torch.ones(7, dtype=torch.bool)).sum()))


def seen_in_the_window() -> str:
    return str(int(window_mask(torch.zeros(1, 1_000), ModernBertConfig().window)[0, 500].sum()))


def loss_of_equal_scores() -> str:
    loss = info_nce(torch.ones(128, 2).double(), torch.ones(128, 2).double(), 1.0)
    return f"{loss:.2f}, which is ln 128"


def ten_times_a_word() -> str:
    """Beside once, in two documents of one length."""
    once, ten = (["word"] * n + ["other"] * (10 - n) for n in (1, 10))
    first, second = bm25(["word"], [once, ten], 1.5, 0.75).tolist()
    return f"{second / first:.1f} times"


def ten_equal_scores() -> str:
    scores = ranking_scores({"q": dict.fromkeys("abcdefghij", 0.0)}, {"q": {"d": 1}})
    return f"{scores.reciprocal_rank[0]:.2f}"


def megabytes_of_signs() -> str:
    return f"{QuantisedIndex(torch.ones(10, 384), bits=1).nbytes / 10:.0f} MB"


WORKED: list[tuple[str, str, Callable[[], str]]] = [  # lecture, words of the question, right choice
    ("01", "In the 7 × 7 mask", cells_of_a_prefix),
    ("02", "What is BERT's loss?", lambda: f"{6 / 3 + 0.6 / 2:.1f}"),
    ("02", "how many become [MASK]", lambda: f"{0.8 * 0.15 * 1_000:.0f} "),
    ("03", "What are the segment ids", lambda: row(packed(4, 3, 10)[1])),
    ("03", "must fit into 64", cut_pair),
    ("03", "Nine of ten words", lambda: f"{span_scores([TAGS], [[*TAGS[:8], 'O', 'O']]).f1:.2f}"),
    ("03", "A passage of four tokens", best_span),
    ("03", "SQuAD 2.0", null_answer),
    ("03", "1/2 and the true end 1/8", loss_of_a_span),
    ("04", "read in two parts", lambda: f"{large_batch_loss([3., 2.], [10, 30], [1, 1], [1, 1])}"),
    ("04", "position numbers",
     lambda: row(position_ids_after_padding(torch.tensor([[0, 7, 8, 2, 1, 1]]), 1)[0].tolist())),
    ("05", "runs of three", words_of_every_length),
    ("08", "k = 2.", lambda: row(delta(6, 2)[5].tolist())),
    ("10", "word_mask_keep_rand", mixture_of_xlm),
    ("12", "(0.6, 0.4, 0) and (0.6, 0.2, 0.2)", two_uncertain),
    ("13", "ahead by CoLA's metric", two_classifiers),
    ("14", "one FLOP for each byte",
     lambda: f"{1 / bound.least_seconds(1e9, 1e9, 200, 40):.0f} GFLOP/s"),
    ("14", "Three quarters of a batch", lambda: f"{1 / (1 - 0.75):g} times"),
    ("16", "`local_attention` is 128", seen_in_the_window),
    ("17", "128 pairs", loss_of_equal_scores),
    ("17", "cosine 0.8", lambda: f"{math.exp((0.8 - 0.7) / 0.05):.1f} times"),
    ("17", "ten times instead of once", ten_times_a_word),
    ("17", "900 of 1,000", lambda: f"Its weight is negative, about −{math.log(900.5 / 100.5):.1f}"),
    ("17", "to ten documents", ten_equal_scores),
    ("17", "128 numbers of 2 bytes", lambda: f"About {128 * 128 * 2 / (384 * 4):.0f} times"),
    ("17", "index of their signs", megabytes_of_signs),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lecture", "words", "work"), WORKED, ids=[f"{n} {w}" for n, w, _ in WORKED]
)
def test_the_right_choice_is_worked_out(lecture: str, words: str, work: Callable[[], str]) -> None:
    (item,) = (item for item in read_quiz(lecture) if words in item.question)
    (right,) = (choice for choice in item.choices if choice.correct)
    assert right.text.startswith(work())


def answer(lecture: str, words: str) -> str:
    (text,) = (entry.answer for entry in read_review(lecture) if words in entry.question)
    return text


def test_a_tlm_sequence_is_drawn_right() -> None:
    for line in pairs.pair(["a", "cat"], ["un", "chat"], (0, 1), "</s>"):
        assert row(line) in answer("10", "Draw one TLM sequence")


def test_what_a_speed_means_for_two_classes() -> None:
    for speed, probability in ((0.5, 0.89), (0.8, 0.76)):
        assert sure(probability, 1 - probability) == pytest.approx(speed, abs=0.01)


def test_words_and_answers_are_taken_apart() -> None:
    pieces = set(["play", "##ful", "##fully", "##ly"])
    assert longest_match("playfully", pieces) == ["play", "##fully"]
    assert count_to_predict(30, 0.15) == 4
    assert exact_match("harbour wall of stone", ["the old harbour wall"]) == 0


def test_adam_forgets_a_factor_but_not_in_a_shared_table() -> None:
    """What 07 says about λ, for Adam's first step: the gradient over its own size."""

    def step(gradient: float) -> float:
        return -gradient / (math.sqrt(gradient**2) + 1e-6)

    mlm, disc = -10.0, 1.0  # the two losses pull a shared weight in opposite directions
    assert step(50 * disc) == pytest.approx(step(disc), rel=1e-4)
    assert step(mlm + disc) > 0 > step(mlm + 50 * disc)


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        ("ErnieConfig", "hidden_act", "gelu"),  # 09: the released model has ReLU
        ("XLMRobertaConfig", "vocab_size", 30_522),  # 10: nothing of XLM-R
        ("XLMRobertaConfig", "max_position_embeddings", 512),
        ("ModernBertConfig", "local_attention", ModernBertConfig().window),  # 16: as ours
        ("ModernBertConfig", "max_position_embeddings", ModernBertConfig().max_positions),
    ],
)
def test_what_quizzes_say_of_transformers_is_so(config: str, name: str, value: object) -> None:
    assert getattr(getattr(transformers, config)(), name) == value
    assert ErnieConfig().hidden_act == "relu"


def test_segment_ids_in_two_classes_of_transformers() -> None:
    """13: BERT reads them, RoBERTa has no row for a 1."""
    ids, one = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[0, 0, 1, 1]])
    small = {"vocab_size": 20, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
             "num_attention_heads": 2, "max_position_embeddings": 12}  # fmt: skip
    bert = transformers.BertModel(transformers.BertConfig(**small)).eval()
    first, second = (bert(ids, token_type_ids=x).last_hidden_state for x in (one, 0 * one))
    assert not torch.equal(first, second)
    roberta = transformers.RobertaModel(transformers.RobertaConfig(**small, type_vocab_size=1))
    with pytest.raises(IndexError):
        roberta(ids, token_type_ids=one)
