"""Entry point of the demo: it greets before the libraries of the real path load."""

from pathlib import Path

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


async def demo(
    screen: NarratorScreen,
    *,
    crash: bool,
    directory: Path | None,
    store: str = "",
    record: Path | None = None,
    has_agents: bool = False,
) -> int:
    """Run the demo.

    Args:
        screen: Terminal or pipe of the narration.
        crash: True: another process works, is killed during two tasks, and the run resumes.
        directory: New or empty directory of the project. None: a temporary one.
        store: Store of the runs. Empty: a file in the project.
        has_agents: True: agents of files are invoked, instead of the whole run.
        record: Recording of the planning run and the run. None: no recording. Not with `crash`.

    Returns:
        The exit code: 0 if every task is completed and every seal is valid.

    Raises:
        UsageError: The directory is not empty.
        UnavailableError: This machine has no sandbox.
    """
    # At once: the imports of the next act take a second or two.
    for sentence in AGENTS_GREETING if has_agents else GREETING:
        say_wrapped(screen, "", sentence)
    screen.say("")
    if has_agents:
        from mimir.demo.agents_demo import run_agents

        return await run_agents(screen, directory=directory, store=store)
    from mimir.demo.acts import run_acts

    return await run_acts(screen, crash=crash, directory=directory, store=store, record=record)
