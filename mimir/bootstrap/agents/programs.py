"""Programs of agents: presets, installation, and the start in the sandbox."""

import asyncio
import difflib
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from mimir.attempts.program.journaled_program import ProgramExit, ProgramStart
from mimir.attempts.program.presets import PROGRAM_PRESETS
from mimir.attempts.program.readers import MAX_BYTES
from mimir.domain.agent_definition import AgentDefinition
from mimir.domain.program import PinnedProgram, ProgramPreset
from mimir.domain.value_class import value_class
from mimir.errors import PlanError, UnavailableError
from mimir.settings.model import AgentSettings, ProgramSettings
from mimir.workspace.sandbox import toolchain
from mimir.workspace.sandbox.profile import ProgramProfile
from mimir.workspace.sandbox.sandbox import Sandbox

VERSION_SECONDS = 10.0
GRACE_SECONDS = 10.0
_INHERIT = ("", "inherit")


@value_class
class ProgramEnvironment:
    """Environment of the user that programs may get: the home, and variables by name."""

    home: Path
    path: str
    variables: Mapping[str, str]


def program_environment() -> ProgramEnvironment:
    """Return the environment of this process, as programs may get it."""
    return ProgramEnvironment(
        home=Path.home(), path=os.environ.get("PATH", os.defpath), variables=os.environ
    )


def list_presets(settings: AgentSettings) -> Mapping[str, ProgramPreset]:
    """Return the shipped presets, with those of the user."""
    own = settings.programs
    named = {
        name: _with_settings(PROGRAM_PRESETS.get(name) or ProgramPreset(name=name, command=()), one)
        for name, one in own.items()
    }
    return {**PROGRAM_PRESETS, **named}


def _with_settings(base: ProgramPreset, own: ProgramSettings) -> ProgramPreset:
    given = own.model_fields_set
    return ProgramPreset(
        name=base.name,
        command=tuple(own.command) if "command" in given else base.command,
        prompt=own.prompt if "prompt" in given else base.prompt,
        output=own.output if "output" in given else base.output,
        environment=tuple(own.environment) if "environment" in given else base.environment,
        network=own.network if "network" in given else base.network,
        home=tuple(own.home) if "home" in given else base.home,
        home_writable=tuple(own.home_writable) if "home_writable" in given else base.home_writable,
        version_command=tuple(own.version_command)
        if "version_command" in given
        else base.version_command,
    )


def find_program(preset: ProgramPreset, environment: ProgramEnvironment) -> Path | None:
    """Return the file of a program on this machine; None: it is not installed."""
    found = shutil.which(preset.command[0], path=environment.path) if preset.command else None
    return Path(found) if found else None


def pin_program(
    definition: AgentDefinition, address: str, settings: AgentSettings, *, model: str = ""
) -> PinnedProgram:
    """Return the program of a `cli` definition, to be pinned by a run.

    Raises:
        PlanError: No preset has the name.
        UnavailableError: It is not installed.
    """
    presets, name = list_presets(settings), definition.program
    preset = presets.get(name)
    if preset is None:
        near = difflib.get_close_matches(name, presets, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise PlanError(
            f"{address} names the program {name[:80]!r}, and no preset has this name.{hint}",
            next_step=f"Presets: {', '.join(presets)}; add one in your own settings file: [agents.programs.NAME]",
        )
    if find_program(preset, program_environment()) is None:
        raise UnavailableError(
            f"{address} needs the program {preset.command[0]!r}, which is not installed.",
            next_step=f"Install it, or set agents.programs.{name}.command in your own settings file.",
        )
    # Names of models are those of the program; `agents.models` names those of mimir.
    wanted = model or next(iter(definition.models), "")
    return PinnedProgram(
        preset=preset,
        model="" if wanted in _INHERIT else wanted,
        on_crash=definition.on_crash,
        reserve_tokens=settings.reserve_tokens,
    )


class SandboxedPrograms:
    """Starts programs in the sandbox, each with the profile of its preset."""

    def __init__(
        self,
        sandbox: Sandbox,
        view: Callable[[str], Awaitable[Path]],
        project: Path,
        environment: ProgramEnvironment,
        *,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._sandbox = sandbox
        self._view = view
        self._project = project
        self._environment = environment
        self._grace_seconds = grace_seconds

    async def launch(self, call: ProgramStart, workspace: Path, base_commit: str) -> ProgramExit:
        """Run a program to its end, or end it; then no process of it is left."""
        preset = call.program.preset
        place = await asyncio.to_thread(find_program, preset, self._environment)
        if place is None:
            return ProgramExit(exit_code=None, is_missing=True)
        # First: the program itself may change files of its own.
        version = await self.version(preset, workspace)
        stdout = bytearray()

        def take(piece: bytes) -> None:
            room = MAX_BYTES + 1 - len(stdout)
            if room > 0:
                stdout.extend(piece[:room])

        # By its path: the project must not put a program of this name before it.
        result = await self._sandbox.run(
            (str(place), *call.argv[1:]),
            workspace=workspace,
            seconds=call.seconds,
            project=self._project,
            view=await self._view(base_commit) if base_commit else None,
            env=self._variables(preset),
            on_output=take,
            profile=self._profile(preset, place, call.stdin),
        )
        return ProgramExit(
            exit_code=result.exit_code,
            stop=result.stop_reason,
            stdout=bytes(stdout),
            shown=result.output,
            stderr=result.errors,
            is_missing=result.is_program_missing and result.exit_code is None,
            version=version,
        )

    async def version(self, preset: ProgramPreset, workspace: Path) -> str:
        """Return the first line of a program's version; empty: it printed none."""
        if not preset.version_command:
            return ""
        found = shutil.which(preset.version_command[0], path=self._environment.path)
        if found is None:
            return ""
        result = await self._sandbox.run(
            (found, *preset.version_command[1:]),
            workspace=workspace,
            writable=False,
            seconds=VERSION_SECONDS,
            project=self._project,
            profile=replace(self._profile(preset, Path(found), ""), network=False),
        )
        # A program that fails here may still work.
        lines = result.output.strip().splitlines() if result.exit_code == 0 else []
        return lines[0][:100] if lines else ""

    def _profile(self, preset: ProgramPreset, place: Path, stdin: str) -> ProgramProfile:
        home = self._environment.home
        return ProgramProfile(
            user_home=home,
            network=preset.network,
            home=tuple(_path(one, home) for one in preset.home),
            home_writable=tuple(_path(one, home) for one in preset.home_writable),
            programs=_folders(place),
            stdin=stdin.encode("utf-8", "replace"),
            grace_seconds=self._grace_seconds,
            output_bytes=MAX_BYTES,
        )

    def _variables(self, preset: ProgramPreset) -> Mapping[str, str]:
        known = self._environment.variables
        return {name: known[name] for name in preset.environment if name in known}


def _path(text: str, home: Path) -> Path:
    return home / text.removeprefix("~/")


def _folders(place: Path) -> tuple[Path, ...]:
    """Return the folders that hold a program: those of its link and of its file."""
    found: list[Path] = []
    for path in dict.fromkeys((place, Path(os.path.realpath(place)))):
        names = path.parts
        # A package of npm needs the packages beside it.
        end = names.index("node_modules") + 1 if "node_modules" in names else -1
        found.append(Path(*names[:end]))
    return tuple(one for one in dict.fromkeys(found) if not toolchain.is_system(one))
