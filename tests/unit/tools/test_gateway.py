"""Every call passes the same gates in the same order, leaves a row in the lane, and comes back as text."""

import asyncio
import errno
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.message import CallContext, ToolCall, ToolResult
from mimir.errors import LeaseLost, Paused, ToolError, WorkspaceError
from mimir.tools.gateway import MAX_RESULT_CHARS, Gateway
from mimir.tools.permissions import ToolPolicy, ToolRights
from mimir.tools.protocol import Toolset
from mimir.tools.secrets import Redactor
from mimir.tools.wrappers.quota import CallQuota
from tests.support.fake_tools import CONTEXT, FakeLane, Obedient, spec, wish

READ, WRITE, RUN = (
    spec("read_file"),
    spec("write_file", read_only=False),
    spec("run", read_only=False),
)
SECRET = "zq7-canary-value"


def raising(error: Exception) -> Callable[[ToolCall], Awaitable[ToolResult]]:
    async def answer(call: ToolCall) -> ToolResult:
        raise error

    return answer


def answering(result: ToolResult) -> Callable[[ToolCall], Awaitable[ToolResult]]:
    async def answer(call: ToolCall) -> ToolResult:
        return result

    return answer


class Trees:
    """A workspace whose tree changes with every look."""

    def __init__(self) -> None:
        self.looks = 0

    async def __call__(self) -> str:
        self.looks += 1
        return f"tree-{self.looks}"


def build(
    tools: Obedient,
    lane: FakeLane,
    *,
    granted: tuple[str, ...] = ("read_file", "write_file"),
    **more: object,
) -> Toolset:
    return Gateway([tools], granted=granted, transcript=lane, redact=Redactor([SECRET]), **more)  # type: ignore[arg-type]


async def test_a_good_call_is_run_and_recorded():
    tools, lane, trees = Obedient(READ, WRITE), FakeLane(), Trees()
    result = await build(tools, lane, snapshot=trees).call(
        wish("write_file", {"text": "a"}), CONTEXT
    )
    assert result == ToolResult(text="did write_file", tree="tree-1")
    (row,) = lane.rows
    assert (row.kind, row.effectful, row.title) == ("tool", True, "write_file a")
    assert row.request == {"tool": "write_file", "arguments": '{"text": "a"}'}
    assert row.outcome == CallOutcome(
        value={"text": "did write_file", "is_error": False, "exit_code": None, "denied": False},
        tree="tree-1",
    )


async def test_a_read_takes_no_snapshot_and_keeps_the_tree():
    lane, trees = FakeLane(), Trees()
    tools = build(Obedient(READ, WRITE), lane, snapshot=trees, base_tree="base")
    first = await tools.call(wish("read_file"), CONTEXT)
    await tools.call(wish("write_file"), CONTEXT)
    last = await tools.call(wish("read_file"), CONTEXT)
    assert (first.tree, last.tree, trees.looks) == ("base", "tree-1", 1)
    assert [row.effectful for row in lane.rows] == [False, True, False]
    assert lane.rows[0].outcome is not None
    assert lane.rows[0].outcome.tree == ""


async def test_only_granted_tools_are_shown_in_a_fixed_order():
    shown = build(
        Obedient(spec("zeta"), RUN, WRITE, READ),
        FakeLane(),
        granted=("zeta", "write_file", "read_file"),
    )
    assert [s.name for s in shown.specs] == ["read_file", "write_file", "zeta"]


async def test_the_first_toolset_that_has_a_name_serves_it():
    first, second = Obedient(READ), Obedient(READ, WRITE)
    tools = Gateway([first, second], granted=("read_file",), transcript=FakeLane(), redact=str)
    await tools.call(wish("read_file"), CONTEXT)
    assert (len(first.calls), len(second.calls)) == (1, 0)


RIGHTS = ToolRights(
    role="worker",
    role_tools=("read_file", "write_file", "run"),
    plan_tools=("read_file", "write_file", "run"),
    policy=ToolPolicy(deny=("run",)),
)
YOURS = "Your tools: read_file, write_file."
REFUSALS: dict[str, tuple[ToolCall, str, bool]] = {
    "no such tool": (
        wish("readfile"),
        f"Error: There is no tool 'readfile'. Did you mean 'read_file'? {YOURS}",
        False,
    ),
    "a hostile name": (
        wish("\x1b[2J\n" + "x" * 500),
        f"Error: There is no tool '\\u001b[2J\\n{'x' * 115}…'. {YOURS}",
        False,
    ),
    "a tool that was not granted": (
        wish("run", {"text": "a"}),
        f"Denied: 'run' is switched off by the policy of this installation. {YOURS}",
        True,
    ),
    "a tool that was not granted, wrong arguments": (
        wish("run", "nonsense"),
        f"Denied: 'run' is switched off by the policy of this installation. {YOURS}",
        True,
    ),
    "a tool of another role": (
        wish("memory_get_node", {"id": "a"}),
        f"Denied: the role 'worker' may not use 'memory_get_node'. {YOURS}",
        True,
    ),
    "wrong arguments": (
        wish("read_file", {"text": 1}),
        "Error: The 'text' in the arguments of read_file must be a string, not the number 1. "
        "read_file takes text (string, optional).",
        False,
    ),
}


