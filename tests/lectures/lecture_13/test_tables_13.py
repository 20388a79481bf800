"""The short tables, GLUE by one recipe, and the index of claims and questions."""

from __future__ import annotations

import random
import re

import pytest
from view_parts import picture_of, plain

from course_lib.lectures.lecture_13 import numbers, tables, views
from course_lib.lectures.lecture_13.views import index, pages
from course_lib.lectures.lecture_13.views.written import written_table
from course_lib.teaching.claims import SIGNS, claims, printed
from course_lib.teaching.quizzes import read_review
from course_lib.teaching.rooms import lectures_with
from course_lib.teaching.verdicts import OPEN, by_rule

SHOWN = (
    "variants_table", "reading_table", "reasons_table", "card_table", "leaderboard_table",
    "guidelines_table", "measures_table", "glue_comparison", "rankings_table",
)  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_a_table_is_whole(name: str) -> None:
    """As many cells in every row, none empty, every reference filled in."""
    table = getattr(views, name)()
    head, _, *rows = table.text.splitlines()
    assert rows and "{" not in table.text
    for row in rows:
        cells = row.split(" | ")
        assert len(cells) == len(head.split(" | ")) and all(cell.strip("| ") for cell in cells)
    assert table.html.count("<tr ") == len(rows) + 1 and len(table.html) < 40_000


def test_every_member_that_is_taught_stands_in_the_table() -> None:
    variants = tables.variants()
    names = " ".join(variant.name for variant in variants)
    for member in ("BERT", "RoBERTa", "ALBERT", "DistilBERT", "TinyBERT", "ELECTRA", "DeBERTa-v3",
                   "SpanBERT", "ERNIE", "XLM-R", "MobileBERT", "FastBERT", "BioBERT",
                   "ModernBERT"):  # fmt: skip
        assert member in names
    sizes = {variant.name: variant.parameters for variant in variants}
    assert sizes["BERT"] == "109.5M" and sizes["ALBERT"] == "11.7M"
    assert {variant.lecture for variant in variants} <= set(lectures_with("claims"))


def test_the_reading_list_has_five_essential_papers_and_no_paper_twice() -> None:
    papers = tables.reading()
    essential = [paper for paper in papers if paper.essential]
    assert [p.title.split(":")[0].split(",")[0] for p in essential] == [
        "RoBERTa", "ALBERT", "DistilBERT", "ELECTRA", "DeBERTa",
    ]  # fmt: skip
    assert len({paper.title for paper in papers}) == len(papers)
    assert all(re.match(r"arXiv \d{4}\.\d{5}", paper.published) for paper in papers)


def test_texts_by_name() -> None:
    assert len(tables.rows("reason")) == 5
    with pytest.raises(ValueError, match=r"'praise' was asked for; expected one of reason"):
        tables.rows("praise")


# ---------------------------------------------------------------- GLUE by one recipe


def test_what_the_lecture_printed_is_no_column_of_ours() -> None:
    """Of six printed scores each recipe has at most one or two: they are not comparable."""
    rows = tables.compared()
    assert [row.printed for row in rows] == [78.3, 82.2, 80.1, 77.0, 81.6, 83.8]
    for recipe in tables.SINGLE:
        same = [row.model for row in rows if row.printed in row.by_recipe.get(recipe, ())]
        assert len(same) <= 1, recipe


def test_averages_are_those_of_the_published_rows() -> None:
    averages = {row.model: row.by_recipe for row in tables.compared()}
    assert averages["BERT-base"] == {
        "test-9": (79.6,), "dev-9": (79.5,), "dev-8": (82.8, 82.2), "ALBERT-5": (82.3,),
    }  # fmt: skip
    assert averages["RoBERTa-base"] == {"dev-8": (86.4,)}
    assert averages["ALBERT-base"] == {"ALBERT-5": (80.1,)}
    assert averages["DistilBERT"] == {"dev-9": (77.0,), "dev-8": (79.6,)}
    assert averages["ELECTRA-base"] == {"dev-8": (85.1,)}
    assert averages["DeBERTa-base"] == {}


def test_one_recipe_orders_them_as_their_papers_do() -> None:
    dev = {row.model: row.by_recipe["dev-8"][-1] for row in tables.compared()
           if "dev-8" in row.by_recipe}  # fmt: skip
    assert sorted(dev, key=lambda model: -dev[model]) == [
        "RoBERTa-base", "ELECTRA-base", "BERT-base", "DistilBERT",
    ]  # fmt: skip


def test_training_cost_is_known_for_two_and_equal() -> None:
    known = {row.model: row.flops for row in tables.compared() if row.flops is not None}
    assert known == {"BERT-base": 1.0, "ELECTRA-base": 1.0}
    assert "0.25× | 1.0×" in views.glue_comparison().text


