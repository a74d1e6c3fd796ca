"""Memory of a project: notes, lessons and past runs, searched within one project."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar

from mimir.domain.json_value import as_array
from mimir.domain.plan import Check
from mimir.domain.run import is_todo_list
from mimir.domain.text_hash import hash_text
from mimir.domain.value_class import value_class
from mimir.errors import StoreError, ToolError
from mimir.store.operations.record_loading import decode_plan, load_run_with_plan
from mimir.store.protocol import Compare, Direction, GraphStore, ReadOps, Row, Value, WriteOps
from mimir.store.row_fields import int_field, json_field, text_field
from mimir.store.schema import SEARCHED, EdgeType, NodeLabel, is_id, value

T = TypeVar("T")
_OF_ATTEMPTS = re.compile(r"\(attempts? (\d+(?:, \d+)*)\)")
"""Attempts of a root cause, as the failure report names them."""
# Visible properties of a node, with `id` and `label`.
Node = Mapping[str, object]
State = Literal["proposed", "accepted", "rejected"]

# Visible properties by label. A worker may ask here: no prompts, plans, settings, answers or transcripts.
SHOWN: Mapping[str, tuple[str, ...]] = {
    NodeLabel.PROJECT: ("name",),
    NodeLabel.RUN: ("name", "kind", "status", "title", "goal", "request", "createdAt", "finishedAt", "taskCount"),
    NodeLabel.TASK: (
        "name", "taskId", "runId", "title", "status", "cause", "workerRole", "dependencies", "attemptNumber",
        "maxRetries", "verificationCriteria",
    ),
    NodeLabel.ATTEMPT: ("name", "runId", "taskId", "attemptNumber", "status", "isRetry", "retryReason"),
    NodeLabel.VERDICT: (
        "name", "runId", "taskId", "attemptNumber", "passed", "score", "feedback", "issues", "requiredFixes", "reasons",
    ),
    NodeLabel.MEMORY: ("name", "kind", "text", "state", "createdAt", "runId", "sourceAttempt"),
}  # fmt: skip

FAILED = "Failed: "
"""Beginning of the name of a lesson; the title of its task follows."""
MAX_DEPTH = 3
# Nodes of one subgraph; a run may have ten thousand tasks around it.
MAX_NODES = 200
# Runs that one query reads, newest first.
_MOST_RUNS = 200
# Characters of a note.
MAX_TEXT = 20_000


@value_class
class MemoryScope:
    """Visible part of the memory."""

    project: str
    hidden_run: str = ""
    """Run whose tasks are hidden: a worker sees no task of its own run. Empty: none."""
    expired: frozenset[str] = frozenset()
    """Memories that have expired since the project was opened last."""


def search_nodes(
    reads: ReadOps, view: MemoryScope, text: str, labels: Collection[str] = (), limit: int = 10
) -> list[Node]:
    """Return nodes whose text matches, best first; empty `labels`: any.

    Raises:
        ToolError: There is no such label.
    """
    wanted = [_label(label) for label in labels] or list(SHOWN)
    found: list[Node] = []
    for label in wanted:
        if label not in SEARCHED:
            continue
        found += _hits(reads, view, label, text, max(0, limit))
    return found[: max(0, limit)]


def search_notes(reads: ReadOps, view: MemoryScope, text: str, limit: int) -> list[Node]:
    """Return notes whose text matches, without lessons that a later run overcame."""
    found = search_nodes(reads, view, text, (NodeLabel.MEMORY,), limit)
    return [node for node in found if not _is_overcome(reads, view, node)]


def query_nodes(
    reads: ReadOps, view: MemoryScope, label: str, filters: Mapping[str, object], limit: int = 10
) -> list[Node]:
    """Return nodes of a label whose properties equal all of `filters`, newest runs first.

    Raises:
        ToolError: There is no such label or property, or a filter has an impossible value.
    """
    name = _label(label)
    where: dict[str, Value | Compare] = {}
    for key, wanted in filters.items():
        _property(name, key)
        try:
            where[key] = value(wanted)
        except StoreError as error:
            raise ToolError(f"The filter {key!r} cannot be compared: {error}") from error
    nodes: list[Node] = []
    for scope in _scopes(reads, view, name):
        if any(key in where and where[key] != kept for key, kept in scope.items()):
            continue
        rows = reads.find(name, {**where, **scope}, limit=limit - len(nodes))
        nodes += [_node(name, row) for row in rows]
        if len(nodes) >= limit:
            break
    return nodes


def get_node(reads: ReadOps, view: MemoryScope, id: str) -> Node | None:
    """Return one node; None if it is absent or hidden."""
    return next(iter(_shown_nodes(reads, view, [id])), None)


def get_neighbors(
    reads: ReadOps,
    view: MemoryScope,
    id: str,
    types: Sequence[str] = (),
    direction: Direction = "both",
) -> list[Node]:
    """Return nodes one edge away; empty `types`: any.

    Raises:
        ToolError: There is no such edge type.
    """
    if get_node(reads, view, id) is None:
        return []
    near = reads.neighbours(id, [_edge(t) for t in types], direction)
    return _shown_nodes(reads, view, near[: MAX_NODES * 5])[:MAX_NODES]


def get_subgraph(
    reads: ReadOps, view: MemoryScope, id: str, depth: int = 1
) -> dict[str, list[object]]:
    """Return {"nodes", "edges"} within `depth` (at most 3) edges of a node, nearest first."""
    # One level at a time, so that the nearest nodes come first.
    start = get_node(reads, view, id)
    nodes: dict[str, Node] = {} if start is None else {id: start}
    frontier = list(nodes)
    for _ in range(min(depth, MAX_DEPTH)):
        near = sorted({n for f in frontier for n in reads.neighbours(f, [], "both")} - nodes.keys())
        room = MAX_NODES - len(nodes)
        fresh = _shown_nodes(reads, view, near[: room * 5])[:room]
        frontier = [str(node["id"]) for node in fresh]
        nodes |= {str(node["id"]): node for node in fresh}
    edges = [{"source": s, "type": t, "target": d} for s, t, d in reads.edges_among(list(nodes))]
    return {"nodes": list(nodes.values()), "edges": list(edges)}


def add(
    ops: WriteOps,
    project: str,
    name: str,
    text: str,
    *,
    kind: str = "note",
    about: Sequence[str] = (),
) -> str:
    """Store a user's note as accepted; return its id. The same text is the same note."""
    # A note that has ended is accepted again, from now on.
    props: Row = {"proposedBy": "person", "decidedAt": ops.now(), "supersededBy": None}
    return _save_note(ops, project, name, text, kind, "accepted", about, props)


