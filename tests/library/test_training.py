"""The loop: it learns, it is repeatable to the bit, and it goes on where it stopped. (That a run
survives being killed at any moment, test_pretrain.py asks of the command.)"""

from __future__ import annotations

import copy
import json
import random
import re

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from course_lib.family.bert import bert_for_pretraining
from course_lib.kernels.choosing import choose_device, there
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import (
    counted_together,
    pretraining_batch,
    pretraining_batches,
    pretraining_loss,
    split_batch,
)
from course_lib.objectives.sequences import Batch, PackedSequences, SpecialIds
from course_lib.train import distributed, state
from course_lib.train.distributed import Distributed
from course_lib.train.flops import step_flops
from course_lib.train.layer_rates import gradual_unfreezing, layerwise_rates
from course_lib.train.loop import Report, distributed_step, fit, train_step
from course_lib.train.metrics import evaluate
from course_lib.train.optimizers import make_optimizer
from course_lib.train.precision import choose_precision, loss_scaler
from course_lib.train.schedule import adam_trace, warmup_then_linear

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)
STEPS = 24


def alphabet_sequences(count=64):
    """Documents that count upwards from 5 in steps of one, in sentences of four: easy to learn."""
    draw = random.Random(0)
    starts = [draw.randrange(35) for _ in range(count)]
    documents = [[[5 + (s + 4 * n + w) % 35 for w in range(4)] for n in range(4)] for s in starts]
    return make_pairs(documents, SPECIAL, length=24)


def small_model(dropout=0.1, **settings):
    torch.manual_seed(0)
    return bert_for_pretraining(
        "tiny", vocab_size=40, hidden_size=32, intermediate_size=64, max_positions=32,
        hidden_dropout=dropout, attention_dropout=dropout, **settings,
    )  # fmt: skip


def train(checkpoint=None, steps=STEPS, **settings):
    """Twenty-four steps with dropout."""
    model = small_model()
    batches = pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=16)
    more = {"steps": steps, "checkpoint": checkpoint, "checkpoint_every": 4, **settings}
    return model, fit(model, pretraining_loss, batches, **more)


def same_bits(a, b):
    """What the course promises of a run that is repeated, or killed and resumed, on the same
    machine, with the same versions, precision and thread count."""
    return all(
        torch.equal(x, y)
        for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    )


def tensors_in(path):
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def test_flops_of_several_batches_are_their_mean():
    model = small_model()
    batches = pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=3)
    each = [step_flops(model, pretraining_loss, batches(n)) for n in range(3)]
    assert len({*each}) > 1
    assert step_flops(model, pretraining_loss, *map(batches, range(3))) == round(sum(each) / 3)
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize(
    ("capability", "chosen"),
    [((6, 0), "float32"), ((7, 5), "float16"), ((8, 0), "bfloat16"), ((9, 0), "bfloat16")],
)
def test_a_gpu_computes_in_what_it_multiplies_natively(monkeypatch, capability, chosen):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)  # by emulation too
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert choose_precision("auto", "cuda") == chosen


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_same_seed_same_curve_to_the_last_bit(precision):
    (first, curve), (again, curve_again) = (train(precision=precision) for _ in range(2))
    assert curve.losses == curve_again.losses and same_bits(first, again)
    _, other = train(precision=precision, seed=1)  # another seed: other dropout
    assert other.losses != curve.losses


def test_a_step_that_overflows_in_float16_is_left_out():
    """The gradient is no number, the weights stay, and the scale is halved."""
    model, scaler = small_model(dropout=0.0), loss_scaler("float16")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batches = pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    def overflowing(outputs, targets):
        losses = pretraining_loss(outputs, targets)
        return losses | {"total": losses["total"] * 1e30}

    scales = [scaler.get_scale()]
    for objective in (overflowing, pretraining_loss):
        distributed_step(model, objective, optimizer, batches(0), 1.0, "float16", scaler=scaler)
        same = all(torch.equal(before[name], value) for name, value in model.state_dict().items())
        assert same == (objective is overflowing)
        scales.append(scaler.get_scale())
    assert scales[1] == scales[2] == scales[0] / 2


