"""Records runs as they go: whatever is in the store and not in the file yet is written behind it, a few times a second and at the end.

The store is the truth. A kill loses at most what was not written yet, and the next process that records the run writes that first.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from mimir.domain.run import NO_LIMITS, Apply, RunBudget, RunResult
from mimir.orchestrator import plan_creation
from mimir.orchestrator.api import Mimir
from mimir.orchestrator.plan_creation import PlanningResult
from mimir.orchestrator.services import ProjectServices
from mimir.planning.renderer import render
from mimir.recordings.format.recording import RecordedRun, build
from mimir.recordings.format.recording_export import ExportProgress, Line, end_of, lines
from mimir.recordings.format.recording_file import RecordingWriter
from mimir.recordings.recorded_history import RecordingHistory
from mimir.reporting.render.narrative import NO_PROSE, Narrative
from mimir.reporting.render.report import markdown
from mimir.reporting.summary.run_loader import gather
from mimir.reporting.summary.summary import summarise
from mimir.store import row_fields
from mimir.store.operations import runs
from mimir.store.protocol import ReadOps
from mimir.store.schema import NodeLabel, pack

EVERY_SECONDS = 0.25


class RecordingMimir(Mimir):
    """The verbs of a project, with everything that runs ask and get written to a file."""

    def __init__(self, parts: ProjectServices, recorder: "Recorder") -> None:
        super().__init__(parts)
        self._recorder = recorder

    async def plan(
        self,
        request: str,
        *,
        ecko: bool,
        output: str | None,
        model: str,
        limits: RunBudget = NO_LIMITS,
    ) -> PlanningResult:
        """Make a plan, recorded."""
        run = await plan_creation.create_planning_run(
            self._parts, request, with_ecko=ecko, output=output or "", model=model, limits=limits
        )
        async with self._recorder.record_while(run):
            return await plan_creation.make_plan(self._parts, run)

    async def drive(
        self, run: str, *, workers: int, apply: Apply, limits: RunBudget, resumed: bool
    ) -> RunResult:
        """Serve a run, recorded."""
        async with self._recorder.record_while(run):
            return await super().drive(
                run, workers=workers, apply=apply, limits=limits, resumed=resumed
            )


@contextlib.contextmanager
def recorder(
    parts: ProjectServices, path: Path, name: str, say: Callable[[str], None]
) -> Generator["Recorder"]:
    """Open a recording to write behind it, with all that the history is asked.

    Raises:
        PlanError: Something else is there.
    """
    writer = RecordingWriter(path, name, engine=parts.engine_version)
    if writer.healed:
        say(f"{name} was cut in the middle of its last line; that half line was taken away.")
    made = Recorder(writer, parts)
    if isinstance(parts.history, RecordingHistory):
        parts.history.note = made.note
    try:
        yield made
    finally:
        writer.close()


class Recorder:
    """One recording that is being written."""

    def __init__(self, writer: RecordingWriter, parts: ProjectServices) -> None:
        self._writer = writer
        self._parts = parts
        self._asked: set[str] = set(writer.known.git) if writer.known else set()

    def note(self, ask: Sequence[object], answer: object) -> None:
        """Write what the history said, once; no secret that stands in a file gets into the recording."""
        key = pack(list(ask))
        if key not in self._asked:
            self._asked.add(key)
            self._writer.write(
                {"kind": "git", "ask": list(ask), "answer": _clean(answer, self._parts.redact)}
            )

    @contextlib.asynccontextmanager
    async def record_while(self, run: str) -> AsyncGenerator[None]:
        """Write a run while the block is under way, and what it came to."""
        written = self._before(run)
        following = asyncio.ensure_future(self._follow(run, written))
        try:
            yield
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await asyncio.shield(self._finish(run, written))

    def _before(self, run: str) -> ExportProgress:
        """Return how far an earlier process has written the run."""
        known = self._writer.known.runs.get(run) if self._writer.known else None
        if known is None:
            return ExportProgress()
        return ExportProgress(
            seq=max((event.seq for event in known.events), default=0),
            checks_at=max((check.at for check in known.checks), default=""),
            texts=frozenset(known.texts),
        )

    async def _follow(self, run: str, written: ExportProgress) -> None:
        while True:
            await self._write(run, written)
            await asyncio.sleep(EVERY_SECONDS)

    async def _write(self, run: str, written: ExportProgress) -> None:
        def look(reads: ReadOps) -> tuple[list[Line], ExportProgress]:
            further = replace(
                written
            )  # it may be asked again: nothing is noted before it is written
            return list(lines(reads, run, further)), further

        found, further = await self._parts.store.read(look)
        for line in found:
            self._writer.write(line)
        written.seq, written.texts = further.seq, further.texts
        written.checks, written.checks_at = further.checks, further.checks_at

    async def _finish(self, run: str, written: ExportProgress) -> None:
        await self._write(run, written)
        self._writer.write(await self._parts.store.read(partial(outcome_record, run=run)))


def tape_of(reads: ReadOps, run: str) -> RecordedRun:
    """Return what the store holds of a run, as a recording would."""
    whole = [*lines(reads, run, ExportProgress()), outcome_record(reads, run)]
    return build(whole).runs[run]


def outcome_record(reads: ReadOps, run: str) -> Line:
    """Return the line of what a run came to so far."""
    report, plan = bytes_of(reads, run)
    return end_of(reads, run, report=report, plan=plan)


def bytes_of(reads: ReadOps, run: str) -> tuple[str, str]:
    """Return a run's report and its plan as they follow from the store; a planning run has no report."""
    row = runs.get(reads, run)
    if row_fields.text_field(row, "kind") == "plan":
        made = reads.get(NodeLabel.ARTIFACT, f"{run}#made")
        return "", row_fields.text_field(made, "text") if made else ""
    kept = reads.get(NodeLabel.ARTIFACT, f"{run}#prose")
    prose = Narrative.load(row_fields.text_field(kept, "text")) if kept else NO_PROSE
    return markdown(summarise(gather(reads, run)), prose), render(runs.plan_of(row))


def _clean(value: object, redact: Callable[[str], str]) -> object:
    if isinstance(value, Mapping):
        row = cast("Mapping[str, object]", value)
        text = row.get("text")
        return {**row, "text": redact(text)} if isinstance(text, str) else row
    return redact(value) if isinstance(value, str) else value
