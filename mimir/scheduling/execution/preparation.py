"""How an attempt starts: base, workspace tree and brief, made once and stored; a resumed attempt uses what was stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Literal

from mimir.agents.context.inputs import (
    ContextBudgets,
    DependencyView,
    EarlierAttempt,
    FailedCheck,
    FileView,
    RelatedTask,
    WorkerInput,
)
from mimir.agents.context.qc import MOST_RELATED, how_it_ended
from mimir.agents.context.receipt import flatten_receipt
from mimir.agents.context.task_context import AgentContext, get_task_context
from mimir.attempts.results import OUTCOMES, JsonCodec
from mimir.attempts.services import AttemptStart, ModelChoice, PinnedRun
from mimir.domain.clock import stamp
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import attempt_id, lane_id, task_id
from mimir.domain.plan import Task
from mimir.domain.task_states import TaskStatus
from mimir.scheduling.run_services import RunServices
from mimir.scheduling.task_queries import load_attempts
from mimir.store import row_fields
from mimir.store.deferring_store import Later
from mimir.store.operations import attempt_traces, claims, runs
from mimir.store.operations.claims import Claim
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.schema import pack
from mimir.store.transcripts import shared_texts
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.merge import TreeMerge

START = JsonCodec(AttemptStart)
MOST_FILES = 10
CONTEXT_BYTES = 200_000
"""A context file larger than this is only named."""
ANSWER = "answer"
Relation = Literal["needs", "needed_by"]
Step = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """What the store says around a task, from one view."""

    run: Row
    dependencies: tuple[DependencyView, ...]
    attempts: tuple[Row, ...]
    """Of this task."""
    related: tuple[RelatedTask, ...]
    """The tasks near it."""

    @classmethod
    def look(cls, reads: ReadOps, facts: PinnedRun, task: Task) -> "TaskView":
        """Read them."""
        rows = [reads.get("Task", task_id(facts.id, d)) for d in task.dependencies]
        return cls(
            run=runs.node(reads, facts.id),
            dependencies=tuple(_dependency(facts, row) for row in rows if row),
            attempts=tuple(load_attempts(reads, facts.id, task.id)),
            related=_related_to(facts, task),
        )

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Return the answers that an attempt may read: its dependencies', its own earlier ones."""
        own = [
            answer_id(
                row_fields.text_field(row, "taskId"), row_fields.int_field(row, "attemptNumber")
            )
            for row in self.attempts
        ]
        return (*(one.artifact for one in self.dependencies), *own)


