"""The student's function, as the stages call it: on copies, within a limit, with its slips caught.

A call raises `Unanswered` for the stub's `...`; `Wrong` for None, for inputs that were written into
and for functions that the statement forbids; `AnswerRaised` when the answer raises; `TookTooLong`.
"""

from __future__ import annotations

import ctypes
import dis
import random
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import cycle
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor

from .form import Answer, Case, Exercise, copy_of
from .outputs import Wrong, shown, text_of
from .settings import own_settings

PROCESSOR_SECONDS = 10.0  # of the answer alone, in one stage: a busy machine does not shorten it
PLAIN = (bool, int, float, complex, str, bytes, type(None))  # values compared as they are
PLAIN_KINDS = frozenset(PLAIN)
SLEEPING = 30  # times as long on the wall clock, for an answer that waits and does not compute
# An alarm that meets an answer while it tries something may be caught. Seconds until the next ones,
# which are short and of many lengths so that one of them meets the answer between two of its tries.
AGAIN = (3e-5, 7e-5, 1.3e-4, 3.1e-4, 7.3e-4)
STUBBORN = 20_000  # alarms caught, after which the reader is told how to end the kernel


class Unanswered(Exception):
    """The stub's `...` is still there."""


class AnswerRaised(Exception):
    """The student's function raised; the original exception is the cause."""


class TookTooLong(BaseException):
    """The limit is reached. No Exception, so that no `except Exception` takes it for one."""


_quiet = partial(warnings.catch_warnings, action="ignore")  # what a known mistake warns of


class Guarded:
    """A function with the exercise's manners; it can be called like the function itself."""

    def __init__(
        self,
        exercise: Exercise,
        function: Answer,
        seconds: float = PROCESSOR_SECONDS,
        ours: bool = False,
    ):
        """ours: a known mistake, which switches nothing for everybody, and warns nobody."""
        self.exercise, self.function, self.left = exercise, function, seconds
        self._settings = _quiet if ours else own_settings
        self.last: Case = ()  # inputs of the latest call, for a report
        self._watching = bool(exercise.forbidden)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        self.last, before = inputs, () if self.exercise.may_write else copy_of(inputs)
        result = self._result(inputs, named)
        if result is ... or (isinstance(result, (tuple, list)) and any(x is ... for x in result)):
            raise Unanswered
        if result is None and self.exercise.solution.__annotations__.get("return") != "None":
            raise Wrong(f"Your function returned None{self._given()}. Some path through it "
                        "ends without `return`.", "none")  # fmt: skip
        if not self.exercise.may_write:
            self._expect_unchanged(before, inputs)
        return result

    def _result(self, inputs: Case, named: dict[str, Any]) -> Any:
        started = time.process_time()
        try:
            with _limit(self.left), self._watched(), self._settings():
                return self.function(*inputs, **named)
        except (Wrong, TookTooLong, KeyboardInterrupt):
            raise
        except BaseException as error:  # also SystemExit, or a cancelled task of asyncio
            if "ellipsis" in text_of(error).lower():
                raise Unanswered from error
            raise AnswerRaised from error
        finally:
            self.left = max(0.01, self.left - (time.process_time() - started))

    def _given(self) -> str:
        inputs = ", ".join(shown_input(x) for x in self.last)
        return f" for {inputs}" if len(inputs) < 300 else ""

    def _expect_unchanged(self, before: Case, after: Case) -> None:
        for name, old, new in zip(self.exercise.parameters, before, after, strict=False):
            if not _unchanged(old, new):
                raise Wrong(
                    f"Your function writes into `{name}`, which belongs to the caller. Work on a "
                    "copy (`.clone()` for a tensor, `list(...)` for a list).",
                    "writes",
                )

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Finds calls of forbidden functions, by their names, in the first call."""
        if not self._watching:
            yield
            return
        called: set[str] = set()

        def note(frame: Any, event: str, what: Any) -> None:
            if event == "call":
                called.add(frame.f_code.co_name)
            elif event == "c_call":
                called.add(getattr(what, "__name__", ""))

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(before)
            self._watching = False
        for names, say in self.exercise.forbidden.items():
            if forbidden := sorted(name for name in called if re.fullmatch(names, name)):
                raise Wrong(f"Your function calls `{forbidden[0]}`. {say}", "forbidden")


def _unchanged(old: Any, new: Any) -> bool:
    if isinstance(old, PLAIN):
        return type(old) is type(new) and (old == new or (old != old and new != new))
    if isinstance(old, Tensor):
        if old.shape != new.shape or old.dtype != new.dtype:
            return False
        same = (old == new) | ((old != old) & (new != new))
        return bool(same.detach().all())
    if isinstance(old, (list, tuple)) and type(old) is type(new):
        types = [*map(type, old)]
        if PLAIN_KINDS.issuperset(types) and types == [*map(type, new)] and old == new:
            return True  # at once, not one by one
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(_unchanged(a, b) for a, b in pairs)
    if isinstance(old, dict):
        return list(old) == list(new) and all(_unchanged(old[k], new[k]) for k in old)
    if isinstance(old, set):
        return bool(old == new)
    if is_dataclass(old) and type(old) is type(new):
        return all(_unchanged(getattr(old, f.name), getattr(new, f.name)) for f in fields(old))
    return True


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the block after so many processor seconds (SLEEPING times as many on the
    wall clock), again and again until the block is left; alarms found before are put back.

    Without effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    block = sys._getframe(2)  # above this one and contextlib's
    if not hasattr(signal, "setitimer"):
        with _watched_by_a_thread(seconds, block):
            yield
        return
    rung, pauses = 0, cycle(AGAIN)

    def ring(_number: int, frame: Any) -> None:
        nonlocal rung
        if _is_in(block, frame):
            rung += 1
            _tell_if_stubborn(rung)
            signal.setitimer(signal.ITIMER_REAL, next(pauses), 0.05)
            raise TookTooLong

    clocks = (
        (signal.ITIMER_PROF, signal.SIGPROF, seconds),
        (signal.ITIMER_REAL, signal.SIGALRM, SLEEPING * seconds),
    )
    before = []
    try:
        for timer, signum, after in clocks:
            handler = signal.signal(signum, ring)
            before.append((timer, signum, handler, signal.setitimer(timer, after, 0.05)))
        yield
    finally:
        for timer, signum, handler, setting in before:
            signal.setitimer(timer, 0)
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)
            if setting[0]:
                signal.setitimer(timer, *setting)
        if rung:  # whatever the answer made of it
            raise TookTooLong


def _is_in(block: Any, frame: Any) -> bool:
    """Whether this frame is a block's own or of what the block has called: not of what begins and
    ends the block, which no alarm may disturb."""
    called = None
    while frame is not None and frame is not block:
        called, frame = frame, frame.f_back
    managing = called is not None and called.f_code.co_name in ("__enter__", "__exit__")
    return frame is not None and not managing


def _tell_if_stubborn(rung: int) -> None:
    if rung == STUBBORN and sys.__stderr__:
        print(
            "Your function catches the exception that should stop it. Restart the kernel "
            "(Kernel > Restart), or end this program.", file=sys.__stderr__, flush=True,
        )  # fmt: skip


@contextmanager
def _watched_by_a_thread(seconds: float, block: Any) -> Iterator[None]:
    """The same where there are no interval timers (Windows): a second thread looks at both clocks,
    and has Python raise in this one. It cannot wake an answer that sleeps, so one that sleeps
    while it tries something, and catches everything ends late or not at all."""
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    me, done, rung = threading.get_ident(), threading.Event(), 0
    processor, wall = time.process_time() + seconds, time.monotonic() + SLEEPING * seconds
    switching = sys.getswitchinterval()

    def watch() -> None:
        nonlocal rung
        while time.process_time() <= processor and time.monotonic() <= wall:
            if done.wait(0.02):
                return
        sys.setswitchinterval(1e-6)  # or this thread would always look at the same place
        for pause in cycle((0.0, *AGAIN)):
            if done.is_set():
                return
            if _is_in(block, sys._current_frames().get(me)):
                rung += 1
                _tell_if_stubborn(rung)
                raise_in(ctypes.c_ulong(me), ctypes.py_object(TookTooLong))
            time.sleep(pause)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        sys.setswitchinterval(switching)
        # What was asked for at the last moment arrives here and not later. (To take it back, with
        # NULL, leaves Python 3.11 looking for it for ever.)
        for _ in range(100):
            pass
        if rung:
            raise TookTooLong


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators for one stage, and leave them as they were found."""
    before, numpy = random.getstate(), sys.modules.get("numpy")
    numpy_before = numpy.random.get_state() if numpy else None
    random.seed(seed)
    if numpy:
        numpy.random.seed(seed % 2**32)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        random.setstate(before)
        if numpy:
            numpy.random.set_state(numpy_before)


