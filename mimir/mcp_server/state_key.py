"""Key that seals the state of a form, so that the next server process accepts it."""

import contextlib
import os
import secrets
from pathlib import Path

KEY_BYTES = 32
FILE = "request-state"


def load_key(directory: Path | None) -> bytes:
    """Return the key of a project; it is created for the user alone, if there is none.

    Without a directory the key is that of this process: a form then ends with it.
    """
    if directory is None:
        return secrets.token_bytes(KEY_BYTES)
    path = directory / FILE
    with contextlib.suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = directory / f"{FILE}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        # Written elsewhere first: another process must never read half a key.
        if not path.exists():
            handle = os.open(temporary, flags, 0o600)
            with open(handle, "wb") as file:  # noqa: PTH123  a descriptor
                file.write(secrets.token_bytes(KEY_BYTES))
            # A link fails if another process was faster; then its key is used.
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(temporary)
            temporary.unlink()
        key = path.read_bytes()
        if len(key) == KEY_BYTES:
            return key
    return secrets.token_bytes(KEY_BYTES)
