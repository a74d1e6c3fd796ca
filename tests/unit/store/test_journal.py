"""The lane: what is recorded is served, what is not is done once, and a crash costs at most the call in flight."""

import asyncio

import pytest

from mimir.domain.event import EventKind
from mimir.domain.lane import Outcome
from mimir.domain.usage import Usage
from mimir.errors import LeaseLost, ModelError, Paused, StoreError
from mimir.store import calls, claims, runs
from mimir.store.journal import Lane
from tests.support.running import start, task


class Crash(BaseException):
    """The process is gone."""


class World:
    """What calls do: counted, and crashing where the test says."""

    def __init__(self):
        self.made = []
        self.crash_in = None

    def work(self, name, value=None, tree="", usage=None):
        async def do():
            self.made.append(name)
            await asyncio.sleep(0)
            if self.crash_in == name:
                raise Crash(name)
            return Outcome(
                value=value if value is not None else {"said": name}, tree=tree, usage=usage
            )

        return do


@pytest.fixture
def world():
    return World()


@pytest.fixture
async def run(store):
    await start(store, task("a"))
    return await store.write(lambda ops: claims.claim(ops, "r1", "w1", lease_seconds=300))


async def opened(store, fence=1, **how):
    return await Lane.open(
        store, **{"run": "r1", "task": "a", "attempt": 1, "role": "worker", "fence": fence, **how}
    )


async def ask(lane, world, name, **how):
    """A model call."""
    request = how.pop("request", {"ask": name})
    reserve = how.pop("reserve", 0)
    return await lane.call(
        "model",
        request,
        {"new": name},
        world.work(name, **how),
        effectful=True,
        reserve=reserve,
        title=name,
    )


async def edit(lane, world, name, **how):
    """A tool call with an effect."""
    request = how.pop("request", {"tool": "edit", "of": name})
    how = {"tree": f"tree of {name}", **how}
    return await lane.call(
        "tool", request, request, world.work(name, **how), effectful=True, title=name
    )


async def look(lane, world, name, **how):
    """A tool call that reads."""
    request = how.pop("request", {"tool": "look", "of": name})
    return await lane.call(
        "tool", request, request, world.work(name, **how), effectful=False, title=name
    )


async def recorded(store):
    rows = await store.read(lambda r: calls.rows(r, "r1/a/1/worker"))
    return [(row["seq"], row["kind"], row["done"]) for row in rows]


async def told(store, *kinds):
    return [e for e in await store.read(lambda r: runs.events(r, "r1")) if e.kind in kinds]


async def three(lane, world):
    return [
        await ask(lane, world, "m0"),
        await edit(lane, world, "e1"),
        await ask(lane, world, "m2"),
    ]


# Recording and replaying


async def test_replay_serves_the_same_outcomes_and_makes_no_call(store, run, world):
    usage = Usage(input_tokens=5, output_tokens=7)
    first = await opened(store)
    live = [
        await ask(
            first, world, "m0", value={"text": "hé\ud800\0", "list": [1, {"a": None}]}, usage=usage
        ),
        await look(first, world, "l1"),
        await edit(first, world, "e2"),
        await ask(first, world, "m3"),
    ]
    await first.flush()
    made = list(world.made)

    again = await opened(store)
    replayed = [
        await ask(again, world, "m0"), await look(again, world, "l1"), await edit(again, world, "e2"), await ask(again, world, "m3"),
    ]  # fmt: skip

    assert replayed == live
    assert world.made == made == ["m0", "l1", "e2", "m3"]
    assert (again.replayed, again.tool_calls, again.usage, again.tree) == (
        4,
        2,
        usage,
        "tree of e2",
    )
    assert (first.replayed, first.tool_calls, first.usage, first.tree) == (
        0,
        2,
        usage,
        "tree of e2",
    )


async def test_live_outcome_has_the_form_in_which_it_is_replayed(store, run, world):
    lane = await opened(store)

    outcome = await ask(lane, world, "m0", value={"pair": (1, 2), "deep": {3: "x"}})

    assert outcome.value == {"pair": [1, 2], "deep": {"3": "x"}}
    assert (await ask(await opened(store), world, "m0")) == outcome