@pytest.mark.parametrize("clip", [None, 0.01])
def test_the_plain_step_is_that_of_one_process(clip):
    batch = pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=8)(0)
    models = [small_model(dropout=0.0) for _ in range(2)]
    losses = [
        step(model, pretraining_loss, torch.optim.SGD(model.parameters(), lr=0.5), batch, *more)
        for step, model, more in zip(
            (train_step, distributed_step), models, ((clip,), (clip, "float32")), strict=True
        )
    ]
    assert losses[0] == losses[1] and same_bits(*models)
    assert not same_bits(models[0], small_model(dropout=0.0))


def test_it_learns():
    model = small_model(dropout=0.0)
    sequences = alphabet_sequences(256)
    before = evaluate(model, sequences, SPECIAL)
    batches = pretraining_batches(sequences, SPECIAL, batch_size=32)
    history = fit(model, pretraining_loss, batches, steps=400, learning_rate=3e-3)
    after = evaluate(model, sequences, SPECIAL)
    assert before.masked_accuracy < 0.15 and after.masked_accuracy > 0.6
    assert after.mlm_loss < before.mlm_loss - 1
    assert history.steps == list(range(1, 401)) and not model.training
    assert after.masked_right.shape[0] > 400 and after.pair_right.shape == (len(sequences),)


def test_nothing_to_measure_is_refused():
    ends = torch.tensor([[SPECIAL.cls, SPECIAL.sep]] * 2)
    empty = PackedSequences(ends, torch.ones_like(ends), torch.zeros_like(ends))
    with pytest.raises(ValueError, match="2 sequences without a word were given"):
        evaluate(small_model(), empty, SPECIAL)


def test_callbacks_hear_the_steps_they_asked_for_and_the_last():
    heard = []

    def listen(report: Report):
        heard.append(report.step)
        assert set(report.losses) == {"total", "mlm", "nsp"} and report.steps == 10

    listen.every = 4
    train(steps=10, callbacks=[listen])
    assert heard == [4, 8, 10]
    listen.every = 0  # none of them
    train(steps=10, callbacks=[listen])
    assert heard == [4, 8, 10, 10]


def test_numbers_of_numpy_are_numbers(tmp_path):
    path = tmp_path / "run.safetensors"
    given = {"steps": np.int64(2), "learning_rate": np.float32(0.5), "clip": np.float64(0)}
    train(path, **given)
    train(path, **{name: value.item() for name, value in given.items()})  # nothing left to do


def test_schedule_climbs_then_falls():
    shares = [warmup_then_linear(s, 100, 0.1) for s in range(100)]
    assert shares[0] == 0.1 and shares[9] == shares[10] == 1.0
    assert shares[99] == pytest.approx(1 / 90)
    assert shares == sorted(shares[:10]) + sorted(shares[10:])[::-1]


@pytest.mark.parametrize(
    ("climb", "steps"), [(24_000, 500_000), (30_000, 500_000), (3_125, 125_000), (7, 30), (1, 3)]
)
def test_a_climb_of_so_many_steps_is_a_share(climb, steps):
    """RoBERTa-base, RoBERTa-large, ALBERT, and two small ones: the top is reached on that step."""
    shares = [warmup_then_linear(s, steps, climb / steps) for s in range(climb + 2)]
    assert shares[climb - 1] == 1 and all(s < 1 for s in shares[: climb - 1])
    assert shares[0] == pytest.approx(1 / climb) and shares[climb + 1] < 1


NAN, INF = float("nan"), float("inf")


def steep(loss):
    """The same loss with a gradient that is no finite number."""
    return loss + (loss - loss.detach()).abs().sqrt()


