"""The file of a recording: one JSON object a line, each with its own hash, behind a line that names the version.

Lines are only ever written behind the others. A process that was killed leaves at most half a line at the end: who goes on recording
takes it away and says so; who reads refuses it.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mimir.errors import Location, MimirError, PlanError, StoreError
from mimir.recordings.format.recording import Recording, add, in_order
from mimir.recordings.format.recording_export import Line
from mimir.store.schema import pack

VERSION = 1
"""Of the format; grows with every change that an older mimir could not read."""
MAX_LINE_BYTES = 64_000_000
"""A longer line is refused."""
_WHOLE = "Record the run again, or take the file from where it was whole."


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLine:
    """A line whose hash is not that of its content."""

    line: int
    """1-based."""
    what: str
    """Which call, event or text it is."""
    content: Mapping[str, object]


def hash_line(line: Mapping[str, object]) -> str:
    """Return a line with its hash, as it is written."""
    bare = {name: value for name, value in line.items() if name != "sha256"}
    return pack({**bare, "sha256": _digest(bare)})


def read_recording(
    path: Path, name: str, *, forgive: bool = False
) -> tuple[Recording, list[BrokenLine]]:
    """Read a recording.

    Args:
        path: Its file.
        name: What the person calls it.
        forgive: True: lines with a wrong hash are taken as they are, and returned.

    Raises:
        PlanError: It is no recording, of another version, cut, or was changed; the line is named.
    """
    broken: list[BrokenLine] = []
    try:
        with path.open("rb") as file:
            tape = _tape(file, name, broken)
    except OSError as error:
        raise PlanError(
            f"The recording {name!r} cannot be read: {error.strerror}.",
            code="recording-unreadable",
            next_step="Name a file that `mimir execute --record` wrote.",
        ) from None
    if broken and not forgive:
        raise _refused(
            name,
            broken[0].line,
            f"{broken[0].what} was changed: its hash is not that of its content.",
            "recording-changed",
            f"See what the change does: mimir replay {name} --diff",
        )
    if not tape.runs:
        raise _refused(
            name, 1, "There is no run in it.", "recording-empty", "Record one: --record FILE"
        )
    return tape, broken


def _tape(file: Iterable[bytes], name: str, broken: list[BrokenLine]) -> Recording:
    tape = Recording()
    for number, line in _lines(file, name, broken):
        try:
            add(tape, line)
        except (MimirError, ValueError, KeyError, TypeError, RecursionError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise _refused(
                name,
                number,
                f"{_called(line)} cannot be read: {why.removesuffix('.')}.",
                "recording-damaged",
                _WHOLE,
            ) from None
    return in_order(tape)


def _lines(
    file: Iterable[bytes], name: str, broken: list[BrokenLine]
) -> Iterator[tuple[int, Line]]:
    """Yield each line with its number."""
    number = 0
    for number, raw in enumerate(file, start=1):
        line = _line(raw, name, number)
        if "recording" in line:
            _must_be_known(line, name, number)
            continue
        if number == 1:
            raise _not_one(name)
        try:
            digest = _digest({k: v for k, v in line.items() if k != "sha256"})
        except StoreError:  # a number that JSON does not have is read all the same
            raise _no_json(name, number) from None
        if line.get("sha256") != digest:
            broken.append(BrokenLine(line=number, what=_called(line), content=line))
        yield number, line
    if number == 0:
        raise _refused(
            name, 1, "It is empty.", "recording-empty", "Record a run: mimir execute --record FILE"
        )


def _line(raw: bytes, name: str, number: int) -> Line:
    if not raw.endswith(b"\n"):
        raise _refused(
            name,
            number,
            "The recording is cut in the middle of its last line: the process that wrote it was killed.",
            "recording-cut",
            "Go on recording (mimir resume --record FILE), or remove this line.",
        )
    try:
        value = json.loads(raw) if len(raw) <= MAX_LINE_BYTES else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        if number == 1:
            raise _not_one(name)
        raise _no_json(name, number)
    return cast("Line", value)


def _must_be_known(line: Line, name: str, number: int) -> None:
    if line["recording"] != VERSION:
        raise _refused(
            name,
            number,
            f"This recording is of version {str(line['recording'])[:20]!r}; this mimir knows version {VERSION}.",
            "recording-version",
            "Record the run again with this mimir, or use the one that wrote it.",
        )


def _called(line: Mapping[str, object]) -> str:
    """Name what a line holds, for a person."""
    kind = line.get("kind")
    if kind == "call":
        return f"lane {line.get('lane')!s}, call {line.get('seq')!s}"
    if kind == "event":
        return f"event {line.get('seq')!s} ({line.get('event')!s})"
    return f"what is said of {kind!s}"[:80]


def _refused(name: str, line: int, what: str, code: str, step: str) -> PlanError:
    return PlanError(what, at=Location(file=name, line=line), code=code, next_step=step)


def _no_json(name: str, line: int) -> PlanError:
    what = "This line is no JSON object: the recording is cut or was changed here."
    return _refused(name, line, what, "recording-damaged", _WHOLE)


def _not_one(name: str) -> PlanError:
    return _refused(
        name,
        1,
        "This is no recording: its first line does not name a version.",
        "recording-unknown",
        "Name a file that `mimir execute --record` wrote.",
    )


def _digest(line: Mapping[str, object]) -> str:
    return hashlib.sha256(pack(line).encode()).hexdigest()


class RecordingWriter:
    """Writes lines behind a recording's others; readable by its owner alone."""

    def __init__(self, path: Path, name: str, *, engine: str) -> None:
        """Open the file, or make it; half a line at its end is taken away.

        Raises:
            PlanError: Something else is there, or a recording of another version.
        """
        self.healed = False
        """True: half a line was there."""
        self.known: Recording | None = None
        """What was there already."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._mend(descriptor, path, name)
        except BaseException:
            os.close(descriptor)
            raise
        self._file = os.fdopen(descriptor, "ab")
        if self.known is None:
            self.write({"recording": VERSION, "engine": engine})

    def _mend(self, descriptor: int, path: Path, name: str) -> None:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return
        whole = _whole_bytes(path)
        if whole < size:
            os.ftruncate(descriptor, whole)
            self.healed = True
        if whole:
            self.known = read_any(path, name)
        os.lseek(descriptor, 0, os.SEEK_END)

    def write(self, line: Mapping[str, object]) -> None:
        """Write one line; it is with the operating system when this returns, so a kill of the process loses nothing."""
        self._file.write(hash_line(line).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        with contextlib.suppress(OSError):
            self._file.close()


def read_any(path: Path, name: str) -> Recording:
    """Read a recording that may hold no run yet."""
    with path.open("rb") as file:
        return _tape(file, name, [])


def _whole_bytes(path: Path) -> int:
    """Return how many bytes the whole lines at the beginning of a file have."""
    whole = 0
    with path.open("rb") as file:
        for raw in file:
            if not raw.endswith(b"\n"):
                break
            whole += len(raw)
    return whole
