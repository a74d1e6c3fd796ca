"""Playback of recorded outcomes in place of models, tools and checks. Nothing is executed."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from mimir.attempts.program.journaled_program import JournaledProgram
from mimir.attempts.services import RoleTools, Stand, WorkerWorkspace
from mimir.domain.actor import CURRENT_ACTOR
from mimir.domain.call_outcome import CallOutcome, Transcript
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun
from mimir.domain.message import Answer, ModelRequest
from mimir.domain.plan import Check
from mimir.domain.question import NewQuestion
from mimir.errors import RecordingMiss
from mimir.llm import codec
from mimir.llm.protocol import ChatModel
from mimir.orchestrator.services import PlannerToolFactory
from mimir.qc.checks.check_execution import Phase
from mimir.qc.controls.control_case import ControlCase
from mimir.recordings.engine_replay.simulation import EventCursor
from mimir.recordings.format.recording import RecordedCheckRun, RecordedRun
from mimir.recordings.format.request_match import (
    RecordedRequest,
    difference,
    iterate_requests,
    request_of,
)
from mimir.store.operations import record_loading
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.schema import pack
from mimir.tools.protocol import Toolset
from mimir.tools.wrappers.quota import CallQuota

Delay = Callable[[str], Awaitable[None]]
"""Awaited before each outcome, with its transcript; tests reorder the outcomes with it."""


async def yield_once(_lane: str) -> None:
    """Yield once, without a delay."""
    await asyncio.sleep(0)


@dataclass(slots=True, kw_only=True)
class PlaybackState:
    """State that all services of a replay share."""

    cursor: EventCursor
    store: GraphStore
    delay: Delay = yield_once
    outcomes: int = 0
    checks: int = 0
    _questions: dict[str, dict[int, RecordedRequest]] = field(
        default_factory=dict[str, dict[int, RecordedRequest]]
    )

    @property
    def recorded(self) -> RecordedRun:
        """Recorded run."""
        return self.cursor.recorded

    def question(self, lane: str, seq: int) -> RecordedRequest:
        """Return a recorded request."""
        # Requests are built from deltas: once for each transcript.
        known = self._questions.get(lane)
        if known is None:
            calls = self.recorded.model_calls(self.recorded.own(lane))
            known = self._questions[lane] = {c.seq: asked for c, asked in iterate_requests(calls)}
        return known[seq]

    def miss(self, lane: str, seq: int, detail: str) -> RecordingMiss:
        """Return the error that a call is not recorded."""
        return RecordingMiss(f"lane {self.recorded.own(lane)}, call {seq}: {detail}")


@dataclass(frozen=True, slots=True)
class PlaybackModels:
    """Source of the recorded models."""

    state: PlaybackState

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return the recorded model of a transcript."""
        del role, model
        return _PlaybackModel(self.state, lane)


@dataclass(frozen=True, slots=True)
class _PlaybackModel:
    state: PlaybackState
    lane: str

    async def ask(self, request: ModelRequest) -> Answer:
        """Return the recorded answer to any request; a request that differs is noted.

        Raises:
            RecordingMiss: No call of this number is recorded.
        """
        state, lane = self.state, self.lane
        await state.delay(lane)
        seq, hash = await state.store.read(self._open)
        call = state.recorded.lanes.get(lane, {}).get(seq)
        if call is None or call.kind != "model":
            raise state.miss(lane, seq, "this question was not recorded")
        # Equal hashes: no need to build the recorded request, which may be megabytes.
        # Another version words its prompts in its own way.
        if call.request_hash != hash and not state.cursor.is_older:
            found = difference(state.question(lane, seq), request_of(request), exactly=True)
            if found is not None:
                state.cursor.differ(f"lane {state.recorded.own(lane)}, call {seq}", str(found))
        state.outcomes += 1
        return codec.read_answer(call.outcome.value)

    def _open(self, reads: ReadOps) -> tuple[int, str]:
        """Return number and hash of the request: its intent is in the transcript."""
        call = record_loading.find_open_call(reads, self.lane)
        return (call.number, call.request_hash) if call else (0, "")


class PlaybackTranscript:
    """Transcript that replays recorded tool outcomes and decides permissions again."""

    def __init__(self, inner: Transcript, state: PlaybackState, lane: str) -> None:
        self._inner = inner
        self._state = state
        self._lane = lane
        calls = state.recorded.lanes.get(lane, {})
        self._calls = [calls[seq] for seq in sorted(calls) if calls[seq].kind == "tool"]
        self._number = 0

    async def call(
        self,
        kind: Literal["model", "tool"],
        request: Mapping[str, object],
        delta: Mapping[str, object],
        work: Callable[[], Awaitable[CallOutcome]],
        /,
        *,
        effectful: bool,
        reserve: int = 0,
        of_answer: int = 0,
        title: str = "",
    ) -> CallOutcome:
        """Return the recorded outcome of the tool call of this number."""
        del work  # it would run the tool
        number, self._number = self._number, self._number + 1

        async def serve() -> CallOutcome:
            await self._state.delay(self._lane)
            return self._outcome(number, request)

        return await self._inner.call(
            kind,
            request,
            delta,
            serve,
            effectful=effectful,
            reserve=reserve,
            of_answer=of_answer,
            title=title,
        )

    async def ask(
        self, request: Mapping[str, object], question: NewQuestion, /, *, title: str = ""
    ) -> CallOutcome:
        """Ask again; the recorded answer follows with its event."""
        # Counted as a tool call, so that the next one finds its outcome.
        self._number += 1
        return await self._inner.ask(request, question, title=title)

    def _outcome(self, number: int, request: Mapping[str, object]) -> CallOutcome:
        if number >= len(self._calls):
            detail = f"this tool call was not recorded: {pack(request)[:200]}"
            raise self._state.miss(self._lane, number, detail)
        call = self._calls[number]
        one, other = pack(call.request), pack(request)
        if one != other:
            where = f"lane {self._state.recorded.own(self._lane)}, call {call.seq}"
            detail = f"tool call: recorded {one[:200]}, replayed {other[:200]}"
            self._state.cursor.differ(where, detail)
        self._state.outcomes += 1
        return call.outcome


