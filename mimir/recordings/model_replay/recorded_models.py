"""Models that answer from a recording while the work is done again: each question must be the recorded one, in its lane's order.

A question that differs only in what tools said is answered, and told as drift. Any other difference is a miss: the run pauses, and the
first part that differs is named. No endpoint is opened and no key is read.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from mimir.domain.ids import PLAN_TASK
from mimir.domain.message import Answer, ModelRequest
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
    of_request,
)

AGENTINATOR = "agentinator"
REPORTER = "_reporter"
MISSED = "recording"
"""Reason of the pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingUsage:
    """What a replay made of a recording."""

    calls: int
    """Model calls that the recording holds of the lanes that could be asked."""
    served: int
    left: tuple[str, ...]
    """`lane, call` of each that nobody asked for."""
    missed: tuple[str, ...]
    """Questions that it does not hold, in words."""
    drifts: int
    """Questions that were answered though a tool had said something else."""

    @property
    def whole(self) -> bool:
        """True if every call was asked for, and nothing else was."""
        return not self.left and not self.missed


@dataclass(slots=True)
class _RecordedCalls:
    """The model calls of one lane; of several runs, the last one's."""

    name: str
    calls: list[tuple[RecordedCall, RecordedRequest]]
    served: set[int] = field(default_factory=set[int])
    at: int = 0


class RecordedModels:
    """Where models come from when a recording answers."""

    def __init__(
        self,
        tape: Recording,
        name: str,
        *,
        on_drift: Callable[[str, str, int, RequestDifference], Awaitable[None]],
    ) -> None:
        """Serve a recording.

        Args:
            tape: The recording.
            name: What the person calls its file.
            on_drift: Told (run, lane within the run, call, first difference).
        """
        self._name = name
        self._on_drift = on_drift
        self._lanes: dict[str, _RecordedCalls] = {}
        self._alike: dict[str, list[_RecordedCalls]] = {}
        """By what their names have in common."""
        self._missed: list[str] = []
        self._drifts = 0
        self._preambles: dict[tuple[str, str], tuple[str, str]] = {}
        self.preambles_by = ""
        """Model that the recorded preambles are of: a part of their files' names."""
        for run in tape.runs.values():
            self._preambles.update(run.preambles)
            asked = run_models.pinned_choice(run.settings, AGENTINATOR)
            self.preambles_by = asked.model if asked else ""
            for lane in run.lanes:
                own = run.own(lane)
                calls = list(iterate_requests(run.model_calls(own)))
                if calls:
                    self._lanes[own] = _RecordedCalls(own, calls)
        for own, lane in self._lanes.items():
            self._alike.setdefault(_common(own), []).append(lane)

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return the model of a lane, `run/task/attempt/role`."""
        del role, model
        run, _, own = lane.partition("/")
        return RecordedModel(self, run, own, self._alike.get(_common(own), []))

    def preamble(self, number: int, kind: str, role: str) -> tuple[str, str] | None:
        """Return the preamble, and its hash, that lay in the recorded run's library; None: it was asked for, or the role is not known."""
        if f"{PLAN_TASK}/{number}/{AGENTINATOR}" in self._lanes:
            return None
        return self._preambles.get((kind, role))

    def usage(self) -> RecordingUsage:
        """Say what was used so far. Preambles that were found as files need no call; they do not count as left."""
        left = [
            f"{lane.name}, call {call.seq}"
            for lane in self._lanes.values()
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
        """Say what is to be told of endpoints: there are none."""
        return []

    def check(self) -> None:
        """Find nothing missing: no key is needed."""

    async def close(self) -> None:
        """Close nothing: nothing is open."""

    async def report_drift(self, run: str, lane: str, call: int, what: RequestDifference) -> None:
        """Note a difference that does not count."""
        self._drifts += 1
        await self._on_drift(run, lane, call, what)

    def record_miss(self, lane: str, call: int, what: str) -> Paused:
        """Note a question that is not recorded, and return what it does to the run."""
        said = f"Lane {lane}, call {call}: {what}"
        self._missed.append(said)
        return Paused(
            f"The recording {self._name} does not hold this question. {said}",
            reason=MISSED,
            exit_code=65,
            next_step="Record the run again: mimir execute PLAN --record FILE",
        )


class RecordedModel:
    """One lane's model."""

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
        """Answer as recorded.

        Raises:
            Paused: The recording does not hold this question.
        """
        now = of_request(request)
        number, self._asked = self._asked, self._asked + 1
        for lane in self._known:
            for at in _order(lane):
                call, before = lane.calls[at]
                # A reporter is told in which order things came about: its words are marked as prose, and decide nothing.
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
            return number, "it has no such lane."
        lane = self._known[0]
        if lane.at >= len(lane.calls):
            last = lane.calls[-1][0].seq
            return last + 1, f"it has {len(lane.calls)} model calls of this lane and no more."
        call, before = lane.calls[lane.at]
        found = difference(before, now, exactly=False)
        if found is None:
            return call.seq, "it was asked already."
        changed = "its preamble changed, " if found.part == "message 1 (system)" else ""
        return call.seq, f"{changed}first difference in {found}"


def _order(lane: _RecordedCalls) -> list[int]:
    """Return where to look: the next call, then those after it, which a resumed run goes on from."""
    return [at for at in range(lane.at, len(lane.calls)) if at not in lane.served]


def _common(lane: str) -> str:
    """Return what a lane's name has in common with those in which its questions may stand: they are told apart by the questions alone.

    All preambles are alike, and all judgements of one attempt's merges: a file more in the project makes a merged tree another one.
    """
    return AGENTINATOR if _is_preamble(lane) else _MERGED_TREE.sub(".merged", lane)


_MERGED_TREE = re.compile(r"\.merged-[0-9a-f]{12}(?=$|\.)")


def _is_preamble(lane: str) -> bool:
    return lane.startswith(f"{PLAN_TASK}/") and lane.endswith(f"/{AGENTINATOR}")
