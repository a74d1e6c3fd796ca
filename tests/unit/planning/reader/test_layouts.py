"""Every layout is read whole: tasks, dependencies, and every character of every prompt."""

import pytest

from mimir.domain.plan import Plan
from mimir.planning import parser
from tests.support import layouts


@pytest.mark.parametrize(("name", "prompt"), layouts.CASES)
def test_a_prompt_is_kept_byte_for_byte_in_every_layout(name: str, prompt: str):
    parsed = parser.parse_plan(layouts.EVERY[name](prompt))
    assert [task.prompt for task in parsed.plan.tasks] == [prompt, layouts.SECOND]
    assert [one.render("f") for one in parsed.findings if one.severity == "error"] == []


def fields(plan: Plan) -> list[tuple[object, ...]]:
    return [
        (t.id, t.title, t.worker_role, t.qc_role, t.dependencies, [c.text for c in t.criteria])
        for t in plan.tasks
    ]


@pytest.mark.parametrize("name", layouts.EVERY)
def test_every_layout_gives_the_same_plan(name: str):
    plan = parser.parse_plan(layouts.EVERY[name]("Do it.")).plan
    assert fields(plan) == [
        ("task-1.1", "First", "Worker", "Checker", (), ["works"]),
        ("task-2.1", "Second", "Worker", "", ("task-1.1",), ["works"]),
    ]
    assert [task.max_retries for task in plan.tasks] == [0, 2]