def propose(
    ops: WriteOps, project: str, name: str, text: str, *, proposed_by: str, source_attempt: str = ""
) -> str:
    """Store a model's learning for the user to accept; return its id."""
    # A note that the user has accepted or rejected stays as it is.
    id = _memory_id(project, text)
    if ops.get(NodeLabel.MEMORY, id) is None:
        props = {"proposedBy": proposed_by, "sourceAttempt": source_attempt}
        _save_note(ops, project, name, text, "learning", "proposed", (), props)
    return id


def find_state(reads: ReadOps, id: str) -> str:
    """Return the state of a note; empty: there is none."""
    return text_field(reads.get(NodeLabel.MEMORY, id) or {}, "state")


def rule(ops: WriteOps, project: str, id: str, state: State) -> bool:
    """Accept or reject a note; False if the project has no such note."""
    # The project is compared, so a user cannot change notes of another project.
    return ops.patch_if(NodeLabel.MEMORY, id, {"projectId": project}, {"state": state}) is not None


def link(ops: WriteOps, project: str, note: str, about: str) -> None:
    """Link a note to its subject.

    Raises:
        ToolError: There is no such note or node.
    """
    row = ops.get(NodeLabel.MEMORY, note) if is_id(note) else None
    if row is None or row.get("projectId") != project or about not in ops.labels_of([about]):
        raise ToolError(
            f"{note!r} and {about!r} cannot be linked: one of them is not in the memory."
        )
    ops.link(EdgeType.ABOUT, [(note, about)])


def learn_from_run(ops: WriteOps, run: str) -> list[str]:
    """Store lessons of a run: one note per run and per failed task; return their ids."""
    # The engine computes them, so they are accepted. A second call changes nothing.
    row = ops.get(NodeLabel.RUN, run)
    if row is None:
        raise StoreError(f"There is no run {run!r}.")
    failed = ops.find(NodeLabel.TASK, {"runId": run, "status": "failed"}, order=("seq",))
    plan = decode_plan(load_run_with_plan(ops, run)) if failed else None
    commands = {task.id: task.checks for task in plan.tasks} if plan else {}
    notes = [
        (f"{run}#lesson", f"Run {text_field(row, 'name')}", _run_text(ops, row, failed), "run", run)
    ]
    for task in failed:
        id = str(task["id"])
        name = f"{FAILED}{text_field(task, 'title') or text_field(task, 'taskId')}"
        text = _lesson(row, task, commands.get(text_field(task, "taskId"), ()))
        notes.append((f"{id}#lesson", name, text, "lesson", id))
    for id, name, text, kind, about in notes:
        note = _memory(ops, id, text_field(row, "projectId"), name, text, kind, "accepted")
        ops.upsert(NodeLabel.MEMORY, [{**note, "runId": run, "proposedBy": "engine"}])
        ops.link(EdgeType.ABOUT, [(id, about)])
    return [id for id, *_ in notes]


