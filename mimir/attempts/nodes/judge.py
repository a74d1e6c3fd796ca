"""Judge node: QC examines the deliverable, and the engine decides the verdict."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mimir.agents.agent_loop import LoopServices
from mimir.agents.circuit_breaker import CircuitBreaker
from mimir.agents.citations import count_citations, parse_citations
from mimir.agents.context.inputs import ChangedFile, ContextBudgets, QCInput
from mimir.agents.context.receipt import ContextReceipt, flatten_receipt
from mimir.agents.stopwatch import WorkTimer
from mimir.attempts.agent_answers.response_form import answer_schema, find_words
from mimir.attempts.journal import Changes
from mimir.attempts.results import Judged, Judging, NotJudged
from mimir.attempts.services import AttemptServices, seal_records
from mimir.domain.clock import stamp
from mimir.domain.criteria_counts import count_criteria
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun
from mimir.domain.ids import lane_id
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.usage import estimate
from mimir.domain.verdict import Verdict
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.evidence.payloads import control_body, verdict_body
from mimir.qc.judgement import judge as qc
from mimir.qc.judgement.control_rules import apply_controls, describe_checks
from mimir.qc.judgement.score import judge_by_checks, judge_without_criteria, reject_uncited
from mimir.qc.scope.test_owners import PendingTests, named_tests
from mimir.store.records.attempt_changes import (
    AttemptResultChange,
    QCContextChange,
)
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.task_changes import (
    CheckResultsChange,
    CriteriaCountsChange,
    QCFeedbackChange,
    VerdictChange,
)
from mimir.workspace.aio import await_all, to_thread_shielded

MOST_FILES = 60
"""Changed files whose contents QC is given; it can read the others."""
FILE_BYTES = 400_000


async def judge_attempt(services: AttemptServices, state: Judging) -> Judged | NotJudged:
    """Ask QC for its answer, record the verdict and change the status."""
    work = state.work
    if services.task.is_read_only:
        return await _answer(services, state)
    review, controls = await _review_and_control(services, state)
    if review.judgement is None:
        return await _fail_without_verdict(services, work, review)
    verdict = apply_controls(review.judgement, services.task, controls)
    verdict = reject_uncited(verdict, _find_uncited(services, work))
    # The next attempt replaces these values on the task, so the attempt keeps them too.
    shared = _verdict_changes(verdict, stamp(services.clock.now()))
    shown = describe_checks(state.outcomes, controls)
    await services.journal.transition(
        TaskStatus.QC_PASSED if verdict.passed else TaskStatus.QC_FAILED,
        EventKind.VERDICT_GIVEN,
        task=(*shared, CheckResultsChange(check_results=shown)),
        attempt=(
            *shared,
            AttemptResultChange(
                verdict=PackedJson.pack(verdict),
                qc_receipt=PackedJson.pack(review.receipt.as_json()),
                qc_tokens=review.usage.total,
            ),
            _context_change(review.receipt),
        ),
        data={
            "passed": verdict.passed,
            "score": float(verdict.score),
            "model_score": float(verdict.model_score),
            "verdict": verdict.verdict.verdict,
            "reasons": list(verdict.reasons)[:20],
            "checks": list(shown)[:20],
        },
        verdict=verdict,
        records=seal_records(
            services,
            [
                *(("control", control_body(run)) for run in controls),
                ("verdict", verdict_body(verdict, work.tree, work.answer)),
            ],
        ),
        # Without a merge the task is completed at once, in the same write.
        defer=verdict.passed and not work.commit,
    )
    return Judged(work=work, outcomes=state.outcomes, verdict=verdict)


async def _answer(services: AttemptServices, state: Judging) -> Judged:
    """Judge the answer of a task without criteria by the engine's own rules."""
    work = state.work
    verdict = reject_uncited(judge_without_criteria(), _find_uncited(services, work))
    shared = _verdict_changes(verdict, stamp(services.clock.now()))
    # A retry replaces these values on the task, so a rejected attempt keeps them too.
    kept = () if verdict.passed else shared
    await services.journal.transition(
        TaskStatus.QC_PASSED if verdict.passed else TaskStatus.QC_FAILED,
        EventKind.VERDICT_GIVEN,
        attempt=(*kept, AttemptResultChange(verdict=PackedJson.pack(verdict))),
        data={
            "passed": verdict.passed,
            "verdict": "PASS" if verdict.passed else "FAIL",
            "reasons": list(verdict.reasons)[:20] or ["no criteria"],
        },
        task=shared,
        records=seal_records(
            services, [("verdict", verdict_body(verdict, work.tree, work.answer))]
        ),
        # Nothing is merged, so the task is completed at once, in the same write.
        defer=verdict.passed,
    )
    return Judged(work=work, outcomes=state.outcomes, verdict=verdict)