async def test_outcome_that_is_no_json_is_an_error_and_is_made_again(store, run, world):
    lane = await opened(store)
    with pytest.raises(StoreError, match="JSON"):
        await ask(lane, world, "m0", value={"x": float("nan")})

    assert (await ask(await opened(store), world, "m0")).value == {"said": "m0"}


async def test_intent_stands_before_the_call_and_its_outcome_after(store, run, world):
    lane = await opened(store)
    during = []

    async def work():
        during.append(await recorded(store))
        return Outcome(value={})

    await lane.call("model", {}, {}, work, effectful=True)
    await lane.call("tool", {"tool": "edit"}, {}, work, effectful=True)

    assert during == [[(0, "model", False)], [(0, "model", True), (1, "tool", False)]]
    assert await recorded(store) == [(0, "model", True), (1, "tool", True)]


async def test_reads_wait_for_the_next_row_of_the_lane(store, run, world):
    lane = await opened(store)
    await ask(lane, world, "m0")
    await look(lane, world, "l1")
    await look(lane, world, "l2")
    before = await recorded(store)

    async def work():
        assert await recorded(store) == [
            (0, "model", True),
            (1, "tool", True),
            (2, "tool", True),
            (3, "model", False),
        ]
        return Outcome(value={})

    await lane.call("model", {}, {}, work, effectful=True)

    assert before == [(0, "model", True)]


async def test_flush_commits_the_reads_that_wait(store, run, world):
    lane = await opened(store)
    await look(lane, world, "l0")
    await look(lane, world, "l1")
    await lane.flush()
    await lane.flush()

    assert await recorded(store) == [(0, "tool", True), (1, "tool", True)]
    assert len(await told(store, EventKind.TOOL_CALLED)) == 2


async def test_number_is_taken_before_the_first_await(store, run, world):
    lane = await opened(store)

    await asyncio.gather(*(look(lane, world, f"l{i}") for i in range(5)))
    await lane.flush()

    rows = await store.read(lambda r: calls.rows(r, lane.name))
    assert [row["name"] for row in rows] == [f"l{i}" for i in range(5)]


# Crashes


async def test_crash_before_the_intent_leaves_nothing(store, run, world):
    lane = await opened(store)

    async def dying(tree):
        raise Crash

    lane.on_live = dying
    with pytest.raises(Crash):
        await ask(lane, world, "m0")

    assert (world.made, await recorded(store)) == ([], [])


@pytest.mark.parametrize("call", [ask, edit])
async def test_call_in_flight_at_a_crash_is_made_again_and_no_other(store, run, world, call):
    lane = await opened(store)
    await ask(lane, world, "m0")
    world.crash_in = "x1"
    with pytest.raises(Crash):
        await call(lane, world, "x1")
    assert await recorded(store) == [
        (0, "model", True),
        (1, "model" if call is ask else "tool", False),
    ]
    world.crash_in = None

    again = await opened(store)
    await ask(again, world, "m0")
    await call(again, world, "x1")
    await ask(again, world, "m2")

    assert world.made == ["m0", "x1", "x1", "m2"]
    assert await told(store, EventKind.LANE_CUT) == []
    (row,) = await store.read(lambda r: r.find("Call", {"name": "x1"}))
    assert (row["tries"], row["done"]) == (2, True)


async def test_crash_between_outcome_and_its_commit_costs_this_call_alone(
    store, run, world, monkeypatch
):
    lane = await opened(store)
    await ask(lane, world, "m0")
    write, count = store.write, []

    async def dying(work):
        count.append(work)
        if len(count) == 2:  # the first is the intent
            raise Crash
        return await write(work)

    monkeypatch.setattr(store, "write", dying)
    with pytest.raises(Crash):
        await edit(lane, world, "e1")
    monkeypatch.undo()

    again = await opened(store)
    await ask(again, world, "m0")
    await edit(again, world, "e1")

    assert world.made == ["m0", "e1", "e1"]


async def test_dropped_lane_loses_its_waiting_reads_alone(store, run, world):
    lane = await opened(store)
    await ask(lane, world, "m0")
    await look(lane, world, "l1")

    again = await opened(store)
    await ask(again, world, "m0")
    await look(again, world, "l1")
    await ask(again, world, "m2")

    assert world.made == ["m0", "l1", "l1", "m2"]
    assert [seq for seq, *_ in await recorded(store)] == [0, 1, 2]


