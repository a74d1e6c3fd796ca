"""A run's budget of calls, tokens and money: never over, with concurrent callers and deaths; no second count."""

import asyncio

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.money import ModelPrice
from mimir.domain.usage import TokenUsage
from mimir.errors import ConfigurationError, Paused
from mimir.store.operations import budget, claims, runs
from mimir.store.records.run_records import RunRecord
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir.store.transcripts.stored_transcript import StoredTranscript
from tests.support.clock import FrozenClock
from tests.support.stored_run import new_run, plan, start, task

TASKS = ("a", "b", "c")


async def lane_of(store, name, run="r1"):
    return await StoredTranscript.open(store, run=run, task=name, attempt=1, role="worker", fence=1)


async def ask(lane, n, *, reserve, used=None, fails=False, model="", of_answer=0, usage=None):
    async def work():
        await asyncio.sleep(0)
        if fails:
            raise ConnectionError
        return CallOutcome(
            value={}, usage=usage if used is None else TokenUsage(output_tokens=used)
        )

    return await lane.call(
        "model",
        {"n": n},
        {},
        work,
        effectful=True,
        reserve=reserve,
        of_answer=of_answer,
        title=model,
    )


async def book(store, run="r1"):
    row = await store.read(lambda r: r.get("Run", run))
    return row["callsUsed"], row["tokensUsed"], row["tokensReserved"]


@pytest.fixture
async def limited(store):
    async def make(**limits):
        await start(store, *(task(t) for t in TASKS), **limits)
        await store.write(lambda ops: claims.claim(ops, "r1", "w", lease_seconds=300, limit=3))
        return await lane_of(store, "a")

    return make


async def test_last_call_of_the_budget_is_made_and_the_next_pauses(store, limited):
    lane = await limited(max_calls=2)
    await ask(lane, 0, reserve=0)
    await ask(lane, 1, reserve=0)

    with pytest.raises(Paused) as caught:
        await ask(lane, 2, reserve=0)

    assert (caught.value.reason, caught.value.exit_code) == ("budget", 75)
    assert "2 model calls" in str(caught.value)
    assert "--max-calls" in caught.value.next_step
    assert await book(store) == (2, 0, 0)
    assert len(await store.read(lambda r: r.find("Call", {}))) == 2


@pytest.mark.parametrize(("reserve", "made"), [(60, True), (61, False)])
async def test_reservation_must_fit_in_the_remaining_tokens(store, limited, reserve, made):
    lane = await limited(max_tokens=100)
    await ask(lane, 0, reserve=70, used=40)

    if made:
        await ask(lane, 1, reserve=reserve, used=10)
    else:
        with pytest.raises(Paused, match="tokens"):
            await ask(lane, 1, reserve=reserve, used=10)

    assert await book(store) == ((2, 50, 0) if made else (1, 40, 0))


async def test_missing_usage_is_charged_at_its_reservation(store, limited):
    lane = await limited(max_tokens=100)
    await ask(lane, 0, reserve=70)

    assert await book(store) == (1, 70, 0)


async def test_usage_above_its_reservation_is_fully_charged(store, limited):
    lane = await limited(max_tokens=100)
    await ask(lane, 0, reserve=10, used=90)

    with pytest.raises(Paused):
        await ask(lane, 1, reserve=11)
    assert await book(store) == (1, 90, 0)


async def test_open_call_reserves_its_tokens_for_all_transcripts(store, limited):
    lane = await limited(max_tokens=100)
    with pytest.raises(ConnectionError):
        await ask(lane, 0, reserve=80, fails=True)
    assert await book(store) == (1, 0, 80)

    with pytest.raises(Paused):
        await ask(await lane_of(store, "b"), 0, reserve=30)
    await ask(await lane_of(store, "c"), 0, reserve=20, used=1)
    await ask(await lane_of(store, "a"), 0, reserve=80, used=5)

    assert await book(store) == (2, 6, 0)


async def test_call_that_is_made_again_is_counted_once_and_never_refused(store, limited):
    lane = await limited(max_calls=1, max_tokens=50)
    for _ in range(3):
        with pytest.raises(ConnectionError):
            await ask(lane, 0, reserve=50, fails=True)
        lane = await lane_of(store, "a")
    await store.write(lambda ops: ops.patch("Run", "r1", {"maxCalls": 0, "maxTokens": 0}))

    await ask(lane, 0, reserve=50, used=7)

    assert await book(store) == (1, 7, 0)


async def test_call_that_is_made_again_with_more_reserves_the_difference(store, limited):
    lane = await limited(max_tokens=100)
    with pytest.raises(ConnectionError):
        await ask(lane, 0, reserve=40, fails=True)

    with pytest.raises(Paused):
        await ask(await lane_of(store, "a"), 0, reserve=101)
    with pytest.raises(ConnectionError):
        await ask(await lane_of(store, "a"), 0, reserve=100, fails=True)
    assert await book(store) == (1, 0, 100)
    await ask(await lane_of(store, "a"), 0, reserve=10, used=5)

    assert await book(store) == (1, 5, 0)


