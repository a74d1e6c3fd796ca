"""A rendered plan is read back unchanged, with any texts in the plan."""

from hypothesis import example, given, settings

from mimir.domain.plan import Plan, Task
from mimir.planning import parser
from mimir.planning.renderer import render
from tests.support.plans import plans


@settings(deadline=None, derandomize=True, max_examples=60)
@given(plans())
@example(
    Plan(
        title="",
        tasks=(Task(id="a", title="", prompt="", worker_role=""),),
        notes="- [ ] boxes beside a task",
    )
)
def test_a_rendered_plan_is_read_back_as_it_was(plan: Plan):
    assert parser.parse_plan(render(plan)).plan == plan
