"""Answers that switch what everybody shares, never end, or fail at anything: `check` survives."""

from __future__ import annotations

import asyncio
import contextlib
import decimal
import gc
import io
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from course_lib.teaching.exercises import all_exercises, check
from course_lib.teaching.exercises.calling import Guarded
from course_lib.teaching.exercises.machinery import check_answer
from course_lib.teaching.exercises.settings import (
    ATTRIBUTES,
    ENVIRONMENT,
    SETTINGS,
    own_settings,
)

EXERCISE = all_exercises()["06.1"]
WITH_GRADIENT = all_exercises()["06.2"]
entered: list[Any] = []


def enter(manager: Any) -> None:
    """Enter and never leave."""
    entered.append(manager)
    manager.__enter__()


class Refusing(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, *arguments: Any) -> Any:
        raise RuntimeError("nothing of torch works here")


SWITCHES: dict[str, Callable[[], Any]] = {
    "gradients": lambda: torch.set_grad_enabled(False),
    "no_grad, entered": lambda: enter(torch.no_grad()),
    "inference mode, entered": lambda: enter(torch.inference_mode()),
    "inference mode, dropped": lambda: torch.inference_mode().__enter__(),
    "dtype": lambda: torch.set_default_dtype(torch.float64),
    "device": lambda: torch.set_default_device("meta"),
    "device, entered": lambda: enter(torch.device("meta")),
    "function mode": lambda: enter(Refusing()),
    "autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "autocast, entered": lambda: enter(torch.autocast("cpu", torch.bfloat16)),
    "autocast dtype": lambda: torch.set_autocast_dtype("cpu", torch.float16),
    "autocast cache": lambda: torch.set_autocast_cache_enabled(False),
    "threads": lambda: torch.set_num_threads(3),
    "deterministic": lambda: torch.use_deterministic_algorithms(True),
    "matmul precision": lambda: torch.set_float32_matmul_precision("medium"),
    "anomalies": lambda: torch.autograd.set_detect_anomaly(True),
    "warn always": lambda: torch.set_warn_always(True),
    "torch's printing": lambda: torch.set_printoptions(precision=1, sci_mode=True),
    "numpy's errors": lambda: numpy.seterr(all="raise"),
    "numpy's printing": lambda: numpy.set_printoptions(precision=1),
    "warnings": lambda: warnings.simplefilter("error"),
    "warnings, entered": lambda: enter(warnings.catch_warnings()),
    "showwarning": lambda: setattr(warnings, "showwarning", None),
    "recursion limit": lambda: tight_recursion_limit(),
    "profile": lambda: sys.setprofile(lambda *event: None),
    "switch interval": lambda: sys.setswitchinterval(1),
    "digits": lambda: sys.set_int_max_str_digits(700),
    "garbage": gc.disable,
    "Ctrl-C": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    "folder": lambda: os.chdir("/"),
    "environment": lambda: os.environ.update(OF_AN_ANSWER="1"),
    "decimal precision": lambda: setattr(decimal.getcontext(), "prec", 2),
    "decimal context": lambda: decimal.setcontext(decimal.Context(prec=2)),
    "output closed": lambda: sys.stdout.close(),
    "errors closed": lambda: sys.stderr.close(),
    "output gone": lambda: setattr(sys, "stdout", None),
    "output caught": lambda: setattr(sys, "stdout", io.StringIO()),
    "input gone": lambda: setattr(sys, "stdin", None),
}


def tight_recursion_limit() -> None:
    """The lowest that Python takes here."""
    for limit in range(20, 1_000):
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(limit)
            return


def state() -> list[Any]:
    """Everything that an answer could have switched, as it is now."""
    return [
        *(setting.read() for setting in (*SETTINGS, ENVIRONMENT)),
        *(getattr(owner, name) for owner, name in ATTRIBUTES),
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), sys.getrecursionlimit(),
        decimal.getcontext().prec, sys.stdout.closed, sys.stderr.closed,
    ]  # fmt: skip


@pytest.mark.parametrize("name", SWITCHES)
def test_what_an_answer_switches_is_put_back_after_each_call(name: str) -> None:
    """Also for the answer's next call: what is switched is found unswitched at each beginning."""
    seen = []

    def answer(*inputs: Any) -> Any:
        seen.append(torch.is_grad_enabled() and torch.zeros(1).sum() == 0)
        result = WITH_GRADIENT.solution(*inputs)
        SWITCHES[name]()
        return result

    before = state()
    assert check_answer(WITH_GRADIENT, answer, 0).status == "passed"
    assert state() == before
    assert len(seen) > 1 and all(seen)


@pytest.mark.parametrize(
    "name", ["gradients", "inference mode, entered", "dtype", "device", "autocast", "function mode"]
)
def test_what_the_reader_has_switched_stays_and_the_check_goes_by_its_own(name: str) -> None:
    with own_settings(ENVIRONMENT):
        SWITCHES[name]()
        before = state()
        assert check_answer(WITH_GRADIENT, WITH_GRADIENT.solution, 0).status == "passed"
        assert state() == before


def test_an_answer_is_called_in_the_mode_in_which_a_stage_observes_it() -> None:
    class Noting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, *rest: Any) -> Any:
            seen.append(function)
            return function(*rest[1], **(rest[2] if len(rest) > 2 and rest[2] else {}))

    seen: list[Any] = []
    answer = Guarded(EXERCISE, lambda *inputs: (torch.zeros(1).exp(), torch.is_grad_enabled()))
    with Noting(), torch.no_grad():
        assert answer()[1] is False
    assert torch.zeros in seen


# ---------------------------------------------------------------- what catches its own alarm

