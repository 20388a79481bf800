"""The site's playgrounds beyond masked words: two models side by side, ELECTRA, a digit, words of
code; and guesses that are kept. Each is used from a file, by keyboard, with everything but the file
system out of reach."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import firefox
import nbformat
import pytest
import torch
from axe import WCAG, serious_findings
from conftest import ROOT
from lab import offline_context, take_picture
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import Error as PlaywrightError
from torch import nn

from course_lib.images import digits
from course_lib.lectures.lecture_03.documentation_runs import LENGTH
from course_lib.lectures.lecture_08.views import measure_scores
from course_lib.lectures.lecture_08.views.three_scores import ScoreMaps
from course_lib.lectures.lecture_15.views.maps import attentions_of, rollout
from course_lib.objectives.sequences import pack
from course_lib.search import course_sections, index_of
from course_lib.teaching.documentation_tasks import CODE_TAGS, tagged
from course_lib.teaching.predictions import predict_masked
from course_lib.text.features import tagged_sequences
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import class_accuracy, predicted_tags
from course_lib.train.searching import search_terms, weighted_mix
from course_lib.train.sentence_encoder import SentenceEncoder

PLAYS = ("compare", "electra", "digits", "code", "scores", "search")
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="_static/modules.css"><link rel="stylesheet" href="_static/site.css">
<script src="_static/modules.js"></script><script src="_static/site.js"></script></head>
<body><main><h1>{title}</h1>{box}</main></body></html>"""


@pytest.fixture(scope="module")
def written(
    site_builder: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, tuple[Any, Any]]]:
    """A page for each playground, all scripts and models: a site without Sphinx. And the models,
    with the weights that the site has."""
    import models_of_pages
    import playgrounds

    models_of_pages.TRAINED = tmp_path_factory.mktemp("trained")
    models_of_pages.TAGGER_STEPS = 12  # what it has learned is page 03's to test
    models_of_pages.DISTANCE_STEPS = 12  # and page 08's
    models_of_pages.SEARCH_STEPS = 2  # and page 17's
    target, models = tmp_path_factory.mktemp("playgrounds"), {}
    site_builder._write_assets(target / "_static", playgrounds.attention_script())
    for one in playgrounds.PLAYGROUNDS:
        text = playgrounds.markdown(one)
        page = PAGE.format(title=one.play, box=text[text.index("<div") :])
        (target / f"{one.play}.html").write_text(page, encoding="utf-8")
        for name in set(one.models) - set(models):
            models_of_pages.write_named(name, target / "models")
            models[name] = models_of_pages.as_shipped(name)
    boxes = "".join(guess_boxes("16"))
    (target / "guess.html").write_text(PAGE.format(title="guess", box=boxes), encoding="utf-8")
    return target, models


def guess_boxes(number: str) -> list[str]:
    """What guesses.py adds to a page of this number."""
    from guesses import place_guesses

    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    page = nbformat.read(path, as_version=4)
    before = {cell.id for cell in page.cells}
    place_guesses(page, number)
    return [cell.source for cell in page.cells if cell.id not in before]


@pytest.fixture(scope="module")
def folder(written: Any) -> Path:
    return written[0]


@pytest.fixture(scope="module")
def models(written: Any) -> dict[str, tuple[Any, Any]]:
    return written[1]


