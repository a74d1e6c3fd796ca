"""Entry point of the demo: it greets before the libraries of the real path load."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from mimir.demo.screen import NarratorScreen, say_wrapped

GREETING = (
    "mimir demo: release 0.2 of a small Python project, offline and without an API key.",
    "The models are scripted, and some of their answers are wrong on purpose.",
    "Everything else is real: store, tools, sandbox, git, checks, verdicts and seals.",
)

AGENTS_GREETING = (
    "mimir demo agents: two agents of files, offline and without an API key.",
    "The model and the program are scripted, and each is wrong once on purpose.",
)

PEOPLE_GREETING = (
    "mimir demo people: an ambiguous request, one question and two approvals, offline and without an API key.",
    "The models are scripted. The answers are yours, and each could come from another terminal on another day.",
)


DELEGATION_GREETING = (
    "mimir demo delegate: a primary agent and two specialists, offline and without an API key.",
    "The agents are scripted, and each specialist is wrong once on purpose. The server and its protocol are real.",
)

Scene = Literal["", "agents", "people", "delegate"]
GREETINGS: Mapping[Scene, Sequence[str]] = {
    "": GREETING,
    "agents": AGENTS_GREETING,
    "people": PEOPLE_GREETING,
    "delegate": DELEGATION_GREETING,
}


async def demo(
    screen: NarratorScreen,
    *,
    crash: bool,
    directory: Path | None,
    store: str = "",
    record: Path | None = None,
    scene: Scene = "",
    ask: Callable[[str], Awaitable[str]] | None = None,
) -> int:
    """Run the demo.

    Args:
        screen: Terminal or pipe of the narration.
        crash: True: another process works, is killed during two tasks, and the run resumes.
        directory: New or empty directory of the project. None: a temporary one.
        store: Store of the runs. Empty: a file in the project.
        scene: Empty: the whole run. `agents`: agents of files are invoked. `people`: the user decides.
            `delegate`: another agent spawns them.
        ask: Asks for the answers of `people`. None: defaults and approvals are given.
        record: Recording of the planning run and the run. None: no recording. Not with `crash`.

    Returns:
        The exit code: 0 if every task is completed and every seal is valid.

    Raises:
        UsageError: The directory is not empty.
        UnavailableError: This machine has no sandbox.
    """
    # At once: the imports of the next act take a second or two.
    for sentence in GREETINGS[scene]:
        say_wrapped(screen, "", sentence)
    screen.say("")
    if scene == "people":
        from mimir.demo.people_demo import run_people

        return await run_people(screen, ask, directory=directory, store=store)
    if scene == "delegate":
        from mimir.demo.delegation.primary_agent import run_delegation

        return await run_delegation(screen, directory=directory, store=store)
    if scene == "agents":
        from mimir.demo.agents_demo import run_agents

        return await run_agents(screen, directory=directory, store=store)
    from mimir.demo.acts import run_acts

    return await run_acts(screen, crash=crash, directory=directory, store=store, record=record)
