"""Model wrapper that replaces known secrets in answers.

It is below the journal: the transcript holds redacted text, so a resumed conversation sends the same messages and has the
same request hashes.
"""

from collections.abc import Callable
from dataclasses import replace

from mimir.domain.message import Answer, ModelRequest
from mimir.llm.opaque_fields import veil_fields
from mimir.llm.protocol import ChatModel

Veil = Callable[[str], str]
"""Returns a text without the known secrets; JSON text stays JSON text."""


class RedactingModel:
    """A `ChatModel` whose answers hold no known secret."""

    def __init__(self, inner: ChatModel, veil: Veil) -> None:
        self._inner = inner
        self._veil = veil

    async def ask(self, request: ModelRequest) -> Answer:
        """Send a request; a key that the endpoint or the model repeats is replaced."""
        answer = await self._inner.ask(request)
        message, veil = answer.message, self._veil
        texts = [message.text, answer.model, message.opaque]
        texts += [t for c in message.calls for t in (c.name, c.arguments, c.opaque)]
        if all(veil(text) == text for text in texts):  # nearly always, so nothing is copied
            return answer
        calls = tuple(
            replace(
                call,
                name=veil(call.name),
                arguments=veil(call.arguments),
                opaque=veil_fields(call.opaque, veil),
            )
            for call in message.calls
        )
        opaque = veil_fields(message.opaque, veil)
        message = replace(message, text=veil(message.text), calls=calls, opaque=opaque)
        return replace(answer, message=message, model=veil(answer.model))
