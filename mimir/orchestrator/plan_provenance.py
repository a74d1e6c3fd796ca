"""Where a plan came from, and what its PM had read by then: pinned with a run, for the receipts of its agents and for its report."""

from collections.abc import Mapping, Sequence
from typing import cast

from mimir.agents.context.receipt import ContextReceipt, GivenPiece, fingerprint
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.task_states import RunStatus
from mimir.domain.usage import estimate
from mimir.store import row_fields
from mimir.store.operations import runs
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.schema import EdgeType, NodeLabel, pack, unpack
from mimir.store.transcripts import call_rows, shared_texts

_PARTS: Mapping[str, str] = {"system": "instructions", "user": "brief", "tool": "research"}
"""Who speaks in the PM's lane → what it is to the PM. What the PM said itself is the plan, and counted there."""


def save_provenance(ops: WriteOps, run: str, project: str, plan_path: str) -> None:
    """Note from which planning run a run's plan came, and what its PM was given; a plan that a person wrote has none."""
    made = runs.latest(ops, project_id=project, kinds=["plan"], plan_path=plan_path)
    if made is None or not plan_path or made.get("status") != RunStatus.COMPLETED.value:
        return
    planning = str(made["id"])
    receipt = _given_to_pm(ops, lane_id(planning, PLAN_TASK, 1, "pm"))
    ops.patch(NodeLabel.RUN, run, {"planRun": planning})
    ops.link(EdgeType.FOLLOWS, [(run, planning)])
    text = pack(receipt.as_json())
    row = {
        "id": f"{run}#background", "name": "background", "runId": run, "kind": "background", "text": text,
    }  # fmt: skip
    ops.upsert(NodeLabel.ARTIFACT, [row])


def load_provenance(reads: ReadOps, run: str) -> ContextReceipt | None:
    """Return what the PM of a run's plan was given; None: a person wrote the plan."""
    row = reads.get(NodeLabel.ARTIFACT, f"{run}#background")
    if row is None:
        return None
    return ContextReceipt.from_json(
        cast("Mapping[str, object]", unpack(row_fields.text_field(row, "text")))
    )


def _given_to_pm(reads: ReadOps, lane: str) -> ContextReceipt:
    """Add up what was said to the PM, from what its lane keeps of each question: what is new in it."""
    said: dict[str, list[str]] = {}
    for row in call_rows.rows(reads, lane):
        if row.get("kind") != "model":
            continue
        new = cast(
            "Sequence[Mapping[str, object]]", shared_texts.delta_of(reads, row).get("messages", ())
        )
        for message in new:
            part = _PARTS.get(str(message.get("role")))
            if part:
                said.setdefault(part, []).append(str(message.get("text")))
    given = tuple(
        GivenPiece(
            name=part,
            importance="important",
            tokens=sum(map(estimate, parts)),
            hash=fingerprint("\n".join(parts)),
        )
        for part, parts in sorted(said.items())
    )
    return ContextReceipt(role="pm", lane=lane, given=given)
