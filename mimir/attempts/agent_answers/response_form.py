"""Response form of an invoked agent: exactly one JSON object. Pure.

An absent member counts as not said; a member of a wrong type refuses the answer.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Literal

from mimir.domain.invocation import PinnedDefinition
from mimir.domain.json_schema import find_mismatch
from mimir.domain.json_value import JsonObject, as_member, as_number, as_text, is_array, is_object
from mimir.domain.value_class import value_class
from mimir.errors import AnswerError
from mimir.qc.judgement.json_object import as_list, as_object, parse_object

Confidence = Literal["high", "medium", "low", ""]
_CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")
_REPORTED = ("complete", "partial", "failed")
_OPERATIONS = ("create_entities", "add_observations", "create_relations")
MAX_OPERATIONS = 50
JUSTIFIED_ABOVE = 20
"""Memory operations; more of them need a justification."""
MAX_TEXT = 50_000
MAX_ITEMS = 200


@value_class
class AgentAnswer:
    """Answer of an agent; nothing in it is verified."""

    analysis: str = ""
    recommendations: tuple[str, ...] = ()
    structured: JsonObject | None = None
    """None: the answer has no structured part."""
    memory_operations: tuple[JsonObject, ...] = ()
    specialists: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()
    self_reported: str = ""
    """`complete`, `partial` or `failed`; empty: not said."""
    confidence: Confidence = ""
    findings: tuple[tuple[str, str], ...] = ()
    """(code, message) of the omitted parts."""

    @property
    def texts(self) -> str:
        """All words of the answer, in which citations are looked for."""
        parts = (self.analysis, *self.recommendations, *self.follow_ups, *_texts(self.structured))
        return "\n".join(parts)


def answer_schema(agent: PinnedDefinition) -> JsonObject | None:
    """Return the schema of an agent's answer; None: it has none."""
    return as_object(json.loads(agent.output_schema), "The schema") if agent.output_schema else None


def read_answer(text: str, schema: JsonObject | None = None) -> AgentAnswer:
    """Read the untrusted answer of an agent.

    Args:
        text: The answer.
        schema: JSON Schema of its structured part. None: any form is accepted.

    Raises:
        AnswerError: It is not exactly one object of the response form, or does not match the schema.
    """
    # Long texts often have line feeds of their own; no answer is a pass.
    given = parse_object(text, is_lenient=True)
    if schema is not None and "deliverables" not in given:
        # Prompts of other programs ask for the object of the schema alone.
        _require_match(given, schema)
        return AgentAnswer(structured=given)
    if "deliverables" not in given:
        raise AnswerError("The member `deliverables` is missing.")
    own = as_object(given["deliverables"], "`deliverables`")
    structured = as_object(own["structured"], "`structured`") if own.get("structured") else None
    if schema is not None:
        _require_match(structured or {}, schema)
    operations, findings = _memory_operations(given)
    others = as_object(given.get("recommendations") or {}, "`recommendations`")
    about = as_object(given.get("metadata") or {}, "`metadata`")
    return AgentAnswer(
        analysis=_text(own.get("analysis"), "`analysis`"),
        recommendations=_list(own.get("recommendations"), "`deliverables.recommendations`"),
        structured=structured,
        memory_operations=operations,
        specialists=_list(others.get("additional_specialists"), "`additional_specialists`"),
        follow_ups=_list(others.get("follow_up_tasks"), "`follow_up_tasks`"),
        self_reported=as_member(_word(about.get("task_completion_status")), _REPORTED) or "",
        confidence=as_member(_word(about.get("confidence_level")), _CONFIDENCES) or "",
        findings=findings,
    )


def find_words(text: str, schema: JsonObject | None = None) -> str:
    """Return the words of an answer for its citations; of another form the answer itself."""
    try:
        return read_answer(text, schema).texts
    except AnswerError:
        return text


def _require_match(value: JsonObject, schema: JsonObject) -> None:
    if reason := find_mismatch(value, schema, "answer"):
        raise AnswerError(f"`structured` does not match the schema of the answer. {reason}")


def _memory_operations(
    given: JsonObject,
) -> tuple[tuple[JsonObject, ...], tuple[tuple[str, str], ...]]:
    """Return the proposals that are kept, and findings about the others."""
    proposed = [
        _operation(number, as_object(one, "A memory operation"))
        for number, one in enumerate(
            as_list(given.get("memory_operations") or [], "`memory_operations`"), 1
        )
    ]
    is_justified = bool(as_text(given.get("justification")).strip())
    limit = MAX_OPERATIONS if is_justified else JUSTIFIED_ABOVE
    if len(proposed) <= limit:
        return tuple(proposed), ()
    reason = f"{len(proposed) - limit} of {len(proposed)} memory operations were refused: at most {limit}"
    reason += " are kept" if is_justified else " are kept without a `justification`"
    return tuple(proposed[:limit]), (("memory-operations", f"{reason}."),)


def _operation(number: int, given: JsonObject) -> JsonObject:
    operation = as_member(given.get("operation"), _OPERATIONS)
    if operation is None:
        raise AnswerError(f"Memory operation {number} is none of {', '.join(_OPERATIONS)}.")
    data = as_object(given.get("data") or {}, f"`data` of memory operation {number}")
    relevance = as_number(given.get("relevance"))
    sources = _list(given.get("sources"), f"`sources` of memory operation {number}")
    # A name from its content: a replay proposes the same.
    digest = hashlib.sha256(json.dumps([operation, data, number]).encode()).hexdigest()
    return {
        "id": f"m-{digest[:12]}",
        "operation": operation,
        "data": data,
        "sources": list(sources),
        "relevance": None if relevance is None else min(1.0, max(0.0, relevance)),
        "state": "proposed",
    }


def _text(value: object, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AnswerError(f"{name} must be a text.")
    return value[:MAX_TEXT]


def _word(value: object) -> str:
    return as_text(value).strip().casefold()


def _list(value: object, name: str) -> tuple[str, ...]:
    given = as_list(value or [], name)[:MAX_ITEMS]
    return tuple(_text(one, f"Each item of {name}") for one in given)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    inner: Sequence[object] = ()
    if is_object(value):
        inner = tuple(value.values())
    elif is_array(value):
        inner = value
    for one in inner:
        yield from _texts(one)