STUBBORN = {
    "a loop": "while True:\n    try: n += 1\n    except BaseException: pass",
    "a bare except": "while True:\n    try: sum(range(1000))\n    except: continue",
    "sleeping": "while True:\n    try: time.sleep(1)\n    except BaseException: pass",
    "suppressed": "while True:\n    with suppress(BaseException): sum(range(9000))",
    "finally": "while True:\n    try: time.sleep(0.01)\n    finally: continue",
    "raising": "while True:\n    try: raise ValueError\n    except BaseException:\n"
               "        try: raise KeyError\n        except BaseException: continue",
    "one in another": "while True:\n    try:\n        while True:\n            try: n += 1\n"
                      "            except: pass\n    except: continue",
    "returning": "try:\n    while True: pass\nexcept BaseException: return solution(*x)",
    "another exception": "try:\n    while True: pass\nexcept BaseException: raise ValueError",
}  # fmt: skip


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")
def test_an_answer_that_catches_its_alarm_is_ended_and_the_process_lives() -> None:
    """All in one process of their own, which could be ended if one of them were not."""
    indented = {name: code.replace("\n", "\n    ") for name, code in STUBBORN.items()}
    run = (
        "import time; from contextlib import suppress\n"
        "from course_lib.teaching.exercises import all_exercises, calling, machinery\n"
        "exercise = all_exercises()['06.1']; solution = exercise.solution\n"
        "calling.SLEEPING = 2\n"
        f"for name, code in {indented}.items():\n"
        "    exec(f'def answer(*x):\\n    n = 0\\n    {code}')\n"
        "    report = machinery.check_answer(exercise, answer, 0, seconds=0.1)\n"
        "    assert report.mistake == 'never ends', (name, report)\n"
        "    assert machinery.check_answer(exercise, solution, 0).status == 'passed', name\n"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()


# ---------------------------------------------------------------- what fails at anything


class Bare(BaseException):
    pass


class WithoutText(Exception):
    def __str__(self) -> str:
        raise Bare


def raising(error: BaseException) -> Callable[..., Any]:
    def answer(*inputs: Any) -> Any:
        raise error

    return answer


def refuse(*arguments: Any, **named: Any) -> Any:
    raise Bare("refused")


def failing(*names: str, error: Any = refuse, base: type = object) -> Any:
    """An object whose special methods of these names raise."""
    return type("Failing", (base,), dict.fromkeys(names, error))


EVERYTHING = (
    "__eq__", "__ne__", "__repr__", "__str__", "__len__", "__iter__", "__bool__", "__getitem__",
    "__float__", "__hash__", "__torch_function__", "__array__",
)  # fmt: skip


class Raising:
    """A callable that raises at whatever it is asked."""

    def __call__(self, *inputs: Any) -> Any:
        raise Bare("called")

    def __getattr__(self, name: str) -> Any:
        raise Bare(name)


FAULTS: dict[str, Any] = {
    "BaseException": raising(Bare("base")), "GeneratorExit": raising(GeneratorExit()),
    "SystemExit": raising(SystemExit(3)), "StopIteration": raising(StopIteration()),
    "cancelled": raising(asyncio.CancelledError()), "memory": raising(MemoryError()),
    "recursion": raising(RecursionError("too deep")), "no text": raising(WithoutText()),
    "half a letter": raising(ValueError("\ud800")),
    "group": raising(BaseExceptionGroup("g", [Bare("one")])),
    "generator": lambda *inputs: (n for n in inputs), "callable": Raising(),
    "its class": failing("__class__"),
    **{f"an object without {name}": lambda *x, name=name: failing(name)() for name in EVERYTHING},
    "an object without anything": lambda *x: failing(*EVERYTHING)(),
    "a list without anything": lambda *x: failing(*EVERYTHING, base=list)(),
    "a tuple without anything": lambda *x: failing(*EVERYTHING, base=tuple)(),
    "a dictionary without anything": lambda *x: failing(*EVERYTHING, "items", base=dict)(),
    "a tensor without anything": lambda *x: torch.ones(2).as_subclass(
        failing(*EVERYTHING, base=torch.Tensor)),
    "a number without anything": lambda *x: failing(*EVERYTHING, base=float)(1.0),
    "a property": lambda *x: failing("shape", "dtype", error=property(refuse))(),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Defining your `__torch_function__` as a plain method")
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("id", ["06.1", "02.1", "04.1", "03.2"])
def test_check_never_raises_whatever_fails(id: str, name: str, capsys: Any) -> None:
    report = check(id, FAULTS[name], seed=0)
    assert report.status in ("wrong", "error") and report.message
    assert report.title in capsys.readouterr().out
    json.dumps([repr(report), report._repr_html_()], ensure_ascii=False).encode()


def test_ctrl_c_interrupts_a_check() -> None:
    with pytest.raises(KeyboardInterrupt):
        check("06.1", raising(KeyboardInterrupt()))


@pytest.mark.parametrize("out", ["closed", "refusing", "none", "nothing"])
def test_a_report_survives_the_output(out: str, monkeypatch: Any, capsys: Any) -> None:
    stream: Any = io.StringIO()
    stream.close()
    streams = {"closed": stream, "refusing": failing("write", error=refused)(), "none": None,
               "nothing": object()}  # fmt: skip
    monkeypatch.setattr(sys, "stdout", streams[out])
    assert check("06.1", EXERCISE.solution, seed=0).status == "passed"
    if out != "none":
        assert "06.1 A softer answer: passed" in capsys.readouterr().err


def refused(*arguments: Any) -> Any:
    raise BrokenPipeError


@pytest.mark.parametrize("id", [["06.1"], {}, object()])
def test_an_exercise_that_is_no_text_lists_those_that_exist(id: Any, capsys: Any) -> None:
    assert "02.1, 02.2" in check(id, len).message
