"""Following of a started command: its first event, its end, its error."""

import json
from collections.abc import Mapping
from dataclasses import replace

from mimir.domain.json_value import as_object, as_text
from mimir.errors import MimirError, UnavailableError
from mimir.mcp_server.project_access import ProjectAccess, StartedCommand, hide_paths
from mimir.mcp_server.tools.tool_values import WaitLimit

POLL_SECONDS = 0.2
PROGRESS_SECONDS = 1.0
START_SECONDS = 30.0
"""Longest time from the arrival of a call to the creation of its run."""
MAX_FINDINGS = 5
"""Most findings of a plan that cannot run."""


async def wait_for_events(project: ProjectAccess, started: StartedCommand, wait: WaitLimit) -> str:
    """Return the run that a command has created, from its first event."""
    while True:
        ended = started.has_ended
        for event in list_objects(started):
            if run := as_text(event.get("run")):
                return run
        if ended:
            raise make_error(project, started)
        await rest_before_run(wait)


async def rest_before_run(wait: WaitLimit) -> None:
    """Sleep before the next look for the run of a command.

    Raises:
        TimeoutError: It takes too long.
    """
    # Also a call that does not wait needs the run.
    if not await replace(wait, seconds=START_SECONDS).rest(POLL_SECONDS):
        raise TimeoutError


async def wait_for_end(started: StartedCommand, wait: WaitLimit, run: str) -> None:
    """Wait until a command has ended or the time is over; report progress once a second."""
    reported = wait.elapsed
    while not started.has_ended and await wait.rest(POLL_SECONDS):
        if wait.elapsed - reported >= PROGRESS_SECONDS:
            reported = wait.elapsed
            await wait.report(round(reported), f"{run} is working")


def list_objects(started: StartedCommand) -> list[Mapping[str, object]]:
    """Return the JSON objects that a command has printed."""
    found: list[Mapping[str, object]] = []
    for line in started.lines():
        # Notes for the user are between the events.
        if line.startswith("{"):
            try:
                found.append(as_object(json.loads(line)))
            except ValueError:
                continue
    return found


def find_error(project: ProjectAccess, started: StartedCommand) -> tuple[str, str]:
    """Return problem and next step of a command that failed; empty: it printed none."""
    lines = [hide_paths(one, project.directory) for one in started.lines()]
    printed = [one for one in lines if one and not one.startswith("{")]
    named = {name: text for name, colon, text in (one.partition(": ") for one in printed) if colon}
    # A plan that cannot run is reported as findings, one a line.
    found = [named[name] for name in ("error", "why") if name in named] or printed[:MAX_FINDINGS]
    return " ".join(found), named.get("next", "")


def make_error(project: ProjectAccess, started: StartedCommand) -> MimirError:
    """Return the error that a command has printed."""
    problem, step = find_error(project, started)
    return UnavailableError(
        problem or "The command ended before it created a run.", next_step=step or None
    )
