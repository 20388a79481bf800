"""Freed memory is kept for the next step where glibc is at work, and the user has the last word."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from course_lib.train import allocator

STEPS = """
import resource
import torch
from course_lib.train.allocator import keep_freed_memory
told = keep_freed_memory()
def step():
    blocks = [torch.ones(3_000_000) for _ in range(8)]  # 12 MB each
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(told, (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 10)
"""
NEEDS_GLIBC = pytest.mark.skipif(
    "glibc" not in allocator.libc(), reason="the allocator here is not glibc's"
)


def faults(**environment):
    """Whether the allocator was told, and page faults of a step, in a process of its own."""
    mine = (*allocator.BY_USER, allocator.SWITCH, "LD_PRELOAD")
    clean = {name: value for name, value in os.environ.items() if name not in mine}
    run = subprocess.run(
        [sys.executable, "-c", STEPS], env=clean | environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    told, count = run.stdout.split()
    return told == "True", int(count)


@NEEDS_GLIBC
def test_blocks_are_kept_unless_the_user_says_otherwise():
    told, kept = faults()
    left, fetched = faults(COURSE_LIB_ALLOCATOR="system")
    assert told and not left
    assert kept < 100 and kept <= fetched


@NEEDS_GLIBC
def test_who_has_set_the_allocator_is_left_alone():
    told, _ = faults(MALLOC_TOP_PAD_="1000000")
    assert not told


class Libc:
    """Stands for the C library: notes what it is asked, and refuses from the n-th size on."""

    def __init__(self, refuses_from):
        self.refuses_from, self.asked = refuses_from, []

    def mallopt(self, which, size):
        self.asked.append(which)
        return int(len(self.asked) < self.refuses_from)


@pytest.fixture
def pretend(monkeypatch):
    """Makes a C library of this name the one at work."""
    for name in (*allocator.BY_USER, allocator.SWITCH, "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)

    def make(name, refuses_from=9):
        made = Libc(refuses_from)
        monkeypatch.setattr(allocator, "libc", lambda: name)
        monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _: made)
        return made

    return make


@pytest.mark.parametrize("name", ["", "musl 1.2"])
def test_another_allocator_is_left_alone(pretend, name):
    made = pretend(name)
    assert allocator.keep_freed_memory.__wrapped__() is False
    assert made.asked == []


def test_a_size_that_is_refused_ends_it(pretend):
    made = pretend("glibc 2.36", refuses_from=1)
    assert allocator.keep_freed_memory.__wrapped__() is False
    assert made.asked == [allocator.MMAP_THRESHOLD]


def test_all_three_sizes_are_set(pretend):
    made = pretend("glibc 2.36")
    assert allocator.keep_freed_memory.__wrapped__() is True
    assert made.asked == [*allocator.SIZES]
