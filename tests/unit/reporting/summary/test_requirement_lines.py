"""Requirements of a report, whose criteria have no verdict."""

from types import SimpleNamespace

from mimir.domain.plan import Criterion
from mimir.domain.requirement import Requirement
from mimir.reporting.summary.requirement_lines import requirement_lines
from tests.support.whole_run import plan, step


def test_a_task_without_a_verdict_has_the_criteria_of_the_plan() -> None:
    criteria = (Criterion(id="c1", text="R1: it is written", points=None),)
    tasks = [SimpleNamespace(id="a", status="failed", criteria=())]
    known = [Requirement(id=id, text="when it runs, then it shall end") for id in ("R1", "R2")]

    lines = requirement_lines(known, tasks, plan(step("a", criteria=criteria)), is_red=False)

    assert [(one.state, one.criteria) for one in lines] == [
        ("unverified", ("a/c1",)), ("unverified", ()),
    ]  # fmt: skip
