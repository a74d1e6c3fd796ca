"""Locks that show which processes of this host live; the kernel frees those of dead ones."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Mapping
from pathlib import Path


class ProcessLocks:
    """A directory of lock files, one a process, named like the owner in leases."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int] = {}

    def live(self, owner: str) -> None:
        """Hold the lock of `owner` until this process ends."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self._directory / owner, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        # Blocking: a process that checks this lock releases it at once.
        fcntl.flock(fd, fcntl.LOCK_EX)
        self._held[owner] = fd

    def leave(self, owner: str, *, holds: bool = False) -> None:
        """Release the lock; with `holds` leases remain, and the owner counts as dead."""
        fd = self._held.pop(owner, None)
        if fd is not None:
            # The remaining file of a holder shows other processes that the owner is dead.
            if not holds:
                with contextlib.suppress(FileNotFoundError):
                    (self._directory / owner).unlink()
            os.close(fd)

    def path(self, owner: str) -> Path:
        """Return the lock file of an owner."""
        return self._directory / owner

    def find_dead_of(self, known: Mapping[str, str]) -> frozenset[str]:
        """Return the dead ones of some owners (name → lock file), also of other projects."""
        return frozenset(
            owner
            for owner, path in known.items()
            if owner not in self._held and path and _is_abandoned(path)
        )

    def is_alone(self) -> bool:
        """True if no other process of this project lives."""
        alive = {path.name for path in self._directory.iterdir()} - self.find_dead()
        return alive <= self._held.keys()

    def find_dead(self) -> frozenset[str]:
        """Return the owners whose lock is free."""
        if not self._directory.is_dir():
            return frozenset()
        return frozenset(
            path.name
            for path in self._directory.iterdir()
            if path.name not in self._held and _is_free(path)
        )


def _is_free(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        return _can_lock(fd)
    finally:
        os.close(fd)


def _is_abandoned(path: str) -> bool:
    # The path was read in a store, so nothing is followed. A missing file proves nothing: its
    # directory may be invisible to this process.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return False
    try:
        found = os.fstat(fd)
        return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and _can_lock(fd)
    finally:
        os.close(fd)


def _can_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
