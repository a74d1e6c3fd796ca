"""Verbs that look: which run, where it stands, its report, what works on this machine."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mimir.domain.agent import ROLES
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.plan import Plan, call_limit
from mimir.domain.task_states import RunStatus, Status
from mimir.errors import MimirError
from mimir.llm.protocol import ChatModel
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.orchestrator.runs import lookup, worker_status
from mimir.orchestrator.runs.lookup import find_run as find_run
from mimir.orchestrator.services import Parts
from mimir.reporting.render.narrative import NO_PROSE, Prose
from mimir.reporting.render.narrative import write_prose as ask_for_prose
from mimir.reporting.render.report import Draft, as_json
from mimir.reporting.summary.incremental import Account
from mimir.reporting.summary.incremental import summary as summarised
from mimir.reporting.summary.summary import Summary
from mimir.scheduling.completion.final_gate import together
from mimir.scheduling.run_services import Crew
from mimir.scheduling.task_queries import OF_ANSWER, whole_answer
from mimir.store import row_fields
from mimir.store.operations import runs
from mimir.store.protocol import Ops, Reads
from mimir.store.schema import Label
from mimir.store.transcripts.stored_transcript import Lane
from mimir.workspace.aio import both, to_its_end
from mimir.workspace.state_dir import put, put_all

REPORT = "execution-report.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One thing that mimir needs."""

    what: str
    ok: bool
    detail: str
    fix: str = ""
    """What to do; empty when it works."""


async def find(parts: Parts, run: str | None, *, resumable: bool) -> str:
    """Return a run's id: exact, by a unique prefix, or the newest (that can be resumed).

    Raises:
        UsageError: There is none, or several begin like that.
    """
    return await lookup.find_run(parts.store, parts.project_id, run, resumable=resumable)


async def status(parts: Parts, run: str) -> Mapping[str, object]:
    """Return where a run stands."""
    gone = await worker_status.dead(parts, run)
    return await lookup.status(parts.store, run, gone, parts.clock.now())


async def write_report(parts: Parts, run: str) -> tuple[str, str]:
    """Write the report beside the plan, with the answers as files; its path and text."""
    summary = await parts.store.read(partial(summarised, run=run))
    path, text = await _write_text(parts, summary, Draft(summary, parts.link))
    await _write_answers(parts, summary)
    return path, text.decode()


async def read_ahead(crew: Crew, account: Account) -> None:
    """Take tasks in as they end, while models take their time, until cancelled. What cannot be read is met again at the end, and told there."""
    with contextlib.suppress(MimirError):
        while True:
            moves = crew.wake.moves
            await asyncio.sleep(crew.poll_seconds)
            await crew.wake.until_moved(moves, None)
            if crew.turns.pay:
                account.take(await crew.store.read(account.look, brief=True))


async def write_last_report(
    parts: Parts,
    account: Account,
    outcome: RunStatus,
    *,
    meanwhile: Sequence[Callable[[], Awaitable[None]]] = (),
) -> str:
    """Ask the reporters for prose, and write the report of a run whose last write is still to come; its path.

    What the reporters do is not told of: the summary that they are asked about is the one of the report.

    Args:
        parts: Services.
        account: Of the run.
        outcome: That the run is to have.
        meanwhile: Done while a reporter thinks, as is what is written of the answers; its errors are raised.
    """
    summary = await parts.store.read(partial(account.summary, outcome=outcome))

    async def beside() -> Draft:
        await together([_write_answers(parts, summary), *(do() for do in meanwhile)])
        return Draft(summary, parts.link)

    # The first question leaves before anything else takes its time.
    _, draft = await both(_write_prose(parts, summary), beside())
    path, _ = await _write_text(parts, summary, draft)
    return path


async def report_json(parts: Parts, run: str) -> Mapping[str, object]:
    """Return the report's JSON twin."""
    return as_json(await parts.store.read(partial(summarised, run=run)), await _prose(parts, run))


