"""Anticipated checks: they run on the present work while the worker's model still answers.

A worker that has tried its work mostly ends with the next answer. Its checks are then executed already, or on the way. Nothing is
recorded of them: the check node asks for the same runs and gets the shared results. If the answer calls tools, they are cancelled.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from mimir.attempts.attempt_workspace import AttemptWorkspace
from mimir.attempts.services import AttemptServices
from mimir.domain.message import Answer, ModelRequest
from mimir.errors import MimirError
from mimir.llm.protocol import ChatModel
from mimir.qc.checks.check_target import CheckTarget
from mimir.qc.scope.test_owners import find_pending_tests

AFTER_SECONDS = 1.0
"""A model that answers faster leaves no time to use."""
_COMMAND = "run"


class AnticipatingModel:
    """Worker's model, with the checks of the present work beside its answers."""

    def __init__(
        self, inner: ChatModel, services: AttemptServices, workspace: AttemptWorkspace
    ) -> None:
        self._inner = inner
        self._services = services
        self._workspace = workspace
        self._last_tree = ""

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask, and run the checks if the work looks finished."""
        tree, last = self._workspace.last_tree, self._last_tree
        self._last_tree = tree
        has_changed = tree != self._services.start.base_tree
        if not (has_changed and self._services.task.checks and self._is_tried(request, tree, last)):
            return await self._inner.ask(request)
        ahead = self._services.background
        ahead.add(asyncio.create_task(self._run_checks()))
        answer = None
        try:
            answer = await self._inner.ask(request)
            return answer
        finally:
            if answer is None or answer.message.calls:
                await stop_background(self._services)

    def _is_tried(self, request: ModelRequest, tree: str, last: str) -> bool:
        """True if the last calls changed nothing, or ended with a command."""
        calls = next((one.calls for one in reversed(request.messages) if one.calls), ())
        return tree == last or (bool(calls) and calls[-1].name == _COMMAND)

    async def _run_checks(self) -> None:
        services = self._services
        await asyncio.sleep(AFTER_SECONDS)
        # The check node meets the same error, and reports it.
        with contextlib.suppress(MimirError):
            work = await self._workspace.preview()
            target = build_check_target(services, work.tree, work.changed)
            await services.checks.anticipate(target)


def build_check_target(
    services: AttemptServices, tree: str, changed: Sequence[str], answer: str = ""
) -> CheckTarget:
    """Return the subject of the checks of an attempt."""
    facts, task = services.facts, services.task
    return CheckTarget(
        task=task,
        # A retry starts from a changed tree, on which a check may pass before any work.
        first_base=services.start.first_base_tree,
        own_base=services.start.base_tree,
        tree=tree,
        changed=changed,
        answer=answer,
        green_runs=facts.green_runs,
        pending=find_pending_tests(
            facts.plan, task, facts.graph.upstream(task.id), facts.base_tree
        ),
    )


async def stop_background(services: AttemptServices) -> None:
    """Cancel what runs beside the attempt."""
    jobs = tuple(services.background)
    services.background.clear()
    for job in jobs:
        job.cancel()
    await asyncio.gather(*jobs, return_exceptions=True)
