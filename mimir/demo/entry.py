"""The door of the demo. It greets at once; the libraries of the real path take a second or two to load."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mimir.demo.narrator import NarratorScreen


async def demo(
    console: "NarratorScreen",
    *,
    crash: bool,
    directory: Path | None,
    store: str = "",
    record: Path | None = None,
) -> int:
    """Play it.

    Args:
        console: Where it is told.
        crash: Have another process do the work, kill it with SIGKILL in the middle of two tasks, and go on.
        directory: Of the project that is worked on; new or empty. None: a fresh one among the temporary files.
        store: Where the runs are kept. Empty: in a file of the project.
        record: File that both runs, the planning one too, are recorded in. None: they are not. Not with `crash`.

    Returns:
        The exit code: 0 if every task is completed and every seal verified.

    Raises:
        UsageError: The directory is not empty.
        UnavailableError: There is no sandbox on this machine.
    """
    console.say(
        "mimir demo: release 0.2 of a small Python project, without network, without a key."
    )
    console.say("The words of the models come from a play, and some of them are wrong on purpose.")
    console.say("All else is the real path: store, tools, sandbox, git, checks, verdicts, seals.")
    console.say()
    from mimir.demo.acts import perform  # here: the person should be reading by now

    return await perform(console, crash=crash, directory=directory, store=store, record=record)
