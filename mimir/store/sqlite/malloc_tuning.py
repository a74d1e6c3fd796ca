"""One heap for all threads of the process, and large blocks beside it.

The C library gives each thread a heap of its own, so that they need not wait for each other; Python's threads take turns anyway, and what
one of them gave back the others could not use: a run of 700 tasks took 128 MB instead of 117.

Large blocks the library puts beside it too, until one was given back; from then on it cuts blocks of that size out of the
heap. A plan of 1,000 tasks, held twice for a moment, left holes there that the run did not fill: 0.9 KB a task.
"""

import contextlib
import ctypes
import sys

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
"""Of glibc's `mallopt(3)`."""
_LARGE = 128 * 1024
"""Bytes; the library's own, until it changes its mind."""


def use_single_arena() -> None:
    """Have threads that are started from now on share the heap; where the C library has no such choice, nothing changes."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # musl, or no dynamic loader
            library = ctypes.CDLL(None)
            library.mallopt(_M_ARENA_MAX, 1)
            library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
