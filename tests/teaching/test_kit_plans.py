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
def test_a_plan_has_every_lecture_once_and_what_it_needs_before(plan: plans.Plan) -> None:
    order = [lecture for slot in plan.slots for lecture in (*slot.teach, *slot.read)]
    assert sorted(order) == sorted(LECTURES)
    for place, lecture in enumerate(order):
        assert set(notes_of(lecture).needs) <= set(order[:place]), lecture
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


def test_the_kit_is_one_folder_in_which_every_link_leads_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printing, "BROWSERS", ("no-such-browser",))
    made = ("submitted/A.ipynb", "graded/grades.csv", "graded/reports/A.html")
    monkeypatch.setattr(  # grading takes seconds; it has its own tests
        kit, "_sample", lambda folder: [write_atomic(folder / name, "") for name in made]
    )
    written = kit.build(tmp_path / "kit")
    index = tmp_path / "kit" / "index.html"
    linked = {index, *(index.parent / x for x in re.findall(r'href="([^"]+)"', index.read_text()))}
    assert linked == set(written)
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|href)="(?:https?:|//)', text)
        for link in re.findall(r'href="([^"#]+)"', text):
            assert (page.parent / link).is_file(), f"{page.name} links {link}"
    assert "the PDFs are left out" in index.read_text(encoding="utf-8")
    of_page_8 = (index.parent / "lecture-08.html").read_text(encoding="utf-8")
    assert "<code>notebooks/08_deberta_attention.ipynb</code>" in of_page_8
    with pytest.raises(ValueError, match="not as make kit wrote it"):
        kit.build(tmp_path)
    assert set(written) <= set(tmp_path.rglob("*"))
