"""A process that swaps a directory and a file for links to the outside, over and over, until its input ends.

Started as a program: `python swapper.py WORKSPACE OUTSIDE`. It says "ready" once, and the number of rounds at the end.
"""

import contextlib
import os
import select
import shutil
import sys
from pathlib import Path


def swap_directory(workspace: Path, outside: Path) -> None:
    """Make `sub` a link to the outside for a moment; another one that was made meanwhile goes."""
    sub, real = workspace / "sub", workspace / "real"
    if real.exists():
        shutil.rmtree(sub, ignore_errors=True)
    else:
        sub.rename(real)
    sub.symlink_to(outside)
    sub.unlink()
    real.rename(sub)


def swap_file(workspace: Path, outside: Path) -> None:
    """Make `file` a link to the outside's secret for a moment, then a pipe, then a file again."""
    link = (
        workspace / f"link-{os.getpid()}"
    )  # several attackers must not wait in each other's pipes
    link.unlink(missing_ok=True)
    link.symlink_to(outside / "secret")
    link.replace(workspace / "file")
    os.mkfifo(link)
    link.replace(workspace / "file")
    link.write_bytes(b"inside")
    link.replace(workspace / "file")


def main(workspace: Path, outside: Path) -> None:
    """Swap until standard input ends."""
    print("ready", flush=True)
    rounds = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        for swap in (swap_directory, swap_file):
            with contextlib.suppress(OSError):
                swap(workspace, outside)
                rounds += 1
    print(rounds, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
