"""Solutions of lecture 17 beside the library; numbers by hand that must be true."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from course_lib.kernels.maxsim import maxsim
from course_lib.lectures.lecture_17.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_17.exercises import (
    bm25,
    codes,
    info_nce,
    measures,
    mix,
)
from course_lib.lectures.lecture_17.exercises import maxsim as late
from course_lib.objectives.contrastive import info_nce_loss
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import alike
from course_lib.train.ranking_metrics import ranking_scores
from course_lib.train.searching import BM25, QuantisedIndex, reciprocal_rank_fusion, weighted_mix

EXERCISES = {exercise.id: exercise for exercise in ALL}


def texts_of(id: str) -> str:
    return EXERCISES[id].statement + " ".join(EXERCISES[id].hints)


def cases(id: str):
    return [case for stage in EXERCISES[id].stages for case in stage.cases(Draw(5))]


def numbers(values, digits: int | None = None) -> list[str]:
    """As the statements print them, with a true minus."""
    texts = (f"{x:g}" if digits is None else f"{x:.{digits}f}" for x in values)
    return [text.replace("-", "−") for text in texts]


def test_the_loss_is_the_librarys():
    for queries, documents, temperature in cases("17.1"):
        theirs = info_nce_loss(queries, documents, temperature=temperature, symmetric=True)
        assert alike(info_nce.info_nce(queries, documents, temperature), theirs, 1e-9)


def test_the_loss_by_hand():
    queries, documents, temperature = info_nce.by_hand(Draw(0))[0]
    loss = info_nce.info_nce(queries, documents, temperature)
    first, second = math.log(1 + 1 / math.e), math.log(1 + math.e)
    assert loss.item() == pytest.approx((math.log(2) + (first + second) / 2) / 2)
    text = texts_of("17.1")
    assert f"loses ln 2 = {math.log(2):.3f}" in text and f"The loss is {loss:.3f}." in text
    assert f"ln(1 + 1/e) = {first:.3f} and ln(1 + e) = {second:.3f}" in text
    assert f"on average {(first + second) / 2:.3f}" in text
    assert loss == info_nce_loss(queries, documents, temperature=1.0, symmetric=True)


def test_scores_of_words_are_the_librarys():
    for query, documents, k1, b in cases("17.2"):
        texts = [" ".join(words) for words in documents]
        index = BM25(texts, k1=k1, b=b, terms=lambda texts: [text.split() for text in texts])
        (theirs,) = index.scores([" ".join(query)])
        assert alike(bm25.bm25(query, documents, k1, b), theirs.double(), 1e-5)


def test_scores_of_words_by_hand():
    query, documents, k1, b = bm25.by_hand(Draw(0))[0]
    first, second, third = bm25.bm25(query, documents, k1, b).tolist()
    idf = math.log(1 + 1.5 / 2.5)
    assert f"idf = ln(1 + 1.5/2.5) = {idf:.3f}" in texts_of("17.2") and third == 0
    says = f"{idf:.3f} · 1/2 = {first:.3f}, {idf:.3f} · 2/3.5 = {second:.3f} and 0."
    assert says in texts_of("17.2")
    first, second, _ = bm25.bm25(query, documents, k1, 0.0)
    assert f"{idf:.3f} · 1/2 = {first:.3f} and {idf:.3f} · 2/3 = {second:.3f}" in texts_of("17.2")


def test_measures_are_the_librarys():
    for relevant, ranking, k in cases("17.3"):
        run = {"q": {document: -float(place) for place, document in enumerate(ranking)}}
        scores = ranking_scores(run, {"q": relevant}, k)
        theirs = [float(x[0]) for x in (scores.ndcg, scores.reciprocal_rank, scores.recall)]
        assert measures.measures(relevant, ranking, k) == pytest.approx(theirs)


def test_measures_by_hand():
    text = texts_of("17.3")
    three, two = (measures.measures(*case) for case in measures.by_hand(Draw(0)))
    dcg, best = measures.discounted([0, 1, 2]), measures.discounted([2, 1])
    assert f"2/log2(4) = {dcg:.3f}" in text and f"2 + 1/log2(3) = {best:.3f}" in text
    says = f"nDCG is {three[0]:.3f}; the reciprocal rank is {three[1]:g}, recall is {three[2]:g}."
    assert says in text
    dcg = measures.discounted([0, 1])
    assert f"nDCG is {dcg:.3f} / {best:.3f} = {two[0]:.3f}" in text
    assert f"the reciprocal rank stays {two[1]:g}, recall is {two[2]:g}." in text


def test_late_interaction_is_the_librarys():
    for query, documents, query_mask, document_mask in cases("17.4"):
        theirs = maxsim(query[None], documents, query_mask[None], document_mask)[0]
        ours = late.late_interaction(query, documents, query_mask, document_mask)
        assert alike(ours, theirs, 1e-9)


def test_late_interaction_by_hand():
    first, second = numbers(late.late_interaction(*late.by_hand(Draw(0))[0]).tolist())
    assert f"are 1 and 0, the score is {first}." in texts_of("17.4")
    assert f"the score is {second}." in texts_of("17.4")


def test_mixes_are_the_librarys():
    for first, second, weight in cases("17.5"):
        mixed, fused = mix.mix(first, second, weight)
        assert alike(mixed, weighted_mix(first[None], second[None], weight)[0], 1e-6)
        assert alike(fused, reciprocal_rank_fusion(first[None], second[None])[0], 1e-6)


def test_mixes_by_hand():
    first, second, weight = mix.by_hand(Draw(0))[0]
    z = [", ".join(numbers(mix.z_scores(x).tolist())) for x in (first, second)]
    mixed, fused = mix.mix(first, second, weight)
    says = f"they are ({z[0]}) and ({z[1]}), so the mix is ({', '.join(numbers(mixed.tolist()))})"
    assert says in texts_of("17.5")
    assert fused[0] == fused[1]
    assert f"1/61 + 1/62 = {fused[0]:.4f} for both" in texts_of("17.5")


def test_codes_are_the_librarys():
    for vectors, query in cases("17.6"):
        coded, scores, signs, agreement = codes.codes_and_scores(vectors, query)
        eight, one = QuantisedIndex(vectors), QuantisedIndex(vectors, bits=1)
        assert torch.equal(coded, eight.codes)
        assert alike(scores, eight.scores(query[None])[0].double(), 1e-5)
        assert np.array_equal(np.packbits(signs.numpy(), axis=1), one.codes)
        assert torch.equal(agreement, one.scores(query[None])[0].long())


def test_codes_by_hand():
    vectors, query = codes.by_hand(Draw(0))[0]
    coded, scores, signs, agreement = (x.tolist() for x in codes.codes_and_scores(vectors, query))
    pairs = [" and ".join(f"({', '.join(numbers(row))})" for row in x) for x in (coded, signs)]
    said = [" and ".join(numbers(x)) for x in (scores, agreement)]
    assert f"the int8 codes {pairs[0]}, their scores {said[0]}." in texts_of("17.6")
    assert f"The sign codes are {pairs[1]}" in texts_of("17.6")
    assert f"the sign scores {said[1]}." in texts_of("17.6")
