"""The numbers in the quiz and the questions for review of lecture 09, computed or read again."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
import torch
from quiz_parts import Quiz

from course_lib.family.ernie import ErnieConfig
from course_lib.family.ernie_tsinghua import FusionConfig
from course_lib.heads import SpanBoundaryHead
from course_lib.kernels.span_masking import select_spans
from course_lib.lectures.lecture_09.exercises import lengths
from course_lib.objectives.entity_alignment import DEA_MIX, entity_targets
from course_lib.objectives.knowledge_masking import make_ernie_pairs
from course_lib.objectives.masked_lm import BERT_MIX, mask_whole_words
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.objectives.span_boundary import LONGEST, mask_spans, spanbert_loss
from course_lib.objectives.transe import Translations, distances
from course_lib.teaching.claims import printed

QUIZ = Quiz("09")
item, answer = QUIZ.item, QUIZ.answer
SPANBERT, BAIDU, TSINGHUA = (printed(name) for name in ("spanbert", "ernie", "ernie_tsinghua"))
MASKS = {name: row for name, row in SPANBERT["masks"].items() if isinstance(row, dict)}
STEPS, TEST = SPANBERT["steps"], SPANBERT["test"]


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()


def test_the_mean_length_is_computed():
    found, right = item("cuts the distribution off")
    p, longest = SPANBERT["masking"]["p"], SPANBERT["masking"]["max_words"]
    assert f"p = {p} and cuts the distribution off behind {longest} words" in found.question
    _, mean = lengths.lengths(p, longest)
    rest = [p * (1 - p) ** n for n in range(longest - 1)]
    lumped = lengths.mean_of(torch.tensor([*rest, 1 - sum(rest)]).double())
    assert [c.text for c in found.choices] == [f"{x:.2f} words" for x in (1 / p, lumped, mean)]
    assert right is found.choices[2]
    said = answer("span lengths drawn")
    assert f"is {mean:.2f}." in said and f"1/p = {1 / p:.0f}" in said and f"{lumped:.2f}" in said


def test_what_is_selected_is_shorter_in_short_rows():
    """Counted once more, with another seed: standard errors are below 0.02, and both have one."""
    said, (found, right) = answer("span lengths drawn"), item("words are drawn on average")
    for tokens, rows in ((128, 4_000), (32, 8_000)):
        words = torch.arange(tokens).repeat(rows, 1)
        merged, apart = (
            select_spans(words, torch.arange(rows), rate=0.15, seed=9, epoch=0, merge=merge)[1]
            .unique_consecutive(return_counts=True)[1].double().mean().item()
            for merge in (True, False)
        )  # fmt: skip
        written = float(re.search(rf"([\d.]+)( words)? in rows of {tokens}", said)[1])
        assert abs(merged - written) < 0.12 and merged > apart
    assert f"spans have {written:.2f}." in found.question and "Merging makes spans longer" in (
        found.choices[2].why
    )
    assert f"= {math.ceil(0.15 * 32)} positions" in right.text


def test_the_steps_are_subtracted():
    """Tables 6 and 7: the same run stands in both, as the row of geometric spans."""
    scores = [MASKS["subword"]["squad_2"], MASKS["geometric"]["squad_2"],
              STEPS["one"]["squad_2"], STEPS["one_and_sbo"]["squad_2"]]  # fmt: skip
    assert STEPS["two_and_nsp"] == {key: MASKS["geometric"][key] for key in ("squad_2", "coref")}
    spans, single, sbo = (b - a for a, b in pairwise(scores))
    found, right = item("credits *random span masking")
    assert f"{scores[0]} with masked" in found.question and f"{scores[-1]} at" in found.question
    assert right.text.startswith(f"Spans {spans:.1f}, one") and f"two {single:.1f}" in right.text
    assert right.text.endswith(f"SBO {sbo:.1f}")
    assert right.why.startswith(", ".join(map(str, scores)))
    assert f"Spans {spans:.1f} and SBO {single + sbo:.1f}" in found.choices[1].text
    coref = STEPS["one_and_sbo"]["coref"] - STEPS["one"]["coref"]
    assert f"{coref:.1f} points are in coreference" in found.choices[2].why
    said = answer("From 83.8 to 86.8")
    for score, change in zip(scores[1:], (spans, single, sbo), strict=True):
        assert f"{score} (+{change:.1f})" in said
    assert f"(+{coref:.1f})" in said
    found, right = item("more than two points")
    assert f"{STEPS['one']['coref']} to {STEPS['one_and_sbo']['coref']}" in right.why
    assert str(MASKS["subword"]["coref"]) in right.why
    assert f"{scores[2]} to {scores[3]}" in found.choices[0].why and sbo < 2 < coref


def test_the_tests_headline_has_a_step_between():
    said = answer("From 83.8 to 86.8")
    google, own, span = (
        TEST[name]["squad_2"][1] for name in ("google_bert", "bert_1seq", "spanbert")
    )
    assert f"{google} and {span} are on test data" in said and f"with {own}:" in said
    assert f"{own - google:.1f} of the {span - google:.1f} points" in said
    assert f"{span - own:.1f} from spans and SBO" in said


def test_random_spans_need_no_linguistics():
    said = answer("five ways")
    for name in ("entities", "noun_phrases", "geometric"):
        assert f"{MASKS[name]['squad_2']}" in said and f"{MASKS[name]['triviaqa']}" in said
    for task in ("squad_2", "triviaqa", "mnli"):
        assert max(MASKS, key=lambda name: MASKS[name][task]) == "geometric"
    for task in ("squad_2", "newsqa", "triviaqa"):
        assert min(MASKS, key=lambda name: MASKS[name][task]) == "subword"
    assert max(MASKS, key=lambda name: MASKS[name]["coref"]) == "subword"
    for name, task in (("subword", "coref"), ("geometric", "coref"), ("geometric", "mnli"),
                       ("subword", "squad_2"), ("subword", "triviaqa")):  # fmt: skip
        assert str(MASKS[name][task]) in said


def test_paper_and_program_differ_where_the_item_says():
    p, decay = SPANBERT["program"], SPANBERT["decay"]
    _, right = item("do not all agree")
    assert f"p is {p['default_p']} by default and {p['published_p']} in paper" in right.why
    assert f"{decay['paper']} in the paper and {decay['command']}" in right.why


def test_the_boundary_objective_is_the_librarys():
    said = answer("*SBO predicts the span")
    assert f"first {LONGEST} tokens" in said and SPANBERT["program"]["longest"] == LONGEST
    targets = {"labels": torch.tensor([1, -100]), "sbo_labels": torch.tensor([0, 1])}

    class Out:
        prediction_logits, sbo_logits = torch.zeros(2, 3), torch.zeros(2, 3)

    loss = spanbert_loss(Out(), targets)  # chance level, ln 3: two tokens' sum over three
    assert loss["sbo"].item() == pytest.approx(2 * math.log(3) / (2 + 1))
    assert loss["total"] == loss["mlm"] + loss["sbo"] and "divided by n + 1" in said


def test_without_its_place_each_token_gets_the_same_prediction():
    from course_lib.config import BertConfig

    config = BertConfig(vocab_size=11, hidden_size=8, num_heads=2)
    head = SpanBoundaryHead(config, torch.nn.Embedding(11, 8), position_size=4)
    around = torch.randn(2, 1, 8).expand(2, 3, 8)
    with torch.no_grad():
        apart = head(*around, torch.arange(3))
        assert not torch.allclose(apart[0], apart[1])
        head.position.weight.zero_()
        apart = head(*around, torch.arange(3))
    assert torch.equal(apart[0], apart[1]) and torch.equal(apart[1], apart[2])


def test_baidus_model_is_the_librarys():
    _, right = item("`ErnieConfig()`")
    assert ErnieConfig().hidden_act == "relu" and "GELU, where the released model has ReLU" in (
        right.text
    )
    transformers = pytest.importorskip("transformers")
    assert transformers.ErnieConfig().hidden_act == "gelu"


def test_who_draws_for_what():
    """One draw a span: all tokens share what is done, not which token comes. Units: one a token."""
    ids = torch.arange(5, 65).repeat(300, 1)
    text = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=5_000)
    words = torch.arange(20).repeat_interleave(3).repeat(300, 1)
    spans = mask_spans(text, special, words, merge=False)
    units = mask_whole_words(text, special, words)
    for masked, begins, shared in (
        (spans, spans.begins, True), (units, units.predict_at // 3 * 3, False)
    ):  # fmt: skip
        same = torch.stack([begins[1:] == begins[:-1], masked.done[1:] == masked.done[:-1]])
        assert bool(same[1][same[0]].all()) == shared
    random = spans.input_ids.flatten()[spans.predict_at[spans.done == 2]]
    assert len(random.unique()) > 0.9 * len(random)  # a token of its own for each position
    assert "each drawn by itself" in item("selects a span of four")[1].text


def test_baidus_label_is_turned():
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=50)
    documents = [[[5 + d, 6 + d, 7 + d]] * 4 for d in range(12)]
    theirs = make_ernie_pairs(documents, special, length=12, seed=1).next_sentence_label
    bert = make_pairs(documents, special, length=12, seed=1).next_sentence_label
    assert torch.equal(theirs, 1 - bert) and set(bert.tolist()) == {0, 1}
    assert BAIDU["settings"]["real_next_label"] == 1
    assert item("answers 1. Its output")[1].why.startswith("1 is the real next sentence at Baidu")


def test_one_point_fulfils_all_facts_of_a_city():
    """And no other vector does: a head that lies elsewhere is as far off as it lies away."""
    city, relation, away = torch.randn(3, 6).unbind()
    heads = torch.stack([city - relation] * 3 + [city - relation + away, city])
    vectors = Translations(heads, relation[None])
    found = distances(vectors, torch.tensor([[n, 0, 4] for n in range(4)]))
    assert torch.allclose(found, torch.tensor([0, 0, 0, away.abs().sum()]), atol=1e-5)
    assert "the city's minus the relation's" in item("A hundred people")[1].text


def test_baidus_gains_are_the_papers():
    said = answer("strong on Chinese")
    gains = []
    for name in ("xnli", "lcqmc", "msra_ner", "chnsenticorp", "dbqa"):
        ours, bert = BAIDU["test"][name]
        assert f"{bert} to {ours}" in said
        gains.append(ours - bert)
    assert f"So {min(gains):.1f} to {max(gains):.1f} points" in said
    ours, bert = BAIDU["reading"]["dureader"]
    assert f"{bert} to {ours}" in said and ours < bert
    assert f"at most {BAIDU['reading']['trained_on_tokens']} tokens" in said


def test_tsinghuas_numbers_are_the_papers():
    graph, table = TSINGHUA["settings"], TSINGHUA["tasks"]
    assert f"{graph['entities']:,}" in item("of a mention")[0].question
    said = answer("Tell them apart")
    assert f"{graph['entities']:,} entities, {graph['triples']:,} triples" in said
    assert FusionConfig().layers.count("fusion") == 6 and "upper six layers" in said
    said = answer("Did the graph help")
    for name in ("fewrel", "tacred", "open_entity", "figer"):
        bert, ernie = table[name]
        assert f"{bert:.2f} to {ernie:.2f}" in said
    assert str(SPANBERT["others"]["tacred"]["spanbert"]) in said
    said = answer("Follow one mention")
    spoilt = "{:.0%} get another entity, {:.0%} lose theirs, {:.0%} stay".format(*DEA_MIX)
    assert spoilt in said and BERT_MIX[0] == DEA_MIX[2]


def test_dea_chooses_among_the_entities_of_the_batch():
    _, candidates, which = entity_targets(torch.tensor([[-1, 7, 7, 3], [3, -1, 9, 9]]))
    assert candidates.tolist() == [3, 7, 9] and which.tolist() == [1, 1, 0, 0, 2, 2]
    assert "each once" in item("of a mention")[1].why