class ProjectMemory:
    """The five memory searches over a store, for the tools of agents."""

    def __init__(self, store: GraphStore, view: MemoryScope) -> None:
        self._store = store
        self._view = view

    async def search_nodes(self, text: str, *, labels: Sequence[str], limit: int) -> Sequence[Node]:
        """Return nodes whose text matches, best first."""
        return await self._read(partial(search_nodes, text=text, labels=labels, limit=limit))

    async def search_notes(self, text: str, *, limit: int) -> Sequence[Node]:
        """Return notes whose text matches, without lessons that a later run overcame."""
        return await self._read(partial(search_notes, text=text, limit=limit))

    async def query_nodes(
        self, label: str, *, filters: Mapping[str, str | int | float | bool], limit: int
    ) -> Sequence[Node]:
        """Return nodes of a label whose properties equal all of `filters`."""
        return await self._read(partial(query_nodes, label=label, filters=filters, limit=limit))

    async def get_node(self, id: str) -> Node | None:
        """Return one node."""
        return await self._read(partial(get_node, id=id))

    async def get_neighbors(
        self, id: str, *, types: Sequence[str], direction: Direction
    ) -> Sequence[Node]:
        """Return nodes one edge away."""
        return await self._read(partial(get_neighbors, id=id, types=types, direction=direction))

    async def get_subgraph(self, id: str, *, depth: int) -> Mapping[str, Sequence[object]]:
        """Return nodes and edges around a node."""
        return await self._read(partial(get_subgraph, id=id, depth=depth))

    async def _read(self, verb: Callable[..., T]) -> T:
        return await self._store.read(lambda reads: verb(reads, self._view))


def _label(label: str) -> str:
    if label not in SHOWN:
        raise _unknown("label", label, SHOWN)
    return label


def _edge(type: str) -> str:
    kinds = [edge.value for edge in EdgeType]
    if type not in kinds:
        raise _unknown("type of edge", type, kinds)
    return type


def _property(label: str, name: str) -> None:
    if name != "id" and name not in SHOWN[label]:
        raise _unknown(f"property of {label}", name, ("id", *SHOWN[label]))


def _unknown(noun: str, given: str, known: Iterable[str]) -> ToolError:
    options = [str(k) for k in known]
    near = difflib.get_close_matches(given, options, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(options)}."
    return ToolError(f"There is no {noun} {given[:80]!r}.", next_step=hint)


def _scopes(reads: ReadOps, view: MemoryScope, label: str) -> list[dict[str, Value]]:
    """Return the conditions of visible nodes of a label; each is one query."""
    mine: dict[str, Value] = {"projectId": view.project}
    match label:
        case NodeLabel.PROJECT:
            return [{"id": view.project}]
        case NodeLabel.MEMORY:
            return [{**mine, "state": "accepted"}]
        case _:
            runs = reads.find(NodeLabel.RUN, mine, order=("-createdAt", "-seq"), limit=_MOST_RUNS)
            seen = [
                str(r["id"]) for r in runs if r["id"] != view.hidden_run and not _is_todo_list(r)
            ]
            own = "id" if label == NodeLabel.RUN else "runId"
            return [{own: run} for run in seen]


def _may_be_seen(reads: ReadOps, view: MemoryScope, label: str, row: Row) -> bool:
    # Ids come from a model: each node is checked against the project.
    match label:
        case NodeLabel.PROJECT:
            return row["id"] == view.project
        case NodeLabel.MEMORY:
            is_valid = row.get("state") == "accepted" and row["id"] not in view.expired
            return is_valid and row.get("projectId") == view.project
        case _:
            run = text_field(row, "runId")
            owner = row if label == NodeLabel.RUN else reads.get(NodeLabel.RUN, run)
            mine = owner is not None and owner.get("projectId") == view.project
            return mine and not _is_todo_list(owner or {}) and run != view.hidden_run


def _is_todo_list(run: Row) -> bool:
    # An item that a client marks as done is no completed task.
    read_only = run.get("isReadOnly") is True
    return is_todo_list(
        text_field(run, "kind"), text_field(run, "planPath"), is_read_only=read_only
    )


