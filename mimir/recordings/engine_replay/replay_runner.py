"""Replays of recorded runs: each has its own simulation and is compared with its record."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mimir.domain.clock import Clock
from mimir.domain.event import EventKind
from mimir.errors import MimirError, PlanError
from mimir.orchestrator import run_models
from mimir.orchestrator.services import ProjectServices
from mimir.qc.checks.check_runner import CheckRunner
from mimir.recordings.engine_replay import recorded_moves
from mimir.recordings.engine_replay.differences import (
    ReplayResult,
    diff_outcomes,
    diff_transcripts,
    has_report_of,
    with_broken,
)
from mimir.recordings.engine_replay.playback import (
    Delay,
    NullCache,
    PlaybackChecks,
    PlaybackModels,
    PlaybackState,
    PlaybackTools,
)
from mimir.recordings.engine_replay.replay import OWNER, RunReplay, owner_of
from mimir.recordings.engine_replay.simulation import EventCursor, RecordedClock, Simulation
from mimir.recordings.format.recording import RecordedRun, build
from mimir.recordings.format.recording_file import BrokenLine
from mimir.recordings.recorder import outcome_record
from mimir.store.operations import record_loading
from mimir.store.protocol import GraphStore
from mimir.store.schema import pack


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayServices:
    """Factories of a replay, as `bootstrap.app` makes them."""

    open_store: Callable[[Path, Clock], GraphStore]
    """Opens a temporary store."""
    make_services: Callable[[GraphStore], Awaitable[ProjectServices]]
    """Makes the services of the engine, with recorded answers of git."""


async def replay_runs(
    tapes: Sequence[RecordedRun],
    broken: Sequence[BrokenLine],
    factories: ReplayServices,
    room: Path,
    delay: Delay,
) -> Sequence[ReplayResult]:
    """Replay runs one after another.

    Args:
        tapes: Recorded runs.
        broken: Lines of the recording that were changed.
        factories: Make store and services of each replay.
        room: Temporary directory; the caller removes it.
        delay: Awaited before each outcome.

    Raises:
        PlanError: One of them cannot be replayed.
    """
    played: list[ReplayResult] = []
    for number, tape in enumerate(tapes):
        must_be_playable(tape)
        own = room / str(number)
        own.mkdir()
        played.append(with_broken(await _replay(tape, factories, own, delay), broken))
    return played


async def _replay(
    tape: RecordedRun, factories: ReplayServices, room: Path, delay: Delay
) -> ReplayResult:
    """Replay one run and compare its outcome."""
    score = EventCursor(tape=tape)
    store = factories.open_store(room / "replay.db", RecordedClock(score))
    made = Simulation(store, score, lambda: owner_of(score, score.next))
    served = PlaybackState(score=score, store=made, delay=delay)
    run = RunReplay(
        parts=_replay_services(await factories.make_services(store), served, room),
        stage=made,
        score=score,
        served=served,
        releases=recorded_moves.RecordedReleases(score),
    )
    try:
        try:
            await run.through()
        except MimirError as error:
            # A miss that was noted as a difference is not reported twice.
            if not score.differences or str(error) not in score.differences[-1].what:
                where = f"event {score.next.seq}" if score.next else "the end"
                score.differ(where, str(error))
        return await _result(run)
    finally:
        await made.close()


async def _result(play: RunReplay) -> ReplayResult:
    tape, score, served = play.tape, play.score, play.served
    # Again, for a run that did not reach its end.
    if tape.end is not None:
        await play.stage.write(partial(recorded_moves.put_measured, tape=tape))
    line = await play.stage.read(partial(outcome_record, run=tape.id))
    end = build([line]).runs[tape.id].end
    if end is None:
        raise AssertionError("a run without its end")
    calls = await play.stage.read(partial(record_loading.load_run_calls, run=tape.id))
    hashes = {(call.transcript, call.number): (call.request_hash, call.hash) for call in calls}
    # The user looks for the first difference: the changed text, not the seals that follow from it.
    noted = sorted(score.differences, key=lambda one: not one.where.startswith("lane "))
    found = [*diff_transcripts(tape, hashes), *noted]
    engine, report_engine = play.parts.engine_version, ""
    if tape.end is not None:
        found += diff_outcomes(tape.end, end, engine=engine)
        report_engine = "" if has_report_of(tape.end, engine) else tape.end.engine
    return ReplayResult(
        run=tape.id,
        events=score.at,
        calls=served.outcomes,
        checks=served.checks,
        report=end.report,
        plan=end.plan,
        seal=end.seal,
        status=end.status,
        verdicts=len(end.verdicts),
        evidence=len(end.evidence),
        verdict_rows=pack([dict(row) for row in end.verdicts]),
        evidence_rows=pack([dict(row) for row in end.evidence]),
        report_engine=report_engine,
        differences=tuple(found),
    )


def must_be_playable(tape: RecordedRun) -> None:
    """Refuse a run that cannot be replayed.

    Raises:
        PlanError: Its beginning is missing, a transcript was cut, or it reuses tasks of another run.
    """
    cuts = (event for event in tape.events if event.kind is EventKind.LANE_CUT)
    why = ""
    if not tape.events or tape.events[0].seq != 1 or not tape.pinned:
        why = "its beginning is missing"
    elif [event.seq for event in tape.events] != list(range(1, len(tape.events) + 1)):
        why = "events of it are missing"
    elif any(cut.data.get("answered") != 0 for cut in cuts):
        why = "a transcript was cut when it was resumed, and the earlier calls are gone"
    elif tape.pinned.get("fromRun"):
        why = f"it reuses tasks of {tape.pinned['fromRun']!s}, which is not in the recording"
    elif missing := _find_missing_preamble(tape):
        why = f"the preamble of {missing!r} is missing"
    if why:
        raise PlanError(
            f"Run {tape.id} cannot be replayed: {why}.",
            code="recording-incomplete",
            next_step=f"Recompute its seals instead: mimir verify {tape.id}",
        )


def _find_missing_preamble(tape: RecordedRun) -> str:
    """Return a role of the plan whose preamble is not recorded; empty: none."""
    if tape.plan is None or "preambles" not in tape.texts:
        return ""
    roles = (
        role for t in tape.plan.tasks for role in (("worker", t.worker_role), ("qc", t.reviewer))
    )
    return next((role for kind, role in roles if (kind, role) not in tape.preambles), "")


def _replay_services(parts: ProjectServices, served: PlaybackState, room: Path) -> ProjectServices:
    """Return the services of a replay."""
    own = room / "project"
    own.mkdir(parents=True, exist_ok=True)
    preambles = parts.project / "preambles"  # templates of the project's own
    if preambles.is_dir() and not (own / "preambles").exists():
        # A link: a role without a generated preamble needs the project's template.
        (own / "preambles").symlink_to(preambles)
    tools = PlaybackTools(parts.tools, parts.planner_tools, served)
    return replace(
        run_models.apply_pinned_settings(parts, served.tape.settings),
        project=own,
        room=room,
        store=served.store,
        checks=CheckRunner(parts.history, PlaybackChecks(served), NullCache()),
        models=PlaybackModels(served),
        tools=tools,
        planner_tools=tools.planner,
        clock=RecordedClock(served.score),
        owner=OWNER,
        notices=list,
        check_models=lambda: None,
    )
