"""Preparation of an attempt: base, workspace tree and brief, stored for a resume."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from mimir.agents.context.agent import window_of
from mimir.agents.context.inputs import (
    ContextBudgets,
    DependencyView,
    FileView,
    RelatedTask,
    WorkerInput,
)
from mimir.agents.context.qc import MOST_RELATED
from mimir.agents.context.receipt import flatten_receipt
from mimir.agents.context.task_context import AgentContext, get_task_context
from mimir.attempts.services import AttemptStart, ModelChoice, PinnedRun
from mimir.domain.agent import ASK_TOOL
from mimir.domain.clock import stamp
from mimir.domain.evidence import PRODUCTS_TEXT
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import attempt_id, lane_id, task_id
from mimir.domain.invocation import PinnedDefinition
from mimir.domain.plan import Task
from mimir.domain.task_states import TaskStatus
from mimir.domain.tool_call_limit import call_limit
from mimir.domain.usage import estimate
from mimir.domain.value_class import value_class
from mimir.qc.scope.owned_tests import describe_owners, list_owned_tests
from mimir.scheduling.completion.attempt_outcome import RetryContext
from mimir.scheduling.execution.earlier_attempts import (
    answer_id,
    describe_attempt,
    quote_commands,
)
from mimir.scheduling.run_services import RunServices
from mimir.store.deferring_store import Later
from mimir.store.operations import attempt_traces, claims, record_loading
from mimir.store.operations.claims import Claim
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.attempt_changes import AttemptStartChange, WorkerContextChange
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_changes import TaskStartChange
from mimir.store.records.task_records import TaskRecord
from mimir.store.transcripts import shared_texts
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.merge import TreeMerge

MOST_FILES = 10
CONTEXT_BYTES = 200_000
"""A larger context file is given by name only."""
Relation = Literal["needs", "needed_by"]


@value_class
class TaskView:
    """Stored surroundings of a task, from one view of the store."""

    run: RunRecord
    dependencies: tuple[DependencyView, ...]
    attempts: tuple[AttemptRecord, ...]
    """Attempts of this task by number."""
    related: tuple[RelatedTask, ...]
    """Tasks within two edges of the task graph."""
    corrections: tuple[str, ...] = ()
    """Answers of the user that differ from assumptions of earlier attempts, as required fixes."""
    products: tuple[str, ...] = ()
    """Files that the run's checks write before the work."""

    @classmethod
    def look(cls, reads: ReadOps, facts: PinnedRun, task: Task) -> "TaskView":
        """Load the view of a task."""
        found = [
            record_loading.find_task(reads, facts.id, dependency)
            for dependency in task.dependencies
        ]
        attempts = tuple(record_loading.load_task_attempts(reads, facts.id, task.id))
        # Of a task with `files`, only these are delivered.
        products = None if task.files else record_loading.find_json(reads, facts.id, PRODUCTS_TEXT)
        return cls(
            run=record_loading.load_run(reads, facts.id),
            dependencies=tuple(_dependency_view(one) for one in found if one),
            attempts=attempts,
            related=_find_related(facts, task),
            corrections=_list_corrections(reads, facts, task, attempts),
            products=products.value.texts() if products else (),
        )

    @property
    def required_fixes(self) -> tuple[str, ...]:
        """Required fixes of the next attempt: those of the last one, and corrections."""
        ended = [attempt for attempt in self.attempts if attempt.has_ended]
        return (*(ended[-1].required_fixes if ended else ()), *self.corrections)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Answers that an attempt may read: of its dependencies, and of its earlier attempts."""
        own = [answer_id(attempt.task_id, attempt.number) for attempt in self.attempts]
        return (*(dependency.artifact for dependency in self.dependencies), *own)


class AttemptPreparer:
    """Prepares the starts of attempts."""

    def __init__(
        self,
        services: RunServices,
        history: GitHistory,
        choice: ModelChoice,
        redact: Callable[[str], str],
    ) -> None:
        """Bind the preparer.

        Args:
            services: Services of this process for the run.
            history: Hidden repository.
            choice: Model settings of the worker.
            redact: Replaces secrets in file contents.
        """
        self._services = services
        self._history = history
        self._choice = choice
        self._redact = redact

    async def start(
        self, task: Task, claim: Claim, attempt: AttemptRecord | None, view: TaskView, later: Later
    ) -> AttemptStart:
        """Return the stored start, or make one; `later` stores it with the first call."""
        if attempt and attempt.start:
            short = attempt.start.decode(AttemptStart)
            expand = partial(_expand, run=self._services.facts.id, start=short)
            start = await self._services.store.read(expand)
            return replace(start, model=self._model(task))  # a pause may change the model
        start, context = await self._make(task, claim, view)
        later(self._save(claim, start, context))
        return start

    async def _make(
        self, task: Task, claim: Claim, view: TaskView
    ) -> tuple[AttemptStart, AgentContext]:
        base_tree = view.run.head_tree
        first = claim.record.first_base_tree or base_tree
        retry = RetryContext.of_task(claim.record)
        merge = await self._merge(first, retry.tree, base_tree)
        given = await self._worker_input(task, claim, view, retry, merge)
        budgets = ContextBudgets.within(self._choice.context_tokens)
        budgets = budgets.smaller() if retry.smaller_context else budgets
        lane = lane_id(self._services.facts.id, task.id, claim.attempt, "worker")
        context = get_task_context("worker", given, lane=lane, budgets=budgets)
        start = AttemptStart(
            base_commit=view.run.head,
            base_tree=base_tree,
            tree=merge.tree,
            first_base_tree=first,
            brief=context.messages,
            model=self._model(task),
            temperature=self._choice.temperature,
            max_tokens=self._choice.max_tokens,
            preamble_hash=self._services.facts.preambles["worker", task.worker_role].hash,
            required_fixes=view.required_fixes,
            integration_retries=claim.record.integration_retries,
            conflicts=merge.conflicts,
            earlier_tree=retry.tree if merge.conflicts else "",
            products=view.products,
        )
        return start, context

    def _model(self, task: Task) -> str:
        return named_model(task) or self._choice.model

    async def _merge(self, first: str, before: str, base: str) -> TreeMerge:
        """Merge the attempt before into the base, with conflict markers.

        A file that cannot be merged by lines is that of the base: it was accepted, the attempt was not.
        """
        if not before or before == base:
            return TreeMerge(tree=base, conflicts=())
        return await self._history.merge(base, before, first)

    async def _worker_input(
        self, task: Task, claim: Claim, view: TaskView, retry: RetryContext, merge: TreeMerge
    ) -> WorkerInput:
        facts = self._services.facts
        preamble = facts.preambles["worker", task.worker_role].text
        agent = facts.agents.get(task.worker_role)
        ended = [attempt for attempt in view.attempts if attempt.has_ended]
        earlier = [describe_attempt(task, attempt) for attempt in ended]
        if earlier and retry.tree:
            # Only the last attempt's changes are merged into the workspace.
            diff = await self._history.diff(retry.base_tree, retry.tree)
            issues = (*earlier[-1].issues, *map(_conflict_issue, merge.conflicts))
            earlier[-1] = replace(earlier[-1], diff=self._redact(diff), issues=issues)
        return WorkerInput(
            preamble=preamble,
            task=task,
            attempt=claim.attempt,
            attempts=task.max_retries + 1 + claim.record.integration_retries,
            tools=facts.granted_tools(task),
            tool_calls=call_limit(task.estimated_tool_calls),
            foreign_tests=await self._foreign_tests(task),
            files=await self._load_files(task, merge.tree),
            dependencies=view.dependencies,
            earlier=tuple(earlier),
            required_fixes=quote_commands(task, view.required_fixes) if ended else (),
            # Before `material` was pinned, the task of an invocation listed its skills itself.
            skills=agent.skills if agent and (agent.material or task.agent) else (),
            material=agent.material if agent else None,
            within=agent.files if agent else (),
            window=self._window(agent, preamble, retry) if agent else 0,
            hidden=facts.background.hidden_from(task),
        )

    def _window(self, agent: PinnedDefinition, preamble: str, retry: RetryContext) -> int:
        # The context of a program's model is not known.
        window = window_of(None if agent.program else self._choice.context_tokens)
        window = max(0, window - estimate(preamble))
        return window // 3 if retry.smaller_context else window

    async def _foreign_tests(self, task: Task) -> tuple[str, ...]:
        facts = self._services.facts
        paths = frozenset(await self._history.paths(facts.base_tree))
        found = list_owned_tests(facts.plan, paths.__contains__, others=(task,))
        found = [one for one in found if one.others]
        return describe_owners(found[:MOST_FILES], whom="you")

    async def _load_files(self, task: Task, tree: str) -> tuple[FileView, ...]:
        paths = await self._history.paths(tree, task.context_files) if task.context_files else ()
        # A missing file is named, so that the worker does not search for it.
        literal = [p for p in task.context_files if p not in paths and not _is_glob(p)]
        views = [await self._load_file(tree, path) for path in tuple(paths)[:MOST_FILES]]
        views += [FileView(path=p, size=0, text=None, note="not there") for p in literal]
        return tuple(views[:MOST_FILES])

    async def _load_file(self, tree: str, path: str) -> FileView:
        content = await self._history.file(tree, path)
        if content is None:
            return FileView(path=path, size=0, text=None, note="not there")
        # The worker can still read the file by a tool call.
        if len(content) > CONTEXT_BYTES:
            return FileView(path=path, size=len(content), text=None, note="large")
        try:
            text = self._redact(content.decode("utf-8"))
            return FileView(path=path, size=len(content), text=text)
        except UnicodeDecodeError:
            return FileView(path=path, size=len(content), text=None, note="binary")

    def _save(
        self, claim: Claim, start: AttemptStart, context: AgentContext
    ) -> Callable[[WriteOps], None]:
        facts = self._services.facts
        run, now = facts.id, stamp(self._services.clock.now())
        short, texts = _shorten(start)
        tokens = context.receipt.given_tokens
        attempt_change = AttemptStartChange(
            start=PackedJson.pack(short),
            receipt=PackedJson.pack(context.receipt.as_json()),
            preamble_hash=start.preamble_hash,
            estimated_context_tokens=tokens,
            worker_start_time=now,
        )
        task_change = TaskStartChange(
            first_base_tree=start.first_base_tree,
            estimated_context_tokens=tokens,
            worker_start_time=now,
        )
        context_change = WorkerContextChange.from_row(flatten_receipt(context.receipt))
        role = facts.tasks[claim.task].worker_role

        def work(ops: WriteOps) -> None:
            # A process that lost the lease must not replace the stored start.
            claims.load_claimed_task(ops, run, claim.task, claim.fence)
            shared_texts.save_text(ops, run, texts)
            name = attempt_id(run, claim.task, claim.attempt)
            record_loading.save_change(ops, name, attempt_change, context_change)
            attempt_traces.used_preamble(
                ops, name, facts.project, "worker", role, start.preamble_hash
            )
            record_loading.save_change(ops, task_id(run, claim.task), task_change)

        return work


def _shorten(start: AttemptStart) -> tuple[AttemptStart, Mapping[str, str]]:
    """Return a start in its stored form, and the text that it names."""
    # All attempts of a role share their first message, so the run keeps it once.
    first = start.brief[0] if start.brief else None
    name = shared_texts.name_of(first.text) if first else None
    if first is None or name is None:
        return start, {}
    short = replace(start, brief=(replace(first, text=""), *start.brief[1:]), system=name)
    return short, {name: first.text}


def _expand(reads: ReadOps, run: str, start: AttemptStart) -> AttemptStart:
    """Return a start as it was made.

    Raises:
        StoreError: The text that it names is missing or was changed.
    """
    if not start.system:
        return start
    first = replace(start.brief[0], text=shared_texts.get(reads, run, start.system))
    return replace(start, brief=(first, *start.brief[1:]), system="")


def _find_related(facts: PinnedRun, task: Task) -> tuple[RelatedTask, ...]:
    """Return the tasks within two edges, as QC is given them."""
    # Of those beyond `MOST_RELATED`, QC is given the number only.
    return tuple(
        RelatedTask(
            id=id,
            title=facts.tasks[id].title if place < MOST_RELATED else "",
            status=_related_status(relation).value if place < MOST_RELATED else "",
            distance=distance,
            relation=relation,
        )
        for place, (id, distance, relation) in enumerate(_find_near(facts.graph, task.id))
    )


def _related_status(relation: Relation) -> TaskStatus:
    # A dependency is completed. A dependent may be blocked by now, but a prompt must not differ for that.
    return TaskStatus.COMPLETED if relation == "needs" else TaskStatus.PENDING


def _find_near(graph: TaskGraph, task: str) -> list[tuple[str, int, Relation]]:
    """Return (task, distance, relation) of the tasks within two edges, the nearest first."""
    found: dict[str, tuple[str, int, Relation]] = {}
    steps: tuple[tuple[Relation, Callable[[str], tuple[str, ...]]], ...] = (
        ("needs", graph.dependencies),
        ("needed_by", graph.dependents),
    )
    for relation, step in steps:
        first = step(task)
        second = [far for near in first for far in step(near)]
        for distance, ids in ((1, first), (2, second)):
            for id in ids:
                found.setdefault(id, (id, distance, relation))
    return sorted(found.values(), key=lambda one: (one[1], one[2], one[0]))


def _dependency_view(task: TaskRecord) -> DependencyView:
    return DependencyView(
        id=task.task_id,
        title=task.title,
        answer=task.worker_output,
        files=task.files_changed,
        artifact=answer_id(task.task_id, task.accepted_attempt),
    )


def _list_corrections(
    reads: ReadOps, facts: PinnedRun, task: Task, attempts: Sequence[AttemptRecord]
) -> tuple[str, ...]:
    """Return the corrections that came before the newest attempt was claimed."""
    if ASK_TOOL not in task.tools or not any(one.has_ended for one in attempts):
        return ()
    # A later one is found when the attempt is to be completed: so a replay decides the same again.
    claimed = attempts[-1].worker_start_time
    return tuple(question_rows.list_corrections(reads, facts.id, task.id, before=claimed))


def _conflict_issue(path: str) -> str:
    return (
        f"Others changed {path!r} too since your work on it began. Where both changed the same lines, your workspace holds "
        "conflict markers (`head` is theirs, `attempt` is yours): replace them all, so that both changes hold. What has no lines is "
        "theirs: change it, delete it, or confirm it by a command that names it, such as `touch`. Otherwise the attempt is rejected."
    )


def named_model(task: Task) -> str:
    """Return the model that a task names. Empty: the worker's own."""
    name = task.model.strip()
    return "" if name.lower() in ("", "default") else name


def _is_glob(path: str) -> bool:
    return any(c in path for c in "*?[")
