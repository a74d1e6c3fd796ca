"""Replayed models: recorded answers to recorded requests while the work is done again.

A request that differs only in outputs of tools is answered and noted as drift. Any other difference is a miss: the run pauses with the
first differing part. No endpoint is opened and no key is read.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mimir.domain.agent import SPAWN_TOOL
from mimir.domain.call_outcome import CallOutcome, read_result
from mimir.domain.ids import PLAN_TASK
from mimir.domain.invocation import SpawnCaller
from mimir.domain.json_value import as_text, as_texts
from mimir.domain.message import Answer, ModelRequest, ToolResult
from mimir.domain.program import PROGRAM_TOOL
from mimir.domain.value_class import value_class
from mimir.errors import Paused
from mimir.llm import codec
from mimir.llm.protocol import ChatModel
from mimir.orchestrator import run_models
from mimir.recordings.format.recording import RecordedCall, Recording
from mimir.recordings.format.request_match import (
    RecordedRequest,
    RequestDifference,
    describe_drift,
    difference,
    iterate_requests,
    request_of,
)

AGENTINATOR = "agentinator"
REPORTER = "_reporter"
MISSED = "recording"
"""Reason of the pause."""


@value_class
class RecordingUsage:
    """Calls of a recording that a run used."""

    calls: int
    """Model calls in the recording."""
    served: int
    left: tuple[str, ...]
    """`lane, call` of each unused one."""
    missed: tuple[str, ...]
    """Requests that the recording does not have, in words."""
    drifts: int
    """Requests that were answered although outputs of tools differ."""

    @property
    def whole(self) -> bool:
        """Whether every call was used, and no other request was made."""
        return not self.left and not self.missed


@dataclass(slots=True)
class _RecordedCalls:
    """Model calls of one transcript; of several runs, those of the last one."""

    name: str
    calls: list[tuple[RecordedCall, RecordedRequest]]
    served: set[int] = field(default_factory=set[int])
    at: int = 0


class RecordedModels:
    """Source of models whose answers are recorded."""

    def __init__(
        self,
        recording: Recording,
        name: str,
        *,
        on_drift: Callable[[str, str, int, RequestDifference], Awaitable[None]],
    ) -> None:
        """Index a recording.

        Args:
            recording: The recording.
            name: Its name for messages.
            on_drift: Called with (run, transcript within the run, call, first difference).
        """
        self._name = name
        self._on_drift = on_drift
        self._lanes: dict[str, _RecordedCalls] = {}
        self._alike: dict[str, list[_RecordedCalls]] = {}
        """Common part of their names → transcripts."""
        self._missed: list[str] = []
        self._drifts = 0
        self._preambles: dict[tuple[str, str], tuple[str, str]] = {}
        self.preambles_by = ""
        """Model of the recorded preambles; it is part of their file names."""
        for run in recording.runs.values():
            self._preambles.update(run.preambles)
            asked = run_models.pinned_choice(run.settings, AGENTINATOR)
            self.preambles_by = asked.model if asked else ""
            for lane in run.lanes:
                own = run.own(lane)
                calls = list(iterate_requests(run.model_calls(own)))
                # A later run replaces an earlier transcript of the same name.
                if calls:
                    self._lanes[own] = _RecordedCalls(own, calls)
        self._programs = [
            call
            for run in recording.runs.values()
            for calls in run.lanes.values()
            for call in calls.values()
            if call.tool == PROGRAM_TOOL
        ]
        self._spawned = {
            as_text(call.request.get("arguments")): call.outcome
            for run in recording.runs.values()
            for calls in run.lanes.values()
            for call in calls.values()
            if call.tool == SPAWN_TOOL
        }
        for own, lane in self._lanes.items():
            self._alike.setdefault(_common(own), []).append(lane)

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return the model of a transcript, `run/task/attempt/role`."""
        del role, model
        run, _, own = lane.partition("/")
        return RecordedModel(self, run, own, self._alike.get(_common(own), []))

    def program(self, request: Mapping[str, object]) -> tuple[str, CallOutcome]:
        """Return the tree before a recorded program, and its outcome; it is not started again.

        Raises:
            Paused: No such program was started for this attempt.
        """
        wanted = _program_key(request)
        # Of several runs the last one counts, as for answers.
        found = [call for call in self._programs if _program_key(call.request) == wanted]
        if not found:
            raise self.record_miss("/".join(wanted[1:]), 0, f"it has no start of {wanted[0]}.")
        return as_text(found[-1].request.get("tree")), found[-1].outcome

    async def find_spawned(self, caller: SpawnCaller, arguments: str) -> ToolResult:
        """Return the recorded answer of a spawned agent; it is not spawned again."""
        found = self._spawned.get(arguments)
        if found is None:
            raise self.record_miss(caller.run, 0, f"it has no agent spawned with {arguments[:80]}.")
        return read_result(found.value)

    def preamble(self, number: int, kind: str, role: str) -> tuple[str, str] | None:
        """Return a cached preamble with its hash; None: a model wrote it, or there is none."""
        if f"{PLAN_TASK}/{number}/{AGENTINATOR}" in self._lanes:
            return None
        return self._preambles.get((kind, role))

    def usage(self) -> RecordingUsage:
        """Return the usage so far; calls for preambles do not count as unused."""
        left = [
            f"{lane.name}, call {call.seq}"
            for lane in self._lanes.values()
            # A preamble file in the project replaces the call.
            if not _is_preamble(lane.name)
            for at, (call, _) in enumerate(lane.calls)
            if at not in lane.served
        ]
        return RecordingUsage(
            calls=sum(len(lane.calls) for lane in self._lanes.values()),
            served=sum(len(lane.served) for lane in self._lanes.values()),
            left=tuple(left),
            missed=tuple(self._missed),
            drifts=self._drifts,
        )

    def notices(self) -> list[str]:
        """Return no notices: there is no endpoint."""
        return []

    def check(self) -> None:
        """Accept: no key is needed."""

    async def close(self) -> None:
        """Do nothing: no connection is open."""

    async def report_drift(
        self, run: str, lane: str, call: int, difference: RequestDifference
    ) -> None:
        """Count and pass on a difference in outputs of tools."""
        self._drifts += 1
        await self._on_drift(run, lane, call, difference)

    def record_miss(self, lane: str, call: int, detail: str) -> Paused:
        """Note a request that is not recorded, and return the pause of the run."""
        message = f"Lane {lane}, call {call}: {detail}"
        self._missed.append(message)
        return Paused(
            f"The recording {self._name} does not have this request. {message}",
            reason=MISSED,
            exit_code=65,
            next_step="Record the run again: mimir execute PLAN --record FILE",
        )


