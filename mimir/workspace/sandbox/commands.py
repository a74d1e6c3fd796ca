"""From a wish to a command: what a sandbox, or no sandbox, is told to start. Looks at the file system, starts nothing."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from mimir.errors import ToolError
from mimir.workspace.sandbox import mounts, toolchain
from mimir.workspace.sandbox.process import ProcessLimits, SandboxCommand
from mimir.workspace.tree_removal import give_all

Recipe = Literal["user", "root"]
"""How bubblewrap gets its rights: by a user namespace, or because root runs it."""

_MANY = 8
"""Root's sandboxes run as one user, whose processes are counted together: each has its own limit (see `groups`) and is
watched, this is the wall behind both."""


def sandbox_command(
    program: Path,
    recipe: Recipe,
    argv: Sequence[str],
    wanted: mounts.MountRequest,
    env: Mapping[str, str],
    limits: ProcessLimits,
) -> SandboxCommand:
    """Compose a command in a sandbox; prepares the workspace for it. Blocking."""
    layout = mounts.lay_out(wanted, as_root=recipe == "root")
    # In a user namespace root's command is root outside; without one it is nobody.
    owner = mounts.USER if recipe == "root" else os.geteuid()
    give_all(wanted.workspace, (owner, owner))
    environment = _environment(layout.path, has_project_python=layout.has_project_python)
    return SandboxCommand(
        sandbox=str(program),
        options=layout.options,
        contents=layout.contents,
        interpreter=str(toolchain.interpreter()),
        become=tuple(argv),
        environment={**environment, **env},
        limits=_limits(limits, recipe),
        user=mounts.USER if recipe == "root" else None,
        directory=mounts.WORKSPACE,
    )


def plain_command(
    argv: Sequence[str], wanted: mounts.MountRequest, env: Mapping[str, str], limits: ProcessLimits
) -> SandboxCommand:
    """Compose a command that nothing confines. Paths that would be inside are the real ones."""
    project = wanted.project or wanted.workspace
    first = [
        str(top / name / "bin")
        for top in (wanted.workspace, project)
        for name in toolchain.ENVIRONMENTS
        if (top / name / "bin").is_dir()
    ]
    path = toolchain.search_path(first[:1], wanted.read_only)
    environment = _environment(path, has_project_python=bool(first))
    real = {target: str(source) for target, source in (wanted.extra or {}).items()}
    # Else git would find the person's repository above the workspace.
    environment["GIT_CEILING_DIRECTORIES"] = str(wanted.workspace.parent)
    return SandboxCommand(
        sandbox=None,
        interpreter=str(toolchain.interpreter()),
        become=tuple(argv),
        environment={
            **environment,
            **{name: real.get(value, value) for name, value in env.items()},
        },
        limits=_limits(limits, None),
        user=None,
        directory=str(wanted.workspace),
    )


def require_words(argv: Sequence[str]) -> None:
    """Refuse a command that no program can be given.

    Raises:
        ToolError: What is wrong with it.
    """
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
        "HOME": "/tmp",
        "USER": "mimir",
        "LOGNAME": "mimir",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    if not has_project_python:
        # The plugins in mimir's own environment take two seconds to load, and are none of the project's business.
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return environment


def _limits(limits: ProcessLimits, recipe: Recipe | None) -> dict[str, int]:
    known = {"CORE": 0, "CPU": limits.cpu_seconds, "FSIZE": limits.file_bytes}
    match recipe:
        case "user":
            return {**known, "NPROC": limits.processes}
        case "root":
            return {**known, "NPROC": limits.processes * _MANY}
        case None:
            # Outside a namespace it would count all that the person runs.
            return known
