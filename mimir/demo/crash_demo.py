"""`mimir demo --crash`: another process serves the run, is killed, and it resumes.

`python -m mimir.demo.crash_demo PROJECT RUN` is the other process. It reads the store's address from its standard input: the address may
contain a password, and other users of the machine can see a command line.
"""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from mimir.bootstrap import app
from mimir.demo import setup
from mimir.demo.narrator import POLL_SECONDS, Narrator
from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import EXECUTING, TaskStatus
from mimir.domain.value_class import value_class
from mimir.errors import UnavailableError
from mimir.store.operations.runs import fold

CALLS = (EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED)
TASKS_AT_KILL = 2
"""Tasks whose workers must have acted before the kill."""
PHASE_NAMES: Mapping[TaskStatus, str] = {
    TaskStatus.WORKER_EXECUTING: "work",
    TaskStatus.WORKER_COMPLETED: "checks",
    TaskStatus.QC_EXECUTING: "judgement",
    TaskStatus.QC_PASSED: "merge",
    TaskStatus.QC_FAILED: "rejection",
}
"""Phases in which a kill can hit a task."""


@value_class
class CrashCost:
    """Cost of a kill, by the events of the run."""

    before: int
    """Model and tool calls that were answered before it."""
    after: int
    repeated: int
    """Calls that were answered again."""


async def work_until_killed(project: Path, run: str, narrator: Narrator, store: str) -> int:
    """Let another process serve the run, kill it, and return the number of its last event.

    Raises:
        UnavailableError: The process ended before the kill.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mimir.demo.crash_demo", str(project), run),
        cwd=project,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    if child.stdin is not None:
        child.stdin.write(f"{store}\n".encode())
        child.stdin.close()
    narrator.say("process", f"{child.pid} works on the run until it is killed")
    events: list[Event] = []
    try:
        # A worker that has not acted yet could lose nothing.
        while len(find_acting_tasks(events)) < TASKS_AT_KILL:
            if child.returncode is not None:
                raise await _early_end(child)
            events += await narrator.catch_up(run)
            await asyncio.sleep(POLL_SECONDS)
    finally:
        # SIGKILL: the process cannot release its leases or finish a write.
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    events += await narrator.catch_up(run)
    acting = find_acting_tasks(events)
    tasks = ", ".join(f"{task} ({PHASE_NAMES[status]})" for task, status in acting.items())
    narrator.say("SIGKILL", f"ends process {child.pid} during {tasks}")
    narrator.say("", f"{_count_calls(events).total()} model and tool calls were answered before")
    narrator.say("resume", "this process continues the run")
    return events[-1].seq


def find_acting_tasks(events: Sequence[Event]) -> Mapping[str, TaskStatus]:
    """Return the tasks in an executing phase whose latest attempt has used a tool."""
    acting: set[str] = set()
    for event in events:
        if event.kind is EventKind.ATTEMPT_STARTED:
            # The worker of a retry must act again.
            acting.discard(event.task)
        elif event.kind is EventKind.TOOL_CALLED:
            acting.add(event.task)
    return {t: s for t, s in fold(events).items() if t in acting and s in EXECUTING}


def count_cost(events: Sequence[Event], killed_at: int) -> CrashCost:
    """Count the cost of a kill after event `killed_at`."""
    calls = _count_calls(events)
    before = _count_calls([event for event in events if event.seq <= killed_at]).total()
    return CrashCost(
        before=before,
        after=calls.total() - before,
        repeated=sum(times - 1 for times in calls.values()),
    )


def _count_calls(events: Sequence[Event]) -> "Counter[tuple[object, ...]]":
    """Count the answers of each call, by task, attempt, role and number in the transcript."""
    # A call that is served from its transcript emits no event.
    return Counter(
        (event.task, event.attempt, event.data.get("role"), event.data.get("seq"))
        for event in events
        if event.kind in CALLS
    )


async def _early_end(child: asyncio.subprocess.Process) -> UnavailableError:
    output = (await child.stderr.read()).decode("utf-8", "replace") if child.stderr else ""
    last = output.rstrip().rpartition("\n")[2]
    return UnavailableError(f"The working process ended early (exit {child.returncode}): {last}")


async def _work(project: Path, run: str, store: str) -> None:
    async with app.open(project, setup.settings(project, store)) as mimir:
        await setup.drive(mimir, run, resumed=False)


if __name__ == "__main__":
    asyncio.run(_work(Path(sys.argv[1]), sys.argv[2], sys.stdin.readline().rstrip("\n")))