def _find_uncited(services: AttemptServices, work: Deliverable) -> tuple[str, ...]:
    """Return the faults in the citations of an answer that must have some."""
    agent = services.agent
    if agent is None or agent.verify != "citations":
        return ()
    if not count_citations(find_words(work.answer, answer_schema(agent))):
        return ("The answer has no citation; its definition requires one (verify: citations).",)
    return tuple(f"The citation does not hold: {one}" for one in work.unsupported)


async def _review_and_control(
    services: AttemptServices, state: Judging
) -> tuple[qc.Review, Sequence[CheckRun]]:
    """Ask QC, and control the checks at the same time."""
    controls = asyncio.ensure_future(run_controls(services, state))
    try:
        review = await _review(services, state, state.work, state.work.tree, "qc")
        return review, await controls
    # A failed review must not leave a control in the sandbox.
    finally:
        controls.cancel()
        await asyncio.gather(controls, return_exceptions=True)


async def judge_merged(
    services: AttemptServices, state: Judged, tree: str, shared_files: Sequence[str]
) -> Verdict | Cause:
    """Ask QC about a merged tree in which both sides changed a file."""
    note = f"Others changed these files too: {', '.join(shared_files)}."
    merged = replace(state.work, notes=(*state.work.notes, note))
    # Each merged tree has its own transcript: a resumed merge may be of another tree.
    review = await _review(services, state, merged, tree, f"qc.merged-{tree[:12]}")
    return review.judgement or Cause.QC_UNAVAILABLE


async def _review(
    services: AttemptServices, state: Judging | Judged, work: Deliverable, tree: str, role: str
) -> qc.Review:
    if services.agent and services.agent.verify == "checks":
        own = judge_by_checks(
            services.task,
            state.outcomes,
            protected=work.protected,
            unsupported=work.unsupported,
        )
        return qc.Review(judgement=own, receipt=ContextReceipt(role="qc", lane="", given=()))
    given = await _qc_input(services, state, work, tree)
    return await qc.review_attempt(
        given, _review_services(services, tree, role, work.base_commit), protected=work.protected
    )


async def _fail_without_verdict(
    services: AttemptServices, work: Deliverable, review: qc.Review
) -> NotJudged:
    cause = Cause.QC_UNAVAILABLE
    task, attempt = await services.journal.failure_values(work, cause, review.why)
    await services.journal.transition(
        TaskStatus.FAILED,
        EventKind.TASK_FAILED,
        task=(*task, QCFeedbackChange(qc_feedback=review.why)),
        attempt=(
            *attempt,
            AttemptResultChange(qc_receipt=PackedJson.pack(review.receipt.as_json())),
            _context_change(review.receipt),
        ),
        data={"cause": cause.value, "issues": [review.why]},
    )
    return NotJudged()


def _review_services(
    services: AttemptServices, tree: str, role: str, base_commit: str
) -> qc.ReviewServices:
    async def open_session(number: int) -> qc.ReviewSession:
        name = role if number == 1 else f"{role}.{number}"
        return await _open_session(services, tree, name, base_commit)

    async def read_file(path: str) -> str | None:
        return await _read_text(services, tree, path)

    name = lane_id(services.facts.id, services.task.id, services.number, role)
    budgets = ContextBudgets.within(services.qc_choice.context_tokens)
    return qc.ReviewServices(sittings=open_session, read_file=read_file, lane=name, budgets=budgets)


async def _open_session(
    services: AttemptServices, tree: str, role: str, base_commit: str
) -> qc.ReviewSession:
    """Prepare one conversation: its transcript, its checkout, and tools over it."""
    transcript = await services.journal.open_transcript(role)
    # A separate directory: the worker's may contain files outside the deliverable.
    directory = services.directory.with_name(f"{services.directory.name}.{role}")
    timer = WorkTimer(services.clock)

    async def on_live(_tree: str) -> None:
        timer.start()

    is_checked_out = False

    async def stand(_effectful: bool) -> Path:
        nonlocal is_checked_out
        if not is_checked_out:
            await services.history.checkout(tree, directory)
            is_checked_out = True
        return directory

    async def close() -> None:
        await transcript.flush()
        if directory.exists():
            await to_thread_shielded(shutil.rmtree, directory, ignore_errors=True)

    transcript.on_live = on_live
    run, choice = services.facts.id, services.qc_choice
    name = lane_id(run, services.task.id, services.number, role)
    return qc.ReviewSession(
        services=LoopServices(
            model=JournaledModel(services.models.for_lane("qc", name, choice.model), transcript),
            tools=services.tools.judge(
                run, directory, transcript, services.artifacts, stand, base_commit
            ),
            context=replace(services.context, role="qc"),
            breaker=CircuitBreaker.for_estimate(
                # QC has no estimate: time and tokens limit it.
                None,
                seconds=services.task.time_limit_minutes * 60,
                max_tokens=services.facts.attempt_tokens,
            ),
            settings=qc.qc_model_settings(
                services.task,
                model=choice.model,
                temperature=choice.temperature,
                max_tokens=choice.max_tokens,
            ),
            elapsed=timer,
        ),
        close=close,
    )