class RecordedModel:
    """Model of one transcript."""

    def __init__(
        self, models: RecordedModels, run: str, lane: str, known: Sequence[_RecordedCalls]
    ) -> None:
        self._models = models
        self._run = run
        self._lane = lane
        self._known = known
        self._asked = 0
        self._is_reporter = lane.endswith(REPORTER)

    async def ask(self, request: ModelRequest) -> Answer:
        """Return the recorded answer.

        Raises:
            Paused: The recording does not have this request.
        """
        now = request_of(request)
        number, self._asked = self._asked, self._asked + 1
        for lane in self._known:
            for at in _order(lane):
                call, before = lane.calls[at]
                # Facts for a reporter depend on the order of events; its narrative decides nothing.
                if self._is_reporter or difference(before, now, exactly=False) is None:
                    lane.served.add(at)
                    lane.at = at + 1
                    changed = describe_drift(before, now)
                    if changed:
                        await self._models.report_drift(self._run, self._lane, call.seq, changed)
                    return codec.read_answer(call.outcome.value)
        raise self._models.record_miss(self._lane, *self._why(now, number))

    def _why(self, now: RecordedRequest, number: int) -> tuple[int, str]:
        if not self._known:
            return number, "it has no such transcript."
        lane = self._known[0]
        if lane.at >= len(lane.calls):
            last = lane.calls[-1][0].seq
            return last + 1, f"it has {len(lane.calls)} model calls of this transcript and no more."
        call, before = lane.calls[lane.at]
        found = difference(before, now, exactly=False)
        if found is None:
            return call.seq, "this request was answered already."
        changed = "its preamble changed, " if found.part == "message 1 (system)" else ""
        return call.seq, f"{changed}first difference in {found}"


def _order(lane: _RecordedCalls) -> list[int]:
    """Return the places to search: the next call, and the later ones for a resumed run."""
    return [at for at in range(lane.at, len(lane.calls)) if at not in lane.served]


def _common(lane: str) -> str:
    """Return the common part of the names of transcripts that may hold a request."""
    # A new file in the project changes the tree in the name of a judgement of a merge.
    return AGENTINATOR if _is_preamble(lane) else _MERGED_TREE.sub(".merged", lane)


_MERGED_TREE = re.compile(r"\.merged-[0-9a-f]{12}(?=$|\.)")


def _program_key(request: Mapping[str, object]) -> tuple[str, ...]:
    """Return program, task and attempt; other words of a brief depend on the machine."""
    texts = [as_text(request.get("stdin")), *as_texts(request.get("argv"))]
    place = next((found for text in texts if (found := _PLACE.search(text))), None)
    task, attempt = place.groups() if place else ("", "")
    return as_text(request.get("program")), task, attempt


_PLACE = re.compile(r"^Task: (\S+)\nAttempt (\d+) of ", re.MULTILINE)


def _is_preamble(lane: str) -> bool:
    return lane.startswith(f"{PLAN_TASK}/") and lane.endswith(f"/{AGENTINATOR}")
