"""Each broken plan is named: file, line, column, code, suggestion. And nothing else is an error in it."""

from typing import get_args

import pytest

from mimir.domain.finding import Finding
from mimir.planning import parser
from mimir.planning.format.diagnostics import CODES
from mimir.planning.lint.plan_check import check
from mimir.qc.checks.trial import TrialCode
from tests.support.broken_plans import BROKEN, WHOLE, Broken

TOOLS = ("read_file", "write_file", "edit_file", "run")
PROJECT = frozenset({"api.py", "tests/test_work.py"})


def findings(text: str) -> tuple[Finding, ...]:
    return check(parser.parse_plan(text, file="plan.md"), tools=TOOLS, exists=PROJECT.__contains__)


def test_complete_plan_has_no_finding():
    assert findings(WHOLE) == ()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.name)
def test_a_broken_plan_is_named_with_its_place(broken: Broken):
    named = [one for one in findings(broken.text) if one.code == broken.code]
    assert [(one.line, one.column) for one in named] == [broken.at]
    assert named[0].severity == broken.severity
    line = named[0].render("plan.md")
    assert line.startswith(
        f"plan.md:{broken.at[0]}:{broken.at[1]}: {broken.severity} {broken.code}: "
    )
    assert all(piece in line for piece in broken.says)
    assert "\n" not in line


FOLLOW = {
    "duplicate id": {"dependency-self"},
    "open prompt": {"criteria-missing"},
    "no prompt": {"check-missing"},
    "no criterion": {"check-criterion-unknown"},
    "criterion twice": {"check-criterion-unknown"},
    "check without a command": {"check-vacuous"},
    "glob over a test of another task": {"path-protected"},
}
"""Errors that another one brings with it."""


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.name)
def test_one_fault_is_one_error(broken: Broken):
    errors = {one.code for one in findings(broken.text) if one.severity == "error"}
    wanted = {broken.code} if broken.severity == "error" else set[str]()
    assert errors - FOLLOW.get(broken.name, set()) == wanted


def test_every_code_of_a_finding_is_shown_broken_once():
    elsewhere = {
        "json-unreadable",
        "json-shape",
        "label-in-prompt",
        "task-in-fence",
        "field-outside",
        "item-in-prompt",
        "criterion-nested",
        "criterion-beside",
        "task-unread",
        "plan-format",
        "files-overlap",
        # They depend on the definitions of the machine.
        "agent-unknown",
        "agent-unusable",
        # It depends on the approved specification.
        "requirement-lost",
    }
    elsewhere |= set(get_args(TrialCode))  # only a run of the check shows them
    assert {one.code for one in BROKEN} | elsewhere == set(CODES)


def test_every_error_has_a_suggestion():
    for one in (one for broken in BROKEN for one in findings(broken.text)):
        assert one.suggestion or one.severity == "warning", one
