"""Stored response of an invocation: written once, in the transaction that ends its run."""

from collections.abc import Sequence
from datetime import datetime

from mimir.agents.context.receipt import ContextReceipt
from mimir.attempts.agent_answers.response_form import answer_schema
from mimir.domain import ids
from mimir.domain.clock import stamp
from mimir.domain.invocation import AGENT_TEXT, PinnedDefinition
from mimir.domain.json_value import JsonObject, as_object, as_text
from mimir.domain.program import PROGRAM_TOOL
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.orchestrator.delegation.response import build_response
from mimir.orchestrator.proposals.checking import NO_PROPOSALS, CheckedProposals
from mimir.orchestrator.proposals.decisions import add_decisions, save_proposals
from mimir.reporting import details
from mimir.reporting import status as status_shape
from mimir.store.operations.evidence import artifact
from mimir.store.operations.record_loading import (
    find_json,
    load_calls,
    load_run,
    load_task_attempts,
    load_tasks,
    save_change,
    save_run_text,
)
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.run_changes import RunAssuranceChange
from mimir.store.records.task_records import TaskRecord
from mimir.store.schema import pack

RESPONSE_TEXT = "response"
"""Name of the stored response of a run that has ended."""


def save_response(
    ops: WriteOps,
    run: str,
    outcome: RunStatus,
    now: datetime,
    documents: Sequence[JsonObject] = (),
    proposals: CheckedProposals = NO_PROPOSALS,
) -> None:
    """Store response and proposals of an invocation in the transaction that ends its run."""
    if load_run(ops, run).kind != "agent":
        return
    response = compute_response(ops, run, outcome, now, documents)
    if proposals.operations:
        save_proposals(ops, proposals)
        response = {**response, "memory_operations": list(proposals.operations)}
    level = as_text(as_object(response.get("assurance")).get("level"))
    save_run_text(ops, run, RESPONSE_TEXT, pack(response))
    save_change(ops, run, RunAssuranceChange(assurance=level))


def load_response(
    reads: ReadOps, run: str, shown: RunStatus, now: datetime, documents: Sequence[JsonObject]
) -> JsonObject:
    """Return the response of an invocation: the stored one, or as it is now."""
    stored = find_json(reads, run, RESPONSE_TEXT) if shown in RUN_ENDED else None
    if stored:
        return add_decisions(reads, stored.value.mapping())
    return compute_response(reads, run, shown, now, documents)


def compute_response(
    reads: ReadOps, run: str, shown: RunStatus, now: datetime, documents: Sequence[JsonObject] = ()
) -> JsonObject:
    """Return the `AgentResponse` of an invocation.

    Args:
        reads: One view of the store.
        run: Its id.
        shown: Its status, or the outcome that the same transaction will write.
        now: For the times of a run that has not ended.
        documents: Changed files of its last attempt.
    """
    task = load_tasks(reads, run, TaskRecord)[0]
    attempts = load_task_attempts(reads, run, task.task_id)
    # Without an accepted attempt, the last attempt is shown.
    number = task.accepted_attempt or len(attempts)
    last = next((one for one in attempts if one.number == number), None)
    pinned = find_json(reads, run, AGENT_TEXT)
    agent = pinned.value.decode(tuple[PinnedDefinition, ...])[0] if pinned else None
    attempt = details.describe_attempt(task, last) if last else {}
    whole = artifact(reads, f"{last.id}/answer") if last else ""
    return build_response(
        agent.address if agent else "",
        {
            **status_shape.shape(reads, run, shown, now),
            "branch": _branch(reads, run),
            "depth": load_run(reads, run).depth + 1,
        },
        details.describe_task(task, attempts),
        {**attempt, "answer": whole or attempt.get("answer"), "context": _context(last)},
        documents=documents,
        model=_model(reads, last),
        schema=answer_schema(agent) if agent else None,
        is_program=agent is not None and agent.program is not None,
        ended=stamp(now) if shown in RUN_ENDED else None,
    )


def _branch(reads: ReadOps, run: str) -> str | None:
    record = load_run(reads, run)
    return (record.result_branch or ids.branch(run)) if record.final_commit else None


def _model(reads: ReadOps, attempt: AttemptRecord | None) -> str:
    """Return the name of the model, or of the program, of the last call."""
    if attempt is None:
        return ""
    lane = ids.lane_id(attempt.run_id, attempt.task_id, attempt.number, "worker")
    asked = [
        call
        for call in load_calls(reads, lane)
        if call.kind == "model" or call.tool == PROGRAM_TOOL
    ]
    return asked[-1].title if asked else ""


def _context(attempt: AttemptRecord | None) -> JsonObject | None:
    """Return the size of the context that the agent was given; None: there is no receipt."""
    if attempt is None or not attempt.receipt:
        return None
    receipt = ContextReceipt.from_json(attempt.receipt.mapping())
    return {
        "included_tokens": receipt.given_tokens,
        "omitted_tokens": receipt.available_tokens - receipt.given_tokens,
        "checksum": receipt.checksum,
    }
