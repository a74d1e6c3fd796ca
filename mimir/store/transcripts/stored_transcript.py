"""The lane: what an agent asked and got, call by call. On resume the recorded outcomes are served; nothing is done twice.

A model call, and a tool call with an effect, has its intent committed before it is made and its outcome after. Outcomes of reading
calls wait and are committed with the lane's next row. Outcomes are committed in the order of their numbers, each hashed over the
one before, so what is recorded is always a whole beginning of the lane, at most with one call in flight behind it. From the first
call that is not recorded on, the lane is live: no later outcome is served, whatever stands there is cut away.

One writer a lane, by its fence: every write checks it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from mimir.domain import ids
from mimir.domain.call_outcome import CallOutcome
from mimir.domain.usage import TokenUsage
from mimir.store.deferring_store import Later
from mimir.store.protocol import Row, Transactions
from mimir.store.transcripts import call_rows
from mimir.store.transcripts.call_rows import CallRequest, CompletedCall, StoredCall, TranscriptKey

Work = Callable[[], Awaitable[CallOutcome]]


class StoredTranscript:
    """Calls of one agent in one attempt, in order. Made by `open`; used by one event loop."""

    on_live: Callable[[str], Awaitable[None]] | None = None
    """Awaited once before the first call that is made, not served, with the last recorded tree ("": none)."""

    def __init__(
        self,
        store: Transactions,
        place: TranscriptKey,
        rows: Sequence[Row],
        later: Later | None = None,
    ) -> None:
        self._store = store
        self._later = later
        self._place = place
        self._rows = {call_rows.seq_of(row): row for row in rows}
        self._live_from = call_rows.first_open(self._rows)
        self._hash = call_rows.hash_before(place.lane, self._rows, self._live_from)
        self._next = 0
        self._uncommitted = self._live_from
        self._tools_recorded = call_rows.tools_before(self._rows, self._live_from)
        self._in_flight: dict[int, asyncio.Future[None]] = {}
        self._outcomes: dict[int, StoredCall] = {}
        self._failed: set[int] = set()
        self._live: asyncio.Future[None] | None = None
        self.tree = ""
        """Workspace tree after the last effect that was passed; empty: none yet."""
        self.replayed = 0
        self.tool_calls = 0
        self.usage = TokenUsage()

    @classmethod
    async def open(
        cls,
        store: Transactions,
        *,
        run: str,
        task: str,
        attempt: int,
        role: str,
        fence: int | None,
        lane: str | None = None,
        is_new: bool = False,
        later: Later | None = None,
    ) -> "StoredTranscript":
        """Open a lane with what is recorded of it.

        Args:
            store: Where it is kept.
            run: Whose.
            task: Id in the plan; `ids.PLAN_TASK` for a run's own agents.
            attempt: 1-based.
            role: Who speaks in it.
            fence: Of the task's lease. None: no task, nothing to check.
            lane: Its name where it is not the role's first one.
            is_new: True: nothing can be recorded of it, and nothing is looked for.
            later: Takes what may wait for the next write to `store`. None: nothing waits.
        """
        name = lane or ids.lane_id(run, task, attempt, role)
        place = TranscriptKey(
            run=run, task=task, attempt=attempt, role=role, fence=fence, lane=name
        )
        rows = [] if is_new else await store.read(partial(call_rows.rows, lane=name), brief=True)
        return cls(store, place, rows, later)

    @property
    def name(self) -> str:
        """The lane's id."""
        return self._place.lane

    async def call(
        self,
        kind: Literal["model", "tool"],
        request: Mapping[str, object],
        delta: Mapping[str, object],
        work: Work,
        *,
        effectful: bool,
        reserve: int = 0,
        of_answer: int = 0,
        title: str = "",
    ) -> CallOutcome:
        """Answer from the record, or do `work` and record it. The call's number is taken before the first await.

        Args:
            kind: What is called.
            request: All that decides the outcome; a recorded one that differs cuts the lane here.
            delta: What is kept of the request: what it adds to the calls before.
            work: Does it.
            effectful: True: it may change something; False: it only reads.
            reserve: Tokens that a model call may use at most, and costs if the provider does not say.
            of_answer: How many of `reserve` are the answer's: they have a price of their own.
            title: What a person is shown; of a model call the model's name.

        Raises:
            LeaseLost: Another holder has the task.
            Paused: The run's budget of calls, tokens or money is used up; nothing was made.
            Exception: What `work` raised; the call stays open and is made again on resume.
        """
        seq, self._next = self._next, self._next + 1
        asked = CallRequest.from_arguments(
            seq, kind, request, delta, reserve=reserve, of_answer=of_answer, title=title
        )
        if seq < self._live_from:
            row = self._rows[seq]
            if asked.is_recorded_in(row):
                return self._served(asked, call_rows.outcome_of(row))
            self._diverge(seq)
        return await self._make(asked, work, ordered=effectful or kind == "model")

    async def flush(self) -> None:
        """Commit the outcomes that wait, or have them committed with the next write; called when the agent is done.

        Raises:
            LeaseLost: Another holder has the task.
        """
        await self._keep(self._later)

    async def _keep(self, later: Later | None, *, durable: bool = True) -> None:
        """Commit the outcomes that wait; by `later`, if there is one, with the next write."""
        done = self._done()
        if not done:
            return
        write = partial(call_rows.write_outcomes, place=self._place, done=done)
        if later is None:
            await self._store.write(write, durable=durable)
        else:
            later(write)
        self._committed(done)

    def _served(self, asked: CallRequest, outcome: CallOutcome) -> CallOutcome:
        self.replayed += 1
        self._pass(asked, outcome)
        return outcome

    def _pass(self, asked: CallRequest, outcome: CallOutcome) -> None:
        """Count a call that has its outcome."""
        self.tree = outcome.tree or self.tree
        if asked.kind == "tool":
            self.tool_calls += 1
        elif outcome.usage:
            self.usage += outcome.usage

    def _diverge(self, seq: int) -> None:
        """Go on live from here: what was asked is not what is recorded."""
        self._live_from = self._uncommitted = seq
        self._hash = call_rows.hash_before(self.name, self._rows, seq)
        self._tools_recorded = call_rows.tools_before(self._rows, seq)

    async def _make(self, asked: CallRequest, work: Work, *, ordered: bool) -> CallOutcome:
        """Make a call. An ordered one waits for those before it, and is committed before and after; an answer may wait for what follows it."""
        flight = asyncio.get_running_loop().create_future()
        flight.add_done_callback(_seen)
        self._in_flight[asked.seq] = flight
        try:
            await self._go_live(asked)
            if ordered:
                await self._ended_before(asked.seq)
                await self._begin(asked)
            had = StoredCall.of(asked, await work())
            self._outcomes[asked.seq] = had
            self._pass(asked, had.outcome)
            if ordered:
                is_thought = asked.kind == "model"
                await self._keep(self._later if is_thought else None, durable=not is_thought)
        except BaseException as error:
            self._failed.add(asked.seq)
            _fail(flight, error)
            raise
        finally:
            del self._in_flight[asked.seq]
        flight.set_result(None)
        return had.outcome

    async def _begin(self, asked: CallRequest) -> None:
        """Commit the intent, and with it what waited. What was only thought may be thought again: it does not wait for the disk."""
        done = self._done()
        # Each is written once by who holds the lane; nobody else writes here, unless no fence keeps them out.
        may_stand = asked.seq in self._rows or self._place.fence is None
        intent = partial(
            call_rows.write_intent, place=self._place, asked=asked, done=done, may_stand=may_stand
        )
        await self._store.write(intent, durable=asked.kind != "model")
        self._committed(done)

    async def _ended_before(self, seq: int) -> None:
        """Wait for the calls before this one; the failure of one of them is the failure of this one."""
        flights = [flight for earlier, flight in self._in_flight.items() if earlier < seq]
        for flight in flights:
            await asyncio.shield(flight)

    async def _go_live(self, asked: CallRequest) -> None:
        """Cut what no longer holds and put the workspace where the record ends; once, whoever comes first."""
        if self._live is not None:
            await asyncio.shield(self._live)
            return
        self._live = asyncio.get_running_loop().create_future()
        self._live.add_done_callback(_seen)
        try:
            if call_rows.is_cut(self._rows, asked):
                cut = partial(call_rows.truncate_transcript, place=self._place, asked=asked)
                await self._store.write(cut)
            on_live, self.on_live = self.on_live, None  # it holds who holds this lane
            if on_live is not None:
                await on_live(call_rows.tree_before(self._rows, self._live_from))
        except BaseException as error:
            _fail(self._live, error)
            raise
        self._live.set_result(None)

    def _done(self) -> list[CompletedCall]:
        """Return what may be committed: outcomes in order without a gap, each with its hash. A failed call is no gap."""
        done: list[CompletedCall] = []
        hash, number, seq = self._hash, self._tools_recorded, self._uncommitted
        while seq in self._outcomes or seq in self._failed:
            if seq in self._outcomes:
                had = self._outcomes[seq]
                number += had.asked.kind == "tool"
                done.append(CompletedCall.after(hash, had, number))
                hash = done[-1].hash
            seq += 1
        return done

    def _committed(self, done: Sequence[CompletedCall]) -> None:
        """Forget what was committed; after a failed commit it waits for the next one, which writes nothing twice."""
        for each in done:
            self._outcomes.pop(each.asked.seq, None)
            self._uncommitted = each.asked.seq + 1
            self._hash, self._tools_recorded = each.hash, each.number


def _fail(future: "asyncio.Future[None]", error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        future.cancel()
    else:
        future.set_exception(error)


def _seen(future: "asyncio.Future[None]") -> None:
    """Look at the failure: nobody may be waiting for it."""
    if not future.cancelled():
        future.exception()
