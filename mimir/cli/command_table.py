"""The commands of `mimir`: where each is, its example, and its making on first use.

A command line imports and builds only the command that it names; a list of commands builds all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from mimir.cli.session import command

NAME = "mimir"
HELP = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command or group: module of `mimir.cli.commands`, function, example."""

    module: str
    function: str
    example: str
    further: tuple[str, ...] = ()
    """Further names, which are not listed and not suggested."""
    name: str = ""
    """Empty: the name of the function."""
    help: str = ""
    """Of a group; empty: the docstring of the function."""
    parts: "tuple[CommandEntry, ...]" = ()
    """Commands of a group. Its function runs if none of them follows; empty: it needs one."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the listed one first."""
        return (self.name or self.function.replace("_", "-"), *self.further)


COMMANDS = (
    CommandEntry("plan_commands", "chain", 'chain "Add a --json option to the report"', ("plan",)),
    CommandEntry("plan_commands", "check", "check my-plan --run", ("lint",)),
    CommandEntry("run_commands", "execute", "execute my-plan --max-calls 200", ("run",)),
    CommandEntry("run_commands", "resume", "resume --time-limit 2h"),
    CommandEntry("run_commands", "worker", "worker --concurrency 2"),
    CommandEntry("inspection", "status", "status --workers"),
    CommandEntry("browsing", "runs", "runs --all", ("ls",)),
    CommandEntry("browsing", "show", "show /task-1 --diff"),
    CommandEntry("browsing", "log", "log --follow", ("logs",)),
    CommandEntry("inspection", "report", "report --full"),
    CommandEntry("people.inbox", "inbox", "inbox --all"),
    CommandEntry("people.answer", "answer", "answer q-1f2e3d eu-west --resume"),
    CommandEntry(
        "people.ledger",
        "ledger",
        "ledger --sync",
        name="ledger",
        help="Print the ledger of a run, or store edits of it.",
        parts=(
            CommandEntry(
                "people.ledger", "import_file", "ledger import old/LEDGER.md", name="import"
            ),
        ),
    ),
    CommandEntry("people.ledger", "handoff", 'handoff "The cache is next; see docs/cache.md"'),
    CommandEntry("browsing", "pause", "pause run-1127"),
    CommandEntry("run_commands", "cancel", "cancel run-1127"),
    CommandEntry("run_commands", "apply", "apply --commit"),
    CommandEntry("inspection", "metrics", "metrics --session s-1127-1714-3fa9c2"),
    CommandEntry("inspection", "verify", "verify --explain task-1"),
    CommandEntry("transfer", "export", "export --format mermaid"),
    CommandEntry("transfer", "migrate", "migrate .mimir/mimir.db neo4j://localhost:7687"),
    CommandEntry("replay", "replay", "replay run-1127 --diff"),
    CommandEntry("replay", "serve_recording", "serve-recording run.jsonl --port 8000"),
    CommandEntry(
        "agents",
        "invoke",
        'invoke reviewer "Review src/app.py" --criterion "Each fault has a line"',
    ),
    CommandEntry(
        "agent_results.memory",
        "list_memories",
        "memory --all",
        name="memory",
        help="List memories that agents propose, and decide about them.",
        parts=(
            CommandEntry("agent_results.memory", "accept", "memory accept m-1f2e3d"),
            CommandEntry(
                "agent_results.memory", "reject", 'memory reject m-1f2e3d --reason "Not ours"'
            ),
            CommandEntry("agent_results.memory", "edit", 'memory edit m-1f2e3d "Tests use pytest"'),
            CommandEntry("agent_results.memory", "trace", "memory trace m-1f2e3d"),
        ),
    ),
    CommandEntry("agent_results.validate", "validate", 'validate agent-1127 --check "pytest -q"'),
    CommandEntry(
        "mcp.serve",
        "serve",
        "mcp --tools core",
        name="mcp",
        help="Serve this project to agents by the Model Context Protocol.",
        parts=(
            CommandEntry("mcp.tokens", "token", "mcp token laptop --scope read,work"),
            CommandEntry("mcp.tokens", "tokens", "mcp tokens"),
            CommandEntry("mcp.tokens", "revoke", "mcp revoke laptop"),
            CommandEntry("mcp.client_setup", "config", "mcp config claude"),
        ),
    ),
    CommandEntry("browsing", "clean", "clean"),
    CommandEntry("models.init", "init", "init --yes --provider ollama --model qwen3 --no-limit"),
    CommandEntry("models.prices", "prices", "prices update"),
    CommandEntry("configuration", "preambles", "preambles trust preambles/qc.md"),
    CommandEntry("inspection", "doctor", "doctor"),
    CommandEntry("demo", "demo", "demo --crash"),
    CommandEntry("bench", "bench", "bench engine --smoke"),
    CommandEntry(
        "completion",
        "completion",
        "completion bash > ~/.local/share/bash-completion/completions/mimir",
    ),
    CommandEntry(
        "configuration",
        "show",
        "config show --all",
        name="config",
        help="Show and change settings.",
        parts=(
            CommandEntry("configuration", "show", "config show --all"),
            CommandEntry("configuration", "get", "config get run.workers"),
            CommandEntry("configuration", "set_value", "config set llm.model gpt-5", name="set"),
            CommandEntry("configuration", "path", "config path"),
        ),
    ),
    CommandEntry(
        "agents",
        "list_agents",
        "agents --all",
        name="agents",
        help="List and check agent definitions.",
        parts=(
            CommandEntry("agents", "show", "agents show project:reviewer"),
            CommandEntry("agents", "check", "agents check .claude/agents --matrix"),
            CommandEntry("agents", "trust", "agents trust project:reviewer"),
            CommandEntry("agents", "new", "agents new reviewer"),
        ),
    ),
)


