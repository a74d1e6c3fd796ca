"""The machine of one attempt: what its library may not do behind our backs."""

from typing import cast

import pytest
from langsmith import utils as langsmith_utils

from mimir.attempts.machine import Phase, Phases, run
from mimir.attempts.results import Course
from mimir.domain.task_states import NODES, Status


async def test_tracing_of_the_users_environment_is_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    langsmith_utils.get_env_var.cache_clear()
    seen: list[bool] = []

    async def look(course: Course, /) -> tuple[Status, Course]:
        seen.append(bool(langsmith_utils.tracing_is_enabled()))
        return Status.WORKER_EXECUTING, course

    phases = cast("Phases", {Status.WORKER_EXECUTING: cast("Phase", look)})
    assert langsmith_utils.tracing_is_enabled()
    await run(Status.WORKER_EXECUTING, cast("Course", object()), phases)
    langsmith_utils.get_env_var.cache_clear()
    assert seen == [False]


@pytest.mark.parametrize("entry", range(len(NODES)), ids=NODES)
async def test_attempt_goes_on_at_the_phase_in_which_it_stands(entry: int):
    after = [*NODES[1:], Status.QC_PASSED]
    done: list[Status] = []

    def phase(at: Status, to: Status) -> Phase:
        async def work(course: Course, /) -> tuple[Status, Course]:
            done.append(at)
            return to, course

        return work

    phases = {at: phase(at, to) for at, to in zip(NODES, after, strict=True)}
    ended, _ = await run(NODES[entry], Course(), phases)

    assert (done, ended) == (list(NODES[entry:]), Status.QC_PASSED)