class AttemptPreparer:
    """Makes starts."""

    def __init__(
        self,
        crew: RunServices,
        history: GitHistory,
        choice: ModelChoice,
        redact: Callable[[str], str],
    ) -> None:
        """Bind them to their services.

        Args:
            crew: This process's, for the run.
            history: Where trees come from.
            choice: How the worker's model is asked.
            redact: Replaces secrets in what is read of files.
        """
        self._crew = crew
        self._history = history
        self._choice = choice
        self._redact = redact

    async def start(
        self,
        task: Task,
        claim: Claim,
        attempt_row: Row,
        known: TaskView,
        later: Later,
    ) -> AttemptStart:
        """Return the attempt's start: as stored, or made now and given to `later`, to be stored with the first call."""
        stored = row_fields.text_field(attempt_row, "startJson")
        if stored:
            short = START.decode(stored)
            start = await self._crew.store.read(
                partial(_whole, run=self._crew.facts.id, start=short)
            )
            return replace(start, model=self._model(task))  # another one after a pause for it
        start, context = await self._make(task, claim, known)
        later(self._kept(claim, start, context))
        return start

    async def _make(
        self, task: Task, claim: Claim, known: TaskView
    ) -> tuple[AttemptStart, AgentContext]:
        base_tree = row_fields.text_field(known.run, "headTree")
        first = row_fields.text_field(claim.row, "firstBaseTree") or base_tree
        again = row_fields.json_field(claim.row, "retryErrorContextJson")
        merge = await self._merge(first, str(again.get("tree") or ""), base_tree)
        given = await self._input(task, claim, known, again, merge)
        budgets = ContextBudgets().smaller() if again.get("smallerContext") else ContextBudgets()
        lane = lane_id(self._crew.facts.id, task.id, claim.attempt, "worker")
        context = get_task_context("worker", given, lane=lane, budgets=budgets)
        preamble = self._crew.facts.preambles["worker", task.worker_role]
        start = AttemptStart(
            base_commit=row_fields.text_field(known.run, "head"),
            base_tree=base_tree,
            tree=merge.tree,
            first_base_tree=first,
            brief=context.messages,
            model=self._model(task),
            temperature=self._choice.temperature,
            max_tokens=self._choice.max_tokens,
            preamble_hash=preamble.hash,
            required_fixes=given.required_fixes,
            integration_retries=row_fields.int_field(claim.row, "integrationRetries"),
        )
        return start, context

    def _model(self, task: Task) -> str:
        return named_model(task) or self._choice.model

    async def _merge(self, first: str, before: str, base: str) -> TreeMerge:
        """Return what the workspace starts with: the line's tree, with the attempt before merged in, markers and all.

        What cannot be merged line by line is as the line has it: it was accepted, the attempt was not.
        """
        if not before or before == base:
            return TreeMerge(tree=base, conflicts=())
        return await self._history.merge(base, before, first)

    async def _input(
        self,
        task: Task,
        claim: Claim,
        known: TaskView,
        again: Mapping[str, object],
        merge: TreeMerge,
    ) -> WorkerInput:
        facts = self._crew.facts
        earlier = [_earlier(row) for row in known.attempts if row.get("endCause")]
        if earlier and again.get("tree"):
            diff = await self._history.diff(str(again.get("baseTree")), str(again.get("tree")))
            issues = (*earlier[-1].issues, *map(_disagree, merge.conflicts))
            earlier[-1] = replace(earlier[-1], diff=self._redact(diff), issues=issues)
        extra = row_fields.int_field(claim.row, "integrationRetries")
        return WorkerInput(
            preamble=facts.preambles["worker", task.worker_role].text,
            task=task,
            attempt=claim.attempt,
            attempts=task.max_retries + 1 + extra,
            tools=facts.granted_tools(task),
            files=await self._files(task, merge.tree),
            dependencies=known.dependencies,
            earlier=tuple(earlier),
            required_fixes=_fixes(known.attempts),
            hidden=facts.background.hidden_from(task),
        )

    async def _files(self, task: Task, tree: str) -> tuple[FileView, ...]:
        paths = await self._history.paths(tree, task.context_files) if task.context_files else ()
        literal = [p for p in task.context_files if p not in paths and not _is_glob(p)]
        views = [await self._file(tree, path) for path in tuple(paths)[:MOST_FILES]]
        views += [FileView(path=p, size=0, text=None, note="not there") for p in literal]
        return tuple(views[:MOST_FILES])

    async def _file(self, tree: str, path: str) -> FileView:
        content = await self._history.file(tree, path)
        if content is None:
            return FileView(path=path, size=0, text=None, note="not there")
        if len(content) > CONTEXT_BYTES:
            return FileView(path=path, size=len(content), text=None, note="large")
        try:
            text = self._redact(content.decode("utf-8"))
            return FileView(path=path, size=len(content), text=text)
        except UnicodeDecodeError:
            return FileView(path=path, size=len(content), text=None, note="binary")

    def _kept(
        self, claim: Claim, start: AttemptStart, context: AgentContext
    ) -> Callable[[WriteOps], None]:
        facts = self._crew.facts
        run, now = facts.id, stamp(self._crew.clock.now())
        short, named = _short(start)
        values = {
            "startJson": START.encode(short),
            "receiptJson": pack(context.receipt.as_json()),
            **flatten_receipt(context.receipt),
            "preambleHash": start.preamble_hash,
            "estimatedContextTokens": context.receipt.given_tokens,
            "workerStartTime": now,
        }

        def work(ops: WriteOps) -> None:
            claims.check_fence(ops, run, claim.task, claim.fence)
            shared_texts.save_text(ops, run, named)
            name = attempt_id(run, claim.task, claim.attempt)
            ops.patch("Attempt", name, values)
            role = facts.tasks[claim.task].worker_role
            attempt_traces.used_preamble(
                ops, name, facts.project, "worker", role, start.preamble_hash
            )
            ops.patch(
                "Task",
                task_id(run, claim.task),
                {
                    "firstBaseTree": start.first_base_tree,
                    "estimatedContextTokens": context.receipt.given_tokens,
                    "workerStartTime": now,
                },
            )

        return work


def _short(start: AttemptStart) -> tuple[AttemptStart, Mapping[str, str]]:
    """Return a start as it is stored, and what it names: an agent is told the same at the beginning of every attempt."""
    first = start.brief[0] if start.brief else None
    named = shared_texts.name_of(first.text) if first else None
    if first is None or named is None:
        return start, {}
    short = replace(start, brief=(replace(first, text=""), *start.brief[1:]), system=named)
    return short, {named: first.text}


