"""The command `mimir`: its commands and options, and how an exception becomes an exit code and three lines.

Heavy libraries are imported inside command bodies only, so that `mimir --help` answers at once.
"""

import atexit
import contextlib
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Protocol, cast

import typer
from typer.main import get_command

from mimir.cli.commands import (
    bench,
    demo,
    inspection,
    plan_commands,
    replay,
    run_commands,
    serve_recording,
    transfer,
)
from mimir.cli.session import (
    CommandSession,
    CommonOptions,
    Debug,
    Json,
    Store,
    command,
    project_directory,
)

if TYPE_CHECKING:
    from mimir.cli.error_output import CommandFailure

NAME = "mimir"


class _UsageParameter(Protocol):
    opts: Sequence[str]


class _UsageCommand(Protocol):
    params: Sequence[_UsageParameter]
    commands: Mapping[str, object]
    """Of a group only."""


class _UsageContext(Protocol):
    """What typer knows of the command whose arguments are wrong; it exports no type for it."""

    command_path: str
    command: _UsageCommand


app = typer.Typer(
    name=NAME,
    help="Turn a request into a proven result: planned, worked, checked, judged, sealed.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"{NAME} {version(NAME)}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version."),
    ] = False,
    store: Store = "",
    as_json: Json = False,
    debug: Debug = False,
) -> int:
    """Turn a request into a proven result: planned, worked, checked, judged, sealed."""
    context.obj = CommonOptions(store=store, json=as_json)
    if context.invoked_subcommand is not None:
        return 0
    from mimir.cli.console import Console

    console = Console.of_process()
    session = CommandSession(
        project=project_directory(), console=console, store=store, json=as_json
    )
    return inspection.orientation(session)


for _body in (
    plan_commands.chain,
    plan_commands.check,
    run_commands.execute,
    run_commands.resume,
    run_commands.worker,
    inspection.status,
    inspection.report,
    run_commands.cancel,
    run_commands.apply,
    inspection.verify,
    transfer.export,
    transfer.migrate,
    replay.replay,
    serve_recording.serve_recording,
    inspection.doctor,
    demo.demo,
    bench.bench,
):
    app.command(_body.__name__.replace("_", "-"))(command(_body))
app.command("lint", hidden=True)(command(plan_commands.check))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; its exit code. What ends it early is said on the standard error."""
    try:
        return _invoke(list(arguments))
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        return _end(_usage(error))
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  the rim of the process: everything becomes an exit code here
        if "--debug" in arguments:
            traceback.print_exc()
        return _failed(error)


def main() -> None:
    """Run the command line of this process, and end it at once.

    All is written and closed by then, and libraries do what they have left for the end. The interpreter would take them apart besides, a
    sixth of what `mimir --help` takes, and write once more into a pipe that nobody reads.
    """
    code = run(sys.argv[1:])
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  it has no other name
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or never there
            stream.flush()
    os._exit(code)


def _invoke(arguments: list[str]) -> int:
    group = get_command(app)
    with group.make_context(NAME, arguments) as context:
        code: object = group.invoke(context)
    return code if isinstance(code, int) else 0


def _failed(error: BaseException) -> int:
    from mimir.cli import error_output

    known = error_output.failure(error)
    return error_output.exit_code(error) if known is None else _end(known)


def _end(failure: "CommandFailure") -> int:
    from mimir.cli.console import Console

    console = Console.of_process()
    with contextlib.suppress(OSError):
        for line in failure.lines():
            console.note(line)
    return failure.exit_code


def _usage(error: typer.TyperException) -> "CommandFailure":
    """Say what is wrong with the command line, with the nearest option or command where one is misspelt."""
    from mimir.cli.arguments import nearest
    from mimir.cli.error_output import USAGE, CommandFailure

    context = cast("_UsageContext | None", getattr(error, "ctx", None))
    said = error.format_message()
    option = cast("str", getattr(error, "option_name", ""))
    unknown = _NO_COMMAND.match(said)
    path = context.command_path if context else NAME
    near = ""
    if context and option:
        near = nearest(option, [name for p in context.command.params for name in p.opts])
        said = error.message
    elif context and unknown:
        near = nearest(unknown[1], context.command.commands)
        near = f"{NAME} {near}" if near else ""
        said = unknown[0]
    step = f"Did you mean {near}?" if near else f"See: {path} --help"
    return CommandFailure(exit_code=USAGE, what=said, next_step=step)


_NO_COMMAND = re.compile(r"No such command (?:'|\")(.*?)(?:'|\")\.", re.DOTALL)
