"""The allocator: memory that one training step frees is kept for the next.

glibc gives large blocks back to the system as soon as they are free. The next step asks for them
again, and gets pages that the system first fills with zeros: tens of thousands of page faults a
step. Told to keep them, it has next to none, and the process holds on to memory it has freed."""

from __future__ import annotations

import ctypes
import os
from functools import cache

SWITCH = "COURSE_LIB_ALLOCATOR"
BY_USER = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")
# Numbers of <malloc.h>. Blocks below the first size are kept in the heap, freed memory at its end
# up to the second; the heap grows by the third at a time. Larger blocks, such as a base model's
# embeddings, go back to the system: kept, they leave holes, and a page takes a fifth more memory.
MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD = -3, -1, -2
SIZES = {MMAP_THRESHOLD: 2**25, TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 2**28}


@cache
def keep_freed_memory() -> bool:
    """Tell glibc to keep freed blocks, for the whole process; whether that was done.

    `fit` calls it. It does nothing where another allocator is at work (Windows, macOS, musl,
    jemalloc), where the user has set one of BY_USER, and with COURSE_LIB_ALLOCATOR=system."""
    if os.environ.get(SWITCH) == "system" or any(name in os.environ for name in BY_USER):
        return False
    if "glibc" not in libc() or "LD_PRELOAD" in os.environ:
        return False
    mallopt = ctypes.CDLL(None).mallopt
    # In this order: a size that is refused leaves all as it was.
    return all(mallopt(which, size) == 1 for which, size in SIZES.items())


def libc() -> str:
    """Name and version of the C library, such as "glibc 2.36"; "" where none is told."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):  # Windows, macOS, musl
        return ""
