"""One run of one check: a clean checkout, the sandbox, what came out. Nothing here decides what a run proves.

A run sees exactly one tree and, as a read-only file at `$MIMIR_ANSWER`, the worker's closing answer (empty before the work). Its directory
is made for it and removed after it, however it ends.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.errors import Paused, SandboxError, ToolError, WorkspaceError
from mimir.qc.evidence.seal import fingerprint
from mimir.qc.integrity import supervision
from mimir.qc.integrity.runner_output import SHORTENED, is_cut_short, verbose_environment
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.tree_removal import remove_tree

Phase = Literal["before", "after", "merged", "gate"]

MAX_TAIL = 16_000
"""Characters kept of a run's output; its end, where test runners sum up."""
WORKSPACE = "/workspace"
"""Where commands find the checkout; stands in outputs instead of any real path."""
ANSWER_VARIABLE = "MIMIR_ANSWER"
ANSWER_PATH = "/mimir/answer.md"
"""Where the closing answer stands for a command."""


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
    def output_hash(self) -> str:
        """SHA-256 of the whole output."""
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
    def is_program_missing(self) -> bool:
        """True: the program, or the module that it names, is not on this machine."""
        ...

    @property
    def backend(self) -> str:
        """What confined it: "bubblewrap", or "none"."""
        ...


class Sandbox(Protocol):
    """Runs commands with nothing but a workspace."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        seconds: float,
        extra_ro: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run once to the end.

        Args:
            argv: Program and arguments.
            workspace: Directory that it sees as `/workspace`.
            seconds: Wall clock.
            extra_ro: More read-only files, by their path inside.
            env: More environment.

        Raises:
            SandboxError: It is missing or broken; nothing was run.
            ToolError: No program is named, or none can be given such a word.
        """
        ...


class CheckoutWriter(Protocol):
    """Writes trees into directories."""

    async def checkout(self, tree: str, where: Path, /) -> None:
        """Make `where` exactly `tree`; the directory is new."""
        ...


class CheckExecution:
    """Runs checks, a few at once."""

    def __init__(
        self,
        *,
        history: CheckoutWriter,
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
                ran, room = await self._in_a_room(check, tree, answer)
            except ToolError as error:
                # No program can be started with such words: for the plan that is a program that is not there.
                return _unstartable_run(check, tree, phase, str(error), again=again)
            except SandboxError as error:
                raise Paused(
                    f"The sandbox stopped working, so check {check.id!r} cannot be run: {error}",
                    reason="sandbox",
                    next_step=error.next_step or _DOCTOR,
                ) from error
            except (OSError, WorkspaceError) as error:
                raise Paused(
                    f"The tree for check {check.id!r} cannot be laid out: {error}",
                    reason="disk",
                    next_step="Make room, then: mimir resume",
                ) from error
        cut_short = ran.exit_code == 0 and is_cut_short(check.argv, ran.output)
        output = ran.output.replace(str(room / _PLACE), WORKSPACE).replace(str(room), "/mimir")
        return CheckRun(
            check=check.id,
            argv=check.argv,
            phase=phase,
            tree=tree,
            exit_code=ran.exit_code,
            timed_out=ran.timed_out,
            missing=ran.is_program_missing,
            cut_short=cut_short,
            seconds=round(ran.seconds, 3),
            output_hash=ran.output_hash,
            output_tail=_tail(self._redact(output)),
            sandbox=ran.backend,
            again=again,
        )

    async def _in_a_room(self, check: Check, tree: str, answer: str) -> tuple[Ran, Path]:
        """Run in a directory of its own; it is returned so that it can be hidden in the output."""
        self._room.mkdir(parents=True, exist_ok=True, mode=0o700)
        room = Path(tempfile.mkdtemp(dir=self._room, prefix="check-"))
        try:
            paper = room / "answer.md"
            paper.write_text(answer, encoding="utf-8", errors="backslashreplace")
            paper.chmod(0o444)
            await self._history.checkout(tree, room / _PLACE)
            ran = await self._sandbox.run(
                check.argv,
                workspace=room / _PLACE,
                seconds=check.timeout_seconds,
                extra_ro={ANSWER_PATH: paper},
                env={
                    ANSWER_VARIABLE: ANSWER_PATH,
                    **verbose_environment(check.argv),
                    **supervision.environment(check.argv),
                },
            )
            return ran, room
        finally:
            await _remove(room)


_PLACE = "workspace"
_DOCTOR = "See what is wrong with `mimir doctor`, then: mimir resume"


def _unstartable_run(check: Check, tree: str, phase: Phase, why: str, *, again: bool) -> CheckRun:
    return CheckRun(
        check=check.id,
        argv=check.argv,
        phase=phase,
        tree=tree,
        exit_code=None,
        missing=True,
        output_hash=fingerprint(why),
        output_tail=why,
        again=again,
    )


async def _remove(room: Path) -> None:
    """Remove a run's directory, also when this task is cancelled meanwhile; what resists stays."""
    with contextlib.suppress(WorkspaceError):
        await to_thread_shielded(remove_tree, room)


def _tail(output: str) -> str:
    """Return the bounded end of an output, with a mark where it was cut."""
    if len(output) <= MAX_TAIL:
        return output
    return f"{SHORTENED}{len(output) - MAX_TAIL} characters before]\n{output[-MAX_TAIL:]}"
