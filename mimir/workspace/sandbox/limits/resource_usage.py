"""Resource usage of a process tree, from /proc; only Linux has it."""

import os
from collections.abc import Iterator
from pathlib import Path

from mimir.domain.value_class import value_class

INTERVAL_SECONDS = 0.1
_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@value_class
class ProcessUsage:
    """Usage of a process and all below it."""

    processes: int
    memory_bytes: int
    """Resident; shared memory counts for each process."""


def usage(root: int) -> ProcessUsage:
    """Measure a process and all below it."""
    # Processes that end during the measurement count for nothing.
    memory = [_resident(process) for process in family(root)]
    return ProcessUsage(processes=len(memory), memory_bytes=sum(memory))


def own_memory(root: int) -> int:
    """Measure the memory of a process tree exactly, shared memory divided; slower."""
    return sum(_proportional(process) for process in family(root))


def family(root: int) -> Iterator[int]:
    """Yield a process and all below it."""
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += _children(process)


def _children(process: int) -> list[int]:
    found: list[int] = []
    try:
        threads = list((_PROC / str(process) / "task").iterdir())
    except OSError:
        return found
    for thread in threads:
        try:
            found += map(int, (thread / "children").read_text().split())
        except OSError:
            continue
    return found


def _resident(process: int) -> int:
    try:
        return int((_PROC / str(process) / "statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional(process: int) -> int:
    try:
        for line in (_PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return _resident(process)
    return 0