@pytest.fixture(scope="module")
def opened(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A tab without a network, and the files that it has read."""
    with offline_context(browser) as (context, asked):
        tab, read, failed = context.new_page(), [], []
        tab.on("pageerror", lambda error: failed.append(str(error)))
        tab.on("request", lambda request: read.append(Path(request.url).name))
        yield tab, read
        assert (asked, failed) == ([], [])


Open = Callable[..., Locator]


@pytest.fixture
def playground(opened: tuple[Page, list[str]], folder: Path) -> Open:
    """Opens the page of a playground as a reader does, at some width, and gives its box."""

    def go(play: str, width: int = 1440, scheme: Any = "light") -> Locator:
        page, read = opened
        read.clear()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.goto((folder / f"{play}.html").as_uri())
        box = page.locator(".play-box[data-drawn=yes]").first
        box.wait_for()
        assert not {f"{path.name}" for path in (folder / "models").glob("*.js")} & set(read)
        return box

    return go


PERCENT = re.compile(r"[\d.]+%")


def says(box: Locator, text: str) -> None:
    """Wait until the sentence below holds this text, for readers who see it and who hear it. Its
    percentages are the page's up to a tenth of a point, where the last digit is rounded."""
    pattern = pattern_of(text)
    sentence = box.locator(".play-sentence").filter(has_text=pattern)
    try:
        sentence.wait_for()
    except PlaywrightError:
        pytest.fail(f"{box.locator('.play-sentence').inner_text()!r} holds no {pattern.pattern!r}")
    assert_says(sentence.inner_text(), text)
    box.locator(".play-spoken").filter(has_text=pattern).wait_for()


def pattern_of(text: str) -> re.Pattern[str]:
    """This text with any percentages."""
    return re.compile(PERCENT.pattern.join(map(re.escape, PERCENT.split(text))))


def assert_says(sentence: str, text: str) -> None:
    found = pattern_of(text).search(sentence)
    assert found, f"{sentence!r} does not say {text!r}"
    numbers = [[float(n[:-1]) for n in PERCENT.findall(t)] for t in (found[0], text)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.11)


def percent(probability: float) -> str:
    return f"{100 * probability:.1f}%"


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "light"), (1440, "dark")])
@pytest.mark.parametrize("play", PLAYS)
def test_a_playground_shuts_nobody_out(
    playground: Open, play: str, width: int, scheme: str
) -> None:
    box = playground(play, width, scheme)
    box.locator("textarea, .play-canvas").first.click()
    box.locator(".play-bars, .play-tile, .play-numbers, .play-found li").first.wait_for()
    assert box.page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_findings(box.page, ".play-box", WCAG) == []
    take_picture(box.page, f"site-{play}-{width}-{scheme}")


# --- 16: two models -----------------------------------------------------------------------------

SENTENCE = "Returns the [MASK] of the values along the given axis."


def compared(models: Any) -> str:
    """What the page says of that sentence."""
    best, words = [], []
    for name in ("course-bert", "course-modernbert"):
        guesses = predict_masked(*models[name], SENTENCE, top=5)
        best.append(f"{name} says {guesses[0][0]} ({percent(guesses[0][1])})")
        words.append({word for word, _ in guesses})
    return f"Position 3: {', '.join(best)}. They share {len(words[0] & words[1])} of 5 pieces."


def test_two_models_fill_the_same_sentence(playground: Open, models: Any) -> None:
    box = playground("compare")
    page, names = box.page, ("course-bert", "course-modernbert")
    page.keyboard.press("Tab")
    box.locator(".play-bars").first.wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type(SENTENCE)
    guesses = [predict_masked(*models[name], SENTENCE, top=5) for name in names]
    says(box, compared(models))
    captions = box.locator(".play-bars caption").all_inner_texts()
    assert captions == [f"{name}: [MASK] at position 3" for name in names]
    labels = box.locator(".play-bars th").all_inner_texts()
    assert labels == [word for guess in guesses for word, _ in guess]
    for _ in range(3):  # the button, and two pieces
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    box.locator(".play-bars caption").filter(
        has_text="course-modernbert: instead of the"
    ).wait_for()
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    box.locator("textarea").fill("array " * 130)
    says(box, "The models read 128 tokens; the last 4 of your text are left out.")


# --- 07: ELECTRA --------------------------------------------------------------------------------

STORY = (
    "the conductor goza comes from alderholm with his train . first goza unlocks the train near "
    "moon market . then they drive the train at moon market ."
)


def p_replaced(models: Any, text: str) -> list[float]:
    model, words = models["electra-discriminator"]
    ids = torch.tensor([pack(words.encode(text), None, words.special)[0]])
    with torch.no_grad():
        return model(ids, torch.ones_like(ids)).logits[0].sigmoid().tolist()[1:-1]


