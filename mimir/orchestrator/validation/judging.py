"""Invocation of the agent that judges a response, in a context of its own."""

from collections.abc import Sequence
from dataclasses import replace

from mimir.domain.invocation import InvocationRequest
from mimir.domain.json_value import as_object, as_objects, as_text
from mimir.domain.run import RunBudget
from mimir.domain.value_class import value_class
from mimir.orchestrator.delegation.stored_response import load_response
from mimir.orchestrator.delegation.task_building import InvocationLimits, build_plan, require_fit
from mimir.orchestrator.runs import creation, execution
from mimir.orchestrator.services import ProjectServices
from mimir.orchestrator.validation.issues import ValidationIssue
from mimir.orchestrator.validation.judgement import (
    SCHEMA,
    add_judgement,
    describe_material,
    write_prompt,
)
from mimir.orchestrator.validation.stored_run import StoredInvocation
from mimir.registry.catalogue import AgentEntry
from mimir.store.protocol import ReadOps


@value_class
class JudgeSetup:
    """The agent that judges a response, with the limits of its run."""

    entry: AgentEntry
    limits: InvocationLimits
    """For a definition without own ones."""
    budget: RunBudget


async def judge_invocation(
    services: ProjectServices,
    stored: StoredInvocation,
    found: dict[str, object],
    judge: JudgeSetup,
    demands: Sequence[str],
) -> dict[str, object]:
    """Return a validation with the judgement of an agent.

    Args:
        services: Services of the project.
        stored: The validated invocation.
        found: Its validation by the engine.
        judge: The judging agent.
        demands: Requirements and qualities that it judges.
    """
    # An answer changes nothing.
    diff = ""
    if stored.work is not None and stored.tree != stored.run.base_tree:
        diff = await services.history.diff(stored.run.base_tree, stored.tree)
    calls = [one.text for one in stored.tool_log.values()]
    material = describe_material(stored.response, stored.task.prompt, diff, found, calls)
    request = InvocationRequest(
        prompt=write_prompt(demands), context=(material,), output_schema=SCHEMA
    )
    plan, definition = build_plan(judge.entry, request, judge.limits, lambda _: "")
    require_fit(request, definition, services.choices["worker"].context_tokens)
    # No call of the caller's session: the engine asks.
    own = replace(services, session="")
    run = await creation.create_run(
        own,
        plan,
        "",
        only=(),
        limits=judge.budget,
        from_run="",
        kind="agent",
        definitions=(definition,),
        request=request,
    )
    result = await execution.execute_run(
        own, run, workers=1, apply="never", limits=judge.budget, resumed=False
    )

    def look(reads: ReadOps) -> tuple[object, str]:
        response = load_response(reads, run, result.outcome, services.clock.now(), ())
        metadata = as_object(response.get("metadata"))
        return as_object(response.get("deliverables")).get("structured"), as_text(
            metadata.get("model")
        )

    structured, model = await services.store.read(look)
    # Its run failed, paused, or answered in another form.
    if not as_object(structured):
        issue = ValidationIssue(
            severity="minor",
            category="requirements",
            description=f"The judging agent gave no answer: {result.message}"[:500],
            recommendation=f"See: mimir report {run}",
        )
        listed = as_objects(found.get("identified_issues"))
        return {**found, "identified_issues": [*listed, issue.as_json()]}
    return add_judgement(
        found, as_object(structured), demands, material, {"run": run, "model": model}
    )
