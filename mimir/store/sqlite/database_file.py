"""File of the SQLite store: created as a whole or not at all, checked before any change.

A new store is built under another name and renamed, so a file of the final name is always complete. A foreign file is only read.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Generator
from pathlib import Path

from mimir.errors import MimirError, Paused, StoreError
from mimir.store.schema import PROMOTED, SCHEMA_VERSION
from mimir.store.sqlite.query_library import sql

# `mimr`, in the header of every store.
APPLICATION_ID = 0x6D696D72

# How long SQLite itself waits for another process; the store tries again after it.
PATIENCE_SECONDS = 5.0

_TABLES = ("edges", "found", "nodes", "texts")

_MAGIC = b"SQLite format 3\0"

# Cache of each connection; the system caches the file once for all of them.
_PAGES_KB = 512


def connect(
    path: Path, *, mode: str = "rw", wait_seconds: float = PATIENCE_SECONDS, durable: bool = True
) -> sqlite3.Connection:
    """Open an existing store, without automatic transactions; `mode` as in SQLite's URIs."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=wait_seconds,
        check_same_thread=False,
        cached_statements=512,
    )
    try:
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        # The system keeps the file's pages in memory anyway, once for all connections.
        connection.execute(f"PRAGMA cache_size = -{_PAGES_KB}")
    except sqlite3.Error:  # the first look into the file: it may be none of SQLite's
        connection.close()
        raise
    return connection


def prepare(path: Path) -> None:
    """Create the store's file, or check an existing one; safe in several processes.

    Raises:
        StoreError: The file is foreign, damaged, of a newer schema, or cannot be opened; it is left untouched.
        Paused: No space left.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _only_one(path.parent):
            if not path.exists() or (path.is_file() and path.stat().st_size == 0):
                _make(path)
            if _check(path) < SCHEMA_VERSION:
                _mark(path)
    except (sqlite3.Error, OSError) as error:
        raise problem(error, path) from error


def identity(path: Path) -> tuple[int, int]:
    """Return the identity of the file at a path; it changes if the file is replaced."""
    # Device and inode: a path can name another file later.
    found = path.stat()
    return found.st_dev, found.st_ino


def problem(error: sqlite3.Error | OSError, path: Path) -> MimirError:
    """Return the error for the user that an error of SQLite or of the file system means."""
    if isinstance(error, OSError):
        code = {28: sqlite3.SQLITE_FULL, 122: sqlite3.SQLITE_FULL}.get(
            error.errno or 0, sqlite3.SQLITE_CANTOPEN
        )
    else:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    match code:
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return Paused(
                f"The store {path} cannot be written: {error}.",
                reason="disk",
                next_step="Free some space on its disk, then `mimir resume`.",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Paused(
                f"The store {path} is held by another process: {error}.",
                reason="store",
                next_step="End that process, then `mimir resume`.",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreError(
                f"The store {path} is damaged: {error}.",
                next_step="Put it aside, or name another one with `--store`.",
            )
        case (
            sqlite3.SQLITE_CANTOPEN
            | sqlite3.SQLITE_READONLY
            | sqlite3.SQLITE_PERM
            | sqlite3.SQLITE_AUTH
        ):
            return StoreError(
                f"The store {path} cannot be opened for writing: {error}.",
                next_step="Check the rights of the file and its directory.",
            )
        case _:
            return StoreError(f"The store {path} refused: {error}.")


@contextlib.contextmanager
def _only_one(directory: Path) -> Generator[None]:
    """Let one process at a time create or check a store in this directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make(path: Path) -> None:
    import tempfile  # most stores exist already

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")  # file with mode 0600
    os.close(handle)
    file = Path(name)
    try:
        with contextlib.closing(connect(file)) as connection:
            schema = sql(
                "schema",
                columns=", ".join(f'"{name}"' for name in PROMOTED),
                application=str(APPLICATION_ID),
                version=str(SCHEMA_VERSION),
            )
            connection.executescript(f"BEGIN;{schema}COMMIT;")
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise StoreError(
                    f"The disk of {path.parent} cannot hold a store that several processes use.",
                    next_step="Name a store on a local disk with `--store`.",
                )
        file.replace(path)
        _sync(path.parent)
    finally:
        file.unlink(missing_ok=True)


def _sync(directory: Path) -> None:
    # The rename itself must survive a power cut.
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mark(path: Path) -> None:
    """Write the schema version: an older mimir must refuse the file from now on."""
    with contextlib.closing(connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check(path: Path) -> int:
    """Return the schema version."""
    # The header's bytes come first: SQLite itself may write next to a file that it opens.
    if not path.is_file():
        raise _foreign(path)
    with path.open("rb") as file:
        header = file.read(100)
    ours = int.from_bytes(header[68:72], "big") == APPLICATION_ID
    if len(header) < 100 or not header.startswith(_MAGIC) or not ours:
        raise _foreign(path)
    _check_version(path, int.from_bytes(header[60:64], "big"))
    return _check_tables(path)


def _check_tables(path: Path) -> int:
    """Check the tables without writing; return the schema version."""
    # A log beside the file belongs to it; without one, the file can be read as immutable.
    log = path.with_name(path.name + "-wal")
    live = log.exists() and log.stat().st_size > 0
    try:
        version, tables = _contents(path, "ro" if live else "ro&immutable=1")
    except sqlite3.DatabaseError:
        if live or not log.exists():
            raise
        version, tables = _contents(path, "ro")  # another process began to write
    _check_version(path, version)
    if missing := sorted(set(_TABLES) - tables):
        raise StoreError(f"The store {path} is damaged: table {missing[0]!r} is not there.")
    return version


def _contents(path: Path, mode: str) -> tuple[int, set[str]]:
    with contextlib.closing(connect(path, mode=mode)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.text_factory = bytes
        names = connection.execute(sql("table-names")).fetchall()
    return version, {name.decode("utf-8", "replace") for (name,) in names}


def _check_version(path: Path, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The store {path} has schema {version}; this mimir knows {SCHEMA_VERSION} and older.",
            next_step="Use a newer mimir, or name another store with `--store`.",
        )
    if version < 1:
        raise StoreError(f"The store {path} is damaged: its schema has no version.")


def _foreign(path: Path) -> StoreError:
    return StoreError(
        f"{path} is not a store of mimir; it was left untouched.",
        next_step="Name another path with `--store`.",
    )
