"""Tool log of a worker in its transcript; the deliverable has a bounded copy."""

from collections.abc import Mapping

from mimir.agents.tool_log import ToolLogEntry
from mimir.domain import ids
from mimir.domain.call_outcome import read_result
from mimir.domain.program import PROGRAM_TOOL
from mimir.store.operations.record_loading import load_calls
from mimir.store.protocol import ReadOps


def load_tool_log(reads: ReadOps, run: str, task: str, attempt: int) -> Mapping[int, ToolLogEntry]:
    """Return the tool log of a worker from its transcript; the deliverable has a bounded copy."""
    lane = ids.lane_id(run, task, attempt, "worker")
    # The call of a program is no call of an agent.
    calls = [
        one
        for one in load_calls(reads, lane, kind="tool")
        if one.is_done and one.tool != PROGRAM_TOOL
    ]
    return {
        number: ToolLogEntry(
            number=number,
            tool=call.tool,
            arguments="",
            text=read_result(call.outcome.value).text,
            tree=call.tree,
        )
        for number, call in enumerate(calls, start=1)
    }
