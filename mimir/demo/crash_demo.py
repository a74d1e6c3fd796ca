"""`mimir demo --crash`: another process does the work and is killed in the middle of it; what that cost is counted afterwards.

`python -m mimir.demo.crash_demo PROJECT RUN` is that other process. It reads where the runs are kept from its input: there may be a password
in it, and others of the machine see what stands on a command line.
"""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mimir.bootstrap import app
from mimir.demo import setup
from mimir.demo.narrator import POLL_SECONDS, Narrator
from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import EXECUTING, TaskStatus
from mimir.errors import UnavailableError
from mimir.store.operations.runs import fold

CALLS = (EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED)
AT_ONCE = 2
"""So many tasks must be under way, and their workers have acted."""
DOING: Mapping[TaskStatus, str] = {
    TaskStatus.WORKER_EXECUTING: "at work",
    TaskStatus.WORKER_COMPLETED: "its checks running",
    TaskStatus.QC_EXECUTING: "being judged",
    TaskStatus.QC_PASSED: "being merged",
    TaskStatus.QC_FAILED: "rejected",
}
"""What a kill can hit a task in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashCost:
    """What a kill cost, by the run's own record."""

    before: int
    """Calls of models and tools that were answered when it struck."""
    after: int
    repeated: int
    """Calls that were answered more than once."""


async def work_until_killed(project: Path, run: str, teller: Narrator, store: str) -> int:
    """Have another process serve the run, and kill it while tasks are under way.

    Returns:
        Number of the last event of the run that was killed.

    Raises:
        UnavailableError: The process ended by itself.
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
    teller.say("process", f"{child.pid} does the work, until it is killed")
    events: list[Event] = []
    try:
        while len(under_way(events)) < AT_ONCE:
            if child.returncode is not None:
                raise await _ended(child)
            events += await teller.catch_up(run)
            await asyncio.sleep(POLL_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    events += await teller.catch_up(run)
    tasks = ", ".join(f"{task} ({DOING[status]})" for task, status in under_way(events).items())
    teller.say("SIGKILL", f"to process {child.pid}, in the middle of {tasks}")
    teller.say("", f"{_calls(events).total()} calls of models and tools were answered by then")
    teller.say("resume", "in this process")
    return events[-1].seq


def under_way(events: Sequence[Event]) -> Mapping[str, TaskStatus]:
    """Return the tasks in an executing phase whose latest attempt has used a tool."""
    acting: set[str] = set()
    for event in events:
        if event.kind is EventKind.ATTEMPT_STARTED:
            acting.discard(event.task)
        elif event.kind is EventKind.TOOL_CALLED:
            acting.add(event.task)
    standing = fold(events)
    return {t: s for t, s in standing.items() if t in acting and s in EXECUTING}


def toll(events: Sequence[Event], killed_at: int) -> CrashCost:
    """Count what a kill behind event `killed_at` cost."""
    calls = _calls(events)
    before = _calls([event for event in events if event.seq <= killed_at]).total()
    return CrashCost(
        before=before,
        after=calls.total() - before,
        repeated=sum(times - 1 for times in calls.values()),
    )


def _calls(events: Sequence[Event]) -> "Counter[tuple[object, ...]]":
    """Count how often each call of each agent was answered: task, attempt, agent, number in its lane."""
    return Counter(
        (event.task, event.attempt, event.data.get("role"), event.data.get("seq"))
        for event in events
        if event.kind in CALLS
    )


async def _ended(child: asyncio.subprocess.Process) -> UnavailableError:
    said = (await child.stderr.read()).decode("utf-8", "replace") if child.stderr else ""
    last = said.rstrip().rpartition("\n")[2]
    return UnavailableError(f"The working process ended by itself ({child.returncode}): {last}")


async def _work(project: Path, run: str, store: str) -> None:
    async with app.open(project, setup.settings(project, store)) as mimir:
        await setup.drive(mimir, run, resumed=False)


if __name__ == "__main__":
    asyncio.run(_work(Path(sys.argv[1]), sys.argv[2], sys.stdin.readline().rstrip("\n")))
