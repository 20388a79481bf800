"""The ladder changes one thing a rung, and its files are what today's recipes would make."""

from __future__ import annotations

from dataclasses import fields
from unittest.mock import patch

import pytest
import torch

from course_lib.checkpoints import save
from course_lib.encoder import count_parameters
from course_lib.family.modernbert import ModernBertConfig
from course_lib.kernels.masked_loss import IGNORED
from course_lib.lectures.lecture_16 import gradients, ladder, longer, step_times
from course_lib.lectures.lecture_16.views import results
from course_lib.teaching.results import outcome, read_result

torch.set_num_threads(1)


def same(one, other):
    weights = other.state_dict()
    return all(torch.equal(value, weights[name]) for name, value in one.state_dict().items())


RUNGS = ladder.RUNGS


def config_of(name):
    return ladder.model_of(RUNGS[name], 0).config


def test_a_rung_keeps_what_was_changed_before_it():
    before: dict = {}
    for name, recipe in RUNGS.items():
        assert before.items() <= dict(recipe.changes).items()
        before = dict(recipe.changes)
        assert before.items() >= ladder.CHANGES[name].items()


def test_the_top_is_modernbert_but_for_its_size_its_base_and_its_initialisation():
    top, own = config_of(ladder.LAST), ModernBertConfig()
    sizes = {"vocab_size", "hidden_size", "num_layers", "num_heads", "intermediate_size", "window",
             "max_positions", "pad_token_id", "initializer_range"}  # fmt: skip
    differ = {f.name for f in fields(own) if getattr(top, f.name) != getattr(own, f.name)}
    # hidden dropout and the like are off in both; a base for texts of thousands of tokens is not
    # needed, and matrices begin as BERT's on every rung
    assert differ - sizes == {"global_base", "depth_scaled_init"}


def test_the_rungs_of_2026_change_one_thing_each():
    top, own = config_of(ladder.LAST), {}
    for name, recipe in ladder.RUNGS_2026.items():
        own[name] = ladder.model_of(recipe, 0).config
    names = {f.name for f in fields(top)}
    differ = [n for n in names if getattr(top, n) != getattr(own["RMSNorm"], n)]
    assert (
        set(differ) <= {"classifier_pooling"}
        and own["RMSNorm"].norm == "rms_norm"
        and own["RMSNorm"].embedding_norm
    )
    steps = [*own.values()]
    for before, after, changes in zip(steps, steps[1:], ("SwiGLU", "grouped heads"), strict=False):
        different = {
            f.name for f in fields(after) if getattr(before, f.name) != getattr(after, f.name)
        }
        assert different == set(ladder.CHANGES_2026[changes])
    assert own["grouped heads"].num_key_value_heads == 1 and own["grouped heads"].num_heads == 2


def test_an_extension_keeps_the_weights_and_reads_as_many_tokens_a_step():
    rung = ladder.RUNGS_2026[longer.TOP]
    model = ladder.model_of(rung, 0)
    path = ladder.path_of("of a test", rung, 0)
    save(model, path)
    with patch.multiple(longer, rung_run=lambda *_: None, path_of=lambda *_: path):
        other = longer.with_base(0, 160_000.0)
    path.unlink()
    assert same(model, other) and other.config.global_base == 160_000.0
    assert other.config.longest_text == max(longer.LENGTHS)
    for way in longer.WAYS.values():
        assert longer.TOKENS % way.length == 0 and way.steps in (0, 100)
    for length, texts in longer.to_test().items():
        assert texts.input_ids.shape[1] == (length or ladder.LONGEST)


def test_what_the_page_says_of_the_extension():
    """Longer texts teach what as many steps of short ones do not, also beyond their own length; and
    of the rates that were tried none at the upper end is best."""
    runs = read_result("16_longer")["runs"]
    by = {name: [run["by"] for run in of] for name, of in runs.items()}
    for seed in ladder.SEEDS:
        as_it_is, short = by["as it is"][seed], by["100 steps of 64 tokens"][seed]
        for name in ("100 steps of 512, base kept", "100 steps of 512, larger base"):
            for n in ("512", "2048"):
                assert by[name][seed][n] > max(as_it_is[n], short[n]) + 0.1
    rates = {name: of[0]["rate"] for name, of in runs.items() if longer.WAYS[name].steps}
    assert max(rates.values()) < max(longer.RATES), rates


