"""What notebooks show: the right numbers and words, small, and without a network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from plotly.colors import hex_to_rgb
from view_parts import drawn, labels_of, picture_of, plain

from course_lib import bert, bert_for_pretraining, mask_sequences
from course_lib.objectives.sequences import pack, to_sequences
from course_lib.teaching import (
    attention,
    chart_parts,
    embedding_stack,
    figures,
    page,
    playgrounds,
    predictions,
    progress,
    quiz_widget,
    style,
    tokens,
)
from course_lib.teaching.quizzes import Choice, QuizItem
from course_lib.text.wordpiece import WordPiece

WORDS = "the river rose over its bank after spring rain and old bridge was closed she went to a"
A, B = "the river rose over its bank", "she went to the bridge"


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece.from_words([*WORDS.split(), ",", "."])


@pytest.fixture(scope="module")
def model(tokenizer: WordPiece) -> Any:
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_heads": 4, "intermediate_size": 32, "num_layers": 3}
    vocab = tokenizer.vocab_size
    return bert_for_pretraining("tiny", vocab_size=vocab, initializer_range=0.3, **small).eval()


@pytest.fixture(scope="module")
def ids(tokenizer: WordPiece) -> list[int]:
    a, b = tokenizer.encode(A), tokenizer.encode(B)
    return pack(a, b, tokenizer.special, len(a) + len(b) + 3)[0]


@pytest.fixture(scope="module")
def names(tokenizer: WordPiece, ids: list[int]) -> list[str]:
    return [tokenizer.token(i) for i in ids]


# ---------------------------------------------------------------- the whole room


PLACES = ("teaching", "lectures/*/views")


def view_files(root: Path) -> list[Path]:
    return sorted(f for place in PLACES for f in (root / "course_lib").glob(f"{place}/[a-z]*.py"))


def test_importing_views_loads_nothing_heavy(root: Path) -> None:
    heavy = ("plotly", "ipywidgets", "anywidget", "bertviz", "IPython", "pygments", "transformers")
    paths = [path.relative_to(root).with_suffix("").parts for path in view_files(root)]
    imports = "; ".join(f"import {'.'.join(path)}" for path in paths)
    ask = f"import sys; {imports}; print([n for n in {heavy} if n in sys.modules])"
    run = [sys.executable, "-c", ask]
    done = subprocess.run(run, cwd=root, capture_output=True, text=True, check=True)
    assert len(paths) > 20
    assert done.stdout.strip() == "[]"


def test_every_offered_name_is_there() -> None:
    from course_lib import teaching

    for name in teaching.__all__:
        assert callable(getattr(teaching, name)), name
    with pytest.raises(AttributeError, match="it offers"):
        _ = teaching.no_such_view


def test_no_view_names_another_host_or_a_renderer(root: Path) -> None:
    for path in view_files(root):
        text = path.read_text(encoding="utf-8")
        hosts = set(re.findall(r"https?://([\w.-]+)", text))
        assert hosts <= {"www.w3.org"}, path  # the name of SVG, never fetched
        assert path.name != "figures.py" or ("renderer" not in text and "$" not in text)


class Silent(torch.nn.Module):
    """Gives no attention weights."""

    def forward(self, ids: Any, output_attentions: bool) -> Any:
        return SimpleNamespace(attentions=())


def test_a_model_without_attention_weights_is_told_how_to_load() -> None:
    with pytest.raises(ValueError, match="eager"):
        attention.attention_weights(Silent(), [1, 2])


# ---------------------------------------------------------------- tokens


def test_token_boxes_say_by_shape_what_they_say_by_colour() -> None:
    row = tokens.tokens_row(
        ["[CLS]", "a", "[MASK]", "b", "c"], [0, 0, 1, 2, 3], ["", "", "river", "over", "selected"]
    )
    boxes = re.findall(r'<span class="token token-(\w+)".*?style="([^"]*)"', row.html)
    looks = dict(boxes)
    assert [kind for kind, _ in boxes] == ["special", "plain", "masked", "replaced", "kept"]
    assert "repeating-linear-gradient" in looks["masked"]
    assert "double" in looks["replaced"]
    assert "dotted" in looks["kept"] and "underline" in looks["kept"]
    assert "border-radius:12px" in looks["special"] and "border-radius:3px" in looks["plain"]
    shapes = [re.sub(r"#\w+", "", look) for look in looks.values()]
    assert len(set(shapes)) == 5  # different with every colour taken away
    assert repr(row) == "[CLS] a [MASK](river) «b»(over) _c_(selected)"


def test_tokens_are_escaped() -> None:
    assert "<b>" not in tokens.tokens_row(["<b>"]).html


# ---------------------------------------------------------------- attention


def test_code_and_stress_are_marked_and_formulas_left_alone() -> None:
    html = page.inline("*it reads `a*b*`*, **so** < 'b'", plain=True)
    assert html == "<em>it reads <code>a*b*</code></em>, <b>so</b> &lt; 'b'"
    assert page.inline("`a` 'b'").endswith('1a1a1a">a</code> &#x27;b&#x27;')
    formulas = "a**b + c**d, [*a, 1], [*b, 2], 2 * 3 * 4"
    assert page.inline(formulas) == formulas


def test_attention_weights_are_the_models_own(model: Any, ids: list[int]) -> None:
    model.train()
    weights = attention.attention_weights(model, ids)
    assert model.training
    model.eval()
    with torch.no_grad():
        own = model(torch.tensor([ids]), output_attentions=True).attentions
    assert weights.shape == (3, 4, len(ids), len(ids))
    torch.testing.assert_close(weights[2], own[2][0])


def test_attention_picture_has_every_token_and_is_small(
    model: Any, ids: list[int], names: list[str]
) -> None:
    weights = attention.attention_weights(model, ids)
    picture = attention.attention_picture(weights, names, layer=2, head=3)
    svg = drawn(picture.html)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert texts[: 2 * len(names)] == names + names
    assert "layer 2, head 3" in texts
    strong = int((weights[1, 2] >= attention.FAINTEST).sum())
    assert svg.count("<path") == strong > 10
    assert all(f"{name} → " in picture.text for name in names)
    long = torch.full((1, 1, 60, 60), 0.05)
    picture = attention.attention_picture(long, [f"token{i}" for i in range(60)])
    assert len(drawn(picture.html)) < 30_000 and len(picture.html) < 45_000


def test_attention_view_carries_all_weights(model: Any, ids: list[int], names: list[str]) -> None:
    live = attention.attention_view(model, ids, names, layer=3, head=4)
    weights = attention.attention_weights(model, ids)
    view, T = live.widget, len(ids)
    assert view.tokens == names and (view.layers, view.heads) == (3, 4)
    assert len(view.weights) == 3 * 4 * T * T
    sent = torch.tensor(view.weights).view(3, 4, T, T) / 1000
    assert (sent - weights).abs().max() <= 0.0005 + 1e-6
    bundle = live._repr_mimebundle_()
    assert {"text/html", "text/plain", page.WIDGET_VIEW} == set(bundle)
    for part in ("attention-view", "type: 'range'", "aria-label", "focus-visible", "tabindex"):
        assert part in view._esm + view._css


# ---------------------------------------------------------------- bertviz


@pytest.mark.parametrize("kind", ["head", "model"])
def test_bertviz_page_needs_nothing_from_outside(
    model: Any, ids: list[int], names: list[str], kind: Any
) -> None:
    pytest.importorskip("bertviz")
    from course_lib.teaching import bertviz

    weights = attention.attention_weights(model, ids)
    html = bertviz.bertviz_page(weights, names, kind=kind)
    libraries = (bertviz._library("jquery", "jquery.min.js"), bertviz._library("d3", "d3.js"))
    own = html
    for library in libraries:
        assert html.count(library) == 1
        own = own.replace(library, "")
    assert not re.search(r"https?:|//cdn|<link|<script[^>]* src", own)
    assert "schemeCategory10=d3.scale.category10().range()" in own
    data = json.loads(re.search(r"const params = (\{.*?\});", own).group(1))  # type: ignore[union-attr]
    attention_weights = torch.tensor(data["attention"][0]["attn"])
    assert data["attention"][0]["left_text"] == names
    assert (attention_weights - weights).abs().max() <= 0.00006


def test_bertviz_leaves_a_small_picture_in_the_notebook(
    model: Any, ids: list[int], names: list[str]
) -> None:
    pytest.importorskip("bertviz")
    from course_lib.teaching.bertviz import bertviz_view

    live = bertviz_view(model, ids, names)
    saved = live._repr_mimebundle_()
    assert len(live.widget.page) > 300_000  # the libraries travel to the live view …
    assert len(json.dumps(saved)) < 30_000  # … and not into the file
    assert "srcdoc" in live.widget._esm


# ---------------------------------------------------------------- playgrounds


def test_masking_playground_shows_what_mask_sequences_does(tokenizer: WordPiece) -> None:
    text = " ".join([A, B] * 4)
    body = tokenizer.encode(text)
    row = to_sequences([pack(body, None, tokenizer.special, len(body) + 2)])
    settings = {"rate": 0.5, "mix": (0.5, 0.3, 0.2), "seed": 3, "epoch": 2}
    masked = mask_sequences(row, tokenizer.special, **settings)  # type: ignore[arg-type]
    picture = playgrounds.masking_picture(tokenizer, text, 0.5, 0.5, 0.3, 3, 2)
    done = [int((masked.action == kind).sum()) for kind in (1, 2, 3)]
    assert min(done) > 0
    assert f"{sum(done)} selected: {done[0]} became [MASK], {done[1]} a random" in picture.text
    actions = ["masked", "replaced", "kept"]
    legend = 1  # one box of each kind explains it
    counts = [picture.html.count(f"token-{kind}") - legend for kind in actions]
    assert counts == done
    boxes = re.findall(r'class="token [^>]*>([^<]*)</span>', picture.html)[: len(body) + 2]
    assert boxes == [tokenizer.token(i) for i in masked.input_ids[0].tolist()]


def test_a_random_replacement_by_the_same_token_is_said() -> None:
    sentence = playgrounds.masking_counts([5, 6, 7], [5, 9, 7], [2, 2, 3])
    assert "3 selected: 0 became [MASK], 2 a random token, 1 kept." in sentence
    assert "1 random replacement gave the very token that was there" in sentence


def test_shares_above_one_and_no_text_give_a_message_not_an_error(tokenizer: WordPiece) -> None:
    live = playgrounds.masking_playground(tokenizer)
    live.controls["random_share"].value = 0.6
    assert "make 140% together; expected at most 100%" in plain(picture_of(live))
    live.controls["random_share"].value = 0.2
    assert "selected" in picture_of(live)
    live.controls["text"].value = "  "
    assert "The sentence is empty" in picture_of(live)


def test_embedding_stack_follows_its_texts(model: Any, tokenizer: WordPiece) -> None:
    live = embedding_stack.embedding_stack_view(model.encoder, tokenizer, A, B)
    live.controls["position"].value = live.controls["position"].max
    live.controls["b"].value = "a bridge"  # fewer tokens: the slider follows
    assert live.controls["position"].max == len(tokenizer.encode(A)) + 2 + 2
    assert "embedding-stack" in picture_of(live)
    live.controls["a"].value = ""
    assert "The sentence is empty" in picture_of(live)


def test_embedding_stack_writes_the_models_numbers(
    model: Any, tokenizer: WordPiece, ids: list[int]
) -> None:
    picture = embedding_stack.embedding_picture(model.encoder, tokenizer, A, B, position=9)
    types = [0] * 8 + [1] * 6
    with torch.no_grad():
        parts = model.encoder.embeddings.parts(torch.tensor([ids]), torch.tensor([types]))
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", picture.html)
    for name in ("token", "segment", "position", "sum", "normed"):
        for value in parts[name][0, 9, : embedding_stack.WRITTEN].tolist():
            assert f"{value:.3f}".replace("-0.000", "0.000").replace("-", "−") in cells
    assert f"token [{ids[9]}]" in picture.html.replace(" token", "token")
    assert "segment [1]" in picture.html and "position [9]" in picture.html
    assert drawn(picture.html).count("data:image/png") == 5


# ---------------------------------------------------------------- predictions


def test_predictions_are_the_models(model: Any, tokenizer: WordPiece) -> None:
    guesses = predictions.predict_masked(
        model, tokenizer, "the river rose over its [MASK]", truth="closed", top=3
    )
    body = tokenizer.encode("the river rose over its [MASK]")
    special = tokenizer.special
    with torch.no_grad():
        logits = model(torch.tensor([[special.cls, *body, special.sep]])).prediction_logits[0, 6]
    shares = logits.softmax(-1)
    assert [token for token, _ in guesses[:3]] == [tokenizer.token(i) for i in shares.topk(3)[1]]
    assert dict(guesses)["closed"] == pytest.approx(shares[tokenizer.id("closed")].item(), rel=1e-3)
    with pytest.raises(ValueError, match=r"holds no \[MASK\]"):
        predictions.predict_masked(model, tokenizer, "the river")


def test_watch_word_looks_at_the_end_and_often_at_the_start(
    model: Any, tokenizer: WordPiece
) -> None:
    watch = predictions.WatchWord(tokenizer, "the [MASK] rose", looks=5, top=2)
    for step in range(1, 101):
        watch(report(step, 100, model))
    assert [step for step, _ in watch.snapshots] == [4, 16, 36, 64, 100]
    assert all(len(guesses) == 2 for _, guesses in watch.snapshots)


def test_prediction_slider_at_both_ends() -> None:
    snapshots = [(1, [("a", 0.3), ("bank", 0.1)]), (50, [("bank", 0.876), ("a", 0.05)])]
    live = predictions.prediction_slider(snapshots, "over its [MASK]", truth="bank")
    live.controls["step"].value = 0
    first = drawn(picture_of(live))
    assert "after step 1<" in first and "30.0%" in first and "30.0%" in picture_of(live)
    live.controls["step"].value = 1
    last = drawn(picture_of(live))
    assert "after step 50" in last and "87.6%" in last
    assert last.count('fill="url(#hatch') == 1  # the true word, by shape …
    assert last.count("the true word") == 1  # … and in words


# ---------------------------------------------------------------- figures


def numbers_of(figure: Any) -> list[float]:
    return [float(v) for trace in figure.data for v in trace.y]


def history(steps: int, **losses: list[float]) -> Any:
    return SimpleNamespace(steps=list(range(1, steps + 1)), losses=losses)


def test_loss_figure_holds_its_numbers() -> None:
    run = history(3, total=[3.0, 2.0, 1.23456], mlm=[3.0, 2.0, 1.23456])
    figure = figures.plot_loss(run, {"unigram": 5.1})
    assert list(figure.data[0].y) == [3.0, 2.0, 1.235]
    assert list(figure.data[1].y) == [5.1, 5.1]
    assert labels_of(figure) == ["mlm 1.23", "unigram 5.1"]  # of 1.23456, not of 1.235
    assert len(json.dumps(figure.to_plotly_json(), default=list)) < 4_000


def test_long_curves_are_thinned_to_means() -> None:
    x, y = style.thinned(list(range(1, 1001)), [1.0, 3.0] * 500)
    assert len(x) == 200 and x[-1] == 1000
    assert all(1.0 < value < 3.0 for value in y)


def test_accuracy_chart_has_the_four_lines_and_the_long_run() -> None:
    figure = figures.accuracy_chart(
        [0, 10, 20], [0.0, 0.5, 0.81], unigram=0.1, count_model=0.68, oracle=0.95,
        long_run=([0, 100, 200], [0.0, 0.9, 0.93]),
    )  # fmt: skip
    names = [trace.name for trace in figure.data]
    assert names == ["long run", "model", "oracle", "count model", "unigram"]
    assert {0.81, 0.93, 0.95, 0.68, 0.1} <= set(numbers_of(figure))
    labels = " ".join(labels_of(figure))
    for label in ("model 81.0%", "long run 93.0%", "oracle 95.0%", "count model 68.0%", "unigram"):
        assert label in labels
    looks = {(t.line.color, t.line.dash, t.line.width) for t in figure.data}
    assert len(looks) == 5
    assert figure.layout.width <= 760 and figure.layout.height <= 420


def test_logarithmic_chart_leaves_out_step_zero() -> None:
    figure = figures.accuracy_chart(
        [0, 10, 100], [0.0, 0.5, 0.8], unigram=0.1, count_model=0.6, oracle=0.9, log_x=True
    )
    assert list(figure.data[0].x) == [10, 100]
    assert figure.layout.xaxis.type == "log"


def test_labels_never_touch_and_stay_inside() -> None:
    values = [0.95, 0.94, 0.93, 0.1]
    at = chart_parts.apart(values, 0.05, 1.0)
    ordered = sorted(at)
    assert all(b - a >= 0.05 - 1e-9 for a, b in pairwise(ordered))
    assert max(at) <= 1.0 and at[3] == 0.1
    assert sorted(range(4), key=at.__getitem__) == sorted(range(4), key=values.__getitem__)


def test_bars_carry_numbers_patterns_and_what_was_expected() -> None:
    shares = {"mask": 0.80123, "random": 0.0991, "kept": 0.0997}
    figure = figures.bar_chart(shares, expected={"mask": 0.8}, percent=True)
    bar = figure.data[0]
    assert list(bar.y) == [0.8012, 0.0991, 0.0997]
    assert list(bar.text) == ["80.1%", "9.9%", "10.0%"]
    assert len(set(bar.marker.pattern.shape)) == 3
    assert "expected 80.0%" in figure.layout.xaxis.ticktext[0]
    assert figure.layout.shapes[0].y0 == 0.8


def test_coverage_chart_ends_where_the_formula_does() -> None:
    figure = figures.coverage_chart(0.15, epochs=40, copies=10)
    last = {trace.name: trace.y[-1] for trace in figure.data}
    assert last["static"] == pytest.approx(0.15)
    assert last["ten copies"] == pytest.approx(1 - 0.85**10, abs=1e-4)
    assert last["dynamic"] == pytest.approx(1 - 0.85**40, abs=1e-4)


def test_heat_chart_keeps_equal_tokens_apart() -> None:
    figure = figures.heat_chart([[0.25, 1 / 3], [0.0, 1.0]], ["a", "a"], ["x", "x"])
    assert figure.data[0].z[0][1] == 0.3333
    assert list(figure.layout.xaxis.ticktext) == ["x", "x"]
    light, dark = (hex_to_rgb(shade) for _, shade in figure.data[0].colorscale)
    assert all(high > low for high, low in zip(light, dark, strict=True))
    assert figure.data[0].textfont.color == "#000000" and dark[1] >= 140  # 4.5 : 1


@pytest.mark.parametrize(("value", "rounded"), [(123456.0, 123500), (0.00123456, 0.001235), (0, 0)])
def test_four_significant_digits(value: float, rounded: float) -> None:
    assert style.round_one(value) == rounded


def test_colours_are_fixed_and_asked_for_by_name() -> None:
    assert style.colour("BERT") == style.colour("bert") == "#0072B2"


# ---------------------------------------------------------------- progress


def report(step: int, steps: int, model: Any = None, loss: float = 2.0) -> Any:
    losses = {"total": loss + 0.7, "mlm": loss, "nsp": 0.7}
    return SimpleNamespace(
        step=step, steps=steps, losses=losses, tokens_per_second=1234.5, model=model
    )


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("callback", "most"), [(progress.ProgressBar(), 51), (progress.LiveLoss(), 15)]
)
def test_progress_is_drawn_by_time_not_by_step(
    callback: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    for step in range(1, 10_001):  # 1 ms a step: ten seconds in all
        clock.now = step / 1000
        callback(report(step, 10_000))
    assert most - 4 <= callback.drawn <= most


def test_the_last_step_is_always_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawings: list[page.Html] = []
    monkeypatch.setattr(progress._Display, "show", lambda self, html, last: drawings.append(html))
    bar = progress.ProgressBar(seconds=1e9)
    for step in range(1, 6):
        bar(report(step, 5))
    assert [html.text.split(",")[0] for html in drawings] == ["step 1 of 5", "step 5 of 5"]
    assert "width:100.0%" in drawings[-1].html


def test_live_loss_draws_means_levels_and_stays_small() -> None:
    values = [5.0 - step / 2500 for step in range(10_000)]
    svg = progress.loss_svg(values, 10_000, {"unigram": 5.1, "count model": 2.9})
    assert len(svg) < 12_000
    assert "unigram 5.10" in svg and "count model 2.90" in svg and "step 10,000" in svg
    assert svg.count("stroke-dasharray") == 2
    longest = max(re.findall(r'points="([^"]*)"', svg), key=len)
    assert 100 <= len(longest.split()) / 2 <= 160


def test_live_loss_begins_anew_with_a_new_run() -> None:
    live = progress.LiveLoss()
    for _ in range(2):
        for step in range(1, 4):
            live(report(step, 3, loss=float(step)))
        assert live.values == [1.0, 2.0, 3.0]


def test_progress_works_as_callback_of_fit(tokenizer: WordPiece) -> None:
    from course_lib import fit
    from course_lib.objectives.sequences import Batch

    class One(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2, 2))

        def forward(self, input_ids: Any) -> Any:
            return self.w * input_ids

    bar, live = progress.ProgressBar(), progress.LiveLoss(part="total")
    history = fit(
        One(),
        lambda out, targets: {"total": out.square().mean()},
        lambda step: Batch({"input_ids": torch.ones(2, 2)}, {}),
        steps=4,
        precision="float32",
        callbacks=[bar, live],
    )
    assert live.values == history.losses["total"] and bar.drawn >= 1


# ---------------------------------------------------------------- quiz


QUIZ = [
    QuizItem(1, "How many become [MASK]?", (
        Choice("15%", False, "That many are *selected*."),
        Choice("`80%` & more", True, "The rest is split."),
    )),
]  # fmt: skip


def test_quiz_is_live_and_unfolds_without_a_kernel() -> None:
    live = quiz_widget.quiz_view(QUIZ)
    assert [c["correct"] for c in live.widget.items[0]["choices"]] == [False, True]
    html = live.static.html
    assert html.count("<details>") == 1 and "<summary>Answer</summary>" in html
    before, after = html.split("<details>")
    assert "That many" not in before and "That many are <em>selected</em>." in after
    assert "80%</code> &amp; more" in before
    assert "✓ right" in after and "✗ wrong" in after
    for part in ("'fieldset'", "'legend'", "type: 'radio'", "aria-live", "focus-visible"):
        assert part in live.widget._esm + live.widget._css


# ---------------------------------------------------------------- compare


def test_compare_finds_ours_equal_and_a_changed_reference_not() -> None:
    from course_lib import compare, to_transformers

    torch.manual_seed(1)
    small = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32, "vocab_size": 50}
    ours = bert_for_pretraining("tiny", max_positions=20, initializer_range=0.2, **small).train()
    same = compare(ours)
    assert same.equal and same.our_parameters == same.reference_parameters
    assert same.our_parameters == sum(p.numel() for p in ours.parameters())
    assert ours.training and all(p.grad is None for p in ours.parameters())
    assert "✓ equal" in same._repr_html_() and "equal" in repr(same)

    theirs = to_transformers(ours)
    with torch.no_grad():
        theirs.bert.encoder.layer[1].output.dense.weight[3, 5] += 0.1
    changed = compare(ours, theirs)
    assert not changed.equal
    assert changed.output_difference > 1e-4 and changed.gradient_difference > 1e-4
    assert "✗ not equal" in changed._repr_html_() and "NOT equal" in repr(changed)


def small_model(**changes: Any) -> torch.nn.Module:
    small = {"hidden_size": 12, "num_heads": 3, "intermediate_size": 24, "vocab_size": 40}
    return bert_for_pretraining("tiny", max_positions=20, **{**small, **changes})


def test_compare_looks_at_frozen_weights_wherever_it_is_called() -> None:
    """A frozen weight has no gradient of its own; the reference, built anew, is not frozen."""
    from course_lib import compare

    model = small_model()
    model.encoder.requires_grad_(False)
    learns = [p.requires_grad for p in model.parameters()]
    for place in (torch.enable_grad(), torch.no_grad(), torch.inference_mode()):
        with place:
            assert compare(model).equal
    assert [p.requires_grad for p in model.parameters()] == learns and False in learns
    assert all(p.grad is None for p in model.parameters())


def test_what_is_no_number_is_not_equal() -> None:
    """Python's max passes over nan where it is not the first."""
    from course_lib import compare, to_transformers

    model = small_model()
    theirs = to_transformers(model)
    with torch.no_grad():
        theirs.cls.seq_relationship.bias[0] = torch.nan
    comparison = compare(model, theirs)
    assert not comparison.equal and repr(comparison).count("✗ beyond") == 2
    with torch.no_grad():
        next(model.pair.parameters()).flatten()[0] = torch.inf
    with pytest.raises(ValueError, match=r"a model was given whose weight .* is not finite"):
        compare(model)


