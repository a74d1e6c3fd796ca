"""A limit on the memory of a command as a whole, where this user may make one (a control group).

A limit on address space would do the same for small programs and kill a JVM, which reserves far more than it uses.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "mimir-"

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A control group of one command."""

    path: Path
    is_first: bool
    """True: the first version of control groups."""

    def take(self, process: int) -> None:
        """Put a process in; what it starts from now on is in too.

        Raises:
            OSError: It is gone, or may not be moved.
        """
        (self.path / "cgroup.procs").write_text(str(process))

    def ran_out(self) -> bool:
        """Say whether a process was killed because the limit was reached."""
        events = self.path / ("memory.oom_control" if self.is_first else "memory.events")
        with contextlib.suppress(OSError):
            for line in events.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count) > 0
        return False

    def close(self) -> None:
        """Remove the group; its processes must have ended."""
        with contextlib.suppress(OSError):
            self.path.rmdir()


def make(limit_bytes: int) -> Group | None:
    """Make a group with a limit; None: this user may not, or this system has none."""
    for place, is_first in _places():
        group = Group(path=place / f"{_PREFIX}{os.getpid()}-{next(_numbers)}", is_first=is_first)
        try:
            group.path.mkdir()
        except OSError:
            continue
        try:
            _limit(group, limit_bytes)
        except OSError:
            group.close()
            continue
        return group
    return None


def sweep() -> None:
    """Remove groups that killed engines left; one in use cannot be removed."""
    for place, _ in _places():
        for path in place.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                path.rmdir()


def _limit(group: Group, limit_bytes: int) -> None:
    if group.is_first:
        (group.path / "memory.limit_in_bytes").write_text(str(limit_bytes))
        return
    (group.path / "memory.max").write_text(str(limit_bytes))
    with contextlib.suppress(OSError):
        (group.path / "memory.swap.max").write_text("0")
        (group.path / "memory.oom.group").write_text("1")


def _places() -> Iterator[tuple[Path, bool]]:
    """Yield directories in which a group with a memory limit might be made, best first."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield _ROOT / "memory" / path.strip("/"), True
        elif not controllers:
            own = _ROOT / path.strip("/")
            for place in (own, own.parent):
                if place.is_relative_to(_ROOT) and _gives_memory(place):
                    yield place, False


def _gives_memory(place: Path) -> bool:
    try:
        return "memory" in (place / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False
