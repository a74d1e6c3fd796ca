"""Atomic writing of small files. It imports nothing heavy."""

import itertools
import os
from pathlib import Path

_numbers = itertools.count()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file in one step, unless its content is equal already."""
    if path.exists() and path.read_bytes() == data:
        return
    # A name of its own: other processes may write the same file at the same time.
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{next(_numbers)}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
