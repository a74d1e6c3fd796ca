"""Composition root: settings become an opened project, with its stores, models and tools."""

import asyncio
import contextlib
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from mimir.attempts.services import RoleTools
from mimir.bootstrap import stores
from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.git_program import find_git
from mimir.bootstrap.models.registry import make_endpoints
from mimir.bootstrap.project_services import (
    compose_services,
    make_sandbox,
)
from mimir.errors import UsageError
from mimir.orchestrator import project_ids, store_transfer
from mimir.orchestrator.api import Mimir
from mimir.orchestrator.proposals.decisions import expire_memories, find_expired
from mimir.orchestrator.runs.listing import find_id
from mimir.orchestrator.services import ProjectServices
from mimir.recordings.engine_replay.differences import ReplayResult
from mimir.recordings.engine_replay.playback import Delay, yield_once
from mimir.recordings.engine_replay.replay_runner import ReplaySetup, replay_runs
from mimir.recordings.format.recording import Recording
from mimir.recordings.format.recording_file import read_recording
from mimir.recordings.model_replay.recorded_models import RecordedModels
from mimir.recordings.model_replay.replay_session import ReplayingMimir, tell_drift
from mimir.recordings.recorded_history import RecordedHistory
from mimir.recordings.recorder import RecordingMimir, load_recorded_run, recorder
from mimir.settings.layers import LoadedSettings
from mimir.settings.model import Settings
from mimir.store.protocol import GraphStore
from mimir.store.transfer.store_copy import CopyResult
from mimir.tools.secrets import Redactor
from mimir.workspace.aio import gather_both
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.tracked_folder import refuse_tracked
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.state_dir import ROOM, prepare


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
    """Open a project: its store, history, sandbox and models; all are closed at the end.

    Without `create`, a directory without `.mimir` is refused. `say` receives warnings at once. For benchmarks, `around` wraps the tools of
    worker and QC, and `around_store` the store. The file `record` is written; the recording `replay` replaces every model.

    Raises:
        UnavailableError: The store or git is not available.
        StoreError: The store is not mimir's, or was written by a newer mimir.
        PlanError: The recording cannot be read, or cannot be appended to.
    """
    settings, clock = loaded.settings, SystemClock()
    name = _display_path(replay, project)
    recording = read_recording(replay, name)[0] if replay else None
    state_dir = prepare(project, create=create)
    await asyncio.to_thread(refuse_tracked, project, ROOM, find_git())
    redact = Redactor(loaded.secrets)
    owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
    owners = ProcessLocks(state_dir / "work" / "owners")
    store = around_store(
        stores.open_store(settings, state_dir, clock, door=owner, say=say, create=create)
    )
    sandbox = make_sandbox(settings, state_dir, clock)
    await store.init()
    replayed = (
        RecordedModels(recording, name, on_drift=partial(tell_drift, store)) if recording else None
    )
    endpoints = replayed or make_endpoints(settings, clock, redact)
    owners.live(owner)
    is_clean = False
    try:
        # The trial takes a second; it runs while the services are composed.
        if create:
            sandbox.begin_trial()
        services = await compose_services(
            project, loaded, store, endpoints, (owners, owner), redact, sandbox
        )
        await _expire_memories(services, settings.memory.days)
        services = replace(
            services,
            tools=around(services.tools),
            recording=_display_path(record or replay, project),
        )
        if replayed and recording:
            yield ReplayingMimir(services, replayed, recording, name)
        elif record:
            with recorder(services, record, services.recording, say) as written:
                yield RecordingMimir(services, written)
        else:
            yield Mimir(services)
        # After an error the process may still hold leases, so its lock file stays and marks it as dead.
        is_clean = True
    finally:
        await sandbox.end_trial()
        await gather_both(store.close(), endpoints.close())
        owners.leave(owner, holds=not is_clean)


async def _expire_memories(services: ProjectServices, days: int) -> None:
    """Expire old memories before an agent can find them."""
    ask = partial(find_expired, project=services.project_id, days=days)
    # Most often none is too old, and a look costs no write.
    if days and await services.store.read(ask):
        expire = partial(expire_memories, project=services.project_id, days=days)
        await services.store.write(expire)