def test_electra_suspects_a_word(playground: Open, models: Any) -> None:
    """By keyboard: a contradiction is written; a word is hidden; a proposal is taken."""
    box = playground("electra")
    page, odd = box.page, STORY.replace("drive the train", "drive the cat")
    page.keyboard.press("Tab")
    box.locator(".play-tile").first.wait_for()
    box.locator("textarea").fill(STORY)
    says(box, suspected(STORY, models))
    box.locator("textarea").fill(odd)
    says(box, suspected(odd, models))
    at = odd.split().index("cat") + 1
    assert p_replaced(models, odd)[at - 1] > 0.5 > p_replaced(models, STORY)[at - 1]
    tile = box.locator(".play-tile").nth(at - 1)
    assert "play-suspect" in tile.get_attribute("class")
    tile.focus()
    page.keyboard.press("Enter")
    generator = models["electra-generator"]
    guesses = predict_masked(*generator, odd.replace("cat", "[MASK]"), top=5)
    word, probability = guesses[0]
    seen = p_replaced(models, odd.replace("cat", word))[at - 1]
    says(box, f"For word {at} the generator’s first is {word} ({percent(probability)}); the "
         f"discriminator reads it with P(replaced) {percent(seen)}.")  # fmt: skip
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    buttons = box.locator(".play-proposals button")
    assert [text.split()[0] for text in buttons.all_inner_texts()] == [one for one, _ in guesses]
    taken = guesses[1][0]
    buttons.nth(1).focus()
    page.keyboard.press("Enter")
    assert box.locator("textarea").input_value() == odd.replace("cat", taken)
    says(box, suspected(odd.replace("cat", taken), models))


def suspected(text: str, models: Any) -> str:
    """What the page says of this text."""
    probabilities, words = p_replaced(models, text), text.split()
    suspects = [
        f"{word} (word {n + 1}, {percent(p)})"
        for n, (word, p) in enumerate(zip(words, probabilities, strict=True))
        if p > 0.5
    ]
    colon = ": " if suspects else ""
    return (
        f"The discriminator takes {len(suspects)} of {len(words)} words for replaced{colon}"
        f"{', '.join(suspects)}."
    )


def test_words_beyond_the_micro_world_are_named(playground: Open) -> None:
    box = playground("electra")
    box.locator("textarea").click()
    box.locator("textarea").fill("The Gardener waters a Xylophone, and [MASK] rests.")
    says(box, "The micro-world does not know: Xylophone, ,, rests. Both networks read [UNK] there.")
    box.locator("textarea").fill("the " * 70)
    says(box, "The networks read 64 tokens; the last 8 of your story are left out.")
    assert box.locator(".play-tile").count() == 62


# --- 15: a digit --------------------------------------------------------------------------------


def test_the_vit_reads_held_out_digits(models: Any, tmp_path: Path) -> None:
    """With the weights that the site has; and what is kept is what was trained."""
    import models_of_pages

    adapter, _ = models[models_of_pages.DIGITS]
    assert class_accuracy(adapter.model, digits("test")) >= 0.9
    (file,) = models_of_pages.TRAINED.glob("digits-vit-*.pt")
    before = file.stat().st_mtime_ns
    models_of_pages.digits_vit()
    assert file.stat().st_mtime_ns == before


def expected_line(model: Any, image: torch.Tensor, layer: int, label: str) -> str:
    weights, said = attentions_of(model, image)
    with torch.no_grad():
        order = model(image[None]).logits[0].softmax(-1).sort(descending=True)
    assert str(int(order.indices[0])) == said
    best = [
        f"{i} ({percent(p)})"
        for i, p in zip(order.indices.tolist(), order.values.tolist(), strict=True)
    ]
    read = rollout(weights)[layer - 1, 0]
    patch = int(read[1:].argmax()) + 1
    return (
        f"Said to be {best[0]}, next {best[1]}; its label is {label}. rollout, layer {layer}: most "
        f"of it from patch {patch} (row {(patch - 1) // 4 + 1}, column {(patch - 1) % 4 + 1}), "
        f"{percent(read[patch])}; from the class token itself {percent(read[0])}."
    )


