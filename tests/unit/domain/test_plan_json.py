"""A pinned plan comes back as it was, or not at all."""

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from mimir.domain.plan import Check, Criterion, Plan, Task
from mimir.domain.plan_json import plan_from_json, plan_to_json

PLAN = Plan(
    title="t",
    goal="g",
    request="r",
    reasoning="why",
    notes="n",
    tasks=(
        Task(
            id="task-1",
            title="a",
            prompt="do\n\0 it",
            worker_role="w",
            qc_role="q",
            criteria=(
                Criterion(id="c1", text="x", points=Fraction(1, 3), critical=True),
                Criterion(id="c2", text="y"),
            ),
            checks=(
                Check(id="k1", criteria=("c1",), run=("pytest", "-q"), kind="flip", tests=()),
                Check(id="k2", criteria=(), run="a | b", required=False, timeout_seconds=1.5),
            ),
            dependencies=("task-0",),
            files=("src/**",),
            context_files=("a.md",),
            tools=("run",),
            tool_execution="use run",
            estimated_tool_calls=3,
            estimated_minutes=2.5,
            time_limit_minutes=7,
            max_retries=0,
            model="m",
            parallel_group="1",
            notes="kept",
        ),
        Task(id="task-2", title="b", prompt="", worker_role=""),
    ),
)


def test_a_plan_comes_back_as_it_was_through_json_text():
    assert plan_from_json(json.loads(json.dumps(plan_to_json(PLAN)))) == PLAN


def _first_task(value: dict[str, Any]) -> dict[str, Any]:
    return value["tasks"][0]


SPOILT: dict[str, Callable[[dict[str, Any]], object]] = {
    "schema 2": lambda v: v.update(schema=2),
    "'title' is missing": lambda v: v.pop("title"),
    "plan: 'extra' is not known": lambda v: v.update(extra=1),
    r"tasks\[0\].max_retries: a whole number": lambda v: _first_task(v).update(max_retries=1.5),
    r"tasks\[0\].prompt: a text": lambda v: _first_task(v).update(prompt=None),
    r"tasks\[0\].files: a list": lambda v: _first_task(v).update(files="src"),
    "points: 'half' is no number": lambda v: _first_task(v)["criteria"][0].update(points="half"),
    "critical: true or false": lambda v: _first_task(v)["criteria"][0].update(critical=1),
    "neither flip nor hold": lambda v: _first_task(v)["checks"][0].update(kind="never"),
    "run: a list": lambda v: _first_task(v)["checks"][0].update(run=None),
    r"tasks\[1\]: an object": lambda v: v["tasks"].__setitem__(1, []),
    "time_limit_minutes: a number": lambda v: _first_task(v).update(time_limit_minutes=True),
}


@pytest.mark.parametrize("message", SPOILT)
def test_a_spoilt_plan_is_refused_naming_the_place(message: str):
    value = copy.deepcopy(plan_to_json(PLAN))
    SPOILT[message](value)
    with pytest.raises(ValueError, match=message):
        plan_from_json(value)