def _whole(reads: ReadOps, run: str, start: AttemptStart) -> AttemptStart:
    """Return a start as it was made.

    Raises:
        StoreError: What it names is not there, or was changed.
    """
    if not start.system:
        return start
    first = replace(start.brief[0], text=shared_texts.get(reads, run, start.system))
    return replace(start, brief=(first, *start.brief[1:]), system="")


def _related_to(facts: PinnedRun, task: Task) -> tuple[RelatedTask, ...]:
    near = _near(facts.graph, task.id)
    # Those beyond are told by their number alone.
    return tuple(
        _related(facts, *one, is_shown=number < MOST_RELATED) for number, one in enumerate(near)
    )


def _near(graph: TaskGraph, task: str) -> list[tuple[str, int, Relation]]:
    """Return the tasks within two edges: (task, distance, relation), as QC is shown them: the nearest first."""
    found: dict[str, tuple[str, int, Relation]] = {}
    steps: tuple[tuple[Relation, Step], ...] = (
        ("needs", graph.dependencies),
        ("needed_by", graph.dependents),
    )
    for relation, step in steps:
        first = step(task)
        second = [n for one in first for n in step(one)]
        for distance, ids in ((1, first), (2, second)):
            for id in ids:
                found.setdefault(id, (id, distance, relation))
    return sorted(found.values(), key=lambda one: (one[1], one[2], one[0]))


def _related(
    facts: PinnedRun, id: str, distance: int, relation: Relation, *, is_shown: bool
) -> RelatedTask:
    # What a task needs is completed, or it would not have begun. Whether one that waits for it was blocked meanwhile must not change
    # a prompt: it would differ each time.
    status = TaskStatus.COMPLETED if relation == "needs" else TaskStatus.PENDING
    return RelatedTask(
        id=id,
        title=facts.tasks[id].title if is_shown else "",
        status=status.value if is_shown else "",
        distance=distance,
        relation=relation,
    )


def _dependency(facts: PinnedRun, row: Row) -> DependencyView:
    task = row_fields.text_field(row, "taskId")
    return DependencyView(
        id=task,
        title=row_fields.text_field(row, "title"),
        answer=row_fields.text_field(row, "workerOutput"),
        files=tuple(row_fields.text_list_field(row, "filesChanged")),
        artifact=answer_id(task, row_fields.int_field(row, "acceptedAttempt")),
    )


def answer_id(task: str, attempt: int) -> str:
    """Name the artifact of an attempt's answer within its run: what `read_artifact` takes. No run id enters a prompt."""
    return f"{task}/{attempt}/{ANSWER}"


def _earlier(row: Row) -> EarlierAttempt:
    outcomes = OUTCOMES.decode(row_fields.text_field(row, "checksJson") or "[]")
    score = row.get("score")
    number = row_fields.int_field(row, "attemptNumber")
    return EarlierAttempt(
        number=number,
        reason=row_fields.text_field(row, "endCause"),
        score=Fraction(str(score)) if isinstance(score, int | float) else None,
        issues=tuple(row_fields.text_list_field(row, "issues")),
        checks=tuple(
            FailedCheck(
                id=o.check,
                command=" ".join(o.after.argv),
                outcome=how_it_ended(o.after),
                output=o.after.output_tail,
            )
            for o in outcomes
            if o.state != "passed"
        ),
        answer=row_fields.text_field(row, "answerText"),
        artifact=answer_id(row_fields.text_field(row, "taskId"), number),
        tripped=row_fields.text_field(row, "tripped"),
        note=row_fields.text_field(row, "note"),
    )


def _disagree(path: str) -> str:
    return (
        f"Others changed {path!r} too since your work on it began. Where both changed the same lines, your workspace holds "
        "conflict markers (`head` is theirs, `attempt` is yours); what has no lines is theirs. Settle it so that both hold."
    )


def _fixes(attempts: Sequence[Row]) -> tuple[str, ...]:
    """Return the required fixes of the last judged attempt."""
    for row in reversed(attempts):
        if row.get("endCause"):
            return tuple(row_fields.text_list_field(row, "requiredFixes"))
    return ()


def named_model(task: Task) -> str:
    """Return the model that a task asks for by name; empty: the worker's own."""
    name = task.model.strip()
    return "" if name.lower() in ("", "default") else name


def _is_glob(path: str) -> bool:
    return any(c in path for c in "*?[")