def test_a_test_picture_is_read_as_torch_reads_it(playground: Open, models: Any) -> None:
    box, held_out = playground("digits"), digits("test")
    model = models["digits-vit"][0].model
    for label in "012":
        box.get_by_role("button", name="A test picture").click()
        image = held_out.pixel_values[held_out.labels == int(label)][0]
        says(box, expected_line(model, image, 2, label))
    layer = box.get_by_role("slider", name="layer")
    layer.focus()
    layer.press("Home")
    says(box, expected_line(model, image, 1, label))
    assert box.locator(".play-bars th").all_inner_texts() == list("0123456789")
    box.get_by_role("combobox").select_option("class token")
    says(box, "the class token’s attention, layer 1: most of it from patch")


def test_a_digit_is_drawn_with_a_mouse(playground: Open) -> None:
    box = playground("digits")
    page, area = box.page, box.locator(".play-canvas").bounding_box()
    assert area

    def draw(points: list[tuple[float, float]]) -> None:
        to = [(area["x"] + x * area["width"], area["y"] + y * area["height"]) for x, y in points]
        page.mouse.move(*to[0])
        page.mouse.down()
        for x, y in to[1:]:
            page.mouse.move(x, y, steps=4)
        page.mouse.up()

    circle = [(0.5 + 0.2 * math.sin(a / 4), 0.5 - 0.3 * math.cos(a / 4)) for a in range(26)]
    draw(circle)
    says(box, "Said to be 0 (")
    take_picture(page, "site-digits-drawn")
    box.get_by_role("button", name="Clear").click()
    says(box, "Draw a digit.")
    draw([(0.3, 0.2), (0.7, 0.2), (0.45, 0.8)])
    says(box, "Said to be 7 (")
    draw([(0.1, 0.1), (0.9, 0.9)])
    box.get_by_role("button", name="Undo").click()
    says(box, "Said to be 7 (")


def test_a_digit_is_drawn_with_keys(playground: Open) -> None:
    box = playground("digits")
    box.page.keyboard.press("Tab")
    assert box.page.evaluate("document.activeElement.getAttribute('role')") == "application"
    box.page.keyboard.press("Space")
    says(box, "The pen is down.")
    for _ in range(8):
        box.page.keyboard.press("ArrowDown")
    says(box, "Said to be 1 (")
    box.page.keyboard.press("Space")
    says(box, "The pen is up. Said to be 1 (")


# --- 03: words of code --------------------------------------------------------------------------


def test_a_difference_is_what_changed(site_builder: ModuleType, models: Any, folder: Path) -> None:
    """At most half a step from the trained weights; rows that nothing trained are the base's."""
    from differences import LARGEST, as_changed
    from weights import STEPS, as_written

    torch.manual_seed(0)
    base, tuned = nn.Linear(64, 6), nn.Linear(64, 6)
    tuned.weight.data = as_written(base)["weight"].clone()
    tuned.weight.data[[1, 4]] += 0.02 * torch.randn(2, 64)
    written, change = as_changed(tuned, base)["weight"], tuned.weight - as_written(base)["weight"]
    step = change.view(6, 2, 32).abs().amax(-1, keepdim=True) / LARGEST
    error = (written - tuned.weight).view(6, 2, 32).abs()
    assert (error <= 0.5 * 2 ** (1 / STEPS) * step + 1e-6).all()
    assert torch.equal(written[[0, 2, 3, 5]], as_written(base)["weight"][[0, 2, 3, 5]])
    text = (folder / "models" / "code-tagger.js").read_text(encoding="utf-8")
    what = json.loads(text[text.index("{") : text.rindex("}") + 1])
    rows = {name: len(rows) for name, rows, _ in what["changes"]["tensors"]}
    assert what["base"] == "course-bert"
    assert 0 < rows["embeddings.token.weight"] < 8_192


