"""`mimir chain` makes a plan of a request; `mimir check` lists the findings of a plan."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mimir.cli.arguments import PLAN_NAME, display_path, find_plan_or_newest, read_request
from mimir.cli.commands.options import (
    Ecko,
    Model,
    Output,
    Pattern,
    PlanName,
    Record,
    Request,
    TryChecks,
)
from mimir.cli.session import CommandSession
from mimir.domain.value_class import value_class
from mimir.errors import Location, Paused, PlanError, UsageError

if TYPE_CHECKING:
    from mimir.domain.finding import Finding
    from mimir.domain.invocation import PinnedDefinition, PinnedSkill
    from mimir.domain.plan import Plan
    from mimir.domain.run import RunBudget
    from mimir.orchestrator.api import Mimir
    from mimir.orchestrator.patterns.choose import Following, PatternOptions
    from mimir.orchestrator.patterns.planning_run import PlanningResult
    from mimir.planning.format.diagnostics import SourceMap
    from mimir.qc.scope.owned_tests import OwnedTest
    from mimir.registry.catalogue import AgentEntry
    from mimir.settings.layers import LoadedSettings


@value_class
class PlanRequest:
    """A request and how it is planned."""

    request: str
    ecko: bool
    output: str | None
    """File of the plan. None: a new folder of `chains/`."""
    model: str
    """Empty: the model of the settings."""
    then: "Following" = "stop"
    """Next step after the plan."""
    only: "Sequence[str]" = ()
    """Tasks of the execution; empty: all."""
    from_run: str = ""
    """Run of which the execution reuses completed tasks; empty: none."""


@value_class
class CheckedPlan:
    """A plan file with its findings."""

    name: str
    """Its path as it is displayed and stored."""
    plan: "Plan"
    findings: "tuple[Finding, ...]"
    places: "SourceMap"
    """Positions in the file."""
    owners: "tuple[OwnedTest, ...]"

    @property
    def can_run(self) -> bool:
        """True if no finding is an error."""
        return not any(one.severity == "error" for one in self.findings)


def chain(
    session: CommandSession,
    request: Request = None,
    ecko: Ecko = False,
    pattern: Pattern = None,
    output: Output = None,
    model: Model = None,
    record: Record = None,
) -> int:
    """Make a plan of a request.

    REQUEST is text, "-" for standard input, or @FILE. The plan is a file in chains/.
    """
    if not request:
        raise UsageError("The request is missing.", next_step='Write it: mimir chain "REQUEST"')
    options = PlanRequest(
        request=read_request(request, session.project),
        ecko=ecko,
        output=require_free_output(session.project, output),
        model=model or "",
    )
    session.record = record
    loaded = session.load({"llm.model": model, "patterns.default": pattern})
    session.require_model(loaded)

    async def job() -> int:
        async with session.open(loaded) as mimir:
            result = await make_plan(session, mimir, loaded, options)
        report_plan(session, result)
        return result.exit_code

    return plan_until_paused(session, job())


def check(session: CommandSession, plan: PlanName = None, run: TryChecks = False) -> int:
    """List the findings of a plan.

    PLAN is a file or a folder of chains/. Default: the newest plan. Nothing is executed without
    --run, which runs the checks of a plan without errors on your files as they are.
    """
    from mimir.cli.output import estimates, findings
    from mimir.planning.check_json import json_shape

    path = find_plan_or_newest(session.project, plan)
    try:
        checked = read_plan_file(session, path)
    except PlanError as error:
        # A script gets an unreadable file as a finding, a user as an error.
        if not session.json:
            raise
        session.console.json(json_shape(None, [_unreadable(error)]))
        return error.exit_code
    if run and checked.can_run:
        checked = _try_checks(session, checked)
    learned = estimates.load_estimates_or_empty(session, checked.plan)
    if session.json:
        session.console.json(json_shape(checked.plan, checked.findings, learned, checked.owners))
    else:
        count = len(checked.plan.tasks)
        for line in (
            *findings.as_lines(checked.findings, checked.name),
            *estimates.as_lines(checked.plan, learned),
            *findings.owner_lines(checked.owners),
            findings.summary(checked.findings, count, checked.name),
        ):
            session.console.say(line)
    return 0 if checked.can_run else PlanError.exit_code


def _try_checks(session: CommandSession, checked: CheckedPlan) -> CheckedPlan:
    """Run the checks of a plan on the base, and add their findings."""
    loaded = session.load()

    async def job() -> "Sequence[Finding]":
        async with session.open(loaded) as mimir:
            with session.show_wait("Running the checks", loaded):
                return await mimir.try_checks(checked.plan, checked.places)

    return replace(checked, findings=(*checked.findings, *session.run(job())))


async def make_plan(
    session: CommandSession, mimir: "Mimir", loaded: "LoadedSettings", options: PlanRequest
) -> "PlanningResult":
    """Plan a request; an interruption prints the next step."""
    import asyncio

    from mimir.cli.output.people.question_prompt import ask_open_questions
    from mimir.domain.run import INPUT

    run = ""
    try:
        run = await mimir.create_planning_run(
            options.request,
            ecko=options.ecko,
            output=options.output,
            model=options.model,
            limits=run_limits(loaded),
            pattern=_read_pattern(session, loaded, options),
        )
        while True:
            try:
                with session.show_wait("Planning", loaded, lambda: mimir.planning_step):
                    return await mimir.make_plan(run)
            except Paused as paused:
                if paused.reason != INPUT or not session.console.can_ask or session.json:
                    raise
                # The user left it open: the inbox has it.
                if not await ask_open_questions(session, mimir, run):
                    raise
    except asyncio.CancelledError:
        session.console.note("interrupted: planning is paused; no answer is lost.")
        session.console.note(f"next: mimir resume {run}".rstrip())
        raise


def plan_until_paused(session: CommandSession, job: "Coroutine[object, object, int]") -> int:
    """Do a job that plans; a pause until the user answers is no error. Return the exit code."""
    from mimir.domain.run import INPUT

    try:
        return session.run(job)
    except Paused as paused:
        if paused.reason != INPUT:
            raise
        step = paused.next_step or ""
        shape = {"outcome": "paused", "reason": INPUT, "message": str(paused), "next": step}
        session.show(shape, f"paused: {paused}", f"next: {step}")
        return paused.exit_code


def _read_pattern(
    session: CommandSession, loaded: "LoadedSettings", request: PlanRequest
) -> "PatternOptions":
    from mimir.orchestrator.patterns.choose import PatternOptions

    own = loaded.settings.patterns
    return PatternOptions(
        name=own.default,
        rounds=own.rounds,
        rejections=own.rejections,
        is_terminal=session.console.can_ask and not session.json,
        then=request.then,
        only=tuple(request.only),
        from_run=request.from_run,
    )


def run_limits(loaded: "LoadedSettings") -> "RunBudget":
    """Return the limits of a run from settings and flags."""
    from mimir.domain import money
    from mimir.domain.run import RunBudget

    run = loaded.settings.run
    seconds = None if run.time_limit_minutes is None else run.time_limit_minutes * 60
    cost = None if run.max_cost is None else money.units(run.max_cost)
    return RunBudget(
        max_calls=run.max_calls, max_tokens=run.max_tokens, seconds=seconds, max_cost=cost
    )


def report_plan(session: CommandSession, result: "PlanningResult") -> None:
    """Print a new plan with its findings and the next step."""
    from mimir.cli.output import findings
    from mimir.planning.check_json import json_shape
    from mimir.qc.scope.owned_tests import list_owned_tests

    if session.json:
        owners = list_owned_tests(result.plan, _make_finder(session.project))
        shape = json_shape(result.plan, result.findings, owners=owners)
        session.console.json({**shape, "run": result.run, "path": result.path})
        return
    verb = "check" if result.exit_code else "execute"
    note_pattern(session, result)
    for line in (
        *findings.as_lines(result.findings, result.path),
        findings.summary(result.findings, len(result.plan.tasks), result.path),
        f"next: mimir {verb} {shorten_path(result.path)}",
    ):
        session.console.say(line)


def note_pattern(session: CommandSession, result: "PlanningResult") -> None:
    """Print the pattern that mimir chose, and why."""
    chosen = result.pattern
    if chosen.reason:
        session.console.note(f"pattern {chosen.pattern}: {chosen.reason}")
    if chosen.warning:
        session.console.note(f"warning: {chosen.warning}")


def print_warnings(session: CommandSession, found: "Sequence[Finding]", name: str) -> None:
    """Print the errors of a plan and the number of its warnings to standard error."""
    from mimir.cli.output import findings

    errors = [one for one in found if findings.is_error(one)]
    for line in findings.as_lines(errors, name):
        session.console.note(line)
    if count := len(found) - len(errors):
        noun = "finding" if count == 1 else "findings"
        session.console.note(f"warning: {name}: {count} {noun}: mimir check {shorten_path(name)}")


def read_plan_file(session: CommandSession, path: Path) -> CheckedPlan:
    """Read and check a plan file; a file that is not text is a `PlanError`."""
    from mimir.domain.agent import NAMED_TOOLS
    from mimir.planning import parser
    from mimir.planning.lint import plan_check
    from mimir.qc.scope.owned_tests import list_owned_tests

    project, exists = session.project, _make_finder(session.project)
    # Errors name the path that the parser opened, so it is relative where it can be.
    short = path.relative_to(project) if path.is_relative_to(project) else path
    parsed = parser.parse_document(short)
    found = plan_check.check(parsed, tools=NAMED_TOOLS, exists=exists)
    if any(task.agent for task in parsed.plan.tasks):
        from mimir.bootstrap.agents.definition_files import open_agent_files
        from mimir.orchestrator.delegation.plan_agents import check_agents

        catalogue = open_agent_files(project, session.load()).load()
        found = [*found, *check_agents(parsed.plan, parsed.places, catalogue)]
    name = display_path(path, project)
    return CheckedPlan(
        name=name,
        plan=parsed.plan,
        findings=tuple(found),
        places=parsed.places,
        owners=list_owned_tests(parsed.plan, exists),
    )


def pin_agents(
    session: CommandSession, loaded: "LoadedSettings", plan: "Plan"
) -> "tuple[Plan, Sequence[PinnedDefinition]]":
    """Return a plan with the agents that its tasks name, and their definitions."""
    if not any(task.agent for task in plan.tasks):
        return plan, ()
    from mimir.bootstrap.agents.definition_files import open_agent_files
    from mimir.bootstrap.agents.programs import pin_program
    from mimir.orchestrator.delegation import plan_agents

    files, own = open_agent_files(session.project, loaded), loaded.settings.agents

    def pin_skills(entry: "AgentEntry") -> "Sequence[PinnedSkill]":
        skills, refused = files.pin_skills(entry)
        for sentence in refused:
            session.console.note(f"warning: {sentence}")
        return skills

    return plan_agents.pin_agents(
        plan,
        files.load(),
        lambda entry: pin_program(entry.definition, entry.address, own),
        pin_skills,
    )


def _make_finder(project: Path) -> "Callable[[str], bool]":
    def exists(name: str) -> bool:
        try:
            return (project / name).exists()
        except (OSError, ValueError):
            return False

    return exists


def require_free_output(project: Path, output: str | None) -> str | None:
    """Return the file for a new plan; an existing file is a `UsageError`."""
    if output is None:
        return None
    path = project / output
    if path.is_dir():
        path = path / PLAN_NAME
    if path.exists():
        step = "Name another file, or remove the existing one."
        raise UsageError(f"--output {display_path(path, project)!r} exists.", next_step=step)
    return display_path(path, project)


def shorten_path(path: str) -> str:
    """Return the shortest name of a plan that the commands accept."""
    return path.removesuffix(f"/{PLAN_NAME}")


def _unreadable(error: PlanError) -> "Finding":
    from mimir.domain.finding import Finding

    at = error.at or Location(file="", line=1)
    return Finding(
        code=error.code,
        severity="error",
        message=str(error),
        suggestion=error.next_step or "",
        line=at.line,
        column=at.column,
    )
