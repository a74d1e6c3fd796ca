"""Readers of programs' output: an exit code of 0 alone is no success. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mimir.attempts.program.json_output import MAX_LINES, find_object, read_events
from mimir.domain import money
from mimir.domain.json_value import JsonObject, as_array, as_object, as_text, as_whole_number
from mimir.domain.usage import MOST, TokenUsage
from mimir.domain.value_class import value_class

MAX_BYTES = 10_000_000
TURN_LIMIT = 53
"""Exit code of gemini."""
NO_JSON = "It printed no whole JSON object of its documented form."
_MOST_DENIALS = 20


@value_class
class ProgramAnswer:
    """Answer of a program, and whether it is a success."""

    text: str = ""
    problem: str = ""
    """Reason of the failure. Empty: it is a success."""
    is_readable: bool = True
    """False: the output has not the documented form."""
    usage: TokenUsage | None = None
    """None: not reported."""
    cost: str = ""
    """As reported. Empty: not reported."""
    denials: tuple[str, ...] = ()
    """Tools that the program was not allowed to use."""


def read_output(reader: str, exit_code: int, output: str) -> ProgramAnswer:
    """Read the standard output of a program.

    Args:
        reader: Name of the reader, `json:PATH` or `jsonl:TYPE.PATH`.
        exit_code: Of the program.
        output: Whole standard output.
    """
    # Before anything is parsed: each line costs time.
    if output.count("\n") > MAX_LINES:
        return _unreadable(f"It printed more than {MAX_LINES} lines.")
    answer = _reader(reader)(output, exit_code)
    if exit_code != 0:
        problem = f"It ended with exit code {exit_code}" + (
            f": {answer.problem}" if answer.problem else "."
        )
        return replace(answer, problem=problem)
    return answer


def is_reader(name: str) -> bool:
    """Return whether a reader has this name."""
    kind, _, path = name.partition(":")
    return name in _READERS or (kind in ("json", "jsonl") and bool(path.strip(".")))


def _reader(name: str) -> Callable[[str, int], ProgramAnswer]:
    kind, _, path = name.partition(":")
    if kind == "json":
        return lambda output, _: _read_path(output, path)
    if kind == "jsonl":
        return lambda output, _: _read_event_path(output, path)
    return _READERS.get(name, _read_text)


def _read_claude(output: str, _: int) -> ProgramAnswer:
    found = find_object(output, "is_error", "subtype")
    if found is None:
        return _unreadable(NO_JSON)
    usage = as_object(found.get("usage"))
    answer = ProgramAnswer(
        text=_structured_text(found),
        usage=_usage(
            [
                usage.get(name)
                for name in (
                    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
                )
            ],
            [usage.get("output_tokens")],
        ),
        cost=_cost([found.get("total_cost_usd")]),
        denials=_denials(as_array(found.get("permission_denials"))),
    )
    # Errors of the vendor's service come with exit code 0 and the subtype `success`.
    if found.get("is_error") is not False:
        return replace(answer, problem=f"It reports an error: {answer.text[:500] or 'no text'}")
    subtype = as_text(found.get("subtype"))
    if subtype != "success":
        return replace(answer, problem=f"It ended with {subtype[:80] or 'no subtype'!r}.")
    return answer


def _structured_text(found: JsonObject) -> str:
    structured = found.get("structured_output")
    if structured is not None:
        return json.dumps(structured, ensure_ascii=False)
    return as_text(found.get("result"))


def _read_codex(output: str, _: int) -> ProgramAnswer:
    events = read_events(output)
    items = [as_object(one.get("item")) for one in events if one.get("type") == "item.completed"]
    messages = [as_text(item.get("text")) for item in items if item.get("type") == "agent_message"]
    turns = [as_object(one.get("usage")) for one in events if one.get("type") == "turn.completed"]
    answer = ProgramAnswer(
        text=messages[-1] if messages else "",
        usage=_usage(
            [turn.get("input_tokens") for turn in turns],
            [turn.get("output_tokens") for turn in turns],
        ),
    )
    if failed := _find_error(events, ("turn.failed", "error")):
        return replace(answer, problem=failed)
    # A message without the end of its turn may be half of the work.
    if not messages or not turns:
        missing = "message of the agent" if not messages else "completed turn"
        return _unreadable(f"Its output holds no {missing}.", answer)
    return answer


def _read_gemini(output: str, exit_code: int) -> ProgramAnswer:
    found = find_object(output, "response", "error")
    if found is None:
        return _unreadable(NO_JSON)
    models = as_object(as_object(found.get("stats")).get("models"))
    tokens = [as_object(as_object(one).get("tokens")) for one in models.values()]
    answer = ProgramAnswer(
        text=as_text(found.get("response")),
        usage=_usage(
            [one.get("prompt") for one in tokens],
            [value for one in tokens for value in (one.get("candidates"), one.get("thoughts"))],
        ),
    )
    if exit_code == TURN_LIMIT:
        return replace(answer, problem="its limit of turns is reached.")
    if found.get("error"):
        return replace(answer, problem=f"It reports an error: {_message(found.get('error'))}")
    return answer


def _read_opencode(output: str, _: int) -> ProgramAnswer:
    events = read_events(output)
    texts: list[str] = []
    answer = ""
    ends: list[JsonObject] = []
    costs: list[object] = []
    for event in events:
        part = as_object(event.get("part"))
        match event.get("type"):
            # The text of a step that calls tools is no answer.
            case "step_start":
                texts = []
            case "text":
                texts.append(as_text(part.get("text")) or as_text(event.get("text")))
            case "step_finish":
                end = part or event
                ends.append(as_object(end.get("tokens")))
                costs.append(end.get("cost"))
                if end.get("reason") != "tool-calls":
                    answer = "".join(texts)
            case _:
                continue
    read = ProgramAnswer(
        text=answer,
        usage=_usage(
            [
                value
                for one in ends
                for value in (one.get("input"), as_object(one.get("cache")).get("read"))
            ],
            [value for one in ends for value in (one.get("output"), one.get("reasoning"))],
        ),
        cost=_cost(costs),
    )
    if failed := _find_error(events, ("error",)):
        return replace(read, problem=failed)
    return read if answer.strip() else _unreadable("Its output holds no answer.", read)


def _read_text(output: str, _: int) -> ProgramAnswer:
    text = output.strip()
    return ProgramAnswer(text=text) if text else _unreadable("It printed nothing.")


def _read_path(output: str, path: str) -> ProgramAnswer:
    first = path.split(".")[0]
    found = find_object(output, first)
    text = as_text(_find_value(found or {}, path.split(".")))
    return ProgramAnswer(text=text) if text.strip() else _unreadable(NO_JSON)


def _read_event_path(output: str, path: str) -> ProgramAnswer:
    texts: list[str] = []
    for event in read_events(output):
        kind = as_text(event.get("type"))
        # The type may hold dots itself.
        if kind and path.startswith(f"{kind}."):
            texts.append(as_text(_find_value(event, path.removeprefix(f"{kind}.").split("."))))
    text = next((text for text in reversed(texts) if text.strip()), "")
    return ProgramAnswer(text=text) if text else _unreadable(NO_JSON)


_READERS: Mapping[str, Callable[[str, int], ProgramAnswer]] = {
    "claude": _read_claude,
    "codex": _read_codex,
    "gemini": _read_gemini,
    "opencode": _read_opencode,
    "text": _read_text,
}


def _find_value(value: object, path: Sequence[str]) -> object:
    for name in path:
        value = as_object(value).get(name)
    return value


def _find_error(events: Iterable[JsonObject], kinds: tuple[str, ...]) -> str:
    for event in events:
        if event.get("type") in kinds:
            text = _message(event.get("error") or event.get("message"))
            return f"It reports {as_text(event.get('type'))}: {text}"
    return ""


def _message(error: object) -> str:
    details = as_object(error)
    text = as_text(details.get("message")) or as_text(as_object(details.get("data")).get("message"))
    return (text or as_text(error) or as_text(details.get("name")) or "no message")[:500]


def _denials(listed: Sequence[object]) -> tuple[str, ...]:
    names = (as_text(as_object(one).get("tool_name")) or as_text(one) for one in listed)
    return tuple(dict.fromkeys((name or "a tool")[:80] for name in names))[:_MOST_DENIALS]


def _usage(taken: Iterable[object], given: Iterable[object]) -> TokenUsage | None:
    """Return the reported tokens; None if a number is missing everywhere or not plausible."""
    sides: list[int] = []
    for values in (taken, given):
        numbers = [as_whole_number(value) for value in values if value is not None]
        known = [number for number in numbers if number is not None]
        if not known or len(known) != len(numbers) or min(known) < 0 or sum(known) > MOST:
            return None
        sides.append(sum(known))
    # Nothing at all was not measured.
    return TokenUsage(input_tokens=sides[0], output_tokens=sides[1]) if any(sides) else None


def _cost(reported: Iterable[object]) -> str:
    """Return the sum of reported amounts; empty: none is, or one is no plausible amount."""
    amounts = [money.read_amount(str(one)) for one in reported if one is not None]
    known = [amount for amount in amounts if amount is not None]
    return money.format_money(sum(known)) if known and len(known) == len(amounts) else ""


def _unreadable(problem: str, read: ProgramAnswer | None = None) -> ProgramAnswer:
    return replace(read or ProgramAnswer(), problem=problem, is_readable=False)
