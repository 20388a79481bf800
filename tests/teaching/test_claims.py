"""The ledger: every claim is settled within its tolerance, and the wrong value is turned away."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest
import torch
import transformers.models.deberta.modeling_deberta  # noqa: F401  the first import is no claim's time

from course_lib.teaching.claims import (
    SIGNS,
    Claim,
    ClaimsTable,
    How,
    NotHere,
    Settled,
    Verdict,
    all_near,
    claims,
    claims_table,
    compared,
    entries,
    is_,
    near,
    printed,
    result,
    verdict,
)
from course_lib.teaching.rooms import room, room_file

torch.set_num_threads(1)
# lecture -> the errata whose home it is, the number of the papers' slips it holds, how many parts
HOME = {
    "01": ("E67 E68 E69 E88", "slip", 0),
    "02": ("E70 E71 E72 E101 E102 E103", "slip 4", 5),
    "03": ("E73 E74 E75 E76 E77 E78 E89 E90 E92 E93 E108", "slip", 0),
    "04": ("E01 E02 E03 E04 E05 E06 E53 E54 E55 E79 E80 E81 E82 E94 E97 E99 E100", "slip", 0),
    "05": ("E07 E08 E09 E10 E11 E47 E49 E56 E57 E106 E107 E109", "slip 2", 4),
    "06": ("E12 E13 E14 E15 E16 E17 E18 E58 E59 E60 E83 E84 E95 E96 E104 E105", "slip 1", 6),
    "07": ("E29 E30 E31 E32 E52 E61 E63", "slip 7", 2),
    "08": ("E33 E34 E35 E36 E50 E98", "slip 3", 4),
    "09": ("E37 E38 E85 E86", "slip 5", 1),
    "10": ("E23 E24 E25 E26 E27 E28 E51 E87", "slip 8", 2),
    "11": ("E19 E20 E21 E22", "slip", 0),
    "12": ("E39 E40 E41 E42 E43 E44 E48", "slip", 2),
    "13": ("E45 E46 E62 E64 E65", "slip", 0),
    "14": ("", "slip", 0),
    "15": ("E91", "slip", 0),
    "16": ("", "slip", 0),
    "17": ("", "slip", 0),
}
LEDGER = [(lecture, entry) for lecture in HOME for entry in claims(lecture)]
SETTLED = [pytest.param(e, id=f"{n} {e.id}") for n, e in LEDGER if e.how != "cited"]


@pytest.mark.parametrize("entry", SETTLED)
def test_a_claim_is_settled_twice_alike_and_the_wrong_value_is_rejected(entry):
    """Its numbers to rounding: bits are promised of no second computation."""
    assert not entry.accepts(entry.rejected)
    try:
        first, again = entry.settle(), entry.settle()
    except NotHere as missing:
        pytest.skip(f"{entry.id}: {missing}")
    assert entry.accepts(first.value), first
    assert len(first.detail) > 5
    assert alike(first.value, again.value), (first.value, again.value)
    assert alike(first.spread, again.spread)
    details = [re.sub(r"\d[\d.,]*(e-?\d+)?", "#", one.detail) for one in (first, again)]
    assert details[0] == details[1]


def alike(first, again):
    """The same in form and in what is counted or said; floats within a millionth."""
    if isinstance(first, float) and isinstance(again, float):
        return first == pytest.approx(again, rel=1e-6, abs=1e-6, nan_ok=True)
    if isinstance(first, dict) and isinstance(again, dict):
        return list(first) == list(again) and alike(list(first.values()), list(again.values()))
    if isinstance(first, (list, tuple)) and isinstance(again, (list, tuple)):
        pairs = zip(first, again, strict=False)
        return len(first) == len(again) and all(alike(a, b) for a, b in pairs)
    return type(first) is type(again) and first == again


@pytest.mark.parametrize("entry", [entry for _, entry in LEDGER], ids=lambda entry: entry.id)
def test_a_claim_says_who_what_and_how(entry):
    for text in (entry.they_say, entry.who, entry.it_is, entry.settled_by):
        assert text.strip() == text and len(text) > 3
    assert entry.how in get_args(How) and entry.verdict in get_args(Verdict)
    assert (entry.how == "cited") == entry.settled_by.startswith("cited")
    assert set(get_args(Verdict)) == set(SIGNS)


@pytest.mark.parametrize("lecture", HOME)
def test_the_errata_of_a_lecture_are_all_there(lecture):
    errata, slip, parts = HOME[lecture]
    ids = [entry.id for entry in claims(lecture)]
    assert len(set(ids)) == len(ids)
    assert set(errata.split()) <= set(ids)
    assert sum(id.startswith(slip) for id in ids) >= parts


def test_no_erratum_has_two_homes():
    for lecture, entry in LEDGER:
        if entry.id.startswith("E") and entry.id[1:].isdigit():
            assert entry.id in HOME[lecture][0].split(), f"{entry.id} in lecture {lecture}"


def test_the_counts_are_those_of_built_models():
    """The meta device fills nothing; a small model is built both ways to see that it counts."""
    from course_lib.encoder import count_parameters
    from course_lib.family.bert import bert

    with torch.device("meta"):
        empty = count_parameters(bert("tiny"))
    assert empty == count_parameters(bert("tiny")) == 4_385_920


def test_the_table_has_a_row_a_claim_and_says_what_was_measured():
    table = claims_table("02", only=("E70", "E102", "slip 4 batch"))
    plain, html = repr(table), table._repr_html_()
    assert len(table.rows) == 3
    for cards in (plain, html):
        assert "✗ 3 false" in cards  # counted above the cards
        for row in table.rows:
            for text in (row.verdict, row.who, row.how, row.settled_by):
                assert text in cards
        assert "256 × 512 = 131,072" in cards and "nothing was run for it here" in cards
    assert html.count("<details") == 3


CLAIMED = """
["x"]
they_say = "half"
who = "w"
it_is = "i"
verdict = "true"
how = "computed"
settled_by = "s"
"""
DETAIL = "{{number:value:.0%}} of {{number:in_letters(2)}}"
HALF = f'{CLAIMED}value = "1 / 2"\ndetail = "{DETAIL}"\n'


def written(monkeypatch, tmp_path, text):
    path = tmp_path / "claims.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr("course_lib.teaching.claims.room_file", lambda *_: path)
    (entry,) = entries("02")
    return entry


@pytest.mark.parametrize(
    ("check", "accepted", "rejected"),
    [
        ("expected = 0.5\nrejected = 0.6", (0.5,), (0.51, 0.6)),
        ("expected = 0.5\ntolerance = 0.1\nrejected = 0.7", (0.55,), (0.65,)),
        ("expected = [1, [2]]\nrejected = 1", ((1, (2,)),), ([1, [2]], 0.5)),
        (
            "expected = [1.0, 2]\ntolerance = 0.1\nrejected = [1, 1]",
            ((1.05, 2),),
            ((1.2, 2), (1.0,)),
        ),
        ('accepts = "0 < value < max(1, 0.5)"\nrejects = "2 * 3"', (0.5,), (0, 1, 6)),
    ],
)
def test_a_check_in_toml_accepts_and_rejects(monkeypatch, tmp_path, check, accepted, rejected):
    entry = written(monkeypatch, tmp_path, HALF + check)
    assert entry.settle() == Settled(0.5, "50% of two")
    assert all(map(entry.accepts, accepted)) and not any(map(entry.accepts, rejected))
    assert not entry.accepts(entry.rejected)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("expcted = 1", r"claim x of lecture 02 has expcted; .*may have .*expected"),
        ('value = "1"', r"claim x is computed; expected"),
        ("expected = 1", r"claim x is computed; expected"),
    ],
)
def test_a_check_that_is_not_whole_is_refused(monkeypatch, tmp_path, more, words):
    with pytest.raises(ValueError, match=words):
        written(monkeypatch, tmp_path, CLAIMED + more)


def test_an_expression_that_fails_names_its_claim(monkeypatch, tmp_path):
    entry = written(
        monkeypatch, tmp_path, CLAIMED + 'value = "no_such()"\nexpected = 1\nrejected = 2'
    )
    with pytest.raises(NameError, match="no_such") as raised:
        entry.settle()
    assert "lecture 02, claims.toml: value = 'no_such()'" in raised.value.__notes__


@pytest.mark.parametrize("lecture", HOME)
def test_what_claims_py_imports_is_used(lecture):
    """There or in claims.toml; ruff leaves that to us."""
    here = room(lecture, "claims")
    tree = ast.parse(Path(here.__file__).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {"annotations"}
    expressions = room_file(lecture, "claims.toml").read_text(encoding="utf-8")
    assert names <= used | set(re.findall(r"\w+", expressions))


def some(**changes):
    usual = dict(id="x", they_say="a < b", who="w", it_is="i", verdict="true")
    usual |= dict(how="computed", settled_by="s")
    checks = dict(settle=lambda: Settled(1, "one"), accepts=is_(1), rejected=2)
    return Claim(**{**usual, **checks, **changes})


def not_here():
    raise NotHere("the weights are not installed")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "a &lt; b"),
        ({"settle": lambda: Settled(2, "two")}, "please report"),  # a surprise is not hidden
        ({"settle": not_here}, "the weights are not installed"),
        ({"settle": lambda: Settled(1, "-1 to -0.5 (-3-4), x-1")}, "−1 to −0.5 (−3-4), x-1"),
    ],
)
def test_a_row_of_the_table_says_what_came_out(changes, words):
    assert words in ClaimsTable.of([some(**changes)])._repr_html_()


@pytest.mark.parametrize(
    "changes",
    [{"how": "cited"}, {"settle": None}, {"accepts": None}, {"rejected": None}],
    ids=["cited but settled", "no settle", "no checker", "nothing to reject"],
)
def test_an_incomplete_claim_is_refused(changes):
    with pytest.raises(ValueError, match=r"claim x is .*expected"):
        some(**changes)


def test_an_unknown_lecture_or_claim_lists_those_that_exist():
    with pytest.raises(ValueError, match="02"):
        claims("99")
    with pytest.raises(ValueError, match="E70"):
        claims_table("02", only=["E999"])


def test_checkers():
    assert near(1.0, 0.1)(1.05) and not near(1.0, 0.1)(1.2)
    assert is_((1, 2))((1, 2)) and not is_((1, 2))((2, 1))
    assert all_near((1.0, 2.0), 0.1)((1.05, 1.95)) and not all_near((1.0, 2.0), 0.1)((1.05, 2.2))
    assert not all_near((1.0, 2.0), 0.1)((1.0,))


@pytest.mark.parametrize(
    ("differences", "words"),
    [
        ((0.02, 0.04), "+3.0 (better in every seed)"),
        ((-0.01, -0.03), "−2.0 (worse in every seed)"),
        ((0.02, -0.01), "+0.5 (the seeds disagree)"),
        ((0.0, 0.02), "+1.0 (the seeds disagree)"),
        ((0.02,), "+2.0 (one seed)"),
    ],
)
def test_a_verdict_follows_from_the_numbers(differences, words):
    assert verdict(differences) == words


def test_runs_are_compared_on_the_seeds_that_both_have(monkeypatch):
    def run(*reached):
        return [{"seed": seed, "found": share} for seed, share in reached]

    runs = {"all": run((0, 0.5), (1, 0.7), (2, 0.9)), "less": run((2, 0.8), (0, 0.45))}
    monkeypatch.setattr("course_lib.teaching.claims.result", lambda name: {"runs": runs})
    settled = compared("any", "found", ["less"], "all", "words found")
    assert settled.value == pytest.approx((-0.075,))
    assert settled.detail.startswith("words found: all 70.0%")
    assert "less −7.5 (worse in every seed)" in settled.detail


def test_a_result_that_is_not_there_is_said_in_words():
    with pytest.raises(NotHere, match="result absent has not been made"):
        result("absent")


@pytest.mark.parametrize(
    ("paper", "arxiv"),
    [
        ("elmo", "1802.05365"),
        ("bert", "1810.04805"),
        ("roberta", "1907.11692"),
        ("albert", "1909.11942"),
        ("distilbert", "1910.01108"),
        ("tinybert", "1909.10351"),
        ("electra", "2003.10555"),
        ("deberta", "2006.03654"),
        ("spanbert", "1907.10529"),
        ("ernie", "1904.09223"),
        ("ernie_tsinghua", "1905.07129"),
        ("mbert", "none"),
        ("xlm", "1901.07291"),
        ("xlm_r", "1911.02116"),
    ],
)
def test_every_printed_table_says_where_it_stands(paper, arxiv):
    tables = printed(paper)
    assert tables["paper"]["arxiv"] == arxiv
    for name, table in tables.items():
        places = [table, *(part for part in table.values() if isinstance(part, dict))]
        assert name == "paper" or any("where" in place for place in places), name


def test_the_printed_tables_have_a_number_a_column():
    tables = [table for table in printed("roberta").values() if "columns" in table]
    tables.append(printed("bert")["ablation_tasks"])
    for table in tables:
        rows = table.get("rows") or [v for v in table.values() if isinstance(v, list)]
        rows = [row for row in rows if not isinstance(row[0], str)]
        assert len(rows) >= 3 and all(len(row) == len(table["columns"]) for row in rows)
    assert all(len(row) == 7 for row in printed("bert")["ablation_size"]["rows"])


def test_the_ablation_steps_of_the_electra_paper_are_those_that_are_built():
    from course_lib.lectures.lecture_07.ablation_steps import ABLATION_STEPS

    points = printed("electra")["stones"]
    assert tuple(name for name in points if isinstance(points[name], float)) == ABLATION_STEPS


def test_the_published_weights_are_those_of_the_objective():
    from course_lib.objectives.distillation import PUBLISHED_WEIGHTS, TEMPERATURE
    from course_lib.objectives.released_masking import SMOOTHING

    table, program = printed("distilbert")["weights"], printed("distilbert")["program"]
    assert {name: table[name] for name in PUBLISHED_WEIGHTS} == PUBLISHED_WEIGHTS
    assert (program["temperature"], program["smoothing"]) == (TEMPERATURE, SMOOTHING)


def test_the_ablation_of_deberta_is_whole():
    table = printed("deberta")["ablation"]
    rows = [row for name, row in table.items() if name not in ("where", "what", "columns")]
    assert len(rows) == 7
    for row in rows:
        pairs, race = row[:-1], row[-1]
        assert len(row) == len(table["columns"]) and all(len(pair) == 2 for pair in pairs)
        assert race < min(min(pair) for pair in pairs)  # the hardest of them for every model


def test_the_settings_of_deberta_are_those_that_are_built():
    from course_lib.config import published
    from course_lib.family.deberta import DebertaConfig

    built = published("deberta", "base", DebertaConfig)
    assert printed("deberta")["settings"]["span"] == built.span


def test_the_row_of_distilbert_is_copied_whole():
    """ELMo's STS-B is the one cell of its row that is kept: 16.5 points under DistilBERT's."""
    table, ours = printed("distilbert"), printed("glue")["distilbert_dev"]["scores"]
    assert ours["STS-B"] - table["glue"]["elmo_sts_b"] == pytest.approx(16.5)
    assert len(table["ablation"]) == 6 and len(table["downstream"]) == 7


def test_the_printed_sizes_of_tinybert_are_within_rounding_of_the_counts():
    """The paper counts the matrix with the small one, and the pooler with both."""
    from course_lib.encoder import count_parameters
    from course_lib.family.tinybert import tinybert

    table = printed("tinybert")["size"]
    with torch.device("meta"):
        four, six = (count_parameters(tinybert(size)) for size in ("4", "6"))
    assert abs(four + 240_384 - table["tinybert_4_parameters"]) < 1e5
    assert abs(six - table["tinybert_6_parameters"]) < 1e5


def test_the_nine_tasks_of_glue_are_described():
    from course_lib.teaching.averages import AVERAGES, PAIRS

    tasks = {name: task for name, task in printed("glue")["tasks"].items() if name != "where"}
    assert set(tasks) == set(AVERAGES["leaderboard"].tasks)
    assert [name for name, task in tasks.items() if "train" not in task] == ["WNLI"]
    for name, task in tasks.items():
        metrics = tuple(task["metrics"])
        assert metrics == PAIRS[name] if name in ("QQP", "MRPC", "STS-B") else len(metrics) == 1


def test_the_table_of_named_entities_is_whole():
    lecture, paper = printed("ner")["lecture"], printed("ner")["bert"]
    for table in (lecture, paper):
        assert table["where"] and all(90 < x < 95 for x in table.values() if isinstance(x, float))
    assert set(lecture) - set(paper) == {"TagLM"} and len(paper) == 7
