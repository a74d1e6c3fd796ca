"""Read-only verbs: status, processes, report, size of a plan."""

import difflib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from mimir.attempts.results import OUTPUT_ON_TASK
from mimir.domain.agent import ROLES
from mimir.domain.json_value import as_text
from mimir.domain.plan import Plan, call_limit
from mimir.domain.task_states import ANSWERED, RunStatus, TaskStatus
from mimir.errors import MimirError, UsageError
from mimir.llm.protocol import ChatModel
from mimir.orchestrator.runs import lookup
from mimir.orchestrator.services import ProjectServices
from mimir.qc.evidence import seal
from mimir.reporting.narrative import write_prose as ask_for_prose
from mimir.reporting.render.explanation import explain_task
from mimir.reporting.render.narrative import NO_PROSE, Narrative
from mimir.reporting.render.report import ReportDraft, as_json
from mimir.reporting.summary.run_loader import gather, load_summary
from mimir.reporting.summary.summary import RunSummary
from mimir.scheduling.processes import pool_metrics
from mimir.scheduling.run_services import ProcessLiveness
from mimir.store.operations import runs
from mimir.store.operations.record_loading import (
    decode_plan,
    find_text,
    load_processes,
    load_run_with_plan,
    load_task_answers,
    load_whole_answer,
    save_run_text,
)
from mimir.store.protocol import ReadOps
from mimir.store.sealing.run_record import change_ended_run, find_sealed_report
from mimir.workspace.aio import await_all, gather_both, to_thread_shielded
from mimir.workspace.state_dir import put_all, write_state_file

REPORT = "execution-report.md"


async def find_own_run(services: ProjectServices, run: str | None, *, resumable: bool) -> str:
    """Return the id of a run of this project, as `lookup.find_run`."""
    return await lookup.find_run(services.store, services.project_id, run, resumable=resumable)


def explain(reads: ReadOps, run: str, task: str) -> list[str]:
    """Return what decided each criterion of a task.

    Raises:
        UsageError: The plan of the run has no such task.
    """
    data = {one.id: one for one in gather(reads, run).tasks}
    if task not in data:
        near = difflib.get_close_matches(task, data, n=3, cutoff=0.4) or sorted(data)[:3]
        raise UsageError(
            f"Run {run} has no task {task[:80]!r}.", next_step=f"Nearest: {', '.join(near)}."
        )
    plan = decode_plan(load_run_with_plan(reads, run))
    return explain_task(plan.task(task), data[task])


async def status(services: ProjectServices, run: str) -> Mapping[str, object]:
    """Return the status of a run in the shape of `status --json`."""
    dead = await find_dead_processes(services, run)
    return await lookup.status(services.store, run, dead, services.clock.now())


async def load_workers(services: ProjectServices, run: str) -> Mapping[str, object]:
    """Return `workers`, `locks` and `metrics` of a run."""
    dead = await find_dead_processes(services, run)
    return await services.store.read(partial(pool_metrics.shape, run=run, dead=dead))


async def find_dead_processes(services: ProjectServices, run: str) -> frozenset[str]:
    """Return the dead processes of this directory, and those of this host that served the run."""
    liveness = ProcessLiveness(owners=services.owners, host=services.process.host)
    # Lock files of other directories on this host are known only through the registrations.
    liveness.learn(await services.store.read(partial(load_processes, run=run)))
    return liveness.dead()


async def write_report(services: ProjectServices, run: str) -> tuple[str, str]:
    """Write the report next to the plan, with the answers as files; return its path and text.

    The sealed report of a run that has ended stays as it is.
    """
    summary = await services.store.read(partial(load_summary, run=run))
    sealed = await services.store.read(partial(find_sealed_report, run=run))
    path = as_text(sealed.get("path"))
    if path and hash_of_file(services, path) == sealed.get("sha256"):
        await _write_answers(services, summary)
        return path, (services.project / path).read_text(encoding="utf-8")
    path, text = await _write_text(services, summary, ReportDraft(summary, services.link))
    await _write_answers(services, summary)
    return path, text.decode()


