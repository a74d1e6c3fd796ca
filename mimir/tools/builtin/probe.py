"""The `probe` tool: one command in a copy of a directory that is thrown away afterwards."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from mimir.domain.message import ToolResult
from mimir.tools.builtin.shell import MAX_SECONDS, RunTool, describe_run
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.sandbox.sandbox import CommandRunner
from mimir.workspace.tree_removal import remove_tree


class ProbeTool(LocalTools):
    """The toolset of the one tool `probe`; nothing that a command changes remains."""

    def __init__(
        self,
        sandbox: CommandRunner,
        where: Path,
        *,
        prepare: Callable[[Path], Awaitable[None]],
        redact: Callable[[str], str] = str,
    ) -> None:
        """Bind the tool to a directory; `prepare` changes each copy before its command."""
        self._sandbox = sandbox
        self._where = where
        self._prepare = prepare
        self._redact = redact
        super().__init__((_SPEC,))

    def _handlers(self) -> Sequence[Handler]:
        return (self._probe,)

    async def _probe(self, given: ToolArguments) -> ToolResult:
        room = Path(tempfile.mkdtemp(dir=self._where.parent, prefix="probe-"))
        try:
            copy = room / "workspace"
            await asyncio.to_thread(shutil.copytree, self._where, copy, symlinks=True)
            await self._prepare(copy)
            return await RunTool(self._sandbox, copy, redact=self._redact).run_command(given)
        finally:
            await to_thread_shielded(remove_tree, room)


_SPEC = describe_run(
    "probe",
    "Run one command on a copy of the project, in the sandbox of the checks, and get its exit code and output. "
    "The copy is thrown away afterwards. There is no network. Give argv or command.",
    max_seconds=MAX_SECONDS,
    read_only=True,
)
