"""A process that swaps a directory and a file for links to the outside, over and over, until its input ends.

Started as a program: `python swapper.py WORKSPACE OUTSIDE`. It says "ready" once, and the number of rounds at the end.
"""

import os
import select
import sys
from pathlib import Path


def swap_directory(workspace: Path, outside: Path) -> None:
    """Make `sub` a link to the outside for a moment."""
    (workspace / "sub").rename(workspace / "real")
    (workspace / "sub").symlink_to(outside)
    (workspace / "sub").unlink()
    (workspace / "real").rename(workspace / "sub")


def swap_file(workspace: Path, outside: Path) -> None:
    """Make `file` a link to the outside's secret for a moment, then a pipe, then a file again."""
    link = workspace / "link"
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
        rounds += 1
        try:
            swap_directory(workspace, outside)
            swap_file(workspace, outside)
        except OSError:
            continue
    print(rounds, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
