"""The limits of a session hold exactly when two processes create invocations at the same moment."""

import asyncio
from collections import Counter

import pytest

from mimir.domain.task_states import RunStatus
from mimir.errors import UsageError
from mimir.orchestrator.delegation.sessions import load_session, require_room
from mimir.store.operations import runs
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import GraphStore, WriteOps
from mimir.store.schema import NodeLabel


def new_run(number: int, session: str) -> NewRun:
    return NewRun(
        id=f"agent-{session}-{number}",
        kind="agent",
        project_id="p",
        project_name="p",
        name="n",
        request=f"Task {number}: " + " ".join(f"{number}{word}" for word in "abcdef"),
        plan=None,
        plan_path="",
        settings={},
        engine_version="0",
        base_commit="",
        base_tree="",
        agent="a",
        session_id=session,
    )


async def create(store: GraphStore, number: int, session: str, *, ended: bool = False) -> str:
    """Create an invocation as `create_run` does; return the rule that refuses it."""
    new = new_run(number, session)

    def work(ops: WriteOps) -> None:
        runs.create(ops, new)
        require_room(ops, new.id, (), is_forced=False)
        if ended:
            ops.patch(NodeLabel.RUN, new.id, {"status": RunStatus.COMPLETED.value})

    try:
        await store.write(work)
    except UsageError as error:
        return str(error).split("(")[1].split(")")[0]
    return ""


@pytest.mark.parametrize("already", [0, 19])
async def test_the_sixth_active_and_the_twenty_first_call_lose_every_race(store, second, already):
    async with second() as other:
        for number in range(already):
            assert await create(store, number, "s-1", ended=True) == ""
        doors = [(store, other)[number % 2] for number in range(100, 112)]
        made = await asyncio.gather(
            *(create(door, number, "s-1") for number, door in enumerate(doors, 100))
        )
    kept = await store.read(lambda reads: load_session(reads, "p", "s-1", ()))
    free = 5 if already == 0 else 1

    assert Counter(made)[""] == free
    assert set(made) == {"", "active" if already == 0 else "calls"}
    assert len(kept) == already + free
    # Another session has its own limits.
    assert await create(store, 1, "s-2") == ""
