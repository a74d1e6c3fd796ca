"""Controls of an attempt's passed checks; they run beside QC's review."""

from collections.abc import Sequence

from mimir.attempts.results import Judging
from mimir.attempts.services import AttemptServices
from mimir.domain.evidence import CheckRun
from mimir.qc.controls.control_runner import ControlCase
from mimir.qc.scope.test_owners import PendingTests, named_tests
from mimir.workspace.aio import await_all


async def run_controls(services: AttemptServices, state: Judging) -> Sequence[CheckRun]:
    """Run the controls that the settings of the run ask for, in the plan's order."""
    if services.facts.controls == "never":
        return ()
    required = [one for one in state.outcomes if one.required]
    is_rejected = any(one.state == "failed" for one in required)
    if is_rejected and services.facts.controls != "always":
        return ()
    checks = {check.id: check for check in services.task.checks}
    named = tuple(sorted(set(named_tests(services.task))))
    new_tests = PendingTests(paths=named, base=services.facts.base_tree)
    cases = [
        ControlCase(
            check=checks[one.check],
            kind=one.kind,
            before=one.before,
            after=one.after,
            base_tree=services.start.base_tree,
            changed=state.work.changed,
            answer=state.work.answer,
            new_tests=new_tests,
        )
        for one in required
        if one.state == "passed"
    ]
    return await await_all(services.checks.control(case) for case in cases)
