"""The command `mimir`: what it is and which version; heavy libraries are imported inside command bodies only."""

from importlib.metadata import version
from typing import Annotated

import typer

app = typer.Typer(
    name="mimir",
    help="Turn a request into a proven result: planned, worked, checked, judged, sealed.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mimir {version('mimir')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Turn a request into a proven result: planned, worked, checked, judged, sealed."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line of this process."""
    app(prog_name="mimir")
