"""Provenance of a plan: its planning run, and the context of its PM."""

from collections.abc import Mapping

from mimir.agents.context.receipt import ContextReceipt, GivenPiece, fingerprint
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.json_value import as_objects
from mimir.domain.task_states import RunStatus
from mimir.domain.usage import estimate
from mimir.store.operations.record_loading import (
    find_json,
    find_latest_run,
    load_calls,
    save_change,
    save_run_text,
)
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.run_changes import RunPinnedChange
from mimir.store.schema import EdgeType, pack
from mimir.store.transcripts import shared_texts

_PIECES: Mapping[str, str] = {"system": "instructions", "user": "brief", "tool": "research"}
"""Role of a message to the PM → piece of its context; its own messages are the plan."""


def save_provenance(ops: WriteOps, run: str, project: str, plan_path: str) -> None:
    """Record the planning run of a plan and its PM's context; a user's plan has none."""
    planning = find_latest_run(ops, project_id=project, kinds=["plan"], plan_path=plan_path)
    # Only a completed planning run is the source: a failed one left a file that the user edited.
    if planning is None or not plan_path or planning.status is not RunStatus.COMPLETED:
        return
    receipt = _receipt_of_pm(ops, lane_id(planning.id, PLAN_TASK, 1, "pm"))
    save_change(ops, run, RunPinnedChange(plan_run=planning.id))
    ops.link(EdgeType.FOLLOWS, [(run, planning.id)])
    save_run_text(ops, run, "background", pack(receipt.as_json()))


def load_provenance(reads: ReadOps, run: str) -> ContextReceipt | None:
    """Return the context of the PM of a run's plan; None: the user wrote the plan."""
    record = find_json(reads, run, "background")
    return None if record is None else ContextReceipt.from_json(record.value.mapping())


def _receipt_of_pm(reads: ReadOps, lane: str) -> ContextReceipt:
    """Add up the messages to the PM: each call stores only the new part of its request."""
    texts: dict[str, list[str]] = {}
    for call in load_calls(reads, lane, kind="model"):
        for message in as_objects(shared_texts.delta_of(reads, call).get("messages")):
            piece = _PIECES.get(str(message.get("role")))
            if piece:
                texts.setdefault(piece, []).append(str(message.get("text")))
    given = tuple(
        GivenPiece(
            name=piece,
            importance="important",
            tokens=sum(map(estimate, parts)),
            hash=fingerprint("\n".join(parts)),
        )
        for piece, parts in sorted(texts.items())
    )
    return ContextReceipt(role="pm", lane=lane, given=given)
