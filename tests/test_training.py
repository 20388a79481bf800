"""The loop: it learns, it is repeatable to the bit, and it survives being killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_lib.family.bert import bert_for_pretraining
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.rows import SpecialIds
from course_lib.train.loop import Report, fit
from course_lib.train.metrics import evaluate
from course_lib.train.precision import choose_precision
from course_lib.train.schedule import warmup_then_linear

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)
STEPS = 24


def alphabet_rows(count=64):
    """Documents that count upwards from 5 in steps of one, in sentences of four: easy to learn."""
    draw = random.Random(0)
    starts = [draw.randrange(35) for _ in range(count)]
    documents = [[[5 + (s + 4 * n + w) % 35 for w in range(4)] for n in range(4)] for s in starts]
    return make_pairs(documents, SPECIAL, length=24)


def small_model(dropout=0.1):
    torch.manual_seed(0)
    return bert_for_pretraining(
        "tiny",
        vocab_size=40,
        hidden_size=32,
        intermediate_size=64,
        max_positions=24,
        hidden_dropout=dropout,
        attention_dropout=dropout,
    )


def train(checkpoint=None, steps=STEPS, **settings):
    """Twenty-four steps with dropout; the same function is run by the killed processes below."""
    model = small_model()
    batches = pretraining_batches(alphabet_rows(), SPECIAL, batch_size=16)
    history = fit(
        model,
        pretraining_loss,
        batches,
        steps=steps,
        checkpoint=checkpoint,
        checkpoint_every=4,
        **settings,
    )
    return model, history


def same_bits(a, b):
    return all(
        torch.equal(x, y)
        for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_same_seed_same_curve_to_the_last_bit(precision):
    (first, curve), (again, curve_again) = (train(precision=precision) for _ in range(2))
    assert curve.losses == curve_again.losses and same_bits(first, again)
    _, other = train(precision=precision, seed=1)  # another seed: other dropout
    assert other.losses != curve.losses


def test_it_learns():
    model = small_model(dropout=0.0)
    rows = alphabet_rows(256)
    before = evaluate(model, rows, SPECIAL)
    batches = pretraining_batches(rows, SPECIAL, batch_size=32)
    history = fit(model, pretraining_loss, batches, steps=400, learning_rate=3e-3)
    after = evaluate(model, rows, SPECIAL)
    assert before.masked_accuracy < 0.15 and after.masked_accuracy > 0.6
    assert after.mlm_loss < before.mlm_loss - 1
    assert history.steps == list(range(1, 401)) and not model.training
    assert after.found.shape[0] > 400 and after.told.shape == (len(rows),)


def test_callbacks_hear_the_steps_they_asked_for_and_the_last():
    heard = []

    def listen(report: Report):
        heard.append(report.step)
        assert set(report.losses) == {"total", "mlm", "nsp"} and report.steps == 10

    listen.every = 4
    train(steps=10)  # no callback at all is fine
    model = small_model()
    batches = pretraining_batches(alphabet_rows(), SPECIAL, batch_size=16)
    fit(model, pretraining_loss, batches, steps=10, callbacks=[listen])
    assert heard == [4, 8, 10]


def test_schedule_climbs_then_falls():
    shares = [warmup_then_linear(s, 100, 0.1) for s in range(100)]
    assert shares[0] == 0.1 and shares[9] == shares[10] == 1.0
    assert (
        shares[99] == pytest.approx(1 / 90)
        and shares == sorted(shares[:10]) + sorted(shares[10:])[::-1]
    )


def test_a_loss_that_is_no_number_stops_the_run():
    with pytest.raises(FloatingPointError, match="Lower the learning rate"):
        model = small_model()
        with torch.no_grad():
            model.pair.dense.bias.fill_(float("nan"))
        fit(
            model,
            pretraining_loss,
            pretraining_batches(alphabet_rows(), SPECIAL, batch_size=8),
            steps=2,
        )


def test_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="expected auto, float32 or bfloat16"):
        choose_precision("float8")


def test_stopping_and_going_on_changes_nothing(tmp_path):
    whole, curve = train()
    path = tmp_path / "run.safetensors"

    class Stop(Exception):
        pass

    def stop(report):
        if report.step == 11:
            raise Stop

    with pytest.raises(Stop):
        train(path, callbacks=[stop])
    resumed, curve_resumed = train(path)
    assert curve_resumed.losses == curve.losses and same_bits(whole, resumed)
    finished, curve_finished = train(path)  # nothing left to do
    assert curve_finished.losses == curve.losses and same_bits(whole, finished)


def test_a_checkpoint_of_another_recipe_or_cut_short_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    train(path, steps=4)
    with pytest.raises(ValueError, match=r"other settings \(steps\)"):
        train(path, steps=8)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="not a whole checkpoint"):
        train(path, steps=4)


# ---- SIGKILL -------------------------------------------------------------------------------------

DRIVER = """
import os, signal, sys
sys.path[:0] = [{tests!r}, {root!r}]
import torch
torch.set_num_threads({threads})
from test_training import train
from course_lib.train import loop
kind, number, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

if kind == "step":  # in the middle of a step: after the backward pass, before the update
    whole_step, count = torch.optim.AdamW.step, 0
    def step(self, *args, **kwargs):
        global count
        count += 1
        if count == number:
            die()
        return whole_step(self, *args, **kwargs)
    torch.optim.AdamW.step = step
if kind == "write":  # inside a checkpoint write: half of the bytes are in the temporary file
    whole_save, count = loop.save_run, 0
    def save_run(path, *args):
        global count
        count += 1
        if count == number:
            import course_lib.files as files
            def torn(file_descriptor):
                os.ftruncate(file_descriptor, os.fstat(file_descriptor).st_size // 2)
                die()
            files.os.fsync = torn
        whole_save(path, *args)
    loop.save_run = save_run
train(path)
"""


def kill_moments():
    """Eight drawn steps and two drawn checkpoint writes."""
    draw = random.Random(20)
    steps = draw.sample(range(1, STEPS + 1), 8)
    return [("step", s) for s in steps] + [("write", w) for w in draw.sample([1, 2, 3, 4, 5, 6], 2)]


def run_driver(kind, number, path):
    here = Path(__file__).resolve().parent
    code = DRIVER.format(tests=str(here), root=str(here.parent), threads=torch.get_num_threads())
    return subprocess.Popen([sys.executable, "-c", code, kind, str(number), str(path)])


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a POSIX signal")
def test_killed_at_ten_moments_and_resumed_it_ends_in_the_same_bits(tmp_path):
    whole, curve = train()
    for start in range(0, 10, 2):  # two at a time
        pair = [
            (kind, number, tmp_path / f"{kind}{number}.safetensors")
            for kind, number in kill_moments()[start : start + 2]
        ]
        running = [run_driver(*moment) for moment in pair]
        assert [process.wait(timeout=120) for process in running] == [-signal.SIGKILL] * 2
        for kind, number, path in pair:
            if kind == "write":
                assert list(tmp_path.glob(f"{path.name}.tmp*")), "the kill did not hit a write"
            resumed, curve_resumed = train(path)
            assert same_bits(whole, resumed), (kind, number)
            assert curve_resumed.losses == curve.losses, (kind, number)
            assert not list(tmp_path.glob(f"{path.name}.tmp*"))
