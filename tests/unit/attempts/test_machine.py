"""The machine of one attempt: what its library may not do behind our backs."""

from typing import cast

import pytest
from langsmith import utils as langsmith_utils

from mimir.attempts.machine import PhaseNode, PhaseNodes, run_attempt
from mimir.attempts.results import AttemptState
from mimir.domain.task_states import NODES, TaskStatus


async def test_tracing_of_the_users_environment_is_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    langsmith_utils.get_env_var.cache_clear()
    seen: list[bool] = []

    async def look(course: AttemptState, /) -> tuple[TaskStatus, AttemptState]:
        seen.append(bool(langsmith_utils.tracing_is_enabled()))
        return TaskStatus.WORKER_EXECUTING, course

    phases = cast("PhaseNodes", {TaskStatus.WORKER_EXECUTING: cast("PhaseNode", look)})
    assert langsmith_utils.tracing_is_enabled()
    await run_attempt(TaskStatus.WORKER_EXECUTING, cast("AttemptState", object()), phases)
    langsmith_utils.get_env_var.cache_clear()
    assert seen == [False]


@pytest.mark.parametrize("entry", range(len(NODES)), ids=NODES)
async def test_attempt_goes_on_at_the_phase_in_which_it_stands(entry: int):
    after = [*NODES[1:], TaskStatus.QC_PASSED]
    done: list[TaskStatus] = []

    def phase(at: TaskStatus, to: TaskStatus) -> PhaseNode:
        async def work(course: AttemptState, /) -> tuple[TaskStatus, AttemptState]:
            done.append(at)
            return to, course

        return work

    phases = {at: phase(at, to) for at, to in zip(NODES, after, strict=True)}
    ended, _ = await run_attempt(NODES[entry], AttemptState(), phases)

    assert (done, ended) == (list(NODES[entry:]), TaskStatus.QC_PASSED)
