"""One run of one check: a clean checkout, the sandbox, what came out. Nothing here decides what a run proves.

A run sees exactly one tree and, as a read-only file at `$MIMIR_ANSWER`, the worker's closing answer (empty before the work). Its directory
is made for it and removed after it, however it ends.
"""

import asyncio
import contextlib
import hashlib
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.errors import Paused, SandboxError, WorkspaceError
from mimir.qc.commandline import commands, shell_line
from mimir.workspace.clearing import remove

Phase = Literal["before", "after", "merged", "gate"]

MAX_TAIL = 16_000
"""Characters kept of a run's output; its end, where test runners sum up."""
WORKSPACE = "/workspace"
"""Where commands find the checkout; stands in outputs instead of any real path."""
ANSWER_VARIABLE = "MIMIR_ANSWER"


class Ran(Protocol):
    """What a command did."""

    @property
    def exit_code(self) -> int | None:
        """None: killed, or never started."""
        ...

    @property
    def output(self) -> str:
        """Standard output and error, mixed; bounded by the sandbox."""
        ...

    @property
    def seconds(self) -> float:
        """How long it took."""
        ...

    @property
    def timed_out(self) -> bool:
        """True: it was ended with all its processes."""
        ...

    @property
    def missing(self) -> bool:
        """True: there is no such program."""
        ...


class Sandbox(Protocol):
    """Runs commands with nothing but a workspace."""

    @property
    def name(self) -> str:
        """Back-end: "bubblewrap", or "none"."""
        ...

    async def run(
        self, argv: Sequence[str], *, workspace: Path, seconds: float, answer: Path | None
    ) -> Ran:
        """Run once to the end; `answer` is shown read-only at `$MIMIR_ANSWER`.

        Raises:
            SandboxError: It is missing or broken; nothing was run.
        """
        ...


class Checkouts(Protocol):
    """Writes trees into directories."""

    async def checkout(self, tree: str, where: Path, /) -> None:
        """Make `where` exactly `tree`; the directory is new."""
        ...


class Execution:
    """Runs checks, a few at once."""

    def __init__(
        self,
        *,
        history: Checkouts,
        sandbox: Sandbox,
        room: Path,
        redact: Callable[[str], str] = str,
        at_once: int = 2,
    ) -> None:
        """Bind it to its services.

        Args:
            history: Where trees come from.
            sandbox: Where commands run.
            room: Directory for the checkouts; made if it is not there.
            redact: Replaces secrets; applied to the whole output, before it is cut.
            at_once: Runs under way at the same time, over all tasks.
        """
        self._history = history
        self._sandbox = sandbox
        self._room = room
        self._redact = redact
        self._slots = asyncio.Semaphore(at_once)

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        """Run a check on a tree.

        Raises:
            Paused: The sandbox or the disk is gone; nothing is said of the check.
        """
        async with self._slots:
            try:
                ran, place = await self._in_a_room(check, tree, answer)
            except SandboxError as error:
                raise Paused(
                    f"The sandbox stopped working, so check {check.id!r} cannot be run: {error}",
                    reason="sandbox",
                    next_step=error.next_step
                    or "See what is wrong with `mimir doctor`, then: mimir resume",
                ) from error
            except OSError as error:
                raise Paused(
                    f"No directory for check {check.id!r} can be made: {error.strerror}",
                    reason="disk",
                    next_step="Make room, then: mimir resume",
                ) from error
        output = ran.output.replace(str(place), WORKSPACE)
        return CheckRun(
            check=check.id,
            argv=check.argv,
            phase=phase,
            tree=tree,
            exit_code=ran.exit_code,
            timed_out=ran.timed_out,
            missing=is_missing(check.argv, ran),
            seconds=round(ran.seconds, 3),
            output_hash=hashlib.sha256(ran.output.encode("utf-8", "surrogatepass")).hexdigest(),
            output_tail=_tail(self._redact(output)),
            sandbox=self._sandbox.name,
            again=again,
        )

    async def _in_a_room(self, check: Check, tree: str, answer: str) -> tuple[Ran, Path]:
        """Run in a directory of its own; the place is returned so that it can be hidden in the output."""
        self._room.mkdir(parents=True, exist_ok=True, mode=0o700)
        room = Path(tempfile.mkdtemp(dir=self._room, prefix="check-"))
        try:
            place, paper = room / "workspace", room / "answer.md"
            paper.write_text(answer, encoding="utf-8", errors="backslashreplace")
            paper.chmod(0o444)
            await self._history.checkout(tree, place)
            ran = await self._sandbox.run(
                check.argv, workspace=place, seconds=check.timeout_seconds, answer=paper
            )
            return ran, place
        finally:
            await _remove(room)


async def _remove(room: Path) -> None:
    """Remove a run's directory, also when this task is cancelled meanwhile; what resists stays."""
    removal = asyncio.ensure_future(asyncio.to_thread(remove, room))
    with contextlib.suppress(WorkspaceError):
        try:
            await asyncio.shield(removal)
        except asyncio.CancelledError:
            await removal
            raise


def is_missing(argv: Sequence[str], ran: Ran) -> bool:
    """True if the program of a check, or the Python module that it names, is not there.

    A worker can print the same words; that makes its check `unverified` or `failed`, never passed.
    """
    if ran.missing:
        return True
    if ran.exit_code == 127 and shell_line(argv) is not None:
        return True
    if not ran.exit_code:
        return False
    last = ran.output.rstrip().rpartition("\n")[2]
    return any(
        one.module and re.search(rf"python\S*: No module named '?{re.escape(one.program)}\b", last)
        for one in commands(argv)
    )


def _tail(output: str) -> str:
    """Return the bounded end of an output, with a mark where it was cut."""
    if len(output) <= MAX_TAIL:
        return output
    return f"[… {len(output) - MAX_TAIL} characters before]\n{output[-MAX_TAIL:]}"