def test_a_tagger_marks_words_of_code(playground: Open, models: Any) -> None:
    """What page 03's control says of the same sentence, by the tags of the words' first pieces."""
    box = playground("code")
    model, words = models["code-tagger"]
    box.page.keyboard.press("Tab")
    box.locator(".play-tile").first.wait_for()
    for text in ("If default_factory is None, naïve::copy(x) is a copy.", "x " * 50):
        box.locator("textarea").fill(text)
        sentence = tagged([text, []])
        task = tagged_sequences([sentence], None, words, LENGTH, names=CODE_TAGS)
        (tags,) = predicted_tags(model, task)
        cut = len(sentence.words) - len(tags)
        if cut:
            says(
                box,
                f"The tagger reads 40 tokens; the last {cut} words of your sentence are left out.",
            )
        expected = [w if t == "O" else f"`{w}`" for w, t in zip(sentence.words, tags, strict=False)]
        # All words: the last alone may be that of the text before.
        expect(box.locator(".play-word")).to_have_text(expected, timeout=30_000)
        assert box.locator(".play-word").all_inner_texts() == expected
        with torch.no_grad():
            logits = model(task.sequences.input_ids, task.sequences.attention_mask).logits[0]
        p_code = 1 - logits[list(task.first[0])].softmax(-1)[:, 0]
        seen = [t.split()[-1] for t in box.locator(".play-tile").all_inner_texts()]
        assert [float(t[:-1]) for t in seen] == pytest.approx((100 * p_code).tolist(), abs=0.11)
    box.locator("textarea").fill("")
    says(box, "There is no word to read.")


# --- 08: three scores ---------------------------------------------------------------------------


def measured(models: Any, text: str, layer: int, head: int) -> tuple[ScoreMaps, torch.Tensor]:
    """Page 08's numbers of this text: its maps, and the weights."""
    adapter, words = models["stories-deberta"]
    maps = measure_scores(adapter.encoder, words, text, layer, head)
    return maps, maps.total().softmax(-1)


def number_table_of(box: Locator) -> list[list[str]]:
    rows = box.locator(".play-numbers tbody tr").all_inner_texts()
    return [[cell.strip() for cell in row.split("\t")] for row in rows]


def rows_of(maps: ScoreMaps, weights: torch.Tensor, query: int) -> list[list[float]]:
    """Of each key: its distance, the three scores, their sum, and the weight in percent."""
    values = [*maps.parts.values(), maps.total(), 100 * weights]
    return [
        [query - key, *(float(value[query, key]) for value in values)]  # type: ignore[index]
        for key in range(len(maps.tokens))
    ]


def as_numbers(cells: list[str], now: bool) -> list[float]:
    """The cells of a row; of one with two numbers, before and after, that of `now`."""
    texts = (cell.split(" → ")[-1 if now else 0] for cell in cells)
    return [float(text.replace("−", "-").rstrip("%")) for text in texts]


@pytest.mark.parametrize(("layer", "head"), [(1, 1), (2, 2)])
def test_three_scores_are_the_pages(playground: Open, models: Any, layer: int, head: int) -> None:
    """By keyboard: a word is chosen and moved; before and after it are page 08's numbers."""
    box = playground("scores")
    page, text = box.page, box.get_attribute("data-text")
    assert text == MicroWorld.load().stories(3, seed=5, split="heldout")[0].sentences[0]
    page.keyboard.press("Tab")
    says(box, "Layer 1, head 1. Here “at” attends most to ")
    box.get_by_label("layer").select_option(str(layer))
    box.get_by_label("head").select_option(str(head))
    box.get_by_role("button", name="nizin").focus()
    page.keyboard.press("Enter")
    says(box, f"Layer {layer}, head {head}. Here “nizin” attends most to ")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    before, was = measured(models, text, layer, head)
    expected, query = (
        rows_of(before, was, 4),
        "[CLS] at lion mill nizin meets his friend pina . [SEP]",
    )
    assert before.tokens == query.split()
    for (key, *cells), numbers, token in zip(
        number_table_of(box), expected, before.tokens, strict=True
    ):
        assert key == token
        assert as_numbers(cells, now=True) == pytest.approx(numbers, abs=0.051)
    move = box.get_by_role("button", name="Move it left")
    move.focus()
    for _ in range(2):
        page.keyboard.press("Enter")
    says(box, "With the word moved: to ")
    box.locator(".play-piece").nth(2).filter(has_text="nizin").wait_for()
    after, now = measured(models, "at nizin lion mill meets his friend pina .", layer, head)
    table = {key: cells for key, *cells in number_table_of(box)}
    assert [*table] == after.tokens
    for numbers, token in zip(expected, before.tokens, strict=True):
        assert as_numbers(table[token], now=False) == pytest.approx(numbers, abs=0.051)
    for numbers, token in zip(rows_of(after, now, 2), after.tokens, strict=True):
        assert as_numbers(table[token], now=True) == pytest.approx(numbers, abs=0.051)
    if layer == 1:  # a word's content is the same everywhere
        says(box, "Of its scores with 11 tokens changed: content-to-content 0, ")
    box.get_by_role("button", name="Back to your sentence").click()
    says(box, "Here “nizin” attends most to ")
    assert box.locator(".play-maps").count() == 1


