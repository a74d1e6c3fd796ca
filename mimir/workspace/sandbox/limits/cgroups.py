"""Limits of memory and processes by control groups, where the user may create them."""

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from mimir.domain.value_class import value_class

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "mimir-"
_CONTROLLERS = ("memory", "pids")

_numbers = itertools.count()


@value_class
class ControlGroup:
    """The control groups of one command: one a limit, or one for all (version 2)."""

    paths: tuple[Path, ...]

    def take(self, process: int) -> None:
        """Add a process; its later children belong to the group too."""
        for path in self.paths:
            with contextlib.suppress(OSError):
                (path / "cgroup.procs").write_text(str(process))

    def ran_out(self) -> bool:
        """Return whether a process was killed because memory ran out."""
        for path in self.paths:
            for name in ("memory.events", "memory.oom_control"):
                if _count(path / name, "oom_kill"):
                    return True
        return False

    def close(self) -> None:
        """Remove the group; its processes must have ended."""
        for path in self.paths:
            with contextlib.suppress(OSError):
                path.rmdir()


def make_group(memory_bytes: int, processes: int) -> ControlGroup | None:
    """Create a group with as many of these limits as possible; None: none is possible."""
    # A limit of address space would kill a JVM, which reserves more than it uses. The process limit
    # of `prlimit` counts all processes of one user, which is the same in every sandbox of root.
    name = f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
    limits = {"memory": memory_bytes, "pids": processes}
    groups: list[Path] = []
    for place, controllers in _places():
        path = place / name
        wanted = {one: limits.pop(one) for one in controllers if one in limits}
        if not wanted:
            continue
        try:
            path.mkdir()
            groups.append(path)
            for controller, limit in wanted.items():
                _limit(path, controller, limit)
        except OSError:
            limits |= wanted
    return ControlGroup(paths=tuple(groups)) if groups else None


def remove_stale_groups() -> None:
    """Remove groups of killed engines; a group in use stays."""
    for place, _ in _places():
        for path in place.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                path.rmdir()


def _limit(path: Path, controller: str, limit: int) -> None:
    first = path / "memory.limit_in_bytes"
    if controller == "pids":
        (path / "pids.max").write_text(str(limit))
    # Version 1 of control groups.
    elif first.exists():
        first.write_text(str(limit))
    else:
        (path / "memory.max").write_text(str(limit))
        # Without swap, and all processes of the group are killed together.
        with contextlib.suppress(OSError):
            (path / "memory.swap.max").write_text("0")
            (path / "memory.oom.group").write_text("1")


def _places() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield directories for groups, best first, with the controllers that they can limit."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, named, path = line.split(":", 2)
        controllers = tuple(one for one in _CONTROLLERS if one in named.split(","))
        if controllers:
            yield _ROOT / named / path.strip("/"), controllers
        elif not named:
            own = _ROOT / path.strip("/")
            for place in dict.fromkeys((own, own.parent)):
                if place.is_relative_to(_ROOT):
                    yield place, _available_controllers(place)


def _available_controllers(place: Path) -> tuple[str, ...]:
    # Version 2: the file lists the controllers that the directory lets its groups limit.
    try:
        words = (place / "cgroup.subtree_control").read_text().split()
    except OSError:
        return ()
    return tuple(one for one in _CONTROLLERS if one in words)


def _count(file: Path, name: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            word, _, count = line.partition(" ")
            if word == name:
                return int(count)
    return 0
