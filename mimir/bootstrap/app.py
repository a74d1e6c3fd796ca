"""Composition: settings → a working mimir. The only module that names concrete stores, models and tools, and makes clocks and ids."""

import asyncio
import contextlib
import os
import random
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from mimir.agents.preambles.agentinator import Agentinator, ModelQuery
from mimir.agents.preambles.preamble_cache import PreambleCache
from mimir.attempts.services import ModelChoice, OpenLane, RoleTools
from mimir.bootstrap import stores
from mimir.bootstrap.toolsets import ProjectSandbox, ToolFactory
from mimir.domain.agent import ROLES
from mimir.domain.clock import Clock
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.errors import UnavailableError, UsageError
from mimir.llm.config import EndpointConfig
from mimir.llm.endpoints import EndpointRegistry
from mimir.llm.protocol import ChatModel
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.llm.wrappers.rate_limits import RateLimiter
from mimir.llm.wrappers.retrying_model import RetryPolicy
from mimir.orchestrator import project_identity, store_transfer
from mimir.orchestrator.api import Mimir
from mimir.orchestrator.runs.inspection import find_run
from mimir.orchestrator.services import ProjectServices
from mimir.qc.checks.check_execution import CheckExecution
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.journaled_checks import JournaledChecks
from mimir.recordings.engine_replay.differences import ReplayResult
from mimir.recordings.engine_replay.playback import Delay, at_once
from mimir.recordings.engine_replay.replay_runner import replay_runs
from mimir.recordings.format.recording import Recording
from mimir.recordings.format.recording_file import read_recording
from mimir.recordings.model_replay.recorded_models import RecordedModels
from mimir.recordings.model_replay.replay_session import ReplayingMimir, tell_drift
from mimir.recordings.recorded_history import RecordedHistory, RecordingHistory
from mimir.recordings.recorder import RecordingMimir, recorder, tape_of
from mimir.scheduling.attempt_order import Unordered
from mimir.scheduling.run_services import WorkSignals
from mimir.settings import LoadedSettings, Settings, git_login
from mimir.store.operations.worker_processes import WorkerProcess
from mimir.store.protocol import GraphStore
from mimir.store.publishing_store import PublishingStore
from mimir.store.transfer.store_copy import CopyResult
from mimir.tools.secrets import Redactor
from mimir.workspace.aio import gather_both
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.remote import GitRemote
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.sandbox.process import ProcessLimits as SandboxLimits
from mimir.workspace.sandbox.sandbox import Sandbox, SandboxConfig
from mimir.workspace.state_dir import ROOM, prepare