def test_a_gate_has_as_many_weights():
    with_gate, without = (
        count_parameters(ladder.model_of(RUNGS[name], 0).encoder.stack)
        for name in ("GeGLU", "RoPE")
    )
    assert with_gate == pytest.approx(without, rel=2e-3)


def test_equal_flops():
    whole = RUNGS["BERT"].flops * ladder.flops_a_step(RUNGS["BERT"])
    for recipe in (RUNGS | ladder.CONTROLS | ladder.RUNGS_2026).values():
        spent = ladder.steps_of(recipe) * ladder.flops_a_step(recipe)
        assert spent == pytest.approx(whole, rel=2e-3)


def test_twice_as_many_are_masked_at_the_top():
    counts = [
        sum(int((batches(n).targets["labels"] != IGNORED).sum()) for n in range(20))
        for batches in (ladder.batches_of(RUNGS[name], 0) for name in ("local layers", ladder.LAST))
    ]
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.05)


def test_further_back_by_nothing_is_the_accuracy_itself():
    model = ladder.model_of(RUNGS["GeGLU"], 0).eval()
    own = ladder.accuracy(model, ladder.prepare().heldout)
    assert ladder.accuracy_further_back(model, 0) == pytest.approx(own)
    assert ladder.accuracy_further_back(model, 40) == pytest.approx(own)


def test_longer_texts_hold_every_story_once():
    material = ladder.prepare()
    sep = material.world.special.sep
    stories = [int((material.longer[n].input_ids == sep).sum()) for n in ladder.LONGER]
    assert stories == [ladder.HELDOUT] * 2
    assert all(material.longer[n].input_ids.shape[1] == n for n in ladder.LONGER)


def test_gradients_of_the_last_layer_fall_with_depth_in_pre_norm_alone():
    post, pre = (
        [gradients.gradient_norms(way, layers)[-1] for layers in (3, 24)] for way in gradients.WAYS
    )
    assert post[1] > 0.7 * post[0] and pre[1] < 0.5 * pre[0]
    with pytest.raises(ValueError, match="expected 'post-norm' or 'pre-norm'"):
        gradients.gradient_norms("sandwich")


def test_curves_end_with_what_was_reached():
    for runs in read_result("16_ladder")["runs"].values():
        for run in runs:
            assert run["curve"]["accuracy"][-1] == run["accuracy"]
            assert run["curve"]["steps"][-1] == run["steps"]


def test_what_the_page_says_of_every_seed():
    """The top is above BERT; RoPE loses nothing further back, learned positions nearly all; a local
    model reads longer texts better than a global one; post-norm without warm-up stays below."""
    stored = read_result("16_ladder")["runs"]
    for seed in ladder.SEEDS:
        assert stored[ladder.LAST][seed]["accuracy"] > stored["BERT"][seed]["accuracy"]
        rotary, learned = stored["RoPE"][seed], stored["pre-norm"][seed]
        assert rotary["further_back"]["448"] == pytest.approx(rotary["accuracy"], abs=2e-3)
        assert learned["further_back"]["448"] < 0.1
        whole, local = (stored[name][seed]["longer"]["512"] for name in ("GeGLU", "local layers"))
        assert learned["longer"]["512"] < whole < local < stored["local layers"][seed]["accuracy"]
    assert min(results.half_way("RoPE")) > max(results.half_way("pre-norm")) + 0.1
    norms = outcome(read_result("16_norms"), "accuracy")
    for rate in ("0.0005", "0.002"):
        assert min(norms[f"pre-norm, {rate}"]) > max(norms[f"post-norm, {rate}"])


def test_between_two_looks_lies_a_straight_line():
    curve: dict[str, list[float]] = {"steps": [10, 20], "accuracy": [0.2, 0.4]}
    assert results.between(curve, 15) == pytest.approx(0.3)
    assert (results.between(curve, 5), results.between(curve, 99)) == (0.2, 0.4)


def test_times_are_measured_of_every_rung_and_length():
    stored = read_result("16_times")
    assert set(stored["step"]) == {*RUNGS, *ladder.CONTROLS}
    assert set(stored["length"]) == set(step_times.ENCODERS)
    for of in stored["length"].values():
        assert list(of) == [str(n) for n in step_times.LENGTHS]
        assert all(row["seconds"] > 0 and row["flops"] > 0 for row in of.values())


def test_the_best_of_some_rounds_is_kept():
    took = step_times.best({"nothing": lambda: None}, rounds=2)
    assert 0 <= took["nothing"] < 1