@dataclass(frozen=True, slots=True)
class PlaybackTools:
    """Names and permissions of the real tools, with recorded outcomes."""

    inner: RoleTools
    planners: PlannerToolFactory
    state: PlaybackState

    def worker(self, bench: WorkerWorkspace) -> Toolset:
        """Return the worker's tools."""
        return self.inner.worker(replace(bench, lane=self._lane(bench.lane)))

    def program(self, bench: WorkerWorkspace) -> JournaledProgram:
        """Return the worker's program."""
        return self.inner.program(replace(bench, lane=self._lane(bench.lane)))

    def judge(
        self,
        run: str,
        where: Path,
        lane: Transcript,
        artifacts: Sequence[str],
        stand: Stand,
        base_commit: str,
    ) -> Toolset:
        """Return QC's tools."""
        return self.inner.judge(run, where, self._lane(lane), artifacts, stand, base_commit)

    def planner(
        self,
        where: Path,
        lane: Transcript,
        step: CallQuota | None = None,
        named: Collection[str] | None = None,
    ) -> Toolset:
        """Return the tools of the PM, or of another planning step."""
        return self.planners(where, self._lane(lane), step, named)

    def _lane(self, lane: Transcript) -> Transcript:
        # The protocol has no name; every transcript of the store has one.
        name = str(getattr(lane, "name", ""))
        return PlaybackTranscript(lane, self.state, name)


class PlaybackChecks:
    """Recorded check runs, each used as often as it was made."""

    def __init__(self, state: PlaybackState) -> None:
        self._state = state
        self._resumed = [e.at for e in state.recorded.events if e.kind is EventKind.RUN_RESUMED]
        self._runs: dict[str, list[tuple[int, CheckRun]]] = {}
        self._before: dict[tuple[str, str], CheckRun] = {}
        for one in state.recorded.checks:
            key = _recorded_key(one)
            self._runs.setdefault(key, []).append((self._epoch(one.at), one.ran))
            self._before[one.owner, key] = one.ran
        self._used: dict[str, int] = {}

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        """Return the recorded check run.

        Raises:
            RecordingMiss: It is not recorded.
        """
        del answer  # the recorded run is found without it
        return await self._play(check, tree, phase, again=again)

    async def control(self, case: ControlCase) -> CheckRun:
        """Return the recorded control of a check.

        Raises:
            RecordingMiss: It is not recorded.
        """
        return await self._play(case.check, case.after.tree, "control")

    async def _play(
        self, check: Check, tree: str, phase: Phase, *, again: bool = False
    ) -> CheckRun:
        actor = CURRENT_ACTOR.get()
        by = f"{actor.place} {check.id}" if actor and phase != "before" else ""
        key = _key(by, check.argv, check.timeout_seconds, tree, phase, again=again)
        await self._state.delay(f"check {check.id}")
        known = self._runs.get(key, [])
        if not known:
            raise RecordingMiss(
                f"check {check.id!r} ({phase}, tree {tree[:12]}) was not run in the recording"
            )
        self._state.checks += 1
        holder = self._state.cursor.holders.get(actor.task, "") if actor else ""
        # Each process makes a run before the work once and reuses it.
        if phase != "before":
            return replace(self._next(key, known), check=check.id)
        own = self._before.get((holder, key))
        return replace(own or self._latest(known), check=check.id)

    def _latest(self, known: Sequence[tuple[int, CheckRun]]) -> CheckRun:
        """Return the last run up to the present time, otherwise the first one."""
        epoch = self._epoch(self._state.cursor.time)
        return next((ran for at, ran in reversed(known) if at <= epoch), known[0][1])

    def _next(self, key: str, known: Sequence[tuple[int, CheckRun]]) -> CheckRun:
        """Return the next run of this epoch; one of a later epoch is not used up."""
        epoch = self._epoch(self._state.cursor.time)
        at = self._used.get(key, 0)
        while at < len(known) - 1 and known[at][0] < epoch:
            at += 1
        if at >= len(known):
            return known[-1][1]
        if known[at][0] <= epoch:
            self._used[key] = at + 1
        return known[at][1]

    def _epoch(self, at: str) -> int:
        """Count the resumes of the run up to a time."""
        return sum(resumed <= at for resumed in self._resumed)


def _recorded_key(one: RecordedCheckRun) -> str:
    ran = one.ran
    # Runs before the work are shared by all attempts.
    by = f"{one.by} {ran.check}" if ran.phase != "before" else ""
    # A control may have seen the tree before the work.
    tree = ran.stands_for or ran.tree if ran.phase == "control" else ran.tree
    return _key(by, ran.argv, one.timeout_seconds, tree, ran.phase, again=ran.again)


def _key(
    by: str, argv: Sequence[str], seconds: float, tree: str, phase: str, *, again: bool
) -> str:
    return pack([by, list(argv), float(seconds), tree, phase, again])
