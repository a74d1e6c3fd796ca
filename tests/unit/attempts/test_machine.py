"""The machine of one attempt: hidden side effects of its library are excluded."""

from typing import cast

import pytest
from langsmith import utils as langsmith_utils

from mimir.attempts.machine import run_attempt
from mimir.attempts.results import (
    AttemptRejection,
    AttemptState,
    Checking,
    Judged,
    Judging,
    Working,
    status_of,
)
from mimir.domain.deliverable import Deliverable
from mimir.domain.task_states import NODES, Cause, TaskStatus
from mimir.domain.verdict import Verdict

DELIVERED = Deliverable(answer="done", base_commit="c0", base_tree="t0", tree="t0")


class Passed:
    """As much of a verdict as the machine looks at."""

    passed = True


STATES: tuple[AttemptState, ...] = (
    Working(),
    Checking(work=DELIVERED),
    Judging(work=DELIVERED, outcomes=()),
    Judged(work=DELIVERED, outcomes=(), verdict=cast("Verdict", Passed())),
)


async def test_tracing_of_the_users_environment_is_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    langsmith_utils.get_env_var.cache_clear()
    seen: list[bool] = []

    async def look(_state: AttemptState) -> AttemptState:
        seen.append(bool(langsmith_utils.tracing_is_enabled()))
        return AttemptRejection(cause=Cause.INVALID_ANSWER, issues=())

    assert langsmith_utils.tracing_is_enabled()
    await run_attempt(Working(), look)
    langsmith_utils.get_env_var.cache_clear()
    assert seen == [False]


@pytest.mark.parametrize("entry", range(len(NODES)), ids=NODES)
async def test_attempt_continues_at_its_current_phase(entry: int):
    done: list[TaskStatus] = []

    async def advance(state: AttemptState) -> AttemptState:
        done.append(status_of(state))
        return STATES[STATES.index(state) + 1]

    ended = await run_attempt(STATES[entry], advance)

    assert (done, status_of(ended)) == (list(NODES[entry:]), TaskStatus.QC_PASSED)