async def test_refused_call_keeps_the_reads_that_wait(store, limited):
    lane = await limited(max_calls=0)

    async def read():
        return CallOutcome(value={"read": True})

    await lane.call("tool", {}, {}, read, effectful=False)
    with pytest.raises(Paused):
        await ask(lane, 1, reserve=0)
    await lane.flush()

    assert [r["kind"] for r in await store.read(lambda r: r.find("Call", {}))] == ["tool"]


async def test_tool_calls_cost_no_budget(store, limited):
    lane = await limited(max_calls=0, max_tokens=0)

    async def act():
        return CallOutcome(value={}, tree="t")

    await lane.call("tool", {}, {}, act, effectful=True)

    assert await book(store) == (0, 0, 0)


async def test_a_program_costs_tokens_and_no_model_call(store, limited):
    lane = await limited(max_calls=0, max_tokens=1000)

    async def act():
        return CallOutcome(value={}, tree="t", usage=TokenUsage(input_tokens=30, output_tokens=5))

    await lane.call("tool", {}, {}, act, effectful=True, reserve=1000)

    assert await book(store) == (0, 35, 0)
    with pytest.raises(Paused, match="1000 tokens"):
        await lane.call("tool", {"n": 2}, {}, act, effectful=True, reserve=1000)


async def test_run_continues_at_its_pause_after_a_raised_limit(store, limited):
    lane = await limited(max_calls=1)
    await ask(lane, 0, reserve=0)
    with pytest.raises(Paused):
        await ask(lane, 1, reserve=0)

    await store.write(lambda ops: ops.patch("Run", "r1", {"maxCalls": 2}))
    again = await lane_of(store, "a")
    await ask(again, 0, reserve=0)
    await ask(again, 1, reserve=0)

    assert (again.replayed, await book(store)) == (1, (2, 0, 0))


CHEAP, DEAR = "small", "large"
PRICES = {CHEAP: ModelPrice(input=1, output=4), DEAR: ModelPrice(input=30, output=60)}


async def money_book(store, run="r1"):
    row = await store.read(lambda r: r.get("Run", run))
    return row.get("costUsed", 0), row.get("costReserved", 0)


@pytest.mark.parametrize(("of_answer", "made"), [(10, True), (11, False)])
async def test_money_is_reserved_for_prompt_and_answer_each_at_its_price(
    store, limited, of_answer, made
):
    lane = await limited(max_cost=900, prices=PRICES)  # 20 x 30 + 10 x 60 = 1200; spent 600
    with pytest.raises(Paused, match="cost of"):
        await ask(lane, 0, reserve=30, of_answer=10, model=DEAR)
    await store.write(lambda ops: ops.patch("Run", "r1", {"maxCost": 1800}))
    lane = await lane_of(store, "a")
    await ask(lane, 0, reserve=30, of_answer=10, model=DEAR, usage=TokenUsage(output_tokens=10))

    if made:
        await ask(
            lane, 1, reserve=30, of_answer=of_answer, model=DEAR, usage=TokenUsage(input_tokens=1)
        )
    else:
        with pytest.raises(Paused) as caught:
            await ask(lane, 1, reserve=30, of_answer=of_answer, model=DEAR)
        assert (caught.value.reason, caught.value.exit_code) == ("budget", 75)
        assert "--max-cost 0.000001`" in caught.value.next_step

    assert await money_book(store) == ((630, 0) if made else (600, 0))


async def test_money_of_a_call_without_usage_is_its_reservation(store, limited):
    lane = await limited(max_cost=10_000, prices=PRICES)
    await ask(lane, 0, reserve=30, of_answer=10, model=DEAR)

    assert await money_book(store) == (1200, 0)
    [event] = [e for e in await store.read(lambda r: runs.events(r, "r1")) if "cost" in e.data]
    assert event.data["cost"] == "0.0000000012"


async def test_open_call_reserves_its_cost_for_all_transcripts_also_when_cut(store, limited):
    lane = await limited(max_cost=150, prices=PRICES)
    with pytest.raises(ConnectionError):
        await ask(lane, 0, reserve=100, model=CHEAP, fails=True)
    assert await money_book(store) == (0, 100)

    with pytest.raises(Paused):
        await ask(await lane_of(store, "b"), 0, reserve=51, model=CHEAP)
    with pytest.raises(Paused):
        await ask(await lane_of(store, "a"), 7, reserve=51, model=CHEAP)  # cuts the lane
    assert await money_book(store) == (100, 0)
    await ask(await lane_of(store, "c"), 0, reserve=50, model=CHEAP, used=10)

    assert await money_book(store) == (140, 0)


async def test_model_without_a_price_is_not_called_under_a_cost_limit(store, limited):
    lane = await limited(max_cost=10**12, prices=PRICES)

    with pytest.raises(Paused) as caught:
        await ask(lane, 0, reserve=1, model="other")

    assert (caught.value.reason, caught.value.exit_code) == ("configuration", 78)
    assert '[llm.prices."other"]' in caught.value.next_step
    assert await store.read(lambda r: r.find("Call", {})) == []