MB = 1024 * 1024
_version = cache(version)


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        """Return the time of day, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()


class RandomIds:
    """Short ids: the minute, then random letters; sorted by time, safe in file names and refs."""

    def new(self, kind: str) -> str:
        """Return an id such as `run-1121-1714-3fa9c2`."""
        return f"{kind}-{datetime.now(UTC):%m%d-%H%M}-{secrets.token_hex(3)}"


@contextlib.asynccontextmanager
async def open(
    project: Path,
    loaded: LoadedSettings,
    *,
    create: bool = True,
    say: Callable[[str], None] = lambda _: None,
    around: Callable[[RoleTools], RoleTools] = lambda tools: tools,
    around_store: Callable[[GraphStore], GraphStore] = lambda store: store,
    record: Path | None = None,
    replay: Path | None = None,
) -> AsyncGenerator[Mimir]:
    """Open a project: its store, history, sandbox and models; closed in the end.

    Args:
        project: Its directory.
        loaded: Settings in force.
        create: False: refuse where mimir was never used, rather than make `.mimir`.
        say: Told what a person should know at once: that the store is lost, that it is back.
        around: Laid around the tools of worker and QC; the benchmark plants faults there.
        around_store: Laid around the store; benchmarks time its verbs there.
        record: File that everything is written to which runs ask and get. None: nothing is recorded.
        replay: Recording that answers in place of every model. None: models are asked.

    Raises:
        UnavailableError: The store or git is not there.
        StoreError: The store is not mimir's, or of a newer mimir.
        PlanError: The recording cannot be read, or not be written behind.
    """
    settings, clock = loaded.settings, SystemClock()
    tape = read_recording(replay, _shown(replay, project))[0] if replay else None
    room = prepare(project, create=create)
    redact = Redactor(loaded.secrets)
    owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
    owners = ProcessLocks(room / "work" / "owners")
    store = around_store(
        stores.open_store(settings, room, clock, door=owner, say=say, create=create)
    )
    sandbox = _sandbox(settings, room, clock)
    await store.init()
    name, drifted = _shown(replay, project), partial(tell_drift, store)
    replayed = RecordedModels(tape, name, on_drift=drifted) if tape else None
    endpoints = replayed or _endpoints(settings, clock, redact.values)
    owners.live(owner)
    clean = False
    try:
        if create:
            sandbox.begin_trial()
        me = owners, owner
        parts = await _parts(project, loaded, store, endpoints, me, redact, sandbox)
        tools, recording = around(parts.tools), _shown(record or replay, project)
        parts = replace(parts, tools=tools, recording=recording)
        if replayed and tape:
            yield ReplayingMimir(parts, replayed, tape, name)
        elif record:
            with recorder(parts, record, _shown(record, project), say) as written:
                yield RecordingMimir(parts, written)
        else:
            yield Mimir(parts)
        clean = True
    finally:
        await sandbox.end_trial()
        await gather_both(store.close(), endpoints.close())
        owners.leave(owner, holds=not clean)


async def migrate(
    project: Path,
    loaded: LoadedSettings,
    source: str,
    target: str,
    *,
    run: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> CopyResult:
    """Copy a run, or a whole store, into another store; neither has to be the one that the settings name.

    Args:
        project: Where paths begin, and where the lock files of this host's processes are.
        loaded: Settings in force; user and password of a Neo4j store whose URI has none.
        source: URI or path of a store that is there.
        target: URI or path; a file is made if it is not there.
        run: Empty: all of it.
        say: Told that a store is lost, that it is back.

    Raises:
        UsageError: The source is not there, or is the target.
        BusyError: Somebody works on it.
        StoreError: The target holds something else under one of the ids; nothing was changed.
    """
    room = prepare(project, create=True)
    async with contextlib.AsyncExitStack() as stack:

        async def opened(uri: str, *, create: bool) -> GraphStore:
            one = Settings.model_copy(loaded.settings, update={"store": uri})
            store = stores.open_store(
                one, room, SystemClock(), door=secrets.token_hex(8), say=say, create=create
            )
            await store.init()
            stack.push_async_callback(store.close)
            return store

        one = await opened(source, create=False)
        if stores.is_same(source, target):
            raise UsageError(f"Both are the same store: {one.uri}.")
        other = await opened(target, create=True)
        dead = ProcessLocks(room / "work" / "owners").find_dead()
        return await store_transfer.migrate(one, other, run, dead=dead, room=room / "work")


async def replay(
    project: Path, loaded: LoadedSettings, what: str, *, delay: Delay = at_once
) -> Sequence[ReplayResult]:
    """Replay a recording, or a run of the project, from nothing but its record: no model, tool, check or git is asked.

    Args:
        project: Where the run is, and where paths begin.
        loaded: Settings in force.
        what: A recording's file, or a run's id or how it begins; empty: the latest run.
        delay: Awaited before each outcome.

    Raises:
        PlanError: The recording cannot be read, or a run of it cannot be replayed.
        UsageError: There is no such run.
    """
    with tempfile.TemporaryDirectory(prefix="mimir-replay-") as name:
        room, file = Path(name), project / what
        if not what or not file.is_file():
            async with _looked_at(project, loaded) as (store, history):
                id = await find_run(
                    store, project_identity.find_project_id(project, project / ROOM), what or None
                )
                tapes = [await store.read(partial(tape_of, run=id))]
                return await replay_runs(
                    tapes, (), _ReplaySetup(project, loaded, history, room), room, delay
                )
        tape, broken = read_recording(file, _shown(file, project), forgive=True)
        workshop = _ReplaySetup(project, loaded, RecordedHistory(tape.git, None), room)
        return await replay_runs(list(tape.runs.values()), broken, workshop, room, delay)


@dataclass(frozen=True, slots=True)
class _ReplaySetup:
    """What a replay is made of."""

    project: Path
    loaded: LoadedSettings
    history: GitHistory
    room: Path

    def store(self, path: Path, clock: Clock) -> GraphStore:
        return stores.throw_away(path, clock)

    async def parts(self, store: GraphStore) -> ProjectServices:
        nobody = RecordedModels(Recording(), "", on_drift=partial(tell_drift, None))
        me, redact = (ProcessLocks(self.room / "owners"), "replay"), Redactor(self.loaded.secrets)
        sandbox = _sandbox(self.loaded.settings, self.project / ROOM, SystemClock())
        return await _parts(
            self.project, self.loaded, store, nobody, me, redact, sandbox, history=self.history
        )


@contextlib.asynccontextmanager
async def _looked_at(
    project: Path, loaded: LoadedSettings
) -> AsyncGenerator[tuple[GraphStore, GitHistory]]:
    """Open a project's store and history to look at them."""
    room = prepare(project, create=False)
    store = stores.open_store(
        loaded.settings, room, SystemClock(), door=secrets.token_hex(8), say=_silent, create=False
    )
    await store.init()
    try:
        place = room / "work" / "history.git"
        yield store, RecordedHistory({}, await GitHistory.open(project, place, program=_git()))
    finally:
        await store.close()


