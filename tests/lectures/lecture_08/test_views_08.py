"""The views of lecture 08: the library's own numbers, in words and in the picture."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise, product
from typing import Any

import pytest
import torch
from view_parts import drawn, labels_of, picture_of, plain

from course_lib.encoder import Encoder
from course_lib.family.deberta import DebertaConfig, DebertaV2Config, deberta_encoder
from course_lib.family.deberta import deberta_masked_lm as masked_lm
from course_lib.kernels.positions import position_rows, score_scale
from course_lib.lectures.lecture_08.views import distance_buckets, score_spread, three_scores
from course_lib.teaching import run_charts, style, svg
from course_lib.text.wordpiece import WordPiece

TEXT = "the river rose over its bank after the rain"
SMALL = {
    "hidden_size": 24, "num_layers": 2, "num_heads": 3, "intermediate_size": 32,
    "max_positions": 40, "initializer_range": 0.4,
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece.from_words([*sorted(set(TEXT.split())), "##s"])


def encoder_of(kind: str, vocab_size: int) -> Encoder:
    torch.manual_seed(3)
    shape: dict[str, Any] = {**SMALL, "vocab_size": vocab_size}
    if kind == "second":
        config: DebertaConfig = DebertaV2Config(**shape, span=4, furthest=16, convolution=3)
    else:
        terms = {"first": ("c2p", "p2c"), "c2p alone": ("c2p",), "content alone": ()}[kind]
        config = DebertaConfig(**shape, span=6, terms=terms)
    encoder = deberta_encoder(config)
    for p in encoder.parameters():  # biases too, or a lost one would not be seen
        if p.dim() == 1:
            torch.nn.init.normal_(p, std=0.3)
    return encoder.eval()


@pytest.fixture(scope="module")
def encoder(tokenizer: WordPiece) -> Encoder:
    return encoder_of("first", tokenizer.vocab_size)


# ---------------------------------------------------------------- three scores


@pytest.mark.parametrize("kind", ["first", "second", "c2p alone", "content alone"])
@pytest.mark.parametrize("layer", [1, 2])
def test_parts_scaled_and_added_are_the_scores_of_the_encoder(kind: str, layer: int) -> None:
    model = encoder_of(kind, 50)
    ids = torch.randint(5, 50, (2, 9))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    with torch.no_grad():
        parts = three_scores.attention_parts(model, ids, mask, layer)
        expected = model(ids, mask, output_attention_scores=True).attention_scores
    total = sum(part for part in parts if part is not None) / score_scale(8, *parts[1:])
    seen = mask[:, None, None, :].expand(2, 3, 9, 9) == 1
    assert expected is not None
    torch.testing.assert_close(total[seen], expected[layer - 1][seen], atol=1e-5, rtol=1e-5)
    assert [part is None for part in parts[1:]] == [
        "alone" in kind and kind != "c2p alone", "alone" in kind,
    ]  # fmt: skip


def test_maps_are_the_scaled_parts_of_one_head(encoder: Encoder, tokenizer: WordPiece) -> None:
    for layer, head in product((1, 2), (1, 2, 3)):
        maps = three_scores.measure_scores(encoder, tokenizer, TEXT, layer, head)
        assert maps.tokens == ["[CLS]", *TEXT.split(), "[SEP]"]
        ids = torch.tensor([[tokenizer.id(token) for token in maps.tokens]])
        with torch.no_grad():
            out = encoder(ids, output_attention_scores=True, output_attentions=True)
        assert out.attention_scores is not None and out.attentions is not None
        scores, weights = (
            x[layer - 1][0, head - 1] for x in (out.attention_scores, out.attentions)
        )
        torch.testing.assert_close(maps.total(), scores, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(maps.total().softmax(-1), weights, atol=1e-5, rtol=1e-5)
        assert maps.largest == max(
            float(x.abs().max()) for x in (*maps.parts.values(), maps.total()) if x is not None
        )


HALVES = three_scores.ScoreMaps(
    ["[CLS]", "<a>", "b"],
    {
        "c2c": torch.tensor([[0.0, 0, 0], [1.0, -2.0, 0.25], [0, 0, 0]]),
        "c2p": torch.tensor([[0.0, 0, 0], [0.5, 0.0, 1.5], [0, 0, 0]]),
        "p2c": torch.tensor([[0.0, 0, 0], [-0.25, 0.0, -0.5], [0, 4.0, 0]]),
    },
    layer=1, head=2,
)  # fmt: skip


def test_a_sentence_names_the_three_numbers_of_the_strongest_key() -> None:
    view = three_scores.draw_score_maps(HALVES, 1)
    share = 100 * torch.tensor([1.25, -2.0, 1.25]).softmax(-1)[0].item()
    sentence = (
        "“<a>” (position 1) attends most to “[CLS]” (position 0, distance 1 − 0 = 1): "
        "content-to-content 1.00 + content-to-position 0.50 + position-to-content −0.25 = 1.25, "
        f"which the softmax makes {share:.0f}%."
    )
    assert sentence in view.text and sentence in plain(view.html) and "<a>" not in view.html
    rows = [line.split() for line in view.text.splitlines()[1:5]]
    assert rows[0] == ["key", "c2c", "c2p", "p2c", "sum", "weight"]
    assert rows[2] == ["<a>", "−2.00", "0.00", "0.00", "−2.00", "0.02"]
    left_out = three_scores.draw_score_maps(HALVES, 1, ["c2c", "c2p"])
    assert "“b” (position 2, distance 1 − 2 = −1)" in left_out.text
    assert "content-to-content 0.25 + content-to-position 1.50 = 1.75" in left_out.text
    assert "Left out of the sum: position-to-content." in left_out.text
    faded = drawn(left_out.html)
    assert faded.count('opacity="0.25"') == 1 and "(left out)" in faded
    only = three_scores.draw_score_maps(HALVES, 1, ["c2c"])
    assert "content-to-content 1.00, which the softmax" in only.text
    thirds = three_scores.ScoreMaps(
        ["a"],
        {"c2c": torch.full((1, 1), 0.333), "c2p": torch.full((1, 1), 0.333), "p2c": None},
        1,
        1,
    )
    assert "0.33 + content-to-position 0.33 ≈ 0.67" in three_scores.draw_score_maps(thirds, 0).text


def maps_in(html: str) -> list[str]:
    """The maps of a picture; the last two images are the scales."""
    return re.findall(r'<image [^>]*href="([^"]*)"', drawn(html))[:-2]


def test_five_maps_share_a_scale() -> None:
    view = three_scores.draw_score_maps(HALVES, 1)
    total = HALVES.total()
    assert HALVES.largest == 4
    parts = [part for part in HALVES.parts.values() if part is not None]
    weights = total.softmax(-1)
    expected = [svg.heat_png(part, 4.0) for part in [*parts, total]]
    assert maps_in(view.html) == [*expected, svg.heat_png(2 * weights / weights.max() - 1, 1.0)]
    for position in (2, 99):
        assert "“b” (position 2)" in three_scores.draw_score_maps(HALVES, position).text
    assert 'alt="layer 1, head 2. “&lt;a&gt;” (position 1)' in view.html


def test_a_term_the_model_lacks_is_marked_as_absent(tokenizer: WordPiece) -> None:
    model = encoder_of("c2p alone", tokenizer.vocab_size)
    live = three_scores.score_maps(model, tokenizer, TEXT)
    assert "not in this model" in drawn(picture_of(live)) and len(maps_in(picture_of(live))) == 4
    assert live.controls["p2c"].disabled and not live.controls["c2p"].disabled
    for name in ("c2c", "c2p"):
        live.controls[name].value = False
    message = "expected at least one of: content-to-content, content-to-position."
    assert message in plain(picture_of(live))


def test_score_maps_redraw_at_every_control(encoder: Encoder, tokenizer: WordPiece) -> None:
    live = three_scores.score_maps(encoder, tokenizer, TEXT)
    assert (
        live.static.text
        == three_scores.draw_score_maps(three_scores.measure_scores(encoder, tokenizer, TEXT)).text
    )
    assert len(live.static.html) < 40_000
    controls = live.controls
    ends = [("layer", 2), ("layer", 1), ("head", 3), ("head", 1), ("position", 10), ("position", 0)]
    ends += [(name, on) for name in ("c2c", "c2p", "p2c") for on in (False, True)]
    for name, value in ends:
        before = picture_of(live)
        controls[name].value = value
        assert picture_of(live) != before and "attends most to" in picture_of(live), name
    assert (controls["layer"].max, controls["head"].max, controls["position"].max) == (2, 3, 10)
    controls["position"].value = 10
    controls["text"].value = "the [MASK] rose"
    assert controls["position"].max == controls["position"].value == 4
    assert "“[SEP]” (position 4)" in plain(picture_of(live))
    for text, message in {
        " ": "The sentence is empty",
        "the unicorn": "never read “unicorn”",
        "the " * 30: "32 tokens, [CLS] and [SEP] counted; expected at most 24",
    }.items():
        controls["text"].value = text
        assert message in plain(picture_of(live)), text


def test_the_decoders_layer_has_its_remark(encoder: Encoder, tokenizer: WordPiece) -> None:
    whole = masked_lm(encoder)
    whole.train()
    first, last = (three_scores.measure_scores(whole, tokenizer, TEXT, layer) for layer in (1, 2))
    assert whole.training and encoder.training and not first.remark
    encoder.eval()
    assert "enhanced mask decoder" in three_scores.draw_score_maps(last).text
    plain_model = masked_lm(encoder, decoder=False)
    assert not three_scores.measure_scores(plain_model, tokenizer, TEXT, 2).remark


# ---------------------------------------------------------------- rows of distances

SIZES = [(8, 4, None), (40, 8, None), (600, 512, None), (40, 4, 16), (64, 8, 64), (600, 256, 512)]


@pytest.mark.parametrize(("tokens", "span", "furthest"), SIZES)
def test_stretches_of_distances_are_those_of_the_rows(
    tokens: int, span: int, furthest: int | None
) -> None:
    rows = distance_buckets.distance_rows(tokens, span, furthest)
    # In a much longer text, where what shares a row is not cut off.
    longer = position_rows(4 * 1_024, span, furthest).tolist()
    row_at = {d: longer[d + 4_095] for d in range(-4_095, 4_096)}
    assert all(rows.row(d) == row_at[d] for d in range(1 - tokens, tokens))
    times = dict.fromkeys(range(2 * span), 0)
    for r in longer:
        times[r] += 1
    first, last = rows.own
    assert first <= 0 <= last and all(times[row_at[d]] == 1 for d in range(first, last + 1))
    lower, upper = rows.shared
    if upper is not None:
        assert {row_at[d] for d in range(upper, tokens)} == {2 * span - 1} != {row_at[upper - 1]}
    if lower is not None:
        assert {row_at[d] for d in range(1 - tokens, lower + 1)} == {0} != {row_at[lower + 1]}
    covered = [*range(first, last + 1)]
    for a, b in distance_buckets._widening(rows):
        covered += range(a, b + 1)
        assert furthest is not None
    covered += range(1 - tokens, lower + 1) if lower is not None else []
    covered += range(upper, tokens) if upper is not None else []
    assert sorted(covered) == list(range(1 - tokens, tokens))  # each distance once
    a, b = rows.sharing(tokens - 1)
    assert b == tokens - 1 and {rows.row(d) for d in range(a, b + 1)} == {rows.row(b)}


def test_widening_rows_do_widen() -> None:
    rows = distance_buckets.distance_rows(600, 256, 512)
    near, far = (rows.sharing(d) for d in (140, 500))
    assert far[1] - far[0] > near[1] - near[0]
    assert rows.own == (-128, 128) and rows.shared == (-512, 506)


def test_staircase_and_strip_in_picture_and_words() -> None:
    rows = distance_buckets.distance_rows(24, 4, 16)
    view = distance_buckets.bucket_picture(rows, -5)
    picture = drawn(view.html)
    path = re.search(r'class="rows" points="([^"]*)"', picture)
    assert path
    heights = list(dict.fromkeys(map(float, path[1].split()[1::2])))
    assert len(heights) == 8 and all(a > b for a, b in pairwise(heights))  # eight rows, upwards
    zones = re.findall(r'class="zone(\d)"[^>]* width="([\d.]+)"[^>]* fill="([^"]*)"', picture)
    assert sum(float(width) for _, width, _ in zones) == pytest.approx(600, abs=0.5)
    assert sorted(kind for kind, *_ in zones) == ["0", "1", "2", "2"]
    fills = {fill for *_, fill in zones}
    assert sum("url(" in fill for fill in fills) == 2  # told apart without colour
    assert "distance −5: row 1<" in picture
    sentence = (
        "Distance −5 (the key stands 5 positions after the query) has row 1; all "
        "distances from −15 to −3 of this text have it."
    )
    assert sentence in view.text and sentence in plain(view.html)
    assert "2k = 8 rows, 0 to 7" in view.text and "from −2 to 2 have a row each" in view.text
    assert "from 3 on all share row 7; from −16 down all share row 0" in view.text
    itself = distance_buckets.bucket_picture(distance_buckets.distance_rows(8, 4), 0).text
    assert "Distance 0 (a token and itself) has row 4; no other distance" in itself
    one = distance_buckets.bucket_picture(distance_buckets.distance_rows(8, 4), 1).text
    assert "stands 1 position before the query" in one


def test_bucket_chart_follows_its_controls() -> None:
    live = distance_buckets.bucket_chart()
    controls = live.controls
    assert len(live.static.html) < 40_000
    assert "Distance 199 " in live.static.text and "k = 256" in live.static.text
    assert controls["distance"].max == 599
    controls["generation"].value = "first"
    assert controls["furthest"].disabled and "First generation" in picture_of(live)
    controls["tokens"].value = 8
    assert (controls["distance"].min, controls["distance"].max) == (-7, 7)
    for distance in (-7, 7):
        controls["distance"].value = distance
        assert f"Distance {distance} ".replace("-", "−") in picture_of(live)
    controls["generation"].value = "second"
    assert not controls["furthest"].disabled
    controls["span"].value, controls["furthest"].value = 4, 8
    assert "k = 4, furthest distance 8" in picture_of(live)
    controls["furthest"].value = 1_024
    assert "furthest distance 1,024" in picture_of(live)
    controls["span"].value, controls["furthest"].value = 64, 64
    assert "expected at least 2k = 128" in plain(picture_of(live))
    controls["furthest"].value = 128
    assert "⚠" not in picture_of(live)


# ---------------------------------------------------------------- δ, pair by pair


def tables_of(svg: str, tokens: int) -> list[list[list[int]]]:
    cells = re.findall(r'<rect [^>]*fill="rgb\([^>]*/><text [^>]*>(\d+)</text>', svg)
    numbers = list(map(int, cells))
    assert len(numbers) == 2 * tokens**2
    table_rows = [numbers[i : i + tokens] for i in range(0, len(numbers), tokens)]
    return [table_rows[:tokens], table_rows[tokens:]]


@pytest.mark.parametrize(("tokens", "span"), [(2, 1), (6, 2), (6, 6), (10, 4)])
def test_both_tables_hold_the_clamped_distances(tokens: int, span: int) -> None:
    view = distance_buckets.delta_picture(tokens, span, tokens - 1, 0)
    ours, mirrored = tables_of(drawn(view.html), tokens)
    for i, j in product(range(tokens), repeat=2):
        # Equation 3 of the paper, written out.
        row = 0 if i - j <= -span else 2 * span - 1 if i - j >= span else i - j + span
        assert ours[i][j] == mirrored[j][i] == row
        assert 0 <= row <= 2 * span - 1
    assert f"2k = {2 * span} rows, 0 to {2 * span - 1}, not 2k + 1" in view.text


def test_a_pair_is_framed_in_both_tables_and_named() -> None:
    view = distance_buckets.delta_picture(6, 2, 1, 4)
    assert drawn(view.html).count('class="pair"') == 2
    for sentence in (
        "Token 1 is the query, token 4 the key; their distance is 1 − 4 = −3.",
        "the query of token 1 meets row δ(1, 4) = 0 of the position keys",
        "row δ(4, 1) = 3 of the position queries; the released code takes row δ(1, 4) = 0 in both",
        "distances up to −2 have row 0, from 1 on they have row 3",
    ):
        assert sentence in view.text and sentence in plain(view.html)
    same = distance_buckets.delta_picture(6, 2, 3, 3).text
    assert "(equation 4), the same row of the position queries" in same


def test_numbers_stay_readable_on_every_colour() -> None:
    def light(colour: tuple[int, ...]) -> float:
        parts = [c / 255 for c in colour]
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for share in range(101):
        ground = style.cividis(share / 100)
        ink = 1.0 if style.ink_on(ground) == "#fff" else 0.0
        bright, dark = sorted((light(ground), ink), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, share


def test_delta_tables_at_both_ends_of_every_slider() -> None:
    live = distance_buckets.delta_tables()
    assert "Token 1 is the query, token 4 the key" in live.static.text
    assert len(live.static.html) < 40_000
    live.controls["i"].value = live.controls["i"].max
    assert picture_of(live).endswith(distance_buckets.delta_picture(6, 2, 5, 4).html)
    small = distance_buckets.delta_tables(2, 1)
    assert "Token 1 is the query, token 0 the key" in small.static.text


# ---------------------------------------------------------------- why sqrt(3d)


@pytest.mark.parametrize("head_size", [4, 64])
@pytest.mark.parametrize("terms", [1, 2, 3])
def test_variance_counts_the_terms_and_the_scale_takes_it_back(head_size: int, terms: int) -> None:
    statistics = score_spread.score_statistics(head_size, terms, tokens=48)
    plain_scale, scaled = statistics.scales
    assert statistics.variance(plain_scale) == pytest.approx(terms, rel=0.08)
    assert statistics.variance(scaled) == pytest.approx(1, rel=0.08)
    assert scaled == pytest.approx(score_scale(head_size, *[torch.ones(1)] * (terms - 1)))
    weights = (statistics.scores / scaled).softmax(-1)
    entropy = torch.distributions.Categorical(probs=weights).entropy().mean().item()
    assert statistics.entropy(scaled) == pytest.approx(entropy, abs=1e-9)
    assert statistics.entropy(plain_scale) <= statistics.entropy(scaled) < math.log(48)


def test_terms_are_added_to_the_same_vectors() -> None:
    first, again = (
        score_spread.score_statistics(8, 1, tokens=6, texts=2, seed=4) for _ in range(2)
    )
    three, other = (score_spread.score_statistics(8, 3, tokens=6, texts=2, seed=s) for s in (4, 5))
    torch.testing.assert_close(first.scores, again.scores)
    assert first.scores.shape == (2, 6, 6)
    added = three.scores - first.scores
    both = torch.stack([added.flatten(), first.scores.flatten()])
    assert abs(torch.corrcoef(both)[0, 1].item()) < 0.5
    assert (three.scores - other.scores).abs().max() > 0.1


def test_lines_are_the_densities_and_differ_in_more_than_colour() -> None:
    picture = drawn(score_spread.score_variance_picture(8, 16).html)
    lines = re.findall(r'class="terms(\d)" points="[^"]*" fill="none" ([^/]*)/>', picture)
    assert [n for n, _ in lines] == ["1", "2", "3"] * 2
    assert len({re.sub(r'stroke="[^"]*"', "", look) for _, look in lines[:3]}) == 3
    values = score_spread.score_statistics(8, 3, tokens=16).scores.flatten() / math.sqrt(24)
    density = score_spread.histogram(values)
    for k, height in enumerate(density):
        inside = (values >= -6 + 0.25 * k) & (values < -5.75 + 0.25 * k)
        assert height == pytest.approx(inside.double().mean().item() / 0.25, abs=1e-3)
    assert sum(density) * 0.25 == pytest.approx(1, abs=0.01) and len(density) == 48
    assert max(density) < score_spread.HIGHEST  # below the titles


def test_head_size_slider_and_its_words() -> None:
    live = score_spread.score_variance(64, 32)
    slider = live.controls["head_size"]
    sizes = [value for _, value in slider.options]
    for size in (sizes[0], sizes[-1]):
        slider.value = size
        three = score_spread.score_statistics(size, 3, tokens=32)
        root = math.sqrt(size)
        text = plain(picture_of(live))
        assert f"Head size d = {size}. Divided by √d, three terms have variance" in text
        assert f"three terms have variance {three.variance(root):.2f}" in text
        assert f"instead of {three.entropy(root):.2f}, of at most ln 32 = 3.47" in text
        assert f"{three.variance(root * math.sqrt(3)):.2f}" in text
    assert len(live.static.html) < 30_000
    assert "Head size d = 64." in live.static.text and 'alt="Head size' in live.static.html


# ---------------------------------------------------------------- the queue

QUEUE: dict[str, Any] = {
    "words": list("abcdefgh"),
    "runs": {
        name: [
            {"seed": s, "accuracy": top, "places": [top] * 8,
             "curve": [[step, 0.12 + (top - 0.12) * step / 300 - 0.01 * s]
                       for step in range(20, 301, 20)]}
            for s in range(3)
        ]
        for name, top in (("BERT", 0.9), ("distances to 64, no decoder", 0.85),
                          ("distances to 4, no decoder", 0.12), ("distances to 4, decoder", 0.88))
    },
}  # fmt: skip


def test_queue_is_a_line_a_recipe_with_its_range_and_the_chance() -> None:
    figure = run_charts.queue_chart(QUEUE)
    traces = {trace.name: trace for trace in figure.data}
    for name, runs in QUEUE["runs"].items():
        steps = [step for step, _ in runs[0]["curve"]]
        assert list(traces[name].x) == steps
        assert list(traces[name].y) == pytest.approx([y for _, y in runs[1]["curve"]], rel=1e-3)
        band = traces[f"{name}, range of the runs"].y
        assert (max(band), min(band)) == pytest.approx(
            (runs[0]["curve"][-1][1], runs[2]["curve"][0][1])
            if name == "BERT" else (max(y for r in runs for _, y in r["curve"]),
                                    min(y for r in runs for _, y in r["curve"])), rel=1e-3
        )  # fmt: skip
    assert list(traces["chance, 1 in 8"].y) == [0.125, 0.125]
    labels = [label.replace("<br>", " ") for label in labels_of(figure)]
    assert any(label.startswith("● BERT 8") for label in labels)
    assert any(label.endswith("chance, 1 in 8 12.5%") for label in labels) and len(labels) == 5
    lines = [traces[name] for name in QUEUE["runs"]]
    assert len({line.marker.symbol for line in lines}) == 4
    assert figure.layout.title.text and figure.layout.width <= 760 and figure.layout.height <= 460
    assert figure.layout.yaxis.tickformat == ".0%" and figure.layout.xaxis.type == "log"
    lower, upper = figure.layout.yaxis.range
    assert all(lower <= note.y <= upper for note in figure.layout.annotations)  # else not shown
    assert len(json.dumps(figure.to_plotly_json(), default=list)) < 30_000


def test_a_recipe_may_train_longer_and_no_label_leaves_the_figure() -> None:
    last = 0.99335  # a label of four digits would lie above the axis
    runs = {
        f"recipe {k}": [{"curve": [[step, last] for step in range(20, steps + 1, 20)]}]
        for k, steps in enumerate((300, 300, 1_500))
    }
    figure = run_charts.queue_chart({"words": list("abcdefgh"), "runs": runs})
    assert figure.layout.xaxis.range[1] == pytest.approx(math.log10(1_500), abs=1e-3)
    upper = figure.layout.yaxis.range[1]
    assert all(note.y <= upper for note in figure.layout.annotations)
    assert max(note.y for note in figure.layout.annotations) == upper


def test_the_rows_of_dots_serve_the_outcome_of_positions() -> None:
    from course_lib.lectures.lecture_08.experiments import RECIPES
    from course_lib.teaching.results import outcome

    stored = {
        "runs": {
            name: [{"masked_accuracy": 0.4 + 0.02 * k + 0.01 * seed} for seed in range(3)]
            for k, name in enumerate(RECIPES)
        }
    }
    reached = outcome(stored, "masked_accuracy")
    figure = run_charts.ablation_chart(
        {"equal steps": reached}, title="t", x_title="accuracy", percent=True
    )
    rows = [name.replace("<br>", " ") for name in figure.layout.yaxis.ticktext]
    assert rows == list(RECIPES)
    assert figure.layout.height <= 460 and len({t.marker.symbol for t in figure.data}) > 5
