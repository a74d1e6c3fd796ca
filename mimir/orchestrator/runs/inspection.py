"""Read-only verbs: status, processes, report, size of a plan."""

import difflib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from mimir.domain.agent import ROLES
from mimir.domain.plan import Plan
from mimir.domain.task_states import ANSWERED, RunStatus
from mimir.domain.tool_call_limit import call_limit
from mimir.errors import MimirError, UsageError
from mimir.llm.protocol import ChatModel
from mimir.orchestrator.runs.listing import find_id
from mimir.orchestrator.runs.report_files import ReportFiles
from mimir.orchestrator.services import ProjectServices
from mimir.qc.evidence import seal
from mimir.reporting.narrative import write_prose as ask_for_prose
from mimir.reporting.render.explanation import explain_task
from mimir.reporting.render.report import ReportDraft
from mimir.reporting.status import read_status
from mimir.reporting.summary.run_loader import gather, load_summary
from mimir.reporting.summary.summary import RunSummary
from mimir.scheduling.processes import pool_metrics
from mimir.scheduling.run_services import ProcessLiveness
from mimir.store.operations.record_loading import (
    decode_plan,
    load_processes,
    load_run_with_plan,
    save_run_text,
)
from mimir.store.protocol import ReadOps
from mimir.store.sealing.run_record import change_ended_run
from mimir.workspace.aio import await_all, gather_both


async def find_own_run(services: ProjectServices, run: str | None, *, resumable: bool) -> str:
    """Return the id of a run of this project, as `find_id`."""
    find = partial(find_id, project_id=services.project_id, run=run, resumable=resumable)
    return await services.store.read(find)


def explain(reads: ReadOps, run: str, task: str) -> list[str]:
    """Return the decision of each criterion of a task.

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
    read = partial(read_status, run=run, dead=dead, now=services.clock.now())
    return await services.store.read(read)


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


def report_files(services: ProjectServices) -> ReportFiles:
    """Return the report files of the project."""
    return ReportFiles(project=services.project, store=services.store, link=services.link)


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

    files = report_files(services)

    async def prepare_draft() -> ReportDraft:
        await await_all([files.write_answers(summary), *(work() for work in alongside)])
        return files.begin(summary)

    # The first model call starts before any other work.
    _, draft = await gather_both(_write_prose(services, summary), prepare_draft())
    path, text = await files.finish(summary, draft)
    return path, bytes(text)


async def renew_report(services: ProjectServices, run: str) -> None:
    """Write the report of a run again after a change of the ended run, and seal it."""
    summary = await services.store.read(partial(load_summary, run=run))
    files = report_files(services)
    path, text = await files.finish(summary, files.begin(summary))
    report = describe_report(services, summary.plan_path, path, bytes(text))
    await services.store.write(
        lambda ops: change_ended_run(ops, run, "report", lambda _: None, seal.append, report)
    )


def describe_report(
    services: ProjectServices, plan: str, path: str, text: bytes
) -> Mapping[str, object]:
    """Return the record of a run about its report and the file of its plan."""
    found = report_files(services).hash_of(plan) if plan else None
    return {
        "path": path,
        "sha256": hashlib.sha256(text).hexdigest(),
        "plan": {"path": plan, "sha256": found} if found else None,
    }


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