def test_a_sentence_of_other_words_or_of_none_is_read(playground: Open) -> None:
    box = playground("scores")
    box.locator("textarea").click()
    box.locator("textarea").fill("the xylophone and the cello rests " * 5)
    says(box, "The micro-world does not know 10 of your words: the model reads [UNK] there. "
         "Shown are 24 tokens; the last 8 of your text are left out.")  # fmt: skip
    box.locator("textarea").fill("")
    says(box, "Here “[CLS]” attends most to ")
    for name in ("Move it left", "Move it right", "Back to your sentence"):
        box.get_by_role("button", name=name).click()
    says(box, "Here “[CLS]” attends most to ")


# --- guesses ------------------------------------------------------------------------------------


def test_every_page_that_asks_for_guesses_remembers_them(site_builder: ModuleType) -> None:
    for path in site_builder.every_notebook():
        boxes = guess_boxes(path.stem[:2])
        text = path.read_text(encoding="utf-8")
        assert len(boxes) == ("my_guesses = {" in text) + ("my_guesses[" in text)
        assert all("<script" not in box and "With scripts allowed" in box for box in boxes)


def test_an_answer_is_what_the_page_prints() -> None:
    from guesses import answers_of

    lines = ("     you said   answer", "first one   –   4%, 82%", "last   – RoPE. At the", "   end")
    printed = "\n".join(lines)
    answers = {"first one": "4%, 82%", "last": "RoPE. At the end"}
    assert answers_of(printed, ["first one", "last"]) == answers
    with pytest.raises(ValueError, match="prints no answer to the guess 'third'"):
        answers_of(printed, ["third"])


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "light"), (1440, "dark")])
def test_guesses_are_kept_and_stand_beside_the_answers(
    playground: Open, width: int, scheme: str
) -> None:
    box = playground("guess", width, scheme)
    page, table = box.page, box.page.locator(".play-box").nth(1)
    page.evaluate("localStorage.clear()")
    page.reload()
    says(table, "0 of 3 guesses written. Yours stand beside the answers once you write them")
    page.keyboard.press("Tab")
    page.keyboard.type("<b>yes</b>, by a little")
    says(box, "1 of 3 guesses written. They are kept in this browser.")
    says(table, "1 of 3 guesses written. Yours stand beside the answers.")
    page.reload()
    table.locator("tbody tr").first.wait_for()
    rows = table.locator("tbody tr").all_inner_texts()
    assert rows[0].split("\t") == [
        "the score", "<b>yes</b>, by a little", "no: only the distance counts",
    ]  # fmt: skip
    assert [row.split("\t")[1] for row in rows[1:]] == ["–", "–"]
    assert box.locator("input").first.input_value() == "<b>yes</b>, by a little"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_findings(page, ".play-box", WCAG) == []
    take_picture(page, f"site-guess-{width}-{scheme}")


