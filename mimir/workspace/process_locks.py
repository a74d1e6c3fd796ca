"""Which processes of this host are alive: each holds an `flock` while it lives, which the kernel takes back however it dies."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Mapping
from pathlib import Path


class ProcessLocks:
    """A directory of lock files, one a process; the file's name is the owner's name in leases."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int] = {}

    def live(self, owner: str) -> None:
        """Hold the lock of `owner` for as long as this process lives.

        Raises:
            OSError: The directory cannot be written.
        """
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self._directory / owner, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        # It is this process's alone; whoever asks about it at this moment lets go at once.
        fcntl.flock(fd, fcntl.LOCK_EX)
        self._held[owner] = fd

    def leave(self, owner: str, *, holds: bool = False) -> None:
        """Let the lock go.

        Args:
            owner: Who.
            holds: True: it may hold leases still, that it could not give back. Its file stays, so that it counts as dead.
        """
        fd = self._held.pop(owner, None)
        if fd is not None:
            if not holds:
                with contextlib.suppress(FileNotFoundError):
                    (self._directory / owner).unlink()
            os.close(fd)

    def path(self, owner: str) -> Path:
        """Return the lock file of an owner."""
        return self._directory / owner

    def find_dead_of(self, known: Mapping[str, str]) -> frozenset[str]:
        """Return those of some owners of this host (name → lock file) whose lock can be taken; of other projects too.

        A file that is not there says nothing: its directory may be out of this process's sight.
        """
        return frozenset(
            owner
            for owner, path in known.items()
            if owner not in self._held and path and _left_behind(path)
        )

    def is_alone(self) -> bool:
        """True if no other process of this project lives."""
        alive = {path.name for path in self._directory.iterdir()} - self.find_dead()
        return alive <= self._held.keys()

    def is_dead(self, owner: str) -> bool:
        """True if `owner` had a lock here and its process is gone; False if it lives or is of another host."""
        return owner in self.find_dead()

    def find_dead(self) -> frozenset[str]:
        """Return the owners of this host whose lock can be taken."""
        if not self._directory.is_dir():
            return frozenset()
        return frozenset(
            path.name
            for path in self._directory.iterdir()
            if path.name not in self._held and _free(path)
        )


def _free(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _left_behind(path: str) -> bool:
    """True if a file of this user's is there and nobody holds its lock; the path was read in a store, so nothing is followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return False
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            return False
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
