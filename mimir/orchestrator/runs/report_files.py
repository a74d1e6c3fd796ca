"""Files of a run's report: the report next to its plan, and one file for each answer."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from mimir.attempts.results import OUTPUT_ON_TASK
from mimir.domain.json_value import as_text
from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class
from mimir.reporting.render.narrative import NO_PROSE, Narrative
from mimir.reporting.render.report import ReportDraft, as_json
from mimir.reporting.render.sections import Link
from mimir.reporting.summary.run_loader import load_summary
from mimir.reporting.summary.summary import RunSummary
from mimir.store.operations import runs
from mimir.store.operations.record_loading import find_text, load_task_answers, load_whole_answer
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.sealing.run_record import find_sealed_report
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.state_dir import put_all, write_state_file

REPORT = "execution-report.md"


@value_class
class ReportFiles:
    """Writer of report files from the store alone."""

    project: Path
    store: GraphStore
    link: Link | None
    """Makes links to the store's nodes; None: the store has no page for them."""

    async def write(self, run: str) -> tuple[str, str]:
        """Write the report next to the plan, with the answers as files; return its path and text.

        The sealed report of a run that has ended stays as it is.
        """
        summary = await self.store.read(partial(load_summary, run=run))
        sealed = await self.store.read(partial(find_sealed_report, run=run))
        path = as_text(sealed.get("path"))
        if path and self.hash_of(path) == sealed.get("sha256"):
            await self.write_answers(summary)
            return path, (self.project / path).read_text(encoding="utf-8")
        path, text = await self.finish(summary, self.begin(summary))
        await self.write_answers(summary)
        return path, text.decode()

    async def read(self, run: str) -> str:
        """Return the text of the report and write nothing."""
        summary = await self.store.read(partial(load_summary, run=run))
        sealed = await self.store.read(partial(find_sealed_report, run=run))
        path = as_text(sealed.get("path"))
        if path and self.hash_of(path) == sealed.get("sha256"):
            return (self.project / path).read_text(encoding="utf-8")
        text = self.begin(summary).with_narrative(await self._load_prose(run))
        return text.decode("utf-8")

    async def read_json(self, run: str) -> Mapping[str, object]:
        """Return the report as JSON."""
        summary = await self.store.read(partial(load_summary, run=run))
        return as_json(summary, await self._load_prose(run))

    def begin(self, summary: RunSummary) -> ReportDraft:
        """Return the report without its prose."""
        return ReportDraft(summary, self.link)

    async def finish(self, summary: RunSummary, draft: ReportDraft) -> tuple[str, bytearray]:
        """Add the stored prose and write the report; return its path and text."""
        text = draft.with_narrative(await self._load_prose(summary.run))
        path = f"{_folder(summary)}/{REPORT}"
        write_state_file(self.project, path, text)
        return path, text

    async def write_answers(self, summary: RunSummary) -> None:
        """Write the answers of completed tasks, one file a task; one batch is in memory at a time."""

        def read(reads: ReadOps, nodes: Sequence[str]) -> list[tuple[str, bytes]]:
            return [
                (
                    f"{task.task_id}.md",
                    load_whole_answer(reads, task, longest_kept=OUTPUT_ON_TASK).encode(),
                )
                for task in load_task_answers(reads, nodes)
            ]

        # Batches: ten thousand answers do not fit into memory together.
        folder = f"{_folder(summary)}/deliverables"
        completed = (
            task.node for task in summary.tasks if task.status == TaskStatus.COMPLETED.value
        )
        for batch in runs.in_batches(completed):
            answers = await self.store.read(partial(read, nodes=batch))
            await to_thread_shielded(put_all, self.project, folder, answers)

    def hash_of(self, path: str) -> str | None:
        """Return the SHA-256 of a file of the project; None if it cannot be read."""
        try:
            return hashlib.sha256((self.project / path).read_bytes()).hexdigest()
        except OSError:
            return None

    async def _load_prose(self, run: str) -> Narrative:
        record = await self.store.read(partial(find_text, run=run, name="prose"))
        return Narrative.load(record.text) if record else NO_PROSE


def _folder(summary: RunSummary) -> str:
    """Return the plan's folder below `chains/`; the run's own folder for a plan elsewhere."""
    plan = summary.plan_path
    # A report must not appear next to a plan file in a source folder.
    if plan.startswith("chains/") and plan.count("/") >= 2:
        return plan.rsplit("/", 1)[0]
    return f"chains/{summary.run}"
