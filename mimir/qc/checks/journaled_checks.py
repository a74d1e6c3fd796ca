"""Journal of check runs: every run is stored, so that a replay can serve it again."""

from functools import partial
from typing import Protocol

from mimir.domain.actor import CURRENT_ACTOR
from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.qc.checks.check_execution import Phase
from mimir.qc.controls.control_case import ControlCase
from mimir.store.operations import evidence
from mimir.store.protocol import GraphStore


class CheckExecutor(Protocol):
    """Executor of a check on a tree: the sandbox, a journal around it, or a recording."""

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        """Run a check once.

        Raises:
            Paused: The sandbox or the disk failed; the check has no result.
        """
        ...

    async def control(self, case: ControlCase) -> CheckRun:
        """Run the control of a passed check, with the same errors."""
        ...


class JournaledChecks:
    """Check executor that stores each run before any conclusion is drawn from it."""

    def __init__(self, inner: CheckExecutor, store: GraphStore, owner: str) -> None:
        """Wrap an executor; `owner` is this process, and part of the ids of its check runs."""
        self._inner = inner
        self._store = store
        self._owner = owner
        self._count = 0

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        """Run a check and store the run."""
        result = await self._inner.run(check, tree, phase, answer=answer, again=again)
        return await self._save(check, result)

    async def control(self, case: ControlCase) -> CheckRun:
        """Run a control and store the run that decided."""
        return await self._save(case.check, await self._inner.control(case))

    async def _save(self, check: Check, result: CheckRun) -> CheckRun:
        actor = CURRENT_ACTOR.get()
        if actor is not None:  # outside a run, as in `doctor`, there is nothing to replay
            # The counter makes ids unique in a process, the owner among processes.
            self._count += 1
            save = partial(
                evidence.save_check_run,
                id=f"{actor.run}#check-{self._owner}-{self._count:06d}",
                run=actor.run,
                owner=self._owner,
                place=actor.place,
                check=check,
                result=result,
            )
            await self._store.write(save)
        return result