FAULTS = {
    "loss": (lambda loss: loss * NAN, "loss is nan"),
    "infinite loss": (lambda loss: loss * INF, "loss is inf"),
    "one part of the loss": (lambda loss: loss - INF, "loss is -inf"),
    "gradient": (steep, "gradient's length is nan"),
    "weights": (None, "largest entry of model.pair.dense.bias is inf"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_finite_number_stops_the_run_and_saves_nothing(tmp_path, fault):
    """The run saved before stays, to the bit, and so do the weights where loss or gradient tell."""
    path, model, saved = tmp_path / "run.safetensors", small_model(), {}
    spoil, says = FAULTS[fault]
    calls = iter(range(1_000))

    def objective(outputs, targets):
        losses = pretraining_loss(outputs, targets)
        if spoil and next(calls) == 5:  # the second part of the third step
            losses["total"] = spoil(losses["total"])
        return losses

    def after(report):
        if report.step == 2:
            saved.update({name: x.clone() for name, x in model.state_dict().items()})
        if report.step == 3 and not spoil:
            model.pair.dense.bias.data[1] = INF

    batches = pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=8)
    with pytest.raises(FloatingPointError, match=f"{says}; expected .*Lower the learning rate"):
        fit(
            model, objective, batches, steps=8, accumulate=2, precision="float32",
            callbacks=[after], checkpoint=path, checkpoint_every=1,
        )  # fmt: skip
    kept, header = tensors_in(path)
    assert header["step"] == "2"
    assert all(torch.equal(kept[f"model.{name}"], x) for name, x in saved.items())
    assert not spoil or all(torch.equal(x, model.state_dict()[name]) for name, x in saved.items())


@pytest.mark.parametrize("clip", [0, 0.0, None])
def test_no_clipping_is_none(clip):
    """0 and None are what a bound is that no gradient reaches, and no bound that all reach."""
    (plain, _), (far, _), (near, _) = (train(steps=3, clip=c) for c in (clip, 1e30, 1e-3))
    assert same_bits(plain, far) and not same_bits(plain, near)


def test_a_run_that_did_not_clip_goes_on_however_that_is_written(tmp_path):
    path = tmp_path / "run.safetensors"
    train(path, steps=2, clip=None)
    train(path, steps=2, clip=0)
    with pytest.raises(ValueError, match=r"differs in clip: "):
        train(path, steps=2)


GPUS = {"cuda": ("cuda",), "mps": ("mps",), "both": ("cuda", "mps"), "none": ()}


def with_gpus(monkeypatch, kinds):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in kinds)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in kinds)


@pytest.mark.parametrize(
    ("kinds", "weights", "chosen"),
    [
        ("cuda", 110_000_000, "cuda"), ("cuda", 5_000_000, "cpu"), ("cuda", None, "cuda"),
        ("mps", 110_000_000, "mps"), ("mps", 5_000_000, "cpu"), ("both", None, "cuda"),
        ("none", 110_000_000, "cpu"),
    ],
)  # fmt: skip
def test_a_large_model_is_trained_on_a_gpu_if_there_is_one(monkeypatch, kinds, weights, chosen):
    with_gpus(monkeypatch, GPUS[kinds])
    assert choose_device("auto", weights) == chosen
    assert choose_device("cpu", weights) == "cpu"


def test_the_environment_overrules_the_size_but_not_what_is_asked_for(monkeypatch):
    with_gpus(monkeypatch, ("cuda",))
    monkeypatch.setenv("COURSE_LIB_DEVICE", "cuda")
    assert choose_device("auto", 5_000) == "cuda" and choose_device("cpu", 5_000) == "cpu"
    monkeypatch.setenv("COURSE_LIB_DEVICE", "gpu")
    with pytest.raises(ValueError, match="device 'gpu' was given; expected one of auto, cuda"):
        choose_device("auto")


def test_on_mps_numbers_are_long():
    assert choose_precision("auto", "mps") == "float32"