def test_a_browser_that_keeps_nothing_says_so(playground: Open) -> None:
    box = playground("guess")
    forbidden = "Storage.prototype.getItem = Storage.prototype.setItem"
    box.page.evaluate(f"() => {{ {forbidden} = () => {{ throw new Error('full'); }}; }}")
    box.locator("input").first.fill("no")
    says(box, "This browser keeps nothing for pages opened as files")
    says(box.page.locator(".play-box").nth(1), "1 of 3 guesses written.")


# --- 17: a question for the course --------------------------------------------------------------

QUESTIONS = (
    "How can I train a large batch when memory is short?",
    "Which layer knows the parts of speech best?",
    "optimizers optimizing the learning rates, of rates",
    "internal intervals",
)


@pytest.fixture(scope="module")
def index(folder: Path) -> dict[str, Any]:
    """What the playground searches, as it is written."""
    text = (folder / "models" / "search-encoder.js").read_text(encoding="utf-8")
    return json.loads(text[text.index("{") : text.rindex("}") + 1])["index"]


def ranked(models: Any, index: dict[str, Any], question: str) -> dict[str, list[str]]:
    """The headings of the five best sections by each way, in Python."""
    from course_index import MIDDLE
    from weights import LETTERS

    sections = [one for one in course_sections() if one.page != "README.md"]
    words = index_of(sections).scores([question])
    codes = [LETTERS.index(letter) - MIDDLE for letter in index["vectors"]]
    vectors = index["unit"] * torch.tensor(codes, dtype=torch.float32).view(len(index["of"]), -1)
    query = SentenceEncoder(*models["search-encoder"], length=128).encode([question])
    meaning, of = torch.full_like(words, -1), torch.tensor(index["of"])[None]
    meaning.scatter_reduce_(1, of, query @ vectors.T, "amax")
    scores = {"words": words, "meaning": meaning}
    scores["both"] = weighted_mix(words, meaning, index["weight"])
    best = {way: values[0].topk(5).indices.tolist() for way, values in scores.items()}
    return {
        way: [f"{sections[n].page[:2]} · {sections[n].heading}" for n in order]
        for way, order in best.items()
    }


def test_the_course_is_searched_as_python_searches_it(
    playground: Open, models: Any, index: dict[str, Any]
) -> None:
    box = playground("search")
    box.page.keyboard.press("Tab")
    box.locator(".play-found li").first.wait_for()
    for question in QUESTIONS:
        expected = ranked(models, index, question)
        box.locator("textarea").fill(question)
        for way, label in (("words", "words (BM25)"), ("meaning", "meaning"), ("both", "both")):
            box.get_by_label(label).check()
            expect(box.locator(".play-found a")).to_have_text(expected[way])
    address = box.locator(".play-found a").first.get_attribute("href")
    assert re.fullmatch(r"\d\d_\w+\.html#[\w-]+", address)
    box.locator("textarea").fill("Zzyzx qwrt?")
    says(box, "The pages have none of these words: BM25 finds nothing.")
    box.get_by_label("words (BM25)").check()
    expect(box.locator(".play-found li")).to_have_count(0)
    box.locator("textarea").fill("the masked zzyzx")
    says(box, "No page has zzyzx.")


def test_every_word_of_the_pages_has_its_stem(index: dict[str, Any]) -> None:
    sections = [one for one in course_sections() if one.page != "README.md"]
    for one in sections[::9]:
        for (stem,) in filter(None, search_terms(re.findall(r"\w\w+", one.text))):
            assert stem in index["words"]
    words = ["internal", "intervals", "trained"]
    assert [index["stems"].get(w, w) for w in words] == [s for (s,) in search_terms(words)]


# --- Firefox ------------------------------------------------------------------------------------

TAB, DOWN = "\ue004", "\ue015"


@pytest.fixture(scope="module")
def fox(folder: Path) -> Iterator[firefox.Firefox]:
    """A Firefox that can reach files alone."""
    program = firefox.installed()
    if not program:
        pytest.skip(f"none of {', '.join(firefox.PROGRAMS)} is installed")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        firefox.running(program, Path(profile)) as one,
    ):
        yield one


