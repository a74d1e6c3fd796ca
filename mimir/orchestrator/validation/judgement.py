"""Judgement of a response by a model, and its limited use by the engine. Pure."""

import json
from collections.abc import Sequence

from mimir.domain.json_value import JsonObject, as_member, as_object, as_objects, as_text
from mimir.orchestrator.validation.issues import (
    CATEGORIES,
    SEVERITIES,
    ValidationIssue,
    decide_recommendation,
    next_call,
    sort_issues,
)

AGENT = "sdd/validator"
"""Address of the definition that judges."""
SCORES = ("low", "medium", "high")
MIN_QUOTE = 12
"""Characters of a quote that proves a requirement."""
MAX_ISSUES = 20
_TEXT = {"type": "string"}
SCHEMA = json.dumps(
    {
        "type": "object",
        "required": ["requirements", "overall_score"],
        "properties": {
            "requirements": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["number", "holds", "quote"],
                    "properties": {
                        "number": {"type": "integer"},
                        "holds": {"type": "boolean"},
                        "quote": _TEXT,
                    },
                },
            },
            "overall_score": {"enum": list(SCORES)},
            "completeness": _TEXT,
            "technical_accuracy": _TEXT,
            "integration_readiness": _TEXT,
            "issues": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "severity": {"enum": list(SEVERITIES)},
                        "category": {"enum": list(CATEGORIES)},
                        "description": _TEXT,
                        "recommendation": _TEXT,
                    },
                },
            },
        },
    }
)
DEFAULT_REQUIREMENT = "The result does what the task asks."


def write_prompt(demands: Sequence[str]) -> str:
    """Return the task of the judging agent."""
    lines = [f"{number}. {' '.join(text.split())}" for number, text in enumerate(demands, 1)]
    return "\n".join(
        (
            "Judge the result of another agent. The context has its task, its answer, its changes and its checks.",
            "Decide for each numbered requirement whether it holds, with a quote of at least "
            f"{MIN_QUOTE} characters from the context that shows it. Without such a quote it does not hold.",
            "",
            *lines,
        )
    )


def add_judgement(
    found: JsonObject,
    structured: JsonObject,
    demands: Sequence[str],
    material: str,
    judged_by: JsonObject,
) -> dict[str, object]:
    """Return a validation with the judgement of a model; it can only add issues.

    Args:
        found: The validation of the engine.
        structured: Answer of the model; untrusted.
        demands: The requirements, in the order of their numbers.
        material: Material of the model; quotes count only if it has them.
        judged_by: Run and model of the judgement.
    """
    issues = [_read_issue(one) for one in as_objects(found.get("identified_issues"))]
    issues += _judge_demands(structured, demands, material)
    issues += [_read_issue(one) for one in as_objects(structured.get("issues"))[:MAX_ISSUES]]
    issues = sort_issues(issues)
    left = found.get("refinements_left")
    decision = decide_recommendation(
        as_text(found.get("status")), issues, refinements_left=left if isinstance(left, int) else 0
    )
    return {
        **found,
        "decision_recommendation": decision,
        "next": next_call(decision, as_text(found.get("run"))),
        "identified_issues": [one.as_json() for one in issues],
        "refinement_suggestions": [one.recommendation for one in issues if one.severity != "minor"],
        "quality_assessment": {
            "overall_score": _limit_score(as_text(structured.get("overall_score")), issues),
            **{
                name: as_text(structured.get(name))[:2_000]
                for name in ("completeness", "technical_accuracy", "integration_readiness")
            },
            "judged_by": judged_by,
        },
    }


def _judge_demands(
    structured: JsonObject, demands: Sequence[str], material: str
) -> list[ValidationIssue]:
    known = {one.get("number"): one for one in as_objects(structured.get("requirements"))}
    # White space is collapsed on both sides, as in citations.
    words = " ".join(material.split())
    found: list[ValidationIssue] = []
    for number, text in enumerate(demands, 1):
        one = known.get(number, {})
        quote = " ".join(as_text(one.get("quote")).split())
        is_quoted = len(quote) >= MIN_QUOTE and quote in words
        if one.get("holds") is True and is_quoted:
            continue
        # An invented quote is no proof that the requirement fails.
        is_open = one.get("holds") is True
        reason = "Judged without a quote that is there" if is_open else "Judged as not fulfilled"
        found.append(
            ValidationIssue(
                severity="minor" if is_open else "important",
                category="requirements",
                description=f"{reason}: {text[:300]}",
                recommendation=f"Ask for it, and for proof of it: {text[:300]}",
            )
        )
    return found


def _read_issue(one: JsonObject) -> ValidationIssue:
    return ValidationIssue(
        severity=as_member(one.get("severity"), SEVERITIES) or "minor",
        category=as_member(one.get("category"), CATEGORIES) or "accuracy",
        description=as_text(one.get("description"))[:2_000],
        recommendation=as_text(one.get("recommendation"))[:2_000],
    )


def _limit_score(score: str, issues: Sequence[ValidationIssue]) -> str:
    """Return the score of the model, lowered to the limit that the issues allow."""
    worst = issues[0].severity if issues else "minor"
    # Praise of a model does not hide an issue that the engine found.
    most = {"critical": 0, "important": 1, "minor": 2}[worst]
    given = SCORES.index(score) if score in SCORES else 0
    return SCORES[min(most, given)]


def describe_material(
    response: JsonObject, task: str, diff: str, found: JsonObject, calls: Sequence[str]
) -> str:
    """Return the material of the judging agent about a response, each part bounded."""
    deliverables = as_object(response.get("deliverables"))
    checks = "\n".join(
        f"{as_text(one.get('command'))}: {as_text(one.get('end'))}"
        for one in as_objects(found.get("checks"))
    )
    parts = {
        "Task": task[:20_000],
        "Answer": as_text(deliverables.get("analysis"))[:20_000],
        "Structured answer": json.dumps(deliverables.get("structured") or {})[:10_000],
        "Changes": diff[:20_000],
        "Checks": checks[:5_000],
        "Results of its tools": "\n".join(text[:2_000] for text in calls)[:15_000],
    }
    return "\n\n".join(
        f"## {name}\n{text}" for name, text in parts.items() if text not in ("", "{}")
    )
