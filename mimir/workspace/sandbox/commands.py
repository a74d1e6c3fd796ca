"""Composition of commands, with or without the sandbox; it starts nothing."""

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mimir.errors import ToolError
from mimir.workspace.paths import make_directories
from mimir.workspace.sandbox import mounts, toolchain
from mimir.workspace.sandbox.process import ProcessLimits, SandboxCommand
from mimir.workspace.tree_removal import give_all

# How bubblewrap gets its rights: by a user namespace, or as root.
Recipe = Literal["user", "root"]

# The sandboxes of root share one user, whose processes are counted together. Each has its own
# limit (see `cgroups`); this one is the last resort.
_ROOT_PROCESS_FACTOR = 8
_OFFLINE = ("CARGO_NET_OFFLINE", "UV_OFFLINE")


def sandbox_command(
    program: Path,
    recipe: Recipe,
    argv: Sequence[str],
    wanted: mounts.MountRequest,
    env: Mapping[str, str],
    limits: ProcessLimits,
) -> SandboxCommand:
    """Compose a command in the sandbox and prepare its workspace. Blocking."""
    layout = mounts.lay_out(wanted, as_root=recipe == "root")
    # With a user namespace, root's command is root outside; otherwise it is `USER`.
    owner = mounts.USER if recipe == "root" else os.geteuid()
    _copy_files(wanted)
    for place in (wanted.workspace, *(wanted.extra_rw or {}).values()):
        give_all(place, (owner, owner))
    environment = _environment(layout.path, has_project_python=layout.has_project_python)
    environment |= wanted.shared.variables
    command = SandboxCommand(
        sandbox=str(program),
        options=layout.options,
        contents=layout.contents,
        interpreter=str(toolchain.interpreter()),
        become=tuple(argv),
        environment=_put_first({**environment, **env}, wanted.first or {}),
        limits=_limits(limits, recipe),
        user=mounts.USER if recipe == "root" else None,
        directory=mounts.WORKSPACE,
    )
    profile = wanted.profile
    if profile is None:
        return command
    if profile.network:
        environment = {k: v for k, v in command.environment.items() if k not in _OFFLINE}
        command = replace(command, environment=environment)
    return replace(
        command,
        stdin=profile.stdin,
        grace_seconds=profile.grace_seconds,
        output_bytes=profile.output_bytes,
    )


def plain_command(
    argv: Sequence[str], wanted: mounts.MountRequest, env: Mapping[str, str], limits: ProcessLimits
) -> SandboxCommand:
    """Compose a command without sandbox; paths of the sandbox become real ones."""
    project = wanted.project or wanted.workspace
    first = [
        str(top / name / "bin")
        for top in (wanted.workspace, project)
        for name in toolchain.ENVIRONMENTS
        if (top / name / "bin").is_dir()
    ]
    shared = {path.name: path.source for path in wanted.shared.folders}
    first += [str(shared[name] / "bin") for name in toolchain.ENVIRONMENTS if name in shared]
    _copy_files(wanted)
    path = toolchain.search_path(first[:1], wanted.read_only, wanted.shared.path)
    environment = _environment(path, has_project_python=bool(first))
    # Otherwise git finds the user's repository above the workspace.
    environment["GIT_CEILING_DIRECTORIES"] = str(wanted.workspace.parent)
    given = _put_first({**environment, **env}, wanted.first or {})
    return SandboxCommand(
        sandbox=None,
        interpreter=str(toolchain.interpreter()),
        become=tuple(_real_paths(word, wanted) for word in argv),
        environment={name: _real_paths(value, wanted) for name, value in given.items()},
        limits=_limits(limits, None),
        user=None,
        directory=str(wanted.workspace),
    )


def _put_first(environment: Mapping[str, str], first: Mapping[str, str]) -> dict[str, str]:
    """Put values before those of variables that hold lists."""
    result = dict(environment)
    for name, value in first.items():
        between = " " if name == "NODE_OPTIONS" else os.pathsep
        result[name] = between.join(part for part in (value, result.get(name, "")) if part)
    return result


def _real_paths(text: str, wanted: mounts.MountRequest) -> str:
    """Replace paths of the sandbox by those of this machine."""
    if text == mounts.WORKSPACE:
        return str(wanted.workspace)
    for target, source in {**(wanted.extra or {}), **(wanted.extra_rw or {})}.items():
        text = text.replace(target, str(source))
    return text


def _copy_files(wanted: mounts.MountRequest) -> None:
    """Copy shared files into a workspace that lacks them; git ignores them there too."""
    for path in wanted.shared.files:
        place = wanted.workspace / path.name
        if path.name.startswith("/") or os.path.lexists(place):
            continue
        # A directory that is a link leads out of the workspace: nothing is copied there.
        with contextlib.suppress(ToolError, FileNotFoundError):
            if "/" in path.name:
                make_directories(wanted.workspace, path.name.rpartition("/")[0])
            shutil.copyfile(path.source, place, follow_symlinks=True)
            # The time too: a build tool must find changed sources newer than their product.
            shutil.copystat(path.source, place)


def require_words(argv: Sequence[str]) -> None:
    """Raise ToolError if no program can be started with this command."""
    if not argv or not argv[0]:
        raise ToolError("No program is named. Give one, such as ['python', '-m', 'pytest'].")
    for word in argv:
        try:
            if b"\0" in os.fsencode(word):
                raise ToolError("A word of the command holds a NUL character. Remove it.")
        except UnicodeEncodeError:
            raise ToolError(
                "A word of the command holds characters that cannot be given to a program."
            ) from None


def _environment(path: str, *, has_project_python: bool) -> dict[str, str]:
    environment = {
        "PATH": path,
        "HOME": mounts.HOME,
        "USER": "mimir",
        "LOGNAME": "mimir",
        # As at a user's terminal: scripts start it, and `/bin/sh` may lack the options of bash.
        "SHELL": shutil.which("bash", path=path) or "/bin/sh",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        # As on a build server, where the tests of projects pass. NO_COLOR would fail tests of colours;
        # codes are removed from the output instead.
        "TERM": "dumb",
        "CI": "1",
        # There is no network: package managers must use their caches at once.
        "CARGO_NET_OFFLINE": "true",
        "RUSTUP_AUTO_INSTALL": "0",
        "UV_OFFLINE": "1",
        "npm_config_update_notifier": "false",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # Repeatable: no leftover bytecode, the same order of sets.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    if not has_project_python:
        # The plugins of mimir's own environment take two seconds to load and are not the project's.
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return environment


def _limits(limits: ProcessLimits, recipe: Recipe | None) -> dict[str, int]:
    known = {"CORE": 0, "CPU": limits.cpu_seconds, "FSIZE": limits.file_bytes}
    match recipe:
        case "user":
            return {**known, "NPROC": limits.processes}
        case "root":
            return {**known, "NPROC": limits.processes * _ROOT_PROCESS_FACTOR}
        case None:
            # Outside of a namespace NPROC counts all processes of the user.
            return known