def fox_says(fox: firefox.Firefox, text: str) -> None:
    """As `says`, of the first box."""
    said = "document.querySelector('.play-sentence').textContent"
    try:
        assert_says(fox.wait(f"{said}.match(new RegExp(args[0], 'u')) && {said}", js(text)), text)
    except RuntimeError as error:
        written = fox.run(f"return [{said}, document.querySelector('textarea')?.value]")
        pytest.fail(f"{error}: {written} holds no {text!r}")


def js(text: str) -> str:
    """The pattern of this text as JavaScript reads it."""
    return PERCENT.pattern.join(
        re.sub(r"[\\^$.*+?()[\]{}|/]", r"\\\g<0>", t) for t in PERCENT.split(text)
    )


def filled(models: Any) -> str:
    guesses = predict_masked(*models["course-bert"], SENTENCE, top=5)
    return f"Position 3: {', '.join(f'{word} {percent(p)}' for word, p in guesses)}."


def attended(models: Any) -> str:
    """The beginning of what the page of the three scores says of a sentence."""
    maps, weights = measured(models, "the captain meets pina .", 1, 1)
    best = int(weights[1].argmax())
    shown = f"(distance {1 - best}), {percent(float(weights[1, best]))}"
    return f"Here “the” attends most to “{maps.tokens[best]}” {shown.replace('-', '−')}"


TYPED: dict[str, tuple[str, Callable[[Any], str]]] = {
    "fill": (SENTENCE, filled),
    "compare": (SENTENCE, compared),
    "electra": (STORY, lambda models: suspected(STORY, models)),
    "code": ("", lambda models: "There is no word to read."),
    "scores": ("the captain meets pina .", attended),
    "search": ("Zzyzx qwrt?", lambda models: "The pages have none of these words"),
}


@pytest.mark.parametrize("play", TYPED)
def test_firefox_reads_what_is_typed(
    fox: firefox.Firefox, folder: Path, models: Any, play: str
) -> None:
    fox.open(folder / f"{play}.html")
    fox.keys(TAB)
    assert fox.run("return document.activeElement.tagName") == "TEXTAREA"
    fox.wait("document.querySelector('.play-bars, .play-tile, .play-numbers, .play-found li')")
    text, expected = TYPED[play]
    fox.run("document.activeElement.select()")
    fox.keys(text or "\ue003")  # backspace
    fox_says(fox, expected(models))
    read = fox.run("return performance.getEntriesByType('resource').map(({name}) => name)")
    assert all(re.match("file:|blob:", address) for address in read)


@pytest.mark.parametrize("load", range(3))  # each compiles the encoder anew, as it comes
def test_firefox_computes_the_same_again(fox: firefox.Firefox, folder: Path, load: int) -> None:
    fox.open(folder / "fill.html")
    fox.keys(TAB)
    fox.wait("document.querySelector('.play-bars')")
    answers = fox.run(
        """const [text] = args, answers = new Set(), model = await courseModels.open('course-bert');
        for (let n = 0; n < 80; n++) for (const one of [text, text.slice(0, 20 + n % 30)]) {
          const {masked: [{best}]} = await model.ask({text: one, top: 5, most: 1});
          if (one === text) answers.add(JSON.stringify(best));
        }
        return [...answers];""",
        SENTENCE,
    )
    assert len(answers) == 1


def test_nothing_goes_on_with_what_fill_returns() -> None:
    for script in (ROOT / "notebooks" / "site" / "models").glob("*.js"):
        text = re.sub("//.*", "", script.read_text(encoding="utf-8"))
        assert not re.search(r"subarray\([^()]*\)\s*\.fill|\.fill\([^()]*\)\s*\.", text), script


def test_firefox_draws_and_remembers(fox: firefox.Firefox, folder: Path) -> None:
    fox.open(folder / "digits.html")
    fox.keys(TAB + " " + 8 * DOWN)
    fox_says(fox, "The pen is down. Said to be 1 (")
    fox.open(folder / "guess.html")
    fox.keys(f"{TAB}no")
    fox_says(fox, "1 of 3 guesses written. They are kept in this browser.")
    fox.open(folder / "guess.html")
    assert fox.run("return document.querySelector('input').value") == "no"
