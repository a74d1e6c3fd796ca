"""Stored nodes of a run as JSON values of a recording, and back.

A recording holds nodes under their stored names, so these names stay inside the store. Recordings of earlier versions must stay
readable: no name here changes.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.json_value import as_texts, as_whole_number
from mimir.domain.plan import Plan
from mimir.store import run_reading
from mimir.store.operations import record_loading, runs, worker_processes
from mimir.store.operations.runs import NewRun, RunKind
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.row_fields import text_field
from mimir.store.schema import NodeLabel, pack, unpack, value
from mimir.store.transcripts import call_rows

JsonObject = dict[str, object]

# Properties that a run pins when it is created.
_PINNED = (
    "kind", "name", "projectId", "request", "title", "goal", "planPath", "settingsJson", "engineVersion", "baseCommit",
    "baseTree", "createdAt", "sandbox", "userHead", "userBranch", "fromRun", "only", "parentRun", "sessionId",
    "learnedJson", "planRun", "pricesJson", "sealForm",
)  # fmt: skip
# Pinned properties that `NewRun` does not set.
_PINNED_LATER = ("sandbox", "userHead", "userBranch", "title", "goal", "learnedJson", "planRun", "pricesJson", "depth")  # fmt: skip
# Ends of the names of properties that a clock or the number of processes decides.
_MEASURED = ("At", "Time", "Seconds", "Duration", "claimsEmpty", "planRun")
# Properties of a process that must not leave its machine.
_PRIVATE = ("lockFile", "host", "process")


def export_pinned_run(reads: ReadOps, run: str) -> tuple[JsonObject, object]:
    """Return the pinned values of a run, and its plan as JSON (None: it has none).

    Raises:
        UsageError: There is no such run.
    """
    row = run_reading.load_run_row(reads, run)
    pinned: JsonObject = {name: row[name] for name in _PINNED if row.get(name) is not None}
    pinned["settingsJson"] = unpack(text_field(row, "settingsJson") or "{}")
    # Runs without a parent have none, as in earlier recordings.
    if depth := row.get("depth"):
        pinned["depth"] = depth
    plan = record_loading.find_plan_text(reads, run)
    return pinned, unpack(plan) if plan else None


def export_evidence(reads: ReadOps, run: str) -> list[JsonObject]:
    """Return the evidence nodes of a run by chain and place, without its record."""
    # The record covers times, which a replay does not repeat.
    found = reads.find(NodeLabel.EVIDENCE, {"runId": run}, order=("chain", "seq"))
    return [dict(row) for row in found if row.get("kind") not in ("run", "later")]


def export_verdicts(reads: ReadOps, run: str) -> list[JsonObject]:
    """Return the verdict nodes of a run by id."""
    return [dict(row) for row in reads.find(NodeLabel.VERDICT, {"runId": run}, order=("id",))]


def export_measurements(reads: ReadOps, run: str) -> list[object]:
    """Return the decisions of clocks and processes in a run, as pairs of label and properties.

    The PM's calls and the questions of planning are part of it: a report shows them.
    """
    row, where = run_reading.load_run_row(reads, run), {"runId": run}
    planned = text_field(row, "planRun")
    nodes: list[tuple[NodeLabel, Row]] = [(NodeLabel.RUN, row)]
    for label, order in ((NodeLabel.TASK, "seq"), (NodeLabel.ATTEMPT, "id")):
        nodes += [(label, each) for each in reads.find(label, where, order=(order,))]
    of_kind = {**where, "kind": worker_processes.KIND}
    processes = reads.find(NodeLabel.ARTIFACT, of_kind, order=("since",))
    calls = call_rows.rows(reads, lane_id(planned, PLAN_TASK, 1, "pm")) if planned else []
    asked = reads.find(NodeLabel.QUESTION, {"runId": planned}, order=("id",)) if planned else []
    return [
        *([label.value, {"id": each["id"], **_measured_properties(each)}] for label, each in nodes),
        *([NodeLabel.ARTIFACT.value, _drop_names(each, *_PRIVATE)] for each in processes),
        *([NodeLabel.CALL.value, _drop_names(each, "deltaJson")] for each in calls),
        *([NodeLabel.QUESTION.value, dict(each)] for each in asked),
    ]


def import_measurements(
    ops: WriteOps, measured: Iterable[tuple[str, Mapping[str, object]]]
) -> None:
    """Write the measurements of a recording to existing nodes, and its calls."""
    for label, row in measured:
        is_made_here = label in (NodeLabel.CALL, NodeLabel.ARTIFACT, NodeLabel.QUESTION)
        if is_made_here or ops.get(label, str(row["id"])) is not None:
            ops.upsert(label, [{name: value(given) for name, given in row.items()}])


def create_recorded_run(
    ops: WriteOps,
    run: str,
    *,
    pinned: Mapping[str, object],
    plan: Plan | None,
    settings: Mapping[str, object],
    texts: Mapping[str, object],
) -> None:
    """Create a run as it was recorded; `pinned` comes from `export_pinned_run`."""

    # A recording names no project, so its id is used as the name too.
    def text(name: str) -> str:
        return str(pinned.get(name) or "")

    new = NewRun(
        id=run,
        kind=cast("RunKind", text("kind")),
        project_id=text("projectId"),
        project_name=text("projectId"),
        name=text("name"),
        request=text("request"),
        plan=plan,
        plan_path=text("planPath"),
        settings=settings,
        engine_version=text("engineVersion"),
        base_commit=text("baseCommit"),
        base_tree=text("baseTree"),
        only=tuple(as_texts(pinned.get("only"))),
        session_id=text("sessionId"),
        seal_form=as_whole_number(pinned.get("sealForm")),
    )
    runs.create(ops, new)
    later = {name: value(pinned[name]) for name in _PINNED_LATER if name in pinned}
    ops.patch(NodeLabel.RUN, run, later)
    for name, content in texts.items():
        record_loading.save_run_text(ops, run, name, pack(content))


def _drop_names(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def _measured_properties(row: Row) -> Row:
    return {name: value for name, value in row.items() if name.endswith(_MEASURED)}
