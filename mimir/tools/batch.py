"""The calls of one message: reads may overlap, effects go one after another, results come back in message order."""

import asyncio
from collections.abc import Iterator, Sequence

from mimir.domain.message import CallContext, Message, ToolCall, ToolResult
from mimir.tools.protocol import Toolset


async def run_batch(
    toolset: Toolset, calls: Sequence[ToolCall], context: CallContext
) -> tuple[Message, ...]:
    """Run calls and return their results.

    Args:
        toolset: A gateway; it takes a call's place in the lane before its first wait, so places follow message order.
        calls: In message order; already those that the breaker let through.
        context: Who calls.

    Returns:
        One message of role `tool` a call, in message order.

    Raises:
        Paused: From a tool; the other reads of its group have ended then, later calls were not begun.
        LeaseLost: Likewise.
    """
    effectful = frozenset(spec.name for spec in toolset.specs if not spec.read_only)
    out: list[Message] = []
    for group in _groups(calls, effectful):
        results = await _together(toolset, group, context)
        out.extend(_message(call, result) for call, result in zip(group, results, strict=True))
    return tuple(out)


def _groups(calls: Sequence[ToolCall], effectful: frozenset[str]) -> Iterator[tuple[ToolCall, ...]]:
    """Yield neighbours that may overlap; an effect is a group of its own."""
    reads: list[ToolCall] = []
    for call in calls:
        if call.name not in effectful:
            reads.append(call)
            continue
        if reads:
            yield tuple(reads)
            reads = []
        yield (call,)
    if reads:
        yield tuple(reads)


async def _together(
    toolset: Toolset, calls: Sequence[ToolCall], context: CallContext
) -> list[ToolResult]:
    """Start in order and wait for all, so that no read goes on after the batch has ended."""
    if len(calls) == 1:
        return [await toolset.call(calls[0], context)]
    ends = await asyncio.gather(
        *(toolset.call(call, context) for call in calls), return_exceptions=True
    )
    results: list[ToolResult] = []
    for end in ends:
        if isinstance(end, BaseException):
            raise end
        results.append(end)
    return results


def _message(call: ToolCall, result: ToolResult) -> Message:
    return Message(role="tool", text=result.text, call_id=call.id, tool=call.name, tree=result.tree)