class CommandTable(Mapping[str, Any]):
    """Commands by name, each made when it is asked for."""

    def __init__(self, entries: Sequence[CommandEntry]) -> None:
        self._entries = {name: entry for entry in entries for name in entry.names}
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a command; it is made at the first time."""
        if name not in self._made:
            entry = self._entries[name]
            self._made[name] = _make_group(entry) if entry.parts else _make_command(entry, name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names in the order of the table."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Count the names."""
        return len(self._entries)


def _find_body(entry: CommandEntry) -> Callable[..., int]:
    return getattr(import_module(f"mimir.cli.commands.{entry.module}"), entry.function)


def _make_group(entry: CommandEntry) -> Any:
    group = typer.Typer(
        name=entry.name,
        cls=type("EntryGroup", (CommandGroup,), {"entries": entry.parts}),
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        help=entry.help,
        epilog=f"Example: {NAME} {entry.example}",
        context_settings=HELP,
    )
    runs_alone = bool(entry.function)
    body = command(_find_body(entry), is_group=True) if runs_alone else lambda: None
    group.callback(invoke_without_command=runs_alone)(body)
    return get_command(group)


def _make_command(entry: CommandEntry, name: str) -> Any:
    # An application of one command is that command.
    alone = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    alone.command(
        name,
        cls=LightCommand,
        hidden=name in entry.further,
        epilog=f"Example: {NAME} {entry.example}",
        context_settings=HELP,
    )(command(_find_body(entry)))
    return get_command(alone)


def _spare_conversion(parameter: Any) -> Any:
    """Take a text and an absent value as they are: their conversion would import pydantic."""
    if "process_value" in vars(parameter):
        return parameter
    convert = parameter.process_value
    is_text = parameter.type_descriptor.annotation is str
    is_list = parameter.multiple or parameter.nargs != 1

    def process(context: object, value: object) -> object:
        is_absent = value is None and not parameter.required
        if is_list or not (is_absent or (is_text and isinstance(value, str))):
            return convert(context, value)
        return parameter.callback(context, parameter, value) if parameter.callback else value

    parameter.process_value = process
    return parameter


_WHOLE = 1000
"""Longest first sentence of a help; a list of commands wraps it, and cuts nothing."""


class LightCommand(TyperCommand):
    """A command whose texts need no library."""

    def get_short_help_str(self, limit: int = _WHOLE) -> str:
        """Return the first sentence of the help, whole."""
        return super().get_short_help_str(max(limit, _WHOLE))

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with that of the help."""
        return [_spare_conversion(one) for one in super().get_params(ctx)]


class CommandGroup(TyperGroup):
    """The commands of `mimir`."""

    entries: Sequence[CommandEntry] = COMMANDS

    def get_short_help_str(self, limit: int = _WHOLE) -> str:
        """Return the first sentence of the help, whole."""
        return super().get_short_help_str(max(limit, _WHOLE))

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("dict[str, Any]", CommandTable(self.entries))

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with that of the help."""
        return [_spare_conversion(one) for one in super().get_params(ctx)]
