"""What no view can draw is refused in words: what was given, and what was expected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from colab_smoke import counted, deberta, digit, electra, question, speeds, tokenizer, vit, world

from course_lib import bert
from course_lib.bench.traffic import Traffic
from course_lib.lectures.lecture_01.views import tree, who_sees_whom
from course_lib.lectures.lecture_03.views import (
    cut_pairs,
    finetuning_charts,
    span_pairs,
    tagged_words,
)
from course_lib.lectures.lecture_04.views import byte_pieces
from course_lib.lectures.lecture_05.views import calculator
from course_lib.lectures.lecture_06.views import layer_map, temperature
from course_lib.lectures.lecture_07.views import corruptor
from course_lib.lectures.lecture_08.views import distance_buckets, score_spread, three_scores
from course_lib.lectures.lecture_09.views import units
from course_lib.lectures.lecture_10.views import parallel
from course_lib.lectures.lecture_11.views import pieces
from course_lib.lectures.lecture_12.views import budget, exits
from course_lib.lectures.lecture_14.views import page_faults, roofline
from course_lib.lectures.lecture_14.views import speeds as bench_speeds
from course_lib.lectures.lecture_14.views.traffic_bars import traffic_chart
from course_lib.lectures.lecture_15.views import attention_maps
from course_lib.lectures.lecture_16.views import packing_drawing, rotation_picture, window_picture
from course_lib.teaching import attention, figures, predictions, run_charts, style, tokens
from course_lib.text.wordpiece import WordPiece

LOGITS = torch.tensor([4.0, 3.0, 2.5])
WORDS = ["red", "blue", "green"]
TOKENS, START, END, ALLOWED = question()
SCORES = {"50": [0.4, 0.5], "200": [0.5, 0.6]}
LINE = {"alpha": [0, 1], "train_loss": [1, 2], "test_score": [0.1, 0.2]}
ROOF = {"float32": 200.0, "memory": 20.0}
AXES = {"x_title": "step", "y_title": "loss", "title": "t"}
POINT = {"name": "a", "x": 1, "y": 2}
TEXT = "the river rose"


def spans(**changes: Any) -> Callable[[], Any]:
    row = {"tokens": TOKENS, "start_logits": START, "end_logits": END, "allowed": ALLOWED}
    return lambda: span_pairs.span_table(**{**row, **changes})


def one_speed(*rates: float) -> dict[str, Any]:
    return {**speeds(), "tables": {"t": [{"name": "a", "rates": list(rates)}]}}


def tradeoff(*points: Any) -> Callable[[], Any]:
    return lambda: figures.tradeoff_chart(list(points), x="size", y="score", log_x=True)


def curves(runs: Any) -> Callable[[], Any]:
    return lambda: run_charts.curves_chart(runs, **AXES)


def dots(groups: Any) -> Callable[[], Any]:
    return lambda: run_charts.dots_chart(groups, title="t", y_title="y")


def ablation(groups: Any) -> Callable[[], Any]:
    return lambda: run_charts.ablation_chart(groups, title="t", x_title="x")


def weights() -> Any:
    return bert("tiny", vocab_size=tokenizer().vocab_size).eval(), torch.tensor([2, 5, 6, 3])


REFUSED: list[tuple[Callable[[], Any], str]] = [
    # tokens, attention, predictions, colours
    (lambda: tokens.tokens_row(["a", "b"], [0]), "one action and one label for each token"),
    (lambda: attention.attention_view(*weights(), ["too", "few"]), "expected one for each id"),
    (lambda: attention.attention_view(*weights(), ["x"] * 4, layer=4), "a layer from 1 to 2"),
    (lambda: predictions.prediction_slider([]), "at least one"),
    (lambda: style.colour("gpt"), "has no colour yet"),
    # charts
    (lambda: figures.coverage_chart(simulated={"often": [0.1]}),
     "'often'; expected names of the lines: static, ten copies, dynamic"),
    (curves({}), "was given no points"),
    (curves({"a": []}), "'a' holds no points"),
    (curves({"a": [[(1, 1.0)], [(2, 1.0)]]}), "'a': its runs were measured at different x"),
    (curves({"a": [[(1, 1.0), (2, math.nan)]]}), "all of them numbers"),
    *((dots(groups), "expected") for groups in ({}, {"a": []}, {"a": [math.inf]})),
    *((lambda models=models: run_charts.layer_distance_chart(models, title="t"), "expected")
      for models in ({}, {"a": ([1.0], [])}, {"a": ([math.nan], [1.0])})),
    (tradeoff(), "no points"),
    (tradeoff({"x": 1, "y": 2}), "a different name for each"),
    (tradeoff(POINT, POINT), "a different name for each"),
    (tradeoff({"name": "a", "x": 1}), "'a' has no y"),
    (tradeoff({**POINT, "y": math.nan}), "not a number"),
    (tradeoff({**POINT, "low": 1}), "low and high, or neither"),
    (tradeoff({**POINT, "low": 2.5, "high": 3}), "lies outside"),
    (tradeoff({**POINT, "x": 0}), "x > 0"),
    (lambda: run_charts.gradient_chart({}, [1, 2]), "no loss"),
    (lambda: run_charts.gradient_chart({"KL": [1.0]}, [1, 2]), "1 norms for 2 temperatures"),
    (lambda: run_charts.gradient_chart({"KL": [1.0, 0.0]}, [1, 2]), "above zero"),
    (lambda: run_charts.gradient_chart({"KL": [1.0, 1.0]}, [0, 2]), "above zero"),
    (lambda: run_charts.gradient_chart({"KL": [1.0, math.nan]}, [1, 2]), "all of them numbers"),
    (ablation({}), "one to three"),
    (ablation({"a": {}}), "one to three"),
    (ablation({"a": {"x": [1.0]}, "b": {"y": [1.0]}}), "different rows"),
    (ablation({"a": {"x": []}}), "at least one value"),
    (ablation({"a": {"x": [math.inf]}}), "all of them numbers"),
    # lecture 01
    (lambda: who_sees_whom.sight("prefix"), "kind='prefix' was given; expected one of encoder"),
    (lambda: tree.tree_view("Grover"), "'Grover' was given; the tree has word2vec"),
    # lecture 03
    (lambda: tagged_words.tag_view([], []), "0 words, 0 predicted tags were given"),
    (lambda: tagged_words.tag_view(["a"], ["O", "O"]), "1 words, 2 predicted tags"),
    (lambda: tagged_words.tag_view(["a"], ["O"], []), "1 words, 1 predicted tags, 0 true tags"),
    (lambda: tagged_words.tag_view(["a", "b"], ["O", "PER"]), "the tag 'PER' was given"),
    (spans(tokens=TOKENS[:-1]), "8 tokens, 9 start logits"),
    (spans(allowed=torch.zeros(9).bool()), "0 allowed tokens"),
    (spans(allowed=torch.ones(9).bool()), "([CLS]: True)"),
    (spans(longest=0), "longest=0"),
    (spans(start_logits=torch.full((9,), math.nan)), "may have diverged"),
    (lambda: span_pairs.span_explorer(*question(), threshold=1e3), "which holds every margin"),
    *((lambda result=result: finetuning_charts.learning_curves(result), message)
      for result, message in (
        ({"baselines": {}}, "expected one or two"), ({"nli": {}}, "expected one or two"),
        ({name: {"a": SCORES} for name in "abc"}, "expected one or two"),
        ({"nli": {"random": {}}}, "'random' has no scores"),
        ({"nli": {"random": {"20": []}}}, "expected at least one value"),
        ({"nli": {"random": {"20": [math.nan]}}}, "all of them numbers"),
        ({"nli": {"random": {"0": [0.5]}}}, "0 texts were given; expected at least 1"),
    )),
    (lambda: finetuning_charts.loss_line({}), "no start"),
    (lambda: finetuning_charts.loss_line({"random": {**LINE, "alpha": [0]}}), "as many of each"),
    (lambda: finetuning_charts.loss_line({"random": {**LINE, "train_loss": [1, math.inf]}}),
     "random, train_loss"),
    *((lambda texts=texts: cut_pairs.cut_picture(*texts), "expected")
      for texts in ((WORDS, WORDS, 4), ([], WORDS, 9), (WORDS, [], 9))),
    # lectures 04 to 07
    (lambda: byte_pieces.byte_pieces_picture(None, "the bank", 2), "a number from 0 to 1"),
    (lambda: byte_pieces.byte_pieces_picture(None, "a \ud83d bank"), "Join the halves"),
    (lambda: calculator.parameter_calculator("huge"), "expected one of base, large"),
    *((lambda x=scores, more=more: temperature.temperature_view(x, WORDS, **more), message)
      for scores, more, message in (
        (LOGITS[None], {}, "one logit a word"), (LOGITS[:2], {}, "one logit a word"),
        (LOGITS * math.inf, {}, "no number"), (LOGITS, {"truth": "violet"}, "one of the 3 words"),
        (LOGITS, {"top": 0}, "1 to 20"),
    )),
    (lambda: temperature.soften(LOGITS, WORDS, 0), "above 0"),
    *((lambda shape=shape: layer_map.layer_map_view(*shape), message) for shape, message in (
        ((4, 12, ()), "expected some of uniform, top, bottom"),
        ((4, 12, ("upper",)), "expected some of uniform, top, bottom"),
        ((13, 12), "1 to 12 layers"), ((4, 96), "at most 48"),
        ((5, 12, ("uniform",)), "a divisor of it"),
    )),
    (lambda: corruptor.corrupt_and_detect(electra(), tokenizer(), TEXT, share=1.5), "0 to 1"),
    (lambda: corruptor.corrupt_and_detect(electra(), tokenizer(), TEXT, seed=-1), "from 0 on"),
    (lambda: corruptor.corruptor_view(electra().generator, tokenizer(), TEXT),
     "a BertForMaskedLM was given; expected an Electra"),
    (lambda: corruptor.corruptor_view(electra(), WordPiece.from_words(["the"]), "the"),
     "the tokenizer it was trained with"),
    # lecture 08
    (lambda: distance_buckets.bucket_chart(span=5), "span=5 was given; expected one of 4, 8"),
    (lambda: distance_buckets.bucket_chart(tokens=601), "tokens=601"),
    (lambda: distance_buckets.bucket_chart("third"), "expected one of first, second"),
    (lambda: distance_buckets.bucket_chart(span=512), "at least 2k = 1,024"),
    *((lambda size=size: distance_buckets.distance_rows(*size), "expected 2 to 600 tokens")
      for size in ((601, 4), (1, 4), (8, 2))),
    *((lambda size=size: distance_buckets.delta_tables(*size), "expected 2 to 10")
      for size in ((1, 1), (11, 2), (6, 7), (6, 0))),
    (lambda: distance_buckets.delta_picture(6, 2, 6, 0), "expected positions 0 to 5"),
    *((lambda size=size: score_spread.score_statistics(8, **size), "one to three terms")
      for size in ({"terms": 4}, {"terms": 0}, {"tokens": 1}, {"texts": 0})),
    (lambda: score_spread.score_statistics(0), "one to three terms"),
    (lambda: score_spread.score_variance(10), "expected one of 4, 8"),
    (lambda: three_scores.measure_scores(weights()[0], tokenizer(), TEXT),
     "a Encoder was given; expected a DeBERTa"),
    (lambda: three_scores.measure_scores(deberta(), WordPiece.from_words(["the"]), "the"),
     "the tokenizer it was trained with"),
    (lambda: three_scores.measure_scores(deberta(), tokenizer(), TEXT, 3),
     "layer=3 was given; expected 1 to 1"),
    (lambda: three_scores.measure_scores(deberta(), tokenizer(), TEXT, 0), "layer=0 was given"),
    (lambda: three_scores.measure_scores(deberta(), tokenizer(), TEXT, 1, 4),
     "head=4 was given; expected 1 to 2"),
    (lambda: three_scores.draw_score_maps(
        three_scores.measure_scores(deberta(), tokenizer(), TEXT), terms=["p2p"]
    ), "expected some of c2c, c2p, p2c"),
    # lectures 09 to 12
    (lambda: units.story_units(world(), world().stories(1)[0], "words"),
     "one of basic, phrase, entity"),
    (lambda: parallel.parallel_picture({}, world().stories(1)[0], "the weather"),
     "expected one of the hero"),
    (lambda: pieces.pieces_picture({}, "a"), "no vocabulary was given"),
    (lambda: exits.left_at([(0.5, 0.5)], 0.5, "margin"), "'entropy' or 'probability'"),
    (lambda: exits.exits_picture({}), "No texts"),
    (lambda: budget.budget_view([]), "No offers"),
    # lecture 14
    (lambda: page_faults.faults_chart([], []), "faults_chart was given no step"),
    *((lambda twins=twins: traffic_chart(twins), "by_kind")
      for twins in ({}, {"a": {}}, {"a": {"add": Traffic("add")}})),
    *((lambda roof=roof, by=by, points=points: roofline.roofline_chart(roof, points, by), message)
      for roof, points, by, message in (
        (ROOF, [], "unavoidable", "no points"),
        (ROOF, counted(1), "cached", '"unavoidable" or "moved"'),
        ({"memory": 20.0}, counted(1), "moved", "'float32' above zero"),
        ({**ROOF, "memory": 0.0}, counted(1), "moved", "'memory' above zero"),
    )),
    *((lambda record=record, table=table: bench_speeds.speed_chart(record, table), message)
      for record, table, message in (
        ({}, None, "expected machine and tables"),
        ({"machine": {}, "tables": {}}, None, "expected machine and tables"),
        (speeds(), "Late exit", "expected one of: Masking"),
        (one_speed(1.0), None, "two or more"), (one_speed(0.0, 1.0), None, "above zero"),
    )),
    # lectures 15 and 16
    *((lambda wrong=wrong: attention_maps(vit(), digit(), **wrong),
       "a layer of 1 to 2 and a patch of 1 to 16")
      for wrong in ({"what": "values"}, {"layer": 3}, {"patch": 17}, {"patch": 0})),
    (lambda: rotation_picture(-1, 2), "expected 0 or more"),
    (lambda: window_picture(4, 0), "expected at least 1"),
    (lambda: window_picture(0, 3), "window=0"),
    *((lambda lengths=lengths: packing_drawing(lengths), "one to four texts")
      for lengths in ((), (1, 0), (1, 1, 1, 1, 1))),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "message"), REFUSED)
def test_what_cannot_be_drawn_is_refused_in_words(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        ask()