async def test_run_with_unpriced_calls_never_gets_a_cost_limit_later(store, limited):
    lane = await limited(prices=PRICES)
    await ask(lane, 0, reserve=9, model="other")
    await ask(lane, 1, reserve=9, model=CHEAP)

    row = await store.read(lambda r: r.get("Run", "r1"))
    assert (row["unpriced"], row["costUsed"]) == (["other"], 9)
    with pytest.raises(ConfigurationError, match="'other' had no price") as caught:
        budget.must_be_priced(RunRecord.from_row(row), [CHEAP])
    assert "--from r1" in caught.value.next_step


async def test_cost_of_an_answer_is_limited_to_the_range_of_the_store(store, limited):
    lane = await limited(prices={DEAR: ModelPrice(input=10**10, output=10**10)})
    await store.write(lambda ops: ops.patch("Run", "r1", {"costUsed": 2**62 - 1}))
    await ask(lane, 0, reserve=1, model=DEAR, usage=TokenUsage(output_tokens=10**9 - 1))

    assert (await money_book(store))[0] == 2**62


CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "reserve": st.integers(0, 40),
            "model": st.sampled_from([CHEAP, DEAR]),
            "share": st.none() | st.integers(0, 100),  # per cent of the reservation that is used
            "fails": st.sampled_from([False, False, False, True]),
        }
    ),
    max_size=8,
)
ROUNDS = st.lists(st.fixed_dictionaries(dict.fromkeys(TASKS, CALLS)), min_size=1, max_size=3)


class Book:
    """Plays rounds of concurrent lanes; after each round the process is another one."""

    def __init__(self, store, run, max_calls, max_tokens, max_cost):
        self.store, self.run = store, run
        self.limits = max_calls, max_tokens, max_cost
        self.begun = set()
        self.paused = 0

    async def play(self, rounds):
        made = new_run(
            plan(*(task(t) for t in TASKS)), id=self.run, max_calls=self.limits[0], max_tokens=self.limits[1],
            max_cost=self.limits[2], prices=PRICES,
        )  # fmt: skip

        def begin(ops):
            runs.create(ops, made)
            claims.release_task(ops, self.run, [(t, 0.0) for t in TASKS])
            claims.claim(ops, self.run, "w", lease_seconds=300, limit=3)

        await self.store.write(begin)
        for round in rounds:
            await asyncio.gather(*(self.lane(name, wanted) for name, wanted in round.items()))
            await self.check()

    async def lane(self, name, wanted):
        lane = await lane_of(self.store, name, self.run)
        for n, call in enumerate(wanted):
            used = None if call["share"] is None else call["reserve"] * call["share"] // 100
            try:
                await ask(
                    lane, n, reserve=call["reserve"], of_answer=call["reserve"], used=used,
                    fails=call["fails"], model=call["model"],
                )  # fmt: skip
            except ConnectionError:
                return
            except Paused:
                self.paused += 1
                return
            finally:
                await self.check()

    async def check(self):
        (calls, used, reserved, cost, held), rows = await self.store.read(
            lambda r: (self.book(r), r.find("Call", {"runId": self.run, "kind": "model"}))
        )
        max_calls, max_tokens, max_cost = self.limits
        assert calls <= max_calls
        assert used + reserved <= max_tokens
        assert cost + held <= max_cost
        open_rows = [r for r in rows if not r["done"]]
        assert reserved == sum(r["reserved"] for r in open_rows)
        assert calls == len(rows)
        assert used == sum(r.get("outputTokens", r["reserved"]) for r in rows if r["done"])
        assert held == sum(PRICES[r["name"]].output * r["reserved"] for r in open_rows)
        spent = [(r["name"], r.get("outputTokens", r["reserved"])) for r in rows if r["done"]]
        assert cost == sum(PRICES[name].output * tokens for name, tokens in spent)

    def book(self, reads):
        row = reads.get("Run", self.run)
        money = row.get("costUsed", 0), row.get("costReserved", 0)
        return row["callsUsed"], row["tokensUsed"], row["tokensReserved"], *money


def test_no_history_of_concurrent_calls_goes_over_the_budget(tmp_path):
    with asyncio.Runner() as runner:
        store = SqliteStore(tmp_path / "mimir.db", FrozenClock())
        runner.run(store.init())
        count, paused = iter(range(1_000_000)), []

        @settings(
            max_examples=30, phases=(Phase.explicit, Phase.generate)
        )  # shrinking takes minutes
        @given(ROUNDS, st.integers(0, 12), st.integers(0, 250), st.integers(0, 6000))
        def holds(rounds, max_calls, max_tokens, max_cost):
            book = Book(store, f"run-{next(count)}", max_calls, max_tokens, max_cost)
            runner.run(book.play(rounds))
            paused.append(book.paused)

        holds()
        runner.run(store.close())

    assert any(paused)
    assert not all(paused)
