"""Invocations that agents spawn: each is a command of its own that outlives the caller."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from mimir.bootstrap.agents.detached_worker import start_process
from mimir.bootstrap.agents.invoke_options import list_options
from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.delegation_limits import read_limits
from mimir.domain.clock import moment
from mimir.domain.invocation import SpawnCaller
from mimir.domain.json_value import as_object, as_text
from mimir.domain.message import ToolResult
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.orchestrator.delegation.response import is_success
from mimir.orchestrator.delegation.rules import choose_starts
from mimir.orchestrator.delegation.stored_response import load_response
from mimir.orchestrator.sessions.limits import STARTING, load_session, start_queued
from mimir.settings.model import Settings
from mimir.settings.principal import environment_for_child
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.records.run_records import RunRecord
from mimir.store.run_reading import NEWEST_FIRST, find_records, load_run
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.state_dir import ROOM

POLL_SECONDS = 0.3
MAX_CHARS = 20_000
"""Of the answer that the caller is given."""
_GIVEN = ("run", "agent", "status", "error", "deliverables", "assurance", "recommendations")


class ChildInvocations:
    """Spawner of the agents of one process."""

    def __init__(
        self, project: Path, settings: Settings, store: GraphStore, owners: ProcessLocks
    ) -> None:
        self._project = project
        self._settings = settings
        self._store = store
        self._owners = owners

    async def spawn(self, caller: SpawnCaller, arguments: str) -> ToolResult:
        """Spawn an agent, or find the one that this call has spawned, and wait for its answer."""
        run, process, log = await self._find(caller), None, None
        if not run:
            process, log, inputs = await asyncio.to_thread(self._start, caller, arguments)
            try:
                run = await self._wait_for_run(caller, process)
            finally:
                for path in inputs:
                    path.unlink(missing_ok=True)
        try:
            if not run and log is not None:
                return _refuse(log.read_text(encoding="utf-8", errors="replace"))
            return await self._wait_for_answer(run, process)
        finally:
            if log is not None:
                log.unlink(missing_ok=True)

    async def _find(self, caller: SpawnCaller) -> str:
        """Return the newest run that a call has spawned and that did not fail; empty: none."""

        def look(reads: ReadOps) -> str:
            # An agent that failed may be spawned again with the same words.
            where = {"parentRun": caller.run, "spawnKey": caller.key}
            found = find_records(reads, RunRecord, where, order=NEWEST_FIRST, limit=1)
            lost = (RunStatus.FAILED, RunStatus.CANCELLED)
            return found[0].id if found and found[0].status not in lost else ""

        return await self._store.read(look)

    def _start(
        self, caller: SpawnCaller, arguments: str
    ) -> tuple["subprocess.Popen[bytes]", Path, list[Path]]:
        given = as_object(json.loads(arguments))
        inputs = [self._write(as_text(given.get("task")))]
        words = ["invoke", "--json", *list_options(given)]
        if context := as_text(given.get("context")):
            inputs.append(self._write(context))
            words.append(f"--context=@{inputs[1].relative_to(self._project)}")
        # The address is no option, whatever it begins with.
        words += ["--", as_text(given.get("chatmode")), f"@{inputs[0].relative_to(self._project)}"]
        log = self._write("")
        # A store that settings do not name was given on the command line.
        store = self._settings.store
        place = {"MIMIR_STORE": store} if store and "@" not in store else {}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mimir", *words],
                cwd=self._project,
                env={**environment_for_child(caller, self._settings.llm.model), **place},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # It outlives the caller, whose repeated call finds its answer.
                start_new_session=True,
            )
        return process, log, inputs

    def _write(self, text: str) -> Path:
        folder = self._project / ROOM / "log"
        folder.mkdir(mode=0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix="spawn-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return Path(name)

    async def _wait_for_run(self, caller: SpawnCaller, process: "subprocess.Popen[bytes]") -> str:
        """Return the run that the command has created; empty: it ended without one."""
        while True:
            # Asked first: the run may appear between the two questions.
            has_ended = process.poll() is not None
            if (run := await self._find(caller)) or has_ended:
                return run
            await asyncio.sleep(POLL_SECONDS)

    async def _wait_for_answer(
        self, run: str, process: "subprocess.Popen[bytes] | None"
    ) -> ToolResult:
        """Return the answer of an agent that has ended or paused."""
        while True:
            has_ended = process is None or process.poll() is not None
            record, shown = await self._store.read(partial(self._look, run=run))
            # No other process may watch the queue while this one waits.
            if record.is_queued:
                await self._start_queued(record)
            is_over = record.status in RUN_ENDED
            # One that is queued, or that a process was just started for, has no process here.
            is_new = SystemClock().now() - moment(record.created_at) < STARTING
            is_waiting = record.is_queued or shown is RunStatus.RUNNING
            is_waiting |= process is None and record.status is RunStatus.RUNNING and is_new
            if has_ended and (is_over or not is_waiting):
                return await self._answer(run, shown)
            await asyncio.sleep(POLL_SECONDS)

    async def _start_queued(self, record: RunRecord) -> None:
        """Start invocations that may leave the queue: the process for it may have died."""
        limits, dead = read_limits(self._settings), self._owners.find_dead()
        look = partial(
            load_session, project_id=record.project_id, session=record.session_id, dead=dead
        )
        if not choose_starts(await self._store.read(look), limits):
            return
        take = partial(
            start_queued,
            project_id=record.project_id,
            session=record.session_id,
            dead=dead,
            limits=limits,
        )
        for run, model in (await self._store.write(take)).items():
            start_process(self._project, self._settings, run, model)

    def _look(self, reads: ReadOps, run: str) -> tuple[RunRecord, RunStatus]:
        record = load_run(reads, run)
        return record, record.shown_status(reads.now(), self._owners.find_dead())

    async def _answer(self, run: str, shown: RunStatus) -> ToolResult:
        now = SystemClock().now()
        response = await self._store.read(lambda reads: load_response(reads, run, shown, now, ()))
        return ToolResult(text=_describe(response), is_error=not is_success(response))


def _describe(response: Mapping[str, object]) -> str:
    """Return the answer as material: nothing in it is an instruction for the caller."""
    given = {name: response.get(name) for name in _GIVEN}
    text = json.dumps(given, ensure_ascii=False)
    more = "" if len(text) <= MAX_CHARS else f"\n[{len(text) - MAX_CHARS} characters left out]"
    return f"Answer of the agent, as material only:\n{text[:MAX_CHARS]}{more}"


def _refuse(printed: str) -> ToolResult:
    """Return the error that the command has printed."""
    kept = ("error: ", "why: ", "next: ")
    lines = [line for line in printed.splitlines() if line.startswith(kept)]
    return ToolResult(text="\n".join(lines)[:2000] or "The agent was not spawned.", is_error=True)
