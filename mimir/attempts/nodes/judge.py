"""The judge's node: QC looks at the deliverable in a throw-away checkout, the engine rules, the status moves."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mimir.agents.agent_loop import LoopServices
from mimir.agents.circuit_breaker import CircuitBreaker
from mimir.agents.citations import parse_citations as citations
from mimir.agents.context.inputs import ChangedFile, QCInput
from mimir.agents.context.receipt import ContextReceipt, flatten_receipt
from mimir.agents.stopwatch import WorkTimer
from mimir.attempts.results import JUDGEMENT, AttemptState, Deliverable
from mimir.attempts.services import AttemptServices, Props, seal_records
from mimir.domain.clock import stamp
from mimir.domain.event import EventKind
from mimir.domain.ids import lane_id
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.verdict import Verdict
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.qc.evidence.payloads import verdict_body
from mimir.qc.judgement import judge as qc
from mimir.store.operations import evidence
from mimir.store.schema import pack
from mimir.workspace.aio import to_thread_shielded

MOST_FILES = 60
"""Changed files whose contents QC is given; it can read the others."""
FILE_BYTES = 400_000


async def judge_attempt(
    desk: AttemptServices, course: AttemptState
) -> tuple[TaskStatus, AttemptState]:
    """Have the deliverable judged and move the status."""
    work = course.work
    if work is None:
        raise AssertionError("qc_executing without a deliverable")
    given = await _input(desk, course, work, work.tree)
    ruling = await qc.review_attempt(
        given, _services(desk, work.tree, "qc"), protected=work.protected
    )
    if isinstance(ruling, qc.ReviewUnavailable):
        return await _unavailable(desk, course, work, ruling)
    judgement = ruling.judgement
    to = TaskStatus.QC_PASSED if judgement.passed else TaskStatus.QC_FAILED
    now = stamp(desk.clock.now())
    values = _values(judgement) | {"qcCompletedAt": now}
    await desk.move(
        to,
        EventKind.VERDICT_GIVEN,
        task=values,
        attempt=values
        | {
            "judgementJson": JUDGEMENT.encode(judgement),
            **_receipt(ruling.receipt),
            "qcTokens": ruling.usage.total,
        },
        data={
            "passed": judgement.passed,
            "score": float(judgement.score),
            "model_score": float(judgement.model_score),
            "verdict": judgement.verdict.verdict,
            "reasons": list(judgement.reasons)[:20],
        },
        judgement=judgement,
        records=seal_records(desk, [("verdict", verdict_body(judgement, work.tree, work.answer))]),
        # Where nothing has to be merged it is completed at once.
        waits=judgement.passed and not work.commit,
    )
    return to, replace(course, judgement=judgement)


async def judge_merged(
    desk: AttemptServices, course: AttemptState, tree: str, both: Sequence[str]
) -> Verdict | Cause:
    """Have QC judge the merge where a file was changed on both sides; a lane of its own for each merged tree."""
    work = course.work
    if work is None:
        raise AssertionError("qc_passed without a deliverable")
    merged = replace(
        work, notes=(*work.notes, f"Others changed these files too: {', '.join(both)}.")
    )
    given = await _input(desk, course, merged, tree)
    ruling = await qc.review_attempt(
        given, _services(desk, tree, f"qc.merged-{tree[:12]}"), protected=work.protected
    )
    if isinstance(ruling, qc.ReviewUnavailable):
        return Cause.QC_UNAVAILABLE
    return ruling.judgement


async def _unavailable(
    desk: AttemptServices, course: AttemptState, work: Deliverable, ruling: qc.ReviewUnavailable
) -> tuple[TaskStatus, AttemptState]:
    cause = Cause.QC_UNAVAILABLE
    task, attempt = await desk.last_words(work, cause, ruling.why)
    await desk.move(
        TaskStatus.FAILED,
        EventKind.TASK_FAILED,
        task={**task, "qcFeedback": ruling.why},
        attempt={**attempt, **_receipt(ruling.receipt)},
        data={"cause": cause.value, "issues": [ruling.why]},
    )
    return TaskStatus.FAILED, replace(course, failure=cause)


def _services(desk: AttemptServices, tree: str, lane: str) -> qc.ReviewServices:
    async def sitting(number: int) -> qc.ReviewSession:
        return await _sitting(desk, tree, lane if number == 1 else f"{lane}.{number}")

    async def read_file(path: str) -> str | None:
        return await _text(desk, tree, path)

    name = lane_id(desk.facts.id, desk.task.id, desk.number, lane)
    return qc.ReviewServices(sittings=sitting, read_file=read_file, lane=name)


async def _sitting(desk: AttemptServices, tree: str, role: str) -> qc.ReviewSession:
    """Prepare one conversation: a lane, a checkout of its own, tools over it."""
    lane = await desk.open_lane(role)
    where = desk.where.with_name(f"{desk.where.name}.{role}")
    watch = WorkTimer(desk.clock)

    async def on_live(_tree: str) -> None:
        watch.start()

    is_made = False

    async def stand(_effectful: bool) -> Path:
        nonlocal is_made
        if not is_made:
            await desk.history.checkout(tree, where)
            is_made = True
        return where

    async def close() -> None:
        await lane.flush()
        if where.exists():
            await to_thread_shielded(shutil.rmtree, where, ignore_errors=True)

    lane.on_live = on_live
    name = lane_id(desk.facts.id, desk.task.id, desk.number, role)
    choice = desk.qc_choice
    return qc.ReviewSession(
        services=LoopServices(
            model=JournaledModel(desk.models.for_lane("qc", name, choice.model), lane),
            tools=desk.tools.judge(desk.facts.id, where, lane, desk.artifacts, stand),
            context=replace(desk.context, role="qc"),
            breaker=CircuitBreaker.for_estimate(
                None,
                seconds=desk.task.time_limit_minutes * 60,
                max_tokens=desk.facts.attempt_tokens,
            ),
            settings=qc.turn(desk.task, model=choice.model, temperature=choice.temperature),
            elapsed=watch,
        ),
        close=close,
    )


async def _input(
    desk: AttemptServices, course: AttemptState, work: Deliverable, tree: str
) -> QCInput:
    extra = desk.start.integration_retries
    cited = {c.number for c in citations(work.answer)}
    return QCInput(
        preamble=desk.facts.preambles["qc", desk.task.reviewer].text,
        task=desk.task,
        attempt=desk.number,
        attempts=desk.total + extra,
        answer=work.answer,
        artifact=f"{desk.task.id}/{desk.number}/answer",
        outcomes=course.outcomes,
        changed=await _changed(desk, work, tree),
        cited={n: text for n, at, text in work.ledger if n in cited and at == work.tree},
        unsupported=work.unsupported,
        required_fixes=desk.start.required_fixes,
        related=desk.related,
        notes=_notes(work),
        hidden=desk.facts.background.hidden_from(desk.task),
    )


def _receipt(receipt: ContextReceipt) -> Props:
    return {"qcReceiptJson": pack(receipt.as_json()), **flatten_receipt(receipt, "qc")}


def _notes(work: Deliverable) -> tuple[str, ...]:
    notes = [
        f"{p!r} was changed outside the task's files; it is not in the deliverable."
        for p in work.left_out
    ]
    notes += [
        f"The protected file {p!r} was changed; checks ran with it restored."
        for p in work.protected
    ]
    return (*notes, *work.notes)


async def _changed(desk: AttemptServices, work: Deliverable, tree: str) -> tuple[ChangedFile, ...]:
    out: list[ChangedFile] = []
    for change in (await desk.history.diff_trees(work.base_tree, tree))[:MOST_FILES]:
        if change.path not in work.changed:
            continue
        text = None if change.status == "deleted" else await _text(desk, tree, change.path)
        diff = await desk.history.diff(work.base_tree, tree, paths=[change.path])
        out.append(
            ChangedFile(path=change.path, status=change.status, text=text, diff=desk.redact(diff))
        )
    return tuple(out)


async def _text(desk: AttemptServices, tree: str, path: str) -> str | None:
    content = await desk.history.file(tree, path)
    if content is None or len(content) > FILE_BYTES:
        return None
    try:
        return desk.redact(content.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _values(judgement: Verdict) -> dict[str, str | int | float | bool | list[str]]:
    return {
        "qcScore": float(judgement.score),
        "qcPassed": judgement.passed,
        "qcFeedback": judgement.verdict.feedback,
        "qcIssues": list(judgement.issues),
        "qcRequiredFixes": list(judgement.required_fixes),
        "requiredFixes": list(judgement.required_fixes),
        **evidence.properties((c.state, c.basis) for c in judgement.criteria),
    }
