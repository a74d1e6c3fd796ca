"""A model whose words hold no secret that is known: replaced before anybody sees them, so that what is kept of them is what was heard.

It stands below the journal. A resumed conversation is made of the same words as the first one, and so are the hashes of its requests.
"""

from collections.abc import Callable
from dataclasses import replace

from mimir.domain.message import Answer, ModelRequest
from mimir.llm.protocol import ChatModel

Veil = Callable[[str], str]
"""Returns a text without the known secrets; JSON text stays JSON text."""


class RedactingModel:
    """A `ChatModel` that repeats no secret."""

    def __init__(self, inner: ChatModel, veil: Veil) -> None:
        self._inner = inner
        self._veil = veil

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask; an endpoint that echoes a key, or a model that was told one, does not carry it further."""
        answer = await self._inner.ask(request)
        message = answer.message
        words = [message.text, answer.model]
        words += [word for call in message.calls for word in (call.name, call.arguments)]
        if all(self._veil(word) == word for word in words):  # as hardly ever not
            return answer
        calls = tuple(
            replace(call, name=self._veil(call.name), arguments=self._veil(call.arguments))
            for call in message.calls
        )
        said = replace(message, text=self._veil(message.text), calls=calls)
        return replace(answer, message=said, model=self._veil(answer.model))
