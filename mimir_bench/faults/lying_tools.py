"""Tools that lie: what a tool said reaches the worker altered. Everything below, the engine's own record included, is as it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mimir.attempts.services import RoleTools, Stand, WorkerWorkspace
from mimir.domain.call_outcome import Transcript
from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.tools.protocol import Toolset

Alterations = Mapping[str, Sequence[tuple[str, str]]]
"""Task → what its tools say → what the worker is told instead. It may be filled while runs are under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LyingTools:
    """Makes tools of which those of some tasks lie."""

    true: RoleTools
    alterations: Alterations

    def worker(self, bench: WorkerWorkspace) -> Toolset:
        """Return a worker's tools."""
        tools = self.true.worker(bench)
        altered = self.alterations.get(bench.task.id, ())
        return _LyingToolset(true=tools, altered=altered) if altered else tools

    def judge(
        self,
        run: str,
        where: Path,
        lane: Transcript,
        artifacts: Sequence[str],
        stand: Stand,
    ) -> Toolset:
        """Return QC's tools, which never lie."""
        return self.true.judge(run, where, lane, artifacts, stand)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LyingToolset:
    true: Toolset
    altered: Sequence[tuple[str, str]]

    @property
    def specs(self) -> Sequence[ToolSpec]:
        return self.true.specs

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        result = await self.true.call(call, context)
        text = result.text
        for said, told in self.altered:
            text = text.replace(said, told)
        return replace(result, text=text)
