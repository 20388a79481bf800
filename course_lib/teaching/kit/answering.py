"""One answer, graded: what the process does that grading.py starts for it. Not for use by hand.

It reads a job (JSON) from its input, closes what an answer does not need, runs the statements that
the answer needs, then the exercise's own check, and writes what came of it to a file. What it
closes is named in grading.py; it makes no sandbox."""

from __future__ import annotations

import importlib
import json
import linecache
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib.files import write_atomic

from ..exercises.form import Exercise
from ..exercises.machinery import all_stages, check_answer
from ..exercises.outputs import text_of
from ..exercises.report import Report
from ..rooms import room

NETWORK = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
           "socket.gethostbyname", "socket.gethostbyaddr", "urllib.Request")  # fmt: skip
PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn",
             "os.spawn", "os.startfile", "pty.spawn")  # fmt: skip
WRITTEN_AT_MOST = 64 * 2**20  # bytes in any one file
NO_MEMORY = ("MemoryError", "can't allocate memory", "not enough memory", "Cannot allocate memory")


def main() -> None:
    job = json.loads(sys.stdin.read())
    (exercise,) = (one for one in room(job["exercise"][:2], "exercises").EXERCISES
                   if one.id == job["exercise"])  # fmt: skip
    refused = _refuse()

    def say(result: dict[str, Any]) -> None:
        write_atomic(job["result"], json.dumps(result | {"asked": sorted(set(refused))}))

    def too_long(_number: int, _frame: Any) -> None:
        seconds = job["limits"]["seconds"]
        say({"status": "time", "message": f"The answer used {seconds} seconds of processor time."})
        os._exit(0)

    _limit(job["limits"]["memory"], job["limits"]["seconds"], too_long)
    say(_graded(exercise, job))


def _graded(exercise: Exercise, job: dict[str, Any]) -> dict[str, Any]:
    stages = [stage.name for stage in all_stages(exercise)]
    name = f"<{job['notebook']}>"
    source, expression = job["answer"]["source"], job["answer"]["expression"]
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": "__submission__"}
    try:
        exec(compile(source, name, "exec"), space)
        answer = eval(compile(expression, name, "eval"), space)
    except BaseException as error:  # nobody presses Ctrl-C here
        message = (
            f"The code the answer needs could not be run: {type(error).__name__}: {text_of(error)}"
        )
        return {"status": _status("error", message), "message": message, "how": "raised",
                "stages": [[stage, None] for stage in stages]}  # fmt: skip
    report = check_answer(exercise, answer, job["seed"], seconds=job["limits"]["stage_seconds"])
    return _told(report)


def _told(report: Report) -> dict[str, Any]:
    status = _status(report.status, report.message)
    return {
        "status": status,
        "message": report.message if status != "unanswered" else "The stub was left as it is.",
        "how": report.mistake,
        "stages": [[stage.name, stage.passed] for stage in report.stages],
    }


def _status(status: str, message: str) -> str:
    return "memory" if status == "error" and any(x in message for x in NO_MEMORY) else status


def _limit(memory: int, seconds: int, too_long: Callable[[int, Any], None]) -> None:
    """Limit memory (MB beyond what is used by now), processor seconds and the size of files, as far
    as this system does. The one who started the process ends it where this does not."""
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:  # Windows
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime) + 1
    signal.signal(signal.SIGXCPU, too_long)
    resource.setrlimit(resource.RLIMIT_CPU, (spent + seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN_AT_MOST,) * 2)
    statistics = Path("/proc/self/statm")
    if statistics.exists():  # macOS takes the limit and does not keep it
        mapped = int(statistics.read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + memory * 2**20,) * 2)


def _refuse() -> list[str]:
    """From now on the network and other processes are refused; returns the list in which is noted
    what was asked for, also where the answer catches the refusal."""
    refused: list[str] = []

    def hook(event: str, _arguments: Any) -> None:
        for what, events in (("the network", NETWORK), ("another process", PROCESSES)):
            if event in events:
                refused.append(what)
                raise PermissionError(f"{what} is refused while an answer is graded ({event})")

    sys.addaudithook(hook)
    return refused


if __name__ == "__main__":
    main()