async def test_cancelled_call_is_made_again(store, run, world):
    lane = await opened(store)
    hanging = asyncio.Event()

    async def hang():
        hanging.set()
        await asyncio.Event().wait()

    call = asyncio.ensure_future(lane.call("model", {"ask": "m0"}, {}, hang, effectful=True))
    await hanging.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    again = await opened(store)
    await ask(again, world, "m0")
    assert await recorded(store) == [(0, "model", True)]
    assert world.made == ["m0"]


async def test_error_of_the_work_is_raised_and_leaves_the_open_intent_alone(store, run, world):
    lane = await opened(store)

    async def down():
        raise ModelError("down", scope="run", status=401)

    with pytest.raises(ModelError, match="down"):
        await lane.call("model", {"ask": "m0"}, {}, down, effectful=True, reserve=10)

    assert await recorded(store) == [(0, "model", False)]
    row = await store.read(lambda r: r.get("Run", "r1"))
    assert (row["callsUsed"], row["tokensUsed"], row["tokensReserved"]) == (1, 0, 10)
    assert await told(store, EventKind.MODEL_CALLED) == []


async def test_every_kill_point_of_a_lane_costs_at_most_the_call_in_flight(store, run, world):
    """Die at each commit in turn, before and after it, resume, and compare with a life without deaths."""
    script = [ask, look, look, edit, ask, look, edit, edit, ask]

    async def live(lane):
        said = [await call(lane, world, f"c{i}") for i, call in enumerate(script)]
        await lane.flush()
        return [o.value for o in said], lane.tree

    expected = await live(await opened(store, lane="undisturbed"))
    end = world.made.copy()
    write = store.write
    for n in range(40):
        for late in (False, True):
            world.made.clear()
            left, trees = n, []

            async def mortal(work, late=late):
                nonlocal left
                left -= 1
                if left == -1 and not late:
                    raise Crash
                done = await write(work)
                if left == -1:
                    raise Crash
                return done

            store.write = mortal
            try:
                await live(await opened(store, lane=f"lane {n} {late}"))
                died = False
            except Crash:
                died = True
            store.write = write
            lane = await opened(store, lane=f"lane {n} {late}")

            async def note(tree, trees=trees):
                trees.append(tree)

            lane.on_live = note
            assert await live(lane) == expected
            repeated = {c for c in world.made if world.made.count(c) > 1}
            effects = [c for c in repeated if script[int(c[1:])] is not look]
            assert len(effects) <= 1
            assert sorted(set(world.made)) == end
            assert len(trees) <= 1
            if not died:
                assert n > 10
                return
    raise AssertionError("the lane never ended")


# Going live


async def test_workspace_is_restored_once_before_the_first_live_call(store, run, world):
    first = await opened(store)
    await three(first, world)
    trees = []

    async def restore(tree):
        trees.append((tree, list(world.made)))

    again = await opened(store)
    again.on_live = restore
    await three(again, world)
    assert trees == []
    await look(again, world, "l3")
    await edit(again, world, "e4")
    await ask(again, world, "m5")

    assert trees == [("tree of e1", ["m0", "e1", "m2"])]
    assert again.tree == "tree of e4"


async def test_new_lane_goes_live_with_no_tree(store, run, world):
    trees = []

    async def restore(tree):
        trees.append(tree)

    lane = await opened(store)
    lane.on_live = restore
    await three(lane, world)

    assert trees == [""]