async def write_last_report(
    services: ProjectServices,
    run: str,
    outcome: RunStatus,
    *,
    alongside: Sequence[Callable[[], Awaitable[None]]] = (),
) -> tuple[str, bytes]:
    """Ask the reporters for prose and write the final report; return its path and text.

    The report does not count the reporters' own calls: they are asked about the summary that it shows.
    """
    summary = await services.store.read(partial(load_summary, run=run, outcome=outcome))

    async def prepare_draft() -> ReportDraft:
        await await_all([_write_answers(services, summary), *(work() for work in alongside)])
        return ReportDraft(summary, services.link)

    # The first model call starts before any other work.
    _, draft = await gather_both(_write_prose(services, summary), prepare_draft())
    path, text = await _write_text(services, summary, draft)
    return path, bytes(text)


async def renew_report(services: ProjectServices, run: str) -> None:
    """Write the report of a run again after a change of the ended run, and seal it."""
    summary = await services.store.read(partial(load_summary, run=run))
    path, text = await _write_text(services, summary, ReportDraft(summary, services.link))
    report = sealed_report(path, bytes(text))
    await services.store.write(
        lambda ops: change_ended_run(ops, run, "report", lambda _: None, seal.append, report)
    )


def sealed_report(path: str, text: bytes) -> Mapping[str, object]:
    """Return what the record of a run holds of its report."""
    return {"path": path, "sha256": hashlib.sha256(text).hexdigest()}


def hash_of_file(services: ProjectServices, path: str) -> str | None:
    """Return the SHA-256 of a file of the project; None if it cannot be read."""
    try:
        return hashlib.sha256((services.project / path).read_bytes()).hexdigest()
    except OSError:
        return None


async def report_json(services: ProjectServices, run: str) -> Mapping[str, object]:
    """Return the report as JSON."""
    summary = await services.store.read(partial(load_summary, run=run))
    return as_json(summary, await _load_prose(services, run))


async def _write_text(
    services: ProjectServices, summary: RunSummary, draft: ReportDraft
) -> tuple[str, bytearray]:
    text = draft.with_narrative(await _load_prose(services, summary.run))
    path = f"{_folder(summary)}/{REPORT}"
    write_state_file(services.project, path, text)
    return path, text


async def _write_prose(services: ProjectServices, summary: RunSummary) -> None:
    """Ask the reporters for prose and store it; an answer needs none."""
    if summary.outcome == ANSWERED:
        return
    run = summary.run

    async def open_model(role: str, number: int) -> ChatModel:
        transcript = await services.open_transcript(run, role, number)
        return services.open_model(run, role, transcript, number)

    try:
        prose = await ask_for_prose(
            summary, open_model, services.own_preambles.read, choices=services.choices
        )
    except MimirError:  # the narrative is optional: a run never fails because of it
        return
    save = partial(save_run_text, run=run, name="prose", text=prose.dump())
    await services.store.write(save, durable=False)


async def _load_prose(services: ProjectServices, run: str) -> Narrative:
    record = await services.store.read(partial(find_text, run=run, name="prose"))
    return Narrative.load(record.text) if record else NO_PROSE


def _folder(summary: RunSummary) -> str:
    """Return the plan's folder below `chains/`; the run's own folder for a plan elsewhere."""
    plan = summary.plan_path
    # A report must not appear next to a plan file in a source folder.
    if plan.startswith("chains/") and plan.count("/") >= 2:
        return plan.rsplit("/", 1)[0]
    return f"chains/{summary.run}"


async def _write_answers(services: ProjectServices, summary: RunSummary) -> None:
    """Write the answers of completed tasks, one file a task; memory holds one batch at a time."""

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
    completed = (task.node for task in summary.tasks if task.status == TaskStatus.COMPLETED.value)
    for batch in runs.in_batches(completed):
        answers = await services.store.read(partial(read, nodes=batch))
        await to_thread_shielded(put_all, services.project, folder, answers)


def plan_size(services: ProjectServices, plan: Plan) -> tuple[int, int, int]:
    """Return (tasks, most tool calls, most tokens): every attempt and every budget used up."""
    calls = tokens = 0
    for task in plan.tasks:
        attempts = task.max_retries + 1
        limit = call_limit(task.estimated_tool_calls)
        calls += attempts * limit
        # Every tool call has one working answer, and the last answer closes the attempt.
        most = limit * ROLES["worker"].working_tokens + ROLES["worker"].answer_tokens
        tokens += attempts * min(services.attempt_tokens, most)
    return len(plan.tasks), calls, tokens
