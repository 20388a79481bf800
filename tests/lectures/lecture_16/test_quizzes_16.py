"""The numbers in the quiz and the questions for review of lecture 16, computed again."""

from __future__ import annotations

import math

import pytest
import torch
from quiz_parts import Quiz
from transformers import ModernBertConfig as TheirConfig

from course_lib.config import BertConfig, published
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.family.modernbert import (
    ModernBertConfig,
    modernbert,
    modernbert_for_masked_lm,
)
from course_lib.kernels.sliding_window import window_mask
from course_lib.lectures.lecture_16.exercises import flops

QUIZ = Quiz("16")
item, answer = QUIZ.item, QUIZ.answer
BASE = published("modernbert", "base", ModernBertConfig)
PLAIN = published("bert", "base", BertConfig)
H, F, L = BASE.hidden_size, BASE.intermediate_size, BASE.num_layers
GLOBAL = sum(BASE.is_global(layer) for layer in range(L))


@pytest.fixture(scope="module")
def models():
    with torch.device("meta"):
        return modernbert("base"), bert("base"), modernbert_for_masked_lm("base")


def millions(n):
    return f"{n / 1e6:.1f}"


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()
    assert len(QUIZ.items) == 15 and len(QUIZ.review) == 10


def test_where_the_parameters_are(models):
    modern, plain, _ = models
    found, right = item("Where are the others")
    whole, theirs = count_parameters(modern), count_parameters(plain)
    assert f"{millions(whole)} million" in found.question and millions(theirs) in found.question
    blocks, others = (count_parameters(model.stack.blocks) for model in (modern, plain))
    assert f"{millions(blocks - others)} million more" in right.why
    each = millions(count_parameters(modern.stack.blocks[1]))
    old = millions(count_parameters(plain.stack.blocks[1]))
    assert f"{L} blocks of {each} million parameters for {PLAIN.num_layers} of {old}" in right.why
    rest = count_parameters(modern.embeddings) - count_parameters(plain.embeddings)
    assert f"{millions(rest)} million in the embeddings" in right.why
    assert f"{BASE.vocab_size:,} tokens for {PLAIN.vocab_size:,}" in found.choices[0].why
    assert f"{F:,} for {PLAIN.intermediate_size:,}" in found.choices[2].why
    assert rest < (whole - theirs) / 2


def test_parameters_in_the_review(models):
    modern, _, with_head = models
    block, said = modern.stack.blocks[1], answer("How many parameters has ModernBERT-base")
    assert f"{count_parameters(modern):,} in the encoder" in said
    assert f"{millions(modern.embeddings.token.weight.numel())} million in the token" in said
    assert f"{millions(count_parameters(block))} million in each of {L} blocks" in said
    parts = (count_parameters(part) for part in (block.attention, block.feed_forward))
    assert "({} attention, {} feed-forward)".format(*map(millions, parts)) in said
    assert f"adds {count_parameters(with_head) - count_parameters(modern):,}" in said
    large = published("modernbert", "large", ModernBertConfig)
    with torch.device("meta"):
        assert f"{count_parameters(modernbert('large')):,}, with {large.num_layers} blocks" in said


def test_norms_and_biases(models):
    modern, _, with_head = models
    norms = [m for m in modern.modules() if isinstance(m, torch.nn.LayerNorm)]
    assert f"{len(norms)} in the base model's encoder" in answer("Which norms")
    heads = [m for m in with_head.modules() if isinstance(m, torch.nn.LayerNorm)]
    assert len(heads) == len(norms) + 1
    biases = [p.numel() for name, p in with_head.named_parameters() if "bias" in name]
    assert biases == [BASE.vocab_size] and f"{biases[0]:,}" in item("no biases")[1].why
    assert isinstance(modern.stack.blocks[0].attention_norm, torch.nn.Identity)


def slow_pairs(base, tokens=BASE.max_positions):
    """Pairs of a head's features that make less than one turn within so many tokens."""
    size = BASE.head_size
    return sum(tokens / base ** (2 * i / size) < 2 * math.pi for i in range(size // 2))


def test_pairs_that_turn_slowly():
    new, old = slow_pairs(BASE.global_base), slow_pairs(BASE.local_base)
    assert f"{BASE.head_size // 2} pairs, {new} then make less than one turn" in (
        item("What does the larger base change")[1].why
    )
    assert f"it would be {old}" in item("What does the larger base change")[1].why
    assert f"({new} of {BASE.head_size // 2}, for {old})" in answer("two bases")


def test_settings_are_those_of_transformers():
    theirs = TheirConfig()
    assert theirs.rope_parameters["full_attention"]["rope_theta"] == BASE.global_base == 160_000
    assert theirs.rope_parameters["sliding_attention"]["rope_theta"] == BASE.local_base == 10_000
    assert theirs.local_attention == BASE.window == 128
    assert theirs.layer_types.count("full_attention") == GLOBAL == 8
    assert theirs.max_position_embeddings == BASE.max_positions == 16 * PLAIN.max_positions


def test_the_window_in_the_middle():
    seen = int(window_mask(torch.zeros(1, 1_000), BASE.window)[0, 500].sum())
    assert item("`local_attention` is 128")[1].text == str(seen)


def test_what_a_gate_costs(models):
    plain, width = PLAIN.intermediate_size, 2 * PLAIN.intermediate_size // 3
    said = answer("gated feed-forward part")
    assert f"{width:,} for BERT-base's {plain:,}" in said and 3 * width == 2 * plain
    assert f"takes only {F:,}" in said and f"2F, {2 * F:,}" in said
    assert models[0].stack.blocks[0].feed_forward.expand.out_features == 2 * F


def test_short_texts_save_next_to_nothing():
    tokens = 128
    pairs = flops.pairs_seen(tokens, BASE.window)
    assert 1 - pairs / tokens**2 == pytest.approx(1 / 4, abs=0.01)
    attention, dense = 4 * tokens**2 * H, 2 * tokens * (4 * H * H + 3 * H * F)
    assert f"{100 * attention / (attention + dense):.0f} percent" in item("128 tokens. How")[1].why
    saved = (L - GLOBAL) * 4 * H * (tokens**2 - pairs)
    assert saved / (L * (attention + dense)) < 0.01
    assert f"in {L - GLOBAL} of {L} layers" in item("128 tokens. How")[1].why


def test_long_texts():
    _, right = item("However long the text")
    assert right.text == f"{GLOBAL}/{L}" and f"{100 * GLOBAL / L:.0f} percent" in right.why
    found, length = flops.cost(8_192, *flops.BASE)
    percent = 100 * found / (4 * 8_192**2 * H * L)
    assert f"At 8,192 tokens it is {percent:.0f}" in right.why
    said = answer("from which length on")
    assert f"from {length} tokens on, and {percent:.0f} percent at 8,192" in said
    same = max(t for t in range(1, 200) if flops.pairs_seen(t, BASE.window) == t * t)
    assert f"up to {same} tokens see no difference" in said
    local = L - GLOBAL
    reach = f"{local} · {BASE.window // 2} = {local * BASE.window // 2} positions"
    assert reach in item("reach position 5,000")[0].choices[1].why
