"""Recording of active runs: new data of the store is appended a few times a second.

A kill loses at most the lines that are not written yet; the next process that records the run writes them first.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mimir.domain.json_value import is_object
from mimir.domain.run import Apply, RunBudget, RunResult
from mimir.orchestrator.api import Mimir
from mimir.orchestrator.patterns.planning_run import PlanningResult
from mimir.orchestrator.services import ProjectServices
from mimir.planning.renderer import render
from mimir.recordings.format.recording import RecordedRun, build
from mimir.recordings.format.recording_export import ExportProgress, Line, end_of, lines
from mimir.recordings.format.recording_file import RecordingWriter
from mimir.recordings.recorded_history import RecordingHistory
from mimir.reporting.render.narrative import NO_PROSE, Narrative
from mimir.reporting.render.report import markdown
from mimir.reporting.summary.run_loader import load_summary
from mimir.store.operations import record_loading
from mimir.store.protocol import ReadOps
from mimir.store.schema import pack

EVERY_SECONDS = 0.25


class RecordingMimir(Mimir):
    """API of a project that records its runs to a file."""

    def __init__(self, services: ProjectServices, recorder: "Recorder") -> None:
        super().__init__(services)
        self._recorder = recorder

    async def make_plan(self, run: str) -> PlanningResult:
        """Make a plan, and record it."""
        async with self._recorder.record_while(run):
            return await super().make_plan(run)

    async def drive(
        self, run: str, *, workers: int, apply: Apply, limits: RunBudget, resumed: bool
    ) -> RunResult:
        """Execute a run, and record it."""
        async with self._recorder.record_while(run):
            return await super().drive(
                run, workers=workers, apply=apply, limits=limits, resumed=resumed
            )


@contextlib.contextmanager
def recorder(
    services: ProjectServices, path: Path, name: str, say: Callable[[str], None]
) -> Generator["Recorder"]:
    """Open a recording to append to it, with git's answers.

    Raises:
        PlanError: The file is not a recording.
    """
    writer = RecordingWriter(path, name, engine=services.engine_version)
    if writer.healed:
        say(f"{name} was cut in the middle of its last line; the half line was removed.")
    started = Recorder(writer, services)
    # A replay has a history that never changes: it has nothing to record.
    if isinstance(services.history, RecordingHistory):
        services.history.note = started.note
    try:
        yield started
    finally:
        writer.close()


class Recorder:
    """Recording that is written."""

    def __init__(self, writer: RecordingWriter, services: ProjectServices) -> None:
        self._writer = writer
        self._parts = services
        self._asked: set[str] = set(writer.known.git) if writer.known else set()

    def note(self, ask: Sequence[object], answer: object) -> None:
        """Write an answer of git once, without the secrets of files."""
        key = pack(list(ask))
        if key not in self._asked:
            self._asked.add(key)
            self._writer.write(
                {
                    "kind": "git",
                    "ask": list(ask),
                    "answer": _redact_answer(answer, self._parts.redact),
                }
            )

    @contextlib.asynccontextmanager
    async def record_while(self, run: str) -> AsyncGenerator[None]:
        """Write a run during the block, and its outcome at the end."""
        written = self._before(run)
        following = asyncio.ensure_future(self._follow(run, written))
        try:
            yield
        finally:
            # It is cancelled while it waits: lines are written without an await.
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            # Shielded: a cancellation must not lose the last lines.
            await asyncio.shield(self._finish(run, written))

    def _before(self, run: str) -> ExportProgress:
        """Return how much of the run earlier processes have written."""
        known = self._writer.known.runs.get(run) if self._writer.known else None
        if known is None:
            return ExportProgress()
        # Check runs of the last time are written again: a reader counts equal ones once.
        return ExportProgress(
            seq=max((event.seq for event in known.events), default=0),
            checks_at=max((check.at for check in known.checks), default=""),
            texts=known.texts,
        )

    async def _follow(self, run: str, written: ExportProgress) -> None:
        while True:
            await self._write(run, written)
            await asyncio.sleep(EVERY_SECONDS)

    async def _write(self, run: str, written: ExportProgress) -> None:
        def look(reads: ReadOps) -> tuple[list[Line], ExportProgress]:
            # On a copy: the store may repeat this, and nothing is noted before it is written.
            further = replace(written)
            return list(lines(reads, run, further)), further

        found, further = await self._parts.store.read(look)
        for line in found:
            self._writer.write(line)
        written.seq, written.texts = further.seq, further.texts
        written.checks, written.checks_at = further.checks, further.checks_at

    async def _finish(self, run: str, written: ExportProgress) -> None:
        await self._write(run, written)
        self._writer.write(await self._parts.store.read(partial(outcome_record, run=run)))


def load_recorded_run(reads: ReadOps, run: str) -> RecordedRun:
    """Return a run of the store as a recording has it."""
    whole = [*lines(reads, run, ExportProgress()), outcome_record(reads, run)]
    return build(whole).runs[run]


def outcome_record(reads: ReadOps, run: str) -> Line:
    """Return the line of a run's outcome so far."""
    report, plan = bytes_of(reads, run)
    return end_of(reads, run, report=report, plan=plan)


def bytes_of(reads: ReadOps, run: str) -> tuple[str, str]:
    """Return the report and plan of a run; a planning run has no report."""
    record = record_loading.load_run_with_plan(reads, run)
    if record.kind == "plan":
        plan = record_loading.find_text(reads, run, "made")
        return "", plan.text if plan else ""
    text = record_loading.find_text(reads, run, "prose")
    narrative = Narrative.load(text.text) if text else NO_PROSE
    report = markdown(load_summary(reads, run), narrative)
    return report, render(record_loading.decode_plan(record))


def _redact_answer(value: object, redact: Callable[[str], str]) -> object:
    if is_object(value):
        text = value.get("text")
        return {**value, "text": redact(text)} if isinstance(text, str) else value
    return redact(value) if isinstance(value, str) else value
