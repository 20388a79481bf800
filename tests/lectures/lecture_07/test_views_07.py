"""The view and the charts of lecture 07: the library's own numbers, in words and in the picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from view_parts import check_figure, labels_of, picture_of, plain

from course_lib.family.electra import Electra, ElectraConfig, electra_from
from course_lib.lectures.lecture_07.views import corruptor, swaps
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.replaced_tokens import PAPER_MIX
from course_lib.teaching import playgrounds, run_charts, style, tokens
from course_lib.text.wordpiece import WordPiece

TEXT = "the river rose over its bank after the rain and the old bridge was closed"


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece.from_words(sorted(set(TEXT.split())))


@pytest.fixture(scope="module")
def model(tokenizer: WordPiece) -> Electra:
    torch.manual_seed(0)
    config = ElectraConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=32, num_layers=1, num_heads=2,
        intermediate_size=64, embedding_size=32, max_positions=40, initializer_range=0.3,
    )  # fmt: skip
    return electra_from(config, 1 / 2)


@contextmanager
def bias_of(model: Electra, word: int, value: float) -> Iterator[None]:
    """The generator's bias for one word, until the end of the block."""
    bias = model.generator.mlm.bias
    before = bias.detach().clone()
    with torch.no_grad():
        bias[word] = value
    yield
    with torch.no_grad():
        bias.copy_(before)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_picture_holds_what_both_networks_say(
    model: Electra, tokenizer: WordPiece, share: float, seed: int
) -> None:
    # random weights may draw [MASK] itself; these never do
    with bias_of(model, tokenizer.id("[MASK]"), -1e4):
        corruption = corruptor.corrupt_and_detect(model, tokenizer, TEXT, share, seed)
    sequences = playgrounds.one_row(tokenizer, TEXT)
    hidden = mask_sequences(sequences, tokenizer.special, rate=share, mix=PAPER_MIX, seed=seed)
    assert corruption.tokens == ["[CLS]", *TEXT.split(), "[SEP]"]
    assert corruption.selected == hidden.selected[0].tolist()
    assert sum(corruption.selected) == max(1, round(share * 17))
    for i, selected in enumerate(corruption.selected):
        assert corruption.masked[i] == ("[MASK]" if selected else corruption.tokens[i])
        assert selected or corruption.filled[i] == corruption.tokens[i]
    assert "[MASK]" not in corruption.filled
    model.eval()
    with torch.no_grad():
        ids = torch.tensor([[tokenizer.id(token) for token in corruption.filled]])
        scores = model.discriminator(ids, torch.ones_like(ids)).logits[0]
    assert corruption.p_replaced == pytest.approx(scores.sigmoid().tolist(), abs=1e-6)


def test_the_generators_own_probabilities_decide_what_is_sampled(
    model: Electra, tokenizer: WordPiece
) -> None:
    again = corruptor.corrupt_and_detect(model, tokenizer, TEXT, 0.3, 4)
    assert again == corruptor.corrupt_and_detect(model, tokenizer, TEXT, 0.3, 4)
    with bias_of(model, tokenizer.id("bridge"), 1e4):  # a generator that knows one word
        sure = corruptor.corrupt_and_detect(model, tokenizer, TEXT, 0.3, 4)
    sampled = {w for w, selected in zip(sure.filled, sure.selected, strict=True) if selected}
    assert sampled == {"bridge"} and sure.selected == again.selected
    model.train()
    corruptor.corrupt_and_detect(model, tokenizer, TEXT)
    assert model.training and model.discriminator.training


CORRUPTION = corruptor.Corruption(
    tokens=["[CLS]", "the", "<old>", "bank", "was", "closed", "[SEP]"],
    masked=["[CLS]", "the", "[MASK]", "[MASK]", "[MASK]", "closed", "[SEP]"],
    filled=["[CLS]", "the", "red", "bank", "rain", "closed", "[SEP]"],
    selected=[False, False, True, True, True, False, False],
    p_replaced=[0.01, 0.6, 0.87, 0.03, 0.12, 0.5, 0.0],
)


def test_the_sentences_say_every_replacement_and_its_judgement() -> None:
    sentences = " ".join(corruptor.corruption_in_words(CORRUPTION))
    assert (
        "3 of 7 tokens were masked" in sentences and "replaced 2 and guessed 1 right" in sentences
    )
    assert "“<old>” by “red” (discriminator: 87% replaced, right)" in sentences
    assert "“was” by “rain” (discriminator: 12% replaced, wrong)" in sentences
    assert "nothing was replaced: “bank” (discriminator: 3% replaced, right)" in sentences
    assert "Of the 4 tokens never masked, the discriminator calls replaced: “the” 60%." in sentences
    calm = replace(CORRUPTION, filled=CORRUPTION.tokens, p_replaced=[0.1] * 7)
    sentences = " ".join(corruptor.corruption_in_words(calm))
    assert "replaced 0 and guessed 3 right" in sentences and "calls replaced: none." in sentences
    assert "The generator replaced" not in sentences


