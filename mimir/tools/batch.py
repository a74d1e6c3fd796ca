"""Execution of the calls of one message: concurrent reads, sequential effects."""

import asyncio
from collections.abc import Iterator, Sequence

from mimir.domain.message import CallContext, Message, ToolCall, ToolResult
from mimir.tools.protocol import Toolset


async def run_batch(
    toolset: Toolset, calls: Sequence[ToolCall], context: CallContext
) -> tuple[Message, ...]:
    """Execute calls and return one message of role `tool` for each, in message order.

    Args:
        toolset: A gateway; it takes a call's place in the transcript before its first wait.
        calls: In message order; the calls that the circuit breaker admitted.
        context: The caller.

    Raises:
        Paused: From a tool. The other reads of its group have ended; later calls were not started.
        LeaseLost: Likewise.
    """
    effectful = frozenset(spec.name for spec in toolset.specs if not spec.read_only)
    messages: list[Message] = []
    for group in _groups(calls, effectful):
        results = await _run_group(toolset, group, context)
        messages.extend(
            Message(
                role="tool", text=result.text, call_id=call.id, tool=call.name, tree=result.tree
            )
            for call, result in zip(group, results, strict=True)
        )
    return tuple(messages)


def _groups(calls: Sequence[ToolCall], effectful: frozenset[str]) -> Iterator[tuple[ToolCall, ...]]:
    """Yield groups of consecutive reads; an effect is a group of its own."""
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


async def _run_group(
    toolset: Toolset, calls: Sequence[ToolCall], context: CallContext
) -> list[ToolResult]:
    """Start calls in order and wait for all, so that no read outlives the batch."""
    if len(calls) == 1:
        return [await toolset.call(calls[0], context)]
    # All must end before an exception leaves, or a read would outlive the batch.
    ends = await asyncio.gather(
        *(toolset.call(call, context) for call in calls), return_exceptions=True
    )
    results: list[ToolResult] = []
    for end in ends:
        if isinstance(end, BaseException):
            raise end
        results.append(end)
    return results
