"""The models that run in the site's pages: torch's numbers, WordPiece's ids, and a reader's own
sentence, from files, with nothing else of the machine or the network."""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from axe import WCAG, serious_findings
from conftest import ROOT
from lab import offline_context, take_picture
from playwright.sync_api import Browser, Page
from test_wordpiece import NASTY
from torch import Tensor, nn

from course_lib import bert
from course_lib.objectives.sequences import pack
from course_lib.teaching.predictions import predict_masked
from course_lib.text.english import blanks
from course_lib.text.wordpiece import WordPiece

JS = ROOT / "notebooks" / "site" / "models"
SENTENCES, TOP = 200, 5
ODD = [
    *NASTY, "[MASK]", "un[MASK]known[SEP]", "ΣΟΦΟΣ straße", "x" * 101, "\x00\x1c\x1d\ufffdx",
    "supercalifragilistic" * 6, "a\u0300" * 60, "[mask] [ MASK ]", "_ ^ `q` ~", "\ue000private",
]  # fmt: skip


# --- without a browser --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights(site_builder: ModuleType) -> ModuleType:
    """The module that writes models; the builder has found it."""
    import weights

    return weights


@pytest.fixture(scope="module")
def playgrounds(site_builder: ModuleType) -> ModuleType:
    import playgrounds

    return playgrounds


def sections(code: bytes) -> dict[int, bytes]:
    """The sections of a WebAssembly module by their numbers, but for 0: names, for people."""
    found, at = {}, 8
    while at < len(code):
        number, size, shift = code[at], 0, 0
        while True:
            at += 1
            size |= (code[at] & 127) << shift
            shift += 7
            if code[at] < 128:
                break
        found[number] = code[at + 1 : at + 1 + size]
        at += 1 + size
    return {number: body for number, body in found.items() if number}


def test_the_products_bytes_are_those_of_its_text() -> None:
    wasmtime = pytest.importorskip("wasmtime", reason="wasmtime, which assembles, is not installed")
    text = (JS / "product.js").read_text(encoding="utf-8")
    code = base64.b64decode("".join(re.findall(r"'([\w+/=]{20,})'", text)))
    assembled = wasmtime.wat2wasm((JS / "product.wat").read_text(encoding="utf-8"))
    assert sections(code) == sections(bytes(assembled))


def small(**changes: Any) -> nn.Module:
    torch.manual_seed(0)
    shape = {"vocab_size": 50, "hidden_size": 40, "num_heads": 2, "intermediate_size": 24}
    return bert("tiny", **{**shape, "num_layers": 1, "max_positions": 16, **changes})


