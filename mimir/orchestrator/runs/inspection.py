"""Verbs that look: which run, where it stands, its report, what works on this machine."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mimir.attempts.results import OUTPUT_ON_TASK
from mimir.domain.agent import ROLES
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.plan import Plan, call_limit
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import MimirError
from mimir.llm.protocol import ChatModel
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.orchestrator.runs import lookup, worker_status
from mimir.orchestrator.runs.lookup import find_run as find_run
from mimir.orchestrator.services import ProjectServices
from mimir.reporting.render.narrative import NO_PROSE, Narrative
from mimir.reporting.render.narrative import write_prose as ask_for_prose
from mimir.reporting.render.report import ReportDraft, as_json
from mimir.reporting.summary.incremental import summary as summarised
from mimir.reporting.summary.summary import RunSummary
from mimir.scheduling.completion.final_gate import await_all
from mimir.store import row_fields
from mimir.store.operations import runs
from mimir.store.operations.record_loading import load_task_answers, load_whole_answer
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.schema import NodeLabel
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.workspace.aio import gather_both, to_thread_shielded
from mimir.workspace.state_dir import put_all, write_state_file

REPORT = "execution-report.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One thing that mimir needs."""

    what: str
    ok: bool
    detail: str
    fix: str = ""
    """What to do; empty when it works."""


async def find_own_run(parts: ProjectServices, run: str | None, *, resumable: bool) -> str:
    """Return a run's id: exact, by a unique prefix, or the newest (that can be resumed).

    Raises:
        UsageError: There is none, or several begin like that.
    """
    return await lookup.find_run(parts.store, parts.project_id, run, resumable=resumable)


async def status(parts: ProjectServices, run: str) -> Mapping[str, object]:
    """Return where a run stands."""
    gone = await worker_status.find_dead_processes(parts, run)
    return await lookup.status(parts.store, run, gone, parts.clock.now())


async def write_report(parts: ProjectServices, run: str) -> tuple[str, str]:
    """Write the report beside the plan, with the answers as files; its path and text."""
    summary = await parts.store.read(partial(summarised, run=run))
    path, text = await _write_text(parts, summary, ReportDraft(summary, parts.link))
    await _write_answers(parts, summary)
    return path, text.decode()


async def write_last_report(
    parts: ProjectServices,
    run: str,
    outcome: RunStatus,
    *,
    meanwhile: Sequence[Callable[[], Awaitable[None]]] = (),
) -> str:
    """Ask the reporters for prose, and write the report of a run whose last write is still to come; its path.

    What the reporters do is not told of: the summary that they are asked about is the one of the report.

    Args:
        parts: Services.
        run: Id.
        outcome: That the run is to have.
        meanwhile: Done while a reporter thinks, as is what is written of the answers; its errors are raised.
    """
    summary = await parts.store.read(partial(summarised, run=run, outcome=outcome))

    async def beside() -> ReportDraft:
        await await_all([_write_answers(parts, summary), *(do() for do in meanwhile)])
        return ReportDraft(summary, parts.link)

    # The first question leaves before anything else takes its time.
    _, draft = await gather_both(_write_prose(parts, summary), beside())
    path, _ = await _write_text(parts, summary, draft)
    return path


async def report_json(parts: ProjectServices, run: str) -> Mapping[str, object]:
    """Return the report's JSON twin."""
    return as_json(await parts.store.read(partial(summarised, run=run)), await _prose(parts, run))


async def _write_text(
    parts: ProjectServices, summary: RunSummary, draft: ReportDraft
) -> tuple[str, bytearray]:
    text = draft.with_narrative(await _prose(parts, summary.run))
    path = f"{_folder(summary)}/{REPORT}"
    write_state_file(parts.project, path, text)
    return path, text


async def _write_prose(parts: ProjectServices, summary: RunSummary) -> None:
    """Ask the reporters for prose and keep it; whatever goes wrong, there is none and nothing else changes."""
    run = summary.run

    async def ask(role: str, number: int) -> ChatModel:
        lane = await StoredTranscript.open(
            parts.store, run=run, task=PLAN_TASK, attempt=number, role=role, fence=None
        )
        name = lane_id(run, PLAN_TASK, number, role)
        return JournaledModel(parts.models.for_lane(role, name, parts.choices[role].model), lane)

    try:
        prose = await ask_for_prose(summary, ask, parts.project, choices=parts.choices)
    except MimirError:
        return
    text = prose.dump()

    def work(ops: WriteOps) -> None:
        row = {"id": f"{run}#prose", "name": "prose", "runId": run, "kind": "prose", "text": text}
        ops.upsert(NodeLabel.ARTIFACT, [row])

    await parts.store.write(work, durable=False)


async def _prose(parts: ProjectServices, run: str) -> Narrative:
    row = await parts.store.read(lambda reads: reads.get(NodeLabel.ARTIFACT, f"{run}#prose"))
    return Narrative.load(row_fields.text_field(row, "text")) if row else NO_PROSE


def _folder(summary: RunSummary) -> str:
    """Return the plan's folder below `chains/`, or one of the run's own for a plan that lies elsewhere."""
    plan = summary.plan_path
    if plan.startswith("chains/") and plan.count("/") >= 2:
        return plan.rsplit("/", 1)[0]
    return f"chains/{summary.run}"


async def _write_answers(parts: ProjectServices, summary: RunSummary) -> None:
    """Write the answers of completed tasks, one file a task; a batch of them is in memory at a time."""

    def read(reads: ReadOps, nodes: Sequence[str]) -> list[tuple[str, bytes]]:
        return [
            (
                f"{task.task_id}.md",
                load_whole_answer(reads, task, longest_kept=OUTPUT_ON_TASK).encode(),
            )
            for task in load_task_answers(reads, nodes)
        ]

    folder = f"{_folder(summary)}/deliverables"
    completed = (task.node for task in summary.tasks if task.status == TaskStatus.COMPLETED.value)
    for batch in runs.in_batches(completed):
        answers = await parts.store.read(partial(read, nodes=batch))
        await to_thread_shielded(put_all, parts.project, folder, answers)


def plan_size(parts: ProjectServices, plan: Plan) -> tuple[int, int, int]:
    """Return (tasks, most tool calls, most tokens): every attempt used, every budget used up."""
    calls = tokens = 0
    for task in plan.tasks:
        attempts = task.max_retries + 1
        limit = call_limit(task.estimated_tool_calls)
        calls += attempts * limit
        most = limit * ROLES["worker"].working_tokens + ROLES["worker"].answer_tokens
        tokens += attempts * min(parts.attempt_tokens, most)
    return len(plan.tasks), calls, tokens


async def doctor(parts: ProjectServices) -> Sequence[DoctorFinding]:
    """Say what works here and what does not."""
    sandbox = await parts.sandbox.probe()
    return (
        DoctorFinding(what="store", ok=True, detail=parts.store.uri),
        DoctorFinding(what="git", ok=True, detail="found; history is in .mimir/work/history.git"),
        DoctorFinding(
            what="sandbox",
            ok=sandbox.ok,
            detail=sandbox.backend if sandbox.ok else sandbox.problem,
            fix="" if sandbox.ok else sandbox.fix,
        ),
        _model_diagnosis(parts),
    )


def _model_diagnosis(parts: ProjectServices) -> DoctorFinding:
    try:
        parts.models.for_lane("worker", "doctor", parts.choices["worker"].model)
    except MimirError as error:
        return DoctorFinding(what="model", ok=False, detail=str(error), fix=error.next_step or "")
    named = parts.choices["worker"].model or "the endpoint's default"
    return DoctorFinding(what="model", ok=True, detail=f"{named}; not asked")
