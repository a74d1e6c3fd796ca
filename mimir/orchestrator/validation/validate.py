"""Validation of an invocation: the stored run decides, not the caller."""

from collections.abc import Sequence

from mimir.domain.json_value import JsonObject, as_object, as_objects, as_text, as_texts
from mimir.domain.value_class import value_class
from mimir.orchestrator.runs.inspection import find_dead_processes
from mimir.orchestrator.services import ProjectServices
from mimir.orchestrator.validation.issues import (
    Repetition,
    ValidationIssue,
    compute_level,
    decide_recommendation,
    find_issues,
    find_requirement_issues,
    next_call,
)
from mimir.orchestrator.validation.judgement import DEFAULT_REQUIREMENT
from mimir.orchestrator.validation.judging import JudgeSetup, judge_invocation
from mimir.orchestrator.validation.repetition import repeat_proof
from mimir.orchestrator.validation.stored_run import StoredInvocation, load_invocation


@value_class
class ValidationRequest:
    """Request of a caller for more validation than the run's own proof."""

    requirements: tuple[str, ...] = ()
    quality_criteria: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    """Command lines."""
    judge: JudgeSetup | None = None
    """Agent that judges them. None: nothing judges."""


async def validate_invocation(
    services: ProjectServices, run: str, request: ValidationRequest
) -> dict[str, object]:
    """Repeat the proof of an ended invocation; return the result of `validate_output`.

    Raises:
        UsageError: The run is no invocation, or has not ended.
        Paused: The sandbox or the disk failed.
    """
    dead, now = await find_dead_processes(services, run), services.clock.now()
    stored = await services.store.read(
        lambda reads: load_invocation(
            reads, run, dead=dead, now=now, refinements=services.limits.refinements
        )
    )
    repetition = await repeat_proof(services, stored, request.checks)
    passed = [one.text for one in stored.criteria if one.state == "passed"]
    issues = find_issues(stored.response, repetition)
    demands = (*request.requirements, *request.quality_criteria)
    # A judge decides them afterwards.
    if request.judge is None:
        issues += find_requirement_issues(demands, passed)
    result = describe_validation(stored, repetition, issues)
    if request.judge is None:
        return result
    return await judge_invocation(
        services, stored, result, request.judge, demands or (DEFAULT_REQUIREMENT,)
    )


def describe_validation(
    stored: StoredInvocation, repetition: Repetition, issues: Sequence[ValidationIssue]
) -> dict[str, object]:
    """Return the result of a validation as JSON values."""
    response = stored.response
    status, assurance = as_text(response.get("status")), as_object(response.get("assurance"))
    decision = decide_recommendation(status, issues, refinements_left=stored.refinements_left)
    unverified = list(repetition.unverified)
    return {
        "schema": 1,
        "run": stored.run.id,
        "agent": stored.run.agent,
        "status": status,
        "decision_recommendation": decision,
        "assurance": {
            **assurance,
            "level": compute_level(as_text(assurance.get("level")), repetition),
            "citations": {
                "total": repetition.citations,
                "verified": max(0, repetition.citations - len(unverified)),
                "unverified": unverified,
            },
        },
        "checks": [
            {
                "check": check.id,
                "command": check.command_line,
                "green": run.green,
                "end": run.describe_end,
            }
            for check, run in repetition.runs
        ],
        "identified_issues": [one.as_json() for one in issues],
        "refinement_suggestions": [one.recommendation for one in issues if one.severity != "minor"],
        "alternative_approaches": _list_alternatives(response, decision),
        "memory": [
            {name: one.get(name) for name in ("id", "state", "feedback", "relevance")}
            for one in as_objects(response.get("memory_operations"))
        ],
        "refinements_left": max(0, stored.refinements_left),
        "next": next_call(decision, stored.run.id),
    }


def _list_alternatives(response: JsonObject, decision: str) -> list[str]:
    others = as_object(response.get("recommendations"))
    found = [f"Ask {one}." for one in as_texts(others.get("additional_specialists"))]
    if decision == "re-delegate":
        found.append("Give the task to another definition, or divide it.")
    return found
