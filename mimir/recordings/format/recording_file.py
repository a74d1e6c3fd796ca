"""File of a recording: a version line, then one JSON object a line, each with its hash.

Lines are only appended. A killed process leaves at most half a line at the end: a writer removes and reports it, a reader refuses it.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mimir.domain.json_value import is_object
from mimir.domain.value_class import value_class
from mimir.errors import Location, MimirError, PlanError, StoreError
from mimir.recordings.format.recording import Recording, add, in_order
from mimir.recordings.format.recording_export import Line
from mimir.store.schema import pack

VERSION = 1
"""Version of the format; grows with every change that an older mimir cannot read."""
MAX_LINE_BYTES = 64_000_000
"""A longer line is refused."""
_WHOLE = "Record the run again, or restore the file from a complete copy."


@value_class
class BrokenLine:
    """Line whose hash is not that of its content."""

    line: int
    """1-based."""
    label: str
    """Call, event or text in it."""
    content: Mapping[str, object]


def hash_line(line: Mapping[str, object]) -> str:
    """Return a line with its hash, in the form of the file."""
    # The hash is not part of its own input.
    bare = {name: value for name, value in line.items() if name != "sha256"}
    return pack({**bare, "sha256": _digest(bare)})


def read_recording(
    path: Path, name: str, *, forgive: bool = False
) -> tuple[Recording, list[BrokenLine]]:
    """Read a recording.

    Args:
        path: Its file.
        name: Its name for messages.
        forgive: True: lines with a wrong hash are accepted, and returned.

    Raises:
        PlanError: It is not a recording, has another version, is cut or changed; the message names the line.
    """
    broken: list[BrokenLine] = []
    try:
        with path.open("rb") as file:
            recording = _build_recording(file, name, broken)
    except OSError as error:
        raise PlanError(
            f"The recording {name!r} cannot be read: {error.strerror}.",
            code="recording-unreadable",
            next_step="Name a file that `mimir execute --record` wrote.",
        ) from None
    # A replay reports changed lines as differences; other commands refuse them.
    if broken and not forgive:
        raise _line_error(
            name,
            broken[0].line,
            f"{broken[0].label} was changed: its hash is not that of its content.",
            "recording-changed",
            f"See the effect of the change: mimir replay {name} --diff",
        )
    if not recording.runs:
        raise _line_error(
            name, 1, "The recording has no run.", "recording-empty", "Record one: --record FILE"
        )
    return recording, broken


def _build_recording(file: Iterable[bytes], name: str, broken: list[BrokenLine]) -> Recording:
    recording = Recording()
    for number, line in _lines(file, name, broken):
        try:
            add(recording, line)
        except (MimirError, ValueError, KeyError, TypeError, RecursionError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise _line_error(
                name,
                number,
                f"{_content_label(line)} cannot be read: {reason.removesuffix('.')}.",
                "recording-damaged",
                _WHOLE,
            ) from None
    return in_order(recording)


def _lines(
    file: Iterable[bytes], name: str, broken: list[BrokenLine]
) -> Iterator[tuple[int, Line]]:
    """Yield each line with its number."""
    number = 0
    for number, raw in enumerate(file, start=1):
        line = _line(raw, name, number)
        # Recordings can be concatenated, so a version may stand in any line.
        if "recording" in line:
            _check_version(line, name, number)
        elif number == 1:
            raise _not_a_recording(name)
        try:
            digest = _digest({k: v for k, v in line.items() if k != "sha256"})
        except StoreError:  # such as NaN, which `json.loads` accepts
            raise _not_json(name, number) from None
        if line.get("sha256") != digest:
            broken.append(BrokenLine(line=number, label=_content_label(line), content=line))
        yield number, line
    if number == 0:
        raise _line_error(
            name,
            1,
            "The recording is empty.",
            "recording-empty",
            "Record a run: mimir execute --record FILE",
        )


def _line(raw: bytes, name: str, number: int) -> Line:
    if not raw.endswith(b"\n"):
        raise _line_error(
            name,
            number,
            "The recording is cut in the middle of its last line: the process that wrote it was killed.",
            "recording-cut",
            "Continue recording (mimir resume --record FILE), or remove this line.",
        )
    try:
        # A limit: a parsed line takes many times its own memory.
        value: object = json.loads(raw) if len(raw) <= MAX_LINE_BYTES else None
    except (ValueError, RecursionError):
        value = None
    if not is_object(value):
        if number == 1:
            raise _not_a_recording(name)
        raise _not_json(name, number)
    return dict(value)


def _check_version(line: Line, name: str, number: int) -> None:
    if line["recording"] != VERSION:
        raise _line_error(
            name,
            number,
            f"This recording is of version {str(line['recording'])[:20]!r}; this mimir knows version {VERSION}.",
            "recording-version",
            "Record the run again with this mimir, or use the one that wrote it.",
        )


def _content_label(line: Mapping[str, object]) -> str:
    """Name the content of a line for the user."""
    if "recording" in line:
        return "the version line"
    kind = line.get("kind")
    if kind == "call":
        return f"lane {line.get('lane')!s}, call {line.get('seq')!s}"
    if kind == "event":
        return f"event {line.get('seq')!s} ({line.get('event')!s})"
    return f"the line of kind {kind!s}"[:80]


def _line_error(name: str, line: int, message: str, code: str, step: str) -> PlanError:
    return PlanError(message, at=Location(file=name, line=line), code=code, next_step=step)


def _not_json(name: str, line: int) -> PlanError:
    message = "This line is not a JSON object: the recording is cut or changed here."
    return _line_error(name, line, message, "recording-damaged", _WHOLE)


def _not_a_recording(name: str) -> PlanError:
    return _line_error(
        name,
        1,
        "This is not a recording: its first line has no version.",
        "recording-unknown",
        "Name a file that `mimir execute --record` wrote.",
    )


def _digest(line: Mapping[str, object]) -> str:
    return hashlib.sha256(pack(line).encode()).hexdigest()


class RecordingWriter:
    """Appends lines to a recording, which only its owner can read."""

    def __init__(self, path: Path, name: str, *, engine: str) -> None:
        """Open or create the file; half a line at its end is removed.

        Raises:
            PlanError: The file is not a recording, or one of another version.
        """
        self.healed = False
        """True: half a line was removed."""
        self.known: Recording | None = None
        """Content of the file before. None: it was empty."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # 0600: requests and answers may be confidential.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._repair(descriptor, path, name)
        except BaseException:
            os.close(descriptor)
            raise
        self._file = os.fdopen(descriptor, "ab")
        # A report belongs to the version that writes it: another version gets its own line.
        if self.known is None or self.known.engine != engine:
            self.write({"recording": VERSION, "engine": engine})

    def _repair(self, descriptor: int, path: Path, name: str) -> None:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return
        whole = _whole_bytes(path)
        if whole < size:
            # The store has the line: it is written again.
            os.ftruncate(descriptor, whole)
            self.healed = True
        if whole:
            self.known = read_any(path, name)
        os.lseek(descriptor, 0, os.SEEK_END)

    def write(self, line: Mapping[str, object]) -> None:
        """Write one line; a kill of the process afterwards does not lose it."""
        self._file.write(hash_line(line).encode() + b"\n")
        self._file.flush()  # to the operating system, which a kill does not affect

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()


def read_any(path: Path, name: str) -> Recording:
    """Read a recording that may have no run yet."""
    with path.open("rb") as file:
        return _build_recording(file, name, [])


def _whole_bytes(path: Path) -> int:
    """Return the size of the complete lines of a file."""
    whole = 0
    with path.open("rb") as file:
        for raw in file:
            # Only the last line can be incomplete: lines are appended.
            if not raw.endswith(b"\n"):
                break
            whole += len(raw)
    return whole