@pytest.mark.parametrize(
    ("ours", "reference", "message"),
    [
        (None, ..., "a NoneType was given; expected an Encoder"),
        ("bert", ..., "a str was given; expected an Encoder"),
        (bert_for_pretraining, ..., "a function was given; expected an Encoder"),
        (torch.nn.Module, ..., "a type was given; expected an Encoder"),
        (torch.nn.Linear(2, 2), ..., "a Linear was given; expected an Encoder"),
        (..., None, "a builtins.NoneType was given; expected a loaded transformers model"),
        (..., 5, "a builtins.int was given; expected a loaded transformers model"),
        (
            ...,
            torch.nn.Linear(2, 2),
            r"torch\..*Linear was given; expected a loaded transformers model",
        ),
        (..., small_model(), r"course_lib\..* was given; expected a loaded transformers model"),
        (..., "BERT", "reference='BERT' was given"),
    ],
)
def test_compare_says_what_it_was_given(ours: Any, reference: Any, message: str) -> None:
    from course_lib import compare

    ours = small_model() if ours is ... else ours
    with pytest.raises(ValueError, match=message):
        compare(ours) if reference is ... else compare(ours, reference)


@pytest.mark.parametrize("size", [{"sequences": 0}, {"length": -1}, {"length": 1.5}])
def test_compare_needs_a_batch(size: dict[str, Any]) -> None:
    from course_lib import compare

    with pytest.raises(ValueError, match="expected whole numbers, at least 1"):
        compare(small_model(), **size)