@pytest.mark.parametrize(("call", "said", "denied"), REFUSALS.values(), ids=REFUSALS)
async def test_a_refused_call_is_recorded_as_a_result_without_effect(
    call: ToolCall, said: str, denied: bool
):
    tools, lane, trees = Obedient(READ, WRITE, RUN), FakeLane(), Trees()
    granted = RIGHTS.granted_tools(s.name for s in tools.specs)
    result = await build(tools, lane, granted=granted, why=RIGHTS.why, snapshot=trees).call(
        call, CONTEXT
    )
    assert result == ToolResult(text=said, is_error=True, denied=denied)
    assert (tools.calls, trees.looks) == ([], 0)
    (row,) = lane.rows
    assert not row.effectful
    assert row.outcome is not None
    assert row.outcome.value["text"] == said
    assert row.outcome.value["denied"] is denied
    assert row.title.isprintable()


async def test_a_granted_tool_that_is_not_there_is_denied():
    result = await build(Obedient(READ), FakeLane()).call(wish("write_file"), CONTEXT)
    assert result.denied
    assert (
        result.text == "Denied: 'write_file' is not there in this attempt. Your tools: read_file."
    )


async def test_quota_refuses_further_calls_live_and_replayed():
    lane = FakeLane()
    limits = {"read_file": 2}
    tools = build(Obedient(READ, WRITE), lane, quota=CallQuota(limits))
    results = [await tools.call(wish("read_file"), CONTEXT) for _ in range(3)]
    assert [r.denied for r in results] == [False, False, True]
    assert results[2].text == (
        "Denied: the quota of 'read_file' in this attempt (2 calls) is used up. "
        "Your tools: read_file, write_file."
    )
    assert not (await tools.call(wish("write_file"), CONTEXT)).denied

    recorded = [row.outcome for row in lane.rows[:2] if row.outcome]
    again = build(Obedient(READ), FakeLane(recorded=recorded), quota=CallQuota(limits))
    results = [await again.call(wish("read_file"), CONTEXT) for _ in range(3)]
    assert [r.denied for r in results] == [False, False, True]


async def test_an_invalid_call_takes_nothing_from_the_quota():
    tools = build(Obedient(READ), FakeLane(), quota=CallQuota({"read_file": 1}))
    await tools.call(wish("read_file", "{"), CONTEXT)
    assert not (await tools.call(wish("read_file"), CONTEXT)).is_error


async def test_a_replayed_call_serves_the_record_and_runs_nothing():
    tools, trees = Obedient(WRITE), Trees()
    value = {"text": "as recorded", "is_error": True, "exit_code": 3, "denied": False}
    lane = FakeLane(recorded=[CallOutcome(value=value, tree="t9")])
    result = await build(tools, lane, snapshot=trees).call(wish("write_file"), CONTEXT)
    assert result == ToolResult(text="as recorded", is_error=True, exit_code=3, tree="t9")
    assert (tools.calls, trees.looks) == ([], 0)


async def test_neither_model_nor_journal_sees_a_secret():
    said = ToolResult(text=f"key: {SECRET} and {SECRET.encode().hex()}")
    lane = FakeLane()
    tools = build(Obedient(READ, answer=answering(said)), lane)
    result = await tools.call(wish("read_file", {"text": f"echo {SECRET}"}), CONTEXT)
    assert result.text == "key: [redacted:secret] and [redacted:secret]"
    assert SECRET not in repr(lane.rows)
    assert lane.rows[0].title == "read_file echo [redacted:secret]"


async def test_no_refusal_repeats_a_secret():
    lane = FakeLane()
    tools = build(Obedient(READ), lane)
    for call in (wish(SECRET), wish("read_file", {SECRET: 1}), wish("run", SECRET)):
        assert SECRET not in (await tools.call(call, CONTEXT)).text
    assert SECRET not in repr(lane.rows)


async def test_mistake_of_the_model_becomes_an_error_text():
    error = ToolError("What happened.", next_step="What to do.")
    result = await build(Obedient(READ, answer=raising(error)), FakeLane()).call(
        wish("read_file"), CONTEXT
    )
    assert result == ToolResult(text="Error: What happened. What to do.", is_error=True)