async def test_reads_that_go_live_together_wait_for_one_restore(store, run, world):
    first = await opened(store)
    await edit(first, world, "e0")
    trees, gate = [], asyncio.Event()

    async def restore(tree):
        trees.append(tree)
        await gate.wait()
        trees.append("restored")

    lane = await opened(store)
    lane.on_live = restore
    await edit(lane, world, "e0")
    reads = [asyncio.ensure_future(look(lane, world, f"l{i}")) for i in range(4)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.made == ["e0"]
    gate.set()
    await asyncio.gather(*reads)

    assert trees == ["tree of e0", "restored"]
    assert sorted(world.made) == ["e0", "l0", "l1", "l2", "l3"]


async def test_failed_restore_fails_every_call_that_waits_for_it(store, run, world):
    async def restore(tree):
        await asyncio.sleep(0)
        raise Paused("no room", reason="disk")

    lane = await opened(store)
    lane.on_live = restore
    ended = await asyncio.gather(
        *(look(lane, world, f"l{i}") for i in range(3)), return_exceptions=True
    )

    assert [type(e) for e in ended] == [Paused] * 3
    assert world.made == []


async def test_effect_in_flight_is_made_again_from_the_tree_before_it(store, run, world):
    first = await opened(store)
    await edit(first, world, "e0")
    await look(first, world, "l1")
    world.crash_in = "e2"
    with pytest.raises(Crash):
        await edit(first, world, "e2")
    world.crash_in = None
    trees = []

    async def restore(tree):
        trees.append(tree)

    lane = await opened(store)
    lane.on_live = restore
    await edit(lane, world, "e0")
    await look(lane, world, "l1")
    await edit(lane, world, "e2")

    assert trees == ["tree of e0"]
    assert world.made == ["e0", "l1", "e2", "e2"]


# Order


async def test_effect_waits_for_the_reads_before_it(store, run, world):
    lane = await opened(store)
    reading, go_on, log = asyncio.Event(), asyncio.Event(), []

    async def slow():
        reading.set()
        await go_on.wait()
        log.append("read")
        return Outcome(value={})

    async def effect():
        log.append("effect")
        return Outcome(value={}, tree="t")

    read = asyncio.ensure_future(lane.call("tool", {}, {}, slow, effectful=False))
    await reading.wait()
    act = asyncio.ensure_future(lane.call("tool", {}, {}, effect, effectful=True))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(read, act)

    assert log == ["read", "effect"]
    assert await recorded(store) == [(0, "tool", True), (1, "tool", True)]


async def test_outcomes_are_committed_in_order_whatever_ends_first(store, run, world):
    lane = await opened(store)
    gates = [asyncio.Event() for _ in range(3)]

    def reading(i):
        async def work():
            await gates[i].wait()
            return Outcome(value={"n": i})

        return lane.call("tool", {"n": i}, {}, work, effectful=False)

    reads = [asyncio.ensure_future(reading(i)) for i in range(3)]
    await asyncio.sleep(0)
    for i in (2, 0):
        gates[i].set()
        await reads[i]
    await lane.flush()
    half = await recorded(store)
    gates[1].set()
    await reads[1]
    await lane.flush()

    assert [seq for seq, *_ in half] == [0]
    assert [seq for seq, *_ in await recorded(store)] == [0, 1, 2]
    assert [e.data["calls"] for e in await told(store, EventKind.TOOL_CALLED)] == [1, 2, 3]
    assert await store.read(lambda r: calls.broken(r, lane.name)) == []


async def test_effect_behind_a_read_that_fails_is_not_made(store, run, world):
    lane = await opened(store)
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def failing():
        reading.set()
        await go_on.wait()
        raise Paused("gone", reason="sandbox")

    read = asyncio.ensure_future(lane.call("tool", {}, {}, failing, effectful=False))
    await reading.wait()
    act = asyncio.ensure_future(edit(lane, world, "e1"))
    await asyncio.sleep(0)
    go_on.set()
    ended = await asyncio.gather(read, act, return_exceptions=True)

    assert [type(e) for e in ended] == [Paused, Paused]
    assert (world.made, await recorded(store)) == ([], [])


# Cuts


async def test_differing_request_cuts_the_lane_there(store, run, world):
    first = await opened(store)
    await three(first, world)
    await edit(first, world, "e3")
    trees = []

    async def restore(tree):
        trees.append(tree)

    lane = await opened(store)
    lane.on_live = restore
    await ask(lane, world, "m0")
    await edit(lane, world, "e1")
    other = await ask(lane, world, "other", request={"ask": "m2", "model": "another"})
    await edit(lane, world, "e3")

    assert other.value == {"said": "other"}
    assert world.made == ["m0", "e1", "m2", "e3", "other", "e3"]
    assert trees == ["tree of e1"]
    (cut,) = await told(store, EventKind.LANE_CUT)
    assert (cut.task, cut.attempt) == ("a", 1)
    assert {k: cut.data[k] for k in ("lane", "seq", "removed")} == {
        "lane": lane.name,
        "seq": 2,
        "removed": 2,
    }
    assert cut.data["recorded"].startswith("model ")
    assert cut.data["recorded"] != cut.data["asked"]
    rows = await store.read(lambda r: calls.rows(r, lane.name))
    assert [row["name"] for row in rows] == ["m0", "e1", "other", "e3"]
    assert await store.read(lambda r: calls.broken(r, lane.name)) == []


async def test_call_of_another_kind_cuts_too(store, run, world):
    await ask(await opened(store), world, "m0", request={"same": 1})

    lane = await opened(store)
    await edit(lane, world, "e0", request={"same": 1})

    assert world.made == ["m0", "e0"]
    assert await recorded(store) == [(0, "tool", True)]


async def test_open_intent_of_another_request_is_cut_and_its_reservation_is_spent(
    store, run, world
):
    first = await opened(store)
    await ask(first, world, "m0", usage=Usage(input_tokens=1, output_tokens=1), reserve=5)
    world.crash_in = "m1"
    with pytest.raises(Crash):
        await ask(first, world, "m1", reserve=100)
    world.crash_in = None

    lane = await opened(store)
    await ask(lane, world, "m0", reserve=5)
    await ask(
        lane, world, "m1", request={"ask": "changed"}, reserve=50, usage=Usage(output_tokens=3)
    )

    row = await store.read(lambda r: r.get("Run", "r1"))
    assert (row["callsUsed"], row["tokensUsed"], row["tokensReserved"]) == (3, 2 + 100 + 3, 0)
    assert len(await told(store, EventKind.LANE_CUT)) == 1


async def test_record_behind_a_failed_call_is_cut_when_that_call_is_made(store, run, world):
    first = await opened(store)
    await ask(first, world, "m0")
    world.crash_in = "m1"
    with pytest.raises(Crash):
        await ask(first, world, "m1")
    world.crash_in = None
    await ask(first, world, "m2")
    assert [done for *_, done in await recorded(store)] == [True, False, True]

    lane = await opened(store)
    for name in ("m0", "m1", "m2"):
        await ask(lane, world, name)

    assert world.made == ["m0", "m1", "m2", "m1", "m2"]
    assert [done for *_, done in await recorded(store)] == [True] * 3
    assert (await told(store, EventKind.LANE_CUT))[0].data["removed"] == 1


# Fences


async def steal(store):
    return await store.write(
        lambda ops: claims.claim(ops, "r1", "w2", lease_seconds=300, dead=("w1",))
    )


@pytest.mark.parametrize("call", [ask, edit])
async def test_call_with_an_old_fence_is_refused_before_it_is_made(store, run, world, call):
    lane = await opened(store)
    await ask(lane, world, "m0")
    await steal(store)

    with pytest.raises(LeaseLost):
        await call(lane, world, "x1")

    assert world.made == ["m0"]
    assert await recorded(store) == [(0, "model", True)]


async def test_outcome_with_an_old_fence_is_refused(store, run, world):
    lane = await opened(store)

    async def work():
        await steal(store)
        return Outcome(value={"late": True})

    with pytest.raises(LeaseLost):
        await lane.call("model", {"ask": "m0"}, {}, work, effectful=True)
    assert await recorded(store) == [(0, "model", False)]

    again = await opened(store, fence=2)
    assert (await ask(again, world, "m0")).value == {"said": "m0"}


async def test_waiting_reads_with_an_old_fence_are_refused(store, run, world):
    lane = await opened(store)
    await look(lane, world, "l0")
    await steal(store)

    with pytest.raises(LeaseLost):
        await lane.flush()
    assert await recorded(store) == []


async def test_cut_with_an_old_fence_is_refused(store, run, world):
    await three(await opened(store), world)
    lane = await opened(store)
    await steal(store)

    with pytest.raises(LeaseLost):
        await ask(lane, world, "other")
    assert len(await recorded(store)) == 3


async def test_new_holder_replays_what_the_old_one_recorded(store, run, world):
    await three(await opened(store), world)
    (second,) = await steal(store)

    await three(await opened(store, fence=second.fence), world)

    assert world.made == ["m0", "e1", "m2"]


async def test_lane_without_a_task_needs_no_fence(store, run, world):
    lane = await opened(store, task="plan", role="pm", fence=None)
    await ask(lane, world, "m0")

    assert lane.name == "r1/plan/1/pm"
    (event,) = await told(store, EventKind.MODEL_CALLED)
    assert (event.task, event.data["role"]) == ("", "pm")


async def test_lanes_do_not_see_each_other(store, run, world):
    await ask(await opened(store), world, "m0")
    await ask(await opened(store, role="qc"), world, "m0")
    await ask(await opened(store, role="qc", lane="r1/a/1/qc.2"), world, "m0")

    assert world.made == ["m0"] * 3


# Events, counts, hashes


async def test_each_outcome_has_its_event_and_is_counted(store, run, world):
    lane = await opened(store)
    await ask(lane, world, "m0", usage=Usage(input_tokens=30, output_tokens=12))
    await look(lane, world, "l1", value={"denied": True})
    await edit(lane, world, "e2")
    await ask(lane, world, "m3", reserve=70)

    events = await told(store, EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED)
    assert [(e.kind, e.task, e.attempt) for e in events] == [
        (EventKind.MODEL_CALLED, "a", 1), (EventKind.TOOL_DENIED, "a", 1), (EventKind.TOOL_CALLED, "a", 1),
        (EventKind.MODEL_CALLED, "a", 1),
    ]  # fmt: skip
    assert [e.data for e in events] == [
        {"role": "worker", "seq": 0, "tool": "", "title": "m0", "tokens": 42, "calls": 1},
        {"role": "worker", "seq": 1, "tool": "look", "title": "l1", "tokens": 0, "calls": 1},
        {"role": "worker", "seq": 2, "tool": "edit", "title": "e2", "tokens": 0, "calls": 2},
        {"role": "worker", "seq": 3, "tool": "", "title": "m3", "tokens": 70, "calls": 2},
    ]
    task_row = await store.read(lambda r: r.get("Task", "r1/a"))
    assert task_row["outcomes"] == 4


async def test_tool_numbers_go_on_after_a_resume(store, run, world):
    await edit(await opened(store), world, "e0")
    lane = await opened(store)
    await edit(lane, world, "e0")
    await edit(lane, world, "e1")

    assert [e.data["calls"] for e in await told(store, EventKind.TOOL_CALLED)] == [1, 2]


async def test_lane_hash_does_not_depend_on_time_or_fence(store, run, world, frozen_clock):
    first = await opened(store)
    await three(first, world)
    frozen_clock.advance(1000)
    (held,) = await steal(store)
    await three(await opened(store, fence=held.fence, lane="again"), world)

    rows = await store.read(lambda r: (calls.rows(r, first.name), calls.rows(r, "again")))
    assert [r["requestHash"] for r in rows[0]] == [r["requestHash"] for r in rows[1]]
    assert rows[0][0]["hash"] != rows[1][0]["hash"]  # another name is another chain


@pytest.mark.parametrize(
    ("props", "broken"),
    [
        ({"valueJson": '{"said":"x"}'}, [1]), ({"requestHash": "0"}, [1]), ({"deltaJson": "{}"}, [1]),
        ({"tree": "other"}, [1]), ({"inputTokens": 9}, [1]), ({"kind": "model"}, [1]), ({"hash": "0"}, [1, 2]),
    ],
)  # fmt: skip
async def test_edited_call_is_found(store, run, world, props, broken):
    lane = await opened(store)
    await three(lane, world)
    assert await store.read(lambda r: calls.broken(r, lane.name)) == []

    await store.write(lambda ops: ops.patch("Call", f"{lane.name}#00001", props))

    assert await store.read(lambda r: calls.broken(r, lane.name)) == [
        f"{lane.name}#{n:05d}" for n in broken
    ]


async def test_storage_holds_deltas_not_histories(store, run, world):
    lane = await opened(store)
    history = {"messages": ["x" * 1000] * 50}
    for i in range(10):
        await lane.call("model", {**history, "n": i}, {"n": i}, world.work(f"m{i}"), effectful=True)

    rows = await store.read(lambda r: calls.rows(r, lane.name))
    assert max(len(str(row)) for row in rows) < 1500


async def test_commit_that_is_run_twice_counts_once(store, run, world, monkeypatch):
    write = store.write

    async def twice(work):
        await write(work)
        return await write(work)

    lane = await opened(store)
    await look(lane, world, "l0")
    monkeypatch.setattr(store, "write", twice)
    await lane.flush()
    monkeypatch.undo()

    assert (await store.read(lambda r: r.get("Task", "r1/a")))["outcomes"] == 1
    assert len(await told(store, EventKind.TOOL_CALLED)) == 1