class Traveller(torch.nn.Linear):
    """Notes where it is sent, and stays."""

    def to(self, device):
        self.trips = [*getattr(self, "trips", []), str(device)]
        return self

    def forward(self, pixel_values):
        return super().forward(pixel_values)


def looking(kept, reads_model=True, every=2):
    def look(report):
        kept.append(report.model.trips[-1])

    look.reads_model, look.every = reads_model, every
    return look


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_on_a_gpu_is_at_home_when_others_look_and_afterwards(monkeypatch, fails):
    with_gpus(monkeypatch, ("cuda",))
    # A torch built with CUDA would ask the driver whether a graph is recorded.
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    monkeypatch.setattr(distributed, "_moved", lambda batch, device: batch)
    model, seen, bar = Traveller(2, 1), [], []

    def loss(out, targets):
        return {"total": out.mean() * (float("nan") if fails else 1.0)}

    def run():
        batches = lambda step: Batch({"pixel_values": torch.ones(3, 2)}, {})  # noqa: E731
        return fit(
            model, loss, batches, steps=5, device="cuda", precision="float32",
            callbacks=[looking(seen), looking(bar, reads_model=False, every=1)],
        )  # fmt: skip

    if fails:
        with pytest.raises(FloatingPointError):
            run()
        assert model.trips == ["cuda", "cpu"]
        return
    assert run().device == "cuda"
    assert model.trips == ["cuda", *["cpu", "cuda"] * 3, "cpu"]  # steps 2, 4 and 5; the end
    assert seen == ["cpu"] * 3 and bar.count("cuda") == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_a_gpu_learns_what_a_cpu_learns(precision):
    kept = {}
    for device in ("cpu", "cuda"):
        model = small_model(dropout=0.0)
        batches = pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=16)
        kept[device] = fit(
            model, pretraining_loss, batches, steps=STEPS, device=device, precision=precision
        )
        assert kept[device].device == device and next(model.parameters()).device.type == "cpu"
    near = {"abs": 1e-3 if precision == "float32" else 0.1}
    cpu, gpu = (history.losses["total"] for history in kept.values())
    assert gpu == pytest.approx(cpu, **near)


TWO_SHARES = "expected two numbers from 0 to below 1"


def batches_of(batch_size=8, **settings):
    return pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=batch_size, **settings)


def test_no_copies_of_the_mask_are_dynamic_masking():
    for other, same in ((0, True), (None, True), (1, False)):
        late = [batches_of(mask_copies=copies)(60).inputs["input_ids"] for copies in (other, 0)]
        assert torch.equal(*late) == same


class SharedOut(Distributed):
    """A process that keeps a part of every weight."""

    sharded = True


