"""`run` returns how a command ended and both ends of its output."""

import json
from pathlib import Path

import pytest

from mimir.domain.message import ToolResult
from mimir.errors import Paused, SandboxError
from mimir.tools.builtin.shell import RunTool
from mimir.tools.calls.text_pages import clip_both_ends
from mimir.tools.secrets import Redactor
from mimir.workspace.sandbox.sandbox import Sandbox, SandboxConfig
from tests.support.clock import FrozenClock
from tests.support.fake_tools import CONTEXT, FakeRan, FakeSandbox, wish

WORKSPACE = Path("/somewhere/ws")


async def run(
    says: FakeRan | Exception, arguments: dict[str, object] | None = None, **more: object
) -> tuple[ToolResult, FakeSandbox]:
    sandbox = FakeSandbox(says)
    tool = RunTool(sandbox, WORKSPACE, **more)  # type: ignore[arg-type]
    return await tool.call(wish("run", arguments or {"argv": ["pytest", "-q"]}), CONTEXT), sandbox


async def test_a_command_ends_with_its_code_and_output():
    result, sandbox = await run(FakeRan(exit_code=1, output="1 failed\n"))
    assert result == ToolResult(text="exit code 1\n1 failed\n", exit_code=1)
    assert sandbox.asked == [(("pytest", "-q"), WORKSPACE, 60)]


async def test_command_without_output_is_reported():
    result, _ = await run(FakeRan())
    assert result == ToolResult(text="exit code 0\n(no output)", exit_code=0)


async def test_a_command_line_goes_to_bash_with_pipefail():
    _, sandbox = await run(FakeRan(), {"command": "false | tail -n 5", "timeout_seconds": 7})
    assert sandbox.asked == [(("bash", "-o", "pipefail", "-c", "false | tail -n 5"), WORKSPACE, 7)]


ALL_ENDED = "the command and all that it started were ended."
ENDS = {
    "timeout": (
        FakeRan(exit_code=None, output="so far\n", stop_reason="timeout"),
        f"Error: timed out after 60 seconds; {ALL_ENDED} "
        "Run less at once, or give a larger timeout_seconds.\nso far\n",
    ),
    "memory": (
        FakeRan(exit_code=None, output="x", stop_reason="memory"),
        f"Error: used too much memory; {ALL_ENDED} Work on less at once.\nx",
    ),
    "processes": (
        FakeRan(exit_code=None, output="x", stop_reason="processes"),
        f"Error: started too many processes; {ALL_ENDED} Start fewer at once.\nx",
    ),
    "output": (
        FakeRan(exit_code=None, output="x", stop_reason="output"),
        f"Error: said far too much; {ALL_ENDED} Send the output to a file, or filter it.\nx",
    ),
    "no program": (
        FakeRan(exit_code=None),
        "Error: there is no program 'pytest' here. Use one that is installed.\n(no output)",
    ),
}


@pytest.mark.parametrize(("ran", "said"), ENDS.values(), ids=ENDS)
async def test_a_command_that_did_not_end_by_itself_has_no_code(ran: FakeRan, said: str):
    result, _ = await run(ran)
    assert result == ToolResult(text=said, is_error=True, exit_code=None)


