"""Readers of each program's output: its answer, its usage, and whether it is a success."""

import json

import pytest

from mimir.attempts.program.readers import MAX_LINES, read_output
from mimir.domain.usage import TokenUsage

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 7}
CLAUDE: dict[str, object] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Done.",
    "usage": USAGE,
    "total_cost_usd": 0.01,
}


def lines(*events: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in events)


def claude(**changed: object) -> str:
    return json.dumps({**CLAUDE, **changed})


MESSAGE = {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}}
TURN = {"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 4}}
STATS = {"models": {"m": {"tokens": {"prompt": 9, "candidates": 2, "thoughts": 1}}}}
START: dict[str, object] = {"type": "step_start", "part": {}}


def finish(reason: str) -> dict[str, object]:
    tokens = {"input": 6, "output": 2, "reasoning": 1, "cache": {"read": 4}}
    return {"type": "step_finish", "part": {"reason": reason, "tokens": tokens}}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "part": {"text": words}}


@pytest.mark.parametrize(
    ("reader", "output", "answer", "tokens"),
    [
        ("claude", claude(), "Done.", (15, 7)),
        ("claude", f"warning: x\n{claude()}\n", "Done.", (15, 7)),
        ("claude", json.dumps([{"type": "system"}, CLAUDE]), "Done.", (15, 7)),
        ("claude", claude(structured_output={"a": 1}), '{"a": 1}', (15, 7)),
        ("codex", lines({"type": "new.event"}, MESSAGE, TURN), "Done.", (3, 4)),
        ("codex", "not JSON\n" + lines(MESSAGE, TURN, TURN), "Done.", (6, 8)),
        ("gemini", json.dumps({"response": "Done.", "stats": STATS}, indent=2), "Done.", (9, 3)),
        (
            "opencode",
            lines(
                START, text("I look."), finish("tool-calls"), START, text("Done."), finish("stop")
            ),
            "Done.",
            (20, 6),
        ),
        ("text", " Done.\n", "Done.", None),
        ("json:a.b", '{"a": {"b": "Done."}}', "Done.", None),
        ("jsonl:item.done.text", lines({"type": "item.done", "text": "Done."}), "Done.", None),
    ],
)
def test_documented_output_is_read(
    reader: str, output: str, answer: str, tokens: tuple[int, int] | None
) -> None:
    read = read_output(reader, 0, output)
    assert (read.text, read.problem) == (answer, "")
    usage = TokenUsage(input_tokens=tokens[0], output_tokens=tokens[1]) if tokens else None
    assert read.usage == usage


@pytest.mark.parametrize(
    ("reader", "code", "output", "problem"),
    [
        (
            "claude",
            0,
            claude(is_error=True, result="API Error: 529"),
            "reports an error: API Error",
        ),
        ("claude", 0, claude(subtype="error_max_turns"), "error_max_turns"),
        ("claude", 0, claude().replace("false", "true, " + '"is_error": false'), "no whole JSON"),
        ("claude", 0, claude(is_error="false"), "reports an error"),
        ("claude", 0, claude()[:-20], "no whole JSON"),
        ("claude", 0, "", "no whole JSON"),
        ("claude", 0, "Please run /login", "no whole JSON"),
        ("claude", 1, claude(), "exit code 1"),
        ("claude", 0, "[" * 100_000, "no whole JSON"),
        ("claude", 0, claude() + "\n" * (MAX_LINES + 1), "lines"),
        ("codex", 0, lines(MESSAGE), "completed turn"),
        ("codex", 0, lines(TURN), "message of the agent"),
        ("codex", 0, lines(MESSAGE, TURN)[:-9], "completed turn"),
        (
            "codex",
            0,
            lines(MESSAGE, TURN, {"type": "turn.failed", "error": {"message": "limit"}}),
            "turn.failed: limit",
        ),
        ("codex", 0, lines(MESSAGE, TURN, {"type": "error", "message": "lost"}), "error: lost"),
        ("gemini", 0, json.dumps({"response": "x", "error": {"message": "quota"}}), "quota"),
        ("gemini", 1, json.dumps({"error": {"message": "general"}}), "exit code 1"),
        ("gemini", 42, json.dumps({"error": {"message": "input"}}), "exit code 42"),
        ("gemini", 53, json.dumps({"response": "half"}), "limit of turns"),
        ("opencode", 0, "", "no answer"),
        ("opencode", 0, lines(START, text("I look."), finish("tool-calls")), "no answer"),
        (
            "opencode",
            0,
            lines(START, text("x"), finish("stop"), {"type": "error", "error": {"name": "Auth"}}),
            "Auth",
        ),
        ("text", 0, " \n", "printed nothing"),
        ("json:a", 0, '{"a": 1}', "no whole JSON"),
    ],
)
def test_output_without_success_is_none(reader: str, code: int, output: str, problem: str) -> None:
    assert problem in read_output(reader, code, output).problem


def test_refused_permissions_and_implausible_usage_are_seen() -> None:
    denials = [{"tool_name": "Bash"}, {"tool_name": "Bash"}, "Write"]
    read = read_output("claude", 0, claude(permission_denials=denials))
    assert read.denials == ("Bash", "Write")
    for usage in ({}, {"input_tokens": -1, "output_tokens": 2}, {"input_tokens": 10**12}):
        assert read_output("claude", 0, claude(usage=usage)).usage is None
