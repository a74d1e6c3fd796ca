"""All findings of a plan, before anything runs: reading, structure and every task. Pure."""

from collections.abc import Callable, Collection

from mimir.domain.finding import Finding
from mimir.domain.plan import Plan
from mimir.planning.format.diagnostics import SourceMap
from mimir.planning.lint import plan_rules, task_rules
from mimir.planning.lint.task_rules import ProjectFacts
from mimir.planning.parser import ParsedPlan


def check(
    plan: ParsedPlan | Plan, *, tools: Collection[str], exists: Callable[[str], bool] | None = None
) -> tuple[Finding, ...]:
    """Return every finding of a plan by position; errors come before warnings.

    Args:
        plan: A parsed plan, or a plan without a text (every position is then line 1).
        tools: Names that a plan may list under `Tools`.
        exists: Whether a path, or any path of a glob, is in the project. None: unknown, and rules
            that need it are skipped.
    """
    found: list[Finding] = []
    places = SourceMap()
    if isinstance(plan, ParsedPlan):
        found += plan.findings
        places, plan = plan.places, plan.plan
    project = ProjectFacts(tools=frozenset(tools), exists=exists)
    unreadable = any(one.code in ("json-unreadable", "json-shape", "plan-format") for one in found)
    # An unreadable text has no tasks: a second finding would say nothing new.
    found += [
        one
        for one in plan_rules.check_structure(plan, places)
        if not (unreadable and one.code == "plan-empty")
    ]
    for number, task in enumerate(plan.tasks):
        found += task_rules.check_task(task, number, places, project)
    # Reader and rules can find one fault twice, in equal words: it counts once.
    return tuple(sorted(dict.fromkeys(found), key=_order))


def _order(one: Finding) -> tuple[int, int, bool, str]:
    return one.line, one.column, one.severity == "warning", one.code