def _shown_nodes(reads: ReadOps, view: MemoryScope, ids: Sequence[str]) -> list[Node]:
    """Return the visible ones of these nodes, in this order."""
    labels = reads.labels_of(ids)
    nodes: list[Node] = []
    for id in ids:
        label = labels.get(id, "")
        row = reads.get(label, id) if label in SHOWN else None
        if row is not None and _may_be_seen(reads, view, label, row):
            nodes.append(_node(label, row))
    return nodes


def _node(label: str, row: Row) -> Node:
    shown = {name: row[name] for name in SHOWN[label] if name in row}
    return {"id": row["id"], "label": label, **shown}


def _memory_id(project: str, text: str) -> str:
    digest = hash_text(text)
    return f"{project}#memory-{digest[:16]}"


def _memory(
    reads: ReadOps, id: str, project: str, name: str, text: str, kind: str, state: State
) -> dict[str, Value]:
    """Return the row of a note; an existing one keeps its creation time."""
    before = reads.get(NodeLabel.MEMORY, id) or {}
    created_at = text_field(before, "createdAt") or reads.now()
    return {
        "id": id, "name": name[:200], "text": text[:MAX_TEXT], "kind": kind, "state": state, "projectId": project,
        "createdAt": created_at,
    }  # fmt: skip


def _hits(reads: ReadOps, view: MemoryScope, label: str, text: str, limit: int) -> list[Node]:
    """Return the visible hits of a search."""
    # Other projects and proposals share the index, so the search goes deeper until it has enough
    # hits.
    size = limit + 50
    while True:
        hits = [id for id, _ in reads.search(label, text, size)]
        nodes = _shown_nodes(reads, view, hits)
        if len(nodes) >= limit or len(hits) < size:
            return nodes
        size *= 4


def _save_note(
    ops: WriteOps, project: str, name: str, text: str, kind: str, state: State, about: Sequence[str], props: Row
) -> str:  # fmt: skip
    id = _memory_id(project, text)
    ops.upsert(NodeLabel.MEMORY, [{**_memory(ops, id, project, name, text, kind, state), **props}])
    ops.link(EdgeType.ABOUT, [(id, node) for node in about])
    return id


def _run_text(reads: ReadOps, run: Row, failed: Sequence[Row]) -> str:
    counted = reads.counts(NodeLabel.TASK, "status", {"runId": run["id"]})
    tasks = ", ".join(f"{number} {status}" for status, number in sorted(counted.items()))
    names = "; ".join(text_field(task, "title") for task in failed)
    failures = f" Failed: {names}." if names else ""
    return (
        f"{text_field(run, 'title') or text_field(run, 'name')}. {text_field(run, 'goal')}\n"
        f"Request: {text_field(run, 'request')}\nTasks: {tasks or 'none'}.{failures}"
    )


def _lesson(run: Row, task: Row, checks: Sequence[Check]) -> str:
    report = json_field(task, "qcFailureReportJson")
    causes = report.get("root_causes") or report.get("rootCauses") or ()
    advice = report.get("recommendations") or ()
    last = int_field(task, "attemptNumber")
    lines = [
        f"{text_field(task, 'title')} ({text_field(task, 'workerRole')}) failed after "
        f"{last} attempts: {text_field(task, 'cause') or 'unknown'}.",
        f"It was part of: {text_field(run, 'title') or text_field(run, 'name')}.",
        *(f"Cause: {cause}" for cause in as_array(causes) if not _was_overcome(str(cause), last)),
        *(f"Check {check.id}: {check.command_line}" for check in checks),
        *(f"Next time: {step}" for step in as_array(advice)),
    ]
    return "\n".join(lines)


def _is_overcome(reads: ReadOps, view: MemoryScope, node: Node) -> bool:
    """True for the lesson of a failed task that a run completed after it."""
    if node.get("kind") != "lesson":
        return False
    wanted = {"title": str(node.get("name")).removeprefix(FAILED), "status": "completed"}
    done = query_nodes(reads, view, NodeLabel.TASK, wanted, _MOST_RUNS)
    later = (get_node(reads, view, str(task["runId"])) for task in done)
    # A lesson is written at the end of its run.
    return any(run and str(run["createdAt"]) > str(node["createdAt"]) for run in later)


def _was_overcome(cause: str, last: int) -> bool:
    """True if a cause of an earlier attempt is none of the last one."""
    of = _OF_ATTEMPTS.search(cause)
    return of is not None and str(last) not in of[1].split(", ")
