"""Agent definitions that a plan names: their findings and pinned definitions. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mimir.domain.agent import WRITE_TOOLS
from mimir.domain.finding import Finding
from mimir.domain.invocation import NO_FILES, PinnedDefinition, PinnedSkill, PlanAgent
from mimir.domain.plan import Plan, Task
from mimir.domain.program import PinnedProgram
from mimir.errors import UsageError
from mimir.orchestrator.delegation.task_building import (
    answer_limit,
    demand_citations,
    pinned_verification,
    trusted_verification,
)
from mimir.planning.format.diagnostics import SourceMap, make_finding
from mimir.registry.catalogue import (
    AgentCatalogue,
    AgentEntry,
    explain_unknown,
    normalize_address,
)


def check_agents(plan: Plan, places: SourceMap, catalogue: AgentCatalogue) -> list[Finding]:
    """Return the findings of the agents that tasks name."""
    found: list[Finding] = []
    for number, task in enumerate(plan.tasks):
        if not task.agent:
            continue
        at = places.position_of(number, "agent")
        try:
            entry = catalogue.find(task.agent)
        except UsageError as error:
            found.append(make_finding("agent-unknown", str(error), at, error.next_step or ""))
            continue
        hint = f"See: mimir agents show {entry.address}"
        found += [
            make_finding("agent-unusable", f"Task {task.id}: {fault}.", at, hint)
            for fault in _find_faults(task, entry)
        ]
    return found


def list_plan_agents(
    catalogue: AgentCatalogue, is_available: Callable[[AgentEntry], bool]
) -> tuple[PlanAgent, ...]:
    """Return the definitions that a plan may name, those of mimir last.

    Args:
        catalogue: The definitions.
        is_available: Whether this installation has the commands that a definition needs.
    """
    entries = [one for one in catalogue.entries if not one.hidden_by and _can_be_named(one)]
    # The list is bounded, and the user's own definitions say most.
    entries.sort(key=lambda one: one.definition.source.location == "shipped")
    return tuple(
        PlanAgent(
            address=one.address,
            kind=one.definition.kind,
            description=one.definition.description,
            may_write=one.definition.source.is_trusted,
            needs_checks=trusted_verification(one.definition) == "checks",
        )
        for one in entries
        if is_available(one)
    )


def _can_be_named(entry: AgentEntry) -> bool:
    definition = entry.definition
    if definition.kind == "cli":
        return definition.is_usable and definition.source.is_trusted
    return definition.is_usable and bool(entry.grant.granted)


def check_plan_agents(
    plan: Plan, places: SourceMap, agents: Sequence[PlanAgent]
) -> Sequence[Finding]:
    """Return the findings of the agents that a plan of the PM names."""
    known = {one.address: one for one in agents}
    found: list[Finding] = []
    for number, task in enumerate(plan.tasks):
        if not task.agent:
            continue
        at = places.position_of(number, "agent")
        agent = known.get(normalize_address(task.agent))
        if agent is None:
            listed = ", ".join(list(known)[:20])
            hint = (
                f"Use one of these, or leave the field out: {listed}." if known else "Leave it out."
            )
            message = explain_unknown(task.agent, known)
            found.append(make_finding("agent-unknown", message, at, hint))
            continue
        if task.files and not agent.may_write:
            faults = [f"{agent.address} may only read, but the task names Files"]
        else:
            faults = list(_find_unchecked(task, agent.address)) if agent.needs_checks else []
        hint = "Name another agent, or none."
        found += [
            make_finding("agent-unusable", f"Task {task.id}: {fault}.", at, hint)
            for fault in faults
        ]
    return found


def _find_faults(task: Task, entry: AgentEntry) -> Iterator[str]:
    definition = entry.definition
    is_program = definition.kind == "cli"
    if not definition.is_usable:
        yield f"{entry.address} has errors or is disabled"
    elif not definition.source.is_trusted and is_program:
        yield f"{entry.address} runs a program and is not trusted"
    elif not definition.source.is_trusted and task.files:
        yield f"{entry.address} is not trusted and may only read, but the task names Files"
    elif not is_program and not _common_tools(task, entry):
        yield f"{entry.address} has none of the tools of the task"
    elif trusted_verification(definition) == "checks":
        yield from _find_unchecked(task, entry.address)


def _find_unchecked(task: Task, address: str) -> Iterator[str]:
    """Yield a fault if checks alone verify an agent, and a criterion has none."""
    decided = {name for check in task.checks for name in check.criteria}
    left = [one.id for one in task.criteria if one.id not in decided]
    if left:
        yield f"{address} is verified by checks alone (verify: checks), and {left[0]} has no check"


def pin_agents(
    plan: Plan,
    catalogue: AgentCatalogue,
    pin_program: Callable[[AgentEntry], PinnedProgram],
    pin_skills: Callable[[AgentEntry], Sequence[PinnedSkill]],
) -> tuple[Plan, tuple[PinnedDefinition, ...]]:
    """Return the plan with the workers of its agents, and their definitions.

    Args:
        plan: A plan without findings of its agents.
        catalogue: The definitions.
        pin_program: Returns the program of a `cli` definition.
        pin_skills: Returns the skills of a definition that mimir's own agent loop works for.
    """
    pinned: dict[str, PinnedDefinition] = {}
    tasks: list[Task] = []
    for task in plan.tasks:
        if not task.agent:
            tasks.append(task)
            continue
        entry = catalogue.find(task.agent)
        definition = pinned.get(entry.address) or _pin_definition(entry, pin_program, pin_skills)
        pinned[entry.address] = definition
        tasks.append(_assign_worker(task, entry, definition))
    return replace(plan, tasks=tuple(tasks)), tuple(pinned.values())


def _pin_definition(
    entry: AgentEntry,
    pin_program: Callable[[AgentEntry], PinnedProgram],
    pin_skills: Callable[[AgentEntry], Sequence[PinnedSkill]],
) -> PinnedDefinition:
    definition = entry.definition
    is_program = definition.kind == "cli"
    return PinnedDefinition(
        address=entry.address,
        path=definition.source.path,
        hash=definition.source.hash,
        prompt=definition.prompt,
        program=pin_program(entry) if is_program else None,
        skills=() if is_program else tuple(pin_skills(entry)),
        output_schema=definition.output_schema,
        verify=pinned_verification(trusted_verification(definition)),
        max_tokens=answer_limit(definition),
        temperature=definition.temperature,
    )


def _assign_worker(task: Task, entry: AgentEntry, definition: PinnedDefinition) -> Task:
    seconds = entry.definition.limits.timeout_seconds
    limit = task.time_limit_minutes
    # An untrusted definition gets tools that read; its changes would be left out.
    files = task.files if entry.definition.source.is_trusted else (NO_FILES,)
    return replace(
        task,
        worker_role=definition.role,
        prompt=demand_citations(task.prompt, definition),
        tools=() if definition.program else _common_tools(task, entry),
        files=files,
        model=task.model if definition.program is None and task.model else _model_of(entry),
        time_limit_minutes=limit if seconds is None else min(limit, seconds / 60),
    )


def _model_of(entry: AgentEntry) -> str:
    return "" if entry.definition.kind == "cli" else entry.model


def _common_tools(task: Task, entry: AgentEntry) -> tuple[str, ...]:
    tools = entry.grant.granted
    if task.tools:
        tools = tuple(tool for tool in tools if tool in task.tools)
    trusted = entry.definition.source.is_trusted
    return tuple(tool for tool in tools if trusted or tool not in WRITE_TOOLS)