def global_states() -> list[Any]:
    """The states of the generators that everybody shares: Python's, torch's, numpy's."""
    numpy = sys.modules.get("numpy")
    state = numpy.random.get_state() if numpy else ("", (), 0)
    return [random.getstate(), torch.get_rng_state().tolist(), (state[0], list(state[1]), state[2])]


def shown_input(x: Any) -> str:
    """An input for a sentence: its value where it is small, a configuration's own settings."""
    if isinstance(x, Tensor):
        if x.numel() <= 24:
            return shown(x, 3 if x.is_floating_point() else 4)
        return f"a tensor of shape {tuple(x.shape)}"
    if is_dataclass(x) and not isinstance(x, type):
        changed = [f for f in fields(x) if f.default != getattr(x, f.name)]
        inside = ", ".join(f"{f.name}={shown(getattr(x, f.name))}" for f in changed)
        return f"{type(x).__name__}({inside})"
    if holds_functions(x) and not callable(x):
        return "functions"
    plain = isinstance(x, (str, int, float, list, tuple, dict, set, type(None)))
    return shown(x) if plain else f"a {type(x).__name__}"


def holds_functions(x: Any) -> bool:
    """Whether this is a function, or a list of nothing else: no input that can be shown."""
    return callable(x) or (isinstance(x, (list, tuple)) and bool(x) and all(map(callable, x)))


def is_empty(answer: Any) -> bool:
    """Whether this is `...`, or a function whose whole body is `...` or `pass`."""
    if answer is ...:
        return True
    answer = answer.__func__ if type(answer) is MethodType else answer
    if type(answer) is not FunctionType:  # an object may do anything when it is asked for its code
        return False
    code = answer.__code__
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("RESUME", "NOP")]
    loaded = [s.argval for s in steps if s.opname in ("LOAD_CONST", "RETURN_CONST")]
    only_returns = all(s.opname in ("LOAD_CONST", "RETURN_CONST", "RETURN_VALUE") for s in steps)
    return only_returns and len(loaded) == 1 and (loaded[0] is None or loaded[0] is ...)
