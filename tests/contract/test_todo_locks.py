"""Locks of todos on every kind of store: one client wins, an old fence and an ended lock change nothing."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import ToolError, UsageError
from mimir.orchestrator.runs.listing import find_id, list_runs
from mimir.orchestrator.todos import lists, locks
from mimir.orchestrator.todos.lists import TodoList
from mimir.reporting import status as status_shape
from mimir.store.operations import memory, runs
from mimir.store.protocol import GraphStore
from mimir.store.schema import NodeLabel
from tests.support.clock import FrozenClock

Second = Callable[[], AbstractAsyncContextManager[GraphStore]]
MINE = TodoList(name="main", project_id="p", project_name="p", principal="stdio:ann")


async def add(store: GraphStore, number: int, run: str = "run-1", wanted: TodoList = MINE) -> str:
    made = await store.write(
        lambda ops: lists.add_todo(ops, wanted, run=run, title=f"Todo {number}", text="")
    )
    return str(made["run"])


async def lock(store: GraphStore, owner: str, todo: str = "") -> tuple[str, int]:
    """Lock a todo; return its id and fence, or nothing."""
    work = partial(locks.lock_todo, wanted=MINE, todo=todo, owner=owner, minutes=5)
    try:
        found = await store.write(work)
    except ToolError:
        return "", 0
    assert isinstance(found["fence"], int)
    return str(found["todo"]), found["fence"]


async def end_lock(store: GraphStore, todo: str) -> None:
    """End the lease of a todo: a server has a clock of its own."""
    ended = {"expiresAt": "2001-01-01T00:00:00.000000Z"}
    assert await store.write(lambda ops: ops.patch(NodeLabel.TASK, f"run-1/{todo}", ended))


async def test_two_clients_create_one_list_and_each_todo_has_one_holder(
    store: GraphStore, second: Second
):
    async with second() as other:
        doors = (store, other)
        made = await asyncio.gather(*(add(doors[n % 2], n, f"run-{n}") for n in range(6)))
        # When both want the first one, and then both want any
        named = await asyncio.gather(*(lock(door, "a", "todo-1") for door in doors * 2))
        taken = await asyncio.gather(*(lock(doors[n % 2], str(n)) for n in range(8)))
    listed = await store.read(lambda reads: lists.list_todos(reads, MINE, every=False))

    assert len(set(made)) == 1
    assert sorted(named) == [("", 0)] * 3 + [("todo-1", 1)]
    assert sorted(todo for todo, _ in taken) == ["", "", "", *(f"todo-{n}" for n in range(2, 7))]
    assert (listed["open"], listed["locked"]) == (0, 6)


async def test_only_the_newest_lock_completes_a_todo(store: GraphStore):
    run = await add(store, 1)
    complete = partial(locks.complete_todo, wanted=MINE, todo="todo-1", note="Did it.")
    todo, first = await lock(store, "a")

    # When the lock has ended, nothing is completed, and another client may have it
    await end_lock(store, todo)
    with pytest.raises(ToolError, match="Your lock of todo-1 ended at"):
        await store.write(partial(complete, fence=first))
    _, fence = await lock(store, "b", todo)
    for work in (
        partial(complete, fence=first),
        partial(locks.release_todo, wanted=MINE, todo=todo, fence=first),
        partial(locks.extend_lock, wanted=MINE, todo=todo, fence=first, owner="a", minutes=5),
    ):
        with pytest.raises(ToolError, match="The fence 1 of todo-1 is old"):
            await store.write(work)

    # Then its holder extends and releases it, and the next one completes it, also twice
    await end_lock(store, todo)
    extend = partial(locks.extend_lock, wanted=MINE, todo=todo, owner="b", minutes=5)
    extended = await store.write(partial(extend, fence=fence))
    assert extended["status"] == "locked"
    await store.write(partial(locks.release_todo, wanted=MINE, todo=todo, fence=fence))
    with pytest.raises(ToolError, match="not locked"):
        await store.write(partial(locks.release_todo, wanted=MINE, todo=todo, fence=fence))
    _, last = await lock(store, "c")
    done = [await store.write(partial(complete, fence=last)) for _ in range(2)]
    assert (fence, last) == (2, 3)
    assert [(one["status"], one["assurance"]) for one in done] == [("done", "none")] * 2
    with pytest.raises(ToolError, match="is done already"):
        await store.write(partial(locks.lock_todo, wanted=MINE, todo=todo, owner="a", minutes=5))
    folded = runs.fold(await store.read(lambda reads: runs.events(reads, run)))
    assert folded == {"todo-1": TaskStatus.COMPLETED}


async def test_a_todo_that_is_done_is_shown_as_answered_and_is_no_work_of_agents(
    store: GraphStore, frozen_clock: FrozenClock
):
    run = await add(store, 1)
    await add(store, 2)
    _, fence = await lock(store, "a", "todo-1")
    await lock(store, "a", "todo-2")
    complete = partial(locks.complete_todo, wanted=MINE, todo="todo-1", fence=fence, note="")
    await store.write(complete)
    await end_lock(store, "todo-2")
    now = frozen_clock.now()

    shown = await store.read(lambda reads: status_shape.shape(reads, run, RunStatus.RUNNING, now))
    (entry,) = await store.read(lambda reads: list_runs(reads, "p", (), now))
    view = memory.MemoryScope(project="p")
    found = await store.read(
        lambda reads: memory.query_nodes(reads, view, NodeLabel.TASK, {"status": "completed"})
    )
    node = await store.read(lambda reads: memory.get_node(reads, view, f"{run}/todo-1"))

    tasks = shown["tasks"]
    assert isinstance(tasks, list)
    states = [(one["status"], one["score"], one["running"]) for one in tasks]
    assert states == [("answered", None, False), ("pending", None, False)]
    assert (shown["status"], shown["todo_list"]) == ("running", True)
    assert (entry["status"], entry["completed"], entry["tasks"]) == ("running", 1, 2)
    assert (found, node) == ([], None)
    # Without a name, no command means it.
    with pytest.raises(UsageError, match="has no run yet"):
        await store.read(lambda reads: find_id(reads, "p", None, resumable=True))


async def test_clients_of_the_user_share_a_list_and_a_token_has_its_own(store: GraphStore):
    await add(store, 1)
    token = TodoList(name="main", project_id="p", project_name="p", principal="token:x")
    other = TodoList(name="main", project_id="p", project_name="p", principal="stdio:ben")
    assert await add(store, 1, "run-2", token) == "run-2"
    assert await add(store, 2, "run-3", other) == "run-1"
    with pytest.raises(ToolError, match="The list has no todo 'todo-2'"):
        await store.write(
            lambda ops: locks.lock_todo(ops, token, todo="todo-2", owner="x", minutes=5)
        )
