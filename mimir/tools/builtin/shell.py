"""The `run` tool: one command in the sandbox, with its exit code and its output."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from mimir.domain.message import ToolResult, ToolSpec
from mimir.domain.quoted_text import count_noun, quote_text
from mimir.errors import Paused, SandboxError, ToolError
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools, describe_tool, whole_number
from mimir.tools.calls.text_pages import MAX_CHARS, clip_both_ends
from mimir.workspace.sandbox.sandbox import CommandResult, CommandRunner

DEFAULT_SECONDS = 60
MAX_SECONDS = 600
MAX_ARGUMENT_BYTES = 100_000
"""The kernel refuses single arguments over 128 kB."""


class RunTool(LocalTools):
    """The toolset of the one tool `run`."""

    def __init__(
        self,
        sandbox: CommandRunner,
        workspace: Path,
        *,
        redact: Callable[[str], str] = str,
        max_seconds: int = MAX_SECONDS,
        max_chars: int = MAX_CHARS,
    ) -> None:
        """Bind the tool to a workspace.

        Args:
            sandbox: Runs the commands.
            workspace: Directory that commands see as `/workspace`.
            redact: Applied before the output is cut, so that no part of a secret is left.
            max_seconds: Longest timeout that a model may choose.
            max_chars: Most characters of output in a result.
        """
        self._sandbox = sandbox
        self._workspace = workspace
        self._redact = redact
        self._max_chars = max_chars
        # A configured limit may be lower than the default.
        self._default_seconds = min(DEFAULT_SECONDS, max_seconds)
        super().__init__((_spec(max_seconds, self._default_seconds),))

    def _handlers(self) -> Sequence[Handler]:
        return (self.run_command,)

    async def run_command(self, given: ToolArguments) -> ToolResult:
        """Run the command that the arguments name."""
        argv = _argv(given)
        seconds = given.number("timeout_seconds", self._default_seconds)
        try:
            ran = await self._sandbox.run(argv, workspace=self._workspace, seconds=seconds)
        except SandboxError as error:
            # No model can repair the sandbox, and another attempt would fail too.
            raise Paused(
                f"The sandbox stopped working, so no command can be run: {error}",
                reason="sandbox",
                next_step=error.next_step
                or "Find the cause with `mimir doctor`, then: mimir resume",
            ) from error
        return self._format(argv, ran, seconds)

    def _format(self, argv: Sequence[str], ran: CommandResult, seconds: int) -> ToolResult:
        output = clip_both_ends(
            self._redact(ran.output),
            self._max_chars,
            left_out_before=ran.left_out_bytes,
            hint=": filter the output (grep, head, tail) or send it to a file and read that",
        )
        if ran.exit_code is None:
            how = _STOPPED.get(ran.stop_reason, _NOT_THERE)
            heading = f"Error: {how.format(program=quote_text(argv[0]), time=count_noun(seconds, 'second'))}"
        else:
            heading = f"exit code {ran.exit_code}"
            output = f"{output}\n[{ran.advice}]" if ran.advice else output
        # A red test is a result, not an error: only a command without exit code is one.
        return ToolResult(
            text=f"{heading}\n{output or '(no output)'}",
            is_error=ran.exit_code is None,
            exit_code=ran.exit_code,
        )


_ALL_ENDED = "the command and all that it started were ended."
_STOPPED: Mapping[str, str] = {
    "timeout": f"timed out after {{time}}; {_ALL_ENDED} Run less at once, or give a larger timeout_seconds.",
    "memory": f"used too much memory; {_ALL_ENDED} Work on less at once.",
    "processes": f"started too many processes; {_ALL_ENDED} Start fewer at once.",
    "output": f"said far too much; {_ALL_ENDED} Send the output to a file, or filter it.",
}
_NOT_THERE = "there is no program {program} here. Use one that is installed."


@cache  # one object for all transcripts, so that lookups by identity hit
def _spec(max_seconds: int, default_seconds: int) -> ToolSpec:
    return describe_run(
        "run",
        "Run one command in the workspace (/workspace) and get its exit code and output. There is no network; "
        "nothing goes on running after it ends. Give argv or command.",
        max_seconds=max_seconds,
        default_seconds=default_seconds,
        read_only=False,
    )


def describe_run(
    name: str,
    description: str,
    *,
    max_seconds: int,
    read_only: bool,
    default_seconds: int = DEFAULT_SECONDS,
) -> ToolSpec:
    """Return the description of a tool that runs one command."""
    properties: Mapping[str, Mapping[str, object]] = {
        "argv": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "Program and arguments, no shell.",
        },
        "command": {
            "type": "string",
            "minLength": 1,
            "description": "A bash command line (pipefail is on). Instead of argv.",
        },
        "timeout_seconds": whole_number(1, max_seconds, f"Default {default_seconds}."),
    }
    return describe_tool(name, description, properties, read_only=read_only)


def _argv(given: ToolArguments) -> Sequence[str]:
    if given.has("argv") == given.has("command"):
        raise ToolError(
            "run takes exactly one of argv and command.",
            next_step='Send {"argv": ["program", "argument"]} or {"command": "program argument | other"}.',
        )
    # Without pipefail, `pytest | tail` would hide a failure.
    argv = given.texts("argv") or ("bash", "-o", "pipefail", "-c", given.text("command"))
    for word in argv:
        if "\0" in word:
            raise ToolError("A command cannot hold a NUL character.", next_step="Leave it out.")
        if len(word.encode()) > MAX_ARGUMENT_BYTES:
            raise ToolError(
                f"One argument is longer than {MAX_ARGUMENT_BYTES:,} bytes; it cannot be started.",
                next_step="Write the text to a file with write_file and name the file in the command.",
            )
    if not argv[0].strip():
        raise ToolError(
            "The first item of argv is empty.", next_step="Put the program's name first."
        )
    return argv
