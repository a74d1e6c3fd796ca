"""Decision of a validation."""

import pytest

from mimir.orchestrator.validation.issues import (
    Repetition,
    Severity,
    ValidationIssue,
    compute_level,
    decide_recommendation,
    find_requirement_issues,
)


@pytest.mark.parametrize(
    ("status", "severity", "left", "decision"),
    [
        ("answered", "minor", 0, "accept"),
        ("completed", "important", 1, "refine"),
        ("completed", "critical", 0, "re-delegate"),
        ("failed", "minor", 2, "re-delegate"),
        ("cancelled", "minor", 2, "re-delegate"),
    ],
)
def test_a_decision_follows_from_status_severity_and_refinements(
    status: str, severity: Severity, left: int, decision: str
):
    issue = ValidationIssue(
        severity=severity, category="accuracy", description="d", recommendation="r"
    )
    assert decide_recommendation(status, [issue], refinements_left=left) == decision


def test_doubtful_proof_is_no_assurance():
    assert compute_level("executed", Repetition()) == "executed"
    assert compute_level("cited", Repetition(unverified=("x",))) == "none"
    assert compute_level("judged", Repetition(problems=("x",))) == "none"


def test_a_requirement_that_is_a_passed_criterion_is_no_issue():
    found = find_requirement_issues(["It is  fast", "It is safe"], ["it is fast"])
    assert [one.description for one in found] == ["Nothing decides: It is safe"]