def test_rows_tell_by_shape_what_happened_to_each_token() -> None:
    view = corruptor.corruptor_picture(CORRUPTION)
    table = view.html.split("</table>")[0]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr")[1:]]
    assert [len(row) for row in rows] == [7] * 4
    for row, expected in zip(
        rows, (CORRUPTION.tokens, CORRUPTION.masked, CORRUPTION.filled), strict=False
    ):
        assert [plain(cell).strip() for cell in row] == expected
    hatched = ["token-masked" in cell for cell in rows[1]]
    assert hatched == CORRUPTION.selected and "repeating-linear-gradient" in rows[1][2]
    kinds = [re.findall(r"token-(\w+)", cell) for cell in rows[2]]
    assert kinds == [[], [], ["replaced"], ["kept"], ["replaced"], [], []]
    assert 'title="replaced by the generator"' in rows[2][2] and "4px double" in rows[2][2]
    assert 'title="guessed right"' in rows[2][3]
    assert [plain(cell).split() for cell in rows[3]] == [
        ["1%"], ["60%", "✗", "false", "alarm"], ["87%", "✓", "found"], ["3%", "✓", "believed"],
        ["12%", "✗", "missed"], ["50%"], ["0%"],
    ]  # fmt: skip
    assert table.count('scope="row"') == 4 and "<old>" not in view.html
    assert all(line in view.text for line in corruptor.corruption_in_words(CORRUPTION))
    assert "«red»" in view.text and "_bank_" in view.text and "red 87%" in view.text