async def migrate(
    project: Path,
    loaded: LoadedSettings,
    source: str,
    target: str,
    *,
    run: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> CopyResult:
    """Copy a run, or a whole store, into another store; the settings need not name either.

    `source` and `target` are URIs or paths, also relative to `project`, whose directory holds the lock files of this host's processes. An
    empty `run` means all runs. `loaded` gives user and password of a Neo4j store whose URI has none.

    Raises:
        UsageError: The source does not exist, or is the target.
        BusyError: A process works on it.
        StoreError: The target holds something else under one of the ids; it is unchanged.
    """
    state_dir = prepare(project, create=True)
    await asyncio.to_thread(refuse_tracked, project, ROOM, find_git())
    async with contextlib.AsyncExitStack() as stack:

        async def open_one(uri: str, *, create: bool) -> GraphStore:
            settings = Settings.model_copy(loaded.settings, update={"store": uri})
            return await stack.enter_async_context(
                stores.opened_store(settings, state_dir, say=say, create=create)
            )

        source_store = await open_one(source, create=False)
        # Checked after the source is open, so that the message names its canonical URI.
        if stores.is_same_store(source, target):
            raise UsageError(f"Source and target are the same store: {source_store.uri}.")
        target_store = await open_one(target, create=True)
        dead = ProcessLocks(state_dir / "work" / "owners").find_dead()
        return await store_transfer.migrate(
            source_store, target_store, run, dead=dead, room=state_dir / "work"
        )


async def replay(
    project: Path, loaded: LoadedSettings, source: str, *, delay: Delay = yield_once
) -> Sequence[ReplayResult]:
    """Replay a recording or a stored run from its record alone; no model or tool is called.

    Args:
        project: Directory of the run, and base of relative paths.
        loaded: Settings in force.
        source: File of a recording, or the beginning of a run's id; empty: the newest run.
        delay: Awaited before each outcome.

    Raises:
        PlanError: The recording cannot be read, or a run of it cannot be replayed.
        UsageError: There is no such run.
    """
    # A replay leaves nothing in the project: its store and work are temporary.
    with tempfile.TemporaryDirectory(prefix="mimir-replay-") as name:
        work_dir, file, engine_version = Path(name), project / source, version("mimir")

        def setup(history: GitHistory) -> ReplaySetup:
            make_services = partial(_replay_services, project, loaded, history, work_dir)
            open_store = stores.open_temporary_store
            return ReplaySetup(
                open_store=open_store,
                make_services=make_services,
                work_dir=work_dir,
                delay=delay,
                engine_version=engine_version,
            )

        if not source or not file.is_file():
            async with _open_read_only(project, loaded) as (store, history):
                project_id = project_ids.find_project_id(project, project / ROOM)
                id = await store.read(partial(find_id, project_id=project_id, run=source or None))
                recorded = await store.read(partial(load_recorded_run, run=id))
                return await replay_runs([recorded], (), setup(history))
        recording, broken = read_recording(file, _display_path(file, project), forgive=True)
        is_older = any(run.is_older_than(engine_version) for run in recording.runs.values())
        history = RecordedHistory(recording.git, None, is_older=is_older)
        return await replay_runs(list(recording.runs.values()), broken, setup(history))


async def _replay_services(
    project: Path, loaded: LoadedSettings, history: GitHistory, work_dir: Path, store: GraphStore
) -> ProjectServices:
    # A replay serves recorded calls, so its models answer nothing.
    models = RecordedModels(Recording(), "", on_drift=partial(tell_drift, None))
    process = (ProcessLocks(work_dir / "owners"), "replay")
    redact = Redactor(loaded.secrets)
    sandbox = make_sandbox(loaded.settings, project / ROOM, SystemClock())
    return await compose_services(
        project, loaded, store, models, process, redact, sandbox, history=history
    )


@contextlib.asynccontextmanager
async def _open_read_only(
    project: Path, loaded: LoadedSettings
) -> AsyncGenerator[tuple[GraphStore, GitHistory]]:
    """Open a project's store and history for reading."""
    state_dir = prepare(project, create=False)
    settings = loaded.settings
    async with stores.opened_store(settings, state_dir, say=lambda _: None, create=False) as store:
        repository = state_dir / "work" / "history.git"
        history = await GitHistory.open(project, repository, program=find_git())
        yield store, RecordedHistory({}, history)


def _display_path(path: Path | None, project: Path) -> str:
    """Return a file as users call it: relative to the project if it is inside."""
    return str(path.relative_to(project) if path and path.is_relative_to(project) else path or "")
