"""Allocator tuning: one heap for all threads, and large blocks outside it.

Measured on 2026-11-26 in alternating runs of the engine benchmark's subject process on a loaded machine: without it, wall time over httpx2
rises from 1.70 to 1.82 (weak evidence, near the noise).
"""

import contextlib
import ctypes
import sys

# Parameters of glibc's `mallopt(3)`.
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
# Bytes. The library's default, which it would raise after the first free: a plan of 1,000 tasks then left holes.
_LARGE = 128 * 1024


def use_single_arena() -> None:
    """Let threads that start from now on share one heap; no change without glibc."""
    # Threads of Python take turns anyway, and one cannot use the memory that another one freed in its own
    # heap.
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # musl, or no dynamic loader
            library = ctypes.CDLL(None)
            library.mallopt(_M_ARENA_MAX, 1)
            library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
