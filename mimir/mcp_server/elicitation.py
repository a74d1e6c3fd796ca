"""Questions as forms of the client, and its answers to them."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from mimir.domain.json_value import as_array, as_object, as_text, is_array, is_object

if TYPE_CHECKING:
    from mimir.orchestrator.questions.answering import GivenAnswer

MAX_FORMS = 5
"""Most forms of one answer."""
FORM = "form"
"""Transport of an answer that the user gave in a form of the client."""


def request_forms(questions: Sequence[Mapping[str, object]]) -> InputRequiredResult:
    """Ask the client to show a form for each of the first questions."""
    asked = questions[:MAX_FORMS]
    # The ids alone: the store holds the questions, and a lost state loses nothing.
    state = json.dumps([one["id"] for one in asked])
    forms: dict[str, Any] = {as_text(one["id"]): make_form(one) for one in asked}
    return InputRequiredResult(input_requests=forms, request_state=state)


def make_form(question: Mapping[str, object]) -> ElicitRequest:
    """Return the form of a question."""
    parts = [as_text(question.get(name)) for name in ("title", "text")]
    if default := as_text(question.get("default_text")):
        parts.append(f"Default: {default}")
    # The user may see several forms of several runs.
    parts.append(f"({question.get('id')}, of run {question.get('run')})")
    schema: dict[str, Any] = dict(as_object(question.get("schema")))
    if question.get("kind") == "approval":
        # A rejection needs words, which go back to the author.
        reason = {"type": "string", "title": "Reason, if you reject"}
        schema["properties"] = {**as_object(schema.get("properties")), "reason": reason}
    return ElicitRequest(
        params=ElicitRequestFormParams(message="\n".join(parts), requested_schema=schema)
    )


def read_responses(
    responses: Mapping[str, object], asked: Sequence[str]
) -> "tuple[dict[str, GivenAnswer], list[str]]":
    """Return the answers and rejections by question, and the questions that stay open.

    Responses to other questions than the asked ones are left out.
    """
    # Imported here, as in the tools: the first answer of the server needs none of it.
    from mimir.orchestrator.questions.answering import GivenAnswer

    given: dict[str, GivenAnswer] = {}
    left: list[str] = []
    for id in asked:
        response = as_object(responses.get(id))
        if response.get("action") == "accept" and is_object(response.get("content")):
            content = as_object(response["content"])
            given[id] = GivenAnswer(fields={name: _type(one) for name, one in content.items()})
        elif response.get("action") == "decline":
            given[id] = GivenAnswer(is_declined=True)
        # Closed, or without content.
        elif response:
            left.append(id)
    return given, left


def read_state(state: str | None) -> list[str]:
    """Return the questions that were asked; the library has verified the seal."""
    try:
        return [as_text(one) for one in as_array(json.loads(state or "[]"))]
    except ValueError:
        return []


def _type(value: object) -> str:
    """Return a value as the user would type it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case _ if is_array(value):
            return ",".join(str(one) for one in value)
        case _:
            return json.dumps(value)
