"""Writing a small file of the engine's own whole or not at all, whoever else writes the same. Imports nothing heavy: who only looks needs it, too."""

import itertools
import os
from pathlib import Path

_numbers = itertools.count()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file in one step, unless it already says the same."""
    if path.exists() and path.read_bytes() == data:
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{next(_numbers)}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
