"""The file `.mimir/LEDGER.md`: written from the store, read for the edits of a user."""

from collections.abc import Callable
from pathlib import Path

from mimir.errors import MimirError
from mimir.orchestrator.patterns.ledger import Ledger, LedgerEdits, find_edits, parse, render
from mimir.workspace.state_dir import ROOM, write_state_file

LEDGER = f"{ROOM}/LEDGER.md"
_WRITTEN = f"{ROOM}/ledger-written.md"
"""The last two texts of the engine, the newest first; a difference is an edit of the user."""
_BETWEEN = "\0"
MOST_BYTES = 1 << 20


def read_edits(project: Path) -> LedgerEdits:
    """Return the edits of a user that wait for `mimir ledger --sync`."""
    current = _read(project / LEDGER)
    return (
        LedgerEdits() if current is None else find_edits(_find_written(project, current), current)
    )


def write_ledger(project: Path, ledger: Ledger, say: Callable[[str], object]) -> None:
    """Write the ledger; restore other edits and name them; edits that wait stay in it.

    Args:
        project: Directory of the project.
        ledger: State of the run.
        say: Called with one message if lines were restored.
    """
    edits = read_edits(project)
    if edits.others and (project / _WRITTEN).exists():
        lines = "; ".join(line[:80] for line in edits.others[:3])
        rest = f" and {len(edits.others) - 3} more" if len(edits.others) > 3 else ""
        say(f"{LEDGER}: an edit here has no effect and was undone: {lines}{rest}")
    _write(project, ledger, edits)


def forget_edits(project: Path, ledger: Ledger, stored: LedgerEdits) -> None:
    """Write the ledger without edits that were stored; those of a later moment stay in it."""
    now = read_edits(project)
    left = LedgerEdits(
        added=tuple(one for one in now.added if one not in stored.added),
        removed=tuple(one for one in now.removed if one not in stored.removed),
        handoff=tuple(one for one in now.handoff if one not in stored.handoff),
    )
    _write(project, ledger, left)


def _write(project: Path, ledger: Ledger, edits: LedgerEdits) -> None:
    # First the text to compare with: a crash in between must not look like an edit.
    before = _find_written(project, _read(project / LEDGER) or "")
    write_state_file(project, _WRITTEN, f"{render(ledger)}{_BETWEEN}{before}".encode())
    write_state_file(project, LEDGER, render(ledger, edits).encode())


def try_write_ledger(project: Path, ledger: Ledger, say: Callable[[str], object]) -> None:
    """Write the ledger if the disk permits it: a run never fails because of it."""
    try:
        write_ledger(project, ledger, say)
    except (MimirError, OSError) as error:
        say(f"{LEDGER} was not written: {error}")


def _find_written(project: Path, current: str) -> str:
    """Return the text of the engine that the file was before its edits.

    A crash between the two writes leaves the older text in the file: its time tells them apart.
    """
    versions = (_read(project / _WRITTEN) or "").split(_BETWEEN)
    at = parse(current).updated
    return next((one for one in versions if at and parse(one).updated == at), versions[0])


def _read(path: Path) -> str | None:
    """Return the text of a file; None: there is none, it is a link, or it is too large."""
    try:
        if path.is_symlink() or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
