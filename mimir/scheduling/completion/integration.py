"""Integration of an accepted attempt: merged onto the run branch and proved again.

Git objects are written first, then one transaction moves `Run.head` with the status: twice optimistically, then under the integration
lease. If the run branch moved since the attempt's base, the checks of this task and of every task that it touches run again, and
QC judges a file that both sides changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from mimir.attempts.delivered_paths import find_repositories, may_touch_repository
from mimir.attempts.nodes.judge import judge_merged
from mimir.attempts.results import Judged
from mimir.attempts.services import AttemptServices
from mimir.domain.actor import act_for_task
from mimir.domain.evidence import CheckRun
from mimir.domain.globs import matches
from mimir.domain.plan import Check
from mimir.domain.task_states import Cause
from mimir.domain.value_class import value_class
from mimir.domain.verdict import Verdict
from mimir.qc.checks.regression import AcceptedTask, accepted_results
from mimir.qc.integrity.check_files import find_check_files
from mimir.qc.scope.check_surface import is_config
from mimir.qc.scope.test_owners import find_pending_tests
from mimir.scheduling.completion.final_gate import counts, describe_restored_files
from mimir.scheduling.run_services import RunServices
from mimir.store.operations import leases
from mimir.store.operations.record_loading import find_run, load_run
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.schema import well_formed
from mimir.workspace.aio import await_all

OPTIMISTIC_TRIES = 2
MOVED: Literal["moved"] = "moved"
LEASE_POLL_SECONDS = 0.05
INTEGRATOR = "integrator"
"""Lease under which one task at a time is integrated; its holder is `process/task`."""


@value_class
class RunBranch:
    """Tip of the run branch."""

    head: str
    tree: str
    completed: tuple[AcceptedTask, ...]


@value_class
class MergeCandidate:
    """Commit that may become the head of the run branch."""

    commit: str
    tree: str
    onto: str
    """Head that it was made for."""
    runs: tuple[tuple[str, CheckRun], ...] = ()
    """(task, run) of the checks on the merged tree. Empty: the base is still the head."""
    verdict: Verdict | None = None
    """Second verdict, on the merged tree. None: no file was changed on both sides."""


@value_class
class MergeConflict:
    """Reason why an accepted attempt cannot be merged."""

    cause: Cause
    """`integration`, or after a second judgement `qc_unavailable` or `unverifiable`."""
    issues: tuple[str, ...]
    onto: str = ""
    """Head that the merge was tried on."""
    runs: tuple[tuple[str, CheckRun], ...] = ()


class TaskIntegration:
    """Integration of one accepted attempt with changes."""

    def __init__(
        self,
        run_services: RunServices,
        services: AttemptServices,
        state: Judged,
        publish: Callable[[MergeCandidate], Awaitable[bool]],
    ) -> None:
        """Prepare it; `publish` moves the head and completes the task, or returns False."""
        self._run_services = run_services
        self._services = services
        self._state = state
        self._publish = publish
        self._accepted = AcceptedTask(
            task=services.task,
            attempt=services.number,
            answer=state.work.answer,
            passed=frozenset(o.check for o in state.outcomes if o.state == "passed"),
            # As the store keeps names, so that both sides compare equal.
            changed=frozenset(map(well_formed, state.work.changed)),
            tree=state.work.tree,
            results=accepted_results(state.outcomes),
        )

    async def integrate(self) -> MergeConflict | None:
        """Merge the deliverable; None if the task is completed, else why it needs a retry."""
        for _ in range(OPTIMISTIC_TRIES):
            end = await self._try_once()
            if end != MOVED:
                return end
        await self._take_lease()
        try:
            # Other tasks may still merge optimistically, so one round may not be enough.
            while True:
                end = await self._try_once()
                if end != MOVED:
                    return end
        finally:
            owner = f"{self._run_services.owner}/{self._services.task.id}"
            run = self._run_services.facts.id
            release = partial(leases.release_lease, run=run, name=INTEGRATOR, owner=owner)
            await self._run_services.store.write(release)

    async def _try_once(self) -> MergeConflict | Literal["moved"] | None:
        """Try once; "moved": another process moved the head, so try again."""
        branch = await self._run_services.store.read(self._load_branch)
        merged = await self._merge(branch)
        if isinstance(merged, MergeConflict):
            return replace(merged, onto=branch.head)
        return None if await self._publish(merged) else MOVED

    def _load_branch(self, reads: ReadOps) -> RunBranch:
        run = load_run(reads, self._run_services.facts.id)
        completed = self._run_services.completions.look(reads, run.id)
        return RunBranch(head=run.head, tree=run.head_tree, completed=completed)

    async def _merge(self, branch: RunBranch) -> MergeCandidate | MergeConflict:
        work, task, history = self._state.work, self._services.task, self._services.history
        # The accepted tree is the merged tree: there is nothing to prove again.
        if branch.head == work.base_commit:
            return MergeCandidate(commit=work.commit, tree=work.tree, onto=branch.head)
        merge = await history.merge(branch.head, work.commit)
        if merge.conflicts:
            issues = [
                f"Another task changed the same lines of {path!r}." for path in merge.conflicts
            ]
            return MergeConflict(cause=Cause.INTEGRATION, issues=tuple(issues))
        if may_touch_repository(work.changed):
            parts = [work.tree, branch.tree, work.base_tree]
            known = {top for tree in parts for top in find_repositories(await history.paths(tree))}
            new_repositories = set(find_repositories(await history.paths(merge.tree))) - known
            if new_repositories:
                reason = f"Merged with the work of others, {min(new_repositories)!r} would be a git repository."
                return MergeConflict(cause=Cause.INTEGRATION, issues=(reason,))
        runs, red = await self._prove(branch, merge.tree)
        if red:
            return MergeConflict(cause=Cause.INTEGRATION, issues=red, runs=runs)
        verdict = await self._judge_shared_files(branch, merge.tree)
        if isinstance(verdict, MergeConflict):
            return verdict
        message = f"Merge {task.id}: {task.title}"
        commit = await history.commit(merge.tree, [branch.head, work.commit], message)
        return MergeCandidate(
            commit=commit, tree=merge.tree, onto=branch.head, runs=runs, verdict=verdict
        )

    async def _prove(
        self, branch: RunBranch, tree: str
    ) -> tuple[tuple[tuple[str, CheckRun], ...], tuple[str, ...]]:
        """Run the checks that a merge could break; return all runs, and the red ones in words."""
        touched = [one for one in branch.completed if _touches(self._state.work.changed, one)]
        wanted = [(a, check) for a in (self._accepted, *touched) for check in a.task.checks]
        others = (self._accepted, *branch.completed)
        results = await await_all([self._run_check(a, c, tree, others) for a, c in wanted])
        runs = [
            (a.task.id, run) for (a, _), ran in zip(wanted, results, strict=True) for run in ran
        ]
        red = [
            f"Merged with the work of others, check {check.id!r} of {a.task.id} fails"
            f"{describe_restored_files(ran[-1])}: {ran[-1].output_tail[-2000:]}"
            for (a, check), ran in zip(wanted, results, strict=True)
            if not ran[-1].green and counts(a, check)
        ]
        return tuple(runs), tuple(red)

    async def _run_check(
        self, accepted: AcceptedTask, check: Check, tree: str, others: Sequence[AcceptedTask]
    ) -> Sequence[CheckRun]:
        act_for_task(accepted.task.id)
        facts, done = self._services.facts, [one.task.id for one in others]
        pending = find_pending_tests(facts.plan, accepted.task, done, facts.base_tree)
        return await self._services.checks.on_tree(
            accepted,
            check,
            tree,
            others,
            phase="merged",
            pending=pending,
            controlled=facts.controls != "never",
        )

    async def _judge_shared_files(
        self, branch: RunBranch, tree: str
    ) -> Verdict | MergeConflict | None:
        """Ask QC again if a file was changed on both sides since the attempt's base."""
        work = self._state.work
        changes = await self._services.history.diff_trees(work.base_tree, branch.tree)
        shared = tuple(path for path in work.changed if path in {c.path for c in changes})
        # Changes of different files were judged already.
        if not shared:
            return None
        verdict = await judge_merged(self._services, self._state, tree, shared)
        if isinstance(verdict, Cause):
            return MergeConflict(cause=verdict, issues=("QC could not judge the merged tree.",))
        if verdict.passed:
            return verdict
        if verdict.unverifiable:
            return MergeConflict(cause=Cause.UNVERIFIABLE, issues=verdict.reasons)
        return MergeConflict(cause=Cause.INTEGRATION, issues=(*verdict.reasons, *verdict.issues))

    async def _take_lease(self) -> None:
        services = self._run_services
        while not await services.store.write(  # noqa: ASYNC110  the holder may be in another process
            partial(
                take_integration,
                run=services.facts.id,
                owner=services.owner,
                task=self._services.task.id,
                seconds=services.lease_seconds,
                dead=services.owners.dead(),
            )
        ):
            await asyncio.sleep(LEASE_POLL_SECONDS)


def _touches(changed: Sequence[str], other: AcceptedTask) -> bool:
    """Return whether a completed task, or one of its checks, depends on these files."""
    check_files = [find_check_files(check) for check in other.task.checks]
    globs = [*other.task.files]
    for one in check_files:
        globs += (*one.all_tests, *one.tools)
    return any(
        # Compared as the store keeps names: a name may look like a glob that does not match itself.
        well_formed(path) in other.changed
        or matches(path, globs)
        or (check_files and is_config(path))
        for path in changed
    )


def take_integration(
    ops: WriteOps, run: str, owner: str, task: str, *, seconds: float, dead: Collection[str]
) -> bool:
    """Take or renew a run's integration lease for a task; False if another task holds it."""
    record = find_run(ops, run)
    held = record.integrator if record else ""
    # The holder names the task too; only its process can be dead.
    dead_holder = (held,) if held.split("/", 1)[0] in dead else ()
    return leases.acquire_lease(
        ops, run, INTEGRATOR, f"{owner}/{task}", seconds=seconds, dead=dead_holder
    )