def test_where_printed_numbers_come_from() -> None:
    abstract = printed("mobilebert")["abstract"]
    assert abstract["glue"] + abstract["glue_below_bert"] == pytest.approx(78.3)
    assert printed("glue")["means"]["bert_base_dev"] == 82.2
    assert printed("albert")["overall"]["base"][-1] == 80.1


def test_rankings_go_down_in_what_is_good() -> None:
    rankings = tables.rankings()
    assert len(rankings) == 6
    for ranked in rankings:
        values = [float(re.sub(r"[^\d.]", "", value)) for _, value in ranked.order]
        assert values == sorted(values, reverse=not ranked.by.startswith("fewest")), ranked
    first = [name for name, _ in rankings[0].order]
    order = ("DeBERTa-large", "ELECTRA-large", "RoBERTa-large", "BERT-large")
    assert [name for name in first if name in order] == list(order)
    work = dict(rankings[4].order)
    assert float(work["ALBERT-base"][:-2]) >= float(work["BERT-base"][:-2])  # sharing saves no time


# ---------------------------------------------------------------- index


def test_the_index_holds_every_claim_of_every_room() -> None:
    entries = {(entry.lecture, entry.id): entry for entry in index.entries()}
    expected = {(n, claim.id): claim for n in lectures_with("claims") for claim in claims(n)}
    assert entries.keys() == expected.keys()
    for key, claim in expected.items():
        assert (entries[key].they_say, entries[key].verdict) == (claim.they_say, claim.verdict)


def test_errata_stand_in_the_order_of_their_numbers_each_once() -> None:
    numbers = [int(entry.id[1:]) for entry in index.errata()]
    assert numbers == sorted(set(numbers)) and max(numbers) == 109
    missing = {int(id[1:]) for id in index.unsettled()}
    assert missing == set(range(1, 110)) - set(numbers)


def test_claims_are_found_by_who_what_and_where() -> None:
    entry = next(e for e in index.entries() if e.id == "E48")
    assert entry.makers == ["source lectures"]
    assert entry in index.matching("source lectures", "false", "12", "mobilebert FASTER")
    assert index.matching(lecture="12", words="no such words") == ()
    for who in index.makers():
        assert index.matching(who)
    assert index.makers() == ["source lectures", "papers, habits, this course"]
    with pytest.raises(ValueError, match=r"lecture='99' was given; expected 'all' or one of 01"):
        index.matching(lecture="99")


def test_the_index_can_be_filtered() -> None:
    live = index.index_view()
    assert "E01" in live.static.text and f"The first {index.MOST}" in picture_of(live)
    live.controls["lecture"].value = "12"
    live.controls["verdict"].value = "false"
    text = plain(picture_of(live))
    assert "E48" in text and "E01" not in text and SIGNS["false"][0] in text
    live.controls["words"].value = "xyzzy"
    assert "No claim fits" in picture_of(live)


def test_links_lead_to_pages_that_exist(root) -> None:
    html = index.errata_index().html + index.questions_index().html
    links = set(re.findall(r'href="([^"#]+)', html))
    assert links and all(
        (root / "notebooks" / "source" / link).with_suffix(".py").is_file() for link in links
    )
    parts = {part for part in re.findall(r'href="[^"]+#([^"]+)"', html)}
    assert parts == {index.QUESTIONS.replace(" ", "-")}


def test_without_a_checkout_lectures_are_named_and_not_linked(monkeypatch) -> None:
    monkeypatch.setattr(pages, "pages", dict)
    assert pages.page_link("06") == "lecture 06"


def test_every_question_for_review_is_listed() -> None:
    text = index.questions_index().text
    for lecture in lectures_with("claims"):
        for number, entry in enumerate(read_review(lecture), start=1):
            assert f"  {number}. {entry.question}" in text


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells was given; expected 2"):
        written_table(("a", "b"), [("only",)], "kind")


@pytest.mark.parametrize(("seeds", "share"), [(2, 0.30), (3, 0.16), (5, 0.05)])
def test_how_often_the_rule_settles_what_is_equal(seeds: int, share: float) -> None:
    """What by_rule, the README and the page say of it, by another way to draw."""
    generator = random.Random(seeds)
    settled = sum(
        by_rule(*([generator.gauss(0, 1) for _ in range(seeds)] for _ in range(2))) != OPEN
        for _ in range(4_000)
    )
    assert settled / 4_000 == pytest.approx(share, abs=0.03)
    assert float(numbers.false_alarms(seeds).rstrip("%")) / 100 == pytest.approx(share, abs=0.01)
