"""Shared check runs: an equal command on an equal tree is executed once in a run.

Only a green run is shared: a red one is confirmed by another execution. A run depends on the closing answer too, if its command or a
file of its tree names the answer's variable. A shared result keeps the check and the phase that asked for it, so records and replays do not change.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncGenerator
from dataclasses import replace

from mimir.domain.actor import CURRENT_ACTOR
from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.domain.text_hash import hash_text
from mimir.qc.checks.check_execution import CheckExecution, Phase
from mimir.qc.controls.control_case import ControlCase

MOST_RUNS = 500
"""Results that are kept; each holds the names of its tests."""

_Key = tuple[str, tuple[str, ...], float, str, str]
"""Run, command, time limit, tree, and hash of the answer; empty: any answer."""


class SharedRuns:
    """Check executor that executes equal commands on equal trees once."""

    def __init__(self, inner: CheckExecution) -> None:
        self._inner = inner
        self._known: OrderedDict[_Key, CheckRun] = OrderedDict()
        self._locks: dict[_Key, asyncio.Lock] = {}

    async def run(
        self, check: Check, tree: str, phase: Phase, *, answer: str = "", again: bool = False
    ) -> CheckRun:
        """Run a check, or return the result of an equal run; `again` always runs it."""
        if again:
            return await self._inner.run(check, tree, phase, answer=answer, again=True)
        depends_on = hash_text(answer) if await self._inner.may_read_answer(check, tree) else ""
        async with self._hold(_key(check, tree, depends_on)) as key:
            run = self._find(key, phase)
            # A red run before the work needs no confirmation: nothing is rejected by it.
            if run and (run.green or phase == run.phase == "before"):
                return replace(run, check=check.id, phase=phase, shared=True)
            run = await self._inner.run(check, tree, phase, answer=answer)
            if run.green or run.phase == "before":
                self._keep(key, run)
            return run

    async def control(self, case: ControlCase) -> CheckRun:
        """Run a control; on a common tree, one in which all tests failed is shared."""
        if case.after.phase not in ("merged", "gate"):
            return await self._inner.control(case)
        async with self._hold(_key(case.check, f"control of {case.after.tree}")) as key:
            if key in self._known:
                return replace(self._known[key], check=case.check.id, shared=True)
            run = await self._inner.control(case)
            found = run.control
            if found is not None and found.state == "red" and found.sensitive == found.counted > 0:
                self._keep(key, run)
            return run

    def _find(self, key: _Key, phase: Phase) -> CheckRun | None:
        """Return a known run; before the work also one of the planning that led to this run."""
        actor = CURRENT_ACTOR.get()
        if key not in self._known and actor and actor.plan_run and phase == "before":
            # Never of the work: each run proves what it accepts by its own runs.
            key = (actor.plan_run, *key[1:])
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    @contextlib.asynccontextmanager
    async def _hold(self, key: _Key) -> AsyncGenerator[_Key]:
        """Hold the lock of a key: equal checks of several tasks are wanted at the same time."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                yield key
        finally:
            if not lock.locked():
                self._locks.pop(key, None)

    def _keep(self, key: _Key, run: CheckRun) -> None:
        self._known[key] = run
        while len(self._known) > MOST_RUNS:
            self._known.popitem(last=False)


def _key(check: Check, tree: str, answer: str = "") -> _Key:
    actor = CURRENT_ACTOR.get()
    return actor.run if actor else "", tuple(check.argv), check.timeout_seconds, tree, answer
