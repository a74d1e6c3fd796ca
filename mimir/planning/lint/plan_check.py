"""All that is wrong with a plan, before anything runs. Pure: what the project holds is asked through a function."""

from collections.abc import Callable, Collection

from mimir.domain.plan import Plan
from mimir.planning.format.diagnostics import PlanFinding, SourceMap
from mimir.planning.lint import plan_rules, task_rules
from mimir.planning.lint.task_rules import ProjectFacts
from mimir.planning.parser import ParsedPlan


def check(
    plan: ParsedPlan | Plan,
    *,
    tools: Collection[str],
    exists: Callable[[str], bool] | None = None,
) -> tuple[PlanFinding, ...]:
    """Return every finding of a plan, those of its reading included, by place; errors before warnings of one place.

    Args:
        plan: What `chain.parse` returned, or a plan without a text (all places are then line 1).
        tools: Names that a plan may list under `Tools`.
        exists: Says whether a path, or any path that a glob names, is in the project. None: not known, and what would need it is not
            checked.
    """
    found: list[PlanFinding] = []
    places = SourceMap()
    if isinstance(plan, ParsedPlan):
        found += plan.findings
        places = plan.places
        plan = plan.plan
    project = ProjectFacts(tools=frozenset(tools), exists=exists)
    found += plan_rules.check_structure(plan, places)
    for number, task in enumerate(plan.tasks):
        found += task_rules.check_task(task, number, places, project)
    return tuple(sorted(dict.fromkeys(_settled(found)), key=_order))


def _order(one: PlanFinding) -> tuple[int, int, bool, str]:
    return one.line, one.column, one.severity == "warning", one.code


def _settled(found: list[PlanFinding]) -> list[PlanFinding]:
    """Leave out what only follows from a text that could not be read at all."""
    unreadable = any(one.code in ("json-unreadable", "json-shape") for one in found)
    return [one for one in found if not (unreadable and one.code == "plan-empty")]