async def _write_text(parts: Parts, summary: Summary, draft: Draft) -> tuple[str, bytearray]:
    text = draft.filled(await _prose(parts, summary.run))
    path = f"{_folder(summary)}/{REPORT}"
    put(parts.project, path, text)
    return path, text


async def _write_prose(parts: Parts, summary: Summary) -> None:
    """Ask the reporters for prose and keep it; whatever goes wrong, there is none and nothing else changes."""
    run = summary.run

    async def ask(role: str, number: int) -> ChatModel:
        lane = await Lane.open(
            parts.store, run=run, task=PLAN_TASK, attempt=number, role=role, fence=None
        )
        name = lane_id(run, PLAN_TASK, number, role)
        return JournaledModel(parts.models.for_lane(role, name, parts.choices[role].model), lane)

    try:
        prose = await ask_for_prose(summary, ask, parts.project, choices=parts.choices)
    except MimirError:
        return
    text = prose.dump()

    def work(ops: Ops) -> None:
        row = {"id": f"{run}#prose", "name": "prose", "runId": run, "kind": "prose", "text": text}
        ops.upsert(Label.ARTIFACT, [row])

    await parts.store.write(work, durable=False)


async def _prose(parts: Parts, run: str) -> Prose:
    row = await parts.store.read(lambda reads: reads.get(Label.ARTIFACT, f"{run}#prose"))
    return Prose.load(row_fields.text(row, "text")) if row else NO_PROSE


def _folder(summary: Summary) -> str:
    """Return the plan's folder below `chains/`, or one of the run's own for a plan that lies elsewhere."""
    plan = summary.plan_path
    if plan.startswith("chains/") and plan.count("/") >= 2:
        return plan.rsplit("/", 1)[0]
    return f"chains/{summary.run}"


async def _write_answers(parts: Parts, summary: Summary) -> None:
    """Write the answers of completed tasks, one file a task; a batch of them is in memory at a time."""

    def read(reads: Reads, nodes: Sequence[str]) -> list[tuple[str, bytes]]:
        rows = reads.find(Label.TASK, {"id": ("in", nodes)}, only=OF_ANSWER)
        return [
            (f"{row_fields.text(row, 'taskId')}.md", whole_answer(reads, row).encode())
            for row in rows
        ]

    folder = f"{_folder(summary)}/deliverables"
    completed = (task.node for task in summary.tasks if task.status == Status.COMPLETED.value)
    for batch in runs.in_batches(completed):
        answers = await parts.store.read(partial(read, nodes=batch))
        await to_its_end(put_all, parts.project, folder, answers)


def size(parts: Parts, plan: Plan) -> tuple[int, int, int]:
    """Return (tasks, most tool calls, most tokens): every attempt used, every budget used up."""
    calls = tokens = 0
    for task in plan.tasks:
        attempts = task.max_retries + 1
        limit = call_limit(task.estimated_tool_calls)
        calls += attempts * limit
        most = limit * ROLES["worker"].working_tokens + ROLES["worker"].answer_tokens
        tokens += attempts * min(parts.attempt_tokens, most)
    return len(plan.tasks), calls, tokens


async def doctor(parts: Parts) -> Sequence[Diagnosis]:
    """Say what works here and what does not."""
    sandbox = await parts.sandbox.probe()
    return (
        Diagnosis(what="store", ok=True, detail=parts.store.uri),
        Diagnosis(what="git", ok=True, detail="found; history is in .mimir/work/history.git"),
        Diagnosis(
            what="sandbox",
            ok=sandbox.ok,
            detail=sandbox.backend if sandbox.ok else sandbox.problem,
            fix="" if sandbox.ok else sandbox.fix,
        ),
        _model_diagnosis(parts),
    )


def _model_diagnosis(parts: Parts) -> Diagnosis:
    try:
        parts.models.for_lane("worker", "doctor", parts.choices["worker"].model)
    except MimirError as error:
        return Diagnosis(what="model", ok=False, detail=str(error), fix=error.next_step or "")
    named = parts.choices["worker"].model or "the endpoint's default"
    return Diagnosis(what="model", ok=True, detail=f"{named}; not asked")