REFUSED = [
    *[(lambda w=w: warmup_then_linear(0, 500_000, w), "fraction of the steps.* pass n / 500000")
      for w in (-0.1, 1.5, 24_000, NAN)],
    (lambda: choose_device("tpu"), "device 'tpu' was given; expected one of auto, cuda, mps, cpu"),
    *[(lambda d=d: train(device=d), f"device '{d}' was given; torch sees no GPU of that kind")
      for d in ("cuda", "mps") if not there(d)],
    (lambda: choose_precision("float8"), "expected one of auto, float32, bfloat16, float16"),
    *[(lambda n=n, x=x: train(**{n: x}), f"{n}={re.escape(repr(x))} was given; expected a whole")
      for n, bad in (("steps", (-1, 1.5, NAN)), ("accumulate", (0, -1, 1.5)), ("seed", (-1, 2**32)),
                     ("checkpoint_every", (-1,)))
      for x in (*bad, True, "3", None)],
    *[(lambda n=n, x=x: train(**{n: x}), f"{n}={re.escape(repr(x))} was given; expected a fin")
      for n in ("learning_rate", "weight_decay", "clip") for x in (-1, -1e-9, NAN, INF, True, "1")],
    *[(lambda x=x: train(learning_rate=x), f"learning_rate={x} was given; expected more than 0,")
      for x in (0, 0.0, 1.0, 30)],
    *[(lambda x=x: train(callbacks=x), "callbacks=.* expected a list of functions")
      for x in (print, [None], [[print]])],
    *[(lambda d=d: train(decay=d), "decay=.* above 0 and up to 1") for d in (0, 1.5, NAN, True)],
    (lambda: train(decay=0.5, released_schedule=True), "expected 1, as BERT's program falls"),
    *[(lambda w=w: train(warmup=w), "pass n / 24") for w in (-0.1, 1.5, NAN, INF, True, "0.1")],
    *[(lambda p=p: train(precision=p), "expected one of auto") for p in ("int8", None, 16, ["x"])],
    *[(lambda n=n: batches_of(batch_size=n), f"batch_size={n!r} was given for .* sequences")
      for n in (0, -1, 10_000, 2.0, True, "8")],
    *[(lambda n=n: batches_of(mask_copies=n), f"mask_copies={n!r} was given; expected a whole")
      for n in (-1, 1.5, True, "1")],
    *[(lambda r=r: batches_of(rate=r), "rate=.*expected a fraction") for r in (True, "0.1", NAN)],
    *[(lambda x=x: train(steps=1, scale=lambda name, step: x), "scale\\('encoder.* a finite number")
      for x in (-1.0, NAN, INF, None)],
    *[(lambda x=x: layerwise_rates(2, x), "expected at least 1") for x in (NAN, INF, True, "2")],
    *[(lambda x=x: gradual_unfreezing(2, x), "at least one step") for x in (1.5, True, "2")],
    *[(lambda s=s: make_optimizer(small_model(), *s), "expected a finite number")
      for s in ((-1.0, 0.0), (1.0, -0.1))],
    *[(lambda betas=betas: train(betas=betas), TWO_SHARES)
      for betas in ((0.9, 1.0), (-0.1, 0.9), (0.9,), (0.9, NAN), 0.9, (True, 0.9), ("0", "0"))],
    (lambda: adam_trace([1.0], (0.9, 1.0)), TWO_SHARES),
    (lambda: train(precision="float16", distributed=SharedOut()), "float16 was chosen for weights"),
    (lambda: train(optimizer="muon", precision="float32", distributed=SharedOut()),
     "whole matrices. Train without --fsdp"),
    (lambda: train(optimizer="Muon"), "optimizer='Muon' was given; expected"),
    (lambda: make_optimizer(torch.nn.Linear(2, 2), 1e-3, 0.0, name="muon"), "without matrices in"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "message"), REFUSED)
def test_settings_that_make_no_sense_are_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"accumulate": 3, "betas": (0.9, 0.98)}, {"precision": "float16"},
        {"optimizer": "muon"}, {"optimizer": "muon", "scale": lambda name, step: 0.5},
    ],
)  # fmt: skip
def test_stopping_and_going_on_changes_nothing(tmp_path, settings):
    whole, curve = train(**settings)
    path = tmp_path / "run.safetensors"

    class Stop(Exception):
        pass

    def stop(report):
        if report.step == 11:
            raise Stop

    with pytest.raises(Stop):
        train(path, callbacks=[stop], **settings)
    resumed, curve_resumed = train(path, **settings)
    assert curve_resumed.losses == curve.losses and same_bits(whole, resumed)
    finished, curve_finished = train(path, **settings)  # nothing left to do
    assert curve_finished.losses == curve.losses and same_bits(whole, finished)


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    train(path, steps=4)
    for name, value in (("steps", 8), ("accumulate", 2), ("betas", (0.9, 0.98))):
        with pytest.raises(ValueError, match=rf"differs in {name}: .* then, .* now\nexpected"):
            train(path, **{"steps": 4, name: value})


def frozen(part, **settings):
    """A model of which a part, if any, keeps its weights."""
    model = small_model(**settings)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not part or part not in name)
    return model


