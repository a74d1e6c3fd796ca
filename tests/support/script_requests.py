"""The caller of a request to a model server: from the lane header, else from the prompt."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from mimir.domain.message import Message, ModelRequest, ToolCall, ToolSpec
from mimir.llm.scripted.scripted_model import TranscriptName

_TASK = re.compile(r"^[\W_]*task(?: id)?[\W_]*:[\W_]*([A-Za-z0-9][\w.-]*)", re.I | re.M)
_ATTEMPT = re.compile(r"\battempt (\d{1,4}) of \d{1,4}\b", re.I)
_SYSTEM_WORDS = {
    "ecko": r"^# Prompt architect|\becko\b",
    "pm": r"^# Project manager",
    "agentinator": r"^# Author of preambles|\bagentinator\b",
    "qc_reporter": r"^# Reporter of a failed task",
    "pm_reporter": r"^# Reporter of a run",
}
"""Beginnings of the shipped preambles."""
_AGENTS_OF_THE_RUN = ("ecko", "pm", "agentinator", "pm_reporter")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The caller."""

    lane: str
    """From the header, or derived from the prompt."""
    name: TranscriptName


def caller(
    headers: Mapping[str, str], body: Mapping[str, Any], roles: Mapping[str, Sequence[str]]
) -> Caller:
    """Find the caller; header names are in lower case."""
    told = unquote(headers.get("x-mimir-lane", ""))
    if told:
        return Caller(lane=told, name=TranscriptName.parse(told))
    messages = read_messages(body)
    brief = "\n".join(m.text for m in messages[: first_answer(messages)])
    role = _role(messages, body, brief, roles)
    task, attempt = _TASK.search(brief), _ATTEMPT.search(brief)
    of_run = role in _AGENTS_OF_THE_RUN
    name = TranscriptName(
        task="plan" if of_run or not task else task[1].rstrip("."),
        attempt=1 if of_run or not attempt else int(attempt[1]),
        role=role,
        last=role,
    )
    return Caller(lane=f"?/{name.task}/{name.attempt}/{role}", name=name)


def _role(
    messages: Sequence[Message],
    body: Mapping[str, Any],
    brief: str,
    roles: Mapping[str, Sequence[str]],
) -> str:
    system = messages[0].text if messages and messages[0].role == "system" else ""
    for role, words in roles.items():
        if any(word in system for word in words):
            return role
    for role, pattern in _SYSTEM_WORDS.items():
        if re.search(pattern, system[:400], re.I | re.M):
            return role
    offered: Sequence[Mapping[str, Any]] = body.get("tools") or []
    tools = {t.get("function", {}).get("name", "") for t in offered}
    if re.search(r"^## Sources of quotes|^=== source ", brief, re.M):
        return "qc"
    if "memory_search_nodes" in tools and not tools & {"write_file", "run"}:
        return "pm"
    return "worker" if _TASK.search(brief) else "ecko"


def first_answer(messages: Sequence[Message]) -> int:
    """Return the place of the model's first answer, or the length."""
    return next((n for n, m in enumerate(messages) if m.role == "assistant"), len(messages))


def read_messages(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """Read a request's messages back to our own."""
    return tuple(
        Message(
            role=row["role"],
            text=_text(row.get("content")),
            calls=tuple(
                ToolCall(
                    id=call["id"],
                    name=call["function"]["name"],
                    arguments=call["function"]["arguments"],
                )
                for call in row.get("tool_calls") or ()
            ),
            call_id=row.get("tool_call_id", ""),
        )
        for row in body.get("messages", ())
    )


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(
            str(part.get("text", "")) for part in cast("list[dict[str, object]]", content)
        )
    return content if isinstance(content, str) else ""


def read_request(body: Mapping[str, Any]) -> ModelRequest:
    """Read a request back to our own, as far as a play looks at it."""
    return ModelRequest(
        messages=read_messages(body),
        tools=tuple(
            ToolSpec(name=t["function"]["name"], description="", input_schema={})
            for t in body.get("tools") or ()
        ),
        tool_choice="none" if body.get("tool_choice") == "none" else "auto",
        model=str(body.get("model", "")),
    )
