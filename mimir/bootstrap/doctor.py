"""`mimir doctor`: requirements of mimir on this machine; creates nothing in the project."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from mimir.bootstrap import stores
from mimir.bootstrap.agents.programs import (
    SandboxedPrograms,
    find_program,
    list_presets,
    program_environment,
)
from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.git_program import find_git, git_login
from mimir.bootstrap.models.model_check import DoctorFinding, check_models
from mimir.bootstrap.models.project_tests import find_tests
from mimir.bootstrap.project_services import make_sandbox
from mimir.domain.clock import moment
from mimir.errors import MimirError, UnavailableError
from mimir.orchestrator.sandbox_facts import find_programs
from mimir.settings.layers import LoadedSettings
from mimir.settings.model import Settings
from mimir.store.neo4j.address import is_address
from mimir.workspace.git.git_command import GitCommand
from mimir.workspace.sandbox.sandbox import Sandbox
from mimir.workspace.state_dir import ROOM

LEAST_DISK = 1_000_000_000
"""Bytes; checkouts and caches of a run need about this."""
MOST_SECONDS_APART = 5.0
"""Largest harmless difference between the clocks of this machine and of the store."""


async def examine(project: Path, loaded: LoadedSettings, *, ask: bool) -> Sequence[DoctorFinding]:
    """Return working and broken parts; with `ask`, the model gets one short request."""
    async with temporary_sandbox(loaded) as sandbox:
        return (
            await _check_store(project, loaded),
            *await _check_git(project),
            *await _check_sandbox(sandbox, project),
            DoctorFinding(
                subject="python", ok=True, detail=f"{platform.python_version()}, {sys.executable}"
            ),
            _check_disk(project),
            *_check_programs(project, loaded.settings),
            *await _check_agent_programs(sandbox, project, loaded.settings),
            *await check_models(loaded, ask=ask),
        )


@asynccontextmanager
async def temporary_sandbox(loaded: LoadedSettings) -> AsyncGenerator[Sandbox]:
    """Open a sandbox without a state directory of a project."""
    # The state directory of the project may not exist, and is not created.
    with tempfile.TemporaryDirectory(prefix="mimir-doctor-") as place:
        os.mkdir(f"{place}/work")  # noqa: PTH102  at once, unlike a path of the project
        yield make_sandbox(loaded.settings, Path(place), SystemClock())


async def _check_store(project: Path, loaded: LoadedSettings) -> DoctorFinding:
    settings, room = loaded.settings, project / ROOM
    is_server = is_address(settings.store)
    if (
        not is_server
        and not (Path(settings.store) if settings.store else room / stores.FILE).exists()
    ):
        place = settings.store or f"{ROOM}/{stores.FILE}"
        return DoctorFinding(subject="store", ok=True, detail=f"{place}, not created yet")
    try:
        if is_server:
            await stores.check_connection(settings)
        notes: list[str] = []
        opening = stores.opened_store(settings, room, say=notes.append, create=False)
        async with opening as store:
            apart = moment(await store.read(lambda reads: reads.now())) - SystemClock().now()
            uri = store.uri
    except MimirError as error:
        return DoctorFinding(
            subject="store", ok=False, detail=str(error), fix=error.next_step or ""
        )
    seconds = abs(apart.total_seconds())
    if seconds > MOST_SECONDS_APART:
        return DoctorFinding(
            subject="store",
            ok=False,
            detail=f"{uri}: its clock and this one are {seconds:.0f} s apart",
            fix="Set the clocks of both machines, for example by NTP: leases depend on them.",
        )
    return DoctorFinding(subject="store", ok=True, detail="; ".join([uri, *notes]))


async def _check_git(project: Path) -> Sequence[DoctorFinding]:
    try:
        git = GitCommand(directory=None, program=find_git())
    except UnavailableError as error:
        return [
            DoctorFinding(subject="git", ok=False, detail=str(error), fix=error.next_step or "")
        ]
    version = (await git.run("--version", ok=None)).word.removeprefix("git version ")
    own = git_login()
    asked = [
        await git.run("-C", str(project), "config", "--get", f"user.{name}", ok=None, extra=own)
        for name in ("name", "email")
    ]
    found = DoctorFinding(subject="git", ok=True, detail=version)
    if all(one.code == 0 and one.word for one in asked):
        return [found, DoctorFinding(subject="git identity", ok=True, detail=asked[0].word)]
    fix = 'Only --apply commit needs one: git config --global user.name "NAME"'
    return [found, DoctorFinding(subject="git identity", ok=False, detail="none", fix=fix)]


async def _check_sandbox(sandbox: Sandbox, project: Path) -> Sequence[DoctorFinding]:
    probe = await sandbox.probe()
    found = [
        DoctorFinding(
            subject="sandbox",
            ok=probe.ok,
            detail=probe.backend if probe.ok else probe.problem,
            fix="" if probe.ok else probe.fix,
        )
    ]
    try:
        lines = [*(await sandbox.shared_view(project)).describe()]
    except MimirError as error:
        fix = error.next_step or ""
        return [*found, DoctorFinding(subject="shared", ok=False, detail=str(error), fix=fix)]
    if probe.layer_problem and lines:
        lines.append(f"read-only, because the kernel refuses overlays: {probe.layer_problem}")
    return [*found, *(DoctorFinding(subject="shared", ok=True, detail=line) for line in lines)]


def _check_disk(project: Path) -> DoctorFinding:
    free = shutil.disk_usage(project).free
    detail = f"{free / 1e9:.1f} GB free"
    fix = "" if free >= LEAST_DISK else "Free disk space: a run needs about 1 GB."
    return DoctorFinding(subject="disk", ok=not fix, detail=detail, fix=fix)


def _check_programs(project: Path, settings: Settings) -> Sequence[DoctorFinding]:
    """Find the programs that the files of the project ask for, and its test command."""
    try:
        names = sorted(os.listdir(project))[:10_000]  # noqa: PTH208  names alone
    except OSError:
        return []
    places = {program: shutil.which(program) for program in find_programs(names)}
    here = ", ".join(program for program, place in places.items() if place)
    gone = ", ".join(program for program, place in places.items() if not place)
    detail = f"{here or 'none'}{f'; not here: {gone}' if gone else ''}"

    command = settings.checks.test_command or find_tests(project)
    return [
        DoctorFinding(subject="programs", ok=True, detail=detail),
        DoctorFinding(subject="test command", ok=True, detail=command or "none found"),
    ]


async def _check_agent_programs(
    sandbox: Sandbox, project: Path, settings: Settings
) -> Sequence[DoctorFinding]:
    """Return the versions of installed programs of agents, and those that are missing."""
    environment = program_environment()
    programs = SandboxedPrograms(sandbox, _no_view, project, environment)
    found: list[DoctorFinding] = []
    for name, preset in list_presets(settings.agents).items():
        subject = f"program {name}"
        if find_program(preset, environment) is None:
            if name in settings.agents.programs:
                fix = f"Install it, or correct agents.programs.{name}.command in your own settings."
                detail = f"{preset.command[0]} is not installed"
                found.append(DoctorFinding(subject=subject, ok=False, detail=detail, fix=fix))
            continue
        try:
            # The program sees an empty workspace, not the project.
            with tempfile.TemporaryDirectory(prefix="mimir-doctor-") as place:
                version = await programs.version(preset, Path(place))
        except MimirError as error:
            version = str(error)
        found.append(DoctorFinding(subject=subject, ok=True, detail=version or "version not known"))
    return found


async def _no_view(commit: str) -> Path:
    raise UnavailableError(f"No history shows {commit!r} here.")


def redact_findings(
    found: Sequence[DoctorFinding], loaded: LoadedSettings
) -> Sequence[DoctorFinding]:
    """Return the findings without secrets and without the name of the home directory."""
    home = str(Path.home())

    def clean(text: str) -> str:
        for secret in loaded.secrets:
            text = text.replace(secret, "********")
        return text.replace(home, "~") if len(home) > 1 else text

    return [replace(one, detail=clean(one.detail), fix=clean(one.fix)) for one in found]
