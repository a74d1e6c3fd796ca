"""What is said of recordings: what a replay used of one, and where two runs differ."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from mimir.cli.facade import Replayed

DIFFERENT = 1
"""Exit code where a replay is not as it was recorded."""
MOST_NAMED = 5


class Used(Protocol):
    """What a replay made of a recording."""

    @property
    def calls(self) -> int:
        """Model calls that it holds."""
        ...

    @property
    def served(self) -> int:
        """How many of them were asked for."""
        ...

    @property
    def left(self) -> tuple[str, ...]:
        """Those that nobody asked for."""
        ...

    @property
    def missed(self) -> tuple[str, ...]:
        """Questions that it does not hold."""
        ...

    @property
    def drifts(self) -> int:
        """Questions in which a tool said something else."""
        ...

    @property
    def whole(self) -> bool:
        """True if nothing is left and nothing was missed."""
        ...


class _Replaying(Protocol):
    @property
    def used(self) -> Used: ...


def report_usage(session: CommandSession, mimir: object, code: int, *, is_strict: bool) -> int:
    """Say what was used of a recording; the exit code."""
    used = cast("_Replaying", mimir).used
    for line in lines(used):
        session.console.note(line)
    return code or (DIFFERENT if is_strict and not used.whole else 0)


def lines(used: Used) -> Sequence[str]:
    """Return what was used of a recording, a line each."""
    said = [f"recording: {used.served} of {used.calls} model calls used, {used.drifts} drifted"]
    said += [f"  missed: {what}" for what in used.missed[:MOST_NAMED]]
    said += [f"  not used: lane {what}" for what in used.left[:MOST_NAMED]]
    if len(used.left) > MOST_NAMED:
        said.append(f"  and {len(used.left) - MOST_NAMED} more that were not used")
    return said


def replay_lines(one: "Replayed", *, diff: bool) -> Sequence[str]:
    """Return what a replay came to, a line each."""
    said = [
        f"{one.run}: {one.status}; {one.events} events, {one.calls} calls and {one.checks} check runs from the record",
    ]
    if not one.differences:
        return [
            *said,
            f"the same bytes: report, plan, {one.verdicts} verdicts, {one.evidence} sealed records",
            f"seal: {one.seal or 'none'}",
        ]
    named = one.differences if diff else one.differences[:1]
    said += [f"{'' if n else 'first difference: '}{d.where}: {d.what}" for n, d in enumerate(named)]
    if len(named) < len(one.differences):
        said.append(f"and {len(one.differences) - len(named)} more")
        said.append("next: mimir replay --diff names them all")
    return said


def shape(one: "Replayed") -> dict[str, object]:
    """Return what a replay came to, for scripts: texts as their SHA-256."""
    return {
        "run": one.run, "status": one.status, "events": one.events, "calls": one.calls, "checks": one.checks,
        "report": _hash(one.report), "plan": _hash(one.plan), "verdicts": _hash(one.verdict_rows),
        "evidence": _hash(one.evidence_rows), "seal": one.seal,
        "differences": [{"where": d.where, "what": d.what} for d in one.differences],
    }  # fmt: skip


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