def _silent(_said: str) -> None:
    """Tell nobody."""


def _shown(path: Path | None, project: Path) -> str:
    """Return a file as the person calls it."""
    return str(path.relative_to(project) if path and path.is_relative_to(project) else path or "")


async def _parts(
    project: Path,
    loaded: LoadedSettings,
    store: GraphStore,
    endpoints: EndpointRegistry | RecordedModels,
    me: tuple[ProcessLocks, str],
    redact: Redactor,
    sandbox: Sandbox,
    *,
    history: GitHistory | None = None,
) -> ProjectServices:
    settings, clock, room = loaded.settings, SystemClock(), project / ROOM
    place = room / "work" / "history.git"
    is_played = history is not None  # nothing is made in the project of a replay
    if history is None:
        remote = GitRemote(url=settings.history.remote, environment=git_login(), name=me[1])
        history = await RecordingHistory.open(
            project, place, owner=sandbox.owner, program=_git(), remote=remote
        )
    seat = ProjectSandbox(sandbox, history, project)
    project_id = (
        project_identity.find_project_id(project, room)
        if is_played
        else await project_identity.project_id(project, room, history, store)
    )
    leases, store = store, PublishingStore(store, history.share)
    toolbox = ToolFactory(seat, store, project_id, redact)
    execution = CheckExecution(
        history=history,
        sandbox=seat,
        room=room / "work" / "checks",
        redact=redact,
        at_once=settings.run.parallel_checks,
    )
    owners, owner = me
    choices = {role: _choice(settings, role) for role in ROLES}
    replayed = endpoints if isinstance(endpoints, RecordedModels) else None

    def agentinator(open_lane: Callable[[str, int], Awaitable[OpenLane]], run: str) -> Agentinator:
        async def model(number: int) -> ChatModel:
            lane = await open_lane("agentinator", number)
            header = lane_id(run, PLAN_TASK, number, "agentinator")
            chosen = choices["agentinator"].model
            return JournaledModel(endpoints.for_lane("agentinator", header, chosen), lane)

        return Agentinator(
            project=project,
            library=PreambleCache(project, room / "work" / "locks"),
            open_model=model,
            asking=ModelQuery(
                model=choices["agentinator"].model or (replayed.preambles_by if replayed else ""),
                temperature=choices["agentinator"].temperature,
                max_tokens=choices["agentinator"].max_tokens or ROLES["agentinator"].answer_tokens,
            ),
            recorded=replayed.preamble if replayed else None,
        )

    return ProjectServices(
        project=project,
        project_id=project_id,
        room=room,
        store=store,
        leases=leases,
        history=history,
        sandbox=sandbox,
        checks=CheckRunner(history, JournaledChecks(execution, store, owner)),
        models=endpoints,
        tools=toolbox,
        planner_tools=toolbox.planner,
        agentinator=agentinator,
        clock=clock,
        ids=RandomIds(),
        owner=owner,
        owners=owners,
        process=WorkerProcess(
            owner=owner,
            host=socket.gethostname(),
            number=os.getpid(),
            lock_file=str(owners.path(owner).absolute()),
        ),
        wake=WorkSignals(),
        pace=Unordered(),
        recording="",
        choices=choices,
        lease_seconds=settings.run.lease_seconds,
        attempt_tokens=settings.run.attempt_tokens,
        pinned=_pinned(settings),
        prices=settings.prices,
        redact=redact,
        warnings=loaded.warnings,
        notices=endpoints.notices,
        check_models=endpoints.check,
        engine_version=_version("mimir"),
        sandbox_name=settings.sandbox.backend,
        link=stores.links(settings),
        show_base=toolbox.show,
    )