WRONG = {
    "neither": ({"timeout_seconds": 5}, "Error: run takes exactly one of argv and command. "),
    "both": ({"argv": ["a"], "command": "a"}, "Error: run takes exactly one of argv and command. "),
    "no words": (
        {"argv": []},
        "Error: The number of items of the 'argv' in the arguments of run must be at least 1",
    ),
    "no program": ({"argv": [" ", "a"]}, "Error: The first item of argv is empty. "),
    "NUL": ({"command": "a\0b"}, "Error: A command cannot hold a NUL character. "),
    "a huge word": (
        {"argv": ["a", "b" * 100_001]},
        "Error: One argument is longer than 100,000 bytes",
    ),
    "too long": (
        {"command": "a", "timeout_seconds": 601},
        "Error: The 'timeout_seconds' in the arguments of run must be at most 600, not 601.",
    ),
    "not at all": (
        {"command": "a", "timeout_seconds": 0},
        "Error: The 'timeout_seconds' in the arguments of run must be at least 1, not 0.",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
async def test_a_wrong_call_starts_nothing(arguments: dict[str, object], said: str):
    result, sandbox = await run(FakeRan(), arguments)
    assert result.text.startswith(said)
    assert result.is_error
    assert sandbox.asked == []


async def test_time_limit_of_a_command_is_that_of_its_tool():
    result, sandbox = await run(FakeRan(), {"command": "a"}, max_seconds=20)
    assert not result.is_error
    assert sandbox.asked[0][2] == 20
    result, _ = await run(FakeRan(), {"command": "a", "timeout_seconds": 21}, max_seconds=20)
    assert "must be at most 20, not 21" in result.text


async def test_a_broken_sandbox_pauses_the_run():
    with pytest.raises(Paused) as paused:
        await run(SandboxError("bwrap: no permissions", next_step="Allow user namespaces."))
    assert paused.value.reason == "sandbox"
    assert "bwrap: no permissions" in str(paused.value)
    assert paused.value.next_step == "Allow user namespaces."


async def test_a_long_output_keeps_its_ends():
    output = "".join(f"line {i}\n" for i in range(2_000))
    result, _ = await run(FakeRan(output=output), max_chars=300)
    head, mark, tail = result.text.partition("[… ")
    assert head.startswith("exit code 0\nline 0\n")
    assert tail.endswith("line 1999\n")
    assert (
        "characters left out here: filter the output (grep, head, tail) or send it to a file"
        in tail
    )
    assert mark
    assert len(result.text) < 500


async def test_no_half_of_a_secret_is_left_at_an_edge():
    output = "a" * 95 + "zq7-canary-value" + "b" * 1_000
    for max_chars in range(280, 340):
        result, _ = await run(
            FakeRan(output=output), redact=Redactor(["zq7-canary-value"]), max_chars=max_chars
        )
        assert "zq7" not in result.text
        assert "value" not in result.text


def test_clipped_text_has_whole_lines_and_the_missing_count():
    text = "".join(f"{i:04}\n" for i in range(100))
    cut = clip_both_ends(text, 100)
    head, rest = cut.split("\n[… ")
    missing, tail = rest.split("\n", 1)
    assert (head, tail.split("\n")[0]) == ("0000\n0001\n0002\n0003\n0004\n0005", "0087")
    kept = len(head) + 1 + len(tail)
    assert missing.startswith(f"{len(text) - kept:,} characters left out")


async def test_bytes_left_out_by_the_sandbox_are_counted():
    result, _ = await run(FakeRan(output="a" * 150, left_out_bytes=1_000), max_chars=100)
    assert "[… 1,050 characters left out" in result.text


async def test_a_real_sandbox_runs_a_command_line(tmp_path: Path, frozen_clock: FrozenClock):
    where = tmp_path / "ws"
    where.mkdir()
    sandbox = Sandbox(SandboxConfig(), scratch=tmp_path / "scratch", clock=frozen_clock)
    tool = RunTool(sandbox, where)
    said = await tool.call(
        wish("run", {"command": "pwd; echo made > made.txt; false | cat"}), CONTEXT
    )
    assert said == ToolResult(text="exit code 1\n/workspace\n", exit_code=1)
    assert (where / "made.txt").read_text() == "made\n"
    said = await tool.call(wish("run", {"argv": ["no-such-program"]}), CONTEXT)
    assert said.text.startswith("Error: there is no program 'no-such-program' here.")
    said = await tool.call(wish("run", {"argv": ["sleep", "60"], "timeout_seconds": 1}), CONTEXT)
    assert said.text.startswith("Error: timed out after 1 second;")


def test_the_description_names_the_bounds(tmp_path: Path):
    (spec,) = RunTool(FakeSandbox(FakeRan()), tmp_path, max_seconds=30).specs
    assert (spec.name, spec.read_only) == ("run", False)
    assert '"maximum": 30' in json.dumps(spec.input_schema)


async def test_cause_of_a_failure_is_named_below_the_output():
    result, _ = await run(FakeRan(exit_code=6, output="x", advice="There is no network."))
    assert result.text == "exit code 6\nx\n[There is no network.]"