def luminance(colour: tuple[int, ...]) -> float:
    parts = [c / 255 for c in colour]
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_shades_darken_with_p_replaced_and_stay_readable() -> None:
    grounds = []
    for percent in range(101):
        html = corruptor._shade(percent / 100)
        ground = tuple(map(int, re.findall(r"rgb\((\d+),(\d+),(\d+)\)", html)[0]))
        ink = 1.0 if ";color:#fff" in html else 0.0
        light, dark = sorted((luminance(ground), ink), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, percent
        grounds.append(luminance(ground))
    assert all(a > b for a, b in pairwise(grounds))


def test_a_long_text_is_broken_into_lines_that_fit(model: Electra, tokenizer: WordPiece) -> None:
    long = f"{TEXT} {TEXT}"
    corruption = corruptor.corrupt_and_detect(model, tokenizer, long, 0.5)
    view = corruptor.corruptor_picture(corruption)
    lines = corruptor._lines(corruption)
    assert len(lines) > 1 and lines[0][0] == 0 and lines[-1][1] == len(corruption.tokens) == 32
    assert all(a[1] == b[0] for a, b in pairwise(lines))
    assert view.html.count("<table") == len(lines) and len(view.html) < 50_000


def test_corruptor_redraws_at_every_control(model: Electra, tokenizer: WordPiece) -> None:
    live = corruptor.corruptor_view(model, tokenizer, TEXT, seed=3)
    assert picture_of(live).endswith(live.static.html)
    share, seed = live.controls["share"], live.controls["seed"]
    assert (share.min, share.max) == (0.05, 0.5)
    for slider, ends in ((share, (0.05, 0.5)), (seed, (seed.min, seed.max))):
        for end in ends:
            before = picture_of(live)
            slider.value = end
            assert picture_of(live) != before and "tokens were masked" in picture_of(live)
    live.controls["again"].click()
    assert seed.value == 0  # after the last comes the first
    before = picture_of(live)
    live.controls["again"].click()
    assert seed.value == 1 and picture_of(live) != before
    assert live.controls["again"] in live.widget.children
    live.controls["text"].value = "the bridge was closed"
    assert "3 of 6 tokens were masked" in plain(picture_of(live))


def test_texts_that_cannot_be_read_are_answered_in_the_view(
    model: Electra, tokenizer: WordPiece
) -> None:
    live = corruptor.corruptor_view(model, tokenizer, TEXT)
    answers = {
        " ": "The sentence is empty",
        "the unicorn rose <b>": "never read “unicorn”, “<”, “b”, “>”",
        "the brigde was closed": "Near in spelling: “bridge”",
        f"{TEXT} {TEXT} {TEXT}": "47 tokens, [CLS] and [SEP] counted; expected at most 40",
        "the [MASK] rose": "holds [MASK], a special token",
    }
    for text, message in answers.items():
        live.controls["text"].value = text
        assert message in plain(picture_of(live)), text
        static = corruptor.corruptor_view(model, tokenizer, text).static
        assert message in static.text and message in plain(static.html)
    assert "<b>" not in corruptor.corruptor_view(model, tokenizer, "<b>").static.html
    live.controls["text"].value = TEXT.upper()
    assert "tokens were masked" in picture_of(live)


def test_boxes_keep_their_meaning_where_no_other_is_named() -> None:
    assert 'title="replaced by a random token"' in tokens.box("word", tokens.REPLACED)
    assert 'title="guessed right"' in tokens.box("word", tokens.KEPT, "guessed right")


# ---------------------------------------------------------------- swaps


def a_swap(text: str, was: str = "ann meets bo . ann waits .") -> dict[str, Any]:
    return {
        "story": 0, "text": text, "was": was,
        "BERT": {"0": 0.2, "4": 0.4}, "ELECTRA": {"0": 0.6, "4": 0.93},
    }  # fmt: skip


def test_a_swap_is_outlined_and_both_probes_stand_under_it() -> None:
    view = swaps.swap_picture(a_swap("ann meets bo . kim waits ."))
    assert view.html.count("token-replaced") == 1 and "«kim»(B 40% E 93%)" in view.text
    assert "story 1, word 5: ann → kim" in view.text
    assert "BERT's probe: 40% for the swapped word, 0 of 1 other words above 50%" in view.text
    assert "ELECTRA's probe: 93% for the swapped word, 1 of 1 other words above 50%" in view.text
    calm = swaps.swap_picture(a_swap("ann meets bo . ann waits ."))
    assert "token-replaced" not in calm.html and "story 1, as it was" in calm.text
    assert "0 of 2 other words above 50%; ELECTRA's probe: 2 of 2 other" in calm.text


def test_swaps_are_chosen_and_the_first_is_one() -> None:
    examples = [a_swap("ann meets bo . ann waits ."), a_swap("ann meets bo . kim waits .")]
    live = swaps.swaps_view(examples)
    assert picture_of(live).endswith(live.static.html) and "ann → kim" in live.static.text
    live.controls["which"].value = 0
    assert "as it was" in plain(picture_of(live))


# ---------------------------------------------------------------- charts


ABLATION_STEPS = {
    "equal steps": {"BERT": [0.50, 0.52], "All-tokens MLM": [0.61, 0.6], "ELECTRA": [0.7, 0.66]},
    "equal FLOPs": {"BERT": [0.49], "All-tokens MLM": [0.55], "ELECTRA": [0.6]},
}


def test_ablation_steps_stand_in_rows_with_a_panel_a_group() -> None:
    figure = run_charts.ablation_chart(
        ABLATION_STEPS, title="Ablation steps", x_title="accuracy", percent=True
    )
    check_figure(figure)
    traces = {trace.name: trace for trace in figure.data}
    symbols = set()
    for axis, (group, measured) in zip(("x", "x2"), ABLATION_STEPS.items(), strict=True):
        for place, (name, values) in enumerate(measured.items()):
            dots, bar = traces[f"{name}, {group}"], traces.get(f"{name}, {group}, mean")
            assert dots.xaxis == axis and list(dots.x) == values
            assert all(abs(y - place) < 0.5 for y in dots.y) and len(set(dots.y)) == len(values)
            mean = sum(values) / len(values)
            assert (bar is None) == (len(values) == 1)
            if bar is not None:
                assert bar.xaxis == axis and list(bar.x) == pytest.approx([mean, mean], rel=1e-3)
            assert any(text.startswith(f"<b>{mean:.1%}</b>") for text in labels_of(figure))
            symbols.add(dots.marker.symbol)
    assert len(symbols) == 3
    assert figure.layout.xaxis.range == figure.layout.xaxis2.range
    assert list(figure.layout.yaxis.ticktext) == ["BERT", "All-tokens MLM", "ELECTRA"]
    top, bottom = figure.layout.yaxis.range[1], figure.layout.yaxis.range[0]
    assert top < 0 < 2 < bottom  # the first row is the highest
    assert {"<b>equal steps</b>", "<b>equal FLOPs</b>"} <= set(labels_of(figure))
    assert "<b>51.0%</b> (sd 1.4%)" in labels_of(figure)
    assert "<b>49.0%</b> (one run)" in labels_of(figure)
    assert traces["ELECTRA, equal steps"].marker.color == style.COLOURS["electra"]