async def _qc_input(
    services: AttemptServices, state: Judging | Judged, work: Deliverable, tree: str
) -> QCInput:
    task, number = services.task, services.number
    cited = {citation.number for citation in parse_citations(work.answer)}
    return QCInput(
        preamble=services.facts.preambles["qc", task.reviewer].text,
        task=task,
        attempt=number,
        attempts=services.total + services.start.integration_retries,
        answer=work.answer,
        artifact=f"{task.id}/{number}/answer",
        outcomes=state.outcomes,
        changed=await _load_changed_files(services, work, tree),
        # Only the result of a call on the delivered tree is proof of the deliverable.
        cited={n: text for n, at, text in work.ledger if n in cited and at == work.tree},
        cited_arguments=dict(work.cited_arguments),
        unsupported=work.unsupported,
        required_fixes=services.start.required_fixes,
        related=services.related,
        notes=_notes(work),
        worker_tokens=sum(estimate(message.text) for message in services.start.brief),
        hidden=services.facts.background.hidden_from(task),
    )


def _notes(work: Deliverable) -> tuple[str, ...]:
    notes = [
        f"{p!r} was changed outside the task's files; it is not in the deliverable."
        for p in work.left_out
        if not any(note.startswith(repr(p)) for note in work.notes)
    ]
    notes += [
        f"The protected file {p!r} was changed; checks ran with it restored."
        for p in work.protected
    ]
    return (*notes, *work.notes)


async def _load_changed_files(
    services: AttemptServices, work: Deliverable, tree: str
) -> tuple[ChangedFile, ...]:
    history, files = services.history, list[ChangedFile]()
    # A change of another task may be in the merged tree; only the attempt's own is judged.
    for change in (await history.diff_trees(work.base_tree, tree))[:MOST_FILES]:
        if change.path not in work.changed:
            continue
        is_deleted = change.status == "deleted"
        text = None if is_deleted else await _read_text(services, tree, change.path)
        diff = services.redact(await history.diff(work.base_tree, tree, paths=[change.path]))
        files.append(ChangedFile(path=change.path, status=change.status, text=text, diff=diff))
    return tuple(files)


async def _read_text(services: AttemptServices, tree: str, path: str) -> str | None:
    content = await services.history.file(tree, path)
    if content is None or len(content) > FILE_BYTES:
        return None
    try:
        return services.redact(content.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _context_change(receipt: ContextReceipt) -> QCContextChange:
    return QCContextChange.from_row(flatten_receipt(receipt, "qc"))


def _verdict_changes(verdict: Verdict, now: str) -> Changes:
    """Return the changes that the task and the attempt share."""
    return (
        VerdictChange(
            qc_score=float(verdict.score),
            qc_passed=verdict.passed,
            qc_feedback=verdict.verdict.feedback,
            qc_issues=verdict.issues,
            qc_required_fixes=verdict.required_fixes,
            required_fixes=verdict.required_fixes,
            qc_completed_at=now,
        ),
        CriteriaCountsChange.of_counts(
            count_criteria((c.state, c.basis) for c in verdict.criteria)
        ),
    )


async def run_controls(services: AttemptServices, state: Judging) -> Sequence[CheckRun]:
    """Run the controls that the settings of the run ask for, in the plan's order."""
    if services.facts.controls == "never":
        return ()
    required = [one for one in state.outcomes if one.required]
    is_rejected = any(one.state == "failed" for one in required)
    if is_rejected and services.facts.controls != "always":
        return ()
    checks = {check.id: check for check in services.task.checks}
    named = tuple(sorted(set(named_tests(services.task))))
    new_tests = PendingTests(paths=named, base=services.facts.base_tree)
    cases = [
        ControlCase(
            check=checks[one.check],
            kind=one.kind,
            before=one.before,
            after=one.after,
            base_tree=services.start.base_tree,
            changed=state.work.changed,
            answer=state.work.answer,
            new_tests=new_tests,
        )
        for one in required
        if one.state == "passed"
    ]
    return await await_all(services.checks.control(case) for case in cases)
