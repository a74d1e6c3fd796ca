"""Issues of a validated response, and the decision that follows from them. Pure."""

from collections.abc import Sequence
from typing import Literal

from mimir.domain.evidence import CheckRun
from mimir.domain.json_value import JsonObject, as_object, as_objects, as_text, as_texts
from mimir.domain.plan import Check
from mimir.domain.value_class import value_class
from mimir.orchestrator.proposals.rules import normalise

Severity = Literal["critical", "important", "minor"]
Category = Literal["completeness", "accuracy", "integration", "requirements"]
Recommendation = Literal["accept", "refine", "re-delegate"]
SEVERITIES: tuple[Severity, ...] = ("critical", "important", "minor")
CATEGORIES: tuple[Category, ...] = ("completeness", "accuracy", "integration", "requirements")


@value_class
class ValidationIssue:
    """One thing that is wrong with a response."""

    severity: Severity
    category: Category
    description: str
    recommendation: str

    def as_json(self) -> JsonObject:
        """Return it as in the result of `validate_output`."""
        return {
            "severity": self.severity,
            "category": self.category,
            "description": self.description,
            "recommendation": self.recommendation,
        }


@value_class
class Repetition:
    """Result of the repeated checks and look-ups of an invocation."""

    runs: Sequence[tuple[Check, CheckRun]] = ()
    """Each check with its deciding run."""
    citations: int = 0
    """Citations of the answer."""
    unverified: Sequence[str] = ()
    """Citations that do not hold, each with the reason."""
    stale: Sequence[str] = ()
    """Delivered or cited files that differ from the base and from the result by now."""
    problems: Sequence[str] = ()
    """Broken seals and changed records of the run."""

    @property
    def red(self) -> Sequence[tuple[Check, CheckRun]]:
        """The checks that are red now."""
        return [(check, run) for check, run in self.runs if not run.green]


def find_issues(response: JsonObject, repetition: Repetition) -> list[ValidationIssue]:
    """Return the issues of a stored response, the most severe first."""
    found = [*_list_status_issues(response), *_list_repeated_issues(repetition)]
    return sort_issues(found)


def sort_issues(found: Sequence[ValidationIssue]) -> list[ValidationIssue]:
    """Return issues in the order of their severity."""
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def decide_recommendation(
    status: str, issues: Sequence[ValidationIssue], *, refinements_left: int
) -> Recommendation:
    """Decide whether a response is accepted, refined, or its task given to another agent."""
    if status in ("failed", "cancelled"):
        return "re-delegate"
    if all(one.severity == "minor" for one in issues):
        return "accept"
    return "refine" if refinements_left > 0 else "re-delegate"


def next_call(decision: Recommendation, run: str) -> str:
    """Return the next call of a caller after a response."""
    match decision:
        case "accept":
            return f"Use the response of {run}; decide about the memories that it proposes."
        case "refine":
            return f'Call spawn_agent with refines "{run}" and the issues.'
        case "re-delegate":
            return "Call spawn_agent with another chatmode, or do it yourself."


def compute_level(level: str, repetition: Repetition) -> str:
    """Return the assurance that is left of `level` after the repetition."""
    # One doubt takes the whole assurance: fail closed.
    is_doubtful = repetition.problems or repetition.red or repetition.unverified
    return "none" if is_doubtful else level


def find_requirement_issues(texts: Sequence[str], passed: Sequence[str]) -> list[ValidationIssue]:
    """Return an issue for each requirement that is no passed criterion of the run."""
    known = {normalise(text) for text in passed}
    return [
        ValidationIssue(
            severity="minor",
            category="requirements",
            description=f"Nothing decides: {text[:300]}",
            recommendation="Give a command that decides it in `checks`, or set `judge`.",
        )
        for text in texts
        if normalise(text) not in known
    ]


def _list_status_issues(response: JsonObject) -> list[ValidationIssue]:
    found: list[ValidationIssue] = []
    status, assurance = as_text(response.get("status")), as_object(response.get("assurance"))
    error = as_object(response.get("error"))
    if status not in ("answered", "completed"):
        cause = as_text(error.get("cause"))
        found.append(
            ValidationIssue(
                severity="critical" if status in ("failed", "cancelled") else "important",
                category="completeness",
                description=f"The invocation is {status}{f' ({cause})' if cause else ''}.",
                recommendation="Refine the task, or give it to another agent.",
            )
        )
    counts = as_object(assurance.get("criteria"))
    for name in ("failed", "unverified"):
        count = counts.get(name)
        if isinstance(count, int) and count:
            found.append(
                ValidationIssue(
                    severity="critical" if name == "failed" else "important",
                    category="requirements",
                    description=f"{count} of its criteria {'is' if count == 1 else 'are'} {name}.",
                    recommendation=f"See which: {as_text(response.get('next'))}",
                )
            )
    metadata = as_object(response.get("metadata"))
    found += [
        ValidationIssue(
            severity="minor",
            category="completeness",
            description=as_text(one.get("message")),
            recommendation="Read the answer with that in mind.",
        )
        for one in as_objects(metadata.get("findings"))
    ]
    found += [
        ValidationIssue(
            severity="minor",
            category="completeness",
            description=f"A limit was reached: {one}",
            recommendation="Give a smaller task.",
        )
        for one in as_texts(metadata.get("limits_reached"))
    ]
    if status == "answered" and assurance.get("level") == "none":
        citations = as_object(assurance.get("citations"))
        if not citations.get("total"):
            found.append(
                ValidationIssue(
                    severity="minor",
                    category="accuracy",
                    description="The answer cites nothing, so nothing of it is verified.",
                    recommendation="Ask for a citation of each fact.",
                )
            )
    return found


def _list_repeated_issues(repetition: Repetition) -> list[ValidationIssue]:
    found = [
        ValidationIssue(
            severity="critical",
            category="accuracy",
            description=f"The stored run was changed: {problem}",
            recommendation="Do not use the response; see: mimir verify",
        )
        for problem in repetition.problems
    ]
    found += [
        ValidationIssue(
            severity="critical",
            category="requirements",
            description=f"The check {check.id} is red on the result: {check.command_line[:300]} "
            f"({run.describe_end})",
            recommendation="Refine the task with this check and its output: "
            f"{_last_line(run.output_tail)}",
        )
        for check, run in repetition.red
    ]
    found += [
        ValidationIssue(
            severity="important",
            category="accuracy",
            description=f"A citation is not supported: {one}",
            recommendation="Do not use the statement that it supports; ask for the source.",
        )
        for one in repetition.unverified
    ]
    found += [
        ValidationIssue(
            severity="important",
            category="integration",
            description=f"{path} has changed since the run.",
            recommendation="Refine the task, so that it works on the file as it is now.",
        )
        for path in repetition.stale
    ]
    return found


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing."
