"""The command `mimir`: its commands and options, and the exit code of every exception.

Heavy libraries are imported inside command bodies only, so that `mimir --help` answers at once.
"""

import atexit
import contextlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer
from typer.main import get_command

from mimir.cli.command_table import HELP, NAME, CommandGroup
from mimir.cli.session import (
    CommandSession,
    CommonOptions,
    Debug,
    Json,
    Store,
    project_directory,
)
from mimir.errors import UsageError

if TYPE_CHECKING:
    from mimir.cli.error_output import CommandFailure

QUESTION = "__complete"
"""First argument of a shell's question; the words of its line follow."""
# Compiled at the first usage error: `mimir --help` needs no pattern.
_NO_COMMAND = r"(?s)No such command (?:'|\")(.*?)(?:'|\")\."

app = typer.Typer(
    name=NAME,
    cls=CommandGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=HELP,
    epilog=f"Each command has an example: {NAME} COMMAND -h. The options above go with every command.",
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"{NAME} {version(NAME)}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    show_version: Annotated[
        bool,
        typer.Option(
            "-V",
            "-v",
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
    store: Store = "",
    as_json: Json = False,
    debug: Debug = False,
) -> int:
    """Turn a request into a proven result: planned, executed, checked, judged, sealed."""
    context.obj = CommonOptions(store=store, json=as_json)
    if context.invoked_subcommand is not None:
        return 0
    from mimir.cli.commands import inspection
    from mimir.cli.console import Console

    session = CommandSession(
        project=project_directory(), console=Console.of_process(), store=store, json=as_json
    )
    return inspection.orientation(session)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; print an error to standard error."""
    try:
        group = get_command(app)
        with group.make_context(NAME, list(arguments)) as context:
            code: object = group.invoke(context)
        return code if isinstance(code, int) else 0
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        return _print_failure(_describe_usage(error))
    # These belong to the interpreter, not to a command.
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  the boundary of the process: every error becomes an exit code
        # The option may be unparsed: the error may come from the parser itself.
        if "--debug" in arguments:
            traceback.print_exc()
        from mimir.cli import error_output

        known = error_output.failure(error)
        return error_output.exit_code(error) if known is None else _print_failure(known)


def main() -> None:
    """Run the command line of this process, then end the process at once."""
    if sys.argv[1:2] == [QUESTION]:
        from mimir.cli.commands import completion

        code = completion.answer_shell(sys.argv[2:], get_command(app))
    else:
        code = run(sys.argv[1:])
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  it has no other name
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed or missing
            stream.flush()
    # Everything is written and closed. Tearing the interpreter down would take a sixth of the
    # time of `mimir --help`, and would write again to a closed pipe.
    os._exit(code)


def _print_failure(failure: "CommandFailure") -> int:
    from mimir.cli.console import Console

    console = Console.of_process()
    # A closed standard error must not hide the exit code.
    with contextlib.suppress(OSError):
        for line in failure.lines():
            console.note(line)
    return failure.exit_code


def _describe_usage(error: typer.TyperException) -> "CommandFailure":
    """Return the message of a usage error, with the nearest option or command."""
    from mimir.cli.arguments import nearest
    from mimir.cli.commands import completion
    from mimir.cli.error_output import CommandFailure

    # Only some subclasses of the library have these attributes.
    context = cast("typer.Context | None", getattr(error, "ctx", None))
    option = str(getattr(error, "option_name", ""))
    problem = error.format_message()
    unknown = re.match(_NO_COMMAND, problem)
    path = context.command_path if context else NAME
    near = ""
    if context and option:
        near = nearest(option, [name for p in context.command.params for name in p.opts])
        problem = error.message
    elif context and unknown:
        near = nearest(unknown[1], completion.list_names(context.command))
        near = f"{context.command_path} {near}" if near else ""
        problem = unknown[0]
    step = f"Did you mean {near}?" if near else f"See: {path} --help"
    return CommandFailure(exit_code=UsageError.exit_code, problem=problem, next_step=step)
