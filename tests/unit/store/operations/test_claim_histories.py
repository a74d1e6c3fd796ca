"""Any claims and deaths: one holder at a time, growing fences, moves of the table, events that fold to the rows."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mimir.domain.event import EventKind
from mimir.domain.task_states import MOVES, TERMINAL, TaskStatus, TransitionActor
from mimir.errors import IllegalMove, LeaseLost
from mimir.store.operations import claims, runs
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.stored_rows import task_rows
from tests.support.stored_run import new_run, plan, task
from tests.support.stores import opened

TASKS = ("a", "b", "c")
OWNERS = ("w1", "w2", "w3")
LEASE = 60
ROOT = Path(__file__).parents[4]

LAST = st.sampled_from([("cancel",), ("wait", LEASE)])
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.sampled_from(OWNERS), st.integers(1, 3), st.sets(st.sampled_from(OWNERS))),
        st.tuples(st.just("claim"), st.sampled_from(OWNERS), st.just(1), st.just(frozenset())),
        st.tuples(st.just("heartbeat"), st.integers(0, 20)),
        st.tuples(st.just("give_back"), st.integers(0, 20)),
        st.tuples(st.just("move"), st.integers(0, 20), st.sampled_from(TaskStatus), st.sampled_from(TransitionActor)),
        st.tuples(st.just("legal move"), st.integers(0, 20), st.integers(0, 5)),
        st.tuples(st.just("legal move"), st.integers(0, 20), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([1, LEASE - 1, LEASE, LEASE + 1])),
        st.tuples(st.just("release"), st.sampled_from(TASKS), st.integers(0, 2)),
        st.tuples(st.just("block"), st.sampled_from(TASKS)),
    ),
    min_size=20,
    max_size=40,
)  # fmt: skip


class History:
    """Runs actions against a store and watches for forbidden states."""

    def __init__(self, store, clock, run):
        self.store, self.clock, self.run = store, clock, run
        self.grants = []
        """Every claim ever made, with the owner and the time of its end; the newest last."""
        self.ends = {}
        """(task, fence) → time until which the lease is live."""
        self.events = []
        self.at = dict.fromkeys(TASKS, TaskStatus.PENDING)

    async def play(self, actions):
        made = new_run(plan(*(task(t) for t in TASKS)), id=self.run)

        def begin(ops):
            runs.create(ops, made)
            claims.release_task(ops, self.run, [("a", 1.0), ("b", 1.0)])

        await self.store.write(begin)
        for name, *what in actions:
            await getattr(self, name.replace(" ", "_"))(*what)
            await self.check()

    async def claim(self, owner, limit, dead):
        now = self.clock.monotonic()
        taken = await self.store.write(
            lambda ops: claims.claim(
                ops, self.run, owner, lease_seconds=LEASE, limit=limit, dead=dead
            )
        )
        assert len(taken) <= limit
        for held in taken:
            for other, their_owner in self.grants:
                if other.task == held.task:
                    assert held.fence > other.fence
                    live = self.ends[other.task, other.fence] > now
                    assert not live or their_owner in dead
                    self.ends[other.task, other.fence] = 0
            self.grants.append((held, owner))
            self.ends[held.task, held.fence] = now + LEASE

    async def heartbeat(self, which):
        if not self.grants:
            return
        held, owner = self.grants[which % len(self.grants)]
        lost = await self.store.write(
            lambda ops: claims.heartbeat(ops, self.run, [(held.task, held.fence)], owner, LEASE)
        )
        if not lost:
            assert self.is_newest(held)
            self.ends[held.task, held.fence] = self.clock.monotonic() + LEASE

    async def give_back(self, which):
        if self.grants:
            held, _ = self.grants[which % len(self.grants)]
            if await self.store.write(
                lambda ops: claims.release_claim(ops, self.run, held.task, held.fence)
            ):
                assert self.is_newest(held)
                self.ends[held.task, held.fence] = 0

    async def legal_move(self, which, choice):
        if self.grants:
            held, _ = self.grants[which % len(self.grants)]
            at = TaskStatus((await self.row(held.task))["status"])
            if options := sorted(MOVES[at].items()):
                await self.move(which, *options[choice % len(options)])

    async def move(self, which, to, mover):
        if not self.grants:
            return
        held, _ = self.grants[which % len(self.grants)]
        before = await self.row(held.task)
        try:
            await self.store.write(
                lambda ops: claims.move(
                    ops, self.run, held.task, held.fence, to, mover, kind=EventKind.WARNING
                )
            )
        except LeaseLost:
            assert before["fence"] != held.fence
        except IllegalMove:
            assert before["fence"] == held.fence
        else:
            assert before["fence"] == held.fence
            assert to in MOVES[TaskStatus(before["status"])]
            if to in TERMINAL or to is TaskStatus.PREPARING_RETRY:
                self.ends[held.task, held.fence] = 0
            return
        assert await self.row(held.task) == before

    async def wait(self, seconds):
        self.clock.advance(seconds)

    async def release(self, task, priority):
        await self.store.write(lambda ops: claims.release_task(ops, self.run, [(task, priority)]))

    async def block(self, task):
        before = await self.row(task)
        if before["status"] in ("pending", "blocked"):
            await self.store.write(lambda ops: claims.block_task(ops, self.run, task, "x"))
        else:
            with pytest.raises(IllegalMove):
                await self.store.write(lambda ops: claims.block_task(ops, self.run, task, "x"))

    async def cancel(self):
        await self.store.write(lambda ops: claims.cancel(ops, self.run))
        for key in self.ends:
            self.ends[key] = 0

    def is_newest(self, held):
        return held.fence == max(h.fence for h, _ in self.grants if h.task == held.task)

    async def row(self, task):
        return await self.store.read(lambda r: r.get("Task", f"{self.run}/{task}"))

    async def check(self):
        rows, fresh = await self.store.read(
            lambda r: (task_rows(r, self.run), runs.events(r, self.run, after=len(self.events)))
        )
        for event in fresh:
            if event.task and "to" in event.data:
                assert event.data["from"] == self.at[event.task]
                assert TaskStatus(event.data["to"]) in MOVES[self.at[event.task]]
                self.at[event.task] = TaskStatus(event.data["to"])
        self.events += fresh
        assert [e.seq for e in self.events] == list(range(1, len(self.events) + 1))
        assert runs.fold(self.events) == {r["taskId"]: TaskStatus(r["status"]) for r in rows}
        for row in rows:
            claimable = row["released"] and TaskStatus(row["status"]) not in TERMINAL
            held = "lockedBy" in row
            assert row.get("claimState") == (("held" if held else "free") if claimable else None)
            assert held == ("expiresAt" in row) == ("lockedAt" in row)
            assert not held or claimable


def test_no_history_of_claims_breaks_a_rule(tmp_path):
    with asyncio.Runner() as runner:
        clock = FrozenClock()
        store = SqliteStore(tmp_path / "mimir.db", clock)
        runner.run(store.init())
        count = iter(range(1_000_000))

        @settings(
            max_examples=25, phases=(Phase.explicit, Phase.generate)
        )  # shrinking takes minutes
        @given(ACTIONS, LAST, ACTIONS)
        def holds(first, last, more):
            history = History(store, clock, f"run-{next(count)}")
            runner.run(history.play([*first, last, *more]))

        holds()
        runner.run(store.close())


RACER = """
import asyncio, pathlib, sys
from mimir.store.operations import claims
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock

async def main(path, owner):
    store = SqliteStore(pathlib.Path(path), FrozenClock())
    await store.init()
    print("ready", flush=True)
    sys.stdin.readline()
    mine = []
    async def slot():
        while taken := await store.write(lambda ops: claims.claim(ops, "r1", owner, lease_seconds=300)):
            mine.extend(f"{c.task} {c.fence}" for c in taken)
    await asyncio.gather(slot(), slot())
    await store.close()
    print("\\n".join(mine))

asyncio.run(main(*sys.argv[1:]))
"""


async def test_four_processes_claim_a_hundred_tasks_once_each(tmp_path):
    path = tmp_path / "mimir.db"
    names = [f"t{i:03d}" for i in range(100)]
    async with opened(SqliteStore(path, FrozenClock())) as store:

        def begin(ops):
            runs.create(ops, new_run(plan(*(task(name) for name in names))))
            claims.release_task(ops, "r1", [(name, 0.0) for name in names])

        await store.write(begin)
        racers = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", RACER, str(path), f"w{n}", stdin=PIPE, stdout=PIPE, cwd=ROOT
            )
            for n in range(4)
        ]
        for racer in racers:
            assert await racer.stdout.readline() == b"ready\n"
        outputs = await asyncio.gather(*(racer.communicate(b"go\n") for racer in racers))

        rows, events = await store.read(lambda r: (task_rows(r, "r1"), runs.events(r, "r1")))

    assert [racer.returncode for racer in racers] == [0] * 4
    won = sorted(line for out, _ in outputs for line in out.decode().split("\n") if line)
    assert won == [f"{name} 1" for name in names]
    assert [r["fence"] for r in rows] == [1] * 100
    assert [e.seq for e in events] == list(range(1, 202))
    assert runs.fold(events) == dict.fromkeys(names, TaskStatus.WORKER_EXECUTING)
