"""Results of replays: the differences of a run, and the use of a recording."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mimir.cli.session import CommandSession
from mimir.domain.text_hash import hash_text

if TYPE_CHECKING:
    from mimir.orchestrator.api import Mimir
    from mimir.recordings.engine_replay.differences import ReplayResult
    from mimir.recordings.model_replay.recorded_models import RecordingUsage
    from mimir.recordings.model_replay.replay_session import ReplayingMimir

DIFFERENT = 1
"""Exit code if a replay differs from its recording."""
MOST_NAMED = 5


def report_usage(session: CommandSession, mimir: "Mimir", code: int, *, is_strict: bool) -> int:
    """Print which calls of a recording were used; return the exit code."""
    used = cast("ReplayingMimir", mimir).used  # a project opened with a recording
    for line in lines(used):
        session.console.note(line)
    return code or (DIFFERENT if is_strict and not used.whole else 0)


def lines(used: "RecordingUsage") -> Sequence[str]:
    """Return the use of a recording, one line for each unused or missing call."""
    found = [f"recording: {used.served} of {used.calls} model calls used, {used.drifts} drifted"]
    found += [f"  missing: {call}" for call in used.missed[:MOST_NAMED]]
    found += [f"  not used: transcript {name}" for name in used.left[:MOST_NAMED]]
    if len(used.left) > MOST_NAMED:
        found.append(f"  and {len(used.left) - MOST_NAMED} more that were not used")
    return found


def replay_lines(one: "ReplayResult", *, diff: bool) -> Sequence[str]:
    """Return the result of a replay; `diff`: with every difference."""
    head = (
        f"{one.run}: {one.status}; {one.events} events, {one.calls} calls "
        f"and {one.checks} check runs from the record"
    )
    heads = [head]
    if one.older_engine:
        heads.append(
            f"Requests and report texts are not compared: mimir {one.older_engine} recorded the run."
        )
    if not one.differences:
        texts = "plan" if one.older_engine else "report, plan"
        return [
            *heads,
            f"equal bytes: {texts}, {one.verdicts} verdicts, {one.evidence} evidence records",
            f"seal: {one.seal or 'none'}",
        ]
    named = one.differences if diff else one.differences[:1]
    found = [
        f"{'' if n else 'first difference: '}{d.where}: {d.detail}" for n, d in enumerate(named)
    ]
    if len(named) < len(one.differences):
        found.append(f"and {len(one.differences) - len(named)} more")
        found.append("next: mimir replay --diff")
    return [*heads, *found]


def shape(one: "ReplayResult") -> dict[str, object]:
    """Return the result of a replay as JSON; texts are their SHA-256."""
    return {
        "run": one.run, "status": one.status, "events": one.events, "calls": one.calls, "checks": one.checks,
        "report": hash_text(one.report), "plan": hash_text(one.plan), "verdicts": hash_text(one.verdict_rows),
        "evidence": hash_text(one.evidence_rows), "seal": one.seal,
        "differences": [{"where": d.where, "what": d.detail} for d in one.differences],
    }  # fmt: skip
