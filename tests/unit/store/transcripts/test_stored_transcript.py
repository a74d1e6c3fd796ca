"""The transcript: a recorded call is returned, a new one runs once, and a crash costs at most the call in flight."""

import asyncio

import pytest

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.event import EventKind
from mimir.domain.usage import TokenUsage
from mimir.errors import ModelError, StoreError
from mimir.store.transcripts import call_rows
from tests.support.transcripts import Crash, ask, edit, events_of_kind, look, opened, recorded

# Recording and replaying


async def test_replay_serves_the_same_outcomes_and_makes_no_call(store, run, world):
    usage = TokenUsage(input_tokens=5, output_tokens=7)
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


async def test_live_callback_of_a_transcript_is_called_once(store, run, world):
    trees = []

    async def on_live(tree):
        trees.append(tree)

    lane = await opened(store)
    lane.on_live = on_live
    await ask(lane, world, "m0")
    await ask(lane, world, "m1")

    assert trees == [""]
    # It refers to the holder of the transcript: kept, both would stay for the garbage collector.
    assert lane.on_live is None


async def test_intent_is_written_before_a_call_and_its_outcome_after(store, run, world):
    lane = await opened(store)
    during = []

    async def work():
        during.append(await recorded(store))
        return CallOutcome(value={})

    await lane.call("model", {}, {}, work, effectful=True)
    await lane.call("tool", {"tool": "edit"}, {}, work, effectful=True)

    assert during == [[(0, "model", False)], [(0, "model", True), (1, "tool", False)]]
    assert await recorded(store) == [(0, "model", True), (1, "tool", True)]


async def test_reads_wait_for_the_next_row_of_the_transcript(store, run, world):
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
        return CallOutcome(value={})

    await lane.call("model", {}, {}, work, effectful=True)

    assert before == [(0, "model", True)]


async def test_flush_commits_the_reads_that_wait(store, run, world):
    lane = await opened(store)
    await look(lane, world, "l0")
    await look(lane, world, "l1")
    await lane.flush()
    await lane.flush()

    assert await recorded(store) == [(0, "tool", True), (1, "tool", True)]
    assert len(await events_of_kind(store, EventKind.TOOL_CALLED)) == 2


async def test_number_is_taken_before_the_first_await(store, run, world):
    lane = await opened(store)

    await asyncio.gather(*(look(lane, world, f"l{i}") for i in range(5)))
    await lane.flush()

    rows = await store.read(lambda r: call_rows.rows(r, lane.name))
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
    assert await events_of_kind(store, EventKind.LANE_CUT) == []
    (row,) = await store.read(lambda r: r.find("Call", {"name": "x1"}))
    assert (row["tries"], row["done"]) == (2, True)


async def test_crash_between_outcome_and_its_commit_costs_this_call_alone(
    store, run, world, monkeypatch
):
    lane = await opened(store)
    await ask(lane, world, "m0")
    write, count = store.write, []

    async def dying(work, **how):
        count.append(work)
        if len(count) == 2:  # the first is the intent
            raise Crash
        return await write(work, **how)

    monkeypatch.setattr(store, "write", dying)
    with pytest.raises(Crash):
        await edit(lane, world, "e1")
    monkeypatch.undo()

    again = await opened(store)
    await ask(again, world, "m0")
    await edit(again, world, "e1")

    assert world.made == ["m0", "e1", "e1"]


async def test_dropped_transcript_loses_only_its_waiting_reads(store, run, world):
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
    assert await events_of_kind(store, EventKind.MODEL_CALLED) == []


async def test_kill_at_any_point_of_a_transcript_costs_at_most_the_open_call(store, run, world):
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

            async def mortal(work, late=late, **how):
                nonlocal left
                left -= 1
                if left == -1 and not late:
                    raise Crash
                done = await write(work, **how)
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
