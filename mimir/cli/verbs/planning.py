"""Plans: made of a request, read from a file, and what is wrong with them said."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mimir.cli.arguments import PLAN_NAME, display_path
from mimir.cli.output import estimates, findings
from mimir.cli.session import CommandSession
from mimir.domain import money
from mimir.domain.agent import ALL_TOOLS
from mimir.domain.plan import Plan
from mimir.domain.run import RunBudget
from mimir.errors import Location, PlanError, UsageError
from mimir.planning import parser
from mimir.planning.check_json import json_shape
from mimir.planning.format.diagnostics import PlanFinding
from mimir.planning.lint.plan_check import check

if TYPE_CHECKING:
    from mimir.cli.facade import Mimir, Planned
    from mimir.settings import LoadedSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """How a request is to be planned."""

    request: str
    ecko: bool
    output: str | None
    """Where the plan is written. None: a fresh folder of `chains/`."""
    model: str
    """Empty: as the settings say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlan:
    """A plan's file, read and checked."""

    name: str
    """As people and the store see it."""
    plan: Plan
    findings: tuple[PlanFinding, ...]

    @property
    def can_run(self) -> bool:
        """True if nothing in it is an error."""
        return not any(map(findings.is_error, self.findings))


async def make_plan(
    session: CommandSession, mimir: "Mimir", loaded: "LoadedSettings", wanted: PlanRequest
) -> "Planned":
    """Let a request be planned, with a clock on a terminal.

    Raises:
        asyncio.CancelledError: Interrupted; what to do next was said.
    """
    try:
        with session.show_wait("Planning", loaded):
            return await mimir.plan(
                wanted.request,
                ecko=wanted.ecko,
                output=wanted.output,
                model=wanted.model,
                limits=limits(loaded),
            )
    except asyncio.CancelledError:
        session.console.note("interrupted: the planning is paused; what was answered is kept.")
        session.console.note("next: mimir resume")
        raise


def limits(loaded: "LoadedSettings") -> RunBudget:
    """Return the bounds of a run that the settings and flags say."""
    run = loaded.settings.run
    seconds = None if run.time_limit_minutes is None else run.time_limit_minutes * 60
    cost = None if run.max_cost is None else money.units(run.max_cost)
    return RunBudget(
        max_calls=run.max_calls, max_tokens=run.max_tokens, seconds=seconds, max_cost=cost
    )


def report_plan(session: CommandSession, planned: "Planned") -> None:
    """Say what planning came to, findings included, and what to do with it."""
    if session.json:
        shape = json_shape(planned.plan, planned.findings)
        session.console.json({**shape, "run": planned.run, "path": planned.path})
        return
    count = len(planned.plan.tasks)
    verb = "check" if planned.exit_code else "execute"
    for line in findings.as_lines(planned.findings, planned.path):
        session.console.say(line)
    session.console.say(findings.summary(planned.findings, count, planned.path))
    session.console.say(f"next: mimir {verb} {shorten_path(planned.path)}")


def tell_checked(session: CommandSession, path: Path) -> bool:
    """Say what is wrong with a plan's file; True if it can run.

    Raises:
        PlanError: It is no text, and a person asked; a script gets that as a finding.
    """
    try:
        checked = read_plan_file(session, path)
    except PlanError as error:
        if not session.json:
            raise
        session.console.json(json_shape(None, [_unreadable(error)]))
        return False
    learned = estimates.load_estimates_or_empty(session, checked.plan)
    if session.json:
        session.console.json(json_shape(checked.plan, checked.findings, learned))
    else:
        for line in findings.as_lines(checked.findings, checked.name):
            session.console.say(line)
        for line in estimates.as_lines(checked.plan, learned):
            session.console.say(line)
        count = len(checked.plan.tasks)
        session.console.say(findings.summary(checked.findings, count, checked.name))
    return checked.can_run


def print_warnings(session: CommandSession, found: Sequence[PlanFinding], name: str) -> None:
    """Say beside the results what is wrong with a plan that is about to run: each error, and how many warnings."""
    errors = [one for one in found if findings.is_error(one)]
    for line in findings.as_lines(errors, name):
        session.console.note(line)
    if len(found) > len(errors):
        count = len(found) - len(errors)
        session.console.note(
            f"warning: {name}: {count} to look at: mimir check {shorten_path(name)}"
        )


def read_plan_file(session: CommandSession, path: Path) -> CheckedPlan:
    """Read a plan's file and find what is wrong with it.

    Raises:
        PlanError: It is no text.
    """
    name = display_path(path, session.project)
    parsed = parser.parse_document(_near(path, session.project))
    found = check(parsed, tools=ALL_TOOLS, exists=lambda at: _exists(session.project, at))
    return CheckedPlan(name=name, plan=parsed.plan, findings=tuple(found))


def free_output(project: Path, output: str | None) -> str | None:
    """Return where to write, if that is free: a plan that is there already is never overwritten.

    Raises:
        UsageError: Something is there.
    """
    if output is None:
        return None
    path = project / output
    if path.is_dir():
        path = path / PLAN_NAME
    if path.exists():
        step = "Name another file, or remove that one."
        raise UsageError(f"--output {display_path(path, project)!r} exists.", next_step=step)
    return display_path(path, project)


def shorten_path(path: str) -> str:
    """Return the shortest name of a plan that the commands take."""
    return path.removesuffix(f"/{PLAN_NAME}")


def _unreadable(error: PlanError) -> PlanFinding:
    at = error.at or Location(file="", line=1)
    return PlanFinding(
        code=error.code,
        severity="error",
        message=str(error),
        suggestion=error.next_step or "",
        line=at.line,
        column=at.column,
    )


def _near(path: Path, project: Path) -> Path:
    """Return the path as short as it can be opened by: it is what a person is told."""
    return path.relative_to(project) if path.is_relative_to(project) else path


def _exists(project: Path, path: str) -> bool:
    try:
        return (project / path).exists()
    except (OSError, ValueError):
        return False
