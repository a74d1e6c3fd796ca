"""Oracle: runs hidden tests on a tree in the sandbox, after the run, unseen by the engine."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mimir.domain.clock import Clock
from mimir.domain.plan import Check
from mimir.workspace.git.history import GitHistory
from mimir.workspace.sandbox.sandbox import CommandResult, Sandbox, SandboxConfig
from mimir.workspace.tree_removal import remove_tree
from mimir_bench.faults.fault_case import Files
from mimir_bench.faults.hidden_tests import COMMAND, PLACE, RIGHT

SECONDS = 60.0


class Oracle:
    """Hidden tests of one project."""

    def __init__(self, program: str, history: GitHistory, sandbox: Sandbox, room: Path) -> None:
        self._program = program
        self._history = history
        self._sandbox = sandbox
        self._room = room
        self._known: dict[str, bool] = {}

    @classmethod
    async def open(cls, program: str, project: Path, room: Path, clock: Clock) -> "Oracle":
        """Open the oracle of a project with a hidden repository.

        Args:
            program: Hidden tests.
            project: Project whose trees they test.
            room: Separate directory, outside the engine's state.
            clock: For durations.
        """
        await asyncio.to_thread(room.mkdir)
        # The deliverable is untrusted code, also for the benchmark.
        sandbox = Sandbox(SandboxConfig(), scratch=room, clock=clock)
        place = project / ".mimir" / "work" / "history.git"
        history = await GitHistory.open(project, place, owner=sandbox.owner)
        return cls(program, history, sandbox, room)

    async def is_right(self, source: str) -> bool:
        """Return whether a commit or tree is right; each tree is tested once."""
        # Commits differ in time and message; the tree alone decides the answer.
        tree = await self._history.tree(source)
        if tree not in self._known:
            self._known[tree] = await self._look(tree)
        return self._known[tree]

    async def is_shown(self, source: str, checks: Sequence[Check], tests: Files) -> bool:
        """Return whether a check fails on a commit or tree, with its tests as they were.

        This is without the engine: the command runs once, and its exit code decides.
        """
        tree = await self._history.tree(source)
        for check in checks:
            if (await self._run(tree, check.argv, tests)).exit_code != 0:
                return True
        return False

    async def _run(self, tree: str, argv: Sequence[str], files: Files) -> CommandResult:
        where = Path(tempfile.mkdtemp(dir=self._room))
        place = where / "tree"
        try:
            await self._history.checkout(tree, place)
            # Written after the checkout, so that no file of the tree can replace them.
            await asyncio.to_thread(_write, place, files)
            return await self._sandbox.run(argv, workspace=place, seconds=SECONDS)
        finally:
            remove_tree(where)

    async def _look(self, tree: str) -> bool:
        ran = await self._run(tree, COMMAND, {PLACE: self._program})
        # The exit code alone proves nothing: a deliverable may end the process with 0.
        last = ran.output.rstrip("\n").rsplit("\n", 1)[-1]
        return ran.exit_code == 0 and last == RIGHT


def _write(place: Path, files: Files) -> None:
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
