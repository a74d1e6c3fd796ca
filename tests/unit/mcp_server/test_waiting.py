"""Calls of tools end in time, with any state of the store and the started command."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mimir.bootstrap.stored_project import ProjectPlace
from mimir.errors import UnavailableError, UsageError
from mimir.mcp_server.project_access import ProjectAccess, StartedCommand
from mimir.mcp_server.server import end_in_time
from mimir.mcp_server.tools.sets.catalogue import TOOL_SETS
from mimir.mcp_server.tools.tool_values import (
    ANSWER_SECONDS,
    CALL_SECONDS,
    SCOPES,
    IncomingCall,
    Principal,
    ToolAnswer,
    WaitLimit,
)
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir.tools.calls.arguments import ToolArguments
from tests.support.clock import FrozenClock
from tests.support.small_run import RUN, SmallRun
from tests.support.stores import opened

T = TypeVar("T")

START_SECONDS = 20.0
"""Until the started command has created its run."""
READ_SECONDS = 0.3
"""Of one read of the store."""


class EndlessProcess:
    """A process that never ends."""

    def poll(self) -> None:
        """Return that it works."""


class SlowProject(ProjectAccess):
    """A project with a slow store, whose commands are slow to start and never end."""

    def __init__(self, directory: Path, clock: FrozenClock) -> None:
        super().__init__(directory)
        self.clock = clock
        self.appears: float | None = None

    @property
    def is_early(self) -> bool:
        return self.appears is not None and self.clock.monotonic() < self.appears

    async def read(self, work: Callable[[ReadOps, ProjectPlace], T]) -> T:
        self.clock.advance(READ_SECONDS)
        if self.is_early:
            raise UsageError("There is no such run yet.")
        return await super().read(work)

    def start(
        self, words: Sequence[str], principal: str, *inputs: Path, session: str = ""
    ) -> StartedCommand:
        self.appears = self.clock.monotonic() + START_SECONDS
        project = self

        class SlowCommand(StartedCommand):
            def lines(self) -> list[str]:
                return [] if project.is_early else [f'{{"run": "{RUN}"}}']

        return SlowCommand(process=EndlessProcess(), log=self.directory)  # type: ignore[arg-type]


def store_run(project: Path, **values: object) -> None:
    """Store a run that works, with these properties."""

    async def job() -> None:
        clock = FrozenClock()

        def patch(ops: WriteOps) -> None:
            ops.patch("Run", RUN, values)  # type: ignore[arg-type]

        async with opened(SqliteStore(project / ".mimir/mimir.db", clock)) as store:
            await SmallRun(store, clock).create()
            await store.write(patch)
        (project / ".mimir/project").write_text("p\n", encoding="utf-8")

    asyncio.run(job())


PLANNED = "chains/do-it/chain-output.md"
LONGEST = int(CALL_SECONDS)
CALLS: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("plan", "plan", {"request": "Do it"}),
    ("execute", "plan", {"request": "Do it"}),
    ("execute", "execute", {"plan": "plan.md"}),
    ("status", "execute", {"run": RUN, "wait_seconds": LONGEST}),
    ("spawn_agent", "agent", {"chatmode": "a", "task": "Do it", "wait_seconds": LONGEST}),
    ("validate_output", "agent", {"sub_agent_response": RUN}),
    ("get_agent_output", "agent", {"run": RUN, "wait_seconds": LONGEST}),
    ("terminate_agent", "agent", {"run": RUN}),
)


@pytest.mark.parametrize(("tool", "kind", "given"), CALLS)
def test_a_call_ends_in_fifty_seconds_with_the_run_and_the_next_call(
    tool: str, kind: str, given: dict[str, Any], tmp_path: Path
):
    store_run(tmp_path, kind=kind, planPath=PLANNED)
    (tmp_path / "plan.md").write_text("# Plan\n", encoding="utf-8")
    clock = FrozenClock()

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    async def report(_: float, __: str) -> None: ...

    arrived = clock.monotonic()
    call = IncomingCall(
        arguments=ToolArguments(given),
        principal=Principal(name="stdio:ana", scopes=frozenset(SCOPES), session="s-1"),
        project=SlowProject(tmp_path, clock),
        wait=WaitLimit(
            seconds=CALL_SECONDS - ANSWER_SECONDS,
            report=report,
            clock=clock,
            arrived=arrived,
            sleep=sleep,
        ),
    )
    (served,) = [one for tools in TOOL_SETS.values() for one in tools if one.name == tool]
    answer = asyncio.run(served.handle(call))

    assert START_SECONDS < clock.monotonic() - arrived <= CALL_SECONDS
    assert answer.content["run"] == RUN
    if tool != "terminate_agent":
        assert answer.content["next"], answer.content


async def test_call_without_an_answer_of_the_store_ends_with_a_clear_error():
    async def work() -> ToolAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(UnavailableError, match="took too long"):
        await end_in_time(work, 0.0)


async def test_time_limit_of_the_run_keeps_its_own_message():
    async def work() -> ToolAnswer:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await end_in_time(work, CALL_SECONDS)