def test_compare_points_transformers_models_the_way() -> None:
    from course_lib import compare, to_transformers

    with pytest.raises(ValueError, match=r"This one is transformers': from_transformers\(model\)"):
        compare(to_transformers(small_model()))


def test_compare_in_double_precision_and_for_encoders() -> None:
    from course_lib import compare

    torch.manual_seed(2)
    small = {"hidden_size": 12, "num_heads": 3, "intermediate_size": 24, "vocab_size": 40}
    comparison = compare(bert("tiny", max_positions=20, **small).double(), length=9)
    assert comparison.tolerance == 1e-10 and comparison.equal
    with pytest.raises(ValueError, match="a model of transformers"):
        compare(bert("tiny", max_positions=20, **small), "torch")


def test_a_long_text_keeps_its_mask_in_sight() -> None:
    from course_lib.teaching.predictions import _around_the_mask

    words = [f"w{i}" for i in range(60)]
    for place in (0, 20, 59):
        text = " ".join([*words[:place], "[MASK]", *words[place + 1 :]])
        line = _around_the_mask(text)
        assert "[MASK]" in line and len(line) <= 94
        assert ("…" in line) and all(w in [*words, "[MASK]", "…"] for w in line.split())
    assert _around_the_mask("short [MASK]") == "short [MASK]"