def _endpoints(
    settings: Settings, clock: SystemClock, veil: Callable[[str], str]
) -> EndpointRegistry:
    llm = settings.llm
    return EndpointRegistry(
        llm.model,
        partial(_config, settings),
        limits=RateLimiter(
            clock=clock,
            sleep=asyncio.sleep,
            requests_per_minute=llm.requests_per_minute,
            tokens_per_minute=llm.tokens_per_minute,
            concurrency=llm.concurrency,
        ),
        policy=RetryPolicy(tries=llm.tries, window_seconds=llm.retry_seconds),
        clock=clock,
        chance=random.Random(),
        veil=veil,
    )


def _config(settings: Settings, model: str) -> EndpointConfig:
    llm = settings.llm
    return EndpointConfig(
        base_url=llm.base_url,
        api_key=settings.api_key,
        model=model or llm.model,
        extra_body=llm.extra_body,
        headers=llm.headers,
        lane_header=llm.lane_header,
        structured=llm.structured,
        connect_seconds=llm.connect_seconds,
        stall_seconds=llm.stall_seconds,
        answer_seconds=llm.answer_seconds,
        max_answer_bytes=llm.max_answer_bytes,
    )


def _sandbox(settings: Settings, room: Path, clock: Clock) -> Sandbox:
    given = settings.sandbox
    limits = SandboxLimits(
        memory_bytes=given.memory_mb * MB, processes=given.processes, file_bytes=given.file_mb * MB
    )
    shown = tuple(Path(path) for path in given.read_only)
    config = SandboxConfig(
        mode=given.backend, share=tuple(given.share), read_only=shown, limits=limits
    )
    return Sandbox(config, scratch=room / "work", clock=clock)


def _choice(settings: Settings, role: str) -> ModelChoice:
    chosen = settings.role(role)
    return ModelChoice(
        model=chosen.model or settings.llm.model,
        temperature=chosen.temperature,
        max_tokens=chosen.max_tokens,
    )


def _pinned(settings: Settings) -> Mapping[str, object]:
    """Return what a run pins of the settings: nothing secret, no endpoint."""
    return settings.model_dump(
        mode="json",
        exclude={
            "llm": {"api_key", "headers", "extra_body"},
            "store": True,
            "history": True,
            "neo4j": True,
        },
    )


def _git() -> str:
    """Find the person's git; a relative entry of PATH would let a project bring its own."""
    path = os.pathsep.join(entry for entry in os.get_exec_path() if Path(entry).is_absolute())
    found = shutil.which("git", path=path)
    if found is None:
        raise UnavailableError(
            "git is not there: no directory of PATH holds it.",
            next_step="Install git, 2.38 or newer.",
        )
    return found
