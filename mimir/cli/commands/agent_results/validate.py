"""`mimir validate`: the proof of an invocation again, and a recommendation."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mimir.orchestrator.api import Mimir
    from mimir.orchestrator.validation.judging import JudgeSetup
    from mimir.settings.layers import LoadedSettings

Invocation = Annotated[str, typer.Argument(metavar="RUN", help="Run id or its beginning.")]
Requirements = Annotated[
    list[str] | None,
    typer.Option("--requirement", metavar="TEXT", help="Requirement of the result."),
]
Qualities = Annotated[
    list[str] | None,
    typer.Option("--quality", metavar="TEXT", help="Quality that a judge examines."),
]
Judge = Annotated[
    bool, typer.Option("--judge", help="Let an agent judge requirements and qualities too.")
]
Commands = Annotated[
    list[str] | None,
    typer.Option("--check", metavar="CMD", help="Command that must pass on the result."),
]


def validate(
    session: CommandSession,
    run: Invocation,
    requirement: Requirements = None,
    quality: Qualities = None,
    check: Commands = None,
    judge: Judge = False,
) -> int:
    """Repeat the checks and look-ups of an invocation, and recommend an action.

    The exit code is 0 if it recommends to accept the response.
    """
    from mimir.orchestrator.validation.validate import ValidationRequest

    loaded = session.load()
    request = ValidationRequest(
        requirements=tuple(requirement or ()),
        quality_criteria=tuple(quality or ()),
        checks=tuple(check or ()),
        judge=_find_judge(session, loaded) if judge else None,
    )
    if judge:
        session.require_model(loaded)

    async def repeat(mimir: "Mimir") -> dict[str, object]:
        return await mimir.validate(await mimir.find_run(run), request)

    found = session.use_project(repeat, loaded)
    if session.json:
        session.console.json(found)
    else:
        session.console.say("\n".join(_page(found, session.console.width)))
    return int(found["decision_recommendation"] != "accept")


def _find_judge(session: CommandSession, loaded: "LoadedSettings") -> "JudgeSetup":
    """Return the agent that judges; a definition of the user comes first."""
    from mimir.bootstrap.agents.definition_files import open_agent_files
    from mimir.cli.commands.plan_commands import run_limits
    from mimir.orchestrator.delegation.task_building import InvocationLimits
    from mimir.orchestrator.validation.judgement import AGENT
    from mimir.orchestrator.validation.judging import JudgeSetup

    own = loaded.settings.agents
    return JudgeSetup(
        entry=open_agent_files(session.project, loaded).load().find(AGENT),
        limits=InvocationLimits(tool_calls=own.tool_calls, timeout_seconds=own.timeout_seconds),
        budget=run_limits(loaded),
    )


def _page(found: "Mapping[str, object]", width: int) -> list[str]:
    from mimir.cli.console import clean_line
    from mimir.cli.layout import wrap
    from mimir.domain.json_value import as_object, as_objects, as_text

    assurance = as_object(found.get("assurance"))
    lines = [
        f"{found['decision_recommendation']}: {found['run']}",
        f"  assurance: {as_text(assurance.get('level'))}",
    ]
    quality = as_object(found.get("quality_assessment"))
    if score := as_text(quality.get("overall_score")):
        lines += [f"  judged: {score}"]
    for one in as_objects(found.get("checks")):
        state = "green" if one.get("green") is True else f"red ({as_text(one.get('end'))})"
        text = clean_line(f"check {as_text(one.get('check'))}: {state}")
        lines += wrap(text, width, first="  ", rest="    ")
    for one in as_objects(found.get("identified_issues")):
        head = f"{as_text(one.get('severity'))} ({as_text(one.get('category'))}): "
        text = clean_line(f"{head}{as_text(one.get('description'))}")
        lines += wrap(text, width, first="  ", rest="    ")
        lines += wrap(clean_line(as_text(one.get("recommendation"))), width, first="    ")
    return lines
