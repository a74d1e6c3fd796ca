"""The machine of one attempt: what its library may not do behind our backs."""

from typing import cast

import pytest
from langsmith import utils as langsmith_utils

from mimir.attempts.machine import Phase, Phases, run
from mimir.attempts.record import Course
from mimir.domain.attempt import Status


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