async def test_a_bug_of_a_tool_becomes_a_text_for_the_model():
    bug = KeyError("/home/user/secret/path")
    tools = build(Obedient(READ, answer=raising(bug)), FakeLane())
    result = await tools.call(wish("read_file"), CONTEXT)
    assert result.is_error
    assert result.text == (
        "Error: read_file failed inside the engine (KeyError); your call was not at fault, and it may have been "
        "done in part. Look at the result before you repeat it, or take another way."
    )


def chained(outer: Exception, inner: Exception) -> Exception:
    outer.__cause__ = inner
    return outer


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        OSError(errno.EDQUOT, "Quota exceeded"),
        chained(ToolError("x"), FULL),
        chained(ValueError("x"), FULL),
    ],
    ids=["disk", "quota", "wrapped for the model", "wrapped"],
)
async def test_a_full_disk_pauses_the_run(error: Exception):
    lane = FakeLane()
    with pytest.raises(Paused) as paused:
        await build(Obedient(READ, answer=raising(error)), lane).call(wish("read_file"), CONTEXT)
    assert paused.value.reason == "disk"
    assert lane.rows[0].outcome is None


async def test_a_disk_that_is_full_at_the_snapshot_pauses_too():
    async def snapshot() -> str:
        raise FULL

    with pytest.raises(Paused):
        await build(Obedient(WRITE), FakeLane(), snapshot=snapshot).call(
            wish("write_file"), CONTEXT
        )


@pytest.mark.parametrize(
    "error",
    [
        Paused("x", reason="sandbox"),
        LeaseLost("x"),
        WorkspaceError("gone"),
        asyncio.CancelledError(),
    ],
    ids=["paused", "lease lost", "workspace gone", "cancelled"],
)
async def test_engine_error_passes_through_the_gateway(error: Exception):
    lane = FakeLane()
    with pytest.raises(type(error)):
        await build(Obedient(READ, answer=raising(error)), lane).call(wish("read_file"), CONTEXT)
    assert lane.rows[0].outcome is None


async def test_a_result_without_bound_is_cut_with_a_mark():
    said = ToolResult(text="a" * (MAX_RESULT_CHARS + 5))
    result = await build(Obedient(READ, answer=answering(said)), FakeLane()).call(
        wish("read_file"), CONTEXT
    )
    assert result.text.endswith("a\n[5 more characters left out: ask for less at once]")


async def test_unencodable_text_is_written_as_its_escape():
    lane = FakeLane()
    tools = build(Obedient(READ, answer=answering(ToolResult(text="a\udcffb"))), lane)
    result = await tools.call(wish("read_file", id="\ud800"), CONTEXT)
    assert result.text == "a\\udcffb"
    await tools.call(ToolCall(id="1", name="\ud800", arguments="\udfff"), CONTEXT)
    assert lane.rows[1].request == {"tool": "\\ud800", "arguments": "\\udfff"}
    json.dumps([row.request for row in lane.rows], ensure_ascii=False).encode()


async def test_huge_arguments_are_recorded_by_their_hash():
    lane = FakeLane()
    result = await build(Obedient(READ), lane).call(wish("read_file", "x" * 3_000_000), CONTEXT)
    assert "3,000,000 characters long" in result.text
    recorded = lane.rows[0].request["arguments"]
    assert isinstance(recorded, str)
    assert len(recorded) < 2_000
    assert "[3000000 characters, sha256 " in recorded


async def test_a_title_is_one_short_line():
    lane = FakeLane()
    await build(Obedient(READ), lane).call(
        wish("read_file", {"text": "a\n\x1b[1mb " + "c" * 200}), CONTEXT
    )
    assert lane.rows[0].title == "read_file a \\u001b[1mb " + "c" * 62 + "…"


async def test_position_in_the_transcript_is_reserved_before_the_first_wait():
    lane = FakeLane()
    tools = build(Obedient(READ, WRITE), lane)
    calls = [tools.call(wish("read_file", {"text": str(i)}), CONTEXT) for i in range(20)]
    await asyncio.gather(*calls)
    assert [row.title for row in lane.rows] == [f"read_file {i}" for i in range(20)]


async def test_the_caller_is_never_taken_from_arguments():
    seen: list[CallContext] = []

    class Curious(Obedient):
        async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
            seen.append(context)
            return ToolResult(text="")

    other = replace(CONTEXT, role="qc", task="other")
    await build(Curious(READ), FakeLane()).call(wish("read_file", {"text": "role=pm"}), other)
    assert seen == [other]
