"""`mimir config` and `mimir preambles`: settings with their origins, and trusted files."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.arguments import read_value
from mimir.cli.session import CommandSession
from mimir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "default"

All = Annotated[bool, typer.Option("--all", help="Also the settings with their default.")]
Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]
Value = Annotated[str, typer.Argument(metavar="VALUE", hidden=True)]
Words = Annotated[list[str] | None, typer.Argument(metavar="[trust PATH]")]
InProject = Annotated[bool, typer.Option("--project", help="Write to mimir.toml of the project.")]


def show(session: CommandSession, every: All = False) -> int:
    """Show the settings and where each comes from.

    Keys and passwords are masked.
    """
    from mimir.bootstrap import settings_files
    from mimir.bootstrap.models.endpoints import describe_models

    loaded = session.load()
    values, origins = settings_files.list_values(loaded), loaded.origins
    models = describe_models(loaded)
    shown = {name: value for name, value in values.items() if every or name in origins}
    if session.json:
        entries = [
            {"name": name, "value": value, "origin": origins.get(name, DEFAULT)}
            for name, value in shown.items()
        ]
        asked = [
            {
                "model": one.model,
                "roles": list(one.roles),
                "provider": one.provider,
                "base_url": one.base_url,
                "key": one.key,
            }
            for one in models
        ]
        session.console.json({"schema": 1, "settings": entries, "models": asked})
        return 0
    from mimir.cli.console import clean_line
    from mimir.cli.layout import table

    rows = [
        (name, origins.get(name, DEFAULT), clean_line(_as_text(value)) or '""')
        for name, value in shown.items()
    ]
    lines = table([("setting", "origin", "value"), *rows], session.console.width)
    if not every:
        lines.append(f"{len(values) - len(shown)} settings have their default: --all")
    asked = [
        (one.model or "the endpoint's default", one.where, one.key or "none", ", ".join(one.roles))
        for one in models
    ]
    lines += ["", *table([("model", "endpoint", "key", "roles"), *asked], session.console.width)]
    session.console.say("\n".join(lines))
    return 0


def get(session: CommandSession, name: Name) -> int:
    """Print the value of a setting.

    NAME is a dotted name, such as run.workers. Its origin goes to standard error.
    """
    from mimir.settings.names import require_known

    require_known(name, "the command line")
    values, origins = _load(session)
    # The short form of the sandbox is one of its values.
    full = name if name in values else f"{name}.backend"
    value, origin = values.get(full, ""), origins.get(full, DEFAULT)
    if session.json:
        session.console.json({"schema": 1, "name": full, "value": value, "origin": origin})
    else:
        session.console.print_exact(_as_text(value))
        session.console.note(f"origin: {origin}")
    return 0


def set_value(session: CommandSession, name: Name, value: Value, project: InProject = False) -> int:
    """Write a setting to your own settings file.

    VALUE is text or a TOML value, or "-" for standard input, which a key or password needs.
    The file is for you alone (0600). With --project it is mimir.toml of the project, which may
    not choose keys, endpoints, prices, the store or the sandbox.
    """
    from mimir.bootstrap import settings_files

    if settings_files.is_secret(name) and value != "-":
        raise UsageError(
            f"{name} is a secret, and other users can see the arguments of a command.",
            next_step=f"Write it to standard input: mimir config set {name} -",
        )
    text = read_value() if value == "-" else value
    settings_files.require_changeable(name, settings_files.read_value(text), is_project=project)
    path = session.project / settings_files.PROJECT_FILE if project else settings_files.own_file()
    settings_files.change_file(path, name, text, is_private=not project)
    session.show({"name": name, "path": str(path)}, f"written: {name} in {path}")
    # A stronger layer may hide the written value.
    _, origins = _load(session)
    wanted = "the project's settings" if project else "your own settings file"
    if origins.get(name, wanted) != wanted:
        session.console.note(f"warning: {origins[name]} sets {name} too, and is stronger.")
    return 0


def path(session: CommandSession) -> int:
    """Print the paths of the settings files.

    Your own file is stronger than the project's.
    """
    from mimir.bootstrap import settings_files

    files = {
        "project": session.project / settings_files.PROJECT_FILE,
        "own": settings_files.own_file(),
    }
    lines = [
        f"{name}: {file}{'' if file.exists() else ' (does not exist)'}"
        for name, file in files.items()
    ]
    return session.show({name: str(file) for name, file in files.items()}, *lines)


def preambles(session: CommandSession, words: Words = None) -> int:
    """List the preamble files of the project, or trust one.

    A run uses a file only if it is shipped with mimir, was generated in this project, or is
    trusted as it is now. `trust PATH` trusts a file in your own settings directory.
    """
    from mimir.bootstrap.agents.definition_files import open_preambles
    from mimir.cli.layout import table

    own = open_preambles(session.project, session.load())
    match words or []:
        case []:
            listed = own.list_files()
        case ["trust", path]:
            listed = (own.trust(path),)
        case _:
            raise UsageError("Unexpected arguments.", next_step="Write: mimir preambles trust PATH")
    if words:
        lines = [f"trusted: {listed[0].path} ({listed[0].hash[:12]})"]
    elif listed:
        rows = [(one.path, one.state, one.hash[:12]) for one in listed]
        lines = table([("file", "state", "hash"), *rows], session.console.width)
        if any(one.state == "ignored" for one in listed):
            lines.append("Ignored files are not used. Read one, then: mimir preambles trust PATH")
    else:
        lines = ["The project has no preamble files; the shipped ones are used."]
    entries = [{"path": one.path, "sha256": one.hash, "state": one.state} for one in listed]
    return session.show({"preambles": entries}, *lines)


def _load(session: CommandSession) -> "tuple[Mapping[str, object], Mapping[str, str]]":
    from mimir.bootstrap import settings_files

    loaded = session.load()
    return settings_files.list_values(loaded), loaded.origins


def _as_text(value: object) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, default=str)
