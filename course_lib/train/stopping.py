"""What ends a run from outside, Ctrl-C (SIGINT) or SIGTERM: one line, no traceback, the exit status
that shells expect, 128 and the signal's number. It imports nothing that takes time."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE = 5.0  # seconds in which a second signal does not disturb what the first has begun


class Stopped(KeyboardInterrupt):
    """A signal came. where: at which point of the run, and what the same command does next."""

    where = "before the first step; the same command goes on"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def end(self) -> None:
        """The line and the end. Of several processes the first says it, and none waits for
        another."""
        behind = "\n" if sys.stdout.isatty() else ""  # a line of progress may stand there
        print(f"{behind}pretrain: stopped {self.where}", file=sys.stderr, flush=True)
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            os._exit(128 + self.number)
        sys.exit(128 + self.number)


@contextmanager
def stage(where: Callable[[], str]) -> Iterator[None]:
    """Inside, a run that is stopped says `where`."""
    try:
        yield
    except Stopped as error:
        error.where = where()
        raise


def leave(number: int, _frame: FrameType | None) -> None:
    """A handler for the time before anything is written."""
    os.write(2, f"pretrain: stopped {Stopped.where}\n".encode())
    os._exit(128 + number)


def listen(handler: Any) -> dict[int, Any]:
    """Have both signals handled; gives how they were before. Of several processes the first has a
    line to say; the others end without a word, even while they wait for it."""
    silent = os.environ.get("RANK", "0") != "0"
    return {n: signal.signal(n, signal.SIG_DFL if silent else handler) for n in SIGNALS}


@contextmanager
def one_line() -> Iterator[None]:
    """Inside, a signal ends the program with one line. In a thread nothing changes: signals are the
    main thread's."""
    last = -GRACE

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last >= GRACE:
            last = time.monotonic()
            raise Stopped(number)

    main_thread = threading.current_thread() is threading.main_thread()
    before = listen(stop) if main_thread else {}
    try:
        yield
    except Stopped as error:
        error.end()
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler in (leave, None) else handler)
