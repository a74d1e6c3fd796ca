"""Model wrapper that separates an answer from its packaging.

Thinking leaves the text but goes back to the provider with the message. The name of a tool loses the marks that some servers put around it.
"""

import re
from collections.abc import Collection
from dataclasses import replace

from mimir.domain.json_schema import plain_key
from mimir.domain.message import Answer, Message, ModelRequest, ToolCall
from mimir.domain.thinking import without_thinking
from mimir.llm.opaque_fields import pack_fields, unpack_fields
from mimir.llm.protocol import ChatModel


class ReadableModel:
    """A `ChatModel` whose answers hold no thinking and name offered tools."""

    def __init__(self, inner: ChatModel) -> None:
        self._inner = inner

    async def ask(self, request: ModelRequest) -> Answer:
        """Send a request and clean its answer."""
        answer = await self._inner.ask(request)
        names = {spec.name for spec in request.tools}
        calls = tuple(_restore_name(call, names) for call in answer.message.calls)
        return replace(answer, message=replace(_without_thinking(answer.message), calls=calls))


def _without_thinking(message: Message) -> Message:
    text = without_thinking(message.text)
    if text == message.text:
        return message
    fields = {"content": message.text, **unpack_fields(message.opaque)}
    return replace(message, text=text.strip(), opaque=pack_fields(fields))


def _restore_name(call: ToolCall, offered: Collection[str]) -> ToolCall:
    if call.name in offered:
        return call
    bare = call.name.partition("<|")[0].strip()
    for name in (bare, re.split(r"[.:/]", bare)[-1]):
        if name in offered:
            return replace(call, name=name)
    same = [name for name in offered if plain_key(name) == plain_key(bare)]
    return replace(call, name=same[0]) if len(same) == 1 else call