def four_steps(model, path, **settings):
    batches = pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=16)
    return fit(model, pretraining_loss, batches, steps=4, checkpoint=path, **settings)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(
    ("then", "now", "settings", "message"),
    [
        ("blocks.0", "blocks.1", {}, r"trained\.\S*blocks\.0\S*: not set then, true now"),
        ("", "blocks.0", {}, r"trained\.\S*blocks\.0\S*: true then, not set now"),
        ("embeddings", "", {}, r"trained\.\S*token.weight: not set then, true now"),
        ("", "", {"type_vocab_size": 3}, r"shape\.\S*segment\S*: \[2, 32\] then, \[3, 32\] now"),
        ("", "", {"num_layers": 1}, r"shape\.\S*blocks\.1\S*: \[.*\] then, not set now"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused_and_nothing_put_back(
    tmp_path, then, now, settings, message, optimizer
):
    path, model = tmp_path / "run.safetensors", frozen(now, **settings)
    before = copy.deepcopy(model)
    four_steps(frozen(then), path, optimizer=optimizer)
    with pytest.raises(ValueError, match=rf"differs in {message}[\s\S]*recipe and model"):
        four_steps(model, path, optimizer=optimizer)
    assert same_bits(model, before)


def test_a_checkpoint_that_does_not_name_what_it_trained_is_believed(tmp_path):
    path = tmp_path / "run.safetensors"
    curve = four_steps(frozen("blocks.0"), path)
    tensors, header = tensors_in(path)
    recipe = json.loads(header.pop("recipe"))
    assert len(recipe.pop("trained")) < len(dict(small_model().named_parameters()))
    header["recipe"] = json.dumps(recipe)
    save_file(tensors, path, {**header, "sha256": state._digest(tensors, header)})
    assert four_steps(frozen("blocks.0"), path).losses == curve.losses


class Best:
    """A callback that remembers its lowest loss."""

    def __init__(self, name):
        self.name, self.memories = name, []

    def __call__(self, report):
        pass

    def memory(self):
        return {"name": self.name}

    def remember(self, done, memory, losses):
        self.memories.append(memory)


def test_callbacks_of_one_class_have_a_memory_each(tmp_path):
    path, pair = tmp_path / "run.safetensors", [Best("a"), Best("b"), Best("c")]
    four_steps(small_model(), path, callbacks=pair)
    assert [*json.loads(tensors_in(path)[1]["memories"])] == ["Best", "Best 2", "Best 3"]
    four_steps(small_model(), path, callbacks=pair)
    assert [best.memories for best in pair] == [[{}, {"name": name}] for name in "abc"]


def flipped(share):
    """One bit of the file, at this share of its length."""

    def change(path):
        data = bytearray(path.read_bytes())
        data[int(share * len(data))] ^= 1
        path.write_bytes(data)

    return change


def rewritten(**header):
    """The same tensors under a header that says something else; None: not at all."""

    def change(path):
        with safe_open(path, "pt") as file:
            said = {**file.metadata(), **header}
        save_file(load_file(path), path, {k: v for k, v in said.items() if v is not None})

    return change


@pytest.mark.parametrize(
    "damage",
    [
        flipped(0.4), flipped(0.7), flipped(0.999), lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        rewritten(step="999"), rewritten(step="-5"), rewritten(scaler="[]"), rewritten(sha256=None),
    ],
)  # fmt: skip
def test_a_damaged_checkpoint_is_refused_and_left(tmp_path, damage):
    path = tmp_path / "run.safetensors"
    train(path, steps=2)
    damage(path)
    damaged = path.read_bytes()
    with pytest.raises(ValueError, match="not a whole checkpoint"):
        train(path, steps=2)
    assert path.read_bytes() == damaged


# ---- a large batch in parts ----------------------------------------------------------------------


def uneven_sequences():
    """Twelve rows of different lengths, so that they ask for different numbers of words."""
    draw = random.Random(1)

    def sentence():
        return [draw.randrange(5, 40) for _ in range(draw.randint(2, 8))]

    documents = [[sentence() for _ in range(draw.randint(2, 5))] for _ in range(40)]
    return make_pairs(documents, SPECIAL, length=32)[:12]


def uncounted(targets):
    return {name: value for name, value in targets.items() if not name.startswith("num_")}


def test_a_part_of_a_part_still_knows_the_whole():
    large = pretraining_batch(uneven_sequences(), SPECIAL)
    pieces = split_batch(large, 5)
    assert [len(piece.inputs["input_ids"]) for piece in pieces] == [2, 2, 3, 2, 3]
    for part in split_batch(pieces[2], 3):
        assert part.targets["num_labels"] == len(large.targets["labels"])
        assert part.targets["num_next_sentence_label"] == 12


def test_labels_of_all_positions_are_split_and_counted_too():
    labels = torch.tensor([[-100, 7], [8, 9], [-100, -100]])
    large = Batch({"input_ids": torch.ones(3, 2, dtype=torch.long)}, {"labels": labels})
    pieces = split_batch(large, 3)
    assert torch.equal(torch.cat([piece.targets["labels"] for piece in pieces]), labels)
    assert all(piece.targets["num_labels"] == 3 for piece in pieces)
    assert counted_together([large])[0].targets["num_labels"] == 3


@pytest.mark.parametrize("parts", [0, 13, 2.0])
def test_a_part_without_a_row_is_refused(parts):
    with pytest.raises(ValueError, match=f"parts={parts} was given for a batch of 12 sequences"):
        split_batch(pretraining_batch(uneven_sequences(), SPECIAL), parts)


def test_accumulating_follows_the_large_batch():
    """Eight updates from four small batches each end where eight large ones end, in float64."""
    large = pretraining_batches(alphabet_sequences(), SPECIAL, batch_size=32)

    def small(step):
        """A quarter of a large batch, which does not know the others."""
        part = split_batch(large(step // 4), 4)[step % 4]
        return Batch(part.inputs, uncounted(part.targets))

    models, curves = [], []
    for batches, accumulate in ((large, 1), (small, 4)):
        model = small_model(dropout=0.0).double()
        settings = {"steps": 8, "accumulate": accumulate, "precision": "float32"}
        curves.append(fit(model, pretraining_loss, batches, **settings))
        models.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert curves[0].tokens == curves[1].tokens and curves[0].steps == curves[1].steps
    for name, values in curves[0].losses.items():
        assert curves[1].losses[name] == pytest.approx(values, rel=1e-9)
    assert (models[0] - models[1]).abs().max() < 1e-9


# ---- Adam ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.9, 0.98), (0.0, 0.5)])
def test_adams_steps_are_those_of_torch(betas):
    draw = random.Random(4)
    gradients = [draw.gauss(0, 1) * (10 if step > 20 else 1) for step in range(60)]
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=1.0, betas=betas, eps=1e-6)
    moved = []
    for gradient in gradients:
        before = weight.item()
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        moved.append(before - weight.item())
    assert adam_trace(gradients, betas) == pytest.approx(moved, rel=1e-9, abs=1e-12)


def test_after_a_jump_a_slow_estimate_overshoots_more_and_longer():
    jump = [1.0] * 100 + [10.0] * 100
    slow, quick = (adam_trace(jump, (0.9, b2)) for b2 in (0.999, 0.98))
    assert max(slow) > max(quick) > 1
    assert slow[150] > 1.5 and quick[150] < 1.25


def test_fit_passes_the_betas_on():
    optimizer = make_optimizer(small_model(), 1e-3, 0.01, betas=(0.9, 0.98))
    assert all(group["betas"] == (0.9, 0.98) for group in optimizer.param_groups)
    usual, curve = train(steps=6)
    same, _ = train(steps=6, betas=(0.9, 0.999))
    other, curve_other = train(steps=6, betas=(0.9, 0.98))
    assert same_bits(usual, same) and not same_bits(usual, other)
    assert curve.losses["total"][0] == curve_other.losses["total"][0]  # before the first update
