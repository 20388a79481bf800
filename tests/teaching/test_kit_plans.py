"""The syllabi and the notes on each lecture: whole, true to page and deck, made into pages."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from course_lib.files import write_atomic
from course_lib.teaching import printing
from course_lib.teaching.exercises import all_exercises
from course_lib.teaching.kit import __main__ as kit
from course_lib.teaching.kit import plans
from course_lib.teaching.kit.plans import KitError, Notes, notes_of

LECTURES = plans.lectures()


@pytest.fixture(scope="module", params=LECTURES)
def notes(request: pytest.FixtureRequest) -> Notes:
    return notes_of(request.param)


def headings(root: Path, lecture: str) -> set[str]:
    """The headings of the page's source, as they are written there."""
    (source,) = (root / "notebooks" / "source").glob(f"{lecture}_*.py")
    return set(re.findall(r"^# #{2,3} (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_lecture_with_exercises_has_notes() -> None:
    assert set(LECTURES) == {id[:2] for id in all_exercises()}


def test_what_is_shown_and_read_stands_on_the_page(notes: Notes, root: Path) -> None:
    there = headings(root, notes.lecture)
    assert [show.heading for show in notes.show if show.heading not in there] == []
    titles = re.findall(r"\*([A-Z][^*]+)\*", notes.prepare)
    assert [name for name in titles if name not in there] == []


def test_notes_are_whole(notes: Notes) -> None:
    assert 3 <= len(notes.aims) <= 5 and len(notes.goes_wrong) >= 5 and len(notes.show) >= 2
    assert notes.exercises and notes.hand_in and not set(notes.exercises) & set(notes.hand_in)
    texts = " ".join([*notes.goes_wrong, notes.prepare, *(show.do for show in notes.show)])
    named = re.findall(r"\b(?:0[1-9]|1[0-6])\.\d\b(?!\d)", texts)
    assert set(named) <= set(all_exercises()) and {id[:2] for id in named} <= {notes.lecture}


def test_a_session_fits_its_time_by_the_decks_own_plan(
    notes: Notes, root: Path, deck_builder: ModuleType
) -> None:
    (source,) = (root / "slides" / "source").glob(f"{notes.lecture}_*.md")
    headings = deck_builder.HEADING.findall(source.read_text(encoding="utf-8"))
    deck = sum(float(minutes) for _, _, minutes, _ in headings)
    live = sum(show.minutes for show in notes.show)
    assert notes.deck.minutes == deck > 0
    assert notes.minutes == deck + live + sum(all_exercises()[x].minutes for x in notes.exercises)
    assert 70 <= notes.minutes <= plans.SESSION


@pytest.mark.parametrize("plan", plans.plans(), ids=lambda plan: plan.id)
def test_a_plan_of_the_course_has_every_lecture_once(plan: plans.Plan) -> None:
    order = [lecture for slot in plan.slots for lecture in (*slot.teach, *slot.read)]
    assert sorted(order) == sorted(LECTURES)
    for slot in plan.slots:
        assert slot.minutes == sum(notes_of(lecture).minutes for lecture in slot.teach)
    page = kit.plan_page(plan)
    total = plans.minutes(sum(slot.minutes for slot in plan.slots))
    assert f"{total} minutes planned" in page
    assert all(f'href="lecture-{lecture}.html"' in page for lecture in LECTURES)


def test_the_plans_have_the_lengths_that_they_say() -> None:
    lengths = {plan.id: len(plan.slots) for plan in plans.plans()}
    assert lengths == {"6-weeks": 6, "10-weeks": 10, "14-weeks": 14, "2-days": 5}
    block = plans.plans()[-1]
    days = [sum(s.minutes for s in block.slots if s.when.startswith(f"day {n}")) for n in (1, 2)]
    assert all(5 * 60 <= minutes <= 6 * 60 for minutes in days)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("needs = ", "wants = "), "has needs = None; expected list"),
        (('"12.2"', '"12.9"'), "names exercise '12.9'; lecture 12 has no such exercise"),
        (("minutes = 4", 'minutes = "4"'), "show 1 has minutes = '4'; expected int"),
        (("aims = [", "extra = 1\naims = ["), "unknown keys"),
        (("aims = [", "aims = "), "is not TOML"),
    ],
)
def test_faulty_notes_are_named(
    change: tuple[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = plans.room_file("12", "teaching.toml").read_text(encoding="utf-8")
    faulty = tmp_path / "teaching.toml"
    faulty.write_text(text.replace(*change, 1), encoding="utf-8")
    monkeypatch.setattr(plans, "room_file", lambda lecture, name: faulty)
    with pytest.raises(KitError, match=re.escape(message)):
        plans.notes_of.__wrapped__("12")


def own_plan(folder: Path, slots: str, id: str = "mine", more: str = "") -> Path:
    path = folder / "plan.toml"
    head = f"[[plan]]\nid = {id!r}\ntitle = 'BERT in May'\nabout = 'Short.'\n{more}\n"
    path.write_text(f"{head}slots = [{slots}]\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "names", ["'02', '03', '04', '13'", "2, 3, 4, 13", "'2', 'Lecture 03', 'lecture_4', ' 13 '"]
)
def test_a_plan_of_ones_own_may_number_as_people_do(names: str, tmp_path: Path) -> None:
    (plan,) = plans.plans(own_plan(tmp_path, f"{{ when = 'May', teach = [{names}] }}"))
    assert plan.slots[0].teach == ("02", "03", "04", "13")


@pytest.mark.parametrize(
    ("slots", "more", "message"),
    [
        ("{ when = 'A', teach = ['02', '03', '13'] }", "", "(mine): lecture 13 (A) needs lecture "
         "04, which is not in the plan; add 04 before 13, or leave 13 out, or, if students"),
        ("{ when = 'A', teach = ['02', '03'] }, { when = 'B', teach = ['13'] }, { when = 'C', read "
         "= ['04'] }", "", "13 (B) needs lecture 04, which comes later (C); move 04 before"),
        ("{ when = 'A', teach = ['03', '02'] }", "", "03 (A) needs lecture 02, which comes"),
        ("{ when = 'A', teach = ['02', '2'] }", "", "lecture 02 appears twice (A; A)"),
        ("{ when = 'A', teach = ['02'] }, { when = 'B', read = ['02'] }", "", "twice (A; B)"),
        ("{ when = 'A', teach = ['99'] }", "", "teach = ['99']; '99' is not a lecture. Expected a"),
        ("{ when = 'A', teach = ['00'] }", "", "'00' is not a lecture"),
        ("{ when = 'A', teach = [4.0] }", "", "4.0 is not a lecture"),
        ("{ when = 'A', teach = [true] }", "", "True is not a lecture"),
        ("{ when = 'A', teach = '04' }", "", "has teach = '04'; expected list"),
        ("{ when = 'A', teach = ['02'] }", "known = ['xx']", "known = ['xx']; 'xx' is not a"),
        ("{ when = 'A', teach = ['02'] }", "knows = ['03']", "unknown keys ['knows']"),
        ("{ when = 'A', teech = ['02'] }", "", "unknown keys ['teech']"),
        ("{ teach = ['02'] }", "", "expected when, and teach, read or also"),
        ("'02'", "", "slot 1 is '02'; expected when"),
        ("", "", "it has no lecture; name some"),
        ("{ when = 'A', teach = [], also = 'An exam.' }", "", "it has no lecture"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_taught_is_refused_and_says_why(
    slots: str, more: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(KitError, match=re.escape(message)):
        plans.plans(own_plan(tmp_path, slots, more=more))


def test_what_students_know_need_not_be_taught(tmp_path: Path) -> None:
    slots = "{ when = 'A', teach = ['13'] }, { when = 'exam', also = 'A paper.' }"
    (plan,) = plans.plans(own_plan(tmp_path, slots, more="known = ['3', 4]"))
    assert plan.known == ("03", "04") and "Known already:" in kit.plan_page(plan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds nothing; expected [[plan]]"), ("plan = []", "holds plan; expected [[plan]]"),
        ("plan = 3", "expected [[plan]]"), ("plan = [3]", "plan 1 is 3; expected [[plan]]"),
        ("teach = ['02']", "holds teach; expected [[plan]]"), ("[[plan", "is not TOML"),
        (None, "is missing; expected [[plan]]"), (b"\xff", "is not UTF-8"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_plan_is_refused(
    text: str | bytes | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.toml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(KitError, match=re.escape(message)):
        plans.plans(path)
    with pytest.raises(KitError, match="cannot be read"):
        plans.plans(tmp_path)


def test_a_plans_id_is_its_own_and_the_name_of_a_page(tmp_path: Path) -> None:
    path = own_plan(tmp_path, "{ when = 'A', teach = ['02'] }", id="6-weeks")
    with pytest.raises(KitError, match="a plan with the id '6-weeks', which the course uses"):
        plans.all_plans(path)
    path.write_text(2 * path.read_text().replace("6-weeks", "b"))
    with pytest.raises(KitError, match="two plans with the id 'b'"):
        plans.plans(path)
    path.write_text(path.read_text().replace("'b'", "'../b'"))
    with pytest.raises(KitError, match=r"has id = '\.\./b'; expected letters"):
        plans.plans(path)


def test_the_kit_is_one_folder_in_which_every_link_leads_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printing, "BROWSERS", ("no-such-browser",))
    made = ("submitted/A.ipynb", "graded/totals.csv", "graded/grades.csv", "graded/reports/A.html")
    monkeypatch.setattr(  # grading takes seconds; it has its own tests
        kit, "_sample", lambda folder: [write_atomic(folder / name, "") for name in made]
    )
    plan = own_plan(tmp_path, "{ when = 'May', teach = ['02'] }")
    written = kit.build(tmp_path / "kit", plan, pdf=False)
    plan.unlink()
    index = tmp_path / "kit" / "index.html"
    linked = {index, *(index.parent / x for x in re.findall(r'href="([^"]+)"', index.read_text()))}
    assert linked == set(written)
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|href)="(?:https?:|//)', text)
        for link in re.findall(r'href="([^"#]+)"', text):
            assert (page.parent / link).is_file(), f"{page.name} links {link}"
    assert "so without PDFs" in index.read_text(encoding="utf-8")
    of_page_8 = (index.parent / "lecture-08.html").read_text(encoding="utf-8")
    assert "<code>notebooks/08_deberta_attention.ipynb</code>" in of_page_8
    assert "BERT in May" in (index.parent / "syllabus-mine.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="which make kit did not write"):
        kit.build(tmp_path, pdf=False)
    assert set(written) <= set(tmp_path.rglob("*"))