def test_a_model_is_one_script_of_its_weights(weights: ModuleType, tmp_path: Path) -> None:
    model, words = small(), WordPiece.from_words([f"w{n}" for n in range(45)])
    text = weights.write_model("a", model, words, tmp_path).read_text(encoding="utf-8")
    what = json.loads(re.fullmatch(r'courseModel\("a", (\{.*\})\);\n', text)[1])  # type: ignore[index]
    assert [name for name, *_ in what["tensors"]] == list(model.state_dict())
    sizes, size = [], weights.GROUP
    for _, (rows, *columns), _ in what["tensors"]:
        numbers = [rows * -(-columns[0] // size), -(-rows * columns[0] // 4) * 5] if columns else []
        sizes.append(sum(numbers) or 5 * rows)
    assert len(what["data"]) == sum(sizes) and what["adler"] == zlib.adler32(what["data"].encode())
    assert (what["vocab"], what["config"]["num_heads"]) == (words.vocab, 2)


def test_a_number_is_at_most_half_a_step_from_what_it_was(weights: ModuleType) -> None:
    model = small()
    for name, written in weights.as_written(model).items():
        weight = model.state_dict()[name]
        for start in range(0, weight.shape[-1], weights.GROUP) if weight.dim() == 2 else ():
            group = weight[:, start : start + weights.GROUP]
            step = group.abs().amax(dim=1, keepdim=True) / weights.LARGEST
            error = (written[:, start : start + weights.GROUP] - group).abs()
            assert (error <= 0.5 * step * 2 ** (1 / weights.STEPS) * 1.001).all(), name
        assert weight.dim() == 2 or torch.equal(written, weight)


def test_weights_of_zero_stay_zero(weights: ModuleType) -> None:
    numbers, steps, top = weights.in_groups(torch.zeros(2, 40))
    assert not numbers.any() and top == 0 and steps.shape == (2, -(-40 // weights.GROUP))


def test_letters_are_the_digits_of_their_numbers(weights: ModuleType) -> None:
    text = weights.bytes_as_letters(np.array([254, 0, 5, 128, 7]))
    first = [weights.LETTERS.index(letter) for letter in text[:5]]
    assert first == [254 // 3, 0, 5 // 3, 128 // 3, 254 % 3 + 9 * (5 % 3) + 27 * (128 % 3)]
    assert len(text) == 10 and json.dumps(text) == f'"{text}"'
    text = weights.floats_as_letters(np.array([-1.5e-3]))
    bits = sum(weights.LETTERS.index(letter) * 92**n for n, letter in enumerate(text))
    assert np.array(bits, np.uint32).view(np.float32) == np.float32(-1.5e-3)


def test_a_tokenizer_that_the_page_does_not_know_is_refused(weights: ModuleType) -> None:
    words = WordPiece.from_words(["a"])
    odd = WordPiece(words.vocab, added_tokens={**words.added_tokens, "name": True})
    with pytest.raises(ValueError, match="looks for name in normalised text"):
        weights.settings_of(odd)


def test_every_playground_has_its_place(site_builder: ModuleType, playgrounds: ModuleType) -> None:
    for path in site_builder.every_notebook():
        page, number = nbformat.read(path, as_version=4), path.stem[:2]
        texts = "\n\n".join(cell.source for cell in page.cells)
        playgrounds.place_playgrounds(page, number)
        its_own = [one for one in playgrounds.PLAYGROUNDS if one.page == number]
        boxes = [cell.source for cell in page.cells if 'class="play-box"' in cell.source]
        assert len(boxes) == len(its_own)
        assert "\n\n".join(c.source for c in page.cells if c.source not in boxes) == texts
        assert all((JS / f"{one.play}.js").exists() for one in its_own)
    with pytest.raises(ValueError, match="Expected a cell with"):
        playgrounds.place_playgrounds(nbformat.v4.new_notebook(), "00")


def test_each_part_of_the_model_is_there_three_times(site_builder: ModuleType) -> None:
    import three_times

    text = three_times.three_times()
    assert text.count("\n## ") == len(three_times.PARTS) + 1
    for line in ("class PlainBert" not in text, "  function attention(x, name" in text):
        assert line
    with pytest.raises(ValueError, match="no function absent in the script"):
        three_times.function_of(three_times.script("encoder.js"), "absent")


# --- in a browser -------------------------------------------------------------------------------


NAMES = ("course-bert", "course-modernbert", "electra-discriminator", "electra-generator")


@pytest.fixture(scope="module")
def models(playgrounds: ModuleType) -> dict[str, tuple[Any, WordPiece]]:
    """As they are shipped."""
    import models_of_pages

    result = {name: models_of_pages.model_of(name) for name in NAMES}
    return {name: (model.eval(), words) for name, (model, words) in result.items()}


@pytest.fixture(scope="module")
def written(playgrounds: ModuleType) -> dict[str, tuple[Any, WordPiece]]:
    """The same with the weights that the site has."""
    import models_of_pages

    return {name: models_of_pages.as_shipped(name) for name in NAMES}


PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Models</title>
<link rel="stylesheet" href="_static/modules.css"><link rel="stylesheet" href="_static/site.css">
<script src="_static/modules.js"></script><script src="_static/site.js"></script></head>
<body><main><h1>Models</h1>{boxes}</main></body></html>"""


@pytest.fixture(scope="module")
def folder(
    site_builder: ModuleType, weights: ModuleType, playgrounds: ModuleType, models: Any,
    tmp_path_factory: Any,
) -> Path:  # fmt: skip
    """A page with two playgrounds, its scripts and all models: a site without Sphinx."""
    target = tmp_path_factory.mktemp("models")
    site_builder._write_assets(target / "_static", playgrounds.attention_script())
    for name, (model, words) in models.items():
        weights.write_model(name, model, words, target / "models")
    marked = [playgrounds.markdown(one) for one in playgrounds.PLAYGROUNDS[:2]]
    boxes = "".join(text[text.index("<div") :] for text in marked)
    (target / "page.html").write_text(PAGE.format(boxes=boxes), encoding="utf-8")
    (target / "models" / "damaged.js").write_text('courseModel("damaged", {"vo', encoding="utf-8")
    whole = (target / "models" / "electra-generator.js").read_text(encoding="utf-8")
    changed = whole.replace("electra-generator", "changed")[:-400] + "AAAA" + whole[-396:]
    (target / "models" / "changed.js").write_text(changed, encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def opened(browser: Browser, folder: Path) -> Iterator[tuple[Page, list[str], Path]]:
    """A tab without a network, and what it has read. At the end nothing else was asked for."""
    with offline_context(browser) as (context, asked):
        tab, read, failed = context.new_page(), [], []
        tab.on("pageerror", lambda error: failed.append(str(error)))
        tab.on("request", lambda request: read.append(Path(request.url).name))
        yield tab, read, folder
        assert asked == []
        assert set(failed) <= {"Invalid or unexpected token"}  # of damaged.js


@pytest.fixture(scope="module")
def tab(opened: tuple[Page, list[str], Path]) -> Page:
    """The page with all scripts that compute, before a test has touched it."""
    page = opened[0]
    page.goto((opened[2] / "page.html").as_uri())
    page.wait_for_function("window.courseTools")
    for part in ("product", "encoder", "wordpiece", "models"):
        page.add_script_tag(url=(opened[2] / "_static" / f"{part}.js").as_uri())
    return page


def ask(page: Page, name: str, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers of a model to these requests; arrays of numbers as lists."""
    script = """async ([name, requests]) => {
      const model = await courseModels.open(name), answers = [];
      for (const request of requests) answers.push(await model.ask(request));
      const plain = (key, value) => ArrayBuffer.isView(value) ? Array.from(value, String) : value;
      return JSON.stringify(answers, plain); }"""
    return json.loads(page.evaluate(script, [name, requests]))


def numbers(strings: list[str]) -> Tensor:
    return torch.tensor([float(text) for text in strings])


def texts_of(name: str, model: Any) -> list[list[int]]:
    """Token ids of several lengths, the longest that the model reads among them."""
    draw = random.Random(0)
    most = model.config.max_positions
    return [
        [draw.randrange(5, model.config.vocab_size) for _ in range(n)] for n in (2, 7, 21, most)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_states_and_attention_are_torchs(tab: Page, written: Any, name: str) -> None:
    model, _ = written[name]
    texts = texts_of(name, model)
    requests = [{"ids": ids, "states": True, "attentions": True, "scores": True} for ids in texts]
    if model.config.type_vocab_size:
        requests[2]["types"] = [0] * 10 + [1] * 11
    for request, answer in zip(requests, ask(tab, name, requests), strict=True):
        ids = torch.tensor([request["ids"]])
        types = torch.tensor([request["types"]]) if "types" in request else None
        with torch.no_grad():
            out = model.encoder(
                ids, torch.ones_like(ids), types, output_hidden_states=True,
                output_attentions=True, output_attention_scores=True,
            )  # fmt: skip
        for key, expected in (("states", out.hidden_states), ("attentions", out.attentions)):
            difference = numbers(answer[key]) - torch.stack(expected).flatten()
            assert difference.abs().max() <= 1e-4, key
        seen = torch.stack(out.attentions).flatten() > 0
        scores = (numbers(answer["scores"]) - torch.stack(out.attention_scores).flatten())[seen]
        assert scores.abs().max() <= 1e-3  # of numbers up to a hundred


def test_replaced_tokens_are_torchs(tab: Page, written: Any) -> None:
    model, _ = written["electra-discriminator"]
    ids = texts_of("electra-discriminator", model)[2]
    with torch.no_grad():
        expected = model(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long)).logits[0]
    (answer,) = ask(tab, "electra-discriminator", [{"ids": ids, "replaced": True}])
    torch.testing.assert_close(
        torch.tensor(answer["replaced"]), expected.sigmoid(), atol=1e-4, rtol=0
    )


PRODUCTS = """() => {
  const memory = new WebAssembly.Memory({initial: 2}), floats = new Float32Array(memory.buffer);
  const draw = i => { floats[i] = Math.sin(i * i) ; };
  for (let i = 0; i < 8000; i++) draw(i);
  const run = plainly => {
    courseProduct(memory, plainly)(0, 4 * 2000, 4 * 9000, 8, 6, 12, 4 * 20, 4 * 12, 4 * 7);
    return Array.from(floats.subarray(9000, 9000 + 8 * 7));
  };
  return [run(false), run(true), courseProduct(memory).name]; }"""


def test_the_plain_product_is_the_same(tab: Page) -> None:
    fast, plain, name = tab.evaluate(PRODUCTS)
    assert re.fullmatch(r"\d+", name)  # a function of WebAssembly: this browser has SIMD
    np.testing.assert_allclose(fast, plain, atol=1e-5)
    assert any(fast)


@pytest.mark.parametrize("name", ["course-bert", "course-modernbert"])
def test_top_five_of_the_notebooks_weights(
    tab: Page, models: Any, name: str, english_texts: list[str]
) -> None:
    """Of 200 sentences with a masked token, at least 97 in 100 of the five likeliest are shared."""
    model, words = models[name]
    draw, mask, requests, shared = random.Random(1), words.special.mask, [], 0
    for text in english_texts[:SENTENCES]:
        ids, _, _ = pack(words.encode(text)[:40], None, words.special)
        ids[draw.randrange(1, len(ids) - 1)] = mask
        requests.append({"ids": ids, "top": TOP})
    for request, answer in zip(requests, ask(tab, name, requests), strict=True):
        ids = torch.tensor([request["ids"]])
        with torch.no_grad():
            logits = model(ids, torch.ones_like(ids)).logits[0, request["ids"].index(mask)]
        expected = {words.token(i) for i in logits.topk(TOP).indices.tolist()}
        shared += len(expected & {one["piece"] for one in answer["masked"][0]["best"]})
    print(f"{name}: {shared / SENTENCES / TOP:.1%} of the top five shared")
    assert shared >= 0.97 * SENTENCES * TOP


@pytest.mark.parametrize("name", ["course-bert", "electra-generator"])
def test_ids_are_wordpieces(
    tab: Page, models: Any, name: str, english_texts: list[str], old_characters: list[str]
) -> None:
    words = models[name][1]
    draw = random.Random(2)
    drawn = ["".join(draw.choices(old_characters, k=30)) for _ in range(SENTENCES // 2)]
    odd = ("".join(draw.choices(old_characters, k=3)) for _ in range(SENTENCES // 2))
    drawn += [text[:60] + more for text, more in zip(english_texts, odd, strict=False)]
    texts = [*ODD, *drawn]
    script = """([text, texts]) => { const what = JSON.parse(text);
      const words = courseWordPiece(what.vocab, what.tokenizer);
      return texts.map(words.encode); }"""
    import weights

    what = json.dumps({"vocab": words.vocab, "tokenizer": weights.settings_of(words)})
    for text, ids in zip(texts, tab.evaluate(script, [what, texts]), strict=True):
        assert ids == words.encode(text), text


@pytest.mark.parametrize("more", [0, 3])
def test_a_long_text_is_cut(tab: Page, models: Any, more: int) -> None:
    text, room = "array " * (126 + more), 126
    alone, pair = ask(tab, "course-bert", [{"text": text}, {"text": text, "second": "a value"}])
    assert (len(alone["ids"]), alone["cut"]) == (room + 2, more)
    assert (len(pair["ids"]), pair["cut"]) == (128, more + 3)
    assert pair["pieces"][-4:] == ["[SEP]", "a", "value", "[SEP]"]
    assert pair["types"] == [0] * 125 + [1] * 3


def test_at_most_one_request_waits(tab: Page) -> None:
    script = """async () => {
      const model = await courseModels.open('electra-generator'), seen = [], begun = [];
      const slow = {ask: request => { begun.push(request.text); return model.ask(request); }};
      await new Promise(done => {
        const ask = courseModels.latest(slow, (answer, request) => {
          seen.push(request.text);
          if (request.text === 'the 19') done();
        });
        for (let n = 0; n < 20; n++) ask({text: `the ${n}`});
      });
      return [begun, seen]; }"""
    begun, seen = tab.evaluate(script)
    assert begun == seen == ["the 0", "the 19"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent", "is missing"), ("damaged", "is damaged"), ("changed", "holds other numbers than")],
)
def test_a_model_that_cannot_be_read_is_a_sentence(tab: Page, name: str, reason: str) -> None:
    script = "name => courseModels.open(name).then(() => 'read', error => error.message)"
    message = tab.evaluate(script, name)
    assert message.startswith(f"The model {name} could not be read: its file ")
    assert reason in message
    assert message.endswith(" Everything else on this page works without it.")


def test_a_text_that_cannot_be_read_is_a_sentence(tab: Page) -> None:
    script = """() => courseModels.open('electra-generator').then(m => m.ask({text: 3}))
      .then(() => 'read', error => error.message)"""
    assert tab.evaluate(script).startswith("The model electra-generator could not read this text: ")
    assert ask(tab, "electra-generator", [{"text": ""}])[0]["pieces"] == ["[CLS]", "[SEP]"]


# --- the playground -----------------------------------------------------------------------------

SENTENCE = "Returns the [MASK] of the values along the given axis."


@pytest.fixture
def fresh(opened: tuple[Page, list[str], Path]) -> Callable[..., Page]:
    """The page as a reader opens it, at some width."""

    def go(width: int = 1440, scheme: Any = "light") -> Page:
        page, read, folder = opened
        read.clear()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.goto((folder / "page.html").as_uri())
        page.locator(".play-box[data-drawn=yes]").first.wait_for()
        return page

    return go


def test_words_are_filled_as_they_are_typed(
    fresh: Callable[..., Page], opened: Any, written: Any
) -> None:
    """By keyboard alone: the sentence, a word hidden, another layer of the attention."""
    page, read = fresh(), opened[1]
    box = page.locator(".play-box").first
    assert "course-bert.js" not in read and "encoder.js" not in read
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    box.locator(".play-bars").wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type(SENTENCE)
    guesses = predict_masked(*written["course-bert"], SENTENCE, top=TOP)
    line = f"Position 3: {', '.join(f'{word} {100 * p:.1f}%' for word, p in guesses)}."
    box.locator(".play-sentence").filter(has_text=line).wait_for()
    box.locator(".play-spoken").filter(has_text=line).wait_for()
    labels = box.locator(".play-bars th").all_inner_texts()
    assert labels == [word for word, _ in guesses]
    page.keyboard.press("Tab")  # Insert [MASK]
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "the"
    page.keyboard.press("Enter")
    box.locator(".play-bars caption").filter(has_text="instead of the").wait_for()
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    slider = box.get_by_role("slider", name="layer")
    slider.focus()
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "layer 4 of 4"
    take_picture(page, "site-fill")


def test_two_playgrounds_share_one_model(fresh: Callable[..., Page], opened: Any) -> None:
    page = fresh()
    for n in range(2):
        page.locator(".play-box textarea").nth(n).click()
        page.locator(".play-box").nth(n).locator(".play-bars").first.wait_for()
    assert opened[1].count("course-bert.js") == 1
    assert len(page.workers) == 1
    first, second = page.locator(".play-sentence").all_inner_texts()
    blank = [blanks()[n] for n in (12, 1)]
    assert blank[0].word in first and blank[1].word in second


@pytest.mark.parametrize(
    "constructor", ["throw new Error('no worker')", "setTimeout(() => this.onerror())"]
)
def test_the_page_computes_where_there_is_no_worker(
    fresh: Callable[..., Page], constructor: str
) -> None:
    page = fresh()
    worker = f"class {{ constructor() {{ {constructor}; }} postMessage() {{}} }}"
    page.evaluate(f"() => {{ window.Worker = {worker}; }}")
    page.locator(".play-box textarea").first.click()
    page.locator(".play-bars").first.wait_for()
    assert page.workers == []


def test_a_long_or_complete_sentence_has_a_word(fresh: Callable[..., Page]) -> None:
    page = fresh()
    area, said = page.locator(".play-box textarea").first, page.locator(".play-sentence").first
    area.fill("array " * 130)
    said.filter(has_text="reads 128 tokens; the last 4 of your text are left out").wait_for()
    area.fill("nothing is hidden")
    said.filter(has_text="press a word piece to hide it").wait_for()
    page.get_by_role("button", name="Insert [MASK]").first.click()
    said.filter(has_text="Position 4: ").wait_for()


def test_a_missing_model_is_a_sentence_on_the_page(fresh: Callable[..., Page], opened: Any) -> None:
    path = opened[2] / "models" / "course-bert.js"
    path.rename(path.with_suffix(".away"))
    try:
        page = fresh()
        page.locator(".play-box textarea").first.click()
        message = page.locator(".play-sentence").filter(has_text="models/course-bert.js is missing")
        message.wait_for()
    finally:
        path.with_suffix(".away").rename(path)


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "light"), (1440, "dark")])
def test_the_playground_shuts_nobody_out(
    fresh: Callable[..., Page], width: int, scheme: str
) -> None:
    page = fresh(width, scheme)
    box = page.locator(".play-box").first
    box.locator("textarea").click()
    box.locator(".play-bars").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_findings(page, ".play-box", WCAG) == []
    take_picture(page, f"site-fill-{width}-{scheme}")


def test_a_browser_without_scripts_has_a_line(playgrounds: ModuleType) -> None:
    text = playgrounds.markdown(playgrounds.PLAYGROUNDS[0])
    assert "needs a browser of 2021 or later" in text and "<script" not in text
