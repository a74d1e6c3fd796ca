"""Stored transcript of an agent: on resume, no recorded call is repeated.

A model call, and a tool call with an effect, has its intent committed before the call and its outcome after. Outcomes of reading calls wait
for the next row. Outcomes are committed in order, each hashed over the one before. From the first unrecorded call on, the transcript is
live: later rows are deleted. One writer per transcript, by its fence.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from mimir.domain import ids
from mimir.domain.call_outcome import CallOutcome, encode_result
from mimir.domain.message import ToolResult
from mimir.domain.question import NewQuestion, assumed_text, refused_text
from mimir.domain.usage import TokenUsage
from mimir.errors import Waiting
from mimir.store.deferring_store import Later
from mimir.store.protocol import Row, Transactions
from mimir.store.row_fields import int_field
from mimir.store.transcripts import call_rows, waiting_calls
from mimir.store.transcripts.call_rows import CallRequest, CompletedCall, StoredCall, TranscriptKey

Work = Callable[[], Awaitable[CallOutcome]]


class StoredTranscript:
    """Calls of one agent in one attempt, in order; created by `open`."""

    on_live: Callable[[str], Awaitable[None]] | None = None
    """Awaited once before the first live call, with the last recorded tree (empty: none)."""

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
        # Workspace tree after the last effect. Empty: none yet.
        self.tree = ""
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
        """Open a transcript with its recorded calls.

        Without `fence`, no lease is checked. `lane` is the id if it is not the role's first transcript. If `is_new`, nothing is read. `later` takes
        writes that may wait for the next write to `store`.
        """
        name = lane or ids.lane_id(run, task, attempt, role)
        place = TranscriptKey(
            run=run, task=task, attempt=attempt, role=role, fence=fence, lane=name
        )
        rows = [] if is_new else await store.read(partial(call_rows.rows, lane=name), brief=True)
        return cls(store, place, rows, later)

    @property
    def name(self) -> str:
        """Id of the transcript."""
        return self._place.lane

    @property
    def interruptions(self) -> int:
        """Number of times that earlier processes began the first call without an outcome."""
        row = self._rows.get(self._live_from)
        return 0 if row is None else int_field(row, "tries")

    @property
    def is_next_begun(self) -> bool:
        """Whether an earlier process began the next call."""
        return self._next in self._rows

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
        """Return the recorded outcome, or do `work` and record it.

        Args:
            kind: Kind of the call.
            request: Everything that decides the outcome; the transcript is cut where it differs.
            delta: Difference of the request from the calls before; it is stored.
            work: Makes the call.
            effectful: True: it may change something. False: it only reads.
            reserve: Most tokens of the call; they count if its usage is not reported.
            of_answer: Tokens of `reserve` for the answer, which has its own price.
            title: For users; of a model call, the name of the model.

        Raises:
            LeaseLost: Another process has the task.
            Paused: The run's budget is exhausted; no call was made.
            Exception: An exception of `work`; the call stays open and is made again on resume.
        """
        seq, self._next = self._next, self._next + 1
        asked = CallRequest.from_arguments(
            seq, kind, request, delta, reserve=reserve, of_answer=of_answer, title=title
        )
        recorded = self._recorded(asked)
        if recorded is not None:
            return self._served(asked, recorded)
        return await self._make(asked, work, ordered=effectful or kind == "model")

    async def ask(
        self, request: Mapping[str, object], question: NewQuestion, *, title: str = ""
    ) -> CallOutcome:
        """Return the recorded outcome of a call that asks the user, or ask.

        Raises:
            LeaseLost: Another process has the task.
            Waiting: It was asked; the task waits, and its lease is released.
        """
        seq, self._next = self._next, self._next + 1
        asked = CallRequest.from_arguments(
            seq, "tool", request, request, reserve=0, of_answer=0, title=title
        )
        recorded = self._recorded(asked)
        # An answer that came since is a recorded outcome like any other.
        if recorded is not None:
            return self._served(asked, recorded)
        work = partial(self._ask, asked, question)
        return await self._make(asked, work, ordered=True, is_question=True)

    async def flush(self) -> None:
        """Commit the waiting outcomes when the agent is done.

        Raises:
            LeaseLost: Another process has the task.
        """
        await self._keep(self._later)

    async def _keep(self, later: Later | None, *, durable: bool = True) -> None:
        """Commit the waiting outcomes, or hand them to `later`."""
        done = self._done()
        if not done:
            return
        write = partial(call_rows.write_outcomes, place=self._place, done=done)
        if later is None:
            await self._store.write(write, durable=durable)
        else:
            later(write)
        self._committed(done)

    def _recorded(self, asked: CallRequest) -> CallOutcome | None:
        """Return the recorded outcome of a call; None: it is made live."""
        if asked.seq >= self._live_from:
            return None
        row = self._rows[asked.seq]
        if asked.is_recorded_in(row):
            return call_rows.outcome_of(row)
        self._diverge(asked.seq)
        return None

    def _served(self, asked: CallRequest, outcome: CallOutcome) -> CallOutcome:
        self.replayed += 1
        self._pass(asked, outcome)
        return outcome

    def _pass(self, asked: CallRequest, outcome: CallOutcome) -> None:
        """Count a call with its outcome."""
        self.tree = outcome.tree or self.tree
        if asked.kind == "tool":
            self.tool_calls += 1
        if outcome.usage:
            self.usage += outcome.usage

    def _diverge(self, seq: int) -> None:
        """Continue live: the request is not the recorded one."""
        self._live_from = self._uncommitted = seq
        self._hash = call_rows.hash_before(self.name, self._rows, seq)
        self._tools_recorded = call_rows.tools_before(self._rows, seq)

    async def _make(
        self, asked: CallRequest, work: Work, *, ordered: bool, is_question: bool = False
    ) -> CallOutcome:
        """Make a call; an ordered one waits for those before it and is committed at once.

        The work of a question writes its intent.
        """
        flight = asyncio.get_running_loop().create_future()
        flight.add_done_callback(_retrieve_exception)
        self._in_flight[asked.seq] = flight
        try:
            await self._go_live(asked)
            if ordered:
                await self._ended_before(asked.seq)
            if ordered and not is_question:
                await self._begin(asked)
            stored = StoredCall.of(asked, await work())
            self._outcomes[asked.seq] = stored
            self._pass(asked, stored.outcome)
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
        return stored.outcome

    async def _begin(self, asked: CallRequest) -> None:
        """Commit the waiting outcomes and the intent."""
        # Thinking may be repeated, so the intent of a model call does not wait for the disk.
        done = self._done()
        # The holder of the fence is the only writer, so a new call cannot have an intent. Without a fence it can.
        may_stand = asked.seq in self._rows or self._place.fence is None
        intent = partial(
            call_rows.write_intent, place=self._place, asked=asked, done=done, may_stand=may_stand
        )
        await self._store.write(intent, durable=asked.kind != "model")
        self._committed(done)

    async def _ask(self, asked: CallRequest, question: NewQuestion) -> CallOutcome:
        """Write the question with its intent; return the outcome of one that does not wait."""
        done = self._done()
        # First the reply that asks, and the reads beside it: then a death costs no model call.
        await self._store.write(partial(call_rows.write_outcomes, place=self._place, done=done))
        self._committed(done)
        write = partial(
            waiting_calls.write_question, place=self._place, asked=asked, question=question
        )
        id, refusal = await self._store.write(write)
        if refusal:
            return _text_outcome(refused_text(refusal))
        if question.is_blocking or question.default is None:
            raise Waiting(f"{self._place.lane} waits for the answer to {id}.")
        return _text_outcome(assumed_text(question.default))

    async def _ended_before(self, seq: int) -> None:
        """Wait for the calls before this one; their failure is its failure."""
        # Shielded: a cancelled call must not cancel the ones before it.
        flights = [flight for earlier, flight in self._in_flight.items() if earlier < seq]
        for flight in flights:
            await asyncio.shield(flight)

    async def _go_live(self, asked: CallRequest) -> None:
        """Delete outdated rows and restore the workspace, once."""
        # Concurrent calls all wait for the first one, which does the work.
        if self._live is not None:
            await asyncio.shield(self._live)
            return
        self._live = asyncio.get_running_loop().create_future()
        self._live.add_done_callback(_retrieve_exception)
        try:
            if call_rows.is_cut(self._rows, asked):
                cut = partial(call_rows.truncate_transcript, place=self._place, asked=asked)
                await self._store.write(cut)
            on_live, self.on_live = (
                self.on_live,
                None,
            )  # the callback refers to the owner of this transcript
            if on_live is not None:
                await on_live(call_rows.tree_before(self._rows, self._live_from))
        except BaseException as error:
            _fail(self._live, error)
            raise
        self._live.set_result(None)

    def _done(self) -> list[CompletedCall]:
        """Return the outcomes in order without a gap, each with its hash."""
        # A failed call is no gap: it has no stored.
        done: list[CompletedCall] = []
        hash, number, seq = self._hash, self._tools_recorded, self._uncommitted
        while seq in self._outcomes or seq in self._failed:
            if seq in self._outcomes:
                stored = self._outcomes[seq]
                number += stored.asked.kind == "tool"
                done.append(CompletedCall.after(hash, stored, number))
                hash = done[-1].hash
            seq += 1
        return done

    def _committed(self, done: Sequence[CompletedCall]) -> None:
        """Forget committed outcomes; after a failed commit they wait for the next one."""
        # The numbers decide which outcomes wait, so a second commit writes nothing twice.
        for call in done:
            self._outcomes.pop(call.asked.seq, None)
            self._uncommitted = call.asked.seq + 1
            self._hash, self._tools_recorded = call.hash, call.number


def _text_outcome(text: str) -> CallOutcome:
    return CallOutcome(value=encode_result(ToolResult(text=text)))


def _fail(future: "asyncio.Future[None]", error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        future.cancel()
    else:
        future.set_exception(error)


def _retrieve_exception(future: "asyncio.Future[None]") -> None:
    """Retrieve the exception: possibly no task waits for it."""
    if not future.cancelled():
        future.exception()
