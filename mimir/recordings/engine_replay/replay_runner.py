"""Replays of recorded runs: each has its own simulation and is compared with its record."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mimir.domain.clock import Clock
from mimir.domain.event import EventKind
from mimir.domain.plan import preamble_roles
from mimir.domain.task_states import ANSWERED
from mimir.domain.value_class import value_class
from mimir.errors import MimirError, PlanError
from mimir.orchestrator import run_models
from mimir.orchestrator.services import ProjectServices
from mimir.qc.checks.check_runner import CheckRunner
from mimir.recordings.engine_replay import recorded_moves
from mimir.recordings.engine_replay.differences import (
    ReplayResult,
    diff_outcomes,
    diff_transcripts,
    with_broken,
)
from mimir.recordings.engine_replay.playback import (
    Delay,
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


@value_class
class ReplaySetup:
    """Store, services and directory of replays, from the caller."""

    open_store: Callable[[Path, Clock], GraphStore]
    """Opens a temporary store."""
    make_services: Callable[[GraphStore], Awaitable[ProjectServices]]
    """Makes the services of the engine, with recorded answers of git."""
    work_dir: Path
    """Temporary directory; the caller removes it."""
    delay: Delay
    """Awaited before each outcome."""
    engine_version: str
    """Running version of mimir."""


async def replay_runs(
    recorded_runs: Sequence[RecordedRun], broken: Sequence[BrokenLine], setup: ReplaySetup
) -> Sequence[ReplayResult]:
    """Replay runs one after another; `broken`: changed lines of the recording.

    Raises:
        PlanError: One of them cannot be replayed.
    """
    played: list[ReplayResult] = []
    for number, recorded in enumerate(recorded_runs):
        must_be_playable(recorded)
        own = replace(setup, work_dir=setup.work_dir / str(number))
        own.work_dir.mkdir()
        played.append(with_broken(await _replay(recorded, own), broken))
    return played


async def _replay(recorded: RecordedRun, setup: ReplaySetup) -> ReplayResult:
    """Replay one run and compare its outcome."""
    cursor = EventCursor(recorded=recorded, is_older=recorded.is_older_than(setup.engine_version))
    store = setup.open_store(setup.work_dir / "replay.db", RecordedClock(cursor))
    simulation = Simulation(store, cursor, lambda: owner_of(cursor, cursor.next))
    state = PlaybackState(cursor=cursor, store=simulation, delay=setup.delay)
    run = RunReplay(
        services=_replay_services(await setup.make_services(store), state, setup.work_dir),
        simulation=simulation,
        cursor=cursor,
        state=state,
        releases=recorded_moves.RecordedReleases(cursor),
    )
    try:
        try:
            await run.replay_events()
        except MimirError as error:
            # A miss that was noted as a difference is not reported twice.
            if not cursor.differences or str(error) not in cursor.differences[-1].detail:
                where = f"event {cursor.next.seq}" if cursor.next else "the end"
                cursor.differ(where, str(error))
        return await _result(run)
    finally:
        await simulation.close()


async def _result(play: RunReplay) -> ReplayResult:
    recorded, cursor, state = play.recorded, play.cursor, play.state
    # Again, for a run that did not reach its end.
    if recorded.end is not None:
        await play.simulation.write(partial(recorded_moves.put_measured, recorded=recorded))
    line = await play.simulation.read(partial(outcome_record, run=recorded.id))
    end = build([line]).runs[recorded.id].end
    if end is None:
        raise AssertionError("a run without its end")
    calls = await play.simulation.read(partial(record_loading.load_run_calls, run=recorded.id))
    hashes = {(call.transcript, call.number): (call.request_hash, call.hash) for call in calls}
    is_answer = bool(recorded.plan and recorded.plan.is_read_only) and end.status == "completed"
    # The user looks for the first difference: the changed text, not the seals that follow from it.
    noted = sorted(cursor.differences, key=lambda one: not one.where.startswith("lane "))
    found = [*diff_transcripts(recorded, hashes), *noted]
    if recorded.end is not None:
        found += diff_outcomes(recorded.end, end, is_older=cursor.is_older)
    return ReplayResult(
        run=recorded.id,
        events=cursor.at,
        calls=state.outcomes,
        checks=state.checks,
        report=end.report,
        plan=end.plan,
        seal=end.seal,
        status=ANSWERED if is_answer else end.status,
        verdicts=len(end.verdicts),
        evidence=len(end.evidence),
        verdict_rows=pack([dict(row) for row in end.verdicts]),
        evidence_rows=pack([dict(row) for row in end.evidence]),
        older_engine=recorded.engine if cursor.is_older else "",
        differences=tuple(found),
    )


def must_be_playable(recorded: RecordedRun) -> None:
    """Refuse a run that cannot be replayed.

    Raises:
        PlanError: Its beginning is missing, a transcript was cut, or it reuses tasks of another run.
    """
    cuts = (event for event in recorded.events if event.kind is EventKind.LANE_CUT)
    reason = ""
    if not recorded.events or recorded.events[0].seq != 1 or not recorded.pinned:
        reason = "its beginning is missing"
    # Repeated events are merged by the reader, so a gap is a lost line.
    elif [event.seq for event in recorded.events] != list(range(1, len(recorded.events) + 1)):
        reason = "events of it are missing"
    elif any(cut.data.get("answered") != 0 for cut in cuts):
        reason = "a transcript was cut when it was resumed, and the earlier calls are gone"
    elif recorded.pinned.get("fromRun"):
        reason = f"it reuses tasks of {recorded.pinned['fromRun']!s}, which is not in the recording"
    elif missing := _find_missing_preamble(recorded):
        reason = f"the preamble of {missing!r} is missing"
    if reason:
        raise PlanError(
            f"Run {recorded.id} cannot be replayed: {reason}.",
            code="recording-incomplete",
            next_step=f"Recompute its seals instead: mimir verify {recorded.id}",
        )


def _find_missing_preamble(recorded: RecordedRun) -> str:
    """Return a role of a started task whose preamble is not recorded; empty: none."""
    if recorded.plan is None:
        return ""
    kind = EventKind.ATTEMPT_STARTED
    started = {event.task for event in recorded.events if event.kind is kind}
    roles = preamble_roles(task for task in recorded.plan.tasks if task.id in started)
    return next((role for kind, role in roles if (kind, role) not in recorded.preambles), "")


def _replay_services(
    services: ProjectServices, state: PlaybackState, work_dir: Path
) -> ProjectServices:
    """Return the services of a replay."""
    own = work_dir / "project"
    own.mkdir(parents=True, exist_ok=True)
    tools = PlaybackTools(services.tools, services.planner_tools, state)
    return replace(
        run_models.apply_pinned_settings(services, state.recorded.settings),
        project=own,
        room=work_dir,
        store=state.store,
        checks=CheckRunner(services.history, PlaybackChecks(state), is_replay=True),
        models=PlaybackModels(state),
        tools=tools,
        planner_tools=tools.planner,
        clock=RecordedClock(state.cursor),
        owner=OWNER,
        notices=list,
        has_sandbox=False,
        check_models=lambda: None,
    )
