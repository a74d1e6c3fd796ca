"""Demo of people: one question, two approvals, and a report by requirement."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from mimir.bootstrap import app
from mimir.bootstrap.agents.definition_files import open_agent_files
from mimir.bootstrap.agents.programs import pin_program
from mimir.demo import setup
from mimir.demo.screen import NarratorScreen, say_wrapped
from mimir.domain.json_value import as_objects, as_text, as_texts
from mimir.domain.run import RunBudget
from mimir.errors import MimirError, Paused
from mimir.orchestrator.api import Mimir
from mimir.orchestrator.delegation import plan_agents
from mimir.orchestrator.patterns.choose import PatternOptions
from mimir.orchestrator.patterns.planning_run import PlanningResult
from mimir.orchestrator.questions.answering import GivenAnswer

PLAY = Path(__file__).with_name("people.yaml")
REQUEST = "Let the report of tally name the slow requests."

AskLine = Callable[[str], Awaitable[str]]
"""Asks the user for one line."""


async def run_people(
    screen: NarratorScreen, ask: AskLine | None, *, directory: Path | None, store: str
) -> int:
    """Plan the request with its stops, run the plan, and print the requirements.

    Without `ask`, defaults and approvals are given as if typed.
    """
    project = await setup.build(directory)
    loaded = setup.settings(project, store, PLAY)
    screen.say(f"project  {project}")
    say_wrapped(screen, "request  ", REQUEST)
    async with app.open(project, loaded, say=screen.say) as mimir:
        planned = await _plan(screen, mimir, ask)
        # The plan may name an agent of the skill, whose definition the run pins.
        plan, agents = plan_agents.pin_agents(
            planned.plan,
            open_agent_files(project, loaded).load(),
            lambda entry: pin_program(entry.definition, entry.address, loaded.settings.agents),
            lambda _: (),
        )
        run = await mimir.create_run(plan, planned.path, only=(), limits=RunBudget(), agents=agents)
        result = await setup.drive(mimir, run, resumed=False)
        report = await mimir.report_json(run)
    screen.say("")
    say_wrapped(screen, "run      ", f"{run}: {result.state}")
    for one in as_objects(report.get("requirements")):
        decided = ", ".join(as_texts(one.get("criteria"))) or "no criterion"
        text = f"{one.get('state')} ({decided}): {one.get('text')}"
        say_wrapped(screen, f"{as_text(one.get('id')):<9}", text)
    screen.say("")
    say_wrapped(screen, "next     ", f"cd {project}; mimir report; mimir inbox --all")
    return result.exit_code


async def _plan(screen: NarratorScreen, mimir: Mimir, ask: AskLine | None) -> PlanningResult:
    run = await mimir.create_planning_run(
        REQUEST, ecko=False, output=None, model="", pattern=PatternOptions(name="sdd")
    )
    while True:
        try:
            return await mimir.make_plan(run)
        except Paused:
            status = await mimir.status(run)
            asked = [one for one in as_objects(status.get("questions")) if _is_open(one)]
            # Another reason pauses the demo as it pauses any run.
            if not asked:
                raise
            for one in asked:
                await _answer(screen, mimir, one, ask)


def _is_open(question: Mapping[str, object]) -> bool:
    return question.get("state") == "open"


async def _answer(
    screen: NarratorScreen, mimir: Mimir, question: Mapping[str, object], ask: AskLine | None
) -> None:
    """Show a question until an answer of the user is taken."""
    is_approval = question.get("kind") == "approval"
    usual = "yes" if is_approval else as_text(question.get("default_text"))
    screen.say("")
    say_wrapped(screen, "stop     ", as_text(question.get("title")))
    if is_approval:
        say_wrapped(screen, "file     ", as_text(question.get("subject")))
    for line in as_text(question.get("text")).splitlines():
        say_wrapped(screen, "         ", line)
    while True:
        text = usual
        if ask is None:
            say_wrapped(screen, "answer   ", f"{usual} (--yes)")
        else:
            text = await ask(f"Your answer (empty: {usual}):") or usual
        try:
            await mimir.answer(as_text(question.get("id")), GivenAnswer(text=text))
        except MimirError as error:
            say_wrapped(screen, "refused  ", str(error))
            # An edited file is a new question, which the next step asks.
            if "replaces it" in str(error):
                return
        else:
            return
